/* What the LZW kernels (cuda_lzw.cu) and their host side (lzw.c) share. */
#ifndef COGPU_BACKEND_CUDA_CUDA_LZW_H
#define COGPU_BACKEND_CUDA_CUDA_LZW_H

#include "backend/cuda/cuda.h"

/* So many segments are looked for in a block with that room. A stream with more, which clears its
 * table for less than 512 decoded bytes again and again, is the host's. */
#define COGPU_LZW_SEGMENTS(room) ((room) / 512 + 16)

/* What lies between two Clear codes. */
struct cogpu_lzw_segment {
    uint32_t block;
    uint32_t bit;   /* of the block's stored bytes where its first code begins */
    uint32_t codes; /* at least 1 */
    uint32_t index; /* in the block, times 2; odd: it is the last one */
};

/* The same before it is known how many there are before it. */
struct cogpu_lzw_draft {
    uint32_t bit, codes;
};

struct cogpu_lzw_progress {
    uint32_t drafts;   /* taken by blocks */
    uint32_t segments; /* found */
    uint32_t ticket;   /* the segment to be decoded next */
    uint32_t reserved;
};

struct cogpu_lzw_args {
    const cogpu_coded *blocks;
    const uint8_t *stored;
    uint8_t *decoded;
    uint32_t *verdicts;
    struct cogpu_lzw_progress *progress; /* zeroed */
    struct cogpu_lzw_segment *segments;  /* those of a block one after the other */
    struct cogpu_lzw_draft *drafts;
    uint32_t *totals; /* of each segment: how many bytes it has, see cuda_lzw.cu */
};

#endif
