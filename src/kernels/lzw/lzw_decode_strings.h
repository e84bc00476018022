/*
 * LZW strings without a table: from the codes of a segment to a record per code.
 *
 * Code c >= 258 means: the string of code number c - 258 of this segment (its parent), extended by
 * the first byte of the string after it. So a string is a copy of its parent and one byte, and the
 * codes form a forest whose roots are literals:
 *
 *     text            a   b   a b   a b a   a
 *     number k        0   1   2     3       4
 *     code            a   b   258   260     a
 *     parent          -   -   0     2       -     code - 258; 260: "ab" and the byte after it
 *
 * 1. read_codes: all codes at once become links {parent, 1}; literals {their byte, 1}.
 * 2. follow_links: pointer jumping. A link is replaced by its parent's link plus its own length,
 *    until it comes to a literal. Then each code knows the length and first byte of its string.
 * 3. find_starts: prefix sum of the lengths.
 * 4. build_records: {parent, last byte}. The last byte of a string is the first byte of the code
 *    that follows its parent, which is known from step 2.
 */
#ifndef COGPU_KERNELS_LZW_LZW_DECODE_STRINGS_H
#define COGPU_KERNELS_LZW_LZW_DECODE_STRINGS_H

#include "kernels/lzw/lzw_decode_shared.h"

/* Copies the encoded codes to shared memory. Returns the bit where the first one begins there. */
DEVICE_FN uint32_t stage_codes(const struct cogpu_lzw_args *args, struct lzw_decode_shared *shared,
                               uint32_t count) {
    const uint32_t bit = shared->segment.bit;
    const uint8_t *in = (const uint8_t *)open_bits(args, &shared->block).memory + bit / 8;
    const uint32_t skew = (uint32_t)((uintptr_t)in % 16), first = 8 * skew + bit % 8;
    const uint32_t words = (first + bits_before_code(count)) / 32 + 2; /* that code_at reads */
    ROLLED
    for (uint32_t word = 4 * thread_index(); word < words; word += 4 * THREADS)
        copy_to_shared_16(shared->stored + word, in - skew + 4 * word);
    copies_commit();
    copies_wait();
    return first;
}

/* First row whose codes all have 12 bits. */
enum { FIRST_12_BIT_ROW = (FIRST_12_BIT + THREADS - 1) / THREADS };

/* saturating_sub and >= of the numbers of a row's codes against a limit. If the limit is outside of
 * the row, the compiler knows the result. */
DEVICE_FN uint32_t row_past(uint32_t row, uint32_t limit) {
    uint32_t number = row * THREADS + thread_index();
    if ((row + 1) * THREADS <= limit)
        return 0;
    return row * THREADS >= limit ? number - limit : saturating_sub(number, limit);
}

DEVICE_FN uint32_t row_reaches(uint32_t row, uint32_t limit) {
    if ((row + 1) * THREADS <= limit)
        return 0;
    return row * THREADS >= limit ? 1 : row * THREADS + thread_index() >= limit;
}

/* Rows of 12-bit codes are whole words apart, so one position serves for all of them. */
DEVICE_FN uint32_t row_code(const uint32_t *memory, uint32_t first, uint32_t row) {
    const uint32_t base = min_u32(row, FIRST_12_BIT_ROW);
    uint32_t width = 9 + row_reaches(base, FIRST_10_BIT) + row_reaches(base, FIRST_11_BIT) +
                     row_reaches(base, FIRST_12_BIT);
    uint32_t bit = first + 9 * (base * THREADS + thread_index()) + row_past(base, FIRST_10_BIT) +
                   row_past(base, FIRST_11_BIT) + row_past(base, FIRST_12_BIT);
    return code_at(memory + (row - base) * (THREADS / 32 * 12), bit, width);
}

/* Finds the thread's first code that is invalid: its string does not exist yet. */
DEVICE_FN void record_invalid_code(struct lzw_decode_shared *shared, uint32_t count) {
    ROLLED
    for (uint32_t number = thread_index(); number < count; number += THREADS) {
        uint32_t code = shared->records[number];
        if (code >= CLEAR_CODE && code - FIRST_STRING_CODE >= number) {
            atomic_min(&shared->invalid_code, 2 * number + (code < FIRST_STRING_CODE));
            return;
        }
    }
}

/* An invalid code becomes a literal. */
DEVICE_FN void read_codes(struct lzw_decode_shared *shared, uint32_t first, uint32_t count) {
    const uint32_t to_parent = 1 - ((uint32_t)FIRST_STRING_CODE << CODE_SHIFT),
                   to_literal = IS_LITERAL + 1;
    uint32_t literals = 0; /* OR of all codes without a parent */
    UNROLL
    for (uint32_t row = 0; row < ROWS; row++) {
        uint32_t number = row * THREADS + thread_index();
        uint32_t code = row_code(shared->stored, first, row);
        bool has_parent = code - FIRST_STRING_CODE < number; /* wraps around for literals: false */
        literals |= has_parent ? 0 : code;
        shared->records[number] = code;
        shared->u.links[number] = (code << CODE_SHIFT) + (has_parent ? to_parent : to_literal);
    }
    /* Bits after the last code were read as codes too: give them strings of no bytes. */
    ROLLED
    for (uint32_t row = ROWS; row > 0 && (row - 1) * THREADS + thread_index() >= count; row--)
        shared->u.links[(row - 1) * THREADS + thread_index()] = IS_LITERAL;
    if (literals >= CLEAR_CODE)
        record_invalid_code(shared, count);
}

/* The word at a byte offset of an array. */
DEVICE_FN uint32_t word_at(const volatile uint32_t *words, uint32_t offset) {
    return *(const volatile uint32_t *)((const volatile uint8_t *)words + offset);
}

/* Follows the thread's links until they come to a literal. Other threads change theirs meanwhile,
 * without a barrier: a link is one word and is right before and after. Parents come before their
 * children, so the chain ends, usually after two steps. This data race is intended
 * (tests/races.supp). */
DEVICE_FN void follow_links(struct lzw_decode_shared *shared) {
    UNROLL
    for (uint32_t row = 0; row < ROWS; row++) {
        uint32_t number = row * THREADS + thread_index(), link = shared->u.links[number];
        ROLLED
        while (!(link & IS_LITERAL)) {
            link = word_at(shared->u.links, link >> PARENT_SHIFT) + (link & LENGTH_MASK);
            shared->u.links[number] = link;
        }
    }
}

/* Start of each string in the segment, in 16 bits. In long segments the starts of ROWS codes count
 * from `starts_before`. Returns the bytes of all strings. */
DEVICE_FN uint32_t find_starts(struct lzw_decode_shared *shared) {
    uint32_t lengths[ROWS], sum = 0, total, number = thread_index() * ROWS;
    UNROLL
    for (uint32_t i = 0; i < ROWS; i++) {
        lengths[i] = shared->u.links[number + i] & LENGTH_MASK;
        sum += lengths[i];
    }
    uint32_t before = exclusive_sum(shared, sum, &total);
    uint32_t start = total <= SHORT_BYTES_MAX ? before : 0;
    shared->starts_before[thread_index()] = before - start;
    UNROLL
    for (uint32_t i = 0; i < ROWS; i++) {
        shared->starts[number + i] = (uint16_t)start;
        start += lengths[i];
    }
    if (thread_index() == THREADS - 1) {
        shared->starts[TABLE_CODES] = (uint16_t)start;
        shared->starts_before[THREADS] = before + sum - start;
        shared->total = total;
    }
    return total;
}

DEVICE_FN void build_records(struct lzw_decode_shared *shared) {
    UNROLL
    for (uint32_t row = 0; row < ROWS; row++) {
        uint32_t number = row * THREADS + thread_index();
        uint32_t parent = shared->records[number] - FIRST_STRING_CODE;
        uint32_t link = shared->u.links[parent < number ? parent + 1 : number];
        shared->records[number] = parent << CODE_SHIFT | (link >> CODE_SHIFT & 0xFF);
    }
}

#endif
