/*
 * Strides of a deflate block with Huffman codes: what all threads decode at once, one segment each.
 *
 * Two kernels use them. inflate.cu records the tokens of a segment. inflate_few_walk.cu only counts
 * their bytes, and keeps checkpoints from which other thread blocks decode later.
 */
#ifndef COGPU_KERNELS_DEFLATE_INFLATE_STRIDE_H
#define COGPU_KERNELS_DEFLATE_INFLATE_STRIDE_H

#include "kernels/deflate/inflate_checkpoints.h"
#include "kernels/deflate/inflate_header.h"

enum {
    /* Guess for the first deflate block: zlib writes 16384 tokens, here of 8.5 bits. */
    DEFLATE_BLOCK_BITS_GUESS = 16384 * 17 / 2,
    DEFLATE_BLOCKS_FREE = 1024,  /* deflate blocks that are accepted whatever their size */
    BYTES_PER_DEFLATE_BLOCK = 32 /* encoded and decoded together, of all others on average */
};

/* BTYPE (3.2.3). */
enum { BTYPE_STORED, BTYPE_FIXED, BTYPE_DYNAMIC, BTYPE_RESERVED };

/* A stride, after it is decoded. All threads hold the same values, except for `from`. */
struct stride {
    uint32_t from;  /* output position of this thread's tokens */
    uint32_t total; /* bytes of all threads */
    uint32_t last;  /* last thread with tokens */
    bool has_end;   /* it met the end of block */
};

/* From this pass on threads explore, when tokens are counted. */
enum { EXPLORE_PASS = 3 };

/* Decodes a segment per thread, such that each begins where the one before it ends. Thread 0 begins
 * at a true token; the others guess. In each pass a thread compares its start with the exit of the
 * thread before it, and decodes again from there if they differ:
 *
 *     pass 1     thread 0 ---->|  thread 1 ---->|  thread 2 ---->|
 *                              = start of 1?    differs from start of 2: decode 2 again
 *
 * If all agree, all are right, by induction. At least one more thread is right after each pass, so
 * there are at most THREADS + 1 passes; usually one. With checkpoints the first passes are followed
 * by explore_segments. Returns the number of passes, 0 if they do not
 * agree. *last is the last thread whose tokens count: the first that stopped early, if any, since
 * those after it are beyond the end of block, or after tokens that were not recorded. With
 * `checkpoints` tokens are only counted. By all threads. */
DEVICE_FN uint32_t decode_segments(struct inflate_shared *s, const struct inflate_stream *stream,
                                   uint32_t segment_bits, struct token_segment *mine,
                                   struct segment_checkpoints *checkpoints, uint32_t *last,
                                   bool *has_end) {
    uint32_t thread = thread_index(), start = stream->bit - stream->staged + thread * segment_bits;
    bool must_decode = true;
    mine->from = start;
    mine->to = start + segment_bits;
    if (thread > 0)
        mine->from = synchronize_segment(
            s, start - min_u32(thread * segment_bits, s->tuning.lead_in_bits), start);
    for (uint32_t passes = 1; passes <= THREADS + EXPLORE_PASS; passes++) {
        if (must_decode && checkpoints)
            count_segment(s, mine, segment_bits, passes > 1, checkpoints);
        else if (must_decode)
            decode_segment(s, mine, stream->records);
        uint32_t stopped = warp_ballot(mine->is_stopped), ends = warp_ballot(mine->has_end);
        if (lane_index() == 0) {
            uint32_t first = trailing_zeros(stopped);
            s->first_stop[warp_index()] =
                stopped ? 2 * (thread + first) + (ends >> first & 1) : 2 * THREADS;
        }
        s->exits[thread] = mine->exit;
        sync_block();
        uint32_t first_stop = 2 * THREADS;
        for (uint32_t i = 0; i < WARPS; i++)
            first_stop = min_u32(first_stop, s->first_stop[i]);
        *has_end = first_stop & 1;
        *last = min_u32(first_stop / 2, THREADS - 1);
        must_decode = thread > 0 && thread <= *last && mine->from != s->exits[thread - 1];
        uint32_t from = must_decode ? s->exits[thread - 1] : mine->from;
        if (checkpoints && passes >= EXPLORE_PASS) {
            from = mine->from;
            must_decode =
                explore_segments(s, checkpoints, mine, stream->bit - stream->staged, segment_bits,
                                 passes == EXPLORE_PASS, must_decode, &from);
        }
        mine->from = from;
        if (!sync_block_or(must_decode))
            return passes;
    }
    return 0;
}

/* Sum of the values of all threads before this one; *total is the sum of all. By all threads. */
DEVICE_FN uint32_t exclusive_sum(struct inflate_shared *s, uint32_t value, uint32_t *total) {
    uint32_t sum = warp_scan(value);
    if (lane_index() == WARP - 1)
        s->sums[warp_index()] = sum;
    sync_block();
    sum -= value;
    *total = 0;
    for (uint32_t i = 0; i < WARPS; i++) {
        if (i == warp_index())
            sum += *total;
        *total += s->sums[i];
    }
    sync_block();
    return sum;
}

/* Bits of a segment in the next stride: as many strides as the deflate block is expected to need,
 * of equal size. An odd number of bytes: whole bytes, so that segments begin at tokens if all codes
 * have 8 bits; odd, so that the threads of a warp load from different banks of shared memory. */
DEVICE_FN uint32_t choose_segment_bits(uint32_t bits_left, uint32_t segment_bits_max) {
    uint32_t strides = bits_left / (THREADS * segment_bits_max) + 1;
    uint32_t bits = ((bits_left / strides / THREADS + 8) & ~15u) + 8;
    return bits < SEGMENT_BITS_MIN ? SEGMENT_BITS_MIN : min_u32(bits, SEGMENT_BITS_MAX);
}

/* Adapts segments and lead-in after a stride of so many passes. `bits_of_last`: length of the last
 * segment, which `is_stopped` if its records were full. Segments become shorter at once and longer
 * slowly; the lead-in grows faster than it becomes shorter. */
DEVICE_FN struct inflate_tuning adapt_tuning(struct inflate_tuning tuning, uint32_t passes,
                                             uint32_t bits_of_last, bool is_stopped) {
    if (is_stopped)
        tuning.segment_bits_max = bits_of_last - bits_of_last / 8;
    else
        tuning.segment_bits_max =
            min_u32(tuning.segment_bits_max + tuning.segment_bits_max / 16, SEGMENT_BITS_MAX);
    if (passes > 1) /* a second pass costs about as much as the lead-in */
        tuning.lead_in_bits = min_u32(tuning.lead_in_bits + 64, LEAD_IN_BITS_MAX);
    else
        tuning.lead_in_bits -= min_u32(32, tuning.lead_in_bits - LEAD_IN_BITS_MIN);
    return tuning;
}

/* Decodes the tokens of the next stride of a deflate block that began at bit `begin`, or counts
 * them, if there are `checkpoints`. Returns a block status. By all threads. */
DEVICE_FN uint32_t decode_stride(struct inflate_shared *s, struct inflate_stream *stream,
                                 uint32_t begin, struct token_segment *mine,
                                 struct segment_checkpoints *checkpoints, struct stride *stride) {
    /* A deflate block is expected to be up to a sixteenth longer than the one before it. */
    uint32_t done = stream->bit - begin, expected = s->tuning.deflate_block_bits / 16 * 17, last;
    bool has_end;
    uint32_t left = expected > done ? expected - done : done / 4;
    uint32_t segment_bits = choose_segment_bits(min_u32(left, s->input.bit_end - stream->bit),
                                                s->tuning.segment_bits_max);
    need_bits(s, stream, THREADS * segment_bits + OVERRUN_BITS);
    uint32_t passes = decode_segments(s, stream, segment_bits, mine, checkpoints, &last, &has_end);
    if (passes == 0)
        return COGPU_GPU_UNSUPPORTED;
    uint32_t last_begin = stream->bit + last * segment_bits;
    stream->bit = stream->staged + s->exits[last];
    if (thread_index() == 0) {
        s->tuning = adapt_tuning(s->tuning, passes, stream->bit - last_begin,
                                 last < THREADS - 1 && !has_end);
        if (has_end)
            s->tuning.deflate_block_bits = stream->bit - begin;
    }
    begin_stage(s, stream);
    if (thread_index() > last) {
        mine->bytes = mine->records = 0;
        mine->is_bad = false;
    }
    stride->from = stream->produced + exclusive_sum(s, mine->bytes, &stride->total);
    stride->last = last;
    stride->has_end = has_end;
    return sync_block_or(mine->is_bad) ? COGPU_GPU_MALFORMED : COGPU_GPU_DECODED;
}

/* Stored block (3.2.4): LEN and its complement at the next byte boundary, then LEN bytes. */
DEVICE_FN uint32_t parse_stored_block(const struct inflate_shared *s, struct inflate_stream *stream,
                                      const uint8_t **stored, uint32_t *total) {
    stream->bit = (stream->bit + 7) & ~7u;
    uint32_t lengths = peek_bits_at(s->stage, stream->bit - stream->staged);
    *total = lengths & 0xFFFF;
    stream->bit += 32;
    if ((lengths ^ lengths >> 16 ^ 0xFFFF) & 0xFFFF)
        return COGPU_GPU_MALFORMED;
    if (stream->bit > s->input.bit_end || *total > (s->input.bit_end - stream->bit) / 8)
        return COGPU_GPU_TRUNCATED;
    *stored = s->input.quads + stream->bit / 8;
    stream->bit += 8 * *total;
    return COGPU_GPU_DECODED;
}

#endif
