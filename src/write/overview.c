/*
 * Overviews without a writer, for programs that encode blocks elsewhere: the block grids of a
 * profile's levels, and windows of an overview, downsampled as a writer does.
 */
#include "write/writer.h"

cogpu_status cogpu_plan_level_layout(const cogpu_profile *profile, uint32_t level,
                                     cogpu_level_layout *layout, cogpu_error *error) {
    cogpu_write_plan plan;
    TRY(cogpu_plan_profile(profile, &plan, error));
    if (level >= plan.level_count)
        return cogpu_fail(error, COGPU_NOT_FOUND, "there is no level %u: the profile has %u", level,
                          plan.level_count);
    const cogpu_block_grid *grid = &plan.levels[level];
    const bool is_one_strip = !plan.is_tiled && grid->block_height > grid->height;
    *layout = (cogpu_level_layout){.struct_size = sizeof *layout,
                                   .levels = plan.level_count,
                                   .width = grid->width,
                                   .height = grid->height,
                                   .block_width = grid->block_width,
                                   .block_height = is_one_strip ? grid->height : grid->block_height,
                                   .blocks = (uint64_t)grid->across * grid->down * plan.planes,
                                   .max_bytes = cogpu_level_max_bytes(&plan, grid)};
    return COGPU_OK;
}

/* ---- overviews ----------------------------------------------------------------------------- */

static bool is_window_inside(const cogpu_window *window, const cogpu_block_grid *grid) {
    return window->width > 0 && window->height > 0 && window->x < grid->width &&
           window->y < grid->height && window->width <= grid->width - window->x &&
           window->height <= grid->height - window->y;
}

/* How the level is downsampled, and the source window in the level before it. */
static cogpu_status plan_window(const cogpu_profile *profile, uint32_t level,
                                const cogpu_window *window, cogpu_write_plan *plan,
                                cogpu_downsample *downsample, cogpu_window *source,
                                cogpu_error *error) {
    uint32_t right = 0, below = 0;
    TRY(cogpu_plan_profile(profile, plan, error));
    if (level == 0 || level >= plan->level_count)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "level %u is no overview: the profile has %u, from level 1 on", level,
                          plan->level_count - 1);
    const cogpu_block_grid *grid = &plan->levels[level];
    if (!is_window_inside(window, grid))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the window of %u x %u pixels at column %u, row %u is not inside level "
                          "%u, which has %u x %u",
                          window->width, window->height, window->x, window->y, level, grid->width,
                          grid->height);
    TRY(cogpu_plan_downsample(plan, profile, level, downsample, error));
    cogpu_downsample_source_columns(downsample, window->x, window->width, &source->x, &right);
    cogpu_downsample_source_rows(downsample, window->y, window->height, &source->y, &below);
    source->width = right - source->x;
    source->height = below - source->y;
    return COGPU_OK;
}

cogpu_status cogpu_plan_overview_source(const cogpu_profile *profile, uint32_t level,
                                        const cogpu_window *window, cogpu_window *source,
                                        cogpu_error *error) {
    cogpu_write_plan plan;
    cogpu_downsample downsample;
    return plan_window(profile, level, window, &plan, &downsample, source, error);
}

/* Pixels and mask of a window. */
struct masked_pixels {
    cogpu_raster pixels, mask;
};

static cogpu_status check_window_pixels(const cogpu_write_plan *plan, const cogpu_window *window,
                                        const cogpu_raster *pixels, const cogpu_raster *mask,
                                        struct masked_pixels *window_pixels, cogpu_error *error) {
    if (!pixels || (mask != NULL) != plan->has_mask)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          plan->has_mask ? "pixels come with a mask, as the profile says"
                                         : "the profile has no mask: set `mask` to make one");
    *window_pixels = (struct masked_pixels){.pixels = *pixels};
    TRY(cogpu_check_pixels(&window_pixels->pixels, plan->type, plan->bands, window->width,
                           window->height, error));
    if (!mask)
        return COGPU_OK;
    window_pixels->mask = *mask;
    return cogpu_check_pixels(&window_pixels->mask, COGPU_TYPE_U8, 1, window->width, window->height,
                              error);
}

static cogpu_status downsample_window(const cogpu_profile *profile,
                                      const cogpu_downsample *downsample,
                                      const cogpu_downsample_position *position,
                                      const struct masked_pixels *from,
                                      const struct masked_pixels *to, cogpu_error *error) {
    cogpu_worker *worker = cogpu_context_take_worker(profile->context);
    if (!worker)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory to make an overview");
    cogpu_status status = cogpu_cpu_downsample(
        worker, downsample, position, &from->pixels, downsample->has_mask ? &from->mask : NULL,
        &to->pixels, downsample->has_mask ? &to->mask : NULL, error);
    cogpu_context_return_worker(profile->context, worker);
    return status;
}

cogpu_status cogpu_downsample_overview(const cogpu_profile *profile, uint32_t level,
                                       const cogpu_window *window, const cogpu_raster *pixels,
                                       const cogpu_raster *mask, const cogpu_raster *to,
                                       const cogpu_raster *to_mask, cogpu_error *error) {
    cogpu_write_plan plan;
    cogpu_downsample downsample;
    cogpu_window needed;
    struct masked_pixels source, target;
    TRY(plan_window(profile, level, window, &plan, &downsample, &needed, error));
    TRY(check_window_pixels(&plan, &needed, pixels, mask, &source, error));
    TRY(check_window_pixels(&plan, window, to, to_mask, &target, error));
    const cogpu_downsample_position position = {needed.x, needed.y, window->x, window->y};
    return downsample_window(profile, &downsample, &position, &source, &target, error);
}
