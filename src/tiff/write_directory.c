/*
 * Takes lists of tags and the places of blocks, hands on directories as bytes.
 *
 * A list is kept in the order of its tags' numbers, as TIFF wants it. Where everything stands
 * follows from counts alone, so it is computed twice, before blocks are written and after, and
 * nothing has to be kept in between but the places of the directories.
 */
#include "tiff/write.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "tiff/room.h"

#include <assert.h>
#include <string.h>

/* Classic TIFF counts the tags of a directory by 16 bits; two are ours. */
enum { FIRST_ROOM = 16, TAGS_MAX = UINT16_MAX - 2, LAST_ID = UINT16_MAX };

/* Bytes of a directory's fields. */
struct form {
    size_t count, entry, offset;
};

static struct form form_of(bool bigtiff) {
    return bigtiff ? (struct form){.count = 8, .entry = 20, .offset = 8}
                   : (struct form){.count = 2, .entry = 12, .offset = 4};
}

/* ---- lists of tags ---- */

static cogpu_status list_grow(cogpu_tag_list *list, cogpu_arena *arena, cogpu_error *error) {
    if (list->count < list->room)
        return COGPU_OK;
    uint32_t room = list->room ? list->room * 2 : FIRST_ROOM;
    cogpu_new_tag *grown = NULL;
    TRY(cogpu_arena_take(arena, room, sizeof *grown, &grown, error));
    if (list->count)
        memcpy(grown, list->tags, list->count * sizeof *grown);
    list->tags = grown;
    list->room = room;
    return COGPU_OK;
}

cogpu_status cogpu_tag_add(cogpu_tag_list *list, cogpu_arena *arena, uint16_t id, uint16_t type,
                           uint64_t count, const void *values, cogpu_error *error) {
    uint64_t bytes;
    size_t width = cogpu_tiff_type_bytes(type);
    if (width == 0 || count == 0 || !checked_mul(count, width, &bytes) || bytes > SIZE_MAX)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "tag %u cannot have %llu values of type %u; see TIFF's types", id,
                          (unsigned long long)count, type);
    if (cogpu_tag_list_has(list, id))
        return cogpu_fail(error, COGPU_ARGUMENT, "tag %u (%s) is given twice; leave one out", id,
                          cogpu_tag_name(id));
    void *copy = NULL;
    TRY(list_grow(list, arena, error));
    TRY(cogpu_arena_take(arena, bytes, 1, &copy, error));
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

/* ---- where everything stands ---- */

static uint64_t even(uint64_t offset) {
    return offset + offset % 2;
}

/* Bytes of a value outside its entry, rounded so that what follows is even; 0 where it is inside.
 */
static uint64_t outside(const struct form *form, uint64_t bytes) {
    return bytes <= form->offset ? 0 : even(bytes);
}

static uint64_t tag_bytes(const cogpu_new_tag *tag) {
    return tag->count * cogpu_tiff_type_bytes(tag->type);
}

static uint64_t entries_bytes(const cogpu_new_directory *directory, const struct form *form) {
    return form->count + (directory->tags.count + 2ULL) * form->entry + form->offset;
}

/* A directory with its values, without its arrays. The values are in memory, so that their sum
 * fits. */
static uint64_t directory_bytes(const cogpu_new_directory *directory, const struct form *form) {
    uint64_t bytes = entries_bytes(directory, form);
    for (uint32_t i = 0; i < directory->tags.count; i++)
        bytes += outside(form, tag_bytes(&directory->tags.tags[i]));
    return bytes;
}

/* The arrays of offsets and byte counts, as tags without values. */
struct arrays {
    cogpu_new_tag offsets, bytes;
};

static struct arrays arrays_of(const cogpu_new_directory *directory, bool bigtiff) {
    bool is_tiled = directory->is_tiled;
    return (struct arrays){
        .offsets = {.id = is_tiled ? TAG_TILE_OFFSETS : TAG_STRIP_OFFSETS,
                    .type = bigtiff ? TYPE_LONG8 : TYPE_LONG,
                    .count = directory->blocks},
        .bytes = {.id = is_tiled ? TAG_TILE_BYTE_COUNTS : TAG_STRIP_BYTE_COUNTS,
                  .type = TYPE_LONG,
                  .count = directory->blocks},
    };
}

static cogpu_status too_long(cogpu_error *error) {
    return cogpu_fail(error, COGPU_LIMIT,
                      "the file's directories would end beyond what TIFF's offsets can reach; "
                      "write BigTIFF, or larger blocks");
}

/* Moves *at on by `bytes`; false where that is past the last offset. */
static bool move_on(uint64_t *at, uint64_t bytes, uint64_t last) {
    return checked_add(*at, bytes, at) && *at <= last;
}

cogpu_status cogpu_directories_lay_out(cogpu_new_directory *directories, uint32_t count,
                                       bool bigtiff, uint64_t start, uint64_t *end,
                                       cogpu_error *error) {
    struct form form = form_of(bigtiff);
    uint64_t at = even(start), last = bigtiff ? INT64_MAX : UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        directories[i].at = at;
        if (directories[i].tags.count > TAGS_MAX)
            return cogpu_fail(error, COGPU_LIMIT, "a directory can have %d tags and no more",
                              TAGS_MAX);
        if (!move_on(&at, directory_bytes(&directories[i], &form), last))
            return too_long(error);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (directories[i].blocks > last / sizeof(uint64_t))
            return too_long(error);
        struct arrays arrays = arrays_of(&directories[i], bigtiff);
        if (!move_on(&at, outside(&form, tag_bytes(&arrays.offsets)), last) ||
            !move_on(&at, outside(&form, tag_bytes(&arrays.bytes)), last))
            return too_long(error);
    }
    *end = at;
    return COGPU_OK;
}

/* ---- bytes ---- */

/* A tag's values from the machine's order into the file's. */
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

/* The piece in the making, with three places in it, as offsets of the file. */
struct piece {
    struct form form;
    bool bigtiff;
    uint64_t start;
    uint8_t *bytes;
    uint64_t entry; /* the next one of the directory in hand, */
    uint64_t value; /* its next value outside, */
    uint64_t array; /* and the next array of all */
};

static uint8_t *place_of(const struct piece *piece, uint64_t offset) {
    return piece->bytes + (offset - piece->start);
}

/* An entry up to its value, which is inside, or at *next, which moves on. Returns the value's
 * place. */
static uint8_t *store_entry(struct piece *piece, const cogpu_new_tag *tag, uint64_t *next) {
    const struct form *form = &piece->form;
    uint8_t *entry = place_of(piece, piece->entry), *field = entry + 4 + form->offset;
    uint64_t bytes_outside = outside(form, tag_bytes(tag)), value = *next;
    store_little(tag->id, entry, 2);
    store_little(tag->type, entry + 2, 2);
    store_little(tag->count, entry + 4, form->offset);
    piece->entry += form->entry;
    if (bytes_outside == 0)
        return field;
    store_little(value, field, form->offset);
    *next += bytes_outside;
    return place_of(piece, value);
}

/* The tags from `first` on with numbers below `until`; returns the first that is left. */
static uint32_t store_tags(struct piece *piece, const cogpu_tag_list *list, uint32_t first,
                           uint32_t until) {
    for (; first < list->count && list->tags[first].id < until; first++) {
        const cogpu_new_tag *tag = &list->tags[first];
        store_values(tag, store_entry(piece, tag, &piece->value));
    }
    return first;
}

static void store_directory(struct piece *piece, const cogpu_new_directory *directory,
                            uint64_t next) {
    struct arrays arrays = arrays_of(directory, piece->bigtiff);
    const cogpu_tag_list *list = &directory->tags;
    store_little(list->count + 2ULL, place_of(piece, directory->at), piece->form.count);
    piece->entry = directory->at + piece->form.count;
    piece->value = directory->at + entries_bytes(directory, &piece->form);
    uint32_t done = store_tags(piece, list, 0, arrays.offsets.id);
    store_array(&arrays.offsets, directory->offsets,
                store_entry(piece, &arrays.offsets, &piece->array));
    done = store_tags(piece, list, done, arrays.bytes.id);
    store_array(&arrays.bytes, directory->bytes, store_entry(piece, &arrays.bytes, &piece->array));
    store_tags(piece, list, done, LAST_ID + 1);
    store_little(next, place_of(piece, piece->entry), piece->form.offset);
}

void cogpu_directories_write(const cogpu_new_directory *directories, uint32_t count, bool bigtiff,
                             uint64_t start, uint64_t end, uint8_t *to) {
    struct piece piece = {
        .form = form_of(bigtiff), .bigtiff = bigtiff, .start = start, .bytes = to};
    const cogpu_new_directory *last = &directories[count - 1];
    memset(to, 0, (size_t)(end - start));
    piece.array = last->at + directory_bytes(last, &piece.form);
    for (uint32_t i = 0; i < count; i++)
        store_directory(&piece, &directories[i], i + 1 < count ? directories[i + 1].at : 0);
    assert(piece.array == end);
}
