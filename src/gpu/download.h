/*
 * Rows of pixels from device memory into a raster in host memory, by threads of a pool, while the
 * caller decodes the next rows on the device.
 *
 *     device memory          pinned memory                      the caller's raster
 *     rows of a chunk  --->  a piece for each worker  ------->  rows at any strides
 *                      copy                            memcpy
 *
 * Each worker takes a piece of the rows, waits for its copy and copies it once more, so that copies
 * of the device and of the CPU overlap. If the raster itself is pinned, one copy is enough.
 */
#ifndef COGPU_GPU_DOWNLOAD_H
#define COGPU_GPU_DOWNLOAD_H

#include "base/pool.h"
#include "gpu/device.h"

typedef struct cogpu_gpu_download cogpu_gpu_download;

/* Rows of the raster that are in device memory. */
typedef struct cogpu_download_chunk {
    cogpu_raster rows;  /* with the strides of cogpu_gpu_download_layout */
    uint32_t first_row; /* the row of the host raster that its first one is */
    uint32_t pending;   /* pieces that are not in the raster yet; under the download's lock */
} cogpu_download_chunk;

/* Pinned memory that a download of so many bytes by so many threads uses well. With less there are
 * fewer workers. */
uint64_t cogpu_gpu_download_pinned_bytes(uint32_t threads, uint64_t bytes);

/* Strides of `rows`, whose bands, width and height are set: bands of a pixel side by side if
 * `raster` has them so, else band after band. */
void cogpu_gpu_download_layout(const cogpu_raster *raster, cogpu_raster *rows);

/* Into `raster`, which has all strides set, by threads of the pool, at most so many. `pinned` is at
 * least a piece, and the download's until it is closed. */
enum { COGPU_DOWNLOAD_PIECE_BYTES = 2 << 20 };
cogpu_status cogpu_gpu_download_open(cogpu_gpu_device *device, cogpu_pool *pool, uint32_t threads,
                                     const cogpu_raster *raster, void *pinned,
                                     uint64_t pinned_bytes, cogpu_gpu_download **download,
                                     cogpu_error *error);

/* Adds `count` rows of the chunk from `row` on. They are complete on the device, and stay until the
 * wait. */
cogpu_status cogpu_gpu_download_add(cogpu_gpu_download *download, cogpu_download_chunk *chunk,
                                    uint32_t row, uint32_t count, cogpu_error *error);

/* Until all rows that were added of the chunk are in the raster, or one failed. */
cogpu_status cogpu_gpu_download_wait(cogpu_gpu_download *download, cogpu_download_chunk *chunk,
                                     cogpu_error *error);

/* Waits for all pieces; those of a download with `is_abandoned` are left out. NULL is allowed. */
void cogpu_gpu_download_close(cogpu_gpu_download *download, bool is_abandoned);

#endif
