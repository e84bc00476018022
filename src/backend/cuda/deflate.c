/*
 * Takes a batch of blocks, launches the kernels of cuda_deflate.cu, which make zlib streams of
 * them: as many blocks in a round as the scratch has room for. In a round, where matches are
 * searched, bytes are linked; thread blocks take one part of a block after the other; then each
 * part is given its place; then all are moved there.
 */
#include "backend/cuda/cuda_deflate.h"
#include "base/checked.h"

extern const cogpu_kernel cogpu_kernel_deflate_link, cogpu_kernel_deflate,
    cogpu_kernel_deflate_search, cogpu_kernel_deflate_place, cogpu_kernel_deflate_join;

/* Thread blocks that search, at once: more the largest device does not hold. */
enum { SEARCHING_MAX = 400 };

static const uint64_t found_bytes = COGPU_DEFLATE_PART * sizeof(uint32_t);

/* What is done beyond the distances that are always asked. Up to the usual level nothing is, and
 * beyond 9 nothing more. */
struct effort {
    uint32_t depth, turns;
};

static struct effort effort_of(int level) {
    static const struct effort efforts[] = {{0, 1}, {1, 1}, {4, 3}, {16, 3}};
    return efforts[level <= 6 ? 0 : level >= 9 ? 3 : level - 6];
}

static uint64_t least_of(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t parts_of(uint64_t bytes) {
    return divide_up(bytes, COGPU_DEFLATE_PART);
}

static uint64_t parts_most(const cogpu_uncoded *blocks, uint32_t count) {
    uint64_t most = 1;
    for (uint32_t i = 0; i < count; i++)
        most = parts_of(blocks[i].in_bytes) > most ? parts_of(blocks[i].in_bytes) : most;
    return most;
}

/* Two bytes before the parts, four behind them, and all of the last word. */
static uint64_t deflate_bound(uint64_t in_bytes, uint64_t row_bytes) {
    (void)row_bytes;
    const uint64_t bits = parts_of(in_bytes) * COGPU_DEFLATE_STORED_BITS;
    return (in_bytes + (bits + 7) / 8 + 2 + 4 + 3) / 4 * 4;
}

/* How scratch is laid out for so many parts: as they are staged, linked and told of. */
struct layout {
    uint64_t links, parts, bytes;
};

static struct layout lay_out(uint64_t parts, bool searches) {
    struct layout layout;
    layout.links = parts * COGPU_DEFLATE_STAGED;
    layout.parts = layout.links + searches * parts * COGPU_DEFLATE_PART * sizeof(uint16_t);
    layout.bytes = layout.parts + cogpu_gpu_align(parts * sizeof(struct cogpu_deflate_part));
    return layout;
}

/* How scratch is shared: blocks of a round, and thread blocks that search. */
struct shares {
    uint64_t blocks, searching;
};

static struct shares best_shares(uint32_t count, uint64_t most, bool searches) {
    return (struct shares){count, searches ? least_of(count * most, SEARCHING_MAX) : 0};
}

static uint64_t shares_bytes(struct shares shares, uint64_t most) {
    return shares.blocks * lay_out(most, shares.searching > 0).bytes +
           shares.searching * found_bytes;
}

/* Where there is less scratch than is best, there is less for both. */
static struct shares share(uint64_t bytes, struct shares best, uint64_t most) {
    const uint64_t whole = shares_bytes(best, most), some = least_of(bytes, whole);
    const uint64_t block_bytes = lay_out(most, best.searching > 0).bytes;
    struct shares shares = {0, 0};
    if (best.searching > 0) {
        const uint64_t fair = some / found_bytes * best.searching / (whole / found_bytes);
        shares.searching = least_of(fair > 0 ? fair : 1, (some - block_bytes) / found_bytes);
    }
    shares.blocks = (some - shares.searching * found_bytes) / block_bytes;
    return shares;
}

static void deflate_scratch(const cogpu_uncoded *blocks, uint32_t count, int level, uint64_t *least,
                            uint64_t *best) {
    const uint64_t most = parts_most(blocks, count);
    const bool searches = effort_of(level).depth > 0;
    *least = shares_bytes((struct shares){1, searches}, most);
    *best = shares_bytes(best_shares(count, most, searches), most);
}

static cogpu_status encode_round(const cogpu_gpu_encoding *encoding,
                                 const struct cogpu_deflate_args *args, uint64_t searching,
                                 cogpu_error *error) {
    cogpu_gpu *gpu = encoding->gpu;
    const bool searches = args->depth > 0;
    const cogpu_kernel *kernel = searches ? &cogpu_kernel_deflate_search : &cogpu_kernel_deflate;
    const uint32_t parts = args->count * args->parts_most;
    const uint64_t held = (uint64_t)gpu->multiprocessors * kernel->per_multiprocessor;
    const uint64_t at_once = least_of(searches ? least_of(held, searching) : held, parts);
    if (searches) {
        const uint64_t stretches =
            divide_up((uint64_t)args->parts_most * COGPU_DEFLATE_PART, COGPU_DEFLATE_STRETCH);
        TRY(gpu->calls->launch(gpu, &cogpu_kernel_deflate_link, (uint32_t)(args->count * stretches),
                               args, encoding->stream, error));
    }
    TRY(gpu->calls->launch(gpu, kernel, (uint32_t)at_once, args, encoding->stream, error));
    TRY(gpu->calls->launch(gpu, &cogpu_kernel_deflate_place, args->count, args, encoding->stream,
                           error));
    return gpu->calls->launch(gpu, &cogpu_kernel_deflate_join, parts, args, encoding->stream,
                              error);
}

static cogpu_status deflate_encode(const cogpu_gpu_encoding *encoding, cogpu_error *error) {
    const struct effort effort = effort_of(encoding->level);
    const bool searches = effort.depth > 0;
    const uint64_t most = parts_most(encoding->blocks, encoding->count);
    const struct shares best = best_shares(encoding->count, most, searches);
    const struct shares shares = share(encoding->scratch_bytes, best, most);
    uint8_t *scratch = encoding->scratch;
    struct cogpu_deflate_args args = {.decoded = encoding->decoded,
                                      .slots = encoding->slots,
                                      .staged = scratch,
                                      .parts_most = (uint32_t)most,
                                      .depth = effort.depth,
                                      .turns = effort.turns};
    for (uint64_t first = 0; first < encoding->count; first += args.count) {
        args.count = (uint32_t)least_of(shares.blocks, encoding->count - first);
        args.blocks = encoding->device_blocks + first;
        args.sizes = encoding->sizes + first;
        const struct layout layout = lay_out(args.count * most, searches);
        args.links = (uint16_t *)(void *)(scratch + layout.links);
        args.parts = (struct cogpu_deflate_part *)(void *)(scratch + layout.parts);
        args.found = (uint32_t *)(void *)(scratch + layout.bytes);
        TRY(encode_round(encoding, &args, shares.searching, error));
    }
    return COGPU_OK;
}

/* Warps that link take 64 KiB each. */
static uint64_t deflate_batch_bytes(int level) {
    return effort_of(level).depth > 0 ? 20 << 20 : 7 << 20;
}

const cogpu_gpu_encoder cogpu_gpu_deflate = {.bound = deflate_bound,
                                             .scratch = deflate_scratch,
                                             .batch_bytes = deflate_batch_bytes,
                                             .encode = deflate_encode};
