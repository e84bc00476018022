/* Deflate decoder: arguments that inflate_launch.c passes to the kernel of inflate.cu. */
#ifndef COGPU_KERNELS_DEFLATE_INFLATE_ARGS_H
#define COGPU_KERNELS_DEFLATE_INFLATE_ARGS_H

#include "kernels/decoder.h"

/* Threads of a thread block, and 16-bit token records that each of them has in scratch memory. */
enum {
    COGPU_INFLATE_THREADS = 256,
    COGPU_INFLATE_RECORDS = 96,
    COGPU_INFLATE_RECORDS_BYTES = COGPU_INFLATE_THREADS * COGPU_INFLATE_RECORDS * 2
};

struct cogpu_inflate_args {
    const cogpu_encoded_block *blocks;
    const uint8_t *stored;
    uint8_t *decoded;
    uint32_t *statuses;
    uint32_t *next_block; /* work queue, zeroed: index of the next TIFF block */
    uint16_t *records;    /* COGPU_INFLATE_RECORDS_BYTES for each thread block */
    uint32_t count;       /* TIFF blocks */
    bool is_retry;        /* those whose status is COGPU_GPU_DECODED already are skipped */
};

#endif
