/*
 * Header of a deflate block with dynamic Huffman codes (RFC 1951, 3.2.7), read by one warp:
 *
 *     HLIT (5 bits) | HDIST (5) | HCLEN (4) | precode lengths (3 each) | code lengths | tokens
 *
 * Code lengths are Huffman-coded by the precode ("code length code"). Symbols 0 to 15 are lengths;
 * 16 repeats the previous length, 17 and 18 repeat zero. Up to 316 of them in series would take as
 * long as the tokens of a small block, so they are decoded like tokens (inflate_tokens.h): each
 * lane takes a segment of 48 bits, guesses where its first code begins, and is corrected if the
 * lane before it ends elsewhere.
 *
 * An entry of the precode's table:
 *
 *     31               16 15           8 7          5 4        0
 *     | least repetitions | code length | extra bits | all bits |
 */
#ifndef COGPU_KERNELS_DEFLATE_INFLATE_HEADER_H
#define COGPU_KERNELS_DEFLATE_INFLATE_HEADER_H

#include "kernels/deflate/inflate_codes.h"

/* Two values in place of a code length; bits of a lane's segment, and of its lead-in. */
enum {
    REPEAT_PREVIOUS = 0xFF,
    INVALID_LENGTH = 0xFE,
    HEADER_SEGMENT_BITS = 48,
    HEADER_LEAD_IN_BITS = 64
};

/* The order in which precode lengths are sent (3.2.7). */
DEVICE_TABLE uint8_t precode_order[PRECODE_SYMBOLS] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                       11, 4,  12, 3, 13, 2, 14, 1, 15};

/* Symbol 16: 3 to 6 repetitions, 2 extra bits; 17: 3 to 10, 3 bits; 18: 11 to 138, 7 bits. */
DEVICE_FN uint32_t precode_entry(uint32_t symbol, uint32_t bits) {
    uint32_t extra = symbol < 16 ? 0 : symbol == 16 ? 2 : symbol == 17 ? 3 : 7;
    uint32_t length = symbol < 16 ? symbol : symbol == 16 ? REPEAT_PREVIOUS : 0;
    return (bits + extra) | extra << 5 | length << 8 |
           (symbol < 16    ? 1u
            : symbol == 18 ? 11u
                           : 3u)
               << 16;
}

/* Reads `count` precode lengths from `bit` on and builds the precode's table. Returns the bit after
 * them, 0 if the precode is invalid. By one warp. */
DEVICE_FN uint32_t read_precode(struct block_header *h, const uint32_t *stage, uint32_t bit,
                                uint32_t count) {
    uint32_t lane = lane_index();
    struct canonical_code *code = &h->precode;
    uint16_t *sorted = h->sorted;
    h->precode_lengths[lane] = 0;
    sync_warp();
    if (lane < count)
        h->precode_lengths[precode_order[lane]] = peek_bits_at(stage, bit + 3 * lane) & 7;
    sync_warp();
    if (!build_canonical_code(code, sorted, h->precode_lengths, PRECODE_SYMBOLS, false))
        return 0;
    sync_warp();
    /* An invalid code counts as one bit and one length, so that loops advance. */
    for (uint32_t i = lane; i < 128; i += WARP) {
        uint32_t bits = reverse_bits32(i) >> (32 - CODE_BITS_MAX),
                 length = find_code_length(code, bits);
        h->table[i] = length <= 7 ? precode_entry(find_symbol(code, sorted, bits, length), length)
                                  : 1 | INVALID_LENGTH << 8 | 1 << 16;
    }
    sync_warp();
    return bit + 3 * count;
}

/* Number of code lengths that an entry stands for, with the extra bits in `bits`. */
DEVICE_FN uint32_t repeat_count(uint32_t entry, uint32_t bits) {
    uint32_t extra = entry >> 5 & 7;
    return (entry >> 16) + (bits >> ((entry & 31) - extra) & ((1u << extra) - 1));
}

/* Decodes code lengths that begin between two bits, only to count them. Returns the bit where it
 * ends. */
DEVICE_FN uint32_t count_code_lengths(const struct block_header *h, const uint32_t *stage,
                                      uint32_t from, uint32_t to, uint32_t *count) {
    struct bit_reader reader = open_reader(stage, from);
    *count = 0;
    while (reader.bit < to) {
        uint32_t bits = peek_bits(&reader), entry = h->table[bits & 127];
        *count += repeat_count(entry, bits);
        skip_bits(&reader, stage, entry & 31);
    }
    return reader.bit;
}

/* Stores the code lengths of a segment from index `at` on, none from `total` on. A repetition
 * stores its first length only; the others stay REPEAT_PREVIOUS. False if a code is invalid or
 * repeats beyond `total`. Sets *end to the bit after the last length, if it is in this segment. */
DEVICE_FN bool store_code_lengths(struct block_header *h, const uint32_t *stage, uint32_t from,
                                  uint32_t to, uint32_t at, uint32_t total, uint32_t *end) {
    struct bit_reader reader = open_reader(stage, from);
    bool is_good = true;
    while (reader.bit < to && at < total) {
        uint32_t bits = peek_bits(&reader), entry = h->table[bits & 127];
        uint32_t repetitions = repeat_count(entry, bits), length = entry >> 8 & 0xFF;
        is_good = is_good && length != INVALID_LENGTH && repetitions <= total - at;
        if (length != REPEAT_PREVIOUS)
            h->lengths[at] = (uint8_t)length;
        at += repetitions;
        skip_bits(&reader, stage, entry & 31);
        if (at >= total)
            *end = reader.bit;
    }
    return is_good;
}

/* Replaces each REPEAT_PREVIOUS by the length before it. False if there is none. By one warp. */
DEVICE_FN bool resolve_repeats(struct block_header *h, uint32_t total) {
    uint32_t lane = lane_index(), before = REPEAT_PREVIOUS;
    bool is_good = true;
    for (uint32_t first = 0; first < total; first += WARP) {
        uint32_t i = first + lane, length = i < total ? h->lengths[i] : 0;
        uint32_t known = warp_ballot(length != REPEAT_PREVIOUS) & (0xFFFFFFFFu >> (31 - lane));
        uint32_t found = warp_read(length, known ? 31 - leading_zeros(known) : 0);
        length = known ? found : before;
        is_good = is_good && length != REPEAT_PREVIOUS;
        if (i < total)
            h->lengths[i] = (uint8_t)length;
        before = warp_read(length, WARP - 1);
    }
    return warp_all(is_good);
}

/* Reads `total` code lengths. Returns the bit after them, 0 if they are malformed. By one warp.
 *
 * Lane 0 begins at a true code. A lane whose start differs from the end of the lane before it
 * decodes again from there, until all agree: at most 32 passes, usually one or two. */
DEVICE_FN uint32_t read_code_lengths(struct block_header *h, const uint32_t *stage, uint32_t bit,
                                     uint32_t total) {
    uint32_t lane = lane_index();
    for (uint32_t i = lane; i < total; i += WARP)
        h->lengths[i] = REPEAT_PREVIOUS;
    sync_warp();
    for (uint32_t done = 0; done < total;) {
        uint32_t start = bit + lane * HEADER_SEGMENT_BITS, to = start + HEADER_SEGMENT_BITS, count,
                 exit = 0;
        uint32_t lead_in = min_u32(lane * HEADER_SEGMENT_BITS, HEADER_LEAD_IN_BITS);
        uint32_t from = count_code_lengths(h, stage, start - lead_in, start, &count);
        bool must_decode = true;
        for (uint32_t pass = 0; pass <= WARP && warp_any(must_decode); pass++) {
            if (must_decode)
                exit = count_code_lengths(h, stage, from, to, &count);
            uint32_t true_start = warp_read_up(exit, 1);
            must_decode = lane > 0 && true_start != from;
            from = must_decode ? true_start : from;
        }
        uint32_t counts = warp_scan(count), end = 0;
        if (!warp_all(store_code_lengths(h, stage, from, to, done + counts - count, total, &end)))
            return 0;
        uint32_t last = warp_max(end);
        if (last > 0) {
            sync_warp();
            return resolve_repeats(h, total) ? last : 0;
        }
        done += warp_read(counts, WARP - 1);
        bit = warp_read(exit, WARP - 1);
    }
    return 0;
}

/* Numbers of code lengths in a header. */
struct symbol_counts {
    uint32_t literals, distances;
};

/* Those of a dynamic header: HLIT + 257 literals and lengths, HDIST + 1 distances. */
DEVICE_FN struct symbol_counts read_symbol_counts(const uint32_t *stage, uint32_t bit) {
    uint32_t bits = peek_bits_at(stage, bit);
    struct symbol_counts counts = {257 + (bits & 31), 1 + (bits >> 5 & 31)};
    return counts;
}

/* Reads the code lengths of a dynamic header, after HCLEN + 4 precode lengths. Returns the bit
 * after the header, 0 if it is malformed. More than 286 literal or 30 distance symbols are refused,
 * as libdeflate does. By one warp. */
DEVICE_FN uint32_t read_dynamic_lengths(struct block_header *h, const uint32_t *stage, uint32_t bit,
                                        struct symbol_counts counts) {
    uint32_t end = 0;
    if (counts.literals <= 286 && counts.distances <= 30) {
        end = read_precode(h, stage, bit + 14, 4 + (peek_bits_at(stage, bit) >> 10 & 15));
        if (end > 0)
            end = read_code_lengths(h, stage, end, counts.literals + counts.distances);
    }
    return end;
}

/* Reads the codes of a deflate block, fixed (3.2.6) or dynamic. Returns the bit after the header, 0
 * if it is malformed. By one warp. */
DEVICE_FN uint32_t read_block_codes(struct block_codes *codes, struct block_header *h,
                                    const uint32_t *stage, uint32_t bit, bool is_fixed) {
    struct symbol_counts counts = read_symbol_counts(stage, bit);
    uint32_t end = bit;
    counts.literals = is_fixed ? LITLEN_SYMBOLS : counts.literals;
    counts.distances = is_fixed ? DISTANCE_SYMBOLS : counts.distances;
    if (is_fixed)
        for (uint32_t i = lane_index(); i < LITLEN_SYMBOLS + DISTANCE_SYMBOLS; i += WARP)
            h->lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : i < LITLEN_SYMBOLS ? 8 : 5;
    else
        end = read_dynamic_lengths(h, stage, bit, counts);
    sync_warp();
    return end > 0 && build_codes(codes, h->lengths, counts.literals, counts.distances) ? end : 0;
}

#endif
