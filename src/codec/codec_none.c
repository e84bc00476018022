/* No compression (1): the block is its bytes. */
#include "codec/codec.h"

#include <string.h>

cogpu_status cogpu_decode_none(cogpu_codec_state *state, const cogpu_block_format *format,
                               const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                               size_t *got, cogpu_error *error) {
    (void)state, (void)format, (void)error;
    *got = in_bytes < out_bytes ? in_bytes : out_bytes;
    if (*got > 0)
        memcpy(out, in, *got);
    return COGPU_OK;
}

static cogpu_status encode_none(cogpu_codec_state *state, const cogpu_encoding *encoding,
                                const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                                size_t *got, cogpu_error *error) {
    return cogpu_decode_none(state, &encoding->format, in, in_bytes, out, out_bytes, got, error);
}

static uint64_t bound_none(const cogpu_encoding *encoding, uint64_t in_bytes) {
    (void)encoding;
    return in_bytes;
}

const cogpu_encoder cogpu_encoder_none = {.encode = encode_none, .bound = bound_none};
