/*
 * Color interpretation, description, unit, scale and offset of each band: from the photometric
 * interpretation, extra samples, color map and GDAL_METADATA items.
 *
 * The rules are GDAL's, with two exceptions: MinIsWhite, and 1-bit images, which are gray here and
 * palettes in GDAL.
 */
#include "base/text.h"
#include "image/image.h"
#include "image/values.h"

#include <math.h>
#include <string.h>

enum { MIN_IS_WHITE = 0, MIN_IS_BLACK, RGB, PALETTE, SEPARATED = 5, YCBCR = 6, CIELAB = 8 };
enum { ASSOCIATED_ALPHA = 1, UNASSOCIATED_ALPHA = 2 };

/* Number of color bands of a photometric interpretation, and their colors; 0 if unknown. */
typedef struct tiff_colours {
    uint32_t photometric, count;
    const char *names[4];
} tiff_colours;

static const tiff_colours *find_tiff_colours(uint32_t photometric) {
    static const tiff_colours known[] = {
        {MIN_IS_WHITE, 1, {"gray"}},
        {MIN_IS_BLACK, 1, {"gray"}},
        {RGB, 3, {"red", "green", "blue"}},
        {PALETTE, 1, {"palette"}},
        {SEPARATED, 4, {"cyan", "magenta", "yellow", "black"}},
        {YCBCR, 3, {"Y", "Cb", "Cr"}},
        {CIELAB, 3, {"undefined", "undefined", "undefined"}},
    };
    static const tiff_colours unknown = {0};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].photometric == photometric)
            return &known[i];
    return &unknown;
}

/* A palette needs a color map of the right size. */
static cogpu_status read_color_map(const cogpu_tiff *tiff, const cogpu_storage *storage,
                                   cogpu_arena *arena, cogpu_image *info, const char **warning,
                                   cogpu_error *error) {
    uint32_t count;
    const uint16_t *map;
    if (storage->photometric > PALETTE || storage->photometric == RGB || storage->bits > 16)
        return COGPU_OK;
    TRY(cogpu_values_shorts(tiff, storage->directory, TAG_COLOR_MAP, arena, &map, &count, warning,
                            error));
    if (count && count == 3u << storage->bits) {
        info->palette = map;
        info->palette_entries = count / 3;
    } else if (count || storage->photometric == PALETTE) {
        cogpu_warn(arena, warning, "ColorMap has %u values, expected 3 for each of %u; ignored",
                   count, 1u << storage->bits);
    }
    return COGPU_OK;
}

/* The band that the first extra sample describes. Extra samples describe the last bands. If there
 * are more bands without a color than extra samples, they follow the color bands. */
static uint32_t first_extra_band(const tiff_colours *known, uint32_t bands, uint32_t extras) {
    if (known->count && known->count + extras < bands)
        return known->count;
    return extras < bands ? bands - extras : 0;
}

static void set_band_colours(const cogpu_storage *storage, const uint16_t *extras, uint32_t count,
                             cogpu_image *info, cogpu_band *bands) {
    static const tiff_colours from_cmyk = {SEPARATED, 4, {"red", "green", "blue", "alpha"}};
    const tiff_colours *known = find_tiff_colours(storage->photometric);
    if (storage->colour == COGPU_FROM_CMYK)
        known = &from_cmyk;
    if (cogpu_storage_is_rgb_of_ycbcr(storage))
        known = find_tiff_colours(RGB);
    if (known->count == 1)
        known = find_tiff_colours(info->palette ? PALETTE : MIN_IS_BLACK);
    uint32_t first = first_extra_band(known, storage->bands, count);
    for (uint32_t i = 0; i < storage->bands; i++) {
        bands[i].interpretation = i < known->count ? known->names[i] : "undefined";
        if (i < first || i < known->count || i - first >= count)
            continue;
        if (extras[i - first] == ASSOCIATED_ALPHA || extras[i - first] == UNASSOCIATED_ALPHA)
            bands[i].interpretation = "alpha";
        if (extras[i - first] == ASSOCIATED_ALPHA)
            info->premultiplied = 1;
    }
}

static cogpu_status read_colours(const cogpu_tiff *tiff, const cogpu_storage *storage,
                                 cogpu_arena *arena, cogpu_image *info, cogpu_band *bands,
                                 const char **warning, cogpu_error *error) {
    const uint16_t *extras;
    uint32_t count;
    TRY(cogpu_values_shorts(tiff, storage->directory, TAG_EXTRA_SAMPLES, arena, &extras, &count,
                            warning, error));
    uint32_t known = find_tiff_colours(storage->photometric)->count;
    uint32_t samples = storage->planes > 1 ? storage->planes : storage->format.samples;
    if (count && known && samples != known + count)
        cogpu_warn(arena, warning, "ExtraSamples has %u values for %u bands of %u colours", count,
                   samples, known);
    set_band_colours(storage, extras, count, info, bands);
    return COGPU_OK;
}

const char *cogpu_colour_named(const char *text) {
    static const char *const names[] = {
        "undefined",  "gray",      "palette", "red",     "green",  "blue",  "alpha",  "hue",
        "saturation", "lightness", "cyan",    "magenta", "yellow", "black", "pan",    "coastal",
        "rededge",    "nir",       "swir",    "mwir",    "lwir",   "tir",   "sar_ka", "sar_k",
        "sar_ku",     "sar_x",     "sar_c",   "sar_s",   "sar_l",  "sar_p"};
    static const char *const others[][2] = {
        {"ycbcr_y", "Y"}, {"ycbcr_cb", "Cb"}, {"ycbcr_cr", "Cr"}, {"otherir", "other_ir"}};
    for (size_t i = 0; text && i < sizeof names / sizeof *names; i++)
        if (is_same_name(text, names[i]))
            return names[i];
    for (size_t i = 0; text && i < sizeof others / sizeof *others; i++)
        if (is_same_name(text, others[i][0]))
            return others[i][1];
    return "undefined";
}

static void set_number(const cogpu_metadata_item *item, cogpu_band *band, double *number,
                       cogpu_arena *arena, const char **warning) {
    double value;
    if (!cogpu_number_parse(item->value, &value) || !isfinite(value)) {
        cogpu_warn(arena, warning, "the %s of band %d is not a number", item->role,
                   (int)item->band);
        return;
    }
    if (value == 0 &&
        number == &band->scale) { /* GDAL keeps it, and makes every pixel the offset */
        cogpu_warn(arena, warning, "the scale of band %d is 0; not applied", (int)item->band);
        return;
    }
    *number = value;
    band->has_scale = 1;
}

static void apply_item(const cogpu_metadata_item *item, cogpu_band *band, cogpu_arena *arena,
                       const char **warning) {
    if (is_same_name(item->role, "scale"))
        set_number(item, band, &band->scale, arena, warning);
    else if (is_same_name(item->role, "offset"))
        set_number(item, band, &band->offset, arena, warning);
    else if (is_same_name(item->role, "description"))
        band->description = item->value;
    else if (is_same_name(item->role, "unittype"))
        band->unit = item->value;
    else if (is_same_name(item->role, "colorinterp"))
        band->interpretation = cogpu_colour_named(item->value);
}

static void find_alpha(const cogpu_band *bands, uint32_t count, cogpu_image *info) {
    for (uint32_t i = count; i > 0; i--)
        if (strcmp(bands[i - 1].interpretation, "alpha") == 0)
            info->alpha_band = i;
    if (!info->alpha_band)
        info->premultiplied = 0;
}

cogpu_status cogpu_bands_read(const cogpu_tiff *tiff, const cogpu_storage *storage,
                              const cogpu_georef *georef, const cogpu_metadata *metadata,
                              cogpu_arena *arena, cogpu_image *info, cogpu_band **bands,
                              const char **warning, cogpu_error *error) {
    TRY(cogpu_arena_allocate(arena, storage->bands, sizeof **bands, bands, error));
    for (uint32_t i = 0; i < storage->bands; i++)
        (*bands)[i] = (cogpu_band){.scale = 1};
    TRY(read_color_map(tiff, storage, arena, info, warning, error));
    TRY(read_colours(tiff, storage, arena, info, *bands, warning, error));
    if (georef->has_z_scale && storage->bands == 1) {
        (*bands)[0].scale = georef->z_scale;
        (*bands)[0].offset = georef->z_offset;
        (*bands)[0].has_scale = 1;
    }
    for (uint32_t i = 0; i < metadata->item_count; i++) {
        const cogpu_metadata_item *item = &metadata->items[i];
        /* CMYK is converted to RGBA, so its stored names no longer apply. */
        bool renamed =
            storage->colour == COGPU_FROM_CMYK && is_same_name(item->role, "colorinterp");
        if (item->band > 0 && (uint32_t)item->band <= storage->bands && !renamed)
            apply_item(item, &(*bands)[item->band - 1], arena, warning);
    }
    find_alpha(*bands, storage->bands, info);
    return COGPU_OK;
}
