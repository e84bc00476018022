/*
 * Everything that an open file tells of itself, for any bytes: images, levels, bands, items, keys,
 * directories and tags, and what keeps it from being a COG. Strings are read to their end, so that
 * one that is not closed is seen.
 */
#include "cogpu.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { LOOKS_MAX = 256 }; /* at the things of one kind */

static size_t total; /* of all text, so that no compiler leaves the reading out */

static void look(const char *text) {
    if (text)
        total += strlen(text);
}

static void require(int holds) {
    if (!holds)
        abort();
}

static void look_at_levels(const cogpu_file *file, uint32_t image, const cogpu_image *info) {
    cogpu_level level = COGPU_LEVEL_INIT;
    uint64_t before = UINT64_MAX;
    for (uint32_t i = 0; i < info->levels; i++) {
        require(cogpu_level_info(file, image, i, &level, NULL) == COGPU_OK);
        look(level.codec);
        uint64_t pixels = (uint64_t)level.width * level.height;
        require(level.width && level.height && level.block_width && level.block_height);
        require(pixels <= before && level.blocks > 0);
        before = pixels;
    }
    require(cogpu_level_info(file, image, info->levels, &level, NULL) == COGPU_NOT_FOUND);
}

static void look_at_bands(const cogpu_file *file, uint32_t image, const cogpu_image *info) {
    cogpu_band band = COGPU_BAND_INIT;
    for (uint32_t i = 1; i <= info->bands && i <= LOOKS_MAX; i++) {
        require(cogpu_band_info(file, image, i, &band, NULL) == COGPU_OK);
        look(band.description);
        look(band.unit);
        look(band.interpretation);
        look(band.nodata);
    }
}

static void look_at_georeference(const cogpu_file *file, uint32_t image, const cogpu_image *info) {
    cogpu_metadata_item item = COGPU_METADATA_ITEM_INIT;
    cogpu_geokey key = COGPU_GEOKEY_INIT;
    cogpu_crs crs = COGPU_CRS_INIT;
    cogpu_gcp gcp = COGPU_GCP_INIT;
    for (uint32_t i = 0; i < info->metadata_count && i < LOOKS_MAX; i++) {
        require(cogpu_metadata_info(file, image, i, &item, NULL) == COGPU_OK);
        look(item.domain), look(item.name), look(item.value), look(item.role);
    }
    for (uint32_t i = 0; i < info->geokey_count && i < LOOKS_MAX; i++) {
        require(cogpu_geokey_info(file, image, i, &key, NULL) == COGPU_OK);
        look(key.name), look(key.text);
        for (uint32_t k = 0; k < key.count; k++)
            total += key.shorts ? key.shorts[k] : key.doubles && key.doubles[k] > 0;
    }
    if (cogpu_crs_info(file, image, &crs, NULL) == COGPU_OK)
        look(crs.model), look(crs.authority), look(crs.name);
    for (uint32_t i = 0; i < info->gcp_count; i++) {
        require(cogpu_gcp_info(file, image, i, &gcp, NULL) == COGPU_OK);
        total += gcp.x > 0;
    }
    for (uint32_t i = 0; info->rpc && i < 92; i++)
        total += info->rpc[i] > 0;
    for (uint32_t i = 0; i < 3 * info->palette_entries; i++)
        total += info->palette[i];
}

static void look_at_tags(const cogpu_file *file) {
    cogpu_directory directory = COGPU_DIRECTORY_INIT;
    cogpu_tag tag = COGPU_TAG_INIT;
    uint8_t values[64 * 8];
    for (uint32_t i = 0; cogpu_directory_info(file, i, &directory, NULL) == COGPU_OK; i++)
        for (uint32_t k = 0; cogpu_tag_info(file, i, k, &tag, NULL) == COGPU_OK; k++) {
            uint64_t some = tag.count < 64 ? tag.count : 64;
            look(tag.name);
            if (cogpu_tag_read(file, i, tag.id, tag.count - some, some, values, NULL) == COGPU_OK)
                total += values[0];
            require(cogpu_tag_read(file, i, tag.id, tag.count, 1, values, NULL) != COGPU_OK);
        }
}

static void look_at_finding(void *user, const cogpu_finding *finding) {
    uint64_t *told = user;
    told[finding->severity] += 1 + finding->more;
    require(finding->message[0] && finding->rule && finding->advice && finding->directory >= -1);
}

static void check(const cogpu_file *file, int images) {
    cogpu_verdict plain = COGPU_VERDICT_VALID;
    for (int i = 0; i < 4; i++) {
        const cogpu_check_options options = {
            .struct_size = sizeof(cogpu_check_options), .strict = i & 1, .skip_blocks = i >> 1};
        uint64_t told[COGPU_SEVERITY_ERROR + 1] = {0};
        cogpu_checked checked = COGPU_CHECKED_INIT;
        cogpu_error error;
        cogpu_status status = cogpu_check(file, &options, look_at_finding, told, &checked, &error);
        require(status == error.status);
        if (status != COGPU_OK) {
            require(status == (images ? COGPU_LIMIT_EXCEEDED : COGPU_NOT_FOUND) &&
                    error.message[0]);
            return;
        }
        require(told[COGPU_SEVERITY_ERROR] == checked.errors &&
                told[COGPU_SEVERITY_WARNING] == checked.warnings &&
                told[COGPU_SEVERITY_NOTE] == checked.notes);
        require((checked.verdict == COGPU_VERDICT_INVALID) == (checked.errors > 0));
        require(options.strict ? checked.verdict <= plain : 1);
        require(checked.blocks == 0 || !options.skip_blocks);
        plain = checked.verdict;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    const cogpu_limits limits = {
        .struct_size = sizeof(cogpu_limits), .directories = 64, .working_memory_bytes = 32 << 20};
    const cogpu_open_options options = {.struct_size = sizeof(cogpu_open_options),
                                        .limits = &limits};
    cogpu_file *file = NULL;
    cogpu_error error;
    if (cogpu_open_memory(data, bytes, &options, &file, &error) != COGPU_OK) {
        require(!file && error.status != COGPU_OK && error.message[0]);
        return 0;
    }
    cogpu_image info = COGPU_IMAGE_INIT;
    for (uint32_t i = 0; cogpu_image_info(file, i, &info, &error) == COGPU_OK; i++) {
        look(info.codec), look(info.description), look(info.warning);
        look_at_levels(file, i, &info);
        look_at_bands(file, i, &info);
        look_at_georeference(file, i, &info);
    }
    look_at_tags(file);
    check(file, cogpu_image_info(file, 0, &info, NULL) == COGPU_OK);
    cogpu_close(file);
    return 0;
}
