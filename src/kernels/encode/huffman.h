/*
 * Huffman code lengths from symbol counts, limited to max_bits, for a complete code.
 *
 * 1. Sort the used symbols by count (rank sort: each thread counts the smaller keys).
 * 2. Build the tree with two sorted queues, leaves and inner nodes (van Leeuwen's method). One warp
 *    merges many pairs per round instead of one.
 * 3. The depth of a leaf is its code length. Deeper leaves get max_bits, then the Kraft sum
 *    is repaired, as zlib does. (Package-merge would be optimal; codes over the limit are rare.)
 *
 * Example of step 2, counts {1, 1, 1, 1, 2, 5}. The lightest pair weighs 2, so all nodes up to
 * weight 2 are merged in this round, in pairs in sorted order. An odd one waits for the next round:
 *
 *     round   leaves        inner     limit   merged       new inner   left over
 *     1       1 1 1 1 2 5             2       1+1, 1+1     2, 2        leaf 2
 *     2       2 5           2 2       4       2+2          4           inner 2
 *     3       5             2 4       6       2+4          6           leaf 5
 *     4       5             6         11      5+6          11: root
 *
 * The result is that of one pair at a time: no node made later is lighter than the lightest pair.
 * The limit at least doubles every second round, so rounds are about twice the log2 of the total.
 *
 * Calls, by the `threads` threads of a build: huffman_make_keys, barrier, huffman_sort_symbols,
 * barrier; then one warp calls huffman_assign_lengths.
 */
#ifndef COGPU_KERNELS_ENCODE_HUFFMAN_H
#define COGPU_KERNELS_ENCODE_HUFFMAN_H

#include "kernels/encode/common.h"

enum { HUFFMAN_SYMBOLS_MAX = 512 };

/* A code to build, and the index of this thread among those that build it. All memory is shared
 * memory. Arrays have `size` elements if not stated otherwise. */
struct huffman_build {
    uint32_t *counts;        /* at least two symbols are used */
    uint8_t *lengths;        /* result; zero on entry, and for unused symbols */
    uint32_t *length_counts; /* result: codes of each length, 0 to max_bits; zero on entry */
    uint32_t *used;          /* result: number of used symbols; zero on entry */
    /* Sort keys: count * HUFFMAN_SYMBOLS_MAX + symbol. `size` is rounded up to a multiple of four,
     * aligned to 16 bytes. Later the weights of inner nodes. */
    uint32_t *keys;
    uint32_t *weights;                      /* of leaves, ascending */
    uint16_t *symbols;                      /* of these leaves */
    uint16_t *leaf_parents, *inner_parents; /* inner nodes above leaves and inner nodes */
    uint32_t size, max_bits;
    uint32_t index, threads;
};

/* The symbol in the low bits makes keys unique: a tie in counts is decided by the symbol. Unused
 * symbols have UINT32_MAX. */
DEVICE_FN void huffman_make_keys(const struct huffman_build *b) {
    for (uint32_t i = b->index; i < (b->size + 3) / 4 * 4; i += b->threads) {
        const uint32_t count = i < b->size ? b->counts[i] : 0;
        b->keys[i] = count > 0 ? count * HUFFMAN_SYMBOLS_MAX + i : UINT32_MAX;
    }
}

/* Rank sort: the position of a symbol is the number of smaller keys. */
DEVICE_FN void huffman_sort_symbols(const struct huffman_build *b) {
    for (uint32_t i = b->index; i < b->size; i += b->threads) {
        const uint32_t key = b->keys[i];
        uint32_t rank = 0;
        if (key == UINT32_MAX)
            continue;
        for (uint32_t k = 0; k < b->size; k += 4) {
            const words4 four = load_words4(b->keys + k);
            rank += (uint32_t)(four.x < key) + (four.y < key) + (four.z < key) + (four.w < key);
        }
        b->weights[rank] = key / HUFFMAN_SYMBOLS_MAX;
        b->symbols[rank] = (uint16_t)i;
        atomic_add(b->used, 1);
    }
}

/* The weight of a node of a queue, or more than any sum where the queue has ended. The load is
 * unconditional on purpose: with a conditional load, ptxas 13.0 for sm_90 has been seen to move
 * code that depends on it before the condition. */
DEVICE_FN uint32_t huffman_weight(const uint32_t *queue, uint32_t i, uint32_t end) {
    const uint32_t weight = queue[i < end ? i : 0];
    return i < end ? weight : UINT32_MAX / 2;
}

/* How many nodes of a queue, from `first` on, weigh at most `limit`. By a warp. */
DEVICE_FN uint32_t huffman_count_light(const uint32_t *queue, uint32_t first, uint32_t end,
                                       uint32_t limit) {
    uint32_t count = 0, more;
    do {
        const uint32_t weight = huffman_weight(queue, first + count + lane_index(), end);
        more = count_ones(warp_ballot(weight <= limit));
        count += more;
    } while (more == WARP);
    return count;
}

/* How many of `count` sorted weights are below `weight`: a binary search. */
DEVICE_FN uint32_t huffman_count_below(const uint32_t *queue, uint32_t count, uint32_t weight) {
    uint32_t below = 0;
    for (uint32_t step = count > 0 ? 1u << log2_floor(count) : 0; step > 0; step /= 2) {
        const uint32_t last = queue[min_u32(below + step, count) - 1];
        if (below + step <= count && last < weight)
            below += step;
    }
    return below;
}

/* The weight of the lightest pair of the two queues: two leaves, two inner nodes or one of each. */
DEVICE_FN uint32_t huffman_lightest_pair(const uint32_t *leaves, uint32_t leaf, uint32_t leaf_end,
                                         const uint32_t *inners, uint32_t inner,
                                         uint32_t inner_end) {
    const uint32_t first_leaf = huffman_weight(leaves, leaf, leaf_end);
    const uint32_t first_inner = huffman_weight(inners, inner, inner_end);
    return min_u32(first_leaf + first_inner,
                   min_u32(first_leaf + huffman_weight(leaves, leaf + 1, leaf_end),
                           first_inner + huffman_weight(inners, inner + 1, inner_end)));
}

/*
 * Builds the tree in rounds, as drawn above. In a round lanes share the light nodes. The position
 * of a node in the merged order is its position in its own queue plus the nodes of the other queue
 * before it; leaves come before inner nodes of the same weight. Positions 2p and 2p + 1 become
 * inner node p of this round. At most `leaves` - 1 rounds, since each merges a pair. By a warp.
 */
DEVICE_FN void huffman_merge_nodes(const struct huffman_build *b, uint32_t leaves) {
    uint32_t *sums = b->keys, leaf = 0, inner = 0, merged;
    for (uint32_t i = lane_index(); i < leaves; i += WARP)
        sums[i] = 0;
    sync_warp();
    for (uint32_t made = 0; made + 1 < leaves; made += merged) {
        const uint32_t limit = huffman_lightest_pair(b->weights, leaf, leaves, sums, inner, made);
        const uint32_t light_leaves = huffman_count_light(b->weights, leaf, leaves, limit);
        const uint32_t light_inner = huffman_count_light(sums, inner, made, limit);
        bool leaf_left_over = false, inner_left_over = false;
        merged = (light_leaves + light_inner) / 2;
        sync_warp(); /* the unconditional loads above may read what is written below */
        for (uint32_t k = lane_index(); k < light_leaves + light_inner; k += WARP) {
            const bool is_leaf = k < light_leaves;
            const uint32_t i = is_leaf ? leaf + k : inner + k - light_leaves;
            const uint32_t weight = *(is_leaf ? &b->weights[i] : &sums[i]);
            const uint32_t position =
                is_leaf ? k + huffman_count_below(sums + inner, light_inner, weight)
                        : k - light_leaves +
                              huffman_count_below(b->weights + leaf, light_leaves, weight + 1);
            if (position / 2 < merged) {
                *(is_leaf ? &b->leaf_parents[i] : &b->inner_parents[i]) =
                    (uint16_t)(made + position / 2);
                atomic_add(&sums[made + position / 2], weight);
            } else {
                leaf_left_over = is_leaf;
                inner_left_over = !is_leaf;
            }
        }
        leaf += light_leaves - warp_any(leaf_left_over);
        inner += light_inner - warp_any(inner_left_over);
        sync_warp();
    }
}

/*
 * Restores Kraft's equality, sum of 2^-length = 1, after lengths were limited to max_bits. In units
 * of 2^-max_bits, each step lowers the sum by one: it moves one code of the longest length below a
 * shorter one, so that the shorter leaf becomes an inner node with two leaves.
 *
 *     length    1 2 3 (max)                 length    1 2 3
 *     codes     1 1 3    sum 4+2+3 = 9      codes     1 0 4    sum 4+0+4 = 8 = 2^3
 *
 * By one thread.
 */
DEVICE_FN void huffman_repair_lengths(uint32_t *length_counts, uint32_t max_bits) {
    uint32_t sum = 0;
    for (uint32_t length = 1; length <= max_bits; length++)
        sum += length_counts[length] << (max_bits - length);
    for (; sum > 1u << max_bits; sum--) {
        uint32_t length = max_bits - 1;
        while (length_counts[length] == 0 && length > 1)
            length--;
        length_counts[length]--;
        length_counts[length + 1] += 2;
        length_counts[max_bits]--;
    }
}

/* Counts leaves by depth, repairs the counts, then gives the longest codes to the rarest symbols.
 * By a warp. */
DEVICE_FN void huffman_assign_lengths(const struct huffman_build *b) {
    const uint32_t used = *b->used;
    huffman_merge_nodes(b, used);
    for (uint32_t i = lane_index(); i < used; i += WARP) {
        uint32_t depth = 1;
        for (uint32_t node = b->leaf_parents[i]; node + 2 < used && depth < b->max_bits; depth++)
            node = b->inner_parents[node];
        atomic_add(&b->length_counts[depth], 1);
    }
    sync_warp();
    if (lane_index() == 0)
        huffman_repair_lengths(b->length_counts, b->max_bits);
    sync_warp();
    for (uint32_t length = b->max_bits, first = 0; length > 0; length--) { /* rarest first */
        const uint32_t count = b->length_counts[length];
        for (uint32_t i = lane_index(); i < count; i += WARP)
            b->lengths[b->symbols[first + i]] = (uint8_t)length;
        first += count;
    }
    sync_warp();
}

#endif
