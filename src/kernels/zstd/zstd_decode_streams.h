/*
 * Zstandard decoder, step 5: the bitstreams of literals and sequences (RFC 8878, 4.1 and 4.2.2).
 *
 * A thread block of two warps takes 16 zstd blocks at a time, either for their literals (both
 * warps, 8 zstd blocks each, zstd_decode_literals.h) or for the checkpoints of their sequences
 * (warp 0 alone, zstd_decode_checkpoints.h). Each group of 16 zstd blocks is taken twice, once for
 * each. On devices that lack the shared memory for this, thread blocks of one warp take 8 zstd
 * blocks at a time (zstd_decode_streams_small.cu). The kind of work that takes longer in this round
 * is done first, so that the shorter one fills the end.
 *
 *     work item    0      1     ...   G - 1  |   G    G + 1   ...  2 G - 1         G groups of 16
 *     kind         first kind of all groups  |   second kind of all groups
 *
 * Thread blocks take items block_index, block_index + block_count, ... Literals and sequences share
 * nothing but the status of the TIFF block; the sync_block between two items protects shared
 * memory.
 */
#ifndef COGPU_KERNELS_ZSTD_ZSTD_DECODE_STREAMS_H
#define COGPU_KERNELS_ZSTD_ZSTD_DECODE_STREAMS_H

#include "kernels/zstd/zstd_decode_checkpoints.h"
#include "kernels/zstd/zstd_decode_literals.h"

enum { STREAM_WARPS = CHAINS / LITERAL_BLOCKS_PER_WARP };

struct streams_shared {
    union {
        struct literals_shared literals[STREAM_WARPS];
        struct chains_shared chains;
    } of;
};

/* By all threads. */
DEVICE_FN void decode_streams(const struct zstd_args *args, struct streams_shared *shared) {
    const struct zstd_round *round = &args->rounds[args->round];
    uint32_t count = round->blocks, groups = (count + CHAINS - 1) / CHAINS, warp = warp_index();
    for (uint32_t i = block_index(); i < 2 * groups; i += block_count()) {
        uint32_t first = i % groups * CHAINS;
        sync_block();
        if ((i < groups) != (round->sequences_first != 0))
            decode_literals(args, &shared->of.literals[warp],
                            first + warp * LITERAL_BLOCKS_PER_WARP, count);
        else if (warp == 0)
            checkpoint_sequences(args, &shared->of.chains, first, count);
    }
}

#endif
