#include "support/fixture.h"

#include "support/test.h"

#include <stdio.h>

uint32_t kind_bands(const image_kind *kind) {
    return kind->bands ? kind->bands : 1;
}

size_t kind_size(const image_kind *kind) {
    return kind->bits == 16 ? 2 : 1;
}

uint16_t kind_sample(const image_kind *kind, uint32_t band, uint32_t x, uint32_t y) {
    uint32_t value = kind->seed + x * 7 + y * 131 + band * 1009;
    return (uint16_t)(kind->bits == 16 ? value : value & 255);
}

void write_test_file(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
}

size_t encode_packbits(const uint8_t *from, size_t bytes, uint8_t *to) {
    size_t size = 0;
    for (size_t at = 0; at < bytes;) {
        size_t some = bytes - at < 128 ? bytes - at : 128;
        to[size++] = (uint8_t)(some - 1);
        memcpy(to + size, from + at, some);
        size += some;
        at += some;
    }
    return size;
}

size_t encode_lzw(const uint8_t *from, size_t bytes, uint8_t *to) {
    enum { CLEAR = 256, END = 257, WIDTH = 9, CODES = 200 };
    size_t bit = 0;
    memset(to, 0, bytes * 2 + 16);
    for (size_t at = 0, since = 0; at <= bytes;) {
        unsigned code = since == 0 ? CLEAR : at < bytes ? from[at] : END;
        at += since != 0;
        since = since == CODES ? 0 : since + 1;
        for (int k = WIDTH - 1; k >= 0; k--, bit++)
            to[bit / 8] = (uint8_t)(to[bit / 8] | (code >> k & 1) << (7 - bit % 8));
    }
    return (bit + 7) / 8;
}

size_t encode_deflate(const uint8_t *from, size_t bytes, uint8_t *to) {
    uint32_t a = 1, b = 0;
    size_t size = 0;
    to[size++] = 0x78;
    to[size++] = 0x01;
    for (size_t at = 0, some; at < bytes || at == 0; at += some) {
        some = bytes - at < 60000 ? bytes - at : 60000;
        to[size++] = at + some == bytes;
        to[size++] = (uint8_t)some;
        to[size++] = (uint8_t)(some >> 8);
        to[size++] = (uint8_t)~some;
        to[size++] = (uint8_t)(~some >> 8);
        memcpy(to + size, from + at, some);
        size += some;
    }
    for (size_t i = 0; i < bytes; i++) {
        a = (a + from[i]) % 65521;
        b = (b + a) % 65521;
    }
    for (int k = 3; k >= 0; k--)
        to[size++] = (uint8_t)((b << 16 | a) >> (8 * k));
    return size;
}

size_t encode_zstd(const uint8_t *from, size_t bytes, uint8_t *to) {
    static const uint8_t frame[] = {0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x68};
    size_t size = sizeof frame;
    memcpy(to, frame, sizeof frame);
    for (size_t at = 0, some; at < bytes || at == 0; at += some) {
        some = bytes - at < 65536 ? bytes - at : 65536;
        uint32_t header = (uint32_t)(some << 3) | (at + some == bytes);
        for (int k = 0; k < 3; k++)
            to[size++] = (uint8_t)(header >> (8 * k));
        memcpy(to + size, from + at, some);
        size += some;
    }
    return size;
}

encoded encode_block(uint16_t compression, const uint8_t *from, size_t bytes) {
    encoded result = {.bytes = malloc(bytes * 2 + 64)};
    if (!result.bytes)
        abort();
    switch (compression) {
    case 5:
        result.size = encode_lzw(from, bytes, result.bytes);
        break;
    case 8:
        result.size = encode_deflate(from, bytes, result.bytes);
        break;
    case 32773:
        result.size = encode_packbits(from, bytes, result.bytes);
        break;
    case 50000:
        result.size = encode_zstd(from, bytes, result.bytes);
        break;
    default:
        memcpy(result.bytes, from, bytes);
        result.size = bytes;
    }
    return result;
}

bool kind_is_sparse(const image_kind *kind, uint64_t block) {
    for (const uint64_t *at = kind->sparse; at && *at != UINT64_MAX; at++)
        if (*at == block)
            return true;
    return false;
}

uint8_t *kind_block(const tiff_builder *file, const image_kind *kind, uint32_t left, uint32_t top,
                    uint32_t width, uint32_t height, uint32_t plane) {
    size_t size = kind_size(kind);
    uint32_t samples = kind->planar ? 1 : kind_bands(kind);
    uint8_t *block = malloc((size_t)width * height * samples * size), *to = block;
    if (!block)
        abort();
    for (uint32_t y = top; y < top + height; y++)
        for (uint32_t x = left; x < left + width; x++)
            for (uint32_t s = 0; s < samples; s++, to += size)
                build_put(file, to,
                          x < kind->width && y < kind->height
                              ? kind_sample(kind, kind->planar ? plane : s, x, y)
                              : 0xEEEE,
                          size);
    return block;
}

void build_kind(tiff_builder *file, const image_kind *kind) {
    static uint64_t offsets[FIXTURE_BLOCKS_MAX], counts[FIXTURE_BLOCKS_MAX];
    bool tiled = kind->tile_width != 0;
    uint32_t rows = kind->rows_per_strip ? kind->rows_per_strip : kind->height;
    uint32_t width = tiled ? kind->tile_width : kind->width;
    uint32_t height = tiled ? kind->tile_height : rows,
             planes = kind->planar ? kind_bands(kind) : 1;
    size_t count = 0;
    for (uint32_t plane = 0; plane < planes; plane++)
        for (uint32_t top = 0; top < kind->height; top += height)
            for (uint32_t left = 0; left < kind->width; left += width, count++) {
                uint32_t shown =
                    !tiled && kind->height - top < height ? kind->height - top : height;
                uint8_t *block = kind_block(file, kind, left, top, width, shown, plane);
                size_t bytes =
                    (size_t)width * shown * kind_size(kind) * (kind->planar ? 1 : kind_bands(kind));
                encoded stored = encode_block(kind->compression, block, bytes);
                bool sparse = kind_is_sparse(kind, count);
                if (count == FIXTURE_BLOCKS_MAX)
                    abort();
                if (kind->apart)
                    build_data(file, NULL, 25000);
                offsets[count] = sparse ? 0 : build_data(file, stored.bytes, stored.size);
                counts[count] = sparse ? 0 : stored.size;
                free(stored.bytes);
                free(block);
            }
    uint16_t *bits = malloc(kind_bands(kind) * sizeof *bits);
    uint32_t *narrow = calloc(count ? count : 1, sizeof *narrow);
    if (!bits || !narrow)
        abort();
    for (uint32_t i = 0; i < kind_bands(kind); i++)
        bits[i] = kind->bits == 16 ? 16 : 8;
    if (kind->subfile_type)
        build_long(file, 254, kind->subfile_type);
    build_long(file, 256, kind->width);
    build_long(file, 257, kind->height);
    build_shorts(file, 258, kind_bands(kind), bits);
    build_short(file, 259, kind->compression ? kind->compression : 1);
    build_short(file, 262, 1);
    build_short(file, 277, (uint16_t)kind_bands(kind));
    build_short(file, 284, kind->planar ? 2 : 1);
    if (tiled) {
        build_long(file, 322, kind->tile_width);
        build_long(file, 323, kind->tile_height);
    } else {
        build_long(file, 278, rows);
    }
    if (file->bigtiff) {
        build_tag(file, tiled ? 324 : 273, BUILD_LONG8, count, offsets);
        build_tag(file, tiled ? 325 : 279, BUILD_LONG8, count, counts);
    } else {
        for (size_t i = 0; i < count; i++)
            narrow[i] = (uint32_t)offsets[i];
        build_tag(file, tiled ? 324 : 273, BUILD_LONG, count, narrow);
        for (size_t i = 0; i < count; i++)
            narrow[i] = (uint32_t)counts[i];
        build_tag(file, tiled ? 325 : 279, BUILD_LONG, count, narrow);
    }
    free(bits);
    free(narrow);
}

void build_one(tiff_builder *file, const image_kind *kind) {
    build_open(file, false, false);
    build_kind(file, kind);
    build_directory(file, true);
}

bool pixels_match(const image_kind *kind, const void *pixels, uint32_t x, uint32_t y,
                  uint32_t width, uint32_t height, const uint32_t *bands, uint32_t band_count) {
    const uint8_t *at = pixels;
    uint32_t count = bands ? band_count : kind_bands(kind);
    for (uint32_t b = 0; b < count; b++)
        for (uint32_t row = y; row < y + height; row++)
            for (uint32_t column = x; column < x + width; column++, at += kind_size(kind)) {
                uint16_t want = kind_sample(kind, bands ? bands[b] - 1 : b, column, row), wide;
                memcpy(&wide, at, kind_size(kind));
                if (kind->bits == 16 ? wide != want : *at != want)
                    return false;
            }
    return true;
}

cogpu_raster raster_of(const image_kind *kind, uint32_t width, uint32_t height, uint32_t bands) {
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .type = kind->bits == 16 ? COGPU_TYPE_U16 : COGPU_TYPE_U8,
                           .bands = bands,
                           .width = width,
                           .height = height};
    size_t bytes = (size_t)width * height * bands * kind_size(kind);
    raster.data = malloc(bytes);
    if (!raster.data)
        abort();
    memset(raster.data, 0xA5, bytes);
    return raster;
}
