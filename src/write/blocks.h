/*
 * Blocks on the CPU: packing and encoding of one block, and the queue of blocks that threads encode
 * while the caller goes on.
 */
#ifndef COGPU_WRITE_BLOCKS_H
#define COGPU_WRITE_BLOCKS_H

#include "cpu/pack.h"
#include "gpu/write_pipeline.h"

#include <pthread.h>

struct cogpu_write_level;

static inline bool cogpu_block_is_mask(const cogpu_write_plan *plan, const cogpu_new_block *block) {
    return block->plane == plan->planes;
}

/* Packs the pixels of one block and encodes them, by the calling thread. *bytes is 0 if the block
 * is sparse. */
cogpu_status cogpu_worker_encode_block(cogpu_worker *worker, const cogpu_write_plan *plan,
                                       const cogpu_block_grid *grid, const cogpu_new_block *block,
                                       const cogpu_raster *pixels, uint8_t *to, size_t capacity,
                                       size_t *bytes, cogpu_error *error);

/* A block in the encode queue. */
struct cogpu_encode_slot {
    struct cogpu_write_level *level;
    cogpu_new_block block;
    uint8_t *memory; /* packed, then encoded; with space for leader and trailer */
    size_t memory_bytes;
    size_t bytes;                 /* encoded; 0: sparse */
    bool is_predicted, is_sparse; /* known if a device has packed the block */
    bool is_encoded;
    cogpu_status status;
    cogpu_error error;
};

/* Blocks in flight, in file order: number n uses slot n modulo slot_count. */
struct cogpu_encode_queue {
    cogpu_pool_job *job;
    struct cogpu_encode_slot *slots; /* NULL: not open */
    uint32_t slot_count;
    size_t slot_bytes;
    uint64_t added;       /* blocks so far */
    pthread_mutex_t lock; /* of all that follows, and of is_encoded */
    pthread_cond_t slot_freed;
    uint64_t retired;    /* blocks that left their slot */
    bool is_retiring;    /* a thread delivers blocks to the output; no other does meanwhile */
    bool is_stopped;     /* slots are freed, but blocks are not delivered */
    cogpu_status status; /* the first failure in file order */
    cogpu_error error;
};

/* All of these report a failure of earlier blocks, too. */
cogpu_status cogpu_encode_queue_open(cogpu_writer *writer, cogpu_error *error);
/* Packs a row of blocks of the level into slots as they become free. Then its rows may change. */
cogpu_status cogpu_encode_queue_add_row(cogpu_writer *writer, struct cogpu_write_level *level,
                                        uint32_t row, cogpu_error *error);
/* The same for blocks that a device has packed. */
cogpu_status cogpu_encode_queue_add_batch(cogpu_writer *writer, const cogpu_gpu_write_batch *batch,
                                          cogpu_error *error);
/* Waits until all blocks are delivered to the output, and flushes that. */
cogpu_status cogpu_encode_queue_drain(cogpu_writer *writer, cogpu_error *error);
/* Drops blocks in flight. */
void cogpu_encode_queue_close(cogpu_writer *writer);

#endif
