/*
 * Mode and median of more than COGPU_DOWNSAMPLE_CANDIDATES samples, up to a million (factor 1024).
 * A block of threads computes one sample. Candidates are numbered row by row over the support;
 * thread t reads numbers t, t + 128, ... They are not stored: the block reads the source again for
 * each step.
 *
 * Median: radix selection, one digit of 8 bits a pass. All threads count digits in shared memory,
 * then warp 0 finds the digit that holds the wanted rank:
 *
 *   digits   | 0 | 1 | 2 | ... | 255 |     counts of keys that begin with `prefix`
 *   rank          ^ falls into digit 1     prefix = prefix:1, rank -= count of digit 0
 *
 * Mode: a hash table with open addressing in shared memory. An entry keeps the number of the first
 * candidate instead of the key, so that it can be claimed by one compare-and-swap. Where the table
 * is too small, keys are divided by the first bits of their hash, and each part is counted alone.
 *
 * Every function with sync_block inside must be called by all threads of the block.
 */
#include "kernels/resample/downsample_select.h"

enum { DIGITS = 256, ENTRIES = 1024, PROBES = 64 };

/* A key: its first candidate (number + 1; 0: the entry is free), its last one, and their count. */
struct table_entry {
    uint32_t first, last, count;
};

struct select_many_shared {
    uint32_t digits[DIGITS];
    struct table_entry entries[ENTRIES];
    uint64_t best[COGPU_DOWNSAMPLE_THREADS];
    uint64_t prefix;
    uint32_t rank;
};

/* The candidates of one sample of the result. */
struct candidates {
    struct band_view view;
    struct support across, down;
    uint32_t width, total;
};

DEVICE_FN bool load_numbered(const struct cogpu_downsample_args *args,
                             const struct candidates *candidates, uint32_t number, uint64_t *key) {
    return load_candidate(args, &candidates->view,
                          candidates->across.begin + number % candidates->width,
                          candidates->down.begin + number / candidates->width, key);
}

/* The number of valid candidates. A collective of the block, like all below but count_candidate. */
DEVICE_FN uint32_t count_candidates(const struct cogpu_downsample_args *args,
                                    const struct candidates *candidates,
                                    struct select_many_shared *shared) {
    uint32_t count = 0;
    uint64_t key;
    if (thread_index() == 0)
        shared->rank = 0;
    sync_block();
    for (uint32_t i = thread_index(); i < candidates->total; i += COGPU_DOWNSAMPLE_THREADS)
        count += load_numbered(args, candidates, i, &key);
    atomic_add(&shared->rank, count);
    sync_block();
    count = shared->rank;
    sync_block();
    return count;
}

/* Appends to the prefix the digit that holds the wanted rank. By one warp: each lane adds up eight
 * counts, and the lane whose counts contain the rank writes. A collective of the warp. */
DEVICE_FN void select_digit(struct select_many_shared *shared) {
    enum { SHARE = DIGITS / WARP };
    const uint32_t *counts = shared->digits + SHARE * lane_index();
    uint32_t rank = shared->rank, own = 0;
    uint64_t prefix = shared->prefix;
    for (uint32_t i = 0; i < SHARE; i++)
        own += counts[i];
    uint32_t end = warp_scan(own), before = end - own;
    sync_warp();
    if (rank < before || rank >= end)
        return;
    uint32_t i = 0;
    for (; i + 1 < SHARE && rank >= before + counts[i]; i++)
        before += counts[i];
    shared->prefix = prefix << 8 | (SHARE * lane_index() + i);
    shared->rank = rank - before;
}

/* The key of this rank among the valid candidates. */
DEVICE_FN uint64_t key_of_rank(const struct cogpu_downsample_args *args,
                               const struct candidates *candidates, uint32_t rank,
                               struct select_many_shared *shared) {
    uint64_t key;
    if (thread_index() == 0) {
        shared->prefix = 0;
        shared->rank = rank;
    }
    for (uint32_t bits = 8 * args->size; bits > 0; bits -= 8) {
        for (uint32_t i = thread_index(); i < DIGITS; i += COGPU_DOWNSAMPLE_THREADS)
            shared->digits[i] = 0;
        sync_block();
        for (uint32_t i = thread_index(); i < candidates->total; i += COGPU_DOWNSAMPLE_THREADS)
            if (load_numbered(args, candidates, i, &key) &&
                (bits == 8 * args->size || key >> bits == shared->prefix))
                atomic_add(&shared->digits[key >> (bits - 8) & (DIGITS - 1)], 1);
        sync_block();
        if (warp_index() == 0)
            select_digit(shared);
        sync_block();
    }
    key = shared->prefix;
    sync_block();
    return key;
}

DEVICE_FN uint64_t select_median(const struct cogpu_downsample_args *args,
                                 const struct candidates *candidates,
                                 struct select_many_shared *shared) {
    uint32_t count = count_candidates(args, candidates, shared);
    if (count == 0)
        return candidates->view.empty;
    uint64_t low = key_of_rank(args, candidates, (count - 1) / 2, shared);
    uint64_t high = count % 2 ? low : key_of_rank(args, candidates, count / 2, shared);
    return median_sample(args, low, high);
}

/* A bijection (the finaliser of SplitMix64): different keys have different hashes. */
DEVICE_FN uint64_t hash_key(uint64_t key) {
    key = (key ^ key >> 30) * 0xBF58476D1CE4E5B9u;
    key = (key ^ key >> 27) * 0x94D049BB133111EBu;
    return key ^ key >> 31;
}

/* Counts a candidate in the table. False: no free entry within PROBES. */
DEVICE_FN bool count_candidate(const struct cogpu_downsample_args *args,
                               const struct candidates *candidates, uint32_t number, uint64_t key,
                               uint64_t hash, struct table_entry *entries) {
    for (uint32_t i = 0; i < PROBES; i++) {
        struct table_entry *entry = entries + (hash + i) % ENTRIES;
        uint32_t first = atomic_compare_exchange(&entry->first, 0, number + 1);
        uint64_t other = key;
        if (first)
            load_numbered(args, candidates, first - 1, &other);
        if (other == key) {
            atomic_add(&entry->count, 1);
            atomic_max(&entry->last, number);
            return true;
        }
    }
    return false;
}

/* Counts the candidates whose hash begins with the `bits` bits of `part`. False: too many different
 * keys. */
DEVICE_FN bool count_part(const struct cogpu_downsample_args *args,
                          const struct candidates *candidates, uint64_t part, uint32_t bits,
                          struct table_entry *entries) {
    const struct table_entry empty = {0, 0, 0};
    bool is_full = false;
    for (uint32_t i = thread_index(); i < ENTRIES; i += COGPU_DOWNSAMPLE_THREADS)
        entries[i] = empty;
    sync_block();
    for (uint32_t i = thread_index(); i < candidates->total && !is_full;
         i += COGPU_DOWNSAMPLE_THREADS) {
        uint64_t key;
        if (!load_numbered(args, candidates, i, &key))
            continue;
        uint64_t hash = hash_key(key);
        if (bits == 0 || hash >> (64 - bits) == part)
            is_full = !count_candidate(args, candidates, i, key, hash, entries);
    }
    return !sync_block_or(is_full);
}

/* Orders entries: by count, and among equal counts the one whose last candidate came earlier. */
DEVICE_FN uint64_t rank_of_entry(const struct table_entry *entry) {
    return entry->count ? (uint64_t)entry->count << 32 | (UINT32_MAX - entry->last) : 0;
}

DEVICE_FN uint64_t max_of_block(uint64_t best, struct select_many_shared *shared) {
    uint32_t me = thread_index();
    shared->best[me] = best;
    for (uint32_t by = COGPU_DOWNSAMPLE_THREADS / 2; by > 0; by /= 2) {
        sync_block();
        if (me < by && shared->best[me + by] > shared->best[me])
            shared->best[me] = shared->best[me + by];
    }
    sync_block();
    best = shared->best[0];
    sync_block();
    return best;
}

/* Parts form a binary tree that is walked depth first: a part that does not fit is halved. */
DEVICE_FN uint64_t select_mode(const struct cogpu_downsample_args *args,
                               const struct candidates *candidates,
                               struct select_many_shared *shared) {
    uint64_t part = 0, best = 0, key = 0;
    uint32_t bits = 0;
    do {
        if (!count_part(args, candidates, part, bits, shared->entries)) {
            part *= 2;
            bits++;
            continue;
        }
        for (uint32_t i = thread_index(); i < ENTRIES; i += COGPU_DOWNSAMPLE_THREADS) {
            uint64_t order = rank_of_entry(&shared->entries[i]);
            best = order > best ? order : best;
        }
        sync_block();
        for (; part % 2; part /= 2)
            bits--;
        part++;
    } while (bits > 0);
    best = max_of_block(best, shared);
    if (best == 0)
        return candidates->view.empty;
    load_numbered(args, candidates, UINT32_MAX - (uint32_t)best, &key);
    return key_to_sample(args->type, key);
}

KERNEL(cogpu_kernel_downsample_select_many, struct cogpu_downsample_args, struct select_many_shared,
       COGPU_DOWNSAMPLE_THREADS, 8) {
    for (uint64_t task = block_index(); task < args->tasks; task += block_count()) {
        uint32_t item = (uint32_t)(task % args->across), column = item / args->unit;
        uint32_t row = args->first + (uint32_t)(task / args->across % args->down);
        uint32_t band = (uint32_t)(task / args->across / args->down) + item % args->unit;
        struct candidates candidates = {view_of_band(args, band), column_support(args, column),
                                        row_support(args, row), 0, 0};
        candidates.width = candidates.across.end - candidates.across.begin;
        candidates.total = candidates.width * (candidates.down.end - candidates.down.begin);
        uint64_t sample = args->method == COGPU_RESAMPLE_MODE ? select_mode(args, &candidates, shared)
                                                     : select_median(args, &candidates, shared);
        if (thread_index() == 0)
            store_sample(target_at(args, &candidates.view, column, row), sample, args->size);
    }
}
