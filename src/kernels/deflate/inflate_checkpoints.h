/*
 * Segments whose tokens are only counted, with checkpoints: places at which tokens begin, and from
 * which any thread can decode later. For the walk over deflate blocks (inflate_few_walk.cu).
 */
#ifndef COGPU_KERNELS_DEFLATE_INFLATE_CHECKPOINTS_H
#define COGPU_KERNELS_DEFLATE_INFLATE_CHECKPOINTS_H

#include "kernels/deflate/inflate_tokens.h"

/* Checkpoints of a segment. */
enum { CHECKPOINTS = 4 };

/* A token has at most 48 bits, so the first one of a segment begins in its first 48. */
enum { STARTS = 48, STOPPED_EXIT = 0xFE, UNKNOWN_EXIT = 0xFF };

struct segment_checkpoints {
    uint32_t bits[CHECKPOINTS][THREADS];  /* in the stage */
    uint16_t bytes[CHECKPOINTS][THREADS]; /* of the tokens up to the next checkpoint */
    /* For explore_segments: of each start of a segment, in bits from where the segment begins, the
     * start of the next one; STOPPED_EXIT if there is an end of block; UNKNOWN_EXIT. */
    uint8_t exits[THREADS][STARTS];
    uint8_t starts[THREADS]; /* true starts, up to `known` */
    uint32_t known;          /* last thread whose true start is known */
    bool is_complete;        /* nothing is unknown up to the end of the block or stride */
};

/* The bytes of a segment that was counted from another start, from a checkpoint on. */
DEVICE_FN uint32_t bytes_from_checkpoint(const struct segment_checkpoints *checkpoints,
                                         uint32_t checkpoint) {
    uint32_t bytes = 0;
    for (uint32_t i = checkpoint; i < CHECKPOINTS; i++)
        bytes += checkpoints->bytes[i][thread_index()];
    return bytes;
}

/* Counts the bytes of a segment's tokens. As decode_segment, but nothing is recorded; the parts
 * between checkpoints are of equal length. A part has at most 292 / 2 matches (SEGMENT_BITS_MAX,
 * two bits each), so its bytes fit 16 bits.
 *
 * With `is_again` the segment was counted from another start, which may have been wrong. If a
 * checkpoint is the same, what follows is the same, because a token begins at both: except after an
 * end of block, where checkpoints are not the starts of tokens. */
DEVICE_FN void count_segment(const struct inflate_shared *s, struct token_segment *segment,
                             uint32_t segment_bits, bool is_again,
                             struct segment_checkpoints *checkpoints) {
    const uint32_t subtable_mask = (1u << s->codes.subtable_bits) - 1, thread = thread_index();
    struct bit_reader reader = open_reader(s->stage, segment->from);
    struct table_lookup lookup = first_lookup();
    uint32_t bits = peek_bits(&reader), entry = entry_at(s, lookup, bits), bytes = 0;
    bool has_end = false;
    for (uint32_t i = 0; i < CHECKPOINTS; i++) {
        const uint32_t to = segment->to - (CHECKPOINTS - 1 - i) * (segment_bits / CHECKPOINTS);
        const uint32_t bytes_before = bytes;
        if (is_again && i > 0 && !has_end && !segment->has_end &&
            checkpoints->bits[i][thread] == reader.bit) {
            segment->bytes = bytes + bytes_from_checkpoint(checkpoints, i);
            return;
        }
        checkpoints->bits[i][thread] = reader.bit;
        bool is_done = has_end | (reader.bit >= to);
        for (;;) {
            while (!is_done & !(entry & (IS_LONG | IS_END))) { /* & instead of &&: one branch */
                bytes++;                                       /* corrected as in decode_segment */
                if (entry & IS_LENGTH)
                    bytes += LENGTH_TOP - 2 - token_value(entry, bits);
                if (entry & IS_SUBTABLE)
                    bytes--;
                skip_bits(&reader, s->stage, entry & 31);
                lookup = next_lookup(entry, subtable_mask);
                bits = peek_bits(&reader);
                entry = entry_at(s, lookup, bits);
                is_done = (lookup.table == 0) & (reader.bit >= to);
            }
            if (is_done)
                break;
            has_end = entry & IS_END;
            if (has_end)
                break;
            entry = find_long_entry(s, lookup.table, bits);
        }
        checkpoints->bytes[i][thread] = (uint16_t)(bytes - bytes_before);
    }
    segment->has_end = segment->is_stopped = has_end;
    segment->is_bad = has_end && entry >> 16 != 0;
    segment->exit = reader.bit + (has_end ? entry & 31 : 0);
    segment->bytes = bytes;
}

/* Notes the exit of a segment that was decoded, for all its starts on the way. */
DEVICE_FN void note_exit(const struct inflate_shared *s, const struct token_segment *segment,
                         uint32_t begin, uint8_t *exits) {
    const uint32_t subtable_mask = (1u << s->codes.subtable_bits) - 1;
    const uint32_t exit = segment->has_end ? STOPPED_EXIT : segment->exit - segment->to;
    struct bit_reader reader = open_reader(s->stage, segment->from);
    struct table_lookup lookup = first_lookup();
    while (reader.bit - begin < STARTS) {
        uint32_t bits = peek_bits(&reader), entry = entry_at(s, lookup, bits);
        if (lookup.table == 0)
            exits[reader.bit - begin] = (uint8_t)exit;
        if (entry & IS_LONG)
            entry = find_long_entry(s, lookup.table, bits);
        if (entry & IS_END)
            break;
        skip_bits(&reader, s->stage, entry & 31);
        lookup = next_lookup(entry, subtable_mask);
    }
}

/* Goes from segment to segment, as far as exits are known. By one thread. */
DEVICE_FN void follow_exits(struct segment_checkpoints *checkpoints, uint32_t thread,
                            uint32_t start) {
    for (;; thread++) {
        const uint32_t exit = start < STARTS ? checkpoints->exits[thread][start] : UNKNOWN_EXIT;
        checkpoints->starts[thread] = (uint8_t)start;
        checkpoints->known = thread;
        checkpoints->is_complete = exit != UNKNOWN_EXIT;
        if (exit >= STOPPED_EXIT || thread == THREADS - 1)
            return;
        start = exit;
    }
}

/* A start of a segment whose exit is unknown: that which the segment before it leads to, or any
 * other. STARTS if there is none. */
DEVICE_FN uint32_t choose_start(const uint8_t *exits, uint32_t likely) {
    if (likely < STARTS && exits[likely] == UNKNOWN_EXIT)
        return likely;
    uint32_t start = 0;
    while (start < STARTS && exits[start] != UNKNOWN_EXIT)
        start++;
    return start;
}

/* For strides whose threads do not agree after some passes. Runs of one token do not synchronise:
 * a thread that is out of step with them stays so, and the true starts would advance by one thread
 * per pass. But a segment has few starts, so threads find out where each of them leads:
 *
 *     thread       4       5       6       7
 *     true start   3       ?       ?       ?         of 4 the exit is known, of 5 that of 11, ...
 *     exits        3->11   11->2   2->9    9->?      7 is the first that must decode: from 9
 *
 * Threads with a known true start decode from there, the others from any start that is unknown yet.
 * Returns whether this thread must decode, from *from. `must_decode`: its start differs from the
 * exit of the thread before it. By all threads. */
DEVICE_FN bool explore_segments(struct inflate_shared *s, struct segment_checkpoints *checkpoints,
                                const struct token_segment *segment, uint32_t begin,
                                uint32_t segment_bits, bool is_first, bool must_decode,
                                uint32_t *from) {
    const uint32_t thread = thread_index(), mine = begin + thread * segment_bits;
    uint8_t *exits = checkpoints->exits[thread];
    for (uint32_t i = 0; is_first && i < STARTS; i++)
        exits[i] = UNKNOWN_EXIT;
    note_exit(s, segment, mine, exits);
    uint32_t first = warp_min(must_decode ? thread : THREADS);
    if (lane_index() == 0)
        s->sums[warp_index()] = first;
    sync_block();
    for (uint32_t i = 0; i < WARPS; i++)
        first = min_u32(first, s->sums[i]);
    if (first < THREADS && thread == 0)
        follow_exits(checkpoints, first, s->exits[first - 1] - (begin + first * segment_bits));
    sync_block();
    if (first == THREADS || thread < first)
        return false;
    uint32_t start = checkpoints->starts[thread];
    if (thread > checkpoints->known)
        start =
            checkpoints->is_complete ? STARTS : choose_start(exits, s->exits[thread - 1] - mine);
    if (start == STARTS || mine + start == *from)
        return false;
    *from = mine + start;
    return true;
}

#endif
