/*
 * Composes a part of a mosaic on a device: warps, layers, conversion into the caller's raster. All
 * work is queued on one stream, in order, and is done when the composer is closed. What is uploaded
 * must stay until then.
 */
#ifndef COGPU_GPU_COMPOSER_H
#define COGPU_GPU_COMPOSER_H

#include "base/memory.h"
#include "gpu/device.h"
#include "plan/composite.h"
#include "plan/warp.h"

#include <pthread.h>

/* A table that is filled at `host`, and copied to `device`. */
typedef struct cogpu_gpu_table {
    void *host, *device;
    uint64_t bytes;
} cogpu_gpu_table;

typedef struct cogpu_gpu_composer {
    cogpu_gpu *gpu;
    cogpu_gpu_stream *stream;  /* NULL until it is open */
    uint8_t *scratch, *pinned; /* device memory for tables, and pinned memory of the same size, from
                                * which they are copied */
    uint64_t scratch_bytes;
    cogpu_arena *arena;   /* host memory that lives as long as the composer */
    pthread_mutex_t lock; /* of the rest */
    uint64_t scratch_used;
    struct cogpu_gpu_large_table *large_tables; /* that do not fit scratch memory */
} cogpu_gpu_composer;

/* Bytes of scratch memory for the tables of a warp, if none of its positions is exact, and for
 * those of a conversion. */
uint64_t cogpu_gpu_composer_warp_bytes(uint32_t width, uint32_t height, uint32_t bands);
uint64_t cogpu_gpu_composer_convert_bytes(const cogpu_read_plan *plan);

/* Waits for what is queued in `before`, a stream of the caller. */
cogpu_status cogpu_gpu_composer_open(cogpu_gpu_composer *composer, cogpu_gpu_device *device,
                                     void *before, cogpu_arena *arena, cogpu_error *error);
cogpu_status cogpu_gpu_composer_close(cogpu_gpu_composer *composer, cogpu_error *error);

/* A small copy to memory that is not scratch. */
cogpu_status cogpu_gpu_composer_upload(cogpu_gpu_composer *composer, const void *from,
                                       uint64_t bytes, void *to, cogpu_error *error);

cogpu_status cogpu_gpu_composer_begin(cogpu_gpu_composer *composer,
                                      const cogpu_composition *composition, cogpu_error *error);

/* A warp in two steps. The first may run on any thread, and for several warps at the same time; its
 * tables may lie in `arena`. The second is called in the order of the layers. */
cogpu_status cogpu_gpu_composer_fill_table(cogpu_gpu_composer *composer, const cogpu_warp_job *job,
                                           cogpu_arena *arena, cogpu_gpu_table *table,
                                           cogpu_error *error);
cogpu_status cogpu_gpu_composer_warp(cogpu_gpu_composer *composer, const cogpu_warp_job *job,
                                     const cogpu_gpu_table *table, cogpu_error *error);

cogpu_status cogpu_gpu_composer_add(cogpu_gpu_composer *composer,
                                    const cogpu_composition *composition,
                                    const cogpu_composite_layer *layer, cogpu_error *error);
cogpu_status cogpu_gpu_composer_finish(cogpu_gpu_composer *composer,
                                       const cogpu_composition *composition, cogpu_error *error);

/* Planes in device memory, and where they lie in the raster of a read. */
typedef struct cogpu_gpu_planes {
    const uint8_t *data;
    uint64_t stride_band; /* a multiple of COGPU_GPU_ALIGN; 0: all bands have the same plane */
    uint32_t target_x, target_y, width, height;
} cogpu_gpu_planes;

/* Copies planes into the raster, by the conversion of the plan, if it has one. The plan's storage
 * describes the planes. */
cogpu_status cogpu_gpu_composer_convert(cogpu_gpu_composer *composer, const cogpu_read_plan *plan,
                                        const cogpu_gpu_planes *planes, const cogpu_raster *raster,
                                        cogpu_error *error);

#endif
