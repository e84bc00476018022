/*
 * What the tests of the codecs share: decoding from and into heap blocks of the exact sizes, so
 * that the address sanitizer sees each byte read or written outside of them; and the two ways to
 * damage a stream.
 */
#ifndef COGPU_TESTS_CODEC_TEST_H
#define COGPU_TESTS_CODEC_TEST_H

#include "codec/codec.h"
#include "support/stream_test.h"
#include "support/test.h"

#include <stdlib.h>

typedef struct decoded {
    cogpu_status status;
    size_t got;
    uint8_t *out; /* of the caller, to free */
    cogpu_error error;
} decoded;

extern cogpu_codec_state codec_state;

/* The stream of the codec with that function; NULL without. */
const cogpu_stream_codec *stream_of(cogpu_decode *codec);

/* Decodes as a whole and, where the codec can, by parts, which must come to the same. */
decoded decode_strictly(cogpu_decode *codec, const uint8_t *in, size_t in_bytes, size_t out_bytes,
                        bool strict);

decoded decode(cogpu_decode *codec, const uint8_t *in, size_t in_bytes, size_t out_bytes);

cogpu_status decode_status(cogpu_decode *codec, const uint8_t *in, size_t in_bytes,
                           size_t out_bytes);

/* Whether the stream decodes to these bytes exactly, into a block of `out_bytes`. */
int decodes_to(cogpu_decode *codec, const uint8_t *in, size_t in_bytes, const uint8_t *expected,
               size_t bytes, size_t out_bytes);

/* Of the prefixes of the stream: how many were taken for whole. What is taken must be a prefix of
 * the content. A run of all tests (COGPU_TEST_DEEP) tries each prefix; others try those that end
 * near either end of the stream, and a sample of the rest. */
size_t prefixes_taken(cogpu_decode *codec, const uint8_t *in, size_t in_bytes,
                      const uint8_t *expected, size_t bytes);

/* How many prefixes of a stream of so many bytes that tries. */
size_t prefixes_tried(size_t in_bytes);

/* Of the streams with one bit flipped: how many decoded to as many other bytes without a complaint,
 * in a block of `capacity`. Each bit in a run of all tests; others flip those near either end, and
 * a sample of the rest. With more capacity than `bytes`, a stream that the flip makes longer is
 * decoded to its end, where its checksum is. */
size_t flips_unnoticed_in(cogpu_decode *codec, const uint8_t *in, size_t in_bytes,
                          const uint8_t *expected, size_t bytes, size_t capacity);

size_t flips_unnoticed(cogpu_decode *codec, const uint8_t *in, size_t in_bytes,
                       const uint8_t *expected, size_t bytes);

/* Whether a block that is smaller than the stream's content gets its bytes: of `count` sizes, and
 * of a few bytes less than all; a sample of them unless this is a run of all tests. */
int longer_than_block(cogpu_decode *codec, const uint8_t *in, size_t in_bytes,
                      const uint8_t *expected, size_t bytes, size_t count);

/* Whether a block of `capacity` gets its bytes where the stream, which is longer, is cut off after
 * `kept` bytes, or damaged from there on. */
int rest_ignored(cogpu_decode *codec, const uint8_t *in, size_t in_bytes, const uint8_t *expected,
                 size_t capacity, size_t kept);

/* The same bytes in every run. `spread` is how many values they take; of each `period` bytes the
 * first half repeats, so that there is something to compress. */
void fill_bytes(uint8_t *bytes, size_t count, unsigned spread, size_t period);

#endif
