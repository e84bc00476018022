/*
 * Where a source of a VRT lies in a read, and at which level it is read. Arithmetic only.
 *
 * A placement is that of a read of the whole VRT, so that a pixel does not depend on the window in
 * which it is read. The steps are GDAL's:
 *
 *     target rect, clipped to the VRT  -->  part of the source rect, clipped to the source
 *     -->  every target pixel that this part touches  -->  the part, widened to these pixels
 */
#include "grid/vrt.h"

#include "base/resampling.h"

#include <math.h>

static const double TOLERANCE = 1e-3; /* of a pixel; GDAL's */

/* ---- placement ---- */

/* One axis of a placement. */
struct placed_axis {
    uint32_t first, end; /* target pixels */
    double start, step;  /* source position of the first one, and source pixels a target pixel */
    uint32_t low, high;  /* source pixels that the source rect touches */
};

static double snap(double value) {
    return fabs(value - round(value)) < TOLERANCE ? round(value) : value;
}

static uint32_t limit_to(double value, uint32_t most) {
    return value > 0 ? (value < most ? (uint32_t)value : most) : 0;
}

static bool place_side(double from, double from_size, double to, double to_size, uint32_t size,
                       uint32_t whole, uint32_t buffer, struct placed_axis *span) {
    const double scale = from_size / to_size, zoom = (double)buffer / whole;
    double begin = fmax(to, 0), end = fmin(to + to_size, whole);
    *span = (struct placed_axis){0};
    if (!(begin < end))
        return false;
    begin = fmax((begin - to) * scale + from, 0);
    end = fmin((end - to) * scale + from, size);
    if (!(begin < end))
        return false;
    double left = ((begin - from) / scale + to) * zoom, right = ((end - from) / scale + to) * zoom;
    span->first = limit_to(floor(left + TOLERANCE), buffer);
    span->end = limit_to(ceil(right - TOLERANCE), buffer);
    if (span->first >= span->end)
        return false;
    double start = begin - (left - span->first) / zoom * scale;
    double length = end - begin + (left - span->first + span->end - right) / zoom * scale;
    /* GDAL's whole pixels: the begin before the part was widened, the length after that. */
    span->low = limit_to(floor(begin + TOLERANCE), size - 1);
    span->high = limit_to(ceil(begin + length - TOLERANCE), size);
    span->start = snap(start);
    span->step = snap(length) / (span->end - span->first);
    if (span->high <= span->low)
        span->high = span->low + 1;
    return span->step > 0;
}

void cogpu_vrt_place(const cogpu_vrt *vrt, const cogpu_vrt_source *source, uint32_t source_width,
                     uint32_t source_height, uint32_t to_width, uint32_t to_height,
                     cogpu_vrt_placement *placement) {
    cogpu_vrt_rect from = {0, 0, source_width, source_height}, to = from;
    struct placed_axis across, down;
    if (source->has_rects) {
        from = source->source;
        to = source->target;
    }
    *placement = (cogpu_vrt_placement){0};
    if (!place_side(from.x, from.width, to.x, to.width, source_width, vrt->width, to_width,
                    &across) ||
        !place_side(from.y, from.height, to.y, to.height, source_height, vrt->height, to_height,
                    &down))
        return;
    *placement = (cogpu_vrt_placement){.x0 = across.first,
                                       .y0 = down.first,
                                       .x1 = across.end,
                                       .y1 = down.end,
                                       .x = across.start,
                                       .y = down.start,
                                       .step_x = across.step,
                                       .step_y = down.step,
                                       .low_x = across.low,
                                       .low_y = down.low,
                                       .high_x = across.high,
                                       .high_y = down.high,
                                       .width = vrt->width,
                                       .height = vrt->height,
                                       .to_width = to_width,
                                       .to_height = to_height};
}

/* ---- levels ---- */

/* The resampling of the source in a read that asks for `method`. */
static cogpu_resampling used_method(const cogpu_vrt_source *source, cogpu_resampling method) {
    cogpu_resampling used = source->resampling ? source->resampling : method;
    return used ? used : COGPU_RESAMPLE_NEAREST;
}

uint32_t cogpu_vrt_choose_level(const cogpu_vrt_placement *placement,
                                const cogpu_vrt_source *source, cogpu_resampling method,
                                const cogpu_vrt_size *levels, uint32_t count) {
    const bool is_nearest = used_method(source, method) == COGPU_RESAMPLE_NEAREST;
    const double slack = 0.1, threshold = is_nearest ? 1.2 : 1.0;
    bool is_row = placement->y1 - placement->y0 == 1;
    double wanted =
        is_row || placement->step_x < placement->step_y ? placement->step_x : placement->step_y;
    double best = 1;
    uint32_t chosen = 0;
    if (source->kind == COGPU_VRT_AVERAGED) /* reads all pixels */
        return 0;
    for (uint32_t i = 1; i < count && fabs(wanted - best) >= slack; i++) {
        double ratio = fmin((double)levels[0].width / levels[i].width,
                            (double)levels[0].height / levels[i].height);
        if (ratio >= wanted * threshold + slack || ratio <= best)
            continue;
        best = ratio;
        chosen = i;
    }
    return chosen;
}

/* ---- rectangles ---- */

/* The span in pixels of a level. GDAL rounds the limits, not the positions. */
static void move_to_level(struct placed_axis *span, uint32_t full, uint32_t level) {
    if (full == level)
        return;
    double factor = (double)full / level;
    uint32_t low = limit_to(floor(span->low / factor + 0.5), level - 1);
    uint32_t size = limit_to(floor((span->high - span->low) / factor + 0.5), level - low);
    span->low = low;
    span->high = low + (size ? size : 1);
    span->start /= factor;
    span->step /= factor;
}

/* RasterIO sees no pixel beyond the source rect, but those in reach of a kernel. */
static void widen_by_kernel(cogpu_resampling method, const struct placed_axis *across,
                            const struct placed_axis *down, uint32_t level,
                            struct placed_axis *span) {
    const cogpu_resampling_row *row = cogpu_resampling_find(method);
    uint64_t factor = (uint64_t)floor(fmax(fmax(across->step, down->step), 1) + 0.5);
    uint64_t reach = row->kind == RESAMPLING_KERNEL ? (uint64_t)row->kernel_radius * factor : 0;
    span->low = span->low > reach ? span->low - (uint32_t)reach : 0;
    span->high = level - span->high > reach ? span->high + (uint32_t)reach : level;
}

static void set_limits(struct placed_axis *across, struct placed_axis *down, cogpu_vrt_size level,
                       cogpu_rectangle *rectangle) {
    widen_by_kernel(rectangle->method, across, down, level.width, across);
    widen_by_kernel(rectangle->method, across, down, level.height, down);
    rectangle->low_x = across->low;
    rectangle->low_y = down->low;
    rectangle->high_x = across->high;
    rectangle->high_y = down->high;
}

static bool clip_to_window(const struct placed_axis *span, uint32_t window, uint32_t window_size,
                           uint32_t *first, uint32_t *count, uint32_t *at) {
    uint64_t window_end = (uint64_t)window + window_size;
    uint32_t begin = span->first > window ? span->first : window;
    uint64_t end = span->end < window_end ? span->end : window_end;
    if (begin >= end)
        return false;
    *first = begin - span->first;
    *count = (uint32_t)(end - begin);
    *at = begin - window;
    return true;
}

static bool is_on_grid(const cogpu_rectangle *rectangle) {
    return rectangle->step_x == 1 && rectangle->step_y == 1 &&
           rectangle->x == floor(rectangle->x) && rectangle->y == floor(rectangle->y);
}

/* Of a side of an averaged source, whose size is `full`: it has full resolution. GDAL reads as many
 * pixels as there are in the side, rounded. */
static cogpu_rectangle_axis average_side(const struct placed_axis *span, double from,
                                         double from_size, double to, double to_size,
                                         uint32_t full) {
    const uint32_t pixels = span->end - span->first, most = full - span->low;
    const uint32_t count = limit_to(floor(pixels * span->step + 0.5), most);
    return (cogpu_rectangle_axis){.from = from,
                                  .from_size = from_size,
                                  .to = to,
                                  .to_size = to_size,
                                  .first = span->first,
                                  .origin = span->low,
                                  .count = count ? count : 1,
                                  .length = pixels * span->step};
}

static void set_averages(const cogpu_vrt_placement *placement, const cogpu_vrt_source *source,
                         cogpu_vrt_size full, const struct placed_axis *across,
                         const struct placed_axis *down, cogpu_rectangle *rectangle) {
    const cogpu_vrt_rect whole = {0, 0, full.width, full.height};
    const cogpu_vrt_rect from = source->has_rects ? source->source : whole;
    const cogpu_vrt_rect to = source->has_rects ? source->target : whole;
    rectangle->averages = true;
    rectangle->across = average_side(across, from.x, from.width, to.x, to.width, full.width);
    rectangle->across.pixels = placement->to_width;
    rectangle->across.whole = placement->width;
    rectangle->down = average_side(down, from.y, from.height, to.y, to.height, full.height);
    rectangle->down.pixels = placement->to_height;
    rectangle->down.whole = placement->height;
}

bool cogpu_vrt_rectangle(const cogpu_vrt_placement *placement, const cogpu_vrt_source *source,
                         cogpu_resampling method, cogpu_vrt_size full, cogpu_vrt_size level,
                         const cogpu_vrt_window *window, cogpu_rectangle *rectangle, uint32_t *x,
                         uint32_t *y) {
    struct placed_axis across = {placement->x0,     placement->x1,    placement->x,
                                 placement->step_x, placement->low_x, placement->high_x};
    struct placed_axis down = {placement->y0,     placement->y1,    placement->y,
                               placement->step_y, placement->low_y, placement->high_y};
    cogpu_resampling used = used_method(source, method);
    *rectangle = (cogpu_rectangle){.method = used, .high_x = level.width, .high_y = level.height};
    if (!clip_to_window(&across, window->x, window->width, &rectangle->to_x, &rectangle->width,
                        x) ||
        !clip_to_window(&down, window->y, window->height, &rectangle->to_y, &rectangle->height, y))
        return false;
    move_to_level(&across, full.width, level.width);
    move_to_level(&down, full.height, level.height);
    rectangle->x = across.start;
    rectangle->step_x = across.step;
    rectangle->y = down.start;
    rectangle->step_y = down.step;
    if (source->kind == COGPU_VRT_AVERAGED)
        set_averages(placement, source, full, &across, &down, rectangle);
    if (is_on_grid(rectangle) && !rectangle->averages) /* RasterIO copies then */
        rectangle->method = COGPU_RESAMPLE_NEAREST;
    if (!rectangle->averages && rectangle->method != COGPU_RESAMPLE_NEAREST)
        set_limits(&across, &down, level, rectangle);
    return true;
}

/* ---- sources ---- */

bool cogpu_vrt_source_is_simple(const cogpu_vrt_source *source, cogpu_resampling method) {
    if (source->kind == COGPU_VRT_AVERAGED || used_method(source, method) != COGPU_RESAMPLE_NEAREST)
        return false;
    for (uint32_t i = 0; i < source->band_count; i++) {
        const cogpu_sample_rule *rule = source->bands[i].rule;
        if (rule && (rule->scaling || rule->lut_count || rule->palette_component ||
                     (rule->has_nodata && rule->nodata != floor(rule->nodata))))
            return false;
    }
    return true;
}
