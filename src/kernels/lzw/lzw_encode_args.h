/* Arguments of the LZW encoder's kernels, set by lzw_encode_launch.c. */
#ifndef COGPU_KERNELS_LZW_LZW_ENCODE_ARGS_H
#define COGPU_KERNELS_LZW_LZW_ENCODE_ARGS_H

#include "kernels/encoder.h"

enum {
    COGPU_LZW_PART_BYTES = 32 << 10, /* of a TIFF block, at most: encoded by one warp */
    COGPU_LZW_TABLE_CODES = 3836     /* between two Clears: then the table is full, as in libtiff */
};

/*
 * Scratch of one TIFF block:
 *
 *     | number of codes of each part: 4 bytes * parts | codes: 2 bytes * list_codes * parts |
 */
struct cogpu_lzw_encode_args {
    const cogpu_raw_block *blocks;
    const uint8_t *decoded;
    uint8_t *slots;
    uint32_t *sizes;
    uint8_t *scratch;
    uint64_t block_scratch; /* bytes for each TIFF block */
    uint32_t max_parts;     /* of the largest block: thread blocks for each TIFF block */
    uint32_t list_codes;    /* capacity of the code list of a part */
};

#endif
