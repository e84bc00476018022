/* Arguments of jpeg_interleave.cu, which gpu/nvjpeg_decode.c launches. */
#ifndef COGPU_KERNELS_JPEG_JPEG_INTERLEAVE_ARGS_H
#define COGPU_KERNELS_JPEG_JPEG_INTERLEAVE_ARGS_H

#include <stdint.h>

/* Rows of a picture for one block of threads. */
enum { COGPU_JPEG_ROWS = 8 };

/* Three planes, each of width * height bytes with rows of `width` bytes, of which the second and
 * the third use one in step_x and step_y (1 or 2) where they are subsampled. */
struct cogpu_jpeg_picture {
    const uint8_t *planes;
    uint8_t *to; /* rows of 3 * width bytes */
    uint32_t width, height;
    uint16_t step_x, step_y;
    uint32_t is_ycbcr;
};

struct cogpu_jpeg_args {
    const struct cogpu_jpeg_picture *pictures;
    uint32_t parts; /* blocks of threads for each picture */
};

#endif
