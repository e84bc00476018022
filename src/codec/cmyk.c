/*
 * CMYK to RGBA, in place. GDAL reads such files through libtiff's RGBA interface; the arithmetic is
 * the same, so that pixels are.
 */
#include "codec/cmyk.h"

void cogpu_cmyk_to_rgba(uint8_t *pixels, size_t count, size_t pixel_bytes) {
    for (size_t i = 0; i < count; i++, pixels += pixel_bytes) {
        uint32_t light = 255u - pixels[3];
        for (int band = 0; band < 3; band++)
            pixels[band] = (uint8_t)(light * (255u - pixels[band]) / 255u);
        pixels[3] = 255;
    }
}
