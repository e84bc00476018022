/*
 * pack on the device against the host's way to put blocks into a file: batches of any number of
 * blocks of any size, with and without what a COG has around them, some left out. Memory before
 * the first byte and after the last must stay as it is.
 */
#include "api/writer.h"
#include "backend/cuda/cuda_pack.h"

#include "gpu_step_test.h"
#include "test.h"

/* Blocks with slots for them, and how much of each is used. The last slot ends with its room. */
struct slots {
    cogpu_uncoded *blocks;
    uint32_t *sizes, *order;
    uint8_t *bytes;
    uint64_t end;
};

static struct slots any_slots(uint32_t count, uint32_t most) {
    struct slots slots = {.blocks = room(count * sizeof *slots.blocks),
                          .sizes = room(count * sizeof *slots.sizes),
                          .order = room(count * sizeof *slots.order)};
    const uint32_t few = 1 + draw(most);
    uint64_t next = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t bytes = 1 + draw(draw(10) ? few : most);
        slots.sizes[i] = draw(5) ? bytes : COGPU_GPU_SPARSE;
        slots.blocks[i] = (cogpu_uncoded){.out = next, .room = bytes + draw(3) * draw(1000)};
        slots.end = next + slots.blocks[i].room;
        next += gpu_test_align(slots.blocks[i].room) + draw(2) * COGPU_GPU_ALIGN;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t other = draw(i + 1);
        slots.order[i] = other < i ? slots.order[other] : i;
        slots.order[other] = i;
    }
    slots.bytes = room(slots.end);
    for (uint64_t i = 0; i < slots.end; i++)
        slots.bytes[i] = (uint8_t)draw(256);
    return slots;
}

/* As api/write_blocks.c does it. */
static uint64_t pack_on_host(const struct slots *slots, uint32_t count, bool is_cog, uint8_t *to,
                             struct cogpu_packed *places) {
    uint64_t end = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t bytes = slots->sizes[slots->order[i]];
        uint64_t at = end + (is_cog && bytes ? COGPU_LEADER : 0);
        places[i] = (struct cogpu_packed){at, bytes};
        memcpy(to + at, slots->bytes + slots->blocks[slots->order[i]].out, bytes);
        if (is_cog && bytes)
            cogpu_frame_block(to + at, bytes);
        end = at + bytes + (is_cog && bytes ? COGPU_TRAILER : 0);
    }
    places[count] = (struct cogpu_packed){end, 0};
    return end;
}

static bool packs_as_host(uint32_t count, uint32_t most) {
    const cogpu_gpu_calls *calls = gpu->calls;
    const bool is_cog = draw(2);
    struct slots slots = any_slots(count, most);
    const uint32_t skew = draw(2) ? draw(100) : 0; /* where the result begins */
    const uint64_t bound = skew + cogpu_gpu_pack_bound(slots.blocks, count, is_cog);
    const size_t places_bytes = (count + 1) * sizeof(struct cogpu_packed);
    uint8_t *packed = room(bound), *expected = room(bound);
    struct cogpu_packed *places = room(places_bytes), *expected_places = room(places_bytes);
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
        cogpu_gpu_pack(&encoding, order, is_cog, device_places, device_packed + skew, &error),
        &error);
    gpu_test_need(calls->copy_down(gpu, packed, device_packed, bound, stream, &error), &error);
    gpu_test_need(calls->copy_down(gpu, places, device_places, places_bytes, stream, &error),
                  &error);
    gpu_test_need(calls->finish_stream(gpu, stream, &error), &error);

    uint64_t end = pack_on_host(&slots, count, is_cog, expected + skew, expected_places);
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
        different += !packs_as_host(1 + draw(40), i % 3 ? 3000 : 9);
    CHECK(different == 0);
}

/* More than the threads that sum take at once. */
static void test_many_blocks(void) {
    CHECK(packs_as_host(1023 + draw(3), 40));
    CHECK(packs_as_host(2500, 20));
}

/* More than one block of threads has, and more than its part. */
static void test_large_blocks(void) {
    CHECK(packs_as_host(1, 200000));
    CHECK(packs_as_host(3, 200000));
}

static void test_no_block(void) {
    CHECK(packs_as_host(0, 1));
}

int main(int argc, char **argv) {
    open_gpu(argc, argv);
    RUN(test_any_batch);
    RUN(test_many_blocks);
    RUN(test_large_blocks);
    RUN(test_no_block);
    close_gpu();
    return FINISH();
}
