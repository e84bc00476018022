/* Values of tags in native byte order. No function reads past the end of a value. */
#include "tiff/tiff.h"

#include "base/bytes.h"
#include "base/checked.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PIECE = 512, WARNING_BYTES_MAX = 2048 };

size_t cogpu_tiff_type_bytes(uint32_t type) {
    static const uint8_t bytes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
    return type < sizeof bytes ? bytes[type] : 0;
}

const cogpu_entry *cogpu_tiff_find(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag) {
    const cogpu_ifd *ifd = &tiff->directories[directory];
    for (uint32_t i = 0; i < ifd->entry_count; i++)
        if (ifd->entries[i].tag == tag)
            return &ifd->entries[i];
    return NULL;
}

bool cogpu_tiff_is_inside(const cogpu_tiff *tiff, const cogpu_entry *entry) {
    uint64_t file_bytes = cogpu_io_bytes(tiff->io);
    return entry->is_inline ||
           (entry->value_offset <= file_bytes && entry->bytes <= file_bytes - entry->value_offset);
}

cogpu_byte_range cogpu_tiff_span(const cogpu_entry *entry, uint64_t first, uint64_t count) {
    uint64_t width = cogpu_tiff_type_bytes(entry->type);
    uint64_t left = first < entry->count ? entry->count - first : 0, offset;
    count = count < left ? count : left;
    /* count * width of a valid entry does not overflow: it is `bytes`. */
    if (entry->is_inline || count == 0 || entry->bytes / width != entry->count ||
        !checked_add(entry->value_offset, first * width, &offset))
        return (cogpu_byte_range){0, 0};
    return (cogpu_byte_range){offset, count * width};
}

static void swap_units(uint8_t *data, uint64_t bytes, size_t unit) {
    for (uint64_t at = 0; at + unit <= bytes; at += unit)
        for (size_t i = 0; i < unit / 2; i++) {
            uint8_t keep = data[at + i];
            data[at + i] = data[at + unit - 1 - i];
            data[at + unit - 1 - i] = keep;
        }
}

cogpu_status cogpu_tiff_raw(const cogpu_tiff *tiff, const cogpu_entry *entry, uint64_t first,
                            uint64_t count, void *to, cogpu_error *error) {
    size_t width = cogpu_tiff_type_bytes(entry->type);
    if (first > entry->count || count > entry->count - first)
        return cogpu_fail(error, COGPU_CORRUPT, "tag %s has %llu values, %llu are needed",
                          cogpu_tag_name(entry->tag), (unsigned long long)entry->count,
                          (unsigned long long)(first + count));
    uint64_t bytes, skip;
    if (!checked_mul(count, width, &bytes) || !checked_mul(first, width, &skip) || bytes > SIZE_MAX)
        return cogpu_fail(error, COGPU_CORRUPT, "tag %s has an impossible count of %llu",
                          cogpu_tag_name(entry->tag), (unsigned long long)entry->count);
    if (bytes > tiff->limits.tag_bytes)
        return cogpu_fail(error, COGPU_LIMIT_EXCEEDED,
                          "tag %s needs %llu bytes, the limit is %llu; raise `tag_bytes` to go on",
                          cogpu_tag_name(entry->tag), (unsigned long long)bytes,
                          (unsigned long long)tiff->limits.tag_bytes);
    if (bytes == 0)
        return COGPU_OK; /* `to` may be NULL then */
    if (entry->is_inline) {
        memcpy(to, entry->inline_value + skip, (size_t)bytes);
    } else {
        uint64_t offset;
        if (!checked_add(entry->value_offset, skip, &offset))
            offset = UINT64_MAX;
        TRY(cogpu_io_peek(tiff->io, offset, (size_t)bytes, to, error));
    }
    bool is_pair = entry->type == TYPE_RATIONAL || entry->type == TYPE_SRATIONAL;
    if (tiff->big_endian != COGPU_HOST_BIG_ENDIAN && width > 1)
        swap_units(to, bytes, is_pair ? 4 : width);
    return COGPU_OK;
}

/* One integer; false if the type is not an integer or the value is negative. */
static bool integer_at(const uint8_t *at, uint16_t type, uint64_t *value) {
    int64_t number = 0;
    switch (type) {
    case TYPE_BYTE:
    case TYPE_UNDEFINED:
        *value = at[0];
        return true;
    case TYPE_SHORT:
        *value = load_u16(at, COGPU_HOST_BIG_ENDIAN);
        return true;
    case TYPE_LONG:
    case TYPE_IFD:
        *value = load_u32(at, COGPU_HOST_BIG_ENDIAN);
        return true;
    case TYPE_LONG8:
    case TYPE_IFD8:
        *value = load_u64(at, COGPU_HOST_BIG_ENDIAN);
        return true;
    case TYPE_SBYTE:
        number = (int8_t)at[0];
        break;
    case TYPE_SSHORT:
        number = (int16_t)load_u16(at, COGPU_HOST_BIG_ENDIAN);
        break;
    case TYPE_SLONG:
        number = (int32_t)load_u32(at, COGPU_HOST_BIG_ENDIAN);
        break;
    case TYPE_SLONG8:
        number = (int64_t)load_u64(at, COGPU_HOST_BIG_ENDIAN);
        break;
    default:
        return false;
    }
    *value = (uint64_t)number;
    return number >= 0;
}

static double double_at(const uint8_t *at, uint16_t type) {
    uint64_t whole = 0;
    float single;
    double number;
    switch (type) {
    case TYPE_FLOAT:
        memcpy(&single, at, sizeof single);
        return single;
    case TYPE_DOUBLE:
        memcpy(&number, at, sizeof number);
        return number;
    case TYPE_RATIONAL: {
        uint32_t below = load_u32(at + 4, COGPU_HOST_BIG_ENDIAN);
        return below ? load_u32(at, COGPU_HOST_BIG_ENDIAN) / (double)below : 0;
    }
    case TYPE_SRATIONAL: {
        int32_t below = (int32_t)load_u32(at + 4, COGPU_HOST_BIG_ENDIAN);
        return below ? (int32_t)load_u32(at, COGPU_HOST_BIG_ENDIAN) / (double)below : 0;
    }
    default:
        return integer_at(at, type, &whole) ? (double)whole : (double)(int64_t)whole;
    }
}

cogpu_status cogpu_tiff_u64s(const cogpu_tiff *tiff, const cogpu_entry *entry, uint64_t first,
                             uint64_t count, uint64_t *to, cogpu_error *error) {
    uint8_t piece[PIECE * 8];
    size_t width = cogpu_tiff_type_bytes(entry->type);
    for (uint64_t done = 0; done < count;) {
        uint64_t some = count - done < PIECE ? count - done : PIECE;
        TRY(cogpu_tiff_raw(tiff, entry, first + done, some, piece, error));
        for (uint64_t i = 0; i < some; i++)
            if (!integer_at(piece + i * width, entry->type, &to[done + i]))
                return cogpu_fail(error, COGPU_CORRUPT,
                                  "tag %s (type %u) must hold non-negative integers",
                                  cogpu_tag_name(entry->tag), entry->type);
        done += some;
    }
    return COGPU_OK;
}

cogpu_status cogpu_tiff_doubles(const cogpu_tiff *tiff, const cogpu_entry *entry, uint64_t first,
                                uint64_t count, double *to, cogpu_error *error) {
    uint8_t piece[PIECE * 8];
    size_t width = cogpu_tiff_type_bytes(entry->type);
    if (entry->type == TYPE_ASCII || entry->type == TYPE_UNDEFINED)
        return cogpu_fail(error, COGPU_CORRUPT, "tag %s must hold numbers",
                          cogpu_tag_name(entry->tag));
    for (uint64_t done = 0; done < count;) {
        uint64_t some = count - done < PIECE ? count - done : PIECE;
        TRY(cogpu_tiff_raw(tiff, entry, first + done, some, piece, error));
        for (uint64_t i = 0; i < some; i++)
            to[done + i] = double_at(piece + i * width, entry->type);
        done += some;
    }
    return COGPU_OK;
}

static size_t leading_zeros(const uint8_t *bytes, size_t count) {
    size_t at = 0;
    static const uint8_t none[64];
    while (at + sizeof none <= count && memcmp(bytes + at, none, sizeof none) == 0)
        at += sizeof none;
    while (at < count && bytes[at] == 0)
        at++;
    return at;
}

cogpu_status cogpu_tiff_zeros(const cogpu_tiff *tiff, const cogpu_entry *entry, uint64_t first,
                              uint64_t count, uint8_t *buffer, size_t buffer_bytes, uint64_t *zeros,
                              cogpu_error *error) {
    size_t width = cogpu_tiff_type_bytes(entry->type);
    cogpu_byte_range span = cogpu_tiff_span(entry, first, count);
    *zeros = 0;
    if (span.bytes == 0 || !cogpu_tiff_is_inside(tiff, entry))
        return COGPU_OK; /* inside the directory, or not in the file: for others to read or refuse
                          */
    uint64_t data = cogpu_io_next_data(tiff->io, span.offset), hole = data - span.offset;
    hole = hole < span.bytes ? hole : span.bytes;
    size_t some = span.bytes - hole < buffer_bytes ? (size_t)(span.bytes - hole) : buffer_bytes;
    if (some > 0)
        TRY(cogpu_io_read(tiff->io, span.offset + hole, some, buffer, error));
    *zeros = (hole + leading_zeros(buffer, some)) / width;
    return COGPU_OK;
}

cogpu_status cogpu_tiff_u64(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                            uint64_t fallback, uint64_t *value, cogpu_error *error) {
    const cogpu_entry *entry = cogpu_tiff_find(tiff, directory, tag);
    *value = fallback;
    if (!entry)
        return COGPU_OK;
    if (entry->count != 1)
        return cogpu_fail(error, COGPU_CORRUPT, "tag %s has %llu values, expected one",
                          cogpu_tag_name(tag), (unsigned long long)entry->count);
    return cogpu_tiff_u64s(tiff, entry, 0, 1, value, error);
}

cogpu_status cogpu_tiff_text(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                             cogpu_arena *arena, const char **text, cogpu_error *error) {
    const cogpu_entry *entry = cogpu_tiff_find(tiff, directory, tag);
    *text = NULL;
    if (!entry)
        return COGPU_OK;
    if (cogpu_tiff_type_bytes(entry->type) != 1)
        return cogpu_fail(error, COGPU_CORRUPT, "tag %s must hold text", cogpu_tag_name(tag));
    if (!cogpu_tiff_is_inside(tiff, entry))
        return cogpu_fail(error, COGPU_CORRUPT, "tag %s is beyond the end of the file",
                          cogpu_tag_name(tag));
    char *buffer = NULL;
    TRY(cogpu_arena_allocate(arena, entry->count + 1, 1, &buffer, error));
    TRY(cogpu_tiff_raw(tiff, entry, 0, entry->count, buffer, error));
    *text = buffer;
    return COGPU_OK;
}

void cogpu_warn(cogpu_arena *arena, const char **warning, const char *format, ...) {
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    size_t before = *warning ? strlen(*warning) : 0, added = strlen(line);
    char *text = NULL;
    /* A hostile file can cause any number of warnings: keep a few. */
    if (before > WARNING_BYTES_MAX ||
        cogpu_arena_allocate(arena, before + added + 2, 1, &text, NULL) != COGPU_OK)
        return;
    if (before) {
        memcpy(text, *warning, before);
        text[before++] = '\n';
    }
    memcpy(text + before, line, added);
    *warning = text;
}
