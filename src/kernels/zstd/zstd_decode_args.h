/*
 * Zstandard decoder: memory shared by the launcher (zstd_decode_launch.c) and the kernels
 * (zstd_decode_*.cu). README.md has the overview.
 *
 * A TIFF block is a tile or strip; it holds one or more zstd frames. A zstd block is a block of
 * such a frame (RFC 8878, 3.1.1.2).
 *
 * Scratch memory of a batch:
 *
 *     | zstd_tiff_block[] | zstd_round[] | zstd_block[] of a round | pool of a round, in quads |
 *
 *     pool    | Huffman table | FSE tables | checkpoints | FSE tables | checkpoints | ...
 *
 * A quad is 16 bytes: the unit of the pool and of vector loads.
 *
 * A batch of few TIFF blocks also has, after the pool:
 *
 *     | zstd_window[] | symbols of a window, 32 bits each |
 */
#ifndef COGPU_KERNELS_ZSTD_ZSTD_DECODE_ARGS_H
#define COGPU_KERNELS_ZSTD_ZSTD_DECODE_ARGS_H

#include "kernels/decoder.h"

/* For functions of the launcher and of the kernels. */
#ifdef __CUDACC__
#define ZSTD_BOTH static __host__ __device__ inline
#else
#define ZSTD_BOTH static inline
#endif

enum { ZSTD_QUAD = 16 /* bytes */, ZSTD_BLOCK_BYTES_MAX = 128 << 10 /* RFC 8878, 3.1.1.2.4 */ };

/* Sizes of tables in the pool: a quad for their logs, then the entries. A Huffman table has
 * 2^max_bits entries of 2 bytes; for FSE tables see zstd_decode_fse.h. */
enum {
    ZSTD_HUFFMAN_BITS_MAX = 11,
    ZSTD_HUFFMAN_TABLE_QUADS = 1 + (2 << ZSTD_HUFFMAN_BITS_MAX) / ZSTD_QUAD,
    ZSTD_FSE_TABLES_QUADS = 1 + (512 + 512 + 256) * 4 / ZSTD_QUAD
};

/* Every seventh sequence of a zstd block has a checkpoint (zstd_decode_fse.h). Seven is odd, so
 * threads that write seven records each use different banks of shared memory. */
enum { ZSTD_SEQUENCES_PER_CHECKPOINT = 7, ZSTD_CHECKPOINT_BYTES = 8 };

ZSTD_BOTH uint32_t zstd_checkpoint_quads(uint32_t sequences) {
    uint32_t checkpoints =
        (sequences + ZSTD_SEQUENCES_PER_CHECKPOINT - 1) / ZSTD_SEQUENCES_PER_CHECKPOINT;
    return (checkpoints * ZSTD_CHECKPOINT_BYTES + ZSTD_QUAD - 1) / ZSTD_QUAD;
}

/* TIFF blocks with more zstd blocks and frames than this go to the CPU: their tables would need far
 * more scratch memory than they have bytes. */
ZSTD_BOTH uint32_t zstd_blocks_max(uint32_t capacity) {
    return 64 + capacity / 512;
}

/* Scratch memory that a TIFF block needs (scan) and where it is (plan). */
struct zstd_tiff_block {
    uint32_t blocks, quads;           /* needed: zstd blocks, quads of the pool */
    uint32_t first_block, first_quad; /* assigned: index in the round's zstd_block[] and pool */
    uint32_t literals;                /* Huffman-coded, of all its zstd blocks, in decoded bytes */
    uint32_t sequences;
    uint32_t first_symbol; /* number of its first byte among those of all TIFF blocks (place) */
    uint32_t headers;      /* zstd blocks, empty ones included, and skippable frames */
};

/* A round: consecutive TIFF blocks whose needs fit the scratch memory together. */
struct zstd_round {
    uint32_t first_tiff_block, end_tiff_block;
    uint32_t blocks;          /* zstd blocks */
    uint32_t next_tiff_block; /* work queue of the execute kernel */
    uint32_t sequences_first; /* the streams kernel begins with sequences: they take longer */
    uint32_t reserved[3];
};

enum zstd_flag {
    ZSTD_HUFFMAN_LITERALS = 1,
    ZSTD_HAS_HUFFMAN_TREE = 2,  /* of its own */
    ZSTD_FOUR_STREAMS = 4,      /* of Huffman-coded literals */
    ZSTD_RLE = 8,               /* literals are one byte, repeated */
    ZSTD_FIRST_BLOCK = 16,      /* of its frame */
    ZSTD_LAST_BLOCK = 32,       /* of its frame */
    ZSTD_HAS_CONTENT_SIZE = 64, /* the frame header has a Frame_Content_Size */
    ZSTD_HAS_CHECKSUM = 128     /* the frame ends with a Content_Checksum */
};

/* The three kinds of codes of a sequence, in the order of Symbol_Compression_Modes. */
enum zstd_code { ZSTD_LITERALS_LENGTH, ZSTD_OFFSET, ZSTD_MATCH_LENGTH, ZSTD_CODE_KINDS };

/* A zstd block. A Raw_Block or RLE_Block has literals and no sequences. Fields named _offset count
 * bytes from the start of the body. "Quad" in a comment: index into the pool, in quads. */
struct zstd_block {
    uint64_t body; /* Block_Content, in the batch's stored bytes */
    uint32_t body_bytes;
    uint32_t tiff_block;
    uint32_t flags;                       /* enum zstd_flag */
    uint32_t literals;                    /* decoded bytes (Regenerated_Size) */
    uint32_t literals_offset;             /* after the Huffman tree, once it is read */
    uint32_t literals_compressed;         /* encoded bytes from there on */
    uint32_t literals_out;                /* Huffman-coded: where in the TIFF block they go */
    uint32_t huffman_table;               /* quad; of an earlier block if it has none of its own */
    uint32_t sequences;                   /* Number_of_Sequences */
    uint32_t modes;                       /* Symbol_Compression_Modes */
    uint32_t descriptions_offset;         /* encoded descriptions of FSE tables */
    uint32_t fse_tables[ZSTD_CODE_KINDS]; /* quad of the set that has each table, own or earlier */
    uint32_t own_fse_tables;              /* quad of its own set of tables, if it has one */
    uint32_t checkpoints;                 /* quad */
    uint32_t window_size, content_size, checksum; /* of its frame */
    uint32_t bitstream_offset, bitstream_bytes;   /* of the sequences */
    uint32_t block_size_max;                      /* Block_Maximum_Size of its frame */
    /* With few TIFF blocks. Positions count from the TIFF block's first byte. */
    uint32_t bytes;              /* decoded (measure) */
    uint32_t begin, frame_begin; /* positions of the zstd block and of its frame (place) */
    uint32_t repeat[3]; /* the last three offsets: what becomes of them (measure), then what
                           they are at its start, unless it begins a frame (place) */
};

/* A symbol is what is known of a decoded byte: its value, 0 to 255, or that it equals an earlier
 * byte of the TIFF block: ZSTD_REFERENCE plus that byte's position. */
#define ZSTD_REFERENCE 0x80000000u

/* Window: consecutive zstd blocks of a round whose symbols are in scratch memory together. Window w
 * has the zstd blocks whose first symbol has a number from w * window_symbols on, below
 * (w + 1) * window_symbols. The last one may exceed that by less than ZSTD_BLOCK_BYTES_MAX. */
struct zstd_window {
    uint32_t first_block, end_block;
};

struct zstd_args {
    const uint8_t *stored;
    uint8_t *decoded;
    uint32_t *statuses;
    const cogpu_encoded_block *encoded;
    struct zstd_tiff_block *tiff_blocks;
    struct zstd_round *rounds;
    struct zstd_block *blocks;
    uint8_t *pool;
    uint32_t tiff_block_count, round_count;
    uint32_t blocks_max, pool_quads; /* that there is scratch memory for */
    uint32_t round;                  /* that the launch is for */
    /* With few TIFF blocks: */
    struct zstd_window *windows;
    uint32_t *symbols;
    uint32_t window_symbols; /* a multiple of ZSTD_BLOCK_BYTES_MAX */
    uint32_t window_count;   /* 0: not few */
    uint32_t window;         /* that the launch is for */
};

#endif
