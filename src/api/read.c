/*
 * Reading, step by step. One window and many windows of many files take the same way:
 *
 *     prepare   each item: request checked, level chosen, window planned          (plan/)
 *     gather    the next batch of blocks, and where they are in their files       (gather.c)
 *     run       the batch on the host: runs of neighbours go to threads           (read_host.c)
 *       fetch     reads a run in one go                                           (io/)
 *       decode    each block                                                      (cpu_decode.c)
 *       restore   predictor and byte order                                        (cpu_restore.c)
 *       place     into the caller's raster                                        (cpu_place.c)
 *       stream    all four at once, for a block that is too large to be held      (cpu_stream.c)
 *     report    statuses, counts, the first error
 *
 * Where the raster lies on a device, the batch runs there instead (read_device.c).
 */
#include "api/job.h"

/* Working memory of all threads together: this much, and more for larger files. */
enum { SEATS_BASE = 48 << 20, SEATS_PER_FILE_BYTE = 64 };

/* Seats beyond the threads of any machine would only take memory. */
enum { SEATS_MAX = 1024 };

/* Work below this is done before a second thread has started. */
enum { WORTH_A_THREAD = 256 << 10 };

enum { SWATH_BYTES = 4 << 20 };

/* ---- prepare ------------------------------------------------------------------------------- */

static cogpu_status choose_level(const cogpu_file *file, const cogpu_request *request,
                                 const cogpu_picture_level **level, cogpu_error *error) {
    const cogpu_picture *picture = NULL;
    TRY(cogpu_file_picture(file, request->image, &picture, error));
    if (request->level >= picture->info.levels)
        return cogpu_fail(error, COGPU_ABSENT, "there is no level %u: the image has %u",
                          request->level, picture->info.levels);
    *level = &picture->levels[request->level];
    return COGPU_OK;
}

static cogpu_status check_window(const cogpu_storage *storage, cogpu_request *request,
                                 cogpu_error *error) {
    if (request->width == 0 && request->x < storage->width)
        request->width = storage->width - request->x;
    if (request->height == 0 && request->y < storage->height)
        request->height = storage->height - request->y;
    if (request->width == 0 || request->height == 0 || request->x > storage->width ||
        request->width > storage->width - request->x || request->y > storage->height ||
        request->height > storage->height - request->y)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "the window %u,%u,%u,%u is not inside the level of %u x %u pixels",
                          request->x, request->y, request->width, request->height, storage->width,
                          storage->height);
    return COGPU_OK;
}

static cogpu_status check_bands(const cogpu_storage *storage, const cogpu_request *request,
                                cogpu_error *error) {
    if (request->bands && request->band_count == 0)
        return cogpu_fail(error, COGPU_ARGUMENT, "the list of bands is empty");
    for (uint32_t i = 0; request->bands && i < request->band_count; i++)
        if (request->bands[i] < 1 || request->bands[i] > storage->bands)
            return cogpu_fail(error, COGPU_ARGUMENT, "there is no band %u: the image has %u",
                              request->bands[i], storage->bands);
    return COGPU_OK;
}

/* The raster must have the plan's shape and type; packed where it has no strides. */
static cogpu_status check_raster(const cogpu_read_plan *plan, cogpu_type type, cogpu_raster *raster,
                                 cogpu_error *error) {
    int64_t size = (int64_t)cogpu_type_bytes(type);
    if (!raster->data)
        return cogpu_fail(error, COGPU_ARGUMENT, "the raster has no memory");
    if (raster->type != type)
        return cogpu_fail(error, COGPU_ARGUMENT, "the raster is of type %s, the pixels are %s",
                          cogpu_type_name(raster->type), cogpu_type_name(type));
    if (raster->width != plan->width || raster->height != plan->height ||
        raster->bands != plan->band_count)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "the raster has %u bands of %u x %u pixels, the request %u of %u x %u",
                          raster->bands, raster->width, raster->height, plan->band_count,
                          plan->width, plan->height);
    if (!raster->stride_band && !raster->stride_y && !raster->stride_x) {
        raster->stride_x = size;
        raster->stride_y = size * raster->width;
        if (__builtin_mul_overflow(raster->stride_y, raster->height, &raster->stride_band))
            return cogpu_fail(error, COGPU_ARGUMENT, "no memory holds a raster of this size");
    }
    return COGPU_OK;
}

static cogpu_status check_codec(const cogpu_storage *storage, cogpu_error *error) {
    uint32_t compression = storage->format.compression;
    if (!storage->codec)
        return cogpu_fail(error, COGPU_UNSUPPORTED, "compression %u is not known", compression);
    const char *library = storage->codec->library;
    if (!storage->codec->decode && *library)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "compression %u (%s) needs %s, which this build was made without",
                          compression, storage->codec->name, library);
    if (!storage->codec->decode)
        return cogpu_fail(error, COGPU_UNSUPPORTED, "compression %u (%s) is not supported",
                          compression, storage->codec->name);
    return COGPU_OK;
}

/* A mask has a band for each, or one for all, of which cogpu_mask_spread makes the others. */
static void plan_mask(const cogpu_storage *mask, const cogpu_request *request,
                      struct cogpu_reading *reading) {
    bool shared = mask->bands == 1;
    cogpu_plan_read(mask, request->x, request->y, request->width, request->height,
                    shared ? NULL : request->bands, request->band_count, &reading->plan);
    reading->raster.bands = reading->plan.band_count;
}

uint32_t cogpu_swath_rows(const cogpu_storage *storage, uint64_t row_bytes, uint32_t height) {
    uint64_t rows = SWATH_BYTES / row_bytes;
    if (rows > storage->block_height)
        rows -= rows % storage->block_height;
    return rows < 1 ? 1 : rows < height ? (uint32_t)rows : height;
}

static cogpu_status prepare(struct cogpu_reading *reading, cogpu_gpu_reader *reader) {
    cogpu_read_item *item = reading->item;
    cogpu_request request = item->request;
    cogpu_error *error = &reading->error;
    const cogpu_picture_level *level = NULL;
    TRY(choose_level(item->file, &request, &level, error));
    const cogpu_storage *storage = &level->storage;
    TRY(check_window(storage, &request, error));
    TRY(check_bands(storage, &request, error));
    cogpu_plan_read(storage, request.x, request.y, request.width, request.height, request.bands,
                    request.band_count, &reading->plan);
    reading->raster = item->raster;
    bool is_mask = request.part == COGPU_MASK;
    TRY(check_raster(&reading->plan, is_mask ? COGPU_U8 : storage->type, &reading->raster, error));
    if (reader) {
        TRY(check_codec(is_mask && level->has_mask ? &level->mask : storage, error));
        bool by_host = is_mask || (storage->colour == COGPU_FROM_CMYK && storage->planes > 1) ||
                       !cogpu_gpu_reader_takes(reader, &reading->plan);
        item->result.blocks = by_host ? 0 : reading->plan.count;
        if (by_host) {
            reading->plan.count = 0;
            return cogpu_read_by_host(reading, reader, request, error);
        }
        return COGPU_OK;
    }
    bool derive_mask = is_mask && !level->has_mask;
    bool planar_cmyk =
        request.part == COGPU_PIXELS && storage->colour == COGPU_FROM_CMYK && storage->planes > 1;
    if (derive_mask || planar_cmyk) {
        reading->plan.count = 0;
        return derive_mask ? cogpu_mask_derive(item->file, &request, &reading->raster, error)
                           : cogpu_read_planar_cmyk(item->file, &request, &reading->raster, error);
    }
    if (is_mask)
        plan_mask(storage = &level->mask, &request, reading);
    cogpu_status status = check_codec(storage, error);
    cogpu_error_place(status == COGPU_OK ? NULL : error, storage->directory, -1, -1);
    item->result.blocks = reading->plan.count;
    return status;
}

/* ---- the job ------------------------------------------------------------------------------- */

/* What a seat may come to need for the largest block of a reading. */
static uint64_t seat_need(const struct cogpu_job *job, const struct cogpu_reading *reading) {
    const cogpu_storage *storage = reading->plan.storage;
    uint64_t decoded = (uint64_t)reading->plan.slice_rows * storage->format.row_bytes;
    uint64_t ceiling =
        COGPU_EXPANSION_BASE + cogpu_io_bytes(storage->tiff->io) * (uint64_t)COGPU_EXPANSION_FACTOR;
    bool plain = storage->format.compression == COMPRESSION_NONE;
    if (cogpu_job_streams(job, storage))
        return cogpu_cpu_stream_bytes(storage);
    return plain ? decoded : 2 * (decoded < ceiling ? decoded : ceiling);
}

/* As many threads as asked for, as there is work for, and as memory allows. */
static uint32_t seats_of(const struct cogpu_job *job) {
    uint64_t seats = job->threads < SEATS_MAX ? job->threads : SEATS_MAX, blocks = 0, work = 0;
    for (size_t i = 0; i < job->count; i++) {
        const struct cogpu_reading *reading = &job->readings[i];
        if (reading->error.status != COGPU_OK)
            continue;
        const cogpu_tiff *tiff = reading->plan.storage->tiff;
        uint64_t need = seat_need(job, reading) + 1;
        uint64_t allowed = SEATS_BASE + cogpu_io_bytes(tiff->io) * SEATS_PER_FILE_BYTE;
        allowed = allowed < tiff->limits.call_bytes ? allowed : tiff->limits.call_bytes;
        seats = seats < allowed / need ? seats : allowed / need;
        blocks += reading->plan.count;
        work += reading->plan.count * (need < WORTH_A_THREAD ? need : WORTH_A_THREAD);
    }
    seats = seats < blocks ? seats : blocks;
    return work <= WORTH_A_THREAD || seats < 1 ? 1 : (uint32_t)seats;
}

static cogpu_status open_job(struct cogpu_job *job, cogpu_error *error) {
    job->seat_count = seats_of(job);
    TRY(cogpu_arena_take(&job->arena, COGPU_BATCH, sizeof *job->tasks, &job->tasks, error));
    TRY(cogpu_arena_take(&job->arena, COGPU_BATCH, sizeof *job->runs, &job->runs, error));
    TRY(cogpu_arena_take(&job->arena, job->seat_count, sizeof(cogpu_seat *), &job->seats, error));
    for (uint32_t i = 0; i < job->seat_count; i++)
        if (!(job->seats[i] = cogpu_context_seat(job->context)))
            return cogpu_fail(error, COGPU_MEMORY, "out of memory for the threads");
    job->pool = job->context ? job->context->pool : NULL;
    if (!job->context && job->seat_count > 1)
        TRY(cogpu_pool_open(job->seat_count, &job->pool, error));
    return COGPU_OK;
}

static void close_job(struct cogpu_job *job) {
    for (uint32_t i = 0; job->seats && i < job->seat_count && job->seats[i]; i++)
        cogpu_context_give_back(job->context, job->seats[i]);
    if (!job->context)
        cogpu_pool_close(job->pool);
}

/* One batch after the other. Of a job that is not to be waited for, the last may be left under way.
 */
static cogpu_status run_batches(struct cogpu_job *job, cogpu_error *error) {
    while (cogpu_job_gather(job)) {
        if (!job->reader) {
            cogpu_job_run_on_host(job);
            continue;
        }
        TRY(cogpu_job_start_on_device(job, error));
        if (job->is_pending && !cogpu_job_has_more(job))
            break;
        TRY(cogpu_job_finish_on_device(job, error));
    }
    return COGPU_OK;
}

static cogpu_status report(struct cogpu_job *job, cogpu_error *error) {
    cogpu_status first = COGPU_OK;
    for (size_t i = 0; i < job->count; i++) {
        struct cogpu_reading *reading = &job->readings[i];
        cogpu_read_item *item = reading->item;
        item->status = reading->error.status;
        /* A mask that was derived had no blocks to read, and has a band for each already. */
        bool from_directory = item->request.part == COGPU_MASK && reading->plan.count > 0;
        if (item->status == COGPU_OK && from_directory)
            cogpu_mask_spread(&reading->raster, item->raster.bands);
        if (first == COGPU_OK && reading->error.status != COGPU_OK) {
            first = reading->error.status;
            if (error)
                *error = reading->error;
        }
    }
    return first;
}

/* Items whose rasters lie on one device, to the last batch. */
static cogpu_status start_job(struct cogpu_job *job, cogpu_error *error) {
    cogpu_context *context = job->context;
    const cogpu_raster *raster = &job->items[0]->raster;
    if (job->threads == 0)
        job->threads = context ? cogpu_pool_threads(context->pool) : cogpu_processors();
    cogpu_arena_open(&job->arena, UINT64_MAX);
    pthread_mutex_init(&job->lock, NULL);
    TRY(cogpu_arena_take(&job->arena, job->count, sizeof *job->readings, &job->readings, error));
    if (raster->device != COGPU_CPU)
        TRY(cogpu_context_device(context, raster->device, raster->device_index, &job->reader,
                                 error));
    for (size_t i = 0; i < job->count; i++) {
        struct cogpu_reading *reading = &job->readings[i];
        reading->item = job->items[i];
        reading->failed_number = UINT64_MAX;
        cogpu_error_clear(&reading->error);
        (void)prepare(reading, job->reader); /* its status is in reading->error */
    }
    TRY(open_job(job, error));
    return run_batches(job, error);
}

/* What is left to do, and what came of it all. `status` is that of the start. */
static cogpu_status end_job(struct cogpu_job *job, cogpu_status status, cogpu_error *error) {
    if (job->is_under_way)
        status = cogpu_job_finish_on_device(job, error);
    close_job(job);
    if (status == COGPU_OK)
        status = report(job, error);
    else
        for (size_t i = 0; i < job->count; i++)
            job->items[i]->status = status;
    pthread_mutex_destroy(&job->lock);
    cogpu_arena_close(&job->arena);
    return status;
}

static cogpu_status read_items(cogpu_read_item **items, size_t count, uint32_t threads,
                               cogpu_context *context, cogpu_error *error) {
    struct cogpu_job job = {.items = items, .count = count, .context = context, .threads = threads};
    return end_job(&job, start_job(&job, error), error);
}

struct cogpu_pending {
    struct cogpu_job job;
    cogpu_read_item item, *items[1];
};

/* Leaves *pending NULL where the read is through already. */
static cogpu_status read_pending(const cogpu_read_item *item, cogpu_pending **pending,
                                 cogpu_result *result, cogpu_error *error) {
    cogpu_pending *own = cogpu_allocate(sizeof *own);
    if (!own)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for a read");
    *own = (cogpu_pending){.item = *item,
                           .items = {&own->item},
                           .job = {.items = own->items,
                                   .count = 1,
                                   .context = item->request.context,
                                   .threads = item->request.threads,
                                   .is_pending = true}};
    cogpu_status status = start_job(&own->job, error);
    *pending = own;
    if (status == COGPU_OK && own->job.is_under_way)
        return COGPU_OK;
    *pending = NULL;
    status = end_job(&own->job, status, error);
    if (result)
        *result = own->item.result;
    cogpu_release(own);
    return status;
}

cogpu_status cogpu_wait(cogpu_pending *pending, cogpu_result *result, cogpu_error *error) {
    if (!pending)
        return COGPU_OK;
    cogpu_error_clear(error);
    cogpu_status status = end_job(&pending->job, COGPU_OK, error);
    if (result)
        *result = pending->item.result;
    cogpu_release(pending);
    return status;
}

cogpu_status cogpu_read(const cogpu_file *file, const cogpu_request *request, cogpu_raster *raster,
                        cogpu_result *result, cogpu_error *error) {
    if (!file || !raster)
        return cogpu_fail(error, COGPU_ARGUMENT, "cogpu_read needs a file and a raster");
    cogpu_error_clear(error);
    cogpu_read_item item = {.file = file, .raster = *raster};
    if (request)
        item.request = *request;
    cogpu_read_item *items[] = {&item};
    cogpu_error_clear(&item.result.first_bad);
    if (item.request.pending)
        return read_pending(&item, item.request.pending, result, error);
    cogpu_status status = read_items(items, 1, item.request.threads, item.request.context, error);
    if (result)
        *result = item.result;
    return status;
}

/* The items of one device, of those that are not `taken` yet, in order. Returns how many. */
static size_t take_device(cogpu_read_item *items, size_t count, bool *taken,
                          cogpu_read_item **chosen) {
    const cogpu_raster *first = NULL;
    size_t same = 0;
    for (size_t i = 0; i < count; i++) {
        const cogpu_raster *raster = &items[i].raster;
        if (taken[i])
            continue;
        first = first ? first : raster;
        if (raster->device != first->device || raster->device_index != first->device_index)
            continue;
        taken[i] = true;
        chosen[same++] = &items[i];
    }
    return same;
}

/* Each device's items are a job of their own. */
static cogpu_status read_by_device(cogpu_read_item *items, size_t count, bool *taken,
                                   cogpu_read_item **chosen, cogpu_context *context,
                                   cogpu_error *error) {
    cogpu_status status = COGPU_OK;
    const cogpu_read_item *first_failed = NULL;
    for (size_t part; (part = take_device(items, count, taken, chosen)) > 0;) {
        cogpu_error own;
        cogpu_status part_status = read_items(chosen, part, 0, context, &own);
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

cogpu_status cogpu_read_many(cogpu_read_item *items, size_t count, cogpu_context *context,
                             cogpu_error *error) {
    if (!items && count)
        return cogpu_fail(error, COGPU_ARGUMENT, "cogpu_read_many needs items");
    cogpu_error_clear(error);
    if (count == 0)
        return COGPU_OK;
    cogpu_arena arena;
    cogpu_read_item **chosen = NULL;
    bool *taken = NULL;
    cogpu_arena_open(&arena, UINT64_MAX);
    cogpu_status status = cogpu_arena_take(&arena, count, sizeof *chosen, &chosen, error);
    if (status == COGPU_OK)
        status = cogpu_arena_take(&arena, count, sizeof *taken, &taken, error);
    for (size_t i = 0; i < count; i++) {
        items[i].request.context = context;
        items[i].result = (cogpu_result){0};
        items[i].status = status;
        cogpu_error_clear(&items[i].result.first_bad);
    }
    if (status == COGPU_OK)
        status = read_by_device(items, count, taken, chosen, context, error);
    cogpu_arena_close(&arena);
    return status;
}
