/*
 * The CCITT codecs, against an encoder of the test's own that follows T.4 and T.6 to the letter:
 * codes as text, a byte a pixel. Trap T103.
 */
#include "support/ccitt_codes.h"
#include "support/codec_test.h"

enum { WIDTH_MAX = 6000, ROWS = 24, BYTES_MAX = 200000 };

static cogpu_block_format format;
static uint8_t page[ROWS][WIDTH_MAX]; /* a byte a pixel, 1 is black */
static uint8_t packed_page[ROWS * WIDTH_MAX / 8], stream[BYTES_MAX];
static size_t stream_bits;

static cogpu_decode ccitt;
static cogpu_status ccitt(cogpu_codec_state *state, const cogpu_block_format *none,
                          const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                          size_t *got, cogpu_error *error) {
    (void)none;
    cogpu_status status =
        cogpu_decode_ccitt(state, &format, in, in_bytes, out, out_bytes, got, error);
    CHECK(parts_give(&cogpu_stream_ccitt, &format, in, in_bytes, status, out, *got, out_bytes,
                     status == COGPU_OK));
    return status;
}

/* ---- the encoder ---------------------------------------------------------------------------- */

static void clear_stream(void) {
    memset(stream, 0, sizeof stream);
    stream_bits = 0;
}

static void put(const char *bits) {
    for (; *bits; bits++, stream_bits++)
        stream[stream_bits / 8] |= (uint8_t)((*bits == '1') << (7 - stream_bits % 8));
}

static void put_run(bool black, uint32_t run) {
    const char *const *codes = black ? black_runs : white_runs;
    for (; run >= 2560; run -= 2560)
        put(long_runs[12]);
    if (run >= 1792)
        put(long_runs[(run - 1792) / 64]);
    else if (run >= 64)
        put(codes[63 + run / 64]);
    put(codes[run % 64]);
}

/* The first column from `column` on where the row has another colour than `black`. */
static uint32_t run_end(const uint8_t *row, uint32_t column, bool black) {
    while (column < format.width && row[column] == black)
        column++;
    return column;
}

static void put_row_1d(const uint8_t *row) {
    uint32_t column = 0;
    for (bool black = false; column < format.width; black = !black) {
        uint32_t end = run_end(row, column, black);
        put_run(black, end - column);
        column = end;
    }
}

/* b1: the first change above, right of a0, to the colour that is not the current one. */
static uint32_t next_change_above(const uint8_t *above, int64_t a0, bool black) {
    for (int64_t x = a0 + 1; x < format.width; x++)
        if (above[x] != black && (x == 0 ? false : above[x - 1]) == black)
            return (uint32_t)x;
    return format.width;
}

/* The vertical modes: 3 left, ... 3 right. */
static const char *const shifts[] = {"0000010", "000010", "010", "1", "011", "000011", "0000011"};

static void put_row_2d(const uint8_t *row, const uint8_t *above) {
    int64_t a0 = -1;
    bool black = false;
    while (a0 < format.width) {
        uint32_t from = a0 < 0 ? 0 : (uint32_t)a0;
        uint32_t a1 = run_end(row, from, black);
        uint32_t b1 = next_change_above(above, a0, black);
        uint32_t b2 = run_end(above, b1, !black);
        int64_t shift = (int64_t)a1 - b1;
        if (b2 < a1) {
            put("0001");
            a0 = b2;
        } else if (shift >= -3 && shift <= 3) {
            put(shifts[shift + 3]);
            a0 = a1;
            black = !black;
        } else {
            uint32_t a2 = run_end(row, a1, !black);
            put("001");
            put_run(black, a1 - from);
            put_run(!black, a2 - a1);
            a0 = a2;
        }
    }
}

static void put_eol(int fill) {
    if (fill)
        while (stream_bits % 8 != 4)
            put("0");
    put("000000000001");
}

static void encode_g4(void) {
    static const uint8_t white[WIDTH_MAX];
    clear_stream();
    for (uint32_t y = 0; y < format.height; y++)
        put_row_2d(page[y], y ? page[y - 1] : white);
    put("000000000001000000000001");
}

static void encode_rle(uint32_t unit) {
    clear_stream();
    for (uint32_t y = 0; y < format.height; y++) {
        put_row_1d(page[y]);
        while (stream_bits % unit)
            put("0");
    }
}

/* Each row, or with two dimensions each fourth row, is coded by itself. */
static void encode_g3(uint32_t options, int fill) {
    bool two = options & 1;
    clear_stream();
    for (uint32_t y = 0; y < format.height; y++) {
        put_eol(fill);
        if (two)
            put(y % 4 ? "0" : "1");
        if (two && y % 4)
            put_row_2d(page[y], page[y - 1]);
        else
            put_row_1d(page[y]);
    }
    for (int i = 0; i < 6; i++) {
        put_eol(fill && i == 0);
        put(two ? "1" : "");
    }
}

/* ---- pages ---------------------------------------------------------------------------------- */

static void pack_page(void) {
    size_t row_bytes = (format.width + 7) / 8;
    memset(packed_page, 0, sizeof packed_page);
    for (uint32_t y = 0; y < format.height; y++)
        for (uint32_t x = 0; x < format.width; x++)
            packed_page[y * row_bytes + x / 8] |= (uint8_t)(page[y][x] << (7 - x % 8));
}

static void expect_block(uint32_t compression, uint32_t width, uint32_t height) {
    format = (cogpu_block_format){.width = width,
                                  .height = height,
                                  .samples = 1,
                                  .bits = 1,
                                  .type = COGPU_TYPE_U8,
                                  .row_bytes = (width + 7) / 8,
                                  .compression = compression};
}

/* Kinds of pages: white, black, noise, shapes that shift a little from row to row, long runs. */
enum { KINDS = 5 };

static void draw_page(int kind) {
    uint32_t state = 99;
    for (uint32_t y = 0; y < format.height; y++) {
        for (uint32_t x = 0; x < format.width; x++) {
            state = state * 1664525u + 1013904223u;
            const uint8_t pixel[KINDS] = {0, 1, state >> 31 != 0, (x + y * y % 5) / 6 % 3 == 0,
                                          (x + y * 40) % 4500 > 2100};
            page[y][x] = pixel[kind];
        }
    }
    pack_page();
}

static size_t block_bytes(void) {
    return format.row_bytes * format.height;
}

static int gives_page(void) {
    return decodes_to(ccitt, stream, (stream_bits + 7) / 8, packed_page, block_bytes(),
                      block_bytes());
}

static const uint32_t widths[] = {1, 2, 7, 8, 9, 31, 64, 65, 500, 1728, 2623, WIDTH_MAX};
enum { WIDTHS = sizeof widths / sizeof *widths };

static void group_4(void) {
    for (size_t i = 0; i < WIDTHS * KINDS; i++) {
        expect_block(COMPRESSION_CCITT_G4, widths[i / KINDS], ROWS);
        draw_page((int)(i % KINDS));
        encode_g4();
        CHECK(gives_page());
        stream_bits -= 24; /* without its end, which is all that may be missing */
        CHECK(gives_page());
    }
}

static void group_3(void) {
    for (size_t i = 0; i < WIDTHS * KINDS; i++) {
        for (uint32_t options = 0; options < 2; options++) {
            for (int fill = 0; fill < 2; fill++) {
                expect_block(COMPRESSION_CCITT_G3, widths[i / KINDS], ROWS);
                format.t4_options = options | (fill ? 4 : 0);
                draw_page((int)(i % KINDS));
                encode_g3(options, fill);
                CHECK(gives_page());
            }
        }
    }
}

static void runs_by_bytes_and_words(void) {
    for (size_t i = 0; i < WIDTHS * KINDS; i++) {
        expect_block(COMPRESSION_CCITT_RLE, widths[i / KINDS], ROWS);
        draw_page((int)(i % KINDS));
        encode_rle(8);
        CHECK(gives_page());
        format.compression = COMPRESSION_CCITT_RLEW;
        encode_rle(16);
        CHECK(gives_page());
    }
}

/* Every length that a run can have, in both colours. */
static void every_run(void) {
    for (uint32_t run = 0; run < 2700; run++) {
        expect_block(COMPRESSION_CCITT_RLE, 5500, 1);
        memset(page[0], 0, sizeof page[0]);
        memset(page[0] + 2700 - run, 1, run);
        pack_page();
        encode_rle(8);
        CHECK(gives_page());
    }
}

static void no_eol_in_group_3(void) {
    expect_block(COMPRESSION_CCITT_G3, 100, ROWS);
    draw_page(3);
    clear_stream();
    for (uint32_t y = 0; y < ROWS; y++) {
        if (y > 10) /* and some that begin late */
            put_eol(0);
        put_row_1d(page[y]);
    }
    CHECK(gives_page());
}

static void bits_between_rows(void) {
    expect_block(COMPRESSION_CCITT_G3, 100, ROWS);
    draw_page(3);
    clear_stream();
    for (uint32_t y = 0; y < ROWS; y++) {
        put_eol(y % 2);
        put_row_1d(page[y]);
        put("1011001");
    }
    CHECK(gives_page());
}

static void buffer_for_fewer_rows(void) {
    expect_block(COMPRESSION_CCITT_G4, 100, ROWS);
    draw_page(2);
    encode_g4();
    CHECK(decodes_to(ccitt, stream, (stream_bits + 7) / 8, packed_page, 3 * 13, 4 * 13 - 1));
    CHECK(decodes_to(ccitt, stream, (stream_bits + 7) / 8, packed_page, 0, 0));
}

/* The page ends before the block: the caller learns how much there is. */
static void ended_early(void) {
    for (uint32_t kind = 0; kind < 3; kind++) {
        expect_block(kind == 0 ? COMPRESSION_CCITT_G4 : COMPRESSION_CCITT_G3, 100, ROWS);
        draw_page(3);
        if (kind == 0)
            encode_g4();
        else
            encode_g3(kind - 1, 0);
        format.t4_options = kind == 2;
        format.height = ROWS + 5;
        CHECK(decodes_to(ccitt, stream, (stream_bits + 7) / 8, packed_page, ROWS * 13,
                         (ROWS + 5) * 13));
    }
}

static void not_ours(void) {
    expect_block(COMPRESSION_CCITT_G4, 100, 1);
    clear_stream();
    put("0000001111");
    CHECK(decode_status(ccitt, stream, 20, 13) == COGPU_UNSUPPORTED);
    format.bits = 8;
    CHECK(decode_status(ccitt, stream, 20, 13) == COGPU_UNSUPPORTED);
    expect_block(COMPRESSION_CCITT_G4, 100, 1);
    format.samples = 3;
    CHECK(decode_status(ccitt, stream, 20, 13) == COGPU_UNSUPPORTED);
    expect_block(COMPRESSION_CCITT_G4, 0, 0);
    CHECK(decode_status(ccitt, stream, 20, 13) == COGPU_UNSUPPORTED);
}

static cogpu_status status_of(uint32_t compression, uint32_t options, const char *bits) {
    expect_block(compression, 100, 1);
    format.t4_options = options;
    clear_stream();
    put(bits);
    return decode_status(ccitt, stream, (stream_bits + 7) / 8, 13);
}

/* T103: a message that names the row, not a loop. */
static void bad_codes(void) {
    CHECK(status_of(COMPRESSION_CCITT_RLE, 0, "00000000") == COGPU_CORRUPT);
    CHECK(status_of(COMPRESSION_CCITT_RLE, 0,
                    "11011"
                    "11011"
                    "1000") == COGPU_CORRUPT); /* 131 */
    CHECK(status_of(COMPRESSION_CCITT_G3, 0,
                    "000000000001"
                    "000000001") == COGPU_CORRUPT);
    CHECK(status_of(COMPRESSION_CCITT_G3, 1, "1110") == COGPU_CORRUPT);
    CHECK(status_of(COMPRESSION_CCITT_G4, 0, "0000000111") == COGPU_CORRUPT);
    CHECK(status_of(COMPRESSION_CCITT_G4, 0, "011") == COGPU_CORRUPT); /* right of the edge */
    /* 99 white and no black, then 3 left of the edge: behind the current column. */
    CHECK(status_of(COMPRESSION_CCITT_G4, 0,
                    "001"
                    "11011"
                    "00010100"
                    "0000110111"
                    "0000010") == COGPU_CORRUPT);
    /* Empty runs without end. */
    clear_stream();
    expect_block(COMPRESSION_CCITT_G4, 100, 2);
    for (int i = 0; i < 5000; i++)
        put("001"
            "00110101"
            "0000110111");
    decoded result = decode(ccitt, stream, (stream_bits + 7) / 8, 26);
    CHECK(result.status == COGPU_CORRUPT);
    CHECK_TEXT(result.error.message, "CCITT stream: more than 255 runs in row 0 of 100 pixels");
    free(result.out);
}

/* ---- empty runs ----------------------------------------------------------------------------- */

/* Changes of colour in the row that is written and in the one above, empty runs with them. */
static uint32_t changes[2][2 * WIDTH_MAX + 100], change_count;
static uint32_t chance_state;

/* 0 to `below` - 1. */
static uint32_t chance(uint32_t below) {
    chance_state = chance_state * 1664525u + 1013904223u;
    return (chance_state >> 8) % below;
}

/* The length of a run that begins at `column`: mostly short, often empty. */
static uint32_t chosen_run(uint32_t column) {
    uint32_t left = format.width - column, run = chance(3) ? chance(4) : chance(left + 1);
    if (chance(3) == 0)
        run = 0;
    return run < left ? run : left;
}

static void add_runs(uint32_t *row, bool black, uint32_t *column, uint32_t count, bool to_end) {
    for (uint32_t i = 0; i < count; i++, black = !black) {
        uint32_t run = to_end ? format.width - *column : chosen_run(*column);
        put_run(black, run);
        row[change_count++] = *column += run;
    }
}

/* A row of any runs, of which libtiff deletes pairs of empty ones. */
static void put_any_row_1d(uint32_t *row) {
    uint32_t column = 0;
    while (column < format.width) {
        add_runs(row, change_count % 2, &column, 1, change_count > format.width);
        uint32_t before = change_count > 2 ? row[change_count - 3] : 0;
        if (change_count % 2 == 0 && column < format.width && column == before)
            change_count -= 2;
    }
}

/* A row of any modes that are valid where they stand. b1 and b2 are looked up as libtiff does. */
static void put_any_row_2d(uint32_t *row, const uint32_t *above) {
    uint32_t a0 = 0, b1 = 0;
    while (a0 < format.width) {
        while (change_count > 0 && above[b1] <= a0)
            b1 += 2;
        int64_t a1 = (int64_t)above[b1] + chance(7) - 3;
        bool is_late = change_count > format.width;
        if (!is_late && chance(5) == 0 && above[b1] < format.width) {
            put("0001");
            a0 = above[b1 + 1];
            b1 += 2;
        } else if (!is_late && chance(3) && a1 >= a0 && a1 <= format.width) {
            put(shifts[a1 - above[b1] + 3]);
            b1 = a1 < above[b1] ? (b1 > 0 ? b1 - 1 : 1) : b1 + 1;
            row[change_count++] = a0 = (uint32_t)a1;
        } else {
            put("001");
            add_runs(row, change_count % 2, &a0, 2, is_late);
        }
    }
}

static void paint_changes(uint8_t *pixels, const uint32_t *row) {
    memset(pixels, 0, format.width);
    for (uint32_t i = 0; i < change_count; i += 2)
        for (uint32_t x = row[i]; x < row[i + 1]; x++)
            pixels[x] = 1;
}

/* Draws a page and writes its stream in one go. */
static void encode_any_runs(uint32_t seed) {
    bool g3 = format.compression == COMPRESSION_CCITT_G3;
    chance_state = seed;
    clear_stream();
    for (uint32_t i = 0; i < 3; i++)
        changes[1][i] = format.width;
    for (uint32_t y = 0; y < format.height; y++) {
        bool one = g3 && y % 3 == 0;
        uint32_t *row = changes[y % 2];
        change_count = 0;
        if (g3) {
            put_eol(0);
            put(one ? "1" : "0");
        }
        if (one)
            put_any_row_1d(row);
        else
            put_any_row_2d(row, changes[1 - y % 2]);
        for (uint32_t i = 0; i < 3; i++)
            row[change_count + i] = format.width;
        paint_changes(page[y], row);
    }
    pack_page();
}

static void empty_runs(void) {
    for (uint32_t i = 0; i < 2 * WIDTHS * 40; i++) {
        expect_block(i % 2 ? COMPRESSION_CCITT_G3 : COMPRESSION_CCITT_G4, widths[i / 2 % WIDTHS],
                     ROWS);
        format.t4_options = i % 2;
        encode_any_runs(i);
        CHECK(gives_page());
    }
}

static void put_runs(uint32_t white, uint32_t black) {
    put("001");
    put_run(false, white);
    put_run(true, black);
}

/* As many runs as a row may have, and one more. */
static void most_runs(void) {
    for (uint32_t i = 0; i < WIDTHS; i++) {
        uint32_t width = widths[i], most = 2 * ((width + 32) / 32 * 32) - 1;
        for (uint32_t runs = most - 1; runs <= most + 1; runs++) {
            expect_block(COMPRESSION_CCITT_G4, width, 2);
            memset(page, 0, sizeof page);
            pack_page();
            clear_stream();
            for (uint32_t k = 0; k + 3 <= runs; k += 2)
                put_runs(0, 0);
            if (runs % 2)
                put("1");
            else
                put_runs(width, 0);
            put_runs(width, 0);
            if (runs <= most)
                CHECK(gives_page());
            else
                CHECK(decode_status(ccitt, stream, (stream_bits + 7) / 8, block_bytes()) ==
                      COGPU_CORRUPT);
        }
    }
}

/* One bit makes a white row of any width: memory goes by the input then. */
static void wide_row_of_one_bit(void) {
    static const uint8_t white[1000000 / 8];
    cogpu_codec_state_close(&codec_state);
    expect_block(COMPRESSION_CCITT_G4, 1000000, 1);
    clear_stream();
    put("1");
    CHECK(decodes_to(ccitt, stream, 1, white, sizeof white, sizeof white));
    CHECK(codec_state.work_bytes < 1000);
    /* Runs of two pixels change colour every three bits. */
    expect_block(COMPRESSION_CCITT_RLE, 1000000, 1);
    clear_stream();
    for (size_t bytes = 3; bytes < 3000; bytes += 3) {
        put("011111011111011111011111");
        CHECK(decode_status(ccitt, stream, bytes, sizeof white) == COGPU_CORRUPT);
    }
}

/* A long tail of zeros is looked through once. */
static void zeros_to_the_end(void) {
    static const uint8_t zeros[4 << 20];
    const uint32_t codecs[] = {COMPRESSION_CCITT_RLE, COMPRESSION_CCITT_G3, COMPRESSION_CCITT_G4};
    for (size_t i = 0; i < 3; i++) {
        expect_block(codecs[i], 100, 2);
        CHECK(decode_status(ccitt, zeros, sizeof zeros, 26) == COGPU_CORRUPT);
        CHECK(decode_status(ccitt, zeros, 0, 26) == COGPU_CORRUPT);
    }
}

static void truncated(void) {
    const uint32_t codecs[] = {COMPRESSION_CCITT_RLE, COMPRESSION_CCITT_RLEW, COMPRESSION_CCITT_G3,
                               COMPRESSION_CCITT_G4};
    for (size_t i = 0; i < 8; i++) {
        expect_block(codecs[i % 4], 77, ROWS);
        draw_page(i < 4 ? 2 : 3);
        if (i % 4 < 2)
            encode_rle(i % 4 ? 16 : 8);
        else if (i % 4 == 2)
            encode_g3(0, 0);
        else
            encode_g4();
        /* The end of the page and padding may be missing. */
        size_t tail = i % 4 == 2 ? 11 : 4;
        CHECK(prefixes_taken(ccitt, stream, (stream_bits + 7) / 8, packed_page, block_bytes()) <=
              tail);
    }
}

static void bits_flipped(void) {
    for (uint32_t kind = 0; kind < 4; kind++) {
        expect_block(kind < 2    ? COMPRESSION_CCITT_G3
                     : kind == 2 ? COMPRESSION_CCITT_G4
                                 : COMPRESSION_CCITT_RLE,
                     77, ROWS);
        format.t4_options = kind == 1;
        draw_page(2);
        if (kind < 2)
            encode_g3(kind, 0);
        else if (kind == 2)
            encode_g4();
        else
            encode_rle(8);
        flips_unnoticed(ccitt, stream, (stream_bits + 7) / 8, packed_page, block_bytes());
    }
}

TESTS(codec_ccitt) {
    RUN(group_4);
    RUN(group_3);
    RUN(runs_by_bytes_and_words);
    RUN(every_run);
    RUN(no_eol_in_group_3);
    RUN(bits_between_rows);
    RUN(buffer_for_fewer_rows);
    RUN(ended_early);
    RUN(not_ours);
    RUN(bad_codes);
    RUN(empty_runs);
    RUN(most_runs);
    RUN(wide_row_of_one_bit);
    RUN(zeros_to_the_end);
    RUN(truncated);
    RUN(bits_flipped);
    cogpu_codec_state_close(&codec_state);
    return FINISH();
}
