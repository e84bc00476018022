/*
 * A device as backend of a writer. Rows are copied, downsampled and packed on the device, by the
 * GPU write pipeline (gpu/write_pipeline.h). This file pulls batches out of it and hands them to
 * the output: first for their offsets, then for their bytes. If the device has no encoder for the
 * codec, batches hold packed blocks, which go to the encode queue of the CPU instead.
 */
#include "kernels/copy_rows/copy_rows_args.h"
#include "kernels/resample/downsample_args.h"
#include "write/writer.h"

static bool can_gpu_access(const cogpu_writer *writer, const cogpu_raster *rows) {
    return rows->device == writer->backend.device &&
           rows->device_index == writer->backend.device_index;
}

static cogpu_status allocate_device_rows(cogpu_writer *writer, uint64_t bytes, void **memory,
                                         cogpu_error *error) {
    return cogpu_gpu_writer_allocate(writer->backend.pipeline, bytes, memory, error);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static cogpu_raster rows_of(const cogpu_raster *raster, uint32_t first, uint32_t count) {
    cogpu_raster rows = *raster;
    rows.data = (uint8_t *)rows.data + (int64_t)first * rows.stride_y;
    rows.height = count;
    return rows;
}

static cogpu_gpu *gpu_of_writer(const cogpu_writer *writer) {
    return cogpu_gpu_device_gpu(writer->backend.opened);
}

/* Orders the use of the caller's rows by streams. After a failure no work reads them any more. */
static cogpu_status add_rows(cogpu_writer *writer, const cogpu_raster *rows,
                             const cogpu_raster *mask, cogpu_error *error) {
    cogpu_gpu_writer *pipeline = writer->backend.pipeline;
    const cogpu_raster *both[] = {rows, mask};
    cogpu_status status = COGPU_OK;
    for (uint32_t i = 0; i < 2 && status == COGPU_OK; i++)
        if (both[i]->device != COGPU_DEVICE_CPU)
            status = cogpu_gpu_writer_begin_rows(pipeline, both[i], error);
    if (status == COGPU_OK)
        status = cogpu_writer_advance_rows(writer, rows, mask, error);
    for (uint32_t i = 0; i < 2 && status == COGPU_OK; i++)
        if (both[i]->device != COGPU_DEVICE_CPU)
            status = cogpu_gpu_writer_end_rows(pipeline, both[i], error);
    if (status != COGPU_OK)
        cogpu_gpu_writer_wait_rows(pipeline);
    return status;
}

static cogpu_status copy_on_device(cogpu_writer *writer, const cogpu_raster *from,
                                   const cogpu_raster *to, uint32_t rows, cogpu_error *error) {
    return cogpu_gpu_copy_rows(gpu_of_writer(writer), from, to, rows,
                               cogpu_gpu_writer_stream(writer->backend.pipeline), error);
}

/* The raster of `rows` rows in a staging buffer: without gaps, in the order of `to`. */
static cogpu_raster staged_raster(const cogpu_raster *to, void *device, uint32_t rows,
                                  uint64_t row_bytes, bool is_planar) {
    const size_t sample = cogpu_type_bytes(to->type);
    cogpu_raster staged = *to;
    staged.data = device;
    staged.stride_y = (int64_t)row_bytes;
    staged.stride_x = (int64_t)(is_planar ? sample : sample * to->bands);
    staged.stride_band = (int64_t)(is_planar ? rows * row_bytes : sample);
    return staged;
}

/* Copies rows from host memory by way of pinned staging buffers. */
static cogpu_status upload_host_rows(cogpu_writer *writer, const cogpu_raster *from, uint32_t first,
                                     const cogpu_raster *to, uint32_t count, cogpu_error *error) {
    cogpu_gpu_writer *pipeline = writer->backend.pipeline;
    const size_t sample = cogpu_type_bytes(from->type);
    const bool is_planar = to->stride_band != (int64_t)sample && from->bands > 1;
    const uint64_t row_bytes = (uint64_t)from->width * sample * (is_planar ? 1 : from->bands);
    const uint64_t all_bytes = row_bytes * (is_planar ? from->bands : 1);
    for (uint32_t done = 0, rows; done < count; done += rows) {
        uint8_t *pinned = NULL;
        uint64_t capacity = 0;
        void *device = NULL;
        TRY(cogpu_gpu_writer_staging_buffer(pipeline, &pinned, &capacity, error));
        rows =
            capacity / all_bytes < count - done ? (uint32_t)(capacity / all_bytes) : count - done;
        cogpu_writer_copy_rows(writer, from, first + done, rows, is_planar,
                               (size_t)(rows * row_bytes), pinned);
        TRY(cogpu_gpu_writer_upload_staged(pipeline, rows * all_bytes, &device, error));
        const cogpu_raster staged = staged_raster(to, device, rows, row_bytes, is_planar);
        const cogpu_raster target = rows_of(to, done, rows);
        TRY(copy_on_device(writer, &staged, &target, rows, error));
    }
    return COGPU_OK;
}

static cogpu_status copy_raster_rows(cogpu_writer *writer, const cogpu_raster *from, uint32_t first,
                                     const cogpu_raster *buffer, uint32_t buffered, uint32_t count,
                                     cogpu_error *error) {
    const cogpu_raster to = rows_of(buffer, buffered, count);
    if (!can_gpu_access(writer, from))
        return upload_host_rows(writer, from, first, &to, count, error);
    const cogpu_raster rows = rows_of(from, first, count);
    return copy_on_device(writer, &rows, &to, count, error);
}

static cogpu_status copy_rows_to_device(cogpu_writer *writer, const cogpu_raster *rows,
                                        const cogpu_raster *mask, uint32_t first, uint32_t count,
                                        uint32_t buffered, cogpu_error *error) {
    const struct cogpu_write_level *level = &writer->levels[0];
    TRY(copy_raster_rows(writer, rows, first, &level->pixels, buffered, count, error));
    return level->mask_buffer
               ? copy_raster_rows(writer, mask, first, &level->mask, buffered, count, error)
               : COGPU_OK;
}

static cogpu_status shift_device_rows(cogpu_writer *writer, const struct cogpu_write_level *level,
                                      uint32_t from, uint32_t count, cogpu_error *error) {
    cogpu_raster rows = rows_of(&level->pixels, from, count);
    TRY(copy_on_device(writer, &rows, &level->pixels, count, error));
    if (!level->mask_buffer)
        return COGPU_OK;
    rows = rows_of(&level->mask, from, count);
    return copy_on_device(writer, &rows, &level->mask, count, error);
}

static cogpu_status downsample_rows_on_device(cogpu_writer *writer,
                                              const struct cogpu_write_level *level, uint32_t count,
                                              cogpu_error *error) {
    const struct cogpu_write_level *next = level + 1;
    const uint32_t first = level->first_row, source_rows = level->end_row - first;
    cogpu_raster from = cogpu_level_rows(level, &level->pixels, first, source_rows);
    cogpu_raster from_mask = cogpu_level_rows(level, &level->mask, first, source_rows);
    cogpu_raster to = cogpu_level_rows(next, &next->pixels, level->downsampled_rows, count);
    cogpu_raster to_mask = cogpu_level_rows(next, &next->mask, level->downsampled_rows, count);
    const bool has_mask = writer->plan.has_mask;
    return cogpu_gpu_downsample(gpu_of_writer(writer), &level->downsample, &from,
                                has_mask ? &from_mask : NULL, first, level->downsampled_rows, &to,
                                has_mask ? &to_mask : NULL,
                                cogpu_gpu_writer_stream(writer->backend.pipeline), error);
}

/* ---- batches ------------------------------------------------------------------------------- */

/* Sends a batch the shortest way: from the device to the file, to the caller's pinned buffer, or to
 * pinned memory of the pipeline. */
static cogpu_status send_batch(cogpu_writer *writer, cogpu_gpu_write_batch *batch,
                               cogpu_error *error) {
    cogpu_gpu_writer *pipeline = writer->backend.pipeline;
    uint8_t *to = NULL;
    bool is_contiguous = false;
    if (cogpu_gpu_writer_needs_cpu_encoding(pipeline))
        return cogpu_gpu_writer_copy_batch(pipeline, batch, NULL, error);
    TRY(cogpu_write_output_assign_batch(writer, batch, &is_contiguous, error));
    if (is_contiguous && cogpu_gpu_writer_uses_cufile(pipeline) &&
        cogpu_out_may_grow_to(batch->file_offset + batch->bytes))
        return cogpu_gpu_writer_write_batch(pipeline, batch, error);
    if (is_contiguous && cogpu_gpu_writer_reaches_buffer(pipeline))
        TRY(cogpu_write_output_batch_buffer(writer, batch, &to, error));
    return cogpu_gpu_writer_copy_batch(pipeline, batch, to, error);
}

/* All batches but the last `in_flight` ones. */
static cogpu_status send_batches(cogpu_writer *writer, uint32_t in_flight, cogpu_error *error) {
    cogpu_gpu_write_batch *batch = NULL;
    do {
        TRY(cogpu_gpu_writer_next_sized(writer->backend.pipeline, in_flight, &batch, error));
        if (batch)
            TRY(send_batch(writer, batch, error));
    } while (batch);
    return COGPU_OK;
}

static cogpu_status wait_for_batches(cogpu_writer *writer, uint32_t in_flight, cogpu_error *error) {
    cogpu_gpu_writer *pipeline = writer->backend.pipeline;
    cogpu_gpu_write_batch *batch = NULL;
    do {
        TRY(cogpu_gpu_writer_next_finished(pipeline, in_flight, &batch, error));
        if (batch)
            TRY(cogpu_gpu_writer_needs_cpu_encoding(pipeline)
                    ? cogpu_encode_queue_add_batch(writer, batch, error)
                    : cogpu_write_output_write_batch(writer, batch, error));
    } while (batch);
    return COGPU_OK;
}

/* Starts the open batch. With cuFile its file offset must be known before it is compacted, and so
 * those of all batches before it. */
static cogpu_status start_batch(cogpu_writer *writer, cogpu_error *error) {
    cogpu_gpu_writer *pipeline = writer->backend.pipeline;
    TRY(cogpu_gpu_writer_encode_batch(pipeline, error));
    if (cogpu_gpu_writer_uses_cufile(pipeline))
        TRY(send_batches(writer, 0, error));
    return cogpu_gpu_writer_compact_batch(pipeline, writer->output.end, error);
}

/* A full batch starts; the one before it is sent, and the one before that is finished. So the
 * device has a batch to encode while the host waits or writes. */
static cogpu_status encode_row(cogpu_writer *writer, struct cogpu_write_level *level, uint32_t row,
                               cogpu_error *error) {
    cogpu_gpu_writer *pipeline = writer->backend.pipeline;
    const cogpu_write_plan *plan = &writer->plan;
    const cogpu_gpu_block_row blocks = {.level = level,
                                        .grid = level->grid,
                                        .row = row,
                                        .pixels = &level->pixels,
                                        .mask = plan->has_mask ? &level->mask : NULL,
                                        .first_row = level->first_row};
    const uint64_t count = (uint64_t)level->grid->across * (plan->planes + plan->has_mask);
    for (uint64_t next = 0; next < count;) {
        TRY(cogpu_gpu_writer_pack_blocks(pipeline, &blocks, &next, error));
        if (!cogpu_gpu_writer_is_full(pipeline))
            continue;
        TRY(start_batch(writer, error));
        TRY(send_batches(writer, 1, error));
        TRY(wait_for_batches(writer, 2, error));
    }
    return COGPU_OK;
}

static cogpu_status drain_batches(cogpu_writer *writer, cogpu_error *error) {
    if (cogpu_gpu_writer_has_blocks(writer->backend.pipeline))
        TRY(start_batch(writer, error));
    TRY(send_batches(writer, 0, error));
    TRY(wait_for_batches(writer, 0, error));
    return cogpu_encode_queue_drain(writer, error);
}

/* ---- open and close ------------------------------------------------------------------------ */

static void close_device(cogpu_writer *writer) {
    cogpu_gpu_writer_close(writer->backend.pipeline);
    cogpu_context_keep_memory(writer->context, writer->backend.opened, &writer->backend.memory);
}

const cogpu_write_backend cogpu_device_backend = {.keeps_overviews = true,
                                                  .can_access = can_gpu_access,
                                                  .add_rows = add_rows,
                                                  .allocate = allocate_device_rows,
                                                  .copy_rows = copy_rows_to_device,
                                                  .downsample_rows = downsample_rows_on_device,
                                                  .shift_rows = shift_device_rows,
                                                  .encode_row = encode_row,
                                                  .drain = drain_batches,
                                                  .close = close_device};

/* Buffers of all levels but the first, whose rows are mostly used in place. */
static uint64_t bytes_for_rows(const cogpu_writer *writer) {
    uint64_t bytes = 0;
    for (uint32_t i = 1; i < writer->plan.level_count; i++)
        bytes += cogpu_level_buffer_bytes(&writer->plan, &writer->levels[i]) +
                 cogpu_level_mask_buffer_bytes(&writer->plan, &writer->levels[i]) +
                 2 * COGPU_GPU_ALIGN;
    return bytes;
}

static cogpu_status open_pipeline(cogpu_writer *writer, cogpu_error *error) {
    cogpu_gpu_writer_options options = {.plan = &writer->plan,
                                        .budget_bytes = writer->context->device_bytes,
                                        .rows_bytes = bytes_for_rows(writer),
                                        .file_descriptor =
                                            cogpu_out_descriptor(writer->output.sink),
                                        .pool = writer->threads.pool,
                                        .workers = writer->threads.count};
    options.buffer = cogpu_out_buffer(writer->output.sink, &options.buffer_bytes);
    return cogpu_gpu_writer_open(gpu_of_writer(writer), &options, &writer->backend.memory,
                                 &writer->backend.pipeline, error);
}

cogpu_status cogpu_writer_open_device(cogpu_writer *writer, cogpu_error *error) {
    TRY(cogpu_context_device(writer->context, writer->backend.device, writer->backend.device_index,
                             &writer->backend.opened, error));
    writer->backend.memory = cogpu_context_take_memory(writer->context, writer->backend.opened);
    cogpu_status status = open_pipeline(writer, error);
    if (status == COGPU_OK)
        writer->backend.calls = &cogpu_device_backend;
    else
        cogpu_context_keep_memory(writer->context, writer->backend.opened, &writer->backend.memory);
    return status == COGPU_UNSUPPORTED || status == COGPU_LIMIT_EXCEEDED ? COGPU_OK : status;
}
