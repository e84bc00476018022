/*
 * Output of the deflate decoder: resolves matches within a slice, writes it, and sums up the
 * Adler-32.
 *
 * Matches copy from matches, in chains of twenty and more. All bytes of a slice are resolved at
 * once. Example: literals a, b, c, a match of length 5 and distance 3, a literal d.
 *
 *     position    0  1  2  3  4  5  6  7  8
 *     slots       a  b  c  0  .  .  .  .  d      write_slots: a match sets its first slot only
 *     filled      a  b  c  0  1  2  3  4  d      fill_matches: source of the slot before it, plus 1
 *     step 1      a  b  c  a  b  c  0  1  d      follow_matches: the slot at that source
 *     step 2      a  b  c  a  b  c  a  b  d
 *
 * follow_matches is pointer jumping: it replaces the source in a slot by the slot at that source,
 * until only literals and sources before the slice remain. Each step halves the length of a chain,
 * because the slot that is read has jumped as well: a run of ten thousand equal bytes takes 14
 * steps. Overlapping copies need no special case. Threads do not wait for each other: an old and a
 * new value of a slot are both right. This data race is intended (tests/races.supp).
 *
 * A slice is flushed when it is full, and while one warp reads the header of a deflate block: then
 * the other warps flush what there is. So the warps that work on a slice are a team: all, or all
 * but the first. sync_team is a named barrier for those threads.
 */
#ifndef COGPU_KERNELS_DEFLATE_INFLATE_SLICE_H
#define COGPU_KERNELS_DEFLATE_INFLATE_SLICE_H

#include "kernels/deflate/inflate_shared.h"
#include "kernels/deflate/inflate_zlib.h"

struct slot_vector {
    uint32_t slots[VECTOR]; /* in the low 16 bits */
};

DEVICE_FN struct slot_vector load_slots(const uint16_t *slots) {
    words4 words = load_words4(slots);
    struct slot_vector v = {{words.x & 0xFFFF, words.x >> 16, words.y & 0xFFFF, words.y >> 16,
                             words.z & 0xFFFF, words.z >> 16, words.w & 0xFFFF, words.w >> 16}};
    return v;
}

DEVICE_FN void store_slots(uint16_t *slots, const struct slot_vector *v) {
    enum { LOW_HALVES = 0x5410 };
    words4 words = {pick_bytes(v->slots[0], v->slots[1], LOW_HALVES),
                    pick_bytes(v->slots[2], v->slots[3], LOW_HALVES),
                    pick_bytes(v->slots[4], v->slots[5], LOW_HALVES),
                    pick_bytes(v->slots[6], v->slots[7], LOW_HALVES)};
    store_words4(slots, words);
}

/* Marks a slot whose value depends on slots before the vector. */
#define UNKNOWN 0x80000000u

/* Fills empty slots from the slot before them. Those at the start of the vector become UNKNOWN +
 * how far they are from the last slot before it. */
DEVICE_FN struct slot_vector fill_within_vector(const struct inflate_shared *s, uint32_t at) {
    struct slot_vector v = load_slots(&s->slots[at]);
    uint32_t last = UNKNOWN;
    UNROLL
    for (uint32_t i = 0; i < VECTOR; i++)
        last = v.slots[i] = v.slots[i] == EMPTY_SLOT ? last + 1 : v.slots[i];
    return v;
}

/* Slots that a warp handles at once, here called a row. */
enum { ROW_SLOTS = WARP * VECTOR };

/* The warps that work on a slice. */
struct warp_team {
    uint32_t warp, warps; /* this one, and how many */
};

DEVICE_FN struct warp_team team_from(uint32_t first_warp) {
    struct warp_team team = {warp_index() - first_warp, WARPS - first_warp};
    return team;
}

DEVICE_FN void sync_team(struct warp_team team) {
    enum { BARRIER = 1 }; /* its id; 0 is that of sync_block */
    sync_group(BARRIER, team.warps * WARP);
}

/* Value that the slot before `at` will have once it is filled. By a warp. */
DEVICE_FN uint32_t find_slot_before(const struct inflate_shared *s, uint32_t at) {
    for (uint32_t back = 0; back < at; back += ROW_SLOTS) {
        struct slot_vector v = fill_within_vector(s, at - back - ROW_SLOTS + VECTOR * lane_index());
        uint32_t known = warp_ballot(v.slots[VECTOR - 1] < UNKNOWN);
        if (known) {
            uint32_t lane = 31 - leading_zeros(known);
            return warp_read(v.slots[VECTOR - 1], lane) + VECTOR * (WARP - 1 - lane) + back;
        }
    }
    return s->last_slot + at;
}

/* Gives every byte of a match its source. Each warp of the team has a part of the slice; it finds
 * the slot before its part before any warp writes. */
DEVICE_FN void fill_matches(struct inflate_shared *s, struct warp_team team, uint32_t bytes) {
    uint32_t rows = (bytes + ROW_SLOTS - 1) / ROW_SLOTS,
             part = (rows + team.warps - 1) / team.warps * ROW_SLOTS;
    uint32_t lane = lane_index(), first = team.warp * part, end = min_u32(first + part, bytes);
    uint32_t before = first < end ? find_slot_before(s, first) : 0;
    sync_team(team);
    for (uint32_t row = first; row < end; row += ROW_SLOTS) {
        uint16_t *slots = &s->slots[row + VECTOR * lane];
        struct slot_vector v = fill_within_vector(s, row + VECTOR * lane);
        uint32_t known = warp_ballot(v.slots[VECTOR - 1] < UNKNOWN) & ((1u << lane) - 1);
        uint32_t from = known ? 31 - leading_zeros(known) : 0;
        uint32_t last = warp_read(v.slots[VECTOR - 1], from) + VECTOR * (lane - 1 - from);
        last = known ? last : before + VECTOR * lane;
        UNROLL
        for (uint32_t i = 0; i < VECTOR; i++)
            if (v.slots[i] >= UNKNOWN)
                v.slots[i] += last;
        store_slots(slots, &v);
        before = warp_read(v.slots[VECTOR - 1], WARP - 1);
    }
    if (end == SLICE_BYTES && lane == 0)
        s->last_slot = before - SLICE_BYTES;
}

/* Whether a slot of the vector is still copied from within the slice. */
DEVICE_FN bool has_unresolved(const struct slot_vector *v) {
    uint32_t lowest = IN_SLICE_END;
    UNROLL
    for (uint32_t i = 0; i < VECTOR; i++)
        lowest = min_u32(lowest, v->slots[i]);
    return lowest < IN_SLICE_END;
}

/* Follows the sources of a vector until none is in the slice. Each step leads to a smaller
 * position, so it ends. By a warp. */
DEVICE_FN struct slot_vector follow_matches(struct inflate_shared *s, uint32_t at) {
    struct slot_vector v = load_slots(&s->slots[at]);
    for (uint32_t step = 0; step < SLICE_BYTES && warp_any(has_unresolved(&v)); step++) {
        UNROLL
        for (uint32_t i = 0; i < VECTOR; i++)
            if (v.slots[i] < IN_SLICE_END)
                v.slots[i] = s->slots[v.slots[i]];
        store_slots(&s->slots[at], &v);
    }
    return v;
}

/* Value of a slot after follow_matches, in the low byte. `base`: address to which
 * the slot of a source before the slice is added. */
DEVICE_FN uint32_t load_slot_byte(uintptr_t base, uint32_t slot) {
    if (slot >= BEFORE_SLICE)
        slot = *(const uint8_t *)(base + slot);
    return slot;
}

/* Four slots as one word. LOW_BYTES puts the low byte of `a` below that of `b`. */
DEVICE_FN uint32_t load_four_bytes(uintptr_t base, const uint32_t *slots) {
    enum { LOW_BYTES = 0x0040, LOW_HALVES = 0x5410 };
    uint32_t a = load_slot_byte(base, slots[0]), b = load_slot_byte(base, slots[1]);
    uint32_t c = load_slot_byte(base, slots[2]), d = load_slot_byte(base, slots[3]);
    return pick_bytes(pick_bytes(a, b, LOW_BYTES), pick_bytes(c, d, LOW_BYTES), LOW_HALVES);
}

/* Sum of eight bytes, and sum of byte i times i. Two bytes are added at once, in the 16-bit halves
 * of a word: low halves get bytes 0, 1, 4 and 5, high halves bytes 2, 3, 6 and 7. Those have a
 * weight that is 2 more, which is added at the end. */
DEVICE_FN void sum_eight_bytes(uint32_t low, uint32_t high, uint32_t *sum, uint32_t *weighted) {
    const uint32_t even = 0x00FF00FF;
    uint32_t odd_low = low >> 8 & even, even_high = high & even, odd_high = high >> 8 & even;
    uint32_t pairs = (low & even) + odd_low + even_high + odd_high;
    uint32_t times = odd_low + 4 * even_high + 5 * odd_high;
    *sum = (pairs & 0xFFFF) + (pairs >> 16);
    *weighted = (times & 0xFFFF) + (times >> 16) + 2 * (pairs >> 16);
}

/* Empties the first `used` slots. The `kept` bytes after the last whole vector begin the next
 * slice. By a team, after a barrier. */
DEVICE_FN void empty_slots(struct inflate_shared *s, struct warp_team team, uint32_t used,
                           uint32_t kept) {
    words4 empty = {EMPTY_SLOT << 16 | EMPTY_SLOT, EMPTY_SLOT << 16 | EMPTY_SLOT,
                    EMPTY_SLOT << 16 | EMPTY_SLOT, EMPTY_SLOT << 16 | EMPTY_SLOT};
    for (uint32_t row = ROW_SLOTS * team.warp; row < used; row += ROW_SLOTS * team.warps)
        store_words4(&s->slots[row + VECTOR * lane_index()], empty);
    sync_team(team);
    if (team.warp == 0 && lane_index() < kept)
        s->slots[lane_index()] =
            (uint16_t)(LITERAL_SLOT | (s->kept_bytes >> 8 * lane_index() & 0xFF));
}

/* Writes the first `bytes` bytes of the slice and empties it for the next one, which begins after
 * them. Bytes after the last whole vector begin the next slice, unless `is_last`. By a team, after
 * a barrier; the caller advances stream->slice_start.
 *
 * The sums do not overflow: a thread adds at most 7 vectors per flush, so `sum` is below 2^14 and
 * `weighted` below 2^28. */
DEVICE_FN void flush_slice(struct inflate_shared *s, struct inflate_stream *stream,
                           struct warp_team team, uint32_t bytes, bool is_last) {
    uint32_t sum = 0, weighted = 0;
    uint8_t *out = s->input.out + stream->slice_start;
    uintptr_t base = (uintptr_t)out - SLOT_END;
    fill_matches(s, team, bytes);
    sync_team(team);
    for (uint32_t row = ROW_SLOTS * team.warp; row < bytes; row += ROW_SLOTS * team.warps) {
        uint32_t at = row + VECTOR * lane_index();
        struct slot_vector v = follow_matches(s, at);
        if (at >= bytes)
            continue;
        uint32_t low = load_four_bytes(base, v.slots), high = load_four_bytes(base, v.slots + 4);
        uint64_t eight = low | (uint64_t)high << 32;
        if (at + VECTOR <= bytes) {
            *(uint64_t *)(void *)(out + at) = eight;
        } else if (is_last) {
            eight &= ~(~(uint64_t)0 << 8 * (bytes - at));
            for (uint32_t i = 0; at + i < bytes; i++)
                out[at + i] = (uint8_t)(eight >> 8 * i);
        } else {
            s->kept_bytes = eight;
            continue;
        }
        uint32_t sum_of_8, weighted_of_8;
        sum_eight_bytes((uint32_t)eight, (uint32_t)(eight >> 32), &sum_of_8, &weighted_of_8);
        sum += sum_of_8;
        weighted += at * sum_of_8 + weighted_of_8;
    }
    stream->weighted =
        (stream->weighted + stream->slice_start % ADLER_MODULUS * sum % ADLER_MODULUS +
         weighted % ADLER_MODULUS) %
        ADLER_MODULUS;
    stream->sum = (stream->sum + sum) % ADLER_MODULUS;
    sync_team(team);
    empty_slots(s, team, is_last ? SLICE_BYTES : bytes, is_last ? 0 : bytes % VECTOR);
}

#endif
