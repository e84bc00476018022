/*
 * Match search for levels 4 and up, with hash tables in shared memory.
 *
 *     | history: up to 10 KiB before the part | part: 32 KiB |        positions count from here
 *     ^ 0                                     ^ HISTORY_BYTES
 *
 * Two tables, for keys of 4 and of 6 bytes (the second from level 7 on). An entry holds the last
 * two positions of its key, plus 1 each, so that 0 is an empty half:
 *
 *     entry = (last position + 1) << 16 | (position before that + 1)
 *
 * The thread block goes through the bytes 512 at a time. All threads read their entries, then a
 * barrier, then all write with atomic_max, then a second barrier. The largest position wins, so the
 * result does not depend on the order of threads. Matches within the same 512 bytes are not seen;
 * the raster distances of the parse cover most of them.
 *
 * History is as long as shared memory allows. From global memory the 32 lanes of a warp would read
 * 32 different cache lines, and wait too long.
 */
#ifndef COGPU_KERNELS_ZSTD_ZSTD_ENCODE_SEARCH_H
#define COGPU_KERNELS_ZSTD_ZSTD_ENCODE_SEARCH_H

#include "kernels/zstd/zstd_encode_format.h"

enum {
    KEY_BYTES = 4,
    LONG_KEY_BYTES = 6,
    SAMPLE_BYTES = COGPU_ZSTD_PART_BYTES / 4, /* that estimate_search_gain looks at */
    MATCH_LENGTH_SHIFT = 28 /* match = distance | length << 28; the length is at most 15 */
};

DEVICE_FN uint32_t match_distance(uint32_t match) {
    return match & ((1u << MATCH_LENGTH_SHIFT) - 1);
}

DEVICE_FN uint32_t match_length(uint32_t match) {
    return match >> MATCH_LENGTH_SHIFT;
}

struct eight_bytes {
    uint32_t low, high;
};

/* Here the part is not padded: words follow each other. */
DEVICE_FN struct eight_bytes eight_bytes_at(const struct zstd_encode_shared *shared,
                                            uint32_t position) {
    const uint32_t *words = shared->bytes + position / 4, shift = 8 * (position % 4);
    const struct eight_bytes eight = {funnel_right(words[0], words[1], shift),
                                      funnel_right(words[1], words[2], shift)};
    return eight;
}

DEVICE_FN uint32_t four_bytes_at(const struct zstd_encode_shared *shared, uint32_t position) {
    return eight_bytes_at(shared, position).low;
}

/* How many leading bytes are equal, 0 to 8. */
DEVICE_FN uint32_t count_equal_bytes(struct eight_bytes a, struct eight_bytes b) {
    const uint32_t low = a.low ^ b.low, high = a.high ^ b.high;
    return (trailing_zeros(low != 0 ? low : high) + (low != 0 ? 0 : 32)) / 8;
}

/* Multiplicative hashes; the factors are primes. */
DEVICE_FN uint32_t hash_four(uint32_t four) {
    return four * 0x9E3779B1u >> (32 - HASH_BITS);
}

/* Of six bytes: the first four, and those from the third on. */
DEVICE_FN uint32_t hash_six(uint32_t four, uint32_t four_from_third) {
    return ((four * 0x9E3779B1u) ^ four_from_third) * 0x85EBCA77u >> (32 - HASH_BITS);
}

DEVICE_FN void clear_hash_tables(struct zstd_encode_shared *shared) {
    for (uint32_t i = thread_index(); i < 2 << HASH_BITS; i += PART_THREADS)
        shared->u.hash_tables[i] = 0;
    sync_block();
}

/* ---- is a search worth its time? ------------------------------------------------------------ */

/* SEARCH_MAYBE: parse with and without, keep the cheaper. SEARCH_SURELY: parse with it only. */
enum search_gain { SEARCH_NEVER, SEARCH_MAYBE, SEARCH_SURELY };

/*
 * Counts keys in the first quarter of the part: those outside runs (`keys`), those that occurred
 * before (`repeated`), and among them those that no raster distance matches (`elsewhere`). In byte
 * planes most repeated keys are chance, and a raster distance is as good.
 */
DEVICE_FN enum search_gain estimate_search_gain(struct zstd_encode_shared *shared,
                                                const struct encode_part *part) {
    const uint32_t sample = part->distances[PREVIOUS_SAMPLE], row = part->distances[PREVIOUS_ROW];
    uint32_t *table = shared->u.hash_tables, keys = 0, repeated = 0, elsewhere = 0;
    clear_hash_tables(shared);
    for (uint32_t at = thread_index(); at < SAMPLE_BYTES; at += PART_THREADS) {
        const uint32_t here = HISTORY_BYTES + at, four = four_bytes_at(shared, here);
        const uint32_t hash = hash_four(four);
        const bool is_key =
            at > 0 && at + KEY_BYTES <= part->bytes && four_bytes_at(shared, here - 1) != four;
        const uint32_t position = is_key ? table[hash] : 0;
        keys += sync_block_count(is_key);
        if (is_key)
            atomic_max(&table[hash], here);
        const bool is_repeated = position > 0 && four_bytes_at(shared, position) == four;
        repeated += sync_block_count(is_repeated);
        elsewhere += is_repeated && four_bytes_at(shared, here - min_u32(sample, at)) != four &&
                     four_bytes_at(shared, here - min_u32(row, at)) != four;
    }
    block_scan(shared->warp_sums, elsewhere, &elsewhere);
    if (!part->has_byte_planes && 4 * elsewhere >= keys && elsewhere > 0)
        return SEARCH_SURELY;
    return (part->has_byte_planes ? 4 : 32) * repeated >= keys && repeated > 0 ? SEARCH_MAYBE
                                                                               : SEARCH_NEVER;
}

/* ---- the search ----------------------------------------------------------------------------- */

/* The look-up of one position. */
struct hash_probe {
    struct eight_bytes bytes;
    uint32_t hash, long_hash;
    uint32_t entry, long_entry;
    bool is_key; /* not inside a run, and not too close to an end */
};

DEVICE_FN struct hash_probe hash_position(const struct zstd_encode_shared *shared,
                                          uint32_t position, uint32_t begin, uint32_t end) {
    const uint32_t before = position > 0 ? position - 1 : 0, shift = 8 * (before % 4);
    const uint32_t *words = shared->bytes + before / 4, last = words[2];
    const uint32_t low = funnel_right(words[0], words[1], shift),
                   middle = funnel_right(words[1], last, shift), high = last >> shift;
    struct hash_probe probe;
    probe.bytes.low = funnel_right(low, middle, 8);
    probe.bytes.high = funnel_right(middle, high, 8);
    probe.hash = hash_four(probe.bytes.low);
    probe.long_hash =
        hash_six(probe.bytes.low, funnel_right(probe.bytes.low, probe.bytes.high, 16));
    probe.is_key = position > begin && position + LONG_KEY_BYTES <= end && low != probe.bytes.low;
    return probe;
}

enum {
    PROBE_CANDIDATES = 4, /* two positions in each of two entries */
    COMPARED_BYTES = sizeof(struct eight_bytes),
    PROBES_AT_ONCE = 2 /* of a thread, to overlap their loads */
};

/* The best of the four candidates, or 0. A longer match wins, but one that is more than eight times
 * as far must be two bytes longer. All candidates are loaded before the first is used. */
DEVICE_FN uint32_t find_best_match(const struct zstd_encode_shared *shared,
                                   const struct hash_probe *probe, uint32_t position,
                                   uint32_t end) {
    const uint32_t positions[PROBE_CANDIDATES] = {probe->long_entry >> 16, probe->entry >> 16,
                                                  probe->entry & 0xFFFF,
                                                  probe->long_entry & 0xFFFF};
    const uint32_t max_length = min_u32(COMPARED_BYTES, end - position);
    struct eight_bytes candidates[PROBE_CANDIDATES];
    uint32_t best_distance = 0, best_length = KEY_BYTES - 1;
    UNROLL
    for (uint32_t i = 0; i < PROBE_CANDIDATES; i++)
        candidates[i] = eight_bytes_at(shared, positions[i] > 0 ? positions[i] - 1 : 0);
    UNROLL
    for (uint32_t i = 0; i < PROBE_CANDIDATES; i++) {
        const uint32_t distance = position + 1 - positions[i];
        const uint32_t length = min_u32(count_equal_bytes(candidates[i], probe->bytes), max_length);
        const bool is_far = best_distance > 0 && distance > 8 * best_distance;
        if (positions[i] > 0 && length > best_length + is_far) {
            best_distance = distance;
            best_length = length;
        }
    }
    if (best_length == COMPARED_BYTES)
        best_length += min_u32(
            count_equal_bytes(eight_bytes_at(shared, position + COMPARED_BYTES),
                              eight_bytes_at(shared, position + COMPARED_BYTES - best_distance)),
            min_u32(SEARCH_LENGTH_MAX, end - position) - COMPARED_BYTES);
    return best_distance > 0 ? best_distance | best_length << MATCH_LENGTH_SHIFT : 0;
}

DEVICE_FN void load_history(struct zstd_encode_shared *shared, const struct encode_part *part) {
    for (uint32_t at = 16 * thread_index(); at < HISTORY_BYTES; at += 16 * PART_THREADS)
        store_words4(shared->bytes + at / 4, load_words4(part->in - HISTORY_BYTES + at));
}

/* Fills `matches` for each byte of the part: distance | length << MATCH_LENGTH_SHIFT; 0: none.
 * Positions of the history are entered in the tables, but have no result. */
DEVICE_FN void search_matches(struct zstd_encode_shared *shared, const struct encode_part *part,
                              bool has_long_keys, uint32_t *matches) {
    const uint32_t begin = part->history > 0 ? 0 : HISTORY_BYTES;
    const uint32_t end = HISTORY_BYTES + part->bytes;
    uint32_t *table = shared->u.hash_tables, *long_table = table + (1 << HASH_BITS);
    if (part->history > 0)
        load_history(shared, part);
    clear_hash_tables(shared);
    for (uint32_t base = begin; base < end; base += PROBES_AT_ONCE * PART_THREADS) {
        struct hash_probe probes[PROBES_AT_ONCE];
        UNROLL
        for (uint32_t i = 0; i < PROBES_AT_ONCE; i++) {
            struct hash_probe *probe = &probes[i];
            const uint32_t position = min_u32(base + i * PART_THREADS + thread_index(), end);
            *probe = hash_position(shared, position, begin, end);
            probe->entry = probe->is_key ? table[probe->hash] : 0;
            probe->long_entry = probe->is_key && has_long_keys ? long_table[probe->long_hash] : 0;
        }
        sync_block();
        UNROLL
        for (uint32_t i = 0; i < PROBES_AT_ONCE; i++) {
            const struct hash_probe *probe = &probes[i];
            const uint32_t position = base + i * PART_THREADS + thread_index();
            if (probe->is_key) {
                atomic_max(&table[probe->hash], (position + 1) << 16 | probe->entry >> 16);
                if (has_long_keys)
                    atomic_max(&long_table[probe->long_hash],
                               (position + 1) << 16 | probe->long_entry >> 16);
            }
            if (position >= HISTORY_BYTES && position < end)
                matches[position - HISTORY_BYTES] = find_best_match(shared, probe, position, end);
        }
        sync_block();
    }
}

#endif
