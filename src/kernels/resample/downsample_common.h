/*
 * What the kernels of downsampling share: which samples of the result a thread computes, addresses,
 * validity. Included by the .cu files of this folder.
 *
 * Threads and samples. A task is COGPU_DOWNSAMPLE_THREADS items of a row by COGPU_DOWNSAMPLE_ROWS
 * rows of the result; a block of threads loops over tasks. A thread computes one item of each row:
 *
 *              item 0   1   2  ...  127 | 128 ...          tasks across, then down, then by band
 *      row 0   t0  t1  t2 ... t127      | next task
 *      row 1   t0  t1  t2 ... t127      |
 *      ...
 *
 * An item is a sample, or as many samples as a vector of 16 bytes yields (average kernels). Where
 * bands are interleaved by pixel, items of one pixel are its `unit` bands, so that neighbouring
 * threads load neighbouring bytes. Threads share nothing unless a kernel says so.
 *
 * Functions that take a `type` are inlined, and in most kernels it is a constant.
 */
#ifndef COGPU_KERNELS_RESAMPLE_DOWNSAMPLE_COMMON_H
#define COGPU_KERNELS_RESAMPLE_DOWNSAMPLE_COMMON_H

#include "kernels/resample/downsample_args.h"
#include "kernels/simt.h"
#include "pixel/select.h"

/* ---- work of a thread ---- */

struct downsample_item {
    uint32_t item; /* column of the result, or of vectors */
    uint32_t band, row, rows;
    bool is_idle;
};

DEVICE_FN struct downsample_item item_of_thread(const struct cogpu_downsample_args *args,
                                                uint64_t task) {
    uint32_t item = (uint32_t)(task % args->across) * COGPU_DOWNSAMPLE_THREADS + thread_index();
    uint64_t rest = task / args->across;
    uint32_t done = (uint32_t)(rest % args->down) * COGPU_DOWNSAMPLE_ROWS, left = args->rows - done;
    struct downsample_item mine = {
        item / args->unit, (uint32_t)(rest / args->down) + item % args->unit, args->first + done,
        left < COGPU_DOWNSAMPLE_ROWS ? left : COGPU_DOWNSAMPLE_ROWS, item >= args->items};
    return mine;
}

/* One band of source and result. */
struct band_view {
    const uint8_t *from;
    uint8_t *to;
    uint64_t empty;     /* the result where nothing is valid */
    bool is_alpha_band; /* and guards the others */
};

DEVICE_FN struct band_view view_of_band(const struct cogpu_downsample_args *args, uint32_t band) {
    bool is_alpha = band + 1 == args->alpha_band;
    struct band_view view = {args->from.data + (int64_t)band * args->from.stride_band,
                             args->to.data + (int64_t)band * args->to.stride_band,
                             is_alpha && !args->nodata.has_nodata ? 0 : args->nodata.empty,
                             is_alpha && !args->guard_is_mask};
    return view;
}

DEVICE_FN const uint8_t *source_at(const struct cogpu_downsample_args *args, const uint8_t *data,
                                   uint32_t x, uint32_t y) {
    return data + (int64_t)(y - args->from_first) * args->from.stride_y +
           (int64_t)x * args->from.stride_x;
}

DEVICE_FN uint8_t *target_at(const struct cogpu_downsample_args *args, const struct band_view *view,
                             uint32_t x, uint32_t y) {
    return view->to + (int64_t)(y - args->first) * args->to.stride_y +
           (int64_t)x * args->to.stride_x;
}

DEVICE_FN uint64_t load_source(const struct cogpu_downsample_args *args,
                               const struct band_view *view, uint32_t type, uint32_t x,
                               uint32_t y) {
    uint64_t sample = load_sample(source_at(args, view->from, x, y), sample_bytes(type));
    return type == COGPU_TYPE_U8 && args->is_mask && sample ? 255 : sample;
}

DEVICE_FN struct support column_support(const struct cogpu_downsample_args *args, uint32_t column) {
    return resampling_support(args->method, args->from_width, args->ratio_x, 0, column);
}

DEVICE_FN struct support row_support(const struct cogpu_downsample_args *args, uint32_t row) {
    return resampling_support(args->method, args->from_height, args->ratio_y, 0, row);
}

/* ---- validity ---- */

/* The weight that mask or alpha give a pixel; 0 makes it invalid. */
DEVICE_FN uint32_t weight_of_guard(const struct cogpu_downsample_args *args,
                                   const struct band_view *view, uint32_t type, uint32_t x,
                                   uint32_t y) {
    if (!args->guard.data)
        return 1;
    const uint8_t *guard = args->guard.data +
                           (int64_t)(y - args->from_first) * args->guard.stride_y +
                           (int64_t)x * args->guard.stride_x;
    return args->guard_is_mask ? *guard != 0
                               : alpha_weight(args->method, type, view->is_alpha_band,
                                              load_sample(guard, sample_bytes(type)));
}

DEVICE_FN bool is_valid(const struct cogpu_downsample_args *args, uint32_t type, uint64_t sample,
                        double value) {
    return resampling_is_valid(type, args->nodata.has_nodata, args->nodata.nodata, sample, value);
}

DEVICE_FN bool is_nan_result(uint64_t sample, uint32_t type) {
    double number = sample_to_double(type, sample);
    return sample_is_float(type) && number != number;
}

DEVICE_FN uint64_t finish_sample(const struct cogpu_downsample_args *args, uint32_t type,
                                 double result, double weight, uint64_t empty) {
    struct resampling_nodata nodata = args->nodata;
    nodata.empty = empty;
    return finish_result(type, &nodata, result, weight);
}

/* The average of a square of two by two: upper and lower pair of samples. */
DEVICE_FN uint64_t average_square(const struct cogpu_downsample_args *args, uint32_t type,
                                  uint32_t column, const uint64_t *upper, const uint64_t *lower) {
    uint32_t in_vector = type == COGPU_TYPE_F32 ? 4 : 2;
    bool by_columns = column < args->to_width - args->to_width % in_vector;
    if (type == COGPU_TYPE_U8 || type == COGPU_TYPE_U16)
        return square_average_integer((uint32_t)upper[0], (uint32_t)upper[1], (uint32_t)lower[0],
                                      (uint32_t)lower[1]);
    if (type == COGPU_TYPE_F32)
        return float_to_sample(square_average_float(
            float_from_bits((uint32_t)upper[0]), float_from_bits((uint32_t)upper[1]),
            float_from_bits((uint32_t)lower[0]), float_from_bits((uint32_t)lower[1]), by_columns));
    double average = square_average_double(
        sample_to_double(type, upper[0]), sample_to_double(type, upper[1]),
        sample_to_double(type, lower[0]), sample_to_double(type, lower[1]), by_columns);
    return finish_sample(args, type, average, 1, 0);
}

#endif
