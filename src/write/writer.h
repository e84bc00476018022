/*
 * State of a writer, shared by the files of this module. README.md has the data flow and a table of
 * the files.
 */
#ifndef COGPU_WRITE_WRITER_H
#define COGPU_WRITE_WRITER_H

#include "cogpu_distributed.h"
#include "context/context.h"
#include "cpu/downsample.h"
#include "plan/raster.h"
#include "write/blocks.h"
#include "write/output.h"

/* A pyramid level while it is written. Its rows [first_row, end_row) are at hand: in the level's
 * own buffer, or in the caller's raster as long as a call lasts. */
struct cogpu_write_level {
    const cogpu_block_grid *grid;
    /* Rows. */
    uint32_t first_row, end_row;
    cogpu_raster pixels, mask; /* these rows, from first_row on */
    bool is_buffered;
    uint8_t *buffer, *mask_buffer; /* for capacity_rows rows; planes one after the other */
    size_t row_bytes;              /* of a plane */
    uint32_t capacity_rows;
    /* Progress. */
    uint32_t packed_rows;        /* of the level, in blocks */
    cogpu_downsample downsample; /* into the next level, if there is one */
    uint32_t downsampled_rows;   /* of the next level */
    /* Output. */
    cogpu_spill *spill; /* NULL: blocks go straight to the file */
    uint64_t spilled_bytes;
    struct cogpu_block_table pixel_blocks, mask_blocks;
};

/* Where rows are packed, downsampled and encoded: on the CPU (host.c) or on a device (device.c).
 * All rows of levels are in its memory. Both deliver encoded blocks to the output, in order. */
typedef struct cogpu_write_backend {
    bool keeps_overviews; /* encodes faster than files are written: spills stay in memory */
    bool (*can_access)(const cogpu_writer *writer, const cogpu_raster *rows);
    /* Rows of the caller, in host memory or accessible: calls cogpu_writer_advance_rows. */
    cogpu_status (*add_rows)(cogpu_writer *writer, const cogpu_raster *rows,
                             const cogpu_raster *mask, cogpu_error *error);
    /* Memory for rows, until the backend is closed. */
    cogpu_status (*allocate)(cogpu_writer *writer, uint64_t bytes, void **memory,
                             cogpu_error *error);
    /* Copies `count` rows of the caller, from row `first` on, into the buffer of level 0, behind
     * the `buffered` rows that are there. */
    cogpu_status (*copy_rows)(cogpu_writer *writer, const cogpu_raster *rows,
                              const cogpu_raster *mask, uint32_t first, uint32_t count,
                              uint32_t buffered, cogpu_error *error);
    /* Computes the next `count` rows of the level behind this one. */
    cogpu_status (*downsample_rows)(cogpu_writer *writer, const struct cogpu_write_level *level,
                                    uint32_t count, cogpu_error *error);
    /* Moves `count` rows of the buffer, from row `from` on, to its beginning. */
    cogpu_status (*shift_rows)(cogpu_writer *writer, const struct cogpu_write_level *level,
                               uint32_t from, uint32_t count, cogpu_error *error);
    /* Packs a row of blocks and starts to encode it. Then the level's rows may change. */
    cogpu_status (*encode_row)(cogpu_writer *writer, struct cogpu_write_level *level, uint32_t row,
                               cogpu_error *error);
    /* Delivers all blocks in flight to the output. */
    cogpu_status (*drain)(cogpu_writer *writer, cogpu_error *error);
    void (*close)(cogpu_writer *writer);
} cogpu_write_backend;
extern const cogpu_write_backend cogpu_host_backend, cogpu_device_backend;

enum cogpu_writer_state {
    COGPU_WRITER_OPEN,           /* nothing was written yet */
    COGPU_WRITER_WRITING_ROWS,   /* by cogpu_writer_write_rows */
    COGPU_WRITER_WRITING_BLOCKS, /* encoded elsewhere, by cogpu_writer_write_block */
    COGPU_WRITER_FAILED          /* only cogpu_writer_abort is left */
};

/* Of external blocks of level 0: with their bytes, or only their sizes, while other machines upload
 * them. */
enum cogpu_external_bytes { COGPU_EXTERNAL_UNKNOWN, COGPU_EXTERNAL_HERE, COGPU_EXTERNAL_ELSEWHERE };

struct cogpu_writer {
    enum cogpu_writer_state state;
    cogpu_status failure; /* of state FAILED */
    /* Set when the writer is opened. */
    cogpu_arena arena;
    cogpu_write_plan plan;
    cogpu_meter meter;      /* zero if the profile has no progress function */
    cogpu_context *context; /* may be NULL */
    struct {
        cogpu_pool *pool;
        cogpu_worker **workers; /* the queue and downsampling use separate scratch of them */
        uint32_t count;
    } threads;
    struct cogpu_write_output output;
    /* Set with the first rows. */
    struct {
        const cogpu_write_backend *calls; /* NULL before */
        cogpu_device_kind device;         /* requested by the profile, then in use */
        uint32_t device_index;
        cogpu_gpu_device *opened; /* of a device */
        cogpu_gpu_writer *pipeline;
        cogpu_gpu_memory memory;
    } backend;
    struct cogpu_encode_queue queue;
    /* Change with each row. */
    uint32_t rows; /* that were written */
    struct cogpu_write_level levels[COGPU_LEVELS_MAX];
    enum cogpu_external_bytes external;
};

/* writer.c: the engine behind cogpu_writer_open, _write_rows and _close. */
cogpu_status cogpu_writer_create(const cogpu_sink *sink, const cogpu_profile *profile,
                                 cogpu_writer **writer, cogpu_error *error);
cogpu_status cogpu_writer_append_rows(cogpu_writer *writer, const cogpu_raster *rows,
                                      const cogpu_raster *mask, cogpu_error *error);
cogpu_status cogpu_writer_finish(cogpu_writer *writer, cogpu_written *written, cogpu_error *error);

/* A failure of a call that changes the file is final. Returns `status`. */
cogpu_status cogpu_writer_note_failure(cogpu_writer *writer, cogpu_status status);

/* tags.c: all directories, without offsets and sizes of blocks. */
cogpu_status cogpu_writer_describe(cogpu_writer *writer, const cogpu_profile *profile,
                                   cogpu_error *error);

/* rows.c: how a level from 1 on is made of the one before it, and all of them. */
cogpu_status cogpu_plan_downsample(const cogpu_write_plan *plan, const cogpu_profile *profile,
                                   uint32_t level, cogpu_downsample *downsample,
                                   cogpu_error *error);
cogpu_status cogpu_writer_plan_levels(cogpu_writer *writer, const cogpu_profile *profile,
                                      cogpu_error *error);
/* Rows of level 0 pass down the pyramid. The backend calls this, in `add_rows`. */
cogpu_status cogpu_writer_advance_rows(cogpu_writer *writer, const cogpu_raster *rows,
                                       const cogpu_raster *mask, cogpu_error *error);
/* `count` rows of `raster`, the level's pixels or mask, from row `first` of the level on. */
cogpu_raster cogpu_level_rows(const struct cogpu_write_level *level, const cogpu_raster *raster,
                              uint32_t first, uint32_t count);
/* Bytes of a level's buffers. */
uint64_t cogpu_level_buffer_bytes(const cogpu_write_plan *plan,
                                  const struct cogpu_write_level *level);
uint64_t cogpu_level_mask_buffer_bytes(const cogpu_write_plan *plan,
                                       const struct cogpu_write_level *level);

/* host.c: cogpu_cpu_pack_rows by all threads. */
void cogpu_writer_copy_rows(const cogpu_writer *writer, const cogpu_raster *from, uint32_t first,
                            uint32_t rows, bool is_planar, size_t band_bytes, uint8_t *to);

/* device.c: makes the device of the profile or of the first rows the backend, if its blocks fit
 * there. */
cogpu_status cogpu_writer_open_device(cogpu_writer *writer, cogpu_error *error);
/* download.c: rows that the backend cannot access, by way of host memory. */
cogpu_status cogpu_writer_download_rows(cogpu_writer *writer, const cogpu_raster *rows,
                                        const cogpu_raster *mask, cogpu_error *error);

/* external_blocks.c: the plan of a profile without a writer; a raster that must have this many
 * pixels, and gets its strides. */
cogpu_status cogpu_plan_profile(const cogpu_profile *profile, cogpu_write_plan *plan,
                                cogpu_error *error);
cogpu_status cogpu_check_pixels(cogpu_raster *pixels, cogpu_type type, uint32_t bands,
                                uint32_t width, uint32_t height, cogpu_error *error);
/* The engine behind cogpu_encode_block and cogpu_writer_write_block. */
cogpu_status cogpu_encode_external(const cogpu_profile *profile, uint32_t level,
                                   cogpu_content content, uint64_t block,
                                   const cogpu_raster *pixels, cogpu_memory *encoded,
                                   cogpu_error *error);
cogpu_status cogpu_writer_append_block(cogpu_writer *writer, uint32_t level, cogpu_content content,
                                       uint64_t block, const void *encoded, size_t bytes,
                                       cogpu_error *error);

/* overview.c: the engine behind cogpu_profile_level_layout, cogpu_overview_source_window and
 * cogpu_overview_compute. */
cogpu_status cogpu_plan_level_layout(const cogpu_profile *profile, uint32_t level,
                                     cogpu_level_layout *layout, cogpu_error *error);
cogpu_status cogpu_plan_overview_source(const cogpu_profile *profile, uint32_t level,
                                        const cogpu_window *window, cogpu_window *source,
                                        cogpu_error *error);
cogpu_status cogpu_downsample_overview(const cogpu_profile *profile, uint32_t level,
                                       const cogpu_window *window, const cogpu_raster *pixels,
                                       const cogpu_raster *mask, const cogpu_raster *to,
                                       const cogpu_raster *to_mask, cogpu_error *error);

#endif
