/*
 * Old-style JPEG decoder (compression 6, TIFF 6.0 section 22) by libjpeg-turbo.
 *
 * image/old_jpeg.c has collected the header that the blocks share from tags and file; the scan of a
 * block follows it. A block that is a complete JPEG stream has its own header. Subsampled YCbCr is
 * returned as the data units of ycbcr.h, not interpolated, as in libtiff.
 */
#include "codec/jpeg_reader.h"

#include <string.h>

enum { ROW_BYTES_MAX = 65535 * 4, SIDE = DCTSIZE, FACTOR_MAX = 4, BANDS = 3 };

/* Where the rows of samples of one row of MCUs go. */
typedef struct planes {
    JSAMPROW rows[BANDS][FACTOR_MAX * SIDE];
    JSAMPARRAY bands[BANDS];
} planes;

static bool is_stream(const uint8_t *in, size_t in_bytes) {
    return in_bytes >= 2 && in[0] == 0xFF && in[1] == 0xD8;
}

static void start_old_jpeg(cogpu_jpeg_reader *d, const cogpu_block_format *format,
                           cogpu_feed *feed) {
    uint64_t stored = feed->bytes;
    cogpu_jpeg_open(d);
    if (is_stream(feed->at, feed->bytes)) {
        cogpu_jpeg_source(d, feed->at, feed->bytes);
        jpeg_read_header(&d->codec, TRUE);
    } else {
        cogpu_jpeg_source(d, format->jpeg_tables, format->jpeg_table_bytes);
        jpeg_read_header(&d->codec, TRUE);
        cogpu_jpeg_source(d, feed->at, feed->bytes);
        cogpu_feed_consume(feed, feed->bytes);
        d->feed = feed;
    }
    cogpu_jpeg_check_header(d, format, stored);
    d->codec.jpeg_color_space = d->codec.out_color_space = JCS_UNKNOWN;
}

/* Whether the stream is subsampled as the block: the first component, and the others not at all. */
static bool has_units(const cogpu_jpeg_reader *d, const cogpu_block_format *format) {
    const jpeg_component_info *band = d->codec.comp_info;
    return d->codec.num_components == BANDS && format->subsampling_x <= FACTOR_MAX &&
           format->subsampling_y <= FACTOR_MAX &&
           band[0].h_samp_factor == (int)format->subsampling_x &&
           band[0].v_samp_factor == (int)format->subsampling_y && band[1].h_samp_factor == 1 &&
           band[1].v_samp_factor == 1 && band[2].h_samp_factor == 1 && band[2].v_samp_factor == 1;
}

/* Rows of whole blocks of samples, from the codec's working memory. */
static void set_planes(cogpu_jpeg_reader *d, cogpu_codec_state *state, planes *p) {
    size_t total = 0;
    for (int i = 0; i < BANDS; i++)
        total += (size_t)d->codec.comp_info[i].width_in_blocks * SIDE * SIDE *
                 (size_t)d->codec.comp_info[i].v_samp_factor;
    uint8_t *memory = cogpu_codec_work(state, total);
    if (!memory)
        cogpu_jpeg_fail(&d->errors, COGPU_OUT_OF_MEMORY, "out of memory for a row");
    for (int i = 0; i < BANDS; i++) {
        size_t row_bytes = (size_t)d->codec.comp_info[i].width_in_blocks * SIDE;
        p->bands[i] = p->rows[i];
        for (int y = 0; y < d->codec.comp_info[i].v_samp_factor * SIDE; y++, memory += row_bytes)
            p->rows[i][y] = memory;
    }
}

/* One row of data units: luma row by row, then both colours. */
static size_t put_units(const cogpu_block_format *format, const planes *p, uint32_t row,
                        uint8_t *out) {
    uint32_t across = format->subsampling_x, down = format->subsampling_y;
    const uint8_t *start = out;
    for (uint32_t x = 0; x < (format->width + across - 1) / across; x++) {
        for (uint32_t y = 0; y < down; y++, out += across)
            memcpy(out, p->rows[0][row * down + y] + (size_t)x * across, across);
        *out++ = p->rows[1][row][x];
        *out++ = p->rows[2][row][x];
    }
    return (size_t)(out - start);
}

static void read_units(cogpu_jpeg_reader *d, const cogpu_block_format *format,
                       cogpu_codec_state *state, uint8_t *out, size_t out_bytes, size_t *got) {
    uint32_t down = format->subsampling_y, rows = (format->height + down - 1) / down;
    uint64_t row_bytes =
        (uint64_t)((format->width + format->subsampling_x - 1) / format->subsampling_x) *
        (format->subsampling_x * down + 2);
    planes p;
    if (row_bytes * rows > out_bytes)
        cogpu_jpeg_fail(&d->errors, COGPU_CORRUPT, "more pixels than the block has");
    d->codec.raw_data_out = TRUE;
    jpeg_start_decompress(&d->codec);
    set_planes(d, state, &p);
    for (uint32_t done = 0; done < rows;) {
        if (jpeg_read_raw_data(&d->codec, p.bands, down * SIDE) == 0)
            cogpu_jpeg_fail(&d->errors, COGPU_CORRUPT, "it is cut off");
        for (uint32_t row = 0; row < SIDE && done < rows; row++, done++)
            *got += put_units(format, &p, row, out + *got);
    }
}

/* Components of one size, or such as libjpeg interpolates. */
static void read_old_jpeg_rows(cogpu_jpeg_reader *d, const cogpu_block_format *format, uint8_t *out,
                               size_t out_bytes, size_t *got) {
    size_t row_bytes = (size_t)format->width * format->samples;
    if (row_bytes > ROW_BYTES_MAX || row_bytes * (uint64_t)format->height > out_bytes)
        cogpu_jpeg_fail(&d->errors, COGPU_CORRUPT, "more pixels than the block has");
    jpeg_start_decompress(&d->codec);
    for (uint32_t y = 0; y < format->height; y++) {
        JSAMPROW row = out + *got;
        if (jpeg_read_scanlines(&d->codec, &row, 1) == 0)
            cogpu_jpeg_fail(&d->errors, COGPU_CORRUPT, "it is cut off");
        *got += row_bytes;
    }
}

/* setjmp is in a function of its own that changes none of its variables (C11 7.13.2.1). */
static cogpu_status decode_old_jpeg_guarded(cogpu_jpeg_reader *d, cogpu_codec_state *state,
                                            const cogpu_block_format *format, cogpu_feed *feed,
                                            uint8_t *out, size_t out_bytes, size_t *got) {
    if (setjmp(d->errors.escape) != 0)
        return d->errors.status;
    start_old_jpeg(d, format, feed);
    if (format->subsampling_x <= 1 && format->subsampling_y <= 1)
        read_old_jpeg_rows(d, format, out, out_bytes, got);
    else if (has_units(d, format))
        read_units(d, format, state, out, out_bytes, got);
    else
        cogpu_jpeg_fail(&d->errors, COGPU_CORRUPT,
                        "its subsampling is not that of the first block");
    return COGPU_OK;
}

cogpu_status cogpu_decode_jpeg_old(cogpu_codec_state *state, const cogpu_block_format *format,
                                   const uint8_t *in, size_t in_bytes, uint8_t *out,
                                   size_t out_bytes, size_t *got, cogpu_error *error) {
    cogpu_jpeg_reader d;
    cogpu_feed feed = {.at = in, .bytes = in_bytes};
    *got = 0;
    if (format->width == 0 || format->height == 0)
        return cogpu_fail(error, COGPU_CORRUPT, "old-style JPEG: the block has no pixels");
    if (format->bits != 8 || (format->samples != 1 && format->samples != BANDS))
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "old-style JPEG with %u bands of %u bits in a block: only 1 or 3 of 8 "
                          "bits are read",
                          format->samples, format->bits);
    if (!format->jpeg_tables && !is_stream(in, in_bytes))
        return cogpu_fail(error, COGPU_CORRUPT,
                          "old-style JPEG: neither the tags nor the block hold a header that can "
                          "be read");
    memset(&d, 0, sizeof d);
    cogpu_status status = decode_old_jpeg_guarded(&d, state, format, &feed, out, out_bytes, got);
    jpeg_destroy_decompress(&d.codec);
    if (status == COGPU_OK)
        return COGPU_OK;
    *got = 0;
    return cogpu_fail(error, status, "old-style JPEG stream: %s", d.errors.reason);
}
