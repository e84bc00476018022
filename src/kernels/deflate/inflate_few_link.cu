/*
 * Deflate decoder for few streams: the plan before the search, the links between walks (step 3),
 * and block statuses at the end.
 *
 * Linking goes from the first anchor of a stream to the one that its walk met, and so on. If it
 * comes to the final deflate block, all anchors on the way are proved and their positions in the
 * output are known. The others were false, or not needed. If not, the stream is left to inflate.cu.
 */
#include "kernels/deflate/inflate_few.h"

enum { PLAN_THREADS = WARP, LINK_THREADS = 256, PLACE_THREADS = 256, FINISH_THREADS = 64 };

DEVICE_FN uint32_t divide_up_u32(uint32_t value, uint32_t by) {
    return value / by + (value % by != 0);
}

/* The first bit of a stream's deflate data; 0 if there is none. */
DEVICE_FN uint32_t first_bit_of_stream(const struct cogpu_inflate_few_args *args, uint32_t stream) {
    const cogpu_encoded_block *block = &args->blocks[stream];
    const uint8_t *in = args->stored + block->in;
    if (block->in_bytes <= ZLIB_HEADER_BYTES + ADLER_BYTES || !is_zlib_header(in[0], in[1]))
        return 0;
    return 8 * (stream_skew(args, stream) + ZLIB_HEADER_BYTES);
}

/* Numbers the spans and pages of all streams, and sets the anchors of first spans. By one warp. */
KERNEL(cogpu_kernel_inflate_few_plan, struct cogpu_inflate_few_args, struct nothing_shared,
       PLAN_THREADS, 1) {
    uint32_t spans_before = 0, pages_before = 0;
    for (uint32_t first = 0; first <= args->count; first += WARP) {
        const uint32_t i = first + lane_index();
        uint32_t spans = 0, pages = 0;
        if (i < args->count) {
            spans =
                divide_up_u32(stream_skew(args, i) + args->blocks[i].in_bytes, args->span_bytes);
            pages = divide_up_u32(args->blocks[i].capacity, COGPU_INFLATE_PAGE_BYTES);
        }
        const uint32_t spans_up_to = spans_before + warp_scan(spans),
                       pages_up_to = pages_before + warp_scan(pages);
        if (i <= args->count) {
            args->streams[i].first_span = spans_up_to - spans;
            args->streams[i].first_page = pages_up_to - pages;
        }
        if (i < args->count) {
            args->anchors[spans_up_to - spans].start = first_bit_of_stream(args, i);
            args->statuses[i] = COGPU_GPU_NOT_DECODED;
        }
        spans_before = warp_read(spans_up_to, WARP - 1);
        pages_before = warp_read(pages_up_to, WARP - 1);
    }
}

struct link_shared {
    uint32_t next[COGPU_INFLATE_SPANS_MAX], bytes[COGPU_INFLATE_SPANS_MAX];
    uint32_t out[COGPU_INFLATE_SPANS_MAX]; /* NOT_REACHED, or its position in the output */
};

enum { NOT_REACHED = 0x7FFFFFFF };

/* Follows the walks of a stream. Returns the span of the last one, NOT_REACHED if that is not the
 * final one or the output is too long. By one thread. */
DEVICE_FN uint32_t follow_walks(struct link_shared *s, uint32_t spans, uint32_t capacity,
                                uint32_t *total) {
    uint32_t at = 0, out = 0;
    while (at < spans) {
        const uint32_t bytes = s->bytes[at], next = s->next[at];
        s->out[at] = out;
        if (bytes > capacity - out)
            return NOT_REACHED;
        out += bytes;
        *total = out;
        if (next == COGPU_INFLATE_FINAL)
            return at;
        if (next <= at) /* its walk failed */
            return NOT_REACHED;
        at = next;
    }
    return NOT_REACHED;
}

/* Marks the anchors that were reached, and appends the chunks of each walk to those of the walk
 * before it. */
DEVICE_FN void link_walks(const struct link_shared *s, const struct cogpu_inflate_few_args *args,
                          uint32_t first, uint32_t spans) {
    for (uint32_t i = thread_index(); i < spans; i += LINK_THREADS) {
        struct cogpu_inflate_anchor *anchor = &args->anchors[first + i];
        if (s->out[i] == NOT_REACHED)
            continue;
        anchor->is_reached = true;
        anchor->out = s->out[i];
        if (s->next[i] != COGPU_INFLATE_FINAL)
            args->chunks[anchor->last - 1].next = args->anchors[first + s->next[i]].first;
    }
}

/* One thread block for each stream. */
KERNEL(cogpu_kernel_inflate_few_link, struct cogpu_inflate_few_args, struct link_shared,
       LINK_THREADS, 4) {
    struct cogpu_inflate_few_stream *stream = &args->streams[block_index()];
    const uint32_t first = stream->first_span, spans = stream[1].first_span - first;
    if (spans > COGPU_INFLATE_SPANS_MAX)
        return;
    for (uint32_t i = thread_index(); i < spans; i += LINK_THREADS) {
        const uint32_t next = args->anchors[first + i].next;
        shared->next[i] = next == COGPU_INFLATE_FINAL || next == 0 ? next : next - first;
        shared->bytes[i] = args->anchors[first + i].bytes;
        shared->out[i] = NOT_REACHED;
    }
    sync_block();
    bool is_linked = false;
    if (thread_index() == 0) {
        uint32_t total = 0,
                 last = follow_walks(shared, spans, args->blocks[block_index()].capacity, &total);
        is_linked = last != NOT_REACHED;
        stream->is_linked = is_linked;
        stream->bytes = is_linked ? total : 0;
        stream->end_bit = is_linked ? args->anchors[first + last].end_bit : 0;
    }
    if (sync_block_or(is_linked))
        link_walks(shared, args, first, spans);
}

/* Moves each chunk to its position in the output of its stream, and enters it in the pages that
 * begin in it. */
KERNEL(cogpu_kernel_inflate_few_place, struct cogpu_inflate_few_args, struct nothing_shared,
       PLACE_THREADS, 4) {
    const uint32_t chunks = min_u32(args->counters[COGPU_INFLATE_CHUNKS], args->chunks_max);
    for (uint32_t i = block_index() * PLACE_THREADS + thread_index(); i < chunks;
         i += block_count() * PLACE_THREADS) {
        struct cogpu_inflate_chunk *chunk = &args->chunks[i];
        const struct cogpu_inflate_anchor *anchor = &args->anchors[chunk->span];
        if (!anchor->is_reached)
            continue;
        const uint32_t out = anchor->out + chunk->out, page_bytes = COGPU_INFLATE_PAGE_BYTES,
                       first_page = args->streams[chunk->stream].first_page;
        chunk->out = out;
        for (uint32_t page = divide_up_u32(out, page_bytes); page * page_bytes < out + chunk->bytes;
             page++) {
            struct cogpu_inflate_page entry = {i + 1, chunk->stream};
            args->pages[first_page + page] = entry;
        }
    }
}

/* The streams whose checksum is right are decoded. The others are left to inflate.cu. */
KERNEL(cogpu_kernel_inflate_few_finish, struct cogpu_inflate_few_args, struct nothing_shared,
       FINISH_THREADS, 4) {
    const uint32_t i = block_index() * FINISH_THREADS + thread_index();
    if (i >= args->count)
        return;
    const cogpu_encoded_block *block = &args->blocks[i];
    const struct cogpu_inflate_few_stream *stream = &args->streams[i];
    if (!stream->is_linked || stream->is_malformed || stream->bytes < block->required)
        return;
    const uint8_t *quads = args->stored + block->in - stream_skew(args, i);
    if (adler32_of_sums(stream->bytes, stream->sum, stream->weighted) ==
        load_be32(quads + (stream->end_bit + 7) / 8))
        args->statuses[i] = COGPU_GPU_DECODED;
}
