/*
 * Deflate (compression 8 and 32946, RFC 1950) by zlib. Built instead of codec_deflate.c, which is
 * two to three times faster, if libdeflate is missing.
 */
#include "codec/codec.h"
#include "codec/zlib_memory.h"

static z_stream *open_deflate(int level) {
    z_stream *zlib = cogpu_allocate(sizeof *zlib);
    if (!zlib)
        return NULL;
    *zlib = (z_stream){.zalloc = zlib_allocate, .zfree = zlib_release};
    if (deflateInit(zlib, level) == Z_OK)
        return zlib;
    cogpu_release(zlib);
    return NULL;
}

void cogpu_deflate_close(cogpu_codec_state *state) {
    for (size_t level = 0; level <= DEFLATE_LEVEL_MAX; level++) {
        if (state->deflate_encoders[level])
            deflateEnd(state->deflate_encoders[level]);
        cogpu_release(state->deflate_encoders[level]);
    }
}

cogpu_status cogpu_decode_deflate(cogpu_codec_state *state, const cogpu_block_format *format,
                                  const uint8_t *in, size_t in_bytes, uint8_t *out,
                                  size_t out_bytes, size_t *got, cogpu_error *error) {
    (void)state;
    return cogpu_stream_decode_whole(&cogpu_stream_deflate, format, in, in_bytes, out, out_bytes,
                                     got, error);
}

static int deflate_all(z_stream *zlib, const uint8_t *in, size_t in_bytes, uint8_t *out,
                       size_t out_bytes, size_t *got) {
    size_t in_done = 0;
    int result;
    *got = 0;
    do {
        const unsigned in_part = deflate_portion(in_bytes - in_done);
        const unsigned out_part = deflate_portion(out_bytes - *got);
        zlib->next_in = in + in_done;
        zlib->avail_in = in_part;
        zlib->next_out = out + *got;
        zlib->avail_out = out_part;
        result = deflate(zlib, in_part == in_bytes - in_done ? Z_FINISH : Z_NO_FLUSH);
        in_done += in_part - zlib->avail_in;
        *got += out_part - zlib->avail_out;
    } while (result == Z_OK);
    return result;
}

static cogpu_status encode_deflate_zlib(cogpu_codec_state *state, const cogpu_encoding *encoding,
                                        const uint8_t *in, size_t in_bytes, uint8_t *out,
                                        size_t out_bytes, size_t *got, cogpu_error *error) {
    /* Levels 10 to 12 are libdeflate's. */
    const int level = encoding->level < Z_BEST_COMPRESSION ? encoding->level : Z_BEST_COMPRESSION;
    void **encoder = &state->deflate_encoders[level];
    if (!*encoder)
        *encoder = open_deflate(level);
    if (!*encoder || deflateReset(*encoder) != Z_OK ||
        deflate_all(*encoder, in, in_bytes, out, out_bytes, got) != Z_STREAM_END)
        return deflate_out_of_memory("encoder", error);
    return COGPU_OK;
}

static uint64_t bound_deflate_zlib(const cogpu_encoding *encoding, uint64_t in_bytes) {
    (void)encoding;
    return compressBound((uLong)in_bytes);
}

const cogpu_encoder cogpu_encoder_deflate = {.encode = encode_deflate_zlib,
                                             .bound = bound_deflate_zlib};
