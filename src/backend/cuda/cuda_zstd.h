/*
 * What zstd.c, which launches, and cuda_zstd.cu, whose kernels run, both know: the notes about
 * tiles, rounds and zstd blocks that the kernels hand to each other in the scratch memory.
 *
 * "Tile" is a block of the TIFF file here, since a zstd frame has blocks of its own. Scratch memory
 * beyond the notes is one pool, counted in quads of 16 bytes.
 */
#ifndef COGPU_BACKEND_CUDA_CUDA_ZSTD_H
#define COGPU_BACKEND_CUDA_CUDA_ZSTD_H

#include "backend/cuda/cuda.h"

#ifdef __CUDACC__
#define ZSTD_BOTH static __host__ __device__ inline
#else
#define ZSTD_BOTH static inline
#endif

enum { ZSTD_QUAD = 16, ZSTD_BLOCK_BYTES = 128 << 10 };

/* Sizes of tables in quads: a quad that tells their logs, then the entries. */
enum {
    ZSTD_TREE_LOG = 11,
    ZSTD_TREE_QUADS = 1 + (2 << ZSTD_TREE_LOG) / ZSTD_QUAD,
    ZSTD_CODES_QUADS = 1 + (512 + 512 + 256) * 4 / ZSTD_QUAD
};

/* Of the sequences of a block every so many-th has a mark, from which they can be read on: 8 bytes.
 * An odd number, since threads that write so many records each meet in no bank of shared memory. */
enum { ZSTD_MARKED = 7, ZSTD_MARK_BYTES = 8 };

ZSTD_BOTH uint32_t zstd_mark_quads(uint32_t sequences) {
    uint32_t marks = (sequences + ZSTD_MARKED - 1) / ZSTD_MARKED;
    return (marks * ZSTD_MARK_BYTES + ZSTD_QUAD - 1) / ZSTD_QUAD;
}

/* Tiles with more zstd blocks, frames or tables than this are the host's: what they need of the
 * pool would not be in proportion to what they hold. */
ZSTD_BOTH uint32_t zstd_most_blocks(uint32_t room) {
    return 64 + room / 512;
}

/* A tile: what it needs of the scratch memory, and what it has got. */
struct zstd_tile {
    uint32_t blocks, quads;           /* needed */
    uint32_t first_block, first_quad; /* given */
    uint32_t literals;                /* Huffman coded ones, of all its blocks */
    uint32_t sequences, reserved[2];
};

/* A round: tiles whose needs fit the scratch memory together. */
struct zstd_round {
    uint32_t first_tile, end_tile;
    uint32_t blocks;
    uint32_t ticket;        /* of the next tile to execute, from first_tile on */
    uint32_t literals_last; /* they take less time than its sequences */
    uint32_t reserved[3];
};

enum zstd_flag {
    ZSTD_CODED = 1,     /* literals are Huffman coded */
    ZSTD_TREE = 2,      /* and bring their tree */
    ZSTD_FOUR = 4,      /* in four streams */
    ZSTD_ONE_BYTE = 8,  /* literals are one byte many times */
    ZSTD_FIRST = 16,    /* of its frame */
    ZSTD_LAST = 32,     /* of its frame */
    ZSTD_HAS_SIZE = 64, /* its frame says how large it is */
    ZSTD_HAS_SUM = 128
};

enum zstd_code { ZSTD_LENGTH_CODE, ZSTD_OFFSET_CODE, ZSTD_MATCH_CODE, ZSTD_CODE_KINDS };

/* A zstd block. A raw one, or one of one byte many times, is literals alone. */
struct zstd_block {
    uint64_t in; /* its body, in the batch's stored bytes */
    uint32_t in_bytes;
    uint32_t tile;
    uint32_t flags;
    uint32_t literals;                     /* bytes, decoded */
    uint32_t literals_in, literals_stored; /* where they are in the body, and their bytes */
    uint32_t literals_at;                  /* where in the tile coded ones are decoded to */
    uint32_t tree_at;                      /* quad of its tree, perhaps an earlier block's */
    uint32_t sequences;
    uint32_t modes;
    uint32_t codes_in;                  /* in the body: the descriptions of the tables */
    uint32_t codes_at[ZSTD_CODE_KINDS]; /* quad of each table, perhaps an earlier block's */
    uint32_t own_codes_at;              /* quad of the tables that it brings */
    uint32_t marks_at;                  /* quad */
    uint32_t window, content, sum;      /* of its frame */
    uint32_t bits_in, bits_bytes;       /* in the body: the stream of sequences */
    uint32_t most_out;                  /* no block of its frame may be larger */
};

struct zstd_args {
    const uint8_t *stored;
    uint8_t *decoded;
    uint32_t *verdicts;
    const cogpu_coded *coded;
    struct zstd_tile *tiles;
    struct zstd_round *rounds;
    struct zstd_block *blocks;
    uint8_t *pool;
    uint32_t tile_count, round_count;
    uint32_t most_blocks, most_quads; /* that there is room for */
    uint32_t round;                   /* the one that the launch is for */
};

#endif
