/*
 * Deflate decoder for few streams, step 2: walks over deflate blocks.
 *
 * From each anchor a thread block goes from one deflate block to the next, until it ends one
 * exactly where another anchor begins, or the final one:
 *
 *     anchors        A                  B         C                 D
 *     blocks         |-----|------|-----|------|--.---|------|------|-----
 *     walk from A    ==================>|         .                 |
 *     walk from B                       ===========================>|
 *                                                 C is false: no block begins there
 *
 * It counts bytes only: decoding them needs their position in the output, which is known when all
 * walks are linked (inflate_few_link.cu). What decoding needs is kept: for each stride a chunk with
 * checkpoints, for each deflate block its codes. Segments of a stride are found as in inflate.cu.
 *
 * Bounds. A walk from a false anchor ends at an invalid code, at the capacity of the TIFF block, at
 * the end of the stream, or when an array is full. Then its stream is left to inflate.cu, if the
 * anchor was true.
 */
#define INFLATE_THREADS          256 /* whose segments fit the stage of inflate_few_decode.cu */
#define INFLATE_SEGMENT_BITS     584
#define INFLATE_SEGMENT_BITS_MIN 264 /* so that checkpoints take less memory than encoded bytes */
#define INFLATE_SLICE_BYTES      256 /* not used */
#include "kernels/deflate/inflate_few.h"
#include "kernels/deflate/inflate_stride.h"

enum { CODES_HAVE_THEIR_SIZE = 1 / (sizeof(struct block_codes) == COGPU_INFLATE_CODES_BYTES) };

struct walk_shared {
    struct inflate_shared inflate;
    struct segment_checkpoints checkpoints;
    uint32_t reserved[2]; /* indices that one thread has reserved for all */
};

/* State of a walk. All threads hold the same values. */
struct deflate_walk {
    const struct cogpu_inflate_few_args *args;
    uint32_t span, stream;
    uint32_t codes;       /* index of the current codes */
    uint32_t first, last; /* chunks, plus 1; 0: none yet */
    uint32_t next;        /* first span whose anchor is not passed */
};

/* Takes the next span from the work queue. By all threads. */
DEVICE_FN uint32_t take_span(struct walk_shared *w, uint32_t *queue) {
    sync_block();
    if (thread_index() == 0)
        w->reserved[0] = atomic_add(queue, 1);
    sync_block();
    return w->reserved[0];
}

/* Adds a chunk with so many checkpoints to the walk. Sets their index. False if an array is full.
 * By all threads. */
DEVICE_FN bool add_chunk(struct walk_shared *w, struct deflate_walk *walk,
                         struct cogpu_inflate_chunk *chunk) {
    const struct cogpu_inflate_few_args *args = walk->args;
    const uint32_t count = chunk->checkpoint_count;
    sync_block();
    if (thread_index() == 0)
        w->reserved[0] = atomic_add(&args->counters[COGPU_INFLATE_CHUNKS], 1);
    if (thread_index() == WARP) /* at the same time */
        w->reserved[1] = atomic_add(&args->counters[COGPU_INFLATE_CHECKPOINTS], count);
    sync_block();
    const uint32_t index = w->reserved[0];
    chunk->checkpoints = w->reserved[1];
    if (index >= args->chunks_max || chunk->checkpoints > args->checkpoints_max ||
        count > args->checkpoints_max - chunk->checkpoints)
        return false;
    if (thread_index() == 0) {
        args->chunks[index] = *chunk;
        if (walk->last > 0)
            args->chunks[walk->last - 1].next = index + 1;
    }
    walk->last = index + 1;
    walk->first = walk->first > 0 ? walk->first : walk->last;
    return true;
}

/* Keeps a stride as a chunk with checkpoints. `out`: its position in the output of the walk;
 * `from`: that of this thread's tokens in the stride. False if an array is full. By all threads. */
DEVICE_FN bool keep_stride(struct walk_shared *w, struct deflate_walk *walk, uint32_t staged,
                           uint32_t out, uint32_t from, const struct stride *stride) {
    const uint32_t thread = thread_index(), threads = stride->last + 1;
    sync_block();
    struct cogpu_inflate_chunk chunk = {walk->span,
                                        walk->stream,
                                        out,
                                        stride->total,
                                        staged + w->checkpoints.bits[0][0],
                                        walk->codes,
                                        0,
                                        threads * CHECKPOINTS,
                                        0};
    if (stride->total == 0 && walk->first > 0)
        return true;
    if (!add_chunk(w, walk, &chunk))
        return false;
    for (uint32_t i = 0, at = from; i < CHECKPOINTS && thread < threads; i++) {
        struct cogpu_inflate_checkpoint checkpoint = {staged + w->checkpoints.bits[i][thread], at};
        walk->args->checkpoints[chunk.checkpoints + thread * CHECKPOINTS + i] = checkpoint;
        at += w->checkpoints.bytes[i][thread];
    }
    return true;
}

/* Reads the codes of a deflate block, builds its tables and keeps the codes. False if they are
 * malformed or the array is full. By all threads. */
DEVICE_FN bool begin_walked_block(struct walk_shared *w, struct deflate_walk *walk,
                                  struct inflate_stream *stream, bool is_fixed) {
    struct inflate_shared *s = &w->inflate;
    if (is_fixed && s->has_fixed_codes)
        return true;
    sync_block();
    if (warp_index() == 0) {
        uint32_t end = read_block_codes(&s->codes, &s->header, s->stage,
                                        stream->bit - stream->staged, is_fixed);
        if (lane_index() == 0) {
            s->header_end = end;
            s->has_fixed_codes = is_fixed;
        }
    }
    if (thread_index() == WARP)
        w->reserved[0] = atomic_add(&walk->args->counters[COGPU_INFLATE_CODES], 1);
    sync_block();
    walk->codes = w->reserved[0];
    stream->bit = stream->staged + s->header_end;
    if (s->header_end == 0 || walk->codes >= walk->args->codes_max)
        return false;
    uint8_t *to = walk->args->codes + (size_t)walk->codes * COGPU_INFLATE_CODES_BYTES;
    for (uint32_t i = 16 * thread_index(); i < sizeof s->codes; i += 16 * THREADS)
        store_words4(to + i, load_words4((const uint8_t *)(const void *)&s->codes + i));
    build_tables(s);
    return true;
}

/* Walks over the tokens of a deflate block. False if they are malformed. By all threads. */
DEVICE_FN bool walk_tokens(struct walk_shared *w, struct deflate_walk *walk,
                           struct inflate_stream *stream) {
    struct inflate_shared *s = &w->inflate;
    const uint32_t begin = stream->bit;
    for (;;) {
        struct token_segment mine = {0, 0, 0, 0, 0, false, false, false};
        struct stride stride = {0, 0, 0, false};
        /* As decode_stride stages its bits, so that it does not. */
        need_bits(s, stream, THREADS * SEGMENT_BITS_MAX + OVERRUN_BITS);
        const uint32_t staged = stream->staged;
        bool is_good =
            decode_stride(s, stream, begin, &mine, &w->checkpoints, &stride) == COGPU_GPU_DECODED &&
            stride.total <= s->input.capacity - stream->produced;
        is_good = is_good && keep_stride(w, walk, staged, stream->produced,
                                         stride.from - stream->produced, &stride);
        stream->produced += stride.total;
        await_stage();
        if (!is_good || stream->bit > s->input.bit_end)
            return false;
        if (stride.has_end)
            return true;
    }
}

/* Walks over a stored block. False if it is malformed. By all threads. */
DEVICE_FN bool walk_stored_block(struct walk_shared *w, struct deflate_walk *walk,
                                 struct inflate_stream *stream) {
    struct inflate_shared *s = &w->inflate;
    const uint8_t *stored;
    uint32_t bytes;
    if (parse_stored_block(s, stream, &stored, &bytes) != COGPU_GPU_DECODED ||
        bytes > s->input.capacity - stream->produced)
        return false;
    struct cogpu_inflate_chunk chunk = {walk->span,
                                        walk->stream,
                                        stream->produced,
                                        bytes,
                                        stream->bit - 8 * bytes,
                                        COGPU_INFLATE_STORED,
                                        0,
                                        0,
                                        0};
    stream->produced += bytes;
    return (bytes == 0 && walk->first > 0) || add_chunk(w, walk, &chunk);
}

/* Walks over the next deflate block. False if it is malformed. By all threads. */
DEVICE_FN bool walk_deflate_block(struct walk_shared *w, struct deflate_walk *walk,
                                  struct inflate_stream *stream, bool *is_final) {
    struct inflate_shared *s = &w->inflate;
    if (stream->bit >= s->input.bit_end)
        return false;
    need_bits(s, stream, HEADER_BITS);
    uint32_t bits = peek_bits_at(s->stage, stream->bit - stream->staged), type = bits >> 1 & 3;
    *is_final = bits & 1;
    stream->bit += 3;
    if (type == BTYPE_STORED)
        return walk_stored_block(w, walk, stream);
    return type != BTYPE_RESERVED && begin_walked_block(w, walk, stream, type == BTYPE_FIXED) &&
           walk_tokens(w, walk, stream);
}

/* The span whose anchor begins at this bit; 0 if there is none. By all threads. */
DEVICE_FN uint32_t find_anchor(struct deflate_walk *walk, uint32_t bit) {
    const struct cogpu_inflate_few_args *args = walk->args;
    const uint32_t end = args->streams[walk->stream + 1].first_span;
    for (; walk->next < end; walk->next++) {
        uint32_t start = args->anchors[walk->next].start;
        if (start == bit)
            return walk->next;
        if (start > bit)
            return 0;
    }
    return 0;
}

/* Walks from the anchor of a span. Returns where it ends: the span of the anchor that it met,
 * COGPU_INFLATE_FINAL, or 0 if it fails. By all threads. */
DEVICE_FN uint32_t walk_from_anchor(struct walk_shared *w, struct deflate_walk *walk,
                                    struct inflate_stream *stream) {
    const uint32_t begin = stream->bit;
    for (uint32_t deflate_blocks = 0;; deflate_blocks++) {
        /* As in inflate.cu: a stream of empty deflate blocks would cost far more time than it has
         * bits. */
        uint32_t bytes = stream->produced + (stream->bit - begin) / 8, met;
        bool is_final;
        if (deflate_blocks > DEFLATE_BLOCKS_FREE + bytes / BYTES_PER_DEFLATE_BLOCK ||
            !walk_deflate_block(w, walk, stream, &is_final))
            return 0;
        met = is_final ? COGPU_INFLATE_FINAL : find_anchor(walk, stream->bit);
        if (met > 0)
            return met;
    }
}

DEVICE_FN void walk_span(struct walk_shared *w, const struct cogpu_inflate_few_args *args,
                         uint32_t span, uint32_t start) {
    struct inflate_shared *s = &w->inflate;
    const uint32_t index = stream_of_span(args, span), skew = stream_skew(args, index);
    const cogpu_encoded_block *block = &args->blocks[index];
    struct inflate_stream stream = {start, NOT_STAGED, 0, 0, 0, 0, NULL};
    struct deflate_walk walk = {args, span, index, 0, 0, 0, span + 1};
    if (thread_index() == 0) {
        struct inflate_input input = {args->stored + block->in - skew, NULL,
                                      (skew + block->in_bytes + 15) / 16, block->capacity,
                                      stream_bit_end(args, index)};
        struct inflate_tuning tuning = {DEFLATE_BLOCK_BITS_GUESS, SEGMENT_BITS_MAX, LEAD_IN_BITS};
        s->input = input;
        s->tuning = tuning;
        s->has_fixed_codes = false;
    }
    sync_block();
    uint32_t next = walk_from_anchor(w, &walk, &stream);
    if (thread_index() == 0) {
        struct cogpu_inflate_anchor anchor = {start,      next,      stream.produced, stream.bit,
                                              walk.first, walk.last, false,           0};
        args->anchors[span] = anchor;
    }
}

KERNEL(cogpu_kernel_inflate_few_walk, struct cogpu_inflate_few_args, struct walk_shared,
       INFLATE_THREADS, PER_MULTIPROCESSOR) {
    const uint32_t spans = args->streams[args->count].first_span;
    for (;;) {
        uint32_t span = take_span(shared, &args->counters[COGPU_INFLATE_WALK_QUEUE]);
        if (span >= spans)
            return;
        uint32_t start = args->anchors[span].start;
        if (start > 0)
            walk_span(shared, args, span, start);
    }
}
