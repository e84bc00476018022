/* See planes.h. The loops over vectors are in planes_loop.h. */
#include "cpu/planes.h"
#include "cpu/lanes.h"
#include "cpu/samples.h"

#include "base/bytes.h"
#include "pixel/predictor.h"

#include <string.h>

enum { SAMPLE_BYTES_MAX = 8 };

static inline uint8_t sum_scalar(const uint8_t *plane, size_t samples) {
    uint8_t sum = 0;
    for (size_t i = 0; i < samples; i++)
        sum = (uint8_t)(sum + plane[i]);
    return sum;
}

#if HAVE_VECTORS
/* Modulo 256. */
static inline uint8_t sum_bytes(vector v) {
    const uint64_t even = 0x00FF00FF00FF00FF, each = 0x0001000100010001;
    uint64_t halves[2];
    memcpy(halves, &v, sizeof halves);
    uint64_t sums =
        (halves[0] & even) + (halves[0] >> 8 & even) + (halves[1] & even) + (halves[1] >> 8 & even);
    return (uint8_t)(sums * each >> 48);
}

/* Shuffles the last sample of a lane to all. */
static inline vector last_sample_control(size_t size) {
    uint8_t control[VECTOR];
    for (size_t i = 0; i < VECTOR; i++)
        control[i] = (uint8_t)(VECTOR - size + i % size);
    return load_vector(control);
}

#define LANES 1
#include "cpu/planes_loop.h"
#if HAVE_AVX2
#define LANES 2
#include "cpu/planes_loop.h"
#define LANES 4
#include "cpu/planes_loop.h"
#endif

static uint64_t find_starts(const uint8_t *planes, size_t samples, size_t size,
                            size_t vector_bytes) {
#if HAVE_AVX2
    if (vector_bytes == 4 * VECTOR)
        return find_starts_x4(planes, samples, size);
    if (vector_bytes == 2 * VECTOR)
        return find_starts_x2(planes, samples, size);
#else
    (void)vector_bytes;
#endif
    return find_starts_x1(planes, samples, size);
}

/* What does not fill a long vector may fill a short one. `before`: as in the loops. */
static size_t undo_vectors(const uint8_t *planes, size_t samples, size_t count, size_t size,
                           vector *before, uint8_t *to, size_t vector_bytes, bool streams) {
    size_t done = 0;
#if HAVE_AVX2
    if (vector_bytes >= 4 * VECTOR)
        done = undo_planes_x4(planes, samples, done, count, size, before, to, streams);
    if (vector_bytes >= 2 * VECTOR)
        done = undo_planes_x2(planes, samples, done, count, size, before, to, streams);
#else
    (void)vector_bytes;
#endif
    return undo_planes_x1(planes, samples, done, count, size, before, to, streams);
}
#endif

static void interleave_scalar(const uint8_t *planes, size_t samples, size_t first, size_t count,
                              size_t size, uint8_t *to) {
    for (size_t k = 0; k < size; k++) {
        const uint8_t *plane = planes + k * samples;
        uint8_t *byte = to + plane_byte((uint32_t)k, (uint32_t)size, COGPU_HOST_BIG_ENDIAN);
        UNROLL_4 for (size_t i = first; i < count; i++) byte[i * size] = plane[i];
    }
}

static void sum_planes_scalar(const uint8_t *planes, size_t samples, size_t count, size_t size,
                              uint8_t *to) {
    uint8_t sum = 0;
    for (size_t k = 0; k < size; k++, planes += samples) {
        uint8_t *byte = to + plane_byte((uint32_t)k, (uint32_t)size, COGPU_HOST_BIG_ENDIAN);
        for (size_t i = 0; i < count; i++) {
            sum = (uint8_t)(sum + planes[i]);
            byte[i * size] = sum;
        }
        sum = (uint8_t)(sum + sum_scalar(planes + count, samples - count));
    }
}

#if HAVE_VECTORS
/* The last samples: byte k of `before` is that of the sample before them. */
static void sum_tail(const uint8_t *planes, size_t samples, size_t first, size_t count, size_t size,
                     uint64_t before, uint8_t *to) {
    for (size_t k = 0; k < size; k++) {
        const uint8_t *plane = planes + (size - 1 - k) * samples;
        uint8_t sum = (uint8_t)(before >> 8 * k);
        for (size_t i = first; i < count; i++) {
            sum = (uint8_t)(sum + plane[i]);
            to[i * size + k] = sum;
        }
    }
}

void cogpu_cpu_undo_planes(const uint8_t *planes, size_t samples, size_t count, size_t size,
                           uint8_t *to, size_t vector_bytes, bool streams) {
    if (vector_bytes == 0 || (size != 2 && size != 4 && size != 8)) {
        sum_planes_scalar(planes, samples, count, size, to);
        return;
    }
    uint64_t before = find_starts(planes, samples, size, vector_bytes);
    vector last = repeat_8_bytes(size == 2   ? before * 0x0001000100010001
                                 : size == 4 ? before * 0x0000000100000001
                                             : before);
    size_t done = undo_vectors(planes, samples, count, size, &last, to, vector_bytes, streams);
    memcpy(&before, &last, sizeof before);
    sum_tail(planes, samples, done, count, size, before, to);
}

void cogpu_cpu_interleave_planes(const uint8_t *planes, size_t samples, size_t count, size_t size,
                                 uint8_t *to, size_t vector_bytes, bool streams) {
    size_t done = vector_bytes
                      ? undo_vectors(planes, samples, count, size, NULL, to, vector_bytes, streams)
                      : 0;
    interleave_scalar(planes, samples, done, count, size, to);
}
#else
void cogpu_cpu_undo_planes(const uint8_t *planes, size_t samples, size_t count, size_t size,
                           uint8_t *to, size_t vector_bytes, bool streams) {
    (void)vector_bytes, (void)streams;
    sum_planes_scalar(planes, samples, count, size, to);
}

void cogpu_cpu_interleave_planes(const uint8_t *planes, size_t samples, size_t count, size_t size,
                                 uint8_t *to, size_t vector_bytes, bool streams) {
    (void)vector_bytes, (void)streams;
    interleave_scalar(planes, samples, 0, count, size, to);
}
#endif
