/*
 * What the CUDA driver layer does before and at the first read: which GPUs it refuses and how it
 * says so, and that it loads and allocates only what this read needs. With fake_cuda.c in place of
 * libcuda, and modules that stand for those of nvcc.
 */
#include "gpu/driver/gpu.h"
#include "gpu/driver/modules.h"
#include "support/device_reads.h"
#include "support/fake_cuda.h"
#include "support/fake_cufile.h"
#include "support/stand_in.h"

/* In place of modules.c. The image of a module is its name. */
#define MODULE(name)                                                                               \
    { name, name }
const cogpu_module cogpu_modules[] = {
    MODULE("inflate"),
    MODULE("deflate"),
    MODULE("deflate_chain"),
    MODULE("unpack"),
    MODULE("pack"),
    MODULE("compact"),
    MODULE("lzw_decode"),
    MODULE("lzw_decode_scan"),
    MODULE("packbits_decode"),
    MODULE("downsample"),
    MODULE("zstd_decode_scan"),
    MODULE("unpack_large_pixels"),
};
const size_t cogpu_module_count = sizeof cogpu_modules / sizeof *cogpu_modules;
const uint32_t cogpu_module_capabilities[] = {80, 90, 0};

static fake_cuda *fake;
static cogpu_error error;

static void in_a_fresh_process(void (*test)(void)) {
    in_a_process("FAKE_CUDA", FAKE_CUDA, "fake_cuda_control", (void **)&fake, test);
}

/* ---- which GPUs are refused ---------------------------------------------------------------- */

static cogpu_status open_with(int capability) {
    cogpu_gpu *gpu = NULL;
    fake->capability = capability;
    cogpu_status status = cogpu_gpu_open_cuda(0, &gpu, &error);
    if (status == COGPU_OK)
        gpu->calls->close(gpu);
    return status;
}

static void open_capabilities(void) {
    static const int good[] = {80, 86, 89, 90, 100, 121};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK(open_with(good[i]) == COGPU_OK);
    CHECK(fake->contexts == sizeof good / sizeof *good);
    CHECK(open_with(70) == COGPU_DEVICE_ERROR);
    CHECK_TEXT(error.message, "Fake GPU cannot be used: its compute capability is 7.0, and 7.5 or "
                              "more is needed");
    CHECK(open_with(75) == COGPU_DEVICE_ERROR);
    CHECK_TEXT(error.message,
               "Fake GPU cannot be used: its compute capability is 7.5, and this build has kernels "
               "for 8.0, 9.0 and later; rebuild it with 75 in COGPU_CUDA_ARCHITECTURES");
    CHECK(fake->contexts == sizeof good / sizeof *good); /* none for a GPU that is refused */
}

static void test_capabilities(void) {
    in_a_fresh_process(open_capabilities);
}

static void describe_refused(void) {
    static const char text[] =
        "Fake GPU cannot be used: its compute capability is 6.1, and 7.5 or more is needed";
    cogpu_device device = COGPU_DEVICE_INIT;
    uint32_t index = 0;
    fake->capability = 61;
    CHECK_TEXT(cogpu_cuda_unavailable_reason(), text);
    CHECK(cogpu_device_info(1, &device, NULL) == COGPU_OK && device.kind == COGPU_DEVICE_CUDA);
    CHECK_TEXT(device.description, text);
    CHECK(cogpu_device_info(2, &device, NULL) == COGPU_OK && device.kind == COGPU_DEVICE_EMULATOR);
    CHECK(cogpu_device_current(COGPU_DEVICE_CUDA, &index, &error) == COGPU_DEVICE_ERROR);
    CHECK(fake->contexts == 0);
}

static void describe_usable(void) {
    cogpu_device device = COGPU_DEVICE_INIT;
    fake->capability = 89;
    CHECK(!cogpu_cuda_unavailable_reason());
    CHECK(cogpu_device_info(1, &device, NULL) == COGPU_OK);
    CHECK_TEXT(device.description, "Fake GPU, 8 multiprocessors, 512 MiB, compute capability 8.9");
    CHECK(fake->contexts == 0);
}

static void test_descriptions(void) {
    in_a_fresh_process(describe_refused);
    in_a_fresh_process(describe_usable);
}

/* ---- the first read ------------------------------------------------------------------------ */

static bool has_loaded(const char *name) {
    bool has = false;
    for (uint32_t i = 0; i < fake->module_count; i++)
        has = has || strcmp(fake->modules[i], name) == 0;
    return has;
}

/* A read of a small file of Deflate tiles. The fake decodes nothing, so the CPU has to. */
static cogpu_status read_tiles(void) {
    struct image image = open_image(&tiles);
    cogpu_context *context = open_context(ENOUGH);
    cogpu_request request = {.struct_size = sizeof(cogpu_request), .context = context};
    cogpu_raster raster = image.raster;
    uint64_t bytes = (uint64_t)tiles.width * tiles.height * sizeof(uint16_t);
    raster.device = COGPU_DEVICE_CUDA;
    setenv("COGPU_ALWAYS_DEVICE", "1", 1);
    move_to_path(&image);
    CHECK(cogpu_device_allocate(context, COGPU_DEVICE_CUDA, 0, bytes, &raster.data, &error) ==
          COGPU_OK);
    cogpu_status status = cogpu_read(image.file, &request, &raster, NULL, &error);
    cogpu_device_free(context, COGPU_DEVICE_CUDA, 0, raster.data);
    cogpu_context_close(context);
    close_image(&image);
    return status;
}

/* cuFile would be found, and opening it would count. */
static void read_first(void) {
    fake_cufile *(*control)(void);
    void *library = dlopen(FAKE_CUFILE, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "fake_cufile_control") : NULL;
    CHECK(symbol && dlopen("libcufile.so.0", RTLD_NOW | RTLD_NOLOAD));
    memcpy(&control, &symbol, sizeof symbol);
    CHECK(read_tiles() == COGPU_OK);
    CHECK(fake->contexts == 1);
    CHECK(fake->module_count == 2 && has_loaded("inflate") && has_loaded("unpack"));
    CHECK(fake->pinned_bytes <= 2 << 20);
    CHECK(control()->driver_opens == 0);
}

static void test_first_read_loads_what_it_needs(void) {
    in_a_fresh_process(read_first);
}

enum { NO_BINARY_FOR_GPU = 209 };

static void load_without_image(void) {
    fake->load_result = NO_BINARY_FOR_GPU;
    fake->capability = 120;
    CHECK(read_tiles() == COGPU_DEVICE_ERROR);
    CHECK(strstr(error.message, "its compute capability is 12.0; this build has kernels for 8.0, "
                                "9.0 and later"));
}

static void test_no_kernel_image(void) {
    in_a_fresh_process(load_without_image);
}

TESTS(cuda_start) {
    RUN(test_capabilities);
    RUN(test_descriptions);
    RUN(test_first_read_loads_what_it_needs);
    RUN(test_no_kernel_image);
    return FINISH();
}
