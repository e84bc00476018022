/*
 * Blocks that several tasks of a read need, as windows that overlap do. In a batch the bytes of
 * such a block are fetched and decoded once:
 *
 *     task       window 0, block 7   window 1, block 7   window 1, block 8
 *     staged     | block 7 --------- shared              | block 8
 *     decoded    | block 7 --------- shared              | block 8
 *     unpack     own                 own                 own
 */
#include "gpu/read_batch.h"

#include <string.h>

static bool is_same_block(const cogpu_gpu_read_task *a, const cogpu_gpu_read_task *b) {
    return a->plan->storage == b->plan->storage && a->block.index == b->block.index &&
           a->block.skip == b->block.skip && a->span.offset == b->span.offset &&
           a->span.bytes == b->span.bytes;
}

static bool has_bytes(const cogpu_gpu_read_task *task) {
    return task->state == COGPU_BLOCK_PENDING && task->span.bytes > 0;
}

static uint64_t hash_of(const cogpu_gpu_read_task *task) {
    uint64_t hash = (uintptr_t)task->plan->storage;
    hash = (hash ^ task->block.index) * 0x9E3779B97F4A7C15ULL;
    return ((hash >> 32) ^ task->block.skip) * 0x9E3779B97F4A7C15ULL >> 32;
}

/* A hash table with open addressing: entries are 1 + the number of the last task with a block. It
 * is at most half full, so each search ends. */
cogpu_status cogpu_tasks_find_repeats(cogpu_gpu_read_task *tasks, uint32_t count,
                                      cogpu_error *error) {
    uint64_t size = 2;
    while (size < 2 * (uint64_t)count)
        size *= 2;
    uint32_t *last = cogpu_allocate((size_t)size * sizeof *last);
    if (!last)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for %u blocks", count);
    memset(last, 0, (size_t)size * sizeof *last);
    for (uint32_t i = 0; i < count; i++) {
        cogpu_gpu_read_task *task = &tasks[i];
        task->repeats = 0;
        task->is_repeat = false;
        if (!has_bytes(task))
            continue;
        uint64_t at = hash_of(task) % size;
        while (last[at] && !is_same_block(&tasks[last[at] - 1], task))
            at = (at + 1) % size;
        task->repeats = last[at] ? i - (last[at] - 1) : 0;
        last[at] = i + 1;
    }
    cogpu_release(last);
    return COGPU_OK;
}

/* A task before it may have been cancelled meanwhile, or its bytes may be unreadable. */
struct cogpu_batch_block *cogpu_slot_find_first(struct cogpu_slot *slot,
                                                const cogpu_gpu_read_task *task) {
    uint32_t at = slot->count;
    for (const cogpu_gpu_read_task *before = task; before->repeats && before->repeats <= at;) {
        at -= before->repeats;
        before = slot->blocks[at].task;
        struct cogpu_batch_block *first = &slot->blocks[slot->blocks[at].first];
        if (has_bytes(task) && has_bytes(first->task))
            return first;
    }
    return NULL;
}

void cogpu_slot_fail_repeats(struct cogpu_slot *slot) {
    for (uint32_t i = 0; i < slot->count; i++) {
        const struct cogpu_batch_block *block = &slot->blocks[i];
        if (block->first != i && block->task->state == COGPU_BLOCK_PENDING)
            block->task->state = slot->blocks[block->first].task->state;
    }
}
