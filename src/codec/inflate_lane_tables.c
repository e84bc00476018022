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

/* ---- canonical codes ------------------------------------------------------------------------ */

enum code_kind { CODE_INVALID, CODE_COMPLETE, CODE_SINGLE, CODE_EMPTY };

/* Counts the codes of each length and sorts the symbols by their codes (RFC 1951 3.2.2). */
static enum code_kind sort_symbols(const uint8_t *lengths, uint32_t count, uint16_t *counts,
                                   lane_code *code, uint16_t *symbols) {
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

/*
 * A table is filled in the order of the codes, which are bit-reversed indices. All codes of up to
 * `bits` bits fill the first 2^bits entries. Before the first code of another length the filled
 * part is doubled: what is in the new bits does not matter to the codes that are there.
 */
typedef struct filler {
    uint32_t bits; /* log2 of the entries that are in use */
    uint32_t code; /* the next index */
} filler;

/* Moves to the next code of `bits` bits; false after the last. */
static bool next_code(filler *f, uint32_t bits) {
    if (f->code == (1u << bits) - 1)
        return false;
    f->code = inflate_next_code(f->code, bits);
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
    return (uint32_t)(uint8_t)KIND_EXCEPTION << 24 | symbol << 8 | code_bits << 17;
}

/* Whether steps can handle the symbol: the shortest length that it stands for is copied by one. */
static bool is_short_length(uint32_t symbol) {
    return symbol > END_OF_BLOCK && symbol <= END_OF_BLOCK + LENGTH_SYMBOLS_VALID &&
           length_of(symbol) >> 16 <= COPY_BYTES;
}

static uint32_t entry_of_symbol(uint32_t symbol, uint32_t bits) {
    if (symbol < END_OF_BLOCK)
        return litlen_entry(bits, symbol, bits, KIND_LITERAL);
    if (is_short_length(symbol) && extra_bits(length_of(symbol)) == 0)
        return litlen_entry(0, 0, bits, (int)(length_of(symbol) >> 16));
    return exception_entry(symbol, bits);
}

/* One entry for each value of the extra bits of a length code. */
static void expand_length(uint32_t *table, uint32_t code, uint32_t bits, uint32_t symbol) {
    const uint32_t extra = extra_bits(length_of(symbol));
    for (uint32_t value = 0; value < 1u << extra; value++) {
        const uint32_t length = (length_of(symbol) >> 16) + value;
        const uint32_t entry = length <= COPY_BYTES ? litlen_entry(0, 0, bits + extra, (int)length)
                                                    : exception_entry(symbol, bits);
        for (uint32_t i = code | value << bits; i < 1u << LITLEN_BITS; i += 1u << (bits + extra))
            table[i] = entry;
    }
}

static bool is_expanded(uint32_t symbol, uint32_t bits) {
    return is_short_length(symbol) && extra_bits(length_of(symbol)) > 0 &&
           bits + extra_bits(length_of(symbol)) <= LITLEN_BITS;
}

static void fill_litlen_table(inflate_lane *lane, const uint16_t *counts, const uint8_t *lengths) {
    uint32_t *table = lane->litlen;
    const uint16_t *symbol = lane->litlen_symbols;
    filler f = {0};
    struct {
        uint16_t symbol, code;
    } expanded[LENGTH_SYMBOLS_VALID];
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
    if (symbol >= DISTANCE_SYMBOLS_VALID)
        return unknown_distance;
    const int base = (int)(cogpu_inflate_distances[symbol] >> 16);
    const uint32_t extra = extra_bits(cogpu_inflate_distances[symbol]);
    return (distance_entry){.mask = ((1u << extra) - 1) << bits,
                            .base = (int16_t)(base < COPY_BYTES ? DISTANCE_NEAR + base : base),
                            .bits = (uint8_t)(bits + extra)};
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

static bool make_tables(inflate_lane *lane, const uint8_t *lengths) {
    return make_litlen_table(lane, lengths, LITERAL_SYMBOLS) &&
           make_distance_table(lane, lengths + LITERAL_SYMBOLS, DISTANCE_SYMBOLS);
}

static bool read_dynamic_tables(inflate_lane *lane) {
    cogpu_inflater inflater; /* of which its tables stay unused */
    inflater.in = lane->in + (lane->bit >> 3);
    inflater.in_end = lane->in_end + ADLER_BYTES; /* it reads ahead of the last length */
    inflater.more = NULL;
    inflater.bits = inflater.bit_count = 0;
    if (!cogpu_inflate_need_bits(&inflater, lane->bit & 7))
        return false;
    (void)inflate_take_bits(&inflater, lane->bit & 7);
    if (!cogpu_inflate_read_lengths(&inflater))
        return false;
    lane->bit = (uint64_t)(inflater.in - lane->in) * 8 - inflater.bit_count;
    return make_tables(lane, inflater.lengths);
}

static bool make_fixed_tables(inflate_lane *lane) {
    uint8_t lengths[LITERAL_SYMBOLS + DISTANCE_SYMBOLS];
    cogpu_inflate_set_fixed_lengths(lengths);
    return make_tables(lane, lengths);
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
        const bool is_good =
            type == FIXED ? make_fixed_tables(lane) : type == DYNAMIC && read_dynamic_tables(lane);
        lane->state = is_good && lane->bit <= end ? LANE_IN_BLOCK : LANE_FAILED;
        return;
    }
    lane->state = lane->is_last_block && lane->bit <= end ? LANE_FINISHED : LANE_FAILED;
}

#endif
