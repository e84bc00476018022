/*
 * Input: the contents of GeoTIFF's tags. One byte says how the file is written, three how long the
 * first tags are; then the GeoKey directory, its doubles, the other numbers, its text. All that is
 * made of them is made: transform, control points, system, WKT.
 */
#include "image/image.h"
#include "support/tiff_builder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next piece of the input as a tag; returns what it took. */
static size_t add_tag(tiff_builder *file, uint16_t tag, uint16_t type, const uint8_t *data,
                      size_t size, size_t wanted) {
    size_t width = build_type_bytes(type);
    size_t count = (wanted < size ? wanted : size) / width;
    if (count)
        build_raw(file, tag, type, count, data, count * width);
    return count * width;
}

static void read_all(const tiff_builder *file) {
    cogpu_limits limits = cogpu_limits_complete(NULL);
    cogpu_io *io = NULL;
    cogpu_arena arena;
    cogpu_tiff tiff;
    cogpu_georef georef;
    cogpu_error error;
    const char *warning = NULL;
    static cogpu_crs_database *registry; /* kept: opening it would take most of the time */
    char wkt[4096];
    size_t needed;
    cogpu_arena_open(&arena, 64 << 20);
    if (cogpu_io_open_memory(file->bytes, file->size, &io, &error) == COGPU_OK &&
        cogpu_tiff_open(&tiff, io, &limits, &arena, &error) == COGPU_OK &&
        cogpu_georef_read(&tiff, 0, 1, &arena, &georef, &warning, &error) == COGPU_OK &&
        cogpu_crs_to_wkt(&georef, &registry, wkt, sizeof wkt, &needed, &error) == COGPU_OK &&
        needed == 0)
        abort();
    cogpu_io_close(io);
    cogpu_arena_close(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tiff_builder file;
    if (size < 4)
        return 0;
    build_open(&file, data[0] & 1, data[0] & 2);
    build_image(&file, 1, 1, 1, 8, 1, NULL);
    size_t at = 4;
    at += add_tag(&file, 34735, BUILD_SHORT, data + at, size - at, data[1] * 8u);
    at += add_tag(&file, 34736, BUILD_DOUBLE, data + at, size - at, data[2] * 8u);
    at += add_tag(&file, data[0] & 4 ? 34264 : 33550, BUILD_DOUBLE, data + at, size - at,
                  data[0] & 4 ? 128 : 24);
    at += add_tag(&file, 33922, BUILD_DOUBLE, data + at, size - at, data[3] * 8u);
    add_tag(&file, 34737, BUILD_ASCII, data + at, size - at, size);
    build_directory(&file, true);
    read_all(&file);
    build_close(&file);
    return 0;
}
