/*
 * Byte ranges that a read fetches: neighbouring blocks in one read, blocks alone if that read
 * fails, and all ranges of a batch in one request to a source that can prefetch.
 */
#include "cogpu.h"

#include "support/fixture.h"
#include "support/test.h"

static cogpu_error error;
static cogpu_result result = COGPU_RESULT_INIT;

/* Offsets, or byte counts, of all strips take less. */
enum { TABLE_BYTES = 500 };

/* A source over the built file that counts its calls, and fails reads of one byte. */
struct counted_source {
    const tiff_builder *built;
    uint64_t calls;      /* for blocks, not for block tables */
    uint64_t bad_offset; /* UINT64_MAX: none */
};

static cogpu_status copy_range(struct counted_source *source, uint64_t offset, size_t bytes,
                               void *to, size_t *got) {
    uint64_t left = offset < source->built->size ? source->built->size - offset : 0;
    *got = bytes < left ? bytes : (size_t)left;
    if (offset <= source->bad_offset && source->bad_offset - offset < bytes)
        return COGPU_IO_ERROR;
    memcpy(to, source->built->bytes + offset, *got);
    return COGPU_OK;
}

static cogpu_status read_one(void *user, uint64_t offset, size_t bytes, void *to, size_t *got) {
    struct counted_source *source = user;
    source->calls += bytes > TABLE_BYTES;
    return copy_range(source, offset, bytes, to, got);
}

static cogpu_status read_many(void *user, const uint64_t *offsets, const size_t *bytes,
                              void *const *to, size_t count) {
    struct counted_source *source = user;
    cogpu_status status = COGPU_OK;
    source->calls++;
    for (size_t i = 0; status == COGPU_OK && i < count; i++) {
        size_t got = 0;
        status = copy_range(source, offsets[i], bytes[i], to[i], &got);
        if (status == COGPU_OK && got < bytes[i])
            status = COGPU_IO_ERROR;
    }
    return status;
}

static cogpu_status size_of(void *user, uint64_t *bytes) {
    *bytes = ((struct counted_source *)user)->built->size;
    return COGPU_OK;
}

static cogpu_file *open_counted(struct counted_source *source, const tiff_builder *built,
                                bool can_prefetch) {
    cogpu_file *file = NULL;
    *source = (struct counted_source){.built = built, .bad_offset = UINT64_MAX};
    cogpu_source functions = {.struct_size = sizeof(cogpu_source),
                              .user = source,
                              .read = can_prefetch ? NULL : read_one,
                              .size = size_of,
                              .read_many = can_prefetch ? read_many : NULL};
    CHECK(cogpu_open_source(&functions, NULL, &file, &error) == COGPU_OK);
    source->calls = 0;
    return file;
}

/* Rows of the raster that do not have the pixels of the file. */
static uint32_t wrong_rows(const image_kind *kind, const cogpu_raster *raster) {
    uint32_t wrong = 0;
    for (uint32_t y = 0; y < kind->height; y++)
        wrong += pixels_match(kind, (uint8_t *)raster->data + (size_t)y * kind->width, 0, y,
                              kind->width, 1, NULL, 0)
                     ? 0
                     : 1;
    return wrong;
}

/* 100 strips of 2400 bytes: one run. The first 16 KiB of a file are kept when it is opened. */
enum { STRIPS = 100, BAD = 30 };
static const image_kind strips = {
    .width = 600, .height = 400, .rows_per_strip = 4, .compression = 8};

static void test_neighbours_are_one_read(void) {
    struct counted_source source;
    tiff_builder built;
    build_one(&built, &strips);
    cogpu_file *file = open_counted(&source, &built, false);
    cogpu_raster raster = raster_of(&strips, strips.width, strips.height, 1);
    CHECK(cogpu_read(file, NULL, &raster, &result, &error) == COGPU_OK);
    CHECK(source.calls == 1 && wrong_rows(&strips, &raster) == 0);
    CHECK(result.blocks == STRIPS && result.bytes_read < built.size);
    free(raster.data);
    cogpu_close(file);
    build_close(&built);
}

static void test_a_block_that_cannot_be_read_fails_alone(void) {
    static const uint16_t codecs[] = {1, 8};
    for (size_t c = 0; c < 2; c++) {
        struct counted_source source;
        tiff_builder built;
        image_kind kind = strips;
        kind.compression = codecs[c];
        build_one(&built, &kind);
        cogpu_file *file = open_counted(&source, &built, false);
        cogpu_raster raster = raster_of(&kind, kind.width, kind.height, 1);
        uint32_t offsets[STRIPS];
        memset(raster.data, 0xA5, (size_t)kind.width * kind.height);
        CHECK(cogpu_tag_read(file, 0, 273, 0, STRIPS, offsets, &error) == COGPU_OK);
        source.bad_offset = offsets[BAD] + 2;
        cogpu_request request = {.struct_size = sizeof(cogpu_request), .fill_bad_blocks = 1};
        CHECK(cogpu_read(file, &request, &raster, &result, &error) == COGPU_OK);
        CHECK(result.bad_blocks == 1 && result.first_bad.block == BAD);
        CHECK(wrong_rows(&kind, &raster) == kind.rows_per_strip);
        request.fill_bad_blocks = 0;
        CHECK(cogpu_read(file, &request, &raster, &result, &error) == COGPU_IO_ERROR);
        CHECK(error.block == BAD);
        free(raster.data);
        cogpu_close(file);
        build_close(&built);
    }
}

/* Blocks far from each other, which are several runs, and windows that share blocks. */
static void test_a_batch_is_prefetched_in_one_request(void) {
    image_kind kind = strips;
    cogpu_context *context = NULL;
    kind.apart = true;
    CHECK(cogpu_context_open(&(cogpu_context_options){.struct_size = sizeof(cogpu_context_options),
                                                      .threads = 2,
                                                      .device_bytes = 64 << 20},
                             &context, &error) == COGPU_OK);
    for (int device = COGPU_DEVICE_CPU; device <= COGPU_DEVICE_EMULATOR;
         device += COGPU_DEVICE_EMULATOR - COGPU_DEVICE_CPU) {
        struct counted_source source;
        tiff_builder built;
        build_one(&built, &kind);
        cogpu_file *file = open_counted(&source, &built, true);
        cogpu_read_item items[2];
        cogpu_raster rasters[2];
        for (int i = 0; i < 2; i++) {
            rasters[i] = raster_of(&kind, kind.width, kind.height, 1);
            rasters[i].device = (cogpu_device_kind)device;
            items[i] = (cogpu_read_item){
                .struct_size = sizeof(cogpu_read_item), .file = file, .raster = &rasters[i]};
        }
        CHECK(cogpu_read_many(items, 2, context, &error) == COGPU_OK);
        CHECK(source.calls == 1);
        for (int i = 0; i < 2; i++) {
            CHECK(wrong_rows(&kind, &rasters[i]) == 0);
            free(rasters[i].data);
        }
        cogpu_close(file);
        build_close(&built);
    }
    cogpu_context_close(context);
}

TESTS(fetch_ranges) {
    RUN(test_neighbours_are_one_read);
    RUN(test_a_block_that_cannot_be_read_fails_alone);
    RUN(test_a_batch_is_prefetched_in_one_request);
    return FINISH();
}
