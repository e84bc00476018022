/* Layout of a batch: which neighbours in a file are read as one group, and from where to where. */
#include "gpu/read_run.h"
#include "support/test.h"

enum { BLOCK_BYTES = 4096, STORED_BYTES = 1000, GAP_BYTES = 4096, TASKS_MAX = 4 };

static struct {
    cogpu_gpu *gpu;
    cogpu_tiff tiff;
    cogpu_storage storage;
    cogpu_read_plan plan;
    cogpu_gpu_device device;
    struct cogpu_read_run run;
    struct cogpu_slot slot;
} batch;

static void open_batch(void) {
    cogpu_error error;
    CHECK(cogpu_gpu_open_emulator(1, 64 << 20, &batch.gpu, &error) == COGPU_OK);
    CHECK(cogpu_slot_open(batch.gpu, 8 << 20, &batch.slot, &error) == COGPU_OK);
    batch.tiff.limits.block_bytes = 1 << 20;
    batch.storage =
        (cogpu_storage){.tiff = &batch.tiff, .bands = 1, .planes = 1, .block_bytes = BLOCK_BYTES};
    batch.storage.format =
        (cogpu_block_format){.compression = COMPRESSION_DEFLATE, .row_bytes = BLOCK_BYTES};
    batch.plan = (cogpu_read_plan){.storage = &batch.storage, .band_count = 1, .slice_rows = 1};
    batch.device.gpu = batch.gpu;
    batch.run.device = &batch.device;
    batch.slot.run = &batch.run;
    batch.slot.pinned_capacity = 8 << 20;
    batch.slot.device_capacity = 32 << 20;
}

static void close_batch(void) {
    cogpu_slot_close(batch.gpu, &batch.slot);
    batch.gpu->calls->close(batch.gpu);
}

/* Lays out blocks at these offsets, of STORED_BYTES each. */
static void choose(const uint64_t *offsets, uint32_t count) {
    static cogpu_gpu_read_task tasks[TASKS_MAX];
    for (uint32_t i = 0; i < count; i++)
        tasks[i] = (cogpu_gpu_read_task){.plan = &batch.plan,
                                         .block = {.rows = 1, .needed_rows = 1, .height = 1},
                                         .span = {offsets[i], STORED_BYTES}};
    batch.run.bytes_left = (uint64_t)count * STORED_BYTES;
    CHECK(cogpu_slot_choose(&batch.slot, tasks, count) == count);
}

static bool is_group(uint32_t number, uint64_t offset, uint64_t bytes, uint32_t first,
                     uint32_t count) {
    const cogpu_fetch *group = &batch.slot.groups[number];
    return number < batch.slot.group_count && group->offset == offset && group->bytes == bytes &&
           group->first == first && group->count == count;
}

static void test_neighbours_form_a_group(void) {
    choose((uint64_t[]){5000, 5000 + STORED_BYTES, 5000 + 2 * STORED_BYTES + GAP_BYTES}, 3);
    CHECK(batch.slot.group_count == 1);
    CHECK(is_group(0, 5000, 3 * STORED_BYTES + GAP_BYTES, 0, 3));
    CHECK(batch.slot.blocks[2].staging == 2 * STORED_BYTES + GAP_BYTES);
}

static void test_a_longer_gap_begins_another(void) {
    const uint64_t next = 5000 + STORED_BYTES + GAP_BYTES + 1;
    choose((uint64_t[]){5000, next, next + STORED_BYTES}, 3);
    CHECK(batch.slot.group_count == 2);
    CHECK(is_group(0, 5000, STORED_BYTES, 0, 1) && is_group(1, next, 2 * STORED_BYTES, 1, 2));
    CHECK(batch.slot.blocks[1].staging == STORED_BYTES);
}

static void test_blocks_that_overlap_or_go_back_are_alone(void) {
    choose((uint64_t[]){5000, 5000 + STORED_BYTES - 1, 5000, 100}, 4);
    CHECK(batch.slot.group_count == 4);
    CHECK(is_group(1, 5000 + STORED_BYTES - 1, STORED_BYTES, 1, 1));
    CHECK(is_group(2, 5000, STORED_BYTES, 2, 1) && is_group(3, 100, STORED_BYTES, 3, 1));
}

static void test_offsets_do_not_overflow(void) {
    choose((uint64_t[]){UINT64_MAX - STORED_BYTES - 9, UINT64_MAX - 9, 2000}, 3);
    CHECK(batch.slot.group_count == 3);
}

/* ---- a block of two windows ---------------------------------------------------------------- */

static int cancel(void *user, uint64_t done, uint64_t total) {
    (void)user;
    (void)done;
    (void)total;
    return 1;
}

/* One window is cancelled after its block was chosen. The block is left out, unless another window
 * needs it, too. */
static void test_cancelled_window_of_a_shared_block(void) {
    for (uint32_t count = 1; count <= 2; count++) {
        uint8_t bytes[4 * STORED_BYTES];
        cogpu_meter meter;
        cogpu_read_plan plans[2] = {batch.plan, batch.plan};
        cogpu_gpu_read_task tasks[2];
        cogpu_error error;
        for (uint32_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)(i % 251);
        CHECK(cogpu_io_open_memory(bytes, sizeof bytes, &batch.tiff.io, &error) == COGPU_OK);
        plans[0].meter = &meter;
        cogpu_meter_open(&meter, cancel, NULL, 9);
        for (uint32_t i = 0; i < 2; i++)
            tasks[i] = (cogpu_gpu_read_task){.plan = &plans[i],
                                             .block = {.rows = 1, .needed_rows = 1, .height = 1},
                                             .span = {1500, STORED_BYTES}};
        CHECK(cogpu_tasks_find_repeats(tasks, count, &error) == COGPU_OK);
        CHECK(cogpu_slot_choose(&batch.slot, tasks, count) == count);
        CHECK(batch.slot.group_count == 1);
        cogpu_slot_split(batch.gpu, &batch.slot);
        CHECK(!cogpu_meter_move_to(&meter, 0) && batch.slot.range_count == 1);
        cogpu_fetch_one_range(&batch.slot, 0, 0);
        CHECK(tasks[0].state == (count > 1 ? COGPU_BLOCK_PENDING : COGPU_BLOCK_UNREADABLE));
        CHECK(count == 1 ||
              memcmp(batch.slot.pinned + COGPU_STAGING, bytes + 1500, STORED_BYTES) == 0);
        cogpu_meter_close(&meter);
        cogpu_io_close(batch.tiff.io);
        batch.tiff.io = NULL;
    }
}

/* Bytes that are not in the file: no task of the block is unpacked, the CPU will report them. */
static void test_unreadable_shared_block(void) {
    const uint8_t bytes[100] = {0};
    cogpu_read_plan plans[2] = {batch.plan, batch.plan};
    const cogpu_raster raster = {.bands = 1, .width = 1, .height = 1};
    cogpu_gpu_read_task tasks[2];
    cogpu_error error;
    CHECK(cogpu_io_open_memory(bytes, sizeof bytes, &batch.tiff.io, &error) == COGPU_OK);
    for (uint32_t i = 0; i < 2; i++)
        tasks[i] = (cogpu_gpu_read_task){.plan = &plans[i],
                                         .raster = &raster,
                                         .block = {.rows = 1, .needed_rows = 1, .height = 1},
                                         .span = {50, STORED_BYTES}};
    CHECK(cogpu_tasks_find_repeats(tasks, 2, &error) == COGPU_OK && tasks[1].repeats == 1);
    CHECK(cogpu_slot_choose(&batch.slot, tasks, 2) == 2);
    cogpu_slot_split(batch.gpu, &batch.slot);
    cogpu_fetch_one_range(&batch.slot, 0, 0);
    cogpu_slot_write_tables(&batch.slot);
    const struct cogpu_unpack_block *table =
        (const void *)(batch.slot.pinned + batch.slot.tables.unpacked);
    for (uint32_t i = 0; i < 2; i++)
        CHECK(tasks[i].state == COGPU_BLOCK_UNREADABLE && table[i].height == 0);
    CHECK(batch.slot.encoded_count == 0);
    cogpu_io_close(batch.tiff.io);
    batch.tiff.io = NULL;
}

TESTS(read_batch) {
    open_batch();
    RUN(test_neighbours_form_a_group);
    RUN(test_a_longer_gap_begins_another);
    RUN(test_blocks_that_overlap_or_go_back_are_alone);
    RUN(test_offsets_do_not_overflow);
    RUN(test_cancelled_window_of_a_shared_block);
    RUN(test_unreadable_shared_block);
    close_batch();
    return FINISH();
}
