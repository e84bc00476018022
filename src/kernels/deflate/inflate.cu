/*
 * Deflate decoder: zlib streams (RFC 1950, RFC 1951), one per TIFF block, each by one thread block.
 *
 * In a deflate stream the position of a token follows from the one before it. The decoder uses that
 * Huffman codes synchronise themselves: a decoder that starts at a wrong bit soon decodes true
 * tokens. All 256 threads decode at once, each a segment of the bits:
 *
 *     bits       |  segment 0  |  segment 1  |  segment 2  |  ...  |  segment 255  |   one stride
 *     thread 0    ============>
 *     thread 1         ~~~~~~~~=============>               ~ lead-in: tokens are not recorded
 *     thread 2                      ~~~~~~~~=============>  = tokens of the segment, recorded
 *
 * 1. Each thread starts some hundred bits before its segment, where it decodes garbage at first
 *    and true tokens after a while (synchronize_segment). From its segment's first token on it
 *    records what it decodes (decode_segment).
 * 2. Each thread compares its start with the end of the segment before it. Those that differ
 *    decode again from there (decode_segments). Thread 0 starts at a true token, so if all agree,
 *    all are right: the comparison proves every guess, and no result depends on chance.
 * 3. A prefix sum of the decoded bytes gives every thread its output position. Records become
 *    16-bit slots of a slice of the output in shared memory (write_slots).
 * 4. Matches are resolved for all bytes of the slice at once. The slice is written to the output
 *    and added to the Adler-32 (inflate_slice.h).
 *
 * Memory of a thread block:
 *
 *     shared    slots 24 KiB | stage: encoded bits of a stride, 13 KiB | tables 12 KiB | codes
 *     scratch   96 token records of 16 bits per thread, interleaved
 *
 * Thread blocks take TIFF blocks from a work queue (args->next_block), the largest first.
 *
 * Bounds. Work is linear in encoded and decoded bytes: a stride takes at worst as long as one
 * thread alone, since each pass verifies at least one more segment; a slice is written when it is
 * full; empty deflate blocks are limited by decode_deflate_blocks. Positions in the output are
 * checked against the capacity before slots are written, distances when they are.
 *
 * Refused, for the CPU codec to decide: everything that libdeflate refuses, a stream that is longer
 * than its TIFF block, a second code for a lone symbol, and very many tiny deflate blocks.
 *
 *     inflate_shared.h   memory, encoded bits         inflate_tokens.h   tokens of a segment
 *     inflate_codes.h    codes and tables (3.2.2)     inflate_slice.h    matches, output, Adler-32
 *     inflate_header.h   dynamic codes (3.2.7)        inflate_block.h    strides, deflate blocks
 */
#include "kernels/deflate/inflate_block.h"
#include "kernels/deflate/inflate_zlib.h"

/* Adler-32 of the bytes written. By all threads. */
DEVICE_FN uint32_t finish_adler32(struct inflate_shared *s, const struct inflate_stream *stream) {
    uint32_t sum = warp_sum(stream->sum), weighted = warp_sum(stream->weighted);
    if (lane_index() == 0) {
        s->sums[warp_index()] = sum;
        s->weighted_sums[warp_index()] = weighted;
    }
    sync_block();
    sum = weighted = 0;
    for (uint32_t i = 0; i < WARPS; i++) {
        sum += s->sums[i];
        weighted += s->weighted_sums[i];
    }
    sync_block();
    return adler32_of_sums(stream->produced, sum, weighted);
}

/* Decodes a zlib stream. Returns a block status. By all threads. */
DEVICE_FN uint32_t decode_zlib_stream(struct inflate_shared *s, const cogpu_encoded_block *block,
                                      const uint8_t *stored, uint8_t *decoded, uint16_t *records) {
    const uint8_t *in = stored + block->in;
    /* Bits count from the 16-byte boundary at or before the stream. A stream has 2 bytes of header
     * and 4 of Adler-32 around the deflate data. */
    uint32_t skew = (uint32_t)((uintptr_t)in & 15), in_bytes = block->in_bytes;
    if (in_bytes < 6 || in_bytes > COGPU_GPU_BLOCK_BYTES_MAX ||
        block->capacity > COGPU_GPU_BLOCK_BYTES_MAX)
        return COGPU_GPU_TRUNCATED;
    if (!is_zlib_header(in[0], in[1]))
        return COGPU_GPU_MALFORMED;
    struct inflate_stream stream = {8 * (skew + 2), NOT_STAGED, 0, 0, 0, 0, records};
    if (thread_index() == 0) {
        struct inflate_input input = {in - skew, decoded + block->out, (skew + in_bytes + 15) / 16,
                                      block->capacity, 8 * (skew + in_bytes - 4)};
        struct inflate_tuning tuning = {DEFLATE_BLOCK_BITS_GUESS, SEGMENT_BITS_MAX, LEAD_IN_BITS};
        s->input = input;
        s->tuning = tuning;
        s->last_slot = LITERAL_SLOT;
        s->has_fixed_codes = false;
    }
    sync_block();
    uint32_t block_status = decode_deflate_blocks(s, &stream);
    bool is_good = block_status == COGPU_GPU_DECODED;
    sync_block();
    flush_slice(s, &stream, team_from(0), is_good ? stream.produced - stream.slice_start : 0,
                true); /* also empties the slots */
    if (!is_good)
        return block_status;
    if (stream.produced < block->required)
        return COGPU_GPU_TOO_SHORT;
    const uint8_t *sum = s->input.quads + (stream.bit + 7) / 8;
    return finish_adler32(s, &stream) == load_be32(sum) ? COGPU_GPU_DECODED
                                                        : COGPU_GPU_CHECKSUM_MISMATCH;
}

KERNEL(cogpu_kernel_inflate, struct cogpu_inflate_args, struct inflate_shared, THREADS,
       PER_MULTIPROCESSOR) {
    uint16_t *records = args->records + (size_t)block_index() * RECORDS * THREADS + thread_index();
    for (uint32_t i = thread_index(); i < SLICE_BYTES; i += THREADS)
        shared->slots[i] = EMPTY_SLOT;
    for (;;) {
        sync_block();
        if (thread_index() == 0)
            shared->block = atomic_add(args->next_block, 1);
        sync_block();
        uint32_t block = shared->block;
        if (block >= args->count)
            return;
        if (args->is_retry && args->statuses[block] == COGPU_GPU_DECODED)
            continue;
        uint32_t block_status =
            decode_zlib_stream(shared, &args->blocks[block], args->stored, args->decoded, records);
        if (thread_index() == 0)
            args->statuses[block] = block_status;
    }
}
