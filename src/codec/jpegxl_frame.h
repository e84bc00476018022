/* The header of a frame of JPEG XL, as far as it says what the decoder will hold. */
#ifndef COGPU_CODEC_JPEGXL_FRAME_H
#define COGPU_CODEC_JPEGXL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the frame that begins at `in` is the only one and as large as the image. `extras` is the
 * number of extra channels; `is_xyb` whether colours are stored in JPEG XL's own colour space. The
 * image is no animation. */
bool cogpu_jpegxl_is_single(const uint8_t *in, size_t in_bytes, uint32_t extras, bool is_xyb);

#endif
