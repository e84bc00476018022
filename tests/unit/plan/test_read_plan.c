/*
 * Read plans: for all small grids and all their windows, every pixel is read exactly once for each
 * requested band, from its position in its block; runs of neighbouring blocks.
 */
#include "plan/plan.h"

#include "base/checked.h"
#include "support/test.h"

static cogpu_storage make(uint32_t width, uint32_t height, uint32_t bands, bool planar,
                          uint32_t block_width, uint32_t block_height) {
    bool tiled = block_width != 0;
    cogpu_storage storage = {.width = width, .height = height, .bands = bands};
    storage.layout = tiled ? COGPU_LAYOUT_TILES : COGPU_LAYOUT_STRIPS;
    storage.block_width = tiled ? block_width : width;
    storage.block_height = !tiled && block_height > height ? height : block_height;
    storage.across = (uint32_t)divide_up(width, storage.block_width);
    storage.down = (uint32_t)divide_up(height, storage.block_height);
    storage.planes = planar ? bands : 1;
    storage.blocks = (uint64_t)storage.across * storage.down * storage.planes;
    storage.format.compression = COMPRESSION_DEFLATE;
    storage.format.row_bytes = storage.block_width;
    storage.block_bytes = storage.format.row_bytes * storage.block_height;
    return storage;
}

/* Makes it an uncompressed one whose rows are so long that a slice has `rows` of them. */
static void slice_by(cogpu_storage *storage, uint32_t rows) {
    storage->format.compression = COMPRESSION_NONE;
    storage->format.row_bytes = (1 << 20) / rows;
    storage->block_bytes = storage->format.row_bytes * storage->block_height;
}

/* What is wrong with a block, 0 = nothing. */
static int faults_of(const cogpu_read_plan *plan, const cogpu_block *block) {
    const cogpu_storage *s = plan->storage;
    uint64_t per_plane = (uint64_t)s->across * s->down, in_plane = block->index % per_plane;
    uint64_t skipped = block->skip / s->format.row_bytes;
    uint64_t column = in_plane % s->across * s->block_width + block->source_x;
    uint64_t row = in_plane / s->across * s->block_height + skipped + block->source_y;
    uint32_t band = plan->bands ? plan->bands[block->plane] - 1 : block->plane;
    return (block->index >= s->blocks) + (block->skip % s->format.row_bytes != 0) +
           (column != plan->x + block->target_x) + (row != plan->y + block->target_y) +
           (block->source_x + block->width > s->block_width) +
           (block->source_y + block->height > block->needed_rows) +
           (block->needed_rows > block->rows) + (block->width == 0) + (block->height == 0) +
           (block->index / per_plane != (s->planes > 1 ? band : 0)) +
           (skipped + block->rows > cogpu_storage_rows(s, block->index)) +
           (row - block->source_y + block->needed_rows > s->height);
}

static int faults(const cogpu_storage *storage, uint32_t x, uint32_t y, uint32_t width,
                  uint32_t height, const uint32_t *bands, uint32_t band_count) {
    static uint8_t taken[8][32][32];
    cogpu_read_plan plan;
    int wrong = 0;
    memset(taken, 0, sizeof taken);
    cogpu_plan_read(storage, x, y, width, height, bands, band_count, &plan);
    for (uint64_t i = 0; i < plan.count; i++) {
        cogpu_block block = cogpu_plan_block(&plan, i);
        if (faults_of(&plan, &block) || block.plane >= plan.planes ||
            block.target_x + block.width > width || block.target_y + block.height > height) {
            wrong++;
            continue;
        }
        for (uint32_t r = 0; r < block.height; r++)
            for (uint32_t c = 0; c < block.width; c++)
                taken[block.plane][block.target_y + r][block.target_x + c]++;
    }
    uint32_t planes = storage->planes > 1 ? (bands ? band_count : storage->bands) : 1;
    for (uint32_t p = 0; p < planes; p++)
        for (uint32_t r = 0; r < height; r++)
            for (uint32_t c = 0; c < width; c++)
                wrong += taken[p][r][c] != 1;
    return wrong + (plan.planes != planes);
}

static int faults_of_all_windows(const cogpu_storage *storage, const uint32_t *bands,
                                 uint32_t band_count) {
    int wrong = 0;
    for (uint32_t y = 0; y < storage->height; y++)
        for (uint32_t x = 0; x < storage->width; x++)
            for (uint32_t height = 1; height <= storage->height - y; height++)
                for (uint32_t width = 1; width <= storage->width - x; width++)
                    wrong += faults(storage, x, y, width, height, bands, band_count);
    return wrong;
}

/* Image sides of 1 to 7, blocks of 1 to 9. */
static void test_all_tiles(void) {
    for (uint32_t width = 1; width <= 7; width += 2)
        for (uint32_t height = 1; height <= 7; height += 3)
            for (uint32_t bw = 1; bw <= 9; bw++)
                for (uint32_t bh = 1; bh <= 9; bh++) {
                    cogpu_storage storage = make(width, height, 1, false, bw, bh);
                    CHECK(faults_of_all_windows(&storage, NULL, 0) == 0);
                }
}

static void test_all_strips(void) {
    for (uint32_t width = 1; width <= 5; width += 2)
        for (uint32_t height = 1; height <= 8; height++)
            for (uint32_t rows = 1; rows <= 9; rows++) {
                cogpu_storage storage = make(width, height, 1, false, 0, rows);
                CHECK(faults_of_all_windows(&storage, NULL, 0) == 0);
            }
}

static void test_all_slices(void) {
    for (uint32_t tiled = 0; tiled < 2; tiled++)
        for (uint32_t height = 1; height <= 9; height += 2)
            for (uint32_t rows = 1; rows <= 9; rows++)
                for (uint32_t slice = 1; slice <= 5; slice++) {
                    cogpu_storage storage = make(5, height, 1, false, tiled * 3, rows);
                    slice_by(&storage, slice);
                    CHECK(faults_of_all_windows(&storage, NULL, 0) == 0);
                }
}

static void test_planes_and_lists_of_bands(void) {
    static const uint32_t lists[][6] = {{1}, {3}, {2, 1}, {3, 3, 1}, {1, 2, 3}, {2, 2, 2, 1, 3, 1}};
    static const uint32_t counts[] = {1, 1, 2, 3, 3, 6};
    for (uint32_t planar = 0; planar < 2; planar++)
        for (uint32_t slice = 0; slice < 3; slice++)
            for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
                cogpu_storage storage = make(5, 6, 3, planar, 3, 4);
                if (slice)
                    slice_by(&storage, slice);
                CHECK(faults_of_all_windows(&storage, lists[i], counts[i]) == 0);
                CHECK(faults_of_all_windows(&storage, NULL, 0) == 0);
            }
}

static void test_slices_only_where_they_help(void) {
    cogpu_read_plan plan;
    cogpu_storage storage = make(10, 100, 1, false, 0, 100);
    slice_by(&storage, 8);
    cogpu_plan_read(&storage, 0, 0, 10, 100, NULL, 0, &plan);
    CHECK(plan.slices == 13 && plan.slice_rows == 8 && plan.count == 13);
    storage.format.compression = COMPRESSION_LZW;
    cogpu_plan_read(&storage, 0, 0, 10, 100, NULL, 0, &plan);
    CHECK(plan.slices == 1 && plan.count == 1);
    storage.format.compression = COMPRESSION_NONE;
    storage.format.row_bytes = 10;
    storage.block_bytes = 1000;
    cogpu_plan_read(&storage, 0, 0, 10, 100, NULL, 0, &plan);
    CHECK(plan.slices == 1);
    storage.format.row_bytes = 5 << 20;
    storage.block_bytes = 100 * storage.format.row_bytes;
    cogpu_plan_read(&storage, 0, 10, 10, 3, NULL, 0, &plan);
    CHECK(plan.slice_rows == 1 && plan.count == 3);
}

/* T204, T216: the largest numbers that storage.c lets through. */
static void test_the_largest_grids(void) {
    cogpu_read_plan plan;
    cogpu_storage storage = make(INT32_MAX, INT32_MAX, 1, false, 1 << 16, 1 << 16);
    cogpu_plan_read(&storage, 0, 0, INT32_MAX, INT32_MAX, NULL, 0, &plan);
    CHECK(plan.count == 1ULL << 30);
    cogpu_block block = cogpu_plan_block(&plan, plan.count - 1);
    CHECK(faults_of(&plan, &block) == 0 && block.width == 65535 && block.height == 65535);
    storage = make(1, 1, 1, false, INT32_MAX, INT32_MAX);
    cogpu_plan_read(&storage, 0, 0, 1, 1, NULL, 0, &plan);
    block = cogpu_plan_block(&plan, 0);
    CHECK(plan.count == 1 && block.width == 1 && block.height == 1 && block.needed_rows == 1);
    storage = make(INT32_MAX, 1, 1, false, 1, 1);
    cogpu_plan_read(&storage, INT32_MAX - 1, 0, 1, 1, NULL, 0, &plan);
    block = cogpu_plan_block(&plan, 0);
    CHECK(plan.count == 1 && block.index == INT32_MAX - 1);
}

static void test_runs(void) {
    const cogpu_span neighbours[] = {{100, 50}, {150, 50}, {204, 10}, {214, 0}, {214, 5}};
    CHECK(cogpu_plan_run(neighbours, 5) == 3 && cogpu_plan_run(neighbours, 2) == 2);
    CHECK(cogpu_plan_run(neighbours + 3, 2) == 1 && cogpu_plan_run(neighbours + 4, 1) == 1);
    const cogpu_span sparse[] = {{0, 0}, {0, 0}, {7, 0}, {100, 1}};
    CHECK(cogpu_plan_run(sparse, 4) == 3);
    const cogpu_span gap[] = {{0, 10}, {10 + 4096, 5}, {10 + 4096 + 5 + 4097, 5}};
    CHECK(cogpu_plan_run(gap, 3) == 2);
    const cogpu_span backwards[] = {{100, 50}, {50, 50}}, shared[] = {{100, 50}, {100, 50}};
    const cogpu_span overlapping[] = {{100, 50}, {149, 50}};
    CHECK(cogpu_plan_run(backwards, 2) == 1 && cogpu_plan_run(shared, 2) == 1);
    CHECK(cogpu_plan_run(overlapping, 2) == 1);
}

static void test_runs_end_at_a_megabyte(void) {
    const cogpu_span large[] = {{0, 5 << 20}, {5 << 20, 5}},
                     exact[] = {{7, 1 << 19}, {7 + (1 << 19), 1 << 19}, {7 + (1 << 20), 1}};
    CHECK(cogpu_plan_run(large, 2) == 1);
    CHECK(cogpu_plan_run(exact, 3) == 2);
}

/* T208: sums that wrap must not make far blocks neighbours. Once read before the file's start. */
static void test_runs_do_not_wrap(void) {
    const cogpu_span before[] = {{UINT64_MAX - 511, 520}, {16, 50}};
    CHECK(cogpu_plan_run(before, 2) == 1);
    const cogpu_span inside[] = {{1000, 100}, {1200, UINT64_MAX - 99}, {1300, 50}};
    CHECK(cogpu_plan_run(inside, 3) == 1);
    const cogpu_span last[] = {{UINT64_MAX - 100, 50}, {UINT64_MAX - 50, 50}, {UINT64_MAX, 1}};
    CHECK(cogpu_plan_run(last, 3) == 2);
}

TESTS(read_plan) {
    RUN(test_all_tiles);
    RUN(test_all_strips);
    RUN(test_all_slices);
    RUN(test_planes_and_lists_of_bands);
    RUN(test_slices_only_where_they_help);
    RUN(test_the_largest_grids);
    RUN(test_runs);
    RUN(test_runs_end_at_a_megabyte);
    RUN(test_runs_do_not_wrap);
    return FINISH();
}
