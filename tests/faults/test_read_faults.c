/*
 * Fault injection (T219): the n-th allocation, the n-th read of a source, the n-th pread of a file
 * fails, for every n until nothing fails. A call that fails has the right status, leaks nothing,
 * and the calls after it return the right pixels.
 */
#include "cogpu.h"

#include "faults/fault_injection.h"
#include "support/fixture.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- the files ---- */

/* An image with all kinds of metadata; its directories are far from each other. */
struct sample {
    image_kind full, half;
    bool has_masks, has_texts;
    tiff_builder file;
};

enum { SIDE = 150, HALF = 75, FAR = 20000 };

static struct sample samples[] = {
    {.full = {.width = SIDE, .height = SIDE, .tile_width = 64, .tile_height = 64, .compression = 8},
     .half = {.width = HALF, .height = HALF, .tile_width = 32, .tile_height = 32, .compression = 8},
     .has_masks = true,
     .has_texts = true},
    {.full = {.width = SIDE, .height = SIDE, .rows_per_strip = 7, .compression = 5, .bands = 2},
     .half = {.width = HALF, .height = HALF, .compression = 5, .bands = 2},
     .has_texts = true},
    {.full = {.width = SIDE,
              .height = SIDE,
              .tile_width = 48,
              .tile_height = 80,
              .compression = 50000,
              .bits = 16,
              .bands = 3,
              .planar = true,
              .apart = true}, /* several threads are used for this one */
     .half = {.width = HALF, .height = HALF, .rows_per_strip = 9, .bits = 16, .bands = 3}},
    {.full = {.width = SIDE, .height = SIDE, .rows_per_strip = 40, .compression = 32773},
     .half = {.width = HALF, .height = HALF},
     .has_masks = true}};

enum { SAMPLES = sizeof samples / sizeof *samples };

static void add_texts(tiff_builder *file) {
    static const uint16_t keys[] = {1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32632};
    static const double scale[] = {10, 10, 0}, tie[] = {0, 0, 0, 4e5, 5e6, 0};
    build_shorts(file, 34735, 16, keys);
    build_doubles(file, 33550, 3, scale);
    build_doubles(file, 33922, 6, tie);
    build_text(file, 270, "a picture");
    build_text(file, 42112,
               "<GDALMetadata><Item name=\"a\">b</Item>"
               "<Item name=\"SCALE\" sample=\"0\" role=\"scale\">2</Item></GDALMetadata>");
}

static void add_mask(tiff_builder *file, uint32_t side, uint16_t subfile_type) {
    image_kind mask = {
        .width = side, .height = side, .compression = 8, .subfile_type = subfile_type, .seed = 1};
    build_kind(file, &mask);
    build_data(file, NULL, FAR);
    build_directory(file, true);
}

static void build_sample(struct sample *sample) {
    tiff_builder *file = &sample->file;
    sample->half.subfile_type = 1;
    sample->half.seed = 3;
    build_open(file, sample->full.bits == 16, sample->full.planar);
    build_data(file, NULL, FAR);
    build_kind(file, &sample->full);
    if (sample->has_texts)
        add_texts(file);
    build_directory(file, true);
    if (sample->has_masks)
        add_mask(file, SIDE, 4);
    build_kind(file, &sample->half);
    build_data(file, NULL, FAR);
    build_directory(file, true);
    if (sample->has_masks)
        add_mask(file, HALF, 5);
}

/* ---- sources ---- */

static cogpu_status sample_read(void *user, uint64_t offset, size_t bytes, void *to, size_t *got) {
    const struct sample *sample = user;
    uint64_t left = offset < sample->file.size ? sample->file.size - offset : 0;
    if (call_fails(READ_FAILS))
        return COGPU_IO_ERROR;
    *got = bytes < left ? bytes : (size_t)left;
    if (call_fails(READ_IS_SHORT))
        *got /= 2;
    memcpy(to, sample->file.bytes + offset, *got);
    return COGPU_OK;
}

static cogpu_status sample_read_many(void *user, const uint64_t *offsets, const size_t *bytes,
                                     void *const *to, size_t count) {
    const struct sample *sample = user;
    for (size_t i = 0; i < count; i++)
        memcpy(to[i], sample->file.bytes + offsets[i], bytes[i]);
    return call_fails(READ_FAILS) ? COGPU_IO_ERROR : COGPU_OK;
}

static cogpu_status sample_size(void *user, uint64_t *bytes) {
    *bytes = ((const struct sample *)user)->file.size;
    return COGPU_OK;
}

static int closed;

static void sample_close(void *user) {
    (void)user;
    closed++;
}

enum way { FROM_MEMORY, FROM_SOURCE, FROM_SOURCE_OF_MANY, FROM_PATH, FROM_PATH_WITH_SIDECARS };

static char path[64];

/* A file at the path and an ending, or none where there are no bytes. */
static void write_beside(const char *ending, const void *bytes, size_t count) {
    char name[80];
    snprintf(name, sizeof name, "%s%s", path, ending);
    FILE *out = bytes ? fopen(name, "wb") : NULL;
    CHECK(!bytes || (out && fwrite(bytes, 1, count, out) == count));
    if (out)
        fclose(out);
    else
        unlink(name);
}

static void write_path(const struct sample *sample) {
    write_beside("", sample->file.bytes, sample->file.size);
}

static cogpu_status open_sample(struct sample *sample, enum way way, cogpu_file **file,
                                cogpu_error *error) {
    cogpu_source source = {.struct_size = sizeof(cogpu_source),
                           .user = sample,
                           .read = sample_read,
                           .size = sample_size,
                           .close = sample_close};
    switch (way) {
    case FROM_MEMORY:
        return cogpu_open_memory(sample->file.bytes, sample->file.size, NULL, file, error);
    case FROM_SOURCE_OF_MANY:
        source.read_many = sample_read_many;
        return cogpu_open_source(&source, NULL, file, error);
    case FROM_SOURCE:
        return cogpu_open_source(&source, NULL, file, error);
    default:
        return cogpu_open(path, NULL, file, error);
    }
}

/* ---- what is tried ---- */

/* A step went well, or failed because the world did, in the way that belongs to it. */
static bool went_well(cogpu_status status, long fired_before, const cogpu_error *error) {
    if (status == COGPU_OK)
        return true;
    bool fits = armed_fault == ALLOCATION      ? status == COGPU_OUT_OF_MEMORY
                : armed_fault == READ_FAILS    ? status == COGPU_IO_ERROR
                : armed_fault == READ_IS_SHORT ? status == COGPU_CORRUPT
                                               : false;
    if (!fits || atomic_load(&faults_fired) == fired_before)
        printf("status %s (%s), fault %d, call %ld\n", cogpu_status_name(status),
               error ? error->message : "", (int)armed_fault, atomic_load(&failing_call));
    CHECK(fits);
    CHECK(fails_for_good || atomic_load(&faults_fired) > fired_before);
    CHECK(!error || (error->status == status && error->message[0]));
    return false;
}

/* An open file must be complete. If its source seems to end early, the end may be missing, and a
 * sidecar may be ignored, but not without a warning. */
static bool is_complete(const struct sample *sample, const cogpu_file *file, enum way way) {
    cogpu_image image = COGPU_IMAGE_INIT;
    cogpu_level level = COGPU_LEVEL_INIT;
    CHECK(cogpu_image_info(file, 0, &image, NULL) == COGPU_OK);
    bool beside = way == FROM_PATH_WITH_SIDECARS;
    bool complete = image.levels == 2 && image.width == SIDE;
    if (beside)
        complete = complete && image.mask_source == COGPU_MASK_SOURCE_DIRECTORY &&
                   image.metadata_count == 1 && image.has_transform && image.transform[1] == 2;
    uint32_t levels = 2;
    for (uint32_t i = 0; complete && !beside && i < levels; i++)
        complete = cogpu_level_info(file, 0, i, &level, NULL) == COGPU_OK &&
                   !level.has_mask == !sample->has_masks;
    if (sample->has_texts)
        complete = complete && image.metadata_count == 2 && image.geokey_count == 3 &&
                   image.has_transform && image.description &&
                   strcmp(image.description, "a picture") == 0;
    if (!complete) {
        CHECK(armed_fault == READ_IS_SHORT || beside);
        CHECK(image.warning != NULL);
    }
    return complete;
}

static uint8_t pixels[SIDE * SIDE * 3 * 2];

static cogpu_raster raster_for(const image_kind *kind, uint32_t width, uint32_t height) {
    memset(pixels, 0xA5, sizeof pixels);
    return (cogpu_raster){.struct_size = sizeof(cogpu_raster),
                          .data = pixels,
                          .type = kind->bits == 16 ? COGPU_TYPE_U16 : COGPU_TYPE_U8,
                          .bands = kind_bands(kind),
                          .width = width,
                          .height = height};
}

/* All columns of the image, and some rows. */
static void try_read(const cogpu_file *file, const image_kind *kind, cogpu_request request) {
    uint32_t height = request.height ? request.height : kind->height;
    cogpu_raster raster = raster_for(kind, kind->width, height);
    cogpu_result result = COGPU_RESULT_INIT;
    cogpu_error error;
    long before = atomic_load(&faults_fired);
    if (went_well(cogpu_read(file, &request, &raster, &result, &error), before, &error))
        CHECK(result.bad_blocks > 0 ||
              pixels_match(kind, pixels, 0, request.y, kind->width, height, NULL, 0));
    CHECK(result.bad_blocks == 0 ||
          (request.fill_bad_blocks && atomic_load(&faults_fired) > before));
}

static void try_mask(const cogpu_file *file, const struct sample *sample) {
    cogpu_request request = {
        .struct_size = sizeof(cogpu_request), .content = COGPU_CONTENT_MASK, .threads = 2};
    cogpu_raster raster = raster_for(&sample->full, SIDE, SIDE);
    cogpu_error error;
    raster.type = COGPU_TYPE_U8;
    long before = atomic_load(&faults_fired);
    if (!went_well(cogpu_read(file, &request, &raster, NULL, &error), before, &error))
        return;
    image_kind mask = {.width = SIDE, .seed = 1};
    for (uint32_t i = 0; sample->has_masks && i < SIDE * SIDE; i++)
        CHECK(pixels[i] == (kind_sample(&mask, 0, i % SIDE, i / SIDE) ? 255 : 0));
}

/* Some rows as floats, scaled, NaN where the mask says so. */
static void try_floats(const cogpu_file *file, const struct sample *sample) {
    enum { ROWS = 20 };
    static float floats[SIDE * ROWS * 3];
    cogpu_request request = {.struct_size = sizeof(cogpu_request),
                             .height = ROWS,
                             .unscale = 1,
                             .masked = 1,
                             .threads = 1};
    cogpu_raster raster = raster_for(&sample->full, SIDE, ROWS);
    image_kind mask = {.width = SIDE, .seed = 1};
    cogpu_error error;
    raster.data = floats;
    raster.type = COGPU_TYPE_F32;
    long before = atomic_load(&faults_fired);
    if (!went_well(cogpu_read(file, &request, &raster, NULL, &error), before, &error))
        return;
    for (uint32_t i = 0; i < SIDE * ROWS; i++) {
        bool valid = !sample->has_masks || kind_sample(&mask, 0, i % SIDE, i / SIDE);
        float value = (float)kind_sample(&sample->full, 0, i % SIDE, i / SIDE);
        CHECK(valid ? floats[i] == value * (sample->has_texts ? 2 : 1) : floats[i] != floats[i]);
    }
}

static void try_many(const cogpu_file *file, const struct sample *sample, cogpu_context *context) {
    static uint8_t parts[3][SIDE * 20 * 6];
    cogpu_read_item items[3];
    cogpu_request requests[3];
    cogpu_raster rasters[3];
    cogpu_error error;
    for (uint32_t i = 0; i < 3; i++) {
        requests[i] =
            (cogpu_request){.struct_size = sizeof(cogpu_request), .y = 40 * i, .height = 20};
        rasters[i] = raster_for(&sample->full, SIDE, 20);
        rasters[i].data = parts[i];
        items[i] = (cogpu_read_item){.struct_size = sizeof(cogpu_read_item),
                                     .file = file,
                                     .request = &requests[i],
                                     .raster = &rasters[i]};
    }
    long before = atomic_load(&faults_fired);
    cogpu_status status = cogpu_read_many(items, 3, context, &error);
    int failed = 0;
    for (uint32_t i = 0; i < 3; i++) {
        failed += items[i].status != COGPU_OK;
        if (went_well(items[i].status, before, NULL))
            CHECK(pixels_match(&sample->full, parts[i], 0, 40 * i, SIDE, 20, NULL, 0));
    }
    CHECK((status != COGPU_OK) == (failed > 0));
    went_well(status, before, &error);
}

static void try_context(const cogpu_file *file, const struct sample *sample) {
    const cogpu_context_options options = {
        .struct_size = sizeof(cogpu_context_options), .threads = 2, .cache_bytes = 1 << 20};
    cogpu_context *context = NULL;
    cogpu_error error;
    long before = atomic_load(&faults_fired);
    if (!went_well(cogpu_context_open(&options, &context, &error), before, &error)) {
        CHECK(!context);
        return;
    }
    for (int i = 0; i < 2; i++)
        try_read(file, &sample->full,
                 (cogpu_request){.struct_size = sizeof(cogpu_request), .context = context});
    try_many(file, sample, context);
    cogpu_context_close(context);
}

static void try_check(const cogpu_file *file) {
    cogpu_checked checked = COGPU_CHECKED_INIT;
    cogpu_error error;
    long before = atomic_load(&faults_fired);
    if (went_well(cogpu_check(file, NULL, NULL, NULL, &checked, &error), before, &error))
        CHECK(checked.blocks > 0 || checked.errors > 0);
}

static void try_all(struct sample *sample, enum way way) {
    cogpu_file *file = NULL;
    cogpu_error error;
    uint16_t tag = 0;
    int closed_before = closed;
    long before = atomic_load(&faults_fired);
    bool opened = went_well(open_sample(sample, way, &file, &error), before, &error);
    CHECK(opened == (file != NULL));
    if (opened && is_complete(sample, file, way)) {
        went_well(cogpu_tag_read(file, 0, 259, 0, 1, &tag, &error), atomic_load(&faults_fired),
                  &error);
        try_read(file, &sample->full,
                 (cogpu_request){.struct_size = sizeof(cogpu_request), .threads = 1});
        try_read(file, &sample->full,
                 (cogpu_request){
                     .struct_size = sizeof(cogpu_request), .threads = 2, .fill_bad_blocks = 1});
        if (way != FROM_PATH_WITH_SIDECARS)
            try_read(file, &sample->half,
                     (cogpu_request){.struct_size = sizeof(cogpu_request), .level = 1});
        try_mask(file, sample);
        try_floats(file, sample);
        try_many(file, sample, NULL);
        try_check(file);
        try_context(file, sample);
    }
    cogpu_close(file);
    CHECK((way != FROM_SOURCE && way != FROM_SOURCE_OF_MANY) || closed == closed_before + 1);
}

/* The n-th call fails, for n = 1, 2, ... until none does. */
/* Each call fails alone. Where all calls after it fail too, or a sample is read as one of many, the
 * code that sees a failure is the same: a sample of the calls, unless this is a run of all tests.
 */
static long step_after(long n, enum way way, bool for_good) {
    enum { FIRST = 12, STEP = 3 };
    bool is_sampled = for_good || way == FROM_SOURCE_OF_MANY;
    return is_sampled && n > FIRST && !is_deep_run() ? STEP : 1;
}

static void try_faults(struct sample *sample, enum way way, enum fault kind, bool for_good) {
    fails_for_good = for_good;
    for (long n = 1; n < 100000; n += step_after(n, way, for_good)) {
        atomic_store(&live_allocations, 0);
        arm_fault(kind, n);
        try_all(sample, way);
        bool through = atomic_load(&faults_fired) == 0;
        arm_fault(NO_FAULT, 0);
        CHECK(atomic_load(&live_allocations) == 0);
        if (through)
            return;
        if (test_broken) {
            printf("... when call %ld of kind %d failed%s\n", n, (int)kind,
                   for_good ? " and all after it" : "");
            return;
        }
    }
    CHECK(0);
}

static void try_samples(enum way way, enum fault kind) {
    for (int i = 0; i < SAMPLES; i++)
        for (int for_good = 0; for_good < 2; for_good++)
            try_faults(&samples[i], way, kind, for_good);
}

/* ---- the tests ---- */

static void test_without_faults(void) {
    for (int i = 0; i < SAMPLES; i++)
        for (int way = FROM_MEMORY; way <= FROM_PATH; way++) {
            write_path(&samples[i]);
            arm_fault(NO_FAULT, 0);
            atomic_store(&live_allocations, 0);
            try_all(&samples[i], (enum way)way);
            CHECK(atomic_load(&live_allocations) == 0);
        }
}

static void test_allocations_with_memory(void) {
    try_samples(FROM_MEMORY, ALLOCATION);
}

static void test_allocations_with_a_source(void) {
    try_samples(FROM_SOURCE, ALLOCATION);
    try_samples(FROM_SOURCE_OF_MANY, ALLOCATION);
}

static void test_allocations_with_a_path(void) {
    write_path(&samples[0]);
    try_faults(&samples[0], FROM_PATH, ALLOCATION, false);
}

static void test_reads_of_a_source_that_fail(void) {
    try_samples(FROM_SOURCE, READ_FAILS);
    try_samples(FROM_SOURCE_OF_MANY, READ_FAILS);
}

static void test_reads_of_a_source_that_are_short(void) {
    try_samples(FROM_SOURCE, READ_IS_SHORT);
}

static void test_preads(void) {
    for (int i = 0; i < SAMPLES; i++) {
        write_path(&samples[i]);
        try_faults(&samples[i], FROM_PATH, READ_FAILS, false);
        try_faults(&samples[i], FROM_PATH, READ_IS_SHORT, false);
    }
}

static void build_beside(struct sample *sample, const char *metadata) {
    build_open(&sample->file, false, false);
    build_data(&sample->file, NULL, FAR);
    build_kind(&sample->file, &sample->full);
    if (metadata)
        build_text(&sample->file, 42112, metadata);
    build_directory(&sample->file, true);
}

/* A level, a mask and texts beside the file, none of which is a reason to fail. */
static void test_sidecars(void) {
    static const char pam[] =
        "<PAMDataset><Metadata><MDI key=\"a\">b</MDI></Metadata></PAMDataset>";
    struct sample main = {.full = {.width = SIDE, .height = SIDE, .compression = 5},
                          .has_masks = true};
    struct sample level = {.full = {.width = 40, .height = 40, .compression = 5}};
    struct sample mask = {.full = {.width = SIDE, .height = SIDE, .compression = 8, .seed = 1}};
    build_beside(&main, NULL);
    build_beside(&level, NULL);
    build_beside(&mask,
                 "<GDALMetadata><Item name=\"INTERNAL_MASK_FLAGS_1\">2</Item></GDALMetadata>");
    write_path(&main);
    write_beside(".ovr", level.file.bytes, level.file.size);
    write_beside(".msk", mask.file.bytes, mask.file.size);
    write_beside(".aux.xml", pam, sizeof pam - 1);
    write_beside(".wld", "2\n0\n0\n-2\n0\n0\n", 14);
    for (int kind = ALLOCATION; kind <= READ_IS_SHORT; kind++)
        try_faults(&main, FROM_PATH_WITH_SIDECARS, (enum fault)kind, false);
    static const char *const endings[] = {".ovr", ".msk", ".aux.xml", ".wld"};
    for (int i = 0; i < 4; i++)
        write_beside(endings[i], NULL, 0);
    build_close(&main.file);
    build_close(&level.file);
    build_close(&mask.file);
}

/* The offset of the next directory is the first thing that is not in the head of the source: not
 * to get it is not to have none. */
static void test_the_link_at_the_edge_of_the_head(void) {
    enum { HEAD = 16384 };
    struct sample sample = {.full = {.width = SIDE, .height = SIDE},
                            .half = {.width = HALF, .height = HALF, .subfile_type = 1, .seed = 3}};
    build_open(&sample.file, false, false);
    build_data(&sample.file, NULL, HEAD - 8 - 2 - 11 * 12);
    size_t start = sample.file.size;
    build_data(&sample.file, NULL, 2 + 11 * 12 + 4);
    build_kind(&sample.file, &sample.full);
    CHECK(sample.file.entry_count == 10);
    build_short(&sample.file, 60000, 1);
    uint64_t at = build_directory(&sample.file, true);
    /* Moved to where it shall be. */
    memcpy(sample.file.bytes + start, sample.file.bytes + at, 2 + 11 * 12);
    build_put(&sample.file, sample.file.bytes + 4, start, 4);
    sample.file.link = HEAD;
    build_kind(&sample.file, &sample.half);
    build_directory(&sample.file, true);
    try_faults(&sample, FROM_SOURCE, READ_FAILS, false);
    try_faults(&sample, FROM_SOURCE, READ_IS_SHORT, false);
    build_close(&sample.file);
}

/* The last rows of a strip that is too large to be held: the n-th call fails, until none does. */
static void try_stream(struct sample *sample, enum fault kind) {
    fails_for_good = false;
    for (long n = 1, through = 0; !through; n++) {
        cogpu_file *file = NULL;
        CHECK(n < 1000);
        atomic_store(&live_allocations, 0);
        arm_fault(NO_FAULT, 0);
        CHECK(open_sample(sample, FROM_SOURCE, &file, NULL) == COGPU_OK);
        arm_fault(kind, n);
        try_read(file, &sample->full,
                 (cogpu_request){.struct_size = sizeof(cogpu_request),
                                 .y = sample->full.height - 5,
                                 .height = 5,
                                 .threads = 1});
        through = atomic_load(&faults_fired) == 0;
        arm_fault(NO_FAULT, 0);
        cogpu_close(file);
        CHECK(atomic_load(&live_allocations) == 0);
    }
}

static void test_a_strip_in_parts(void) {
    static const uint16_t compressions[] = {5, 8, 32773, 50000};
    for (size_t i = 0; i < sizeof compressions / sizeof *compressions; i++) {
        struct sample sample = {
            .full = {.width = 3000, .height = 3000, .compression = compressions[i]}};
        build_open(&sample.file, false, false);
        build_data(&sample.file, NULL, FAR);
        build_kind(&sample.file, &sample.full);
        build_directory(&sample.file, true);
        for (int kind = ALLOCATION; kind <= READ_IS_SHORT; kind++)
            try_stream(&sample, (enum fault)kind);
        build_close(&sample.file);
    }
}

TESTS(read_faults) {
    reset_faults();
    strcpy(path, "cogpu_test_faults_XXXXXX");
    int descriptor = mkstemp(path);
    CHECK(descriptor >= 0);
    close(descriptor);
    for (int i = 0; i < SAMPLES; i++)
        build_sample(&samples[i]);
    RUN(test_without_faults);
    RUN(test_allocations_with_memory);
    RUN(test_allocations_with_a_source);
    RUN(test_allocations_with_a_path);
    RUN(test_reads_of_a_source_that_fail);
    RUN(test_reads_of_a_source_that_are_short);
    RUN(test_preads);
    RUN(test_sidecars);
    RUN(test_the_link_at_the_edge_of_the_head);
    RUN(test_a_strip_in_parts);
    for (int i = 0; i < SAMPLES; i++)
        build_close(&samples[i].file);
    unlink(path);
    return FINISH();
}
