/*
 * Takes a row of blocks of a level, hands on their stored bytes: cut, encoded by all threads into
 * slots of one piece of memory, packed there in the file's order, and given to the sink in one
 * write.
 *
 * That order is tile by tile: all planes of a tile, then its mask. In a COG each block has its size
 * before it and its last four bytes after it once more.
 */
#include "api/writer.h"

#include "base/bytes.h"

#include <string.h>

enum { LEADER = 4, TRAILER = 4, SLOT_ALIGN = 64 };
/* Slots together, unless threads need more. */
enum { SLOTS_BYTES = 16 << 20 };

cogpu_status cogpu_writer_open_blocks(cogpu_writer *writer, cogpu_error *error) {
    const cogpu_write_plan *plan = &writer->plan;
    uint64_t bytes = plan->most_block_bytes + LEADER + TRAILER + SLOT_ALIGN - 1;
    writer->slot_bytes = (size_t)(bytes / SLOT_ALIGN * SLOT_ALIGN);
    uint64_t row = (uint64_t)plan->levels[0].across * (plan->planes + plan->has_mask);
    uint64_t count = SLOTS_BYTES / writer->slot_bytes;
    count = count < 2 * writer->seat_count ? 2 * writer->seat_count : count;
    writer->slot_count = (uint32_t)(count < row ? count : row);
    writer->slots = cogpu_allocate(writer->slot_bytes * writer->slot_count);
    return writer->slots ? COGPU_OK
                         : cogpu_fail(error, COGPU_MEMORY, "out of memory: %zu bytes for blocks",
                                      writer->slot_bytes * writer->slot_count);
}

/* Blocks that are encoded together. */
struct group {
    cogpu_writer *writer;
    const struct cogpu_new_level *level;
    uint32_t row;
    uint64_t first; /* of the row's blocks, planes and mask counted */
    size_t *bytes;  /* of each, encoded; 0: sparse */
    cogpu_status status;
    cogpu_error error; /* of the first that failed */
    uint64_t failed;
    pthread_mutex_t lock;
};

static cogpu_new_block block_of(const struct group *group, uint64_t index) {
    const cogpu_write_plan *plan = &group->writer->plan;
    uint32_t kinds = plan->planes + plan->has_mask;
    uint64_t number = group->first + index;
    return cogpu_plan_new_block(plan, group->level->grid, group->row, (uint32_t)(number / kinds),
                                (uint32_t)(number % kinds));
}

static bool is_mask(const cogpu_writer *writer, const cogpu_new_block *block) {
    return block->plane == writer->plan.planes;
}

/* Decoded bytes of the block into the seat's memory. False: the block is sparse. */
static bool cut_block(const cogpu_write_plan *plan, const cogpu_grid *grid,
                      const cogpu_new_block *block, const uint8_t *from, size_t row_bytes,
                      size_t bytes, cogpu_seat *seat) {
    if (block->plane == plan->planes) {
        static const uint8_t invalid[16];
        cogpu_cpu_cut_mask(grid, block, from, row_bytes, seat->decoded);
        return !(plan->is_sparse && cogpu_cpu_is_uniform(seat->decoded, bytes, COGPU_U8, invalid));
    }
    cogpu_cpu_cut(plan, grid, block, from, row_bytes, seat->decoded);
    if (plan->is_sparse && cogpu_cpu_is_uniform(seat->decoded, bytes, plan->type, plan->fill))
        return false;
    cogpu_cpu_predict(plan, seat->decoded, block->rows, bytes / block->rows, seat->row);
    return true;
}

cogpu_status cogpu_encode_block(cogpu_seat *seat, const cogpu_write_plan *plan,
                                const cogpu_grid *grid, const cogpu_new_block *block,
                                const uint8_t *from, size_t row_bytes, uint8_t *to, size_t room,
                                size_t *got, cogpu_error *error) {
    size_t bytes = 0;
    cogpu_encoding encoding = cogpu_plan_encoding(plan, grid, block, &bytes);
    const cogpu_codec_row *codec = block->plane == plan->planes ? plan->mask_codec : plan->codec;
    *got = 0;
    TRY(cogpu_seat_room(&seat->decoded, &seat->decoded_bytes, bytes, error));
    TRY(cogpu_seat_room(&seat->row, &seat->row_bytes, encoding.format.row_bytes, error));
    if (!cut_block(plan, grid, block, from, row_bytes, bytes, seat))
        return COGPU_OK;
    return codec->encoder->encode(&seat->codec, &encoding, seat->decoded, bytes, to, room, got,
                                  error);
}

static cogpu_status encode_block(struct group *group, cogpu_seat *seat, uint64_t index,
                                 cogpu_error *error) {
    const cogpu_writer *writer = group->writer;
    const cogpu_write_plan *plan = &writer->plan;
    const struct cogpu_new_level *level = group->level;
    const cogpu_grid *grid = level->grid;
    cogpu_new_block block = block_of(group, index);
    size_t x = (size_t)block.column * grid->block_width;
    size_t y = block.row * grid->block_height - level->first;
    size_t row_bytes = is_mask(writer, &block) ? grid->width : level->row_bytes;
    const uint8_t *from = is_mask(writer, &block)
                              ? level->mask + y * row_bytes + x
                              : level->rows + ((size_t)block.plane * level->room + y) * row_bytes +
                                    x * plan->pixel_bytes;
    return cogpu_encode_block(seat, plan, grid, &block, from, row_bytes,
                              writer->slots + index * writer->slot_bytes + LEADER,
                              writer->slot_bytes - LEADER - TRAILER, &group->bytes[index], error);
}

static void encode_one(void *argument, uint32_t seat, uint64_t index) {
    struct group *group = argument;
    cogpu_error error;
    cogpu_status status = encode_block(group, group->writer->seats[seat], index, &error);
    if (status == COGPU_OK)
        return;
    pthread_mutex_lock(&group->lock);
    if (group->status == COGPU_OK || index < group->failed) {
        cogpu_new_block block = block_of(group, index);
        cogpu_error_place(
            &error, -1, (int64_t)cogpu_plan_index(&group->writer->plan, group->level->grid, &block),
            -1);
        group->status = status;
        group->error = error;
        group->failed = index;
    }
    pthread_mutex_unlock(&group->lock);
}

size_t cogpu_frame_block(bool is_cog, const uint8_t *from, size_t bytes, uint8_t *to,
                         size_t *payload) {
    size_t leader = is_cog ? LEADER : 0, last = bytes < TRAILER ? bytes : TRAILER;
    memmove(to + leader, from, bytes);
    *payload = leader;
    if (!is_cog)
        return bytes;
    store_little(bytes, to, LEADER);
    memset(to + LEADER + bytes, 0, TRAILER);
    memcpy(to + LEADER + bytes, to + LEADER + bytes - last, last);
    return LEADER + bytes + TRAILER;
}

/* The bytes of a block to `at` of the slots, which is never behind where they are. Returns where
 * the next one goes; *payload is where its own bytes are. */
static size_t pack_block(const cogpu_writer *writer, uint64_t index, size_t bytes, size_t at,
                         size_t *payload) {
    const uint8_t *from = writer->slots + index * writer->slot_bytes + LEADER;
    if (bytes == 0)
        return at;
    size_t framed =
        cogpu_frame_block(writer->plan.is_cog, from, bytes, writer->slots + at, payload);
    *payload += at;
    return at + framed;
}

/* Where the next bytes of a level go: in its spill, or in the file. */
static uint64_t *end_of(cogpu_writer *writer, struct cogpu_new_level *level) {
    return level->spill ? &level->spilled : &writer->end;
}

static cogpu_status give(cogpu_writer *writer, struct cogpu_new_level *level, size_t bytes,
                         cogpu_error *error) {
    uint64_t *end = end_of(writer, level), offset;
    TRY(level->spill ? cogpu_spill_add(level->spill, writer->slots, bytes, &offset, error)
                     : cogpu_out_write(writer->out, *end, writer->slots, bytes, error));
    *end += bytes;
    return COGPU_OK;
}

static cogpu_status put_group(struct group *group, struct cogpu_new_level *level, uint32_t count,
                              cogpu_error *error) {
    cogpu_writer *writer = group->writer;
    const cogpu_write_plan *plan = &writer->plan;
    const uint64_t base = *end_of(writer, level);
    size_t end = 0, payload = 0;
    group->status = COGPU_OK;
    cogpu_pool_run(writer->pool, writer->seat_count, count, encode_one, group);
    if (group->status != COGPU_OK && error)
        *error = group->error;
    TRY(group->status);
    for (uint32_t i = 0; i < count; i++) {
        cogpu_new_block block = block_of(group, i);
        struct cogpu_places *places = is_mask(writer, &block) ? &level->masks : &level->pixels;
        uint64_t index = cogpu_plan_index(plan, level->grid, &block);
        end = pack_block(writer, i, group->bytes[i], end, &payload);
        places->bytes[index] = group->bytes[i];
        places->offsets[index] = group->bytes[i] ? base + payload : 0;
        writer->written.blocks++;
        writer->written.sparse_blocks += group->bytes[i] == 0;
    }
    return end > 0 ? give(writer, level, end, error) : COGPU_OK;
}

cogpu_status cogpu_writer_put_row(cogpu_writer *writer, struct cogpu_new_level *level, uint32_t row,
                                  cogpu_error *error) {
    uint64_t all = (uint64_t)level->grid->across * (writer->plan.planes + writer->plan.has_mask);
    struct group group = {.writer = writer, .level = level, .row = row};
    group.bytes = cogpu_allocate(writer->slot_count * sizeof *group.bytes);
    if (!group.bytes)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for a row of blocks");
    pthread_mutex_init(&group.lock, NULL);
    cogpu_status status = COGPU_OK;
    for (; status == COGPU_OK && group.first < all; group.first += writer->slot_count) {
        uint64_t left = all - group.first;
        status = put_group(&group, level,
                           left < writer->slot_count ? (uint32_t)left : writer->slot_count, error);
    }
    pthread_mutex_destroy(&group.lock);
    cogpu_release(group.bytes);
    return status;
}
