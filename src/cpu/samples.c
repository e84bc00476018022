/* Loops over samples that several stages share. */
#include "cpu/samples.h"

void cogpu_cpu_repeat(uint8_t *memory, size_t unit, size_t bytes) {
    if (unit == 1) {
        memset(memory, *memory, bytes);
        return;
    }
    for (size_t done = unit, count; done < bytes; done += count) {
        count = done < bytes - done ? done : bytes - done;
        memcpy(memory + done, memory, count);
    }
}

#define COPY_SAMPLES_CASE(bytes)                                                                   \
    case bytes:                                                                                    \
        UNROLL_4 for (int64_t i = 0; i < count; i++)                                               \
            memcpy(to + i * to_stride, from + i * from_stride, bytes);                             \
        break;

static void copy_at_strides(uint8_t *to, int64_t to_stride, const uint8_t *from,
                            int64_t from_stride, uint32_t count, size_t size) {
    switch (size) {
        COPY_SAMPLES_CASE(1)
        COPY_SAMPLES_CASE(2)
        COPY_SAMPLES_CASE(4)
        COPY_SAMPLES_CASE(8)
        COPY_SAMPLES_CASE(16)
    default:
        break;
    }
}

void cogpu_cpu_copy_samples(uint8_t *to, int64_t to_stride, const uint8_t *from,
                            int64_t from_stride, uint32_t count, size_t size) {
    bool is_packed = to_stride == (int64_t)size;
    if (is_packed && from_stride == to_stride) {
        memcpy(to, from, count * size);
    } else if (is_packed && from_stride == 0 && count > 0) {
        memcpy(to, from, size);
        cogpu_cpu_repeat(to, size, count * size);
    } else {
        copy_at_strides(to, to_stride, from, from_stride, count, size);
    }
}

#define LOAD_DOUBLES(kind, bits)                                                                   \
    for (uint32_t i = 0; i < count; i++) {                                                         \
        LOAD_SAMPLE(bits, sample, from, i);                                                        \
        to[i] = sample_to_double(kind, sample);                                                    \
    }                                                                                              \
    break;
#define LOAD_DOUBLES_CASE(kind, bits)                                                              \
    case kind:                                                                                     \
        LOAD_DOUBLES(kind, bits)
#define LOAD_SCALAR_DOUBLES_CASE(kind, bits)                                                       \
    case kind:                                                                                     \
        UNROLL_4 LOAD_DOUBLES(kind, bits)

void cogpu_cpu_load_doubles(cogpu_type type, const uint8_t *restrict from, uint32_t count,
                            double *restrict to) {
    switch (type) {
        EACH_VECTOR_TYPE(LOAD_DOUBLES_CASE)
        EACH_SCALAR_TYPE(LOAD_SCALAR_DOUBLES_CASE)
    default:
        break;
    }
}
