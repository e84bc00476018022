/*
 * Headers (the first bytes) of the remote files that were opened last: opening one again needs no
 * request.
 *
 * A header expires after a while. The reads that follow request the version that it belongs to, and
 * one that fails drops it. So only headers of files with a strong ETag are cached, and of files
 * that are longer than the header. Any thread may call these.
 */
#ifndef COGPU_IO_HTTP_HEADER_CACHE_H
#define COGPU_IO_HTTP_HEADER_CACHE_H

#include "io/http/response.h"

enum { COGPU_HEADER_CACHE_MAX = 64, COGPU_HEADER_CACHE_BYTES = 2 << 20 };

typedef struct cogpu_header_cache cogpu_header_cache;

typedef struct cogpu_cached_header {
    uint8_t *data;
    size_t bytes;
    uint64_t size; /* of the file */
    char etag[COGPU_ETAG_BYTES];
    char modified[COGPU_MODIFIED_BYTES];
} cogpu_cached_header;

/* A header expires after so many seconds; none is cached if that is negative. NULL if memory runs
 * out. */
cogpu_header_cache *cogpu_header_cache_open(double seconds);
void cogpu_header_cache_close(cogpu_header_cache *cache); /* NULL is allowed */

/* `key` is the URL, a line break, and the identity of the user, with secrets: it is wiped when it
 * is freed. `now` is a time of clock_now. */
void cogpu_header_cache_insert(cogpu_header_cache *cache, const char *key, double now,
                               const cogpu_cached_header *header);
/* The data is a copy, which the caller releases. False if there is none. */
bool cogpu_header_cache_find(cogpu_header_cache *cache, const char *key, double now,
                             cogpu_cached_header *header);
void cogpu_header_cache_drop(cogpu_header_cache *cache, const char *key);
/* Of all users: the file has changed. */
void cogpu_header_cache_drop_url(cogpu_header_cache *cache, const char *url);

#endif
