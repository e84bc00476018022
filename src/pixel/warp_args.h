/*
 * What the methods of a warp share: its arguments, source samples and their validity, and how a
 * result is stored. pixel/warp.h has the rules.
 */
#ifndef COGPU_PIXEL_WARP_ARGS_H
#define COGPU_PIXEL_WARP_ARGS_H

#include "pixel/warp_kernel.h"
#include "pixel/warp_position.h"
#include "pixel/warp_sample.h"

/* Bands of a raster. */
struct warp_plane {
    uint8_t *data; /* NULL: there is none */
    int64_t stride_band, stride_y, stride_x;
};

struct warp_rule {
    struct warp_nodata nodata; /* of the source */
    double avoided;            /* nodata of the target, which valid results must not equal */
    uint64_t fill;             /* bits of a sample of the target without a result */
    bool avoids;
};

/* Arguments of a warp: plan/warp.h, prepared by cogpu_warp_prepare. Without pointers to host memory
 * only, so that it can be copied to a device, where `rules` are there too. */
struct warp_args {
    struct warp_lattice lattice, forward;          /* `forward` for sums only */
    struct warp_plane source, mask, target, valid; /* mask and valid may be absent */
    const struct warp_rule *rules;                 /* one for each band */
    struct warp_filter across, down;               /* of convolutions */
    double margin_x, margin_y;                     /* of areas: extent_margin */
    uint32_t method, from_type, to_type, working_type, bands;
    uint32_t x, y, width, height; /* the source window in its level */
    uint32_t level_width, level_height;
    uint32_t target_x, target_y, target_width, target_height; /* the target window in its grid */
    uint32_t alpha_band;                                      /* from 1; 0: none */
    bool clamps;
    bool is_round;      /* the first column of the level lies beside the last; the window has all */
    bool has_four_taps; /* bilinear and cubic that do not grow: two or four taps along an axis */
    bool all_bands_match; /* a pixel is invalid if all bands but alpha are nodata */
};

/* ---- source samples ---- */

struct warp_tap {
    uint64_t sample;
    double value;
    float density; /* 1 without alpha */
};

PIXEL_FN const uint8_t *plane_at(const struct warp_plane *plane, uint32_t band, int64_t x,
                                 int64_t y) {
    return plane->data + (int64_t)band * plane->stride_band + y * plane->stride_y +
           x * plane->stride_x;
}

PIXEL_FN double source_value(const struct warp_args *args, uint32_t from, uint32_t band, int64_t x,
                             int64_t y) {
    return sample_to_double(from, load_bits(from, plane_at(&args->source, band, x, y)));
}

PIXEL_FN float source_density(const struct warp_args *args, uint32_t from, int64_t x, int64_t y) {
    return args->alpha_band
               ? alpha_density(from, source_value(args, from, args->alpha_band - 1, x, y))
               : 1;
}

#define LEAST_DENSITY 1e-9 /* of a valid pixel */

/* A pixel of the window. False if it is invalid in this band. */
PIXEL_FN bool load_tap(const struct warp_args *args, uint32_t from, uint32_t band, int64_t x,
                       int64_t y, struct warp_tap *tap) {
    tap->sample = load_bits(from, plane_at(&args->source, band, x, y));
    tap->value = sample_to_double(from, tap->sample);
    tap->density = 1;
    if (args->mask.data && *plane_at(&args->mask, 0, x, y) == 0)
        return false;
    if (args->alpha_band) {
        tap->density = source_density(args, from, x, y);
        if ((double)tap->density < LEAST_DENSITY)
            return false;
    }
    return !matches_nodata(args->rules[band].nodata, tap->value);
}

PIXEL_FN bool is_in_window(const struct warp_args *args, int64_t x, int64_t y) {
    return x >= 0 && y >= 0 && x < args->width && y < args->height;
}

PIXEL_FN bool load_tap_if_there(const struct warp_args *args, uint32_t from, uint32_t band,
                                int64_t x, int64_t y, struct warp_tap *tap) {
    return is_in_window(args, x, y) && load_tap(args, from, band, x, y, tap);
}

/* Whether a pixel of the window is valid in at least one band. */
PIXEL_FN bool is_pixel_valid(const struct warp_args *args, uint32_t from, int64_t x, int64_t y) {
    if (args->mask.data && *plane_at(&args->mask, 0, x, y) == 0)
        return false;
    if (args->alpha_band && (double)source_density(args, from, x, y) < LEAST_DENSITY)
        return false;
    if (!args->all_bands_match)
        return true;
    for (uint32_t band = 0; band < args->bands; band++)
        if (band + 1 != args->alpha_band &&
            !matches_nodata(args->rules[band].nodata, source_value(args, from, band, x, y)))
            return true;
    return false;
}

/* ---- results ---- */

/* Of a band. Nearest keeps a source sample as it is. */
struct warp_result {
    double value;
    uint64_t sample;
    bool is_sample, is_found;
};

PIXEL_FN struct warp_result no_result(void) {
    struct warp_result result = {0, 0, false, false};
    return result;
}

PIXEL_FN struct warp_result result_of_value(double value) {
    struct warp_result result = {value, 0, false, true};
    return result;
}

PIXEL_FN struct warp_result result_of_sample(uint32_t type, uint64_t sample) {
    struct warp_result result = {sample_to_double(type, sample), sample, true, true};
    return result;
}

/* Of a method that selects a source sample. Doubles hold all but 64-bit integers. */
PIXEL_FN struct warp_result result_of_selected(uint32_t type, uint64_t sample) {
    return type == COGPU_TYPE_I64 || type == COGPU_TYPE_U64
               ? result_of_sample(type, sample)
               : result_of_value(sample_to_double(type, sample));
}

/* The weighted mean of taps. */
struct warp_mean {
    double sum, weight, density;
};

#define LEAST_BAND_DENSITY 0.0001 /* of a result */

/* `is_transparent` as GDAL has it: taps may be valid, and their density too low all the same. */
PIXEL_FN bool is_transparent(const struct warp_args *args, double density, double weight) {
    return args->alpha_band && density / weight < LEAST_BAND_DENSITY;
}

PIXEL_FN uint64_t finish_sample_of_band(const struct warp_args *args, uint32_t from,
                                        const struct warp_rule *rule,
                                        const struct warp_result *result) {
    bool is_kept = result->is_sample && from == args->to_type;
    uint32_t working = is_kept ? from : args->working_type;
    uint64_t bits = is_kept ? result->sample : round_to_working(working, result->value);
    if (rule->avoids)
        bits = avoid_nodata(working, bits, rule->avoided);
    return working_to_target(working, args->to_type, bits);
}

PIXEL_FN void store_sample_of_band(const struct warp_args *args, uint32_t band, uint32_t column,
                                   uint32_t row, bool is_found, uint64_t bits) {
    store_bits(args->to_type, is_found ? bits : args->rules[band].fill,
               (uint8_t *)plane_at(&args->target, band, column, row));
    if (args->valid.data)
        *(uint8_t *)plane_at(&args->valid, band, column, row) = is_found ? 255 : 0;
}

#endif
