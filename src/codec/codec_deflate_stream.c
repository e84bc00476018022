/*
 * Takes a zlib stream part by part, hands on its bytes, by ISA-L: libdeflate, which codec_deflate.c
 * uses, wants whole blocks.
 */
#include "codec/codec.h"

#include <isa-l/igzip_lib.h>
#include <limits.h>

static unsigned portion(size_t bytes) {
    return bytes < UINT_MAX ? (unsigned)bytes : UINT_MAX;
}

static cogpu_status stream_decode(cogpu_stream *stream, uint8_t *out, size_t out_bytes, size_t *got,
                                  cogpu_error *error) {
    if (!stream->decoder) {
        TRY(cogpu_stream_open(stream, sizeof(struct inflate_state), error));
        isal_inflate_init(stream->decoder);
        ((struct inflate_state *)stream->decoder)->crc_flag = ISAL_ZLIB;
    }
    struct inflate_state *isal = stream->decoder;
    cogpu_feed *feed = stream->feed;
    *got = 0;
    while (*got < out_bytes && isal->block_state != ISAL_BLOCK_FINISH) {
        const bool has_input = cogpu_feed_has(feed, 1);
        const unsigned in_part = portion(feed->bytes), out_part = portion(out_bytes - *got);
        isal->next_in = (uint8_t *)(uintptr_t)feed->at;
        isal->avail_in = in_part;
        isal->next_out = out + *got;
        isal->avail_out = out_part;
        const int result = isal_inflate(isal);
        cogpu_feed_take(feed, in_part - isal->avail_in);
        *got += out_part - isal->avail_out;
        const bool is_stuck = !has_input && isal->avail_out == out_part;
        if (result != ISAL_DECOMP_OK || (is_stuck && isal->block_state != ISAL_BLOCK_FINISH))
            return cogpu_fail(error, COGPU_CORRUPT,
                              "the zlib stream is damaged, cut off, or fails its Adler-32");
    }
    return COGPU_OK;
}

const cogpu_stream_codec cogpu_stream_deflate = {stream_decode, cogpu_stream_close, true};
