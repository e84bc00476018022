/* Public functions that describe an open file: images, levels, bands, tags, CRS. */
#include "context/context.h"
#include "context/file.h"

#include <stdio.h>
#include <string.h>

#define TEXT(value)    TEXT_OF(value)
#define TEXT_OF(value) #value

const char *cogpu_version(void) {
    return TEXT(COGPU_VERSION_MAJOR) "." TEXT(COGPU_VERSION_MINOR) "." TEXT(COGPU_VERSION_PATCH);
}

cogpu_status cogpu_info(const cogpu_file *file, uint32_t image, cogpu_image *info,
                        cogpu_error *error) {
    const cogpu_pyramid *pyramid = NULL;
    TRY(cogpu_file_pyramid(file, image, &pyramid, error));
    *info = pyramid->info;
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
    const cogpu_pyramid *pyramid = NULL;
    TRY(cogpu_file_pyramid(file, image, &pyramid, error));
    if (level >= pyramid->info.levels)
        return cogpu_fail_absent(error, "level", level, "image", pyramid->info.levels, 0);
    const cogpu_pyramid_level *from = &pyramid->levels[level];
    const cogpu_storage *storage = &from->storage;
    *info = (cogpu_level){.directory = storage->directory,
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
    scale_transform(&pyramid->info, storage, info->transform);
    return COGPU_OK;
}

cogpu_status cogpu_band_info(const cogpu_file *file, uint32_t image, uint32_t band,
                             cogpu_band *info, cogpu_error *error) {
    const cogpu_pyramid *pyramid = NULL;
    TRY(cogpu_file_pyramid(file, image, &pyramid, error));
    if (band < 1 || band > pyramid->info.bands)
        return cogpu_fail_absent(error, "band", band, "image", pyramid->info.bands, 1);
    *info = pyramid->bands[band - 1];
    return COGPU_OK;
}

cogpu_status cogpu_item_info(const cogpu_file *file, uint32_t image, uint32_t index,
                             cogpu_item *info, cogpu_error *error) {
    const cogpu_pyramid *pyramid = NULL;
    TRY(cogpu_file_pyramid(file, image, &pyramid, error));
    if (index >= pyramid->metadata.item_count)
        return cogpu_fail_absent(error, "metadata item", index, "image",
                                 pyramid->metadata.item_count, 0);
    *info = pyramid->metadata.items[index];
    return COGPU_OK;
}

cogpu_status cogpu_geokey_info(const cogpu_file *file, uint32_t image, uint32_t index,
                               cogpu_geokey *info, cogpu_error *error) {
    const cogpu_pyramid *pyramid = NULL;
    TRY(cogpu_file_pyramid(file, image, &pyramid, error));
    if (index >= pyramid->georef.key_count)
        return cogpu_fail_absent(error, "GeoKey", index, "image", pyramid->georef.key_count, 0);
    *info = pyramid->georef.keys[index];
    return COGPU_OK;
}

static cogpu_status georef_with_crs(const cogpu_file *file, uint32_t image,
                                    const cogpu_georef **georef, cogpu_error *error) {
    const cogpu_pyramid *pyramid = NULL;
    TRY(cogpu_file_pyramid(file, image, &pyramid, error));
    if (!pyramid->georef.has_crs)
        return cogpu_fail(error, COGPU_ABSENT, "the image has no coordinate reference system");
    *georef = &pyramid->georef;
    return COGPU_OK;
}

cogpu_status cogpu_crs_info(const cogpu_file *file, uint32_t image, cogpu_crs *info,
                            cogpu_error *error) {
    const cogpu_georef *georef = NULL;
    TRY(georef_with_crs(file, image, &georef, error));
    *info = georef->crs;
    return COGPU_OK;
}

cogpu_status cogpu_crs_wkt(const cogpu_file *file, uint32_t image, cogpu_context *context,
                           char *text, size_t capacity, size_t *needed, cogpu_error *error) {
    const cogpu_georef *georef = NULL;
    TRY(georef_with_crs(file, image, &georef, error));
    cogpu_crs_database *database = cogpu_context_take_crs_database(context);
    cogpu_status status = cogpu_crs_to_wkt(georef, &database, text, capacity, needed, error);
    cogpu_context_return_crs_database(context, database);
    return status;
}

static cogpu_status find_directory(const cogpu_file *file, uint32_t directory,
                                   const cogpu_ifd **ifd, cogpu_error *error) {
    if (!file)
        return cogpu_fail(error, COGPU_ARGUMENT, "no file was given");
    const cogpu_tiff *tiff = cogpu_file_tiff(file);
    if (directory >= tiff->directory_count)
        return cogpu_fail_absent(error, "directory", directory, "file", tiff->directory_count, 0);
    *ifd = &tiff->directories[directory];
    return COGPU_OK;
}

cogpu_status cogpu_directory_info(const cogpu_file *file, uint32_t directory, cogpu_directory *info,
                                  cogpu_error *error) {
    const cogpu_ifd *ifd = NULL;
    TRY(find_directory(file, directory, &ifd, error));
    *info = (cogpu_directory){.directories = cogpu_file_tiff(file)->directory_count,
                              .offset = ifd->offset,
                              .tags = ifd->entry_count,
                              .parent = ifd->parent,
                              .subfile_type = ifd->subfile_type};
    return COGPU_OK;
}

cogpu_status cogpu_tag_info(const cogpu_file *file, uint32_t directory, uint32_t index,
                            cogpu_tag *info, cogpu_error *error) {
    const cogpu_ifd *ifd = NULL;
    TRY(find_directory(file, directory, &ifd, error));
    if (index >= ifd->entry_count)
        return cogpu_fail_absent(error, "tag", index, "directory", ifd->entry_count, 0);
    const cogpu_entry *entry = &ifd->entries[index];
    *info = (cogpu_tag){.id = entry->tag,
                        .name = cogpu_tag_name(entry->tag),
                        .type = entry->type,
                        .count = entry->count,
                        .value_offset = entry->value_offset,
                        .bytes = entry->bytes};
    return COGPU_OK;
}

cogpu_status cogpu_tag_read(const cogpu_file *file, uint32_t directory, uint32_t id, uint64_t first,
                            uint64_t count, void *to, cogpu_error *error) {
    const cogpu_ifd *ifd = NULL;
    TRY(find_directory(file, directory, &ifd, error));
    const cogpu_tiff *tiff = cogpu_file_tiff(file);
    const cogpu_entry *entry =
        id <= UINT16_MAX ? cogpu_tiff_find(tiff, directory, (uint16_t)id) : NULL;
    if (!entry)
        return cogpu_fail(error, COGPU_ABSENT, "directory %u has no tag %u (%s)", directory, id,
                          cogpu_tag_name(id));
    if (first > entry->count || count > entry->count - first)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "tag %s has %llu elements; cannot read %llu from element %llu on",
                          cogpu_tag_name(id), (unsigned long long)entry->count,
                          (unsigned long long)count, (unsigned long long)first);
    return cogpu_tiff_raw(tiff, entry, first, count, to, error);
}
