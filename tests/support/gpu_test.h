/*
 * Decodes a batch of streams by a GPU decoder, for tests: on the emulator, or on a GPU if
 * COGPU_TEST_DEVICE is "cuda".
 *
 *     encoded   | noise | stream 0 | noise | stream 1 | noise |      at any byte
 *     decoded   | guard | block 0  | guard | block 1  | guard |      guards must not change
 */
#ifndef COGPU_TESTS_GPU_TEST_H
#define COGPU_TESTS_GPU_TEST_H

#include "kernels/decoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GPU_TEST_GUARD = 0xC3 };

/* A stream to decode, and the result: `block_status` and `out`. Other fields as in
 * cogpu_encoded_block. */
typedef struct gpu_stream {
    const uint8_t *in;
    uint32_t in_bytes, capacity, required;
    uint32_t block_status;
    uint8_t *out; /* of `capacity` bytes: the caller frees it */
} gpu_stream;

bool gpu_test_is_real(void);

/* A real device stays open for the next caller, because its driver takes long to start. */
cogpu_gpu *gpu_test_open(uint64_t seed);

uint64_t gpu_test_align(uint64_t bytes);

void gpu_test_need(cogpu_status status, const cogpu_error *error);

/* Decodes all streams in one batch. `scratch_share` 0: minimal scratch memory; 1: that for full
 * speed. Prints a line and returns false if the device failed or wrote outside of a block. */
bool gpu_test_decode(cogpu_gpu *gpu, const cogpu_gpu_decoder *decoder, gpu_stream *streams,
                     uint32_t count, int scratch_share, uint64_t seed);

#endif
