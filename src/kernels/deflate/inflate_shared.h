/*
 * Deflate decoder: sizes, shared memory and input of a thread block. inflate.cu has the overview.
 */
#ifndef COGPU_KERNELS_DEFLATE_INFLATE_SHARED_H
#define COGPU_KERNELS_DEFLATE_INFLATE_SHARED_H

#include "kernels/deflate/inflate_args.h"
#include "kernels/simt.h"

/* Sizes of the shared memory of inflate.cu. Other kernels define theirs before they include this.
 */
#ifndef INFLATE_THREADS
#define INFLATE_THREADS      COGPU_INFLATE_THREADS
#define INFLATE_SEGMENT_BITS 408
#define INFLATE_SLICE_BYTES  12288
#endif
#ifndef INFLATE_SEGMENT_BITS_MIN
#define INFLATE_SEGMENT_BITS_MIN 72
#endif

enum { THREADS = INFLATE_THREADS, WARPS = THREADS / WARP };

/* Thread blocks whose shared memory fits on a multiprocessor of 228 KiB. With 164 KiB (compute
 * capability 8.0) they are 2, which then have more registers. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
enum { PER_MULTIPROCESSOR = 2 };
#else
enum { PER_MULTIPROCESSOR = 4 };
#endif

/* Bits of a thread's segment (an odd number of bytes: see choose_segment_bits), and of the lead-in
 * on which it synchronises. Both adapt to the stream within these limits. */
enum { SEGMENT_BITS_MIN = INFLATE_SEGMENT_BITS_MIN, SEGMENT_BITS_MAX = INFLATE_SEGMENT_BITS };
enum { LEAD_IN_BITS_MIN = 256, LEAD_IN_BITS = 384, LEAD_IN_BITS_MAX = 768 };

/* The stage: encoded bits in shared memory, loaded by quads of 16 bytes.
 *
 * OVERRUN_BITS is what a thread reads beyond its segment: the rest of its last token, at most 48
 * bits (15 + 5 of the length, 15 + 13 of the distance); 96 bits in the words of a bit_reader; 32
 * bits because these words are whole.
 *
 * HEADER_BITS is what the header of a deflate block may take: 3 + 14 + 19 * 3 bits up to the
 * precode, 316 code lengths of 7 bits at most, and the 32 segments of 48 bits in which the last of
 * them are decoded. That is less than 4000. */
enum {
    OVERRUN_BITS = 48 + 96 + 32,
    HEADER_BITS = 5120,
    STAGE_BITS = THREADS * SEGMENT_BITS_MAX + HEADER_BITS,
    STAGE_WORDS = STAGE_BITS / 32,
    QUAD_BITS = 128,
    NOT_STAGED = 0x80000000 - QUAD_BITS /* far above a stream's first bit: need_bits will load */
};

/* The slice: output bytes in shared memory, one 16-bit slot per byte. A slot is a literal, or where
 * its byte is copied from. Positions in the slice are below IN_SLICE_END, so they cannot be taken
 * for a literal. Values of a slot:
 *
 *     0x0000 - 0x3FFF   equals the byte at this position of the slice
 *     0x4000 - 0x40FF   literal: LITERAL_SLOT + its value
 *     0x7FFF            EMPTY_SLOT
 *     0x8000 - 0xFFFF   equals a byte before the slice: its position + SLOT_END, so 1 to 32768 back
 */
enum {
    SLICE_BYTES = INFLATE_SLICE_BYTES,
    VECTOR = 8, /* slots that a thread handles at once */
    IN_SLICE_END = 0x4000,
    LITERAL_SLOT = 0x4000,
    EMPTY_SLOT = 0x7FFF,
    BEFORE_SLICE = 0x8000,
    SLOT_END = 0x10000
};

/* Bits that index a root table, and entries of one; codes are up to 15 bits long (3.2.7). */
enum {
    ROOT_BITS = 10,
    ROOT = 1 << ROOT_BITS,
    CODE_BITS_MAX = 15,
    CODE_END = 1 << CODE_BITS_MAX,
    SUBTABLE_BITS_MAX = CODE_BITS_MAX - ROOT_BITS
};

/* Decoding tables of a deflate block: root table of literals and lengths at 0, root table of
 * distances at DISTANCE_ROOT, then subtables for literal and length codes of more than ROOT_BITS
 * bits. */
enum { DISTANCE_ROOT = ROOT, SUBTABLES = 2 * ROOT, SUBTABLE_ENTRIES = 1024 };

/* Token records of a thread, and how many of them it loads at once. */
enum { RECORDS = COGPU_INFLATE_RECORDS, RECORDS_AT_ONCE = 16 };

/* Symbols of the fixed codes (RFC 1951, 3.2.6): dynamic ones may have 286 and 30. "Precode" is
 * libdeflate's name for the code length code (3.2.7). */
enum { LITLEN_SYMBOLS = 288, DISTANCE_SYMBOLS = 32, PRECODE_SYMBOLS = 19 };

/* A canonical Huffman code (RFC 1951, 3.2.2). Codes are left-aligned in 15 bits, first bit highest,
 * so that they are in order of length and can be compared as numbers. Index: code length. */
struct canonical_code {
    uint32_t limits[16]; /* end of the codes of up to this length */
    uint32_t first[16];  /* first symbol of this length, in `sorted` */
    uint32_t counts[16]; /* symbols of this length */
    uint32_t longest;    /* length that is used, in bits */
};

enum { LITLEN_CODE, DISTANCE_CODE, CODE_COUNT };

/* Both codes of a deflate block: the decoding tables follow from them. */
struct block_codes {
    struct canonical_code canonical[CODE_COUNT];
    uint32_t subtable_bits;
    uint32_t reserved;                                  /* a multiple of 16 bytes in all */
    uint16_t sorted[LITLEN_SYMBOLS + DISTANCE_SYMBOLS]; /* symbols by code length */
};

/* Header of a deflate block while it is read. */
struct block_header {
    struct canonical_code precode;
    uint16_t sorted[WARP]; /* symbols of the precode by code length */
    uint32_t table[128];   /* decoding table of the precode, whose codes have up to 7 bits */
    uint8_t precode_lengths[WARP];
    uint8_t lengths[LITLEN_SYMBOLS + DISTANCE_SYMBOLS]; /* code lengths */
};

/* Constants of a zlib stream: in shared memory because registers are scarce. */
struct inflate_input {
    const uint8_t *quads; /* encoded bytes, from the 16-byte boundary at or before the first one */
    uint8_t *out;
    uint32_t quad_count, capacity;
    uint32_t bit_end; /* end of the deflate data: the Adler-32 begins here at the latest */
};

/* Adapted after each stride and deflate block. */
struct inflate_tuning {
    uint32_t deflate_block_bits; /* of the last one: guess for the next */
    uint32_t segment_bits_max;   /* so that the records of most threads fit */
    uint32_t lead_in_bits;       /* so that most strides need one pass */
};

struct inflate_shared {
    uint16_t slots[SLICE_BYTES];
    uint32_t stage[STAGE_WORDS];
    uint32_t table[SUBTABLES + SUBTABLE_ENTRIES];
    struct block_codes codes;
    /* Table entries of the symbols in codes.sorted, before the bits of their codes are added. */
    uint32_t entries[LITLEN_SYMBOLS + DISTANCE_SYMBOLS];
    struct block_header header;
    uint32_t exits[THREADS]; /* bit where each thread's segment ends */
    /* Of each warp: 2 * first thread that stopped early, plus 1 if it met the end of block. */
    uint32_t first_stop[WARPS];
    uint32_t last_slot; /* value of the slot before the slice, for a match that began there */
    uint64_t
        kept_bytes; /* bytes of the previous slice that were not written: they begin this one */
    uint32_t sums[WARPS], weighted_sums[WARPS]; /* of Adler-32 and prefix sums, by warp */
    uint32_t header_end;                        /* bit after a header, in the stage; 0: malformed */
    bool has_fixed_codes;                       /* the tables are those of the fixed codes */
    uint32_t block;                             /* TIFF block that is decoded */
    struct inflate_input input;
    struct inflate_tuning tuning;
};

/* Position in a zlib stream. All threads hold the same values, except for their records and their
 * part of the checksums. */
struct inflate_stream {
    uint32_t bit;           /* next bit, counted from input.quads */
    uint32_t staged;        /* first bit of the stage */
    uint32_t produced;      /* output bytes of all tokens so far, written or in the slice */
    uint32_t slice_start;   /* first byte of the slice in the output */
    uint32_t sum, weighted; /* of bytes, and of bytes times their position, modulo ADLER_MODULUS */
    uint16_t *records;      /* of this thread, THREADS apart */
};

/* ---- encoded bits ---- */

/* Starts to copy the bits from stream->bit on to shared memory, with zeros after the end. By all
 * threads, when none reads the stage; await_stage completes it. */
DEVICE_FN void begin_stage(struct inflate_shared *s, struct inflate_stream *stream) {
    uint32_t first = stream->bit / QUAD_BITS;
    for (uint32_t i = thread_index(); i < STAGE_BITS / QUAD_BITS; i += THREADS) {
        const words4 zeros = {0, 0, 0, 0};
        if (first + i < s->input.quad_count)
            copy_to_shared_16(&s->stage[4 * i], s->input.quads + 16 * (size_t)(first + i));
        else
            store_words4(&s->stage[4 * i], zeros);
    }
    copies_commit();
    stream->staged = first * QUAD_BITS;
}

DEVICE_FN void await_stage(void) {
    copies_wait();
    sync_block();
}

/* Makes sure that `bits` bits from stream->bit on are staged. By all threads. */
DEVICE_FN void need_bits(struct inflate_shared *s, struct inflate_stream *stream, uint32_t bits) {
    if (stream->bit >= stream->staged && stream->bit + bits <= stream->staged + STAGE_BITS)
        return;
    sync_block();
    begin_stage(s, stream);
    await_stage();
}

/* The next 32 bits, LSB first (RFC 1951, 3.1.1). */
DEVICE_FN uint32_t peek_bits_at(const uint32_t *words, uint32_t bit) {
    return funnel_right(words[bit >> 5], words[(bit >> 5) + 1], bit);
}

/* Reads bits LSB first. It holds the word of the current bit (`low`) and the two after it. The
 * second of these is loaded so early that it has arrived when it is needed. */
struct bit_reader {
    uint32_t low, high, next, bit;
};

DEVICE_FN struct bit_reader open_reader(const uint32_t *words, uint32_t bit) {
    const uint32_t *at = words + (bit >> 5);
    struct bit_reader reader = {at[0], at[1], at[2], bit};
    return reader;
}

DEVICE_FN uint32_t peek_bits(const struct bit_reader *reader) {
    return funnel_right(reader->low, reader->high, reader->bit);
}

/* Skips at most 31 bits, so that at most one border of words is passed. */
DEVICE_FN void skip_bits(struct bit_reader *reader, const uint32_t *words, uint32_t bits) {
    uint32_t bit = reader->bit + bits;
    if ((bit ^ reader->bit) & 32) {
        reader->low = reader->high;
        reader->high = reader->next;
    }
    /* Unconditional: the thread would wait for a conditional load at once. */
    reader->next = words[(bit >> 5) + 2];
    reader->bit = bit;
}

#endif
