/*
 * Peeks: small reads of tags, and of the arrays that say where blocks are (range_cache.h).
 *
 * A range is longer than the read that caused it. It begins where a range before it ends, if
 * that is near, and is then twice as long. So data that is stored together costs few requests,
 * however many reads, and a range without further reads stays small:
 *
 *   peeks       ..  .   .    . .          .
 *   ranges     |64K|--128K--|-----256K-----|                 |64K|
 *
 * Two threads that want the same bytes share one request.
 */
#include "io/range/range_cache_internal.h"

#include <string.h>

/* Two spans share a request if it is no longer than this: about what a connection delivers while
 * another request is on its way. */
enum { SHARED_REQUEST_BYTES = 512 << 10 };

void cogpu_range_cache_set_header_bytes(cogpu_range_cache *cache, uint64_t bytes) {
    cache->header_bytes = bytes;
}

/* ---- under the lock ---- */

static uint64_t end_of(const cogpu_range *range) {
    return range->offset + range->bytes;
}

static void remove_kept(cogpu_range_cache *cache, cogpu_range *range) {
    cogpu_range_list_remove(&cache->kept, range);
    cache->kept_bytes -= range->bytes;
    cogpu_release(range);
}

/* Evicts the ranges that were not used for longest. */
static void evict_ranges(cogpu_range_cache *cache, size_t bytes) {
    while (cache->kept_bytes + bytes > COGPU_RANGE_CACHE_BYTES) {
        cogpu_range *oldest = NULL;
        for (cogpu_range *range = cache->kept.first; range; range = range->next)
            if (range->state == COGPU_RANGE_LOADED && (!oldest || range->used_at < oldest->used_at))
                oldest = range;
        if (!oldest)
            return;
        remove_kept(cache, oldest);
    }
}

/* What to request for `bytes` bytes at `offset`, which no range has yet: from the end of the range
 * before, if that is near, and not into the range after. */
static cogpu_byte_range choose_range(const cogpu_range_cache *cache, uint64_t offset,
                                     uint64_t bytes) {
    uint64_t before = cache->header_bytes, after = cache->source_bytes;
    uint64_t length = COGPU_READ_AHEAD_BYTES, length_before = 0, start = offset;
    for (const cogpu_range *range = cache->kept.first; range; range = range->next) {
        if (end_of(range) <= offset && end_of(range) >= before) {
            before = end_of(range);
            length_before = range->bytes;
        }
        if (range->offset > offset && range->offset < after)
            after = range->offset;
    }
    if (offset - before < COGPU_READ_AHEAD_BYTES) {
        start = before;
        length = 2 * length_before > length ? 2 * length_before : length;
    } else if (cache->source_bytes - offset < COGPU_READ_AHEAD_BYTES) {
        /* Directories at the end of a file have their values before or after them. */
        start = cache->source_bytes - before > COGPU_READ_AHEAD_BYTES
                    ? cache->source_bytes - COGPU_READ_AHEAD_BYTES
                    : before;
    }
    length = offset - start + (bytes > length ? bytes : length);
    length = length < COGPU_READ_AHEAD_BYTES_MAX ? length : COGPU_READ_AHEAD_BYTES_MAX;
    return (cogpu_byte_range){start, length < after - start ? length : after - start};
}

/* A range that is LOADING, for this thread to load. NULL if memory runs out. */
static cogpu_range *add_range(cogpu_range_cache *cache, uint64_t offset, uint64_t bytes) {
    const cogpu_byte_range chosen = choose_range(cache, offset, bytes);
    evict_ranges(cache, (size_t)chosen.bytes);
    cogpu_range *range = cogpu_allocate(sizeof *range + (size_t)chosen.bytes);
    if (!range)
        return NULL;
    *range = (cogpu_range){.next = cache->kept.first,
                           .offset = chosen.offset,
                           .bytes = (size_t)chosen.bytes,
                           .data = (uint8_t *)(range + 1),
                           .state = COGPU_RANGE_LOADING,
                           .used_at = ++cache->ticks};
    cache->kept.first = range;
    cache->kept_bytes += chosen.bytes;
    return range;
}

/* Offset of the first byte of a span that no range has; the span's end if there is none. */
static uint64_t first_missing(const cogpu_range_cache *cache, const cogpu_byte_range *span) {
    uint64_t at = span->offset, end = span->offset + span->bytes;
    at = at < cache->header_bytes ? cache->header_bytes : at;
    for (const cogpu_range *range;
         at < end && (range = cogpu_range_list_find(&cache->kept, at, 1));)
        at = end_of(range);
    return at < end ? at : end;
}

/* ---- without the lock ---- */

/* Loads a range that this thread has added, and removes it if that fails. */
static cogpu_status load_range(cogpu_range_cache *cache, cogpu_range *range, cogpu_error *error) {
    cogpu_status status =
        cogpu_range_cache_read(cache, range->offset, range->bytes, range->data, NULL, error);
    pthread_mutex_lock(&cache->lock);
    range->state = COGPU_RANGE_LOADED;
    if (status != COGPU_OK)
        remove_kept(cache, range);
    pthread_cond_broadcast(&cache->range_loaded);
    pthread_mutex_unlock(&cache->lock);
    return status;
}

/* Copies the first bytes as far as one range has them. *copied is 0 if the range had to be loaded
 * or waited for, and has to be looked up again. */
static cogpu_status copy_first_bytes(cogpu_range_cache *cache, uint64_t offset, size_t bytes,
                                     uint8_t *to, size_t *copied, cogpu_error *error) {
    *copied = 0;
    pthread_mutex_lock(&cache->lock);
    cogpu_range *range = cogpu_range_list_find(&cache->kept, offset, 1), *added = NULL;
    if (!range) {
        added = add_range(cache, offset, bytes);
    } else if (range->state == COGPU_RANGE_LOADING) {
        pthread_cond_wait(&cache->range_loaded, &cache->lock);
    } else {
        size_t skip = (size_t)(offset - range->offset), left = range->bytes - skip;
        *copied = bytes < left ? bytes : left;
        memcpy(to, range->data + skip, *copied);
        range->used_at = ++cache->ticks;
    }
    pthread_mutex_unlock(&cache->lock);
    if (added)
        return load_range(cache, added, error);
    if (range)
        return COGPU_OK;
    *copied = bytes;
    return cogpu_range_cache_read(cache, offset, bytes, to, NULL, error);
}

cogpu_status cogpu_range_cache_peek(cogpu_range_cache *cache, uint64_t offset, size_t bytes,
                                    void *to, cogpu_error *error) {
    uint8_t *at = to;
    if (bytes > COGPU_READ_AHEAD_BYTES_MAX)
        return cogpu_range_cache_read(cache, offset, bytes, to, NULL, error);
    while (bytes) {
        size_t copied = 0;
        TRY(copy_first_bytes(cache, offset, bytes, at, &copied, error));
        offset += copied;
        at += copied;
        bytes -= copied;
    }
    return COGPU_OK;
}

/* Adds the ranges that both spans need, if both lack some bytes. Under the lock. */
static uint32_t add_ranges(cogpu_range_cache *cache, const cogpu_byte_range spans[2],
                           cogpu_range *added[2]) {
    uint64_t at[2], end[2];
    uint32_t count = 0;
    for (int i = 0; i < 2; i++) {
        at[i] = first_missing(cache, &spans[i]);
        end[i] = spans[i].offset + spans[i].bytes;
    }
    if (at[0] >= end[0] || at[1] >= end[1])
        return 0;
    const int low = at[0] <= at[1] ? 0 : 1;
    /* Reading on after the second span finds as much there as after the first. */
    const uint64_t shared = end[!low] - at[low];
    added[count] = add_range(cache, at[low],
                             shared <= SHARED_REQUEST_BYTES ? shared + COGPU_READ_AHEAD_BYTES
                                                            : end[low] - at[low]);
    count += added[count] != NULL;
    at[!low] = first_missing(cache, &spans[!low]);
    if (at[!low] < end[!low]) {
        added[count] = add_range(cache, at[!low], end[!low] - at[!low]);
        count += added[count] != NULL;
    }
    return count;
}

void cogpu_range_cache_prefetch_peeks(cogpu_range_cache *cache, const cogpu_byte_range spans[2]) {
    cogpu_range *added[2] = {NULL, NULL};
    cogpu_byte_range requested[2];
    pthread_mutex_lock(&cache->lock);
    uint32_t count = add_ranges(cache, spans, added);
    for (uint32_t i = 0; i < count; i++)
        requested[i] = (cogpu_byte_range){added[i]->offset, added[i]->bytes};
    pthread_mutex_unlock(&cache->lock);
    uint64_t ticket = count > 1 ? cogpu_range_cache_prefetch(cache, requested, count) : 0;
    for (uint32_t i = 0; i < count; i++)
        (void)load_range(cache, added[i], NULL);
    if (ticket)
        cogpu_range_cache_end_prefetch(cache, ticket);
}
