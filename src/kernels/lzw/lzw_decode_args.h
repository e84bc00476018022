/*
 * LZW decoder: memory shared by the launcher (lzw_decode_launch.c) and the kernels
 * (lzw_decode_scan.cu, lzw_decode.cu).
 *
 * Scratch memory of a round:
 *
 *     | counters | segments[] of all TIFF blocks | spans[] | totals[] |
 */
#ifndef COGPU_KERNELS_LZW_LZW_DECODE_ARGS_H
#define COGPU_KERNELS_LZW_LZW_DECODE_ARGS_H

#include "kernels/decoder.h"

/* Segments that a TIFF block may have. A stream with more clears its table for less than 512
 * decoded bytes again and again; it goes to the CPU. */
#define COGPU_LZW_SEGMENTS(capacity) ((capacity) / 512 + 16)

/* A segment: the codes between two Clear codes. */
struct cogpu_lzw_segment {
    uint32_t block; /* TIFF block */
    uint32_t bit;   /* where its first code begins in the TIFF block's encoded bytes */
    uint32_t codes; /* at least 1 */
    uint32_t index; /* in the TIFF block, times 2; odd: it is the last one */
};

/* A segment that is found, before the list of all TIFF blocks has an entry for it. */
struct cogpu_lzw_span {
    uint32_t bit, codes;
};

struct cogpu_lzw_counters {
    uint32_t spans_used;    /* allocated to TIFF blocks */
    uint32_t segment_count; /* in the list */
    uint32_t next_segment;  /* work queue of the decode kernel */
    uint32_t reserved;
};

struct cogpu_lzw_args {
    const cogpu_encoded_block *blocks;
    const uint8_t *stored;
    uint8_t *decoded;
    uint32_t *statuses;
    struct cogpu_lzw_counters *counters; /* zeroed */
    struct cogpu_lzw_segment *segments;  /* those of a TIFF block consecutively */
    struct cogpu_lzw_span *spans;
    uint32_t *totals; /* decoded bytes of each segment: lzw_decode_shared.h */
};

#endif
