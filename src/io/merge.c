/* Takes spans, hands on the requests to make: sorted once, then merged from left to right. */
#include "io/merge.h"

#include "base/checked.h"

#include <assert.h>
#include <stdlib.h>

/* A span that lies inside the source, and its number among all. */
typedef struct place {
    uint64_t offset, end;
    uint32_t number;
} place;

/* By offset, and of those at one offset the longest first: so that it covers the others. */
static int compare_places(const void *left, const void *right) {
    const place *a = left, *b = right;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    if (a->end != b->end)
        return a->end > b->end ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static uint32_t gather(const cogpu_span_of_source *spans, uint32_t count, uint64_t source_bytes,
                       place *places, uint32_t *of_span) {
    uint32_t inside = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t end;
        of_span[i] = COGPU_NO_REQUEST;
        if (spans[i].bytes > 0 && checked_add(spans[i].offset, spans[i].bytes, &end) &&
            end <= source_bytes)
            places[inside++] = (place){.offset = spans[i].offset, .end = end, .number = i};
    }
    return inside;
}

/* The request that grows. */
typedef struct growth {
    uint64_t offset, end;
    uint64_t wasted; /* bytes of its gaps, not above its length */
} growth;

/* Nothing here can overflow: all ends are inside the source, and gaps are between them. */
static bool may_grow(const growth *request, const place *next, const cogpu_merge_caps *caps) {
    if (next->end <= request->end)
        return true;
    uint64_t gap = next->offset > request->end ? next->offset - request->end : 0;
    uint64_t length = next->end - request->offset, wasted = request->wasted + gap;
    return gap <= caps->gap_bytes && length <= caps->request_bytes &&
           (wasted <= caps->gap_bytes || wasted <= length / 2);
}

static void grow(growth *request, const place *next) {
    if (next->offset > request->end)
        request->wasted += next->offset - request->end;
    if (next->end > request->end)
        request->end = next->end;
}

static void merge_places(const place *places, uint32_t count, const cogpu_merge_caps *caps,
                         cogpu_requests *requests) {
    growth request = {0};
    for (uint32_t i = 0; i < count; i++) {
        if (requests->count > 0 && may_grow(&request, &places[i], caps)) {
            grow(&request, &places[i]);
        } else {
            request = (growth){.offset = places[i].offset, .end = places[i].end};
            requests->count++;
        }
        requests->list[requests->count - 1] =
            (cogpu_span_of_source){request.offset, request.end - request.offset};
        requests->of_span[places[i].number] = requests->count - 1;
    }
}

cogpu_status cogpu_merge(const cogpu_span_of_source *spans, uint32_t count, uint64_t source_bytes,
                         const cogpu_merge_caps *caps, cogpu_arena *arena, cogpu_requests *requests,
                         cogpu_error *error) {
    place *places;
    assert(count < COGPU_NO_REQUEST);
    *requests = (cogpu_requests){0};
    TRY(cogpu_arena_take(arena, count, sizeof *places, &places, error));
    TRY(cogpu_arena_take(arena, count, sizeof *requests->list, &requests->list, error));
    TRY(cogpu_arena_take(arena, count, sizeof *requests->of_span, &requests->of_span, error));
    uint32_t inside = gather(spans, count, source_bytes, places, requests->of_span);
    if (inside > 0)
        qsort(places, inside, sizeof *places, compare_places);
    merge_places(places, inside, caps, requests);
    return COGPU_OK;
}
