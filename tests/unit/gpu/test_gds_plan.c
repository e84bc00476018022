/*
 * GPUDirect Storage: which reads of whole pages serve the spans of a batch, and where each span is
 * in device memory then.
 */
#include "gpu/driver/gpu.h"

#include "support/gds_test.h"

static cogpu_status plan_all(cogpu_gds_plan *plan, uint64_t file_bytes, const cogpu_span *spans,
                             uint32_t count, uint64_t allowed) {
    *plan = (cogpu_gds_plan){.reads = plan_reads};
    return plan_batch(plan, NULL, file_bytes, spans, count, allowed);
}

static bool is_read(const cogpu_gds_request *read, uint64_t offset, uint64_t bytes,
                    uint64_t device) {
    return read->file_offset == offset && read->bytes == bytes && read->device_offset == device;
}

static void test_no_spans(void) {
    cogpu_gds_plan plan;
    CHECK(plan_all(&plan, 1000, NULL, 0, 0) == COGPU_OK);
    CHECK(plan.read_count == 0 && plan.bytes == 0);
}

static void test_one_span(void) {
    cogpu_gds_plan plan;
    cogpu_span span = {5000, 100};
    CHECK(plan_all(&plan, 1 << 20, &span, 1, PAGE) == COGPU_OK);
    CHECK(plan.read_count == 1 && plan.bytes == PAGE && is_read(&plan_reads[0], PAGE, PAGE, 0));
    CHECK(plan_locations[0].read == 0 && plan_locations[0].device_offset == 5000 - PAGE);
    /* The last page of a file is not whole. */
    CHECK(plan_all(&plan, 5100, &span, 1, PAGE) == COGPU_OK);
    CHECK(plan.bytes == PAGE && is_read(&plan_reads[0], PAGE, 5100 - PAGE, 0));
}

static void test_spans_that_need_no_read(void) {
    cogpu_gds_plan plan;
    cogpu_span spans[] = {{0, 0},     {UINT64_MAX, 0}, {100, 50},       {7, 0},
                          {99999, 2}, {UINT64_MAX, 1}, {1, UINT64_MAX}, {UINT64_MAX, UINT64_MAX}};
    CHECK(plan_all(&plan, 100000, spans, 8, PAGE) == COGPU_OK);
    CHECK(plan.read_count == 1 && plan.bytes == PAGE);
    for (uint32_t i = 0; i < 8; i++)
        CHECK(plan_locations[i].read == (i == 2 ? 0 : COGPU_GDS_NO_READ));
    /* Offsets that the operating system cannot express are in no file. */
    cogpu_span far[] = {{(uint64_t)INT64_MAX, 2}, {(uint64_t)INT64_MAX - 9, 9}};
    CHECK(plan_all(&plan, UINT64_MAX, far, 2, PAGE) == COGPU_OK);
    CHECK(plan_locations[0].read == COGPU_GDS_NO_READ && plan_locations[1].read == 0);
    CHECK(plan_reads[0].file_offset + plan_reads[0].bytes == INT64_MAX);
}

static void test_neighbours_share_a_read(void) {
    cogpu_gds_plan plan;
    cogpu_span spans[] = {{0, 1000},                    /* a read */
                          {1004, 3000},                 /* on the same page */
                          {1004, 3000},                 /* the same block once more */
                          {4 * PAGE + 10, 20},          /* a small gap */
                          {5 * PAGE + (16 << 10), 10},  /* the largest gap that is read along */
                          {11 * PAGE + (16 << 10), 10}, /* one that is not */
                          {20, 10},                     /* backwards */
                          {(8 << 20) - 5000, 5000},     /* far away */
                          {8 << 20, (4 << 20) - PAGE} /* would be more than is read at once */};
    CHECK(plan_all(&plan, 1 << 30, spans, 9, UINT64_MAX) == COGPU_OK);
    uint32_t expected[] = {0, 0, 0, 0, 0, 1, 2, 3, 4};
    for (uint32_t i = 0; i < 9; i++)
        CHECK(plan_locations[i].read == expected[i]);
    CHECK(plan.read_count == 5 && is_read(&plan_reads[0], 0, 10 * PAGE, 0));
    CHECK(is_read(&plan_reads[1], 15 * PAGE, PAGE, 10 * PAGE) &&
          plan_locations[1].device_offset == 1004);
    CHECK(is_read(&plan_reads[2], 0, PAGE, 11 * PAGE) &&
          plan_locations[6].device_offset == 11 * PAGE + 20);
    CHECK(plan_reads[3].bytes == 2 * PAGE && plan_reads[4].bytes == (4 << 20) - PAGE);
}

static void test_a_large_span_is_one_read(void) {
    cogpu_gds_plan plan;
    cogpu_span spans[] = {{PAGE, 100 << 20}, {50 << 20, 1000}, {(100 << 20) + PAGE, 10}};
    CHECK(plan_all(&plan, 1 << 30, spans, 3, UINT64_MAX) == COGPU_OK);
    CHECK(plan.read_count == 2 && is_read(&plan_reads[0], PAGE, 100 << 20, 0));
    CHECK(plan_locations[1].read == 0 && plan_locations[2].read == 1);
}

static void test_files_share_no_read(void) {
    int one = 0, other = 0;
    cogpu_gds_plan plan = {.reads = plan_reads};
    const cogpu_gds_file *files[] = {(void *)&one, (void *)&other};
    for (uint32_t i = 0; i < 4; i++)
        CHECK(cogpu_gds_plan_add(&plan, files[i / 2], 1 << 20, (cogpu_span){i * 100, 100},
                                 UINT64_MAX, &plan_locations[i]));
    CHECK(plan.read_count == 2 && plan_reads[0].file == files[0] && plan_reads[1].file == files[1]);
    CHECK(plan_locations[1].read == 0 && plan_locations[2].read == 1 &&
          plan_locations[2].device_offset == PAGE + 200);
}

static void test_the_guard_names_both_sizes(void) {
    cogpu_gds_plan plan;
    cogpu_span spans[] = {{0, 100}, {1 << 20, 5000}};
    CHECK(plan_all(&plan, 2 << 20, spans, 2, 3 * PAGE) == COGPU_OK);
    CHECK(plan_all(&plan, 2 << 20, spans, 2, 3 * PAGE - 1) == COGPU_LIMIT_EXCEEDED);
    cogpu_span huge[] = {{0, INT64_MAX}, {PAGE, 1}, {0, INT64_MAX}, {1, 1}, {0, INT64_MAX}};
    CHECK(plan_all(&plan, UINT64_MAX, huge, 2, UINT64_MAX) == COGPU_OK);
    CHECK(plan_all(&plan, UINT64_MAX, huge, 2, 1 << 30) == COGPU_LIMIT_EXCEEDED);
}

/* More bytes than can be counted: three times half of all there are, in turns of two files, so
 * that none shares a read. */
static void test_sums_that_overflow(void) {
    int one = 0, other = 0;
    cogpu_span all = {0, INT64_MAX - 2 * PAGE};
    cogpu_gds_plan plan = {.reads = plan_reads};
    CHECK(cogpu_gds_plan_add(&plan, (void *)&one, INT64_MAX, all, UINT64_MAX, &plan_locations[0]));
    CHECK(
        cogpu_gds_plan_add(&plan, (void *)&other, INT64_MAX, all, UINT64_MAX, &plan_locations[1]));
    uint64_t before = plan.bytes;
    CHECK(!cogpu_gds_plan_add(&plan, (void *)&one, INT64_MAX, all, UINT64_MAX, &plan_locations[2]));
    CHECK(plan.read_count == 2 && plan.bytes == before);
}

static void test_what_does_not_fit_changes_nothing(void) {
    cogpu_gds_plan plan = {.reads = plan_reads};
    cogpu_gds_location place;
    CHECK(cogpu_gds_plan_add(&plan, NULL, 1 << 20, (cogpu_span){0, 100}, 2 * PAGE, &place));
    CHECK(
        !cogpu_gds_plan_add(&plan, NULL, 1 << 20, (cogpu_span){PAGE, PAGE + 1}, 2 * PAGE, &place));
    CHECK(!cogpu_gds_plan_add(&plan, NULL, 1 << 20, (cogpu_span){500000, PAGE}, 2 * PAGE, &place));
    CHECK(plan.read_count == 1 && plan.bytes == PAGE && is_read(&plan_reads[0], 0, PAGE, 0));
    CHECK(cogpu_gds_plan_add(&plan, NULL, 1 << 20, (cogpu_span){PAGE, PAGE}, 2 * PAGE, &place));
    CHECK(plan.read_count == 1 && plan.bytes == 2 * PAGE && place.device_offset == PAGE);
}

/* Each span's bytes lie in its read, and reads lie side by side in memory. */
static bool is_valid(const cogpu_gds_plan *plan, const cogpu_span *spans, uint32_t count,
                     uint64_t file_bytes) {
    uint64_t at = 0;
    for (uint32_t i = 0; i < plan->read_count; i++) {
        const cogpu_gds_request *read = &plan->reads[i];
        uint64_t end = read->file_offset + read->bytes;
        if (read->device_offset != at || read->file_offset % PAGE != 0 || end > file_bytes ||
            (end % PAGE != 0 && end != file_bytes))
            return false;
        at += (read->bytes + PAGE - 1) / PAGE * PAGE;
    }
    for (uint32_t i = 0; i < count; i++) {
        bool is_inside = spans[i].bytes > 0 && spans[i].offset + spans[i].bytes <= file_bytes;
        if (!is_inside && plan_locations[i].read == COGPU_GDS_NO_READ)
            continue;
        if (!is_inside || plan_locations[i].read >= plan->read_count)
            return false;
        const cogpu_gds_request *read = &plan->reads[plan_locations[i].read];
        if (spans[i].offset < read->file_offset ||
            spans[i].offset + spans[i].bytes > read->file_offset + read->bytes ||
            plan_locations[i].device_offset - read->device_offset !=
                spans[i].offset - read->file_offset)
            return false;
    }
    return at == plan->bytes;
}

static void test_plans_are_valid(void) {
    static cogpu_span spans[300];
    for (uint32_t round = 0; round < 2000; round++) {
        uint32_t count = (uint32_t)random_below(300);
        uint64_t file_bytes = 1 + random_below(round % 2 ? 1 << 30 : 1 << 15);
        cogpu_gds_plan plan;
        make_spans(spans, count, file_bytes, round % 3 ? 3000 : 3000000);
        CHECK(plan_all(&plan, file_bytes, spans, count, UINT64_MAX) == COGPU_OK);
        CHECK(is_valid(&plan, spans, count, file_bytes));
    }
}

TESTS(gds_plan) {
    RUN(test_no_spans);
    RUN(test_one_span);
    RUN(test_spans_that_need_no_read);
    RUN(test_neighbours_share_a_read);
    RUN(test_a_large_span_is_one_read);
    RUN(test_files_share_no_read);
    RUN(test_the_guard_names_both_sizes);
    RUN(test_sums_that_overflow);
    RUN(test_what_does_not_fit_changes_nothing);
    RUN(test_plans_are_valid);
    return FINISH();
}
