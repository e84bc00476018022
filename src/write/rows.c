/*
 * Rows pass down the pyramid. Rows of a level become blocks as soon as a row of blocks is
 * complete, and rows of the next level as soon as all source rows of the resampling are there. A
 * level buffers one row of blocks, and the source rows of one more row of the next level.
 *
 *     level 0   rows of the caller ----> blocks
 *                    | downsample
 *     level 1   buffered rows ---------> blocks
 *                    | downsample
 *     level 2   ...
 *
 * Rows that the caller passes at once are used in place. Only rows that belong together with rows
 * of another call are copied.
 */
#include "base/checked.h"
#include "write/writer.h"

/* ---- plan ---------------------------------------------------------------------------------- */

/* The most source rows of one row of the next level, plus 1. Away from the edges their number
 * varies by one, so that the first rows are enough. */
static uint32_t source_rows_max(const cogpu_downsample *downsample) {
    enum { FIRST_ROWS = 64 };
    uint32_t most = 0, begin, end;
    uint32_t rows = downsample->to_height < FIRST_ROWS ? downsample->to_height : FIRST_ROWS;
    for (uint32_t row = 0; row < rows; row++) {
        cogpu_downsample_source_rows(downsample, row, 1, &begin, &end);
        most = end - begin > most ? end - begin : most;
    }
    return most + 1;
}

cogpu_status cogpu_plan_downsample(const cogpu_write_plan *plan, const cogpu_profile *profile,
                                   uint32_t level, cogpu_downsample *downsample,
                                   cogpu_error *error) {
    const cogpu_block_grid *to = &plan->levels[level], *from = to - 1;
    *downsample = (cogpu_downsample){.method = plan->resampling,
                                     .type = plan->type,
                                     .bands = plan->bands,
                                     .from_width = from->width,
                                     .from_height = from->height,
                                     .to_width = to->width,
                                     .to_height = to->height,
                                     .alpha_band = profile->alpha_band,
                                     .has_mask = plan->has_mask};
    cogpu_nodata_parse(profile->nodata, plan->type, &downsample->nodata);
    return cogpu_downsample_check(downsample, error);
}

static cogpu_status plan_level(cogpu_writer *writer, const cogpu_profile *profile, uint32_t number,
                               cogpu_error *error) {
    const cogpu_write_plan *plan = &writer->plan;
    struct cogpu_write_level *level = &writer->levels[number];
    const cogpu_block_grid *grid = level->grid = &plan->levels[number];
    level->row_bytes = grid->width * plan->pixel_bytes;
    level->capacity_rows = grid->block_height;
    if (number + 1 < plan->level_count) {
        TRY(cogpu_plan_downsample(plan, profile, number + 1, &level->downsample, error));
        level->capacity_rows += source_rows_max(&level->downsample);
    }
    if (level->capacity_rows > grid->height)
        level->capacity_rows = grid->height;
    uint64_t bytes = 0;
    if (!checked_mul((uint64_t)level->row_bytes * plan->planes, level->capacity_rows, &bytes) ||
        bytes > SIZE_MAX / 2)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "a row of blocks is too large: choose a smaller block height");
    return COGPU_OK;
}

cogpu_status cogpu_writer_plan_levels(cogpu_writer *writer, const cogpu_profile *profile,
                                      cogpu_error *error) {
    for (uint32_t i = 0; i < writer->plan.level_count; i++)
        TRY(plan_level(writer, profile, i, error));
    return COGPU_OK;
}

/* ---- buffers ------------------------------------------------------------------------------- */

uint64_t cogpu_level_buffer_bytes(const cogpu_write_plan *plan,
                                  const struct cogpu_write_level *level) {
    return (uint64_t)level->row_bytes * level->capacity_rows * plan->planes;
}

uint64_t cogpu_level_mask_buffer_bytes(const cogpu_write_plan *plan,
                                       const struct cogpu_write_level *level) {
    return plan->has_mask ? (uint64_t)level->grid->width * level->capacity_rows : 0;
}

static cogpu_status allocate_buffers(cogpu_writer *writer, struct cogpu_write_level *level,
                                     cogpu_error *error) {
    const cogpu_write_plan *plan = &writer->plan;
    const cogpu_write_backend *backend = writer->backend.calls;
    if (!level->buffer)
        TRY(backend->allocate(writer, cogpu_level_buffer_bytes(plan, level),
                              (void **)&level->buffer, error));
    if (!level->mask_buffer && plan->has_mask)
        TRY(backend->allocate(writer, cogpu_level_mask_buffer_bytes(plan, level),
                              (void **)&level->mask_buffer, error));
    return COGPU_OK;
}

/* From here on the level's rows are in its own buffers, which are allocated when first needed. */
static cogpu_status use_buffers(cogpu_writer *writer, struct cogpu_write_level *level,
                                cogpu_error *error) {
    const cogpu_write_plan *plan = &writer->plan;
    const size_t sample = cogpu_type_bytes(plan->type), width = level->grid->width;
    const size_t plane_bytes = level->row_bytes * level->capacity_rows;
    if (level->is_buffered)
        return COGPU_OK;
    TRY(allocate_buffers(writer, level, error));
    level->pixels =
        (cogpu_raster){.data = level->buffer,
                       .type = plan->type,
                       .bands = plan->bands,
                       .width = level->grid->width,
                       .height = level->capacity_rows,
                       .stride_band = (int64_t)(plan->planes > 1 ? plane_bytes : sample),
                       .stride_y = (int64_t)level->row_bytes,
                       .stride_x = (int64_t)plan->pixel_bytes};
    level->mask = (cogpu_raster){.data = level->mask_buffer,
                                 .type = COGPU_TYPE_U8,
                                 .bands = 1,
                                 .width = level->grid->width,
                                 .height = level->capacity_rows,
                                 .stride_band = 1,
                                 .stride_y = (int64_t)width,
                                 .stride_x = 1};
    level->is_buffered = true;
    return COGPU_OK;
}

cogpu_raster cogpu_level_rows(const struct cogpu_write_level *level, const cogpu_raster *raster,
                              uint32_t first, uint32_t count) {
    cogpu_raster rows = *raster;
    if (rows.data)
        rows.data = (uint8_t *)rows.data + (int64_t)(first - level->first_row) * rows.stride_y;
    rows.height = count;
    return rows;
}

/* The first row that is still to be packed or downsampled. */
static uint32_t first_needed_row(const struct cogpu_write_level *level) {
    uint32_t begin = level->packed_rows, end = 0;
    if (level->downsampled_rows < level->downsample.to_height)
        cogpu_downsample_source_rows(&level->downsample, level->downsampled_rows, 1, &begin, &end);
    return begin < level->packed_rows ? begin : level->packed_rows;
}

/* Frees the buffer of rows that are not needed any more. */
static cogpu_status discard_rows(cogpu_writer *writer, struct cogpu_write_level *level,
                                 cogpu_error *error) {
    const uint32_t keep = first_needed_row(level);
    if (!level->is_buffered || keep <= level->first_row)
        return COGPU_OK;
    TRY(writer->backend.calls->shift_rows(writer, level, keep - level->first_row,
                                          level->end_row - keep, error));
    level->first_row = keep;
    return COGPU_OK;
}

/* ---- down the pyramid ---------------------------------------------------------------------- */

/* Encodes all complete rows of blocks; the last one of a level may be lower. */
static cogpu_status encode_block_rows(cogpu_writer *writer, struct cogpu_write_level *level,
                                      cogpu_error *error) {
    const cogpu_block_grid *grid = level->grid;
    while (level->packed_rows < level->end_row &&
           (level->end_row - level->packed_rows >= grid->block_height ||
            level->end_row == grid->height)) {
        const uint32_t left = level->end_row - level->packed_rows;
        TRY(writer->backend.calls->encode_row(writer, level,
                                              level->packed_rows / grid->block_height, error));
        level->packed_rows += left < grid->block_height ? left : grid->block_height;
    }
    return COGPU_OK;
}

/* How many rows of the next level have all their source rows, and fit its buffer. */
static uint32_t rows_to_downsample(const struct cogpu_write_level *level,
                                   const struct cogpu_write_level *next) {
    uint32_t count = 0, begin, end;
    uint32_t most = next->capacity_rows - (next->end_row - next->first_row);
    const uint32_t left = next->grid->height - level->downsampled_rows;
    for (most = most < left ? most : left; count < most; count++) {
        cogpu_downsample_source_rows(&level->downsample, level->downsampled_rows, count + 1, &begin,
                                     &end);
        if (end > level->end_row)
            break;
    }
    return count;
}

/* Makes as many rows of the next level as possible; *count may be 0. */
static cogpu_status downsample_next_level(cogpu_writer *writer, uint32_t number, uint32_t *count,
                                          cogpu_error *error) {
    struct cogpu_write_level *level = &writer->levels[number], *next = level + 1;
    *count = number + 1 < writer->plan.level_count ? rows_to_downsample(level, next) : 0;
    if (*count == 0)
        return COGPU_OK;
    TRY(use_buffers(writer, next, error));
    TRY(writer->backend.calls->downsample_rows(writer, level, *count, error));
    level->downsampled_rows += *count;
    next->end_row += *count;
    return COGPU_OK;
}

/* Does all that the rows at hand allow, in all levels that are packed: from level `packed` on.
 *
 * A walk down and up the pyramid: new rows of a level are encoded and downsampled at once, since
 * the buffer of the next level holds only a few of them. When a level has nothing left to do, the
 * level above goes on, for which the buffer has free rows again. */
static cogpu_status advance_levels(cogpu_writer *writer, uint32_t packed, cogpu_error *error) {
    for (uint32_t number = 0;;) {
        struct cogpu_write_level *level = &writer->levels[number];
        uint32_t count = 0;
        if (number >= packed)
            TRY(encode_block_rows(writer, level, error));
        TRY(downsample_next_level(writer, number, &count, error));
        if (count > 0) {
            number++;
            continue;
        }
        TRY(discard_rows(writer, level, error));
        if (number == 0)
            return COGPU_OK;
        number--;
    }
}

/* ---- overviews first ----------------------------------------------------------------------- */

/* Spills of overviews in memory, on a device. */
enum { KEPT_OVERVIEW_BYTES = 96 << 20 };

/* A device encodes faster than files are written: spills of the smallest levels stay in memory. */
static void keep_overviews(const cogpu_writer *writer) {
    uint64_t left = KEPT_OVERVIEW_BYTES;
    for (uint32_t i = writer->plan.level_count; i-- > 1;) {
        const struct cogpu_write_level *level = &writer->levels[i];
        const uint64_t most = cogpu_level_max_bytes(&writer->plan, level->grid);
        const uint64_t kept = most < left ? most : left;
        cogpu_spill_reserve(level->spill, kept);
        left -= kept;
    }
}

/* All rows of a COG are there at once, and its level 0 would need a spill or a gap. */
static bool can_make_overviews_first(const cogpu_writer *writer, const cogpu_raster *rows) {
    const struct cogpu_write_level *level = &writer->levels[0];
    return rows->height == level->grid->height && writer->plan.is_cog &&
           (level->spill || writer->output.gap_end) &&
           !cogpu_out_is_append_only(writer->output.sink);
}

/* Makes all overviews before level 0 is packed, so that its blocks get their final offsets. */
static cogpu_status make_overviews_first(cogpu_writer *writer, cogpu_error *error) {
    struct cogpu_write_level *level = &writer->levels[0];
    level->end_row = level->grid->height;
    if (writer->backend.calls->keeps_overviews)
        keep_overviews(writer);
    TRY(advance_levels(writer, 1, error));
    TRY(writer->backend.calls->drain(writer, error));
    level->end_row = 0;
    cogpu_write_output_reserve_overviews(writer);
    return COGPU_OK;
}

/* ---- rows of the caller -------------------------------------------------------------------- */

/* Rows of one call: the caller's rasters, and the rows of level 0 that they are. */
struct new_rows {
    const cogpu_raster *pixels, *mask;
    uint32_t begin, end;
    bool is_accessible; /* by the backend, where they are */
};

/* Copies rows of level 0 from `first` on into its buffer. */
static cogpu_status buffer_rows(cogpu_writer *writer, const struct new_rows *rows, uint32_t first,
                                uint32_t count, cogpu_error *error) {
    struct cogpu_write_level *level = &writer->levels[0];
    TRY(use_buffers(writer, level, error));
    TRY(writer->backend.calls->copy_rows(writer, rows->pixels, rows->mask, first - rows->begin,
                                         count, first - level->first_row, error));
    level->end_row = first + count;
    return COGPU_OK;
}

/* How many new rows are needed to pack or downsample the rows that are buffered. */
static uint32_t rows_to_complete(const struct cogpu_write_level *level, uint32_t begin) {
    uint32_t from, end = level->packed_rows + level->grid->block_height;
    if (level->packed_rows >= begin)
        cogpu_downsample_source_rows(&level->downsample, level->downsampled_rows, 1, &from, &end);
    return end - level->end_row;
}

/* Copies rows that belong together with buffered ones; or all of them, if the backend cannot access
 * them. */
static cogpu_status add_to_buffer(cogpu_writer *writer, const struct new_rows *rows,
                                  cogpu_error *error) {
    struct cogpu_write_level *level = &writer->levels[0];
    while (level->end_row < rows->end &&
           (!rows->is_accessible || first_needed_row(level) < rows->begin)) {
        const uint32_t left = rows->end - level->end_row;
        const uint32_t space = level->capacity_rows - (level->end_row - level->first_row);
        uint32_t count = rows->is_accessible ? rows_to_complete(level, rows->begin) : left;
        count = count < left ? count : left;
        count = count < space ? count : space;
        TRY(buffer_rows(writer, rows, level->end_row, count, error));
        TRY(advance_levels(writer, 0, error));
    }
    return COGPU_OK;
}

/* Packs and downsamples the other rows in the caller's memory, a row of blocks at a time. */
static cogpu_status use_in_place(cogpu_writer *writer, const struct new_rows *rows,
                                 cogpu_error *error) {
    struct cogpu_write_level *level = &writer->levels[0];
    level->is_buffered = false;
    level->first_row = rows->begin;
    level->pixels = *rows->pixels;
    level->mask = *rows->mask;
    if (can_make_overviews_first(writer, rows->pixels))
        TRY(make_overviews_first(writer, error));
    while (level->end_row < rows->end) {
        const uint32_t left = rows->end - level->end_row;
        const uint32_t count = level->packed_rows + level->grid->block_height - level->end_row;
        level->end_row += count < left ? count : left;
        TRY(advance_levels(writer, 0, error));
    }
    return COGPU_OK;
}

cogpu_status cogpu_writer_advance_rows(cogpu_writer *writer, const cogpu_raster *pixels,
                                       const cogpu_raster *mask, cogpu_error *error) {
    struct cogpu_write_level *level = &writer->levels[0];
    const cogpu_write_backend *backend = writer->backend.calls;
    const struct new_rows rows = {.pixels = pixels,
                                  .mask = mask,
                                  .begin = level->end_row,
                                  .end = level->end_row + pixels->height,
                                  .is_accessible =
                                      backend->can_access(writer, pixels) &&
                                      (!mask->data || backend->can_access(writer, mask))};
    TRY(add_to_buffer(writer, &rows, error));
    if (level->end_row == rows.end)
        return COGPU_OK;
    TRY(use_in_place(writer, &rows, error));
    level->first_row = first_needed_row(level);
    if (level->first_row == rows.end)
        return COGPU_OK;
    return buffer_rows(writer, &rows, level->first_row, rows.end - level->first_row, error);
}
