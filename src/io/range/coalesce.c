/* See coalesce.h. Ranges are sorted once, then joined from left to right. */
#include "io/range/coalesce.h"

#include "base/checked.h"

#include <assert.h>
#include <stdlib.h>

/* A range inside the source, and its index among the caller's. */
typedef struct indexed_range {
    uint64_t offset, end;
    uint32_t index;
} indexed_range;

/* By offset. The longest of those at one offset comes first, so that it covers the others. */
static int compare_ranges(const void *left, const void *right) {
    const indexed_range *a = left, *b = right;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    if (a->end != b->end)
        return a->end > b->end ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static uint32_t select_valid_ranges(const cogpu_byte_range *spans, uint32_t count,
                                    uint64_t source_bytes, indexed_range *ranges,
                                    uint32_t *of_span) {
    uint32_t valid = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t end;
        of_span[i] = COGPU_NO_REQUEST;
        if (spans[i].bytes > 0 && checked_add(spans[i].offset, spans[i].bytes, &end) &&
            end <= source_bytes)
            ranges[valid++] = (indexed_range){.offset = spans[i].offset, .end = end, .index = i};
    }
    return valid;
}

static void join_sorted_ranges(const indexed_range *ranges, uint32_t count,
                               const cogpu_coalesce_limits *limits, cogpu_requests *requests) {
    cogpu_joined_range request = {0};
    for (uint32_t i = 0; i < count; i++) {
        const indexed_range *next = &ranges[i];
        if (requests->count > 0 &&
            cogpu_coalesce_allows(&request, next->offset, next->end, limits)) {
            cogpu_coalesce_join(&request, next->offset, next->end);
        } else {
            request = (cogpu_joined_range){.offset = next->offset, .end = next->end};
            requests->count++;
        }
        requests->list[requests->count - 1] =
            (cogpu_byte_range){request.offset, request.end - request.offset};
        requests->of_span[next->index] = requests->count - 1;
    }
}

cogpu_status cogpu_coalesce(const cogpu_byte_range *spans, uint32_t count, uint64_t source_bytes,
                            const cogpu_coalesce_limits *limits, cogpu_arena *arena,
                            cogpu_requests *requests, cogpu_error *error) {
    indexed_range *ranges;
    assert(count < COGPU_NO_REQUEST);
    *requests = (cogpu_requests){0};
    TRY(cogpu_arena_allocate(arena, count, sizeof *ranges, &ranges, error));
    TRY(cogpu_arena_allocate(arena, count, sizeof *requests->list, &requests->list, error));
    TRY(cogpu_arena_allocate(arena, count, sizeof *requests->of_span, &requests->of_span, error));
    uint32_t valid = select_valid_ranges(spans, count, source_bytes, ranges, requests->of_span);
    if (valid > 0)
        qsort(ranges, valid, sizeof *ranges, compare_ranges);
    join_sorted_ranges(ranges, valid, limits, requests);
    return COGPU_OK;
}
