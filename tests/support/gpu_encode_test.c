#include "support/gpu_encode_test.h"

/* Copies encoded blocks and sizes. Checks that nothing is written outside the slots or for a sparse
 * block, and that no block exceeds its slot. */
static bool gpu_test_copy_slots(gpu_block *of, const cogpu_raw_block *blocks, uint32_t count,
                                const uint8_t *slots, uint64_t slots_bytes, const uint32_t *sizes) {
    uint64_t at = 0;
    for (uint32_t i = 0; i <= count; i++) {
        for (uint64_t next = i < count ? blocks[i].out : slots_bytes; at < next; at++)
            if (slots[at] != GPU_TEST_GUARD) {
                printf("byte %llu is written, outside slot %u\n", (unsigned long long)at, i);
                return false;
            }
        if (i == count)
            break;
        if (sizes[i] > blocks[i].capacity || (sizes[i] == 0) != of[i].is_sparse) {
            printf("block %u takes %u of %u bytes\n", i, sizes[i], blocks[i].capacity);
            return false;
        }
        of[i].size = sizes[i];
        of[i].out = malloc(sizes[i] + 1);
        memcpy(of[i].out, slots + at, sizes[i]);
        at += of[i].is_sparse ? 0 : blocks[i].capacity;
    }
    return true;
}

bool gpu_test_encode_kept(cogpu_gpu *gpu, const cogpu_gpu_encoder *encoder, void *kept,
                          gpu_block *of, uint32_t count, int level, int scratch_share) {
    const cogpu_gpu_driver *calls = gpu->calls;
    cogpu_raw_block *blocks = calloc(count, sizeof *blocks);
    uint64_t in = COGPU_GPU_ALIGN, out = COGPU_GPU_ALIGN, least, best, noise = count;
    for (uint32_t i = 0; i < count; i++) {
        blocks[i] = (cogpu_raw_block){
            .in = in,
            .out = out,
            .in_bytes = of[i].in_bytes,
            .capacity = of[i].capacity ? of[i].capacity
                                       : (uint32_t)encoder->bound(of[i].in_bytes, of[i].row_bytes),
            .step = of[i].step,
            .row_bytes = of[i].row_bytes};
        in += gpu_test_align(of[i].in_bytes) + COGPU_GPU_ALIGN;
        out += gpu_test_align(blocks[i].capacity) + COGPU_GPU_ALIGN;
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
    good = good && gpu_test_copy_slots(of, blocks, count, slots, out, block_sizes);
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

bool gpu_test_encode(cogpu_gpu *gpu, const cogpu_gpu_encoder *encoder, gpu_block *of,
                     uint32_t count, int level, int scratch_share) {
    return gpu_test_encode_kept(gpu, encoder, NULL, of, count, level, scratch_share);
}

bool gpu_test_round_trip(cogpu_gpu *gpu, uint32_t compression, const gpu_block *of,
                         uint32_t count) {
    gpu_stream *streams = calloc(count, sizeof *streams);
    bool good = true;
    for (uint32_t i = 0; i < count; i++)
        streams[i] = (gpu_stream){.in = of[i].out,
                                  .in_bytes = of[i].size,
                                  .capacity = of[i].in_bytes,
                                  .required = of[i].in_bytes};
    good = gpu_test_decode(gpu, cogpu_gpu_find_decoder(gpu, compression), streams, count, 1, count);
    for (uint32_t i = 0; good && i < count; i++)
        if (gpu_contract_violation(gpu_find_codec(compression), &streams[i], NULL) ||
            streams[i].block_status != COGPU_GPU_DECODED ||
            memcmp(streams[i].out, of[i].in, of[i].in_bytes) != 0) {
            printf("block %u of %u bytes differs after decoding\n", i, of[i].in_bytes);
            good = false;
        }
    for (uint32_t i = 0; i < count; i++)
        free(streams[i].out);
    free(streams);
    return good;
}
