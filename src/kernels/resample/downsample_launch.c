/*
 * Launches downsampling: for the bands, for the mask, which is downsampled as one more band, and to
 * zero floats that mask or alpha of the result call invalid.
 */
#include "base/resampling.h"
#include "kernels/resample/downsample_args.h"

#include "base/checked.h"
#include "base/math.h"
#include "cpu/downsample_kernels.h"

#include <stdlib.h>
#include <string.h>

#define DECLARE_AVERAGE(name, type)                                                                \
    extern const cogpu_kernel cogpu_kernel_downsample_average_##name;
#define DECLARE_WEIGHTED(name, type)                                                               \
    extern const cogpu_kernel cogpu_kernel_downsample_weighted_##name;
COGPU_DOWNSAMPLE_AVERAGE_TYPES(DECLARE_AVERAGE)
COGPU_DOWNSAMPLE_WEIGHTED_TYPES(DECLARE_WEIGHTED)
extern const cogpu_kernel cogpu_kernel_downsample_nearest, cogpu_kernel_downsample_select,
    cogpu_kernel_downsample_select_many, cogpu_kernel_downsample_zero_masked,
    cogpu_kernel_downsample_weighted_any;
_Static_assert(sizeof(struct cogpu_downsample_args) <= 512,
               "too much for the arguments of a launch");

/* Arguments of one call. */
struct downsample_launch {
    cogpu_gpu *gpu;
    cogpu_gpu_stream *stream;
    const cogpu_downsample *downsample;
    const cogpu_raster *from, *from_mask, *to, *to_mask;
    uint32_t from_first, first;
};

/* ---- arguments ---- */

static struct cogpu_downsample_plane plane_of(const cogpu_raster *raster, uint64_t skip) {
    return (struct cogpu_downsample_plane){.data = (uint8_t *)raster->data + skip,
                                           .stride_band = raster->stride_band,
                                           .stride_y = raster->stride_y,
                                           .stride_x = raster->stride_x};
}

static struct cogpu_downsample_plane alpha_of(const cogpu_raster *raster, uint32_t alpha_band) {
    struct cogpu_downsample_plane plane = plane_of(raster, 0);
    plane.data += (int64_t)(alpha_band - 1) * raster->stride_band;
    return plane;
}

static struct cogpu_downsample_args common_arguments(const struct downsample_launch *call) {
    const cogpu_downsample *downsample = call->downsample;
    return (struct cogpu_downsample_args){
        .ratio_x = (double)downsample->from_width / downsample->to_width,
        .ratio_y = (double)downsample->from_height / downsample->to_height,
        .from_width = downsample->from_width,
        .from_height = downsample->from_height,
        .to_width = downsample->to_width,
        .to_height = downsample->to_height,
        .from_first = call->from_first,
        .first = call->first,
        .rows = call->to->height,
        .method = downsample->method};
}

static void set_nodata(const cogpu_downsample *downsample, struct cogpu_downsample_args *args) {
    args->nodata = cogpu_downsample_nodata(downsample, (cogpu_type)args->type);
    if (!args->nodata.has_nodata && cogpu_downsample_has_guard(downsample) &&
        downsample->method == COGPU_RESAMPLE_MODE)
        args->nodata.empty = 0;
}

/* A mask goes before alpha. */
static void set_guard(const struct downsample_launch *call, struct cogpu_downsample_args *args) {
    const cogpu_downsample *downsample = call->downsample;
    args->alpha_band = downsample->alpha_band;
    args->guard_is_mask = downsample->has_mask;
    if (cogpu_downsample_has_guard(downsample))
        args->guard = downsample->has_mask ? plane_of(call->from_mask, 0)
                                           : alpha_of(call->from, downsample->alpha_band);
}

static struct cogpu_downsample_args arguments_of_part(const struct downsample_launch *call,
                                                      uint32_t part) {
    const cogpu_downsample *downsample = call->downsample;
    struct cogpu_downsample_args args = common_arguments(call);
    args.type = cogpu_downsample_part_type(downsample);
    args.size = (uint32_t)cogpu_type_bytes((cogpu_type)args.type);
    args.from = plane_of(call->from, part * args.size);
    args.to = plane_of(call->to, part * args.size);
    if (downsample->method == COGPU_RESAMPLE_NEAREST)
        return args;
    set_nodata(downsample, &args);
    set_guard(call, &args);
    return args;
}

/* The mask is its own guard; with mode the majority decides on it, too. */
static struct cogpu_downsample_args arguments_of_mask(const struct downsample_launch *call) {
    struct cogpu_downsample_args args = common_arguments(call);
    args.type = COGPU_TYPE_U8;
    args.size = 1;
    args.is_mask = args.guard_is_mask = true;
    args.from = plane_of(call->from_mask, 0);
    args.to = plane_of(call->to_mask, 0);
    if (cogpu_downsample_has_guard(call->downsample) &&
        call->downsample->method != COGPU_RESAMPLE_MODE)
        args.guard = args.from;
    return args;
}

/* ---- launches ---- */

/* Pairs of columns in a vector. */
static uint32_t pairs_per_vector(const struct cogpu_downsample_args *args) {
    enum { VECTOR = 16 };
    return VECTOR / 2 / args->size;
}

static const cogpu_kernel *average_kernel_of(cogpu_type type) {
#define AVERAGE_CASE(name, type)                                                                   \
    case type:                                                                                     \
        return &cogpu_kernel_downsample_average_##name;
    switch (type) {
        COGPU_DOWNSAMPLE_AVERAGE_TYPES(AVERAGE_CASE)
    default:
        return NULL;
    }
}

static bool can_average_pairs(const struct cogpu_downsample_args *args) {
    return args->method == COGPU_RESAMPLE_AVERAGE && average_kernel_of((cogpu_type)args->type) &&
           !args->guard.data && args->from_width == 2 * (uint64_t)args->to_width &&
           args->to_width >= pairs_per_vector(args) && args->from.stride_x == args->size &&
           args->to.stride_x == args->size;
}

/* The most samples of a support, except of bilinear and cubic. */
static uint64_t widest_support(uint32_t from, uint32_t to) {
    return from % to ? from / to + UINT64_C(2) : from / to;
}

/* More candidates than a thread holds? */
static bool has_many_candidates(const struct cogpu_downsample_args *args) {
    return (args->method == COGPU_RESAMPLE_MODE || args->method == COGPU_RESAMPLE_MEDIAN) &&
           widest_support(args->from_width, args->to_width) *
                   widest_support(args->from_height, args->to_height) >
               COGPU_DOWNSAMPLE_CANDIDATES;
}

static const cogpu_kernel *weighted_kernel_of(cogpu_type type) {
#define WEIGHTED_CASE(name, type)                                                                  \
    case type:                                                                                     \
        return &cogpu_kernel_downsample_weighted_##name;
    switch (type) {
        COGPU_DOWNSAMPLE_WEIGHTED_TYPES(WEIGHTED_CASE)
    default:
        return &cogpu_kernel_downsample_weighted_any;
    }
}

static const cogpu_kernel *select_kernel(const struct cogpu_downsample_args *args) {
    if (args->method == COGPU_RESAMPLE_NEAREST)
        return &cogpu_kernel_downsample_nearest;
    if (has_many_candidates(args))
        return &cogpu_kernel_downsample_select_many;
    if (cogpu_resampling_find((cogpu_resampling)args->method)->kind == RESAMPLING_SELECT)
        return &cogpu_kernel_downsample_select;
    return can_average_pairs(args) ? average_kernel_of((cogpu_type)args->type)
                                   : weighted_kernel_of((cogpu_type)args->type);
}

/* Bands interleaved by pixel: neighbouring threads handle bands of one pixel. */
static bool is_pixel_interleaved(const struct cogpu_downsample_args *args, uint32_t bands) {
    return llabs(args->from.stride_band) < llabs(args->from.stride_x) &&
           (uint64_t)args->to_width * bands <= UINT32_MAX;
}

static cogpu_status launch_bands(const struct downsample_launch *call, const cogpu_kernel *kernel,
                                 struct cogpu_downsample_args *args, uint32_t bands,
                                 cogpu_error *error) {
    bool is_many = kernel == &cogpu_kernel_downsample_select_many;
    uint32_t samples =
        can_average_pairs(args) ? pairs_per_vector(args) : 1; /* of a row, by one thread */
    args->unit = samples == 1 && is_pixel_interleaved(args, bands) ? bands : 1;
    args->items = (uint32_t)divide_up(args->to_width, samples) * args->unit;
    args->across =
        is_many ? args->items : (uint32_t)divide_up(args->items, COGPU_DOWNSAMPLE_THREADS);
    args->down = is_many ? args->rows : (uint32_t)divide_up(args->rows, COGPU_DOWNSAMPLE_ROWS);
    args->tasks = (uint64_t)args->across * args->down * (bands / args->unit);
    uint32_t blocks = (uint32_t)min_u64(args->tasks, INT32_MAX);
    return call->gpu->calls->launch(call->gpu, kernel, blocks, args, call->stream, error);
}

static bool needs_zeros(const cogpu_downsample *downsample,
                        const struct cogpu_downsample_args *args) {
    return cogpu_downsample_has_guard(downsample) && downsample->method != COGPU_RESAMPLE_MODE &&
           sample_is_float(args->type) && !args->nodata.has_nodata;
}

static cogpu_status zero_masked(const struct downsample_launch *call,
                                struct cogpu_downsample_args *args, cogpu_error *error) {
    const cogpu_downsample *downsample = call->downsample;
    args->guard = downsample->has_mask ? plane_of(call->to_mask, 0)
                                       : alpha_of(call->to, downsample->alpha_band);
    args->guard_size = downsample->has_mask ? 1 : args->size;
    return launch_bands(call, &cogpu_kernel_downsample_zero_masked, args, downsample->bands, error);
}

cogpu_status cogpu_gpu_downsample(cogpu_gpu *gpu, const cogpu_downsample *downsample,
                                  const cogpu_raster *from, const cogpu_raster *from_mask,
                                  uint32_t from_first, uint32_t first, const cogpu_raster *to,
                                  const cogpu_raster *to_mask, cogpu_gpu_stream *stream,
                                  cogpu_error *error) {
    struct downsample_launch call = {gpu, stream,  downsample, from, from_mask,
                                     to,  to_mask, from_first, first};
    TRY(cogpu_downsample_check(downsample, error));
    if (to->height == 0)
        return COGPU_OK;
    if (downsample->has_mask) {
        struct cogpu_downsample_args args = arguments_of_mask(&call);
        TRY(launch_bands(&call, select_kernel(&args), &args, 1, error));
    }
    for (uint32_t part = 0; part < cogpu_downsample_parts(downsample); part++) {
        struct cogpu_downsample_args args = arguments_of_part(&call, part);
        TRY(launch_bands(&call, select_kernel(&args), &args, downsample->bands, error));
        if (needs_zeros(downsample, &args))
            TRY(zero_masked(&call, &args, error));
    }
    return COGPU_OK;
}
