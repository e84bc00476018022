/*
 * WebP (compression 50001) through libwebp: one still picture a block, 8 bits, 3 or 4 bands.
 *
 * Encoders leave the alpha of an opaque picture out, so a block of four bands may come without: it
 * is then opaque. Anything else that differs from the block is refused before a pixel is decoded.
 */
#include "codec/codec.h"

#include <webp/decode.h>

static cogpu_status check_header(const cogpu_block_format *format, const uint8_t *in,
                                 size_t in_bytes, cogpu_error *error) {
    WebPBitstreamFeatures features;
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
    const uint8_t *done = format->samples == 3
                              ? WebPDecodeRGBInto(in, in_bytes, out, bytes, (int)row_bytes)
                              : WebPDecodeRGBAInto(in, in_bytes, out, bytes, (int)row_bytes);
    if (!done)
        return cogpu_fail(error, COGPU_CORRUPT, "WebP stream: damaged or cut off");
    *got = bytes;
    return COGPU_OK;
}
