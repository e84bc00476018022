/* Launches the copy of byte ranges in device memory. */
#include "kernels/copy_ranges/copy_ranges_args.h"

#include "base/checked.h"
#include "base/math.h"

extern const cogpu_kernel cogpu_kernel_copy_ranges;

/* Enough blocks of threads to keep all multiprocessors busy, each with at least PART_BYTES to copy.
 */
static uint32_t parts_per_range(const cogpu_gpu *gpu, uint64_t largest, uint32_t count) {
    enum { PART_BYTES = 16384, PARTS_BUSY = 16 };
    uint64_t busy = 1 + (uint64_t)PARTS_BUSY * gpu->multiprocessors / count;
    return (uint32_t)min_u64(max_u64(divide_up(largest, PART_BYTES), 1), busy);
}

cogpu_status cogpu_gpu_copy_ranges(cogpu_gpu *gpu, const struct cogpu_copied_range *device_ranges,
                                   const struct cogpu_copied_range *ranges, uint32_t count,
                                   cogpu_gpu_stream *stream, cogpu_error *error) {
    struct cogpu_ranges_args args = {.ranges = device_ranges};
    uint64_t largest = 0;
    if (count == 0)
        return COGPU_OK;
    for (uint32_t i = 0; i < count; i++)
        largest = max_u64(largest, ranges[i].bytes);
    args.parts = parts_per_range(gpu, largest, count);
    return gpu->calls->launch(gpu, &cogpu_kernel_copy_ranges, count * args.parts, &args, stream,
                              error);
}
