/*
 * What tests of the device's encoders share: a batch of blocks encoded on a device, as in
 * gpu_test.h. Noise lies round the decoded bytes, and each slot has the room that the encoder, or
 * the block itself, calls enough, followed by bytes that must stay as they are.
 */
#ifndef COGPU_TESTS_GPU_ENCODE_TEST_H
#define COGPU_TESTS_GPU_ENCODE_TEST_H

#include "backend/cuda/cuda_write.h"
#include "gpu_law.h"

/* A block to encode; `out` and `size` are filled in. */
typedef struct gpu_block {
    const uint8_t *in;
    uint32_t in_bytes, row_bytes, step;
    bool is_sparse;
    uint32_t room; /* of its slot; 0: what the encoder's bound says */
    uint32_t size;
    uint8_t *out; /* the caller frees it */
} gpu_block;

/* Slots and sizes of a batch as the device left them: nothing outside the slots is written, nothing
 * of a block that is left out, and no block is larger than its slot. */
static inline bool gpu_test_take(gpu_block *of, const cogpu_uncoded *blocks, uint32_t count,
                                 const uint8_t *slots, uint64_t slots_bytes,
                                 const uint32_t *sizes) {
    uint64_t at = 0;
    for (uint32_t i = 0; i <= count; i++) {
        for (uint64_t next = i < count ? blocks[i].out : slots_bytes; at < next; at++)
            if (slots[at] != GPU_TEST_GUARD) {
                printf("byte %llu is written, outside slot %u\n", (unsigned long long)at, i);
                return false;
            }
        if (i == count)
            break;
        if (sizes[i] > blocks[i].room || (sizes[i] == 0) != of[i].is_sparse) {
            printf("block %u takes %u of %u bytes\n", i, sizes[i], blocks[i].room);
            return false;
        }
        of[i].size = sizes[i];
        of[i].out = malloc(sizes[i] + 1);
        memcpy(of[i].out, slots + at, sizes[i]);
        at += of[i].is_sparse ? 0 : blocks[i].room;
    }
    return true;
}

/* Encodes all blocks in one batch, with what the encoder keeps, if anything. `scratch_share` 0: the
 * least scratch; 1: the best. False, with a line printed, where the device failed or wrote what it
 * must not. */
static inline bool gpu_test_encode_kept(cogpu_gpu *gpu, const cogpu_gpu_encoder *encoder,
                                        void *kept, gpu_block *of, uint32_t count, int level,
                                        int scratch_share) {
    const cogpu_gpu_calls *calls = gpu->calls;
    cogpu_uncoded *blocks = calloc(count, sizeof *blocks);
    uint64_t in = COGPU_GPU_ALIGN, out = COGPU_GPU_ALIGN, least, best, noise = count;
    for (uint32_t i = 0; i < count; i++) {
        blocks[i] = (cogpu_uncoded){
            .in = in,
            .out = out,
            .in_bytes = of[i].in_bytes,
            .room =
                of[i].room ? of[i].room : (uint32_t)encoder->bound(of[i].in_bytes, of[i].row_bytes),
            .step = of[i].step,
            .row_bytes = of[i].row_bytes};
        in += gpu_test_align(of[i].in_bytes) + COGPU_GPU_ALIGN;
        out += gpu_test_align(blocks[i].room) + COGPU_GPU_ALIGN;
    }
    uint8_t *decoded = malloc(in), *slots = malloc(out);
    uint32_t *block_sizes = malloc(count * sizeof *block_sizes);
    uint32_t *host_sizes = malloc(count * sizeof *host_sizes);
    for (uint64_t i = 0; i < in; i++)
        decoded[i] = (uint8_t)((noise = noise * 6364136223846793005u + 1442695040888963407u) >> 56);
    memset(slots, GPU_TEST_GUARD, out);
    for (uint32_t i = 0; i < count; i++) {
        memcpy(decoded + blocks[i].in, of[i].in, of[i].in_bytes);
        block_sizes[i] = of[i].is_sparse ? COGPU_GPU_SPARSE : COGPU_GPU_TO_ENCODE;
    }
    encoder->scratch(blocks, count, level, &least, &best);

    cogpu_error error;
    void *memory[5];
    const void *const content[4] = {decoded, slots, block_sizes, blocks};
    const uint64_t scratch_bytes = scratch_share ? best : least;
    const uint64_t bytes[5] = {in, out, count * sizeof *block_sizes, count * sizeof *blocks,
                               scratch_bytes + (scratch_bytes == 0)};
    cogpu_gpu_stream *stream;
    gpu_test_need(calls->stream_open(gpu, true, &stream, &error), &error);
    for (int i = 0; i < 5; i++)
        gpu_test_need(calls->allocate(gpu, bytes[i], &memory[i], &error), &error);
    for (int i = 0; i < 4; i++)
        gpu_test_need(calls->copy_up(gpu, memory[i], content[i], bytes[i], stream, &error), &error);
    const cogpu_gpu_encoding encoding = {.gpu = gpu,
                                         .stream = stream,
                                         .blocks = blocks,
                                         .count = count,
                                         .device_blocks = memory[3],
                                         .decoded = memory[0],
                                         .slots = memory[1],
                                         .sizes = memory[2],
                                         .host_sizes = host_sizes,
                                         .level = level,
                                         .scratch = memory[4],
                                         .scratch_bytes = scratch_bytes,
                                         .kept = kept};
    bool good = encoder->encode(&encoding, &error) == COGPU_OK;
    if (!good)
        printf("encoding failed: %s\n", error.message);
    gpu_test_need(calls->copy_down(gpu, slots, memory[1], out, stream, &error), &error);
    gpu_test_need(calls->copy_down(gpu, block_sizes, memory[2], bytes[2], stream, &error), &error);
    gpu_test_need(calls->finish_stream(gpu, stream, &error), &error);
    good = good && gpu_test_take(of, blocks, count, slots, out, block_sizes);
    calls->stream_close(gpu, stream);
    for (int i = 0; i < 5; i++)
        calls->release(gpu, memory[i]);
    free(decoded);
    free(slots);
    free(block_sizes);
    free(host_sizes);
    free(blocks);
    return good;
}

static inline bool gpu_test_encode(cogpu_gpu *gpu, const cogpu_gpu_encoder *encoder, gpu_block *of,
                                   uint32_t count, int level, int scratch_share) {
    return gpu_test_encode_kept(gpu, encoder, NULL, of, count, level, scratch_share);
}

/* Whether the host's codec and the device's decoder make of all streams what was encoded. */
static inline bool gpu_test_round_trip(cogpu_gpu *gpu, uint32_t compression, const gpu_block *of,
                                       uint32_t count) {
    gpu_stream *streams = calloc(count, sizeof *streams);
    bool good = true;
    for (uint32_t i = 0; i < count; i++)
        streams[i] = (gpu_stream){.in = of[i].out,
                                  .in_bytes = of[i].size,
                                  .room = of[i].in_bytes,
                                  .needed = of[i].in_bytes};
    good = gpu_test_decode(gpu, cogpu_gpu_decoder_of(compression), streams, count, 1, count);
    for (uint32_t i = 0; good && i < count; i++)
        if (gpu_law_broken(gpu_codec_of(compression), &streams[i], NULL) ||
            streams[i].verdict != COGPU_GPU_DECODED ||
            memcmp(streams[i].out, of[i].in, of[i].in_bytes) != 0) {
            printf("block %u of %u bytes is not what it was\n", i, of[i].in_bytes);
            good = false;
        }
    for (uint32_t i = 0; i < count; i++)
        free(streams[i].out);
    free(streams);
    return good;
}

#endif
