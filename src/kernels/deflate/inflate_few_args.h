/*
 * Deflate decoder for few streams: what its kernels share. inflate_few_launch.c launches them,
 * README.md has the idea.
 *
 *     scratch of a round | streams | anchors | pages | counters | chunks | codes | checkpoints |
 * symbols | cleared before the round
 */
#ifndef COGPU_KERNELS_DEFLATE_INFLATE_FEW_ARGS_H
#define COGPU_KERNELS_DEFLATE_INFLATE_FEW_ARGS_H

#include "kernels/decoder.h"

enum {
    /* Output of a stream that one thread block decodes: the slices of inflate_few_decode.cu. */
    COGPU_INFLATE_FEW_SLICE_BYTES = 16384,
    COGPU_INFLATE_PAGE_BYTES = 2 * COGPU_INFLATE_FEW_SLICE_BYTES,
    /* Output that a thread block of inflate_few_resolve.cu resolves. */
    COGPU_INFLATE_RESOLVE_BYTES = 4096,
    /* Bytes that the codes of a deflate block take: struct block_codes. */
    COGPU_INFLATE_CODES_BYTES = 1040,
    /* Spans of a stream, at most: inflate_few_link.cu has them in shared memory. */
    COGPU_INFLATE_SPANS_MAX = 1024
};

/* A stream of the round. One more, after the last, has the totals of spans and pages. */
struct cogpu_inflate_few_stream {
    uint32_t first_span, first_page;
    uint32_t bytes;         /* that it decodes to */
    uint32_t end_bit;       /* after its final deflate block */
    uint32_t is_linked;     /* its deflate blocks are known, from first to last */
    uint32_t is_malformed;  /* a distance reaches before its first byte */
    uint32_t sum, weighted; /* of bytes, and of bytes times their position: of Adler-32 */
};

/* What a span has: the start of a deflate block, which is proved or not by the walks before it. */
struct cogpu_inflate_anchor {
    uint32_t start;       /* bit; 0: none found */
    uint32_t next;        /* span whose anchor its walk met; FINAL; 0: it met none */
    uint32_t bytes;       /* that its walk decodes to */
    uint32_t end_bit;     /* of its walk */
    uint32_t first, last; /* chunks of its walk, plus 1 */
    uint32_t is_reached;  /* from the start of the stream: it is proved */
    uint32_t out;         /* position of its first byte in the output */
};

enum { COGPU_INFLATE_FINAL = 0x7FFFFFFF };

/* A page of the output: its first chunk, plus 1, or 0 if it is not decoded here. */
struct cogpu_inflate_page {
    uint32_t chunk, stream;
};

/* Tokens that one thread block counted at once, or the bytes of a stored block. Bits count from the
 * 16-byte boundary at or before the stream. */
struct cogpu_inflate_chunk {
    uint32_t span, stream;
    uint32_t
        out; /* position of its first byte: in the output of the walk, then in that of the stream */
    uint32_t bytes;
    uint32_t first_bit;
    uint32_t codes;                         /* index; COGPU_INFLATE_STORED: it is a stored block */
    uint32_t checkpoints, checkpoint_count; /* the first of them, and how many */
    uint32_t next;                          /* chunk after this one, plus 1 */
};

enum { COGPU_INFLATE_STORED = 0x7FFFFFFF };

/* A bit at which a token begins, and its position in the output of the chunk. */
struct cogpu_inflate_checkpoint {
    uint32_t bit, out;
};

/* Counters: what is used of the arrays, and the work queues. Then a queue for each launch of the
 * decoding kernel. */
enum {
    COGPU_INFLATE_CHUNKS,
    COGPU_INFLATE_CODES,
    COGPU_INFLATE_CHECKPOINTS,
    COGPU_INFLATE_WALK_QUEUE,
    COGPU_INFLATE_DECODE_QUEUES
};

struct cogpu_inflate_few_args {
    const cogpu_encoded_block *blocks; /* of the round */
    const uint8_t *stored;
    uint8_t *decoded;
    uint32_t *statuses;
    struct cogpu_inflate_few_stream *streams; /* count + 1 */
    struct cogpu_inflate_anchor *anchors;     /* of each span */
    struct cogpu_inflate_page *pages;
    uint32_t *counters;
    struct cogpu_inflate_chunk *chunks;
    uint8_t *codes;
    struct cogpu_inflate_checkpoint *checkpoints;
    uint16_t *symbols;   /* of the window */
    uint32_t count;      /* streams */
    uint32_t span_bytes; /* a multiple of 16 */
    uint32_t chunks_max, codes_max, checkpoints_max;
    uint32_t window, window_pages; /* first page of the window, and how many it has */
    uint32_t queue;                /* of counters: that of this window */
    uint32_t fronts;               /* places of the window at which resolving begins */
};

#endif
