/*
 * Sub-reads: parts of a window, or other windows that its pixels are made of. They were planned
 * with their parent, and use the workers, the pool and the batch of its job.
 */
#include "read/job.h"

#include "plan/raster.h"

struct cogpu_read_window cogpu_window_part(const struct cogpu_read_window *whole, uint32_t x,
                                           uint32_t y, uint32_t width, uint32_t height) {
    struct cogpu_read_window part = *whole;
    const cogpu_read_plan *plan = &whole->plan;
    cogpu_plan_read(plan->storage, x, y, width, height, plan->bands, plan->band_count, &part.plan);
    part.plan.conversion = plan->conversion;
    part.plan.fill = plan->fill;
    part.raster.bands = plan->band_count;
    part.raster.width = width;
    part.raster.height = height;
    return part;
}

static void add_result(const cogpu_result *part, cogpu_result *result) {
    if (part->bad_blocks > 0 && result->bad_blocks == 0)
        result->first_bad = part->first_bad;
    result->blocks += part->blocks;
    result->sparse_blocks += part->sparse_blocks;
    result->bad_blocks += part->bad_blocks;
    result->cached_blocks += part->cached_blocks;
    result->device_blocks += part->device_blocks;
    result->cpu_fallback_blocks += part->cpu_fallback_blocks;
    result->bytes_read += part->bytes_read;
    result->gds_bytes += part->gds_bytes;
    result->fetch_ms += part->fetch_ms;
    result->copy_ms += part->copy_ms;
    result->decode_ms += part->decode_ms;
    result->unpack_ms += part->unpack_ms;
    result->sources += part->sources;
    result->bad_sources += part->bad_sources;
    result->device_cached_blocks += part->device_cached_blocks;
}

static cogpu_status read_window_blocks(struct cogpu_read_job *job, struct cogpu_read_window *window,
                                       cogpu_error *error) {
    struct cogpu_read_window *windows[] = {window};
    struct cogpu_read_queue queue = {.windows = windows, .count = 1, .device = window->device};
    TRY(cogpu_read_batches(job, &queue, error));
    if (window->error.status != COGPU_OK && error)
        *error = window->error;
    return window->error.status;
}

static cogpu_status read_each_band(struct cogpu_read_job *job, struct cogpu_read_window *window,
                                   cogpu_error *error) {
    cogpu_share share = {.meter = &window->meter};
    for (uint32_t i = 0; i < window->part_count; i++) {
        struct cogpu_read_window *band = &window->parts[i];
        share.first = share.end;
        share.end += cogpu_window_blocks(band);
        TRY(cogpu_read_part(job, band, share, window->result, error));
    }
    return COGPU_OK;
}

cogpu_status cogpu_execute_window(struct cogpu_read_job *job, struct cogpu_read_window *window,
                                  cogpu_error *error) {
    switch (window->method) {
    case COGPU_READ_BLOCKS:
        return read_window_blocks(job, window, error);
    case COGPU_READ_ALL_VALID:
        cogpu_mask_fill_valid(&window->raster);
        return COGPU_OK;
    case COGPU_READ_EACH_BAND:
        return read_each_band(job, window, error);
    case COGPU_READ_PLANAR_COLOURS:
        return cogpu_read_planar_colours(job, window, error);
    case COGPU_READ_VIA_HOST:
        return cogpu_read_via_host(job, window, error);
    case COGPU_READ_VIA_DEVICE:
        return cogpu_read_via_device(job, window, error);
    case COGPU_READ_STREAMED:
        return cogpu_read_streamed(job, window, error);
    case COGPU_READ_MOSAIC:
        return cogpu_read_mosaic(job, window, error);
    }
    return COGPU_OK;
}

/* Pixels, then NaN where the mask is 0. */
static cogpu_status read_masked(struct cogpu_read_job *job, struct cogpu_read_window *window,
                                cogpu_error *error) {
    TRY(cogpu_execute_window(job, window, error));
    if (cogpu_meter_is_cancelled(&window->meter))
        return cogpu_fail_cancelled(error);
    return window->mask ? cogpu_apply_mask(job, window, error) : COGPU_OK;
}

cogpu_status cogpu_read_part(struct cogpu_read_job *job, struct cogpu_read_window *part,
                             cogpu_share share, cogpu_result *result, cogpu_error *error) {
    cogpu_result own = {0};
    part->result = &own;
    part->plan.meter = &part->meter;
    TRY(cogpu_raster_set_strides(&part->raster, error));
    cogpu_meter_open(&part->meter, cogpu_share_progress(&share), &share, cogpu_window_blocks(part));
    cogpu_status status = cogpu_meter_move_to(&part->meter, 0) ? read_masked(job, part, error)
                                                               : cogpu_fail_cancelled(error);
    if (status == COGPU_OK && !cogpu_meter_complete(&part->meter))
        status = cogpu_fail_cancelled(error);
    cogpu_meter_close(&part->meter);
    add_result(&own, result);
    return status;
}

/* ---- windows of other files ---------------------------------------------------------------- */

static void begin_window(struct cogpu_read_job *job, struct cogpu_read_window *window,
                         cogpu_result *result) {
    window->result = result;
    window->plan.meter = &window->meter;
    (void)cogpu_raster_set_strides(&window->raster, &window->error);
    if (window->error.status == COGPU_OK)
        (void)cogpu_check_sources(job, window, &window->error);
}

cogpu_status cogpu_read_windows(struct cogpu_read_job *job, struct cogpu_read_window *windows,
                                uint32_t count, struct cogpu_read_window *whole,
                                cogpu_error *error) {
    struct cogpu_read_queue queue = {.device = whole->device};
    cogpu_result own = {0};
    TRY(cogpu_arena_allocate(&job->arena, count, sizeof *queue.windows, &queue.windows, error));
    for (uint32_t i = 0; i < count; i++) {
        begin_window(job, &windows[i], &own);
        if (windows[i].error.status != COGPU_OK)
            continue;
        if (windows[i].method == COGPU_READ_BLOCKS)
            queue.windows[queue.count++] = &windows[i];
        else
            (void)cogpu_execute_window(job, &windows[i], &windows[i].error);
    }
    TRY(cogpu_read_batches(job, &queue, error));
    add_result(&own, whole->result);
    return COGPU_OK;
}
