/*
 * PackBits encoder (TIFF 6.0, section 9). A stream is a list of packets, none of which crosses the
 * end of a row:
 *
 *     header 0 to 127      literal packet: header + 1 bytes follow
 *     header 129 to 255    run packet: one byte follows, which stands for 257 - header bytes
 *
 * A sequential encoder goes from packet to packet. Here the rules need no order: each is a bit per
 * byte, and a thread holds the bits of 32 bytes in a word.
 *
 *     row          a a a a b c c d e e e          begins at byte 0
 *     same         0 1 1 1 0 0 1 0 0 1 1          equals the byte before it in the row
 *     in_run       1 1 1 1 0 0 0 0 1 1 1          one of three or more equal bytes
 *     begins       1 0 0 0 1 0 0 0 1 0 0          a packet begins: in_run changes, a run or a row
 *                                                 begins, or 128 bytes after such a byte
 *     packets      run 4   literal 4   run 3      [253 a] [3 b c c d] [254 e]
 *
 * Two equal bytes alone between two packets' beginnings become a run as well.
 *
 * A TIFF block is split into parts of 8 KiB; packets do not cross parts. One thread block of 256
 * threads, 32 bytes each, encodes a part. cogpu_kernel_packbits_measure counts the bytes of each
 * part; cogpu_kernel_packbits_write repeats that and writes each part after the one before it. A
 * scan over the threads gives the position of what each writes, first in shared memory, then in
 * the slot.
 *
 * Synchronisation: block barriers between the four steps. Loop bounds: 32 bytes a thread; the
 * search for the beginning or end of a packet goes through at most 5 words, as packets have at most
 * 128 bytes. Stores are limited by the slot. Output bound: see packbits_bound.
 */
#include "kernels/encode/common.h"
#include "kernels/packbits/packbits_encode_args.h"

enum {
    WORD_BITS = 32,
    PACKBITS_PART = COGPU_PACKBITS_PART_BYTES,
    THREADS = PACKBITS_PART / WORD_BITS,
    WARPS = THREADS / WARP,
    WARP_BYTES = WARP * WORD_BITS,
    PACKET_MAX = COGPU_PACKBITS_PACKET_MAX
};

/* One bit per byte of a part, and one word more. */
struct packbits_marks {
    uint32_t same[THREADS + 1];
    uint32_t row_begins[THREADS];
    uint32_t in_run[THREADS];
    uint32_t begins[THREADS + 1];
    uint32_t sums[WARPS];
};

struct packbits_write_shared {
    struct packbits_marks marks;
    uint32_t sums[WARPS];
    uint8_t packed[2 * PACKBITS_PART];
};

struct packbits_part {
    uint32_t block, number; /* of the TIFF block in the batch; of the part in the block */
    const uint8_t *in;
    uint32_t bytes; /* 0: the block has no such part */
    uint32_t row_bytes;
};

DEVICE_FN struct packbits_part get_packbits_part(const struct cogpu_packbits_encode_args *args) {
    struct packbits_part part;
    part.block = block_index() / args->max_parts;
    part.number = block_index() % args->max_parts;
    const cogpu_raw_block *block = &args->blocks[part.block];
    const uint32_t begin = part.number * PACKBITS_PART;
    part.in = args->decoded + block->in + begin;
    part.bytes = begin < block->in_bytes ? min_u32(block->in_bytes - begin, PACKBITS_PART) : 0;
    part.row_bytes = block->row_bytes > 0 ? block->row_bytes : block->in_bytes;
    return part;
}

/* ---- marks ---------------------------------------------------------------------------------- */

/* Each warp ballots 32 bytes at a time. Past the part every byte is a row of its own. */
DEVICE_FN void mark_same(struct packbits_marks *marks, const struct packbits_part *part) {
    const uint32_t begin = warp_index() * WARP_BYTES;
    for (uint32_t at = begin + lane_index(); at < begin + WARP_BYTES; at += WARP) {
        const bool begins_row = at == 0 || at >= part->bytes ||
                                (part->number * PACKBITS_PART + at) % part->row_bytes == 0;
        const uint32_t same = warp_ballot(!begins_row && part->in[at] == part->in[at - 1]);
        const uint32_t rows = warp_ballot(begins_row);
        if (lane_index() == 0) {
            marks->same[at / WORD_BITS] = same;
            marks->row_begins[at / WORD_BITS] = rows;
        }
    }
    if (thread_index() == 0) {
        marks->same[THREADS] = 0;
        marks->begins[THREADS] = 1;
    }
}

/* Bytes that are the third or later of equal ones; `before` is the previous word of `same`. */
DEVICE_FN uint32_t third_equal(uint32_t same, uint32_t before) {
    return same & (same << 1 | before >> 31);
}

/* A byte is in a run if it, the next or the one after that is the third of equal ones. */
DEVICE_FN void mark_runs(struct packbits_marks *marks) {
    const uint32_t i = thread_index(), same = marks->same[i];
    const uint32_t here = third_equal(same, i > 0 ? marks->same[i - 1] : 0);
    const uint32_t next = third_equal(marks->same[i + 1], same);
    marks->in_run[i] = here | (here >> 1 | next << 31) | (here >> 2 | next << 30);
}

/* The maximum of `value` over all threads before this one; 0 for the first. A block barrier. */
DEVICE_FN uint32_t max_before(uint32_t *warp_maxima, uint32_t value) {
    for (uint32_t by = 1; by < WARP; by *= 2) {
        const uint32_t below = warp_read_up(value, by);
        if (lane_index() >= by && below > value)
            value = below;
    }
    if (lane_index() == WARP - 1)
        warp_maxima[warp_index()] = value;
    uint32_t largest = warp_read_up(value, 1);
    if (lane_index() == 0)
        largest = 0;
    sync_block();
    for (uint32_t i = 0; i < warp_index(); i++)
        largest = warp_maxima[i] > largest ? warp_maxima[i] : largest;
    return largest;
}

/* Packets begin where the marks say, and every 128 bytes after the last such byte. A word has at
 * most one of the latter, before its own first beginning. */
DEVICE_FN void mark_begins(struct packbits_marks *marks) {
    const uint32_t i = thread_index(), in_run = marks->in_run[i];
    const uint32_t after_run = in_run << 1 | (i > 0 ? marks->in_run[i - 1] >> 31 : 0);
    uint32_t begins = marks->row_begins[i] | (in_run & ~marks->same[i]) | (~in_run & after_run);
    const uint32_t last = begins ? WORD_BITS * i + 31 - leading_zeros(begins) : 0;
    const uint32_t further = (max_before(marks->sums, last) - WORD_BITS * i) % PACKET_MAX;
    if (further < WORD_BITS && (begins & ((2u << further) - 1)) == 0)
        begins |= 1u << further;
    marks->begins[i] = begins;
}

DEVICE_FN void mark_part(struct packbits_marks *marks, const struct packbits_part *part) {
    mark_same(marks, part);
    sync_block();
    mark_runs(marks);
    sync_block();
    mark_begins(marks);
    sync_block();
}

/* ---- packets -------------------------------------------------------------------------------- */

DEVICE_FN bool is_marked(const uint32_t *marks, uint32_t at) {
    return marks[at / WORD_BITS] >> at % WORD_BITS & 1;
}

/* The beginning of the packet of a byte; byte 0 is one. */
DEVICE_FN uint32_t find_packet_begin(const struct packbits_marks *marks, uint32_t at) {
    uint32_t word = at / WORD_BITS;
    uint32_t begins = marks->begins[word] << (31 - at % WORD_BITS) >> (31 - at % WORD_BITS);
    while (begins == 0)
        begins = marks->begins[--word];
    return WORD_BITS * word + 31 - leading_zeros(begins);
}

/* The end of the packet of a byte; there is a beginning after the part. */
DEVICE_FN uint32_t find_packet_end(const struct packbits_marks *marks, uint32_t at) {
    uint32_t word = ++at / WORD_BITS;
    uint32_t begins = marks->begins[word] >> at % WORD_BITS << at % WORD_BITS;
    while (begins == 0)
        begins = marks->begins[++word];
    return WORD_BITS * word + trailing_zeros(begins);
}

DEVICE_FN bool is_run_packet(const struct packbits_marks *marks, uint32_t begin, uint32_t end) {
    return end - begin > 1 && (is_marked(marks->in_run, begin) ||
                               (end - begin == 2 && is_marked(marks->same, begin + 1)));
}

/* Writes what the 32 bytes of this thread contribute: headers of packets that begin here, bytes of
 * runs that begin here, and literals. Returns the number of bytes; `to` NULL only counts. */
DEVICE_FN uint32_t pack_bytes(const struct packbits_marks *marks, const struct packbits_part *part,
                              uint8_t *to) {
    const uint32_t stop = min_u32(WORD_BITS * (thread_index() + 1), part->bytes);
    uint32_t packed = 0, end;
    for (uint32_t at = WORD_BITS * thread_index(); at < stop; at = end) {
        const uint32_t begin = find_packet_begin(marks, at);
        end = find_packet_end(marks, at);
        const bool is_run = is_run_packet(marks, begin, end);
        const uint32_t copied = is_run ? at == begin : min_u32(end, stop) - at;
        if (at == begin && to)
            to[packed] = (uint8_t)(is_run ? 257 - (end - begin) : end - begin - 1);
        packed += at == begin;
        for (uint32_t i = 0; i < copied && to; i++)
            to[packed + i] = part->in[at + i];
        packed += copied;
    }
    return packed;
}

/* The sum of `value` over all threads before this one; *total: over all. A block barrier. */
DEVICE_FN uint32_t sum_before(uint32_t *warp_sums, uint32_t value, uint32_t *total) {
    const uint32_t inclusive = warp_scan(value);
    uint32_t before = inclusive - value;
    if (lane_index() == WARP - 1)
        warp_sums[warp_index()] = inclusive;
    sync_block();
    *total = 0;
    for (uint32_t i = 0; i < WARPS; i++) {
        before += i < warp_index() ? warp_sums[i] : 0;
        *total += warp_sums[i];
    }
    return before;
}

/* ---- kernels -------------------------------------------------------------------------------- */

KERNEL(cogpu_kernel_packbits_measure, struct cogpu_packbits_encode_args, struct packbits_marks,
       THREADS, 8) {
    const struct packbits_part part = get_packbits_part(args);
    uint32_t total = 0;
    if (part.bytes > 0 && args->sizes[part.block] != COGPU_GPU_SPARSE) {
        mark_part(shared, &part);
        sum_before(shared->sums, pack_bytes(shared, &part, NULL), &total);
    }
    if (thread_index() == 0)
        args->packed[block_index()] = total;
}

/* Where the part begins in the stream. A block barrier. */
DEVICE_FN uint32_t sum_parts_before(struct packbits_write_shared *shared, const uint32_t *packed,
                                    uint32_t number) {
    uint32_t bytes = 0, total;
    for (uint32_t i = thread_index(); i < number; i += THREADS)
        bytes += packed[i];
    sum_before(shared->sums, bytes, &total);
    return total;
}

KERNEL(cogpu_kernel_packbits_write, struct cogpu_packbits_encode_args, struct packbits_write_shared,
       THREADS, 8) {
    const struct packbits_part part = get_packbits_part(args);
    const cogpu_raw_block *block = &args->blocks[part.block];
    if (args->packed[block_index()] == 0)
        return;
    uint32_t total;
    mark_part(&shared->marks, &part);
    const uint32_t to =
        sum_before(shared->marks.sums, pack_bytes(&shared->marks, &part, NULL), &total);
    pack_bytes(&shared->marks, &part, shared->packed + to);
    const uint32_t begin =
        sum_parts_before(shared, &args->packed[part.block * args->max_parts], part.number);
    const uint32_t end = min_u32(begin + total, block->capacity);
    uint8_t *out = args->slots + block->out;
    for (uint32_t at = begin + thread_index(); at < end; at += THREADS)
        out[at] = shared->packed[at - begin];
    if (part.number * PACKBITS_PART + part.bytes == block->in_bytes && thread_index() == 0)
        args->sizes[part.block] = end;
}
