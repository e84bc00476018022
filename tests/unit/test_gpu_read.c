/*
 * Reading on a device, here the emulated one: reads that are not waited for, and bytes that go
 * straight to the device by a fake cuFile that may fail.
 */
#include "api/room.h"
#include "backend/cuda/gpu_slot.h"
#include "fake_cufile.h"
#include "gpu_test.h"
#include "stand_in.h"
#include "unit/fixture.h"

static const image_kind tiles = {
    .width = 300, .height = 270, .bits = 16, .tile_width = 64, .tile_height = 64, .compression = 8};
enum { TILES = 5 * 5 };

static cogpu_error error;

/* ---- images and contexts ------------------------------------------------------------------- */

/* A file of one image, open, and a raster on the device for all of it. */
struct image {
    const image_kind *kind;
    tiff_builder built;
    cogpu_file *file;
    cogpu_raster raster;
};

static cogpu_raster raster_on_device(const image_kind *kind, uint32_t width, uint32_t height) {
    cogpu_raster raster = raster_of(kind, width, height, kind_bands(kind));
    raster.device = COGPU_EMU;
    return raster;
}

/* The file is read from the builder's bytes, which a test may still change. */
static struct image open_built(tiff_builder built, const image_kind *kind,
                               const cogpu_open_options *options) {
    struct image image = {.kind = kind, .built = built};
    CHECK(cogpu_open_memory(built.bytes, built.size, options, &image.file, &error) == COGPU_OK);
    image.raster = raster_on_device(kind, kind->width, kind->height);
    return image;
}

static struct image open_image(const image_kind *kind) {
    tiff_builder built;
    build_one(&built, kind);
    return open_built(built, kind, NULL);
}

static void close_image(struct image *image) {
    free(image->raster.data);
    cogpu_close(image->file);
    build_close(&image->built);
}

/* From here on the file has a descriptor. */
static void move_to_path(struct image *image) {
    char path[] = "/tmp/cogpu-test-XXXXXX";
    const tiff_builder *built = &image->built;
    int descriptor = mkstemp(path);
    CHECK(descriptor >= 0 && write(descriptor, built->bytes, built->size) == (ssize_t)built->size);
    close(descriptor);
    cogpu_close(image->file);
    CHECK(cogpu_open(path, NULL, &image->file, &error) == COGPU_OK);
    unlink(path);
}

/* A byte of the block's content, far from what its codec checks first. */
static void damage(struct image *image, uint64_t block) {
    uint32_t offset = 0;
    CHECK(cogpu_tag_read(image->file, 0, 324, block, 1, &offset, &error) == COGPU_OK);
    image->built.bytes[offset + 3000] ^= 0x55;
}

static bool has_pixels(const cogpu_raster *raster, const image_kind *kind, uint32_t x, uint32_t y) {
    return pixels_match(kind, raster->data, x, y, raster->width, raster->height, NULL, 0);
}

static bool is_read(const struct image *image) {
    return has_pixels(&image->raster, image->kind, 0, 0);
}

enum { ENOUGH = 64 << 20 };

static cogpu_context *open_context(uint64_t device_bytes) {
    cogpu_context *context = NULL;
    cogpu_context_options options = {.threads = 2, .device_bytes = device_bytes};
    CHECK(cogpu_context_open(&options, &context, &error) == COGPU_OK);
    return context;
}

/* A context with a device of its own, which has so much memory; reads may take `budget` of it. */
static cogpu_context *open_device(uint64_t seed, uint64_t bytes, uint64_t budget, cogpu_gpu **gpu) {
    cogpu_context *context = open_context(ENOUGH);
    cogpu_opened_device *device = cogpu_allocate(sizeof *device);
    *device = (cogpu_opened_device){.kind = COGPU_EMU};
    CHECK(cogpu_gpu_open_emu(seed, bytes, gpu, &error) == COGPU_OK);
    CHECK(cogpu_gpu_reader_open(*gpu, budget, false, &device->reader, &error) == COGPU_OK);
    context->devices = device;
    return context;
}

/* Calls of the device that a test may replace, until it puts `calls_behind` back. */
static const cogpu_gpu_calls *calls_behind;
static cogpu_gpu_calls replaced;

static cogpu_gpu_calls *replace_calls(cogpu_gpu *gpu) {
    calls_behind = gpu->calls;
    replaced = *gpu->calls;
    gpu->calls = &replaced;
    return &replaced;
}

/* ---- reads that are not waited for --------------------------------------------------------- */

static void test_pending_reads_side_by_side(void) {
    cogpu_context *context = open_context(ENOUGH);
    struct image image = open_image(&tiles);
    cogpu_pending *whole = NULL, *part = NULL;
    cogpu_result result;
    cogpu_raster some = raster_on_device(&tiles, 90, 100),
                 last = raster_on_device(&tiles, 300, 270);
    cogpu_request request = {.context = context, .pending = &whole};
    CHECK(cogpu_read(image.file, &request, &image.raster, NULL, &error) == COGPU_OK && whole);
    request = (cogpu_request){
        .context = context, .pending = &part, .x = 50, .y = 60, .width = 90, .height = 100};
    CHECK(cogpu_read(image.file, &request, &some, NULL, &error) == COGPU_OK && part);
    request = (cogpu_request){.context = context};
    CHECK(cogpu_read(image.file, &request, &last, &result, &error) == COGPU_OK);
    CHECK(has_pixels(&last, &tiles, 0, 0) && result.device_blocks == TILES);
    CHECK(cogpu_wait(part, &result, &error) == COGPU_OK && has_pixels(&some, &tiles, 50, 60));
    CHECK(result.blocks == 9 && result.device_blocks == 9 && result.late_blocks == 0);
    CHECK(cogpu_wait(whole, &result, &error) == COGPU_OK && is_read(&image));
    CHECK(result.device_blocks == TILES);
    CHECK(cogpu_wait(NULL, NULL, &error) == COGPU_OK);
    free(some.data);
    free(last.data);
    close_image(&image);
    cogpu_context_close(context);
}

/* More blocks than are under way at once: all but the last batch are waited for. */
static void test_pending_read_of_many_blocks(void) {
    static const image_kind kind = {
        .width = 480, .height = 1600, .tile_width = 16, .tile_height = 16};
    cogpu_context *context = open_context(ENOUGH);
    struct image image = open_image(&kind);
    cogpu_pending *pending = NULL;
    cogpu_result result;
    cogpu_request request = {.context = context, .pending = &pending};
    CHECK(cogpu_read(image.file, &request, &image.raster, NULL, &error) == COGPU_OK && pending);
    CHECK(cogpu_wait(pending, &result, &error) == COGPU_OK && is_read(&image));
    CHECK(result.blocks == 3000 && result.bytes_read == 3000 * 256);
    close_image(&image);
    cogpu_context_close(context);
}

/* Memory for a few tiles of 16 KiB. */
enum { SMALL_BERTH = 320 << 10 };

/* More batches than slots and berths, with a few tiles each: none takes a berth from one that is
 * under way, in whatever order the device works. */
static void test_batches_take_turns(void) {
    for (uint32_t seed = 1; seed <= 4; seed++) {
        image_kind kind = {.width = 256,
                           .height = 3200,
                           .tile_width = 256,
                           .tile_height = 64,
                           .compression = seed % 2 ? 32773 : 1};
        char text[8];
        snprintf(text, sizeof text, "%u", seed);
        setenv("COGPU_EMU_SEED", text, 1);
        cogpu_context *context = open_context(COGPU_BERTHS * SMALL_BERTH);
        struct image image = open_image(&kind);
        cogpu_request request = {.context = context};
        cogpu_result result;
        CHECK(cogpu_read(image.file, &request, &image.raster, &result, &error) == COGPU_OK);
        CHECK(is_read(&image));
        CHECK(result.blocks == 50 && result.device_blocks == (seed % 2 ? 50 : 0));
        close_image(&image);
        cogpu_context_close(context);
    }
    unsetenv("COGPU_EMU_SEED");
}

static void test_pending_read_of_a_damaged_block(void) {
    cogpu_context *context = open_context(ENOUGH);
    struct image image = open_image(&tiles);
    cogpu_pending *pending = NULL;
    cogpu_result result;
    cogpu_request request = {.context = context, .pending = &pending};
    damage(&image, 7);
    CHECK(cogpu_read(image.file, &request, &image.raster, NULL, &error) == COGPU_OK && pending);
    CHECK(cogpu_wait(pending, &result, &error) == COGPU_CORRUPT && error.block == 7);
    CHECK(result.late_blocks == 1);
    request.fill_bad_blocks = 1;
    CHECK(cogpu_read(image.file, &request, &image.raster, NULL, &error) == COGPU_OK && pending);
    CHECK(cogpu_wait(pending, &result, &error) == COGPU_OK);
    CHECK(result.bad_blocks == 1 && result.first_bad.block == 7);
    CHECK(result.late_blocks == 1 && result.device_blocks == TILES - 1);
    const uint16_t *pixels = image.raster.data;
    CHECK(pixels[64 * 300 + 128] == 0 && pixels[0] == kind_sample(&tiles, 0, 0, 0));
    close_image(&image);
    cogpu_context_close(context);
}

/* A thread that reads on a context which others use, too. */
struct user {
    cogpu_context *context;
    const cogpu_file *files[3]; /* the last is large, so that slots are opened anew for it */
    cogpu_raster left;
    cogpu_pending *pending; /* the last read, for another thread to wait for */
    bool is_good;
};

static const image_kind uncoded = {
    .width = 300, .height = 270, .bits = 16, .tile_width = 64, .tile_height = 64, .seed = 9};
static const image_kind packed = {
    .width = 2048, .height = 600, .tile_width = 2048, .tile_height = 608, .compression = 32773};

static void *read_in_turns(void *argument) {
    struct user *user = argument;
    const image_kind *const kinds[] = {&tiles, &uncoded, &packed};
    user->is_good = true;
    for (uint32_t i = 0; i < 6; i++) {
        const image_kind *kind = kinds[i % 3];
        cogpu_pending *pending = NULL;
        cogpu_error mine;
        cogpu_raster pixels = raster_on_device(kind, 200, 100),
                     mask = raster_on_device(&packed, 200, 100);
        cogpu_request request = {.x = 31,
                                 .y = 70,
                                 .width = 200,
                                 .height = 100,
                                 .context = user->context,
                                 .pending = &pending};
        user->is_good &= cogpu_read(user->files[i % 3], &request, &pixels, NULL, &mine) == COGPU_OK;
        request.part = COGPU_MASK;
        request.pending = NULL;
        user->is_good &= cogpu_read(user->files[i % 3], &request, &mask, NULL, &mine) == COGPU_OK;
        user->is_good &= cogpu_wait(pending, NULL, &mine) == COGPU_OK;
        user->is_good &= has_pixels(&pixels, kind, 31, 70) && *(uint8_t *)mask.data == 255;
        free(pixels.data);
        free(mask.data);
    }
    cogpu_request request = {.context = user->context, .pending = &user->pending};
    user->is_good &= cogpu_read(user->files[0], &request, &user->left, NULL, NULL) == COGPU_OK;
    return NULL;
}

static void test_many_threads_on_one_context(void) {
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    struct user users[THREADS];
    cogpu_context *context = open_context(ENOUGH);
    struct image images[] = {open_image(&tiles), open_image(&uncoded), open_image(&packed)};
    for (uint32_t i = 0; i < THREADS; i++) {
        users[i] = (struct user){.context = context,
                                 .files = {images[0].file, images[1].file, images[2].file},
                                 .left = raster_on_device(&tiles, 300, 270)};
        CHECK(pthread_create(&threads[i], NULL, read_in_turns, &users[i]) == 0);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        CHECK(cogpu_wait(users[i].pending, NULL, &error) == COGPU_OK && users[i].is_good);
        CHECK(has_pixels(&users[i].left, &tiles, 0, 0));
        free(users[i].left.data);
    }
    for (uint32_t i = 0; i < 3; i++)
        close_image(&images[i]);
    cogpu_context_close(context);
}

/* A read that the device has no memory for must not harm one that is pending: its damaged block is
 * still to come when there are no slots any more. */
static void test_pending_read_beside_one_that_lacks_memory(void) {
    static const image_kind kind = {
        .width = 2048, .height = 1024, .tile_width = 2048, .tile_height = 1024, .compression = 8};
    cogpu_gpu *gpu;
    cogpu_context *context = open_device(1, 40 << 20, 1 << 30, &gpu);
    struct image image = open_image(&tiles), large = open_image(&kind);
    cogpu_pending *pending = NULL;
    cogpu_result result;
    cogpu_request request = {.context = context, .pending = &pending, .fill_bad_blocks = 1};
    damage(&image, 7);
    CHECK(cogpu_read(image.file, &request, &image.raster, NULL, &error) == COGPU_OK && pending);
    request = (cogpu_request){.context = context};
    CHECK(cogpu_read(large.file, &request, &large.raster, NULL, &error) == COGPU_MEMORY);
    CHECK(cogpu_wait(pending, &result, &error) == COGPU_OK);
    CHECK(result.bad_blocks == 1 && result.late_blocks == 1);
    CHECK(((uint16_t *)image.raster.data)[64 * 300 + 128] == 0);
    close_image(&image);
    close_image(&large);
    cogpu_context_close(context);
}

/* Of many batches, where berths are small. */
static const image_kind narrow = {
    .width = 256, .height = 3200, .tile_width = 256, .tile_height = 64};
enum { NARROW_BYTES = 256 * 3200 };

/* A read whose only block does not fit a slot. */
static void read_too_large(cogpu_gpu_reader *reader) {
    cogpu_storage storage = {.format = {.row_bytes = 1 << 20}};
    cogpu_read_plan plan = {.storage = &storage};
    cogpu_raster raster = {0};
    cogpu_gpu_task task = {
        .plan = &plan, .raster = &raster, .block = {.needed_rows = 1}, .span = {8, 1 << 20}};
    cogpu_stages stages = {0};
    cogpu_gpu_work work = {.tasks = &task, .count = 1, .seat_count = 1, .stages = &stages};
    CHECK(cogpu_gpu_start(reader, &work, &error) == COGPU_LIMIT);
}

/* The first is on its way; neither has pixels from before. */
static cogpu_pending *start_first(struct image *first, struct image *second,
                                  cogpu_context *context) {
    cogpu_pending *pending = NULL;
    cogpu_request request = {.context = context, .pending = &pending};
    memset(first->raster.data, 0, NARROW_BYTES);
    memset(second->raster.data, 0, NARROW_BYTES);
    CHECK(cogpu_read(first->file, &request, &first->raster, NULL, &error) == COGPU_OK);
    return pending;
}

/* Now the second is read, and the first waited for. */
static void end_both(struct image *first, struct image *second, cogpu_context *context,
                     cogpu_pending *pending) {
    cogpu_request request = {.context = context};
    CHECK(cogpu_read(second->file, &request, &second->raster, NULL, &error) == COGPU_OK);
    CHECK(is_read(second));
    CHECK(cogpu_wait(pending, NULL, &error) == COGPU_OK && is_read(first));
}

/* Reads that are refused when a slot and a berth are taken for them already: those before and after
 * are right, however many they were. */
static void test_refused_reads_between_others(void) {
    struct image first = open_image(&narrow), second = open_image(&narrow);
    for (uint32_t refused = COGPU_BERTHS - 2; refused < COGPU_BERTHS; refused++) {
        cogpu_gpu *gpu;
        cogpu_context *context = open_device(refused, 1 << 30, COGPU_BERTHS * SMALL_BERTH, &gpu);
        cogpu_pending *pending = start_first(&first, &second, context);
        for (uint32_t i = 0; i < refused; i++)
            read_too_large(context->devices->reader);
        end_both(&first, &second, context, pending);
        cogpu_context_close(context);
    }
    close_image(&first);
    close_image(&second);
}

static uint32_t copies_left;

static cogpu_status copy_up_or_fail(cogpu_gpu *gpu, void *to, const void *from, uint64_t bytes,
                                    cogpu_gpu_stream *stream, cogpu_error *why) {
    if (copies_left-- == 0)
        return cogpu_fail(why, COGPU_DEVICE, "a copy is made to fail");
    return calls_behind->copy_up(gpu, to, from, bytes, stream, why);
}

/* A read that fails with batches under way and others that wait for berths, some of which another
 * read has: that one and the next are right. */
static void test_failed_reads_between_others(void) {
    struct image first = open_image(&narrow), second = open_image(&narrow);
    for (uint32_t copies = 0; copies <= COGPU_SLOTS; copies += 2) {
        cogpu_gpu *gpu;
        cogpu_context *context = open_device(copies + 1, 1 << 30, COGPU_BERTHS * SMALL_BERTH, &gpu);
        cogpu_request request = {.context = context};
        cogpu_pending *pending = start_first(&first, &second, context);
        copies_left = copies;
        replace_calls(gpu)->copy_up = copy_up_or_fail;
        CHECK(cogpu_read(second.file, &request, &second.raster, NULL, &error) == COGPU_DEVICE);
        gpu->calls = calls_behind;
        end_both(&first, &second, context, pending);
        cogpu_context_close(context);
    }
    close_image(&first);
    close_image(&second);
}

/* A block that fills a berth, but for what the berth loses where it begins at a page. */
static void test_a_block_that_fills_a_berth(void) {
    image_kind kind = {.height = 2};
    for (uint32_t less = 0; less <= COGPU_STAGING; less += COGPU_STAGING) {
        cogpu_context *context = open_context(ENOUGH);
        kind.width = (4 << 20) - COGPU_SLOT_OVERHEAD - less;
        struct image image = open_image(&kind);
        cogpu_request request = {.context = context};
        CHECK(cogpu_read(image.file, &request, &image.raster, NULL, &error) == COGPU_OK);
        CHECK(is_read(&image));
        close_image(&image);
        cogpu_context_close(context);
    }
}

/* Blocks without data take no memory of the device. */
static void test_sparse_blocks_take_no_memory(void) {
    static const uint64_t sparse[] = {0, UINT64_MAX};
    static const image_kind kind = {.width = 2048,
                                    .height = 1024,
                                    .tile_width = 2048,
                                    .tile_height = 1024,
                                    .compression = 8,
                                    .sparse = sparse};
    cogpu_gpu *gpu;
    cogpu_context *context = open_device(1, 40 << 20, 1 << 30, &gpu);
    struct image image = open_image(&kind);
    cogpu_result result;
    cogpu_request request = {.context = context};
    CHECK(cogpu_read(image.file, &request, &image.raster, &result, &error) == COGPU_OK);
    CHECK(result.sparse_blocks == 1 && ((uint8_t *)image.raster.data)[2048 * 1024 - 1] == 0);
    close_image(&image);
    cogpu_context_close(context);
}

static void test_nothing_is_pending_on_the_host(void) {
    struct image image = open_image(&tiles);
    cogpu_raster *raster = &image.raster;
    int mark;
    cogpu_pending *pending = (cogpu_pending *)(void *)&mark;
    cogpu_result result;
    cogpu_request request = {.pending = &pending};
    raster->device = COGPU_CPU;
    CHECK(cogpu_read(image.file, &request, raster, &result, &error) == COGPU_OK && !pending);
    CHECK(is_read(&image) && result.blocks == TILES);
    request.width = 999;
    CHECK(cogpu_read(image.file, &request, raster, &result, &error) == COGPU_ARGUMENT && !pending);
    pending = (cogpu_pending *)(void *)&mark;
    CHECK(cogpu_read(NULL, &request, raster, &result, &error) == COGPU_ARGUMENT && !pending);
    pending = (cogpu_pending *)(void *)&mark;
    CHECK(cogpu_read(image.file, &request, NULL, &result, &error) == COGPU_ARGUMENT && !pending);
    close_image(&image);
}

/* A block that is not in the file is filled, and none of its bytes are read. */
static void test_a_block_beyond_the_file(void) {
    cogpu_context *context = open_context(ENOUGH);
    struct image image = open_image(&tiles);
    const tiff_builder *built = &image.built;
    cogpu_result result;
    cogpu_tag tag = {0};
    cogpu_request request = {.context = context, .fill_bad_blocks = 1};
    for (uint32_t i = 0; tag.id != 324; i++)
        CHECK(cogpu_tag_info(image.file, 0, i, &tag, &error) == COGPU_OK);
    build_put(built, built->bytes + tag.value_offset + 7 * sizeof(uint32_t), 0x7FFFFF00, 4);
    CHECK(cogpu_read(image.file, &request, &image.raster, &result, &error) == COGPU_OK);
    CHECK(result.bad_blocks == 1 && result.first_bad.block == 7);
    CHECK(result.bytes_read < built->size - 8000 && result.sparse_blocks == 0);
    close_image(&image);
    cogpu_context_close(context);
}

/* The builder's bytes, of which some cannot be read, ever or the first two times. */
struct holed {
    const tiff_builder *built;
    uint64_t first, end;
    bool is_passing;
    uint32_t failed;
};

static cogpu_status read_around(void *user, uint64_t offset, size_t bytes, void *to, size_t *got) {
    struct holed *holed = user;
    uint64_t left = holed->built->size - offset;
    bool hits = offset < holed->end && offset + bytes > holed->first;
    if (hits && !(__atomic_fetch_add(&holed->failed, 1, __ATOMIC_RELAXED) > 1 && holed->is_passing))
        return COGPU_IO;
    *got = bytes < left ? bytes : (size_t)left;
    memcpy(to, holed->built->bytes + offset, *got);
    return COGPU_OK;
}

static cogpu_status size_around(void *user, uint64_t *bytes) {
    *bytes = ((struct holed *)user)->built->size;
    return COGPU_OK;
}

/* Of a block that needs no decoder many threads read; what they could not is told once, of the
 * block, which the other does not suffer from. */
static void test_a_plain_block_that_cannot_be_read(void) {
    static const image_kind plain = {
        .width = 2048, .height = 900, .tile_width = 2048, .tile_height = 496};
    enum { BYTES = 2048 * 496 };
    for (int i = 0; i < 2; i++) {
        cogpu_context *context = open_context(ENOUGH);
        struct image image = open_image(&plain);
        struct holed holed = {.built = &image.built, .is_passing = i == 1};
        cogpu_source source = {.user = &holed, .read = read_around, .size = size_around};
        cogpu_request request = {.context = context, .fill_bad_blocks = 1};
        cogpu_raster below = raster_on_device(&plain, 2048, 900 - 496);
        cogpu_result result;
        uint32_t offset = 0;
        CHECK(cogpu_tag_read(image.file, 0, 324, 0, 1, &offset, &error) == COGPU_OK);
        holed.first = offset + BYTES / 4;
        holed.end = offset + BYTES - 5;
        cogpu_close(image.file);
        CHECK(cogpu_open_source(&source, NULL, &image.file, &error) == COGPU_OK);
        CHECK(cogpu_read(image.file, &request, &image.raster, &result, &error) == COGPU_OK);
        CHECK(holed.failed > 1 && result.bad_blocks == (i == 0) && is_read(&image) == (i == 1));
        CHECK(i == 1 || result.first_bad.block == 0);
        memcpy(below.data, (uint8_t *)image.raster.data + BYTES, 2048 * (900 - 496));
        CHECK(has_pixels(&below, &plain, 0, 496));
        request.fill_bad_blocks = 0;
        CHECK(cogpu_read(image.file, &request, &image.raster, &result, &error) ==
              (i == 0 ? COGPU_IO : COGPU_OK));
        free(below.data);
        close_image(&image);
        cogpu_context_close(context);
    }
}

/* The host and the device read the image, or refuse it, alike. */
static void check_both(struct image *image, cogpu_status expected) {
    cogpu_context *context = open_context(ENOUGH);
    cogpu_request request = {.context = context, .threads = 1};
    for (int i = 0; i < 2; i++) {
        image->raster.device = i ? COGPU_EMU : COGPU_CPU;
        CHECK(cogpu_read(image->file, &request, &image->raster, NULL, &error) == expected);
    }
    cogpu_context_close(context);
}

/* Stored bytes of a block are compared with the limit, wherever they are decoded. */
static void test_limit_of_stored_bytes(void) {
    enum { DECODED = 64 * 64 * 2, STORED = DECODED + 11 };
    for (uint64_t limit = STORED - 1; limit <= STORED; limit++) {
        cogpu_open_options options = {.limits.block_bytes = limit};
        tiff_builder built;
        build_one(&built, &tiles);
        struct image image = open_built(built, &tiles, &options);
        check_both(&image, limit < STORED ? COGPU_LIMIT : COGPU_OK);
        close_image(&image);
    }
}

/* So are decoded bytes. */
static void test_limit_of_decoded_bytes(void) {
    enum { SIDE = 128, STORED = 2 * SIDE };
    static const image_kind kind = {.width = SIDE, .height = SIDE};
    uint8_t runs[STORED];
    for (uint32_t i = 0; i < SIDE; i++) {
        runs[2 * i] = (uint8_t)(1 - SIDE);
        runs[2 * i + 1] = (uint8_t)i;
    }
    for (int is_allowed = 0; is_allowed < 2; is_allowed++) {
        cogpu_open_options options = {.limits.block_bytes = is_allowed ? SIDE * SIDE : 1000};
        tiff_builder built;
        build_open(&built, false, false);
        build_image(&built, SIDE, SIDE, 1, 8, 1, NULL);
        build_put(&built, built.entries[3].value, 32773, 2);
        build_put(&built, built.entries[5].value, build_data(&built, runs, STORED), 4);
        build_put(&built, built.entries[8].value, STORED, 4);
        build_directory(&built, true);
        struct image image = open_built(built, &kind, &options);
        check_both(&image, is_allowed ? COGPU_OK : COGPU_LIMIT);
        close_image(&image);
    }
}

/* Pixels that are NaN by a mask are waited for; the bits are those that the host gives. */
static void test_nan_is_not_pending(void) {
    static const image_kind mask = {.width = 300,
                                    .height = 270,
                                    .tile_width = 64,
                                    .tile_height = 64,
                                    .subfile_type = 4,
                                    .compression = 8};
    tiff_builder built;
    build_open(&built, false, false);
    build_kind(&built, &tiles);
    build_directory(&built, true);
    build_kind(&built, &mask);
    build_directory(&built, true);
    cogpu_context *context = open_context(ENOUGH);
    struct image image = open_built(built, &tiles, NULL);
    cogpu_pending *pending = NULL;
    cogpu_result result;
    size_t bytes = sizeof(float) * 300 * 270;
    cogpu_raster raster = {.type = COGPU_F32, .bands = 1, .width = 300, .height = 270};
    cogpu_request request = {.context = context, .nan_where_invalid = 1};
    float *expected = raster.data = malloc(bytes);
    CHECK(cogpu_read(image.file, &request, &raster, NULL, &error) == COGPU_OK);
    CHECK(expected[0] != expected[0] && expected[1] == kind_sample(&tiles, 0, 1, 0));
    raster.data = malloc(bytes);
    raster.device = COGPU_EMU;
    request.pending = &pending;
    CHECK(cogpu_read(image.file, &request, &raster, &result, &error) == COGPU_OK && !pending);
    CHECK(memcmp(raster.data, expected, bytes) == 0 && result.device_blocks == 2 * TILES);
    free(raster.data);
    free(expected);
    close_image(&image);
    cogpu_context_close(context);
}

/* Each device's items are read, and the first that failed is the call's. */
static void test_items_of_many_devices(void) {
    cogpu_context *context = open_context(ENOUGH);
    struct image image = open_image(&tiles);
    cogpu_read_item items[5] = {{0}};
    for (uint32_t i = 0; i < 5; i++)
        items[i] = (cogpu_read_item){.file = image.file, .raster = raster_of(&tiles, 300, 270, 1)};
    items[1].raster.device = items[3].raster.device = items[4].raster.device = COGPU_EMU;
    items[1].request.level = 7;
    items[2].request.width = 999;
    items[4].raster.device_index = 1;
    CHECK(cogpu_read_many(items, 5, context, &error) == COGPU_ABSENT);
    CHECK(error.status == COGPU_ABSENT && items[1].status == COGPU_ABSENT);
    CHECK(items[0].status == COGPU_OK && has_pixels(&items[0].raster, &tiles, 0, 0));
    CHECK(items[2].status == COGPU_ARGUMENT && items[4].status == COGPU_DEVICE);
    CHECK(items[3].status == COGPU_OK && has_pixels(&items[3].raster, &tiles, 0, 0));
    CHECK(items[0].result.device_blocks == 0 && items[3].result.device_blocks == TILES);
    CHECK(cogpu_read_many(items, 5, NULL, &error) == COGPU_ARGUMENT);
    CHECK(items[0].status == COGPU_OK && items[3].status == COGPU_ARGUMENT);
    for (uint32_t i = 0; i < 5; i++)
        free(items[i].raster.data);
    close_image(&image);
    cogpu_context_close(context);
}

/* ---- rows that the host has ---------------------------------------------------------------- */

static cogpu_gpu_reader *open_reader(uint64_t seed, uint64_t budget, cogpu_gpu **gpu) {
    cogpu_gpu_reader *reader = NULL;
    *gpu = gpu_test_open(seed);
    CHECK(cogpu_gpu_reader_open(*gpu, budget, false, &reader, &error) == COGPU_OK);
    return reader;
}

/* ---- bytes in pinned memory of the caller -------------------------------------------------- */

static const uint8_t *lent_from, *lent_to;
static uint64_t lent_bytes;

static cogpu_status copy_up_and_count(cogpu_gpu *gpu, void *to, const void *from, uint64_t bytes,
                                      cogpu_gpu_stream *stream, cogpu_error *why) {
    const uint8_t *at = from;
    if (at >= lent_from && at < lent_to) {
        CHECK(bytes <= (uint64_t)(lent_to - at));
        lent_bytes += bytes;
    }
    return calls_behind->copy_up(gpu, to, from, bytes, stream, why);
}

/* A read of the file in the caller's memory, with a limit for blocks. */
static cogpu_status read_lent(struct image *image, cogpu_context *context, uint64_t block_bytes) {
    cogpu_request request = {.context = context};
    cogpu_open_options options = {.limits.block_bytes = block_bytes};
    size_t size = image->built.size;
    lent_to = lent_from + size;
    lent_bytes = 0;
    cogpu_close(image->file);
    CHECK(cogpu_open_memory(lent_from, size, &options, &image->file, &error) == COGPU_OK);
    return cogpu_read(image->file, &request, &image->raster, NULL, &error);
}

/* Bytes in pinned memory are copied up from there, all others by way of the reader's own. The
 * file's limits hold for both. */
static void test_bytes_in_pinned_memory(void) {
    for (uint32_t i = 0; i < 4; i++) {
        image_kind kind = {.width = 900,
                           .height = 1200,
                           .tile_width = 512,
                           .tile_height = 256,
                           .compression = i % 2 ? 32773 : 1};
        bool is_pinned = i < 2;
        cogpu_gpu *gpu;
        cogpu_context *context = open_device(i + 1, 1 << 30, 8 << 20, &gpu);
        struct image image = open_image(&kind);
        size_t size = image.built.size;
        void *pinned = NULL;
        CHECK(gpu->calls->allocate_pinned(gpu, size, &pinned, &error) == COGPU_OK);
        memcpy(pinned, image.built.bytes, size);
        lent_from = is_pinned ? pinned : image.built.bytes;
        replace_calls(gpu)->copy_up = copy_up_and_count;
        CHECK(read_lent(&image, context, 0) == COGPU_OK && is_read(&image));
        CHECK(is_pinned ? lent_bytes > 900 * 1200 && lent_bytes < size : lent_bytes == 0);
        CHECK(read_lent(&image, context, 512 * 256 - 1) == COGPU_LIMIT);
        gpu->calls = calls_behind;
        gpu->calls->release_pinned(gpu, pinned);
        close_image(&image);
        cogpu_context_close(context);
    }
}

static uint64_t pinned_bytes;

static cogpu_status allocate_pinned_and_count(cogpu_gpu *gpu, uint64_t bytes, void **memory,
                                              cogpu_error *why) {
    pinned_bytes += bytes;
    return calls_behind->allocate_pinned(gpu, bytes, memory, why);
}

/* Pinned memory is taken as reads need it: little for a small one, more when a large one comes, and
 * no more for the next. */
static void test_pinned_memory_is_taken_as_needed(void) {
    static const image_kind kinds[] = {
        {.width = 256, .height = 256, .tile_width = 256, .tile_height = 256},
        {.width = 4096, .height = 4096, .tile_width = 512, .tile_height = 512},
        {.width = 256, .height = 256, .tile_width = 256, .tile_height = 256}};
    static const uint64_t most[] = {1 << 20, 80 << 20, 0};
    cogpu_gpu *gpu;
    cogpu_context *context = open_device(1, 1 << 30, 512 << 20, &gpu);
    cogpu_request request = {.context = context};
    replace_calls(gpu)->allocate_pinned = allocate_pinned_and_count;
    for (uint32_t i = 0; i < 3; i++) {
        struct image image = open_image(&kinds[i]);
        pinned_bytes = 0;
        CHECK(cogpu_read(image.file, &request, &image.raster, NULL, &error) == COGPU_OK);
        CHECK(is_read(&image) && pinned_bytes <= most[i] && (pinned_bytes > 0) == (i < 2));
        close_image(&image);
    }
    gpu->calls = calls_behind;
    cogpu_context_close(context);
}

/* ---- the raster's stream ------------------------------------------------------------------- */

/* A read comes after what the stream held, and before what it gets next: pixels that are copied
 * from the raster in its stream, before anybody has waited, are those of the image. A damaged block
 * is filled by cogpu_wait, after what the stream got in between. */
static void test_order_in_the_stream(void) {
    enum { BYTES = 2 * 300 * 270, DAMAGED = 7 };
    for (uint64_t seed = 1; seed <= 8; seed++) {
        cogpu_gpu *gpu;
        cogpu_context *context = open_device(seed, 1 << 30, ENOUGH, &gpu);
        const cogpu_gpu_calls *calls = gpu->calls;
        struct image image = open_image(&tiles);
        cogpu_raster *raster = &image.raster, seen = raster_on_device(&tiles, 300, 270);
        cogpu_gpu_stream *stream = NULL;
        cogpu_pending *pending = NULL;
        cogpu_request request = {.context = context, .pending = &pending, .fill_bad_blocks = 1};
        void *junk = malloc(BYTES);
        memset(junk, 0xA5, BYTES);
        if (seed > 4)
            damage(&image, DAMAGED);
        CHECK(calls->stream_open(gpu, false, &stream, &error) == COGPU_OK);
        raster->stream = stream;
        CHECK(calls->copy_up(gpu, raster->data, junk, BYTES, stream, &error) == COGPU_OK);
        CHECK(cogpu_read(image.file, &request, raster, NULL, &error) == COGPU_OK && pending);
        CHECK(calls->copy_down(gpu, seen.data, raster->data, BYTES, stream, &error) == COGPU_OK);
        CHECK(calls->copy_up(gpu, raster->data, junk, BYTES, stream, &error) == COGPU_OK);
        CHECK(cogpu_wait(pending, NULL, &error) == COGPU_OK);
        CHECK(calls->finish_stream(gpu, stream, &error) == COGPU_OK);
        const uint16_t *pixels = raster->data, *damaged = pixels + 64 * 300 + 128;
        CHECK(seed > 4 ? *damaged == 0 : has_pixels(&seen, &tiles, 0, 0));
        CHECK(pixels[0] == 0xA5A5);
        calls->stream_close(gpu, stream);
        free(seen.data);
        free(junk);
        close_image(&image);
        cogpu_context_close(context);
    }
}

/* The second of two reads in a stream comes after what the stream got since the first. */
static void test_second_read_in_the_stream(void) {
    enum { BYTES = 2 * 300 * 270 };
    struct image images[2] = {open_image(&tiles), open_image(&tiles)};
    void *junk = malloc(BYTES);
    memset(junk, 0xA5, BYTES);
    for (uint64_t seed = 1; seed <= 4; seed++) {
        cogpu_gpu *gpu;
        cogpu_context *context = open_device(seed, 1 << 30, ENOUGH, &gpu);
        cogpu_gpu_stream *stream = NULL;
        cogpu_pending *pending[2] = {NULL};
        CHECK(gpu->calls->stream_open(gpu, false, &stream, &error) == COGPU_OK);
        for (uint32_t i = 0; i < 2; i++) {
            cogpu_raster raster = images[i].raster;
            cogpu_request request = {.context = context, .pending = &pending[i]};
            raster.stream = stream;
            CHECK(gpu->calls->copy_up(gpu, raster.data, junk, BYTES, stream, &error) == COGPU_OK);
            CHECK(cogpu_read(images[i].file, &request, &raster, NULL, &error) == COGPU_OK);
        }
        for (uint32_t i = 0; i < 2; i++)
            CHECK(cogpu_wait(pending[i], NULL, &error) == COGPU_OK);
        CHECK(gpu->calls->finish_stream(gpu, stream, &error) == COGPU_OK);
        CHECK(is_read(&images[0]) && is_read(&images[1]));
        gpu->calls->stream_close(gpu, stream);
        cogpu_context_close(context);
    }
    for (uint32_t i = 0; i < 2; i++)
        close_image(&images[i]);
    free(junk);
}

/* Rasters with streams of their own: each is written after what its stream held. */
static void test_rasters_of_many_streams(void) {
    enum { COUNT = 3, STREAMS = 2, BYTES = 2 * 300 * 270 };
    struct image images[COUNT];
    void *junk = malloc(BYTES);
    memset(junk, 0xA5, BYTES);
    for (uint32_t i = 0; i < COUNT; i++)
        images[i] = open_image(&tiles);
    for (uint64_t seed = 1; seed <= 4; seed++) {
        cogpu_gpu *gpu;
        cogpu_context *context = open_device(seed, 1 << 30, ENOUGH, &gpu);
        const cogpu_gpu_calls *calls = gpu->calls;
        cogpu_gpu_stream *streams[STREAMS] = {NULL};
        cogpu_read_item items[COUNT] = {{0}};
        for (uint32_t i = 0; i < STREAMS; i++)
            CHECK(calls->stream_open(gpu, false, &streams[i], &error) == COGPU_OK);
        for (uint32_t i = 0; i < COUNT; i++) {
            items[i] = (cogpu_read_item){.file = images[i].file, .raster = images[i].raster};
            items[i].raster.stream = streams[i % STREAMS];
            CHECK(calls->copy_up(gpu, items[i].raster.data, junk, BYTES, streams[i % STREAMS],
                                 &error) == COGPU_OK);
        }
        CHECK(cogpu_read_many(items, COUNT, context, &error) == COGPU_OK);
        for (uint32_t i = 0; i < STREAMS; i++)
            CHECK(calls->finish_stream(gpu, streams[i], &error) == COGPU_OK);
        for (uint32_t i = 0; i < COUNT; i++)
            CHECK(is_read(&images[i]));
        for (uint32_t i = 0; i < STREAMS; i++)
            calls->stream_close(gpu, streams[i]);
        cogpu_context_close(context);
    }
    for (uint32_t i = 0; i < COUNT; i++)
        close_image(&images[i]);
    free(junk);
}

static pthread_t reading_thread;
static uint32_t noted, noted_elsewhere;

static void note_thread(const cogpu_gpu_stream *stream) {
    if (stream != COGPU_GPU_PER_THREAD)
        return;
    __atomic_add_fetch(&noted, 1, __ATOMIC_RELAXED);
    if (!pthread_equal(pthread_self(), reading_thread))
        __atomic_add_fetch(&noted_elsewhere, 1, __ATOMIC_RELAXED);
}

static cogpu_status record_noting(cogpu_gpu *gpu, cogpu_gpu_event *event, cogpu_gpu_stream *stream,
                                  cogpu_error *told) {
    note_thread(stream);
    return calls_behind->record(gpu, event, stream, told);
}

static cogpu_status wait_noting(cogpu_gpu *gpu, cogpu_gpu_stream *stream, cogpu_gpu_event *event,
                                cogpu_error *told) {
    note_thread(stream);
    return calls_behind->wait_event(gpu, stream, event, told);
}

/* Others than the calling thread are the last. */
static cogpu_status read_slowly(void *user, uint64_t offset, size_t bytes, void *to, size_t *got) {
    usleep(pthread_equal(pthread_self(), reading_thread) ? 200 : 1000);
    return read_around(user, offset, bytes, to, got);
}

/* A default stream of the calling thread: to others its handle means one of their own. Blocks that
 * need no decoding are placed by whoever fetched the last of them. */
static void test_stream_of_the_calling_thread(void) {
    enum { ITEMS = 40 };
    static const image_kind kind = {
        .width = 192, .height = 192, .tile_width = 192, .tile_height = 192};
    cogpu_gpu *gpu;
    cogpu_context *context = open_device(1, 1 << 30, COGPU_BERTHS * SMALL_BERTH, &gpu);
    cogpu_gpu_calls *calls = replace_calls(gpu);
    struct image image = open_image(&kind);
    struct holed whole = {.built = &image.built};
    const cogpu_source source = {.user = &whole, .read = read_slowly, .size = size_around};
    cogpu_read_item items[ITEMS] = {{0}};
    cogpu_pending *pending = NULL;
    cogpu_request request = {.context = context, .pending = &pending};
    cogpu_close(image.file);
    CHECK(cogpu_open_source(&source, NULL, &image.file, &error) == COGPU_OK);
    reading_thread = pthread_self();
    noted = noted_elsewhere = 0;
    calls->record = record_noting;
    calls->wait_event = wait_noting;
    image.raster.stream = COGPU_GPU_PER_THREAD;
    CHECK(cogpu_read(image.file, &request, &image.raster, NULL, &error) == COGPU_OK && pending);
    CHECK(cogpu_wait(pending, NULL, &error) == COGPU_OK && is_read(&image));
    CHECK(noted >= 2 && noted_elsewhere == 0);
    for (uint32_t i = 0; i < ITEMS; i++) {
        items[i] =
            (cogpu_read_item){.file = image.file, .raster = raster_on_device(&kind, 192, 192)};
        items[i].raster.stream = i % 2 ? NULL : COGPU_GPU_PER_THREAD;
    }
    CHECK(cogpu_read_many(items, ITEMS, context, &error) == COGPU_OK && noted_elsewhere == 0);
    for (uint32_t i = 0; i < ITEMS; i++) {
        CHECK(has_pixels(&items[i].raster, &kind, 0, 0));
        free(items[i].raster.data);
    }
    gpu->calls = calls_behind;
    close_image(&image);
    cogpu_context_close(context);
}

/* What the raster's stream holds already is done before rows are put into the raster. */
static void test_rows_wait_for_the_raster(void) {
    const uint8_t before[8] = {0}, rows[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (uint64_t seed = 1; seed <= 8; seed++) {
        cogpu_gpu *gpu;
        cogpu_gpu_reader *reader = open_reader(seed, 64 << 20, &gpu);
        cogpu_gpu_stream *stream = NULL;
        cogpu_raster raster = {.type = COGPU_U8, .bands = 1, .width = 4, .height = 2};
        uint8_t got[8] = {0};
        raster.stride_x = 1;
        raster.stride_y = 4;
        raster.stride_band = 8;
        CHECK(cogpu_gpu_reader_allocate(reader, 8, &raster.data, &error) == COGPU_OK);
        CHECK(gpu->calls->stream_open(gpu, false, &stream, &error) == COGPU_OK);
        raster.stream = stream;
        CHECK(gpu->calls->copy_up(gpu, raster.data, before, 8, stream, &error) == COGPU_OK);
        CHECK(cogpu_gpu_put(reader, rows, 2, &raster, 0, &error) == COGPU_OK);
        CHECK(gpu->calls->finish_stream(gpu, stream, &error) == COGPU_OK);
        CHECK(cogpu_gpu_reader_copy(reader, got, raster.data, 8, true, &error) == COGPU_OK);
        CHECK(memcmp(got, rows, 8) == 0);
        gpu->calls->stream_close(gpu, stream);
        cogpu_gpu_reader_release(reader, raster.data);
        cogpu_gpu_reader_close(reader);
    }
}

/* Rows of any length that fit the memory which reads may take, however little it is. */
static void test_rows_fit_little_memory(void) {
    enum { SLOT = 64 << 10, ROWS = 5, LONGEST = SLOT + 512 };
    cogpu_gpu *gpu;
    cogpu_gpu_reader *reader = open_reader(1, COGPU_BERTHS * SLOT, &gpu);
    uint8_t *rows = malloc(ROWS * LONGEST), *got = malloc(ROWS * LONGEST);
    cogpu_raster raster = {.type = COGPU_U8, .bands = 1, .height = ROWS, .stride_x = 1};
    for (uint32_t i = 0; i < ROWS * LONGEST; i++)
        rows[i] = (uint8_t)(i * 37 + i / 251);
    CHECK(cogpu_gpu_reader_allocate(reader, ROWS * LONGEST, &raster.data, &error) == COGPU_OK);
    for (uint32_t width = 1000; width <= LONGEST; width += width < SLOT - 8192 ? 7000 : 256) {
        raster.width = width;
        raster.stride_y = width;
        raster.stride_band = (int64_t)ROWS * width;
        cogpu_status status = cogpu_gpu_put(reader, rows, ROWS, &raster, 0, &error);
        CHECK(status == COGPU_OK || (status == COGPU_LIMIT && width > SLOT - 8192));
        if (status != COGPU_OK)
            continue;
        CHECK(cogpu_gpu_reader_copy(reader, got, raster.data, (uint64_t)ROWS * width, true,
                                    &error) == COGPU_OK);
        CHECK(memcmp(got, rows, (size_t)ROWS * width) == 0);
    }
    cogpu_gpu_reader_release(reader, raster.data);
    cogpu_gpu_reader_close(reader);
    free(rows);
    free(got);
}

/* ---- straight to the device ---------------------------------------------------------------- */

static fake_cufile *fake;

static void with_cufile(const char *path, void (*test)(void)) {
    in_a_process("COGPU_CUFILE", path, "fake_cufile_control", (void **)&fake, test);
}

/* Reads the image from a path, and closes it. */
static cogpu_result read_directly_within(uint64_t device_bytes, struct image image,
                                         cogpu_status expected) {
    cogpu_context *context = open_context(device_bytes);
    cogpu_request request = {.context = context};
    cogpu_result result;
    move_to_path(&image);
    CHECK(cogpu_read(image.file, &request, &image.raster, &result, &error) == expected);
    CHECK(expected != COGPU_OK || is_read(&image));
    close_image(&image);
    cogpu_context_close(context);
    CHECK(fake->files == 0 && fake->memories == 0 && fake->batches == 0);
    CHECK(fake->wrong == 0 && fake->unaligned == 0 && fake->closed_under_way == 0);
    return result;
}

static cogpu_result read_directly(struct image image, cogpu_status expected) {
    return read_directly_within(ENOUGH, image, expected);
}

static void all_is_direct(void) {
    cogpu_result result = read_directly(open_image(&tiles), COGPU_OK);
    CHECK(result.direct_bytes == result.bytes_read && result.device_blocks == TILES);
    CHECK(fake->submitted > 0 && fake->submitted_before_wait == fake->submitted);
    CHECK(cogpu_no_direct_storage() == NULL);
}

/* No bytes go into a berth before the batch that was there is through. */
static void direct_batches_take_turns(void) {
    image_kind kind = narrow;
    kind.compression = 32773;
    cogpu_result result =
        read_directly_within(COGPU_BERTHS * SMALL_BERTH, open_image(&kind), COGPU_OK);
    CHECK(result.direct_bytes == result.bytes_read);
}

/* Tiles far from each other, so that each has a read of its own. */
static void reads_that_fail(void) {
    image_kind apart = tiles;
    apart.apart = true;
    fake->fail_each = 2;
    cogpu_result result = read_directly(open_image(&apart), COGPU_OK);
    CHECK(result.direct_bytes > 0 && result.direct_bytes < result.bytes_read);
    CHECK(result.late_blocks > 0 && result.device_blocks + result.late_blocks == TILES);
    fake->fail_each = 0;
    fake->short_each = 3;
    result = read_directly(open_image(&apart), COGPU_OK);
    CHECK(result.direct_bytes > 0 && result.direct_bytes < result.bytes_read);
}

/* What the device refuses is decoded from the bytes that come back. */
static void damaged_blocks_come_back(void) {
    struct image image = open_image(&tiles);
    damage(&image, 3);
    damage(&image, 20);
    cogpu_result result = read_directly(image, COGPU_CORRUPT);
    CHECK(error.block == 3 && result.late_blocks == 2);
}

/* ... whatever rows were put into rasters meanwhile. All blocks clear their tables so often that
 * the device leaves them to the host. */
static void rows_between_blocks_that_come_back(void) {
    image_kind kind = narrow;
    kind.compression = 5;
    cogpu_context *context = open_context(COGPU_BERTHS * SMALL_BERTH);
    struct image image = open_image(&kind);
    cogpu_pending *pending = NULL;
    cogpu_request request = {.context = context, .pending = &pending};
    cogpu_result result;
    uint8_t rows[8192] = {0}, put[8192];
    cogpu_raster raster = {.data = put,
                           .type = COGPU_U8,
                           .bands = 1,
                           .height = 1,
                           .width = sizeof rows,
                           .stride_x = 1,
                           .stride_y = sizeof rows,
                           .stride_band = sizeof rows};
    move_to_path(&image);
    CHECK(cogpu_read(image.file, &request, &image.raster, NULL, &error) == COGPU_OK && pending);
    CHECK(cogpu_gpu_put(context->devices->reader, rows, 1, &raster, 0, &error) == COGPU_OK);
    CHECK(cogpu_wait(pending, &result, &error) == COGPU_OK && is_read(&image));
    CHECK(result.late_blocks == result.blocks && result.direct_bytes == 0);
    close_image(&image);
    cogpu_context_close(context);
}

static void memory_that_is_not_registered(void) {
    fake->memory_error = 5022;
    cogpu_result result = read_directly(open_image(&tiles), COGPU_OK);
    CHECK(result.direct_bytes == result.bytes_read);
}

static void files_that_are_not_taken(void) {
    fake->file_error = 5027;
    cogpu_result result = read_directly(open_image(&tiles), COGPU_OK);
    CHECK(result.direct_bytes == 0 && result.device_blocks == TILES);
}

/* Blocks without data, blocks that only the host decodes, and a file that is no file. */
static void mixed_with_others(void) {
    static const uint64_t sparse[] = {0, 1, 13, UINT64_MAX};
    image_kind kinds[] = {tiles, tiles, tiles};
    cogpu_context *context = open_context(ENOUGH);
    struct image images[3];
    cogpu_read_item items[3];
    kinds[0].sparse = sparse;
    kinds[1].compression = 1;
    for (uint32_t i = 0; i < 3; i++) {
        images[i] = open_image(&kinds[i]);
        if (i < 2)
            move_to_path(&images[i]);
        items[i] = (cogpu_read_item){.file = images[i].file, .raster = images[i].raster};
    }
    CHECK(cogpu_read_many(items, 3, context, &error) == COGPU_OK);
    CHECK(items[0].result.direct_bytes == items[0].result.bytes_read);
    CHECK(items[0].result.sparse_blocks == 3 && items[0].result.device_blocks == TILES - 3);
    CHECK(items[1].result.direct_bytes == 0 && items[2].result.direct_bytes == 0);
    CHECK(is_read(&images[1]) && is_read(&images[2]));
    for (uint32_t i = 0; i < 3; i++)
        close_image(&images[i]);
    cogpu_context_close(context);
    CHECK(fake->files == 0 && fake->memories == 0 && fake->wrong == 0);
}

/* Pages round a block's bytes take memory too: where that is lacking, it is not the device's. */
static void blocks_that_just_fit(void) {
    enum { SLOT = 1 << 20 };
    cogpu_context *context = open_context(COGPU_BERTHS * SLOT);
    uint32_t on_device = 0, others = 0;
    for (uint32_t rows = 1505; rows < 1530; rows++) {
        image_kind kind = {.width = 256, .height = rows, .compression = 32773};
        struct image image = open_image(&kind);
        cogpu_request request = {.context = context};
        cogpu_result result;
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

static void by_way_of_the_host(void) {
    fake->is_through_host = true;
    cogpu_result result = read_directly(open_image(&tiles), COGPU_OK);
    CHECK(result.direct_bytes == 0 && fake->submitted == 0);
    CHECK_TEXT(cogpu_no_direct_storage(), "cuFile is there, but not its driver (nvidia-fs)");
}

static void test_direct_reads(void) {
    with_cufile(FAKE_CUFILE, all_is_direct);
    with_cufile(FAKE_CUFILE, direct_batches_take_turns);
    with_cufile(FAKE_CUFILE, reads_that_fail);
    with_cufile(FAKE_CUFILE, damaged_blocks_come_back);
    with_cufile(FAKE_CUFILE, rows_between_blocks_that_come_back);
    with_cufile(FAKE_CUFILE, memory_that_is_not_registered);
    with_cufile(FAKE_CUFILE, files_that_are_not_taken);
    with_cufile(FAKE_CUFILE, mixed_with_others);
    with_cufile(FAKE_CUFILE, blocks_that_just_fit);
    with_cufile(FAKE_CUFILE, by_way_of_the_host);
    with_cufile(FAKE_CUFILE_OLD, reads_that_fail);
}

int main(void) {
    RUN(test_direct_reads); /* first: it forks, and threads do not follow */
    RUN(test_pending_reads_side_by_side);
    RUN(test_pending_read_of_many_blocks);
    RUN(test_batches_take_turns);
    RUN(test_pending_read_of_a_damaged_block);
    RUN(test_many_threads_on_one_context);
    RUN(test_pending_read_beside_one_that_lacks_memory);
    RUN(test_refused_reads_between_others);
    RUN(test_failed_reads_between_others);
    RUN(test_a_block_that_fills_a_berth);
    RUN(test_sparse_blocks_take_no_memory);
    RUN(test_nothing_is_pending_on_the_host);
    RUN(test_a_block_beyond_the_file);
    RUN(test_a_plain_block_that_cannot_be_read);
    RUN(test_limit_of_stored_bytes);
    RUN(test_limit_of_decoded_bytes);
    RUN(test_nan_is_not_pending);
    RUN(test_items_of_many_devices);
    RUN(test_bytes_in_pinned_memory);
    RUN(test_pinned_memory_is_taken_as_needed);
    RUN(test_order_in_the_stream);
    RUN(test_second_read_in_the_stream);
    RUN(test_rasters_of_many_streams);
    RUN(test_stream_of_the_calling_thread);
    RUN(test_rows_wait_for_the_raster);
    RUN(test_rows_fit_little_memory);
    return FINISH();
}
