/*
 * What the tests of encoders share: encoding from a heap block of the exact size into one of the
 * size that the encoder calls enough, so that the address sanitizer sees each byte outside; by a
 * state that has seen other blocks and by a fresh one, which must come to the same.
 */
#ifndef COGPU_TESTS_ENCODER_TEST_H
#define COGPU_TESTS_ENCODER_TEST_H

#include "codec_test.h"

typedef struct encoded {
    cogpu_status status;
    size_t got;
    uint8_t *out; /* of the caller, to free */
    cogpu_error error;
} encoded;

static inline encoded encode_by(cogpu_codec_state *state, const cogpu_encoder *encoder,
                                const cogpu_encoding *encoding, const uint8_t *in,
                                size_t in_bytes) {
    size_t room = (size_t)encoder->bound(encoding, in_bytes);
    encoded result = {.out = malloc(room)};
    uint8_t *copy = malloc(in_bytes);
    memcpy(copy, in, in_bytes);
    result.status = encoder->encode(state, encoding, copy, in_bytes, result.out, room, &result.got,
                                    &result.error);
    CHECK(result.status == COGPU_OK ? result.got > 0 && result.got <= room
                                    : result.got == 0 && result.error.message[0] != '\0');
    free(copy);
    return result;
}

static inline encoded encode(const cogpu_encoder *encoder, const cogpu_encoding *encoding,
                             const uint8_t *in) {
    size_t in_bytes = encoding->format.height * encoding->format.row_bytes;
    cogpu_codec_state fresh = {0};
    encoded result = encode_by(&codec_state, encoder, encoding, in, in_bytes);
    encoded again = encode_by(&fresh, encoder, encoding, in, in_bytes);
    CHECK(again.status == result.status && again.got == result.got);
    CHECK(memcmp(again.out, result.out, result.got) == 0);
    free(again.out);
    cogpu_codec_state_close(&fresh);
    return result;
}

static inline cogpu_status encode_status(const cogpu_encoder *encoder,
                                         const cogpu_encoding *encoding, const uint8_t *in) {
    encoded result = encode(encoder, encoding, in);
    free(result.out);
    return result.status;
}

#endif
