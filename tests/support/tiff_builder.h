/*
 * TIFF files made in memory, classic or BigTIFF, of either byte order, valid or not: tests say
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
    size_t size, capacity;
    size_t link; /* where the offset of the next directory belongs */
    bool big_endian, bigtiff;
    build_entry entries[BUILD_TAGS_MAX];
    size_t entry_count;
} tiff_builder;

size_t build_type_bytes(uint32_t type);

/* The low `bytes` bytes of a number in the file's order. */
void build_put(const tiff_builder *file, uint8_t *to, uint64_t value, size_t bytes);

/* Bytes as they are; returns where they stand. Starts at an even offset. */
uint64_t build_data(tiff_builder *file, const void *data, size_t bytes);

void build_open(tiff_builder *file, bool big_endian, bool bigtiff);

void build_close(tiff_builder *file);

/* Any tag: `value` is `bytes` bytes in file order, whatever type and count say of them. */
void build_raw(tiff_builder *file, uint16_t tag, uint16_t type, uint64_t count, const void *value,
               size_t bytes);

/* A tag whose elements lie in memory in the machine's order, each as wide as the type. */
void build_tag(tiff_builder *file, uint16_t tag, uint16_t type, uint64_t count, const void *values);

void build_shorts(tiff_builder *file, uint16_t tag, size_t count, const uint16_t *values);

void build_short(tiff_builder *file, uint16_t tag, uint16_t value);

void build_long(tiff_builder *file, uint16_t tag, uint32_t value);

void build_doubles(tiff_builder *file, uint16_t tag, size_t count, const double *values);

/* With its closing NUL. */
void build_text(tiff_builder *file, uint16_t tag, const char *text);

/* The tags of an image of one strip; `data` NULL makes zeros. Tags may follow. */
void build_image(tiff_builder *file, uint32_t width, uint32_t height, uint16_t bands, uint16_t bits,
                 uint16_t photometric, const void *data);

int build_compare(const void *a, const void *b);

/* Writes the directory of all tags since the last one, in ascending order, and returns where it
 * stands. A chained one follows the last; another is a SubIFD that the caller links. */
uint64_t build_directory(tiff_builder *file, bool chained);

#endif
