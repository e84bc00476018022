/*
 * Takes the name of a file, writes a COG of a made-up hill to it, row by row: open, push chunks
 * as they are made, close. Memory does not grow with the height, overviews included.
 *
 *     cc examples/write.c $(pkg-config --cflags --libs cogpu) -o write && ./write dem.tif
 */
#include <cogpu.h>

#include <stdio.h>

enum { WIDTH = 3000, HEIGHT = 2000, ROWS = 100 };

static float rows[ROWS][WIDTH];

static float *make_rows(uint32_t first) {
    for (uint32_t y = 0; y < ROWS; y++)
        for (uint32_t x = 0; x < WIDTH; x++)
            rows[y][x] = 300 + 0.001F * (float)x * (float)(WIDTH - x) / (float)(100 + first + y);
    return rows[0];
}

static int fail(cogpu_writer *writer, const char *message) {
    fprintf(stderr, "%s\n", message);
    cogpu_writer_abort(writer);
    return 1;
}

int main(int count, char **words) {
    cogpu_writer *writer = NULL;
    cogpu_written written = COGPU_WRITTEN_INIT;
    cogpu_error error;
    if (count != 2)
        return fail(NULL, "usage: write FILE");
    cogpu_sink sink = {.struct_size = sizeof(cogpu_sink), .path = words[1]};
    cogpu_profile profile = {.struct_size = sizeof(cogpu_profile),
                             .width = WIDTH,
                             .height = HEIGHT,
                             .bands = 1,
                             .type = COGPU_TYPE_F32,
                             .cog = 1,
                             .nodata = "-9999",
                             .crs = "EPSG:32632",
                             .has_transform = 1,
                             .transform = {600000, 10, 0, 5200000, 0, -10}};
    if (cogpu_writer_open(&sink, &profile, &writer, &error) != COGPU_OK)
        return fail(writer, error.message);
    for (uint32_t y = 0; y < HEIGHT; y += ROWS) {
        cogpu_raster chunk = {.struct_size = sizeof(cogpu_raster),
                              .data = make_rows(y),
                              .type = COGPU_TYPE_F32,
                              .bands = 1,
                              .width = WIDTH,
                              .height = ROWS};
        if (cogpu_writer_write_rows(writer, &chunk, NULL, &error) != COGPU_OK)
            return fail(writer, error.message);
    }
    if (cogpu_writer_close(writer, &written, &error) != COGPU_OK)
        return fail(NULL, error.message);
    printf("%s: %u levels, %llu bytes\n", words[1], written.levels,
           (unsigned long long)written.bytes);
    return 0;
}
