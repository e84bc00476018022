/*
 * The CUDA backend's steps, twins of those of backend/cpu/cpu.h, for a batch of blocks at once:
 * decode (stored bytes to block bytes, on the device) and place (predictor, byte order, depth,
 * crop, strides: into the caller's raster on the device). Each is a host function that launches
 * kernels on a stream and does not wait.
 *
 * A decoder gives a status word for each block. 0: the block is decoded, and every byte of it is
 * what the host's codec would give. Anything else: the device leaves it to the host, whose codec
 * then has the last word on what is wrong with it, if anything. So a decoder may refuse what is
 * rare, but must never accept what the host refuses: where the host checks a sum, a size or an end,
 * so does it.
 */
#ifndef COGPU_BACKEND_CUDA_CUDA_H
#define COGPU_BACKEND_CUDA_CUDA_H

#include "backend/cuda/gpu.h"

/* Stored and decoded bytes may be read this far past the end of a batch's memory, and before its
 * start: what is found there must not matter. */
enum { COGPU_GPU_SLACK = 256 };

/* Decoded blocks begin at multiples of this in the batch's memory, and so many bytes lie between
 * two of them. */
enum { COGPU_GPU_ALIGN = 256 };

static inline uint64_t cogpu_gpu_align(uint64_t bytes) {
    return (bytes + COGPU_GPU_ALIGN - 1) / COGPU_GPU_ALIGN * COGPU_GPU_ALIGN;
}

/* Larger blocks, stored or decoded, are the host's: bits and bytes are counted in 32 bits. */
enum { COGPU_GPU_BLOCK_MAX = 1 << 28 };

/* Why a block is the host's; for tests and the curious, since the host finds out for itself. */
typedef enum cogpu_gpu_verdict {
    COGPU_GPU_DECODED = 0,
    COGPU_GPU_DAMAGED,  /* no stream of this codec */
    COGPU_GPU_CUT_OFF,  /* the stored bytes end before the stream */
    COGPU_GPU_TOO_LONG, /* more than the block has room for, which the host ignores */
    COGPU_GPU_TOO_SHORT,
    COGPU_GPU_BAD_SUM,
    COGPU_GPU_UNUSUAL, /* legal, and not for this decoder */
    COGPU_GPU_UNTOUCHED = 0xFF
} cogpu_gpu_verdict;

/* A block of a batch. The same struct on the host and on the device. */
typedef struct cogpu_coded {
    uint64_t in;       /* where its stored bytes begin in the batch's memory: at any byte */
    uint64_t out;      /* where its decoded bytes go: a multiple of COGPU_GPU_ALIGN */
    uint32_t in_bytes; /* 1 to COGPU_GPU_BLOCK_MAX */
    uint32_t room;     /* bytes that the block has room for, 1 to COGPU_GPU_BLOCK_MAX */
    uint32_t needed;   /* of these, what the image needs: fewer decoded bytes are too short */
    uint32_t reserved;
} cogpu_coded;

/* What a decoder is given. All memory is the caller's and stays until the stream is through. */
typedef struct cogpu_gpu_batch {
    cogpu_gpu *gpu;
    cogpu_gpu_stream *stream;
    const cogpu_coded *blocks; /* on the host, largest stored size first */
    uint32_t count;
    const cogpu_coded *device_blocks; /* the same on the device */
    const uint8_t *stored;            /* on the device */
    uint8_t *decoded;                 /* on the device */
    uint32_t *verdicts;               /* on the device: a word for each block */
    uint8_t *scratch;                 /* on the device, aligned to COGPU_GPU_ALIGN */
    uint64_t scratch_bytes;
} cogpu_gpu_batch;

/* A decoder: how much scratch it wants for these blocks (at least, and for full speed), and the
 * work itself. With less than `least` it must not be called; between the two it takes more rounds.
 */
typedef struct cogpu_gpu_decoder {
    /* Decoded bytes a nanosecond: of one block alone on the device, and of one thread of the host.
     * They decide who decodes a few blocks. */
    double device_rate, host_rate;
    void (*scratch)(const cogpu_coded *blocks, uint32_t count, uint64_t *least, uint64_t *best);
    cogpu_status (*decode)(const cogpu_gpu_batch *batch, cogpu_error *error);
} cogpu_gpu_decoder;

/* The decoder of a compression, by TIFF's number; NULL where the device has none. */
const cogpu_gpu_decoder *cogpu_gpu_decoder_of(uint32_t compression);

extern const cogpu_gpu_decoder cogpu_gpu_inflate, cogpu_gpu_zstd, cogpu_gpu_lzw, cogpu_gpu_packbits;

#endif
