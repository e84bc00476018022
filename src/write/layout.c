/*
 * The order of a file, decided in two steps: before the first block, from the worst case, and after
 * the last one, when all sizes are known.
 *
 * A COG stores overviews before level 0, but the sizes of overviews are known last. There are three
 * ways out, cheapest first:
 *
 *     overviews first   All rows are there at once: overviews are made before level 0 is packed.
 *     gap               In memory and to S3, level 0 goes behind a gap for the largest overviews
 *                       possible, and is moved down at the end.
 *     spill             Blocks of level 0 wait in a spill, as those of overviews always do.
 */
#include "base/checked.h"
#include "write/writer.h"

#include <assert.h>

static uint64_t plane_blocks(const struct cogpu_write_level *level) {
    return (uint64_t)level->grid->across * level->grid->down;
}

/* ---- header and directories ---------------------------------------------------------------- */

static uint32_t ghost_flags(const cogpu_write_plan *plan) {
    uint32_t ghost = COGPU_GHOST_PRESENT | COGPU_GHOST_IFDS_BEFORE_DATA | COGPU_GHOST_ROW_MAJOR |
                     COGPU_GHOST_LEADER | COGPU_GHOST_TRAILER;
    if (plan->planes > 1)
        ghost |= COGPU_GHOST_TILE_INTERLEAVED;
    else if (plan->has_mask && !plan->is_sparse) /* GDAL expects a mask behind each block */
        ghost |= COGPU_GHOST_MASK_INTERLEAVED;
    return plan->is_cog ? ghost : 0;
}

static size_t store_header(const cogpu_writer *writer, uint64_t first_directory, uint8_t *to) {
    const cogpu_write_plan *plan = &writer->plan;
    return cogpu_header_write(plan->is_bigtiff, ghost_flags(plan), first_directory, to);
}

/* Where directories end that begin behind the header. For files other than COGs: their size. */
static cogpu_status end_of_directories(cogpu_writer *writer, uint64_t *end, cogpu_error *error) {
    struct cogpu_write_output *output = &writer->output;
    uint8_t header[COGPU_NEW_HEADER_MAX];
    return cogpu_directories_lay_out(output->directories, output->directory_count,
                                     writer->plan.is_bigtiff, store_header(writer, 0, header), end,
                                     error);
}

cogpu_status cogpu_write_output_check_size(const cogpu_writer *writer, uint64_t end,
                                           cogpu_error *error) {
    if (writer->plan.is_bigtiff || end <= UINT32_MAX)
        return COGPU_OK;
    return cogpu_fail(error, COGPU_LIMIT_EXCEEDED,
                      "the file exceeds 4 GiB and must be a BigTIFF: set `bigtiff` to auto or yes");
}

/* Upper bound of a file whose directories end there; each of them may need a byte of padding. */
static uint64_t max_file_bytes(const cogpu_writer *writer, uint64_t end) {
    uint64_t most;
    return checked_add(writer->plan.most_bytes, end + writer->output.directory_count, &most)
               ? most
               : UINT64_MAX;
}

/* BigTIFF must be chosen before the first byte: where the file could exceed 4 GiB. A classic TIFF
 * that surely exceeds them fails here. */
cogpu_status cogpu_write_output_plan(cogpu_writer *writer, const cogpu_profile *profile,
                                     cogpu_error *error) {
    uint64_t end = 0;
    const bool may_choose = profile->bigtiff == COGPU_BIGTIFF_AUTO;
    cogpu_status status = end_of_directories(writer, &end, error);
    if (may_choose &&
        (status == COGPU_LIMIT_EXCEEDED || max_file_bytes(writer, end) > UINT32_MAX)) {
        writer->plan.is_bigtiff = true;
        status = end_of_directories(writer, &end, error);
    }
    TRY(status);
    TRY(cogpu_write_output_check_size(writer, end + writer->plan.min_file_bytes, error));
    uint8_t header[COGPU_NEW_HEADER_MAX];
    writer->output.end = writer->plan.is_cog ? end : store_header(writer, 0, header);
    writer->output.max_bytes = max_file_bytes(writer, end);
    return COGPU_OK;
}

/* ---- open ---------------------------------------------------------------------------------- */

uint64_t cogpu_level_max_bytes(const cogpu_write_plan *plan, const cogpu_block_grid *grid) {
    const uint64_t blocks = (uint64_t)grid->across * grid->down;
    const uint64_t overhead = COGPU_BLOCK_OVERHEAD_BYTES;
    const uint64_t mask = plan->has_mask ? plan->max_mask_bytes + overhead : 0;
    uint64_t most;
    return checked_mul(blocks, plan->planes * (plan->max_block_bytes + overhead) + mask, &most)
               ? most
               : UINT64_MAX;
}

static void open_gap(cogpu_writer *writer) {
    const cogpu_write_plan *plan = &writer->plan;
    struct cogpu_write_output *output = &writer->output;
    uint64_t gap_end = output->end, file_end = 0;
    bool is_possible = plan->is_cog && plan->level_count > 1;
    for (uint32_t i = 1; i < plan->level_count; i++)
        is_possible &=
            checked_add(gap_end, cogpu_level_max_bytes(plan, &plan->levels[i]), &gap_end);
    is_possible &= checked_add(gap_end, cogpu_level_max_bytes(plan, &plan->levels[0]), &file_end);
    if (!is_possible || !cogpu_out_allows_gap(output->sink, file_end) ||
        (file_end > UINT32_MAX && !plan->is_bigtiff)) /* offsets must hold before the move, too */
        return;
    output->spills_offset = output->end;
    output->gap_end = output->end = gap_end;
    cogpu_out_set_end(output->sink, gap_end);
}

/* There is no block of level 0 yet. */
static void drop_gap(cogpu_writer *writer) {
    struct cogpu_write_output *output = &writer->output;
    if (!output->gap_end)
        return;
    output->end = output->spills_offset;
    output->spills_offset = output->gap_end = 0;
    cogpu_out_set_end(output->sink, 0);
}

/* Blocks follow those of smaller levels in a COG, of larger ones in other files. Only a level that
 * follows none, or that has a gap, knows its offsets. */
static bool needs_spill(const cogpu_writer *writer, uint32_t level) {
    return cogpu_out_is_append_only(writer->output.sink) || level > 0 ||
           (writer->plan.is_cog && writer->plan.level_count > 1 && !writer->output.gap_end);
}

static cogpu_status open_table(cogpu_writer *writer, uint64_t blocks,
                               struct cogpu_block_table *table, cogpu_error *error) {
    TRY(cogpu_arena_allocate(&writer->arena, blocks, sizeof *table->offsets, &table->offsets,
                             error));
    return cogpu_arena_allocate(&writer->arena, blocks, sizeof *table->bytes, &table->bytes, error);
}

static cogpu_status open_spill(cogpu_writer *writer, struct cogpu_write_level *level,
                               cogpu_error *error) {
    return cogpu_spill_open(writer->output.sink, cogpu_level_max_bytes(&writer->plan, level->grid),
                            &level->spill, error);
}

cogpu_status cogpu_write_output_open(cogpu_writer *writer, const cogpu_sink *sink, cogpu_http *http,
                                     cogpu_error *error) {
    struct cogpu_write_output *output = &writer->output;
    TRY(cogpu_out_open(sink, http, &output->sink, error));
    cogpu_out_set_meter(output->sink, &writer->meter);
    cogpu_out_reserve(output->sink, output->max_bytes);
    open_gap(writer);
    for (uint32_t i = 0; i < writer->plan.level_count; i++) {
        struct cogpu_write_level *level = &writer->levels[i];
        const uint64_t blocks = plane_blocks(level);
        TRY(open_table(writer, blocks * writer->plan.planes, &level->pixel_blocks, error));
        if (writer->plan.has_mask)
            TRY(open_table(writer, blocks, &level->mask_blocks, error));
        if (needs_spill(writer, i))
            TRY(open_spill(writer, level, error));
    }
    return COGPU_OK;
}

cogpu_status cogpu_write_output_open_external(cogpu_writer *writer, cogpu_error *error) {
    drop_gap(writer);
    for (uint32_t i = 0; i < writer->plan.level_count; i++) {
        struct cogpu_write_level *level = &writer->levels[i];
        const uint64_t blocks = plane_blocks(level);
        TRY(cogpu_arena_allocate(&writer->arena, blocks * writer->plan.planes,
                                 sizeof *level->pixel_blocks.external,
                                 &level->pixel_blocks.external, error));
        TRY(cogpu_arena_allocate(&writer->arena, blocks, sizeof *level->mask_blocks.external,
                                 &level->mask_blocks.external, error));
        if (!level->spill)
            TRY(open_spill(writer, level, error));
    }
    return COGPU_OK;
}

void cogpu_write_output_reserve_overviews(cogpu_writer *writer) {
    struct cogpu_write_output *output = &writer->output;
    drop_gap(writer);
    output->spills_offset = output->end;
    for (uint32_t i = 1; i < writer->plan.level_count; i++)
        output->end += writer->levels[i].spilled_bytes;
    if (cogpu_out_has_memory_for(output->sink, output->end)) /* skips clearing what is written */
        cogpu_out_set_end(output->sink, output->end);
    cogpu_spill_close(writer->levels[0].spill);
    writer->levels[0].spill = NULL;
}

/* ---- final offsets ------------------------------------------------------------------------- */

/* Levels in the order of their blocks in the file. */
static struct cogpu_write_level *level_in_file_order(cogpu_writer *writer, uint32_t number) {
    uint32_t last = writer->plan.level_count - 1;
    return &writer->levels[writer->plan.is_cog ? last - number : number];
}

static void move_offsets(const struct cogpu_block_table *table, uint64_t count, uint64_t by) {
    for (uint64_t i = 0; i < count; i++)
        if (table->bytes[i])
            table->offsets[i] += by;
}

static void move_level(cogpu_writer *writer, struct cogpu_write_level *level, uint64_t by) {
    const uint64_t blocks = plane_blocks(level);
    move_offsets(&level->pixel_blocks, blocks * writer->plan.planes, by);
    if (writer->plan.has_mask)
        move_offsets(&level->mask_blocks, blocks, by);
}

/* Moves level 0 down behind the overviews, whose sizes are known now. */
static cogpu_status close_gap(cogpu_writer *writer, cogpu_error *error) {
    struct cogpu_write_output *output = &writer->output;
    uint64_t begin = output->spills_offset, bytes = output->end - output->gap_end;
    uint8_t *memory = NULL;
    for (uint32_t i = 1; i < writer->plan.level_count; i++)
        begin += writer->levels[i].spilled_bytes;
    assert(begin <= output->gap_end);
    const uint64_t gap = output->gap_end - begin;
    TRY(cogpu_out_buffer_at(output->sink, begin, (size_t)(gap + bytes), &memory, error));
    if (memory)
        cogpu_write_output_move_down(writer, memory, (size_t)gap, (size_t)bytes);
    else
        cogpu_out_move_down(output->sink, output->gap_end, begin);
    move_level(writer, &writer->levels[0], 0 - gap);
    output->end = begin + bytes;
    output->gap_end = 0;
    cogpu_out_set_end(output->sink, output->end);
    return COGPU_OK;
}

/* External blocks of a level, in file order: tile by tile, all planes, then the mask. */
struct external_walk {
    const cogpu_write_plan *plan;
    struct cogpu_write_level *level;
    uint64_t number;
    struct cogpu_block_table *table; /* of the block, with its index in there */
    uint64_t index;
    bool is_mask;
};

static bool next_external(struct external_walk *walk) {
    const cogpu_block_grid *grid = walk->level->grid;
    const uint32_t kinds = walk->plan->planes + walk->plan->has_mask;
    const uint64_t tile = walk->number / kinds;
    if (tile == plane_blocks(walk->level))
        return false;
    const cogpu_new_block block =
        cogpu_plan_new_block(walk->plan, grid, (uint32_t)(tile / grid->across),
                             (uint32_t)(tile % grid->across), (uint32_t)(walk->number % kinds));
    walk->number++;
    walk->is_mask = cogpu_block_is_mask(walk->plan, &block);
    walk->table = walk->is_mask ? &walk->level->mask_blocks : &walk->level->pixel_blocks;
    walk->index = cogpu_plan_index(walk->plan, grid, &block);
    return true;
}

/* With leader and trailer in a COG. */
static uint64_t stored_bytes(const struct external_walk *walk) {
    const uint64_t bytes = walk->table->bytes[walk->index];
    return bytes == 0 ? 0 : bytes + (walk->plan->is_cog ? COGPU_BLOCK_OVERHEAD_BYTES : 0);
}

static cogpu_status assign_external(cogpu_writer *writer, struct cogpu_write_level *level,
                                    uint64_t *end, cogpu_error *error) {
    struct external_walk walk = {.plan = &writer->plan, .level = level};
    const uint64_t leader = writer->plan.is_cog ? COGPU_LEADER_BYTES : 0;
    while (next_external(&walk)) {
        if (!walk.table->external[walk.index])
            return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                              "%sblock %llu of level %u is missing: write all blocks before the "
                              "writer is closed",
                              walk.is_mask ? "mask " : "", (unsigned long long)walk.index,
                              (uint32_t)(level - writer->levels));
        walk.table->offsets[walk.index] = walk.table->bytes[walk.index] ? *end + leader : 0;
        *end += stored_bytes(&walk);
    }
    return COGPU_OK;
}

/* Gives all spilled blocks their offsets in the file. *end is the end of all blocks. */
static cogpu_status assign_spills(cogpu_writer *writer, uint64_t *end, cogpu_error *error) {
    struct cogpu_write_output *output = &writer->output;
    if (!output->spills_offset)
        output->spills_offset = output->end;
    *end = output->spills_offset;
    for (uint32_t i = 0; i < writer->plan.level_count; i++) {
        struct cogpu_write_level *level = level_in_file_order(writer, i);
        if (writer->state == COGPU_WRITER_WRITING_BLOCKS) {
            TRY(assign_external(writer, level, end, error));
        } else if (level->spill) {
            move_level(writer, level, *end);
            *end += level->spilled_bytes;
        }
    }
    *end = *end > output->end ? *end : output->end;
    return cogpu_write_output_check_size(writer, *end, error);
}

/* ---- close --------------------------------------------------------------------------------- */

static cogpu_status copy_external(cogpu_writer *writer, struct cogpu_write_level *level,
                                  cogpu_error *error) {
    struct cogpu_write_output *output = &writer->output;
    struct external_walk walk = {.plan = &writer->plan, .level = level};
    const bool is_elsewhere =
        level == writer->levels && writer->external == COGPU_EXTERNAL_ELSEWHERE;
    while (next_external(&walk)) {
        const uint64_t bytes = stored_bytes(&walk);
        if (bytes > 0 && !is_elsewhere)
            TRY(cogpu_spill_copy(level->spill, walk.table->external[walk.index] - 1, bytes,
                                 output->sink, output->end, error));
        output->end += bytes;
    }
    return COGPU_OK;
}

static cogpu_status copy_spill(cogpu_writer *writer, const struct cogpu_write_level *level,
                               uint64_t offset, cogpu_error *error) {
    cogpu_out *sink = writer->output.sink;
    const uint8_t *from = cogpu_spill_memory(level->spill);
    uint8_t *to = NULL;
    if (from)
        TRY(cogpu_out_buffer_at(sink, offset, (size_t)level->spilled_bytes, &to, error));
    if (!to)
        return cogpu_spill_copy(level->spill, 0, level->spilled_bytes, sink, offset, error);
    cogpu_write_output_copy(writer, to, from, (size_t)level->spilled_bytes);
    return COGPU_OK;
}

static cogpu_status copy_spills(cogpu_writer *writer, cogpu_error *error) {
    struct cogpu_write_output *output = &writer->output;
    uint64_t offset = output->spills_offset;
    for (uint32_t i = 0; i < writer->plan.level_count; i++) {
        struct cogpu_write_level *level = level_in_file_order(writer, i);
        if (writer->state == COGPU_WRITER_WRITING_BLOCKS) {
            TRY(copy_external(writer, level, error));
        } else if (level->spill) {
            TRY(copy_spill(writer, level, offset, error));
            offset += level->spilled_bytes;
        }
    }
    output->end = offset > output->end ? offset : output->end;
    return COGPU_OK;
}

/* The directories point to the tables of blocks. tags.c has their order. */
static void connect_tables(cogpu_writer *writer) {
    const uint32_t levels = writer->plan.level_count, masks = writer->plan.has_mask;
    cogpu_new_directory *directories = writer->output.directories;
    for (uint32_t i = 0; i < levels; i++) {
        const struct cogpu_write_level *level = &writer->levels[i];
        cogpu_new_directory *pixels = &directories[i == 0 ? 0 : i + masks];
        pixels->offsets = level->pixel_blocks.offsets;
        pixels->bytes = level->pixel_blocks.bytes;
        if (masks) {
            cogpu_new_directory *mask = &directories[i == 0 ? 1 : levels + i];
            mask->offsets = level->mask_blocks.offsets;
            mask->bytes = level->mask_blocks.bytes;
        }
    }
}

/* Writes the directories at `start`; *end is where they end. */
static cogpu_status write_directories(cogpu_writer *writer, uint64_t start, uint64_t *end,
                                      cogpu_error *error) {
    struct cogpu_write_output *output = &writer->output;
    const uint32_t count = output->directory_count;
    const bool bigtiff = writer->plan.is_bigtiff;
    TRY(cogpu_directories_lay_out(output->directories, count, bigtiff, start, end, error));
    size_t bytes = (size_t)(*end - start);
    uint8_t *memory = cogpu_allocate(bytes);
    if (!memory)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory: %zu bytes for directories",
                          bytes);
    cogpu_directories_write(output->directories, count, bigtiff, start, *end, memory);
    cogpu_status status = cogpu_out_write(output->sink, start, memory, bytes, error);
    cogpu_release(memory);
    return status;
}

static cogpu_status finish_cog(cogpu_writer *writer, cogpu_error *error) {
    uint8_t header[COGPU_NEW_HEADER_MAX];
    size_t bytes = store_header(writer, 0, header);
    uint64_t end = 0;
    if (writer->output.gap_end)
        TRY(close_gap(writer, error));
    TRY(assign_spills(writer, &end, error));
    connect_tables(writer);
    bytes = store_header(writer, bytes, header);
    TRY(cogpu_out_write(writer->output.sink, 0, header, bytes, error));
    TRY(write_directories(writer, bytes, &end, error));
    return copy_spills(writer, error);
}

static cogpu_status finish_plain(cogpu_writer *writer, cogpu_error *error) {
    cogpu_out *sink = writer->output.sink;
    uint8_t header[COGPU_NEW_HEADER_MAX] = {0};
    uint64_t end = 0;
    TRY(assign_spills(writer, &end, error));
    const uint64_t start = end + end % 2;
    connect_tables(writer);
    TRY(cogpu_out_write(sink, 0, header, store_header(writer, start, header), error));
    TRY(copy_spills(writer, error));
    if (start > end)
        TRY(cogpu_out_write(sink, end, "", 1, error));
    return write_directories(writer, start, &writer->output.end, error);
}

cogpu_status cogpu_write_output_finish(cogpu_writer *writer, cogpu_error *error) {
    TRY(writer->plan.is_cog ? finish_cog(writer, error) : finish_plain(writer, error));
    TRY(cogpu_write_output_check_size(writer, writer->output.end, error));
    cogpu_out *sink = writer->output.sink;
    writer->output.sink = NULL;
    return cogpu_out_commit(sink, error);
}

void cogpu_write_output_close(cogpu_writer *writer) {
    for (uint32_t i = 0; i < COGPU_LEVELS_MAX; i++)
        cogpu_spill_close(writer->levels[i].spill);
    cogpu_out_abort(writer->output.sink);
    cogpu_release(writer->output.coalesced);
}
