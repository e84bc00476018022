/*
 * From choices to sequences: lists the matches of a part, turns distances into Offset_Values with
 * the repeat offsets (RFC 8878, 3.1.1.5), and counts the codes of the three FSE tables.
 *
 * A sequence stores where its match begins and how many literals of the part come before it. Both
 * lengths are differences to the neighbours, so no sequence depends on how another was split:
 *
 *     bytes        L L M M M M L M M M M M L              L: literal, M: match
 *     sequences    {at 2, literals 2} {at 7, literals 3}  sentinel {at 13, literals 4}
 *     number 0     literals length 2 - 0 = 2              match length (7 - 2) - (3 - 2) = 4
 *     number 1     literals length 3 - 2 = 1              match length (13 - 7) - (4 - 3) = 5
 *
 * A match that reaches the end of a segment and goes on in the next at the same distance is one
 * match: the second half is not listed, and the lengths come out right by themselves.
 */
#ifndef COGPU_KERNELS_ZSTD_ZSTD_ENCODE_SEQUENCES_H
#define COGPU_KERNELS_ZSTD_ZSTD_ENCODE_SEQUENCES_H

#include "kernels/zstd/zstd_encode_search.h"

/* ---- the list ------------------------------------------------------------------------------- */

/* A step on the chosen path: a literal has length 1 and distance 0. */
struct path_step {
    uint32_t length, distance;
};

DEVICE_FN struct path_step path_step_at(struct zstd_encode_shared *shared,
                                        const struct encode_part *part, const uint32_t *matches,
                                        uint32_t at) {
    const uint32_t choice = *padded_byte(shared->u.parse.choices, at);
    struct path_step step = {1, 0};
    if (choice == 0)
        return step;
    const uint32_t source = chosen_source(shared->u.parse.v.sources, at, choice);
    step.length = chosen_length(choice);
    step.distance =
        source == SEARCHED ? match_distance(matches[at]) : raster_distance(part, source);
    return step;
}

/* The sequences and literals of a part. */
struct sequence_list {
    uint32_t literals, sequences;
    uint32_t own_first, own_literals; /* literals of this thread: index of the first, number */
};

/* A sequence, by one load of 8 bytes. */
DEVICE_FN struct cogpu_zstd_sequence load_sequence(const struct cogpu_zstd_sequence *sequences,
                                                   uint32_t i) {
    const uint64_t all = load_u64_aligned(&sequences[i]);
    const struct cogpu_zstd_sequence sequence = {(uint16_t)all, (uint16_t)(all >> 16),
                                                 (uint32_t)(all >> 32)};
    return sequence;
}

enum { MOVED_AT_ONCE = 4 }; /* so that loads overlap */

/* Moves the sequences of a segment to the list of the part. Their `literals` count from the
 * start of the segment before, and from the start of the part after it. */
DEVICE_FN void move_sequences(const struct cogpu_zstd_sequence *from, uint32_t count,
                              uint32_t literals_before, struct cogpu_zstd_sequence *to) {
    for (uint32_t i = 0; i < count; i += MOVED_AT_ONCE) {
        struct cogpu_zstd_sequence moved[MOVED_AT_ONCE];
        UNROLL
        for (uint32_t j = 0; j < MOVED_AT_ONCE; j++) {
            moved[j] = load_sequence(from, min_u32(i + j, count - 1));
            moved[j].literals = (uint16_t)(moved[j].literals + literals_before);
        }
        UNROLL
        for (uint32_t j = 0; j < MOVED_AT_ONCE; j++)
            if (i + j < count)
                to[i + j] = moved[j];
    }
}

/* The matches and literals of one segment. */
struct segment_path {
    uint32_t literals, matches;
    uint32_t head_distance, tail_distance; /* of matches at its two ends; 0: none */
};

/* Walks the path through the segment of this thread: matches go to `own`, literals to the choices
 * that have been read. Counts literals for the Huffman code. */
DEVICE_FN struct segment_path list_segment(struct zstd_encode_shared *shared,
                                           const struct encode_part *part, const uint32_t *matches,
                                           struct cogpu_zstd_sequence *own) {
    const uint32_t begin = segment_begin(), end = segment_end(part);
    struct segment_path path = {0, 0, 0, 0};
    for (uint32_t at = begin; at < end;) {
        const struct path_step step = path_step_at(shared, part, matches, at);
        if (step.distance == 0) {
            const uint8_t byte = *padded_byte(part_words(shared), at);
            atomic_add(&shared->literal_counts[byte], 1);
            *padded_byte(shared->u.parse.choices, begin + path.literals++) = byte;
        } else if (step.distance != path.tail_distance) { /* else it continues the last match */
            const struct cogpu_zstd_sequence sequence = {(uint16_t)at, (uint16_t)path.literals,
                                                         step.distance};
            own[path.matches++] = sequence;
        }
        path.head_distance = at == begin ? step.distance : path.head_distance;
        path.tail_distance = step.distance;
        at += step.length;
    }
    return path;
}

/* Lists the sequences of the part, then a sentinel. One scan gives the positions of matches (high
 * half) and literals (low half). */
DEVICE_FN struct sequence_list list_sequences(struct zstd_encode_shared *shared,
                                              const struct encode_part *part,
                                              struct cogpu_zstd_workspace *workspace) {
    struct cogpu_zstd_sequence *own =
        workspace->segment_sequences + thread_index() * COGPU_ZSTD_SEGMENT_SEQUENCES;
    uint32_t total;
    shared->literal_counts[thread_index()] = 0;
    sync_block();
    const struct segment_path path = list_segment(shared, part, workspace->u.matches, own);
    shared->segment_tails[thread_index()] = path.tail_distance;
    sync_block();
    const uint32_t previous_tail =
        thread_index() > 0 ? shared->segment_tails[thread_index() - 1] : 0;
    const uint32_t joined = path.head_distance != 0 && path.head_distance == previous_tail;
    const uint32_t before =
        block_scan(shared->warp_sums, (path.matches - joined) << 16 | path.literals, &total);
    const struct sequence_list list = {total & 0xFFFF, total >> 16, before & 0xFFFF, path.literals};
    move_sequences(own + joined, path.matches - joined, list.own_first,
                   workspace->sequences + (before >> 16));
    if (thread_index() == 0) {
        const struct cogpu_zstd_sequence sentinel = {(uint16_t)part->bytes, (uint16_t)list.literals,
                                                     0};
        workspace->sequences[list.sequences] = sentinel;
    }
    sync_block();
    return list;
}

/* ---- repeat offsets (3.1.1.5) --------------------------------------------------------------- */

/* The last three distances, all different, the latest first; 0: not known. The offsets of the
 * previous part are treated as unknown, so that parts are independent. */
struct offset_history {
    uint32_t last[REPEAT_OFFSETS];
};

DEVICE_FN void push_offset(struct offset_history *repeat, uint32_t distance) {
    uint32_t *last = repeat->last;
    if (distance == last[0] || distance == 0)
        return;
    if (distance != last[1])
        last[2] = last[1];
    last[1] = last[0];
    last[0] = distance;
}

/* Consecutive sequences of one thread. */
struct sequence_range {
    uint32_t begin, end;
};

DEVICE_FN struct sequence_range own_range(uint32_t sequences) {
    const uint32_t each = (sequences + PART_THREADS - 1) / PART_THREADS;
    const struct sequence_range range = {min_u32(thread_index() * each, sequences),
                                         min_u32((thread_index() + 1) * each, sequences)};
    return range;
}

DEVICE_FN struct offset_history load_repeat_offsets(const struct zstd_encode_shared *shared,
                                                    uint32_t thread) {
    struct offset_history repeat;
    UNROLL
    for (uint32_t i = 0; i < REPEAT_OFFSETS; i++)
        repeat.last[i] = shared->u.parse.v.repeat_offsets[i][thread];
    return repeat;
}

/*
 * The repeat offsets before this thread's range. Pushing is associative: pushing the three offsets
 * of a later range onto those of an earlier one gives the offsets after both. So a scan over the
 * threads finds them in log2(256) rounds (Hillis and Steele).
 */
DEVICE_FN struct offset_history scan_repeat_offsets(struct zstd_encode_shared *shared,
                                                    const struct cogpu_zstd_sequence *sequences,
                                                    struct sequence_range range) {
    const uint32_t thread = thread_index();
    struct offset_history repeat = {{0, 0, 0}};
    for (uint32_t i = range.begin; i < range.end; i++)
        push_offset(&repeat, sequences[i].offset);
    for (uint32_t by = 1;; by *= 2) {
        UNROLL
        for (uint32_t i = 0; i < REPEAT_OFFSETS; i++)
            shared->u.parse.v.repeat_offsets[i][thread] = repeat.last[i];
        sync_block();
        if (by == PART_THREADS)
            break;
        if (thread >= by) {
            struct offset_history older = load_repeat_offsets(shared, thread - by);
            UNROLL
            for (uint32_t i = REPEAT_OFFSETS; i-- > 0;)
                push_offset(&older, repeat.last[i]);
            repeat = older;
        }
        sync_block();
    }
    const struct offset_history none = {{0, 0, 0}};
    return thread > 0 ? load_repeat_offsets(shared, thread - 1) : none;
}

/* Offset_Value: 1 to 3 for a repeat offset. Without literals before the match the format counts
 * from the second one, since the first would have extended the last match. */
DEVICE_FN uint32_t get_offset_value(const struct offset_history *repeat, uint32_t distance,
                                    bool has_literals) {
    uint32_t value = 0;
    UNROLL
    for (uint32_t i = REPEAT_OFFSETS; i-- > 0;)
        value = repeat->last[i] == distance ? i + has_literals : value;
    return value > 0 ? value : distance + REPEAT_OFFSETS;
}

/* ---- codes ---------------------------------------------------------------------------------- */

struct sequence_symbols {
    struct coded_value of[SEQUENCE_TABLES];
};

DEVICE_FN struct sequence_symbols get_sequence_symbols(const struct cogpu_zstd_sequence *sequences,
                                                       uint32_t i) {
    const struct cogpu_zstd_sequence own = load_sequence(sequences, i),
                                     next = load_sequence(sequences, i + 1);
    const uint32_t literals_before = i > 0 ? sequences[i - 1].literals : 0;
    const uint32_t bytes = next.at - own.at, length = bytes - (next.literals - own.literals);
    struct sequence_symbols symbols;
    symbols.of[LITERALS_LENGTH] = literals_length_symbol(own.literals - literals_before);
    symbols.of[OFFSET] = offset_symbol(own.offset);
    symbols.of[MATCH_LENGTH] = match_length_symbol(length);
    return symbols;
}

/* Replaces distances by Offset_Values, a range of sequences per thread. Counts how raster distances
 * were written, for estimate_costs. */
DEVICE_FN void set_offset_values(struct zstd_encode_shared *shared, const struct encode_part *part,
                                 struct cogpu_zstd_sequence *sequences, uint32_t count) {
    const struct sequence_range range = own_range(count);
    struct offset_history repeat = scan_repeat_offsets(shared, sequences, range);
    uint32_t literals_before = range.begin > 0 ? sequences[range.begin - 1].literals : 0;
    for (uint32_t i = range.begin; i < range.end; i++) {
        const struct cogpu_zstd_sequence own = load_sequence(sequences, i);
        const uint32_t value =
            get_offset_value(&repeat, own.offset, own.literals > literals_before);
        literals_before = own.literals;
        push_offset(&repeat, own.offset);
        sequences[i].offset = value;
        for (uint32_t k = 0; k < RASTER_DISTANCES; k++)
            if (own.offset == part->distances[k])
                atomic_add(&shared->distance_uses[k][value == 1                ? 0
                                                     : value <= REPEAT_OFFSETS ? 1
                                                                               : 2],
                           1);
    }
}

/* Sets Offset_Values and counts the codes of all sequences. */
DEVICE_FN void count_sequence_codes(struct zstd_encode_shared *shared,
                                    const struct encode_part *part,
                                    struct cogpu_zstd_sequence *sequences, uint32_t count) {
    struct fse_table *tables = shared->u.parse.w.tables;
    for (uint32_t i = thread_index(); i < SEQUENCE_TABLES * FSE_SYMBOLS; i += PART_THREADS)
        tables[i / FSE_SYMBOLS].counts[i % FSE_SYMBOLS] = 0;
    if (thread_index() < RASTER_DISTANCES)
        for (uint32_t i = 0; i < 3; i++)
            shared->distance_uses[thread_index()][i] = 0;
    set_offset_values(shared, part, sequences, count); /* its barriers order the zeros above */
    sync_block();
    for (uint32_t i = thread_index(); i < count; i += PART_THREADS) {
        const struct sequence_symbols symbols = get_sequence_symbols(sequences, i);
        UNROLL
        for (uint32_t t = 0; t < SEQUENCE_TABLES; t++)
            atomic_add(&tables[t].counts[symbols.of[t].number], 1);
    }
    sync_block();
}

/* The codes of all sequences, where the bytes of the part were. */
DEVICE_FN void list_sequence_codes(struct zstd_encode_shared *shared,
                                   const struct cogpu_zstd_sequence *sequences, uint32_t count) {
    for (uint32_t i = thread_index(); i < count; i += PART_THREADS) {
        const struct sequence_symbols symbols = get_sequence_symbols(sequences, i);
        UNROLL
        for (uint32_t t = 0; t < SEQUENCE_TABLES; t++)
            sequence_codes(shared, t)[i] = (uint8_t)symbols.of[t].number;
    }
}

#endif
