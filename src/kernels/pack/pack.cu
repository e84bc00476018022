/*
 * Packs rows of a raster into decoded bytes of blocks: the bytes of cpu/pack.c.
 *
 * A warp packs a few rows of a block, one after the other, in segments that its shared memory
 * holds, with the pixel before each. A difference needs that pixel only, so nothing is summed and
 * no segment waits for another:
 *
 *   raster, at its strides --load--> | before | stage: pixels of the file |
 *                                        \________/ NaN replaced, compared with fill
 *                                          difference, split into planes, or pack bits
 *                                    | packed                             | --copy--> block
 *
 * Lanes handle vectors of 16 bytes side by side. Warps share nothing but `sizes`, by atomic_max;
 * sync_warp orders lanes that read what other lanes wrote to shared memory.
 */
#include "kernels/pack/pack_args.h"
#include "kernels/simt.h"
#include "pixel/bits.h"
#include "pixel/predictor.h"

enum { VECTOR = 16, PLANES_MAX = 8 };

/* A warp's shared memory. */
struct pack_memory {
    words4 before[COGPU_PACK_PIXEL / VECTOR]; /* its end is the pixel before the segment */
    words4 stage[COGPU_PACK_STAGE / VECTOR];  /* the segment as pixels of the file */
    words4 packed[COGPU_PACK_STAGE / VECTOR + PLANES_MAX]; /* planes begin at vectors */
};

struct pack_shared {
    struct pack_memory memories[COGPU_PACK_WARPS];
};

/* ---- samples ---- */

/* A sample; `high` is used by complex samples of 16 bytes only. */
struct wide_sample {
    uint64_t low, high;
};

DEVICE_FN struct wide_sample load_wide_sample(const uint8_t *at, uint32_t size) {
    struct wide_sample sample = {load_sample(at, min_u32(size, 8)), 0};
    if (size == 16)
        sample.high = load_sample(at + 8, 8);
    return sample;
}

DEVICE_FN void store_wide_sample(uint8_t *at, struct wide_sample sample, uint32_t size) {
    store_sample(at, sample.low, min_u32(size, 8));
    if (size == 16)
        store_sample(at + 8, sample.high, 8);
}

DEVICE_FN bool is_nan(const struct cogpu_gpu_packing *packing, struct wide_sample sample) {
    return (sample.low & packing->magnitude) > packing->infinity;
}

DEVICE_FN struct wide_sample replace_nan(const struct cogpu_gpu_packing *packing,
                                         struct wide_sample sample) {
    if (packing->replaces_nan && is_nan(packing, sample))
        sample.low = packing->fill[0];
    return sample;
}

DEVICE_FN bool is_fill(const struct cogpu_gpu_packing *packing, struct wide_sample sample) {
    return packing->fill_is_nan ? is_nan(packing, sample)
                                : sample.low == packing->fill[0] && sample.high == packing->fill[1];
}

/* ---- between global and shared memory ---- */

/* Copies bytes from any address in global memory to an aligned one in shared memory, and reads none
 * outside of them. They are there after wait_for_stage. */
DEVICE_FN void copy_to_stage(uint8_t *to, const uint8_t *from, uint32_t bytes) {
    uint32_t lane = lane_index(), skew = (uint32_t)((uintptr_t)from % 4);
    if ((uintptr_t)from % VECTOR == 0) {
        uint32_t whole = bytes / VECTOR * VECTOR;
        for (uint32_t at = VECTOR * lane; at < whole; at += VECTOR * WARP)
            copy_to_shared_16(to + at, from + at);
        if (whole + lane < bytes)
            to[whole + lane] = from[whole + lane];
        return;
    }
    for (uint32_t at = 4 * lane; at < bytes; at += 4 * WARP) {
        bool is_inside = at >= skew && at - skew + (skew ? 8 : 4) <= bytes;
        if (is_inside) {
            uint32_t low = load_u32_aligned(from + at - skew);
            uint32_t high = skew ? load_u32_aligned(from + at - skew + 4) : 0;
            store_sample(to + at, funnel_right(low, high, 8 * skew), 4);
        } else {
            for (uint32_t i = at; i < min_u32(at + 4, bytes); i++)
                to[i] = from[i];
        }
    }
}

DEVICE_FN void wait_for_stage(void) {
    copies_commit();
    copies_wait();
    sync_warp();
}

/* Copies bytes from an aligned address to any one in global memory. */
DEVICE_FN void copy_to_block(uint8_t *to, const uint8_t *from, uint32_t bytes) {
    uint32_t lane = lane_index(), head = 0, whole = bytes / VECTOR * VECTOR;
    if ((uintptr_t)to % VECTOR == 0) {
        for (uint32_t at = VECTOR * lane; at < whole; at += VECTOR * WARP)
            store_words4(to + at, load_words4(from + at));
    } else {
        head = min_u32((4 - (uint32_t)((uintptr_t)to % 4)) % 4, bytes);
        whole = (bytes - head) / 4 * 4;
        if (lane < head)
            to[lane] = from[lane];
        for (uint32_t at = 4 * lane; at < whole; at += 4 * WARP) {
            uint32_t high = head ? load_u32_aligned(from + at + 4) : 0;
            store_sample(to + head + at, funnel_right(load_u32_aligned(from + at), high, 8 * head),
                         4);
        }
    }
    if (head + whole + lane < bytes)
        to[head + whole + lane] = from[head + whole + lane];
}

/* ---- rows ---- */

/* A row of a block in the raster. */
struct pack_row {
    const uint8_t *from; /* its first pixel */
    uint32_t inside;     /* pixels inside the image; the others repeat the last one */
    uint32_t last;
};

DEVICE_FN struct pack_row row_of(const struct cogpu_gpu_packing *packing,
                                 const struct cogpu_pack_block *block, uint32_t y) {
    bool is_below = y >= block->height;
    int64_t raster_y = (int64_t)block->y + (is_below ? block->height - 1 : y);
    struct pack_row row = {packing->data + block->plane * packing->stride_band +
                               raster_y * packing->stride_y + block->x * packing->stride_x,
                           is_below && packing->ends_with_pixel ? 0 : block->width,
                           block->width - 1};
    return row;
}

DEVICE_FN const uint8_t *sample_address(const struct cogpu_gpu_packing *packing,
                                        struct pack_row row, uint32_t x, uint32_t s) {
    return row.from + (x < row.inside ? x : row.last) * packing->stride_x +
           s * packing->stride_band;
}

DEVICE_FN void load_pixels(const struct cogpu_gpu_packing *packing, struct pack_row row, uint32_t x,
                           uint32_t count, uint8_t *to) {
    uint32_t size = packing->size, samples = packing->samples, lane = lane_index();
    uint32_t inside = x < row.inside ? min_u32(count, row.inside - x) : 0;
    uint32_t own = packing->has_file_interleave ? inside : 0;
    if (own > 0)
        copy_to_stage(to, sample_address(packing, row, x, 0), own * samples * size);
    for (uint32_t s = 0; s < samples; s++)
        for (uint32_t i = own + lane; i < count; i += WARP)
            store_wide_sample(to + (i * samples + s) * size,
                              load_wide_sample(sample_address(packing, row, x + i, s), size), size);
}

/* Replaces NaN. Returns whether one of this lane's samples differs from fill. */
DEVICE_FN bool check_samples(const struct cogpu_gpu_packing *packing, uint8_t *samples,
                             uint32_t count) {
    bool differs = false;
    for (uint32_t i = lane_index(); i < count; i += WARP) {
        uint8_t *at = samples + i * packing->size;
        struct wide_sample found = load_wide_sample(at, packing->size);
        struct wide_sample wanted = replace_nan(packing, found);
        if (wanted.low != found.low)
            store_wide_sample(at, wanted, packing->size);
        differs = differs || !is_fill(packing, wanted);
    }
    return differs;
}

/* ---- predictors ---- */

/* Elements of `unit` bytes. */
DEVICE_FN words4 subtract_vector(words4 a, words4 b, uint32_t unit) {
    words4 c = {a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w};
    if (unit == 1) {
        c.x = subtract_4x8(a.x, b.x), c.y = subtract_4x8(a.y, b.y);
        c.z = subtract_4x8(a.z, b.z), c.w = subtract_4x8(a.w, b.w);
    } else if (unit == 2) {
        c.x = subtract_2x16(a.x, b.x), c.y = subtract_2x16(a.y, b.y);
        c.z = subtract_2x16(a.z, b.z), c.w = subtract_2x16(a.w, b.w);
    } else if (unit == 8) {
        c.y -= a.x < b.x;
        c.w -= a.z < b.z;
    }
    return c;
}

/* Splits the samples of a vector into planes: byte k of each, most significant first, goes to plane
 * k from byte `index` on. */
DEVICE_FN void split_planes(words4 v, uint32_t size, uint8_t *planes, uint32_t pitch,
                            uint32_t index) {
    uint8_t *to = planes + index;
    if (size == 2) {
        store_sample(to, pick_bytes(v.x, v.y, 0x7531), 4);
        store_sample(to + 4, pick_bytes(v.z, v.w, 0x7531), 4);
        store_sample(to + pitch, pick_bytes(v.x, v.y, 0x6420), 4);
        store_sample(to + pitch + 4, pick_bytes(v.z, v.w, 0x6420), 4);
    } else if (size == 4) {
        uint32_t odd01 = pick_bytes(v.x, v.y, 0x7351), odd23 = pick_bytes(v.z, v.w, 0x7351);
        uint32_t even01 = pick_bytes(v.x, v.y, 0x6240), even23 = pick_bytes(v.z, v.w, 0x6240);
        store_sample(to, pick_bytes(odd01, odd23, 0x7632), 4);
        store_sample(to + pitch, pick_bytes(even01, even23, 0x7632), 4);
        store_sample(to + 2 * pitch, pick_bytes(odd01, odd23, 0x5410), 4);
        store_sample(to + 3 * pitch, pick_bytes(even01, even23, 0x5410), 4);
    } else {
        UNROLL for (uint32_t k = 0; k < 4; k++) {
            uint32_t both = (3 - k) | (7 - k) << 4;
            store_sample(to + k * pitch, pick_bytes(v.y, v.w, both), 2);
            store_sample(to + (k + 4) * pitch, pick_bytes(v.x, v.z, both), 2);
        }
    }
}

/* The pixel before a row is 0. With predictor 3 a plane continues where the plane before it ended:
 * with the last pixel of the row, shifted by one byte. */
DEVICE_FN void set_pixel_before_row(const struct cogpu_gpu_packing *packing, uint8_t *pixel) {
    for (uint32_t s = lane_index(); s < packing->samples; s += WARP) {
        uint8_t *at = pixel + s * packing->size;
        uint64_t last = load_sample(at, packing->size);
        store_sample(at, packing->predictor == 3 ? last >> 8 : 0, packing->size);
    }
    sync_warp();
}

DEVICE_FN void difference_segment(const struct cogpu_gpu_packing *packing, const uint8_t *stage,
                                  uint32_t bytes, uint8_t *packed, uint32_t pitch) {
    uint32_t size = packing->size, pixel = packing->samples * size;
    for (uint32_t at = VECTOR * lane_index(); at < bytes; at += VECTOR * WARP) {
        words4 here = load_words4(stage + at), before = load_words4_anywhere(stage + at - pixel);
        if (packing->predictor == 3)
            split_planes(subtract_vector(here, before, 1), size, packed, pitch, at / size);
        else
            store_words4(packed + at, subtract_vector(here, before, size));
    }
}

/* ---- odd depths ---- */

/* A lane packs eight samples at a time, which end with a byte. */
DEVICE_FN void pack_bits(const struct cogpu_gpu_packing *packing, const uint8_t *stage,
                         uint32_t count, uint8_t *packed) {
    for (uint32_t first = 8 * lane_index(); first < count; first += 8 * WARP) {
        struct bit_buffer buffer = {0, 0};
        uint8_t *to = packed + first / 8 * packing->bits;
        for (uint32_t i = first; i < first + 8; i++) {
            uint64_t sample = i < count ? load_sample(stage + i * packing->size, packing->size) : 0;
            to = append_bits(&buffer, (uint32_t)sample, packing->bits, to);
        }
    }
}

/* ---- segments ---- */

DEVICE_FN bool has_odd_depth(const struct cogpu_gpu_packing *packing) {
    return packing->bits < 8 * packing->size;
}

/* Packs a staged segment into bytes of the row. */
DEVICE_FN void pack_segment(const struct cogpu_gpu_packing *packing, struct pack_memory *memory,
                            uint32_t x, uint32_t count, uint8_t *to) {
    const uint8_t *stage = (const uint8_t *)memory->stage;
    uint8_t *packed = (uint8_t *)memory->packed;
    uint32_t samples = count * packing->samples, bytes = samples * packing->size;
    uint64_t skip = (uint64_t)x * packing->samples;
    if (has_odd_depth(packing)) {
        pack_bits(packing, stage, samples, packed);
        sync_warp();
        copy_to_block(to + skip * packing->bits / 8, packed, (samples * packing->bits + 7) / 8);
    } else if (packing->predictor == 1) {
        copy_to_block(to + skip * packing->size, stage, bytes);
    } else {
        uint32_t pitch = (samples + VECTOR - 1) / VECTOR * VECTOR;
        bool is_gapless =
            packing->predictor == 2 || (count == packing->block_width && pitch == samples);
        difference_segment(packing, stage, bytes, packed, pitch);
        sync_warp();
        if (is_gapless)
            copy_to_block(to + skip * packing->size, packed, bytes);
        for (uint32_t k = 0; !is_gapless && k < packing->size; k++)
            copy_to_block(to + (uint64_t)k * packing->block_width * packing->samples + skip,
                          packed + k * pitch, samples);
    }
}

/* Returns whether a sample differs from fill, or `differs`. A collective of the warp. */
DEVICE_FN bool pack_row(const struct cogpu_gpu_packing *packing, struct pack_row row,
                        struct pack_memory *memory, bool differs, uint8_t *to) {
    uint32_t samples = packing->samples, pixel = samples * packing->size, count;
    uint8_t *stage = (uint8_t *)memory->stage, *before = stage - pixel;
    bool is_predicted = packing->predictor > 1;
    for (uint32_t x = 0; x < packing->block_width; x += count) {
        count = min_u32(packing->segment_pixels, packing->block_width - x);
        load_pixels(packing, row, x, count, stage);
        if (is_predicted)
            for (uint32_t s = lane_index(); s < samples; s += WARP)
                store_wide_sample(
                    before + s * packing->size,
                    load_wide_sample(
                        sample_address(packing, row, (x ? x : packing->block_width) - 1, s),
                        packing->size),
                    packing->size);
        wait_for_stage();
        if (packing->replaces_nan || !differs) {
            bool found = is_predicted ? check_samples(packing, before, (count + 1) * samples)
                                      : check_samples(packing, stage, count * samples);
            differs = warp_any(found) || differs;
            sync_warp();
        }
        if (is_predicted && x == 0)
            set_pixel_before_row(packing, before);
        pack_segment(packing, memory, x, count, to);
        sync_warp();
    }
    return differs;
}

/* ---- masks ---- */

/* One bit a pixel, by ballots. Returns whether one is set, or `differs`. A collective of the warp.
 */
DEVICE_FN bool pack_mask_row(const struct cogpu_gpu_packing *packing,
                             const struct cogpu_pack_block *block, uint32_t y, bool differs,
                             uint8_t *to) {
    uint32_t lane = lane_index();
    const uint8_t *from = packing->mask + ((int64_t)block->y + y) * packing->mask_stride_y +
                          block->x * packing->mask_stride_x;
    for (uint32_t x = 0; x < packing->block_width; x += WARP) {
        bool is_inside = y < block->height && x + lane < block->width;
        uint32_t valid = warp_ballot(is_inside && from[(x + lane) * packing->mask_stride_x] != 0);
        if (lane < 4 && x / 8 + lane < packing->mask_row_bytes)
            to[x / 8 + lane] = (uint8_t)(reverse_bits32(valid) >> (24 - 8 * lane));
        differs = differs || valid != 0;
    }
    return differs;
}

/* ---- pixels that are too large for shared memory ---- */

DEVICE_FN struct wide_sample load_large(const struct cogpu_gpu_packing *packing,
                                        struct pack_row row, uint64_t index) {
    uint32_t x = (uint32_t)(index / packing->samples), s = (uint32_t)(index % packing->samples);
    return replace_nan(packing,
                       load_wide_sample(sample_address(packing, row, x, s), packing->size));
}

/* What a predictor subtracts from a sample of at most 8 bytes. */
DEVICE_FN uint64_t large_before(const struct cogpu_gpu_packing *packing, struct pack_row row,
                                uint64_t index) {
    if (index >= packing->samples)
        return load_large(packing, row, index - packing->samples).low;
    uint64_t last = (uint64_t)(packing->block_width - 1) * packing->samples;
    return packing->predictor == 3 ? load_large(packing, row, last + index).low >> 8 : 0;
}

DEVICE_FN void store_large(const struct cogpu_gpu_packing *packing, struct pack_row row,
                           uint64_t index, struct wide_sample sample, uint8_t *to) {
    uint32_t size = packing->size;
    uint64_t plane = (uint64_t)packing->block_width * packing->samples;
    uint64_t before = packing->predictor == 1 ? 0 : large_before(packing, row, index);
    for (uint32_t k = 0; packing->predictor == 3 && k < size; k++) {
        to[k * plane + index] =
            (uint8_t)(plane_value(sample.low, k, size) - plane_value(before, k, size));
    }
    sample.low -= before;
    if (packing->predictor != 3)
        store_wide_sample(to + index * size, sample, size);
}

/* Lanes handle neighbouring samples, or eight at a time to pack bits. */
DEVICE_FN bool pack_large_row(const struct cogpu_gpu_packing *packing, struct pack_row row,
                              bool differs, uint8_t *to) {
    uint64_t count = (uint64_t)packing->block_width * packing->samples;
    uint32_t unit = has_odd_depth(packing) ? 8 : 1;
    for (uint64_t first = unit * lane_index(); first < count; first += unit * WARP) {
        uint8_t *byte = to + first / 8 * packing->bits;
        struct bit_buffer buffer = {0, 0};
        for (uint64_t i = first; i < first + unit && i < count; i++) {
            struct wide_sample sample = load_large(packing, row, i);
            differs = differs || !is_fill(packing, sample);
            if (has_odd_depth(packing))
                byte = append_bits(&buffer, (uint32_t)sample.low, packing->bits, byte);
            else
                store_large(packing, row, i, sample, to);
        }
        flush_bits(&buffer, byte);
    }
    return differs;
}

/* ---- kernels ---- */

/* `memory` is NULL where pixels are too large for it. */
DEVICE_FN void pack_rows(const struct cogpu_pack_args *args, struct pack_memory *memory) {
    const struct cogpu_gpu_packing *packing = &args->packing;
    uint32_t number = block_index() * COGPU_PACK_WARPS + warp_index();
    uint32_t index = number / args->groups, y = number % args->groups * COGPU_PACK_ROWS;
    if (index >= args->count)
        return;
    const struct cogpu_pack_block block = args->blocks[index];
    uint32_t end = min_u32(y + COGPU_PACK_ROWS, block.rows);
    bool differs = !packing->is_sparse;
    for (; y < end; y++) {
        uint8_t *to = args->decoded + block.to;
        if (block.is_mask)
            differs = pack_mask_row(packing, &block, y, differs,
                                    to + (uint64_t)y * packing->mask_row_bytes);
        else if (memory)
            differs = pack_row(packing, row_of(packing, &block, y), memory, differs,
                               to + (uint64_t)y * packing->row_bytes);
        else
            differs = pack_large_row(packing, row_of(packing, &block, y), differs,
                                     to + (uint64_t)y * packing->row_bytes);
    }
    if (warp_any(differs) && lane_index() == 0)
        atomic_max(args->sizes + index, block.size);
}

KERNEL(cogpu_kernel_pack, struct cogpu_pack_args, struct pack_shared, 128, 6) {
    pack_rows(args, &shared->memories[warp_index()]);
}

KERNEL(cogpu_kernel_pack_large_pixels, struct cogpu_pack_args, struct nothing_shared, 128, 8) {
    (void)shared;
    pack_rows(args, NULL);
}
