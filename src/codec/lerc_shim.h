/*
 * The functions of the LERC library that C may call. The library is C++, and its C functions let
 * exceptions pass, as when memory runs out; these catch them.
 */
#ifndef COGPU_CODEC_LERC_SHIM_H
#define COGPU_CODEC_LERC_SHIM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What they return beside the library's own status, of which 0 is success. */
enum { COGPU_LERC_MEMORY = 1000, COGPU_LERC_EXCEPTION = 1001 };

/* An image in the library's layout: `depth` values per pixel, `bands` of such pixels in sequence,
 * and a mask of a byte per pixel for none, all or each of the bands. */
typedef struct cogpu_lerc_shape {
    uint32_t type; /* the library's number */
    uint32_t depth, width, height, bands, masks;
} cogpu_lerc_shape;

uint32_t cogpu_lerc_info(const uint8_t *blob, uint32_t bytes, uint32_t *info, uint32_t fields);

uint32_t cogpu_lerc_read(const cogpu_lerc_shape *shape, const uint8_t *blob, uint32_t bytes,
                         uint8_t *masks, void *samples);

uint32_t cogpu_lerc_write(const cogpu_lerc_shape *shape, int version, const void *samples,
                          const uint8_t *masks, double max_error, uint8_t *blob, uint32_t capacity,
                          uint32_t *bytes);

#ifdef __cplusplus
}
#endif

#endif
