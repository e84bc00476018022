/*
 * A writer, for the files of this room that do its steps: write.c leads, write_rows.c holds rows
 * until they are cut and shrunk, write_blocks.c encodes them, write_tags.c makes the directories.
 */
#ifndef COGPU_API_WRITER_H
#define COGPU_API_WRITER_H

#include "api/room.h"
#include "backend/cpu/cpu_cut.h"
#include "backend/cpu/cpu_shrink.h"
#include "io/sink.h"
#include "tiff/write.h"

/* Where the blocks of a directory are: in the file, or as long as that is not known in the level's
 * spill. Sparse ones have no bytes. */
struct cogpu_places {
    uint64_t *offsets, *bytes;
    uint64_t *spilled; /* of a writer that is put to: where in the spill, plus 1; 0: not put yet */
};

/* A level on its way: the rows that are not cut or not shrunk yet. */
struct cogpu_new_level {
    const cogpu_grid *grid;
    uint8_t *rows, *mask; /* packed, `room` of them; planes one after the other */
    size_t row_bytes;     /* of a plane */
    uint32_t room;        /* rows that fit */
    uint32_t first, end;  /* rows of the level that are held */
    uint32_t cut;         /* rows of the level that are encoded */
    cogpu_shrink shrink;  /* into the next level, if there is one */
    uint32_t shrunk;      /* rows of the next level that are made */
    cogpu_spill *spill;   /* NULL: blocks go straight to the file */
    uint64_t spilled;     /* bytes in it */
    struct cogpu_places pixels, masks;
};

struct cogpu_writer {
    cogpu_arena arena;
    cogpu_write_plan plan;
    cogpu_out *out;
    uint64_t end; /* of what is in the file */
    struct cogpu_new_level levels[COGPU_LEVELS_MAX];
    uint32_t rows;                    /* that were pushed */
    cogpu_new_directory *directories; /* in the file's order */
    uint32_t directory_count;
    cogpu_context *context; /* may be NULL */
    cogpu_pool *pool;
    cogpu_seat **seats;
    uint32_t seat_count;
    uint8_t *slots; /* memory for blocks that are encoded together */
    size_t slot_bytes;
    uint32_t slot_count;
    bool is_put; /* blocks come from elsewhere, and in any order */
    cogpu_written written;
    cogpu_status failed; /* what a push came to: nothing goes on after a failure */
};

/* write_tags.c: all directories, but for what is known of blocks only at the end. */
cogpu_status cogpu_writer_describe(cogpu_writer *writer, const cogpu_profile *profile,
                                   cogpu_error *error);

/* write_rows.c: how each level is made of the one before it; memory for their rows; rows on their
 * way. */
cogpu_status cogpu_writer_plan_shrinks(cogpu_writer *writer, const cogpu_profile *profile,
                                       cogpu_error *error);
cogpu_status cogpu_writer_open_rows(cogpu_writer *writer, cogpu_error *error);
cogpu_status cogpu_writer_take(cogpu_writer *writer, const cogpu_raster *rows,
                               const cogpu_raster *mask, cogpu_error *error);

/* write_blocks.c: one block out of packed rows, by one thread; no bytes: it is sparse. */
cogpu_status cogpu_encode_block(cogpu_seat *seat, const cogpu_write_plan *plan,
                                const cogpu_grid *grid, const cogpu_new_block *block,
                                const uint8_t *from, size_t row_bytes, uint8_t *to, size_t room,
                                size_t *got, cogpu_error *error);
/* Its bytes with what a COG has around them; `to` may overlap `from`, and has COGPU_FRAME bytes
 * more. Returns how many; *payload is where its own begin. */
enum { COGPU_FRAME = 8 };
size_t cogpu_frame_block(bool is_cog, const uint8_t *from, size_t bytes, uint8_t *to,
                         size_t *payload);

/* Memory for blocks; one row of blocks to the file or the spill. */
cogpu_status cogpu_writer_open_blocks(cogpu_writer *writer, cogpu_error *error);
cogpu_status cogpu_writer_put_row(cogpu_writer *writer, struct cogpu_new_level *level, uint32_t row,
                                  cogpu_error *error);

/* write_put.c: blocks that were put get their places in the file, from `end` on, which they move
 * on; and go there. */
cogpu_status cogpu_writer_place_put(cogpu_writer *writer, struct cogpu_new_level *level,
                                    uint64_t *end, cogpu_error *error);
cogpu_status cogpu_writer_copy_put(cogpu_writer *writer, struct cogpu_new_level *level,
                                   cogpu_error *error);

#endif
