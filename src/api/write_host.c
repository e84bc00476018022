/*
 * The host as an engine of the writer: takes rows of a swath and of levels, hands on rows that a
 * level holds and rows of the next one; all threads share them. How blocks are encoded is in
 * write_blocks.c.
 */
#include "api/writer.h"

#include "base/checked.h"

#include <string.h>

/* What a thread gathers at a time, so that little is left to one; and rows that it shrinks. */
enum { PIECE_BYTES = 256 << 10, ROWS_A_PIECE = 16 };

static bool has(const cogpu_writer *writer, const cogpu_raster *rows) {
    (void)writer;
    return rows->device == COGPU_CPU;
}

static cogpu_status allocate(cogpu_writer *writer, uint64_t bytes, void **memory,
                             cogpu_error *error) {
    (void)writer;
    *memory = cogpu_allocate((size_t)bytes);
    return *memory
               ? COGPU_OK
               : cogpu_fail(error, COGPU_MEMORY, "out of memory: %llu bytes for a row of blocks",
                            (unsigned long long)bytes);
}

/* ---- gather -------------------------------------------------------------------------------- */

struct gathering {
    const cogpu_raster *from;
    uint32_t first, rows, rows_a_piece;
    bool is_planar;
    size_t row_bytes, band_bytes;
    uint8_t *to;
};

static void gather_piece(void *argument, uint32_t seat, uint64_t index) {
    const struct gathering *all = argument;
    uint32_t done = (uint32_t)index * all->rows_a_piece, left = all->rows - done;
    (void)seat;
    cogpu_cpu_gather(all->from, all->first + done,
                     left < all->rows_a_piece ? left : all->rows_a_piece, all->is_planar,
                     all->band_bytes, all->to + done * all->row_bytes);
}

void cogpu_writer_gather(const cogpu_writer *writer, const cogpu_raster *from, uint32_t first,
                         uint32_t rows, bool is_planar, size_t band_bytes, uint8_t *to) {
    const size_t plane_bytes = cogpu_type_bytes(from->type) * from->width;
    const size_t all_bytes = plane_bytes * from->bands;
    struct gathering all = {.from = from,
                            .first = first,
                            .rows = rows,
                            .is_planar = is_planar,
                            .row_bytes = is_planar ? plane_bytes : all_bytes,
                            .band_bytes = band_bytes,
                            .to = to};
    all.rows_a_piece = all_bytes < PIECE_BYTES ? (uint32_t)(PIECE_BYTES / all_bytes) : 1;
    cogpu_pool_run(writer->pool, writer->seat_count, divide_up(rows, all.rows_a_piece),
                   gather_piece, &all);
}

static cogpu_status gather(cogpu_writer *writer, const cogpu_raster *rows, const cogpu_raster *mask,
                           uint32_t first, uint32_t count, uint32_t held, cogpu_error *error) {
    const struct cogpu_new_level *level = &writer->levels[0];
    (void)error;
    cogpu_writer_gather(writer, rows, first, count, writer->plan.planes > 1,
                        level->room * level->row_bytes, level->held + held * level->row_bytes);
    if (level->held_mask)
        cogpu_writer_gather(writer, mask, first, count, false, 0,
                            level->held_mask + (size_t)held * level->grid->width);
    return COGPU_OK;
}

static cogpu_status slide(cogpu_writer *writer, const struct cogpu_new_level *level, uint32_t from,
                          uint32_t count, cogpu_error *error) {
    size_t width = level->grid->width;
    (void)error;
    for (uint32_t plane = 0; plane < writer->plan.planes; plane++) {
        uint8_t *rows = level->held + (size_t)plane * level->room * level->row_bytes;
        memmove(rows, rows + from * level->row_bytes, count * level->row_bytes);
    }
    if (level->held_mask)
        memmove(level->held_mask, level->held_mask + from * width, count * width);
    return COGPU_OK;
}

/* ---- shrink -------------------------------------------------------------------------------- */

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
    const struct cogpu_new_level *to = shrinking->to;
    cogpu_raster source = cogpu_level_rows(from, &from->rows, from->first, from->end - from->first);
    cogpu_raster source_mask =
        cogpu_level_rows(from, &from->mask, from->first, from->end - from->first);
    cogpu_raster target = cogpu_level_rows(to, &to->rows, first, count);
    cogpu_raster target_mask = cogpu_level_rows(to, &to->mask, first, count);
    bool has_mask = writer->plan.has_mask;
    const cogpu_shrink_place place = {.from_y = from->first, .y = first};
    cogpu_status status = cogpu_cpu_shrink(writer->seats[seat], &from->shrink, &place, &source,
                                           has_mask ? &source_mask : NULL, &target,
                                           has_mask ? &target_mask : NULL, NULL);
    if (status != COGPU_OK)
        __atomic_store_n(&shrinking->status, status, __ATOMIC_RELAXED);
}

static cogpu_status shrink(cogpu_writer *writer, const struct cogpu_new_level *level,
                           uint32_t count, cogpu_error *error) {
    struct shrinking shrinking = {writer, level, level + 1, level->shrunk, count, COGPU_OK};
    cogpu_pool_run(writer->pool, writer->seat_count, divide_up(count, ROWS_A_PIECE), shrink_piece,
                   &shrinking);
    return shrinking.status == COGPU_OK
               ? COGPU_OK
               : cogpu_fail(error, shrinking.status, "out of memory to make an overview");
}

static void close_engine(cogpu_writer *writer) {
    for (uint32_t i = 0; i < COGPU_LEVELS_MAX; i++) {
        cogpu_release(writer->levels[i].held);
        cogpu_release(writer->levels[i].held_mask);
    }
}

const cogpu_engine cogpu_host_engine = {
    has, allocate, gather, shrink, slide, cogpu_writer_add_row, cogpu_writer_drain, close_engine};
