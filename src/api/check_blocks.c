/*
 * Every block of an image: is it inside the file, and does it keep what the ghost area promises:
 * order row by row, its size before it, its last bytes again after it, and its mask's block next.
 *
 * Block tables are read in pieces; where one is all sparse, the run of zeros that it may belong to
 * is passed over in larger ones, or at once where the file has a hole there. What stands between
 * blocks is 12 bytes, the trailer of one and the leader of the next: a window reads ahead where
 * blocks are small and follow each other, and only these bytes where they do not, so that neither a
 * large file nor offsets in disorder cost more than a small read a block.
 */
#include "api/check.h"

#include "base/bytes.h"

#include <string.h>

enum { PIECE = 512 };                                /* blocks */
enum { MARK = 4 };                                   /* bytes of a leader, of a trailer */
enum { ZEROS_FIRST = 4 << 10, ZEROS_MAX = 1 << 20 }; /* bytes of a table to pass over at once */
enum { BETWEEN = 12, AHEAD_FIRST = 1 << 10, AHEAD_MAX = 256 << 10, NEAR = 16 << 10 };

/* ---- block tables ---------------------------------------------------------------------------- */

/* Offset and bytes as the table has them. GDAL's rule for sparse blocks, and ours: one of them is
 * 0; where there are no byte counts at all, the offset alone decides. */
struct block {
    uint64_t offset, bytes;
    bool sparse;
};

/* A table that cannot be read is noted, and *readable false; memory and I/O fail. */
static cogpu_status note_unreadable(cogpu_check_run *run, uint32_t directory, cogpu_status status,
                                    const cogpu_error *why, bool *readable) {
    *readable = status == COGPU_OK;
    if (status == COGPU_OK)
        return COGPU_OK;
    if (status == COGPU_MEMORY || status == COGPU_IO) {
        if (run->error)
            *run->error = *why;
        return status;
    }
    cogpu_check_note(run, RULE_BLOCK_TABLE, directory, -1, NO_OFFSET,
                     "where the blocks are cannot be read: %s", why->message);
    return COGPU_OK;
}

static cogpu_status read_numbers(const cogpu_storage *storage, uint64_t first, uint32_t count,
                                 uint64_t offsets[PIECE], uint64_t bytes[PIECE],
                                 cogpu_error *error) {
    if (!storage->offsets)
        return cogpu_fail(error, COGPU_CORRUPT, "the directory has no offsets of blocks");
    TRY(cogpu_tiff_u64s(storage->tiff, storage->offsets, first, count, offsets, error));
    if (storage->counts)
        return cogpu_tiff_u64s(storage->tiff, storage->counts, first, count, bytes, error);
    return COGPU_OK;
}

/* At most PIECE blocks. */
static cogpu_status read_blocks(cogpu_check_run *run, const cogpu_storage *storage, uint64_t first,
                                uint32_t count, struct block *blocks, bool *readable) {
    uint64_t offsets[PIECE], bytes[PIECE];
    cogpu_error why;
    cogpu_status status = read_numbers(storage, first, count, offsets, bytes, &why);
    TRY(note_unreadable(run, storage->directory, status, &why, readable));
    for (uint32_t i = 0; *readable && i < count; i++)
        blocks[i] = (struct block){
            .offset = offsets[i],
            .bytes = storage->counts ? bytes[i] : 0,
            .sparse = offsets[i] == 0 || (storage->counts && bytes[i] == 0),
        };
    return COGPU_OK;
}

static uint32_t piece_of(uint64_t left, uint32_t most) {
    return left < most ? (uint32_t)left : most;
}

/* ---- runs of sparse blocks ------------------------------------------------------------------- */

static bool all_sparse(const struct block *blocks, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (!blocks[i].sparse)
            return false;
    return true;
}

/* Moves *first, of the blocks before `end`, past those with the offset 0. */
static cogpu_status pass_zeros(cogpu_check_run *run, const cogpu_storage *storage, uint64_t end,
                               uint64_t *first) {
    uint64_t start = *first, zeros = 1;
    if (!run->room)
        TRY(cogpu_arena_take(&run->arena, ZEROS_MAX, 1, &run->room, run->error));
    for (size_t room = ZEROS_FIRST; *first < end && zeros > 0; *first += zeros) {
        TRY(cogpu_tiff_zeros(storage->tiff, storage->offsets, *first, end - *first, run->room, room,
                             &zeros, run->error));
        room = room < ZEROS_MAX ? room * 2 : ZEROS_MAX;
        TRY(cogpu_check_progress(run, *first + zeros - start, false));
    }
    return COGPU_OK;
}

/* Of the first band, as GDAL does it. */
cogpu_status cogpu_check_first_block(cogpu_check_run *run, cogpu_check_level *level) {
    const cogpu_storage *storage = &level->storage;
    uint64_t blocks = storage->blocks / storage->planes;
    struct block piece[PIECE];
    uint64_t first = 0;
    while (first < blocks && !level->first_block) {
        uint32_t count = piece_of(blocks - first, PIECE), sparse = 0;
        bool readable;
        TRY(read_blocks(run, storage, first, count, piece, &readable));
        level->unsound = !readable;
        if (!readable)
            return COGPU_OK;
        while (sparse < count && piece[sparse].sparse)
            sparse++;
        if (sparse < count)
            level->first_block = piece[sparse].offset;
        first += sparse;
        if (sparse == count)
            TRY(pass_zeros(run, storage, blocks, &first));
    }
    level->sparse_before = first;
    return COGPU_OK;
}

/* ---- the bytes between blocks ---------------------------------------------------------------- */

struct window {
    uint8_t *held;
    uint64_t start;
    size_t bytes, ahead;
};

/* `bytes` bytes, which are inside the file. */
static cogpu_status look(cogpu_check_run *run, struct window *window, uint64_t offset, size_t bytes,
                         uint8_t *to) {
    uint64_t end = window->start + window->bytes;
    if (offset < window->start || offset + bytes > end) {
        bool follows = window->bytes && offset >= window->start && offset < end + NEAR;
        window->ahead = !follows                        ? BETWEEN
                        : window->ahead == BETWEEN      ? AHEAD_FIRST
                        : window->ahead < AHEAD_MAX / 4 ? window->ahead * 4
                                                        : AHEAD_MAX;
        uint64_t left = cogpu_io_bytes(run->tiff->io) - offset;
        window->bytes = left < window->ahead ? (size_t)left : window->ahead;
        window->start = offset;
        TRY(cogpu_io_read(run->tiff->io, offset, window->bytes, window->held, run->error));
    }
    memcpy(to, window->held + (offset - window->start), bytes);
    return COGPU_OK;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* The way through the blocks of one directory. */
struct walk {
    cogpu_check_run *run;
    const cogpu_storage *storage;
    const cogpu_storage *mask; /* whose blocks are promised to follow those of the image, or NULL */
    uint32_t promises;         /* COGPU_GHOST_... */
    uint64_t last;             /* offset of the block before */
    uint64_t sparse_before;    /* blocks of the first plane that are known to be sparse */
    uint64_t *zero_until;      /* of each plane walked, and the mask: blocks before are sparse */
    struct window window;
};

static bool is_inside(const cogpu_check_run *run, const struct block *block) {
    uint64_t file_bytes = cogpu_io_bytes(run->tiff->io);
    return block->offset < file_bytes && block->bytes <= file_bytes - block->offset;
}

static void check_order(struct walk *walk, const cogpu_storage *storage, uint64_t index,
                        uint64_t offset) {
    if (walk->promises & COGPU_GHOST_ROW_MAJOR && offset < walk->last)
        cogpu_check_note(walk->run, RULE_BLOCK_ORDER, storage->directory, (int64_t)index, offset,
                         "the block at byte %llu stands before the one that precedes it, at %llu",
                         (unsigned long long)offset, (unsigned long long)walk->last);
    walk->last = offset;
}

static cogpu_status check_leader(struct walk *walk, uint64_t index, const struct block *block) {
    uint8_t leader[MARK];
    if (!(walk->promises & COGPU_GHOST_LEADER) || block->offset < MARK)
        return COGPU_OK;
    TRY(look(walk->run, &walk->window, block->offset - MARK, MARK, leader));
    uint32_t stated = load_u32(leader, false);
    if (stated != block->bytes)
        cogpu_check_note(walk->run, RULE_BLOCK_LEADER, walk->storage->directory, (int64_t)index,
                         block->offset - MARK, "the leader says %u bytes, the block table %llu",
                         stated, (unsigned long long)block->bytes);
    return COGPU_OK;
}

static cogpu_status check_trailer(struct walk *walk, uint64_t index, const struct block *block) {
    uint8_t last[2 * MARK];
    uint64_t end = block->offset + block->bytes;
    if (!(walk->promises & COGPU_GHOST_TRAILER) || block->bytes < MARK)
        return COGPU_OK;
    bool cut_off = cogpu_io_bytes(walk->run->tiff->io) - end < MARK;
    if (!cut_off)
        TRY(look(walk->run, &walk->window, end - MARK, 2 * MARK, last));
    if (cut_off || memcmp(last, last + MARK, MARK) != 0)
        cogpu_check_note(walk->run, RULE_BLOCK_TRAILER, walk->storage->directory, (int64_t)index,
                         end, "the last 4 bytes of the block are not repeated after it%s",
                         cut_off ? ": the file ends there" : "");
    return COGPU_OK;
}

/* Blocks of 4 GiB and more have no leader and no trailer. */
static cogpu_status check_block(struct walk *walk, uint64_t index, const struct block *block) {
    walk->run->blocks++;
    if (block->sparse)
        return COGPU_OK;
    if (!is_inside(walk->run, block)) {
        cogpu_check_note(walk->run, RULE_BLOCK_OUTSIDE, walk->storage->directory, (int64_t)index,
                         block->offset,
                         "the block's %llu bytes at %llu go beyond the end of the file, at %llu",
                         (unsigned long long)block->bytes, (unsigned long long)block->offset,
                         (unsigned long long)cogpu_io_bytes(walk->run->tiff->io));
        return COGPU_OK;
    }
    check_order(walk, walk->storage, index, block->offset);
    if (block->bytes > UINT32_MAX || !walk->storage->counts)
        return COGPU_OK;
    TRY(check_leader(walk, index, block));
    return check_trailer(walk, index, block);
}

/* The mask's block stands right behind that of the image, or in its place where that is sparse. */
static void check_mask_place(struct walk *walk, uint64_t index, const struct block *image,
                             const struct block *mask) {
    if (mask->sparse)
        return;
    if (image->sparse) {
        check_order(walk, walk->mask, index, mask->offset);
        return;
    }
    uint64_t wanted = image->offset + image->bytes +
                      (walk->promises & COGPU_GHOST_LEADER ? MARK : 0) +
                      (walk->promises & COGPU_GHOST_TRAILER ? MARK : 0);
    if (mask->offset != wanted)
        cogpu_check_note(walk->run, RULE_MASK_PLACE, walk->mask->directory, (int64_t)index,
                         mask->offset,
                         "the mask's block stands at byte %llu and not at %llu, behind its image's",
                         (unsigned long long)mask->offset, (unsigned long long)wanted);
}

/* Moves *first past blocks that are sparse in all tables of the walk. What is known of each stays,
 * so that no table is looked through twice. */
static cogpu_status pass_sparse(struct walk *walk, uint32_t plane, uint32_t planes, uint64_t places,
                                uint64_t *first) {
    uint64_t start = *first, nearest = places;
    for (uint32_t k = 0; k < planes + (walk->mask ? 1 : 0); k++) {
        const cogpu_storage *storage = k < planes ? walk->storage : walk->mask;
        uint64_t base = k < planes ? (plane + k) * places : 0, at = base + start;
        if (walk->zero_until[k] <= start) {
            TRY(pass_zeros(walk->run, storage, base + places, &at));
            walk->zero_until[k] = at - base;
        }
        nearest = walk->zero_until[k] < nearest ? walk->zero_until[k] : nearest;
    }
    *first = nearest;
    walk->run->blocks += (nearest - start) * planes;
    return cogpu_check_progress(walk->run, (nearest - start) * planes, true);
}

/* Blocks of `planes` planes from `plane` on, all planes of a place before the next place. */
static cogpu_status walk_planes(struct walk *walk, uint32_t plane, uint32_t planes,
                                struct block *blocks) {
    struct block masks[PIECE];
    uint64_t places = walk->storage->blocks / walk->storage->planes;
    uint32_t most = planes < PIECE ? PIECE / planes : 1;
    uint64_t first = plane == 0 && planes == 1 && !walk->mask ? walk->sparse_before : 0;
    walk->last = 0;
    memset(walk->zero_until, 0, (planes + 1) * sizeof *walk->zero_until);
    walk->run->blocks += first;
    TRY(cogpu_check_progress(walk->run, first, true));
    while (first < places) {
        uint32_t count = piece_of(places - first, most);
        bool is_sparse = true;
        bool readable = true;
        for (uint32_t k = 0; k < planes && readable; k++)
            TRY(read_blocks(walk->run, walk->storage, (plane + k) * places + first, count,
                            blocks + (size_t)k * most, &readable));
        if (readable && walk->mask)
            TRY(read_blocks(walk->run, walk->mask, first, count, masks, &readable));
        if (!readable)
            return COGPU_OK;
        for (uint32_t i = 0; i < count; i++) {
            for (uint32_t k = 0; k < planes; k++)
                TRY(check_block(walk, (plane + k) * places + first + i,
                                &blocks[(size_t)k * most + i]));
            if (walk->mask)
                check_mask_place(walk, first + i, &blocks[(size_t)(planes - 1) * most + i],
                                 &masks[i]);
        }
        for (uint32_t k = 0; k < planes; k++)
            is_sparse = is_sparse && all_sparse(blocks + (size_t)k * most, count);
        is_sparse = is_sparse && (!walk->mask || all_sparse(masks, count));
        first += count;
        TRY(cogpu_check_progress(walk->run, (uint64_t)count * planes, true));
        if (is_sparse)
            TRY(pass_sparse(walk, plane, planes, places, &first));
    }
    return COGPU_OK;
}

/* Bands of a planar image stand one after the other, or together at each place. */
static cogpu_status walk_directory(struct walk *walk, struct block *blocks) {
    uint32_t planes = walk->storage->planes;
    if (walk->promises & COGPU_GHOST_TILE_INTERLEAVED)
        return walk_planes(walk, 0, planes, blocks);
    for (uint32_t plane = 0; plane < planes; plane++)
        TRY(walk_planes(walk, plane, 1, blocks));
    return COGPU_OK;
}

/* GDAL keeps to the promise where pixels of all bands are together, or blocks of all bands are. */
static bool is_mask_interleaved(const cogpu_check_level *level, uint32_t promises) {
    return level->has_mask && promises & COGPU_GHOST_MASK_INTERLEAVED && level->mask.planes == 1 &&
           (level->storage.planes == 1 || promises & COGPU_GHOST_TILE_INTERLEAVED);
}

/* What the walks share: the window's bytes, a piece of a table, and a number for each plane. */
struct room {
    uint8_t *held;
    struct block *blocks;
    uint64_t *zero_until;
};

static cogpu_status walk_level(cogpu_check_run *run, const cogpu_check_level *level,
                               uint32_t promises, const struct room *room) {
    const cogpu_storage *storage = &level->storage, *mask = &level->mask;
    struct walk walk = {.run = run,
                        .storage = storage,
                        .promises = promises,
                        .sparse_before = level->sparse_before,
                        .zero_until = room->zero_until,
                        .window = {.held = room->held}};
    struct walk mask_walk = {.run = run,
                             .storage = mask,
                             .promises = promises,
                             .zero_until = room->zero_until,
                             .window = {.held = room->held}};
    if (is_mask_interleaved(level, promises)) {
        if (mask->block_width == storage->block_width &&
            mask->block_height == storage->block_height)
            walk.mask = mask;
        else
            cogpu_check_note(run, RULE_MASK_BLOCK_SIZE, mask->directory, -1, NO_OFFSET,
                             "blocks of the mask are %u x %u, those of its image %u x %u",
                             mask->block_width, mask->block_height, storage->block_width,
                             storage->block_height);
    }
    if (!level->unsound)
        TRY(walk_directory(&walk, room->blocks));
    return level->has_mask ? walk_directory(&mask_walk, room->blocks) : COGPU_OK;
}

static uint32_t most_planes(const cogpu_check_run *run) {
    uint32_t most = 1;
    for (uint32_t i = 0; i < run->level_count; i++) {
        const cogpu_check_level *level = &run->levels[i];
        most = level->storage.planes > most ? level->storage.planes : most;
        most = level->has_mask && level->mask.planes > most ? level->mask.planes : most;
    }
    return most;
}

/* That blocks of all bands stand together GDAL says in the metadata; its ghost area, depending on
 * its version, says BAND then. */
static bool is_tile_interleaved(const cogpu_metadata *metadata) {
    for (uint32_t i = 0; i < metadata->item_count; i++) {
        const cogpu_item *item = &metadata->items[i];
        if (strcmp(item->domain, "IMAGE_STRUCTURE") == 0 && strcmp(item->name, "INTERLEAVE") == 0)
            return strcmp(item->value, "TILE") == 0;
    }
    return false;
}

/* After an edit there is no promise to hold, but blocks must be inside the file in any case. */
static uint32_t promises_of(const cogpu_check_run *run) {
    uint32_t ghost = run->tiff->ghost;
    if (ghost & COGPU_GHOST_BROKEN)
        return 0;
    if (is_tile_interleaved(&run->picture->metadata))
        ghost |= COGPU_GHOST_TILE_INTERLEAVED;
    return ghost;
}

cogpu_status cogpu_check_blocks(cogpu_check_run *run) {
    uint32_t promises = promises_of(run);
    uint32_t planes = most_planes(run);
    struct room room;
    TRY(cogpu_arena_take(&run->arena, AHEAD_MAX, 1, &room.held, run->error));
    TRY(cogpu_arena_take(&run->arena, (uint64_t)planes + 1, sizeof *room.zero_until,
                         &room.zero_until, run->error));
    TRY(cogpu_arena_take(&run->arena, planes > PIECE ? planes : PIECE, sizeof *room.blocks,
                         &room.blocks, run->error));
    for (uint32_t i = 0; i < run->level_count; i++)
        TRY(walk_level(run, &run->levels[i], promises, &room));
    return COGPU_OK;
}
