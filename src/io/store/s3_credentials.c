/*
 * Credentials: from the settings, the environment or the AWS config files.
 *
 * Messages contain no part of them, only where they were found. Copies are wiped.
 */
#include "io/store/s3_internal.h"

#include <strings.h>

void cogpu_s3_credentials_wipe(cogpu_s3_credentials *credentials) {
    explicit_bzero(credentials, sizeof *credentials);
}

/* GDAL's option, and GDAL's words for no. */
static bool environment_is_anonymous(void) {
    static const char *const words[] = {"NO", "FALSE", "OFF", "0"};
    const char *value = cogpu_s3_variable("AWS_NO_SIGN_REQUEST");
    for (size_t i = 0; value && i < sizeof words / sizeof *words; i++)
        if (strcasecmp(value, words[i]) == 0)
            value = NULL;
    return value != NULL;
}

static cogpu_status copy_credential(const char *value, const char *name, char *to, size_t capacity,
                                    cogpu_error *error) {
    const size_t bytes = value ? strlen(value) : 0;
    if (bytes >= capacity || !s3_are_graphic(value, bytes))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "%s has invalid characters (blanks, line ends), or more than %zu", name,
                          capacity - 1);
    if (bytes)
        memcpy(to, value, bytes);
    to[bytes] = '\0';
    return COGPU_OK;
}

/* Values and their names, in the order: key, secret, token. */
static cogpu_status copy_credentials(const char *const values[3], const char *const names[3],
                                     cogpu_s3_credentials *to, cogpu_error *error) {
    if (!values[0] || !values[1])
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "%s is set and %s is not: both or none",
                          names[values[0] ? 0 : 1], names[values[0] ? 1 : 0]);
    TRY(copy_credential(values[0], names[0], to->access_key, sizeof to->access_key, error));
    TRY(copy_credential(values[1], names[1], to->secret_key, sizeof to->secret_key, error));
    return copy_credential(values[2], names[2], to->session_token, sizeof to->session_token, error);
}

static const char *unless_empty(const char *text) {
    return text && *text ? text : NULL;
}

/* ---- profiles ---- */

enum { KEY, SECRET, TOKEN, UNSUPPORTED, VALUES = UNSUPPORTED + 5 };

/* Of one file; *found if it has both. */
static cogpu_status find_in_file(cogpu_s3_file file, const char *profile,
                                 cogpu_s3_profile_value *values, bool *has_profile, bool *found,
                                 cogpu_error *error) {
    bool is_here;
    TRY(cogpu_s3_profile_read(file, profile, values, VALUES, &is_here, error));
    *has_profile |= is_here;
    *found = values[KEY].is_there && values[SECRET].is_there;
    if (values[KEY].is_there == values[SECRET].is_there)
        return COGPU_OK;
    const int there = values[KEY].is_there ? KEY : SECRET;
    return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "profile %.40s of %.60s has %s and no %s",
                      profile, cogpu_s3_file_name(file), values[there].name,
                      values[there == KEY ? SECRET : KEY].name);
}

static cogpu_status fail_without_credentials(const char *profile, bool has_profile,
                                             const cogpu_s3_profile_value *values,
                                             cogpu_error *error) {
    for (int i = UNSUPPORTED; i < VALUES; i++)
        if (values[i].is_there)
            return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                              "profile %.40s gets its credentials by %s, which is not supported; "
                              "run: eval \"$(aws configure export-credentials --profile %.40s "
                              "--format env)\"",
                              profile, values[i].name, profile);
    return cogpu_fail(
        error, COGPU_INVALID_ARGUMENT,
        "no credentials for S3; public data: AWS_NO_SIGN_REQUEST=YES (anonymous); "
        "looked for AWS_ACCESS_KEY_ID, %s%.40s%s in %.40s, %.40s",
        has_profile ? "keys of profile " : "profile ", profile, has_profile ? "" : " (not there)",
        cogpu_s3_file_name(COGPU_S3_CREDENTIALS_FILE), cogpu_s3_file_name(COGPU_S3_CONFIG_FILE));
}

static cogpu_status find_in_files(const char *profile, cogpu_s3_credentials *to,
                                  cogpu_error *error) {
    cogpu_s3_profile_value values[VALUES] = {
        {"aws_access_key_id", to->access_key, sizeof to->access_key, false},
        {"aws_secret_access_key", to->secret_key, sizeof to->secret_key, false},
        {"aws_session_token", to->session_token, sizeof to->session_token, false},
        {.name = "role_arn"},
        {.name = "sso_session"},
        {.name = "sso_start_url"},
        {.name = "credential_process"},
        {.name = "login_session"}};
    bool has_profile = false, found = false;
    TRY(find_in_file(COGPU_S3_CREDENTIALS_FILE, profile, values, &has_profile, &found, error));
    if (found)
        return COGPU_OK;
    to->session_token[0] = '\0'; /* it belongs to a key */
    TRY(find_in_file(COGPU_S3_CONFIG_FILE, profile, values, &has_profile, &found, error));
    return found ? COGPU_OK : fail_without_credentials(profile, has_profile, values, error);
}

/* ---- all sources ---- */

static cogpu_status find_credentials(const cogpu_s3_settings *settings, cogpu_s3_credentials *to,
                                     cogpu_error *error) {
    static const char *const setting_names[] = {"access_key", "secret_key", "session_token"};
    static const char *const names[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
                                        "AWS_SESSION_TOKEN"};
    const char *chosen[] = {unless_empty(settings->access_key), unless_empty(settings->secret_key),
                            unless_empty(settings->session_token)};
    to->is_anonymous = settings->is_anonymous;
    if (to->is_anonymous)
        return COGPU_OK;
    if (chosen[0] || chosen[1])
        return copy_credentials(chosen, setting_names, to, error);
    if (!unless_empty(settings->profile)) {
        to->is_anonymous = environment_is_anonymous();
        if (to->is_anonymous)
            return COGPU_OK;
        for (int i = 0; i < 3; i++)
            chosen[i] = cogpu_s3_variable(names[i]);
        if (chosen[0] || chosen[1])
            return copy_credentials(chosen, names, to, error);
    }
    return find_in_files(cogpu_s3_profile_name(settings), to, error);
}

cogpu_status cogpu_s3_credentials_find(const cogpu_s3_settings *settings,
                                       cogpu_s3_credentials *credentials, cogpu_error *error) {
    *credentials = (cogpu_s3_credentials){0};
    cogpu_status status = find_credentials(settings, credentials, error);
    if (status != COGPU_OK)
        cogpu_s3_credentials_wipe(credentials);
    return status;
}
