/*
 * The profile of an output file: the options, and for the rest what the input says of itself. That
 * is moved with the window, scaled with the level and renumbered by the selected bands. What no
 * longer holds is left out: statistics of other pixels, a tiling scheme of other blocks.
 */
#include "profile.h"

#include "convert_samples.h"
#include "metadata.h"
#include "name_lists.h"
#include "report.h"
#include "sample.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static cogpu_status no_memory(cogpu_error *error) {
    return cogpu_refuse(error, COGPU_OUT_OF_MEMORY, "no memory for the description of the image");
}

static const char *band_interpretation(const cogpu_selection *selection, uint32_t index) {
    cogpu_band band = {.struct_size = sizeof(cogpu_band), .interpretation = ""};
    uint32_t number = cogpu_selection_band(selection, index);
    cogpu_status status =
        cogpu_band_info(selection->file, selection->request.image, number, &band, NULL);
    return status == COGPU_OK ? band.interpretation : "";
}

/* ---- georeferencing ---------------------------------------------------------------------------
 */

static bool is_invertible(const double t[6]) {
    double area = t[1] * t[5] - t[2] * t[4];
    return isfinite(t[0]) && isfinite(t[3]) && isfinite(area) && area != 0;
}

/* Pixels of the new file to those of the level. */
static double width_ratio(const cogpu_selection *selection) {
    return (double)selection->written_width / selection->request.width;
}

static double height_ratio(const cogpu_selection *selection) {
    return (double)selection->written_height / selection->request.height;
}

static void set_bounds(const cogpu_selection *selection, const double bounds[4],
                       double transform[6]) {
    const double made[6] = {bounds[0], (bounds[2] - bounds[0]) / selection->written_width,
                            0,         bounds[3],
                            0,         (bounds[1] - bounds[3]) / selection->written_height};
    memcpy(transform, made, sizeof made);
}

/* Options replace all georeferencing of the input. */
static bool set_given_transform(const cogpu_selection *selection, const cogpu_arguments *arguments,
                                cogpu_profile *profile) {
    profile->has_transform = arguments->has_transform || arguments->has_bounds;
    if (arguments->has_bounds)
        set_bounds(selection, arguments->bounds, profile->transform);
    else if (arguments->has_transform)
        memcpy(profile->transform, arguments->transform, sizeof profile->transform);
    return profile->has_transform;
}

static void set_transform(const cogpu_selection *selection, const cogpu_arguments *arguments,
                          cogpu_profile *profile) {
    const double *t = selection->level.transform;
    double x = selection->request.x, y = selection->request.y;
    profile->pixel_is_point = selection->image.pixel_is_point;
    if (set_given_transform(selection, arguments, profile))
        return;
    profile->has_transform = selection->level.has_transform && is_invertible(t);
    if (!profile->has_transform)
        return;
    profile->transform[0] = t[0] + x * t[1] + y * t[2];
    profile->transform[1] = t[1] / width_ratio(selection);
    profile->transform[2] = t[2] / height_ratio(selection);
    profile->transform[3] = t[3] + x * t[4] + y * t[5];
    profile->transform[4] = t[4] / width_ratio(selection);
    profile->transform[5] = t[5] / height_ratio(selection);
}

static cogpu_status copy_gcps(const cogpu_selection *selection, cogpu_output_profile *taken,
                              cogpu_error *error) {
    const cogpu_image *image = &selection->image;
    const cogpu_level *level = &selection->level;
    double across = (double)level->width / image->width;
    double down = (double)level->height / image->height;
    if (image->gcp_count == 0 || taken->profile.has_transform)
        return COGPU_OK;
    taken->gcps = malloc(image->gcp_count * sizeof *taken->gcps);
    if (!taken->gcps)
        return no_memory(error);
    for (uint32_t i = 0; i < image->gcp_count; i++) {
        cogpu_gcp gcp = COGPU_GCP_INIT;
        TRY(cogpu_gcp_info(selection->file, selection->request.image, i, &gcp, error));
        gcp.column = (gcp.column * across - selection->request.x) * width_ratio(selection);
        gcp.row = (gcp.row * down - selection->request.y) * height_ratio(selection);
        taken->gcps[i] = gcp;
    }
    taken->profile.gcps = taken->gcps;
    taken->profile.gcp_count = image->gcp_count;
    return COGPU_OK;
}

/* A coordinate of a pixel's centre, moved by `shift` and then scaled. */
static double move_centre(double coordinate, double shift, double ratio) {
    return (coordinate - shift + 0.5) * ratio - 0.5;
}

/* Its offsets are those of pixel centres, which scaling moves. */
static void copy_rpc(const cogpu_selection *selection, cogpu_output_profile *taken) {
    enum { ROW_OFFSET = 2, COLUMN_OFFSET = 3, ROW_SCALE = 7, COLUMN_SCALE = 8 };
    const cogpu_image *image = &selection->image;
    const cogpu_level *level = &selection->level;
    double across = (double)level->width / image->width;
    double down = (double)level->height / image->height;
    if (!image->rpc)
        return;
    double *rpc = taken->rpc;
    memcpy(rpc, image->rpc, sizeof taken->rpc);
    rpc[ROW_OFFSET] = move_centre(move_centre(rpc[ROW_OFFSET], 0, down), selection->request.y,
                                  height_ratio(selection));
    rpc[COLUMN_OFFSET] = move_centre(move_centre(rpc[COLUMN_OFFSET], 0, across),
                                     selection->request.x, width_ratio(selection));
    rpc[ROW_SCALE] *= down * height_ratio(selection);
    rpc[COLUMN_SCALE] *= across * width_ratio(selection);
    taken->profile.rpc = rpc;
}

/* A CRS that a sidecar states is written as WKT: the GeoKeys state another, or none. */
static cogpu_status set_crs_text(const cogpu_selection *selection, const cogpu_crs *crs,
                                 cogpu_output_profile *taken, cogpu_error *error) {
    uint32_t image = selection->request.image;
    cogpu_context *context = selection->request.context;
    size_t bytes;
    TRY(cogpu_crs_wkt(selection->file, image, context, NULL, 0, &bytes, error));
    taken->crs = malloc(bytes);
    if (!taken->crs)
        return no_memory(error);
    TRY(cogpu_crs_wkt(selection->file, image, context, taken->crs, bytes, &bytes, error));
    taken->profile.crs = taken->crs;
    taken->profile.epoch = crs->epoch;
    return COGPU_OK;
}

static cogpu_status copy_keys(const cogpu_selection *selection, const cogpu_arguments *arguments,
                              cogpu_output_profile *taken, cogpu_error *error) {
    uint32_t count = selection->image.geokey_count;
    if (arguments->profile.crs || arguments->without_crs)
        return COGPU_OK;
    cogpu_crs crs = COGPU_CRS_INIT;
    if (cogpu_crs_info(selection->file, selection->request.image, &crs, NULL) == COGPU_OK &&
        crs.external)
        return set_crs_text(selection, &crs, taken, error);
    taken->keys = calloc(count + 1u, sizeof *taken->keys);
    if (!taken->keys)
        return no_memory(error);
    for (uint32_t i = 0; i < count; i++) {
        cogpu_geokey *key = &taken->keys[taken->profile.geokey_count];
        *key = (cogpu_geokey)COGPU_GEOKEY_INIT;
        TRY(cogpu_geokey_info(selection->file, selection->request.image, i, key, error));
        taken->profile.geokey_count += key->id > 0; /* there is no key 0 */
    }
    taken->profile.geokeys = taken->keys;
    return COGPU_OK;
}

/* ---- colours ----------------------------------------------------------------------------------
 */

static bool is_rgb(const cogpu_selection *selection) {
    static const char *const names[] = {"red", "green", "blue"};
    for (uint32_t i = 0; i < 3; i++)
        if (i >= selection->bands || strcmp(band_interpretation(selection, i), names[i]) != 0)
            return false;
    return true;
}

static bool has_all_bands(const cogpu_selection *selection) {
    if (selection->bands != selection->image.bands)
        return false;
    for (uint32_t i = 0; i < selection->bands; i++)
        if (cogpu_selection_band(selection, i) != i + 1)
            return false;
    return true;
}

/* Bands that --band selects from grey or RGB get the default for their number; bands of other
 * colours must not be called RGB. */
static cogpu_photometric photometric_of_part(const cogpu_selection *selection) {
    uint32_t stored = selection->image.photometric;
    if (stored == 0 && cogpu_selection_band(selection, 0) == 1)
        return COGPU_PHOTOMETRIC_MIN_IS_WHITE;
    bool is_plain = stored == COGPU_PHOTOMETRIC_MIN_IS_BLACK || stored == COGPU_PHOTOMETRIC_RGB ||
                    stored == COGPU_PHOTOMETRIC_PALETTE;
    return is_plain ? COGPU_PHOTOMETRIC_DEFAULT : COGPU_PHOTOMETRIC_MIN_IS_BLACK;
}

/* Readers convert bytes of CMYK and of YCbCr: bytes that were read unconverted keep no such
 * interpretation. */
static cogpu_photometric photometric_of(const cogpu_selection *selection) {
    const cogpu_image *image = &selection->image;
    uint32_t stored = image->photometric;
    bool was_rgb = stored == COGPU_PHOTOMETRIC_RGB || stored == COGPU_PHOTOMETRIC_YCBCR ||
                   stored == COGPU_PHOTOMETRIC_CMYK;
    if (was_rgb && is_rgb(selection)) /* pixels of JPEG's colours, and of some inks, come as RGB */
        return selection->written == COGPU_TYPE_U8 && selection->bands == 3
                   ? COGPU_PHOTOMETRIC_DEFAULT
                   : COGPU_PHOTOMETRIC_RGB;
    if (!has_all_bands(selection))
        return photometric_of_part(selection);
    if (stored == 0)
        return COGPU_PHOTOMETRIC_MIN_IS_WHITE;
    bool is_byte = cogpu_type_bytes(selection->written) == 1;
    bool kept = (stored == COGPU_PHOTOMETRIC_CMYK && selection->bands >= 4 && !is_byte) ||
                (stored == COGPU_PHOTOMETRIC_YCBCR && selection->bands == 3 && !is_byte) ||
                (stored == COGPU_PHOTOMETRIC_CIELAB && selection->bands >= 3);
    return kept ? (cogpu_photometric)stored : COGPU_PHOTOMETRIC_MIN_IS_BLACK;
}

static void set_alpha(const cogpu_selection *selection, cogpu_profile *profile) {
    for (uint32_t i = 1; i < selection->bands; i++)
        if (cogpu_selection_band(selection, i) == selection->image.alpha_band)
            profile->alpha_band = i + 1;
    bool among_colours = profile->photometric == COGPU_PHOTOMETRIC_RGB && profile->alpha_band <= 3;
    if (among_colours)
        profile->alpha_band = 0;
    profile->premultiplied = profile->alpha_band && selection->image.premultiplied;
}

/* A palette belongs to the values that it gives colours to. */
static void set_colours(const cogpu_selection *selection, const cogpu_arguments *arguments,
                        cogpu_profile *profile) {
    const cogpu_image *image = &selection->image;
    bool fits = (selection->written == COGPU_TYPE_U8 || selection->written == COGPU_TYPE_U16) &&
                !arguments->scale.is_given;
    bool has_indices = cogpu_selection_band(selection, 0) == 1; /* the palette is of band 1 */
    if (image->palette && image->palette_entries && has_indices && fits) {
        profile->palette = image->palette;
        profile->palette_entries = image->palette_entries;
        profile->photometric = COGPU_PHOTOMETRIC_PALETTE;
    } else {
        profile->photometric = photometric_of(selection);
    }
    set_alpha(selection, profile);
}

/* ---- nodata and metadata ----------------------------------------------------------------------
 */

/* The shortest text that reads back as the same number. */
static void format_number(double value, cogpu_digits text) {
    int digits = 15;
    do
        snprintf(text, sizeof(cogpu_digits), "%.*g", digits, value);
    while (digits++ < 17 && strtod(text, NULL) != value);
}

/* As samples of that value are converted: gdal_translate clamps both. */
static double convert_nodata(cogpu_type type, double value) {
    if (type == COGPU_TYPE_F32)
        return (float)value;
    bool is_integer = !cogpu_sample_is_float(type) && !cogpu_sample_is_complex(type);
    return is_integer ? cogpu_sample_clamp(type, value) : value;
}

static bool same_nodata(const cogpu_band *one, const cogpu_band *other) {
    bool is_same = one->nodata_value == other->nodata_value ||
                   (isnan(one->nodata_value) && isnan(other->nodata_value));
    return one->nodata_matches == other->nodata_matches && is_same &&
           one->nodata_i64 == other->nodata_i64 && one->nodata_u64 == other->nodata_u64;
}

/* The first of the bands selected; its nodata counts if all have the same, since a GeoTIFF has one
 * for all. */
static cogpu_status find_nodata(const cogpu_selection *selection, cogpu_output_profile *taken,
                                cogpu_band *first, cogpu_error *error) {
    cogpu_band band = COGPU_BAND_INIT;
    for (uint32_t i = 0; i < selection->bands; i++) {
        TRY(cogpu_band_info(selection->file, selection->request.image,
                            cogpu_selection_band(selection, i), &band, error));
        if (i == 0)
            *first = band;
        else if (!same_nodata(first, &band))
            taken->has_mixed_nodata = true;
    }
    return COGPU_OK;
}

/* The value, not the text: readers accept texts that may not be written. A value that no sample can
 * have is left out. */
static cogpu_status set_nodata(const cogpu_selection *selection, const cogpu_arguments *arguments,
                               cogpu_output_profile *taken, cogpu_error *error) {
    cogpu_band band = COGPU_BAND_INIT;
    if (taken->profile.nodata || arguments->without_nodata)
        return COGPU_OK;
    TRY(find_nodata(selection, taken, &band, error));
    if (!band.nodata || !band.nodata_matches || taken->has_mixed_nodata)
        return COGPU_OK;
    if (selection->written != selection->image.type)
        format_number(convert_nodata(selection->written, band.nodata_value), taken->nodata);
    else if (selection->type == COGPU_TYPE_I64)
        snprintf(taken->nodata, sizeof taken->nodata, "%" PRId64, band.nodata_i64);
    else if (selection->type == COGPU_TYPE_U64)
        snprintf(taken->nodata, sizeof taken->nodata, "%" PRIu64, band.nodata_u64);
    else
        format_number(band.nodata_value, taken->nodata);
    taken->profile.nodata = taken->nodata;
    return COGPU_OK;
}

static cogpu_codec codec_of(const cogpu_profile *profile) {
    cogpu_codec codec = COGPU_CODEC_INIT;
    cogpu_find_codec(profile->codec ? profile->codec : "deflate", &codec);
    return codec;
}

/* Packed samples stay packed, unless something of the new file needs whole bytes. */
static void set_bits(const cogpu_selection *selection, const cogpu_arguments *arguments,
                     cogpu_profile *profile) {
    uint32_t bits = selection->image.bits;
    bool is_packed = (profile->type == COGPU_TYPE_U8 && bits < 8) ||
                     (profile->type == COGPU_TYPE_U16 && bits > 8 && bits < 16);
    bool is_changed = arguments->scale.is_given || selection->written != selection->image.type;
    if (profile->bits || !is_packed || is_changed)
        return;
    uint32_t values = 1u << bits;
    bool fits = profile->predictor <= 1 && profile->palette_entries <= values &&
                !(profile->nodata && strtod(profile->nodata, NULL) >= values);
    /* Codecs that may change pixels store whole samples. */
    cogpu_codec codec = codec_of(profile);
    if (fits && !codec.is_lossy && !codec.has_max_z_error)
        profile->bits = bits;
}

bool cogpu_profile_is_lossy(const cogpu_profile *profile) {
    return (codec_of(profile).is_lossy && !profile->lossless) || profile->max_z_error > 0;
}

/* Whether what is known of all valid pixels holds for the new file too. */
static bool keeps_statistics(const cogpu_selection *selection, const cogpu_arguments *arguments) {
    const cogpu_image *image = &selection->image;
    bool same_nodata = !arguments->profile.nodata && !arguments->without_nodata;
    bool same_size =
        selection->request.width == image->width && selection->request.height == image->height &&
        selection->written_width == image->width && selection->written_height == image->height;
    bool same_values = selection->written == image->type && !arguments->scale.is_given;
    return same_size && same_values && same_nodata && !cogpu_profile_is_lossy(&arguments->profile);
}

/* CMYK that is read as RGB has no inks. */
static bool keeps_colours(const cogpu_selection *selection) {
    return selection->image.photometric != COGPU_PHOTOMETRIC_CMYK || !is_rgb(selection);
}

static bool has_control(const char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return true;
    return false;
}

static bool is_item_kept(const cogpu_metadata_item *item, bool statistics, bool colours) {
    bool is_scale = strcasecmp(item->role, "scale") == 0 || strcasecmp(item->role, "offset") == 0;
    bool is_odd = has_control(item->name) || has_control(item->domain) || has_control(item->role);
    if (strncmp(item->name, "STATISTICS_", 11) == 0)
        return statistics;
    if (strcmp(item->role, "colorinterp") == 0)
        return colours;
    if (strcmp(item->domain, "TILING_SCHEME") == 0 || strcmp(item->domain, "IMAGE_STRUCTURE") == 0)
        return false;
    return item->name[0] && !is_scale && !is_odd;
}

/* An item of a band is copied to each new band that is made of it. */
static uint32_t copy_item(const cogpu_selection *selection, cogpu_metadata_item item,
                          cogpu_metadata_item *to) {
    uint32_t count = 0;
    if (item.band == 0) {
        to[0] = item;
        return 1;
    }
    for (uint32_t i = 0, band = (uint32_t)item.band; i < selection->bands; i++) {
        if (cogpu_selection_band(selection, i) != band)
            continue;
        item.band = (int32_t)i + 1;
        to[count++] = item;
    }
    return count;
}

static void add_band_item(cogpu_output_profile *taken, uint32_t index, const char *name,
                          const char *role, const char *value) {
    taken->items[taken->profile.metadata_count++] =
        (cogpu_metadata_item){.struct_size = sizeof(cogpu_metadata_item),
                              .domain = "",
                              .name = name,
                              .role = role,
                              .value = value,
                              .band = (int32_t)index + 1};
}

/* What the reader reports of bands, wherever the file states it. A mosaic has no items about its
 * bands. */
static cogpu_status copy_band_items(const cogpu_selection *selection, cogpu_output_profile *taken,
                                    cogpu_error *error) {
    for (uint32_t i = 0; i < selection->bands; i++) {
        cogpu_band band = COGPU_BAND_INIT;
        uint32_t number = cogpu_selection_band(selection, i);
        cogpu_digits *digits = &taken->scales[(size_t)2 * i];
        TRY(cogpu_band_info(selection->file, selection->request.image, number, &band, error));
        if (selection->is_mosaic && band.description)
            add_band_item(taken, i, "DESCRIPTION", "description", band.description);
        if (selection->is_mosaic && band.unit)
            add_band_item(taken, i, "UNITTYPE", "unittype", band.unit);
        if (!band.has_scale)
            continue;
        format_number(band.scale, digits[0]);
        format_number(band.offset, digits[1]);
        add_band_item(taken, i, "SCALE", "scale", digits[0]);
        add_band_item(taken, i, "OFFSET", "offset", digits[1]);
    }
    return COGPU_OK;
}

static cogpu_status copy_items(const cogpu_selection *selection, const cogpu_arguments *arguments,
                               cogpu_output_profile *taken, cogpu_error *error) {
    bool statistics = keeps_statistics(selection, arguments), colours = keeps_colours(selection);
    uint32_t count = selection->image.metadata_count, copies = 1;
    if (selection->request.bands)
        copies = selection->bands; /* of a band that --band names more than once */
    taken->items =
        calloc((size_t)count * copies + (size_t)4 * selection->bands + arguments->metadata_count,
               sizeof *taken->items);
    taken->scales = calloc((size_t)2 * selection->bands, sizeof *taken->scales);
    if (!taken->items || !taken->scales)
        return no_memory(error);
    cogpu_profile *profile = &taken->profile;
    for (uint32_t i = 0; i < count; i++) {
        cogpu_metadata_item item = COGPU_METADATA_ITEM_INIT;
        TRY(cogpu_metadata_info(selection->file, selection->request.image, i, &item, error));
        if (is_item_kept(&item, statistics, colours))
            profile->metadata_count +=
                copy_item(selection, item, taken->items + profile->metadata_count);
    }
    profile->metadata = taken->items;
    profile->description = selection->image.description;
    return copy_band_items(selection, taken, error);
}

/* ---- tags about the image, without offsets ----------------------------------------------------
 */

/* DocumentName, Make, Model, Orientation, XResolution, YResolution, ResolutionUnit, Software,
 * DateTime, Artist, HostComputer, XMP, Copyright, the ICC profile. */
static const uint32_t plain_tags[] = {269, 271, 272, 274, 282, 283,   296,
                                      305, 306, 315, 316, 700, 33432, 34675};
enum { PLAIN_TAGS = sizeof plain_tags / sizeof *plain_tags };

/* InkSet, InkNames, NumberOfInks; YCbCrCoefficients, ReferenceBlackWhite: of colours that stay. */
static const struct {
    cogpu_photometric photometric;
    uint32_t id;
} colour_tags[] = {{COGPU_PHOTOMETRIC_CMYK, 332},
                   {COGPU_PHOTOMETRIC_CMYK, 333},
                   {COGPU_PHOTOMETRIC_CMYK, 334},
                   {COGPU_PHOTOMETRIC_YCBCR, 529},
                   {COGPU_PHOTOMETRIC_YCBCR, 532}};
enum { COLOUR_TAGS = sizeof colour_tags / sizeof *colour_tags };

static bool is_plain(uint32_t id, cogpu_photometric photometric) {
    for (int i = 0; i < PLAIN_TAGS; i++)
        if (plain_tags[i] == id)
            return true;
    for (int i = 0; i < COLOUR_TAGS; i++)
        if (colour_tags[i].photometric == photometric && colour_tags[i].id == id)
            return true;
    return false;
}

/* A tag that cannot be read, or a text without NUL, is left out, as readers do. */
static void copy_tag(const cogpu_selection *selection, const cogpu_tag *tag,
                     cogpu_output_profile *taken) {
    enum { TEXT = 2, LARGEST = 16 << 20 };
    uint32_t *count = &taken->profile.tag_count;
    bool known = *count > 0 && taken->tags[*count - 1].id >= tag->id; /* once is enough */
    if (!is_plain(tag->id, taken->profile.photometric) || known || tag->bytes == 0 ||
        tag->bytes > LARGEST)
        return;
    char *values = malloc(tag->bytes);
    bool is_read = values && cogpu_tag_read(selection->file, selection->image.directory, tag->id, 0,
                                            tag->count, values, NULL) == COGPU_OK;
    if (!is_read || (tag->type == TEXT && values[tag->bytes - 1] != '\0')) {
        free(values);
        return;
    }
    taken->tags[(*count)++] = (cogpu_extra_tag){.struct_size = sizeof(cogpu_extra_tag),
                                                .id = tag->id,
                                                .type = tag->type,
                                                .count = tag->count,
                                                .values = values};
}

static cogpu_status copy_tags(const cogpu_selection *selection, cogpu_output_profile *taken,
                              cogpu_error *error) {
    uint32_t directory = selection->image.directory;
    cogpu_directory info = COGPU_DIRECTORY_INIT;
    if (selection->is_mosaic)
        return COGPU_OK;
    taken->tags = calloc(PLAIN_TAGS + COLOUR_TAGS, sizeof *taken->tags);
    if (!taken->tags)
        return no_memory(error);
    TRY(cogpu_directory_info(selection->file, directory, &info, error));
    for (uint32_t i = 0; i < info.tag_count; i++) {
        cogpu_tag tag = COGPU_TAG_INIT;
        TRY(cogpu_tag_info(selection->file, directory, i, &tag, error));
        copy_tag(selection, &tag, taken);
    }
    taken->profile.tags = taken->tags;
    return COGPU_OK;
}

cogpu_status cogpu_output_profile_make(const cogpu_selection *selection,
                                       const cogpu_arguments *arguments,
                                       cogpu_output_profile *taken, cogpu_error *error) {
    *taken = (cogpu_output_profile){.profile = arguments->profile};
    cogpu_profile *profile = &taken->profile;
    profile->width = selection->written_width;
    profile->height = selection->written_height;
    profile->bands = selection->bands;
    profile->type = selection->written;
    profile->threads = arguments->threads;
    profile->mask = selection->level.has_mask;
    set_transform(selection, arguments, profile);
    TRY(copy_gcps(selection, taken, error));
    copy_rpc(selection, taken);
    TRY(copy_keys(selection, arguments, taken, error));
    set_colours(selection, arguments, profile);
    TRY(set_nodata(selection, arguments, taken, error));
    set_bits(selection, arguments, profile);
    TRY(copy_items(selection, arguments, taken, error));
    TRY(copy_tags(selection, taken, error));
    return cogpu_metadata_apply(arguments, taken, error);
}

void cogpu_profile_free(cogpu_output_profile *taken) {
    for (uint32_t i = 0; i < taken->profile.tag_count; i++)
        free((void *)taken->tags[i].values);
    free(taken->tags);
    free(taken->gcps);
    free(taken->keys);
    free(taken->crs);
    free(taken->items);
    free(taken->scales);
}
