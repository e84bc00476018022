/*
 * Reads on the emulated device: order with the streams of rasters, pinned memory, rows of pixels
 * from host memory.
 */
#include "support/device_reads.h"

#include <unistd.h>

static cogpu_error error;

/* ---- bytes in pinned memory of the caller -------------------------------------------------- */

static const uint8_t *caller_first, *caller_end;
static uint64_t copied_bytes;

static cogpu_status copy_up_and_count(cogpu_gpu *gpu, void *to, const void *from, uint64_t bytes,
                                      cogpu_gpu_stream *stream, cogpu_error *why) {
    const uint8_t *at = from;
    if (at >= caller_first && at < caller_end) {
        CHECK(bytes <= (uint64_t)(caller_end - at));
        copied_bytes += bytes;
    }
    return original_calls->copy_up(gpu, to, from, bytes, stream, why);
}

/* A read of the file in the caller's memory, with a limit for blocks. */
static cogpu_status read_from_caller(struct image *image, cogpu_context *context,
                                     uint64_t block_bytes) {
    cogpu_request request = {.struct_size = sizeof(cogpu_request), .context = context};
    const cogpu_limits limits = {.struct_size = sizeof(cogpu_limits), .block_bytes = block_bytes};
    cogpu_open_options options = {.struct_size = sizeof(cogpu_open_options), .limits = &limits};
    size_t size = image->built.size;
    caller_end = caller_first + size;
    copied_bytes = 0;
    cogpu_close(image->file);
    CHECK(cogpu_open_memory(caller_first, size, &options, &image->file, &error) == COGPU_OK);
    return cogpu_read(image->file, &request, &image->raster, NULL, &error);
}

/* Bytes in pinned memory are copied up from there, all others by way of the device's own. The
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
        caller_first = is_pinned ? pinned : image.built.bytes;
        replace_calls(gpu)->copy_up = copy_up_and_count;
        CHECK(read_from_caller(&image, context, 0) == COGPU_OK && is_read(&image));
        CHECK(is_pinned ? copied_bytes > 900 * 1200 && copied_bytes < size : copied_bytes == 0);
        CHECK(read_from_caller(&image, context, 512 * 256 - 1) == COGPU_LIMIT_EXCEEDED);
        gpu->calls = original_calls;
        gpu->calls->release_pinned(gpu, pinned);
        close_image(&image);
        cogpu_context_close(context);
    }
}

static uint64_t pinned_bytes;

static cogpu_status allocate_pinned_and_count(cogpu_gpu *gpu, uint64_t bytes, void **memory,
                                              cogpu_error *why) {
    pinned_bytes += bytes;
    return original_calls->allocate_pinned(gpu, bytes, memory, why);
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
    cogpu_request request = {.struct_size = sizeof(cogpu_request), .context = context};
    replace_calls(gpu)->allocate_pinned = allocate_pinned_and_count;
    for (uint32_t i = 0; i < 3; i++) {
        struct image image = open_image(&kinds[i]);
        pinned_bytes = 0;
        CHECK(cogpu_read(image.file, &request, &image.raster, NULL, &error) == COGPU_OK);
        CHECK(is_read(&image) && pinned_bytes <= most[i] && (pinned_bytes > 0) == (i < 2));
        close_image(&image);
    }
    gpu->calls = original_calls;
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
        const cogpu_gpu_driver *calls = gpu->calls;
        struct image image = open_image(&tiles);
        cogpu_raster *raster = &image.raster, seen = raster_on_device(&tiles, 300, 270);
        cogpu_gpu_stream *stream = NULL;
        cogpu_pending *pending = NULL;
        cogpu_request request = {
            .struct_size = sizeof(cogpu_request), .context = context, .fill_bad_blocks = 1};
        void *junk = malloc(BYTES);
        memset(junk, 0xA5, BYTES);
        if (seed > 4)
            damage_block(&image, DAMAGED);
        CHECK(calls->stream_open(gpu, false, &stream, &error) == COGPU_OK);
        raster->stream = stream;
        CHECK(calls->copy_up(gpu, raster->data, junk, BYTES, stream, &error) == COGPU_OK);
        CHECK(cogpu_read_async(image.file, &request, raster, &pending, &error) == COGPU_OK &&
              pending);
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
            cogpu_request request = {.struct_size = sizeof(cogpu_request), .context = context};
            raster.stream = stream;
            CHECK(gpu->calls->copy_up(gpu, raster.data, junk, BYTES, stream, &error) == COGPU_OK);
            CHECK(cogpu_read_async(images[i].file, &request, &raster, &pending[i], &error) ==
                  COGPU_OK);
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
        const cogpu_gpu_driver *calls = gpu->calls;
        cogpu_gpu_stream *streams[STREAMS] = {NULL};
        cogpu_read_item items[COUNT];
        cogpu_raster rasters[COUNT];
        for (uint32_t i = 0; i < STREAMS; i++)
            CHECK(calls->stream_open(gpu, false, &streams[i], &error) == COGPU_OK);
        for (uint32_t i = 0; i < COUNT; i++) {
            rasters[i] = images[i].raster;
            rasters[i].stream = streams[i % STREAMS];
            items[i] = (cogpu_read_item){.struct_size = sizeof(cogpu_read_item),
                                         .file = images[i].file,
                                         .raster = &rasters[i]};
            CHECK(calls->copy_up(gpu, rasters[i].data, junk, BYTES, streams[i % STREAMS], &error) ==
                  COGPU_OK);
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
static uint32_t recordings, recordings_elsewhere;

static void count_recording(const cogpu_gpu_stream *stream) {
    if (stream != COGPU_GPU_PER_THREAD)
        return;
    __atomic_add_fetch(&recordings, 1, __ATOMIC_RELAXED);
    if (!pthread_equal(pthread_self(), reading_thread))
        __atomic_add_fetch(&recordings_elsewhere, 1, __ATOMIC_RELAXED);
}

static cogpu_status record_and_count(cogpu_gpu *gpu, cogpu_gpu_event *event,
                                     cogpu_gpu_stream *stream, cogpu_error *why) {
    count_recording(stream);
    return original_calls->record(gpu, event, stream, why);
}

static cogpu_status wait_and_count(cogpu_gpu *gpu, cogpu_gpu_stream *stream, cogpu_gpu_event *event,
                                   cogpu_error *why) {
    count_recording(stream);
    return original_calls->wait_event(gpu, stream, event, why);
}

/* Others than the calling thread are the last. */
static cogpu_status read_slowly(void *user, uint64_t offset, size_t bytes, void *to, size_t *got) {
    usleep(pthread_equal(pthread_self(), reading_thread) ? 200 : 1000);
    return read_except_gap(user, offset, bytes, to, got);
}

/* The per-thread default stream: its handle means another stream on each thread. Blocks without
 * compression are unpacked by the thread that fetched the last of them. */
static void test_stream_of_the_calling_thread(void) {
    enum { ITEMS = 40 };
    static const image_kind kind = {
        .width = 192, .height = 192, .tile_width = 192, .tile_height = 192};
    cogpu_gpu *gpu;
    cogpu_context *context = open_device(1, 1 << 30, COGPU_READ_BUFFERS * SMALL_BUFFER, &gpu);
    cogpu_gpu_driver *calls = replace_calls(gpu);
    struct image image = open_image(&kind);
    struct gapped whole = {.built = &image.built};
    const cogpu_source source = {.struct_size = sizeof(cogpu_source),
                                 .user = &whole,
                                 .read = read_slowly,
                                 .size = size_of_gapped};
    cogpu_read_item items[ITEMS];
    cogpu_raster rasters[ITEMS];
    cogpu_pending *pending = NULL;
    cogpu_request request = {.struct_size = sizeof(cogpu_request), .context = context};
    cogpu_close(image.file);
    CHECK(cogpu_open_source(&source, NULL, &image.file, &error) == COGPU_OK);
    reading_thread = pthread_self();
    recordings = recordings_elsewhere = 0;
    calls->record = record_and_count;
    calls->wait_event = wait_and_count;
    image.raster.stream = COGPU_GPU_PER_THREAD;
    CHECK(cogpu_read_async(image.file, &request, &image.raster, &pending, &error) == COGPU_OK &&
          pending);
    CHECK(cogpu_wait(pending, NULL, &error) == COGPU_OK && is_read(&image));
    CHECK(recordings >= 2 && recordings_elsewhere == 0);
    for (uint32_t i = 0; i < ITEMS; i++) {
        rasters[i] = raster_on_device(&kind, 192, 192);
        rasters[i].stream = i % 2 ? NULL : COGPU_GPU_PER_THREAD;
        items[i] = (cogpu_read_item){
            .struct_size = sizeof(cogpu_read_item), .file = image.file, .raster = &rasters[i]};
    }
    CHECK(cogpu_read_many(items, ITEMS, context, &error) == COGPU_OK && recordings_elsewhere == 0);
    for (uint32_t i = 0; i < ITEMS; i++) {
        CHECK(has_pixels(&rasters[i], &kind, 0, 0));
        free(rasters[i].data);
    }
    gpu->calls = original_calls;
    close_image(&image);
    cogpu_context_close(context);
}

/* What the raster's stream holds already is done before rows are put into the raster. */
static void test_rows_wait_for_the_raster(void) {
    const uint8_t before[8] = {0}, rows[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (uint64_t seed = 1; seed <= 8; seed++) {
        cogpu_gpu *gpu;
        cogpu_gpu_device *device = open_test_device(seed, 64 << 20, &gpu);
        cogpu_gpu_stream *stream = NULL;
        cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                               .type = COGPU_TYPE_U8,
                               .bands = 1,
                               .width = 4,
                               .height = 2};
        uint8_t got[8] = {0};
        raster.stride_x = 1;
        raster.stride_y = 4;
        raster.stride_band = 8;
        CHECK(cogpu_gpu_device_allocate(device, 8, &raster.data, &error) == COGPU_OK);
        CHECK(gpu->calls->stream_open(gpu, false, &stream, &error) == COGPU_OK);
        raster.stream = stream;
        CHECK(gpu->calls->copy_up(gpu, raster.data, before, 8, stream, &error) == COGPU_OK);
        CHECK(cogpu_gpu_upload_rows(device, rows, 2, &raster, 0, &error) == COGPU_OK);
        CHECK(gpu->calls->finish_stream(gpu, stream, &error) == COGPU_OK);
        CHECK(cogpu_gpu_device_copy(device, got, raster.data, 8, true, &error) == COGPU_OK);
        CHECK(memcmp(got, rows, 8) == 0);
        gpu->calls->stream_close(gpu, stream);
        cogpu_gpu_device_release(device, raster.data);
        cogpu_gpu_device_close(device);
    }
}

/* Rows of any length that fit the memory which reads may take, however little it is. */
static void test_rows_fit_little_memory(void) {
    enum { SLOT = 64 << 10, ROWS = 5, LONGEST = SLOT + 512 };
    cogpu_gpu *gpu;
    cogpu_gpu_device *device = open_test_device(1, COGPU_READ_BUFFERS * SLOT, &gpu);
    uint8_t *rows = malloc(ROWS * LONGEST), *got = malloc(ROWS * LONGEST);
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .type = COGPU_TYPE_U8,
                           .bands = 1,
                           .height = ROWS,
                           .stride_x = 1};
    for (uint32_t i = 0; i < ROWS * LONGEST; i++)
        rows[i] = (uint8_t)(i * 37 + i / 251);
    CHECK(cogpu_gpu_device_allocate(device, ROWS * LONGEST, &raster.data, &error) == COGPU_OK);
    for (uint32_t width = 1000; width <= LONGEST; width += width < SLOT - 8192 ? 7000 : 256) {
        raster.width = width;
        raster.stride_y = width;
        raster.stride_band = (int64_t)ROWS * width;
        cogpu_status status = cogpu_gpu_upload_rows(device, rows, ROWS, &raster, 0, &error);
        CHECK(status == COGPU_OK || (status == COGPU_LIMIT_EXCEEDED && width > SLOT - 8192));
        if (status != COGPU_OK)
            continue;
        CHECK(cogpu_gpu_device_copy(device, got, raster.data, (uint64_t)ROWS * width, true,
                                    &error) == COGPU_OK);
        CHECK(memcmp(got, rows, (size_t)ROWS * width) == 0);
    }
    cogpu_gpu_device_release(device, raster.data);
    cogpu_gpu_device_close(device);
    free(rows);
    free(got);
}

TESTS(read_streams) {
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
