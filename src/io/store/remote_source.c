/*
 * A file in a store as a source. The first request reads the header of the file, and learns its
 * size and version (ETag or Last-Modified). All other requests ask for that version.
 *
 * Reads go through a range cache: prefetched ranges are requested all at once, as far as the
 * setting `max_inflight_bytes` goes. A read that was not prefetched, or did not fit, is a request
 * of its own into the reader's memory.
 */
#include "base/clock.h"
#include "io/io.h"
#include "io/store/store.h"

#include <stdio.h>
#include <string.h>

/* The requests for a byte range: one, or several in parallel if it is long. */
struct range_requests {
    cogpu_http_request *list;
    uint32_t count;
};

/* A prefetched range. */
struct remote_range {
    cogpu_range range;
    struct range_requests requests;
};

struct remote_source {
    cogpu_io io;
    cogpu_store *store;
    cogpu_network network; /* complete */
    char redirect_url[COGPU_URL_BYTES];
    char *cache_key;      /* for header_cache.h */
    cogpu_response first; /* response to the first request */
    char version[COGPU_ETAG_BYTES + COGPU_MODIFIED_BYTES + 24];
};

/* ---- ranges ---- */

static uint64_t count_requests(const struct remote_source *self, size_t bytes) {
    const uint64_t most = self->network.max_request_bytes;
    return bytes / most + (bytes % most != 0);
}

/* False if memory runs out. */
static bool start_range_requests(struct remote_source *self, uint64_t offset, size_t bytes,
                                 uint8_t *to, struct range_requests *requests) {
    const uint64_t most = self->network.max_request_bytes;
    uint64_t count = count_requests(self, bytes);
    cogpu_http_request *list = count <= UINT32_MAX ? cogpu_allocate(count * sizeof *list) : NULL;
    if (!list)
        return false;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t skip = i * most, left = bytes - skip;
        list[i] = (cogpu_http_request){.target = &self->store->target,
                                       .offset = offset + skip,
                                       .bytes = (size_t)(left < most ? left : most),
                                       .to = to + skip};
    }
    *requests = (struct range_requests){list, (uint32_t)count};
    cogpu_http_start(self->store->http, list, requests->count);
    return true;
}

/* After a failure the file may have changed: opening it again requests its header. */
static cogpu_status wait_request(struct remote_source *self, cogpu_http_request *request,
                                 cogpu_meter *meter, cogpu_error *error) {
    cogpu_http *http = self->store->http;
    cogpu_status status = cogpu_http_wait_metered(http, request, meter, error);
    if (status != COGPU_OK && status != COGPU_CANCELLED)
        cogpu_header_cache_drop(cogpu_http_header_cache(http), self->cache_key);
    return status;
}

/* ---- the loader of the range cache ---- */

/* Includes what each request takes that waits for its turn: its struct, a transfer, a handle of
 * libcurl. */
static uint64_t memory_cost(const struct remote_source *self, const cogpu_range *range) {
    enum { TRANSFER_BYTES = 32 << 10 };
    return range->bytes +
           count_requests(self, range->bytes) * (sizeof(cogpu_http_request) + TRANSFER_BYTES);
}

static bool reserve_remote_range(void *source, const cogpu_range *range) {
    const struct remote_source *self = source;
    return cogpu_http_reserve(self->store->http, memory_cost(self, range));
}

static void unreserve_remote_range(void *source, const cogpu_range *range) {
    const struct remote_source *self = source;
    cogpu_http_unreserve(self->store->http, memory_cost(self, range));
}

static bool start_remote_range(void *source, cogpu_range *range) {
    struct remote_range *own = (struct remote_range *)range;
    return start_range_requests(source, range->offset, range->bytes, range->data, &own->requests);
}

/* Waits for those requests only that have some of the bytes. */
static cogpu_status wait_range(void *source, cogpu_range *range, uint64_t offset, size_t bytes,
                               cogpu_meter *meter, cogpu_error *error) {
    struct remote_source *self = source;
    const struct range_requests *requests = &((struct remote_range *)range)->requests;
    const uint64_t skip = offset - range->offset, most = self->network.max_request_bytes;
    for (uint64_t i = skip / most; i < requests->count && i * most < skip + bytes; i++)
        TRY(wait_request(self, &requests->list[i], meter, error));
    return COGPU_OK;
}

static void cancel_range(void *source, cogpu_range *range) {
    const struct remote_source *self = source;
    struct range_requests *requests = &((struct remote_range *)range)->requests;
    for (uint32_t i = 0; i < requests->count; i++)
        cogpu_http_cancel(self->store->http, &requests->list[i]);
    cogpu_release(requests->list);
}

static cogpu_status read_range(void *source, uint64_t offset, size_t bytes, void *to,
                               cogpu_meter *meter, cogpu_error *error) {
    struct remote_source *self = source;
    struct range_requests requests;
    cogpu_status status = COGPU_OK;
    if (!start_range_requests(self, offset, bytes, to, &requests))
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for a request");
    for (uint32_t i = 0; i < requests.count; i++) {
        if (status == COGPU_OK)
            status = wait_request(self, &requests.list[i], meter, error);
        if (status != COGPU_OK)
            cogpu_http_cancel(self->store->http, &requests.list[i]);
    }
    cogpu_release(requests.list);
    return status;
}

/* ---- the header ---- */

static cogpu_status request_first_bytes(struct remote_source *self, size_t bytes,
                                        bool *ignores_ranges, cogpu_error *error) {
    cogpu_release(self->io.header);
    self->io.header = cogpu_allocate(bytes);
    if (!self->io.header)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for the header of a file");
    cogpu_http_request request = {.target = &self->store->target,
                                  .bytes = bytes,
                                  .to = self->io.header,
                                  .accepts_whole_file = true,
                                  .redirect_url = self->redirect_url};
    cogpu_http_start(self->store->http, &request, 1);
    cogpu_status status = cogpu_http_wait(self->store->http, &request, error);
    self->first = request.response;
    self->store->target.redirected_from_public = request.redirected_from_public;
    self->io.header_bytes = request.expected;
    *ignores_ranges = request.ignores_ranges;
    return status;
}

/* The URL and whose credentials are sent, one a line. */
static cogpu_status make_cache_key(struct remote_source *self, cogpu_error *error) {
    const cogpu_store *store = self->store;
    const char *const texts[] = {store->target.url, store->identity[0], store->identity[1],
                                 store->identity[2]};
    size_t bytes = 0, used = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        bytes += (texts[i] ? strlen(texts[i]) : 0) + 1;
    self->cache_key = cogpu_allocate(bytes);
    if (!self->cache_key)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for a file on the network");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const size_t length = texts[i] ? strlen(texts[i]) : 0;
        if (length)
            memcpy(self->cache_key + used, texts[i], length);
        used += length;
        self->cache_key[used++] = '\n';
    }
    self->cache_key[bytes - 1] = '\0';
    return COGPU_OK;
}

/* Redirects are not cached: they may expire sooner. */
static bool find_cached_header(struct remote_source *self) {
    cogpu_cached_header header;
    if (!cogpu_header_cache_find(cogpu_http_header_cache(self->store->http), self->cache_key,
                                 clock_now(), &header))
        return false;
    self->io.header = header.data;
    self->io.header_bytes = header.bytes;
    memcpy(self->first.etag, header.etag, sizeof header.etag);
    memcpy(self->first.modified, header.modified, sizeof header.modified);
    self->first.etag_is_strong = true;
    self->store->target.size = header.size;
    return true;
}

/* Only if later reads can notice that it is out of date. */
static void cache_header(const struct remote_source *self) {
    const cogpu_response *first = &self->first;
    cogpu_cached_header header = {
        .data = self->io.header, .bytes = self->io.header_bytes, .size = self->store->target.size};
    if (!first->etag_is_strong || header.bytes >= header.size)
        return;
    memcpy(header.etag, first->etag, sizeof header.etag);
    memcpy(header.modified, first->modified, sizeof header.modified);
    cogpu_header_cache_insert(cogpu_http_header_cache(self->store->http), self->cache_key,
                              clock_now(), &header);
}

/* A server that ignores ranges sends the whole file: it is downloaded once, if it is not too long.
 */
static cogpu_status request_header(struct remote_source *self, cogpu_error *error) {
    const cogpu_response *first = &self->first;
    const char *shown = self->store->shown;
    bool ignores_ranges = false;
    uint64_t bytes = 0;
    cogpu_status status =
        request_first_bytes(self, (size_t)self->network.header_bytes, &ignores_ranges, error);
    if (ignores_ranges && cogpu_response_bytes(first, &bytes)) {
        if (bytes > self->network.max_full_download_bytes)
            return cogpu_fail(error, COGPU_LIMIT_EXCEEDED,
                              "the server ignores range requests, and the whole file has %llu "
                              "bytes, more than max_full_download_bytes allows: %s",
                              (unsigned long long)bytes, shown);
        status = request_first_bytes(self, (size_t)bytes, &ignores_ranges, error);
    }
    TRY(status);
    bool is_whole = first->status == 200;
    if (!is_whole && !first->range.has_total)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "the server does not report the size of the file: %s", shown);
    self->store->target.size = is_whole ? self->io.header_bytes : first->range.total;
    cache_header(self);
    return COGPU_OK;
}

/* ---- opening ---- */

static void close_remote(cogpu_io *io) {
    struct remote_source *self = (struct remote_source *)io;
    cogpu_store_close(self->store);
    if (self->cache_key)
        explicit_bzero(self->cache_key, strlen(self->cache_key));
    cogpu_release(self->cache_key);
    cogpu_release(self);
}

/* Header, size and version. */
static cogpu_status probe_file(struct remote_source *self, cogpu_error *error) {
    cogpu_http_target *target = &self->store->target;
    TRY(make_cache_key(self, error));
    if (!find_cached_header(self))
        TRY(request_header(self, error));
    target->has_size = true;
    target->redirect_url = self->redirect_url;
    target->etag = self->first.etag;
    target->etag_is_strong = self->first.etag_is_strong;
    target->modified = self->first.modified;
    snprintf(self->version, sizeof self->version, "%s %s %llu", self->first.etag,
             self->first.modified, (unsigned long long)target->size);
    self->io.bytes = target->size;
    self->io.version = self->version;
    return COGPU_OK;
}

static cogpu_status open_remote_range_cache(struct remote_source *self, cogpu_error *error) {
    static const cogpu_range_loader loader = {.range_bytes = sizeof(struct remote_range),
                                              .reserve = reserve_remote_range,
                                              .unreserve = unreserve_remote_range,
                                              .start = start_remote_range,
                                              .wait = wait_range,
                                              .cancel = cancel_range,
                                              .read = read_range};
    const cogpu_coalesce_limits limits = {self->network.coalesce_gap_bytes,
                                          self->network.max_request_bytes};
    self->io.cache = cogpu_range_cache_open(&loader, self, self->io.bytes, limits);
    return self->io.cache
               ? COGPU_OK
               : cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory opening the source");
}

static cogpu_status open_remote(struct remote_source *self, const char *url, cogpu_http *http,
                                cogpu_error *error) {
    TRY(cogpu_store_open(url, http, &self->store, error));
    self->network = *cogpu_http_network(self->store->http);
    TRY(probe_file(self, error));
    return open_remote_range_cache(self, error);
}

cogpu_status cogpu_io_open_url(const char *url, cogpu_http *http, cogpu_io **io,
                               cogpu_error *error) {
    static const cogpu_io_kind remote_kind = {.read = cogpu_io_read_cached, .close = close_remote};
    struct remote_source *self = cogpu_allocate(sizeof *self);
    if (!self)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for a file on the network");
    memset(self, 0, sizeof *self);
    self->io.kind = &remote_kind;
    cogpu_status status = open_remote(self, url, http, error);
    if (status != COGPU_OK) {
        cogpu_io_close(&self->io);
        return status;
    }
    return cogpu_io_open(&self->io, io, error);
}
