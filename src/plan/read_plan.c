/* The read plan: the blocks of a window by number, runs of blocks, and nodata as samples. */
#include "plan/plan.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/coalesce.h"
#include "base/math.h"

#include <string.h>

enum { SLICE_BYTES = 1 << 20, GAP_BYTES = 4096 };

/* Rows of a slice: all of a block that has to be decoded as a whole. */
static uint32_t rows_of_slice(const cogpu_storage *storage) {
    size_t row_bytes = storage->format.row_bytes;
    if (storage->format.compression != COMPRESSION_NONE || cogpu_storage_has_units(storage) ||
        storage->block_bytes <= SLICE_BYTES)
        return storage->block_height;
    return row_bytes >= SLICE_BYTES ? 1 : (uint32_t)(SLICE_BYTES / row_bytes);
}

static uint32_t slice_of_row(const cogpu_read_plan *plan, uint32_t row) {
    uint32_t block_height = plan->storage->block_height;
    return row / block_height * plan->slices + row % block_height / plan->slice_rows;
}

void cogpu_plan_read(const cogpu_storage *storage, uint32_t x, uint32_t y, uint32_t width,
                     uint32_t height, const uint32_t *bands, uint32_t band_count,
                     cogpu_read_plan *plan) {
    *plan = (cogpu_read_plan){.storage = storage,
                              .x = x,
                              .y = y,
                              .width = width,
                              .height = height,
                              .bands = bands,
                              .band_count = bands ? band_count : storage->bands};
    plan->slice_rows = rows_of_slice(storage);
    plan->slices = (uint32_t)divide_up(storage->block_height, plan->slice_rows);
    plan->first_column = x / storage->block_width;
    plan->columns = (x + width - 1) / storage->block_width - plan->first_column + 1;
    plan->first_slice = slice_of_row(plan, y);
    plan->slice_count = slice_of_row(plan, y + height - 1) - plan->first_slice + 1;
    plan->planes = storage->planes > 1 ? plan->band_count : 1;
    plan->count = (uint64_t)plan->columns * plan->slice_count * plan->planes;
}

uint32_t cogpu_plan_band(const cogpu_read_plan *plan, uint32_t p) {
    return plan->bands ? plan->bands[p] - 1 : p;
}

void cogpu_conversion_nodata(const cogpu_nodata *nodata, cogpu_type type,
                             cogpu_conversion *conversion) {
    conversion->has_nodata = true;
    conversion->nodata_is_nan = nodata->value != nodata->value;
    cogpu_nodata_sample(nodata, type, conversion->nodata[0]);
    memcpy(conversion->nodata[1], conversion->nodata[0], sizeof conversion->nodata[1]);
    if (cogpu_type_is_float(type) && nodata->value == 0)
        conversion->nodata[1][COGPU_HOST_BIG_ENDIAN ? 0 : cogpu_type_bytes(type) - 1] ^= 0x80;
}

cogpu_block cogpu_plan_block(const cogpu_read_plan *plan, uint64_t number) {
    const cogpu_storage *storage = plan->storage;
    uint32_t column = plan->first_column + (uint32_t)(number % plan->columns);
    uint64_t rest = number / plan->columns;
    uint32_t slice_row = plan->first_slice + (uint32_t)(rest % plan->slice_count);
    uint32_t plane = (uint32_t)(rest / plan->slice_count);
    uint32_t block_row = slice_row / plan->slices;
    uint32_t skipped_rows = slice_row % plan->slices * plan->slice_rows;
    uint64_t band = storage->planes > 1 ? cogpu_plan_band(plan, plane) : 0;

    cogpu_block block = {.plane = plane};
    block.index =
        band * storage->across * storage->down + (uint64_t)block_row * storage->across + column;
    block.skip = (uint64_t)skipped_rows * storage->format.row_bytes;
    block.rows = min_u32(plan->slice_rows, cogpu_storage_rows(storage, block.index) - skipped_rows);

    uint32_t left = column * storage->block_width;
    uint32_t top = block_row * storage->block_height + skipped_rows;
    block.needed_rows = min_u32(block.rows, storage->height - top);
    uint32_t first_x = max_u32(left, plan->x), first_y = max_u32(top, plan->y);
    block.source_x = first_x - left;
    block.source_y = first_y - top;
    block.target_x = first_x - plan->x;
    block.target_y = first_y - plan->y;
    block.width = min_u32(storage->block_width - block.source_x, plan->x + plan->width - first_x);
    block.height = min_u32(block.rows - block.source_y, plan->y + plan->height - first_y);
    return block;
}

uint32_t cogpu_plan_run(const cogpu_span *spans, uint32_t count) {
    uint32_t run = 1;
    if (spans[0].bytes == 0) {
        while (run < count && spans[run].bytes == 0)
            run++;
        return run;
    }
    static const cogpu_coalesce_limits limits = {.gap_bytes = GAP_BYTES,
                                                 .request_bytes = COGPU_RUN_BYTES};
    cogpu_joined_range joined = {.offset = spans[0].offset};
    uint64_t end;
    /* A span beyond the last possible offset forms a run of its own, whose read fails. */
    if (!checked_add(joined.offset, spans[0].bytes, &joined.end))
        return 1;
    while (run < count && spans[run].bytes != 0 && spans[run].offset >= joined.end &&
           checked_add(spans[run].offset, spans[run].bytes, &end) &&
           cogpu_coalesce_allows(&joined, spans[run].offset, end, &limits)) {
        joined.end = end;
        run++;
    }
    return run;
}
