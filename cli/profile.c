/*
 * Takes in a selection and the options, hands on a profile. What the input says is moved with the
 * window, scaled with the level and numbered by the bands that are selected; what holds no more is
 * left out: statistics of pixels that are not all there, a tiling scheme of other blocks.
 */
#include "profile.h"

#include "report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static cogpu_status no_memory(cogpu_error *error) {
    return cogpu_refuse(error, COGPU_MEMORY, "no memory for the description of the image");
}

static const char *interpretation(const cogpu_selection *selection, uint32_t index) {
    cogpu_band band = {.interpretation = ""};
    uint32_t number = cogpu_selection_band(selection, index);
    cogpu_status status =
        cogpu_band_info(selection->file, selection->request.image, number, &band, NULL);
    return status == COGPU_OK ? band.interpretation : "";
}

/* ---- place ------------------------------------------------------------------------------------
 */

static bool is_sound(const double t[6]) {
    double area = t[1] * t[5] - t[2] * t[4];
    return isfinite(t[0]) && isfinite(t[3]) && isfinite(area) && area != 0;
}

static void take_transform(const cogpu_selection *selection, cogpu_profile *profile) {
    const double *t = selection->level.transform;
    double x = selection->request.x, y = selection->request.y;
    profile->pixel_is_point = selection->image.pixel_is_point;
    profile->has_transform = selection->level.has_transform && is_sound(t);
    if (!profile->has_transform)
        return;
    memcpy(profile->transform, t, sizeof profile->transform);
    profile->transform[0] = t[0] + x * t[1] + y * t[2];
    profile->transform[3] = t[3] + x * t[4] + y * t[5];
}

static cogpu_status take_gcps(const cogpu_selection *selection, cogpu_taken *taken,
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
        cogpu_gcp gcp = image->gcps[i];
        gcp.column = gcp.column * across - selection->request.x;
        gcp.row = gcp.row * down - selection->request.y;
        taken->gcps[i] = gcp;
    }
    taken->profile.gcps = taken->gcps;
    taken->profile.gcp_count = image->gcp_count;
    return COGPU_OK;
}

/* Its offsets are those of pixel centres, which scaling moves. */
static void take_rpc(const cogpu_selection *selection, cogpu_taken *taken) {
    enum { ROW_OFFSET = 2, COLUMN_OFFSET = 3, ROW_SCALE = 7, COLUMN_SCALE = 8 };
    const cogpu_image *image = &selection->image;
    const cogpu_level *level = &selection->level;
    double across = (double)level->width / image->width;
    double down = (double)level->height / image->height;
    if (!image->rpc)
        return;
    double *rpc = taken->rpc;
    memcpy(rpc, image->rpc, sizeof taken->rpc);
    rpc[ROW_OFFSET] = rpc[ROW_OFFSET] * down + (down - 1) / 2 - selection->request.y;
    rpc[COLUMN_OFFSET] = rpc[COLUMN_OFFSET] * across + (across - 1) / 2 - selection->request.x;
    rpc[ROW_SCALE] *= down;
    rpc[COLUMN_SCALE] *= across;
    taken->profile.rpc = rpc;
}

/* A system that a sidecar states is told in words: the keys say another, or none. */
static cogpu_status take_words(const cogpu_selection *selection, const cogpu_crs *crs,
                               cogpu_taken *taken, cogpu_error *error) {
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

static cogpu_status take_keys(const cogpu_selection *selection, cogpu_taken *taken,
                              cogpu_error *error) {
    uint32_t count = selection->image.geokeys;
    cogpu_crs crs = {0};
    if (cogpu_crs_info(selection->file, selection->request.image, &crs, NULL) == COGPU_OK &&
        crs.external)
        return take_words(selection, &crs, taken, error);
    taken->keys = calloc(count + 1u, sizeof *taken->keys);
    if (!taken->keys)
        return no_memory(error);
    for (uint32_t i = 0; i < count; i++) {
        cogpu_geokey *key = &taken->keys[taken->profile.geokey_count];
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
        if (i >= selection->bands || strcmp(interpretation(selection, i), names[i]) != 0)
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

/* Bands that --band chose from others have no colours yet, and get the default for their number. */
static cogpu_photometric photometric_of(const cogpu_selection *selection) {
    const cogpu_image *image = &selection->image;
    uint32_t stored = image->photometric;
    bool was_rgb = stored == COGPU_RGB || stored == COGPU_YCBCR || stored == COGPU_CMYK;
    if (was_rgb && is_rgb(selection)) /* pixels of JPEG's colours, and of some inks, come as RGB */
        return image->type == COGPU_U8 && selection->bands == 3 ? COGPU_PHOTOMETRIC_DEFAULT
                                                                : COGPU_RGB;
    if (!has_all_bands(selection))
        return COGPU_PHOTOMETRIC_DEFAULT;
    if (stored == 0)
        return COGPU_MIN_IS_WHITE;
    bool is_widened = image->type == COGPU_U8 && image->bits < 8; /* bytes of ink are read as RGB */
    bool kept = (stored == COGPU_CMYK && selection->bands >= 4 && !is_widened) ||
                (stored == COGPU_CIELAB && selection->bands >= 3);
    return kept ? (cogpu_photometric)stored : COGPU_MIN_IS_BLACK;
}

static void take_alpha(const cogpu_selection *selection, cogpu_profile *profile) {
    for (uint32_t i = 1; i < selection->bands; i++)
        if (cogpu_selection_band(selection, i) == selection->image.alpha_band)
            profile->alpha_band = i + 1;
    bool among_colours = profile->photometric == COGPU_RGB && profile->alpha_band <= 3;
    if (among_colours)
        profile->alpha_band = 0;
    profile->premultiplied = profile->alpha_band && selection->image.premultiplied;
}

static void take_colours(const cogpu_selection *selection, cogpu_profile *profile) {
    const cogpu_image *image = &selection->image;
    bool fits = image->type == COGPU_U8 || image->type == COGPU_U16;
    if (image->palette && image->palette_entries && selection->bands == 1 && fits) {
        profile->palette = image->palette;
        profile->palette_entries = image->palette_entries;
        profile->photometric = COGPU_PALETTE;
        return;
    }
    profile->photometric = photometric_of(selection);
    take_alpha(selection, profile);
}

/* ---- nodata and metadata ----------------------------------------------------------------------
 */

/* With no more digits than it takes. */
static void put_digits(double value, cogpu_digits text) {
    int digits = 15;
    do
        snprintf(text, sizeof(cogpu_digits), "%.*g", digits, value);
    while (digits++ < 17 && strtod(text, NULL) != value);
}

static bool same_nodata(const cogpu_nodata *one, const cogpu_nodata *other) {
    bool is_same = one->value == other->value || (isnan(one->value) && isnan(other->value));
    return one->matches == other->matches && is_same && one->i64 == other->i64 &&
           one->u64 == other->u64;
}

/* Of the bands selected, if they have the same: a GeoTIFF has one for all. */
static cogpu_status find_nodata(const cogpu_selection *selection, cogpu_taken *taken,
                                cogpu_nodata *nodata, cogpu_error *error) {
    cogpu_band band;
    for (uint32_t i = 0; i < selection->bands; i++) {
        TRY(cogpu_band_info(selection->file, selection->request.image,
                            cogpu_selection_band(selection, i), &band, error));
        if (i == 0)
            *nodata = band.nodata;
        else if (!same_nodata(nodata, &band.nodata))
            taken->has_mixed_nodata = true;
    }
    return COGPU_OK;
}

/* The value, since readers take texts for numbers that no file may be written with. One that no
 * sample can have says nothing. */
static cogpu_status take_nodata(const cogpu_selection *selection, const cogpu_arguments *arguments,
                                cogpu_taken *taken, cogpu_error *error) {
    cogpu_nodata nodata = {0};
    if (taken->profile.nodata || arguments->without_nodata)
        return COGPU_OK;
    TRY(find_nodata(selection, taken, &nodata, error));
    if (!nodata.text || !nodata.matches || taken->has_mixed_nodata)
        return COGPU_OK;
    if (selection->type == COGPU_I64)
        snprintf(taken->nodata, sizeof taken->nodata, "%" PRId64, nodata.i64);
    else if (selection->type == COGPU_U64)
        snprintf(taken->nodata, sizeof taken->nodata, "%" PRIu64, nodata.u64);
    else
        put_digits(nodata.value, taken->nodata);
    taken->profile.nodata = taken->nodata;
    return COGPU_OK;
}

/* Samples of few bits stay so, unless something of the new file needs whole ones. */
static void take_bits(const cogpu_selection *selection, cogpu_profile *profile) {
    const char *codec = profile->codec ? profile->codec : "deflate";
    uint32_t bits = selection->image.bits;
    bool is_packed = (profile->type == COGPU_U8 && bits < 8) ||
                     (profile->type == COGPU_U16 && bits > 8 && bits < 16);
    if (profile->bits || !is_packed)
        return;
    uint32_t values = 1u << bits;
    bool fits = profile->predictor <= 1 && profile->palette_entries <= values &&
                !(profile->nodata && strtod(profile->nodata, NULL) >= values);
    bool takes_bits =
        strcmp(codec, "jpeg") != 0 && strcmp(codec, "webp") != 0 && strncmp(codec, "lerc", 4) != 0;
    if (fits && takes_bits)
        profile->bits = bits;
}

static bool is_lossy(const cogpu_profile *profile) {
    const char *codec = profile->codec ? profile->codec : "deflate";
    return strcmp(codec, "jpeg") == 0 || (strcmp(codec, "webp") == 0 && !profile->lossless) ||
           profile->max_error > 0;
}

/* Whether what is known of all valid pixels holds for the new file too. */
static bool keeps_statistics(const cogpu_selection *selection, const cogpu_arguments *arguments) {
    const cogpu_image *image = &selection->image;
    bool same_nodata = !arguments->profile.nodata && !arguments->without_nodata;
    return selection->request.width == image->width && selection->request.height == image->height &&
           same_nodata && !is_lossy(&arguments->profile);
}

/* Inks that are read as RGB are no inks any more. */
static bool keeps_colours(const cogpu_selection *selection) {
    return selection->image.photometric != COGPU_CMYK || !is_rgb(selection);
}

static bool has_control(const char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return true;
    return false;
}

static bool is_item_kept(const cogpu_item *item, bool statistics, bool colours) {
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

/* An item of a band follows it to each of its new places. */
static uint32_t put_item(const cogpu_selection *selection, cogpu_item item, cogpu_item *to) {
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

/* Scale and offset as readers have them, wherever they are told. */
static cogpu_status take_scales(const cogpu_selection *selection, cogpu_taken *taken,
                                cogpu_error *error) {
    cogpu_profile *profile = &taken->profile;
    for (uint32_t i = 0; i < selection->bands; i++) {
        cogpu_band band;
        uint32_t number = cogpu_selection_band(selection, i);
        cogpu_digits *digits = &taken->scales[(size_t)2 * i];
        TRY(cogpu_band_info(selection->file, selection->request.image, number, &band, error));
        if (!band.has_scale)
            continue;
        put_digits(band.scale, digits[0]);
        put_digits(band.offset, digits[1]);
        cogpu_item item = {.domain = "", .band = (int32_t)i + 1};
        item.name = "SCALE", item.role = "scale", item.value = digits[0];
        taken->items[profile->item_count++] = item;
        item.name = "OFFSET", item.role = "offset", item.value = digits[1];
        taken->items[profile->item_count++] = item;
    }
    return COGPU_OK;
}

static cogpu_status take_items(const cogpu_selection *selection, const cogpu_arguments *arguments,
                               cogpu_taken *taken, cogpu_error *error) {
    bool statistics = keeps_statistics(selection, arguments), colours = keeps_colours(selection);
    uint32_t count = selection->image.items, copies = 1;
    if (selection->request.bands)
        copies = selection->bands; /* of a band that --band names more than once */
    taken->items =
        calloc((size_t)count * copies + (size_t)2 * selection->bands, sizeof *taken->items);
    taken->scales = calloc((size_t)2 * selection->bands, sizeof *taken->scales);
    if (!taken->items || !taken->scales)
        return no_memory(error);
    cogpu_profile *profile = &taken->profile;
    for (uint32_t i = 0; i < count; i++) {
        cogpu_item item;
        TRY(cogpu_item_info(selection->file, selection->request.image, i, &item, error));
        if (is_item_kept(&item, statistics, colours))
            profile->item_count += put_item(selection, item, taken->items + profile->item_count);
    }
    profile->items = taken->items;
    profile->description = selection->image.description;
    return take_scales(selection, taken, error);
}

/* ---- tags that speak of the image and point nowhere -------------------------------------------
 */

/* DocumentName, Make, Model, Orientation, XResolution, YResolution, ResolutionUnit, Software,
 * DateTime, Artist, HostComputer, XMP, Copyright, the ICC profile. */
static const uint32_t plain_tags[] = {269, 271, 272, 274, 282, 283,   296,
                                      305, 306, 315, 316, 700, 33432, 34675};
enum { PLAIN_TAGS = sizeof plain_tags / sizeof *plain_tags };

static bool is_plain(uint32_t id) {
    for (int i = 0; i < PLAIN_TAGS; i++)
        if (plain_tags[i] == id)
            return true;
    return false;
}

/* One that cannot be read, or is text without an end, is left out, as readers do. */
static void take_tag(const cogpu_selection *selection, const cogpu_tag *tag, cogpu_taken *taken) {
    enum { TEXT = 2, LARGEST = 16 << 20 };
    uint32_t *count = &taken->profile.tag_count;
    bool known = *count > 0 && taken->tags[*count - 1].id >= tag->id; /* once is enough */
    if (!is_plain(tag->id) || known || tag->bytes == 0 || tag->bytes > LARGEST)
        return;
    char *values = malloc(tag->bytes);
    bool sound = values && cogpu_tag_read(selection->file, selection->image.directory, tag->id, 0,
                                          tag->count, values, NULL) == COGPU_OK;
    if (!sound || (tag->type == TEXT && values[tag->bytes - 1] != '\0')) {
        free(values);
        return;
    }
    taken->tags[(*count)++] =
        (cogpu_extra_tag){.id = tag->id, .type = tag->type, .count = tag->count, .values = values};
}

static cogpu_status take_tags(const cogpu_selection *selection, cogpu_taken *taken,
                              cogpu_error *error) {
    uint32_t directory = selection->image.directory;
    cogpu_directory info;
    taken->tags = calloc(PLAIN_TAGS, sizeof *taken->tags);
    if (!taken->tags)
        return no_memory(error);
    TRY(cogpu_directory_info(selection->file, directory, &info, error));
    for (uint32_t i = 0; i < info.tags; i++) {
        cogpu_tag tag;
        TRY(cogpu_tag_info(selection->file, directory, i, &tag, error));
        take_tag(selection, &tag, taken);
    }
    taken->profile.tags = taken->tags;
    return COGPU_OK;
}

cogpu_status cogpu_profile_take(const cogpu_selection *selection, const cogpu_arguments *arguments,
                                cogpu_taken *taken, cogpu_error *error) {
    *taken = (cogpu_taken){.profile = arguments->profile};
    cogpu_profile *profile = &taken->profile;
    profile->width = selection->request.width;
    profile->height = selection->request.height;
    profile->bands = selection->bands;
    profile->type = selection->type;
    profile->threads = arguments->threads;
    profile->mask = selection->level.has_mask;
    take_transform(selection, profile);
    TRY(take_gcps(selection, taken, error));
    take_rpc(selection, taken);
    TRY(take_keys(selection, taken, error));
    take_colours(selection, profile);
    TRY(take_nodata(selection, arguments, taken, error));
    take_bits(selection, profile);
    TRY(take_items(selection, arguments, taken, error));
    return take_tags(selection, taken, error);
}

void cogpu_profile_free(cogpu_taken *taken) {
    for (uint32_t i = 0; i < taken->profile.tag_count; i++)
        free((void *)taken->tags[i].values);
    free(taken->tags);
    free(taken->gcps);
    free(taken->keys);
    free(taken->crs);
    free(taken->items);
    free(taken->scales);
}
