/*
 * What the unpack kernels share: a warp's memory, its rows, copies to shared memory, byte order.
 * Included by the files of this folder only.
 *
 *   global memory             shared memory of a warp                      global memory
 *
 *   decoded row    --copy-->  stage:    segment as in the file
 *   |  4 KiB  | ..                      | undo byte order, predictor
 *                             samples:  segment as samples    --store-->   raster, at its strides
 *                             carry:    the pixel before the segment
 *
 * A warp handles a few rows of a block, one after the other, in segments that its memory holds.
 * Warps share nothing; sync_warp orders lanes that read what other lanes wrote to shared
 * memory.
 */
#ifndef COGPU_KERNELS_UNPACK_UNPACK_COMMON_H
#define COGPU_KERNELS_UNPACK_UNPACK_COMMON_H

#include "kernels/simt.h"
#include "kernels/unpack/unpack_args.h"

enum { STAGE = COGPU_UNPACK_STAGE, SPARE = 64, VECTOR = 16 };

/* A warp's memory. Lanes work on whole vectors, so they may pass the end of a segment a little. */
struct warp_stage {
    words4 stage[(STAGE + SPARE) / VECTOR];    /* the segment as it is in the file */
    words4 carry[COGPU_UNPACK_PIXEL / VECTOR]; /* the pixel before the segment */
};

struct warp_samples {
    words4 samples[(STAGE + SPARE) / VECTOR]; /* the segment as samples, unless made in place */
};

struct warp_memory {
    uint8_t *stage, *samples, *carry;
};

DEVICE_FN uint32_t round_up(uint32_t value, uint32_t unit) {
    return (value + unit - 1) / unit * unit;
}

/* ---- numbers of 1, 2, 4 and 8 bytes at aligned addresses ---- */

DEVICE_FN uint64_t load_aligned(const uint8_t *at, uint32_t size) {
    return size == 1   ? *at
           : size == 2 ? *(const number16 *)(const void *)at
           : size == 4 ? *(const number32 *)(const void *)at
                       : *(const number64 *)(const void *)at;
}

DEVICE_FN void store_aligned(uint8_t *at, uint64_t value, uint32_t size) {
    if (size == 1)
        *at = (uint8_t)value;
    else if (size == 2)
        *(number16 *)(void *)at = (uint16_t)value;
    else if (size == 4)
        *(number32 *)(void *)at = (uint32_t)value;
    else
        *(number64 *)(void *)at = value;
}

/* Rows of a block for one warp: none where the CPU decodes the block (status not 0). */
struct row_range {
    uint32_t block, row, end;
};

DEVICE_FN struct row_range rows_of_warp(const struct cogpu_unpack_args *args) {
    uint32_t number = block_index() * COGPU_UNPACK_WARPS + warp_index();
    struct row_range range = {number / args->groups, number % args->groups * args->rows, 0};
    if (range.block >= args->count)
        return range;
    const struct cogpu_unpack_block *block = args->blocks + range.block;
    const uint32_t *statuses = args->pixels.statuses;
    if (!statuses || statuses[block->block_status] == 0)
        range.end = min_u32(range.row + args->rows, block->height);
    return range;
}

/* ---- staging ---- */

/* Copies bytes from any address in global memory to an aligned one in shared memory. Up to 15 bytes
 * more are read and written. They are there after wait_for_stage. */
DEVICE_FN void copy_to_stage(uint8_t *to, const uint8_t *from, uint32_t bytes) {
    uint32_t skew = (uint32_t)((uintptr_t)from % VECTOR);
    if (skew == 0) {
        for (uint32_t at = VECTOR * lane_index(); at < bytes; at += VECTOR * WARP)
            copy_to_shared_16(to + at, from + at);
        return;
    }
    uint32_t shift = skew % 4 * 8;
    from -= skew % 4;
    for (uint32_t at = 4 * lane_index(); at < bytes; at += 4 * WARP) {
        uint32_t low = load_u32_aligned(from + at), high = 0;
        if (shift)
            high = load_u32_aligned(from + at + 4);
        store_aligned(to + at, funnel_right(low, high, shift), 4);
    }
}

DEVICE_FN void wait_for_stage(void) {
    copies_commit();
    copies_wait();
    sync_warp();
}

/* ---- byte order ---- */

DEVICE_FN uint32_t swap_halves(uint32_t word) {
    return pick_bytes(word, 0, 0x2301);
}

DEVICE_FN uint32_t swap_word(uint32_t word) {
    return pick_bytes(word, 0, 0x0123);
}

DEVICE_FN words4 swap_vector(words4 v, uint32_t unit) {
    words4 swapped;
    if (unit == 2) {
        swapped.x = swap_halves(v.x), swapped.y = swap_halves(v.y);
        swapped.z = swap_halves(v.z), swapped.w = swap_halves(v.w);
    } else if (unit == 4) {
        swapped.x = swap_word(v.x), swapped.y = swap_word(v.y);
        swapped.z = swap_word(v.z), swapped.w = swap_word(v.w);
    } else {
        swapped.x = swap_word(v.y), swapped.y = swap_word(v.x);
        swapped.z = swap_word(v.w), swapped.w = swap_word(v.z);
    }
    return swapped;
}

DEVICE_FN void swap_bytes(uint8_t *row, uint32_t bytes, uint32_t unit) {
    for (uint32_t at = VECTOR * lane_index(); at < bytes; at += VECTOR * WARP)
        store_words4(row + at, swap_vector(load_words4(row + at), unit));
    sync_warp();
}

#endif
