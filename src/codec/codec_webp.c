/*
 * WebP decoder (compression 50001) by libwebp: one still image per block, 8 bits, 3 or 4 bands.
 *
 * Encoders omit the alpha of an opaque image, so a block of four bands may come without alpha: it
 * is opaque then. Any other difference to the block fails before a pixel is decoded.
 *
 * libwebp reports most failed allocations as damage, and (1.2.4) crashes after some. So we check
 * first whether there is memory, and again if libwebp reports damage. If there is, we call libwebp
 * again, and its second result counts.
 */
#include "codec/codec.h"

#include <webp/decode.h>

static cogpu_status check_header(const cogpu_block_format *format, const uint8_t *in,
                                 size_t in_bytes, cogpu_error *error) {
    WebPBitstreamFeatures features; /* read without any allocation */
    if (WebPGetFeatures(in, in_bytes, &features) != VP8_STATUS_OK)
        return cogpu_fail(error, COGPU_CORRUPT, "WebP stream: its header cannot be read");
    if (features.has_animation)
        return cogpu_fail(error, COGPU_CORRUPT, "WebP stream: an animation, not a picture");
    if ((uint32_t)features.width != format->width || (uint32_t)features.height != format->height)
        return cogpu_fail(error, COGPU_CORRUPT,
                          "WebP stream: %d x %d pixels where the block has %u x %u", features.width,
                          features.height, format->width, format->height);
    if (features.has_alpha && format->samples == 3)
        return cogpu_fail(error, COGPU_CORRUPT, "WebP stream: 4 bands where the block has 3");
    return COGPU_OK;
}

static VP8StatusCode decode_into(const cogpu_block_format *format, const uint8_t *in,
                                 size_t in_bytes, uint8_t *out, size_t row_bytes) {
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return VP8_STATUS_INVALID_PARAM; /* a libwebp other than the one of the build */
    config.output.colorspace = format->samples == 3 ? MODE_RGB : MODE_RGBA;
    config.output.is_external_memory = 1;
    config.output.u.RGBA =
        (WebPRGBABuffer){.rgba = out, .stride = (int)row_bytes, .size = row_bytes * format->height};
    VP8StatusCode code = WebPDecode(in, in_bytes, &config);
    WebPFreeDecBuffer(&config.output);
    return code;
}

static bool has_memory(size_t bytes) {
    void *memory = cogpu_allocate(bytes);
    cogpu_release(memory);
    return memory != NULL;
}

/* More than libwebp allocates for an image: its pixels, of 4 bytes, a few times. */
static size_t most_memory(const cogpu_block_format *format) {
    return (size_t)format->width * format->height * 16 + (1 << 20);
}

cogpu_status cogpu_decode_webp(cogpu_codec_state *state, const cogpu_block_format *format,
                               const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                               size_t *got, cogpu_error *error) {
    (void)state;
    *got = 0;
    if (format->bits != 8 || (format->samples != 3 && format->samples != 4))
        return cogpu_fail(error, COGPU_CORRUPT,
                          "WebP with %u bands of %u bits: it has 3 or 4 of 8 bits", format->samples,
                          format->bits);
    TRY(check_header(format, in, in_bytes, error));

    /* Widths and heights of WebP end at 16383, so this cannot overflow. */
    size_t row_bytes = (size_t)format->width * format->samples;
    size_t bytes = row_bytes * format->height;
    if (bytes > out_bytes)
        return cogpu_fail(error, COGPU_CORRUPT, "WebP stream: more pixels than the block has");
    VP8StatusCode code = VP8_STATUS_NOT_ENOUGH_DATA;
    for (int i = 0; i < 2 && code != VP8_STATUS_OK && code != VP8_STATUS_OUT_OF_MEMORY; i++)
        code = has_memory(most_memory(format)) ? decode_into(format, in, in_bytes, out, row_bytes)
                                               : VP8_STATUS_OUT_OF_MEMORY;
    if (code == VP8_STATUS_OUT_OF_MEMORY)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "WebP: out of memory for a block");
    if (code != VP8_STATUS_OK)
        return cogpu_fail(error, COGPU_CORRUPT, "WebP stream: damaged or cut off (status %d)",
                          (int)code);
    *got = bytes;
    return COGPU_OK;
}
