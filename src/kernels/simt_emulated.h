/* simt.h on the CPU: the same functions, by the emulator (gpu/driver/emulator.h). Included by
 * simt.h only. */
#ifndef COGPU_KERNELS_SIMT_EMULATED_H
#define COGPU_KERNELS_SIMT_EMULATED_H

#include "gpu/driver/emulator.h"
#include "pixel/predictor.h"

#include <math.h>
#include <string.h>

#define EMU_TEXT_OF(token) #token
#define EMU_TEXT(token)    EMU_TEXT_OF(token)
#define EMU_AT             __FILE__ ":" EMU_TEXT(__LINE__)

#define DEVICE_FN     static inline __attribute__((unused))
#define DEVICE_FN_BIG static __attribute__((unused))
#define DEVICE_TABLE  static const
#define UNROLL

#define KERNEL(kernel, args_type, shared_type, threads_of_block, per_sm)                           \
    static void kernel##_body(const args_type *args, shared_type *shared);                         \
    static void kernel##_entry(const void *args, void *shared) {                                   \
        kernel##_body((const args_type *)args, (shared_type *)shared);                             \
    }                                                                                              \
    extern const cogpu_kernel kernel;                                                              \
    const cogpu_kernel kernel = {.name = #kernel,                                                  \
                                 .file = __FILE__,                                                 \
                                 .body = kernel##_entry,                                           \
                                 .args_bytes = sizeof(args_type),                                  \
                                 .shared_bytes = sizeof(shared_type),                              \
                                 .threads = threads_of_block,                                      \
                                 .per_multiprocessor = per_sm};                                    \
    static void kernel##_body(const args_type *args __attribute__((unused)),                       \
                              shared_type *shared __attribute__((unused)))

DEVICE_FN uint32_t thread_index(void) {
    return cogpu_emu_here.thread;
}
DEVICE_FN uint32_t thread_count(void) {
    return cogpu_emu_here.threads;
}
DEVICE_FN uint32_t block_index(void) {
    return cogpu_emu_here.block;
}
DEVICE_FN uint32_t block_count(void) {
    return cogpu_emu_here.blocks;
}

/* A collective: the fiber waits until all fibers that take part have called it. */
#define EMU_COLLECTIVE(collective, value, other)                                                   \
    cogpu_emu_join(collective, EMU_AT, (uint64_t)(value), (uint64_t)(other))

#define sync_block()              ((void)EMU_COLLECTIVE(EMU_SYNC_BLOCK, 0, 0))
#define sync_block_or(value)      (EMU_COLLECTIVE(EMU_BLOCK_OR, (value) ? 1 : 0, 0) != 0)
#define sync_block_count(value)   ((uint32_t)EMU_COLLECTIVE(EMU_BLOCK_COUNT, (value) ? 1 : 0, 0))
#define sync_group(id, count)     ((void)EMU_COLLECTIVE(EMU_SYNC_GROUP, id, count))
#define arrive_group(id, count)   ((void)EMU_COLLECTIVE(EMU_ARRIVE_GROUP, id, count))
#define relax()                   ((void)EMU_COLLECTIVE(EMU_RELAX, 0, 0))
#define sync_warp()               ((void)EMU_COLLECTIVE(EMU_SYNC_WARP, 0, 0))
#define warp_ballot(value)        ((uint32_t)EMU_COLLECTIVE(EMU_BALLOT, (value) ? 1 : 0, 0))
#define warp_any(value)           (EMU_COLLECTIVE(EMU_BALLOT, (value) ? 1 : 0, 0) != 0)
#define warp_all(value)           (EMU_COLLECTIVE(EMU_BALLOT, (value) ? 0 : 1, 0) == 0)
#define warp_match(value)         ((uint32_t)EMU_COLLECTIVE(EMU_MATCH, value, 0))
#define warp_read(value, lane)    ((uint32_t)EMU_COLLECTIVE(EMU_READ, (uint32_t)(value), lane))
#define warp_read64(value, lane)  (EMU_COLLECTIVE(EMU_READ, value, lane))
#define warp_read_up(value, by)   ((uint32_t)EMU_COLLECTIVE(EMU_READ_UP, (uint32_t)(value), by))
#define warp_read_down(value, by) ((uint32_t)EMU_COLLECTIVE(EMU_READ_DOWN, (uint32_t)(value), by))
#define warp_read_xor(value, by)  ((uint32_t)EMU_COLLECTIVE(EMU_READ_XOR, (uint32_t)(value), by))
#define warp_sum(value)           ((uint32_t)EMU_COLLECTIVE(EMU_SUM, (uint32_t)(value), 0))
#define warp_max(value)           ((uint32_t)EMU_COLLECTIVE(EMU_MAX, (uint32_t)(value), 0))
#define warp_min(value)           ((uint32_t)EMU_COLLECTIVE(EMU_MIN, (uint32_t)(value), 0))

DEVICE_FN uint32_t atomic_add(uint32_t *at, uint32_t value) {
    return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}
DEVICE_FN uint32_t atomic_or(uint32_t *at, uint32_t value) {
    return __atomic_fetch_or(at, value, __ATOMIC_RELAXED);
}
DEVICE_FN uint32_t atomic_exchange(uint32_t *at, uint32_t value) {
    return __atomic_exchange_n(at, value, __ATOMIC_RELAXED);
}
DEVICE_FN uint32_t atomic_compare_exchange(uint32_t *at, uint32_t expected, uint32_t value) {
    __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}
/* Fibers of one launch run one at a time, so nothing interrupts load and store. */
DEVICE_FN uint32_t atomic_max(uint32_t *at, uint32_t value) {
    uint32_t old = __atomic_load_n(at, __ATOMIC_RELAXED);
    __atomic_store_n(at, old > value ? old : value, __ATOMIC_RELAXED);
    return old;
}
DEVICE_FN uint32_t atomic_min(uint32_t *at, uint32_t value) {
    uint32_t old = __atomic_load_n(at, __ATOMIC_RELAXED);
    __atomic_store_n(at, old < value ? old : value, __ATOMIC_RELAXED);
    return old;
}

DEVICE_FN uint32_t load_acquire(const uint32_t *at) {
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}
DEVICE_FN void store_release(uint32_t *at, uint32_t value) {
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
}
DEVICE_FN void fence_block(void) {
}
DEVICE_FN void fence_device(void) {
}

DEVICE_FN void emu_check_aligned(const void *at, size_t bytes, const char *where) {
    if ((uintptr_t)at % bytes != 0)
        cogpu_emu_fail(where, "a wide load or store is not aligned");
}
DEVICE_FN words4 emu_load_words4(const void *at, const char *where) {
    words4 value;
    emu_check_aligned(at, sizeof value, where);
    memcpy(&value, at, sizeof value);
    return value;
}
DEVICE_FN void emu_store_words4(void *at, words4 value, const char *where) {
    emu_check_aligned(at, sizeof value, where);
    memcpy(at, &value, sizeof value);
}
DEVICE_FN uint64_t emu_load_u64(const void *at, const char *where) {
    uint64_t value;
    emu_check_aligned(at, sizeof value, where);
    memcpy(&value, at, sizeof value);
    return value;
}
DEVICE_FN uint32_t emu_load_u32(const void *at, const char *where) {
    uint32_t value;
    emu_check_aligned(at, sizeof value, where);
    memcpy(&value, at, sizeof value);
    return value;
}
DEVICE_FN void emu_copy_to_shared(void *to, const void *from, const char *where) {
    emu_check_aligned(to, 16, where);
    emu_check_aligned(from, 16, where);
    cogpu_emu_copy_later(to, from, 16, where);
}
DEVICE_FN uint32_t emu_load_read_only(const void *at, uint32_t size, const char *where) {
    emu_check_aligned(at, size, where);
    return size == 1   ? *(const uint8_t *)at
           : size == 2 ? *(const number16 *)at
                       : *(const number32 *)at;
}
DEVICE_FN double u32_to_double(uint32_t value) {
    return value;
}
DEVICE_FN double split_floor(double x, int32_t *whole) {
    double result = floor(x);
    *whole = fabs(result) < 0x1p31 ? (int32_t)result : 0;
    return result;
}
#define load_read_only(at, size)    emu_load_read_only(at, size, EMU_AT)
#define load_words4(at)             emu_load_words4(at, EMU_AT)
#define store_words4(at, value)     emu_store_words4(at, value, EMU_AT)
#define load_u64_aligned(at)        emu_load_u64(at, EMU_AT)
#define load_u32_aligned(at)        emu_load_u32(at, EMU_AT)
#define copy_to_shared_16(to, from) emu_copy_to_shared(to, from, EMU_AT)
#define copies_commit()             ((void)0)
#define fetch_ahead(at)             ((void)(at))
#define copies_wait()               cogpu_emu_copies_wait()

DEVICE_FN uint32_t count_ones(uint32_t value) {
    return (uint32_t)__builtin_popcount(value);
}
DEVICE_FN uint32_t leading_zeros(uint32_t value) {
    return value ? (uint32_t)__builtin_clz(value) : 32;
}
DEVICE_FN uint32_t trailing_zeros(uint32_t value) {
    return value ? (uint32_t)__builtin_ctz(value) : 32;
}
DEVICE_FN uint32_t reverse_bits32(uint32_t value) {
    uint32_t reversed = 0;
    for (int i = 0; i < 32; i++)
        reversed |= (value >> i & 1) << (31 - i);
    return reversed;
}
DEVICE_FN uint32_t funnel_right(uint32_t low, uint32_t high, uint32_t shift) {
    return (uint32_t)(((uint64_t)high << 32 | low) >> (shift & 31));
}
DEVICE_FN uint32_t funnel_left(uint32_t low, uint32_t high, uint32_t shift) {
    return (uint32_t)(((uint64_t)high << 32 | low) << (shift & 31) >> 32);
}
DEVICE_FN uint32_t pick_bytes(uint32_t low, uint32_t high, uint32_t select) {
    uint64_t bytes = (uint64_t)high << 32 | low;
    uint32_t picked = 0;
    for (int i = 0; i < 4; i++)
        picked |= (uint32_t)(bytes >> 8 * (select >> 4 * i & 7) & 0xFF) << 8 * i;
    return picked;
}
DEVICE_FN uint32_t add_bytes(uint32_t a, uint32_t b) {
    return add_4x8(a, b);
}
DEVICE_FN uint32_t add_halves(uint32_t a, uint32_t b) {
    return add_2x16(a, b);
}

#endif
