/* The headers of the frames of JPEG XL, as far as they say what the decoder will hold. */
#ifndef COGPU_CODEC_JPEGXL_FRAME_H
#define COGPU_CODEC_JPEGXL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the header of the image says. It is no animation and has no preview. */
typedef struct cogpu_jpegxl_image {
    uint32_t width, height;
    uint32_t extras; /* extra channels */
    bool is_xyb;     /* colours are stored in JPEG XL's own colour space */
} cogpu_jpegxl_image;

/* Whether the frames that begin at `in` are the picture, and a few before it that are not shown and
 * are no larger. False also where a header has values that are not known here. */
bool cogpu_jpegxl_is_bounded(const uint8_t *in, size_t in_bytes, const cogpu_jpegxl_image *image);

#endif
