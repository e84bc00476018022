#include "support/few_decoder.h"

#include "kernels/deflate/inflate_few_launch.h"

static const struct cogpu_inflate_few_sizes sizes = {.spans = 100,
                                                     .span_bytes = 1 << 10,
                                                     .fronts = 3,
                                                     .round_bytes = 100 << 10,
                                                     .window_bytes = 96 << 10};

static void scratch(const cogpu_encoded_block *blocks, uint32_t count, uint32_t others,
                    uint64_t *least, uint64_t *best) {
    cogpu_gpu_inflate.scratch(blocks, count, others, least, best);
    uint64_t few = cogpu_inflate_few_scratch(blocks, count, &sizes);
    *least = *least > few ? *least : few;
    *best = *best > few ? *best : few;
}

static cogpu_status decode_alone(const cogpu_gpu_batch *batch, cogpu_error *error) {
    if (!cogpu_inflate_few_can_decode(batch, &sizes))
        return cogpu_fail(error, COGPU_DEVICE_ERROR, "the scratch memory is too small");
    return cogpu_inflate_few_decode(batch, &sizes, error);
}

/* A device with little shared memory has inflate.cu alone. */
static cogpu_status decode(const cogpu_gpu_batch *batch, cogpu_error *error) {
    const bool can_decode = cogpu_inflate_few_can_decode(batch, &sizes);
    if (can_decode)
        TRY(cogpu_inflate_few_decode(batch, &sizes, error));
    return cogpu_inflate_each(batch, can_decode, error);
}

const cogpu_gpu_decoder few_decoder_alone = {.scratch = scratch, .decode = decode_alone};
const cogpu_gpu_decoder few_decoder = {.scratch = scratch, .decode = decode};
