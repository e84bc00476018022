/* Public functions of cogpu_distributed.h, except uploads: blocks and overviews made elsewhere. */
#include "write/writer.h"

#include "api/profile.h"
#include "api/sized.h"

#include <string.h>

/* ---- blocks -------------------------------------------------------------------------------- */

static cogpu_status encode_block(const cogpu_profile *given, uint32_t level, cogpu_content content,
                                 uint64_t block, const cogpu_raster *pixels, cogpu_memory *encoded,
                                 cogpu_error *error) {
    cogpu_taken_profile taken;
    cogpu_status status = cogpu_profile_take(given, &taken, error);
    if (status == COGPU_OK)
        status =
            cogpu_encode_external(&taken.profile, level, content, block, pixels, encoded, error);
    cogpu_profile_close(&taken);
    return status;
}

cogpu_status cogpu_encode_block(const cogpu_profile *profile, uint32_t level, cogpu_content content,
                                uint64_t block, const cogpu_raster *given, cogpu_memory *encoded,
                                cogpu_error *error) {
    cogpu_raster pixels;
    cogpu_memory made = COGPU_MEMORY_INIT;
    cogpu_error_clear(error);
    if (!profile || !given || !encoded)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "cogpu_encode_block needs a profile, pixels and a pointer for the bytes");
    TRY(TAKE_STRUCT(&pixels, given, cogpu_raster, error));
    TRY(cogpu_memory_check(encoded, error));
    cogpu_status status = encode_block(profile, level, content, block, &pixels, &made, error);
    GIVE_STRUCT(encoded, &made);
    return status;
}

cogpu_status cogpu_writer_write_block(cogpu_writer *writer, uint32_t level, cogpu_content content,
                                      uint64_t block, const void *encoded, size_t bytes,
                                      cogpu_error *error) {
    cogpu_error_clear(error);
    if (!writer)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "cogpu_writer_write_block needs a writer");
    return cogpu_writer_append_block(writer, level, content, block, encoded, bytes, error);
}

void cogpu_cog_add_leader_trailer(const void *encoded, size_t bytes, void *to) {
    uint8_t *payload = (uint8_t *)to + COGPU_LEADER_BYTES;
    if (bytes == 0)
        return;
    memcpy(payload, encoded, bytes);
    cogpu_add_leader_trailer(payload, bytes);
}

/* ---- levels -------------------------------------------------------------------------------- */

cogpu_status cogpu_profile_level_layout(const cogpu_profile *profile, uint32_t level,
                                        cogpu_level_layout *layout, cogpu_error *error) {
    cogpu_taken_profile taken;
    cogpu_level_layout found = COGPU_LEVEL_LAYOUT_INIT;
    cogpu_error_clear(error);
    if (!profile || !layout)
        return cogpu_fail(
            error, COGPU_INVALID_ARGUMENT,
            "cogpu_profile_level_layout needs a profile and a pointer for the layout");
    TRY(CHECK_STRUCT(layout, cogpu_level_layout, error));
    cogpu_status status = cogpu_profile_take(profile, &taken, error);
    if (status == COGPU_OK)
        status = cogpu_plan_level_layout(&taken.profile, level, &found, error);
    if (status == COGPU_OK)
        GIVE_STRUCT(layout, &found);
    cogpu_profile_close(&taken);
    return status;
}

cogpu_status cogpu_overview_source_window(const cogpu_profile *profile, uint32_t level,
                                          const cogpu_window *given, cogpu_window *source,
                                          cogpu_error *error) {
    cogpu_taken_profile taken;
    cogpu_window window, found = COGPU_WINDOW_INIT;
    cogpu_error_clear(error);
    if (!profile || !given || !source)
        return cogpu_fail(
            error, COGPU_INVALID_ARGUMENT,
            "cogpu_overview_source_window needs a profile, a window and a pointer for another");
    TRY(TAKE_STRUCT(&window, given, cogpu_window, error));
    TRY(CHECK_STRUCT(source, cogpu_window, error));
    cogpu_status status = cogpu_profile_take(profile, &taken, error);
    if (status == COGPU_OK)
        status = cogpu_plan_overview_source(&taken.profile, level, &window, &found, error);
    if (status == COGPU_OK)
        GIVE_STRUCT(source, &found);
    cogpu_profile_close(&taken);
    return status;
}

cogpu_status cogpu_overview_compute(const cogpu_profile *profile, uint32_t level,
                                    const cogpu_window *given, const cogpu_raster *pixels,
                                    const cogpu_raster *mask, const cogpu_raster *to,
                                    const cogpu_raster *to_mask, cogpu_error *error) {
    enum { PIXELS, MASK, TO, TO_MASK, RASTERS };
    const cogpu_raster *const rasters[RASTERS] = {pixels, mask, to, to_mask};
    cogpu_raster own[RASTERS];
    cogpu_taken_profile taken;
    cogpu_window window;
    cogpu_error_clear(error);
    if (!profile || !given || !pixels || !to)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "cogpu_overview_compute needs a profile, a window and rasters");
    TRY(TAKE_STRUCT(&window, given, cogpu_window, error));
    for (int i = 0; i < RASTERS; i++)
        TRY(TAKE_STRUCT(&own[i], rasters[i], cogpu_raster, error));
    cogpu_status status = cogpu_profile_take(profile, &taken, error);
    if (status == COGPU_OK)
        status = cogpu_downsample_overview(&taken.profile, level, &window, &own[PIXELS],
                                           mask ? &own[MASK] : NULL, &own[TO],
                                           to_mask ? &own[TO_MASK] : NULL, error);
    cogpu_profile_close(&taken);
    return status;
}
