/*
 * Deflate blocks (RFC 1951, 3.2.3): stored, or tokens under fixed or dynamic Huffman codes.
 *
 * A stride is what all threads decode at once: one segment each. Its steps, and the threads that
 * take part:
 *
 *     need_bits         stage of encoded bits              all, barrier if it must be loaded
 *     decode_segments   until all threads agree            all, two barriers per pass
 *     begin_stage       copies for the next stride         asynchronous, await_stage at the end
 *     exclusive_sum     output position of each segment    all, two barriers
 *     output_bytes      records to slots, full slices out  all, barriers of the slice
 */
#ifndef COGPU_KERNELS_DEFLATE_INFLATE_BLOCK_H
#define COGPU_KERNELS_DEFLATE_INFLATE_BLOCK_H

#include "kernels/deflate/inflate_header.h"
#include "kernels/deflate/inflate_slice.h"
#include "kernels/deflate/inflate_tokens.h"

/* Reads the codes of a deflate block and builds its tables. One warp reads the header, while the
 * others flush the slice. False if the header is malformed. By all threads. */
DEVICE_FN bool begin_coded_block(struct inflate_shared *s, struct inflate_stream *stream,
                                 bool is_fixed) {
    if (is_fixed && s->has_fixed_codes)
        return true;
    uint32_t bytes = stream->produced - stream->slice_start;
    sync_block();
    if (warp_index() > 0) {
        flush_slice(s, stream, team_from(1), bytes, false);
    } else {
        uint32_t end = read_block_codes(s, stream->bit - stream->staged, is_fixed);
        if (lane_index() == 0) {
            s->header_end = end;
            s->has_fixed_codes = is_fixed;
        }
    }
    stream->slice_start += bytes / VECTOR * VECTOR;
    sync_block();
    stream->bit = stream->staged + s->header_end;
    if (s->header_end == 0)
        return false;
    build_tables(s);
    return true;
}

/* Decodes a segment per thread, such that each begins where the one before it ends. Thread 0 begins
 * at a true token; the others guess. In each pass a thread compares its start with the exit of the
 * thread before it, and decodes again from there if they differ:
 *
 *     pass 1     thread 0 ---->|  thread 1 ---->|  thread 2 ---->|
 *                              = start of 1?    differs from start of 2: decode 2 again
 *
 * If all agree, all are right, by induction. At least one more thread is right after each pass, so
 * there are at most THREADS + 1 passes; usually one. Returns the number of passes, 0 if they do not
 * agree. *last is the last thread whose tokens count: the first that stopped early, if any, since
 * those after it are beyond the end of block, or after tokens that were not recorded. By all
 * threads. */
DEVICE_FN uint32_t decode_segments(struct inflate_shared *s, const struct inflate_stream *stream,
                                   uint32_t segment_bits, struct token_segment *mine,
                                   uint32_t *last, bool *has_end) {
    uint32_t thread = thread_index(), start = stream->bit - stream->staged + thread * segment_bits;
    bool must_decode = true;
    mine->from = start;
    mine->to = start + segment_bits;
    if (thread > 0)
        mine->from = synchronize_segment(
            s, start - min_u32(thread * segment_bits, s->tuning.lead_in_bits), start);
    for (uint32_t passes = 1; passes <= THREADS + 1; passes++) {
        if (must_decode)
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
        if (must_decode)
            mine->from = s->exits[thread - 1];
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

/* Writes stored bytes to slots, those that are in the slice. `first` is the position of the first
 * one. By all threads. */
DEVICE_FN void copy_stored_bytes(struct inflate_shared *s, const struct inflate_stream *stream,
                                 const uint8_t *stored, uint32_t first) {
    uint32_t from = first > stream->slice_start ? first : stream->slice_start;
    uint32_t to = min_u32(stream->produced, stream->slice_start + SLICE_BYTES);
    for (uint32_t i = from + thread_index(); i < to; i += THREADS)
        s->slots[i - stream->slice_start] = (uint16_t)(LITERAL_SLOT | stored[i - first]);
}

/* Writes `total` bytes to slots and flushes full slices: bytes of a stored block, or, if `stored`
 * is NULL, the tokens of all threads, where `from` is the position of this thread's. False if a
 * distance is too large. By all threads. */
DEVICE_FN bool output_bytes(struct inflate_shared *s, struct inflate_stream *stream, uint32_t total,
                            const uint8_t *stored, const struct token_segment *mine,
                            uint32_t from) {
    uint32_t first = stream->produced, to = from + mine->bytes;
    stream->produced += total;
    for (;;) {
        uint32_t slice = stream->slice_start;
        bool is_good = true;
        if (stored)
            copy_stored_bytes(s, stream, stored, first);
        else if (from < slice + SLICE_BYTES && to > slice)
            is_good =
                write_slots(s, stream->records, mine->records, slice, (int32_t)(from - slice));
        if (sync_block_or(!is_good))
            return false;
        if (stream->produced - slice < SLICE_BYTES)
            return true;
        flush_slice(s, stream, team_from(0), SLICE_BYTES, false);
        stream->slice_start += SLICE_BYTES;
    }
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

/* Decodes the tokens of the next stride of a deflate block that began at bit `begin`. *from is the
 * output position of this thread's tokens, *total the bytes of all. Returns a block status. By all
 * threads. */
DEVICE_FN uint32_t decode_stride(struct inflate_shared *s, struct inflate_stream *stream,
                                 uint32_t begin, struct token_segment *mine, uint32_t *from,
                                 uint32_t *total, bool *has_end) {
    /* A deflate block is expected to be up to a sixteenth longer than the one before it. */
    uint32_t done = stream->bit - begin, expected = s->tuning.deflate_block_bits / 16 * 17, last;
    uint32_t left = expected > done ? expected - done : done / 4;
    uint32_t segment_bits = choose_segment_bits(min_u32(left, s->input.bit_end - stream->bit),
                                                s->tuning.segment_bits_max);
    need_bits(s, stream, THREADS * segment_bits + OVERRUN_BITS);
    uint32_t passes = decode_segments(s, stream, segment_bits, mine, &last, has_end);
    if (passes == 0)
        return COGPU_GPU_UNSUPPORTED;
    uint32_t last_begin = stream->bit + last * segment_bits;
    stream->bit = stream->staged + s->exits[last];
    if (thread_index() == 0) {
        s->tuning = adapt_tuning(s->tuning, passes, stream->bit - last_begin,
                                 last < THREADS - 1 && !*has_end);
        if (*has_end)
            s->tuning.deflate_block_bits = stream->bit - begin;
    }
    begin_stage(s, stream);
    if (thread_index() > last) {
        mine->bytes = mine->records = 0;
        mine->is_bad = false;
    }
    *from = stream->produced + exclusive_sum(s, mine->bytes, total);
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

/* Decodes a deflate block to its end. Returns a block status. By all threads. */
DEVICE_FN uint32_t decode_deflate_block(struct inflate_shared *s, struct inflate_stream *stream,
                                        bool is_stored) {
    uint32_t begin = stream->bit;
    for (bool has_end = is_stored;;) {
        struct token_segment mine = {0, 0, 0, 0, 0, false, false, false};
        const uint8_t *stored = NULL;
        uint32_t from = 0, total = 0, block_status;
        if (is_stored)
            block_status = parse_stored_block(s, stream, &stored, &total);
        else
            block_status = decode_stride(s, stream, begin, &mine, &from, &total, &has_end);
        if (block_status == COGPU_GPU_DECODED && total > s->input.capacity - stream->produced)
            block_status = COGPU_GPU_TOO_LONG;
        if (block_status == COGPU_GPU_DECODED &&
            !output_bytes(s, stream, total, stored, &mine, from))
            block_status = COGPU_GPU_MALFORMED;
        await_stage();
        if (block_status != COGPU_GPU_DECODED)
            return block_status;
        if (stream->bit > s->input.bit_end)
            return COGPU_GPU_TRUNCATED;
        if (has_end)
            return COGPU_GPU_DECODED;
    }
}

enum {
    /* Guess for the first deflate block: zlib writes 16384 tokens, here of 8.5 bits. */
    DEFLATE_BLOCK_BITS_GUESS = 16384 * 17 / 2,
    DEFLATE_BLOCKS_FREE = 1024,  /* deflate blocks that are accepted whatever their size */
    BYTES_PER_DEFLATE_BLOCK = 32 /* encoded and decoded together, of all others on average */
};

/* BTYPE (3.2.3). */
enum { BTYPE_STORED, BTYPE_FIXED, BTYPE_DYNAMIC, BTYPE_RESERVED };

/* Decodes deflate blocks up to the final one. Each begins with BFINAL (1 bit) and BTYPE (2 bits).
 * Returns a block status. By all threads. */
DEVICE_FN uint32_t decode_deflate_blocks(struct inflate_shared *s, struct inflate_stream *stream) {
    for (uint32_t deflate_blocks = 0;; deflate_blocks++) {
        /* A stream of empty deflate blocks would cost far more time than it has bits. */
        uint32_t bytes = stream->produced + stream->bit / 8;
        if (deflate_blocks > DEFLATE_BLOCKS_FREE + bytes / BYTES_PER_DEFLATE_BLOCK)
            return COGPU_GPU_UNSUPPORTED;
        if (stream->bit >= s->input.bit_end)
            return COGPU_GPU_TRUNCATED;
        need_bits(s, stream, HEADER_BITS);
        uint32_t bits = peek_bits_at(s->stage, stream->bit - stream->staged), type = bits >> 1 & 3;
        const bool is_final = bits & 1;
        stream->bit += 3;
        if (type == BTYPE_RESERVED ||
            (type != BTYPE_STORED && !begin_coded_block(s, stream, type == BTYPE_FIXED)))
            return COGPU_GPU_MALFORMED;
        uint32_t block_status = decode_deflate_block(s, stream, type == BTYPE_STORED);
        if (is_final || block_status != COGPU_GPU_DECODED)
            return block_status;
    }
}

#endif
