#include "support/gpu_test.h"

bool gpu_test_is_real(void) {
    const char *device = getenv("COGPU_TEST_DEVICE");
    return device && strcmp(device, "cuda") == 0;
}

cogpu_gpu *gpu_test_open(uint64_t seed) {
    static cogpu_gpu *kept;
    cogpu_gpu *gpu = NULL;
    cogpu_error error;
    cogpu_status status = COGPU_OK;
    if (gpu_test_is_real() && !kept)
        status = cogpu_gpu_open_cuda(0, &kept, &error);
    if (status == COGPU_OK)
        status = gpu_test_is_real() ? cogpu_gpu_open_cuda(0, &gpu, &error)
                                    : cogpu_gpu_open_emulator(seed, 8ULL << 30, &gpu, &error);
    if (status != COGPU_OK) {
        printf("no device: %s\n", error.message);
        exit(1);
    }
    return gpu;
}

uint64_t gpu_test_align(uint64_t bytes) {
    return (bytes + COGPU_GPU_ALIGN - 1) / COGPU_GPU_ALIGN * COGPU_GPU_ALIGN;
}

void gpu_test_need(cogpu_status status, const cogpu_error *error) {
    if (status == COGPU_OK)
        return;
    printf("device: %s\n", error->message);
    exit(1);
}

bool gpu_test_decode(cogpu_gpu *gpu, const cogpu_gpu_decoder *decoder, gpu_stream *streams,
                     uint32_t count, int scratch_share, uint64_t seed) {
    const cogpu_gpu_driver *calls = gpu->calls;
    cogpu_gpu_batch batch = {.gpu = gpu, .count = count};
    cogpu_encoded_block *blocks = calloc(count, sizeof *blocks);
    uint64_t in = COGPU_GPU_SLACK_BYTES, out = COGPU_GPU_ALIGN, least, best;
    for (uint32_t i = 0; i < count; i++) {
        in += (seed = seed * 6364136223846793005u + 1442695040888963407u) >> 60;
        blocks[i] = (cogpu_encoded_block){.in = in,
                                          .out = out,
                                          .in_bytes = streams[i].in_bytes,
                                          .capacity = streams[i].capacity,
                                          .required = streams[i].required};
        in += streams[i].in_bytes;
        out += gpu_test_align(streams[i].capacity) + COGPU_GPU_ALIGN;
    }
    uint64_t in_bytes = in + COGPU_GPU_SLACK_BYTES, out_bytes = out + COGPU_GPU_ALIGN;
    uint8_t *stored = malloc(in_bytes), *decoded = malloc(out_bytes);
    uint32_t *statuses = malloc(count * sizeof *statuses);
    for (uint64_t i = 0; i < in_bytes; i++)
        stored[i] = (uint8_t)((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 56);
    for (uint32_t i = 0; i < count; i++)
        memcpy(stored + blocks[i].in, streams[i].in, streams[i].in_bytes);
    memset(decoded, GPU_TEST_GUARD, out_bytes);
    memset(statuses, 0xFF, count * sizeof *statuses);
    decoder->scratch(blocks, count, 0, &least, &best);

    cogpu_error error;
    void *memory[5];
    const uint64_t sizes[5] = {in_bytes, out_bytes, count * sizeof *statuses,
                               count * sizeof *blocks, (scratch_share ? best : least) + 1};
    for (int i = 0; i < 5; i++)
        gpu_test_need(calls->allocate(gpu, sizes[i], &memory[i], &error), &error);
    gpu_test_need(calls->stream_open(gpu, true, &batch.stream, &error), &error);
    batch.blocks = blocks;
    batch.stored = memory[0];
    batch.decoded = memory[1];
    batch.statuses = memory[2];
    batch.device_blocks = memory[3];
    batch.scratch = memory[4];
    batch.scratch_bytes = scratch_share ? best : least;
    calls->copy_up(gpu, memory[0], stored, in_bytes, batch.stream, &error);
    calls->copy_up(gpu, memory[1], decoded, out_bytes, batch.stream, &error);
    calls->copy_up(gpu, memory[2], statuses, sizes[2], batch.stream, &error);
    calls->copy_up(gpu, memory[3], blocks, sizes[3], batch.stream, &error);
    cogpu_status status = decoder->decode(&batch, &error);
    if (status == COGPU_OK)
        status = calls->copy_down(gpu, decoded, memory[1], out_bytes, batch.stream, &error);
    if (status == COGPU_OK)
        status = calls->copy_down(gpu, statuses, memory[2], sizes[2], batch.stream, &error);
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
                printf("byte %llu is written, before block %u\n", (unsigned long long)end, i);
                good = false;
                break;
            }
        if (i == count)
            break;
        end = next + blocks[i].capacity;
        streams[i].block_status = statuses[i];
        streams[i].out = malloc(blocks[i].capacity);
        memcpy(streams[i].out, decoded + next, blocks[i].capacity);
    }
    calls->stream_close(gpu, batch.stream);
    for (int i = 0; i < 5; i++)
        calls->release(gpu, memory[i]);
    free(stored);
    free(decoded);
    free(statuses);
    free(blocks);
    return good;
}
