/*
 * Takes rows of a raster, hands on decoded bytes of blocks: the twin of cpu_cut.c.
 *
 * A warp takes a few rows of a block, one after the other, in pieces that its part of the shared
 * memory holds, with the pixel before each. A piece is staged there as pixels of the file, NaN is
 * replaced and compared with fill, differences are taken, bytes go to their planes or samples are
 * packed, and what was made is stored by lanes that lie side by side. Nothing depends on more than
 * the pixel before, so nothing is summed and no piece waits for another.
 */
#include "backend/cuda/cuda_cut.h"
#include "backend/cuda/simt.h"

enum { VECTOR = 16, PLANES_MAX = 8 };

/* A warp's part. */
struct cut_area {
    words4 before[COGPU_CUT_PIXEL / VECTOR];            /* the pixel before the piece is its end */
    words4 stage[COGPU_CUT_STAGE / VECTOR];             /* the piece as pixels of the file */
    words4 made[COGPU_CUT_STAGE / VECTOR + PLANES_MAX]; /* planes begin at vectors */
};

struct cut_shared {
    struct cut_area areas[COGPU_CUT_WARPS];
};

DEVICE_FN uint32_t smaller(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* ---- samples ---- */

/* A sample as the file shall have it; `high` is there where it has 16 bytes. */
struct sample {
    uint64_t low, high;
};

DEVICE_FN struct sample sample_at(const uint8_t *at, uint32_t size) {
    struct sample sample = {load_sample(at, smaller(size, 8)), 0};
    if (size == 16)
        sample.high = load_sample(at + 8, 8);
    return sample;
}

DEVICE_FN void put_sample(uint8_t *at, struct sample sample, uint32_t size) {
    store_sample(at, sample.low, smaller(size, 8));
    if (size == 16)
        store_sample(at + 8, sample.high, 8);
}

DEVICE_FN bool is_nan(const struct cogpu_gpu_cutting *cutting, struct sample sample) {
    return (sample.low & cutting->magnitude) > cutting->infinity;
}

DEVICE_FN struct sample without_nan(const struct cogpu_gpu_cutting *cutting, struct sample sample) {
    if (cutting->replaces_nan && is_nan(cutting, sample))
        sample.low = cutting->fill[0];
    return sample;
}

DEVICE_FN bool is_fill(const struct cogpu_gpu_cutting *cutting, struct sample sample) {
    return cutting->fill_is_nan ? is_nan(cutting, sample)
                                : sample.low == cutting->fill[0] && sample.high == cutting->fill[1];
}

/* ---- between global and shared memory ---- */

/* Bytes from anywhere in global memory to an aligned place, and none that lies outside of them.
 * They are there after `staged`. */
DEVICE_FN void copy_in(uint8_t *to, const uint8_t *from, uint32_t bytes) {
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
            for (uint32_t i = at; i < smaller(at + 4, bytes); i++)
                to[i] = from[i];
        }
    }
}

DEVICE_FN void staged(void) {
    copies_commit();
    copies_wait();
    sync_warp();
}

/* Bytes from an aligned place to anywhere in global memory. */
DEVICE_FN void copy_out(uint8_t *to, const uint8_t *from, uint32_t bytes) {
    uint32_t lane = lane_index(), head = 0, whole = bytes / VECTOR * VECTOR;
    if ((uintptr_t)to % VECTOR == 0) {
        for (uint32_t at = VECTOR * lane; at < whole; at += VECTOR * WARP)
            store_words4(to + at, load_words4(from + at));
    } else {
        head = smaller((4 - (uint32_t)((uintptr_t)to % 4)) % 4, bytes);
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
struct row {
    const uint8_t *from; /* its first pixel */
    uint32_t inside;     /* pixels that it has of its own: all others are the last one */
    uint32_t last;
};

DEVICE_FN struct row row_of(const struct cogpu_gpu_cutting *cutting,
                            const struct cogpu_cut_block *block, uint32_t y) {
    bool is_below = y >= block->height;
    int64_t raster_y = (int64_t)block->y + (is_below ? block->height - 1 : y);
    struct row row = {cutting->data + block->plane * cutting->stride_band +
                          raster_y * cutting->stride_y + block->x * cutting->stride_x,
                      is_below && cutting->ends_with_pixel ? 0 : block->width, block->width - 1};
    return row;
}

DEVICE_FN const uint8_t *sample_of(const struct cogpu_gpu_cutting *cutting, struct row row,
                                   uint32_t x, uint32_t s) {
    return row.from + (x < row.inside ? x : row.last) * cutting->stride_x +
           s * cutting->stride_band;
}

DEVICE_FN void stage_pixels(const struct cogpu_gpu_cutting *cutting, struct row row, uint32_t x,
                            uint32_t count, uint8_t *to) {
    uint32_t size = cutting->size, samples = cutting->samples, lane = lane_index();
    uint32_t inside = x < row.inside ? smaller(count, row.inside - x) : 0;
    uint32_t own = cutting->is_flat ? inside : 0;
    if (own > 0)
        copy_in(to, sample_of(cutting, row, x, 0), own * samples * size);
    for (uint32_t s = 0; s < samples; s++)
        for (uint32_t i = own + lane; i < count; i += WARP)
            put_sample(to + (i * samples + s) * size,
                       sample_at(sample_of(cutting, row, x + i, s), size), size);
}

/* Replaces NaN; whether there is another sample than fill among them, as far as this lane sees. */
DEVICE_FN bool settle(const struct cogpu_gpu_cutting *cutting, uint8_t *samples, uint32_t count) {
    bool differs = false;
    for (uint32_t i = lane_index(); i < count; i += WARP) {
        uint8_t *at = samples + i * cutting->size;
        struct sample found = sample_at(at, cutting->size);
        struct sample wanted = without_nan(cutting, found);
        if (wanted.low != found.low)
            put_sample(at, wanted, cutting->size);
        differs = differs || !is_fill(cutting, wanted);
    }
    return differs;
}

/* ---- predictors ---- */

/* Four differences of bytes, each modulo 256: the top bits are kept from borrowing. */
DEVICE_FN uint32_t subtract_bytes(uint32_t a, uint32_t b) {
    return ((a | 0x80808080u) - (b & 0x7F7F7F7Fu)) ^ ((a ^ ~b) & 0x80808080u);
}

DEVICE_FN uint32_t subtract_halves(uint32_t a, uint32_t b) {
    return ((a | 0x80008000u) - (b & 0x7FFF7FFFu)) ^ ((a ^ ~b) & 0x80008000u);
}

/* Elements of `unit` bytes. */
DEVICE_FN words4 subtract(words4 a, words4 b, uint32_t unit) {
    words4 c = {a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w};
    if (unit == 1) {
        c.x = subtract_bytes(a.x, b.x), c.y = subtract_bytes(a.y, b.y);
        c.z = subtract_bytes(a.z, b.z), c.w = subtract_bytes(a.w, b.w);
    } else if (unit == 2) {
        c.x = subtract_halves(a.x, b.x), c.y = subtract_halves(a.y, b.y);
        c.z = subtract_halves(a.z, b.z), c.w = subtract_halves(a.w, b.w);
    } else if (unit == 8) {
        c.y -= a.x < b.x;
        c.w -= a.z < b.z;
    }
    return c;
}

/* Byte k of each sample of a vector, the most significant first, to byte `index` and the following
 * of plane k. */
DEVICE_FN void scatter(words4 v, uint32_t size, uint8_t *planes, uint32_t pitch, uint32_t index) {
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

/* The pixel before a row: nothing; or of planes of bytes, each of which goes on where the one
 * before it ended, the last pixel of the row, one plane further. */
DEVICE_FN void begin_row(const struct cogpu_gpu_cutting *cutting, uint8_t *pixel) {
    for (uint32_t s = lane_index(); s < cutting->samples; s += WARP) {
        uint8_t *at = pixel + s * cutting->size;
        uint64_t last = load_sample(at, cutting->size);
        store_sample(at, cutting->predictor == 3 ? last >> 8 : 0, cutting->size);
    }
    sync_warp();
}

DEVICE_FN void predict(const struct cogpu_gpu_cutting *cutting, const uint8_t *stage,
                       uint32_t bytes, uint8_t *made, uint32_t pitch) {
    uint32_t size = cutting->size, pixel = cutting->samples * size;
    for (uint32_t at = VECTOR * lane_index(); at < bytes; at += VECTOR * WARP) {
        words4 here = load_words4(stage + at), before = load_words4_anywhere(stage + at - pixel);
        if (cutting->predictor == 3)
            scatter(subtract(here, before, 1), size, made, pitch, at / size);
        else
            store_words4(made + at, subtract(here, before, size));
    }
}

/* ---- packing ---- */

/* Eight samples at a time, which end with a byte, the first one in the highest bits. */
DEVICE_FN uint32_t add_bits(uint64_t *held, uint32_t held_bits, uint64_t sample, uint32_t bits,
                            uint8_t **to) {
    uint64_t most = (1u << bits) - 1;
    *held = *held << bits | (sample < most ? sample : most);
    for (held_bits += bits; held_bits >= 8; held_bits -= 8)
        *(*to)++ = (uint8_t)(*held >> (held_bits - 8));
    return held_bits;
}

DEVICE_FN void pack(const struct cogpu_gpu_cutting *cutting, const uint8_t *stage, uint32_t count,
                    uint8_t *made) {
    for (uint32_t first = 8 * lane_index(); first < count; first += 8 * WARP) {
        uint64_t held = 0;
        uint32_t held_bits = 0;
        uint8_t *to = made + first / 8 * cutting->bits;
        for (uint32_t i = first; i < first + 8; i++)
            held_bits =
                add_bits(&held, held_bits,
                         i < count ? load_sample(stage + i * cutting->size, cutting->size) : 0,
                         cutting->bits, &to);
    }
}

/* ---- pieces of rows ---- */

DEVICE_FN bool is_packed(const struct cogpu_gpu_cutting *cutting) {
    return cutting->bits < 8 * cutting->size;
}

/* A piece that is staged becomes bytes of the row. */
DEVICE_FN void make_piece(const struct cogpu_gpu_cutting *cutting, struct cut_area *area,
                          uint32_t x, uint32_t count, uint8_t *to) {
    const uint8_t *stage = (const uint8_t *)area->stage;
    uint8_t *made = (uint8_t *)area->made;
    uint32_t samples = count * cutting->samples, bytes = samples * cutting->size;
    uint64_t skip = (uint64_t)x * cutting->samples;
    if (is_packed(cutting)) {
        pack(cutting, stage, samples, made);
        sync_warp();
        copy_out(to + skip * cutting->bits / 8, made, (samples * cutting->bits + 7) / 8);
    } else if (cutting->predictor == 1) {
        copy_out(to + skip * cutting->size, stage, bytes);
    } else {
        uint32_t pitch = (samples + VECTOR - 1) / VECTOR * VECTOR;
        bool is_gapless =
            cutting->predictor == 2 || (count == cutting->block_width && pitch == samples);
        predict(cutting, stage, bytes, made, pitch);
        sync_warp();
        if (is_gapless)
            copy_out(to + skip * cutting->size, made, bytes);
        for (uint32_t k = 0; !is_gapless && k < cutting->size; k++)
            copy_out(to + (uint64_t)k * cutting->block_width * cutting->samples + skip,
                     made + k * pitch, samples);
    }
}

/* Whether a sample was not fill, or whether it is known already. A collective. */
DEVICE_FN bool cut_row(const struct cogpu_gpu_cutting *cutting, struct row row,
                       struct cut_area *area, bool differs, uint8_t *to) {
    uint32_t samples = cutting->samples, pixel = samples * cutting->size, count;
    uint8_t *stage = (uint8_t *)area->stage, *before = stage - pixel;
    bool is_predicted = cutting->predictor > 1;
    for (uint32_t x = 0; x < cutting->block_width; x += count) {
        count = smaller(cutting->piece_pixels, cutting->block_width - x);
        stage_pixels(cutting, row, x, count, stage);
        if (is_predicted)
            for (uint32_t s = lane_index(); s < samples; s += WARP)
                put_sample(before + s * cutting->size,
                           sample_at(sample_of(cutting, row, (x ? x : cutting->block_width) - 1, s),
                                     cutting->size),
                           cutting->size);
        staged();
        if (cutting->replaces_nan || !differs) {
            bool found = is_predicted ? settle(cutting, before, (count + 1) * samples)
                                      : settle(cutting, stage, count * samples);
            differs = warp_any(found) || differs;
            sync_warp();
        }
        if (is_predicted && x == 0)
            begin_row(cutting, before);
        make_piece(cutting, area, x, count, to);
        sync_warp();
    }
    return differs;
}

/* ---- masks ---- */

/* One bit a pixel. Whether one is set, or whether it is known already. A collective. */
DEVICE_FN bool cut_mask_row(const struct cogpu_gpu_cutting *cutting,
                            const struct cogpu_cut_block *block, uint32_t y, bool differs,
                            uint8_t *to) {
    uint32_t lane = lane_index();
    const uint8_t *from = cutting->mask + ((int64_t)block->y + y) * cutting->mask_stride_y +
                          block->x * cutting->mask_stride_x;
    for (uint32_t x = 0; x < cutting->block_width; x += WARP) {
        bool is_inside = y < block->height && x + lane < block->width;
        uint32_t valid = warp_ballot(is_inside && from[(x + lane) * cutting->mask_stride_x] != 0);
        if (lane < 4 && x / 8 + lane < cutting->mask_row_bytes)
            to[x / 8 + lane] = (uint8_t)(reverse_bits32(valid) >> (24 - 8 * lane));
        differs = differs || valid != 0;
    }
    return differs;
}

/* ---- pixels that are too large to be held ---- */

DEVICE_FN struct sample walk_sample(const struct cogpu_gpu_cutting *cutting, struct row row,
                                    uint64_t index) {
    uint32_t x = (uint32_t)(index / cutting->samples), s = (uint32_t)(index % cutting->samples);
    return without_nan(cutting, sample_at(sample_of(cutting, row, x, s), cutting->size));
}

/* What a predictor subtracts from a sample of at most 8 bytes. */
DEVICE_FN uint64_t walk_before(const struct cogpu_gpu_cutting *cutting, struct row row,
                               uint64_t index) {
    if (index >= cutting->samples)
        return walk_sample(cutting, row, index - cutting->samples).low;
    uint64_t last = (uint64_t)(cutting->block_width - 1) * cutting->samples;
    return cutting->predictor == 3 ? walk_sample(cutting, row, last + index).low >> 8 : 0;
}

DEVICE_FN void walk_store(const struct cogpu_gpu_cutting *cutting, struct row row, uint64_t index,
                          struct sample sample, uint8_t *to) {
    uint32_t size = cutting->size;
    uint64_t plane = (uint64_t)cutting->block_width * cutting->samples;
    uint64_t before = cutting->predictor == 1 ? 0 : walk_before(cutting, row, index);
    for (uint32_t k = 0; cutting->predictor == 3 && k < size; k++) {
        uint32_t shift = 8 * (size - 1 - k);
        to[k * plane + index] = (uint8_t)((sample.low >> shift) - (before >> shift));
    }
    sample.low -= before;
    if (cutting->predictor != 3)
        put_sample(to + index * size, sample, size);
}

/* Lanes take samples side by side, or eight at a time to pack them. */
DEVICE_FN bool walk_row(const struct cogpu_gpu_cutting *cutting, struct row row, bool differs,
                        uint8_t *to) {
    uint64_t count = (uint64_t)cutting->block_width * cutting->samples;
    uint32_t unit = is_packed(cutting) ? 8 : 1;
    for (uint64_t first = unit * lane_index(); first < count; first += unit * WARP) {
        uint8_t *byte = to + first / 8 * cutting->bits;
        uint64_t held = 0;
        uint32_t held_bits = 0;
        for (uint64_t i = first; i < first + unit && i < count; i++) {
            struct sample sample = walk_sample(cutting, row, i);
            differs = differs || !is_fill(cutting, sample);
            if (is_packed(cutting))
                held_bits = add_bits(&held, held_bits, sample.low, cutting->bits, &byte);
            else
                walk_store(cutting, row, i, sample, to);
        }
        if (held_bits > 0)
            *byte = (uint8_t)(held << (8 - held_bits));
    }
    return differs;
}

/* ---- the step ---- */

/* `area` is NULL where pixels are not held. */
DEVICE_FN void cut_rows(const struct cogpu_cut_args *args, struct cut_area *area) {
    const struct cogpu_gpu_cutting *cutting = &args->cutting;
    uint32_t number = block_index() * COGPU_CUT_WARPS + warp_index();
    uint32_t index = number / args->groups, y = number % args->groups * COGPU_CUT_ROWS;
    if (index >= args->count)
        return;
    const struct cogpu_cut_block block = args->blocks[index];
    uint32_t end = smaller(y + COGPU_CUT_ROWS, block.rows);
    bool differs = !cutting->is_sparse;
    for (; y < end; y++) {
        uint8_t *to = args->decoded + block.to;
        if (block.is_mask)
            differs = cut_mask_row(cutting, &block, y, differs,
                                   to + (uint64_t)y * cutting->mask_row_bytes);
        else if (area)
            differs = cut_row(cutting, row_of(cutting, &block, y), area, differs,
                              to + (uint64_t)y * cutting->row_bytes);
        else
            differs = walk_row(cutting, row_of(cutting, &block, y), differs,
                               to + (uint64_t)y * cutting->row_bytes);
    }
    if (warp_any(differs) && lane_index() == 0)
        atomic_max(args->sizes + index, block.size);
}

KERNEL(cogpu_kernel_cut, struct cogpu_cut_args, struct cut_shared, 128, 6) {
    cut_rows(args, &shared->areas[warp_index()]);
}

/* Such pixels have many samples, so that neighbours in the pixel are neighbours in memory. */
KERNEL(cogpu_kernel_cut_walk, struct cogpu_cut_args, struct nothing_shared, 128, 8) {
    (void)shared;
    cut_rows(args, NULL);
}
