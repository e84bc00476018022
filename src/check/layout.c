/*
 * Checks the order of directories and data, and the sizes of levels and tiles. Reads only the block
 * tables, up to the first block with data.
 */
#include "check/check.h"

#include "base/checked.h"

/* GDAL accepts an image of this size without tiles and overviews, and a strip of this width. */
enum { SMALL_PIXELS = 512, WIDE_PIXELS = 1024 };
/* rio-cogeo accepts the first directory up to this offset. */
enum { RIO_COGEO_FIRST_OFFSET = 300 };

static const char *level_name(uint32_t level) {
    return level == 0 ? "the image" : "the overview";
}

static void check_first_directory(cogpu_check_run *run) {
    const cogpu_tiff *tiff = run->tiff;
    uint64_t offset = run->levels[0].directory_offset;
    uint64_t wanted = tiff->ghost_end ? tiff->ghost_end + tiff->ghost_end % 2
                      : tiff->bigtiff ? 16
                                      : 8;
    /* GDAL accepts 8 and 16 whatever the header. */
    if (offset == wanted || offset == 8 || offset == 16)
        return;
    cogpu_check_add_finding(
        run, offset > RIO_COGEO_FIRST_OFFSET ? RULE_FIRST_DIRECTORY_FAR : RULE_FIRST_DIRECTORY,
        run->levels[0].storage.directory, -1, offset,
        "the first directory is at byte %llu instead of %llu, after the %s",
        (unsigned long long)offset, (unsigned long long)wanted,
        tiff->ghost_end ? "ghost area" : "header");
}

static void check_file_layout(cogpu_check_run *run) {
    const cogpu_tiff *tiff = run->tiff;
    uint64_t bytes = cogpu_io_bytes(tiff->io);
    if (tiff->ghost & COGPU_GHOST_BROKEN)
        cogpu_check_add_finding(
            run, RULE_EDITED, -1, -1, tiff->bigtiff ? 16 : 8,
            "the file was a COG and has been edited since (KNOWN_INCOMPATIBLE_EDITION=YES)");
    if (cogpu_file_has_external_overviews(run->file))
        cogpu_check_add_finding(run, RULE_EXTERNAL_OVERVIEWS, -1, -1, NO_OFFSET,
                                "the file has external overviews (.ovr)");
    if (bytes > UINT32_MAX && !tiff->bigtiff)
        cogpu_check_add_finding(run, RULE_NOT_BIGTIFF, -1, -1, NO_OFFSET,
                                "the file has %llu bytes, more than 4 GiB, and is not a BigTIFF",
                                (unsigned long long)bytes);
    if (cogpu_file_pyramid_count(run->file) > 1)
        cogpu_check_add_finding(run, RULE_OTHER_IMAGES, -1, -1, NO_OFFSET,
                                "the file has %u images; only the first was checked",
                                cogpu_file_pyramid_count(run->file));
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void check_strips(cogpu_check_run *run, const cogpu_storage *storage, uint32_t level) {
    bool large = storage->width > SMALL_PIXELS || storage->height > SMALL_PIXELS;
    cogpu_rule rule = large && storage->width > WIDE_PIXELS ? RULE_STRIPS_WIDE
                      : large                               ? RULE_STRIPS_LARGE
                                                            : RULE_STRIPS_SMALL;
    cogpu_check_add_finding(run, rule, storage->directory, -1, NO_OFFSET,
                            "%s of %u x %u pixels has strips instead of tiles", level_name(level),
                            storage->width, storage->height);
}

static bool is_power_of_two(uint32_t number) {
    return (number & (number - 1)) == 0;
}

static void check_tiles(cogpu_check_run *run, const cogpu_storage *storage, uint32_t level) {
    uint32_t width = storage->block_width, height = storage->block_height;
    bool large = storage->width > SMALL_PIXELS || storage->height > SMALL_PIXELS;
    if (large && width == storage->width)
        cogpu_check_add_finding(
            run, width > WIDE_PIXELS ? RULE_TILES_WIDE : RULE_TILES_AS_WIDE, storage->directory, -1,
            NO_OFFSET,
            "tiles of %s are as wide as it, %u pixels: other validators take them for strips",
            level_name(level), width);
    if (width != height)
        cogpu_check_add_finding(run, RULE_TILES_NOT_SQUARE, storage->directory, -1, NO_OFFSET,
                                "tiles of %u x %u pixels are not square", width, height);
    else if (!is_power_of_two(width))
        cogpu_check_add_finding(run, RULE_TILES_NO_POWER, storage->directory, -1, NO_OFFSET,
                                "the tile size %u is not a power of two", width);
}

/* ---- overviews ------------------------------------------------------------------------------- */

/* Writers round up or down, and a side of one pixel remains. */
static bool is_reduced(uint32_t from, uint32_t to) {
    return to <= divide_up(from, 2) && to >= from / 10;
}

/* The factor of an overview as rio-cogeo computes it: from widths, rounded. */
static uint32_t factor_by_width(const cogpu_storage *full, const cogpu_storage *level) {
    return (uint32_t)((2 * (uint64_t)full->width + level->width) / (2 * (uint64_t)level->width));
}

static cogpu_rule overview_rule(const cogpu_storage *full, const cogpu_storage *from,
                                const cogpu_storage *to) {
    uint32_t factor = factor_by_width(full, to);
    bool narrower = factor > 1 && factor >= factor_by_width(full, from);
    if (to->width > from->width || to->height > from->height)
        return narrower ? RULE_OVERVIEW_TALLER : RULE_OVERVIEW_LARGER;
    if (to->width == from->width && to->height == from->height)
        return narrower ? RULE_OVERVIEW_SAME_SIZE : RULE_OVERVIEW_FULL_SIZE;
    if (!is_reduced(from->width, to->width) || !is_reduced(from->height, to->height))
        return narrower ? RULE_OVERVIEW_FACTOR : RULE_OVERVIEW_NEAR_FULL;
    return narrower ? RULE_COUNT : RULE_OVERVIEW_NARROW;
}

static void check_overview_size(cogpu_check_run *run, uint32_t level) {
    const cogpu_storage *from = &run->levels[level - 1].storage, *to = &run->levels[level].storage;
    cogpu_rule rule = overview_rule(&run->levels[0].storage, from, to);
    const char *problem = rule <= RULE_OVERVIEW_SAME_SIZE ? "is not smaller"
                          : rule == RULE_OVERVIEW_NARROW  ? "is not narrower"
                                                          : "is not reduced by 2 to 10";
    if (rule != RULE_COUNT)
        cogpu_check_add_finding(run, rule, to->directory, -1, run->levels[level].directory_offset,
                                "the overview of %u x %u pixels %s; the level before it is %u x %u",
                                to->width, to->height, problem, from->width, from->height);
}

static void check_directory_order(cogpu_check_run *run, uint32_t level) {
    uint64_t before = run->levels[level - 1].directory_offset,
             offset = run->levels[level].directory_offset;
    if (offset < before)
        cogpu_check_add_finding(
            run, RULE_DIRECTORY_ORDER, run->levels[level].storage.directory, -1, offset,
            "the directory of the overview, at byte %llu, comes before that of the "
            "larger level, at %llu",
            (unsigned long long)offset, (unsigned long long)before);
}

/* GeoTIFF tags, except GeoDoubleParams and GeoAsciiParams, which mean nothing alone. */
static void check_georeference(cogpu_check_run *run, const cogpu_storage *storage) {
    static const uint16_t tags[] = {TAG_MODEL_PIXEL_SCALE, TAG_MODEL_TIEPOINT,
                                    TAG_MODEL_TRANSFORMATION, TAG_GEO_KEY_DIRECTORY};
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        const cogpu_entry *entry = cogpu_tiff_find(run->tiff, storage->directory, tags[i]);
        if (entry) {
            cogpu_check_add_finding(run, RULE_GEOREFERENCE, storage->directory, -1,
                                    entry->value_offset, "an overview or mask has %s",
                                    cogpu_tag_name(tags[i]));
            return;
        }
    }
}

static void check_pyramid(cogpu_check_run *run) {
    const cogpu_storage *full = &run->levels[0].storage;
    const cogpu_storage *last = &run->levels[run->level_count - 1].storage;
    for (uint32_t i = 1; i < run->level_count; i++) {
        check_overview_size(run, i);
        check_directory_order(run, i);
        check_georeference(run, &run->levels[i].storage);
    }
    for (uint32_t i = 0; i < run->level_count; i++)
        if (run->levels[i].has_mask)
            check_georeference(run, &run->levels[i].mask);
    if (cogpu_file_has_external_overviews(run->file))
        return;
    if (run->level_count == 1 && (full->width > SMALL_PIXELS || full->height > SMALL_PIXELS))
        cogpu_check_add_finding(run, RULE_NO_OVERVIEWS, full->directory, -1, NO_OFFSET,
                                "the image has %u x %u pixels and no overviews", full->width,
                                full->height);
    else if (last->layout == COGPU_LAYOUT_TILES && last->across > 1 && last->down > 1)
        cogpu_check_add_finding(run, RULE_COARSEST_LEVEL, last->directory, -1, NO_OFFSET,
                                "the smallest level, %u x %u pixels, has %u x %u tiles",
                                last->width, last->height, last->across, last->down);
}

/* ---- data ------------------------------------------------------------------------------------ */

/* Levels whose blocks are all sparse have no position in the order. */
static void check_data_order(cogpu_check_run *run) {
    const cogpu_check_level *last = &run->levels[run->level_count - 1];
    if (last->first_block && last->first_block < last->directory_offset)
        cogpu_check_add_finding(
            run, RULE_DATA_BEFORE_DIRECTORY, last->storage.directory, -1, last->first_block,
            "data at byte %llu comes before the last directory, at %llu",
            (unsigned long long)last->first_block, (unsigned long long)last->directory_offset);
    for (uint32_t i = run->level_count - 1; i-- > 0;) {
        const cogpu_check_level *level = &run->levels[i], *smaller = level + 1;
        if (level->first_block && level->first_block < smaller->first_block)
            cogpu_check_add_finding(
                run, RULE_DATA_ORDER, level->storage.directory, -1, level->first_block,
                "data of %s begins at byte %llu, before that of the next smaller level, at %llu",
                level_name(i), (unsigned long long)level->first_block,
                (unsigned long long)smaller->first_block);
    }
}

cogpu_status cogpu_check_layout(cogpu_check_run *run) {
    check_file_layout(run);
    check_first_directory(run);
    for (uint32_t i = 0; i < run->level_count; i++) {
        cogpu_check_level *level = &run->levels[i];
        if (level->storage.layout == COGPU_LAYOUT_TILES)
            check_tiles(run, &level->storage, i);
        else
            check_strips(run, &level->storage, i);
        TRY(cogpu_check_first_block(run, level));
    }
    check_pyramid(run);
    check_data_order(run);
    return COGPU_OK;
}
