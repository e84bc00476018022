/* Public COG validation. See src/check. */
#include "check/check.h"

cogpu_status cogpu_check(const cogpu_file *file, const cogpu_check_options *options,
                         void (*found)(void *user, const cogpu_finding *finding), void *user,
                         cogpu_checked *checked, cogpu_error *error) {
    if (!file || !checked)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "cogpu_check needs a file and a pointer for the summary");
    cogpu_error_clear(error);
    return cogpu_check_file(file, options, found, user, checked, error);
}

const char *cogpu_severity_name(cogpu_severity severity) {
    return severity == COGPU_FAULT ? "fault" : severity == COGPU_WARNING ? "warning" : "note";
}

const char *cogpu_verdict_name(cogpu_verdict verdict) {
    return verdict == COGPU_VALID                 ? "valid"
           : verdict == COGPU_VALID_WITH_WARNINGS ? "valid with warnings"
                                                  : "invalid";
}
