/*
 * Prints the details of an image as members of an open JSON object. What
 * the file does not have is null, so that every member is always there.
 */
#include "info.h"
#include "report.h"
#include "sources.h"
#include "tag_value.h"
#include "text.h"

static const char *layout_name(cogpu_layout layout) {
    return layout == COGPU_LAYOUT_TILES ? "tiles" : "strips";
}

static void add_transform(cogpu_json *json, bool present, const double *transform) {
    if (present)
        cogpu_json_numbers(json, "transform", transform, 6);
    else
        cogpu_json_null(json, "transform");
}

static void add_ghost(cogpu_json *json, uint32_t ghost) {
    if (!(ghost & COGPU_GHOST_PRESENT)) {
        cogpu_json_null(json, "ghost");
        return;
    }
    cogpu_json_open(json, "ghost", '{');
    for (const cogpu_ghost_word *word = cogpu_ghost_words; word->bit; word++)
        cogpu_json_boolean(json, word->key, (ghost & word->bit) != 0);
    cogpu_json_close(json);
}

static void add_nodata(cogpu_json *json, const cogpu_band *band, cogpu_type type) {
    if (!band->nodata) {
        cogpu_json_null(json, "nodata");
        return;
    }
    cogpu_json_open(json, "nodata", '{');
    cogpu_json_text(json, "text", band->nodata);
    cogpu_json_boolean(json, "matches", band->nodata_matches);
    if (!band->nodata_matches)
        cogpu_json_null(json, "value");
    else if (type == COGPU_TYPE_I64)
        cogpu_json_integer(json, "value", band->nodata_i64);
    else if (type == COGPU_TYPE_U64)
        cogpu_json_unsigned(json, "value", band->nodata_u64);
    else
        cogpu_json_number(json, "value", band->nodata_value);
    cogpu_json_close(json);
}

static void add_palette(cogpu_json *json, const cogpu_image *image) {
    uint32_t count = image->palette_entries;
    if (!image->palette) {
        cogpu_json_null(json, "palette");
        return;
    }
    cogpu_json_open(json, "palette", '[');
    for (uint32_t i = 0; i < count; i++) {
        cogpu_json_open(json, NULL, '-');
        for (uint32_t colour = 0; colour < 3; colour++)
            cogpu_json_unsigned(json, NULL, image->palette[colour * count + i]);
        cogpu_json_close(json);
    }
    cogpu_json_close(json);
}

static void add_sidecars(cogpu_json *json, const cogpu_file *file) {
    const char *path;
    cogpu_json_open(json, "sidecars", '[');
    for (uint32_t i = 0; (path = cogpu_sidecar_path(file, i)) != NULL; i++)
        cogpu_json_text(json, NULL, path);
    cogpu_json_close(json);
}

static void add_image(cogpu_json *json, const cogpu_details *details) {
    const cogpu_image *image = &details->image;
    cogpu_json_text(json, "file", details->name);
    add_sidecars(json, details->file);
    cogpu_json_unsigned(json, "image", details->number);
    cogpu_json_unsigned(json, "images", cogpu_image_count(details->file));
    cogpu_json_unsigned(json, "directory", image->directory);
    cogpu_json_unsigned(json, "width", image->width);
    cogpu_json_unsigned(json, "height", image->height);
    cogpu_json_unsigned(json, "band_count", image->bands);
    cogpu_json_text(json, "type", cogpu_type_name(image->type));
    cogpu_json_unsigned(json, "bits", image->bits);
    cogpu_json_text(json, "layout", layout_name(image->layout));
    cogpu_json_unsigned(json, "block_width", image->block_width);
    cogpu_json_unsigned(json, "block_height", image->block_height);
    cogpu_json_unsigned(json, "blocks", image->blocks);
    cogpu_json_text(json, "interleave", cogpu_interleave_name(image->interleave));
    cogpu_json_unsigned(json, "compression", image->compression);
    cogpu_json_text(json, "codec", image->codec);
    cogpu_json_unsigned(json, "predictor", image->predictor);
    cogpu_json_unsigned(json, "photometric", image->photometric);
    cogpu_json_unsigned(json, "orientation", image->orientation);
    cogpu_json_unsigned(json, "fill_order", image->fill_order);
    cogpu_json_boolean(json, "big_endian", image->big_endian);
    cogpu_json_boolean(json, "bigtiff", image->bigtiff);
    cogpu_json_boolean(json, "cog", details->cog);
    cogpu_json_text(json, "cog_reason", details->cog_reason);
    add_ghost(json, image->ghost);
    cogpu_json_text(json, "description", image->description);
    cogpu_json_text(json, "mask_source", cogpu_mask_source_name(image->mask_source));
    add_nodata(json, &details->first_band, image->type);
    if (image->alpha_band)
        cogpu_json_unsigned(json, "alpha_band", image->alpha_band);
    else
        cogpu_json_null(json, "alpha_band");
    cogpu_json_boolean(json, "premultiplied", image->premultiplied);
    add_palette(json, image);
}

static cogpu_status add_gcps(cogpu_json *json, const cogpu_details *details, cogpu_error *error) {
    cogpu_json_open(json, "gcps", '[');
    for (uint32_t i = 0; i < details->image.gcp_count; i++) {
        cogpu_gcp gcp = COGPU_GCP_INIT;
        TRY(cogpu_gcp_info(details->file, details->number, i, &gcp, error));
        cogpu_json_open(json, NULL, '{');
        cogpu_json_number(json, "column", gcp.column);
        cogpu_json_number(json, "row", gcp.row);
        cogpu_json_number(json, "pixel_z", gcp.pixel_z);
        cogpu_json_number(json, "x", gcp.x);
        cogpu_json_number(json, "y", gcp.y);
        cogpu_json_number(json, "z", gcp.z);
        cogpu_json_text(json, "id", gcp.id);
        cogpu_json_text(json, "info", gcp.info);
        cogpu_json_close(json);
    }
    cogpu_json_close(json);
    return COGPU_OK;
}

static void add_crs(cogpu_json *json, const cogpu_details *details) {
    const cogpu_crs *crs = &details->crs;
    if (!details->has_crs) {
        cogpu_json_null(json, "crs");
        return;
    }
    cogpu_json_open(json, "crs", '{');
    cogpu_json_text(json, "model", crs->model);
    cogpu_json_text(json, "authority", crs->authority);
    cogpu_json_unsigned(json, "code", crs->code);
    cogpu_json_unsigned(json, "vertical", crs->vertical);
    cogpu_json_text(json, "name", crs->name);
    cogpu_json_number(json, "epoch", crs->epoch);
    cogpu_json_boolean(json, "external", crs->external);
    cogpu_json_close(json);
}

static cogpu_status add_geokeys(cogpu_json *json, const cogpu_details *details,
                                cogpu_error *error) {
    cogpu_json_open(json, "geokeys", '[');
    for (uint32_t i = 0; i < details->image.geokey_count; i++) {
        cogpu_geokey key = COGPU_GEOKEY_INIT;
        TRY(cogpu_geokey_info(details->file, details->number, i, &key, error));
        cogpu_json_open(json, NULL, '{');
        cogpu_json_unsigned(json, "id", key.id);
        cogpu_json_text(json, "name", key.name);
        if (key.kind == COGPU_GEOKEY_TEXT) {
            cogpu_json_text(json, "value", key.text);
        } else {
            cogpu_json_open(json, "value", '-');
            for (uint32_t k = 0; k < key.count; k++)
                cogpu_json_number(json, NULL,
                                  key.kind == COGPU_GEOKEY_SHORT ? key.shorts[k] : key.doubles[k]);
            cogpu_json_close(json);
        }
        cogpu_json_close(json);
    }
    cogpu_json_close(json);
    return COGPU_OK;
}

static cogpu_status add_georeferencing(cogpu_json *json, const cogpu_details *details,
                                       cogpu_error *error) {
    const cogpu_image *image = &details->image;
    add_transform(json, image->has_transform, image->transform);
    if (image->has_transform)
        cogpu_json_numbers(json, "bounds", details->bounds, 4);
    else
        cogpu_json_null(json, "bounds");
    cogpu_json_boolean(json, "pixel_is_point", image->pixel_is_point);
    TRY(add_gcps(json, details, error));
    if (image->rpc)
        cogpu_json_numbers(json, "rpc", image->rpc, 92);
    else
        cogpu_json_null(json, "rpc");
    add_crs(json, details);
    cogpu_json_text(json, "wkt", details->wkt);
    return add_geokeys(json, details, error);
}

static cogpu_status add_levels(cogpu_json *json, const cogpu_details *details, cogpu_error *error) {
    cogpu_json_open(json, "levels", '[');
    for (uint32_t i = 0; i < details->image.levels; i++) {
        cogpu_level level = COGPU_LEVEL_INIT;
        TRY(cogpu_level_info(details->file, details->number, i, &level, error));
        cogpu_json_open(json, NULL, '{');
        cogpu_json_unsigned(json, "directory", level.directory);
        cogpu_json_boolean(json, "external", level.external);
        cogpu_json_unsigned(json, "width", level.width);
        cogpu_json_unsigned(json, "height", level.height);
        cogpu_json_text(json, "layout", layout_name(level.layout));
        cogpu_json_unsigned(json, "block_width", level.block_width);
        cogpu_json_unsigned(json, "block_height", level.block_height);
        cogpu_json_unsigned(json, "blocks", level.blocks);
        cogpu_json_unsigned(json, "compression", level.compression);
        cogpu_json_text(json, "codec", level.codec);
        cogpu_json_unsigned(json, "predictor", level.predictor);
        if (level.has_mask)
            cogpu_json_unsigned(json, "mask_directory", level.mask_directory);
        else
            cogpu_json_null(json, "mask_directory");
        cogpu_json_boolean(json, "mask_external", level.mask_external);
        add_transform(json, level.has_transform, level.transform);
        cogpu_json_close(json);
    }
    cogpu_json_close(json);
    return COGPU_OK;
}

static cogpu_status add_bands(cogpu_json *json, const cogpu_details *details, cogpu_error *error) {
    cogpu_json_open(json, "bands", '[');
    for (uint32_t i = 1; i <= details->image.bands; i++) {
        cogpu_band band = COGPU_BAND_INIT;
        TRY(cogpu_band_info(details->file, details->number, i, &band, error));
        cogpu_json_open(json, NULL, '{');
        cogpu_json_text(json, "interpretation", band.interpretation);
        cogpu_json_text(json, "description", band.description);
        cogpu_json_text(json, "unit", band.unit);
        cogpu_json_boolean(json, "has_scale", band.has_scale);
        cogpu_json_number(json, "scale", band.scale);
        cogpu_json_number(json, "offset", band.offset);
        add_nodata(json, &band, details->image.type);
        cogpu_json_close(json);
    }
    cogpu_json_close(json);
    return COGPU_OK;
}

static cogpu_status add_metadata(cogpu_json *json, const cogpu_details *details,
                                 cogpu_error *error) {
    cogpu_json_open(json, "metadata", '[');
    for (uint32_t i = 0; i < details->image.metadata_count; i++) {
        cogpu_metadata_item item = COGPU_METADATA_ITEM_INIT;
        TRY(cogpu_metadata_info(details->file, details->number, i, &item, error));
        cogpu_json_open(json, NULL, '{');
        cogpu_json_text(json, "domain", item.domain);
        cogpu_json_text(json, "name", item.name);
        cogpu_json_text(json, "value", item.value);
        cogpu_json_text(json, "role", item.role);
        cogpu_json_integer(json, "band", item.band);
        cogpu_json_close(json);
    }
    cogpu_json_close(json);
    return COGPU_OK;
}

static void add_warnings(cogpu_json *json, const char *lines) {
    char line[LINE_TEXT];
    cogpu_json_open(json, "warnings", '[');
    while (lines && cogpu_text_line(&lines, line))
        cogpu_json_text(json, NULL, line);
    cogpu_json_close(json);
}

/* A value that cannot be read is null: the others may still show what is wrong with the file. */
static void add_tag(cogpu_json *json, const cogpu_file *file, uint32_t directory,
                    const cogpu_tag *tag) {
    enum { SHOWN = 64 };
    cogpu_tag_value value;
    cogpu_json_open(json, NULL, '{');
    cogpu_json_unsigned(json, "id", tag->id);
    cogpu_json_text(json, "name", tag->name);
    cogpu_json_text(json, "type", cogpu_tag_type_name(tag->type));
    cogpu_json_unsigned(json, "count", tag->count);
    cogpu_json_unsigned(json, "offset", tag->value_offset);
    if (cogpu_tag_value_read(file, directory, tag, SHOWN, &value, NULL) == COGPU_OK)
        cogpu_tag_value_json(json, "first", &value);
    else
        cogpu_json_null(json, "first");
    cogpu_json_close(json);
}

static cogpu_status add_directories(cogpu_json *json, const cogpu_details *details,
                                    cogpu_error *error) {
    uint32_t count = 1;
    cogpu_json_open(json, "directories", '[');
    for (uint32_t i = 0; i < count && !details->is_mosaic; i++) {
        cogpu_directory directory = COGPU_DIRECTORY_INIT;
        TRY(cogpu_directory_info(details->file, i, &directory, error));
        count = directory.directory_count;
        cogpu_json_open(json, NULL, '{');
        cogpu_json_unsigned(json, "offset", directory.offset);
        cogpu_json_integer(json, "parent", directory.parent);
        cogpu_json_unsigned(json, "subfile_type", directory.subfile_type);
        cogpu_json_open(json, "tags", '[');
        for (uint32_t k = 0; k < directory.tag_count; k++) {
            cogpu_tag tag = COGPU_TAG_INIT;
            TRY(cogpu_tag_info(details->file, i, k, &tag, error));
            add_tag(json, details->file, i, &tag);
        }
        cogpu_json_close(json);
        cogpu_json_close(json);
    }
    cogpu_json_close(json);
    return COGPU_OK;
}

cogpu_status cogpu_info_add_json(const cogpu_details *details, cogpu_json *json,
                                 cogpu_error *error) {
    add_image(json, details);
    TRY(add_georeferencing(json, details, error));
    TRY(add_levels(json, details, error));
    TRY(add_bands(json, details, error));
    TRY(add_metadata(json, details, error));
    cogpu_sources_json(details->file, json);
    add_warnings(json, details->image.warning);
    if (details->tags)
        TRY(add_directories(json, details, error));
    return COGPU_OK;
}
