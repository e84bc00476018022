/*
 * The Huffman code of literals and its tree description (RFC 8878, 4.2.1). By one warp, while three
 * others build the FSE tables of sequences.
 *
 * The tree is described by weights: weight = longest length + 1 - length, 0 for unused bytes. The
 * weight of the last used byte is implied, as the code is complete. Two forms:
 *
 *     first byte < 128    FSE: compressed size | FSE table description | two interleaved states
 *     first byte >= 128   direct: 127 + number of weights | 4 bits per weight, the first highest
 *
 * Example: codes of length 1, 2, 2 for bytes 0, 1, 2. Longest 2, weights 2, 1, 1; sent are 2 and 1:
 * bytes 129 (127 + 2), 0x21.
 */
#ifndef COGPU_KERNELS_ZSTD_ZSTD_ENCODE_HUFFMAN_H
#define COGPU_KERNELS_ZSTD_ZSTD_ENCODE_HUFFMAN_H

#include "kernels/zstd/zstd_encode_fse.h"

/* Limits of the first byte: compressed sizes are below 128, and 255 - 127 weights are written
 * directly at most. */
enum { DIRECT_HEADER_BASE = 127, FSE_WEIGHTS_BYTES_END = 128, DIRECT_WEIGHTS_MAX = 128 };

DEVICE_FN struct huffman_build get_literals_build(struct zstd_encode_shared *shared) {
    struct zstd_tree *tree = &shared->u.parse.v.tree;
    const struct huffman_build build = {shared->literal_counts,
                                        shared->lengths,
                                        shared->length_counts,
                                        &shared->used,
                                        tree->keys,
                                        tree->weights,
                                        tree->symbols,
                                        tree->leaf_parents,
                                        tree->inner_parents,
                                        BYTE_VALUES,
                                        HUFFMAN_BITS_MAX,
                                        thread_index(),
                                        PART_THREADS};
    return build;
}

/*
 * Canonical codes (4.2.1.3): the longest codes come first, from 0 on, then by byte value. Lane k
 * holds the next code of length k. 32 bytes at a time: a code is the next one of its length plus
 * the lanes below with that length.
 */
DEVICE_FN void assign_literal_codes(struct zstd_encode_shared *shared) {
    const uint32_t lane = lane_index(), below = (1u << lane) - 1;
    uint32_t next = 0;
    for (uint32_t longer = HUFFMAN_BITS_MAX; longer > lane; longer--)
        next = (next + shared->length_counts[longer]) >> 1;
    for (uint32_t i = lane; i < BYTE_VALUES; i += WARP) {
        const uint32_t length = shared->lengths[i], same = warp_match(length);
        const uint32_t code = warp_read(next, length) + count_ones(same & below);
        shared->literal_codes[i] = length > 0 ? code | length << 16 : 0;
        uint32_t used = 0;
        for (uint32_t k = 1; k <= HUFFMAN_BITS_MAX; k++) {
            const uint32_t count = count_ones(warp_ballot(length == k));
            used = lane == k ? count : used;
        }
        next += used;
    }
}

/* ---- tree description ----------------------------------------------------------------------- */

/* Fills `weights` and counts them in the FSE table. Returns how many are sent: all before the last
 * used byte. Clears the memory of the description. */
DEVICE_FN uint32_t make_weights(struct zstd_encode_shared *shared, struct fse_table *table,
                                uint8_t *weights) {
    const uint32_t lane = lane_index();
    const uint32_t longest =
        warp_max(lane <= HUFFMAN_BITS_MAX && shared->length_counts[lane] > 0 ? lane : 0);
    uint32_t count = 0;
    for (uint32_t i = lane; i < FSE_SYMBOLS; i += WARP)
        table->counts[i] = 0;
    for (uint32_t i = lane; i < DESCRIPTION_WORDS; i += WARP)
        shared->tree_description[i] = 0;
    for (uint32_t i = lane; i < BYTE_VALUES; i += WARP) {
        weights[i] = (uint8_t)(shared->lengths[i] > 0 ? longest + 1 - shared->lengths[i] : 0);
        count = weights[i] > 0 ? i : count;
    }
    count = warp_max(count);
    sync_warp();
    for (uint32_t i = lane; i < count; i += WARP)
        atomic_add(&table->counts[weights[i]], 1);
    sync_warp();
    return count;
}

/* Two states take turns (4.2.1.2): lane 0 encodes weights 0, 2, 4 ..., lane 1 the others, each from
 * its last weight on. Returns the final states of both lanes in *even and *odd. */
DEVICE_FN void encode_weight_states(struct zstd_encode_shared *shared,
                                    const struct fse_table *table, const uint8_t *weights,
                                    uint32_t count, uint32_t *even, uint32_t *odd) {
    uint32_t state = 0;
    if (lane_index() < 2) {
        const uint32_t last = count - 1 - (count - 1 - lane_index()) % 2;
        state = encode_states(table, weights, shared->weight_states,
                              initial_state(table, weights[last]), lane_index(), last, 2) -
                (1u << table->accuracy_log);
    }
    sync_warp();
    *even = warp_read(state, 0);
    *odd = warp_read(state, 1);
}

/* Weights of one lane, and where their bits are in the stream. */
struct weight_range {
    uint32_t begin, end;
    uint32_t bits_before; /* of the weights of lower lanes */
};

/* The last two weights have no bits of their own, so `count` - 2 are shared out. */
DEVICE_FN struct weight_range measure_weights(const struct zstd_encode_shared *shared,
                                              const struct fse_table *table, const uint8_t *weights,
                                              uint32_t count, uint32_t *all_bits) {
    const uint32_t each = (count - 2 + WARP - 1) / WARP;
    struct weight_range range;
    uint32_t bits = 0;
    range.begin = min_u32(lane_index() * each, count - 2);
    range.end = min_u32(range.begin + each, count - 2);
    for (uint32_t i = range.begin; i < range.end; i++)
        bits += state_bits(table, weights[i], shared->weight_states[i]);
    const uint32_t inclusive = warp_scan(bits);
    range.bits_before = inclusive - bits;
    *all_bits = warp_read(inclusive, WARP - 1);
    return range;
}

/* Writes FSE-coded weights (4.2.1.2), unless they have 128 bytes or more. Returns their bytes. */
DEVICE_FN uint32_t write_fse_weights(struct zstd_encode_shared *shared,
                                     const struct fse_table *table, const uint8_t *weights,
                                     uint32_t count) {
    uint8_t *out = (uint8_t *)shared->tree_description;
    uint32_t even, odd, weight_bits;
    encode_weight_states(shared, table, weights, count, &even, &odd);
    const struct weight_range range = measure_weights(shared, table, weights, count, &weight_bits);
    const uint32_t log = table->accuracy_log, all = weight_bits + 2 * log + 1;
    const uint32_t top = 8 * (1 + table->description_bytes) + all;
    const uint32_t bytes = table->description_bytes + (all + 7) / 8;
    if (bytes >= FSE_WEIGHTS_BYTES_END)
        return bytes;
    if (lane_index() == 0) {
        out[0] = (uint8_t)bytes;
        for (uint32_t i = 0; i < table->description_bytes; i++)
            out[1 + i] = ((const uint8_t *)table->description)[i];
    }
    sync_warp();
    if (lane_index() == 0) {
        struct backward_writer w = write_below(shared->tree_description, top);
        put_backward(&w, 1, 1);
        put_backward(&w, even, log);
        put_backward(&w, odd, log);
        flush_backward(&w);
    }
    if (range.begin < range.end) {
        struct backward_writer w =
            write_below(shared->tree_description, top - 1 - 2 * log - range.bits_before);
        for (uint32_t i = range.begin; i < range.end; i++)
            put_state(&w, table, weights[i], shared->weight_states[i]);
        flush_backward(&w);
    }
    return bytes;
}

/* Writes weights of 4 bits (4.2.1.1). Returns their bytes. */
DEVICE_FN uint32_t write_direct_weights(struct zstd_encode_shared *shared, const uint8_t *weights,
                                        uint32_t count) {
    uint8_t *out = (uint8_t *)shared->tree_description;
    const uint32_t bytes = (count + 1) / 2;
    for (uint32_t i = lane_index(); i < bytes; i += WARP)
        out[1 + i] = (uint8_t)(weights[2 * i] << 4 | (2 * i + 1 < count ? weights[2 * i + 1] : 0));
    if (lane_index() == 0)
        out[0] = (uint8_t)(DIRECT_HEADER_BASE + count);
    return bytes;
}

/* Sets tree_description and tree_description_bytes; UINT32_MAX where neither form fits, and the
 * literals are not compressed. */
DEVICE_FN void write_tree_description(struct zstd_encode_shared *shared) {
    struct fse_table *table = &shared->u.parse.w.tables[HUFFMAN_WEIGHTS];
    uint8_t *weights = (uint8_t *)shared->u.parse.v.tree.symbols; /* no longer needed */
    const uint32_t count = make_weights(shared, table, weights);
    uint32_t bytes = UINT32_MAX;
    build_fse_table(table, HUFFMAN_WEIGHTS);
    if (count > 2 && table->mode == FSE_COMPRESSED_MODE)
        bytes = write_fse_weights(shared, table, weights, count);
    if (bytes >= FSE_WEIGHTS_BYTES_END && count <= DIRECT_WEIGHTS_MAX)
        bytes = write_direct_weights(shared, weights, count);
    if (lane_index() == 0)
        shared->tree_description_bytes = bytes < FSE_WEIGHTS_BYTES_END ? 1 + bytes : UINT32_MAX;
    sync_warp();
}

#endif
