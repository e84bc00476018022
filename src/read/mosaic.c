/* Divides a window of a mosaic into chunks and plans their layers: see mosaic.h. */
#include "read/mosaic_steps.h"

#include "base/checked.h"
#include "base/math.h"

#include <string.h>

/* Bytes of a chunk in host memory, and the smallest side of a chunk that is divided. Chunks are
 * divided at multiples of CHUNK_STEP pixels if they are large enough. */
enum { HOST_CHUNK_BYTES = 48 << 20, CHUNK_SIDE_MIN = 16, CHUNK_STEP = 512 };

/* ---- layers of a chunk --------------------------------------------------------------------- */

static bool touches(const struct cogpu_mosaic_read *read, uint32_t member, cogpu_box box) {
    const cogpu_mosaic_member *self = &read->mosaic->members[member];
    return self->status == COGPU_OK &&
           !cogpu_box_is_empty(cogpu_box_intersect(
               box, cogpu_mosaic_member_extent(read->mosaic, self, read->level)));
}

static uint32_t count_members(const struct cogpu_mosaic_read *read, cogpu_box box) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < read->mosaic->count; i++)
        count += touches(read, i, box);
    return count;
}

static cogpu_status plan_layer(const struct cogpu_mosaic_chunk *chunk, uint32_t member,
                               struct cogpu_chunk_layer *layer, cogpu_arena *arena,
                               cogpu_error *error) {
    const struct cogpu_mosaic_read *read = chunk->read;
    const cogpu_pyramid *pyramid = NULL;
    TRY(cogpu_file_pyramid(layer->file, read->mosaic->members[member].image, &pyramid, error));
    return cogpu_layer_plan(read->mosaic, member, pyramid, &chunk->request, arena, &layer->plan,
                            error);
}

cogpu_status cogpu_mosaic_leave_out(const struct cogpu_mosaic_read *read, uint32_t member,
                                    const cogpu_error *why, cogpu_error *error) {
    cogpu_result *result = read->window->result;
    cogpu_error named = *why;
    cogpu_mosaic_name_member(&read->mosaic->members[member], member, &named);
    if (!read->mosaic->skips_bad_members || why->status == COGPU_OUT_OF_MEMORY ||
        why->status == COGPU_CANCELLED || why->status == COGPU_DEVICE_ERROR) {
        if (error)
            *error = named;
        return why->status;
    }
    if (result->bad_sources++ == 0)
        result->first_bad = named;
    return COGPU_OK;
}

static cogpu_status add_layer(struct cogpu_mosaic_chunk *chunk, uint32_t member,
                              cogpu_error *error) {
    const cogpu_mosaic *mosaic = chunk->read->mosaic;
    struct cogpu_chunk_layer *layer = &chunk->layers[chunk->layer_count];
    cogpu_error why;
    cogpu_error_clear(&why);
    cogpu_status status = cogpu_mosaic_acquire(mosaic, member, &layer->file, &why);
    if (status != COGPU_OK)
        return cogpu_mosaic_leave_out(chunk->read, member, &why, error);
    status = plan_layer(chunk, member, layer, &chunk->arena, &why);
    if (status == COGPU_OK && layer->plan.kind != COGPU_LAYER_NONE) {
        cogpu_arena_open(&layer->arena, UINT64_MAX);
        chunk->layer_count++;
        return COGPU_OK;
    }
    cogpu_mosaic_release(mosaic, member);
    return status == COGPU_OK ? COGPU_OK : cogpu_mosaic_leave_out(chunk->read, member, &why, error);
}

static cogpu_status plan_layers(struct cogpu_mosaic_chunk *chunk, cogpu_error *error) {
    const struct cogpu_mosaic_read *read = chunk->read;
    uint32_t count = count_members(read, chunk->box);
    TRY(cogpu_arena_allocate(&chunk->arena, count, sizeof *chunk->layers, &chunk->layers, error));
    for (uint32_t i = 0; i < read->mosaic->count && count > 0; i++)
        if (touches(read, i, chunk->box))
            TRY(add_layer(chunk, i, error));
    return COGPU_OK;
}

static void release_layers(struct cogpu_mosaic_chunk *chunk) {
    for (uint32_t i = 0; i < chunk->layer_count; i++) {
        cogpu_mosaic_release(chunk->read->mosaic, chunk->layers[i].plan.member);
        cogpu_arena_close(&chunk->layers[i].arena);
    }
    chunk->layer_count = 0;
}

/* ---- direct layers ------------------------------------------------------------------------- */

/* With more layers than this, all are composed: comparing pairs would take too long. */
enum { DIRECT_LAYERS_MAX = 256 };

static bool overlaps_another(const struct cogpu_mosaic_chunk *chunk, uint32_t index) {
    for (uint32_t i = 0; i < chunk->layer_count; i++)
        if (i != index && !cogpu_box_is_empty(cogpu_box_intersect(
                              chunk->layers[i].plan.target, chunk->layers[index].plan.target)))
            return true;
    return false;
}

static bool has_extra_bands(const cogpu_layer *plan) {
    return plan->targets[plan->band_count - 1] == COGPU_LAYER_NO_BAND;
}

/* Whether bands of the layer are those of the chunk, in the same order. */
static bool has_all_bands(const struct cogpu_mosaic_read *read, const cogpu_layer *plan) {
    for (uint32_t i = 0; i < plan->band_count; i++)
        if (plan->targets[i] != i)
            return false;
    return plan->band_count == read->band_count;
}

static void choose_direct_layers(struct cogpu_mosaic_chunk *chunk) {
    const struct cogpu_mosaic_read *read = chunk->read;
    bool can_be_direct = !read->is_validity && read->mosaic->composite != COGPU_COMPOSITE_COUNT &&
                         chunk->layer_count <= DIRECT_LAYERS_MAX;
    chunk->is_composed = read->is_validity; /* without any layer, too */
    for (uint32_t i = 0; i < chunk->layer_count; i++) {
        struct cogpu_chunk_layer *layer = &chunk->layers[i];
        layer->is_direct = can_be_direct && layer->plan.kind != COGPU_LAYER_RECTANGLE &&
                           !has_extra_bands(&layer->plan) && has_all_bands(read, &layer->plan) &&
                           !overlaps_another(chunk, i);
        chunk->is_composed |= !layer->is_direct;
    }
}

/* Composed layers are warped, but complex samples: they are placed by the rectangle of their plan.
 */
static void place_complex_layers(struct cogpu_mosaic_chunk *chunk) {
    for (uint32_t i = 0; i < chunk->layer_count; i++) {
        struct cogpu_chunk_layer *layer = &chunk->layers[i];
        if (!layer->is_direct && cogpu_type_is_complex(layer->plan.warp.from_type))
            layer->plan.kind = COGPU_LAYER_RECTANGLE;
    }
}

/* Methods that end with a pass over all pixels need all layers. */
static void compose_all_layers(struct cogpu_mosaic_chunk *chunk) {
    bool has_pass = chunk->read->mosaic->composite == COGPU_COMPOSITE_MEAN ||
                    chunk->read->mosaic->composite == COGPU_COMPOSITE_MEDIAN;
    for (uint32_t i = 0; chunk->is_composed && has_pass && i < chunk->layer_count; i++)
        chunk->layers[i].is_direct = false;
}

/* ---- chunks -------------------------------------------------------------------------------- */

static uint64_t chunk_bytes(const struct cogpu_mosaic_chunk *chunk) {
    uint64_t bytes = cogpu_chunk_compose_bytes(chunk);
    for (uint32_t i = 0; i < chunk->layer_count; i++)
        bytes += cogpu_layer_bytes(chunk->read->mosaic, &chunk->layers[i].plan);
    return bytes;
}

static bool is_divisible(cogpu_box box) {
    return box.x1 - box.x0 > CHUNK_SIDE_MIN || box.y1 - box.y0 > CHUNK_SIDE_MIN;
}

/* The middle of a side, at a multiple of CHUNK_STEP if there is one. */
static int64_t divide_side(int64_t first, int64_t end) {
    int64_t middle = first + (end - first) / 2;
    int64_t aligned = middle - middle % CHUNK_STEP;
    return aligned > first ? aligned : middle;
}

static void divide_box(cogpu_box box, cogpu_box halves[2]) {
    halves[0] = halves[1] = box;
    if (box.x1 - box.x0 > box.y1 - box.y0)
        halves[0].x1 = halves[1].x0 = divide_side(box.x0, box.x1);
    else
        halves[0].y1 = halves[1].y0 = divide_side(box.y0, box.y1);
}

static cogpu_status check_memory(const struct cogpu_mosaic_read *read, uint64_t bytes,
                                 cogpu_error *error) {
    const cogpu_limits *limits = &read->window->plan.storage->tiff->limits;
    if (bytes <= limits->working_memory_bytes)
        return COGPU_OK;
    return cogpu_fail(error, COGPU_LIMIT_EXCEEDED,
                      "a few pixels of the mosaic need %llu MiB of its sources, which have no "
                      "overviews that would do; raise `working_memory_bytes` to go on",
                      (unsigned long long)(bytes >> 20));
}

static cogpu_status report_chunk(struct cogpu_mosaic_read *read, cogpu_box box,
                                 cogpu_error *error) {
    struct cogpu_read_window *window = read->window;
    read->done_pixels += cogpu_box_pixels(box);
    uint64_t blocks =
        (uint64_t)((double)window->plan.count * (double)read->done_pixels / (double)read->pixels);
    return cogpu_meter_move_to(&window->meter, min_u64(blocks, window->plan.count))
               ? COGPU_OK
               : cogpu_fail_cancelled(error);
}

/* A few small VRTs that name each other several times would take for ever. */
static cogpu_status count_nested_layers(const struct cogpu_mosaic_read *read, uint32_t count,
                                        cogpu_error *error) {
    uint64_t most = read->window->plan.storage->tiff->limits.sources;
    read->job->nested_layers += read->mosaic->is_nested ? count : 0;
    if (read->job->nested_layers <= most)
        return COGPU_OK;
    return cogpu_fail(
        error, COGPU_LIMIT_EXCEEDED,
        "a read of nested VRTs needs more than %llu sources; raise `sources` to go on",
        (unsigned long long)most);
}

/* *is_too_large: nothing was read, since the chunk has to be divided. */
static cogpu_status read_chunk(struct cogpu_mosaic_read *read, struct cogpu_mosaic_chunk *chunk,
                               bool *is_too_large, cogpu_error *error) {
    TRY(plan_layers(chunk, error));
    choose_direct_layers(chunk);
    compose_all_layers(chunk);
    place_complex_layers(chunk);
    uint64_t bytes = chunk_bytes(chunk);
    *is_too_large = bytes > read->budget && is_divisible(chunk->box);
    if (*is_too_large)
        return COGPU_OK;
    TRY(check_memory(read, bytes, error));
    TRY(count_nested_layers(read, chunk->layer_count, error));
    read->window->result->sources += chunk->layer_count;
    TRY(cogpu_chunk_execute(chunk, error));
    if (chunk->needs_exact)
        return COGPU_OK;
    return report_chunk(read, chunk->box, error);
}

static cogpu_layer_request request_of_box(const struct cogpu_mosaic_read *read, cogpu_box box,
                                          bool is_exact) {
    return (cogpu_layer_request){.level = read->level,
                                 .target = box,
                                 .bands = read->bands,
                                 .band_count = read->band_count,
                                 .pool = read->job->pool,
                                 .is_exact = is_exact};
}

/* Reads the box as one chunk, unless it is too large. */
static cogpu_status read_as_chunk(struct cogpu_mosaic_read *read, cogpu_box box, bool is_exact,
                                  bool *is_too_large, bool *needs_exact, cogpu_error *error) {
    struct cogpu_mosaic_chunk chunk = {
        .read = read, .box = box, .request = request_of_box(read, box, is_exact)};
    const cogpu_result before = *read->window->result;
    *is_too_large = is_divisible(box) && (cogpu_chunk_compose_bytes(&chunk) > read->budget ||
                                          count_members(read, box) > read->most_files);
    if (*is_too_large)
        return COGPU_OK;
    cogpu_arena_open(&chunk.arena, UINT64_MAX);
    cogpu_status status = read_chunk(read, &chunk, is_too_large, error);
    release_layers(&chunk);
    cogpu_arena_close(&chunk.arena);
    *needs_exact = chunk.needs_exact;
    if (*is_too_large || *needs_exact)
        *read->window->result = before;
    return status;
}

static cogpu_status read_box(struct cogpu_mosaic_read *read, cogpu_box box, cogpu_error *error) {
    bool is_too_large = false, needs_exact = false;
    cogpu_box halves[2];
    TRY(read_as_chunk(read, box, false, &is_too_large, &needs_exact, error));
    if (needs_exact)
        TRY(read_as_chunk(read, box, true, &is_too_large, &needs_exact, error));
    if (!is_too_large)
        return COGPU_OK;
    divide_box(box, halves);
    TRY(read_box(read, halves[0], error));
    return read_box(read, halves[1], error);
}

/* ---- the window ---------------------------------------------------------------------------- */

static uint32_t find_level(const cogpu_mosaic *mosaic, const cogpu_storage *storage) {
    uint32_t level = 0;
    while (mosaic->pyramid->levels[level].storage.width != storage->width ||
           mosaic->pyramid->levels[level].storage.height != storage->height)
        level++;
    return level;
}

/* The window's bands, and the alpha band, which decides about the validity of the others. */
static cogpu_status list_bands(struct cogpu_mosaic_read *read, cogpu_arena *arena,
                               cogpu_error *error) {
    const cogpu_read_plan *plan = &read->window->plan;
    uint8_t(*fill)[16] = NULL;
    read->band_count = read->is_validity ? 1 : plan->band_count;
    TRY(cogpu_arena_allocate(arena, read->band_count, sizeof *read->bands, &read->bands, error));
    /* Layers may have bands more, which become none. */
    TRY(cogpu_arena_allocate(arena,
                             (uint64_t)read->band_count + 1 + read->mosaic->pyramid->info.bands,
                             sizeof *fill, &fill, error));
    for (uint32_t i = 0; i < read->band_count; i++) {
        uint32_t band = read->is_validity ? 1 : cogpu_plan_band(plan, i) + 1;
        read->bands[i] = band;
        cogpu_mosaic_fill_sample(read->mosaic, band, fill[i]);
    }
    read->fill = (const uint8_t(*)[16])fill;
    return COGPU_OK;
}

static uint64_t choose_budget(const struct cogpu_read_job *job,
                              const struct cogpu_read_window *window) {
    uint64_t bytes = window->device ? job->context->device_bytes : HOST_CHUNK_BYTES;
    return min_u64(bytes, window->plan.storage->tiff->limits.working_memory_bytes);
}

cogpu_status cogpu_read_mosaic(struct cogpu_read_job *job, struct cogpu_read_window *window,
                               cogpu_error *error) {
    const cogpu_read_plan *plan = &window->plan;
    const cogpu_box box = {plan->x, plan->y, (int64_t)plan->x + plan->width,
                           (int64_t)plan->y + plan->height};
    struct cogpu_mosaic_read read = {.job = job,
                                     .window = window,
                                     .mosaic = plan->storage->mosaic,
                                     .is_validity = plan->storage->is_validity,
                                     .budget = choose_budget(job, window),
                                     .steps = window->device ? &cogpu_chunk_steps_on_device
                                                             : &cogpu_chunk_steps_on_host,
                                     .most_files = cogpu_mosaic_files_limit(),
                                     .pixels = cogpu_box_pixels(box)};
    cogpu_arena arena;
    read.level = find_level(read.mosaic, plan->storage);
    cogpu_arena_open(&arena, UINT64_MAX);
    cogpu_status status = list_bands(&read, &arena, error);
    if (status == COGPU_OK)
        status = read_box(&read, box, error);
    cogpu_arena_close(&arena);
    window->result->blocks += plan->count;
    return status;
}
