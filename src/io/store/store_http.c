/* Files on web servers: the URL is used as it is, a user and password in it for HTTP
 * authentication. They are read only. */
#include "io/store/store.h"

struct http_store {
    cogpu_store store;
    cogpu_url url;
};

static cogpu_status locate_http(cogpu_store *store, const char *address, const cogpu_url *url,
                                cogpu_error *error) {
    struct http_store *self = (struct http_store *)store;
    (void)address, (void)error;
    self->url = *url;
    store->target.url = self->url.text;
    store->target.user = self->url.user;
    store->identity[0] = self->url.user;
    return COGPU_OK;
}

const cogpu_store_kind cogpu_store_http = {
    .scheme = "http", .struct_bytes = sizeof(struct http_store), .locate = locate_http};
const cogpu_store_kind cogpu_store_https = {
    .scheme = "https", .struct_bytes = sizeof(struct http_store), .locate = locate_http};
