#include "fuzz/kernel_target.h"

int fuzz_decoder(uint32_t compression, const uint8_t *data, size_t bytes) {
    enum { OPTION_BYTES = 4, IN_MAX = 1 << 16 };
    const gpu_codec *codec = gpu_find_codec(compression);
    if (!codec || bytes <= OPTION_BYTES || bytes > IN_MAX)
        return 0;
    uint32_t capacity = 1u + data[1] + 256u * data[2];
    gpu_stream stream = {.in = data + OPTION_BYTES,
                         .in_bytes = (uint32_t)(bytes - OPTION_BYTES),
                         .capacity = capacity,
                         .required = (uint32_t)((uint64_t)capacity * data[3] / 255)};
    cogpu_gpu *gpu = gpu_test_open(data[0]);
    if (!gpu_test_decode(gpu, cogpu_gpu_find_decoder(gpu, compression), &stream, 1, data[0] & 1,
                         data[0]))
        abort();
    const char *violation = gpu_contract_violation(codec, &stream, NULL);
    if (violation) {
        printf("%s\n", violation);
        abort();
    }
    free(stream.out);
    gpu->calls->close(gpu);
    return 0;
}
