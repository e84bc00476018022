/*
 * Joins the encoded parts of a TIFF block to one zlib stream (RFC 1950) in its slot.
 *
 *     bits    0        16                                            to a byte
 *             | header | DEFLATE block 0 | block 1 | ... | last block | padding | Adler-32 |
 *
 * DEFLATE blocks begin at any bit, so a word of the stream can hold bits of two of them.
 *
 * 1. cogpu_kernel_deflate_offsets, a warp for each TIFF block: where each part begins and ends in
 *    the stream, the Adler-32 so far, and the size of the stream.
 * 2. cogpu_kernel_deflate_join, a thread block for each part: the 32-bit words of the stream that
 *    begin in the part. The word at a border is written by the part in which it begins, which reads
 *    the first bits of the next one. So each word has one writer, and no atomics are needed.
 *
 * A part without gain becomes a stored block (RFC 1951, 3.2.4), copied from the decoded bytes:
 *
 *     BFINAL | BTYPE 00 | padding to a byte | LEN 16 bits | NLEN 16 bits | bytes
 *
 * Output bound: 16 + parts * COGPU_DEFLATE_STORED_BITS + 8 * bytes + 7 + 32 bits, in whole words,
 * as the last 32-bit word is written whole; see deflate_bound.
 */
#include "kernels/deflate/deflate_format.h"

enum {
    ZLIB_HEADER = 0x9C78, /* CMF 78: deflate, 32 KiB window; FLG 9C: default level, check bits */
    ZLIB_HEADER_BITS = 16,
    BLOCK_HEADER_BITS = 3, /* BFINAL and BTYPE */
    STORED_SIZE_BITS = 32  /* LEN and NLEN */
};

DEVICE_FN uint32_t round_up_to_byte(uint32_t bits) {
    return (bits + 7) / 8 * 8;
}

/*
 * Parts follow each other, so one lane's result is the next one's start: each lane loads a part,
 * then the warp goes through the 32 together. Appending a part of n bytes whose Adler-32 from 0 is
 * (l, h) to the checksum (low, high):
 *
 *     high = high + n * low + h,       low = low + l         modulo 65521
 */
KERNEL(cogpu_kernel_deflate_offsets, struct cogpu_deflate_args, struct nothing_shared, WARP, 16) {
    const uint32_t in_bytes = args->blocks[block_index()].in_bytes, count = part_count(in_bytes);
    struct cogpu_deflate_part *parts = args->parts + (uint64_t)block_index() * args->max_parts;
    uint32_t at = ZLIB_HEADER_BITS, low = 1, high = 0;
    if (args->sizes[block_index()] == COGPU_GPU_SPARSE)
        return;
    sync_warp(); /* all lanes have read the size that lane 0 overwrites */
    for (uint32_t base = 0; base < count; base += WARP) {
        struct cogpu_deflate_part own = {0, 0, 0, 0};
        if (base + lane_index() < count)
            own = parts[base + lane_index()];
        for (uint32_t lane = 0; lane < WARP && base + lane < count; lane++) {
            const uint32_t bits = warp_read(own.coded_bits, lane);
            const uint32_t adler = warp_read(own.adler, lane);
            const uint32_t bytes = min_u32(in_bytes - (base + lane) * PART_BYTES, PART_BYTES);
            const uint32_t start = at;
            at = bits > 0
                     ? at + bits
                     : round_up_to_byte(at + BLOCK_HEADER_BITS) + STORED_SIZE_BITS + 8 * bytes;
            high = (low * bytes % ADLER_MODULUS + high + (adler >> 16)) % ADLER_MODULUS;
            low = (low + (adler & 0xFFFF)) % ADLER_MODULUS;
            if (lane_index() == lane) {
                struct cogpu_deflate_part *part = &parts[base + lane];
                part->start = start;
                part->end = at;
                part->adler = high << 16 | low;
            }
        }
    }
    if (lane_index() == 0)
        args->sizes[block_index()] = round_up_to_byte(at) / 8 + 4;
}

/* A DEFLATE block, readable from any of its bits on. */
struct block_reader {
    const uint8_t *from; /* encoded part, or the bytes of a stored block */
    uint32_t bits;       /* of these */
    uint32_t head_bits;  /* before them: header of a stored block; 0 of an encoded one */
    uint64_t head;
    uint32_t start, end; /* in the stream */
};

DEVICE_FN struct block_reader get_block_reader(const struct cogpu_deflate_args *args,
                                               uint32_t index, uint32_t number) {
    const cogpu_raw_block *block = &args->blocks[index];
    const uint64_t i = (uint64_t)index * args->max_parts + number;
    const struct cogpu_deflate_part encoded = args->parts[i];
    const struct encode_part part = get_part(args->decoded, block, number, false);
    struct block_reader reader = {args->encoded + i * COGPU_DEFLATE_ENCODED_BYTES,
                                  encoded.coded_bits,
                                  0,
                                  0,
                                  encoded.start,
                                  encoded.end};
    if (encoded.coded_bits == 0) {
        const uint32_t padded_header =
            round_up_to_byte(encoded.start + BLOCK_HEADER_BITS) - encoded.start;
        const uint32_t sizes = part.bytes | ~part.bytes << 16;
        reader.from = part.in;
        reader.bits = 8 * part.bytes;
        reader.head = (uint64_t)sizes << padded_header | part.is_last;
        reader.head_bits = padded_header + STORED_SIZE_BITS;
    }
    return reader;
}

/* 32 bits from bit `at` on, zeros past the end. Reads up to 8 bytes past the end. */
DEVICE_FN uint32_t read_body_bits(const struct block_reader *reader, uint32_t at) {
    if (at >= reader->bits)
        return 0;
    const uint8_t *word = reader->from + at / 32 * 4;
    const uint32_t left = reader->bits - at;
    const uint32_t bits = funnel_right(load_u32_aligned(word), load_u32_aligned(word + 4), at % 32);
    return left >= 32 ? bits : bits & ((1u << left) - 1);
}

DEVICE_FN uint32_t read_block_bits(const struct block_reader *reader, uint32_t at) {
    if (at >= reader->head_bits)
        return read_body_bits(reader, at - reader->head_bits);
    const uint32_t left = reader->head_bits - at;
    const uint32_t bits = (uint32_t)(reader->head >> at);
    return left >= 32 ? bits : bits | read_body_bits(reader, 0) << left;
}

/* A DEFLATE block has more than 32 bits, so no word holds bits of three. The last part appends the
 * Adler-32 instead of a next block, most significant byte first. */
KERNEL(cogpu_kernel_deflate_join, struct cogpu_deflate_args, struct nothing_shared, PART_THREADS,
       8) {
    const uint32_t index = block_index() / args->max_parts;
    const uint32_t number = block_index() % args->max_parts;
    const cogpu_raw_block *block = &args->blocks[index];
    const uint32_t count = part_count(block->in_bytes);
    if (args->sizes[index] == COGPU_GPU_SPARSE || number >= count)
        return;
    const bool is_last = number + 1 == count;
    const struct block_reader own = get_block_reader(args, index, number);
    struct block_reader next = own;
    uint32_t next_start = own.end, end = own.end, trailer = 0;
    if (is_last) {
        const uint32_t adler = args->parts[(uint64_t)index * args->max_parts + number].adler;
        trailer = pick_bytes(adler, 0, 0x0123); /* bytes reversed */
        next_start = round_up_to_byte(own.end);
        end = next_start + 32;
    } else {
        next = get_block_reader(args, index, number + 1);
    }
    number32 *out = (number32 *)(args->slots + block->out);
    const uint32_t first = number == 0 ? 0 : (own.start + 31) / 32, last = (end + 31) / 32;
    for (uint32_t i = first + thread_index(); i < last; i += PART_THREADS) {
        const uint32_t at = 32 * i;
        uint32_t word = at >= own.start
                            ? read_block_bits(&own, at - own.start)
                            : ZLIB_HEADER | read_block_bits(&own, 0) << ZLIB_HEADER_BITS;
        if (next_start < at)
            word |= trailer >> (at - next_start);
        else if (next_start < at + 32)
            word |= (is_last ? trailer : read_block_bits(&next, 0)) << (next_start - at);
        out[i] = word;
    }
}
