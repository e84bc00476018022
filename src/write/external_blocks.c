/*
 * Blocks encoded elsewhere: cogpu_encode_external makes the stored bytes of one block, on any
 * machine; cogpu_writer_append_block accepts them in any order, into spills. layout.c restores the
 * file order.
 */
#include "write/writer.h"

#include "image/write_tags.h"

#include <string.h>

/* ---- plan and checks without a writer ------------------------------------------------------ */

cogpu_status cogpu_plan_profile(const cogpu_profile *profile, cogpu_write_plan *plan,
                                cogpu_error *error) {
    cogpu_arena arena;
    cogpu_tag_list colours = {0};
    uint32_t photometric = 0;
    TRY(cogpu_plan_write(profile, plan, error));
    cogpu_arena_open(&arena, UINT64_MAX);
    cogpu_status status = cogpu_write_color_tags(profile, plan->encoding.format.compression, &arena,
                                                 &colours, &photometric, error);
    cogpu_arena_close(&arena);
    if (status == COGPU_OK)
        cogpu_plan_set_photometric(plan, photometric);
    return status;
}

cogpu_status cogpu_check_pixels(cogpu_raster *pixels, cogpu_type type, uint32_t bands,
                                uint32_t width, uint32_t height, cogpu_error *error) {
    if (!pixels->data || pixels->device != COGPU_DEVICE_CPU || pixels->type != type ||
        pixels->bands != bands || pixels->width != width || pixels->height != height)
        return cogpu_fail(
            error, COGPU_INVALID_ARGUMENT,
            "expected %u bands of %s, %u x %u pixels, in host memory; the raster has %u "
            "of %s, %u x %u",
            bands, cogpu_type_name(type), width, height, pixels->bands,
            cogpu_type_name(pixels->type), pixels->width, pixels->height);
    return cogpu_raster_set_strides(pixels, error);
}

/* ---- encode -------------------------------------------------------------------------------- */

static cogpu_status find_block(const cogpu_write_plan *plan, uint32_t level, cogpu_content content,
                               uint64_t index, cogpu_new_block *block, cogpu_error *error) {
    if (level >= plan->level_count)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "there is no level %u: the profile has %u",
                          level, plan->level_count);
    const cogpu_block_grid *grid = &plan->levels[level];
    uint64_t plane_blocks = (uint64_t)grid->across * grid->down;
    bool is_mask = content == COGPU_CONTENT_MASK;
    uint64_t blocks = is_mask ? plane_blocks * plan->has_mask : plane_blocks * plan->planes;
    if (index >= blocks)
        return cogpu_fail(
            error, COGPU_INVALID_ARGUMENT, "level %u has no %sblock %llu: it has %llu", level,
            is_mask ? "mask " : "", (unsigned long long)index, (unsigned long long)blocks);
    uint64_t rest = index % plane_blocks;
    *block = cogpu_plan_new_block(plan, grid, (uint32_t)(rest / grid->across),
                                  (uint32_t)(rest % grid->across),
                                  is_mask ? plan->planes : (uint32_t)(index / plane_blocks));
    return COGPU_OK;
}

static cogpu_status encode_pixels(const cogpu_profile *profile, uint32_t level,
                                  cogpu_content content, uint64_t index, const cogpu_raster *given,
                                  cogpu_worker *worker, cogpu_memory *encoded, cogpu_error *error) {
    cogpu_write_plan plan;
    cogpu_new_block block = {0};
    cogpu_raster pixels = *given;
    TRY(cogpu_plan_profile(profile, &plan, error));
    TRY(find_block(&plan, level, content, index, &block, error));
    const bool is_mask = cogpu_block_is_mask(&plan, &block);
    TRY(cogpu_check_pixels(&pixels, is_mask ? COGPU_TYPE_U8 : plan.type,
                           is_mask ? 1 : plan.bands / plan.planes, block.width, block.height,
                           error));
    encoded->data = cogpu_allocate((size_t)plan.max_block_bytes);
    if (!encoded->data)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for a block");
    return cogpu_worker_encode_block(worker, &plan, &plan.levels[level], &block, &pixels,
                                     encoded->data, (size_t)plan.max_block_bytes, &encoded->bytes,
                                     error);
}

cogpu_status cogpu_encode_external(const cogpu_profile *profile, uint32_t level,
                                   cogpu_content content, uint64_t block,
                                   const cogpu_raster *pixels, cogpu_memory *encoded,
                                   cogpu_error *error) {
    cogpu_worker *worker = cogpu_context_take_worker(profile->context);
    if (!worker)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory to encode a block");
    cogpu_status status =
        encode_pixels(profile, level, content, block, pixels, worker, encoded, error);
    if (status != COGPU_OK)
        cogpu_memory_free(encoded);
    cogpu_context_return_worker(profile->context, worker);
    return status;
}

/* ---- write --------------------------------------------------------------------------------- */

static cogpu_status begin_blocks(cogpu_writer *writer, cogpu_error *error) {
    if (writer->state == COGPU_WRITER_WRITING_BLOCKS)
        return COGPU_OK;
    if (writer->state == COGPU_WRITER_WRITING_ROWS)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the writer has rows already: it takes no blocks encoded elsewhere");
    TRY(cogpu_write_output_open_external(writer, error));
    writer->state = COGPU_WRITER_WRITING_BLOCKS;
    return COGPU_OK;
}

/* Level 0 comes with all its bytes or with none: the sink is written from its beginning on. */
static cogpu_status check_elsewhere(cogpu_writer *writer, uint32_t number, bool is_elsewhere,
                                    cogpu_error *error) {
    const enum cogpu_external_bytes bytes =
        is_elsewhere ? COGPU_EXTERNAL_ELSEWHERE : COGPU_EXTERNAL_HERE;
    if (is_elsewhere && (number > 0 || !writer->plan.is_cog))
        return cogpu_fail(
            error, COGPU_INVALID_ARGUMENT,
            "only blocks of level 0 of a COG may stay elsewhere: those of level %u of "
            "this %s need their bytes",
            number, writer->plan.is_cog ? "COG" : "file, which is none,");
    if (number > 0)
        return COGPU_OK;
    if (writer->external == COGPU_EXTERNAL_UNKNOWN)
        writer->external = bytes;
    if (writer->external != bytes)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "some blocks of level 0 came with their bytes and others stay elsewhere: "
                          "all of them, or none");
    return COGPU_OK;
}

/* Each block once, no longer than the profile allows, and empty only if the file may be sparse. */
static cogpu_status check_external_block(const cogpu_writer *writer, uint32_t number,
                                         uint64_t index, size_t bytes, bool is_written,
                                         cogpu_error *error) {
    const cogpu_write_plan *plan = &writer->plan;
    if (is_written)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "block %llu of level %u was written before", (unsigned long long)index,
                          number);
    if (bytes > plan->max_block_bytes)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "a block of this profile has at most %llu bytes, got %zu",
                          (unsigned long long)plan->max_block_bytes, bytes);
    if (bytes == 0 && !plan->is_sparse)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "block %llu of level %u has no bytes: set `sparse` to leave blocks out",
                          (unsigned long long)index, number);
    return COGPU_OK;
}

static cogpu_status write_external(cogpu_writer *writer, uint32_t number, cogpu_content content,
                                   uint64_t index, const void *encoded, size_t bytes,
                                   cogpu_error *error) {
    cogpu_new_block block;
    uint64_t offset = 0;
    TRY(begin_blocks(writer, error));
    TRY(find_block(&writer->plan, number, content, index, &block, error));
    struct cogpu_write_level *level = &writer->levels[number];
    struct cogpu_block_table *table =
        content == COGPU_CONTENT_MASK ? &level->mask_blocks : &level->pixel_blocks;
    TRY(check_external_block(writer, number, index, bytes, table->external[index], error));
    table->bytes[index] = bytes;
    table->external[index] = 1;
    writer->output.written.blocks++;
    writer->output.written.sparse_blocks += bytes == 0;
    if (!cogpu_meter_add(&writer->meter, 1))
        return cogpu_fail_cancelled(error);
    if (bytes == 0)
        return COGPU_OK;
    TRY(check_elsewhere(writer, number, !encoded, error));
    if (!encoded)
        return COGPU_OK;
    TRY(cogpu_write_output_spill_block(writer, level, encoded, bytes, &offset, error));
    table->external[index] = offset + 1;
    return COGPU_OK;
}

cogpu_status cogpu_writer_append_block(cogpu_writer *writer, uint32_t level, cogpu_content content,
                                       uint64_t block, const void *encoded, size_t bytes,
                                       cogpu_error *error) {
    if (writer->state == COGPU_WRITER_FAILED)
        return cogpu_fail(error, writer->failure, "the writer failed before: abort it");
    return cogpu_writer_note_failure(
        writer, write_external(writer, level, content, block, encoded, bytes, error));
}
