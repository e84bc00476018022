/*
 * Deflate decoder for few streams, on the host side: divides scratch memory and launches the
 * kernels. README.md has the idea.
 *
 * The host does not know what a stream decodes to, and does not wait. So numbers of spans and pages
 * are upper bounds; arrays of chunks, codes and checkpoints have memory for usual streams. Memory
 * is limited twice: some streams at a time (a round), and some of their output (a window):
 *
 *     round      plan, search, walk, link, place | window: decode, resolve | window ... | finish
 */
#include "kernels/deflate/inflate_few_launch.h"

#include "base/checked.h"
#include "base/math.h"
#include "kernels/deflate/inflate_few_args.h"

extern const cogpu_kernel cogpu_kernel_inflate_few_plan, cogpu_kernel_inflate_few_search,
    cogpu_kernel_inflate_few_walk, cogpu_kernel_inflate_few_link, cogpu_kernel_inflate_few_place,
    cogpu_kernel_inflate_few_decode, cogpu_kernel_inflate_few_resolve,
    cogpu_kernel_inflate_few_finish;

/* Measured on an H200: spans below 32 KiB often have no deflate block. */
const struct cogpu_inflate_few_sizes cogpu_inflate_few_defaults = {
    .span_bytes = 32 << 10, .fronts = 128, .round_bytes = 64 << 20, .window_bytes = 64 << 20};

/* Scratch memory is limited to this, as long as a window has WINDOW_PAGES_BEST: for more than 90 MB
 * of encoded bytes in one stream it is more. With less than WINDOW_PAGES_MIN inflate.cu decodes. */
enum { SCRATCH_MAX = 150 << 20, WINDOW_PAGES_MIN = 64, WINDOW_PAGES_BEST = 512 };

enum { PAGE_SYMBOLS_BYTES = COGPU_INFLATE_PAGE_BYTES * sizeof(uint16_t) };

/* Walks that run at once, at most: 528 on an H200. */
enum { SPANS_MAX = 640 };

/* Usual streams have deflate blocks of 7 KB or more, or of 32 KiB of output as those of cogpu's GPU
 * encoder, and a checkpoint for each 9 to 18 bytes. Others are left to inflate.cu, except that
 * short ones may have many. */
enum {
    BYTES_PER_CHUNK = 1024,
    BYTES_PER_CODES = 4096,
    BYTES_PER_CHECKPOINT = 8,
    CHUNKS_FREE = 64, /* of each stream */
    CODES_FREE = 64,
    CODES_PER_PAGE = 2,
    CHECKPOINTS_FREE = 4096
};

/* A round: streams, and the sums of their sizes. */
struct few_round {
    uint32_t count;
    uint64_t stored, pages, spans;
    uint32_t span_bytes;
};

/* Offsets into scratch. */
struct few_layout {
    uint64_t anchors, pages, counters, chunks, codes, checkpoints, symbols, bytes;
};

static uint64_t pages_of(const cogpu_encoded_block *block) {
    return divide_up(block->capacity, COGPU_INFLATE_PAGE_BYTES);
}

/* Elements of the arrays that walks fill. */
struct few_arrays {
    uint64_t chunks, codes, checkpoints;
};

static struct few_arrays measure_arrays(const struct few_round *round) {
    return (struct few_arrays){
        round->stored / BYTES_PER_CHUNK + CHUNKS_FREE * (uint64_t)round->count +
            CODES_PER_PAGE * round->pages,
        round->stored / BYTES_PER_CODES + CODES_FREE * (uint64_t)round->count +
            CODES_PER_PAGE * round->pages,
        round->stored / BYTES_PER_CHECKPOINT + CHECKPOINTS_FREE * (uint64_t)round->count};
}

/* The next round: as many streams as fit, at least one. They are divided into about so many
 * spans.
 */
static struct few_round choose_round(const cogpu_encoded_block *blocks, uint32_t count,
                                     const struct cogpu_inflate_few_sizes *sizes, uint64_t spans) {
    struct few_round round = {0};
    uint64_t largest = 0;
    while (
        round.count < count &&
        (round.count == 0 || round.stored + blocks[round.count].in_bytes <= sizes->round_bytes)) {
        const cogpu_encoded_block *block = &blocks[round.count++];
        round.stored += block->in_bytes;
        round.pages += pages_of(block);
        largest = max_u64(largest, block->in_bytes);
    }
    const uint64_t span = max_u64(round.stored / spans, largest / (COGPU_INFLATE_SPANS_MAX - 2));
    round.span_bytes = (uint32_t)max_u64(cogpu_gpu_align(span), sizes->span_bytes);
    /* The last span of a stream is not whole, and its first byte may not be the first of a quad. */
    round.spans = round.stored / round.span_bytes + 2 * (uint64_t)round.count;
    return round;
}

/* Offsets for a round with windows of so many pages. */
static struct few_layout lay_out_scratch(const struct few_round *round, uint64_t window_pages) {
    const uint64_t windows = divide_up(round->pages, window_pages);
    const struct few_arrays arrays = measure_arrays(round);
    struct few_layout at;
    at.anchors = (round->count + 1) * sizeof(struct cogpu_inflate_few_stream);
    at.pages = at.anchors + round->spans * sizeof(struct cogpu_inflate_anchor);
    at.counters = at.pages + round->pages * sizeof(struct cogpu_inflate_page);
    at.chunks =
        cogpu_gpu_align(at.counters + (COGPU_INFLATE_DECODE_QUEUES + windows) * sizeof(uint32_t));
    at.codes = cogpu_gpu_align(at.chunks + arrays.chunks * sizeof(struct cogpu_inflate_chunk));
    at.checkpoints = cogpu_gpu_align(at.codes + arrays.codes * COGPU_INFLATE_CODES_BYTES);
    at.symbols = cogpu_gpu_align(at.checkpoints +
                                 arrays.checkpoints * sizeof(struct cogpu_inflate_checkpoint));
    at.bytes = at.symbols + window_pages * PAGE_SYMBOLS_BYTES;
    return at;
}

/* All but the symbols, at most: windows of one page need the most queues. */
static uint64_t bytes_without_symbols(const struct few_round *round) {
    return lay_out_scratch(round, 1).symbols;
}

/* Pages of a window, so that windows of `most` pages or fewer have about the same size. */
static uint64_t equal_windows(uint64_t pages, uint64_t most) {
    return divide_up(pages, divide_up(pages, max_u64(most, 1)));
}

/* Pages of a window; 0 if the memory is not enough for the round. */
static uint64_t choose_window(const struct few_round *round, uint64_t scratch_bytes,
                              uint64_t window_bytes) {
    const uint64_t without = bytes_without_symbols(round);
    const uint64_t fit =
        scratch_bytes > without ? (scratch_bytes - without) / PAGE_SYMBOLS_BYTES : 0;
    const uint64_t most = equal_windows(round->pages, window_bytes / COGPU_INFLATE_PAGE_BYTES);
    const uint64_t pages = min_u64(most, fit);
    return pages < min_u64(most, WINDOW_PAGES_MIN) ? 0 : equal_windows(round->pages, pages);
}

static uint64_t round_scratch(const struct few_round *round, uint64_t window_bytes) {
    const uint64_t least =
        bytes_without_symbols(round) + (uint64_t)WINDOW_PAGES_BEST * PAGE_SYMBOLS_BYTES;
    const uint64_t pages = choose_window(round, max_u64(SCRATCH_MAX, least), window_bytes);
    return bytes_without_symbols(round) + pages * PAGE_SYMBOLS_BYTES;
}

uint64_t cogpu_inflate_few_scratch(const cogpu_encoded_block *blocks, uint32_t count,
                                   const struct cogpu_inflate_few_sizes *sizes) {
    uint64_t best = 0;
    for (uint32_t first = 0; first < count;) {
        const struct few_round round =
            choose_round(blocks + first, count - first, sizes, SPANS_MAX);
        best = max_u64(best, round_scratch(&round, sizes->window_bytes));
        first += round.count;
    }
    return best;
}

static const cogpu_kernel *const kernels[] = {&cogpu_kernel_inflate_few_plan,
                                              &cogpu_kernel_inflate_few_search,
                                              &cogpu_kernel_inflate_few_walk,
                                              &cogpu_kernel_inflate_few_link,
                                              &cogpu_kernel_inflate_few_place,
                                              &cogpu_kernel_inflate_few_decode,
                                              &cogpu_kernel_inflate_few_resolve,
                                              &cogpu_kernel_inflate_few_finish,
                                              NULL};

static uint64_t resident(const cogpu_gpu *gpu, const cogpu_kernel *kernel) {
    return (uint64_t)gpu->multiprocessors * kernel->per_multiprocessor;
}

/* As many thread blocks as the device runs at once, if there is so much work: they loop over it. */
static cogpu_status launch_resident(const cogpu_gpu_batch *batch, const cogpu_kernel *kernel,
                                    uint64_t work, const struct cogpu_inflate_few_args *args,
                                    cogpu_error *error) {
    return batch->gpu->calls->launch(batch->gpu, kernel,
                                     (uint32_t)min_u64(resident(batch->gpu, kernel), work), args,
                                     batch->stream, error);
}

static cogpu_status launch_window(const cogpu_gpu_batch *batch,
                                  const struct cogpu_inflate_few_args *args, cogpu_error *error) {
    const uint64_t parts =
        (uint64_t)args->window_pages * (COGPU_INFLATE_PAGE_BYTES / COGPU_INFLATE_RESOLVE_BYTES);
    TRY(launch_resident(batch, &cogpu_kernel_inflate_few_decode, args->window_pages, args, error));
    return batch->gpu->calls->launch(batch->gpu, &cogpu_kernel_inflate_few_resolve,
                                     (uint32_t)(args->fronts * divide_up(parts, args->fronts)),
                                     args, batch->stream, error);
}

static cogpu_status launch_walks(const cogpu_gpu_batch *batch,
                                 const struct cogpu_inflate_few_args *args, uint64_t spans,
                                 cogpu_error *error) {
    cogpu_gpu *gpu = batch->gpu;
    TRY(gpu->calls->launch(gpu, &cogpu_kernel_inflate_few_plan, 1, args, batch->stream, error));
    TRY(launch_resident(batch, &cogpu_kernel_inflate_few_search, spans, args, error));
    TRY(launch_resident(batch, &cogpu_kernel_inflate_few_walk, spans, args, error));
    TRY(gpu->calls->launch(gpu, &cogpu_kernel_inflate_few_link, args->count, args, batch->stream,
                           error));
    return launch_resident(batch, &cogpu_kernel_inflate_few_place,
                           divide_up(args->chunks_max, cogpu_kernel_inflate_few_place.threads),
                           args, error);
}

static cogpu_status launch_round(const cogpu_gpu_batch *batch, const struct few_round *round,
                                 uint32_t first, uint64_t window_pages, uint32_t fronts,
                                 cogpu_error *error) {
    cogpu_gpu *gpu = batch->gpu;
    uint8_t *scratch = batch->scratch;
    const struct few_layout at = lay_out_scratch(round, window_pages);
    const struct few_arrays arrays = measure_arrays(round);
    struct cogpu_inflate_few_args args = {
        .blocks = batch->device_blocks + first,
        .stored = batch->stored,
        .decoded = batch->decoded,
        .statuses = batch->statuses + first,
        .streams = (void *)scratch,
        .anchors = (void *)(scratch + at.anchors),
        .pages = (void *)(scratch + at.pages),
        .counters = (void *)(scratch + at.counters),
        .chunks = (void *)(scratch + at.chunks),
        .codes = scratch + at.codes,
        .checkpoints = (void *)(scratch + at.checkpoints),
        .symbols = (void *)(scratch + at.symbols),
        .count = round->count,
        .span_bytes = round->span_bytes,
        .chunks_max = (uint32_t)arrays.chunks,
        .codes_max = (uint32_t)arrays.codes,
        .checkpoints_max = (uint32_t)arrays.checkpoints,
        .queue = COGPU_INFLATE_DECODE_QUEUES,
        .fronts = fronts,
    };
    TRY(gpu->calls->clear(gpu, scratch, at.chunks, batch->stream, error));
    TRY(launch_walks(batch, &args, round->spans, error));
    for (; args.window < round->pages; args.window += (uint32_t)window_pages, args.queue++) {
        args.window_pages = (uint32_t)min_u64(window_pages, round->pages - args.window);
        TRY(launch_window(batch, &args, error));
    }
    return gpu->calls->launch(
        gpu, &cogpu_kernel_inflate_few_finish,
        (uint32_t)divide_up(round->count, cogpu_kernel_inflate_few_finish.threads), &args,
        batch->stream, error);
}

bool cogpu_inflate_few_can_decode(const cogpu_gpu_batch *batch,
                                  const struct cogpu_inflate_few_sizes *sizes) {
    for (uint32_t first = 0; first < batch->count;) {
        const struct few_round round =
            choose_round(batch->blocks + first, batch->count - first, sizes, SPANS_MAX);
        if (choose_window(&round, batch->scratch_bytes, sizes->window_bytes) == 0)
            return false;
        first += round.count;
    }
    return cogpu_gpu_can_run(batch->gpu, kernels);
}

cogpu_status cogpu_inflate_few_decode(const cogpu_gpu_batch *batch,
                                      const struct cogpu_inflate_few_sizes *sizes,
                                      cogpu_error *error) {
    const uint64_t walks = resident(batch->gpu, &cogpu_kernel_inflate_few_walk);
    const uint64_t spans = min_u64(SPANS_MAX, sizes->spans > 0 ? sizes->spans : walks);
    for (uint32_t first = 0; first < batch->count;) {
        const struct few_round round =
            choose_round(batch->blocks + first, batch->count - first, sizes, spans);
        const uint64_t pages = choose_window(&round, batch->scratch_bytes, sizes->window_bytes);
        TRY(launch_round(batch, &round, first, pages, sizes->fronts, error));
        first += round.count;
    }
    return COGPU_OK;
}
