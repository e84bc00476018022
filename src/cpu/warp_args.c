/* Arguments of a warp, for the loops of the CPU and for kernels. */
#include "cpu/warp.h"

#include "base/resampling.h"

#include <string.h>

static struct warp_lattice lattice_of(const cogpu_coordinates *coordinates) {
    return (struct warp_lattice){.nodes = coordinates->nodes,
                                 .cells = coordinates->cells,
                                 .exact = coordinates->exact,
                                 .first_cell_x = coordinates->first_cell_x,
                                 .first_cell_y = coordinates->first_cell_y,
                                 .across = coordinates->across,
                                 .points = cogpu_cell_points(coordinates)};
}

static struct warp_plane plane_of(const cogpu_raster *raster) {
    if (!raster)
        return (struct warp_plane){0};
    return (struct warp_plane){.data = raster->data,
                               .stride_band = raster->stride_band,
                               .stride_y = raster->stride_y,
                               .stride_x = raster->stride_x};
}

static void make_rules(const cogpu_warp_job *job, uint32_t working, struct warp_rule *rules) {
    const cogpu_warp *warp = job->warp;
    for (uint32_t i = 0; i < warp->bands; i++) {
        const cogpu_warp_band *band = &warp->rules[i];
        rules[i] = (struct warp_rule){.nodata = {.match = MATCHES_NOTHING},
                                      .avoided = band->avoided,
                                      .fill = load_bits(warp->to_type, job->fill[i]),
                                      .avoids = band->avoids};
        if (warp->has_nodata && band->has_nodata && warp->unites != COGPU_WARP_NODATA_UNITED)
            rules[i].nodata = nodata_rule(working, band->nodata);
    }
}

static bool do_all_bands_match(const cogpu_warp *warp, const struct warp_rule *rules) {
    bool is_any = false;
    if (warp->unites == COGPU_WARP_NODATA_OF_BANDS && warp->bands > 1)
        return false;
    for (uint32_t i = 0; i < warp->bands; i++) {
        if (i + 1 == warp->alpha_band)
            continue;
        if (rules[i].nodata.match == MATCHES_NOTHING)
            return false;
        is_any = true;
    }
    return is_any;
}

/* Bilinear and cubic use two or four pixels unless the resolution falls by more than 5 percent:
 * GDAL 3.12. */
static bool has_four_taps(const cogpu_warp *warp) {
    return (warp->method == COGPU_RESAMPLE_BILINEAR || warp->method == COGPU_RESAMPLE_CUBIC) &&
           warp->scale_x >= 0.95 && warp->scale_y >= 0.95;
}

/* Corners of a pixel are more than half the level apart where it lies on the seam; not if it covers
 * much of the level. */
static bool is_round(const cogpu_warp *warp, uint32_t window_width) {
    return warp->is_round && warp->scale_x * warp->level_width >= 4 && warp->x == 0 &&
           window_width == warp->level_width;
}

void cogpu_warp_prepare(const cogpu_warp_job *job, struct warp_rule *rules,
                        struct warp_args *args) {
    const cogpu_warp *warp = job->warp;
    uint32_t working = working_type(warp->from_type, warp->to_type);
    make_rules(job, working, rules);
    *args = (struct warp_args){.lattice = lattice_of(job->coordinates),
                               .source = plane_of(job->source),
                               .mask = plane_of(job->mask),
                               .target = plane_of(job->target),
                               .valid = plane_of(job->valid),
                               .rules = rules,
                               .across = make_filter(warp->method, warp->scale_x),
                               .down = make_filter(warp->method, warp->scale_y),
                               .margin_x = extent_margin(warp->scale_x),
                               .margin_y = extent_margin(warp->scale_y),
                               .method = warp->method,
                               .from_type = warp->from_type,
                               .to_type = warp->to_type,
                               .working_type = working,
                               .bands = warp->bands,
                               .x = warp->x,
                               .y = warp->y,
                               .width = job->source->width,
                               .height = job->source->height,
                               .level_width = warp->level_width,
                               .level_height = warp->level_height,
                               .target_x = job->coordinates->x,
                               .target_y = job->coordinates->y,
                               .target_width = job->coordinates->width,
                               .target_height = job->coordinates->height,
                               .alpha_band = warp->alpha_band,
                               .clamps = warp->clamps,
                               .is_round = is_round(warp, job->source->width),
                               .has_four_taps = has_four_taps(warp),
                               .all_bands_match = do_all_bands_match(warp, rules)};
    if (job->forward)
        args->forward = lattice_of(job->forward);
}

void cogpu_warp_unite(const cogpu_warp *warp, const cogpu_raster *source,
                      const cogpu_raster *mask) {
    const uint32_t type = warp->from_type, working = working_type(warp->from_type, warp->to_type);
    const struct warp_plane samples = plane_of(source), valid = plane_of(mask);
    for (uint32_t y = 0; y < mask->height; y++)
        memset((uint8_t *)plane_at(&valid, 0, 0, y), 0, mask->width);
    for (uint32_t band = 0; band < warp->bands; band++) {
        const struct warp_nodata nodata = nodata_rule(working, warp->rules[band].nodata);
        if (!warp->rules[band].has_nodata)
            continue;
        for (uint32_t y = 0; y < mask->height; y++)
            for (uint32_t x = 0; x < mask->width; x++) {
                uint8_t *to = (uint8_t *)plane_at(&valid, 0, x, y);
                uint64_t bits = load_bits(type, plane_at(&samples, band, x, y));
                *to |= matches_nodata(nodata, sample_to_double(type, bits)) ? 0 : UINT8_MAX;
            }
    }
}

void cogpu_warp_fill_opaque(cogpu_type type, uint64_t count, uint8_t *samples) {
    const uint64_t opaque = result_to_sample(type, alpha_of_opaque(type));
    for (uint64_t i = 0; i < count; i++)
        store_bits(type, opaque, samples + i * sample_bytes(type));
}
