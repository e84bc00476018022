/*
 * Reads on the emulated device with a cache of stored blocks: pixels are those of the file, whether
 * its bytes come from there or from the cache; a block that is cached is not read again.
 */
#include "context/file.h"
#include "gpu/read_run.h"
#include "support/device_reads.h"
#include "support/fake_cufile.h"
#include "support/stand_in.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static cogpu_error error;

static cogpu_context *open_cached(uint64_t device_bytes, uint64_t cache_bytes) {
    cogpu_context *context = NULL;
    cogpu_context_options options = {.struct_size = sizeof(cogpu_context_options),
                                     .threads = 2,
                                     .device_bytes = device_bytes,
                                     .device_cache_bytes = cache_bytes};
    CHECK(cogpu_context_open(&options, &context, &error) == COGPU_OK);
    return context;
}

/* Reads all of the image into a raster that has other pixels before. */
static cogpu_result read_image(const struct image *image, cogpu_context *context, bool fills,
                               cogpu_status expected) {
    const image_kind *kind = image->kind;
    cogpu_request request = {
        .struct_size = sizeof(cogpu_request), .context = context, .fill_bad_blocks = fills};
    cogpu_result result = COGPU_RESULT_INIT;
    memset(image->raster.data, 0xA5,
           (size_t)kind->width * kind->height * kind_bands(kind) * kind_size(kind));
    CHECK(cogpu_read(image->file, &request, &image->raster, &result, &error) == expected);
    return result;
}

static bool is_window_read(const struct image *image, cogpu_context *context, uint32_t x,
                           uint32_t y, uint32_t side, cogpu_result *result) {
    cogpu_raster raster = raster_on_device(image->kind, side, side);
    cogpu_request request = {.struct_size = sizeof(cogpu_request),
                             .context = context,
                             .x = x,
                             .y = y,
                             .width = side,
                             .height = side};
    *result = (cogpu_result)COGPU_RESULT_INIT;
    bool is_good = cogpu_read(image->file, &request, &raster, result, &error) == COGPU_OK &&
                   has_pixels(&raster, image->kind, x, y);
    free(raster.data);
    return is_good;
}

/* ---- hits ---------------------------------------------------------------------------------- */

/* Of the file only the offsets and counts of blocks are read, 4 bytes each. */
static void test_second_read_reads_no_block(void) {
    static const uint16_t compressions[] = {8, 50000, 32773};
    for (uint32_t i = 0; i < 3; i++) {
        image_kind kind = tiles;
        kind.compression = compressions[i];
        cogpu_context *context = open_cached(ENOUGH, ENOUGH);
        struct image image = open_image(&kind);
        struct counted counted;
        count_reads(&image, &counted);
        cogpu_result result = read_image(&image, context, false, COGPU_OK);
        CHECK(is_read(&image) && result.device_cached_blocks == 0 && result.bytes_read > 0);
        for (uint32_t j = 0; j < 2; j++) {
            counted.bytes = 0;
            result = read_image(&image, context, false, COGPU_OK);
            CHECK(is_read(&image) && counted.bytes <= TILES * 8);
            CHECK(result.device_cached_blocks == TILES && result.device_blocks == TILES);
            CHECK(result.bytes_read == 0 && result.cpu_fallback_blocks == 0);
        }
        close_image(&image);
        cogpu_context_close(context);
    }
}

/* Without a cache, uncompressed blocks, blocks that the CPU decodes: all are read each time. */
static void test_what_is_not_cached(void) {
    for (uint32_t i = 0; i < 3; i++) {
        image_kind kind = tiles;
        kind.compression = (uint16_t)(i == 0 ? 8 : i == 1 ? 1 : 5);
        cogpu_context *context = open_cached(ENOUGH, i == 0 ? 0 : ENOUGH);
        struct image image = open_image(&kind);
        cogpu_result first = read_image(&image, context, false, COGPU_OK);
        cogpu_result second = read_image(&image, context, false, COGPU_OK);
        CHECK(is_read(&image) && first.bytes_read > 0 && first.bytes_read == second.bytes_read);
        CHECK(second.device_cached_blocks == 0);
        CHECK((second.cpu_fallback_blocks == TILES) == (i == 2));
        close_image(&image);
        cogpu_context_close(context);
    }
}

/* Some blocks of a read are cached, and some are not. */
static void test_windows(void) {
    cogpu_context *context = open_cached(ENOUGH, ENOUGH);
    struct image image = open_image(&tiles);
    cogpu_result result;
    CHECK(is_window_read(&image, context, 10, 10, 50, &result) && result.device_cached_blocks == 0);
    CHECK(is_window_read(&image, context, 30, 0, 60, &result));
    CHECK(result.blocks == 2 && result.device_cached_blocks == 1 && result.device_blocks == 2);
    CHECK(is_window_read(&image, context, 0, 0, 190, &result));
    CHECK(result.blocks == 9 && result.device_cached_blocks == 2 && result.bytes_read > 0);
    result = read_image(&image, context, false, COGPU_OK);
    CHECK(is_read(&image) && result.device_cached_blocks == 9);
    close_image(&image);
    cogpu_context_close(context);
}

/* Files with the same layout, an overview, a mask: each has blocks of its own. */
static void test_files_have_their_own_blocks(void) {
    image_kind other = tiles;
    other.seed = 5;
    cogpu_context *context = open_cached(ENOUGH, ENOUGH);
    struct image images[] = {open_image(&tiles), open_image(&other)};
    for (uint32_t i = 0; i < 4; i++) {
        cogpu_result result = read_image(&images[i % 2], context, false, COGPU_OK);
        CHECK(is_read(&images[i % 2]));
        CHECK(result.device_cached_blocks == (i < 2 ? 0 : TILES));
    }
    close_image(&images[0]);
    images[0] = open_image(&tiles); /* an open file is another one */
    cogpu_result result = read_image(&images[0], context, false, COGPU_OK);
    CHECK(is_read(&images[0]) && result.device_cached_blocks == 0);
    close_image(&images[0]);
    close_image(&images[1]);
    cogpu_context_close(context);
}

/* Windows of one call that share blocks, some of which are cached. */
static void test_repeats(void) {
    enum { COUNT = 3, SIDE = 64 };
    cogpu_context *context = open_cached(ENOUGH, ENOUGH);
    struct image image = open_image(&tiles);
    cogpu_result first;
    CHECK(is_window_read(&image, context, 0, 0, 64, &first));
    for (uint32_t round = 0; round < 2; round++) {
        cogpu_request requests[COUNT];
        cogpu_raster rasters[COUNT];
        cogpu_result results[COUNT];
        cogpu_read_item items[COUNT];
        uint64_t cached = 0, bytes_read = 0;
        for (uint32_t i = 0; i < COUNT; i++) {
            requests[i] = (cogpu_request){.struct_size = sizeof(cogpu_request),
                                          .x = 10 + i,
                                          .y = i,
                                          .width = SIDE,
                                          .height = SIDE};
            rasters[i] = raster_on_device(&tiles, SIDE, SIDE);
            results[i] = (cogpu_result)COGPU_RESULT_INIT;
            items[i] = (cogpu_read_item){.struct_size = sizeof(cogpu_read_item),
                                         .file = image.file,
                                         .request = &requests[i],
                                         .raster = &rasters[i],
                                         .result = &results[i]};
        }
        CHECK(cogpu_read_many(items, COUNT, context, &error) == COGPU_OK);
        for (uint32_t i = 0; i < COUNT; i++) {
            CHECK(has_pixels(&rasters[i], &tiles, requests[i].x, requests[i].y));
            cached += results[i].device_cached_blocks;
            bytes_read += results[i].bytes_read;
            free(rasters[i].data);
        }
        CHECK(cached == (round == 0 ? 3 : 10)); /* 2, 4 and 4 blocks */
        CHECK(round == 0 ? bytes_read == 3 * first.bytes_read : bytes_read == 0);
    }
    close_image(&image);
    cogpu_context_close(context);
}

/* The first rows of the image. */
static bool is_wide_window_read(const struct image *image, cogpu_context *context, uint32_t rows,
                                cogpu_result *result) {
    cogpu_raster raster = raster_on_device(image->kind, image->kind->width, rows);
    cogpu_request request = {
        .struct_size = sizeof(cogpu_request), .context = context, .height = rows};
    *result = (cogpu_result)COGPU_RESULT_INIT;
    bool is_good = cogpu_read(image->file, &request, &raster, result, &error) == COGPU_OK &&
                   has_pixels(&raster, image->kind, 0, 0);
    free(raster.data);
    return is_good;
}

/* A source that reads many ranges at once is not asked for cached blocks. */
static uint64_t prefetched;

static cogpu_status read_many_and_count(void *user, const uint64_t *offsets, const size_t *bytes,
                                        void *const *to, size_t count) {
    const struct gapped *gapped = user;
    for (size_t i = 0; i < count; i++) {
        memcpy(to[i], gapped->built->bytes + offsets[i], bytes[i]);
        prefetched += bytes[i];
    }
    return COGPU_OK;
}

static void test_cached_blocks_are_not_prefetched(void) {
    cogpu_context *context = open_cached(ENOUGH, ENOUGH);
    struct image image = open_image(&tiles);
    struct gapped gapped = {.built = &image.built, .first = UINT64_MAX};
    const cogpu_source source = {.struct_size = sizeof(cogpu_source),
                                 .user = &gapped,
                                 .read = read_except_gap,
                                 .size = size_of_gapped,
                                 .read_many = read_many_and_count};
    cogpu_result result;
    cogpu_close(image.file);
    CHECK(cogpu_open_source(&source, NULL, &image.file, &error) == COGPU_OK);
    prefetched = 0;
    CHECK(is_wide_window_read(&image, context, 64, &result));
    CHECK(prefetched >= result.bytes_read && result.bytes_read > 0 && result.blocks == 5);
    prefetched = 0;
    CHECK(is_wide_window_read(&image, context, 128, &result));
    CHECK(result.device_cached_blocks == 5 && result.blocks == 10);
    CHECK(prefetched >= result.bytes_read && prefetched < result.bytes_read + 1000);
    close_image(&image);
    cogpu_context_close(context);
}

/* ---- reads at the same time ---------------------------------------------------------------- */

/* Blocks are cached when their read is finished, and found by reads of other streams. */
static void test_pending_reads(void) {
    for (uint64_t seed = 1; seed <= 6; seed++) {
        cogpu_gpu *gpu;
        cogpu_context *context = open_device(seed, 1 << 30, ENOUGH, &gpu);
        struct image image = open_image(&tiles);
        cogpu_gpu_stream *streams[2];
        cogpu_pending *pending[2] = {NULL};
        cogpu_raster rasters[2];
        cogpu_result results[2] = {COGPU_RESULT_INIT, COGPU_RESULT_INIT};
        cogpu_request request = {.struct_size = sizeof(cogpu_request), .context = context};
        CHECK(cogpu_gpu_device_open_cache(context->devices->device, ENOUGH, &error) == COGPU_OK);
        for (uint32_t round = 0; round < 2; round++) {
            for (uint32_t i = 0; i < 2; i++) {
                CHECK(gpu->calls->stream_open(gpu, false, &streams[i], &error) == COGPU_OK);
                rasters[i] = raster_on_device(&tiles, tiles.width, tiles.height);
                rasters[i].stream = streams[i];
                CHECK(cogpu_read_async(image.file, &request, &rasters[i], &pending[i], &error) ==
                      COGPU_OK);
            }
            for (uint32_t i = 2; i-- > 0;) {
                CHECK(cogpu_wait(pending[i], &results[i], &error) == COGPU_OK);
                CHECK(has_pixels(&rasters[i], &tiles, 0, 0));
                CHECK(results[i].device_cached_blocks == (round == 0 ? 0 : TILES));
                gpu->calls->stream_close(gpu, streams[i]);
                free(rasters[i].data);
            }
        }
        close_image(&image);
        cogpu_context_close(context);
    }
}

/* ---- eviction ------------------------------------------------------------------------------ */

static uint32_t draw_number(uint32_t *random, uint32_t below) {
    *random = *random * 1664525 + 1013904223;
    return (*random >> 8) % below;
}

/* Whether each slab can be emptied for another block. */
static bool is_unpinned(cogpu_stored_cache *cache, uint32_t slabs) {
    cogpu_stored_block *blocks[2] = {NULL};
    bool is_empty = true;
    for (uint32_t i = 0; i < slabs; i++) {
        cogpu_block_cache_key key = {.file = UINT64_MAX, .block = i};
        blocks[i] = cogpu_stored_cache_reserve(cache, key, 256 << 10);
        is_empty &= blocks[i] != NULL;
    }
    for (uint32_t i = 0; i < slabs; i++)
        if (blocks[i])
            cogpu_stored_cache_discard(cache, blocks[i]);
    return is_empty;
}

/* Less memory than the blocks of the images take, and buffers for a few of them. */
static void test_small_cache(void) {
    enum { SIDE = 200, READS = 60, SLABS = 2 };
    for (uint32_t seed = 1; seed <= 3; seed++) {
        image_kind kinds[] = {narrow, narrow};
        uint32_t random = seed;
        uint64_t cached = 0, blocks = 0;
        kinds[0].compression = 32773;
        kinds[1].compression = 8;
        kinds[1].seed = 3;
        cogpu_context *context = open_cached(COGPU_READ_BUFFERS * SMALL_BUFFER, 600 << 10);
        struct image images[] = {open_image(&kinds[0]), open_image(&kinds[1])};
        for (uint32_t i = 0; i < READS; i++) {
            const struct image *image = &images[draw_number(&random, 2)];
            cogpu_result result;
            CHECK(is_window_read(image, context, draw_number(&random, 256 - SIDE),
                                 draw_number(&random, 3200 - SIDE), SIDE, &result));
            cached += result.device_cached_blocks;
            blocks += result.blocks;
        }
        CHECK(cached > blocks / 10 && cached < blocks * 9 / 10);
        for (uint32_t i = 0; i < 2; i++) {
            (void)read_image(&images[i], context, false, COGPU_OK);
            CHECK(is_read(&images[i]));
            close_image(&images[i]);
        }
        CHECK(is_unpinned(context->devices->device->cache, SLABS));
        cogpu_context_close(context);
    }
}

/* ---- blocks that the device refuses -------------------------------------------------------- */

/* They are not kept: each read finds the damage in the file. */
static void test_damaged_block(void) {
    cogpu_context *context = open_cached(ENOUGH, ENOUGH);
    struct image image = open_image(&tiles);
    damage_block(&image, 7);
    for (uint32_t i = 0; i < 3; i++) {
        cogpu_result result = read_image(&image, context, true, COGPU_OK);
        CHECK(result.bad_blocks == 1 && result.first_bad.block == 7);
        CHECK(result.cpu_fallback_blocks == 1 && result.device_blocks == TILES - 1);
        CHECK(result.device_cached_blocks == (i == 0 ? 0 : TILES - 1));
        CHECK((result.bytes_read > 9000) == (i == 0) && result.bytes_read > 0);
        (void)read_image(&image, context, false, COGPU_CORRUPT);
        CHECK(error.block == 7);
        for (uint64_t block = 0; block < TILES; block++) {
            cogpu_block_cache_key key = {.file = cogpu_file_number(image.file), .block = block};
            CHECK(cogpu_gpu_device_has_cached(context->devices->device, key) == (block != 7));
        }
    }
    close_image(&image);
    cogpu_context_close(context);
}

/* Of a file that changed nothing is read, from the cache neither. The new one is another file. */
static void test_changed_file(void) {
    char path[] = "/tmp/cogpu-test-XXXXXX";
    image_kind changed = tiles;
    const struct timespec later[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1, .tv_nsec = 1}};
    changed.seed = 77;
    cogpu_context *context = open_cached(ENOUGH, ENOUGH);
    struct image images[] = {open_image(&tiles), open_image(&changed)};
    int descriptor = mkstemp(path);
    for (uint32_t i = 0; i < 2; i++) {
        struct image *image = &images[i];
        CHECK(descriptor >= 0 && pwrite(descriptor, image->built.bytes, image->built.size, 0) ==
                                     (ssize_t)image->built.size);
        if (i == 1) {
            CHECK(utimensat(AT_FDCWD, path, later, 0) == 0);
            (void)read_image(&images[0], context, false, COGPU_IO_ERROR);
            CHECK(strstr(error.message, "changed"));
        }
        cogpu_close(image->file);
        CHECK(cogpu_open(path, NULL, &image->file, &error) == COGPU_OK);
        for (uint32_t j = 0; j < 2; j++) {
            cogpu_result result = read_image(image, context, false, COGPU_OK);
            CHECK(is_read(image) && result.device_cached_blocks == j * TILES);
        }
    }
    close(descriptor);
    unlink(path);
    close_image(&images[0]);
    close_image(&images[1]);
    cogpu_context_close(context);
}

/* ---- memory -------------------------------------------------------------------------------- */

static uint64_t refused_bytes;

static cogpu_status allocate_unless_large(cogpu_gpu *gpu, uint64_t bytes, void **memory,
                                          cogpu_error *why) {
    return bytes == refused_bytes ? cogpu_fail(why, COGPU_OUT_OF_MEMORY, "no slab")
                                  : original_calls->allocate(gpu, bytes, memory, why);
}

/* Without memory for slabs reads go on without the cache. */
static void test_no_memory_for_the_cache(void) {
    enum { CACHE = 160 << 20 };
    cogpu_gpu *gpu;
    cogpu_context *context = open_device(1, 1 << 30, ENOUGH, &gpu);
    struct image image = open_image(&tiles);
    CHECK(cogpu_gpu_device_open_cache(context->devices->device, CACHE, &error) == COGPU_OK);
    refused_bytes = CACHE / 16;
    replace_calls(gpu)->allocate = allocate_unless_large;
    for (uint32_t i = 0; i < 2; i++) {
        cogpu_result result = read_image(&image, context, false, COGPU_OK);
        CHECK(is_read(&image) && result.device_cached_blocks == 0 && result.device_blocks == TILES);
    }
    gpu->calls = original_calls;
    close_image(&image);
    cogpu_context_close(context);
}

/* ---- cuFile -------------------------------------------------------------------------------- */

static fake_cufile *fake;

/* Bytes that cuFile reads are cached, too; those that it could not read are not. */
static void read_by_cufile(void) {
    image_kind apart = tiles;
    apart.apart = true;
    for (uint32_t fail_each = 0; fail_each <= 2; fail_each += 2) {
        cogpu_context *context = open_cached(ENOUGH, ENOUGH);
        struct image image = open_image(&apart);
        move_to_path(&image);
        fake->fail_each = fail_each;
        cogpu_result first = read_image(&image, context, false, COGPU_OK);
        CHECK(is_read(&image) && first.gds_bytes > 0);
        CHECK((first.device_blocks == TILES) == (fail_each == 0));
        fake->fail_each = 0;
        for (uint32_t i = 0; i < 2; i++) {
            cogpu_result result = read_image(&image, context, false, COGPU_OK);
            CHECK(is_read(&image) && result.device_blocks == TILES);
            CHECK(result.device_cached_blocks == (i == 0 ? first.device_blocks : TILES));
            CHECK(result.gds_bytes == result.bytes_read);
            CHECK((result.bytes_read == 0) == (i > 0 || fail_each == 0));
        }
        close_image(&image);
        cogpu_context_close(context);
    }
}

static void test_reads_by_cufile(void) {
    in_a_process("COGPU_CUFILE", FAKE_CUFILE, "fake_cufile_control", (void **)&fake,
                 read_by_cufile);
}

TESTS(read_cached) {
    RUN(test_second_read_reads_no_block);
    RUN(test_what_is_not_cached);
    RUN(test_windows);
    RUN(test_files_have_their_own_blocks);
    RUN(test_repeats);
    RUN(test_cached_blocks_are_not_prefetched);
    RUN(test_pending_reads);
    RUN(test_small_cache);
    RUN(test_damaged_block);
    RUN(test_changed_file);
    RUN(test_no_memory_for_the_cache);
    RUN(test_reads_by_cufile);
    return FINISH();
}
