/* The pyramid of an image that no file stores: of a mosaic or a VRT. Its levels look like tiles
 * without compression, so that requests and plans treat them like any other. */
#include "image/image.h"

#include "base/bytes.h"
#include "base/checked.h"

#include <string.h>

enum { MIN_IS_BLACK = 1, RGB = 2, PALETTE = 3 };

static cogpu_storage storage_of_level(const cogpu_computed_image *image, uint32_t width,
                                      uint32_t height, uint32_t bands, cogpu_type type) {
    uint32_t bits = 8 * (uint32_t)cogpu_type_bytes(type);
    uint64_t row_bytes = (uint64_t)image->block_width * bands * bits / 8;
    cogpu_storage storage = {.tiff = image->tiff,
                             .width = width,
                             .height = height,
                             .bands = bands,
                             .layout = COGPU_LAYOUT_TILES,
                             .block_width = image->block_width,
                             .block_height = image->block_height,
                             .across = (uint32_t)divide_up(width, image->block_width),
                             .down = (uint32_t)divide_up(height, image->block_height),
                             .planes = 1,
                             .type = type,
                             .bits = bits,
                             .sample_format = (uint32_t)cogpu_type_format(type),
                             .predictor = 1,
                             .photometric = MIN_IS_BLACK,
                             .orientation = 1,
                             .big_endian = COGPU_HOST_BIG_ENDIAN,
                             .codec = cogpu_codec_find(COMPRESSION_NONE),
                             .block_bytes = (size_t)(row_bytes * image->block_height),
                             .mosaic = image->mosaic};
    storage.blocks = (uint64_t)storage.across * storage.down;
    storage.format = (cogpu_block_format){.width = image->block_width,
                                          .height = image->block_height,
                                          .samples = bands,
                                          .bits = bits,
                                          .type = type,
                                          .row_bytes = (size_t)row_bytes,
                                          .compression = COMPRESSION_NONE,
                                          .photometric = MIN_IS_BLACK,
                                          .fill_order = 1,
                                          .subsampling_x = 1,
                                          .subsampling_y = 1};
    return storage;
}

static bool has_interpretation(const cogpu_computed_image *image, uint32_t band,
                               const char *interpretation) {
    return band < image->band_count && image->bands[band].interpretation &&
           strcmp(image->bands[band].interpretation, interpretation) == 0;
}

static uint32_t photometric_of(const cogpu_computed_image *image) {
    if (image->palette)
        return PALETTE;
    bool is_rgb = has_interpretation(image, 0, "red") && has_interpretation(image, 1, "green") &&
                  has_interpretation(image, 2, "blue");
    return is_rgb ? RGB : MIN_IS_BLACK;
}

static void add_level(const cogpu_computed_image *image, uint32_t width, uint32_t height,
                      cogpu_pyramid *pyramid) {
    cogpu_pyramid_level *level = &pyramid->levels[pyramid->info.levels++];
    level->storage = storage_of_level(image, width, height, image->band_count, image->type);
    level->storage.photometric = level->storage.format.photometric = photometric_of(image);
    level->has_mask = image->has_mask;
    if (image->has_mask)
        level->mask = storage_of_level(image, width, height, 1, COGPU_TYPE_U8);
    level->mask.is_validity = image->has_mask;
}

static cogpu_status copy_bands(const cogpu_computed_image *image, cogpu_arena *arena,
                               cogpu_pyramid *pyramid, cogpu_error *error) {
    TRY(cogpu_arena_allocate(arena, image->band_count, sizeof *pyramid->bands, &pyramid->bands,
                             error));
    memcpy(pyramid->bands, image->bands, image->band_count * sizeof *pyramid->bands);
    for (uint32_t i = 0; i < image->band_count && !pyramid->info.alpha_band; i++)
        if (has_interpretation(image, i, "alpha"))
            pyramid->info.alpha_band = i + 1;
    return cogpu_pyramid_set_nodata(pyramid, image->nodata, arena, error);
}

static cogpu_status check_size(const cogpu_computed_image *image, cogpu_error *error) {
    const cogpu_limits *limits = &image->tiff->limits;
    uint64_t blocks =
        divide_up(image->width, image->block_width) * divide_up(image->height, image->block_height);
    uint64_t block_bytes = (uint64_t)image->block_width * image->block_height * image->band_count *
                           cogpu_type_bytes(image->type);
    if (image->band_count > limits->bands)
        return cogpu_fail(error, COGPU_LIMIT_EXCEEDED,
                          "%u bands exceed the limit of %llu; raise "
                          "`bands` to go on",
                          image->band_count, (unsigned long long)limits->bands);
    if (blocks > limits->blocks || block_bytes > limits->block_bytes)
        return cogpu_fail(error, COGPU_LIMIT_EXCEEDED,
                          "%u x %u pixels of %u bands have too many or too large blocks of %u x %u "
                          "pixels; raise `blocks` or `block_bytes` to go on",
                          image->width, image->height, image->band_count, image->block_width,
                          image->block_height);
    return COGPU_OK;
}

cogpu_status cogpu_pyramid_of_computed(const cogpu_computed_image *image, cogpu_arena *arena,
                                       cogpu_pyramid **out, cogpu_error *error) {
    cogpu_pyramid *pyramid = NULL;
    TRY(check_size(image, error));
    TRY(cogpu_arena_allocate(arena, 1, sizeof *pyramid, &pyramid, error));
    TRY(cogpu_arena_allocate(arena, image->level_count, sizeof *pyramid->levels, &pyramid->levels,
                             error));
    add_level(image, image->width, image->height, pyramid);
    for (uint32_t i = 1; i < image->level_count; i++)
        add_level(image, image->level_sizes[i - 1][0], image->level_sizes[i - 1][1], pyramid);
    cogpu_pyramid_describe_storage(&pyramid->levels[0].storage, &pyramid->info);
    pyramid->georef = image->georef;
    cogpu_pyramid_describe_georef(&pyramid->georef, &pyramid->info);
    pyramid->metadata = image->metadata;
    pyramid->info.metadata_count = image->metadata.item_count;
    pyramid->info.palette = image->palette;
    pyramid->info.palette_entries = image->palette_entries;
    TRY(copy_bands(image, arena, pyramid, error));
    cogpu_pyramid_set_mask_source(pyramid);
    *out = pyramid;
    return COGPU_OK;
}
