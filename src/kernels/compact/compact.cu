/*
 * Compacts the encoded blocks of a batch into the bytes of the file, contiguous and, in a COG, each
 * with its leader and trailer (the bytes of cogpu_add_leader_trailer in write/blocks.c).
 *
 *   slots     | block 0 ....   | block 1 ..     | block 2 ....... |   unused bytes behind each
 *   scan      offset of each block in the result: one block of 1024 threads
 *   gather    | 4 | block 0 | 4 | 4 | block 1 | 4 | ...                          contiguous
 *
 * Scan runs first; the stream orders gather after it. In gather a thread builds 16 bytes of the
 * result at an aligned address, from words of the slot at any alignment. At both ends of a block
 * bytes are stored one by one, since a neighbour may own the rest of the vector. Threads share
 * nothing there.
 */
#include "kernels/compact/compact_args.h"
#include "kernels/simt.h"

enum { VECTOR = COGPU_COMPACT_VECTOR, SCAN_WARPS = COGPU_COMPACT_SCAN_THREADS / WARP };

/* ---- offsets ---- */

struct compact_scan_shared {
    uint64_t sums[SCAN_WARPS];
};

/* warp_scan in 64 bits. A collective of the warp. */
DEVICE_FN uint64_t warp_scan64(uint64_t value) {
    uint32_t lane = lane_index();
    for (uint32_t by = 1; by < WARP; by *= 2) {
        uint64_t below = warp_read64(value, lane >= by ? lane - by : lane);
        value += lane >= by ? below : 0;
    }
    return value;
}

/* Returns the sum over this thread and those before it; *all gets the sum over all. A collective of
 * the block. */
DEVICE_FN uint64_t block_scan64(uint64_t *sums, uint64_t value, uint64_t *all) {
    uint64_t scanned = warp_scan64(value), before = 0;
    if (lane_index() == WARP - 1)
        sums[warp_index()] = scanned;
    sync_block();
    *all = 0;
    for (uint32_t i = 0; i < SCAN_WARPS; i++) {
        before += i < warp_index() ? sums[i] : 0;
        *all += sums[i];
    }
    sync_block();
    return before + scanned;
}

KERNEL(cogpu_kernel_compact_scan, struct cogpu_compact_args, struct compact_scan_shared,
       COGPU_COMPACT_SCAN_THREADS, 1) {
    uint64_t before = 0, all;
    for (uint32_t first = 0; first < args->count; first += COGPU_COMPACT_SCAN_THREADS) {
        uint32_t i = first + thread_index();
        uint64_t bytes = i < args->count ? args->sizes[args->order[i]] : 0;
        uint64_t with_frame = bytes ? bytes + 2 * args->around : 0;
        uint64_t end = before + block_scan64(shared->sums, with_frame, &all);
        if (i < args->count) {
            args->places[i].at = end - with_frame + (bytes ? args->around : 0);
            args->places[i].bytes = bytes;
        }
        before += all;
    }
    if (thread_index() == 0) {
        args->places[args->count].at = before;
        args->places[args->count].bytes = 0;
    }
}

/* ---- the bytes ---- */

/* A byte of a block with its leader and trailer: `at` counts from the first byte of the leader. */
DEVICE_FN uint8_t byte_with_frame(const uint8_t *slot, uint64_t bytes, uint32_t around,
                                  uint64_t at) {
    if (at < around)
        return (uint8_t)(bytes >> (8 * at));
    at -= around;
    if (at < bytes)
        return slot[at];
    at -= bytes;
    uint64_t last = bytes < around ? bytes : around;
    return at < last ? slot[bytes - last + at] : 0;
}

/* Thread t of part p copies vectors p * 256 + t, and each one parts * 256 vectors further. */
KERNEL(cogpu_kernel_compact_gather, struct cogpu_compact_args, struct nothing_shared,
       COGPU_COMPACT_THREADS, 8) {
    uint32_t index = block_index() / args->parts, part = block_index() % args->parts;
    struct cogpu_compacted_block target = args->places[index];
    const uint8_t *slot = args->slots + args->blocks[args->order[index]].out;
    target.at += args->skew;
    uint64_t begin = target.at - args->around, end = target.at + target.bytes + args->around;
    (void)shared;
    if (target.bytes == 0)
        return;
    uint64_t first = begin / VECTOR * VECTOR,
             step = (uint64_t)args->parts * thread_count() * VECTOR;
    for (uint64_t to = first + ((uint64_t)part * thread_count() + thread_index()) * VECTOR;
         to < end; to += step) {
        /* Words that hold a byte of the vector are inside the slot, which is aligned. */
        bool is_inside = to >= target.at && to + VECTOR + 3 <= target.at + target.bytes;
        if (is_inside) {
            store_words4(args->packed + to, load_words4_anywhere(slot + (to - target.at)));
            continue;
        }
        for (uint64_t at = to < begin ? begin : to; at < to + VECTOR && at < end; at++)
            args->packed[at] = byte_with_frame(slot, target.bytes, args->around, at - begin);
    }
}
