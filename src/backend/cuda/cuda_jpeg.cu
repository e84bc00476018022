/*
 * Takes pictures as three planes, hands on their pixels, band beside band: YCbCr as RGB, all else
 * as it is. A thread for a pixel at a time.
 *
 * Every bit is as libjpeg has it. Planes of half the width, or of half the width and height, are
 * spread as it spreads them: each sample is weighted 3 to 1 with its neighbour on the side of the
 * pixel, and where both halves of a sum meet they are rounded up and down in turns. Planes of one
 * or two columns are not weighted.
 */
#include "backend/cuda/cuda_jpeg.h"
#include "backend/cuda/simt.h"

enum { THREADS = 256, PLAIN_COLUMNS = 2 };

/* A subsampled plane. */
struct plane {
    const uint8_t *at;
    uint32_t pitch, width, height;
};

DEVICE_FN const uint8_t *row_of(const struct plane *plane, uint32_t row) {
    return plane->at + (size_t)row * plane->pitch;
}

/* The sample beside column `i`, on the side of the pixel; the last ones are their own neighbours.
 */
DEVICE_FN uint32_t beside(uint32_t i, uint32_t count, bool is_after) {
    return is_after ? (i + 1 < count ? i + 1 : i) : (i > 0 ? i - 1 : i);
}

/* Half the width. */
DEVICE_FN int32_t spread_x(const struct plane *plane, uint32_t x, uint32_t y) {
    const uint8_t *row = row_of(plane, y);
    uint32_t i = x / 2, other = beside(i, plane->width, x % 2);
    return (3 * row[i] + row[other] + 1 + (int32_t)(x % 2)) >> 2;
}

/* Half the width and height. */
DEVICE_FN int32_t spread_xy(const struct plane *plane, uint32_t x, uint32_t y) {
    const uint8_t *near = row_of(plane, y / 2);
    const uint8_t *far = row_of(plane, beside(y / 2, plane->height, y % 2));
    uint32_t i = x / 2, other = beside(i, plane->width, x % 2);
    int32_t here = 3 * near[i] + far[i], there = 3 * near[other] + far[other];
    return (3 * here + there + 8 - (int32_t)(x % 2)) >> 4;
}

DEVICE_FN int32_t sample(const struct cogpu_jpeg_picture *picture, uint32_t number, uint32_t x,
                         uint32_t y) {
    struct plane plane = {picture->planes + (size_t)number * picture->width * picture->height,
                          picture->width, (picture->width + picture->step_x - 1) / picture->step_x,
                          (picture->height + picture->step_y - 1) / picture->step_y};
    if (picture->step_x == 1 || plane.width <= PLAIN_COLUMNS)
        return row_of(&plane, y / picture->step_y)[x / picture->step_x];
    return picture->step_y == 1 ? spread_x(&plane, x, y) : spread_xy(&plane, x, y);
}

DEVICE_FN uint8_t clamp(int32_t value) {
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* Factors are 1.402, 0.344136, 0.714136 and 1.772 in units of 1/65536. */
DEVICE_FN void to_rgb(int32_t luma, int32_t blue, int32_t red, uint8_t *to) {
    const int32_t half = 1 << 15;
    blue -= 128;
    red -= 128;
    to[0] = clamp(luma + ((91881 * red + half) >> 16));
    to[1] = clamp(luma + ((-22554 * blue - 46802 * red + half) >> 16));
    to[2] = clamp(luma + ((116130 * blue + half) >> 16));
}

DEVICE_FN void write_pixel(const struct cogpu_jpeg_picture *picture, uint32_t x, uint32_t y) {
    uint8_t *to = picture->to + 3 * ((size_t)y * picture->width + x);
    int32_t first = picture->planes[(size_t)y * picture->width + x];
    int32_t second = sample(picture, 1, x, y), third = sample(picture, 2, x, y);
    if (picture->is_ycbcr) {
        to_rgb(first, second, third, to);
    } else {
        to[0] = (uint8_t)first;
        to[1] = (uint8_t)second;
        to[2] = (uint8_t)third;
    }
}

KERNEL(cogpu_kernel_jpeg_join, struct cogpu_jpeg_args, struct nothing_shared, THREADS, 6) {
    const struct cogpu_jpeg_picture *picture = &args->pictures[block_index() / args->parts];
    uint32_t first = block_index() % args->parts * COGPU_JPEG_ROWS;
    (void)shared;
    for (uint32_t y = first; y < first + COGPU_JPEG_ROWS && y < picture->height; y++)
        for (uint32_t x = thread_index(); x < picture->width; x += THREADS)
            write_pixel(picture, x, y);
}
