/* Spans to requests: by chance in a small source, where every byte is looked at, and by hand where
 * numbers are large. */
#include "support/test.h"

#include "base/checked.h"
#include "io/range/coalesce.h"
#include "support/draw.h"

enum { SOURCE = 400, SPANS_MAX = 24, ROUNDS = 60000 };

typedef cogpu_byte_range span;

static cogpu_arena arena;
static cogpu_requests requests;

static cogpu_status merge(const span *spans, uint32_t count, uint64_t source_bytes,
                          uint64_t gap_bytes, uint64_t request_bytes) {
    cogpu_error error;
    cogpu_coalesce_limits caps = {gap_bytes, request_bytes};
    cogpu_arena_close(&arena);
    cogpu_arena_open(&arena, 64 << 20);
    return cogpu_coalesce(spans, count, source_bytes, &caps, &arena, &requests, &error);
}

static bool is_request(uint32_t i, uint64_t offset, uint64_t bytes) {
    return requests.list[i].offset == offset && requests.list[i].bytes == bytes;
}

/* ---- every byte looked at ------------------------------------------------------------------- */

/* What a request would be that has the marked bytes. */
typedef struct extent {
    uint32_t first, end, longest_gap, wasted;
} extent;

static void mark(uint8_t *bytes, span marked) {
    for (uint64_t at = marked.offset; at < marked.offset + marked.bytes; at++)
        bytes[at] = 1;
}

static extent extent_of(const uint8_t *bytes) {
    extent found = {.first = SOURCE};
    for (uint32_t at = 0; at < SOURCE; at++)
        if (bytes[at]) {
            found.first = at < found.first ? at : found.first;
            found.end = at + 1;
        }
    for (uint32_t at = found.first, gap = 0; at < found.end; at++) {
        gap = bytes[at] ? 0 : gap + 1;
        found.wasted += !bytes[at];
        found.longest_gap = gap > found.longest_gap ? gap : found.longest_gap;
    }
    return found;
}

/* Whether the caps allow the marked bytes as one request, which has `longest` as a span. */
static bool is_allowed(const uint8_t *bytes, uint64_t longest, const cogpu_coalesce_limits *caps) {
    extent found = extent_of(bytes);
    uint32_t length = found.end - found.first;
    return found.longest_gap <= caps->gap_bytes &&
           (length <= caps->request_bytes || length == longest) &&
           (found.wasted <= caps->gap_bytes || 2 * found.wasted <= length);
}

static bool is_inside(span s) {
    return s.bytes > 0 && s.offset <= SOURCE && s.bytes <= SOURCE - s.offset;
}

static bool covers(span outer, span inner) {
    return inner.offset >= outer.offset && inner.offset + inner.bytes <= outer.offset + outer.bytes;
}

static bool overlap(span a, span b) {
    return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

/* Marks the spans of a request; the longest of them, and the one that begins first, of these the
 * longest. */
static uint32_t mark_request(const span *spans, uint32_t count, uint32_t request, uint8_t *bytes,
                             uint64_t *longest, span *first) {
    uint32_t marked = 0;
    *longest = 0;
    *first = (span){SOURCE, 0};
    for (uint32_t i = 0; i < count; i++) {
        if (requests.of_span[i] != request)
            continue;
        mark(bytes, spans[i]);
        marked++;
        *longest = spans[i].bytes > *longest ? spans[i].bytes : *longest;
        if (spans[i].offset < first->offset ||
            (spans[i].offset == first->offset && spans[i].bytes > first->bytes))
            *first = spans[i];
    }
    return marked;
}

static int faults_of_span(span s, uint32_t request) {
    if (!is_inside(s))
        return request != COGPU_NO_REQUEST;
    if (request >= requests.count || !covers(requests.list[request], s))
        return 1;
    uint32_t last = requests.count - 1;
    while (requests.list[last].offset > s.offset)
        last--;
    return last != request;
}

/* A request is as long as its spans, within the caps, and the next one could not be part of it. */
static int faults_of_request(const span *spans, uint32_t count, uint32_t r,
                             const cogpu_coalesce_limits *caps) {
    uint8_t bytes[SOURCE] = {0}, next_bytes[SOURCE] = {0};
    uint64_t longest, next_longest;
    span first, next_first;
    if (mark_request(spans, count, r, bytes, &longest, &first) == 0)
        return 1;
    extent found = extent_of(bytes);
    int wrong = !is_request(r, found.first, found.end - found.first);
    wrong += !is_allowed(bytes, longest, caps);
    if (r + 1 == requests.count)
        return wrong;
    mark_request(spans, count, r + 1, next_bytes, &next_longest, &next_first);
    wrong += requests.list[r + 1].offset <= requests.list[r].offset;
    if (overlap(requests.list[r], requests.list[r + 1])) {
        bool spans_do = false;
        for (uint32_t i = 0; i < count; i++)
            spans_do |= requests.of_span[i] == r && overlap(spans[i], next_first);
        wrong += !spans_do;
    }
    mark(bytes, next_first);
    return wrong + is_allowed(bytes, longest, caps);
}

static int faults(const span *spans, uint32_t count, const cogpu_coalesce_limits *caps) {
    int wrong = 0;
    for (uint32_t i = 0; i < count; i++)
        wrong += faults_of_span(spans[i], requests.of_span[i]);
    for (uint32_t r = 0; r < requests.count; r++)
        wrong += faults_of_request(spans, count, r, caps);
    return wrong;
}

/* Some beyond the end, some empty, some equal, some in a row, some long. */
static uint32_t draw_spans(span *spans) {
    uint32_t count = draw(SPANS_MAX + 1), longest = 1 + draw(draw(4) ? 30 : SOURCE);
    for (uint32_t i = 0; i < count; i++) {
        spans[i] = (span){draw(SOURCE + 3), draw(longest + 1)};
        if (i > 0 && draw(4) == 0)
            spans[i].offset = spans[i - 1].offset + spans[i - 1].bytes + (draw(3) == 0);
        if (i > 0 && draw(8) == 0)
            spans[i] = spans[draw(i)];
    }
    return count;
}

static void by_chance(void) {
    span spans[SPANS_MAX];
    uint32_t merged = 0, overlapping = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t count = draw_spans(spans);
        cogpu_coalesce_limits caps = {draw(3) ? draw(40) : 0, 1 + draw(draw(2) ? 60 : 2 * SOURCE)};
        CHECK(merge(spans, count, SOURCE, caps.gap_bytes, caps.request_bytes) == COGPU_OK);
        CHECK(faults(spans, count, &caps) == 0);
        merged += requests.count < count;
        for (uint32_t r = 1; r < requests.count; r++)
            overlapping += overlap(requests.list[r - 1], requests.list[r]);
    }
    /* That the rounds had something to see. */
    CHECK(merged > ROUNDS / 2 && overlapping > ROUNDS / 100);
}

/* ---- by hand ----------------------------------------------------------------------------------
 */

static void neighbours_share_a_request(void) {
    const span row[] = {{300, 100}, {100, 100}, {200, 100}, {100, 100}, {150, 10}};
    CHECK(merge(row, 5, 400, 0, 1000) == COGPU_OK);
    CHECK(requests.count == 1 && is_request(0, 100, 300));
    const span apart[] = {{100, 100}, {201, 100}};
    CHECK(merge(apart, 2, 400, 0, 1000) == COGPU_OK);
    CHECK(requests.count == 2 && is_request(0, 100, 100) && is_request(1, 201, 100));
    CHECK(requests.of_span[0] == 0 && requests.of_span[1] == 1);
    CHECK(merge(apart, 2, 400, 1, 1000) == COGPU_OK);
    CHECK(requests.count == 1 && is_request(0, 100, 201));
}

/* Two arrays of a directory, a few bytes each: the gap is far more than they are, but small. */
static void small_gaps_cost_less_than_a_request(void) {
    const span arrays[] = {{1000, 8}, {1000 + 8 + COGPU_GAP_BYTES, 4}};
    CHECK(merge(arrays, 2, 1 << 20, COGPU_GAP_BYTES, COGPU_REQUEST_BYTES) == COGPU_OK);
    CHECK(requests.count == 1 && is_request(0, 1000, 12 + COGPU_GAP_BYTES));
    CHECK(merge(arrays, 2, 1 << 20, COGPU_GAP_BYTES - 1, COGPU_REQUEST_BYTES) == COGPU_OK);
    CHECK(requests.count == 2);
}

/* Gaps that are small each may not be most of a request. */
static void waste_is_at_most_half(void) {
    const span half[] = {{0, 100}, {200, 50}, {350, 50}};
    CHECK(merge(half, 3, 1000, 100, 1000) == COGPU_OK);
    CHECK(requests.count == 1 && is_request(0, 0, 400));
    const span more[] = {{0, 100}, {200, 50}, {350, 49}, {399, 20}};
    CHECK(merge(more, 4, 1000, 100, 1000) == COGPU_OK);
    CHECK(requests.count == 2 && is_request(0, 0, 250) && is_request(1, 350, 69));
}

static void requests_are_not_too_long(void) {
    const span row[] = {{0, 60}, {60, 40}, {100, 1}};
    CHECK(merge(row, 3, 1000, 10, 100) == COGPU_OK);
    CHECK(requests.count == 2 && is_request(0, 0, 100) && is_request(1, 100, 1));
    const span lone[] = {{0, 500}, {500, 1}, {0, 20}, {480, 20}};
    CHECK(merge(lone, 4, 1000, 10, 100) == COGPU_OK);
    CHECK(requests.count == 2 && is_request(0, 0, 500) && is_request(1, 500, 1));
    CHECK(requests.of_span[2] == 0 && requests.of_span[3] == 0);
    /* Of a file whose blocks overlap: bytes twice rather than a request without end. */
    const span chain[] = {{0, 80}, {40, 80}, {80, 80}, {120, 80}};
    CHECK(merge(chain, 4, 1000, 10, 120) == COGPU_OK);
    CHECK(requests.count == 2 && is_request(0, 0, 120) && is_request(1, 80, 120));
}

static void ranges_outside_are_left_out(void) {
    const span odd[] = {{0, 0},          {90, 10}, {90, 11}, {UINT64_MAX, 2}, {UINT64_MAX - 5, 50},
                        {5, UINT64_MAX}, {100, 0}, {10, 5},  {101, 0}};
    CHECK(merge(odd, 9, 100, 0, 1000) == COGPU_OK);
    CHECK(requests.count == 2 && is_request(0, 10, 5) && is_request(1, 90, 10));
    for (uint32_t i = 0; i < 9; i++)
        CHECK(requests.of_span[i] == (i == 7 ? 0 : i == 1 ? 1 : COGPU_NO_REQUEST));
    CHECK(merge(odd, 1, 100, 0, 1000) == COGPU_OK && requests.count == 0);
    CHECK(merge(odd, 0, 100, 0, 1000) == COGPU_OK && requests.count == 0);
}

static void the_largest_offsets(void) {
    const span last[] = {{UINT64_MAX - 10, 10}, {0, 10}, {UINT64_MAX - 20, 10}, {20, 1}};
    CHECK(merge(last, 4, UINT64_MAX, 100, 1000) == COGPU_OK);
    CHECK(requests.count == 2 && is_request(0, 0, 21) && is_request(1, UINT64_MAX - 20, 20));
    CHECK(merge(last, 4, UINT64_MAX, UINT64_MAX, UINT64_MAX) == COGPU_OK);
    CHECK(requests.count == 1 && is_request(0, 0, UINT64_MAX));
}

/* T224: what the requests take, and the longest. */
static void far_apart_tiny_spans(void) {
    static span spans[100000];
    const uint32_t count = sizeof spans / sizeof *spans;
    static const uint64_t steps[] = {(1 << 30) + 7, 100000, 60000, 4000};
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
        uint64_t most = 0, total = 0, wanted = 0;
        for (uint32_t i = 0; i < count; i++) {
            spans[i] = (span){(uint64_t)(i * 7919u % count) * steps[k], 100};
            wanted += spans[i].bytes;
        }
        CHECK(merge(spans, count, UINT64_MAX, COGPU_GAP_BYTES, COGPU_REQUEST_BYTES) == COGPU_OK);
        for (uint32_t r = 0; r < requests.count; r++) {
            most = requests.list[r].bytes > most ? requests.list[r].bytes : most;
            total += requests.list[r].bytes;
        }
        CHECK(most <= 2 * COGPU_GAP_BYTES);
        CHECK(total <= wanted + (uint64_t)requests.count * COGPU_GAP_BYTES);
        CHECK(k < 2 ? requests.count == count && total == wanted : requests.count <= count / 2);
    }
}

static void memory_is_bounded(void) {
    const span row[100] = {{0, 1}};
    cogpu_error error;
    cogpu_coalesce_limits caps = {0, 100};
    for (uint64_t limit = 0; limit < 5000; limit += 500) {
        cogpu_arena small;
        cogpu_arena_open(&small, limit);
        cogpu_status status = cogpu_coalesce(row, 100, 10, &caps, &small, &requests, &error);
        CHECK(status == COGPU_LIMIT_EXCEEDED || (status == COGPU_OK && limit >= 4400));
        cogpu_arena_close(&small);
    }
}

/* For callers with limits of their own, as of a local disk. */
static void one_request_at_a_time(void) {
    const cogpu_coalesce_limits limits = {.gap_bytes = 100, .request_bytes = 1000};
    cogpu_joined_range request = {.offset = 500, .end = 600};
    CHECK(cogpu_coalesce_allows(&request, 700, 800, &limits));
    CHECK(!cogpu_coalesce_allows(&request, 701, 800, &limits));  /* the gap */
    CHECK(!cogpu_coalesce_allows(&request, 600, 1501, &limits)); /* the length */
    CHECK(cogpu_coalesce_allows(&request, 550, 580, &limits));   /* inside */
    cogpu_coalesce_join(&request, 700, 710);
    CHECK(request.offset == 500 && request.end == 710 && request.gap_bytes == 100);
    CHECK(!cogpu_coalesce_allows(&request, 810, 820, &limits)); /* more gaps than bytes */
    request.gap_bytes = 0;
    CHECK(cogpu_coalesce_allows(&request, 810, 820, &limits));
}

TESTS(coalesce) {
    draw_from(test_argc, test_argv);
    RUN(by_chance);
    RUN(neighbours_share_a_request);
    RUN(small_gaps_cost_less_than_a_request);
    RUN(waste_is_at_most_half);
    RUN(requests_are_not_too_long);
    RUN(ranges_outside_are_left_out);
    RUN(the_largest_offsets);
    RUN(far_apart_tiny_spans);
    RUN(memory_is_bounded);
    RUN(one_request_at_a_time);
    cogpu_arena_close(&arena);
    return FINISH();
}
