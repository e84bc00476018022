/*
 * GDAL's PAM (x.tif.aux.xml). One pass over the elements below the root; names match in any case,
 * as in GDAL. XML that is malformed anywhere is ignored as a whole.
 *
 * What PAM says of bands that GDAL_METADATA can say as well (description, unit, scale, offset,
 * colour) becomes items with a role, so that readers and writers need to know of one form only.
 */
#include "base/text.h"
#include "image/sidecar.h"
#include "image/values.h"

#include <math.h>
#include <string.h>

enum { ITEMS_MAX = 1 << 20, GCPS_MAX = 1 << 20, COLOURS_MAX = 65536, TEXT_NUMBER_MAX = 64 };

/* An array of the arena that grows. */
typedef struct growing {
    void *entries;
    uint32_t count, capacity;
} growing;

typedef struct pam_reader {
    const cogpu_pam_image *image;
    cogpu_arena *arena;
    cogpu_pam *pam;
    cogpu_error *error;
    growing items, gcps;
} pam_reader;

/* Space for one more entry, or NULL in *entry beyond `most`. */
static cogpu_status grow_pam_list(pam_reader *in, growing *list, size_t size, uint32_t most,
                                  void *entry) {
    void *found = NULL;
    if (list->count == list->capacity && list->capacity < most) {
        uint32_t capacity = list->capacity ? 2 * list->capacity : 16;
        void *larger = NULL;
        TRY(cogpu_arena_allocate(in->arena, capacity, size, &larger, in->error));
        if (list->count)
            memcpy(larger, list->entries, list->count * size);
        list->entries = larger;
        list->capacity = capacity;
    }
    if (list->count < list->capacity)
        found = (char *)list->entries + list->count++ * size;
    memcpy(entry, &found, sizeof found);
    return COGPU_OK;
}

/* ---- parts of XML ---- */

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

static cogpu_status add_item(pam_reader *in, cogpu_metadata_item item) {
    cogpu_metadata_item *place;
    TRY(grow_pam_list(in, &in->items, sizeof item, ITEMS_MAX, &place));
    if (place)
        *place = item;
    return COGPU_OK;
}

/* The first attribute is the key, whatever it is called. */
static cogpu_status read_item(pam_reader *in, const xml_element *child, cogpu_metadata_item item) {
    xml_slice attributes = child->attributes, name, key;
    if (!cogpu_xml_is_same(child->name, "MDI") || !cogpu_xml_attribute(&attributes, &name, &key))
        return COGPU_OK;
    TRY(cogpu_pam_text(in->arena, child->content, &item.value, in->error));
    if (!item.value[0])
        return COGPU_OK;
    TRY(cogpu_pam_text(in->arena, key, &item.name, in->error));
    return add_item(in, item);
}

static xml_slice without_blanks(xml_slice text) {
    while (text.bytes && cogpu_xml_is_blank(*text.at))
        text.at++, text.bytes--;
    while (text.bytes && cogpu_xml_is_blank(text.at[text.bytes - 1]))
        text.bytes--;
    return text;
}

/* A document is one item, which GDAL calls "doc" in GDAL_METADATA. */
static cogpu_status read_document(pam_reader *in, const xml_element *metadata,
                                  cogpu_metadata_item item, bool is_xml) {
    xml_slice text = without_blanks(metadata->content);
    if (!text.bytes)
        return COGPU_OK;
    item.name = "doc";
    if (is_xml)
        TRY(cogpu_arena_text(in->arena, text.at, text.bytes, &item.value, in->error));
    else
        TRY(cogpu_pam_text(in->arena, text, &item.value, in->error));
    return add_item(in, item);
}

static cogpu_status read_pam_metadata(pam_reader *in, const xml_element *metadata, uint32_t band) {
    cogpu_metadata_item item = {.role = "", .band = (int32_t)band};
    xml_slice format = cogpu_pam_attribute(metadata->attributes, "format");
    bool is_xml = cogpu_xml_is_same(format, "xml");
    TRY(cogpu_pam_text(in->arena, cogpu_pam_attribute(metadata->attributes, "domain"), &item.domain,
                       in->error));
    if (band == 0 && is_same_name(item.domain, "IMAGE_STRUCTURE"))
        return COGPU_OK;
    if (is_xml || cogpu_xml_is_same(format, "json"))
        return read_document(in, metadata, item, is_xml);
    xml_reader children = {
        .text = {metadata->content.at, metadata->content.at + metadata->content.bytes}};
    xml_element child;
    while (cogpu_xml_next(&children, &child))
        TRY(read_item(in, &child, item));
    return COGPU_OK;
}

/* ---- georeferencing ---- */

static cogpu_status read_srs(pam_reader *in, const xml_element *srs) {
    double epoch;
    if (cogpu_pam_number(cogpu_pam_attribute(srs->attributes, "coordinateEpoch"), &epoch))
        in->pam->epoch = epoch;
    TRY(cogpu_pam_text(in->arena, srs->content, &in->pam->srs, in->error));
    if (!in->pam->srs[0])
        in->pam->srs = NULL;
    return COGPU_OK;
}

/* Six numbers with commas between them. */
static void read_transform(pam_reader *in, xml_slice text) {
    const char *at = text.at, *end = at + text.bytes;
    double numbers[6];
    for (int i = 0; i < 6; i++) {
        const char *comma = at <= end ? memchr(at, ',', (size_t)(end - at)) : NULL;
        bool is_last = comma == NULL;
        size_t bytes = at <= end ? (size_t)((comma ? comma : end) - at) : 0;
        if (is_last != (i == 5) || !cogpu_pam_number((xml_slice){at, bytes}, &numbers[i]))
            return;
        at += bytes + 1;
    }
    if (!cogpu_transform_is_valid(numbers))
        return;
    in->pam->has_transform = true;
    memcpy(in->pam->transform, numbers, sizeof numbers);
}

static cogpu_status read_gcp(pam_reader *in, const xml_element *child) {
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
    TRY(grow_pam_list(in, &in->gcps, sizeof gcp, GCPS_MAX, &place));
    if (place)
        *place = gcp;
    return COGPU_OK;
}

static cogpu_status read_pam_gcps(pam_reader *in, const xml_element *list) {
    xml_reader children = {.text = {list->content.at, list->content.at + list->content.bytes}};
    xml_slice srs = cogpu_pam_attribute(list->attributes, "Projection");
    xml_element child;
    while (cogpu_xml_next(&children, &child))
        TRY(read_gcp(in, &child));
    if (srs.bytes)
        TRY(cogpu_pam_text(in->arena, srs, &in->pam->gcp_srs, in->error));
    in->pam->gcps = in->gcps.entries;
    in->pam->gcp_count = in->gcps.count;
    return COGPU_OK;
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

static cogpu_status read_nodata(pam_reader *in, const xml_element *element, uint32_t band) {
    char digits[COGPU_NUMBER_CHARS];
    double value;
    const char **text = &in->pam->nodata[band - 1];
    if (!read_hex_double(cogpu_pam_attribute(element->attributes, "le_hex_equiv"), &value))
        return cogpu_pam_text(in->arena, without_blanks(element->content), text, in->error);
    cogpu_number_format(value, digits);
    return cogpu_arena_text(in->arena, digits, strlen(digits), text, in->error);
}

static uint16_t colour_of(xml_slice attributes, const char *name) {
    double value = 0;
    if (!cogpu_pam_number(cogpu_pam_attribute(attributes, name), &value))
        return 0;
    value = fmin(fmax(value, 0), 255);
    return (uint16_t)((uint16_t)value * 257);
}

static cogpu_status read_pam_palette(pam_reader *in, xml_slice content) {
    xml_reader children = {.text = {content.at, content.at + content.bytes}};
    xml_element child;
    uint32_t count = 0;
    uint16_t *palette = NULL;
    while (count < COLOURS_MAX && cogpu_xml_next(&children, &child))
        count += cogpu_xml_is_same(child.name, "Entry");
    TRY(cogpu_arena_allocate(in->arena, (uint64_t)3 * count, sizeof *palette, &palette, in->error));
    children = (xml_reader){.text = {content.at, content.at + content.bytes}};
    for (uint32_t i = 0; i < count && cogpu_xml_next(&children, &child);) {
        if (!cogpu_xml_is_same(child.name, "Entry"))
            continue;
        palette[i] = colour_of(child.attributes, "c1");
        palette[count + i] = colour_of(child.attributes, "c2");
        palette[2 * count + i++] = colour_of(child.attributes, "c3");
    }
    in->pam->palette = count ? palette : NULL;
    in->pam->palette_entries = count;
    return COGPU_OK;
}

/* Names of classes have no place of their own in a TIFF: items named by the value of the class. */
static cogpu_status read_categories(pam_reader *in, xml_slice content, uint32_t band) {
    xml_reader children = {.text = {content.at, content.at + content.bytes}};
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
            TRY(add_item(in, item));
    }
    return COGPU_OK;
}

/* Elements of a band that are items with a role in GDAL_METADATA. */
static const struct band_role {
    const char *element, *name, *role;
} roles[] = {{"Description", "DESCRIPTION", "description"},
             {"UnitType", "UNITTYPE", "unittype"},
             {"ColorInterp", "COLORINTERP", "colorinterp"},
             {"Scale", "SCALE", "scale"},
             {"Offset", "OFFSET", "offset"}};
enum { ROLES = sizeof roles / sizeof *roles, SCALE = 3, OFFSET = 4 };

static cogpu_status add_role(pam_reader *in, uint32_t band, int role, const char *value) {
    return add_item(in, (cogpu_metadata_item){.domain = "",
                                              .name = roles[role].name,
                                              .value = value,
                                              .role = roles[role].role,
                                              .band = (int32_t)band});
}

static cogpu_status read_role(pam_reader *in, const xml_element *child, uint32_t band,
                              bool has[ROLES], bool *is_role) {
    *is_role = false;
    for (int i = 0; i < ROLES; i++) {
        const char *text;
        if (!cogpu_xml_is_same(child->name, roles[i].element))
            continue;
        *is_role = true;
        TRY(cogpu_pam_text(in->arena, child->content, &text, in->error));
        if (!text[0] || is_same_name(text, "Undefined"))
            continue;
        if (is_same_name(text, "grey"))
            text = "Gray";
        has[i] = true;
        TRY(add_role(in, band, i, text));
    }
    return COGPU_OK;
}

static cogpu_status read_band_child(pam_reader *in, const xml_element *child, uint32_t band,
                                    bool has[ROLES]) {
    bool is_role;
    TRY(read_role(in, child, band, has, &is_role));
    if (is_role)
        return COGPU_OK;
    if (cogpu_xml_is_same(child->name, "NoDataValue"))
        return read_nodata(in, child, band);
    if (cogpu_xml_is_same(child->name, "Metadata"))
        return read_pam_metadata(in, child, band);
    if (cogpu_xml_is_same(child->name, "CategoryNames"))
        return read_categories(in, child->content, band);
    if (cogpu_xml_is_same(child->name, "ColorTable") && band == 1)
        return read_pam_palette(in, child->content);
    return COGPU_OK;
}

/* Scale and offset replace those of the TIFF together, where either is stated. */
static cogpu_status read_band(pam_reader *in, const xml_element *element) {
    xml_reader children = {
        .text = {element->content.at, element->content.at + element->content.bytes}};
    xml_element child;
    bool has[ROLES] = {false};
    double number;
    if (!cogpu_pam_number(cogpu_pam_attribute(element->attributes, "band"), &number) ||
        !(number >= 1 && number <= in->image->bands))
        return COGPU_OK;
    uint32_t band = (uint32_t)number;
    while (cogpu_xml_next(&children, &child))
        TRY(read_band_child(in, &child, band, has));
    if (has[SCALE] && !has[OFFSET])
        TRY(add_role(in, band, OFFSET, "0"));
    if (has[OFFSET] && !has[SCALE])
        TRY(add_role(in, band, SCALE, "1"));
    return COGPU_OK;
}

/* ---- the whole ---- */

static cogpu_status read_pam_child(pam_reader *in, const xml_element *child) {
    if (cogpu_xml_is_same(child->name, "SRS"))
        return read_srs(in, child);
    if (cogpu_xml_is_same(child->name, "GeoTransform"))
        read_transform(in, child->content);
    if (cogpu_xml_is_same(child->name, "GCPList"))
        return read_pam_gcps(in, child);
    if (cogpu_xml_is_same(child->name, "Metadata"))
        return read_pam_metadata(in, child, 0);
    if (cogpu_xml_is_same(child->name, "PAMRasterBand"))
        return read_band(in, child);
    return COGPU_OK;
}

/* ArcGIS 10 puts its own document into a domain. */
static cogpu_status read_esri(pam_reader *in, const xml_element *child) {
    xml_element xform;
    if (!cogpu_xml_is_same(child->name, "Metadata") ||
        !cogpu_xml_is_same(cogpu_pam_attribute(child->attributes, "domain"), "xml:ESRI") ||
        !cogpu_xml_is_same(cogpu_pam_attribute(child->attributes, "format"), "xml") ||
        !cogpu_pam_child(child->content, "GeodataXform", &xform))
        return COGPU_OK;
    return cogpu_geodata_xform_parse(xform.content, in->image, in->arena, in->pam, in->error);
}

static cogpu_status read_pam_content(pam_reader *in, xml_slice content) {
    xml_reader children = {.text = {content.at, content.at + content.bytes}}, again = children;
    xml_element child;
    while (cogpu_xml_next(&children, &child))
        TRY(read_pam_child(in, &child));
    while (cogpu_xml_next(&again, &child)) /* which depends on what the others said */
        TRY(read_esri(in, &child));
    return COGPU_OK;
}

/* ArcGIS 9.3 has no PAM around its document. */
static cogpu_status read_lone_xform(pam_reader *in, const xml_element *root) {
    cogpu_metadata_item item = {.domain = "xml:ESRI", .name = "doc", .role = ""};
    const char *start = root->name.at - 1;
    xml_slice whole = {start, (size_t)(root->content.at + root->content.bytes - start)};
    whole.bytes += root->name.bytes + 3; /* the end tag */
    TRY(cogpu_arena_text(in->arena, whole.at, whole.bytes, &item.value, in->error));
    TRY(add_item(in, item));
    return cogpu_geodata_xform_parse(root->content, in->image, in->arena, in->pam, in->error);
}

cogpu_status cogpu_pam_parse(xml_slice text, const cogpu_pam_image *image, cogpu_arena *arena,
                             cogpu_pam *pam, const char **fault, cogpu_error *error) {
    pam_reader in = {.image = image, .arena = arena, .pam = pam, .error = error};
    xml_reader document = {.text = {text.at, text.at + text.bytes}};
    xml_element root;
    *pam = (cogpu_pam){0};
    TRY(cogpu_arena_allocate(arena, image->bands, sizeof *pam->nodata, &pam->nodata, error));
    if (!cogpu_xml_is_whole(document.text, fault))
        return COGPU_OK;
    bool is_found = cogpu_xml_next(&document, &root);
    *fault = is_found ? NULL : "it has no elements";
    if (is_found && cogpu_xml_is_same(root.name, "PAMDataset"))
        TRY(read_pam_content(&in, root.content));
    else if (is_found && cogpu_xml_is_same(root.name, "GeodataXform") && root.content.bytes)
        TRY(read_lone_xform(&in, &root));
    else if (is_found)
        *fault = "its root is not PAMDataset";
    pam->metadata = (cogpu_metadata){.items = in.items.entries, .item_count = in.items.count};
    return COGPU_OK;
}
