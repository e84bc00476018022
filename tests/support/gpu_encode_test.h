/*
 * For tests of GPU encoders: encodes a batch of blocks on a device (see gpu_test.h). Decoded bytes
 * are surrounded by noise. Each slot has the size of the encoder's bound, or of the block's
 * `capacity`, and guard bytes around it.
 */
#ifndef COGPU_TESTS_GPU_ENCODE_TEST_H
#define COGPU_TESTS_GPU_ENCODE_TEST_H

#include "kernels/encoder.h"
#include "support/gpu_contract.h"

/* A block to encode; `out` and `size` are filled in. */
typedef struct gpu_block {
    const uint8_t *in;
    uint32_t in_bytes, row_bytes, step;
    bool is_sparse;
    uint32_t capacity; /* bytes of its slot; 0: the encoder's bound */
    uint32_t size;
    uint8_t *out; /* the caller frees it */
} gpu_block;

/* Encodes all blocks in one batch, with the encoder's state `kept`. `scratch_share` 0: the least
 * scratch; 1: the best. Prints a line and returns false if the device failed, or wrote where it
 * must not. */
bool gpu_test_encode_kept(cogpu_gpu *gpu, const cogpu_gpu_encoder *encoder, void *kept,
                          gpu_block *of, uint32_t count, int level, int scratch_share);

bool gpu_test_encode(cogpu_gpu *gpu, const cogpu_gpu_encoder *encoder, gpu_block *of,
                     uint32_t count, int level, int scratch_share);

/* Whether the CPU codec and the GPU decoder restore all blocks. */
bool gpu_test_round_trip(cogpu_gpu *gpu, uint32_t compression, const gpu_block *of, uint32_t count);

#endif
