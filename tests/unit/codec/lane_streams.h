/* Streams for the suites of the interleaved inflate, and their checks. */
#ifndef COGPU_TESTS_LANE_STREAMS_H
#define COGPU_TESTS_LANE_STREAMS_H

#include "support/deflate_writer.h"
#include "support/draw.h"
#include "support/lane_test.h"
#include "support/test.h"

#if HAVE_INFLATE_LANES

/* ---- streams: to be freed by free_stream ---- */

enum { CONTENT_MAX = 140000, DEFLATE_MAX = 400000 };

/* A stream that is compressed by libdeflate, and has a block of the exact size. */
lane_stream content_stream(const uint8_t *content, size_t bytes, int level);

/* Written deflate data, with zlib's header and a right Adler-32. Frees the data. The block has the
 * exact size if libdeflate decodes the stream, else `capacity` bytes. */
lane_stream written_stream(struct deflate_writer *writer, size_t capacity);

struct deflate_writer begin_deflate(void);
/* Zero bits up to the next byte. */
void end_deflate(struct deflate_writer *writer);

void free_stream(lane_stream *stream);

/* Two streams beside which others are decoded: one hardly repeats, one does. */
lane_stream neighbour_stream(int number);
void free_neighbours(void);

/* A block with dynamic codes of given lengths, up to symbol 287 and 31 if they are used. */
void put_block_of_codes(struct deflate_writer *writer, bool is_last, struct huffman *literals,
                        struct huffman *distances, const struct token *tokens, uint32_t count);

/* ---- checks ---- */

enum outcome {
    DECODED, /* by lanes and libdeflate */
    REFUSED, /* by both */
    LEFT     /* to libdeflate, which decodes it */
};

/* Whether no rule of lane_test.h is broken by these streams, in both variants and all kinds of
 * memory. */
bool lanes_agree(lane_stream *streams, uint32_t count);

/* The same, and what becomes of a stream: alone, and beside others in each lane. It must be the
 * same everywhere, and the others are decoded. */
enum outcome outcome_of(const lane_stream *stream);

/* In less time: between two others, alone, and in all lanes, so that its own ends limit the steps.
 */
enum outcome quick_outcome_of(const lane_stream *stream);

#endif
#endif
