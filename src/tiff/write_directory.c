/*
 * Serialises directories (IFDs): entries, values that do not fit an entry, and the arrays of block
 * offsets and byte counts (TIFF 6.0 section 2; BigTIFF with 8-byte fields).
 *
 * Tags are sorted by id, as TIFF requires. The layout follows from counts alone. So it is computed
 * twice, before blocks are written and after, and only the offsets of directories are kept.
 */
#include "tiff/write.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "tiff/internal.h"

#include <assert.h>
#include <string.h>

/* Classic TIFF counts the tags of a directory by 16 bits; two are added here. */
enum { FIRST_CAPACITY = 16, TAGS_MAX = UINT16_MAX - 2, LAST_ID = UINT16_MAX };

/* Sizes of the fields of a directory, in bytes. */
struct field_sizes {
    size_t count, entry, offset;
};

static struct field_sizes field_sizes_of(bool bigtiff) {
    return bigtiff ? (struct field_sizes){.count = 8, .entry = 20, .offset = 8}
                   : (struct field_sizes){.count = 2, .entry = 12, .offset = 4};
}

/* ---- lists of tags ---- */

static cogpu_status grow_list(cogpu_tag_list *list, cogpu_arena *arena, cogpu_error *error) {
    if (list->count < list->capacity)
        return COGPU_OK;
    uint32_t capacity = list->capacity ? list->capacity * 2 : FIRST_CAPACITY;
    cogpu_new_tag *grown = NULL;
    TRY(cogpu_arena_allocate(arena, capacity, sizeof *grown, &grown, error));
    if (list->count)
        memcpy(grown, list->tags, list->count * sizeof *grown);
    list->tags = grown;
    list->capacity = capacity;
    return COGPU_OK;
}

cogpu_status cogpu_tag_add(cogpu_tag_list *list, cogpu_arena *arena, uint16_t id, uint16_t type,
                           uint64_t count, const void *values, cogpu_error *error) {
    uint64_t bytes;
    size_t width = cogpu_tiff_type_bytes(type);
    if (width == 0 || count == 0 || !checked_mul(count, width, &bytes) || bytes > SIZE_MAX)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "tag %u cannot have %llu values of type %u", id,
                          (unsigned long long)count, type);
    if (cogpu_tag_list_has(list, id))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "tag %u (%s) is given twice: remove one",
                          id, cogpu_tag_name(id));
    void *copy = NULL;
    TRY(grow_list(list, arena, error));
    TRY(cogpu_arena_allocate(arena, bytes, 1, &copy, error));
    memcpy(copy, values, (size_t)bytes);
    uint32_t at = list->count++;
    for (; at > 0 && list->tags[at - 1].id > id; at--)
        list->tags[at] = list->tags[at - 1];
    list->tags[at] = (cogpu_new_tag){.id = id, .type = type, .count = count, .values = copy};
    return COGPU_OK;
}

cogpu_status cogpu_tag_add_short(cogpu_tag_list *list, cogpu_arena *arena, uint16_t id,
                                 uint16_t value, cogpu_error *error) {
    return cogpu_tag_add(list, arena, id, TYPE_SHORT, 1, &value, error);
}

cogpu_status cogpu_tag_add_long(cogpu_tag_list *list, cogpu_arena *arena, uint16_t id,
                                uint32_t value, cogpu_error *error) {
    return cogpu_tag_add(list, arena, id, TYPE_LONG, 1, &value, error);
}

cogpu_status cogpu_tag_add_text(cogpu_tag_list *list, cogpu_arena *arena, uint16_t id,
                                const char *text, cogpu_error *error) {
    return cogpu_tag_add(list, arena, id, TYPE_ASCII, strlen(text) + 1, text, error);
}

bool cogpu_tag_list_has(const cogpu_tag_list *list, uint16_t id) {
    for (uint32_t i = 0; i < list->count; i++)
        if (list->tags[i].id == id)
            return true;
    return false;
}

/* ---- layout ---- */

static uint64_t round_to_even(uint64_t offset) {
    return offset + offset % 2;
}

/* Bytes of a value outside its entry, rounded up to an even number; 0 if it fits the entry. */
static uint64_t bytes_outside_entry(const struct field_sizes *sizes, uint64_t bytes) {
    return bytes <= sizes->offset ? 0 : round_to_even(bytes);
}

static uint64_t tag_bytes(const cogpu_new_tag *tag) {
    return tag->count * cogpu_tiff_type_bytes(tag->type);
}

static uint64_t entries_bytes(const cogpu_new_directory *directory,
                              const struct field_sizes *sizes) {
    return sizes->count + (directory->tags.count + 2ULL) * sizes->entry + sizes->offset;
}

/* A directory with its values, without the arrays of blocks. Values are in memory, so their sum
 * cannot overflow. */
static uint64_t directory_bytes(const cogpu_new_directory *directory,
                                const struct field_sizes *sizes) {
    uint64_t bytes = entries_bytes(directory, sizes);
    for (uint32_t i = 0; i < directory->tags.count; i++)
        bytes += bytes_outside_entry(sizes, tag_bytes(&directory->tags.tags[i]));
    return bytes;
}

/* Block offsets and byte counts, as tags without values. */
struct block_arrays {
    cogpu_new_tag offsets, bytes;
};

static struct block_arrays arrays_of(const cogpu_new_directory *directory, bool bigtiff) {
    bool is_tiled = directory->is_tiled;
    return (struct block_arrays){
        .offsets = {.id = is_tiled ? TAG_TILE_OFFSETS : TAG_STRIP_OFFSETS,
                    .type = bigtiff ? TYPE_LONG8 : TYPE_LONG,
                    .count = directory->blocks},
        .bytes = {.id = is_tiled ? TAG_TILE_BYTE_COUNTS : TAG_STRIP_BYTE_COUNTS,
                  .type = TYPE_LONG,
                  .count = directory->blocks},
    };
}

static cogpu_status fail_file_too_long(cogpu_error *error) {
    return cogpu_fail(error, COGPU_LIMIT_EXCEEDED,
                      "the directories of the file exceed the offsets of TIFF: write BigTIFF, or "
                      "choose larger blocks");
}

/* Advances *at by `bytes`; false beyond the last offset. */
static bool advance_offset(uint64_t *at, uint64_t bytes, uint64_t last) {
    return checked_add(*at, bytes, at) && *at <= last;
}

cogpu_status cogpu_directories_lay_out(cogpu_new_directory *directories, uint32_t count,
                                       bool bigtiff, uint64_t start, uint64_t *end,
                                       cogpu_error *error) {
    struct field_sizes sizes = field_sizes_of(bigtiff);
    uint64_t at = round_to_even(start), last = bigtiff ? INT64_MAX : UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        directories[i].at = at;
        if (directories[i].tags.count > TAGS_MAX)
            return cogpu_fail(error, COGPU_LIMIT_EXCEEDED, "a directory can have at most %d tags",
                              TAGS_MAX);
        if (!advance_offset(&at, directory_bytes(&directories[i], &sizes), last))
            return fail_file_too_long(error);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (directories[i].blocks > last / sizeof(uint64_t))
            return fail_file_too_long(error);
        struct block_arrays arrays = arrays_of(&directories[i], bigtiff);
        if (!advance_offset(&at, bytes_outside_entry(&sizes, tag_bytes(&arrays.offsets)), last) ||
            !advance_offset(&at, bytes_outside_entry(&sizes, tag_bytes(&arrays.bytes)), last))
            return fail_file_too_long(error);
    }
    *end = at;
    return COGPU_OK;
}

/* ---- bytes ---- */

/* Stores the values of a tag in little endian byte order. */
static void store_values(const cogpu_new_tag *tag, uint8_t *to) {
    bool is_pair = tag->type == TYPE_RATIONAL || tag->type == TYPE_SRATIONAL;
    size_t unit = is_pair ? 4 : cogpu_tiff_type_bytes(tag->type);
    uint64_t bytes = tag_bytes(tag);
    const uint8_t *from = tag->values;
    memcpy(to, from, (size_t)bytes);
    for (uint64_t at = 0; COGPU_HOST_BIG_ENDIAN && at < bytes; at += unit)
        for (size_t i = 0; i < unit; i++)
            to[at + i] = from[at + unit - 1 - i];
}

static void store_array(const cogpu_new_tag *tag, const uint64_t *values, uint8_t *to) {
    size_t width = cogpu_tiff_type_bytes(tag->type);
    for (uint64_t i = 0; i < tag->count; i++) {
        assert(width == 8 || values[i] <= UINT32_MAX);
        store_little(values[i], to + i * width, width);
    }
}

/* Directories while they are stored. All positions are file offsets. */
struct directory_writer {
    struct field_sizes sizes;
    bool bigtiff;
    uint64_t start;
    uint8_t *bytes;
    uint64_t entry; /* next entry of the directory */
    uint64_t value; /* its next value outside an entry */
    uint64_t array; /* next array of blocks, of all directories */
};

static uint8_t *address_of(const struct directory_writer *writer, uint64_t offset) {
    return writer->bytes + (offset - writer->start);
}

/* Stores an entry without its value. Returns the address of the value: in the entry, or at *next,
 * which advances. */
static uint8_t *store_entry(struct directory_writer *writer, const cogpu_new_tag *tag,
                            uint64_t *next) {
    const struct field_sizes *sizes = &writer->sizes;
    uint8_t *entry = address_of(writer, writer->entry), *field = entry + 4 + sizes->offset;
    uint64_t bytes_outside = bytes_outside_entry(sizes, tag_bytes(tag)), value = *next;
    store_little(tag->id, entry, 2);
    store_little(tag->type, entry + 2, 2);
    store_little(tag->count, entry + 4, sizes->offset);
    writer->entry += sizes->entry;
    if (bytes_outside == 0)
        return field;
    store_little(value, field, sizes->offset);
    *next += bytes_outside;
    return address_of(writer, value);
}

/* Stores the tags from index `first` on whose id is below `until`; returns the next index. */
static uint32_t store_tags(struct directory_writer *writer, const cogpu_tag_list *list,
                           uint32_t first, uint32_t until) {
    for (; first < list->count && list->tags[first].id < until; first++) {
        const cogpu_new_tag *tag = &list->tags[first];
        store_values(tag, store_entry(writer, tag, &writer->value));
    }
    return first;
}

static void store_directory(struct directory_writer *writer, const cogpu_new_directory *directory,
                            uint64_t next) {
    struct block_arrays arrays = arrays_of(directory, writer->bigtiff);
    const cogpu_tag_list *list = &directory->tags;
    store_little(list->count + 2ULL, address_of(writer, directory->at), writer->sizes.count);
    writer->entry = directory->at + writer->sizes.count;
    writer->value = directory->at + entries_bytes(directory, &writer->sizes);
    uint32_t done = store_tags(writer, list, 0, arrays.offsets.id);
    store_array(&arrays.offsets, directory->offsets,
                store_entry(writer, &arrays.offsets, &writer->array));
    done = store_tags(writer, list, done, arrays.bytes.id);
    store_array(&arrays.bytes, directory->bytes,
                store_entry(writer, &arrays.bytes, &writer->array));
    store_tags(writer, list, done, LAST_ID + 1);
    store_little(next, address_of(writer, writer->entry), writer->sizes.offset);
}

void cogpu_directories_write(const cogpu_new_directory *directories, uint32_t count, bool bigtiff,
                             uint64_t start, uint64_t end, uint8_t *to) {
    struct directory_writer writer = {
        .sizes = field_sizes_of(bigtiff), .bigtiff = bigtiff, .start = start, .bytes = to};
    const cogpu_new_directory *last = &directories[count - 1];
    memset(to, 0, (size_t)(end - start));
    writer.array = last->at + directory_bytes(last, &writer.sizes);
    for (uint32_t i = 0; i < count; i++)
        store_directory(&writer, &directories[i], i + 1 < count ? directories[i + 1].at : 0);
    assert(writer.array == end);
}
