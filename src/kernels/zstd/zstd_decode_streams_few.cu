/*
 * Zstandard decoder, step 5 for so few zstd blocks that all bitstreams are decoded side by side:
 * the time is that of the longest one. A thread block is a warp, which takes the sequences of 8
 * zstd blocks, or the literals of one.
 *
 *     work item    0     1     ...   G - 1  |   G    G + 1   ...  G + B - 1      G groups of 8
 *     kind         sequences of a group     |   literals of a zstd block         B zstd blocks
 */
#define ZSTD_CHAINS 8
#include "kernels/zstd/zstd_decode_checkpoints.h"
#include "kernels/zstd/zstd_decode_segments.h"

struct streams_few_shared {
    union {
        struct literals_shared literals;
        struct chains_shared chains;
    } of;
};

KERNEL(cogpu_kernel_zstd_streams_few, struct zstd_args, struct streams_few_shared, WARP, 5) {
    uint32_t count = args->rounds[args->round].blocks, groups = (count + CHAINS - 1) / CHAINS;
    for (uint32_t i = block_index(); i < groups + count; i += block_count()) {
        sync_warp();
        if (i < groups)
            checkpoint_sequences(args, &shared->of.chains, i * CHAINS, count);
        else
            decode_literals_by_segments(args, &shared->of.literals, i - groups);
    }
}
