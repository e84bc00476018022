/* Which slots and buffers are open, free or taken; see slot_pool.h. */
#include "gpu/slot_pool.h"

#include "base/math.h"

/* While several reads are active, a read takes no entry that is more than OVERSIZE times larger
 * than it needs. It opens a small one, so that many small reads fit the limit at once. */
enum { OVERSIZE = 8 };

/* Pinned memory of all slots: what a single read may have. */
#define PINNED_LIMIT (COGPU_READ_SLOTS * COGPU_PINNED_MAX)

void cogpu_slot_pool_init(struct cogpu_slot_pool *pool, cogpu_gpu *gpu, uint64_t device_limit) {
    *pool = (struct cogpu_slot_pool){
        .gpu = gpu, .pinned = {.limit = PINNED_LIMIT}, .device = {.limit = device_limit}};
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->changed, NULL);
}

static void close_buffer(const struct cogpu_slot_pool *pool, struct cogpu_device_buffer *buffer) {
    const cogpu_gds_context context = cogpu_gds_context_of(pool->gpu);
    if (buffer->is_registered)
        cogpu_gds_deregister(&context, buffer->device);
    cogpu_device_buffer_close(pool->gpu, buffer);
}

void cogpu_slot_pool_close(struct cogpu_slot_pool *pool) {
    for (uint32_t i = 0; i < COGPU_POOL_ENTRIES; i++) {
        close_buffer(pool, &pool->buffers[i]);
        cogpu_slot_close(pool->gpu, &pool->slots[i]);
    }
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->lock);
}

uint64_t cogpu_slot_pool_size(uint64_t wanted, uint64_t least, uint64_t most) {
    uint64_t bytes = least;
    while (bytes < wanted && bytes < most)
        bytes *= 2;
    return min_u64(bytes, most);
}

/* ---- choice -------------------------------------------------------------------------------- */

/* Chooses free entries to close, so that `wanted` more bytes fit the limit. False if they do not
 * even with all of them closed. */
static bool choose_evicted(const struct cogpu_memory_list *list, uint64_t wanted,
                           struct cogpu_memory_claim *claim) {
    uint64_t bytes = list->bytes - claim->former_bytes + wanted;
    for (uint32_t i = 0; i < COGPU_POOL_ENTRIES && bytes > list->limit; i++) {
        if (i == claim->entry || list->entries[i].is_taken || list->entries[i].bytes == 0)
            continue;
        bytes -= list->entries[i].bytes;
        claim->evicted |= UINT32_C(1) << i;
    }
    return bytes <= list->limit;
}

/* Chooses a free entry: the smallest that is large enough, or else one to open anew. */
static bool choose_entry(const struct cogpu_memory_list *list, uint64_t wanted, bool is_shared,
                         struct cogpu_memory_claim *claim) {
    uint32_t best = COGPU_NO_ENTRY, smallest = COGPU_NO_ENTRY;
    for (uint32_t i = 0; i < COGPU_POOL_ENTRIES; i++) {
        uint64_t bytes = list->entries[i].bytes;
        if (list->entries[i].is_taken)
            continue;
        if (bytes >= wanted && (best == COGPU_NO_ENTRY || bytes < list->entries[best].bytes))
            best = i;
        if (smallest == COGPU_NO_ENTRY || bytes < list->entries[smallest].bytes)
            smallest = i;
    }
    if (smallest == COGPU_NO_ENTRY)
        return false;
    *claim = (struct cogpu_memory_claim){.entry = best};
    if (best != COGPU_NO_ENTRY && !(is_shared && list->entries[best].bytes / OVERSIZE > wanted))
        return true;
    struct cogpu_memory_claim opened = {
        .entry = smallest, .is_new = true, .former_bytes = list->entries[smallest].bytes};
    if (choose_evicted(list, wanted, &opened))
        *claim = opened;
    return claim->entry != COGPU_NO_ENTRY;
}

/* Evicted entries are taken, and their bytes count, until they are closed (drop_evicted). */
static void take_entry(struct cogpu_memory_list *list, uint64_t wanted,
                       const struct cogpu_memory_claim *claim) {
    list->entries[claim->entry].is_taken = true;
    for (uint32_t i = 0; i < COGPU_POOL_ENTRIES; i++)
        if (claim->evicted >> i & 1)
            list->entries[i].is_taken = true;
    if (!claim->is_new)
        return;
    list->entries[claim->entry].bytes = wanted;
    list->bytes += wanted;
}

bool cogpu_slot_pool_claim(struct cogpu_slot_pool *pool, const struct cogpu_slot_sizes *sizes,
                           enum cogpu_claim_kind kind, struct cogpu_slot_claim *claim) {
    bool is_shared = pool->active_reads > 1;
    if (!choose_entry(&pool->pinned, sizes->pinned, is_shared, &claim->slot))
        return false;
    if (kind == COGPU_CLAIM_SLOT ||
        !choose_entry(&pool->device, sizes->device, is_shared, &claim->buffer))
        claim->buffer = (struct cogpu_memory_claim){.entry = COGPU_NO_ENTRY};
    if (kind == COGPU_CLAIM_BOTH && claim->buffer.entry == COGPU_NO_ENTRY)
        return false;
    take_entry(&pool->pinned, sizes->pinned, &claim->slot);
    if (claim->buffer.entry != COGPU_NO_ENTRY)
        take_entry(&pool->device, sizes->device, &claim->buffer);
    return true;
}

/* ---- memory -------------------------------------------------------------------------------- */

/* Subtracts the bytes that were closed for a claim. */
static void drop_evicted(struct cogpu_memory_list *list, const struct cogpu_memory_claim *claim) {
    for (uint32_t i = 0; i < COGPU_POOL_ENTRIES; i++)
        if (claim->evicted >> i & 1) {
            list->bytes -= list->entries[i].bytes;
            list->entries[i].bytes = 0;
            list->entries[i].is_taken = false;
        }
    list->bytes -= claim->former_bytes;
}

static void close_evicted(struct cogpu_slot_pool *pool, const struct cogpu_slot_claim *claim) {
    for (uint32_t i = 0; i < COGPU_POOL_ENTRIES; i++) {
        if ((claim->slot.evicted >> i & 1) || (claim->slot.is_new && i == claim->slot.entry))
            cogpu_slot_close(pool->gpu, &pool->slots[i]);
        if ((claim->buffer.evicted >> i & 1) || (claim->buffer.is_new && i == claim->buffer.entry))
            close_buffer(pool, &pool->buffers[i]);
    }
    pthread_mutex_lock(&pool->lock);
    drop_evicted(&pool->pinned, &claim->slot);
    drop_evicted(&pool->device, &claim->buffer);
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
}

static cogpu_status check_free(cogpu_gpu *gpu, uint64_t wanted, cogpu_error *error) {
    uint64_t free_bytes = 0, total = 0;
    TRY(gpu->calls->memory(gpu, &free_bytes, &total, error));
    return wanted <= free_bytes / 10 * 9
               ? COGPU_OK
               : cogpu_fail(error, COGPU_OUT_OF_MEMORY,
                            "the read needs %llu MiB of device memory beside the raster, and %llu "
                            "of %llu MiB are free: lower `device_bytes` of the context",
                            (unsigned long long)(wanted >> 20),
                            (unsigned long long)(free_bytes >> 20),
                            (unsigned long long)(total >> 20));
}

static cogpu_status open_buffer(const struct cogpu_slot_pool *pool, uint64_t bytes,
                                struct cogpu_device_buffer *buffer, cogpu_error *error) {
    TRY(check_free(pool->gpu, bytes, error));
    return cogpu_device_buffer_open(pool->gpu, bytes, buffer, error);
}

static void release_entry(struct cogpu_memory_list *list, uint32_t entry, bool is_open) {
    list->entries[entry].is_taken = false;
    if (is_open)
        return;
    list->bytes -= list->entries[entry].bytes;
    list->entries[entry].bytes = 0;
}

/* Releases a claim that could not be opened. */
static void abandon_claim(struct cogpu_slot_pool *pool, const struct cogpu_slot_claim *claim) {
    struct cogpu_slot *slot = &pool->slots[claim->slot.entry];
    bool has_buffer = claim->buffer.entry != COGPU_NO_ENTRY;
    cogpu_slot_close(pool->gpu, slot);
    if (has_buffer)
        close_buffer(pool, &pool->buffers[claim->buffer.entry]);
    pthread_mutex_lock(&pool->lock);
    release_entry(&pool->pinned, claim->slot.entry, false);
    if (has_buffer)
        release_entry(&pool->device, claim->buffer.entry, false);
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
}

cogpu_status cogpu_slot_pool_open_claim(struct cogpu_slot_pool *pool,
                                        const struct cogpu_slot_sizes *sizes,
                                        const struct cogpu_slot_claim *claim,
                                        struct cogpu_slot **out, cogpu_error *error) {
    struct cogpu_slot *slot = &pool->slots[claim->slot.entry];
    struct cogpu_device_buffer *buffer =
        claim->buffer.entry == COGPU_NO_ENTRY ? NULL : &pool->buffers[claim->buffer.entry];
    cogpu_status status = COGPU_OK;
    if (claim->slot.is_new || claim->buffer.is_new)
        close_evicted(pool, claim);
    if (claim->buffer.is_new)
        status = open_buffer(pool, sizes->device, buffer, error);
    if (status == COGPU_OK && claim->slot.is_new)
        status = cogpu_slot_open(pool->gpu, sizes->pinned, slot, error);
    if (status != COGPU_OK) {
        abandon_claim(pool, claim);
        return status;
    }
    slot->buffer = buffer;
    *out = slot;
    return COGPU_OK;
}

void cogpu_slot_pool_release(struct cogpu_slot_pool *pool, const struct cogpu_slot *slot,
                             const struct cogpu_device_buffer *buffer) {
    pthread_mutex_lock(&pool->lock);
    if (slot)
        release_entry(&pool->pinned, (uint32_t)(slot - pool->slots), true);
    if (buffer)
        release_entry(&pool->device, (uint32_t)(buffer - pool->buffers), true);
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
}

/* ---- trim ---------------------------------------------------------------------------------- */

static void take_all(struct cogpu_memory_list *list, bool is_taken) {
    for (uint32_t i = 0; i < COGPU_POOL_ENTRIES; i++) {
        list->entries[i].is_taken = is_taken;
        if (!is_taken)
            list->entries[i].bytes = 0;
    }
    list->bytes = is_taken ? list->bytes : 0;
}

static bool is_idle(const struct cogpu_slot_pool *pool) {
    for (uint32_t i = 0; i < COGPU_POOL_ENTRIES; i++)
        if (pool->pinned.entries[i].is_taken || pool->device.entries[i].is_taken)
            return false;
    return true;
}

void cogpu_slot_pool_trim(struct cogpu_slot_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    bool is_mine = is_idle(pool);
    if (is_mine) {
        take_all(&pool->pinned, true);
        take_all(&pool->device, true);
    }
    pthread_mutex_unlock(&pool->lock);
    if (!is_mine)
        return;
    for (uint32_t i = 0; i < COGPU_POOL_ENTRIES; i++) {
        close_buffer(pool, &pool->buffers[i]);
        cogpu_slot_close(pool->gpu, &pool->slots[i]);
    }
    pthread_mutex_lock(&pool->lock);
    take_all(&pool->pinned, false);
    take_all(&pool->device, false);
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
}
