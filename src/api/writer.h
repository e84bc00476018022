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

/* A level on its way: the rows that are not cut or not shrunk yet, which it holds itself, or which
 * are the caller's as long as a push lasts. */
struct cogpu_new_level {
    const cogpu_grid *grid;
    uint32_t first, end;     /* rows of the level that are at hand */
    cogpu_raster rows, mask; /* these, from `first` on */
    bool is_held;
    uint8_t *held, *held_mask; /* memory for `room` rows; packed, planes one after the other */
    size_t row_bytes;          /* of a plane */
    uint32_t room;
    uint32_t cut;        /* rows of the level that are in blocks */
    cogpu_shrink shrink; /* into the next level, if there is one */
    uint32_t shrunk;     /* rows of the next level that are made */
    cogpu_spill *spill;  /* NULL: blocks go straight to the file */
    uint64_t spilled;    /* bytes in it */
    struct cogpu_places pixels, masks;
};

/* A block on its way from the rows to the file. */
struct cogpu_berth {
    struct cogpu_new_level *level;
    cogpu_new_block block;
    uint8_t *memory; /* of the block, cut, then encoded, with room for what a COG has around it */
    size_t room;
    size_t bytes; /* encoded; 0: sparse */
    bool is_done;
    cogpu_status status;
    cogpu_error error;
};

/* Blocks in flight, in the order of the file: number n has berth n modulo their count. */
struct cogpu_line {
    cogpu_pool_job *job; /* NULL: not open */
    struct cogpu_berth *berths;
    uint32_t berth_count;
    size_t berth_bytes;
    uint64_t added;       /* blocks so far */
    pthread_mutex_t lock; /* of what follows, and of the berths' is_done */
    pthread_cond_t moved;
    uint64_t gone;       /* of these, out of their berths */
    bool is_leaving;     /* a thread gives blocks to the file; no other does meanwhile */
    bool is_stopped;     /* blocks leave their berths, but go nowhere */
    cogpu_status status; /* the first failure in the order of the file */
    cogpu_error error;
    uint8_t *small; /* small blocks, until one write is worth while */
    size_t small_bytes;
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
    cogpu_seat **seats; /* shrinking and the line have them at once, but none of their memory */
    uint32_t seat_count;
    struct cogpu_line line;
    bool is_put; /* blocks come from elsewhere, and in any order */
    cogpu_written written;
    cogpu_status failed; /* what a push came to: nothing goes on after a failure */
};

/* Fails where a file that ends there would have to be a BigTIFF, and is none. */
cogpu_status cogpu_writer_check_size(const cogpu_writer *writer, uint64_t end, cogpu_error *error);

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

/* write_blocks.c: one block out of a raster of its pixels, by one thread; no bytes: it is sparse.
 */
cogpu_status cogpu_encode_block(cogpu_seat *seat, const cogpu_write_plan *plan,
                                const cogpu_grid *grid, const cogpu_new_block *block,
                                const cogpu_raster *from, uint8_t *to, size_t room, size_t *got,
                                cogpu_error *error);
/* Puts around its bytes what a COG has there: its size before them, their last four behind. */
enum { COGPU_LEADER = 4, COGPU_TRAILER = 4 };
void cogpu_frame_block(uint8_t *payload, size_t bytes);

/* The line: opened; a row of blocks cut and set on its way, so that the level's rows may change;
 * all that is on its way brought to the file. Each tells of a failure of the blocks before, once
 * and for all. */
cogpu_status cogpu_writer_open_line(cogpu_writer *writer, cogpu_error *error);
cogpu_status cogpu_writer_add_row(cogpu_writer *writer, struct cogpu_new_level *level, uint32_t row,
                                  cogpu_error *error);
cogpu_status cogpu_writer_drain(cogpu_writer *writer, cogpu_error *error);
/* What is on its way is dropped. */
void cogpu_writer_close_line(cogpu_writer *writer);

/* write_put.c: blocks that were put get their places in the file, from `end` on, which they move
 * on; and go there. */
cogpu_status cogpu_writer_place_put(cogpu_writer *writer, struct cogpu_new_level *level,
                                    uint64_t *end, cogpu_error *error);
cogpu_status cogpu_writer_copy_put(cogpu_writer *writer, struct cogpu_new_level *level,
                                   cogpu_error *error);

#endif
