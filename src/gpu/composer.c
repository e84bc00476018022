/* See composer.h. */
#include "gpu/composer.h"

#include "kernels/composite/composite_args.h"
#include "kernels/unpack/unpack_args.h"
#include "kernels/warp/warp_args.h"

/* Device memory of one table. */
struct cogpu_gpu_large_table {
    struct cogpu_gpu_large_table *next;
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
    pthread_mutex_init(&composer->lock, NULL);
    return cogpu_gpu_stream_wait(composer->gpu, composer->stream, before, error);
}

cogpu_status cogpu_gpu_composer_close(cogpu_gpu_composer *composer, cogpu_error *error) {
    cogpu_gpu *gpu = composer->gpu;
    if (!composer->stream)
        return COGPU_OK;
    cogpu_status status = gpu->calls->finish_stream(gpu, composer->stream, error);
    gpu->calls->stream_close(gpu, composer->stream);
    composer->stream = NULL;
    for (; composer->large_tables; composer->large_tables = composer->large_tables->next)
        gpu->calls->release(gpu, composer->large_tables->memory);
    pthread_mutex_destroy(&composer->lock);
    return status;
}

cogpu_status cogpu_gpu_composer_upload(cogpu_gpu_composer *composer, const void *from,
                                       uint64_t bytes, void *to, cogpu_error *error) {
    return composer->gpu->calls->copy_up(composer->gpu, to, from, bytes, composer->stream, error);
}

/* Scratch memory behind the tables before. */
static bool take_scratch(cogpu_gpu_composer *composer, cogpu_gpu_table *table) {
    uint64_t aligned = cogpu_gpu_align(table->bytes);
    pthread_mutex_lock(&composer->lock);
    uint64_t at = composer->scratch_used;
    bool fits = aligned <= composer->scratch_bytes - at;
    composer->scratch_used += fits ? aligned : 0;
    pthread_mutex_unlock(&composer->lock);
    if (fits) {
        table->host = composer->pinned + at;
        table->device = composer->scratch + at;
    }
    return fits;
}

static cogpu_status allocate_table(cogpu_gpu_composer *composer, cogpu_arena *arena,
                                   cogpu_gpu_table *table, cogpu_error *error) {
    struct cogpu_gpu_large_table *large = NULL;
    TRY(cogpu_arena_allocate(arena, 1, sizeof *large, &large, error));
    TRY(cogpu_arena_allocate(arena, table->bytes, 1, &table->host, error));
    TRY(composer->gpu->calls->allocate(composer->gpu, cogpu_gpu_align(table->bytes), &large->memory,
                                       error));
    table->device = large->memory;
    pthread_mutex_lock(&composer->lock);
    large->next = composer->large_tables;
    composer->large_tables = large;
    pthread_mutex_unlock(&composer->lock);
    return COGPU_OK;
}

static cogpu_status take_table(cogpu_gpu_composer *composer, uint64_t bytes, cogpu_arena *arena,
                               cogpu_gpu_table *table, cogpu_error *error) {
    *table = (cogpu_gpu_table){.bytes = bytes};
    return take_scratch(composer, table) ? COGPU_OK : allocate_table(composer, arena, table, error);
}

static cogpu_status upload_table(cogpu_gpu_composer *composer, const cogpu_gpu_table *table,
                                 cogpu_error *error) {
    return cogpu_gpu_composer_upload(composer, table->host, table->bytes, table->device, error);
}

/* ---- layers -------------------------------------------------------------------------------- */

cogpu_status cogpu_gpu_composer_begin(cogpu_gpu_composer *composer,
                                      const cogpu_composition *composition, cogpu_error *error) {
    return cogpu_gpu_composite_begin(composer->gpu, composition, composer->stream, error);
}

cogpu_status cogpu_gpu_composer_fill_table(cogpu_gpu_composer *composer, const cogpu_warp_job *job,
                                           cogpu_arena *arena, cogpu_gpu_table *table,
                                           cogpu_error *error) {
    TRY(take_table(composer, cogpu_gpu_warp_table_bytes(job), arena, table, error));
    cogpu_gpu_warp_fill_table(job, table->host);
    return COGPU_OK;
}

cogpu_status cogpu_gpu_composer_warp(cogpu_gpu_composer *composer, const cogpu_warp_job *job,
                                     const cogpu_gpu_table *table, cogpu_error *error) {
    TRY(upload_table(composer, table, error));
    return cogpu_gpu_warp(composer->gpu, job, table->device, composer->stream, error);
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
    cogpu_gpu_table table;
    *bands = NULL;
    if (count == 0)
        return COGPU_OK;
    TRY(take_table(composer, count * sizeof **bands, composer->arena, &table, error));
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
    cogpu_gpu_table blocks;
    TRY(upload_band_list(composer, plan, &bands, error));
    TRY(cogpu_gpu_describe_pixels(plan, raster, planes->data, NULL, bands, &pixels, error));
    TRY(take_table(composer, plan->band_count * sizeof(struct cogpu_unpack_block), composer->arena,
                   &blocks, error));
    list_planes(plan, planes, blocks.host);
    TRY(upload_table(composer, &blocks, error));
    return cogpu_gpu_unpack(composer->gpu, &pixels, blocks.device, blocks.host, plan->band_count,
                            composer->stream, error);
}
