/*
 * What the tests of the codecs share: decoding from and into heap blocks of the exact sizes, so
 * that the address sanitizer sees each byte read or written outside of them; and the two ways to
 * damage a stream.
 */
#ifndef COGPU_TESTS_CODEC_TEST_H
#define COGPU_TESTS_CODEC_TEST_H

#include "codec/codec.h"
#include "stream_test.h"
#include "test.h"

#include <stdlib.h>

typedef struct decoded {
    cogpu_status status;
    size_t got;
    uint8_t *out; /* of the caller, to free */
    cogpu_error error;
} decoded;

static cogpu_codec_state codec_state;

/* The stream of the codec with that function; NULL without. */
static inline const cogpu_stream_codec *stream_of(cogpu_decode *codec) {
    cogpu_codec info;
    for (uint32_t i = 0; cogpu_codec_info(i, &info) == COGPU_OK; i++) {
        const cogpu_codec_row *row = cogpu_codec_find(info.compression);
        if (row->decode == codec)
            return row->stream;
    }
    return NULL;
}

/* Decodes as a whole and, where the codec can, by parts, which must come to the same. */
static inline decoded decode_strictly(cogpu_decode *codec, const uint8_t *in, size_t in_bytes,
                                      size_t out_bytes, bool strict) {
    const cogpu_block_format format = {0};
    decoded result = {.out = malloc(out_bytes ? out_bytes : 1)};
    uint8_t *copy = malloc(in_bytes ? in_bytes : 1);
    memcpy(copy, in, in_bytes);
    /* A block of no bytes is a pointer that nobody may follow: one past the end. */
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

static inline decoded decode(cogpu_decode *codec, const uint8_t *in, size_t in_bytes,
                             size_t out_bytes) {
    return decode_strictly(codec, in, in_bytes, out_bytes, false);
}

static inline cogpu_status decode_status(cogpu_decode *codec, const uint8_t *in, size_t in_bytes,
                                         size_t out_bytes) {
    decoded result = decode(codec, in, in_bytes, out_bytes);
    free(result.out);
    return result.status;
}

/* Whether the stream decodes to these bytes exactly, into a block of `out_bytes`. */
static inline int decodes_to(cogpu_decode *codec, const uint8_t *in, size_t in_bytes,
                             const uint8_t *expected, size_t bytes, size_t out_bytes) {
    decoded result = decode_strictly(codec, in, in_bytes, out_bytes, true);
    int same = result.status == COGPU_OK && result.got == bytes &&
               memcmp(result.out, expected, bytes) == 0;
    free(result.out);
    return same;
}

/* Of each prefix of the stream: how many were taken for whole. What is taken must be a prefix of
 * the content. */
static inline size_t prefixes_taken(cogpu_decode *codec, const uint8_t *in, size_t in_bytes,
                                    const uint8_t *expected, size_t bytes) {
    size_t taken = 0;
    for (size_t cut = 0; cut < in_bytes; cut++) {
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

/* Of each stream with one bit turned: how many decoded to as many other bytes without a complaint,
 * in a block of `room`. With more room than `bytes`, a stream that the flip makes longer is decoded
 * to its end, where its checksum is. */
static inline size_t flips_unnoticed_in(cogpu_decode *codec, const uint8_t *in, size_t in_bytes,
                                        const uint8_t *expected, size_t bytes, size_t room) {
    size_t unnoticed = 0;
    uint8_t *flipped = malloc(in_bytes);
    memcpy(flipped, in, in_bytes);
    for (size_t bit = 0; bit < 8 * in_bytes; bit++) {
        flipped[bit / 8] ^= (uint8_t)(1u << bit % 8);
        decoded result = decode(codec, flipped, in_bytes, room);
        if (result.status == COGPU_OK) {
            CHECK(result.got <= room);
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

static inline size_t flips_unnoticed(cogpu_decode *codec, const uint8_t *in, size_t in_bytes,
                                     const uint8_t *expected, size_t bytes) {
    return flips_unnoticed_in(codec, in, in_bytes, expected, bytes, bytes);
}

/* Whether a block that is smaller than the stream's content gets its bytes: of `count` sizes, and
 * of a few bytes less than all. */
static inline int longer_than_block(cogpu_decode *codec, const uint8_t *in, size_t in_bytes,
                                    const uint8_t *expected, size_t bytes, size_t count) {
    int same = 1;
    for (size_t i = 0; i < count && bytes > 0; i++)
        same &= decodes_to(codec, in, in_bytes, expected, bytes * i / count, bytes * i / count);
    for (size_t less = 1; less < 20 && less <= bytes; less++)
        same &= decodes_to(codec, in, in_bytes, expected, bytes - less, bytes - less);
    return same;
}

/* Whether a block of `room` gets its bytes where the stream, which is longer, is cut off after
 * `kept` bytes, or damaged from there on. */
static inline int rest_ignored(cogpu_decode *codec, const uint8_t *in, size_t in_bytes,
                               const uint8_t *expected, size_t room, size_t kept) {
    uint8_t *damaged = malloc(in_bytes);
    memcpy(damaged, in, in_bytes);
    memset(damaged + kept, 0xFF, in_bytes - kept);
    int same = decodes_to(codec, in, kept, expected, room, room) &&
               decodes_to(codec, damaged, in_bytes, expected, room, room);
    free(damaged);
    return same;
}

/* The same bytes in every run. `spread` is how many values they take; of each `period` bytes the
 * first half repeats, so that there is something to compress. */
static inline void fill_bytes(uint8_t *bytes, size_t count, unsigned spread, size_t period) {
    uint32_t state = 12345;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        const bool repeats = period && i % period < period / 2;
        bytes[i] = (uint8_t)(repeats ? i / period : (state >> 16) % spread);
    }
}

#endif
