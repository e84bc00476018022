/*
 * Inflate (RFC 1951) that can begin at any block of a stream, before the 32 KiB of output are known
 * that matches may refer to (the window): threads decode one stream from several places at once.
 *
 *   output       symbols, while the window is not known      bytes, once it is
 *   a symbol     0..255: a byte     256 + k (a marker): byte k of the window
 *
 * A match copies symbols as it copies bytes, markers included, so decoding needs nothing more than
 * a window that is filled with its own markers. Later cogpu_inflate_resolve replaces them. This is
 * the method of pugz and rapidgzip (Kerbiriou, Chikhi 2019; Knespel, Brunst 2023).
 *
 * Where blocks begin is guessed: cogpu_inflate_search returns the next bit position that looks like
 * the header of a block with dynamic Huffman codes. A guess is right if the blocks before it end
 * there, which the caller finds out by decoding them.
 *
 * Stricter than other decoders: codes that they may accept or refuse (incomplete ones, but for a
 * single distance) are refused here. A caller gives such streams to another decoder.
 */
#ifndef COGPU_CODEC_INFLATE_CHUNK_H
#define COGPU_CODEC_INFLATE_CHUNK_H

#include "codec/inflate_code.h"

enum {
    INFLATE_WINDOW = 32 << 10,
    INFLATE_SYMBOLS = 256 + INFLATE_WINDOW,
    /* Space after the end of output: a match may be written up to here, and copies overrun it. */
    INFLATE_SLACK = 512
};

typedef enum cogpu_inflate_result {
    INFLATE_FULL,     /* the next token may not fit into the output */
    INFLATE_BOUNDARY, /* between two blocks, at or after the bit position `stop_bit` */
    INFLATE_END,      /* after the last block; the next byte is the first after the stream */
    INFLATE_BAD       /* damaged, cut off, or of a kind that is refused */
} cogpu_inflate_result;

/* Starts at a bit position; `stop_bit` may be set at any time. Zeroed memory will do. */
void cogpu_inflate_start(cogpu_inflater *inflater, uint64_t stop_bit);
/* Bit position of the next bit. */
uint64_t cogpu_inflate_position(const cogpu_inflater *inflater);

/* Decodes to *out, which advances, until one of the results. Matches may reach back to `history`.
 * Up to INFLATE_SLACK bytes or symbols after `end` are overwritten, and *out may lie there. */
cogpu_inflate_result cogpu_inflate_bytes(cogpu_inflater *inflater, const uint8_t *history,
                                         uint8_t **out, const uint8_t *end);
cogpu_inflate_result cogpu_inflate_symbols(cogpu_inflater *inflater, const uint16_t *history,
                                           uint16_t **out, const uint16_t *end);

/* A window of markers, INFLATE_WINDOW symbols. */
void cogpu_inflate_fill_markers(uint16_t *window);
/* Symbols to bytes. `byte_of` has INFLATE_SYMBOLS: the bytes 0 to 255, then the window. */
void cogpu_inflate_resolve(const uint16_t *symbols, size_t count, const uint8_t *byte_of,
                           uint8_t *to);

/* Adler-32 (RFC 1950, 9) of bytes that follow others: its sums begin with 0 instead of 1 and 0. */
uint32_t cogpu_inflate_adler32(const uint8_t *bytes, size_t count);

/* The first bit from `bit` on, below `end_bit`, where a block with dynamic codes may begin that is
 * not the last one, and whose header lies in `bytes`. UINT64_MAX if there is none. Positions count
 * from the first of the bytes. */
uint64_t cogpu_inflate_search(const uint8_t *in, size_t bytes, uint64_t bit, uint64_t end_bit);

#endif
