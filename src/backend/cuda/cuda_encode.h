/*
 * What kernels of encoders share: a part of a block in shared memory, a segment for each thread;
 * costs in sixteenths of a bit; and Huffman codes.
 */
#ifndef COGPU_BACKEND_CUDA_CUDA_ENCODE_H
#define COGPU_BACKEND_CUDA_CUDA_ENCODE_H

#include "backend/cuda/simt.h"

/* ---- a part in shared memory ---------------------------------------------------------------- */

enum {
    ENCODE_PART = 32 << 10,
    ENCODE_THREADS = 256,
    SEGMENT = ENCODE_PART / ENCODE_THREADS,
    SEGMENT_WORDS = SEGMENT / 4,
    /* Segments lie a word further apart than they are long: threads meet different banks. */
    PADDED_WORDS = ENCODE_THREADS * (SEGMENT_WORDS + 1)
};

DEVICE_FN uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

DEVICE_FN uint32_t log2_floor(uint32_t value) {
    return 31 - leading_zeros(value);
}

/* Of padded arrays: a byte, a word, and four bytes from any place. */
DEVICE_FN uint8_t *byte_in(const uint32_t *words, uint32_t at) {
    return (uint8_t *)(uintptr_t)words + at + at / SEGMENT * 4;
}

DEVICE_FN uint32_t padded(uint32_t index) {
    return index + index / SEGMENT_WORDS;
}

DEVICE_FN uint32_t word_in(const uint32_t *words, uint32_t index) {
    return words[padded(index)];
}

DEVICE_FN uint32_t four_in(const uint32_t *words, uint32_t at) {
    return funnel_right(word_in(words, at / 4), word_in(words, at / 4 + 1), 8 * (at % 4));
}

/* Bytes of a word at `at` that are the part's; the others are zero. */
DEVICE_FN uint32_t own_bytes(uint32_t word, uint32_t at, uint32_t bytes) {
    return at + 4 <= bytes ? word : at >= bytes ? 0 : word & ((1u << 8 * (bytes - at)) - 1);
}

/* ---- costs ---------------------------------------------------------------------------------- */

enum { BIT = 16, /* what costs are counted in */ COST_MAX = 15 * BIT };

/* In BITs: straight between powers of two, and an arch above that. */
DEVICE_FN uint32_t log2_of(uint32_t value) {
    const uint32_t top = log2_floor(value);
    const uint32_t x = (value << (31 - top) & 0x7FFFFFFF) >> 15; /* of 2^16 */
    const uint32_t arch = (x * (0x10000 - x) >> 16) * 22544 >> 16;
    return top * BIT + ((x + arch) * BIT >> 16);
}

/* What is not seen costs a bit more than what is seen once. */
DEVICE_FN uint32_t cost_of(uint32_t count, uint32_t total) {
    const uint32_t all = log2_of(total | 1);
    return least(count > 0 ? all - log2_of(count) : all + BIT, COST_MAX);
}

/* Bytes that are like those at a distance, up to where they are not: how many, and what the way
 * costs from there on. */
struct run {
    uint32_t length, cost_behind, distance_cost;
};

/* The best of what a byte may begin with. */
struct choice {
    uint32_t cost, length, kind;
};

enum { BYTE_VALUES = 256, COUNT_COPIES = 4 /* so that fewer threads meet */ };

/* Counts bytes of a part that do not go on with a run: in COUNT_COPIES * BYTE_VALUES counts, which
 * are zero at first. */
DEVICE_FN void count_but_runs(const uint32_t *words, uint32_t bytes, uint32_t *copies) {
    uint32_t *counts = copies + warp_index() % COUNT_COPIES * BYTE_VALUES;
    for (uint32_t index = thread_index(); 4 * index < bytes; index += ENCODE_THREADS) {
        const uint32_t word = word_in(words, index);
        const uint32_t before = index > 0 ? word_in(words, index - 1) : ~word;
        const uint64_t both = (uint64_t)word << 32 | before;
        for (uint32_t j = 0; j < 4 && 4 * index + j < bytes; j++) {
            const uint32_t byte = word >> 8 * j & 0xFF;
            if ((both >> (16 + 8 * j) & 0xFFFF) != byte * 0x0101)
                atomic_add(&counts[byte], 1);
        }
    }
}

/* ---- Huffman codes -------------------------------------------------------------------------- */

/* From how often symbols are used to the lengths of their codes, none beyond a limit, and the code
 * is whole. All threads of a making call code_keys, meet, call code_ranks and meet; then one warp
 * calls code_lengths. */
enum { CODE_SYMBOLS_MAX = 512 };

/* A code that is made, and by whom: this thread of so many. All memory is shared, and has room for
 * `size` numbers but where it says otherwise. */
struct code_making {
    uint32_t *counts;    /* two symbols are used, at least; the caller may have codes here later */
    uint8_t *lengths;    /* zero at first, and for what is not used */
    uint32_t *at_length; /* limit + 1: how many codes are so long; zero at first */
    uint32_t *used;      /* one: how many symbols are; zero at first */
    /* Counts with their symbols, up to a multiple of four, aligned to 16 bytes; then the weights of
     * inner nodes. */
    uint32_t *keys;
    uint32_t *weights;            /* of leaves, the lightest first */
    uint16_t *symbols;            /* of these */
    uint16_t *leaf_up, *inner_up; /* nodes above them */
    uint32_t size, limit;
    uint32_t index, threads;
};

/* Counts with their symbols, so that no two are the same; UINT32_MAX for what is not used. */
DEVICE_FN void code_keys(const struct code_making *m) {
    for (uint32_t i = m->index; i < (m->size + 3) / 4 * 4; i += m->threads) {
        const uint32_t count = i < m->size ? m->counts[i] : 0;
        m->keys[i] = count > 0 ? count * CODE_SYMBOLS_MAX + i : UINT32_MAX;
    }
}

/* Puts each symbol in its place: behind all that have a smaller key. */
DEVICE_FN void code_ranks(const struct code_making *m) {
    for (uint32_t i = m->index; i < m->size; i += m->threads) {
        const uint32_t key = m->keys[i];
        uint32_t place = 0;
        if (key == UINT32_MAX)
            continue;
        for (uint32_t k = 0; k < m->size; k += 4) {
            const words4 four = load_words4(m->keys + k);
            place += (uint32_t)(four.x < key) + (four.y < key) + (four.z < key) + (four.w < key);
        }
        m->weights[place] = key / CODE_SYMBOLS_MAX;
        m->symbols[place] = (uint16_t)i;
        atomic_add(m->used, 1);
    }
}

/* Of a node of a row; of one that is not there, more than there is. What may not be there is loaded
 * all the same, and then not taken: where the load had a condition, ptxas 13.0 for sm_90 has been
 * seen to count on before it. */
DEVICE_FN uint32_t code_weight(const uint32_t *row, uint32_t i, uint32_t end) {
    const uint32_t weight = row[i < end ? i : 0];
    return i < end ? weight : UINT32_MAX / 2;
}

/* Of a row of nodes, the lightest first, how many from `first` on are so light. By a warp. */
DEVICE_FN uint32_t code_light_nodes(const uint32_t *row, uint32_t first, uint32_t end,
                                    uint32_t most) {
    uint32_t count = 0, more;
    do {
        const uint32_t weight = code_weight(row, first + count + lane_index(), end);
        more = count_ones(warp_ballot(weight <= most));
        count += more;
    } while (more == WARP);
    return count;
}

/* How many of a row are lighter. */
DEVICE_FN uint32_t code_lighter(const uint32_t *row, uint32_t count, uint32_t weight) {
    uint32_t lighter = 0;
    for (uint32_t step = count > 0 ? 1u << log2_floor(count) : 0; step > 0; step /= 2) {
        const uint32_t last = row[least(lighter + step, count) - 1];
        if (lighter + step <= count && last < weight)
            lighter += step;
    }
    return lighter;
}

/*
 * Joins the two lightest nodes, until one is left; inner nodes come in the order of their weight,
 * so that the lightest is the first of one row or the other. No node that is made from now on is
 * lighter than the two lightest together: all that are no heavier are joined at once, two by two in
 * their order, leaves before inner nodes that weigh the same. One may be left over. The lightest
 * pair doubles with every other round. By a warp.
 */
DEVICE_FN void code_join_nodes(const struct code_making *m, uint32_t leaves) {
    uint32_t *sums = m->keys, leaf = 0, inner = 0, joined;
    for (uint32_t i = lane_index(); i < leaves; i += WARP)
        sums[i] = 0;
    sync_warp();
    for (uint32_t made = 0; made + 1 < leaves; made += joined) {
        const uint32_t first_leaf = code_weight(m->weights, leaf, leaves);
        const uint32_t first_inner = code_weight(sums, inner, made);
        const uint32_t most = least(first_leaf + first_inner,
                                    least(first_leaf + code_weight(m->weights, leaf + 1, leaves),
                                          first_inner + code_weight(sums, inner + 1, made)));
        const uint32_t light_leaves = code_light_nodes(m->weights, leaf, leaves, most);
        const uint32_t light_inner = code_light_nodes(sums, inner, made, most);
        bool leaves_leaf = false, leaves_inner = false;
        joined = (light_leaves + light_inner) / 2;
        sync_warp(); /* what was loaded and not taken may be written now */
        for (uint32_t k = lane_index(); k < light_leaves + light_inner; k += WARP) {
            const bool is_leaf = k < light_leaves;
            const uint32_t i = is_leaf ? leaf + k : inner + k - light_leaves;
            const uint32_t weight = *(is_leaf ? &m->weights[i] : &sums[i]);
            const uint32_t before =
                is_leaf
                    ? k + code_lighter(sums + inner, light_inner, weight)
                    : k - light_leaves + code_lighter(m->weights + leaf, light_leaves, weight + 1);
            if (before / 2 < joined) {
                *(is_leaf ? &m->leaf_up[i] : &m->inner_up[i]) = (uint16_t)(made + before / 2);
                atomic_add(&sums[made + before / 2], weight);
            } else {
                leaves_leaf = is_leaf;
                leaves_inner = !is_leaf;
            }
        }
        leaf += light_leaves - warp_any(leaves_leaf);
        inner += light_inner - warp_any(leaves_inner);
        sync_warp();
    }
}

/* Codes that were longer than the limit have been cut to it, and take more than there is. For each
 * 2^-limit too much, one of them becomes the sister of a shorter one. By one thread. */
DEVICE_FN void code_repair_lengths(uint32_t *at_length, uint32_t limit) {
    uint32_t taken = 0;
    for (uint32_t length = 1; length <= limit; length++)
        taken += at_length[length] << (limit - length);
    for (; taken > 1u << limit; taken--) {
        uint32_t length = limit - 1;
        while (at_length[length] == 0 && length > 1)
            length--;
        at_length[length]--;
        at_length[length + 1] += 2;
        at_length[limit]--;
    }
}

/* How deep each leaf is; how many are how deep; who is. By a warp. */
DEVICE_FN void code_lengths(const struct code_making *m) {
    const uint32_t used = *m->used;
    code_join_nodes(m, used);
    for (uint32_t i = lane_index(); i < used; i += WARP) {
        uint32_t depth = 1;
        for (uint32_t node = m->leaf_up[i]; node + 2 < used && depth < m->limit; depth++)
            node = m->inner_up[node];
        atomic_add(&m->at_length[depth], 1);
    }
    sync_warp();
    if (lane_index() == 0)
        code_repair_lengths(m->at_length, m->limit);
    sync_warp();
    for (uint32_t length = m->limit, first = 0; length > 0; length--) { /* the lightest first */
        const uint32_t count = m->at_length[length];
        for (uint32_t i = lane_index(); i < count; i += WARP)
            m->lengths[m->symbols[first + i]] = (uint8_t)length;
        first += count;
    }
    sync_warp();
}

#endif
