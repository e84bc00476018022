/*
 * Layers of a mosaic into one raster (plan/composite.h), with the bits of cpu/composite.c. A thread
 * works on a sample of a column in COGPU_COMPOSITE_ROWS rows; neighbouring threads on neighbouring
 * columns, so that loads of a warp are contiguous. Threads share nothing.
 *
 *   layer          valid       pixels
 *   | a  b  c |    1  0  1     replace: FIRST, LAST, MIN, MAX     a or what was there
 *                              collect: MEAN, MEDIAN, COUNT       sums, stack and counts grow
 *                              finish                             pixels of these
 */
#include "kernels/composite/composite_args.h"
#include "kernels/simt.h"
#include "pixel/composite.h"

/* One sample of the launch: its places in planes, layer and raster. */
struct composite_place {
    uint64_t plane, layer;
    uint8_t *to;
};

DEVICE_FN struct composite_place place_at(const struct cogpu_composite_args *args, uint32_t band,
                                          uint32_t row, uint32_t column) {
    struct composite_place place;
    place.plane = band * args->plane + (uint64_t)(args->y + row) * args->width + args->x + column;
    place.layer = ((uint64_t)band * args->rows + row) * args->columns + column;
    place.to = args->data + (int64_t)band * args->stride_band + (int64_t)row * args->stride_y +
               (int64_t)column * args->stride_x;
    return place;
}

DEVICE_FN void begin_sample(const struct cogpu_composite_args *args,
                            const struct composite_place *place, uint32_t band) {
    store_sample(place->to, load_sample(args->fill[band], args->size), args->size);
    if (args->valid)
        args->valid[place->plane] = 0;
    if (args->sums)
        args->sums[place->plane] = 0;
    if (args->counts)
        args->counts[place->plane] = 0;
}

DEVICE_FN void replace_sample(const struct cogpu_composite_args *args,
                              const struct composite_place *place, uint32_t band) {
    bool was_valid = args->valid[place->plane] != 0;
    (void)band;
    if (!args->layer_valid[place->layer] || (args->method == COGPU_COMPOSITE_FIRST && was_valid))
        return;
    uint64_t sample = load_sample(args->layer + place->layer * args->size, args->size);
    uint64_t old = args->method == COGPU_COMPOSITE_MIN || args->method == COGPU_COMPOSITE_MAX
                       ? load_sample(place->to, args->size)
                       : 0;
    if (composite_replaces(args->method, args->type, was_valid, old, sample))
        store_sample(place->to, sample, args->size);
    args->valid[place->plane] = UINT8_MAX;
}

/* Where sample `k` of a pixel's stack is. */
DEVICE_FN uint8_t *stack_at(const struct cogpu_composite_args *args,
                            const struct composite_place *place, uint32_t k) {
    return args->stack + (k * (args->bands * args->plane) + place->plane) * args->size;
}

DEVICE_FN void collect_sample(const struct cogpu_composite_args *args,
                              const struct composite_place *place, uint32_t band) {
    (void)band;
    if (!args->layer_valid[place->layer])
        return;
    args->valid[place->plane] = UINT8_MAX;
    uint32_t count = args->counts[place->plane];
    if (args->method != COGPU_COMPOSITE_COUNT) {
        uint64_t sample = load_sample(args->layer + place->layer * args->size, args->size);
        if (composite_is_nan(args->type, sample))
            return;
        if (args->method == COGPU_COMPOSITE_MEAN)
            args->sums[place->plane] += sample_to_double(args->type, sample);
        else if (count < args->depth)
            store_sample(stack_at(args, place, count), sample, args->size);
        else
            return;
    }
    args->counts[place->plane] = count + 1;
}

DEVICE_FN void finish_sample(const struct cogpu_composite_args *args,
                             const struct composite_place *place, uint32_t band) {
    (void)band;
    if (!args->valid[place->plane])
        return;
    uint32_t count = args->counts[place->plane];
    uint64_t sample;
    if (args->method == COGPU_COMPOSITE_MEDIAN) {
        const struct composite_stack stack = {
            stack_at(args, place, 0), args->bands * args->plane * args->size, count, args->type};
        sample = composite_median(&stack);
    } else if (args->method == COGPU_COMPOSITE_MEAN) {
        sample = composite_mean(args->type, args->sums[place->plane], count);
    } else {
        sample = composite_number_to_sample(args->type, count);
    }
    store_sample(place->to, sample, args->size);
}

/* Calls `step` for each sample of the launch. */
#define COMPOSITE_KERNEL(name, step)                                                               \
    KERNEL(name, struct cogpu_composite_args, struct nothing_shared, COGPU_COMPOSITE_THREADS, 8) { \
        const uint64_t tasks = (uint64_t)args->across * args->down * args->bands;                  \
        (void)shared;                                                                              \
        for (uint64_t task = block_index(); task < tasks; task += block_count()) {                 \
            uint32_t column = (uint32_t)(task % args->across) * thread_count() + thread_index();   \
            uint32_t first = (uint32_t)(task / args->across % args->down) * COGPU_COMPOSITE_ROWS;  \
            uint32_t band = (uint32_t)(task / args->across / args->down);                          \
            for (uint32_t row = first;                                                             \
                 row < first + COGPU_COMPOSITE_ROWS && row < args->rows && column < args->columns; \
                 row++) {                                                                          \
                const struct composite_place place = place_at(args, band, row, column);            \
                step(args, &place, band);                                                          \
            }                                                                                      \
        }                                                                                          \
    }
COMPOSITE_KERNEL(cogpu_kernel_composite_begin, begin_sample)
COMPOSITE_KERNEL(cogpu_kernel_composite_replace, replace_sample)
COMPOSITE_KERNEL(cogpu_kernel_composite_collect, collect_sample)
COMPOSITE_KERNEL(cogpu_kernel_composite_finish, finish_sample)
