/* The GPU flags of the codec table agree with the tables of kernels, which codec/ cannot see. */
#include "codec/codec.h"
#include "kernels/decoder.h"
#include "kernels/encoder.h"

#include "support/test.h"

static const cogpu_gpu unlimited = {.shared_bytes = UINT32_MAX};

static void flags_agree_with_kernels(void) {
    cogpu_codec info = COGPU_CODEC_INIT;
    for (uint32_t i = 0; cogpu_codec_info(i, &info, NULL) == COGPU_OK; i++) {
        bool needs_no_codec = info.compression == COMPRESSION_NONE;
        bool has_nvjpeg_decoder = info.compression == COMPRESSION_JPEG; /* not in the table */
        bool decodes = needs_no_codec || has_nvjpeg_decoder ||
                       cogpu_gpu_find_decoder(&unlimited, info.compression) != NULL;
        bool encodes = needs_no_codec || cogpu_gpu_encoder_of(&unlimited, info.compression) != NULL;
        CHECK(!info.gpu_decode == !decodes);
        CHECK(!info.gpu_encode == !encodes);
        if (!info.gpu_decode != !decodes || !info.gpu_encode != !encodes)
            printf("... codec %s\n", info.name);
    }
}

TESTS(codec_gpu_flags) {
    RUN(flags_agree_with_kernels);
    return FINISH();
}
