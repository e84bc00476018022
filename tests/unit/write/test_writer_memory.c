/*
 * COGs in memory, where level 0 is behind a gap until overviews are complete. Bytes equal those of
 * an append-only sink, whatever the size of the gap: in memory of the library, and in buffers that
 * hold the gap, the file alone, or one byte less. Memory never holds a level twice.
 */
#include "cogpu.h"

#include "support/draw.h"
#include "support/test.h"

enum { SIDE = 1100, MOST = 6 * SIDE * SIDE };

static uint8_t pixels[2 * SIDE * SIDE], mask[SIDE * SIDE], buffer[MOST];
static cogpu_error error;

/* How much of the image an encoder makes smaller: where level 0 is noise and its least pixels are
 * all the same, the gap is large and level 0, too. */
enum content { NOISE, NOISE_OVER_NOTHING, NOTHING, CONTENTS };

static void fill(enum content content) {
    memset(pixels, 0, sizeof pixels);
    memset(mask, 255, sizeof mask);
    for (uint32_t i = 0; i < sizeof pixels && content != NOTHING; i++) {
        uint32_t x = i % SIDE, y = i / SIDE;
        if (content == NOISE || x % 2 || y % 2)
            pixels[i] = (uint8_t)draw(256);
    }
    for (uint32_t i = 0; i < sizeof mask; i++)
        mask[i] = draw(50) ? 255 : 0;
}

static cogpu_status write_rows(const cogpu_sink *sink, const cogpu_profile *profile, uint32_t rows,
                               cogpu_written *written) {
    cogpu_writer *writer = NULL;
    cogpu_status status = cogpu_writer_open(sink, profile, &writer, &error);
    for (uint32_t y = 0; status == COGPU_OK && y < SIDE; y += rows) {
        cogpu_raster chunk = {.struct_size = sizeof(cogpu_raster),
                              .data = pixels + (size_t)y * SIDE,
                              .type = COGPU_TYPE_U8,
                              .bands = profile->bands,
                              .width = SIDE,
                              .height = SIDE - y < rows ? SIDE - y : rows,
                              .stride_band = (int64_t)SIDE * SIDE,
                              .stride_y = SIDE,
                              .stride_x = 1};
        cogpu_raster valid = {.struct_size = sizeof(cogpu_raster),
                              .data = mask + (size_t)y * SIDE,
                              .type = COGPU_TYPE_U8,
                              .bands = 1,
                              .width = SIDE,
                              .height = chunk.height};
        status = cogpu_writer_write_rows(writer, &chunk, profile->mask ? &valid : NULL, &error);
    }
    if (status == COGPU_OK)
        return cogpu_writer_close(writer, written, &error);
    cogpu_writer_abort(writer);
    return status;
}

/* The file as it comes, byte after byte. */
static struct {
    uint8_t bytes[MOST];
    size_t end;
} expected;

static cogpu_status append(void *user, uint64_t offset, const void *from, size_t bytes) {
    (void)user;
    CHECK(offset == expected.end && bytes <= MOST - expected.end);
    memcpy(expected.bytes + offset, from, bytes);
    expected.end += bytes;
    return COGPU_OK;
}

static bool is_expected(const void *data, uint64_t bytes) {
    return bytes == expected.end && memcmp(data, expected.bytes, expected.end) == 0;
}

static void check_profile(const cogpu_profile *profile, uint32_t rows) {
    const cogpu_sink appended = {
        .struct_size = sizeof(cogpu_sink), .write = append, .append_only = 1};
    cogpu_memory memory = COGPU_MEMORY_INIT;
    cogpu_written written = COGPU_WRITTEN_INIT;
    expected.end = 0;
    CHECK(write_rows(&appended, profile, rows, NULL) == COGPU_OK);
    CHECK(write_rows(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &memory}, profile,
                     rows, NULL) == COGPU_OK);
    CHECK(is_expected(memory.data, memory.bytes));
    cogpu_memory_free(&memory);
    const size_t sizes[] = {MOST, expected.end, expected.end - 1};
    for (int i = 0; i < 3; i++) {
        const cogpu_sink sink = {
            .struct_size = sizeof(cogpu_sink), .buffer = buffer, .buffer_bytes = sizes[i]};
        memset(buffer, 77, sizeof buffer);
        CHECK(write_rows(&sink, profile, rows, &written) ==
              (sizes[i] < expected.end ? COGPU_LIMIT_EXCEEDED : COGPU_OK));
        CHECK(sizes[i] < expected.end || is_expected(buffer, written.bytes));
    }
    if (test_broken)
        printf("... %s, %u bands, chunks of %u rows\n", profile->codec, profile->bands, rows);
}

static void every_gap_is_closed(void) {
    static const char *const codecs[] = {"packbits", "lzw"};
    for (uint32_t i = 0; i < 8 && !test_broken; i++) {
        const cogpu_profile profile = {.struct_size = sizeof(cogpu_profile),
                                       .width = SIDE,
                                       .height = SIDE,
                                       .bands = 1 + i % 2,
                                       .type = COGPU_TYPE_U8,
                                       .cog = 1,
                                       .block_width = i % 2 ? 256 : 512,
                                       .interleave = i % 4 == 1,
                                       .codec = codecs[i / 4 % 2],
                                       .predictor = 1,
                                       .sparse = i % 2,
                                       .mask = i % 4 > 1,
                                       .resampling = COGPU_RESAMPLE_MIN,
                                       .threads = 2};
        fill((enum content)(i % CONTENTS));
        check_profile(&profile, i == 1 ? SIDE : 1 + draw(600));
    }
}

TESTS(writer_memory) {
    draw_from(test_argc, test_argv);
    RUN(every_gap_is_closed);
    return FINISH();
}
