/*
 * From a checked request to the plan of a window and of its sub-reads: which blocks, which
 * conversion, which method. Arithmetic only: nothing is read, decoded or uploaded here.
 */
#include "grid/mosaic.h"
#include "read/job.h"

enum { CHUNK_BYTES = 4 << 20, TALL_CHUNK_BYTES = 128 << 20 };

uint32_t cogpu_chunk_rows(const cogpu_storage *storage, uint64_t row_bytes, uint32_t height) {
    uint64_t rows = CHUNK_BYTES / row_bytes;
    if (rows > storage->block_height)
        rows -= rows % storage->block_height;
    return rows < 1 ? 1 : rows < height ? (uint32_t)rows : height;
}

uint32_t cogpu_tall_chunk_rows(const cogpu_storage *storage, uint64_t row_bytes, uint32_t height) {
    uint32_t rows = cogpu_chunk_rows(storage, row_bytes, height);
    uint64_t tall = TALL_CHUNK_BYTES / row_bytes;
    if (rows == height || rows >= storage->block_height)
        return rows;
    return tall < 1 ? 1 : tall < height ? (uint32_t)tall : height;
}

uint64_t cogpu_window_blocks(const struct cogpu_read_window *window) {
    uint64_t blocks = window->plan.count + (window->mask ? window->mask->plan.count : 0);
    if (window->method == COGPU_READ_VIA_HOST || window->method == COGPU_READ_VIA_DEVICE)
        return cogpu_window_blocks(&window->parts[0]);
    if (window->method != COGPU_READ_EACH_BAND)
        return blocks;
    blocks = 0;
    for (uint32_t i = 0; i < window->part_count; i++)
        blocks += cogpu_window_blocks(&window->parts[i]);
    return blocks;
}

/* ---- sub-reads ----------------------------------------------------------------------------- */

static cogpu_status plan_parts(const struct cogpu_read_spec *spec, cogpu_arena *arena,
                               struct cogpu_read_window *window, cogpu_error *error) {
    TRY(cogpu_arena_allocate(arena, 1, sizeof *window->parts, &window->parts, error));
    window->part_count = 1;
    return cogpu_plan_window(spec, arena, window->parts, error);
}

/* Whether bands differ in what is invalid, so that each needs a read of its own. */
static bool needs_read_of_each_band(const struct cogpu_read_spec *spec) {
    return spec->pyramid->has_band_rules && spec->band_count > 1 &&
           spec->content != COGPU_READ_COMPONENTS;
}

static cogpu_status plan_each_band(const struct cogpu_read_spec *spec, cogpu_arena *arena,
                                   struct cogpu_read_window *window, cogpu_error *error) {
    uint32_t *bands = NULL;
    TRY(cogpu_arena_allocate(arena, spec->band_count, sizeof *bands, &bands, error));
    TRY(cogpu_arena_allocate(arena, spec->band_count, sizeof *window->parts, &window->parts,
                             error));
    window->method = COGPU_READ_EACH_BAND;
    window->part_count = spec->band_count;
    for (uint32_t p = 0; p < spec->band_count; p++) {
        struct cogpu_read_spec single = *spec;
        bands[p] = cogpu_plan_band(&window->plan, p) + 1;
        single.bands = &bands[p];
        single.band_count = 1;
        single.raster.bands = 1;
        single.raster.data = (uint8_t *)spec->raster.data + (int64_t)p * spec->raster.stride_band;
        TRY(cogpu_plan_window(&single, arena, &window->parts[p], error));
    }
    return COGPU_OK;
}

static cogpu_status plan_components(const struct cogpu_read_spec *spec, cogpu_arena *arena,
                                    struct cogpu_read_window *window, cogpu_error *error) {
    struct cogpu_read_spec components = *spec;
    components.content = COGPU_READ_COMPONENTS;
    components.bands = NULL;
    components.band_count = spec->level->storage.bands;
    components.masked = components.is_unscaled = false;
    components.raster = (cogpu_raster){.type = COGPU_TYPE_U8, .bands = components.band_count};
    window->method = COGPU_READ_PLANAR_COLOURS;
    return plan_parts(&components, arena, window, error);
}

/* The same window in host memory. */
static cogpu_status plan_on_host(const struct cogpu_read_spec *spec, enum cogpu_read_method method,
                                 cogpu_arena *arena, struct cogpu_read_window *window,
                                 cogpu_error *error) {
    struct cogpu_read_spec host = *spec;
    host.device = NULL;
    host.skips_mask = method == COGPU_READ_STREAMED;
    host.raster = (cogpu_raster){.type = spec->raster.type, .bands = spec->band_count};
    window->method = method;
    return plan_parts(&host, arena, window, error);
}

/* Whether a window in device memory is decoded there, and faster than by the CPU. */
static bool is_decoded_there(const struct cogpu_read_spec *spec,
                             const struct cogpu_read_window *window) {
    return window->method == COGPU_READ_MOSAIC ||
           (window->method == COGPU_READ_BLOCKS &&
            cogpu_gpu_device_is_faster(window->device, &window->plan, spec->threads));
}

static bool is_mask_decoded_there(const struct cogpu_read_window *mask) {
    return !mask || mask->method == COGPU_READ_MOSAIC || mask->method == COGPU_READ_BLOCKS;
}

/* The same window in device memory. *is_planned: it is read there. */
static cogpu_status plan_via_device(const struct cogpu_read_spec *spec, cogpu_arena *arena,
                                    struct cogpu_read_window *window, bool *is_planned,
                                    cogpu_error *error) {
    struct cogpu_read_spec decoded = *spec;
    decoded.device = spec->decode_device;
    decoded.decode_device = NULL;
    decoded.raster = (cogpu_raster){.type = spec->raster.type, .bands = spec->band_count};
    window->method = COGPU_READ_VIA_DEVICE;
    TRY(plan_parts(&decoded, arena, window, error));
    *is_planned = is_decoded_there(spec, window->parts) &&
                  is_mask_decoded_there(window->parts[0].mask) && cogpu_can_read_via_device(window);
    if (!*is_planned)
        window->part_count = 0;
    return COGPU_OK;
}

/* Whether all bands of the window have the same band of one mask. */
static bool has_shared_mask(const struct cogpu_read_spec *spec, const cogpu_read_plan *plan,
                            uint32_t mask_band) {
    for (uint32_t p = 1; p < plan->band_count; p++)
        if (cogpu_nodata_rule_of_pyramid(spec->pyramid, spec->level, cogpu_plan_band(plan, p) + 1)
                .band != mask_band)
            return false;
    return true;
}

static cogpu_status plan_mask_of_pixels(const struct cogpu_read_spec *spec, cogpu_arena *arena,
                                        const cogpu_band_rule *rule,
                                        struct cogpu_read_window *window, cogpu_error *error) {
    struct cogpu_read_spec mask = *spec;
    uint32_t *first_band = NULL;
    TRY(cogpu_arena_allocate(arena, 1, sizeof *window->mask, &window->mask, error));
    TRY(cogpu_arena_allocate(arena, 1, sizeof *first_band, &first_band, error));
    *first_band = cogpu_plan_band(&window->plan, 0) + 1;
    window->is_mask_shared = has_shared_mask(spec, &window->plan, rule->band);
    if (window->is_mask_shared) {
        mask.bands = first_band;
        mask.band_count = 1;
    }
    mask.content = COGPU_READ_MASK;
    mask.masked = mask.is_unscaled = false;
    mask.raster = (cogpu_raster){.type = COGPU_TYPE_U8,
                                 .bands = mask.band_count,
                                 .device = spec->raster.device,
                                 .device_index = spec->raster.device_index};
    return cogpu_plan_window(&mask, arena, window->mask, error);
}

/* ---- one window ---------------------------------------------------------------------------- */

static void plan_fill(const struct cogpu_read_spec *spec, struct cogpu_read_window *window) {
    const cogpu_nodata *nodata = &spec->pyramid->nodata[cogpu_plan_band(&window->plan, 0)];
    if (!spec->pyramid->has_band_rules)
        return;
    cogpu_nodata_sample(nodata, window->plan.storage->type, window->fill);
    window->plan.fill = window->fill;
}

/* How samples change on their way into the raster. */
static void plan_conversion(const struct cogpu_read_spec *spec, const cogpu_band_rule *rule,
                            struct cogpu_read_window *window) {
    cogpu_type type = spec->level->storage.type;
    bool is_by_nodata = spec->masked && rule->mask_source == COGPU_MASK_SOURCE_NODATA;
    if (is_by_nodata)
        cogpu_conversion_nodata(rule->nodata, type, &window->conversion);
    if (spec->is_unscaled)
        window->conversion.bands = spec->pyramid->bands;
    if (is_by_nodata || spec->is_unscaled || spec->raster.type != type)
        window->plan.conversion = &window->conversion;
}

static cogpu_status plan_method(const struct cogpu_read_spec *spec, cogpu_arena *arena,
                                struct cogpu_read_window *window, cogpu_error *error) {
    const cogpu_storage *storage = window->plan.storage;
    bool is_all_valid = spec->content == COGPU_READ_MASK && !window->plan.conversion;
    bool needs_components = storage == &spec->level->storage && cogpu_has_planar_colours(storage) &&
                            spec->content != COGPU_READ_COMPONENTS;
    if (!is_all_valid && storage->mosaic && spec->device && storage->mosaic->needs_host)
        return plan_on_host(spec, COGPU_READ_VIA_HOST, arena, window, error);
    if (!is_all_valid && storage->mosaic) {
        window->method = COGPU_READ_MOSAIC;
        return COGPU_OK;
    }
    if (!is_all_valid)
        TRY(cogpu_check_codec(storage, error));
    bool is_direct = !is_all_valid && !needs_components;
    if (spec->device && !(is_direct && cogpu_gpu_device_can_read(spec->device, &window->plan))) {
        bool is_streamed = spec->content == COGPU_READ_PIXELS && cogpu_cpu_is_streamed(storage) &&
                           !cogpu_has_planar_colours(storage);
        return plan_on_host(spec, is_streamed ? COGPU_READ_STREAMED : COGPU_READ_VIA_HOST, arena,
                            window, error);
    }
    if (needs_components)
        return plan_components(spec, arena, window, error);
    window->method = is_all_valid ? COGPU_READ_ALL_VALID : COGPU_READ_BLOCKS;
    return COGPU_OK;
}

/* The mask is a sub-read of the window, unless the host or the caller applies it. */
static bool applies_mask(const struct cogpu_read_spec *spec, const cogpu_band_rule *rule,
                         const struct cogpu_read_window *window) {
    return spec->content == COGPU_READ_PIXELS && spec->masked && !spec->skips_mask &&
           window->method != COGPU_READ_VIA_HOST &&
           (rule->mask_source == COGPU_MASK_SOURCE_DIRECTORY ||
            rule->mask_source == COGPU_MASK_SOURCE_ALPHA);
}

cogpu_status cogpu_plan_window(const struct cogpu_read_spec *spec, cogpu_arena *arena,
                               struct cogpu_read_window *window, cogpu_error *error) {
    *window = (struct cogpu_read_window){.file = spec->file,
                                         .content = spec->content,
                                         .fills_bad_blocks = spec->fills_bad_blocks,
                                         .raster = spec->raster,
                                         .device = spec->device,
                                         .failed_number = UINT64_MAX};
    cogpu_error_clear(&window->error);
    cogpu_plan_read(&spec->level->storage, spec->x, spec->y, spec->width, spec->height, spec->bands,
                    spec->band_count, &window->plan);
    bool is_planned = false;
    if (needs_read_of_each_band(spec))
        return plan_each_band(spec, arena, window, error);
    if (spec->decode_device)
        TRY(plan_via_device(spec, arena, window, &is_planned, error));
    if (is_planned)
        return COGPU_OK;
    cogpu_band_rule rule = cogpu_nodata_rule_of_pyramid(spec->pyramid, spec->level,
                                                        cogpu_plan_band(&window->plan, 0) + 1);
    plan_fill(spec, window);
    if (spec->content == COGPU_READ_PIXELS)
        plan_conversion(spec, &rule, window);
    if (spec->content == COGPU_READ_MASK)
        TRY(cogpu_plan_mask(spec, arena, window, error));
    TRY(plan_method(spec, arena, window, error));
    if (applies_mask(spec, &rule, window))
        TRY(plan_mask_of_pixels(spec, arena, &rule, window, error));
    return COGPU_OK;
}
