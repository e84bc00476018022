/*
 * Metadata of a profile as tags: GDAL_METADATA, nodata, description, further tags; and all parts
 * with too little memory.
 */
#include "unit/image/write_tags_test.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>

/* ---- metadata ------------------------------------------------------------------------------ */

static cogpu_profile with_items(const cogpu_metadata_item *items, uint32_t count) {
    cogpu_profile profile = of_one_band();
    profile.bands = 3;
    profile.metadata = items;
    profile.metadata_count = count;
    return profile;
}

static void items_as_gdal_writes_them(void) {
    static const cogpu_metadata_item items[] = {
        {.struct_size = sizeof(cogpu_metadata_item), .name = "A", .value = "1 < 2 & \"3\""},
        {.struct_size = sizeof(cogpu_metadata_item), .domain = "D&", .name = "\"B\"", .value = "x"},
        {.struct_size = sizeof(cogpu_metadata_item),
         .name = "DESCRIPTION",
         .value = "red",
         .role = "description",
         .band = 2},
        {.struct_size = sizeof(cogpu_metadata_item), .name = "EMPTY"},
        {.struct_size = sizeof(cogpu_metadata_item), .name = "BLANKS", .value = " x\r\n "}};
    cogpu_profile profile = with_items(items, 5);
    CHECK(accepts(describe_metadata, &profile) && tag_list.count == 1);
    CHECK_TEXT(text_of(42112),
               "<GDALMetadata>\n"
               "  <Item name=\"A\">1 &amp;lt; 2 &amp;amp; &amp;quot;3&amp;quot;</Item>\n"
               "  <Item name=\"&quot;B&quot;\" domain=\"D&amp;\">x</Item>\n"
               "  <Item name=\"DESCRIPTION\" sample=\"1\" role=\"description\">red</Item>\n"
               "  <Item name=\"EMPTY\"></Item>\n"
               "  <Item name=\"BLANKS\">&amp;#32;x&amp;#13;\n </Item>\n"
               "</GDALMetadata>\n");
}

static void items_come_back(void) {
    static const cogpu_metadata_item items[] = {
        {sizeof(cogpu_metadata_item), "", "A",
         " \t<&>\"'\n\r\x01\x7f\xc3\xa9 &amp; &lt; &#65; ]]> <!-- ", "", 0},
        {sizeof(cogpu_metadata_item), "<&>\"'", "<&>\"'", "<&>", "", 0},
        {sizeof(cogpu_metadata_item), "", "BLANK", " \n ", "", 0},
        {sizeof(cogpu_metadata_item), "", "EMPTY", "", "", 0},
        {sizeof(cogpu_metadata_item), "xml:X", "doc", "<a b='c'>&amp;<![CDATA[x]]></a>", "", 0},
        {sizeof(cogpu_metadata_item), "", "UNITTYPE", "m\xc2\xb2", "unittype", 3}};
    enum { COUNT = sizeof items / sizeof *items };
    cogpu_profile profile = with_items(items, COUNT);
    opened_tiff opened;
    cogpu_metadata read;
    CHECK(accepts(describe_metadata, &profile));
    open_written(&opened, 3);
    CHECK(cogpu_metadata_read(&opened.tiff, 0, &opened.arena, &read, &opened.warning,
                              &tags_error) == COGPU_OK);
    CHECK(read.item_count == COUNT && !opened.warning);
    for (uint32_t i = 0; i < COUNT && i < read.item_count; i++) {
        CHECK_TEXT(read.items[i].domain, items[i].domain);
        CHECK_TEXT(read.items[i].name, items[i].name);
        CHECK_TEXT(read.items[i].value, items[i].value);
        CHECK_TEXT(read.items[i].role, items[i].role);
        CHECK(read.items[i].band == items[i].band);
    }
    close_built(&opened);
}

static void scale_and_offset_go_together(void) {
    static const cogpu_metadata_item items[] = {{.struct_size = sizeof(cogpu_metadata_item),
                                                 .name = "SCALE",
                                                 .value = "0.1",
                                                 .role = "scale",
                                                 .band = 1},
                                                {.struct_size = sizeof(cogpu_metadata_item),
                                                 .name = "OFFSET",
                                                 .value = "-3e2",
                                                 .role = "offset",
                                                 .band = 2},
                                                {.struct_size = sizeof(cogpu_metadata_item),
                                                 .name = "SCALE",
                                                 .value = "2",
                                                 .role = "SCALE",
                                                 .band = 3},
                                                {.struct_size = sizeof(cogpu_metadata_item),
                                                 .name = "OFFSET",
                                                 .value = "5",
                                                 .role = "offset",
                                                 .band = 3}};
    cogpu_profile profile = with_items(items, 4);
    CHECK(accepts(describe_metadata, &profile));
    const char *xml = text_of(42112);
    CHECK(xml && strstr(xml, "<Item name=\"OFFSET\" sample=\"0\" role=\"offset\">0</Item>"));
    CHECK(xml && strstr(xml, "<Item name=\"SCALE\" sample=\"1\" role=\"scale\">1</Item>"));
    CHECK(xml && strstr(xml, "<Item name=\"SCALE\" sample=\"0\" role=\"scale\">0.1</Item>"));
    CHECK(xml && !strstr(xml, "sample=\"2\" role=\"offset\">0<"));
}

static void items_that_are_invalid(void) {
    static const char *const numbers[] = {"nan", "inf", "-inf", "1e999", "x", "", "1,5", "0x10"};
    cogpu_metadata_item item = {
        .struct_size = sizeof(cogpu_metadata_item), .name = "A", .value = "x", .band = 4};
    cogpu_profile profile = with_items(&item, 1);
    CHECK(refuses(describe_metadata, &profile, "band 4"));
    item.band = -1;
    CHECK(refuses(describe_metadata, &profile, "band -1"));
    item = (cogpu_metadata_item){.struct_size = sizeof(cogpu_metadata_item), .value = "x"};
    CHECK(refuses(describe_metadata, &profile, "no name"));
    item.name = "";
    CHECK(refuses(describe_metadata, &profile, "no name"));
    item = (cogpu_metadata_item){
        .struct_size = sizeof(cogpu_metadata_item), .name = "a\nb", .value = "x"};
    CHECK(refuses(describe_metadata, &profile, "control"));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        item = (cogpu_metadata_item){.struct_size = sizeof(cogpu_metadata_item),
                                     .name = "SCALE",
                                     .value = numbers[i],
                                     .role = "scale",
                                     .band = 1};
        CHECK(refuses(describe_metadata, &profile, "finite number"));
    }
    profile = with_items(NULL, 1);
    CHECK(refuses(describe_metadata, &profile, "NULL"));
}

/* What is no UTF-8 is Latin-1, byte by byte. */
static void items_become_utf8(void) {
    static const char *const cases[][2] = {
        {"\xc3\xa9", "\xc3\xa9"},
        {"\xe2\x82\xac", "\xe2\x82\xac"},
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
        {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
        {"\xe9", "\xc3\xa9"},
        {"caf\xe9 x", "caf\xc3\xa9 x"},
        {"\xff", "\xc3\xbf"},
        {"\xc3", "\xc3\x83"},
        {"\xe2\x82", "\xc3\xa2\xc2\x82"},
        {"\xc0\x80", "\xc3\x80\xc2\x80"},             /* too long for what it says */
        {"\xed\xa0\x80", "\xc3\xad\xc2\xa0\xc2\x80"}, /* a surrogate */
        {"\xf4\x90\x80\x80", "\xc3\xb4\xc2\x90\xc2\x80\xc2\x80"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[200];
        cogpu_metadata_item item = {
            .struct_size = sizeof(cogpu_metadata_item), .name = cases[i][0], .value = cases[i][0]};
        cogpu_profile profile = with_items(&item, 1);
        snprintf(expected, sizeof expected,
                 "<GDALMetadata>\n  <Item name=\"%s\">%s</Item>\n</GDALMetadata>\n", cases[i][1],
                 cases[i][1]);
        CHECK(accepts(describe_metadata, &profile));
        CHECK_TEXT(text_of(42112), expected);
    }
}

static void nodata_as_the_type_has_it(void) {
    static const struct {
        cogpu_type type;
        const char *given, *written; /* NULL: refused */
    } cases[] = {
        {COGPU_TYPE_U8, "255", "255"},
        {COGPU_TYPE_U8, "0", "0"},
        {COGPU_TYPE_U8, "1e2", "100"},
        {COGPU_TYPE_U8, "7.0", "7"},
        {COGPU_TYPE_U8, "256", NULL},
        {COGPU_TYPE_U8, "-9999", NULL},
        {COGPU_TYPE_U8, "nan", NULL},
        {COGPU_TYPE_U8, "inf", NULL},
        {COGPU_TYPE_U8, "1.5", NULL},
        {COGPU_TYPE_U8, "", NULL},
        {COGPU_TYPE_U8, "12x", NULL},
        {COGPU_TYPE_U8, "0x10", NULL},
        {COGPU_TYPE_U8, "1 2", NULL},
        {COGPU_TYPE_I8, "-128", "-128"},
        {COGPU_TYPE_I16, "-9999", "-9999"},
        {COGPU_TYPE_I16, "40000", NULL},
        {COGPU_TYPE_U32, "4294967295", "4294967295"},
        {COGPU_TYPE_U32, "4294967296", NULL},
        {COGPU_TYPE_I64, "-9223372036854775808", "-9223372036854775808"},
        {COGPU_TYPE_I64, "9223372036854775807", "9223372036854775807"},
        {COGPU_TYPE_I64, "9223372036854775808", NULL},
        {COGPU_TYPE_U64, "18446744073709551615", "18446744073709551615"},
        {COGPU_TYPE_U64, "18446744073709551616", NULL},
        {COGPU_TYPE_U64, "-1", NULL},
        {COGPU_TYPE_F32, "-9999", "-9999"},
        {COGPU_TYPE_F32, "0.1", "0.10000000000000001"},
        {COGPU_TYPE_F32, "NaN", "nan"},
        {COGPU_TYPE_F32, "-nan", "nan"},
        {COGPU_TYPE_F32, "-inf", "-inf"},
        {COGPU_TYPE_F32, "-3.4028234663852886e+38", "-3.4028234663852886e+38"},
        {COGPU_TYPE_F32, "1e39", NULL},
        {COGPU_TYPE_F16, "65504", "65504"},
        {COGPU_TYPE_F16, "1e5", NULL},
        {COGPU_TYPE_F64, "1e300", "1.0000000000000001e+300"},
        {COGPU_TYPE_F64, "1e400", NULL},
        {COGPU_TYPE_CI16, "-5", "-5"},
        {COGPU_TYPE_CF32, "nan", "nan"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cogpu_profile profile = of_one_band();
        profile.type = cases[i].type;
        profile.nodata = cases[i].given;
        if (!cases[i].written)
            CHECK(refuses(describe_metadata, &profile, "nodata"));
        else if (accepts(describe_metadata, &profile))
            CHECK_TEXT(text_of(42113), cases[i].written);
        else
            CHECK(!"accepted");
    }
}

/* The decimal point of the process's locale is not that of the file. */
static void locale_does_not_matter(void) {
    static const char *const others[] = {"ps_AF", "ps_AF.utf8", "de_DE.UTF-8", "de_DE.utf8",
                                         "de_DE"};
    cogpu_profile profile = of_one_band();
    profile.type = COGPU_TYPE_F64;
    profile.nodata = "-0.25";
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (setlocale(LC_ALL, others[i]))
            break;
    CHECK(accepts(describe_metadata, &profile));
    CHECK_TEXT(text_of(42113), "-0.25");
    setlocale(LC_ALL, "C");
}

static void description(void) {
    cogpu_profile profile = of_one_band();
    profile.description = "what it is";
    CHECK(accepts(describe_metadata, &profile) && tag_list.count == 1);
    CHECK_TEXT(text_of(270), "what it is");
}

static void extra_tags(void) {
    static const uint16_t shorts[] = {7, 8};
    cogpu_extra_tag tags[] = {{sizeof(cogpu_extra_tag), 65001, TYPE_SHORT, 2, shorts},
                              {sizeof(cogpu_extra_tag), 305, TYPE_ASCII, 6, "cogpu"}};
    cogpu_profile profile = of_one_band();
    profile.tags = tags;
    profile.tag_count = 2;
    CHECK(accepts(describe_metadata, &profile) && tag_list.count == 2 &&
          has_shorts(65001, 2, shorts));
    CHECK_TEXT(text_of(305), "cogpu");
    tags[1] = tags[0];
    CHECK(refuses(describe_metadata, &profile, "twice"));
    profile.tags = NULL;
    CHECK(refuses(describe_metadata, &profile, "NULL"));
}

/* A value that no sample can have, as other writers store it. */
static void nodata_as_an_extra_tag(void) {
    cogpu_extra_tag tag = {sizeof(cogpu_extra_tag), 42113, TYPE_ASCII, 6, "-9999"};
    cogpu_profile profile = of_one_band();
    profile.tags = &tag;
    profile.tag_count = 1;
    CHECK(accepts(describe_metadata, &profile) && tag_list.count == 1);
    CHECK_TEXT(text_of(42113), "-9999");
    profile.nodata = "7";
    CHECK(refuses(describe_metadata, &profile, "set by the writer"));
}

/* T147, and what would point into the void. */
static void extra_tags_that_are_refused(void) {
    static const uint16_t ours[] = {254,   255,   256,   257,   258,   259,   262,   266,   270,
                                    273,   277,   278,   279,   284,   317,   320,   322,   323,
                                    324,   325,   338,   339,   347,   513,   530,   532,   33550,
                                    33922, 34264, 34735, 34736, 34737, 42112, 42113, 50674, 50844};
    static const uint16_t pointers[] = {288, 330, 34665, 34853, 40965};
    static const uint32_t value[2] = {1, 1};
    cogpu_extra_tag tag = COGPU_EXTRA_TAG_INIT;
    cogpu_profile profile = of_one_band();
    profile.tags = &tag;
    profile.tag_count = 1;
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        tag = (cogpu_extra_tag){sizeof(cogpu_extra_tag), ours[i], TYPE_LONG, 1, value};
        CHECK(refuses(describe_metadata, &profile, "set by the writer"));
    }
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++) {
        tag = (cogpu_extra_tag){sizeof(cogpu_extra_tag), pointers[i], TYPE_LONG, 1, value};
        CHECK(refuses(describe_metadata, &profile, "another file"));
    }
    tag = (cogpu_extra_tag){sizeof(cogpu_extra_tag), 65001, TYPE_IFD, 1, value};
    CHECK(refuses(describe_metadata, &profile, "another file"));
    tag = (cogpu_extra_tag){sizeof(cogpu_extra_tag), 65001, 14, 1, value};
    CHECK(refuses(describe_metadata, &profile, "type 14"));
    tag = (cogpu_extra_tag){sizeof(cogpu_extra_tag), 65001, 65536 + TYPE_LONG, 1, value};
    CHECK(refuses(describe_metadata, &profile, "type"));
    tag = (cogpu_extra_tag){sizeof(cogpu_extra_tag), 65536, TYPE_LONG, 1, value};
    CHECK(refuses(describe_metadata, &profile, "tag 65536 does not exist"));
    tag = (cogpu_extra_tag){sizeof(cogpu_extra_tag), 65001, TYPE_LONG, 0, value};
    CHECK(refuses(describe_metadata, &profile, "no values"));
    tag = (cogpu_extra_tag){sizeof(cogpu_extra_tag), 65001, TYPE_LONG, 1, NULL};
    CHECK(refuses(describe_metadata, &profile, "no values"));
    tag = (cogpu_extra_tag){sizeof(cogpu_extra_tag), 65001, TYPE_DOUBLE, UINT64_MAX / 4, value};
    CHECK(refuses(describe_metadata, &profile, "4 GiB"));
    tag = (cogpu_extra_tag){sizeof(cogpu_extra_tag), 65001, TYPE_ASCII, 3, "abc"};
    CHECK(refuses(describe_metadata, &profile, "NUL"));
}

/* ---- memory -------------------------------------------------------------------------------- */

/* Every part ends with a status, however little it gets. */
static void memory_that_ends(void) {
    static const cogpu_metadata_item item = {
        .struct_size = sizeof(cogpu_metadata_item), .name = "A", .value = "b"};
    static const cogpu_gcp point = COGPU_GCP_INIT;
    static const uint16_t palette[3] = {0};
    cogpu_profile profile = with_items(&item, 1);
    profile.bands = 1;
    profile.gcps = &point;
    profile.gcp_count = 1;
    profile.crs = cogpu_proj_version() ? "+proj=moll +ellps=bessel" : "EPSG:4326";
    profile.palette = palette;
    profile.palette_entries = 1;
    describe *parts[] = {describe_georef, describe_metadata, describe_colours};
    for (size_t i = 0; i < 3; i++) {
        cogpu_status status = COGPU_LIMIT_EXCEEDED;
        uint32_t refused = 0;
        for (uint64_t limit = 0; limit < 1 << 20 && status != COGPU_OK; limit += 512 + limit / 4) {
            begin_tags();
            tags_arena.limit = limit;
            status = parts[i](&profile);
            refused += status == COGPU_LIMIT_EXCEEDED;
            CHECK(status == COGPU_OK || status == COGPU_LIMIT_EXCEEDED);
        }
        CHECK(status == COGPU_OK && refused > 0);
    }
}

TESTS(write_metadata) {
    begin_tags();
    RUN(items_as_gdal_writes_them);
    RUN(items_come_back);
    RUN(scale_and_offset_go_together);
    RUN(items_that_are_invalid);
    RUN(items_become_utf8);
    RUN(nodata_as_the_type_has_it);
    RUN(locale_does_not_matter);
    RUN(description);
    RUN(extra_tags);
    RUN(nodata_as_an_extra_tag);
    RUN(extra_tags_that_are_refused);
    RUN(memory_that_ends);
    cogpu_arena_close(&tags_arena);
    return FINISH();
}
