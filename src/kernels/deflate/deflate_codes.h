/*
 * The Huffman codes of a DEFLATE block with dynamic codes, and its header (RFC 1951, 3.2.7).
 *
 * The header holds code lengths; codes follow from lengths (3.2.2). Bits are packed LSB first:
 *
 *     bit   0       1-2      3-7    8-12   13-16   17 ...                      then
 *           BFINAL  BTYPE 2  HLIT   HDIST  HCLEN   3 bits per precode length   code lengths
 *
 * Code lengths, first of literals and lengths, then of distances, are run-length coded with the
 * precode: symbols 0 to 15 are a length, 16 repeats the previous length 3 to 6 times (2 extra
 * bits), 17 and 18 are 3 to 10 (3 extra bits) and 11 to 138 zeros (7 extra bits). An example:
 *
 *     lengths   8 8 8 8 8 0 0 0 0 7       runs    8 x 5     0 x 4    7 x 1
 *                                         items   8, 16(4)  17(4)    7
 *
 * One warp makes the header while the other warps already write their segments.
 */
#ifndef COGPU_KERNELS_DEFLATE_DEFLATE_CODES_H
#define COGPU_KERNELS_DEFLATE_DEFLATE_CODES_H

#include "kernels/deflate/deflate_format.h"

/* ---- codes ---------------------------------------------------------------------------------- */

/* The build of one of the three codes, by thread `index` of `threads`. */
DEVICE_FN struct huffman_build get_build(struct deflate_shared *shared, uint32_t code,
                                         uint32_t index, uint32_t threads) {
    struct deflate_tree *tree = &shared->v.tree;
    const uint32_t first = code == LITLEN_CODE     ? 0
                           : code == DISTANCE_CODE ? FIRST_DISTANCE
                                                   : FIRST_PRECODE;
    const struct huffman_build build = {
        shared->codes + first,
        shared->lengths + first,
        shared->length_counts[code],
        &shared->used[code],
        tree->keys + first,
        tree->weights + first,
        tree->symbols + first,
        tree->leaf_parents + first,
        tree->inner_parents + first,
        (uint32_t)(code == LITLEN_CODE     ? LITLEN_SYMBOLS
                   : code == DISTANCE_CODE ? DISTANCE_SYMBOLS
                                           : PRECODE_SYMBOLS),
        (uint32_t)(code == PRECODE ? PRECODE_BITS_MAX : CODE_BITS_MAX),
        index,
        threads};
    return build;
}

/*
 * Canonical codes from lengths (3.2.2), in place of the counts. Codes are sent from their highest
 * bit on, but bits are packed LSB first, so codes are stored reversed. 32 symbols at a time: the
 * code of a symbol is the next one of its length plus the lanes below with that length. By a warp.
 */
DEVICE_FN void assign_canonical_codes(const struct huffman_build *b) {
    uint32_t *next = b->length_counts, first = 0;
    for (uint32_t k = 1; k < lane_index() && k < CODE_BITS_MAX; k++)
        first = (first + next[k]) << 1;
    sync_warp();
    if (lane_index() <= CODE_BITS_MAX)
        next[lane_index()] = first;
    sync_warp();
    for (uint32_t base = 0; base < b->size; base += WARP) {
        const uint32_t i = base + lane_index();
        const uint32_t length = i < b->size ? b->lengths[i] : 0;
        const uint32_t same = warp_match(length), below = same & lanes_below();
        const uint32_t code = next[length] + count_ones(below);
        sync_warp();
        if (below == 0)
            next[length] += count_ones(same);
        if (i < b->size)
            b->counts[i] = length > 0 ? reverse_bits32(code) >> (32 - length) | length << 16 : 0;
        sync_warp();
    }
}

/* Every block has an end-of-block symbol. At least two distances get a code even if none is used:
 * some decoders refuse an incomplete distance code. */
DEVICE_FN void count_required_symbols(uint32_t *counts) {
    uint32_t used = 0;
    counts[END_OF_BLOCK] = 1;
    for (uint32_t i = 0; i < DISTANCE_SYMBOLS; i++)
        used += counts[FIRST_DISTANCE + i] > 0;
    for (uint32_t i = 0; used < 2; i++)
        if (counts[FIRST_DISTANCE + i] == 0) {
            counts[FIRST_DISTANCE + i] = 1;
            used++;
        }
}

/* Literal/length and distance codes from their counts, by all threads. Distances are sorted by the
 * second warp on, as the first has more than its share of the 286 literals and lengths. */
DEVICE_FN void build_block_codes(struct deflate_shared *shared) {
    const struct huffman_build litlens =
        get_build(shared, LITLEN_CODE, thread_index(), PART_THREADS);
    const struct huffman_build distances =
        get_build(shared, DISTANCE_CODE, (thread_index() - WARP) % PART_THREADS, PART_THREADS);
    if (thread_index() == 0)
        count_required_symbols(shared->codes);
    if (thread_index() < CODES)
        shared->used[thread_index()] = 0;
    for (uint32_t code = 0; thread_index() <= CODE_BITS_MAX && code < CODES; code++)
        shared->length_counts[code][thread_index()] = 0;
    for (uint32_t i = thread_index(); i < SYMBOLS; i += PART_THREADS)
        shared->lengths[i] = 0;
    sync_block();
    huffman_make_keys(&litlens);
    huffman_make_keys(&distances);
    sync_block();
    huffman_sort_symbols(&litlens);
    huffman_sort_symbols(&distances);
    sync_block();
    if (warp_index() <= DISTANCE_CODE) {
        const struct huffman_build own = get_build(shared, warp_index(), lane_index(), WARP);
        huffman_assign_lengths(&own);
        assign_canonical_codes(&own);
    }
    sync_block();
}

/* ---- run-length coding of code lengths ------------------------------------------------------ */

/* The order in which precode lengths are sent, rare ones last (3.2.7). */
DEVICE_TABLE uint8_t precode_order[PRECODE_SYMBOLS] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                       11, 4,  12, 3, 13, 2, 14, 1, 15};

/* Precode symbols beyond the lengths 0 to 15. */
enum { REPEAT_PREVIOUS = 16, REPEAT_ZERO_SHORT = 17, REPEAT_ZERO_LONG = 18 };

DEVICE_FN uint32_t repeat_extra_bits(uint32_t symbol) {
    return symbol < REPEAT_PREVIOUS      ? 0
           : symbol == REPEAT_PREVIOUS   ? 2
           : symbol == REPEAT_ZERO_SHORT ? 3
                                         : 7;
}

/* Code lengths in the order of the header: HLIT + 257 litlens, then HDIST + 1 distances. */
struct length_list {
    const uint8_t *lengths;
    uint32_t litlens, all;
};

DEVICE_FN uint32_t listed_length(const struct length_list *list, uint32_t i) {
    return list->lengths[i < list->litlens ? i : FIRST_DISTANCE + i - list->litlens];
}

/* One more than the last used symbol of a code. By a warp. */
DEVICE_FN uint32_t count_sent_symbols(const struct deflate_shared *shared, uint32_t first,
                                      uint32_t size) {
    uint32_t sent = 0;
    for (uint32_t i = lane_index(); i < size; i += WARP)
        sent = shared->lengths[first + i] > 0 ? i + 1 : sent;
    return warp_max(sent);
}

/* The next item for the `left` remaining lengths of a run: precode symbol | extra << 8. *covered:
 * how many lengths it stands for. */
DEVICE_FN uint32_t next_item(uint32_t length, uint32_t left, bool is_first, uint32_t *covered) {
    uint32_t item = length;
    *covered = 1;
    if (length == 0 && left >= 11) {
        *covered = min_u32(left, 138);
        item = REPEAT_ZERO_LONG | (*covered - 11) << 8;
    } else if (length == 0 && left >= 3) {
        *covered = left;
        item = REPEAT_ZERO_SHORT | (*covered - 3) << 8;
    } else if (length > 0 && !is_first && left >= 3) {
        *covered = min_u32(left, 6);
        item = REPEAT_PREVIOUS | (*covered - 3) << 8;
    }
    return item;
}

/* Lists where runs of equal lengths begin; returns their number. By a warp. */
DEVICE_FN uint32_t list_runs(const struct length_list *list, uint16_t *runs) {
    uint32_t count = 0;
    for (uint32_t base = 0; base < list->all; base += WARP) {
        const uint32_t i = base + lane_index();
        const bool begins =
            i < list->all && (i == 0 || listed_length(list, i) != listed_length(list, i - 1));
        const uint32_t all = warp_ballot(begins);
        if (begins)
            runs[count + count_ones(all & lanes_below())] = (uint16_t)i;
        count += count_ones(all);
    }
    sync_warp();
    return count;
}

/* Lists the items of all runs and counts their symbols for the precode; returns their number. By a
 * warp, one run per lane: first each lane counts its items, then a scan says where they go. */
DEVICE_FN uint32_t list_items(struct deflate_shared *shared, const struct length_list *list,
                              uint16_t *items) {
    uint16_t *runs = shared->v.tree.inner_parents;
    const uint32_t all_runs = list_runs(list, runs);
    uint32_t listed = 0, covered;
    for (uint32_t base = 0; base < all_runs; base += WARP) {
        const uint32_t i = base + lane_index();
        uint32_t length = 0, run = 0, count = 0;
        if (i < all_runs) {
            length = listed_length(list, runs[i]);
            run = (i + 1 < all_runs ? runs[i + 1] : list->all) - runs[i];
        }
        for (uint32_t left = run; left > 0; left -= covered, count++)
            next_item(length, left, left == run, &covered);
        const uint32_t inclusive = warp_scan(count);
        uint32_t position = listed + inclusive - count;
        for (uint32_t left = run; left > 0; left -= covered) {
            const uint32_t item = next_item(length, left, left == run, &covered);
            items[position++] = (uint16_t)item;
            atomic_add(&shared->codes[FIRST_PRECODE + (item & 0xFF)], 1);
        }
        listed += warp_read(inclusive, WARP - 1);
    }
    sync_warp();
    return listed;
}

/* ---- header --------------------------------------------------------------------------------- */

DEVICE_FN void build_precode(struct deflate_shared *shared) {
    const struct huffman_build precode = get_build(shared, PRECODE, lane_index(), WARP);
    huffman_make_keys(&precode);
    sync_warp();
    huffman_sort_symbols(&precode);
    sync_warp();
    huffman_assign_lengths(&precode);
    assign_canonical_codes(&precode);
    sync_warp();
}

/* Up to 32 bits, into words that are zero there. */
DEVICE_FN void put_header_bits(uint32_t *header, uint32_t at, uint32_t bits) {
    const uint64_t shifted = (uint64_t)bits << at % 32;
    atomic_or(&header[at / 32], (uint32_t)shifted);
    if (shifted >> 32)
        atomic_or(&header[at / 32 + 1], (uint32_t)(shifted >> 32));
}

/* Writes the items from bit `at` on, 32 at a time; returns the bit after them. By a warp. */
DEVICE_FN uint32_t write_items(struct deflate_shared *shared, const uint16_t *items, uint32_t count,
                               uint32_t at) {
    for (uint32_t base = 0; base < count; base += WARP) {
        const uint32_t i = base + lane_index();
        uint32_t bits = 0, value = 0;
        if (i < count) {
            const uint32_t symbol = items[i] & 0xFF, code = shared->codes[FIRST_PRECODE + symbol];
            bits = code >> 16;
            value = (code & 0xFFFF) | (uint32_t)(items[i] >> 8) << bits;
            bits += repeat_extra_bits(symbol);
        }
        const uint32_t inclusive = warp_scan(bits);
        if (bits > 0)
            put_header_bits(shared->header, at + inclusive - bits, value);
        at += warp_read(inclusive, WARP - 1);
    }
    return at;
}

/* Makes the header in shared->header, which is zero, and sets header_bits. By a warp. Items and
 * runs use memory of the tree that the literal/length code no longer needs. */
DEVICE_FN void make_block_header(struct deflate_shared *shared, bool is_last) {
    const uint32_t litlens = count_sent_symbols(shared, 0, LITLEN_SYMBOLS);
    const uint32_t distances = count_sent_symbols(shared, FIRST_DISTANCE, DISTANCE_SYMBOLS);
    const struct length_list list = {shared->lengths, litlens, litlens + distances};
    uint16_t *items = shared->v.tree.leaf_parents;
    const uint32_t count = list_items(shared, &list, items);
    build_precode(shared);
    const uint32_t ordered = lane_index() < PRECODE_SYMBOLS
                                 ? shared->lengths[FIRST_PRECODE + precode_order[lane_index()]]
                                 : 0;
    /* Precode lengths up to the last that is not 0; the RFC wants at least 4. There are more than
     * that: a distance code has 5 bits or fewer, and these lengths are sent tenth or later. */
    const uint32_t sent = 32 - leading_zeros(warp_ballot(ordered > 0));
    if (lane_index() == 0)
        put_header_bits(shared->header, 0,
                        is_last | 2 << 1 | (litlens - 257) << 3 | (distances - 1) << 8 |
                            (sent - 4) << 13);
    if (lane_index() < sent)
        put_header_bits(shared->header, 17 + 3 * lane_index(), ordered);
    const uint32_t bits = write_items(shared, items, count, 17 + 3 * sent);
    if (lane_index() == 0)
        shared->header_bits = bits;
}

#endif
