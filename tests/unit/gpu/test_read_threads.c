/*
 * Reads of many threads into one device with one context (a GPU if COGPU_TEST_DEVICE is "cuda"):
 * random windows of several files, waited for or pending, with damaged blocks, with little device
 * memory. All pixels are compared.
 */
#include "context/context.h"
#include "gpu/slot_pool.h"
#include "support/fixture.h"
#include "support/gpu_test.h"
#include "support/test.h"

static cogpu_error error;

/* ---- files --------------------------------------------------------------------------------- */

static const image_kind kinds[] = {
    {.width = 300,
     .height = 270,
     .bits = 16,
     .tile_width = 64,
     .tile_height = 64,
     .compression = 8},
    {.width = 300, .height = 270, .bits = 16, .tile_width = 64, .tile_height = 64, .seed = 9},
    {.width = 200, .height = 180, .rows_per_strip = 16, .compression = 32773, .seed = 3},
    {.width = 600, .height = 300, .tile_width = 608, .tile_height = 304, .compression = 32773},
    {.width = 300,
     .height = 270,
     .bits = 16,
     .tile_width = 64,
     .tile_height = 64,
     .compression = 8},
};
enum { KINDS = sizeof kinds / sizeof *kinds, DAMAGED = KINDS - 1, DAMAGED_BLOCK = 7 };

/* A file and its pixels as the CPU reads them, bad blocks filled. */
struct image {
    const image_kind *kind;
    tiff_builder built;
    cogpu_file *file;
    cogpu_raster expected;
};

static void damage_block(const struct image *image, uint64_t block) {
    uint32_t offset = 0;
    CHECK(cogpu_tag_read(image->file, 0, 324, block, 1, &offset, &error) == COGPU_OK);
    image->built.bytes[offset + 3000] ^= 0x55;
}

static struct image open_image(uint32_t number) {
    struct image image = {.kind = &kinds[number]};
    cogpu_request request = {
        .struct_size = sizeof(cogpu_request), .fill_bad_blocks = 1, .threads = 1};
    build_one(&image.built, image.kind);
    CHECK(cogpu_open_memory(image.built.bytes, image.built.size, NULL, &image.file, &error) ==
          COGPU_OK);
    if (number == DAMAGED)
        damage_block(&image, DAMAGED_BLOCK);
    image.expected = raster_of(image.kind, image.kind->width, image.kind->height, 1);
    CHECK(cogpu_read(image.file, &request, &image.expected, NULL, &error) == COGPU_OK);
    return image;
}

static void close_image(struct image *image) {
    cogpu_close(image->file);
    build_close(&image->built);
    free(image->expected.data);
}

static cogpu_device_kind tested_kind(void) {
    return gpu_test_is_real() ? COGPU_DEVICE_CUDA : COGPU_DEVICE_EMULATOR;
}

static cogpu_context *open_context(uint64_t device_bytes, uint64_t cache_bytes) {
    cogpu_context *context = NULL;
    cogpu_context_options options = {.struct_size = sizeof(cogpu_context_options),
                                     .threads = 3,
                                     .device_bytes = device_bytes,
                                     .device_cache_bytes = cache_bytes};
    CHECK(cogpu_context_open(&options, &context, &error) == COGPU_OK);
    return context;
}

/* ---- reads --------------------------------------------------------------------------------- */

/* A window on its way. */
struct reading {
    const struct image *image;
    cogpu_context *context;
    uint32_t x, y;
    cogpu_raster raster; /* on the device */
    cogpu_pending *pending;
};

static uint32_t draw(uint32_t *random, uint32_t below) {
    *random = *random * 1664525 + 1013904223;
    return (*random >> 8) % below;
}

static uint64_t raster_bytes(const struct reading *reading) {
    return (uint64_t)reading->raster.width * reading->raster.height *
           kind_size(reading->image->kind);
}

static bool start_reading(struct reading *reading, const struct image *image,
                          cogpu_context *context, bool is_pending, uint32_t *random) {
    const image_kind *kind = image->kind;
    uint32_t width = 1 + draw(random, 100), height = 1 + draw(random, 100);
    *reading = (struct reading){.image = image,
                                .context = context,
                                .x = draw(random, kind->width - width),
                                .y = draw(random, kind->height - height),
                                .raster = {.struct_size = sizeof(cogpu_raster),
                                           .type = image->expected.type,
                                           .bands = 1,
                                           .width = width,
                                           .height = height,
                                           .device = tested_kind()}};
    if (cogpu_device_allocate(context, tested_kind(), 0, raster_bytes(reading),
                              &reading->raster.data, NULL) != COGPU_OK)
        return false;
    cogpu_request request = {.struct_size = sizeof(cogpu_request),
                             .context = context,
                             .x = reading->x,
                             .y = reading->y,
                             .width = width,
                             .height = height,
                             .fill_bad_blocks = 1};
    cogpu_status status =
        is_pending
            ? cogpu_read_async(image->file, &request, &reading->raster, &reading->pending, NULL)
            : cogpu_read(image->file, &request, &reading->raster, NULL, NULL);
    return status == COGPU_OK;
}

static bool has_pixels(const struct reading *reading) {
    size_t size = kind_size(reading->image->kind), row = reading->raster.width * size;
    const uint8_t *expected = reading->image->expected.data;
    uint8_t *found = malloc((size_t)raster_bytes(reading));
    bool is_same = cogpu_device_download(reading->context, tested_kind(), 0, reading->raster.data,
                                         raster_bytes(reading), found, NULL) == COGPU_OK;
    expected += (reading->y * reading->image->kind->width + reading->x) * size;
    for (uint32_t y = 0; is_same && y < reading->raster.height; y++)
        is_same =
            memcmp(found + y * row, expected + y * reading->image->kind->width * size, row) == 0;
    free(found);
    return is_same;
}

static bool finish_reading(struct reading *reading) {
    bool is_good = cogpu_wait(reading->pending, NULL, NULL) == COGPU_OK && has_pixels(reading);
    cogpu_device_free(reading->context, tested_kind(), 0, reading->raster.data);
    *reading = (struct reading){0};
    return is_good;
}

/* ---- many threads -------------------------------------------------------------------------- */

enum { READS = 16, HELD = 4 };

struct user {
    cogpu_context *context;
    const struct image *images;
    uint32_t random;
    bool is_good;
};

/* Up to HELD reads are pending at once, and finished in no order. */
static void *read_windows(void *argument) {
    struct user *user = argument;
    struct reading held[HELD] = {{0}};
    user->is_good = true;
    for (uint32_t i = 0; i < READS; i++) {
        struct reading *reading = &held[draw(&user->random, HELD)];
        bool is_pending = draw(&user->random, 3) > 0;
        if (reading->image)
            user->is_good &= finish_reading(reading);
        user->is_good &= start_reading(reading, &user->images[draw(&user->random, KINDS)],
                                       user->context, is_pending, &user->random);
    }
    for (uint32_t i = 0; i < HELD; i++)
        if (held[i].image)
            user->is_good &= finish_reading(&held[i]);
    return NULL;
}

static void read_on_threads(uint64_t device_bytes, uint64_t cache_bytes, uint32_t seed) {
    enum { THREADS = 6 };
    pthread_t threads[THREADS];
    struct user users[THREADS];
    struct image images[KINDS];
    cogpu_context *context = open_context(device_bytes, cache_bytes);
    for (uint32_t i = 0; i < KINDS; i++)
        images[i] = open_image(i);
    for (uint32_t i = 0; i < THREADS; i++) {
        users[i] = (struct user){.context = context, .images = images, .random = seed + i};
        CHECK(pthread_create(&threads[i], NULL, read_windows, &users[i]) == 0);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0 && users[i].is_good);
    for (uint32_t i = 0; i < KINDS; i++)
        close_image(&images[i]);
    cogpu_context_close(context);
}

static void test_windows_of_many_threads(void) {
    read_on_threads(1 << 30, 0, 1);
}

/* So little that a read must wait for slots of others, and collect batches of pending ones. */
static void test_windows_with_little_memory(void) {
    for (uint32_t i = 0; i < 2; i++)
        read_on_threads(COGPU_READ_BUFFERS * (uint64_t)((320 + 80 * i) << 10), 0, 10 * i);
}

/* Blocks of one thread are found by others, and evicted by them. */
static void test_windows_with_a_device_cache(void) {
    read_on_threads(1 << 30, 8 << 20, 2);
    read_on_threads(1 << 30, 300 << 10, 3);
    read_on_threads(COGPU_READ_BUFFERS * (320 << 10), 600 << 10, 4);
}

/* One thread with more pending reads than there are slots: it must not wait for itself. */
static void test_more_pending_reads_than_slots(void) {
    enum { COUNT = 2 * COGPU_POOL_ENTRIES };
    const uint64_t budgets[] = {UINT64_C(1) << 30, COGPU_READ_BUFFERS * (320 << 10)};
    struct image image = open_image(DAMAGED);
    for (uint32_t i = 0; i < 2; i++) {
        cogpu_context *context = open_context(budgets[i], 0);
        struct reading readings[COUNT];
        uint32_t random = i;
        for (uint32_t j = 0; j < COUNT; j++)
            CHECK(start_reading(&readings[j], &image, context, true, &random));
        for (uint32_t j = 0; j < COUNT; j++)
            CHECK(finish_reading(&readings[(j * 37 + 5) % COUNT]));
        cogpu_context_close(context);
    }
    close_image(&image);
}

/* ---- a read that is blocked ---------------------------------------------------------------- */

/* The builder's bytes, from a source whose reads can be held up. */
struct gate {
    const tiff_builder *built;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_closed, has_caller;
};

static cogpu_status read_through_gate(void *user, uint64_t offset, size_t bytes, void *to,
                                      size_t *got) {
    struct gate *gate = user;
    uint64_t left = gate->built->size - offset;
    pthread_mutex_lock(&gate->lock);
    gate->has_caller = true;
    pthread_cond_broadcast(&gate->changed);
    while (gate->is_closed)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
    *got = bytes < left ? bytes : (size_t)left;
    memcpy(to, gate->built->bytes + offset, *got);
    return COGPU_OK;
}

static cogpu_status size_of_gate(void *user, uint64_t *bytes) {
    *bytes = ((struct gate *)user)->built->size;
    return COGPU_OK;
}

static void set_gate(struct gate *gate, bool is_closed) {
    pthread_mutex_lock(&gate->lock);
    gate->is_closed = is_closed;
    gate->has_caller = false;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

static void wait_for_caller(struct gate *gate) {
    pthread_mutex_lock(&gate->lock);
    while (!gate->has_caller)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

static void *read_one_window(void *argument) {
    struct user *user = argument;
    struct reading reading;
    user->is_good = start_reading(&reading, user->images, user->context, false, &user->random) &&
                    finish_reading(&reading);
    return NULL;
}

/* A read waits in its source until others have used the device. */
static void test_device_while_a_source_is_blocked(void) {
    struct image image = open_image(0), gated = open_image(0);
    struct gate gate = {.built = &gated.built,
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .changed = PTHREAD_COND_INITIALIZER};
    const cogpu_source source = {.struct_size = sizeof(cogpu_source),
                                 .user = &gate,
                                 .read = read_through_gate,
                                 .size = size_of_gate};
    cogpu_context *context = open_context(1 << 30, 0);
    struct user blocked = {context, &gated, 5, false}, other = {context, &image, 6, false};
    uint8_t bytes[64] = {1, 2, 3}, found[64] = {0};
    void *memory = NULL;
    pthread_t thread;
    cogpu_close(gated.file);
    CHECK(cogpu_open_source(&source, NULL, &gated.file, &error) == COGPU_OK);
    set_gate(&gate, true);
    CHECK(pthread_create(&thread, NULL, read_one_window, &blocked) == 0);
    wait_for_caller(&gate);
    CHECK(cogpu_device_allocate(context, tested_kind(), 0, 64, &memory, &error) == COGPU_OK);
    CHECK(cogpu_device_upload(context, tested_kind(), 0, bytes, 64, memory, &error) == COGPU_OK);
    CHECK(cogpu_device_download(context, tested_kind(), 0, memory, 64, found, &error) == COGPU_OK);
    CHECK(memcmp(bytes, found, 64) == 0);
    cogpu_device_free(context, tested_kind(), 0, memory);
    read_one_window(&other);
    CHECK(other.is_good);
    set_gate(&gate, false);
    CHECK(pthread_join(thread, NULL) == 0 && blocked.is_good);
    close_image(&image);
    close_image(&gated);
    cogpu_context_close(context);
}

TESTS(read_threads) {
    RUN(test_device_while_a_source_is_blocked);
    RUN(test_more_pending_reads_than_slots);
    RUN(test_windows_of_many_threads);
    RUN(test_windows_with_a_device_cache);
    RUN(test_windows_with_little_memory);
    return FINISH();
}
