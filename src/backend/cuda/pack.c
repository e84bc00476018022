/* Takes the slots of a batch that was encoded, launches the kernels of cuda_pack.cu. */
#include "backend/cuda/cuda_pack.h"

#include "base/checked.h"

extern const cogpu_kernel cogpu_kernel_pack_scan, cogpu_kernel_pack_gather;

static uint32_t around_block(bool is_cog) {
    return is_cog ? COGPU_PACK_AROUND : 0;
}

uint64_t cogpu_gpu_pack_bound(const cogpu_uncoded *blocks, uint32_t count, bool is_cog) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        bytes += 2 * around_block(is_cog) + (uint64_t)blocks[i].room;
    return bytes;
}

/* So many blocks of threads that all multiprocessors are busy, but none that has next to nothing to
 * do. */
static uint32_t parts_of_block(const cogpu_gpu_encoding *encoding) {
    enum { PART_BYTES = 16384, PARTS_BUSY = 16 };
    uint32_t room = 0, multiprocessors = encoding->gpu->multiprocessors;
    for (uint32_t i = 0; i < encoding->count; i++)
        room = encoding->blocks[i].room > room ? encoding->blocks[i].room : room;
    uint64_t most = divide_up((uint64_t)room + 1, PART_BYTES);
    uint64_t busy = 1 + (uint64_t)PARTS_BUSY * multiprocessors / encoding->count;
    return (uint32_t)(most < busy ? most : busy);
}

cogpu_status cogpu_gpu_pack(const cogpu_gpu_encoding *encoding, const uint32_t *order, bool is_cog,
                            struct cogpu_packed *places, uint8_t *packed, cogpu_error *error) {
    cogpu_gpu *gpu = encoding->gpu;
    const uint32_t skew = (uint32_t)((uintptr_t)packed % COGPU_PACK_VECTOR);
    struct cogpu_pack_args args = {.blocks = encoding->device_blocks,
                                   .order = order,
                                   .count = encoding->count,
                                   .around = around_block(is_cog),
                                   .slots = encoding->slots,
                                   .sizes = encoding->sizes,
                                   .places = places,
                                   .packed = packed - skew,
                                   .skew = skew};
    TRY(gpu->calls->launch(gpu, &cogpu_kernel_pack_scan, 1, &args, encoding->stream, error));
    if (encoding->count == 0)
        return COGPU_OK;
    args.parts = parts_of_block(encoding);
    return gpu->calls->launch(gpu, &cogpu_kernel_pack_gather, args.count * args.parts, &args,
                              encoding->stream, error);
}
