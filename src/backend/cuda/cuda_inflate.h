/*
 * What the deflate decoder's host side (inflate.c) hands to its kernel (cuda_inflate.cu).
 */
#ifndef COGPU_BACKEND_CUDA_CUDA_INFLATE_H
#define COGPU_BACKEND_CUDA_CUDA_INFLATE_H

#include "backend/cuda/cuda.h"

/* A thread block decodes with so many lanes, and each of them has room for so many notes. */
enum {
    COGPU_INFLATE_LANES = 256,
    COGPU_INFLATE_NOTES = 96,
    COGPU_INFLATE_NOTES_BYTES = COGPU_INFLATE_LANES * COGPU_INFLATE_NOTES * 2
};

struct cogpu_inflate_args {
    const cogpu_coded *blocks;
    const uint8_t *stored;
    uint8_t *decoded;
    uint32_t *verdicts;
    uint32_t *ticket; /* zeroed: the block to be decoded next */
    uint16_t *notes;  /* COGPU_INFLATE_NOTES_BYTES for each thread block */
    uint32_t count;
};

#endif
