/*
 * The functions that kernels use instead of CUDA's built-ins: threads, shared memory, collectives,
 * atomics, wide loads. nvcc compiles a kernel for a GPU; the C compiler compiles the same file for
 * the emulator (simt_emulated.h), where the threads of a thread block are fibers and every
 * collective is checked. "Block" in this file is CUDA's thread block.
 *
 *     struct add_args { const uint32_t *from; uint32_t *to; uint32_t count; };
 *     struct add_shared { uint32_t sums[32]; };
 *     KERNEL(cogpu_kernel_add, struct add_args, struct add_shared, 256, 4) {
 *         uint32_t i = block_index() * thread_count() + thread_index();
 *         if (i < args->count) ...
 *     }
 *
 * The last two numbers are those of __launch_bounds__: threads per block, and the blocks that are
 * to be resident on a multiprocessor. Inside, `args` points to the arguments and `shared` to the
 * shared memory, which is not initialised. For the C compiler KERNEL also defines `const
 * cogpu_kernel cogpu_kernel_add`, which launchers pass to the driver (gpu/driver/gpu.h).
 *
 *     here                               CUDA
 *     sync_block, _or, _count            __syncthreads, _or, _count
 *     sync_group(id, threads)            named barrier `id`, for that many threads
 *     arrive_group(id, threads)          the same without waiting
 *     warp_read, _up, _down, _xor        __shfl_sync, _up, _down, _xor
 *     warp_match                         __match_any_sync: mask of the lanes with the same value
 *     warp_sum, _max, _min               __reduce_add_sync, _max, _min: the result is in all lanes
 *     copy_to_shared_16, copies_commit   cp.async, its commit_group
 *     funnel_right, funnel_left          __funnelshift_r, _l: the shift count is taken modulo 32
 *     pick_bytes                         __byte_perm
 *
 * Rules that let one source serve both compilers:
 * - C that is C++ as well: casts from void *, no compound literals, no designated initialisers. No
 *   recursion, no function pointers, no static variables but const tables (DEVICE_TABLE).
 * - A collective is a function that threads call together: a barrier, ballot, shuffle or scan. All
 *   32 threads of a warp call one of the warp, all threads of a block one of the block. No thread
 *   returns before the last collective of its kernel.
 * - Every loop has a bound that the input cannot raise; every store is checked against its buffer.
 *   A kernel trusts no byte of a file, and no output of another kernel that has not checked it.
 * - Wide loads and stores are aligned: the emulator checks it.
 */
#ifndef COGPU_KERNELS_SIMT_H
#define COGPU_KERNELS_SIMT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WARP = 32 };

/* 16 bytes, as CUDA's uint4: one vector load or store. */
typedef struct words4 {
    uint32_t x, y, z, w;
} words4;

/* The C compiler must know which loads and stores break strict aliasing; nvcc does not use it. */
#ifdef __CUDACC__
#define ANY_TYPE
#else
#define ANY_TYPE __attribute__((may_alias))
#endif

/* Integers through which memory of any type may be read and written. */
typedef uint16_t ANY_TYPE number16;
typedef uint32_t ANY_TYPE number32;
typedef uint64_t ANY_TYPE number64;

/* Type of the shared memory of kernels that need none. */
struct nothing_shared {
    uint32_t nothing;
};

#ifdef __CUDACC__

#define DEVICE_FN     static __device__ __forceinline__
#define DEVICE_FN_BIG static __device__ __noinline__ /* too large to inline */
#define DEVICE_TABLE  static __constant__ const
#define UNROLL        _Pragma("unroll") /* before a loop of few iterations, known at compile time */

/* Threads of a multiprocessor. Where a kernel wants more of them there are fewer thread blocks. */
#if !defined(__CUDA_ARCH__)
enum { RESIDENT_THREADS = 2048 };
#elif __CUDA_ARCH__ < 800
enum { RESIDENT_THREADS = 1024 };
#elif (__CUDA_ARCH__ > 800 && __CUDA_ARCH__ < 900) || __CUDA_ARCH__ >= 1200
enum { RESIDENT_THREADS = 1536 };
#else
enum { RESIDENT_THREADS = 2048 };
#endif
#define RESIDENT_BLOCKS(threads, wanted)                                                           \
    ((threads) * (wanted) > RESIDENT_THREADS ? RESIDENT_THREADS / (threads) : (wanted))

#define KERNEL(name, args_type, shared_type, threads, per_multiprocessor)                          \
    static __device__ __forceinline__ void name##_body(const args_type *args,                      \
                                                       shared_type *shared);                       \
    extern "C" __global__ void __launch_bounds__(threads,                                          \
                                                 RESIDENT_BLOCKS(threads, per_multiprocessor))     \
        name(const __grid_constant__ args_type args) {                                             \
        extern __shared__ uint4 simt_shared[];                                                     \
        name##_body(&args, (shared_type *)simt_shared);                                            \
    }                                                                                              \
    static __device__ __forceinline__ void name##_body(const args_type *args, shared_type *shared)

DEVICE_FN uint32_t thread_index(void) {
    return threadIdx.x;
}
DEVICE_FN uint32_t thread_count(void) {
    return blockDim.x;
}
DEVICE_FN uint32_t block_index(void) {
    return blockIdx.x;
}
DEVICE_FN uint32_t block_count(void) {
    return gridDim.x;
}

#define ALL_LANES 0xFFFFFFFFu

DEVICE_FN void sync_block(void) {
    __syncthreads();
}
DEVICE_FN bool sync_block_or(bool value) {
    return __syncthreads_or(value) != 0;
}
DEVICE_FN uint32_t sync_block_count(bool value) {
    return (uint32_t)__syncthreads_count(value);
}
DEVICE_FN void sync_group(uint32_t id, uint32_t threads) {
    asm volatile("barrier.cta.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
DEVICE_FN void arrive_group(uint32_t id, uint32_t threads) {
    asm volatile("barrier.cta.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
DEVICE_FN void sync_warp(void) {
    __syncwarp();
}
DEVICE_FN uint32_t warp_ballot(bool value) {
    return __ballot_sync(ALL_LANES, value);
}
DEVICE_FN bool warp_any(bool value) {
    return __any_sync(ALL_LANES, value) != 0;
}
DEVICE_FN bool warp_all(bool value) {
    return __all_sync(ALL_LANES, value) != 0;
}
DEVICE_FN uint32_t warp_match(uint32_t value) {
    return __match_any_sync(ALL_LANES, value);
}
DEVICE_FN uint32_t warp_read(uint32_t value, uint32_t lane) {
    return __shfl_sync(ALL_LANES, value, (int)lane);
}
DEVICE_FN uint64_t warp_read64(uint64_t value, uint32_t lane) {
    return (uint64_t)__shfl_sync(ALL_LANES, (unsigned long long)value, (int)lane);
}
DEVICE_FN uint32_t warp_read_up(uint32_t value, uint32_t by) {
    return __shfl_up_sync(ALL_LANES, value, by);
}
DEVICE_FN uint32_t warp_read_down(uint32_t value, uint32_t by) {
    return __shfl_down_sync(ALL_LANES, value, by);
}
DEVICE_FN uint32_t warp_read_xor(uint32_t value, uint32_t mask) {
    return __shfl_xor_sync(ALL_LANES, value, (int)mask);
}

DEVICE_FN uint32_t atomic_add(uint32_t *at, uint32_t value) {
    return atomicAdd(at, value);
}
DEVICE_FN uint32_t atomic_max(uint32_t *at, uint32_t value) {
    return atomicMax(at, value);
}
DEVICE_FN uint32_t atomic_min(uint32_t *at, uint32_t value) {
    return atomicMin(at, value);
}
DEVICE_FN uint32_t atomic_or(uint32_t *at, uint32_t value) {
    return atomicOr(at, value);
}
DEVICE_FN uint32_t atomic_exchange(uint32_t *at, uint32_t value) {
    return atomicExch(at, value);
}
DEVICE_FN uint32_t atomic_compare_exchange(uint32_t *at, uint32_t expected, uint32_t value) {
    return atomicCAS(at, expected, value);
}

/* Communication with other blocks of the grid: acquire and release of global memory. */
DEVICE_FN uint32_t load_acquire(const uint32_t *at) {
    uint32_t value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}
DEVICE_FN void store_release(uint32_t *at, uint32_t value) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}
DEVICE_FN void fence_block(void) {
    __threadfence_block();
}
DEVICE_FN void fence_device(void) {
    __threadfence();
}
/* Pause of a loop that polls what another thread writes. */
DEVICE_FN void relax(void) {
    __nanosleep(64);
}

DEVICE_FN words4 load_words4(const void *at) {
    uint4 v = *(const uint4 *)at;
    words4 r = {v.x, v.y, v.z, v.w};
    return r;
}
DEVICE_FN void store_words4(void *at, words4 value) {
    *(uint4 *)at = make_uint4(value.x, value.y, value.z, value.w);
}
DEVICE_FN uint64_t load_u64_aligned(const void *at) {
    return *(const uint64_t *)at;
}
DEVICE_FN uint32_t load_u32_aligned(const void *at) {
    return *(const uint32_t *)at;
}

/* An aligned sample of 1, 2 or 4 bytes that no thread of the launch writes: the compiler may load
 * it earlier than the stores before it. */
DEVICE_FN uint32_t load_read_only(const void *at, uint32_t size) {
    return size == 1   ? __ldg((const uint8_t *)at)
           : size == 2 ? __ldg((const uint16_t *)at)
                       : __ldg((const uint32_t *)at);
}

/* Conversions between integers and doubles have an eighth of the throughput of additions. So both
 * of these add a number whose last bit stands for 1: 2^52, and 1.5 * 2^52. */
DEVICE_FN double u32_to_double(uint32_t value) {
    return __hiloint2double(0x43300000, (int)value) - 0x1p52;
}
/* floor(x), also as an integer: undefined unless it is within 31 bits. */
DEVICE_FN double split_floor(double x, int32_t *whole) {
    double shifted = __dadd_rd(x, 0x1.8p52);
    *whole = __double2loint(shifted);
    return shifted - 0x1.8p52;
}

/* Prefetches a line of global memory into the L1 cache. */
DEVICE_FN void fetch_ahead(const void *at) {
    asm volatile("prefetch.global.L1 [%0];" ::"l"(at));
}

/* Reductions of a warp; and copies of 16 aligned bytes from global to shared memory that bypass
 * registers (cp.async). This thread sees the bytes after copies_wait, which waits for all its
 * copies; other threads see them after a barrier that follows it. Compute capability 7.5 has
 * instructions for neither. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
DEVICE_FN uint32_t warp_sum(uint32_t value) {
    for (uint32_t mask = WARP / 2; mask > 0; mask /= 2)
        value += warp_read_xor(value, mask);
    return value;
}
DEVICE_FN uint32_t warp_max(uint32_t value) {
    for (uint32_t mask = WARP / 2; mask > 0; mask /= 2)
        value = max(value, warp_read_xor(value, mask));
    return value;
}
DEVICE_FN uint32_t warp_min(uint32_t value) {
    for (uint32_t mask = WARP / 2; mask > 0; mask /= 2)
        value = min(value, warp_read_xor(value, mask));
    return value;
}
DEVICE_FN void copy_to_shared_16(void *shared, const void *global) {
    *(uint4 *)shared = *(const uint4 *)global;
}
DEVICE_FN void copies_commit(void) {
}
DEVICE_FN void copies_wait(void) {
}
#else
DEVICE_FN uint32_t warp_sum(uint32_t value) {
    return __reduce_add_sync(ALL_LANES, value);
}
DEVICE_FN uint32_t warp_max(uint32_t value) {
    return __reduce_max_sync(ALL_LANES, value);
}
DEVICE_FN uint32_t warp_min(uint32_t value) {
    return __reduce_min_sync(ALL_LANES, value);
}
DEVICE_FN void copy_to_shared_16(void *shared, const void *global) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                     (uint32_t)__cvta_generic_to_shared(shared)),
                 "l"(global)
                 : "memory");
}
DEVICE_FN void copies_commit(void) {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
DEVICE_FN void copies_wait(void) {
    asm volatile("cp.async.wait_all;" ::: "memory");
}
#endif

DEVICE_FN uint32_t count_ones(uint32_t value) {
    return (uint32_t)__popc(value);
}
/* Both are 32 for 0. */
DEVICE_FN uint32_t leading_zeros(uint32_t value) {
    return (uint32_t)__clz((int)value);
}
DEVICE_FN uint32_t trailing_zeros(uint32_t value) {
    return (uint32_t)__clz((int)__brev(value));
}
DEVICE_FN uint32_t reverse_bits32(uint32_t value) {
    return __brev(value);
}
/* The low word of (high:low) >> shift % 32. */
DEVICE_FN uint32_t funnel_right(uint32_t low, uint32_t high, uint32_t shift) {
    return __funnelshift_r(low, high, shift);
}
/* The high word of (high:low) << shift % 32. */
DEVICE_FN uint32_t funnel_left(uint32_t low, uint32_t high, uint32_t shift) {
    return __funnelshift_l(low, high, shift);
}
/* Four of the eight bytes of (high:low): nibble i of `select`, 0 to 7, is the number of the byte
 * that becomes byte i of the result. 0x0123 reverses the bytes of `low`; 0x5410 joins the low
 * halves. */
DEVICE_FN uint32_t pick_bytes(uint32_t low, uint32_t high, uint32_t select) {
    return __byte_perm(low, high, select);
}
/* Four sums of bytes, each modulo 256; two sums of 16 bits. */
DEVICE_FN uint32_t add_bytes(uint32_t a, uint32_t b) {
    return __vadd4(a, b);
}
DEVICE_FN uint32_t add_halves(uint32_t a, uint32_t b) {
    return __vadd2(a, b);
}

#else
#include "kernels/simt_emulated.h"
#endif

/* ---- the same for both compilers ---- */

DEVICE_FN uint32_t min_u32(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

DEVICE_FN uint32_t max_u32(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

DEVICE_FN uint32_t lane_index(void) {
    return thread_index() % WARP;
}

DEVICE_FN uint32_t warp_index(void) {
    return thread_index() / WARP;
}

/* Inclusive prefix sum over the lanes. A collective of the warp. */
DEVICE_FN uint32_t warp_scan(uint32_t value) {
    for (uint32_t by = 1; by < WARP; by *= 2) {
        uint32_t below = warp_read_up(value, by);
        if (lane_index() >= by)
            value += below;
    }
    return value;
}

/* 16 bytes at any address. Loads only the aligned 32-bit words that hold some of them. */
DEVICE_FN words4 load_words4_anywhere(const uint8_t *at) {
    uint32_t skew = (uint32_t)((uintptr_t)at % 4), word[5] = {0, 0, 0, 0, 0};
    if ((uintptr_t)at % sizeof(words4) == 0)
        return load_words4(at);
    UNROLL for (uint32_t i = 0; i < 5; i++) {
        word[i] = i < 4 || skew ? load_u32_aligned(at - skew + 4 * i) : 0;
    }
    words4 v = {funnel_right(word[0], word[1], 8 * skew), funnel_right(word[1], word[2], 8 * skew),
                funnel_right(word[2], word[3], 8 * skew), funnel_right(word[3], word[4], 8 * skew)};
    return v;
}

/* An integer of 1, 2, 4 or 8 bytes at any address. */
DEVICE_FN uint64_t load_sample(const uint8_t *at, uint32_t size) {
    uint64_t value = 0;
    if ((uintptr_t)at % size != 0)
        for (uint32_t i = 0; i < size; i++)
            value |= (uint64_t)at[i] << (8 * i);
    else
        value = size == 1   ? *at
                : size == 2 ? *(const number16 *)(const void *)at
                : size == 4 ? load_u32_aligned(at)
                            : load_u64_aligned(at);
    return value;
}

DEVICE_FN void store_sample(uint8_t *at, uint64_t value, uint32_t size) {
    if ((uintptr_t)at % size != 0)
        for (uint32_t i = 0; i < size; i++)
            at[i] = (uint8_t)(value >> (8 * i));
    else if (size == 1)
        *at = (uint8_t)value;
    else if (size == 2)
        *(number16 *)(void *)at = (uint16_t)value;
    else if (size == 4)
        *(number32 *)(void *)at = (uint32_t)value;
    else
        *(number64 *)(void *)at = value;
}

#endif
