/*
 * The range cache of a remote source: one for whose reads each are a request.
 *
 * It serves two kinds of reads from one lock and one kind of range:
 *   - reads of blocks, which were announced by a prefetch: neighbours share a request, all requests
 *     are under way before the first is waited for, and a range is freed once it was read;
 *   - peeks, small reads of tags and of block offsets: read ahead, kept, and evicted by age.
 *
 * How bytes arrive is the loader's matter: asynchronous HTTP requests (store/remote_source.c), or
 * calls of a user's read_many (source_user.c). Any thread may call these functions.
 */
#ifndef COGPU_IO_RANGE_RANGE_CACHE_H
#define COGPU_IO_RANGE_RANGE_CACHE_H

#include "base/progress.h"
#include "io/range/range_list.h"

typedef struct cogpu_range_cache cogpu_range_cache;

enum {
    COGPU_READ_AHEAD_BYTES = 64 << 10,    /* of a peek, at least */
    COGPU_READ_AHEAD_BYTES_MAX = 1 << 20, /* a longer peek is not kept */
    COGPU_RANGE_CACHE_BYTES = 4 << 20,    /* kept for peeks */
    COGPU_RANGE_GROUP_BYTES = 16 << 20,   /* of one `load`, unless a single range is longer */
    COGPU_RANGE_GROUP_COUNT = 256
};

/* How a cache gets bytes. A loader has either `start`, `wait` and `cancel`, or `load`. */
typedef struct cogpu_range_loader {
    size_t range_bytes; /* size of its struct that begins with cogpu_range */
    /* Reserves memory for a range in the loader's budget; false if that is used up. Under the lock,
     * as the next one. */
    bool (*reserve)(void *source, const cogpu_range *range);
    void (*unreserve)(void *source, const cogpu_range *range);

    /* Starts to fill range->data. False if memory runs out. Under the lock. */
    bool (*start)(void *source, cogpu_range *range);
    /* Waits until these bytes of the range have arrived. */
    cogpu_status (*wait)(void *source, cogpu_range *range, uint64_t offset, size_t bytes,
                         cogpu_meter *meter, cogpu_error *error);
    /* Ends what `start` began; range->data is not written afterwards. Under the lock. */
    void (*cancel)(void *source, cogpu_range *range);

    /* Fills the data of all these ranges, and returns when it is done. If it fails, the ranges are
     * read one by one. */
    cogpu_status (*load)(void *source, cogpu_range *const *ranges, size_t count);

    /* Reads into the caller's memory, past the cache. */
    cogpu_status (*read)(void *source, uint64_t offset, size_t bytes, void *to, cogpu_meter *meter,
                         cogpu_error *error);
} cogpu_range_loader;

/* NULL if memory runs out. */
cogpu_range_cache *cogpu_range_cache_open(const cogpu_range_loader *loader, void *source,
                                          uint64_t source_bytes, cogpu_coalesce_limits limits);
/* All prefetches have ended. NULL is allowed. */
void cogpu_range_cache_close(cogpu_range_cache *cache);

/* Reads from a prefetched range, else past the cache. `meter` may be NULL. The bytes must be inside
 * the source, as in all of these. */
cogpu_status cogpu_range_cache_read(cogpu_range_cache *cache, uint64_t offset, size_t bytes,
                                    void *to, cogpu_meter *meter, cogpu_error *error);
/* See cogpu_io_prefetch. */
uint64_t cogpu_range_cache_prefetch(cogpu_range_cache *cache, const cogpu_byte_range *spans,
                                    uint32_t count);
void cogpu_range_cache_end_prefetch(cogpu_range_cache *cache, uint64_t ticket);

/* The first bytes of the source are kept elsewhere: peeks do not read ahead into them. */
void cogpu_range_cache_set_header_bytes(cogpu_range_cache *cache, uint64_t bytes);
/* A small read, through the ranges that are kept. */
cogpu_status cogpu_range_cache_peek(cogpu_range_cache *cache, uint64_t offset, size_t bytes,
                                    void *to, cogpu_error *error);
/* Both spans will be peeked at. If neither is kept, they arrive in one request if they are near
 * each other, else in two at a time. An error appears when they are read. */
void cogpu_range_cache_prefetch_peeks(cogpu_range_cache *cache, const cogpu_byte_range spans[2]);

#endif
