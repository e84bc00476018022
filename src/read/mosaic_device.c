/*
 * Steps of a chunk on a device. All work of a chunk is queued on one stream, which waits for what
 * the caller's stream had queued before. Source windows are read by the read pipeline, whose
 * streams wait for this one (raster.stream).
 */
#include "read/mosaic_steps.h"

#include "base/checked.h"
#include "kernels/composite/composite_args.h"
#include "kernels/unpack/unpack_args.h"
#include "kernels/warp/warp_args.h"

#include <string.h>

struct cogpu_chunk_device {
    cogpu_gpu *gpu;
    cogpu_gpu_stream *stream;
    cogpu_gpu_memory memory;
    uint64_t step_used;
};

static uint64_t align_step(uint64_t bytes) {
    return cogpu_gpu_align(bytes);
}

/* ---- memory -------------------------------------------------------------------------------- */

static uint64_t layer_table_bytes(const struct cogpu_mosaic_chunk *chunk,
                                  const struct cogpu_chunk_layer *layer) {
    const cogpu_warp_job job = cogpu_chunk_warp_job(chunk, layer);
    return align_step(cogpu_gpu_warp_table_bytes(&job));
}

/* Positions and rules of each layer, and the tables of the conversion. */
static uint64_t count_step_bytes(const struct cogpu_mosaic_chunk *chunk) {
    uint64_t bands = chunk->read->window->plan.band_count;
    uint64_t bytes = align_step(bands * sizeof(struct cogpu_unpack_block)) +
                     align_step(bands * sizeof(struct cogpu_gpu_band)) + COGPU_GPU_SLACK_BYTES;
    for (uint32_t i = 0; i < chunk->layer_count; i++)
        bytes += layer_table_bytes(chunk, &chunk->layers[i]);
    return bytes;
}

/* Memory that the last chunk, or the last writer, kept is used again if it is large enough. */
static cogpu_status take_device_memory(struct cogpu_mosaic_chunk *chunk, uint64_t bytes,
                                       cogpu_error *error) {
    struct cogpu_chunk_device *device = chunk->device;
    cogpu_gpu_memory *memory = &device->memory;
    *memory = cogpu_context_take_memory(chunk->read->job->context, chunk->read->window->device);
    if (memory->device_bytes >= bytes)
        return COGPU_OK;
    cogpu_gpu_memory_release(device->gpu, memory);
    memory->device_bytes = bytes;
    cogpu_status status = device->gpu->calls->allocate(device->gpu, bytes, &memory->device, error);
    if (status != COGPU_OK)
        *memory = (cogpu_gpu_memory){0};
    return status;
}

static cogpu_status open_stream(struct cogpu_mosaic_chunk *chunk, cogpu_error *error) {
    struct cogpu_chunk_device *device = chunk->device;
    cogpu_gpu_stream *before = chunk->read->window->raster.stream;
    TRY(device->gpu->calls->stream_open(device->gpu, false, &device->stream, error));
    return cogpu_gpu_stream_wait(device->gpu, device->stream, before, error);
}

static cogpu_status open_device(struct cogpu_mosaic_chunk *chunk, uint64_t bytes, uint8_t **memory,
                                cogpu_error *error) {
    TRY(cogpu_arena_allocate(&chunk->arena, 1, sizeof *chunk->device, &chunk->device, error));
    chunk->device->gpu = cogpu_gpu_device_gpu(chunk->read->window->device);
    TRY(take_device_memory(chunk, bytes, error));
    *memory = chunk->device->memory.device;
    return open_stream(chunk, error);
}

static cogpu_status close_device(struct cogpu_mosaic_chunk *chunk, cogpu_status status,
                                 cogpu_error *error) {
    struct cogpu_chunk_device *device = chunk->device;
    cogpu_status finished = COGPU_OK;
    if (!device)
        return status;
    if (device->stream) {
        finished = device->gpu->calls->finish_stream(device->gpu, device->stream,
                                                     status == COGPU_OK ? error : NULL);
        device->gpu->calls->stream_close(device->gpu, device->stream);
    }
    if (device->memory.device)
        cogpu_context_keep_memory(chunk->read->job->context, chunk->read->window->device,
                                  &device->memory);
    return status == COGPU_OK ? finished : status;
}

/* Copies bytes to the device when the work that is queued before is done. `from` stays until the
 * chunk ends. */
static cogpu_status upload_step(struct cogpu_mosaic_chunk *chunk, const void *from, uint64_t bytes,
                                uint8_t **to, cogpu_error *error) {
    struct cogpu_chunk_device *device = chunk->device;
    *to = chunk->step_memory + device->step_used;
    device->step_used += align_step(bytes);
    return device->gpu->calls->copy_up(device->gpu, *to, from, bytes, device->stream, error);
}

/* ---- steps --------------------------------------------------------------------------------- */

static cogpu_status prepare_device(struct cogpu_mosaic_chunk *chunk, cogpu_error *error) {
    struct cogpu_chunk_device *device = chunk->device;
    for (uint32_t i = 0; i < chunk->layer_count; i++) {
        chunk->layers[i].source.stream = device->stream;
        chunk->layers[i].mask.stream = device->stream;
    }
    return device->gpu->calls->copy_up(device->gpu, (void *)chunk->fill, chunk->read->fill,
                                       chunk->read->band_count * sizeof *chunk->fill,
                                       device->stream, error);
}

static cogpu_status begin_on_device(struct cogpu_mosaic_chunk *chunk, cogpu_error *error) {
    return cogpu_gpu_composite_begin(chunk->device->gpu, &chunk->composition, chunk->device->stream,
                                     error);
}

static cogpu_status warp_on_device(struct cogpu_mosaic_chunk *chunk, const cogpu_warp_job *job,
                                   cogpu_error *error) {
    uint64_t bytes = cogpu_gpu_warp_table_bytes(job);
    uint8_t *filled = NULL, *table = NULL;
    TRY(cogpu_arena_allocate(&chunk->arena, bytes, 1, &filled, error));
    cogpu_gpu_warp_fill_table(job, filled);
    TRY(upload_step(chunk, filled, bytes, &table, error));
    return cogpu_gpu_warp(chunk->device->gpu, job, table, chunk->device->stream, error);
}

static cogpu_status add_on_device(struct cogpu_mosaic_chunk *chunk, const cogpu_composition *part,
                                  const cogpu_composite_layer *layer, cogpu_error *error) {
    return cogpu_gpu_composite_add(chunk->device->gpu, part, layer, chunk->device->stream, error);
}

static cogpu_status finish_on_device(struct cogpu_mosaic_chunk *chunk, cogpu_error *error) {
    return cogpu_gpu_composite_finish(chunk->device->gpu, &chunk->composition,
                                      chunk->device->stream, error);
}

/* ---- convert ------------------------------------------------------------------------------- */

static cogpu_status upload_band_list(struct cogpu_mosaic_chunk *chunk, const cogpu_read_plan *plan,
                                     const struct cogpu_gpu_band **bands, cogpu_error *error) {
    uint32_t count = cogpu_gpu_bands_listed(plan);
    struct cogpu_gpu_band *list = NULL;
    uint8_t *uploaded = NULL;
    *bands = NULL;
    if (count == 0)
        return COGPU_OK;
    TRY(cogpu_arena_allocate(&chunk->arena, count, sizeof *list, &list, error));
    cogpu_gpu_list_bands(plan, list);
    TRY(upload_step(chunk, list, count * sizeof *list, &uploaded, error));
    *bands = (const struct cogpu_gpu_band *)(const void *)uploaded;
    return COGPU_OK;
}

/* A block for each band. */
static cogpu_status list_planes(struct cogpu_mosaic_chunk *chunk, const cogpu_read_plan *plan,
                                struct cogpu_unpack_block **blocks, cogpu_error *error) {
    TRY(cogpu_arena_allocate(&chunk->arena, plan->band_count, sizeof **blocks, blocks, error));
    for (uint32_t i = 0; i < plan->band_count; i++)
        (*blocks)[i] = (struct cogpu_unpack_block){
            .decoded = chunk->read->is_validity ? 0 : i * (uint64_t)chunk->pixels.stride_band,
            .target_x = (uint32_t)(chunk->box.x0 - plan->x),
            .target_y = (uint32_t)(chunk->box.y0 - plan->y),
            .width = chunk->pixels.width,
            .height = chunk->pixels.height,
            .plane = i};
    return COGPU_OK;
}

static cogpu_status convert_on_device(struct cogpu_mosaic_chunk *chunk, cogpu_error *error) {
    struct cogpu_chunk_device *device = chunk->device;
    const uint8_t *from =
        chunk->read->is_validity ? chunk->composition.valid : (uint8_t *)chunk->pixels.data;
    const struct cogpu_gpu_band *bands = NULL;
    struct cogpu_unpack_block *blocks = NULL;
    struct cogpu_gpu_pixels pixels;
    uint8_t *table = NULL;
    cogpu_storage storage;
    cogpu_read_plan plan = cogpu_chunk_plan(chunk, &storage);
    TRY(upload_band_list(chunk, &plan, &bands, error));
    TRY(cogpu_gpu_describe_pixels(&plan, &chunk->read->window->raster, from, NULL, bands, &pixels,
                                  error));
    TRY(list_planes(chunk, &plan, &blocks, error));
    TRY(upload_step(chunk, blocks, plan.band_count * sizeof *blocks, &table, error));
    return cogpu_gpu_unpack(device->gpu, &pixels,
                            (const struct cogpu_unpack_block *)(const void *)table, blocks,
                            plan.band_count, device->stream, error);
}

const struct cogpu_chunk_steps cogpu_chunk_steps_on_device = {.count_bytes = count_step_bytes,
                                                              .open = open_device,
                                                              .close = close_device,
                                                              .prepare = prepare_device,
                                                              .begin = begin_on_device,
                                                              .warp = warp_on_device,
                                                              .add = add_on_device,
                                                              .finish = finish_on_device,
                                                              .convert = convert_on_device};
