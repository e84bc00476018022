#include "support/codec_test.h"

cogpu_codec_state codec_state;

const cogpu_stream_codec *stream_of(cogpu_decode *codec) {
    cogpu_codec info = COGPU_CODEC_INIT;
    for (uint32_t i = 0; cogpu_codec_info(i, &info, NULL) == COGPU_OK; i++) {
        const cogpu_codec_row *row = cogpu_codec_find(info.compression);
        if (row->decode == codec)
            return row->stream;
    }
    return NULL;
}

decoded decode_strictly(cogpu_decode *codec, const uint8_t *in, size_t in_bytes, size_t out_bytes,
                        bool strict) {
    const cogpu_block_format format = {0};
    decoded result = {.out = malloc(out_bytes ? out_bytes : 1)};
    uint8_t *copy = malloc(in_bytes ? in_bytes : 1);
    memcpy(copy, in, in_bytes);
    /* A block of no bytes is a pointer that must not be dereferenced: one past the end. */
    result.status =
        codec(&codec_state, &format, in_bytes ? copy : copy + 1, in_bytes,
              out_bytes ? result.out : result.out + 1, out_bytes, &result.got, &result.error);
    const cogpu_stream_codec *stream = stream_of(codec);
    if (stream)
        CHECK(parts_give(stream, &format, in, in_bytes, result.status, result.out, result.got,
                         out_bytes, strict));
    free(copy);
    return result;
}

decoded decode(cogpu_decode *codec, const uint8_t *in, size_t in_bytes, size_t out_bytes) {
    return decode_strictly(codec, in, in_bytes, out_bytes, false);
}

cogpu_status decode_status(cogpu_decode *codec, const uint8_t *in, size_t in_bytes,
                           size_t out_bytes) {
    decoded result = decode(codec, in, in_bytes, out_bytes);
    free(result.out);
    return result.status;
}

int decodes_to(cogpu_decode *codec, const uint8_t *in, size_t in_bytes, const uint8_t *expected,
               size_t bytes, size_t out_bytes) {
    decoded result = decode_strictly(codec, in, in_bytes, out_bytes, true);
    int same = result.status == COGPU_OK && result.got == bytes &&
               memcmp(result.out, expected, bytes) == 0;
    free(result.out);
    return same;
}

/* The position after `at` of a sweep over `count`: the next one in a run of all tests; else the
 * next one near either end, where headers and checksums are, and one of `step` between. */
static size_t next_position(size_t at, size_t count, size_t near, size_t step) {
    const size_t next = at + 1, last = count > near ? count - near : 0;
    if (is_deep_run() || next < near || next >= last)
        return next;
    return last - next < step ? last : at + step;
}

/* The steps share no factor with 8: so bits at all places of a byte are flipped. */
enum { PREFIXES_NEAR = 48, PREFIX_STEP = 11, BITS_NEAR = 8 * 24, BIT_STEP = 21 };

static size_t next_prefix(size_t cut, size_t in_bytes) {
    return next_position(cut, in_bytes, PREFIXES_NEAR, PREFIX_STEP);
}

size_t prefixes_tried(size_t in_bytes) {
    size_t tried = 0;
    for (size_t cut = 0; cut < in_bytes; cut = next_prefix(cut, in_bytes))
        tried++;
    return tried;
}

size_t prefixes_taken(cogpu_decode *codec, const uint8_t *in, size_t in_bytes,
                      const uint8_t *expected, size_t bytes) {
    size_t taken = 0;
    for (size_t cut = 0; cut < in_bytes; cut = next_prefix(cut, in_bytes)) {
        decoded result = decode(codec, in, cut, bytes);
        taken += result.status == COGPU_OK;
        if (result.status == COGPU_OK) {
            CHECK(result.got <= bytes);
            CHECK(memcmp(result.out, expected, result.got) == 0);
        } else {
            CHECK(result.status == COGPU_CORRUPT || result.status == COGPU_UNSUPPORTED);
        }
        free(result.out);
    }
    return taken;
}

size_t flips_unnoticed_in(cogpu_decode *codec, const uint8_t *in, size_t in_bytes,
                          const uint8_t *expected, size_t bytes, size_t capacity) {
    const size_t bits = 8 * in_bytes;
    size_t unnoticed = 0;
    uint8_t *flipped = malloc(in_bytes);
    memcpy(flipped, in, in_bytes);
    for (size_t bit = 0; bit < bits; bit = next_position(bit, bits, BITS_NEAR, BIT_STEP)) {
        flipped[bit / 8] ^= (uint8_t)(1u << bit % 8);
        decoded result = decode(codec, flipped, in_bytes, capacity);
        if (result.status == COGPU_OK) {
            CHECK(result.got <= capacity);
            unnoticed += result.got == bytes && memcmp(result.out, expected, bytes) != 0;
        } else {
            CHECK(result.status == COGPU_CORRUPT || result.status == COGPU_UNSUPPORTED);
            CHECK(result.error.message[0] != '\0');
        }
        free(result.out);
        flipped[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(flipped);
    return unnoticed;
}

size_t flips_unnoticed(cogpu_decode *codec, const uint8_t *in, size_t in_bytes,
                       const uint8_t *expected, size_t bytes) {
    return flips_unnoticed_in(codec, in, in_bytes, expected, bytes, bytes);
}

int longer_than_block(cogpu_decode *codec, const uint8_t *in, size_t in_bytes,
                      const uint8_t *expected, size_t bytes, size_t count) {
    const size_t step = is_deep_run() ? 1 : 3;
    int same = 1;
    for (size_t i = 0; i < count && bytes > 0; i += step)
        same &= decodes_to(codec, in, in_bytes, expected, bytes * i / count, bytes * i / count);
    for (size_t less = 1; less < 20 && less <= bytes; less += 2 * step - 1)
        same &= decodes_to(codec, in, in_bytes, expected, bytes - less, bytes - less);
    return same;
}

int rest_ignored(cogpu_decode *codec, const uint8_t *in, size_t in_bytes, const uint8_t *expected,
                 size_t capacity, size_t kept) {
    uint8_t *damaged = malloc(in_bytes);
    memcpy(damaged, in, in_bytes);
    memset(damaged + kept, 0xFF, in_bytes - kept);
    int same = decodes_to(codec, in, kept, expected, capacity, capacity) &&
               decodes_to(codec, damaged, in_bytes, expected, capacity, capacity);
    free(damaged);
    return same;
}

void fill_bytes(uint8_t *bytes, size_t count, unsigned spread, size_t period) {
    uint32_t state = 12345;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        const bool repeats = period && i % period < period / 2;
        bytes[i] = (uint8_t)(repeats ? i / period : (state >> 16) % spread);
    }
}
