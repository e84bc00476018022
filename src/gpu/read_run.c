/*
 * Slots of a read: how it gets them and gives them back. README.md argues why no read waits for
 * ever.
 */
#include "gpu/read_run.h"

void cogpu_run_open(struct cogpu_read_run *run, cogpu_gpu_device *device, cogpu_gpu_read_job *job) {
    *run = (struct cogpu_read_run){.device = device, .job = job, .slot_limit = COGPU_READ_SLOTS};
    pthread_mutex_init(&run->launch_lock, NULL);
}

/* Waits for each stream first: after a failure queued work may still use memory that the next read
 * would get. */
static void release_queue(struct cogpu_read_run *run) {
    cogpu_gpu *gpu = run->device->gpu;
    for (uint32_t i = 0; i < run->count; i++) {
        struct cogpu_slot *slot = run->queue[i];
        if (slot->buffer && slot->state != COGPU_SLOT_FREE)
            (void)gpu->calls->finish_stream(gpu, slot->buffer->stream, NULL);
        cogpu_slot_release_cached(slot);
        slot->state = COGPU_SLOT_FREE;
        cogpu_slot_pool_release(&run->device->pool, slot, slot->buffer);
    }
    run->count = run->buffer_count = 0;
}

void cogpu_run_close(struct cogpu_read_run *run) {
    cogpu_gpu *gpu = run->device->gpu;
    release_queue(run);
    cogpu_fetch_close_files(run);
    cogpu_run_release_returned(run);
    gpu->calls->event_close(gpu, run->before);
    gpu->calls->event_close(gpu, run->callers);
    pthread_mutex_destroy(&run->launch_lock);
}

/* ---- parked reads -------------------------------------------------------------------------- */

void cogpu_run_park(struct cogpu_read_run *run) {
    struct cogpu_slot_pool *pool = &run->device->pool;
    pthread_mutex_lock(&pool->lock);
    struct cogpu_read_run **last = &pool->parked;
    while (*last)
        last = &(*last)->next_parked;
    *last = run;
    run->next_parked = NULL;
    run->is_parked = true;
    pool->active_reads--;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
}

void cogpu_run_unpark(struct cogpu_read_run *run) {
    struct cogpu_slot_pool *pool = &run->device->pool;
    pthread_mutex_lock(&pool->lock);
    while (run->is_collected_by_other)
        pthread_cond_wait(&pool->changed, &pool->lock);
    struct cogpu_read_run **link = &pool->parked;
    while (*link != run)
        link = &(*link)->next_parked;
    *link = run->next_parked;
    run->is_parked = false;
    pool->active_reads++;
    pthread_mutex_unlock(&pool->lock);
}

/* The oldest parked run that has a batch and from which no other read collects. Its queue changes
 * only while one does. */
static struct cogpu_read_run *find_parked(const struct cogpu_slot_pool *pool) {
    struct cogpu_read_run *run = pool->parked;
    while (run && (run->is_collected_by_other || run->count == 0))
        run = run->next_parked;
    return run;
}

/* Collects the oldest batch of a parked read, if there is one, in place of its owner. The caller
 * holds the pool's lock, which is released while this thread waits for the batch. */
static cogpu_status collect_parked(struct cogpu_slot_pool *pool, bool *has_collected,
                                   cogpu_error *error) {
    struct cogpu_read_run *parked = find_parked(pool);
    *has_collected = parked != NULL;
    if (!parked)
        return COGPU_OK;
    parked->is_collected_by_other = true;
    pthread_mutex_unlock(&pool->lock);
    cogpu_status status = cogpu_run_collect_oldest(parked, error);
    pthread_mutex_lock(&pool->lock);
    parked->is_collected_by_other = false;
    pthread_cond_broadcast(&pool->changed);
    return status;
}

/* ---- slots --------------------------------------------------------------------------------- */

/* A read takes two buffers less while other reads are active. */
static uint32_t buffer_limit(const struct cogpu_read_run *run) {
    enum { LEFT_TO_OTHERS = 2 };
    return run->device->pool.active_reads > 1 ? COGPU_READ_BUFFERS - LEFT_TO_OTHERS
                                              : COGPU_READ_BUFFERS;
}

/* Whether one more batch may be fetched before it has a buffer: no more than the read has buffers
 * that will become free. cuFile reads into a buffer, so it cannot. */
static bool may_go_ahead(const struct cogpu_read_run *run) {
    uint32_t ahead = run->count - run->buffer_count;
    return !run->has_cufile && ahead < run->buffer_count &&
           ahead < COGPU_READ_SLOTS - COGPU_READ_BUFFERS;
}

/* With the lock held. While a batch of the run has no buffer, the run takes none from the pool; it
 * gets one by collecting. So the oldest batches have the buffers. */
static bool claim_slot(struct cogpu_read_run *run, struct cogpu_slot_claim *claim) {
    bool may_take_buffer = run->count == run->buffer_count && run->buffer_count < buffer_limit(run);
    bool may_go_without = may_go_ahead(run);
    if (run->count >= run->slot_limit || !(may_take_buffer || may_go_without))
        return false;
    return cogpu_slot_pool_claim(&run->device->pool, &run->sizes,
                                 !may_go_without    ? COGPU_CLAIM_BOTH
                                 : !may_take_buffer ? COGPU_CLAIM_SLOT
                                                    : COGPU_CLAIM_BOTH_OR_SLOT,
                                 claim);
}

/* A read that has no slot waits until its ticket is served and a slot is free. */
static cogpu_status wait_for_claim(struct cogpu_read_run *run, struct cogpu_slot_claim *claim,
                                   cogpu_error *error) {
    struct cogpu_slot_pool *pool = &run->device->pool;
    cogpu_status status = COGPU_OK;
    pthread_mutex_lock(&pool->lock);
    const uint64_t ticket = pool->next_ticket++;
    while (status == COGPU_OK && !(pool->serving == ticket && claim_slot(run, claim))) {
        bool has_collected = false;
        if (pool->serving == ticket)
            status = collect_parked(pool, &has_collected, error);
        if (!has_collected)
            pthread_cond_wait(&pool->changed, &pool->lock);
    }
    pool->serving++;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    return status;
}

/* A read that has slots takes another only if no read waits for its first. */
static cogpu_status try_claim(struct cogpu_read_run *run, bool may_wait, bool *has_claim,
                              struct cogpu_slot_claim *claim, cogpu_error *error) {
    struct cogpu_slot_pool *pool = &run->device->pool;
    cogpu_status status = COGPU_OK;
    bool has_collected = true;
    *has_claim = false;
    pthread_mutex_lock(&pool->lock);
    while (status == COGPU_OK && has_collected && pool->serving == pool->next_ticket) {
        *has_claim = claim_slot(run, claim);
        if (*has_claim || !may_wait || run->count >= run->slot_limit)
            break;
        status = collect_parked(pool, &has_collected, error);
    }
    pthread_mutex_unlock(&pool->lock);
    return status;
}

static void append_slot(struct cogpu_read_run *run, struct cogpu_slot *slot) {
    slot->run = run;
    slot->state = COGPU_SLOT_FETCHING;
    slot->status = COGPU_OK;
    slot->pinned_capacity = run->sizes.pinned;
    slot->device_capacity = /* less what is lost before the first page boundary */
        run->sizes.device > COGPU_STAGING ? run->sizes.device - COGPU_STAGING : 0;
    run->queue[run->count++] = slot;
    run->buffer_count += slot->buffer != NULL;
}

static bool is_done(const struct cogpu_read_run *run) {
    cogpu_gpu *gpu = run->device->gpu;
    const struct cogpu_slot *oldest = run->queue[0];
    return oldest->state == COGPU_SLOT_UNPACKING &&
           gpu->calls->is_over(gpu, oldest->events[COGPU_EVENT_DONE]);
}

cogpu_status cogpu_run_take_slot(struct cogpu_read_run *run, bool may_wait,
                                 struct cogpu_slot **slot, cogpu_error *error) {
    struct cogpu_slot_claim claim;
    bool has_claim = false;
    *slot = NULL;
    while (!has_claim) {
        if (run->count == 0) {
            TRY(wait_for_claim(run, &claim, error));
            break;
        }
        TRY(try_claim(run, may_wait, &has_claim, &claim, error));
        if (has_claim)
            break;
        if (!may_wait && !is_done(run))
            return COGPU_OK;
        TRY(cogpu_run_collect_oldest(run, error));
    }
    cogpu_status status =
        cogpu_slot_pool_open_claim(&run->device->pool, &run->sizes, &claim, slot, error);
    if (status == COGPU_OUT_OF_MEMORY &&
        run->count > 0) { /* it goes on with the slots that it has */
        run->slot_limit = run->count;
        return cogpu_run_take_slot(run, may_wait, slot, error);
    }
    if (status == COGPU_OK)
        append_slot(run, *slot);
    return status;
}
