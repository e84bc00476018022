/*
 * Takes the name of a raster, prints the mean of the valid pixels of its first band: open, look,
 * read as float32 (of whatever type the file is) with NaN where a pixel is not valid, close.
 *
 *     cc examples/read.c $(pkg-config --cflags --libs cogpu) -o read && ./read dem.tif
 */
#include <cogpu.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(cogpu_file *file, const char *message) {
    fprintf(stderr, "%s\n", message);
    cogpu_close(file);
    return 1;
}

int main(int count, char **words) {
    cogpu_file *file = NULL;
    cogpu_image image = COGPU_IMAGE_INIT;
    cogpu_error error;
    if (count != 2)
        return fail(NULL, "usage: read FILE");
    if (cogpu_open(words[1], NULL, &file, &error) != COGPU_OK ||
        cogpu_image_info(file, 0, &image, &error) != COGPU_OK)
        return fail(file, error.message);

    size_t pixels = (size_t)image.width * image.height;
    float *heights = malloc(pixels * sizeof *heights);
    if (!heights)
        return fail(file, "out of memory");
    const uint32_t first_band = 1;
    cogpu_request request = {
        .struct_size = sizeof(cogpu_request), .bands = &first_band, .band_count = 1, .masked = 1};
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .data = heights,
                           .type = COGPU_TYPE_F32,
                           .bands = 1,
                           .width = image.width,
                           .height = image.height};
    if (cogpu_read(file, &request, &raster, NULL, &error) != COGPU_OK) {
        free(heights);
        return fail(file, error.message);
    }

    double sum = 0;
    size_t valid = 0;
    for (size_t i = 0; i < pixels; i++) {
        if (isnan(heights[i]))
            continue;
        sum += heights[i];
        valid++;
    }
    printf("%u x %u pixels, %zu valid, mean %.3f\n", image.width, image.height, valid,
           valid ? sum / (double)valid : 0.0);
    free(heights);
    cogpu_close(file);
    return 0;
}
