/* The tables of JPEG (codec_jpeg_encode.c) in a build without libjpeg. */
#include "codec/codec.h"

cogpu_status cogpu_jpeg_tables(const cogpu_encoding *encoding, uint8_t *to, size_t room,
                               size_t *bytes, cogpu_error *error) {
    (void)encoding;
    (void)to;
    (void)room;
    *bytes = 0;
    return cogpu_fail(error, COGPU_UNSUPPORTED, "JPEG: this build lacks libjpeg");
}
