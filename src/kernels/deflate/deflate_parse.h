/*
 * Costs, optimal parse (see encode/parse.h) and symbol counts of a part for DEFLATE.
 *
 * Each thread parses its segment backwards into choices, then walks the chosen path forwards and
 * counts its symbols with atomics. The walk stores the distance of a match in the two choice bytes
 * after its first: a match has three bytes or more, and the path does not visit those two.
 *
 *     bytes      t   h   e   r   e   a   t   h   e   r   e
 *     choices    0   0   0   0   0   0   3   6   0   .   .        match of 5: 5 - 2 = 3, distance 6
 *                literals            |   |  low, high byte of the distance
 */
#ifndef COGPU_KERNELS_DEFLATE_DEFLATE_PARSE_H
#define COGPU_KERNELS_DEFLATE_DEFLATE_PARSE_H

#include "kernels/deflate/deflate_search.h"

enum {
    TOO_SHORT_COST = UINT16_MAX, /* of matches below MATCH_MIN: more than 128 literals of 15 bits */
    /* Words at the end of each segment that costs are estimated from: a quarter of the part serves
     * as well as all of it, at a quarter of the time. */
    ESTIMATE_WORDS = SEGMENT_WORDS / 4
};

/* ---- costs ---------------------------------------------------------------------------------- */

/* First estimate. Literals: entropy of the bytes outside runs, plus 1/8 bit since matches take
 * symbols of the same code. Lengths and distances: typical code lengths in rasters. */
DEVICE_FN void guess_costs(struct deflate_shared *shared, const struct encode_part *part) {
    const uint32_t i = thread_index();
    count_bytes_outside_runs(byte_row(shared), part->bytes, shared->v.histograms);
    sync_block();
    const uint32_t count = sum_histograms(shared->v.histograms, i);
    const uint32_t total = block_sum(shared->warp_sums, count);
    shared->literal_costs[i] = (uint8_t)min_u32(symbol_cost(count, total) + 2, SYMBOL_COST_MAX);
    if (i < MATCH_MIN)
        shared->length_costs[i] = TOO_SHORT_COST;
    else if (i <= SEGMENT_BYTES) {
        const struct coded_value length = length_symbol(i);
        const uint32_t code = length.number < FIRST_LENGTH + 8 ? 88 : 112; /* 5.5 and 7 bits */
        shared->length_costs[i] = (uint16_t)(code + BIT_COST * length.extra_bits);
    }
    if (i < DISTANCE_SYMBOLS) {
        const uint32_t code = i == 0 ? 48 : i < 4 ? 56 : 72; /* 3, 3.5 and 4.5 bits */
        shared->distance_costs[i] = (uint16_t)(code + BIT_COST * distance_extra_bits(i));
    }
    sync_block();
}

/* Costs from the symbol counts of a previous pass. */
DEVICE_FN void estimate_costs(struct deflate_shared *shared) {
    const uint32_t i = thread_index(), *counts = shared->codes;
    const bool is_distance = i < DISTANCE_SYMBOLS;
    const uint32_t litlens =
        block_sum(shared->warp_sums, counts[i] + (i + 256 < FIRST_DISTANCE ? counts[256 + i] : 0));
    const uint32_t distances =
        block_sum(shared->warp_sums, is_distance ? counts[FIRST_DISTANCE + i] : 0);
    shared->literal_costs[i] = (uint8_t)symbol_cost(counts[i], litlens);
    if (i >= MATCH_MIN && i <= SEGMENT_BYTES) {
        const struct coded_value length = length_symbol(i);
        const uint32_t code = symbol_cost(counts[length.number], litlens);
        shared->length_costs[i] = (uint16_t)(code + BIT_COST * length.extra_bits);
    }
    if (is_distance) {
        const uint32_t code = symbol_cost(counts[FIRST_DISTANCE + i], distances);
        shared->distance_costs[i] = (uint16_t)(code + BIT_COST * distance_extra_bits(i));
    }
    sync_block();
}

DEVICE_FN uint32_t distance_cost(const struct deflate_shared *shared, uint32_t distance) {
    return shared->distance_costs[distance_symbol(distance).number - FIRST_DISTANCE];
}

/* ---- parse ---------------------------------------------------------------------------------- */

/* A word XORed with the word `distance` bytes before it: a zero byte is an equal byte. Bytes before
 * the part count as different. */
DEVICE_FN uint32_t compare_at_distance(const uint32_t *words, uint32_t index, uint32_t distance) {
    const uint32_t from = 4 * index + 4 - distance; /* plus 4, to stay positive */
    if (distance == 0 || 4 * index + 3 < distance)
        return ~0u;
    const uint32_t low = from >= 4 ? padded_word(words, from / 4 - 1) : 0;
    const uint32_t before = funnel_right(low, padded_word(words, from / 4), 8 * (from % 4));
    const uint32_t outside = from >= 4 ? 0 : (1u << 8 * (4 - from)) - 1;
    return (padded_word(words, index) ^ before) | outside;
}

DEVICE_FN struct parse_state begin_parse(const struct deflate_shared *shared,
                                         const struct encode_part *part) {
    struct parse_state state = {{{0, 0, 0}}, {0, 0, 0}, 0, 0, 0, 0};
    UNROLL
    for (uint32_t k = 0; k < RASTER_DISTANCES; k++) {
        const uint32_t distance = part->distances[k];
        state.candidates[k].length = state.candidates[k].cost_after = 0;
        state.candidates[k].distance_cost = distance > 0 ? distance_cost(shared, distance) : 0;
    }
    return state;
}

/* The searched match at byte `at`, newly found, or that of the next byte extended by one. */
DEVICE_FN void consider_searched(const struct deflate_shared *shared, struct parse_state *state,
                                 struct choice *choice, uint32_t match, uint16_t *cost_ring,
                                 uint32_t at, uint32_t end) {
    const uint32_t distance = match_distance(match);
    if (extend_searched(&state->searched, &state->searched_distance, distance)) {
        state->searched.length = min_u32(match_length(match), end - at);
        state->searched.cost_after = cost_ring[(at + state->searched.length) % COST_RING];
        state->searched.distance_cost = distance_cost(shared, distance);
    }
    consider_candidate(choice, &state->searched, shared->length_costs[state->searched.length],
                       SEARCHED);
    cost_ring[at % COST_RING] = (uint16_t)choice->cost;
}

/* Parses the last `words` words of the thread's segment. `search` is NULL without a search; both
 * kernels pass it as a constant, so each is compiled without the other's branches. */
DEVICE_FN void parse_segment(struct deflate_shared *shared, const struct encode_part *part,
                             const struct chain_search *search, uint32_t words) {
    const uint32_t begin = segment_begin(), end = segment_end(part);
    struct parse_state state = begin_parse(shared, part);
    words4 next_matches = {0, 0, 0, 0};
    uint16_t cost_ring[COST_RING];
    if (search && begin < end) {
        cost_ring[end % COST_RING] = 0;
        next_matches = load_words4(search->matches + (end - 1) / 4 * 4);
    }
    for (uint32_t back = 0; back < words; back++) {
        const uint32_t index = begin / 4 + SEGMENT_WORDS - 1 - back;
        if (4 * index >= end)
            continue;
        const uint32_t word = padded_word(byte_row(shared), index);
        /* Bytes past the end are literals; every path has them, so they change no choice. */
        const uint32_t past_end = mask_past_end(4 * index, end);
        uint32_t different[RASTER_DISTANCES], packed = 0;
        const uint32_t matches[4] = {next_matches.x, next_matches.y, next_matches.z,
                                     next_matches.w};
        if (search) /* loaded one word ahead; the first word of the segment twice */
            next_matches = load_words4(search->matches + 4 * (index - (4 * index > begin)));
        UNROLL
        for (uint32_t k = 0; k < RASTER_DISTANCES; k++)
            different[k] =
                compare_at_distance(byte_row(shared), index, part->distances[k]) | past_end;
        UNROLL
        for (uint32_t j = 4; j-- > 0;) {
            const uint32_t at = 4 * index + j;
            struct choice choice = {state.cost + shared->literal_costs[word >> 8 * j & 0xFF], 0, 0};
            consider_raster_candidates(&state, &choice, different, j, shared->length_costs, 0);
            if (search)
                consider_searched(shared, &state, &choice, matches[j], cost_ring, at, end);
            packed |= accept_choice(&state, &choice, at) << 8 * j;
        }
        choice_row(shared)[padded_index(index)] = packed;
        store_sources(shared->v.sources, &state, 4 * index);
    }
}

/* ---- the chosen path ------------------------------------------------------------------------ */

/* What the path has in one word: up to four literals, then at most one match. */
struct word_step {
    uint32_t literals, bytes;  /* their number; the bytes, the first lowest */
    uint32_t match_at, choice; /* choice 0: no match */
    uint32_t end;              /* where the path goes on */
};

/* From byte `at` on, in a word with these choices and bytes. */
DEVICE_FN struct word_step next_step(uint32_t at, uint32_t choices, uint32_t bytes) {
    const uint32_t left = choices >> 8 * (at % 4);
    struct word_step step;
    step.literals = left == 0 ? 4 - at % 4 : trailing_zeros(left) / 8;
    step.bytes = bytes >> 8 * (at % 4);
    step.match_at = at + step.literals;
    step.choice = left >> 8 * (step.literals % 4) & 0xFF;
    step.end = step.match_at + (left == 0 ? 0 : chosen_length(step.choice));
    return step;
}

/* Counts the symbols on the path through the last `words` words of the segment, and stores the
 * distances of matches as drawn above. */
DEVICE_FN void count_path_symbols(struct deflate_shared *shared, const struct encode_part *part,
                                  const struct chain_search *search, uint32_t words) {
    const uint32_t end = segment_end(part);
    for (uint32_t at = segment_begin() + SEGMENT_BYTES - 4 * words; at < end;) {
        const struct word_step step = next_step(at, padded_word(choice_row(shared), at / 4),
                                                padded_word(byte_row(shared), at / 4));
        UNROLL
        for (uint32_t j = 0; j < 4; j++)
            if (j < step.literals && at + j < end)
                atomic_add(&shared->codes[step.bytes >> 8 * j & 0xFF], 1);
        at = step.end;
        if (step.choice == 0)
            continue;
        const uint32_t source = chosen_source(shared->v.sources, step.match_at, step.choice);
        const uint32_t distance = search && source == SEARCHED
                                      ? match_distance(search->matches[step.match_at])
                                      : raster_distance(part, source);
        *padded_byte(choice_row(shared), step.match_at + 1) = (uint8_t)distance;
        *padded_byte(choice_row(shared), step.match_at + 2) = (uint8_t)(distance >> 8);
        atomic_add(&shared->codes[length_symbol(chosen_length(step.choice)).number], 1);
        atomic_add(&shared->codes[distance_symbol(distance).number], 1);
    }
}

#endif
