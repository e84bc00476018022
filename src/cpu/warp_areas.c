/* Methods that use all source pixels of an area, over the tile of a unit. */
#include "cpu/warp_unit.h"

/* The pixels of an area that are in the source window, in the tile. */
struct tile_area {
    const struct warp_area *area;
    int64_t left, top; /* in the level */
    uint32_t width, height;
    size_t first; /* sample of the tile */
};

static struct tile_area area_in_tile(const struct warp_args *args, const struct warp_tile *tile,
                                     const struct warp_area *area) {
    struct tile_area in = {.area = area};
    in.left = begin_in_window(&area->across, args->x);
    in.top = begin_in_window(&area->down, args->y);
    int64_t right = end_in_window(&area->across, args->x, args->width);
    int64_t bottom = end_in_window(&area->down, args->y, args->height);
    if (right <= in.left || bottom <= in.top)
        return in;
    in.width = (uint32_t)(right - in.left);
    in.height = (uint32_t)(bottom - in.top);
    in.first = (size_t)(in.top - args->y - tile->top) * tile->width +
               (size_t)(in.left - args->x - tile->left);
    return in;
}

/* ---- means ---- */

/* mean_of_area, four columns at a time. Values and masks of invalid pixels are 0: they add nothing.
 */
static inline __attribute__((always_inline)) struct warp_result mean_of_tile(
    const struct warp_unit *unit, uint32_t method, const struct tile_area *in) {
    double sum = 0, weight = 0;
    for (uint32_t i = 0; i < in->width; i += LANES) {
        lanes lines = {0}, weights = {0}, values, masks;
        uint32_t count = in->width - i < LANES ? in->width - i : LANES;
        for (uint32_t j = 0; j < in->height; j++) {
            size_t at = in->first + (size_t)j * unit->tile.width + i;
            double covered = covered_part(&in->area->down, in->top + j);
            LOAD_LANES(values, unit->values + at);
            lines += (method == COGPU_RESAMPLE_RMS ? values * values : values) * covered;
            if (unit->tile.are_all_valid) {
                weights += covered;
            } else {
                LOAD_LANES(masks, unit->masks + at);
                weights += masks * covered;
            }
        }
        for (uint32_t k = 0; k < count; k++) {
            double part = covered_part(&in->area->across, in->left + i + k);
            sum += lines[k] * part;
            weight += weights[k] * part;
        }
    }
    return finish_area_mean(method, sum, weight);
}

/* ---- selections ---- */

/* Valid values in the order of rows. NaNs are counted apart. */
static uint32_t collect_values(struct warp_unit *unit, const struct tile_area *in, uint32_t *nans) {
    uint32_t count = 0;
    *nans = 0;
    for (uint32_t j = 0; j < in->height; j++)
        for (uint32_t i = 0; i < in->width; i++) {
            size_t at = in->first + (size_t)j * unit->tile.width + i;
            double value = unit->values[at];
            if (!unit->tile.are_all_valid && !unit->valid[at])
                continue;
            *nans += value != value;
            unit->candidates[count] = value + 0.0; /* -0 counts as 0 */
            count += value == value;
        }
    return count;
}

static struct warp_result extreme_of_tile(struct warp_unit *unit, uint32_t method,
                                          const struct tile_area *in) {
    uint32_t nans, count = collect_values(unit, in, &nans);
    const double *values = unit->candidates;
    bool is_min = method == COGPU_RESAMPLE_MIN;
    if (count == 0)
        return nans ? result_of_value(extreme_of_nans(method)) : no_result();
    double selected = values[0];
    for (uint32_t i = 1; i < count; i++)
        selected = (is_min ? values[i] < selected : values[i] > selected) ? values[i] : selected;
    return result_of_value(selected);
}

/* The value with `index` values before it in ascending order (Hoare's selection). */
static double select_value(double *values, int64_t count, int64_t index) {
    int64_t low = 0, high = count - 1;
    while (low < high) {
        double pivot = values[index];
        int64_t i = low, k = high;
        do {
            while (values[i] < pivot)
                i++;
            while (pivot < values[k])
                k--;
            if (i <= k) {
                double other = values[i];
                values[i++] = values[k];
                values[k--] = other;
            }
        } while (i <= k);
        low = k < index ? i : low;
        high = index < i ? k : high;
    }
    return values[index];
}

/* NaNs are the largest. */
static struct warp_result quantile_of_tile(struct warp_unit *unit, uint32_t method,
                                           const struct tile_area *in) {
    uint32_t nans, count = collect_values(unit, in, &nans);
    if (count + nans == 0)
        return no_result();
    uint32_t index = (uint32_t)quantile_index(method, count + nans);
    return result_of_value(index < count ? select_value(unit->candidates, count, index) : NAN);
}

/* A list of distinct values with their weights, in the order of their first occurrence. */
static struct warp_result mode_of_tile(const struct warp_args *args, struct warp_unit *unit,
                                       const struct tile_area *in) {
    bool compares_first = is_short_integer(args->working_type), is_found = false;
    uint32_t count = 0, mode = 0;
    for (uint32_t j = 0; j < in->height; j++)
        for (uint32_t i = 0; i < in->width; i++) {
            size_t at = in->first + (size_t)j * unit->tile.width + i;
            double value = unit->values[at];
            uint32_t k = 0;
            if (!unit->tile.are_all_valid && !unit->valid[at])
                continue;
            while (k < count && unit->candidates[k] != value &&
                   !(value != value && unit->candidates[k] != unit->candidates[k]))
                k++;
            bool is_new = k == count;
            if (is_new) {
                unit->candidates[count] = value;
                unit->weights[count++] = 0;
            }
            unit->weights[k] += (float)(covered_part(&in->area->across, in->left + i) *
                                        covered_part(&in->area->down, in->top + j));
            if (!is_found ? !compares_first || unit->weights[k] > 0
                          : unit->weights[k] > unit->weights[mode] && (compares_first || !is_new)) {
                mode = k;
                is_found = true;
            }
        }
    return is_found ? result_of_value(unit->candidates[mode]) : no_result();
}

static inline __attribute__((always_inline)) struct warp_result result_of_tile(
    const struct warp_args *args, struct warp_unit *unit, const struct tile_area *in) {
    switch (args->method) {
    case COGPU_RESAMPLE_AVERAGE:
        return mean_of_tile(unit, COGPU_RESAMPLE_AVERAGE, in);
    case COGPU_RESAMPLE_RMS:
        return mean_of_tile(unit, COGPU_RESAMPLE_RMS, in);
    case COGPU_RESAMPLE_MIN:
    case COGPU_RESAMPLE_MAX:
        return extreme_of_tile(unit, args->method, in);
    case COGPU_RESAMPLE_MODE:
        return mode_of_tile(args, unit, in);
    default:
        return quantile_of_tile(unit, args->method, in);
    }
}

BODY cogpu_warp_areas_body(const struct warp_args *args, struct warp_unit *unit) {
    EACH_UNIT_ROW(unit, j)
    EACH_UNIT_COLUMN(unit, i) {
        uint32_t at = j * UNIT_COLUMNS + i;
        struct warp_result result = no_result();
        if (unit->has_place[at]) {
            struct tile_area in = area_in_tile(args, &unit->tile, &unit->areas[at]);
            result = result_of_tile(args, unit, &in);
        }
        unit->results[at] = result.value;
        unit->is_found[at] = result.is_found;
    }
}
FOR_AVX2(extern, cogpu_warp_areas, (const struct warp_args *args, struct warp_unit *unit),
         (args, unit))
