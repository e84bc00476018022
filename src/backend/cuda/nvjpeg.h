/*
 * JPEG on a GPU: takes the stored bytes of blocks in memory of the host, hands on their samples in
 * memory of the device. NVIDIA's nvJPEG does it, a library that is loaded when it is first asked
 * for; the environment may name another file to load: COGPU_NVJPEG.
 *
 * Two steps:
 *
 *     rewrite   a block's stored bytes become a stream of the plainest kind, which says nothing but
 *               what was checked, or the block is the host's. No device: for any thread.
 *     decode    all streams of a batch by one call, on a stream of the device
 *
 * The samples are those of the host's codec but for roundings: docs/kernels/jpeg.md says by how
 * much, and what nvJPEG does not tell of damaged streams. So nobody gets them unasked.
 */
#ifndef COGPU_BACKEND_CUDA_NVJPEG_H
#define COGPU_BACKEND_CUDA_NVJPEG_H

#include "backend/cuda/cuda.h"
#include "codec/codec.h"

/* Why nvJPEG cannot be used, or NULL. The text stays. */
const char *cogpu_nvjpeg_absent(void);

/* ---- rewrite ------------------------------------------------------------------------------- */

/* Room that a stream needs, for as many stored bytes. */
size_t cogpu_nvjpeg_bound(const cogpu_block_format *format, size_t stored_bytes);

/* Writes the stream and returns its bytes; 0: the host's. Taken are baseline streams of 1 or 3
 * bands in one scan, of exactly the block's size, in YCbCr also 4:2:2 and 4:2:0, whose tables are
 * sound and whose scan has its restarts and its end where they belong. `format` is of this very
 * block: its height counts. */
size_t cogpu_nvjpeg_rewrite(const cogpu_block_format *format, const uint8_t *stored,
                            size_t stored_bytes, uint8_t *to);

/* ---- decode -------------------------------------------------------------------------------- */

typedef struct cogpu_nvjpeg cogpu_nvjpeg;

/* One for a device. `slots` batches can be under way at a time, of `batch` blocks each at most;
 * nvJPEG gets at most `bytes` bytes of the device's memory, and as many of pinned memory. */
cogpu_status cogpu_nvjpeg_open(cogpu_gpu *gpu, uint32_t slots, uint32_t batch, uint64_t bytes,
                               cogpu_nvjpeg **nvjpeg, cogpu_error *error);
void cogpu_nvjpeg_close(cogpu_nvjpeg *nvjpeg);

typedef struct cogpu_nvjpeg_block {
    const uint8_t *stream; /* rewritten; it stays until the device is through */
    size_t stream_bytes;   /* 0: not for nvJPEG */
    uint8_t *decoded;      /* on the device: rows of width * samples bytes */
    uint64_t room;
    uint32_t width, height, samples; /* of the format that the stream was rewritten by */
    cogpu_gpu_verdict verdict;       /* filled in */
} cogpu_nvjpeg_block;

/* Decodes in the order of `stream` and does not wait for it. It cannot fail: a block that is not
 * decoded has a verdict. Whatever the slot decoded before must be over, and the device's context
 * must be current, as for open and close. */
void cogpu_nvjpeg_decode(cogpu_nvjpeg *nvjpeg, uint32_t slot, cogpu_nvjpeg_block *blocks,
                         uint32_t count, cogpu_gpu_stream *stream);

#endif
