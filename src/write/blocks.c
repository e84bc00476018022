/*
 * Packs rows into blocks and encodes them, on the CPU.
 *
 * Blocks in flight form a queue of slots, in file order: tile by tile, all planes of a tile, then
 * its mask. The caller's thread and the pool pack blocks into free slots; then the rows may change
 * and the caller goes on. It encodes blocks itself only while all slots are taken. The thread that
 * encodes the oldest block retires it, and all encoded blocks behind it, to the output.
 *
 *     retired              added
 *        |                   |
 *     ---+----+----+----+----+---
 *        | 17 | 18 | 19 | 20 |         19 and 20 may be encoded before 17: they wait in their slots
 *     ---+----+----+----+----+---
 */
#include "write/writer.h"

#include <string.h>

/* Small blocks get at least this many bytes of slots together. */
enum { SMALL_BLOCKS_BYTES = 256 << 10 };
/* Memory of blocks in flight, beside one row of blocks. */
enum { QUEUE_BYTES = 48 << 20, SLOTS_MAX = 256 };

/* ---- a block ------------------------------------------------------------------------------- */

/* A block, and the thread that works on it. */
struct block_task {
    cogpu_worker *worker;
    const cogpu_write_plan *plan;
    const cogpu_block_grid *grid;
    const cogpu_new_block *block;
};

static void pack_block(const cogpu_write_plan *plan, const cogpu_block_grid *grid,
                       const cogpu_new_block *block, const cogpu_raster *pixels, uint8_t *to) {
    if (cogpu_block_is_mask(plan, block))
        cogpu_cpu_pack_mask(grid, block, pixels, to);
    else
        cogpu_cpu_pack_block(plan, grid, block, pixels, to);
}

static bool is_sparse_block(const struct block_task *task, const uint8_t *packed, size_t bytes) {
    static const uint8_t invalid[16];
    const cogpu_write_plan *plan = task->plan;
    if (!plan->is_sparse)
        return false;
    return cogpu_block_is_mask(plan, task->block)
               ? cogpu_cpu_is_uniform(packed, bytes, COGPU_TYPE_U8, invalid)
               : cogpu_cpu_is_uniform(packed, bytes, plan->type, plan->fill);
}

static const cogpu_codec_row *codec_of(const cogpu_write_plan *plan, const cogpu_new_block *block) {
    return cogpu_block_is_mask(plan, block) ? plan->mask_codec : plan->codec;
}

/* Applies the predictor; or stores samples of fewer bits than their type without gaps. */
static cogpu_status predict_block(const struct block_task *task, uint8_t *packed, size_t bytes,
                                  cogpu_error *error) {
    const cogpu_write_plan *plan = task->plan;
    cogpu_worker *worker = task->worker;
    const uint32_t rows = task->block->rows;
    const size_t row_bytes = bytes / rows;
    if (cogpu_block_is_mask(plan, task->block))
        return COGPU_OK;
    if (cogpu_plan_is_packed(plan)) {
        cogpu_cpu_pack_bits(plan, packed, rows, row_bytes);
        return COGPU_OK;
    }
    TRY(cogpu_worker_reserve(&worker->row, &worker->row_bytes, row_bytes, error));
    cogpu_cpu_predict(plan, packed, rows, row_bytes, worker->row);
    return COGPU_OK;
}

/* Encodes predicted bytes. If `to` is `predicted`, they are stored as they are. */
static cogpu_status encode_predicted(const struct block_task *task, const uint8_t *predicted,
                                     uint8_t *to, size_t capacity, size_t *bytes,
                                     cogpu_error *error) {
    size_t predicted_bytes = 0;
    const cogpu_encoding encoding =
        cogpu_plan_encoding(task->plan, task->grid, task->block, &predicted_bytes);
    *bytes = predicted_bytes;
    if (to == predicted)
        return COGPU_OK;
    return codec_of(task->plan, task->block)
        ->encoder->encode(&task->worker->codec, &encoding, predicted, predicted_bytes, to, capacity,
                          bytes, error);
}

/* From packed pixels, which change, to stored bytes: sparse test, predictor, codec. */
static cogpu_status encode_packed_block(const struct block_task *task, uint8_t *packed, uint8_t *to,
                                        size_t capacity, size_t *bytes, cogpu_error *error) {
    const size_t packed_bytes = cogpu_plan_block_bytes(task->plan, task->grid, task->block);
    *bytes = 0;
    if (is_sparse_block(task, packed, packed_bytes))
        return COGPU_OK;
    TRY(predict_block(task, packed, packed_bytes, error));
    return encode_predicted(task, packed, to, capacity, bytes, error);
}

cogpu_status cogpu_worker_encode_block(cogpu_worker *worker, const cogpu_write_plan *plan,
                                       const cogpu_block_grid *grid, const cogpu_new_block *block,
                                       const cogpu_raster *pixels, uint8_t *to, size_t capacity,
                                       size_t *bytes, cogpu_error *error) {
    const struct block_task task = {worker, plan, grid, block};
    *bytes = 0;
    TRY(cogpu_worker_reserve(&worker->decoded, &worker->decoded_bytes,
                             cogpu_plan_block_bytes(plan, grid, block), error));
    pack_block(plan, grid, block, pixels, worker->decoded);
    return encode_packed_block(&task, worker->decoded, to, capacity, bytes, error);
}

/* ---- out of the queue ---------------------------------------------------------------------- */

static cogpu_status retire_block(cogpu_writer *writer, struct cogpu_encode_slot *slot,
                                 cogpu_error *error) {
    if (slot->status == COGPU_OK)
        return cogpu_write_output_write_block(writer, slot->level, &slot->block,
                                              slot->memory + COGPU_LEADER_BYTES, slot->bytes,
                                              error);
    *error = slot->error;
    cogpu_error_locate(
        error, -1, (int64_t)cogpu_plan_index(&writer->plan, slot->level->grid, &slot->block), -1);
    return slot->status;
}

/* Retires all encoded blocks at the head of the queue, unless another thread is at it. */
static void retire_blocks(cogpu_writer *writer, struct cogpu_encode_slot *encoded) {
    struct cogpu_encode_queue *queue = &writer->queue;
    struct cogpu_encode_slot *slot;
    pthread_mutex_lock(&queue->lock);
    encoded->is_encoded = true;
    const bool is_ours = !queue->is_retiring;
    for (; is_ours && (slot = &queue->slots[queue->retired % queue->slot_count])->is_encoded;
         queue->retired++) {
        cogpu_status status = COGPU_OK;
        cogpu_error error;
        queue->is_retiring = true;
        if (!queue->is_stopped) {
            pthread_mutex_unlock(&queue->lock);
            status = retire_block(writer, slot, &error);
            pthread_mutex_lock(&queue->lock);
        }
        if (status != COGPU_OK) {
            queue->is_stopped = true;
            queue->status = status;
            queue->error = error;
        }
        slot->is_encoded = false;
        pthread_cond_signal(&queue->slot_freed);
    }
    if (is_ours)
        queue->is_retiring = false;
    pthread_mutex_unlock(&queue->lock);
}

/* ---- in the queue -------------------------------------------------------------------------- */

/* The encoded bytes become the slot's, and its packed pixels the worker's scratch. */
static void swap_memory(struct cogpu_encode_slot *slot, cogpu_worker *worker) {
    uint8_t *memory = slot->memory;
    const size_t bytes = slot->memory_bytes;
    slot->memory = worker->stored;
    slot->memory_bytes = worker->stored_bytes;
    worker->stored = memory;
    worker->stored_bytes = bytes;
}

static cogpu_status encode_slot(const cogpu_writer *writer, cogpu_worker *worker,
                                struct cogpu_encode_slot *slot, cogpu_error *error) {
    const struct block_task task = {worker, &writer->plan, slot->level->grid, &slot->block};
    const bool is_stored = codec_of(task.plan, task.block)->compression == COMPRESSION_NONE;
    const size_t capacity = writer->queue.slot_bytes - COGPU_BLOCK_OVERHEAD_BYTES;
    uint8_t *packed = slot->memory + COGPU_LEADER_BYTES, *to = packed;
    slot->bytes = 0;
    if (slot->is_predicted && slot->is_sparse)
        return COGPU_OK;
    if (!is_stored) {
        TRY(cogpu_worker_reserve(&worker->stored, &worker->stored_bytes, writer->queue.slot_bytes,
                                 error));
        to = worker->stored + COGPU_LEADER_BYTES;
    }
    if (slot->is_predicted)
        TRY(encode_predicted(&task, packed, to, capacity, &slot->bytes, error));
    else
        TRY(encode_packed_block(&task, packed, to, capacity, &slot->bytes, error));
    if (!is_stored)
        swap_memory(slot, worker);
    return COGPU_OK;
}

static void encode_and_retire(void *argument, uint32_t worker, uint64_t number) {
    cogpu_writer *writer = argument;
    struct cogpu_encode_queue *queue = &writer->queue;
    struct cogpu_encode_slot *slot = &queue->slots[number % queue->slot_count];
    pthread_mutex_lock(&queue->lock);
    bool is_stopped = queue->is_stopped;
    pthread_mutex_unlock(&queue->lock);
    if (!is_stopped && slot->status == COGPU_OK)
        slot->status = encode_slot(writer, writer->threads.workers[worker], slot, &slot->error);
    retire_blocks(writer, slot);
}

static uint32_t free_slots(const struct cogpu_encode_queue *queue) {
    return queue->slot_count - (uint32_t)(queue->added - queue->retired);
}

/* Encodes blocks until this many slots are free, or waits; *count is how many are. */
static cogpu_status wait_for_slots(struct cogpu_encode_queue *queue, uint32_t slots,
                                   uint32_t *count, cogpu_error *error) {
    pthread_mutex_lock(&queue->lock);
    while ((*count = free_slots(queue)) < slots) {
        pthread_mutex_unlock(&queue->lock);
        bool has_helped = cogpu_pool_help(queue->job);
        pthread_mutex_lock(&queue->lock);
        if (!has_helped && free_slots(queue) < slots)
            pthread_cond_wait(&queue->slot_freed, &queue->lock);
    }
    cogpu_status status = queue->status;
    if (status != COGPU_OK && error)
        *error = queue->error;
    pthread_mutex_unlock(&queue->lock);
    return status;
}

/* ---- into the queue ------------------------------------------------------------------------ */

static uint64_t blocks_in_row(const cogpu_write_plan *plan, const cogpu_block_grid *grid) {
    return (uint64_t)grid->across * (plan->planes + plan->has_mask);
}

/* Blocks that are added together: of a row of the level, or of a batch. */
struct added_blocks {
    cogpu_writer *writer;
    struct cogpu_write_level *level;
    uint32_t row;
    const cogpu_gpu_write_batch *batch;
    uint64_t first; /* number of the first one that is not added yet */
};

/* The block's pixels inside the image, in the rows of the level. */
static cogpu_raster pixels_of(const cogpu_write_plan *plan, const struct cogpu_write_level *level,
                              const cogpu_new_block *block) {
    const bool is_mask = cogpu_block_is_mask(plan, block);
    cogpu_raster from = is_mask ? level->mask : level->pixels;
    int64_t x = (int64_t)block->column * level->grid->block_width;
    int64_t y = (int64_t)block->row * level->grid->block_height - level->first_row;
    int64_t band = is_mask ? 0 : block->plane;
    from.data =
        (uint8_t *)from.data + y * from.stride_y + x * from.stride_x + band * from.stride_band;
    from.width = block->width;
    from.height = block->height;
    from.bands = !is_mask && plan->planes == 1 ? plan->bands : 1;
    return from;
}

static struct cogpu_encode_slot *reserve_slot(struct cogpu_encode_queue *queue, uint64_t index) {
    struct cogpu_encode_slot *slot = &queue->slots[(queue->added + index) % queue->slot_count];
    slot->status =
        cogpu_worker_reserve(&slot->memory, &slot->memory_bytes, queue->slot_bytes, &slot->error);
    return slot;
}

static void pack_into_slot(void *argument, uint32_t worker, uint64_t index) {
    const struct added_blocks *blocks = argument;
    const cogpu_write_plan *plan = &blocks->writer->plan;
    struct cogpu_write_level *level = blocks->level;
    struct cogpu_encode_slot *slot = reserve_slot(&blocks->writer->queue, index);
    const uint32_t kinds = plan->planes + plan->has_mask;
    const uint64_t number = blocks->first + index;
    (void)worker;
    slot->level = level;
    slot->is_predicted = false;
    slot->block = cogpu_plan_new_block(plan, level->grid, blocks->row, (uint32_t)(number / kinds),
                                       (uint32_t)(number % kinds));
    if (slot->status != COGPU_OK)
        return;
    const cogpu_raster pixels = pixels_of(plan, level, &slot->block);
    pack_block(plan, level->grid, &slot->block, &pixels, slot->memory + COGPU_LEADER_BYTES);
}

static void copy_into_slot(void *argument, uint32_t worker, uint64_t index) {
    const struct added_blocks *blocks = argument;
    struct cogpu_encode_slot *slot = reserve_slot(&blocks->writer->queue, index);
    const cogpu_gpu_write_batch *batch = blocks->batch;
    const cogpu_gpu_batch_block *block = &batch->blocks[blocks->first + index];
    const struct cogpu_compacted_block packed = batch->encoded[blocks->first + index];
    (void)worker;
    slot->level = block->level;
    slot->block = block->block;
    slot->is_predicted = true;
    slot->is_sparse = packed.bytes == 0;
    if (slot->status == COGPU_OK && packed.bytes > 0)
        memcpy(slot->memory + COGPU_LEADER_BYTES, batch->data + packed.at, (size_t)packed.bytes);
}

static cogpu_status add_blocks(struct added_blocks *blocks, uint64_t count,
                               cogpu_pool_function *fill_slot, cogpu_error *error) {
    cogpu_writer *writer = blocks->writer;
    struct cogpu_encode_queue *queue = &writer->queue;
    for (uint32_t slots; blocks->first < count; blocks->first += slots) {
        TRY(wait_for_slots(queue, 1, &slots, error));
        slots = slots < count - blocks->first ? slots : (uint32_t)(count - blocks->first);
        cogpu_pool_run(writer->threads.pool, writer->threads.count, slots, fill_slot, blocks);
        queue->added += slots;
        cogpu_pool_add(queue->job, slots);
    }
    return COGPU_OK;
}

cogpu_status cogpu_encode_queue_add_row(cogpu_writer *writer, struct cogpu_write_level *level,
                                        uint32_t row, cogpu_error *error) {
    struct added_blocks blocks = {.writer = writer, .level = level, .row = row};
    return add_blocks(&blocks, blocks_in_row(&writer->plan, level->grid), pack_into_slot, error);
}

cogpu_status cogpu_encode_queue_add_batch(cogpu_writer *writer, const cogpu_gpu_write_batch *batch,
                                          cogpu_error *error) {
    struct added_blocks blocks = {.writer = writer, .batch = batch};
    return add_blocks(&blocks, batch->count, copy_into_slot, error);
}

cogpu_status cogpu_encode_queue_drain(cogpu_writer *writer, cogpu_error *error) {
    uint32_t count;
    TRY(wait_for_slots(&writer->queue, writer->queue.slot_count, &count, error));
    return cogpu_write_output_flush(writer, error);
}

/* ---- open and close ------------------------------------------------------------------------ */

/* Two slots a thread: one block is encoded while another waits behind a slow one. A single thread
 * needs one. Small blocks get more, to keep threads off the lock. Large blocks get what QUEUE_BYTES
 * allows, less the scratch block of each thread. */
static uint32_t choose_slot_count(uint32_t threads, uint64_t row_blocks, size_t block_bytes) {
    uint64_t small = SMALL_BLOCKS_BYTES / block_bytes;
    uint64_t least = threads == 1 ? 1 : 2 * (uint64_t)threads;
    uint64_t fitting = QUEUE_BYTES / block_bytes + row_blocks;
    uint64_t most = fitting > 2 * (uint64_t)threads ? fitting - threads : fitting / 2;
    uint64_t count = small < SLOTS_MAX ? small : SLOTS_MAX;
    count = count > least ? count : least;
    count = count < most ? count : most;
    return count > 0 ? (uint32_t)count : 1;
}

cogpu_status cogpu_encode_queue_open(cogpu_writer *writer, cogpu_error *error) {
    const cogpu_write_plan *plan = &writer->plan;
    struct cogpu_encode_queue *queue = &writer->queue;
    const uint32_t threads = writer->threads.count;
    const cogpu_new_block largest = cogpu_plan_new_block(plan, &plan->levels[0], 0, 0, 0);
    size_t bytes = cogpu_plan_block_bytes(plan, &plan->levels[0], &largest);
    bytes = bytes < plan->max_block_bytes ? (size_t)plan->max_block_bytes : bytes;
    queue->slot_bytes = bytes + COGPU_BLOCK_OVERHEAD_BYTES;
    queue->slot_count =
        choose_slot_count(threads, blocks_in_row(plan, &plan->levels[0]), queue->slot_bytes);
    TRY(cogpu_arena_allocate(&writer->arena, queue->slot_count, sizeof *queue->slots, &queue->slots,
                             error));
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->slot_freed, NULL);
    return cogpu_pool_begin(writer->threads.pool,
                            threads < queue->slot_count ? threads : queue->slot_count,
                            encode_and_retire, writer, &queue->job, error);
}

void cogpu_encode_queue_close(cogpu_writer *writer) {
    struct cogpu_encode_queue *queue = &writer->queue;
    if (!queue->slots)
        return;
    pthread_mutex_lock(&queue->lock);
    queue->is_stopped = true;
    pthread_mutex_unlock(&queue->lock);
    cogpu_pool_end(queue->job);
    pthread_cond_destroy(&queue->slot_freed);
    pthread_mutex_destroy(&queue->lock);
    for (uint32_t i = 0; i < queue->slot_count; i++)
        cogpu_release(queue->slots[i].memory);
}
