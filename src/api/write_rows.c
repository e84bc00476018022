/*
 * Takes rows as the caller pushes them, hands on full rows of blocks, and rows of the next level as
 * soon as what they are made of has passed. A level holds one row of blocks and the few rows more
 * that its last shrunk row was made of.
 */
#include "api/writer.h"

#include "base/checked.h"

#include <string.h>

/* Rows that a thread gathers or shrinks at a time. */
enum { ROWS_A_PIECE = 16 };

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

cogpu_status cogpu_writer_plan_shrinks(cogpu_writer *writer, const cogpu_profile *profile,
                                       cogpu_error *error) {
    const cogpu_write_plan *plan = &writer->plan;
    for (uint32_t i = 0; i + 1 < plan->level_count; i++) {
        const cogpu_grid *from = &plan->levels[i], *to = from + 1;
        cogpu_shrink *shrink = &writer->levels[i].shrink;
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
        TRY(cogpu_shrink_check(shrink, error));
    }
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
    level->rows = cogpu_allocate((size_t)bytes);
    level->mask = plan->has_mask ? cogpu_allocate((size_t)grid->width * level->room) : NULL;
    if (!level->rows || (plan->has_mask && !level->mask))
        return cogpu_fail(error, COGPU_MEMORY, "out of memory: %llu bytes for a row of blocks",
                          (unsigned long long)bytes);
    return COGPU_OK;
}

static cogpu_status open_places(cogpu_writer *writer, uint64_t blocks, struct cogpu_places *places,
                                cogpu_error *error) {
    TRY(cogpu_arena_take(&writer->arena, blocks, sizeof *places->offsets, &places->offsets, error));
    return cogpu_arena_take(&writer->arena, blocks, sizeof *places->bytes, &places->bytes, error);
}

/* Blocks of a COG stand behind those of smaller levels, whose sizes are known last. Where there are
 * no smaller ones, and in other files at level 0, they can go to the file at once. */
static bool is_spilled(const cogpu_writer *writer, uint32_t number) {
    return cogpu_out_is_append_only(writer->out) || number > 0 ||
           (writer->plan.is_cog && writer->plan.level_count > 1);
}

cogpu_status cogpu_writer_open_rows(cogpu_writer *writer, cogpu_error *error) {
    for (uint32_t i = 0; i < writer->plan.level_count; i++) {
        struct cogpu_new_level *level = &writer->levels[i];
        TRY(open_level(writer, i, error));
        uint64_t blocks = (uint64_t)level->grid->across * level->grid->down;
        TRY(open_places(writer, blocks * writer->plan.planes, &level->pixels, error));
        if (writer->plan.has_mask)
            TRY(open_places(writer, blocks, &level->masks, error));
        if (is_spilled(writer, i))
            TRY(cogpu_spill_open(writer->out, &level->spill, error));
    }
    return COGPU_OK;
}

/* ---- shrink -------------------------------------------------------------------------------- */

/* Rows of a level as a raster: those from `first` on, which are held. */
static cogpu_raster rows_from(const cogpu_writer *writer, const struct cogpu_new_level *level,
                              uint32_t first, uint32_t count) {
    const cogpu_write_plan *plan = &writer->plan;
    size_t sample = cogpu_type_bytes(plan->type);
    bool is_planar = plan->planes > 1;
    return (cogpu_raster){.data = level->rows + (size_t)(first - level->first) * level->row_bytes,
                          .type = plan->type,
                          .bands = plan->bands,
                          .width = level->grid->width,
                          .height = count,
                          .stride_band =
                              (int64_t)(is_planar ? level->room * level->row_bytes : sample),
                          .stride_y = (int64_t)level->row_bytes,
                          .stride_x = (int64_t)plan->pixel_bytes};
}

static cogpu_raster mask_from(const struct cogpu_new_level *level, uint32_t first, uint32_t count) {
    uint32_t width = level->grid->width;
    return (cogpu_raster){.data = level->mask ? level->mask + (size_t)(first - level->first) * width
                                              : NULL,
                          .type = COGPU_U8,
                          .bands = 1,
                          .width = width,
                          .height = count,
                          .stride_band = 1,
                          .stride_y = width,
                          .stride_x = 1};
}

struct shrinking {
    const cogpu_writer *writer;
    const struct cogpu_new_level *from, *to;
    uint32_t first, count;
    cogpu_status status;
};

static void shrink_piece(void *argument, uint32_t seat, uint64_t index) {
    struct shrinking *shrinking = argument;
    const cogpu_writer *writer = shrinking->writer;
    const struct cogpu_new_level *from = shrinking->from;
    uint32_t done = (uint32_t)index * ROWS_A_PIECE, left = shrinking->count - done;
    uint32_t first = shrinking->first + done, count = left < ROWS_A_PIECE ? left : ROWS_A_PIECE;
    cogpu_raster source = rows_from(writer, from, from->first, from->end - from->first);
    cogpu_raster source_mask = mask_from(from, from->first, from->end - from->first);
    cogpu_raster target = rows_from(writer, shrinking->to, first, count);
    cogpu_raster target_mask = mask_from(shrinking->to, first, count);
    bool has_mask = writer->plan.has_mask;
    cogpu_status status = cogpu_cpu_shrink(writer->seats[seat], &from->shrink, &source,
                                           has_mask ? &source_mask : NULL, from->first, first,
                                           &target, has_mask ? &target_mask : NULL, NULL);
    if (status != COGPU_OK)
        __atomic_store_n(&shrinking->status, status, __ATOMIC_RELAXED);
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
    for (uint32_t count; (count = rows_to_shrink(level, next)) > 0;) {
        struct shrinking shrinking = {writer, level, next, level->shrunk, count, COGPU_OK};
        cogpu_pool_run(writer->pool, writer->seat_count, divide_up(count, ROWS_A_PIECE),
                       shrink_piece, &shrinking);
        if (shrinking.status != COGPU_OK)
            return cogpu_fail(error, shrinking.status, "out of memory to make an overview");
        level->shrunk += count;
        next->end += count;
        TRY(advance(writer, number + 1, error));
    }
    return COGPU_OK;
}

/* ---- rows on their way --------------------------------------------------------------------- */

/* Rows that are neither to be cut nor to be shrunk any more make room for others. */
static void drop_rows(const cogpu_writer *writer, struct cogpu_new_level *level, bool is_last) {
    uint32_t keep = level->cut, begin = 0, end = 0;
    if (!is_last && level->shrunk < level->shrink.to_height) {
        cogpu_shrink_needs(&level->shrink, level->shrunk, 1, &begin, &end);
        keep = begin < keep ? begin : keep;
    }
    if (keep <= level->first)
        return;
    size_t from = keep - level->first, count = level->end - keep, width = level->grid->width;
    for (uint32_t plane = 0; plane < writer->plan.planes; plane++) {
        uint8_t *rows = level->rows + (size_t)plane * level->room * level->row_bytes;
        memmove(rows, rows + from * level->row_bytes, count * level->row_bytes);
    }
    if (level->mask)
        memmove(level->mask, level->mask + from * width, count * width);
    level->first = keep;
}

/* Does what the rows of a level, and by them of those below it, allow. */
static cogpu_status advance(cogpu_writer *writer, uint32_t number, cogpu_error *error) {
    struct cogpu_new_level *level = &writer->levels[number];
    const cogpu_grid *grid = level->grid;
    bool is_last = number + 1 == writer->plan.level_count;
    while (level->cut < level->end &&
           (level->end - level->cut >= grid->block_height || level->end == grid->height)) {
        uint32_t left = level->end - level->cut;
        TRY(cogpu_writer_put_row(writer, level, level->cut / grid->block_height, error));
        level->cut += left < grid->block_height ? left : grid->block_height;
    }
    if (!is_last)
        TRY(shrink_rows(writer, number, error));
    drop_rows(writer, level, is_last);
    return COGPU_OK;
}

struct gathering {
    const cogpu_writer *writer;
    const cogpu_raster *rows, *mask;
    uint32_t first, count; /* of the swath's rows */
};

static void gather_piece(void *argument, uint32_t seat, uint64_t index) {
    const struct gathering *gathering = argument;
    const cogpu_writer *writer = gathering->writer;
    const struct cogpu_new_level *level = &writer->levels[0];
    uint32_t done = (uint32_t)index * ROWS_A_PIECE, left = gathering->count - done;
    uint32_t count = left < ROWS_A_PIECE ? left : ROWS_A_PIECE, first = gathering->first + done;
    size_t held = level->end - level->first + done;
    (void)seat;
    cogpu_cpu_gather(gathering->rows, first, count, writer->plan.planes > 1,
                     level->room * level->row_bytes, level->rows + held * level->row_bytes);
    if (level->mask)
        cogpu_cpu_gather(gathering->mask, first, count, false, 0,
                         level->mask + held * level->grid->width);
}

cogpu_status cogpu_writer_take(cogpu_writer *writer, const cogpu_raster *rows,
                               const cogpu_raster *mask, cogpu_error *error) {
    struct cogpu_new_level *level = &writer->levels[0];
    for (uint32_t done = 0, count; done < rows->height; done += count) {
        uint32_t room = level->room - (level->end - level->first), left = rows->height - done;
        uint32_t boundary = level->cut + level->grid->block_height - level->end;
        count = left < room ? left : room;
        count = count < boundary ? count : boundary;
        struct gathering gathering = {writer, rows, mask, done, count};
        cogpu_pool_run(writer->pool, writer->seat_count, divide_up(count, ROWS_A_PIECE),
                       gather_piece, &gathering);
        level->end += count;
        TRY(advance(writer, 0, error));
    }
    return COGPU_OK;
}
