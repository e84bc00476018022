/*
 * Checkpoints in the bitstream of sequences (RFC 8878, 3.1.1.3.2.1.2): the half of the streams
 * kernel that follows FSE states.
 *
 * In the bitstream of a zstd block each sequence depends on the states of the one before. This
 * chain is the longest serial path of the decoder, so nothing else is done on it: a chain skips
 * over extra bits, follows the three states and stores a checkpoint at every seventh sequence. From
 * those checkpoints the execute kernel decodes all sequences again, thousands of threads in
 * parallel.
 *
 *     bits of one sequence, in the order in which they are read (3.1.1.3.2.1.2):
 *     | offset extra | match extra | length extra | length state | match state | offset state |
 *     ^ position of a checkpoint                   ^ bits of the next states
 *
 * A warp runs 16 chains, two lanes each (or 8 with four lanes: zstd_decode_streams.h). The lanes of
 * a chain compute the same; they share the copies into the ring of 64 words that holds the chain's
 * bitstream around its position. Table entries of the chains are interleaved (entry, chain), so
 * that no two chains use the same bank.
 *
 * A step is 31 instructions. What counts is the latency from one table look-up to the next: add the
 * entries, shift past the extra bits, shift past the other states' bits, combine baseline and bits,
 * compute the address. Therefore
 * - states are kept as addresses in shared memory, scaled by STATE_STRIDE_BYTES;
 * - the position is kept negative (`minus_bit`), so that bits read are added to it;
 * - refills and checkpoints have no branches and come between steps, where the chain waits anyway;
 * - the number of extra bits is checked once for seven steps. If one of them had more than
 *   FAST_EXTRA_BITS_MAX, all seven are done again by the careful path.
 *
 * Bounds. A warp takes as many steps as the longest chain has sequences, rounded up to 14. Shorter
 * chains run on over garbage: any bits lead from a valid entry to a valid state, ring positions are
 * masked, refills stop at the stream's first quad, and checkpoints are stored only
 * below the sequence count. A wrong bitstream is found by the execute kernel.
 */
#ifndef COGPU_KERNELS_ZSTD_ZSTD_DECODE_CHECKPOINTS_H
#define COGPU_KERNELS_ZSTD_ZSTD_DECODE_CHECKPOINTS_H

#include "kernels/zstd/zstd_decode_bits.h"
#include "kernels/zstd/zstd_decode_fse.h"

#ifdef __CUDACC__
/* Address in shared memory as a number, and the word there. Pointers would have their base added at
 * each load. */
DEVICE_FN uint32_t shared_address(const void *shared, const void *at) {
    (void)shared;
    return (uint32_t)__cvta_generic_to_shared(at);
}
DEVICE_FN uint32_t load_shared_word(const void *shared, uint32_t address) {
    uint32_t word;
    (void)shared;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
    return word;
}
/* Predicated store, without a branch. */
DEVICE_FN void store_if(bool is_wanted, uint64_t *to, uint32_t index, uint32_t low, uint32_t high) {
    asm volatile(
        "{ .reg .pred p; setp.ne.u32 p, %0, 0; @p st.global.v2.u32 [%1], {%2, %3}; }" ::"r"(
            (uint32_t)is_wanted),
        "l"(to + index), "r"(low), "r"(high)
        : "memory");
}
/* Adds the two low bytes of a word, in one instruction. */
DEVICE_FN uint32_t add_low_two_bytes(uint32_t value, uint32_t word) {
    return __dp4a(word, 0x0101u, value);
}
#else
DEVICE_FN uint32_t shared_address(const void *shared, const void *at) {
    return (uint32_t)((const uint8_t *)at - (const uint8_t *)shared);
}
DEVICE_FN uint32_t load_shared_word(const void *shared, uint32_t address) {
    return load_u32_aligned((const uint8_t *)shared + address);
}
DEVICE_FN void store_if(bool is_wanted, uint64_t *to, uint32_t index, uint32_t low, uint32_t high) {
    if (is_wanted)
        to[index] = (uint64_t)high << 32 | low;
}
DEVICE_FN uint32_t add_low_two_bytes(uint32_t value, uint32_t word) {
    return value + (word & 255) + (word >> 8 & 255);
}
#endif

/* Zstd blocks per warp. */
#ifndef ZSTD_CHAINS
#define ZSTD_CHAINS 16
#endif
enum {
    CHAINS = ZSTD_CHAINS,
    LANES_PER_CHAIN = WARP / CHAINS,
    CHAIN_RING_WORDS = 64,
    CHAIN_RING_QUADS = CHAIN_RING_WORDS / 4
};
/* Global memory is so far away that one refill serves two checkpoints. A sequence of the fast path
 * takes at most 8 bytes, so 14 of them take at most half a ring. The careful path refills at each
 * step. */
enum {
    CHECKPOINTS_PER_REFILL = 2,
    REFILL_QUADS = CHAIN_RING_QUADS / 2,
    REFILL_QUADS_PER_LANE = REFILL_QUADS / LANES_PER_CHAIN
};
/* Distance in shared memory from one entry of a chain's table to the next. */
enum { STATE_STRIDE_BYTES = 4 * CHAINS };

struct chains_shared {
    uint32_t tables[FSE_SET_ENTRIES][CHAINS];
    /* Of each chain: 4 words that repeat the ring's last quad, then the ring. The repeat lets three
     * words be loaded downwards from any position without wrapping. */
    uint32_t rings[CHAINS][CHAIN_RING_WORDS + 4];
};

/* Decoder state of a chain. The three states are addresses of entries in the first table; the other
 * tables are at constant distances from it. */
struct state_chain {
    uint32_t minus_bit; /* minus the `bit` of struct backward_bits */
    uint32_t length_state, match_state, offset_state;
    uint32_t first_state; /* address of state 0 */
    uint32_t ring;        /* address of the ring */
    const uint8_t *base;  /* of the bitstream: struct backward_bits */
    int32_t loaded_from;  /* lowest quad of the bitstream in the ring */
    uint32_t count;       /* sequences */
    uint32_t accuracy_logs[ZSTD_CODE_KINDS];
};

/* Copies a table from the pool to shared memory. By the lanes of a chain. */
DEVICE_FN void copy_fse_table(const struct zstd_args *args, struct chains_shared *shared,
                              uint32_t tables_at, uint32_t kind, uint32_t chain,
                              uint32_t chain_lane, uint32_t *accuracy_log) {
    const uint32_t *tables = (const uint32_t *)pool_at(args, tables_at);
    uint32_t first_word = FSE_LOG_WORDS + fse_table_start(kind);
    *accuracy_log = min_u32(tables[kind], ACCURACY_LOG_MAX);
    UNROLL_BY_4
    for (uint32_t i = 4 * chain_lane; i < 1u << *accuracy_log; i += 4 * LANES_PER_CHAIN) {
        words4 entries = load_words4(tables + first_word + i);
        uint32_t(*to)[CHAINS] = &shared->tables[first_word - FSE_LOG_WORDS + i];
        to[0][chain] = entries.x;
        to[1][chain] = entries.y;
        to[2][chain] = entries.z;
        to[3][chain] = entries.w;
    }
}

/* The 64 bits below a position. ~(-bit >> 3) is (bit - 1) / 8: the byte of the next bit to read. */
DEVICE_FN void load_64_bits(const struct chains_shared *shared, uint32_t ring, uint32_t minus_bit,
                            uint32_t *high, uint32_t *low) {
    uint32_t address = (~(minus_bit >> 3) & (4 * CHAIN_RING_WORDS - 4)) + ring;
    uint32_t a = load_shared_word(shared, address), b = load_shared_word(shared, address - 4),
             c = load_shared_word(shared, address - 8);
    *high = funnel_left(b, a, minus_bit);
    *low = funnel_left(c, b, minus_bit);
}

/* Address of the state after `entry`, with the next bits at the top of `word`. */
DEVICE_FN uint32_t next_state_address(const struct state_chain *c, uint32_t entry, uint32_t word) {
    return funnel_left(word, entry >> FSE_BASELINE_SHIFT, entry >> FSE_STATE_BITS_SHIFT) *
               STATE_STRIDE_BYTES +
           c->first_state;
}

/* Moves from one sequence to the next. Returns the sum of the entries. Unless `is_careful`, the
 * extra bits must be at most FAST_EXTRA_BITS_MAX. */
DEVICE_FN uint32_t step_chain(const struct chains_shared *shared, struct state_chain *c,
                              bool is_careful) {
    uint32_t length = load_shared_word(shared, c->length_state);
    uint32_t match =
        load_shared_word(shared, c->match_state + FSE_MATCH_START * STATE_STRIDE_BYTES);
    uint32_t offset =
        load_shared_word(shared, c->offset_state + FSE_OFFSET_START * STATE_STRIDE_BYTES);
    uint32_t high, low, sum = length + match + offset;
    if (is_careful) {
        load_64_bits(shared, c->ring, c->minus_bit + fse_extra_bits(sum), &high, &low);
    } else {
        load_64_bits(shared, c->ring, c->minus_bit, &high, &low);
        high = funnel_left(low, high, sum >> FSE_EXTRA_SHIFT);
    }
    /* The top bits of `high` are now the bits of the next states, in the order of the RFC: literals
     * length, match length, offset. */
    c->minus_bit = add_low_two_bytes(c->minus_bit, sum);
    uint32_t length_bits = length >> FSE_STATE_BITS_SHIFT,
             match_bits = match >> FSE_STATE_BITS_SHIFT;
    c->length_state = next_state_address(c, length, high);
    c->match_state = next_state_address(c, match, funnel_left(0, high, length_bits));
    c->offset_state = next_state_address(c, offset, funnel_left(0, high, length_bits + match_bits));
    return sum;
}

/* Starts asynchronous copies of the quads below those in the ring, as many as fit if nothing above
 * `minus_bit` is needed any more. finish_refill completes them. */
DEVICE_FN void start_refill(uint32_t *ring, struct state_chain *c, uint32_t minus_bit,
                            uint32_t chain_lane) {
    int32_t bit = -(int32_t)minus_bit;
    int32_t lowest = (bit >> 7) - (CHAIN_RING_QUADS - 1), end = c->loaded_from - REFILL_QUADS;
    lowest = lowest < 0 ? 0 : lowest;
    end = end < lowest ? lowest : end;
    UNROLL
    for (int32_t i = 0; i < REFILL_QUADS_PER_LANE; i++) {
        int32_t quad = c->loaded_from - 1 - (int32_t)chain_lane - i * LANES_PER_CHAIN;
        uint32_t at = (uint32_t)quad % CHAIN_RING_QUADS;
        const uint8_t *from = c->base + (uint32_t)quad * (size_t)ZSTD_QUAD;
        if (quad >= end)
            copy_to_shared_16(ring + 4 + 4 * at, from);
        if (quad >= end && at == CHAIN_RING_QUADS - 1)
            copy_to_shared_16(ring, from);
    }
    /* The quads span two cache lines at most: each lane prefetches one. */
    prefetch_quad(c->base, chain_lane ? end : c->loaded_from);
    c->loaded_from = c->loaded_from < end ? c->loaded_from : end;
    copies_commit();
}

/* By all lanes of the warp: after it all lanes of a chain see the copies, and all have read the
 * words that the next copies overwrite. */
DEVICE_FN void finish_refill(void) {
    copies_wait();
    sync_warp();
}

/* Copies the tables and finds the bitstream. By the lanes of a chain. */
DEVICE_FN void open_chain(const struct zstd_args *args, struct chains_shared *shared,
                          const struct zstd_block *block, uint32_t chain_lane, uint32_t chain,
                          struct state_chain *c) {
    struct backward_bits in = open_backward_bits(
        args->stored + block->body + block->bitstream_offset, block->bitstream_bytes);
    for (uint32_t kind = 0; kind < ZSTD_CODE_KINDS; kind++)
        copy_fse_table(args, shared, block->fse_tables[kind], kind, chain, chain_lane,
                       &c->accuracy_logs[kind]);
    c->base = in.base;
    c->minus_bit = 0 - (uint32_t)in.bit;
    c->count = block->sequences;
}

/* Fills the ring and reads the initial states: literals length, offset, match length. By a warp. */
DEVICE_FN void start_chain(struct chains_shared *shared, struct state_chain *c, uint32_t chain,
                           uint32_t chain_lane) {
    uint32_t high, low, *ring = shared->rings[chain];
    const uint32_t *accuracy_logs = c->accuracy_logs;
    c->loaded_from = (-(int32_t)c->minus_bit >> 7) + 1;
    c->first_state = shared_address(shared, &shared->tables[0][chain]);
    c->ring = shared_address(shared, ring + 4);
    for (uint32_t i = 0; i < CHAIN_RING_QUADS / REFILL_QUADS; i++)
        start_refill(ring, c, c->minus_bit, chain_lane);
    finish_refill();
    load_64_bits(shared, c->ring, c->minus_bit, &high, &low);
    c->length_state =
        funnel_left(high, 0, accuracy_logs[ZSTD_LITERALS_LENGTH]) * STATE_STRIDE_BYTES +
        c->first_state;
    high = funnel_left(0, high, accuracy_logs[ZSTD_LITERALS_LENGTH]);
    c->offset_state =
        funnel_left(high, 0, accuracy_logs[ZSTD_OFFSET]) * STATE_STRIDE_BYTES + c->first_state;
    high = funnel_left(0, high, accuracy_logs[ZSTD_OFFSET]);
    c->match_state = funnel_left(high, 0, accuracy_logs[ZSTD_MATCH_LENGTH]) * STATE_STRIDE_BYTES +
                     c->first_state;
    c->minus_bit += accuracy_logs[0] + accuracy_logs[1] + accuracy_logs[2];
    sync_warp();
}

/* The next seven sequences with a refill for each, and a second load after the extra bits. By a
 * warp. */
DEVICE_FN void redo_steps_carefully(struct chains_shared *shared, struct state_chain *c,
                                    uint32_t chain, uint32_t chain_lane) {
    finish_refill();
    for (uint32_t i = 0; i < ZSTD_SEQUENCES_PER_CHECKPOINT; i++) {
        step_chain(shared, c, true);
        sync_warp();
        start_refill(shared->rings[chain], c, c->minus_bit, chain_lane);
        finish_refill();
    }
}

/* The next seven sequences of all chains of the warp; chains that have ended (`is_over`) run on
 * over garbage. A refill is started after the second step, so that it runs while the chain waits.
 */
DEVICE_FN void step_to_checkpoint(struct chains_shared *shared, struct state_chain *c, bool is_over,
                                  bool with_refill, uint32_t chain, uint32_t chain_lane) {
    struct state_chain before = *c;
    uint32_t all_extra_bits = 0;
    UNROLL
    for (uint32_t i = 0; i < ZSTD_SEQUENCES_PER_CHECKPOINT; i++) {
        all_extra_bits |= step_chain(shared, c, false);
        if (with_refill && i == 1)
            start_refill(shared->rings[chain], c, before.minus_bit, chain_lane);
    }
    if (warp_any(all_extra_bits & EXTRA_BITS_OVERFLOW && !is_over)) {
        *c = before;
        redo_steps_carefully(shared, c, chain, chain_lane);
    }
}

/* Writes the checkpoints of up to CHAINS zstd blocks from `first` on. By a warp. */
DEVICE_FN void checkpoint_sequences(const struct zstd_args *args, struct chains_shared *shared,
                                    uint32_t first, uint32_t count) {
    uint32_t lane = lane_index(), chain = lane % CHAINS, chain_lane = lane / CHAINS;
    const struct zstd_block *block = &args->blocks[min_u32(first + chain, count - 1)];
    struct state_chain c;
    /* One lane decides for all: another thread block may refuse the TIFF block at this moment. */
    bool is_live =
        first + chain < count && block->sequences && !is_refused(args, block->tiff_block);
    is_live = warp_read(is_live, chain);
    c.base = args->pool;
    c.minus_bit = 0;
    c.count = c.accuracy_logs[0] = c.accuracy_logs[1] = c.accuracy_logs[2] = 0;
    if (is_live)
        open_chain(args, shared, block, chain_lane, chain, &c);
    else if (chain_lane == 0) /* a table of one state that leads to itself */
        shared->tables[0][chain] = shared->tables[FSE_MATCH_START][chain] =
            shared->tables[FSE_OFFSET_START][chain] = 0;
    uint32_t count_max = warp_max(c.count);
    uint64_t *checkpoints = is_live ? (uint64_t *)pool_at(args, block->checkpoints) : NULL;
    sync_warp();
    start_chain(shared, &c, chain, chain_lane);
    for (uint32_t at = 0, checkpoint = 0; at < count_max;) {
        UNROLL
        for (uint32_t i = 0; i < CHECKPOINTS_PER_REFILL;
             i++, at += ZSTD_SEQUENCES_PER_CHECKPOINT, checkpoint++) {
            uint32_t states =
                (c.length_state - c.first_state) / STATE_STRIDE_BYTES |
                (c.match_state - c.first_state) / STATE_STRIDE_BYTES << CHECKPOINT_MATCH_SHIFT |
                (c.offset_state - c.first_state) / STATE_STRIDE_BYTES << CHECKPOINT_OFFSET_SHIFT;
            bool is_over = at >= c.count;
            store_if(chain_lane == 0 && !is_over, checkpoints, checkpoint, 0 - c.minus_bit, states);
            step_to_checkpoint(shared, &c, is_over, i == 0, chain, chain_lane);
        }
        finish_refill();
    }
}

#endif
