/*
 * JPEG on a GPU: takes the stored bytes of blocks in memory of the host, hands on their samples in
 * memory of the device. The GPU's JPEG engines do it, by way of NVIDIA's nvJPEG (nvjpeg_library.h).
 *
 * Two steps:
 *
 *     rewrite   a block's stored bytes become a stream of the plainest kind, which says nothing but
 *               what was checked, or the block is the host's. No device: for any thread.
 *     decode    all streams of a batch at once, on a stream of the device: nvJPEG makes planes of
 *               them, a kernel of ours (cuda_jpeg.cu) pixels
 *
 * docs/kernels/jpeg.md says what nvJPEG does not tell of damaged streams.
 */
#ifndef COGPU_BACKEND_CUDA_NVJPEG_H
#define COGPU_BACKEND_CUDA_NVJPEG_H

#include "backend/cuda/cuda.h"
#include "codec/codec.h"

typedef struct cogpu_nvjpeg_block {
    /* Filled in by rewrite. */
    const uint8_t *stream; /* stays until the device is through */
    size_t stream_bytes;   /* 0: the host's */
    uint32_t width, height, samples;
    uint16_t step_x, step_y; /* pixels to a sample of the second and third band */
    bool is_ycbcr;

    /* The caller's. */
    uint8_t *decoded; /* on the device: rows of width * samples bytes */
    uint8_t *planes;  /* on the device, as many bytes; for blocks of 3 samples */
    uint64_t room;    /* of each */

    cogpu_gpu_verdict verdict; /* filled in by decode */
} cogpu_nvjpeg_block;

/* ---- rewrite ------------------------------------------------------------------------------- */

/* Room that a stream needs, for as many stored bytes. */
size_t cogpu_nvjpeg_bound(const cogpu_block_format *format, size_t stored_bytes);

/* Writes the stream. Taken are baseline streams of 1 or 3 bands in one scan, of exactly the block's
 * size, in YCbCr also 4:2:2 and 4:2:0, whose tables are sound and whose scan has its restarts and
 * its end where they belong. `format` is of this very block: its height counts. */
void cogpu_nvjpeg_rewrite(const cogpu_block_format *format, const uint8_t *stored,
                          size_t stored_bytes, uint8_t *to, cogpu_nvjpeg_block *block);

/* ---- decode -------------------------------------------------------------------------------- */

typedef struct cogpu_nvjpeg cogpu_nvjpeg;

/* One for a device; it is for one thread at a time. `slots` batches can be under way, of `batch`
 * blocks each at most. Fails with COGPU_UNSUPPORTED where the GPU has no engines. */
cogpu_status cogpu_nvjpeg_open(cogpu_gpu *gpu, uint32_t slots, uint32_t batch,
                               cogpu_nvjpeg **nvjpeg, cogpu_error *error);
void cogpu_nvjpeg_close(cogpu_nvjpeg *nvjpeg);

/* Decodes in the order of `stream`, and does not wait for its end. What nvJPEG fails for has a
 * verdict; decode fails only where the device does. Whatever the slot decoded before must be over,
 * and the device's context must be current, as for open and close. */
cogpu_status cogpu_nvjpeg_decode(cogpu_nvjpeg *nvjpeg, uint32_t slot, cogpu_nvjpeg_block *blocks,
                                 uint32_t count, cogpu_gpu_stream *stream, cogpu_error *error);

#endif
