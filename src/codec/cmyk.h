/* CMYK as GDAL returns it: RGBA. Only for one byte per sample; GDAL does not convert wider samples.
 */
#ifndef COGPU_CODEC_CMYK_H
#define COGPU_CODEC_CMYK_H

#include <stddef.h>
#include <stdint.h>

/* Pixels of cyan, magenta, yellow and black into red, green, blue and an opaque alpha, in place.
 * Pixels are `pixel_bytes` apart; samples after the fourth stay as they are. */
void cogpu_cmyk_to_rgba(uint8_t *pixels, size_t count, size_t pixel_bytes);

#endif
