/*
 * Output of a writer: the only module that assigns file offsets and writes to the sink. Encoders
 * deliver blocks in file order, one by one (CPU) or in batches (GPU). output.c writes them while
 * rows come, layout.c decides the order of the file when it is opened and closed.
 *
 *     COG     header, ghost area, IFDs and arrays, blocks from the smallest level to level 0
 *     other   header, blocks of level 0, of level 1, ..., IFDs and arrays
 *
 * Blocks of a level go straight to the file if their offset is known, otherwise to a spill.
 */
#ifndef COGPU_WRITE_OUTPUT_H
#define COGPU_WRITE_OUTPUT_H

#include "gpu/write_pipeline.h"
#include "io/sink.h"
#include "tiff/write.h"

struct cogpu_write_level;

/* Where the blocks of a directory are: offsets in the file, or in the level's spill until that is
 * copied. Sparse blocks have 0 bytes. */
struct cogpu_block_table {
    uint64_t *offsets, *bytes;
    uint64_t *external; /* of blocks encoded elsewhere: offset in the spill plus 1; 0: missing */
};

struct cogpu_write_output {
    cogpu_out *sink;        /* NULL once committed */
    uint64_t end;           /* of the bytes that have their offset in the file */
    uint64_t max_bytes;     /* of the file */
    uint64_t spills_offset; /* where spills go; 0: behind all others */
    uint64_t gap_end;       /* where level 0 begins for now, behind a gap for spills of any size;
                             * 0: there is no gap */
    cogpu_new_directory *directories; /* in file order */
    uint32_t directory_count;
    uint8_t *coalesced; /* small blocks that follow each other, until one write pays off */
    size_t coalesced_bytes;
    uint64_t coalesced_offset;
    cogpu_written written;
};

/* ---- layout.c ------------------------------------------------------------------------------ */

/* Decides on BigTIFF and where blocks begin, from the directories and the worst case of blocks. */
cogpu_status cogpu_write_output_plan(cogpu_writer *writer, const cogpu_profile *profile,
                                     cogpu_error *error);
/* Opens the sink, the tables of all levels and their spills. */
cogpu_status cogpu_write_output_open(cogpu_writer *writer, const cogpu_sink *sink, cogpu_http *http,
                                     cogpu_error *error);
/* Spills for all levels, and a table of external blocks: they come in any order. */
cogpu_status cogpu_write_output_open_external(cogpu_writer *writer, cogpu_error *error);
/* All overviews are complete, and no block of level 0 is there yet: so its blocks get their final
 * offsets as they come, and need no spill. */
void cogpu_write_output_reserve_overviews(cogpu_writer *writer);
/* Assigns the offsets of all spilled blocks, writes header, directories and spills, commits. */
cogpu_status cogpu_write_output_finish(cogpu_writer *writer, cogpu_error *error);
/* Aborts the sink if it is not committed, and releases all memory. */
void cogpu_write_output_close(cogpu_writer *writer);

/* Fails if a file that ends there had to be a BigTIFF and is none. */
cogpu_status cogpu_write_output_check_size(const cogpu_writer *writer, uint64_t end,
                                           cogpu_error *error);
/* Upper bound of all blocks of a level in the file. */
uint64_t cogpu_level_max_bytes(const cogpu_write_plan *plan, const cogpu_block_grid *grid);

/* ---- output.c ------------------------------------------------------------------------------ */

/* Writes leader and trailer around a payload, which needs memory before and behind it. */
void cogpu_add_leader_trailer(uint8_t *payload, size_t bytes);

/* The next block of a level, 0 bytes: sparse. `payload` has memory for leader and trailer around
 * it. CANCELLED if the progress function says so. */
cogpu_status cogpu_write_output_write_block(cogpu_writer *writer, struct cogpu_write_level *level,
                                            const cogpu_new_block *block, uint8_t *payload,
                                            size_t bytes, cogpu_error *error);
/* A batch of a device, in two steps: offsets of all its blocks as soon as their sizes are known,
 * then the bytes, unless they arrived by themselves. *is_contiguous: all blocks are in the file
 * from batch->file_offset on. */
cogpu_status cogpu_write_output_assign_batch(cogpu_writer *writer, cogpu_gpu_write_batch *batch,
                                             bool *is_contiguous, cogpu_error *error);
cogpu_status cogpu_write_output_write_batch(cogpu_writer *writer,
                                            const cogpu_gpu_write_batch *batch, cogpu_error *error);
/* Memory of the sink for a contiguous batch; NULL if it has none. */
cogpu_status cogpu_write_output_batch_buffer(cogpu_writer *writer,
                                             const cogpu_gpu_write_batch *batch, uint8_t **to,
                                             cogpu_error *error);
/* A block encoded elsewhere goes to its level's spill, with leader and trailer in a COG. */
cogpu_status cogpu_write_output_spill_block(cogpu_writer *writer, struct cogpu_write_level *level,
                                            const void *encoded, size_t bytes, uint64_t *offset,
                                            cogpu_error *error);
/* Writes what was coalesced. */
cogpu_status cogpu_write_output_flush(cogpu_writer *writer, cogpu_error *error);

/* Copies by all threads; and towards the beginning, by `gap` bytes, where both ranges may overlap.
 */
void cogpu_write_output_copy(cogpu_writer *writer, uint8_t *to, const uint8_t *from, size_t bytes);
void cogpu_write_output_move_down(cogpu_writer *writer, uint8_t *to, size_t gap, size_t bytes);

#endif
