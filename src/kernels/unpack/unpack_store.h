/*
 * Stores samples from shared memory into the raster. For each band of the raster (or for all at
 * once where the raster has the file's pixel interleave) neighbouring lanes store neighbouring
 * words: 16 bytes where all is aligned, else 4 bytes that a funnel shift or a few small loads put
 * together; samples one by one only at odd strides.
 *
 *   segment   r0 g0 b0 r1 g1 b1 ...      run of band g: first 1, step 3
 *   raster    g0 g1 g2 g3 | g4 ...       lane 0 | lane 1 ...
 */
#ifndef COGPU_KERNELS_UNPACK_UNPACK_STORE_H
#define COGPU_KERNELS_UNPACK_UNPACK_STORE_H

#include "kernels/unpack/unpack_convert.h"
#include "kernels/unpack/unpack_samples.h"

/* Samples of a segment that go to one row of one band, at equal steps on both sides. */
struct sample_run {
    const uint8_t *samples; /* in shared memory */
    uint32_t first, step, count;
    uint8_t *to;
    int64_t stride;
    uint32_t band; /* of the raster */
};

/* Copies bytes from shared memory to any address, by vectors or words where the address allows. */
DEVICE_FN void copy_bytes(uint8_t *to, const uint8_t *area, uint32_t from, uint32_t bytes) {
    uint32_t lane = lane_index();
    if (((uintptr_t)to | from | bytes) % VECTOR == 0) {
        for (uint32_t at = VECTOR * lane; at < bytes; at += VECTOR * WARP)
            store_words4(to + at, load_words4(area + from + at));
        return;
    }
    uint32_t head = min_u32((uint32_t)(0 - (uintptr_t)to) % 4, bytes);
    if (lane < head)
        to[lane] = area[from + lane];
    to += head;
    from += head;
    bytes -= head;
    uint32_t shift = from % 4 * 8;
    const uint8_t *words = area + from / 4 * 4;
    for (uint32_t at = 4 * lane; at + 4 <= bytes; at += 4 * WARP) {
        uint32_t low = load_u32_aligned(words + at), high = load_u32_aligned(words + at + 4);
        store_aligned(to + at, funnel_right(low, high, shift), 4);
    }
    uint32_t done = bytes / 4 * 4;
    if (lane < bytes - done)
        to[done + lane] = area[from + done + lane];
}

/* The i-th sample of the run, converted. Samples of up to 8 bytes. */
DEVICE_FN uint64_t sample_of(const struct sample_run *run, uint32_t i, uint32_t size,
                             const struct band_conversion *conversion) {
    uint64_t sample = load_aligned(run->samples + (run->first + i * run->step) * size, size);
    return conversion ? convert_sample(conversion, sample) : sample;
}

/* Samples of one or two bytes side by side: each lane stores words of them. */
DEVICE_FN void store_run_words(const struct sample_run *run, uint32_t size, uint32_t target_size,
                               const struct band_conversion *conversion) {
    uint32_t in_word = 4 / target_size, lane = lane_index();
    uint32_t head = min_u32((uint32_t)(0 - (uintptr_t)run->to) % 4 / target_size, run->count);
    uint32_t words = (run->count - head) / in_word, tail = head + words * in_word;
    if (lane < head)
        store_aligned(run->to + lane * target_size, sample_of(run, lane, size, conversion),
                      target_size);
    for (uint32_t i = lane; i < words; i += WARP) {
        uint32_t word = 0, at = head + i * in_word;
        UNROLL for (uint32_t k = 0; k < 4; k++) {
            if (k < in_word)
                word |= (uint32_t)sample_of(run, at + k, size, conversion) << (8 * target_size * k);
        }
        store_aligned(run->to + at * target_size, word, 4);
    }
    if (lane < run->count - tail)
        store_aligned(run->to + (tail + lane) * target_size,
                      sample_of(run, tail + lane, size, conversion), target_size);
}

/* The sizes are constants wherever this is called for speed; `conversion` may be NULL. */
DEVICE_FN void store_run_samples(const struct sample_run *run, uint32_t size, uint32_t target_size,
                                 const struct band_conversion *conversion) {
    bool is_packed = run->stride == (int64_t)target_size;
    if (target_size < 4 && is_packed && (uintptr_t)run->to % target_size == 0) {
        store_run_words(run, size, target_size, conversion);
        return;
    }
    for (uint32_t i = lane_index(); i < run->count; i += WARP)
        store_sample(run->to + (int64_t)i * run->stride, sample_of(run, i, size, conversion),
                     target_size);
}

/* Complex samples of 16 bytes. */
DEVICE_FN void store_run_complex(const struct sample_run *run) {
    for (uint32_t i = lane_index(); i < run->count; i += WARP) {
        const uint8_t *from = run->samples + (run->first + i * run->step) * 16;
        uint8_t *to = run->to + (int64_t)i * run->stride;
        store_sample(to, load_aligned(from, 8), 8);
        store_sample(to + 8, load_aligned(from + 8, 8), 8);
    }
}

DEVICE_FN void store_run_converted(const struct cogpu_gpu_pixels *pixels,
                                   const struct sample_run *run) {
    struct band_conversion conversion = conversion_of_band(pixels, run->band);
    uint32_t size = pixels->size;
    if (conversion.to != COGPU_TYPE_F32 || size > 4) {
        store_run_samples(run, size, pixels->target_size, &conversion);
        return;
    }
    conversion.to = COGPU_TYPE_F32; /* which the compiler sees as a constant in these loops */
    if (size == 1)
        store_run_samples(run, 1, 4, &conversion);
    else if (size == 2)
        store_run_samples(run, 2, 4, &conversion);
    else
        store_run_samples(run, 4, 4, &conversion);
}

DEVICE_FN void store_run(const struct cogpu_gpu_pixels *pixels, const struct sample_run *run) {
    uint32_t size = pixels->size;
    if (pixels->converts)
        store_run_converted(pixels, run);
    else if (run->step == 1 && run->stride == (int64_t)size)
        copy_bytes(run->to, run->samples, run->first * size, run->count * size);
    else if (size == 1)
        store_run_samples(run, 1, 1, NULL);
    else if (size == 2)
        store_run_samples(run, 2, 2, NULL);
    else if (size == 4)
        store_run_samples(run, 4, 4, NULL);
    else if (size == 8)
        store_run_samples(run, 8, 8, NULL);
    else
        store_run_complex(run);
}

/* Pixels of three or four bytes whose bands are apart in the raster: a lane handles four pixels,
 * and stores a word for each band. Returns how many pixels were stored. */
DEVICE_FN uint32_t store_split_bands(const struct cogpu_gpu_pixels *pixels,
                                     const struct sample_run *run) {
    uint32_t per_pixel = pixels->samples, count = run->count / 4 * 4;
    bool fits = pixels->size == 1 && !pixels->converts && pixels->bands_in_order &&
                run->stride == 1 && (per_pixel == 3 || per_pixel == 4) && run->first % 16 == 0 &&
                ((uintptr_t)run->to | (uintptr_t)pixels->stride_band) % 4 == 0;
    if (!fits)
        return 0;
    for (uint32_t i = 4 * lane_index(); i < count; i += 4 * WARP) {
        const uint8_t *from = run->samples + run->first + i * per_pixel;
        uint8_t *to = run->to + i;
        words4 bands = {0, 0, 0, 0};
        if (per_pixel == 4) {
            words4 four = load_words4(from);
            bands = interleave_bytes(four.x, four.y, four.z, four.w);
        } else {
            uint32_t a = load_u32_aligned(from), b = load_u32_aligned(from + 4);
            uint32_t c = load_u32_aligned(from + 8);
            bands.x = pick_bytes(pick_bytes(a, b, 0x0630), c, 0x5210);
            bands.y = pick_bytes(pick_bytes(a, b, 0x0741), c, 0x6210);
            bands.z = pick_bytes(pick_bytes(a, b, 0x0052), c, 0x7410);
        }
        store_aligned(to, bands.x, 4);
        store_aligned(to + pixels->stride_band, bands.y, 4);
        store_aligned(to + 2 * pixels->stride_band, bands.z, 4);
        if (per_pixel == 4)
            store_aligned(to + 3 * pixels->stride_band, bands.w, 4);
    }
    return count;
}

/* Pixels of a row of a block, as samples in shared memory. */
struct row_segment {
    const uint8_t *samples;
    uint32_t x, count; /* the first, counted in the block */
};

/* Stores the part of a segment that is inside the window. */
DEVICE_FN void store_segment(const struct cogpu_gpu_pixels *pixels,
                             const struct cogpu_unpack_block *block, uint32_t row,
                             struct row_segment segment) {
    uint32_t x = segment.x > block->source_x ? segment.x : block->source_x;
    uint32_t end = min_u32(segment.x + segment.count, block->source_x + block->width);
    if (x >= end)
        return;
    uint32_t per_pixel = pixels->samples, skip = (x - segment.x) * per_pixel;
    struct sample_run run = {
        segment.samples,  skip, per_pixel, end - x, pixels->data + block->raster,
        pixels->stride_x, 0};
    run.to += (int64_t)(block->target_y + row) * pixels->stride_y +
              (int64_t)(block->target_x + x - block->source_x) * pixels->stride_x;
    if (pixels->is_planar) {
        run.to += (int64_t)block->plane * pixels->stride_band;
        run.band = block->plane;
    } else if (pixels->has_file_interleave) {
        run.step = 1;
        run.count *= per_pixel;
        run.stride = (int64_t)pixels->target_size;
    }
    bool is_one = pixels->is_planar || pixels->has_file_interleave;
    uint32_t done = is_one ? 0 : store_split_bands(pixels, &run);
    skip += done * per_pixel;
    run.count -= done;
    run.to += (int64_t)done * pixels->stride_x;
    for (uint32_t p = 0; p < (is_one ? 1 : pixels->band_count); p++) {
        if (!is_one) {
            run.first = skip + (pixels->bands_in_order ? p : band_of(pixels, p)->sample);
            run.band = p;
        }
        store_run(pixels, &run);
        run.to += pixels->stride_band;
    }
}

/* Stores whole rows that have the same layout in shared memory and raster, by vectors. False: the
 * layout or the alignment differs. */
DEVICE_FN bool store_rows(const struct cogpu_gpu_pixels *pixels,
                          const struct cogpu_unpack_block *block, uint32_t row, uint32_t count,
                          const uint8_t *area) {
    bool is_one_run = pixels->has_file_interleave || pixels->is_planar ||
                      (pixels->samples == 1 && pixels->band_count == 1);
    uint32_t row_bytes = pixels->row_bytes, vectors = row_bytes / VECTOR;
    int64_t pixel = (int64_t)(pixels->samples * pixels->size);
    uint8_t *to = pixels->data + block->raster +
                  (int64_t)(block->target_y + row) * pixels->stride_y +
                  (int64_t)block->target_x * pixels->stride_x;
    if (pixels->is_planar)
        to += (int64_t)block->plane * pixels->stride_band;
    if (!is_one_run || pixels->converts || pixels->stride_x != pixel ||
        block->width != pixels->block_width ||
        ((uintptr_t)to | (uintptr_t)pixels->stride_y | row_bytes) % VECTOR != 0)
        return false;
    for (uint32_t i = lane_index(); i < count * vectors; i += WARP) {
        uint32_t y = i / vectors, x = i - y * vectors;
        store_words4(to + (int64_t)y * pixels->stride_y + VECTOR * x,
                     load_words4(area + VECTOR * i));
    }
    sync_warp();
    return true;
}

#endif
