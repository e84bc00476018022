/*
 * Steps of a chunk on a device. The composer's stream waits for what the caller's stream had queued
 * before. Source windows are read by the read pipeline, whose streams wait for the composer's
 * (raster.stream).
 */
#include "read/mosaic_steps.h"

#include "gpu/composer.h"

struct cogpu_chunk_device {
    cogpu_gpu_composer composer;
    cogpu_gpu_memory memory;
};

/* ---- memory -------------------------------------------------------------------------------- */

static uint64_t count_table_bytes(const struct cogpu_mosaic_chunk *chunk) {
    cogpu_storage storage;
    const cogpu_read_plan plan = cogpu_chunk_plan(chunk, &storage);
    uint64_t bytes = cogpu_gpu_composer_convert_bytes(&plan);
    for (uint32_t i = 0; i < chunk->layer_count; i++) {
        const cogpu_box target = chunk->layers[i].plan.target;
        bytes += cogpu_gpu_composer_warp_bytes((uint32_t)(target.x1 - target.x0),
                                               (uint32_t)(target.y1 - target.y0),
                                               chunk->layers[i].plan.band_count);
    }
    return bytes;
}

static cogpu_status open_device(struct cogpu_mosaic_chunk *chunk, uint64_t bytes, uint8_t **memory,
                                cogpu_error *error) {
    const struct cogpu_read_window *window = chunk->read->window;
    TRY(cogpu_arena_allocate(&chunk->arena, 1, sizeof *chunk->device, &chunk->device, error));
    TRY(cogpu_context_reserve_memory(chunk->read->job->context, window->device, bytes,
                                     chunk->step_bytes, &chunk->device->memory, error));
    *memory = chunk->device->memory.device;
    return cogpu_gpu_composer_open(&chunk->device->composer, window->device, window->raster.stream,
                                   &chunk->arena, error);
}

static cogpu_status close_device(struct cogpu_mosaic_chunk *chunk, cogpu_status status,
                                 cogpu_error *error) {
    if (!chunk->device)
        return status;
    cogpu_status closed =
        cogpu_gpu_composer_close(&chunk->device->composer, status == COGPU_OK ? error : NULL);
    if (chunk->device->memory.device)
        cogpu_context_keep_memory(chunk->read->job->context, chunk->read->window->device,
                                  &chunk->device->memory);
    return status == COGPU_OK ? closed : status;
}

/* ---- steps --------------------------------------------------------------------------------- */

static cogpu_status prepare_device(struct cogpu_mosaic_chunk *chunk, cogpu_error *error) {
    cogpu_gpu_composer *composer = &chunk->device->composer;
    composer->scratch = chunk->step_memory;
    composer->pinned = chunk->device->memory.pinned;
    composer->scratch_bytes = chunk->step_bytes;
    for (uint32_t i = 0; i < chunk->layer_count; i++) {
        chunk->layers[i].source.stream = composer->stream;
        chunk->layers[i].mask.stream = composer->stream;
    }
    return cogpu_gpu_composer_upload(composer, chunk->read->fill,
                                     chunk->read->band_count * sizeof *chunk->fill,
                                     (void *)chunk->fill, error);
}

static cogpu_status begin_on_device(struct cogpu_mosaic_chunk *chunk, cogpu_error *error) {
    return cogpu_gpu_composer_begin(&chunk->device->composer, &chunk->composition, error);
}

static cogpu_status prepare_warp(const struct cogpu_mosaic_chunk *chunk,
                                 struct cogpu_chunk_layer *layer, const cogpu_warp_job *job,
                                 cogpu_error *error) {
    TRY(cogpu_arena_allocate(&layer->arena, 1, sizeof *layer->table, &layer->table, error));
    return cogpu_gpu_composer_fill_table(&chunk->device->composer, job, &layer->arena, layer->table,
                                         error);
}

static cogpu_status warp_on_device(struct cogpu_mosaic_chunk *chunk,
                                   const struct cogpu_chunk_layer *layer, const cogpu_warp_job *job,
                                   cogpu_error *error) {
    return cogpu_gpu_composer_warp(&chunk->device->composer, job, layer->table, error);
}

static cogpu_status add_on_device(struct cogpu_mosaic_chunk *chunk, const cogpu_composition *part,
                                  const cogpu_composite_layer *layer, cogpu_error *error) {
    return cogpu_gpu_composer_add(&chunk->device->composer, part, layer, error);
}

static cogpu_status finish_on_device(struct cogpu_mosaic_chunk *chunk, cogpu_error *error) {
    return cogpu_gpu_composer_finish(&chunk->device->composer, &chunk->composition, error);
}

static cogpu_status convert_on_device(struct cogpu_mosaic_chunk *chunk, cogpu_error *error) {
    const struct cogpu_mosaic_read *read = chunk->read;
    cogpu_storage storage;
    const cogpu_read_plan plan = cogpu_chunk_plan(chunk, &storage);
    const cogpu_gpu_planes planes = {
        .data = read->is_validity ? chunk->composition.valid : chunk->pixels.data,
        .stride_band = read->is_validity ? 0 : (uint64_t)chunk->pixels.stride_band,
        .target_x = (uint32_t)(chunk->box.x0 - plan.x),
        .target_y = (uint32_t)(chunk->box.y0 - plan.y),
        .width = chunk->pixels.width,
        .height = chunk->pixels.height};
    return cogpu_gpu_composer_convert(&chunk->device->composer, &plan, &planes,
                                      &read->window->raster, error);
}

const struct cogpu_chunk_steps cogpu_chunk_steps_on_device = {.count_bytes = count_table_bytes,
                                                              .open = open_device,
                                                              .close = close_device,
                                                              .prepare = prepare_device,
                                                              .prepare_warp = prepare_warp,
                                                              .begin = begin_on_device,
                                                              .warp = warp_on_device,
                                                              .add = add_on_device,
                                                              .finish = finish_on_device,
                                                              .convert = convert_on_device};
