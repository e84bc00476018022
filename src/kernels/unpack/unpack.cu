/*
 * Unpacks decoded blocks into the caller's raster in one pass over memory: the bytes of
 * cpu/undo_filters.c, unpack.c and convert.c. unpack_common.h shows how a row travels through
 * shared memory; README.md has the idea.
 *
 *   block of 4 warps   warp 0: rows 0..r-1 of block 0 | warp 1: rows r..2r-1 | ...
 *                      groups = ceil(height / r) warps for each block of pixels
 *
 * Short aligned rows are staged several at a time; where lanes and rows begin together they are
 * also summed and stored together. Sums continue from segment to segment by the carry. There is one
 * kernel for each kind of row, so that none needs more registers and shared memory than it uses.
 */
#include "kernels/unpack/unpack_prefix_sum.h"
#include "kernels/unpack/unpack_store.h"

struct unpack_whole_shared {
    struct warp_stage stages[COGPU_UNPACK_WARPS];
};

struct unpack_shared {
    struct warp_stage stages[COGPU_UNPACK_WARPS];
    struct warp_samples samples[COGPU_UNPACK_WARPS];
};

/* ---- several short rows at a time, so that enough bytes are in flight ---- */

/* One row, from what is not yet undone for all rows to the raster. The carry is 0. */
DEVICE_FN void unpack_staged_row(const struct cogpu_gpu_pixels *pixels,
                                 const struct cogpu_unpack_block *block, uint32_t row,
                                 uint8_t *staged, bool is_summed, struct warp_memory memory,
                                 enum cogpu_unpack_kind kind) {
    uint32_t per_pixel = pixels->samples, end = block->source_x + block->width;
    uint32_t planes = pixels->bits / 8, width = pixels->block_width;
    bool is_planes = kind == COGPU_UNPACK_PLANES;
    struct row_segment segment = {memory.samples, 0, end};
    if (!is_summed)
        sum_pixels(staged, is_planes ? planes * width : end, memory.carry,
                   is_planes ? 1 : pixels->size, per_pixel, 0);
    if (kind == COGPU_UNPACK_WHOLE) {
        segment.samples = staged;
        if (pixels->is_cmyk)
            cmyk_to_rgba(staged, end);
    } else if (is_planes) {
        interleave_planes(staged, width * per_pixel, end * per_pixel, planes, memory.samples);
    } else {
        segment.x = block->source_x;
        segment.count = block->width;
        widen_row(pixels, staged, segment.x * per_pixel * pixels->bits, segment.count * per_pixel,
                  memory.samples);
    }
    store_segment(pixels, block, row, segment);
    sync_warp();
}

/* `count` rows, at most rows_staged. */
DEVICE_FN void unpack_staged_rows(const struct cogpu_gpu_pixels *pixels,
                                  const struct cogpu_unpack_block *block, uint32_t row,
                                  uint32_t count, struct warp_memory memory,
                                  enum cogpu_unpack_kind kind) {
    uint32_t row_bytes = pixels->row_bytes, bytes = count * row_bytes;
    uint32_t size = kind == COGPU_UNPACK_PLANES ? 1 : pixels->size;
    uint32_t lanes = lanes_per_row(row_bytes, size, pixels->samples);
    bool sums = kind != COGPU_UNPACK_BITS && pixels->predictor != 1;
    copy_to_stage(memory.stage,
                  pixels->decoded + block->decoded + (size_t)(block->source_y + row) * row_bytes,
                  bytes);
    wait_for_stage();
    if (kind == COGPU_UNPACK_WHOLE && pixels->swap)
        swap_bytes(memory.stage, bytes, pixels->swap);
    if (sums && lanes)
        sum_pixels(memory.stage, bytes / (size * pixels->samples), memory.carry, size,
                   pixels->samples, lanes);
    bool is_summed = !sums || lanes;
    if (kind == COGPU_UNPACK_WHOLE && is_summed && !pixels->is_cmyk &&
        store_rows(pixels, block, row, count, memory.stage))
        return;
    for (uint32_t i = 0; i < count; i++)
        unpack_staged_row(pixels, block, row + i, memory.stage + i * row_bytes, is_summed, memory,
                          kind);
}

/* ---- long rows, in segments ---- */

/* Without predictor from the window's first column on, with predictor 2 from the row's start. */
DEVICE_FN void unpack_whole_row(const struct cogpu_gpu_pixels *pixels,
                                const struct cogpu_unpack_block *block, uint32_t row,
                                const uint8_t *from, struct warp_memory memory) {
    bool sums = pixels->predictor == 2;
    uint32_t pixel = pixels->samples * pixels->size, end = block->source_x + block->width;
    uint8_t *area = memory.stage;
    /* Bytes are swapped in each part of a complex sample, but sums run over whole samples. */
    struct row_segment segment = {area, sums ? 0 : block->source_x, 0};
    if (sums)
        clear_carry(memory.carry);
    for (; segment.x < end; segment.x += segment.count) {
        segment.count = min_u32(pixels->segment_pixels, end - segment.x);
        copy_to_stage(area, from + (size_t)segment.x * pixel, segment.count * pixel);
        wait_for_stage();
        if (pixels->swap)
            swap_bytes(area, segment.count * pixel, pixels->swap);
        if (sums) {
            sum_pixels(area, segment.count, memory.carry, pixels->size, pixels->samples, 0);
            if (segment.x + segment.count < end)
                keep_carry(memory.carry, area + (segment.count - 1) * pixel, pixel);
        }
        if (pixels->is_cmyk)
            cmyk_to_rgba(area, segment.count);
        store_segment(pixels, block, row, segment);
        sync_warp();
    }
}

/* The carry of each plane: the sum of all planes before it. */
DEVICE_FN void find_plane_carries(const struct cogpu_gpu_pixels *pixels, const uint8_t *from,
                                  struct warp_memory memory) {
    uint32_t per_pixel = pixels->samples, planes = pixels->bits / 8, width = pixels->block_width;
    uint32_t fit = STAGE / per_pixel, count;
    uint8_t *area = memory.stage, *carry = memory.carry;
    fit = fit >= 16 ? fit / 16 * 16 : fit;
    for (uint32_t k = 0; k + 1 < planes; k++) {
        uint8_t *next = carry + (k + 1) * per_pixel;
        keep_carry(next, carry + k * per_pixel, per_pixel);
        for (uint32_t x = 0; x < width; x += count, from += (size_t)count * per_pixel) {
            count = min_u32(fit, width - x);
            copy_to_stage(area, from, count * per_pixel);
            wait_for_stage();
            sum_pixels(area, count, next, 1, per_pixel, 0);
            keep_carry(next, area + (count - 1) * per_pixel, per_pixel);
        }
    }
}

/* Sums run through all planes, one after the other. A row in one segment continues from plane to
 * plane; with several segments each plane has a carry of its own (find_plane_carries). */
DEVICE_FN void sum_planes(const struct cogpu_gpu_pixels *pixels, uint32_t count, uint32_t pitch,
                          bool is_whole, struct warp_memory memory) {
    uint32_t per_pixel = pixels->samples, planes = pixels->bits / 8, bytes = count * per_pixel;
    uint8_t *area = memory.stage, *carry = memory.carry;
    bool is_gapless = is_whole && pitch == bytes;
    for (uint32_t k = 0; k < (is_gapless ? 1 : planes); k++) {
        uint8_t *plane = area + k * pitch;
        const uint8_t *before = !is_whole ? carry + k * per_pixel
                                : k == 0  ? carry
                                          : plane - pitch + bytes - per_pixel;
        sum_pixels(plane, is_gapless ? count * planes : count, before, 1, per_pixel, 0);
        if (!is_whole)
            keep_carry(carry + k * per_pixel, plane + bytes - per_pixel, per_pixel);
    }
}

DEVICE_FN void unpack_planes_row(const struct cogpu_gpu_pixels *pixels,
                                 const struct cogpu_unpack_block *block, uint32_t row,
                                 const uint8_t *from, struct warp_memory memory) {
    uint32_t per_pixel = pixels->samples, planes = pixels->bits / 8, width = pixels->block_width;
    uint32_t end = block->source_x + block->width;
    bool is_whole = width <= pixels->segment_pixels;
    uint8_t *area = memory.stage, *samples = memory.samples;
    struct row_segment segment = {samples, 0, 0};
    clear_carry(memory.carry);
    if (!is_whole)
        find_plane_carries(pixels, from, memory);
    for (; segment.x < end; segment.x += segment.count) {
        segment.count = min_u32(pixels->segment_pixels, width - segment.x);
        uint32_t bytes = segment.count * per_pixel, pitch = round_up(bytes, VECTOR);
        for (uint32_t k = 0; k < planes; k++)
            copy_to_stage(area + k * pitch, from + ((size_t)k * width + segment.x) * per_pixel,
                          bytes);
        wait_for_stage();
        sum_planes(pixels, segment.count, pitch, is_whole, memory);
        interleave_planes(area, pitch, bytes, planes, samples);
        store_segment(pixels, block, row, segment);
        sync_warp();
    }
}

DEVICE_FN void unpack_bits_row(const struct cogpu_gpu_pixels *pixels,
                               const struct cogpu_unpack_block *block, uint32_t row,
                               const uint8_t *from, struct warp_memory memory) {
    uint32_t pixel_bits = pixels->samples * pixels->bits, end = block->source_x + block->width;
    uint8_t *area = memory.stage, *samples = memory.samples;
    struct row_segment segment = {samples, block->source_x, 0};
    for (; segment.x < end; segment.x += segment.count) {
        segment.count = min_u32(pixels->segment_pixels, end - segment.x);
        uint64_t bit = (uint64_t)segment.x * pixel_bits;
        uint32_t skip = (uint32_t)(bit % 8);
        copy_to_stage(area, from + bit / 8, (skip + segment.count * pixel_bits + 7) / 8);
        wait_for_stage();
        widen_row(pixels, area, skip, segment.count * pixels->samples, samples);
        store_segment(pixels, block, row, segment);
        sync_warp();
    }
}

DEVICE_FN void unpack_row(const struct cogpu_gpu_pixels *pixels,
                          const struct cogpu_unpack_block *block, uint32_t row,
                          struct warp_memory memory, enum cogpu_unpack_kind kind) {
    const uint8_t *from =
        pixels->decoded + block->decoded + (size_t)(block->source_y + row) * pixels->row_bytes;
    if (kind == COGPU_UNPACK_WHOLE)
        unpack_whole_row(pixels, block, row, from, memory);
    else if (kind == COGPU_UNPACK_PLANES)
        unpack_planes_row(pixels, block, row, from, memory);
    else
        unpack_bits_row(pixels, block, row, from, memory);
}

/* ---- blocks without data ---- */

/* A segment of fill samples, made once for all rows. */
DEVICE_FN void fill_samples(const struct cogpu_gpu_pixels *pixels, uint32_t count, uint8_t *to) {
    uint32_t bytes = count * pixels->samples * pixels->size;
    for (uint32_t i = lane_index(); i < bytes; i += WARP)
        to[i] = pixels->fill[i % pixels->size];
    sync_warp();
}

DEVICE_FN void fill_row(const struct cogpu_gpu_pixels *pixels,
                        const struct cogpu_unpack_block *block, uint32_t row,
                        struct warp_memory memory) {
    struct row_segment segment = {memory.samples, block->source_x, 0};
    uint32_t end = block->source_x + block->width;
    for (; segment.x < end; segment.x += segment.count) {
        segment.count = min_u32(pixels->segment_pixels, end - segment.x);
        store_segment(pixels, block, row, segment);
    }
}

/* ---- kernels ---- */

/* Not worth it where the window needs little of each row. */
DEVICE_FN bool stages_whole_rows(const struct cogpu_gpu_pixels *pixels,
                                 const struct cogpu_unpack_block *block) {
    return pixels->rows_staged > 0 &&
           (pixels->predictor != 1 || block->width >= pixels->block_width / 2);
}

/* `kind` is a constant in each kernel. */
DEVICE_FN void unpack_rows(const struct cogpu_unpack_args *args, struct warp_memory memory,
                           enum cogpu_unpack_kind kind) {
    const struct cogpu_gpu_pixels *pixels = &args->pixels;
    struct row_range range = rows_of_warp(args);
    if (range.row >= range.end)
        return;
    const struct cogpu_unpack_block block = args->blocks[range.block];
    if (block.decoded == COGPU_UNPACK_FILL) {
        fill_samples(pixels, min_u32(pixels->segment_pixels, block.width), memory.samples);
        for (; range.row < range.end; range.row++)
            fill_row(pixels, &block, range.row, memory);
    } else if (stages_whole_rows(pixels, &block)) {
        clear_carry(memory.carry);
        for (; range.row < range.end; range.row += pixels->rows_staged)
            unpack_staged_rows(pixels, &block, range.row,
                               min_u32(pixels->rows_staged, range.end - range.row), memory, kind);
    } else {
        for (; range.row < range.end; range.row++)
            unpack_row(pixels, &block, range.row, memory, kind);
    }
}

KERNEL(cogpu_kernel_unpack_whole, struct cogpu_unpack_args, struct unpack_whole_shared, 128, 7) {
    struct warp_stage *stage = &shared->stages[warp_index()];
    struct warp_memory memory = {(uint8_t *)stage->stage, (uint8_t *)stage->stage,
                                 (uint8_t *)stage->carry};
    unpack_rows(args, memory, COGPU_UNPACK_WHOLE);
}

DEVICE_FN struct warp_memory memory_of_warp(struct unpack_shared *shared) {
    struct warp_stage *stage = &shared->stages[warp_index()];
    struct warp_memory memory = {(uint8_t *)stage->stage,
                                 (uint8_t *)shared->samples[warp_index()].samples,
                                 (uint8_t *)stage->carry};
    return memory;
}

KERNEL(cogpu_kernel_unpack_planes, struct cogpu_unpack_args, struct unpack_shared, 128, 6) {
    unpack_rows(args, memory_of_warp(shared), COGPU_UNPACK_PLANES);
}

KERNEL(cogpu_kernel_unpack_bits, struct cogpu_unpack_args, struct unpack_shared, 128, 6) {
    unpack_rows(args, memory_of_warp(shared), COGPU_UNPACK_BITS);
}
