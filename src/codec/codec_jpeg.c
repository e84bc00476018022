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

typedef struct decoding {
    struct jpeg_decompress_struct codec;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf escape;
    bool ran_dry; /* the library asked for bytes after the last */
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

/* A stream may lack its end marker, so the end of the bytes counts as one. Who asks again has taken
 * the marker for data. */
static boolean end_source(j_decompress_ptr codec) {
    static const JOCTET end_of_image[2] = {0xFF, JPEG_EOI};
    decoding *d = codec->client_data;
    if (d->ran_dry)
        leave(d, COGPU_CORRUPT, "it is cut off");
    d->ran_dry = true;
    codec->src->next_input_byte = end_of_image;
    codec->src->bytes_in_buffer = sizeof end_of_image;
    return TRUE;
}

static void skip_source(j_decompress_ptr codec, long bytes) {
    if (bytes <= 0)
        return;
    if ((size_t)bytes > codec->src->bytes_in_buffer) {
        end_source(codec);
        return;
    }
    codec->src->next_input_byte += bytes;
    codec->src->bytes_in_buffer -= (size_t)bytes;
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
    d->source.fill_input_buffer = end_source;
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
static void check_header(decoding *d, const cogpu_block_format *format) {
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
    while (d->codec.output_scanline < rows) {
        JSAMPROW targets[ROWS_AT_ONCE];
        uint32_t left = rows - d->codec.output_scanline;
        uint32_t count = left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE;
        for (uint32_t i = 0; i < count; i++)
            targets[i] = out + *got + i * row_bytes;
        *got += jpeg_read_scanlines(&d->codec, targets, count) * row_bytes;
    }
}

static void decode_stream(decoding *d, const cogpu_block_format *format, const uint8_t *in,
                          size_t in_bytes, uint8_t *out, size_t out_bytes, size_t *got) {
    load_tables(d, format);
    set_source(d, in, in_bytes);
    jpeg_read_header(&d->codec, TRUE);
    check_header(d, format);
    set_colours(d, format);
    jpeg_start_decompress(&d->codec);
    if (d->ran_dry && jpeg_has_multiple_scans(&d->codec))
        leave(d, COGPU_CORRUPT, "it ends before its last scan");
    size_t row_bytes = (size_t)format->width * format->samples;
    size_t rows = out_bytes / row_bytes;
    read_rows(d, rows < format->height ? (uint32_t)rows : format->height, row_bytes, out, got);
}

/* setjmp stands in a function of its own that changes none of its variables. */
static cogpu_status guarded(decoding *d, const cogpu_block_format *format, const uint8_t *in,
                            size_t in_bytes, uint8_t *out, size_t out_bytes, size_t *got) {
    if (setjmp(d->escape) != 0)
        return d->status;
    open_codec(d);
    decode_stream(d, format, in, in_bytes, out, out_bytes, got);
    return COGPU_OK;
}

cogpu_status cogpu_decode_jpeg(cogpu_codec_state *state, const cogpu_block_format *format,
                               const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                               size_t *got, cogpu_error *error) {
    (void)state;
    decoding d;
    *got = 0;
    if (format->width == 0 || format->height == 0 || format->samples == 0)
        return cogpu_fail(error, COGPU_CORRUPT, "JPEG: the block has no pixels");
    if (format->bits != 8)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "JPEG with samples of %u bits: only 8 bits are read", format->bits);
    memset(&d, 0, sizeof d);
    cogpu_status status = guarded(&d, format, in, in_bytes, out, out_bytes, got);
    jpeg_destroy_decompress(&d.codec);
    if (status != COGPU_OK)
        return cogpu_fail(error, status, "JPEG stream: %s", d.reason);
    return COGPU_OK;
}
