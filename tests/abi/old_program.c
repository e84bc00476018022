/*
 * A program of another version: tests/python/test_abi.py compiles it with the header of a baseline,
 * with that of today and with one whose structs have more fields, and runs it with the library of
 * today. Its output is the same each time. It writes a file, opens, describes, reads and checks it.
 *
 *     old_program FOLDER
 */
#include "cogpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 300, HEIGHT = 200, GCPS = 3 };

static cogpu_error error;
static uint16_t pixels[HEIGHT * WIDTH];
static char path[4096];

static void need(cogpu_status status, const char *call) {
    if (status == COGPU_OK)
        return;
    printf("%s: %s: %s\n", call, cogpu_status_name(status), error.message);
    exit(1);
}
#define NEED(call) need(call, #call)

static cogpu_raster raster_of(void *data, cogpu_type type, uint32_t width, uint32_t height) {
    cogpu_raster raster = COGPU_RASTER_INIT;
    raster.data = data;
    raster.type = type;
    raster.bands = 1;
    raster.width = width;
    raster.height = height;
    return raster;
}

static cogpu_profile plain_profile(void) {
    cogpu_profile profile = COGPU_PROFILE_INIT;
    profile.width = WIDTH;
    profile.height = HEIGHT;
    profile.bands = 1;
    profile.type = COGPU_TYPE_U16;
    profile.codec = "deflate";
    profile.block_width = profile.block_height = 64;
    return profile;
}

static void write_file(void) {
    cogpu_metadata_item items[2] = {COGPU_METADATA_ITEM_INIT, COGPU_METADATA_ITEM_INIT};
    cogpu_profile profile = plain_profile();
    cogpu_sink sink = COGPU_SINK_INIT;
    cogpu_written written = COGPU_WRITTEN_INIT;
    cogpu_raster raster = raster_of(pixels, COGPU_TYPE_U16, WIDTH, HEIGHT);
    const double transform[6] = {400000, 10, 0, 5000000, 0, -10};
    for (int i = 0; i < 2; i++) {
        items[i].domain = items[i].role = "";
        items[i].name = i ? "SECOND" : "FIRST";
        items[i].value = i ? "two" : "one";
    }
    items[1].role = "scale";
    items[1].name = "SCALE";
    items[1].value = "0.5";
    items[1].band = 1;
    profile.cog = 1;
    profile.nodata = "0";
    profile.crs = "EPSG:32633";
    profile.has_transform = 1;
    memcpy(profile.transform, transform, sizeof transform);
    profile.metadata = items;
    profile.metadata_count = 2;
    sink.path = path;
    NEED(cogpu_write(&sink, &profile, &raster, NULL, &written, &error));
    printf("written: %u levels, %llu blocks, bigtiff %d\n", written.levels,
           (unsigned long long)written.blocks, written.bigtiff);
}

static void describe_file(const cogpu_file *file) {
    cogpu_image image = COGPU_IMAGE_INIT;
    cogpu_level level = COGPU_LEVEL_INIT;
    cogpu_band band = COGPU_BAND_INIT;
    cogpu_metadata_item item = COGPU_METADATA_ITEM_INIT;
    cogpu_crs crs = COGPU_CRS_INIT;
    cogpu_geokey key = COGPU_GEOKEY_INIT;
    cogpu_directory directory = COGPU_DIRECTORY_INIT;
    cogpu_tag tag = COGPU_TAG_INIT;
    uint32_t tag_value = 0;
    NEED(cogpu_image_info(file, 0, &image, &error));
    printf("image: %u x %u, %u bands of %s, %u levels, %s, %s, ghost %u, origin %g %g, %u items\n",
           image.width, image.height, image.bands, cogpu_type_name(image.type), image.levels,
           image.codec, cogpu_layout_name(image.layout), image.ghost, image.transform[0],
           image.transform[3], image.metadata_count);
    NEED(cogpu_level_info(file, 0, 1, &level, &error));
    printf("level 1: %u x %u, pixels of %g\n", level.width, level.height, level.transform[1]);
    NEED(cogpu_band_info(file, 0, 1, &band, &error));
    printf("band 1: scale %g, nodata %s, u64 %llu\n", band.scale, band.nodata,
           (unsigned long long)band.nodata_u64);
    NEED(cogpu_metadata_info(file, 0, 0, &item, &error));
    printf("item: %s=%s of band %d\n", item.name, item.value, item.band);
    NEED(cogpu_crs_info(file, 0, &crs, &error));
    printf("crs: %s:%u, external %d\n", crs.authority, crs.code, crs.external);
    NEED(cogpu_geokey_info(file, 0, 0, &key, &error));
    printf("key: %u %s %u\n", key.id, key.name, key.shorts[0]);
    NEED(cogpu_directory_info(file, 0, &directory, &error));
    NEED(cogpu_tag_info(file, 0, 0, &tag, &error));
    NEED(cogpu_tag_read(file, 0, tag.id, 0, 1, &tag_value, &error));
    printf("directory: 1 of %u, %s\n", directory.directory_count, tag.name);
}

static void read_file(const cogpu_file *file) {
    static uint16_t whole[HEIGHT * WIDTH];
    static float some[2][20 * 30];
    cogpu_raster raster = raster_of(whole, COGPU_TYPE_U16, WIDTH, HEIGHT);
    cogpu_raster rasters[2] = {raster_of(some[0], COGPU_TYPE_F32, 30, 20),
                               raster_of(some[1], COGPU_TYPE_F32, 30, 20)};
    cogpu_request request = COGPU_REQUEST_INIT;
    cogpu_result result = COGPU_RESULT_INIT, results[2] = {COGPU_RESULT_INIT, COGPU_RESULT_INIT};
    cogpu_read_item items[2] = {COGPU_READ_ITEM_INIT, COGPU_READ_ITEM_INIT};
    cogpu_context_options options = COGPU_CONTEXT_OPTIONS_INIT;
    cogpu_network network = COGPU_NETWORK_INIT;
    cogpu_context *context = NULL;
    cogpu_pending *pending = NULL;
    NEED(cogpu_read(file, NULL, &raster, &result, &error));
    printf("read: %s, %llu blocks\n", memcmp(whole, pixels, sizeof whole) ? "other" : "the same",
           (unsigned long long)result.blocks);
    memset(whole, 0, sizeof whole);
    NEED(cogpu_read_async(file, NULL, &raster, &pending, &error));
    NEED(cogpu_wait(pending, &result, &error));
    printf("read: %s, %llu bad\n", memcmp(whole, pixels, sizeof whole) ? "other" : "the same",
           (unsigned long long)result.bad_blocks);
    options.threads = 2;
    options.network = &network;
    NEED(cogpu_context_open(&options, &context, &error));
    request.x = 100;
    request.y = 50;
    request.width = 30;
    request.height = 20;
    request.unscale = request.masked = 1;
    for (int i = 0; i < 2; i++) {
        items[i].file = file;
        items[i].request = &request;
        items[i].raster = &rasters[i];
        items[i].result = &results[i];
        items[i].status = COGPU_CORRUPT;
    }
    NEED(cogpu_read_many(items, 2, context, &error));
    printf("windows: %g %g, %d %d, %llu %llu blocks\n", some[0][0], some[1][31],
           (int)items[0].status, (int)items[1].status, (unsigned long long)results[0].blocks,
           (unsigned long long)results[1].blocks);
    cogpu_context_close(context);
}

static void note_finding(void *user, const cogpu_finding *finding) {
    (void)finding;
    ++*(int *)user;
}

static void check_file(const cogpu_file *file) {
    cogpu_check_options options = COGPU_CHECK_OPTIONS_INIT;
    cogpu_checked checked = COGPU_CHECKED_INIT;
    int findings = 0;
    options.strict = 1;
    NEED(cogpu_check(file, &options, note_finding, &findings, &checked, &error));
    printf("check: %s, gdal %s, %llu errors\n", cogpu_verdict_name(checked.verdict),
           cogpu_verdict_name(checked.gdal), (unsigned long long)checked.errors);
}

/* An array of structs through the writer, and back. */
static void write_gcps(void) {
    cogpu_gcp gcps[GCPS], found = COGPU_GCP_INIT;
    cogpu_profile profile = plain_profile();
    cogpu_memory memory = COGPU_MEMORY_INIT;
    cogpu_sink sink = COGPU_SINK_INIT;
    cogpu_raster raster = raster_of(pixels, COGPU_TYPE_U16, WIDTH, HEIGHT);
    cogpu_writer *writer = NULL;
    cogpu_file *file = NULL;
    for (int i = 0; i < GCPS; i++) {
        gcps[i] = found;
        gcps[i].column = i;
        gcps[i].x = 10 + i;
        gcps[i].y = 50 - i * i;
    }
    profile.gcps = gcps;
    profile.gcp_count = GCPS;
    sink.memory = &memory;
    NEED(cogpu_writer_open(&sink, &profile, &writer, &error));
    NEED(cogpu_writer_write_rows(writer, &raster, NULL, &error));
    NEED(cogpu_writer_close(writer, NULL, &error));
    NEED(cogpu_open_memory(memory.data, memory.bytes, NULL, &file, &error));
    NEED(cogpu_gcp_info(file, 0, GCPS - 1, &found, &error));
    printf("gcp: %g %g %g\n", found.column, found.x, found.y);
    cogpu_close(file);
    cogpu_memory_free(&memory);
}

int main(int count, char **arguments) {
    cogpu_open_options options = COGPU_OPEN_OPTIONS_INIT;
    cogpu_limits limits = COGPU_LIMITS_INIT;
    cogpu_window window = COGPU_WINDOW_INIT;
    cogpu_codec codec = COGPU_CODEC_INIT;
    cogpu_device device = COGPU_DEVICE_INIT;
    cogpu_file *file = NULL;
    const double transform[6] = {0, 1, 0, 0, 0, -1}, bbox[4] = {3, -9, 7, -2};
    if (count != 2)
        return 2;
    for (int i = 0; i < HEIGHT * WIDTH; i++)
        pixels[i] = (uint16_t)(1 + i * 7 % 60000);
    snprintf(path, sizeof path, "%s/file.tif", arguments[1]);
    write_file();
    limits.bands = 2;
    options.limits = &limits;
    NEED(cogpu_open(path, &options, &file, &error));
    describe_file(file);
    read_file(file);
    check_file(file);
    cogpu_close(file);
    write_gcps();
    NEED(cogpu_bbox_to_window(transform, 100, 100, bbox, &window, &error));
    NEED(cogpu_codec_info(0, &codec, &error));
    NEED(cogpu_device_info(0, &device, &error));
    printf("others: %u,%u,%u,%u %s %s\n", window.x, window.y, window.width, window.height,
           codec.name, device.name);
    return 0;
}
