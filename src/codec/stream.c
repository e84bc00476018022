/* What streaming decoders share: the input buffer, and whole blocks by a streaming decoder. */
#include "codec/codec.h"

#include <string.h>

bool cogpu_feed_fill(cogpu_feed *feed, size_t bytes) {
    while (feed->bytes < bytes && feed->left > 0)
        feed->more(feed);
    return feed->bytes >= bytes;
}

void cogpu_feed_consume(cogpu_feed *feed, size_t bytes) {
    feed->at += bytes;
    feed->bytes -= bytes;
}

cogpu_status cogpu_stream_decoder_open(cogpu_stream_decoder *stream, size_t bytes,
                                       cogpu_error *error) {
    stream->decoder = cogpu_allocate(bytes);
    if (!stream->decoder)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory: %zu bytes for a decoder",
                          bytes);
    memset(stream->decoder, 0, bytes);
    return COGPU_OK;
}

void cogpu_stream_decoder_close(cogpu_stream_decoder *stream) {
    cogpu_release(stream->decoder);
    stream->decoder = NULL;
}

cogpu_status cogpu_stream_decode_whole(const cogpu_stream_codec *codec,
                                       const cogpu_block_format *format, const uint8_t *in,
                                       size_t in_bytes, uint8_t *out, size_t out_bytes, size_t *got,
                                       cogpu_error *error) {
    uint8_t extra;
    size_t more;
    cogpu_feed feed = {.at = in, .bytes = in_bytes};
    cogpu_stream_decoder stream = {.format = format, .feed = &feed, .block_bytes = out_bytes};
    cogpu_status status = codec->decode(&stream, out, out_bytes, got, error);
    if (status == COGPU_OK && *got == out_bytes)
        status = codec->decode(&stream, &extra, 1, &more, error);
    codec->close(&stream);
    return status;
}
