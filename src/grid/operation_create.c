/* See operation_create.h. The rules are those of GDAL's OGRCoordinateTransformation. */
#include "grid/operation_create.h"

#include "image/crs_text.h"
#include "image/proj_objects.h"

#include <proj_experimental.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { AXIS_CHARS = 64 };

/* ---- CRS ----------------------------------------------------------------------------------- */

static bool is_bound(const PJ *crs) {
    return proj_get_type(crs) == PJ_TYPE_BOUND_CRS;
}

/* The CRS inside a bound one (TOWGS84), else a copy. */
static PJ *without_shift(PJ_CONTEXT *context, const PJ *crs) {
    return is_bound(crs) ? proj_get_source_crs(context, crs) : proj_clone(context, crs);
}

/* A shift to WGS 84 counts if both have one. */
static bool is_equivalent(PJ_CONTEXT *context, const PJ *a, const PJ *b) {
    bool strips = is_bound(a) != is_bound(b), equal = false;
    PJ *first = strips ? without_shift(context, a) : proj_clone(context, a);
    PJ *second = strips ? without_shift(context, b) : proj_clone(context, b);
    if (first && second)
        equal = proj_is_equivalent_to_with_ctx(context, first, second,
                                               PJ_COMP_EQUIVALENT_EXCEPT_AXIS_ORDER_GEOGCRS);
    proj_destroy(first);
    proj_destroy(second);
    return equal;
}

/* The registry's definition, if it is equivalent: it has an area of use, and no shift that a writer
 * added. */
static PJ *registered_or(PJ_CONTEXT *context, PJ *crs) {
    PJ *plain = crs ? without_shift(context, crs) : NULL;
    const char *authority = plain ? proj_get_id_auth_name(plain, 0) : NULL;
    const char *code = plain ? proj_get_id_code(plain, 0) : NULL;
    PJ *registered = authority && code ? proj_create_from_database(context, authority, code,
                                                                   PJ_CATEGORY_CRS, 0, NULL)
                                       : NULL;
    bool is_same = registered && is_equivalent(context, registered, crs);
    proj_destroy(plain);
    proj_destroy(is_same ? crs : registered);
    return is_same ? registered : crs;
}

/* Takes `crs`. */
static PJ *without_height(PJ_CONTEXT *context, PJ *crs) {
    PJ *flat = proj_get_type(crs) == PJ_TYPE_COMPOUND_CRS ? proj_crs_get_sub_crs(context, crs, 0)
                                                          : proj_clone(context, crs);
    proj_destroy(crs);
    PJ *plane = flat ? proj_crs_demote_to_2D(context, NULL, flat) : NULL;
    if (plane)
        proj_destroy(flat);
    return plane ? plane : flat;
}

/* The first axis: its name, and its unit in metres or radians. False if there is none. */
static bool find_first_axis(PJ_CONTEXT *context, const PJ *crs, char name[AXIS_CHARS],
                            double *factor) {
    const char *found = NULL;
    PJ *plain = without_shift(context, crs);
    PJ *axes = plain ? proj_crs_get_coordinate_system(context, plain) : NULL;
    bool is_read = axes && proj_cs_get_axis_info(context, axes, 0, &found, NULL, NULL, factor, NULL,
                                                 NULL, NULL);
    snprintf(name, AXIS_CHARS, "%s", is_read && found ? found : "");
    proj_destroy(axes);
    proj_destroy(plain);
    return is_read;
}

static bool is_geographic(PJ_CONTEXT *context, const PJ *crs) {
    PJ *plain = without_shift(context, crs);
    PJ_TYPE type = plain ? proj_get_type(plain) : PJ_TYPE_UNKNOWN;
    proj_destroy(plain);
    return type == PJ_TYPE_GEOGRAPHIC_2D_CRS || type == PJ_TYPE_GEOGRAPHIC_3D_CRS;
}

static void describe_axes(PJ_CONTEXT *context, cogpu_flat_crs *crs) {
    char own[AXIS_CHARS], normal[AXIS_CHARS];
    double factor, same;
    bool is_read = find_first_axis(context, crs->crs, own, &factor);
    PJ *normalized = proj_normalize_for_visualization(context, crs->crs);
    crs->in_degrees =
        is_read && is_geographic(context, crs->crs) && fabs(factor - COGPU_DEGREE) < 1e-8;
    crs->swaps = is_read && normalized && find_first_axis(context, normalized, normal, &same) &&
                 strcmp(own, normal) != 0;
    proj_destroy(normalized);
}

static PJ *create_to_degrees(PJ_CONTEXT *context, PJ *crs) {
    PJ *geodetic = proj_crs_get_geodetic_crs(context, crs), *degrees = NULL, *found = NULL;
    if (geodetic && proj_get_type(geodetic) != PJ_TYPE_GEOCENTRIC_CRS)
        degrees = proj_crs_alter_cs_angular_unit(context, geodetic, NULL, 0, NULL, NULL);
    if (degrees) {
        cogpu_flat_crs from = {.crs = crs}, to = {.crs = degrees};
        cogpu_area none = {.is_known = false};
        PJ *made = cogpu_operation_create(context, &from, &to, &none);
        found = made ? proj_normalize_for_visualization(context, made) : NULL;
        proj_destroy(made);
    }
    proj_destroy(degrees);
    proj_destroy(geodetic);
    return found;
}

cogpu_status cogpu_flat_crs_create(PJ_CONTEXT *context, const char *text, cogpu_flat_crs *crs,
                                   cogpu_error *error) {
    cogpu_arena arena;
    PJ *parsed = NULL;
    cogpu_arena_open(&arena, UINT64_MAX);
    cogpu_status status = cogpu_crs_create(context, text, &arena, &parsed, error);
    cogpu_arena_close(&arena);
    TRY(status);
    *crs = (cogpu_flat_crs){.crs = registered_or(context, without_height(context, parsed))};
    if (!crs->crs)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "PROJ cannot decompose \"%.60s\"", text);
    describe_axes(context, crs);
    if (!crs->in_degrees)
        crs->to_degrees = create_to_degrees(context, crs->crs);
    return COGPU_OK;
}

void cogpu_flat_crs_destroy(cogpu_flat_crs *crs) {
    proj_destroy(crs->to_degrees);
    proj_destroy(crs->crs);
}

bool cogpu_flat_crs_equal(PJ_CONTEXT *context, const cogpu_flat_crs *a, const cogpu_flat_crs *b) {
    PJ *first = proj_normalize_for_visualization(context, a->crs);
    PJ *second = proj_normalize_for_visualization(context, b->crs);
    bool equal =
        is_equivalent(context, first && second ? first : a->crs, first && second ? second : b->crs);
    proj_destroy(first);
    proj_destroy(second);
    return equal;
}

/* ---- area of interest ---------------------------------------------------------------------- */

static bool find_longitude(const cogpu_flat_crs *crs, const double corner[2], double *x,
                           double *y) {
    PJ_COORD at = proj_coord(corner[0], corner[1], 0, HUGE_VAL);
    if (crs->to_degrees)
        at = proj_trans(crs->to_degrees, PJ_FWD, at);
    *x = at.xy.x;
    *y = at.xy.y;
    return isfinite(at.xy.x) && isfinite(at.xy.y);
}

/* PROJ recurses without end (seen in 9.1.1) on a box that begins at 180, on one that crosses the
 * antimeridian and ends at -180, and on one that is the antimeridian: that is no area. */
static void end_at_antimeridian(cogpu_area *area) {
    if (area->west == 180) {
        area->west = -180;
        area->east = area->east == 180 ? -180 : area->east;
    }
    if (area->east == -180 && area->west > -180)
        area->east = 180;
}

cogpu_area cogpu_area_compute(const cogpu_flat_crs *crs, const double *corners) {
    cogpu_area area = {INFINITY, INFINITY, -INFINITY, -INFINITY, false};
    double x[4], y[4];
    bool valid[4];
    if (!corners || (!crs->in_degrees && !crs->to_degrees))
        return area;
    for (int i = 0; i < 4; i++) {
        valid[i] = find_longitude(crs, &corners[2 * i], &x[i], &y[i]);
        if (!valid[i])
            continue;
        area.west = fmin(area.west, x[i]);
        area.east = fmax(area.east, x[i]);
        area.south = fmin(area.south, y[i]);
        area.north = fmax(area.north, y[i]);
    }
    if (valid[0] && valid[1] && x[0] > x[1]) {
        area.west = x[0];
        area.east = x[1];
    }
    end_at_antimeridian(&area);
    bool is_line = area.west == -180 && area.east == -180;
    area.is_known = fabs(area.west) <= 180 && fabs(area.east) <= 180 && fabs(area.south) <= 90 &&
                    fabs(area.north) <= 90 && !is_line;
    return area;
}

typedef enum overlap { APART, INSIDE, PARTIAL } overlap;

static overlap overlap_of(double from, double to, double box_from, double box_to) {
    if (to < box_from || from > box_to)
        return APART;
    return from >= box_from && to <= box_to ? INSIDE : PARTIAL;
}

/* Longitudes of the box are moved by whole turns. */
static overlap overlap_longitudes(const cogpu_area *area, const cogpu_area *box) {
    double east = area->east + (area->east < area->west ? 360 : 0);
    double box_east = box->east + (box->east < box->west ? 360 : 0);
    overlap most = APART;
    if (box_east - box->west >= 360)
        return INSIDE;
    for (int turn = -360; turn <= 360; turn += 360) {
        overlap now = overlap_of(area->west, east, box->west + turn, box_east + turn);
        if (now == INSIDE)
            return INSIDE;
        most = now == PARTIAL ? PARTIAL : most;
    }
    return most;
}

static overlap overlap_areas(const cogpu_area *area, const cogpu_area *box) {
    overlap across = overlap_longitudes(area, box);
    overlap down = overlap_of(area->south, area->north, box->south, box->north);
    if (across == APART || down == APART)
        return APART;
    return across == INSIDE && down == INSIDE ? INSIDE : PARTIAL;
}

static bool is_same_area(const cogpu_area *a, const cogpu_area *b) {
    return a->west == b->west && a->south == b->south && a->east == b->east && a->north == b->north;
}

bool cogpu_area_choice_equal(const cogpu_area *areas, uint32_t count, const cogpu_area *a,
                             const cogpu_area *b) {
    if (!a->is_known || !b->is_known)
        return a->is_known == b->is_known;
    if (is_same_area(a, b))
        return true;
    for (uint32_t i = 0; i < count; i++) {
        overlap first = overlap_areas(a, &areas[i]);
        if (first == PARTIAL || first != overlap_areas(b, &areas[i]))
            return false;
    }
    return true;
}

/* ---- operations ---------------------------------------------------------------------------- */

PJ *cogpu_operation_create(PJ_CONTEXT *context, const cogpu_flat_crs *from,
                           const cogpu_flat_crs *to, const cogpu_area *area) {
    PJ_AREA *box = area->is_known ? proj_area_create() : NULL;
    if (area->is_known && !box)
        return NULL;
    if (box)
        proj_area_set_bbox(box, area->west, area->south, area->east, area->north);
    PJ *found = proj_create_crs_to_crs_from_pj(context, from->crs, to->crs, box, NULL);
    proj_area_destroy(box);
    return found;
}

static PJ_OBJ_LIST *list_operations(PJ_CONTEXT *context, const cogpu_flat_crs *from,
                                    const cogpu_flat_crs *to) {
    PJ_OPERATION_FACTORY_CONTEXT *choice = proj_create_operation_factory_context(context, NULL);
    if (!choice)
        return NULL;
    proj_operation_factory_context_set_crs_extent_use(context, choice, PJ_CRS_EXTENT_NONE);
    proj_operation_factory_context_set_grid_availability_use(
        context, choice, PROJ_GRID_AVAILABILITY_USED_FOR_SORTING);
    PJ_OBJ_LIST *list = proj_create_operations(context, from->crs, to->crs, choice);
    proj_operation_factory_context_destroy(choice);
    return list;
}

static void add_area(PJ_CONTEXT *context, const PJ *operation, cogpu_area *areas, uint32_t *count) {
    cogpu_area area = {.is_known = true};
    if (!operation || !proj_get_area_of_use(context, operation, &area.west, &area.south, &area.east,
                                            &area.north, NULL))
        return;
    for (uint32_t i = 0; i < *count; i++)
        if (is_same_area(&areas[i], &area))
            return;
    areas[(*count)++] = area;
}

cogpu_status cogpu_operation_areas(PJ_CONTEXT *context, const cogpu_flat_crs *from,
                                   const cogpu_flat_crs *to, cogpu_arena *arena, cogpu_area **areas,
                                   uint32_t *count, cogpu_error *error) {
    PJ_OBJ_LIST *list = list_operations(context, from, to);
    int operations = list ? proj_list_get_count(list) : 0;
    *count = 0;
    cogpu_status status =
        cogpu_arena_allocate(arena, (uint64_t)operations, sizeof **areas, areas, error);
    for (int i = 0; status == COGPU_OK && operations > 1 && i < operations; i++) {
        PJ *operation = proj_list_get(context, list, i);
        add_area(context, operation, *areas, count);
        proj_destroy(operation);
    }
    proj_list_destroy(list);
    return status;
}
