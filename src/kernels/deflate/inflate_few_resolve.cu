/*
 * Deflate decoder for few streams, step 5: replaces symbols by bytes, and sums them up.
 *
 * A symbol is a byte, or how far back an equal one is. A thread hops back until it finds a byte. It
 * writes the byte to the output, and in the place of the symbol, so that later hops end there.
 * Threads do not wait for each other: an old and a new symbol are both right. This data race is
 * intended (tests/races.supp).
 *
 * Each hop leaves a slice, so their number is bounded. Few are needed if what is before a byte is
 * resolved already, but thread blocks in order would all hop through what is in work. So they begin
 * at many places, and go on from there:
 *
 *     window    | 0 4 8 ... | 1 5 9 ... | 2 6 10 ... | 3 7 11 ... |     four fronts; there are more
 */
#include "kernels/deflate/inflate_few.h"

enum {
    RESOLVE_THREADS = 256,
    GROUP = 4, /* neighbours that a thread resolves */
    GROUPS = 2,
    PER_THREAD = GROUP * GROUPS,
    TURNS = COGPU_INFLATE_RESOLVE_BYTES / (RESOLVE_THREADS * PER_THREAD)
};

struct resolve_shared {
    uint32_t sums[RESOLVE_THREADS / WARP], weighted_sums[RESOLVE_THREADS / WARP];
};

/* A stream's part of the window. */
struct symbol_window {
    uint16_t *symbols;      /* of the byte at `begin` */
    const uint8_t *decoded; /* of the stream's first byte */
    uint32_t begin;         /* first byte of the stream in the window: those before are decoded */
    uint32_t hops_max;
};

/* The symbols that a thread resolves, and where they are in the stream. */
struct symbol_vector {
    uint32_t symbols[PER_THREAD], at[PER_THREAD];
};

DEVICE_FN struct symbol_vector load_symbols(const struct symbol_window *window, uint32_t at,
                                            uint32_t end) {
    struct symbol_vector v;
    UNROLL
    for (uint32_t g = 0; g < GROUPS; g++) {
        const uint32_t first = at + g * GROUP * WARP;
        const uint64_t four =
            first < end ? load_u64_aligned(window->symbols + (first - window->begin)) : 0;
        UNROLL
        for (uint32_t i = 0; i < GROUP; i++) {
            v.symbols[g * GROUP + i] = (uint32_t)(four >> 16 * i) & 0xFFFF;
            v.at[g * GROUP + i] = first + i;
        }
    }
    return v;
}

DEVICE_FN bool has_references(const struct symbol_vector *v) {
    uint32_t all = 0;
    UNROLL
    for (uint32_t i = 0; i < PER_THREAD; i++)
        all |= v->symbols[i];
    return all > SYMBOL_BASE;
}

/* The symbol that a symbol refers to. Positions that no stream has, which only wrong symbols have,
 * are read as 0. */
DEVICE_FN uint32_t follow_symbol(const struct symbol_window *window, uint32_t symbol,
                                 uint32_t *at) {
    const uint32_t back = symbol - SYMBOL_BASE;
    if (back > *at)
        return 0;
    *at -= back;
    return *at < window->begin ? window->decoded[*at] : window->symbols[*at - window->begin];
}

DEVICE_FN void resolve_symbols(const struct symbol_window *window, struct symbol_vector *v) {
    for (uint32_t hops = 0; hops < window->hops_max && has_references(v); hops++) {
        UNROLL
        for (uint32_t i = 0; i < PER_THREAD; i++)
            if (v->symbols[i] > SYMBOL_BASE)
                v->symbols[i] = follow_symbol(window, v->symbols[i], &v->at[i]);
    }
}

/* Writes bytes to the output, none at `end` or after it. With `has_changed` also as symbols. */
DEVICE_FN void store_bytes(const struct symbol_window *window, uint8_t *decoded, uint32_t at,
                           uint32_t end, const struct symbol_vector *v, bool has_changed) {
    UNROLL
    for (uint32_t g = 0; g < GROUPS; g++) {
        const uint32_t first = at + g * GROUP * WARP, *symbols = v->symbols + g * GROUP;
        if (first >= end)
            continue;
        if (has_changed)
            *(number64 *)(void *)(window->symbols + (first - window->begin)) =
                symbols[0] | symbols[1] << 16 | (uint64_t)(symbols[2] | symbols[3] << 16) << 32;
        if (end - first >= GROUP)
            *(number32 *)(void *)(decoded + first) =
                symbols[0] | symbols[1] << 8 | symbols[2] << 16 | symbols[3] << 24;
        UNROLL
        for (uint32_t i = 0; i < GROUP - 1; i++) /* the last bytes of a stream */
            if (end - first < GROUP && i < end - first)
                decoded[first + i] = (uint8_t)symbols[i];
    }
}

/* Adds a thread block's sums of bytes, and of bytes times their position from `begin` on, to those
 * of the stream. They do not overflow: 4096 bytes weigh less than 2^31, and a stream has at most
 * 65536 times as many. By all threads. */
DEVICE_FN void add_sums(struct resolve_shared *s, struct cogpu_inflate_few_stream *stream,
                        uint32_t begin, uint32_t sum, uint32_t weighted) {
    sum = warp_sum(sum);
    weighted = warp_sum(weighted);
    if (lane_index() == 0) {
        s->sums[warp_index()] = sum;
        s->weighted_sums[warp_index()] = weighted;
    }
    sync_block();
    if (thread_index() > 0)
        return;
    sum = weighted = 0;
    for (uint32_t i = 0; i < RESOLVE_THREADS / WARP; i++) {
        sum += s->sums[i];
        weighted += s->weighted_sums[i];
    }
    sum %= ADLER_MODULUS;
    weighted =
        (weighted % ADLER_MODULUS + begin % ADLER_MODULUS * sum % ADLER_MODULUS) % ADLER_MODULUS;
    atomic_add(&stream->sum, sum);
    atomic_add(&stream->weighted, weighted);
}

/* Part of the window that a thread block resolves: fronts are as long as each other. */
DEVICE_FN uint32_t choose_part(uint32_t fronts) {
    const uint32_t of_front = block_count() / fronts;
    return block_index() % fronts * of_front + block_index() / fronts;
}

KERNEL(cogpu_kernel_inflate_few_resolve, struct cogpu_inflate_few_args, struct resolve_shared,
       RESOLVE_THREADS, 6) {
    enum { PARTS = COGPU_INFLATE_PAGE_BYTES / COGPU_INFLATE_RESOLVE_BYTES };
    const uint32_t part = choose_part(args->fronts), page = part / PARTS;
    if (page >= args->window_pages || args->pages[args->window + page].chunk == 0)
        return;
    const uint32_t index = args->pages[args->window + page].stream;
    struct cogpu_inflate_few_stream *stream = &args->streams[index];
    /* Pages of the stream that are before the window. */
    const uint32_t first_page = stream->first_page,
                   before = args->window > first_page ? args->window - first_page : 0;
    uint8_t *decoded = args->decoded + args->blocks[index].out;
    const struct symbol_window window = {
        args->symbols + (size_t)(first_page + before - args->window) * COGPU_INFLATE_PAGE_BYTES,
        decoded, before * COGPU_INFLATE_PAGE_BYTES,
        args->window_pages * (COGPU_INFLATE_PAGE_BYTES / COGPU_INFLATE_FEW_SLICE_BYTES) + 1};
    const uint32_t begin = (args->window + page - first_page) * COGPU_INFLATE_PAGE_BYTES +
                           part % PARTS * COGPU_INFLATE_RESOLVE_BYTES;
    uint32_t sum = 0, weighted = 0;
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        const uint32_t at = begin + turn * RESOLVE_THREADS * PER_THREAD +
                            warp_index() * WARP * PER_THREAD + lane_index() * GROUP;
        struct symbol_vector v = load_symbols(&window, at, stream->bytes);
        const bool has_changed = has_references(&v);
        resolve_symbols(&window, &v);
        store_bytes(&window, decoded, at, stream->bytes, &v, has_changed);
        UNROLL
        for (uint32_t i = 0; i < PER_THREAD; i++) {
            const uint32_t position = at + i / GROUP * GROUP * WARP + i % GROUP;
            const uint32_t byte = position < stream->bytes ? v.symbols[i] & 0xFF : 0;
            sum += byte;
            weighted += (position - begin) * byte;
        }
    }
    add_sums(shared, stream, begin, sum, weighted);
}
