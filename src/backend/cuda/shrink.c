/*
 * Takes a step of a pyramid and rasters on the device, hands on to the kernels of cuda_shrink.cu
 * what they have to know, and launches them: for the bands, for the mask, which is shrunk as one
 * more band, and to blank what mask or alpha of the result say is invalid.
 */
#include "backend/cuda/cuda_shrink.h"

#include "backend/cpu/cpu_shrink_kernel.h"
#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

#define AVERAGE_OF(name, type) extern const cogpu_kernel cogpu_kernel_average_##name;
#define WEIGH_OF(name, type)   extern const cogpu_kernel cogpu_kernel_weigh_##name;
COGPU_SHRINK_TYPES(AVERAGE_OF)
COGPU_SHRINK_WEIGHED(WEIGH_OF)
extern const cogpu_kernel cogpu_kernel_shrink_nearest, cogpu_kernel_shrink_choose,
    cogpu_kernel_shrink_poll, cogpu_kernel_shrink_blank, cogpu_kernel_weigh_any;
_Static_assert(sizeof(struct cogpu_shrink_args) <= 512, "too much for the arguments of a launch");

/* What the call is about. */
struct task {
    cogpu_gpu *gpu;
    cogpu_gpu_stream *stream;
    const cogpu_shrink *shrink;
    const cogpu_raster *from, *from_mask, *to, *to_mask;
    uint32_t from_first, first;
};

static bool has_guard(const cogpu_shrink *shrink) {
    bool is_blind = shrink->method == COGPU_NEAREST ||
                    (shrink->method == COGPU_MODE && shrink->type == COGPU_U8);
    return !is_blind && (shrink->has_mask || shrink->alpha_band);
}

/* ---- what is shrunk ---- */

static struct cogpu_shrink_plane plane_of(const cogpu_raster *raster, uint64_t skip) {
    return (struct cogpu_shrink_plane){.data = (uint8_t *)raster->data + skip,
                                       .stride_band = raster->stride_band,
                                       .stride_y = raster->stride_y,
                                       .stride_x = raster->stride_x};
}

static struct cogpu_shrink_plane alpha_of(const cogpu_raster *raster, uint32_t alpha_band) {
    struct cogpu_shrink_plane plane = plane_of(raster, 0);
    plane.data += (int64_t)(alpha_band - 1) * raster->stride_band;
    return plane;
}

static struct cogpu_shrink_args args_of(const struct task *task) {
    const cogpu_shrink *shrink = task->shrink;
    return (struct cogpu_shrink_args){.ratio_x = (double)shrink->from_width / shrink->to_width,
                                      .ratio_y = (double)shrink->from_height / shrink->to_height,
                                      .from_width = shrink->from_width,
                                      .from_height = shrink->from_height,
                                      .to_width = shrink->to_width,
                                      .to_height = shrink->to_height,
                                      .from_first = task->from_first,
                                      .first = task->first,
                                      .rows = task->to->height,
                                      .method = shrink->method};
}

static void set_marks(const cogpu_shrink *shrink, struct cogpu_shrink_args *args) {
    cogpu_shrink_marks marks;
    cogpu_shrink_mark(shrink, (cogpu_type)args->type, &marks);
    args->has_nodata = marks.has_nodata;
    memcpy(&args->nodata, marks.nodata, sizeof args->nodata);
    memcpy(&args->beside, marks.beside, sizeof args->beside);
    if (marks.has_nodata || !has_guard(shrink) || shrink->method != COGPU_MODE)
        memcpy(&args->none, marks.none, sizeof args->none);
}

/* Mask goes before alpha. */
static void set_guard(const struct task *task, struct cogpu_shrink_args *args) {
    const cogpu_shrink *shrink = task->shrink;
    args->alpha_band = shrink->alpha_band;
    args->guard_is_mask = shrink->has_mask;
    if (has_guard(shrink))
        args->guard = shrink->has_mask ? plane_of(task->from_mask, 0)
                                       : alpha_of(task->from, shrink->alpha_band);
}

/* Complex samples are pairs, whose parts are shrunk one by one, unless they are taken as they are.
 */
static uint32_t parts_of(const cogpu_shrink *shrink) {
    return shrink->type >= COGPU_CI16 && shrink->method != COGPU_NEAREST ? 2 : 1;
}

static struct cogpu_shrink_args args_of_part(const struct task *task, uint32_t part) {
    const cogpu_shrink *shrink = task->shrink;
    struct cogpu_shrink_args args = args_of(task);
    args.type = parts_of(shrink) == 1        ? shrink->type
                : shrink->type == COGPU_CF32 ? COGPU_F32
                                             : COGPU_F64;
    args.size = (uint32_t)cogpu_type_bytes((cogpu_type)args.type);
    args.from = plane_of(task->from, part * args.size);
    args.to = plane_of(task->to, part * args.size);
    if (shrink->method == COGPU_NEAREST)
        return args;
    set_marks(shrink, &args);
    set_guard(task, &args);
    return args;
}

/* The mask guards itself, but with mode the majority decides on it, too. */
static struct cogpu_shrink_args args_of_mask(const struct task *task) {
    struct cogpu_shrink_args args = args_of(task);
    args.type = COGPU_U8;
    args.size = 1;
    args.is_mask = args.guard_is_mask = true;
    args.from = plane_of(task->from_mask, 0);
    args.to = plane_of(task->to_mask, 0);
    if (has_guard(task->shrink) && task->shrink->method != COGPU_MODE)
        args.guard = args.from;
    return args;
}

/* ---- launches ---- */

/* Pairs of columns, side by side in memory, that a vector holds. */
static uint32_t pairs_of(const struct cogpu_shrink_args *args) {
    enum { VECTOR = 16 };
    return VECTOR / 2 / args->size;
}

static const cogpu_kernel *average_kernel_of(cogpu_type type) {
#define AVERAGE_CASE(name, type)                                                                   \
    case type:                                                                                     \
        return &cogpu_kernel_average_##name;
    switch (type) {
        COGPU_SHRINK_TYPES(AVERAGE_CASE)
    default:
        return NULL;
    }
}

static bool is_of_pairs(const struct cogpu_shrink_args *args) {
    return args->method == COGPU_AVERAGE && average_kernel_of((cogpu_type)args->type) &&
           !args->guard.data && args->from_width == 2 * (uint64_t)args->to_width &&
           args->to_width >= pairs_of(args) && args->from.stride_x == args->size &&
           args->to.stride_x == args->size;
}

/* Samples that one is made of at most, unless by a kernel. */
static uint64_t widest_reach(uint32_t from, uint32_t to) {
    return from % to ? from / to + UINT64_C(2) : from / to;
}

/* Are votes on a sample more than a thread holds? */
static bool is_polled(const struct cogpu_shrink_args *args) {
    return (args->method == COGPU_MODE || args->method == COGPU_MEDIAN) &&
           widest_reach(args->from_width, args->to_width) *
                   widest_reach(args->from_height, args->to_height) >
               COGPU_SHRINK_VOTES;
}

static const cogpu_kernel *weigh_kernel_of(cogpu_type type) {
#define WEIGH_CASE(name, type)                                                                     \
    case type:                                                                                     \
        return &cogpu_kernel_weigh_##name;
    switch (type) {
        COGPU_SHRINK_WEIGHED(WEIGH_CASE)
    default:
        return &cogpu_kernel_weigh_any;
    }
}

static const cogpu_kernel *kernel_of(const struct cogpu_shrink_args *args) {
    if (args->method == COGPU_NEAREST)
        return &cogpu_kernel_shrink_nearest;
    if (is_polled(args))
        return &cogpu_kernel_shrink_poll;
    if (args->method >= COGPU_MODE)
        return &cogpu_kernel_shrink_choose;
    return is_of_pairs(args) ? average_kernel_of((cogpu_type)args->type)
                             : weigh_kernel_of((cogpu_type)args->type);
}

/* Bands that lie side by side are best taken so. */
static bool is_chunky(const struct cogpu_shrink_args *args, uint32_t bands) {
    return llabs(args->from.stride_band) < llabs(args->from.stride_x) &&
           (uint64_t)args->to_width * bands <= UINT32_MAX;
}

static cogpu_status launch(const struct task *task, const cogpu_kernel *kernel,
                           struct cogpu_shrink_args *args, uint32_t bands, cogpu_error *error) {
    bool is_poll = kernel == &cogpu_kernel_shrink_poll;
    uint32_t samples = is_of_pairs(args) ? pairs_of(args) : 1; /* that a thread makes in a row */
    args->unit = samples == 1 && is_chunky(args, bands) ? bands : 1;
    args->items = (uint32_t)divide_up(args->to_width, samples) * args->unit;
    args->across = is_poll ? args->items : (uint32_t)divide_up(args->items, COGPU_SHRINK_THREADS);
    args->down = is_poll ? args->rows : (uint32_t)divide_up(args->rows, COGPU_SHRINK_ROWS);
    args->tasks = (uint64_t)args->across * args->down * (bands / args->unit);
    uint32_t blocks = args->tasks < INT32_MAX ? (uint32_t)args->tasks : INT32_MAX;
    return task->gpu->calls->launch(task->gpu, kernel, blocks, args, task->stream, error);
}

static bool is_blanked(const cogpu_shrink *shrink, const struct cogpu_shrink_args *args) {
    bool is_float = args->type >= COGPU_F16 && args->type <= COGPU_F64;
    return has_guard(shrink) && shrink->method != COGPU_MODE && is_float && !args->has_nodata;
}

static cogpu_status blank(const struct task *task, struct cogpu_shrink_args *args,
                          cogpu_error *error) {
    const cogpu_shrink *shrink = task->shrink;
    args->guard =
        shrink->has_mask ? plane_of(task->to_mask, 0) : alpha_of(task->to, shrink->alpha_band);
    args->guard_size = shrink->has_mask ? 1 : args->size;
    return launch(task, &cogpu_kernel_shrink_blank, args, shrink->bands, error);
}

cogpu_status cogpu_gpu_shrink(cogpu_gpu *gpu, const cogpu_shrink *shrink, const cogpu_raster *from,
                              const cogpu_raster *from_mask, uint32_t from_first, uint32_t first,
                              const cogpu_raster *to, const cogpu_raster *to_mask,
                              cogpu_gpu_stream *stream, cogpu_error *error) {
    struct task task = {gpu, stream, shrink, from, from_mask, to, to_mask, from_first, first};
    TRY(cogpu_shrink_check(shrink, error));
    if (to->height == 0)
        return COGPU_OK;
    if (shrink->has_mask) {
        struct cogpu_shrink_args args = args_of_mask(&task);
        TRY(launch(&task, kernel_of(&args), &args, 1, error));
    }
    for (uint32_t part = 0; part < parts_of(shrink); part++) {
        struct cogpu_shrink_args args = args_of_part(&task, part);
        TRY(launch(&task, kernel_of(&args), &args, shrink->bands, error));
        if (is_blanked(shrink, &args))
            TRY(blank(&task, &args, error));
    }
    return COGPU_OK;
}
