/* Headers of blocks and Huffman decoding tables: see inflate_code.h. */
#include "codec/inflate_code.h"

#include "base/bytes.h"

#include <string.h>

bool cogpu_inflate_need_bits(cogpu_inflater *inflater, unsigned count) {
    if (inflater->bit_count < count && inflater->in_end - inflater->in >= 8) {
        const unsigned bytes = (63 - inflater->bit_count) / 8;
        const uint64_t next = load_u64(inflater->in, false) & ((1ull << 8 * bytes) - 1);
        inflater->bits |= next << inflater->bit_count;
        inflater->bit_count += 8 * bytes;
        inflater->in += bytes;
        return true;
    }
    while (inflater->bit_count < count) {
        if (inflater->in == inflater->in_end && !(inflater->more && inflater->more(inflater)))
            return false;
        inflater->bits |= (uint64_t)*inflater->in++ << inflater->bit_count;
        inflater->bit_count += 8;
    }
    return true;
}

/* ---- tables ---- */

#define INVALID             ENTRY_EXCEPTIONAL
#define LENGTH(base, extra) ((uint32_t)(base) << 16 | (extra))
const uint32_t cogpu_inflate_lengths[LITERAL_SYMBOLS - 257] = {
    LENGTH(3, 0),   LENGTH(4, 0),   LENGTH(5, 0),   LENGTH(6, 0),   LENGTH(7, 0),   LENGTH(8, 0),
    LENGTH(9, 0),   LENGTH(10, 0),  LENGTH(11, 1),  LENGTH(13, 1),  LENGTH(15, 1),  LENGTH(17, 1),
    LENGTH(19, 2),  LENGTH(23, 2),  LENGTH(27, 2),  LENGTH(31, 2),  LENGTH(35, 3),  LENGTH(43, 3),
    LENGTH(51, 3),  LENGTH(59, 3),  LENGTH(67, 4),  LENGTH(83, 4),  LENGTH(99, 4),  LENGTH(115, 4),
    LENGTH(131, 5), LENGTH(163, 5), LENGTH(195, 5), LENGTH(227, 5), LENGTH(258, 0), INVALID,
    INVALID};
const uint32_t cogpu_inflate_distances[DISTANCE_SYMBOLS] = {
    LENGTH(1, 0),     LENGTH(2, 0),     LENGTH(3, 0),      LENGTH(4, 0),      LENGTH(5, 1),
    LENGTH(7, 1),     LENGTH(9, 2),     LENGTH(13, 2),     LENGTH(17, 3),     LENGTH(25, 3),
    LENGTH(33, 4),    LENGTH(49, 4),    LENGTH(65, 5),     LENGTH(97, 5),     LENGTH(129, 6),
    LENGTH(193, 6),   LENGTH(257, 7),   LENGTH(385, 7),    LENGTH(513, 8),    LENGTH(769, 8),
    LENGTH(1025, 9),  LENGTH(1537, 9),  LENGTH(2049, 10),  LENGTH(3073, 10),  LENGTH(4097, 11),
    LENGTH(6145, 11), LENGTH(8193, 12), LENGTH(12289, 12), LENGTH(16385, 13), LENGTH(24577, 13),
    INVALID,          INVALID};

enum symbol_kind { PRECODE_SYMBOL, LITERAL_SYMBOL, DISTANCE_SYMBOL };

static uint32_t entry_of(enum symbol_kind kind, uint32_t symbol) {
    if (kind == PRECODE_SYMBOL)
        return symbol << 16;
    if (kind == DISTANCE_SYMBOL)
        return cogpu_inflate_distances[symbol];
    if (symbol < 256)
        return ENTRY_LITERAL | symbol << 16;
    return symbol == 256 ? ENTRY_EXCEPTIONAL | ENTRY_END_OF_BLOCK
                         : cogpu_inflate_lengths[symbol - 257];
}

/* The entry of a symbol whose code has `bits` bits in this table. */
static uint32_t with_code_bits(uint32_t entry, unsigned bits) {
    return entry + (bits << 8) + bits;
}

/* Number of codes of each length. */
static void count_lengths(const uint8_t *lengths, size_t symbols, uint16_t *counts) {
    memset(counts, 0, (CODE_BITS_MAX + 1) * sizeof *counts);
    for (size_t i = 0; i < symbols; i++)
        counts[lengths[i]]++;
    counts[0] = 0;
}

/* Symbols by code length, then by value: the order of canonical codes (3.2.2). */
static void sort_symbols(const uint8_t *lengths, size_t symbols, const uint16_t *counts,
                         uint16_t *sorted) {
    uint16_t place[CODE_BITS_MAX + 2] = {0};
    for (unsigned bits = 1; bits <= CODE_BITS_MAX; bits++)
        place[bits + 1] = (uint16_t)(place[bits] + counts[bits]);
    for (size_t i = 0; i < symbols; i++)
        if (lengths[i])
            sorted[place[lengths[i]]++] = (uint16_t)i;
}

static uint32_t last_code(unsigned bits) {
    return (1u << bits) - 1;
}

/* Index bits of the subtable for codes of `bits` bits and more that share their first ones. */
static unsigned subtable_bits_for(const uint16_t *counts, unsigned bits, unsigned left_of_length,
                                  unsigned table_bits) {
    unsigned index_bits = bits - table_bits;
    uint32_t used = left_of_length;
    while (used < 1u << index_bits) {
        index_bits++;
        used = (used << 1) + counts[table_bits + index_bits];
    }
    return index_bits;
}

/* Codes that do not fit into the first table, from `code` on. */
static void make_subtables(uint32_t *table, unsigned table_bits, enum symbol_kind kind,
                           const uint16_t *sorted, const uint16_t *counts, uint32_t code,
                           unsigned bits, unsigned left) {
    const uint32_t mask = last_code(table_bits);
    uint32_t prefix = UINT32_MAX, start = 0, end = 1u << table_bits;
    for (;; sorted++) {
        if ((code & mask) != prefix) {
            const unsigned index_bits = subtable_bits_for(counts, bits, left, table_bits);
            prefix = code & mask;
            start = end;
            end = start + (1u << index_bits);
            table[prefix] =
                start << 16 | ENTRY_EXCEPTIONAL | ENTRY_SUBTABLE | index_bits << 8 | table_bits;
        }
        const uint32_t entry = with_code_bits(entry_of(kind, *sorted), bits - table_bits);
        for (uint32_t i = start + (code >> table_bits); i < end; i += 1u << (bits - table_bits))
            table[i] = entry;
        if (code == last_code(bits))
            return;
        code = inflate_next_code(code, bits);
        for (left--; left == 0;)
            left = counts[++bits];
    }
}

/* The table of a complete code. It is filled for the shortest codes, then doubled for each further
 * bit: codes that are shorter than the index appear once for each value of the bits after them. */
static void make_table(uint32_t *table, unsigned table_bits, enum symbol_kind kind,
                       const uint8_t *lengths, size_t symbols) {
    uint16_t counts[CODE_BITS_MAX + 1], sorted[LITERAL_SYMBOLS];
    count_lengths(lengths, symbols, counts);
    sort_symbols(lengths, symbols, counts, sorted);
    const uint16_t *symbol = sorted;
    uint32_t code = 0, filled;
    for (unsigned bits = 1; bits <= table_bits; bits++) {
        filled = 1u << bits;
        if (bits > 1)
            memcpy(table + filled / 2, table, filled / 2 * sizeof *table);
        for (unsigned left = counts[bits]; left > 0; left--) {
            table[code] = with_code_bits(entry_of(kind, *symbol++), bits);
            if (code == last_code(bits)) {
                for (; bits < table_bits; bits++, filled *= 2)
                    memcpy(table + filled, table, filled * sizeof *table);
                return;
            }
            code = inflate_next_code(code, bits);
        }
    }
    unsigned bits = table_bits + 1;
    while (counts[bits] == 0)
        bits++;
    make_subtables(table, table_bits, kind, symbol, counts, code, bits, counts[bits]);
}

/* 2^15 for a complete code; a larger sum is over-subscribed. */
static uint32_t kraft_sum(const uint8_t *lengths, size_t symbols) {
    uint32_t sum = 0;
    for (size_t i = 0; i < symbols; i++)
        sum += lengths[i] ? 1u << (CODE_BITS_MAX - lengths[i]) : 0;
    return sum;
}

static bool is_complete(const uint8_t *lengths, size_t symbols) {
    return kraft_sum(lengths, symbols) == 1u << CODE_BITS_MAX;
}

/* A code for distances may have no symbol, or one of one bit: half a code (3.2.7). */
static bool has_at_most_one_bit(const uint8_t *lengths, size_t symbols) {
    const uint32_t sum = kraft_sum(lengths, symbols);
    return sum == 0 || (sum == 1u << (CODE_BITS_MAX - 1) && memchr(lengths, 1, symbols));
}

static void make_half_table(uint32_t *table, const uint8_t *lengths, size_t symbols) {
    const uint8_t *found = memchr(lengths, 1, symbols);
    for (uint32_t i = 0; i < 1u << DISTANCE_TABLE_BITS; i++)
        table[i] = found && i % 2 == 0 ? with_code_bits(cogpu_inflate_distances[found - lengths], 1)
                                       : INVALID;
}

void cogpu_inflate_make_tables(cogpu_inflater *inflater) {
    const uint8_t *distances = inflater->lengths + LITERAL_SYMBOLS;
    make_table(inflater->literal_table, LITERAL_TABLE_BITS, LITERAL_SYMBOL, inflater->lengths,
               LITERAL_SYMBOLS);
    if (is_complete(distances, DISTANCE_SYMBOLS))
        make_table(inflater->distance_table, DISTANCE_TABLE_BITS, DISTANCE_SYMBOL, distances,
                   DISTANCE_SYMBOLS);
    else
        make_half_table(inflater->distance_table, distances, DISTANCE_SYMBOLS);
}

void cogpu_inflate_set_fixed_lengths(uint8_t *lengths) {
    memset(lengths, 8, 144);
    memset(lengths + 144, 9, 256 - 144);
    memset(lengths + 256, 7, 280 - 256);
    memset(lengths + 280, 8, LITERAL_SYMBOLS - 280);
    memset(lengths + LITERAL_SYMBOLS, 5, DISTANCE_SYMBOLS);
}

void cogpu_inflate_make_fixed_tables(cogpu_inflater *inflater) {
    cogpu_inflate_set_fixed_lengths(inflater->lengths);
    cogpu_inflate_make_tables(inflater);
}

/* ---- headers ---- */

enum { PRECODE_SYMBOLS = 19, HLIT_MAX = 29, HDIST_MAX = 29 };

/* The precode, by which the lengths of the other codes are encoded; false if it is incomplete. */
static bool read_precode(cogpu_inflater *inflater, uint32_t *table) {
    static const uint8_t order[PRECODE_SYMBOLS] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                   11, 4,  12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[PRECODE_SYMBOLS] = {0};
    if (!cogpu_inflate_need_bits(inflater, 4))
        return false;
    const unsigned count = inflate_take_bits(inflater, 4) + 4;
    for (unsigned i = 0; i < count; i++) {
        if (!cogpu_inflate_need_bits(inflater, 3))
            return false;
        lengths[order[i]] = (uint8_t)inflate_take_bits(inflater, 3);
    }
    if (!is_complete(lengths, PRECODE_SYMBOLS))
        return false;
    make_table(table, PRECODE_TABLE_BITS, PRECODE_SYMBOL, lengths, PRECODE_SYMBOLS);
    return true;
}

/* Run-length encoded lengths of `count` codes, of which `literals` are those of literals and
 * lengths. Noise mostly fails early, by too many short codes. */
static bool read_run_lengths(cogpu_inflater *inflater, const uint32_t *precode, uint8_t *lengths,
                             unsigned literals, unsigned count) {
    unsigned i = 0;
    uint32_t sum = 0;
    while (i < count) {
        /* A code and its extra bits have 14; the stream does not end here, so more bits follow. */
        if (inflater->bit_count < 14 && !cogpu_inflate_need_bits(inflater, 14))
            return false;
        const uint32_t entry = precode[inflater->bits & last_code(PRECODE_TABLE_BITS)];
        const unsigned symbol = entry >> 16;
        (void)inflate_take_bits(inflater, entry & 0xFF);
        if (symbol < 16) {
            sum += i < literals && symbol ? 1u << (CODE_BITS_MAX - symbol) : 0;
            if (sum > 1u << CODE_BITS_MAX)
                return false;
            lengths[i++] = (uint8_t)symbol;
            continue;
        }
        const unsigned repeats = symbol == 16   ? 3 + inflate_take_bits(inflater, 2)
                                 : symbol == 17 ? 3 + inflate_take_bits(inflater, 3)
                                                : 11 + inflate_take_bits(inflater, 7);
        if (repeats > count - i || (symbol == 16 && i == 0))
            return false;
        memset(lengths + i, symbol == 16 ? lengths[i - 1] : 0, repeats);
        i += repeats;
    }
    return true;
}

bool cogpu_inflate_read_lengths(cogpu_inflater *inflater) {
    uint32_t precode[1 << PRECODE_TABLE_BITS];
    uint8_t lengths[LITERAL_SYMBOLS + DISTANCE_SYMBOLS];
    if (!cogpu_inflate_need_bits(inflater, 10))
        return false;
    const unsigned hlit = inflate_take_bits(inflater, 5), hdist = inflate_take_bits(inflater, 5);
    const unsigned literals = hlit + 257, distances = hdist + 1;
    if (hlit > HLIT_MAX || hdist > HDIST_MAX || !read_precode(inflater, precode) ||
        !read_run_lengths(inflater, precode, lengths, literals, literals + distances))
        return false;
    memset(inflater->lengths, 0, sizeof inflater->lengths);
    memcpy(inflater->lengths, lengths, literals);
    memcpy(inflater->lengths + LITERAL_SYMBOLS, lengths + literals, distances);
    return inflater->lengths[256] > 0;
}

bool cogpu_inflate_has_complete_codes(const cogpu_inflater *inflater) {
    const uint8_t *distances = inflater->lengths + LITERAL_SYMBOLS;
    return is_complete(inflater->lengths, LITERAL_SYMBOLS) &&
           (is_complete(distances, DISTANCE_SYMBOLS) ||
            has_at_most_one_bit(distances, DISTANCE_SYMBOLS));
}
