/*
 * Deflate decoder for few streams, step 1: search for a deflate block in each span of the encoded
 * bytes.
 *
 * The start of a deflate block with dynamic codes (RFC 1951, 3.2.7) is recognised by its header,
 * at any bit, in three tests:
 *
 *     1. block type, HLIT and HDIST                  22 % of random bits pass; 32 positions at once
 *     2. the Kraft sum of the precode is exactly 1   of these 1 in 250; five table lookups
 *     3. all code lengths, both codes complete       of these none but true headers, nearly always
 *
 * The bits of a part are tested for 1 and 2. Then each thread takes one of the candidates that are
 * left and makes test 3. Most of these fail after some dozens of code lengths, true headers have
 * hundreds, so what counts is latency: all candidates of a part are tested at the same time.
 *
 * The first start found is the span's anchor. It is a guess: the walk from the anchor before proves
 * it (inflate_few_walk.cu). A span without an anchor does no harm. The first span of a stream
 * begins with the zlib header.
 */
#define INFLATE_THREADS      384
#define INFLATE_SEGMENT_BITS 72
#define INFLATE_SLICE_BYTES  256
#include "kernels/deflate/inflate_few.h"
#include "kernels/deflate/inflate_header.h"

enum {
    STEP_BYTES = 12 * INFLATE_THREADS, /* staged at once: three words per thread */
    STEP_QUADS = STEP_BYTES / 16,
    STAGE_QUADS = STEP_QUADS + 1, /* a candidate's precode ends up to 74 bits after its start */
    PART_QUADS = 4 * STEP_QUADS,  /* in random bits it has about 140 candidates */
    CANDIDATES_MAX = 512,         /* of a part. Others are not tested. */
    TABLES = 192,                 /* candidates that are tested at the same time */
    PRECODE_ENTRIES = 128,
    HEADER_BITS_LEAST = 3 + 14 + 4 * 3, /* up to the code lengths */
    KRAFT_ONE = 128 /* Kraft sum of a complete precode: its codes have up to 7 bits */
};

struct search_shared {
    union {
        uint32_t stage[4 * STAGE_QUADS];
        uint16_t tables[PRECODE_ENTRIES * TABLES]; /* entry i of table t at i * TABLES + t */
    };
    uint8_t kraft[4096];                 /* Kraft sum of four precode lengths */
    uint32_t candidates[CANDIDATES_MAX]; /* bits */
    uint32_t count;
    uint32_t found; /* bit of the first header */
};

DEVICE_FN void fill_kraft_table(struct search_shared *s) {
    for (uint32_t i = thread_index(); i < 4096; i += THREADS) {
        uint32_t sum = 0;
        for (uint32_t k = 0; k < 12; k += 3)
            sum += i >> k & 7 ? (uint32_t)KRAFT_ONE >> (i >> k & 7) : 0;
        s->kraft[i] = (uint8_t)min_u32(sum, 255);
    }
}

/* Starts in the 32 bits from `low` on that pass the first test, as a mask. Bit 1 of the header is 0
 * and bit 2 is 1 (BTYPE 2); HLIT in bits 3 to 7 and HDIST in bits 8 to 12 are below 30. */
DEVICE_FN uint32_t filter_types(uint32_t low, uint32_t high) {
    uint32_t literals = ~0u, distances = ~0u;
    UNROLL
    for (uint32_t i = 1; i < 5; i++) {
        literals &= funnel_right(low, high, 3 + i);
        distances &= funnel_right(low, high, 8 + i);
    }
    return ~funnel_right(low, high, 1) & funnel_right(low, high, 2) & ~literals & ~distances;
}

/* Whether the precode that begins at HCLEN, in bit 13 of a header at `bit`, is complete. */
DEVICE_FN bool has_complete_precode(const struct search_shared *s, uint32_t bit) {
    enum { HCLEN_BIT = 13 };
    uint32_t low = peek_bits_at(s->stage, bit + HCLEN_BIT),
             high = peek_bits_at(s->stage, bit + HCLEN_BIT + 32);
    /* Bits that count: HCLEN itself, and 3 for each length. */
    uint32_t used = 4 + 3 * (4 + (low & 15));
    low &= used < 32 ? (1u << used) - 1 : ~0u;
    high &= used > 32 ? (1u << (used - 32)) - 1 : 0; /* 61 at most */
    uint32_t middle = funnel_right(low, high, 28);
    return s->kraft[low >> 4 & 4095] + s->kraft[low >> 16 & 4095] + s->kraft[middle & 4095] +
               s->kraft[middle >> 12 & 4095] + s->kraft[high >> 20 & 4095] ==
           KRAFT_ONE;
}

/* Collects the starts in so many staged words that pass the first two tests. `staged`: first bit of
 * the stage. */
DEVICE_FN void collect_candidates(struct search_shared *s, uint32_t words, uint32_t staged) {
    for (uint32_t i = thread_index(); i < words; i += THREADS) {
        uint32_t mask = filter_types(s->stage[i], s->stage[i + 1]);
        for (; mask != 0; mask &= mask - 1) {
            uint32_t bit = 32 * i + trailing_zeros(mask);
            if (!has_complete_precode(s, bit))
                continue;
            uint32_t at = atomic_add(&s->count, 1);
            if (at < CANDIDATES_MAX)
                s->candidates[at] = staged + bit;
        }
    }
}

/* Entry of a precode table here, other than in inflate_header.h:
 *
 *     15      11 10       7 6         4 3           0
 *     | length   | all bits | code bits | repetitions |      length 0: as before; 16: no code
 */
DEVICE_FN uint32_t candidate_entry(uint32_t symbol, uint32_t bits) {
    const uint32_t extra = symbol < 16 ? 0 : symbol == 16 ? 2 : symbol == 17 ? 3 : 7;
    const uint32_t length = symbol == 16 ? 0 : symbol == 0 || symbol > 16 ? 16 : symbol;
    const uint32_t repetitions = symbol < 16 ? 1 : symbol == 18 ? 11 : 3;
    return length << 11 | (bits + extra) << 7 | bits << 4 | repetitions;
}

/* Fills the table of a complete precode, whose HCLEN is at `bit`. Lengths, counts and codes are
 * packed in 64 bits. Returns the bit after the precode. */
DEVICE_FN uint32_t fill_candidate_table(const uint32_t *words, uint32_t bit, uint16_t *table) {
    const uint32_t count = 4 + (peek_bits_at(words, bit) & 15);
    uint64_t sent = peek_bits_at(words, bit + 4) | (uint64_t)peek_bits_at(words, bit + 36) << 32;
    uint64_t lengths = 0, counts = 0, codes = 0; /* 3 bits of each symbol; 8 bits of each length */
    for (uint32_t i = 0; i < count; i++, sent >>= 3) {
        lengths |= (sent & 7) << 3 * precode_order[i];
        counts += (uint64_t)1 << 8 * (sent & 7);
    }
    for (uint32_t length = 1, code = 0; length < 8; length++) {
        codes |= (uint64_t)code << 8 * length;
        code += (uint32_t)(counts >> 8 * length & 0xFF) << (7 - length);
    }
    for (uint32_t symbol = 0; symbol < PRECODE_SYMBOLS; symbol++, lengths >>= 3) {
        const uint32_t length = lengths & 7, entry = candidate_entry(symbol, length);
        uint32_t i = reverse_bits32((uint32_t)(codes >> 8 * length)) >> 25;
        if (length == 0)
            continue;
        codes += (uint64_t)(KRAFT_ONE >> length) << 8 * length;
        for (; i < PRECODE_ENTRIES; i += 1u << length)
            table[i * TABLES] = (uint16_t)entry;
    }
    return bit + 4 + 3 * count;
}

/* Whether the code lengths from a bit on make two complete codes. There may be one distance or
 * none: then half of the codes or all are free. */
DEVICE_FN bool has_complete_codes(const uint32_t *words, uint32_t bit, uint32_t bit_end,
                                  struct symbol_counts counts, const uint16_t *table) {
    const uint32_t total = counts.literals + counts.distances;
    struct bit_reader reader = open_reader(words, bit);
    /* A repetition at the start has a weight that no sum may have. */
    uint32_t kraft = 0, weight = 2 * CODE_END;
    for (uint32_t n = 0; n < total;) {
        const uint32_t bits = peek_bits(&reader), entry = table[(bits & 127) * TABLES];
        const uint32_t length = entry >> 11, all_bits = entry >> 7 & 15, code_bits = entry >> 4 & 7;
        const uint32_t repetitions =
            (entry & 15) + (bits >> code_bits & ((1u << (all_bits - code_bits)) - 1));
        weight = length > 0 ? (uint32_t)CODE_END >> length : weight;
        kraft += repetitions * weight;
        if (n < counts.literals && n + repetitions >= counts.literals) {
            const uint32_t of_distances = (n + repetitions - counts.literals) * weight;
            if (kraft - of_distances != CODE_END)
                return false;
            kraft = of_distances;
        }
        n += repetitions;
        skip_bits(&reader, words, all_bits);
        if (kraft > CODE_END || n > total || reader.bit >= bit_end)
            return false;
    }
    return kraft == CODE_END || kraft == CODE_END / 2 || kraft == 0;
}

/* Reads the headers of all candidates, one per thread, and keeps the first that is valid. By all
 * threads. */
DEVICE_FN void test_candidates(struct search_shared *s, const uint32_t *words, uint32_t bit_end) {
    enum { HCLEN_BIT = 13 };
    const uint32_t count = min_u32(s->count, CANDIDATES_MAX);
    uint16_t *table = s->tables + thread_index();
    for (uint32_t i = thread_index(); i < count && thread_index() < TABLES; i += TABLES) {
        const uint32_t bit = s->candidates[i];
        if (bit + HEADER_BITS_LEAST >= bit_end)
            continue;
        const struct symbol_counts counts = read_symbol_counts(words, bit + 3);
        const uint32_t lengths = fill_candidate_table(words, bit + HCLEN_BIT, table);
        if (has_complete_codes(words, lengths, bit_end, counts, table))
            atomic_min(&s->found, bit);
    }
}

/* Stages the quads from one on, with zeros after the last one. */
DEVICE_FN void stage_quads(struct search_shared *s, const uint8_t *quads, uint32_t first,
                           uint32_t quad_count) {
    for (uint32_t i = thread_index(); i < STAGE_QUADS; i += THREADS) {
        const words4 zeros = {0, 0, 0, 0};
        store_words4(&s->stage[4 * i], first + i < quad_count
                                           ? load_words4(quads + 16 * (size_t)(first + i))
                                           : zeros);
    }
}

/* Searches the bytes between two quads of a stream. Returns the bit of the first header, 0 if there
 * is none. By all threads. */
DEVICE_FN uint32_t search_quads(struct search_shared *s, const uint8_t *quads, uint32_t first,
                                uint32_t last, uint32_t quad_count, uint32_t bit_end) {
    enum { NOT_FOUND = 0x7FFFFFFF };
    for (uint32_t part = first; part < last; part += PART_QUADS) {
        const uint32_t part_end = min_u32(part + PART_QUADS, last);
        sync_block();
        if (thread_index() == 0) {
            s->count = 0;
            s->found = NOT_FOUND;
        }
        for (uint32_t quad = part; quad < part_end; quad += STEP_QUADS) {
            stage_quads(s, quads, quad, quad_count);
            sync_block();
            collect_candidates(s, 4 * min_u32(part_end - quad, STEP_QUADS), quad * QUAD_BITS);
            sync_block();
        }
        test_candidates(s, (const uint32_t *)(const void *)quads, bit_end);
        sync_block();
        if (s->found != NOT_FOUND)
            return s->found;
    }
    return 0;
}

KERNEL(cogpu_kernel_inflate_few_search, struct cogpu_inflate_few_args, struct search_shared,
       INFLATE_THREADS, 4) {
    const uint32_t spans = args->streams[args->count].first_span;
    fill_kraft_table(shared);
    for (uint32_t span = block_index(); span < spans; span += block_count()) {
        const uint32_t stream = stream_of_span(args, span), skew = stream_skew(args, stream);
        const uint32_t index = span - args->streams[stream].first_span;
        if (index == 0)
            continue;
        const cogpu_encoded_block *block = &args->blocks[stream];
        const uint32_t quad_count = (skew + block->in_bytes + 15) / 16,
                       span_quads = args->span_bytes / 16, first = index * span_quads;
        uint32_t bit = search_quads(shared, args->stored + block->in - skew, first,
                                    min_u32(first + span_quads, quad_count), quad_count,
                                    stream_bit_end(args, stream));
        if (thread_index() == 0)
            args->anchors[span].start = bit;
    }
}
