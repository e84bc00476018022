/*
 * See rpc.h. The polynomials are those of RPC00B (STDI-0002, 8.2.4); (0, 0) of their pixels is the
 * centre of the first pixel. The inverse is GDAL's: steps along a constant affine transform until a
 * pixel is within 0.1 pixels.
 */
#include "grid/rpc.h"

#include "grid/affine.h"

enum {
    TERMS = 20,
    NUMBERS = 92,
    CHUNK = 128,
    STEPS_MAX = 10,
    DEM_STEPS_MAX = 20,
    /* After so many steps near the target, a DEM's steps become longer. */
    NEAR_STEPS = 5
};
#define PIXEL_ERROR 0.1
#define NEAR_PIXELS 2.0
#define LONG_STEP   10.0

/* Positions in the 92 numbers. */
enum {
    LINE_OFFSET = 2,
    SAMPLE_OFFSET,
    LATITUDE_OFFSET,
    LONGITUDE_OFFSET,
    HEIGHT_OFFSET,
    LINE_SCALE,
    SAMPLE_SCALE,
    LATITUDE_SCALE,
    LONGITUDE_SCALE,
    HEIGHT_SCALE,
    LINE_NUMERATOR,
    LINE_DENOMINATOR = LINE_NUMERATOR + TERMS,
    SAMPLE_NUMERATOR = LINE_DENOMINATOR + TERMS,
    SAMPLE_DENOMINATOR = SAMPLE_NUMERATOR + TERMS
};

/* ---- forward ------------------------------------------------------------------------------- */

static void fill_terms(double l, double p, double h, double terms[TERMS]) {
    double filled[TERMS] = {1,         l,         p,         h,         l * p,
                            l * h,     p * h,     l * l,     p * p,     h * h,
                            l * p * h, l * l * l, l * p * p, l * h * h, l * l * p,
                            p * p * p, p * h * h, l * l * h, p * p * h, h * h * h};
    for (int i = 0; i < TERMS; i++)
        terms[i] = filled[i];
}

static double evaluate(const cogpu_rpc_ratio *ratio, const double terms[TERMS]) {
    double above = 0, below = 0;
    for (int i = 0; i < TERMS; i++) {
        above += terms[i] * ratio->numerator[i];
        below += terms[i] * ratio->denominator[i];
    }
    return above / below * ratio->scale + ratio->offset + 0.5;
}

static void locate(const cogpu_rpc_model *in, double longitude, double latitude, double height,
                   double *column, double *row) {
    double terms[TERMS], east = longitude - in->longitude;
    if (fabs(east) > 270)
        east -= copysign(360, east);
    fill_terms(east / in->longitude_scale, (latitude - in->latitude) / in->latitude_scale,
               (height - in->height) / in->height_scale, terms);
    *column = evaluate(&in->column, terms);
    *row = evaluate(&in->row, terms);
}

/* ---- heights ------------------------------------------------------------------------------- */

static uint32_t clamp_index(double index, uint32_t count) {
    return index < 0 ? 0 : index >= count ? count - 1 : (uint32_t)index;
}

/* Bilinear. Beside unknown heights the first known one of the four, and 0 where there is none, as
 * gdalwarp with RPC_DEM_MISSING_VALUE=0. */
static double interpolate_height(const cogpu_height_model *dem, double x, double y) {
    double sum = 0, column = floor(x - 0.5), row = floor(y - 0.5), first = 0;
    int known = 0;
    if (!(x >= 0 && y >= 0 && x <= dem->width && y <= dem->height))
        return 0;
    for (int corner = 0; corner < 4; corner++) {
        double along = fabs(x - 0.5 - column - (corner & 1 ? 0 : 1));
        double down = fabs(y - 0.5 - row - (corner & 2 ? 0 : 1));
        size_t at = (size_t)clamp_index(row + (corner >> 1), dem->height) * dem->width +
                    clamp_index(column + (corner & 1), dem->width);
        double height = dem->heights[at];
        if (isnan(height))
            continue;
        first = known++ ? first : height;
        sum += height * along * down;
    }
    return known == 4 ? sum : first;
}

/* At most CHUNK positions. */
static void find_heights(const cogpu_rpc_model *in, size_t count, const double *longitudes,
                         const double *latitudes, double *heights) {
    double x[CHUNK], y[CHUNK];
    for (size_t i = 0; i < count; i++) {
        heights[i] = in->constant_height;
        x[i] = longitudes[i];
        y[i] = latitudes[i];
    }
    if (!in->dem)
        return;
    cogpu_reproject(&in->from_dem, true, count, x, y);
    for (size_t i = 0; i < count; i++) {
        apply_affine(in->dem_inverse, &x[i], &y[i]);
        heights[i] = interpolate_height(in->dem, x[i], y[i]);
    }
}

static void locate_chunk(const cogpu_rpc_model *in, size_t count, double *x, double *y) {
    double heights[CHUNK];
    find_heights(in, count, x, y, heights);
    for (size_t i = 0; i < count; i++)
        locate(in, x[i], y[i], heights[i], &x[i], &y[i]);
}

void cogpu_rpc_to_pixel(const cogpu_rpc_model *model, size_t count, double *x, double *y) {
    for (size_t done = 0; done < count; done += CHUNK)
        locate_chunk(model, count - done < CHUNK ? count - done : CHUNK, x + done, y + done);
}

/* ---- inverse ------------------------------------------------------------------------------- */

/* The search for one pixel. */
typedef struct search {
    double x, y, last_x, last_y;                         /* degrees */
    double error_x, error_y, last_error_x, last_error_y; /* pixels */
    bool has_last, is_found;
    int near_steps;
} search;

/* A DEM can make errors swing around 0: then the next position is between the last two. */
static bool step_between(search *at) {
    double now_x = fabs(at->error_x), last_x = fabs(at->last_error_x);
    double now_y = fabs(at->error_y), last_y = fabs(at->last_error_y);
    if (!at->has_last || at->error_x * at->last_error_x >= 0 || at->error_y * at->last_error_y >= 0)
        return false;
    at->x = (now_x * at->last_x + last_x * at->x) / (now_x + last_x);
    at->y = (now_y * at->last_y + last_y * at->y) / (now_y + last_y);
    at->has_last = false;
    return true;
}

static void step_along(search *at, const double to_degrees[6], double length) {
    at->last_x = at->x;
    at->last_y = at->y;
    at->last_error_x = at->error_x;
    at->last_error_y = at->error_y;
    at->has_last = true;
    at->x -= length * (at->error_x * to_degrees[1] + at->error_y * to_degrees[2]);
    at->y -= length * (at->error_x * to_degrees[4] + at->error_y * to_degrees[5]);
}

static void step_search(const cogpu_rpc_model *in, search *at, double height, double column,
                        double row) {
    double found_column, found_row;
    locate(in, at->x, at->y, height, &found_column, &found_row);
    at->error_x = found_column - column;
    at->error_y = found_row - row;
    double error = fmax(fabs(at->error_x), fabs(at->error_y));
    at->is_found = error < PIXEL_ERROR;
    if (at->is_found)
        return;
    bool is_stuck = in->dem && at->near_steps >= NEAR_STEPS && error < NEAR_PIXELS;
    if (!in->dem || !step_between(at))
        step_along(at, in->to_degrees, is_stuck ? LONG_STEP : 1);
    at->near_steps = error < NEAR_PIXELS ? at->near_steps + 1 : 0;
}

static void search_chunk(const cogpu_rpc_model *in, size_t count, double *x, double *y) {
    search searches[CHUNK];
    double longitudes[CHUNK], latitudes[CHUNK], heights[CHUNK];
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        searches[i] = (search){.x = x[i], .y = y[i]};
        apply_affine(in->to_degrees, &searches[i].x, &searches[i].y);
    }
    for (int step = 0; found < count && step < (in->dem ? DEM_STEPS_MAX : STEPS_MAX); step++) {
        for (size_t i = 0; i < count; i++) {
            longitudes[i] = searches[i].x;
            latitudes[i] = searches[i].y;
        }
        find_heights(in, count, longitudes, latitudes, heights);
        for (size_t i = 0; i < count; i++) {
            if (searches[i].is_found)
                continue;
            step_search(in, &searches[i], heights[i], x[i], y[i]);
            found += searches[i].is_found;
        }
    }
    for (size_t i = 0; i < count; i++) {
        x[i] = searches[i].is_found ? searches[i].x : NAN;
        y[i] = searches[i].is_found ? searches[i].y : NAN;
    }
}

void cogpu_rpc_to_crs(const cogpu_rpc_model *model, size_t count, double *x, double *y) {
    for (size_t done = 0; done < count; done += CHUNK)
        search_chunk(model, count - done < CHUNK ? count - done : CHUNK, x + done, y + done);
}

/* ---- create -------------------------------------------------------------------------------- */

/* The transform around the middle of the image, from differences over 0.0001 degrees. */
static bool fit_affine(cogpu_rpc_model *model) {
    static const double step = 0.0001;
    double to_pixel[6], x = model->longitude, y = model->latitude;
    double height, column, row, east_column, east_row, north_column, north_row;
    find_heights(model, 1, &x, &y, &height);
    locate(model, x, y, height, &column, &row);
    locate(model, x + step, y, height, &east_column, &east_row);
    locate(model, x, y + step, height, &north_column, &north_row);
    to_pixel[1] = (east_column - column) / step;
    to_pixel[4] = (east_row - row) / step;
    to_pixel[2] = (north_column - column) / step;
    to_pixel[5] = (north_row - row) / step;
    to_pixel[0] = column - to_pixel[1] * x - to_pixel[2] * y;
    to_pixel[3] = row - to_pixel[4] * x - to_pixel[5] * y;
    return invert_affine(to_pixel, model->to_degrees);
}

static cogpu_status open_dem(cogpu_rpc_model *model, const cogpu_height_model *dem,
                             cogpu_operations *operations, cogpu_error *error) {
    model->dem = dem;
    if (!dem->width || !dem->height || !invert_affine(dem->transform, model->dem_inverse))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the DEM for the RPCs has no pixels, or its transform has no inverse");
    return dem->crs ? cogpu_operations_find(operations, dem->crs, "EPSG:4326", NULL,
                                            &model->from_dem, error)
                    : COGPU_OK;
}

cogpu_status cogpu_rpc_model_create(const cogpu_placement *source, cogpu_operations *operations,
                                    cogpu_rpc_model *model, cogpu_error *error) {
    const double *rpc = source->rpc;
    for (int i = LINE_OFFSET; i < NUMBERS; i++)
        if (!isfinite(rpc[i]))
            return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                              "an RPC of the source is not finite (number %d)", i);
    *model = (cogpu_rpc_model){
        .row = {&rpc[LINE_NUMERATOR], &rpc[LINE_DENOMINATOR], rpc[LINE_OFFSET], rpc[LINE_SCALE]},
        .column = {&rpc[SAMPLE_NUMERATOR], &rpc[SAMPLE_DENOMINATOR], rpc[SAMPLE_OFFSET],
                   rpc[SAMPLE_SCALE]},
        .longitude = rpc[LONGITUDE_OFFSET],
        .longitude_scale = rpc[LONGITUDE_SCALE],
        .latitude = rpc[LATITUDE_OFFSET],
        .latitude_scale = rpc[LATITUDE_SCALE],
        .height = rpc[HEIGHT_OFFSET],
        .height_scale = rpc[HEIGHT_SCALE],
        .constant_height = source->rpc_height};
    if (source->rpc_dem)
        TRY(open_dem(model, source->rpc_dem, operations, error));
    if (!fit_affine(model))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the RPCs of the source have no inverse at their centre");
    return COGPU_OK;
}
