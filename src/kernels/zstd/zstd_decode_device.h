/*
 * Device functions that all kernels of the zstd decoder use: little-endian loads, refusal of a TIFF
 * block, and PTX instructions that the compiler would not choose. The C branch is for the emulator.
 */
#ifndef COGPU_KERNELS_ZSTD_ZSTD_DECODE_DEVICE_H
#define COGPU_KERNELS_ZSTD_ZSTD_DECODE_DEVICE_H

#include "kernels/simt.h"
#include "kernels/zstd/zstd_decode_args.h"

#ifdef __CUDACC__
/* Before a loop that the compiler must not unroll, or must unroll by four. */
#define ROLLED      _Pragma("unroll 1")
#define UNROLL_BY_4 _Pragma("unroll 4")
/* Index of the highest 1 bit; UINT32_MAX for 0. */
DEVICE_FN uint32_t highest_bit(uint32_t value) {
    uint32_t bit;
    asm("bfind.u32 %0, %1;" : "=r"(bit) : "r"(value));
    return bit;
}
/* 0 if the shift is 32 or more, which C leaves undefined. */
DEVICE_FN uint32_t shift_left(uint32_t value, uint32_t by) {
    asm("shl.b32 %0, %0, %1;" : "+r"(value) : "r"(by));
    return value;
}
#else
#define ROLLED
#define UNROLL_BY_4
DEVICE_FN uint32_t highest_bit(uint32_t value) {
    return 31 - leading_zeros(value);
}
DEVICE_FN uint32_t shift_left(uint32_t value, uint32_t by) {
    return by < 32 ? value << by : 0;
}
#endif

DEVICE_FN uint32_t load_le16(const uint8_t *at) {
    return at[0] | (uint32_t)at[1] << 8;
}

DEVICE_FN uint32_t load_le24(const uint8_t *at) {
    return load_le16(at) | (uint32_t)at[2] << 16;
}

DEVICE_FN uint32_t load_le32(const uint8_t *at) {
    return load_le24(at) | (uint32_t)at[3] << 24;
}

/* Of several errors the one with the highest status is reported, so that the result does not depend
 * on the order of threads. */
DEVICE_FN void refuse_tiff_block(const struct zstd_args *args, uint32_t tiff_block,
                                 uint32_t block_status) {
    atomic_max(&args->statuses[tiff_block], block_status);
}

DEVICE_FN bool is_refused(const struct zstd_args *args, uint32_t tiff_block) {
    return args->statuses[tiff_block] != COGPU_GPU_DECODED;
}

/* Symbol_Compression_Modes (RFC 8878, 3.1.1.3.2.1). */
enum zstd_mode { MODE_PREDEFINED, MODE_RLE, MODE_FSE_COMPRESSED, MODE_REPEAT };

/* Two bits for each kind, from bit 7 down; `kind` is an enum zstd_code. */
DEVICE_FN uint32_t compression_mode(const struct zstd_block *block, uint32_t kind) {
    return block->modes >> (6 - 2 * kind) & 3;
}

DEVICE_FN uint8_t *pool_at(const struct zstd_args *args, uint32_t quad) {
    return args->pool + (uint64_t)quad * ZSTD_QUAD;
}

#endif
