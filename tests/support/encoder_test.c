#include "support/encoder_test.h"

encode_result encode_by(cogpu_codec_state *state, const cogpu_encoder *encoder,
                        const cogpu_encoding *encoding, const uint8_t *in, size_t in_bytes) {
    size_t room = (size_t)encoder->bound(encoding, in_bytes);
    encode_result result = {.out = malloc(room)};
    uint8_t *copy = malloc(in_bytes);
    memcpy(copy, in, in_bytes);
    result.status = encoder->encode(state, encoding, copy, in_bytes, result.out, room, &result.got,
                                    &result.error);
    CHECK(result.status == COGPU_OK ? result.got > 0 && result.got <= room
                                    : result.got == 0 && result.error.message[0] != '\0');
    free(copy);
    return result;
}

encode_result encode_twice(const cogpu_encoder *encoder, const cogpu_encoding *encoding,
                           const uint8_t *in) {
    size_t in_bytes = encoding->format.height * encoding->format.row_bytes;
    cogpu_codec_state fresh = {0};
    encode_result result = encode_by(&codec_state, encoder, encoding, in, in_bytes);
    encode_result again = encode_by(&fresh, encoder, encoding, in, in_bytes);
    CHECK(again.status == result.status && again.got == result.got);
    CHECK(memcmp(again.out, result.out, result.got) == 0);
    free(again.out);
    cogpu_codec_state_close(&fresh);
    return result;
}

cogpu_status encode_status(const cogpu_encoder *encoder, const cogpu_encoding *encoding,
                           const uint8_t *in) {
    encode_result result = encode_twice(encoder, encoding, in);
    free(result.out);
    return result.status;
}
