/*
 * Takes decoded blocks, hands on samples in the caller's raster: the twin of cpu_restore.c and
 * cpu_place.c, in one pass over memory.
 *
 * A warp takes a few rows of a block, one after the other, in pieces that its part of the shared
 * memory holds. A piece is staged there, restored (byte order, predictor, depth, CMYK) to samples
 * of the machine, and these are stored into the raster by lanes that lie side by side. Whatever the
 * layout of file and raster, global memory sees whole words in a row on both sides where it can.
 * Running sums go on from piece to piece by the last pixel of the one before: the carry.
 */
#include "backend/cuda/cuda_place.h"
#include "backend/cuda/simt.h"

enum { STAGE = COGPU_PLACE_STAGE, SPARE = 64, VECTOR = 16 };

/* A warp's part. Lanes work on whole vectors, so they may pass the end of a piece a little. */
struct place_stage {
    words4 stage[(STAGE + SPARE) / VECTOR];   /* the piece as it is in the file */
    words4 carry[COGPU_PLACE_PIXEL / VECTOR]; /* the pixel before the piece */
};

struct place_samples {
    words4 samples[(STAGE + SPARE) / VECTOR]; /* the piece as samples, if not made in place */
};

struct place_whole_shared {
    struct place_stage stages[COGPU_PLACE_WARPS];
};

struct place_shared {
    struct place_stage stages[COGPU_PLACE_WARPS];
    struct place_samples samples[COGPU_PLACE_WARPS];
};

struct areas {
    uint8_t *stage, *samples, *carry;
};

DEVICE_FN uint32_t smaller(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

DEVICE_FN uint32_t round_up(uint32_t value, uint32_t unit) {
    return (value + unit - 1) / unit * unit;
}

/* ---- numbers of 1, 2, 4 and 8 bytes ---- */

DEVICE_FN uint64_t load_number(const uint8_t *at, uint32_t size) {
    return size == 1   ? *at
           : size == 2 ? *(const number16 *)(const void *)at
           : size == 4 ? *(const number32 *)(const void *)at
                       : *(const number64 *)(const void *)at;
}

DEVICE_FN void store_number(uint8_t *at, uint64_t value, uint32_t size) {
    if (size == 1)
        *at = (uint8_t)value;
    else if (size == 2)
        *(number16 *)(void *)at = (uint16_t)value;
    else if (size == 4)
        *(number32 *)(void *)at = (uint32_t)value;
    else
        *(number64 *)(void *)at = value;
}

/* Into the raster, whose samples may lie anywhere. */
DEVICE_FN void store_anywhere(uint8_t *at, uint64_t value, uint32_t size) {
    if ((uintptr_t)at % size == 0)
        store_number(at, value, size);
    else
        for (uint32_t i = 0; i < size; i++)
            at[i] = (uint8_t)(value >> (8 * i));
}

/* ---- staging ---- */

/* Bytes from anywhere in global memory to an aligned place. Up to 15 more are read and written.
 * They are there after `staged`. */
DEVICE_FN void stage(uint8_t *to, const uint8_t *from, uint32_t bytes) {
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
        store_number(to + at, funnel_right(low, high, shift), 4);
    }
}

DEVICE_FN void staged(void) {
    copies_commit();
    copies_wait();
    sync_warp();
}

/* ---- byte order ---- */

DEVICE_FN uint32_t turn_halves(uint32_t word) {
    return pick_bytes(word, 0, 0x2301);
}

DEVICE_FN uint32_t turn_word(uint32_t word) {
    return pick_bytes(word, 0, 0x0123);
}

DEVICE_FN words4 turn_vector(words4 v, uint32_t unit) {
    words4 turned;
    if (unit == 2) {
        turned.x = turn_halves(v.x), turned.y = turn_halves(v.y);
        turned.z = turn_halves(v.z), turned.w = turn_halves(v.w);
    } else if (unit == 4) {
        turned.x = turn_word(v.x), turned.y = turn_word(v.y);
        turned.z = turn_word(v.z), turned.w = turn_word(v.w);
    } else {
        turned.x = turn_word(v.y), turned.y = turn_word(v.x);
        turned.z = turn_word(v.w), turned.w = turn_word(v.z);
    }
    return turned;
}

DEVICE_FN void turn_bytes(uint8_t *row, uint32_t bytes, uint32_t unit) {
    for (uint32_t at = VECTOR * lane_index(); at < bytes; at += VECTOR * WARP)
        store_words4(row + at, turn_vector(load_words4(row + at), unit));
    sync_warp();
}

/* ---- running sums ---- */

/*
 * Elements of 1, 2 or 4 bytes, 1 to 4 of them a pixel: constants wherever this is called. A lane
 * takes a run of whole pixels into registers and sums it; what the lanes below and all pixels
 * before come to is added to each word at once. Only the low bits of a sum matter, so values are
 * not masked on their way.
 */
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
DEVICE_FN void add_before(uint32_t *words, uint32_t count, uint32_t size, uint32_t samples,
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

/* Lanes that a row takes where several rows, one after the other, can be summed at once: rows and
 * lanes begin together. Else 0. */
DEVICE_FN uint32_t lanes_of_row(uint32_t row_bytes, uint32_t size, uint32_t samples) {
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

/* `carry` is the pixel before the row; with row_lanes there are many rows, and nothing before them.
 * What lies after the row in its last vector is summed too: noise, which stays there. A collective.
 */
DEVICE_FN void sum_row(uint8_t *row, uint32_t bytes, const uint8_t *carry, uint32_t size,
                       uint32_t samples, uint32_t row_lanes) {
    uint32_t count = lane_bytes(samples) / 4, lane = lane_index();
    uint32_t lane_of_row = row_lanes ? lane % row_lanes : lane;
    uint32_t sums[SCANNED_MAX], totals[SCANNED_MAX], before[SCANNED_MAX];
    UNROLL for (uint32_t s = 0; s < SCANNED_MAX; s++) {
        if (s < samples)
            sums[s] = (uint32_t)load_number(carry + s * size, size);
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
        add_before(words, count, size, samples, before);
        store_lane(row, at, bytes, count, words);
    }
    sync_warp();
}

/* The same for any pixel. Lanes are shared out to samples and, where there are few of these, to
 * runs of pixels: each sums its run twice, first to learn what the runs before come to. */
DEVICE_FN void sum_row_any(uint8_t *row, uint32_t pixels, const uint8_t *carry, uint32_t size,
                           uint32_t samples) {
    uint32_t lane = lane_index(), groups = samples <= WARP ? WARP / samples : 1;
    uint32_t phase = samples <= WARP ? lane % samples : lane;
    uint32_t group = samples <= WARP ? lane / samples : 0;
    /* An odd number of pixels, so that lanes at the same place of their runs use different banks.
     */
    uint32_t run = (pixels + groups - 1) / groups | 1;
    uint32_t first = smaller(group * run, pixels), end = smaller(first + run, pixels);
    for (uint32_t s = phase; s - phase < samples; s += WARP) {
        bool has_work = group < groups && s < samples;
        uint64_t total = 0, sum = has_work ? load_number(carry + s * size, size) : 0;
        for (uint32_t x = first; has_work && x < end; x++)
            total += load_number(row + (x * samples + s) * size, size);
        for (uint32_t g = 0; g + 1 < groups; g++) {
            uint64_t other = warp_read64(total, g * samples + phase);
            if (g < group)
                sum += other;
        }
        for (uint32_t x = first; has_work && x < end; x++) {
            uint8_t *at = row + (x * samples + s) * size;
            sum += load_number(at, size);
            store_number(at, sum, size);
        }
    }
    sync_warp();
}

#define SUM_CASE(element, of_pixel)                                                                \
    case 8 * (element) + (of_pixel):                                                               \
        sum_row(row, (of_pixel) * (element)*pixels, carry, element, of_pixel, row_lanes);          \
        break

/* Each element becomes the sum of itself and those of its sample in all pixels before. */
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
    if (lane_index() < COGPU_PLACE_PIXEL / VECTOR)
        store_words4(carry + VECTOR * lane_index(), zeros);
    sync_warp();
}

/* The last pixel of a piece, for the next one. */
DEVICE_FN void keep_carry(uint8_t *carry, const uint8_t *pixel, uint32_t bytes) {
    for (uint32_t i = lane_index(); i < bytes; i += WARP)
        carry[i] = pixel[i];
    sync_warp();
}

/* ---- predictor 3: planes of bytes, most significant first, back to samples ---- */

/* A number of 1 + 7 + 16 bits as one of 1 + 8 + 23. */
DEVICE_FN uint32_t float24_to_32(uint32_t value) {
    uint32_t sign = value >> 23 << 31, exponent = value >> 16 & 0x7F, mantissa = value & 0xFFFF;
    if (exponent == 0x7F)
        return sign | 0x7F800000u | mantissa << 7;
    if (exponent == 0) {
        if (mantissa == 0)
            return sign;
        /* A denormal of 24 bits is a normal number of 32. */
        uint32_t shift = leading_zeros(mantissa) - 15;
        mantissa = mantissa << shift & 0xFFFF;
        exponent = 1 - shift;
    }
    return sign | (exponent + 127 - 63) << 23 | mantissa << 7;
}

/* Four samples of four bytes out of four words of planes, `lowest` with the least significant
 * bytes.
 */
DEVICE_FN words4 weave(uint32_t lowest, uint32_t low, uint32_t high, uint32_t highest) {
    uint32_t low01 = pick_bytes(lowest, low, 0x5140), low23 = pick_bytes(lowest, low, 0x7362);
    uint32_t high01 = pick_bytes(high, highest, 0x5140), high23 = pick_bytes(high, highest, 0x7362);
    words4 woven = {pick_bytes(low01, high01, 0x5410), pick_bytes(low01, high01, 0x7632),
                    pick_bytes(low23, high23, 0x5410), pick_bytes(low23, high23, 0x7632)};
    return woven;
}

/* Planes `pitch` bytes apart to samples, four at a time by each lane. Up to three more are written.
 */
DEVICE_FN void gather(const uint8_t *planes, uint32_t pitch, uint32_t count, uint32_t planes_count,
                      uint8_t *to) {
    for (uint32_t i = 4 * lane_index(); i < count; i += 4 * WARP) {
        uint32_t word[8];
        UNROLL for (uint32_t k = 0; k < 8; k++) {
            word[k] = k < planes_count ? load_u32_aligned(planes + k * pitch + i) : 0;
        }
        if (planes_count == 4) {
            store_words4(to + 4 * i, weave(word[3], word[2], word[1], word[0]));
        } else if (planes_count == 8) {
            words4 low = weave(word[7], word[6], word[5], word[4]);
            words4 high = weave(word[3], word[2], word[1], word[0]);
            words4 first = {low.x, high.x, low.y, high.y}, second = {low.z, high.z, low.w, high.w};
            store_words4(to + 8 * i, first);
            store_words4(to + 8 * i + 16, second);
        } else if (planes_count == 3) {
            words4 v = weave(word[2], word[1], word[0], 0);
            words4 wide = {float24_to_32(v.x), float24_to_32(v.y), float24_to_32(v.z),
                           float24_to_32(v.w)};
            store_words4(to + 4 * i, wide);
        } else {
            store_number(to + 2 * i, pick_bytes(word[1], word[0], 0x5140), 4);
            store_number(to + 2 * i + 4, pick_bytes(word[1], word[0], 0x7362), 4);
        }
    }
    sync_warp();
}

/* ---- packed depths ---- */

/* Bits run from the most significant down. Words of an aligned row. */
DEVICE_FN uint32_t bits_at(const uint8_t *row, uint32_t bit, uint32_t bits) {
    const uint8_t *at = row + bit / 32 * 4;
    uint32_t high = turn_word(load_u32_aligned(at)), low = turn_word(load_u32_aligned(at + 4));
    return funnel_left(low, high, bit % 32) >> (32 - bits);
}

/* Bits of a sample as a sample of the machine. */
DEVICE_FN uint32_t widen(const struct cogpu_gpu_pixels *pixels, uint32_t value) {
    uint32_t sign = 1u << (pixels->bits - 1);
    /* Floats are numbers, integers of 24 bits are bits with the most significant first: but GDAL
     * turns their bytes in big-endian files. */
    bool is_turned = pixels->is_float24 ? pixels->swap == 0 : pixels->swap == 3;
    if (is_turned)
        value = turn_word(value) >> 8;
    if (pixels->is_float24)
        return float24_to_32(value);
    return pixels->is_signed ? (value ^ sign) - sign : value;
}

DEVICE_FN void widen_samples(const struct cogpu_gpu_pixels *pixels, const uint8_t *row,
                             uint32_t first_bit, uint32_t count, uint8_t *to) {
    uint32_t bits = pixels->bits, size = pixels->size;
    for (uint32_t i = lane_index(); i < count; i += WARP)
        store_number(to + i * size, widen(pixels, bits_at(row, first_bit + i * bits, bits)), size);
    sync_warp();
}

/* ---- CMYK ---- */

DEVICE_FN void cmyk_to_rgba(uint8_t *row, uint32_t count) {
    for (uint32_t i = lane_index(); i < count; i += WARP) {
        uint32_t pixel = load_u32_aligned(row + 4 * i), light = 255 - (pixel >> 24);
        uint32_t rgba = 0xFF000000u;
        UNROLL for (uint32_t k = 0; k < 24; k += 8) {
            rgba |= light * (255 - (pixel >> k & 255)) / 255 << k;
        }
        store_number(row + 4 * i, rgba, 4);
    }
    sync_warp();
}

/* ---- conversion ---- */

#ifdef __CUDACC__
DEVICE_FN float float_of_bits(uint32_t bits) {
    return __uint_as_float(bits);
}
DEVICE_FN uint32_t bits_of_float(float value) {
    return __float_as_uint(value);
}
DEVICE_FN double double_of_bits(uint64_t bits) {
    return __longlong_as_double((long long)bits);
}
DEVICE_FN uint64_t bits_of_double(double value) {
    return (uint64_t)__double_as_longlong(value);
}
/* Rounded twice: never one fused instruction. */
DEVICE_FN float times_plus(float a, float b, float c) {
    return __fadd_rn(__fmul_rn(a, b), c);
}
DEVICE_FN double times_plus64(double a, double b, double c) {
    return __dadd_rn(__dmul_rn(a, b), c);
}
#else
DEVICE_FN float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
DEVICE_FN uint32_t bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
DEVICE_FN double double_of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
DEVICE_FN uint64_t bits_of_double(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
DEVICE_FN float times_plus(float a, float b, float c) {
    float product = a * b;
    return product + c;
}
DEVICE_FN double times_plus64(double a, double b, double c) {
    double product = a * b;
    return product + c;
}
#endif

#define QUIET_NAN64 0x7FF8000000000000u
enum { QUIET_NAN16 = 0x7E00, QUIET_NAN32 = 0x7FC00000 };

DEVICE_FN float half_to_float(uint32_t half) {
    uint32_t sign = half >> 15 << 31, exponent = half >> 10 & 0x1F, mantissa = half & 0x3FF;
    if (exponent == 0x1F)
        return float_of_bits(sign | 0x7F800000u | mantissa << 13);
    if (exponent == 0) {
        float small = (float)mantissa * 5.9604644775390625e-8f; /* 2^-24 */
        return sign ? -small : small;
    }
    return float_of_bits(sign | (exponent + 127 - 15) << 23 | mantissa << 13);
}

/* To the nearest, ties to even. */
DEVICE_FN uint32_t half_of_double(double value) {
    uint64_t bits = bits_of_double(value), mantissa = bits & 0xFFFFFFFFFFFFFu;
    uint32_t sign = (uint32_t)(bits >> 63) << 15;
    int32_t exponent = (int32_t)(bits >> 52 & 0x7FF) - 1023 + 15;
    if (value != value)
        return QUIET_NAN16;
    if (exponent >= 0x1F)
        return sign | 0x7C00;
    if (exponent < -10)
        return sign;
    /* A denormal has its leading one among the mantissa's bits. */
    uint32_t dropped = exponent > 0 ? 42 : (uint32_t)(43 - exponent);
    uint64_t whole = exponent > 0 ? mantissa : mantissa | 1ull << 52;
    uint64_t half = whole >> dropped, rest = whole & ((1ull << dropped) - 1);
    uint64_t tie = 1ull << (dropped - 1);
    if (exponent > 0)
        half |= (uint64_t)exponent << 10;
    half += rest > tie || (rest == tie && (half & 1)); /* into the exponent where it overflows */
    return sign | (uint32_t)half;
}

/* What becomes of the samples of one band, at hand for a loop over them. */
struct conversion {
    uint32_t from, to;
    uint32_t spare_bits; /* of an integer of up to 32 bits: those above it */
    bool is_small, is_signed, is_mask, has_nodata, nodata_is_nan, scales;
    uint64_t nodata[2], nan;
    double scale, offset;
    float scale32, offset32;
};

DEVICE_FN const struct cogpu_gpu_band *band_of(const struct cogpu_gpu_pixels *pixels, uint32_t p) {
    return pixels->more_bands ? pixels->more_bands + p : pixels->bands + p;
}

DEVICE_FN struct conversion conversion_of(const struct cogpu_gpu_pixels *pixels, uint32_t p) {
    struct conversion c;
    c.from = pixels->type;
    c.to = pixels->target_type;
    c.is_small = c.from <= COGPU_I32; /* integers of up to 32 bits come first */
    c.is_signed = pixels->is_signed;
    c.spare_bits = c.is_small ? 32 - 8 * pixels->size : 0;
    c.is_mask = pixels->is_mask;
    c.has_nodata = pixels->has_nodata;
    c.nodata_is_nan = pixels->nodata_is_nan;
    c.nodata[0] = pixels->nodata[0];
    c.nodata[1] = pixels->nodata[1];
    c.nan = c.to == COGPU_F64   ? QUIET_NAN64
            : c.to == COGPU_F32 ? (uint64_t)QUIET_NAN32
                                : (uint64_t)QUIET_NAN16;
    c.scales = pixels->scales;
    c.scale = c.scales ? band_of(pixels, p)->scale : 1;
    c.offset = c.scales ? band_of(pixels, p)->offset : 0;
    c.scale32 = (float)c.scale;
    c.offset32 = (float)c.offset;
    return c;
}

DEVICE_FN int32_t small_integer(const struct conversion *c, uint32_t sample) {
    return (int32_t)(sample << c->spare_bits) >> c->spare_bits;
}

DEVICE_FN float to_float(const struct conversion *c, uint64_t sample) {
    if (c->is_small)
        return c->is_signed ? (float)small_integer(c, (uint32_t)sample) : (float)(uint32_t)sample;
    switch (c->from) {
    case COGPU_U64:
        return (float)sample;
    case COGPU_I64:
        return (float)(int64_t)sample;
    case COGPU_F16:
        return half_to_float((uint32_t)sample);
    case COGPU_F64:
        return (float)double_of_bits(sample);
    default:
        return float_of_bits((uint32_t)sample);
    }
}

DEVICE_FN double to_double(const struct conversion *c, uint64_t sample) {
    if (c->is_small)
        return c->is_signed ? (double)small_integer(c, (uint32_t)sample) : (double)(uint32_t)sample;
    switch (c->from) {
    case COGPU_U64:
        return (double)sample;
    case COGPU_I64:
        return (double)(int64_t)sample;
    case COGPU_F64:
        return double_of_bits(sample);
    default:
        return (double)to_float(c, sample);
    }
}

/* In either part of a complex one. */
DEVICE_FN bool is_nan(uint32_t type, uint64_t sample) {
    uint32_t low = (uint32_t)sample & 0x7FFFFFFFu, high = (uint32_t)(sample >> 32) & 0x7FFFFFFFu;
    switch (type) {
    case COGPU_F16:
        return (low & 0x7FFF) > 0x7C00;
    case COGPU_F64:
        return (sample & 0x7FFFFFFFFFFFFFFFu) > 0x7FF0000000000000u;
    case COGPU_CF32:
        return low > 0x7F800000u || high > 0x7F800000u;
    default:
        return low > 0x7F800000u;
    }
}

DEVICE_FN bool is_nodata(const struct conversion *c, uint64_t sample) {
    if (c->nodata_is_nan)
        return is_nan(c->from, sample);
    return c->has_nodata && (sample == c->nodata[0] || sample == c->nodata[1]);
}

/* The sample as one of the raster's type. */
DEVICE_FN uint64_t convert(const struct conversion *c, uint64_t sample) {
    bool is_void = is_nodata(c, sample);
    if (c->is_mask)
        return is_void ? 0 : 255;
    if (is_void)
        return c->nan;
    if (c->to == COGPU_F64) {
        double value = to_double(c, sample);
        if (c->scales)
            value = times_plus64(value, c->scale, c->offset);
        return value == value ? bits_of_double(value) : c->nan;
    }
    if (c->to == COGPU_F16 && !c->scales)
        return half_of_double(to_double(c, sample));
    float value = to_float(c, sample);
    if (c->scales)
        value = times_plus(value, c->scale32, c->offset32);
    if (c->to == COGPU_F16)
        return half_of_double((double)value);
    return value == value ? bits_of_float(value) : c->nan;
}

/* ---- into the raster ---- */

/* Samples of a piece that go to one row of the raster, at equal steps on both sides. */
struct run {
    const uint8_t *samples; /* in shared memory */
    uint32_t first, step, count;
    uint8_t *to;
    int64_t stride;
    uint32_t band; /* of the raster */
};

/* Bytes from shared memory to any place, words at a time where it is aligned for them. */
DEVICE_FN void copy_bytes(uint8_t *to, const uint8_t *area, uint32_t from, uint32_t bytes) {
    uint32_t lane = lane_index();
    if (((uintptr_t)to | from | bytes) % VECTOR == 0) {
        for (uint32_t at = VECTOR * lane; at < bytes; at += VECTOR * WARP)
            store_words4(to + at, load_words4(area + from + at));
        return;
    }
    uint32_t head = smaller((uint32_t)(0 - (uintptr_t)to) % 4, bytes);
    if (lane < head)
        to[lane] = area[from + lane];
    to += head;
    from += head;
    bytes -= head;
    uint32_t shift = from % 4 * 8;
    const uint8_t *words = area + from / 4 * 4;
    for (uint32_t at = 4 * lane; at + 4 <= bytes; at += 4 * WARP) {
        uint32_t low = load_u32_aligned(words + at), high = load_u32_aligned(words + at + 4);
        store_number(to + at, funnel_right(low, high, shift), 4);
    }
    uint32_t done = bytes / 4 * 4;
    if (lane < bytes - done)
        to[done + lane] = area[from + done + lane];
}

/* The i-th sample of the run as the raster takes it, if it has at most 8 bytes. */
DEVICE_FN uint64_t sample_of(const struct run *run, uint32_t i, uint32_t size,
                             const struct conversion *conversion) {
    uint64_t sample = load_number(run->samples + (run->first + i * run->step) * size, size);
    return conversion ? convert(conversion, sample) : sample;
}

/* Samples of one or two bytes side by side: a lane stores a word of them. */
DEVICE_FN void emit_words(const struct run *run, uint32_t size, uint32_t target_size,
                          const struct conversion *conversion) {
    uint32_t in_word = 4 / target_size, lane = lane_index();
    uint32_t head = smaller((uint32_t)(0 - (uintptr_t)run->to) % 4 / target_size, run->count);
    uint32_t words = (run->count - head) / in_word, tail = head + words * in_word;
    if (lane < head)
        store_number(run->to + lane * target_size, sample_of(run, lane, size, conversion),
                     target_size);
    for (uint32_t i = lane; i < words; i += WARP) {
        uint32_t word = 0, at = head + i * in_word;
        UNROLL for (uint32_t k = 0; k < 4; k++) {
            if (k < in_word)
                word |= (uint32_t)sample_of(run, at + k, size, conversion) << (8 * target_size * k);
        }
        store_number(run->to + at * target_size, word, 4);
    }
    if (lane < run->count - tail)
        store_number(run->to + (tail + lane) * target_size,
                     sample_of(run, tail + lane, size, conversion), target_size);
}

/* The sizes are constants wherever this is called for speed; `conversion` may be NULL. */
DEVICE_FN void emit_samples(const struct run *run, uint32_t size, uint32_t target_size,
                            const struct conversion *conversion) {
    bool is_packed = run->stride == (int64_t)target_size;
    if (target_size < 4 && is_packed && (uintptr_t)run->to % target_size == 0) {
        emit_words(run, size, target_size, conversion);
        return;
    }
    for (uint32_t i = lane_index(); i < run->count; i += WARP)
        store_anywhere(run->to + (int64_t)i * run->stride, sample_of(run, i, size, conversion),
                       target_size);
}

/* Complex samples of 16 bytes. */
DEVICE_FN void emit_pairs(const struct run *run) {
    for (uint32_t i = lane_index(); i < run->count; i += WARP) {
        const uint8_t *from = run->samples + (run->first + i * run->step) * 16;
        uint8_t *to = run->to + (int64_t)i * run->stride;
        store_anywhere(to, load_number(from, 8), 8);
        store_anywhere(to + 8, load_number(from + 8, 8), 8);
    }
}

DEVICE_FN void emit_converted(const struct cogpu_gpu_pixels *pixels, const struct run *run) {
    struct conversion conversion = conversion_of(pixels, run->band);
    uint32_t size = pixels->size;
    if (conversion.to != COGPU_F32 || size > 4) {
        emit_samples(run, size, pixels->target_size, &conversion);
        return;
    }
    conversion.to = COGPU_F32; /* which the compiler sees as a constant in these loops */
    if (size == 1)
        emit_samples(run, 1, 4, &conversion);
    else if (size == 2)
        emit_samples(run, 2, 4, &conversion);
    else
        emit_samples(run, 4, 4, &conversion);
}

DEVICE_FN void emit_run(const struct cogpu_gpu_pixels *pixels, const struct run *run) {
    uint32_t size = pixels->size;
    if (pixels->converts)
        emit_converted(pixels, run);
    else if (run->step == 1 && run->stride == (int64_t)size)
        copy_bytes(run->to, run->samples, run->first * size, run->count * size);
    else if (size == 1)
        emit_samples(run, 1, 1, NULL);
    else if (size == 2)
        emit_samples(run, 2, 2, NULL);
    else if (size == 4)
        emit_samples(run, 4, 4, NULL);
    else if (size == 8)
        emit_samples(run, 8, 8, NULL);
    else
        emit_pairs(run);
}

/* Pixels of three or four bytes whose bands lie apart in the raster: a lane takes four of them, and
 * has a word for each band. Returns how many were placed. */
DEVICE_FN uint32_t emit_split(const struct cogpu_gpu_pixels *pixels, const struct run *run) {
    uint32_t per_pixel = pixels->samples, count = run->count / 4 * 4;
    bool fits = pixels->size == 1 && !pixels->converts && pixels->in_order && run->stride == 1 &&
                (per_pixel == 3 || per_pixel == 4) && run->first % 16 == 0 &&
                ((uintptr_t)run->to | (uintptr_t)pixels->stride_band) % 4 == 0;
    if (!fits)
        return 0;
    for (uint32_t i = 4 * lane_index(); i < count; i += 4 * WARP) {
        const uint8_t *from = run->samples + run->first + i * per_pixel;
        uint8_t *to = run->to + i;
        words4 bands = {0, 0, 0, 0};
        if (per_pixel == 4) {
            words4 four = load_words4(from);
            bands = weave(four.x, four.y, four.z, four.w);
        } else {
            uint32_t a = load_u32_aligned(from), b = load_u32_aligned(from + 4);
            uint32_t c = load_u32_aligned(from + 8);
            bands.x = pick_bytes(pick_bytes(a, b, 0x0630), c, 0x5210);
            bands.y = pick_bytes(pick_bytes(a, b, 0x0741), c, 0x6210);
            bands.z = pick_bytes(pick_bytes(a, b, 0x0052), c, 0x7410);
        }
        store_number(to, bands.x, 4);
        store_number(to + pixels->stride_band, bands.y, 4);
        store_number(to + 2 * pixels->stride_band, bands.z, 4);
        if (per_pixel == 4)
            store_number(to + 3 * pixels->stride_band, bands.w, 4);
    }
    return count;
}

/* Pixels of a row of a block that are at hand as samples. */
struct piece {
    const uint8_t *samples;
    uint32_t x, count; /* the first, counted in the block */
};

/* What the window takes of a piece. */
DEVICE_FN void emit(const struct cogpu_gpu_pixels *pixels, const struct cogpu_placed *block,
                    uint32_t row, struct piece piece) {
    uint32_t x = piece.x > block->source_x ? piece.x : block->source_x;
    uint32_t end = smaller(piece.x + piece.count, block->source_x + block->width);
    if (x >= end)
        return;
    uint32_t per_pixel = pixels->samples, skip = (x - piece.x) * per_pixel;
    struct run run = {piece.samples, skip, per_pixel, end - x, pixels->data, pixels->stride_x, 0};
    run.to += (int64_t)(block->target_y + row) * pixels->stride_y +
              (int64_t)(block->target_x + x - block->source_x) * pixels->stride_x;
    if (pixels->is_planar) {
        run.to += (int64_t)block->plane * pixels->stride_band;
        run.band = block->plane;
    } else if (pixels->is_flat) {
        run.step = 1;
        run.count *= per_pixel;
        run.stride = (int64_t)pixels->target_size;
    }
    bool is_one = pixels->is_planar || pixels->is_flat;
    uint32_t done = is_one ? 0 : emit_split(pixels, &run);
    skip += done * per_pixel;
    run.count -= done;
    run.to += (int64_t)done * pixels->stride_x;
    for (uint32_t p = 0; p < (is_one ? 1 : pixels->band_count); p++) {
        if (!is_one) {
            run.first = skip + (pixels->in_order ? p : band_of(pixels, p)->sample);
            run.band = p;
        }
        emit_run(pixels, &run);
        run.to += pixels->stride_band;
    }
}

/* Rows that lie one after the other in shared memory, and in the raster as they are: at once where
 * all is aligned. False where it is not. */
DEVICE_FN bool emit_rows(const struct cogpu_gpu_pixels *pixels, const struct cogpu_placed *block,
                         uint32_t row, uint32_t count, const uint8_t *area) {
    bool is_run =
        pixels->is_flat || pixels->is_planar || (pixels->samples == 1 && pixels->band_count == 1);
    uint32_t row_bytes = pixels->row_bytes, vectors = row_bytes / VECTOR;
    int64_t pixel = (int64_t)(pixels->samples * pixels->size);
    uint8_t *to = pixels->data + (int64_t)(block->target_y + row) * pixels->stride_y +
                  (int64_t)block->target_x * pixels->stride_x;
    if (pixels->is_planar)
        to += (int64_t)block->plane * pixels->stride_band;
    if (!is_run || pixels->converts || pixels->stride_x != pixel ||
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

/* ---- rows ---- */

/* Short rows are staged several at a time, so that enough bytes are on their way at once. */

/* One of them, restored but for what was done to all, and placed. The carry is 0. */
DEVICE_FN void place_held(const struct cogpu_gpu_pixels *pixels, const struct cogpu_placed *block,
                          uint32_t row, uint8_t *held, bool is_summed, struct areas mine,
                          enum cogpu_place_way way) {
    uint32_t per_pixel = pixels->samples, end = block->source_x + block->width;
    uint32_t planes = pixels->bits / 8, width = pixels->block_width;
    bool is_planes = way == COGPU_PLACE_PLANES;
    struct piece piece = {mine.samples, 0, end};
    if (!is_summed)
        sum_pixels(held, is_planes ? planes * width : end, mine.carry, is_planes ? 1 : pixels->size,
                   per_pixel, 0);
    if (way == COGPU_PLACE_WHOLE) {
        piece.samples = held;
        if (pixels->is_cmyk)
            cmyk_to_rgba(held, end);
    } else if (is_planes) {
        gather(held, width * per_pixel, end * per_pixel, planes, mine.samples);
    } else {
        piece.x = block->source_x;
        piece.count = block->width;
        widen_samples(pixels, held, piece.x * per_pixel * pixels->bits, piece.count * per_pixel,
                      mine.samples);
    }
    emit(pixels, block, row, piece);
    sync_warp();
}

/* `count` rows, no more than are held. */
DEVICE_FN void place_rows_held(const struct cogpu_gpu_pixels *pixels,
                               const struct cogpu_placed *block, uint32_t row, uint32_t count,
                               struct areas mine, enum cogpu_place_way way) {
    uint32_t row_bytes = pixels->row_bytes, bytes = count * row_bytes;
    uint32_t size = way == COGPU_PLACE_PLANES ? 1 : pixels->size;
    uint32_t lanes = lanes_of_row(row_bytes, size, pixels->samples);
    bool sums = way != COGPU_PLACE_BITS && pixels->predictor != 1;
    stage(mine.stage,
          pixels->decoded + block->decoded + (size_t)(block->source_y + row) * row_bytes, bytes);
    staged();
    if (way == COGPU_PLACE_WHOLE && pixels->swap)
        turn_bytes(mine.stage, bytes, pixels->swap);
    if (sums && lanes)
        sum_pixels(mine.stage, bytes / (size * pixels->samples), mine.carry, size, pixels->samples,
                   lanes);
    bool is_summed = !sums || lanes;
    if (way == COGPU_PLACE_WHOLE && is_summed && !pixels->is_cmyk &&
        emit_rows(pixels, block, row, count, mine.stage))
        return;
    for (uint32_t i = 0; i < count; i++)
        place_held(pixels, block, row + i, mine.stage + i * row_bytes, is_summed, mine, way);
}

/* Others are taken in pieces. Predictor 1 begins where the window does, sums at the row's start. */
DEVICE_FN void place_whole(const struct cogpu_gpu_pixels *pixels, const struct cogpu_placed *block,
                           uint32_t row, const uint8_t *from, struct areas mine) {
    bool sums = pixels->predictor == 2;
    uint32_t pixel = pixels->samples * pixels->size, end = block->source_x + block->width;
    uint8_t *area = mine.stage;
    /* Of complex samples the two parts are turned, but the whole is summed. */
    struct piece piece = {area, sums ? 0 : block->source_x, 0};
    if (sums)
        clear_carry(mine.carry);
    for (; piece.x < end; piece.x += piece.count) {
        piece.count = smaller(pixels->piece_pixels, end - piece.x);
        stage(area, from + (size_t)piece.x * pixel, piece.count * pixel);
        staged();
        if (pixels->swap)
            turn_bytes(area, piece.count * pixel, pixels->swap);
        if (sums) {
            sum_pixels(area, piece.count, mine.carry, pixels->size, pixels->samples, 0);
            if (piece.x + piece.count < end)
                keep_carry(mine.carry, area + (piece.count - 1) * pixel, pixel);
        }
        if (pixels->is_cmyk)
            cmyk_to_rgba(area, piece.count);
        emit(pixels, block, row, piece);
        sync_warp();
    }
}

/* What each plane of a row begins with: all planes before it, summed. */
DEVICE_FN void carry_planes(const struct cogpu_gpu_pixels *pixels, const uint8_t *from,
                            struct areas mine) {
    uint32_t per_pixel = pixels->samples, planes = pixels->bits / 8, width = pixels->block_width;
    uint32_t fit = STAGE / per_pixel, count;
    uint8_t *area = mine.stage, *carry = mine.carry;
    fit = fit >= 16 ? fit / 16 * 16 : fit;
    for (uint32_t k = 0; k + 1 < planes; k++) {
        uint8_t *next = carry + (k + 1) * per_pixel;
        keep_carry(next, carry + k * per_pixel, per_pixel);
        for (uint32_t x = 0; x < width; x += count, from += (size_t)count * per_pixel) {
            count = smaller(fit, width - x);
            stage(area, from, count * per_pixel);
            staged();
            sum_pixels(area, count, next, 1, per_pixel, 0);
            keep_carry(next, area + (count - 1) * per_pixel, per_pixel);
        }
    }
}

/* The sums run through all planes, one after the other. A row that is held as a whole goes on from
 * plane to plane; of others each plane has a carry of its own, from a pass before. */
DEVICE_FN void sum_planes(const struct cogpu_gpu_pixels *pixels, uint32_t count, uint32_t pitch,
                          bool is_whole, struct areas mine) {
    uint32_t per_pixel = pixels->samples, planes = pixels->bits / 8, bytes = count * per_pixel;
    uint8_t *area = mine.stage, *carry = mine.carry;
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

DEVICE_FN void place_planes(const struct cogpu_gpu_pixels *pixels, const struct cogpu_placed *block,
                            uint32_t row, const uint8_t *from, struct areas mine) {
    uint32_t per_pixel = pixels->samples, planes = pixels->bits / 8, width = pixels->block_width;
    uint32_t end = block->source_x + block->width;
    bool is_whole = width <= pixels->piece_pixels;
    uint8_t *area = mine.stage, *samples = mine.samples;
    struct piece piece = {samples, 0, 0};
    clear_carry(mine.carry);
    if (!is_whole)
        carry_planes(pixels, from, mine);
    for (; piece.x < end; piece.x += piece.count) {
        piece.count = smaller(pixels->piece_pixels, width - piece.x);
        uint32_t bytes = piece.count * per_pixel, pitch = round_up(bytes, VECTOR);
        for (uint32_t k = 0; k < planes; k++)
            stage(area + k * pitch, from + ((size_t)k * width + piece.x) * per_pixel, bytes);
        staged();
        sum_planes(pixels, piece.count, pitch, is_whole, mine);
        gather(area, pitch, bytes, planes, samples);
        emit(pixels, block, row, piece);
        sync_warp();
    }
}

DEVICE_FN void place_bits(const struct cogpu_gpu_pixels *pixels, const struct cogpu_placed *block,
                          uint32_t row, const uint8_t *from, struct areas mine) {
    uint32_t pixel_bits = pixels->samples * pixels->bits, end = block->source_x + block->width;
    uint8_t *area = mine.stage, *samples = mine.samples;
    struct piece piece = {samples, block->source_x, 0};
    for (; piece.x < end; piece.x += piece.count) {
        piece.count = smaller(pixels->piece_pixels, end - piece.x);
        uint64_t bit = (uint64_t)piece.x * pixel_bits;
        uint32_t skip = (uint32_t)(bit % 8);
        stage(area, from + bit / 8, (skip + piece.count * pixel_bits + 7) / 8);
        staged();
        widen_samples(pixels, area, skip, piece.count * pixels->samples, samples);
        emit(pixels, block, row, piece);
        sync_warp();
    }
}

DEVICE_FN void place_row(const struct cogpu_gpu_pixels *pixels, const struct cogpu_placed *block,
                         uint32_t row, struct areas mine, enum cogpu_place_way way) {
    const uint8_t *from =
        pixels->decoded + block->decoded + (size_t)(block->source_y + row) * pixels->row_bytes;
    if (way == COGPU_PLACE_WHOLE)
        place_whole(pixels, block, row, from, mine);
    else if (way == COGPU_PLACE_PLANES)
        place_planes(pixels, block, row, from, mine);
    else
        place_bits(pixels, block, row, from, mine);
}

/* Pixels of nothing but the fill sample, as many as a piece has: made once for all rows. */
DEVICE_FN void fill_samples(const struct cogpu_gpu_pixels *pixels, uint32_t count, uint8_t *to) {
    uint32_t bytes = count * pixels->samples * pixels->size;
    for (uint32_t i = lane_index(); i < bytes; i += WARP)
        to[i] = pixels->fill[i % pixels->size];
    sync_warp();
}

DEVICE_FN void fill_row(const struct cogpu_gpu_pixels *pixels, const struct cogpu_placed *block,
                        uint32_t row, struct areas mine) {
    struct piece piece = {mine.samples, block->source_x, 0};
    uint32_t end = block->source_x + block->width;
    for (; piece.x < end; piece.x += piece.count) {
        piece.count = smaller(pixels->piece_pixels, end - piece.x);
        emit(pixels, block, row, piece);
    }
}

/* ---- the step ---- */

/* Rows of a block that a warp takes: none where the host brings the block later. */
struct share {
    uint32_t block, row, end;
};

DEVICE_FN struct share share_of(const struct cogpu_place_args *args) {
    uint32_t number = block_index() * COGPU_PLACE_WARPS + warp_index();
    struct share share = {number / args->groups, number % args->groups * args->rows, 0};
    if (share.block >= args->count)
        return share;
    const struct cogpu_placed *block = args->blocks + share.block;
    const uint32_t *verdicts = args->pixels.verdicts;
    if (!verdicts || verdicts[block->verdict] == 0)
        share.end = smaller(share.row + args->rows, block->height);
    return share;
}

/* A window that takes little of each row does not want them as a whole. */
DEVICE_FN bool takes_rows(const struct cogpu_gpu_pixels *pixels, const struct cogpu_placed *block) {
    return pixels->rows_held > 0 &&
           (pixels->predictor != 1 || block->width >= pixels->block_width / 2);
}

/* `way` is a constant wherever this is called. */
DEVICE_FN void place_rows(const struct cogpu_place_args *args, struct areas mine,
                          enum cogpu_place_way way) {
    const struct cogpu_gpu_pixels *pixels = &args->pixels;
    struct share share = share_of(args);
    if (share.row >= share.end)
        return;
    const struct cogpu_placed block = args->blocks[share.block];
    if (block.decoded == COGPU_PLACE_FILL) {
        fill_samples(pixels, smaller(pixels->piece_pixels, block.width), mine.samples);
        for (; share.row < share.end; share.row++)
            fill_row(pixels, &block, share.row, mine);
    } else if (takes_rows(pixels, &block)) {
        clear_carry(mine.carry);
        for (; share.row < share.end; share.row += pixels->rows_held)
            place_rows_held(pixels, &block, share.row,
                            smaller(pixels->rows_held, share.end - share.row), mine, way);
    } else {
        for (; share.row < share.end; share.row++)
            place_row(pixels, &block, share.row, mine, way);
    }
}

KERNEL(cogpu_kernel_place_whole, struct cogpu_place_args, struct place_whole_shared, 128, 7) {
    struct place_stage *stage = &shared->stages[warp_index()];
    struct areas mine = {(uint8_t *)stage->stage, (uint8_t *)stage->stage, (uint8_t *)stage->carry};
    place_rows(args, mine, COGPU_PLACE_WHOLE);
}

DEVICE_FN struct areas areas_of(struct place_shared *shared) {
    struct place_stage *stage = &shared->stages[warp_index()];
    struct areas mine = {(uint8_t *)stage->stage, (uint8_t *)shared->samples[warp_index()].samples,
                         (uint8_t *)stage->carry};
    return mine;
}

KERNEL(cogpu_kernel_place_planes, struct cogpu_place_args, struct place_shared, 128, 6) {
    place_rows(args, areas_of(shared), COGPU_PLACE_PLANES);
}

KERNEL(cogpu_kernel_place_bits, struct cogpu_place_args, struct place_shared, 128, 6) {
    place_rows(args, areas_of(shared), COGPU_PLACE_BITS);
}

/* ---- pixels that are too large to be held ---- */

/* Half `half` of a sample (there are two where it has 16 bytes), not restored but in the machine's
 * byte order. */
DEVICE_FN uint64_t walk_load(const struct cogpu_gpu_pixels *pixels, const uint8_t *row,
                             uint64_t index, uint32_t half) {
    uint32_t bytes = pixels->size < 8 ? pixels->size : 8,
             turn = pixels->swap ? pixels->swap - 1 : 0;
    const uint8_t *at = row + index * pixels->size + 8 * half;
    uint64_t value = 0;
    for (uint32_t i = 0; i < bytes; i++)
        value |= (uint64_t)at[i ^ turn] << (8 * i);
    return value;
}

DEVICE_FN uint32_t walk_bits(const struct cogpu_gpu_pixels *pixels, const uint8_t *row,
                             uint64_t index) {
    uint64_t bit = index * pixels->bits, window = 0;
    const uint8_t *at = row + bit / 8;
    uint32_t shift = (uint32_t)(bit % 8), bytes = (shift + pixels->bits + 7) / 8;
    for (uint32_t i = 0; i < bytes; i++)
        window |= (uint64_t)at[i] << (56 - 8 * i);
    return widen(pixels, (uint32_t)(window << shift >> (64 - pixels->bits)));
}

DEVICE_FN void walk_store(const struct cogpu_gpu_pixels *pixels, uint8_t *to, uint64_t sample,
                          uint32_t p) {
    uint32_t size = pixels->target_size < 8 ? pixels->target_size : 8;
    struct conversion conversion = conversion_of(pixels, p);
    store_anywhere(to, pixels->converts ? convert(&conversion, sample) : sample, size);
}

/* Sums of predictor 3 at the start of each plane, for one sample of the pixel. */
DEVICE_FN void walk_planes(const struct cogpu_gpu_pixels *pixels, const uint8_t *row,
                           uint32_t sample, uint32_t *sums) {
    uint32_t sum = 0, planes = pixels->bits / 8, width = pixels->block_width;
    const uint8_t *at = row + sample;
    UNROLL for (uint32_t k = 0; k < 8; k++) {
        sums[k] = sum;
        for (uint32_t x = 0; k < planes && x < width; x++, at += pixels->samples)
            sum += *at;
    }
}

DEVICE_FN uint64_t walk_weave(const struct cogpu_gpu_pixels *pixels, const uint8_t *row,
                              uint64_t index, uint32_t *sums) {
    size_t plane = (size_t)pixels->block_width * pixels->samples;
    uint32_t planes = pixels->bits / 8;
    uint64_t value = 0;
    UNROLL for (uint32_t k = 0; k < 8; k++) {
        if (k >= planes)
            continue;
        sums[k] += row[k * plane + index];
        value = value << 8 | (sums[k] & 255);
    }
    return pixels->is_float24 ? float24_to_32((uint32_t)value) : value;
}

/* One sample of all pixels of a row into band p. */
DEVICE_FN void walk_row(const struct cogpu_gpu_pixels *pixels, const struct cogpu_placed *block,
                        const uint8_t *row, uint32_t sample, uint32_t p, uint8_t *to) {
    bool is_bits = pixels->bits != 8 * pixels->size;
    uint32_t predictor = pixels->predictor, end = block->source_x + block->width;
    uint32_t sums[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    uint64_t sum = 0;
    if (predictor == 3)
        walk_planes(pixels, row, sample, sums);
    for (uint32_t x = predictor == 1 ? block->source_x : 0; x < end; x++) {
        uint64_t index = (uint64_t)x * pixels->samples + sample;
        uint64_t value = predictor == 3 ? walk_weave(pixels, row, index, sums)
                         : is_bits      ? walk_bits(pixels, row, index)
                                        : walk_load(pixels, row, index, 0);
        if (predictor == 2)
            value = sum += value;
        if (predictor == 2 && pixels->size < 8)
            value &= (1ull << 8 * pixels->size) - 1;
        if (x < block->source_x)
            continue;
        walk_store(pixels, to, value, p);
        if (pixels->size == 16)
            walk_store(pixels, to + 8, walk_load(pixels, row, index, 1), p);
        to += pixels->stride_x;
    }
}

DEVICE_FN void walk_fill(const struct cogpu_gpu_pixels *pixels, const struct cogpu_placed *block,
                         uint32_t p, uint8_t *to) {
    uint64_t half[2] = {0, 0};
    UNROLL for (uint32_t i = 0; i < 16; i++) {
        half[i / 8] |= i < pixels->size ? (uint64_t)pixels->fill[i] << (8 * (i % 8)) : 0;
    }
    for (uint32_t x = 0; x < block->width; x++, to += pixels->stride_x) {
        walk_store(pixels, to, half[0], p);
        if (pixels->size == 16)
            walk_store(pixels, to + 8, half[1], p);
    }
}

/* Such pixels have many samples: a lane takes each 32nd band of the raster, and neighbours in the
 * pixel are neighbours in memory. */
KERNEL(cogpu_kernel_place_walk, struct cogpu_place_args, struct nothing_shared, 128, 8) {
    const struct cogpu_gpu_pixels *pixels = &args->pixels;
    struct share share = share_of(args);
    if (share.row >= share.end)
        return;
    const struct cogpu_placed block = args->blocks[share.block];
    for (; share.row < share.end; share.row++)
        for (uint32_t p = lane_index(); p < pixels->band_count; p += WARP) {
            uint32_t sample = pixels->in_order ? p : band_of(pixels, p)->sample;
            uint8_t *to = pixels->data + (int64_t)p * pixels->stride_band +
                          (int64_t)(block.target_y + share.row) * pixels->stride_y +
                          (int64_t)block.target_x * pixels->stride_x;
            if (block.decoded == COGPU_PLACE_FILL)
                walk_fill(pixels, &block, p, to);
            else
                walk_row(pixels, &block,
                         pixels->decoded + block.decoded +
                             (size_t)(block.source_y + share.row) * pixels->row_bytes,
                         sample, p, to);
        }
}
