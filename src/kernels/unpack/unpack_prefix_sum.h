/*
 * Undoing predictors: prefix sums over the pixels of a row, by one warp (pixel/predictor.h has the
 * layouts). A lane sums 16 bytes in registers, or 48 of pixels with three samples, so that it has
 * whole pixels. Five shuffles for each sample of the pixel add up the lanes:
 *
 *   lane        0            1            2
 *   loaded    a b c d      e f g h      i j k l         one sample a pixel
 *   summed    a .. a+b+c+d e .. e+f+g+h ...             sum_lane, in registers
 *   prefix    carry        + total 0    + total 0 + 1   scan_lanes, then add_prefix
 *
 * Other pixels (more than four samples, 64 bits) are summed in shared memory, each lane a run of
 * pixels of one sample. What a row ends with is the carry of its next segment.
 */
#ifndef COGPU_KERNELS_UNPACK_UNPACK_PREFIX_SUM_H
#define COGPU_KERNELS_UNPACK_UNPACK_PREFIX_SUM_H

#include "kernels/unpack/unpack_common.h"

/* Elements of 1, 2 or 4 bytes, 1 to 4 of them a pixel: constants wherever this is called. Only the
 * low bits of a sum matter, so values are not masked on their way. */
DEVICE_FN uint32_t add_elements(uint32_t a, uint32_t b, uint32_t size) {
    return size == 1 ? add_bytes(a, b) : size == 2 ? add_halves(a, b) : a + b;
}

enum { LANE_WORDS_MAX = 12, SCANNED_MAX = 4 };

/* Sums within the lane; totals[s] is the sum of its elements of sample s. */
DEVICE_FN void sum_lane(uint32_t *words, uint32_t count, uint32_t size, uint32_t samples,
                        uint32_t *totals) {
    uint32_t in_word = 4 / size, s = 0;
    UNROLL for (uint32_t i = 0; i < SCANNED_MAX; i++) {
        totals[i] = 0;
    }
    UNROLL for (uint32_t i = 0; i < LANE_WORDS_MAX; i++) {
        uint32_t summed[4] = {0, 0, 0, 0};
        if (i >= count)
            continue;
        UNROLL for (uint32_t k = 0; k < 4; k++) {
            if (k >= in_word)
                continue;
            s = (i * in_word + k) % samples;
            totals[s] += words[i] >> (8 * size * k);
            summed[k] = totals[s];
        }
        if (size == 1)
            words[i] = pick_bytes(pick_bytes(summed[0], summed[1], 0x0040),
                                  pick_bytes(summed[2], summed[3], 0x0040), 0x5410);
        else
            words[i] = size == 2 ? pick_bytes(summed[0], summed[1], 0x5410) : summed[0];
    }
}

/* Adds before[s] to each element of sample s. */
DEVICE_FN void add_prefix(uint32_t *words, uint32_t count, uint32_t size, uint32_t samples,
                          const uint32_t *before) {
    uint32_t in_word = 4 / size;
    UNROLL for (uint32_t i = 0; i < LANE_WORDS_MAX; i++) {
        if (i >= count)
            continue;
        uint32_t a = before[i * in_word % samples], pattern = a;
        if (size == 2)
            pattern = pick_bytes(a, before[(i * in_word + 1) % samples], 0x5410);
        if (size == 1)
            pattern = pick_bytes(pick_bytes(a, before[(i * in_word + 1) % samples], 0x0040),
                                 pick_bytes(before[(i * in_word + 2) % samples],
                                            before[(i * in_word + 3) % samples], 0x0040),
                                 0x5410);
        words[i] = add_elements(words[i], pattern, size);
    }
}

/* The words of the lane at byte `at` of a row; no vector is touched that begins after its end. */
DEVICE_FN void load_lane(const uint8_t *row, uint32_t at, uint32_t bytes, uint32_t count,
                         uint32_t *words) {
    UNROLL for (uint32_t i = 0; i < LANE_WORDS_MAX; i += 4) {
        words[i] = words[i + 1] = words[i + 2] = words[i + 3] = 0;
        if (i >= count || at + 4 * i >= bytes)
            continue;
        words4 v = load_words4(row + at + 4 * i);
        words[i] = v.x, words[i + 1] = v.y, words[i + 2] = v.z, words[i + 3] = v.w;
    }
}

DEVICE_FN void store_lane(uint8_t *row, uint32_t at, uint32_t bytes, uint32_t count,
                          const uint32_t *words) {
    UNROLL for (uint32_t i = 0; i < LANE_WORDS_MAX; i += 4) {
        if (i >= count || at + 4 * i >= bytes)
            continue;
        words4 v = {words[i], words[i + 1], words[i + 2], words[i + 3]};
        store_words4(row + at + 4 * i, v);
    }
}

DEVICE_FN uint32_t lane_bytes(uint32_t samples) {
    return samples == 3 ? 48 : 16;
}

/* Lanes of a row, where several rows can be summed at once: each begins with a lane. Else 0. */
DEVICE_FN uint32_t lanes_per_row(uint32_t row_bytes, uint32_t size, uint32_t samples) {
    uint32_t lanes = row_bytes / lane_bytes(samples);
    bool fits = samples <= SCANNED_MAX && size <= 4 && row_bytes % lane_bytes(samples) == 0 &&
                lanes <= WARP && (lanes & (lanes - 1)) == 0;
    return fits ? lanes : 0;
}

/* The sum over this lane and those below it in its row. A collective. */
DEVICE_FN uint32_t scan_lanes(uint32_t value, uint32_t lane_of_row) {
    UNROLL for (uint32_t by = 1; by < WARP; by *= 2) {
        uint32_t below = warp_read_up(value, by);
        value += lane_of_row >= by ? below : 0;
    }
    return value;
}

/* `carry` is the pixel before the row; with row_lanes there are many rows, and the carry is 0.
 * Bytes after the row in its last vector are summed too, and never used. A collective of the warp.
 */
DEVICE_FN void sum_row(uint8_t *row, uint32_t bytes, const uint8_t *carry, uint32_t size,
                       uint32_t samples, uint32_t row_lanes) {
    uint32_t count = lane_bytes(samples) / 4, lane = lane_index();
    uint32_t lane_of_row = row_lanes ? lane % row_lanes : lane;
    uint32_t sums[SCANNED_MAX], totals[SCANNED_MAX], before[SCANNED_MAX];
    UNROLL for (uint32_t s = 0; s < SCANNED_MAX; s++) {
        if (s < samples)
            sums[s] = (uint32_t)load_aligned(carry + s * size, size);
    }
    for (uint32_t start = 0; start < bytes; start += WARP * 4 * count) {
        uint32_t words[LANE_WORDS_MAX];
        uint32_t at = start + lane * 4 * count;
        load_lane(row, at, bytes, count, words);
        sum_lane(words, count, size, samples, totals);
        UNROLL for (uint32_t s = 0; s < SCANNED_MAX; s++) {
            before[s] = 0;
            if (s >= samples)
                continue;
            uint32_t scanned = scan_lanes(totals[s], lane_of_row);
            before[s] = sums[s] + scanned - totals[s];
            if (!row_lanes)
                sums[s] += warp_read(scanned, WARP - 1);
        }
        add_prefix(words, count, size, samples, before);
        store_lane(row, at, bytes, count, words);
    }
    sync_warp();
}

/* The same for any pixel. Lanes are divided among samples and, where there are few of these, among
 * runs of pixels. Each sums its run twice: first for the totals of the runs before, then to store.
 */
DEVICE_FN void sum_row_any(uint8_t *row, uint32_t pixels, const uint8_t *carry, uint32_t size,
                           uint32_t samples) {
    uint32_t lane = lane_index(), groups = samples <= WARP ? WARP / samples : 1;
    uint32_t phase = samples <= WARP ? lane % samples : lane;
    uint32_t group = samples <= WARP ? lane / samples : 0;
    /* An odd number of pixels, so that lanes at the same position of their runs use other banks. */
    uint32_t run = (pixels + groups - 1) / groups | 1;
    uint32_t first = min_u32(group * run, pixels), end = min_u32(first + run, pixels);
    for (uint32_t s = phase; s - phase < samples; s += WARP) {
        bool has_work = group < groups && s < samples;
        uint64_t total = 0, sum = has_work ? load_aligned(carry + s * size, size) : 0;
        for (uint32_t x = first; has_work && x < end; x++)
            total += load_aligned(row + (x * samples + s) * size, size);
        for (uint32_t g = 0; g + 1 < groups; g++) {
            uint64_t other = warp_read64(total, g * samples + phase);
            if (g < group)
                sum += other;
        }
        for (uint32_t x = first; has_work && x < end; x++) {
            uint8_t *at = row + (x * samples + s) * size;
            sum += load_aligned(at, size);
            store_aligned(at, sum, size);
        }
    }
    sync_warp();
}

#define SUM_CASE(element, of_pixel)                                                                \
    case 8 * (element) + (of_pixel):                                                               \
        sum_row(row, (of_pixel) * (element)*pixels, carry, element, of_pixel, row_lanes);          \
        break

/* Adds to each element those of the same sample in all pixels before. A collective of the warp. */
DEVICE_FN void sum_pixels(uint8_t *row, uint32_t pixels, const uint8_t *carry, uint32_t size,
                          uint32_t samples, uint32_t row_lanes) {
    switch (samples <= SCANNED_MAX ? 8 * size + samples : 0) {
        SUM_CASE(1, 1);
        SUM_CASE(1, 2);
        SUM_CASE(1, 3);
        SUM_CASE(1, 4);
        SUM_CASE(2, 1);
        SUM_CASE(2, 2);
        SUM_CASE(2, 3);
        SUM_CASE(2, 4);
        SUM_CASE(4, 1);
        SUM_CASE(4, 2);
        SUM_CASE(4, 3);
        SUM_CASE(4, 4);
    default:
        sum_row_any(row, pixels, carry, size, samples);
    }
}

DEVICE_FN void clear_carry(uint8_t *carry) {
    words4 zeros = {0, 0, 0, 0};
    if (lane_index() < COGPU_UNPACK_PIXEL / VECTOR)
        store_words4(carry + VECTOR * lane_index(), zeros);
    sync_warp();
}

/* Keeps the last pixel of a segment for the next one. */
DEVICE_FN void keep_carry(uint8_t *carry, const uint8_t *pixel, uint32_t bytes) {
    for (uint32_t i = lane_index(); i < bytes; i += WARP)
        carry[i] = pixel[i];
    sync_warp();
}

#endif
