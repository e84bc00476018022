/*
 * Colours of a profile as tags: photometric interpretation, extra samples, palettes.
 */
#include "unit/image/write_tags_test.h"

#include <math.h>
#include <stdio.h>

static cogpu_profile of_bands(uint32_t bands, cogpu_type type) {
    return (cogpu_profile){.struct_size = sizeof(cogpu_profile),
                           .width = 4,
                           .height = 4,
                           .bands = bands,
                           .type = type};
}

/* The photometric interpretation that is chosen, with so many extra samples; -1 where refused.
 */
static int chosen(describe *part, const cogpu_profile *profile, uint64_t extras) {
    if (!accepts(part, profile))
        return -1;
    const cogpu_new_tag *tag = find_tag(338);
    uint16_t stated = (uint16_t)tags_photometric;
    CHECK(has_shorts(262, 1, &stated));
    CHECK((tag ? tag->count : 0) == extras);
    return (int)tags_photometric;
}

static void colours_by_default(void) {
    cogpu_profile profile = of_bands(1, COGPU_TYPE_U8);
    CHECK(chosen(describe_colours, &profile, 0) == 1);
    profile = of_bands(3, COGPU_TYPE_U8);
    CHECK(chosen(describe_colours, &profile, 0) == 2);
    CHECK(chosen(describe_colours_as_jpeg, &profile, 0) == 6 && find_tag(530) && find_tag(532));
    profile.interleave = 1;
    CHECK(chosen(describe_colours_as_jpeg, &profile, 0) == 2 && !find_tag(530));
    profile = of_bands(3, COGPU_TYPE_U8);
    profile.photometric = COGPU_PHOTOMETRIC_RGB;
    CHECK(chosen(describe_colours_as_jpeg, &profile, 0) == 2 && !find_tag(530));
    profile = of_bands(3, COGPU_TYPE_U16);
    CHECK(chosen(describe_colours, &profile, 2) == 1);
    profile = of_bands(4, COGPU_TYPE_U8); /* never guess alpha */
    CHECK(chosen(describe_colours, &profile, 3) == 1);
    profile.alpha_band = 4;
    CHECK(chosen(describe_colours, &profile, 1) == 2);
    CHECK(chosen(describe_colours_as_jpeg, &profile, 1) == 2);
    profile.alpha_band = 3;
    CHECK(chosen(describe_colours, &profile, 3) == 1);
    profile = of_bands(3, COGPU_TYPE_U8);
    profile.alpha_band = 3;
    CHECK(chosen(describe_colours, &profile, 2) == 1);
}

static void colours_as_asked(void) {
    static const struct {
        cogpu_photometric asked;
        uint32_t bands;
        int stored;
    } cases[] = {{COGPU_PHOTOMETRIC_MIN_IS_BLACK, 3, 1}, {COGPU_PHOTOMETRIC_MIN_IS_WHITE, 1, 0},
                 {COGPU_PHOTOMETRIC_RGB, 5, 2},          {COGPU_PHOTOMETRIC_CMYK, 4, 5},
                 {COGPU_PHOTOMETRIC_CMYK, 3, -1},        {COGPU_PHOTOMETRIC_RGB, 2, -1},
                 {COGPU_PHOTOMETRIC_CIELAB, 3, 8},       {COGPU_PHOTOMETRIC_CIELAB, 1, -1}};
    static const uint32_t coloured[] = {[0] = 1, [1] = 1, [2] = 3, [5] = 4, [8] = 3};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cogpu_profile profile = of_bands(cases[i].bands, COGPU_TYPE_U16);
        profile.photometric = cases[i].asked;
        if (cases[i].stored < 0)
            CHECK(refuses(describe_colours, &profile, "bands"));
        else
            CHECK(chosen(describe_colours, &profile, cases[i].bands - coloured[cases[i].stored]) ==
                  cases[i].stored);
    }
    cogpu_profile profile = of_bands(3, COGPU_TYPE_U8);
    profile.photometric = (cogpu_photometric)4;
    CHECK(refuses(describe_colours, &profile, "photometric 4"));
}

static void ycbcr_is_for_jpeg(void) {
    static const uint16_t subsampling[] = {2, 2};
    static const uint32_t range[] = {0, 1, 255, 1, 128, 1, 255, 1, 128, 1, 255, 1};
    cogpu_profile profile = of_bands(3, COGPU_TYPE_U8);
    profile.photometric = COGPU_PHOTOMETRIC_YCBCR;
    CHECK(refuses(describe_colours, &profile, "jpeg"));
    CHECK(chosen(describe_colours_as_jpeg, &profile, 0) == 6 && has_shorts(530, 2, subsampling));
    CHECK(find_tag(532)->type == TYPE_RATIONAL && find_tag(532)->count == 6 &&
          memcmp(find_tag(532)->values, range, sizeof range) == 0);
    profile.interleave = 1;
    CHECK(refuses(describe_colours_as_jpeg, &profile, "planar"));
    profile.interleave = 0;
    profile.bands = 4;
    CHECK(refuses(describe_colours_as_jpeg, &profile, "3 bands"));
    profile.bands = 3;
    profile.type = COGPU_TYPE_U16;
    CHECK(refuses(describe_colours_as_jpeg, &profile, "uint8"));
}

static void palettes(void) {
    static const uint16_t palette[] = {1, 2, 3, 4, 5, 6};
    uint16_t map[768] = {1, 2, [256] = 3, [257] = 4, [512] = 5, [513] = 6};
    cogpu_profile profile = of_bands(1, COGPU_TYPE_U8);
    profile.palette = palette;
    profile.palette_entries = 2;
    CHECK(chosen(describe_colours, &profile, 0) == 3 && has_shorts(320, 768, map));
    profile.photometric = COGPU_PHOTOMETRIC_PALETTE;
    CHECK(chosen(describe_colours, &profile, 0) == 3);
    profile.type = COGPU_TYPE_U16;
    CHECK(chosen(describe_colours, &profile, 0) == 3 && find_tag(320)->count == 3 * 65536);
    profile.type = COGPU_TYPE_I16;
    CHECK(refuses(describe_colours, &profile, "uint8 or uint16"));
    profile.type = COGPU_TYPE_U8;
    CHECK(refuses(describe_colours_as_jpeg, &profile, "jpeg"));
    profile.bands = 2; /* the second is an extra sample */
    CHECK(chosen(describe_colours, &profile, 1) == 3);
    profile.bands = 1;
    profile.palette_entries = 257;
    CHECK(refuses(describe_colours, &profile, "257 entries"));
    profile.palette_entries = 0;
    CHECK(refuses(describe_colours, &profile, "at least one"));
    profile.palette = NULL;
    CHECK(refuses(describe_colours, &profile, "at least one"));
    profile.palette = palette;
    profile.palette_entries = 2;
    profile.photometric = COGPU_PHOTOMETRIC_MIN_IS_BLACK;
    CHECK(refuses(describe_colours, &profile, "COGPU_PHOTOMETRIC_PALETTE"));
}

static void alpha_bands(void) {
    static const uint16_t straight[] = {0, 2, 0}, premultiplied[] = {0, 1, 0};
    cogpu_profile profile = of_bands(6, COGPU_TYPE_U16);
    profile.photometric = COGPU_PHOTOMETRIC_RGB;
    profile.alpha_band = 5;
    CHECK(chosen(describe_colours, &profile, 3) == 2 && has_shorts(338, 3, straight));
    profile.premultiplied = 1;
    CHECK(chosen(describe_colours, &profile, 3) == 2 && has_shorts(338, 3, premultiplied));
    profile.alpha_band = 7;
    CHECK(refuses(describe_colours, &profile, "1 to 6"));
    profile.alpha_band = 3;
    CHECK(refuses(describe_colours, &profile, "for color"));
    profile.alpha_band = 0;
    CHECK(refuses(describe_colours, &profile, "alpha_band"));
}

TESTS(write_colours) {
    begin_tags();
    RUN(colours_by_default);
    RUN(colours_as_asked);
    RUN(ycbcr_is_for_jpeg);
    RUN(palettes);
    RUN(alpha_bands);
    cogpu_arena_close(&tags_arena);
    return FINISH();
}
