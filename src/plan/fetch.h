/*
 * Which bytes one read fetches for neighbouring blocks. The CPU path, the GPU path and the prefetch
 * derive their byte ranges here, so that a prefetched range is the range that is read.
 */
#ifndef COGPU_PLAN_FETCH_H
#define COGPU_PLAN_FETCH_H

#include "image/image.h"

/* One contiguous byte range, and the blocks of a run or batch that it covers. */
typedef struct cogpu_fetch {
    uint64_t offset, bytes;
    uint32_t first, count; /* blocks, counted from the start of the run or batch */
} cogpu_fetch;

/* Starts a fetch with block `first`. */
cogpu_fetch cogpu_fetch_start(uint32_t first, cogpu_span span);

/* Extends the fetch to the next block. Gaps between blocks are fetched too. Blocks have ascending
 * offsets (cogpu_plan_run), or repeat the block before them. */
void cogpu_fetch_extend(cogpu_fetch *fetch, cogpu_span span);

#endif
