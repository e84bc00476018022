/* Reads on the emulated device: pending ones, batches, limits, failures. */
#include "support/device_reads.h"

static cogpu_error error;

/* ---- pending reads ------------------------------------------------------------------------- */

static void test_pending_reads_side_by_side(void) {
    cogpu_context *context = open_context(ENOUGH);
    struct image image = open_image(&tiles);
    cogpu_pending *whole = NULL, *part = NULL;
    cogpu_result result = COGPU_RESULT_INIT;
    cogpu_raster some = raster_on_device(&tiles, 90, 100),
                 last = raster_on_device(&tiles, 300, 270);
    cogpu_request request = {.struct_size = sizeof(cogpu_request), .context = context};
    CHECK(cogpu_read_async(image.file, &request, &image.raster, &whole, &error) == COGPU_OK &&
          whole);
    request = (cogpu_request){.struct_size = sizeof(cogpu_request),
                              .context = context,
                              .x = 50,
                              .y = 60,
                              .width = 90,
                              .height = 100};
    CHECK(cogpu_read_async(image.file, &request, &some, &part, &error) == COGPU_OK && part);
    request = (cogpu_request){.struct_size = sizeof(cogpu_request), .context = context};
    CHECK(cogpu_read(image.file, &request, &last, &result, &error) == COGPU_OK);
    CHECK(has_pixels(&last, &tiles, 0, 0) && result.device_blocks == TILES);
    CHECK(cogpu_wait(part, &result, &error) == COGPU_OK && has_pixels(&some, &tiles, 50, 60));
    CHECK(result.blocks == 9 && result.device_blocks == 9 && result.cpu_fallback_blocks == 0);
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
    cogpu_result result = COGPU_RESULT_INIT;
    cogpu_request request = {.struct_size = sizeof(cogpu_request), .context = context};
    CHECK(cogpu_read_async(image.file, &request, &image.raster, &pending, &error) == COGPU_OK &&
          pending);
    CHECK(cogpu_wait(pending, &result, &error) == COGPU_OK && is_read(&image));
    CHECK(result.blocks == 3000 && result.bytes_read == 3000 * 256);
    close_image(&image);
    cogpu_context_close(context);
}

/* More batches than slots and buffers, with a few tiles each: no batch uses the buffer of another
 * one that is in flight, in whatever order the device works. */
static void test_batches_share_buffers(void) {
    for (uint32_t seed = 1; seed <= 4; seed++) {
        image_kind kind = {.width = 256,
                           .height = 3200,
                           .tile_width = 256,
                           .tile_height = 64,
                           .compression = seed % 2 ? 32773 : 1};
        char text[8];
        snprintf(text, sizeof text, "%u", seed);
        setenv("COGPU_EMU_SEED", text, 1);
        cogpu_context *context = open_context(COGPU_READ_BUFFERS * SMALL_BUFFER);
        struct image image = open_image(&kind);
        cogpu_request request = {.struct_size = sizeof(cogpu_request), .context = context};
        cogpu_result result = COGPU_RESULT_INIT;
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
    cogpu_result result = COGPU_RESULT_INIT;
    cogpu_request request = {.struct_size = sizeof(cogpu_request), .context = context};
    damage_block(&image, 7);
    CHECK(cogpu_read_async(image.file, &request, &image.raster, &pending, &error) == COGPU_OK &&
          pending);
    CHECK(cogpu_wait(pending, &result, &error) == COGPU_CORRUPT && error.block == 7);
    CHECK(result.cpu_fallback_blocks == 1);
    request.fill_bad_blocks = 1;
    CHECK(cogpu_read_async(image.file, &request, &image.raster, &pending, &error) == COGPU_OK &&
          pending);
    CHECK(cogpu_wait(pending, &result, &error) == COGPU_OK);
    CHECK(result.bad_blocks == 1 && result.first_bad.block == 7);
    CHECK(result.cpu_fallback_blocks == 1 && result.device_blocks == TILES - 1);
    const uint16_t *pixels = image.raster.data;
    CHECK(pixels[64 * 300 + 128] == 0 && pixels[0] == kind_sample(&tiles, 0, 0, 0));
    close_image(&image);
    cogpu_context_close(context);
}

/* A thread that shares a context with others. */
struct user {
    cogpu_context *context;
    const cogpu_file *files[3]; /* the last needs larger slots */
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
        cogpu_request request = {.struct_size = sizeof(cogpu_request),
                                 .x = 31,
                                 .y = 70,
                                 .width = 200,
                                 .height = 100,
                                 .context = user->context};
        user->is_good &=
            cogpu_read_async(user->files[i % 3], &request, &pixels, &pending, &mine) == COGPU_OK;
        request.content = COGPU_CONTENT_MASK;
        user->is_good &= cogpu_read(user->files[i % 3], &request, &mask, NULL, &mine) == COGPU_OK;
        user->is_good &= cogpu_wait(pending, NULL, &mine) == COGPU_OK;
        user->is_good &= has_pixels(&pixels, kind, 31, 70) && *(uint8_t *)mask.data == 255;
        free(pixels.data);
        free(mask.data);
    }
    cogpu_request request = {.struct_size = sizeof(cogpu_request), .context = user->context};
    user->is_good &=
        cogpu_read_async(user->files[0], &request, &user->left, &user->pending, NULL) == COGPU_OK;
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

/* A read that the device has no memory for must not harm a pending one, whose damaged block is
 * still to be decoded. */
static void test_pending_read_beside_one_that_lacks_memory(void) {
    static const image_kind kind = {
        .width = 2048, .height = 1024, .tile_width = 2048, .tile_height = 1024, .compression = 8};
    cogpu_gpu *gpu;
    cogpu_context *context = open_device(1, 10 << 20, 1 << 30, &gpu);
    struct image image = open_image(&tiles), large = open_image(&kind);
    cogpu_pending *pending = NULL;
    cogpu_result result = COGPU_RESULT_INIT;
    cogpu_request request = {
        .struct_size = sizeof(cogpu_request), .context = context, .fill_bad_blocks = 1};
    damage_block(&image, 7);
    CHECK(cogpu_read_async(image.file, &request, &image.raster, &pending, &error) == COGPU_OK &&
          pending);
    request = (cogpu_request){.struct_size = sizeof(cogpu_request), .context = context};
    CHECK(cogpu_read(large.file, &request, &large.raster, NULL, &error) == COGPU_OUT_OF_MEMORY);
    CHECK(cogpu_wait(pending, &result, &error) == COGPU_OK);
    CHECK(result.bad_blocks == 1 && result.cpu_fallback_blocks == 1);
    CHECK(((uint16_t *)image.raster.data)[64 * 300 + 128] == 0);
    close_image(&image);
    close_image(&large);
    cogpu_context_close(context);
}

/* A read whose only block does not fit a slot. */
static void read_too_large(cogpu_gpu_device *device) {
    cogpu_storage storage = {.format = {.row_bytes = 1 << 20}};
    cogpu_read_plan plan = {.storage = &storage};
    cogpu_raster raster = COGPU_RASTER_INIT;
    cogpu_gpu_read_task task = {
        .plan = &plan, .raster = &raster, .block = {.needed_rows = 1}, .span = {8, 1 << 20}};
    cogpu_result times = COGPU_RESULT_INIT;
    cogpu_gpu_read_job work = {.tasks = &task, .count = 1, .worker_count = 1, .times = &times};
    CHECK(cogpu_gpu_read_start(device, &work, &error) == COGPU_LIMIT_EXCEEDED);
}

/* Starts the first; neither has pixels from before. */
static cogpu_pending *start_first(struct image *first, struct image *second,
                                  cogpu_context *context) {
    cogpu_pending *pending = NULL;
    cogpu_request request = {.struct_size = sizeof(cogpu_request), .context = context};
    memset(first->raster.data, 0, NARROW_BYTES);
    memset(second->raster.data, 0, NARROW_BYTES);
    CHECK(cogpu_read_async(first->file, &request, &first->raster, &pending, &error) == COGPU_OK);
    return pending;
}

/* Reads the second, then waits for the first. */
static void end_both(struct image *first, struct image *second, cogpu_context *context,
                     cogpu_pending *pending) {
    cogpu_request request = {.struct_size = sizeof(cogpu_request), .context = context};
    CHECK(cogpu_read(second->file, &request, &second->raster, NULL, &error) == COGPU_OK);
    CHECK(is_read(second));
    CHECK(cogpu_wait(pending, NULL, &error) == COGPU_OK && is_read(first));
}

/* Reads that fail after they took a slot: those before and after are right, however many fail. */
static void test_refused_reads_between_others(void) {
    struct image first = open_image(&narrow), second = open_image(&narrow);
    for (uint32_t refused = COGPU_READ_BUFFERS - 2; refused < COGPU_READ_BUFFERS; refused++) {
        cogpu_gpu *gpu;
        cogpu_context *context =
            open_device(refused, 1 << 30, COGPU_READ_BUFFERS * SMALL_BUFFER, &gpu);
        cogpu_pending *pending = start_first(&first, &second, context);
        for (uint32_t i = 0; i < refused; i++)
            read_too_large(context->devices->device);
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
        return cogpu_fail(why, COGPU_DEVICE_ERROR, "a copy is made to fail");
    return original_calls->copy_up(gpu, to, from, bytes, stream, why);
}

/* A read that fails with batches in flight and others that wait for buffers, while another read is
 * pending: that one and the next are right. */
static void test_failed_reads_between_others(void) {
    struct image first = open_image(&narrow), second = open_image(&narrow);
    for (uint32_t copies = 0; copies <= COGPU_READ_SLOTS; copies += 2) {
        cogpu_gpu *gpu;
        cogpu_context *context =
            open_device(copies + 1, 1 << 30, COGPU_READ_BUFFERS * SMALL_BUFFER, &gpu);
        cogpu_request request = {.struct_size = sizeof(cogpu_request), .context = context};
        cogpu_pending *pending = start_first(&first, &second, context);
        copies_left = copies;
        replace_calls(gpu)->copy_up = copy_up_or_fail;
        CHECK(cogpu_read(second.file, &request, &second.raster, NULL, &error) ==
              COGPU_DEVICE_ERROR);
        gpu->calls = original_calls;
        end_both(&first, &second, context, pending);
        cogpu_context_close(context);
    }
    close_image(&first);
    close_image(&second);
}

/* A block that fills a buffer, but for what the buffer loses before its first page boundary. */
static void test_a_block_that_fills_a_buffer(void) {
    image_kind kind = {.height = 2};
    for (uint32_t less = 0; less <= COGPU_STAGING; less += COGPU_STAGING) {
        cogpu_context *context = open_context(ENOUGH);
        kind.width = (4 << 20) - COGPU_SLOT_OVERHEAD - less;
        struct image image = open_image(&kind);
        cogpu_request request = {.struct_size = sizeof(cogpu_request), .context = context};
        CHECK(cogpu_read(image.file, &request, &image.raster, NULL, &error) == COGPU_OK);
        CHECK(is_read(&image));
        close_image(&image);
        cogpu_context_close(context);
    }
}

/* A block larger than a usual buffer: a decoder that divides blocks gets a larger one, and so does
 * the CPU where that refuses the block. */
static void test_a_block_larger_than_a_buffer(void) {
    static const struct {
        uint16_t compression;
        bool is_decoded;
    } codecs[] = {{8, true}, {32773, false}};
    for (uint32_t i = 0; i < 2; i++) {
        image_kind kind = {.width = 1500,
                           .height = 2000,
                           .tile_width = 1504,
                           .tile_height = 2000,
                           .compression = codecs[i].compression};
        for (int is_damaged = 0; is_damaged < 2; is_damaged++) {
            cogpu_context *context = open_context(20 << 20);
            struct image image = open_image(&kind);
            cogpu_request request = {.struct_size = sizeof(cogpu_request),
                                     .context = context,
                                     .fill_bad_blocks = is_damaged};
            cogpu_result result = COGPU_RESULT_INIT;
            if (is_damaged)
                damage_block(&image, 0);
            CHECK(cogpu_read(image.file, &request, &image.raster, &result, &error) == COGPU_OK);
            CHECK(is_damaged || is_read(&image));
            CHECK(result.device_blocks == (codecs[i].is_decoded && !is_damaged));
            CHECK(result.bad_blocks == (is_damaged && codecs[i].is_decoded));
            close_image(&image);
            cogpu_context_close(context);
        }
    }
}

/* Blocks without data take no device memory. */
static void test_sparse_blocks_take_no_memory(void) {
    static const uint64_t sparse[] = {0, UINT64_MAX};
    static const image_kind kind = {.width = 2048,
                                    .height = 1024,
                                    .tile_width = 2048,
                                    .tile_height = 1024,
                                    .compression = 8,
                                    .sparse = sparse};
    cogpu_gpu *gpu;
    cogpu_context *context = open_device(1, 6 << 20, 1 << 30, &gpu);
    struct image image = open_image(&kind);
    cogpu_result result = COGPU_RESULT_INIT;
    cogpu_request request = {.struct_size = sizeof(cogpu_request), .context = context};
    CHECK(cogpu_read(image.file, &request, &image.raster, &result, &error) == COGPU_OK);
    CHECK(result.sparse_blocks == 1 && ((uint8_t *)image.raster.data)[2048 * 1024 - 1] == 0);
    close_image(&image);
    cogpu_context_close(context);
}

/* A read into host memory is complete when it is started. Its result comes with cogpu_wait. */
static void test_pending_read_into_host_memory(void) {
    struct image image = open_image(&tiles);
    cogpu_raster *raster = &image.raster;
    int mark;
    cogpu_pending *pending = (cogpu_pending *)(void *)&mark;
    cogpu_result result = COGPU_RESULT_INIT;
    cogpu_request request = COGPU_REQUEST_INIT;
    raster->device = COGPU_DEVICE_CPU;
    CHECK(cogpu_read_async(image.file, &request, raster, &pending, &error) == COGPU_OK);
    CHECK(pending && pending != (cogpu_pending *)(void *)&mark && is_read(&image));
    CHECK(cogpu_wait(pending, &result, &error) == COGPU_OK && result.blocks == TILES);
    request.width = 999;
    CHECK(cogpu_read_async(image.file, &request, raster, &pending, &error) ==
              COGPU_INVALID_ARGUMENT &&
          !pending);
    pending = (cogpu_pending *)(void *)&mark;
    CHECK(cogpu_read_async(NULL, &request, raster, &pending, &error) == COGPU_INVALID_ARGUMENT &&
          !pending);
    pending = (cogpu_pending *)(void *)&mark;
    CHECK(cogpu_read_async(image.file, &request, NULL, &pending, &error) ==
              COGPU_INVALID_ARGUMENT &&
          !pending);
    CHECK(cogpu_read_async(image.file, &request, raster, NULL, &error) == COGPU_INVALID_ARGUMENT);
    close_image(&image);
}

/* A block that is not in the file is filled, and none of its bytes are read. */
static void test_a_block_beyond_the_file(void) {
    cogpu_context *context = open_context(ENOUGH);
    struct image image = open_image(&tiles);
    const tiff_builder *built = &image.built;
    cogpu_result result = COGPU_RESULT_INIT;
    cogpu_tag tag = COGPU_TAG_INIT;
    cogpu_request request = {
        .struct_size = sizeof(cogpu_request), .context = context, .fill_bad_blocks = 1};
    for (uint32_t i = 0; tag.id != 324; i++)
        CHECK(cogpu_tag_info(image.file, 0, i, &tag, &error) == COGPU_OK);
    build_put(built, built->bytes + tag.value_offset + 7 * sizeof(uint32_t), 0x7FFFFF00, 4);
    CHECK(cogpu_read(image.file, &request, &image.raster, &result, &error) == COGPU_OK);
    CHECK(result.bad_blocks == 1 && result.first_bad.block == 7);
    CHECK(result.bytes_read < built->size - 8000 && result.sparse_blocks == 0);
    close_image(&image);
    cogpu_context_close(context);
}

/* Several threads read pieces of an uncompressed block. Its error is reported once, and the other
 * block is not affected. */
static void test_a_plain_block_that_cannot_be_read(void) {
    static const image_kind plain = {
        .width = 2048, .height = 900, .tile_width = 2048, .tile_height = 496};
    enum { BYTES = 2048 * 496 };
    for (int i = 0; i < 2; i++) {
        cogpu_context *context = open_context(ENOUGH);
        struct image image = open_image(&plain);
        struct gapped gapped = {.built = &image.built, .is_transient = i == 1};
        cogpu_source source = {.struct_size = sizeof(cogpu_source),
                               .user = &gapped,
                               .read = read_except_gap,
                               .size = size_of_gapped};
        cogpu_request request = {
            .struct_size = sizeof(cogpu_request), .context = context, .fill_bad_blocks = 1};
        cogpu_raster below = raster_on_device(&plain, 2048, 900 - 496);
        cogpu_result result = COGPU_RESULT_INIT;
        uint32_t offset = 0;
        CHECK(cogpu_tag_read(image.file, 0, 324, 0, 1, &offset, &error) == COGPU_OK);
        gapped.first = offset + BYTES / 4;
        gapped.end = offset + BYTES - 5;
        cogpu_close(image.file);
        CHECK(cogpu_open_source(&source, NULL, &image.file, &error) == COGPU_OK);
        CHECK(cogpu_read(image.file, &request, &image.raster, &result, &error) == COGPU_OK);
        CHECK(gapped.failed > 1 && result.bad_blocks == (i == 0) && is_read(&image) == (i == 1));
        CHECK(i == 1 || result.first_bad.block == 0);
        memcpy(below.data, (uint8_t *)image.raster.data + BYTES, 2048 * (900 - 496));
        CHECK(has_pixels(&below, &plain, 0, 496));
        request.fill_bad_blocks = 0;
        CHECK(cogpu_read(image.file, &request, &image.raster, &result, &error) ==
              (i == 0 ? COGPU_IO_ERROR : COGPU_OK));
        free(below.data);
        close_image(&image);
        cogpu_context_close(context);
    }
}

/* The host and the device read the image, or refuse it, alike. */
static void check_both(struct image *image, cogpu_status expected) {
    cogpu_context *context = open_context(ENOUGH);
    cogpu_request request = {
        .struct_size = sizeof(cogpu_request), .context = context, .threads = 1};
    for (int i = 0; i < 2; i++) {
        image->raster.device = i ? COGPU_DEVICE_EMULATOR : COGPU_DEVICE_CPU;
        CHECK(cogpu_read(image->file, &request, &image->raster, NULL, &error) == expected);
    }
    cogpu_context_close(context);
}

/* Stored bytes of a block are compared with the limit, wherever they are decoded. */
static void test_limit_of_stored_bytes(void) {
    enum { DECODED = 64 * 64 * 2, STORED = DECODED + 11 };
    for (uint64_t limit = STORED - 1; limit <= STORED; limit++) {
        const cogpu_limits limits = {.struct_size = sizeof(cogpu_limits), .block_bytes = limit};
        cogpu_open_options options = {.struct_size = sizeof(cogpu_open_options), .limits = &limits};
        tiff_builder built;
        build_one(&built, &tiles);
        struct image image = open_image_bytes(built, &tiles, &options);
        check_both(&image, limit < STORED ? COGPU_LIMIT_EXCEEDED : COGPU_OK);
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
        const cogpu_limits limits = {.struct_size = sizeof(cogpu_limits),
                                     .block_bytes = is_allowed ? SIDE * SIDE : 1000};
        cogpu_open_options options = {.struct_size = sizeof(cogpu_open_options), .limits = &limits};
        tiff_builder built;
        build_open(&built, false, false);
        build_image(&built, SIDE, SIDE, 1, 8, 1, NULL);
        build_put(&built, built.entries[3].value, 32773, 2);
        build_put(&built, built.entries[5].value, build_data(&built, runs, STORED), 4);
        build_put(&built, built.entries[8].value, STORED, 4);
        build_directory(&built, true);
        struct image image = open_image_bytes(built, &kind, &options);
        check_both(&image, is_allowed ? COGPU_OK : COGPU_LIMIT_EXCEEDED);
        close_image(&image);
    }
}

/* Pixels that are NaN by a mask are complete when the read is started; the bits are those that the
 * host gives. */
static void test_pending_read_of_masked_pixels(void) {
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
    struct image image = open_image_bytes(built, &tiles, NULL);
    cogpu_pending *pending = NULL;
    cogpu_result result = COGPU_RESULT_INIT;
    size_t bytes = sizeof(float) * 300 * 270;
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .type = COGPU_TYPE_F32,
                           .bands = 1,
                           .width = 300,
                           .height = 270};
    cogpu_request request = {.struct_size = sizeof(cogpu_request), .context = context, .masked = 1};
    float *expected = raster.data = malloc(bytes);
    CHECK(cogpu_read(image.file, &request, &raster, NULL, &error) == COGPU_OK);
    CHECK(expected[0] != expected[0] && expected[1] == kind_sample(&tiles, 0, 1, 0));
    raster.data = malloc(bytes);
    raster.device = COGPU_DEVICE_EMULATOR;
    CHECK(cogpu_read_async(image.file, &request, &raster, &pending, &error) == COGPU_OK && pending);
    CHECK(memcmp(raster.data, expected, bytes) == 0);
    CHECK(cogpu_wait(pending, &result, &error) == COGPU_OK && result.device_blocks == 2 * TILES);
    free(raster.data);
    free(expected);
    close_image(&image);
    cogpu_context_close(context);
}

/* Each device's items are read, and the first that failed is the call's. */
static void test_items_of_many_devices(void) {
    cogpu_context *context = open_context(ENOUGH);
    struct image image = open_image(&tiles);
    cogpu_read_item items[5];
    cogpu_request requests[5];
    cogpu_raster rasters[5];
    cogpu_result results[5];
    for (uint32_t i = 0; i < 5; i++) {
        requests[i] = (cogpu_request)COGPU_REQUEST_INIT;
        rasters[i] = raster_of(&tiles, 300, 270, 1);
        results[i] = (cogpu_result)COGPU_RESULT_INIT;
        items[i] = (cogpu_read_item){.struct_size = sizeof(cogpu_read_item),
                                     .file = image.file,
                                     .request = &requests[i],
                                     .raster = &rasters[i],
                                     .result = &results[i]};
    }
    rasters[1].device = rasters[3].device = rasters[4].device = COGPU_DEVICE_EMULATOR;
    requests[1].level = 7;
    requests[2].width = 999;
    rasters[4].device_index = 1;
    CHECK(cogpu_read_many(items, 5, context, &error) == COGPU_NOT_FOUND);
    CHECK(error.status == COGPU_NOT_FOUND && items[1].status == COGPU_NOT_FOUND);
    CHECK(items[0].status == COGPU_OK && has_pixels(&rasters[0], &tiles, 0, 0));
    CHECK(items[2].status == COGPU_INVALID_ARGUMENT && items[4].status == COGPU_DEVICE_ERROR);
    CHECK(items[3].status == COGPU_OK && has_pixels(&rasters[3], &tiles, 0, 0));
    CHECK(results[0].device_blocks == 0 && results[3].device_blocks == TILES);
    CHECK(cogpu_read_many(items, 5, NULL, &error) == COGPU_INVALID_ARGUMENT);
    CHECK(items[0].status == COGPU_OK && items[3].status == COGPU_INVALID_ARGUMENT);
    for (uint32_t i = 0; i < 5; i++)
        free(rasters[i].data);
    close_image(&image);
    cogpu_context_close(context);
}

TESTS(read_pipeline) {
    RUN(test_pending_reads_side_by_side);
    RUN(test_pending_read_of_many_blocks);
    RUN(test_batches_share_buffers);
    RUN(test_pending_read_of_a_damaged_block);
    RUN(test_many_threads_on_one_context);
    RUN(test_pending_read_beside_one_that_lacks_memory);
    RUN(test_refused_reads_between_others);
    RUN(test_failed_reads_between_others);
    RUN(test_a_block_that_fills_a_buffer);
    RUN(test_a_block_larger_than_a_buffer);
    RUN(test_sparse_blocks_take_no_memory);
    RUN(test_pending_read_into_host_memory);
    RUN(test_a_block_beyond_the_file);
    RUN(test_a_plain_block_that_cannot_be_read);
    RUN(test_limit_of_stored_bytes);
    RUN(test_limit_of_decoded_bytes);
    RUN(test_pending_read_of_masked_pixels);
    RUN(test_items_of_many_devices);
    return FINISH();
}
