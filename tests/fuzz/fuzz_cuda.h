/*
 * A decoder of the device, on the emulator, with any stream: it stays inside its memory and keeps
 * the law of gpu_law.h.
 *
 * Input: a byte that chooses the order of threads and the scratch, two that say how much room there
 * is (little-endian, 1 and more), one that says how much of it is needed, then the stream.
 */
#ifndef COGPU_TESTS_FUZZ_CUDA_H
#define COGPU_TESTS_FUZZ_CUDA_H

#include "gpu_law.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static inline int fuzz_decoder(uint32_t compression, const uint8_t *data, size_t bytes) {
    enum { CHOICE_BYTES = 4, IN_MAX = 1 << 16 };
    const gpu_codec *codec = gpu_codec_of(compression);
    if (!codec || bytes <= CHOICE_BYTES || bytes > IN_MAX)
        return 0;
    uint32_t room = 1u + data[1] + 256u * data[2];
    gpu_stream stream = {.in = data + CHOICE_BYTES,
                         .in_bytes = (uint32_t)(bytes - CHOICE_BYTES),
                         .room = room,
                         .needed = (uint32_t)((uint64_t)room * data[3] / 255)};
    cogpu_gpu *gpu = gpu_test_open(data[0]);
    if (!gpu_test_decode(gpu, cogpu_gpu_decoder_of(compression), &stream, 1, data[0] & 1, data[0]))
        abort();
    const char *broken = gpu_law_broken(codec, &stream, NULL);
    if (broken) {
        printf("%s\n", broken);
        abort();
    }
    free(stream.out);
    gpu->calls->close(gpu);
    return 0;
}

#endif
