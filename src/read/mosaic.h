/*
 * Reads of mosaics, for the files of this module.
 *
 * A window of a mosaic is read a chunk at a time. A chunk is as large as memory allows:
 *
 *     plan      which members it needs, and which of their pixels     mosaic.c, grid/layer.c
 *     read      all source windows of the chunk, in common batches    part.c
 *     compose   warp each layer, combine layers                       mosaic_compose.c
 *     convert   into the caller's raster, unless it is written to     mosaic_compose.c
 *               directly
 */
#ifndef COGPU_READ_MOSAIC_H
#define COGPU_READ_MOSAIC_H

#include "context/mosaic.h"
#include "plan/composite.h"
#include "read/job.h"

/* The read of one window. */
struct cogpu_mosaic_read {
    struct cogpu_read_job *job;
    struct cogpu_read_window *window;
    cogpu_mosaic *mosaic;
    uint32_t level;
    bool is_validity; /* of a mask: which pixels have a source */
    uint32_t *bands;  /* that are composed, of the mosaic, from 1 */
    uint32_t band_count;
    const uint8_t (*fill)[16]; /* a sample for each of them */
    uint64_t budget;           /* bytes of a chunk */
    uint32_t most_files;       /* that a chunk should keep open */
    const struct cogpu_chunk_steps *steps;
    uint64_t pixels, done_pixels;
};

/* A member's part in a chunk. */
struct cogpu_chunk_layer {
    cogpu_layer plan;
    const cogpu_file *file;            /* acquired */
    cogpu_raster source, mask;         /* pixels of plan.source; the mask, if the plan reads it */
    cogpu_raster target, valid;        /* of plan.target; validity, if it is not direct */
    uint32_t first_window, end_window; /* of the chunk's windows */
    cogpu_arena arena;                 /* of its positions, which any thread computes */
    struct cogpu_gpu_table *table;     /* of mosaic_device.c: of its warp */
    cogpu_error error;                 /* of that */
    bool is_covered;                   /* the source window has all pixels that are needed */
    bool is_direct; /* its pixels go straight into the chunk's: no other layer is there */
    bool is_bad;    /* left out: it could not be read */
};

struct cogpu_mosaic_chunk {
    const struct cogpu_mosaic_read *read;
    cogpu_box box; /* pixels of the mosaic's level */
    cogpu_arena arena;
    struct cogpu_chunk_layer *layers;
    uint32_t layer_count;
    cogpu_layer_request request;
    bool needs_exact; /* an estimated source window lacks pixels: the chunk has to be read again */
    bool is_composed; /* at least one layer is not direct */
    struct cogpu_read_window *windows; /* of all layers */
    uint32_t window_count;
    /* Memory of the chunk, in host memory or on the window's device. */
    const uint8_t (*fill)[16]; /* a copy of read->fill */
    cogpu_raster pixels; /* of the mosaic's type: a part of the caller's raster, or packed planes */
    cogpu_composition composition;
    uint8_t *layer_pixels, *layer_valid; /* of one layer: packed planes */
    uint8_t *step_memory;                /* of mosaic_device.c */
    uint64_t step_bytes, memory_bytes;
    uint8_t *memory;
    struct cogpu_chunk_device *device; /* of mosaic_device.c */
};

/* ---- mosaic.c ---- */

/* Leaves a bad member out, or ends the read with its error. */
cogpu_status cogpu_mosaic_leave_out(const struct cogpu_mosaic_read *read, uint32_t member,
                                    const cogpu_error *why, cogpu_error *error);

/* ---- mosaic_compose.c ---- */

/* Bytes that the chunk takes beside source pixels: layers, validity, sums. */
uint64_t cogpu_chunk_compose_bytes(const struct cogpu_mosaic_chunk *chunk);

/* Allocates the chunk's memory, reads the windows of its layers, and writes the chunk into the
 * caller's raster. */
cogpu_status cogpu_chunk_execute(struct cogpu_mosaic_chunk *chunk, cogpu_error *error);

#endif
