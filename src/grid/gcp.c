/*
 * See gcp.h. All fits are by least squares: the normal equations in coordinates of about -1 to 1,
 * solved by elimination. Both directions of a polynomial are fits of their own; that of a
 * projective transform is inverted.
 */
#include "grid/gcp.h"

#include <math.h>
#include <string.h>

enum { UNKNOWNS_MAX = 8, SIDES_MAX = 2 };

/* ---- linear equations ---------------------------------------------------------------------- */

/* Normal equations with one or two right sides. */
typedef struct equations {
    int unknowns, sides;
    double left[UNKNOWNS_MAX][UNKNOWNS_MAX];
    double right[UNKNOWNS_MAX][SIDES_MAX];
} equations;

static void add_observation(equations *in, const double *row, const double *values) {
    for (int i = 0; i < in->unknowns; i++) {
        for (int j = 0; j < in->unknowns; j++)
            in->left[i][j] += row[i] * row[j];
        for (int side = 0; side < in->sides; side++)
            in->right[i][side] += row[i] * values[side];
    }
}

static void swap_rows(equations *in, int a, int b) {
    for (int j = 0; j < in->unknowns; j++) {
        double kept = in->left[a][j];
        in->left[a][j] = in->left[b][j];
        in->left[b][j] = kept;
    }
    for (int side = 0; side < in->sides; side++) {
        double kept = in->right[a][side];
        in->right[a][side] = in->right[b][side];
        in->right[b][side] = kept;
    }
}

static void eliminate_column(equations *in, int column) {
    for (int i = 0; i < in->unknowns; i++) {
        double factor = in->left[i][column] / in->left[column][column];
        if (i == column || factor == 0)
            continue;
        for (int j = column; j < in->unknowns; j++)
            in->left[i][j] -= factor * in->left[column][j];
        for (int side = 0; side < in->sides; side++)
            in->right[i][side] -= factor * in->right[column][side];
    }
}

/* Gauss-Jordan with partial pivoting. The solution replaces the right sides. False if the equations
 * are singular. */
static bool solve_equations(equations *in) {
    static const double smallest = 1e-13; /* of a pivot, relative to the largest coefficient */
    double largest = 0;
    for (int i = 0; i < in->unknowns; i++)
        largest = fmax(largest, in->left[i][i]);
    for (int column = 0; column < in->unknowns; column++) {
        int pivot = column;
        for (int i = column + 1; i < in->unknowns; i++)
            if (fabs(in->left[i][column]) > fabs(in->left[pivot][column]))
                pivot = i;
        if (!(fabs(in->left[pivot][column]) > smallest * largest))
            return false;
        swap_rows(in, column, pivot);
        eliminate_column(in, column);
    }
    for (int i = 0; i < in->unknowns; i++)
        for (int side = 0; side < in->sides; side++)
            in->right[i][side] /= in->left[i][i];
    return true;
}

/* ---- polynomials --------------------------------------------------------------------------- */

/* A point with its pixel and its coordinates, the one that a fit starts from first. */
typedef struct sample {
    double from[2], to[2];
} sample;

static sample sample_of(const cogpu_gcp *points, uint32_t i, bool to_pixel, bool unwraps) {
    double x = points[i].x + (unwraps && points[i].x < 0 ? 360 : 0);
    sample of = {{points[i].column, points[i].row}, {x, points[i].y}};
    return to_pixel ? (sample){{of.to[0], of.to[1]}, {of.from[0], of.from[1]}} : of;
}

static void fill_terms(const cogpu_gcp_polynomials *in, double x, double y,
                       double terms[COGPU_GCP_TERMS]) {
    double u = (x - in->centre[0]) / in->scale[0], v = (y - in->centre[1]) / in->scale[1];
    terms[0] = 1;
    terms[1] = u;
    terms[2] = v;
    terms[3] = u * u;
    terms[4] = u * v;
    terms[5] = v * v;
}

static void scale_polynomials(cogpu_gcp_polynomials *made, const cogpu_gcp *points, uint32_t count,
                              bool to_pixel, bool unwraps) {
    for (int axis = 0; axis < 2; axis++) {
        double sum = 0, largest = 0;
        for (uint32_t i = 0; i < count; i++)
            sum += sample_of(points, i, to_pixel, unwraps).from[axis];
        made->centre[axis] = sum / count;
        for (uint32_t i = 0; i < count; i++)
            largest = fmax(largest, fabs(sample_of(points, i, to_pixel, unwraps).from[axis] -
                                         made->centre[axis]));
        made->scale[axis] = largest > 0 ? largest : 1;
    }
}

static bool fit_polynomials(cogpu_gcp_polynomials *made, const cogpu_gcp *points, uint32_t count,
                            bool to_pixel, bool unwraps) {
    made->terms = count < 6 ? 3 : COGPU_GCP_TERMS;
    equations in = {.unknowns = (int)made->terms, .sides = 2};
    scale_polynomials(made, points, count, to_pixel, unwraps);
    for (uint32_t i = 0; i < count; i++) {
        double terms[COGPU_GCP_TERMS];
        sample of = sample_of(points, i, to_pixel, unwraps);
        fill_terms(made, of.from[0], of.from[1], terms);
        add_observation(&in, terms, of.to);
    }
    if (!solve_equations(&in))
        return false;
    for (uint32_t i = 0; i < made->terms; i++) {
        made->x[i] = in.right[i][0];
        made->y[i] = in.right[i][1];
    }
    return true;
}

static void apply_polynomials(const cogpu_gcp_polynomials *in, double *x, double *y) {
    double terms[COGPU_GCP_TERMS];
    fill_terms(in, *x, *y, terms);
    *x = *y = 0;
    for (uint32_t i = 0; i < in->terms; i++) {
        *x += in->x[i] * terms[i];
        *y += in->y[i] * terms[i];
    }
}

/* Two points: each axis has a scale of its own. */
static bool fit_upright(cogpu_gcp_model *made, const cogpu_gcp *points, bool unwraps) {
    sample a = sample_of(points, 0, false, unwraps), b = sample_of(points, 1, false, unwraps);
    for (int axis = 0; axis < 2; axis++) {
        double pixels = b.from[axis] - a.from[axis], units = b.to[axis] - a.to[axis];
        if (pixels == 0 || units == 0)
            return false;
        double *to_crs = axis ? made->to_crs.y : made->to_crs.x;
        double *to_pixel = axis ? made->to_pixel.y : made->to_pixel.x;
        made->to_crs.centre[axis] = to_pixel[0] = a.from[axis];
        made->to_pixel.centre[axis] = to_crs[0] = a.to[axis];
        made->to_crs.scale[axis] = to_pixel[1 + axis] = pixels;
        made->to_pixel.scale[axis] = to_crs[1 + axis] = units;
    }
    made->to_crs.terms = made->to_pixel.terms = 3;
    return true;
}

/* ---- projective ---------------------------------------------------------------------------- */

static void multiply(const double a[9], const double b[9], double product[9]) {
    for (int i = 0; i < 9; i++)
        product[i] = a[i / 3 * 3] * b[i % 3] + a[i / 3 * 3 + 1] * b[3 + i % 3] +
                     a[i / 3 * 3 + 2] * b[6 + i % 3];
}

static bool invert_matrix(const double m[9], double inverse[9]) {
    double determinant = 0;
    for (int i = 0; i < 9; i++) {
        int row = i % 3, column = i / 3; /* of the cofactor, which is transposed */
        int r1 = (row + 1) % 3 * 3, r2 = (row + 2) % 3 * 3;
        int c1 = (column + 1) % 3, c2 = (column + 2) % 3;
        inverse[i] = m[r1 + c1] * m[r2 + c2] - m[r1 + c2] * m[r2 + c1];
    }
    for (int i = 0; i < 3; i++)
        determinant += m[i] * inverse[3 * i];
    for (int i = 0; i < 9; i++)
        inverse[i] /= determinant;
    return isfinite(determinant) && fabs(determinant) > 1e-12;
}

/* From coordinates to 0..1 among the points, and back. False if the points are on a line along an
 * axis. */
static bool fill_unit_square(const cogpu_gcp *points, uint32_t count, bool of_pixels, bool unwraps,
                             double to_square[9], double from_square[9]) {
    double least[2] = {INFINITY, INFINITY}, most[2] = {-INFINITY, -INFINITY};
    for (uint32_t i = 0; i < count; i++) {
        sample of = sample_of(points, i, !of_pixels, unwraps);
        for (int axis = 0; axis < 2; axis++) {
            least[axis] = fmin(least[axis], of.from[axis]);
            most[axis] = fmax(most[axis], of.from[axis]);
        }
    }
    memset(to_square, 0, 9 * sizeof *to_square);
    memset(from_square, 0, 9 * sizeof *from_square);
    to_square[8] = from_square[8] = 1;
    for (int axis = 0; axis < 2; axis++) {
        double range = most[axis] - least[axis];
        to_square[4 * axis] = 1 / range;
        to_square[3 * axis + 2] = -least[axis] / range;
        from_square[4 * axis] = range;
        from_square[3 * axis + 2] = least[axis];
    }
    return most[0] > least[0] && most[1] > least[1];
}

static void apply_matrix(const double m[9], double *x, double *y) {
    double column = *x, row = *y, divisor = m[6] * column + m[7] * row + m[8];
    *x = (m[0] * column + m[1] * row + m[2]) / divisor;
    *y = (m[3] * column + m[4] * row + m[5]) / divisor;
}

/* Direct linear transform: for each point, x' (g x + h y + 1) = a x + b y + c, and so for y'. */
static bool fit_square(const cogpu_gcp *points, uint32_t count, bool unwraps,
                       const double pixels_to_square[9], const double crs_to_square[9],
                       double matrix[9]) {
    equations in = {.unknowns = 8, .sides = 1};
    for (uint32_t i = 0; i < count; i++) {
        sample of = sample_of(points, i, false, unwraps);
        double x = of.from[0], y = of.from[1], *to = of.to;
        apply_matrix(pixels_to_square, &x, &y);
        apply_matrix(crs_to_square, &to[0], &to[1]);
        double first[] = {x, y, 1, 0, 0, 0, -x * to[0], -y * to[0]};
        double second[] = {0, 0, 0, x, y, 1, -x * to[1], -y * to[1]};
        add_observation(&in, first, &to[0]);
        add_observation(&in, second, &to[1]);
    }
    if (!solve_equations(&in))
        return false;
    for (int i = 0; i < 8; i++)
        matrix[i] = in.right[i][0];
    matrix[8] = 1;
    return true;
}

static bool fit_projective(cogpu_gcp_model *made, const cogpu_gcp *points, uint32_t count,
                           bool unwraps) {
    double pixels_in[9], pixels_out[9], crs_in[9], crs_out[9], square[9], back[9], step[9];
    made->is_projective = true;
    if (!fill_unit_square(points, count, true, unwraps, pixels_in, pixels_out) ||
        !fill_unit_square(points, count, false, unwraps, crs_in, crs_out) ||
        !fit_square(points, count, unwraps, pixels_in, crs_in, square) ||
        !invert_matrix(square, back))
        return false;
    multiply(square, pixels_in, step);
    multiply(crs_out, step, made->matrix);
    multiply(back, crs_in, step);
    multiply(pixels_out, step, made->inverse);
    return true;
}

/* ---- the model ----------------------------------------------------------------------------- */

static bool are_finite(const cogpu_gcp *points, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (!isfinite(points[i].column) || !isfinite(points[i].row) || !isfinite(points[i].x) ||
            !isfinite(points[i].y))
            return false;
    return true;
}

/* GDAL's rule: all points are within 10 degrees from the antimeridian, on both sides of it. */
static bool needs_unwrapping(const cogpu_gcp *points, uint32_t count) {
    bool has_east = false, has_west = false;
    for (uint32_t i = 0; i < count; i++) {
        if (fabs(fabs(points[i].x) - 180) > 10)
            return false;
        has_west |= points[i].x < 0;
        has_east |= points[i].x > 0;
    }
    return has_east && has_west;
}

static double mean_longitude(const cogpu_gcp *points, uint32_t count, bool unwraps) {
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += sample_of(points, i, false, unwraps).to[0];
    return sum / count;
}

static bool fit_model(cogpu_gcp_model *made, const cogpu_gcp *points, uint32_t count,
                      bool unwraps) {
    if (count == 2)
        return fit_upright(made, points, unwraps);
    if (count == 4 || count == 5)
        return fit_projective(made, points, count, unwraps);
    return fit_polynomials(&made->to_crs, points, count, false, unwraps) &&
           fit_polynomials(&made->to_pixel, points, count, true, unwraps);
}

cogpu_status cogpu_gcp_model_fit(const cogpu_gcp *points, uint32_t count, bool in_degrees,
                                 cogpu_gcp_model *model, cogpu_error *error) {
    *model = (cogpu_gcp_model){0};
    if (count < 2)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the source has one GCP alone; a transform needs two");
    if (!are_finite(points, count))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "a GCP of the source is not finite");
    model->is_unwrapped = in_degrees && needs_unwrapping(points, count);
    model->longitude = mean_longitude(points, count, model->is_unwrapped);
    if (!fit_model(model, points, count, model->is_unwrapped))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the GCPs of the source do not define a transform: too many of its %u "
                          "points are on a line or equal",
                          count);
    return COGPU_OK;
}

void cogpu_gcp_to_crs(const cogpu_gcp_model *model, size_t count, double *x, double *y) {
    for (size_t i = 0; i < count; i++) {
        if (model->is_projective)
            apply_matrix(model->matrix, &x[i], &y[i]);
        else
            apply_polynomials(&model->to_crs, &x[i], &y[i]);
    }
}

void cogpu_gcp_to_pixel(const cogpu_gcp_model *model, size_t count, double *x, double *y) {
    for (size_t i = 0; i < count; i++) {
        if (model->is_projective)
            apply_matrix(model->inverse, &x[i], &y[i]);
        else
            apply_polynomials(&model->to_pixel, &x[i], &y[i]);
    }
}
