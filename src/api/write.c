/*
 * One writer for all files. Its steps:
 *
 *     open      plan (plan/write_plan.c), directories (write_tags.c), sink, memory
 *     push      rows to level 0; full rows of blocks are cut and set on their way, by which they
 *               are encoded and given to the sink or a spill while the caller goes on; and
 *               shrunk into the next level                      (write_rows.c, write_blocks.c)
 *     close     places of all blocks; header, directories and spills in the file's order; commit
 *
 * A COG:   header, ghost area, directories, arrays, blocks from the smallest level to the largest.
 * Others:  header, blocks of level 0, then of the others from large to small, directories, arrays.
 */
#include "api/writer.h"

#include "base/checked.h"
#include "io/url.h"

#include <assert.h>
#include <string.h>

/* ---- open ---------------------------------------------------------------------------------- */

static uint32_t ghost_of(const cogpu_write_plan *plan) {
    uint32_t ghost = COGPU_GHOST_PRESENT | COGPU_GHOST_IFDS_BEFORE_DATA | COGPU_GHOST_ROW_MAJOR |
                     COGPU_GHOST_LEADER | COGPU_GHOST_TRAILER;
    if (plan->planes > 1)
        ghost |= COGPU_GHOST_TILE_INTERLEAVED;
    else if (plan->has_mask && !plan->is_sparse) /* for each block has one: GDAL looks behind it */
        ghost |= COGPU_GHOST_MASK_INTERLEAVED;
    return plan->is_cog ? ghost : 0;
}

static size_t write_header(const cogpu_writer *writer, uint64_t first_directory, uint8_t *to) {
    const cogpu_write_plan *plan = &writer->plan;
    return cogpu_header_write(plan->is_bigtiff, ghost_of(plan), first_directory, to);
}

/* Where the directories end that begin behind the header: those of a COG, and for other files as
 * much as they take. */
static cogpu_status end_of_directories(cogpu_writer *writer, uint64_t *end, cogpu_error *error) {
    uint8_t header[COGPU_NEW_HEADER_MAX];
    return cogpu_directories_lay_out(writer->directories, writer->directory_count,
                                     writer->plan.is_bigtiff, write_header(writer, 0, header), end,
                                     error);
}

cogpu_status cogpu_writer_check_size(const cogpu_writer *writer, uint64_t end, cogpu_error *error) {
    if (writer->plan.is_bigtiff || end <= UINT32_MAX)
        return COGPU_OK;
    return cogpu_fail(error, COGPU_LIMIT,
                      "the file passes 4 GiB, which takes a BigTIFF: leave `bigtiff` to us");
}

/* Blocks, with header and directories that end there, of which each begins at an even offset. */
static uint64_t most_of_file(const cogpu_writer *writer, uint64_t end) {
    uint64_t most;
    return checked_add(writer->plan.most_bytes, end + writer->directory_count, &most) ? most
                                                                                      : UINT64_MAX;
}

/* Decides for BigTIFF where the file could get too large, before its first byte; where it may be
 * none and is surely too large, there is no file. */
static cogpu_status lay_out(cogpu_writer *writer, const cogpu_profile *profile,
                            cogpu_error *error) {
    uint64_t end = 0;
    bool is_open = profile->bigtiff == COGPU_BIGTIFF_AUTO;
    cogpu_status status = end_of_directories(writer, &end, error);
    if (is_open && (status == COGPU_LIMIT || most_of_file(writer, end) > UINT32_MAX)) {
        writer->plan.is_bigtiff = true;
        status = end_of_directories(writer, &end, error);
    }
    TRY(status);
    TRY(cogpu_writer_check_size(writer, end + writer->plan.least_bytes, error));
    uint8_t header[COGPU_NEW_HEADER_MAX];
    writer->end = writer->plan.is_cog ? end : write_header(writer, 0, header);
    writer->most = most_of_file(writer, end);
    return COGPU_OK;
}

/* As many threads as asked for, but no more than the pool has. */
static cogpu_status open_threads(cogpu_writer *writer, const cogpu_profile *profile,
                                 cogpu_error *error) {
    cogpu_context *context = writer->context = profile->context;
    uint32_t asked = profile->threads ? profile->threads : cogpu_processors();
    if (context)
        writer->pool = context->pool;
    else
        TRY(cogpu_pool_open(asked, &writer->pool, error));
    uint32_t threads = cogpu_pool_threads(writer->pool);
    if (profile->threads && profile->threads < threads)
        threads = profile->threads;
    TRY(cogpu_arena_take(&writer->arena, threads, sizeof *writer->seats, &writer->seats, error));
    while (writer->seat_count < threads) {
        cogpu_seat *seat = cogpu_context_seat(context);
        if (!seat)
            return cogpu_fail(error, COGPU_MEMORY, "out of memory for the threads");
        writer->seats[writer->seat_count++] = seat;
    }
    return COGPU_OK;
}

/* Of all levels, planes and masks. */
static uint64_t blocks_of(const cogpu_write_plan *plan) {
    uint64_t blocks = 0;
    for (uint32_t i = 0; i < plan->level_count; i++)
        blocks += (uint64_t)plan->levels[i].across * plan->levels[i].down *
                  (plan->planes + plan->has_mask);
    return blocks;
}

static cogpu_status open_writer(cogpu_writer *writer, const cogpu_sink *sink,
                                const cogpu_profile *profile, cogpu_error *error) {
    cogpu_http *http = NULL;
    TRY(cogpu_plan_write(profile, &writer->plan, error));
    writer->device = profile->device;
    writer->device_index = profile->device_index;
    TRY(cogpu_writer_describe(writer, profile, error));
    TRY(lay_out(writer, profile, error));
    TRY(cogpu_writer_plan_shrinks(writer, profile, error));
    cogpu_meter_open(&writer->meter, profile->progress, profile->progress_user,
                     blocks_of(&writer->plan));
    TRY(open_threads(writer, profile, error));
    TRY(cogpu_writer_open_line(writer, error));
    if (sink->path && cogpu_url_is(sink->path))
        TRY(cogpu_context_http(profile->context, &http, error));
    TRY(cogpu_out_open(sink, http, &writer->out, error));
    cogpu_out_set_meter(writer->out, &writer->meter);
    cogpu_out_expect(writer->out, writer->most);
    return cogpu_writer_open_rows(writer, error);
}

static cogpu_status make_writer(const cogpu_sink *sink, const cogpu_profile *profile,
                                cogpu_writer **made, cogpu_error *error) {
    if (!sink || !profile)
        return cogpu_fail(error, COGPU_ARGUMENT, "a writer needs a sink and a profile");
    cogpu_writer *writer = *made = cogpu_allocate(sizeof *writer);
    if (!writer)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for a writer");
    memset(writer, 0, sizeof *writer);
    cogpu_arena_open(&writer->arena, UINT64_MAX);
    return open_writer(writer, sink, profile, error);
}

cogpu_status cogpu_writer_open(const cogpu_sink *sink, const cogpu_profile *profile,
                               cogpu_writer **out, cogpu_error *error) {
    cogpu_writer *writer = NULL;
    cogpu_status status =
        out ? make_writer(sink, profile, &writer, error)
            : cogpu_fail(error, COGPU_ARGUMENT, "cogpu_writer_open needs a place for the writer");
    if (status != COGPU_OK) {
        bool is_told = writer && writer->out;
        cogpu_writer_abort(writer);
        if (!is_told && sink && sink->abort)
            sink->abort(sink->user);
        writer = NULL;
    }
    if (out)
        *out = writer;
    return status;
}

/* ---- push ---------------------------------------------------------------------------------- */

/* The swath must fit the image. */
static cogpu_status check_swath(const cogpu_writer *writer, const char *what, cogpu_type type,
                                uint32_t bands, cogpu_raster *rows, cogpu_error *error) {
    const cogpu_grid *grid = &writer->plan.levels[0];
    if (!rows->data || rows->height == 0)
        return cogpu_fail(error, COGPU_ARGUMENT, "the %s has no rows", what);
    if (rows->type != type || rows->bands != bands || rows->width != grid->width)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "the %s has %u bands of %s, %u pixels wide; %u of %s, %u wide are due",
                          what, rows->bands, cogpu_type_name(rows->type), rows->width, bands,
                          cogpu_type_name(type), grid->width);
    if (rows->height > grid->height - writer->rows)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "the %s has %u rows, and %u of %u are left to write", what, rows->height,
                          grid->height - writer->rows, grid->height);
    return cogpu_raster_set_strides(rows, error);
}

/* Rows of the writer's device are used in the order of its streams. */
static cogpu_status take_in_order(cogpu_writer *writer, const cogpu_raster *rows,
                                  const cogpu_raster *mask, cogpu_error *error) {
    const cogpu_raster *both[] = {rows, mask};
    for (uint32_t i = 0; i < 2; i++)
        if (both[i]->device != COGPU_CPU)
            TRY(cogpu_gpu_writer_begin(writer->gpu_writer, both[i], error));
    TRY(cogpu_writer_take(writer, rows, mask, error));
    for (uint32_t i = 0; i < 2; i++)
        if (both[i]->device != COGPU_CPU)
            TRY(cogpu_gpu_writer_end(writer->gpu_writer, both[i], error));
    return COGPU_OK;
}

/* On a device, and not on the one where the writer works. */
static bool is_elsewhere(const cogpu_writer *writer, const cogpu_raster *rows) {
    return rows->device != COGPU_CPU && !writer->engine->has(writer, rows);
}

/* What the engine cannot reach is brought to the host. What fails leaves nothing under way that has
 * to do with the caller's memory. */
static cogpu_status take(cogpu_writer *writer, const cogpu_raster *rows, const cogpu_raster *mask,
                         cogpu_error *error) {
    if (is_elsewhere(writer, rows) || is_elsewhere(writer, mask))
        return cogpu_writer_take_down(writer, rows, mask, error);
    cogpu_status status = take_in_order(writer, rows, mask, error);
    if (status != COGPU_OK)
        cogpu_gpu_writer_finish(writer->gpu_writer);
    return status;
}

static cogpu_status push(cogpu_writer *writer, const cogpu_raster *given,
                         const cogpu_raster *given_mask, cogpu_error *error) {
    const cogpu_write_plan *plan = &writer->plan;
    if (!given || (given_mask != NULL) != plan->has_mask)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          plan->has_mask ? "each swath needs a mask, as the profile says"
                                         : "the profile has no mask: set `mask` to write one");
    cogpu_raster rows = *given, mask = {0};
    TRY(check_swath(writer, "swath", plan->type, plan->bands, &rows, error));
    if (given_mask) {
        mask = *given_mask;
        TRY(check_swath(writer, "mask", COGPU_U8, 1, &mask, error));
        if (mask.height != rows.height)
            return cogpu_fail(error, COGPU_ARGUMENT, "the mask has %u rows, the swath %u",
                              mask.height, rows.height);
    }
    if (!writer->engine)
        TRY(cogpu_writer_open_engine(writer, &rows, error));
    TRY(take(writer, &rows, &mask, error));
    writer->rows += rows.height;
    return COGPU_OK;
}

cogpu_status cogpu_writer_push(cogpu_writer *writer, const cogpu_raster *rows,
                               const cogpu_raster *mask, cogpu_error *error) {
    if (!writer)
        return cogpu_fail(error, COGPU_ARGUMENT, "there is no writer to push to");
    if (writer->failed != COGPU_OK)
        return cogpu_fail(error, writer->failed, "the writer failed before: nothing can follow");
    if (writer->is_put)
        return cogpu_fail(error, COGPU_ARGUMENT, "a writer that was put to takes no rows");
    writer->failed = push(writer, rows, mask, error);
    return writer->failed;
}

/* ---- close --------------------------------------------------------------------------------- */

/* The order in which the blocks of levels stand in the file. */
static struct cogpu_new_level *level_in_order(cogpu_writer *writer, uint32_t number) {
    uint32_t last = writer->plan.level_count - 1;
    return &writer->levels[writer->plan.is_cog ? last - number : number];
}

static void move_places(const struct cogpu_places *places, uint64_t count, uint64_t by) {
    for (uint64_t i = 0; i < count; i++)
        if (places->bytes[i])
            places->offsets[i] += by;
}

/* Level 0 moves to where it belongs, now that overviews are complete. */
static cogpu_status close_gap(cogpu_writer *writer, cogpu_error *error) {
    const struct cogpu_new_level *level = &writer->levels[0];
    const uint64_t blocks = (uint64_t)level->grid->across * level->grid->down;
    uint64_t at = writer->spills_at, bytes = writer->end - writer->gap_end;
    uint8_t *room = NULL;
    for (uint32_t i = 1; i < writer->plan.level_count; i++)
        at += writer->levels[i].spilled;
    assert(at <= writer->gap_end);
    const uint64_t gap = writer->gap_end - at;
    TRY(cogpu_out_room(writer->out, at, (size_t)(gap + bytes), &room, error));
    if (room)
        cogpu_writer_move_down(writer, room, (size_t)gap, (size_t)bytes);
    else
        cogpu_out_move_down(writer->out, writer->gap_end, at);
    move_places(&level->pixels, blocks * writer->plan.planes, 0 - gap);
    if (writer->plan.has_mask)
        move_places(&level->masks, blocks, 0 - gap);
    writer->end = at + bytes;
    writer->gap_end = 0;
    cogpu_out_set_end(writer->out, writer->end);
    return COGPU_OK;
}

/* What was spilled gets its place in the file. *end is the end of all. */
static cogpu_status place_spills(cogpu_writer *writer, uint64_t *end, cogpu_error *error) {
    if (!writer->spills_at)
        writer->spills_at = writer->end;
    *end = writer->spills_at;
    for (uint32_t i = 0; i < writer->plan.level_count; i++) {
        struct cogpu_new_level *level = level_in_order(writer, i);
        uint64_t blocks = (uint64_t)level->grid->across * level->grid->down;
        if (writer->is_put) {
            TRY(cogpu_writer_place_put(writer, level, end, error));
            continue;
        }
        if (!level->spill)
            continue;
        move_places(&level->pixels, blocks * writer->plan.planes, *end);
        if (writer->plan.has_mask)
            move_places(&level->masks, blocks, *end);
        *end += level->spilled;
    }
    *end = *end > writer->end ? *end : writer->end;
    return cogpu_writer_check_size(writer, *end, error);
}

static cogpu_status copy_spill(cogpu_writer *writer, const struct cogpu_new_level *level,
                               uint64_t at, cogpu_error *error) {
    const uint8_t *from = cogpu_spill_memory(level->spill);
    uint8_t *to = NULL;
    if (from)
        TRY(cogpu_out_room(writer->out, at, (size_t)level->spilled, &to, error));
    if (!to)
        return cogpu_spill_copy(level->spill, 0, level->spilled, writer->out, at, error);
    cogpu_writer_copy(writer, to, from, (size_t)level->spilled);
    return COGPU_OK;
}

static cogpu_status copy_spills(cogpu_writer *writer, cogpu_error *error) {
    uint64_t at = writer->spills_at;
    for (uint32_t i = 0; i < writer->plan.level_count; i++) {
        struct cogpu_new_level *level = level_in_order(writer, i);
        if (writer->is_put) {
            TRY(cogpu_writer_copy_put(writer, level, error));
            continue;
        }
        if (!level->spill)
            continue;
        TRY(copy_spill(writer, level, at, error));
        at += level->spilled;
    }
    writer->end = at > writer->end ? at : writer->end;
    return COGPU_OK;
}

/* Tells the directories where their blocks are. They come in the order of write_tags.c. */
static void place_blocks(cogpu_writer *writer) {
    uint32_t levels = writer->plan.level_count, masks = writer->plan.has_mask;
    for (uint32_t i = 0; i < levels; i++) {
        const struct cogpu_new_level *level = &writer->levels[i];
        cogpu_new_directory *pixels = &writer->directories[i == 0 ? 0 : i + masks];
        pixels->offsets = level->pixels.offsets;
        pixels->bytes = level->pixels.bytes;
        if (masks) {
            cogpu_new_directory *mask = &writer->directories[i == 0 ? 1 : levels + i];
            mask->offsets = level->masks.offsets;
            mask->bytes = level->masks.bytes;
        }
    }
}

/* The directories from `start` on; *end is where they end. */
static cogpu_status write_directories(cogpu_writer *writer, uint64_t start, uint64_t *end,
                                      cogpu_error *error) {
    uint32_t count = writer->directory_count;
    bool bigtiff = writer->plan.is_bigtiff;
    TRY(cogpu_directories_lay_out(writer->directories, count, bigtiff, start, end, error));
    size_t bytes = (size_t)(*end - start);
    uint8_t *memory = cogpu_allocate(bytes);
    if (!memory)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory: %zu bytes for directories", bytes);
    cogpu_directories_write(writer->directories, count, bigtiff, start, *end, memory);
    cogpu_status status = cogpu_out_write(writer->out, start, memory, bytes, error);
    cogpu_release(memory);
    return status;
}

static cogpu_status finish_cog(cogpu_writer *writer, cogpu_error *error) {
    uint8_t header[COGPU_NEW_HEADER_MAX];
    size_t bytes = write_header(writer, 0, header);
    uint64_t end = 0;
    if (writer->gap_end)
        TRY(close_gap(writer, error));
    TRY(place_spills(writer, &end, error));
    place_blocks(writer);
    bytes = write_header(writer, bytes, header);
    TRY(cogpu_out_write(writer->out, 0, header, bytes, error));
    TRY(write_directories(writer, bytes, &end, error));
    return copy_spills(writer, error);
}

static cogpu_status finish_plain(cogpu_writer *writer, cogpu_error *error) {
    uint8_t header[COGPU_NEW_HEADER_MAX] = {0};
    uint64_t end = 0;
    TRY(place_spills(writer, &end, error));
    uint64_t start = end + end % 2;
    place_blocks(writer);
    TRY(cogpu_out_write(writer->out, 0, header, write_header(writer, start, header), error));
    TRY(copy_spills(writer, error));
    if (start > end)
        TRY(cogpu_out_write(writer->out, end, "", 1, error));
    return write_directories(writer, start, &writer->end, error);
}

static cogpu_status finish(cogpu_writer *writer, cogpu_error *error) {
    const cogpu_grid *grid = &writer->plan.levels[0];
    if (writer->failed != COGPU_OK)
        return cogpu_fail(error, writer->failed, "the writer failed before: there is no file");
    if (!writer->is_put && writer->rows < grid->height)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "%u of %u rows were pushed: there is no file without the others",
                          writer->rows, grid->height);
    TRY(writer->is_put ? cogpu_writer_drain(writer, error) : writer->engine->drain(writer, error));
    TRY(writer->plan.is_cog ? finish_cog(writer, error) : finish_plain(writer, error));
    TRY(cogpu_writer_check_size(writer, writer->end, error));
    cogpu_out *out = writer->out;
    writer->out = NULL;
    return cogpu_out_commit(out, error);
}

cogpu_status cogpu_writer_close(cogpu_writer *writer, cogpu_written *written, cogpu_error *error) {
    if (!writer)
        return cogpu_fail(error, COGPU_ARGUMENT, "there is no writer to close");
    cogpu_status status = finish(writer, error);
    if (status == COGPU_OK && written) {
        *written = writer->written;
        written->bytes = writer->end;
        written->levels = writer->plan.level_count;
        written->bigtiff = writer->plan.is_bigtiff;
    }
    cogpu_writer_abort(writer);
    return status;
}

void cogpu_writer_abort(cogpu_writer *writer) {
    if (!writer)
        return;
    cogpu_writer_close_line(writer);
    if (writer->engine)
        writer->engine->close(writer);
    for (uint32_t i = 0; i < COGPU_LEVELS_MAX; i++)
        cogpu_spill_close(writer->levels[i].spill);
    cogpu_out_abort(writer->out);
    for (uint32_t i = 0; i < writer->seat_count; i++)
        cogpu_context_give_back(writer->context, writer->seats[i]);
    if (!writer->context)
        cogpu_pool_close(writer->pool);
    cogpu_meter_close(&writer->meter);
    cogpu_arena_close(&writer->arena);
    cogpu_release(writer);
}

cogpu_status cogpu_write(const cogpu_sink *sink, const cogpu_profile *profile,
                         const cogpu_raster *raster, const cogpu_raster *mask,
                         cogpu_written *written, cogpu_error *error) {
    cogpu_writer *writer = NULL;
    TRY(cogpu_writer_open(sink, profile, &writer, error));
    cogpu_status status = cogpu_writer_push(writer, raster, mask, error);
    if (status == COGPU_OK)
        return cogpu_writer_close(writer, written, error);
    cogpu_writer_abort(writer);
    return status;
}
