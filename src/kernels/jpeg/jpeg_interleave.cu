/*
 * Interleaves the three planes of JPEG pictures into pixels: YCbCr becomes RGB, other bands stay as
 * they are. A block of threads handles COGPU_JPEG_ROWS rows of a picture, a thread one pixel of a
 * row at a time: pixels t, t + 256, ... Threads share nothing.
 *
 * Every bit is libjpeg's ("fancy" upsampling). Planes of half the width, or of half the width and
 * height, are upsampled with weights of 3 to 1 for a sample and its neighbour on the side of the
 * pixel; halves are rounded up and down in turns. Planes of one or two columns are repeated.
 *
 *   chroma          | c0  |  c1 |
 *   pixels          |p0|p1|p2|p3|        p1 = (3 c0 + c1 + 2) / 4,  p2 = (3 c1 + c0 + 1) / 4
 */
#include "kernels/jpeg/jpeg_interleave_args.h"
#include "kernels/simt.h"

enum { THREADS = 256, PLAIN_COLUMNS = 2 };

/* A subsampled plane. */
struct jpeg_plane {
    const uint8_t *at;
    uint32_t pitch, width, height;
};

DEVICE_FN const uint8_t *plane_row(const struct jpeg_plane *plane, uint32_t row) {
    return plane->at + (size_t)row * plane->pitch;
}

/* The neighbour of sample `i` on the side of the pixel. At the ends a sample is its own neighbour.
 */
DEVICE_FN uint32_t neighbour(uint32_t i, uint32_t count, bool is_after) {
    return is_after ? (i + 1 < count ? i + 1 : i) : (i > 0 ? i - 1 : i);
}

/* A plane of half the width. */
DEVICE_FN int32_t upsample_x(const struct jpeg_plane *plane, uint32_t x, uint32_t y) {
    const uint8_t *row = plane_row(plane, y);
    uint32_t i = x / 2, other = neighbour(i, plane->width, x % 2);
    return (3 * row[i] + row[other] + 1 + (int32_t)(x % 2)) >> 2;
}

/* A plane of half the width and height. */
DEVICE_FN int32_t upsample_xy(const struct jpeg_plane *plane, uint32_t x, uint32_t y) {
    const uint8_t *near = plane_row(plane, y / 2);
    const uint8_t *far = plane_row(plane, neighbour(y / 2, plane->height, y % 2));
    uint32_t i = x / 2, other = neighbour(i, plane->width, x % 2);
    int32_t here = 3 * near[i] + far[i], there = 3 * near[other] + far[other];
    return (3 * here + there + 8 - (int32_t)(x % 2)) >> 4;
}

DEVICE_FN int32_t chroma_at(const struct cogpu_jpeg_picture *picture, uint32_t number, uint32_t x,
                            uint32_t y) {
    struct jpeg_plane plane = {picture->planes + (size_t)number * picture->width * picture->height,
                               picture->width,
                               (picture->width + picture->step_x - 1) / picture->step_x,
                               (picture->height + picture->step_y - 1) / picture->step_y};
    if (picture->step_x == 1 || plane.width <= PLAIN_COLUMNS)
        return plane_row(&plane, y / picture->step_y)[x / picture->step_x];
    return picture->step_y == 1 ? upsample_x(&plane, x, y) : upsample_xy(&plane, x, y);
}

DEVICE_FN uint8_t clamp_to_byte(int32_t value) {
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* Factors of JFIF (1.402, 0.344136, 0.714136, 1.772) in units of 1/65536. */
DEVICE_FN void ycbcr_to_rgb(int32_t luma, int32_t blue, int32_t red, uint8_t *to) {
    const int32_t half = 1 << 15;
    blue -= 128;
    red -= 128;
    to[0] = clamp_to_byte(luma + ((91881 * red + half) >> 16));
    to[1] = clamp_to_byte(luma + ((-22554 * blue - 46802 * red + half) >> 16));
    to[2] = clamp_to_byte(luma + ((116130 * blue + half) >> 16));
}

DEVICE_FN void write_pixel(const struct cogpu_jpeg_picture *picture, uint32_t x, uint32_t y) {
    uint8_t *to = picture->to + 3 * ((size_t)y * picture->width + x);
    int32_t first = picture->planes[(size_t)y * picture->width + x];
    int32_t second = chroma_at(picture, 1, x, y), third = chroma_at(picture, 2, x, y);
    if (picture->is_ycbcr) {
        ycbcr_to_rgb(first, second, third, to);
    } else {
        to[0] = (uint8_t)first;
        to[1] = (uint8_t)second;
        to[2] = (uint8_t)third;
    }
}

KERNEL(cogpu_kernel_jpeg_interleave, struct cogpu_jpeg_args, struct nothing_shared, THREADS, 6) {
    const struct cogpu_jpeg_picture *picture = &args->pictures[block_index() / args->parts];
    uint32_t first = block_index() % args->parts * COGPU_JPEG_ROWS;
    (void)shared;
    for (uint32_t y = first; y < first + COGPU_JPEG_ROWS && y < picture->height; y++)
        for (uint32_t x = thread_index(); x < picture->width; x += THREADS)
            write_pixel(picture, x, y);
}
