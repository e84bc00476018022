/*
 * What the Zstandard encoder's host side (zstd_encode.c) hands to its kernels
 * (cuda_zstd_encode.cu).
 */
#ifndef COGPU_BACKEND_CUDA_CUDA_ZSTD_ENCODE_H
#define COGPU_BACKEND_CUDA_CUDA_ZSTD_ENCODE_H

#include "backend/cuda/cuda_write.h"

/* A block of the batch is cut into parts, each a block of the frame with codes of its own. */
enum {
    COGPU_ZSTD_PART = 32 << 10,                /* bytes of one, at most */
    COGPU_ZSTD_STAGED = COGPU_ZSTD_PART + 512, /* that hold one with its codes */
    COGPU_ZSTD_FRAME_HEAD = 9,                 /* bytes before the parts, at most */
    COGPU_ZSTD_PART_HEAD = 3,                  /* bytes before each */
    COGPU_ZSTD_SEGMENT_SEQUENCES = 42,         /* of 128 bytes, at most */
    COGPU_ZSTD_SEQUENCES = 256 * COGPU_ZSTD_SEGMENT_SEQUENCES + 1 /* of a part: and an end */
};

/* A match, and how much of the part was written until then. */
struct cogpu_zstd_sequence {
    uint16_t at;       /* where its bytes begin */
    uint16_t literals; /* before it, in all of the part */
    uint32_t offset;   /* in bytes; then as it is written */
};

/* What a thread block works with. */
struct cogpu_zstd_work {
    struct cogpu_zstd_sequence sequences[COGPU_ZSTD_SEQUENCES + 1];
    struct cogpu_zstd_sequence of_segments[COGPU_ZSTD_SEQUENCES + 1]; /* before they are joined */
    union {
        uint32_t found[COGPU_ZSTD_PART];         /* by the search */
        uint16_t behind[3][COGPU_ZSTD_PART / 2]; /* sequences: states */
    } u;
};

struct cogpu_zstd_part {
    uint32_t kind, body_bytes; /* see cuda_zstd_encode.cu */
    uint32_t start;            /* in the frame, when placed */
    uint32_t reserved;
};

struct cogpu_zstd_encode_args {
    const cogpu_uncoded *blocks;
    const uint8_t *decoded;
    uint8_t *slots;
    uint32_t *sizes;
    struct cogpu_zstd_part *parts; /* parts_most of each block */
    uint8_t *staged;               /* COGPU_ZSTD_STAGED bytes for each part */
    struct cogpu_zstd_work *work;  /* one for each thread block */
    uint32_t count, parts_most;
    uint32_t keys;  /* that are searched by: 0 to 2 */
    uint32_t turns; /* of the parse: 2 to have costs from a first one */
};

#endif
