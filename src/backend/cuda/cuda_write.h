/*
 * The writing half of the CUDA backend, twins of backend/cpu's cut and shrink and of the encoders,
 * for a batch of blocks at once: cut (pixels of a raster on the device to decoded bytes of blocks,
 * predicted), encode (to stored bytes, each block in a slot of its own) and pack (slots to the
 * bytes of the file, side by side, with what a COG has around each block). Each is a host function
 * that launches kernels on a stream and does not wait, but for the encoder of JPEG.
 *
 * One batch, all memory the caller's:
 *
 *     cut      raster                    -> decoded bytes of each block, at its `in`
 *     encode   decoded bytes             -> stored bytes at its `out`, and how many in `sizes`
 *     pack     slots and sizes           -> one piece of bytes, and where each block begins in it
 *
 * The same pixels give the same bytes, whatever batch a block is in, and whatever the order in
 * which the device runs its threads.
 */
#ifndef COGPU_BACKEND_CUDA_CUDA_WRITE_H
#define COGPU_BACKEND_CUDA_CUDA_WRITE_H

#include "backend/cuda/cuda.h"

struct cogpu_encoding; /* codec/codec.h */

/* A block on its way out. The same struct on the host and on the device. */
typedef struct cogpu_uncoded {
    uint64_t in;       /* where its decoded bytes begin: a multiple of COGPU_GPU_ALIGN */
    uint64_t out;      /* where its slot begins: a multiple of COGPU_GPU_ALIGN */
    uint32_t in_bytes; /* 1 to COGPU_GPU_BLOCK_MAX */
    uint32_t room;     /* of the slot: at least what `bound` says */
    /* Where like stands beside like, for encoders that search there first: bytes from a sample to
     * the next of its band (in planes of bytes, as predictor 3 leaves them, 1), and from a row to
     * the next. They decide how small the result is, never whether it is right. */
    uint32_t step, row_bytes;
} cogpu_uncoded;

/* A block that is left out of the file: all of it is fill. Set in `sizes` before encoders run,
 * which then leave it alone; pack makes no bytes of it. */
enum { COGPU_GPU_SPARSE = 0, COGPU_GPU_TO_ENCODE = 1 };

/* What an encoder is given. */
typedef struct cogpu_gpu_encoding {
    cogpu_gpu *gpu;
    cogpu_gpu_stream *stream;
    const cogpu_uncoded *blocks; /* on the host */
    uint32_t count;
    const cogpu_uncoded *device_blocks; /* the same on the device */
    const uint8_t *decoded;             /* on the device, with COGPU_GPU_SLACK around it */
    uint8_t *slots;                     /* on the device */
    uint32_t *sizes; /* on the device: COGPU_GPU_SPARSE stays, all others become stored bytes */
    uint32_t *host_sizes; /* pinned, for encoders that have to know them on the host */
    /* As the host's codec counts them. Deflate: 1 to 6 are the usual one, 7 to 9 search more and
     * more, those above are as 9. */
    int level;
    uint8_t *scratch; /* on the device, aligned to COGPU_GPU_ALIGN */
    uint64_t scratch_bytes;
    void *kept; /* what `open` gave */
} cogpu_gpu_encoding;

/* An encoder: what a block may take at most, which of some codecs its rows decide (NULL: as much as
 * from the host's encoder); scratch for these blocks (at least, and for full speed: between the two
 * it takes more rounds); how many decoded bytes keep a device busy, where two batches of them are
 * under way (NULL: the usual); the work itself. Its streams are read by everybody who reads the
 * codec, and never longer than the bound, whatever the bytes. */
typedef struct cogpu_gpu_encoder {
    uint64_t (*bound)(uint64_t in_bytes, uint64_t row_bytes);
    void (*scratch)(const cogpu_uncoded *blocks, uint32_t count, int level, uint64_t *least,
                    uint64_t *best);
    uint64_t (*batch_bytes)(int level);
    cogpu_status (*encode)(const cogpu_gpu_encoding *encoding, cogpu_error *error);
    /* Of an encoder that keeps something from batch to batch, for one file; else NULL. Where it
     * fails, blocks of this encoding are the host's. */
    cogpu_status (*open)(cogpu_gpu *gpu, const struct cogpu_encoding *encoding, void **kept,
                         cogpu_error *error);
    void (*close)(void *kept);
} cogpu_gpu_encoder;

/* The encoder of a compression, by TIFF's number; NULL where the device has none. */
const cogpu_gpu_encoder *cogpu_gpu_encoder_of(uint32_t compression);

extern const cogpu_gpu_encoder cogpu_gpu_deflate, cogpu_gpu_zstd_encoder, cogpu_gpu_lzw_encoder,
    cogpu_gpu_packbits_encoder, cogpu_gpu_jpeg_encoder;

#endif
