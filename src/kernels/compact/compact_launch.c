/* Launches the compact kernels for a batch that was encoded. */
#include "kernels/compact/compact_args.h"

#include "base/checked.h"
#include "base/math.h"

extern const cogpu_kernel cogpu_kernel_compact_scan, cogpu_kernel_compact_gather;

static uint32_t leader_bytes(bool is_cog) {
    return is_cog ? COGPU_LEADER_BYTES : 0;
}

uint64_t cogpu_gpu_compact_bound(const cogpu_raw_block *blocks, uint32_t count, bool is_cog) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        bytes += 2 * leader_bytes(is_cog) + (uint64_t)blocks[i].capacity;
    return bytes;
}

/* Enough blocks of threads to keep all multiprocessors busy, each with at least PART_BYTES to copy.
 */
static uint32_t parts_per_block(const cogpu_gpu_encoding *encoding) {
    enum { PART_BYTES = 16384, PARTS_BUSY = 16 };
    uint32_t capacity = 0, multiprocessors = encoding->gpu->multiprocessors;
    for (uint32_t i = 0; i < encoding->count; i++)
        capacity = max_u32(capacity, encoding->blocks[i].capacity);
    uint64_t most = divide_up((uint64_t)capacity + 1, PART_BYTES);
    uint64_t busy = 1 + (uint64_t)PARTS_BUSY * multiprocessors / encoding->count;
    return (uint32_t)min_u64(most, busy);
}

cogpu_status cogpu_gpu_compact(const cogpu_gpu_encoding *encoding, const uint32_t *order,
                               bool is_cog, struct cogpu_compacted_block *places, uint8_t *packed,
                               cogpu_error *error) {
    cogpu_gpu *gpu = encoding->gpu;
    const uint32_t skew = (uint32_t)((uintptr_t)packed % COGPU_COMPACT_VECTOR);
    struct cogpu_compact_args args = {.blocks = encoding->device_blocks,
                                      .order = order,
                                      .count = encoding->count,
                                      .around = leader_bytes(is_cog),
                                      .slots = encoding->slots,
                                      .sizes = encoding->sizes,
                                      .places = places,
                                      .packed = packed - skew,
                                      .skew = skew};
    TRY(gpu->calls->launch(gpu, &cogpu_kernel_compact_scan, 1, &args, encoding->stream, error));
    if (encoding->count == 0)
        return COGPU_OK;
    args.parts = parts_per_block(encoding);
    return gpu->calls->launch(gpu, &cogpu_kernel_compact_gather, args.count * args.parts, &args,
                              encoding->stream, error);
}
