/*
 * JPEG (compression 7) through libjpeg-turbo: a block's stream in, rows of samples out.
 *
 * Tables that all blocks share stand in tag 347 and are loaded first. What the samples mean is told
 * by the photometric tag, never by markers in the stream: YCbCr becomes RGB, all else is left as it
 * is, which is what libtiff and GDAL do. libjpeg goes on with invented pixels where the data is
 * damaged; we do not.
 */
#include "codec/codec.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

/* A scan costs a walk over the whole block, and a few bytes can ask for one. */
enum { SCANS_MAX = 100, ROWS_AT_ONCE = 16, PHOTOMETRIC_YCBCR = 6 };

/* What the library may hold of a picture in several scans, which it decodes as a whole. */
enum { HELD_BASE = 16 << 20, HELD_PER_BYTE = 1000 };

typedef struct decoding {
    struct jpeg_decompress_struct codec;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf escape;
    cogpu_feed *feed; /* where the block's bytes come from */
    bool ran_dry;     /* the library asked for bytes after the last */
    bool is_started;  /* rows can be read */
    cogpu_status status;
    char reason[JMSG_LENGTH_MAX];
} decoding;

static _Noreturn void leave(decoding *d, cogpu_status status, const char *reason) {
    d->status = status;
    snprintf(d->reason, sizeof d->reason, "%s", reason);
    longjmp(d->escape, 1);
}

static cogpu_status status_of(int code) {
    switch (code) {
    case JERR_OUT_OF_MEMORY:
        return COGPU_MEMORY;
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
    case JERR_ARITH_NOTIMPL:
    case JERR_NOTIMPL:
        return COGPU_UNSUPPORTED;
    default:
        return COGPU_CORRUPT;
    }
}

static _Noreturn void on_error(j_common_ptr codec) {
    char text[JMSG_LENGTH_MAX];
    codec->err->format_message(codec, text);
    leave(codec->client_data, status_of(codec->err->msg_code), text);
}

/* The library's warnings. After all but these it makes pixels up. */
static void on_message(j_common_ptr codec, int level) {
    int code = codec->err->msg_code;
    bool harmless = code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR ||
                    code == JWRN_ADOBE_XFORM || code == JWRN_NOT_SEQUENTIAL;
    if (level < 0 && !harmless)
        on_error(codec);
}

static void ignore_message(j_common_ptr codec) {
    (void)codec;
}

static void on_scan(j_common_ptr codec) {
    decoding *d = codec->client_data;
    if (d->codec.input_scan_number > SCANS_MAX)
        leave(d, COGPU_CORRUPT, "more than 100 scans");
}

static void ignore_source(j_decompress_ptr codec) {
    (void)codec;
}

/* What the library has taken, and what it finds next. */
static void refill(decoding *d) {
    cogpu_feed *feed = d->feed;
    cogpu_feed_take(feed, feed->bytes);
    if (cogpu_feed_has(feed, 1)) {
        d->source.next_input_byte = feed->at;
        d->source.bytes_in_buffer = feed->bytes;
    }
}

/* The tables of tag 347 come in one piece, the block's bytes as the feed has them. A stream may
 * lack its end marker, so the end of the bytes counts as one. Who asks again has taken the marker
 * for data. */
static boolean fill_source(j_decompress_ptr codec) {
    static const JOCTET end_of_image[2] = {0xFF, JPEG_EOI};
    decoding *d = codec->client_data;
    d->source.bytes_in_buffer = 0;
    if (d->feed && !d->ran_dry)
        refill(d);
    if (d->source.bytes_in_buffer > 0)
        return TRUE;
    if (d->ran_dry)
        leave(d, COGPU_CORRUPT, "it is cut off");
    d->ran_dry = true;
    codec->src->next_input_byte = end_of_image;
    codec->src->bytes_in_buffer = sizeof end_of_image;
    return TRUE;
}

static void skip_source(j_decompress_ptr codec, long bytes) {
    struct jpeg_source_mgr *source = codec->src;
    decoding *d = codec->client_data;
    while (bytes > 0 && (size_t)bytes > source->bytes_in_buffer && !d->ran_dry) {
        bytes -= (long)source->bytes_in_buffer;
        fill_source(codec);
    }
    if (bytes <= 0 || (size_t)bytes > source->bytes_in_buffer || d->ran_dry)
        return;
    source->next_input_byte += bytes;
    source->bytes_in_buffer -= (size_t)bytes;
}

static void set_source(decoding *d, const uint8_t *in, size_t in_bytes) {
    d->source.next_input_byte = in;
    d->source.bytes_in_buffer = in_bytes;
    d->ran_dry = false;
}

static void open_codec(decoding *d) {
    d->codec.err = jpeg_std_error(&d->errors);
    d->errors.error_exit = on_error;
    d->errors.emit_message = on_message;
    d->errors.output_message = ignore_message;
    d->codec.client_data = d;
    jpeg_create_decompress(&d->codec);
    d->source.init_source = ignore_source;
    d->source.fill_input_buffer = fill_source;
    d->source.skip_input_data = skip_source;
    d->source.resync_to_restart = jpeg_resync_to_restart;
    d->source.term_source = ignore_source;
    d->codec.src = &d->source;
    d->progress.progress_monitor = on_scan;
    d->codec.progress = &d->progress;
}

static void load_tables(decoding *d, const cogpu_block_format *format) {
    if (!format->jpeg_tables)
        return;
    set_source(d, format->jpeg_tables, format->jpeg_table_bytes);
    if (jpeg_read_header(&d->codec, FALSE) != JPEG_HEADER_TABLES_ONLY)
        leave(d, COGPU_CORRUPT, "tag 347 (JPEGTables) holds an image where tables belong");
}

/* All that the stream says of its size, before any memory is taken for it. The last strip of some
 * files is as tall as the others though the image ends before; its rows below the image are not
 * read. With several scans the library would hold them all, so there a stream must not be taller.
 */
static void check_header(decoding *d, const cogpu_block_format *format, uint64_t stored) {
    char text[JMSG_LENGTH_MAX];
    const struct jpeg_decompress_struct *codec = &d->codec;
    if (codec->data_precision != 8)
        leave(d, COGPU_UNSUPPORTED, "samples of more than 8 bits");
    if ((uint32_t)codec->num_components != format->samples) {
        snprintf(text, sizeof text, "%d bands where the block has %u", codec->num_components,
                 format->samples);
        leave(d, COGPU_CORRUPT, text);
    }
    bool taller = codec->image_height > format->height;
    if (codec->image_width != format->width || codec->image_height < format->height ||
        (taller && jpeg_has_multiple_scans(&d->codec))) {
        snprintf(text, sizeof text, "%u x %u pixels where the block has %u x %u",
                 codec->image_width, codec->image_height, format->width, format->height);
        leave(d, COGPU_CORRUPT, text);
    }
    uint64_t held = (uint64_t)format->width * format->height * format->samples * sizeof(JCOEF);
    if (jpeg_has_multiple_scans(&d->codec) && held > HELD_BASE + stored * HELD_PER_BYTE)
        leave(d, COGPU_CORRUPT, "so few bytes cannot be scans of so many pixels");
}

/* Bands of one size, or YCbCr: a stream of another kind was meant as YCbCr, whatever the tag says.
 */
static void set_colours(decoding *d, const cogpu_block_format *format) {
    bool ycbcr = format->photometric == PHOTOMETRIC_YCBCR && format->samples == 3;
    if (format->photometric == PHOTOMETRIC_YCBCR && format->samples > 3)
        leave(d, COGPU_CORRUPT, "YCbCr with more than 3 bands");
    for (int i = 0; i < d->codec.num_components && !ycbcr; i++) {
        const jpeg_component_info *band = &d->codec.comp_info[i];
        if (band->h_samp_factor != d->codec.max_h_samp_factor ||
            band->v_samp_factor != d->codec.max_v_samp_factor)
            leave(d, COGPU_CORRUPT, "subsampled bands, which only YCbCr can have");
    }
    d->codec.jpeg_color_space = ycbcr ? JCS_YCbCr : JCS_UNKNOWN;
    d->codec.out_color_space = ycbcr ? JCS_RGB : JCS_UNKNOWN;
}

static void read_rows(decoding *d, uint32_t rows, size_t row_bytes, uint8_t *out, size_t *got) {
    while (rows > 0) {
        JSAMPROW targets[ROWS_AT_ONCE];
        uint32_t count = rows < ROWS_AT_ONCE ? rows : ROWS_AT_ONCE;
        for (uint32_t i = 0; i < count; i++)
            targets[i] = out + *got + i * row_bytes;
        uint32_t done = jpeg_read_scanlines(&d->codec, targets, count);
        *got += done * row_bytes;
        rows -= done;
    }
}

static void start_rows(decoding *d, const cogpu_block_format *format, cogpu_feed *feed) {
    open_codec(d);
    load_tables(d, format);
    uint64_t stored = feed->bytes + feed->left;
    d->feed = feed;
    set_source(d, feed->at, feed->bytes);
    jpeg_read_header(&d->codec, TRUE);
    check_header(d, format, stored);
    set_colours(d, format);
    jpeg_start_decompress(&d->codec);
    if (d->ran_dry && jpeg_has_multiple_scans(&d->codec))
        leave(d, COGPU_CORRUPT, "it ends before its last scan");
    d->is_started = true;
}

/* setjmp stands in a function of its own that changes none of its variables. */
static cogpu_status guarded(decoding *d, const cogpu_block_format *format, cogpu_feed *feed,
                            uint8_t *out, size_t out_bytes, size_t *got) {
    if (setjmp(d->escape) != 0)
        return d->status;
    if (!d->is_started)
        start_rows(d, format, feed);
    size_t row_bytes = (size_t)format->width * format->samples, rows = out_bytes / row_bytes;
    uint32_t left = format->height - d->codec.output_scanline;
    read_rows(d, rows < left ? (uint32_t)rows : left, row_bytes, out, got);
    return COGPU_OK;
}

/* The rows that come next. */
static cogpu_status decode(decoding *d, const cogpu_block_format *format, cogpu_feed *feed,
                           uint8_t *out, size_t out_bytes, size_t *got, cogpu_error *error) {
    *got = 0;
    if (format->width == 0 || format->height == 0 || format->samples == 0)
        return cogpu_fail(error, COGPU_CORRUPT, "JPEG: the block has no pixels");
    if (format->bits != 8)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "JPEG with samples of %u bits: only 8 bits are read", format->bits);
    cogpu_status status = guarded(d, format, feed, out, out_bytes, got);
    return status == COGPU_OK ? COGPU_OK : cogpu_fail(error, status, "JPEG stream: %s", d->reason);
}

cogpu_status cogpu_decode_jpeg(cogpu_codec_state *state, const cogpu_block_format *format,
                               const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                               size_t *got, cogpu_error *error) {
    (void)state;
    decoding d;
    cogpu_feed feed = {.at = in, .bytes = in_bytes};
    memset(&d, 0, sizeof d);
    cogpu_status status = decode(&d, format, &feed, out, out_bytes, got, error);
    jpeg_destroy_decompress(&d.codec);
    return status;
}

static cogpu_status stream_decode(cogpu_stream *stream, uint8_t *out, size_t out_bytes, size_t *got,
                                  cogpu_error *error) {
    if (!stream->decoder)
        TRY(cogpu_stream_open(stream, sizeof(decoding), error));
    return decode(stream->decoder, stream->format, stream->feed, out, out_bytes, got, error);
}

static void stream_close(cogpu_stream *stream) {
    if (stream->decoder)
        jpeg_destroy_decompress(&((decoding *)stream->decoder)->codec);
    cogpu_stream_close(stream);
}

const cogpu_stream_codec cogpu_stream_jpeg = {stream_decode, stream_close, false};
