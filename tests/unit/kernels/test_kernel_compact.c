/*
 * compact against what the host writes to a file: batches of any number of blocks of any size, with
 * and without leaders and trailers of a COG, some blocks sparse. Memory before the first byte and
 * after the last must not change.
 */
#include "kernels/compact/compact_args.h"
#include "write/writer.h"

#include "support/gpu_step_test.h"
#include "support/test.h"

static cogpu_error error;

/* Blocks with their slots, and how much of each is used. The last slot ends the memory. */
struct slots {
    cogpu_raw_block *blocks;
    uint32_t *sizes, *order;
    uint8_t *bytes;
    uint64_t end;
};

static struct slots any_slots(uint32_t count, uint32_t most) {
    struct slots slots = {.blocks = allocate_host(count * sizeof *slots.blocks),
                          .sizes = allocate_host(count * sizeof *slots.sizes),
                          .order = allocate_host(count * sizeof *slots.order)};
    const uint32_t few = 1 + draw(most);
    uint64_t next = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t bytes = 1 + draw(draw(10) ? few : most);
        slots.sizes[i] = draw(5) ? bytes : COGPU_GPU_SPARSE;
        slots.blocks[i] = (cogpu_raw_block){.out = next, .capacity = bytes + draw(3) * draw(1000)};
        slots.end = next + slots.blocks[i].capacity;
        next += gpu_test_align(slots.blocks[i].capacity) + draw(2) * COGPU_GPU_ALIGN;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t other = draw(i + 1);
        slots.order[i] = other < i ? slots.order[other] : i;
        slots.order[other] = i;
    }
    slots.bytes = allocate_host(slots.end);
    for (uint64_t i = 0; i < slots.end; i++)
        slots.bytes[i] = (uint8_t)draw(256);
    return slots;
}

/* As write/blocks.c does it. */
static uint64_t compact_on_host(const struct slots *slots, uint32_t count, bool is_cog, uint8_t *to,
                                struct cogpu_compacted_block *places) {
    uint64_t end = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t bytes = slots->sizes[slots->order[i]];
        uint64_t at = end + (is_cog && bytes ? COGPU_LEADER_BYTES : 0);
        places[i] = (struct cogpu_compacted_block){at, bytes};
        memcpy(to + at, slots->bytes + slots->blocks[slots->order[i]].out, bytes);
        if (is_cog && bytes)
            cogpu_add_leader_trailer(to + at, bytes);
        end = at + bytes + (is_cog && bytes ? COGPU_TRAILER_BYTES : 0);
    }
    places[count] = (struct cogpu_compacted_block){end, 0};
    return end;
}

static bool compacts_as_host(uint32_t count, uint32_t most) {
    const cogpu_gpu_driver *calls = gpu->calls;
    const bool is_cog = draw(2);
    struct slots slots = any_slots(count, most);
    const uint32_t skew = draw(2) ? draw(100) : 0; /* offset of the result */
    const uint64_t bound = skew + cogpu_gpu_compact_bound(slots.blocks, count, is_cog);
    const size_t places_bytes = (count + 1) * sizeof(struct cogpu_compacted_block);
    uint8_t *packed = allocate_host(bound), *expected = allocate_host(bound);
    struct cogpu_compacted_block *places = allocate_host(places_bytes),
                                 *expected_places = allocate_host(places_bytes);
    memset(packed, GPU_TEST_GUARD, bound);
    memset(expected, GPU_TEST_GUARD, bound);
    cogpu_gpu_encoding encoding = {.gpu = gpu,
                                   .stream = stream,
                                   .blocks = slots.blocks,
                                   .count = count,
                                   .device_blocks =
                                       upload(slots.blocks, count * sizeof *slots.blocks),
                                   .slots = upload(slots.bytes, slots.end),
                                   .sizes = upload(slots.sizes, count * sizeof *slots.sizes)};
    uint8_t *device_packed = upload(packed, bound);
    void *device_places = upload(places, places_bytes);
    uint32_t *order = upload(slots.order, count * sizeof *slots.order);
    gpu_test_need(
        cogpu_gpu_compact(&encoding, order, is_cog, device_places, device_packed + skew, &error),
        &error);
    gpu_test_need(calls->copy_down(gpu, packed, device_packed, bound, stream, &error), &error);
    gpu_test_need(calls->copy_down(gpu, places, device_places, places_bytes, stream, &error),
                  &error);
    gpu_test_need(calls->finish_stream(gpu, stream, &error), &error);

    uint64_t end = compact_on_host(&slots, count, is_cog, expected + skew, expected_places);
    bool same = skew + end <= bound && memcmp(packed, expected, bound) == 0 &&
                memcmp(places, expected_places, places_bytes) == 0;
    void *const device[] = {(void *)(uintptr_t)encoding.device_blocks,
                            encoding.slots,
                            encoding.sizes,
                            order,
                            device_packed,
                            device_places};
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        calls->release(gpu, device[i]);
    void *const host[] = {slots.blocks, slots.sizes, slots.order,     slots.bytes,
                          packed,       places,      expected_places, expected};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        free(host[i]);
    return same;
}

static void test_any_batch(void) {
    int different = 0;
    for (int i = 0; i < 60; i++)
        different += !compacts_as_host(1 + draw(40), i % 3 ? 3000 : 9);
    CHECK(different == 0);
}

/* More blocks than the scan has threads. */
static void test_many_blocks(void) {
    CHECK(compacts_as_host(1023 + draw(3), 40));
    CHECK(compacts_as_host(2500, 20));
}

/* More bytes than one block of threads copies at once. */
static void test_large_blocks(void) {
    CHECK(compacts_as_host(1, 200000));
    CHECK(compacts_as_host(3, 200000));
}

static void test_no_block(void) {
    CHECK(compacts_as_host(0, 1));
}

TESTS(kernel_compact) {
    open_gpu(test_argc, test_argv);
    RUN(test_any_batch);
    RUN(test_many_blocks);
    RUN(test_large_blocks);
    RUN(test_no_block);
    close_gpu();
    return FINISH();
}
