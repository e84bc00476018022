/* Sizes at the edge of what fits (T212), and numbers in either byte order. */
#include "base/checked.h"

#include "base/bytes.h"
#include "base/limits.h"
#include "support/test.h"

static void test_add(void) {
    uint64_t sum = 1;
    CHECK(checked_add(0, 0, &sum) && sum == 0);
    CHECK(checked_add(UINT64_MAX - 1, 1, &sum) && sum == UINT64_MAX);
    CHECK(!checked_add(UINT64_MAX, 1, &sum));
    CHECK(!checked_add(1ULL << 63, 1ULL << 63, &sum));
}

static void test_multiply(void) {
    uint64_t product = 1;
    CHECK(checked_mul(0, UINT64_MAX, &product) && product == 0);
    CHECK(checked_mul(1ULL << 32, (1ULL << 32) - 1, &product) &&
          product == UINT64_MAX - UINT32_MAX);
    CHECK(!checked_mul(1ULL << 32, 1ULL << 32, &product));
    CHECK(!checked_mul(UINT64_MAX, 2, &product));
}

static void test_divide_up(void) {
    CHECK(divide_up(0, 8) == 0 && divide_up(1, 8) == 1 && divide_up(8, 8) == 1);
    CHECK(divide_up(9, 8) == 2 && divide_up(UINT64_MAX, 1) == UINT64_MAX);
    CHECK(divide_up(UINT64_MAX, 2) == 1ULL << 63 && divide_up(UINT64_MAX, UINT64_MAX) == 1);
}

static void test_byte_orders(void) {
    const uint8_t bytes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    CHECK(load_u16(bytes + 1, false) == 0x0201 && load_u16(bytes + 1, true) == 0x0102);
    CHECK(load_u32(bytes + 1, false) == 0x04030201 && load_u32(bytes + 1, true) == 0x01020304);
    CHECK(load_u64(bytes + 1, false) == 0x0807060504030201);
    CHECK(load_u64(bytes + 1, true) == 0x0102030405060708);
}

static void test_limits(void) {
    cogpu_limits given = {.struct_size = sizeof(cogpu_limits), .tags = 7};
    cogpu_limits all = cogpu_limits_complete(NULL), some = cogpu_limits_complete(&given);
    CHECK(all.tags == 4096 && some.tags == 7 && some.bands == all.bands);
    CHECK(all.directories == 65536 && all.tag_bytes == 64 << 20 && all.blocks == INT32_MAX);
    CHECK(all.block_bytes == 1 << 30 && all.bands == 65535 &&
          all.working_memory_bytes == 4ULL << 30);
}

TESTS(checked) {
    RUN(test_add);
    RUN(test_multiply);
    RUN(test_divide_up);
    RUN(test_byte_orders);
    RUN(test_limits);
    return FINISH();
}
