/*
 * Undoes what the file did to samples before compression: byte order, then the predictor, then CMYK
 * becomes RGBA. Bytes are swapped before the sums of predictor 2; predictor 3 stores planes of
 * bytes, always the most significant first, and needs no swap. pixel/predictor.h shows the layouts.
 * Planes are in planes.c, which also sums those of pixels with one sample.
 *
 * Both predictors are undone by prefix sums at the distance of a pixel. A vector holds several
 * pixels: they are summed by shifting it by 1, 2, 4 ... pixels, and the total of all vectors before
 * is added. Only that total passes from vector to vector, so the sums run at memory speed.
 *
 *   x            a     b     c     d           four pixels of a vector
 *   + x >> 1     a    a+b   b+c   c+d
 *   + x >> 2     a    a+b  a+b+c a+b+c+d       plus the last pixel of the vector before, in each
 */
#include "cpu/cpu.h"
#include "cpu/planes.h"
#include "cpu/samples.h"
#include "cpu/vector.h"

#include "base/bytes.h"
#include "codec/cmyk.h"
#include "pixel/predictor.h"

#include <string.h>

/* ---- byte order ---- */

#define SWAP_EACH(type, swap)                                                                      \
    for (size_t i = 0; i + sizeof(type) <= bytes; i += sizeof(type)) {                             \
        type value;                                                                                \
        memcpy(&value, row + i, sizeof value);                                                     \
        value = swap(value);                                                                       \
        memcpy(row + i, &value, sizeof value);                                                     \
    }

static void swap_3_bytes(uint8_t *row, size_t bytes) {
    for (size_t i = 0; i + 3 <= bytes; i += 3) {
        uint8_t first = row[i];
        row[i] = row[i + 2];
        row[i + 2] = first;
    }
}

#if HAVE_VECTORS
/* Units of 2, 4 or 8 bytes. Returns the bytes done; the rest does not fill a vector. */
WITH_SHUFFLE static size_t swap_vectors(uint8_t *row, size_t bytes, size_t unit) {
    uint8_t control[VECTOR];
    size_t at = 0;
    for (size_t i = 0; i < VECTOR; i++)
        control[i] = (uint8_t)(i ^ (unit - 1)); /* reverses bytes within a unit */
    const vector shuffle = load_vector(control);
    for (; at + VECTOR <= bytes; at += VECTOR)
        store_vector(row + at, shuffle_vector(load_vector(row + at), shuffle));
    return at;
}
#endif

static void swap_row(uint8_t *row, size_t bytes, size_t unit) {
    size_t done = 0;
#if HAVE_VECTORS
    if (unit != 3 && can_shuffle_vectors())
        done = swap_vectors(row, bytes, unit);
#endif
    row += done;
    bytes -= done;
    if (unit == 2) {
        SWAP_EACH(uint16_t, __builtin_bswap16)
    } else if (unit == 3) {
        swap_3_bytes(row, bytes);
    } else if (unit == 4) {
        SWAP_EACH(uint32_t, __builtin_bswap32)
    } else if (unit == 8) {
        SWAP_EACH(uint64_t, __builtin_bswap64)
    }
}

/* ---- prefix sums ---- */

#define SUM_FROM(type)                                                                             \
    for (; at + sizeof(type) <= bytes; at += sizeof(type)) {                                       \
        type before, value;                                                                        \
        memcpy(&before, to + at - pixel, sizeof before);                                           \
        memcpy(&value, from + at, sizeof value);                                                   \
        value = (type)(value + before);                                                            \
        memcpy(to + at, &value, sizeof value);                                                     \
    }

/* Elements of `unit` bytes from byte `at` on; each becomes the sum with the one a pixel before. */
static void sum_scalar(const uint8_t *from, uint8_t *to, size_t at, size_t bytes, size_t pixel,
                       size_t unit) {
    if (at == 0) {
        at = pixel < bytes ? pixel : bytes;
        memmove(to, from, at);
    }
    if (unit == 1) {
        SUM_FROM(uint8_t)
    } else if (unit == 2) {
        SUM_FROM(uint16_t)
    } else if (unit == 4) {
        SUM_FROM(uint32_t)
    } else {
        SUM_FROM(uint64_t)
    }
}

#if HAVE_VECTORS
/* Shuffles for a pixel of a certain size: by one pixel, two, four, eight; the last one to all. */
struct shuffles {
    vector shift[4], carry;
    size_t step; /* bytes of the whole pixels in a vector */
    int shifts;
};

#endif

/* The loop for pixels of this size, selected once for many rows. */
struct summer {
    size_t pixel, unit;
    enum { SCALAR, VECTORS_OF_16, VECTORS_OF_32 } loop;
#if HAVE_VECTORS
    struct shuffles shuffles;
#endif
};

#if HAVE_VECTORS
static struct shuffles shuffles_for(size_t pixel) {
    /* Sixteen bytes of `ramp`, begun n before its 0, shift a vector by n bytes. */
    static const uint8_t ramp[2 * VECTOR] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                                             0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                                             0,    1,    2,    3,    4,    5,    6,    7,
                                             8,    9,    10,   11,   12,   13,   14,   15};
#define MODULO(n)                                                                                  \
    {                                                                                              \
        0 % n, 1 % n, 2 % n, 3 % n, 4 % n, 5 % n, 6 % n, 7 % n, 8 % n, 9 % n, 10 % n, 11 % n,      \
            12 % n, 13 % n, 14 % n, 15 % n                                                         \
    }
    static const uint8_t modulo[VECTOR][VECTOR] = {MODULO(1),  MODULO(2),  MODULO(3),  MODULO(4),
                                                   MODULO(5),  MODULO(6),  MODULO(7),  MODULO(8),
                                                   MODULO(9),  MODULO(10), MODULO(11), MODULO(12),
                                                   MODULO(13), MODULO(14), MODULO(15), MODULO(16)};
    struct shuffles s = {.step = VECTOR / pixel * pixel};
    for (size_t by = pixel; by < s.step; by *= 2)
        s.shift[s.shifts++] = load_vector(ramp + VECTOR - by);
    s.carry = add_vectors_1(load_vector(modulo[pixel - 1]), fill_vector(s.step - pixel));
    return s;
}

/* One loop for each width of element and number of shifts, so that both are constants inside. */
#define FOR_EACH_SHIFTS(loop, add)                                                                 \
    switch (s->shifts) {                                                                           \
    case 0:                                                                                        \
        loop(add, 0) break;                                                                        \
    case 1:                                                                                        \
        loop(add, 1) break;                                                                        \
    case 2:                                                                                        \
        loop(add, 2) break;                                                                        \
    case 3:                                                                                        \
        loop(add, 3) break;                                                                        \
    default:                                                                                       \
        loop(add, 4) break;                                                                        \
    }

/* A vector may hold more than whole pixels. Its store then overwrites bytes that are not summed yet
 * if `from` and `to` are the same. So the next vector is loaded before the store, and the last
 * store has no more bytes than its pixels. */
#define SUM_16(add, shifts)                                                                        \
    while (at + VECTOR <= bytes) {                                                                 \
        vector sum = next;                                                                         \
        uint8_t *target = to + at;                                                                 \
        at += s->step;                                                                             \
        bool is_last = at + VECTOR > bytes;                                                        \
        if (!is_last)                                                                              \
            next = load_vector(from + at);                                                         \
        for (int k = 0; k < (shifts); k++)                                                         \
            sum = add(sum, shuffle_vector(sum, s->shift[k]));                                      \
        vector whole = add(sum, total);                                                            \
        total = add(total, shuffle_vector(sum, s->carry));                                         \
        if (is_last)                                                                               \
            memcpy(target, &whole, s->step);                                                       \
        else                                                                                       \
            store_vector(target, whole);                                                           \
    }

/* Returns the bytes that were summed: whole pixels. */
WITH_SHUFFLE static size_t sum_16(const uint8_t *from, uint8_t *to, size_t bytes, size_t unit,
                                  const struct shuffles *s) {
    vector total = zero_vector(), next = load_vector(from);
    size_t at = 0;
    if (unit == 1) {
        FOR_EACH_SHIFTS(SUM_16, add_vectors_1)
    } else if (unit == 2) {
        FOR_EACH_SHIFTS(SUM_16, add_vectors_2)
    } else if (unit == 4) {
        FOR_EACH_SHIFTS(SUM_16, add_vectors_4)
    } else {
        FOR_EACH_SHIFTS(SUM_16, add_vectors_8)
    }
    return at;
}

#if HAVE_AVX2
/* The same with two vectors side by side, for pixels that fill a vector: the last pixel of the
 * lower one is added to the higher one. */
#define SUM_32(add, shifts)                                                                        \
    for (; at + 2 * VECTOR <= bytes; at += 2 * VECTOR) {                                           \
        __m256i sum = _mm256_loadu_si256((const __m256i *)(const void *)(from + at));              \
        for (int k = 0; k < (shifts); k++)                                                         \
            sum = add(sum, _mm256_shuffle_epi8(sum, shift[k]));                                    \
        __m256i lower = _mm256_permute2x128_si256(sum, sum, 0x08);                                 \
        sum = add(sum, _mm256_shuffle_epi8(lower, carry));                                         \
        __m256i whole = add(sum, total);                                                           \
        __m256i higher = _mm256_permute4x64_epi64(sum, 0xEE);                                      \
        total = add(total, _mm256_shuffle_epi8(higher, carry));                                    \
        store_or_stream(to + at, _mm256_castsi256_si128(whole), streams);                          \
        store_or_stream(to + at + VECTOR, _mm256_extracti128_si256(whole, 1), streams);            \
    }

__attribute__((target("avx2"))) static size_t sum_32(const uint8_t *from, uint8_t *to, size_t bytes,
                                                     size_t unit, const struct shuffles *s,
                                                     bool streams) {
    __m256i total = _mm256_setzero_si256(), carry = _mm256_broadcastsi128_si256(s->carry);
    __m256i shift[4];
    for (int k = 0; k < s->shifts; k++)
        shift[k] = _mm256_broadcastsi128_si256(s->shift[k]);
    size_t at = 0;
    if (unit == 1) {
        FOR_EACH_SHIFTS(SUM_32, _mm256_add_epi8)
    } else if (unit == 2) {
        FOR_EACH_SHIFTS(SUM_32, _mm256_add_epi16)
    } else if (unit == 4) {
        FOR_EACH_SHIFTS(SUM_32, _mm256_add_epi32)
    } else {
        FOR_EACH_SHIFTS(SUM_32, _mm256_add_epi64)
    }
    return at;
}
#endif

static struct summer summer_for(size_t pixel, size_t unit, size_t bytes) {
    struct summer summer = {.pixel = pixel, .unit = unit};
    if (pixel > VECTOR || bytes < 2 * VECTOR || !can_shuffle_vectors())
        return summer;
    summer.shuffles = shuffles_for(pixel);
    summer.loop = VECTORS_OF_16;
#if HAVE_AVX2
    if (summer.shuffles.step == VECTOR && __builtin_cpu_supports("avx2"))
        summer.loop = VECTORS_OF_32;
#endif
    return summer;
}

static size_t sum_vectors(const struct summer *summer, const uint8_t *from, uint8_t *to,
                          size_t bytes, bool streams) {
#if HAVE_AVX2
    if (summer->loop == VECTORS_OF_32)
        return sum_32(from, to, bytes, summer->unit, &summer->shuffles, streams);
#else
    (void)streams;
#endif
    if (summer->loop == VECTORS_OF_16)
        return sum_16(from, to, bytes, summer->unit, &summer->shuffles);
    return 0;
}
#else
static struct summer summer_for(size_t pixel, size_t unit, size_t bytes) {
    (void)bytes;
    return (struct summer){.pixel = pixel, .unit = unit};
}

static size_t sum_vectors(const struct summer *summer, const uint8_t *from, uint8_t *to,
                          size_t bytes, bool streams) {
    (void)summer, (void)from, (void)to, (void)bytes, (void)streams;
    return 0;
}
#endif

static void sum_row(const struct summer *summer, const uint8_t *from, uint8_t *to, size_t bytes,
                    bool streams) {
    size_t done = sum_vectors(summer, from, to, bytes, streams);
    sum_scalar(from, to, done, bytes, summer->pixel, summer->unit);
}

/* ---- rows ---- */

/* A block of a planar file holds one of the four bands, which alone is no colour. */
static bool is_cmyk(const cogpu_storage *storage) {
    return storage->colour == COGPU_FROM_CMYK && storage->planes == 1;
}

/* The predictor of YCbCr data units is undone by decode. */
static uint32_t remaining_predictor(const cogpu_storage *storage) {
    return cogpu_storage_has_units(storage) ? 1 : storage->predictor;
}

static bool needs_swap(const cogpu_storage *storage) {
    return storage->big_endian != COGPU_HOST_BIG_ENDIAN && storage->predictor != 3 &&
           cogpu_storage_order_unit(storage) > 1;
}

bool cogpu_cpu_has_filters(const cogpu_storage *storage) {
    return remaining_predictor(storage) != 1 || needs_swap(storage) || is_cmyk(storage);
}

void cogpu_cpu_undo_filters(const cogpu_storage *storage, uint8_t *from, uint32_t rows,
                            uint32_t pixels, uint8_t *to, int64_t to_stride, bool streams) {
    const cogpu_block_format *format = &storage->format;
    size_t size = format->bits / 8, row_bytes = format->row_bytes;
    size_t samples = (size_t)pixels * format->samples, bytes = samples * size;
    bool swap = needs_swap(storage), planes = storage->predictor == 3;
    bool one_pass = planes && format->samples == 1;
    /* The sum of predictor 3 runs over all planes, so it cannot stop at the last pixel wanted. */
    size_t unit = planes ? 1 : size, sum_bytes = planes ? row_bytes : bytes;
    struct summer summer = summer_for(format->samples * unit, unit, sum_bytes);
    size_t vector_bytes = cogpu_cpu_vector_bytes();
    for (uint32_t i = 0; i < rows; i++, from += row_bytes, to += to_stride) {
        bool stream_row = streams && (uintptr_t)to % VECTOR == 0;
        if (swap)
            swap_row(from, bytes, cogpu_storage_order_unit(storage));
        if (one_pass) {
            cogpu_cpu_undo_planes(from, row_bytes / size, samples, size, to, vector_bytes,
                                  stream_row);
        } else if (planes) {
            sum_row(&summer, from, from, sum_bytes, false);
            cogpu_cpu_interleave_planes(from, row_bytes / size, samples, size, to, vector_bytes,
                                        stream_row);
        } else if (remaining_predictor(storage) == 2) {
            sum_row(&summer, from, to, sum_bytes, stream_row);
        } else {
            memcpy(to, from, bytes);
        }
        if (is_cmyk(storage))
            cogpu_cmyk_to_rgba(to, pixels, format->samples);
    }
    if (streams)
        fence_streamed_stores();
}

/* AVX-512 from Ice Lake and Zen 4 on, which VBMI came with: CPUs before lower their clock for it.
 */
size_t cogpu_cpu_vector_bytes(void) {
#if HAVE_AVX2
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi"))
        return 4 * VECTOR;
    if (__builtin_cpu_supports("avx2"))
        return 2 * VECTOR;
#endif
#if HAVE_VECTORS
    return can_shuffle_vectors() ? VECTOR : 0;
#else
    return 0;
#endif
}

const char *cogpu_cpu_vectors(void) {
#if HAVE_AVX2
    size_t bytes = cogpu_cpu_vector_bytes();
    return bytes == 4 * VECTOR   ? "AVX-512"
           : bytes == 2 * VECTOR ? "AVX2"
           : bytes == VECTOR     ? "SSSE3"
                                 : "SSE2";
#elif HAVE_VECTORS
    return "NEON";
#else
    return "no vector code";
#endif
}
