/*
 * Warps on the device: one source window into one target window, with the bits of cpu/warp.c.
 * README.md of this folder has the idea.
 */
#ifndef COGPU_KERNELS_WARP_WARP_ARGS_H
#define COGPU_KERNELS_WARP_WARP_ARGS_H

#include "pixel/warp.h"

enum {
    COGPU_WARP_STRIP_THREADS = 256, /* of kernels that work on strips of cells */
    COGPU_WARP_STRIP_CELLS = 8,     /* side by side: 128 columns of the target */
    COGPU_WARP_STRIP_BANDS = 16,    /* at most */
    COGPU_WARP_THREADS = 128,       /* of kernels with a thread for each pixel */
    COGPU_WARP_PIECE_COLUMNS = 32,  /* of their thread blocks */
    COGPU_WARP_PIECE_ROWS = COGPU_WARP_THREADS / COGPU_WARP_PIECE_COLUMNS
};

/* Sample types with strip kernels of their own: source and target have it. */
#define COGPU_WARP_STRIP_TYPES(X)                                                                  \
    X(u8, COGPU_TYPE_U8)                                                                           \
    X(u16, COGPU_TYPE_U16)                                                                         \
    X(i16, COGPU_TYPE_I16)                                                                         \
    X(f32, COGPU_TYPE_F32)

/* Arguments of one launch. The tables that `warp` points to are on the device. */
struct cogpu_warp_args {
    struct warp_args warp;
    uint32_t across, down; /* tasks of thread blocks: in a row, in a column */
    /* Strip kernels: all taps of a position are in the source window if it is in here. */
    double left, top, right, bottom;
};

#ifndef __CUDACC__
#include "gpu/driver/gpu.h"
#include "plan/warp.h"

/*
 * A job's rasters are on the device here, and all else is in host memory. What kernels read of that
 * - coordinates and rules - goes up as one table:
 *
 *     uint64_t bytes = cogpu_gpu_warp_table_bytes(&job);
 *     cogpu_gpu_warp_fill_table(&job, pinned);
 *     calls->copy_up(gpu, table, pinned, bytes, stream, &error);
 *     cogpu_gpu_warp(gpu, &job, table, stream, &error);
 *
 * `table` is aligned to 16 bytes. It serves all jobs with the same coordinates, rules and fill.
 */
uint64_t cogpu_gpu_warp_table_bytes(const cogpu_warp_job *job);
void cogpu_gpu_warp_fill_table(const cogpu_warp_job *job, void *table);

/* False for the mode of areas that are too large: its time grows with their square. */
bool cogpu_gpu_can_warp(const cogpu_warp *warp);

/* As cogpu_cpu_warp. Asynchronous. */
cogpu_status cogpu_gpu_warp(cogpu_gpu *gpu, const cogpu_warp_job *job, const void *table,
                            cogpu_gpu_stream *stream, cogpu_error *error);

/* The kernel, its arguments and the number of thread blocks that cogpu_gpu_warp launches. */
struct cogpu_warp_launch {
    const cogpu_kernel *kernel;
    struct cogpu_warp_args args;
    uint32_t blocks;
};
cogpu_status cogpu_gpu_warp_prepare(const cogpu_warp_job *job, const void *table,
                                    struct cogpu_warp_launch *launch, cogpu_error *error);
#endif

#endif
