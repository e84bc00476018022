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

/* Uncompressed blocks are not worth a copy. */
static cogpu_block_cache *cache_for(const struct cogpu_read_job *job,
                                    const cogpu_storage *storage) {
    bool is_compressed = storage->format.compression != COMPRESSION_NONE;
    return job->context && is_compressed ? job->context->cache : NULL;
}

static cogpu_block_cache_key cache_key_of(const struct cogpu_read_task *task) {
    const cogpu_storage *storage = task->window->plan.storage;
    return (cogpu_block_cache_key){.file = cogpu_file_number(task->window->file),
                                   .directory =
                                       (uint64_t)storage->tiff->number << 32 | storage->directory,
                                   .block = task->block.index};
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

static size_t needed_bytes(const struct cogpu_read_task *task) {
    return task->block.needed_rows * task->window->plan.storage->format.row_bytes;
}

/* Whether the read may keep so many more bytes. */
static bool has_share(struct cogpu_read_job *job, const cogpu_block_cache *cache, size_t bytes) {
    pthread_mutex_lock(&job->lock);
    bool has = job->kept_bytes + bytes <= cogpu_block_cache_budget(cache) / READ_SHARE;
    pthread_mutex_unlock(&job->lock);
    return has;
}

static bool keeps_block(struct cogpu_read_job *job, const cogpu_block_cache *cache,
                        const struct cogpu_read_task *task) {
    size_t bytes = needed_bytes(task);
    return job->context->caches_all_blocks ? bytes <= cogpu_block_cache_budget(cache)
                                           : !is_needed_whole(task) && has_share(job, cache, bytes);
}

/* ---- blocks -------------------------------------------------------------------------------- */

cogpu_cached_block *cogpu_task_reserve_cached(struct cogpu_read_job *job,
                                              const struct cogpu_read_task *task) {
    cogpu_block_cache *cache = cache_for(job, task->window->plan.storage);
    if (!cache || !keeps_block(job, cache, task) ||
        !cogpu_file_join_cache(task->window->file, cache))
        return NULL;
    cogpu_cached_block *cached =
        cogpu_block_cache_reserve(cache, cache_key_of(task), needed_bytes(task));
    if (cached) {
        pthread_mutex_lock(&job->lock);
        job->kept_bytes += cached->bytes;
        pthread_mutex_unlock(&job->lock);
    }
    return cached;
}

bool cogpu_task_is_cached(struct cogpu_read_job *job, const struct cogpu_read_task *task) {
    cogpu_block_cache *cache = cache_for(job, task->window->plan.storage);
    cogpu_cached_block *cached = cache ? cogpu_block_cache_find(cache, cache_key_of(task)) : NULL;
    if (cached)
        cogpu_block_cache_unpin(cache, cached);
    return cached;
}

bool cogpu_task_unpack_cached(struct cogpu_read_job *job, cogpu_worker *worker,
                              struct cogpu_read_task *task) {
    cogpu_block_cache *cache = cache_for(job, task->window->plan.storage);
    cogpu_cached_block *cached = cache ? cogpu_block_cache_find(cache, cache_key_of(task)) : NULL;
    if (!cached)
        return false;
    cogpu_status status = cogpu_cpu_unpack(worker, &task->window->plan, &task->block, cached->data,
                                           true, &task->window->raster, NULL);
    cogpu_block_cache_unpin(cache, cached);
    return status == COGPU_OK;
}

bool cogpu_job_streams(const struct cogpu_read_job *job, const cogpu_storage *storage) {
    cogpu_block_cache *cache = cache_for(job, storage);
    bool is_kept = cache && job->context->caches_all_blocks &&
                   storage->block_bytes <= cogpu_block_cache_budget(cache);
    return cogpu_cpu_is_streamed(storage) && !is_kept;
}
