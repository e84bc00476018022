/*
 * Prints the details of an image as text: short, aligned, in groups that
 * are left out where they would be empty.
 */
#include "info.h"
#include "report.h"
#include "sources.h"
#include "tag_value.h"
#include "text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_LIMIT = 200 }; /* characters of a text that are shown; JSON has all of them */

static void print_field(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void print_field(const char *name, const char *format, ...) {
    va_list values;
    printf("  %-13s ", name);
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
    putchar('\n');
}

static void text_field(const char *name, const char *text) {
    printf("  %-13s ", name);
    cogpu_text_print(stdout, text, TEXT_LIMIT);
    putchar('\n');
}

static const char *plural_ending(uint64_t count) {
    return count == 1 ? "" : "s";
}

/* ---- the image ---------------------------------------------------------------------------------
 */

static const char *photometric_name(uint32_t photometric) {
    static const char *const names[] = {"min is white", "min is black", "RGB",   "palette", "mask",
                                        "separated",    "YCbCr",        "other", "CIELab"};
    if (photometric < sizeof names / sizeof names[0])
        return names[photometric];
    return photometric == 32844 ? "LogL" : photometric == 32845 ? "LogLuv" : "other";
}

static const char *predictor_name(uint32_t predictor) {
    return predictor == 2   ? ", predictor 2 (horizontal)"
           : predictor == 3 ? ", predictor 3 (floating point)"
                            : "";
}

static void print_samples(const cogpu_image *image) {
    print_field("size", "%" PRIu32 " x %" PRIu32 " pixels, %" PRIu32 " band%s", image->width,
                image->height, image->bands, plural_ending(image->bands));
    if (image->bits == cogpu_type_bytes(image->type) * 8)
        print_field("samples", "%s", cogpu_type_name(image->type));
    else
        print_field("samples", "%s, stored in %" PRIu32 " bit%s", cogpu_type_name(image->type),
                    image->bits, plural_ending(image->bits));
    print_field("photometric", "%s (%" PRIu32 ")", photometric_name(image->photometric),
                image->photometric);
    if (image->palette)
        print_field("palette", "%" PRIu32 " colours", image->palette_entries);
    if (image->orientation != 1)
        print_field("orientation", "%" PRIu32 " (pixels are read as stored)", image->orientation);
}

static void print_storage(const cogpu_details *details) {
    const cogpu_image *image = &details->image;
    if (details->is_mosaic) {
        cogpu_source_counts counts = cogpu_sources_count(details->file);
        print_field("sources", "%" PRIu64 ": %" PRIu64 " reprojected, %" PRIu64 " left out%s",
                    counts.all, counts.reprojected, counts.skipped,
                    cogpu_report_get()->verbose ? "" : "; --verbose lists them");
        return;
    }
    print_field("blocks", "%" PRIu64 " %s%s of %" PRIu32 " x %" PRIu32 ", %s", image->blocks,
                image->layout == COGPU_LAYOUT_TILES ? "tile" : "strip",
                plural_ending(image->blocks), image->block_width, image->block_height,
                image->bands == 1                            ? "one band"
                : image->interleave == COGPU_INTERLEAVE_BAND ? "band interleaved"
                                                             : "pixel interleaved");
    print_field("codec", "%s (%" PRIu32 ")%s", image->codec, image->compression,
                predictor_name(image->predictor));
    print_field("file", "%s, %s endian%s", image->bigtiff ? "BigTIFF" : "classic TIFF",
                image->big_endian ? "big" : "little",
                image->fill_order == 2 ? ", bits of each byte reversed" : "");
}

static void print_ghost(uint32_t ghost) {
    const char *before = "";
    if (!(ghost & COGPU_GHOST_PRESENT))
        return;
    printf("  %-13s ", "ghost area");
    for (const cogpu_ghost_word *word = cogpu_ghost_words; word->bit; word++) {
        if (ghost & word->bit) {
            printf("%s%s", before, word->meaning);
            before = "; ";
        }
    }
    printf("%s\n", before[0] ? "" : "no promise that we know");
}

static void print_mask(const cogpu_image *image, const cogpu_band *band) {
    static const char *const meanings[] = {"none: all pixels are valid", "mask directory", "nodata",
                                           "alpha band"};
    print_field("mask", "%s", meanings[image->mask_source]);
    if (band->nodata) {
        printf("  %-13s ", "nodata");
        cogpu_text_print(stdout, band->nodata, TEXT_LIMIT);
        puts(band->nodata_matches ? "" : " (no sample of this type can equal it)");
    }
    if (image->alpha_band)
        print_field("alpha", "band %" PRIu32 "%s", image->alpha_band,
                    image->premultiplied ? ", colours are multiplied by it" : "");
}

static void print_sidecars(const cogpu_file *file) {
    const char *path;
    for (uint32_t i = 0; (path = cogpu_sidecar_path(file, i)) != NULL; i++) {
        printf("  %-13s ", i ? "" : "sidecars");
        cogpu_text_print(stdout, path, SIZE_MAX);
        putchar('\n');
    }
}

static void print_image(const cogpu_details *details) {
    const cogpu_image *image = &details->image;
    cogpu_text_print(stdout, details->name, SIZE_MAX);
    putchar('\n');
    uint32_t images = cogpu_image_count(details->file);
    if (images > 1)
        print_field("image", "%" PRIu32 " of 0 to %" PRIu32 "; --image N shows another",
                    details->number, images - 1);
    print_samples(image);
    print_storage(details);
    if (!details->is_mosaic)
        print_field("cog", "%s: %s", details->cog ? "yes" : "no", details->cog_reason);
    print_ghost(image->ghost);
    print_sidecars(details->file);
    print_mask(image, &details->first_band);
    if (image->description)
        text_field("description", image->description);
}

/* ---- georeferencing-----------------------------------------------------------------------------
 */

static void print_transform(const cogpu_details *details) {
    const double *t = details->image.transform, *b = details->bounds;
    char n[6][NUMBER_TEXT];
    for (int i = 0; i < 6; i++)
        cogpu_text_number(t[i], n[i]);
    print_field("origin", "%s, %s", n[0], n[3]);
    if (t[2] == 0 && t[4] == 0)
        print_field("pixel", "%s x %s", n[1], n[5]);
    else
        print_field("pixel", "x by column %s, row %s; y by column %s, row %s", n[1], n[2], n[4],
                    n[5]);
    for (int i = 0; i < 4; i++)
        cogpu_text_number(b[i], n[i]);
    print_field("bounds", "%s, %s, %s, %s", n[0], n[1], n[2], n[3]);
}

static void print_crs(const cogpu_details *details) {
    const cogpu_crs *crs = &details->crs;
    char epoch[NUMBER_TEXT];
    if (crs->code)
        print_field("CRS", "%s:%" PRIu32 "%s%s", crs->authority, crs->code,
                    crs->model[0] ? ", " : "", crs->model);
    else
        print_field("CRS", "without a code%s%s", crs->model[0] ? ", " : "", crs->model);
    if (crs->external && !details->is_mosaic)
        print_field("", "stated by a sidecar");
    if (crs->name[0])
        text_field("name", crs->name);
    if (crs->vertical)
        print_field("vertical", "EPSG:%" PRIu32, crs->vertical);
    if (crs->epoch != 0)
        print_field("epoch", "%s", cogpu_text_number(crs->epoch, epoch));
    if (!details->wkt)
        text_field("wkt", details->wkt_error.message);
}

static cogpu_status print_gcps(const cogpu_details *details, cogpu_error *error) {
    enum { SHOWN = 8 };
    const cogpu_image *image = &details->image;
    print_field("GCPs", "%" PRIu32, image->gcp_count);
    for (uint32_t i = 0; i < image->gcp_count && i < SHOWN; i++) {
        cogpu_gcp gcp = COGPU_GCP_INIT;
        char n[5][NUMBER_TEXT];
        TRY(cogpu_gcp_info(details->file, details->number, i, &gcp, error));
        print_field("", "column %s, row %s: %s, %s, %s", cogpu_text_number(gcp.column, n[0]),
                    cogpu_text_number(gcp.row, n[1]), cogpu_text_number(gcp.x, n[2]),
                    cogpu_text_number(gcp.y, n[3]), cogpu_text_number(gcp.z, n[4]));
    }
    if (image->gcp_count > SHOWN)
        print_field("", "... --json shows all");
    return COGPU_OK;
}

static cogpu_status print_georeferencing(const cogpu_details *details, cogpu_error *error) {
    const cogpu_image *image = &details->image;
    if (!image->has_transform && !details->has_crs && !image->gcp_count && !image->rpc)
        return COGPU_OK;
    puts("\ngeoreferencing");
    if (image->has_transform)
        print_transform(details);
    if (image->pixel_is_point)
        print_field("raster type", "PixelIsPoint; coordinates here are those of pixel corners");
    if (details->has_crs)
        print_crs(details);
    if (image->gcp_count)
        TRY(print_gcps(details, error));
    if (image->rpc)
        print_field("RPC", "rational polynomials, 92 numbers; --json shows them");
    return COGPU_OK;
}

/* ---- levels, bands, metadata -------------------------------------------------------------------
 */

/* They are computed from the sources. */
static cogpu_status print_virtual_levels(const cogpu_details *details, cogpu_error *error) {
    puts("\nlevels         size");
    for (uint32_t i = 0; i < details->image.levels; i++) {
        cogpu_level level = COGPU_LEVEL_INIT;
        TRY(cogpu_level_info(details->file, details->number, i, &level, error));
        printf("  %-12" PRIu32 " %" PRIu32 " x %" PRIu32 "\n", i, level.width, level.height);
    }
    return COGPU_OK;
}

static void print_sources(const cogpu_details *details) {
    if (!details->is_mosaic || !cogpu_report_get()->verbose)
        return;
    puts("\nsources");
    cogpu_sources_print(details->file);
}

static cogpu_status print_levels(const cogpu_details *details, cogpu_error *error) {
    if (details->is_mosaic)
        return print_virtual_levels(details, error);
    puts("\nlevels         size             blocks           codec         directory");
    for (uint32_t i = 0; i < details->image.levels; i++) {
        cogpu_level level = COGPU_LEVEL_INIT;
        char size[32], blocks[32], predictor[16] = "";
        TRY(cogpu_level_info(details->file, details->number, i, &level, error));
        snprintf(size, sizeof size, "%" PRIu32 " x %" PRIu32, level.width, level.height);
        snprintf(blocks, sizeof blocks, "%" PRIu32 " x %" PRIu32, level.block_width,
                 level.block_height);
        if (level.predictor > 1)
            snprintf(predictor, sizeof predictor, " %" PRIu32, level.predictor);
        printf("  %-12" PRIu32 " %-16s %-16s %-10s %-2s %" PRIu32 "%s", i, size, blocks,
               level.codec, predictor, level.directory, level.external ? " of the .ovr file" : "");
        if (level.has_mask)
            printf(", mask %" PRIu32 "%s", level.mask_directory,
                   level.mask_external ? " of the .msk file" : "");
        putchar('\n');
    }
    return COGPU_OK;
}

static cogpu_status print_bands(const cogpu_details *details, cogpu_error *error) {
    enum { SHOWN = 64 };
    puts("\nbands");
    for (uint32_t i = 1; i <= details->image.bands && i <= SHOWN; i++) {
        cogpu_band band = COGPU_BAND_INIT;
        char n[2][NUMBER_TEXT];
        TRY(cogpu_band_info(details->file, details->number, i, &band, error));
        printf("  %-12" PRIu32 "  %s", i, band.interpretation);
        if (band.description) {
            printf(", ");
            cogpu_text_print(stdout, band.description, TEXT_LIMIT);
        }
        if (band.unit) {
            printf(", in ");
            cogpu_text_print(stdout, band.unit, TEXT_LIMIT);
        }
        const char *of_first = details->first_band.nodata;
        if (band.nodata && strcmp(band.nodata, of_first ? of_first : "") != 0) {
            printf(", nodata ");
            cogpu_text_print(stdout, band.nodata, TEXT_LIMIT);
        }
        if (band.has_scale)
            printf(", stored x %s + %s", cogpu_text_number(band.scale, n[0]),
                   cogpu_text_number(band.offset, n[1]));
        putchar('\n');
    }
    if (details->image.bands > SHOWN)
        puts("  ... --json shows all");
    return COGPU_OK;
}

static void print_item(const cogpu_metadata_item *item) {
    printf("  ");
    if (item->domain[0]) {
        cogpu_text_print(stdout, item->domain, TEXT_LIMIT);
        putchar(':');
    }
    cogpu_text_print(stdout, item->name, TEXT_LIMIT);
    if (item->band > 0)
        printf(" (band %" PRId32 ")", item->band);
    printf(" = ");
    cogpu_text_print(stdout, item->value, TEXT_LIMIT);
    putchar('\n');
}

static cogpu_status print_metadata(const cogpu_details *details, cogpu_error *error) {
    if (details->image.metadata_count > 0)
        puts("\nmetadata");
    for (uint32_t i = 0; i < details->image.metadata_count; i++) {
        cogpu_metadata_item item = COGPU_METADATA_ITEM_INIT;
        TRY(cogpu_metadata_info(details->file, details->number, i, &item, error));
        print_item(&item);
    }
    return COGPU_OK;
}

static void print_warnings(const char *lines) {
    char line[LINE_TEXT];
    if (lines)
        puts("\nwarnings");
    while (lines && cogpu_text_line(&lines, line)) {
        printf("  ");
        cogpu_text_print(stdout, line, SIZE_MAX);
        putchar('\n');
    }
}

/* ---- tags and GeoKeys --------------------------------------------------------------------------
 */

static void print_key_value(const cogpu_geokey *key) {
    char text[NUMBER_TEXT];
    if (key->kind == COGPU_GEOKEY_TEXT) {
        cogpu_text_print(stdout, key->text, TEXT_LIMIT);
        return;
    }
    for (uint32_t i = 0; i < key->count; i++) {
        double number = key->kind == COGPU_GEOKEY_SHORT ? key->shorts[i] : key->doubles[i];
        printf("%s%s", i > 0 ? " " : "", cogpu_text_number(number, text));
    }
}

static cogpu_status print_geokeys(const cogpu_details *details, cogpu_error *error) {
    if (details->image.geokey_count > 0)
        puts("\nGeoKeys");
    for (uint32_t i = 0; i < details->image.geokey_count; i++) {
        cogpu_geokey key = COGPU_GEOKEY_INIT;
        TRY(cogpu_geokey_info(details->file, details->number, i, &key, error));
        printf("  %5" PRIu32 "  %-28s ", key.id, key.name);
        print_key_value(&key);
        putchar('\n');
    }
    return COGPU_OK;
}

static void print_tag(const cogpu_file *file, uint32_t directory, const cogpu_tag *tag) {
    enum { SHOWN = 8 };
    cogpu_tag_value value;
    cogpu_error error;
    printf("  %5" PRIu32 "  %-28s %-9s %8" PRIu64 "  ", tag->id, tag->name,
           cogpu_tag_type_name(tag->type), tag->count);
    if (cogpu_tag_value_read(file, directory, tag, SHOWN, &value, &error) != COGPU_OK) {
        putchar('(');
        cogpu_text_print(stdout, error.message, SIZE_MAX);
        putchar(')');
    } else {
        cogpu_tag_value_print(&value);
        if (value.count > 0 && value.count < tag->count)
            printf(" ...");
    }
    putchar('\n');
}

static cogpu_status print_directories(const cogpu_details *details, cogpu_error *error) {
    uint32_t count = 1;
    for (uint32_t i = 0; i < count && !details->is_mosaic; i++) {
        cogpu_directory directory = COGPU_DIRECTORY_INIT;
        TRY(cogpu_directory_info(details->file, i, &directory, error));
        count = directory.directory_count;
        printf("\ndirectory %" PRIu32 " at %" PRIu64, i, directory.offset);
        if (directory.parent >= 0)
            printf(", below directory %" PRId32, directory.parent);
        putchar('\n');
        for (uint32_t k = 0; k < directory.tag_count; k++) {
            cogpu_tag tag = COGPU_TAG_INIT;
            TRY(cogpu_tag_info(details->file, i, k, &tag, error));
            print_tag(details->file, i, &tag);
        }
    }
    return COGPU_OK;
}

cogpu_status cogpu_info_print_text(const cogpu_details *details, cogpu_error *error) {
    print_image(details);
    TRY(print_georeferencing(details, error));
    TRY(print_levels(details, error));
    TRY(print_bands(details, error));
    TRY(print_metadata(details, error));
    print_sources(details);
    if (details->tags) {
        TRY(print_geokeys(details, error));
        TRY(print_directories(details, error));
    }
    print_warnings(details->image.warning);
    return COGPU_OK;
}
