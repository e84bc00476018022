/*
 * Devices with less shared memory than some kernels need, on the emulator (COGPU_EMU_CAPABILITY).
 * Each codec writes and reads the same pixels there. No kernel is launched that does not fit: the
 * CPU decodes and encodes instead, and that is decided before the launch.
 */
#include "support/device_reads.h"
#include "support/draw.h"

#include <string.h>

enum { WIDTH = 150, HEIGHT = 130, BANDS = 2, BLOCK = 64, PIXELS = WIDTH * HEIGHT };
enum { BYTES = PIXELS * BANDS * sizeof(uint16_t) };

/* What the device does with a codec, for each compute capability. */
struct expectation {
    const char *capability, *codec;
    bool is_decoded, is_encoded;
};

static const struct expectation expectations[] = {
    {"7.5", "packbits", true, true}, {"7.5", "lzw", true, true},
    {"7.5", "deflate", true, false}, {"7.5", "zstd", true, false},
    {"7.5", "none", true, true},     {"7.5", "lzma", false, false},
    {"8.6", "packbits", true, true}, {"8.6", "lzw", true, true},
    {"8.6", "deflate", true, true},  {"8.6", "zstd", true, false},
    {"9.0", "deflate", true, true},  {"9.0", "zstd", true, true},
};

static cogpu_error error;
static cogpu_context *context;
static uint16_t *pixels;
static uint8_t *mask;

static void need(cogpu_status status) {
    gpu_test_need(status, &error);
}

/* ---- launches ------------------------------------------------------------------------------ */

static uint32_t codec_launches; /* of kernels of decoders and encoders */
static bool has_too_large;      /* a kernel that needs more shared memory than there is */

static bool is_codec_kernel(const cogpu_kernel *kernel) {
    static const char *const folders[] = {"/deflate/", "/lzw/", "/packbits/", "/zstd/"};
    bool is = false;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        is = is || strstr(kernel->file, folders[i]);
    return is;
}

static cogpu_status count_launch(cogpu_gpu *gpu, const cogpu_kernel *kernel, uint32_t blocks,
                                 const void *args, cogpu_gpu_stream *stream, cogpu_error *failure) {
    codec_launches += is_codec_kernel(kernel);
    has_too_large = has_too_large || kernel->shared_bytes > gpu->shared_bytes;
    return original_calls->launch(gpu, kernel, blocks, args, stream, failure);
}

/* ---- a file -------------------------------------------------------------------------------- */

static void draw_pixels(void) {
    pixels = malloc(BYTES);
    mask = malloc(PIXELS);
    for (uint32_t i = 0; i < PIXELS * BANDS; i++)
        pixels[i] = (uint16_t)(i / 40 + draw(5));
    for (uint32_t i = 0; i < PIXELS; i++)
        mask[i] = draw(7) ? 255 : 0;
}

static cogpu_raster raster_of_pixels(void *data, cogpu_device_kind device) {
    return (cogpu_raster){.struct_size = sizeof(cogpu_raster),
                          .data = data,
                          .type = COGPU_TYPE_U16,
                          .bands = BANDS,
                          .width = WIDTH,
                          .height = HEIGHT,
                          .device = device};
}

/* From memory of this device, or of the CPU. */
static cogpu_memory write_file(const char *codec, bool has_mask, cogpu_device_kind device) {
    cogpu_memory memory = COGPU_MEMORY_INIT;
    cogpu_writer *writer = NULL;
    cogpu_profile profile = {.struct_size = sizeof(cogpu_profile),
                             .width = WIDTH,
                             .height = HEIGHT,
                             .bands = BANDS,
                             .type = COGPU_TYPE_U16,
                             .block_width = BLOCK,
                             .block_height = BLOCK,
                             .codec = codec,
                             .mask = has_mask,
                             .context = context,
                             .device = device};
    cogpu_raster rows = raster_of_pixels(pixels, COGPU_DEVICE_CPU);
    cogpu_raster mask_rows = {.struct_size = sizeof(cogpu_raster),
                              .data = mask,
                              .type = COGPU_TYPE_U8,
                              .bands = 1,
                              .width = WIDTH,
                              .height = HEIGHT};
    need(cogpu_writer_open(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &memory},
                           &profile, &writer, &error));
    need(cogpu_writer_write_rows(writer, &rows, has_mask ? &mask_rows : NULL, &error));
    need(cogpu_writer_close(writer, NULL, &error));
    return memory;
}

/* Reads pixels on a device, the mask on the CPU. Memory of the emulator is host memory. */
static cogpu_result check_file(const cogpu_memory *memory, cogpu_device_kind device,
                               bool has_mask) {
    cogpu_file *file = NULL;
    cogpu_result result = COGPU_RESULT_INIT;
    uint16_t *got = calloc(1, BYTES);
    uint8_t *got_mask = calloc(BANDS, PIXELS);
    cogpu_request request = {.struct_size = sizeof(cogpu_request), .context = context};
    cogpu_raster raster = raster_of_pixels(got, device);
    cogpu_raster mask_raster = raster_of_pixels(got_mask, COGPU_DEVICE_CPU);
    mask_raster.type = COGPU_TYPE_U8;
    need(cogpu_open_memory(memory->data, memory->bytes, NULL, &file, &error));
    need(cogpu_read(file, &request, &raster, &result, &error));
    CHECK(memcmp(got, pixels, BYTES) == 0);
    request.content = COGPU_CONTENT_MASK;
    need(cogpu_read(file, &request, &mask_raster, NULL, &error));
    CHECK(!has_mask || memcmp(got_mask, mask, PIXELS) == 0);
    cogpu_close(file);
    free(got);
    free(got_mask);
    return result;
}

/* ---- tests --------------------------------------------------------------------------------- */

static bool is_same(const cogpu_memory *a, const cogpu_memory *b) {
    return a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

static void check_codec(const struct expectation *expected, bool has_mask) {
    const bool is_plain = strcmp(expected->codec, "none") == 0;
    const bool encodes_mask = strcmp(expected->capability, "7.5") != 0;
    const bool is_encoded = expected->is_encoded && (encodes_mask || !has_mask);
    cogpu_memory host = write_file(expected->codec, has_mask, COGPU_DEVICE_CPU);
    codec_launches = 0;
    cogpu_memory file = write_file(expected->codec, has_mask, COGPU_DEVICE_EMULATOR);
    CHECK((codec_launches > 0) == (is_encoded && (!is_plain || has_mask)));
    CHECK(is_encoded || is_same(&host, &file)); /* by the CPU */
    (void)check_file(&file, COGPU_DEVICE_CPU, has_mask);
    codec_launches = 0;
    cogpu_result result = check_file(&host, COGPU_DEVICE_EMULATOR, has_mask);
    CHECK((codec_launches > 0) == (expected->is_decoded && !is_plain));
    CHECK(result.blocks == 9 && result.cpu_fallback_blocks == 0);
    CHECK(result.device_blocks == (expected->is_decoded && !is_plain ? result.blocks : 0));
    cogpu_memory_free(&host);
    cogpu_memory_free(&file);
}

static void test_codecs(void) {
    for (size_t i = 0; i < sizeof expectations / sizeof *expectations; i++) {
        const struct expectation *expected = &expectations[i];
        const int was_broken = test_broken;
        cogpu_gpu *gpu = NULL;
        test_broken = 0;
        setenv("COGPU_EMU_CAPABILITY", expected->capability, 1);
        context = open_device(1, 1 << 30, ENOUGH, &gpu);
        replace_calls(gpu)->launch = count_launch;
        check_codec(expected, false);
        check_codec(expected, true);
        CHECK(!has_too_large);
        gpu->calls = original_calls;
        cogpu_context_close(context);
        if (test_broken)
            printf("... %s on compute capability %s\n", expected->codec, expected->capability);
        test_broken |= was_broken;
    }
    unsetenv("COGPU_EMU_CAPABILITY");
}

/* Without these there are no reads and writes, so each device must have the memory for them. */
static void test_common_kernels_fit_all_devices(void) {
    extern const cogpu_kernel cogpu_kernel_unpack_whole, cogpu_kernel_unpack_planes,
        cogpu_kernel_unpack_bits, cogpu_kernel_unpack_large_pixels, cogpu_kernel_pack,
        cogpu_kernel_pack_large_pixels, cogpu_kernel_compact_scan, cogpu_kernel_compact_gather,
        cogpu_kernel_copy_rows, cogpu_kernel_apply_mask, cogpu_kernel_jpeg_interleave,
        cogpu_kernel_downsample_nearest, cogpu_kernel_downsample_zero_masked,
        cogpu_kernel_downsample_average_u8, cogpu_kernel_downsample_select,
        cogpu_kernel_downsample_select_many, cogpu_kernel_downsample_weighted_any;
    static const cogpu_kernel *const kernels[] = {&cogpu_kernel_unpack_whole,
                                                  &cogpu_kernel_unpack_planes,
                                                  &cogpu_kernel_unpack_bits,
                                                  &cogpu_kernel_unpack_large_pixels,
                                                  &cogpu_kernel_pack,
                                                  &cogpu_kernel_pack_large_pixels,
                                                  &cogpu_kernel_compact_scan,
                                                  &cogpu_kernel_compact_gather,
                                                  &cogpu_kernel_copy_rows,
                                                  &cogpu_kernel_apply_mask,
                                                  &cogpu_kernel_jpeg_interleave,
                                                  &cogpu_kernel_downsample_nearest,
                                                  &cogpu_kernel_downsample_zero_masked,
                                                  &cogpu_kernel_downsample_average_u8,
                                                  &cogpu_kernel_downsample_select,
                                                  &cogpu_kernel_downsample_select_many,
                                                  &cogpu_kernel_downsample_weighted_any,
                                                  NULL};
    const cogpu_gpu least = {.shared_bytes = 64 << 10};
    CHECK(cogpu_gpu_can_run(&least, kernels));
    CHECK(!cogpu_gpu_can_run(&(cogpu_gpu){.shared_bytes = 16 << 10}, kernels));
}

static cogpu_status open_emulator(const char *capability, cogpu_gpu **gpu) {
    setenv("COGPU_EMU_CAPABILITY", capability, 1);
    cogpu_status status = cogpu_gpu_open_emulator(1, 1 << 20, gpu, &error);
    unsetenv("COGPU_EMU_CAPABILITY");
    return status;
}

static void test_capabilities(void) {
    static const struct {
        const char *text;
        uint32_t capability, shared_kilobytes;
    } known[] = {{"7.5", 75, 64},  {"8.0", 80, 163},   {"8.6", 86, 99},  {"8.9", 89, 99},
                 {"9.0", 90, 227}, {"10.0", 100, 227}, {"12.0", 120, 99}};
    static const char *const wrong[] = {"", "7", "75", "7.", ".5", "7.5x", "7.55", "sm_75"};
    cogpu_gpu *gpu = NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        need(open_emulator(known[i].text, &gpu));
        CHECK(gpu->capability == known[i].capability &&
              gpu->shared_bytes == known[i].shared_kilobytes << 10);
        gpu->calls->close(gpu);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(open_emulator(wrong[i], &gpu) == COGPU_DEVICE_ERROR &&
              strstr(error.message, "COGPU_EMU_CAPABILITY must be"));
    CHECK(open_emulator("7.2", &gpu) == COGPU_DEVICE_ERROR);
    CHECK_TEXT(error.message, "the emulated device cannot be used: its compute capability is 7.2, "
                              "and 7.5 or more is needed");
}

/* As cuFuncSetAttribute does on a GPU. */
static void test_launch_fails_without_memory(void) {
    static const uint32_t args;
    const cogpu_kernel large = {.name = "large", .shared_bytes = (64 << 10) + 1, .threads = 32};
    cogpu_gpu *gpu = NULL;
    cogpu_gpu_stream *stream = NULL;
    need(open_emulator("7.5", &gpu));
    need(gpu->calls->stream_open(gpu, false, &stream, &error));
    CHECK(gpu->calls->launch(gpu, &large, 1, &args, stream, &error) == COGPU_DEVICE_ERROR);
    CHECK_TEXT(error.message, "large needs 65537 bytes of shared memory, and the emulated device "
                              "has 65536");
    gpu->calls->stream_close(gpu, stream);
    gpu->calls->close(gpu);
}

TESTS(small_device) {
    draw_from(test_argc, test_argv);
    draw_pixels();
    RUN(test_capabilities);
    RUN(test_launch_fails_without_memory);
    RUN(test_common_kernels_fit_all_devices);
    RUN(test_codecs);
    free(pixels);
    free(mask);
    return FINISH();
}
