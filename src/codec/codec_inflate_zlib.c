/*
 * Streamed inflate (RFC 1950) by zlib. Built in place of codec_deflate_stream.c where ISA-L is
 * missing.
 */
#include "codec/codec.h"
#include "codec/zlib_memory.h"

static cogpu_status open_inflate(cogpu_stream *stream, cogpu_error *error) {
    TRY(cogpu_stream_open(stream, sizeof(z_stream), error));
    z_stream *zlib = stream->decoder;
    *zlib = (z_stream){.zalloc = zlib_allocate, .zfree = zlib_release};
    if (inflateInit(zlib) == Z_OK)
        return COGPU_OK;
    cogpu_stream_close(stream);
    return cogpu_fail(error, COGPU_MEMORY, "out of memory for the deflate decoder");
}

/* zlib does not decode ahead of what it is asked for. At the end of the stream it has compared the
 * Adler-32, and says so again whenever it is asked. */
static cogpu_status stream_decode(cogpu_stream *stream, uint8_t *out, size_t out_bytes, size_t *got,
                                  cogpu_error *error) {
    cogpu_feed *feed = stream->feed;
    int result = Z_OK;
    *got = 0;
    if (!stream->decoder)
        TRY(open_inflate(stream, error));
    z_stream *zlib = stream->decoder;
    while (*got < out_bytes && result == Z_OK) {
        cogpu_feed_has(feed, 1);
        const unsigned in_part = zlib_portion(feed->bytes);
        const unsigned out_part = zlib_portion(out_bytes - *got);
        zlib->next_in = feed->at;
        zlib->avail_in = in_part;
        zlib->next_out = out + *got;
        zlib->avail_out = out_part;
        result = inflate(zlib, Z_NO_FLUSH);
        cogpu_feed_take(feed, in_part - zlib->avail_in);
        *got += out_part - zlib->avail_out;
    }
    if (result == Z_MEM_ERROR)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for the deflate decoder");
    if (*got < out_bytes && result != Z_STREAM_END)
        return cogpu_fail(error, COGPU_CORRUPT,
                          "the zlib stream is damaged, cut off, or fails its Adler-32");
    return COGPU_OK;
}

static void stream_close(cogpu_stream *stream) {
    if (stream->decoder)
        inflateEnd(stream->decoder);
    cogpu_stream_close(stream);
}

const cogpu_stream_codec cogpu_stream_deflate = {stream_decode, stream_close, true};
