/*
 * The read engine. One window and many windows of many files are read the same way:
 *
 *     check     each request: level, window, bands, raster, codec           check_request.c
 *     plan      each window: blocks, conversion, method, sub-reads          plan_window.c, src/plan
 *     workers   threads and their scratch memory                            workers.c
 *     sub-reads windows that are not read block by block                    part.c, via_host.c,
 *                                                                           via_device.c, ...
 *     batches   the next blocks of all other windows, their byte ranges     batch.c, prefetch.c
 *     decode    by the CPU                                                  host.c, src/cpu
 *               or by the rasters' device                                   device.c, src/gpu
 *     masks     NaN where a mask directory or alpha band is 0               mask.c
 *     report    status and counts of each item, the first error
 *
 * Check and plan read no pixels. All later steps execute a plan; none calls the public API.
 */
#include "read/read.h"

#include "read/job.h"

static bool is_going_on(const struct cogpu_read_window *window) {
    return window->error.status == COGPU_OK && !cogpu_meter_is_cancelled(&window->meter);
}

/* ---- check and plan ------------------------------------------------------------------------ */

static cogpu_status plan_item(struct cogpu_read_job *job, const cogpu_read_call *item,
                              struct cogpu_read_window *window) {
    struct cogpu_read_spec spec;
    const cogpu_request *request = &item->request;
    TRY(cogpu_check_request(item, &spec, &window->error));
    spec.device = job->device;
    spec.threads = job->threads;
    if (!spec.device && request->decode_device != COGPU_DEVICE_CPU)
        TRY(cogpu_context_device(job->context, request->decode_device, request->decode_device_index,
                                 &spec.decode_device, &window->error));
    return cogpu_plan_window(&spec, &job->arena, window, &window->error);
}

static void plan_items(struct cogpu_read_job *job) {
    for (size_t i = 0; i < job->count; i++) {
        struct cogpu_read_window *window = &job->windows[i];
        cogpu_error_clear(&window->error);
        (void)plan_item(job, job->items[i], window); /* its status is in window->error */
        window->result = &job->items[i]->result;
    }
}

/* ---- execute ------------------------------------------------------------------------------- */

/* Whether a source is still what was opened. Windows of one file are one check. */
static cogpu_status check_source(struct cogpu_read_job *job, const cogpu_read_plan *plan,
                                 cogpu_error *error) {
    const cogpu_io *io = plan->storage->tiff->io;
    if (io == job->checked_io)
        return COGPU_OK;
    TRY(cogpu_io_check(io, error));
    job->checked_io = io;
    return COGPU_OK;
}

/* Of a window and its mask, which may be in a .msk file. */
cogpu_status cogpu_check_sources(struct cogpu_read_job *job, const struct cogpu_read_window *window,
                                 cogpu_error *error) {
    TRY(check_source(job, &window->plan, error));
    if (window->mask)
        TRY(check_source(job, &window->mask->plan, error));
    for (uint32_t i = 0; i < window->part_count; i++)
        TRY(cogpu_check_sources(job, &window->parts[i], error));
    return COGPU_OK;
}

/* Reports progress for the first time, which may cancel the window. */
static cogpu_status begin_window(struct cogpu_read_job *job, const cogpu_request *request,
                                 struct cogpu_read_window *window) {
    TRY(cogpu_check_sources(job, window, &window->error));
    cogpu_meter_open(&window->meter, request->progress, request->progress_user,
                     cogpu_window_blocks(window));
    window->plan.meter = &window->meter;
    return cogpu_meter_move_to(&window->meter, 0) ? COGPU_OK : cogpu_fail_cancelled(&window->error);
}

/* Reads the windows that need sub-reads, and queues the others for batches. */
static cogpu_status begin_windows(struct cogpu_read_job *job, cogpu_error *error) {
    struct cogpu_read_queue *queue = &job->queue;
    TRY(cogpu_arena_allocate(&job->arena, job->count, sizeof(struct cogpu_read_window *),
                             &queue->windows, error));
    queue->device = job->device;
    queue->may_stay_pending = job->is_pending;
    for (size_t i = 0; i < job->count; i++) {
        struct cogpu_read_window *window = &job->windows[i];
        if (window->error.status != COGPU_OK ||
            begin_window(job, &job->items[i]->request, window) != COGPU_OK)
            continue;
        if (window->mask)
            queue->may_stay_pending = false;
        if (window->method == COGPU_READ_BLOCKS)
            queue->windows[queue->count++] = window;
        else
            (void)cogpu_execute_window(job, window, &window->error);
    }
    return COGPU_OK;
}

static void apply_masks(struct cogpu_read_job *job) {
    for (size_t i = 0; i < job->count; i++)
        if (is_going_on(&job->windows[i]) && job->windows[i].mask)
            (void)cogpu_apply_mask(job, &job->windows[i], &job->windows[i].error);
}

/* ---- report -------------------------------------------------------------------------------- */

/* A file that changed during the read may have given pixels of both versions, or bytes that no
 * decoder accepts. */
static void check_unchanged(struct cogpu_read_job *job, struct cogpu_read_window *window) {
    cogpu_status status = window->error.status;
    bool has_begun = window->plan.meter;
    if (has_begun && (status == COGPU_OK || status == COGPU_CORRUPT || status == COGPU_IO_ERROR))
        (void)cogpu_check_sources(job, window, &window->error);
}

static cogpu_status report_items(struct cogpu_read_job *job, cogpu_error *error) {
    cogpu_status first = COGPU_OK;
    job->checked_io = NULL;
    for (size_t i = 0; i < job->count; i++) {
        struct cogpu_read_window *window = &job->windows[i];
        check_unchanged(job, window);
        if (is_going_on(window))
            (void)cogpu_meter_complete(&window->meter);
        if (cogpu_meter_is_cancelled(&window->meter))
            (void)cogpu_fail_cancelled(&window->error);
        cogpu_meter_close(&window->meter);
        job->items[i]->status = window->error.status;
        if (first == COGPU_OK && window->error.status != COGPU_OK) {
            first = window->error.status;
            if (error)
                *error = window->error;
        }
    }
    return first;
}

/* The job failed as a whole, perhaps before it had windows. */
static void fail_items(struct cogpu_read_job *job, cogpu_status status) {
    for (size_t i = 0; i < job->count; i++) {
        job->items[i]->status = status;
        if (job->windows)
            cogpu_meter_close(&job->windows[i].meter);
    }
}

/* ---- the job ------------------------------------------------------------------------------- */

static cogpu_status open_job(struct cogpu_read_job *job, cogpu_error *error) {
    const cogpu_raster *raster = &job->items[0]->raster;
    cogpu_arena_open(&job->arena, UINT64_MAX);
    pthread_mutex_init(&job->lock, NULL);
    if (job->threads == 0)
        job->threads = job->context ? cogpu_pool_threads(job->context->pool) : cogpu_cpu_cores();
    TRY(cogpu_arena_allocate(&job->arena, job->count, sizeof *job->windows, &job->windows, error));
    return raster->device == COGPU_DEVICE_CPU
               ? COGPU_OK
               : cogpu_context_device(job->context, raster->device, raster->device_index,
                                      &job->device, error);
}

/* Up to the last batch. If the job is pending, that one may still be on the device. */
static cogpu_status start_job(struct cogpu_read_job *job, cogpu_error *error) {
    TRY(open_job(job, error));
    plan_items(job);
    TRY(cogpu_job_open_workers(job, error));
    TRY(begin_windows(job, error));
    return cogpu_read_batches(job, &job->queue, error);
}

/* `status` is that of the start. */
static cogpu_status finish_job(struct cogpu_read_job *job, cogpu_status status,
                               cogpu_error *error) {
    if (job->batch.is_on_device)
        status = cogpu_batch_finish_on_device(job, error);
    if (status == COGPU_OK) {
        apply_masks(job);
        status = report_items(job, error);
    } else {
        fail_items(job, status);
    }
    cogpu_job_close_workers(job);
    pthread_mutex_destroy(&job->lock);
    cogpu_arena_close(&job->arena);
    return status;
}

/* ---- items of several devices -------------------------------------------------------------- */

static void clear_result(cogpu_read_call *item) {
    item->result = (cogpu_result){0};
    cogpu_error_clear(&item->result.first_bad);
}

static cogpu_status read_on_one_device(cogpu_read_call **items, size_t count, uint32_t threads,
                                       cogpu_context *context, cogpu_error *error) {
    struct cogpu_read_job job = {
        .items = items, .count = count, .context = context, .threads = threads};
    return finish_job(&job, start_job(&job, error), error);
}

/* Moves the items of one device, in order, to `chosen`. Returns how many; 0 after the last device.
 */
static size_t choose_items_of_device(cogpu_read_call *items, size_t count, bool *is_chosen,
                                     cogpu_read_call **chosen) {
    const cogpu_raster *first = NULL;
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const cogpu_raster *raster = &items[i].raster;
        if (is_chosen[i])
            continue;
        first = first ? first : raster;
        if (raster->device != first->device || raster->device_index != first->device_index)
            continue;
        is_chosen[i] = true;
        chosen[found++] = &items[i];
    }
    return found;
}

/* Each device's items are a job. The error is that of the first failed item, by index. */
static cogpu_status read_by_device(cogpu_read_call *items, size_t count, uint32_t threads,
                                   bool *is_chosen, cogpu_read_call **chosen,
                                   cogpu_context *context, cogpu_error *error) {
    cogpu_status status = COGPU_OK;
    const cogpu_read_call *first_failed = NULL;
    for (size_t part; (part = choose_items_of_device(items, count, is_chosen, chosen)) > 0;) {
        cogpu_error own;
        cogpu_status part_status = read_on_one_device(chosen, part, threads, context, &own);
        size_t failed = 0;
        while (failed < part && chosen[failed]->status == COGPU_OK)
            failed++;
        if (part_status == COGPU_OK || (first_failed && first_failed < chosen[failed]))
            continue;
        first_failed = chosen[failed];
        status = part_status;
        if (error)
            *error = own;
    }
    return status;
}

cogpu_status cogpu_read_items(cogpu_read_call *items, size_t count, uint32_t threads,
                              cogpu_context *context, cogpu_error *error) {
    for (size_t i = 0; i < count; i++)
        clear_result(&items[i]);
    if (count == 1)
        return read_on_one_device(&(cogpu_read_call *){items}, 1, threads, context, error);
    cogpu_arena arena;
    cogpu_read_call **chosen = NULL;
    bool *is_chosen = NULL;
    cogpu_arena_open(&arena, UINT64_MAX);
    cogpu_status status = cogpu_arena_allocate(&arena, count, sizeof *chosen, &chosen, error);
    if (status == COGPU_OK)
        status = cogpu_arena_allocate(&arena, count, sizeof *is_chosen, &is_chosen, error);
    for (size_t i = 0; i < count; i++)
        items[i].status = status;
    if (status == COGPU_OK)
        status = read_by_device(items, count, threads, is_chosen, chosen, context, error);
    cogpu_arena_close(&arena);
    return status;
}

/* ---- pending reads ------------------------------------------------------------------------- */

cogpu_status cogpu_read_start(const cogpu_read_call *item, cogpu_read_job **out,
                              cogpu_error *error) {
    struct cogpu_read_job *job = cogpu_allocate(sizeof *job);
    *out = NULL;
    if (!job)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for a read");
    *job = (struct cogpu_read_job){.item = *item,
                                   .own_items = {&job->item},
                                   .items = job->own_items,
                                   .count = 1,
                                   .context = item->request.context,
                                   .threads = item->request.threads,
                                   .is_pending = true};
    clear_result(&job->item);
    cogpu_status status = start_job(job, error);
    job->is_complete = status != COGPU_OK || !job->batch.is_on_device ||
                       cogpu_meter_is_cancelled(&job->windows[0].meter);
    if (job->is_complete)
        status = finish_job(job, status, error);
    if (status == COGPU_OK)
        *out = job;
    else
        cogpu_release(job);
    return status;
}

cogpu_status cogpu_read_finish(cogpu_read_job *job, cogpu_result *result, cogpu_error *error) {
    cogpu_status status = job->is_complete ? COGPU_OK : finish_job(job, COGPU_OK, error);
    *result = job->item.result;
    cogpu_release(job);
    return status;
}
