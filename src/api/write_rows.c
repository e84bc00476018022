/*
 * Takes rows as the caller pushes them, hands on full rows of blocks, and rows of the next level as
 * soon as what they are made of has passed. A level holds one row of blocks and the few rows more
 * that its last shrunk row was made of. What lies in one swath is not held, but used where it is.
 */
#include "api/writer.h"

#include "base/checked.h"

#include <string.h>

/* ---- memory -------------------------------------------------------------------------------- */

/* The most rows that one row of the next level is made of, or one more. Away from the edges it is
 * the same for all rows but for one, by where they begin, so that the first rows tell. */
static uint32_t rows_of_window(const cogpu_shrink *shrink) {
    enum { FIRST_ROWS = 64 };
    uint32_t most = 0, begin, end;
    uint32_t rows = shrink->to_height < FIRST_ROWS ? shrink->to_height : FIRST_ROWS;
    for (uint32_t row = 0; row < rows; row++) {
        cogpu_shrink_needs(shrink, row, 1, &begin, &end);
        most = end - begin > most ? end - begin : most;
    }
    return most + 1;
}

cogpu_status cogpu_plan_shrink(const cogpu_write_plan *plan, const cogpu_profile *profile,
                               uint32_t level, cogpu_shrink *shrink, cogpu_error *error) {
    const cogpu_grid *to = &plan->levels[level], *from = to - 1;
    *shrink = (cogpu_shrink){.method = plan->resampling,
                             .type = plan->type,
                             .bands = plan->bands,
                             .from_width = from->width,
                             .from_height = from->height,
                             .to_width = to->width,
                             .to_height = to->height,
                             .alpha_band = profile->alpha_band,
                             .has_mask = plan->has_mask};
    cogpu_nodata_parse(profile->nodata, plan->type, &shrink->nodata);
    return cogpu_shrink_check(shrink, error);
}

cogpu_status cogpu_writer_plan_shrinks(cogpu_writer *writer, const cogpu_profile *profile,
                                       cogpu_error *error) {
    for (uint32_t i = 1; i < writer->plan.level_count; i++)
        TRY(cogpu_plan_shrink(&writer->plan, profile, i, &writer->levels[i - 1].shrink, error));
    return COGPU_OK;
}

static cogpu_status open_level(cogpu_writer *writer, uint32_t number, cogpu_error *error) {
    const cogpu_write_plan *plan = &writer->plan;
    struct cogpu_new_level *level = &writer->levels[number];
    const cogpu_grid *grid = level->grid = &plan->levels[number];
    level->row_bytes = grid->width * plan->pixel_bytes;
    level->room = grid->block_height;
    if (number + 1 < plan->level_count)
        level->room += rows_of_window(&level->shrink);
    level->room = level->room < grid->height ? level->room : grid->height;
    uint64_t bytes = 0;
    if (!checked_mul((uint64_t)level->row_bytes * plan->planes, level->room, &bytes) ||
        bytes > SIZE_MAX / 2)
        return cogpu_fail(error, COGPU_ARGUMENT, "a row of blocks is too large: choose lower ones");
    return COGPU_OK;
}

uint64_t cogpu_level_bytes(const cogpu_write_plan *plan, const struct cogpu_new_level *level) {
    return (uint64_t)level->row_bytes * level->room * plan->planes;
}

uint64_t cogpu_level_mask_bytes(const cogpu_write_plan *plan, const struct cogpu_new_level *level) {
    return plan->has_mask ? (uint64_t)level->grid->width * level->room : 0;
}

/* From here on the level's rows are its own. Memory is taken when it is needed first. */
static cogpu_status hold(cogpu_writer *writer, struct cogpu_new_level *level, cogpu_error *error) {
    const cogpu_write_plan *plan = &writer->plan;
    size_t sample = cogpu_type_bytes(plan->type), width = level->grid->width;
    size_t plane_bytes = level->row_bytes * level->room;
    if (!level->held)
        TRY(writer->engine->allocate(writer, cogpu_level_bytes(plan, level), (void **)&level->held,
                                     error));
    if (!level->held_mask && plan->has_mask)
        TRY(writer->engine->allocate(writer, cogpu_level_mask_bytes(plan, level),
                                     (void **)&level->held_mask, error));
    level->rows = (cogpu_raster){.data = level->held,
                                 .type = plan->type,
                                 .bands = plan->bands,
                                 .width = level->grid->width,
                                 .height = level->room,
                                 .stride_band = (int64_t)(plan->planes > 1 ? plane_bytes : sample),
                                 .stride_y = (int64_t)level->row_bytes,
                                 .stride_x = (int64_t)plan->pixel_bytes};
    level->mask = (cogpu_raster){.data = level->held_mask,
                                 .type = COGPU_U8,
                                 .bands = 1,
                                 .width = level->grid->width,
                                 .height = level->room,
                                 .stride_band = 1,
                                 .stride_y = (int64_t)width,
                                 .stride_x = 1};
    level->is_held = true;
    return COGPU_OK;
}

uint64_t cogpu_level_most(const cogpu_write_plan *plan, const cogpu_grid *grid) {
    const uint64_t blocks = (uint64_t)grid->across * grid->down;
    const uint64_t around = COGPU_LEADER + COGPU_TRAILER;
    const uint64_t mask = plan->has_mask ? plan->most_mask_bytes + around : 0;
    uint64_t most;
    return checked_mul(blocks, plan->planes * (plan->most_block_bytes + around) + mask, &most)
               ? most
               : UINT64_MAX;
}

static cogpu_status open_places(cogpu_writer *writer, uint64_t blocks, struct cogpu_places *places,
                                cogpu_error *error) {
    TRY(cogpu_arena_take(&writer->arena, blocks, sizeof *places->offsets, &places->offsets, error));
    return cogpu_arena_take(&writer->arena, blocks, sizeof *places->bytes, &places->bytes, error);
}

/* A COG in memory, or to S3: level 0 goes where it stands if all overviews take the most that they
 * may, and is moved at the end. So there is no second place for it. */
static void leave_gap(cogpu_writer *writer) {
    const cogpu_write_plan *plan = &writer->plan;
    uint64_t end = writer->end, most = 0;
    bool is_good = plan->is_cog && plan->level_count > 1;
    for (uint32_t i = 1; i < plan->level_count; i++)
        is_good &= checked_add(end, cogpu_level_most(plan, &plan->levels[i]), &end);
    is_good &= checked_add(end, cogpu_level_most(plan, &plan->levels[0]), &most);
    if (!is_good || !cogpu_out_takes_gap(writer->out, most) ||
        (most > UINT32_MAX && !plan->is_bigtiff)) /* what is written counts from the first byte */
        return;
    writer->spills_at = writer->end;
    writer->gap_end = writer->end = end;
    cogpu_out_set_end(writer->out, end);
}

void cogpu_writer_drop_gap(cogpu_writer *writer) {
    if (!writer->gap_end)
        return;
    writer->end = writer->spills_at;
    writer->spills_at = writer->gap_end = 0;
    cogpu_out_set_end(writer->out, 0);
}

/* Blocks of a COG stand behind those of smaller levels, whose sizes are known last. Where there are
 * no smaller ones, and in other files at level 0, they can go to the file at once. */
static bool is_spilled(const cogpu_writer *writer, uint32_t number) {
    return cogpu_out_is_append_only(writer->out) || number > 0 ||
           (writer->plan.is_cog && writer->plan.level_count > 1 && !writer->gap_end);
}

cogpu_status cogpu_writer_open_rows(cogpu_writer *writer, cogpu_error *error) {
    leave_gap(writer);
    for (uint32_t i = 0; i < writer->plan.level_count; i++) {
        struct cogpu_new_level *level = &writer->levels[i];
        TRY(open_level(writer, i, error));
        uint64_t blocks = (uint64_t)level->grid->across * level->grid->down;
        TRY(open_places(writer, blocks * writer->plan.planes, &level->pixels, error));
        if (writer->plan.has_mask)
            TRY(open_places(writer, blocks, &level->masks, error));
        if (is_spilled(writer, i))
            TRY(cogpu_spill_open(writer->out, cogpu_level_most(&writer->plan, level->grid),
                                 &level->spill, error));
    }
    return COGPU_OK;
}

/* ---- shrink -------------------------------------------------------------------------------- */

cogpu_raster cogpu_level_rows(const struct cogpu_new_level *level, const cogpu_raster *rows,
                              uint32_t first, uint32_t count) {
    cogpu_raster from = *rows;
    if (from.data)
        from.data = (uint8_t *)from.data + (int64_t)(first - level->first) * from.stride_y;
    from.height = count;
    return from;
}

/* How many rows of the next level can be made of what is held, and have room there. */
static uint32_t rows_to_shrink(const struct cogpu_new_level *level,
                               const struct cogpu_new_level *next) {
    uint32_t count = 0, begin, end;
    uint32_t most = next->room - (next->end - next->first);
    uint32_t left = next->grid->height - level->shrunk;
    for (most = most < left ? most : left; count < most; count++) {
        cogpu_shrink_needs(&level->shrink, level->shrunk, count + 1, &begin, &end);
        if (end > level->end)
            break;
    }
    return count;
}

static cogpu_status advance(cogpu_writer *writer, uint32_t number, cogpu_error *error);

static cogpu_status shrink_rows(cogpu_writer *writer, uint32_t number, cogpu_error *error) {
    struct cogpu_new_level *level = &writer->levels[number], *next = level + 1;
    TRY(hold(writer, next, error));
    for (uint32_t count; (count = rows_to_shrink(level, next)) > 0;) {
        TRY(writer->engine->shrink(writer, level, count, error));
        level->shrunk += count;
        next->end += count;
        TRY(advance(writer, number + 1, error));
    }
    return COGPU_OK;
}

/* ---- rows on their way --------------------------------------------------------------------- */

/* The first row that is still to be cut or to be shrunk. */
static uint32_t first_needed(const struct cogpu_new_level *level) {
    uint32_t begin = level->cut, end = 0;
    if (level->shrunk < level->shrink.to_height)
        cogpu_shrink_needs(&level->shrink, level->shrunk, 1, &begin, &end);
    return begin < level->cut ? begin : level->cut;
}

/* Rows that are not needed any more make room for others. */
static cogpu_status drop_rows(cogpu_writer *writer, struct cogpu_new_level *level,
                              cogpu_error *error) {
    uint32_t keep = first_needed(level);
    if (!level->is_held || keep <= level->first)
        return COGPU_OK;
    TRY(writer->engine->slide(writer, level, keep - level->first, level->end - keep, error));
    level->first = keep;
    return COGPU_OK;
}

/* Does what the rows of a level, and by them of those below it, allow. */
static cogpu_status advance(cogpu_writer *writer, uint32_t number, cogpu_error *error) {
    struct cogpu_new_level *level = &writer->levels[number];
    const cogpu_grid *grid = level->grid;
    while (level->cut < level->end &&
           (level->end - level->cut >= grid->block_height || level->end == grid->height)) {
        uint32_t left = level->end - level->cut;
        TRY(writer->engine->add_row(writer, level, level->cut / grid->block_height, error));
        level->cut += left < grid->block_height ? left : grid->block_height;
    }
    if (number + 1 < writer->plan.level_count)
        TRY(shrink_rows(writer, number, error));
    return drop_rows(writer, level, error);
}

/* Rows of the swath, which begins with the level's row `begin`, behind those that are held. */
static cogpu_status gather(cogpu_writer *writer, const cogpu_raster *rows, const cogpu_raster *mask,
                           uint32_t begin, uint32_t first, uint32_t count, cogpu_error *error) {
    struct cogpu_new_level *level = &writer->levels[0];
    TRY(hold(writer, level, error));
    TRY(writer->engine->gather(writer, rows, mask, first - begin, count, first - level->first,
                               error));
    level->end = first + count;
    return COGPU_OK;
}

/* How many rows it takes until something can be cut or shrunk that rows before are needed for. */
static uint32_t rows_wanted(const struct cogpu_new_level *level, uint32_t begin) {
    uint32_t from, end = level->cut + level->grid->block_height;
    if (level->cut >= begin)
        cogpu_shrink_needs(&level->shrink, level->shrunk, 1, &from, &end);
    return end - level->end;
}

/* Of overviews whose rows are all on a device. */
enum { HELD_BYTES = 96 << 20 };

/* A device makes blocks faster than files take them, so what is little is not written twice: from
 * the smallest level on. */
static void hold_overviews(const cogpu_writer *writer) {
    uint64_t left = HELD_BYTES;
    for (uint32_t i = writer->plan.level_count; i-- > 1;) {
        const struct cogpu_new_level *level = &writer->levels[i];
        const uint64_t most = cogpu_level_most(&writer->plan, level->grid);
        const uint64_t held = most < left ? most : left;
        cogpu_spill_hold(level->spill, held);
        left -= held;
    }
}

/* All rows of a COG at once: overviews are made first, which stand before level 0, so that its
 * blocks have their places when they come, and are not spilled. */
static cogpu_status shrink_first(cogpu_writer *writer, cogpu_error *error) {
    struct cogpu_new_level *level = &writer->levels[0];
    level->end = level->grid->height;
    if (writer->engine == &cogpu_device_engine)
        hold_overviews(writer);
    TRY(shrink_rows(writer, 0, error));
    TRY(writer->engine->drain(writer, error));
    level->end = 0;
    cogpu_writer_drop_gap(writer);
    writer->spills_at = writer->end;
    for (uint32_t i = 1; i < writer->plan.level_count; i++)
        writer->end += writer->levels[i].spilled;
    if (cogpu_out_holds(writer->out, writer->end)) /* what is to come need not be cleared before */
        cogpu_out_set_end(writer->out, writer->end);
    cogpu_spill_close(level->spill);
    level->spill = NULL;
    return COGPU_OK;
}

/* Rows of the swath are gathered as long as they have to do with rows before it, or all of them
 * where the engine has no access to them; the others are cut and shrunk where they lie; what is
 * left at the end is held. */
cogpu_status cogpu_writer_take(cogpu_writer *writer, const cogpu_raster *rows,
                               const cogpu_raster *mask, cogpu_error *error) {
    struct cogpu_new_level *level = &writer->levels[0];
    const uint32_t begin = level->end, end = begin + rows->height;
    const bool is_here =
        writer->engine->has(writer, rows) && (!mask->data || writer->engine->has(writer, mask));
    while (level->end < end && (!is_here || first_needed(level) < begin)) {
        uint32_t room = level->room - (level->end - level->first), left = end - level->end;
        uint32_t count = is_here ? rows_wanted(level, begin) : left;
        count = count < left ? count : left;
        count = count < room ? count : room;
        TRY(gather(writer, rows, mask, begin, level->end, count, error));
        TRY(advance(writer, 0, error));
    }
    if (level->end == end)
        return COGPU_OK;
    level->is_held = false;
    level->first = begin;
    level->rows = *rows;
    level->mask = *mask;
    if (rows->height == level->grid->height && writer->plan.is_cog &&
        (level->spill || writer->gap_end) && !cogpu_out_is_append_only(writer->out))
        TRY(shrink_first(writer, error));
    while (level->end < end) {
        uint32_t count = level->cut + level->grid->block_height - level->end;
        level->end += count < end - level->end ? count : end - level->end;
        TRY(advance(writer, 0, error));
    }
    level->first = first_needed(level);
    return level->first == end
               ? COGPU_OK
               : gather(writer, rows, mask, begin, level->first, end - level->first, error);
}
