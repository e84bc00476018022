#include "fuzz/kernel_target.h"

static void fuzz_codec(const gpu_codec *codec, gpu_stream stream, uint8_t order) {
    cogpu_gpu *gpu = gpu_test_open(order);
    if (!gpu_test_decode(gpu, gpu_codec_decoder(codec, gpu), &stream, 1, order & 1, order))
        abort();
    const char *violation = gpu_contract_violation(codec, &stream, NULL);
    if (violation) {
        printf("%s: %s\n", codec->name, violation);
        abort();
    }
    free(stream.out);
    gpu->calls->close(gpu);
}

int fuzz_decoder(uint32_t compression, const uint8_t *data, size_t bytes) {
    enum { OPTION_BYTES = 4, IN_MAX = 1 << 16 };
    if (!gpu_find_codec(compression) || bytes <= OPTION_BYTES || bytes > IN_MAX)
        return 0;
    uint32_t capacity = 1u + data[1] + 256u * data[2];
    const gpu_stream stream = {.in = data + OPTION_BYTES,
                               .in_bytes = (uint32_t)(bytes - OPTION_BYTES),
                               .capacity = capacity,
                               .required = (uint32_t)((uint64_t)capacity * data[3] / 255)};
    for (int i = 0; i < GPU_CODECS; i++)
        if (gpu_codecs[i].compression == compression)
            fuzz_codec(&gpu_codecs[i], stream, data[0]);
    return 0;
}
