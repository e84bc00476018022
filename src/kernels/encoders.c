/* GPU encoders by TIFF compression value. */
#include "codec/codec.h"
#include "kernels/encoder.h"

static const cogpu_gpu_encoder *find_encoder(uint32_t compression) {
    switch (compression) {
    case COMPRESSION_LZW:
        return &cogpu_gpu_lzw_encoder;
    case COMPRESSION_JPEG:
        return &cogpu_gpu_jpeg_encoder;
    case COMPRESSION_DEFLATE:
    case COMPRESSION_DEFLATE_OLD:
        return &cogpu_gpu_deflate_encoder;
    case COMPRESSION_ZSTD:
        return &cogpu_gpu_zstd_encoder;
    case COMPRESSION_PACKBITS:
        return &cogpu_gpu_packbits_encoder;
    default:
        return NULL;
    }
}

const cogpu_gpu_encoder *cogpu_gpu_encoder_of(const cogpu_gpu *gpu, uint32_t compression) {
    const cogpu_gpu_encoder *encoder = find_encoder(compression);
    return encoder && cogpu_gpu_can_run(gpu, encoder->kernels) ? encoder : NULL;
}
