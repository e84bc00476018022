/*
 * Takes a block as a zlib stream, hands on its bytes, and makes such a stream, by libdeflate.
 * codec_deflate_zlib.c does the same where libdeflate is missing.
 *
 * Decoding: the whole stream is read, to its Adler-32, which must match.
 *
 * Encoding: `level` is libdeflate's, or a faster one that does as well. Its levels grow by
 * searching longer for matches, of which the noise of a measured and predicted raster has few:
 * there the faster levels come within a percent of the slower ones, and often below them. Where
 * they do not, as with classes, they lose a tenth and more. So each block is asked: a sample of it
 * is encoded at each level in question. Levels above the usual one are taken at their word.
 */
#include "codec/codec.h"

#include <libdeflate.h>
#include <string.h>

void cogpu_deflate_close(cogpu_codec_state *state) {
    libdeflate_free_decompressor(state->deflate);
    for (size_t level = 0; level <= DEFLATE_LEVEL_MAX; level++)
        libdeflate_free_compressor(state->deflate_encoders[level]);
}

cogpu_status cogpu_decode_deflate(cogpu_codec_state *state, const cogpu_block_format *format,
                                  const uint8_t *in, size_t in_bytes, uint8_t *out,
                                  size_t out_bytes, size_t *got, cogpu_error *error) {
    (void)format;
    if (!state->deflate)
        state->deflate = libdeflate_alloc_decompressor();
    if (!state->deflate)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for the deflate decoder");
    size_t used;
    switch (
        libdeflate_zlib_decompress_ex(state->deflate, in, in_bytes, out, out_bytes, &used, got)) {
    case LIBDEFLATE_SUCCESS:
        return COGPU_OK;
    case LIBDEFLATE_INSUFFICIENT_SPACE:
        return cogpu_fail(error, COGPU_CORRUPT,
                          "the zlib stream decodes to more than the %zu bytes of the block",
                          out_bytes);
    default:
        return cogpu_fail(error, COGPU_CORRUPT,
                          "the zlib stream of %zu bytes is damaged, cut off, or fails its Adler-32",
                          in_bytes);
    }
}

enum {
    SAMPLE_PIECES = 4, /* from all over the block: a part of it may be nodata */
    PIECE_BYTES = 4 << 10,
    SAMPLE_BYTES = SAMPLE_PIECES * PIECE_BYTES,
    SAMPLED_BLOCK_MIN = 8 * SAMPLE_BYTES, /* below it, sampling takes longer than it saves */
    SEARCH_PAYS = 8 /* shrunk by so much, the block is of a kind whose every match counts */
};

/* Levels that may stand in for slower ones, the fastest first, and by how many parts in 10000 a
 * sample may grow: so that all in all blocks grow by less than a percent. */
static const struct stand_in {
    int level;
    size_t loss;
} stand_ins[] = {{1, 50}, {4, 100}};

enum { STAND_INS = sizeof stand_ins / sizeof *stand_ins, USUAL_LEVEL = 6 };

static cogpu_status encode_at(cogpu_codec_state *state, int level, const uint8_t *in,
                              size_t in_bytes, uint8_t *out, size_t out_bytes, size_t *got,
                              cogpu_error *error) {
    void **encoder = &state->deflate_encoders[level];
    if (!*encoder)
        *encoder = libdeflate_alloc_compressor(level);
    if (!*encoder)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for the deflate encoder");
    *got = libdeflate_zlib_compress(*encoder, in, in_bytes, out, out_bytes);
    return *got ? COGPU_OK
                : cogpu_fail(error, COGPU_LIMIT, "the zlib stream is larger than its room");
}

static void take_sample(const uint8_t *in, size_t in_bytes, uint8_t *sample) {
    const size_t step = in_bytes / SAMPLE_PIECES;
    for (size_t i = 0; i < SAMPLE_PIECES; i++)
        memcpy(sample + i * PIECE_BYTES, in + i * step + (step - PIECE_BYTES) / 2, PIECE_BYTES);
}

/* The sample is not in the state's working memory: LERC has what is to be packed there. */
static cogpu_status choose_level(cogpu_codec_state *state, int asked, const uint8_t *in,
                                 size_t in_bytes, uint8_t *out, size_t out_bytes, int *level,
                                 cogpu_error *error) {
    uint8_t sample[SAMPLE_BYTES];
    size_t asked_bytes = 0, bytes = 0;
    take_sample(in, in_bytes, sample);
    *level = asked;
    TRY(encode_at(state, asked, sample, SAMPLE_BYTES, out, out_bytes, &asked_bytes, error));
    if (asked_bytes < SAMPLE_BYTES / SEARCH_PAYS)
        return COGPU_OK;
    for (const struct stand_in *s = stand_ins; s < stand_ins + STAND_INS && s->level < asked; s++) {
        TRY(encode_at(state, s->level, sample, SAMPLE_BYTES, out, out_bytes, &bytes, error));
        if (bytes <= asked_bytes + asked_bytes * s->loss / 10000) {
            *level = s->level;
            break;
        }
    }
    return COGPU_OK;
}

static cogpu_status encode(cogpu_codec_state *state, const cogpu_encoding *encoding,
                           const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                           size_t *got, cogpu_error *error) {
    int level = encoding->level;
    if (level > stand_ins[0].level && level <= USUAL_LEVEL && in_bytes >= SAMPLED_BLOCK_MIN)
        TRY(choose_level(state, level, in, in_bytes, out, out_bytes, &level, error));
    return encode_at(state, level, in, in_bytes, out, out_bytes, got, error);
}

static uint64_t bound(const cogpu_encoding *encoding, uint64_t in_bytes) {
    (void)encoding;
    return libdeflate_zlib_compress_bound(NULL, (size_t)in_bytes);
}

const cogpu_encoder cogpu_encoder_deflate = {.encode = encode,
                                             .bound = bound,
                                             .least_level = 1,
                                             .most_level = DEFLATE_LEVEL_MAX,
                                             .usual_level = USUAL_LEVEL};
