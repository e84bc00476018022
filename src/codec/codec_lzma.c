/*
 * LZMA2 (compression 34925): .xz streams by liblzma.
 *
 * We walk the parts of the stream instead of liblzma's stream decoder, for one reason: a stream
 * written with a high preset declares a dictionary of 64 MiB and more, whatever its content. No
 * dictionary need be larger than the decoded data, so the decoder gets one of the size of the TIFF
 * block.
 */
#include "codec/codec.h"

#include <lzma.h>

enum { DICTIONARY_MIN = 4096 };

static void *allocate_for_lzma(void *user, size_t count, size_t size) {
    (void)user;
    return cogpu_allocate(count * size); /* liblzma allocates single objects: count is 1 */
}

static void free_for_lzma(void *user, void *memory) {
    (void)user;
    cogpu_release(memory);
}

static const lzma_allocator allocator = {.alloc = allocate_for_lzma, .free = free_for_lzma};

static cogpu_status fail_lzma(lzma_ret result, cogpu_error *error) {
    switch (result) {
    case LZMA_OK:
    case LZMA_STREAM_END:
        return COGPU_OK;
    case LZMA_MEM_ERROR:
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for the xz decoder");
    case LZMA_FORMAT_ERROR:
        return cogpu_fail(error, COGPU_CORRUPT, "the block does not begin as an xz stream");
    case LZMA_OPTIONS_ERROR:
        return cogpu_fail(error, COGPU_UNSUPPORTED, "the xz stream uses an unknown filter");
    default:
        return cogpu_fail(error, COGPU_CORRUPT, "the xz stream is damaged or cut off");
    }
}

/* Position in the stream. */
enum xz_position { AT_START, AT_BLOCK, IN_BLOCK, AT_DAMAGE, AT_END };

struct xz {
    enum xz_position position;
    lzma_stream stream;
    lzma_stream_flags flags;
    lzma_block block;
    lzma_filter filters[LZMA_FILTERS_MAX + 1];
    uint64_t block_bytes; /* of the TIFF block */
};

static void release_filters(struct xz *d) {
    for (lzma_filter *filter = d->filters; filter->id != LZMA_VLI_UNKNOWN; filter++)
        cogpu_release(filter->options);
    d->filters[0].id = LZMA_VLI_UNKNOWN;
}

static void open_xz(struct xz *d, uint64_t block_bytes) {
    *d = (struct xz){.block_bytes = block_bytes};
    d->stream = (lzma_stream)LZMA_STREAM_INIT;
    d->stream.allocator = &allocator;
    d->filters[0].id = LZMA_VLI_UNKNOWN;
}

static void close_xz(struct xz *d) {
    release_filters(d);
    lzma_end(&d->stream);
}

static cogpu_status start_stream(struct xz *d, cogpu_feed *feed, cogpu_error *error) {
    if (!cogpu_feed_fill(feed, LZMA_STREAM_HEADER_SIZE))
        return fail_lzma(LZMA_BUF_ERROR, error);
    TRY(fail_lzma(lzma_stream_header_decode(&d->flags, feed->at), error));
    cogpu_feed_consume(feed, LZMA_STREAM_HEADER_SIZE);
    d->position = AT_BLOCK;
    return COGPU_OK;
}

/* Returns the size of the largest dictionary, after limiting it. */
static uint64_t limit_dictionary(struct xz *d) {
    uint64_t largest = 0;
    for (lzma_filter *filter = d->filters; filter->id != LZMA_VLI_UNKNOWN; filter++) {
        lzma_options_lzma *options = filter->options;
        if (filter->id != LZMA_FILTER_LZMA2)
            continue;
        if (options->dict_size > d->block_bytes)
            options->dict_size =
                d->block_bytes < DICTIONARY_MIN ? DICTIONARY_MIN : (uint32_t)d->block_bytes;
        largest = options->dict_size > largest ? options->dict_size : largest;
    }
    return largest;
}

/* The header of a block of the xz stream. */
static cogpu_status start_block(struct xz *d, cogpu_feed *feed, uint64_t *dictionary,
                                cogpu_error *error) {
    release_filters(d);
    d->block = (lzma_block){.version = 1, .check = d->flags.check, .filters = d->filters};
    d->block.header_size = lzma_block_header_size_decode(feed->at[0]);
    if (!cogpu_feed_fill(feed, d->block.header_size))
        return fail_lzma(LZMA_BUF_ERROR, error);
    TRY(fail_lzma(lzma_block_header_decode(&d->block, &allocator, feed->at), error));
    cogpu_feed_consume(feed, d->block.header_size);
    *dictionary = limit_dictionary(d);
    d->position = IN_BLOCK;
    return COGPU_OK;
}

/* Data of a block of the xz stream, up to the capacity. Damage after the last byte that fits, as a
 * wrong checksum, is for the next call. */
static cogpu_status continue_block(struct xz *d, cogpu_feed *feed, cogpu_error *error) {
    const bool has_input = cogpu_feed_fill(feed, 1);
    const size_t capacity = d->stream.avail_out;
    d->stream.next_in = feed->at;
    d->stream.avail_in = feed->bytes;
    const lzma_ret result = lzma_code(&d->stream, LZMA_RUN);
    cogpu_feed_consume(feed, feed->bytes - d->stream.avail_in);
    if (result == LZMA_STREAM_END) {
        d->position = AT_BLOCK;
    } else if (result == LZMA_DATA_ERROR && capacity > 0 && d->stream.avail_out == 0) {
        d->position = AT_DAMAGE;
        return COGPU_OK;
    }
    if (result == LZMA_OK && !has_input && d->stream.avail_out == capacity)
        return fail_lzma(LZMA_BUF_ERROR, error);
    return fail_lzma(result, error);
}

/* The next `out_bytes` bytes; fewer at the end of the stream. With a `dictionary_max` fails with
 * LIMIT where a dictionary is larger. */
static cogpu_status decode_xz(struct xz *d, cogpu_feed *feed, uint64_t dictionary_max, uint8_t *out,
                              size_t out_bytes, size_t *got, cogpu_error *error) {
    cogpu_status status = COGPU_OK;
    d->stream.next_out = out;
    d->stream.avail_out = out_bytes;
    if (d->position == AT_START)
        TRY(start_stream(d, feed, error));
    while (status == COGPU_OK && d->stream.avail_out > 0 && d->position != AT_END) {
        uint64_t dictionary = 0;
        if (d->position == IN_BLOCK) {
            status = continue_block(d, feed, error);
        } else if (d->position == AT_DAMAGE) {
            status = fail_lzma(LZMA_DATA_ERROR, error);
        } else if (!cogpu_feed_fill(feed, 1) || feed->at[0] == 0) {
            /* A zero byte marks the end of the blocks; the index after it is not needed. */
            d->position = AT_END;
        } else {
            status = start_block(d, feed, &dictionary, error);
            if (status == COGPU_OK && dictionary > dictionary_max)
                status = cogpu_fail(error, COGPU_LIMIT_EXCEEDED,
                                    "the xz stream refers back too far to be read in parts");
            if (status == COGPU_OK)
                status = fail_lzma(lzma_block_decoder(&d->stream, &d->block), error);
        }
    }
    *got = out_bytes - d->stream.avail_out;
    return status;
}

/* The block is full: the stream ends there, or goes on with at least one byte more. */
static cogpu_status check_end(struct xz *d, cogpu_feed *feed, cogpu_error *error) {
    uint8_t extra;
    size_t more;
    return decode_xz(d, feed, UINT64_MAX, &extra, 1, &more, error);
}

cogpu_status cogpu_decode_lzma(cogpu_codec_state *state, const cogpu_block_format *format,
                               const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                               size_t *got, cogpu_error *error) {
    (void)state, (void)format;
    struct xz d;
    cogpu_feed feed = {.at = in, .bytes = in_bytes};
    open_xz(&d, out_bytes);
    cogpu_status status = decode_xz(&d, &feed, UINT64_MAX, out, out_bytes, got, error);
    if (status == COGPU_OK && *got == out_bytes)
        status = check_end(&d, &feed, error);
    close_xz(&d);
    return status;
}

static cogpu_status decode_lzma_stream(cogpu_stream_decoder *stream, uint8_t *out, size_t out_bytes,
                                       size_t *got, cogpu_error *error) {
    if (!stream->decoder) {
        TRY(cogpu_stream_decoder_open(stream, sizeof(struct xz), error));
        open_xz(stream->decoder, stream->block_bytes);
    }
    cogpu_status status =
        decode_xz(stream->decoder, stream->feed, STREAM_WINDOW_MAX, out, out_bytes, got, error);
    stream->needs_whole = status == COGPU_LIMIT_EXCEEDED;
    return status;
}

static void close_lzma_stream(cogpu_stream_decoder *stream) {
    if (stream->decoder)
        close_xz(stream->decoder);
    cogpu_stream_decoder_close(stream);
}

const cogpu_stream_codec cogpu_stream_lzma = {decode_lzma_stream, close_lzma_stream, true};

/*
 * LZMA2 alone and no checksum: what libtiff writes, but for the delta filter that it puts in front
 * of it, which makes predicted bytes worse.
 */
static cogpu_status encode_lzma(cogpu_codec_state *state, const cogpu_encoding *encoding,
                                const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                                size_t *got, cogpu_error *error) {
    (void)state;
    lzma_options_lzma options;
    lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, NULL}};
    lzma_lzma_preset(&options, (uint32_t)encoding->level);
    if (options.dict_size > in_bytes)
        options.dict_size = in_bytes < DICTIONARY_MIN ? DICTIONARY_MIN : (uint32_t)in_bytes;
    *got = 0;
    if (lzma_stream_buffer_encode(filters, LZMA_CHECK_NONE, &allocator, in, in_bytes, out, got,
                                  out_bytes) !=
        LZMA_OK) /* impossible with this capacity and valid options */
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for the xz encoder");
    return COGPU_OK;
}

static uint64_t bound_lzma(const cogpu_encoding *encoding, uint64_t in_bytes) {
    (void)encoding;
    return lzma_stream_buffer_bound((size_t)in_bytes);
}

const cogpu_encoder cogpu_encoder_lzma = {.encode = encode_lzma, .bound = bound_lzma};
