/*
 * The n-th allocation of a write fails, for every n, in the library and in the libraries that
 * encode. A failure is reported, leaks nothing, keeps the target, and no part file is left. A write
 * that succeeds all the same gives the same file.
 */
#include "cogpu_distributed.h"

#include "codec/codec.h"
#include "faults/library_faults.h"
#include "faults/old_file.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>

/* ---- what is written ---- */

enum { WIDTH = 40, HEIGHT = 36, BANDS = 4, SAMPLES = WIDTH * HEIGHT * BANDS };

static const uint16_t utm[] = {32632, 1, 1};
static const cogpu_geokey keys[] = {{.struct_size = sizeof(cogpu_geokey),
                                     .id = 1024,
                                     .kind = COGPU_GEOKEY_SHORT,
                                     .count = 1,
                                     .shorts = utm + 1},
                                    {.struct_size = sizeof(cogpu_geokey),
                                     .id = 1026,
                                     .kind = COGPU_GEOKEY_TEXT,
                                     .text = "WGS 84 / UTM zone 32N"},
                                    {.struct_size = sizeof(cogpu_geokey),
                                     .id = 3072,
                                     .kind = COGPU_GEOKEY_SHORT,
                                     .count = 1,
                                     .shorts = utm}};
static const cogpu_metadata_item items[] = {{.struct_size = sizeof(cogpu_metadata_item),
                                             .domain = "",
                                             .name = "AREA",
                                             .value = "here & there",
                                             .role = ""},
                                            {.struct_size = sizeof(cogpu_metadata_item),
                                             .domain = "",
                                             .name = "SCALE",
                                             .value = "0.5",
                                             .role = "scale",
                                             .band = 1}};
static const cogpu_gcp gcps[] = {{sizeof(cogpu_gcp), 0, 0, 0, 10, 50, 0, NULL, NULL},
                                 {sizeof(cogpu_gcp), 90, 0, 0, 11, 50, 0, NULL, NULL},
                                 {sizeof(cogpu_gcp), 0, 80, 0, 10, 49, 0, NULL, NULL}};
static const uint16_t palette[3 * 256];
static const cogpu_extra_tag tags[] = {
    {.struct_size = sizeof(cogpu_extra_tag), .id = 305, .type = 2, .count = 5, .values = "test"}};

#define WORDS                                                                                      \
    .has_transform = 1, .transform = {4e5, 10, 0, 5e6, 0, -10}, .geokeys = keys,                   \
    .geokey_count = 3, .metadata = items, .metadata_count = 2, .description = "a picture",         \
    .tags = tags, .tag_count = 1

static const cogpu_profile profiles[] = {
    {.struct_size = sizeof(cogpu_profile),
     .type = COGPU_TYPE_U8,
     .bands = 3,
     .strips = 1,
     .block_height = 16,
     .codec = "deflate",
     WORDS},
    {.struct_size = sizeof(cogpu_profile),
     .type = COGPU_TYPE_U16,
     .bands = 1,
     .strips = 1,
     .codec = "packbits",
     .gcps = gcps,
     .gcp_count = 3},
    {.struct_size = sizeof(cogpu_profile),
     .type = COGPU_TYPE_U8,
     .bands = 1,
     .codec = "none",
     .palette = palette,
     .palette_entries = 256,
     .overviews = COGPU_OVERVIEWS_AUTO,
     .mask = 1},
    {.struct_size = sizeof(cogpu_profile),
     .type = COGPU_TYPE_I16,
     .bands = 2,
     .interleave = 1,
     .codec = "lzw",
     .overviews = COGPU_OVERVIEWS_AUTO,
     .resampling = COGPU_RESAMPLE_CUBIC,
     .nodata = "7"},
    {.struct_size = sizeof(cogpu_profile),
     .type = COGPU_TYPE_F32,
     .bands = 1,
     .cog = 1,
     .mask = 1,
     .codec = "zstd",
     .nodata = "nan",
     WORDS},
    {.struct_size = sizeof(cogpu_profile),
     .type = COGPU_TYPE_F32,
     .bands = 2,
     .cog = 1,
     .interleave = 1,
     .mask = 1,
     .sparse = 1,
     .resampling = COGPU_RESAMPLE_MEDIAN},
    {.struct_size = sizeof(cogpu_profile),
     .type = COGPU_TYPE_U16,
     .bands = 1,
     .cog = 1,
     .codec = "lzma",
     .compression_level = 1,
     .resampling = COGPU_RESAMPLE_MODE},
    {.struct_size = sizeof(cogpu_profile),
     .type = COGPU_TYPE_U8,
     .bands = 3,
     .cog = 1,
     .mask = 1,
     .codec = "jpeg"},
    {.struct_size = sizeof(cogpu_profile),
     .type = COGPU_TYPE_U8,
     .bands = 1,
     .strips = 1,
     .codec = "jpeg",
     .block_height = 16},
    {.struct_size = sizeof(cogpu_profile),
     .type = COGPU_TYPE_U8,
     .bands = 4,
     .alpha_band = 4,
     .codec = "webp"},
    {.struct_size = sizeof(cogpu_profile),
     .type = COGPU_TYPE_U8,
     .bands = 3,
     .codec = "webp",
     .lossless = 1},
    {.struct_size = sizeof(cogpu_profile),
     .type = COGPU_TYPE_F32,
     .bands = 1,
     .cog = 1,
     .codec = "lerc",
     .max_z_error = 0.1,
     .nodata = "3"},
    {.struct_size = sizeof(cogpu_profile),
     .type = COGPU_TYPE_F32,
     .bands = 2,
     .codec = "lerc_deflate"},
    {.struct_size = sizeof(cogpu_profile),
     .type = COGPU_TYPE_U16,
     .bands = 1,
     .codec = "lerc_zstd"},
    {.struct_size = sizeof(cogpu_profile),
     .type = COGPU_TYPE_U8,
     .bands = 3,
     .codec = "deflate",
     .bits = 1,
     .cog = 1,
     .sparse = 1},
    {.struct_size = sizeof(cogpu_profile),
     .type = COGPU_TYPE_U16,
     .bands = 1,
     .codec = "none",
     .bits = 12,
     .strips = 1},
};

enum { PROFILES = sizeof profiles / sizeof *profiles };

/* One whose spill does not fit memory. */
enum { LARGE = 900 };
static const cogpu_profile large = {.struct_size = sizeof(cogpu_profile),
                                    .type = COGPU_TYPE_U16,
                                    .bands = 1,
                                    .cog = 1,
                                    .codec = "none"};

static uint8_t pixels[SAMPLES * 4 > LARGE *LARGE * 2 ? SAMPLES * 4 : LARGE *LARGE * 2];
static uint8_t mask[LARGE * LARGE];

static void fill(const cogpu_profile *profile) {
    uint32_t number = 1;
    float *floats = (float *)pixels;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)((number = number * 1103515245 + 12345) >> 24) / 8;
    for (uint32_t i = 0; i < SAMPLES && profile->type == COGPU_TYPE_F32; i++)
        floats[i] = i % 17 == 5 ? NAN : i % 13 == 2 ? 3 : (float)(i % 1000) / 8;
    for (size_t i = 0; i < sizeof mask; i++)
        mask[i] = i % 7 != 0;
}

/* ---- where it goes ---- */

enum way { TO_MEMORY, TO_PATH, TO_FUNCTIONS, TO_THE_END, WAYS };

static cogpu_memory memory = COGPU_MEMORY_INIT;

static struct {
    uint8_t *bytes;
    size_t capacity;
    uint64_t end;
    int commits, aborts;
} stored_file;

static cogpu_status store_bytes(void *user, uint64_t offset, const void *from, size_t bytes) {
    (void)user;
    CHECK(offset + bytes <= stored_file.capacity);
    memcpy(stored_file.bytes + offset, from, bytes);
    stored_file.end = offset + bytes > stored_file.end ? offset + bytes : stored_file.end;
    return COGPU_OK;
}

static cogpu_status commit(void *user) {
    (void)user;
    stored_file.commits++;
    return COGPU_OK;
}

static void abort_it(void *user) {
    (void)user;
    stored_file.aborts++;
}

static cogpu_sink sink_of(enum way way) {
    switch (way) {
    case TO_MEMORY:
        return (cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &memory};
    case TO_PATH:
        return (cogpu_sink){.struct_size = sizeof(cogpu_sink), .path = path};
    default:
        return (cogpu_sink){.struct_size = sizeof(cogpu_sink),
                            .write = store_bytes,
                            .commit = commit,
                            .abort = abort_it,
                            .append_only = way == TO_THE_END};
    }
}

static void reset(void) {
    put_old_file();
    cogpu_memory_free(&memory);
    memset(stored_file.bytes, 0, stored_file.capacity);
    stored_file.end = 0;
    stored_file.commits = stored_file.aborts = 0;
}

/* ---- what is tried ---- */

typedef cogpu_status write_function(const cogpu_sink *sink, const cogpu_profile *profile,
                                    cogpu_error *error);

/* In chunks that fit nothing. */
static cogpu_status push_rows(const cogpu_sink *sink, const cogpu_profile *profile,
                              cogpu_error *error) {
    enum { ROWS = 25 };
    cogpu_writer *writer = NULL;
    size_t sample = cogpu_type_bytes(profile->type);
    cogpu_status status = cogpu_writer_open(sink, profile, &writer, error);
    CHECK((status == COGPU_OK) == (writer != NULL));
    for (uint32_t y = 0; status == COGPU_OK && y < profile->height; y += ROWS) {
        uint32_t left = profile->height - y, rows = left < ROWS ? left : ROWS;
        cogpu_raster chunk = {.struct_size = sizeof(cogpu_raster),
                              .data = pixels + y * profile->width * profile->bands * sample,
                              .type = profile->type,
                              .bands = profile->bands,
                              .width = profile->width,
                              .height = rows};
        cogpu_raster valid = {.struct_size = sizeof(cogpu_raster),
                              .data = mask + y * profile->width,
                              .type = COGPU_TYPE_U8,
                              .bands = 1,
                              .width = profile->width,
                              .height = rows};
        status = cogpu_writer_write_rows(writer, &chunk, profile->mask ? &valid : NULL, error);
    }
    if (status == COGPU_OK)
        return cogpu_writer_close(writer, NULL, error);
    cogpu_writer_abort(writer);
    return status;
}

/* Block by block, of a single level. */
static cogpu_status put_blocks(const cogpu_sink *sink, const cogpu_profile *profile,
                               cogpu_error *error) {
    cogpu_writer *writer = NULL;
    cogpu_memory block = COGPU_MEMORY_INIT;
    uint32_t side = profile->block_width, across = (profile->width + side - 1) / side;
    int64_t sample = (int64_t)cogpu_type_bytes(profile->type);
    cogpu_status status = cogpu_writer_open(sink, profile, &writer, error);
    for (uint32_t i = 0; status == COGPU_OK && i / across * side < profile->height; i++) {
        uint32_t x = i % across * side, y = i / across * side;
        uint32_t width = profile->width - x, height = profile->height - y;
        cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                               .data = pixels + (y * profile->width + x) * sample,
                               .type = profile->type,
                               .bands = 1,
                               .width = width < side ? width : side,
                               .height = height < side ? height : side,
                               .stride_band = sample,
                               .stride_y = profile->width * sample,
                               .stride_x = sample};
        status = cogpu_encode_block(profile, 0, COGPU_CONTENT_PIXELS, i, &raster, &block, error);
        if (status == COGPU_OK)
            status = cogpu_writer_write_block(writer, 0, COGPU_CONTENT_PIXELS, i, block.data,
                                              block.bytes, error);
        cogpu_memory_free(&block);
    }
    if (status == COGPU_OK)
        return cogpu_writer_close(writer, NULL, error);
    cogpu_writer_abort(writer);
    return status;
}

static void check_written(enum way way, const cogpu_memory *whole) {
    if (way == TO_MEMORY)
        CHECK(memory.bytes == whole->bytes && !memcmp(memory.data, whole->data, whole->bytes));
    else if (way == TO_PATH)
        CHECK(path_has(whole->data, whole->bytes));
    else
        CHECK(stored_file.commits == 1 && stored_file.aborts == 0 &&
              stored_file.end == whole->bytes &&
              !memcmp(stored_file.bytes, whole->data, whole->bytes));
}

static void check_untouched(enum way way) {
    CHECK(way != TO_PATH || path_has(old, sizeof old));
    CHECK(!memory.data && memory.bytes == 0);
    CHECK(stored_file.commits == 0 && stored_file.aborts == (way > TO_PATH));
}

static bool try_once(write_function *write_it, const cogpu_profile *profile, enum way way,
                     const cogpu_memory *whole, long n) {
    cogpu_error error = {0};
    cogpu_sink sink = sink_of(way);
    reset();
    atomic_store(&live_allocations, 0);
    arm_fault(ALLOCATION, n);
    cogpu_status status = write_it(&sink, profile, &error);
    bool through = atomic_load(&faults_fired) == 0;
    arm_fault(NO_FAULT, 0);
    CHECK(atomic_load(&live_allocations) == (status == COGPU_OK && way == TO_MEMORY));
    CHECK(status == COGPU_OK || (status == COGPU_OUT_OF_MEMORY && !through && error.message[0]));
    if (status == COGPU_OK)
        check_written(way, whole);
    else
        check_untouched(way);
    CHECK(files_in_folder() == 1);
    if (test_broken)
        printf("... %s (%s)\n", cogpu_status_name(status), error.message);
    return through;
}

/* Each allocation fails alone. Where all after it fail too, it is a sample of them, unless this is
 * a run of all tests. */
enum { ALL_UP_TO = 12, SAMPLE_STEP = 3 };

static void try_profile(write_function *write_it, const cogpu_profile *profile, uint32_t ways) {
    cogpu_memory whole = COGPU_MEMORY_INIT;
    cogpu_error error = {0};
    fill(profile);
    arm_fault(NO_FAULT, 0);
    cogpu_status status = write_it(
        &(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &whole}, profile, &error);
    if (status == COGPU_UNSUPPORTED) /* by this build */
        return;
    CHECK(status == COGPU_OK);
    if (status != COGPU_OK)
        printf("... %s\n", error.message);
    stored_file.capacity = whole.bytes + 1;
    stored_file.bytes = malloc(stored_file.capacity);
    for (int way = TO_MEMORY; way < WAYS; way++)
        for (int i = 0; (ways >> way & 1) && i < 2 && !test_broken; i++) {
            fails_for_good = i;
            long n = 1;
            while (!try_once(write_it, profile, (enum way)way, &whole, n) && !test_broken)
                n += i && n > ALL_UP_TO && !is_deep_run() ? SAMPLE_STEP : 1;
            if (test_broken)
                printf("... codec %s, way %d, allocation %ld%s\n", profile->codec, way, n,
                       i ? " and all after it" : "");
        }
    cogpu_memory_free(&memory);
    cogpu_memory_free(&whole);
    free(stored_file.bytes);
}

static void try_small(uint32_t first, uint32_t end, uint32_t ways) {
    for (uint32_t i = first; i < end; i++) {
        cogpu_profile profile = profiles[i];
        profile.width = WIDTH;
        profile.height = HEIGHT;
        profile.threads = 1 + i % 2;
        if (!profile.strips)
            profile.block_width = 32;
        try_profile(push_rows, &profile, ways);
    }
}

static void test_every_profile_in_memory(void) {
    try_small(0, PROFILES, 1 << TO_MEMORY);
}

static void test_every_sink(void) {
    try_small(0, 5, 1 << TO_PATH | 1 << TO_FUNCTIONS | 1 << TO_THE_END);
}

static void test_spills_in_files(void) {
    cogpu_profile profile = large;
    profile.width = profile.height = LARGE;
    profile.threads = 1;
    try_profile(push_rows, &profile, 1 << TO_PATH | 1 << TO_FUNCTIONS);
}

static void test_blocks_that_are_put(void) {
    cogpu_profile profile = {.struct_size = sizeof(cogpu_profile),
                             .type = COGPU_TYPE_U16,
                             .bands = 1,
                             .width = WIDTH,
                             .height = HEIGHT,
                             .block_width = 32,
                             .codec = "zstd"};
    try_profile(put_blocks, &profile, 1 << TO_MEMORY | 1 << TO_PATH | 1 << TO_THE_END);
}

/* An overview that others make. False where no allocation has failed. */
static bool make_overview(const cogpu_profile *profile, long n) {
    static uint8_t made[WIDTH * HEIGHT];
    cogpu_error error = {0};
    const cogpu_window all = {sizeof(cogpu_window), 0, 0, (WIDTH + 1) / 2, (HEIGHT + 1) / 2};
    const cogpu_raster from = {.struct_size = sizeof(cogpu_raster),
                               .data = pixels,
                               .type = COGPU_TYPE_U8,
                               .bands = 1,
                               .width = WIDTH,
                               .height = HEIGHT};
    cogpu_raster to = {.struct_size = sizeof(cogpu_raster),
                       .data = made,
                       .type = COGPU_TYPE_U8,
                       .bands = 1,
                       .width = all.width,
                       .height = all.height};
    atomic_store(&live_allocations, 0);
    arm_fault(ALLOCATION, n);
    cogpu_status status = cogpu_overview_compute(profile, 1, &all, &from, NULL, &to, NULL, &error);
    bool fails = atomic_load(&faults_fired) != 0;
    arm_fault(NO_FAULT, 0);
    CHECK(atomic_load(&live_allocations) == 0);
    CHECK(status == (fails ? COGPU_OUT_OF_MEMORY : COGPU_OK) && (error.message[0] != 0) == fails);
    return fails;
}

static void test_an_overview_that_others_make(void) {
    const cogpu_profile profile = {.struct_size = sizeof(cogpu_profile),
                                   .type = COGPU_TYPE_U8,
                                   .bands = 1,
                                   .width = WIDTH,
                                   .height = HEIGHT,
                                   .block_width = 32,
                                   .overviews = COGPU_OVERVIEWS_AUTO};
    long n = 1;
    fill(&profile);
    while (make_overview(&profile, n) && !test_broken)
        n++;
    CHECK(n > 2);
}

static void test_a_system_in_words(void) {
    cogpu_profile profile = profiles[0];
    profile.width = WIDTH;
    profile.height = HEIGHT;
    profile.threads = 1;
    profile.geokeys = NULL;
    profile.geokey_count = 0;
    profile.crs = "EPSG:32632";
    try_profile(push_rows, &profile, 1 << TO_MEMORY);
}

TESTS(write_faults) {
    reset_faults();
    turn_library_faults_on();
    webp_decodes_without_faults = true;
    make_folder();
    RUN(test_every_profile_in_memory);
    RUN(test_every_sink);
    RUN(test_spills_in_files);
    RUN(test_blocks_that_are_put);
    RUN(test_an_overview_that_others_make);
    RUN(test_a_system_in_words);
    remove_folder();
    turn_library_faults_off();
    webp_decodes_without_faults = false;
    return FINISH();
}
