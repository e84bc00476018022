/* See mapping.h. */
#include "grid/mapping.h"

#include "base/math.h"
#include "grid/affine.h"

#include <math.h>
#include <string.h>

enum { BATCH_POINTS = 2048 };

/* Scales of both pixels become a part of the affine transform. */
static void complete_affine(cogpu_mapping *mapping) {
    double to_source[6], *affine = mapping->affine;
    if (!cogpu_transformer_is_affine(mapping->transformer, to_source))
        return;
    mapping->is_affine = !mapping->is_forward || invert_affine(to_source, affine);
    if (!mapping->is_forward)
        memcpy(affine, to_source, sizeof to_source);
    affine[0] *= mapping->to_x, affine[3] *= mapping->to_y;
    affine[1] *= mapping->from_x * mapping->to_x, affine[2] *= mapping->from_y * mapping->to_x;
    affine[4] *= mapping->from_x * mapping->to_y, affine[5] *= mapping->from_y * mapping->to_y;
}

cogpu_mapping cogpu_mapping_to_source(const cogpu_transformer *transformer,
                                      const cogpu_placement *source, const cogpu_placement *target,
                                      uint32_t level_width, uint32_t level_height, bool of_corners,
                                      cogpu_pool *pool) {
    cogpu_mapping mapping = {.transformer = transformer,
                             .pool = pool,
                             .width = target->width,
                             .height = target->height,
                             .from_x = 1,
                             .from_y = 1,
                             .to_x = (double)level_width / source->width,
                             .to_y = (double)level_height / source->height,
                             .offset = of_corners ? 0 : 0.5,
                             .last_x = target->width - (of_corners ? 0 : 0.75),
                             .last_y = target->height - (of_corners ? 0 : 0.75),
                             .to_width = level_width,
                             .to_height = level_height};
    complete_affine(&mapping);
    return mapping;
}

cogpu_mapping cogpu_mapping_to_target(const cogpu_transformer *transformer,
                                      const cogpu_placement *source, const cogpu_placement *target,
                                      uint32_t level_width, uint32_t level_height,
                                      cogpu_pool *pool) {
    cogpu_mapping mapping = {.transformer = transformer,
                             .pool = pool,
                             .width = level_width,
                             .height = level_height,
                             .is_forward = true,
                             .from_x = (double)source->width / level_width,
                             .from_y = (double)source->height / level_height,
                             .to_x = 1,
                             .to_y = 1,
                             .last_x = level_width,
                             .last_y = level_height,
                             .to_width = target->width,
                             .to_height = target->height};
    complete_affine(&mapping);
    return mapping;
}

static void transform_batch(const cogpu_mapping *mapping, size_t count, double *x, double *y) {
    for (size_t i = 0; i < count; i++)
        x[i] *= mapping->from_x, y[i] *= mapping->from_y;
    if (mapping->is_forward)
        cogpu_to_target(mapping->transformer, count, x, y);
    else
        cogpu_to_source(mapping->transformer, count, x, y);
    for (size_t i = 0; i < count; i++) {
        x[i] *= mapping->to_x, y[i] *= mapping->to_y;
        if (!isfinite(x[i]) || !isfinite(y[i]))
            x[i] = y[i] = NAN;
    }
}

typedef struct shared_points {
    const cogpu_mapping *mapping;
    size_t count;
    double *x, *y;
} shared_points;

static void transform_part(void *argument, uint32_t worker, uint64_t index) {
    const shared_points *points = argument;
    const size_t first = (size_t)index * BATCH_POINTS;
    (void)worker;
    transform_batch(points->mapping, min_size(points->count - first, BATCH_POINTS),
                    points->x + first, points->y + first);
}

void cogpu_mapping_transform(const cogpu_mapping *mapping, size_t count, double *x, double *y) {
    shared_points points = {mapping, count, x, y};
    cogpu_pool *pool = mapping->pool;
    if (mapping->is_affine)
        for (size_t i = 0; i < count; i++)
            apply_affine(mapping->affine, &x[i], &y[i]);
    else if (!pool || count < 4 * BATCH_POINTS)
        transform_batch(mapping, count, x, y);
    else
        cogpu_pool_share(pool, (count + BATCH_POINTS - 1) / BATCH_POINTS, transform_part, &points);
}
