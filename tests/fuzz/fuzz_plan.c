/*
 * Plans of any geometry: each pixel of the window comes exactly once for each requested band, from
 * a block that exists and contains it.
 *
 * Input: 16 bytes of geometry, see `choose`, then the list of bands.
 */
#include "plan/plan.h"

#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

enum { CHOICE_BYTES = 16, BANDS_MAX = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void require(int holds) {
    if (!holds)
        abort();
}

/* Sides of up to 64 pixels; the row's length in bytes is free, for the sake of slices. */
static cogpu_storage choose(const uint8_t *choice) {
    cogpu_storage storage = {.width = 1 + choice[0] % 64u,
                             .height = 1 + choice[1] % 64u,
                             .bands = 1 + choice[2] % 5u,
                             .layout = choice[3] & 1 ? COGPU_LAYOUT_TILES : COGPU_LAYOUT_STRIPS};
    storage.planes = choice[3] & 2 ? storage.bands : 1;
    storage.block_width =
        storage.layout == COGPU_LAYOUT_TILES ? 1 + choice[4] % 80u : storage.width;
    storage.block_height = 1 + choice[5] % 80u;
    if (storage.layout == COGPU_LAYOUT_STRIPS && storage.block_height > storage.height)
        storage.block_height = storage.height;
    storage.across = (uint32_t)divide_up(storage.width, storage.block_width);
    storage.down = (uint32_t)divide_up(storage.height, storage.block_height);
    storage.blocks = (uint64_t)storage.across * storage.down * storage.planes;
    storage.format.compression = choice[3] & 4 ? COMPRESSION_NONE : COMPRESSION_DEFLATE;
    storage.format.row_bytes = (size_t)1 << choice[6] % 24;
    storage.block_bytes = storage.format.row_bytes * storage.block_height;
    return storage;
}

static void check_block(const cogpu_read_plan *plan, const cogpu_block *block) {
    const cogpu_storage *storage = plan->storage;
    uint64_t row_bytes = storage->format.row_bytes;
    require(block->index < storage->blocks && block->plane < plan->planes);
    require(block->width > 0 && block->height > 0 && block->rows > 0);
    require(block->source_x + block->width <= storage->block_width);
    require(block->source_y + block->height <= block->needed_rows);
    require(block->needed_rows <= block->rows);
    require(block->target_x + block->width <= plan->width);
    require(block->target_y + block->height <= plan->height);
    require(block->skip % row_bytes == 0);
    require(block->skip / row_bytes + block->rows <= storage->block_height);
    require(plan->slices > 1 || block->skip == 0);

    /* The pixel taken first is the one that goes to the target. */
    uint64_t in_plane = block->index % ((uint64_t)storage->across * storage->down);
    uint64_t column = in_plane % storage->across * storage->block_width + block->source_x;
    uint64_t row = in_plane / storage->across * storage->block_height + block->skip / row_bytes +
                   block->source_y;
    require(column == plan->x + block->target_x && row == plan->y + block->target_y);
    uint64_t plane = block->index / ((uint64_t)storage->across * storage->down);
    uint32_t band = plan->bands ? plan->bands[block->plane] - 1 : block->plane;
    require(storage->planes == 1 ? plane == 0 : plane == band);
}

static void check_runs(const uint8_t *data, size_t bytes) {
    cogpu_span spans[16];
    uint32_t count = (uint32_t)(bytes / sizeof *spans < 16 ? bytes / sizeof *spans : 16);
    if (count == 0)
        return;
    memcpy(spans, data, count * sizeof *spans);
    uint32_t run = cogpu_plan_run(spans, count);
    require(run >= 1 && run <= count);
    for (uint32_t i = 1; i < run; i++) {
        uint64_t end = 0;
        require((spans[i].bytes == 0) == (spans[0].bytes == 0));
        if (spans[i].bytes == 0)
            continue;
        require(checked_add(spans[i - 1].offset, spans[i - 1].bytes, &end));
        require(spans[i].offset >= end);
        require(checked_add(spans[i].offset, spans[i].bytes, &end));
        require(end - spans[0].offset <= 1 << 20);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static uint8_t taken[BANDS_MAX][64][64];
    if (bytes < CHOICE_BYTES)
        return 0;
    cogpu_storage storage = choose(data);
    uint32_t bands[BANDS_MAX], band_count = data[7] % (BANDS_MAX + 1u);
    for (uint32_t i = 0; i < band_count; i++)
        bands[i] = 1 + (CHOICE_BYTES + i < bytes ? data[CHOICE_BYTES + i] : 0) % storage.bands;
    uint32_t x = data[8] % storage.width, y = data[9] % storage.height;
    uint32_t width = 1 + data[10] % (storage.width - x);
    uint32_t height = 1 + data[11] % (storage.height - y);
    cogpu_read_plan plan;
    cogpu_plan_read(&storage, x, y, width, height, band_count ? bands : NULL, band_count, &plan);
    require(plan.band_count == (band_count ? band_count : storage.bands));
    memset(taken, 0, sizeof taken);
    for (uint64_t i = 0; i < plan.count; i++) {
        cogpu_block block = cogpu_plan_block(&plan, i);
        check_block(&plan, &block);
        for (uint32_t row = 0; row < block.height; row++)
            for (uint32_t column = 0; column < block.width; column++)
                taken[block.plane][block.target_y + row][block.target_x + column]++;
    }
    for (uint32_t plane = 0; plane < plan.planes; plane++)
        for (uint32_t row = 0; row < height; row++)
            for (uint32_t column = 0; column < width; column++)
                require(taken[plane][row][column] == 1);
    check_runs(data, bytes);
    return 0;
}
