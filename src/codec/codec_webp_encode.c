/*
 * WebP encoder (compression 50001) by libwebp: RGB or RGBA of 8 bits to one image per block.
 *
 * Lossless images keep every sample, also the colours of transparent pixels; in lossy images
 * libwebp may change those. libwebp omits the alpha of an opaque block.
 */
#include "codec/codec.h"

#include <assert.h>
#include <string.h>

#include <webp/encode.h>

/* The libwebp preset that is as fast as its default. */
enum { LOSSLESS_PRESET = 6 };

/* Noise needs its own size lossless and half of it lossy; a quarter more is reserve. */
enum { HEADERS_MAX = 16 << 10 };

typedef struct target {
    uint8_t *at;
    size_t capacity;
    bool is_full; /* of which libwebp's error code says nothing */
} target;

static int append_encoded(const uint8_t *data, size_t bytes, const WebPPicture *picture) {
    target *to = picture->custom_ptr;
    to->is_full = bytes > to->capacity;
    if (to->is_full)
        return 0;
    memcpy(to->at, data, bytes);
    to->at += bytes;
    to->capacity -= bytes;
    return 1;
}

static cogpu_status check_webp_format(const cogpu_block_format *format, cogpu_error *error) {
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
    picture->writer = append_encoded;
    return COGPU_OK;
}

static cogpu_status fail_webp(WebPEncodingError code, cogpu_error *error) {
    switch (code) {
    case VP8_ENC_OK: /* some of its allocations fail without a code */
    case VP8_ENC_ERROR_OUT_OF_MEMORY:
    case VP8_ENC_ERROR_BITSTREAM_OUT_OF_MEMORY:
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "WebP: out of memory for a block");
    case VP8_ENC_ERROR_PARTITION0_OVERFLOW:
    case VP8_ENC_ERROR_PARTITION_OVERFLOW:
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "WebP: the block is too large for its format; take smaller blocks");
    default:
        return cogpu_fail(error, COGPU_UNSUPPORTED, "WebP: libwebp refuses the block (error %d)",
                          (int)code);
    }
}

/* If memory runs out while libwebp (1.2.4) writes lossless data, which alpha always is, it omits
 * the data and reports success. So we decode those streams once: a small part of the encoding time.
 */
static cogpu_status check_stream(cogpu_codec_state *state, const cogpu_encoding *encoding,
                                 const uint8_t *stream, size_t bytes, size_t decoded_bytes,
                                 cogpu_error *error) {
    size_t got;
    if (!encoding->lossless && encoding->format.samples == 3)
        return COGPU_OK;
    uint8_t *decoded = cogpu_codec_work(state, decoded_bytes);
    if (!decoded || cogpu_decode_webp(state, &encoding->format, stream, bytes, decoded,
                                      decoded_bytes, &got, error) != COGPU_OK)
        return fail_webp(VP8_ENC_ERROR_OUT_OF_MEMORY, error);
    return COGPU_OK;
}

static cogpu_status encode_webp(cogpu_codec_state *state, const cogpu_encoding *encoding,
                                const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                                size_t *got, cogpu_error *error) {
    const cogpu_block_format *format = &encoding->format;
    WebPConfig config;
    WebPPicture picture;
    target to = {out, out_bytes, false};
    assert(in_bytes == format->height * format->row_bytes);
    *got = 0;
    TRY(check_webp_format(format, error));
    TRY(set_up(encoding, &config, &picture, error));
    picture.custom_ptr = &to;
    int stride = (int)format->row_bytes; /* of at most 4 * WEBP_MAX_DIMENSION bytes */
    int done = format->samples == 3 ? WebPPictureImportRGB(&picture, in, stride)
                                    : WebPPictureImportRGBA(&picture, in, stride);
    done = done && WebPEncode(&config, &picture);
    WebPEncodingError code = picture.error_code;
    WebPPictureFree(&picture);
    if (to.is_full)
        return cogpu_fail(error, COGPU_LIMIT_EXCEEDED,
                          "WebP: the stream is larger than its buffer");
    if (!done)
        return fail_webp(code, error);
    *got = out_bytes - to.capacity;
    return check_stream(state, encoding, out, *got, in_bytes, error);
}

static uint64_t bound_webp(const cogpu_encoding *encoding, uint64_t in_bytes) {
    (void)encoding;
    return in_bytes + in_bytes / 4 + HEADERS_MAX;
}

const cogpu_encoder cogpu_encoder_webp = {.encode = encode_webp, .bound = bound_webp};
