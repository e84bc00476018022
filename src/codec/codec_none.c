/* Takes a block that is stored as it is, hands on its bytes. */
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
