/*
 * Writes deflate streams bit by bit (RFC 1951), for tests: stored blocks, and tokens under codes of
 * any lengths. Nothing is checked, so malformed streams can be written as well.
 */
#ifndef COGPU_TESTS_DEFLATE_WRITER_H
#define COGPU_TESTS_DEFLATE_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct deflate_writer {
    uint8_t *out;
    uint32_t bytes, bit_count;
    uint64_t bits;
};

void put_bits(struct deflate_writer *w, uint32_t bits, uint32_t count);

struct huffman {
    uint8_t lengths[288];
    uint32_t codes[288]; /* first bit lowest */
};

void assign_codes(struct huffman *h);

struct token {
    uint32_t length, value; /* length 0: a literal */
};

uint32_t base_of_length(uint32_t symbol, uint32_t *extra);

uint32_t base_of_distance(uint32_t symbol, uint32_t *extra);

void put_tokens(struct deflate_writer *w, const struct token *tokens, uint32_t count,
                const struct huffman *literals, const struct huffman *distances);

/* Header of a deflate block with dynamic codes (RFC 1951, 3.2.7). */
void put_header(struct deflate_writer *w, const struct huffman *literals, uint32_t literal_count,
                const struct huffman *distances, uint32_t distance_count);

enum kind { STORED, FIXED, DYNAMIC, ANY };

void put_stored(struct deflate_writer *w, bool is_last, const uint8_t *data, uint32_t bytes);

void put_deflate_block(struct deflate_writer *w, bool is_last, enum kind kind,
                       const struct token *tokens, uint32_t count, uint32_t limit);

uint32_t adler(const uint8_t *data, uint32_t bytes);

struct deflate_writer begin_stream(uint32_t capacity);

void end_stream(struct deflate_writer *w, uint32_t sum);

#endif
