/* What the kernels that encode LZW (cuda_lzw_encode.cu) and their host side (lzw_encode.c) share.
 */
#ifndef COGPU_BACKEND_CUDA_CUDA_LZW_ENCODE_H
#define COGPU_BACKEND_CUDA_CUDA_LZW_ENCODE_H

#include "backend/cuda/cuda_write.h"

enum {
    COGPU_LZW_PIECE = 32 << 10,    /* bytes of a block that a warp encodes */
    COGPU_LZW_SEGMENT_CODES = 3836 /* after which the table is full, as for libtiff */
};

/* Scratch has a part for each block: how many codes each of its pieces takes, then a list of them,
 * 16 bits each, for each piece. */
struct cogpu_lzw_encode_args {
    const cogpu_uncoded *blocks;
    const uint8_t *decoded;
    uint8_t *slots;
    uint32_t *sizes;
    uint8_t *scratch;
    uint64_t part_bytes;
    uint32_t pieces;     /* that the largest block has: so many blocks of threads for each */
    uint32_t list_codes; /* room of a list */
};

#endif
