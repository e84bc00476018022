/*
 * Takes slots and sizes, hands on the bytes of the file: the twin of cogpu_frame_block of
 * api/write_blocks.c and of what gives blocks to the file there.
 *
 * One block of threads sums up what stands before each block. Then blocks of threads copy: a thread
 * makes 16 bytes of the result, which lie at a multiple of 16 in memory, and so has to put them
 * together from a slot where they lie anyhow. Where a block begins and ends, bytes are stored one
 * by one.
 */
#include "backend/cuda/cuda_pack.h"
#include "backend/cuda/simt.h"

enum { VECTOR = COGPU_PACK_VECTOR, SCAN_WARPS = COGPU_PACK_SCAN_THREADS / WARP };

/* ---- where blocks begin ---- */

struct pack_scan_shared {
    uint64_t sums[SCAN_WARPS];
};

/* As warp_scan, for more than 4 GiB. A collective. */
DEVICE_FN uint64_t warp_scan_long(uint64_t value) {
    uint32_t lane = lane_index();
    for (uint32_t by = 1; by < WARP; by *= 2) {
        uint64_t below = warp_read64(value, lane >= by ? lane - by : lane);
        value += lane >= by ? below : 0;
    }
    return value;
}

/* The sum over this thread and those before it; *all over all. A collective of the block. */
DEVICE_FN uint64_t block_scan_long(uint64_t *sums, uint64_t value, uint64_t *all) {
    uint64_t scanned = warp_scan_long(value), before = 0;
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

KERNEL(cogpu_kernel_pack_scan, struct cogpu_pack_args, struct pack_scan_shared,
       COGPU_PACK_SCAN_THREADS, 1) {
    uint64_t before = 0, all;
    for (uint32_t first = 0; first < args->count; first += COGPU_PACK_SCAN_THREADS) {
        uint32_t i = first + thread_index();
        uint64_t bytes = i < args->count ? args->sizes[args->order[i]] : 0;
        uint64_t framed = bytes ? bytes + 2 * args->around : 0;
        uint64_t end = before + block_scan_long(shared->sums, framed, &all);
        if (i < args->count) {
            args->places[i].at = end - framed + (bytes ? args->around : 0);
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

/* A byte of a block, or of what stands around it: `at` counts from where its size begins. */
DEVICE_FN uint8_t framed_byte(const uint8_t *slot, uint64_t bytes, uint32_t around, uint64_t at) {
    if (at < around)
        return (uint8_t)(bytes >> (8 * at));
    at -= around;
    if (at < bytes)
        return slot[at];
    at -= bytes;
    uint64_t last = bytes < around ? bytes : around;
    return at < last ? slot[bytes - last + at] : 0;
}

/* A block of threads takes each 256th vector of a part; the vectors of a block's parts alternate,
 * too. */
KERNEL(cogpu_kernel_pack_gather, struct cogpu_pack_args, struct nothing_shared, COGPU_PACK_THREADS,
       8) {
    uint32_t index = block_index() / args->parts, part = block_index() % args->parts;
    struct cogpu_packed place = args->places[index];
    const uint8_t *slot = args->slots + args->blocks[args->order[index]].out;
    place.at += args->skew;
    uint64_t begin = place.at - args->around, end = place.at + place.bytes + args->around;
    (void)shared;
    if (place.bytes == 0)
        return;
    uint64_t first = begin / VECTOR * VECTOR,
             step = (uint64_t)args->parts * thread_count() * VECTOR;
    for (uint64_t to = first + ((uint64_t)part * thread_count() + thread_index()) * VECTOR;
         to < end; to += step) {
        /* The words that hold a vector are the slot's: it begins with one. */
        bool is_inside = to >= place.at && to + VECTOR + 3 <= place.at + place.bytes;
        if (is_inside) {
            store_words4(args->packed + to, load_words4_anywhere(slot + (to - place.at)));
            continue;
        }
        for (uint64_t at = to < begin ? begin : to; at < to + VECTOR && at < end; at++)
            args->packed[at] = framed_byte(slot, place.bytes, args->around, at - begin);
    }
}
