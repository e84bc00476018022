/*
 * A file behind HTTP: takes a URL, hands on reads. The first request asks for the head of the file,
 * and tells its size and which version of it this is; all others ask for that version.
 *
 * What will be read next is said beforehand (expect). It is asked for in pieces, all under way
 * before the first is waited for, each into memory of its own, as far as `held_bytes` goes; reads
 * find their bytes there. A read that nobody expected, or for which there was no room, asks for
 * itself, into the memory of whoever reads.
 */
#include "io/http.h"
#include "io/io.h"
#include "io/pieces.h"
#include "io/url.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* A range of bytes on its way: one request, or several side by side where one would be long. */
struct asked {
    cogpu_http_request *requests;
    uint32_t count;
};

/* A range that is expected. */
struct piece {
    cogpu_piece range;
    struct asked asked;
};

struct remote {
    cogpu_http *http;
    bool owns_http;
    cogpu_network network; /* complete */
    cogpu_http_target target;
    cogpu_url url;
    char shown[256], moved[COGPU_URL_BYTES];
    cogpu_s3_place place;
    cogpu_s3_credentials credentials;
    char *name; /* for heads.h */
    cogpu_answer first;
    char state[COGPU_ETAG_BYTES + COGPU_MODIFIED_BYTES + 24];
    uint8_t *head;
    size_t head_bytes;
    pthread_mutex_t lock; /* of what follows */
    cogpu_pieces pieces;
};

/* ---- ranges ---- */

static uint64_t requests_of(const struct remote *remote, size_t bytes) {
    const uint64_t most = remote->network.request_bytes;
    return bytes / most + (bytes % most != 0);
}

/* False where there is no memory. */
static bool ask(struct remote *remote, uint64_t offset, size_t bytes, uint8_t *to,
                struct asked *asked) {
    const uint64_t most = remote->network.request_bytes;
    uint64_t count = requests_of(remote, bytes);
    cogpu_http_request *requests =
        count <= UINT32_MAX ? cogpu_allocate(count * sizeof *requests) : NULL;
    if (!requests)
        return false;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t skip = i * most, left = bytes - skip;
        requests[i] = (cogpu_http_request){.target = &remote->target,
                                           .offset = offset + skip,
                                           .bytes = (size_t)(left < most ? left : most),
                                           .to = to + skip};
    }
    *asked = (struct asked){requests, (uint32_t)count};
    cogpu_http_start(remote->http, requests, asked->count);
    return true;
}

/* ---- pieces, under the lock ---- */

/* With what a request takes that waits for its turn: its own struct, a try, a handle of libcurl. */
static uint64_t cost(const struct remote *remote, const cogpu_piece *range) {
    enum { TRY_BYTES = 32 << 10 };
    return range->bytes +
           requests_of(remote, range->bytes) * (sizeof(cogpu_http_request) + TRY_BYTES);
}

static void free_piece(struct remote *remote, struct piece *piece) {
    cogpu_piece *range = &piece->range;
    for (uint32_t i = 0; i < piece->asked.count; i++)
        cogpu_http_cancel(remote->http, &piece->asked.requests[i]);
    cogpu_unmap(range->data, range->bytes);
    if (range->data)
        cogpu_http_let_go(remote->http, cost(remote, range));
    cogpu_release(piece->asked.requests);
    cogpu_release(piece);
}

/* False where there is no room. */
static bool ask_for(struct remote *remote, struct piece *piece) {
    cogpu_piece *range = &piece->range;
    if (!cogpu_http_hold(remote->http, cost(remote, range)))
        return false;
    uint8_t *data = cogpu_map(range->bytes);
    if (data && ask(remote, range->offset, range->bytes, data, &piece->asked)) {
        range->data = data;
        return true;
    }
    cogpu_unmap(data, range->bytes);
    cogpu_http_let_go(remote->http, cost(remote, range));
    return false;
}

/* Asks for more, as far as there is room. */
static void advance(struct remote *remote) {
    for (cogpu_piece *range = remote->pieces.first; range; range = range->next)
        if (!range->data && !ask_for(remote, (struct piece *)range))
            return;
}

static void give_back(struct remote *remote, struct piece *used, size_t bytes) {
    if (!cogpu_pieces_leave(&remote->pieces, &used->range, bytes))
        return;
    free_piece(remote, used);
    advance(remote);
}

/* ---- reads ---- */

/* After a failure the file is met anew when it is opened again: it may have changed. */
static cogpu_status wait_for(struct remote *remote, cogpu_http_request *request, cogpu_meter *meter,
                             cogpu_error *error) {
    cogpu_status status = cogpu_http_wait_metered(remote->http, request, meter, error);
    if (status != COGPU_OK && status != COGPU_CANCELLED)
        cogpu_heads_drop(cogpu_http_heads(remote->http), remote->name);
    return status;
}

static cogpu_status take(struct remote *remote, const struct piece *piece, uint64_t offset,
                         size_t bytes, void *to, cogpu_meter *meter, cogpu_error *error) {
    uint64_t skip = offset - piece->range.offset, most = remote->network.request_bytes;
    for (uint64_t i = skip / most; i < piece->asked.count && i * most < skip + bytes; i++)
        TRY(wait_for(remote, &piece->asked.requests[i], meter, error));
    memcpy(to, piece->range.data + skip, bytes);
    return COGPU_OK;
}

static cogpu_status read_alone(struct remote *remote, uint64_t offset, size_t bytes, void *to,
                               cogpu_meter *meter, cogpu_error *error) {
    struct asked asked;
    cogpu_status status = COGPU_OK;
    if (!ask(remote, offset, bytes, to, &asked))
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for a request");
    for (uint32_t i = 0; i < asked.count; i++) {
        if (status == COGPU_OK)
            status = wait_for(remote, &asked.requests[i], meter, error);
        if (status != COGPU_OK)
            cogpu_http_cancel(remote->http, &asked.requests[i]);
    }
    cogpu_release(asked.requests);
    return status;
}

static cogpu_status http_read(const cogpu_io *io, uint64_t offset, size_t bytes, void *to,
                              cogpu_meter *meter, cogpu_error *error) {
    struct remote *remote = io->remote;
    pthread_mutex_lock(&remote->lock);
    struct piece *piece = (struct piece *)cogpu_pieces_find(&remote->pieces, offset, bytes);
    bool is_asked_for = piece && (piece->range.data || ask_for(remote, piece));
    if (piece)
        piece->range.users++;
    pthread_mutex_unlock(&remote->lock);
    cogpu_status status = is_asked_for ? take(remote, piece, offset, bytes, to, meter, error)
                                       : read_alone(remote, offset, bytes, to, meter, error);
    if (!piece)
        return status;
    pthread_mutex_lock(&remote->lock);
    give_back(remote, piece, bytes);
    pthread_mutex_unlock(&remote->lock);
    return status;
}

/* ---- what is expected ---- */

static uint64_t http_expect(const cogpu_io *io, const cogpu_span_of_source *spans, uint32_t count) {
    struct remote *remote = io->remote;
    const cogpu_merge_caps caps = {remote->network.gap_bytes, remote->network.request_bytes};
    cogpu_piece *made = cogpu_pieces_make(spans, count, io->bytes, &caps, sizeof(struct piece));
    pthread_mutex_lock(&remote->lock);
    uint64_t ticket = cogpu_pieces_add(&remote->pieces, made);
    advance(remote);
    pthread_mutex_unlock(&remote->lock);
    return ticket;
}

static void http_forget(const cogpu_io *io, uint64_t ticket) {
    struct remote *remote = io->remote;
    pthread_mutex_lock(&remote->lock);
    for (cogpu_piece *range = cogpu_pieces_forget(&remote->pieces, ticket), *next; range;
         range = next) {
        next = range->next;
        free_piece(remote, (struct piece *)range);
    }
    advance(remote);
    pthread_mutex_unlock(&remote->lock);
}

/* ---- opening ---- */

static void close_remote(struct remote *remote) {
    if (remote->owns_http)
        cogpu_http_close(remote->http);
    pthread_mutex_destroy(&remote->lock);
    cogpu_s3_credentials_wipe(&remote->credentials);
    if (remote->name)
        explicit_bzero(remote->name, strlen(remote->name));
    cogpu_release(remote->name);
    cogpu_release(remote->head);
    cogpu_release(remote);
}

static void http_close(cogpu_io *io) {
    close_remote(io->remote);
}

static cogpu_status read_head(struct remote *remote, size_t bytes, bool *is_too_long,
                              cogpu_error *error) {
    cogpu_release(remote->head);
    remote->head = cogpu_allocate(bytes);
    if (!remote->head)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for the head of a file");
    cogpu_http_request request = {.target = &remote->target,
                                  .bytes = bytes,
                                  .to = remote->head,
                                  .may_be_whole = true,
                                  .moved = remote->moved};
    cogpu_http_start(remote->http, &request, 1);
    cogpu_status status = cogpu_http_wait(remote->http, &request, error);
    remote->first = request.answer;
    remote->target.moved_from_public = request.moved_from_public;
    remote->head_bytes = request.due;
    *is_too_long = request.is_too_long;
    return status;
}

/* The URL and whose credentials go along: none of them has line breaks. */
static cogpu_status name_file(struct remote *remote, cogpu_error *error) {
    const cogpu_s3_credentials *own = &remote->credentials;
    size_t bytes = strlen(remote->target.url) + sizeof remote->url.user + sizeof *own;
    remote->name = cogpu_allocate(bytes);
    if (!remote->name)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for a file on the network");
    snprintf(remote->name, bytes, "%s\n%s\n%s\n%s\n%s", remote->target.url, remote->url.user,
             own->access_key, own->secret_key, own->session_token);
    return COGPU_OK;
}

/* What was kept when the file was opened before. Where redirects led is not among it: that may be
 * good for a shorter while. */
static bool recall(struct remote *remote) {
    cogpu_head head;
    if (!cogpu_heads_find(cogpu_http_heads(remote->http), remote->name, clock_now(), &head))
        return false;
    remote->head = head.data;
    remote->head_bytes = head.bytes;
    memcpy(remote->first.etag, head.etag, sizeof head.etag);
    memcpy(remote->first.modified, head.modified, sizeof head.modified);
    remote->first.etag_is_strong = true;
    remote->target.size = head.size;
    return true;
}

/* Only what later reads can find to be out of date. */
static void remember(const struct remote *remote) {
    const cogpu_answer *first = &remote->first;
    cogpu_head head = {
        .data = remote->head, .bytes = remote->head_bytes, .size = remote->target.size};
    if (!first->etag_is_strong || head.bytes >= head.size)
        return;
    memcpy(head.etag, first->etag, sizeof head.etag);
    memcpy(head.modified, first->modified, sizeof head.modified);
    cogpu_heads_keep(cogpu_http_heads(remote->http), remote->name, clock_now(), &head);
}

/* A server that knows no ranges sends all or nothing: all is taken once, if it is not too much. */
static cogpu_status ask_for_head(struct remote *remote, cogpu_error *error) {
    const cogpu_answer *first = &remote->first;
    bool is_too_long = false;
    uint64_t bytes = 0;
    cogpu_status status =
        read_head(remote, (size_t)remote->network.header_bytes, &is_too_long, error);
    if (is_too_long && cogpu_answer_bytes(first, &bytes)) {
        if (bytes > remote->network.whole_bytes)
            return cogpu_fail(error, COGPU_LIMIT,
                              "the server knows no ranges, and the whole file has %llu bytes, more "
                              "than the setting whole_bytes allows: %s",
                              (unsigned long long)bytes, remote->shown);
        status = read_head(remote, (size_t)bytes, &is_too_long, error);
    }
    TRY(status);
    bool is_whole = first->status == 200;
    if (!is_whole && !first->range.has_total)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "the server does not say how long the file is: %s", remote->shown);
    remote->target.size = is_whole ? remote->head_bytes : first->range.total;
    remember(remote);
    return COGPU_OK;
}

/* The head, the size, and which version of the file this is. */
static cogpu_status meet(struct remote *remote, cogpu_error *error) {
    TRY(name_file(remote, error));
    if (!recall(remote))
        TRY(ask_for_head(remote, error));
    remote->target.has_size = true;
    remote->target.moved = remote->moved;
    remote->target.etag = remote->first.etag;
    remote->target.etag_is_strong = remote->first.etag_is_strong;
    remote->target.modified = remote->first.modified;
    snprintf(remote->state, sizeof remote->state, "%s %s %llu", remote->first.etag,
             remote->first.modified, (unsigned long long)remote->target.size);
    return COGPU_OK;
}

/* The URL, for whom it is asked and how. */
static cogpu_status prepare(struct remote *remote, const char *url, cogpu_error *error) {
    TRY(cogpu_http_take(&remote->http, &remote->owns_http, error));
    remote->network = *cogpu_http_network(remote->http);
    TRY(cogpu_url_parse(url, remote->network.schemes, &remote->url, error));
    remote->target = (cogpu_http_target){
        .url = remote->url.text,
        .shown = cogpu_url_shown(&remote->url, remote->shown, sizeof remote->shown),
        .user = remote->url.user,
        .may_be_private = remote->network.private_addresses};
    return strcmp(remote->url.scheme, "s3") == 0
               ? cogpu_network_find_s3(&remote->network, url, &remote->place, &remote->credentials,
                                       &remote->target, error)
               : COGPU_OK;
}

cogpu_status cogpu_io_open_http(const char *url, cogpu_http *http, cogpu_io **io,
                                cogpu_error *error) {
    struct remote *remote = cogpu_allocate(sizeof *remote);
    if (!remote)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for a file on the network");
    *remote = (struct remote){.http = http};
    pthread_mutex_init(&remote->lock, NULL);
    cogpu_status status = prepare(remote, url, error);
    if (status == COGPU_OK)
        status = meet(remote, error);
    if (status != COGPU_OK) {
        close_remote(remote);
        return status;
    }
    const cogpu_io kind = {.bytes = remote->target.size,
                           .read = http_read,
                           .expect = http_expect,
                           .forget = http_forget,
                           .close = http_close,
                           .remote = remote,
                           .is_far = true,
                           .state = remote->state,
                           .head = remote->head,
                           .head_bytes = remote->head_bytes};
    remote->head = NULL;
    return cogpu_io_open(&kind, io, error);
}
