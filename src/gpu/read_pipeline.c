/*
 * A read from its first step to its last:
 *
 *     choose    the next tasks that fit a slot, laid out in its memory       read_batch.c
 *     fetch     their bytes, by all threads                                  read_fetch.c
 *     decode    one copy up and the decoder, by the thread that fetched      read_launch.c
 *               the last bytes, on the buffer's stream
 *     unpack    into the rasters, and one copy of the statuses down          read_launch.c
 *     collect   the statuses, when the slot is needed again or at the end    read_collect.c
 *
 * At first all slots that the read can get are filled together, so that threads fetch without a
 * pause. From then on a slot is filled as soon as the oldest batch is done. A batch can be fetched
 * before it has a buffer: then it waits for the buffer of an older batch.
 */
#include "gpu/read_pipeline.h"

#include "base/clock.h"
#include "base/math.h"
#include "gpu/read_run.h"

/* ---- which reads, and where they are decoded ----------------------------------------------- */

/* A decoder that divides blocks is worth slots that hold large ones. */
static bool fits_slot(const cogpu_gpu_device *device, const cogpu_read_plan *plan) {
    const cogpu_gpu_decoder *decoder =
        cogpu_gpu_find_decoder(device->gpu, plan->storage->format.compression);
    return cogpu_slot_holds(device->budget / COGPU_READ_BUFFERS, COGPU_PINNED_MAX, plan) ||
           (decoder && decoder->rates.few > 0 &&
            cogpu_slot_holds(device->budget / 2, COGPU_PINNED_BLOCK_MAX, plan));
}

/* The CPU has other ways to read blocks that exceed the file's limits, or reports them. */
bool cogpu_gpu_device_can_read(const cogpu_gpu_device *device, const cogpu_read_plan *plan) {
    const cogpu_storage *storage = plan->storage;
    bool is_plain = storage->format.compression == COMPRESSION_NONE;
    bool has_ink_samples = storage->colour == COGPU_FROM_CMYK && storage->planes == 1 &&
                           storage->format.samples != storage->bands;
    return !cogpu_storage_has_units(storage) && !has_ink_samples &&
           (is_plain || storage->block_bytes <= storage->tiff->limits.block_bytes) &&
           fits_slot(device, plan) && storage->format.row_bytes <= COGPU_GPU_BLOCK_BYTES_MAX &&
           !(plan->conversion && storage->type == COGPU_TYPE_CF64);
}

/* CPU threads for one of so many reads that share them: at most the read's own workers. */
static uint32_t share_threads(const cogpu_gpu_read_job *job, uint32_t reads) {
    uint32_t threads = job->pool ? cogpu_pool_threads(job->pool) : 1;
    uint32_t share = threads > reads ? threads / reads : 1;
    return min_u32(share, job->worker_count);
}

/* Blocks of one decoder in a read: decoded bytes of all, and of the largest. */
struct decode_work {
    const cogpu_gpu_decoder *decoder;
    double sum, largest;
};

static void add_block(struct decode_work *work, double bytes) {
    work->sum += bytes;
    work->largest = bytes > work->largest ? bytes : work->largest;
}

/* Estimated nanoseconds. */
static double time_on_device(const struct decode_work *work) {
    const cogpu_gpu_rates *rates = &work->decoder->rates;
    const double each = cogpu_gpu_many_time(rates, work->sum, work->largest);
    const double divided = rates->few > 0 ? cogpu_gpu_few_time(rates, work->sum) : each;
    return each < divided ? each : divided;
}

static double time_on_cpu(const struct decode_work *work, uint32_t threads) {
    const double bytes = work->sum / threads > work->largest ? work->sum / threads : work->largest;
    return bytes / work->decoder->rates.cpu;
}

/* One block takes as long on the device as many, so the CPU may decode a few blocks faster. Active
 * reads share the CPU threads. A read of several codecs counts as one of the first. A device with a
 * cache decodes all, so that their blocks are cached. */
static bool is_cpu_faster(cogpu_gpu_device *device, const cogpu_gpu_read_job *job) {
    struct decode_work work = {0};
    if (device->gpu->is_emulated || device->always_decodes || device->cache)
        return false;
    for (uint32_t i = 0; i < job->count; i++) {
        const cogpu_gpu_read_task *task = &job->tasks[i];
        const cogpu_gpu_decoder *decoder =
            cogpu_gpu_find_decoder(device->gpu, task->plan->storage->format.compression);
        if (!decoder || task->span.bytes == 0 || task->repeats)
            continue;
        work.decoder = work.decoder ? work.decoder : decoder;
        add_block(&work, (double)cogpu_task_decoded_bytes(task));
    }
    if (!work.decoder)
        return false;
    pthread_mutex_lock(&device->pool.lock);
    uint32_t threads = share_threads(job, device->pool.active_reads);
    pthread_mutex_unlock(&device->pool.lock);
    return time_on_cpu(&work, threads) < time_on_device(&work);
}

bool cogpu_gpu_device_is_faster(const cogpu_gpu_device *device, const cogpu_read_plan *plan,
                                uint32_t threads) {
    enum { ROUND_TRIP_NS = 100000 }; /* the least time of a read by way of the device */
    const cogpu_storage *storage = plan->storage;
    const cogpu_gpu_decoder *decoder =
        cogpu_gpu_find_decoder(device->gpu, storage->format.compression);
    if (!decoder || device->gpu->is_emulated || device->always_decodes)
        return decoder;
    const double bytes = (double)storage->block_bytes;
    const struct decode_work work = {decoder, bytes * (double)plan->count, bytes};
    return time_on_cpu(&work, threads) > time_on_device(&work) + ROUND_TRIP_NS;
}

/* ---- sizes --------------------------------------------------------------------------------- */

/* Bytes that a read needs, in device and in pinned memory: for all blocks, and for the largest. */
struct read_needs {
    uint64_t all, largest, all_pinned, largest_pinned;
};

/* What the tasks of a plan have in common. */
struct plan_needs {
    const cogpu_gpu_decoder *decoder; /* NULL: the CPU decodes */
    struct cogpu_scratch_need scratch;
    uint64_t band_bytes;
};

static struct plan_needs needs_of_plan(const struct cogpu_read_run *run,
                                       const cogpu_gpu_read_task *task) {
    const cogpu_block_format *format = &task->plan->storage->format;
    struct plan_needs needs = {.decoder =
                                   cogpu_gpu_find_decoder(run->device->gpu, format->compression),
                               .band_bytes = cogpu_slot_band_bytes(task->plan)};
    if (needs.decoder && cogpu_task_decoded_bytes(task) <= COGPU_GPU_BLOCK_BYTES_MAX)
        needs.scratch = cogpu_task_scratch(task, needs.decoder, run->job->count - 1);
    return needs;
}

/* An estimate of what a task takes. If the device decodes it: stored bytes, decoded bytes, and
 * scratch. Else decoded bytes; any block may have to be decoded by the CPU. */
static void add_needs(struct read_needs *needs, const struct cogpu_read_run *run,
                      const cogpu_gpu_read_task *task, const struct plan_needs *plan) {
    const bool is_encoded = plan->decoder != NULL;
    uint64_t stored = task->span.bytes, by_cpu = cogpu_gpu_align(cogpu_task_needed_bytes(task));
    uint64_t decoded = cogpu_gpu_align(cogpu_task_decoded_bytes(task)) + 2 * COGPU_GPU_ALIGN;
    if (stored == 0)
        return;
    uint64_t need = is_encoded ? stored + decoded + plan->scratch.best : by_cpu;
    uint64_t alone = is_encoded ? stored + decoded + plan->scratch.alone : by_cpu;
    uint64_t pinned = max_u64(stored, by_cpu);
    needs->all += need;
    needs->all_pinned += is_encoded && !run->is_cpu_decoded ? stored : by_cpu;
    needs->largest = max_u64(needs->largest, alone + plan->band_bytes);
    needs->largest_pinned = max_u64(needs->largest_pinned, pinned + plan->band_bytes);
}

/* A small read is one batch in one slot. A large one is divided among all buffers, but not into
 * batches that take longer to decode than to copy. Its pinned memory is twice what a batch needs on
 * average. */
static struct cogpu_slot_sizes choose_sizes(const cogpu_gpu_device *device,
                                            const struct read_needs *needs) {
    enum { SMALL_BYTES = 32 << 20, BATCH_BYTES = 48 << 20 };
    const uint64_t overhead = COGPU_SLOT_OVERHEAD + COGPU_STAGING;
    bool is_small = needs->all + overhead <= SMALL_BYTES;
    uint64_t share =
        is_small ? needs->all + overhead : max_u64(needs->all / COGPU_READ_BUFFERS, BATCH_BYTES);
    const uint64_t most =
        max_u64(device->budget / COGPU_READ_BUFFERS, min_u64(needs->largest, device->budget / 2));
    struct cogpu_slot_sizes sizes = {
        .device =
            cogpu_slot_pool_size(max_u64(share, needs->largest), COGPU_BUFFER_LEAST_BYTES, most)};
    uint64_t batches = needs->all > sizes.device ? needs->all / sizes.device : 1;
    share = is_small ? needs->all_pinned + overhead : 2 * needs->all_pinned / batches;
    const uint64_t pinned_most =
        max_u64(COGPU_PINNED_MAX, min_u64(needs->largest_pinned, COGPU_PINNED_BLOCK_MAX));
    sizes.pinned =
        cogpu_slot_pool_size(max_u64(share, needs->largest_pinned), COGPU_PINNED_LEAST_BYTES,
                             min_u64(sizes.device, pinned_most));
    return sizes;
}

static void plan_slots(struct cogpu_read_run *run) {
    const cogpu_gpu_read_job *job = run->job;
    struct read_needs needs = {0};
    struct plan_needs plan = {0};
    run->bytes_left = 0;
    for (uint32_t i = 0; i < job->count; i++) {
        const cogpu_gpu_read_task *task = &job->tasks[i];
        if (i == 0 || task->plan != task[-1].plan) {
            plan = needs_of_plan(run, task);
            needs.all += plan.band_bytes;
            needs.all_pinned += plan.band_bytes;
        }
        if (!task->repeats)
            add_needs(&needs, run, task, &plan);
        run->bytes_left += task->span.bytes;
    }
    /* To the first page boundary; cuFile reads whole pages. */
    needs.largest += COGPU_SLOT_OVERHEAD + COGPU_STAGING + 2 * COGPU_GDS_PAGE;
    needs.largest_pinned += COGPU_SLOT_OVERHEAD + COGPU_STAGING;
    run->sizes = choose_sizes(run->device, &needs);
}

/* ---- batches ------------------------------------------------------------------------------- */

/* Slots that are filled together. */
struct slot_filling {
    struct cogpu_slot *slots[COGPU_READ_SLOTS];
    uint32_t count;
};

/* One range of one of the slots; the thread that has the last range of a slot launches it. */
static void fetch_and_launch(void *argument, uint32_t worker, uint64_t index) {
    struct slot_filling *filling = argument;
    uint32_t i = 0;
    while (index >= filling->slots[i]->range_count)
        index -= filling->slots[i++]->range_count;
    struct cogpu_slot *slot = filling->slots[i];
    cogpu_fetch_one_range(slot, worker, (uint32_t)index);
    if (__atomic_sub_fetch(&slot->ranges_left, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    cogpu_fetch_complete(slot, worker);
    cogpu_slot_launch(slot);
}

/* Chooses tasks for all slots that are free or done, and for one at least. *chosen: number of
 * tasks. A slot without bytes to fetch is not one to be filled: it is launched at once, and the
 * device works on it while tasks are chosen for the next. */
static cogpu_status choose_batches(struct cogpu_read_run *run, cogpu_gpu_read_task *tasks,
                                   uint32_t count, struct slot_filling *filling, uint32_t *chosen,
                                   cogpu_error *error) {
    *chosen = filling->count = 0;
    while (*chosen < count && filling->count < COGPU_READ_SLOTS) {
        struct cogpu_slot *slot = NULL;
        TRY(cogpu_run_take_slot(run, filling->count == 0, &slot, error));
        if (!slot)
            break;
        uint32_t taken = cogpu_slot_choose(slot, tasks + *chosen, count - *chosen);
        if (taken == 0)
            return cogpu_fail(error, COGPU_LIMIT_EXCEEDED,
                              "a block does not fit the device memory that the read may take: "
                              "raise `device_bytes` of the context");
        cogpu_slot_split(run->device->gpu, slot);
        *chosen += taken;
        if (slot->range_count > 0) {
            filling->slots[filling->count++] = slot;
        } else {
            cogpu_slot_launch(slot);
            TRY(cogpu_slot_status(slot, error));
        }
    }
    return COGPU_OK;
}

/* Returns how many reads fetch now. */
static uint32_t count_fetching(struct cogpu_read_run *run, int change) {
    struct cogpu_slot_pool *pool = &run->device->pool;
    pthread_mutex_lock(&pool->lock);
    uint32_t reads = pool->fetching_reads += (uint32_t)change;
    pthread_mutex_unlock(&pool->lock);
    return reads;
}

/* Fetches and launches what was chosen. */
static cogpu_status fill_batches(struct cogpu_read_run *run, struct slot_filling *filling,
                                 cogpu_error *error) {
    cogpu_gpu_read_job *job = run->job;
    uint64_t ranges = 0;
    double start = clock_now();
    for (uint32_t i = 0; i < filling->count; i++)
        ranges += filling->slots[i]->range_count;
    uint32_t workers = share_threads(job, count_fetching(run, 1));
    cogpu_pool_run(job->pool, workers, ranges, fetch_and_launch, filling);
    (void)count_fetching(run, -1);
    job->times->fetch_ms += 1e3 * (clock_now() - start);
    for (uint32_t i = 0; i < filling->count; i++)
        TRY(cogpu_slot_status(filling->slots[i], error));
    return COGPU_OK;
}

/* cuFile and nvJPEG take long to open, so they are opened for reads that use them. */
static void open_libraries(struct cogpu_read_run *run) {
    const cogpu_gpu_read_job *job = run->job;
    bool has_jpeg = false;
    for (uint32_t i = 0; i < job->count && !has_jpeg; i++)
        has_jpeg = job->tasks[i].plan->storage->format.compression == COMPRESSION_JPEG;
    run->has_nvjpeg = has_jpeg && cogpu_gpu_device_nvjpeg(run->device);
    run->has_cufile = cogpu_fetch_wants_cufile(run);
}

/* Fetches all tasks and queues the first halves of their batches. When it returns all batches that
 * are not collected have buffers. */
static cogpu_status start_tasks(struct cogpu_read_run *run, cogpu_error *error) {
    cogpu_gpu_read_job *job = run->job;
    struct slot_filling filling;
    uint32_t chosen;
    open_libraries(run);
    plan_slots(run);
    for (uint32_t i = 0; i < job->count; i++)
        if (i == 0 || job->tasks[i].raster != job->tasks[i - 1].raster)
            TRY(cogpu_run_record_caller(run, job->tasks[i].raster, error));
    for (uint32_t done = 0; done < job->count; done += chosen) {
        TRY(choose_batches(run, job->tasks + done, job->count - done, &filling, &chosen, error));
        TRY(fill_batches(run, &filling, error));
    }
    while (run->count > run->buffer_count)
        TRY(cogpu_run_collect_oldest(run, error));
    return COGPU_OK;
}

/* Work that waits for a decoder holds up the work of other streams behind it in the same hardware
 * queue: see the top. One read avoids that by the order of its batches. A read of one batch beside
 * other reads lets its thread wait for the decoder instead, since it waits for the end anyway. */
static bool waits_for_decoder(const struct cogpu_read_run *run) {
    return run->count == 1 && run->queue[0]->state == COGPU_SLOT_DECODING &&
           !run->job->is_pending && run->device->pool.active_reads > 1;
}

/* Queues the second halves. If the read is pending, later work in its rasters' streams waits for
 * them. */
static cogpu_status unpack_all(struct cogpu_read_run *run, cogpu_error *error) {
    cogpu_gpu *gpu = run->device->gpu;
    const cogpu_gpu_read_job *job = run->job;
    for (uint32_t i = 0; i < run->count; i++) {
        if (waits_for_decoder(run))
            TRY(gpu->calls->finish_stream(gpu, run->queue[i]->buffer->stream, error));
        TRY(cogpu_slot_launch_unpack(run->queue[i], error));
    }
    for (uint32_t i = 0; job->is_pending && i < job->count; i++) {
        cogpu_gpu_stream *stream = job->tasks[i].raster->stream;
        if (i > 0 && stream == job->tasks[i - 1].raster->stream)
            continue;
        for (uint32_t j = 0; j < run->count; j++)
            TRY(gpu->calls->wait_event(gpu, stream, run->queue[j]->events[COGPU_EVENT_DONE],
                                       error));
    }
    return COGPU_OK;
}

/* ---- refused blocks ------------------------------------------------------------------------ */

/* The second pass: blocks that the device refused, in an array of their own. */
struct second_pass {
    cogpu_gpu_read_job job, *first_job;
    cogpu_gpu_read_task *tasks;
    uint32_t *numbers; /* of the tasks in the first job */
};

static bool report_failed(void *user, uint32_t task, const cogpu_error *error) {
    const struct second_pass *pass = user;
    return pass->first_job->failed(pass->first_job->user, pass->numbers[task], error);
}

static uint32_t count_refused(const cogpu_gpu_read_job *job) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < job->count; i++)
        count += job->tasks[i].state == COGPU_BLOCK_REFUSED;
    return count;
}

static void copy_refused(struct second_pass *pass) {
    const cogpu_gpu_read_job *first = pass->first_job;
    pass->job = *first;
    pass->job.tasks = pass->tasks;
    pass->job.failed = report_failed;
    pass->job.user = pass;
    pass->job.count = 0;
    for (uint32_t i = 0; i < first->count; i++) {
        if (first->tasks[i].state != COGPU_BLOCK_REFUSED)
            continue;
        pass->numbers[pass->job.count] = i;
        pass->tasks[pass->job.count] = first->tasks[i];
        pass->tasks[pass->job.count++].state = COGPU_BLOCK_PENDING;
    }
}

static cogpu_status decode_refused(cogpu_gpu_device *device, cogpu_gpu_read_job *job,
                                   uint32_t refused, cogpu_error *error) {
    struct second_pass pass = {.first_job = job,
                               .tasks = cogpu_allocate(refused * sizeof *pass.tasks),
                               .numbers = cogpu_allocate(refused * sizeof *pass.numbers)};
    cogpu_status status = COGPU_OK;
    if (!pass.tasks || !pass.numbers) {
        status = cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for %u blocks", refused);
    } else {
        struct cogpu_read_run run;
        copy_refused(&pass);
        cogpu_run_open(&run, device, &pass.job);
        run.is_cpu_decoded = true;
        status = cogpu_tasks_find_repeats(pass.tasks, pass.job.count, error);
        if (status == COGPU_OK)
            status = start_tasks(&run, error);
        if (status == COGPU_OK)
            status = cogpu_run_collect_all(&run, error);
        cogpu_run_close(&run);
    }
    cogpu_release(pass.tasks);
    cogpu_release(pass.numbers);
    return status;
}

/* ---- start and finish ---------------------------------------------------------------------- */

static void count_active(cogpu_gpu_device *device, int change) {
    pthread_mutex_lock(&device->pool.lock);
    device->pool.active_reads += (uint32_t)change;
    pthread_mutex_unlock(&device->pool.lock);
}

static void close_read(cogpu_gpu_device *device, cogpu_gpu_read_job *job) {
    cogpu_run_close(job->run);
    cogpu_release(job->run);
    job->run = NULL;
    count_active(device, -1);
}

cogpu_status cogpu_gpu_read_start(cogpu_gpu_device *device, cogpu_gpu_read_job *job,
                                  cogpu_error *error) {
    struct cogpu_read_run *run = cogpu_allocate(sizeof *run);
    if (!run)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for a read");
    cogpu_run_open(run, device, job);
    job->run = run;
    count_active(device, 1);
    cogpu_status status = cogpu_tasks_find_repeats(job->tasks, job->count, error);
    if (status == COGPU_OK) {
        run->is_cpu_decoded = is_cpu_faster(device, job);
        status = start_tasks(run, error);
    }
    if (status == COGPU_OK)
        status = unpack_all(run, error);
    if (status != COGPU_OK) {
        close_read(device, job);
        cogpu_slot_pool_trim(&device->pool); /* others may lack the memory */
    } else if (job->is_pending) {
        cogpu_run_park(run);
    }
    return status;
}

cogpu_status cogpu_gpu_read_finish(cogpu_gpu_device *device, cogpu_gpu_read_job *job,
                                   cogpu_error *error) {
    struct cogpu_read_run *run = job->run;
    if (run->is_parked)
        cogpu_run_unpark(run);
    cogpu_status status = cogpu_run_collect_all(run, error);
    uint32_t refused = count_refused(job);
    if (status == COGPU_OK && refused > 0)
        status = decode_refused(device, job, refused, error);
    close_read(device, job);
    return status;
}
