/*
 * Streamed inflate (RFC 1950) by ISA-L: libdeflate, which codec_deflate.c uses, needs whole blocks.
 *
 * ISA-L decodes ahead, into a buffer of its state. Damage found there is reported only after the
 * bytes before it are delivered: they may be all that the block needs.
 */
#include "codec/codec.h"
#include "codec/deflate_errors.h"

#include <isa-l/igzip_lib.h>
#include <string.h>

typedef struct inflater {
    struct inflate_state isal;
    bool has_failed;
} inflater;

static cogpu_status open_inflater(cogpu_stream_decoder *stream, cogpu_error *error) {
    TRY(cogpu_stream_decoder_open(stream, sizeof(inflater), error));
    struct inflate_state *isal = &((inflater *)stream->decoder)->isal;
    isal_inflate_init(isal);
    isal->crc_flag = ISAL_ZLIB;
    return COGPU_OK;
}

/* Decodes up to `bytes` bytes; returns how many. */
static size_t inflate_part(inflater *d, cogpu_feed *feed, uint8_t *out, size_t bytes) {
    struct inflate_state *isal = &d->isal;
    const bool has_input = cogpu_feed_fill(feed, 1);
    const unsigned in_part = deflate_portion(feed->bytes), out_part = deflate_portion(bytes);
    isal->next_in = (uint8_t *)(uintptr_t)feed->at;
    isal->avail_in = in_part;
    isal->next_out = out;
    isal->avail_out = out_part;
    const int result = isal_inflate(isal);
    cogpu_feed_consume(feed, in_part - isal->avail_in);
    const bool is_stuck = !has_input && isal->avail_out == out_part;
    d->has_failed =
        result != ISAL_DECOMP_OK || (is_stuck && isal->block_state != ISAL_BLOCK_FINISH);
    return out_part - isal->avail_out;
}

/* After a failure: the bytes that were decoded before it. */
static size_t copy_decoded(struct inflate_state *isal, uint8_t *out, size_t bytes) {
    const size_t left = (size_t)(isal->tmp_out_valid - isal->tmp_out_processed);
    const size_t part = left < bytes ? left : bytes;
    memcpy(out, isal->tmp_out_buffer + isal->tmp_out_processed, part);
    isal->tmp_out_processed += (int32_t)part;
    return part;
}

static cogpu_status decode_deflate_stream(cogpu_stream_decoder *stream, uint8_t *out,
                                          size_t out_bytes, size_t *got, cogpu_error *error) {
    *got = 0;
    if (!stream->decoder)
        TRY(open_inflater(stream, error));
    inflater *d = stream->decoder;
    while (*got < out_bytes && d->isal.block_state != ISAL_BLOCK_FINISH && !d->has_failed)
        *got += inflate_part(d, stream->feed, out + *got, out_bytes - *got);
    if (*got < out_bytes && d->has_failed)
        *got += copy_decoded(&d->isal, out + *got, out_bytes - *got);
    if (*got < out_bytes && d->has_failed)
        return deflate_is_corrupt(error);
    return COGPU_OK;
}

const cogpu_stream_codec cogpu_stream_deflate = {decode_deflate_stream, cogpu_stream_decoder_close,
                                                 true};
