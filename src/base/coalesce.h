/*
 * The rule for coalescing: neighbouring byte ranges of a file share one request, because a request
 * costs more than a few unwanted bytes. Arithmetic only, and the only file with the rule.
 *
 *   ranges     |-A-|   |--B--|                      |C|
 *   requests   |-------------|                      |-|
 *                   ^ gap: read along, and discarded
 *
 * A file says where its ranges are, so the limits hold whatever it says: tiny ranges that are far
 * apart never become one huge request. Callers choose their own limits: a network joins across
 * 64 KiB, a local disk across 4 KiB. Callers visit their ranges in ascending order; io/range has a
 * list of requests for ranges in any order.
 */
#ifndef COGPU_BASE_COALESCE_H
#define COGPU_BASE_COALESCE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cogpu_coalesce_limits {
    uint64_t gap_bytes;     /* longest gap that is read along. All gaps of a request together may be
                             * longer only if they are at most half of the request */
    uint64_t request_bytes; /* longest request, unless a single range is longer */
} cogpu_coalesce_limits;

/* A request that grows. Set gap_bytes back to 0 to bound each gap, but not their sum. */
typedef struct cogpu_joined_range {
    uint64_t offset, end;
    uint64_t gap_bytes; /* sum of its gaps */
} cogpu_joined_range;

/* Whether the range [offset, end) may join the request. It must not begin before the request, and
 * `end` must not be below `offset`; so nothing overflows. */
bool cogpu_coalesce_allows(const cogpu_joined_range *request, uint64_t offset, uint64_t end,
                           const cogpu_coalesce_limits *limits);
void cogpu_coalesce_join(cogpu_joined_range *request, uint64_t offset, uint64_t end);

#endif
