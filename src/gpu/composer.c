/* See composer.h. */
#include "gpu/composer.h"

#include "kernels/composite/composite_args.h"
#include "kernels/unpack/unpack_args.h"
#include "kernels/warp/warp_args.h"

/* Device memory of one table. */
struct cogpu_gpu_table {
    struct cogpu_gpu_table *next;
    void *memory;
};

uint64_t cogpu_gpu_composer_warp_bytes(uint32_t width, uint32_t height, uint32_t bands) {
    const cogpu_warp warp = {.bands = bands};
    const cogpu_coordinates coordinates = {.across = width / COGPU_CELL_SIDE + 2,
                                           .down = height / COGPU_CELL_SIDE + 2};
    const cogpu_warp_job job = {.warp = &warp, .coordinates = &coordinates};
    return cogpu_gpu_align(cogpu_gpu_warp_table_bytes(&job));
}

uint64_t cogpu_gpu_composer_convert_bytes(const cogpu_read_plan *plan) {
    return cogpu_gpu_align(plan->band_count * sizeof(struct cogpu_unpack_block)) +
           cogpu_gpu_align(cogpu_gpu_bands_listed(plan) * sizeof(struct cogpu_gpu_band)) +
           COGPU_GPU_SLACK_BYTES;
}

cogpu_status cogpu_gpu_composer_open(cogpu_gpu_composer *composer, cogpu_gpu_device *device,
                                     void *before, cogpu_arena *arena, cogpu_error *error) {
    *composer = (cogpu_gpu_composer){.gpu = cogpu_gpu_device_gpu(device), .arena = arena};
    TRY(composer->gpu->calls->stream_open(composer->gpu, false, &composer->stream, error));
    return cogpu_gpu_stream_wait(composer->gpu, composer->stream, before, error);
}

cogpu_status cogpu_gpu_composer_close(cogpu_gpu_composer *composer, cogpu_error *error) {
    cogpu_gpu *gpu = composer->gpu;
    if (!composer->stream)
        return COGPU_OK;
    cogpu_status status = gpu->calls->finish_stream(gpu, composer->stream, error);
    gpu->calls->stream_close(gpu, composer->stream);
    composer->stream = NULL;
    for (; composer->tables; composer->tables = composer->tables->next)
        gpu->calls->release(gpu, composer->tables->memory);
    return status;
}

cogpu_status cogpu_gpu_composer_upload(cogpu_gpu_composer *composer, const void *from,
                                       uint64_t bytes, void *to, cogpu_error *error) {
    return composer->gpu->calls->copy_up(composer->gpu, to, from, bytes, composer->stream, error);
}

/* A table on its way: filled at `host`, then copied to `device`. */
typedef struct table_copy {
    void *host, *device;
    uint64_t bytes;
} table_copy;

/* Scratch memory behind the tables before, or memory of its own. */
static cogpu_status take_table(cogpu_gpu_composer *composer, uint64_t bytes, table_copy *copy,
                               cogpu_error *error) {
    struct cogpu_gpu_table *table = NULL;
    uint64_t aligned = cogpu_gpu_align(bytes);
    *copy = (table_copy){composer->pinned + composer->scratch_used,
                         composer->scratch + composer->scratch_used, bytes};
    if (aligned <= composer->scratch_bytes - composer->scratch_used) {
        composer->scratch_used += aligned;
        return COGPU_OK;
    }
    TRY(cogpu_arena_allocate(composer->arena, 1, sizeof *table, &table, error));
    TRY(cogpu_arena_allocate(composer->arena, bytes, 1, &copy->host, error));
    TRY(composer->gpu->calls->allocate(composer->gpu, aligned, &table->memory, error));
    table->next = composer->tables;
    composer->tables = table;
    copy->device = table->memory;
    return COGPU_OK;
}

static cogpu_status upload_table(cogpu_gpu_composer *composer, const table_copy *copy,
                                 cogpu_error *error) {
    return cogpu_gpu_composer_upload(composer, copy->host, copy->bytes, copy->device, error);
}

/* ---- layers -------------------------------------------------------------------------------- */

cogpu_status cogpu_gpu_composer_begin(cogpu_gpu_composer *composer,
                                      const cogpu_composition *composition, cogpu_error *error) {
    return cogpu_gpu_composite_begin(composer->gpu, composition, composer->stream, error);
}

cogpu_status cogpu_gpu_composer_warp(cogpu_gpu_composer *composer, const cogpu_warp_job *job,
                                     cogpu_error *error) {
    table_copy table;
    TRY(take_table(composer, cogpu_gpu_warp_table_bytes(job), &table, error));
    cogpu_gpu_warp_fill_table(job, table.host);
    TRY(upload_table(composer, &table, error));
    return cogpu_gpu_warp(composer->gpu, job, table.device, composer->stream, error);
}

cogpu_status cogpu_gpu_composer_add(cogpu_gpu_composer *composer,
                                    const cogpu_composition *composition,
                                    const cogpu_composite_layer *layer, cogpu_error *error) {
    return cogpu_gpu_composite_add(composer->gpu, composition, layer, composer->stream, error);
}

cogpu_status cogpu_gpu_composer_finish(cogpu_gpu_composer *composer,
                                       const cogpu_composition *composition, cogpu_error *error) {
    return cogpu_gpu_composite_finish(composer->gpu, composition, composer->stream, error);
}

/* ---- conversion ---------------------------------------------------------------------------- */

static cogpu_status upload_band_list(cogpu_gpu_composer *composer, const cogpu_read_plan *plan,
                                     const struct cogpu_gpu_band **bands, cogpu_error *error) {
    uint32_t count = cogpu_gpu_bands_listed(plan);
    table_copy table;
    *bands = NULL;
    if (count == 0)
        return COGPU_OK;
    TRY(take_table(composer, count * sizeof **bands, &table, error));
    cogpu_gpu_list_bands(plan, table.host);
    *bands = table.device;
    return upload_table(composer, &table, error);
}

/* A block for each band. */
static void list_planes(const cogpu_read_plan *plan, const cogpu_gpu_planes *planes,
                        struct cogpu_unpack_block *blocks) {
    for (uint32_t i = 0; i < plan->band_count; i++)
        blocks[i] = (struct cogpu_unpack_block){.decoded = i * planes->stride_band,
                                                .target_x = planes->target_x,
                                                .target_y = planes->target_y,
                                                .width = planes->width,
                                                .height = planes->height,
                                                .plane = i};
}

cogpu_status cogpu_gpu_composer_convert(cogpu_gpu_composer *composer, const cogpu_read_plan *plan,
                                        const cogpu_gpu_planes *planes, const cogpu_raster *raster,
                                        cogpu_error *error) {
    const struct cogpu_gpu_band *bands = NULL;
    struct cogpu_gpu_pixels pixels;
    table_copy blocks;
    TRY(upload_band_list(composer, plan, &bands, error));
    TRY(cogpu_gpu_describe_pixels(plan, raster, planes->data, NULL, bands, &pixels, error));
    TRY(take_table(composer, plan->band_count * sizeof(struct cogpu_unpack_block), &blocks, error));
    list_planes(plan, planes, blocks.host);
    TRY(upload_table(composer, &blocks, error));
    return cogpu_gpu_unpack(composer->gpu, &pixels, blocks.device, blocks.host, plan->band_count,
                            composer->stream, error);
}
