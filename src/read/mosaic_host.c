/* Steps of a chunk in host memory. */
#include "read/mosaic_steps.h"

#include "base/bytes.h"
#include "base/math.h"
#include "cpu/composite.h"
#include "cpu/rectangle.h"
#include "cpu/samples.h"
#include "cpu/warp.h"

#include <string.h>

/* Rows that a thread converts at a time. */
enum { CONVERT_ROWS = 16 };

static uint64_t count_no_bytes(const struct cogpu_mosaic_chunk *chunk) {
    (void)chunk;
    return 0;
}

static cogpu_status open_memory(struct cogpu_mosaic_chunk *chunk, uint64_t bytes, uint8_t **memory,
                                cogpu_error *error) {
    chunk->memory_bytes = bytes;
    chunk->memory = cogpu_map((size_t)bytes);
    if (!chunk->memory)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY,
                          "out of memory for %llu MiB of a mosaic's sources",
                          (unsigned long long)(bytes >> 20));
    *memory = chunk->memory;
    return COGPU_OK;
}

static cogpu_status close_memory(struct cogpu_mosaic_chunk *chunk, cogpu_status status,
                                 cogpu_error *error) {
    (void)error;
    cogpu_unmap(chunk->memory, (size_t)chunk->memory_bytes);
    return status;
}

static cogpu_status copy_fill(struct cogpu_mosaic_chunk *chunk, cogpu_error *error) {
    (void)error;
    memcpy((void *)chunk->fill, chunk->read->fill, chunk->read->band_count * sizeof *chunk->fill);
    return COGPU_OK;
}

static cogpu_status begin_composition(struct cogpu_mosaic_chunk *chunk, cogpu_error *error) {
    (void)error;
    cogpu_cpu_composite_begin(chunk->read->job->pool, &chunk->composition);
    return COGPU_OK;
}

static cogpu_status warp_on_host(struct cogpu_mosaic_chunk *chunk,
                                 const struct cogpu_chunk_layer *layer, const cogpu_warp_job *job,
                                 cogpu_error *error) {
    (void)layer;
    return cogpu_cpu_warp(job, chunk->read->job->pool, chunk->read->job->worker_count, error);
}

static cogpu_status apply_rectangle(struct cogpu_mosaic_chunk *chunk,
                                    const struct cogpu_chunk_layer *layer, cogpu_error *error) {
    const cogpu_layer *plan = &layer->plan;
    const cogpu_rectangle_job job = {.rectangle = &plan->rectangle,
                                     .source = &layer->source,
                                     .mask = plan->reads_mask ? &layer->mask : NULL,
                                     .from_x = (uint32_t)plan->source.x0,
                                     .from_y = (uint32_t)plan->source.y0,
                                     .pixels = chunk->layer_pixels,
                                     .painted = chunk->layer_valid};
    memset(chunk->layer_valid, 0, (size_t)cogpu_box_pixels(plan->target) * plan->band_count);
    return cogpu_cpu_rectangle(chunk->read->job->workers[0], &job, error);
}

static cogpu_status add_on_host(struct cogpu_mosaic_chunk *chunk, const cogpu_composition *part,
                                const cogpu_composite_layer *layer, cogpu_error *error) {
    (void)error;
    cogpu_cpu_composite_add(chunk->read->job->pool, part, layer);
    return COGPU_OK;
}

static cogpu_status finish_composition(struct cogpu_mosaic_chunk *chunk, cogpu_error *error) {
    (void)error;
    cogpu_cpu_composite_finish(chunk->read->job->pool, &chunk->composition);
    return COGPU_OK;
}

/* ---- convert ------------------------------------------------------------------------------- */

cogpu_read_plan cogpu_chunk_plan(const struct cogpu_mosaic_chunk *chunk, cogpu_storage *storage) {
    const struct cogpu_mosaic_read *read = chunk->read;
    cogpu_type type = read->is_validity ? COGPU_TYPE_U8 : chunk->pixels.type;
    uint32_t size = (uint32_t)cogpu_type_bytes(type), bands = read->window->plan.band_count;
    cogpu_read_plan plan = read->window->plan;
    *storage = (cogpu_storage){.type = type,
                               .bits = 8 * size,
                               .predictor = 1,
                               .big_endian = COGPU_HOST_BIG_ENDIAN,
                               .bands = bands,
                               .planes = bands > 1 ? bands : 1,
                               .block_width = chunk->pixels.width,
                               .block_height = chunk->pixels.height,
                               .format = {.samples = 1,
                                          .bits = 8 * size,
                                          .type = type,
                                          .row_bytes = (size_t)chunk->pixels.width * size}};
    plan.storage = storage;
    return plan;
}

/* A group of rows of one band. */
struct convert_job {
    struct cogpu_mosaic_chunk *chunk;
    cogpu_read_plan plan;
    uint32_t groups; /* of a band */
};

static void convert_row(const struct convert_job *job, uint32_t band, uint32_t y) {
    const struct cogpu_mosaic_chunk *chunk = job->chunk;
    const cogpu_raster *raster = &chunk->read->window->raster;
    const cogpu_read_plan *plan = &job->plan;
    const uint8_t *from = chunk->read->is_validity
                              ? chunk->composition.valid
                              : (uint8_t *)chunk->pixels.data + band * chunk->pixels.stride_band;
    from += y * plan->storage->format.row_bytes;
    uint8_t *to = (uint8_t *)raster->data + (int64_t)band * raster->stride_band +
                  (chunk->box.y0 - plan->y + y) * raster->stride_y +
                  (chunk->box.x0 - plan->x) * raster->stride_x;
    uint8_t converted[1024 * sizeof(double)];
    size_t size = cogpu_type_bytes(raster->type);
    for (uint32_t x = 0, count; x < chunk->pixels.width; x += count) {
        count = min_u32(chunk->pixels.width - x, 1024);
        cogpu_cpu_convert(plan, band, from + (size_t)x * cogpu_type_bytes(plan->storage->type),
                          count, raster->type, converted);
        cogpu_cpu_copy_samples(to + (int64_t)x * raster->stride_x, raster->stride_x, converted,
                               (int64_t)size, count, size);
    }
}

static void convert_rows(void *argument, uint32_t worker, uint64_t index) {
    const struct convert_job *job = argument;
    uint32_t band = (uint32_t)(index / job->groups);
    uint32_t first = (uint32_t)(index % job->groups) * CONVERT_ROWS;
    uint32_t end = min_u32(first + CONVERT_ROWS, job->chunk->pixels.height);
    (void)worker;
    for (uint32_t y = first; y < end; y++)
        convert_row(job, band, y);
}

static cogpu_status convert_on_host(struct cogpu_mosaic_chunk *chunk, cogpu_error *error) {
    cogpu_storage storage;
    const struct cogpu_read_job *read_job = chunk->read->job;
    struct convert_job job = {.chunk = chunk, .plan = cogpu_chunk_plan(chunk, &storage)};
    (void)error;
    job.groups = (chunk->pixels.height + CONVERT_ROWS - 1) / CONVERT_ROWS;
    cogpu_pool_run(read_job->pool, read_job->worker_count,
                   (uint64_t)job.groups * job.plan.band_count, convert_rows, &job);
    return COGPU_OK;
}

const struct cogpu_chunk_steps cogpu_chunk_steps_on_host = {.count_bytes = count_no_bytes,
                                                            .open = open_memory,
                                                            .close = close_memory,
                                                            .prepare = copy_fill,
                                                            .begin = begin_composition,
                                                            .warp = warp_on_host,
                                                            .rectangle = apply_rectangle,
                                                            .add = add_on_host,
                                                            .finish = finish_composition,
                                                            .convert = convert_on_host};
