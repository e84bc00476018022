/*
 * For tests of CPU encoders: encodes from a heap block of the exact size into one of the encoder's
 * bound, so that the address sanitizer finds each access outside. Encodes twice, with a used codec
 * state and a fresh one; the results must be equal.
 */
#ifndef COGPU_TESTS_ENCODER_TEST_H
#define COGPU_TESTS_ENCODER_TEST_H

#include "support/codec_test.h"

typedef struct encode_result {
    cogpu_status status;
    size_t got;
    uint8_t *out; /* the caller frees it */
    cogpu_error error;
} encode_result;

encode_result encode_by(cogpu_codec_state *state, const cogpu_encoder *encoder,
                        const cogpu_encoding *encoding, const uint8_t *in, size_t in_bytes);

/* With a used codec state and a fresh one. */
encode_result encode_twice(const cogpu_encoder *encoder, const cogpu_encoding *encoding,
                           const uint8_t *in);

cogpu_status encode_status(const cogpu_encoder *encoder, const cogpu_encoding *encoding,
                           const uint8_t *in);

#endif
