/*
 * Executes a chunk of a mosaic: memory, reads, warps, combination, conversion. Everything is in
 * host memory or on one device; mosaic_host.c and mosaic_device.c have the steps of each.
 *
 *     source pixels --warp--> layer --add--> chunk --convert--> caller's raster
 *          |                                  ^ |
 *          +--------warp, if no other---------+ +-- no conversion: the chunk is a part of the
 * raster |        layer is there            ^
 *          +--------read, if it is a copy-----+
 */
#include "read/mosaic.h"

#include "base/checked.h"
#include "base/math.h"
#include "cpu/warp.h"
#include "read/mosaic_steps.h"

#include <string.h>

/* ---- memory -------------------------------------------------------------------------------- */

enum { ALIGN_BYTES = 256 };

/* The parts of one allocation. Laid out twice: without a base to know the size, then with it. */
struct chunk_memory {
    uint8_t *base;
    uint64_t used;
};

static void *take_part(struct chunk_memory *memory, uint64_t bytes) {
    uint8_t *part = memory->base ? memory->base + memory->used : NULL;
    memory->used += divide_up(bytes, ALIGN_BYTES) * ALIGN_BYTES;
    return part;
}

static cogpu_type chunk_type(const struct cogpu_mosaic_read *read) {
    return read->mosaic->pyramid->info.type;
}

/* Packed planes of `box` pixels. */
static cogpu_raster packed_raster(const struct cogpu_mosaic_read *read, cogpu_box box,
                                  cogpu_type type, uint32_t bands, void *data) {
    int64_t size = (int64_t)cogpu_type_bytes(type);
    const cogpu_raster *window = &read->window->raster;
    return (cogpu_raster){.data = data,
                          .type = type,
                          .bands = bands,
                          .width = (uint32_t)(box.x1 - box.x0),
                          .height = (uint32_t)(box.y1 - box.y0),
                          .stride_x = size,
                          .stride_y = size * (box.x1 - box.x0),
                          .stride_band = size * (int64_t)cogpu_box_pixels(box),
                          .device = window->device,
                          .device_index = window->device_index};
}

/* ---- copies -------------------------------------------------------------------------------- */

/* Whether nodata of the source is nodata of the mosaic, band by band. Masked pixels become that of
 * the mosaic. */
static bool keeps_nodata(const cogpu_layer *plan) {
    if (plan->reads_mask || plan->makes_mask)
        return false;
    for (uint32_t i = 0; i < plan->band_count; i++) {
        const cogpu_warp_band *rule = &plan->warp.rules[i];
        bool is_same = rule->nodata == rule->avoided ||
                       (rule->nodata != rule->nodata && rule->avoided != rule->avoided);
        if (rule->avoids != rule->has_nodata || (rule->avoids && !is_same))
            return false;
    }
    return true;
}

/* Whether the source is read straight into the chunk. */
static bool is_plain_copy(const struct cogpu_chunk_layer *layer) {
    const cogpu_layer *plan = &layer->plan;
    return layer->is_direct && plan->kind == COGPU_LAYER_COPIED &&
           plan->warp.from_type == plan->warp.to_type && keeps_nodata(plan);
}

/* ---- layout -------------------------------------------------------------------------------- */

static bool is_written_in_place(const struct cogpu_mosaic_read *read) {
    const struct cogpu_read_window *window = read->window;
    return !read->is_validity && !window->plan.conversion &&
           window->raster.type == chunk_type(read);
}

/* The chunk's part of the caller's raster. */
static cogpu_raster part_of_raster(const struct cogpu_mosaic_chunk *chunk) {
    const cogpu_read_plan *plan = &chunk->read->window->plan;
    cogpu_raster part = chunk->read->window->raster;
    part.data = (uint8_t *)part.data + (chunk->box.x0 - plan->x) * part.stride_x +
                (chunk->box.y0 - plan->y) * part.stride_y;
    part.width = (uint32_t)(chunk->box.x1 - chunk->box.x0);
    part.height = (uint32_t)(chunk->box.y1 - chunk->box.y0);
    return part;
}

/* A layer's part of the chunk's pixels. */
static cogpu_raster part_of_chunk(const struct cogpu_mosaic_chunk *chunk, cogpu_box box) {
    cogpu_raster part = chunk->pixels;
    part.data = (uint8_t *)part.data + (box.x0 - chunk->box.x0) * part.stride_x +
                (box.y0 - chunk->box.y0) * part.stride_y;
    part.width = (uint32_t)(box.x1 - box.x0);
    part.height = (uint32_t)(box.y1 - box.y0);
    return part;
}

static void lay_out_sources(struct cogpu_mosaic_chunk *chunk, struct chunk_memory *memory) {
    for (uint32_t i = 0; i < chunk->layer_count; i++) {
        struct cogpu_chunk_layer *layer = &chunk->layers[i];
        const cogpu_layer *plan = &layer->plan;
        uint64_t pixels = cogpu_box_pixels(plan->source);
        if (is_plain_copy(layer))
            layer->source = part_of_chunk(chunk, plan->target);
        else
            layer->source =
                packed_raster(chunk->read, plan->source, plan->warp.from_type, plan->band_count,
                              take_part(memory, pixels * plan->band_count *
                                                    cogpu_type_bytes(plan->warp.from_type)));
        if (plan->reads_mask || plan->makes_mask)
            layer->mask = packed_raster(chunk->read, plan->source, COGPU_TYPE_U8, 1,
                                        take_part(memory, pixels));
    }
}

/* The largest layer that is composed. Layers use the same memory one after the other. */
static uint64_t largest_layer_samples(const struct cogpu_mosaic_chunk *chunk) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < chunk->layer_count; i++)
        if (!chunk->layers[i].is_direct)
            most = max_u64(most, cogpu_box_pixels(chunk->layers[i].plan.target) *
                                     chunk->layers[i].plan.band_count);
    return most;
}

static void lay_out_composition(struct cogpu_mosaic_chunk *chunk, struct chunk_memory *memory) {
    const struct cogpu_mosaic_read *read = chunk->read;
    cogpu_composition *composition = &chunk->composition;
    uint64_t samples = cogpu_box_pixels(chunk->box) * read->band_count;
    uint64_t layer = largest_layer_samples(chunk), size = cogpu_type_bytes(chunk_type(read));
    cogpu_composite method = read->mosaic->composite;
    *composition = (cogpu_composition){.method = method,
                                       .pixels = &chunk->pixels,
                                       .depth = chunk->layer_count,
                                       .fill = chunk->fill};
    if (chunk->is_composed)
        composition->valid = take_part(memory, samples);
    if (method == COGPU_COMPOSITE_MEAN)
        composition->sums = take_part(memory, samples * sizeof(double));
    if (method >= COGPU_COMPOSITE_MEAN)
        composition->counts = take_part(memory, samples * sizeof(uint32_t));
    if (method == COGPU_COMPOSITE_MEDIAN)
        composition->stack = take_part(memory, samples * chunk->layer_count * size);
    chunk->layer_pixels = take_part(memory, layer * size);
    chunk->layer_valid = take_part(memory, layer);
}

static void lay_out_targets(struct cogpu_mosaic_chunk *chunk) {
    for (uint32_t i = 0; i < chunk->layer_count; i++) {
        struct cogpu_chunk_layer *layer = &chunk->layers[i];
        const cogpu_layer *plan = &layer->plan;
        layer->target = layer->is_direct
                            ? part_of_chunk(chunk, plan->target)
                            : packed_raster(chunk->read, plan->target, plan->warp.to_type,
                                            plan->band_count, chunk->layer_pixels);
        layer->valid = packed_raster(chunk->read, plan->target, COGPU_TYPE_U8, plan->band_count,
                                     chunk->layer_valid);
    }
}

/* Planes begin at aligned addresses, as kernels want them. */
static void lay_out_pixels(struct cogpu_mosaic_chunk *chunk, struct chunk_memory *memory) {
    const struct cogpu_mosaic_read *read = chunk->read;
    uint64_t plane = cogpu_box_pixels(chunk->box) * cogpu_type_bytes(chunk_type(read));
    uint64_t aligned = divide_up(plane, ALIGN_BYTES) * ALIGN_BYTES;
    chunk->pixels = packed_raster(read, chunk->box, chunk_type(read), read->band_count,
                                  take_part(memory, aligned * read->band_count));
    chunk->pixels.stride_band = (int64_t)aligned;
}

static void lay_out_chunk(struct cogpu_mosaic_chunk *chunk, struct chunk_memory *memory) {
    const struct cogpu_mosaic_read *read = chunk->read;
    memory->used = 0;
    chunk->fill = take_part(memory, read->band_count * sizeof *chunk->fill);
    if (is_written_in_place(read))
        chunk->pixels = part_of_raster(chunk);
    else
        lay_out_pixels(chunk, memory);
    lay_out_composition(chunk, memory);
    lay_out_sources(chunk, memory);
    lay_out_targets(chunk);
    chunk->step_memory = take_part(memory, chunk->step_bytes);
}

uint64_t cogpu_chunk_compose_bytes(const struct cogpu_mosaic_chunk *chunk) {
    struct cogpu_mosaic_chunk counted = *chunk;
    struct chunk_memory memory = {0};
    uint32_t layers = counted.layer_count;
    lay_out_chunk(&counted, &memory);
    for (uint32_t i = 0; i < layers; i++) /* the caller counts source pixels */
        memory.used -=
            min_u64(memory.used, cogpu_layer_bytes(chunk->read->mosaic, &counted.layers[i].plan));
    return memory.used;
}

/* ---- source windows ------------------------------------------------------------------------ */

static cogpu_status plan_source(const struct cogpu_mosaic_chunk *chunk,
                                const struct cogpu_chunk_layer *layer, bool is_mask,
                                cogpu_arena *arena, struct cogpu_read_window *window,
                                cogpu_error *error) {
    const cogpu_layer *plan = &layer->plan;
    const struct cogpu_read_spec spec = {.file = layer->file,
                                         .pyramid = plan->pyramid,
                                         .level = &plan->pyramid->levels[plan->level],
                                         .content = is_mask || plan->is_of_mask ? COGPU_READ_MASK
                                                                                : COGPU_READ_PIXELS,
                                         .x = (uint32_t)plan->source.x0,
                                         .y = (uint32_t)plan->source.y0,
                                         .width = (uint32_t)(plan->source.x1 - plan->source.x0),
                                         .height = (uint32_t)(plan->source.y1 - plan->source.y0),
                                         .bands = plan->bands,
                                         .band_count = is_mask ? 1 : plan->band_count,
                                         .fills_bad_blocks = chunk->read->window->fills_bad_blocks,
                                         .raster = is_mask ? layer->mask : layer->source,
                                         .device = chunk->read->window->device};
    return cogpu_plan_window(&spec, arena, window, error);
}

/* Windows of all layers, in one array. */
static cogpu_status plan_sources(struct cogpu_mosaic_chunk *chunk, cogpu_error *error) {
    TRY(cogpu_arena_allocate(&chunk->arena, chunk->layer_count, 2 * sizeof *chunk->windows,
                             &chunk->windows, error));
    for (uint32_t i = 0; i < chunk->layer_count; i++) {
        struct cogpu_chunk_layer *layer = &chunk->layers[i];
        layer->first_window = chunk->window_count;
        TRY(plan_source(chunk, layer, false, &chunk->arena, &chunk->windows[chunk->window_count++],
                        error));
        if (layer->plan.reads_mask)
            TRY(plan_source(chunk, layer, true, &chunk->arena,
                            &chunk->windows[chunk->window_count++], error));
        layer->end_window = chunk->window_count;
    }
    return COGPU_OK;
}

/* The first error of a layer's windows leaves the layer out, or ends the read. */
static cogpu_status check_sources(struct cogpu_mosaic_chunk *chunk, cogpu_error *error) {
    for (uint32_t i = 0; i < chunk->layer_count; i++) {
        struct cogpu_chunk_layer *layer = &chunk->layers[i];
        for (uint32_t k = layer->first_window; k < layer->end_window && !layer->is_bad; k++) {
            if (chunk->windows[k].error.status == COGPU_OK)
                continue;
            TRY(cogpu_mosaic_leave_out(chunk->read, layer->plan.member, &chunk->windows[k].error,
                                       error));
            layer->is_bad = true;
        }
    }
    return COGPU_OK;
}

/* ---- compose ------------------------------------------------------------------------------- */

/* A source that was read straight into the chunk and turned out to be bad has left pixels there. */
static bool covers_chunk(const struct cogpu_mosaic_chunk *chunk) {
    const struct cogpu_chunk_layer *layer = &chunk->layers[0];
    return chunk->layer_count == 1 && layer->is_direct && !layer->is_bad &&
           cogpu_box_pixels(layer->plan.target) == cogpu_box_pixels(chunk->box);
}

static cogpu_warp_job describe_warp(const struct cogpu_mosaic_chunk *chunk,
                                    const struct cogpu_chunk_layer *layer) {
    const cogpu_layer *plan = &layer->plan;
    return (cogpu_warp_job){.warp = &plan->warp,
                            .coordinates = &plan->coordinates,
                            .forward = plan->forward.nodes ? &plan->forward : NULL,
                            .source = &layer->source,
                            .mask = plan->reads_mask || plan->makes_mask ? &layer->mask : NULL,
                            .target = &layer->target,
                            .valid = layer->is_direct ? NULL : &layer->valid,
                            .fill = chunk->read->fill};
}

static cogpu_status warp_layer(struct cogpu_mosaic_chunk *chunk, struct cogpu_chunk_layer *layer,
                               cogpu_error *error) {
    const cogpu_warp_job job = describe_warp(chunk, layer);
    if (layer->plan.makes_mask) /* in host memory: needs_host */
        cogpu_warp_unite(&layer->plan.warp, &layer->source, &layer->mask);
    return chunk->read->steps->warp(chunk, layer, &job, error);
}

/* The part of the composition that `count` bands from `first` on are. */
static cogpu_composition bands_of_composition(const struct cogpu_mosaic_chunk *chunk,
                                              uint32_t first, uint32_t count,
                                              cogpu_raster *pixels) {
    cogpu_composition part = chunk->composition;
    uint64_t plane = cogpu_box_pixels(chunk->box), skip = plane * first;
    uint64_t size = cogpu_type_bytes(chunk->pixels.type);
    *pixels = chunk->pixels;
    pixels->data = (uint8_t *)pixels->data + first * pixels->stride_band;
    pixels->bands = count;
    part.pixels = pixels;
    part.valid += skip;
    part.sums += part.sums ? skip : 0;
    part.counts += part.counts ? skip : 0;
    part.stack += part.stack ? skip * size : 0;
    part.fill += first;
    return part;
}

/* Adds a layer whose bands are neighbours in the chunk in one step; others take more. */
static cogpu_status add_layer(struct cogpu_mosaic_chunk *chunk,
                              const struct cogpu_chunk_layer *layer, cogpu_error *error) {
    const cogpu_layer *plan = &layer->plan;
    uint64_t plane = cogpu_box_pixels(plan->target), size = cogpu_type_bytes(chunk->pixels.type);
    for (uint32_t first = 0, end; first < plan->band_count; first = end) {
        for (end = first + 1;
             end < plan->band_count && plan->targets[end] == plan->targets[end - 1] + 1;)
            end++;
        if (plan->targets[first] == COGPU_LAYER_NO_BAND)
            continue;
        cogpu_raster pixels;
        cogpu_composition part =
            bands_of_composition(chunk, plan->targets[first], end - first, &pixels);
        const cogpu_composite_layer added = {.x = (uint32_t)(plan->target.x0 - chunk->box.x0),
                                             .y = (uint32_t)(plan->target.y0 - chunk->box.y0),
                                             .width = (uint32_t)(plan->target.x1 - plan->target.x0),
                                             .height =
                                                 (uint32_t)(plan->target.y1 - plan->target.y0),
                                             .pixels = chunk->layer_pixels + first * plane * size,
                                             .valid = chunk->layer_valid + first * plane};
        TRY(chunk->read->steps->add(chunk, &part, &added, error));
    }
    return COGPU_OK;
}

/* Where a band of the layer has a pixel. The layer's own pixels are of no use any more. */
static void make_alpha(struct cogpu_mosaic_chunk *chunk, const cogpu_layer *plan) {
    const uint64_t pixels = cogpu_box_pixels(plan->target);
    for (uint32_t band = 1; band < plan->band_count; band++)
        for (uint64_t i = 0; i < pixels; i++)
            chunk->layer_valid[i] |= chunk->layer_valid[band * pixels + i];
    cogpu_warp_fill_opaque(chunk->pixels.type, pixels, chunk->layer_pixels);
}

/* The band may be asked for several times: it is the mask of the others. */
static cogpu_status add_made_alpha(struct cogpu_mosaic_chunk *chunk,
                                   const struct cogpu_chunk_layer *layer, cogpu_error *error) {
    const struct cogpu_mosaic_read *read = chunk->read;
    struct cogpu_chunk_layer alpha = *layer;
    bool is_made = false;
    for (uint32_t i = 0; read->mosaic->made_alpha && i < read->band_count; i++) {
        if (read->bands[i] != read->mosaic->made_alpha)
            continue;
        if (!is_made)
            make_alpha(chunk, &layer->plan);
        is_made = true;
        alpha.plan.targets = &i;
        alpha.plan.band_count = 1;
        TRY(add_layer(chunk, &alpha, error));
    }
    return COGPU_OK;
}

static cogpu_status place_layer(struct cogpu_mosaic_chunk *chunk,
                                const struct cogpu_chunk_layer *layer, cogpu_error *error) {
    const struct cogpu_chunk_steps *steps = chunk->read->steps;
    if (steps->rectangle)
        return steps->rectangle(chunk, layer, error);
    return cogpu_fail(error, COGPU_UNSUPPORTED,
                      "samples of type %s become %s by the CPU only: read to host memory",
                      cogpu_type_name(layer->plan.warp.from_type),
                      cogpu_type_name(layer->plan.warp.to_type));
}

static cogpu_status compose_layers(struct cogpu_mosaic_chunk *chunk, cogpu_error *error) {
    for (uint32_t i = 0; i < chunk->layer_count; i++) {
        struct cogpu_chunk_layer *layer = &chunk->layers[i];
        if (layer->is_bad || is_plain_copy(layer))
            continue;
        TRY(layer->plan.kind == COGPU_LAYER_RECTANGLE ? place_layer(chunk, layer, error)
                                                      : warp_layer(chunk, layer, error));
        if (!layer->is_direct) {
            TRY(add_layer(chunk, layer, error));
            TRY(add_made_alpha(chunk, layer, error));
        }
        if (!cogpu_meter_poll(&chunk->read->window->meter))
            return cogpu_fail_cancelled(error);
    }
    return chunk->is_composed ? chunk->read->steps->finish(chunk, error) : COGPU_OK;
}

/* ---- positions ----------------------------------------------------------------------------- */

static cogpu_status compute_positions(const struct cogpu_mosaic_chunk *chunk,
                                      struct cogpu_chunk_layer *layer, cogpu_error *error) {
    const struct cogpu_chunk_steps *steps = chunk->read->steps;
    TRY(cogpu_layer_compute(chunk->read->mosaic, &chunk->request, &layer->arena, &layer->plan,
                            &layer->is_covered, error));
    if (!steps->prepare_warp || !layer->is_covered || layer->plan.kind == COGPU_LAYER_RECTANGLE)
        return COGPU_OK;
    const cogpu_warp_job job = describe_warp(chunk, layer);
    return steps->prepare_warp(chunk, layer, &job, error);
}

static void compute_layer(void *argument, uint32_t worker, uint64_t index) {
    const struct cogpu_mosaic_chunk *chunk = argument;
    struct cogpu_chunk_layer *layer = &chunk->layers[index];
    (void)worker;
    cogpu_error_clear(&layer->error);
    layer->is_covered = true;
    if (!is_plain_copy(layer)) /* its status is in the error */
        (void)compute_positions(chunk, layer, &layer->error);
}

static cogpu_status check_positions(struct cogpu_mosaic_chunk *chunk, cogpu_error *error) {
    for (uint32_t i = 0; i < chunk->layer_count; i++) {
        struct cogpu_chunk_layer *layer = &chunk->layers[i];
        chunk->needs_exact |= !layer->is_covered;
        if (layer->error.status == COGPU_OK)
            continue;
        TRY(cogpu_mosaic_leave_out(chunk->read, layer->plan.member, &layer->error, error));
        layer->is_bad = true;
    }
    return COGPU_OK;
}

/* Reads source pixels while the pool computes positions. */
static cogpu_status read_sources(struct cogpu_mosaic_chunk *chunk, cogpu_error *error) {
    const struct cogpu_read_job *job = chunk->read->job;
    cogpu_pool_job *positions = NULL;
    TRY(cogpu_pool_begin(job->pool, job->worker_count, compute_layer, chunk, &positions, error));
    cogpu_pool_add(positions, chunk->layer_count);
    cogpu_status status = cogpu_read_windows(chunk->read->job, chunk->windows, chunk->window_count,
                                             chunk->read->window, error);
    while (cogpu_pool_help(positions))
        ;
    cogpu_pool_end(positions);
    TRY(status);
    return check_positions(chunk, error);
}

static cogpu_status execute(struct cogpu_mosaic_chunk *chunk, cogpu_error *error) {
    TRY(chunk->read->steps->prepare(chunk, error));
    TRY(plan_sources(chunk, error));
    bool is_covered = covers_chunk(chunk);
    if (!is_covered)
        TRY(chunk->read->steps->begin(chunk, error));
    TRY(read_sources(chunk, error));
    if (chunk->needs_exact)
        return COGPU_OK;
    TRY(check_sources(chunk, error));
    if (is_covered && !covers_chunk(chunk))
        TRY(chunk->read->steps->begin(chunk, error));
    TRY(compose_layers(chunk, error));
    return is_written_in_place(chunk->read) ? COGPU_OK : chunk->read->steps->convert(chunk, error);
}

cogpu_status cogpu_chunk_execute(struct cogpu_mosaic_chunk *chunk, cogpu_error *error) {
    struct chunk_memory memory = {0};
    chunk->step_bytes = chunk->read->steps->count_bytes(chunk);
    lay_out_chunk(chunk, &memory);
    TRY(chunk->read->steps->open(chunk, memory.used, &memory.base, error));
    lay_out_chunk(chunk, &memory);
    cogpu_status status = execute(chunk, error);
    return chunk->read->steps->close(chunk, status, error);
}
