/*
 * Structs of callers that were compiled with an older or a newer header: shorter and longer ones.
 * Each row below is a struct that crosses the API and a function that takes or fills it.
 *
 *     shorter   | struct_size | fields up to `cut` | guard |              works; the guard stays
 *     longer    | struct_size | all fields | tail |           an input's must be 0, an output's
 * stays
 */
#include "unit/api/api_fixture.h"

#include "support/test.h"

enum { STRUCT_MAX = 2048, TAIL = 24, GUARD = 0xA5 };

static cogpu_error error;
static uint8_t got[FIXTURE_HEIGHT * FIXTURE_WIDTH];

static bool has_pixels(void) {
    bool is_same = memcmp(got, fixture_pixels, sizeof got) == 0;
    memset(got, 0, sizeof got);
    return is_same;
}

/* ---- functions that take a struct ---- */

static cogpu_status open_and_close(const cogpu_open_options *options) {
    cogpu_file *file = NULL;
    cogpu_status status =
        cogpu_open_memory(fixture_bytes.data, fixture_bytes.bytes, options, &file, &error);
    CHECK((status == COGPU_OK) == (file != NULL));
    cogpu_close(file);
    return status;
}

static cogpu_status use_open_options(void *given) {
    return open_and_close(given);
}

static cogpu_status use_limits(void *given) {
    return open_and_close(
        &(cogpu_open_options){.struct_size = sizeof(cogpu_open_options), .limits = given});
}

static cogpu_status use_context_options(void *given) {
    cogpu_context *context = NULL;
    cogpu_status status = cogpu_context_open(given, &context, &error);
    CHECK((status == COGPU_OK) == (context != NULL));
    cogpu_context_close(context);
    return status;
}

static cogpu_status use_network(void *given) {
    return use_context_options(
        &(cogpu_context_options){.struct_size = sizeof(cogpu_context_options), .network = given});
}

static int sources_open;

static cogpu_status read_source(void *user, uint64_t offset, size_t bytes, void *to, size_t *read) {
    (void)user;
    *read = offset >= fixture_bytes.bytes          ? 0
            : bytes < fixture_bytes.bytes - offset ? bytes
                                                   : fixture_bytes.bytes - (size_t)offset;
    memcpy(to, (uint8_t *)fixture_bytes.data + offset, *read);
    return COGPU_OK;
}

static cogpu_status size_source(void *user, uint64_t *bytes) {
    (void)user;
    *bytes = fixture_bytes.bytes;
    return COGPU_OK;
}

static void close_source(void *user) {
    (void)user;
    sources_open--;
}

/* A source is closed after a failure too, if its size is known. */
static cogpu_status use_source(void *given) {
    cogpu_file *file = NULL;
    sources_open = 1;
    cogpu_status status = cogpu_open_source(given, NULL, &file, &error);
    cogpu_close(file);
    CHECK(sources_open == (status == COGPU_INVALID_ARGUMENT));
    return status;
}

static cogpu_status use_raster(void *given) {
    cogpu_status status = cogpu_read(fixture_file, NULL, given, NULL, &error);
    CHECK((status == COGPU_OK) == has_pixels());
    return status;
}

static cogpu_status use_request(void *given) {
    const cogpu_raster raster = fixture_raster(got);
    cogpu_status status = cogpu_read(fixture_file, given, &raster, NULL, &error);
    CHECK((status == COGPU_OK) == has_pixels());
    return status;
}

static cogpu_status use_raster_of_async(void *given) {
    cogpu_pending *pending = NULL;
    cogpu_status status = cogpu_read_async(fixture_file, NULL, given, &pending, &error);
    CHECK((status == COGPU_OK) == (pending != NULL));
    return status == COGPU_OK ? cogpu_wait(pending, NULL, &error) : status;
}

static cogpu_status use_tensor(void *given) {
    struct DLManagedTensorVersioned *tensor = NULL;
    cogpu_status status = cogpu_dlpack_versioned(given, NULL, NULL, &tensor, &error);
    if (tensor) /* the deleter follows version and manager */
        (*(void (**)(struct DLManagedTensorVersioned *))(void *)((uint8_t *)tensor + 16))(tensor);
    return status;
}

static cogpu_memory written_bytes = COGPU_MEMORY_INIT;
static int sink_aborts;

static cogpu_status keep_bytes(void *user, uint64_t offset, const void *from, size_t bytes) {
    (void)user, (void)offset, (void)from, (void)bytes;
    return COGPU_OK;
}

static void count_abort(void *user) {
    (void)user;
    sink_aborts++;
}

static cogpu_status write_with(const cogpu_sink *sink, const cogpu_profile *profile) {
    const cogpu_raster raster = fixture_raster(fixture_pixels);
    return cogpu_write(sink, profile, &raster, NULL, NULL, &error);
}

/* A sink is aborted after a failure, if its size is known. */
static cogpu_status use_sink(void *given) {
    const cogpu_profile profile = fixture_profile();
    sink_aborts = 0;
    cogpu_status status = write_with(given, &profile);
    CHECK(sink_aborts == (status == COGPU_UNSUPPORTED));
    return status;
}

static cogpu_status use_sink_of_output(void *given) {
    cogpu_output *output = NULL;
    cogpu_status status = cogpu_output_open(given, &output, &error);
    cogpu_output_abort(output);
    return status;
}

static cogpu_status use_memory(void *given) {
    const cogpu_profile profile = fixture_profile();
    const cogpu_sink sink = {.struct_size = sizeof(cogpu_sink), .memory = given};
    cogpu_status status = write_with(&sink, &profile);
    if (status == COGPU_OK)
        cogpu_memory_free(given);
    return status;
}

static cogpu_status use_memory_of_block(void *given) {
    const cogpu_profile profile = fixture_profile();
    cogpu_raster raster = fixture_raster(fixture_pixels);
    raster.width = raster.height = FIXTURE_BLOCK;
    cogpu_status status =
        cogpu_encode_block(&profile, 0, COGPU_CONTENT_PIXELS, 0, &raster, given, &error);
    if (status == COGPU_OK)
        cogpu_memory_free(given);
    return status;
}

static cogpu_status use_profile(void *given) {
    const cogpu_sink sink = {.struct_size = sizeof(cogpu_sink), .memory = &written_bytes};
    cogpu_status status = write_with(&sink, given);
    cogpu_memory_free(&written_bytes);
    return status;
}

static cogpu_status use_profile_of_layout(void *given) {
    cogpu_level_layout layout = COGPU_LEVEL_LAYOUT_INIT;
    cogpu_status status = cogpu_profile_level_layout(given, 0, &layout, &error);
    CHECK(status != COGPU_OK || layout.width == FIXTURE_WIDTH);
    return status;
}

static cogpu_status use_rows(void *given) {
    const cogpu_profile profile = fixture_profile();
    const cogpu_sink sink = {.struct_size = sizeof(cogpu_sink), .memory = &written_bytes};
    cogpu_writer *writer = NULL;
    CHECK(cogpu_writer_open(&sink, &profile, &writer, &error) == COGPU_OK);
    cogpu_status status = cogpu_writer_write_rows(writer, given, NULL, &error);
    cogpu_writer_abort(writer);
    return status;
}

static cogpu_status use_check_options(void *given) {
    cogpu_checked checked = COGPU_CHECKED_INIT;
    cogpu_status status = cogpu_check(fixture_file, given, NULL, NULL, &checked, &error);
    CHECK(status != COGPU_OK || checked.verdict != COGPU_VERDICT_INVALID);
    return status;
}

static cogpu_status use_resample(void *given) {
    uint32_t begin = 9, end = 9;
    cogpu_status status = cogpu_resample_source_rows(given, 1, 1, &begin, &end, &error);
    CHECK(status != COGPU_OK || (begin == 2 && end == 4));
    return status;
}

static const cogpu_resample halving = {.struct_size = sizeof(cogpu_resample),
                                       .method = COGPU_RESAMPLE_AVERAGE,
                                       .type = COGPU_TYPE_U8,
                                       .bands = 1,
                                       .from_width = FIXTURE_WIDTH,
                                       .from_height = FIXTURE_HEIGHT,
                                       .width = FIXTURE_WIDTH / 2,
                                       .height = FIXTURE_HEIGHT / 2};

static cogpu_status use_raster_of_resampling(void *given) {
    cogpu_raster to = fixture_raster(got);
    to.width = halving.width, to.height = halving.height;
    return cogpu_resample_rows(&halving, 0, given, NULL, 0, &to, NULL, &error);
}

static cogpu_profile overview_profile(void) {
    cogpu_profile profile = fixture_profile();
    profile.overviews = COGPU_OVERVIEWS_AUTO;
    return profile;
}

static cogpu_status use_window(void *given) {
    const cogpu_profile profile = overview_profile();
    cogpu_window source = COGPU_WINDOW_INIT;
    cogpu_status status = cogpu_overview_source_window(&profile, 1, given, &source, &error);
    CHECK(status != COGPU_OK || source.width == FIXTURE_WIDTH);
    return status;
}

static cogpu_status use_raster_of_overview(void *given) {
    const cogpu_profile profile = overview_profile();
    cogpu_raster to = fixture_raster(got);
    to.width = FIXTURE_WIDTH / 2, to.height = FIXTURE_HEIGHT / 2;
    const cogpu_window all = {sizeof all, 0, 0, FIXTURE_WIDTH / 2, FIXTURE_HEIGHT / 2};
    return cogpu_overview_compute(&profile, 1, &all, given, NULL, &to, NULL, &error);
}

static cogpu_status open_mosaic(const cogpu_mosaic_source *source,
                                const cogpu_mosaic_options *options) {
    cogpu_file *mosaic = NULL;
    cogpu_status status = cogpu_open_mosaic(source, 1, options, &mosaic, &error);
    CHECK((status == COGPU_OK) == (mosaic != NULL));
    cogpu_close(mosaic);
    return status;
}

static cogpu_status use_mosaic_source(void *given) {
    return open_mosaic(given, NULL);
}

static cogpu_status use_mosaic_options(void *given) {
    const cogpu_mosaic_source one = {.struct_size = sizeof one, .file = fixture_file};
    return open_mosaic(&one, given);
}

static cogpu_status use_grid(void *given) {
    return use_mosaic_options(
        &(cogpu_mosaic_options){.struct_size = sizeof(cogpu_mosaic_options), .grid = given});
}

/* ---- functions that fill a struct ---- */

#define FILLED_BY(name, call)                                                                      \
    static cogpu_status fill_##name(void *given) {                                                 \
        return call;                                                                               \
    }

FILLED_BY(image, cogpu_image_info(fixture_file, 0, given, &error))
FILLED_BY(level, cogpu_level_info(fixture_file, 0, 1, given, &error))
FILLED_BY(band, cogpu_band_info(fixture_file, 0, 1, given, &error))
FILLED_BY(gcp, cogpu_gcp_info(fixture_gcp_file, 0, 2, given, &error))
FILLED_BY(metadata_item, cogpu_metadata_info(fixture_file, 0, 0, given, &error))
FILLED_BY(geokey, cogpu_geokey_info(fixture_file, 0, 0, given, &error))
FILLED_BY(crs, cogpu_crs_info(fixture_file, 0, given, &error))
FILLED_BY(directory, cogpu_directory_info(fixture_file, 1, given, &error))
FILLED_BY(tag, cogpu_tag_info(fixture_file, 0, 3, given, &error))
FILLED_BY(codec, cogpu_codec_info(2, given, &error))
FILLED_BY(device, cogpu_device_info(0, given, &error))
FILLED_BY(checked, cogpu_check(fixture_file, NULL, NULL, NULL, given, &error))
FILLED_BY(level_layout,
          cogpu_profile_level_layout(&(cogpu_profile){.struct_size = sizeof(cogpu_profile),
                                                      .width = 1000,
                                                      .height = 900,
                                                      .bands = 3,
                                                      .type = COGPU_TYPE_U16},
                                     0, given, &error))
FILLED_BY(window, cogpu_bbox_to_window((double[]){0, 1, 0, 0, 0, -1}, 100, 100,
                                       (double[]){10, -60, 20, -30}, given, &error))
FILLED_BY(s3_part, cogpu_upload_send("s3://bucket/key", "id", NULL, 7, "bytes", 5, given, &error))

static cogpu_status fill_source_description(void *given) {
    const cogpu_mosaic_source one = {.struct_size = sizeof one, .file = fixture_file};
    cogpu_file *mosaic = NULL;
    CHECK(cogpu_open_mosaic(&one, 1, NULL, &mosaic, &error) == COGPU_OK);
    cogpu_status status = cogpu_source_info(mosaic, 0, given, &error);
    cogpu_close(mosaic);
    return status;
}

static cogpu_status fill_result(void *given) {
    const cogpu_raster raster = fixture_raster(got);
    return cogpu_read(fixture_file, NULL, &raster, given, &error);
}

static cogpu_status fill_result_of_wait(void *given) {
    const cogpu_raster raster = fixture_raster(got);
    cogpu_pending *pending = NULL;
    CHECK(cogpu_read_async(fixture_file, NULL, &raster, &pending, &error) == COGPU_OK);
    return cogpu_wait(pending, given, &error);
}

static cogpu_status fill_written(void *given) {
    const cogpu_profile profile = fixture_profile();
    const cogpu_raster raster = fixture_raster(fixture_pixels);
    const cogpu_sink sink = {.struct_size = sizeof(cogpu_sink), .memory = &written_bytes};
    cogpu_status status = cogpu_write(&sink, &profile, &raster, NULL, given, &error);
    cogpu_memory_free(&written_bytes);
    return status;
}

/* ---- the rows ---- */

struct row {
    const char *type;
    size_t size, cut; /* 0: all fields are needed */
    const void *full; /* an input, with values; NULL: an output */
    cogpu_status (*call)(void *given);
};

static cogpu_open_options open_options = COGPU_OPEN_OPTIONS_INIT;
static cogpu_limits limits = {.struct_size = sizeof(cogpu_limits), .bands = 1};
static cogpu_context_options context_options = {.struct_size = sizeof(cogpu_context_options),
                                                .threads = 1};
static cogpu_network network = COGPU_NETWORK_INIT;
static cogpu_source source = {.struct_size = sizeof(cogpu_source),
                              .read = read_source,
                              .size = size_source,
                              .close = close_source};
static cogpu_raster read_raster, write_raster;
static cogpu_request request = {.struct_size = sizeof(cogpu_request), .height = FIXTURE_HEIGHT};
static cogpu_sink user_sink = {
    .struct_size = sizeof(cogpu_sink), .write = keep_bytes, .abort = count_abort};
static cogpu_memory memory = COGPU_MEMORY_INIT;
static cogpu_profile profile_row;
static cogpu_check_options check_options = COGPU_CHECK_OPTIONS_INIT;
static cogpu_mosaic_source mosaic_source;
static cogpu_mosaic_options mosaic_options = COGPU_MOSAIC_OPTIONS_INIT;
static cogpu_grid grid = COGPU_GRID_INIT;
static cogpu_window window = {sizeof(cogpu_window), 0, 0, FIXTURE_WIDTH / 2, FIXTURE_HEIGHT / 2};

#define INPUT(type, cut, full, call)                                                               \
    { #type, sizeof(type), offsetof(type, cut), full, call }
#define WHOLE(type, full, call)                                                                    \
    { #type, sizeof(type), 0, full, call }
#define OUTPUT(type, cut, call)                                                                    \
    { #type, sizeof(type), offsetof(type, cut), NULL, call }
static const struct row rows[] = {
    INPUT(cogpu_open_options, context, &open_options, use_open_options),
    INPUT(cogpu_limits, working_memory_bytes, &limits, use_limits),
    INPUT(cogpu_context_options, network, &context_options, use_context_options),
    INPUT(cogpu_network, s3_anonymous, &network, use_network),
    INPUT(cogpu_source, read_many, &source, use_source),
    INPUT(cogpu_raster, stride_x, &read_raster, use_raster),
    INPUT(cogpu_raster, stream, &read_raster, use_raster_of_async),
    INPUT(cogpu_raster, device_index, &read_raster, use_tensor),
    INPUT(cogpu_raster, device, &write_raster, use_rows),
    INPUT(cogpu_raster, stride_y, &write_raster, use_raster_of_resampling),
    INPUT(cogpu_raster, stream, &write_raster, use_raster_of_overview),
    INPUT(cogpu_request, threads, &request, use_request),
    INPUT(cogpu_sink, append_only, &user_sink, use_sink),
    INPUT(cogpu_sink, append_only, &user_sink, use_sink_of_output),
    INPUT(cogpu_profile, threads, &profile_row, use_profile),
    INPUT(cogpu_profile, progress, &profile_row, use_profile_of_layout),
    INPUT(cogpu_check_options, progress, &check_options, use_check_options),
    INPUT(cogpu_resample, nodata, &halving, use_resample),
    INPUT(cogpu_mosaic_source, rpc_dem, &mosaic_source, use_mosaic_source),
    INPUT(cogpu_mosaic_options, open, &mosaic_options, use_mosaic_options),
    INPUT(cogpu_grid, align, &grid, use_grid),
    WHOLE(cogpu_window, &window, use_window),
    OUTPUT(cogpu_image, gcp_count, fill_image),
    OUTPUT(cogpu_level, has_transform, fill_level),
    OUTPUT(cogpu_band, nodata_value, fill_band),
    OUTPUT(cogpu_gcp, y, fill_gcp),
    OUTPUT(cogpu_metadata_item, role, fill_metadata_item),
    OUTPUT(cogpu_geokey, doubles, fill_geokey),
    OUTPUT(cogpu_crs, name, fill_crs),
    OUTPUT(cogpu_directory, parent, fill_directory),
    OUTPUT(cogpu_tag, bytes, fill_tag),
    OUTPUT(cogpu_codec, predictors, fill_codec),
    OUTPUT(cogpu_device, description, fill_device),
    OUTPUT(cogpu_checked, notes, fill_checked),
    OUTPUT(cogpu_level_layout, max_bytes, fill_level_layout),
    OUTPUT(cogpu_window, height, fill_window),
    OUTPUT(cogpu_s3_part, etag, fill_s3_part),
    OUTPUT(cogpu_result, first_bad, fill_result),
    OUTPUT(cogpu_result, bytes_read, fill_result_of_wait),
    OUTPUT(cogpu_written, bigtiff, fill_written),
    OUTPUT(cogpu_source_description, window, fill_source_description),
};
enum { ROWS = sizeof rows / sizeof *rows };

static void prepare_rows(void) {
    read_raster = fixture_raster(got);
    write_raster = fixture_raster(fixture_pixels);
    profile_row = fixture_profile();
    mosaic_source =
        (cogpu_mosaic_source){.struct_size = sizeof mosaic_source, .file = fixture_file};
}

/* ---- the tests ---- */

/* Memory for a struct of any size, with `fill` in bytes that are no field. */
static union {
    max_align_t align;
    uint8_t bytes[STRUCT_MAX];
} caller;

static void *make_struct(const struct row *row, size_t size, uint8_t fill) {
    const size_t known = size < row->size ? size : row->size;
    memset(&caller, fill, sizeof caller);
    if (row->full)
        memcpy(&caller, row->full, known);
    else
        memset(&caller, 0, known);
    memcpy(&caller, &size, sizeof size);
    return &caller;
}

static bool is_filled(const uint8_t *bytes, size_t count, uint8_t fill) {
    while (count > 0 && bytes[count - 1] == fill)
        count--;
    return count == 0;
}

static void expect(const struct row *row, cogpu_status status, cogpu_status expected) {
    CHECK(status == expected);
    CHECK(error.status == expected && !error.message[0] == (expected == COGPU_OK));
    if (status != expected)
        printf("... of %s: %s\n", row->type, error.message);
}

/* The macro of "cogpu_image" is COGPU_IMAGE_INIT. */
static bool names_macro(const char *message, const char *type) {
    char macro[64];
    snprintf(macro, sizeof macro, "COGPU_%s_INIT", type + strlen("cogpu_"));
    for (char *at = macro; *at; at++)
        if (*at >= 'a' && *at <= 'z')
            *at = (char)(*at - 'a' + 'A');
    return strstr(message, type) && strstr(message, macro);
}

static void test_impossible_sizes(void) {
    static const size_t sizes[] = {0, 1, sizeof(size_t) - 1, 1 << 20, SIZE_MAX / 2, SIZE_MAX};
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < 6; k++) {
            void *given = make_struct(&rows[i], rows[i].size, 0);
            memcpy(given, &sizes[k], sizeof sizes[k]);
            expect(&rows[i], rows[i].call(given), COGPU_INVALID_ARGUMENT);
            CHECK(names_macro(error.message, rows[i].type));
        }
}

static void test_older_callers(void) {
    for (int i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        if (row->cut == 0)
            continue;
        uint8_t full[STRUCT_MAX];
        expect(row, row->call(make_struct(row, row->size, GUARD)), COGPU_OK);
        memcpy(full, &caller, sizeof full);
        expect(row, row->call(make_struct(row, row->cut, GUARD)), COGPU_OK);
        size_t size;
        memcpy(&size, &caller, sizeof size);
        CHECK(size == row->cut);
        CHECK(is_filled(caller.bytes + row->cut, sizeof caller - row->cut, GUARD));
        if (!row->full) /* the fields that it has, as in the whole struct */
            CHECK(memcmp(caller.bytes + sizeof size, full + sizeof size, row->cut - sizeof size) ==
                  0);
    }
}

static void test_newer_callers(void) {
    for (int i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        const size_t size = row->size + TAIL;
        expect(row, row->call(make_struct(row, size, 0)), COGPU_OK);
        CHECK(is_filled(caller.bytes + row->size, TAIL, 0));
        void *given = make_struct(row, size, GUARD);
        expect(row, row->call(given), row->full ? COGPU_UNSUPPORTED : COGPU_OK);
        CHECK(is_filled(caller.bytes + row->size, sizeof caller - row->size, GUARD));
        CHECK(!row->full || (strstr(error.message, row->type) && strstr(error.message, "newer")));
        if (row->full) { /* one byte is enough */
            given = make_struct(row, size, 0);
            caller.bytes[size - 1] = 1;
            expect(row, row->call(given), COGPU_UNSUPPORTED);
        }
    }
}

/* Both fields of cogpu_memory are needed. */
static void test_memory(void) {
    static const struct row of_memory[] = {WHOLE(cogpu_memory, &memory, use_memory),
                                           WHOLE(cogpu_memory, &memory, use_memory_of_block)};
    for (int i = 0; i < 2; i++) {
        const struct row *row = &of_memory[i];
        for (size_t size = 0; size < sizeof(cogpu_memory); size++) {
            expect(row, row->call(make_struct(row, size, GUARD)), COGPU_INVALID_ARGUMENT);
            CHECK(is_filled(caller.bytes + sizeof memory, sizeof caller - sizeof memory, GUARD));
            CHECK(names_macro(error.message, row->type));
        }
        expect(row, row->call(make_struct(row, sizeof(cogpu_memory) + TAIL, GUARD)), COGPU_OK);
        CHECK(is_filled(caller.bytes + sizeof memory, sizeof caller - sizeof memory, GUARD));
    }
}

static void note_size(void *user, const cogpu_finding *finding) {
    *(size_t *)user = finding->struct_size;
}

/* The library sets the size of what it gives to a callback. */
static void test_findings(void) {
    cogpu_checked checked = COGPU_CHECKED_INIT;
    size_t size = 0;
    CHECK(cogpu_check(fixture_gcp_file, NULL, note_size, &size, &checked, &error) == COGPU_OK);
    CHECK(size == sizeof(cogpu_finding));
}

TESTS(sized) {
    if (!fixture_open())
        return 1;
    prepare_rows();
    RUN(test_impossible_sizes);
    RUN(test_older_callers);
    RUN(test_newer_callers);
    RUN(test_memory);
    RUN(test_findings);
    fixture_close();
    return FINISH();
}
