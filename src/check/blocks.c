/*
 * Checks each block of an image: it must be inside the file, and keep what GDAL's ghost area
 * declares: row-major order, its size before it (leader), its last 4 bytes again after it
 * (trailer), and the mask's block next.
 *
 *     | leader (4) | block | trailer (4) | leader (4) | mask block | trailer (4) | leader ...
 *
 * Block tables are read some blocks at a time. Runs of sparse blocks are skipped in larger steps,
 * or at once if the file has a hole there. Between two blocks there are 12 bytes to read. Where
 * blocks are small and follow each other, reads go ahead; otherwise they read these bytes only. So
 * neither a large file nor unordered offsets cost more than one small read for each block.
 */
#include "check/check.h"

#include "base/bytes.h"

#include <string.h>

enum { TABLE_BLOCKS = 512 }; /* read of a table at a time */
enum { MARK_BYTES = 4 };     /* of a leader, and of a trailer */
/* Bytes of a table that are searched for zeros at a time. */
enum { SKIP_MIN_BYTES = 4 << 10, SKIP_MAX_BYTES = 1 << 20 };
/* Bytes between blocks; of the read-ahead; of the largest gap that does not end it. */
enum {
    BETWEEN_BYTES = 12,
    READ_AHEAD_MIN_BYTES = 1 << 10,
    READ_AHEAD_MAX_BYTES = 256 << 10,
    READ_AHEAD_GAP_BYTES = 16 << 10
};

/* ---- block tables ---------------------------------------------------------------------------- */

/* Offset and byte count in the table. As in GDAL, a block is sparse if one of them is 0; without
 * byte counts the offset alone decides. */
struct table_block {
    uint64_t offset, bytes;
    bool is_sparse;
};

/* A table that cannot be read is a finding; lack of memory and I/O errors fail the call. */
static cogpu_status report_unreadable_table(cogpu_check_run *run, uint32_t directory,
                                            cogpu_status status, const cogpu_error *why,
                                            bool *is_readable) {
    *is_readable = status == COGPU_OK;
    if (status == COGPU_OK)
        return COGPU_OK;
    if (status == COGPU_OUT_OF_MEMORY || status == COGPU_IO_ERROR) {
        if (run->error)
            *run->error = *why;
        return status;
    }
    cogpu_check_add_finding(run, RULE_BLOCK_TABLE, directory, -1, NO_OFFSET,
                            "the block table cannot be read: %s", why->message);
    return COGPU_OK;
}

static cogpu_status read_table(const cogpu_storage *storage, uint64_t first, uint32_t count,
                               uint64_t offsets[TABLE_BLOCKS], uint64_t bytes[TABLE_BLOCKS],
                               cogpu_error *error) {
    if (!storage->offsets)
        return cogpu_fail(error, COGPU_CORRUPT, "the directory has no block offsets");
    TRY(cogpu_tiff_u64s(storage->tiff, storage->offsets, first, count, offsets, error));
    if (storage->counts)
        return cogpu_tiff_u64s(storage->tiff, storage->counts, first, count, bytes, error);
    return COGPU_OK;
}

/* Reads at most TABLE_BLOCKS blocks. */
static cogpu_status read_table_blocks(cogpu_check_run *run, const cogpu_storage *storage,
                                      uint64_t first, uint32_t count, struct table_block *blocks,
                                      bool *is_readable) {
    uint64_t offsets[TABLE_BLOCKS], bytes[TABLE_BLOCKS];
    cogpu_error why;
    cogpu_status status = read_table(storage, first, count, offsets, bytes, &why);
    TRY(report_unreadable_table(run, storage->directory, status, &why, is_readable));
    for (uint32_t i = 0; *is_readable && i < count; i++)
        blocks[i] = (struct table_block){
            .offset = offsets[i],
            .bytes = storage->counts ? bytes[i] : 0,
            .is_sparse = offsets[i] == 0 || (storage->counts && bytes[i] == 0),
        };
    return COGPU_OK;
}

static uint32_t limited_count(uint64_t left, uint32_t limit) {
    return left < limit ? (uint32_t)left : limit;
}

/* ---- runs of sparse blocks ------------------------------------------------------------------- */

static bool are_all_sparse(const struct table_block *blocks, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (!blocks[i].is_sparse)
            return false;
    return true;
}

/* Moves *first, at most to `end`, past blocks with offset 0. */
static cogpu_status skip_zero_offsets(cogpu_check_run *run, const cogpu_storage *storage,
                                      uint64_t end, uint64_t *first) {
    uint64_t start = *first, zeros = 1;
    if (!run->table_bytes)
        TRY(cogpu_arena_allocate(&run->arena, SKIP_MAX_BYTES, 1, &run->table_bytes, run->error));
    for (size_t bytes = SKIP_MIN_BYTES; *first < end && zeros > 0; *first += zeros) {
        TRY(cogpu_tiff_zeros(storage->tiff, storage->offsets, *first, end - *first,
                             run->table_bytes, bytes, &zeros, run->error));
        bytes = bytes < SKIP_MAX_BYTES ? bytes * 2 : SKIP_MAX_BYTES;
        TRY(cogpu_check_progress(run, *first + zeros - start, false));
    }
    return COGPU_OK;
}

/* Of the first plane, as GDAL does it. */
cogpu_status cogpu_check_first_block(cogpu_check_run *run, cogpu_check_level *level) {
    const cogpu_storage *storage = &level->storage;
    uint64_t blocks = storage->blocks / storage->planes;
    struct table_block blocks_read[TABLE_BLOCKS];
    uint64_t first = 0;
    while (first < blocks && !level->first_block) {
        uint32_t count = limited_count(blocks - first, TABLE_BLOCKS), sparse = 0;
        bool is_readable;
        TRY(read_table_blocks(run, storage, first, count, blocks_read, &is_readable));
        level->is_malformed = !is_readable;
        if (!is_readable)
            return COGPU_OK;
        while (sparse < count && blocks_read[sparse].is_sparse)
            sparse++;
        if (sparse < count)
            level->first_block = blocks_read[sparse].offset;
        first += sparse;
        if (sparse == count)
            TRY(skip_zero_offsets(run, storage, blocks, &first));
    }
    level->sparse_before = first;
    return COGPU_OK;
}

/* ---- the bytes between blocks ---------------------------------------------------------------- */

/* The last read, which may reach further than what was needed of it. */
struct read_ahead {
    uint8_t *held;
    uint64_t start;
    size_t bytes, step;
};

static size_t next_step(const struct read_ahead *ahead, uint64_t offset) {
    uint64_t end = ahead->start + ahead->bytes;
    bool follows = ahead->bytes && offset >= ahead->start && offset < end + READ_AHEAD_GAP_BYTES;
    if (!follows)
        return BETWEEN_BYTES;
    if (ahead->step == BETWEEN_BYTES)
        return READ_AHEAD_MIN_BYTES;
    return ahead->step < READ_AHEAD_MAX_BYTES / 4 ? ahead->step * 4 : READ_AHEAD_MAX_BYTES;
}

/* Reads `bytes` bytes, which are inside the file. */
static cogpu_status read_between_blocks(cogpu_check_run *run, struct read_ahead *ahead,
                                        uint64_t offset, size_t bytes, uint8_t *to) {
    const cogpu_io *io = run->tiff->io;
    if (offset < ahead->start || offset + bytes > ahead->start + ahead->bytes) {
        uint64_t left = cogpu_io_bytes(io) - offset;
        ahead->step = next_step(ahead, offset);
        ahead->bytes = left < ahead->step ? (size_t)left : ahead->step;
        ahead->start = offset;
        TRY(cogpu_io_read(io, offset, ahead->bytes, ahead->held, run->error));
    }
    memcpy(to, ahead->held + (offset - ahead->start), bytes);
    return COGPU_OK;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* A walk through the blocks of one directory. */
struct block_walk {
    cogpu_check_run *run;
    const cogpu_storage *storage;
    const cogpu_storage *mask; /* its blocks follow those of the image; or NULL */
    uint32_t promises;         /* COGPU_GHOST_... */
    uint64_t last;             /* offset of the block before */
    uint64_t sparse_before;    /* blocks of the first plane that are known to be sparse */
    uint64_t *zero_until;      /* of each plane, and the mask: blocks before it are sparse */
    struct read_ahead ahead;
};

static bool is_inside_file(const cogpu_check_run *run, const struct table_block *block) {
    uint64_t file_bytes = cogpu_io_bytes(run->tiff->io);
    return block->offset < file_bytes && block->bytes <= file_bytes - block->offset;
}

static void check_order(struct block_walk *walk, const cogpu_storage *storage, uint64_t index,
                        uint64_t offset) {
    if (walk->promises & COGPU_GHOST_ROW_MAJOR && offset < walk->last)
        cogpu_check_add_finding(walk->run, RULE_BLOCK_ORDER, storage->directory, (int64_t)index,
                                offset,
                                "the block at byte %llu comes before its predecessor, at %llu",
                                (unsigned long long)offset, (unsigned long long)walk->last);
    walk->last = offset;
}

static cogpu_status check_leader(struct block_walk *walk, uint64_t index,
                                 const struct table_block *block) {
    uint8_t leader[MARK_BYTES];
    if (!(walk->promises & COGPU_GHOST_LEADER) || block->offset < MARK_BYTES)
        return COGPU_OK;
    TRY(read_between_blocks(walk->run, &walk->ahead, block->offset - MARK_BYTES, MARK_BYTES,
                            leader));
    uint32_t stated = load_u32(leader, false);
    if (stated != block->bytes)
        cogpu_check_add_finding(walk->run, RULE_BLOCK_LEADER, walk->storage->directory,
                                (int64_t)index, block->offset - MARK_BYTES,
                                "the leader has %u bytes, the block table %llu", stated,
                                (unsigned long long)block->bytes);
    return COGPU_OK;
}

static cogpu_status check_trailer(struct block_walk *walk, uint64_t index,
                                  const struct table_block *block) {
    uint8_t last[2 * MARK_BYTES];
    uint64_t end = block->offset + block->bytes;
    if (!(walk->promises & COGPU_GHOST_TRAILER) || block->bytes < MARK_BYTES)
        return COGPU_OK;
    bool cut_off = cogpu_io_bytes(walk->run->tiff->io) - end < MARK_BYTES;
    if (!cut_off)
        TRY(read_between_blocks(walk->run, &walk->ahead, end - MARK_BYTES, 2 * MARK_BYTES, last));
    if (cut_off || memcmp(last, last + MARK_BYTES, MARK_BYTES) != 0)
        cogpu_check_add_finding(walk->run, RULE_BLOCK_TRAILER, walk->storage->directory,
                                (int64_t)index, end,
                                "the last 4 bytes of the block are not repeated after it%s",
                                cut_off ? ": the file ends there" : "");
    return COGPU_OK;
}

/* Blocks of 4 GiB and more have no leader and no trailer. */
static cogpu_status check_walked_block(struct block_walk *walk, uint64_t index,
                                       const struct table_block *block) {
    walk->run->blocks++;
    if (block->is_sparse)
        return COGPU_OK;
    if (!is_inside_file(walk->run, block)) {
        cogpu_check_add_finding(
            walk->run, RULE_BLOCK_OUTSIDE, walk->storage->directory, (int64_t)index, block->offset,
            "the block has %llu bytes at %llu and exceeds the file, which has %llu",
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

/* The mask's block follows that of the image, or replaces it in the order if that is sparse. */
static void check_mask_offset(struct block_walk *walk, uint64_t index,
                              const struct table_block *image, const struct table_block *mask) {
    if (mask->is_sparse)
        return;
    if (image->is_sparse) {
        check_order(walk, walk->mask, index, mask->offset);
        return;
    }
    uint64_t wanted = image->offset + image->bytes +
                      (walk->promises & COGPU_GHOST_LEADER ? MARK_BYTES : 0) +
                      (walk->promises & COGPU_GHOST_TRAILER ? MARK_BYTES : 0);
    if (mask->offset != wanted)
        cogpu_check_add_finding(
            walk->run, RULE_MASK_OFFSET, walk->mask->directory, (int64_t)index, mask->offset,
            "the block of the mask is at byte %llu instead of %llu, after that of the image",
            (unsigned long long)mask->offset, (unsigned long long)wanted);
}

/* Moves *first past blocks that are sparse in all tables of the walk. walk->zero_until keeps what
 * is known of each table, so that none is searched twice. */
static cogpu_status skip_sparse(struct block_walk *walk, uint32_t plane, uint32_t planes,
                                uint64_t positions, uint64_t *first) {
    uint64_t start = *first, nearest = positions;
    for (uint32_t k = 0; k < planes + (walk->mask ? 1 : 0); k++) {
        const cogpu_storage *storage = k < planes ? walk->storage : walk->mask;
        uint64_t base = k < planes ? (plane + k) * positions : 0, at = base + start;
        if (walk->zero_until[k] <= start) {
            TRY(skip_zero_offsets(walk->run, storage, base + positions, &at));
            walk->zero_until[k] = at - base;
        }
        nearest = walk->zero_until[k] < nearest ? walk->zero_until[k] : nearest;
    }
    *first = nearest;
    walk->run->blocks += (nearest - start) * planes;
    return cogpu_check_progress(walk->run, (nearest - start) * planes, true);
}

/* Entries of the block tables at some positions: those of each plane, then those of the mask. */
struct walk_chunk {
    struct table_block *blocks; /* of plane k from k * capacity on */
    struct table_block masks[TABLE_BLOCKS];
    uint32_t capacity, count, planes;
};

static cogpu_status read_chunk(struct block_walk *walk, uint32_t plane, uint64_t positions,
                               uint64_t first, struct walk_chunk *chunk, bool *is_readable) {
    *is_readable = true;
    chunk->count = limited_count(positions - first, chunk->capacity);
    for (uint32_t k = 0; k < chunk->planes && *is_readable; k++)
        TRY(read_table_blocks(walk->run, walk->storage, (plane + k) * positions + first,
                              chunk->count, chunk->blocks + (size_t)k * chunk->capacity,
                              is_readable));
    if (*is_readable && walk->mask)
        TRY(read_table_blocks(walk->run, walk->mask, first, chunk->count, chunk->masks,
                              is_readable));
    return COGPU_OK;
}

static cogpu_status check_chunk(struct block_walk *walk, uint32_t plane, uint64_t positions,
                                uint64_t first, const struct walk_chunk *chunk) {
    const struct table_block *last_plane =
        chunk->blocks + (size_t)(chunk->planes - 1) * chunk->capacity;
    for (uint32_t i = 0; i < chunk->count; i++) {
        for (uint32_t k = 0; k < chunk->planes; k++)
            TRY(check_walked_block(walk, (plane + k) * positions + first + i,
                                   &chunk->blocks[(size_t)k * chunk->capacity + i]));
        if (walk->mask)
            check_mask_offset(walk, first + i, &last_plane[i], &chunk->masks[i]);
    }
    return COGPU_OK;
}

static bool is_chunk_sparse(const struct block_walk *walk, const struct walk_chunk *chunk) {
    for (uint32_t k = 0; k < chunk->planes; k++)
        if (!are_all_sparse(chunk->blocks + (size_t)k * chunk->capacity, chunk->count))
            return false;
    return !walk->mask || are_all_sparse(chunk->masks, chunk->count);
}

/* Checks blocks of `planes` planes from `plane` on: all planes of a position before the next one.
 */
static cogpu_status walk_planes(struct block_walk *walk, uint32_t plane, uint32_t planes,
                                struct table_block *blocks) {
    uint64_t positions = walk->storage->blocks / walk->storage->planes;
    uint64_t first = plane == 0 && planes == 1 && !walk->mask ? walk->sparse_before : 0;
    struct walk_chunk chunk = {.blocks = blocks, .planes = planes};
    chunk.capacity = planes < TABLE_BLOCKS ? TABLE_BLOCKS / planes : 1;
    walk->last = 0;
    memset(walk->zero_until, 0, (planes + 1) * sizeof *walk->zero_until);
    walk->run->blocks += first;
    TRY(cogpu_check_progress(walk->run, first, true));
    while (first < positions) {
        bool is_readable;
        TRY(read_chunk(walk, plane, positions, first, &chunk, &is_readable));
        if (!is_readable)
            return COGPU_OK;
        TRY(check_chunk(walk, plane, positions, first, &chunk));
        first += chunk.count;
        TRY(cogpu_check_progress(walk->run, (uint64_t)chunk.count * planes, true));
        if (is_chunk_sparse(walk, &chunk))
            TRY(skip_sparse(walk, plane, planes, positions, &first));
    }
    return COGPU_OK;
}

/* Planes follow each other, or are interleaved at each position. */
static cogpu_status walk_directory(struct block_walk *walk, struct table_block *blocks) {
    uint32_t planes = walk->storage->planes;
    if (walk->promises & COGPU_GHOST_TILE_INTERLEAVED)
        return walk_planes(walk, 0, planes, blocks);
    for (uint32_t plane = 0; plane < planes; plane++)
        TRY(walk_planes(walk, plane, 1, blocks));
    return COGPU_OK;
}

/* GDAL interleaves masks only with chunky pixels or interleaved planes. */
static bool is_mask_interleaved(const cogpu_check_level *level, uint32_t promises) {
    return level->has_mask && promises & COGPU_GHOST_MASK_INTERLEAVED && level->mask.planes == 1 &&
           (level->storage.planes == 1 || promises & COGPU_GHOST_TILE_INTERLEAVED);
}

/* Memory that the walks share. */
struct walk_scratch {
    uint8_t *held;
    struct table_block *blocks;
    uint64_t *zero_until;
};

static cogpu_status walk_level(cogpu_check_run *run, const cogpu_check_level *level,
                               uint32_t promises, const struct walk_scratch *scratch) {
    const cogpu_storage *storage = &level->storage, *mask = &level->mask;
    struct block_walk walk = {.run = run,
                              .storage = storage,
                              .promises = promises,
                              .sparse_before = level->sparse_before,
                              .zero_until = scratch->zero_until,
                              .ahead = {.held = scratch->held}};
    struct block_walk mask_walk = {.run = run,
                                   .storage = mask,
                                   .promises = promises,
                                   .zero_until = scratch->zero_until,
                                   .ahead = {.held = scratch->held}};
    if (is_mask_interleaved(level, promises)) {
        if (mask->block_width == storage->block_width &&
            mask->block_height == storage->block_height)
            walk.mask = mask;
        else
            cogpu_check_add_finding(run, RULE_MASK_BLOCK_SIZE, mask->directory, -1, NO_OFFSET,
                                    "blocks of the mask are %u x %u, those of its image %u x %u",
                                    mask->block_width, mask->block_height, storage->block_width,
                                    storage->block_height);
    }
    if (!level->is_malformed)
        TRY(walk_directory(&walk, scratch->blocks));
    return level->has_mask ? walk_directory(&mask_walk, scratch->blocks) : COGPU_OK;
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

/* GDAL declares interleaved planes in the metadata. Its ghost area then has BAND, depending on the
 * version. */
static bool is_tile_interleaved(const cogpu_metadata *metadata) {
    for (uint32_t i = 0; i < metadata->item_count; i++) {
        const cogpu_metadata_item *item = &metadata->items[i];
        if (strcmp(item->domain, "IMAGE_STRUCTURE") == 0 && strcmp(item->name, "INTERLEAVE") == 0)
            return strcmp(item->value, "TILE") == 0;
    }
    return false;
}

/* After an edit nothing is declared any more, but blocks must still be inside the file. */
static uint32_t promises_of(const cogpu_check_run *run) {
    uint32_t ghost = run->tiff->ghost;
    if (ghost & COGPU_GHOST_BROKEN)
        return 0;
    if (is_tile_interleaved(&run->pyramid->metadata))
        ghost |= COGPU_GHOST_TILE_INTERLEAVED;
    return ghost;
}

cogpu_status cogpu_check_blocks(cogpu_check_run *run) {
    uint32_t promises = promises_of(run);
    uint32_t planes = most_planes(run);
    struct walk_scratch scratch;
    TRY(cogpu_arena_allocate(&run->arena, READ_AHEAD_MAX_BYTES, 1, &scratch.held, run->error));
    TRY(cogpu_arena_allocate(&run->arena, (uint64_t)planes + 1, sizeof *scratch.zero_until,
                             &scratch.zero_until, run->error));
    TRY(cogpu_arena_allocate(&run->arena, planes > TABLE_BLOCKS ? planes : TABLE_BLOCKS,
                             sizeof *scratch.blocks, &scratch.blocks, run->error));
    for (uint32_t i = 0; i < run->level_count; i++)
        TRY(walk_level(run, &run->levels[i], promises, &scratch));
    return COGPU_OK;
}
