/*
 * Takes a block as a zlib stream, hands on its bytes, and makes such a stream, by zlib. It is built
 * in the place of codec_deflate.c, which is two to three times faster, where libdeflate is missing.
 */
#define ZLIB_CONST /* zlib.h: the input is const */
#include "codec/codec.h"

#include <limits.h>
#include <zlib.h>

static void *allocate(void *user, unsigned count, unsigned size) {
    (void)user;
    return cogpu_allocate((size_t)count * size);
}

static void release(void *user, void *memory) {
    (void)user;
    cogpu_release(memory);
}

static z_stream *open_inflate(void) {
    z_stream *zlib = cogpu_allocate(sizeof *zlib);
    if (!zlib)
        return NULL;
    *zlib = (z_stream){.zalloc = allocate, .zfree = release};
    if (inflateInit(zlib) == Z_OK)
        return zlib;
    cogpu_release(zlib);
    return NULL;
}

static z_stream *open_deflate(int level) {
    z_stream *zlib = cogpu_allocate(sizeof *zlib);
    if (!zlib)
        return NULL;
    *zlib = (z_stream){.zalloc = allocate, .zfree = release};
    if (deflateInit(zlib, level) == Z_OK)
        return zlib;
    cogpu_release(zlib);
    return NULL;
}

void cogpu_deflate_close(cogpu_codec_state *state) {
    if (state->deflate)
        inflateEnd(state->deflate);
    cogpu_release(state->deflate);
    for (size_t level = 0; level <= DEFLATE_LEVEL_MAX; level++) {
        if (state->deflate_encoders[level])
            deflateEnd(state->deflate_encoders[level]);
        cogpu_release(state->deflate_encoders[level]);
    }
}

/* zlib counts in unsigned int: of more, a part at a time. */
static unsigned portion(size_t bytes) {
    return bytes < UINT_MAX ? (unsigned)bytes : UINT_MAX;
}

/* Runs zlib's inflate or deflate to the end of the stream, or to the first thing that is wrong with
 * it. With the last of the input it is told `at_last`. */
static int run_all(z_stream *zlib, int (*run)(z_stream *, int), int at_last, const uint8_t *in,
                   size_t in_bytes, uint8_t *out, size_t out_bytes, size_t *got) {
    size_t in_done = 0;
    int result;
    *got = 0;
    do {
        const unsigned in_part = portion(in_bytes - in_done);
        const unsigned out_part = portion(out_bytes - *got);
        zlib->next_in = in + in_done;
        zlib->avail_in = in_part;
        zlib->next_out = out + *got;
        zlib->avail_out = out_part;
        result = run(zlib, in_part == in_bytes - in_done ? at_last : Z_NO_FLUSH);
        in_done += in_part - zlib->avail_in;
        *got += out_part - zlib->avail_out;
    } while (result == Z_OK);
    return result;
}

cogpu_status cogpu_decode_deflate(cogpu_codec_state *state, const cogpu_block_format *format,
                                  const uint8_t *in, size_t in_bytes, uint8_t *out,
                                  size_t out_bytes, size_t *got, cogpu_error *error) {
    (void)format;
    if (!state->deflate)
        state->deflate = open_inflate();
    if (!state->deflate || inflateReset(state->deflate) != Z_OK)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for the deflate decoder");
    z_stream *zlib = state->deflate;
    switch (run_all(zlib, inflate, Z_NO_FLUSH, in, in_bytes, out, out_bytes, got)) {
    case Z_STREAM_END:
        return COGPU_OK;
    case Z_MEM_ERROR:
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for the deflate decoder");
    case Z_BUF_ERROR:
        if (zlib->avail_in > 0)
            return cogpu_fail(error, COGPU_CORRUPT,
                              "the zlib stream decodes to more than the %zu bytes of the block",
                              out_bytes);
        /* fall through */
    default:
        return cogpu_fail(error, COGPU_CORRUPT,
                          "the zlib stream of %zu bytes is damaged, cut off, or fails its Adler-32",
                          in_bytes);
    }
}

static cogpu_status encode(cogpu_codec_state *state, const cogpu_encoding *encoding,
                           const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                           size_t *got, cogpu_error *error) {
    /* The levels above are libdeflate's: the best of zlib is the nearest. */
    const int level = encoding->level < Z_BEST_COMPRESSION ? encoding->level : Z_BEST_COMPRESSION;
    void **encoder = &state->deflate_encoders[level];
    if (!*encoder)
        *encoder = open_deflate(level);
    if (!*encoder || deflateReset(*encoder) != Z_OK ||
        run_all(*encoder, deflate, Z_FINISH, in, in_bytes, out, out_bytes, got) != Z_STREAM_END)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for the deflate encoder");
    return COGPU_OK;
}

static uint64_t bound(const cogpu_encoding *encoding, uint64_t in_bytes) {
    (void)encoding;
    return compressBound((uLong)in_bytes);
}

const cogpu_encoder cogpu_encoder_deflate = {.encode = encode,
                                             .bound = bound,
                                             .least_level = 1,
                                             .most_level = DEFLATE_LEVEL_MAX,
                                             .usual_level = 6};
