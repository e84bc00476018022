/*
 * Takes a block as a zlib stream, hands on its bytes, and makes such a stream, by libdeflate.
 * codec_deflate_zlib.c does the same where libdeflate is missing.
 *
 * Decoding: the whole stream is read, to its Adler-32, which must match. Of a stream that is longer
 * than the block, only the block's bytes are decoded, and no sum is compared: by the decoder of
 * streams, since libdeflate leaves out the last token that does not fit.
 *
 * Encoding: `level` is libdeflate's, or our own encoder's where that does as well, in half the
 * time. libdeflate's levels grow by searching longer for matches, of which the noise of a measured
 * and predicted raster has few. Where there are many, as with classes, our own loses. So each block
 * is asked: a sample of it is encoded by both. Level 1 and those above the usual one are taken at
 * their word.
 */
#include "base/bytes.h"
#include "codec/codec.h"
#include "codec/deflate_encode.h"

#include <libdeflate.h>
#include <string.h>

void cogpu_deflate_close(cogpu_codec_state *state) {
    libdeflate_free_decompressor(state->deflate);
    for (size_t level = 0; level <= DEFLATE_LEVEL_MAX; level++)
        libdeflate_free_compressor(state->deflate_encoders[level]);
    cogpu_release(state->deflate_own);
}

cogpu_status cogpu_decode_deflate(cogpu_codec_state *state, const cogpu_block_format *format,
                                  const uint8_t *in, size_t in_bytes, uint8_t *out,
                                  size_t out_bytes, size_t *got, cogpu_error *error) {
    (void)format; /* where there is no decoder of streams */
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
#if COGPU_HAVE_ISAL || COGPU_HAVE_ZLIB
        return cogpu_stream_whole(&cogpu_stream_deflate, format, in, in_bytes, out, out_bytes, got,
                                  error);
#else
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "the zlib stream decodes to more than the %zu bytes of the block; a "
                          "build with ISA-L or zlib reads it",
                          out_bytes);
#endif
    default:
        return cogpu_fail(error, COGPU_CORRUPT,
                          "the zlib stream of %zu bytes is damaged, cut off, or fails its Adler-32",
                          in_bytes);
    }
}

enum {
    FAST_LEVEL = 1,
    USUAL_LEVEL = 6,
    ZLIB_BYTES = 2 + 4, /* around the stream: a header and the Adler-32 */

    SAMPLE_PIECES = 4, /* from all over the block: a part of it may be nodata */
    PIECE_BYTES_MAX = 4 << 10,
    PIECE_OF_BLOCK = 128,          /* a piece is so small a part of the block */
    SAMPLED_BLOCK_MIN = 128 << 10, /* below it, a sample says too little */
    LOSS_OF_SAMPLE = 80,           /* that we may be larger by a part in so many */
    SEARCH_PAYS = 4 /* shrunk by so much, the block is of a kind whose every match counts */
};

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

static cogpu_status encode_own(cogpu_codec_state *state, const uint8_t *in, size_t in_bytes,
                               uint8_t *out, size_t *got, cogpu_error *error) {
    if (!state->deflate_own)
        state->deflate_own = cogpu_allocate(cogpu_deflate_memory_bytes);
    if (!state->deflate_own)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for the deflate encoder");
    out[0] = 0x78; /* deflate, a window of 32 KiB */
    out[1] = 0x9C; /* as by the usual level */
    const size_t bytes = cogpu_deflate_encode(state->deflate_own, in, in_bytes, out + 2);
    const uint32_t adler = libdeflate_adler32(1, in, in_bytes);
    store_little(__builtin_bswap32(adler), out + 2 + bytes, 4);
    *got = bytes + ZLIB_BYTES;
    return COGPU_OK;
}

/* Returns the sample's bytes. */
static size_t take_sample(const uint8_t *in, size_t in_bytes, uint8_t *sample) {
    const size_t step = in_bytes / SAMPLE_PIECES, part = in_bytes / PIECE_OF_BLOCK;
    const size_t piece = part < PIECE_BYTES_MAX ? part : PIECE_BYTES_MAX;
    for (size_t i = 0; i < SAMPLE_PIECES; i++)
        memcpy(sample + i * piece, in + i * step + (step - piece) / 2, piece);
    return SAMPLE_PIECES * piece;
}

/* The sample is not in the state's working memory: LERC has what is to be packed there. */
static cogpu_status ask_sample(cogpu_codec_state *state, int level, const uint8_t *in,
                               size_t in_bytes, uint8_t *out, size_t out_bytes, bool *own_will_do,
                               cogpu_error *error) {
    uint8_t sample[SAMPLE_PIECES * PIECE_BYTES_MAX];
    const size_t bytes = take_sample(in, in_bytes, sample);
    size_t asked, own = 0;
    *own_will_do = false;
    TRY(encode_at(state, level, sample, bytes, out, out_bytes, &asked, error));
    if (asked < bytes / SEARCH_PAYS)
        return COGPU_OK;
    TRY(encode_own(state, sample, bytes, out, &own, error));
    *own_will_do = own <= asked + asked / LOSS_OF_SAMPLE;
    return COGPU_OK;
}

static uint64_t bound(const cogpu_encoding *encoding, uint64_t in_bytes) {
    (void)encoding;
    const uint64_t asked = libdeflate_zlib_compress_bound(NULL, (size_t)in_bytes);
    const uint64_t own = cogpu_deflate_bound(in_bytes) + ZLIB_BYTES;
    return own > asked ? own : asked;
}

static cogpu_status encode(cogpu_codec_state *state, const cogpu_encoding *encoding,
                           const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                           size_t *got, cogpu_error *error) {
    const int level = encoding->level;
    bool own_will_do = false;
    if (level > FAST_LEVEL && level <= USUAL_LEVEL && in_bytes >= SAMPLED_BLOCK_MIN &&
        out_bytes >= bound(encoding, in_bytes)) /* our own does not look where its room ends */
        TRY(ask_sample(state, level, in, in_bytes, out, out_bytes, &own_will_do, error));
    return own_will_do ? encode_own(state, in, in_bytes, out, got, error)
                       : encode_at(state, level, in, in_bytes, out, out_bytes, got, error);
}

const cogpu_encoder cogpu_encoder_deflate = {.encode = encode,
                                             .bound = bound,
                                             .least_level = 1,
                                             .most_level = DEFLATE_LEVEL_MAX,
                                             .usual_level = USUAL_LEVEL};
