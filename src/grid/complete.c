/*
 * gdalwarp's options -te, -te_srs, -tr, -ts and -tap on top of the suggested grid:
 *
 *     bounds        bbox, or those of the suggestion
 *     resolution    given; or bounds / size; or measured at points of the bbox; or the suggestion's
 *     align         moves the bounds outwards, to multiples of the resolution
 */
#include "grid/affine.h"
#include "grid/bounds.h"
#include "grid/grid.h"
#include "grid/suggest.h"

#include "base/memory.h"

#include <math.h>
#include <string.h>

enum { TRIM_POINTS_MAX = 1 << 22, TRIM_BATCH = 1024 };

typedef struct completer {
    const cogpu_grid *request;
    const cogpu_grid_sources *from;
    const char *crs;
    cogpu_bounds bounds;
    double pixel_x, pixel_y;
} completer;

/* ---- what is given ------------------------------------------------------------------------- */

static bool any_number(const double *numbers, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (numbers[i] != 0) /* NaN too */
            return true;
    return false;
}

static bool has_bbox(const cogpu_grid *in) {
    return any_number(in->bbox, 4);
}

static bool has_resolution(const cogpu_grid *in) {
    return any_number(in->resolution, 2);
}

static cogpu_status check_numbers(const cogpu_grid *in, cogpu_error *error) {
    for (int i = 0; i < 6; i++)
        if (!isfinite(in->transform[i]))
            return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                              "transform[%d] of the grid is not finite", i);
    for (int i = 0; i < 4; i++)
        if (!isfinite(in->bbox[i]))
            return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "bbox[%d] of the grid is not finite",
                              i);
    if (has_resolution(in) && !(isfinite(in->resolution[0]) && isfinite(in->resolution[1]) &&
                                in->resolution[0] > 0 && in->resolution[1] > 0))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "resolution of the grid is %g x %g; both must be positive",
                          in->resolution[0], in->resolution[1]);
    if (in->width > INT32_MAX || in->height > INT32_MAX)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "%s of the grid exceeds 2147483647 pixels",
                          in->width > INT32_MAX ? "width" : "height");
    return COGPU_OK;
}

static cogpu_status check_request(const cogpu_grid *in, cogpu_error *error) {
    const char *wrong = NULL;
    const bool has_size = in->width || in->height;
    TRY(check_numbers(in, error));
    if (in->reserved != 0)
        wrong = "reserved of the grid must be 0";
    else if (any_number(in->transform, 6) && (!in->width || !in->height))
        wrong = "transform of the grid needs width and height";
    else if (any_number(in->transform, 6) &&
             (has_resolution(in) || has_bbox(in) || in->bbox_crs || in->align))
        wrong = "transform of the grid excludes resolution, bbox, bbox_crs and align";
    else if (has_resolution(in) && has_size && has_bbox(in))
        wrong = "resolution of the grid excludes width and height if there is a bbox";
    else if (in->align && !has_resolution(in))
        wrong = "align of the grid needs a resolution";
    else if (in->bbox_crs && !has_bbox(in))
        wrong = "bbox_crs of the grid needs a bbox";
    else if (has_bbox(in) && !in->bbox_crs && !(in->bbox[0] < in->bbox[2]))
        wrong = "bbox of the grid is empty: left must be less than right";
    else if (has_bbox(in) && !(in->bbox[1] < in->bbox[3]))
        wrong = "bbox of the grid is empty: bottom must be less than top";
    return wrong ? cogpu_fail(error, COGPU_INVALID_ARGUMENT, "%s", wrong) : COGPU_OK;
}

static cogpu_status copy_transform(const cogpu_grid *in, cogpu_placement *target,
                                   cogpu_error *error) {
    double inverse[6];
    if (!invert_affine(in->transform, inverse))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "transform of the grid has no inverse: its pixels have no area");
    for (int i = 0; i < 6; i++)
        target->transform[i] = in->transform[i];
    target->has_transform = true;
    target->width = in->width;
    target->height = in->height;
    return COGPU_OK;
}

/* ---- the resolution of the sources in the bbox --------------------------------------------- */

/* Without a CRS in the request, a source on the grid's CRS keeps its pixels. False if nothing is
 * measured: the suggestion counts. */
static cogpu_status measure_source(const completer *in, const cogpu_placement *source,
                                   bool *is_measured, double *resolution, cogpu_error *error) {
    cogpu_transformer *transformer;
    double affine[6];
    TRY(cogpu_open_to_crs(source, in->crs, in->from->operations, &transformer, error));
    const bool keeps = !in->request->crs && source->has_transform &&
                       cogpu_transformer_is_affine(transformer, affine) &&
                       source->transform[2] == 0 && source->transform[4] == 0;
    *is_measured = !keeps && cogpu_measure_resolution(transformer, source, &in->bounds, resolution);
    cogpu_transformer_close(transformer);
    return COGPU_OK;
}

/* The least measured resolution; if there is none, the least of the suggestions. */
static cogpu_status measure_sources(completer *in, cogpu_error *error) {
    double least = INFINITY;
    cogpu_suggestion made;
    for (size_t i = 0; i < in->from->count; i++) {
        double resolution;
        bool is_measured;
        TRY(measure_source(in, &in->from->items[i], &is_measured, &resolution, error));
        least = is_measured ? fmin(least, resolution) : least;
    }
    in->pixel_x = in->pixel_y = least;
    if (isfinite(least))
        return COGPU_OK;
    TRY(cogpu_suggest_all(in->from, in->crs, &made, error));
    in->pixel_x = made.pixel_x, in->pixel_y = made.pixel_y;
    return COGPU_OK;
}

static double count_pixels(double extent, double pixel) {
    return floor((extent + pixel / 2) / pixel);
}

/* ---- blank borders ------------------------------------------------------------------------- */

enum { TOP, BOTTOM, LEFT, RIGHT, SIDES };

/* Whether all pixel centres of the outermost row or column lie beyond the same side of the source.
 */
static bool is_blank(const cogpu_transformer *transformer, const cogpu_placement *source,
                     const cogpu_placement *target, int side) {
    const bool is_row = side == TOP || side == BOTTOM;
    const uint32_t size = is_row ? target->width : target->height;
    const double at = side == BOTTOM  ? target->height - 0.5
                      : side == RIGHT ? target->width - 0.5
                                      : 0.5;
    double x[TRIM_BATCH], y[TRIM_BATCH], least = INFINITY, most = -INFINITY;
    for (uint32_t first = 0; first < size; first += TRIM_BATCH) {
        const uint32_t count = size - first < TRIM_BATCH ? size - first : TRIM_BATCH;
        for (uint32_t i = 0; i < count; i++) {
            x[i] = is_row ? first + i + 0.5 : at;
            y[i] = is_row ? at : first + i + 0.5;
            apply_affine(target->transform, &x[i], &y[i]);
        }
        cogpu_to_source(transformer, count, x, y);
        for (uint32_t i = 0; i < count; i++) {
            least = fmin(least, is_row ? y[i] : x[i]);
            most = fmax(most, is_row ? y[i] : x[i]);
        }
    }
    if (side == TOP || side == LEFT)
        return !(most >= 0);
    return !(least <= (is_row ? source->height : source->width));
}

/* Removes a row or column. False if two are left. */
static bool trim_side(completer *in, int side) {
    cogpu_bounds *box = &in->bounds;
    if (side == TOP || side == BOTTOM) {
        if (box->top - box->bottom <= 2 * in->pixel_y)
            return false;
        box->top -= side == TOP ? in->pixel_y : 0;
        box->bottom += side == BOTTOM ? in->pixel_y : 0;
        return true;
    }
    if (box->right - box->left <= 2 * in->pixel_x)
        return false;
    box->left += side == LEFT ? in->pixel_x : 0;
    box->right -= side == RIGHT ? in->pixel_x : 0;
    return true;
}

/* One round: removes at most one row or column on each side. False at the end: nothing is blank, or
 * a blank side cannot be removed. */
static bool trim_once(completer *in, const cogpu_transformer *transformer,
                      const cogpu_placement *target) {
    bool is_side_blank[SIDES], is_trimmed = false;
    for (int side = 0; side < SIDES; side++)
        is_side_blank[side] = is_blank(transformer, &in->from->items[0], target, side);
    for (int side = 0; side < SIDES; side++) {
        if (!is_side_blank[side])
            continue;
        if (!trim_side(in, side))
            return false;
        is_trimmed = true;
    }
    return is_trimmed;
}

static cogpu_status place_bounds(const completer *in, cogpu_placement *target, cogpu_error *error) {
    const cogpu_grid *request = in->request;
    const cogpu_bounds *box = &in->bounds;
    const double wide = fmax(1, count_pixels(box->right - box->left, in->pixel_x));
    const double high = fmax(1, count_pixels(box->top - box->bottom, in->pixel_y));
    return cogpu_grid_place(target, box->left, box->top, in->pixel_x, in->pixel_y,
                            request->width ? request->width : wide,
                            request->height ? request->height : high, error);
}

/* gdalwarp removes blank rows and columns at the border of one source's grid. */
static cogpu_status trim_grid(completer *in, cogpu_placement *target, cogpu_error *error) {
    cogpu_transformer *transformer;
    cogpu_status status = COGPU_OK;
    bool is_trimmed = true;
    TRY(cogpu_open_to_crs(&in->from->items[0], in->crs, in->from->operations, &transformer, error));
    uint64_t points = 2 * ((uint64_t)target->width + target->height);
    while (status == COGPU_OK && is_trimmed && points < TRIM_POINTS_MAX) {
        points += 2 * ((uint64_t)target->width + target->height);
        is_trimmed = trim_once(in, transformer, target);
        status = place_bounds(in, target, error);
    }
    cogpu_transformer_close(transformer);
    return status;
}

/* ---- the grid ------------------------------------------------------------------------------ */

static void align_bounds(completer *in) {
    cogpu_bounds *box = &in->bounds;
    box->left = floor(box->left / in->pixel_x + 1e-8) * in->pixel_x;
    box->right = ceil(box->right / in->pixel_x - 1e-8) * in->pixel_x;
    box->bottom = floor(box->bottom / in->pixel_y + 1e-8) * in->pixel_y;
    box->top = ceil(box->top / in->pixel_y - 1e-8) * in->pixel_y;
}

static cogpu_status place_by_resolution(completer *in, cogpu_placement *target,
                                        cogpu_error *error) {
    const cogpu_grid *request = in->request;
    in->pixel_x = request->resolution[0], in->pixel_y = request->resolution[1];
    if (request->align)
        align_bounds(in);
    TRY(place_bounds(in, target, error));
    if (has_bbox(request) || request->width || request->height || in->from->count > 1)
        return COGPU_OK;
    return trim_grid(in, target, error);
}

/* One side may be open: pixels are square then. */
static cogpu_status place_by_size(const completer *in, cogpu_placement *target,
                                  cogpu_error *error) {
    const cogpu_bounds *box = &in->bounds;
    const double wide = box->right - box->left, high = box->top - box->bottom;
    double width = in->request->width, height = in->request->height;
    const double pixel_x = width > 0 ? wide / width : high / height;
    const double pixel_y = height > 0 ? high / height : wide / width;
    if (width == 0)
        width = count_pixels(wide, pixel_x);
    if (height == 0)
        height = count_pixels(high, pixel_y);
    return cogpu_grid_place(target, box->left, box->top, pixel_x, pixel_y, width, height, error);
}

static cogpu_status place_by_bbox(completer *in, cogpu_placement *target, cogpu_error *error) {
    const cogpu_bounds *box = &in->bounds;
    TRY(measure_sources(in, error));
    const double wide = box->right - box->left, high = box->top - box->bottom;
    const double width = fmax(1, count_pixels(wide, in->pixel_x));
    const double height = fmax(1, count_pixels(high, in->pixel_y));
    return cogpu_grid_place(target, box->left, box->top, wide / width, high / height, width, height,
                            error);
}

/* With a resolution, gdalwarp starts from whole pixels of the suggestion; with a size, from its
 * bounds. They differ for several sources: the bounds are theirs, the pixels are the smallest. */
static cogpu_bounds whole_pixels(const cogpu_suggestion *made) {
    const cogpu_bounds *box = &made->bounds;
    const double wide = count_pixels(box->right - box->left, made->pixel_x) * made->pixel_x;
    const double high = count_pixels(box->top - box->bottom, made->pixel_y) * made->pixel_y;
    return (cogpu_bounds){box->left, box->top - high, box->left + wide, box->top};
}

static cogpu_status find_bounds(completer *in, cogpu_error *error) {
    const cogpu_grid *request = in->request;
    const cogpu_bounds bbox = {request->bbox[0], request->bbox[1], request->bbox[2],
                               request->bbox[3]};
    cogpu_suggestion made;
    if (has_bbox(request) && request->bbox_crs)
        return cogpu_bounds_reproject(&bbox, request->bbox_crs, in->crs, in->from->operations,
                                      &in->bounds, error);
    if (has_bbox(request)) {
        in->bounds = bbox;
        return COGPU_OK;
    }
    TRY(cogpu_suggest_all(in->from, in->crs, &made, error));
    in->bounds = has_resolution(request) ? whole_pixels(&made) : made.bounds;
    return COGPU_OK;
}

cogpu_status cogpu_grid_complete(const cogpu_grid *request, const cogpu_grid_sources *sources,
                                 cogpu_placement *target, cogpu_error *error) {
    completer in = {.request = request, .from = sources, .crs = target->crs};
    TRY(check_request(request, error));
    if (any_number(request->transform, 6))
        return copy_transform(request, target, error);
    if (sources->count == 0 &&
        !(has_bbox(request) && (has_resolution(request) || request->width || request->height)))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "a grid needs at least one source");
    if (!has_bbox(request) && !has_resolution(request) && !request->width && !request->height)
        return cogpu_grid_suggest(sources, target, error);
    TRY(find_bounds(&in, error));
    if (has_resolution(request))
        return place_by_resolution(&in, target, error);
    if (request->width || request->height)
        return place_by_size(&in, target, error);
    return place_by_bbox(&in, target, error);
}
