/*
 * Deflate (compression 8 and 32946): zlib streams (RFC 1950, RFC 1951) by libdeflate.
 * codec_deflate_zlib.c replaces this file if libdeflate is missing.
 *
 * Decoding by one of three decoders. Blocks that a thread has several of go to the interleaved one
 * (inflate_lanes.c), where that is faster: see `lanes_suit`. All others, and what it refuses, go to
 * libdeflate.
 *
 * libdeflate reads the whole stream, up to its Adler-32, which must match. If the stream is longer
 * than the block, the streaming decoder decodes the block's bytes and no checksum is compared:
 * libdeflate drops the last token if it does not fit.
 *
 * Encoding: `level` is libdeflate's, but our own encoder (deflate_encode.c) takes half the time
 * where it compresses as well. Higher levels of libdeflate search longer for matches; measured and
 * predicted rasters, which are noisy, have few. Where there are many, as in land cover classes,
 * libdeflate wins. So both encode a sample of each block, and the better one encodes the block.
 * Level 1 and levels above the default always use libdeflate.
 */
#include "base/bytes.h"
#include "base/math.h"
#include "codec/codec.h"
#include "codec/deflate_encode.h"
#include "codec/deflate_errors.h"
#include "codec/inflate_lanes.h"

#include <libdeflate.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

void cogpu_deflate_close(cogpu_codec_state *state) {
    libdeflate_free_decompressor(state->deflate);
    for (size_t level = 0; level <= DEFLATE_LEVEL_MAX; level++)
        libdeflate_free_compressor(state->deflate_encoders[level]);
    cogpu_release(state->deflate_own);
    cogpu_release(state->deflate_lanes);
}

cogpu_status cogpu_decode_deflate(cogpu_codec_state *state, const cogpu_block_format *format,
                                  const uint8_t *in, size_t in_bytes, uint8_t *out,
                                  size_t out_bytes, size_t *got, cogpu_error *error) {
    (void)format; /* unused in builds without a streaming decoder */
    if (!state->deflate)
        state->deflate = libdeflate_alloc_decompressor();
    if (!state->deflate)
        return deflate_out_of_memory("decoder", error);
    size_t used;
    switch (
        libdeflate_zlib_decompress_ex(state->deflate, in, in_bytes, out, out_bytes, &used, got)) {
    case LIBDEFLATE_SUCCESS:
        return COGPU_OK;
    case LIBDEFLATE_INSUFFICIENT_SPACE:
#if COGPU_HAVE_ISAL || COGPU_HAVE_ZLIB
        return cogpu_stream_decode_whole(&cogpu_stream_deflate, format, in, in_bytes, out,
                                         out_bytes, got, error);
#else
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "the zlib stream decodes to more than the %zu bytes of the block; a "
                          "build with ISA-L or zlib reads it",
                          out_bytes);
#endif
    default:
        return deflate_is_corrupt(error);
    }
}

/* ---- which decoder -------------------------------------------------------------------------- */

/*
 * The interleaved decoder copies a few bytes a step, libdeflate as many as a match has. Measured on
 * 34 rasters, the former is faster up to a ratio of 3.3 to 3.5 of decoded to stored bytes. A small
 * block is mostly headers, and the bytes at its ends, which are decoded token by token.
 */
enum { RATIO_TIMES_2 = 7, LANE_BYTES_MIN = 4 << 10 };

/* COGPU_INFLATE is "lanes" or "library", for tests and measurements. */
static enum { BY_RATIO, ALWAYS_LANES, NEVER_LANES } use_of_lanes;
static pthread_once_t choose_once = PTHREAD_ONCE_INIT;

static void choose_use_of_lanes(void) {
    const char *text = getenv("COGPU_INFLATE");
    if (!cogpu_inflate_lanes_run_here() || (text && strcmp(text, "library") == 0))
        use_of_lanes = NEVER_LANES;
    else if (text && strcmp(text, "lanes") == 0)
        use_of_lanes = ALWAYS_LANES;
}

static bool can_use_lanes(void) {
    pthread_once(&choose_once, choose_use_of_lanes);
    return use_of_lanes != NEVER_LANES;
}

static bool lanes_suit(size_t in_bytes, size_t out_bytes) {
    return use_of_lanes == ALWAYS_LANES ||
           (out_bytes >= LANE_BYTES_MIN && out_bytes / RATIO_TIMES_2 < in_bytes / 2);
}

static cogpu_status decode_in_lanes(cogpu_codec_state *state, cogpu_lane_queue *queue,
                                    cogpu_error *error) {
    return cogpu_inflate_lanes(&state->deflate_lanes, queue, error);
}

const cogpu_lane_codec cogpu_lanes_deflate = {
    .is_available = can_use_lanes, .suits = lanes_suit, .decode = decode_in_lanes};

/* ---- encoding ------------------------------------------------------------------------------- */

enum {
    FAST_LEVEL = 1,
    ZLIB_BYTES = 2 + 4, /* header and Adler-32 (RFC 1950 2.2) */

    SAMPLE_PARTS = 4, /* spread over the block: part of it may be nodata */
    PART_BYTES_MAX = 4 << 10,
    BLOCK_TO_PART = 128,           /* ratio of a block to a part of its sample */
    SAMPLED_BLOCK_MIN = 128 << 10, /* a sample of a smaller block says too little */
    TOLERATED_LOSS = 80,           /* our output may be larger by 1/80 */
    SEARCH_PAYS = 4                /* with this compression ratio every match counts */
};

static cogpu_status encode_by_libdeflate(cogpu_codec_state *state, int level, const uint8_t *in,
                                         size_t in_bytes, uint8_t *out, size_t out_bytes,
                                         size_t *got, cogpu_error *error) {
    void **encoder = &state->deflate_encoders[level];
    if (!*encoder)
        *encoder = libdeflate_alloc_compressor(level);
    if (!*encoder)
        return deflate_out_of_memory("encoder", error);
    *got = libdeflate_zlib_compress(*encoder, in, in_bytes, out, out_bytes);
    return *got ? COGPU_OK
                : cogpu_fail(error, COGPU_LIMIT_EXCEEDED,
                             "the zlib stream is larger than its buffer");
}

static cogpu_status encode_own(cogpu_codec_state *state, const uint8_t *in, size_t in_bytes,
                               uint8_t *out, size_t *got, cogpu_error *error) {
    if (!state->deflate_own)
        state->deflate_own = cogpu_allocate(cogpu_deflate_memory_bytes);
    if (!state->deflate_own)
        return deflate_out_of_memory("encoder", error);
    out[0] = 0x78; /* deflate, a window of 32 KiB */
    out[1] = 0x9C; /* default compression */
    const size_t bytes = cogpu_deflate_encode(state->deflate_own, in, in_bytes, out + 2);
    const uint32_t adler = libdeflate_adler32(1, in, in_bytes);
    store_little(__builtin_bswap32(adler), out + 2 + bytes, 4);
    *got = bytes + ZLIB_BYTES;
    return COGPU_OK;
}

/* Returns the sample's bytes. */
static size_t copy_deflate_sample(const uint8_t *in, size_t in_bytes, uint8_t *sample) {
    const size_t step = in_bytes / SAMPLE_PARTS, part = in_bytes / BLOCK_TO_PART;
    const size_t part_bytes = min_size(part, PART_BYTES_MAX);
    for (size_t i = 0; i < SAMPLE_PARTS; i++)
        memcpy(sample + i * part_bytes, in + i * step + (step - part_bytes) / 2, part_bytes);
    return SAMPLE_PARTS * part_bytes;
}

/* The sample is not in the working memory of the state: LERC keeps its blob there. */
static cogpu_status compare_on_sample(cogpu_codec_state *state, int level, const uint8_t *in,
                                      size_t in_bytes, uint8_t *out, size_t out_bytes,
                                      bool *own_is_better, cogpu_error *error) {
    uint8_t sample[SAMPLE_PARTS * PART_BYTES_MAX];
    const size_t bytes = copy_deflate_sample(in, in_bytes, sample);
    size_t theirs, own = 0;
    *own_is_better = false;
    TRY(encode_by_libdeflate(state, level, sample, bytes, out, out_bytes, &theirs, error));
    if (theirs < bytes / SEARCH_PAYS)
        return COGPU_OK;
    TRY(encode_own(state, sample, bytes, out, &own, error));
    *own_is_better = own <= theirs + theirs / TOLERATED_LOSS;
    return COGPU_OK;
}

static uint64_t bound_deflate(const cogpu_encoding *encoding, uint64_t in_bytes) {
    (void)encoding;
    const uint64_t theirs = libdeflate_zlib_compress_bound(NULL, (size_t)in_bytes);
    const uint64_t own = cogpu_deflate_bound(in_bytes) + ZLIB_BYTES;
    return max_u64(own, theirs);
}

static cogpu_status encode_deflate(cogpu_codec_state *state, const cogpu_encoding *encoding,
                                   const uint8_t *in, size_t in_bytes, uint8_t *out,
                                   size_t out_bytes, size_t *got, cogpu_error *error) {
    const int level = encoding->level;
    bool own_is_better = false;
    if (level > FAST_LEVEL && level <= DEFLATE_LEVEL_DEFAULT && in_bytes >= SAMPLED_BLOCK_MIN &&
        out_bytes >=
            bound_deflate(encoding, in_bytes)) /* our own encoder does not check its buffer */
        TRY(compare_on_sample(state, level, in, in_bytes, out, out_bytes, &own_is_better, error));
    return own_is_better
               ? encode_own(state, in, in_bytes, out, got, error)
               : encode_by_libdeflate(state, level, in, in_bytes, out, out_bytes, got, error);
}

const cogpu_encoder cogpu_encoder_deflate = {.encode = encode_deflate, .bound = bound_deflate};
