/*
 * PackBits (compression 32773, TIFF 6.0 section 9).
 *
 *   header byte n    0 to 127     n + 1 literal bytes follow
 *                    -127 to -1   the next byte repeats 1 - n times
 *                    -128         no operation
 *
 * Some writers let a run cross the end of a row, so the decoder ignores rows. No stream is invalid
 * except by its length, which the caller checks. The encoder works row by row, as the
 * specification demands.
 */
#include "base/checked.h"
#include "base/math.h"
#include "codec/codec.h"

#include <string.h>

/* Bytes moved at once: a divisor of the longest literal and run. */
enum { WIDE = 32, LONGEST = 128, GPU_PART_BYTES = 8 << 10 };

/* A literal or run that continues in the next part of the stream. */
struct packbits {
    size_t left;
    bool is_run; /* of the byte that comes next */
};

/* Decodes while the longest literal and run fit into input and output: no further checks. */
static void decode_wide(cogpu_feed *feed, uint8_t **out, const uint8_t *out_end) {
    const uint8_t *from = feed->at, *in_end = feed->at + feed->bytes;
    uint8_t *to = *out;
    while (in_end - from > LONGEST && out_end - to >= LONGEST) {
        const uint8_t head = *from++;
        if (head < 128) {
            const size_t count = head + 1u;
            for (size_t i = 0; i < count; i += WIDE)
                memcpy(to + i, from + i, WIDE);
            from += count;
            to += count;
        } else if (head > 128) {
            const size_t count = 257u - head;
            for (size_t i = 0; i < count; i += WIDE)
                memset(to + i, *from, WIDE);
            from++;
            to += count;
        }
    }
    cogpu_feed_consume(feed, (size_t)(from - feed->at));
    *out = to;
}

/* As much of a literal or run as input and output allow. */
static void copy_pending(struct packbits *d, cogpu_feed *feed, uint8_t **out,
                         const uint8_t *out_end) {
    size_t count = min_size(d->left, (size_t)(out_end - *out));
    if (d->is_run) {
        memset(*out, *feed->at, count);
    } else {
        count = min_size(count, feed->bytes);
        memcpy(*out, feed->at, count);
    }
    *out += count;
    d->left -= count;
    cogpu_feed_consume(feed, !d->is_run ? count : d->left == 0);
}

static size_t decode_packbits_part(struct packbits *d, cogpu_feed *feed, uint8_t *out,
                                   size_t out_bytes) {
    uint8_t *to = out, *out_end = out + out_bytes;
    while (to < out_end && cogpu_feed_fill(feed, 1)) {
        if (d->left > 0) {
            copy_pending(d, feed, &to, out_end);
            continue;
        }
        decode_wide(feed, &to, out_end);
        if (to < out_end && cogpu_feed_fill(feed, 1)) {
            const uint8_t head = *feed->at;
            cogpu_feed_consume(feed, 1);
            d->is_run = head > 128;
            d->left = head < 128 ? head + 1u : d->is_run ? 257u - head : 0;
        }
    }
    return (size_t)(to - out);
}

cogpu_status cogpu_decode_packbits(cogpu_codec_state *state, const cogpu_block_format *format,
                                   const uint8_t *in, size_t in_bytes, uint8_t *out,
                                   size_t out_bytes, size_t *got, cogpu_error *error) {
    (void)state, (void)format, (void)error;
    struct packbits d = {0};
    cogpu_feed feed = {.at = in, .bytes = in_bytes};
    *got = decode_packbits_part(&d, &feed, out, out_bytes);
    return COGPU_OK;
}

static cogpu_status decode_packbits_stream(cogpu_stream_decoder *stream, uint8_t *out,
                                           size_t out_bytes, size_t *got, cogpu_error *error) {
    if (!stream->decoder)
        TRY(cogpu_stream_decoder_open(stream, sizeof(struct packbits), error));
    *got = decode_packbits_part(stream->decoder, stream->feed, out, out_bytes);
    return COGPU_OK;
}

const cogpu_stream_codec cogpu_stream_packbits = {decode_packbits_stream,
                                                  cogpu_stream_decoder_close, false};

/* ---- encoding ---- */

/* Repetitions of the first byte, up to LONGEST. */
static size_t run_length(const uint8_t *from, const uint8_t *end) {
    const size_t most = min_size((size_t)(end - from), LONGEST);
    size_t count = 1;
    while (count < most && from[count] == *from)
        count++;
    return count;
}

/* Bytes, up to LONGEST, before a run of three or more, which is worth a run of its own. */
static size_t literal_length(const uint8_t *from, const uint8_t *end) {
    const size_t most = min_size((size_t)(end - from), LONGEST);
    for (size_t i = 0; i < most; i++)
        if (end - from - (ptrdiff_t)i > 2 && from[i] == from[i + 1] && from[i] == from[i + 2])
            return i;
    return most;
}

static uint8_t *pack_row(const uint8_t *from, const uint8_t *end, uint8_t *to) {
    while (from < end) {
        size_t count = run_length(from, end);
        if (count > 1) {
            *to++ = (uint8_t)(257 - count);
            *to++ = *from;
        } else {
            count = literal_length(from, end);
            *to++ = (uint8_t)(count - 1);
            memcpy(to, from, count);
            to += count;
        }
        from += count;
    }
    return to;
}

static cogpu_status encode_packbits(cogpu_codec_state *state, const cogpu_encoding *encoding,
                                    const uint8_t *in, size_t in_bytes, uint8_t *out,
                                    size_t out_bytes, size_t *got, cogpu_error *error) {
    (void)state, (void)out_bytes, (void)error;
    const size_t row_bytes = encoding->format.row_bytes;
    uint8_t *to = out;
    for (size_t done = 0; done < in_bytes; done += row_bytes)
        to = pack_row(in + done, in + done + row_bytes, to);
    *got = (size_t)(to - out);
    return COGPU_OK;
}

/* Runs are never longer than their bytes, and a run of three or more pays for the header of the
 * literal before it. That leaves the headers of the longest literals and of the last literal of a
 * row, and on a GPU of the literals at which one of its parts ends. */
static uint64_t bound_packbits(const cogpu_encoding *encoding, uint64_t in_bytes) {
    return in_bytes + encoding->format.height * divide_up(encoding->format.row_bytes, LONGEST) +
           in_bytes / GPU_PART_BYTES;
}

const cogpu_encoder cogpu_encoder_packbits = {.encode = encode_packbits, .bound = bound_packbits};
