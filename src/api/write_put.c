/*
 * Blocks that are encoded elsewhere: takes the pixels of one block, hands on its stored bytes;
 * takes such bytes in any order, keeps them in spills, and puts them in order at the end.
 */
#include "api/writer.h"

#include "image/describe.h"

#include <string.h>

/* ---- what any place must know -------------------------------------------------------------- */

cogpu_status cogpu_plan_profile(const cogpu_profile *profile, cogpu_write_plan *plan,
                                cogpu_error *error) {
    cogpu_arena arena;
    cogpu_tag_list colours = {0};
    uint32_t photometric = 0;
    TRY(cogpu_plan_write(profile, plan, error));
    cogpu_arena_open(&arena, UINT64_MAX);
    cogpu_status status = cogpu_describe_colours(profile, plan->encoding.format.compression, &arena,
                                                 &colours, &photometric, error);
    cogpu_arena_close(&arena);
    if (status == COGPU_OK)
        cogpu_plan_set_photometric(plan, photometric);
    return status;
}

cogpu_status cogpu_check_pixels(cogpu_raster *pixels, cogpu_type type, uint32_t bands,
                                uint32_t width, uint32_t height, cogpu_error *error) {
    if (!pixels->data || pixels->device != COGPU_CPU || pixels->type != type ||
        pixels->bands != bands || pixels->width != width || pixels->height != height)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "%u bands of %s, %u x %u pixels, in memory of the host are due; the "
                          "raster has %u of %s, %u x %u",
                          bands, cogpu_type_name(type), width, height, pixels->bands,
                          cogpu_type_name(pixels->type), pixels->width, pixels->height);
    return cogpu_raster_set_strides(pixels, error);
}

/* ---- encode -------------------------------------------------------------------------------- */

static cogpu_status find_block(const cogpu_write_plan *plan, uint32_t level, cogpu_part part,
                               uint64_t index, cogpu_new_block *block, cogpu_error *error) {
    if (level >= plan->level_count)
        return cogpu_fail(error, COGPU_ARGUMENT, "there is no level %u: the profile has %u", level,
                          plan->level_count);
    const cogpu_grid *grid = &plan->levels[level];
    uint64_t plane_blocks = (uint64_t)grid->across * grid->down;
    bool is_mask = part == COGPU_MASK;
    uint64_t blocks = is_mask ? plane_blocks * plan->has_mask : plane_blocks * plan->planes;
    if (index >= blocks)
        return cogpu_fail(error, COGPU_ARGUMENT, "level %u has no %sblock %llu: it has %llu", level,
                          is_mask ? "mask " : "", (unsigned long long)index,
                          (unsigned long long)blocks);
    uint64_t rest = index % plane_blocks;
    *block = cogpu_plan_new_block(plan, grid, (uint32_t)(rest / grid->across),
                                  (uint32_t)(rest % grid->across),
                                  is_mask ? plan->planes : (uint32_t)(index / plane_blocks));
    return COGPU_OK;
}

/* With the seat's memory. */
static cogpu_status encode(const cogpu_profile *profile, uint32_t level, cogpu_part part,
                           uint64_t index, const cogpu_raster *given, cogpu_seat *seat,
                           cogpu_memory *encoded, cogpu_error *error) {
    cogpu_write_plan plan;
    cogpu_new_block block = {0};
    cogpu_raster pixels = *given;
    TRY(cogpu_plan_profile(profile, &plan, error));
    TRY(find_block(&plan, level, part, index, &block, error));
    bool is_mask = block.plane == plan.planes;
    TRY(cogpu_check_pixels(&pixels, is_mask ? COGPU_U8 : plan.type,
                           is_mask ? 1 : plan.bands / plan.planes, block.width, block.height,
                           error));
    encoded->data = cogpu_allocate((size_t)plan.most_block_bytes);
    if (!encoded->data)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for a block");
    return cogpu_encode_block(seat, &plan, &plan.levels[level], &block, &pixels, encoded->data,
                              (size_t)plan.most_block_bytes, &encoded->bytes, error);
}

cogpu_status cogpu_encode(const cogpu_profile *profile, uint32_t level, cogpu_part part,
                          uint64_t block, const cogpu_raster *pixels, cogpu_memory *encoded,
                          cogpu_error *error) {
    if (!profile || !pixels || !encoded)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "cogpu_encode needs a profile, pixels and a place for the bytes");
    *encoded = (cogpu_memory){0};
    cogpu_seat *seat = cogpu_context_seat(profile->context);
    if (!seat)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory to encode a block");
    cogpu_status status = encode(profile, level, part, block, pixels, seat, encoded, error);
    if (status != COGPU_OK)
        cogpu_memory_release(encoded);
    cogpu_context_give_back(profile->context, seat);
    return status;
}

/* ---- around a block ------------------------------------------------------------------------ */

void cogpu_frame(const void *encoded, size_t bytes, void *framed) {
    uint8_t *payload = (uint8_t *)framed + COGPU_LEADER;
    if (bytes == 0)
        return;
    memcpy(payload, encoded, bytes);
    cogpu_frame_block(payload, bytes);
}

/* ---- put ----------------------------------------------------------------------------------- */

static cogpu_status open_put(cogpu_writer *writer, cogpu_error *error) {
    if (writer->rows > 0)
        return cogpu_fail(error, COGPU_ARGUMENT, "a writer that has rows takes no blocks");
    cogpu_writer_drop_gap(writer);
    for (uint32_t i = 0; !writer->is_put && i < writer->plan.level_count; i++) {
        struct cogpu_new_level *level = &writer->levels[i];
        uint64_t blocks = (uint64_t)level->grid->across * level->grid->down;
        TRY(cogpu_arena_take(&writer->arena, blocks * writer->plan.planes,
                             sizeof *level->pixels.spilled, &level->pixels.spilled, error));
        TRY(cogpu_arena_take(&writer->arena, blocks, sizeof *level->masks.spilled,
                             &level->masks.spilled, error));
        if (!level->spill)
            TRY(cogpu_spill_open(writer->out, cogpu_level_most(&writer->plan, level->grid),
                                 &level->spill, error));
    }
    writer->is_put = true;
    return COGPU_OK;
}

static cogpu_status spill_block(cogpu_writer *writer, struct cogpu_new_level *level,
                                const void *encoded, size_t bytes, uint64_t *offset,
                                cogpu_error *error) {
    struct cogpu_berth *berth = &writer->line.berths[0];
    if (!writer->plan.is_cog)
        return cogpu_spill_add(level->spill, encoded, bytes, offset, error);
    TRY(cogpu_seat_room(&berth->memory, &berth->room, writer->line.berth_bytes, error));
    cogpu_frame(encoded, bytes, berth->memory);
    return cogpu_spill_add(level->spill, berth->memory, bytes + COGPU_FRAME_BYTES, offset, error);
}

/* Of level 0 all is here, or all stands elsewhere: nothing else can follow what the sink gets. */
static cogpu_status check_elsewhere(cogpu_writer *writer, uint32_t number, bool is_elsewhere,
                                    cogpu_error *error) {
    if (is_elsewhere && (number > 0 || !writer->plan.is_cog))
        return cogpu_fail(
            error, COGPU_ARGUMENT,
            "only blocks of level 0 of a COG may stay elsewhere: those of level %u of "
            "this %s need their bytes",
            number, writer->plan.is_cog ? "COG" : "file, which is none,");
    if (number > 0)
        return COGPU_OK;
    *(is_elsewhere ? &writer->is_elsewhere : &writer->is_here) = true;
    if (writer->is_elsewhere && writer->is_here)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "some blocks of level 0 came with their bytes and others stay elsewhere: "
                          "all of them, or none");
    return COGPU_OK;
}

static cogpu_status put(cogpu_writer *writer, uint32_t number, cogpu_part part, uint64_t index,
                        const void *encoded, size_t bytes, cogpu_error *error) {
    cogpu_new_block block;
    uint64_t offset = 0;
    TRY(open_put(writer, error));
    TRY(find_block(&writer->plan, number, part, index, &block, error));
    struct cogpu_new_level *level = &writer->levels[number];
    struct cogpu_places *places = part == COGPU_MASK ? &level->masks : &level->pixels;
    if (places->spilled[index])
        return cogpu_fail(error, COGPU_ARGUMENT, "block %llu of level %u was put before",
                          (unsigned long long)index, number);
    if (bytes > writer->plan.most_block_bytes)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "%zu bytes cannot be a block of this profile, which has %llu at most",
                          bytes, (unsigned long long)writer->plan.most_block_bytes);
    if (bytes == 0 && !writer->plan.is_sparse)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "block %llu of level %u has no bytes: set `sparse` to leave blocks out",
                          (unsigned long long)index, number);
    places->bytes[index] = bytes;
    places->spilled[index] = 1;
    writer->written.blocks++;
    writer->written.sparse_blocks += bytes == 0;
    if (!cogpu_meter_add(&writer->meter, 1))
        return cogpu_fail_cancelled(error);
    if (bytes == 0)
        return COGPU_OK;
    TRY(check_elsewhere(writer, number, !encoded, error));
    if (!encoded)
        return COGPU_OK;
    TRY(spill_block(writer, level, encoded, bytes, &offset, error));
    places->spilled[index] = offset + 1;
    return COGPU_OK;
}

cogpu_status cogpu_writer_put(cogpu_writer *writer, uint32_t level, cogpu_part part, uint64_t block,
                              const void *encoded, size_t bytes, cogpu_error *error) {
    if (!writer)
        return cogpu_fail(error, COGPU_ARGUMENT, "there is no writer to put to");
    if (writer->failed != COGPU_OK)
        return cogpu_fail(error, writer->failed, "the writer failed before: nothing can follow");
    writer->failed = put(writer, level, part, block, encoded, bytes, error);
    return writer->failed;
}

/* ---- in order ------------------------------------------------------------------------------ */

/* Blocks of a level in the file's order, as write_blocks.c has it. */
struct walk {
    const cogpu_write_plan *plan;
    struct cogpu_new_level *level;
    uint64_t number;
};

static bool next_block(struct walk *walk, struct cogpu_places **places, uint64_t *index,
                       bool *is_mask) {
    const cogpu_grid *grid = walk->level->grid;
    uint32_t kinds = walk->plan->planes + walk->plan->has_mask;
    uint64_t tile = walk->number / kinds;
    if (tile == (uint64_t)grid->across * grid->down)
        return false;
    cogpu_new_block block =
        cogpu_plan_new_block(walk->plan, grid, (uint32_t)(tile / grid->across),
                             (uint32_t)(tile % grid->across), (uint32_t)(walk->number % kinds));
    walk->number++;
    *is_mask = block.plane == walk->plan->planes;
    *places = *is_mask ? &walk->level->masks : &walk->level->pixels;
    *index = cogpu_plan_index(walk->plan, grid, &block);
    return true;
}

static uint64_t framed_bytes(const cogpu_write_plan *plan, uint64_t bytes) {
    return bytes == 0 ? 0 : plan->is_cog ? COGPU_LEADER + bytes + COGPU_TRAILER : bytes;
}

cogpu_status cogpu_writer_place_put(cogpu_writer *writer, struct cogpu_new_level *level,
                                    uint64_t *end, cogpu_error *error) {
    struct walk walk = {&writer->plan, level, 0};
    struct cogpu_places *places;
    uint64_t index;
    bool is_mask;
    while (next_block(&walk, &places, &index, &is_mask)) {
        if (!places->spilled[index])
            return cogpu_fail(error, COGPU_ARGUMENT,
                              "%sblock %llu of level %u was not put: there is no file without it",
                              is_mask ? "mask " : "", (unsigned long long)index,
                              (uint32_t)(level - writer->levels));
        places->offsets[index] =
            places->bytes[index] ? *end + (writer->plan.is_cog ? COGPU_LEADER : 0) : 0;
        *end += framed_bytes(&writer->plan, places->bytes[index]);
    }
    return COGPU_OK;
}

cogpu_status cogpu_writer_copy_put(cogpu_writer *writer, struct cogpu_new_level *level,
                                   cogpu_error *error) {
    struct walk walk = {&writer->plan, level, 0};
    const bool is_elsewhere = level == writer->levels && writer->is_elsewhere;
    struct cogpu_places *places;
    uint64_t index;
    bool is_mask;
    while (next_block(&walk, &places, &index, &is_mask)) {
        uint64_t bytes = framed_bytes(&writer->plan, places->bytes[index]);
        if (bytes == 0)
            continue;
        if (!is_elsewhere)
            TRY(cogpu_spill_copy(level->spill, places->spilled[index] - 1, bytes, writer->out,
                                 writer->end, error));
        writer->end += bytes;
    }
    return COGPU_OK;
}
