/*
 * What the deflate encoder's host side (deflate.c) hands to its kernels (cuda_deflate.cu).
 */
#ifndef COGPU_BACKEND_CUDA_CUDA_DEFLATE_H
#define COGPU_BACKEND_CUDA_CUDA_DEFLATE_H

#include "backend/cuda/cuda_write.h"

/* A block is cut into parts, each a section of the stream with codes of its own. */
enum {
    COGPU_DEFLATE_PART = 32 << 10,                   /* bytes of one, at most */
    COGPU_DEFLATE_STAGED = COGPU_DEFLATE_PART + 256, /* that hold one with its codes */
    COGPU_DEFLATE_STRETCH = 2 * COGPU_DEFLATE_PART,  /* bytes that a warp links, at most */
    COGPU_DEFLATE_STORED_BITS = 42                   /* beside its bytes, of one that is stored */
};

struct cogpu_deflate_part {
    uint32_t coded_bits; /* with its codes; 0 where its bytes are stored as they are */
    uint32_t sum;        /* Adler-32 from 0 of its bytes; when placed, of the block up to its end */
    uint32_t start, end; /* in bits of the block's stream, when placed */
};

struct cogpu_deflate_args {
    const cogpu_uncoded *blocks;
    const uint8_t *decoded;
    uint8_t *slots;
    uint32_t *sizes;
    struct cogpu_deflate_part *parts; /* parts_most of each block */
    uint8_t *staged;                  /* COGPU_DEFLATE_STAGED bytes for each part */
    uint16_t *links;                  /* COGPU_DEFLATE_PART for each part, of a search */
    uint32_t *found;                  /* COGPU_DEFLATE_PART for each thread block of a search */
    uint32_t count, parts_most;
    uint32_t depth; /* of a search: how many links are followed; 0: there is none */
    uint32_t turns; /* of the parse: all but the last learn what symbols cost */
};

#endif
