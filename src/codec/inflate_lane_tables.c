/*
 * Blocks of a lane (RFC 1951 3.2.3): headers, stored blocks, and the tables of Huffman codes.
 *
 * A code is accepted if it is complete, or has a single codeword of one bit, or, of distances, has
 * none. The caller decodes with libdeflate what is refused here, so refusing too much costs time
 * only.
 */
#include "codec/inflate_lane.h"

#include <string.h>

#if HAVE_INFLATE_LANES

const uint16_t inflate_length_base[29] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                          15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                          67, 83, 99, 115, 131, 163, 195, 227, 258};
const uint8_t inflate_length_extra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                          2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
const uint16_t inflate_distance_base[30] = {
    1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
    193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
const uint8_t inflate_distance_extra[30] = {0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
                                            6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};

enum { LENGTH_SYMBOLS = 29, LENGTHS_ROOM = LITLEN_SYMBOLS + DISTANCE_SYMBOLS + 138 };

/* ---- canonical codes ------------------------------------------------------------------------ */

enum code_kind { CODE_INVALID, CODE_COMPLETE, CODE_SINGLE, CODE_EMPTY };

/* Counts the codes of each length and sorts the symbols by their codes (RFC 1951 3.2.2). */
static enum code_kind sort_symbols(const uint8_t *lengths, uint32_t count, uint16_t *counts,
                                   canonical_code *code, uint16_t *symbols) {
    uint16_t place[CODE_BITS_MAX + 1];
    uint32_t next = 0, index = 0, space = 0;
    memset(counts, 0, (CODE_BITS_MAX + 1) * sizeof *counts);
    for (uint32_t i = 0; i < count; i++)
        counts[lengths[i]]++;
    for (uint32_t bits = 1; bits <= CODE_BITS_MAX; bits++) {
        next <<= 1;
        code->offset[bits] = (int32_t)index - (int32_t)next;
        place[bits] = (uint16_t)index;
        next += counts[bits];
        index += counts[bits];
        code->end[bits] = next << (CODE_BITS_MAX - bits);
        space += (uint32_t)counts[bits] << (CODE_BITS_MAX - bits);
    }
    if (space > 1u << CODE_BITS_MAX)
        return CODE_INVALID;
    for (uint32_t i = 0; i < count; i++)
        if (lengths[i])
            symbols[place[lengths[i]]++] = (uint16_t)i;
    if (space == 1u << CODE_BITS_MAX)
        return CODE_COMPLETE;
    if (space == 0)
        return CODE_EMPTY;
    return counts[1] == 1 && space == 1u << (CODE_BITS_MAX - 1) ? CODE_SINGLE : CODE_INVALID;
}

/* With one codeword both values of its bit mean the symbol. */
static void use_single_symbol(canonical_code *code, uint16_t *symbols) {
    code->end[1] = 1u << CODE_BITS_MAX;
    symbols[1] = symbols[0];
}

/*
 * A table is filled in the order of the codes, which are bit-reversed indices. All codes of up to
 * `bits` bits fill the first 2^bits entries. Before the first code of another length the filled
 * part is doubled: what is in the new bits does not matter to the codes that are there.
 */
typedef struct filler {
    uint32_t bits; /* log2 of the entries that are in use */
    uint32_t code; /* the next index */
} filler;

/* Moves to the next code of `bits` bits; false after the last. The highest bit that is 0 becomes 1,
 * those above it 0: counting up with the bits reversed. */
static bool next_code(filler *f, uint32_t bits) {
    const uint32_t zeros = ~f->code & ((1u << bits) - 1);
    if (!zeros)
        return false;
    const uint32_t bit = 1u << (31 - __builtin_clz(zeros));
    f->code = (f->code & (bit - 1)) | bit;
    return true;
}

#define DOUBLE_TABLE(table, f, to_bits)                                                            \
    for (; (f)->bits < (to_bits); (f)->bits++)                                                     \
    memcpy((table) + (1u << (f)->bits), (table), sizeof *(table) << (f)->bits)

/* ---- literals and lengths ------------------------------------------------------------------- */

static uint32_t litlen_entry(uint32_t literal_bits, uint32_t literal, uint32_t bits, int kind) {
    return literal_bits | literal << 8 | bits << 16 | (uint32_t)(uint8_t)kind << 24;
}

static uint32_t exception_entry(uint32_t symbol, uint32_t code_bits) {
    return (uint32_t)(uint8_t)ENTRY_EXCEPTION << 24 | symbol << 8 | code_bits << 17;
}

static uint32_t entry_of_symbol(uint32_t symbol, uint32_t bits) {
    const uint32_t length = symbol - END_OF_BLOCK - 1;
    if (symbol < END_OF_BLOCK)
        return litlen_entry(bits, symbol, bits, ENTRY_LITERAL);
    if (symbol > END_OF_BLOCK && length < LENGTH_SYMBOLS && inflate_length_extra[length] == 0 &&
        inflate_length_base[length] <= COPY_BYTES)
        return litlen_entry(0, 0, bits, inflate_length_base[length]);
    return exception_entry(symbol, bits);
}

/* One entry for each value of the extra bits of a length code. */
static void expand_length(uint32_t *table, uint32_t code, uint32_t bits, uint32_t symbol) {
    const uint32_t extra = inflate_length_extra[symbol - END_OF_BLOCK - 1];
    for (uint32_t value = 0; value < 1u << extra; value++) {
        const uint32_t length = inflate_length_base[symbol - END_OF_BLOCK - 1] + value;
        const uint32_t entry = length <= COPY_BYTES ? litlen_entry(0, 0, bits + extra, (int)length)
                                                    : exception_entry(symbol, bits);
        for (uint32_t i = code | value << bits; i < 1u << LITLEN_BITS; i += 1u << (bits + extra))
            table[i] = entry;
    }
}

static bool is_expanded(uint32_t symbol, uint32_t bits) {
    const uint32_t length = symbol - END_OF_BLOCK - 1;
    return symbol > END_OF_BLOCK && length < LENGTH_SYMBOLS && inflate_length_extra[length] > 0 &&
           inflate_length_base[length] <= COPY_BYTES &&
           bits + inflate_length_extra[length] <= LITLEN_BITS;
}

static void fill_litlen_table(inflate_lane *lane, const uint16_t *counts, const uint8_t *lengths) {
    uint32_t *table = lane->litlen;
    const uint16_t *symbol = lane->litlen_symbols;
    filler f = {0};
    struct {
        uint16_t symbol, code;
    } expanded[LENGTH_SYMBOLS];
    uint32_t expanded_count = 0;
    bool has_more = true;
    for (uint32_t bits = 1; bits <= LITLEN_BITS && has_more; bits++) {
        if (!counts[bits])
            continue;
        if (symbol == lane->litlen_symbols)
            f.bits = bits;
        DOUBLE_TABLE(table, &f, bits);
        for (uint32_t i = counts[bits]; i > 0; i--, symbol++) {
            table[f.code] = entry_of_symbol(*symbol, bits);
            if (is_expanded(*symbol, bits)) {
                expanded[expanded_count].symbol = *symbol;
                expanded[expanded_count++].code = (uint16_t)f.code;
            }
            has_more = next_code(&f, bits);
        }
    }
    DOUBLE_TABLE(table, &f, LITLEN_BITS);
    for (; has_more; has_more = next_code(&f, LITLEN_BITS))
        table[f.code] = exception_entry(NO_SYMBOL, 0);
    for (uint32_t i = 0; i < expanded_count; i++)
        expand_length(table, expanded[i].code, lengths[expanded[i].symbol], expanded[i].symbol);
}

static bool make_litlen_table(inflate_lane *lane, const uint8_t *lengths, uint32_t count) {
    uint16_t counts[CODE_BITS_MAX + 1];
    switch (sort_symbols(lengths, count, counts, &lane->litlen_code, lane->litlen_symbols)) {
    case CODE_COMPLETE:
        fill_litlen_table(lane, counts, lengths);
        return true;
    case CODE_SINGLE:
        use_single_symbol(&lane->litlen_code, lane->litlen_symbols);
        for (uint32_t i = 0; i < 1u << LITLEN_BITS; i++)
            lane->litlen[i] = entry_of_symbol(lane->litlen_symbols[0], 1);
        return true;
    default:
        return false;
    }
}

/* ---- distances ------------------------------------------------------------------------------ */

static const distance_entry unknown_distance = {.base = DISTANCE_UNKNOWN};

static distance_entry entry_of_distance(uint32_t symbol, uint32_t bits) {
    if (symbol >= 30)
        return unknown_distance;
    const int base = inflate_distance_base[symbol];
    return (distance_entry){.mask = ((1u << inflate_distance_extra[symbol]) - 1) << bits,
                            .base = (int16_t)(base < COPY_BYTES ? DISTANCE_NEAR + base : base),
                            .bits = (uint8_t)(bits + inflate_distance_extra[symbol])};
}

static void fill_distance_table(inflate_lane *lane, const uint16_t *counts) {
    distance_entry *table = lane->distances + KINDS;
    const uint16_t *symbol = lane->distance_symbols;
    filler f = {0};
    bool has_more = true;
    for (uint32_t bits = 1; bits <= DISTANCE_BITS && has_more; bits++) {
        if (!counts[bits])
            continue;
        if (symbol == lane->distance_symbols)
            f.bits = bits;
        DOUBLE_TABLE(table, &f, bits);
        for (uint32_t i = counts[bits]; i > 0; i--) {
            table[f.code] = entry_of_distance(*symbol++, bits);
            has_more = next_code(&f, bits);
        }
    }
    DOUBLE_TABLE(table, &f, DISTANCE_BITS);
    for (; has_more; has_more = next_code(&f, DISTANCE_BITS))
        table[f.code] = unknown_distance;
}

static bool make_distance_table(inflate_lane *lane, const uint8_t *lengths, uint32_t count) {
    uint16_t counts[CODE_BITS_MAX + 1];
    distance_entry entry = unknown_distance;
    switch (sort_symbols(lengths, count, counts, &lane->distance_code, lane->distance_symbols)) {
    case CODE_COMPLETE:
        fill_distance_table(lane, counts);
        return true;
    case CODE_SINGLE:
        use_single_symbol(&lane->distance_code, lane->distance_symbols);
        entry = entry_of_distance(lane->distance_symbols[0], 1);
        break;
    case CODE_EMPTY:
        break;
    default:
        return false;
    }
    for (uint32_t i = 0; i < 1u << DISTANCE_BITS; i++)
        lane->distances[KINDS + i] = entry;
    return true;
}

/* ---- headers -------------------------------------------------------------------------------- */

enum { PRECODE_SYMBOLS = 19, PRECODE_BITS = 7 };

/* The code of the code lengths (RFC 1951 3.2.7): entries are bits | symbol << 3. Moves `bit`. */
static bool read_precode(const inflate_lane *lane, uint64_t *bit, uint32_t count, uint8_t *table) {
    static const uint8_t order[PRECODE_SYMBOLS] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                   11, 4,  12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[PRECODE_SYMBOLS] = {0};
    uint16_t counts[CODE_BITS_MAX + 1], symbols[PRECODE_SYMBOLS];
    canonical_code code;
    for (uint32_t i = 0; i < count; i++, *bit += 3)
        lengths[order[i]] = lane_bits(lane, *bit) & 7;
    const enum code_kind kind = sort_symbols(lengths, PRECODE_SYMBOLS, counts, &code, symbols);
    if (kind == CODE_SINGLE)
        memset(table, 1 | symbols[0] << 3, 1 << PRECODE_BITS);
    if (kind != CODE_COMPLETE)
        return kind == CODE_SINGLE;
    filler f = {0};
    const uint16_t *symbol = symbols;
    for (uint32_t bits = 1; bits <= PRECODE_BITS; bits++) {
        if (!counts[bits])
            continue;
        if (symbol == symbols)
            f.bits = bits;
        DOUBLE_TABLE(table, &f, bits);
        for (uint32_t i = counts[bits]; i > 0; i--) {
            table[f.code] = (uint8_t)(bits | (uint32_t)*symbol++ << 3);
            (void)next_code(&f, bits);
        }
    }
    DOUBLE_TABLE(table, &f, PRECODE_BITS);
    return true;
}

/* The lengths of both codes, run-length encoded. `lengths` has room for a run beyond `count`. */
static bool read_code_lengths(const inflate_lane *lane, uint64_t *bit, const uint8_t *precode,
                              uint32_t count, uint8_t *lengths) {
    enum { COPY_LAST = 16, ZEROS_3_BITS = 17 };
    for (uint32_t i = 0; i < count;) {
        const uint64_t bits = lane_bits(lane, *bit);
        const uint32_t entry = precode[bits & ((1 << PRECODE_BITS) - 1)];
        const uint32_t code_bits = entry & 7, symbol = entry >> 3;
        const uint32_t extra = (uint32_t)(bits >> code_bits);
        uint32_t run = 1, value = symbol;
        *bit += code_bits;
        if (symbol == COPY_LAST) {
            if (i == 0)
                return false;
            value = lengths[i - 1];
            run = 3 + (extra & 3);
            *bit += 2;
        } else if (symbol == ZEROS_3_BITS) {
            value = 0;
            run = 3 + (extra & 7);
            *bit += 3;
        } else if (symbol > ZEROS_3_BITS) {
            value = 0;
            run = 11 + (extra & 127);
            *bit += 7;
        }
        memset(lengths + i, (int)value, run);
        i += run;
        if (i > count)
            return false;
    }
    return true;
}

static bool read_dynamic_tables(inflate_lane *lane, uint64_t bit) {
    const uint64_t header = lane_bits(lane, bit);
    const uint32_t litlens = (header & 31) + 257, distances = (header >> 5 & 31) + 1;
    uint8_t precode[1 << PRECODE_BITS], lengths[LENGTHS_ROOM];
    bit += 14;
    if (!read_precode(lane, &bit, (header >> 10 & 15) + 4, precode) ||
        !read_code_lengths(lane, &bit, precode, litlens + distances, lengths))
        return false;
    lane->bit = bit;
    return make_litlen_table(lane, lengths, litlens) &&
           make_distance_table(lane, lengths + litlens, distances);
}

static bool make_fixed_tables(inflate_lane *lane) {
    uint8_t lengths[LITLEN_SYMBOLS];
    memset(lengths, 8, LITLEN_SYMBOLS);
    memset(lengths + 144, 9, 256 - 144);
    memset(lengths + 256, 7, 280 - 256);
    (void)make_litlen_table(lane, lengths, LITLEN_SYMBOLS);
    memset(lengths, 5, DISTANCE_SYMBOLS);
    return make_distance_table(lane, lengths, DISTANCE_SYMBOLS);
}

static bool copy_stored_block(inflate_lane *lane) {
    const uint8_t *in = lane->in + ((lane->bit + 7) >> 3);
    if (in > lane->in_end || lane->in_end - in < 4)
        return false;
    const uint32_t bytes = in[0] | (uint32_t)in[1] << 8, check = in[2] | (uint32_t)in[3] << 8;
    in += 4;
    if (bytes != (check ^ 0xFFFF) || (size_t)(lane->in_end - in) < bytes ||
        (size_t)(lane->out_end - lane->out) < bytes)
        return false;
    memcpy(lane->out, in, bytes);
    lane->out += bytes;
    lane->bit = (uint64_t)(in + bytes - lane->in) * 8;
    return true;
}

void cogpu_inflate_lane_next_block(inflate_lane *lane) {
    enum { STORED, FIXED, DYNAMIC };
    const uint64_t end = (uint64_t)(lane->in_end - lane->in) * 8;
    while (!lane->is_last_block && lane->bit < end) {
        const uint64_t header = lane_bits(lane, lane->bit);
        const uint32_t type = header >> 1 & 3;
        lane->is_last_block = header & 1;
        lane->bit += 3;
        if (type == STORED && copy_stored_block(lane))
            continue;
        const bool is_good = type == FIXED
                                 ? make_fixed_tables(lane)
                                 : type == DYNAMIC && read_dynamic_tables(lane, lane->bit);
        lane->state = is_good && lane->bit <= end ? LANE_IN_BLOCK : LANE_FAILED;
        return;
    }
    lane->state = lane->is_last_block && lane->bit <= end ? LANE_FINISHED : LANE_FAILED;
}

#endif
