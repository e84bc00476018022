/*
 * Tags of all directories (IFDs), in file order: level 0 and its mask, the overviews from large to
 * small, their masks in the same order. Only the first directory has georeferencing and metadata;
 * the others have what a reader of that level alone needs.
 */
#include "write/writer.h"

#include "image/write_tags.h"

#include <string.h>

enum { SUBFILE_REDUCED = 1, SUBFILE_MASK = 4, PHOTOMETRIC_MASK = 4 };

/* A SHORT for each of `count` bands. */
static cogpu_status add_for_bands(cogpu_tag_list *list, cogpu_arena *arena, uint16_t id,
                                  uint32_t count, uint16_t value, cogpu_error *error) {
    uint16_t *values = NULL;
    TRY(cogpu_arena_allocate(arena, count, sizeof *values, &values, error));
    for (uint32_t i = 0; i < count; i++)
        values[i] = value;
    return cogpu_tag_add(list, arena, id, TYPE_SHORT, count, values, error);
}

/* Tags that directories of pixels and of masks share. */
static cogpu_status add_structure(cogpu_writer *writer, cogpu_tag_list *list,
                                  const cogpu_block_grid *grid, uint32_t subfile_type,
                                  uint32_t bands, uint16_t bits, cogpu_error *error) {
    cogpu_arena *arena = &writer->arena;
    if (subfile_type)
        TRY(cogpu_tag_add_long(list, arena, TAG_NEW_SUBFILE_TYPE, subfile_type, error));
    TRY(cogpu_tag_add_long(list, arena, TAG_IMAGE_WIDTH, grid->width, error));
    TRY(cogpu_tag_add_long(list, arena, TAG_IMAGE_LENGTH, grid->height, error));
    TRY(add_for_bands(list, arena, TAG_BITS_PER_SAMPLE, bands, bits, error));
    TRY(cogpu_tag_add_short(list, arena, TAG_SAMPLES_PER_PIXEL, (uint16_t)bands, error));
    if (!writer->plan.is_tiled)
        return cogpu_tag_add_long(list, arena, TAG_ROWS_PER_STRIP, grid->block_height, error);
    TRY(cogpu_tag_add_long(list, arena, TAG_TILE_WIDTH, grid->block_width, error));
    return cogpu_tag_add_long(list, arena, TAG_TILE_LENGTH, grid->block_height, error);
}

/* The tag that the codec's decoder needs besides the blocks, if any. */
static cogpu_status add_codec_tag(cogpu_writer *writer, cogpu_tag_list *list, cogpu_error *error) {
    const cogpu_write_plan *plan = &writer->plan;
    cogpu_codec_tag tag = {0};
    if (!plan->codec->encoder->make_tag)
        return COGPU_OK;
    TRY(plan->codec->encoder->make_tag(&plan->encoding, &tag, error));
    return cogpu_tag_add(list, &writer->arena, tag.id, tag.type, tag.count, tag.values, error);
}

/* GDAL_NODATA of level 0: a reader of an overview needs it, too. */
static cogpu_status copy_nodata(cogpu_writer *writer, cogpu_tag_list *list, cogpu_error *error) {
    const cogpu_tag_list *first = &writer->output.directories[0].tags;
    for (uint32_t i = 0; i < first->count; i++)
        if (first->tags[i].id == TAG_GDAL_NODATA)
            return cogpu_tag_add_text(list, &writer->arena, TAG_GDAL_NODATA, first->tags[i].values,
                                      error);
    return COGPU_OK;
}

static cogpu_status describe_level(cogpu_writer *writer, const cogpu_profile *profile,
                                   uint32_t number, cogpu_tag_list *list, cogpu_error *error) {
    cogpu_write_plan *plan = &writer->plan;
    cogpu_block_format *format = &plan->encoding.format;
    cogpu_arena *arena = &writer->arena;
    uint32_t photometric = 0;
    TRY(cogpu_write_color_tags(profile, format->compression, arena, list, &photometric, error));
    cogpu_plan_set_photometric(plan, photometric);
    TRY(add_structure(writer, list, &plan->levels[number], number ? SUBFILE_REDUCED : 0,
                      plan->bands, (uint16_t)format->bits, error));
    TRY(add_for_bands(list, arena, TAG_SAMPLE_FORMAT, plan->bands,
                      (uint16_t)cogpu_type_format(plan->type), error));
    TRY(cogpu_tag_add_short(list, arena, TAG_COMPRESSION, (uint16_t)format->compression, error));
    TRY(cogpu_tag_add_short(list, arena, TAG_PLANAR_CONFIGURATION,
                            profile->interleave == COGPU_INTERLEAVE_BAND ? 2 : 1, error));
    if (plan->predictor > 1)
        TRY(cogpu_tag_add_short(list, arena, TAG_PREDICTOR, (uint16_t)plan->predictor, error));
    TRY(add_codec_tag(writer, list, error));
    if (number > 0)
        return copy_nodata(writer, list, error);
    TRY(cogpu_write_georef_tags(profile, arena, list, error));
    return cogpu_write_metadata_tags(profile, arena, list, error);
}

static cogpu_status describe_mask(cogpu_writer *writer, uint32_t number, cogpu_tag_list *list,
                                  cogpu_error *error) {
    cogpu_arena *arena = &writer->arena;
    TRY(add_structure(writer, list, &writer->plan.levels[number],
                      SUBFILE_MASK | (number ? SUBFILE_REDUCED : 0), 1, 1, error));
    TRY(cogpu_tag_add_short(list, arena, TAG_COMPRESSION,
                            (uint16_t)writer->plan.mask_codec->compression, error));
    TRY(cogpu_tag_add_short(list, arena, TAG_PHOTOMETRIC, PHOTOMETRIC_MASK, error));
    return cogpu_tag_add_short(list, arena, TAG_PLANAR_CONFIGURATION, 1, error);
}

static cogpu_status add_level_directory(cogpu_writer *writer, const cogpu_profile *profile,
                                        uint32_t number, bool is_mask, cogpu_error *error) {
    const cogpu_block_grid *grid = &writer->plan.levels[number];
    cogpu_new_directory *directory = &writer->output.directories[writer->output.directory_count++];
    uint32_t planes = is_mask ? 1 : writer->plan.planes;
    directory->is_tiled = writer->plan.is_tiled;
    directory->blocks = (uint64_t)grid->across * grid->down * planes;
    return is_mask ? describe_mask(writer, number, &directory->tags, error)
                   : describe_level(writer, profile, number, &directory->tags, error);
}

cogpu_status cogpu_writer_describe(cogpu_writer *writer, const cogpu_profile *profile,
                                   cogpu_error *error) {
    uint32_t levels = writer->plan.level_count;
    bool has_mask = writer->plan.has_mask;
    TRY(cogpu_arena_allocate(&writer->arena, 2 * levels, sizeof *writer->output.directories,
                             &writer->output.directories, error));
    TRY(add_level_directory(writer, profile, 0, false, error));
    if (has_mask)
        TRY(add_level_directory(writer, profile, 0, true, error));
    for (uint32_t i = 1; i < levels; i++)
        TRY(add_level_directory(writer, profile, i, false, error));
    for (uint32_t i = 1; has_mask && i < levels; i++)
        TRY(add_level_directory(writer, profile, i, true, error));
    return COGPU_OK;
}
