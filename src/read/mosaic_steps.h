/* The steps of a chunk that differ between host memory and a device. */
#ifndef COGPU_READ_MOSAIC_STEPS_H
#define COGPU_READ_MOSAIC_STEPS_H

#include "read/mosaic.h"

struct cogpu_chunk_steps {
    /* Bytes of chunk->step_memory. */
    uint64_t (*count_bytes)(const struct cogpu_mosaic_chunk *chunk);
    /* Allocates the chunk's memory. `close` frees it, after all work is done, and returns `status`,
     * or what failed meanwhile. */
    cogpu_status (*open)(struct cogpu_mosaic_chunk *chunk, uint64_t bytes, uint8_t **memory,
                         cogpu_error *error);
    cogpu_status (*close)(struct cogpu_mosaic_chunk *chunk, cogpu_status status,
                          cogpu_error *error);
    /* After the memory is laid out: copies what steps need into it. */
    cogpu_status (*prepare)(struct cogpu_mosaic_chunk *chunk, cogpu_error *error);
    /* Prepares the warp of a layer whose positions are known. Any thread calls it, while source
     * pixels are read; NULL: there is nothing to prepare. */
    cogpu_status (*prepare_warp)(const struct cogpu_mosaic_chunk *chunk,
                                 struct cogpu_chunk_layer *layer, const cogpu_warp_job *job,
                                 cogpu_error *error);
    /* plan/composite.h; plan/warp.h. */
    cogpu_status (*begin)(struct cogpu_mosaic_chunk *chunk, cogpu_error *error);
    cogpu_status (*warp)(struct cogpu_mosaic_chunk *chunk, const struct cogpu_chunk_layer *layer,
                         const cogpu_warp_job *job, cogpu_error *error);
    /* plan/rectangle.h, into chunk->layer_pixels and _valid. On the CPU alone. */
    cogpu_status (*rectangle)(struct cogpu_mosaic_chunk *chunk,
                              const struct cogpu_chunk_layer *layer, cogpu_error *error);
    cogpu_status (*add)(struct cogpu_mosaic_chunk *chunk, const cogpu_composition *part,
                        const cogpu_composite_layer *layer, cogpu_error *error);
    cogpu_status (*finish)(struct cogpu_mosaic_chunk *chunk, cogpu_error *error);
    /* The chunk's pixels, or their validity, into the caller's raster. */
    cogpu_status (*convert)(struct cogpu_mosaic_chunk *chunk, cogpu_error *error);
};

extern const struct cogpu_chunk_steps cogpu_chunk_steps_on_host, cogpu_chunk_steps_on_device;

/* The chunk as blocks of a plan without compression, a block for each band: for the conversion by
 * the plan of the window. `storage` is filled. */
cogpu_read_plan cogpu_chunk_plan(const struct cogpu_mosaic_chunk *chunk, cogpu_storage *storage);

#endif
