/*
 * JPEG blocks encoded by nvJPEG. A fake nvJPEG must give streams that decode to the same pixels as
 * those of the CPU encoder. On a GPU (COGPU_TEST_DEVICE is "cuda") the true nvJPEG encodes the same
 * batches, and pixels are nearly the same. If a call fails, the writer reports it, or the CPU
 * encodes.
 */
#include "support/test.h"

#include "codec/codec.h"

#if COGPU_HAVE_JPEG
#include "gpu/driver/nvjpeg_library.h"

#include "support/fake_nvjpeg.h"
#include "support/gpu_encode_test.h"
#include "support/stand_in.h"

enum { COUNT = 21, LANES = 8, SIDE_MAX = 80, PHOTOMETRIC_GREY = 1, PHOTOMETRIC_YCBCR = 6 };
enum { NO_MEMORY = 5, INTERNAL = 8 }; /* errors of nvJPEG's */

static fake_nvjpeg *fake;
static cogpu_error error;
static cogpu_gpu *gpu;
static uint64_t random_state = 1;

static uint32_t draw(uint32_t below) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

static void with_nvjpeg(const char *path, void (*test)(void)) {
    in_a_process("COGPU_NVJPEG", path, "fake_nvjpeg_control", (void **)&fake, test);
}

static bool is_real(void) {
    return !gpu->is_emulated;
}

/* ---- batches ------------------------------------------------------------------------------- */

static cogpu_encoding encoding_of(uint32_t samples, int quality) {
    const uint32_t step = samples == 3 ? 2 : 1;
    cogpu_encoding encoding = {.quality = quality};
    encoding.format.samples = samples;
    encoding.format.bits = 8;
    encoding.format.type = COGPU_TYPE_U8;
    encoding.format.compression = COMPRESSION_JPEG;
    encoding.format.photometric = samples == 3 ? PHOTOMETRIC_YCBCR : PHOTOMETRIC_GREY;
    encoding.format.subsampling_x = encoding.format.subsampling_y = step;
    return encoding;
}

static cogpu_encoding encoding_for(const cogpu_encoding *all, const gpu_block *block) {
    cogpu_encoding encoding = *all;
    encoding.format.row_bytes = block->row_bytes;
    encoding.format.width = block->row_bytes / encoding.format.samples;
    encoding.format.height = block->in_bytes / block->row_bytes;
    return encoding;
}

/* A slope with some noise, or noise alone. */
static gpu_block make_block(const cogpu_encoding *all, uint32_t width, uint32_t height,
                            uint32_t noise) {
    const uint32_t samples = all->format.samples;
    gpu_block block = {.row_bytes = width * samples, .in_bytes = width * height * samples};
    uint8_t *bytes = malloc(block.in_bytes);
    for (uint32_t i = 0; i < block.in_bytes; i++)
        bytes[i] = (uint8_t)(noise == 256 ? draw(256) : 40 + i / block.row_bytes + draw(noise));
    block.in = bytes;
    const cogpu_encoding encoding = encoding_for(all, &block);
    block.capacity = (uint32_t)cogpu_encoder_jpeg.bound(&encoding, block.in_bytes);
    return block;
}

static void make_blocks(const cogpu_encoding *all, gpu_block *blocks) {
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t width = i < 2 ? 64 : 1 + draw(SIDE_MAX), height = 1 + draw(SIDE_MAX);
        blocks[i] = make_block(all, width, i < 2 ? 64 : height, i % 5 ? 9 : 256);
        blocks[i].is_sparse = i == 3 || i == 4 + LANES || i == COUNT - 1;
    }
}

static void free_blocks(gpu_block *blocks) {
    for (uint32_t i = 0; i < COUNT; i++) {
        free((void *)(uintptr_t)blocks[i].in);
        free(blocks[i].out);
    }
}

static void decode(const cogpu_encoding *encoding, const uint8_t *stored, size_t stored_bytes,
                   uint8_t *out, size_t bytes) {
    cogpu_codec_state state = {0};
    size_t got = 0;
    CHECK(cogpu_decode_jpeg(&state, &encoding->format, stored, stored_bytes, out, bytes, &got,
                            &error) == COGPU_OK &&
          got == bytes);
    cogpu_codec_state_close(&state);
}

/* What the host stores of a block, decoded. */
static void decode_of_host(cogpu_encoding encoding, const gpu_block *block, uint8_t *out) {
    uint8_t tables[1024], *stored = malloc(block->capacity);
    cogpu_codec_state state = {0};
    size_t bytes = 0;
    CHECK(cogpu_jpeg_tables(&encoding, tables, sizeof tables, &encoding.format.jpeg_table_bytes,
                            &error) == COGPU_OK);
    encoding.format.jpeg_tables = tables;
    CHECK(cogpu_encoder_jpeg.encode(&state, &encoding, block->in, block->in_bytes, stored,
                                    block->capacity, &bytes, &error) == COGPU_OK);
    decode(&encoding, stored, bytes, out, block->in_bytes);
    cogpu_codec_state_close(&state);
    free(stored);
}

/* How far samples are from those that were encoded, all together. */
static uint64_t off_by(const uint8_t *found, const gpu_block *block) {
    uint64_t off = 0;
    for (uint32_t i = 0; i < block->in_bytes; i++)
        off += (uint64_t)abs(found[i] - ((const uint8_t *)block->in)[i]);
    return off;
}

/* The true nvJPEG must be as close to the pixels as the CPU encoder: it averages and rounds colours
 * in its own way. */
static bool is_as_by_host(const cogpu_encoding *all, const gpu_block *block) {
    const cogpu_encoding encoding = encoding_for(all, block);
    uint8_t *found = malloc(block->in_bytes), *expected = malloc(block->in_bytes);
    decode(&encoding, block->out, block->size, found, block->in_bytes);
    decode_of_host(encoding, block, expected);
    const uint64_t off = off_by(found, block), off_of_host = off_by(expected, block);
    const bool is_same = memcmp(found, expected, block->in_bytes) == 0;
    const bool is_near = off <= off_of_host + off_of_host / 10 + block->in_bytes / 2;
    if (is_real() && !is_near)
        printf("%u x %u, %u bands: off by %.3f, the host by %.3f\n", encoding.format.width,
               encoding.format.height, encoding.format.samples, (double)off / block->in_bytes,
               (double)off_of_host / block->in_bytes);
    free(found);
    free(expected);
    return is_real() ? is_near : is_same;
}

static void *open_encoder(const cogpu_encoding *encoding) {
    void *kept = NULL;
    gpu_test_need(cogpu_gpu_jpeg_encoder.open(gpu, encoding, &kept, &error), &error);
    return kept;
}

static bool encode(void *kept, gpu_block *blocks, uint32_t count) {
    return gpu_test_encode_kept(gpu, &cogpu_gpu_jpeg_encoder, kept, blocks, count, 0, 1);
}

/* Blocks alone, in another lane each time, have the bytes that they have in the batch. */
static void expect_same_alone(void *kept, const gpu_block *blocks) {
    for (uint32_t i = 0; i < COUNT; i += 4) {
        gpu_block pair[2] = {blocks[i], blocks[i]};
        pair[0].out = pair[1].out = NULL;
        CHECK(encode(kept, pair, 2));
        for (uint32_t j = 0; j < 2; j++)
            CHECK(pair[j].size == blocks[i].size &&
                  memcmp(pair[j].out, blocks[i].out, blocks[i].size) == 0);
        free(pair[0].out);
        free(pair[1].out);
    }
}

static void expect_batches(uint32_t samples, int quality) {
    const cogpu_encoding encoding = encoding_of(samples, quality);
    void *kept = open_encoder(&encoding);
    gpu_block blocks[COUNT];
    make_blocks(&encoding, blocks);
    CHECK(encode(kept, blocks, COUNT));
    for (uint32_t i = 0; i < COUNT; i++)
        CHECK(blocks[i].is_sparse || is_as_by_host(&encoding, &blocks[i]));
    expect_same_alone(kept, blocks);
    free_blocks(blocks);
    cogpu_gpu_jpeg_encoder.close(kept);
}

static void expect_all_batches(void) {
    static const int qualities[] = {75, 1, 30, 100};
    for (uint32_t i = 0; i < sizeof qualities / sizeof *qualities; i++) {
        expect_batches(1, qualities[i]);
        expect_batches(3, qualities[i]);
    }
}

/* A slot that is too small is left alone. */
static void expect_no_room(void) {
    const cogpu_encoding encoding = encoding_of(1, 75);
    void *kept = open_encoder(&encoding);
    gpu_block block = make_block(&encoding, 64, 64, 256);
    CHECK(encode(kept, &block, 1));
    free(block.out);
    block.out = NULL;
    block.capacity = block.size - 1;
    const int before = fake ? fake->encoded : 0;
    CHECK(!encode(kept, &block, 1));
    CHECK(!fake || fake->encoded == before);
    free((void *)(uintptr_t)block.in);
    cogpu_gpu_jpeg_encoder.close(kept);
}

static void expect_refused(uint32_t samples, uint32_t photometric, uint32_t step, uint32_t bits) {
    cogpu_encoding encoding = encoding_of(samples, 75);
    void *kept = &encoding;
    encoding.format.photometric = photometric;
    encoding.format.subsampling_x = encoding.format.subsampling_y = step;
    encoding.format.bits = bits;
    CHECK(cogpu_gpu_jpeg_encoder.open(gpu, &encoding, &kept, &error) == COGPU_UNSUPPORTED);
    CHECK(!kept && fake->handles == 0);
}

static void in_a_library_at_work(void) {
    setenv("COGPU_TEST_DEVICE", "emu", 1);
    gpu = gpu_test_open(1);
    expect_all_batches();
    CHECK(fake->at_once == LANES && fake->encoded > COUNT);
    expect_no_room();
    expect_refused(3, 2, 1, 8);                 /* RGB as it is */
    expect_refused(4, 5, 1, 8);                 /* four inks */
    expect_refused(3, PHOTOMETRIC_YCBCR, 1, 8); /* 4:4:4 */
    expect_refused(1, PHOTOMETRIC_GREY, 1, 12);
    CHECK(fake->handles == 0 && fake->encoders == 0 && fake->wrong == 0);
    gpu->calls->close(gpu);
}

static void in_no_such_file(void) {
    const cogpu_encoding encoding = encoding_of(1, 75);
    void *kept = NULL;
    setenv("COGPU_TEST_DEVICE", "emu", 1);
    gpu = gpu_test_open(1);
    CHECK(cogpu_gpu_jpeg_encoder.open(gpu, &encoding, &kept, &error) == COGPU_UNSUPPORTED);
    gpu->calls->close(gpu);
}

static void on_a_gpu(void) {
    gpu = gpu_test_open(1);
    if (cogpu_nvjpeg_load()->why) {
        printf("not tried on the GPU: %s\n", cogpu_nvjpeg_load()->why);
        return;
    }
    expect_all_batches();
    expect_no_room();
    gpu->calls->close(gpu);
}

static void test_batches(void) {
    with_nvjpeg(FAKE_NVJPEG, in_a_library_at_work);
    with_nvjpeg("/nonexistent/libnvjpeg.so", in_no_such_file);
    if (gpu_test_is_real())
        with_nvjpeg(NULL, on_a_gpu);
}

/* ---- failures ------------------------------------------------------------------------------ */

/* A file of two batches and more, from emulated device memory. */
static cogpu_status write_file(cogpu_device_kind device, cogpu_memory *file) {
    static uint8_t pixels[150 * 170 * 3];
    const cogpu_context_options options = {
        .struct_size = sizeof(cogpu_context_options), .threads = 1, .device_bytes = 700 << 10};
    const cogpu_sink sink = {.struct_size = sizeof(cogpu_sink), .memory = file};
    const cogpu_raster rows = {.struct_size = sizeof(cogpu_raster),
                               .data = pixels,
                               .type = COGPU_TYPE_U8,
                               .bands = 3,
                               .height = 150,
                               .width = 170,
                               .stride_band = 1,
                               .stride_y = 170 * 3,
                               .stride_x = 3,
                               .device = device};
    cogpu_profile profile = {.struct_size = sizeof(cogpu_profile),
                             .width = 170,
                             .height = 150,
                             .bands = 3,
                             .type = COGPU_TYPE_U8,
                             .cog = 1,
                             .codec = "jpeg"};
    profile.block_width = profile.block_height = 64;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i / 1000);
    gpu_test_need(cogpu_context_open(&options, &profile.context, &error), &error);
    cogpu_status status = cogpu_write(&sink, &profile, &rows, NULL, NULL, &error);
    cogpu_context_close(profile.context);
    return status;
}

/* If nvJPEG fails to start, the CPU encodes; later failures fail the writer. */
static void expect_failures(int code, cogpu_status status, const cogpu_memory *by_host,
                            int calls_to_start, int all_calls) {
    for (int n = 1; n <= all_calls; n++) {
        cogpu_memory file = COGPU_MEMORY_INIT;
        fake->encode_calls = 0;
        fake->encode_error = code;
        fake->encode_fails_at = n;
        const cogpu_status found = write_file(COGPU_DEVICE_EMULATOR, &file);
        if (n <= calls_to_start)
            CHECK(found == COGPU_OK && file.bytes == by_host->bytes &&
                  memcmp(file.data, by_host->data, file.bytes) == 0);
        else
            CHECK(found == status && strstr(error.message, "nvJPEG failed") && !file.data);
        CHECK(fake->handles == 0 && fake->encoders == 0 && fake->wrong == 0);
        cogpu_memory_free(&file);
    }
    fake->encode_fails_at = 0;
}

static void in_a_failing_library(void) {
    cogpu_memory by_host = COGPU_MEMORY_INIT, file = COGPU_MEMORY_INIT;
    gpu_test_need(write_file(COGPU_DEVICE_CPU, &by_host), &error);
    gpu_test_need(write_file(COGPU_DEVICE_EMULATOR, &file), &error);
    const int calls = fake->encode_calls, to_start = LANES + 3;
    CHECK(calls == to_start + 2 * fake->encoded && fake->encoded == 9 + 4 + 1);
    CHECK(file.bytes != by_host.bytes);
    cogpu_memory_free(&file);
    expect_failures(INTERNAL, COGPU_DEVICE_ERROR, &by_host, to_start, calls);
    expect_failures(NO_MEMORY, COGPU_OUT_OF_MEMORY, &by_host, to_start, to_start + 2);
    fake->create_error = INTERNAL;
    gpu_test_need(write_file(COGPU_DEVICE_EMULATOR, &file), &error);
    CHECK(file.bytes == by_host.bytes && memcmp(file.data, by_host.data, file.bytes) == 0);
    CHECK(fake->handles == 0);
    cogpu_memory_free(&file);
    cogpu_memory_free(&by_host);
}

static void test_failures(void) {
    with_nvjpeg(FAKE_NVJPEG, in_a_failing_library);
}

TESTS(nvjpeg_encode) {
    RUN(test_batches);
    RUN(test_failures);
    return FINISH();
}

#else
TESTS(nvjpeg_encode) {
    return FINISH();
}
#endif
