/* Elements that PAM and VRT share. See pam_elements.h. */
#include "image/pam_elements.h"

#include "base/text.h"
#include "image/sidecar.h"
#include "image/values.h"

#include <math.h>
#include <string.h>

enum { ITEMS_MAX = 1 << 20, GCPS_MAX = 1 << 20, COLOURS_MAX = 65536, TEXT_NUMBER_MAX = 64 };

xml_reader cogpu_pam_content(const xml_element *element) {
    return (xml_reader){
        .text = {element->content.at, element->content.at + element->content.bytes}};
}

bool cogpu_pam_child(xml_slice content, const char *name, xml_element *child) {
    xml_reader in = {.text = {content.at, content.at + content.bytes}};
    while (cogpu_xml_next(&in, child))
        if (cogpu_xml_is_same(child->name, name))
            return true;
    return false;
}

xml_slice cogpu_pam_attribute(xml_slice attributes, const char *name) {
    xml_slice found, value;
    while (cogpu_xml_attribute(&attributes, &found, &value))
        if (cogpu_xml_is_same(found, name))
            return value;
    return (xml_slice){name, 0};
}

cogpu_status cogpu_pam_text(cogpu_arena *arena, xml_slice content, const char **text,
                            cogpu_error *error) {
    char *buffer = NULL;
    while (content.bytes && cogpu_xml_is_blank(*content.at))
        content.at++, content.bytes--;
    TRY(cogpu_arena_allocate(arena, (uint64_t)content.bytes + 1, 1, &buffer, error));
    buffer[cogpu_xml_join(content, buffer)] = '\0';
    *text = buffer;
    return COGPU_OK;
}

bool cogpu_pam_number(xml_slice text, double *value) {
    char digits[TEXT_NUMBER_MAX];
    while (text.bytes && cogpu_xml_is_blank(*text.at))
        text.at++, text.bytes--;
    size_t bytes = text.bytes < sizeof digits - 1 ? text.bytes : sizeof digits - 1;
    memcpy(digits, text.at, bytes);
    digits[bytes] = '\0';
    return cogpu_number_parse(digits, value) && isfinite(*value);
}

/* ---- metadata ---- */

cogpu_status cogpu_pam_add_item(cogpu_pam_elements *in, cogpu_metadata_item item) {
    cogpu_metadata_item *place;
    TRY(cogpu_growing_add(&in->items, sizeof item, ITEMS_MAX, in->arena, &place, in->error));
    if (place)
        *place = item;
    return COGPU_OK;
}

/* The first attribute is the key, whatever it is called. */
static cogpu_status read_item(cogpu_pam_elements *in, const xml_element *child,
                              cogpu_metadata_item item) {
    xml_slice attributes = child->attributes, name, key;
    if (!cogpu_xml_is_same(child->name, "MDI") || !cogpu_xml_attribute(&attributes, &name, &key))
        return COGPU_OK;
    TRY(cogpu_pam_text(in->arena, child->content, &item.value, in->error));
    if (!item.value[0])
        return COGPU_OK;
    TRY(cogpu_pam_text(in->arena, key, &item.name, in->error));
    return cogpu_pam_add_item(in, item);
}

/* A document is one item, which GDAL calls "doc" in GDAL_METADATA. */
static cogpu_status read_document(cogpu_pam_elements *in, const xml_element *metadata,
                                  cogpu_metadata_item item, bool is_xml) {
    xml_slice text = cogpu_xml_trim(metadata->content);
    if (!text.bytes)
        return COGPU_OK;
    item.name = "doc";
    if (is_xml)
        TRY(cogpu_arena_text(in->arena, text.at, text.bytes, &item.value, in->error));
    else
        TRY(cogpu_pam_text(in->arena, text, &item.value, in->error));
    return cogpu_pam_add_item(in, item);
}

cogpu_status cogpu_pam_metadata(cogpu_pam_elements *in, const xml_element *metadata,
                                uint32_t band) {
    cogpu_metadata_item item = {.role = "", .band = (int32_t)band};
    xml_slice format = cogpu_pam_attribute(metadata->attributes, "format");
    bool is_xml = cogpu_xml_is_same(format, "xml");
    TRY(cogpu_pam_text(in->arena, cogpu_pam_attribute(metadata->attributes, "domain"), &item.domain,
                       in->error));
    if (band == 0 && is_same_name(item.domain, "IMAGE_STRUCTURE"))
        return COGPU_OK;
    if (is_xml || cogpu_xml_is_same(format, "json"))
        return read_document(in, metadata, item, is_xml);
    xml_reader children = cogpu_pam_content(metadata);
    xml_element child;
    while (cogpu_xml_next(&children, &child))
        TRY(read_item(in, &child, item));
    return COGPU_OK;
}

/* ---- georeferencing ---- */

bool cogpu_pam_six_numbers(xml_slice text, double numbers[6]) {
    const char *at = text.at, *end = at + text.bytes;
    for (int i = 0; i < 6; i++) {
        const char *comma = at <= end ? memchr(at, ',', (size_t)(end - at)) : NULL;
        bool is_last = comma == NULL;
        size_t bytes = at <= end ? (size_t)((comma ? comma : end) - at) : 0;
        if (is_last != (i == 5) || !cogpu_pam_number((xml_slice){at, bytes}, &numbers[i]))
            return false;
        at += bytes + 1;
    }
    return true;
}

static cogpu_status read_gcp(cogpu_pam_elements *in, const xml_element *child) {
    cogpu_gcp gcp = {0}, *place;
    xml_slice all = child->attributes, z = cogpu_pam_attribute(all, "Z");
    if (!cogpu_xml_is_same(child->name, "GCP") ||
        !cogpu_pam_number(cogpu_pam_attribute(all, "Pixel"), &gcp.column) ||
        !cogpu_pam_number(cogpu_pam_attribute(all, "Line"), &gcp.row) ||
        !cogpu_pam_number(cogpu_pam_attribute(all, "X"), &gcp.x) ||
        !cogpu_pam_number(cogpu_pam_attribute(all, "Y"), &gcp.y))
        return COGPU_OK;
    if (!cogpu_pam_number(z.bytes ? z : cogpu_pam_attribute(all, "GCPZ"), &gcp.z))
        gcp.z = 0;
    TRY(cogpu_pam_text(in->arena, cogpu_pam_attribute(all, "Id"), &gcp.id, in->error));
    TRY(cogpu_pam_text(in->arena, cogpu_pam_attribute(all, "Info"), &gcp.info, in->error));
    TRY(cogpu_growing_add(&in->gcps, sizeof gcp, GCPS_MAX, in->arena, &place, in->error));
    if (place)
        *place = gcp;
    return COGPU_OK;
}

cogpu_status cogpu_pam_gcps(cogpu_pam_elements *in, const xml_element *list, const char **srs) {
    xml_reader children = cogpu_pam_content(list);
    xml_slice stated = cogpu_pam_attribute(list->attributes, "Projection");
    xml_element child;
    while (cogpu_xml_next(&children, &child))
        TRY(read_gcp(in, &child));
    return stated.bytes ? cogpu_pam_text(in->arena, stated, srs, in->error) : COGPU_OK;
}

/* ---- bands ---- */

/* 16 digits: the bytes of a double, the least significant first. */
static bool read_hex_double(xml_slice text, double *value) {
    uint64_t bits = 0;
    if (text.bytes != 16)
        return false;
    for (int i = 7; i >= 0; i--) {
        int high = ascii_hex_value(text.at[2 * i]), low = ascii_hex_value(text.at[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        bits = bits << 8 | (uint64_t)(high * 16 + low);
    }
    memcpy(value, &bits, sizeof *value);
    return true;
}

cogpu_status cogpu_pam_nodata(cogpu_pam_elements *in, const xml_element *element,
                              const char **text) {
    char digits[COGPU_NUMBER_CHARS];
    double value;
    if (!read_hex_double(cogpu_pam_attribute(element->attributes, "le_hex_equiv"), &value))
        return cogpu_pam_text(in->arena, cogpu_xml_trim(element->content), text, in->error);
    cogpu_number_format(value, digits);
    return cogpu_arena_text(in->arena, digits, strlen(digits), text, in->error);
}

static uint16_t colour_of(xml_slice attributes, const char *name, double value) {
    cogpu_pam_number(cogpu_pam_attribute(attributes, name), &value);
    value = fmin(fmax(value, 0), 255);
    return (uint16_t)((uint16_t)value * 257);
}

cogpu_status cogpu_pam_palette(cogpu_pam_elements *in, const xml_element *element,
                               const uint16_t **palette, uint32_t *entries) {
    xml_reader children = cogpu_pam_content(element);
    xml_element child;
    uint32_t count = 0;
    uint16_t *colours = NULL;
    while (count < COLOURS_MAX && cogpu_xml_next(&children, &child))
        count += cogpu_xml_is_same(child.name, "Entry");
    TRY(cogpu_arena_allocate(in->arena, (uint64_t)4 * count, sizeof *colours, &colours, in->error));
    children = cogpu_pam_content(element);
    for (uint32_t i = 0; i < count && cogpu_xml_next(&children, &child);) {
        if (!cogpu_xml_is_same(child.name, "Entry"))
            continue;
        colours[i] = colour_of(child.attributes, "c1", 0);
        colours[count + i] = colour_of(child.attributes, "c2", 0);
        colours[2 * count + i] = colour_of(child.attributes, "c3", 0);
        colours[3 * count + i++] = colour_of(child.attributes, "c4", 255);
    }
    *palette = count ? colours : NULL;
    *entries = count;
    return COGPU_OK;
}

/* Names of classes have no place of their own in a TIFF: items named by the value of the class. */
cogpu_status cogpu_pam_categories(cogpu_pam_elements *in, const xml_element *element,
                                  uint32_t band) {
    xml_reader children = cogpu_pam_content(element);
    xml_element child;
    for (uint32_t i = 0; cogpu_xml_next(&children, &child);) {
        char number[COGPU_NUMBER_CHARS];
        cogpu_metadata_item item = {.domain = "CATEGORY_NAMES", .role = "", .band = (int32_t)band};
        if (!cogpu_xml_is_same(child.name, "Category"))
            continue;
        cogpu_number_format(i++, number);
        TRY(cogpu_pam_text(in->arena, child.content, &item.value, in->error));
        TRY(cogpu_arena_text(in->arena, number, strlen(number), &item.name, in->error));
        if (item.value[0])
            TRY(cogpu_pam_add_item(in, item));
    }
    return COGPU_OK;
}

/* Elements of a band that are items with a role in GDAL_METADATA. */
static const struct band_role {
    const char *element, *name, *role;
} roles[PAM_ROLES] = {{"Description", "DESCRIPTION", "description"},
                      {"UnitType", "UNITTYPE", "unittype"},
                      {"ColorInterp", "COLORINTERP", "colorinterp"},
                      {"Scale", "SCALE", "scale"},
                      {"Offset", "OFFSET", "offset"}};

cogpu_status cogpu_pam_add_role(cogpu_pam_elements *in, uint32_t band, cogpu_pam_role role,
                                const char *value) {
    return cogpu_pam_add_item(in, (cogpu_metadata_item){.domain = "",
                                                        .name = roles[role].name,
                                                        .value = value,
                                                        .role = roles[role].role,
                                                        .band = (int32_t)band});
}

cogpu_status cogpu_pam_role_element(cogpu_pam_elements *in, const xml_element *child, uint32_t band,
                                    const char *values[PAM_ROLES], bool *is_role) {
    *is_role = false;
    for (int i = 0; i < PAM_ROLES; i++) {
        const char *text;
        if (!cogpu_xml_is_same(child->name, roles[i].element))
            continue;
        *is_role = true;
        TRY(cogpu_pam_text(in->arena, child->content, &text, in->error));
        if (!text[0] || is_same_name(text, "Undefined"))
            continue;
        values[i] = is_same_name(text, "grey") ? "Gray" : text;
        TRY(cogpu_pam_add_role(in, band, (cogpu_pam_role)i, values[i]));
    }
    return COGPU_OK;
}
