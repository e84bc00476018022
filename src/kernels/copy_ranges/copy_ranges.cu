/*
 * Copies many byte ranges from one place of device memory to another, in one launch.
 *
 *   blocks of threads   range 0: parts 0 .. p-1 | range 1: parts 0 .. p-1 | ...
 *   part                256 vectors of 16 bytes, and each p * 256 vectors further
 *
 * A thread builds 16 bytes at an aligned address from words at any alignment, so that loads and
 * stores of a warp coalesce. The last bytes of a range are copied one by one. Threads share
 * nothing.
 */
#include "kernels/copy_ranges/copy_ranges_args.h"
#include "kernels/simt.h"

enum { VECTOR = COGPU_RANGES_VECTOR };

KERNEL(cogpu_kernel_copy_ranges, struct cogpu_ranges_args, struct nothing_shared,
       COGPU_RANGES_THREADS, 8) {
    const struct cogpu_copied_range range = args->ranges[block_index() / args->parts];
    uint32_t part = block_index() % args->parts;
    uint64_t step = (uint64_t)args->parts * thread_count() * VECTOR;
    (void)shared;
    for (uint64_t at = ((uint64_t)part * thread_count() + thread_index()) * VECTOR;
         at < range.bytes; at += step) {
        if (at + VECTOR <= range.bytes) {
            store_words4(range.to + at, load_words4_anywhere(range.from + at));
            continue;
        }
        for (uint64_t i = at; i < range.bytes; i++)
            range.to[i] = range.from[i];
    }
}
