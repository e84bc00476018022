/*
 * Small images with known pixels in any layout and in codecs that need no library to write, on top
 * of tiff_builder.h: a test says what the file is like and gets it open.
 */
#ifndef COGPU_TESTS_FIXTURE_H
#define COGPU_TESTS_FIXTURE_H

#include "cogpu.h"
#include "support/tiff_builder.h"

enum { FIXTURE_BLOCKS_MAX = 4096 };

/* Zero means: strips, chunky, uncompressed, one band of bytes. */
typedef struct image_kind {
    uint32_t width, height, bands;
    uint32_t bits; /* 8 or 16 */
    uint32_t tile_width, tile_height;
    uint32_t rows_per_strip; /* 0: one strip */
    bool planar;
    uint16_t compression; /* 1 none, 5 LZW, 8 deflate, 32773 PackBits, 50000 zstd */
    uint16_t subfile_type;
    bool apart;             /* blocks lie so far from each other that each takes a read */
    uint32_t seed;          /* other pixels for another number */
    const uint64_t *sparse; /* block that is not written, ended by UINT64_MAX; or NULL */
} image_kind;

uint32_t kind_bands(const image_kind *kind);

size_t kind_size(const image_kind *kind);

/* The sample of a band (0-based) at a place. */
uint16_t kind_sample(const image_kind *kind, uint32_t band, uint32_t x, uint32_t y);

/* Puts bytes into a file, which has to succeed. */
void write_test_file(const char *path, const void *bytes, size_t size);

/* ---- encoders that do not compress, which their formats allow ---- */

typedef struct encoded {
    uint8_t *bytes;
    size_t size;
} encoded;

size_t encode_packbits(const uint8_t *from, size_t bytes, uint8_t *to);

/* Codes of nine bits, the table cleared before they would become wider. */
size_t encode_lzw(const uint8_t *from, size_t bytes, uint8_t *to);

size_t encode_deflate(const uint8_t *from, size_t bytes, uint8_t *to);

/* Raw blocks in a frame with a window of 8 MiB. */
size_t encode_zstd(const uint8_t *from, size_t bytes, uint8_t *to);

encoded encode_block(uint16_t compression, const uint8_t *from, size_t bytes);

/* ---- images ---- */

bool kind_is_sparse(const image_kind *kind, uint64_t block);

/* A block's pixels in file order; pixels outside of the image is 0xEE. */
uint8_t *kind_block(const tiff_builder *file, const image_kind *kind, uint32_t left, uint32_t top,
                    uint32_t width, uint32_t height, uint32_t plane);

/* The blocks and the tags of an image; more tags may follow, then build_directory. */
void build_kind(tiff_builder *file, const image_kind *kind);

/* A file of one image. */
void build_one(tiff_builder *file, const image_kind *kind);

/* Whether packed pixels of a window (all bands, or those of the list) are the image's. */
bool pixels_match(const image_kind *kind, const void *pixels, uint32_t x, uint32_t y,
                  uint32_t width, uint32_t height, const uint32_t *bands, uint32_t band_count);

/* A packed raster for a window, its memory of the exact size, filled with 0xA5. */
cogpu_raster raster_of(const image_kind *kind, uint32_t width, uint32_t height, uint32_t bands);

#endif
