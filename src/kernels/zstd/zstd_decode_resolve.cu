/*
 * Zstandard decoder, for few TIFF blocks: follows the references among the symbols of a window and
 * writes the bytes; then checks the checksums of frames.
 *
 * A symbol is a byte, or refers to an earlier zstd block (zstd_decode_symbols.cu): to a symbol, or
 * to a byte of the output if that zstd block belongs to an earlier window. A thread follows the
 * references of eight symbols side by side, writes their bytes to the output and also into the
 * symbols, so that later chains end there.
 *
 * So the order matters for speed, not for the result. Zstd blocks of a window are divided into
 * fronts, which advance together from their first byte on. The symbols behind a front are mostly
 * known.
 *
 *     front 0                front 1                front 2
 *     | part 0 | part 3 ...  | part 1 | part 4 ...  | part 2 | part 5 ...
 *
 * Synchronisation: none. A thread sees a symbol before or after another one has replaced it; both
 * lead to the same byte.
 *
 * Bounds. Each reference leads to an earlier zstd block of the window, or before it: there are at
 * most as many steps as the window has zstd blocks. That references stay within their frame is
 * checked where they are made.
 */
#include "kernels/zstd/zstd_decode_xxh64.h"

enum {
    RESOLVE_THREADS = 256,
    PART_SYMBOLS = 8192, /* of a zstd block */
    PARTS = ZSTD_BLOCK_BYTES_MAX / PART_SYMBOLS,
    FRONTS = 32
};

enum { QUAD_SYMBOLS = 4, QUADS = 2, SYMBOLS = QUADS * QUAD_SYMBOLS };
/* The quads of a thread are a row of its warp apart, so that each load of a warp is contiguous. */
enum { ROW_SYMBOLS = WARP * QUAD_SYMBOLS };

/* A part of a zstd block; positions count from the TIFF block's first byte. */
struct symbol_part {
    uint32_t *symbols;     /* of the window */
    uint8_t *out;          /* of the TIFF block */
    uint32_t begin, end;   /* positions */
    uint32_t window_begin; /* position of the TIFF block's first symbol in the window */
    uint32_t symbol_shift; /* index of a symbol = position + this, modulo 2^32 */
    uint32_t steps_max;
};

DEVICE_FN struct symbol_part find_part(const struct zstd_args *args, uint32_t index,
                                       uint32_t part) {
    const struct zstd_window *window = &args->windows[args->window];
    const struct zstd_block *block = &args->blocks[index],
                            *first = &args->blocks[window->first_block];
    struct symbol_part p;
    uint32_t block_end = block->begin + block->bytes;
    p.symbols = args->symbols;
    p.out = args->decoded + args->encoded[block->tiff_block].out;
    p.begin = block->begin / QUAD_SYMBOLS * QUAD_SYMBOLS + part * PART_SYMBOLS;
    p.end = part + 1 == PARTS ? block_end : min_u32(block_end, p.begin + PART_SYMBOLS);
    p.begin = max_u32(p.begin, block->begin);
    p.window_begin = first->tiff_block == block->tiff_block ? first->begin : 0;
    p.symbol_shift =
        args->tiff_blocks[block->tiff_block].first_symbol - args->window * args->window_symbols;
    p.steps_max = window->end_block - window->first_block;
    return p;
}

/* Whether the four symbols from `at` on all belong to the part. */
DEVICE_FN bool is_inside(const struct symbol_part *p, uint32_t at) {
    return at >= p->begin && at + QUAD_SYMBOLS <= p->end;
}

DEVICE_FN void load_symbols(const struct symbol_part *p, uint32_t at, uint32_t *values) {
    words4 quad = {0, 0, 0, 0};
    if (is_inside(p, at))
        quad = load_words4(p->symbols + (at + p->symbol_shift));
    values[0] = quad.x;
    values[1] = quad.y;
    values[2] = quad.z;
    values[3] = quad.w;
    if (is_inside(p, at))
        return;
    for (uint32_t i = 0; i < QUAD_SYMBOLS; i++)
        if (at + i >= p->begin && at + i < p->end)
            values[i] = p->symbols[at + i + p->symbol_shift];
}

/* Follows references until all values are bytes. Returns the references that there were: a bit per
 * value. */
DEVICE_FN uint32_t follow_references(const struct symbol_part *p, uint32_t *values) {
    uint32_t references = 0, any = 0;
    UNROLL
    for (uint32_t i = 0; i < SYMBOLS; i++) {
        references |= values[i] >> 31 << i;
        any |= values[i];
    }
    for (uint32_t step = 0; any & ZSTD_REFERENCE && step <= p->steps_max; step++) {
        any = 0;
        UNROLL
        for (uint32_t i = 0; i < SYMBOLS; i++) {
            if (values[i] & ZSTD_REFERENCE) {
                uint32_t from = values[i] & ~ZSTD_REFERENCE;
                values[i] =
                    from < p->window_begin ? p->out[from] : p->symbols[from + p->symbol_shift];
            }
            any |= values[i];
        }
    }
    return references;
}

DEVICE_FN void store_bytes(const struct symbol_part *p, uint32_t at, const uint32_t *values,
                           uint32_t references) {
    words4 quad = {values[0], values[1], values[2], values[3]};
    if (is_inside(p, at)) {
        *(number32 *)(void *)(p->out + at) = quad.x | quad.y << 8 | quad.z << 16 | quad.w << 24;
        if (references)
            store_words4(p->symbols + (at + p->symbol_shift), quad);
        return;
    }
    for (uint32_t i = 0; i < QUAD_SYMBOLS; i++)
        if (at + i >= p->begin && at + i < p->end) {
            p->out[at + i] = (uint8_t)values[i];
            p->symbols[at + i + p->symbol_shift] = values[i];
        }
}

DEVICE_FN void resolve_part(const struct symbol_part *p) {
    uint32_t first = p->begin / QUAD_SYMBOLS * QUAD_SYMBOLS + warp_index() * QUADS * ROW_SYMBOLS +
                     lane_index() * QUAD_SYMBOLS;
    for (uint32_t at = first; at < p->end; at += RESOLVE_THREADS * SYMBOLS) {
        uint32_t values[SYMBOLS];
        UNROLL
        for (uint32_t i = 0; i < QUADS; i++)
            load_symbols(p, at + i * ROW_SYMBOLS, values + i * QUAD_SYMBOLS);
        uint32_t references = follow_references(p, values);
        UNROLL
        for (uint32_t i = 0; i < QUADS; i++)
            store_bytes(p, at + i * ROW_SYMBOLS, values + i * QUAD_SYMBOLS,
                        references >> i * QUAD_SYMBOLS & 15);
    }
}

KERNEL(cogpu_kernel_zstd_resolve, struct zstd_args, struct nothing_shared, RESOLVE_THREADS, 6) {
    const struct zstd_window *window = &args->windows[args->window];
    uint32_t blocks = window->end_block - window->first_block, fronts = min_u32(blocks, FRONTS);
    uint32_t front_blocks = fronts ? (blocks + fronts - 1) / fronts : 0;
    for (uint32_t i = block_index(); i < fronts * front_blocks * PARTS; i += block_count()) {
        uint32_t step = i / fronts, index = i % fronts * front_blocks + step / PARTS;
        if (index >= blocks)
            continue;
        index += window->first_block;
        if (is_refused(args, args->blocks[index].tiff_block))
            continue;
        struct symbol_part part = find_part(args, index, step % PARTS);
        resolve_part(&part);
    }
}

/* A thread per frame that has one, that of its last zstd block. */
KERNEL(cogpu_kernel_zstd_checksums, struct zstd_args, struct nothing_shared, WARP, 8) {
    const struct zstd_round *round = &args->rounds[args->round];
    for (uint32_t i = block_index() * WARP + thread_index(); i < round->blocks;
         i += block_count() * WARP) {
        const struct zstd_block *block = &args->blocks[i];
        if (!(block->flags & ZSTD_LAST_BLOCK && block->flags & ZSTD_HAS_CHECKSUM) ||
            is_refused(args, block->tiff_block))
            continue;
        const uint8_t *frame =
            args->decoded + args->encoded[block->tiff_block].out + block->frame_begin;
        uint32_t bytes = block->begin + block->bytes - block->frame_begin;
        if ((uint32_t)xxh64(frame, bytes) != block->checksum)
            refuse_tiff_block(args, block->tiff_block, COGPU_GPU_CHECKSUM_MISMATCH);
    }
}
