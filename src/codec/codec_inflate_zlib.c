/*
 * Streamed inflate (RFC 1950) by zlib. Built instead of codec_deflate_stream.c if ISA-L is
 * missing.
 */
#include "codec/codec.h"
#include "codec/zlib_memory.h"

static cogpu_status open_inflate(cogpu_stream_decoder *stream, cogpu_error *error) {
    TRY(cogpu_stream_decoder_open(stream, sizeof(z_stream), error));
    z_stream *zlib = stream->decoder;
    *zlib = (z_stream){.zalloc = zlib_allocate, .zfree = zlib_release};
    if (inflateInit(zlib) == Z_OK)
        return COGPU_OK;
    cogpu_stream_decoder_close(stream);
    return deflate_out_of_memory("decoder", error);
}

/* zlib does not decode ahead. At the end of the stream it compares the Adler-32, and repeats that
 * result in later calls. */
static cogpu_status inflate_stream_zlib(cogpu_stream_decoder *stream, uint8_t *out,
                                        size_t out_bytes, size_t *got, cogpu_error *error) {
    cogpu_feed *feed = stream->feed;
    int result = Z_OK;
    *got = 0;
    if (!stream->decoder)
        TRY(open_inflate(stream, error));
    z_stream *zlib = stream->decoder;
    while (*got < out_bytes && result == Z_OK) {
        cogpu_feed_fill(feed, 1);
        const unsigned in_part = deflate_portion(feed->bytes);
        const unsigned out_part = deflate_portion(out_bytes - *got);
        zlib->next_in = feed->at;
        zlib->avail_in = in_part;
        zlib->next_out = out + *got;
        zlib->avail_out = out_part;
        result = inflate(zlib, Z_NO_FLUSH);
        cogpu_feed_consume(feed, in_part - zlib->avail_in);
        *got += out_part - zlib->avail_out;
    }
    if (result == Z_MEM_ERROR)
        return deflate_out_of_memory("decoder", error);
    if (*got < out_bytes && result != Z_STREAM_END)
        return deflate_is_corrupt(error);
    return COGPU_OK;
}

static void close_deflate_stream(cogpu_stream_decoder *stream) {
    if (stream->decoder)
        inflateEnd(stream->decoder);
    cogpu_stream_decoder_close(stream);
}

const cogpu_stream_codec cogpu_stream_deflate = {inflate_stream_zlib, close_deflate_stream, true};
