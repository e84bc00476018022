/*
 * What a JPEG 2000 stream says of itself, read before the library sees it.
 *
 * OpenJPEG takes memory by what the headers claim: for each tile, each precinct and each code
 * block. So the size, the components and the number of these parts are compared with the block
 * first.
 */
#ifndef COGPU_CODEC_JPEG2000_HEADER_H
#define COGPU_CODEC_JPEG2000_HEADER_H

#include "codec/codec.h"

/* A bare codestream, or the one inside a JP2 file. CORRUPT where there is none. */
cogpu_status cogpu_jpeg2000_find(const uint8_t *in, size_t in_bytes, const uint8_t **stream,
                                 size_t *stream_bytes, cogpu_error *error);

/* Compares the codestream with the block: CORRUPT where they contradict each other, or where so few
 * bytes claim so many parts. */
cogpu_status cogpu_jpeg2000_check(const cogpu_block_format *format, const uint8_t *stream,
                                  size_t bytes, cogpu_error *error);

#endif
