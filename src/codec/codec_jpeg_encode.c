/*
 * JPEG encoder (compression 7, TIFF Technical Note 2) by libjpeg-turbo: rows of 8-bit samples to a
 * baseline stream (ITU-T T.81).
 *
 * The Huffman tables are those of T.81 Annex K, so that all blocks of a file have the same tables:
 * tag 347 (JPEGTables) holds them once, and no stream repeats them. TIFF's tags say what the
 * samples mean, so there is no JFIF or Adobe marker that could contradict them. Bands are stored as
 * they are, except that RGB is converted if the photometric interpretation is YCbCr.
 */
#include "base/checked.h"
#include "codec/jpeg_errors.h"

#include <assert.h>
#include <string.h>

enum { ROWS_AT_ONCE = 16, SAMPLES_MAX = 4, PHOTOMETRIC_YCBCR = 6 };

/* All of a stream but its 8 x 8 blocks. */
enum { HEADERS_MAX = 1024 };

/* Zigzag order (T.81 A.3.6): the index in the 8 x 8 block of each coefficient of the stream. */
static const uint8_t zigzag[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                   12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                   35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                   58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

typedef struct jpeg_writer {
    struct jpeg_compress_struct codec;
    cogpu_jpeg_errors errors;
    struct jpeg_destination_mgr destination;
} jpeg_writer;

static void ignore_destination(j_compress_ptr codec) {
    (void)codec;
}

static boolean on_full_buffer(j_compress_ptr codec) {
    jpeg_writer *w = codec->client_data;
    cogpu_jpeg_fail(&w->errors, COGPU_LIMIT_EXCEEDED, "it is larger than its buffer");
}

static void open_codec(jpeg_writer *w, uint8_t *out, size_t out_bytes) {
    w->errors.default_status = COGPU_UNSUPPORTED;
    w->codec.err = cogpu_jpeg_error_manager(&w->errors);
    w->codec.client_data = w;
    jpeg_create_compress(&w->codec);
    w->destination.init_destination = ignore_destination;
    w->destination.empty_output_buffer = on_full_buffer;
    w->destination.term_destination = ignore_destination;
    w->destination.next_output_byte = out;
    w->destination.free_in_buffer = out_bytes;
    w->codec.dest = &w->destination;
}

static bool stores_ycbcr(const cogpu_block_format *format) {
    return format->photometric == PHOTOMETRIC_YCBCR;
}

/* In these colour spaces libjpeg does not convert samples. Bands of RGB get the component ids 'R',
 * 'G', 'B', which readers that ignore TIFF's tags understand. */
static void set_parameters(jpeg_writer *w, const cogpu_encoding *encoding) {
    static const J_COLOR_SPACE spaces[SAMPLES_MAX + 1] = {JCS_UNKNOWN, JCS_GRAYSCALE, JCS_UNKNOWN,
                                                          JCS_RGB, JCS_CMYK};
    const cogpu_block_format *format = &encoding->format;
    struct jpeg_compress_struct *codec = &w->codec;
    codec->image_width = format->width;
    codec->image_height = format->height;
    codec->input_components = (int)format->samples;
    codec->in_color_space = spaces[format->samples];
    jpeg_set_defaults(codec);
    jpeg_set_colorspace(codec, stores_ycbcr(format) ? JCS_YCbCr : codec->in_color_space);
    jpeg_set_quality(codec, encoding->quality, TRUE);
    if (stores_ycbcr(format)) {
        codec->comp_info[0].h_samp_factor = (int)format->subsampling_x;
        codec->comp_info[0].v_samp_factor = (int)format->subsampling_y;
    }
    codec->write_JFIF_header = FALSE;
    codec->write_Adobe_marker = FALSE;
    jpeg_suppress_tables(codec, TRUE);
}

static void write_rows(jpeg_writer *w, const cogpu_block_format *format, const uint8_t *in) {
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

/* The tables that blocks use; the second of each kind is for Cb and Cr. */
static void write_tables(jpeg_writer *w, const cogpu_block_format *format) {
    for (int i = 0; i < (stores_ycbcr(format) ? 2 : 1); i++) {
        w->codec.quant_tbl_ptrs[i]->sent_table = FALSE;
        w->codec.dc_huff_tbl_ptrs[i]->sent_table = FALSE;
        w->codec.ac_huff_tbl_ptrs[i]->sent_table = FALSE;
    }
    jpeg_write_tables(&w->codec);
}

/* setjmp is in a function of its own that changes none of its variables (C11 7.13.2.1). */
static cogpu_status run_codec(jpeg_writer *w, const cogpu_encoding *encoding, const uint8_t *in,
                              uint8_t *out, size_t out_bytes) {
    if (setjmp(w->errors.escape) != 0)
        return w->errors.status;
    open_codec(w, out, out_bytes);
    set_parameters(w, encoding);
    if (in)
        write_rows(w, &encoding->format, in);
    else
        write_tables(w, &encoding->format);
    return COGPU_OK;
}

static cogpu_status check_jpeg_format(const cogpu_block_format *format, cogpu_error *error) {
    if (format->bits != 8 || format->samples == 0 || format->samples > SAMPLES_MAX)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "JPEG with %u bands of %u bits: it has 1 to 4 of 8 bits; store each band "
                          "by itself (planar) or take another codec",
                          format->samples, format->bits);
    if (stores_ycbcr(format) && format->samples != 3)
        return cogpu_fail(error, COGPU_UNSUPPORTED, "JPEG: YCbCr is made of 3 bands, not of %u",
                          format->samples);
    return COGPU_OK;
}

/* A stream of the block's rows; the tables alone if `in` is NULL. */
static cogpu_status write_stream(const cogpu_encoding *encoding, const uint8_t *in, uint8_t *out,
                                 size_t out_bytes, size_t *got, cogpu_error *error) {
    jpeg_writer w;
    *got = 0;
    TRY(check_jpeg_format(&encoding->format, error));
    memset(&w, 0, sizeof w);
    cogpu_status status = run_codec(&w, encoding, in, out, out_bytes);
    jpeg_destroy_compress(&w.codec);
    if (status != COGPU_OK)
        return cogpu_fail(error, status, "JPEG, block of %u x %u pixels: %s",
                          encoding->format.width, encoding->format.height, w.errors.reason);
    *got = out_bytes - w.destination.free_in_buffer;
    return COGPU_OK;
}

cogpu_status cogpu_jpeg_tables(const cogpu_encoding *encoding, uint8_t *to, size_t capacity,
                               size_t *bytes, cogpu_error *error) {
    return write_stream(encoding, NULL, to, capacity, bytes, error);
}

static cogpu_status make_tables_tag(const cogpu_encoding *encoding, cogpu_codec_tag *tag,
                                    cogpu_error *error) {
    enum { TAG_JPEG_TABLES = 347, TYPE_UNDEFINED = 7 };
    size_t bytes = 0;
    TRY(cogpu_jpeg_tables(encoding, tag->values, sizeof tag->values, &bytes, error));
    tag->id = TAG_JPEG_TABLES;
    tag->type = TYPE_UNDEFINED;
    tag->count = bytes;
    return COGPU_OK;
}

static cogpu_status encode_jpeg(cogpu_codec_state *state, const cogpu_encoding *encoding,
                                const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                                size_t *got, cogpu_error *error) {
    (void)state;
    (void)in_bytes;
    assert(in_bytes == encoding->format.height * encoding->format.row_bytes);
    return write_stream(encoding, in, out, out_bytes, got, error);
}

/* ---- how large a stream may get ------------------------------------------------------------ */

/* Upper bound of the bytes of an 8 x 8 block, whatever its samples are.
 *
 * Each coefficient is 0 or large enough for a symbol of some size, and the squares of all of them
 * sum up to at most the energy of samples between -128 and 127, which the DCT preserves. The most
 * expensive choice of symbols under that constraint is hard to compute, so we use its Lagrangian
 * relaxation: with a price on energy, dynamic programming from the last coefficient to the first
 * finds the most expensive choice, and adding the price of all energy bounds every choice within
 * it. Any price gives a bound; this one is tight for all qualities.
 *
 * Byte stuffing (T.81 B.1.1.5) adds a zero byte after 0xFF: each one bit counts as two. */
enum { COEFFICIENTS = 64, SIZES = 10, RUNS = 16, ALL_ZERO = 0x00, RUN_OF_16 = 0xF0 };
enum { FIRST_BITS = 44 };       /* of the DC coefficient: a code of 11 and 11 more, all ones */
enum { BLOCK_BYTES_MAX = 288 }; /* bytes, with quantisers of 1 */
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

/* The smallest coefficient with `size` bits after quantisation; integer arithmetic may be off by 1.
 */
static double least_of_size(uint32_t size, uint32_t quantiser) {
    double least = ((1u << (size - 1)) - 0.5) * quantiser - 1;
    return least > 0 ? least : 0;
}

static uint32_t block_bytes_max(const JQUANT_TBL *quantisers, const JHUFF_TBL *table) {
    double weights[256] = {0}, most[COEFFICIENTS + 1] = {0}; /* bits from a coefficient on */
    weigh_symbols(table, weights);
    for (uint32_t first = COEFFICIENTS - 1; first > 0; first--) {
        most[first] = weights[ALL_ZERO];
        for (uint32_t at = first; at < COEFFICIENTS; at++)
            for (uint32_t size = 1; size <= SIZES; size++) {
                uint32_t zeros = at - first;
                double least = least_of_size(size, quantisers->quantval[zigzag[at]]);
                double bits = zeros / RUNS * weights[RUN_OF_16] +
                              weights[zeros % RUNS * RUNS + size] - price * least * least +
                              most[at + 1];
                most[first] = bits > most[first] ? bits : most[first];
            }
    }
    return (uint32_t)((most[1] + price * energy + FIRST_BITS) / 8) + 1;
}

/* With the tables of this quality: the larger of luma and chroma. */
static uint32_t largest_coded_block(const cogpu_encoding *encoding) {
    jpeg_writer w;
    uint8_t tables[HEADERS_MAX];
    memset(&w, 0, sizeof w);
    uint32_t most = BLOCK_BYTES_MAX;
    if (check_jpeg_format(&encoding->format, NULL) == COGPU_OK &&
        run_codec(&w, encoding, NULL, tables, sizeof tables) == COGPU_OK) {
        most = 0;
        for (int i = 0; i < 2; i++) {
            uint32_t bytes =
                block_bytes_max(w.codec.quant_tbl_ptrs[i], w.codec.ac_huff_tbl_ptrs[i]);
            most = bytes > most ? bytes : most;
        }
    }
    jpeg_destroy_compress(&w.codec);
    return most;
}

/* Whole MCUs (T.81 A.2): subsampled bands have fewer blocks. */
static uint64_t bound_jpeg(const cogpu_encoding *encoding, uint64_t in_bytes) {
    const cogpu_block_format *format = &encoding->format;
    (void)in_bytes;
    uint64_t factor_x = 1, factor_y = 1, others = format->samples - 1;
    if (stores_ycbcr(format)) {
        factor_x = format->subsampling_x;
        factor_y = format->subsampling_y;
    }
    uint64_t units =
        divide_up(format->width, 8 * factor_x) * divide_up(format->height, 8 * factor_y);
    return HEADERS_MAX + units * (factor_x * factor_y + others) * largest_coded_block(encoding);
}

const cogpu_encoder cogpu_encoder_jpeg = {
    .encode = encode_jpeg, .bound = bound_jpeg, .make_tag = make_tables_tag};
