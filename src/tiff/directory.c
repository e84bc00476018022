/*
 * Reads all directories: the main chain, then SubIFDs level by level, without recursion.
 *
 * The first directory must be valid. A later malformed one (truncated, visited before, beyond a
 * limit) ends its chain with a warning, because the images before it are readable. In a valid file
 * directories do not overlap, so together they are no longer than the file, and hardly any share
 * the values of their tags. Both bound time and memory, whatever the offsets say.
 */
#include "tiff/internal.h"

#include "base/bytes.h"
#include "base/checked.h"

#include <string.h>

enum { CLASSIC_ENTRY = 12, BIG_ENTRY = 20, TAGS_ALL = 65536 };

/* The values of all tags together: this much, and so many times the file. */
enum { VALUES_BASE = 1 << 20, VALUES_PER_FILE_BYTE = 16 };

/* Offsets of visited directories: a hash table with open addressing, at most half full. */
struct visited {
    uint64_t *slots;
    uint64_t size, used;
};

struct walk {
    cogpu_tiff *tiff;
    cogpu_arena *arena;
    cogpu_error *error;
    struct visited seen;
    uint32_t capacity;
    uint64_t entry_bytes; /* of all directories so far */
    uint64_t value_bytes; /* of their tags, as far as they lie in the file */
    uint64_t sub_ifds;    /* offsets of SubIFDs followed so far */
};

static uint64_t *find_visited_slot(const struct visited *seen, uint64_t offset) {
    uint64_t i = (offset * 0x9E3779B97F4A7C15ULL) & (seen->size - 1);
    while (seen->slots[i] && seen->slots[i] != offset)
        i = (i + 1) & (seen->size - 1);
    return &seen->slots[i];
}

static cogpu_status grow_visited(struct walk *walk) {
    struct visited old = walk->seen,
                   grown = {.size = old.size ? old.size * 2 : 16, .used = old.used};
    TRY(cogpu_arena_allocate(walk->arena, grown.size, sizeof *grown.slots, &grown.slots,
                             walk->error));
    for (uint64_t i = 0; i < old.size; i++)
        if (old.slots[i])
            *find_visited_slot(&grown, old.slots[i]) = old.slots[i];
    walk->seen = grown;
    return COGPU_OK;
}

/* Offset 0 is never a directory, so it marks a free slot. */
static cogpu_status add_visited(struct walk *walk, uint64_t offset, bool *was_new) {
    if (walk->seen.used * 2 >= walk->seen.size)
        TRY(grow_visited(walk));
    uint64_t *slot = find_visited_slot(&walk->seen, offset);
    *was_new = *slot == 0;
    *slot = offset;
    walk->seen.used += *was_new;
    return COGPU_OK;
}

static cogpu_status directories_grow(struct walk *walk) {
    cogpu_tiff *tiff = walk->tiff;
    if (tiff->directory_count < walk->capacity)
        return COGPU_OK;
    uint32_t capacity = walk->capacity ? walk->capacity * 2 : 8;
    cogpu_ifd *grown = NULL;
    TRY(cogpu_arena_allocate(walk->arena, capacity, sizeof *grown, &grown, walk->error));
    if (tiff->directory_count)
        memcpy(grown, tiff->directories, tiff->directory_count * sizeof *grown);
    tiff->directories = grown;
    walk->capacity = capacity;
    return COGPU_OK;
}

/* False for an unknown type. A huge count is kept and fails when it is read. */
static bool parse_entry(const cogpu_tiff *tiff, const uint8_t *raw, uint64_t raw_offset,
                        cogpu_entry *entry) {
    bool big = tiff->big_endian;
    size_t field = tiff->bigtiff ? 8 : 4;
    const uint8_t *value = raw + 4 + field;
    *entry = (cogpu_entry){.tag = load_u16(raw, big), .type = load_u16(raw + 2, big)};
    size_t width = cogpu_tiff_type_bytes(entry->type);
    if (width == 0)
        return false;
    entry->count = tiff->bigtiff ? load_u64(raw + 4, big) : load_u32(raw + 4, big);
    if (!checked_mul(entry->count, width, &entry->bytes))
        entry->bytes = UINT64_MAX;
    entry->is_inline = entry->bytes <= field;
    if (entry->is_inline) {
        memcpy(entry->inline_value, value, field);
        entry->value_offset = raw_offset + 4 + field;
    } else {
        entry->value_offset = tiff->bigtiff ? load_u64(value, big) : load_u32(value, big);
    }
    return true;
}

/* Keeps the first of entries with the same tag, in file order. */
static void parse_entries(struct walk *walk, const uint8_t *raw, uint64_t raw_offset,
                          uint64_t count, cogpu_entry *entries, cogpu_ifd *directory) {
    uint8_t met[TAGS_ALL / 8];
    memset(met, 0, sizeof met);
    size_t entry_bytes = walk->tiff->bigtiff ? BIG_ENTRY : CLASSIC_ENTRY;
    uint32_t kept = 0;
    for (uint64_t i = 0; i < count; i++, raw += entry_bytes, raw_offset += entry_bytes) {
        cogpu_entry entry;
        if (!parse_entry(walk->tiff, raw, raw_offset, &entry)) {
            cogpu_warn(walk->arena, &walk->tiff->warning,
                       "directory %u: tag %u has the unknown type %u and was ignored",
                       walk->tiff->directory_count, entry.tag, entry.type);
            continue;
        }
        if (met[entry.tag / 8] & (1U << entry.tag % 8)) {
            cogpu_warn(walk->arena, &walk->tiff->warning,
                       "directory %u: tag %u occurs twice; the first is used",
                       walk->tiff->directory_count, entry.tag);
            continue;
        }
        met[entry.tag / 8] = (uint8_t)(met[entry.tag / 8] | 1U << entry.tag % 8);
        entries[kept++] = entry;
    }
    directory->entries = entries;
    directory->entry_count = kept;
}

/* Many directories that share one large value would each cost its size. */
static cogpu_status count_values(struct walk *walk, const cogpu_ifd *directory) {
    uint64_t file_bytes = cogpu_io_bytes(walk->tiff->io);
    for (uint32_t i = 0; i < directory->entry_count; i++)
        if (directory->entries[i].bytes <= file_bytes)
            walk->value_bytes += directory->entries[i].bytes;
    if (walk->value_bytes > VALUES_BASE &&
        (walk->value_bytes - VALUES_BASE) / VALUES_PER_FILE_BYTE > file_bytes)
        return cogpu_fail(walk->error, COGPU_CORRUPT,
                          "the tag values of all directories are far larger than the file");
    return COGPU_OK;
}

/* NewSubfileType, or the older tag with other numbers. */
static uint32_t subfile_type(const cogpu_tiff *tiff, uint32_t directory) {
    uint64_t type = 0, old = 0;
    if (cogpu_tiff_u64(tiff, directory, TAG_NEW_SUBFILE_TYPE, 0, &type, NULL) == COGPU_OK && type)
        return (uint32_t)type;
    if (cogpu_tiff_u64(tiff, directory, TAG_SUBFILE_TYPE, 0, &old, NULL) != COGPU_OK)
        return 0;
    return old == 2 ? 1 : old == 3 ? 2 : 0;
}

static cogpu_status entry_count(struct walk *walk, uint64_t offset, uint64_t *count) {
    cogpu_tiff *tiff = walk->tiff;
    uint8_t raw[8];
    size_t width = tiff->bigtiff ? 8 : 2;
    TRY(cogpu_io_peek(tiff->io, offset, width, raw, walk->error));
    *count = tiff->bigtiff ? load_u64(raw, tiff->big_endian) : load_u16(raw, tiff->big_endian);
    if (*count == 0)
        return cogpu_fail(walk->error, COGPU_CORRUPT, "the directory has no tags");
    if (*count > tiff->limits.tags)
        return cogpu_fail(walk->error, COGPU_LIMIT_EXCEEDED,
                          "the directory has %llu tags, the limit is %llu; raise `tags` to go on",
                          (unsigned long long)*count, (unsigned long long)tiff->limits.tags);
    return COGPU_OK;
}

/* Appends one directory; *next is the offset of the next in its chain. */
static cogpu_status read_directory(struct walk *walk, uint64_t offset, int32_t parent,
                                   uint64_t *next) {
    cogpu_tiff *tiff = walk->tiff;
    bool is_new;
    uint64_t count, entry_bytes = tiff->bigtiff ? BIG_ENTRY : CLASSIC_ENTRY;
    size_t count_bytes = tiff->bigtiff ? 8 : 2, next_bytes = tiff->bigtiff ? 8 : 4;
    if (tiff->directory_count >= tiff->limits.directories)
        return cogpu_fail(walk->error, COGPU_LIMIT_EXCEEDED,
                          "the file has more than %llu directories; raise `directories` to go on",
                          (unsigned long long)tiff->limits.directories);
    TRY(add_visited(walk, offset, &is_new));
    if (!is_new)
        return cogpu_fail(walk->error, COGPU_CORRUPT, "the directories form a loop");
    TRY(entry_count(walk, offset, &count));
    uint64_t file_bytes = cogpu_io_bytes(tiff->io);
    if (count <= file_bytes / entry_bytes)
        walk->entry_bytes += count * entry_bytes;
    if (count > file_bytes / entry_bytes || walk->entry_bytes > file_bytes)
        return cogpu_fail(walk->error, COGPU_CORRUPT,
                          "the directories overlap or are longer than the file");

    TRY(directories_grow(walk));
    uint8_t *raw = NULL;
    cogpu_entry *entries = NULL;
    size_t raw_bytes = (size_t)(count * entry_bytes);
    TRY(cogpu_arena_allocate(walk->arena, raw_bytes + next_bytes, 1, &raw, walk->error));
    TRY(cogpu_arena_allocate(walk->arena, count, sizeof *entries, &entries, walk->error));
    TRY(cogpu_io_peek(tiff->io, offset + count_bytes, raw_bytes, raw, walk->error));
    /* Some writers end the file with the last entry, without the next offset. */
    *next = 0;
    uint64_t link = offset + count_bytes + raw_bytes;
    if (file_bytes - link >= next_bytes) {
        TRY(cogpu_io_peek(tiff->io, link, next_bytes, raw + raw_bytes, walk->error));
        *next = tiff->bigtiff ? load_u64(raw + raw_bytes, tiff->big_endian)
                              : load_u32(raw + raw_bytes, tiff->big_endian);
    }

    cogpu_ifd *directory = &tiff->directories[tiff->directory_count];
    *directory = (cogpu_ifd){.offset = offset, .parent = parent};
    parse_entries(walk, raw, offset + count_bytes, count, entries, directory);
    TRY(count_values(walk, directory));
    tiff->directory_count++;
    directory->subfile_type = subfile_type(tiff, tiff->directory_count - 1);
    return COGPU_OK;
}

/* A failure of this directory alone, if the first could be read. */
static bool is_tolerable(const struct walk *walk, cogpu_status status) {
    return walk->tiff->directory_count > 0 &&
           (status == COGPU_CORRUPT || status == COGPU_LIMIT_EXCEEDED);
}

static cogpu_status read_chain(struct walk *walk, uint64_t offset, int32_t parent) {
    while (offset != 0) {
        uint64_t next = 0;
        cogpu_status status = read_directory(walk, offset, parent, &next);
        if (status != COGPU_OK && is_tolerable(walk, status)) {
            cogpu_warn(
                walk->arena, &walk->tiff->warning,
                "directory %u at offset %llu is malformed; it and its successors were ignored",
                walk->tiff->directory_count, (unsigned long long)offset);
            return COGPU_OK;
        }
        if (status != COGPU_OK)
            cogpu_error_locate(walk->error, walk->tiff->directory_count, -1,
                               (int64_t)(offset & INT64_MAX));
        TRY(status);
        offset = next;
    }
    return COGPU_OK;
}

static cogpu_status read_sub_directories(struct walk *walk, uint32_t directory) {
    cogpu_tiff *tiff = walk->tiff;
    const cogpu_entry *entry = cogpu_tiff_find(tiff, directory, TAG_SUB_IFDS);
    if (!entry)
        return COGPU_OK;
    for (uint64_t i = 0; i < entry->count && walk->sub_ifds < tiff->limits.directories;
         i++, walk->sub_ifds++) {
        uint64_t offset;
        cogpu_status status = cogpu_tiff_u64s(tiff, entry, i, 1, &offset, walk->error);
        if (status == COGPU_CORRUPT) {
            cogpu_warn(walk->arena, &tiff->warning,
                       "directory %u: its SubIFDs tag is malformed and was ignored", directory);
            return COGPU_OK;
        }
        TRY(status);
        TRY(read_chain(walk, offset, (int32_t)directory));
    }
    return COGPU_OK;
}

cogpu_status cogpu_directories_read(cogpu_tiff *tiff, uint64_t first, cogpu_arena *arena,
                                    cogpu_error *error) {
    struct walk walk = {.tiff = tiff, .arena = arena, .error = error};
    if (first == 0)
        return cogpu_fail(error, COGPU_CORRUPT, "the file has no directory");
    TRY(read_chain(&walk, first, -1));
    /* Each round goes one level deeper: it visits the directories found in the last round.
     */
    uint32_t from = 0;
    for (int depth = 0; depth < COGPU_SUBIFD_DEPTH_MAX; depth++) {
        uint32_t until = tiff->directory_count;
        for (uint32_t i = from; i < until; i++)
            TRY(read_sub_directories(&walk, i));
        from = until;
    }
    return COGPU_OK;
}
