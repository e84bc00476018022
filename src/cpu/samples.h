/*
 * Loops over samples. In loops by type the body sees the type as a constant, so the functions of
 * pixel/ fold to what the type needs, and compilers make vector code of the loop.
 */
#ifndef COGPU_CPU_SAMPLES_H
#define COGPU_CPU_SAMPLES_H

#include "pixel/sample.h"

/* X(type, unsigned integer that holds its bits), for all types but complex ones. SSE2 cannot
 * convert 64-bit integers, so their loops stay scalar. */
#define EACH_SAMPLE_TYPE(X) EACH_VECTOR_TYPE(X) EACH_SCALAR_TYPE(X)
#define EACH_VECTOR_TYPE(X)                                                                        \
    X(COGPU_TYPE_U8, uint8_t)                                                                      \
    X(COGPU_TYPE_I8, uint8_t)                                                                      \
    X(COGPU_TYPE_U16, uint16_t)                                                                    \
    X(COGPU_TYPE_I16, uint16_t)                                                                    \
    X(COGPU_TYPE_U32, uint32_t)                                                                    \
    X(COGPU_TYPE_I32, uint32_t)                                                                    \
    X(COGPU_TYPE_F16, uint16_t)                                                                    \
    X(COGPU_TYPE_F32, uint32_t)                                                                    \
    X(COGPU_TYPE_F64, uint64_t)
#define EACH_SCALAR_TYPE(X)                                                                        \
    X(COGPU_TYPE_U64, uint64_t)                                                                    \
    X(COGPU_TYPE_I64, uint64_t)

/* Before short loops: without it their speed depends on where the linker puts them, by up to a
 * factor of two. clang unrolls on its own. */
#if defined(__GNUC__) && !defined(__clang__)
#define UNROLL_4 _Pragma("GCC unroll 4")
#else
#define UNROLL_4
#endif

/* Declares `name`: the bits of the i-th sample at `from`. */
#define LOAD_SAMPLE(bits, name, from, i)                                                           \
    bits name;                                                                                     \
    memcpy(&name, (from) + (i) * sizeof name, sizeof name)

/* Copies the first `unit` bytes to all bytes after them. */
void cogpu_cpu_repeat(uint8_t *memory, size_t unit, size_t bytes);

/* Whether the first rows of such a raster leave the caches before they are read. Stores that bypass
 * the caches then save reading its memory into them. */
bool cogpu_cpu_is_beyond_caches(const cogpu_raster *raster, size_t size);
/* memcpy; with `streams` whole cache lines bypass the caches. Other threads see them after
 * cogpu_cpu_finish_copies, by the thread that copied. */
void cogpu_cpu_copy_bytes(uint8_t *to, const uint8_t *from, size_t bytes, bool streams);
void cogpu_cpu_finish_copies(bool streams);

/* Copies samples of 1, 2, 4, 8 or 16 bytes between any strides. from_stride 0 repeats one sample.
 */
void cogpu_cpu_copy_samples(uint8_t *to, int64_t to_stride, const uint8_t *from,
                            int64_t from_stride, uint32_t count, size_t size);

/* Loads samples as doubles. Complex types are not loaded. */
void cogpu_cpu_load_doubles(cogpu_type type, const uint8_t *from, uint32_t count, double *to);

#endif
