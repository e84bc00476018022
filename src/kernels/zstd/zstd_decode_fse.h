/*
 * FSE decoding tables (RFC 8878, 4.1): the format that the tables kernel writes and that the
 * streams and execute kernels read.
 *
 * A set of tables in the pool, in 32-bit words:
 *
 *     word   0        1        2        3        4           516         1028
 *            | log LL | log OF | log ML | unused | LL, 512   | ML, 512   | OF, 256 |   entries
 *
 * LL: literals lengths, ML: match lengths, OF: offsets; log: Accuracy_Log, a table has 1 << log
 * entries. The entry of a state is one word:
 *
 *     31         23 22 21       16 15 13 12          8 7  6 5          0
 *     |  baseline  | 0 |  symbol  |  0  |  state bits  |  0 | extra bits |
 *
 * extra bits   number of bits after the symbol's code: low bits of the length or offset
 * state bits   Number_of_Bits to read for the next state
 * baseline     Baseline >> state bits: next state = baseline << state bits | the bits read
 *
 * The gaps allow the three entries of a sequence to be added with one instruction each: the sum
 * then holds all extra bits (at most 31 + 16 + 16 = 63) and all state bits (at most 9 + 9 + 8 =
 * 26). The extra bits are lowest because a funnel shift looks only at the low bits of its shift
 * count, so the sum is a shift count as it is.
 */
#ifndef COGPU_KERNELS_ZSTD_ZSTD_DECODE_FSE_H
#define COGPU_KERNELS_ZSTD_ZSTD_DECODE_FSE_H

#include "kernels/zstd/zstd_decode_device.h"

enum {
    FSE_EXTRA_SHIFT = 0,
    FSE_STATE_BITS_SHIFT = 8,
    FSE_SYMBOL_SHIFT = 16,
    FSE_BASELINE_SHIFT = 23
};

enum { ACCURACY_LOG_MAX = 9 }; /* of literals lengths and match lengths; of offsets it is 8 */

/* Fields of an entry, or of a sum of three. */
DEVICE_FN uint32_t fse_extra_bits(uint32_t entry) {
    return entry >> FSE_EXTRA_SHIFT & 63;
}

DEVICE_FN uint32_t fse_state_bits(uint32_t entry) {
    return entry >> FSE_STATE_BITS_SHIFT & 31;
}

enum { LITERALS_LENGTH_SYMBOLS = 36, OFFSET_SYMBOLS = 32, MATCH_LENGTH_SYMBOLS = 53 };

/* Extra bits of the codes for lengths (3.1.1.3.2.1.1). Offset code n has n extra bits. */
DEVICE_TABLE uint8_t literals_length_extra_bits[LITERALS_LENGTH_SYMBOLS] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  1,  1,
    1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
DEVICE_TABLE uint8_t match_length_extra_bits[MATCH_LENGTH_SYMBOLS] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  0,  0, 0,
    0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

/* The three tables of a set, in entries; in the pool they follow the words of the logs. */
enum {
    FSE_LOG_WORDS = 4,
    FSE_MATCH_START = 512,
    FSE_OFFSET_START = 1024,
    FSE_SET_ENTRIES = FSE_OFFSET_START + 256
};

DEVICE_FN uint32_t fse_table_start(uint32_t kind) {
    return kind == ZSTD_LITERALS_LENGTH ? 0
           : kind == ZSTD_MATCH_LENGTH  ? FSE_MATCH_START
                                        : FSE_OFFSET_START;
}

/* A checkpoint, 64 bits: from it the sequences of a zstd block can be decoded on.
 *
 *     63   58 57           50 49          41 40           32 31                                0
 *     |  0   | offset state  | match state  | length state  | bit position, before extra bits   |
 *
 * The position counts from the 16-byte boundary before the bitstream (struct backward_bits). */
enum { CHECKPOINT_MATCH_SHIFT = 9, CHECKPOINT_OFFSET_SHIFT = 18 };

/* Sequences with at most this many extra bits take the fast path: with 26 state bits they fit in a
 * window of 64 bits. More extra bits set bit 5 of the sum. */
enum {
    FAST_EXTRA_BITS_MAX = 31,
    EXTRA_BITS_OVERFLOW = (FAST_EXTRA_BITS_MAX + 1) << FSE_EXTRA_SHIFT
};

#endif
