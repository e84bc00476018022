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

/* ---- estimates ----------------------------------------------------------------------------- */

double cogpu_gpu_many_time(const cogpu_gpu_rates *rates, double sum, double largest) {
    const double alone = largest / rates->one, together = sum / rates->many;
    return alone > together ? alone : together;
}

double cogpu_gpu_few_time(const cogpu_gpu_rates *rates, double sum) {
    return rates->few_start + sum / rates->few;
}

/* The others are taken to be like these blocks. */
bool cogpu_gpu_is_few(const cogpu_gpu_rates *rates, const cogpu_encoded_block *blocks,
                      uint32_t count, uint32_t others) {
    double largest = 0, sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        largest = blocks[i].capacity > largest ? blocks[i].capacity : largest;
        sum += blocks[i].capacity;
    }
    sum *= 1 + (double)others / count;
    return rates->few > 0 &&
           cogpu_gpu_few_time(rates, sum) < cogpu_gpu_many_time(rates, sum, largest);
}
