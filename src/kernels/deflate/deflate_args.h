/* Arguments of the Deflate encoder's kernels, set by deflate_launch.c. */
#ifndef COGPU_KERNELS_DEFLATE_DEFLATE_ARGS_H
#define COGPU_KERNELS_DEFLATE_DEFLATE_ARGS_H

#include "kernels/encoder.h"

enum {
    /* A TIFF block is split into parts of this size, each encoded as one DEFLATE block. */
    COGPU_DEFLATE_PART_BYTES = 32 << 10,
    /* Scratch for one encoded part. An encoded part is shorter than PART_BYTES + 4 bytes; joining
     * reads up to 8 bytes past its end. */
    COGPU_DEFLATE_ENCODED_BYTES = COGPU_DEFLATE_PART_BYTES + 256,
    COGPU_DEFLATE_CHAIN_BYTES = 2 * COGPU_DEFLATE_PART_BYTES, /* hash chains of one warp */
    /* What a stored block takes beside its bytes: 3 header bits, up to 7 bits of padding, LEN and
     * NLEN (RFC 1951, 3.2.4). */
    COGPU_DEFLATE_STORED_BITS = 3 + 7 + 32
};

/* An encoded part. The first two fields come from the encoding kernel, the others from
 * cogpu_kernel_deflate_offsets. */
struct cogpu_deflate_part {
    uint32_t coded_bits; /* of the DEFLATE block; 0: it is stored */
    uint32_t adler;      /* of the part, begun with 0; later of the TIFF block up to its end */
    uint32_t start, end; /* in bits of the zlib stream */
};

struct cogpu_deflate_args {
    const cogpu_raw_block *blocks;
    const uint8_t *decoded;
    uint8_t *slots;
    uint32_t *sizes;
    struct cogpu_deflate_part *parts; /* max_parts for each TIFF block */
    uint8_t *encoded;                 /* COGPU_DEFLATE_ENCODED_BYTES for each part */
    uint16_t *chains;                 /* with a search: COGPU_DEFLATE_PART_BYTES for each part */
    uint32_t *matches;         /* with a search: COGPU_DEFLATE_PART_BYTES for each thread block */
    uint32_t count, max_parts; /* TIFF blocks of the round; parts of the largest */
    uint32_t max_chain;        /* positions that the search tries for each byte; 0: no search */
    uint32_t passes;           /* of the parse: all but the last estimate costs */
};

#endif
