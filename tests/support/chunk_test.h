/*
 * Inflate from any block on (codec/inflate_chunk.h), for tests and the fuzz target: decodes a
 * stream from its start, then from block starts with an unknown window, and compares.
 */
#ifndef COGPU_TESTS_CHUNK_TEST_H
#define COGPU_TESTS_CHUNK_TEST_H

#include "codec/inflate_chunk.h"

/* A deflate stream (RFC 1951) without the header of RFC 1950. The input comes in parts, which are
 * heap blocks of their exact size, so that sanitizers see reads beyond them. */
struct chunk_stream {
    const uint8_t *in;
    size_t bytes, part; /* part: of the input, in bytes */
    size_t room;        /* output between two calls */
};

enum { BOUNDARIES_MAX = 4096 };

struct chunk_output {
    uint8_t *bytes; /* of the caller */
    size_t capacity, count;
    uint64_t end_bit;
    cogpu_inflate_result result;         /* FULL: more than `capacity` bytes */
    uint64_t boundaries[BOUNDARIES_MAX]; /* where blocks begin, and the output before */
    size_t offsets[BOUNDARIES_MAX];
    size_t boundary_count;
};

/* Decodes the stream as bytes. */
void decode_from_start(const struct chunk_stream *stream, struct chunk_output *output);

/* Decodes symbols from a bit on, resolves them by the window before byte `offset` of `output`, and
 * is true if that gives the rest of it, with the same end. */
bool symbols_give_rest(const struct chunk_stream *stream, uint64_t bit, size_t offset,
                       const struct chunk_output *output);

/* Decodes symbols from a bit where no block may begin, up to `limit`; returns their number. */
size_t decode_from_anywhere(const struct chunk_stream *stream, uint64_t bit, size_t limit);

#endif
