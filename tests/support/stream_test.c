#include "support/stream_test.h"

static void test_feed_more(cogpu_feed *feed) {
    struct test_feed *f = (struct test_feed *)feed;
    size_t part = feed->left < f->part ? (size_t)feed->left : f->part;
    uint8_t *copy = malloc(feed->bytes + part);
    memcpy(copy, feed->at, feed->bytes);
    memcpy(copy + feed->bytes, f->next, part);
    free(f->copy);
    feed->at = f->copy = copy;
    feed->bytes += part;
    feed->left -= part;
    f->next += part;
}

/* Decodes `out_bytes` of the block, `out_part` bytes per call. Codecs that check their end are
 * asked for one byte more. */
static cogpu_status decode_in_parts(const cogpu_stream_codec *codec,
                                    const cogpu_block_format *format, const uint8_t *in,
                                    size_t in_bytes, size_t in_part, uint8_t *out, size_t out_bytes,
                                    size_t out_part, size_t *got, bool *needs_whole,
                                    cogpu_error *error) {
    static const uint8_t nothing;
    struct test_feed f = {.feed = {.at = &nothing, .left = in_bytes, .more = test_feed_more},
                          .next = in,
                          .part = in_part};
    cogpu_stream_decoder stream = {.format = format, .feed = &f.feed, .block_bytes = out_bytes};
    cogpu_status status = COGPU_OK;
    size_t last = 1;
    uint8_t *part = malloc(out_part);
    *got = 0;
    while (status == COGPU_OK && last > 0 && *got < out_bytes) {
        size_t capacity = out_bytes - *got < out_part ? out_bytes - *got : out_part;
        status = codec->decode(&stream, part, capacity, &last, error);
        if (status == COGPU_OK)
            memcpy(out + *got, part, last);
        if (status == COGPU_OK)
            *got += last;
    }
    if (status == COGPU_OK && codec->ends_itself && *got == out_bytes)
        status = codec->decode(&stream, part, 1, &last, error);
    *needs_whole = stream.needs_whole;
    codec->close(&stream);
    free(part);
    free(f.copy);
    return status;
}

int parts_give(const cogpu_stream_codec *codec, const cogpu_block_format *format, const uint8_t *in,
               size_t in_bytes, cogpu_status status, const uint8_t *whole, size_t bytes,
               size_t out_bytes, bool strict) {
    static const size_t in_parts[] = {1, 13, 1000, 1 << 20}, out_parts[] = {7, 1, 4096};
    static unsigned turn;
    size_t got = 0, row = format->row_bytes ? format->row_bytes : 1;
    size_t out_part = (out_parts[turn % 3] + row - 1) / row * row, in_part = in_parts[turn % 4];
    uint8_t *out = malloc(out_bytes + 1);
    cogpu_error error;
    bool needs_whole;
    turn++;
    cogpu_status parts = decode_in_parts(codec, format, in, in_bytes, in_part, out, out_bytes,
                                         out_part, &got, &needs_whole, &error);
    bool both = parts == COGPU_OK && status == COGPU_OK;
    bool same = both ? got == bytes && memcmp(out, whole, bytes) == 0 : !strict || parts == status;
    free(out);
    return same || needs_whole;
}
