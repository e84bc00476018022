/*
 * WebP (compression 50001), written through libwebp: RGB or RGBA of 8 bits in, one picture out.
 *
 * Without loss every sample comes back, also the colours of pixels that alpha hides; with loss the
 * library may change those as it likes. The alpha of an opaque block is left out by the library.
 */
#include "codec/codec.h"

#include <assert.h>
#include <string.h>

#include <webp/encode.h>

/* Of libwebp's presets, the one that takes as long as its default. */
enum { LOSSLESS_PRESET = 6 };

/* Noise takes its own size without loss and half of it with; a quarter more is reserve. */
enum { HEADERS_MAX = 16 << 10 };

typedef struct target {
    uint8_t *at;
    size_t room;
    bool is_full; /* of which libwebp's error code says nothing */
} target;

static int take(const uint8_t *data, size_t bytes, const WebPPicture *picture) {
    target *to = picture->custom_ptr;
    to->is_full = bytes > to->room;
    if (to->is_full)
        return 0;
    memcpy(to->at, data, bytes);
    to->at += bytes;
    to->room -= bytes;
    return 1;
}

static cogpu_status check(const cogpu_block_format *format, cogpu_error *error) {
    if (format->bits != 8 || (format->samples != 3 && format->samples != 4))
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "WebP with %u bands of %u bits: it has 3 or 4 of 8 bits, stored together",
                          format->samples, format->bits);
    if (format->width > WEBP_MAX_DIMENSION || format->height > WEBP_MAX_DIMENSION)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "WebP: a block of %u x %u pixels; its sides end at %d, take smaller ones",
                          format->width, format->height, WEBP_MAX_DIMENSION);
    return COGPU_OK;
}

static cogpu_status set_up(const cogpu_encoding *encoding, WebPConfig *config, WebPPicture *picture,
                           cogpu_error *error) {
    if (!WebPConfigPreset(config, WEBP_PRESET_DEFAULT, (float)encoding->quality) ||
        !WebPPictureInit(picture) ||
        (encoding->lossless && !WebPConfigLosslessPreset(config, LOSSLESS_PRESET)))
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "WebP: quality %d, or a libwebp other than the one of the build",
                          encoding->quality);
    config->exact = encoding->lossless;
    picture->use_argb = encoding->lossless;
    picture->width = (int)encoding->format.width;
    picture->height = (int)encoding->format.height;
    picture->writer = take;
    return COGPU_OK;
}

static cogpu_status explain(WebPEncodingError code, cogpu_error *error) {
    switch (code) {
    case VP8_ENC_OK: /* some of its allocations fail without a code */
    case VP8_ENC_ERROR_OUT_OF_MEMORY:
    case VP8_ENC_ERROR_BITSTREAM_OUT_OF_MEMORY:
        return cogpu_fail(error, COGPU_MEMORY, "WebP: out of memory for a block");
    case VP8_ENC_ERROR_PARTITION0_OVERFLOW:
    case VP8_ENC_ERROR_PARTITION_OVERFLOW:
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "WebP: the block is too large for its format; take smaller blocks");
    default:
        return cogpu_fail(error, COGPU_UNSUPPORTED, "WebP: libwebp refuses the block (error %d)",
                          (int)code);
    }
}

/* Where memory ends while libwebp (1.2.4) writes the coded samples of its way without loss, which
 * alpha takes always, it leaves them out and says that all went well. So those streams are read
 * once: a small part of the time that it took to write them. */
static cogpu_status check_stream(cogpu_codec_state *state, const cogpu_encoding *encoding,
                                 const uint8_t *stream, size_t bytes, size_t decoded_bytes,
                                 cogpu_error *error) {
    size_t got;
    if (!encoding->lossless && encoding->format.samples == 3)
        return COGPU_OK;
    uint8_t *decoded = cogpu_codec_work(state, decoded_bytes);
    if (!decoded || cogpu_decode_webp(state, &encoding->format, stream, bytes, decoded,
                                      decoded_bytes, &got, error) != COGPU_OK)
        return explain(VP8_ENC_ERROR_OUT_OF_MEMORY, error);
    return COGPU_OK;
}

static cogpu_status encode(cogpu_codec_state *state, const cogpu_encoding *encoding,
                           const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                           size_t *got, cogpu_error *error) {
    const cogpu_block_format *format = &encoding->format;
    WebPConfig config;
    WebPPicture picture;
    target to = {out, out_bytes, false};
    assert(in_bytes == format->height * format->row_bytes);
    *got = 0;
    TRY(check(format, error));
    TRY(set_up(encoding, &config, &picture, error));
    picture.custom_ptr = &to;
    int stride = (int)format->row_bytes; /* of at most 4 * WEBP_MAX_DIMENSION bytes */
    int done = format->samples == 3 ? WebPPictureImportRGB(&picture, in, stride)
                                    : WebPPictureImportRGBA(&picture, in, stride);
    done = done && WebPEncode(&config, &picture);
    WebPEncodingError code = picture.error_code;
    WebPPictureFree(&picture);
    if (to.is_full)
        return cogpu_fail(error, COGPU_LIMIT, "WebP: the stream is larger than its room");
    if (!done)
        return explain(code, error);
    *got = out_bytes - to.room;
    return check_stream(state, encoding, out, *got, in_bytes, error);
}

static uint64_t bound(const cogpu_encoding *encoding, uint64_t in_bytes) {
    (void)encoding;
    return in_bytes + in_bytes / 4 + HEADERS_MAX;
}

const cogpu_encoder cogpu_encoder_webp = {.encode = encode, .bound = bound};
