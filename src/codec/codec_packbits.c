/*
 * Takes a block in PackBits, hands on its bytes: a head byte of 0 to 127 is followed by that many
 * bytes and one more to take as they are; one of -127 to -1 by a byte to repeat 1 - head times;
 * -128 says nothing. Writers break runs at the end of a row, but not all of them, so rows play no
 * part here.
 *
 * Nothing in a stream is wrong but its end: what lacks of the block is seen by the caller.
 */
#include "codec/codec.h"

#include <string.h>

/* Bytes that are moved at once; they divide the longest literal and run. */
enum { WIDE = 32, LONGEST = 128 };

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Decodes while the longest literal and run stay inside both sides, so that nothing need be
 * checked. */
static void decode_wide(const uint8_t **in, const uint8_t *in_end, uint8_t **out,
                        const uint8_t *out_end) {
    const uint8_t *from = *in;
    uint8_t *to = *out;
    while (in_end - from > LONGEST && out_end - to >= LONGEST) {
        const uint8_t head = *from++;
        if (head < 128) {
            const size_t count = head + 1u;
            for (size_t i = 0; i < count; i += WIDE)
                memcpy(to + i, from + i, WIDE);
            from += count;
            to += count;
        } else if (head > 128) {
            const size_t count = 257u - head;
            for (size_t i = 0; i < count; i += WIDE)
                memset(to + i, *from, WIDE);
            from++;
            to += count;
        }
    }
    *in = from;
    *out = to;
}

cogpu_status cogpu_decode_packbits(cogpu_codec_state *state, const cogpu_block_format *format,
                                   const uint8_t *in, size_t in_bytes, uint8_t *out,
                                   size_t out_bytes, size_t *got, cogpu_error *error) {
    (void)state, (void)format, (void)error;
    const uint8_t *from = in, *in_end = in + in_bytes;
    uint8_t *to = out, *out_end = out + out_bytes;
    decode_wide(&from, in_end, &to, out_end);
    while (in_end - from > 1 && to < out_end) {
        const uint8_t head = *from++;
        const size_t room = (size_t)(out_end - to);
        if (head < 128) {
            const size_t count = least(least(head + 1u, room), (size_t)(in_end - from));
            memcpy(to, from, count);
            from += count;
            to += count;
        } else if (head > 128) {
            const size_t count = least(257u - head, room);
            memset(to, *from++, count);
            to += count;
        }
    }
    *got = (size_t)(to - out);
    return COGPU_OK;
}
