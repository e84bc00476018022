/*
 * GPU encoders: from decoded blocks in device memory to encoded blocks in device memory, a batch at
 * a time. An encoder is the second of three steps of a written batch:
 *
 *     pack      raster              -> decoded bytes of each block, predictor applied, at `in`
 *     encode    decoded bytes       -> encoded bytes in the block's slot, at `out`; their size
 *     compact   slots and sizes     -> encoded blocks side by side, as they are stored in the file
 *
 * Each step is a host function that launches kernels on a stream and returns without waiting; only
 * the JPEG encoder waits. All memory is the caller's.
 *
 * What an encoder guarantees:
 * - Every decoder of the codec reads its streams.
 * - A stream is never longer than `bound` says, whatever the bytes. Nothing is written outside the
 *   slot.
 * - The same decoded bytes give the same encoded bytes, in any batch, with any scratch, and in any
 *   order of threads.
 */
#ifndef COGPU_KERNELS_ENCODER_H
#define COGPU_KERNELS_ENCODER_H

#include "kernels/decoder.h"

struct cogpu_encoding; /* codec/codec.h */

/* A block to encode. The same struct on the host and on the device. */
typedef struct cogpu_raw_block {
    uint64_t in;       /* offset of its decoded bytes: a multiple of COGPU_GPU_ALIGN */
    uint64_t out;      /* offset of its slot: a multiple of COGPU_GPU_ALIGN */
    uint32_t in_bytes; /* 1 to COGPU_GPU_BLOCK_BYTES_MAX */
    uint32_t capacity; /* bytes of the slot: at least `bound` */
    /* Distances at which similar bytes are expected, in bytes: to the next sample of the same band
     * (1 in the byte planes of predictor 3), and to the next row. Encoders look for matches there
     * first. They change how small the result is, never whether it is correct. */
    uint32_t step, row_bytes;
} cogpu_raw_block;

/* Initial values of `sizes`. A sparse block (all fill) is not encoded, keeps its 0, and is not
 * stored in the file. */
enum { COGPU_GPU_SPARSE = 0, COGPU_GPU_TO_ENCODE = 1 };

/* A batch to encode. */
typedef struct cogpu_gpu_encoding {
    cogpu_gpu *gpu;
    cogpu_gpu_stream *stream;
    const cogpu_raw_block *blocks; /* in host memory */
    uint32_t count;
    const cogpu_raw_block *device_blocks; /* the same in device memory */
    const uint8_t *decoded; /* device memory, readable COGPU_GPU_SLACK_BYTES bytes past both ends */
    uint8_t *slots;         /* device memory */
    uint32_t *sizes;        /* device memory: encoded bytes on return; COGPU_GPU_SPARSE stays */
    uint32_t *host_sizes;   /* pinned host memory, for encoders that need the sizes on the host */
    int level;              /* of the CPU codec; each encoder maps it to its own efforts */
    uint8_t *scratch;       /* device memory, aligned to COGPU_GPU_ALIGN */
    uint64_t scratch_bytes;
    void *kept; /* state that `open` returned */
} cogpu_gpu_encoding;

typedef struct cogpu_gpu_encoder {
    /* The kernels that it launches, as those of a cogpu_gpu_decoder. NULL: none. */
    const cogpu_kernel *const *kernels;
    /* Maximum encoded bytes of a block. NULL: as the CPU encoder. Only PackBits uses row_bytes. */
    uint64_t (*bound)(uint64_t in_bytes, uint64_t row_bytes);
    /* Scratch for these blocks: the minimum, and the amount for full speed. In between, the encoder
     * encodes the batch in several rounds. */
    void (*scratch)(const cogpu_raw_block *blocks, uint32_t count, int level, uint64_t *least,
                    uint64_t *best);
    /* Decoded bytes of a batch that keep a device busy while two batches are in flight. NULL: the
     * default. */
    uint64_t (*batch_bytes)(int level);
    cogpu_status (*encode)(const cogpu_gpu_encoding *encoding, cogpu_error *error);
    /* For encoders with state that lasts for a file; else NULL. If `open` fails, the CPU encodes
     * the file's blocks. */
    cogpu_status (*open)(cogpu_gpu *gpu, const struct cogpu_encoding *encoding, void **kept,
                         cogpu_error *error);
    void (*close)(void *kept);
} cogpu_gpu_encoder;

/* The encoder of a TIFF compression value; NULL: there is none, or none that this GPU can run. */
const cogpu_gpu_encoder *cogpu_gpu_encoder_of(const cogpu_gpu *gpu, uint32_t compression);

extern const cogpu_gpu_encoder cogpu_gpu_deflate_encoder, cogpu_gpu_zstd_encoder,
    cogpu_gpu_lzw_encoder, cogpu_gpu_packbits_encoder, cogpu_gpu_jpeg_encoder;

#endif
