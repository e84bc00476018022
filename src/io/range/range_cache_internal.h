/* What range_cache.c (prefetched ranges) and read_ahead.c (peeks) share. */
#ifndef COGPU_IO_RANGE_RANGE_CACHE_INTERNAL_H
#define COGPU_IO_RANGE_RANGE_CACHE_INTERNAL_H

#include "io/range/range_cache.h"

#include <pthread.h>

struct cogpu_range_cache {
    const cogpu_range_loader *loader;
    void *source;
    uint64_t source_bytes;
    cogpu_coalesce_limits limits;
    pthread_mutex_t lock;        /* of all below */
    pthread_cond_t range_loaded; /* a range is no longer LOADING */
    cogpu_range_list prefetched;
    cogpu_range_list kept; /* of peeks; no two overlap */
    uint64_t header_bytes, kept_bytes, ticks;
};

#endif
