/*
 * Takes rows of blocks of the levels, hands on their stored bytes, in the file's order: tile by
 * tile, all planes of a tile, then its mask. In a COG each block has its size before it and its
 * last four bytes after it once more.
 *
 * Blocks are on their way in a line of berths. The caller's thread cuts one into each berth that is
 * free, and by then is done with the rows: it goes on, and encodes blocks itself only while all
 * berths are taken. The other threads encode one after the other. Whoever has encoded the first of
 * the line gives it, and all behind it that are ready, to the file or the spill. So nobody waits
 * for anybody, as long as there are berths.
 */
#include "api/writer.h"

#include "base/bytes.h"
#include "base/checked.h"

#include <string.h>

/* A small write costs as much as a copy of so many bytes, or more. */
enum { WRITE_BYTES = 1 << 20, SMALL_BYTES = WRITE_BYTES / 4 };
/* What blocks in flight may take together, beside one row of blocks. */
enum { LINE_BYTES = 48 << 20, BERTHS_MAX = 256 };

/* ---- a block ------------------------------------------------------------------------------- */

static bool is_mask(const cogpu_write_plan *plan, const cogpu_new_block *block) {
    return block->plane == plan->planes;
}

static void cut(const cogpu_write_plan *plan, const cogpu_grid *grid, const cogpu_new_block *block,
                const cogpu_raster *from, uint8_t *to) {
    if (is_mask(plan, block))
        cogpu_cpu_cut_mask(grid, block, from, to);
    else
        cogpu_cpu_cut(plan, grid, block, from, to);
}

static bool is_sparse(const cogpu_write_plan *plan, const cogpu_new_block *block,
                      const uint8_t *decoded, size_t bytes) {
    static const uint8_t invalid[16];
    return plan->is_sparse &&
           (is_mask(plan, block) ? cogpu_cpu_is_uniform(decoded, bytes, COGPU_U8, invalid)
                                 : cogpu_cpu_is_uniform(decoded, bytes, plan->type, plan->fill));
}

static const cogpu_codec_row *codec_of(const cogpu_write_plan *plan, const cogpu_new_block *block) {
    return is_mask(plan, block) ? plan->mask_codec : plan->codec;
}

/* A block that was cut: packed, or predicted. */
static cogpu_status predict(cogpu_seat *seat, const cogpu_write_plan *plan,
                            const cogpu_new_block *block, uint8_t *decoded, size_t bytes,
                            cogpu_error *error) {
    size_t row_bytes = bytes / block->rows;
    if (is_mask(plan, block))
        return COGPU_OK;
    if (cogpu_plan_is_packed(plan)) {
        cogpu_cpu_pack(plan, decoded, block->rows, row_bytes);
        return COGPU_OK;
    }
    TRY(cogpu_seat_room(&seat->row, &seat->row_bytes, row_bytes, error));
    cogpu_cpu_predict(plan, decoded, block->rows, row_bytes, seat->row);
    return COGPU_OK;
}

cogpu_status cogpu_encode_block(cogpu_seat *seat, const cogpu_write_plan *plan,
                                const cogpu_grid *grid, const cogpu_new_block *block,
                                const cogpu_raster *from, uint8_t *to, size_t room, size_t *got,
                                cogpu_error *error) {
    size_t bytes = 0, cut_bytes = cogpu_plan_cut_bytes(plan, grid, block);
    cogpu_encoding encoding = cogpu_plan_encoding(plan, grid, block, &bytes);
    *got = 0;
    TRY(cogpu_seat_room(&seat->decoded, &seat->decoded_bytes, cut_bytes, error));
    cut(plan, grid, block, from, seat->decoded);
    if (is_sparse(plan, block, seat->decoded, cut_bytes))
        return COGPU_OK;
    TRY(predict(seat, plan, block, seat->decoded, cut_bytes, error));
    return codec_of(plan, block)
        ->encoder->encode(&seat->codec, &encoding, seat->decoded, bytes, to, room, got, error);
}

void cogpu_frame_block(uint8_t *payload, size_t bytes) {
    size_t last = bytes < COGPU_TRAILER ? bytes : COGPU_TRAILER;
    store_little(bytes, payload - COGPU_LEADER, COGPU_LEADER);
    memset(payload + bytes, 0, COGPU_TRAILER);
    memcpy(payload + bytes, payload + bytes - last, last);
}

/* ---- out of the line ----------------------------------------------------------------------- */

static cogpu_status flush(cogpu_writer *writer, cogpu_error *error) {
    struct cogpu_line *line = &writer->line;
    size_t bytes = line->small_bytes;
    line->small_bytes = 0;
    return cogpu_out_write(writer->out, line->small_at, line->small, bytes, error);
}

static cogpu_status write_bytes(cogpu_writer *writer, uint64_t at, const uint8_t *from,
                                size_t bytes, cogpu_error *error) {
    struct cogpu_line *line = &writer->line;
    if (bytes > SMALL_BYTES || line->small_bytes + bytes > WRITE_BYTES ||
        at != line->small_at + line->small_bytes)
        TRY(flush(writer, error));
    if (bytes > SMALL_BYTES)
        return cogpu_out_write(writer->out, at, from, bytes, error);
    if (!line->small && !(line->small = cogpu_allocate(WRITE_BYTES)))
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for blocks");
    line->small_at = at - line->small_bytes;
    memcpy(line->small + line->small_bytes, from, bytes);
    line->small_bytes += bytes;
    return COGPU_OK;
}

/* The next bytes of a level get their place, in the file or the spill, behind all before them. */
static uint64_t take_place(cogpu_writer *writer, struct cogpu_new_level *level, uint64_t bytes) {
    uint64_t *end = level->spill ? &level->spilled : &writer->end;
    *end += bytes;
    return *end - bytes;
}

/* Bytes that have their place, in the order of places. */
static cogpu_status give(cogpu_writer *writer, struct cogpu_new_level *level, uint64_t at,
                         const uint8_t *from, size_t bytes, cogpu_error *error) {
    return level->spill ? cogpu_spill_add(level->spill, from, bytes, &at, error)
                        : write_bytes(writer, at, from, bytes, error);
}

/* In the file and in spills, without what stands around the blocks. */
static uint64_t bytes_so_far(const cogpu_writer *writer) {
    uint64_t bytes = writer->end;
    for (uint32_t i = 0; i < writer->plan.level_count; i++)
        bytes += writer->levels[i].spilled;
    return bytes;
}

/* Notes where the bytes of a block are; no bytes: it is left out. CANCELLED where the progress
 * function says so. */
static cogpu_status note(cogpu_writer *writer, struct cogpu_new_level *level,
                         const cogpu_new_block *block, uint64_t at, uint64_t bytes,
                         cogpu_error *error) {
    const cogpu_write_plan *plan = &writer->plan;
    struct cogpu_places *places = is_mask(plan, block) ? &level->masks : &level->pixels;
    uint64_t index = cogpu_plan_index(plan, level->grid, block);
    writer->written.blocks++;
    writer->written.sparse_blocks += bytes == 0;
    places->bytes[index] = bytes;
    places->offsets[index] = bytes ? at : 0;
    return cogpu_meter_add(&writer->meter, 1) ? COGPU_OK : cogpu_fail_cancelled(error);
}

static cogpu_status leave(cogpu_writer *writer, struct cogpu_berth *berth, cogpu_error *error) {
    const cogpu_write_plan *plan = &writer->plan;
    struct cogpu_new_level *level = berth->level;
    size_t leader = plan->is_cog ? COGPU_LEADER : 0, trailer = plan->is_cog ? COGPU_TRAILER : 0;
    if (berth->status != COGPU_OK) {
        uint64_t index = cogpu_plan_index(plan, level->grid, &berth->block);
        *error = berth->error;
        cogpu_error_place(error, -1, (int64_t)index, -1);
        return berth->status;
    }
    uint8_t *payload = berth->memory + COGPU_LEADER;
    if (plan->is_cog && berth->bytes > 0)
        cogpu_frame_block(payload, berth->bytes);
    const size_t bytes = berth->bytes > 0 ? leader + berth->bytes + trailer : 0;
    const uint64_t at = take_place(writer, level, bytes);
    if (bytes > 0)
        TRY(give(writer, level, at, payload - leader, bytes, error));
    TRY(note(writer, level, &berth->block, at + leader, berth->bytes, error));
    return cogpu_writer_check_size(writer, bytes_so_far(writer), error);
}

struct copying {
    uint8_t *to;
    const uint8_t *from;
    size_t bytes;
};

static void copy_piece(void *argument, uint32_t seat, uint64_t index) {
    const struct copying *copying = argument;
    size_t at = (size_t)index * SMALL_BYTES, left = copying->bytes - at;
    (void)seat;
    memcpy(copying->to + at, copying->from + at, left < SMALL_BYTES ? left : SMALL_BYTES);
}

void cogpu_writer_copy(cogpu_writer *writer, uint8_t *to, const uint8_t *from, size_t bytes) {
    struct copying copying = {to, from, bytes};
    cogpu_pool_run(writer->pool, writer->seat_count, divide_up(bytes, SMALL_BYTES), copy_piece,
                   &copying);
}

/* By all threads as much at a time as the gap has room for. */
void cogpu_writer_move_down(cogpu_writer *writer, uint8_t *to, size_t gap, size_t bytes) {
    if (gap > 0 && gap < WRITE_BYTES)
        memmove(to, to + gap, bytes);
    for (size_t done = 0, count; gap >= WRITE_BYTES && done < bytes; done += count) {
        count = bytes - done < gap ? bytes - done : gap;
        cogpu_writer_copy(writer, to + done, to + gap + done, count);
    }
}

/* As give, by all threads where bytes go to memory. */
static cogpu_status give_much(cogpu_writer *writer, struct cogpu_new_level *level, uint64_t at,
                              const uint8_t *from, size_t bytes, cogpu_error *error) {
    uint8_t *to = NULL;
    if (bytes > SMALL_BYTES && level->spill) {
        to = cogpu_spill_room(level->spill, bytes, &at);
    } else if (bytes > SMALL_BYTES) {
        TRY(flush(writer, error));
        TRY(cogpu_out_room(writer->out, at, bytes, &to, error));
    }
    if (!to)
        return give(writer, level, at, from, bytes, error);
    cogpu_writer_copy(writer, to, from, bytes);
    return COGPU_OK;
}

/* Blocks of a batch that are of one level: [first, next), and their bytes in it. */
struct run {
    struct cogpu_new_level *level;
    uint32_t first, next;
    uint64_t begin, end;
};

/* Where a block begins with all that is around it; where the last one ends, too. */
static uint64_t begin_of(const cogpu_writer *writer, const cogpu_gpu_brought *batch,
                         uint32_t number) {
    const struct cogpu_packed *place = &batch->places[number];
    return place->at - (place->bytes && writer->plan.is_cog ? COGPU_LEADER : 0);
}

static bool next_run(const cogpu_writer *writer, const cogpu_gpu_brought *batch, struct run *run) {
    run->first = run->next;
    if (run->first == batch->count)
        return false;
    run->level = batch->blocks[run->first].level;
    while (run->next < batch->count && batch->blocks[run->next].level == run->level)
        run->next++;
    run->begin = begin_of(writer, batch, run->first);
    run->end = begin_of(writer, batch, run->next);
    return true;
}

cogpu_status cogpu_writer_place_all(cogpu_writer *writer, const cogpu_gpu_brought *batch,
                                    bool *is_straight, cogpu_error *error) {
    *is_straight = true;
    for (struct run run = {0}; next_run(writer, batch, &run);) {
        const uint64_t at = take_place(writer, run.level, run.end - run.begin);
        for (uint32_t i = run.first; i < run.next; i++)
            TRY(note(writer, run.level, &batch->blocks[i].block,
                     at + batch->places[i].at - run.begin, batch->places[i].bytes, error));
        *is_straight &= !run.level->spill;
    }
    return cogpu_writer_check_size(writer, bytes_so_far(writer), error);
}

cogpu_status cogpu_writer_give_all(cogpu_writer *writer, const cogpu_gpu_brought *batch,
                                   cogpu_error *error) {
    uint64_t at = batch->file_end;
    for (struct run run = {0}; next_run(writer, batch, &run);) {
        const uint64_t bytes = run.end - run.begin;
        if (bytes > 0)
            TRY(give_much(writer, run.level, at, batch->bytes + run.begin, (size_t)bytes, error));
        at += run.level->spill ? 0 : bytes;
    }
    return COGPU_OK;
}

/* All that are ready at the head of the line leave, unless another thread sees to it. */
static void finish_block(cogpu_writer *writer, struct cogpu_berth *berth) {
    struct cogpu_line *line = &writer->line;
    pthread_mutex_lock(&line->lock);
    berth->is_done = true;
    bool is_mine = !line->is_leaving;
    for (; is_mine && (berth = &line->berths[line->gone % line->berth_count])->is_done;
         line->gone++) {
        cogpu_status status = COGPU_OK;
        cogpu_error error;
        line->is_leaving = true;
        if (!line->is_stopped) {
            pthread_mutex_unlock(&line->lock);
            status = leave(writer, berth, &error);
            pthread_mutex_lock(&line->lock);
        }
        if (status != COGPU_OK) {
            line->is_stopped = true;
            line->status = status;
            line->error = error;
        }
        berth->is_done = false;
        pthread_cond_signal(&line->moved);
    }
    if (is_mine)
        line->is_leaving = false;
    pthread_mutex_unlock(&line->lock);
}

/* ---- in the line --------------------------------------------------------------------------- */

/* The block that was cut into the berth becomes its stored bytes: in place, or in the memory of the
 * seat, which then changes places with the berth's. */
static cogpu_status encode(const cogpu_writer *writer, cogpu_seat *seat, struct cogpu_berth *berth,
                           cogpu_error *error) {
    const cogpu_write_plan *plan = &writer->plan;
    const cogpu_codec_row *codec = codec_of(plan, &berth->block);
    uint8_t *decoded = berth->memory + COGPU_LEADER;
    size_t bytes = 0, room = writer->line.berth_bytes;
    size_t cut_bytes = cogpu_plan_cut_bytes(plan, berth->level->grid, &berth->block);
    cogpu_encoding encoding = cogpu_plan_encoding(plan, berth->level->grid, &berth->block, &bytes);
    berth->bytes = 0;
    if (berth->is_ready ? berth->is_sparse : is_sparse(plan, &berth->block, decoded, cut_bytes))
        return COGPU_OK;
    if (!berth->is_ready)
        TRY(predict(seat, plan, &berth->block, decoded, cut_bytes, error));
    if (codec->compression == COMPRESSION_NONE) {
        berth->bytes = bytes;
        return COGPU_OK;
    }
    TRY(cogpu_seat_room(&seat->stored, &seat->stored_bytes, room, error));
    TRY(codec->encoder->encode(&seat->codec, &encoding, decoded, bytes, seat->stored + COGPU_LEADER,
                               room - COGPU_LEADER - COGPU_TRAILER, &berth->bytes, error));
    uint8_t *memory = berth->memory;
    size_t memory_bytes = berth->room;
    berth->memory = seat->stored;
    berth->room = seat->stored_bytes;
    seat->stored = memory;
    seat->stored_bytes = memory_bytes;
    return COGPU_OK;
}

static void encode_and_finish(void *argument, uint32_t seat, uint64_t number) {
    cogpu_writer *writer = argument;
    struct cogpu_line *line = &writer->line;
    struct cogpu_berth *berth = &line->berths[number % line->berth_count];
    pthread_mutex_lock(&line->lock);
    bool is_stopped = line->is_stopped;
    pthread_mutex_unlock(&line->lock);
    if (!is_stopped && berth->status == COGPU_OK)
        berth->status = encode(writer, writer->seats[seat], berth, &berth->error);
    finish_block(writer, berth);
}

static uint32_t free_berths(const struct cogpu_line *line) {
    return line->berth_count - (uint32_t)(line->added - line->gone);
}

/* Until so many berths are free; *count is how many are. */
static cogpu_status wait_for(struct cogpu_line *line, uint32_t berths, uint32_t *count,
                             cogpu_error *error) {
    pthread_mutex_lock(&line->lock);
    while ((*count = free_berths(line)) < berths) {
        pthread_mutex_unlock(&line->lock);
        bool has_helped = cogpu_pool_help(line->job);
        pthread_mutex_lock(&line->lock);
        if (!has_helped && free_berths(line) < berths)
            pthread_cond_wait(&line->moved, &line->lock);
    }
    cogpu_status status = line->status;
    if (status != COGPU_OK && error)
        *error = line->error;
    pthread_mutex_unlock(&line->lock);
    return status;
}

/* ---- into the line ------------------------------------------------------------------------- */

/* Planes and mask counted. */
static uint64_t blocks_of_row(const cogpu_write_plan *plan, const cogpu_grid *grid) {
    return (uint64_t)grid->across * (plan->planes + plan->has_mask);
}

/* Blocks that are cut together. */
struct cutting {
    cogpu_writer *writer;
    struct cogpu_new_level *level;
    uint32_t row;
    uint64_t first; /* of the row's blocks, planes and mask counted, or of the batch's */
    const cogpu_gpu_brought *batch;
};

/* The block's pixels as far as they lie inside the image, where the level has them. */
static cogpu_raster pixels_of(const cogpu_write_plan *plan, const struct cogpu_new_level *level,
                              const cogpu_new_block *block) {
    bool has_bands = !is_mask(plan, block) && plan->planes == 1;
    cogpu_raster from = is_mask(plan, block) ? level->mask : level->rows;
    int64_t x = (int64_t)block->column * level->grid->block_width;
    int64_t y = (int64_t)block->row * level->grid->block_height - level->first;
    int64_t band = is_mask(plan, block) ? 0 : block->plane;
    from.data =
        (uint8_t *)from.data + y * from.stride_y + x * from.stride_x + band * from.stride_band;
    from.width = block->width;
    from.height = block->height;
    from.bands = has_bands ? plan->bands : 1;
    return from;
}

static void cut_into_berth(void *argument, uint32_t seat, uint64_t index) {
    const struct cutting *cutting = argument;
    const cogpu_write_plan *plan = &cutting->writer->plan;
    struct cogpu_line *line = &cutting->writer->line;
    struct cogpu_new_level *level = cutting->level;
    struct cogpu_berth *berth = &line->berths[(line->added + index) % line->berth_count];
    uint32_t kinds = plan->planes + plan->has_mask;
    uint64_t number = cutting->first + index;
    (void)seat;
    berth->level = level;
    berth->is_ready = false;
    berth->block = cogpu_plan_new_block(plan, level->grid, cutting->row, (uint32_t)(number / kinds),
                                        (uint32_t)(number % kinds));
    berth->status = cogpu_seat_room(&berth->memory, &berth->room, line->berth_bytes, &berth->error);
    if (berth->status != COGPU_OK)
        return;
    cogpu_raster from = pixels_of(plan, level, &berth->block);
    cut(plan, level->grid, &berth->block, &from, berth->memory + COGPU_LEADER);
}

/* Sets so many blocks on their way, as berths become free. */
static cogpu_status fill_berths(struct cutting *cutting, uint64_t all, cogpu_work *into_berth,
                                cogpu_error *error) {
    cogpu_writer *writer = cutting->writer;
    struct cogpu_line *line = &writer->line;
    for (uint32_t count; cutting->first < all; cutting->first += count) {
        TRY(wait_for(line, 1, &count, error));
        count = count < all - cutting->first ? count : (uint32_t)(all - cutting->first);
        cogpu_pool_run(writer->pool, writer->seat_count, count, into_berth, cutting);
        line->added += count;
        cogpu_pool_add(line->job, count);
    }
    return COGPU_OK;
}

cogpu_status cogpu_writer_add_row(cogpu_writer *writer, struct cogpu_new_level *level, uint32_t row,
                                  cogpu_error *error) {
    struct cutting cutting = {.writer = writer, .level = level, .row = row};
    return fill_berths(&cutting, blocks_of_row(&writer->plan, level->grid), cut_into_berth, error);
}

static void bring_into_berth(void *argument, uint32_t seat, uint64_t index) {
    const struct cutting *cutting = argument;
    struct cogpu_line *line = &cutting->writer->line;
    struct cogpu_berth *berth = &line->berths[(line->added + index) % line->berth_count];
    const cogpu_gpu_brought *batch = cutting->batch;
    const struct cogpu_packed place = batch->places[cutting->first + index];
    (void)seat;
    berth->level = batch->blocks[cutting->first + index].level;
    berth->block = batch->blocks[cutting->first + index].block;
    berth->is_ready = true;
    berth->is_sparse = place.bytes == 0;
    berth->status = cogpu_seat_room(&berth->memory, &berth->room, line->berth_bytes, &berth->error);
    if (berth->status == COGPU_OK && place.bytes > 0)
        memcpy(berth->memory + COGPU_LEADER, batch->bytes + place.at, (size_t)place.bytes);
}

cogpu_status cogpu_writer_add_cut(cogpu_writer *writer, const cogpu_gpu_brought *batch,
                                  cogpu_error *error) {
    struct cutting cutting = {.writer = writer, .batch = batch};
    return fill_berths(&cutting, batch->count, bring_into_berth, error);
}

cogpu_status cogpu_writer_drain(cogpu_writer *writer, cogpu_error *error) {
    uint32_t count;
    TRY(wait_for(&writer->line, writer->line.berth_count, &count, error));
    return flush(writer, error);
}

/* ---- the line ------------------------------------------------------------------------------ */

/* Each thread has a block in hand, and finds another when it is done, even if the one at the head
 * of the line takes long; a thread alone needs one. Of small blocks there are more, so that threads
 * do not meet more often than they work. Large ones have to do with what memory there is for them,
 * and so have threads, of which each takes a block more. */
static uint32_t berths_for(uint32_t threads, uint64_t row_blocks, size_t block_bytes) {
    uint64_t small = SMALL_BYTES / block_bytes, least = threads == 1 ? 1 : 2 * (uint64_t)threads;
    uint64_t room = LINE_BYTES / block_bytes + row_blocks;
    uint64_t most = room > 2 * (uint64_t)threads ? room - threads : room / 2;
    uint64_t count = small < BERTHS_MAX ? small : BERTHS_MAX;
    count = count > least ? count : least;
    count = count < most ? count : most;
    return count > 0 ? (uint32_t)count : 1;
}

cogpu_status cogpu_writer_open_line(cogpu_writer *writer, cogpu_error *error) {
    const cogpu_write_plan *plan = &writer->plan;
    struct cogpu_line *line = &writer->line;
    cogpu_new_block largest = cogpu_plan_new_block(plan, &plan->levels[0], 0, 0, 0);
    size_t bytes = cogpu_plan_cut_bytes(plan, &plan->levels[0], &largest);
    bytes = bytes < plan->most_block_bytes ? (size_t)plan->most_block_bytes : bytes;
    line->berth_bytes = COGPU_LEADER + bytes + COGPU_TRAILER;
    line->berth_count =
        berths_for(writer->seat_count, blocks_of_row(plan, &plan->levels[0]), line->berth_bytes);
    TRY(cogpu_arena_take(&writer->arena, line->berth_count, sizeof *line->berths, &line->berths,
                         error));
    pthread_mutex_init(&line->lock, NULL);
    pthread_cond_init(&line->moved, NULL);
    uint32_t seats =
        writer->seat_count < line->berth_count ? writer->seat_count : line->berth_count;
    return cogpu_pool_begin(writer->pool, seats, encode_and_finish, writer, &line->job, error);
}

void cogpu_writer_close_line(cogpu_writer *writer) {
    struct cogpu_line *line = &writer->line;
    if (!line->berths)
        return;
    pthread_mutex_lock(&line->lock);
    line->is_stopped = true;
    pthread_mutex_unlock(&line->lock);
    cogpu_pool_end(line->job);
    pthread_cond_destroy(&line->moved);
    pthread_mutex_destroy(&line->lock);
    for (uint32_t i = 0; i < line->berth_count; i++)
        cogpu_release(line->berths[i].memory);
    cogpu_release(line->small);
}
