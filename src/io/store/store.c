/* The table of stores; see store.h. */
#include "io/store/store.h"

#include <string.h>

static const cogpu_store_kind *const kinds[] = {&cogpu_store_https, &cogpu_store_http,
                                                &cogpu_store_s3};
enum { KINDS = sizeof kinds / sizeof *kinds, SCHEMES_BYTES = KINDS * COGPU_URL_SCHEME_BYTES };

static const cogpu_store_kind *find_kind(const char *scheme) {
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(kinds[i]->scheme, scheme) == 0)
            return kinds[i];
    return NULL;
}

/* All of the table, as "https,http,s3". */
static const char *list_schemes(char text[SCHEMES_BYTES]) {
    size_t used = 0;
    for (size_t i = 0; i < KINDS; i++) {
        const size_t bytes = strlen(kinds[i]->scheme);
        memcpy(text + used, kinds[i]->scheme, bytes);
        used += bytes;
        text[used++] = i + 1 < KINDS ? ',' : '\0';
    }
    return text;
}

static cogpu_status parse_address(const char *address, const cogpu_network *network, cogpu_url *url,
                                  cogpu_error *error) {
    char all[SCHEMES_BYTES];
    TRY(cogpu_url_parse(address, network->schemes ? network->schemes : list_schemes(all), url,
                        error));
    if (!find_kind(url->scheme))
        return cogpu_fail(error, COGPU_UNSUPPORTED, "%s:// URLs are not supported, only: %s",
                          url->scheme, list_schemes(all));
    return COGPU_OK;
}

/* `url` is scratch memory, which the caller wipes. */
static cogpu_status open_with_client(const char *address, cogpu_http *http, cogpu_url *url,
                                     cogpu_store **out, cogpu_error *error) {
    const cogpu_network *network = cogpu_http_network(http);
    TRY(parse_address(address, network, url, error));
    const cogpu_store_kind *kind = find_kind(url->scheme);
    cogpu_store *store = cogpu_allocate(kind->struct_bytes);
    if (!store)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for a file on the network");
    memset(store, 0, kind->struct_bytes);
    store->kind = kind;
    store->http = http;
    store->target =
        (cogpu_http_target){.shown = cogpu_url_shown(url, store->shown, sizeof store->shown),
                            .may_be_private = network->allow_private_addresses};
    cogpu_status status = kind->locate(store, address, url, error);
    if (status == COGPU_OK)
        *out = store;
    else
        cogpu_store_close(store);
    return status;
}

cogpu_status cogpu_store_open(const char *address, cogpu_http *http, cogpu_store **store,
                              cogpu_error *error) {
    bool owns_http;
    cogpu_url url;
    TRY(cogpu_http_ensure(&http, &owns_http, error));
    cogpu_status status = open_with_client(address, http, &url, store, error);
    explicit_bzero(url.user, sizeof url.user);
    if (status == COGPU_OK)
        (*store)->owns_http = owns_http;
    else if (owns_http)
        cogpu_http_close(http);
    return status;
}

cogpu_status cogpu_store_open_for_upload(const char *address, cogpu_http *http, cogpu_store **store,
                                         cogpu_error *error) {
    TRY(cogpu_store_open(address, http, store, error));
    if ((*store)->kind->uploads)
        return COGPU_OK;
    cogpu_fail(error, COGPU_UNSUPPORTED,
               "files are written to paths and to s3:// addresses, not to %s:// ones: %s",
               (*store)->kind->scheme, (*store)->shown);
    cogpu_store_close(*store);
    *store = NULL;
    return COGPU_UNSUPPORTED;
}

void cogpu_store_close(cogpu_store *store) {
    if (!store)
        return;
    if (store->owns_http)
        cogpu_http_close(store->http);
    explicit_bzero(store, store->kind->struct_bytes);
    cogpu_release(store);
}
