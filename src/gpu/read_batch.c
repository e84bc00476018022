/*
 * Lays the blocks of a batch out in a slot's memory: where the bytes of each go before and after
 * they are decoded, how they are read from the file, and the tables for the kernels.
 */
#include "gpu/read_batch.h"

#include "base/checked.h"
#include "base/coalesce.h"
#include "base/math.h"
#include "gpu/read_run.h"

#include <stdlib.h>
#include <string.h>

/* Scratch that is planned for one block: at most 1 / SCRATCH_SHARE of a buffer, unless the
 * decoder's minimum is more. */
enum { SCRATCH_SHARE = 3 };

/* Blocks that are no farther apart in a file are read as one group, with the bytes in between. A
 * thread reads one range of it at a time. */
enum { GAP_BYTES = 4096, RANGE_BYTES = 512 << 10 };
/* Maximum bytes of a batch without a decoder. The copy to the device limits its speed. With so few
 * bytes the slot's pinned memory is still in the CPU's cache when the next batch is fetched. */
enum { PLAIN_BYTES = 8 << 20 };
#define RANGES_MAX (COGPU_SLOT_TASKS + COGPU_PINNED_BLOCK_MAX / RANGE_BYTES)

/* ---- memory -------------------------------------------------------------------------------- */

cogpu_status cogpu_device_buffer_open(cogpu_gpu *gpu, uint64_t bytes,
                                      struct cogpu_device_buffer *buffer, cogpu_error *error) {
    TRY(gpu->calls->allocate(gpu, bytes, &buffer->allocated, error));
    uint64_t skip = (COGPU_STAGING - (uintptr_t)buffer->allocated % COGPU_STAGING) % COGPU_STAGING;
    buffer->device = (uint8_t *)buffer->allocated + skip;
    buffer->bytes = bytes - skip;
    return gpu->calls->stream_open(gpu, true, &buffer->stream, error);
}

void cogpu_device_buffer_close(cogpu_gpu *gpu, struct cogpu_device_buffer *buffer) {
    if (buffer->stream)
        gpu->calls->stream_close(gpu, buffer->stream);
    gpu->calls->release(gpu, buffer->allocated);
    *buffer = (struct cogpu_device_buffer){0};
}

void cogpu_slot_close(cogpu_gpu *gpu, struct cogpu_slot *slot) {
    const cogpu_gpu_driver *calls = gpu->calls;
    for (uint32_t i = 0; i < COGPU_SLOT_EVENTS; i++)
        calls->event_close(gpu, slot->events[i]);
    calls->release_pinned(gpu, slot->pinned);
    cogpu_release(slot->blocks);
    cogpu_release(slot->jpegs);
    cogpu_release(slot->groups);
    cogpu_release(slot->ranges);
    cogpu_release(slot->cufile.reads);
    *slot = (struct cogpu_slot){0};
}

cogpu_status cogpu_slot_open(cogpu_gpu *gpu, uint64_t pinned_bytes, struct cogpu_slot *slot,
                             cogpu_error *error) {
    const cogpu_gpu_driver *calls = gpu->calls;
    slot->blocks = cogpu_allocate(COGPU_SLOT_TASKS * sizeof *slot->blocks);
    slot->jpegs = cogpu_allocate(COGPU_SLOT_TASKS * sizeof *slot->jpegs);
    slot->groups = cogpu_allocate(COGPU_SLOT_TASKS * sizeof *slot->groups);
    slot->ranges = cogpu_allocate(RANGES_MAX * sizeof *slot->ranges);
    slot->cufile.reads = cogpu_allocate(COGPU_SLOT_TASKS * sizeof *slot->cufile.reads);
    if (!slot->blocks || !slot->jpegs || !slot->groups || !slot->ranges || !slot->cufile.reads)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for a batch");
    TRY(calls->allocate_pinned(gpu, pinned_bytes, (void **)&slot->pinned, error));
    for (uint32_t i = 0; i < COGPU_SLOT_EVENTS; i++)
        TRY(calls->event_open(gpu, &slot->events[i], error));
    return COGPU_OK;
}

_Static_assert(2 * COGPU_STAGING +
                       COGPU_SLOT_TASKS *
                           (sizeof(cogpu_encoded_block) + sizeof(struct cogpu_unpack_block) +
                            sizeof(struct cogpu_copied_range) + sizeof(uint32_t)) +
                       16 * COGPU_GPU_SLACK_BYTES <=
                   COGPU_SLOT_OVERHEAD,
               "the overhead covers the tables");

uint64_t cogpu_slot_band_bytes(const cogpu_read_plan *plan) {
    return cogpu_gpu_align(cogpu_gpu_bands_listed(plan) * sizeof(struct cogpu_gpu_band));
}

bool cogpu_slot_holds(uint64_t buffer_bytes, uint64_t pinned_bytes, const cogpu_read_plan *plan) {
    uint64_t pages = buffer_bytes > COGPU_STAGING ? buffer_bytes - COGPU_STAGING : 0;
    uint64_t most = min_u64(pages, pinned_bytes);
    uint64_t bytes = (uint64_t)plan->slice_rows * plan->storage->format.row_bytes;
    return cogpu_gpu_align(bytes) + cogpu_slot_band_bytes(plan) + COGPU_SLOT_OVERHEAD <= most;
}

/* ---- source of a block --------------------------------------------------------------------- */

const cogpu_gpu_decoder cogpu_slot_nvjpeg;

bool cogpu_block_is_encoded(const struct cogpu_batch_block *block) {
    cogpu_block_source source = block->task->source;
    return source == COGPU_SOURCE_CUFILE || source == COGPU_SOURCE_PINNED ||
           source == COGPU_SOURCE_CACHED || source == COGPU_SOURCE_NVJPEG;
}

uint64_t cogpu_task_decoded_bytes(const cogpu_gpu_read_task *task) {
    const cogpu_storage *storage = task->plan->storage;
    bool is_plain = storage->format.compression == COMPRESSION_NONE;
    return is_plain ? cogpu_task_needed_bytes(task) : storage->block_bytes;
}

uint64_t cogpu_task_needed_bytes(const cogpu_gpu_read_task *task) {
    return (uint64_t)task->block.needed_rows * task->plan->storage->format.row_bytes;
}

/* Device memory for a decoded block; nvJPEG needs as much again for its planes. */
static uint64_t output_bytes(const cogpu_gpu_read_task *task, bool is_nvjpeg) {
    uint64_t bytes = cogpu_gpu_align(cogpu_task_decoded_bytes(task)) + COGPU_GPU_ALIGN;
    return is_nvjpeg ? 2 * bytes : bytes;
}

static uint64_t scratch_bytes(struct cogpu_scratch_need need) {
    return cogpu_gpu_align(max_u64(need.least, need.best));
}

static bool fits(const struct cogpu_slot *slot, uint64_t staged, uint64_t decoded,
                 uint64_t scratch) {
    uint64_t tables = slot->band_bytes + COGPU_SLOT_OVERHEAD;
    return staged + tables <= slot->pinned_capacity &&
           staged + decoded + scratch + tables <= slot->device_capacity;
}

static bool is_plain(const cogpu_gpu_read_task *task) {
    const cogpu_storage *storage = task->plan->storage;
    return storage->format.compression == COMPRESSION_NONE && storage->format.fill_order != 2 &&
           task->span.bytes >= cogpu_task_needed_bytes(task) &&
           task->span.bytes <= storage->tiff->limits.block_bytes;
}

struct cogpu_scratch_need cogpu_task_scratch(const cogpu_gpu_read_task *task,
                                             const cogpu_gpu_decoder *decoder, uint32_t later) {
    enum { ALIKE = 8 }; /* blocks like this one */
    cogpu_encoded_block blocks[ALIKE];
    struct cogpu_scratch_need need = {0};
    uint64_t best = 0, least = 0;
    for (uint32_t i = 0; i < ALIKE; i++)
        blocks[i] = (cogpu_encoded_block){.in_bytes = (uint32_t)task->span.bytes,
                                          .capacity = (uint32_t)cogpu_task_decoded_bytes(task),
                                          .required = (uint32_t)cogpu_task_needed_bytes(task)};
    decoder->scratch(blocks, 1, later, &need.least, &need.alone);
    decoder->scratch(blocks, ALIKE, later > ALIKE ? later - ALIKE : 0, &least, &best);
    need.best = best / ALIKE;
    return need;
}

static struct cogpu_scratch_need add_need(struct cogpu_scratch_need a,
                                          struct cogpu_scratch_need b) {
    return (struct cogpu_scratch_need){max_u64(a.least, b.least), a.best + b.best,
                                       max_u64(a.alone, b.alone)};
}

/* Whether the device could decode the block in a slot of its own. cuFile reads whole pages, so the
 * rest of the first and last page are added. */
static bool fits_alone(const struct cogpu_slot *slot, const cogpu_gpu_read_task *task,
                       struct cogpu_scratch_need need) {
    uint64_t stored = task->span.bytes + 2 * COGPU_GDS_PAGE;
    return fits(slot, stored, output_bytes(task, false) + COGPU_GPU_ALIGN, scratch_bytes(need));
}

static bool is_for_nvjpeg(const struct cogpu_slot *slot, const cogpu_gpu_read_task *task) {
    const cogpu_block_format *format = &task->plan->storage->format;
    return slot->run->has_nvjpeg && format->compression == COMPRESSION_JPEG &&
           fits(slot, cogpu_nvjpeg_bound(format, (size_t)task->span.bytes) + COGPU_GPU_ALIGN,
                output_bytes(task, true), 0);
}

/* The decoder of a block with stored bytes; NULL if the CPU decodes it. The CPU also reports blocks
 * that are larger than the limit. */
static const cogpu_gpu_decoder *choose_decoder(const struct cogpu_slot *slot,
                                               const cogpu_gpu_read_task *task,
                                               struct cogpu_scratch_need *need) {
    const cogpu_storage *storage = task->plan->storage;
    const cogpu_gpu_decoder *decoder =
        is_for_nvjpeg(slot, task)
            ? &cogpu_slot_nvjpeg
            : cogpu_gpu_find_decoder(slot->run->device->gpu, storage->format.compression);
    *need = (struct cogpu_scratch_need){0};
    if (!decoder || slot->run->is_cpu_decoded || storage->format.fill_order == 2 ||
        task->span.bytes > COGPU_GPU_BLOCK_BYTES_MAX ||
        task->span.bytes > storage->tiff->limits.block_bytes ||
        cogpu_task_decoded_bytes(task) > COGPU_GPU_BLOCK_BYTES_MAX)
        return NULL;
    if (decoder == &cogpu_slot_nvjpeg)
        return decoder;
    struct cogpu_scratch_need wanted = cogpu_task_scratch(task, decoder, slot->later_count);
    wanted.best = min_u64(wanted.best, slot->device_capacity / SCRATCH_SHARE);
    if (!fits_alone(slot, task, wanted))
        return NULL; /* the CPU decodes it, and needs no scratch here */
    *need = wanted;
    return decoder;
}

/* ---- layout -------------------------------------------------------------------------------- */

/* Where a block would be in the slot, and what it would take. */
struct block_layout {
    const cogpu_gpu_decoder *decoder;
    const cogpu_gds_file *file;
    cogpu_stored_block *cached;
    struct cogpu_scratch_need scratch;
    uint64_t staging, staged_end, output;
    bool joins_group;
    cogpu_gds_plan cufile;
    cogpu_gds_location location;
};

/* Whether the stored bytes of a block can be read together with those of the group before it. */
static bool joins_group(const struct cogpu_slot *slot, const cogpu_gpu_read_task *task) {
    static const cogpu_coalesce_limits limits = {.gap_bytes = GAP_BYTES,
                                                 .request_bytes = UINT64_MAX};
    const cogpu_fetch *group = slot->group_count ? &slot->groups[slot->group_count - 1] : NULL;
    cogpu_joined_range joined;
    uint64_t end;
    if (!group || group->first + group->count != slot->count)
        return false;
    const cogpu_gpu_read_task *last = slot->blocks[slot->count - 1].task;
    joined = (cogpu_joined_range){.offset = group->offset};
    return last->source == COGPU_SOURCE_PINNED &&
           last->plan->storage->tiff->io == task->plan->storage->tiff->io &&
           checked_add(group->offset, group->bytes, &joined.end) &&
           task->span.offset >= joined.end &&
           checked_add(task->span.offset, task->span.bytes, &end) &&
           cogpu_coalesce_allows(&joined, task->span.offset, end, &limits);
}

static void stage_pinned(const struct cogpu_slot *slot, const cogpu_gpu_read_task *task,
                         struct block_layout *layout) {
    const struct cogpu_batch_block *last = &slot->blocks[slot->count] - 1;
    layout->joins_group = joins_group(slot, task);
    layout->staging = layout->joins_group
                          ? last->staging + (task->span.offset - last->task->span.offset)
                          : slot->staged_bytes;
    layout->staged_end = layout->staging + task->span.bytes;
}

static bool stage_cufile(const struct cogpu_slot *slot, const cogpu_gpu_read_task *task,
                         struct block_layout *layout) {
    layout->cufile = slot->cufile;
    if (!cogpu_gds_plan_add(&layout->cufile, layout->file, cogpu_gds_file_bytes(layout->file),
                            task->span, slot->pinned_capacity, &layout->location))
        return false;
    layout->staging = layout->location.device_offset;
    layout->staged_end = layout->cufile.bytes;
    return true;
}

static void stage_aligned(const struct cogpu_slot *slot, uint64_t bytes,
                          struct block_layout *layout) {
    layout->staging = cogpu_gpu_align(slot->staged_bytes);
    layout->staged_end = layout->staging + bytes;
}

/* The output is followed by the stored bytes, which no copy moves from pinned memory. */
static void stage_cached(const struct cogpu_slot *slot, const cogpu_gpu_read_task *task,
                         struct block_layout *layout) {
    layout->staged_end = slot->staged_bytes;
    layout->staging = slot->decoded_bytes + layout->output;
    layout->output += cogpu_gpu_align(task->span.bytes) + COGPU_GPU_ALIGN;
}

/* Offsets of the block's bytes; false if it does not fit. */
static bool lay_out_block(const struct cogpu_slot *slot, const cogpu_gpu_read_task *task,
                          struct block_layout *layout) {
    if (layout->decoder)
        layout->output = output_bytes(task, layout->decoder == &cogpu_slot_nvjpeg);
    switch (task->source) {
    case COGPU_SOURCE_NONE:
        return true;
    case COGPU_SOURCE_CACHED:
        stage_cached(slot, task, layout);
        break;
    case COGPU_SOURCE_CUFILE:
        if (!stage_cufile(slot, task, layout))
            return false;
        break;
    case COGPU_SOURCE_PINNED:
        stage_pinned(slot, task, layout);
        break;
    case COGPU_SOURCE_NVJPEG:
        stage_aligned(slot,
                      cogpu_nvjpeg_bound(&task->plan->storage->format, (size_t)task->span.bytes),
                      layout);
        break;
    case COGPU_SOURCE_PLAIN:
    case COGPU_SOURCE_CPU:
        stage_aligned(slot, cogpu_gpu_align(cogpu_task_needed_bytes(task)), layout);
    }
    layout->scratch = add_need(slot->scratch, layout->scratch);
    return fits(slot, layout->staged_end, slot->decoded_bytes + layout->output,
                scratch_bytes(layout->scratch));
}

/* Bytes in the file, or in host memory: of a block that is used as stored only those that the image
 * needs. */
static cogpu_span span_to_fetch(const cogpu_gpu_read_task *task) {
    return task->source == COGPU_SOURCE_PLAIN
               ? (cogpu_span){task->span.offset, cogpu_task_needed_bytes(task)}
               : task->span;
}

static void commit_block(struct cogpu_slot *slot, const struct block_layout *layout) {
    struct cogpu_batch_block *block = &slot->blocks[slot->count];
    block->staging = layout->staging;
    block->decoded = slot->decoded_bytes;
    block->cached = layout->cached;
    slot->staged_bytes = layout->staged_end;
    slot->decoded_bytes += layout->output;
    slot->scratch = layout->scratch;
    if (layout->decoder) {
        slot->decoder = layout->decoder;
        slot->encoded_count++;
    }
    if (layout->cached)
        return;
    if (layout->file) {
        slot->transfer = COGPU_TRANSFER_CUFILE;
        slot->cufile = layout->cufile;
        block->request = layout->location.read;
        if (layout->location.read == COGPU_GDS_NO_READ)
            block->task->state = COGPU_BLOCK_UNREADABLE;
    } else if (layout->joins_group) {
        cogpu_fetch_extend(&slot->groups[slot->group_count - 1], block->task->span);
    } else {
        slot->groups[slot->group_count++] =
            cogpu_fetch_start(slot->count, span_to_fetch(block->task));
    }
}

static cogpu_block_source choose_source(const struct cogpu_slot *slot, cogpu_gpu_read_task *task,
                                        struct block_layout *layout) {
    if (task->state != COGPU_BLOCK_PENDING)
        return COGPU_SOURCE_NONE;
    layout->decoder = choose_decoder(slot, task, &layout->scratch);
    if (layout->decoder == &cogpu_slot_nvjpeg)
        return COGPU_SOURCE_NVJPEG;
    if (!layout->decoder)
        return is_plain(task) ? COGPU_SOURCE_PLAIN : COGPU_SOURCE_CPU;
    layout->cached = cogpu_slot_find_cached(slot, task);
    if (layout->cached)
        return COGPU_SOURCE_CACHED;
    layout->file = cogpu_fetch_cufile(slot->run, task);
    return layout->file ? COGPU_SOURCE_CUFILE : COGPU_SOURCE_PINNED;
}

/* All blocks of a slot that the device decodes have one decoder, and all bytes of a slot that are
 * not cached come in one way: by cuFile or through pinned memory. */
static bool suits_slot(const struct cogpu_slot *slot, const struct block_layout *layout) {
    bool is_cufile = slot->transfer == COGPU_TRANSFER_CUFILE;
    return (layout->cached || (layout->file ? slot->group_count == 0 : !is_cufile)) &&
           (!layout->decoder || !slot->decoder || layout->decoder == slot->decoder);
}

/* The task needs the same block as another one of the batch: only its unpacking is its own. */
static void add_repeat(struct cogpu_slot *slot, struct cogpu_batch_block *first) {
    struct cogpu_batch_block *block = &slot->blocks[slot->count++];
    cogpu_gpu_read_task *task = block->task;
    *block = *first;
    block->task = task;
    block->cached = NULL;
    block->is_shared = false;
    first->is_shared = true;
    task->source = first->task->source;
    task->is_repeat = true;
}

/* Adds the task if it fits. */
static bool add_block(struct cogpu_slot *slot, cogpu_gpu_read_task *task) {
    struct block_layout layout = {0};
    struct cogpu_batch_block *first = cogpu_slot_find_first(slot, task);
    slot->blocks[slot->count] = (struct cogpu_batch_block){
        .task = task, .first = slot->count, .status_index = COGPU_NO_STATUS};
    slot->jpegs[slot->count] = (cogpu_nvjpeg_block){0};
    if (first) {
        add_repeat(slot, first);
        return true;
    }
    task->source = choose_source(slot, task, &layout);
    if (task->source != COGPU_SOURCE_NONE) {
        if (!suits_slot(slot, &layout) || !lay_out_block(slot, task, &layout)) {
            if (layout.cached)
                cogpu_stored_cache_unpin(slot->run->device->cache, layout.cached);
            return false;
        }
        commit_block(slot, &layout);
    }
    slot->count++;
    return true;
}

/* Adds the band list of a plan with the plan's first block. */
static bool add_band_list(struct cogpu_slot *slot, const cogpu_gpu_read_task *task) {
    if (slot->count == 0 || slot->blocks[slot->count - 1].task->plan != task->plan)
        slot->band_bytes += cogpu_slot_band_bytes(task->plan);
    return fits(slot, slot->staged_bytes, slot->decoded_bytes, scratch_bytes(slot->scratch));
}

/* Maximum staged bytes of a batch: half of what is left, so that the last batches are small. No
 * other work overlaps the copy and decoding of the very last one. */
static uint64_t most_bytes(const struct cogpu_slot *slot, uint64_t left) {
    enum { LEAST_BYTES = 8 << 20 };
    return slot->decoder ? max_u64(left / 2, LEAST_BYTES) : PLAIN_BYTES;
}

static void clear_batch(struct cogpu_slot *slot) {
    slot->count = slot->encoded_count = slot->group_count = slot->cufile.read_count = 0;
    slot->staged_bytes = slot->decoded_bytes = slot->cufile.bytes = slot->band_bytes = 0;
    slot->scratch = (struct cogpu_scratch_need){0};
    slot->decoder = NULL;
    slot->transfer = COGPU_TRANSFER_SLOT;
}

uint32_t cogpu_slot_choose(struct cogpu_slot *slot, cogpu_gpu_read_task *tasks, uint32_t count) {
    const uint64_t left = slot->run->bytes_left;
    clear_batch(slot);
    while (slot->count < count && slot->count < COGPU_SLOT_TASKS &&
           slot->staged_bytes < most_bytes(slot, left)) {
        cogpu_gpu_read_task *task = &tasks[slot->count];
        uint64_t band_bytes = slot->band_bytes;
        slot->later_count = count - slot->count - 1;
        if (cogpu_meter_is_cancelled(task->plan->meter))
            task->state = COGPU_BLOCK_FAILED;
        else if (task->span.bytes == 0 && task->state == COGPU_BLOCK_PENDING)
            task->state = COGPU_BLOCK_FILLED;
        if (!add_band_list(slot, task) || !add_block(slot, task)) {
            slot->band_bytes = band_bytes;
            slot->later_count++;
            break;
        }
        slot->run->bytes_left -= task->span.bytes;
    }
    return slot->count;
}

/* ---- ranges -------------------------------------------------------------------------------- */

/* Whether the caller has all bytes of the batch in pinned memory, and groups average at least
 * RUN_BYTES: then a copy for each is better than one copy through the slot's memory. */
static bool is_in_caller_memory(cogpu_gpu *gpu, const struct cogpu_slot *slot) {
    enum { RUN_BYTES = 64 << 10 };
    bool is_worth_it = slot->group_count > 0 && slot->staged_bytes / slot->group_count >= RUN_BYTES;
    for (uint32_t i = 0; is_worth_it && i < slot->group_count; i++) {
        const uint8_t *bytes = cogpu_fetch_mapped(slot, &slot->groups[i]);
        is_worth_it = bytes && gpu->calls->is_pinned(gpu, bytes, slot->groups[i].bytes);
    }
    return is_worth_it;
}

/* All cuFile requests are one range: one thread submits them. Bytes in the caller's memory need no
 * range. A block that the CPU decodes, or rewrites for nvJPEG, is one range. */
void cogpu_slot_split(cogpu_gpu *gpu, struct cogpu_slot *slot) {
    if (slot->transfer == COGPU_TRANSFER_SLOT && is_in_caller_memory(gpu, slot))
        slot->transfer = COGPU_TRANSFER_CALLER;
    slot->range_count = 0;
    if (slot->transfer == COGPU_TRANSFER_CUFILE)
        slot->ranges[slot->range_count++] = (struct cogpu_fetch_range){0};
    for (uint32_t i = 0; slot->transfer == COGPU_TRANSFER_SLOT && i < slot->group_count; i++) {
        cogpu_block_source source = slot->blocks[slot->groups[i].first].task->source;
        bool is_read = source == COGPU_SOURCE_PLAIN || source == COGPU_SOURCE_PINNED;
        uint64_t bytes = is_read ? slot->groups[i].bytes : 1;
        for (uint64_t skip = 0; skip < bytes; skip += RANGE_BYTES)
            slot->ranges[slot->range_count++] =
                (struct cogpu_fetch_range){i, skip, min_u64(bytes - skip, RANGE_BYTES)};
    }
    slot->ranges_left = slot->range_count;
}

/* ---- tables -------------------------------------------------------------------------------- */

static int compare_stored_bytes(const void *a, const void *b) {
    const struct cogpu_batch_block *left = *(struct cogpu_batch_block *const *)a,
                                   *right = *(struct cogpu_batch_block *const *)b;
    uint64_t x = left->task->span.bytes, y = right->task->span.bytes;
    return x != y ? (x < y ? 1 : -1) : (left > right) - (left < right);
}

static uint64_t table_bytes(void) {
    return cogpu_gpu_align(COGPU_SLOT_TASKS * sizeof(cogpu_encoded_block)) +
           cogpu_gpu_align(COGPU_SLOT_TASKS * sizeof(struct cogpu_unpack_block)) +
           cogpu_gpu_align(COGPU_SLOT_TASKS * sizeof(struct cogpu_copied_range)) +
           cogpu_gpu_align((COGPU_SLOT_TASKS + 1) * sizeof(uint32_t));
}

uint64_t cogpu_slot_decoded_offset(const struct cogpu_slot *slot) {
    return cogpu_gpu_align(COGPU_STAGING + slot->staged_bytes + 3 * COGPU_GPU_SLACK_BYTES) +
           table_bytes() + slot->band_bytes;
}

uint64_t cogpu_slot_stored_offset(const struct cogpu_slot *slot,
                                  const struct cogpu_batch_block *block) {
    return block->staging + (block->task->source == COGPU_SOURCE_CACHED
                                 ? cogpu_slot_decoded_offset(slot)
                                 : COGPU_STAGING);
}

/* The decoder's table, in order of decreasing stored size, as decoder.h demands. */
static void list_encoded(struct cogpu_slot *slot, cogpu_encoded_block *table) {
    struct cogpu_batch_block *order[COGPU_SLOT_TASKS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < slot->count; i++)
        if (slot->blocks[i].first == i && cogpu_block_is_encoded(&slot->blocks[i]) &&
            slot->blocks[i].task->state == COGPU_BLOCK_LAUNCHED)
            order[count++] = &slot->blocks[i];
    qsort(order, count, sizeof *order, compare_stored_bytes);
    for (uint32_t i = 0; i < count; i++) {
        const cogpu_gpu_read_task *task = order[i]->task;
        order[i]->status_index = i;
        table[i] =
            (cogpu_encoded_block){.in = cogpu_slot_stored_offset(slot, order[i]) - COGPU_STAGING,
                                  .out = order[i]->decoded,
                                  .in_bytes = (uint32_t)task->span.bytes,
                                  .capacity = (uint32_t)cogpu_task_decoded_bytes(task),
                                  .required = (uint32_t)cogpu_task_needed_bytes(task)};
    }
    for (uint32_t i = 0; i < slot->count; i++)
        slot->blocks[i].status_index = slot->blocks[slot->blocks[i].first].status_index;
    slot->encoded_count = count;
}

/* The unpack kernels' table. Rasters are counted from that of the first block. Blocks without a
 * decoder share the last status word, which is COGPU_GPU_DECODED. A height of 0 excludes a block.
 */
static void list_unpacked(const struct cogpu_slot *slot, struct cogpu_unpack_block *table) {
    const uintptr_t raster = (uintptr_t)slot->blocks[0].task->raster->data;
    for (uint32_t i = 0; i < slot->count; i++) {
        const struct cogpu_batch_block *block = &slot->blocks[i];
        cogpu_block_state state = block->task->state;
        bool has_status = block->status_index != COGPU_NO_STATUS;
        uint64_t decoded = state == COGPU_BLOCK_FILLED ? COGPU_UNPACK_FILL
                           : has_status ? cogpu_slot_decoded_offset(slot) + block->decoded
                                        : COGPU_STAGING + block->staging;
        table[i] = cogpu_gpu_unpack_block_of(&block->task->block, decoded,
                                             has_status ? block->status_index : slot->count);
        table[i].raster = (int64_t)((uintptr_t)block->task->raster->data - raster);
        if (state != COGPU_BLOCK_LAUNCHED && state != COGPU_BLOCK_FILLED)
            table[i].height = 0;
    }
}

uint32_t cogpu_slot_end_of_plan(const struct cogpu_slot *slot, uint32_t first) {
    uint32_t end = first + 1;
    while (end < slot->count && slot->blocks[end].task->plan == slot->blocks[first].task->plan)
        end++;
    return end;
}

static void list_bands(const struct cogpu_slot *slot, uint8_t *lists) {
    for (uint32_t first = 0; first < slot->count; first = cogpu_slot_end_of_plan(slot, first)) {
        const cogpu_read_plan *plan = slot->blocks[first].task->plan;
        if (cogpu_slot_band_bytes(plan) > 0)
            cogpu_gpu_list_bands(plan, (struct cogpu_gpu_band *)(void *)lists);
        lists += cogpu_slot_band_bytes(plan);
    }
}

static struct cogpu_slot_tables place_tables(const struct cogpu_slot *slot) {
    struct cogpu_slot_tables at;
    at.encoded = cogpu_gpu_align(COGPU_STAGING + slot->staged_bytes + COGPU_GPU_SLACK_BYTES);
    at.unpacked = at.encoded + cogpu_gpu_align(slot->count * sizeof(cogpu_encoded_block));
    at.copied = at.unpacked + cogpu_gpu_align(slot->count * sizeof(struct cogpu_unpack_block));
    at.bands = at.copied;
    if (slot->run->device->cache)
        at.bands += cogpu_gpu_align(slot->count * sizeof(struct cogpu_copied_range));
    at.statuses = at.bands + slot->band_bytes;
    at.end = at.statuses + (slot->count + 1) * sizeof(uint32_t);
    return at;
}

void cogpu_slot_write_tables(struct cogpu_slot *slot) {
    const struct cogpu_slot_tables at = slot->tables = place_tables(slot);
    cogpu_slot_fail_repeats(slot);
    for (uint32_t i = 0; i < slot->count; i++)
        if (slot->blocks[i].task->state == COGPU_BLOCK_PENDING)
            slot->blocks[i].task->state = COGPU_BLOCK_LAUNCHED;
    list_encoded(slot, (cogpu_encoded_block *)(void *)(slot->pinned + at.encoded));
    list_unpacked(slot, (struct cogpu_unpack_block *)(void *)(slot->pinned + at.unpacked));
    cogpu_slot_list_copies(slot, (struct cogpu_copied_range *)(void *)(slot->pinned + at.copied));
    list_bands(slot, slot->pinned + at.bands);
    uint32_t *statuses = (uint32_t *)(void *)(slot->pinned + at.statuses);
    memset(statuses, 0xFF, slot->count * sizeof *statuses);
    statuses[slot->count] = COGPU_GPU_DECODED;
}
