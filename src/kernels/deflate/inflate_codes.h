/*
 * Huffman codes of a deflate block and their decoding tables (RFC 1951, 3.2.2 and 3.2.5).
 *
 * A table is indexed by the next ROOT_BITS bits of the stream, LSB first. Longer codes of literals
 * and lengths continue in a subtable. Canonical codes are sorted by length, so those over ROOT_BITS
 * bits are the last ones, and the n-th root prefix that has longer codes owns the n-th subtable:
 *
 *     table   | litlen root, 1024 | distance root, 1024 | subtable 0 | subtable 1 | ... |
 *                        |                                    ^
 *                        '-- entry with IS_SUBTABLE ----------'
 *
 * An entry is one word:
 *
 *     31         16 15      14   13    12     11  10   9       5 4        0
 *     |    base    | subtable | end | long | length  | code bits | all bits |
 *
 * all bits    to skip: the code and its extra bits
 * code bits   of these, the code
 * base        value of the symbol before its extra bits are subtracted (inflate_tokens.h); of an
 *             entry with IS_SUBTABLE: index of the subtable
 *
 * Every thread computes its entries from the sorted symbols, by a binary search for the length of
 * the code that an index begins with. There is no scatter, so no thread waits for another.
 */
#ifndef COGPU_KERNELS_DEFLATE_INFLATE_CODES_H
#define COGPU_KERNELS_DEFLATE_INFLATE_CODES_H

#include "kernels/deflate/inflate_shared.h"

/* Flags of an entry. Some have two bits: the test of a single bit becomes three instructions. */
enum {
    IS_LENGTH = DISTANCE_ROOT | 1 << 11, /* bit DISTANCE_ROOT is also the next table to look up */
    IS_LONG = 1 << 12,    /* more than ROOT_BITS bits and no subtable: find_long_entry */
    IS_END = 1 << 13,     /* end of block; with base 1: an invalid code */
    IS_SUBTABLE = 3 << 14 /* the code goes on in a subtable */
};

/* The base of a length is LENGTH_TOP - length: below all literals and distances. */
enum { LENGTH_TOP = LITERAL_SLOT - 1 };

/* Sorts the symbols of a code by length. False if libdeflate refuses the code: over-subscribed or
 * incomplete, except for a single code of 1 bit, or none if `may_be_empty`. By one warp.
 *
 * Example (RFC 1951, 3.2.2): lengths A 2, B 1, C 3, D 3 give sorted B A C D and, left-aligned in 15
 * bits, limits[1] = 100..., limits[2] = 110..., limits[3] = 1000... = CODE_END: complete. */
DEVICE_FN bool build_canonical_code(struct canonical_code *code, uint16_t *sorted,
                                    const uint8_t *lengths, uint32_t symbols, bool may_be_empty) {
    enum { ROUNDS = LITLEN_SYMBOLS / WARP, RANKS = 1 << 16 };
    /* For each symbol of this lane: code length * RANKS + rank among symbols of that length. */
    uint32_t lane = lane_index(), ranks[ROUNDS];
    if (lane < 16)
        code->counts[lane] = 0;
    sync_warp();
    UNROLL
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t i = round * WARP + lane, length = i < symbols ? lengths[i] : 0;
        ranks[round] = length * RANKS;
        if (round * WARP >= symbols)
            continue;
        uint32_t same = warp_match(length), before = count_ones(same & ((1u << lane) - 1));
        ranks[round] += code->counts[length] + before;
        sync_warp();
        if (before == 0)
            code->counts[length] += count_ones(same);
        sync_warp();
    }
    uint32_t count = lane > 0 && lane < 16 ? code->counts[lane] : 0;
    uint32_t limit = warp_scan(count << (CODE_BITS_MAX - lane % 16));
    uint32_t first = warp_scan(count) - count;
    if (lane < 16) {
        code->limits[lane] = limit;
        code->first[lane] = first;
    }
    uint32_t lengths_used = warp_ballot(count > 0);
    if (lane == 0)
        code->longest = lengths_used ? 31 - leading_zeros(lengths_used) : 0;
    sync_warp();
    UNROLL
    for (uint32_t round = 0; round < ROUNDS; round++)
        if (ranks[round] >= RANKS)
            sorted[code->first[ranks[round] / RANKS] + ranks[round] % RANKS] =
                (uint16_t)(round * WARP + lane);
    uint32_t end = warp_read(limit, 15), used = warp_sum(count), ones = warp_read(count, 1);
    return end == CODE_END || (used == 1 && ones == 1) || (used == 0 && may_be_empty);
}

/* Length of the code that these 15 bits begin with, by binary search; 16 if there is none. */
DEVICE_FN uint32_t find_code_length(const struct canonical_code *code, uint32_t bits) {
    uint32_t length = bits >= code->limits[8] ? 9 : 1;
    length += bits >= code->limits[length + 3] ? 4 : 0;
    length += bits >= code->limits[length + 1] ? 2 : 0;
    length += bits >= code->limits[length] ? 1 : 0;
    return length;
}

/* Symbol of the code of `length` bits that these 15 bits begin with. */
DEVICE_FN uint32_t find_symbol(const struct canonical_code *code, const uint16_t *sorted,
                               uint32_t bits, uint32_t length) {
    return sorted[code->first[length] +
                  ((bits - code->limits[length - 1]) >> (CODE_BITS_MAX - length))];
}

/* Where the symbols of a code begin in codes.sorted. */
DEVICE_FN uint32_t sorted_start(uint32_t which) {
    return which == LITLEN_CODE ? 0 : LITLEN_SYMBOLS;
}

DEVICE_FN uint32_t make_entry(uint32_t bits, uint32_t extra, uint32_t flag, uint32_t base) {
    return (bits + extra) | bits << 5 | flag | base << 16;
}

/* One bit long, so that loops advance: before its segment a thread may meet any bits. */
DEVICE_FN uint32_t invalid_entry(void) {
    return make_entry(1, 0, IS_END, 1);
}

/* Entries of symbols (3.2.5), without the bits of their codes. Symbol 257 + n with n < 8 is length
 * 3 + n; then there are four symbols for each number of extra bits: 265 to 268 with one, 269 to 272
 * with two. */
DEVICE_FN uint32_t litlen_entry(uint32_t symbol) {
    if (symbol < 256)
        return make_entry(0, 0, 0, LITERAL_SLOT + symbol);
    if (symbol == 256)
        return make_entry(0, 0, IS_END, 0);
    uint32_t length = symbol - 257, extra = length / 4 - 1;
    if (length < 8)
        return make_entry(0, 0, IS_LENGTH, LENGTH_TOP - 3 - length);
    if (length < 28)
        return make_entry(0, extra, IS_LENGTH, LENGTH_TOP - 3 - ((4 + length % 4) << extra));
    return length == 28 ? make_entry(0, 0, IS_LENGTH, LENGTH_TOP - 258) : invalid_entry();
}

/* Distances 1 to 4 have no extra bits; then there are two symbols for each number of extra bits. */
DEVICE_FN uint32_t distance_entry(uint32_t symbol) {
    uint32_t extra = symbol / 2 - 1;
    if (symbol < 4)
        return make_entry(0, 0, 0, SLOT_END - 1 - symbol);
    return symbol < 30 ? make_entry(0, extra, 0, SLOT_END - 1 - ((2 + symbol % 2) << extra))
                       : invalid_entry();
}

/* Entry of the code that the 15 `bits` begin with; `bits_taken` of them the root table has
 * consumed. Without branches, so that the compiler can interleave several. */
DEVICE_FN uint32_t find_entry(const struct inflate_shared *s, uint32_t which, uint32_t bits,
                              uint32_t bits_taken) {
    const struct canonical_code *code = &s->codes.canonical[which];
    uint32_t found_length = find_code_length(code, bits),
             length = min_u32(found_length, CODE_BITS_MAX);
    uint32_t rank = (bits - code->limits[length - 1]) >> (CODE_BITS_MAX - length);
    uint32_t at = found_length == length ? code->first[length] + rank : 0;
    uint32_t entry =
        s->entries[sorted_start(which) + at] + make_entry(length - bits_taken, 0, 0, 0);
    return found_length == length ? entry : invalid_entry();
}

/* Entry of a code that has no subtable, by a search in the canonical code. Stream bits have the
 * first bit lowest, codes have it highest, in 15 bits. */
DEVICE_FN_BIG uint32_t find_long_entry(const struct inflate_shared *s, uint32_t table,
                                       uint32_t bits) {
    return find_entry(s, table == 0 ? LITLEN_CODE : DISTANCE_CODE,
                      reverse_bits32(bits) >> (32 - CODE_BITS_MAX), 0);
}

/* Entry of a root table. An index has the first bit lowest, a code has it highest: hence the
 * reversal. */
DEVICE_FN uint32_t root_entry(const struct inflate_shared *s, uint32_t which, uint32_t index) {
    uint32_t bits = reverse_bits32(index) >> (32 - CODE_BITS_MAX),
             limit = s->codes.canonical[which].limits[ROOT_BITS];
    uint32_t entry = find_entry(s, which, bits, 0);
    uint32_t subtable = (bits - limit) >> SUBTABLE_BITS_MAX << s->codes.subtable_bits;
    uint32_t longer = which == LITLEN_CODE && subtable < SUBTABLE_ENTRIES
                          ? make_entry(ROOT_BITS, 0, IS_SUBTABLE, SUBTABLES + subtable)
                          : make_entry(1, 0, IS_LONG, 0);
    return bits < limit ? entry : longer;
}

/* Entry `index` of all subtables. */
DEVICE_FN uint32_t subtable_entry(const struct inflate_shared *s, uint32_t index) {
    uint32_t subtable = index >> s->codes.subtable_bits,
             rest = index - (subtable << s->codes.subtable_bits);
    uint32_t bits = s->codes.canonical[LITLEN_CODE].limits[ROOT_BITS] +
                    (subtable << SUBTABLE_BITS_MAX) +
                    (reverse_bits32(rest) >> (32 - SUBTABLE_BITS_MAX));
    return find_entry(s, LITLEN_CODE, bits, ROOT_BITS);
}

/* Builds both codes from their lengths. False if one is invalid, or the end of block (256) has no
 * code. By one warp. */
DEVICE_FN bool build_codes(struct block_codes *codes, const uint8_t *lengths, uint32_t literals,
                           uint32_t distances) {
    struct canonical_code *code = &codes->canonical[LITLEN_CODE];
    if (!build_canonical_code(code, codes->sorted, lengths, literals, false) || lengths[256] == 0)
        return false;
    if (lane_index() == 0)
        codes->subtable_bits = code->longest > ROOT_BITS ? code->longest - ROOT_BITS : 0;
    return build_canonical_code(&codes->canonical[DISTANCE_CODE], codes->sorted + LITLEN_SYMBOLS,
                                lengths + literals, distances, true);
}

DEVICE_FN void fill_root_table(struct inflate_shared *s, uint32_t which, uint32_t table) {
    enum { PER_THREAD = ROOT / THREADS };
    uint32_t entries[PER_THREAD];
    UNROLL
    for (uint32_t i = 0; i < PER_THREAD; i++)
        entries[i] = root_entry(s, which, i * THREADS + thread_index());
    UNROLL
    for (uint32_t i = 0; i < PER_THREAD; i++)
        s->table[table + i * THREADS + thread_index()] = entries[i];
}

/* Builds the decoding tables of both codes. By all threads, after a barrier. */
DEVICE_FN void build_tables(struct inflate_shared *s) {
    for (uint32_t i = thread_index(); i < LITLEN_SYMBOLS + DISTANCE_SYMBOLS; i += THREADS)
        s->entries[i] = i < LITLEN_SYMBOLS ? litlen_entry(s->codes.sorted[i])
                                           : distance_entry(s->codes.sorted[i]);
    sync_block();
    fill_root_table(s, LITLEN_CODE, 0);
    fill_root_table(s, DISTANCE_CODE, DISTANCE_ROOT);
    uint32_t subtables =
        (CODE_END - s->codes.canonical[LITLEN_CODE].limits[ROOT_BITS]) >> SUBTABLE_BITS_MAX;
    uint32_t entries_used = min_u32(subtables << s->codes.subtable_bits, SUBTABLE_ENTRIES);
    for (uint32_t i = thread_index(); i < entries_used; i += THREADS)
        s->table[SUBTABLES + i] = subtable_entry(s, i);
    sync_block();
}

#endif
