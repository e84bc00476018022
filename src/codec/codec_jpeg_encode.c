/*
 * JPEG (compression 7), written through libjpeg-turbo: rows of 8-bit samples in, a stream out.
 *
 * Baseline, with the usual Huffman tables, so that all blocks of a file have the same tables: they
 * stand once in tag 347 (cogpu_jpeg_tables) and no stream repeats them. What the samples mean is
 * told by TIFF's tags, so there is no JFIF or Adobe marker that could contradict them. Bands are
 * stored as they are, but for YCbCr, which is made of RGB here.
 */
#include "base/checked.h"
#include "codec/codec.h"

#include <assert.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

enum { ROWS_AT_ONCE = 16, SAMPLES_MAX = 4, PHOTOMETRIC_YCBCR = 6 };

/* All of a stream but its squares. */
enum { HEADERS_MAX = 1024 };

/* Where the coefficients stand that JPEG stores one after the other. */
static const uint8_t order[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                  12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                  35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                  58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

typedef struct writing {
    struct jpeg_compress_struct codec;
    struct jpeg_error_mgr errors;
    struct jpeg_destination_mgr destination;
    jmp_buf escape;
    cogpu_status status;
    char reason[JMSG_LENGTH_MAX];
} writing;

static _Noreturn void on_error(j_common_ptr codec) {
    writing *w = codec->client_data;
    codec->err->format_message(codec, w->reason);
    w->status = codec->err->msg_code == JERR_OUT_OF_MEMORY ? COGPU_MEMORY : COGPU_UNSUPPORTED;
    longjmp(w->escape, 1);
}

static void ignore_message(j_common_ptr codec) {
    (void)codec;
}

static void ignore_level(j_common_ptr codec, int level) {
    (void)codec;
    (void)level;
}

static void ignore_destination(j_compress_ptr codec) {
    (void)codec;
}

static boolean room_is_full(j_compress_ptr codec) {
    writing *w = codec->client_data;
    snprintf(w->reason, sizeof w->reason, "it is larger than its room");
    w->status = COGPU_LIMIT;
    longjmp(w->escape, 1);
}

static void open_codec(writing *w, uint8_t *out, size_t out_bytes) {
    w->codec.err = jpeg_std_error(&w->errors);
    w->errors.error_exit = on_error;
    w->errors.emit_message = ignore_level;
    w->errors.output_message = ignore_message;
    w->codec.client_data = w;
    jpeg_create_compress(&w->codec);
    w->destination.init_destination = ignore_destination;
    w->destination.empty_output_buffer = room_is_full;
    w->destination.term_destination = ignore_destination;
    w->destination.next_output_byte = out;
    w->destination.free_in_buffer = out_bytes;
    w->codec.dest = &w->destination;
}

static bool is_ycbcr(const cogpu_block_format *format) {
    return format->photometric == PHOTOMETRIC_YCBCR;
}

/* The spaces are those in which the library leaves samples as they are. RGB has names of bands that
 * also readers that do not know the tags take for RGB. */
static void describe(writing *w, const cogpu_encoding *encoding) {
    static const J_COLOR_SPACE spaces[SAMPLES_MAX + 1] = {JCS_UNKNOWN, JCS_GRAYSCALE, JCS_UNKNOWN,
                                                          JCS_RGB, JCS_CMYK};
    const cogpu_block_format *format = &encoding->format;
    struct jpeg_compress_struct *codec = &w->codec;
    codec->image_width = format->width;
    codec->image_height = format->height;
    codec->input_components = (int)format->samples;
    codec->in_color_space = spaces[format->samples];
    jpeg_set_defaults(codec);
    jpeg_set_colorspace(codec, is_ycbcr(format) ? JCS_YCbCr : codec->in_color_space);
    jpeg_set_quality(codec, encoding->quality, TRUE);
    if (is_ycbcr(format)) {
        codec->comp_info[0].h_samp_factor = (int)format->subsampling_x;
        codec->comp_info[0].v_samp_factor = (int)format->subsampling_y;
    }
    codec->write_JFIF_header = FALSE;
    codec->write_Adobe_marker = FALSE;
    jpeg_suppress_tables(codec, TRUE);
}

static void write_rows(writing *w, const cogpu_block_format *format, const uint8_t *in) {
    jpeg_start_compress(&w->codec, FALSE);
    while (w->codec.next_scanline < format->height) {
        JSAMPROW rows[ROWS_AT_ONCE];
        uint32_t left = format->height - w->codec.next_scanline;
        uint32_t count = left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE;
        for (uint32_t i = 0; i < count; i++)
            rows[i] = (JSAMPROW)in + (w->codec.next_scanline + i) * format->row_bytes;
        jpeg_write_scanlines(&w->codec, rows, count);
    }
    jpeg_finish_compress(&w->codec);
}

/* Those that blocks use: the second ones are for Cb and Cr. */
static void write_tables(writing *w, const cogpu_block_format *format) {
    for (int i = 0; i < (is_ycbcr(format) ? 2 : 1); i++) {
        w->codec.quant_tbl_ptrs[i]->sent_table = FALSE;
        w->codec.dc_huff_tbl_ptrs[i]->sent_table = FALSE;
        w->codec.ac_huff_tbl_ptrs[i]->sent_table = FALSE;
    }
    jpeg_write_tables(&w->codec);
}

/* setjmp stands in a function of its own that changes none of its variables. */
static cogpu_status guarded(writing *w, const cogpu_encoding *encoding, const uint8_t *in,
                            uint8_t *out, size_t out_bytes) {
    if (setjmp(w->escape) != 0)
        return w->status;
    open_codec(w, out, out_bytes);
    describe(w, encoding);
    if (in)
        write_rows(w, &encoding->format, in);
    else
        write_tables(w, &encoding->format);
    return COGPU_OK;
}

static cogpu_status check(const cogpu_block_format *format, cogpu_error *error) {
    if (format->bits != 8 || format->samples == 0 || format->samples > SAMPLES_MAX)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "JPEG with %u bands of %u bits: it has 1 to 4 of 8 bits; store each band "
                          "by itself (planar) or take another codec",
                          format->samples, format->bits);
    if (is_ycbcr(format) && format->samples != 3)
        return cogpu_fail(error, COGPU_UNSUPPORTED, "JPEG: YCbCr is made of 3 bands, not of %u",
                          format->samples);
    return COGPU_OK;
}

/* A stream of the block's rows; without rows, the tables. */
static cogpu_status write_stream(const cogpu_encoding *encoding, const uint8_t *in, uint8_t *out,
                                 size_t out_bytes, size_t *got, cogpu_error *error) {
    writing w;
    *got = 0;
    TRY(check(&encoding->format, error));
    memset(&w, 0, sizeof w);
    cogpu_status status = guarded(&w, encoding, in, out, out_bytes);
    jpeg_destroy_compress(&w.codec);
    if (status != COGPU_OK)
        return cogpu_fail(error, status, "JPEG, block of %u x %u pixels: %s",
                          encoding->format.width, encoding->format.height, w.reason);
    *got = out_bytes - w.destination.free_in_buffer;
    return COGPU_OK;
}

cogpu_status cogpu_jpeg_tables(const cogpu_encoding *encoding, uint8_t *to, size_t room,
                               size_t *bytes, cogpu_error *error) {
    return write_stream(encoding, NULL, to, room, bytes, error);
}

static cogpu_status encode(cogpu_codec_state *state, const cogpu_encoding *encoding,
                           const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                           size_t *got, cogpu_error *error) {
    (void)state;
    (void)in_bytes;
    assert(in_bytes == encoding->format.height * encoding->format.row_bytes);
    return write_stream(encoding, in, out, out_bytes, got, error);
}

/* ---- how large a stream may get ------------------------------------------------------------ */

/* Bytes of a square of 8 x 8 samples, whatever they are: its coefficients in the order of JPEG,
 * each of them either 0 or large enough for a symbol of some size, and all of them bound by the
 * energy of samples between -128 and 127, which the transform keeps. What the bits of the costliest
 * choice come to is hard to tell; but with a price on energy the costliest is found from the last
 * coefficient to the first, and if it pays for all of the energy that there is, no choice within it
 * costs more. Any price gives a bound; this one a good bound for all qualities.
 *
 * After a byte of ones a zero byte is stuffed: so each bit that is one counts as two. */
enum { COEFFICIENTS = 64, SIZES = 10, RUNS = 16, ALL_ZERO = 0x00, RUN_OF_16 = 0xF0 };
enum { FIRST_BITS = 44 };  /* of the first coefficient: a code of 11 and 11 more, all ones */
enum { SQUARE_MAX = 288 }; /* bytes, with quantisers of 1 */
static const double energy = 64 * 128 * 128, price = 1.0 / 8192;

/* Bits of each symbol of a Huffman table with those that follow it, ones twice. */
static void weigh_symbols(const JHUFF_TBL *table, double weights[256]) {
    uint32_t code = 0, index = 0;
    for (uint32_t length = 1; length <= 16; length++, code <<= 1)
        for (uint32_t i = 0; i < table->bits[length]; i++, code++) {
            uint8_t symbol = table->huffval[index++];
            uint32_t size = symbol % RUNS, ones = 0;
            for (uint32_t bits = code; bits; bits >>= 1)
                ones += bits & 1;
            weights[symbol] = length + ones + 2 * size;
        }
}

/* The least that a coefficient is to have `size` bits when it is quantised. Reckoned with whole
 * numbers, it may be off by 1. */
static double least_of_size(uint32_t size, uint32_t quantiser) {
    double least = ((1u << (size - 1)) - 0.5) * quantiser - 1;
    return least > 0 ? least : 0;
}

static uint32_t square_bytes(const JQUANT_TBL *quantisers, const JHUFF_TBL *table) {
    double weights[256] = {0}, most[COEFFICIENTS + 1] = {0}; /* bits from a coefficient on */
    weigh_symbols(table, weights);
    for (uint32_t first = COEFFICIENTS - 1; first > 0; first--) {
        most[first] = weights[ALL_ZERO];
        for (uint32_t at = first; at < COEFFICIENTS; at++)
            for (uint32_t size = 1; size <= SIZES; size++) {
                uint32_t zeros = at - first;
                double least = least_of_size(size, quantisers->quantval[order[at]]);
                double bits = zeros / RUNS * weights[RUN_OF_16] +
                              weights[zeros % RUNS * RUNS + size] - price * least * least +
                              most[at + 1];
                most[first] = bits > most[first] ? bits : most[first];
            }
    }
    return (uint32_t)((most[1] + price * energy + FIRST_BITS) / 8) + 1;
}

/* With the tables of this quality, whichever of both a band has. */
static uint32_t largest_square(const cogpu_encoding *encoding) {
    writing w;
    uint8_t tables[HEADERS_MAX];
    memset(&w, 0, sizeof w);
    uint32_t most = SQUARE_MAX;
    if (check(&encoding->format, NULL) == COGPU_OK &&
        guarded(&w, encoding, NULL, tables, sizeof tables) == COGPU_OK) {
        most = 0;
        for (int i = 0; i < 2; i++) {
            uint32_t bytes = square_bytes(w.codec.quant_tbl_ptrs[i], w.codec.ac_huff_tbl_ptrs[i]);
            most = bytes > most ? bytes : most;
        }
    }
    jpeg_destroy_compress(&w.codec);
    return most;
}

/* Squares of all bands but the subsampled ones, which have fewer; sides are filled up. */
static uint64_t bound(const cogpu_encoding *encoding, uint64_t in_bytes) {
    const cogpu_block_format *format = &encoding->format;
    (void)in_bytes;
    uint64_t squares_x = 1, squares_y = 1, others = format->samples - 1;
    if (is_ycbcr(format)) {
        squares_x = format->subsampling_x;
        squares_y = format->subsampling_y;
    }
    uint64_t units =
        divide_up(format->width, 8 * squares_x) * divide_up(format->height, 8 * squares_y);
    return HEADERS_MAX + units * (squares_x * squares_y + others) * largest_square(encoding);
}

const cogpu_encoder cogpu_encoder_jpeg = {.encode = encode, .bound = bound};
