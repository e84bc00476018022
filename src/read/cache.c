/*
 * Which decoded blocks a read keeps in the context's cache, and how they get there and back.
 *
 * A cache of the default size serves windows that are read one after another, which share blocks.
 * It keeps only blocks of which a read needs a part, and of these so many that a read stays within
 * its memory: so a read of a whole raster neither pays for copies nor evicts what others need. A
 * cache whose size the caller chose keeps all blocks.
 */
#include "base/math.h"
#include "read/job.h"

/* Of a cache of the default size, for the blocks of one read. */
enum { READ_SHARE = 5 };

/* Uncompressed blocks are worth a copy only if their bytes come by requests. */
static cogpu_block_cache *cache_for(const struct cogpu_read_job *job,
                                    const cogpu_storage *storage) {
    bool is_worth_it =
        storage->format.compression != COMPRESSION_NONE || cogpu_io_can_prefetch(storage->tiff->io);
    return job->context && is_worth_it ? job->context->cache : NULL;
}

cogpu_block_cache_key cogpu_task_cache_key(const struct cogpu_read_task *task) {
    const cogpu_read_plan *plan = &task->window->plan;
    const cogpu_storage *storage = plan->storage;
    uint64_t slice = task->block.skip / ((uint64_t)plan->slice_rows * storage->format.row_bytes);
    return (cogpu_block_cache_key){.file = cogpu_file_number(task->window->file),
                                   .directory =
                                       (uint64_t)storage->tiff->number << 32 | storage->directory,
                                   .block = task->block.index * plan->slices + slice};
}

/* ---- policy -------------------------------------------------------------------------------- */

/* Whether the window needs all pixels of the block. */
static bool is_needed_whole(const struct cogpu_read_task *task) {
    const cogpu_read_plan *plan = &task->window->plan;
    const cogpu_storage *storage = plan->storage;
    const cogpu_block *block = &task->block;
    uint32_t left = (uint32_t)(block->index % storage->across) * storage->block_width;
    uint32_t width = min_u32(storage->block_width, storage->width - left);
    return block->width == width && block->height == block->needed_rows &&
           (storage->planes > 1 || plan->band_count >= storage->bands);
}

/* Whether the read may keep so many more bytes. */
static bool has_share(struct cogpu_read_job *job, const cogpu_block_cache *cache, size_t bytes) {
    pthread_mutex_lock(&job->lock);
    bool has = job->kept_bytes + bytes <= cogpu_block_cache_budget(cache) / READ_SHARE;
    pthread_mutex_unlock(&job->lock);
    return has;
}

static bool keeps_block(struct cogpu_read_job *job, const cogpu_block_cache *cache,
                        const struct cogpu_read_task *task, size_t bytes) {
    return job->context->caches_all_blocks ? bytes <= cogpu_block_cache_budget(cache)
                                           : !is_needed_whole(task) && has_share(job, cache, bytes);
}

bool cogpu_job_streams(const struct cogpu_read_job *job, const cogpu_storage *storage) {
    cogpu_block_cache *cache = cache_for(job, storage);
    bool is_kept = cache && job->context->caches_all_blocks &&
                   storage->block_bytes <= cogpu_block_cache_budget(cache);
    return cogpu_cpu_is_streamed(storage) && !is_kept;
}

/* ---- blocks -------------------------------------------------------------------------------- */

static size_t bytes_of_rows(const struct cogpu_read_task *task, uint32_t rows) {
    return rows * task->window->plan.storage->format.row_bytes;
}

/* Of the block, down to the last one that the window needs. */
static uint32_t rows_down_to_window(const struct cogpu_read_task *task) {
    return task->block.source_y + task->block.height;
}

bool cogpu_task_is_worth_keeping(struct cogpu_read_job *job, const struct cogpu_read_task *task) {
    const cogpu_block_cache *cache = cache_for(job, task->window->plan.storage);
    return cache && keeps_block(job, cache, task, bytes_of_rows(task, task->block.needed_rows));
}

/* Pins the block if it is cached as far as the task needs it. *has_some: at least its first rows
 * are. */
static cogpu_cached_block *find_block(const struct cogpu_read_job *job,
                                      const struct cogpu_read_task *task, bool *has_some) {
    cogpu_block_cache *cache = cache_for(job, task->window->plan.storage);
    cogpu_cached_block *cached =
        cache ? cogpu_block_cache_find(cache, cogpu_task_cache_key(task)) : NULL;
    *has_some = cached;
    if (!cached || cached->bytes >= bytes_of_rows(task, rows_down_to_window(task)))
        return cached;
    cogpu_block_cache_unpin(cache, cached);
    return NULL;
}

bool cogpu_task_is_cached(struct cogpu_read_job *job, const struct cogpu_read_task *task) {
    bool has_some;
    cogpu_cached_block *cached = find_block(job, task, &has_some);
    if (cached)
        cogpu_block_cache_unpin(job->context->cache, cached);
    return cached;
}

static bool unpack_cached(cogpu_worker *worker, const struct cogpu_read_task *task,
                          cogpu_cached_block *cached) {
    return cogpu_cpu_unpack(worker, &task->window->plan, &task->block, cached->data, true,
                            &task->window->raster, NULL) == COGPU_OK;
}

bool cogpu_task_unpack_cached(struct cogpu_read_job *job, cogpu_worker *worker,
                              const struct cogpu_read_task *task) {
    bool has_some;
    cogpu_cached_block *cached = find_block(job, task, &has_some);
    if (!cached)
        return false;
    bool is_unpacked = unpack_cached(worker, task, cached);
    cogpu_block_cache_unpin(job->context->cache, cached);
    return is_unpacked;
}

static cogpu_cached_block *reserve_rows(struct cogpu_read_job *job,
                                        const struct cogpu_read_task *task, uint32_t rows) {
    size_t bytes = bytes_of_rows(task, rows);
    cogpu_block_cache *cache = cache_for(job, task->window->plan.storage);
    if (!cache || !keeps_block(job, cache, task, bytes) ||
        !cogpu_file_join_cache(task->window->file, cache))
        return NULL;
    cogpu_cached_block *cached =
        cogpu_block_cache_reserve(cache, cogpu_task_cache_key(task), bytes);
    if (cached) {
        pthread_mutex_lock(&job->lock);
        job->kept_bytes += bytes;
        pthread_mutex_unlock(&job->lock);
    }
    return cached;
}

cogpu_cached_block *cogpu_task_reserve_cached(struct cogpu_read_job *job,
                                              const struct cogpu_read_task *task) {
    return reserve_rows(job, task, task->block.needed_rows);
}

/* ---- streamed blocks ----------------------------------------------------------------------- */

/* Whether unpacked pixels of all bands are laid out as restored ones. */
static bool is_restored_by_unpacking(const cogpu_storage *storage) {
    return storage->bits == 8 * cogpu_type_bytes(storage->type) &&
           storage->format.samples == (storage->planes > 1 ? 1 : storage->bands);
}

/* A window of the block's first rows as they are restored, into `to`. */
static struct cogpu_read_window window_of_rows(const struct cogpu_read_task *task, uint32_t rows,
                                               uint8_t *to) {
    const cogpu_storage *storage = task->window->plan.storage;
    struct cogpu_read_window window = {
        .file = task->window->file, .failed_number = UINT64_MAX, .plan = task->window->plan};
    size_t size = cogpu_type_bytes(storage->type);
    window.plan.conversion = NULL;
    window.plan.bands = NULL;
    window.plan.band_count = storage->format.samples;
    window.raster = (cogpu_raster){.data = to,
                                   .type = storage->type,
                                   .bands = storage->format.samples,
                                   .height = rows,
                                   .width = storage->block_width,
                                   .stride_band = (int64_t)size,
                                   .stride_y = (int64_t)storage->format.row_bytes,
                                   .stride_x = (int64_t)(size * storage->format.samples)};
    return window;
}

static struct cogpu_read_task task_of_rows(const struct cogpu_read_task *task, uint32_t rows,
                                           struct cogpu_read_window *window) {
    struct cogpu_read_task all = *task;
    all.window = window;
    all.block.source_x = all.block.source_y = all.block.target_x = all.block.target_y = 0;
    all.block.plane = 0;
    all.block.width = task->window->plan.storage->block_width;
    all.block.height = rows;
    return all;
}

/* The first read that needs rows of a large block decodes it down to the last of them; the next one
 * that needs more decodes it all. So a window costs at most what it needs, and no sequence of
 * windows more than twice what it takes to decode the block once. */
bool cogpu_task_stream_cached(struct cogpu_read_job *job, cogpu_worker *worker,
                              const struct cogpu_read_task *task, cogpu_task_stream *stream,
                              uint64_t *read) {
    const cogpu_storage *storage = task->window->plan.storage;
    bool has_some = false;
    if (!is_restored_by_unpacking(storage))
        return false;
    cogpu_cached_block *cached = find_block(job, task, &has_some);
    if (cached) { /* another window of this read was the first */
        cogpu_block_cache_unpin(job->context->cache, cached);
        return cogpu_task_unpack_cached(job, worker, task);
    }
    uint32_t rows = has_some ? task->block.needed_rows : rows_down_to_window(task);
    cached = reserve_rows(job, task, rows);
    if (!cached)
        return false;
    struct cogpu_read_window window = window_of_rows(task, rows, cached->data);
    struct cogpu_read_task all = task_of_rows(task, rows, &window);
    bool is_done = stream(job, worker, &all, read) && window.error.status == COGPU_OK &&
                   unpack_cached(worker, task, cached);
    if (is_done)
        cogpu_block_cache_insert(job->context->cache, cached);
    else
        cogpu_block_cache_discard(job->context->cache, cached);
    return is_done;
}
