/*
 * Tags for the color fields of a profile, the same for each level: photometric interpretation,
 * color map, extra samples, YCbCr parameters. The inverse of bands.c.
 */
#include "image/write_tags.h"

#include <string.h>

enum { MIN_IS_WHITE = 0 };
enum { UNSPECIFIED = 0, ASSOCIATED_ALPHA = 1, UNASSOCIATED_ALPHA = 2 };

/* A photometric interpretation of the profile, as TIFF numbers it, and its bands. */
typedef struct profile_colours {
    cogpu_photometric asked;
    uint16_t stored;
    uint32_t bands;
    const char *name;
} profile_colours;

static const profile_colours *find_profile_colours(cogpu_photometric asked) {
    static const profile_colours known[] = {
        {COGPU_PHOTOMETRIC_MIN_IS_BLACK, COGPU_PHOTOMETRIC_MIN_IS_BLACK, 1,
         "COGPU_PHOTOMETRIC_MIN_IS_BLACK"},
        {COGPU_PHOTOMETRIC_MIN_IS_WHITE, MIN_IS_WHITE, 1, "COGPU_PHOTOMETRIC_MIN_IS_WHITE"},
        {COGPU_PHOTOMETRIC_RGB, COGPU_PHOTOMETRIC_RGB, 3, "COGPU_PHOTOMETRIC_RGB"},
        {COGPU_PHOTOMETRIC_PALETTE, COGPU_PHOTOMETRIC_PALETTE, 1, "COGPU_PHOTOMETRIC_PALETTE"},
        {COGPU_PHOTOMETRIC_CMYK, COGPU_PHOTOMETRIC_CMYK, 4, "COGPU_PHOTOMETRIC_CMYK"},
        {COGPU_PHOTOMETRIC_YCBCR, COGPU_PHOTOMETRIC_YCBCR, 3, "COGPU_PHOTOMETRIC_YCBCR"},
        {COGPU_PHOTOMETRIC_CIELAB, COGPU_PHOTOMETRIC_CIELAB, 3, "COGPU_PHOTOMETRIC_CIELAB"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].asked == asked)
            return &known[i];
    return NULL;
}

/* Four bands are not RGBA unless the profile says so. JPEG has no color space for YCbCr with alpha,
 * nor for separate planes. */
static cogpu_photometric default_of(const cogpu_profile *profile, uint32_t compression) {
    bool is_rgb =
        profile->type == COGPU_TYPE_U8 && ((profile->bands == 3 && !profile->alpha_band) ||
                                           (profile->bands == 4 && profile->alpha_band == 4));
    if (profile->palette)
        return COGPU_PHOTOMETRIC_PALETTE;
    if (!is_rgb)
        return COGPU_PHOTOMETRIC_MIN_IS_BLACK;
    bool as_ycbcr = compression == COMPRESSION_JPEG && profile->bands == 3 &&
                    profile->interleave != COGPU_INTERLEAVE_BAND;
    return as_ycbcr ? COGPU_PHOTOMETRIC_YCBCR : COGPU_PHOTOMETRIC_RGB;
}

/* The JPEG codec converts RGB to YCbCr. Other codecs store samples unchanged: readers would convert
 * 8-bit YCbCr to RGB. */
static cogpu_status check_ycbcr(const cogpu_profile *profile, uint32_t compression,
                                cogpu_error *error) {
    if (compression != COMPRESSION_JPEG && cogpu_type_bytes(profile->type) == 1)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "8-bit COGPU_PHOTOMETRIC_YCBCR needs the codec \"jpeg\"; use "
                          "COGPU_PHOTOMETRIC_RGB");
    if (compression != COMPRESSION_JPEG)
        return profile->bands == 3 ? COGPU_OK
                                   : cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                                                "COGPU_PHOTOMETRIC_YCBCR needs exactly 3 bands");
    if (profile->type != COGPU_TYPE_U8 || profile->bands != 3 ||
        profile->interleave == COGPU_INTERLEAVE_BAND)
        return cogpu_fail(
            error, COGPU_INVALID_ARGUMENT,
            "COGPU_PHOTOMETRIC_YCBCR needs exactly 3 bands of uint8 that are not planar");
    return COGPU_OK;
}

/* Number of values that a sample can have. */
static uint32_t palette_capacity(const cogpu_profile *profile) {
    uint32_t all = profile->type == COGPU_TYPE_U8 ? 8 : 16;
    return 1u << (profile->bits && profile->bits < all ? profile->bits : all);
}

static cogpu_status check_palette(const cogpu_profile *profile, uint32_t compression,
                                  cogpu_error *error) {
    uint32_t capacity = palette_capacity(profile);
    if (!profile->palette || !profile->palette_entries)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "COGPU_PHOTOMETRIC_PALETTE needs a palette of at least one entry");
    if (profile->type != COGPU_TYPE_U8 && profile->type != COGPU_TYPE_U16)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "a palette needs bands of uint8 or uint16, not %s",
                          cogpu_type_name(profile->type));
    if (profile->palette_entries > capacity)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the palette has %u entries, but samples have only %u values",
                          profile->palette_entries, capacity);
    if (compression == COMPRESSION_JPEG)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the codec \"jpeg\" would change the values of a palette; use another");
    return COGPU_OK;
}

static cogpu_status check_alpha(const cogpu_profile *profile, const profile_colours *chosen,
                                cogpu_error *error) {
    if (profile->premultiplied && !profile->alpha_band)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "`premultiplied` needs an alpha band: set `alpha_band`");
    if (profile->alpha_band > profile->bands)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "`alpha_band` is %u, but bands are numbered 1 to %u", profile->alpha_band,
                          profile->bands);
    if (profile->alpha_band && profile->alpha_band <= chosen->bands)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "band %u cannot be alpha: %s uses the first %u bands for color",
                          profile->alpha_band, chosen->name, chosen->bands);
    return COGPU_OK;
}

static cogpu_status choose_photometric(const cogpu_profile *profile, uint32_t compression,
                                       const profile_colours **chosen, cogpu_error *error) {
    *chosen = find_profile_colours(profile->photometric ? profile->photometric
                                                        : default_of(profile, compression));
    if (!*chosen)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "photometric %d cannot be written; see "
                          "cogpu_photometric",
                          (int)profile->photometric);
    if (profile->bands < (*chosen)->bands)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "%s needs %u bands, got %u",
                          (*chosen)->name, (*chosen)->bands, profile->bands);
    if ((*chosen)->asked == COGPU_PHOTOMETRIC_YCBCR)
        TRY(check_ycbcr(profile, compression, error));
    if ((*chosen)->asked == COGPU_PHOTOMETRIC_PALETTE)
        TRY(check_palette(profile, compression, error));
    else if (profile->palette || profile->palette_entries)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "a palette needs COGPU_PHOTOMETRIC_PALETTE, not %s", (*chosen)->name);
    return check_alpha(profile, *chosen, error);
}

/* TIFF 6.0 section 5: all reds, then greens, then blues, one for each sample value. Entries beyond
 * the palette are black. */
static cogpu_status add_palette(const cogpu_profile *profile, cogpu_arena *arena,
                                cogpu_tag_list *list, cogpu_error *error) {
    size_t capacity = palette_capacity(profile), entries = profile->palette_entries;
    uint16_t *map = NULL;
    TRY(cogpu_arena_allocate(arena, 3 * capacity, sizeof *map, &map, error));
    for (size_t i = 0; i < 3; i++)
        memcpy(map + i * capacity, profile->palette + i * entries, entries * sizeof *map);
    return cogpu_tag_add(list, arena, TAG_COLOR_MAP, TYPE_SHORT, 3 * capacity, map, error);
}

static cogpu_status add_extras(const cogpu_profile *profile, uint32_t coloured, cogpu_arena *arena,
                               cogpu_tag_list *list, cogpu_error *error) {
    uint32_t count = profile->bands - coloured;
    uint16_t *extras = NULL;
    if (!count)
        return COGPU_OK;
    TRY(cogpu_arena_allocate(arena, count, sizeof *extras, &extras, error)); /* UNSPECIFIED */
    if (profile->alpha_band)
        extras[profile->alpha_band - 1 - coloured] =
            profile->premultiplied ? ASSOCIATED_ALPHA : UNASSOCIATED_ALPHA;
    return cogpu_tag_add(list, arena, TAG_EXTRA_SAMPLES, TYPE_SHORT, count, extras, error);
}

/* JPEG: 4:2:0 chroma subsampling, full range. Other codecs: no subsampling. */
static cogpu_status add_ycbcr(uint32_t compression, cogpu_arena *arena, cogpu_tag_list *list,
                              cogpu_error *error) {
    static const uint16_t subsampling[2] = {2, 2}, whole[2] = {1, 1};
    static const uint32_t black_and_white[12] = {0, 1, 255, 1, 128, 1, 255, 1, 128, 1, 255, 1};
    if (compression != COMPRESSION_JPEG)
        return cogpu_tag_add(list, arena, TAG_YCBCR_SUBSAMPLING, TYPE_SHORT, 2, whole, error);
    TRY(cogpu_tag_add(list, arena, TAG_YCBCR_SUBSAMPLING, TYPE_SHORT, 2, subsampling, error));
    return cogpu_tag_add(list, arena, TAG_REFERENCE_BLACK_WHITE, TYPE_RATIONAL, 6, black_and_white,
                         error);
}

cogpu_status cogpu_write_color_tags(const cogpu_profile *profile, uint32_t compression,
                                    cogpu_arena *arena, cogpu_tag_list *list, uint32_t *photometric,
                                    cogpu_error *error) {
    const profile_colours *chosen;
    TRY(choose_photometric(profile, compression, &chosen, error));
    *photometric = chosen->stored;
    TRY(cogpu_tag_add_short(list, arena, TAG_PHOTOMETRIC, chosen->stored, error));
    if (chosen->asked == COGPU_PHOTOMETRIC_PALETTE)
        TRY(add_palette(profile, arena, list, error));
    if (chosen->asked == COGPU_PHOTOMETRIC_YCBCR)
        TRY(add_ycbcr(compression, arena, list, error));
    return add_extras(profile, chosen->bands, arena, list, error);
}
