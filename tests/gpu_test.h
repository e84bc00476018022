/*
 * What tests of the CUDA backend share: a batch of streams decoded on a device, which is the
 * emulator, or a GPU where COGPU_TEST_DEVICE is "cuda".
 *
 * Stored bytes are put at odd places, with noise round them, and the room of each block is followed
 * by bytes that must stay as they are.
 */
#ifndef COGPU_TESTS_GPU_TEST_H
#define COGPU_TESTS_GPU_TEST_H

#include "backend/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GPU_TEST_GUARD = 0xC3 };

/* A stream to decode; `verdict` and `out` are filled in. */
typedef struct gpu_stream {
    const uint8_t *in;
    uint32_t in_bytes, room, needed;
    uint32_t verdict;
    uint8_t *out; /* of `room` bytes: the caller frees it */
} gpu_stream;

static inline bool gpu_test_is_real(void) {
    const char *device = getenv("COGPU_TEST_DEVICE");
    return device && strcmp(device, "cuda") == 0;
}

/* A real one stays open for the next, too: its driver takes long to begin anew. */
static inline cogpu_gpu *gpu_test_open(uint64_t seed) {
    static cogpu_gpu *kept;
    cogpu_gpu *gpu = NULL;
    cogpu_error error;
    cogpu_status status = COGPU_OK;
    if (gpu_test_is_real() && !kept)
        status = cogpu_gpu_open_driver(0, &kept, &error);
    if (status == COGPU_OK)
        status = gpu_test_is_real() ? cogpu_gpu_open_driver(0, &gpu, &error)
                                    : cogpu_gpu_open_emu(seed, 8ULL << 30, &gpu, &error);
    if (status != COGPU_OK) {
        printf("no device: %s\n", error.message);
        exit(1);
    }
    return gpu;
}

static inline uint64_t gpu_test_align(uint64_t bytes) {
    return (bytes + COGPU_GPU_ALIGN - 1) / COGPU_GPU_ALIGN * COGPU_GPU_ALIGN;
}

static inline void gpu_test_need(cogpu_status status, const cogpu_error *error) {
    if (status == COGPU_OK)
        return;
    printf("device: %s\n", error->message);
    exit(1);
}

/* Decodes all streams in one batch. `scratch_share` 0: the least scratch; 1: the best. False, with
 * a line printed, where the device failed or bytes outside a block's room were written. */
static inline bool gpu_test_decode(cogpu_gpu *gpu, const cogpu_gpu_decoder *decoder,
                                   gpu_stream *streams, uint32_t count, int scratch_share,
                                   uint64_t seed) {
    const cogpu_gpu_calls *calls = gpu->calls;
    cogpu_gpu_batch batch = {.gpu = gpu, .count = count};
    cogpu_coded *blocks = calloc(count, sizeof *blocks);
    uint64_t in = COGPU_GPU_SLACK, out = COGPU_GPU_ALIGN, least, best;
    for (uint32_t i = 0; i < count; i++) {
        in += (seed = seed * 6364136223846793005u + 1442695040888963407u) >> 60;
        blocks[i] = (cogpu_coded){.in = in,
                                  .out = out,
                                  .in_bytes = streams[i].in_bytes,
                                  .room = streams[i].room,
                                  .needed = streams[i].needed};
        in += streams[i].in_bytes;
        out += gpu_test_align(streams[i].room) + COGPU_GPU_ALIGN;
    }
    uint64_t in_bytes = in + COGPU_GPU_SLACK, out_bytes = out + COGPU_GPU_ALIGN;
    uint8_t *stored = malloc(in_bytes), *decoded = malloc(out_bytes);
    uint32_t *verdicts = malloc(count * sizeof *verdicts);
    for (uint64_t i = 0; i < in_bytes; i++)
        stored[i] = (uint8_t)((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 56);
    for (uint32_t i = 0; i < count; i++)
        memcpy(stored + blocks[i].in, streams[i].in, streams[i].in_bytes);
    memset(decoded, GPU_TEST_GUARD, out_bytes);
    memset(verdicts, 0xFF, count * sizeof *verdicts);
    decoder->scratch(blocks, count, &least, &best);

    cogpu_error error;
    void *memory[5];
    const uint64_t sizes[5] = {in_bytes, out_bytes, count * sizeof *verdicts,
                               count * sizeof *blocks, (scratch_share ? best : least) + 1};
    for (int i = 0; i < 5; i++)
        gpu_test_need(calls->allocate(gpu, sizes[i], &memory[i], &error), &error);
    gpu_test_need(calls->stream_open(gpu, true, &batch.stream, &error), &error);
    batch.blocks = blocks;
    batch.stored = memory[0];
    batch.decoded = memory[1];
    batch.verdicts = memory[2];
    batch.device_blocks = memory[3];
    batch.scratch = memory[4];
    batch.scratch_bytes = scratch_share ? best : least;
    calls->copy_up(gpu, memory[0], stored, in_bytes, batch.stream, &error);
    calls->copy_up(gpu, memory[1], decoded, out_bytes, batch.stream, &error);
    calls->copy_up(gpu, memory[2], verdicts, sizes[2], batch.stream, &error);
    calls->copy_up(gpu, memory[3], blocks, sizes[3], batch.stream, &error);
    cogpu_status status = decoder->decode(&batch, &error);
    if (status == COGPU_OK)
        status = calls->copy_down(gpu, decoded, memory[1], out_bytes, batch.stream, &error);
    if (status == COGPU_OK)
        status = calls->copy_down(gpu, verdicts, memory[2], sizes[2], batch.stream, &error);
    if (status == COGPU_OK)
        status = calls->finish_stream(gpu, batch.stream, &error);
    bool good = status == COGPU_OK;
    if (!good)
        printf("decoding failed: %s\n", error.message);
    uint64_t end = 0;
    for (uint32_t i = 0; good && i <= count; i++) {
        uint64_t next = i < count ? blocks[i].out : out_bytes;
        for (; end < next; end++)
            if (decoded[end] != GPU_TEST_GUARD) {
                printf("byte %llu is written, outside block %u\n", (unsigned long long)end, i);
                good = false;
                break;
            }
        if (i == count)
            break;
        end = next + blocks[i].room;
        streams[i].verdict = verdicts[i];
        streams[i].out = malloc(blocks[i].room);
        memcpy(streams[i].out, decoded + next, blocks[i].room);
    }
    calls->stream_close(gpu, batch.stream);
    for (int i = 0; i < 5; i++)
        calls->release(gpu, memory[i]);
    free(stored);
    free(decoded);
    free(verdicts);
    free(blocks);
    return good;
}

#endif
