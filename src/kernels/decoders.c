/* The GPU decoder of each TIFF compression. */
#include "codec/codec.h"
#include "kernels/decoder.h"

static const cogpu_gpu_decoder *decoder_of(uint32_t compression) {
    switch (compression) {
    case COMPRESSION_DEFLATE:
    case COMPRESSION_DEFLATE_OLD:
        return &cogpu_gpu_inflate;
    case COMPRESSION_ZSTD:
        return &cogpu_gpu_zstd;
    case COMPRESSION_LZW:
        return &cogpu_gpu_lzw;
    case COMPRESSION_PACKBITS:
        return &cogpu_gpu_packbits;
    default:
        return NULL;
    }
}

const cogpu_gpu_decoder *cogpu_gpu_find_decoder(const cogpu_gpu *gpu, uint32_t compression) {
    const cogpu_gpu_decoder *decoder = decoder_of(compression);
    return decoder && cogpu_gpu_can_run(gpu, decoder->kernels) ? decoder : NULL;
}
