/* Public functions that describe an open file: images, levels, bands, tags, CRS. */
#include "api/sized.h"
#include "context/context.h"
#include "context/file.h"

#include <stdio.h>
#include <string.h>

#define TEXT(value)    TEXT_OF(value)
#define TEXT_OF(value) #value

const char *cogpu_version(void) {
    return TEXT(COGPU_VERSION_MAJOR) "." TEXT(COGPU_VERSION_MINOR) "." TEXT(COGPU_VERSION_PATCH);
}

uint32_t cogpu_version_number(void) {
    return COGPU_VERSION_NUMBER;
}

uint32_t cogpu_image_count(const cogpu_file *file) {
    return file ? cogpu_file_pyramid_count(file) : 0;
}

/* The start of all functions below: clears the error, checks the struct to be filled, finds the
 * image. */
#define BEGIN_INFO(info, type)                                                                     \
    const cogpu_pyramid *pyramid = NULL;                                                           \
    cogpu_error_clear(error);                                                                      \
    TRY(check_info(info, #type, error));                                                           \
    TRY(cogpu_file_pyramid(file, image, &pyramid, error))

static cogpu_status check_info(const void *info, const char *type, cogpu_error *error) {
    if (!info)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "the pointer for a %s is NULL", type);
    return cogpu_struct_check(info, type, error);
}

cogpu_status cogpu_image_info(const cogpu_file *file, uint32_t image, cogpu_image *info,
                              cogpu_error *error) {
    BEGIN_INFO(info, cogpu_image);
    GIVE_STRUCT(info, &pyramid->info);
    return COGPU_OK;
}

/* A level covers the same area with fewer pixels. */
static void scale_transform(const cogpu_image *image, const cogpu_storage *level, double *scaled) {
    double across = image->width / (double)level->width;
    double down = image->height / (double)level->height;
    const double *full = image->transform;
    double transform[6] = {full[0], full[1] * across, full[2] * down,
                           full[3], full[4] * across, full[5] * down};
    memcpy(scaled, transform, sizeof transform);
}

cogpu_status cogpu_level_info(const cogpu_file *file, uint32_t image, uint32_t level,
                              cogpu_level *info, cogpu_error *error) {
    BEGIN_INFO(info, cogpu_level);
    if (level >= pyramid->info.levels)
        return cogpu_fail_absent(error, "level", level, "image", pyramid->info.levels, 0);
    const cogpu_pyramid_level *from = &pyramid->levels[level];
    const cogpu_storage *storage = &from->storage;
    cogpu_level found = {.directory = storage->directory,
                         .external = from->external,
                         .width = storage->width,
                         .height = storage->height,
                         .layout = storage->layout,
                         .block_width = storage->block_width,
                         .block_height = storage->block_height,
                         .blocks = storage->blocks,
                         .compression = storage->format.compression,
                         .codec = storage->codec ? storage->codec->name : "unknown",
                         .predictor = storage->predictor,
                         .has_mask = from->has_mask,
                         .mask_external = from->mask_external,
                         .mask_directory = from->has_mask ? from->mask.directory : 0,
                         .has_transform = pyramid->info.has_transform};
    scale_transform(&pyramid->info, storage, found.transform);
    GIVE_STRUCT(info, &found);
    return COGPU_OK;
}

cogpu_status cogpu_band_info(const cogpu_file *file, uint32_t image, uint32_t band,
                             cogpu_band *info, cogpu_error *error) {
    BEGIN_INFO(info, cogpu_band);
    if (band < 1 || band > pyramid->info.bands)
        return cogpu_fail_absent(error, "band", band, "image", pyramid->info.bands, 1);
    GIVE_STRUCT(info, &pyramid->bands[band - 1]);
    return COGPU_OK;
}

cogpu_status cogpu_metadata_info(const cogpu_file *file, uint32_t image, uint32_t index,
                                 cogpu_metadata_item *info, cogpu_error *error) {
    BEGIN_INFO(info, cogpu_metadata_item);
    if (index >= pyramid->metadata.item_count)
        return cogpu_fail_absent(error, "metadata item", index, "image",
                                 pyramid->metadata.item_count, 0);
    GIVE_STRUCT(info, &pyramid->metadata.items[index]);
    return COGPU_OK;
}

cogpu_status cogpu_geokey_info(const cogpu_file *file, uint32_t image, uint32_t index,
                               cogpu_geokey *info, cogpu_error *error) {
    BEGIN_INFO(info, cogpu_geokey);
    if (index >= pyramid->georef.key_count)
        return cogpu_fail_absent(error, "GeoKey", index, "image", pyramid->georef.key_count, 0);
    GIVE_STRUCT(info, &pyramid->georef.keys[index]);
    return COGPU_OK;
}

cogpu_status cogpu_gcp_info(const cogpu_file *file, uint32_t image, uint32_t index, cogpu_gcp *info,
                            cogpu_error *error) {
    BEGIN_INFO(info, cogpu_gcp);
    if (index >= pyramid->georef.gcp_count)
        return cogpu_fail_absent(error, "GCP", index, "image", pyramid->georef.gcp_count, 0);
    GIVE_STRUCT(info, &pyramid->georef.gcps[index]);
    return COGPU_OK;
}

static cogpu_status georef_with_crs(const cogpu_file *file, uint32_t image,
                                    const cogpu_georef **georef, cogpu_error *error) {
    const cogpu_pyramid *pyramid = NULL;
    TRY(cogpu_file_pyramid(file, image, &pyramid, error));
    if (!pyramid->georef.has_crs)
        return cogpu_fail(error, COGPU_NOT_FOUND, "the image has no coordinate reference system");
    *georef = &pyramid->georef;
    return COGPU_OK;
}

cogpu_status cogpu_crs_info(const cogpu_file *file, uint32_t image, cogpu_crs *info,
                            cogpu_error *error) {
    const cogpu_georef *georef = NULL;
    cogpu_error_clear(error);
    TRY(check_info(info, "cogpu_crs", error));
    TRY(georef_with_crs(file, image, &georef, error));
    GIVE_STRUCT(info, &georef->crs);
    return COGPU_OK;
}

cogpu_status cogpu_crs_wkt(const cogpu_file *file, uint32_t image, cogpu_context *context,
                           char *text, size_t capacity, size_t *needed, cogpu_error *error) {
    const cogpu_georef *georef = NULL;
    cogpu_error_clear(error);
    TRY(georef_with_crs(file, image, &georef, error));
    cogpu_crs_database *database = cogpu_context_take_crs_database(context);
    cogpu_status status = cogpu_crs_to_wkt(georef, &database, text, capacity, needed, error);
    cogpu_context_return_crs_database(context, database);
    return status;
}

static cogpu_status find_directory(const cogpu_file *file, uint32_t directory,
                                   const cogpu_ifd **ifd, cogpu_error *error) {
    if (!file)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "no file was given");
    const cogpu_tiff *tiff = cogpu_file_tiff(file);
    if (directory >= tiff->directory_count)
        return cogpu_fail_absent(error, "directory", directory, "file", tiff->directory_count, 0);
    *ifd = &tiff->directories[directory];
    return COGPU_OK;
}

cogpu_status cogpu_directory_info(const cogpu_file *file, uint32_t directory, cogpu_directory *info,
                                  cogpu_error *error) {
    const cogpu_ifd *ifd = NULL;
    cogpu_error_clear(error);
    TRY(check_info(info, "cogpu_directory", error));
    TRY(find_directory(file, directory, &ifd, error));
    const cogpu_directory found = {.directory_count = cogpu_file_tiff(file)->directory_count,
                                   .offset = ifd->offset,
                                   .tag_count = ifd->entry_count,
                                   .parent = ifd->parent,
                                   .subfile_type = ifd->subfile_type};
    GIVE_STRUCT(info, &found);
    return COGPU_OK;
}

cogpu_status cogpu_tag_info(const cogpu_file *file, uint32_t directory, uint32_t index,
                            cogpu_tag *info, cogpu_error *error) {
    const cogpu_ifd *ifd = NULL;
    cogpu_error_clear(error);
    TRY(check_info(info, "cogpu_tag", error));
    TRY(find_directory(file, directory, &ifd, error));
    if (index >= ifd->entry_count)
        return cogpu_fail_absent(error, "tag", index, "directory", ifd->entry_count, 0);
    const cogpu_entry *entry = &ifd->entries[index];
    const cogpu_tag found = {.id = entry->tag,
                             .name = cogpu_tag_name(entry->tag),
                             .type = entry->type,
                             .count = entry->count,
                             .value_offset = entry->value_offset,
                             .bytes = entry->bytes};
    GIVE_STRUCT(info, &found);
    return COGPU_OK;
}

cogpu_status cogpu_tag_read(const cogpu_file *file, uint32_t directory, uint32_t id, uint64_t first,
                            uint64_t count, void *to, cogpu_error *error) {
    const cogpu_ifd *ifd = NULL;
    cogpu_error_clear(error);
    TRY(find_directory(file, directory, &ifd, error));
    const cogpu_tiff *tiff = cogpu_file_tiff(file);
    const cogpu_entry *entry =
        id <= UINT16_MAX ? cogpu_tiff_find(tiff, directory, (uint16_t)id) : NULL;
    if (!entry)
        return cogpu_fail(error, COGPU_NOT_FOUND, "directory %u has no tag %u (%s)", directory, id,
                          cogpu_tag_name(id));
    if (first > entry->count || count > entry->count - first)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "tag %s has %llu elements; cannot read %llu from element %llu on",
                          cogpu_tag_name(id), (unsigned long long)entry->count,
                          (unsigned long long)count, (unsigned long long)first);
    return cogpu_tiff_raw(tiff, entry, first, count, to, error);
}
