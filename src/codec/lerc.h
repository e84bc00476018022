/* What reading and writing of LERC share. */
#ifndef COGPU_CODEC_LERC_H
#define COGPU_CODEC_LERC_H

#include "codec/codec.h"

/* The library's numbers of sample types. */
enum { LERC_I8, LERC_U8, LERC_I16, LERC_U16, LERC_I32, LERC_U32, LERC_F32, LERC_F64, LERC_NONE };
uint32_t cogpu_lerc_type(cogpu_type type);

/* What stands around a blob: the second number of tag 50674. */
enum { PACKED_NOT = 0, PACKED_DEFLATE = 1, PACKED_ZSTD = 2 };

/* A blob is never larger than its samples, their masks and a header for each band. */
uint64_t cogpu_lerc_bound(const cogpu_block_format *format, uint64_t block_bytes);

#endif
