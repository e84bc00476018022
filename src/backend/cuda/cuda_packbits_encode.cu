/*
 * Takes blocks of bytes, hands on PackBits: a head byte of 0 to 127 is followed by one more literal
 * bytes than it says; one of 129 to 255 by a byte that stands for 257 - head of its kind. None goes
 * from a row into the next.
 *
 * A block of threads for each piece of a block, which is packed as if the block began and ended
 * there; a first time to measure it, a second to write it behind those before it. All that is to
 * know of a byte is a bit, and the bits of 32 bytes are the word of a thread:
 *
 * 1. Is it the same as the one before it, in its row?
 * 2. Is it one of three or more that are the same? Those become runs; what is between two of them
 *    becomes literals.
 * 3. Does a run or literal begin here: where the kind changes, and 128 bytes after such a place as
 *    long as it does not? What lies between two beginnings is packed on its own.
 * 4. Sums of what the bytes of each thread take give the places where it writes.
 */
#include "backend/cuda/cuda_packbits_encode.h"
#include "backend/cuda/simt.h"

enum {
    WORD_BITS = 32,
    PIECE = COGPU_PACKBITS_PIECE,
    THREADS = PIECE / WORD_BITS,
    WARPS = THREADS / WARP,
    WARP_BYTES = WARP * WORD_BITS,
    LONGEST = COGPU_PACKBITS_LONGEST
};

/* A bit for each byte of a piece, and for one word more. */
struct marks {
    uint32_t same[THREADS + 1];   /* as the byte before it */
    uint32_t breaks[THREADS];     /* a row begins */
    uint32_t repeats[THREADS];    /* one of three or more */
    uint32_t begins[THREADS + 1]; /* a run or literal */
    uint32_t sums[WARPS];
};

struct write_shared {
    struct marks marks;
    uint32_t before[WARPS];
    uint8_t packed[2 * PIECE];
};

struct piece {
    uint32_t block, number; /* in the block */
    const uint8_t *in;
    uint32_t size; /* 0: the block has no such piece */
    uint32_t row_bytes;
};

DEVICE_FN uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

DEVICE_FN struct piece piece_of(const struct cogpu_packbits_encode_args *args) {
    struct piece piece;
    piece.block = block_index() / args->pieces;
    piece.number = block_index() % args->pieces;
    const cogpu_uncoded *block = &args->blocks[piece.block];
    const uint32_t begin = piece.number * PIECE;
    piece.in = args->decoded + block->in + begin;
    piece.size = begin < block->in_bytes ? least(block->in_bytes - begin, PIECE) : 0;
    piece.row_bytes = block->row_bytes > 0 ? block->row_bytes : block->in_bytes;
    return piece;
}

/* ---- marks ---- */

/* A warp for 32 bytes. Behind the piece each byte is a row. */
DEVICE_FN void mark_same(struct marks *marks, const struct piece *piece) {
    const uint32_t begin = warp_index() * WARP_BYTES;
    for (uint32_t at = begin + lane_index(); at < begin + WARP_BYTES; at += WARP) {
        const bool is_break =
            at == 0 || at >= piece->size || (piece->number * PIECE + at) % piece->row_bytes == 0;
        const uint32_t same = warp_ballot(!is_break && piece->in[at] == piece->in[at - 1]);
        const uint32_t breaks = warp_ballot(is_break);
        if (lane_index() == 0) {
            marks->same[at / WORD_BITS] = same;
            marks->breaks[at / WORD_BITS] = breaks;
        }
    }
    if (thread_index() == 0) {
        marks->same[THREADS] = 0;
        marks->begins[THREADS] = 1;
    }
}

/* The third of three and more that are the same, in a word; `before` is the word before it. */
DEVICE_FN uint32_t thirds(uint32_t same, uint32_t before) {
    return same & (same << 1 | before >> 31);
}

DEVICE_FN void mark_repeats(struct marks *marks) {
    const uint32_t i = thread_index(), same = marks->same[i];
    const uint32_t here = thirds(same, i > 0 ? marks->same[i - 1] : 0);
    const uint32_t after = thirds(marks->same[i + 1], same);
    marks->repeats[i] = here | (here >> 1 | after << 31) | (here >> 2 | after << 30);
}

/* The largest of the values of all threads before this one; 0 for the first. */
DEVICE_FN uint32_t largest_before(uint32_t *by_warp, uint32_t value) {
    for (uint32_t by = 1; by < WARP; by *= 2) {
        const uint32_t below = warp_read_up(value, by);
        if (lane_index() >= by && below > value)
            value = below;
    }
    if (lane_index() == WARP - 1)
        by_warp[warp_index()] = value;
    uint32_t largest = warp_read_up(value, 1);
    if (lane_index() == 0)
        largest = 0;
    sync_block();
    for (uint32_t i = 0; i < warp_index(); i++)
        largest = by_warp[i] > largest ? by_warp[i] : largest;
    return largest;
}

DEVICE_FN void mark_begins(struct marks *marks) {
    const uint32_t i = thread_index(), repeats = marks->repeats[i];
    const uint32_t after_repeats = repeats << 1 | (i > 0 ? marks->repeats[i - 1] >> 31 : 0);
    uint32_t begins = marks->breaks[i] | (repeats & ~marks->same[i]) | (~repeats & after_repeats);
    const uint32_t last = begins ? WORD_BITS * i + 31 - leading_zeros(begins) : 0;
    const uint32_t further = (largest_before(marks->sums, last) - WORD_BITS * i) % LONGEST;
    if (further < WORD_BITS && (begins & ((2u << further) - 1)) == 0)
        begins |= 1u << further;
    marks->begins[i] = begins;
}

DEVICE_FN void mark(struct marks *marks, const struct piece *piece) {
    mark_same(marks, piece);
    sync_block();
    mark_repeats(marks);
    sync_block();
    mark_begins(marks);
    sync_block();
}

/* ---- runs and literals ---- */

DEVICE_FN bool is_marked(const uint32_t *marks, uint32_t at) {
    return marks[at / WORD_BITS] >> at % WORD_BITS & 1;
}

/* The beginning at or before this place; the first byte is one. */
DEVICE_FN uint32_t begin_of(const struct marks *marks, uint32_t at) {
    uint32_t word = at / WORD_BITS;
    uint32_t begins = marks->begins[word] << (31 - at % WORD_BITS) >> (31 - at % WORD_BITS);
    while (begins == 0)
        begins = marks->begins[--word];
    return WORD_BITS * word + 31 - leading_zeros(begins);
}

/* The beginning behind this place; there is one behind the piece. */
DEVICE_FN uint32_t end_of(const struct marks *marks, uint32_t at) {
    uint32_t word = ++at / WORD_BITS;
    uint32_t begins = marks->begins[word] >> at % WORD_BITS << at % WORD_BITS;
    while (begins == 0)
        begins = marks->begins[++word];
    return WORD_BITS * word + trailing_zeros(begins);
}

/* Two that are the same are a run where they stand alone. */
DEVICE_FN bool is_run(const struct marks *marks, uint32_t begin, uint32_t end) {
    return end - begin > 1 && (is_marked(marks->repeats, begin) ||
                               (end - begin == 2 && is_marked(marks->same, begin + 1)));
}

/* Packs what the 32 bytes of this thread give: heads and bytes of runs that begin here, heads of
 * literals that begin here, and literal bytes. Returns how many bytes; `to` may be NULL. */
DEVICE_FN uint32_t pack(const struct marks *marks, const struct piece *piece, uint8_t *to) {
    const uint32_t stop = least(WORD_BITS * (thread_index() + 1), piece->size);
    uint32_t done = 0, end;
    for (uint32_t at = WORD_BITS * thread_index(); at < stop; at = end) {
        const uint32_t begin = begin_of(marks, at);
        end = end_of(marks, at);
        const bool run = is_run(marks, begin, end);
        const uint32_t literals = run ? at == begin : least(end, stop) - at;
        if (at == begin && to)
            to[done] = (uint8_t)(run ? 257 - (end - begin) : end - begin - 1);
        done += at == begin;
        for (uint32_t i = 0; i < literals && to; i++)
            to[done + i] = piece->in[at + i];
        done += literals;
    }
    return done;
}

/* The sum of the values of all threads before this one, and of all. A barrier. */
DEVICE_FN uint32_t sum_before(uint32_t *by_warp, uint32_t value, uint32_t *total) {
    const uint32_t sum = warp_scan(value);
    uint32_t before = sum - value;
    if (lane_index() == WARP - 1)
        by_warp[warp_index()] = sum;
    sync_block();
    *total = 0;
    for (uint32_t i = 0; i < WARPS; i++) {
        before += i < warp_index() ? by_warp[i] : 0;
        *total += by_warp[i];
    }
    return before;
}

/* ---- kernels ---- */

KERNEL(cogpu_kernel_packbits_measure, struct cogpu_packbits_encode_args, struct marks, THREADS, 8) {
    const struct piece piece = piece_of(args);
    uint32_t total = 0;
    if (piece.size > 0 && args->sizes[piece.block] != COGPU_GPU_SPARSE) {
        mark(shared, &piece);
        sum_before(shared->sums, pack(shared, &piece, NULL), &total);
    }
    if (thread_index() == 0)
        args->packed[block_index()] = total;
}

/* Where the piece begins in the stream. A barrier. */
DEVICE_FN uint32_t packed_before(struct write_shared *shared, const uint32_t *packed,
                                 uint32_t number) {
    uint32_t bytes = 0, total;
    for (uint32_t i = thread_index(); i < number; i += THREADS)
        bytes += packed[i];
    sum_before(shared->before, bytes, &total);
    return total;
}

KERNEL(cogpu_kernel_packbits_write, struct cogpu_packbits_encode_args, struct write_shared, THREADS,
       8) {
    const struct piece piece = piece_of(args);
    const cogpu_uncoded *block = &args->blocks[piece.block];
    if (args->packed[block_index()] == 0)
        return;
    uint32_t total;
    mark(&shared->marks, &piece);
    const uint32_t place =
        sum_before(shared->marks.sums, pack(&shared->marks, &piece, NULL), &total);
    pack(&shared->marks, &piece, shared->packed + place);
    const uint32_t begin =
        packed_before(shared, &args->packed[piece.block * args->pieces], piece.number);
    const uint32_t end = least(begin + total, block->room);
    uint8_t *out = args->slots + block->out;
    for (uint32_t at = begin + thread_index(); at < end; at += THREADS)
        out[at] = shared->packed[at - begin];
    if (piece.number * PIECE + piece.size == block->in_bytes && thread_index() == 0)
        args->sizes[piece.block] = end;
}
