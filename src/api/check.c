/* Public COG validation. See src/check. */
#include "check/check.h"

#include "api/sized.h"

cogpu_status cogpu_check(const cogpu_file *file, const cogpu_check_options *given,
                         void (*found)(void *user, const cogpu_finding *finding), void *user,
                         cogpu_checked *checked, cogpu_error *error) {
    cogpu_check_options options;
    cogpu_checked summary = COGPU_CHECKED_INIT;
    cogpu_error_clear(error);
    if (!file || !checked)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "cogpu_check needs a file and a pointer for the summary");
    TRY(TAKE_STRUCT(&options, given, cogpu_check_options, error));
    TRY(CHECK_STRUCT(checked, cogpu_checked, error));
    cogpu_status status = cogpu_check_file(file, &options, found, user, &summary, error);
    GIVE_STRUCT(checked, &summary);
    return status;
}
