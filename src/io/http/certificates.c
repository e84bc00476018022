/* See certificates.h. */
#include "io/http/certificates.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *read_variable(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static bool set_path(char path[COGPU_PATH_BYTES], const char *root, const char *value) {
    int length = value ? snprintf(path, COGPU_PATH_BYTES, "%s%s", root, value) : 0;
    bool is_whole = length > 0 && length < COGPU_PATH_BYTES;
    if (!is_whole)
        path[0] = '\0';
    return is_whole;
}

static bool find_in_environment(cogpu_certificates *found) {
    if (set_path(found->file, "", read_variable("SSL_CERT_FILE")))
        found->origin = "SSL_CERT_FILE";
    if (set_path(found->folder, "", read_variable("SSL_CERT_DIR")) && !found->origin)
        found->origin = "SSL_CERT_DIR";
    if (!found->origin && set_path(found->file, "", read_variable("CURL_CA_BUNDLE")))
        found->origin = "CURL_CA_BUNDLE";
    return found->origin;
}

/* Some systems have the folder, and nothing in it. */
static bool has_files(const char *path) {
    DIR *folder = opendir(path);
    bool found = false;
    for (struct dirent *entry; folder && !found && (entry = readdir(folder));)
        found = entry->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return found;
}

static bool find_in_system(const char *root, cogpu_certificates *found) {
    static const char *const files[] = {
        "/etc/ssl/certs/ca-certificates.crt",                /* Debian, Ubuntu, Arch, Alpine */
        "/etc/pki/tls/certs/ca-bundle.crt",                  /* RHEL, Fedora */
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* RHEL, Fedora */
        "/etc/ssl/ca-bundle.pem",                            /* openSUSE */
        "/etc/ssl/cert.pem",                                 /* Alpine */
    };
    for (size_t i = 0; i < sizeof files / sizeof *files && !found->origin; i++)
        if (set_path(found->file, root, files[i]) && access(found->file, R_OK) == 0)
            found->origin = "the system's bundle";
    if (found->origin)
        return true;
    found->file[0] = '\0';
    if (set_path(found->folder, root, "/etc/ssl/certs") && has_files(found->folder))
        found->origin = "the system's folder";
    else
        found->folder[0] = '\0';
    return found->origin;
}

void cogpu_certificates_find(const char *ca_file, const char *built_in, const char *root,
                             cogpu_certificates *found) {
    *found = (cogpu_certificates){.origin = NULL};
    if (set_path(found->file, "", ca_file))
        found->origin = "ca_file";
    else if (find_in_environment(found))
        return;
    else if (built_in && *built_in)
        found->origin = "libcurl";
    else if (!find_in_system(root, found) &&
             cogpu_find_beside_library("../certifi/cacert.pem", found->file))
        found->origin = "certifi";
}
