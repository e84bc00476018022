/*
 * Deflate decoder for few streams, step 4: decodes tokens to symbols.
 *
 * A thread block decodes a page of the output, slice by slice. Chunks know where their tokens begin
 * and which bytes they give, at checkpoints, so no thread waits for what is before its page. Tokens
 * become slots of the slice, and matches are followed within the slice, as in inflate.cu. But bytes
 * before the slice may not be decoded yet. So what is written is a symbol of 16 bits for each byte:
 *
 *     0 to 255     the byte
 *     from 256 on  it equals the byte this - 255 bytes before it, which is before the slice
 *
 * inflate_few_resolve.cu replaces symbols by bytes.
 */
#include "kernels/deflate/inflate_few_args.h"

#define INFLATE_THREADS      512
#define INFLATE_SEGMENT_BITS 296 /* the stage is not smaller than that of inflate_few_walk.cu */
#define INFLATE_SLICE_BYTES  COGPU_INFLATE_FEW_SLICE_BYTES
#include "kernels/deflate/inflate_few.h"
#include "kernels/deflate/inflate_slice.h"
#include "kernels/deflate/inflate_tokens.h"

struct decode_shared {
    struct inflate_shared inflate;
    uint32_t page;
    uint32_t checkpoint; /* of the current chunk: that of the slice's first byte */
};

/* Position in a page. All threads hold the same values. */
struct page_reader {
    const struct cogpu_inflate_few_args *args;
    uint32_t stream;
    uint32_t chunk;  /* plus 1; 0: none */
    uint32_t staged; /* first bit of the stage */
    uint32_t loaded; /* chunk that is staged, plus 1 */
    uint32_t codes;  /* index of the codes whose tables are built */
};

enum { NO_CODES = COGPU_INFLATE_STORED };

/* Decodes the tokens from a bit on that give the bytes from `at` up to `end` of the slice, `at`
 * perhaps before it. False if a distance reaches before the first byte of the stream. */
DEVICE_FN bool decode_tokens(struct inflate_shared *s, uint32_t bit, int32_t at, int32_t end,
                             uint32_t slice) {
    const uint32_t subtable_mask = (1u << s->codes.subtable_bits) - 1;
    struct bit_reader reader = open_reader(s->stage, bit);
    struct table_lookup lookup = first_lookup();
    struct slot_writer writer = {at, 0, SLOT_END};
    /* A token takes at least one bit. */
    for (uint32_t steps = 0; writer.at < end && steps < STAGE_BITS; steps++) {
        uint32_t bits = peek_bits(&reader), entry = entry_at(s, lookup, bits);
        if (entry & IS_LONG)
            entry = find_long_entry(s, lookup.table, bits);
        if (entry & IS_END) /* not met: the walk was here */
            break;
        const int32_t value = (int32_t)token_value(entry, bits), before = writer.at;
        write_record(s, &writer, value);
        if (before < 0 && writer.at > 0) /* a match that begins before the slice */
            s->slots[0] = (uint16_t)value;
        skip_bits(&reader, s->stage, entry & 31);
        lookup = next_lookup(entry, subtable_mask);
    }
    return writer.lowest >= SLOT_END - (int32_t)slice;
}

/* Stages the bits of a chunk, and builds its tables. By all threads. */
DEVICE_FN void load_chunk(struct inflate_shared *s, struct page_reader *page,
                          const struct cogpu_inflate_chunk *chunk) {
    struct inflate_stream stream = {chunk->first_bit, 0, 0, 0, 0, 0, NULL};
    begin_stage(s, &stream);
    page->staged = stream.staged;
    page->loaded = page->chunk;
    if (page->codes != chunk->codes) {
        const uint8_t *from = page->args->codes + (size_t)chunk->codes * COGPU_INFLATE_CODES_BYTES;
        for (uint32_t i = 16 * thread_index(); i < sizeof s->codes; i += 16 * THREADS)
            store_words4((uint8_t *)(void *)&s->codes + i, load_words4(from + i));
        sync_block();
        build_tables(s);
        page->codes = chunk->codes;
    }
    await_stage();
}

/* Index of the checkpoint whose bytes include that at `begin`, 0 if the chunk begins later. By all
 * threads. */
DEVICE_FN uint32_t find_checkpoint(struct decode_shared *d, const struct cogpu_inflate_chunk *chunk,
                                   const struct cogpu_inflate_checkpoint *checkpoints,
                                   uint32_t begin) {
    if (chunk->out >= begin)
        return 0;
    for (uint32_t i = thread_index(); i < chunk->checkpoint_count; i += THREADS) {
        const uint32_t end =
            i + 1 < chunk->checkpoint_count ? checkpoints[i + 1].out : chunk->bytes;
        if (checkpoints[i].out <= begin - chunk->out && begin - chunk->out < end)
            d->checkpoint = i;
    }
    sync_block();
    return d->checkpoint;
}

/* Writes the slots of the bytes that a chunk has between two positions of the output, which are
 * those of the slice. By all threads. */
DEVICE_FN void write_chunk(struct decode_shared *d, struct page_reader *page,
                           const struct cogpu_inflate_chunk *chunk, uint32_t begin, uint32_t end) {
    const struct cogpu_inflate_few_args *args = page->args;
    struct inflate_shared *s = &d->inflate;
    if (chunk->codes == COGPU_INFLATE_STORED) {
        const uint8_t *stored = s->input.quads + chunk->first_bit / 8;
        for (uint32_t i = (begin > chunk->out ? begin - chunk->out : 0) + thread_index();
             i < min_u32(chunk->bytes, end - chunk->out); i += THREADS)
            s->slots[chunk->out + i - begin] = (uint16_t)(LITERAL_SLOT | stored[i]);
        return;
    }
    if (page->loaded != page->chunk)
        load_chunk(s, page, chunk);
    const struct cogpu_inflate_checkpoint *checkpoints = args->checkpoints + chunk->checkpoints;
    const uint32_t first = find_checkpoint(d, chunk, checkpoints, begin);
    for (uint32_t i = first + thread_index(); i < chunk->checkpoint_count; i += THREADS) {
        const uint32_t from = chunk->out + checkpoints[i].out;
        const uint32_t to =
            chunk->out + (i + 1 < chunk->checkpoint_count ? checkpoints[i + 1].out : chunk->bytes);
        if (from >= end)
            return;
        if (!decode_tokens(s, checkpoints[i].bit - page->staged, (int32_t)(from - begin),
                           (int32_t)(min_u32(to, end) - begin), begin))
            args->streams[page->stream].is_malformed = true;
    }
}

/* Writes the slots of a slice, chunk by chunk. By all threads. */
DEVICE_FN void write_slice(struct decode_shared *d, struct page_reader *page, uint32_t begin,
                           uint32_t end) {
    while (page->chunk > 0) {
        const struct cogpu_inflate_chunk chunk = page->args->chunks[page->chunk - 1];
        if (chunk.out >= end)
            return;
        write_chunk(d, page, &chunk, begin, end);
        sync_block();
        if (chunk.out + chunk.bytes > end)
            return;
        page->chunk = chunk.next;
    }
}

/* Symbol of a slot after follow_matches. `at`: its position in the slice. */
DEVICE_FN uint32_t symbol_of_slot(uint32_t slot, uint32_t at) {
    return slot >= BEFORE_SLICE ? SYMBOL_BASE + SLOT_END + at - slot : slot & 0xFF;
}

/* Resolves matches within the slice, writes symbols, and empties the slice. By all threads. */
DEVICE_FN void flush_symbols(struct inflate_shared *s, uint32_t bytes, uint16_t *symbols) {
    const struct warp_team team = team_from(0);
    fill_matches(s, team, bytes);
    sync_block();
    for (uint32_t row = ROW_SLOTS * team.warp; row < bytes; row += ROW_SLOTS * team.warps) {
        const uint32_t at = row + VECTOR * lane_index();
        struct slot_vector v = follow_matches(s, at);
        UNROLL
        for (uint32_t i = 0; i < VECTOR; i++)
            v.slots[i] = symbol_of_slot(v.slots[i], at + i);
        if (at < bytes) /* symbols have memory for whole pages */
            store_slots(symbols + at, &v);
    }
    sync_block();
    empty_slots(s, team, SLICE_BYTES, 0);
    sync_block();
}

DEVICE_FN void decode_page(struct decode_shared *d, const struct cogpu_inflate_few_args *args,
                           uint32_t index) {
    struct inflate_shared *s = &d->inflate;
    const struct cogpu_inflate_page entry = args->pages[args->window + index];
    struct page_reader page = {args, entry.stream, entry.chunk, 0, 0, NO_CODES};
    if (page.chunk == 0)
        return;
    const struct cogpu_inflate_few_stream *stream = &args->streams[page.stream];
    const cogpu_encoded_block *block = &args->blocks[page.stream];
    const uint32_t skew = stream_skew(args, page.stream),
                   first = (args->window + index - stream->first_page) * COGPU_INFLATE_PAGE_BYTES,
                   last = min_u32(first + COGPU_INFLATE_PAGE_BYTES, stream->bytes);
    uint16_t *symbols = args->symbols + (size_t)index * COGPU_INFLATE_PAGE_BYTES;
    if (thread_index() == 0) {
        struct inflate_input input = {args->stored + block->in - skew, NULL,
                                      (skew + block->in_bytes + 15) / 16, block->capacity, 0};
        s->input = input;
        s->last_slot = LITERAL_SLOT;
    }
    sync_block();
    for (uint32_t begin = first; begin < last; begin += SLICE_BYTES) {
        const uint32_t end = min_u32(begin + SLICE_BYTES, last);
        write_slice(d, &page, begin, end);
        flush_symbols(s, end - begin, symbols + (begin - first));
    }
}

KERNEL(cogpu_kernel_inflate_few_decode, struct cogpu_inflate_few_args, struct decode_shared,
       INFLATE_THREADS, 3) {
    empty_slots(&shared->inflate, team_from(0), SLICE_BYTES, 0);
    for (;;) {
        sync_block();
        if (thread_index() == 0)
            shared->page = atomic_add(&args->counters[args->queue], 1);
        sync_block();
        if (shared->page >= args->window_pages)
            return;
        decode_page(shared, args, shared->page);
    }
}
