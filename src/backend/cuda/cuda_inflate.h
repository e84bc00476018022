/*
 * What the deflate decoder's host side (inflate.c) hands to its kernel (cuda_inflate.cu).
 */
#ifndef COGPU_BACKEND_CUDA_CUDA_INFLATE_H
#define COGPU_BACKEND_CUDA_CUDA_INFLATE_H

#include "backend/cuda/cuda.h"

struct cogpu_inflate_args {
    const cogpu_coded *blocks;
    const uint8_t *stored;
    uint8_t *decoded;
    uint32_t *verdicts;
    uint32_t *ticket; /* zeroed: the block to be decoded next */
    uint32_t count;
};

#endif
