/*
 * Writes sequences of literals and matches as one block of a deflate stream (RFC 1951 3.2).
 *
 * Codes are Huffman codes of the block's own symbols, none longer than SYMBOL_BITS_MAX. Bits are
 * collected in 64-bit words and stored without a branch, four literals at a time.
 */
#include "codec/deflate_block.h"

#include "base/bytes.h"
#include "base/checked.h"

enum {
    REPEATED = 16,   /* among the symbols of code lengths: the one before, 3 to 6 times */
    FEW_ZEROS = 17,  /* 3 to 10 */
    MANY_ZEROS = 18, /* 11 to 138 */
    CODE_LENGTHS = 19,
    CODE_LENGTH_BITS_MAX = 7
};

/* ---- codes ---- */

typedef struct huffman_code {
    uint16_t bits[LITLENS]; /* as they are stored, from the lowest on */
    uint8_t lengths[LITLENS];
} huffman_code;

/* Shell sort: there are few, often half sorted. */
static void sort_keys(uint64_t *keys, size_t count) {
    static const size_t gaps[] = {132, 57, 23, 10, 4, 1};
    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++)
        for (size_t i = gaps[g]; i < count; i++) {
            const uint64_t key = keys[i];
            size_t j = i;
            for (; j >= gaps[g] && keys[j - gaps[g]] > key; j -= gaps[g])
                keys[j] = keys[j - gaps[g]];
            keys[j] = key;
        }
}

/* Number of symbols of each code length. Huffman's algorithm with two queues: weights and sums are
 * both ascending, and the two smallest of both are joined until one is left. Codes that are too
 * long are shortened to `most`, and others lengthened until Kraft's sum is 1 again. */
static void count_lengths(const uint64_t *sorted, unsigned count, unsigned most,
                          unsigned *of_length) {
    uint64_t weights[2 * LITLENS];
    uint16_t parents[2 * LITLENS];
    unsigned depths[2 * LITLENS];
    unsigned leaf = 0, inner = count;
    for (unsigned i = 0; i < count; i++)
        weights[i] = sorted[i] >> 16;
    for (unsigned made = count; made < 2 * count - 1; made++) {
        weights[made] = 0;
        for (int side = 0; side < 2; side++) {
            const unsigned least =
                leaf < count && (inner == made || weights[leaf] <= weights[inner]) ? leaf++
                                                                                   : inner++;
            weights[made] += weights[least];
            parents[least] = (uint16_t)made;
        }
    }
    depths[2 * count - 2] = 0;
    uint32_t unused = 1u << most; /* unused bit patterns of length `most`; wraps below 0 */
    for (unsigned i = 2 * count - 2; i-- > 0;) {
        depths[i] = depths[parents[i]] + 1;
        if (i < count) {
            const unsigned length = depths[i] < most ? depths[i] : most;
            of_length[length]++;
            unused -= 1u << (most - length);
        }
    }
    for (; unused != 0; unused++) {
        unsigned shorter = most - 1;
        while (of_length[shorter] == 0)
            shorter--;
        of_length[shorter]--;
        of_length[shorter + 1] += 2;
        of_length[most]--;
    }
}

static uint16_t reverse_bits(unsigned bits, unsigned count) {
    unsigned result = 0;
    for (; count > 0; count--, bits >>= 1)
        result = result << 1 | (bits & 1);
    return (uint16_t)result;
}

/* Codes of at least two symbols, used or not: some decoders refuse fewer. */
static void make_code(huffman_code *c, const uint32_t *uses, unsigned symbols, unsigned most) {
    uint64_t sorted[LITLENS];
    unsigned count = 0, of_length[SYMBOL_BITS_MAX + 1] = {0}, next[SYMBOL_BITS_MAX + 2] = {0};
    for (unsigned i = 0; i < symbols; i++)
        if (uses[i])
            sorted[count++] = (uint64_t)uses[i] << 16 | i;
    for (unsigned i = 0; count < 2; i++)
        if (!uses[i])
            sorted[count++] = i;
    sort_keys(sorted, count);
    count_lengths(sorted, count, most, of_length);
    memset(c->lengths, 0, symbols);
    for (unsigned length = most, i = 0; length > 0; length--)
        for (unsigned left = of_length[length]; left > 0; left--)
            c->lengths[sorted[i++] & 0xFFFF] = (uint8_t)length;
    for (unsigned length = 1; length <= most; length++)
        next[length + 1] = (next[length] + of_length[length]) << 1;
    for (unsigned i = 0; i < symbols; i++)
        if (c->lengths[i])
            c->bits[i] = reverse_bits(next[c->lengths[i]]++, c->lengths[i]);
}

/* Both lists of code lengths, run-length encoded (RFC 1951 3.2.7). */
typedef struct code_header {
    unsigned litlens, distances, code_lengths, count;
    uint8_t symbols[LITLENS + DISTANCES], repeats[LITLENS + DISTANCES];
    huffman_code code;
} code_header;

static const uint8_t code_length_order[CODE_LENGTHS] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                        11, 4,  12, 3, 13, 2, 14, 1, 15};

static unsigned repeat_bits(unsigned number) {
    return number == REPEATED ? 2 : number == FEW_ZEROS ? 3 : number == MANY_ZEROS ? 7 : 0;
}

static unsigned without_zeros(const uint8_t *lengths, unsigned count, unsigned least) {
    while (count > least && lengths[count - 1] == 0)
        count--;
    return count;
}

static void add_to_header(code_header *h, unsigned number, size_t repeats) {
    h->symbols[h->count] = (uint8_t)number;
    h->repeats[h->count++] = (uint8_t)repeats;
}

/* A code length that occurs `run` times. */
static void add_run(code_header *h, unsigned length, size_t run) {
    for (size_t part; length == 0 && run >= 3; run -= part) {
        part = run < 138 ? run : 138;
        if (part < 11)
            add_to_header(h, FEW_ZEROS, part - 3);
        else
            add_to_header(h, MANY_ZEROS, part - 11);
    }
    if (run >= 4) {
        add_to_header(h, length, 0);
        run--;
        for (size_t part; run >= 3; run -= part) {
            part = run < 6 ? run : 6;
            add_to_header(h, REPEATED, part - 3);
        }
    }
    for (; run > 0; run--)
        add_to_header(h, length, 0);
}

/* Returns the header's bits. */
static uint64_t build_code_header(code_header *h, const huffman_code *litlens,
                                  const huffman_code *distances) {
    uint8_t lengths[LITLENS + DISTANCES], ordered[CODE_LENGTHS];
    uint32_t uses[CODE_LENGTHS] = {0};
    h->count = 0;
    h->litlens = without_zeros(litlens->lengths, LITLENS, FIRST_LENGTH);
    h->distances = without_zeros(distances->lengths, DISTANCES, 1);
    memcpy(lengths, litlens->lengths, h->litlens);
    memcpy(lengths + h->litlens, distances->lengths, h->distances);
    for (size_t i = 0, run; i < h->litlens + h->distances; i += run) {
        for (run = 1; i + run < h->litlens + h->distances && lengths[i + run] == lengths[i];)
            run++;
        add_run(h, lengths[i], run);
    }
    for (size_t i = 0; i < h->count; i++)
        uses[h->symbols[i]]++;
    make_code(&h->code, uses, CODE_LENGTHS, CODE_LENGTH_BITS_MAX);
    for (size_t i = 0; i < CODE_LENGTHS; i++)
        ordered[i] = h->code.lengths[code_length_order[i]];
    h->code_lengths = without_zeros(ordered, CODE_LENGTHS, 4);
    uint64_t bits = 3 + 5 + 5 + 4 + 3 * h->code_lengths;
    for (unsigned i = 0; i < CODE_LENGTHS; i++)
        bits += (uint64_t)uses[i] * (h->code.lengths[i] + repeat_bits(i));
    return bits;
}

/* ---- bits ---- */

static inline void add_bits(bit_writer *w, uint64_t bits, unsigned count) {
    w->bits |= bits << w->count;
    w->count += count;
}

/* Keeps 7 bits at most. Stores 8 bytes; the next store overwrites the unused ones. */
static inline void flush_bits(bit_writer *w) {
    const uint64_t bits = COGPU_HOST_BIG_ENDIAN ? __builtin_bswap64(w->bits) : w->bits;
    memcpy(w->out, &bits, sizeof bits);
    w->out += w->count >> 3;
    w->bits >>= w->count & ~7u;
    w->count &= 7;
}

static void put_bits(bit_writer *w, uint64_t bits, unsigned count) {
    add_bits(w, bits, count);
    flush_bits(w);
}

void cogpu_deflate_fill_byte(bit_writer *w) {
    w->out += w->count > 0;
    w->bits = w->count = 0;
}

/* As several stored blocks (RFC 1951 3.2.4) if they exceed one. */
static void put_stored(bit_writer *w, const uint8_t *in, size_t bytes, bool is_last) {
    size_t part;
    do {
        part = bytes < STORED_BYTES ? bytes : STORED_BYTES;
        put_bits(w, is_last && part == bytes, 3);
        cogpu_deflate_fill_byte(w);
        store_little(part, w->out, 2);
        store_little(~part, w->out + 2, 2);
        memcpy(w->out + 4, in, part);
        w->out += 4 + part;
        in += part;
        bytes -= part;
    } while (bytes > 0);
}

static inline void add_symbol(bit_writer *w, const huffman_code *c, unsigned number) {
    add_bits(w, c->bits[number], c->lengths[number]);
}

static void put_header(bit_writer *w, const code_header *h, bool is_last) {
    put_bits(w, is_last | 2 << 1, 3);
    put_bits(w, h->litlens - FIRST_LENGTH, 5);
    put_bits(w, h->distances - 1, 5);
    put_bits(w, h->code_lengths - 4, 4);
    for (size_t i = 0; i < h->code_lengths; i++)
        put_bits(w, h->code.lengths[code_length_order[i]], 3);
    for (size_t i = 0; i < h->count; i++) {
        add_symbol(w, &h->code, h->symbols[i]);
        put_bits(w, h->repeats[i], repeat_bits(h->symbols[i]));
    }
}

static inline void put_match(bit_writer *w, const sequence *s, const huffman_code *litlens,
                             const huffman_code *distances) {
    const symbol length = length_symbol(s->length), distance = distance_symbol(s->distance);
    add_symbol(w, litlens, length.number);
    add_bits(w, length.extra, length.extra_bits);
    add_symbol(w, distances, distance.number);
    add_bits(w, distance.extra, distance.extra_bits);
    flush_bits(w);
}

/* Works on a copy of the writer, which the compiler keeps in registers. */
static void put_sequences(bit_writer *to, const sequence *sequences, size_t count,
                          const uint8_t *in, const huffman_code *litlens,
                          const huffman_code *distances) {
    bit_writer w = *to;
    for (const sequence *s = sequences; s < sequences + count; s++) {
        size_t left = s->literals;
        for (; left >= 4; left -= 4, in += 4) {
            add_symbol(&w, litlens, in[0]);
            add_symbol(&w, litlens, in[1]);
            add_symbol(&w, litlens, in[2]);
            add_symbol(&w, litlens, in[3]);
            flush_bits(&w);
        }
        for (; left > 0; left--)
            add_symbol(&w, litlens, *in++);
        flush_bits(&w);
        if (s->length > 0)
            put_match(&w, s, litlens, distances);
        in += s->length;
    }
    add_symbol(&w, litlens, END);
    flush_bits(&w);
    *to = w;
}

static unsigned length_extra_bits(unsigned litlen) {
    return litlen < FIRST_LENGTH + 8 || litlen == LITLENS - 1 ? 0 : (litlen - FIRST_LENGTH) / 4 - 1;
}

static uint64_t symbol_bits(const counts *uses, const huffman_code *litlens,
                            const huffman_code *distances) {
    uint64_t bits = 0;
    for (unsigned i = 0; i < LITLENS; i++)
        bits += (uint64_t)uses->litlens[i] * (litlens->lengths[i] + length_extra_bits(i));
    for (unsigned i = 0; i < DISTANCES; i++)
        bits += (uint64_t)uses->distances[i] * (distances->lengths[i] + distance_extra_bits(i));
    return bits;
}

void cogpu_deflate_put_block(bit_writer *to, const uint8_t *in, size_t bytes,
                             const sequence *sequences, size_t count, const counts *uses,
                             bool is_last) {
    huffman_code litlens, distances;
    code_header h;
    counts all = *uses;
    all.litlens[END]++;
    make_code(&litlens, all.litlens, LITLENS, SYMBOL_BITS_MAX);
    make_code(&distances, all.distances, DISTANCES, SYMBOL_BITS_MAX);
    const uint64_t bits =
        build_code_header(&h, &litlens, &distances) + symbol_bits(&all, &litlens, &distances);
    if (bits < 8 * (uint64_t)bytes + STORED_HEADER_BITS * divide_up(bytes, STORED_BYTES)) {
        put_header(to, &h, is_last);
        put_sequences(to, sequences, count, in, &litlens, &distances);
    } else {
        put_stored(to, in, bytes, is_last);
    }
}
