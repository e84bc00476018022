/* Arguments of the PackBits encoder's kernels, set by packbits_encode_launch.c. */
#ifndef COGPU_KERNELS_PACKBITS_PACKBITS_ENCODE_ARGS_H
#define COGPU_KERNELS_PACKBITS_PACKBITS_ENCODE_ARGS_H

#include "kernels/encoder.h"

enum {
    COGPU_PACKBITS_PART_BYTES = 8 << 10, /* of a TIFF block, at most: encoded by a thread block */
    COGPU_PACKBITS_PACKET_MAX = 128      /* bytes that one packet stands for, at most */
};

struct cogpu_packbits_encode_args {
    const cogpu_raw_block *blocks;
    const uint8_t *decoded;
    uint8_t *slots;
    uint32_t *sizes;
    uint32_t *packed;   /* encoded bytes of each part; 0: of a sparse block, or no such part */
    uint32_t max_parts; /* of the largest block: thread blocks for each TIFF block */
};

#endif
