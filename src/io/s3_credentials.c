/*
 * Takes settings, the environment and the shared files of AWS, hands on the credentials that a
 * request is signed with.
 *
 * No message has a word of them: it names where they stand. What is copied is wiped.
 */
#include "io/s3_inner.h"

#include <strings.h>

void cogpu_s3_credentials_wipe(cogpu_s3_credentials *credentials) {
    explicit_bzero(credentials, sizeof *credentials);
}

/* GDAL's word for it, and GDAL's way to say no. */
static bool environment_is_anonymous(void) {
    static const char *const words[] = {"NO", "FALSE", "OFF", "0"};
    const char *value = cogpu_s3_variable("AWS_NO_SIGN_REQUEST");
    for (size_t i = 0; value && i < sizeof words / sizeof *words; i++)
        if (strcasecmp(value, words[i]) == 0)
            value = NULL;
    return value != NULL;
}

static cogpu_status copy(const char *value, const char *name, char *to, size_t room,
                         cogpu_error *error) {
    const size_t bytes = value ? strlen(value) : 0;
    if (bytes >= room || !s3_are_graphic(value, bytes))
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "%s has characters that it cannot have (blanks, line ends), or more than "
                          "%zu",
                          name, room - 1);
    if (bytes)
        memcpy(to, value, bytes);
    to[bytes] = '\0';
    return COGPU_OK;
}

/* Values and what they are called, in the order: key, secret, token. */
static cogpu_status take(const char *const values[3], const char *const names[3],
                         cogpu_s3_credentials *to, cogpu_error *error) {
    if (!values[0] || !values[1])
        return cogpu_fail(error, COGPU_ARGUMENT, "%s is set and %s is not: both or none",
                          names[values[0] ? 0 : 1], names[values[0] ? 1 : 0]);
    TRY(copy(values[0], names[0], to->access_key, sizeof to->access_key, error));
    TRY(copy(values[1], names[1], to->secret_key, sizeof to->secret_key, error));
    return copy(values[2], names[2], to->session_token, sizeof to->session_token, error);
}

static const char *unless_empty(const char *text) {
    return text && *text ? text : NULL;
}

/* ---- profiles ---- */

enum { KEY, SECRET, TOKEN, ELSEWHERE, WISHES = ELSEWHERE + 5 };

/* One file's; *found where it has both. */
static cogpu_status find_in_file(cogpu_s3_file file, const char *profile, cogpu_s3_wish *wishes,
                                 bool *has_profile, bool *found, cogpu_error *error) {
    bool is_here;
    TRY(cogpu_s3_profile_read(file, profile, wishes, WISHES, &is_here, error));
    *has_profile |= is_here;
    *found = wishes[KEY].is_there && wishes[SECRET].is_there;
    if (wishes[KEY].is_there == wishes[SECRET].is_there)
        return COGPU_OK;
    const int there = wishes[KEY].is_there ? KEY : SECRET;
    return cogpu_fail(error, COGPU_ARGUMENT, "profile %.40s of %.60s has %s and no %s", profile,
                      cogpu_s3_file_name(file), wishes[there].name,
                      wishes[there == KEY ? SECRET : KEY].name);
}

static cogpu_status tell_absent(const char *profile, bool has_profile, const cogpu_s3_wish *wishes,
                                cogpu_error *error) {
    for (int i = ELSEWHERE; i < WISHES; i++)
        if (wishes[i].is_there)
            return cogpu_fail(error, COGPU_ARGUMENT,
                              "profile %.40s gets its credentials by %s, which is not supported; "
                              "run: eval \"$(aws configure export-credentials --profile %.40s "
                              "--format env)\"",
                              profile, wishes[i].name, profile);
    return cogpu_fail(
        error, COGPU_ARGUMENT,
        "no credentials for S3; public data: AWS_NO_SIGN_REQUEST=YES (anonymous); "
        "looked for AWS_ACCESS_KEY_ID, %s%.40s%s in %.40s, %.40s",
        has_profile ? "keys of profile " : "profile ", profile, has_profile ? "" : " (not there)",
        cogpu_s3_file_name(COGPU_S3_CREDENTIALS_FILE), cogpu_s3_file_name(COGPU_S3_CONFIG_FILE));
}

static cogpu_status find_in_files(const char *profile, cogpu_s3_credentials *to,
                                  cogpu_error *error) {
    cogpu_s3_wish wishes[WISHES] = {
        {"aws_access_key_id", to->access_key, sizeof to->access_key, false},
        {"aws_secret_access_key", to->secret_key, sizeof to->secret_key, false},
        {"aws_session_token", to->session_token, sizeof to->session_token, false},
        {.name = "role_arn"},
        {.name = "sso_session"},
        {.name = "sso_start_url"},
        {.name = "credential_process"},
        {.name = "login_session"}};
    bool has_profile = false, found = false;
    TRY(find_in_file(COGPU_S3_CREDENTIALS_FILE, profile, wishes, &has_profile, &found, error));
    if (found)
        return COGPU_OK;
    to->session_token[0] = '\0'; /* without a key it is nobody's */
    TRY(find_in_file(COGPU_S3_CONFIG_FILE, profile, wishes, &has_profile, &found, error));
    return found ? COGPU_OK : tell_absent(profile, has_profile, wishes, error);
}

/* ---- all of it ---- */

static cogpu_status find(const cogpu_s3_settings *settings, cogpu_s3_credentials *to,
                         cogpu_error *error) {
    static const char *const said_names[] = {"access_key", "secret_key", "session_token"};
    static const char *const names[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
                                        "AWS_SESSION_TOKEN"};
    const char *said[] = {unless_empty(settings->access_key), unless_empty(settings->secret_key),
                          unless_empty(settings->session_token)};
    to->is_anonymous = settings->is_anonymous;
    if (to->is_anonymous)
        return COGPU_OK;
    if (said[0] || said[1])
        return take(said, said_names, to, error);
    if (!unless_empty(settings->profile)) {
        to->is_anonymous = environment_is_anonymous();
        if (to->is_anonymous)
            return COGPU_OK;
        for (int i = 0; i < 3; i++)
            said[i] = cogpu_s3_variable(names[i]);
        if (said[0] || said[1])
            return take(said, names, to, error);
    }
    return find_in_files(cogpu_s3_profile_name(settings), to, error);
}

cogpu_status cogpu_s3_credentials_find(const cogpu_s3_settings *settings,
                                       cogpu_s3_credentials *credentials, cogpu_error *error) {
    *credentials = (cogpu_s3_credentials){0};
    cogpu_status status = find(settings, credentials, error);
    if (status != COGPU_OK)
        cogpu_s3_credentials_wipe(credentials);
    return status;
}
