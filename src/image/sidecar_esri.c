/*
 * Georeferencing in ArcGIS XML: GeodataXform in or instead of PAM, and the CRS code in x.xml.
 */
#include "image/sidecar.h"

#include <stdio.h>
#include <string.h>

enum { POINTS_MAX = 1 << 20, LARGEST_EPSG = 32767 };

/* ---- GeodataXform ---- */

typedef struct numbers {
    double *values;
    uint32_t count;
} numbers;

/* <Double> children of the element of that name. */
static cogpu_status read_numbers(xml_slice content, const char *name, cogpu_arena *arena,
                                 numbers *found, cogpu_error *error) {
    xml_element list, child;
    uint32_t capacity = 0;
    *found = (numbers){0};
    if (!cogpu_pam_child(content, name, &list))
        return COGPU_OK;
    const xml_reader start = {.text = {list.content.at, list.content.at + list.content.bytes}};
    for (xml_reader in = start; capacity < 2 * POINTS_MAX && cogpu_xml_next(&in, &child);)
        capacity += cogpu_xml_is_same(child.name, "Double");
    TRY(cogpu_arena_allocate(arena, capacity, sizeof *found->values, &found->values, error));
    for (xml_reader in = start; found->count < capacity && cogpu_xml_next(&in, &child);)
        if (cogpu_xml_is_same(child.name, "Double") &&
            !cogpu_pam_number(child.content, &found->values[found->count++]))
            found->values[found->count - 1] = 0;
    return COGPU_OK;
}

/* Source positions are in inches from the lower left. As in GDAL they need the TIFF's resolution
 * tags. *has_points is whether there are any at all. */
static cogpu_status read_points(xml_slice content, const cogpu_pam_image *image, cogpu_arena *arena,
                                cogpu_pam *pam, bool *has_points, cogpu_error *error) {
    const double *per_inch = image->pixels_per_inch;
    numbers source, target;
    cogpu_gcp *gcps = NULL;
    TRY(read_numbers(content, "SourceGCPs", arena, &source, error));
    TRY(read_numbers(content, "TargetGCPs", arena, &target, error));
    *has_points = source.count > 0 && source.count % 2 == 0 && source.count == target.count;
    if (!*has_points || per_inch[0] == 0 || per_inch[1] == 0)
        return COGPU_OK;
    uint32_t count = source.count / 2;
    TRY(cogpu_arena_allocate(arena, count, sizeof *gcps, &gcps, error));
    for (uint32_t i = 0; i < count; i++) {
        const double *from = &source.values[(size_t)2 * i], *to = &target.values[(size_t)2 * i];
        gcps[i] = (cogpu_gcp){.column = from[0] * per_inch[0],
                              .row = image->height - from[1] * per_inch[1],
                              .x = to[0],
                              .y = to[1]};
    }
    pam->gcps = gcps;
    pam->gcp_count = count;
    return COGPU_OK;
}

/* A polynomial of the first order, of pixel centres, with y upwards. */
static cogpu_status read_polynomial(xml_slice content, cogpu_arena *arena, cogpu_pam *pam,
                                    cogpu_error *error) {
    xml_element order;
    double number;
    numbers x, y;
    if (!cogpu_pam_child(content, "PolynomialOrder", &order) ||
        !cogpu_pam_number(order.content, &number) || number != 1)
        return COGPU_OK;
    TRY(read_numbers(content, "CoeffX", arena, &x, error));
    TRY(read_numbers(content, "CoeffY", arena, &y, error));
    if (x.count != 3 || y.count != 3)
        return COGPU_OK;
    double a = x.values[1], b = -x.values[2], d = y.values[1], e = -y.values[2];
    double corner[6] = {x.values[0] - 0.5 * a - 0.5 * b, a, b,
                        y.values[0] - 0.5 * d - 0.5 * e, d, e};
    pam->has_transform = cogpu_transform_is_valid(corner);
    memcpy(pam->transform, corner, sizeof corner);
    return COGPU_OK;
}

cogpu_status cogpu_geodata_xform_parse(xml_slice content, const cogpu_pam_image *image,
                                       cogpu_arena *arena, cogpu_pam *pam, cogpu_error *error) {
    xml_element reference, wkt;
    if (cogpu_pam_child(content, "SpatialReference", &reference) &&
        cogpu_pam_child(reference.content, "WKT", &wkt) && wkt.content.bytes)
        TRY(cogpu_pam_text(arena, wkt.content, &pam->srs, error));
    if (pam->has_transform)
        return COGPU_OK;
    bool has_points;
    TRY(read_points(content, image, arena, pam, &has_points, error));
    if (has_points && !pam->gcp_count)
        pam->srs = NULL; /* the CRS of the points */
    return has_points ? COGPU_OK : read_polynomial(content, arena, pam, error);
}

/* ---- x.xml ---- */

bool cogpu_arcgis_code(xml_slice text, char code[COGPU_CODE_CHARS]) {
    static const char *const path[] = {"metadata", "refSysInfo", "RefSystem", "refSysID",
                                       "identCode"};
    const char *fault;
    xml_element element, child;
    double number;
    if (!cogpu_xml_is_whole((xml_text){text.at, text.at + text.bytes}, &fault))
        return false;
    for (size_t i = 0; i < sizeof path / sizeof *path; i++) {
        if (!cogpu_pam_child(text, path[i], &element))
            return false;
        text = element.content;
    }
    xml_slice stated = cogpu_pam_attribute(element.attributes, "code");
    if (!stated.bytes && cogpu_pam_child(element.content, "code", &child))
        stated = child.content;
    if (!cogpu_pam_number(stated, &number) || number < 1 || number > INT32_MAX)
        return false;
    int32_t value = (int32_t)number;
    snprintf(code, COGPU_CODE_CHARS, "%s:%d", value <= LARGEST_EPSG ? "EPSG" : "ESRI", (int)value);
    return true;
}
