/*
 * TIFF files made in memory, classic or BigTIFF, of either byte order, sound or not: tests say
 * which tags a directory has and get bytes.
 *
 *     tiff_builder file;
 *     build_open(&file, false, false);
 *     build_image(&file, 4, 3, 1, 8, 1, NULL);
 *     build_text(&file, 42113, "-9999");
 *     build_directory(&file, true);
 *     ... file.bytes, file.size ...
 *     build_close(&file);
 *
 * Values are appended as tags are added; a directory is written by build_directory and the next
 * tags belong to the next one.
 */
#ifndef COGPU_TESTS_TIFF_BUILDER_H
#define COGPU_TESTS_TIFF_BUILDER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BUILD_TAGS_MAX = 64 };
enum {
    BUILD_BYTE = 1,
    BUILD_ASCII,
    BUILD_SHORT,
    BUILD_LONG,
    BUILD_RATIONAL,
    BUILD_DOUBLE = 12,
    BUILD_LONG8 = 16
};

typedef struct build_entry {
    uint16_t tag, type;
    uint64_t count;
    uint8_t value[8]; /* inline, or the offset, in file order */
} build_entry;

typedef struct tiff_builder {
    uint8_t *bytes;
    size_t size, room;
    size_t link; /* where the offset of the next directory belongs */
    bool big_endian, bigtiff;
    build_entry entries[BUILD_TAGS_MAX];
    size_t entry_count;
} tiff_builder;

static inline size_t build_type_bytes(uint32_t type) {
    static const uint8_t bytes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
    return type < sizeof bytes ? bytes[type] : 0;
}

/* The low `bytes` bytes of a number in the file's order. */
static inline void build_put(const tiff_builder *file, uint8_t *to, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        to[file->big_endian ? bytes - 1 - i : i] = (uint8_t)(value >> (8 * i));
}

/* Bytes as they are; returns where they stand. Starts at an even offset. */
static inline uint64_t build_data(tiff_builder *file, const void *data, size_t bytes) {
    size_t start = file->size + (file->size & 1), need = start + bytes;
    if (need > file->room) {
        file->room = need * 2;
        file->bytes = realloc(file->bytes, file->room);
        if (!file->bytes)
            abort();
    }
    if (start > file->size)
        file->bytes[file->size] = 0;
    if (bytes && data)
        memcpy(file->bytes + start, data, bytes);
    else if (bytes)
        memset(file->bytes + start, 0, bytes);
    file->size = need;
    return start;
}

static inline void build_open(tiff_builder *file, bool big_endian, bool bigtiff) {
    uint8_t header[16] = {0};
    *file = (tiff_builder){.big_endian = big_endian, .bigtiff = bigtiff};
    memset(header, big_endian ? 'M' : 'I', 2);
    build_put(file, header + 2, bigtiff ? 43 : 42, 2);
    if (bigtiff)
        build_put(file, header + 4, 8, 2);
    build_data(file, header, bigtiff ? 16 : 8);
    file->link = bigtiff ? 8 : 4;
}

static inline void build_close(tiff_builder *file) {
    free(file->bytes);
    *file = (tiff_builder){0};
}

/* Any tag: `value` is `bytes` bytes in file order, whatever type and count say of them. */
static inline void build_raw(tiff_builder *file, uint16_t tag, uint16_t type, uint64_t count,
                             const void *value, size_t bytes) {
    size_t inline_bytes = file->bigtiff ? 8 : 4;
    if (file->entry_count == BUILD_TAGS_MAX)
        abort();
    build_entry *entry = &file->entries[file->entry_count++];
    *entry = (build_entry){.tag = tag, .type = type, .count = count};
    if (bytes > inline_bytes)
        build_put(file, entry->value, build_data(file, value, bytes), inline_bytes);
    else if (bytes)
        memcpy(entry->value, value, bytes);
}

/* A tag whose elements lie in memory in the machine's order, each as wide as the type. */
static inline void build_tag(tiff_builder *file, uint16_t tag, uint16_t type, uint64_t count,
                             const void *values) {
    size_t width = build_type_bytes(type), part = type == BUILD_RATIONAL ? 4 : width;
    size_t bytes = (size_t)count * width;
    uint8_t *swapped = malloc(bytes + 1);
    if (!swapped)
        abort();
    for (size_t i = 0; i < bytes; i += part) {
        uint64_t number = 0;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        memcpy((uint8_t *)&number + 8 - part, (const uint8_t *)values + i, part);
#else
        memcpy(&number, (const uint8_t *)values + i, part);
#endif
        build_put(file, swapped + i, number, part);
    }
    build_raw(file, tag, type, count, swapped, bytes);
    free(swapped);
}

static inline void build_shorts(tiff_builder *file, uint16_t tag, size_t count,
                                const uint16_t *values) {
    build_tag(file, tag, BUILD_SHORT, count, values);
}

static inline void build_short(tiff_builder *file, uint16_t tag, uint16_t value) {
    build_tag(file, tag, BUILD_SHORT, 1, &value);
}

static inline void build_long(tiff_builder *file, uint16_t tag, uint32_t value) {
    build_tag(file, tag, BUILD_LONG, 1, &value);
}

static inline void build_doubles(tiff_builder *file, uint16_t tag, size_t count,
                                 const double *values) {
    build_tag(file, tag, BUILD_DOUBLE, count, values);
}

/* With its closing NUL. */
static inline void build_text(tiff_builder *file, uint16_t tag, const char *text) {
    build_tag(file, tag, BUILD_ASCII, strlen(text) + 1, text);
}

/* The tags of an image of one strip; `data` NULL makes zeros. Tags may follow. */
static inline void build_image(tiff_builder *file, uint32_t width, uint32_t height, uint16_t bands,
                               uint16_t bits, uint16_t photometric, const void *data) {
    size_t bytes = ((size_t)width * bands * bits + 7) / 8 * height;
    uint32_t offset = (uint32_t)build_data(file, data, bytes);
    build_long(file, 256, width);
    build_long(file, 257, height);
    build_short(file, 258, bits);
    build_short(file, 259, 1);
    build_short(file, 262, photometric);
    build_long(file, 273, offset);
    build_short(file, 277, bands);
    build_long(file, 278, height);
    build_long(file, 279, (uint32_t)bytes);
}

static inline int build_compare(const void *a, const void *b) {
    return (int)((const build_entry *)a)->tag - (int)((const build_entry *)b)->tag;
}

/* Writes the directory of all tags since the last one, in ascending order, and returns where it
 * stands. A chained one follows the last; another is a SubIFD that the caller links. */
static inline uint64_t build_directory(tiff_builder *file, bool chained) {
    size_t word = file->bigtiff ? 8 : 4, head = file->bigtiff ? 8 : 2,
           step = file->bigtiff ? 20 : 12;
    qsort(file->entries, file->entry_count, sizeof *file->entries, build_compare);
    uint64_t start = build_data(file, NULL, head + step * file->entry_count + word);
    uint8_t *to = file->bytes + start;
    build_put(file, to, file->entry_count, head);
    to += head;
    for (size_t i = 0; i < file->entry_count; i++, to += step) {
        const build_entry *entry = &file->entries[i];
        build_put(file, to, entry->tag, 2);
        build_put(file, to + 2, entry->type, 2);
        build_put(file, to + 4, entry->count, word);
        memcpy(to + 4 + word, entry->value, word);
    }
    file->entry_count = 0;
    if (chained) {
        build_put(file, file->bytes + file->link, start, word);
        file->link = (size_t)(to - file->bytes);
    }
    return start;
}

#endif
