/*
 * Takes a block as an .xz stream, hands on its content, filters undone and checksums compared.
 *
 * The stream's parts are walked by us instead of liblzma's stream decoder, for one reason: a stream
 * written with a high preset asks for a dictionary of 64 MiB and more, whatever it holds. No
 * dictionary need be larger than what it decodes to, so we give the decoder one of the size of the
 * TIFF block.
 */
#include "codec/codec.h"

#include <lzma.h>

enum { DICTIONARY_MIN = 4096 };

static void *allocate(void *user, size_t count, size_t size) {
    (void)user;
    return cogpu_allocate(count * size); /* liblzma asks for single objects: count is 1 */
}

static void release(void *user, void *memory) {
    (void)user;
    cogpu_release(memory);
}

static const lzma_allocator allocator = {.alloc = allocate, .free = release};

static cogpu_status explain(lzma_ret result, cogpu_error *error) {
    switch (result) {
    case LZMA_OK:
    case LZMA_STREAM_END:
        return COGPU_OK;
    case LZMA_MEM_ERROR:
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for the xz decoder");
    case LZMA_FORMAT_ERROR:
        return cogpu_fail(error, COGPU_CORRUPT, "the block does not begin as an xz stream");
    case LZMA_OPTIONS_ERROR:
        return cogpu_fail(error, COGPU_UNSUPPORTED, "the xz stream uses an unknown filter");
    default:
        return cogpu_fail(error, COGPU_CORRUPT, "the xz stream is damaged or cut off");
    }
}

static void limit_dictionary(lzma_filter *filters, size_t bytes) {
    for (; filters->id != LZMA_VLI_UNKNOWN; filters++) {
        lzma_options_lzma *options = filters->options;
        if (filters->id == LZMA_FILTER_LZMA2 && options->dict_size > bytes)
            options->dict_size = bytes < DICTIONARY_MIN ? DICTIONARY_MIN : (uint32_t)bytes;
    }
}

static void release_filters(lzma_filter *filters) {
    for (; filters->id != LZMA_VLI_UNKNOWN; filters++)
        cogpu_release(filters->options);
}

/* The data of a block of the xz stream, which `block` describes; its header is read already. */
static lzma_ret decode_data(lzma_block *block, lzma_stream *stream) {
    lzma_ret result = lzma_block_decoder(stream, block);
    while (result == LZMA_OK)
        result = lzma_code(stream, LZMA_FINISH);
    return result;
}

/* One block of the xz stream, from the header on. `stream` says where to read and to write. */
static cogpu_status decode_block(lzma_stream *stream, lzma_check check, cogpu_error *error) {
    lzma_filter filters[LZMA_FILTERS_MAX + 1] = {{.id = LZMA_VLI_UNKNOWN}};
    lzma_block block = {.version = 1, .check = check, .filters = filters};
    block.header_size = lzma_block_header_size_decode(stream->next_in[0]);
    if (block.header_size > stream->avail_in)
        return explain(LZMA_BUF_ERROR, error);
    TRY(explain(lzma_block_header_decode(&block, &allocator, stream->next_in), error));
    stream->next_in += block.header_size;
    stream->avail_in -= block.header_size;
    limit_dictionary(filters, stream->avail_out);
    const lzma_ret result = decode_data(&block, stream);
    release_filters(filters);
    if (result == LZMA_BUF_ERROR && stream->avail_in > 0)
        return cogpu_fail(error, COGPU_CORRUPT,
                          "the xz stream decodes to more than the block has room for");
    return explain(result, error);
}

cogpu_status cogpu_decode_lzma(cogpu_codec_state *state, const cogpu_block_format *format,
                               const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                               size_t *got, cogpu_error *error) {
    (void)state, (void)format;
    lzma_stream_flags flags;
    if (in_bytes < LZMA_STREAM_HEADER_SIZE)
        return explain(LZMA_BUF_ERROR, error);
    TRY(explain(lzma_stream_header_decode(&flags, in), error));
    lzma_stream stream = LZMA_STREAM_INIT;
    stream.allocator = &allocator;
    stream.next_in = in + LZMA_STREAM_HEADER_SIZE;
    stream.avail_in = in_bytes - LZMA_STREAM_HEADER_SIZE;
    stream.next_out = out;
    stream.avail_out = out_bytes;
    cogpu_status status = COGPU_OK;
    /* A zero byte stands where the blocks end and their index begins, which we have no use for. */
    while (status == COGPU_OK && stream.avail_in > 0 && stream.next_in[0] != 0)
        status = decode_block(&stream, flags.check, error);
    lzma_end(&stream);
    *got = out_bytes - stream.avail_out;
    return status;
}
