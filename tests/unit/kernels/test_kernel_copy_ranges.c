/*
 * copy_ranges against memcpy: any number of ranges of any size, from any address. Memory between
 * the ranges must not change.
 */
#include "kernels/copy_ranges/copy_ranges_args.h"

#include "support/gpu_step_test.h"
#include "support/test.h"

static cogpu_error error;

enum { ALIGN = COGPU_RANGES_VECTOR, SLACK = 4 };

/* Ranges one after the other, with gaps. */
static void any_ranges(struct cogpu_copied_range *ranges, uint32_t count, uint32_t most,
                       const uint8_t *from, uint8_t *to) {
    uint64_t read = 0, written = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bytes = draw(4) ? draw(most + 1) : draw(2 * ALIGN);
        read += draw(2 * ALIGN);
        ranges[i] =
            (struct cogpu_copied_range){.from = from + read, .to = to + written, .bytes = bytes};
        read += bytes;
        written += (bytes + ALIGN - 1) / ALIGN * ALIGN + draw(3) * ALIGN;
    }
}

static bool copies_as_host(uint32_t count, uint32_t most) {
    const cogpu_gpu_driver *calls = gpu->calls;
    const size_t bytes = count * ((size_t)most + 8 * ALIGN) + SLACK;
    struct cogpu_copied_range *ranges = allocate_host(count * sizeof *ranges);
    uint8_t *from = allocate_host(bytes), *expected = allocate_host(bytes),
            *found = allocate_host(bytes);
    for (size_t i = 0; i < bytes; i++)
        from[i] = (uint8_t)draw(256);
    memset(expected, GPU_TEST_GUARD, bytes);
    uint8_t *device_from = upload(from, bytes), *device_to = upload(expected, bytes);
    any_ranges(ranges, count, most, device_from, device_to);
    struct cogpu_copied_range *device_ranges = upload(ranges, count * sizeof *ranges);
    gpu_test_need(cogpu_gpu_copy_ranges(gpu, device_ranges, ranges, count, stream, &error), &error);
    gpu_test_need(calls->copy_down(gpu, found, device_to, bytes, stream, &error), &error);
    gpu_test_need(calls->finish_stream(gpu, stream, &error), &error);
    for (uint32_t i = 0; i < count; i++)
        memcpy(expected + (ranges[i].to - device_to), from + (ranges[i].from - device_from),
               ranges[i].bytes);
    bool is_same = memcmp(found, expected, bytes) == 0;
    void *const device[] = {device_from, device_to, device_ranges};
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        calls->release(gpu, device[i]);
    void *const host[] = {ranges, from, expected, found};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        free(host[i]);
    return is_same;
}

static void test_any_ranges(void) {
    int different = 0;
    for (int i = 0; i < 40; i++)
        different += !copies_as_host(1 + draw(40), i % 3 ? 3000 : 9);
    CHECK(different == 0);
}

/* More bytes than one block of threads copies at once. */
static void test_large_ranges(void) {
    CHECK(copies_as_host(1, 200000));
    CHECK(copies_as_host(3, 200000));
}

static void test_no_range(void) {
    CHECK(cogpu_gpu_copy_ranges(gpu, NULL, NULL, 0, stream, &error) == COGPU_OK);
}

TESTS(kernel_copy_ranges) {
    open_gpu(test_argc, test_argv);
    RUN(test_any_ranges);
    RUN(test_large_ranges);
    RUN(test_no_range);
    close_gpu();
    return FINISH();
}
