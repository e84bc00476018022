/* What each band is: the colours are those of GDAL 3.12, but for MinIsWhite and images of 1 bit. */
#include "support/test.h"

#include "support/opened_tiff.h"

static opened_tiff opened;
static cogpu_image info = COGPU_IMAGE_INIT;
static cogpu_band *bands;
static cogpu_colour colour; /* that the pixels are converted from */

/* Colours of an image as one text; `metadata` may be NULL, extras and map empty. */
static const char *colours(uint16_t photometric, uint16_t count, uint16_t bits,
                           const uint16_t *extras, size_t extra_count, const uint16_t *map,
                           size_t map_count, const char *xml) {
    static char text[256];
    cogpu_georef georef = {0};
    cogpu_metadata metadata;
    build_open(&opened.file, false, false);
    build_image(&opened.file, 1, 1, count, bits, photometric, NULL);
    if (extra_count)
        build_shorts(&opened.file, TAG_EXTRA_SAMPLES, extra_count, extras);
    if (map_count)
        build_shorts(&opened.file, TAG_COLOR_MAP, map_count, map);
    if (xml)
        build_text(&opened.file, TAG_GDAL_METADATA, xml);
    CHECK(open_built(&opened) == COGPU_OK);
    cogpu_storage storage = {.tiff = &opened.tiff,
                             .bands = count,
                             .planes = 1,
                             .bits = bits,
                             .photometric = photometric,
                             .colour = colour,
                             .format = {.samples = count}};
    info = (cogpu_image)COGPU_IMAGE_INIT;
    CHECK(cogpu_metadata_read(&opened.tiff, 0, &opened.arena, &metadata, &opened.warning,
                              &opened.error) == COGPU_OK);
    CHECK(cogpu_bands_read(&opened.tiff, &storage, &georef, &metadata, &opened.arena, &info, &bands,
                           &opened.warning, &opened.error) == COGPU_OK);
    text[0] = '\0';
    for (uint32_t i = 0; i < count; i++) {
        strcat(text, i ? " " : "");
        strcat(text, bands[i].interpretation);
    }
    return text;
}

static const char *plain(uint16_t photometric, uint16_t count, const uint16_t *extras,
                         size_t extra_count) {
    const char *text = colours(photometric, count, 8, extras, extra_count, NULL, 0, NULL);
    return text;
}

/* T033: four bands are not RGBA unless the file says so. */
static void colours_by_photometric(void) {
    CHECK_TEXT(plain(1, 1, NULL, 0), "gray");
    CHECK(!opened.warning && !info.alpha_band && !info.palette);
    close_built(&opened);
    CHECK_TEXT(plain(1, 4, NULL, 0), "gray undefined undefined undefined");
    close_built(&opened);
    CHECK_TEXT(plain(0, 2, NULL, 0), "gray undefined");
    close_built(&opened);
    CHECK_TEXT(plain(2, 4, NULL, 0), "red green blue undefined");
    close_built(&opened);
    CHECK_TEXT(plain(2, 1, NULL, 0), "red");
    close_built(&opened);
    CHECK_TEXT(plain(5, 5, NULL, 0), "cyan magenta yellow black undefined");
    close_built(&opened);
    CHECK_TEXT(plain(6, 3, NULL, 0), "Y Cb Cr");
    close_built(&opened);
    colour = COGPU_FROM_YCBCR;
    CHECK_TEXT(plain(6, 3, NULL, 0), "red green blue");
    close_built(&opened);
    colour = COGPU_AS_STORED;
    CHECK_TEXT(plain(8, 3, NULL, 0), "undefined undefined undefined");
    close_built(&opened);
    CHECK_TEXT(plain(34892, 2, NULL, 0), "undefined undefined");
    close_built(&opened);
}

static void alpha_bands(void) {
    CHECK_TEXT(plain(2, 4, (uint16_t[]){2}, 1), "red green blue alpha");
    CHECK(info.alpha_band == 4 && !info.premultiplied && !opened.warning);
    close_built(&opened);
    CHECK_TEXT(plain(1, 2, (uint16_t[]){1}, 1), "gray alpha");
    CHECK(info.alpha_band == 2 && info.premultiplied);
    close_built(&opened);
    CHECK_TEXT(plain(2, 6, (uint16_t[]){0, 0, 2}, 3), "red green blue undefined undefined alpha");
    CHECK(info.alpha_band == 6);
    close_built(&opened);
    CHECK_TEXT(plain(34892, 3, (uint16_t[]){2}, 1), "undefined undefined alpha");
    close_built(&opened);
}

/* T017. */
static void wrong_number_of_extra_samples(void) {
    CHECK_TEXT(plain(2, 6, (uint16_t[]){2}, 1), "red green blue alpha undefined undefined");
    CHECK(opened.warning && info.alpha_band == 4);
    close_built(&opened);
    CHECK_TEXT(plain(1, 4, (uint16_t[]){0, 2}, 2), "gray undefined alpha undefined");
    close_built(&opened);
    CHECK_TEXT(plain(2, 4, (uint16_t[]){0, 2}, 2), "red green blue alpha");
    CHECK(opened.warning);
    close_built(&opened);
    CHECK_TEXT(plain(2, 3, (uint16_t[]){2, 2, 2, 2, 2, 2}, 6), "red green blue");
    CHECK(opened.warning && !info.alpha_band);
    close_built(&opened);
    CHECK_TEXT(plain(1, 1, (uint16_t[]){2}, 1), "gray");
    close_built(&opened);
}

/* T031: all 16 bits are handed on. */
static void palettes(void) {
    uint16_t map[48];
    for (int i = 0; i < 48; i++)
        map[i] = (uint16_t)(i * 257);
    CHECK_TEXT(colours(3, 1, 4, NULL, 0, map, 48, NULL), "palette");
    CHECK(info.palette_entries == 16 && info.palette[16] == 16 * 257 && !opened.warning);
    close_built(&opened);
    CHECK_TEXT(colours(3, 1, 4, NULL, 0, map, 45, NULL), "gray");
    CHECK(!info.palette && !info.palette_entries && opened.warning);
    close_built(&opened);
    CHECK_TEXT(colours(3, 1, 4, NULL, 0, NULL, 0, NULL), "gray");
    CHECK(opened.warning);
    close_built(&opened);
    CHECK_TEXT(colours(3, 2, 4, (uint16_t[]){2}, 1, map, 48, NULL), "palette alpha");
    close_built(&opened);
    CHECK_TEXT(colours(2, 3, 4, NULL, 0, map, 48, NULL), "red green blue");
    CHECK(!info.palette);
    close_built(&opened);
}

#define ITEM(attributes, value) "<Item " attributes ">" value "</Item>"

static void items_speak_of_bands(void) {
    CHECK_TEXT(colours(1, 2, 8, (uint16_t[]){0}, 1, NULL, 0,
                       "<GDALMetadata>" ITEM("name='a' sample='1' role='colorinterp'", "Alpha")
                           ITEM("name='b' sample='0' role='COLORINTERP'",
                                "YCbCr_Cb") ITEM("name='c' sample='0' role='scale'", "0.1")
                               ITEM("name='d' sample='0' role='offset'", "-5")
                                   ITEM("name='e' sample='1' role='description'", "depth")
                                       ITEM("name='f' sample='1' role='unittype'", "m")
                                           ITEM("name='g' sample='7' role='unittype'", "ft") ITEM(
                                               "name='h' role='unittype'", "km") "</GDALMetadata>"),
               "Cb alpha");
    CHECK(info.alpha_band == 2 && !opened.warning);
    CHECK(bands[0].scale == 0.1 && bands[0].offset == -5 && bands[0].has_scale);
    CHECK(bands[1].scale == 1 && bands[1].offset == 0 && !bands[1].has_scale);
    CHECK_TEXT(bands[1].description, "depth");
    CHECK_TEXT(bands[1].unit, "m");
    CHECK(!bands[0].unit && !bands[0].description);
    close_built(&opened);
    CHECK_TEXT(colours(2, 4, 8, (uint16_t[]){1}, 1, NULL, 0,
                       "<GDALMetadata>" ITEM("name='a' sample='3' role='colorinterp'", "nosuch")
                           ITEM("name='b' sample='0' role='scale'", "much") "</GDALMetadata>"),
               "red green blue undefined");
    CHECK(!info.alpha_band && !info.premultiplied && bands[0].scale == 1 && opened.warning);
    close_built(&opened);
}

/* A scale of 0 makes every pixel the same, and is taken for a mistake; an offset of 0 is valid. */
static void a_scale_of_zero_is_not_applied(void) {
    colours(1, 2, 8, NULL, 0, NULL, 0,
            "<GDALMetadata>" ITEM("name='a' sample='0' role='scale'", "0.0")
                ITEM("name='b' sample='0' role='offset'", "0")
                    ITEM("name='c' sample='1' role='scale'", "-2") "</GDALMetadata>");
    CHECK(bands[0].scale == 1 && bands[0].offset == 0 && bands[1].scale == -2);
    CHECK(opened.warning && strstr(opened.warning, "the scale of band 1 is 0"));
    close_built(&opened);
}

TESTS(bands) {
    RUN(colours_by_photometric);
    RUN(alpha_bands);
    RUN(wrong_number_of_extra_samples);
    RUN(palettes);
    RUN(items_speak_of_bands);
    RUN(a_scale_of_zero_is_not_applied);
    return FINISH();
}
