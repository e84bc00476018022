/*
 * From file to file through a device, as `cogpu convert` does it: a thread reads chunks into two
 * buffers of the device's memory while another one pushes them to a writer, by one context. The new
 * file has the pixels of the old one; and, under ThreadSanitizer, neither steps on the other's
 * toes.
 */
#include "cogpu.h"

#include "support/gpu_test.h"
#include "support/test.h"

#include <pthread.h>

enum { WIDTH = 40, HEIGHT = 96, ROWS = 16, CHUNKS = HEIGHT / ROWS, BUFFERS = 2 };

struct pass {
    cogpu_context *context;
    cogpu_file *file;
    cogpu_raster buffers[BUFFERS];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t read, pushed; /* chunks so far */
};

static cogpu_device_kind kind;
static cogpu_error error;

static void need(cogpu_status status) {
    gpu_test_need(status, &error);
}

static void wait_until(struct pass *pass, const uint32_t *count, uint32_t least) {
    pthread_mutex_lock(&pass->lock);
    while (*count < least)
        pthread_cond_wait(&pass->changed, &pass->lock);
    pthread_mutex_unlock(&pass->lock);
}

static void add_one(struct pass *pass, uint32_t *count) {
    pthread_mutex_lock(&pass->lock);
    ++*count;
    pthread_cond_broadcast(&pass->changed);
    pthread_mutex_unlock(&pass->lock);
}

static void *read_all(void *user) {
    struct pass *pass = user;
    for (uint32_t i = 0; i < CHUNKS; i++) {
        const cogpu_request request = {.struct_size = sizeof(cogpu_request),
                                       .y = i * ROWS,
                                       .width = WIDTH,
                                       .height = ROWS,
                                       .context = pass->context};
        wait_until(pass, &pass->pushed, i < BUFFERS ? 0 : i - BUFFERS + 1);
        need(cogpu_read(pass->file, &request, &pass->buffers[i % BUFFERS], NULL, NULL));
        add_one(pass, &pass->read);
    }
    return NULL;
}

static cogpu_memory push_all(struct pass *pass, const cogpu_profile *profile) {
    cogpu_memory memory = COGPU_MEMORY_INIT;
    cogpu_writer *writer = NULL;
    need(cogpu_writer_open(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &memory},
                           profile, &writer, &error));
    for (uint32_t i = 0; i < CHUNKS; i++) {
        wait_until(pass, &pass->read, i + 1);
        need(cogpu_writer_write_rows(writer, &pass->buffers[i % BUFFERS], NULL, &error));
        add_one(pass, &pass->pushed);
    }
    need(cogpu_writer_close(writer, NULL, &error));
    return memory;
}

static cogpu_memory pass_on(cogpu_file *file, const cogpu_profile *profile) {
    struct pass pass = {.context = profile->context,
                        .file = file,
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .changed = PTHREAD_COND_INITIALIZER};
    pthread_t reader;
    for (uint32_t i = 0; i < BUFFERS; i++) {
        pass.buffers[i] = (cogpu_raster){.struct_size = sizeof(cogpu_raster),
                                         .type = COGPU_TYPE_U16,
                                         .bands = 1,
                                         .height = ROWS,
                                         .width = WIDTH,
                                         .device = kind};
        need(cogpu_device_allocate(pass.context, kind, 0, sizeof(uint16_t) * ROWS * WIDTH,
                                   &pass.buffers[i].data, &error));
    }
    CHECK(pthread_create(&reader, NULL, read_all, &pass) == 0);
    cogpu_memory memory = push_all(&pass, profile);
    CHECK(pthread_join(reader, NULL) == 0);
    for (uint32_t i = 0; i < BUFFERS; i++)
        cogpu_device_free(pass.context, kind, 0, pass.buffers[i].data);
    return memory;
}

static void read_whole(const cogpu_memory *memory, uint16_t *pixels) {
    cogpu_file *file = NULL;
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .data = pixels,
                           .type = COGPU_TYPE_U16,
                           .bands = 1,
                           .height = HEIGHT,
                           .width = WIDTH};
    need(cogpu_open_memory(memory->data, memory->bytes, NULL, &file, &error));
    need(cogpu_read(file, NULL, &raster, NULL, &error));
    cogpu_close(file);
}

static void is_passed_on(const char *codec) {
    static uint16_t pixels[HEIGHT * WIDTH], found[HEIGHT * WIDTH];
    cogpu_profile profile = {.struct_size = sizeof(cogpu_profile),
                             .width = WIDTH,
                             .height = HEIGHT,
                             .bands = 1,
                             .type = COGPU_TYPE_U16,
                             .cog = 1,
                             .block_width = 32,
                             .block_height = 32,
                             .codec = codec};
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .data = pixels,
                           .type = COGPU_TYPE_U16,
                           .bands = 1,
                           .height = HEIGHT,
                           .width = WIDTH};
    cogpu_memory old = COGPU_MEMORY_INIT;
    cogpu_file *file = NULL;
    for (uint32_t i = 0; i < HEIGHT * WIDTH; i++)
        pixels[i] = (uint16_t)(i * 2654435761u >> 20);
    need(cogpu_write(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &old}, &profile,
                     &raster, NULL, NULL, &error));
    need(cogpu_open_memory(old.data, old.bytes, NULL, &file, &error));
    need(cogpu_context_open(
        &(cogpu_context_options){.struct_size = sizeof(cogpu_context_options), .threads = 2},
        &profile.context, &error));
    profile.device = kind;
    cogpu_memory copy = pass_on(file, &profile);
    cogpu_context_close(profile.context);
    cogpu_close(file);
    read_whole(&copy, found);
    CHECK(memcmp(found, pixels, sizeof pixels) == 0);
    cogpu_memory_free(&old);
    cogpu_memory_free(&copy);
}

static void plain(void) {
    is_passed_on("none");
}

static void coded(void) {
    is_passed_on("packbits");
}

TESTS(device_convert) {
    const char *device = getenv("COGPU_TEST_DEVICE");
    kind = device && strcmp(device, "cuda") == 0 ? COGPU_DEVICE_CUDA : COGPU_DEVICE_EMULATOR;
    RUN(plain);
    RUN(coded);
    return FINISH();
}
