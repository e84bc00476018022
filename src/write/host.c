/*
 * The CPU as backend of a writer: copies and downsamples rows by all threads. blocks.c packs and
 * encodes.
 */
#include "base/checked.h"
#include "write/writer.h"

#include <string.h>

/* Work of a thread at a time: bytes to copy, and rows to downsample. */
enum { COPY_BYTES = 256 << 10, DOWNSAMPLE_ROWS = 16 };

static bool can_cpu_access(const cogpu_writer *writer, const cogpu_raster *rows) {
    (void)writer;
    return rows->device == COGPU_DEVICE_CPU;
}

static cogpu_status allocate_host_rows(cogpu_writer *writer, uint64_t bytes, void **memory,
                                       cogpu_error *error) {
    (void)writer;
    *memory = cogpu_allocate((size_t)bytes);
    return *memory ? COGPU_OK
                   : cogpu_fail(error, COGPU_OUT_OF_MEMORY,
                                "out of memory: %llu bytes for a row of blocks",
                                (unsigned long long)bytes);
}

/* ---- copy ---------------------------------------------------------------------------------- */

struct row_copy {
    const cogpu_raster *from;
    uint32_t first, rows, rows_at_a_time;
    bool is_planar;
    size_t row_bytes, band_bytes;
    uint8_t *to;
};

static void copy_some_rows(void *argument, uint32_t worker, uint64_t index) {
    const struct row_copy *copy = argument;
    const uint32_t done = (uint32_t)index * copy->rows_at_a_time, left = copy->rows - done;
    (void)worker;
    cogpu_cpu_pack_rows(copy->from, copy->first + done,
                        left < copy->rows_at_a_time ? left : copy->rows_at_a_time, copy->is_planar,
                        copy->band_bytes, copy->to + done * copy->row_bytes);
}

void cogpu_writer_copy_rows(const cogpu_writer *writer, const cogpu_raster *from, uint32_t first,
                            uint32_t rows, bool is_planar, size_t band_bytes, uint8_t *to) {
    const size_t plane_bytes = cogpu_type_bytes(from->type) * from->width;
    const size_t all_bytes = plane_bytes * from->bands;
    struct row_copy copy = {.from = from,
                            .first = first,
                            .rows = rows,
                            .is_planar = is_planar,
                            .row_bytes = is_planar ? plane_bytes : all_bytes,
                            .band_bytes = band_bytes,
                            .to = to};
    copy.rows_at_a_time = all_bytes < COPY_BYTES ? (uint32_t)(COPY_BYTES / all_bytes) : 1;
    cogpu_pool_run(writer->threads.pool, writer->threads.count,
                   divide_up(rows, copy.rows_at_a_time), copy_some_rows, &copy);
}

static cogpu_status copy_rows_to_host(cogpu_writer *writer, const cogpu_raster *rows,
                                      const cogpu_raster *mask, uint32_t first, uint32_t count,
                                      uint32_t buffered, cogpu_error *error) {
    const struct cogpu_write_level *level = &writer->levels[0];
    (void)error;
    cogpu_writer_copy_rows(writer, rows, first, count, writer->plan.planes > 1,
                           level->capacity_rows * level->row_bytes,
                           level->buffer + buffered * level->row_bytes);
    if (level->mask_buffer)
        cogpu_writer_copy_rows(writer, mask, first, count, false, 0,
                               level->mask_buffer + (size_t)buffered * level->grid->width);
    return COGPU_OK;
}

static cogpu_status shift_host_rows(cogpu_writer *writer, const struct cogpu_write_level *level,
                                    uint32_t from, uint32_t count, cogpu_error *error) {
    const size_t width = level->grid->width;
    (void)error;
    for (uint32_t plane = 0; plane < writer->plan.planes; plane++) {
        uint8_t *rows = level->buffer + (size_t)plane * level->capacity_rows * level->row_bytes;
        memmove(rows, rows + from * level->row_bytes, count * level->row_bytes);
    }
    if (level->mask_buffer)
        memmove(level->mask_buffer, level->mask_buffer + from * width, count * width);
    return COGPU_OK;
}

/* ---- downsample ---------------------------------------------------------------------------- */

struct downsample_task {
    const cogpu_writer *writer;
    const struct cogpu_write_level *from, *to;
    uint32_t first, count;
    cogpu_status status;
};

static void downsample_some_rows(void *argument, uint32_t worker, uint64_t index) {
    struct downsample_task *task = argument;
    const cogpu_writer *writer = task->writer;
    const struct cogpu_write_level *from = task->from, *to = task->to;
    const uint32_t done = (uint32_t)index * DOWNSAMPLE_ROWS, left = task->count - done;
    const uint32_t first = task->first + done;
    const uint32_t count = left < DOWNSAMPLE_ROWS ? left : DOWNSAMPLE_ROWS;
    const uint32_t source_rows = from->end_row - from->first_row;
    cogpu_raster source = cogpu_level_rows(from, &from->pixels, from->first_row, source_rows);
    cogpu_raster source_mask = cogpu_level_rows(from, &from->mask, from->first_row, source_rows);
    cogpu_raster target = cogpu_level_rows(to, &to->pixels, first, count);
    cogpu_raster target_mask = cogpu_level_rows(to, &to->mask, first, count);
    const bool has_mask = writer->plan.has_mask;
    const cogpu_downsample_position position = {.from_y = from->first_row, .y = first};
    cogpu_status status = cogpu_cpu_downsample(writer->threads.workers[worker], &from->downsample,
                                               &position, &source, has_mask ? &source_mask : NULL,
                                               &target, has_mask ? &target_mask : NULL, NULL);
    if (status != COGPU_OK)
        __atomic_store_n(&task->status, status, __ATOMIC_RELAXED);
}

static cogpu_status downsample_rows_on_host(cogpu_writer *writer,
                                            const struct cogpu_write_level *level, uint32_t count,
                                            cogpu_error *error) {
    struct downsample_task task = {.writer = writer,
                                   .from = level,
                                   .to = level + 1,
                                   .first = level->downsampled_rows,
                                   .count = count,
                                   .status = COGPU_OK};
    cogpu_pool_run(writer->threads.pool, writer->threads.count, divide_up(count, DOWNSAMPLE_ROWS),
                   downsample_some_rows, &task);
    return task.status == COGPU_OK
               ? COGPU_OK
               : cogpu_fail(error, task.status, "out of memory to make an overview");
}

/* ---- the backend --------------------------------------------------------------------------- */

static void close_host(cogpu_writer *writer) {
    for (uint32_t i = 0; i < COGPU_LEVELS_MAX; i++) {
        cogpu_release(writer->levels[i].buffer);
        cogpu_release(writer->levels[i].mask_buffer);
    }
}

const cogpu_write_backend cogpu_host_backend = {.can_access = can_cpu_access,
                                                .add_rows = cogpu_writer_advance_rows,
                                                .allocate = allocate_host_rows,
                                                .copy_rows = copy_rows_to_host,
                                                .downsample_rows = downsample_rows_on_host,
                                                .shift_rows = shift_host_rows,
                                                .encode_row = cogpu_encode_queue_add_row,
                                                .drain = cogpu_encode_queue_drain,
                                                .close = close_host};
