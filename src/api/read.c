/*
 * Reading, step by step. One window and many windows of many files take the same way:
 *
 *     prepare   each item: request checked, level chosen, window planned          (plan/)
 *     gather    the next batch of blocks, and where they are in their files       (image/locate.c)
 *     share     runs of neighbouring blocks out to threads, each of which
 *       fetch     reads a run in one go                                           (io/)
 *       decode    each block                                                      (cpu_decode.c)
 *       restore   predictor and byte order                                        (cpu_restore.c)
 *       place     into the caller's raster                                        (cpu_place.c)
 *       stream    all four at once, for a block that is too large to be held      (cpu_stream.c)
 *     report    statuses, counts, the first error
 *
 * Where the raster lies on a device, a batch goes to the device's reader instead of the threads
 * (gpu_read.c). What the device has no way for is read into memory of the host, swath by swath, and
 * put into the raster from there.
 */
#include "api/room.h"

#include <string.h>

enum { BATCH = 2048 };

/* Working memory of all threads together: this much, and more for larger files. */
enum { SEATS_BASE = 48 << 20, SEATS_PER_FILE_BYTE = 64 };

/* Seats beyond the threads of any machine would only take memory. */
enum { SEATS_MAX = 1024 };

/* Work below this is done before a second thread has started. */
enum { WORTH_A_THREAD = 256 << 10 };

enum { SWATH_BYTES = 4 << 20, TALL_SWATH_BYTES = 128 << 20 };

/* One item on its way. */
struct reading {
    cogpu_read_item *item;
    cogpu_read_plan plan;
    cogpu_raster raster;    /* with all strides set */
    uint64_t planned;       /* blocks of the plan that are in a batch or done */
    uint64_t failed_number; /* of the first bad block, UINT64_MAX while there is none */
    cogpu_error error;
};

struct task {
    struct reading *reading;
    uint64_t number; /* in the reading's plan */
    cogpu_block block;
    cogpu_span span;
    bool is_lost; /* its place in the file is not known: reading->error says why */
};

struct job {
    struct reading *readings;
    size_t count, current;    /* current: the reading that the next batch begins with */
    cogpu_context *context;   /* may be NULL */
    cogpu_gpu_reader *reader; /* of the rasters' device; NULL for memory of the host */
    cogpu_pool *pool;         /* the context's, or opened for this job */
    uint32_t threads;
    cogpu_seat **seats; /* working memory, one for each thread at work */
    uint32_t seat_count;
    struct task *tasks;
    uint32_t task_count;
    uint32_t *runs; /* first task of each run */
    uint32_t run_count;
    pthread_mutex_t lock; /* of results and errors */
    cogpu_arena arena;
};

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
                      struct reading *reading) {
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

/* As cogpu_swath_rows, but for blocks taller than a swath, each of which is decoded again for each
 * swath that it has part in: those shall be few. */
static uint32_t host_swath_rows(const cogpu_storage *storage, uint64_t row_bytes, uint32_t height) {
    uint64_t rows = TALL_SWATH_BYTES / row_bytes;
    if (storage->block_height <= SWATH_BYTES / row_bytes)
        return cogpu_swath_rows(storage, row_bytes, height);
    return rows < 1 ? 1 : rows < height ? (uint32_t)rows : height;
}

/* Reads a window into memory of the host and from there into the raster on the device. */
static cogpu_status read_by_host(struct reading *reading, cogpu_gpu_reader *reader,
                                 cogpu_request request, cogpu_error *error) {
    cogpu_read_item *item = reading->item;
    const cogpu_raster *raster = &reading->raster;
    const cogpu_storage *storage = reading->plan.storage;
    uint64_t row_bytes = (uint64_t)raster->width * raster->bands * cogpu_type_bytes(raster->type);
    uint32_t rows = host_swath_rows(storage, row_bytes, raster->height), top = request.y;
    uint8_t *swath = cogpu_allocate((size_t)(rows * row_bytes));
    cogpu_status status =
        swath ? COGPU_OK : cogpu_fail(error, COGPU_MEMORY, "out of memory for a swath");
    for (uint32_t y = 0; status == COGPU_OK && y < raster->height; y += rows) {
        cogpu_result part = {0};
        request.y = top + y;
        request.height = raster->height - y < rows ? raster->height - y : rows;
        cogpu_raster host = {.data = swath,
                             .type = raster->type,
                             .bands = raster->bands,
                             .height = request.height,
                             .width = raster->width};
        status = cogpu_read(item->file, &request, &host, &part, error);
        if (status == COGPU_OK)
            status = cogpu_gpu_put(reader, swath, request.height, raster, y, error);
        if (part.bad_blocks && !item->result.bad_blocks)
            item->result.first_bad = part.first_bad;
        item->result.blocks += part.blocks;
        item->result.sparse_blocks += part.sparse_blocks;
        item->result.bad_blocks += part.bad_blocks;
        item->result.bytes_read += part.bytes_read;
    }
    cogpu_release(swath);
    return status;
}

static cogpu_status prepare(struct reading *reading, cogpu_gpu_reader *reader) {
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
            return read_by_host(reading, reader, request, error);
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

/* ---- gather -------------------------------------------------------------------------------- */

static bool is_fillable(const struct reading *reading, cogpu_status status) {
    return reading->item->request.fill_bad_blocks &&
           (status == COGPU_CORRUPT || status == COGPU_LIMIT || status == COGPU_IO);
}

/* A block could not be read: it is filled, or the first such fails the item. Called under the lock.
 */
static void note_bad(struct task *task, const cogpu_error *error) {
    struct reading *reading = task->reading;
    cogpu_result *result = &reading->item->result;
    if (is_fillable(reading, error->status)) {
        if (reading->raster.device == COGPU_CPU)
            cogpu_cpu_fill(&reading->plan, &task->block, &reading->raster);
        if (result->bad_blocks++ == 0 || task->number < reading->failed_number) {
            result->first_bad = *error;
            reading->failed_number = task->number;
        }
    } else if (task->number < reading->failed_number || reading->error.status == COGPU_OK) {
        reading->error = *error;
        reading->failed_number = task->number;
    }
}

/* Uncompressed slices begin inside their block, and must not pass its end. */
static cogpu_status cut_slice(struct task *task, cogpu_error *error) {
    const cogpu_storage *storage = task->reading->plan.storage;
    uint64_t needed = (uint64_t)task->block.needed_rows * storage->format.row_bytes;
    cogpu_span *span = &task->span;
    if (task->reading->plan.slices == 1 || span->bytes == 0)
        return COGPU_OK;
    if (task->block.skip > span->bytes || needed > span->bytes - task->block.skip)
        return cogpu_fail(error, COGPU_CORRUPT, "the block holds %llu bytes where %llu are due",
                          (unsigned long long)span->bytes,
                          (unsigned long long)(task->block.skip + needed));
    span->offset += task->block.skip;
    span->bytes = needed;
    return COGPU_OK;
}

static cogpu_status locate_one(struct task *task, cogpu_error *error) {
    TRY(cogpu_storage_locate(task->reading->plan.storage, task->block.index, 1, &task->span,
                             error));
    return cut_slice(task, error);
}

/* Tasks first .. first+count-1 are blocks of consecutive indices: one look into the arrays. */
static void locate_row(struct job *job, uint32_t first, uint32_t count) {
    struct task *tasks = &job->tasks[first];
    const cogpu_storage *storage = tasks[0].reading->plan.storage;
    cogpu_span spans[BATCH];
    bool together =
        cogpu_storage_locate(storage, tasks[0].block.index, count, spans, NULL) == COGPU_OK;
    for (uint32_t i = 0; i < count; i++) {
        cogpu_error error;
        if (together)
            tasks[i].span = spans[i];
        cogpu_status status =
            together ? cut_slice(&tasks[i], &error) : locate_one(&tasks[i], &error);
        if (status == COGPU_OK)
            continue;
        cogpu_error_place(&error, storage->directory, (int64_t)tasks[i].block.index, -1);
        tasks[i].is_lost = true;
        note_bad(&tasks[i], &error);
    }
}

static void locate(struct job *job) {
    for (uint32_t first = 0, end; first < job->task_count; first = end) {
        for (end = first + 1; end < job->task_count; end++)
            if (job->tasks[end].reading != job->tasks[first].reading ||
                job->tasks[end].block.index != job->tasks[end - 1].block.index + 1)
                break;
        locate_row(job, first, end - first);
    }
}

static void group_runs(struct job *job) {
    cogpu_span spans[BATCH];
    job->run_count = 0;
    for (uint32_t first = 0; first < job->task_count;) {
        uint32_t same = 0;
        while (first + same < job->task_count &&
               job->tasks[first + same].reading == job->tasks[first].reading) {
            spans[same] = job->tasks[first + same].span;
            same++;
        }
        for (uint32_t done = 0; done < same;) {
            job->runs[job->run_count++] = first + done;
            done += cogpu_plan_run(spans + done, same - done);
        }
        first += same;
    }
}

/* The next blocks of the readings, up to a batch of them; false when all are through. */
static bool gather(struct job *job) {
    job->task_count = 0;
    while (job->current < job->count && job->task_count < BATCH) {
        struct reading *reading = &job->readings[job->current];
        if (reading->planned == reading->plan.count || reading->error.status != COGPU_OK) {
            job->current++;
            continue;
        }
        uint64_t number = reading->planned++;
        job->tasks[job->task_count++] =
            (struct task){.reading = reading,
                          .number = number,
                          .block = cogpu_plan_block(&reading->plan, number)};
    }
    if (job->task_count == 0)
        return false;
    locate(job);
    group_runs(job);
    return true;
}

/* ---- share --------------------------------------------------------------------------------- */

static const cogpu_io *io_of(const struct task *task) {
    return task->reading->plan.storage->tiff->io;
}

/* The bytes from the first task's block to the last's, read in one go or found in memory. */
static cogpu_status fetch(cogpu_seat *seat, const struct task *tasks, uint32_t count,
                          const uint8_t **bytes, uint64_t *read, cogpu_error *error) {
    const cogpu_io *io = io_of(tasks);
    const cogpu_span *last = &tasks[count - 1].span;
    uint64_t start = tasks[0].span.offset, end = last->offset + last->bytes;
    uint64_t limit = tasks[0].reading->plan.storage->tiff->limits.block_bytes;
    if (count == 1 && end - start > limit)
        return cogpu_fail(
            error, COGPU_LIMIT,
            "the block has %llu bytes, the limit is %llu: raise `block_bytes` to go on",
            (unsigned long long)(end - start), (unsigned long long)limit);
    *bytes = cogpu_io_mapped(io, start);
    if (*bytes)
        return COGPU_OK;
    TRY(cogpu_seat_room(&seat->stored, &seat->stored_bytes, (size_t)(end - start), error));
    *bytes = seat->stored;
    *read += end - start;
    return cogpu_io_read(io, start, (size_t)(end - start), seat->stored, error);
}

static cogpu_cache_key key_of(const struct task *task) {
    const cogpu_storage *storage = task->reading->plan.storage;
    const cogpu_file *file = task->reading->item->file;
    bool external = storage->tiff == &file->overview_tiff;
    return (cogpu_cache_key){.file = file->number,
                             .directory = (uint64_t)storage->directory << 1 | external,
                             .block = task->block.index};
}

static cogpu_cache *cache_of(const struct job *job, const cogpu_storage *storage) {
    bool coded = storage->format.compression != COMPRESSION_NONE;
    return job->context && coded ? job->context->cache : NULL;
}

/* All rows of a decoded block, restored, into memory of the cache. */
static void restore_block(const cogpu_storage *storage, const cogpu_block *block, uint8_t *decoded,
                          uint8_t *to) {
    size_t row_bytes = storage->format.row_bytes;
    if (!cogpu_cpu_needs_restore(storage))
        memcpy(to, decoded, block->needed_rows * row_bytes);
    else
        cogpu_cpu_restore(storage, decoded, block->needed_rows, storage->block_width, to,
                          (int64_t)row_bytes, false);
}

/* From stored bytes to the raster, by way of the cache where there is one. */
static cogpu_status convert(struct job *job, cogpu_seat *seat, struct task *task,
                            const uint8_t *stored, cogpu_error *error) {
    const cogpu_read_plan *plan = &task->reading->plan;
    const cogpu_storage *storage = plan->storage;
    const cogpu_block *block = &task->block;
    cogpu_cache *cache = cache_of(job, storage);
    uint8_t *decoded = NULL;
    TRY(cogpu_cpu_decode(seat, storage, block, stored, (size_t)task->span.bytes, &decoded, error));
    size_t bytes = block->needed_rows * storage->format.row_bytes;
    cogpu_cached *cached = cache ? cogpu_cache_reserve(cache, key_of(task), bytes) : NULL;
    if (!cached)
        return cogpu_cpu_place(seat, plan, block, decoded, !cogpu_cpu_needs_restore(storage),
                               &task->reading->raster, error);
    restore_block(storage, block, decoded, cached->data);
    cogpu_status status =
        cogpu_cpu_place(seat, plan, block, cached->data, true, &task->reading->raster, error);
    cogpu_cache_keep(cache, cached);
    return status;
}

/* True where the block was in the cache, and is in the raster now. */
static bool place_cached(struct job *job, cogpu_seat *seat, struct task *task) {
    cogpu_cache *cache = cache_of(job, task->reading->plan.storage);
    cogpu_cached *cached = cache ? cogpu_cache_take(cache, key_of(task)) : NULL;
    if (!cached)
        return false;
    cogpu_status status = cogpu_cpu_place(seat, &task->reading->plan, &task->block, cached->data,
                                          true, &task->reading->raster, NULL);
    cogpu_cache_give_back(cache, cached);
    return status == COGPU_OK;
}

/* Rather than held, unless the cache can have use of it. */
static bool is_streamed(const struct job *job, const cogpu_storage *storage) {
    cogpu_cache *cache = cache_of(job, storage);
    return cogpu_cpu_is_streamed(storage) &&
           !(cache && cogpu_cache_could_keep(cache, storage->block_bytes));
}

/* What the blocks of a run came to. */
struct tally {
    uint64_t sparse, cached, read;
};

static void fail_task(struct job *job, struct task *task, cogpu_error *error) {
    cogpu_error_place(error, task->reading->plan.storage->directory, (int64_t)task->block.index,
                      (int64_t)(task->span.offset & INT64_MAX));
    pthread_mutex_lock(&job->lock);
    note_bad(task, error);
    pthread_mutex_unlock(&job->lock);
}

static bool is_wanted(struct job *job, const struct task *task) {
    pthread_mutex_lock(&job->lock);
    bool wanted = !task->is_lost && (task->reading->error.status == COGPU_OK ||
                                     task->number < task->reading->failed_number);
    pthread_mutex_unlock(&job->lock);
    return wanted;
}

/* Reads a run of blocks straight into the raster, where they stand one after the other there as in
 * the file. False where they do not, or the read failed: the long way then finds out which of them
 * is to blame. */
static bool read_direct(struct task *tasks, uint32_t count, struct tally *tally) {
    const struct reading *reading = tasks[0].reading;
    size_t row_bytes = reading->plan.storage->format.row_bytes;
    uint64_t bytes = 0, start = 0;
    uint8_t *to = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const cogpu_block *block = &tasks[i].block;
        uint8_t *here = cogpu_cpu_direct(&reading->plan, block, &reading->raster);
        uint64_t skip = block->source_y * row_bytes, offset = tasks[i].span.offset + skip;
        uint64_t needed = block->height * row_bytes;
        if (!here || skip + needed > tasks[i].span.bytes ||
            (i > 0 && (here != to + bytes || offset != start + bytes)))
            return false;
        if (i == 0) {
            to = here;
            start = offset;
        }
        bytes += needed;
    }
    tally->read += bytes;
    return cogpu_io_read(io_of(tasks), start, (size_t)bytes, to, NULL) == COGPU_OK;
}

/* True where the block is through, one way or the other. */
static bool stream_block(struct job *job, cogpu_seat *seat, struct task *task,
                         struct tally *tally) {
    cogpu_error error;
    bool needs_whole = false;
    if (!is_wanted(job, task))
        return true;
    cogpu_status status =
        cogpu_cpu_stream(seat, &task->reading->plan, &task->block, task->span,
                         &task->reading->raster, &needs_whole, &tally->read, &error);
    if (status != COGPU_OK && !needs_whole)
        fail_task(job, task, &error);
    return !needs_whole;
}

static void do_blocks(struct job *job, cogpu_seat *seat, struct task *tasks, uint32_t count,
                      struct tally *tally) {
    cogpu_error error;
    const uint8_t *bytes = NULL;
    cogpu_status fetched = COGPU_OK;
    bool streamed = is_streamed(job, tasks[0].reading->plan.storage);
    if (streamed ? count == 1 && stream_block(job, seat, tasks, tally)
                 : read_direct(tasks, count, tally))
        return;
    if (!streamed || count == 1)
        fetched = fetch(seat, tasks, count, &bytes, &tally->read, &error);
    if (count > 1 && (streamed || fetched != COGPU_OK)) {
        /* Each for itself, so that only those that are cut off fail. */
        for (uint32_t i = 0; i < count; i++)
            do_blocks(job, seat, &tasks[i], 1, tally);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        cogpu_status status = fetched;
        if (!is_wanted(job, &tasks[i]))
            continue;
        if (status == COGPU_OK)
            status = convert(job, seat, &tasks[i],
                             bytes + (tasks[i].span.offset - tasks[0].span.offset), &error);
        if (status != COGPU_OK)
            fail_task(job, &tasks[i], &error);
    }
}

static void do_run(void *argument, uint32_t seat_number, uint64_t run) {
    struct job *job = argument;
    cogpu_seat *seat = job->seats[seat_number];
    uint32_t first = job->runs[run];
    uint32_t end = run + 1 < job->run_count ? job->runs[run + 1] : job->task_count;
    struct task *tasks = &job->tasks[first];
    struct tally tally = {0};
    /* Cached blocks and sparse ones need no fetch; the rest between them is fetched together. */
    for (uint32_t i = 0, pending = 0; i <= end - first; i++) {
        bool at_end = i == end - first;
        bool ready = !at_end && (tasks[i].is_lost || tasks[i].span.bytes == 0);
        bool cached = !at_end && !ready && place_cached(job, seat, &tasks[i]);
        if (!at_end && !ready && !cached) {
            pending++;
            continue;
        }
        if (pending)
            do_blocks(job, seat, &tasks[i - pending], pending, &tally);
        pending = 0;
        tally.cached += cached;
        if (ready && !tasks[i].is_lost) {
            cogpu_cpu_fill(&tasks[i].reading->plan, &tasks[i].block, &tasks[i].reading->raster);
            tally.sparse++;
        }
    }
    cogpu_result *result = &tasks[0].reading->item->result;
    pthread_mutex_lock(&job->lock);
    result->sparse_blocks += tally.sparse;
    result->cached_blocks += tally.cached;
    result->bytes_read += tally.read;
    pthread_mutex_unlock(&job->lock);
}

/* ---- on a device --------------------------------------------------------------------------- */

static bool device_failed(void *user, uint32_t number, const cogpu_error *error) {
    struct job *job = user;
    struct task *task = &job->tasks[number];
    cogpu_error placed = *error;
    fail_task(job, task, &placed);
    return is_fillable(task->reading, error->status);
}

/* The batch of tasks, all in one go. */
static cogpu_status run_on_device(struct job *job, cogpu_error *error) {
    cogpu_gpu_task *tasks = cogpu_allocate(job->task_count * sizeof *tasks);
    if (!tasks)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for %u blocks", job->task_count);
    for (uint32_t i = 0; i < job->task_count; i++) {
        const struct task *task = &job->tasks[i];
        bool fills = task->is_lost && task->reading->item->request.fill_bad_blocks;
        tasks[i] = (cogpu_gpu_task){.plan = &task->reading->plan,
                                    .raster = &task->reading->raster,
                                    .block = task->block,
                                    .span = task->span,
                                    .is_out = task->is_lost && !fills};
        if (fills)
            tasks[i].span.bytes = 0;
    }
    cogpu_gpu_work work = {.tasks = tasks,
                           .count = job->task_count,
                           .pool = job->pool,
                           .seats = job->seats,
                           .seat_count = job->seat_count,
                           .failed = device_failed,
                           .user = job,
                           .stages = &job->tasks[0].reading->item->result.stages};
    cogpu_status status = cogpu_gpu_read(job->reader, &work, error);
    for (uint32_t i = 0; i < job->task_count; i++) {
        struct task *task = &job->tasks[i];
        cogpu_result *result = &task->reading->item->result;
        result->sparse_blocks += task->span.bytes == 0 && !task->is_lost;
        result->bytes_read += task->span.bytes;
        result->device_blocks += tasks[i].is_decoded;
    }
    cogpu_release(tasks);
    return status;
}

/* ---- the job ------------------------------------------------------------------------------- */

/* What a seat may come to need for the largest block of a reading. */
static uint64_t seat_need(const struct job *job, const struct reading *reading) {
    const cogpu_storage *storage = reading->plan.storage;
    uint64_t decoded = (uint64_t)reading->plan.slice_rows * storage->format.row_bytes;
    uint64_t ceiling =
        COGPU_EXPANSION_BASE + cogpu_io_bytes(storage->tiff->io) * (uint64_t)COGPU_EXPANSION_FACTOR;
    bool plain = storage->format.compression == COMPRESSION_NONE;
    if (is_streamed(job, storage))
        return cogpu_cpu_stream_bytes(storage);
    return plain ? decoded : 2 * (decoded < ceiling ? decoded : ceiling);
}

/* As many threads as asked for, as there is work for, and as memory allows. */
static uint32_t seats_of(const struct job *job) {
    uint64_t seats = job->threads < SEATS_MAX ? job->threads : SEATS_MAX, blocks = 0, work = 0;
    for (size_t i = 0; i < job->count; i++) {
        const struct reading *reading = &job->readings[i];
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

static cogpu_status open_job(struct job *job, cogpu_error *error) {
    job->seat_count = seats_of(job);
    TRY(cogpu_arena_take(&job->arena, BATCH, sizeof *job->tasks, &job->tasks, error));
    TRY(cogpu_arena_take(&job->arena, BATCH, sizeof *job->runs, &job->runs, error));
    TRY(cogpu_arena_take(&job->arena, job->seat_count, sizeof(cogpu_seat *), &job->seats, error));
    for (uint32_t i = 0; i < job->seat_count; i++)
        if (!(job->seats[i] = cogpu_context_seat(job->context)))
            return cogpu_fail(error, COGPU_MEMORY, "out of memory for the threads");
    job->pool = job->context ? job->context->pool : NULL;
    if (!job->context && job->seat_count > 1)
        TRY(cogpu_pool_open(job->seat_count, &job->pool, error));
    return COGPU_OK;
}

static void close_job(struct job *job) {
    for (uint32_t i = 0; job->seats && i < job->seat_count && job->seats[i]; i++)
        cogpu_context_give_back(job->context, job->seats[i]);
    if (!job->context)
        cogpu_pool_close(job->pool);
}

static cogpu_status run_job(struct job *job, cogpu_error *error) {
    cogpu_status status = open_job(job, error);
    while (status == COGPU_OK && gather(job)) {
        if (job->reader)
            status = run_on_device(job, error);
        else
            cogpu_pool_run(job->pool, job->seat_count, job->run_count, do_run, job);
    }
    close_job(job);
    return status;
}

static cogpu_status report(struct job *job, cogpu_error *error) {
    cogpu_status first = COGPU_OK;
    for (size_t i = 0; i < job->count; i++) {
        struct reading *reading = &job->readings[i];
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

/* Items whose rasters lie on one device. */
static cogpu_status read_items(cogpu_read_item **items, size_t count, uint32_t threads,
                               cogpu_context *context, cogpu_error *error) {
    struct job job = {.count = count, .context = context};
    const cogpu_raster *raster = &items[0]->raster;
    job.threads = threads   ? threads
                  : context ? cogpu_pool_threads(context->pool)
                            : cogpu_processors();
    cogpu_arena_open(&job.arena, UINT64_MAX);
    cogpu_status status =
        cogpu_arena_take(&job.arena, count, sizeof *job.readings, &job.readings, error);
    if (status == COGPU_OK && raster->device != COGPU_CPU)
        status =
            cogpu_context_device(context, raster->device, raster->device_index, &job.reader, error);
    for (size_t i = 0; status == COGPU_OK && i < count; i++) {
        struct reading *reading = &job.readings[i];
        reading->item = items[i];
        reading->failed_number = UINT64_MAX;
        cogpu_error_clear(&reading->error);
        (void)prepare(reading, job.reader); /* its status is in reading->error */
    }
    pthread_mutex_init(&job.lock, NULL);
    if (status == COGPU_OK)
        status = run_job(&job, error);
    if (status == COGPU_OK)
        status = report(&job, error);
    else
        for (size_t i = 0; i < count; i++)
            items[i]->status = status;
    pthread_mutex_destroy(&job.lock);
    cogpu_arena_close(&job.arena);
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
