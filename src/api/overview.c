/*
 * The file that a profile makes, for those who make its blocks elsewhere: takes the profile alone,
 * hands on the grids of its levels; takes pixels of a level, hands on a window of the next one,
 * shrunk by the step that writers use.
 */
#include "api/writer.h"

cogpu_status cogpu_profile_outline(const cogpu_profile *profile, uint32_t level,
                                   cogpu_outline *outline, cogpu_error *error) {
    cogpu_write_plan plan;
    if (!profile || !outline)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "cogpu_profile_outline needs a profile and a place for the outline");
    TRY(cogpu_plan_profile(profile, &plan, error));
    if (level >= plan.level_count)
        return cogpu_fail(error, COGPU_ABSENT, "there is no level %u: the profile has %u", level,
                          plan.level_count);
    const cogpu_grid *grid = &plan.levels[level];
    const bool is_one_strip = !plan.is_tiled && grid->block_height > grid->height;
    *outline = (cogpu_outline){.levels = plan.level_count,
                               .width = grid->width,
                               .height = grid->height,
                               .block_width = grid->block_width,
                               .block_height = is_one_strip ? grid->height : grid->block_height,
                               .blocks = (uint64_t)grid->across * grid->down * plan.planes,
                               .most_bytes = cogpu_level_most(&plan, grid)};
    return COGPU_OK;
}

/* ---- overviews ----------------------------------------------------------------------------- */

static bool is_inside(const cogpu_window *window, const cogpu_grid *grid) {
    return window->width > 0 && window->height > 0 && window->x < grid->width &&
           window->y < grid->height && window->width <= grid->width - window->x &&
           window->height <= grid->height - window->y;
}

/* How the level is made, and of which window of the one before it this one is. */
static cogpu_status plan_window(const cogpu_profile *profile, uint32_t level,
                                const cogpu_window *window, cogpu_write_plan *plan,
                                cogpu_shrink *shrink, cogpu_window *needs, cogpu_error *error) {
    uint32_t right = 0, below = 0;
    TRY(cogpu_plan_profile(profile, plan, error));
    if (level == 0 || level >= plan->level_count)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "level %u is no overview: the profile has %u, from level 1 on", level,
                          plan->level_count - 1);
    const cogpu_grid *grid = &plan->levels[level];
    if (!is_inside(window, grid))
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "the window of %u x %u pixels at column %u, row %u is not inside level "
                          "%u, which has %u x %u",
                          window->width, window->height, window->x, window->y, level, grid->width,
                          grid->height);
    TRY(cogpu_plan_shrink(plan, profile, level, shrink, error));
    cogpu_shrink_needs_columns(shrink, window->x, window->width, &needs->x, &right);
    cogpu_shrink_needs(shrink, window->y, window->height, &needs->y, &below);
    needs->width = right - needs->x;
    needs->height = below - needs->y;
    return COGPU_OK;
}

cogpu_status cogpu_overview_needs(const cogpu_profile *profile, uint32_t level,
                                  const cogpu_window *window, cogpu_window *needs,
                                  cogpu_error *error) {
    cogpu_write_plan plan;
    cogpu_shrink shrink;
    if (!profile || !window || !needs)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "cogpu_overview_needs needs a profile, a window and a place for another");
    return plan_window(profile, level, window, &plan, &shrink, needs, error);
}

/* A level's pixels and mask in a window. */
struct picture {
    cogpu_raster pixels, mask;
};

static cogpu_status check_picture(const cogpu_write_plan *plan, const cogpu_window *window,
                                  const cogpu_raster *pixels, const cogpu_raster *mask,
                                  struct picture *picture, cogpu_error *error) {
    if (!pixels || (mask != NULL) != plan->has_mask)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          plan->has_mask ? "pixels come with a mask, as the profile says"
                                         : "the profile has no mask: set `mask` to make one");
    *picture = (struct picture){.pixels = *pixels};
    TRY(cogpu_check_pixels(&picture->pixels, plan->type, plan->bands, window->width, window->height,
                           error));
    if (!mask)
        return COGPU_OK;
    picture->mask = *mask;
    return cogpu_check_pixels(&picture->mask, COGPU_U8, 1, window->width, window->height, error);
}

static cogpu_status shrink_window(const cogpu_profile *profile, const cogpu_shrink *shrink,
                                  const cogpu_shrink_place *place, const struct picture *from,
                                  const struct picture *to, cogpu_error *error) {
    cogpu_seat *seat = cogpu_context_seat(profile->context);
    if (!seat)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory to make an overview");
    cogpu_status status =
        cogpu_cpu_shrink(seat, shrink, place, &from->pixels, shrink->has_mask ? &from->mask : NULL,
                         &to->pixels, shrink->has_mask ? &to->mask : NULL, error);
    cogpu_context_give_back(profile->context, seat);
    return status;
}

cogpu_status cogpu_overview_make(const cogpu_profile *profile, uint32_t level,
                                 const cogpu_window *window, const cogpu_raster *pixels,
                                 const cogpu_raster *mask, cogpu_raster *to, cogpu_raster *to_mask,
                                 cogpu_error *error) {
    cogpu_write_plan plan;
    cogpu_shrink shrink;
    cogpu_window needs;
    struct picture source, target;
    if (!profile || !window)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "cogpu_overview_make needs a profile and a window");
    TRY(plan_window(profile, level, window, &plan, &shrink, &needs, error));
    TRY(check_picture(&plan, &needs, pixels, mask, &source, error));
    TRY(check_picture(&plan, window, to, to_mask, &target, error));
    const cogpu_shrink_place place = {needs.x, needs.y, window->x, window->y};
    return shrink_window(profile, &shrink, &place, &source, &target, error);
}
