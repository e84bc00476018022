/*
 * `cogpu info`: gathers the description of one image for the printers info_text.c and info_json.c.
 */
#include "command.h"
#include "info.h"
#include "report.h"
#include "sources.h"
#include "tag_value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const cogpu_ghost_word cogpu_ghost_words[] = {
    {COGPU_GHOST_IFDS_BEFORE_DATA, "ifds_before_data", "directories before data"},
    {COGPU_GHOST_ROW_MAJOR, "row_major", "blocks row by row"},
    {COGPU_GHOST_LEADER, "leader", "sizes before blocks"},
    {COGPU_GHOST_TRAILER, "trailer", "last bytes repeated after blocks"},
    {COGPU_GHOST_MASK_INTERLEAVED, "mask_interleaved", "masks beside their blocks"},
    {COGPU_GHOST_TILE_INTERLEAVED, "tile_interleaved", "bands of a block beside each other"},
    {COGPU_GHOST_BROKEN, "broken", "broken: the file was edited since, no promise holds"},
    {0, NULL, NULL},
};

/* ---- COG or not, as far as it is cheap to see -------------------------------------------------
 */

/* The smallest offset among the first blocks of a directory; UINT64_MAX where none has data. */
static uint64_t first_block_offset(const cogpu_file *file, uint32_t directory) {
    enum { STRIP_OFFSETS = 273, TILE_OFFSETS = 324, LOOKED_AT = 256 };
    uint64_t first = UINT64_MAX;
    cogpu_tag tag = COGPU_TAG_INIT;
    for (uint32_t i = 0; cogpu_tag_info(file, directory, i, &tag, NULL) == COGPU_OK; i++) {
        cogpu_tag_value value;
        if ((tag.id != STRIP_OFFSETS && tag.id != TILE_OFFSETS) ||
            cogpu_tag_value_read(file, directory, &tag, LOOKED_AT, &value, NULL) != COGPU_OK)
            continue;
        for (uint32_t k = 0; k < value.count; k++) {
            uint64_t offset = cogpu_tag_value_unsigned(&value, k);
            if (offset > 0 && offset < first) /* 0: the block has no data */
                first = offset;
        }
    }
    return first;
}

static bool directories_come_first(const cogpu_file *file) {
    uint64_t last_directory = 0, first_block = UINT64_MAX;
    cogpu_directory directory = COGPU_DIRECTORY_INIT;
    for (uint32_t i = 0; cogpu_directory_info(file, i, &directory, NULL) == COGPU_OK; i++) {
        uint64_t block = first_block_offset(file, i);
        if (directory.offset > last_directory)
            last_directory = directory.offset;
        if (block < first_block)
            first_block = block;
    }
    return last_directory < first_block;
}

static void detect_cog(cogpu_details *details) {
    const cogpu_image *image = &details->image;
    details->cog = false;
    if (details->is_mosaic) {
        details->cog_reason = "a mosaic of other files";
        return;
    }
    if (image->ghost & COGPU_GHOST_BROKEN) {
        details->cog_reason = "the file was edited after it was written as a COG";
    } else if (image->ghost & COGPU_GHOST_IFDS_BEFORE_DATA) {
        details->cog = true;
        details->cog_reason = "its ghost area says so";
    } else if (image->layout != COGPU_LAYOUT_TILES) {
        details->cog_reason = "striped, not tiled";
    } else if (!directories_come_first(details->file)) {
        details->cog_reason = "a directory follows data";
    } else {
        details->cog = true;
        details->cog_reason = "tiled, directories before data";
    }
}

/* ---- gathering ---------------------------------------------------------------------------------
 */

static void find_bounds(const cogpu_image *image, double bounds[4]) {
    const double *t = image->transform;
    bounds[0] = bounds[1] = INFINITY;
    bounds[2] = bounds[3] = -INFINITY;
    for (int corner = 0; corner < 4; corner++) {
        double column = corner & 1 ? image->width : 0, row = corner & 2 ? image->height : 0;
        double x = t[0] + column * t[1] + row * t[2], y = t[3] + column * t[4] + row * t[5];
        bounds[0] = fmin(bounds[0], x);
        bounds[1] = fmin(bounds[1], y);
        bounds[2] = fmax(bounds[2], x);
        bounds[3] = fmax(bounds[3], y);
    }
}

static cogpu_status gather_wkt(cogpu_details *details, cogpu_error *error) {
    size_t needed = 0;
    TRY(cogpu_crs_wkt(details->file, details->number, NULL, NULL, 0, &needed, error));
    details->wkt = malloc(needed);
    if (!details->wkt)
        return cogpu_refuse(error, COGPU_OUT_OF_MEMORY, "no memory for the WKT");
    return cogpu_crs_wkt(details->file, details->number, NULL, details->wkt, needed, &needed,
                         error);
}

static cogpu_status gather_details(const cogpu_arguments *arguments, const cogpu_input *input,
                                   cogpu_details *details, cogpu_error *error) {
    *details = (cogpu_details){.file = input->file,
                               .name = input->name,
                               .number = arguments->image,
                               .tags = arguments->tags,
                               .is_mosaic = cogpu_sources_exist(input->file),
                               .image = COGPU_IMAGE_INIT,
                               .first_band = COGPU_BAND_INIT,
                               .crs = COGPU_CRS_INIT};
    TRY(cogpu_image_info(input->file, arguments->image, &details->image, error));
    TRY(cogpu_band_info(input->file, arguments->image, 1, &details->first_band, error));
    find_bounds(&details->image, details->bounds);
    details->has_crs =
        cogpu_crs_info(input->file, arguments->image, &details->crs, error) == COGPU_OK;
    if (gather_wkt(details, &details->wkt_error) != COGPU_OK) {
        free(details->wkt);
        details->wkt = NULL;
    }
    detect_cog(details);
    return COGPU_OK;
}

/* ---- the command -------------------------------------------------------------------------------
 */

static cogpu_status print_info_json(const cogpu_details *details, cogpu_error *error) {
    cogpu_json json = {0};
    cogpu_json_open(&json, NULL, '{');
    cogpu_status status = cogpu_info_add_json(details, &json, error);
    cogpu_json_close(&json);
    if (status == COGPU_OK && json.failed)
        status = cogpu_refuse(error, COGPU_OUT_OF_MEMORY, "no memory for the JSON text");
    if (status == COGPU_OK)
        cogpu_json_print(&json);
    cogpu_json_free(&json);
    return status;
}

static cogpu_status print_details(const cogpu_arguments *arguments, const cogpu_details *details,
                                  cogpu_error *error) {
    if (arguments->json)
        return print_info_json(details, error);
    if (!arguments->wkt)
        return cogpu_info_print_text(details, error);
    if (!details->wkt) {
        *error = details->wkt_error;
        return error->status;
    }
    puts(details->wkt);
    return COGPU_OK;
}

static int show_input(const cogpu_arguments *arguments, const cogpu_input *input, int index) {
    cogpu_details details;
    cogpu_error error;
    int code = EXIT_DONE;
    if (index > 0 && !arguments->json && !arguments->wkt)
        putchar('\n');
    if (gather_details(arguments, input, &details, &error) != COGPU_OK ||
        print_details(arguments, &details, &error) != COGPU_OK)
        code = cogpu_report_error(input->name, &error);
    free(details.wkt);
    return code;
}

const cogpu_command cogpu_cmd_info = {
    .name = "info",
    .operands = "FILE...",
    .files = 1,
    .has_more_files = true,
    .options = OPTION_IMAGE | OPTION_TAGS | OPTION_WKT | OPTION_NETWORK | OPTION_JSON,
    .summary = "describe files",
    .details =
        "Describes one image of each file: size, sample type, blocks, codec, overview levels,\n"
        "bands, mask, nodata, georeferencing, CRS and metadata. It reads no pixels.\n"
        "\"cog\" is a quick check: the ghost area says so, or the image is tiled and all\n"
        "directories come before the data. See cogpu check for a full one.",
    .run_each = show_input,
};
