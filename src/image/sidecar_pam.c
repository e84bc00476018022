/*
 * GDAL's PAM (x.tif.aux.xml). One pass over the elements below the root; names match in any case,
 * as in GDAL. XML that is malformed anywhere is ignored as a whole.
 *
 * What PAM says of bands that GDAL_METADATA can say as well (description, unit, scale, offset,
 * colour) becomes items with a role, so that readers and writers need to know of one form only.
 */
#include "image/sidecar.h"

#include <string.h>

typedef struct pam_reader {
    const cogpu_pam_image *image;
    cogpu_pam *pam;
    cogpu_pam_elements in;
} pam_reader;

static cogpu_status read_srs(pam_reader *in, const xml_element *srs) {
    double epoch;
    if (cogpu_pam_number(cogpu_pam_attribute(srs->attributes, "coordinateEpoch"), &epoch))
        in->pam->epoch = epoch;
    TRY(cogpu_pam_text(in->in.arena, srs->content, &in->pam->srs, in->in.error));
    if (!in->pam->srs[0])
        in->pam->srs = NULL;
    return COGPU_OK;
}

static void read_transform(pam_reader *in, xml_slice text) {
    double numbers[6];
    if (!cogpu_pam_six_numbers(text, numbers) || !cogpu_transform_is_valid(numbers))
        return;
    in->pam->has_transform = true;
    memcpy(in->pam->transform, numbers, sizeof numbers);
}

static cogpu_status read_gcps(pam_reader *in, const xml_element *list) {
    TRY(cogpu_pam_gcps(&in->in, list, &in->pam->gcp_srs));
    in->pam->gcps = in->in.gcps.entries;
    in->pam->gcp_count = in->in.gcps.count;
    return COGPU_OK;
}

static cogpu_status read_band_child(pam_reader *in, const xml_element *child, uint32_t band,
                                    const char *values[PAM_ROLES]) {
    bool is_role;
    TRY(cogpu_pam_role_element(&in->in, child, band, values, &is_role));
    if (is_role)
        return COGPU_OK;
    if (cogpu_xml_is_same(child->name, "NoDataValue"))
        return cogpu_pam_nodata(&in->in, child, &in->pam->nodata[band - 1]);
    if (cogpu_xml_is_same(child->name, "Metadata"))
        return cogpu_pam_metadata(&in->in, child, band);
    if (cogpu_xml_is_same(child->name, "CategoryNames"))
        return cogpu_pam_categories(&in->in, child, band);
    if (cogpu_xml_is_same(child->name, "ColorTable") && band == 1)
        return cogpu_pam_palette(&in->in, child, &in->pam->palette, &in->pam->palette_entries);
    return COGPU_OK;
}

/* Scale and offset replace those of the TIFF together, where either is stated. */
static cogpu_status read_band(pam_reader *in, const xml_element *element) {
    xml_reader children = cogpu_pam_content(element);
    xml_element child;
    const char *values[PAM_ROLES] = {NULL};
    double number;
    if (!cogpu_pam_number(cogpu_pam_attribute(element->attributes, "band"), &number) ||
        !(number >= 1 && number <= in->image->bands))
        return COGPU_OK;
    uint32_t band = (uint32_t)number;
    while (cogpu_xml_next(&children, &child))
        TRY(read_band_child(in, &child, band, values));
    if (values[PAM_SCALE] && !values[PAM_OFFSET])
        TRY(cogpu_pam_add_role(&in->in, band, PAM_OFFSET, "0"));
    if (values[PAM_OFFSET] && !values[PAM_SCALE])
        TRY(cogpu_pam_add_role(&in->in, band, PAM_SCALE, "1"));
    return COGPU_OK;
}

/* ---- the whole ---- */

static cogpu_status read_pam_child(pam_reader *in, const xml_element *child) {
    if (cogpu_xml_is_same(child->name, "SRS"))
        return read_srs(in, child);
    if (cogpu_xml_is_same(child->name, "GeoTransform"))
        read_transform(in, child->content);
    if (cogpu_xml_is_same(child->name, "GCPList"))
        return read_gcps(in, child);
    if (cogpu_xml_is_same(child->name, "Metadata"))
        return cogpu_pam_metadata(&in->in, child, 0);
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
    return cogpu_geodata_xform_parse(xform.content, in->image, in->in.arena, in->pam, in->in.error);
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
    TRY(cogpu_arena_text(in->in.arena, whole.at, whole.bytes, &item.value, in->in.error));
    TRY(cogpu_pam_add_item(&in->in, item));
    return cogpu_geodata_xform_parse(root->content, in->image, in->in.arena, in->pam, in->in.error);
}

cogpu_status cogpu_pam_parse(xml_slice text, const cogpu_pam_image *image, cogpu_arena *arena,
                             cogpu_pam *pam, const char **fault, cogpu_error *error) {
    pam_reader in = {.image = image, .pam = pam, .in = {.arena = arena, .error = error}};
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
    pam->metadata = (cogpu_metadata){.items = in.in.items.entries, .item_count = in.in.items.count};
    return COGPU_OK;
}
