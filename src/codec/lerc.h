/* Shared by LERC's decoder and encoder. */
#ifndef COGPU_CODEC_LERC_H
#define COGPU_CODEC_LERC_H

#include "codec/codec.h"
#include "codec/lerc_shim.h"

/* The library's numbers of sample types. */
enum { LERC_I8, LERC_U8, LERC_I16, LERC_U16, LERC_I32, LERC_U32, LERC_F32, LERC_F64, LERC_NONE };
uint32_t cogpu_lerc_type(cogpu_type type);

/* How a blob is packed: the second number of tag 50674. */
enum { PACKED_NOT = 0, PACKED_DEFLATE = 1, PACKED_ZSTD = 2 };

/* A status of the library other than success as ours: COGPU_OUT_OF_MEMORY, or `otherwise` with
 * `reason` and the library's number. */
cogpu_status cogpu_lerc_explain(uint32_t result, cogpu_status otherwise, const char *reason,
                                cogpu_error *error);

/* A blob is never larger than its samples, their masks and a header for each band. */
uint64_t cogpu_lerc_bound(const cogpu_block_format *format, uint64_t block_bytes);

#endif
