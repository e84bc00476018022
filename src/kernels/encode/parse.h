/*
 * Optimal parse of a segment: dynamic programming from its last byte to its first.
 *
 *     cost[i] = min( literal_cost(byte i)  + cost[i + 1],
 *                    match_cost(length, d) + cost[i + length]   for the candidates at i )
 *
 * For a fixed distance d, the longest match at byte i is the one at byte i + 1 extended backwards
 * by one, or none if byte i differs from byte i - d. So a candidate is a counter, not a search:
 *
 *     bytes        a b c c c c d        d = 1
 *     length       0 0 0 3 2 1 0        bytes from here on that equal the byte before them
 *     cost_after   cost at the byte where the run of equal bytes ends ("d"), kept while it grows
 *
 * Only the longest match of each candidate is tried, never a shorter one; in rasters that loses
 * little.
 *
 * The source of a match is an enum match_source (2 bits). A choice is stored in one byte per byte
 * of the part, and in one bit of another array:
 *
 *     choice byte   0: literal       else: low bit of the source << 7 | length - 2
 *     source bit    high bit of the source
 *
 * A match is 3 to 128 = SEGMENT_BYTES bytes long, so length - 2 is not 0 and has 7 bits.
 */
#ifndef COGPU_KERNELS_ENCODE_PARSE_H
#define COGPU_KERNELS_ENCODE_PARSE_H

#include "kernels/encode/part.h"

enum {
    SOURCE_LOW_BIT = 0x80,
    LENGTH_BIAS = 2,
    SOURCE_WORDS = SEGMENT_BYTES / WARP * PART_THREADS, /* one bit per byte of the part */

    /* A searched match appears in the middle of a segment, and needs the cost at the byte where it
     * ends. A ring keeps the costs of the last 16 bytes, so the search reports at most 15 bytes;
     * longer matches arise as the parse extends them backwards. */
    COST_RING = 16,
    SEARCH_LENGTH_MAX = COST_RING - 1
};

/* The match of one source at the current byte; length 0: none. */
struct candidate {
    uint32_t length;
    uint32_t cost_after;    /* from the end of the match to the end of the segment */
    uint32_t distance_cost; /* of the distance alone */
};

/* The cheapest way to go on at the current byte; length 0: a literal. */
struct choice {
    uint32_t cost, length, source;
};

/* Moves a candidate one byte back. `cost` is the cost at the next byte. */
DEVICE_FN void extend_candidate(struct candidate *candidate, bool is_equal, uint32_t cost) {
    if (candidate->length == 0)
        candidate->cost_after = cost;
    candidate->length = is_equal ? candidate->length + 1 : 0;
}

/* Chooses the candidate if it is cheaper than the choice so far. `length_cost` exceeds any path
 * where the match is too short, so no separate test is needed. */
DEVICE_FN void consider_candidate(struct choice *choice, const struct candidate *candidate,
                                  uint32_t length_cost, uint32_t source) {
    const uint32_t cost = candidate->cost_after + length_cost + candidate->distance_cost;
    if (cost < choice->cost) {
        choice->cost = cost;
        choice->length = candidate->length;
        choice->source = source;
    }
}

/* Moves the searched candidate one byte back, where the search found `distance` (0: nothing).
 * Returns whether a new match begins, whose length and costs the caller sets. */
DEVICE_FN bool extend_searched(struct candidate *candidate, uint32_t *last_distance,
                               uint32_t distance) {
    const bool is_new = distance != 0 && distance != *last_distance;
    if (distance == 0)
        candidate->length = 0;
    else if (!is_new)
        candidate->length++;
    *last_distance = distance;
    return is_new;
}

/* State of the backward pass through a segment. */
struct parse_state {
    struct candidate candidates[RASTER_DISTANCES], searched;
    uint32_t searched_distance;
    uint32_t cost;        /* from the current byte to the end of the segment */
    uint32_t literals;    /* from the current byte on, up to the next match */
    uint32_t source_bits; /* high bits of sources, of up to 32 bytes */
};

/* Extends the candidates at raster distances to byte j of a word, and considers them. A zero byte
 * of `different` is an equal byte. `sequence_cost` is added to each match. */
DEVICE_FN void consider_raster_candidates(struct parse_state *state, struct choice *choice,
                                          const uint32_t *different, uint32_t j,
                                          const uint16_t *length_costs, uint32_t sequence_cost) {
    UNROLL
    for (uint32_t k = 0; k < RASTER_DISTANCES; k++) {
        struct candidate *candidate = &state->candidates[k];
        extend_candidate(candidate, (different[k] >> 8 * j & 0xFF) == 0, state->cost);
        consider_candidate(choice, candidate, length_costs[candidate->length] + sequence_cost, k);
    }
}

/* Moves the state to byte `at`; returns the choice byte. */
DEVICE_FN uint32_t accept_choice(struct parse_state *state, const struct choice *choice,
                                 uint32_t at) {
    state->cost = choice->cost;
    state->literals = choice->length > 0 ? 0 : state->literals + 1;
    state->source_bits |= (choice->source >> 1) << at % WARP;
    return choice->length == 0
               ? 0
               : choice->length - LENGTH_BIAS + (choice->source & 1) * SOURCE_LOW_BIT;
}

DEVICE_FN uint32_t chosen_length(uint32_t packed) {
    return packed % SOURCE_LOW_BIT + LENGTH_BIAS;
}

/* The word with the source bits of 32 bytes. Words of one thread are PART_THREADS apart: no bank
 * conflicts. */
DEVICE_FN uint32_t *source_word(uint32_t *sources, uint32_t at) {
    return &sources[at % SEGMENT_BYTES / WARP * PART_THREADS + at / SEGMENT_BYTES];
}

/* Stores the source bits when the word at byte `at` is the first of 32 bytes. */
DEVICE_FN void store_sources(uint32_t *sources, struct parse_state *state, uint32_t at) {
    if (at % WARP == 0) {
        *source_word(sources, at) = state->source_bits;
        state->source_bits = 0;
    }
}

DEVICE_FN uint32_t chosen_source(uint32_t *sources, uint32_t at, uint32_t packed) {
    return packed / SOURCE_LOW_BIT + 2 * (*source_word(sources, at) >> at % WARP & 1);
}

/* 0xFF.. for the bytes of a word at byte `at` that are past the end of the segment. */
DEVICE_FN uint32_t mask_past_end(uint32_t at, uint32_t end) {
    return end - at < 4 ? ~0u << 8 * (end - at) : 0;
}

#endif
