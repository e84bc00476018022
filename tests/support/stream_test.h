/*
 * Streamed decoding of a block, for tests and fuzz targets: decodes it in small parts from small
 * parts of the input, as cpu/stream_decode.c does, and compares with decoding it at once.
 */
#ifndef COGPU_TESTS_STREAM_TEST_H
#define COGPU_TESTS_STREAM_TEST_H

#include "codec/codec.h"

#include <stdlib.h>
#include <string.h>

/* Each part of the input is a heap block of its exact size, so that sanitizers see reads beyond it.
 */
struct test_feed {
    cogpu_feed feed;
    const uint8_t *next;
    size_t part;
    uint8_t *copy;
};

/* True if streamed decoding gives the same as decoding at once; each call uses other sizes of
 * parts. Unless `strict`, a damaged stream may be refused by one and accepted by the other, since
 * the libraries differ. */
int parts_give(const cogpu_stream_codec *codec, const cogpu_block_format *format, const uint8_t *in,
               size_t in_bytes, cogpu_status status, const uint8_t *whole, size_t bytes,
               size_t out_bytes, bool strict);

#endif
