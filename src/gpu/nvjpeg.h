/*
 * JPEG blocks decoded by NVIDIA's nvJPEG hardware decoder (nvjpeg_library.h): stored bytes in host
 * memory to pixels in device memory.
 *
 * Two steps:
 *
 *     rewrite   the stored bytes become a minimal baseline stream with nothing but checked headers,
 *               or the block is left to the CPU. Needs no device; for any thread.
 *     decode    all streams of a batch at once, in stream order: nvJPEG writes planes, a kernel
 *               (jpeg_interleave.cu) makes pixels of them
 *
 * src/kernels/jpeg/README.md says what nvJPEG does not report of damaged streams.
 */
#ifndef COGPU_GPU_NVJPEG_H
#define COGPU_GPU_NVJPEG_H

#include "codec/codec.h"
#include "kernels/decoder.h"

typedef struct cogpu_nvjpeg_block {
    /* Filled in by rewrite. */
    const uint8_t *stream; /* must stay until the device is done */
    size_t stream_bytes;   /* 0: for the CPU */
    uint32_t width, height, samples;
    uint16_t step_x, step_y; /* pixels a chroma sample */
    bool is_ycbcr;

    /* The caller's. */
    uint8_t *decoded;  /* on the device: rows of width * samples bytes */
    uint8_t *planes;   /* on the device, as many bytes; for blocks of 3 samples */
    uint64_t capacity; /* bytes of each */

    cogpu_gpu_block_status block_status; /* filled in by decode */
} cogpu_nvjpeg_block;

/* ---- rewrite ------------------------------------------------------------------------------- */

/* Most bytes of the rewritten stream. */
size_t cogpu_nvjpeg_bound(const cogpu_block_format *format, size_t stored_bytes);

/* Writes the stream. Accepts baseline streams of exactly the block's size, with 1 or 3 components
 * in one scan, in YCbCr also 4:2:2 and 4:2:0. Tables must be valid, and restart markers and EOI
 * where they belong. `format` has the height of this very block. */
void cogpu_nvjpeg_rewrite(const cogpu_block_format *format, const uint8_t *stored,
                          size_t stored_bytes, uint8_t *to, cogpu_nvjpeg_block *block);

/* ---- decode -------------------------------------------------------------------------------- */

typedef struct cogpu_nvjpeg cogpu_nvjpeg;

/* One a device, for one thread at a time. `slots` batches of at most `batch` blocks can be in
 * flight. Fails with COGPU_UNSUPPORTED if the GPU has no hardware decoder. */
cogpu_status cogpu_nvjpeg_open(cogpu_gpu *gpu, uint32_t slots, uint32_t batch,
                               cogpu_nvjpeg **nvjpeg, cogpu_error *error);
void cogpu_nvjpeg_close(cogpu_nvjpeg *nvjpeg);

/* Queues the decoding on `stream`. A block that nvJPEG fails for has a block_status; the call fails
 * only if the device does. The former batch of the slot must be done. The device's context must be
 * current, as for open and close. */
cogpu_status cogpu_nvjpeg_decode(cogpu_nvjpeg *nvjpeg, uint32_t slot, cogpu_nvjpeg_block *blocks,
                                 uint32_t count, cogpu_gpu_stream *stream, cogpu_error *error);

#endif
