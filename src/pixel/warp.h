/*
 * One pixel of a warp: all bands of a target pixel, out of the source. A thread of a kernel calls
 * warp_pixel; so does the CPU, where it has no faster loop with the same bits.
 *
 *     position --> accepted? --> nearest pixel valid? --> each band: taps, weights --> sample
 *
 * The rules are those of GDAL's warper (GDAL 3.12), with one chunk for the whole target. A tap is a
 * source pixel that a kernel weighs. Taps outside the source and invalid ones (nodata of the band,
 * mask 0, alpha 0) are left out; the weights of the others are normalised. A pixel has no result,
 * in any band, if its nearest source pixel is invalid: by mask or alpha, or nodata in all bands.
 */
#ifndef COGPU_PIXEL_WARP_H
#define COGPU_PIXEL_WARP_H

#include "pixel/warp_area.h"
#include "pixel/warp_args.h"
#include "pixel/warp_sum.h"

/* ---- two by two, four by four ---- */

PIXEL_FN struct warp_result finish_mean(const struct warp_args *args, const struct warp_mean *mean,
                                        double least_weight, double tolerance) {
    if (!(mean->weight >= least_weight) || is_transparent(args, mean->density, mean->weight))
        return no_result();
    bool is_normal = fabs(mean->weight - 1) <= tolerance;
    return result_of_value(is_normal ? mean->sum : mean->sum / mean->weight);
}

PIXEL_FN struct warp_result bilinear_result(const struct warp_args *args, uint32_t from,
                                            uint32_t band, struct warp_point point) {
    double left = pixel_left_of(point.x), top = pixel_left_of(point.y);
    double weight_x = linear_weight(point.x, left), weight_y = linear_weight(point.y, top);
    int64_t x = (int64_t)left - args->x, y = (int64_t)top - args->y;
    struct warp_mean mean = {0, 0, 0};
    struct warp_tap taps[4];
    bool are_all_valid = true;
    for (uint32_t i = 0; i < 4; i++) {
        double weight = (i % 2 ? 1 - weight_x : weight_x) * (i / 2 ? 1 - weight_y : weight_y);
        if (!load_tap_if_there(args, from, band, x + i % 2, y + i / 2, &taps[i])) {
            are_all_valid = false;
            continue;
        }
        mean.sum += taps[i].value * weight;
        mean.weight += weight;
        mean.density += (double)taps[i].density * weight;
    }
    if (!are_all_valid)
        return finish_mean(args, &mean, 1e-5, 0);
    if (is_transparent(args, mean.density, mean.weight))
        return no_result();
    return result_of_value(weigh_two(weigh_two(taps[0].value, taps[1].value, weight_x),
                                     weigh_two(taps[2].value, taps[3].value, weight_x), weight_y));
}

/* Down each column, then across. With a tap outside or invalid: bilinear. */
PIXEL_FN struct warp_result cubic_result(const struct warp_args *args, uint32_t from, uint32_t band,
                                         struct warp_point point) {
    double left = pixel_left_of(point.x), top = pixel_left_of(point.y);
    int64_t x = (int64_t)left - args->x - 1, y = (int64_t)top - args->y - 1;
    double across[4], down[4], columns[4], densities[4];
    if (!is_in_window(args, x, y) || !is_in_window(args, x + 3, y + 3))
        return bilinear_result(args, from, band, point);
    cubic_weights(point.x, left, across);
    cubic_weights(point.y, top, down);
    for (uint32_t i = 0; i < 4; i++) {
        double values[4], density[4];
        for (uint32_t j = 0; j < 4; j++) {
            struct warp_tap tap;
            if (!load_tap(args, from, band, x + i, y + j, &tap))
                return bilinear_result(args, from, band, point);
            values[j] = tap.value;
            density[j] = (double)tap.density;
        }
        columns[i] = weigh_four(values, down);
        densities[i] = args->alpha_band ? weigh_four(density, down) : 1;
    }
    if (is_transparent(args, weigh_four(densities, across), 1))
        return no_result();
    return result_of_value(weigh_four(columns, across));
}

/* ---- convolution ---- */

enum { KEPT_WEIGHTS = 16 }; /* of a column: further ones are computed again for each column */

/* Taps along an axis that are in the window: origin + first to origin + last. */
struct warp_taps {
    int64_t origin; /* in the window */
    int32_t first, last;
    double delta, scale;
};

PIXEL_FN double weight_of_tap(uint32_t method, const struct warp_taps *taps, int32_t i) {
    return filter_weight(method, (i - taps->delta) * taps->scale);
}

PIXEL_FN struct warp_taps taps_of_axis(const struct warp_filter *filter, double position,
                                       uint32_t window, uint32_t size) {
    double left = pixel_left_of(position);
    struct warp_taps taps;
    taps.origin = (int64_t)left - window;
    taps.delta = position - 0.5 - left;
    taps.scale = filter->scale;
    int32_t first = filter->first + ((filter->first - taps.delta) * taps.scale < -filter->reach);
    int32_t last = filter->last - ((filter->last - taps.delta) * taps.scale > filter->reach);
    taps.first = taps.origin + first < 0 ? (int32_t)-taps.origin : first;
    taps.last = taps.origin + last >= size ? (int32_t)((int64_t)size - 1 - taps.origin) : last;
    return taps;
}

PIXEL_FN uint64_t count_taps(const struct warp_taps *taps) {
    return (uint64_t)((int64_t)taps->last - taps->first + 1);
}

/* Lanczos needs half of its taps valid, rounded down, as in GDAL 3.12. */
PIXEL_FN bool has_enough_taps(uint32_t method, uint64_t valid, uint64_t all) {
    return method != COGPU_RESAMPLE_LANCZOS || valid >= all / 2;
}

/* Weights that add up to nearly 1 are not normalised, as in GDAL. Its weights of a lanczos kernel
 * that grows have a factor, so they always are. */
PIXEL_FN struct warp_result finish_convolution(const struct warp_args *args, uint32_t method,
                                               const struct warp_mean *mean) {
    bool grows = args->across.scale < 1 || args->down.scale < 1;
    return finish_mean(args, mean, 1e-6, method == COGPU_RESAMPLE_LANCZOS && grows ? 0 : 1e-5);
}

/* Sums down each column, then across. */
PIXEL_FN struct warp_result convolved_result(const struct warp_args *args, uint32_t method,
                                             uint32_t from, uint32_t band,
                                             struct warp_point point) {
    struct warp_taps across = taps_of_axis(&args->across, point.x, args->x, args->width);
    struct warp_taps down = taps_of_axis(&args->down, point.y, args->y, args->height);
    struct warp_mean mean = {0, 0, 0};
    uint64_t valid = 0;
    double weights[KEPT_WEIGHTS] = {0};
    for (int32_t k = 0; k < KEPT_WEIGHTS && down.first + k <= down.last; k++)
        weights[k] = weight_of_tap(method, &down, down.first + k);
    for (int32_t i = across.first; i <= across.last; i++) {
        double weight_x = weight_of_tap(method, &across, i);
        struct warp_mean column = {0, 0, 0};
        for (int32_t j = down.first; j <= down.last; j++) {
            int32_t k = j - down.first;
            double weight = k < KEPT_WEIGHTS ? weights[k] : weight_of_tap(method, &down, j);
            struct warp_tap tap;
            if (!load_tap(args, from, band, across.origin + i, down.origin + j, &tap))
                continue;
            valid++;
            column.sum += tap.value * weight;
            column.weight += weight;
            column.density += (double)tap.density * weight;
        }
        mean.sum += column.sum * weight_x;
        mean.weight += column.weight * weight_x;
        mean.density += column.density * weight_x;
    }
    if (!has_enough_taps(method, valid, count_taps(&across) * count_taps(&down)))
        return no_result();
    return finish_convolution(args, method, &mean);
}

/* ---- areas ---- */

struct warp_area {
    struct warp_extent across, down; /* in the level; first and end in the window */
};

/* The area between two corners. False if there is none in the source. */
PIXEL_FN bool area_of_corners(const struct warp_args *args, struct warp_point a,
                              struct warp_point b, struct warp_area *area) {
    if (!(a.x == a.x && b.x == b.x && a.y == a.y && b.y == b.y))
        return false;
    return find_extent(a.x, b.x, args->level_width, args->margin_x, args->is_round,
                       &area->across) &&
           find_extent(a.y, b.y, args->level_height, args->margin_y, false, &area->down);
}

/* The area that a pixel of the grid covers. */
PIXEL_FN bool find_area(const struct warp_args *args, uint32_t x, uint32_t y,
                        struct warp_area *area) {
    return area_of_corners(args, point_of_pixel(&args->lattice, x, y, 0, 0),
                           point_of_pixel(&args->lattice, x, y, 1, 1), area);
}

PIXEL_FN int64_t begin_in_window(const struct warp_extent *extent, uint32_t window) {
    return extent->first > window ? extent->first : window;
}

PIXEL_FN int64_t end_in_window(const struct warp_extent *extent, uint32_t window, uint32_t size) {
    return extent->end < (int64_t)window + size ? extent->end : (int64_t)window + size;
}

/* Whether an area reaches over the last column to the first ones. The window has all columns. */
PIXEL_FN bool goes_round(const struct warp_args *args, const struct warp_area *area) {
    return area->across.end > args->level_width;
}

PIXEL_FN int64_t end_of_columns(const struct warp_args *args, const struct warp_area *area) {
    return goes_round(args, area) ? area->across.end
                                  : end_in_window(&area->across, args->x, args->width);
}

/* A loop over the pixels of an area that are in the window: `column` and `row` in the level. */
#define EACH_ROW_OF_AREA(args, area, row)                                                          \
    for (int64_t row = begin_in_window(&(area)->down, (args)->y);                                  \
         row < end_in_window(&(area)->down, (args)->y, (args)->height); row++)
#define EACH_COLUMN_OF_AREA(args, area, column)                                                    \
    for (int64_t column = begin_in_window(&(area)->across, (args)->x);                             \
         column < end_of_columns(args, area); column++)

PIXEL_FN bool load_tap_of_area(const struct warp_args *args, uint32_t from, uint32_t band,
                               int64_t column, int64_t row, struct warp_tap *tap) {
    column = column < args->level_width ? column : column - args->level_width;
    return load_tap(args, from, band, column - args->x, row - args->y, tap);
}

PIXEL_FN struct warp_result finish_area_mean(uint32_t method, double sum, double weight) {
    if (!(weight > 0))
        return no_result();
    return result_of_value(method == COGPU_RESAMPLE_RMS ? sqrt(sum / weight) : sum / weight);
}

/* Sums down each column, then across. */
PIXEL_FN struct warp_result mean_of_area(const struct warp_args *args, uint32_t method,
                                         uint32_t from, uint32_t band,
                                         const struct warp_area *area) {
    double sum = 0, weight = 0;
    EACH_COLUMN_OF_AREA(args, area, column) {
        double line = 0, line_weight = 0, part = covered_part(&area->across, column);
        EACH_ROW_OF_AREA(args, area, row) {
            struct warp_tap tap;
            double covered = covered_part(&area->down, row);
            if (!load_tap_of_area(args, from, band, column, row, &tap))
                continue;
            line += (method == COGPU_RESAMPLE_RMS ? tap.value * tap.value : tap.value) * covered;
            line_weight += covered;
        }
        sum += line * part;
        weight += line_weight * part;
    }
    return finish_area_mean(method, sum, weight);
}

/* Order of samples: pixel/select.h. All NaNs are one key, the largest. */
PIXEL_FN uint64_t area_key(uint32_t type, uint64_t sample) {
    if (sample_is_float(type) && sample_is_nan(type, sample))
        return UINT64_MAX >> (64 - 8 * sample_bytes(type));
    return sample_to_key(type, sample);
}

/* Of NaNs alone, the minimum is the largest number and the maximum the least, as in GDAL: infinite
 * as a float. */
PIXEL_FN double extreme_of_nans(uint32_t method) {
    return method == COGPU_RESAMPLE_MIN ? 0x1.fffffffffffffp1023 : -0x1.fffffffffffffp1023;
}

/* NaN is neither the least nor the largest. */
PIXEL_FN struct warp_result extreme_of_area(const struct warp_args *args, uint32_t method,
                                            uint32_t from, uint32_t band,
                                            const struct warp_area *area) {
    uint64_t selected = 0, key;
    bool is_found = false, is_nan = false;
    struct warp_tap tap;
    EACH_ROW_OF_AREA(args, area, row)
    EACH_COLUMN_OF_AREA(args, area, column) {
        if (!load_tap_of_area(args, from, band, column, row, &tap))
            continue;
        if (tap.value != tap.value) {
            is_nan = true;
            continue;
        }
        key = sample_to_key(from, tap.sample);
        if (!is_found || (method == COGPU_RESAMPLE_MIN ? key < selected : key > selected))
            selected = key;
        is_found = true;
    }
    if (!is_found && is_nan)
        return result_of_value(extreme_of_nans(method));
    return is_found ? result_of_selected(from, key_to_sample(from, selected)) : no_result();
}

/* How many valid keys of an area are below `limit`. */
PIXEL_FN uint64_t count_keys_below(const struct warp_args *args, uint32_t from, uint32_t band,
                                   const struct warp_area *area, uint64_t limit) {
    uint64_t count = 0;
    struct warp_tap tap;
    EACH_ROW_OF_AREA(args, area, row)
    EACH_COLUMN_OF_AREA(args, area, column)
    count +=
        load_tap_of_area(args, from, band, column, row, &tap) && area_key(from, tap.sample) < limit;
    return count;
}

PIXEL_FN uint64_t count_valid(const struct warp_args *args, uint32_t from, uint32_t band,
                              const struct warp_area *area) {
    uint64_t count = 0;
    struct warp_tap tap;
    EACH_ROW_OF_AREA(args, area, row)
    EACH_COLUMN_OF_AREA(args, area, column)
    count += load_tap_of_area(args, from, band, column, row, &tap);
    return count;
}

/* Finds the key from its highest bit down: the largest with at most `index` keys below it. */
PIXEL_FN struct warp_result quantile_of_area(const struct warp_args *args, uint32_t method,
                                             uint32_t from, uint32_t band,
                                             const struct warp_area *area) {
    uint64_t count = count_valid(args, from, band, area), key = 0;
    if (count == 0)
        return no_result();
    uint64_t index = quantile_index(method, count);
    for (uint32_t bit = 8 * sample_bytes(from); bit-- > 0;) {
        uint64_t higher = key | UINT64_C(1) << bit;
        if (count_keys_below(args, from, band, area, higher) <= index)
            key = higher;
    }
    return result_of_selected(from, key_to_sample(from, key));
}

/* Pixels of an area that have one key, up to a pixel. */
struct key_share {
    float weight; /* the part of the area that they cover, in float as in GDAL */
    uint32_t count;
    uint64_t first; /* sample: -0 and 0 have one key, and so have all NaNs */
};

PIXEL_FN struct key_share share_of_key(const struct warp_args *args, uint32_t from, uint32_t band,
                                       const struct warp_area *area, uint64_t key,
                                       int64_t last_column, int64_t last_row) {
    struct key_share share = {0, 0, 0};
    struct warp_tap tap;
    EACH_ROW_OF_AREA(args, area, row) {
        double part = covered_part(&area->down, row);
        if (row > last_row)
            break;
        EACH_COLUMN_OF_AREA(args, area, column) {
            if (row == last_row && column > last_column)
                break;
            if (!load_tap_of_area(args, from, band, column, row, &tap) ||
                area_key(from, tap.sample) != key)
                continue;
            share.first = share.count ? share.first : tap.sample;
            share.weight += (float)(covered_part(&area->across, column) * part);
            share.count++;
        }
    }
    return share;
}

/* The value whose weight exceeds that of the mode so far becomes the mode. But with types of more
 * than 16 bits GDAL does not compare a value when it occurs for the first time. */
PIXEL_FN struct warp_result mode_of_area(const struct warp_args *args, uint32_t from, uint32_t band,
                                         const struct warp_area *area) {
    bool compares_first = is_short_integer(args->working_type), is_found = false;
    uint64_t mode = 0, selected = 0;
    float most = 0;
    struct warp_tap tap;
    EACH_ROW_OF_AREA(args, area, row)
    EACH_COLUMN_OF_AREA(args, area, column) {
        if (!load_tap_of_area(args, from, band, column, row, &tap))
            continue;
        uint64_t key = area_key(from, tap.sample);
        struct key_share share = share_of_key(args, from, band, area, key, column, row);
        bool is_mode = is_found && key == mode;
        bool is_more = is_found ? share.weight > most && (compares_first || share.count > 1)
                                : !compares_first || share.weight > 0;
        if (!is_mode && !is_more)
            continue;
        selected = share.first;
        mode = key;
        most = share.weight;
        is_found = true;
    }
    return is_found ? result_of_selected(from, selected) : no_result();
}

PIXEL_FN struct warp_result area_result(const struct warp_args *args, uint32_t method,
                                        uint32_t from, uint32_t band,
                                        const struct warp_area *area) {
    switch (method) {
    case COGPU_RESAMPLE_AVERAGE:
    case COGPU_RESAMPLE_RMS:
        return mean_of_area(args, method, from, band, area);
    case COGPU_RESAMPLE_MIN:
    case COGPU_RESAMPLE_MAX:
        return extreme_of_area(args, method, from, band, area);
    case COGPU_RESAMPLE_MODE:
        return mode_of_area(args, from, band, area);
    default:
        return quantile_of_area(args, method, from, band, area);
    }
}

/* ---- sums ---- */

/* The box of source pixels, in the level, that may reach into a pixel of the grid. */
struct warp_box {
    int64_t left, top, right, bottom; /* exclusive */
};

PIXEL_FN struct warp_box box_of_pixel(const struct warp_args *args, uint32_t x, uint32_t y) {
    double left = INFINITY, top = INFINITY, right = -INFINITY, bottom = -INFINITY;
    double window_right = (double)args->x + args->width;
    double window_bottom = (double)args->y + args->height;
    struct warp_box box = {0, 0, 0, 0};
    for (uint32_t i = 0; i < 4; i++) {
        struct warp_point corner = point_of_pixel(&args->lattice, x, y, i % 2, i / 2);
        left = fmin(left, corner.x);
        right = fmax(right, corner.x);
        top = fmin(top, corner.y);
        bottom = fmax(bottom, corner.y);
    }
    if (args->is_round && right - left > 0.5 * args->level_width) { /* over the seam */
        left = 0;
        right = args->level_width;
    }
    /* A pixel more on each side: edges may be curved. Clamped before they become integers. */
    left = fmax(floor(left) - 1, (double)args->x);
    top = fmax(floor(top) - 1, (double)args->y);
    right = fmin(ceil(right) + 1, window_right);
    bottom = fmin(ceil(bottom) + 1, window_bottom);
    if (left < right && top < bottom) {
        box.left = (int64_t)left;
        box.top = (int64_t)top;
        box.right = (int64_t)right;
        box.bottom = (int64_t)bottom;
    }
    return box;
}

/* A source pixel, at its place in the level, in the target grid. */
PIXEL_FN struct warp_quad quad_of_pixel(const struct warp_args *args, uint32_t x, uint32_t y) {
    struct warp_quad quad;
    quad.corners[0] = point_of_pixel(&args->forward, x, y, 0, 0);
    quad.corners[1] = point_of_pixel(&args->forward, x, y, 1, 0);
    quad.corners[2] = point_of_pixel(&args->forward, x, y, 1, 1);
    quad.corners[3] = point_of_pixel(&args->forward, x, y, 0, 1);
    return quad;
}

/* Of pixel (x, y) of the grid. *density becomes the mean density of what contributes. */
PIXEL_FN struct warp_result sum_of_pixel(const struct warp_args *args, uint32_t from, uint32_t band,
                                         uint32_t x, uint32_t y, float *density) {
    struct warp_box box = box_of_pixel(args, x, y);
    struct warp_mean mean = {0, 0, 0};
    for (int64_t row = box.top; row < box.bottom; row++)
        for (int64_t column = box.left; column < box.right; column++) {
            struct warp_quad quad = quad_of_pixel(args, (uint32_t)column, (uint32_t)row);
            double part = part_in_pixel(&quad, x, y);
            struct warp_tap tap;
            if (part == 0 || !load_tap_of_area(args, from, band, column, row, &tap))
                continue;
            mean.sum += tap.value * part;
            mean.weight += part;
            mean.density += (double)tap.density * part;
        }
    if (!(mean.weight > 0) || is_transparent(args, mean.density, mean.weight))
        return no_result();
    *density = (float)(mean.density / mean.weight);
    return result_of_value(mean.sum);
}

/* ---- a pixel ---- */

PIXEL_FN bool is_area_method(uint32_t method) {
    return method != COGPU_RESAMPLE_NEAREST && method != COGPU_RESAMPLE_BILINEAR &&
           method != COGPU_RESAMPLE_CUBIC && method != COGPU_RESAMPLE_CUBICSPLINE &&
           method != COGPU_RESAMPLE_LANCZOS && method != COGPU_RESAMPLE_SUM;
}

/* Where a pixel of the target lies in the source. */
struct warp_place {
    struct warp_point point; /* in the level */
    int64_t x, y;            /* nearest pixel, in the window */
    struct warp_area area;   /* of area methods, in place of the above */
};

/* Accepts or refuses a position, and finds its nearest pixel. */
PIXEL_FN bool find_nearest(const struct warp_args *args, struct warp_place *place) {
    struct warp_point *point = &place->point;
    if (args->clamps) {
        point->x = clamp_to_axis(point->x, args->level_width);
        point->y = clamp_to_axis(point->y, args->level_height);
    }
    if (!is_in_axis(point->x, args->level_width) || !is_in_axis(point->y, args->level_height))
        return false;
    place->x = nearest_in_axis(point->x, args->level_width) - args->x;
    place->y = nearest_in_axis(point->y, args->level_height) - args->y;
    return is_in_window(args, place->x, place->y);
}

/* `x`, `y`: a pixel of the grid. False if no band has a result. */
PIXEL_FN bool find_place(const struct warp_args *args, uint32_t method, uint32_t from, uint32_t x,
                         uint32_t y, struct warp_place *place) {
    if (method == COGPU_RESAMPLE_SUM)
        return true;
    if (is_area_method(method))
        return find_area(args, x, y, &place->area);
    place->point = point_of_pixel(&args->lattice, x, y, 0, 0);
    return find_nearest(args, place) && is_pixel_valid(args, from, place->x, place->y);
}

PIXEL_FN struct warp_result nearest_result(const struct warp_args *args, uint32_t from,
                                           uint32_t band, const struct warp_place *place) {
    struct warp_tap tap;
    return load_tap(args, from, band, place->x, place->y, &tap) ? result_of_sample(from, tap.sample)
                                                                : no_result();
}

PIXEL_FN struct warp_result result_at_place(const struct warp_args *args, uint32_t method,
                                            uint32_t from, uint32_t band,
                                            const struct warp_place *place) {
    if (method == COGPU_RESAMPLE_NEAREST)
        return nearest_result(args, from, band, place);
    if (is_area_method(method))
        return area_result(args, method, from, band, &place->area);
    if (!args->has_four_taps)
        return convolved_result(args, method, from, band, place->point);
    return method == COGPU_RESAMPLE_CUBIC ? cubic_result(args, from, band, place->point)
                                          : bilinear_result(args, from, band, place->point);
}

/* Alpha is not resampled: it is that of the nearest pixel; full for area methods. */
PIXEL_FN float density_at_place(const struct warp_args *args, uint32_t method, uint32_t from,
                                const struct warp_place *place) {
    return is_area_method(method) || method == COGPU_RESAMPLE_SUM || !args->alpha_band
               ? 1
               : source_density(args, from, place->x, place->y);
}

/* All bands of the pixel at (column, row) of the target window. Callers pass method and from_type
 * of the arguments as constants, if they can. */
PIXEL_FN void warp_pixel(const struct warp_args *args, uint32_t method, uint32_t from,
                         uint32_t column, uint32_t row) {
    uint32_t x = args->target_x + column, y = args->target_y + row;
    struct warp_place place;
    memset(&place, 0, sizeof place);
    bool has_place = find_place(args, method, from, x, y, &place), is_found = false;
    float density = has_place ? density_at_place(args, method, from, &place) : 0;
    for (uint32_t band = 0; band < args->bands; band++) {
        if (band + 1 == args->alpha_band)
            continue;
        struct warp_result result = no_result();
        uint64_t bits = 0;
        if (has_place)
            result = method == COGPU_RESAMPLE_SUM
                         ? sum_of_pixel(args, from, band, x, y, &density)
                         : result_at_place(args, method, from, band, &place);
        if (result.is_found)
            bits = finish_sample_of_band(args, from, &args->rules[band], &result);
        store_sample_of_band(args, band, column, row, result.is_found, bits);
        is_found |= result.is_found;
    }
    if (args->alpha_band)
        store_sample_of_band(args, args->alpha_band - 1, column, row,
                             is_found && (double)density >= LEAST_BAND_DENSITY,
                             density_to_alpha(args->to_type, density));
}

#endif
