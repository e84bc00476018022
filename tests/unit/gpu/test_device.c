/*
 * Devices by number, and memory and streams of others: on emulated GPUs, and on a GPU where
 * COGPU_TEST_DEVICE is "cuda".
 */
#include "context/context.h"
#include "support/gpu_test.h"
#include "support/test.h"

static cogpu_error error;

static void need(cogpu_status status) {
    gpu_test_need(status, &error);
}

static cogpu_device_kind tested_kind(void) {
    return gpu_test_is_real() ? COGPU_DEVICE_CUDA : COGPU_DEVICE_EMULATOR;
}

static cogpu_context *open_context(void) {
    cogpu_context *context = NULL;
    need(cogpu_context_open(
        &(cogpu_context_options){.struct_size = sizeof(cogpu_context_options), .threads = 2},
        &context, &error));
    return context;
}

static bool lies_on(cogpu_context *context, const void *memory, cogpu_device_kind kind,
                    uint32_t index) {
    cogpu_device_kind found = COGPU_DEVICE_CPU;
    uint32_t number = UINT32_MAX;
    need(cogpu_pointer_device(context, memory, &found, &number, &error));
    return found == kind && number == index;
}

/* ---- which there are ----------------------------------------------------------------------- */

/* The emulated ones, which are the last. */
static uint32_t list_emulated(char names[32][16]) {
    uint32_t count = 0;
    cogpu_device device = COGPU_DEVICE_INIT;
    for (uint32_t i = 0; cogpu_device_info(i, &device, NULL) == COGPU_OK; i++)
        if (device.kind == COGPU_DEVICE_EMULATOR) {
            CHECK(device.index == count);
            snprintf(names[count++], sizeof names[0], "%s", device.name);
        }
    return count;
}

static void test_emulated_devices_are_counted(void) {
    static const char *const bad[] = {"", "0", "17", "x", "2x", "-1", "99999999999999999999"};
    char names[32][16];
    unsetenv("COGPU_EMU_DEVICES");
    CHECK(list_emulated(names) == 1);
    CHECK_TEXT(names[0], "emu");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv("COGPU_EMU_DEVICES", bad[i], 1);
        CHECK(list_emulated(names) == 1);
    }
    setenv("COGPU_EMU_DEVICES", "16", 1);
    CHECK(list_emulated(names) == 16);
    CHECK_TEXT(names[0], "emu:0");
    CHECK_TEXT(names[15], "emu:15");
    unsetenv("COGPU_EMU_DEVICES");
}

static void test_past_the_last(void) {
    cogpu_context *context = open_context();
    void *memory = NULL;
    CHECK(cogpu_device_allocate(context, COGPU_DEVICE_EMULATOR, 1, 1, &memory, &error) ==
          COGPU_DEVICE_ERROR);
    CHECK_TEXT(error.message, "there is no emulated GPU 1: there is one");
    setenv("COGPU_EMU_DEVICES", "3", 1);
    CHECK(cogpu_device_allocate(context, COGPU_DEVICE_EMULATOR, 3, 1, &memory, &error) ==
          COGPU_DEVICE_ERROR);
    CHECK_TEXT(error.message, "there is no emulated GPU 3: there are 3");
    CHECK(cogpu_device_allocate(context, COGPU_DEVICE_EMULATOR, 2, 1, &memory, &error) == COGPU_OK);
    cogpu_device_free(context, COGPU_DEVICE_EMULATOR, 2, memory);
    unsetenv("COGPU_EMU_DEVICES");
    cogpu_context_close(context);
}

static void test_current_emulated(void) {
    static const char *const bad[] = {"", "x", "1x", "-1", "2", "4294967296"};
    uint32_t index = 7;
    CHECK(cogpu_device_current(COGPU_DEVICE_EMULATOR, &index, &error) == COGPU_OK && index == 0);
    setenv("COGPU_EMU_DEVICE", "1", 1);
    CHECK(cogpu_device_current(COGPU_DEVICE_EMULATOR, &index, &error) == COGPU_DEVICE_ERROR);
    CHECK_TEXT(error.message, "there is no emulated GPU 1: there is one");
    setenv("COGPU_EMU_DEVICES", "2", 1);
    CHECK(cogpu_device_current(COGPU_DEVICE_EMULATOR, &index, &error) == COGPU_OK && index == 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv("COGPU_EMU_DEVICE", bad[i], 1);
        CHECK(cogpu_device_current(COGPU_DEVICE_EMULATOR, &index, &error) == COGPU_DEVICE_ERROR &&
              index == 0);
    }
    unsetenv("COGPU_EMU_DEVICE");
    unsetenv("COGPU_EMU_DEVICES");
}

static void test_current_others(void) {
    uint32_t index = 7;
    CHECK(cogpu_device_current(COGPU_DEVICE_CPU, &index, &error) == COGPU_OK && index == 0);
    index = 7;
    cogpu_status status = cogpu_device_current(COGPU_DEVICE_CUDA, &index, &error);
    CHECK(status == (cogpu_cuda_unavailable_reason() ? COGPU_DEVICE_ERROR : COGPU_OK) &&
          index == 0);
    CHECK(cogpu_device_current((cogpu_device_kind)9, &index, &error) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_device_current(COGPU_DEVICE_CPU, NULL, &error) == COGPU_INVALID_ARGUMENT);
}

/* ---- where memory lies --------------------------------------------------------------------- */

static void test_memory_of_a_device(void) {
    enum { BYTES = 1000 };
    const cogpu_device_kind kind = tested_kind();
    cogpu_context *context = open_context(), *other = open_context();
    uint8_t *host = malloc(BYTES);
    void *memory = NULL;
    CHECK(lies_on(context, host, COGPU_DEVICE_CPU, 0)); /* before any device is open */
    need(cogpu_device_allocate(context, kind, 0, BYTES, &memory, &error));
    CHECK(lies_on(context, memory, kind, 0));
    CHECK(lies_on(context, (uint8_t *)memory + BYTES - 1, kind, 0));
    CHECK(lies_on(context, host, COGPU_DEVICE_CPU, 0) && lies_on(NULL, host, COGPU_DEVICE_CPU, 0));
    CHECK(lies_on(other, memory, gpu_test_is_real() ? kind : COGPU_DEVICE_CPU, 0));
    if (!gpu_test_is_real()) /* CUDA's allocations are larger than asked for */
        CHECK(lies_on(context, (uint8_t *)memory + BYTES, COGPU_DEVICE_CPU, 0));
    cogpu_device_free(context, kind, 0, memory);
    if (!gpu_test_is_real()) /* CUDA frees small allocations later, many at a time */
        CHECK(lies_on(context, memory, COGPU_DEVICE_CPU, 0));
    cogpu_device_kind found;
    uint32_t index;
    CHECK(cogpu_pointer_device(context, NULL, &found, &index, &error) == COGPU_INVALID_ARGUMENT);
    free(host);
    cogpu_context_close(context);
    cogpu_context_close(other);
}

/* Host memory that a GPU knows is still the host's. */
static void test_pinned_memory(void) {
    cogpu_context *context = open_context();
    cogpu_gpu_device *device = NULL;
    void *pinned = NULL;
    need(cogpu_context_device(context, tested_kind(), 0, &device, &error));
    cogpu_gpu *gpu = cogpu_gpu_device_gpu(device);
    need(gpu->calls->allocate_pinned(gpu, 100, &pinned, &error));
    CHECK(lies_on(context, pinned, COGPU_DEVICE_CPU, 0));
    gpu->calls->release_pinned(gpu, pinned);
    cogpu_context_close(context);
}

static void test_memory_of_many_devices(void) {
    enum { DEVICES = 4 };
    setenv("COGPU_EMU_DEVICES", "4", 1);
    cogpu_context *context = open_context();
    void *memory[DEVICES];
    for (uint32_t i = 0; i < DEVICES; i++)
        need(cogpu_device_allocate(context, COGPU_DEVICE_EMULATOR, i, 64, &memory[i], &error));
    for (uint32_t i = 0; i < DEVICES; i++)
        CHECK(lies_on(context, memory[i], COGPU_DEVICE_EMULATOR, i));
    for (uint32_t i = 0; i < DEVICES; i++)
        cogpu_device_free(context, COGPU_DEVICE_EMULATOR, i, memory[i]);
    cogpu_context_close(context);
    unsetenv("COGPU_EMU_DEVICES");
}

/* ---- pixels -------------------------------------------------------------------------------- */

enum { SIDE = 80 };

/* A COG that is written from rows on one device, read into memory of another, and copied to the
 * host. */
static void is_passed_on(cogpu_context *context, uint32_t from, uint32_t to, uint32_t writing) {
    uint16_t pixels[SIDE * SIDE], found[SIDE * SIDE];
    cogpu_memory memory = COGPU_MEMORY_INIT;
    cogpu_file *file = NULL;
    cogpu_result result = COGPU_RESULT_INIT;
    cogpu_raster rows = {.struct_size = sizeof(cogpu_raster),
                         .type = COGPU_TYPE_U16,
                         .bands = 1,
                         .width = SIDE,
                         .height = SIDE,
                         .device = COGPU_DEVICE_EMULATOR};
    const cogpu_request request = {.struct_size = sizeof(cogpu_request), .context = context};
    const cogpu_profile profile = {.struct_size = sizeof(cogpu_profile),
                                   .width = SIDE,
                                   .height = SIDE,
                                   .bands = 1,
                                   .type = COGPU_TYPE_U16,
                                   .cog = 1,
                                   .codec = "packbits",
                                   .block_width = 32,
                                   .block_height = 32,
                                   .context = context,
                                   .device = COGPU_DEVICE_EMULATOR,
                                   .device_index = writing};
    for (uint32_t i = 0; i < SIDE * SIDE; i++)
        pixels[i] = (uint16_t)((i + from + to) * 2654435761u >> 21);
    cogpu_raster there = rows;
    there.device_index = to;
    rows.device_index = from;
    need(cogpu_device_allocate(context, COGPU_DEVICE_EMULATOR, from, sizeof pixels, &rows.data,
                               &error));
    need(cogpu_device_allocate(context, COGPU_DEVICE_EMULATOR, to, sizeof pixels, &there.data,
                               &error));
    need(cogpu_device_upload(context, COGPU_DEVICE_EMULATOR, from, pixels, sizeof pixels, rows.data,
                             &error));
    need(cogpu_write(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &memory}, &profile,
                     &rows, NULL, NULL, &error));
    need(cogpu_open_memory(memory.data, memory.bytes, NULL, &file, &error));
    need(cogpu_read(file, &request, &there, &result, &error));
    need(cogpu_device_download(context, COGPU_DEVICE_EMULATOR, to, there.data, sizeof found, found,
                               &error));
    CHECK(memcmp(found, pixels, sizeof found) == 0 && result.device_blocks == result.blocks);
    cogpu_close(file);
    cogpu_memory_free(&memory);
    cogpu_device_free(context, COGPU_DEVICE_EMULATOR, from, rows.data);
    cogpu_device_free(context, COGPU_DEVICE_EMULATOR, to, there.data);
}

static void test_pixels_on_many_devices(void) {
    setenv("COGPU_EMU_DEVICES", "2", 1);
    cogpu_context *context = open_context();
    for (uint32_t i = 0; i < 8; i++)
        is_passed_on(context, i & 1, i >> 1 & 1, i >> 2);
    cogpu_context_close(context);
    unsetenv("COGPU_EMU_DEVICES");
}

/* ---- streams ------------------------------------------------------------------------------- */

/* A copy in one stream of what a copy in another one brings. */
static void test_stream_follows(void) {
    const cogpu_device_kind kind = tested_kind();
    for (int seed = 1; seed <= 8; seed++) {
        char text[16];
        uint8_t first[64], second[64] = {0};
        cogpu_gpu_stream *streams[2] = {NULL};
        cogpu_gpu_device *device = NULL;
        void *memory = NULL;
        snprintf(text, sizeof text, "%d", seed);
        setenv("COGPU_EMU_SEED", text, 1);
        memset(first, seed, sizeof first);
        cogpu_context *context = open_context();
        need(cogpu_context_device(context, kind, 0, &device, &error));
        cogpu_gpu *gpu = cogpu_gpu_device_gpu(device);
        need(cogpu_device_allocate(context, kind, 0, sizeof first, &memory, &error));
        for (int i = 0; i < 2; i++)
            need(gpu->calls->stream_open(gpu, false, &streams[i], &error));
        need(gpu->calls->copy_up(gpu, memory, first, sizeof first, streams[0], &error));
        need(cogpu_stream_wait(context, kind, 0, streams[1], streams[0], &error));
        need(gpu->calls->copy_down(gpu, second, memory, sizeof second, streams[1], &error));
        need(gpu->calls->finish_stream(gpu, streams[1], &error));
        CHECK(memcmp(first, second, sizeof first) == 0);
        for (int i = 0; i < 2; i++)
            gpu->calls->stream_close(gpu, streams[i]);
        cogpu_device_free(context, kind, 0, memory);
        cogpu_context_close(context);
    }
    unsetenv("COGPU_EMU_SEED");
}

/* NULL, and the numbers that DLPack has for default streams, as any of both. */
static void test_default_streams(void) {
    const cogpu_device_kind kind = tested_kind();
    cogpu_context *context = open_context();
    cogpu_gpu_device *device = NULL;
    cogpu_gpu_stream *stream = NULL;
    need(cogpu_context_device(context, kind, 0, &device, &error));
    cogpu_gpu *gpu = cogpu_gpu_device_gpu(device);
    need(gpu->calls->stream_open(gpu, false, &stream, &error));
    for (uintptr_t number = 0; number <= 2; number++) {
        CHECK(cogpu_stream_wait(context, kind, 0, stream, (void *)number, &error) == COGPU_OK);
        CHECK(cogpu_stream_wait(context, kind, 0, (void *)number, stream, &error) == COGPU_OK);
    }
    gpu->calls->stream_close(gpu, stream);
    CHECK(cogpu_stream_wait(context, COGPU_DEVICE_CPU, 0, NULL, NULL, &error) ==
          COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_stream_wait(NULL, kind, 0, NULL, NULL, &error) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_stream_wait(context, COGPU_DEVICE_EMULATOR, 1, NULL, NULL, &error) ==
          COGPU_DEVICE_ERROR);
    cogpu_context_close(context);
}

TESTS(device) {
    RUN(test_emulated_devices_are_counted);
    RUN(test_past_the_last);
    RUN(test_current_emulated);
    RUN(test_current_others);
    RUN(test_memory_of_a_device);
    RUN(test_pinned_memory);
    RUN(test_memory_of_many_devices);
    RUN(test_pixels_on_many_devices);
    RUN(test_stream_follows);
    RUN(test_default_streams);
    return FINISH();
}
