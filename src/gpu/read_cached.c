/*
 * Blocks of a batch that the device's cache has, or will have. The copies between the cache and the
 * batch's buffer are one launch, after the copy from pinned memory and before the decoder:
 *
 *     cached     cache -> buffer, beside the decoded block
 *     fetched    buffer, staged bytes -> cache
 */
#include "gpu/read_run.h"

cogpu_stored_block *cogpu_slot_find_cached(const struct cogpu_slot *slot,
                                           const cogpu_gpu_read_task *task) {
    cogpu_stored_cache *cache = slot->run->device->cache;
    return cache ? cogpu_stored_cache_find(cache, task->key, task->span.bytes) : NULL;
}

/* Whether the batch has stored bytes that the cache may keep. */
static bool is_worth_keeping(const struct cogpu_batch_block *block) {
    cogpu_block_source source = block->task->source;
    return source == COGPU_SOURCE_PINNED || source == COGPU_SOURCE_CUFILE;
}

void cogpu_slot_list_copies(struct cogpu_slot *slot, struct cogpu_copied_range *table) {
    cogpu_stored_cache *cache = slot->run->device->cache;
    slot->copied_count = 0;
    for (uint32_t i = 0; cache && i < slot->count; i++) {
        struct cogpu_batch_block *block = &slot->blocks[i];
        const cogpu_gpu_read_task *task = block->task;
        uint8_t *staged = slot->buffer->device + cogpu_slot_stored_offset(slot, block);
        bool is_cached = task->source == COGPU_SOURCE_CACHED;
        if (block->first != i || task->state != COGPU_BLOCK_LAUNCHED)
            continue;
        if (is_worth_keeping(block))
            block->cached = cogpu_stored_cache_reserve(cache, task->key, task->span.bytes);
        if (block->cached)
            table[slot->copied_count++] =
                (struct cogpu_copied_range){.from = is_cached ? block->cached->memory : staged,
                                            .to = is_cached ? staged : block->cached->memory,
                                            .bytes = task->span.bytes};
    }
}

void cogpu_slot_release_cached(struct cogpu_slot *slot) {
    cogpu_stored_cache *cache = slot->run->device->cache;
    for (uint32_t i = 0; cache && i < slot->count; i++) {
        struct cogpu_batch_block *block = &slot->blocks[i];
        if (!block->cached)
            continue;
        if (block->task->source == COGPU_SOURCE_CACHED)
            cogpu_stored_cache_unpin(cache, block->cached);
        else if (block->task->state == COGPU_BLOCK_DECODED)
            cogpu_stored_cache_keep(cache, block->cached);
        else
            cogpu_stored_cache_discard(cache, block->cached);
        block->cached = NULL;
    }
}
