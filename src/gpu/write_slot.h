/*
 * State of the GPU write pipeline, shared by its files: write_pipeline.c (batches), write_memory.c
 * (sizes and memory of slots), write_rows.c (rows in and out of device memory).
 */
#ifndef COGPU_GPU_WRITE_SLOT_H
#define COGPU_GPU_WRITE_SLOT_H

#include "gpu/driver/gds.h"
#include "gpu/write_pipeline.h"

/* SLOTS: one batch is packed, one encodes, one leaves the device. */
enum { COGPU_WRITE_SLOTS = 3, COGPU_STAGING_BUFFERS = 2 };
/* Allocations beyond the memory that the pipeline was opened with. */
enum { COGPU_EXTRA_ALLOCATIONS = 2 * COGPU_LEVELS_MAX + COGPU_STAGING_BUFFERS };

/* Offsets in a slot. Device memory and pinned memory begin with the same tables. The compacted
 * bytes reuse the memory of packed blocks and scratch, which compaction no longer needs.
 *
 *     device   | pack | raw | order | encoded | sizes | packed blocks | scratch | encoded blocks |
 *              | tables                               | compacted bytes         |                |
 *     pinned   | tables                               | compacted bytes |
 */
struct cogpu_write_layout {
    uint32_t blocks; /* capacity */
    /* Tables: cogpu_pack_block at offset 0, then */
    uint64_t raw_blocks; /* cogpu_raw_block */
    uint64_t order;      /* numbers of blocks in file order */
    uint64_t encoded;    /* cogpu_compacted_block, one more than blocks */
    uint64_t sizes;      /* encoded bytes of each block */
    uint64_t compacted;  /* also: packed blocks */
    uint64_t scratch, encoder_output;
    uint64_t end, pinned_end;
    uint64_t packed_stride, output_stride; /* from one block to the next */
    uint64_t scratch_bytes;
};

struct cogpu_write_slot {
    cogpu_gpu_write_batch batch; /* first: a batch that the caller returns is its slot */
    uint8_t *device, *pinned;
    cogpu_gpu_stream *stream;
    cogpu_gpu_event *packed, *sized, *copied;
    cogpu_gpu_batch_block *blocks;      /* in file order */
    uint32_t pixel_blocks, mask_blocks; /* pixels fill tables from the front, masks from the end */
    uint64_t page_offset;               /* of the compacted bytes, behind the layout's offset */
    cogpu_gds_request *requests;        /* of cuFile */
    cogpu_gds_write_split split;
    cogpu_gds_flight *flight;
    cogpu_span *unwritten;
};

struct cogpu_staging_buffer {
    uint8_t *pinned;
    void *device;
    cogpu_gpu_event *uploaded;
};

struct cogpu_gpu_writer {
    cogpu_gpu *gpu;
    cogpu_gpu_writer_options options;
    /* Encoders. NULL: blocks stay as packed. */
    const cogpu_gpu_encoder *pixel_encoder, *mask_encoder;
    void *encoder_state; /* of the pixel encoder */
    bool needs_cpu_encoding;
    bool has_leaders; /* and trailers: a COG */
    /* Direct ways to the output. */
    cogpu_gds_file *file; /* NULL: cuFile is not used */
    cogpu_gds_context gds_context;
    bool is_buffer_pinned;
    /* Memory. */
    struct cogpu_write_layout layout;
    cogpu_gpu_memory *memory;
    uint8_t *device; /* the part of it in use: with cuFile from the first page on */
    uint64_t rows_used;
    void *extras[COGPU_EXTRA_ALLOCATIONS];
    uint32_t extra_count;
    /* Rows. */
    cogpu_gpu_stream *stream;
    cogpu_gpu_event *stream_order; /* between our stream and the caller's */
    struct cogpu_staging_buffer staging[COGPU_STAGING_BUFFERS];
    uint32_t next_staging;
    /* Batches that passed each step. Batch n uses slot n modulo the number of slots. */
    struct cogpu_write_slot slots[COGPU_WRITE_SLOTS];
    uint64_t compacted, sized, finished;
};

/* write_memory.c */
uint8_t *cogpu_gpu_memory_first_page(const cogpu_gpu_memory *memory);
uint64_t cogpu_gpu_memory_page_bytes(const cogpu_gpu_memory *memory);
/* Sizes of a block for its encoder. */
cogpu_raw_block cogpu_write_raw_block(const cogpu_gpu_writer *writer, const cogpu_block_grid *grid,
                                      const cogpu_new_block *block);
int cogpu_write_compression_level(const cogpu_gpu_writer *writer, bool is_mask);
/* Chooses how many blocks a batch has, and allocates memory for all slots. */
cogpu_status cogpu_write_open_memory(cogpu_gpu_writer *writer, cogpu_error *error);

/* write_rows.c */
cogpu_status cogpu_write_open_rows(cogpu_gpu_writer *writer, cogpu_error *error);
void cogpu_write_close_rows(cogpu_gpu_writer *writer);

static inline const cogpu_gpu_encoder *cogpu_write_encoder(const cogpu_gpu_writer *writer,
                                                           bool is_mask) {
    return is_mask ? writer->mask_encoder : writer->pixel_encoder;
}

#endif
