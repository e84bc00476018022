/*
 * Takes tasks, hands on a batch of them laid out in a slot's memory: where the bytes of each go
 * before and after they are decoded, how those are read from the file, and the tables for kernels.
 */
#include "backend/cuda/gpu_slot.h"

#include <stdlib.h>
#include <string.h>

/* Of a berth, what a decoder may have as scratch for one block, unless it cannot do with
 * that. */
enum { SCRATCH_SHARE = 3 };

/* Blocks that are no farther apart in a file are read as one run, with what lies between; a thread
 * takes a piece of it at a time. */
enum { GAP_BYTES = 4096, PIECE_BYTES = 512 << 10 };
/* A batch that needs no decoder, only the wire: the next one in the same pinned memory then finds
 * it in the processor's cache. */
enum { PLAIN_BYTES = 8 << 20 };
#define PIECES_MAX (COGPU_SLOT_TASKS + COGPU_PINNED_MAX / PIECE_BYTES)

/* ---- memory -------------------------------------------------------------------------------- */

cogpu_status cogpu_berth_open(cogpu_gpu *gpu, uint64_t bytes, struct cogpu_berth *berth,
                              cogpu_error *error) {
    TRY(gpu->calls->allocate(gpu, bytes, &berth->allocated, error));
    uint64_t skip = (COGPU_STAGING - (uintptr_t)berth->allocated % COGPU_STAGING) % COGPU_STAGING;
    berth->device = (uint8_t *)berth->allocated + skip;
    berth->bytes = bytes - skip;
    return gpu->calls->stream_open(gpu, true, &berth->stream, error);
}

void cogpu_berth_close(cogpu_gpu *gpu, struct cogpu_berth *berth) {
    if (berth->stream)
        gpu->calls->stream_close(gpu, berth->stream);
    gpu->calls->release(gpu, berth->allocated);
    *berth = (struct cogpu_berth){0};
}

void cogpu_slot_close(cogpu_gpu *gpu, struct cogpu_slot *slot) {
    const cogpu_gpu_calls *calls = gpu->calls;
    for (uint32_t i = 0; i < COGPU_MARKS; i++)
        calls->event_close(gpu, slot->marks[i]);
    calls->release_pinned(gpu, slot->pinned);
    cogpu_release(slot->seated);
    cogpu_release(slot->jpegs);
    cogpu_release(slot->runs);
    cogpu_release(slot->pieces);
    cogpu_release(slot->direct.reads);
    *slot = (struct cogpu_slot){0};
}

/* Tables of a batch: coded blocks, placed blocks, verdicts. */
static uint64_t table_bytes(void) {
    return cogpu_gpu_align(COGPU_SLOT_TASKS * sizeof(cogpu_coded)) +
           cogpu_gpu_align(COGPU_SLOT_TASKS * sizeof(struct cogpu_placed)) +
           cogpu_gpu_align((COGPU_SLOT_TASKS + 1) * sizeof(uint32_t));
}

cogpu_status cogpu_slot_open(cogpu_gpu *gpu, uint64_t bytes, struct cogpu_slot *slot,
                             cogpu_error *error) {
    const cogpu_gpu_calls *calls = gpu->calls;
    slot->seated = cogpu_allocate(COGPU_SLOT_TASKS * sizeof *slot->seated);
    slot->jpegs = cogpu_allocate(COGPU_SLOT_TASKS * sizeof *slot->jpegs);
    slot->runs = cogpu_allocate(COGPU_SLOT_TASKS * sizeof *slot->runs);
    slot->pieces = cogpu_allocate(PIECES_MAX * sizeof *slot->pieces);
    slot->direct.reads = cogpu_allocate(COGPU_SLOT_TASKS * sizeof *slot->direct.reads);
    if (!slot->seated || !slot->jpegs || !slot->runs || !slot->pieces || !slot->direct.reads)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for a batch");
    slot->pinned_bytes = bytes;
    TRY(calls->allocate_pinned(gpu, slot->pinned_bytes, (void **)&slot->pinned, error));
    for (uint32_t i = 0; i < COGPU_MARKS; i++)
        TRY(calls->event_open(gpu, &slot->marks[i], error));
    return COGPU_OK;
}

_Static_assert(2 * COGPU_STAGING +
                       COGPU_SLOT_TASKS *
                           (sizeof(cogpu_coded) + sizeof(struct cogpu_placed) + sizeof(uint32_t)) +
                       16 * COGPU_GPU_SLACK <=
                   COGPU_SLOT_OVERHEAD,
               "a slot has room for its tables");

uint64_t cogpu_slot_list_bytes(const cogpu_read_plan *plan) {
    return cogpu_gpu_align(cogpu_gpu_bands_listed(plan) * sizeof(struct cogpu_gpu_band));
}

bool cogpu_slot_holds(uint64_t berth_bytes, const cogpu_read_plan *plan) {
    uint64_t pages = berth_bytes > COGPU_STAGING ? berth_bytes - COGPU_STAGING : 0;
    uint64_t most = pages < COGPU_PINNED_MAX ? pages : COGPU_PINNED_MAX;
    uint64_t bytes = (uint64_t)plan->slice_rows * plan->storage->format.row_bytes;
    return cogpu_gpu_align(bytes) + cogpu_slot_list_bytes(plan) + COGPU_SLOT_OVERHEAD <= most;
}

/* ---- lay out ------------------------------------------------------------------------------- */

uint64_t cogpu_slot_room_of(const cogpu_gpu_task *task) {
    const cogpu_storage *storage = task->plan->storage;
    bool plain = storage->format.compression == COMPRESSION_NONE;
    return plain ? cogpu_slot_needed_of(task) : storage->block_bytes;
}

uint64_t cogpu_slot_needed_of(const cogpu_gpu_task *task) {
    return (uint64_t)task->block.needed_rows * task->plan->storage->format.row_bytes;
}

static uint64_t scratch_of(struct cogpu_slot_wants wants) {
    return cogpu_gpu_align(wants.least > wants.shares ? wants.least : wants.shares);
}

/* Whether the slot has room for so much. */
static bool fits(const struct cogpu_slot *slot, uint64_t used, uint64_t decoded, uint64_t scratch) {
    uint64_t tables = slot->lists + COGPU_SLOT_OVERHEAD;
    return used + tables <= slot->pinned_bytes &&
           used + decoded + scratch + tables <= slot->berth->bytes;
}

static bool is_plain(const cogpu_gpu_task *task) {
    const cogpu_storage *storage = task->plan->storage;
    return storage->format.compression == COMPRESSION_NONE && storage->format.fill_order != 2 &&
           task->span.bytes >= cogpu_slot_needed_of(task) &&
           task->span.bytes <= storage->tiff->limits.block_bytes;
}

/* The host's, to decode or only to read. */
static bool seat_for_host(struct cogpu_slot *slot, struct cogpu_seated *seated) {
    uint64_t bytes = cogpu_gpu_align(cogpu_slot_needed_of(seated->task));
    seated->staging = cogpu_gpu_align(slot->used);
    seated->is_plain = is_plain(seated->task);
    if (!fits(slot, seated->staging + bytes, slot->decoded_used, scratch_of(slot->wants)))
        return false;
    slot->used = seated->staging + bytes;
    slot->runs[slot->run_count++] = (struct cogpu_slot_run){slot->count, 1};
    return true;
}

/* Whether the stored bytes of a block can be read together with those of the run before it. */
static bool joins(const struct cogpu_slot *slot, const cogpu_gpu_task *task) {
    const struct cogpu_slot_run *run = slot->run_count ? &slot->runs[slot->run_count - 1] : NULL;
    if (!run || run->first + run->count != slot->count)
        return false;
    const struct cogpu_seated *last = &slot->seated[run->first + run->count - 1];
    uint64_t end = last->task->span.offset + last->task->span.bytes;
    return last->is_coded && last->task->plan->storage->tiff->io == task->plan->storage->tiff->io &&
           task->span.offset >= end && task->span.offset - end <= GAP_BYTES;
}

/* Where its stored bytes go that the ring brings: behind those of its neighbour in the file, or
 * behind all. Returns where they end. */
static uint64_t lay_in_ring(const struct cogpu_slot *slot, struct cogpu_seated *seated,
                            bool is_joined) {
    const cogpu_gpu_task *task = seated->task;
    const struct cogpu_seated *last = seated - 1;
    seated->staging =
        is_joined ? last->staging + (task->span.offset - last->task->span.offset) : slot->used;
    return seated->staging + task->span.bytes;
}

/* The device's to decode. */
static bool seat_for_device(struct cogpu_slot *slot, struct cogpu_seated *seated,
                            const cogpu_gds_file *file, struct cogpu_slot_wants wants) {
    const cogpu_gpu_task *task = seated->task;
    bool is_joined = !file && joins(slot, task);
    cogpu_gds_plan direct = slot->direct;
    cogpu_gds_place place = {0};
    if (file && !cogpu_gds_plan_add(&direct, file, cogpu_gds_file_bytes(file), task->span,
                                    slot->pinned_bytes, &place))
        return false;
    uint64_t used = file ? direct.bytes : lay_in_ring(slot, seated, is_joined);
    uint64_t decoded =
        slot->decoded_used + cogpu_gpu_align(cogpu_slot_room_of(task)) + COGPU_GPU_ALIGN;
    if (!fits(slot, used, decoded, scratch_of(wants)))
        return false;
    seated->decoded = slot->decoded_used;
    slot->used = used;
    slot->decoded_used = decoded;
    slot->wants = wants;
    slot->coded++;
    slot->is_direct = file != NULL;
    if (file) {
        slot->direct = direct;
        seated->staging = place.device_offset;
        seated->read = place.read;
        seated->is_bad = place.read == COGPU_GDS_NO_READ;
    } else if (is_joined) {
        slot->runs[slot->run_count - 1].count++;
    } else {
        slot->runs[slot->run_count++] = (struct cogpu_slot_run){slot->count, 1};
    }
    return true;
}

const cogpu_gpu_decoder cogpu_slot_engines;

/* The pixels, and as much for their planes. */
static uint64_t engine_bytes(const cogpu_gpu_task *task) {
    return 2 * (cogpu_gpu_align(cogpu_slot_room_of(task)) + COGPU_GPU_ALIGN);
}

/* The JPEG engines' to decode: what is staged is the rewritten stream. */
static bool seat_for_engines(struct cogpu_slot *slot, struct cogpu_seated *seated) {
    const cogpu_gpu_task *task = seated->task;
    uint64_t staging = cogpu_gpu_align(slot->used),
             decoded = slot->decoded_used + engine_bytes(task);
    uint64_t used =
        staging + cogpu_nvjpeg_bound(&task->plan->storage->format, (size_t)task->span.bytes);
    if (!fits(slot, used, decoded, 0))
        return false;
    seated->is_jpeg = true;
    seated->staging = staging;
    seated->decoded = slot->decoded_used;
    slot->used = used;
    slot->decoded_used = decoded;
    slot->coded++;
    slot->runs[slot->run_count++] = (struct cogpu_slot_run){slot->count, 1};
    return true;
}

/* What a decoder wants for a block: at least, and as a share of what many such blocks would want
 * together, which is less than for one alone, where it must be ready for the worst. */
static struct cogpu_slot_wants wants_of(const struct cogpu_slot *slot,
                                        const cogpu_gpu_decoder *decoder,
                                        const cogpu_gpu_task *task) {
    enum { ALIKE = 8 };
    cogpu_coded blocks[ALIKE];
    struct cogpu_slot_wants wants = {0};
    uint64_t best = 0, least = 0, most = slot->berth->bytes / SCRATCH_SHARE;
    for (uint32_t i = 0; i < ALIKE; i++)
        blocks[i] = (cogpu_coded){.in_bytes = (uint32_t)task->span.bytes,
                                  .room = (uint32_t)cogpu_slot_room_of(task),
                                  .needed = (uint32_t)cogpu_slot_needed_of(task)};
    decoder->scratch(blocks, 1, &wants.least, &best);
    decoder->scratch(blocks, ALIKE, &least, &best);
    wants.shares = best / ALIKE < most ? best / ALIKE : most;
    return wants;
}

static struct cogpu_slot_wants add_wants(struct cogpu_slot_wants a, struct cogpu_slot_wants b) {
    return (struct cogpu_slot_wants){a.least > b.least ? a.least : b.least, a.shares + b.shares};
}

/* Whether the device could decode it at all, in a slot of its own, with the rest of the first and
 * the last page of its bytes, where those come directly. */
static bool is_for_device(const struct cogpu_slot *slot, const cogpu_gpu_task *task,
                          struct cogpu_slot_wants wants) {
    uint64_t stored = task->span.bytes + 2 * COGPU_GDS_PAGE;
    return fits(slot, stored, cogpu_gpu_align(cogpu_slot_room_of(task)) + 2 * COGPU_GPU_ALIGN,
                scratch_of(wants));
}

static bool is_for_engines(const struct cogpu_slot *slot, const cogpu_gpu_task *task) {
    const cogpu_block_format *format = &task->plan->storage->format;
    return slot->nvjpeg && format->compression == COMPRESSION_JPEG &&
           fits(slot, cogpu_nvjpeg_bound(format, (size_t)task->span.bytes) + COGPU_GPU_ALIGN,
                engine_bytes(task), 0);
}

/* The decoder of a task with bytes for the device to decode; NULL for all others. */
static const cogpu_gpu_decoder *decoder_for(const struct cogpu_slot *slot,
                                            const cogpu_gpu_task *task,
                                            struct cogpu_slot_wants *wants) {
    const cogpu_storage *storage = task->plan->storage;
    const cogpu_gpu_decoder *decoder = is_for_engines(slot, task)
                                           ? &cogpu_slot_engines
                                           : cogpu_gpu_decoder_of(storage->format.compression);
    *wants = (struct cogpu_slot_wants){0};
    if (!decoder || storage->format.fill_order == 2 || task->is_for_host || task->is_out ||
        task->span.bytes == 0 || task->span.bytes > COGPU_GPU_BLOCK_MAX ||
        task->span.bytes > storage->tiff->limits.block_bytes || /* which the host then tells */
        cogpu_slot_room_of(task) > COGPU_GPU_BLOCK_MAX)
        return NULL;
    if (decoder == &cogpu_slot_engines)
        return decoder;
    *wants = wants_of(slot, decoder, task);
    return is_for_device(slot, task, *wants) ? decoder : NULL;
}

/* The list of bands of a plan has a place in the slot with the plan's first task. */
static bool seat_list(struct cogpu_slot *slot, const cogpu_gpu_task *task) {
    if (slot->count == 0 || slot->seated[slot->count - 1].task->plan != task->plan)
        slot->lists += cogpu_slot_list_bytes(task->plan);
    return fits(slot, slot->used, slot->decoded_used, scratch_of(slot->wants));
}

/* Seats the task if there is room. All that the device decodes in one slot is of one codec, and all
 * bytes of a slot come in one way: directly, or by the ring. */
static bool seat(struct cogpu_slot *slot, cogpu_gpu_work *work, cogpu_gpu_task *task) {
    struct cogpu_seated *seated = &slot->seated[slot->count];
    struct cogpu_slot_wants wants;
    const cogpu_gpu_decoder *own = decoder_for(slot, task, &wants);
    bool is_jpeg = own == &cogpu_slot_engines;
    const cogpu_gds_file *file = own && !is_jpeg ? cogpu_fetch_file_of(work, task) : NULL;
    bool has_bytes = task->span.bytes > 0 && !task->is_out;
    *seated = (struct cogpu_seated){.task = task, .is_coded = own != NULL};
    slot->jpegs[slot->count] = (cogpu_nvjpeg_block){0};
    if (has_bytes && (file ? slot->run_count > 0 : slot->is_direct))
        return false;
    if (own && ((slot->decoder && own != slot->decoder) ||
                !(is_jpeg ? seat_for_engines(slot, seated)
                          : seat_for_device(slot, seated, file, add_wants(slot->wants, wants)))))
        return false;
    if (!own && has_bytes && !seat_for_host(slot, seated))
        return false;
    slot->decoder = own ? own : slot->decoder;
    slot->count++;
    return true;
}

/* At most half of what is left, so that the last batches are small: nothing hides the way of the
 * very last one to the device. */
static uint64_t most_bytes(const struct cogpu_slot *slot, uint64_t left) {
    enum { LEAST_BYTES = 8 << 20 };
    uint64_t half = left / 2 < LEAST_BYTES ? LEAST_BYTES : left / 2;
    return slot->decoder ? half : PLAIN_BYTES;
}

uint32_t cogpu_slot_choose(struct cogpu_slot *slot, cogpu_gpu_work *work, cogpu_gpu_task *tasks,
                           uint32_t count) {
    const uint64_t left = work->left;
    slot->count = slot->coded = slot->run_count = slot->direct.read_count = 0;
    slot->used = slot->decoded_used = slot->direct.bytes = slot->lists = 0;
    slot->wants = (struct cogpu_slot_wants){0};
    slot->decoder = NULL;
    slot->is_direct = false;
    while (slot->count < count && slot->count < COGPU_SLOT_TASKS &&
           slot->used < most_bytes(slot, left)) {
        cogpu_gpu_task *task = &tasks[slot->count];
        uint64_t lists = slot->lists;
        if (cogpu_meter_is_cancelled(task->plan->meter))
            task->is_out = true;
        if (!seat_list(slot, task) || !seat(slot, work, task)) {
            slot->lists = lists;
            break;
        }
        work->left -= task->span.bytes;
    }
    return slot->count;
}

uint64_t cogpu_slot_run_bytes(const struct cogpu_slot *slot, const struct cogpu_slot_run *run) {
    const struct cogpu_seated *first = &slot->seated[run->first], *last = first + run->count - 1;
    return first->is_coded ? last->staging + last->task->span.bytes - first->staging
                           : cogpu_slot_needed_of(first->task);
}

/* Whether the caller has all bytes of the batch in pinned memory, in runs so long that a copy for
 * each is better than the way by the slot's own. */
static bool is_lent(cogpu_gpu *gpu, const struct cogpu_slot *slot) {
    enum { RUN_BYTES = 64 << 10 };
    bool is_worth_it = slot->run_count > 0 && slot->used / slot->run_count >= RUN_BYTES;
    for (uint32_t i = 0; is_worth_it && i < slot->run_count; i++) {
        const uint8_t *bytes = cogpu_fetch_in_memory(slot, &slot->runs[i]);
        is_worth_it =
            bytes && gpu->calls->is_pinned(gpu, bytes, cogpu_slot_run_bytes(slot, &slot->runs[i]));
    }
    return is_worth_it;
}

/* Direct reads are one piece, which submits them all; bytes that are lent are none. */
void cogpu_slot_cut(cogpu_gpu *gpu, struct cogpu_slot *slot) {
    slot->is_lent = !slot->is_direct && is_lent(gpu, slot);
    slot->piece_count = 0;
    if (slot->is_direct)
        slot->pieces[slot->piece_count++] = (struct cogpu_slot_piece){0};
    for (uint32_t i = 0; !slot->is_lent && i < slot->run_count; i++) {
        const struct cogpu_seated *first = &slot->seated[slot->runs[i].first];
        bool is_read = first->is_plain || (first->is_coded && !first->is_jpeg);
        uint64_t bytes = is_read ? cogpu_slot_run_bytes(slot, &slot->runs[i]) : 1;
        for (uint64_t skip = 0; skip < bytes; skip += PIECE_BYTES)
            slot->pieces[slot->piece_count++] = (struct cogpu_slot_piece){
                i, skip, bytes - skip < PIECE_BYTES ? bytes - skip : PIECE_BYTES};
    }
    slot->left = slot->piece_count;
}

/* ---- list ---------------------------------------------------------------------------------- */

static int larger_first(const void *a, const void *b) {
    const struct cogpu_seated *left = *(struct cogpu_seated *const *)a,
                              *right = *(struct cogpu_seated *const *)b;
    uint64_t x = left->task->span.bytes, y = right->task->span.bytes;
    return x != y ? (x < y ? 1 : -1) : (left > right) - (left < right);
}

uint64_t cogpu_slot_decoded(const struct cogpu_slot *slot) {
    return cogpu_gpu_align(COGPU_STAGING + slot->used + 3 * COGPU_GPU_SLACK) + table_bytes() +
           slot->lists;
}

static void list_coded(struct cogpu_slot *slot, cogpu_coded *table) {
    struct cogpu_seated *order[COGPU_SLOT_TASKS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < slot->count; i++)
        if (slot->seated[i].is_coded && !slot->seated[i].is_bad)
            order[count++] = &slot->seated[i];
    qsort(order, count, sizeof *order, larger_first);
    for (uint32_t i = 0; i < count; i++) {
        const cogpu_gpu_task *task = order[i]->task;
        order[i]->verdict = i;
        table[i] = (cogpu_coded){.in = order[i]->staging,
                                 .out = order[i]->decoded,
                                 .in_bytes = (uint32_t)task->span.bytes,
                                 .room = (uint32_t)cogpu_slot_room_of(task),
                                 .needed = (uint32_t)cogpu_slot_needed_of(task)};
    }
    slot->coded = count;
}

/* Blocks that were not decoded here have a verdict too, the last: it is good. */
static void list_placed(const struct cogpu_slot *slot, struct cogpu_placed *table) {
    for (uint32_t i = 0; i < slot->count; i++) {
        const struct cogpu_seated *seated = &slot->seated[i];
        bool fills = seated->task->span.bytes == 0, out = seated->task->is_out || seated->is_bad;
        uint64_t decoded = fills              ? COGPU_PLACE_FILL
                           : seated->is_coded ? cogpu_slot_decoded(slot) + seated->decoded
                                              : COGPU_STAGING + seated->staging;
        table[i] = cogpu_gpu_placed_of(&seated->task->block, decoded,
                                       seated->is_coded && !fills ? seated->verdict : slot->count);
        if (out)
            table[i].height = 0;
    }
}

uint32_t cogpu_slot_end_of_plan(const struct cogpu_slot *slot, uint32_t first) {
    uint32_t end = first + 1;
    while (end < slot->count && slot->seated[end].task->plan == slot->seated[first].task->plan)
        end++;
    return end;
}

static void list_bands(const struct cogpu_slot *slot, uint8_t *lists) {
    for (uint32_t first = 0; first < slot->count; first = cogpu_slot_end_of_plan(slot, first)) {
        const cogpu_read_plan *plan = slot->seated[first].task->plan;
        if (cogpu_slot_list_bytes(plan) > 0)
            cogpu_gpu_list_bands(plan, (struct cogpu_gpu_band *)(void *)lists);
        lists += cogpu_slot_list_bytes(plan);
    }
}

void cogpu_slot_list(struct cogpu_slot *slot) {
    struct cogpu_slot_tables at;
    at.coded = cogpu_gpu_align(COGPU_STAGING + slot->used + COGPU_GPU_SLACK);
    at.placed = at.coded + cogpu_gpu_align(slot->count * sizeof(cogpu_coded));
    at.lists = at.placed + cogpu_gpu_align(slot->count * sizeof(struct cogpu_placed));
    at.verdicts = at.lists + slot->lists;
    at.end = at.verdicts + (slot->count + 1) * sizeof(uint32_t);
    list_coded(slot, (cogpu_coded *)(void *)(slot->pinned + at.coded));
    list_placed(slot, (struct cogpu_placed *)(void *)(slot->pinned + at.placed));
    list_bands(slot, slot->pinned + at.lists);
    uint32_t *verdicts = (uint32_t *)(void *)(slot->pinned + at.verdicts);
    memset(verdicts, 0xFF, slot->count * sizeof *verdicts);
    verdicts[slot->count] = COGPU_GPU_DECODED;
    slot->at = at;
}
