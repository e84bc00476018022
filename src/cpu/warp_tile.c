/* Loads source pixels of a band into the tile of a unit, as doubles with flags of validity. */
#include "cpu/samples.h"
#include "cpu/warp_unit.h"

/* The part of a tile that is in the source window. */
struct warp_part {
    uint32_t left, top, width, height; /* in the tile */
    int64_t x, y;                      /* in the window */
};

static uint32_t clip_axis(int64_t begin, uint32_t size, uint32_t window, uint32_t *skipped) {
    int64_t first = begin < 0 ? 0 : begin, end = begin + size;
    end = end > window ? window : end;
    *skipped = (uint32_t)(first - begin);
    return end > first ? (uint32_t)(end - first) : 0;
}

static struct warp_part part_of_tile(const struct warp_args *args, const struct warp_tile *tile) {
    struct warp_part part;
    part.width = clip_axis(tile->left, tile->width, args->width, &part.left);
    part.height = clip_axis(tile->top, tile->height, args->height, &part.top);
    part.x = tile->left + part.left;
    part.y = tile->top + part.top;
    return part;
}

static bool is_whole(const struct warp_tile *tile, const struct warp_part *part) {
    return part->width == tile->width && part->height == tile->height;
}

/* ---- values ---- */

#define LOAD_ROWS_CASE(kind, bits)                                                                 \
    case kind:                                                                                     \
        for (uint32_t j = 0; j < part->height; j++) {                                              \
            const uint8_t *from = first + j * plane->stride_y;                                     \
            double *to = values + (size_t)j * width;                                               \
            if (plane->stride_x == (int64_t)sizeof(bits))                                          \
                for (uint32_t i = 0; i < part->width; i++) {                                       \
                    LOAD_SAMPLE(bits, sample, from, i);                                            \
                    to[i] = sample_to_double(kind, sample);                                        \
                }                                                                                  \
            else                                                                                   \
                for (uint32_t i = 0; i < part->width; i++) {                                       \
                    bits sample;                                                                   \
                    memcpy(&sample, from + i * plane->stride_x, sizeof sample);                    \
                    to[i] = sample_to_double(kind, sample);                                        \
                }                                                                                  \
        }                                                                                          \
        break;

BODY load_values_body(const struct warp_args *args, uint32_t band, const struct warp_part *part,
                      uint32_t width, double *restrict values) {
    const struct warp_plane *plane = &args->source;
    const uint8_t *first = plane_at(plane, band, part->x, part->y);
    switch (args->from_type) {
        EACH_SAMPLE_TYPE(LOAD_ROWS_CASE)
    default:
        break;
    }
}
FOR_AVX2(static, load_values,
         (const struct warp_args *args, uint32_t band, const struct warp_part *part, uint32_t width,
          double *values),
         (args, band, part, width, values))

/* ---- validity ---- */

#define CLEAR_MATCHES_CASE(kind)                                                                   \
    case kind:                                                                                     \
        rule.match = kind;                                                                         \
        for (uint32_t i = 0; i < count; i++)                                                       \
            valid[i] &= !matches_nodata(rule, values[i]);                                          \
        break;

BODY cogpu_warp_clear_matches_body(struct warp_nodata rule, const double *restrict values,
                                   uint32_t count, uint8_t *restrict valid) {
    switch (rule.match) {
        CLEAR_MATCHES_CASE(MATCHES_EQUAL)
        CLEAR_MATCHES_CASE(MATCHES_NAN)
        CLEAR_MATCHES_CASE(MATCHES_FLOAT)
        CLEAR_MATCHES_CASE(MATCHES_DOUBLE)
    default:
        break;
    }
}
FOR_AVX2(extern, cogpu_warp_clear_matches,
         (struct warp_nodata rule, const double *values, uint32_t count, uint8_t *valid),
         (rule, values, count, valid))

static void clear_masked(const struct warp_args *args, const struct warp_part *part, uint32_t width,
                         uint8_t *valid) {
    for (uint32_t j = 0; j < part->height; j++)
        for (uint32_t i = 0; i < part->width; i++)
            valid[(size_t)j * width + i] &=
                *plane_at(&args->mask, 0, part->x + i, part->y + j) != 0;
}

/* Flags 1 inside of the window, else 0. */
static void set_inside(const struct warp_tile *tile, const struct warp_part *part, uint8_t *valid) {
    if (is_whole(tile, part)) {
        memset(valid, 1, (size_t)tile->width * tile->height);
        return;
    }
    memset(valid, 0, (size_t)tile->width * tile->height);
    for (uint32_t j = 0; j < part->height; j++)
        memset(valid + (size_t)(part->top + j) * tile->width + part->left, 1, part->width);
}

BODY set_masks_body(struct warp_unit *unit, uint32_t count) {
    double *restrict values = unit->values, *restrict masks = unit->masks;
    const uint8_t *restrict valid = unit->valid;
    for (uint32_t i = 0; i < count; i++) {
        masks[i] = (double)(int32_t)valid[i];
        values[i] = valid[i] ? values[i] : 0;
    }
}
FOR_AVX2(static, set_masks, (struct warp_unit * unit, uint32_t count), (unit, count))

/* Squares that do not fit are of no use: they may be wrong. */
BODY cogpu_warp_find_blocks_body(const struct warp_unit *unit, uint32_t side, uint8_t *blocks) {
    uint32_t width = unit->tile.width, count = width * unit->tile.height;
    memcpy(blocks, unit->valid, count);
    for (uint32_t k = 1; k < side; k++)
        for (uint32_t i = 0; i + 1 < count; i++)
            blocks[i] &= blocks[i + 1];
    for (uint32_t k = 1; k < side; k++)
        for (uint32_t i = 0; i + width < count; i++)
            blocks[i] &= blocks[i + width];
}
FOR_AVX2(extern, cogpu_warp_find_blocks,
         (const struct warp_unit *unit, uint32_t side, uint8_t *blocks), (unit, side, blocks))

void cogpu_warp_load_tile(const struct warp_args *args, uint32_t band, struct warp_unit *unit) {
    struct warp_tile *tile = &unit->tile;
    struct warp_part part = part_of_tile(args, tile);
    size_t count = (size_t)tile->width * tile->height;
    size_t first = (size_t)part.top * tile->width + part.left;
    const struct warp_nodata rule = args->rules[band].nodata;
    if (!is_whole(tile, &part))
        memset(unit->values, 0, count * sizeof *unit->values);
    load_values(args, band, &part, tile->width, unit->values + first);
    tile->are_all_valid = is_whole(tile, &part) && rule.match == MATCHES_NOTHING &&
                          !args->mask.data && !args->alpha_band;
    if (tile->are_all_valid)
        return;
    set_inside(tile, &part, unit->valid);
    cogpu_warp_clear_matches(rule, unit->values, (uint32_t)count, unit->valid);
    if (args->mask.data)
        clear_masked(args, &part, tile->width, unit->valid + first);
    for (size_t i = 0; args->alpha_band && i < count; i++)
        unit->valid[i] &= unit->alpha_is_valid[i];
    tile->are_all_valid = !memchr(unit->valid, 0, count);
    if (!tile->are_all_valid)
        set_masks(unit, (uint32_t)count);
}

bool cogpu_warp_load_alpha(const struct warp_args *args, struct warp_unit *unit) {
    const struct warp_tile *tile = &unit->tile;
    struct warp_part part = part_of_tile(args, tile);
    bool is_partial = false;
    memset(unit->alpha_is_valid, 0, (size_t)tile->width * tile->height);
    load_values(args, args->alpha_band - 1, &part, tile->width, unit->values);
    for (uint32_t j = 0; j < part.height; j++)
        for (uint32_t i = 0; i < part.width; i++) {
            float density =
                alpha_density(args->from_type, unit->values[(size_t)j * tile->width + i]);
            bool is_valid = (double)density >= LEAST_DENSITY;
            unit->alpha_is_valid[(size_t)(part.top + j) * tile->width + part.left + i] = is_valid;
            is_partial |= is_valid && density < 1;
        }
    return !is_partial || is_area_method(args->method);
}
