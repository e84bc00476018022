/*
 * A writer, for the files of this room that do its steps: write.c leads, write_rows.c holds rows
 * until they are cut and shrunk, by the host (write_host.c, write_blocks.c) or a device
 * (write_device.c), write_tags.c makes the directories.
 */
#ifndef COGPU_API_WRITER_H
#define COGPU_API_WRITER_H

#include "api/room.h"
#include "backend/cpu/cpu_cut.h"
#include "backend/cpu/cpu_shrink.h"
#include "backend/cuda/gpu_write.h"
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
    size_t bytes;  /* encoded; 0: sparse */
    bool is_ready; /* for the encoder: a device has predicted it, and seen whether it is sparse */
    bool is_sparse;
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
    uint64_t small_at; /* where in the file they stand */
};

/* What is done with rows, by the host or a device. Rasters of levels are where it works. */
typedef struct cogpu_engine {
    /* Whether rows of this swath can be used where they are. */
    bool (*has)(const cogpu_writer *writer, const cogpu_raster *rows);
    /* Memory for rows, until the engine is closed. */
    cogpu_status (*allocate)(cogpu_writer *writer, uint64_t bytes, void **memory,
                             cogpu_error *error);
    /* So many rows of the swath from `first` on into level 0, behind the `held` rows that it holds
     * already. */
    cogpu_status (*gather)(cogpu_writer *writer, const cogpu_raster *rows, const cogpu_raster *mask,
                           uint32_t first, uint32_t count, uint32_t held, cogpu_error *error);
    /* The next `count` rows of the level behind this one. */
    cogpu_status (*shrink)(cogpu_writer *writer, const struct cogpu_new_level *level,
                           uint32_t count, cogpu_error *error);
    /* Rows that the level holds, from `from` on, become its first ones. */
    cogpu_status (*slide)(cogpu_writer *writer, const struct cogpu_new_level *level, uint32_t from,
                          uint32_t count, cogpu_error *error);
    /* A row of blocks is cut and set on its way, so that the level's rows may change. */
    cogpu_status (*add_row)(cogpu_writer *writer, struct cogpu_new_level *level, uint32_t row,
                            cogpu_error *error);
    /* All that is on its way is brought to the file. */
    cogpu_status (*drain)(cogpu_writer *writer, cogpu_error *error);
    void (*close)(cogpu_writer *writer);
} cogpu_engine;
extern const cogpu_engine cogpu_host_engine, cogpu_device_engine;

struct cogpu_writer {
    cogpu_arena arena;
    cogpu_write_plan plan;
    cogpu_out *out;
    uint64_t end;       /* of what is in the file, or has its place there */
    uint64_t most;      /* bytes of it */
    uint64_t spills_at; /* where in the file spills go; 0: to its end */
    uint64_t gap_end;   /* where level 0 is for now, behind room for spills of any size; 0: it has a
                         * spill, or is where it belongs */
    struct cogpu_new_level levels[COGPU_LEVELS_MAX];
    uint32_t rows;                    /* that were pushed */
    cogpu_new_directory *directories; /* in the file's order */
    uint32_t directory_count;
    const cogpu_engine *engine; /* NULL before the first rows */
    cogpu_device_kind device;   /* that the profile asks for, and then where it works */
    uint32_t device_index;
    cogpu_gpu_reader *opened; /* of the device */
    cogpu_gpu_writer *gpu_writer;
    cogpu_gpu_memory gpu_memory;
    cogpu_context *context; /* may be NULL */
    cogpu_pool *pool;
    cogpu_seat **seats; /* shrinking and the line have them at once, but none of their memory */
    uint32_t seat_count;
    struct cogpu_line line;
    bool is_put; /* blocks come from elsewhere, and in any order */
    bool is_here,
        is_elsewhere; /* of these, where those of level 0 are whose bytes count: not both */
    cogpu_written written;
    cogpu_status failed; /* what a push came to: nothing goes on after a failure */
    cogpu_meter meter;   /* zero where the profile has no progress function */
};

/* Fails where a file that ends there would have to be a BigTIFF, and is none. */
cogpu_status cogpu_writer_check_size(const cogpu_writer *writer, uint64_t end, cogpu_error *error);

/* write_tags.c: all directories, but for what is known of blocks only at the end. */
cogpu_status cogpu_writer_describe(cogpu_writer *writer, const cogpu_profile *profile,
                                   cogpu_error *error);

/* write_rows.c: how a level, 1 or more, is made of the one before it, and all of them; memory for
 * their rows; rows on their way. */
cogpu_status cogpu_plan_shrink(const cogpu_write_plan *plan, const cogpu_profile *profile,
                               uint32_t level, cogpu_shrink *shrink, cogpu_error *error);
cogpu_status cogpu_writer_plan_shrinks(cogpu_writer *writer, const cogpu_profile *profile,
                                       cogpu_error *error);
cogpu_status cogpu_writer_open_rows(cogpu_writer *writer, cogpu_error *error);
/* Level 0, of which there is nothing yet, will have its place, or a spill. */
void cogpu_writer_drop_gap(cogpu_writer *writer);
cogpu_status cogpu_writer_take(cogpu_writer *writer, const cogpu_raster *rows,
                               const cogpu_raster *mask, cogpu_error *error);
/* So many rows of a level, of those that are at hand. `rows` is the level's raster of them, or of
 * their mask. */
cogpu_raster cogpu_level_rows(const struct cogpu_new_level *level, const cogpu_raster *rows,
                              uint32_t first, uint32_t count);
/* Bytes for all rows that a level holds at most, and for their mask. */
uint64_t cogpu_level_bytes(const cogpu_write_plan *plan, const struct cogpu_new_level *level);
uint64_t cogpu_level_mask_bytes(const cogpu_write_plan *plan, const struct cogpu_new_level *level);

/* Bytes of all its blocks in the file: at most. */
uint64_t cogpu_level_most(const cogpu_write_plan *plan, const cogpu_grid *grid);

/* write_host.c: as cogpu_cpu_gather, by all threads where it is worth while. */
void cogpu_writer_gather(const cogpu_writer *writer, const cogpu_raster *from, uint32_t first,
                         uint32_t rows, bool is_planar, size_t band_bytes, uint8_t *to);

/* write_device.c: an engine for the first rows; rows of a device for an engine that is the host's.
 */
cogpu_status cogpu_writer_open_engine(cogpu_writer *writer, const cogpu_raster *rows,
                                      cogpu_error *error);
cogpu_status cogpu_writer_take_down(cogpu_writer *writer, const cogpu_raster *rows,
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

/* The line: opened; a row of blocks cut and set on its way, or blocks that a device has cut; all
 * that is on its way brought to the file. Each tells of a failure of the blocks before, once and
 * for all. */
cogpu_status cogpu_writer_open_line(cogpu_writer *writer, cogpu_error *error);
cogpu_status cogpu_writer_add_row(cogpu_writer *writer, struct cogpu_new_level *level, uint32_t row,
                                  cogpu_error *error);
cogpu_status cogpu_writer_add_cut(cogpu_writer *writer, const cogpu_gpu_brought *batch,
                                  cogpu_error *error);
cogpu_status cogpu_writer_drain(cogpu_writer *writer, cogpu_error *error);
/* What is on its way is dropped. */
void cogpu_writer_close_line(cogpu_writer *writer);
/* From memory to memory, by all threads. */
void cogpu_writer_copy(cogpu_writer *writer, uint8_t *to, const uint8_t *from, size_t bytes);
/* The same for bytes that begin so far behind `to`, and may reach into each other. */
void cogpu_writer_move_down(cogpu_writer *writer, uint8_t *to, size_t gap, size_t bytes);
/* Blocks that a device has encoded: all get their places, in the file or the spill; then they go
 * there. *is_straight: all are in the file, side by side from its end on. */
cogpu_status cogpu_writer_place_all(cogpu_writer *writer, const cogpu_gpu_brought *batch,
                                    bool *is_straight, cogpu_error *error);
cogpu_status cogpu_writer_give_all(cogpu_writer *writer, const cogpu_gpu_brought *batch,
                                   cogpu_error *error);

/* write_put.c: the plan of a profile whose blocks and overviews are made elsewhere; a raster that
 * must have so many pixels, whose strides are set. */
cogpu_status cogpu_plan_profile(const cogpu_profile *profile, cogpu_write_plan *plan,
                                cogpu_error *error);
cogpu_status cogpu_check_pixels(cogpu_raster *pixels, cogpu_type type, uint32_t bands,
                                uint32_t width, uint32_t height, cogpu_error *error);
/* Blocks that were put get their places in the file, from `end` on, which they move
 * on; and go there. */
cogpu_status cogpu_writer_place_put(cogpu_writer *writer, struct cogpu_new_level *level,
                                    uint64_t *end, cogpu_error *error);
cogpu_status cogpu_writer_copy_put(cogpu_writer *writer, struct cogpu_new_level *level,
                                   cogpu_error *error);

#endif
