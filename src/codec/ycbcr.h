/*
 * YCbCr (TIFF 6.0 section 21) of codecs other than JPEG, converted to RGB as by GDAL.
 *
 * Such a block consists of data units: subsampling_x * subsampling_y luma samples, row by row, then
 * one Cb and one Cr for all of them. Units at the right and lower edge extend beyond it.
 */
#ifndef COGPU_CODEC_YCBCR_H
#define COGPU_CODEC_YCBCR_H

#include "codec/codec.h"

/* What the tags say of the colours; see cogpu_ycbcr_default for what holds where they are absent.
 */
typedef struct cogpu_ycbcr {
    float luma[3];      /* tag 529, YCbCrCoefficients: of red, green and blue */
    float reference[6]; /* tag 532, ReferenceBlackWhite: black and white of Y, of Cb, of Cr */
} cogpu_ycbcr;

cogpu_ycbcr cogpu_ycbcr_default(void);

/* Decoded bytes of a block of data units; 0 for a format that is not supported, or too large. */
size_t cogpu_ycbcr_bytes(const cogpu_block_format *format);

/* Data units of a block into width * height * 3 bytes of RGB. `out` may be `units` where a unit is
 * one pixel. CORRUPT where `units` is too short. */
cogpu_status cogpu_ycbcr_unpack(const cogpu_block_format *format, const cogpu_ycbcr *ycbcr,
                                const uint8_t *units, size_t unit_bytes, uint8_t *out,
                                cogpu_error *error);

#endif
