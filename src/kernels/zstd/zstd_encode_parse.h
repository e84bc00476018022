/*
 * Costs and optimal parse (see encode/parse.h) of a part for Zstandard.
 *
 * A sequence is a run of literals, then a match. It costs the code of its literals length, its
 * match length and its offset. The parse goes backwards, so it meets the match first and charges
 * the literals length as it grows: a match begins with the cost of zero literals before it, and
 * each literal put before it adds the difference LL[n + 1] - LL[n].
 *
 * Repeat offsets (3.1.1.5) depend on what comes before, which a backward parse does not know. So a
 * raster distance has one average cost, and a searched distance the cost of a new offset.
 */
#ifndef COGPU_KERNELS_ZSTD_ZSTD_ENCODE_PARSE_H
#define COGPU_KERNELS_ZSTD_ZSTD_ENCODE_PARSE_H

#include "kernels/zstd/zstd_encode_search.h"

enum { TOO_SHORT_COST = 0x8000 }; /* of matches below MATCH_MIN: more than any path */

/* ---- costs ---------------------------------------------------------------------------------- */

/* First estimate: entropy of the bytes outside runs, plus 1/8 bit, at most 9 bits. */
DEVICE_FN void guess_literal_costs(struct zstd_encode_shared *shared,
                                   const struct encode_part *part) {
    uint32_t *histograms = shared->u.parse.v.histograms;
    const uint32_t i = thread_index();
    uint32_t total;
    for (uint32_t copy = 0; copy < HISTOGRAM_COPIES; copy++)
        histograms[copy * BYTE_VALUES + i] = 0;
    sync_block();
    count_bytes_outside_runs(part_words(shared), part->bytes, histograms);
    sync_block();
    const uint32_t count = sum_histograms(histograms, i);
    block_scan(shared->warp_sums, count, &total);
    shared->literal_costs[i] = (uint8_t)min_u32(symbol_cost(count, total) + 2, 9 * BIT_COST);
}

/* First estimate: typical code lengths in rasters, measured, in sixteenths of a bit. With a search
 * there are more offsets, so raster distances are less often among the repeat offsets. */
DEVICE_FN void guess_sequence_costs(struct zstd_encode_shared *shared, bool is_searched) {
    const uint32_t i = thread_index();
    if (i <= SEGMENT_BYTES) {
        const uint32_t code = is_searched ? min_u32(16 + 14 * i, 84) : min_u32(36 + 6 * i, 90);
        shared->literals_length_costs[i] =
            (uint16_t)(code + BIT_COST * literals_length_symbol(i).extra_bits);
    }
    if (i < MATCH_MIN)
        shared->match_length_costs[i] = TOO_SHORT_COST;
    if (i >= MATCH_MIN && i <= SEGMENT_BYTES) {
        const uint32_t more = i - MATCH_MIN;
        const uint32_t code = more == 0     ? 72
                              : is_searched ? min_u32(8 + 12 * more, 100)
                                            : min_u32(40 + 8 * more, 104);
        shared->match_length_costs[i] =
            (uint16_t)(code + BIT_COST * match_length_symbol(i).extra_bits);
    }
    if (i < 32)
        shared->offset_costs[i] = (uint16_t)(44 + BIT_COST * i);
    if (i < RASTER_DISTANCES)
        shared->distance_costs[i] = (uint16_t)(!is_searched ? 28 : i == PREVIOUS_BYTE ? 70 : 170);
    sync_block();
}

/* The average cost of a raster distance over its uses in the previous pass: as Offset_Value 1, as
 * Offset_Value 2 or 3 (one extra bit), and written out. */
DEVICE_FN uint32_t estimate_distance_cost(const struct zstd_encode_shared *shared,
                                          uint32_t distance, uint32_t index, uint32_t sequences) {
    const uint32_t *uses = shared->distance_uses[index];
    const uint32_t *counts = shared->u.parse.w.tables[OFFSET].counts;
    const uint32_t all = uses[0] + uses[1] + uses[2], code = distance_symbol(distance).number;
    if (all == 0)
        return shared->distance_costs[index];
    return (uses[0] * symbol_cost(counts[0], sequences) +
            uses[1] * (symbol_cost(counts[1], sequences) + BIT_COST) +
            uses[2] * (symbol_cost(counts[code], sequences) + BIT_COST * code)) /
           all;
}

/* Costs from the symbol counts of a previous pass. A literal has at most HUFFMAN_BITS_MAX bits. */
DEVICE_FN void estimate_costs(struct zstd_encode_shared *shared, const struct encode_part *part,
                              uint32_t literals, uint32_t sequences) {
    const uint32_t i = thread_index();
    const struct fse_table *tables = shared->u.parse.w.tables;
    const uint32_t byte = min_u32(symbol_cost(shared->literal_counts[i], literals), 11 * BIT_COST);
    uint32_t literals_length = 0, match_length = TOO_SHORT_COST, offset = 0, distance = 0;
    if (i <= SEGMENT_BYTES) {
        const struct coded_value symbol = literals_length_symbol(i);
        literals_length = symbol_cost(tables[LITERALS_LENGTH].counts[symbol.number], sequences) +
                          BIT_COST * symbol.extra_bits;
    }
    if (i >= MATCH_MIN && i <= SEGMENT_BYTES) {
        const struct coded_value symbol = match_length_symbol(i);
        match_length = symbol_cost(tables[MATCH_LENGTH].counts[symbol.number], sequences) +
                       BIT_COST * symbol.extra_bits;
    }
    if (i < 32)
        offset = symbol_cost(tables[OFFSET].counts[i], sequences) + BIT_COST * i;
    if (i < RASTER_DISTANCES)
        distance = estimate_distance_cost(shared, part->distances[i], i, sequences);
    sync_block(); /* all have read the old costs and the counts, which parsing overwrites */
    shared->literal_costs[i] = (uint8_t)byte;
    if (i <= SEGMENT_BYTES) {
        shared->literals_length_costs[i] = (uint16_t)literals_length;
        shared->match_length_costs[i] = (uint16_t)match_length;
    }
    if (i < 32)
        shared->offset_costs[i] = (uint16_t)offset;
    if (i < RASTER_DISTANCES)
        shared->distance_costs[i] = (uint16_t)distance;
    sync_block();
}

/* ---- parse ---------------------------------------------------------------------------------- */

/* A word of the part, or of the TIFF block before it in global memory; 0 before the block. */
DEVICE_FN uint32_t load_word(const uint32_t *words, const struct encode_part *part, int32_t index) {
    if (index >= 0)
        return padded_word(words, (uint32_t)index);
    return -4 * index <= (int32_t)part->history ? load_u32_aligned(part->in + 4 * index) : 0;
}

/* A word XORed with the word `distance` bytes before it: a zero byte is an equal byte. Bytes before
 * the TIFF block count as different. */
DEVICE_FN uint32_t compare_at_distance(const uint32_t *words, const struct encode_part *part,
                                       uint32_t index, uint32_t distance) {
    const int32_t from = (int32_t)(4 * index) - (int32_t)distance;
    const int32_t outside = -(int32_t)part->history - from;
    if (distance == 0 || outside >= 4)
        return ~0u;
    const int32_t low = from >> 2;
    const uint32_t before =
        funnel_right(load_word(words, part, low), load_word(words, part, low + 1), 8 * (from & 3));
    return (padded_word(words, index) ^ before) | (outside > 0 ? (1u << 8 * outside) - 1 : 0);
}

/* This thread's entry of the cost ring: rings of neighbours are interleaved, for the banks. */
DEVICE_FN uint16_t *ring_cost(struct zstd_encode_shared *shared, uint32_t at) {
    return &shared->u.parse.w.cost_rings[at % COST_RING * PART_THREADS + thread_index()];
}

DEVICE_FN struct parse_state begin_parse(struct zstd_encode_shared *shared) {
    struct parse_state state = {{{0, 0, 0}}, {0, 0, 0}, 0, 0, 0, 0};
    state.cost = shared->literals_length_costs[0];
    UNROLL
    for (uint32_t k = 0; k < RASTER_DISTANCES; k++) {
        state.candidates[k].length = state.candidates[k].cost_after = 0;
        state.candidates[k].distance_cost = shared->distance_costs[k];
    }
    return state;
}

/* A literal, which makes the run of literals before the next match longer by one. */
DEVICE_FN struct choice choose_literal(const struct zstd_encode_shared *shared,
                                       const struct parse_state *state, uint32_t byte) {
    struct choice choice = {state->cost, 0, 0};
    choice.cost += shared->literal_costs[byte];
    choice.cost += shared->literals_length_costs[state->literals + 1];
    choice.cost -= shared->literals_length_costs[state->literals];
    return choice;
}

/* The searched match at byte `at`, newly found, or that of the next byte extended by one. */
DEVICE_FN void consider_searched(struct zstd_encode_shared *shared, struct parse_state *state,
                                 struct choice *choice, uint32_t match, uint32_t at, uint32_t end) {
    struct candidate *searched = &state->searched;
    const uint32_t distance = match_distance(match);
    if (extend_searched(searched, &state->searched_distance, distance)) {
        searched->length = min_u32(match_length(match), end - at);
        searched->cost_after = *ring_cost(shared, at + searched->length);
        searched->distance_cost = shared->offset_costs[distance_symbol(distance).number];
    }
    consider_candidate(
        choice, searched,
        shared->match_length_costs[searched->length] + shared->literals_length_costs[0], SEARCHED);
    *ring_cost(shared, at) = (uint16_t)choice->cost;
}

/* Parses the segment of each thread. `matches` come from the search; NULL: raster distances only.
 * Returns the cost of the whole part. */
DEVICE_FN uint32_t parse_segments(struct zstd_encode_shared *shared, const struct encode_part *part,
                                  const uint32_t *matches) {
    const uint32_t begin = segment_begin(), end = segment_end(part);
    struct parse_state state = begin_parse(shared);
    if (matches && begin < end)
        *ring_cost(shared, end) = (uint16_t)state.cost;
    for (uint32_t back = 0; back < SEGMENT_WORDS; back++) {
        const uint32_t index = begin / 4 + SEGMENT_WORDS - 1 - back;
        if (4 * index >= end)
            continue;
        const uint32_t word = padded_word(part_words(shared), index);
        /* Bytes past the end are literals; every path has them, so they change no choice. */
        const uint32_t past_end = mask_past_end(4 * index, end);
        uint32_t different[RASTER_DISTANCES], packed = 0;
        words4 loaded = {0, 0, 0, 0};
        if (matches)
            loaded = load_words4(matches + 4 * index);
        const uint32_t found[4] = {loaded.x, loaded.y, loaded.z, loaded.w};
        UNROLL
        for (uint32_t k = 0; k < RASTER_DISTANCES; k++)
            different[k] =
                compare_at_distance(part_words(shared), part, index, part->distances[k]) | past_end;
        UNROLL
        for (uint32_t j = 4; j-- > 0;) {
            const uint32_t at = 4 * index + j;
            struct choice choice = choose_literal(shared, &state, word >> 8 * j & 0xFF);
            consider_raster_candidates(&state, &choice, different, j, shared->match_length_costs,
                                       shared->literals_length_costs[0]);
            if (matches)
                consider_searched(shared, &state, &choice, found[j], at, end);
            packed |= accept_choice(&state, &choice, at) << 8 * j;
        }
        shared->u.parse.choices[padded_index(index)] = packed;
        store_sources(shared->u.parse.v.sources, &state, 4 * index);
    }
    uint32_t total;
    block_scan(shared->warp_sums, state.cost, &total);
    return total;
}

/*
 * First parse; returns whether it uses the searched matches. SEARCH_MAYBE parses without them, then
 * with them. Unless they save 3 %, it parses without them once more: searched offsets push raster
 * distances out of the repeat offsets, which the costs do not show.
 */
DEVICE_FN bool parse_first(struct zstd_encode_shared *shared, const struct encode_part *part,
                           const uint32_t *matches, enum search_gain gain) {
    uint32_t cost_without = 0;
    bool is_searched = false;
    guess_literal_costs(shared, part);
    for (uint32_t turn = gain == SEARCH_SURELY; turn < 3; turn++) {
        is_searched = turn == 1;
        guess_sequence_costs(shared, is_searched);
        const uint32_t cost = parse_segments(shared, part, is_searched ? matches : NULL);
        if (gain != SEARCH_MAYBE || (turn == 1 && cost + cost / 32 < cost_without))
            break;
        cost_without = cost;
    }
    return is_searched;
}

#endif
