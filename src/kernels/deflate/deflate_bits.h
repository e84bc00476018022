/*
 * The bits of a DEFLATE block: each thread codes its segment, then all segments are shifted to
 * their position, one after the other.
 *
 * A thread writes over its own choices and bytes. Output words go to the two rows in turn:
 *
 *     choice row     w0  w2  w4 ...        input word i of both rows is read before
 *     byte row       w1  w3  w5 ...        output words 2 i and 2 i + 1 are written
 *
 * Output never overtakes input. Input has 16 bits for each byte of the part, and no symbol takes
 * more than 16 bits for each byte it stands for: a literal at most 15 for one byte, a match at most
 * 15 + 5 (length) + 15 + 13 (distance) = 48 for three bytes or more. One word is read ahead.
 */
#ifndef COGPU_KERNELS_DEFLATE_DEFLATE_BITS_H
#define COGPU_KERNELS_DEFLATE_DEFLATE_BITS_H

#include "kernels/deflate/deflate_codes.h"
#include "kernels/deflate/deflate_parse.h"

/* Up to 32 bits, the first to be sent lowest. */
struct bit_string {
    uint32_t bits, count;
};

DEVICE_FN struct bit_string code_symbol(const uint32_t *codes, struct coded_value symbol) {
    const uint32_t code = codes[symbol.number], length = code >> 16;
    const struct bit_string coded = {(code & 0xFFFF) | symbol.extra << length,
                                     length + symbol.extra_bits};
    return coded;
}

/* Literals `first` and `first` + 1 of a step, as far as it has them. */
DEVICE_FN struct bit_string code_two_literals(const uint32_t *codes, const struct word_step *step,
                                              uint32_t first, uint32_t literals) {
    const uint32_t one = first < literals ? codes[step->bytes >> 8 * first & 0xFF] : 0;
    const uint32_t two = first + 1 < literals ? codes[step->bytes >> 8 * (first + 1) & 0xFF] : 0;
    const struct bit_string coded = {(one & 0xFFFF) | (two & 0xFFFF) << (one >> 16),
                                     (one >> 16) + (two >> 16)};
    return coded;
}

/* Writes bits LSB first to the rows of a segment. */
struct segment_writer {
    uint32_t *rows; /* the segment in the choice row; PADDED_WORDS on, in the byte row */
    uint64_t bits;
    uint32_t count, words;
};

DEVICE_FN uint32_t *segment_rows(const struct deflate_shared *shared) {
    return choice_row(shared) + thread_index() * (SEGMENT_WORDS + 1);
}

DEVICE_FN uint32_t *output_word(uint32_t *rows, uint32_t index) {
    return rows + index / 2 + index % 2 * PADDED_WORDS;
}

DEVICE_FN void put_bits(struct segment_writer *w, struct bit_string coded) {
    w->bits |= (uint64_t)coded.bits << w->count;
    w->count += coded.count;
    if (w->count < 32)
        return;
    *output_word(w->rows, w->words++) = (uint32_t)w->bits;
    w->bits >>= 32;
    w->count -= 32;
}

/* Codes the segment of this thread; returns its bits. The last thread adds the end-of-block
 * symbol. */
DEVICE_FN uint32_t code_segment(struct deflate_shared *shared, const struct encode_part *part) {
    const uint32_t begin = segment_begin(), end = segment_end(part), *codes = shared->codes;
    uint32_t *rows = segment_rows(shared), choices = rows[0], bytes = rows[PADDED_WORDS];
    struct segment_writer w = {rows, 0, 0, 0};
    for (uint32_t at = begin; at < end;) {
        const struct word_step step = next_step(at, choices, bytes);
        const uint32_t word = (at - begin) / 4, literals = min_u32(step.literals, end - at);
        /* The distance is in the two bytes after the choice, maybe in the next word. */
        const uint32_t distance =
            funnel_right(choices, rows[word + 1], 8 * (step.match_at % 4)) >> 8 & 0xFFFF;
        at = step.end;
        choices = rows[(at - begin) / 4];
        bytes = rows[(at - begin) / 4 + PADDED_WORDS];
        put_bits(&w, code_two_literals(codes, &step, 0, literals));
        put_bits(&w, code_two_literals(codes, &step, 2, literals));
        if (step.choice == 0)
            continue;
        put_bits(&w, code_symbol(codes, length_symbol(chosen_length(step.choice))));
        put_bits(&w, code_symbol(codes, distance_symbol(distance)));
    }
    if (thread_index() == PART_THREADS - 1) {
        const struct coded_value last = {END_OF_BLOCK, 0, 0};
        put_bits(&w, code_symbol(codes, last));
    }
    *output_word(rows, w.words) = (uint32_t)w.bits;
    return 32 * w.words + w.count;
}

/* Shifts a segment to bit `start` of the output. Its first and last 32-bit words may hold bits
 * of neighbours, so these two are atomic. */
DEVICE_FN void move_segment(const struct deflate_shared *shared, uint32_t start, uint32_t bits,
                            uint32_t *out) {
    uint32_t *rows = segment_rows(shared), previous = 0;
    for (uint32_t i = 0; 32 * i < start % 32 + bits; i++) {
        const uint32_t own = 32 * i <= bits ? *output_word(rows, i) : 0;
        const uint32_t word = funnel_left(previous, own, start % 32);
        uint32_t *to = &out[start / 32 + i];
        if (i == 0 || 32 * (i + 1) > start % 32 + bits)
            atomic_or(to, word);
        else
            *to = word;
        previous = own;
    }
}

/*
 * Writes the DEFLATE block to `out`; returns its bits, or 0 if a stored block is not longer.
 *
 * Warp 0 makes the header, then all warps code their segments. The scan of their bits says where
 * each begins. A word is cleared by the thread whose segment ends in it, so that atomic_or starts
 * from zero; the barrier orders that before move_segment.
 */
DEVICE_FN uint32_t write_block(struct deflate_shared *shared, const struct encode_part *part,
                               uint32_t *out) {
    if (warp_index() == 0)
        make_block_header(shared, part->is_last);
    const uint32_t bits = code_segment(shared, part), inclusive = warp_scan(bits);
    if (lane_index() == WARP - 1)
        shared->warp_sums[warp_index()] = inclusive;
    sync_block();
    uint32_t start = shared->header_bits + inclusive - bits, total = shared->header_bits;
    for (uint32_t i = 0; i < PART_WARPS; i++) {
        start += i < warp_index() ? shared->warp_sums[i] : 0;
        total += shared->warp_sums[i];
    }
    if (total >= 8 * part->bytes + 32)
        return 0;
    for (uint32_t i = thread_index(); i <= shared->header_bits / 32; i += PART_THREADS)
        out[i] = shared->header[i];
    if ((start + bits) / 32 > start / 32)
        out[(start + bits) / 32] = 0;
    sync_block();
    move_segment(shared, start, bits, out);
    return total;
}

#endif
