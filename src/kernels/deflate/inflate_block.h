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

#include "kernels/deflate/inflate_slice.h"
#include "kernels/deflate/inflate_stride.h"

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
        uint32_t end = read_block_codes(&s->codes, &s->header, s->stage,
                                        stream->bit - stream->staged, is_fixed);
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

/* Decodes a deflate block to its end. Returns a block status. By all threads. */
DEVICE_FN uint32_t decode_deflate_block(struct inflate_shared *s, struct inflate_stream *stream,
                                        bool is_stored) {
    uint32_t begin = stream->bit;
    for (struct stride stride = {0, 0, 0, is_stored};;) {
        struct token_segment mine = {0, 0, 0, 0, 0, false, false, false};
        const uint8_t *stored = NULL;
        uint32_t block_status;
        if (is_stored)
            block_status = parse_stored_block(s, stream, &stored, &stride.total);
        else
            block_status = decode_stride(s, stream, begin, &mine, NULL, &stride);
        if (block_status == COGPU_GPU_DECODED &&
            stride.total > s->input.capacity - stream->produced)
            block_status = COGPU_GPU_TOO_LONG;
        if (block_status == COGPU_GPU_DECODED &&
            !output_bytes(s, stream, stride.total, stored, &mine, stride.from))
            block_status = COGPU_GPU_MALFORMED;
        await_stage();
        if (block_status != COGPU_GPU_DECODED)
            return block_status;
        if (stream->bit > s->input.bit_end)
            return COGPU_GPU_TRUNCATED;
        if (stride.has_end)
            return COGPU_GPU_DECODED;
    }
}

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
