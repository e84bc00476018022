/* After success `error` says so, whatever it held before: for each public function that has one.
 * tests/python/test_abi.py compares the list with the headers. */
#include "unit/api/api_fixture.h"

#include "support/test.h"

#include <unistd.h>

static uint8_t got[FIXTURE_HEIGHT * FIXTURE_WIDTH];
static cogpu_memory bytes = COGPU_MEMORY_INIT;
static void *device_memory;

#define OPEN_SINK (&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &bytes})
#define EMULATED  fixture_context, COGPU_DEVICE_EMULATOR, 0
#define ADDRESS   "s3://bucket/key"

/* A function CALLS_name for a call that is one expression. */
#define CALLS(name, ...)                                                                           \
    static cogpu_status call_##name(cogpu_error *error) {                                          \
        return cogpu_##name(__VA_ARGS__, error);                                                   \
    }
#define FILLS(name, type, init, ...)                                                               \
    static cogpu_status call_##name(cogpu_error *error) {                                          \
        type found = init;                                                                         \
        return cogpu_##name(__VA_ARGS__, &found, error);                                           \
    }
#define PARSES(name, text)                                                                         \
    static cogpu_status call_##name##_parse(cogpu_error *error) {                                  \
        cogpu_##name found;                                                                        \
        return cogpu_##name##_parse(text, &found, error);                                          \
    }

/* ---- opening and describing ---- */

/* An overview file that is no TIFF becomes a warning, no error. */
static cogpu_status call_open(cogpu_error *error) {
    char path[] = "cogpu-test-XXXXXX", sidecar[sizeof path + 4];
    cogpu_file *file = NULL;
    int handle = mkstemp(path);
    CHECK(handle >= 0 &&
          write(handle, fixture_bytes.data, fixture_bytes.bytes) == (ssize_t)fixture_bytes.bytes);
    close(handle);
    snprintf(sidecar, sizeof sidecar, "%s.ovr", path);
    FILE *overviews = fopen(sidecar, "w");
    CHECK(overviews && fputs("no TIFF", overviews) >= 0 && fclose(overviews) == 0);
    cogpu_status status = cogpu_open(path, NULL, &file, error);
    cogpu_image image = COGPU_IMAGE_INIT;
    CHECK(cogpu_image_info(file, 0, &image, NULL) == COGPU_OK && image.warning);
    cogpu_close(file);
    remove(path);
    remove(sidecar);
    return status;
}

static cogpu_status call_open_memory(cogpu_error *error) {
    cogpu_file *file = NULL;
    cogpu_status status =
        cogpu_open_memory(fixture_bytes.data, fixture_bytes.bytes, NULL, &file, error);
    cogpu_close(file);
    return status;
}

static cogpu_status read_source(void *user, uint64_t offset, size_t count, void *to, size_t *read) {
    const size_t left = offset < fixture_bytes.bytes ? fixture_bytes.bytes - (size_t)offset : 0;
    (void)user;
    *read = count < left ? count : left;
    memcpy(to, (uint8_t *)fixture_bytes.data + offset, *read);
    return COGPU_OK;
}

static cogpu_status size_source(void *user, uint64_t *count) {
    (void)user;
    *count = fixture_bytes.bytes;
    return COGPU_OK;
}

static cogpu_status call_open_source(cogpu_error *error) {
    const cogpu_source source = {
        .struct_size = sizeof source, .read = read_source, .size = size_source};
    cogpu_file *file = NULL;
    cogpu_status status = cogpu_open_source(&source, NULL, &file, error);
    cogpu_close(file);
    return status;
}

FILLS(image_info, cogpu_image, COGPU_IMAGE_INIT, fixture_file, 0)
FILLS(level_info, cogpu_level, COGPU_LEVEL_INIT, fixture_file, 0, 1)
FILLS(band_info, cogpu_band, COGPU_BAND_INIT, fixture_file, 0, 1)
FILLS(gcp_info, cogpu_gcp, COGPU_GCP_INIT, fixture_gcp_file, 0, 0)
FILLS(metadata_info, cogpu_metadata_item, COGPU_METADATA_ITEM_INIT, fixture_file, 0, 0)
FILLS(geokey_info, cogpu_geokey, COGPU_GEOKEY_INIT, fixture_file, 0, 0)
FILLS(crs_info, cogpu_crs, COGPU_CRS_INIT, fixture_file, 0)
FILLS(directory_info, cogpu_directory, COGPU_DIRECTORY_INIT, fixture_file, 0)
FILLS(tag_info, cogpu_tag, COGPU_TAG_INIT, fixture_file, 0, 0)
FILLS(codec_info, cogpu_codec, COGPU_CODEC_INIT, 0)
FILLS(device_info, cogpu_device, COGPU_DEVICE_INIT, 0)
CALLS(tag_read, fixture_file, 0, 256, 0, 1, got)
CALLS(codec_parse, "deflate", &(uint32_t){0})

static cogpu_status call_crs_wkt(cogpu_error *error) {
    size_t needed = 0;
    if (cogpu_proj_version())
        return cogpu_crs_wkt(fixture_file, 0, fixture_context, NULL, 0, &needed, error);
    memset(error, 0, sizeof *error); /* this build has none */
    error->directory = -1, error->block = error->offset = -1;
    return COGPU_OK;
}

static const double transform[] = {0, 1, 0, 0, 0, -1};
CALLS(coordinate_to_pixel, transform, 1, 1, &(double){0}, &(double){0})
FILLS(bbox_to_window, cogpu_window, COGPU_WINDOW_INIT, transform, 10, 10, (double[]){1, -2, 2, -1})

/* ---- devices ---- */

static cogpu_status call_context_open(cogpu_error *error) {
    cogpu_context *context = NULL;
    cogpu_status status = cogpu_context_open(NULL, &context, error);
    cogpu_context_close(context);
    return status;
}

static cogpu_status call_device_allocate(cogpu_error *error) {
    void *memory = NULL;
    cogpu_status status = cogpu_device_allocate(EMULATED, 64, &memory, error);
    cogpu_device_free(EMULATED, memory);
    return status;
}

CALLS(device_upload, EMULATED, got, 64, device_memory)
CALLS(device_download, EMULATED, device_memory, 64, got)
CALLS(device_current, COGPU_DEVICE_EMULATOR, &(uint32_t){0})
CALLS(pointer_device, fixture_context, got, &(cogpu_device_kind){0}, &(uint32_t){0})
CALLS(stream_wait, EMULATED, NULL, NULL)

/* ---- reading ---- */

/* A block that cannot be read is filled, and counted. */
static cogpu_status call_read(cogpu_error *error) {
    const cogpu_request request = {.struct_size = sizeof request, .fill_bad_blocks = 1};
    const cogpu_raster raster = fixture_raster(got);
    cogpu_result result = COGPU_RESULT_INIT;
    cogpu_file *file = NULL;
    CHECK(cogpu_open_memory(fixture_bytes.data, fixture_bytes.bytes - 30, NULL, &file, NULL) ==
          COGPU_OK);
    cogpu_status status = cogpu_read(file, &request, &raster, &result, error);
    CHECK(result.bad_blocks == 1 && result.first_bad.status != COGPU_OK);
    cogpu_close(file);
    return status;
}

static cogpu_status call_read_async(cogpu_error *error) {
    const cogpu_raster raster = fixture_raster(got);
    cogpu_pending *pending = NULL;
    cogpu_status status = cogpu_read_async(fixture_file, NULL, &raster, &pending, error);
    CHECK(cogpu_wait(pending, NULL, NULL) == COGPU_OK);
    return status;
}

static cogpu_status call_wait(cogpu_error *error) {
    const cogpu_raster raster = fixture_raster(got);
    cogpu_pending *pending = NULL;
    CHECK(cogpu_read_async(fixture_file, NULL, &raster, &pending, NULL) == COGPU_OK);
    return cogpu_wait(pending, NULL, error);
}

static cogpu_status call_read_many(cogpu_error *error) {
    const cogpu_raster raster = fixture_raster(got);
    cogpu_read_item item = {.struct_size = sizeof item, .file = fixture_file, .raster = &raster};
    return cogpu_read_many(&item, 1, fixture_context, error);
}

CALLS(check, fixture_gcp_file, NULL, NULL, NULL, &(cogpu_checked)COGPU_CHECKED_INIT)

/* ---- writing ---- */

enum writer_step { OPEN, ROWS, CLOSE };

/* A file is written; the error is that of one step. */
static cogpu_status write_by_steps(enum writer_step step, cogpu_error *error) {
    const cogpu_profile profile = fixture_profile();
    const cogpu_raster raster = fixture_raster(fixture_pixels);
    cogpu_writer *writer = NULL;
    CHECK(cogpu_writer_open(OPEN_SINK, &profile, &writer, step == OPEN ? error : NULL) == COGPU_OK);
    CHECK(cogpu_writer_write_rows(writer, &raster, NULL, step == ROWS ? error : NULL) == COGPU_OK);
    cogpu_status status = cogpu_writer_close(writer, NULL, step == CLOSE ? error : NULL);
    cogpu_memory_free(&bytes);
    return status;
}

static cogpu_status call_writer_open(cogpu_error *error) {
    return write_by_steps(OPEN, error);
}

static cogpu_status call_writer_write_rows(cogpu_error *error) {
    return write_by_steps(ROWS, error);
}

static cogpu_status call_writer_close(cogpu_error *error) {
    return write_by_steps(CLOSE, error);
}

static cogpu_status call_write(cogpu_error *error) {
    const cogpu_profile profile = fixture_profile();
    const cogpu_raster raster = fixture_raster(fixture_pixels);
    cogpu_status status = cogpu_write(OPEN_SINK, &profile, &raster, NULL, NULL, error);
    cogpu_memory_free(&bytes);
    return status;
}

static cogpu_status output_by_steps(enum writer_step step, cogpu_error *error) {
    cogpu_output *output = NULL;
    CHECK(cogpu_output_open(OPEN_SINK, &output, step == OPEN ? error : NULL) == COGPU_OK);
    CHECK(cogpu_output_write(output, 0, "text", 4, step == ROWS ? error : NULL) == COGPU_OK);
    cogpu_status status = cogpu_output_commit(output, step == CLOSE ? error : NULL);
    cogpu_memory_free(&bytes);
    return status;
}

static cogpu_status call_output_open(cogpu_error *error) {
    return output_by_steps(OPEN, error);
}

static cogpu_status call_output_write(cogpu_error *error) {
    return output_by_steps(ROWS, error);
}

static cogpu_status call_output_commit(cogpu_error *error) {
    return output_by_steps(CLOSE, error);
}

static const cogpu_resample halving = {.struct_size = sizeof(cogpu_resample),
                                       .type = COGPU_TYPE_U8,
                                       .bands = 1,
                                       .from_width = FIXTURE_WIDTH,
                                       .from_height = FIXTURE_HEIGHT,
                                       .width = FIXTURE_WIDTH / 2,
                                       .height = FIXTURE_HEIGHT / 2};
CALLS(resample_source_rows, &halving, 0, 1, &(uint32_t){0}, &(uint32_t){0})

static cogpu_raster half_raster(void) {
    cogpu_raster raster = fixture_raster(got);
    raster.width = FIXTURE_WIDTH / 2, raster.height = FIXTURE_HEIGHT / 2;
    return raster;
}

static cogpu_status call_resample_rows(cogpu_error *error) {
    const cogpu_raster from = fixture_raster(fixture_pixels), to = half_raster();
    return cogpu_resample_rows(&halving, 0, &from, NULL, 0, &to, NULL, error);
}

/* ---- mosaics ---- */

static cogpu_status call_open_mosaic(cogpu_error *error) {
    const cogpu_mosaic_source source = {.struct_size = sizeof source, .file = fixture_file};
    cogpu_file *mosaic = NULL;
    cogpu_status status = cogpu_open_mosaic(&source, 1, NULL, &mosaic, error);
    cogpu_close(mosaic);
    return status;
}

static cogpu_status call_source_info(cogpu_error *error) {
    const cogpu_mosaic_source source = {.struct_size = sizeof source, .file = fixture_file};
    cogpu_source_description found = COGPU_SOURCE_DESCRIPTION_INIT;
    cogpu_file *mosaic = NULL;
    CHECK(cogpu_open_mosaic(&source, 1, NULL, &mosaic, NULL) == COGPU_OK);
    cogpu_status status = cogpu_source_info(mosaic, 0, &found, error);
    cogpu_close(mosaic);
    return status;
}

static cogpu_status call_write_vrt(cogpu_error *error) {
    char path[] = "cogpu-test-XXXXXX";
    const cogpu_mosaic_source source = {.struct_size = sizeof source, .path = path};
    cogpu_file *mosaic = NULL;
    int handle = mkstemp(path);
    CHECK(handle >= 0 &&
          write(handle, fixture_bytes.data, fixture_bytes.bytes) == (ssize_t)fixture_bytes.bytes);
    close(handle);
    CHECK(cogpu_open_mosaic(&source, 1, NULL, &mosaic, NULL) == COGPU_OK);
    cogpu_status status = cogpu_write_vrt(mosaic, OPEN_SINK, error);
    cogpu_memory_free(&bytes);
    cogpu_close(mosaic);
    remove(path);
    return status;
}

/* ---- DLPack ---- */

/* The deleter is the last field of one, and behind version and manager of the other. */
struct plain_tensor {
    char tensor[48];
    void *manager;
    void (*deleter)(void *self);
};
struct versioned_tensor {
    uint32_t major, minor;
    void *manager;
    void (*deleter)(void *self);
};

static cogpu_status call_dlpack(cogpu_error *error) {
    const cogpu_raster raster = fixture_raster(got);
    struct DLManagedTensor *tensor = NULL;
    cogpu_status status = cogpu_dlpack(&raster, NULL, NULL, &tensor, error);
    ((struct plain_tensor *)(void *)tensor)->deleter(tensor);
    return status;
}

static cogpu_status call_dlpack_versioned(cogpu_error *error) {
    const cogpu_raster raster = fixture_raster(got);
    struct DLManagedTensorVersioned *tensor = NULL;
    cogpu_status status = cogpu_dlpack_versioned(&raster, NULL, NULL, &tensor, error);
    ((struct versioned_tensor *)(void *)tensor)->deleter(tensor);
    return status;
}

/* ---- names ---- */

PARSES(status, "not_found")
PARSES(type, "uint8")
PARSES(sidecars, "all")
PARSES(layout, "tiles")
PARSES(interleave, "band")
PARSES(mask_source, "alpha")
PARSES(geokey_kind, "text")
PARSES(device_kind, "emu")
PARSES(content, "mask")
PARSES(resampling, "cubic")
PARSES(composite, "mean")
PARSES(vrt_sources, "below")
PARSES(overviews, "auto")
PARSES(bigtiff, "yes")
PARSES(photometric, "rgb")
PARSES(severity, "note")
PARSES(verdict, "valid")

/* ---- files of several machines ---- */

static cogpu_status encode(cogpu_error *error, cogpu_memory *encoded) {
    const cogpu_profile profile = fixture_profile();
    cogpu_raster raster = fixture_raster(fixture_pixels);
    raster.width = raster.height = FIXTURE_BLOCK;
    return cogpu_encode_block(&profile, 0, COGPU_CONTENT_PIXELS, 0, &raster, encoded, error);
}

static cogpu_status call_encode_block(cogpu_error *error) {
    cogpu_memory encoded = COGPU_MEMORY_INIT;
    cogpu_status status = encode(error, &encoded);
    cogpu_memory_free(&encoded);
    return status;
}

static cogpu_status call_writer_write_block(cogpu_error *error) {
    const cogpu_profile profile = fixture_profile();
    cogpu_memory encoded = COGPU_MEMORY_INIT;
    cogpu_writer *writer = NULL;
    CHECK(encode(NULL, &encoded) == COGPU_OK);
    CHECK(cogpu_writer_open(OPEN_SINK, &profile, &writer, NULL) == COGPU_OK);
    cogpu_status status = cogpu_writer_write_block(writer, 0, COGPU_CONTENT_PIXELS, 0, encoded.data,
                                                   encoded.bytes, error);
    cogpu_writer_abort(writer);
    cogpu_memory_free(&encoded);
    return status;
}

static cogpu_profile overview_profile(void) {
    cogpu_profile profile = fixture_profile();
    profile.overviews = COGPU_OVERVIEWS_AUTO;
    return profile;
}

static cogpu_status call_profile_level_layout(cogpu_error *error) {
    const cogpu_profile profile = overview_profile();
    cogpu_level_layout layout = COGPU_LEVEL_LAYOUT_INIT;
    return cogpu_profile_level_layout(&profile, 1, &layout, error);
}

static const cogpu_window half = {sizeof half, 0, 0, FIXTURE_WIDTH / 2, FIXTURE_HEIGHT / 2};

static cogpu_status call_overview_source_window(cogpu_error *error) {
    const cogpu_profile profile = overview_profile();
    cogpu_window source = COGPU_WINDOW_INIT;
    return cogpu_overview_source_window(&profile, 1, &half, &source, error);
}

static cogpu_status call_overview_compute(cogpu_error *error) {
    const cogpu_profile profile = overview_profile();
    const cogpu_raster from = fixture_raster(fixture_pixels), to = half_raster();
    return cogpu_overview_compute(&profile, 1, &half, &from, NULL, &to, NULL, error);
}

static const cogpu_s3_part part = {sizeof part, 1, "\"etag\""};
CALLS(upload_plan, 1 << 20, &(uint64_t){0}, &(uint32_t){0})
CALLS(upload_begin, ADDRESS, fixture_context, (char[COGPU_S3_UPLOAD_BYTES]){0})
FILLS(upload_send, cogpu_s3_part, COGPU_S3_PART_INIT, ADDRESS, "id", fixture_context, 1, got, 1)
CALLS(upload_complete, ADDRESS, "id", fixture_context, &part, 1, 1)

/* ---- the list ---- */

static const struct {
    const char *name;
    cogpu_status (*call)(cogpu_error *error);
} calls[] = {
#define CALL(name)                                                                                 \
    { #name, call_##name }
    CALL(open),
    CALL(open_memory),
    CALL(open_source),
    CALL(image_info),
    CALL(level_info),
    CALL(band_info),
    CALL(gcp_info),
    CALL(metadata_info),
    CALL(geokey_info),
    CALL(crs_info),
    CALL(crs_wkt),
    CALL(directory_info),
    CALL(tag_info),
    CALL(tag_read),
    CALL(coordinate_to_pixel),
    CALL(bbox_to_window),
    CALL(context_open),
    CALL(device_allocate),
    CALL(device_download),
    CALL(device_upload),
    CALL(device_current),
    CALL(pointer_device),
    CALL(stream_wait),
    CALL(device_info),
    CALL(read),
    CALL(read_async),
    CALL(wait),
    CALL(read_many),
    CALL(check),
    CALL(writer_open),
    CALL(writer_write_rows),
    CALL(writer_close),
    CALL(write),
    CALL(output_open),
    CALL(output_write),
    CALL(output_commit),
    CALL(resample_source_rows),
    CALL(resample_rows),
    CALL(dlpack),
    CALL(dlpack_versioned),
    CALL(codec_info),
    CALL(codec_parse),
    CALL(status_parse),
    CALL(type_parse),
    CALL(sidecars_parse),
    CALL(layout_parse),
    CALL(interleave_parse),
    CALL(mask_source_parse),
    CALL(geokey_kind_parse),
    CALL(device_kind_parse),
    CALL(content_parse),
    CALL(resampling_parse),
    CALL(overviews_parse),
    CALL(bigtiff_parse),
    CALL(photometric_parse),
    CALL(severity_parse),
    CALL(verdict_parse),
    CALL(composite_parse),
    CALL(vrt_sources_parse),
    CALL(open_mosaic),
    CALL(source_info),
    CALL(write_vrt),
    CALL(encode_block),
    CALL(writer_write_block),
    CALL(profile_level_layout),
    CALL(overview_source_window),
    CALL(overview_compute),
    CALL(upload_plan),
    CALL(upload_begin),
    CALL(upload_send),
    CALL(upload_complete),
};

static void test_errors_of_successful_calls(void) {
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        cogpu_error error;
        memset(&error, 0x55, sizeof error);
        cogpu_status status = calls[i].call(&error);
        bool is_clear = error.status == COGPU_OK && !error.message[0] && error.directory == -1 &&
                        error.block == -1 && error.offset == -1;
        CHECK(status == COGPU_OK && is_clear);
        if (status != COGPU_OK || !is_clear)
            printf("... by cogpu_%s: %.300s\n", calls[i].name, error.message);
    }
}

TESTS(errors_cleared) {
    if (!fixture_open() || cogpu_device_allocate(EMULATED, 64, &device_memory, NULL) != COGPU_OK)
        return 1;
    RUN(test_errors_of_successful_calls);
    cogpu_device_free(EMULATED, device_memory);
    fixture_close();
    return FINISH();
}
