/*
 * Trusted certificates of TLS connections. In this order:
 *   1. the caller's ca_file
 *   2. the environment: SSL_CERT_FILE and SSL_CERT_DIR, CURL_CA_BUNDLE
 *   3. those that libcurl was built with
 *   4. the usual bundles of distributions, then the folder /etc/ssl/certs
 *   5. certifi's bundle, if that Python package is installed beside ours
 * A wheel's libcurl has none of its own, since it must run on any distribution.
 */
#ifndef COGPU_IO_HTTP_CERTIFICATES_H
#define COGPU_IO_HTTP_CERTIFICATES_H

#include "base/own_folder.h"

typedef struct cogpu_certificates {
    char file[COGPU_PATH_BYTES];   /* "" if none is set: libcurl's own */
    char folder[COGPU_PATH_BYTES]; /* likewise, of files named by hash */
    const char *origin;            /* for messages: "SSL_CERT_FILE"; NULL if nothing was found */
} cogpu_certificates;

/* `built_in`: libcurl's own bundle or folder, or NULL. `root` is put before the paths of
 * distributions, for tests: "" otherwise. A path that was set by option or environment need not
 * exist: libcurl reports it when it connects. */
void cogpu_certificates_find(const char *ca_file, const char *built_in, const char *root,
                             cogpu_certificates *found);

#endif
