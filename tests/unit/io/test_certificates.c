/* Which trusted certificates are used: option, environment, libcurl's own, the system's, certifi's.
 */
#define _GNU_SOURCE /* mkdtemp */
#include "io/http/certificates.h"

#include "support/test.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void clear_environment(void) {
    unsetenv("SSL_CERT_FILE");
    unsetenv("SSL_CERT_DIR");
    unsetenv("CURL_CA_BUNDLE");
}

/* An empty root of a file system. */
static void make_root(char root[64]) {
    snprintf(root, 64, "/tmp/cogpu-certificates-XXXXXX");
    CHECK(mkdtemp(root));
}

static void make_folder(const char *root, const char *path) {
    char whole[256];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(whole, 0700);
        *slash = '/';
    }
    mkdir(whole, 0700);
}

static void make_file(const char *root, const char *folder, const char *name) {
    char path[256];
    make_folder(root, folder);
    snprintf(path, sizeof path, "%s%s/%s", root, folder, name);
    FILE *file = fopen(path, "w");
    CHECK(file);
    if (file)
        fclose(file);
}

static void remove_root(const char *root) {
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    CHECK(system(command) == 0);
}

/* What is found, as "file|folder|origin". */
static const char *find(const char *ca_file, const char *built_in, const char *root) {
    static char text[256];
    cogpu_certificates found;
    cogpu_certificates_find(ca_file, built_in, root, &found);
    size_t cut = strncmp(found.file, root, strlen(root)) == 0 ? strlen(root) : 0;
    size_t folder_cut = strncmp(found.folder, root, strlen(root)) == 0 ? strlen(root) : 0;
    snprintf(text, sizeof text, "%.80s|%.80s|%s", found.file + cut, found.folder + folder_cut,
             found.origin ? found.origin : "none");
    return text;
}

static void the_environment_comes_after_the_option(void) {
    clear_environment();
    setenv("CURL_CA_BUNDLE", "/c.pem", 1);
    CHECK_TEXT(find(NULL, "/built.pem", ""), "/c.pem||CURL_CA_BUNDLE");
    setenv("SSL_CERT_DIR", "/d", 1);
    CHECK_TEXT(find(NULL, "/built.pem", ""), "|/d|SSL_CERT_DIR");
    setenv("SSL_CERT_FILE", "/s.pem", 1);
    CHECK_TEXT(find(NULL, "/built.pem", ""), "/s.pem|/d|SSL_CERT_FILE");
    CHECK_TEXT(find("/option.pem", "/built.pem", ""), "/option.pem||ca_file");
    setenv("SSL_CERT_FILE", "", 1);
    unsetenv("SSL_CERT_DIR");
    CHECK_TEXT(find(NULL, NULL, ""), "/c.pem||CURL_CA_BUNDLE");
    clear_environment();
}

static void a_distributions_libcurl_has_its_own(void) {
    clear_environment();
    CHECK_TEXT(find(NULL, "/etc/ssl/certs/ca-certificates.crt", ""), "||libcurl");
}

static void bundles_of_distributions(void) {
    char root[64];
    clear_environment();
    make_root(root);
    CHECK_TEXT(find(NULL, NULL, root), "||none");
    make_folder(root, "/etc/ssl/certs");
    CHECK_TEXT(find(NULL, NULL, root), "||none");
    make_file(root, "/etc/ssl/certs", "0a1b2c3d.0");
    CHECK_TEXT(find(NULL, NULL, root), "|/etc/ssl/certs|the system's folder");
    make_file(root, "/etc/ssl", "cert.pem");
    CHECK_TEXT(find(NULL, NULL, root), "/etc/ssl/cert.pem||the system's bundle");
    make_file(root, "/etc/pki/tls/certs", "ca-bundle.crt");
    CHECK_TEXT(find(NULL, NULL, root), "/etc/pki/tls/certs/ca-bundle.crt||the system's bundle");
    make_file(root, "/etc/ssl/certs", "ca-certificates.crt");
    CHECK_TEXT(find(NULL, NULL, root), "/etc/ssl/certs/ca-certificates.crt||the system's bundle");
    remove_root(root);
}

static void a_path_that_is_too_long_is_ignored(void) {
    static char path[2 * COGPU_PATH_BYTES];
    clear_environment();
    memset(path, 'x', sizeof path - 1);
    setenv("SSL_CERT_FILE", path, 1);
    CHECK_TEXT(find(NULL, "/built.pem", ""), "||libcurl");
    clear_environment();
}

TESTS(certificates) {
    RUN(the_environment_comes_after_the_option);
    RUN(a_distributions_libcurl_has_its_own);
    RUN(bundles_of_distributions);
    RUN(a_path_that_is_too_long_is_ignored);
    return FINISH();
}
