/*
 * Coalescing of many byte ranges, in any order, into requests: base/coalesce.h has the rule.
 */
#ifndef COGPU_IO_RANGE_COALESCE_H
#define COGPU_IO_RANGE_COALESCE_H

#include "base/coalesce.h"
#include "base/memory.h"

/* A contiguous range of a source's bytes. */
typedef struct cogpu_byte_range {
    uint64_t offset, bytes;
} cogpu_byte_range;

/* Limits for sources on a network, unless the caller sets others. */
enum { COGPU_GAP_BYTES = 64 << 10, COGPU_REQUEST_BYTES = 8 << 20 };

/* Requests begin in ascending order, no two at one offset. A request covers its ranges from end to
 * end, and the request of a range is the last that does not begin after it. Requests overlap only
 * if their ranges do and the limits kept them apart. */
typedef struct cogpu_requests {
    cogpu_byte_range *list;
    uint32_t count;
    uint32_t *of_span; /* index of each range's request, or COGPU_NO_REQUEST */
} cogpu_requests;

/* Of an empty range, or one that exceeds the source. Reading it reports the error. */
#define COGPU_NO_REQUEST UINT32_MAX

/* Ranges may come in any order, overlap or repeat. `count` is at most UINT32_MAX - 1. The lists
 * belong to the arena. */
cogpu_status cogpu_coalesce(const cogpu_byte_range *spans, uint32_t count, uint64_t source_bytes,
                            const cogpu_coalesce_limits *limits, cogpu_arena *arena,
                            cogpu_requests *requests, cogpu_error *error);

#endif
