/*
 * Windows on a device that its kernels cannot read: the CPU decodes them into host memory, from
 * where they are uploaded, some rows at a time.
 */
#include "read/job.h"

/* The part of a window that `host`, a plan of it in host memory, covers. Its progress is
 * that of blocks `first` to `end` of the window. */
static cogpu_status read_host_chunks(struct cogpu_read_job *job, struct cogpu_read_window *window,
                                     const struct cogpu_read_window *host,
                                     const cogpu_raster *raster, uint64_t first, uint64_t end,
                                     cogpu_error *error) {
    const cogpu_read_plan *plan = &host->plan;
    uint64_t row_bytes = (uint64_t)raster->width * raster->bands * cogpu_type_bytes(raster->type);
    uint32_t chunk_rows = cogpu_tall_chunk_rows(window->plan.storage, row_bytes, raster->height);
    uint8_t *memory = cogpu_allocate((size_t)(chunk_rows * row_bytes));
    cogpu_status status = memory ? COGPU_OK
                                 : cogpu_fail(error, COGPU_OUT_OF_MEMORY,
                                              "out of memory for %u rows of pixels", chunk_rows);
    for (uint32_t y = 0, rows; status == COGPU_OK && y < raster->height; y += rows) {
        rows = raster->height - y < chunk_rows ? raster->height - y : chunk_rows;
        struct cogpu_read_window chunk =
            cogpu_window_part(host, plan->x, plan->y + y, plan->width, rows);
        cogpu_share share =
            cogpu_share_of_rows(&window->meter, first, end, y, rows, raster->height);
        chunk.raster.data = memory;
        status = cogpu_read_part(job, &chunk, share, window->result, error);
        if (status == COGPU_OK)
            status = cogpu_gpu_upload_rows(window->device, memory, rows, raster, y, error);
    }
    cogpu_release(memory);
    return status;
}

cogpu_status cogpu_read_via_host(struct cogpu_read_job *job, struct cogpu_read_window *window,
                                 cogpu_error *error) {
    const cogpu_read_plan *plan = &window->plan;
    struct cogpu_read_window host =
        cogpu_window_part(&window->parts[0], plan->x, plan->y, plan->width, plan->height);
    return read_host_chunks(job, window, &host, &window->raster, 0, window->meter.total, error);
}

/* ---- streamed blocks ----------------------------------------------------------------------- */

/* The pixels of the raster that a block, or rows of it, cover. */
static cogpu_raster raster_of_block(const struct cogpu_read_window *window,
                                    const cogpu_block *block) {
    bool is_planar = window->plan.storage->planes > 1;
    cogpu_raster part = window->raster;
    part.data = (uint8_t *)part.data + block->target_x * part.stride_x +
                block->target_y * part.stride_y + (is_planar ? block->plane * part.stride_band : 0);
    part.bands = is_planar ? 1 : part.bands;
    part.width = block->width;
    part.height = block->height;
    return part;
}

static cogpu_status upload_decoded_rows(void *user, const uint8_t *pixels, const cogpu_block *rows,
                                        cogpu_error *error) {
    const struct cogpu_read_window *window = user;
    cogpu_raster raster = raster_of_block(window, rows);
    return cogpu_gpu_upload_rows(window->device, pixels, rows->height, &raster, 0, error);
}

/* Decodes a block once, as it is read, and uploads its rows as they come. False if that fails, for
 * any reason. */
static bool upload_block_stream(struct cogpu_read_job *job, struct cogpu_read_window *window,
                                const cogpu_block *block) {
    const cogpu_row_sink sink = {upload_decoded_rows, window};
    cogpu_span span;
    bool needs_whole;
    uint64_t read = 0;
    if (cogpu_storage_locate(window->plan.storage, block->index, 1, &span, NULL) != COGPU_OK ||
        span.bytes == 0 ||
        cogpu_cpu_stream(job->workers[0], &window->plan, block, span, &window->raster, &sink,
                         &needs_whole, &read, NULL) != COGPU_OK)
        return false;
    window->result->blocks++;
    window->result->bytes_read += span.bytes;
    return true;
}

/* Reads block `number` in chunks, which report what is wrong with it. */
static cogpu_status read_block_in_chunks(struct cogpu_read_job *job,
                                         struct cogpu_read_window *window, uint64_t number,
                                         const cogpu_block *block, cogpu_error *error) {
    const cogpu_read_plan *plan = &window->plan;
    cogpu_raster raster = raster_of_block(window, block);
    uint32_t band = cogpu_plan_band(plan, block->plane) + 1;
    struct cogpu_read_window host = window->parts[0];
    if (plan->storage->planes > 1) {
        host.plan.bands = &band;
        host.plan.band_count = 1;
    }
    host = cogpu_window_part(&host, plan->x + block->target_x, plan->y + block->target_y,
                             block->width, block->height);
    return read_host_chunks(job, window, &host, &raster, number, number + 1, error);
}

cogpu_status cogpu_read_streamed(struct cogpu_read_job *job, struct cogpu_read_window *window,
                                 cogpu_error *error) {
    for (uint64_t i = 0; i < window->plan.count; i++) {
        cogpu_block block = cogpu_plan_block(&window->plan, i);
        if (!upload_block_stream(job, window, &block))
            TRY(read_block_in_chunks(job, window, i, &block, error));
        if (!cogpu_meter_move_to(&window->meter, i + 1))
            return cogpu_fail_cancelled(error);
    }
    return COGPU_OK;
}
