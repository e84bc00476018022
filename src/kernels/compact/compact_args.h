/*
 * Compacts the slots of a batch, each with the stored bytes of one block, into contiguous bytes in
 * the order of the file. In a COG each block has a leader (its size) and a trailer (its last four
 * bytes again). README.md of this folder has the idea.
 *
 * The host then needs two copies: the small one of offsets, whose last entry is the total, and the
 * large one of the bytes.
 */
#ifndef COGPU_KERNELS_COMPACT_COMPACT_ARGS_H
#define COGPU_KERNELS_COMPACT_COMPACT_ARGS_H

#include "kernels/encoder.h"
#include "plan/block_leader.h"

enum {
    COGPU_COMPACT_THREADS = 256,
    COGPU_COMPACT_SCAN_THREADS = 1024,
    COGPU_COMPACT_VECTOR = 16 /* bytes that a thread stores at once, aligned */
};

/* Position of a block in the result. */
struct cogpu_compacted_block {
    uint64_t at;    /* offset of its stored bytes; in the entry after the last: bytes of all */
    uint64_t bytes; /* 0: sparse, not stored */
};

struct cogpu_compact_args {
    const cogpu_raw_block *blocks;
    const uint32_t *order; /* block numbers in the order of the file; `count` of them */
    uint32_t count;
    uint32_t parts;  /* blocks of threads for one block */
    uint32_t around; /* COGPU_LEADER_BYTES in a COG, else 0 */
    const uint8_t *slots;
    const uint32_t *sizes; /* at most the capacity of the slot */
    struct cogpu_compacted_block *places;
    uint8_t *packed; /* aligned to COGPU_COMPACT_VECTOR; the result begins `skew` bytes later */
    uint32_t skew;
};

#ifndef __CUDACC__
/* Upper bound of the result's bytes. */
uint64_t cogpu_gpu_compact_bound(const cogpu_raw_block *blocks, uint32_t count, bool is_cog);

/* In device memory: `order`, block numbers in the order of the file; `places`, in that order, with
 * one entry more than blocks; `packed`, at any address, of cogpu_gpu_compact_bound bytes. Blocks,
 * slots and sizes are those that an encoder has filled; of uncompressed blocks the slot is the
 * packed block. Asynchronous. */
cogpu_status cogpu_gpu_compact(const cogpu_gpu_encoding *encoding, const uint32_t *order,
                               bool is_cog, struct cogpu_compacted_block *places, uint8_t *packed,
                               cogpu_error *error);
#endif

#endif
