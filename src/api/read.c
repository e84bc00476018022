/*
 * Reading, step by step. One window and many windows of many files take the same way:
 *
 *     prepare   each item: request checked, level chosen, window planned          (plan/)
 *     gather    the next batch of blocks, and where they are in their files       (gather.c)
 *     run       the batch on the host: runs of neighbours go to threads           (read_host.c)
 *       fetch     reads a run in one go                                           (io/)
 *       decode    each block                                                      (cpu_decode.c)
 *       restore   predictor and byte order                                        (cpu_restore.c)
 *       place     into the caller's raster, converted where asked for    (cpu_place.c, _convert.c)
 *       stream    all four at once, for a block that is too large to be held      (cpu_stream.c)
 *     report    NaN where a mask says so (mask.c); statuses, counts, the first error
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
                                 const cogpu_picture **picture, const cogpu_picture_level **level,
                                 cogpu_error *error) {
    TRY(cogpu_file_picture(file, request->image, picture, error));
    if (request->level >= (*picture)->info.levels)
        return cogpu_fail(error, COGPU_ABSENT,
                          "there is no level %u: the image has %u, counted from 0", request->level,
                          (*picture)->info.levels);
    *level = &(*picture)->levels[request->level];
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
            return cogpu_fail(error, COGPU_ARGUMENT,
                              "there is no band %u: the image has %u, counted from 1",
                              request->bands[i], storage->bands);
    return COGPU_OK;
}

static bool is_float(cogpu_type type) {
    return type == COGPU_F16 || type == COGPU_F32 || type == COGPU_F64;
}

/* The raster must have the type of what is read, or one that this is converted to, as pixels alone
 * are. */
static cogpu_status check_type(const cogpu_request *request, cogpu_type type, cogpu_type wanted,
                               cogpu_error *error) {
    bool is_converted = request->nan_where_invalid || request->scaled;
    if ((unsigned)request->part > COGPU_STORED)
        return cogpu_fail(error, COGPU_ARGUMENT, "there is no part %u: pixels are part 0, masks 1",
                          (unsigned)request->part);
    if (request->part == COGPU_MASK && is_converted)
        return cogpu_fail(error, COGPU_ARGUMENT, "a mask is neither scaled nor made NaN");
    if (wanted == type && (!is_converted || is_float(type)))
        return COGPU_OK;
    if (wanted == type && type >= COGPU_CI16)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "pixels of type %s are not converted: neither scaled nor made NaN",
                          cogpu_type_name(type));
    if (request->part != COGPU_PIXELS || type >= COGPU_CI16)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "%s of type %s are not converted, and the raster is of type %s",
                          request->part == COGPU_MASK ? "masks" : "pixels", cogpu_type_name(type),
                          cogpu_type_name(wanted));
    if (!is_float(wanted))
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "the raster is of type %s, the pixels are %s, and are converted to "
                          "float16, float32 and float64 alone",
                          cogpu_type_name(wanted), cogpu_type_name(type));
    return COGPU_OK;
}

cogpu_status cogpu_raster_set_strides(cogpu_raster *raster, cogpu_error *error) {
    int64_t size = (int64_t)cogpu_type_bytes(raster->type);
    if (raster->stride_band || raster->stride_y || raster->stride_x)
        return COGPU_OK;
    raster->stride_x = size;
    raster->stride_y = size * raster->width;
    if (__builtin_mul_overflow(raster->stride_y, raster->height, &raster->stride_band))
        return cogpu_fail(error, COGPU_ARGUMENT, "no memory holds a raster of this size");
    return COGPU_OK;
}

/* The raster must have the plan's shape. */
static cogpu_status check_raster(const cogpu_read_plan *plan, cogpu_raster *raster,
                                 cogpu_error *error) {
    if (!raster->data)
        return cogpu_fail(error, COGPU_ARGUMENT, "the raster has no memory");
    if (raster->width != plan->width || raster->height != plan->height ||
        raster->bands != plan->band_count)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "the raster has %u bands of %u x %u pixels, the request %u of %u x %u",
                          raster->bands, raster->width, raster->height, plan->band_count,
                          plan->width, plan->height);
    return cogpu_raster_set_strides(raster, error);
}

static cogpu_status need_codec(const cogpu_storage *storage, cogpu_error *error) {
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
    if (compression == COMPRESSION_OLD_JPEG && storage->planes > 1)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "compression %u (%s) with a plane for each band is not supported",
                          compression, storage->codec->name);
    return COGPU_OK;
}

/* Chroma that several pixels share has a layout of its own, which only chunky samples of 8 bits are
 * read from. As libtiff and GDAL do, planes that are not converted are taken to be whole. */
static cogpu_status check_chroma(const cogpu_storage *storage, cogpu_error *error) {
    const cogpu_block_format *format = &storage->format;
    bool is_shared = format->subsampling_x * format->subsampling_y != 1;
    bool is_chunky = storage->planes == 1, is_converted = storage->colour == COGPU_FROM_YCBCR;
    if (!is_shared || is_chunky == is_converted)
        return COGPU_OK;
    return cogpu_fail(error, COGPU_UNSUPPORTED,
                      "%s YCbCr of %u bits with YCbCrSubSampling %u, %u is not supported",
                      storage->planes > 1 ? "planar" : "chunky", storage->bits,
                      format->subsampling_x, format->subsampling_y);
}

static cogpu_status check_codec(const cogpu_storage *storage, cogpu_error *error) {
    cogpu_status status = need_codec(storage, error);
    if (status == COGPU_OK)
        status = check_chroma(storage, error);
    cogpu_error_place(status == COGPU_OK ? NULL : error, storage->directory, -1, -1);
    return status;
}

/* What the request has done to samples on their way into the raster, and to pixels afterwards. */
static void plan_conversion(const cogpu_picture *picture, const cogpu_picture_level *level,
                            const cogpu_request *request, struct cogpu_reading *reading) {
    cogpu_band_rule rule =
        cogpu_picture_rule(picture, level, cogpu_plan_band(&reading->plan, 0) + 1);
    bool by_nodata = request->nan_where_invalid && rule.validity == COGPU_BY_NODATA;
    if (request->nan_where_invalid &&
        (rule.validity == COGPU_BY_MASK || rule.validity == COGPU_BY_ALPHA)) {
        reading->voids = rule.storage;
        reading->is_void_shared = cogpu_mask_is_shared(picture, level, &reading->plan);
    }
    if (by_nodata)
        cogpu_conversion_nodata(rule.nodata, level->storage.type, &reading->conversion);
    if (request->scaled)
        reading->conversion.bands = picture->bands;
    if (by_nodata || request->scaled || reading->raster.type != level->storage.type)
        reading->plan.conversion = &reading->conversion;
}

/* ---- bands with rules of their own ---- */

/* Whether bands have to be read one by one, since what is invalid of them differs. */
static bool needs_single_bands(const cogpu_picture *picture, const struct cogpu_reading *reading) {
    return picture->has_band_rules && reading->plan.band_count > 1 &&
           reading->item->request.part != COGPU_STORED;
}

static cogpu_status read_single_bands(struct cogpu_reading *reading, const cogpu_request *request) {
    const cogpu_read_plan plan = reading->plan;
    reading->plan.count = 0;
    for (uint32_t p = 0; p < plan.band_count; p++) {
        const uint32_t band = cogpu_plan_band(&plan, p) + 1;
        cogpu_request single = *request;
        cogpu_raster raster = reading->raster;
        cogpu_result result = {0};
        single.bands = &band;
        single.band_count = 1;
        raster.bands = 1;
        raster.data = (uint8_t *)raster.data + (int64_t)p * raster.stride_band;
        TRY(cogpu_read(reading->item->file, &single, &raster, &result, &reading->error));
        cogpu_result_add(&result, &reading->item->result);
    }
    return COGPU_OK;
}

static void set_band_fill(const cogpu_picture *picture, struct cogpu_reading *reading) {
    const cogpu_band *band = &picture->bands[cogpu_plan_band(&reading->plan, 0)];
    if (!picture->has_band_rules)
        return;
    cogpu_nodata_sample(&band->nodata, reading->plan.storage->type, reading->fill);
    reading->plan.fill = reading->fill;
}

uint32_t cogpu_swath_rows(const cogpu_storage *storage, uint64_t row_bytes, uint32_t height) {
    uint64_t rows = SWATH_BYTES / row_bytes;
    if (rows > storage->block_height)
        rows -= rows % storage->block_height;
    return rows < 1 ? 1 : rows < height ? (uint32_t)rows : height;
}

void cogpu_request_share(cogpu_request *request, cogpu_share *share) {
    request->progress = cogpu_share_progress(share);
    request->progress_user = share;
}

/* Reports the first 0 of all blocks, those of a mask that is read afterwards counted. */
static cogpu_status open_meter(struct cogpu_reading *reading, const cogpu_request *request,
                               cogpu_error *error) {
    uint64_t total = reading->plan.count + cogpu_mask_void_blocks(reading);
    cogpu_meter_open(&reading->meter, request->progress, request->progress_user, total);
    reading->plan.meter = &reading->meter;
    return cogpu_meter_move_to(&reading->meter, 0) ? COGPU_OK : cogpu_fail_cancelled(error);
}

/* Whether there is nothing to read: the mask of an image that has none. */
static bool is_all_valid(const struct cogpu_reading *reading) {
    return reading->item->request.part == COGPU_MASK && !reading->plan.conversion;
}

/* Whether pixels need bands that no block has together. */
static bool has_bands_apart(const struct cogpu_reading *reading, const cogpu_picture_level *level) {
    const cogpu_storage *storage = reading->plan.storage;
    return storage == &level->storage && cogpu_has_planar_colours(storage) &&
           reading->item->request.part != COGPU_STORED;
}

static cogpu_status prepare_for_host(struct cogpu_reading *reading,
                                     const cogpu_picture_level *level,
                                     const cogpu_request *request) {
    cogpu_error *error = &reading->error;
    uint64_t blocks = reading->plan.count;
    reading->plan.count = 0;
    if (is_all_valid(reading)) {
        cogpu_mask_all_valid(&reading->raster);
        return COGPU_OK;
    }
    if (has_bands_apart(reading, level))
        return cogpu_read_planar_colours(reading->item->file, request, &reading->plan,
                                         &reading->raster, error);
    reading->plan.count = reading->item->result.blocks = blocks;
    return check_codec(reading->plan.storage, error);
}

static cogpu_status prepare_for_device(struct cogpu_reading *reading, cogpu_gpu_reader *reader,
                                       const cogpu_picture_level *level,
                                       const cogpu_request *request) {
    if (!is_all_valid(reading))
        TRY(check_codec(reading->plan.storage, &reading->error));
    if (is_all_valid(reading) || has_bands_apart(reading, level) ||
        !cogpu_gpu_reader_takes(reader, &reading->plan))
        return cogpu_read_by_host(reading, reader, request, &reading->error);
    reading->item->result.blocks = reading->plan.count;
    return COGPU_OK;
}

/* Whether the file is still what was opened. Several readings of one file are one look at it. */
static cogpu_status check_source(struct cogpu_job *job, const struct cogpu_reading *reading,
                                 cogpu_error *error) {
    const cogpu_io *io = reading->plan.storage->tiff->io;
    if (io == job->checked)
        return COGPU_OK;
    TRY(cogpu_io_check(io, error));
    job->checked = io;
    return COGPU_OK;
}

static cogpu_status prepare(struct cogpu_job *job, struct cogpu_reading *reading) {
    cogpu_read_item *item = reading->item;
    cogpu_request request = item->request;
    cogpu_error *error = &reading->error;
    const cogpu_picture *picture = NULL;
    const cogpu_picture_level *level = NULL;
    TRY(choose_level(item->file, &request, &picture, &level, error));
    const cogpu_storage *storage = &level->storage;
    TRY(check_window(storage, &request, error));
    TRY(check_bands(storage, &request, error));
    cogpu_plan_read(storage, request.x, request.y, request.width, request.height, request.bands,
                    request.band_count, &reading->plan);
    reading->raster = item->raster;
    cogpu_type type = request.part == COGPU_MASK ? COGPU_U8 : storage->type;
    TRY(check_type(&request, type, reading->raster.type, error));
    TRY(check_raster(&reading->plan, &reading->raster, error));
    if (needs_single_bands(picture, reading))
        return read_single_bands(reading, &request);
    set_band_fill(picture, reading);
    if (request.part == COGPU_PIXELS)
        plan_conversion(picture, level, &request, reading);
    if (request.part == COGPU_MASK)
        TRY(cogpu_mask_plan(picture, level, &job->arena, reading, error));
    TRY(check_source(job, reading, error));
    TRY(open_meter(reading, &request, error));
    return job->reader ? prepare_for_device(reading, job->reader, level, &request)
                       : prepare_for_host(reading, level, &request);
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

/* Whether there is something left to do when all blocks are there. */
static bool has_voids(const struct cogpu_job *job) {
    for (size_t i = 0; i < job->count; i++)
        if (job->readings[i].voids)
            return true;
    return false;
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
        if (job->is_pending && !cogpu_job_has_more(job) && !has_voids(job))
            break;
        TRY(cogpu_job_finish_on_device(job, error));
    }
    return COGPU_OK;
}

void cogpu_result_add(const cogpu_result *part, cogpu_result *result) {
    if (part->bad_blocks > 0 && result->bad_blocks == 0)
        result->first_bad = part->first_bad;
    result->blocks += part->blocks;
    result->sparse_blocks += part->sparse_blocks;
    result->bad_blocks += part->bad_blocks;
    result->cached_blocks += part->cached_blocks;
    result->device_blocks += part->device_blocks;
    result->late_blocks += part->late_blocks;
    result->bytes_read += part->bytes_read;
    result->direct_bytes += part->direct_bytes;
    result->stages.fetch += part->stages.fetch;
    result->stages.copy += part->stages.copy;
    result->stages.decode += part->stages.decode;
    result->stages.place += part->stages.place;
}

static bool is_going_on(const struct cogpu_reading *reading) {
    return reading->error.status == COGPU_OK && !cogpu_meter_is_cancelled(&reading->meter);
}

/* A file that changed during the read may have given a mixture of pixels, or what no decoder takes.
 */
static bool may_be_of_another(const struct cogpu_reading *reading) {
    cogpu_status status = reading->error.status;
    return reading->plan.storage &&
           (status == COGPU_OK || status == COGPU_CORRUPT || status == COGPU_IO);
}

static cogpu_status report(struct cogpu_job *job, cogpu_error *error) {
    cogpu_status first = COGPU_OK;
    job->checked = NULL;
    for (size_t i = 0; i < job->count; i++) {
        struct cogpu_reading *reading = &job->readings[i];
        cogpu_read_item *item = reading->item;
        if (is_going_on(reading) && reading->voids)
            (void)cogpu_mask_void(reading, job->reader, &reading->error);
        if (may_be_of_another(reading))
            (void)check_source(job, reading, &reading->error);
        if (is_going_on(reading))
            (void)cogpu_meter_complete(&reading->meter);
        if (cogpu_meter_is_cancelled(&reading->meter))
            (void)cogpu_fail_cancelled(&reading->error);
        cogpu_meter_close(&reading->meter);
        item->status = reading->error.status;
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
        (void)prepare(job, reading); /* its status is in reading->error */
    }
    TRY(open_job(job, error));
    return run_batches(job, error);
}

/* There may be no readings yet. */
static void fail_all(struct cogpu_job *job, cogpu_status status) {
    for (size_t i = 0; i < job->count; i++) {
        job->items[i]->status = status;
        if (job->readings)
            cogpu_meter_close(&job->readings[i].meter);
    }
}

/* What is left to do, and what came of it all. `status` is that of the start. */
static cogpu_status end_job(struct cogpu_job *job, cogpu_status status, cogpu_error *error) {
    if (job->is_under_way)
        status = cogpu_job_finish_on_device(job, error);
    close_job(job);
    if (status == COGPU_OK)
        status = report(job, error);
    else
        fail_all(job, status);
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
    if (status == COGPU_OK && own->job.is_under_way &&
        !cogpu_meter_is_cancelled(&own->job.readings[0].meter)) {
        *pending = own;
        return COGPU_OK;
    }
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
    cogpu_pending **pending = request ? request->pending : NULL;
    if (pending)
        *pending = NULL;
    if (!file || !raster)
        return cogpu_fail(error, COGPU_ARGUMENT, "cogpu_read needs a file and a raster");
    cogpu_error_clear(error);
    cogpu_read_item item = {.file = file, .raster = *raster};
    if (request)
        item.request = *request;
    cogpu_read_item *items[] = {&item};
    item.request.pending = NULL; /* it is not for reads within this one */
    cogpu_error_clear(&item.result.first_bad);
    if (pending)
        return read_pending(&item, pending, result, error);
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
        items[i].request.pending = NULL;
        items[i].request.threads = 0;
        items[i].result = (cogpu_result){0};
        items[i].status = status;
        cogpu_error_clear(&items[i].result.first_bad);
    }
    if (status == COGPU_OK)
        status = read_by_device(items, count, taken, chosen, context, error);
    cogpu_arena_close(&arena);
    return status;
}
