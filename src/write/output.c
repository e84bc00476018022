/*
 * Writes encoded blocks while rows come: each block gets the next offset in the file, or in the
 * spill of its level. Small blocks that follow each other are coalesced into one write.
 *
 * One thread at a time calls this: the one that retires blocks from the encode queue, or the
 * writer's own thread with batches of a device.
 */
#include "base/bytes.h"
#include "base/checked.h"
#include "write/writer.h"

#include <string.h>

/* A small write costs as much as a copy of this many bytes, or more. */
enum { COALESCED_BYTES = 1 << 20, SMALL_BYTES = COALESCED_BYTES / 4 };

_Static_assert((int)COGPU_COG_BLOCK_OVERHEAD == (int)COGPU_BLOCK_OVERHEAD_BYTES,
               "the public constant is leader and trailer");

void cogpu_add_leader_trailer(uint8_t *payload, size_t bytes) {
    size_t last = bytes < COGPU_TRAILER_BYTES ? bytes : COGPU_TRAILER_BYTES;
    store_little(bytes, payload - COGPU_LEADER_BYTES, COGPU_LEADER_BYTES);
    memset(payload + bytes, 0, COGPU_TRAILER_BYTES);
    memcpy(payload + bytes, payload + bytes - last, last);
}

/* ---- bytes --------------------------------------------------------------------------------- */

cogpu_status cogpu_write_output_flush(cogpu_writer *writer, cogpu_error *error) {
    struct cogpu_write_output *output = &writer->output;
    size_t bytes = output->coalesced_bytes;
    output->coalesced_bytes = 0;
    return cogpu_out_write(output->sink, output->coalesced_offset, output->coalesced, bytes, error);
}

static cogpu_status write_coalesced(cogpu_writer *writer, uint64_t offset, const uint8_t *from,
                                    size_t bytes, cogpu_error *error) {
    struct cogpu_write_output *output = &writer->output;
    if (bytes > SMALL_BYTES || output->coalesced_bytes + bytes > COALESCED_BYTES ||
        offset != output->coalesced_offset + output->coalesced_bytes)
        TRY(cogpu_write_output_flush(writer, error));
    if (bytes > SMALL_BYTES)
        return cogpu_out_write(output->sink, offset, from, bytes, error);
    if (!output->coalesced && !(output->coalesced = cogpu_allocate(COALESCED_BYTES)))
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for blocks");
    output->coalesced_offset = offset - output->coalesced_bytes;
    memcpy(output->coalesced + output->coalesced_bytes, from, bytes);
    output->coalesced_bytes += bytes;
    return COGPU_OK;
}

/* Bytes that have their offset, in the order of offsets. A spill appends. */
static cogpu_status write_ordered_bytes(cogpu_writer *writer, struct cogpu_write_level *level,
                                        uint64_t offset, const uint8_t *from, size_t bytes,
                                        cogpu_error *error) {
    return level->spill ? cogpu_spill_add(level->spill, from, bytes, &offset, error)
                        : write_coalesced(writer, offset, from, bytes, error);
}

struct copy_task {
    uint8_t *to;
    const uint8_t *from;
    size_t bytes;
};

static void copy_part(void *argument, uint32_t worker, uint64_t index) {
    const struct copy_task *task = argument;
    size_t at = (size_t)index * SMALL_BYTES, left = task->bytes - at;
    (void)worker;
    memcpy(task->to + at, task->from + at, left < SMALL_BYTES ? left : SMALL_BYTES);
}

void cogpu_write_output_copy(cogpu_writer *writer, uint8_t *to, const uint8_t *from, size_t bytes) {
    struct copy_task task = {to, from, bytes};
    cogpu_pool_run(writer->threads.pool, writer->threads.count, divide_up(bytes, SMALL_BYTES),
                   copy_part, &task);
}

/* A copy at a time fills the gap, so that its source and its target do not overlap. */
void cogpu_write_output_move_down(cogpu_writer *writer, uint8_t *to, size_t gap, size_t bytes) {
    if (gap > 0 && gap < COALESCED_BYTES)
        memmove(to, to + gap, bytes);
    for (size_t done = 0, count; gap >= COALESCED_BYTES && done < bytes; done += count) {
        count = bytes - done < gap ? bytes - done : gap;
        cogpu_write_output_copy(writer, to + done, to + gap + done, count);
    }
}

/* As write_bytes, but by all threads if the target is memory. */
static cogpu_status write_many_bytes(cogpu_writer *writer, struct cogpu_write_level *level,
                                     uint64_t offset, const uint8_t *from, size_t bytes,
                                     cogpu_error *error) {
    uint8_t *to = NULL;
    if (bytes > SMALL_BYTES && level->spill) {
        to = cogpu_spill_buffer(level->spill, bytes, &offset);
    } else if (bytes > SMALL_BYTES) {
        TRY(cogpu_write_output_flush(writer, error));
        TRY(cogpu_out_buffer_at(writer->output.sink, offset, bytes, &to, error));
    }
    if (!to)
        return write_ordered_bytes(writer, level, offset, from, bytes, error);
    cogpu_write_output_copy(writer, to, from, bytes);
    return COGPU_OK;
}

/* ---- offsets ------------------------------------------------------------------------------- */

/* The next bytes of a level, in the file or its spill. */
static uint64_t assign_offset(cogpu_writer *writer, struct cogpu_write_level *level,
                              uint64_t bytes) {
    uint64_t *end = level->spill ? &level->spilled_bytes : &writer->output.end;
    *end += bytes;
    return *end - bytes;
}

/* Bytes of the file so far, with those that are still in spills. */
static uint64_t bytes_so_far(const cogpu_writer *writer) {
    uint64_t bytes = writer->output.end;
    for (uint32_t i = 0; i < writer->plan.level_count; i++)
        bytes += writer->levels[i].spilled_bytes;
    return bytes;
}

/* Enters a block into the table of its directory, and reports progress. */
static cogpu_status record_block(cogpu_writer *writer, struct cogpu_write_level *level,
                                 const cogpu_new_block *block, uint64_t offset, uint64_t bytes,
                                 cogpu_error *error) {
    const cogpu_write_plan *plan = &writer->plan;
    struct cogpu_block_table *table =
        cogpu_block_is_mask(plan, block) ? &level->mask_blocks : &level->pixel_blocks;
    uint64_t index = cogpu_plan_index(plan, level->grid, block);
    writer->output.written.blocks++;
    writer->output.written.sparse_blocks += bytes == 0;
    table->bytes[index] = bytes;
    table->offsets[index] = bytes ? offset : 0;
    return cogpu_meter_add(&writer->meter, 1) ? COGPU_OK : cogpu_fail_cancelled(error);
}

/* ---- a block ------------------------------------------------------------------------------- */

cogpu_status cogpu_write_output_write_block(cogpu_writer *writer, struct cogpu_write_level *level,
                                            const cogpu_new_block *block, uint8_t *payload,
                                            size_t bytes, cogpu_error *error) {
    const bool is_cog = writer->plan.is_cog;
    const size_t leader = is_cog ? COGPU_LEADER_BYTES : 0;
    const size_t overhead = is_cog ? COGPU_BLOCK_OVERHEAD_BYTES : 0;
    const size_t all_bytes = bytes > 0 ? bytes + overhead : 0;
    const uint64_t offset = assign_offset(writer, level, all_bytes);
    if (is_cog && bytes > 0)
        cogpu_add_leader_trailer(payload, bytes);
    if (bytes > 0)
        TRY(write_ordered_bytes(writer, level, offset, payload - leader, all_bytes, error));
    TRY(record_block(writer, level, block, offset + leader, bytes, error));
    return cogpu_write_output_check_size(writer, bytes_so_far(writer), error);
}

cogpu_status cogpu_write_output_spill_block(cogpu_writer *writer, struct cogpu_write_level *level,
                                            const void *encoded, size_t bytes, uint64_t *offset,
                                            cogpu_error *error) {
    cogpu_worker *worker = writer->threads.workers[0];
    const size_t all_bytes = bytes + COGPU_BLOCK_OVERHEAD_BYTES;
    if (!writer->plan.is_cog)
        return cogpu_spill_add(level->spill, encoded, bytes, offset, error);
    TRY(cogpu_worker_reserve(&worker->stored, &worker->stored_bytes, all_bytes, error));
    cogpu_cog_add_leader_trailer(encoded, bytes, worker->stored);
    return cogpu_spill_add(level->spill, worker->stored, all_bytes, offset, error);
}

/* ---- a batch of a device ------------------------------------------------------------------- */

/* Blocks [first, next) of a batch, all of one level, and their bytes in the batch. */
struct level_run {
    struct cogpu_write_level *level;
    uint32_t first, next;
    uint64_t begin, end;
};

/* Where a block begins in the batch, with its leader; the entry after the last is the end. */
static uint64_t begin_in_batch(const cogpu_writer *writer, const cogpu_gpu_write_batch *batch,
                               uint32_t number) {
    const struct cogpu_compacted_block *encoded = &batch->encoded[number];
    return encoded->at - (encoded->bytes && writer->plan.is_cog ? COGPU_LEADER_BYTES : 0);
}

static bool next_level_run(const cogpu_writer *writer, const cogpu_gpu_write_batch *batch,
                           struct level_run *run) {
    run->first = run->next;
    if (run->first == batch->count)
        return false;
    run->level = batch->blocks[run->first].level;
    while (run->next < batch->count && batch->blocks[run->next].level == run->level)
        run->next++;
    run->begin = begin_in_batch(writer, batch, run->first);
    run->end = begin_in_batch(writer, batch, run->next);
    return true;
}

cogpu_status cogpu_write_output_assign_batch(cogpu_writer *writer, cogpu_gpu_write_batch *batch,
                                             bool *is_contiguous, cogpu_error *error) {
    batch->file_offset = writer->output.end;
    *is_contiguous = true;
    for (struct level_run run = {0}; next_level_run(writer, batch, &run);) {
        const uint64_t offset = assign_offset(writer, run.level, run.end - run.begin);
        for (uint32_t i = run.first; i < run.next; i++)
            TRY(record_block(writer, run.level, &batch->blocks[i].block,
                             offset + batch->encoded[i].at - run.begin, batch->encoded[i].bytes,
                             error));
        *is_contiguous &= !run.level->spill;
    }
    return cogpu_write_output_check_size(writer, bytes_so_far(writer), error);
}

cogpu_status cogpu_write_output_batch_buffer(cogpu_writer *writer,
                                             const cogpu_gpu_write_batch *batch, uint8_t **to,
                                             cogpu_error *error) {
    return cogpu_out_buffer_at(writer->output.sink, batch->file_offset, (size_t)batch->bytes, to,
                               error);
}

static cogpu_status write_runs(cogpu_writer *writer, const cogpu_gpu_write_batch *batch,
                               cogpu_error *error) {
    uint64_t offset = batch->file_offset;
    for (struct level_run run = {0}; next_level_run(writer, batch, &run);) {
        const uint64_t bytes = run.end - run.begin;
        if (bytes > 0)
            TRY(write_many_bytes(writer, run.level, offset, batch->data + run.begin, (size_t)bytes,
                                 error));
        offset += run.level->spill ? 0 : bytes;
    }
    return COGPU_OK;
}

/* What cuFile left: less than a page at both ends, and requests that failed. */
static cogpu_status write_leftovers(cogpu_writer *writer, const cogpu_gpu_write_batch *batch,
                                    cogpu_error *error) {
    for (uint32_t i = 0; i < batch->unwritten_count; i++) {
        const cogpu_span span = batch->unwritten[i];
        TRY(cogpu_out_write(writer->output.sink, batch->file_offset + span.offset,
                            batch->data + span.offset, (size_t)span.bytes, error));
    }
    writer->output.written.gds_bytes += batch->cufile_bytes;
    return COGPU_OK;
}

cogpu_status cogpu_write_output_write_batch(cogpu_writer *writer,
                                            const cogpu_gpu_write_batch *batch,
                                            cogpu_error *error) {
    switch (batch->target) {
    case COGPU_BATCH_TO_FILE:
        return write_leftovers(writer, batch, error);
    case COGPU_BATCH_TO_BUFFER:
        return COGPU_OK;
    default:
        return write_runs(writer, batch, error);
    }
}
