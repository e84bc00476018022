/* GDAL_METADATA: what GDAL writes, what others write, and malformed XML. */
#include "support/test.h"

#include "support/opened_tiff.h"

static cogpu_arena arena;
static cogpu_metadata metadata;
static const char *warning;

static void parse(const char *xml) {
    cogpu_error error;
    cogpu_arena_close(&arena);
    cogpu_arena_open(&arena, 1 << 24);
    warning = NULL;
    CHECK(cogpu_metadata_parse(xml, strlen(xml), &arena, &metadata, &warning, &error) == COGPU_OK);
}

static void items_as_gdal_writes_them(void) {
    parse("<GDALMetadata>\n"
          "  <Item name=\"SCALE\" sample=\"0\" role=\"scale\">0.1</Item>\n"
          "  <Item name=\"KEY\" domain=\"DOMAIN\">a value</Item>\n"
          "</GDALMetadata>\n");
    CHECK(metadata.item_count == 2 && !warning);
    CHECK_TEXT(metadata.items[0].name, "SCALE");
    CHECK_TEXT(metadata.items[0].role, "scale");
    CHECK_TEXT(metadata.items[0].value, "0.1");
    CHECK_TEXT(metadata.items[0].domain, "");
    CHECK(metadata.items[0].band == 1 && metadata.items[1].band == 0);
    CHECK_TEXT(metadata.items[1].domain, "DOMAIN");
    CHECK_TEXT(metadata.items[1].value, "a value");
}

/* T144: GDAL escapes twice, others once. */
static void text_escaped_once_or_twice(void) {
    parse("<GDALMetadata><Item name='a'>x &amp;amp; &amp;lt;y&amp;gt;</Item>"
          "<Item name='b'>x &amp; &lt;y&gt; &quot;&apos;</Item>"
          "<Item name='c'>&amp;amp;amp;</Item>"
          "<Item name='&lt;d&gt;'>R&amp;D &nosuch; &;</Item></GDALMetadata>");
    CHECK(metadata.item_count == 4 && !warning);
    CHECK_TEXT(metadata.items[0].value, "x & <y>");
    CHECK_TEXT(metadata.items[1].value, "x & <y> \"'");
    CHECK_TEXT(metadata.items[2].value, "&amp;");
    CHECK_TEXT(metadata.items[3].name, "<d>");
    CHECK_TEXT(metadata.items[3].value, "R&D &nosuch; &;");
}

static void numeric_entities(void) {
    parse("<GDALMetadata><Item name='a'>&#65;&#x42;&#xe9;&#x20AC;&#x1F600;</Item>"
          "<Item name='b'>&#0;&#xD800;&#x110000;&#99999999999;&#;&#x;&#zz;</Item></GDALMetadata>");
    CHECK_TEXT(metadata.items[0].value, "AB\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    CHECK_TEXT(metadata.items[1].value, "&#0;&#xD800;&#x110000;&#99999999999;&#;&#x;&#zz;");
}

static void attributes_in_any_order_and_quotes(void) {
    parse("<?xml version=\"1.0\"?><!-- c > --><GDALMetadata ><Item\n role = 'Offset'  "
          "sample=\"2\"\tname"
          "='it\"s > /' other=\"x\">1</Item><Item name=\"e\"/></GDALMetadata>");
    CHECK(metadata.item_count == 2 && !warning);
    CHECK_TEXT(metadata.items[0].name, "it\"s > /");
    CHECK_TEXT(metadata.items[0].role, "Offset");
    CHECK(metadata.items[0].band == 3);
    CHECK_TEXT(metadata.items[1].value, "");
}

static void comments_sections_and_foreign_elements(void) {
    parse("<GDALMetadata><Item name='a'>x<!-- <Item> -->y</Item>"
          "<Item name='b'><![CDATA[<raw> & ]]>z</Item>"
          "<Foo><Item name='hidden'>1</Item></Foo><Bar/>"
          "<Item name='c'>3</Item></GDALMetadata>");
    CHECK(metadata.item_count == 3 && !warning);
    CHECK_TEXT(metadata.items[0].value, "xy");
    CHECK_TEXT(metadata.items[1].value, "<raw> & z");
    CHECK_TEXT(metadata.items[2].name, "c");
}

static void xml_domains_keep_their_text(void) {
    parse("<GDALMetadata><Item name='x' domain='xml:XMP'><a b='&lt;'><c/>t &amp;</a></Item>"
          "<Item name='y'>2</Item></GDALMetadata>");
    CHECK(metadata.item_count == 2 && !warning);
    CHECK_TEXT(metadata.items[0].value, "<a b='&lt;'><c/>t &amp;</a>");
}

static void items_without_name_or_band_are_dropped(void) {
    parse(
        "<GDALMetadata><Item>1</Item><Item name='a' sample='x'>1</Item>"
        "<Item name='b' sample='65536'>1</Item><Item name='c' sample=''>1</Item>"
        "<Item name='d' sample='99999999999999999999'>1</Item>"
        "<Item name='e' sample='-1'>1</Item><Item name='f' sample='65535'>1</Item></GDALMetadata>");
    CHECK(metadata.item_count == 2);
    CHECK(metadata.items[0].band == 0 && metadata.items[1].band == 65536);
}

/* Items before the fault are kept, and the fault is told. */
static void malformed_documents(void) {
    static const struct {
        const char *xml;
        uint32_t items;
    } cases[] = {
        {"<GDALMetadata><Item name='a'>1</Item><Item name='b'>2</GDALMetadata>", 1},
        {"<GDALMetadata><Item name='a'>1</Item>", 1},
        {"<GDALMetadata><Item name='a'>1</Item><Item name='b", 1},
        {"<GDALMetadata><Item name='a'>1</Item><![CDATA[", 1},
        {"<GDALMetadata><Item name='a'>1</Item><!-- ", 1},
        {"<GDALMetadata><Item name='a'>1</Wrong></GDALMetadata>", 0},
        {"<!DOCTYPE x [<!ENTITY e 'e'>]><GDALMetadata><Item name='a'>1</Item></GDALMetadata>", 0},
        {"<Other><Item name='a'>1</Item></Other>", 0},
        {"no xml", 0},
        {"<", 0},
        {"<>", 0},
        {"</GDALMetadata>", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        parse(cases[i].xml);
        CHECK(metadata.item_count == cases[i].items);
        CHECK(warning);
    }
    parse("<GDALMetadata/>");
    CHECK(metadata.item_count == 0 && !warning);
    parse("");
    CHECK(metadata.item_count == 0 && !warning);
}

static void depth_is_bounded(void) {
    static char xml[20000];
    for (int depth = 10; depth <= 1000; depth *= 10) {
        strcpy(xml, "<GDALMetadata><Item name='a'>");
        for (int i = 0; i < depth; i++)
            strcat(xml, "<a>");
        for (int i = 0; i < depth; i++)
            strcat(xml, "</a>");
        strcat(xml, "</Item></GDALMetadata>");
        parse(xml);
        CHECK(depth == 10 ? metadata.item_count == 1 && !warning
                          : metadata.item_count == 0 && warning);
    }
}

/* Text behind a NUL, and a tag without one. */
static void read_from_a_file(void) {
    static const char text[] = "<GDALMetadata><Item name='a'>1</Item></GDALMetadata>\0<junk";
    for (size_t cut = 0; cut < 2; cut++) {
        opened_tiff opened;
        cogpu_metadata found;
        build_open(&opened.file, cut != 0, false);
        build_image(&opened.file, 1, 1, 1, 8, 1, NULL);
        size_t bytes = cut ? strlen(text) : sizeof text;
        build_tag(&opened.file, TAG_GDAL_METADATA, BUILD_ASCII, bytes, text);
        CHECK(open_built(&opened) == COGPU_OK);
        CHECK(cogpu_metadata_read(&opened.tiff, 0, &opened.arena, &found, &opened.warning,
                                  &opened.error) == COGPU_OK);
        CHECK(found.item_count == 1 && !opened.warning);
        close_built(&opened);
    }
}

/* Memory that is short ends the reading with a status. */
static void memory_is_bounded(void) {
    static const char xml[] = "<GDALMetadata><Item name='a'>1234567890123456</Item></GDALMetadata>";
    for (uint64_t limit = 0; limit < 200; limit += 8) {
        cogpu_arena small;
        cogpu_metadata found;
        cogpu_error error;
        const char *told = NULL;
        cogpu_arena_open(&small, limit);
        cogpu_status status =
            cogpu_metadata_parse(xml, sizeof xml - 1, &small, &found, &told, &error);
        CHECK(status == COGPU_LIMIT_EXCEEDED || (status == COGPU_OK && found.item_count == 1));
        cogpu_arena_close(&small);
    }
}

TESTS(metadata) {
    RUN(items_as_gdal_writes_them);
    RUN(text_escaped_once_or_twice);
    RUN(numeric_entities);
    RUN(attributes_in_any_order_and_quotes);
    RUN(comments_sections_and_foreign_elements);
    RUN(xml_domains_keep_their_text);
    RUN(items_without_name_or_band_are_dropped);
    RUN(malformed_documents);
    RUN(depth_is_bounded);
    RUN(read_from_a_file);
    RUN(memory_is_bounded);
    cogpu_arena_close(&arena);
    return FINISH();
}
