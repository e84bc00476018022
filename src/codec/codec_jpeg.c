/*
 * JPEG decoder (compression 7, TIFF Technical Note 2) by libjpeg-turbo.
 *
 * Tables that all blocks share are in tag 347 (JPEGTables) and are loaded first. The photometric
 * tag says what the samples mean, never a marker in the stream: YCbCr becomes RGB, all else is not
 * converted, as in libtiff and GDAL. libjpeg-turbo 3 and later decode 12 bits, and 8 to 16 bits of
 * lossless JPEG.
 */
#include "base/checked.h"
#include "codec/jpeg_reader.h"
#include "codec/samples.h"

#include <string.h>

enum { ROWS_AT_ONCE = 16, PHOTOMETRIC_YCBCR = 6 };

static void load_tables(cogpu_jpeg_reader *d, const cogpu_block_format *format) {
    if (!format->jpeg_tables)
        return;
    cogpu_jpeg_source(d, format->jpeg_tables, format->jpeg_table_bytes);
    if (jpeg_read_header(&d->codec, FALSE) != JPEG_HEADER_TABLES_ONLY)
        cogpu_jpeg_fail(&d->errors, COGPU_CORRUPT,
                        "tag 347 (JPEGTables) holds an image where tables belong");
}

/* Bands of one size, or YCbCr: a subsampled stream was meant as YCbCr, whatever the tag says. */
static void set_jpeg_colours(cogpu_jpeg_reader *d, const cogpu_block_format *format) {
    bool ycbcr = format->photometric == PHOTOMETRIC_YCBCR && format->samples == 3;
    if (format->photometric == PHOTOMETRIC_YCBCR && format->samples > 3)
        cogpu_jpeg_fail(&d->errors, COGPU_CORRUPT, "YCbCr with more than 3 bands");
    for (int i = 0; i < d->codec.num_components && !ycbcr; i++) {
        const jpeg_component_info *band = &d->codec.comp_info[i];
        if (band->h_samp_factor != d->codec.max_h_samp_factor ||
            band->v_samp_factor != d->codec.max_v_samp_factor)
            cogpu_jpeg_fail(&d->errors, COGPU_CORRUPT,
                            "subsampled bands, which only YCbCr can have");
    }
    d->codec.jpeg_color_space = ycbcr ? JCS_YCbCr : JCS_UNKNOWN;
    d->codec.out_color_space = ycbcr ? JCS_RGB : JCS_UNKNOWN;
}

#if COGPU_HAVE_JPEG12
enum { BITS_MAX = 16, BITS_12 = 12 };

/* A row of samples of more than 8 bits, packed as the block has them. Returns the rows read. */
static uint32_t read_wide_row(cogpu_jpeg_reader *d, const cogpu_block_format *format,
                              size_t row_bytes, uint8_t *out) {
    size_t samples = (size_t)format->width * format->samples;
    uint32_t done;
    if (!d->wide)
        d->wide = d->codec.mem->alloc_large((j_common_ptr)&d->codec, JPOOL_IMAGE,
                                            samples * sizeof *d->wide);
    if (format->bits <= BITS_12) {
        J12SAMPROW row = (J12SAMPROW)d->wide;
        done = jpeg12_read_scanlines(&d->codec, &row, 1);
    } else {
        J16SAMPROW row = (J16SAMPROW)d->wide;
        done = jpeg16_read_scanlines(&d->codec, &row, 1);
    }
    memset(out, 0, row_bytes);
    for (size_t i = 0; i < samples; i++)
        cogpu_put_sample(out, i, format->bits, d->wide[i]);
    return done;
}
#else
enum { BITS_MAX = 8 };

static uint32_t read_wide_row(cogpu_jpeg_reader *d, const cogpu_block_format *format,
                              size_t row_bytes, uint8_t *out) {
    (void)format;
    (void)row_bytes;
    (void)out;
    cogpu_jpeg_fail(&d->errors, COGPU_UNSUPPORTED, "samples of more than 8 bits");
}
#endif

static void read_jpeg_rows(cogpu_jpeg_reader *d, const cogpu_block_format *format, uint32_t rows,
                           size_t row_bytes, uint8_t *out, size_t *got) {
    while (rows > 0) {
        JSAMPROW targets[ROWS_AT_ONCE];
        uint32_t count = rows < ROWS_AT_ONCE ? rows : ROWS_AT_ONCE;
        for (uint32_t i = 0; i < count; i++)
            targets[i] = out + *got + i * row_bytes;
        uint32_t done = format->bits == 8 ? jpeg_read_scanlines(&d->codec, targets, count)
                                          : read_wide_row(d, format, row_bytes, out + *got);
        *got += done * row_bytes;
        rows -= done;
    }
}

static void start_rows(cogpu_jpeg_reader *d, const cogpu_block_format *format, cogpu_feed *feed) {
    cogpu_jpeg_open(d);
    load_tables(d, format);
    uint64_t stored = feed->bytes + feed->left;
    d->feed = feed;
    cogpu_jpeg_source(d, feed->at, feed->bytes);
    jpeg_read_header(&d->codec, TRUE);
    cogpu_jpeg_check_header(d, format, stored);
    set_jpeg_colours(d, format);
    jpeg_start_decompress(&d->codec);
    if (d->ran_dry && jpeg_has_multiple_scans(&d->codec))
        cogpu_jpeg_fail(&d->errors, COGPU_CORRUPT, "it ends before its last scan");
    d->is_started = true;
}

/* setjmp is in a function of its own that changes none of its variables (C11 7.13.2.1). */
static cogpu_status decode_rows_guarded(cogpu_jpeg_reader *d, const cogpu_block_format *format,
                                        cogpu_feed *feed, uint8_t *out, size_t out_bytes,
                                        size_t *got) {
    if (setjmp(d->errors.escape) != 0)
        return d->errors.status;
    if (!d->is_started)
        start_rows(d, format, feed);
    size_t row_bits = (size_t)format->width * format->samples * format->bits;
    size_t row_bytes = (size_t)divide_up(row_bits, 8), rows = out_bytes / row_bytes;
    uint32_t left = format->height - d->codec.output_scanline;
    read_jpeg_rows(d, format, rows < left ? (uint32_t)rows : left, row_bytes, out, got);
    return COGPU_OK;
}

/* The rows that come next. */
static cogpu_status decode_jpeg_rows(cogpu_jpeg_reader *d, const cogpu_block_format *format,
                                     cogpu_feed *feed, uint8_t *out, size_t out_bytes, size_t *got,
                                     cogpu_error *error) {
    *got = 0;
    if (format->width == 0 || format->height == 0 || format->samples == 0)
        return cogpu_fail(error, COGPU_CORRUPT, "JPEG: the block has no pixels");
    if (format->bits < 8 || format->bits > 16)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "JPEG with samples of %u bits: only 8 to 16 bits are read", format->bits);
    if (format->bits > BITS_MAX)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "JPEG with samples of %u bits needs libjpeg-turbo 3, this build has %s",
                          format->bits, cogpu_codec_find(COMPRESSION_JPEG)->library_version);
    cogpu_status status = decode_rows_guarded(d, format, feed, out, out_bytes, got);
    return status == COGPU_OK ? COGPU_OK
                              : cogpu_fail(error, status, "JPEG stream: %s", d->errors.reason);
}

cogpu_status cogpu_decode_jpeg(cogpu_codec_state *state, const cogpu_block_format *format,
                               const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                               size_t *got, cogpu_error *error) {
    (void)state;
    cogpu_jpeg_reader d;
    cogpu_feed feed = {.at = in, .bytes = in_bytes};
    memset(&d, 0, sizeof d);
    cogpu_status status = decode_jpeg_rows(&d, format, &feed, out, out_bytes, got, error);
    jpeg_destroy_decompress(&d.codec);
    return status;
}

static cogpu_status decode_jpeg_stream(cogpu_stream_decoder *stream, uint8_t *out, size_t out_bytes,
                                       size_t *got, cogpu_error *error) {
    if (!stream->decoder)
        TRY(cogpu_stream_decoder_open(stream, sizeof(cogpu_jpeg_reader), error));
    return decode_jpeg_rows(stream->decoder, stream->format, stream->feed, out, out_bytes, got,
                            error);
}

static void close_jpeg_stream(cogpu_stream_decoder *stream) {
    if (stream->decoder)
        jpeg_destroy_decompress(&((cogpu_jpeg_reader *)stream->decoder)->codec);
    cogpu_stream_decoder_close(stream);
}

const cogpu_stream_codec cogpu_stream_jpeg = {decode_jpeg_stream, close_jpeg_stream, false};
