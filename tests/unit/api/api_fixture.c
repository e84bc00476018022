/* See api_fixture.h. */
#include "unit/api/api_fixture.h"

#include "io/store/s3.h"
#include "io/store/store.h"
#include "support/test.h"

uint8_t fixture_pixels[FIXTURE_HEIGHT * FIXTURE_WIDTH];
cogpu_gcp fixture_gcps[FIXTURE_GCPS];
cogpu_memory fixture_bytes = COGPU_MEMORY_INIT;
cogpu_file *fixture_file, *fixture_gcp_file;
cogpu_context *fixture_context;

static cogpu_memory gcp_bytes = COGPU_MEMORY_INIT;

cogpu_raster fixture_raster(void *data) {
    return (cogpu_raster){.struct_size = sizeof(cogpu_raster),
                          .data = data,
                          .type = COGPU_TYPE_U8,
                          .bands = 1,
                          .width = FIXTURE_WIDTH,
                          .height = FIXTURE_HEIGHT};
}

cogpu_profile fixture_profile(void) {
    return (cogpu_profile){.struct_size = sizeof(cogpu_profile),
                           .width = FIXTURE_WIDTH,
                           .height = FIXTURE_HEIGHT,
                           .bands = 1,
                           .type = COGPU_TYPE_U8,
                           .codec = "none",
                           .block_width = FIXTURE_BLOCK,
                           .block_height = FIXTURE_BLOCK,
                           .threads = 1};
}

static bool write_and_open(const cogpu_profile *profile, cogpu_memory *bytes, cogpu_file **file) {
    const cogpu_sink sink = {.struct_size = sizeof(cogpu_sink), .memory = bytes};
    const cogpu_raster raster = fixture_raster(fixture_pixels);
    cogpu_error error;
    if (cogpu_write(&sink, profile, &raster, NULL, NULL, &error) == COGPU_OK &&
        cogpu_open_memory(bytes->data, bytes->bytes, NULL, file, &error) == COGPU_OK)
        return true;
    printf("%s\n", error.message);
    return false;
}

bool fixture_open(void) {
    static const cogpu_metadata_item item = {.struct_size = sizeof(cogpu_metadata_item),
                                             .domain = "",
                                             .name = "AREA",
                                             .value = "here",
                                             .role = "",
                                             .band = 1};
    cogpu_profile profile = fixture_profile(), with_gcps = fixture_profile();
    for (uint32_t i = 0; i < sizeof fixture_pixels; i++)
        fixture_pixels[i] = (uint8_t)(1 + i * 7 % 251);
    for (uint32_t i = 0; i < FIXTURE_GCPS; i++)
        fixture_gcps[i] = (cogpu_gcp){.struct_size = sizeof(cogpu_gcp),
                                      .column = i,
                                      .row = i * i,
                                      .x = 10 + i,
                                      .y = 50 - i * i,
                                      .z = i};
    profile.cog = 1;
    profile.has_transform = 1;
    memcpy(profile.transform, (double[]){4e5, 10, 0, 5e6, 0, -10}, sizeof profile.transform);
    profile.crs = "EPSG:32633";
    profile.nodata = "0";
    profile.metadata = &item;
    profile.metadata_count = 1;
    with_gcps.gcps = fixture_gcps;
    with_gcps.gcp_count = FIXTURE_GCPS;
    return cogpu_context_open(NULL, &fixture_context, NULL) == COGPU_OK &&
           write_and_open(&profile, &fixture_bytes, &fixture_file) &&
           write_and_open(&with_gcps, &gcp_bytes, &fixture_gcp_file);
}

void fixture_close(void) {
    cogpu_close(fixture_file);
    cogpu_close(fixture_gcp_file);
    cogpu_context_close(fixture_context);
    cogpu_memory_free(&fixture_bytes);
    cogpu_memory_free(&gcp_bytes);
}

/* ---- the store ---- */

uint32_t fixture_parts, fixture_aborts;

static cogpu_status begin_upload(cogpu_store *object, char upload[COGPU_S3_UPLOAD_BYTES],
                                 cogpu_error *error) {
    (void)object, (void)error;
    strcpy(upload, "id");
    return COGPU_OK;
}

static void start_part(cogpu_store *object, const char *upload, uint32_t number, const void *from,
                       size_t bytes, cogpu_store_sending *sending) {
    (void)object, (void)upload, (void)from, (void)bytes;
    sending->number = number;
}

static cogpu_status wait_part(cogpu_store *object, cogpu_store_sending *sending,
                              cogpu_store_part *part, cogpu_meter *meter, cogpu_error *error) {
    (void)object, (void)meter, (void)error;
    *part = (cogpu_store_part){.number = sending->number, .etag = "\"etag\""};
    return COGPU_OK;
}

/* Fails unless parts count from 1. */
static cogpu_status complete_upload(cogpu_store *object, const char *upload,
                                    const cogpu_store_part *parts, size_t count, uint64_t bytes,
                                    cogpu_error *error) {
    (void)object, (void)upload, (void)bytes;
    for (fixture_parts = 0; fixture_parts < count; fixture_parts++)
        if (parts[fixture_parts].number != fixture_parts + 1)
            return cogpu_fail(error, COGPU_IO_ERROR, "part %u is missing", fixture_parts + 1);
    return COGPU_OK;
}

static void abort_upload(cogpu_store *object, const char *upload) {
    (void)object, (void)upload;
    fixture_aborts++;
}

cogpu_status __wrap_cogpu_store_open_for_upload(const char *address, cogpu_http *http,
                                                cogpu_store **object, cogpu_error *error);
cogpu_status __wrap_cogpu_store_open_for_upload(const char *address, cogpu_http *http,
                                                cogpu_store **object, cogpu_error *error) {
    static const cogpu_store_uploads uploads = {.begin = begin_upload,
                                                .start_part = start_part,
                                                .wait_part = wait_part,
                                                .complete = complete_upload,
                                                .abort = abort_upload};
    static const cogpu_store_kind kind = {.scheme = "s3", .uploads = &uploads};
    static cogpu_store store = {.kind = &kind};
    (void)address, (void)http, (void)error;
    *object = &store;
    return COGPU_OK;
}

void __wrap_cogpu_store_close(cogpu_store *object);
void __wrap_cogpu_store_close(cogpu_store *object) {
    (void)object;
}
