/*
 * Takes a block as a zlib stream, hands on its bytes, by libdeflate. The whole stream is read, to
 * its Adler-32, which must match. codec_deflate_zlib.c does the same where libdeflate is missing.
 */
#include "codec/codec.h"

#include <libdeflate.h>

void cogpu_deflate_close(void *deflate) {
    libdeflate_free_decompressor(deflate);
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
