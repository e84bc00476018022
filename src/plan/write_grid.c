/* Sizes of blocks, the levels of the pyramid, and the grid of blocks of each level. */
#include "plan/write_steps.h"

#include "base/checked.h"
#include "base/math.h"

enum { TILE_SIDE = 512, STRIP_BYTES = 256 << 10 };

/* Decoded bytes of a block: the default limit of readers (cogpu_limits.block_bytes). */
#define BLOCK_BYTES_MAX (UINT64_C(1) << 30)

/* The longest side of a block that the codec can encode. */
static uint32_t longest_side(const cogpu_write_plan *plan) {
    return plan->codec->max_side ? plan->codec->max_side : SIDE_MAX;
}

static uint32_t strip_rows_multiple(const cogpu_write_plan *plan) {
    return max_u32(plan->codec->strip_rows_multiple, 1);
}

static uint32_t default_strip_rows(const cogpu_profile *profile, const cogpu_write_plan *plan) {
    uint64_t row_bytes = (uint64_t)profile->width * plan->pixel_bytes;
    uint64_t rows = row_bytes < STRIP_BYTES ? STRIP_BYTES / row_bytes : 1;
    uint32_t most = longest_side(plan), unit = strip_rows_multiple(plan);
    rows = min_u64(rows, most);
    return rows < unit ? unit : (uint32_t)rows / unit * unit;
}

static cogpu_status plan_strip(const cogpu_profile *profile, const cogpu_write_plan *plan,
                               uint32_t *width, uint32_t *height, cogpu_error *error) {
    uint32_t unit = strip_rows_multiple(plan);
    if (profile->cog)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "a COG has tiles: leave `strips` out");
    if (profile->block_width && profile->block_width != profile->width)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "strips are as wide as the image: leave `block_width` out");
    *width = profile->width;
    *height = profile->block_height ? profile->block_height : default_strip_rows(profile, plan);
    if (*height % unit && *height < profile->height)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "strips of %s have a multiple of %u rows, not %u", plan->codec->name,
                          unit, *height);
    *height = min_u32(*height, profile->height);
    return COGPU_OK;
}

/* For messages: the next multiple of 16. */
static uint32_t next_tile_side(uint32_t side) {
    return side > UINT32_MAX - 15 ? UINT32_MAX - 15 : (side + 15) / 16 * 16;
}

/* Halved until a tile of many bands is small enough. */
static uint32_t default_tile_side(const cogpu_write_plan *plan) {
    uint32_t side = TILE_SIDE;
    while (side > 16 && (uint64_t)side * side * plan->pixel_bytes > BLOCK_BYTES_MAX)
        side /= 2;
    return side;
}

static cogpu_status plan_tile(const cogpu_profile *profile, const cogpu_write_plan *plan,
                              uint32_t *width, uint32_t *height, cogpu_error *error) {
    *width = profile->block_width ? profile->block_width : default_tile_side(plan);
    *height = profile->block_height ? profile->block_height : *width;
    if (*width % 16 || *height % 16)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "tiles of %u x %u are not possible: sides are multiples of 16, "
                          "for example %u x %u",
                          *width, *height, next_tile_side(*width), next_tile_side(*height));
    return COGPU_OK;
}

static cogpu_status plan_block_size(const cogpu_profile *profile, const cogpu_write_plan *plan,
                                    uint32_t *width, uint32_t *height, cogpu_error *error) {
    uint32_t most = longest_side(plan);
    uint64_t bytes = 0;
    TRY(plan->is_tiled ? plan_tile(profile, plan, width, height, error)
                       : plan_strip(profile, plan, width, height, error));
    if (*width > most || *height > most)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "a block of %u x %u pixels is too large for %s, whose sides end at %u: "
                          "choose smaller tiles",
                          *width, *height, plan->codec->name, most);
    if (!checked_mul((uint64_t)*width * plan->pixel_bytes, *height, &bytes) ||
        bytes > BLOCK_BYTES_MAX)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "blocks of %u x %u are too large, with %zu bytes a pixel: readers take 1 "
                          "GiB at most, so choose smaller ones",
                          *width, *height, plan->pixel_bytes);
    return COGPU_OK;
}

static cogpu_status add_level(cogpu_write_plan *plan, uint32_t width, uint32_t height,
                              uint32_t block_width, uint32_t block_height, cogpu_error *error) {
    if (plan->level_count == COGPU_LEVELS_MAX)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "more than %d overviews cannot be written",
                          COGPU_LEVELS_MAX - 1);
    cogpu_block_grid *grid = &plan->levels[plan->level_count++];
    *grid = (cogpu_block_grid){.width = width,
                               .height = height,
                               .block_width = plan->is_tiled ? block_width : width,
                               .block_height = block_height,
                               .down = (uint32_t)divide_up(height, block_height)};
    grid->across = (uint32_t)divide_up(width, grid->block_width);
    if ((uint64_t)grid->across * grid->down > INT32_MAX / plan->planes)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "%u x %u blocks of %u planes are too many: choose larger blocks",
                          grid->across, grid->down, plan->planes);
    return COGPU_OK;
}

static cogpu_status add_listed_levels(const cogpu_profile *profile, cogpu_write_plan *plan,
                                      uint32_t block_width, uint32_t block_height,
                                      cogpu_error *error) {
    if (!profile->overview_factors || profile->overview_factor_count == 0)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "overviews are to be as listed, and none is: set `overview_factors`");
    for (uint32_t i = 0, last = 1; i < profile->overview_factor_count;
         last = profile->overview_factors[i++]) {
        uint32_t factor = profile->overview_factors[i];
        if (factor < 2)
            return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                              "overview factors begin with 2: %u is none, leave it out", factor);
        if (factor <= last)
            return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                              "overview factors must grow, as 2, 4, 8: %u follows %u", factor,
                              last);
        const cogpu_block_grid *before = &plan->levels[plan->level_count - 1];
        uint32_t width = (uint32_t)divide_up(profile->width, factor);
        uint32_t height = (uint32_t)divide_up(profile->height, factor);
        if (width == before->width && height == before->height)
            return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                              "an overview by %u would be no smaller than the level before it, "
                              "%u x %u: leave it out",
                              factor, width, height);
        TRY(add_level(plan, width, height, block_width, block_height, error));
    }
    return COGPU_OK;
}

cogpu_status cogpu_plan_levels(const cogpu_profile *profile, cogpu_write_plan *plan,
                               cogpu_error *error) {
    uint32_t block_width = 0, block_height = 0;
    TRY(plan_block_size(profile, plan, &block_width, &block_height, error));
    TRY(add_level(plan, profile->width, profile->height, block_width, block_height, error));
    bool is_auto = profile->overviews == COGPU_OVERVIEWS_AUTO ||
                   (profile->overviews == COGPU_OVERVIEWS_DEFAULT && profile->cog);
    bool is_open = profile->overviews == COGPU_OVERVIEWS_DEFAULT;
    if (profile->overviews == COGPU_OVERVIEWS_LISTED ||
        (is_open && profile->overview_factor_count > 0))
        return add_listed_levels(profile, plan, block_width, block_height, error);
    for (uint32_t factor = 2; is_auto; factor *= 2) {
        const cogpu_block_grid *last = &plan->levels[plan->level_count - 1];
        uint32_t side = plan->is_tiled ? block_width : TILE_SIDE;
        if (last->width <= side && last->height <= (plan->is_tiled ? block_height : TILE_SIDE))
            break;
        TRY(add_level(plan, (uint32_t)divide_up(profile->width, factor),
                      (uint32_t)divide_up(profile->height, factor), block_width, block_height,
                      error));
    }
    return COGPU_OK;
}
