/* Arguments of the Zstandard encoder's kernels, set by zstd_encode_launch.c. */
#ifndef COGPU_KERNELS_ZSTD_ZSTD_ENCODE_ARGS_H
#define COGPU_KERNELS_ZSTD_ZSTD_ENCODE_ARGS_H

#include "kernels/encoder.h"

enum {
    /* A TIFF block is split into parts of this size, each encoded as one Zstandard block. */
    COGPU_ZSTD_PART_BYTES = 32 << 10,
    /* Scratch for one encoded part. An encoded part is shorter than its bytes; it is written in
     * whole words, and joining reads up to 8 bytes past its end. */
    COGPU_ZSTD_ENCODED_BYTES = COGPU_ZSTD_PART_BYTES + 512,
    COGPU_ZSTD_FRAME_HEADER_BYTES = 9, /* at most: magic number, descriptor, content size */
    COGPU_ZSTD_BLOCK_HEADER_BYTES = 3,
    COGPU_ZSTD_SEGMENT_SEQUENCES = 42, /* at most: matches of 3 bytes in 128 bytes */
    COGPU_ZSTD_SEQUENCES = 256 * COGPU_ZSTD_SEGMENT_SEQUENCES + 1 /* of 256 segments; a sentinel */
};

/* A sequence: its match, and how many literals come before it in the part. Its lengths are
 * differences to its neighbours: zstd_encode_sequences.h has an example. */
struct cogpu_zstd_sequence {
    uint16_t at;       /* byte of the part where the match begins */
    uint16_t literals; /* of the part, from its first byte to the match */
    uint32_t offset;   /* distance in bytes; later Offset_Value (RFC 8878, 3.1.1.3.2.1.1) */
};

/* Global memory of one thread block. */
struct cogpu_zstd_workspace {
    struct cogpu_zstd_sequence sequences[COGPU_ZSTD_SEQUENCES + 1];
    struct cogpu_zstd_sequence segment_sequences[COGPU_ZSTD_SEQUENCES + 1]; /* 42 per segment */
    union {
        uint32_t matches[COGPU_ZSTD_PART_BYTES];       /* of the search: see zstd_encode_search.h */
        uint16_t states[3][COGPU_ZSTD_PART_BYTES / 2]; /* FSE states of sequences, by table */
    } u;
};

/* An encoded part. */
struct cogpu_zstd_part {
    uint32_t block_type; /* RFC 8878, 3.1.1.2.2 */
    uint32_t body_bytes; /* after the block header */
    uint32_t start;      /* of the block in the frame, set by cogpu_kernel_zstd_encode_offsets */
    uint32_t reserved;
};

struct cogpu_zstd_encode_args {
    const cogpu_raw_block *blocks;
    const uint8_t *decoded;
    uint8_t *slots;
    uint32_t *sizes;
    struct cogpu_zstd_part *parts;           /* max_parts for each TIFF block */
    uint8_t *encoded;                        /* COGPU_ZSTD_ENCODED_BYTES for each part */
    struct cogpu_zstd_workspace *workspaces; /* one for each thread block */
    uint32_t count, max_parts;               /* TIFF blocks of the round; parts of the largest */
    uint32_t hash_tables;                    /* of the search: 0 to 2 */
    uint32_t passes; /* of the parse: with 2, the second has its costs from the first */
};

#endif
