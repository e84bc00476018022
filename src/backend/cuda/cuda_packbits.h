/* What the PackBits kernel (cuda_packbits.cu) and its host side (packbits.c) share. */
#ifndef COGPU_BACKEND_CUDA_CUDA_PACKBITS_H
#define COGPU_BACKEND_CUDA_CUDA_PACKBITS_H

#include "backend/cuda/cuda.h"

struct cogpu_packbits_args {
    const cogpu_coded *blocks;
    const uint8_t *stored;
    uint8_t *decoded;
    uint32_t *verdicts;
};

#endif
