/*
 * Takes a batch of blocks whose rasters lie on a device, hands it to the device's reader
 * (gpu_read.c). What the device has no way for is read into memory of the host, swath by swath, and
 * put into the raster from there.
 */
#include "api/job.h"

/* Swaths of blocks that are taller than a usual swath. */
enum { TALL_BYTES = 128 << 20 };

static bool device_failed(void *user, uint32_t number, const cogpu_error *error) {
    struct cogpu_job *job = user;
    struct cogpu_task *task = &job->tasks[number];
    cogpu_error placed = *error;
    cogpu_task_fail(job, task, &placed);
    return cogpu_is_fillable(task->reading, error->status);
}

cogpu_status cogpu_job_start_on_device(struct cogpu_job *job, cogpu_error *error) {
    cogpu_gpu_task *tasks = cogpu_allocate(job->task_count * sizeof *tasks);
    if (!tasks)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for %u blocks", job->task_count);
    for (uint32_t i = 0; i < job->task_count; i++) {
        const struct cogpu_task *task = &job->tasks[i];
        bool fills = task->is_lost && task->reading->item->request.fill_bad_blocks;
        tasks[i] = (cogpu_gpu_task){.plan = &task->reading->plan,
                                    .raster = &task->reading->raster,
                                    .block = task->block,
                                    .span = task->span,
                                    .is_out = task->is_lost && !fills};
        if (fills)
            tasks[i].span.bytes = 0;
    }
    job->device_tasks = tasks;
    job->work = (cogpu_gpu_work){.tasks = tasks,
                                 .count = job->task_count,
                                 .pool = job->pool,
                                 .seats = job->seats,
                                 .seat_count = job->seat_count,
                                 .failed = device_failed,
                                 .user = job,
                                 .is_pending = job->is_pending,
                                 .stages = &job->tasks[0].reading->item->result.stages};
    cogpu_job_expect(job);
    cogpu_status status = cogpu_gpu_start(job->reader, &job->work, error);
    job->is_under_way = status == COGPU_OK;
    if (status != COGPU_OK) {
        cogpu_job_forget(job);
        cogpu_release(tasks);
    }
    return status;
}

cogpu_status cogpu_job_finish_on_device(struct cogpu_job *job, cogpu_error *error) {
    cogpu_status status = cogpu_gpu_finish(job->reader, &job->work, error);
    job->is_under_way = false;
    cogpu_job_forget(job);
    for (uint32_t i = 0; i < job->task_count; i++) {
        const struct cogpu_task *task = &job->tasks[i];
        const cogpu_gpu_task *done = &job->device_tasks[i];
        cogpu_result *result = &task->reading->item->result;
        result->sparse_blocks += task->span.bytes == 0 && !task->is_lost;
        result->bytes_read += task->is_lost ? 0 : task->span.bytes;
        result->device_blocks += done->is_decoded;
        result->late_blocks += done->is_late;
        result->direct_bytes += done->came_directly ? task->span.bytes : 0;
    }
    cogpu_release(job->device_tasks);
    return status;
}

uint32_t cogpu_tall_swath_rows(const cogpu_storage *storage, uint64_t row_bytes, uint32_t height) {
    uint32_t rows = cogpu_swath_rows(storage, row_bytes, height);
    uint64_t tall = TALL_BYTES / row_bytes;
    if (rows == height || rows >= storage->block_height)
        return rows;
    return tall < 1 ? 1 : tall < height ? (uint32_t)tall : height;
}

/* Reads a window into memory of the host and from there into the raster on the device, swath by
 * swath. Its progress stands for the reading's blocks from `first` to `end`. */
static cogpu_status read_swaths(struct cogpu_reading *reading, cogpu_gpu_reader *reader,
                                cogpu_request request, const cogpu_raster *raster, uint64_t first,
                                uint64_t end, cogpu_error *error) {
    cogpu_read_item *item = reading->item;
    const cogpu_storage *storage = reading->plan.storage;
    uint64_t row_bytes = (uint64_t)raster->width * raster->bands * cogpu_type_bytes(raster->type);
    uint32_t rows = cogpu_tall_swath_rows(storage, row_bytes, raster->height), top = request.y;
    uint8_t *swath = cogpu_allocate((size_t)(rows * row_bytes));
    cogpu_status status =
        swath ? COGPU_OK : cogpu_fail(error, COGPU_MEMORY, "out of memory for a swath");
    for (uint32_t y = 0; status == COGPU_OK && y < raster->height; y += request.height) {
        cogpu_result part = {0};
        request.y = top + y;
        request.height = raster->height - y < rows ? raster->height - y : rows;
        cogpu_share share =
            cogpu_share_of_rows(&reading->meter, first, end, y, request.height, raster->height);
        cogpu_request_share(&request, &share);
        cogpu_raster host = {.data = swath,
                             .type = raster->type,
                             .bands = raster->bands,
                             .height = request.height,
                             .width = raster->width};
        status = cogpu_read(item->file, &request, &host, &part, error);
        if (status == COGPU_OK)
            status = cogpu_gpu_put(reader, swath, request.height, raster, y, error);
        cogpu_result_add(&part, &item->result);
    }
    cogpu_release(swath);
    return status;
}

/* What a block, or rows of it, cover of the raster. */
static cogpu_raster part_of(const struct cogpu_reading *reading, const cogpu_block *block) {
    bool planar = reading->plan.storage->planes > 1;
    cogpu_raster part = reading->raster;
    part.data = (uint8_t *)part.data + block->target_x * part.stride_x +
                block->target_y * part.stride_y + (planar ? block->plane * part.stride_band : 0);
    part.bands = planar ? 1 : part.bands;
    part.width = block->width;
    part.height = block->height;
    return part;
}

struct sinking {
    const struct cogpu_reading *reading;
    cogpu_gpu_reader *reader;
};

static cogpu_status sink(void *user, const uint8_t *pixels, const cogpu_block *part,
                         cogpu_error *error) {
    const struct sinking *sinking = user;
    cogpu_raster raster = part_of(sinking->reading, part);
    return cogpu_gpu_put(sinking->reader, pixels, part->height, &raster, 0, error);
}

/* Decodes a block once, as it is read, and puts its rows into the raster as they come. False where
 * that fails, for whatever reason. */
static bool stream_to_device(struct cogpu_reading *reading, cogpu_gpu_reader *reader,
                             const cogpu_block *block) {
    cogpu_result *result = &reading->item->result;
    cogpu_context *context = reading->item->request.context;
    struct sinking sinking = {reading, reader};
    const cogpu_row_sink to = {sink, &sinking};
    cogpu_span span;
    bool needs_whole;
    uint64_t read = 0;
    if (cogpu_storage_locate(reading->plan.storage, block->index, 1, &span, NULL) != COGPU_OK ||
        span.bytes == 0)
        return false;
    cogpu_seat *seat = cogpu_context_seat(context);
    if (!seat)
        return false;
    cogpu_status status = cogpu_cpu_stream(seat, &reading->plan, block, span, &reading->raster, &to,
                                           &needs_whole, &read, NULL);
    cogpu_context_give_back(context, seat);
    if (status != COGPU_OK)
        return false;
    result->blocks++;
    result->bytes_read += span.bytes;
    return true;
}

/* Block by block; what cannot be streamed is read in swaths, which tell what is wrong with it. */
static cogpu_status read_tall(struct cogpu_reading *reading, cogpu_gpu_reader *reader,
                              const cogpu_request *request, uint64_t blocks, cogpu_error *error) {
    const cogpu_read_plan *plan = &reading->plan;
    for (uint64_t i = 0; i < blocks; i++) {
        cogpu_block block = cogpu_plan_block(plan, i);
        cogpu_raster raster = part_of(reading, &block);
        cogpu_request part = *request;
        uint32_t band = cogpu_plan_band(plan, block.plane) + 1;
        part.x += block.target_x;
        part.y += block.target_y;
        part.width = block.width;
        part.height = block.height;
        if (plan->storage->planes > 1) {
            part.bands = &band;
            part.band_count = 1;
        }
        if (!stream_to_device(reading, reader, &block))
            TRY(read_swaths(reading, reader, part, &raster, i, i + 1, error));
        if (!cogpu_meter_move_to(&reading->meter, i + 1))
            return cogpu_fail_cancelled(error);
    }
    return COGPU_OK;
}

cogpu_status cogpu_read_by_host(struct cogpu_reading *reading, cogpu_gpu_reader *reader,
                                const cogpu_request *request, cogpu_error *error) {
    uint64_t blocks = reading->plan.count;
    reading->plan.count = 0; /* there is nothing left for the device to do */
    const cogpu_storage *storage = reading->plan.storage;
    if (request->part == COGPU_PIXELS && cogpu_cpu_is_streamed(storage) &&
        !cogpu_has_planar_colours(storage))
        return read_tall(reading, reader, request, blocks, error);
    reading->voids = NULL; /* which the host sees to */
    return read_swaths(reading, reader, *request, &reading->raster, 0, reading->meter.total, error);
}
