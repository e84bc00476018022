/*
 * Parses the XML of GDAL_METADATA (tag 42112) into items. It parses this document, not XML in
 * general: elements, attributes, comments, CDATA, the five entities and numeric ones; no DOCTYPE.
 * One pass without recursion. Items before a syntax error are kept.
 *
 * GDAL escapes the text of an item twice, others once; so it is unescaped twice, as GDAL does. An
 * item that holds elements (a domain "xml:...") has their text as its value, untouched.
 */
#include "image/image.h"
#include "image/values.h"

#include "base/xml.h"

#include <string.h>

enum { ITEMS_MAX = 1 << 20, BANDS_MAX = 65536 };

typedef struct gdal_metadata_reader {
    xml_reader xml;
    cogpu_arena *arena;
} gdal_metadata_reader;

static cogpu_status keep_text(gdal_metadata_reader *in, xml_slice text, const char **kept,
                              cogpu_error *error) {
    char *buffer = NULL;
    TRY(cogpu_arena_allocate(in->arena, (uint64_t)text.bytes + 1, 1, &buffer, error));
    buffer[cogpu_xml_unescape(text, buffer)] = '\0';
    *kept = buffer;
    return COGPU_OK;
}

/* 0-based in the file; the whole image if absent or not a number. */
static bool read_sample(xml_slice text, int32_t *band) {
    int32_t sample = 0;
    if (cogpu_xml_is_word(text, "-1"))
        return *band = 0, true;
    for (size_t i = 0; i < text.bytes; i++) {
        if (text.at[i] < '0' || text.at[i] > '9' || sample >= BANDS_MAX)
            return false;
        sample = sample * 10 + (text.at[i] - '0');
    }
    *band = sample + 1;
    return text.bytes > 0 && sample < BANDS_MAX;
}

/* *is_valid is false for an item without a name or with an impossible band. */
static cogpu_status read_attributes(gdal_metadata_reader *in, xml_slice attributes,
                                    cogpu_metadata_item *item, bool *is_valid, cogpu_error *error) {
    xml_slice name, value;
    *item = (cogpu_metadata_item){.domain = "", .role = "", .value = ""};
    *is_valid = true;
    while (cogpu_xml_attribute(&attributes, &name, &value)) {
        if (cogpu_xml_is_word(name, "name"))
            TRY(keep_text(in, value, &item->name, error));
        else if (cogpu_xml_is_word(name, "domain"))
            TRY(keep_text(in, value, &item->domain, error));
        else if (cogpu_xml_is_word(name, "role"))
            TRY(keep_text(in, value, &item->role, error));
        else if (cogpu_xml_is_word(name, "sample"))
            *is_valid = *is_valid && read_sample(value, &item->band);
    }
    *is_valid = *is_valid && item->name;
    return COGPU_OK;
}

/* Text is unescaped twice; nested elements stay unchanged. */
static cogpu_status keep_content(gdal_metadata_reader *in, const xml_element *element,
                                 const char **kept, cogpu_error *error) {
    xml_slice content = element->content;
    if (element->has_elements)
        return cogpu_arena_text(in->arena, content.at, content.bytes, kept, error);
    char *buffer = NULL;
    TRY(cogpu_arena_allocate(in->arena, (uint64_t)content.bytes + 1, 1, &buffer, error));
    size_t bytes = cogpu_xml_join(content, buffer);
    buffer[cogpu_xml_unescape((xml_slice){buffer, bytes}, buffer)] = '\0';
    *kept = buffer;
    return COGPU_OK;
}

/* Skips elements other than Item. */
static cogpu_status read_item_element(gdal_metadata_reader *in, const xml_element *child,
                                      cogpu_metadata_item *items, uint32_t *count,
                                      cogpu_error *error) {
    bool is_valid;
    if (!cogpu_xml_is_word(child->name, "Item"))
        return COGPU_OK;
    if (*count == ITEMS_MAX) {
        in->xml.fault = "it has too many items";
        return COGPU_OK;
    }
    cogpu_metadata_item *item = &items[*count];
    TRY(read_attributes(in, child->attributes, item, &is_valid, error));
    if (!is_valid)
        return COGPU_OK;
    TRY(keep_content(in, child, &item->value, error));
    (*count)++;
    return COGPU_OK;
}

/* Skips the prologue and the root's start tag. */
static bool enter_gdal_metadata(xml_reader *in, bool *is_empty) {
    xml_tag root;
    for (bool skipped = true; skipped;) {
        xml_slice text;
        if (!cogpu_xml_skip_past(&in->text, "<", &text)) {
            in->fault = "it ends too early";
            return false;
        }
        if (!cogpu_xml_skip_other(in, &skipped, &text))
            return false;
    }
    if (!cogpu_xml_read_tag(in, &root))
        return false;
    *is_empty = root.is_empty;
    if (!cogpu_xml_is_word(root.name, "GDALMetadata") || root.closes)
        in->fault = "its root is not GDALMetadata";
    return !in->fault;
}

static cogpu_status read_children(gdal_metadata_reader *in, cogpu_metadata_item *items,
                                  uint32_t *count, cogpu_error *error) {
    xml_element child;
    while (!in->xml.fault && cogpu_xml_next(&in->xml, &child))
        TRY(read_item_element(in, &child, items, count, error));
    if (!in->xml.fault && !in->xml.is_closed)
        in->xml.fault = "it ends too early";
    return COGPU_OK;
}

/* Upper bound of the number of items, for the array. */
static uint32_t count_items(xml_text text) {
    uint32_t count = 0;
    xml_slice ignored;
    while (count < ITEMS_MAX && cogpu_xml_skip_past(&text, "<Item", &ignored))
        count++;
    return count;
}

cogpu_status cogpu_metadata_parse(const char *xml, size_t bytes, cogpu_arena *arena,
                                  cogpu_metadata *metadata, const char **warning,
                                  cogpu_error *error) {
    *metadata = (cogpu_metadata){0};
    if (!bytes)
        return COGPU_OK;
    gdal_metadata_reader in = {.xml.text = {xml, xml + bytes}, .arena = arena};
    cogpu_metadata_item *items = NULL;
    bool is_empty = false;
    TRY(cogpu_arena_allocate(arena, count_items(in.xml.text), sizeof *items, &items, error));
    metadata->items = items;
    if (enter_gdal_metadata(&in.xml, &is_empty) && !is_empty)
        TRY(read_children(&in, items, &metadata->item_count, error));
    if (in.xml.fault)
        cogpu_warn(arena, warning,
                   "GDAL_METADATA is malformed (%s); the %u items before the error are kept",
                   in.xml.fault, metadata->item_count);
    return COGPU_OK;
}

cogpu_status cogpu_metadata_read(const cogpu_tiff *tiff, uint32_t directory, cogpu_arena *arena,
                                 cogpu_metadata *metadata, const char **warning,
                                 cogpu_error *error) {
    const char *xml;
    uint32_t bytes;
    TRY(cogpu_values_chars(tiff, directory, TAG_GDAL_METADATA, arena, &xml, &bytes, warning,
                           error));
    return cogpu_metadata_parse(xml, bytes ? strnlen(xml, bytes) : 0, arena, metadata, warning,
                                error);
}
