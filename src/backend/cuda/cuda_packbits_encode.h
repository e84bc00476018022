/* What the kernels that encode PackBits (cuda_packbits_encode.cu) and their host side
 * (packbits_encode.c) share. */
#ifndef COGPU_BACKEND_CUDA_CUDA_PACKBITS_ENCODE_H
#define COGPU_BACKEND_CUDA_CUDA_PACKBITS_ENCODE_H

#include "backend/cuda/cuda_write.h"

enum {
    COGPU_PACKBITS_PIECE = 8 << 10, /* bytes of a block that a block of threads encodes */
    COGPU_PACKBITS_LONGEST = 128    /* bytes that a head stands for, at most */
};

struct cogpu_packbits_encode_args {
    const cogpu_uncoded *blocks;
    const uint8_t *decoded;
    uint8_t *slots;
    uint32_t *sizes;
    uint32_t *packed; /* bytes that each piece takes; 0 for those of blocks that are left out */
    uint32_t pieces;  /* that the largest block has: so many blocks of threads for each */
};

#endif
