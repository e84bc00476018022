/* The write plan: checks the shape of the profile, calls the steps, and bounds the file's size. */
#include "plan/write_plan.h"

#include "base/checked.h"
#include "base/math.h"
#include "base/resampling.h"
#include "plan/block_leader.h"
#include "plan/write_steps.h"

#include <math.h>

/* ---- what is stored ------------------------------------------------------------------------ */

/* A C enumeration may hold any number. */
static cogpu_status check_enumerations(const cogpu_profile *profile, cogpu_error *error) {
    const struct {
        const char *field;
        int value, last;
    } fields[] = {{"resampling", (int)profile->resampling, COGPU_RESAMPLING_OVERVIEW_COUNT - 1},
                  {"overviews", (int)profile->overviews, COGPU_OVERVIEWS_LISTED},
                  {"bigtiff", (int)profile->bigtiff, COGPU_BIGTIFF_NO}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].value < 0 || fields[i].value > fields[i].last)
            return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                              "`%s` must be between 0 and %d, got %d", fields[i].field,
                              fields[i].last, fields[i].value);
    return COGPU_OK;
}

static cogpu_status check_shape(const cogpu_profile *profile, cogpu_error *error) {
    if (cogpu_type_bytes(profile->type) == 0)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the profile has no sample type: set `type`");
    if (profile->width == 0 || profile->height == 0 || profile->width > SIDE_MAX ||
        profile->height > SIDE_MAX)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "an image of %u x %u pixels cannot be written: sides go from 1 to %d",
                          profile->width, profile->height, SIDE_MAX);
    if (profile->bands == 0 || profile->bands > BANDS_MAX)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "%u bands cannot be written: 1 to %u can",
                          profile->bands, BANDS_MAX);
    return COGPU_OK;
}

/* ---- size of the file ---------------------------------------------------------------------- */

/* Bytes of uncompressed blocks, which are all written. Cannot overflow if the upper bound does not.
 */
static uint64_t min_level_bytes(const cogpu_write_plan *plan, const cogpu_block_grid *grid) {
    if (plan->is_sparse || plan->codec->compression != COMPRESSION_NONE)
        return 0;
    uint64_t rows = plan->is_tiled ? (uint64_t)grid->down * grid->block_height : grid->height;
    uint64_t columns = (uint64_t)grid->across * grid->block_width;
    uint64_t row_bytes =
        divide_up(columns * plan->encoding.format.samples * plan->encoding.format.bits, 8);
    return rows * row_bytes * plan->planes;
}

static cogpu_status plan_sizes(cogpu_write_plan *plan, cogpu_error *error) {
    for (uint32_t i = 0; i < plan->level_count; i++) {
        const cogpu_block_grid *grid = &plan->levels[i];
        cogpu_new_block block = cogpu_plan_new_block(plan, grid, 0, 0, 0);
        uint64_t count = (uint64_t)grid->across * grid->down, bytes = 0, all = 0;
        for (uint32_t kind = 0; kind <= plan->has_mask; kind++) {
            size_t decoded = 0;
            block.plane = kind ? plan->planes : 0;
            cogpu_encoding encoding = cogpu_plan_encoding(plan, grid, &block, &decoded);
            const cogpu_codec_row *codec = kind ? plan->mask_codec : plan->codec;
            uint64_t bound = codec->encoder->bound(&encoding, decoded);
            if (bound > UINT32_MAX)
                return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                                  "a block may need more than 4 GiB: choose smaller blocks");
            plan->max_block_bytes = max_u64(bound, plan->max_block_bytes);
            if (kind)
                plan->max_mask_bytes = max_u64(bound, plan->max_mask_bytes);
            bytes = (bound + COGPU_BLOCK_OVERHEAD_BYTES) * (kind ? 1 : plan->planes);
            if (!checked_mul(bytes, count, &all) ||
                !checked_add(plan->most_bytes, all, &plan->most_bytes))
                return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                                  "no file is large enough for this image");
        }
        plan->min_file_bytes += min_level_bytes(plan, grid);
    }
    return COGPU_OK;
}

/* In threads, GDAL reads the sparse blocks of such a file as 0. */
static bool is_misread_sparse(cogpu_type type, const cogpu_nodata *nodata) {
    return (type == COGPU_TYPE_I64 && nodata->i64 != 0) ||
           (type == COGPU_TYPE_U64 && nodata->u64 != 0);
}

static void set_fill(const cogpu_profile *profile, cogpu_write_plan *plan) {
    cogpu_nodata nodata;
    cogpu_nodata_parse(profile->nodata, profile->type, &nodata);
    plan->has_nodata = profile->nodata && nodata.matches;
    plan->is_sparse = profile->sparse && !is_misread_sparse(profile->type, &nodata);
    if (plan->has_nodata)
        cogpu_nodata_sample(&nodata, profile->type, plan->fill);
    plan->replaces_nan = profile->nan_is_nodata && plan->has_nodata &&
                         cogpu_type_is_float(profile->type) && !isnan(nodata.value);
}

cogpu_status cogpu_plan_write(const cogpu_profile *profile, cogpu_write_plan *plan,
                              cogpu_error *error) {
    TRY(check_enumerations(profile, error));
    TRY(check_shape(profile, error));
    *plan = (cogpu_write_plan){
        .bands = profile->bands,
        .planes = profile->interleave == COGPU_INTERLEAVE_BAND ? profile->bands : 1,
        .type = profile->type,
        .is_cog = profile->cog,
        .is_tiled = !profile->strips,
        .is_bigtiff = profile->bigtiff == COGPU_BIGTIFF_YES,
        .has_mask = profile->mask,
        .mask_codec = cogpu_codec_find(COMPRESSION_DEFLATE)};
    size_t sample = cogpu_type_bytes(profile->type);
    plan->pixel_bytes =
        profile->interleave == COGPU_INTERLEAVE_BAND ? sample : sample * profile->bands;
    if (plan->has_mask && !plan->mask_codec->encoder)
        return cogpu_fail(error, COGPU_UNSUPPORTED, "masks cannot be written: this build lacks %s",
                          plan->mask_codec->library);
    TRY(cogpu_plan_codec(profile, plan, error));
    TRY(cogpu_plan_levels(profile, plan, error));
    set_fill(profile, plan);
    plan->resampling = profile->resampling
                           ? profile->resampling
                           : cogpu_resampling_default(profile->type, profile->palette != NULL);
    return plan_sizes(plan, error);
}

void cogpu_plan_set_photometric(cogpu_write_plan *plan, uint32_t photometric) {
    cogpu_block_format *format = &plan->encoding.format;
    format->photometric = photometric;
    bool is_subsampled = photometric == COGPU_PHOTOMETRIC_YCBCR && plan->codec->converts_to_ycbcr;
    format->subsampling_x = format->subsampling_y = is_subsampled ? 2 : 1;
}

/* ---- blocks -------------------------------------------------------------------------------- */

cogpu_new_block cogpu_plan_new_block(const cogpu_write_plan *plan, const cogpu_block_grid *grid,
                                     uint32_t row, uint32_t column, uint32_t plane) {
    cogpu_new_block block = {.column = column, .row = row, .plane = plane};
    block.width = min_u32(grid->block_width, grid->width - column * grid->block_width);
    block.height = min_u32(grid->block_height, grid->height - row * grid->block_height);
    block.rows = plan->is_tiled ? grid->block_height : block.height;
    return block;
}

cogpu_encoding cogpu_plan_encoding(const cogpu_write_plan *plan, const cogpu_block_grid *grid,
                                   const cogpu_new_block *block, size_t *decoded_bytes) {
    cogpu_encoding encoding = plan->encoding;
    cogpu_block_format *format = &encoding.format;
    format->width = grid->block_width;
    format->height = block->rows;
    format->row_bytes =
        (size_t)divide_up((uint64_t)grid->block_width * format->samples * format->bits, 8);
    encoding.nodata = plan->has_nodata ? plan->fill : NULL;
    if (block->plane == plan->planes) {
        format->compression = plan->mask_codec->compression;
        format->samples = format->bits = 1;
        format->type = COGPU_TYPE_U8;
        format->row_bytes = (size_t)divide_up(grid->block_width, 8);
        encoding.level = plan->mask_codec->default_level;
    }
    *decoded_bytes = format->row_bytes * format->height;
    return encoding;
}

bool cogpu_plan_is_packed(const cogpu_write_plan *plan) {
    return plan->encoding.format.bits < 8 * cogpu_type_bytes(plan->type);
}

size_t cogpu_plan_block_bytes(const cogpu_write_plan *plan, const cogpu_block_grid *grid,
                              const cogpu_new_block *block) {
    bool is_mask = block->plane == plan->planes;
    size_t row_bytes =
        is_mask ? (size_t)divide_up(grid->block_width, 8) : grid->block_width * plan->pixel_bytes;
    return row_bytes * block->rows;
}

uint64_t cogpu_plan_index(const cogpu_write_plan *plan, const cogpu_block_grid *grid,
                          const cogpu_new_block *block) {
    uint64_t index = (uint64_t)block->row * grid->across + block->column;
    bool is_mask = block->plane == plan->planes;
    return is_mask ? index : index + (uint64_t)block->plane * grid->across * grid->down;
}
