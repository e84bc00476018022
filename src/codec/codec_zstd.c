/*
 * Takes a block as one or more zstd frames, hands on their content; and makes such a frame.
 *
 * Each frame is decoded in one go straight into the block: a window, however large the frame says
 * it is, then needs no memory, and no frame can write past the block whatever size it states.
 */
#include "base/bytes.h"
#include "codec/codec.h"

#include <zstd.h>
#include <zstd_errors.h>

void cogpu_zstd_close(cogpu_codec_state *state) {
    ZSTD_freeDCtx(state->zstd);
    ZSTD_freeCCtx(state->zstd_encoder);
}

/* Bytes after the last frame are padding; a further frame begins with one of these numbers. */
static bool is_frame(const uint8_t *in, size_t in_bytes) {
    if (in_bytes < sizeof(uint32_t))
        return false;
    const uint32_t magic = load_u32(in, false);
    return magic == ZSTD_MAGICNUMBER ||
           (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

static cogpu_status explain(size_t code, size_t out_bytes, cogpu_error *error) {
    switch (ZSTD_getErrorCode(code)) {
    case ZSTD_error_dstSize_tooSmall:
        return cogpu_fail(error, COGPU_CORRUPT,
                          "the zstd stream decodes to more than the %zu bytes of the block",
                          out_bytes);
    case ZSTD_error_dictionary_wrong:
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "the zstd stream wants a dictionary, which a TIFF file cannot hold");
    case ZSTD_error_memory_allocation:
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for the zstd decoder");
    default:
        return cogpu_fail(error, COGPU_CORRUPT, "the zstd stream is damaged: %s",
                          ZSTD_getErrorName(code));
    }
}

cogpu_status cogpu_decode_zstd(cogpu_codec_state *state, const cogpu_block_format *format,
                               const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                               size_t *got, cogpu_error *error) {
    (void)format;
    if (!state->zstd)
        state->zstd = ZSTD_createDCtx();
    if (!state->zstd)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for the zstd decoder");
    *got = 0;
    do {
        const size_t frame = ZSTD_findFrameCompressedSize(in, in_bytes);
        if (ZSTD_isError(frame))
            return explain(frame, out_bytes, error);
        const size_t written =
            ZSTD_decompressDCtx(state->zstd, out + *got, out_bytes - *got, in, frame);
        if (ZSTD_isError(written))
            return explain(written, out_bytes, error);
        *got += written;
        in += frame;
        in_bytes -= frame;
    } while (is_frame(in, in_bytes));
    return COGPU_OK;
}

struct zstd_stream {
    ZSTD_DStream *zstd;
    bool is_done; /* after the last frame */
};

static cogpu_status open_stream(cogpu_stream *stream, cogpu_error *error) {
    TRY(cogpu_stream_open(stream, sizeof(struct zstd_stream), error));
    struct zstd_stream *d = stream->decoder;
    d->zstd = ZSTD_createDStream();
    if (!d->zstd)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for the zstd decoder");
    ZSTD_DCtx_setParameter(d->zstd, ZSTD_d_windowLogMax, __builtin_ctz(STREAM_WINDOW_MAX));
    return COGPU_OK;
}

static cogpu_status stream_decode(cogpu_stream *stream, uint8_t *out, size_t out_bytes, size_t *got,
                                  cogpu_error *error) {
    if (!stream->decoder)
        TRY(open_stream(stream, error));
    struct zstd_stream *d = stream->decoder;
    cogpu_feed *feed = stream->feed;
    ZSTD_outBuffer to = {out, out_bytes, 0};
    *got = 0;
    while (*got < out_bytes && !d->is_done) {
        const bool has_input = cogpu_feed_has(feed, 1);
        const size_t before = to.pos;
        ZSTD_inBuffer from = {feed->at, feed->bytes, 0};
        const size_t result = ZSTD_decompressStream(d->zstd, &to, &from);
        cogpu_feed_take(feed, from.pos);
        *got = to.pos;
        if (ZSTD_isError(result)) {
            stream->needs_whole =
                ZSTD_getErrorCode(result) == ZSTD_error_frameParameter_windowTooLarge;
            return explain(result, out_bytes, error);
        }
        if (result == 0)
            d->is_done =
                !cogpu_feed_has(feed, sizeof(uint32_t)) || !is_frame(feed->at, feed->bytes);
        else if (!has_input && to.pos == before)
            return cogpu_fail(error, COGPU_CORRUPT, "the zstd stream is cut off");
    }
    return COGPU_OK;
}

static void stream_close(cogpu_stream *stream) {
    if (stream->decoder)
        ZSTD_freeDStream(((struct zstd_stream *)stream->decoder)->zstd);
    cogpu_stream_close(stream);
}

const cogpu_stream_codec cogpu_stream_zstd = {stream_decode, stream_close, true};

/* As libtiff writes: one frame, which says its content's size, without a checksum. */
static cogpu_status encode(cogpu_codec_state *state, const cogpu_encoding *encoding,
                           const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                           size_t *got, cogpu_error *error) {
    if (!state->zstd_encoder)
        state->zstd_encoder = ZSTD_createCCtx();
    if (!state->zstd_encoder)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for the zstd encoder");
    ZSTD_CCtx_setParameter(state->zstd_encoder, ZSTD_c_compressionLevel, encoding->level);
    *got = ZSTD_compress2(state->zstd_encoder, out, out_bytes, in, in_bytes);
    if (ZSTD_isError(*got)) /* with this much room nothing else can fail */
        return cogpu_fail(error, COGPU_MEMORY, "the zstd encoder failed: %s",
                          ZSTD_getErrorName(*got));
    return COGPU_OK;
}

static uint64_t bound(const cogpu_encoding *encoding, uint64_t in_bytes) {
    (void)encoding;
    return ZSTD_COMPRESSBOUND(in_bytes);
}

const cogpu_encoder cogpu_encoder_zstd = {
    .encode = encode, .bound = bound, .least_level = 1, .most_level = 22, .usual_level = 9};
