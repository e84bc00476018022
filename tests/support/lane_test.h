/*
 * The interleaved inflate beside libdeflate, and zlib if the build has it, for tests and fuzzing:
 * a queue of streams goes through the lanes, and each result is compared at once. Input and output
 * have their exact sizes; a block's memory is made when a lane takes it and freed when it is done,
 * so that sanitizers and guard pages see each access beyond them.
 */
#ifndef COGPU_TESTS_LANE_TEST_H
#define COGPU_TESTS_LANE_TEST_H

#include "codec/inflate_lanes.h"

/* Whether this build and this CPU have the decoder. */
bool lanes_can_run(void);

#if HAVE_INFLATE_LANES

/* Where the memory of blocks is. */
enum lane_memory {
    LANE_HEAP,         /* of the exact size */
    LANE_BEFORE_GUARD, /* ends where a page begins that cannot be accessed */
    LANE_AFTER_GUARD,  /* begins where such a page ends */
    LANE_MEMORIES
};

typedef struct lane_stream {
    const uint8_t *in;
    size_t in_bytes, capacity;
    /* results */
    bool is_done, is_decoded, library_decodes;
    size_t got;
} lane_stream;

/*
 * Decodes the streams in lanes. NULL, or which rule is broken:
 *
 * - What lanes decode, libdeflate decodes to the same bytes; also if the Adler-32 is wrong, which
 *   would hide that damaged data is taken for valid.
 * - What libdeflate and zlib decode, lanes decode. Of these two zlib is the stricter one, but for
 *   the window size of the header, the precode, and what is left of a code with a single codeword.
 * - Each stream is done once.
 */
const char *lanes_break_rule(lane_stream *streams, uint32_t count, bool is_mostly_literals,
                             enum lane_memory place);

/* A zlib stream of raw deflate data, followed by the rest of the data, with a right Adler-32 if
 * libdeflate decodes it to at most `capacity` bytes. To be freed. */
uint8_t *wrap_deflate(const uint8_t *deflate, size_t bytes, size_t capacity, size_t *wrapped);

/* The length that libdeflate decodes a zlib stream to, `otherwise` if it does not. */
size_t lane_stream_length(const uint8_t *in, size_t in_bytes, size_t capacity, size_t otherwise);

/* A zlib stream by libdeflate. To be freed. */
uint8_t *compress_by_libdeflate(const uint8_t *bytes, size_t count, int level, size_t *compressed);

#endif
#endif
