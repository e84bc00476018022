/*
 * Contract of a GPU decoder: decodes a batch of compressed TIFF blocks in device memory.
 *
 *     encoded    | block 0 | block 1 | block 2 | ...        at any byte, in any order
 *     decoded    | block 0     | block 1     | ...          at multiples of COGPU_GPU_ALIGN
 *     statuses   | 0 | 0 | COGPU_GPU_MALFORMED | ...          one word per block
 *
 * A decoder is a host function that launches kernels on a CUDA stream and does not wait for them
 * (README.md has the parts of a kernel folder).
 * The next step on the stream, kernels/unpack, turns decoded blocks into pixels of the caller's
 * raster.
 *
 * Each block gets a status. COGPU_GPU_DECODED (0) means that every byte of the block is what the
 * CPU codec of codec/ would give. After any other status the CPU decodes the block again, and its
 * codec decides whether there is an error and which. So a GPU decoder
 * - may refuse anything that is rare or costly;
 * - must not accept what the CPU codec refuses: it checks the same checksums, sizes and ends;
 * - writes nothing outside of a block's output, whatever the encoded bytes are. What it writes
 *   there is undefined if it refuses the block.
 *
 * tests/support/gpu_contract.h checks this contract for valid, damaged and random streams.
 */
#ifndef COGPU_KERNELS_DECODER_H
#define COGPU_KERNELS_DECODER_H

#include "gpu/driver/gpu.h"

/* Kernels may load, but not use, this many bytes before and after the encoded and decoded bytes of
 * a batch: vector loads round addresses down and lengths up. */
enum { COGPU_GPU_SLACK_BYTES = 256 };

/* Decoded blocks begin at multiples of this, with at least this many bytes between two of them. */
enum { COGPU_GPU_ALIGN = 256 };

static inline uint64_t cogpu_gpu_align(uint64_t bytes) {
    return (bytes + COGPU_GPU_ALIGN - 1) / COGPU_GPU_ALIGN * COGPU_GPU_ALIGN;
}

/* Largest block, in encoded and decoded bytes, because kernels count bits in 32 bits. Larger blocks
 * are decoded by the CPU. */
enum { COGPU_GPU_BLOCK_BYTES_MAX = 1 << 28 };

/* Why a block was refused. For tests and diagnosis: the CPU codec makes its own error message. */
typedef enum cogpu_gpu_block_status {
    COGPU_GPU_DECODED = 0,
    COGPU_GPU_MALFORMED, /* violates its format */
    COGPU_GPU_TRUNCATED, /* the encoded bytes end before the stream does */
    COGPU_GPU_TOO_LONG,  /* decodes to more than `capacity` bytes; the CPU codec drops the rest */
    COGPU_GPU_TOO_SHORT, /* decodes to less than `required` bytes */
    COGPU_GPU_CHECKSUM_MISMATCH, /* of Adler-32 or XXH64 */
    COGPU_GPU_UNSUPPORTED,       /* perhaps valid, but rare, or too costly for this decoder */
    COGPU_GPU_NOT_DECODED = 0xFF /* initial value: no decoder has run */
} cogpu_gpu_block_status;

/* One block of a batch; the same struct in host and device memory. */
typedef struct cogpu_encoded_block {
    uint64_t in;       /* offset of its encoded bytes in the batch: any byte */
    uint64_t out;      /* offset of its decoded bytes: a multiple of COGPU_GPU_ALIGN */
    uint32_t in_bytes; /* encoded bytes, 1 to COGPU_GPU_BLOCK_BYTES_MAX */
    uint32_t capacity; /* capacity of the output in bytes, 1 to COGPU_GPU_BLOCK_BYTES_MAX */
    uint32_t
        required; /* bytes that the image needs, up to `capacity`: fewer are COGPU_GPU_TOO_SHORT */
    uint32_t reserved;
} cogpu_encoded_block;

/* Arguments of a decoder. The caller owns all memory, and keeps it until the work that the decoder
 * queued on the stream is complete. */
typedef struct cogpu_gpu_batch {
    cogpu_gpu *gpu;
    cogpu_gpu_stream *stream;
    const cogpu_encoded_block *blocks; /* host memory, in order of decreasing `in_bytes` */
    uint32_t count;                    /* of blocks */
    uint32_t others; /* blocks of the same read that come after: they fill the device, too */
    const cogpu_encoded_block *device_blocks; /* the same in device memory */
    const uint8_t *stored;                    /* device memory: encoded bytes */
    uint8_t *decoded;                         /* device memory */
    uint32_t *statuses;                       /* device memory, one per block */
    uint8_t *scratch;                         /* device memory, aligned to COGPU_GPU_ALIGN */
    uint64_t scratch_bytes;                   /* at least `*least` of the decoder's scratch() */
} cogpu_gpu_batch;

/* Measured throughput of a decoder in decoded bytes per nanosecond. The read pipeline estimates
 * from it whether the CPU decodes a small read faster, and decoders how they divide the work. */
typedef struct cogpu_gpu_rates {
    double cpu;       /* of one CPU thread */
    double one;       /* of a block that one thread block decodes */
    double many;      /* of so many such blocks that the device is full */
    double few;       /* of blocks that many thread blocks decode each; 0: this decoder cannot */
    double few_start; /* nanoseconds that it takes to divide blocks, however few there are */
} cogpu_gpu_rates;

/* A decoder: one for each compression that GPUs decode. */
typedef struct cogpu_gpu_decoder {
    cogpu_gpu_rates rates;
    /* The kernels that it launches on every device, ended by NULL. It is not offered on a device
     * that lacks the shared memory for one of them. */
    const cogpu_kernel *const *kernels;
    /* Scratch memory in bytes for these blocks: the minimum, and what is needed for full speed.
     * With less than that a decoder works in rounds: it decodes as many blocks at a time as fit.
     * `others` is that of the batch. */
    void (*scratch)(const cogpu_encoded_block *blocks, uint32_t count, uint32_t others,
                    uint64_t *least, uint64_t *best);
    /* Launches the kernels. An error is one of the launch; errors of blocks are in `statuses`. */
    cogpu_status (*decode)(const cogpu_gpu_batch *batch, cogpu_error *error);
} cogpu_gpu_decoder;

/* Estimated nanoseconds to decode blocks: each by one thread block, or by many. From the decoded
 * bytes of all and of the largest. */
double cogpu_gpu_many_time(const cogpu_gpu_rates *rates, double sum, double largest);
double cogpu_gpu_few_time(const cogpu_gpu_rates *rates, double sum);
/* Whether a batch is decoded faster if its blocks are divided. `others` is that of the batch. */
bool cogpu_gpu_is_few(const cogpu_gpu_rates *rates, const cogpu_encoded_block *blocks,
                      uint32_t count, uint32_t others);

/* The decoder of a TIFF compression number; NULL if there is none, or none that this GPU can run.
 */
const cogpu_gpu_decoder *cogpu_gpu_find_decoder(const cogpu_gpu *gpu, uint32_t compression);

extern const cogpu_gpu_decoder cogpu_gpu_inflate, cogpu_gpu_zstd, cogpu_gpu_lzw, cogpu_gpu_packbits;

#endif
