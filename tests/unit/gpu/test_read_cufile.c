/* Reads on the emulated device by a fake cuFile, which may fail. */
#include "support/device_reads.h"
#include "support/fake_cufile.h"
#include "support/stand_in.h"

static cogpu_error error;

static fake_cufile *fake;

static void with_cufile(const char *path, void (*test)(void)) {
    in_a_process("COGPU_CUFILE", path, "fake_cufile_control", (void **)&fake, test);
}

/* Reads the image from a path, and closes it. */
static cogpu_result read_by_cufile_within(uint64_t device_bytes, struct image image,
                                          cogpu_status expected) {
    cogpu_context *context = open_context(device_bytes);
    cogpu_request request = {.struct_size = sizeof(cogpu_request), .context = context};
    cogpu_result result = COGPU_RESULT_INIT;
    move_to_path(&image);
    CHECK(cogpu_read(image.file, &request, &image.raster, &result, &error) == expected);
    CHECK(expected != COGPU_OK || is_read(&image));
    close_image(&image);
    cogpu_context_close(context);
    CHECK(fake->files == 0 && fake->memories == 0 && fake->batches == 0);
    CHECK(fake->wrong == 0 && fake->unaligned == 0 && fake->closed_under_way == 0);
    return result;
}

static cogpu_result read_by_cufile(struct image image, cogpu_status expected) {
    return read_by_cufile_within(ENOUGH, image, expected);
}

static void all_by_cufile(void) {
    cogpu_result result = read_by_cufile(open_image(&tiles), COGPU_OK);
    CHECK(result.gds_bytes == result.bytes_read && result.device_blocks == TILES);
    CHECK(fake->submitted > 0 && fake->submitted_before_wait == fake->submitted);
    CHECK(cogpu_gds_unavailable_reason() == NULL);
}

/* No bytes go into a buffer before its former batch is done. */
static void cufile_batches_share_buffers(void) {
    image_kind kind = narrow;
    kind.compression = 32773;
    cogpu_result result =
        read_by_cufile_within(COGPU_READ_BUFFERS * SMALL_BUFFER, open_image(&kind), COGPU_OK);
    CHECK(result.gds_bytes == result.bytes_read);
}

/* Tiles far from each other, so that each has a read of its own. */
static void reads_that_fail(void) {
    image_kind apart = tiles;
    apart.apart = true;
    fake->fail_each = 2;
    cogpu_result result = read_by_cufile(open_image(&apart), COGPU_OK);
    CHECK(result.gds_bytes > 0 && result.gds_bytes < result.bytes_read);
    CHECK(result.cpu_fallback_blocks > 0 &&
          result.device_blocks + result.cpu_fallback_blocks == TILES);
    fake->fail_each = 0;
    fake->short_each = 3;
    result = read_by_cufile(open_image(&apart), COGPU_OK);
    CHECK(result.gds_bytes > 0 && result.gds_bytes < result.bytes_read);
}

/* What the device refuses is decoded from the bytes that come back. */
static void damaged_blocks_come_back(void) {
    struct image image = open_image(&tiles);
    damage_block(&image, 3);
    damage_block(&image, 20);
    cogpu_result result = read_by_cufile(image, COGPU_CORRUPT);
    CHECK(error.block == 3 && result.cpu_fallback_blocks == 2);
}

/* ... whatever rows were put into rasters meanwhile. All blocks clear their tables so often that
 * the device leaves them to the host. */
static void rows_between_blocks_that_come_back(void) {
    image_kind kind = narrow;
    kind.compression = 5;
    cogpu_context *context = open_context(COGPU_READ_BUFFERS * SMALL_BUFFER);
    struct image image = open_image(&kind);
    cogpu_pending *pending = NULL;
    cogpu_request request = {.struct_size = sizeof(cogpu_request), .context = context};
    cogpu_result result = COGPU_RESULT_INIT;
    uint8_t rows[8192] = {0}, put[8192];
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .data = put,
                           .type = COGPU_TYPE_U8,
                           .bands = 1,
                           .height = 1,
                           .width = sizeof rows,
                           .stride_x = 1,
                           .stride_y = sizeof rows,
                           .stride_band = sizeof rows};
    move_to_path(&image);
    CHECK(cogpu_read_async(image.file, &request, &image.raster, &pending, &error) == COGPU_OK &&
          pending);
    CHECK(cogpu_gpu_upload_rows(context->devices->device, rows, 1, &raster, 0, &error) == COGPU_OK);
    CHECK(cogpu_wait(pending, &result, &error) == COGPU_OK && is_read(&image));
    CHECK(result.cpu_fallback_blocks == result.blocks && result.gds_bytes == 0);
    close_image(&image);
    cogpu_context_close(context);
}

static void memory_that_is_not_registered(void) {
    fake->memory_error = 5022;
    cogpu_result result = read_by_cufile(open_image(&tiles), COGPU_OK);
    CHECK(result.gds_bytes == result.bytes_read);
}

static void files_that_are_not_registered(void) {
    fake->file_error = 5027;
    cogpu_result result = read_by_cufile(open_image(&tiles), COGPU_OK);
    CHECK(result.gds_bytes == 0 && result.device_blocks == TILES);
}

/* Blocks without data, blocks that only the host decodes, and a file that is no file. */
static void mixed_with_others(void) {
    static const uint64_t sparse[] = {0, 1, 13, UINT64_MAX};
    image_kind kinds[] = {tiles, tiles, tiles};
    cogpu_context *context = open_context(ENOUGH);
    struct image images[3];
    cogpu_read_item items[3];
    cogpu_result results[3];
    kinds[0].sparse = sparse;
    kinds[1].compression = 1;
    for (uint32_t i = 0; i < 3; i++) {
        images[i] = open_image(&kinds[i]);
        if (i < 2)
            move_to_path(&images[i]);
        results[i] = (cogpu_result)COGPU_RESULT_INIT;
        items[i] = (cogpu_read_item){.struct_size = sizeof(cogpu_read_item),
                                     .file = images[i].file,
                                     .raster = &images[i].raster,
                                     .result = &results[i]};
    }
    CHECK(cogpu_read_many(items, 3, context, &error) == COGPU_OK);
    CHECK(results[0].gds_bytes == results[0].bytes_read);
    CHECK(results[0].sparse_blocks == 3 && results[0].device_blocks == TILES - 3);
    CHECK(results[1].gds_bytes == 0 && results[2].gds_bytes == 0);
    CHECK(is_read(&images[1]) && is_read(&images[2]));
    for (uint32_t i = 0; i < 3; i++)
        close_image(&images[i]);
    cogpu_context_close(context);
    CHECK(fake->files == 0 && fake->memories == 0 && fake->wrong == 0);
}

/* Pages round a block's bytes take memory too: where that is lacking, it is not the device's. */
static void blocks_that_just_fit(void) {
    enum { SLOT = 1 << 20 };
    cogpu_context *context = open_context(COGPU_READ_BUFFERS * SLOT);
    uint32_t on_device = 0, others = 0;
    for (uint32_t rows = 3900; rows < 4400; rows += 20) {
        image_kind kind = {.width = 256, .height = rows, .compression = 8};
        struct image image = open_image(&kind);
        cogpu_request request = {.struct_size = sizeof(cogpu_request), .context = context};
        cogpu_result result = COGPU_RESULT_INIT;
        move_to_path(&image);
        CHECK(cogpu_read(image.file, &request, &image.raster, &result, &error) == COGPU_OK);
        CHECK(is_read(&image));
        on_device += result.device_blocks > 0;
        others += result.device_blocks == 0;
        close_image(&image);
    }
    CHECK(on_device > 0 && others > 0);
    cogpu_context_close(context);
}

static void cufile_without_its_driver(void) {
    fake->is_through_host = true;
    cogpu_result result = read_by_cufile(open_image(&tiles), COGPU_OK);
    CHECK(result.gds_bytes == 0 && fake->submitted == 0);
    CHECK_TEXT(cogpu_gds_unavailable_reason(), "cuFile is there, but not its driver (nvidia-fs)");
}

static void test_reads_by_cufile(void) {
    with_cufile(FAKE_CUFILE, all_by_cufile);
    with_cufile(FAKE_CUFILE, cufile_batches_share_buffers);
    with_cufile(FAKE_CUFILE, reads_that_fail);
    with_cufile(FAKE_CUFILE, damaged_blocks_come_back);
    with_cufile(FAKE_CUFILE, rows_between_blocks_that_come_back);
    with_cufile(FAKE_CUFILE, memory_that_is_not_registered);
    with_cufile(FAKE_CUFILE, files_that_are_not_registered);
    with_cufile(FAKE_CUFILE, mixed_with_others);
    with_cufile(FAKE_CUFILE, blocks_that_just_fit);
    with_cufile(FAKE_CUFILE, cufile_without_its_driver);
    with_cufile(FAKE_CUFILE_OLD, reads_that_fail);
}

TESTS(read_cufile) {
    RUN(test_reads_by_cufile);
    return FINISH();
}
