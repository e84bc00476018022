/* PackBits decoder: arguments that packbits_decode_launch.c passes to the kernel of
 * packbits_decode.cu. */
#ifndef COGPU_KERNELS_PACKBITS_PACKBITS_DECODE_ARGS_H
#define COGPU_KERNELS_PACKBITS_PACKBITS_DECODE_ARGS_H

#include "kernels/decoder.h"

struct cogpu_packbits_args {
    const cogpu_encoded_block *blocks;
    const uint8_t *stored;
    uint8_t *decoded;
    uint32_t *statuses;
};

#endif
