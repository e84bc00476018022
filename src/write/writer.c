/*
 * The writer, step by step. README.md has the data flow.
 *
 *     open    plan (plan/write_plan.c), directories (tags.c), layout and sink (layout.c), threads
 *     rows    go down the pyramid (rows.c), are packed and encoded by the CPU (host.c,
 *             blocks.c) or a device (device.c), and written (output.c)
 *     close   drain the encoder, complete the file (layout.c), commit
 */
#include "write/writer.h"

#include "io/http/url.h"

#include <string.h>

/* ---- open ---------------------------------------------------------------------------------- */

/* As many threads as the profile wants, but no more than the pool has. */
static cogpu_status open_threads(cogpu_writer *writer, const cogpu_profile *profile,
                                 cogpu_error *error) {
    cogpu_context *context = writer->context = profile->context;
    if (context)
        writer->threads.pool = context->pool;
    else
        TRY(cogpu_pool_open(profile->threads ? profile->threads : cogpu_cpu_cores(),
                            &writer->threads.pool, error));
    uint32_t threads = cogpu_pool_threads(writer->threads.pool);
    if (profile->threads && profile->threads < threads)
        threads = profile->threads;
    TRY(cogpu_arena_allocate(&writer->arena, threads, sizeof *writer->threads.workers,
                             &writer->threads.workers, error));
    while (writer->threads.count < threads) {
        cogpu_worker *worker = cogpu_context_take_worker(context);
        if (!worker)
            return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for the threads");
        writer->threads.workers[writer->threads.count++] = worker;
    }
    return COGPU_OK;
}

static void close_threads(cogpu_writer *writer) {
    for (uint32_t i = 0; i < writer->threads.count; i++)
        cogpu_context_return_worker(writer->context, writer->threads.workers[i]);
    if (!writer->context)
        cogpu_pool_close(writer->threads.pool);
}

/* Blocks of all levels, with planes and masks: the total of the progress function. */
static uint64_t count_blocks(const cogpu_write_plan *plan) {
    uint64_t blocks = 0;
    for (uint32_t i = 0; i < plan->level_count; i++)
        blocks += (uint64_t)plan->levels[i].across * plan->levels[i].down *
                  (plan->planes + plan->has_mask);
    return blocks;
}

static cogpu_status init_writer(cogpu_writer *writer, const cogpu_sink *sink,
                                const cogpu_profile *profile, cogpu_error *error) {
    cogpu_http *http = NULL;
    TRY(cogpu_plan_write(profile, &writer->plan, error));
    writer->backend.device = profile->device;
    writer->backend.device_index = profile->device_index;
    TRY(cogpu_writer_describe(writer, profile, error));
    TRY(cogpu_write_output_plan(writer, profile, error));
    TRY(cogpu_writer_plan_levels(writer, profile, error));
    cogpu_meter_open(&writer->meter, profile->progress, profile->progress_user,
                     count_blocks(&writer->plan));
    TRY(open_threads(writer, profile, error));
    TRY(cogpu_encode_queue_open(writer, error));
    if (sink->path && cogpu_url_is(sink->path))
        TRY(cogpu_context_http(profile->context, &http, error));
    return cogpu_write_output_open(writer, sink, http, error);
}

static cogpu_status make_writer(const cogpu_sink *sink, const cogpu_profile *profile,
                                cogpu_writer **made, cogpu_error *error) {
    cogpu_writer *writer = *made = cogpu_allocate(sizeof *writer);
    if (!writer)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for a writer");
    memset(writer, 0, sizeof *writer);
    cogpu_arena_open(&writer->arena, UINT64_MAX);
    return init_writer(writer, sink, profile, error);
}

cogpu_status cogpu_writer_create(const cogpu_sink *sink, const cogpu_profile *profile,
                                 cogpu_writer **out, cogpu_error *error) {
    cogpu_writer *writer = NULL;
    cogpu_status status = make_writer(sink, profile, &writer, error);
    if (status != COGPU_OK) {
        const bool aborts_sink = writer && writer->output.sink;
        cogpu_writer_abort(writer);
        if (!aborts_sink && sink->abort)
            sink->abort(sink->user);
        writer = NULL;
    }
    *out = writer;
    return status;
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* Rows must fit the image and what is left of it. */
static cogpu_status check_written_rows(const cogpu_writer *writer, const char *what,
                                       cogpu_type type, uint32_t bands, cogpu_raster *rows,
                                       cogpu_error *error) {
    const cogpu_block_grid *grid = &writer->plan.levels[0];
    if (!rows->data || rows->height == 0)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "the %s has no rows", what);
    if (rows->type != type || rows->bands != bands || rows->width != grid->width)
        return cogpu_fail(
            error, COGPU_INVALID_ARGUMENT,
            "the %s has %u bands of %s, %u pixels wide; expected %u bands of %s, %u wide", what,
            rows->bands, cogpu_type_name(rows->type), rows->width, bands, cogpu_type_name(type),
            grid->width);
    if (rows->height > grid->height - writer->rows)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the %s has %u rows, and %u of %u are left to write", what, rows->height,
                          grid->height - writer->rows, grid->height);
    return cogpu_raster_set_strides(rows, error);
}

static cogpu_status check_mask(const cogpu_writer *writer, const cogpu_raster *rows,
                               cogpu_raster *mask, cogpu_error *error) {
    TRY(check_written_rows(writer, "mask", COGPU_TYPE_U8, 1, mask, error));
    if (mask->height != rows->height)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "the mask has %u rows, the chunk %u",
                          mask->height, rows->height);
    return COGPU_OK;
}

/* The device of the profile, else that of the first rows. The CPU, if blocks do not fit there. */
static cogpu_status open_backend(cogpu_writer *writer, const cogpu_raster *rows,
                                 cogpu_error *error) {
    writer->backend.calls = &cogpu_host_backend;
    if (writer->backend.device == COGPU_DEVICE_CPU) {
        writer->backend.device = rows->device;
        writer->backend.device_index = rows->device_index;
    }
    return writer->backend.device == COGPU_DEVICE_CPU ? COGPU_OK
                                                      : cogpu_writer_open_device(writer, error);
}

static bool needs_download(const cogpu_writer *writer, const cogpu_raster *rows) {
    return rows->device != COGPU_DEVICE_CPU && !writer->backend.calls->can_access(writer, rows);
}

static cogpu_status append_rows(cogpu_writer *writer, const cogpu_raster *given,
                                const cogpu_raster *given_mask, cogpu_error *error) {
    const cogpu_write_plan *plan = &writer->plan;
    if (!given || (given_mask != NULL) != plan->has_mask)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          plan->has_mask ? "each chunk needs a mask, as the profile says"
                                         : "the profile has no mask: set `mask` to write one");
    cogpu_raster rows = *given, mask = given_mask ? *given_mask : (cogpu_raster){0};
    TRY(check_written_rows(writer, "chunk", plan->type, plan->bands, &rows, error));
    if (given_mask)
        TRY(check_mask(writer, &rows, &mask, error));
    writer->state = COGPU_WRITER_WRITING_ROWS;
    if (!writer->backend.calls)
        TRY(open_backend(writer, &rows, error));
    if (needs_download(writer, &rows) || needs_download(writer, &mask))
        TRY(cogpu_writer_download_rows(writer, &rows, &mask, error));
    else
        TRY(writer->backend.calls->add_rows(writer, &rows, &mask, error));
    writer->rows += rows.height;
    return COGPU_OK;
}

cogpu_status cogpu_writer_append_rows(cogpu_writer *writer, const cogpu_raster *rows,
                                      const cogpu_raster *mask, cogpu_error *error) {
    if (writer->state == COGPU_WRITER_FAILED)
        return cogpu_fail(error, writer->failure, "the writer failed before: abort it");
    if (writer->state == COGPU_WRITER_WRITING_BLOCKS)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the writer has encoded blocks already: it takes no rows");
    return cogpu_writer_note_failure(writer, append_rows(writer, rows, mask, error));
}

cogpu_status cogpu_writer_note_failure(cogpu_writer *writer, cogpu_status status) {
    if (status != COGPU_OK) {
        writer->state = COGPU_WRITER_FAILED;
        writer->failure = status;
    }
    return status;
}

/* ---- close --------------------------------------------------------------------------------- */

static cogpu_status finish_file(cogpu_writer *writer, cogpu_error *error) {
    const uint32_t height = writer->plan.levels[0].height;
    if (writer->state == COGPU_WRITER_FAILED)
        return cogpu_fail(error, writer->failure, "the writer failed before: there is no file");
    if (writer->state != COGPU_WRITER_WRITING_BLOCKS) {
        if (writer->rows < height)
            return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                              "%u of %u rows were written: write the others before the writer "
                              "is closed",
                              writer->rows, height);
        TRY(writer->backend.calls->drain(writer, error));
    }
    return cogpu_write_output_finish(writer, error);
}

cogpu_status cogpu_writer_finish(cogpu_writer *writer, cogpu_written *written, cogpu_error *error) {
    cogpu_status status = finish_file(writer, error);
    if (status == COGPU_OK) {
        *written = writer->output.written;
        written->bytes = writer->output.end;
        written->levels = writer->plan.level_count;
        written->bigtiff = writer->plan.is_bigtiff;
    }
    cogpu_writer_abort(writer);
    return status;
}

void cogpu_writer_abort(cogpu_writer *writer) {
    if (!writer)
        return;
    cogpu_encode_queue_close(writer);
    if (writer->backend.calls)
        writer->backend.calls->close(writer);
    cogpu_write_output_close(writer);
    close_threads(writer);
    cogpu_meter_close(&writer->meter);
    cogpu_arena_close(&writer->arena);
    cogpu_release(writer);
}
