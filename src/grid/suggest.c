/*
 * The grid of gdalwarp without options, by the rules of GDAL's GDALSuggestedWarpOutput2: positions
 * of the source's border give the bounds; its diagonal gives the size of the square pixels.
 */
#include "grid/suggest.h"
#include "grid/affine.h"
#include "grid/operations.h"

#include "base/memory.h"

#include <math.h>
#include <string.h>

enum { STEPS_MIN = 20, STEPS_MAX = 100, PIXELS_OF_STEP = 50, BISECTIONS = 16, BORDER_STEPS = 20 };
enum {
    BORDER_POINTS_MAX = 4 * (STEPS_MAX + 1),
    GRID_SIDE = 21,
    GRID_POINTS = GRID_SIDE * GRID_SIDE
};

/* Half the width of Web Mercator. */
static const double MERCATOR_END = 20037508.342789244;

/* Positions in the source, in pixels, and where they are in the target's CRS. They lie in lines:
 * along the top, bottom, left and right border, or along the rows of a lattice. */
typedef struct samples {
    uint32_t lines, points; /* a line has so many */
    size_t count;
    double *from_x, *from_y, *x, *y;
} samples;

typedef struct suggester {
    const cogpu_placement *source;
    const cogpu_transformer *transformer;
    bool in_degrees; /* the target's CRS is */
    bool by_inverse; /* positions that do not return do not count */
    cogpu_reprojection reprojection;
    bool is_mercator;         /* the target's CRS is EPSG:3857 */
    cogpu_reprojection poles; /* longitudes and latitudes to the target's CRS */
    uint32_t steps;
    samples samples;
    cogpu_bounds bounds;
} suggester;

/* ---- what complete.c needs too ------------------------------------------------------------- */

cogpu_status cogpu_open_to_crs(const cogpu_placement *source, const char *crs,
                               cogpu_operations *operations, cogpu_transformer **transformer,
                               cogpu_error *error) {
    const cogpu_placement plane = {.width = 1,
                                   .height = 1,
                                   .crs = crs,
                                   .has_transform = true,
                                   .transform = {0, 1, 0, 0, 0, 1}};
    return cogpu_transformer_open(source, &plane, operations, transformer, error);
}

cogpu_status cogpu_crs_in_degrees(const char *crs, cogpu_operations *operations, bool *in_degrees,
                                  cogpu_error *error) {
    cogpu_reprojection same = {0};
    if (crs)
        TRY(cogpu_operations_find(operations, crs, crs, NULL, &same, error));
    *in_degrees = same.from_degrees;
    return COGPU_OK;
}

cogpu_status cogpu_grid_place(cogpu_placement *target, double left, double top, double pixel_x,
                              double pixel_y, double width, double height, cogpu_error *error) {
    const double transform[6] = {left, pixel_x, 0, top, 0, -pixel_y};
    for (int i = 0; i < 6; i++)
        if (!isfinite(transform[i]))
            return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "the grid's transform is not finite");
    if (!(width >= 1 && height >= 1))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "the grid is empty: %.0f x %.0f pixels",
                          width, height);
    if (!(width <= INT32_MAX && height <= INT32_MAX))
        return cogpu_fail(
            error, COGPU_INVALID_ARGUMENT,
            "the grid has %.10g x %.10g pixels; at most 2147483647 a side are possible", width,
            height);
    for (int i = 0; i < 6; i++)
        target->transform[i] = transform[i];
    target->has_transform = true;
    target->width = (uint32_t)width;
    target->height = (uint32_t)height;
    return COGPU_OK;
}

/* ---- samples ------------------------------------------------------------------------------- */

static double sample_ratio(const suggester *in, uint32_t step) {
    return step == in->steps ? 1 : step * (1.0 / in->steps);
}

static void place_border(suggester *in) {
    const uint32_t points = in->steps + 1;
    samples *all = &in->samples;
    all->lines = 4, all->points = points, all->count = 4 * (size_t)points;
    for (uint32_t i = 0; i < points; i++) {
        const double ratio = sample_ratio(in, i);
        for (uint32_t line = 0; line < 4; line++) {
            const double across = line == 2 ? 0 : line == 3 ? 1 : ratio;
            const double down = line == 0 ? 0 : line == 1 ? 1 : ratio;
            all->from_x[line * points + i] = across * in->source->width;
            all->from_y[line * points + i] = down * in->source->height;
        }
    }
}

static void place_lattice(suggester *in) {
    const uint32_t points = in->steps + 1;
    samples *all = &in->samples;
    all->lines = all->points = points, all->count = (size_t)points * points;
    for (uint32_t j = 0; j < points; j++)
        for (uint32_t i = 0; i < points; i++) {
            all->from_x[(size_t)j * points + i] = sample_ratio(in, i) * in->source->width;
            all->from_y[(size_t)j * points + i] = sample_ratio(in, j) * in->source->height;
        }
}

/* GDAL's CHECK_WITH_INVERT_PROJ: coordinates of the source's CRS must return to within a tolerance.
 * Longitudes are compared as they are: beyond half a turn they do not return. */
static bool returns(const suggester *in, double pixel_x, double pixel_y, double x, double y) {
    double from_x = pixel_x, from_y = pixel_y;
    const double tolerance = in->reprojection.from_degrees ? 0.1 : 10000;
    apply_affine(in->source->transform, &from_x, &from_y);
    cogpu_reproject(&in->reprojection, true, 1, &x, &y);
    return fabs(x - from_x) <= tolerance && fabs(y - from_y) <= tolerance;
}

static void project(const suggester *in, size_t count, const double *from_x, const double *from_y,
                    double *x, double *y) {
    for (size_t i = 0; i < count; i++)
        x[i] = from_x[i], y[i] = from_y[i];
    cogpu_to_target(in->transformer, count, x, y);
    for (size_t i = 0; in->by_inverse && i < count; i++)
        if (!returns(in, from_x[i], from_y[i], x[i], y[i]))
            x[i] = y[i] = NAN;
}

/* The antimeridian is both 180 and -180: where all other longitudes have one sign, it has it too.
 */
static void unify_antimeridian(const suggester *in) {
    const samples *all = &in->samples;
    double side = 0;
    for (size_t i = 0; i < all->count; i++) {
        const double x = all->x[i];
        if (isnan(x) || fabs(fabs(x) - 180) < 1e-8)
            continue;
        if (side * x < 0)
            return;
        side = x;
    }
    for (size_t i = 0; i < all->count; i++) {
        double x[2] = {all->x[i], -all->x[i]}, y[2] = {all->y[i], all->y[i]};
        if (!(fabs(fabs(x[0]) - 180) < 1e-8) || side * x[0] >= 0)
            continue;
        cogpu_to_source(in->transformer, 2, x, y);
        if (fabs(x[0] - x[1]) < 1e-6 && fabs(y[0] - y[1]) < 1e-6)
            all->x[i] = -all->x[i];
    }
}

static void project_samples(const suggester *in) {
    const samples *all = &in->samples;
    project(in, all->count, all->from_x, all->from_y, all->x, all->y);
    if (in->in_degrees)
        unify_antimeridian(in);
}

/* Whether the samples, which are those of the border, have positions in both directions. */
static bool border_returns(const suggester *in) {
    const samples *all = &in->samples;
    const double step_x = (double)in->source->width / in->steps;
    const double step_y = (double)in->source->height / in->steps;
    double x[BORDER_POINTS_MAX], y[BORDER_POINTS_MAX];
    memcpy(x, all->x, all->count * sizeof *x);
    memcpy(y, all->y, all->count * sizeof *y);
    cogpu_to_source(in->transformer, all->count, x, y);
    for (size_t i = 0; i < all->count; i++)
        if (!(fabs(x[i] - all->from_x[i]) <= step_x && fabs(y[i] - all->from_y[i]) <= step_y))
            return false;
    return true;
}

/* ---- bounds -------------------------------------------------------------------------------- */

static void add_to_bounds(suggester *in, double x, double y) {
    cogpu_bounds *bounds = &in->bounds;
    bounds->left = fmin(bounds->left, x), bounds->right = fmax(bounds->right, x);
    bounds->bottom = fmin(bounds->bottom, y), bounds->top = fmax(bounds->top, y);
}

/* Between two neighbours in a row, x jumps, or positions end: approaches that place from both
 * sides. */
static void approach_jump(suggester *in, size_t after) {
    const samples *all = &in->samples;
    double before_in = all->from_x[after - 1], after_in = all->from_x[after];
    double before_x = all->x[after - 1], after_x = all->x[after];
    for (uint32_t i = 0; i < BISECTIONS; i++) {
        const double middle = (before_in + after_in) / 2;
        double x, y;
        if (!isnan(before_x) && !isnan(after_x) && before_x * after_x >= 0)
            return;
        project(in, 1, &middle, &all->from_y[after], &x, &y);
        const bool is_after = isnan(x) ? !isnan(before_x) : isnan(before_x) || before_x * x < 0;
        if (!isnan(x))
            add_to_bounds(in, x, y);
        if (is_after)
            after_in = middle, after_x = isnan(x) ? after_x : x;
        else
            before_in = middle, before_x = isnan(x) ? before_x : x;
    }
}

static cogpu_status find_bounds(suggester *in, cogpu_error *error) {
    const samples *all = &in->samples;
    const uint32_t rows = all->lines == 4 ? 2 : all->lines;
    size_t failed = 0;
    in->bounds = (cogpu_bounds){INFINITY, INFINITY, -INFINITY, -INFINITY};
    for (size_t i = 0; i < all->count; i++) {
        const bool has_neighbour = i % all->points > 0 && i / all->points < rows;
        if (has_neighbour && !(isnan(all->x[i]) && isnan(all->x[i - 1])))
            approach_jump(in, i);
        failed += isnan(all->x[i]) ? 1 : 0;
        if (!isnan(all->x[i]))
            add_to_bounds(in, all->x[i], all->y[i]);
    }
    if (failed + 10 > all->count)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "%zu of %zu positions of the source have none in the CRS of the grid",
                          failed, all->count);
    return COGPU_OK;
}

static bool is_inside(const suggester *in, double x, double y) {
    return x >= -1e-5 && x <= in->source->width + 1e-5 && y >= -1e-5 &&
           y <= in->source->height + 1e-5;
}

/* A pole inside the source: all longitudes meet there. In a projected CRS it may be a point, a
 * line, or nowhere; in Web Mercator it counts as the end of the map. */
static void add_pole(suggester *in, double latitude) {
    static const double endless = 1e9;
    double x[5], y[5];
    for (int i = 0; i < 5; i++)
        x[i] = -180 + 90.0 * i, y[i] = latitude;
    cogpu_reproject(&in->poles, false, 5, x, y);
    double pole_x = x[2], pole_y = y[2];
    cogpu_to_source(in->transformer, 1, &pole_x, &pole_y);
    if (!is_inside(in, pole_x, pole_y))
        return;
    cogpu_to_target(in->transformer, 1, &pole_x, &pole_y);
    if (in->in_degrees && !(fabs(pole_y - latitude) < 1e-6))
        return;
    if (in->is_mercator) {
        add_to_bounds(in, -MERCATOR_END, copysign(MERCATOR_END, latitude));
        add_to_bounds(in, MERCATOR_END, copysign(MERCATOR_END, latitude));
        return;
    }
    for (int i = 0; i < 5; i++)
        if (fabs(x[i]) < endless && fabs(y[i]) < endless)
            add_to_bounds(in, x[i], y[i]);
}

/* ---- pixels -------------------------------------------------------------------------------- */

static double round_size(double pixels, bool rounds_up) {
    return rounds_up ? ceil(pixels - 1e-5) : floor(pixels + 0.5);
}

/* Whether no position of the right or lower border returns to within one pixel. */
static bool border_is_outside(const suggester *in, const cogpu_bounds *box, bool is_right,
                              double pixel_x, double pixel_y) {
    for (uint32_t i = 0; i <= BORDER_STEPS; i++) {
        const double ratio = (double)i / BORDER_STEPS;
        const double from_x = is_right ? box->right : box->left + ratio * (box->right - box->left);
        const double from_y =
            is_right ? box->bottom + ratio * (box->top - box->bottom) : box->bottom;
        double in_x = from_x, in_y = from_y, x, y;
        cogpu_to_source(in->transformer, 1, &in_x, &in_y);
        project(in, 1, &in_x, &in_y, &x, &y);
        if (fabs(x - from_x) <= pixel_x && fabs(y - from_y) <= pixel_y)
            return false;
    }
    return true;
}

/* Pixels become a little smaller until the border of the grid has positions in the source. */
static void fit_borders(const suggester *in, cogpu_suggestion *made) {
    static const double ratios[] = {0, 0.001, 0.01, 0.1, 1};
    const cogpu_bounds *from = &in->bounds;
    for (int is_right = 1; is_right >= 0; is_right--) {
        double *pixel = is_right ? &made->pixel_x : &made->pixel_y;
        const uint32_t size = is_right ? made->width : made->height;
        for (size_t i = 0; size > 0 && i < sizeof ratios / sizeof *ratios; i++) {
            const double whole = *pixel;
            *pixel = whole - whole * ratios[i] / size;
            const cogpu_bounds box = {from->left, from->top - made->height * made->pixel_y,
                                      from->left + made->width * made->pixel_x, from->top};
            if (!border_is_outside(in, &box, is_right, made->pixel_x, made->pixel_y))
                break;
            *pixel = whole;
        }
    }
}

/* Longitudes end at 180, latitudes at -90. */
static void complete_bounds(const suggester *in, cogpu_suggestion *made) {
    const cogpu_bounds *from = &in->bounds;
    cogpu_bounds *to = &made->bounds;
    *to = (cogpu_bounds){from->left, from->top - made->height * made->pixel_y,
                         from->left + made->width * made->pixel_x, from->top};
    if (!in->in_degrees)
        return;
    if ((from->right <= 180 && to->right > 180) || from->right == 180) {
        to->right = 180;
        made->pixel_x = (to->right - to->left) / made->width;
    }
    if (from->bottom >= -90 && to->bottom < -90) {
        to->bottom = -90;
        made->pixel_y = (to->top - to->bottom) / made->height;
    }
}

static cogpu_status choose_pixels(const suggester *in, bool rounds_up, cogpu_suggestion *made,
                                  cogpu_error *error) {
    const samples *all = &in->samples;
    const cogpu_bounds *box = &in->bounds;
    const size_t last = all->count - 1;
    double dx = all->x[last] - all->x[0], dy = all->y[last] - all->y[0];
    if (isnan(dx) || dx == 0 || dy == 0)
        dx = box->right - box->left, dy = box->top - box->bottom;
    const double w = in->source->width, h = in->source->height;
    const double pixel = sqrt(dx * dx + dy * dy) / sqrt(w * w + h * h);
    const double width = round_size((box->right - box->left) / pixel, rounds_up);
    const double height = round_size((box->top - box->bottom) / pixel, rounds_up);
    cogpu_placement checked;
    TRY(cogpu_grid_place(&checked, box->left, box->top, pixel, pixel, width, height, error));
    *made = (cogpu_suggestion){
        .pixel_x = pixel, .pixel_y = pixel, .width = checked.width, .height = checked.height};
    fit_borders(in, made);
    complete_bounds(in, made);
    return COGPU_OK;
}

/* ---- one source ---------------------------------------------------------------------------- */

/* The source's own grid, south-up sources turned. */
static cogpu_suggestion keep_grid(const cogpu_placement *source) {
    const double *from = source->transform;
    const double bottom = from[3] + source->height * from[5];
    return (cogpu_suggestion){.bounds = {from[0], fmin(bottom, from[3]),
                                         from[0] + source->width * from[1], fmax(bottom, from[3])},
                              .pixel_x = from[1],
                              .pixel_y = fabs(from[5]),
                              .width = source->width,
                              .height = source->height};
}

static cogpu_status suggest_pixels(suggester *in, bool rounds_up, cogpu_suggestion *made,
                                   cogpu_error *error) {
    place_border(in);
    project_samples(in);
    if (!border_returns(in)) {
        place_lattice(in);
        project_samples(in);
    }
    TRY(find_bounds(in, error));
    if (in->poles.from_degrees && !in->reprojection.from_degrees) {
        add_pole(in, 90);
        add_pole(in, -90);
    }
    return choose_pixels(in, rounds_up, made, error);
}

/* gdalwarp's own check: whether all of the grid has positions in the source that return. */
static bool grid_returns(const suggester *in, const cogpu_suggestion *made) {
    const cogpu_bounds *box = &made->bounds;
    const double pixel_x = (box->right - box->left) / made->width;
    const double pixel_y = (box->top - box->bottom) / made->height;
    double from_x[GRID_POINTS], from_y[GRID_POINTS], x[GRID_POINTS], y[GRID_POINTS];
    for (uint32_t i = 0; i < GRID_POINTS; i++) {
        const double u = (double)(i / GRID_SIDE) / (GRID_SIDE - 1);
        const double v = (double)(i % GRID_SIDE) / (GRID_SIDE - 1);
        x[i] = from_x[i] = (1 - u) * box->left + u * box->right;
        y[i] = from_y[i] = (1 - v) * box->bottom + v * box->top;
    }
    cogpu_to_source(in->transformer, GRID_POINTS, x, y);
    cogpu_to_target(in->transformer, GRID_POINTS, x, y);
    for (uint32_t i = 0; i < GRID_POINTS; i++)
        if (!(fabs(x[i] - from_x[i]) <= pixel_x && fabs(y[i] - from_y[i]) <= pixel_y))
            return false;
    return true;
}

static cogpu_status reserve_samples(suggester *in, cogpu_error *error) {
    const uint32_t least =
        in->source->width < in->source->height ? in->source->width : in->source->height;
    const double steps = (double)least / PIXELS_OF_STEP + 0.5;
    samples *all = &in->samples;
    in->steps = (uint32_t)fmin(fmax(floor(steps), STEPS_MIN), STEPS_MAX);
    const size_t count = ((size_t)in->steps + 1) * (in->steps + 1);
    all->from_x = cogpu_allocate(4 * count * sizeof *all->from_x);
    if (!all->from_x)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory: %zu positions", count);
    all->from_y = all->from_x + count;
    all->x = all->from_y + count;
    all->y = all->x + count;
    return COGPU_OK;
}

static cogpu_status suggest_twice(suggester *in, bool rounds_up, cogpu_suggestion *made,
                                  cogpu_error *error) {
    TRY(reserve_samples(in, error));
    TRY(suggest_pixels(in, rounds_up, made, error));
    if (!in->source->has_transform || grid_returns(in, made))
        return COGPU_OK;
    cogpu_suggestion checked;
    in->by_inverse = true;
    if (suggest_pixels(in, false, &checked, NULL) == COGPU_OK) /* as GDAL: never rounded up */
        *made = checked;
    return COGPU_OK;
}

static cogpu_status check_source(const cogpu_placement *source, cogpu_error *error) {
    if (source->width == 0 || source->height == 0 || (source->width | source->height) >> 31)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "a source of %u x %u pixels has no grid",
                          source->width, source->height);
    return COGPU_OK;
}

/* Web Mercator ends short of the poles, as gdalwarp's grids of longitudes and latitudes do. The
 * size of pixels is measured then, as for a bbox. */
static void crop_mercator(const suggester *in, cogpu_suggestion *made) {
    const cogpu_bounds *from = &in->bounds;
    cogpu_bounds *box = &made->bounds;
    double pixel;
    if (from->top <= MERCATOR_END && from->bottom >= -MERCATOR_END)
        return;
    *box = (cogpu_bounds){from->left, fmax(from->bottom, -MERCATOR_END), from->right,
                          fmin(from->top, MERCATOR_END)};
    if (!cogpu_measure_resolution(in->transformer, in->source, box, &pixel))
        pixel = made->pixel_x;
    made->width = (uint32_t)fmax(1, round_size((box->right - box->left) / pixel, false));
    made->height = (uint32_t)fmax(1, round_size((box->top - box->bottom) / pixel, false));
    made->pixel_x = (box->right - box->left) / made->width;
    made->pixel_y = (box->top - box->bottom) / made->height;
}

/* What the steps need of PROJ besides the transformer. */
static cogpu_status find_operations(suggester *in, const char *crs, cogpu_operations *operations,
                                    cogpu_error *error) {
    const cogpu_placement *source = in->source;
    double corners[8];
    if (!crs || !source->crs)
        return COGPU_OK;
    for (int i = 0; i < 4; i++) {
        corners[2 * i] = i & 1 ? source->width : 0;
        corners[2 * i + 1] = i & 2 ? source->height : 0;
        apply_affine(source->transform, &corners[2 * i], &corners[2 * i + 1]);
    }
    if (cogpu_operations_find(operations, "EPSG:4326", crs, NULL, &in->poles, NULL) != COGPU_OK)
        in->poles = (cogpu_reprojection){0}; /* a plane of no place on Earth */
    return cogpu_operations_find(operations, source->crs, crs,
                                 source->has_transform ? corners : NULL, &in->reprojection, error);
}

static bool is_mercator(const char *crs, cogpu_operations *operations) {
    cogpu_reprojection same;
    return crs &&
           cogpu_operations_find(operations, "EPSG:3857", crs, NULL, &same, NULL) == COGPU_OK &&
           !same.operation;
}

/* GDAL keeps the grid of a source that is on the CRS, unless it is rotated. */
static bool keeps_grid(const suggester *in) {
    const double *transform = in->source->transform;
    double affine[6];
    return cogpu_transformer_is_affine(in->transformer, affine) && transform[2] == 0 &&
           transform[4] == 0 && transform[1] > 0;
}

static cogpu_status suggest_for(suggester *in, const char *crs, bool rounds_up,
                                cogpu_operations *operations, cogpu_suggestion *made,
                                cogpu_error *error) {
    if (keeps_grid(in)) {
        *made = keep_grid(in->source);
        return COGPU_OK;
    }
    TRY(cogpu_crs_in_degrees(crs, operations, &in->in_degrees, error));
    TRY(find_operations(in, crs, operations, error));
    in->is_mercator = is_mercator(crs, operations);
    TRY(suggest_twice(in, rounds_up, made, error));
    if (in->reprojection.from_degrees && in->is_mercator)
        crop_mercator(in, made);
    return COGPU_OK;
}

static cogpu_status suggest(const cogpu_placement *source, const char *crs, bool rounds_up,
                            cogpu_operations *operations, cogpu_suggestion *suggestion,
                            cogpu_error *error) {
    suggester in = {.source = source};
    cogpu_transformer *transformer;
    TRY(check_source(source, error));
    TRY(cogpu_open_to_crs(source, crs, operations, &transformer, error));
    in.transformer = transformer;
    cogpu_status status = suggest_for(&in, crs, rounds_up, operations, suggestion, error);
    cogpu_release(in.samples.from_x);
    cogpu_transformer_close(transformer);
    return status;
}

/* ---- several sources ----------------------------------------------------------------------- */

enum { SOURCES_TOGETHER = 256 };

/* Sources that threads share, and what each of them suggests. */
typedef struct shared_sources {
    const cogpu_grid_sources *all;
    const char *crs;
    size_t first;
    cogpu_suggestion made[SOURCES_TOGETHER];
    cogpu_status statuses[SOURCES_TOGETHER];
} shared_sources;

static void suggest_for_source(void *argument, uint32_t worker, uint64_t index) {
    shared_sources *shared = argument;
    const cogpu_grid_sources *all = shared->all;
    (void)worker;
    shared->statuses[index] = suggest(&all->items[shared->first + index], shared->crs,
                                      all->rounds_up, all->operations, &shared->made[index], NULL);
}

static void add_suggestion(const cogpu_suggestion *one, cogpu_suggestion *all) {
    all->bounds = (cogpu_bounds){
        fmin(all->bounds.left, one->bounds.left), fmin(all->bounds.bottom, one->bounds.bottom),
        fmax(all->bounds.right, one->bounds.right), fmax(all->bounds.top, one->bounds.top)};
    all->pixel_x = fmin(all->pixel_x, one->pixel_x);
    all->pixel_y = fmin(all->pixel_y, one->pixel_y);
}

/* Adds the suggestions of `count` sources. The first that fails is repeated for its message. */
static cogpu_status suggest_together(shared_sources *shared, size_t count, cogpu_suggestion *all,
                                     cogpu_error *error) {
    cogpu_pool_share(shared->all->pool, count, suggest_for_source, shared);
    for (size_t i = 0; i < count; i++) {
        const cogpu_grid_sources *from = shared->all;
        if (shared->statuses[i] != COGPU_OK)
            TRY(suggest(&from->items[shared->first + i], shared->crs, from->rounds_up,
                        from->operations, &shared->made[i], error));
        if (shared->first + i == 0)
            *all = shared->made[i];
        else
            add_suggestion(&shared->made[i], all);
    }
    return COGPU_OK;
}

cogpu_status cogpu_suggest_all(const cogpu_grid_sources *sources, const char *crs,
                               cogpu_suggestion *suggestion, cogpu_error *error) {
    shared_sources shared = {.all = sources, .crs = crs};
    if (sources->count == 0)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "a grid needs at least one source");
    for (; shared.first < sources->count; shared.first += SOURCES_TOGETHER) {
        const size_t left = sources->count - shared.first;
        TRY(suggest_together(&shared, left < SOURCES_TOGETHER ? left : SOURCES_TOGETHER, suggestion,
                             error));
    }
    return COGPU_OK;
}

cogpu_status cogpu_grid_suggest(const cogpu_grid_sources *sources, cogpu_placement *target,
                                cogpu_error *error) {
    cogpu_suggestion made;
    TRY(cogpu_suggest_all(sources, target->crs, &made, error));
    const cogpu_bounds *box = &made.bounds;
    return cogpu_grid_place(target, box->left, box->top, made.pixel_x, made.pixel_y,
                            floor((box->right - box->left) / made.pixel_x + 0.5),
                            floor((box->top - box->bottom) / made.pixel_y + 0.5), error);
}
