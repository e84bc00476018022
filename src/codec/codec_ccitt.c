/*
 * CCITT codecs: encoded fax lines to rows of one bit per pixel, 1 for black.
 *
 *   compression 2, 32771   modified Huffman (TIFF 6.0 section 10): each row alone, on byte or word
 *                          boundaries
 *   compression 3          Group 3 (T.4): an EOL before each row, which is coded alone or, with bit
 *                          0 of T4Options, relative to the row above
 *   compression 4          Group 4 (T.6): all rows relative to the row above
 *
 * A row is kept as the list of its changing elements, the columns where its colour changes. The
 * caller reverses bits for FillOrder 2.
 *
 * A stream may code runs of length zero. Such a run changes no pixel, but it is a changing element,
 * to which the next row may refer: it stays in the list, as in libtiff.
 */
#include "base/bytes.h"
#include "base/checked.h"
#include "codec/codec.h"

typedef struct fax_code {
    uint8_t length;
    uint8_t bits;
} fax_code;

/* T.4 tables 2 and 3: codes for runs of 0 to 63 pixels, then make-up codes for 64 to 1728 in steps
 * of 64, then, for both colours, for 1792 to 2560. None has a set bit above its lowest eight. */
static const fax_code white_codes[] = {
    {8, 0x35}, {6, 0x7},  {4, 0x7},  {4, 0x8},  {4, 0xB},  {4, 0xC},  {4, 0xE},  {4, 0xF},
    {5, 0x13}, {5, 0x14}, {5, 0x7},  {5, 0x8},  {6, 0x8},  {6, 0x3},  {6, 0x34}, {6, 0x35},
    {6, 0x2A}, {6, 0x2B}, {7, 0x27}, {7, 0xC},  {7, 0x8},  {7, 0x17}, {7, 0x3},  {7, 0x4},
    {7, 0x28}, {7, 0x2B}, {7, 0x13}, {7, 0x24}, {7, 0x18}, {8, 0x2},  {8, 0x3},  {8, 0x1A},
    {8, 0x1B}, {8, 0x12}, {8, 0x13}, {8, 0x14}, {8, 0x15}, {8, 0x16}, {8, 0x17}, {8, 0x28},
    {8, 0x29}, {8, 0x2A}, {8, 0x2B}, {8, 0x2C}, {8, 0x2D}, {8, 0x4},  {8, 0x5},  {8, 0xA},
    {8, 0xB},  {8, 0x52}, {8, 0x53}, {8, 0x54}, {8, 0x55}, {8, 0x24}, {8, 0x25}, {8, 0x58},
    {8, 0x59}, {8, 0x5A}, {8, 0x5B}, {8, 0x4A}, {8, 0x4B}, {8, 0x32}, {8, 0x33}, {8, 0x34},
    {5, 0x1B}, {5, 0x12}, {6, 0x17}, {7, 0x37}, {8, 0x36}, {8, 0x37}, {8, 0x64}, {8, 0x65},
    {8, 0x68}, {8, 0x67}, {9, 0xCC}, {9, 0xCD}, {9, 0xD2}, {9, 0xD3}, {9, 0xD4}, {9, 0xD5},
    {9, 0xD6}, {9, 0xD7}, {9, 0xD8}, {9, 0xD9}, {9, 0xDA}, {9, 0xDB}, {9, 0x98}, {9, 0x99},
    {9, 0x9A}, {6, 0x18}, {9, 0x9B}};
static const fax_code black_codes[] = {
    {10, 0x37}, {3, 0x2},   {2, 0x3},   {2, 0x2},   {3, 0x3},   {4, 0x3},   {4, 0x2},   {5, 0x3},
    {6, 0x5},   {6, 0x4},   {7, 0x4},   {7, 0x5},   {7, 0x7},   {8, 0x4},   {8, 0x7},   {9, 0x18},
    {10, 0x17}, {10, 0x18}, {10, 0x8},  {11, 0x67}, {11, 0x68}, {11, 0x6C}, {11, 0x37}, {11, 0x28},
    {11, 0x17}, {11, 0x18}, {12, 0xCA}, {12, 0xCB}, {12, 0xCC}, {12, 0xCD}, {12, 0x68}, {12, 0x69},
    {12, 0x6A}, {12, 0x6B}, {12, 0xD2}, {12, 0xD3}, {12, 0xD4}, {12, 0xD5}, {12, 0xD6}, {12, 0xD7},
    {12, 0x6C}, {12, 0x6D}, {12, 0xDA}, {12, 0xDB}, {12, 0x54}, {12, 0x55}, {12, 0x56}, {12, 0x57},
    {12, 0x64}, {12, 0x65}, {12, 0x52}, {12, 0x53}, {12, 0x24}, {12, 0x37}, {12, 0x38}, {12, 0x27},
    {12, 0x28}, {12, 0x58}, {12, 0x59}, {12, 0x2B}, {12, 0x2C}, {12, 0x5A}, {12, 0x66}, {12, 0x67},
    {10, 0xF},  {12, 0xC8}, {12, 0xC9}, {12, 0x5B}, {12, 0x33}, {12, 0x34}, {12, 0x35}, {13, 0x6C},
    {13, 0x6D}, {13, 0x4A}, {13, 0x4B}, {13, 0x4C}, {13, 0x4D}, {13, 0x72}, {13, 0x73}, {13, 0x74},
    {13, 0x75}, {13, 0x76}, {13, 0x77}, {13, 0x52}, {13, 0x53}, {13, 0x54}, {13, 0x55}, {13, 0x5A},
    {13, 0x5B}, {13, 0x64}, {13, 0x65}};
static const fax_code long_codes[] = {{11, 0x8},  {11, 0xC},  {11, 0xD},  {12, 0x12}, {12, 0x13},
                                      {12, 0x14}, {12, 0x15}, {12, 0x16}, {12, 0x17}, {12, 0x1C},
                                      {12, 0x1D}, {12, 0x1E}, {12, 0x1F}};

enum { RUN_STEP = 64, WHITE_BITS = 12, BLACK_BITS = 13 };
enum { EOL_ZEROS = 11, EOL_BITS = 12, EOL = 1 };
enum { T4_OPTION_2D = 1 };

/* An entry is run << 4 | code length, indexed by the next bits of the input; 0: no code. */
typedef struct run_tables {
    uint16_t white[1 << WHITE_BITS];
    uint16_t black[1 << BLACK_BITS];
} run_tables;

/* The input, first bit highest. Zeros follow its end, which form no code. */
typedef struct fax_bit_reader {
    cogpu_feed *feed;
    uint64_t window;
    uint32_t count;   /* bits in the window */
    uint32_t padding; /* zeros appended after the end; more than count: some were consumed */
    uint64_t taken;
} fax_bit_reader;

/* Columns where the colour changes: white to black, black to white, ... They ascend; the same
 * column twice is an empty run. */
typedef struct line {
    uint32_t *changes; /* capacity: changes_max, and LINE_ENDS more */
    size_t count;
} line;

typedef struct decoder {
    fax_bit_reader bits;
    uint32_t width;
    size_t changes_max; /* of a row */
    uint32_t row;       /* that comes next */
    bool is_done;       /* the stream says so */
    line current, above;
    bool has_eols;
    run_tables tables;
} decoder;

typedef enum outcome { ROW_DONE, ROW_BAD, ROW_TOO_MANY, ROW_UNCOMPRESSED, STREAM_END } outcome;

/* ---- bits ----------------------------------------------------------------------------------- */

/* Bits below `count` in the window are either zero or those that the next refill puts there again.
 */
static void refill_bits(fax_bit_reader *r) {
    cogpu_feed *feed = r->feed;
    if (cogpu_feed_fill(feed, 8)) {
        uint32_t bytes = (63 - r->count) / 8;
        r->window |= load_u64(feed->at, true) >> r->count;
        cogpu_feed_consume(feed, bytes);
        r->count += bytes * 8;
        return;
    }
    while (r->count <= 56) {
        if (feed->bytes > 0) {
            r->window |= (uint64_t)*feed->at << (56 - r->count);
            cogpu_feed_consume(feed, 1);
        } else {
            r->padding += 8;
        }
        r->count += 8;
    }
}

static void consume_bits(fax_bit_reader *r, uint32_t bits) {
    r->window <<= bits;
    r->count -= bits;
    r->taken += bits;
}

/* The next bits, 1 to 32, without consuming them. */
static uint32_t peek_bits(fax_bit_reader *r, uint32_t bits) {
    if (r->count < 32)
        refill_bits(r);
    return (uint32_t)(r->window >> (64 - bits));
}

static bool past_end(const fax_bit_reader *r) {
    return r->padding > r->count;
}

/* Fewer bits are left than the longest code has. */
static bool near_end(const fax_bit_reader *r) {
    return r->padding > 0 && r->count < r->padding + BLACK_BITS;
}

static void align_bits(fax_bit_reader *r, uint32_t unit) {
    uint32_t over = (uint32_t)(r->taken % unit);
    if (over == 0)
        return;
    peek_bits(r, 1);
    consume_bits(r, unit - over);
}

/* Consumes the input up to the next EOL: eleven zeros or more, and a one. False if there is none.
 */
static bool take_eol(fax_bit_reader *r) {
    uint32_t zeros = 0;
    for (;;) {
        uint32_t bit = peek_bits(r, 1);
        consume_bits(r, 1);
        if (past_end(r))
            return false;
        if (bit == 1 && zeros >= EOL_ZEROS)
            return true;
        zeros = bit == 1 ? 0 : zeros + 1;
    }
}

/* ---- lines ---------------------------------------------------------------------------------- */

enum { LINE_ENDS = 3, RUNS_UNIT = 32 };

/* Limit of a row's changing elements. Empty runs have no natural bound, so libtiff's is used, which
 * refuses a row with more. A change costs a bit at least, so a short stream needs no memory for all
 * columns. */
static size_t most_changes(uint32_t width, uint64_t in_bytes) {
    uint64_t most = 2 * divide_up((uint64_t)width + 1, RUNS_UNIT) * RUNS_UNIT - 1;
    return (size_t)(in_bytes < most / 8 ? in_bytes * 8 : most);
}

static bool add_change(decoder *d, uint32_t column) {
    line *l = &d->current;
    if (l->count == d->changes_max)
        return false;
    l->changes[l->count++] = column;
    return true;
}

/* A row that is coded by itself keeps no pair of an empty white and an empty black run. */
static void drop_empty_pair(line *l) {
    uint32_t before = l->count > 2 ? l->changes[l->count - 3] : 0;
    if (l->changes[l->count - 1] == before)
        l->count -= 2;
}

/* A search for a change of either colour, and for the one after it, ends at the line's end. */
static void finish_line(line *l, uint32_t width) {
    while (l->count > 0 && l->changes[l->count - 1] >= width)
        l->count--;
    for (size_t i = 0; i < LINE_ENDS; i++)
        l->changes[l->count + i] = width;
}

static void fill_black(uint8_t *row, uint32_t from, uint32_t to) {
    uint32_t first = from / 8, last = to / 8;
    uint8_t head = (uint8_t)(0xFF >> (from % 8)), tail = (uint8_t) ~(0xFF >> (to % 8));
    if (first == last) {
        row[first] |= head & tail;
        return;
    }
    row[first] |= head;
    memset(row + first + 1, 0xFF, last - first - 1);
    if (tail)
        row[last] |= tail;
}

static size_t row_bytes_of(const cogpu_block_format *format) {
    return format->width / 8 + (format->width % 8 != 0);
}

static void draw_row(const line *l, uint8_t *row, size_t row_bytes) {
    memset(row, 0, row_bytes);
    for (size_t i = 0; i < l->count; i += 2)
        fill_black(row, l->changes[i], l->changes[i + 1]);
}

/* ---- runs and rows -------------------------------------------------------------------------- */

static void add_codes(uint16_t *table, uint32_t table_bits, const fax_code *codes, uint32_t count,
                      uint32_t first_index) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = first_index + i;
        uint32_t run = index < RUN_STEP ? index : (index - RUN_STEP + 1) * RUN_STEP;
        uint32_t spare = table_bits - codes[i].length;
        for (uint32_t k = 0; k < 1u << spare; k++)
            table[((uint32_t)codes[i].bits << spare) + k] = (uint16_t)(run << 4 | codes[i].length);
    }
}

enum {
    SHORT_CODES = sizeof white_codes / sizeof *white_codes,
    LONG_CODES = sizeof long_codes / sizeof *long_codes
};

static void build_run_tables(run_tables *tables) {
    memset(tables, 0, sizeof *tables);
    add_codes(tables->white, WHITE_BITS, white_codes, SHORT_CODES, 0);
    add_codes(tables->white, WHITE_BITS, long_codes, LONG_CODES, SHORT_CODES);
    add_codes(tables->black, BLACK_BITS, black_codes, SHORT_CODES, 0);
    add_codes(tables->black, BLACK_BITS, long_codes, LONG_CODES, SHORT_CODES);
}

/* A run: any number of make-up codes, then a terminating code. It must end within the row. */
static bool decode_run(decoder *d, bool black, uint32_t *column) {
    uint32_t entry;
    do {
        entry = black ? d->tables.black[peek_bits(&d->bits, BLACK_BITS)]
                      : d->tables.white[peek_bits(&d->bits, WHITE_BITS)];
        if (entry == 0 || (entry >> 4) > d->width - *column)
            return false;
        consume_bits(&d->bits, entry & 15);
        *column += entry >> 4;
    } while (entry >> 4 >= RUN_STEP);
    return true;
}

static outcome read_row_1d(decoder *d) {
    uint32_t column = 0;
    for (bool black = false; column < d->width; black = !black) {
        if (!decode_run(d, black, &column))
            return ROW_BAD;
        if (!add_change(d, column))
            return ROW_TOO_MANY;
        if (black && column < d->width)
            drop_empty_pair(&d->current);
    }
    return ROW_DONE;
}

/* Modes of a row coded relative to the row above (T.4 table 4). */
typedef enum mode { PASS, HORIZONTAL, VERTICAL, EXTENSION, NO_MODE } mode;

static mode read_mode(fax_bit_reader *r, int32_t *shift) {
    uint32_t bits = peek_bits(r, 7);
    static const struct {
        uint8_t floor, length; /* the code's bits followed by zeros; codes lie between the floors */
        int8_t mode, shift;
    } modes[] = {{64, 1, VERTICAL, 0},   {48, 3, VERTICAL, 1}, {32, 3, VERTICAL, -1},
                 {16, 3, HORIZONTAL, 0}, {8, 4, PASS, 0},      {6, 6, VERTICAL, 2},
                 {4, 6, VERTICAL, -2},   {3, 7, VERTICAL, 3},  {2, 7, VERTICAL, -3},
                 {1, 7, EXTENSION, 0}};
    for (uint32_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (bits >= modes[i].floor) {
            consume_bits(r, modes[i].length);
            *shift = modes[i].shift;
            return (mode)modes[i].mode;
        }
    }
    return NO_MODE;
}

/* a0, b1 and b2 are T.4's names: the current column, the next change above to the other colour, and
 * the one after it. Until the row has a change, a0 is before its first pixel, and b1 is the first
 * change that no pass mode has skipped, even at a0. */
static outcome read_row_2d(decoder *d) {
    const uint32_t *above = d->above.changes;
    size_t next = 0; /* index of b1; even while the current colour is white */
    uint32_t a0 = 0;
    while (a0 < d->width) {
        int32_t shift = 0;
        while (d->current.count > 0 && above[next] <= a0)
            next += 2;
        switch (read_mode(&d->bits, &shift)) {
        case PASS:
            a0 = above[next + 1];
            next += a0 < d->width ? 2 : 0;
            break;
        case HORIZONTAL:
            for (uint32_t i = 0; i < 2; i++) {
                if (!decode_run(d, (next + i) % 2 == 1, &a0))
                    return ROW_BAD;
                if (!add_change(d, a0))
                    return ROW_TOO_MANY;
            }
            break;
        case VERTICAL: {
            int64_t a1 = (int64_t)above[next] + shift;
            if (a1 < a0 || a1 > d->width)
                return ROW_BAD;
            a0 = (uint32_t)a1;
            if (!add_change(d, a0))
                return ROW_TOO_MANY;
            next = next > 0 ? next - 1 : 1;
            break;
        }
        case EXTENSION:
            return ROW_UNCOMPRESSED;
        case NO_MODE:
            return ROW_BAD;
        }
    }
    return ROW_DONE;
}

/* ---- streams -------------------------------------------------------------------------------- */

/* Rows of T.4. Some streams of rows coded alone have no EOL; after a first EOL, all bits between a
 * row's end and the next EOL are skipped. Two EOLs in sequence begin the end of the page (RTC). */
static outcome read_row_t4(decoder *d, bool two_dimensional) {
    fax_bit_reader *r = &d->bits;
    bool one_dimensional = true;
    d->has_eols = d->has_eols || two_dimensional || peek_bits(r, EOL_ZEROS) == 0;
    if (!d->has_eols)
        return read_row_1d(d);
    if (!take_eol(r))
        return ROW_BAD;
    if (two_dimensional) {
        one_dimensional = peek_bits(r, 1) == 1;
        consume_bits(r, 1);
    }
    if (peek_bits(r, EOL_ZEROS) == 0)
        return take_eol(r) ? STREAM_END : ROW_BAD;
    return one_dimensional ? read_row_1d(d) : read_row_2d(d);
}

static outcome read_row(decoder *d, const cogpu_block_format *format) {
    switch (format->compression) {
    case COMPRESSION_CCITT_RLE:
        align_bits(&d->bits, 8);
        return read_row_1d(d);
    case COMPRESSION_CCITT_RLEW:
        align_bits(&d->bits, 16);
        return read_row_1d(d);
    case COMPRESSION_CCITT_G3:
        return read_row_t4(d, (format->t4_options & T4_OPTION_2D) != 0);
    default:
        return peek_bits(&d->bits, EOL_BITS) == EOL ? STREAM_END : read_row_2d(d);
    }
}

static cogpu_status decode_rows(decoder *d, const cogpu_block_format *format, size_t rows,
                                uint8_t *out, size_t *got, cogpu_error *error) {
    size_t row_bytes = row_bytes_of(format);
    for (; rows > 0 && d->row < format->height && !d->is_done; rows--, d->row++) {
        d->current.count = 0;
        outcome result = read_row(d, format);
        if (result == STREAM_END) {
            d->is_done = true;
            return COGPU_OK;
        }
        if (result == ROW_UNCOMPRESSED)
            return cogpu_fail(error, COGPU_UNSUPPORTED,
                              "CCITT stream: uncompressed mode in row %u is not read", d->row);
        if (result == ROW_TOO_MANY)
            return cogpu_fail(error, COGPU_CORRUPT,
                              "CCITT stream: more than %zu runs in row %u of %u pixels",
                              d->changes_max, d->row, d->width);
        if (past_end(&d->bits) || (result == ROW_BAD && near_end(&d->bits)))
            return cogpu_fail(error, COGPU_CORRUPT, "CCITT stream: it ends in row %u", d->row);
        if (result == ROW_BAD)
            return cogpu_fail(error, COGPU_CORRUPT, "CCITT stream: no valid code in row %u",
                              d->row);
        finish_line(&d->current, d->width);
        draw_row(&d->current, out + *got, row_bytes);
        *got += row_bytes;
        line done = d->current;
        d->current = d->above;
        d->above = done;
    }
    return COGPU_OK;
}

static cogpu_status check_fax_format(const cogpu_block_format *format, cogpu_error *error) {
    if (format->bits != 1 || format->samples != 1 || format->width == 0)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "CCITT with %u bands of %u bits: only one band of 1 bit is read",
                          format->samples, format->bits);
    return COGPU_OK;
}

static size_t lines_bytes(size_t changes_max) {
    return 2 * (changes_max + LINE_ENDS) * sizeof(uint32_t);
}

/* `lines` has lines_bytes. */
static void init_fax_decoder(decoder *d, const cogpu_block_format *format, cogpu_feed *feed,
                             uint32_t *lines, size_t changes_max) {
    d->bits = (fax_bit_reader){.feed = feed};
    d->width = format->width;
    d->changes_max = changes_max;
    d->row = 0;
    d->has_eols = d->is_done = false;
    d->current = (line){.changes = lines};
    d->above = (line){.changes = lines + changes_max + LINE_ENDS};
    finish_line(&d->above, d->width);
    build_run_tables(&d->tables);
}

cogpu_status cogpu_decode_ccitt(cogpu_codec_state *state, const cogpu_block_format *format,
                                const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                                size_t *got, cogpu_error *error) {
    decoder d;
    cogpu_feed feed = {.at = in, .bytes = in_bytes};
    *got = 0;
    TRY(check_fax_format(format, error));
    size_t changes_max = most_changes(format->width, in_bytes);
    uint32_t *lines = cogpu_codec_work(state, lines_bytes(changes_max));
    if (!lines)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "CCITT: no memory for rows of %u pixels",
                          format->width);
    init_fax_decoder(&d, format, &feed, lines, changes_max);
    return decode_rows(&d, format, out_bytes / row_bytes_of(format), out, got, error);
}

static cogpu_status decode_ccitt_stream(cogpu_stream_decoder *stream, uint8_t *out,
                                        size_t out_bytes, size_t *got, cogpu_error *error) {
    const cogpu_block_format *format = stream->format;
    *got = 0;
    if (!stream->decoder) {
        TRY(check_fax_format(format, error));
        uint64_t stored = stream->feed->bytes + stream->feed->left;
        size_t changes_max = most_changes(format->width, stored);
        TRY(cogpu_stream_decoder_open(stream, sizeof(decoder) + lines_bytes(changes_max), error));
        decoder *d = stream->decoder;
        init_fax_decoder(d, format, stream->feed, (uint32_t *)(d + 1), changes_max);
    }
    return decode_rows(stream->decoder, format, out_bytes / row_bytes_of(format), out, got, error);
}

const cogpu_stream_codec cogpu_stream_ccitt = {decode_ccitt_stream, cogpu_stream_decoder_close,
                                               false};
