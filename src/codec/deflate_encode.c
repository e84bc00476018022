/*
 * Our own deflate encoder (RFC 1951), for predicted rasters of measured values: as small as
 * libdeflate's level 6 within some per mille, in about half the time.
 *
 * Such bytes are mostly noise. In noise a match is rare and saves a bit or two; elsewhere, as in
 * the high bytes of floating-point numbers, literals cost 1 to 3 bits and most matches cost more
 * than the literals they replace. So each match has a gain: the price of its literals minus its
 * own, by the codes that the last tens of kilobytes would have had.
 *
 * The search is cheap. It looks at three positions, the last ones with the same 8, 5 and 4 bytes,
 * with one branch. While too many searches find no gain, positions are skipped, more and more of
 * them; a match that is found grows backwards over skipped positions. A match yields to one of
 * higher gain that begins a byte later (lazy matching).
 *
 * Input is processed in segments. Prices are updated after each. Segments share a block of the
 * stream until codes of its own would save a segment more than a header.
 */
#include "codec/deflate_encode.h"

#include "base/bytes.h"
#include "codec/deflate_block.h"

enum {
    WINDOW = 32 << 10,
    MATCH_MIN = 4, /* deflate allows 3, which gain nothing in noise */
    HASH_BITS = 15,
    SEGMENT_BYTES = 16 << 10,
    SEGMENT_SEQUENCES = SEGMENT_BYTES / MATCH_MIN + 1, /* at most */
    BLOCK_BYTES = 512 << 10,                           /* at most, and a segment */
    BLOCK_SEQUENCES = 16 << 10,

    BIT = 1024,                  /* unit of prices */
    SEARCH_COST = BIT / 4,       /* gain that pays for a search */
    DEBT_A_STEP = 128,           /* failed searches until positions are skipped */
    DEBT_MAX = 15 * DEBT_A_STEP, /* so that at most 15 are */
    LAZY_LENGTH = 16,            /* matches of this length are accepted at once */
    SPLIT_GAIN = 800 * BIT       /* a header, and what short segments seem to save */
};

typedef struct encoder {
    /* Last position of the bytes of a hash: its low 16 bits. One that is 64 KiB or more back seems
     * nearer than it is. No harm: any position in the window with the same bytes is as good. */
    uint16_t last_8[1 << HASH_BITS], last_5[1 << HASH_BITS], last_4[1 << HASH_BITS];

    uint32_t literal_price[LITERALS], length_price[MATCH_MAX + 1], distance_price[DISTANCES];
    uint32_t price_before[SEGMENT_BYTES + 1]; /* of the segment's bytes as literals, summed up */

    counts segment, block, recent; /* recent: of this and earlier segments, these counting less */
    sequence sequences[BLOCK_SEQUENCES];
    size_t sequence_count;

    bit_writer writer;
} encoder;

const size_t cogpu_deflate_memory_bytes = sizeof(encoder);

/* ---- prices ---- */

/* log2 in BITs; 0 for 0. A cubic between powers of two, exact to a thousandth, and the same on each
 * machine. */
static inline uint32_t log2_of(uint32_t value) {
    const unsigned top = log2_floor(value);
    const uint32_t x = (uint32_t)(((uint64_t)value << 16 >> top) & 0xFFFF); /* of 2^16 */
    const uint32_t arch = (uint32_t)((uint64_t)x * (0x10000 - x) >> 16);
    const uint32_t height = 27702 - (10486 * x >> 16);
    return top * BIT + ((x + (arch * height >> 16)) >> 6);
}

static uint32_t sum_of(const uint32_t *values, size_t count) {
    uint32_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

/* Price of a symbol that occurs `count` times of a total; of one that never did, a bit more than of
 * one that occurred once. */
static uint32_t price_of(uint32_t count, uint32_t total_log2) {
    const uint32_t price = count ? total_log2 - log2_of(count) : total_log2 + BIT;
    return price < BIT ? BIT : price < SYMBOL_BITS_MAX * BIT ? price : SYMBOL_BITS_MAX * BIT;
}

static void set_prices(encoder *e) {
    const uint32_t litlens_log2 = log2_of(sum_of(e->recent.litlens, LITLENS) + 1);
    const uint32_t distances_log2 = log2_of(sum_of(e->recent.distances, DISTANCES) + 1);
    for (unsigned i = 0; i < LITERALS; i++)
        e->literal_price[i] = price_of(e->recent.litlens[i], litlens_log2);
    for (unsigned i = MATCH_MIN; i <= MATCH_MAX; i++) {
        const symbol s = length_symbol(i);
        e->length_price[i] =
            price_of(e->recent.litlens[s.number], litlens_log2) + s.extra_bits * BIT;
    }
    for (unsigned i = 0; i < DISTANCES; i++)
        e->distance_price[i] =
            price_of(e->recent.distances[i], distances_log2) + distance_extra_bits(i) * BIT;
}

/* First prices: the segment's bytes, and typical matches. */
static void guess_prices(encoder *e, const uint8_t *in, size_t bytes) {
    e->recent = (counts){0};
    for (size_t i = 0; i < bytes; i++)
        e->recent.litlens[in[i]]++;
    for (unsigned i = FIRST_LENGTH; i < LITLENS; i++)
        e->recent.litlens[i] = (uint32_t)bytes / 64;
    for (unsigned i = 0; i < DISTANCES; i++)
        e->recent.distances[i] = 1;
    set_prices(e);
}

static void decay_counts(uint32_t *values, const uint32_t *more, size_t count) {
    for (size_t i = 0; i < count; i++)
        values[i] = values[i] - values[i] / 4 + more[i];
}

static void update_prices(encoder *e) {
    decay_counts(e->recent.litlens, e->segment.litlens, LITLENS);
    decay_counts(e->recent.distances, e->segment.distances, DISTANCES);
    set_prices(e);
}

/* ---- matches ---- */

/* A part of the input. Matches may begin before `searched`. */
typedef struct segment {
    const uint8_t *in;
    size_t first, bytes, searched;
} segment;

typedef struct match {
    uint32_t length, distance;
    int32_t gain; /* 0 or less: none */
} match;

/* Records a position under the hash of `bytes`; returns the distance to the one it replaces. */
static inline uint16_t swap_last(uint16_t *last, uint64_t bytes, uint16_t here) {
    uint16_t *last_position = &last[bytes * UINT64_C(0x9E3779B185EBCA87) >> (64 - HASH_BITS)];
    const uint16_t distance = (uint16_t)(here - *last_position);
    *last_position = here;
    return distance;
}

typedef struct distances {
    uint16_t of_8, of_5, of_4;
} distances;

static inline distances record_position(encoder *e, const segment *s, size_t at) {
    const uint64_t bytes = load_u64(s->in + at, false);
    const uint16_t here = (uint16_t)(s->first + at);
    return (distances){.of_8 = swap_last(e->last_8, bytes, here),
                       .of_5 = swap_last(e->last_5, bytes << 24, here),
                       .of_4 = swap_last(e->last_4, bytes << 32, here)};
}

static inline unsigned equal_bytes(const uint8_t *a, const uint8_t *b, unsigned most) {
    unsigned equal = MATCH_MIN; /* the caller has compared them */
    for (; equal + 8 <= most; equal += 8) {
        const uint64_t difference = load_u64(a + equal, false) ^ load_u64(b + equal, false);
        if (difference)
            return equal + (unsigned)__builtin_ctzll(difference) / 8;
    }
    while (equal < most && a[equal] == b[equal])
        equal++;
    return equal;
}

static inline int32_t gain_of(const encoder *e, size_t at, unsigned length, unsigned distance) {
    return (int32_t)(e->price_before[at + length] - e->price_before[at] - e->length_price[length] -
                     e->distance_price[distance_symbol(distance).number]);
}

static inline bool begins_match(const uint8_t *in, uint16_t distance) {
    return ((uint16_t)(distance - 1) < WINDOW) &
           (load_u32(in - distance, false) == load_u32(in, false));
}

/* The best match at a position, which is recorded. A distance is at most the position: in the first
 * 64 KiB recorded positions are exact and none is higher; later every 16-bit distance is valid. So
 * all candidates may be read before it is known whether they are within the window. */
static inline match find_match(encoder *e, const segment *s, size_t at) {
    const uint8_t *in = s->in + at;
    const distances back = record_position(e, s, at);
    const bool has_8 = begins_match(in, back.of_8), has_5 = begins_match(in, back.of_5),
               has_4 = begins_match(in, back.of_4);
    if (!(has_8 | has_5 | has_4))
        return (match){0};
    const size_t left = s->bytes - at;
    match found = {.distance = has_8 ? back.of_8 : has_5 ? back.of_5 : back.of_4};
    found.length =
        equal_bytes(in, in - found.distance, left < MATCH_MAX ? (unsigned)left : MATCH_MAX);
    found.gain = gain_of(e, at, found.length, found.distance);
    return found;
}

static inline void count_literals(encoder *e, const uint8_t *in, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        e->segment.litlens[in[i]]++;
}

static inline void add_match(encoder *e, size_t literals, const match *m) {
    e->segment.litlens[length_symbol(m->length).number]++;
    e->segment.distances[distance_symbol(m->distance).number]++;
    e->sequences[e->sequence_count++] =
        (sequence){(uint32_t)literals, (uint16_t)m->length, (uint16_t)m->distance};
}

static void sum_prices(encoder *e, const segment *s) {
    e->price_before[0] = 0;
    for (size_t i = 0; i < s->bytes; i++)
        e->price_before[i + 1] = e->price_before[i] + e->literal_price[s->in[i]];
}

/* Divides a segment into sequences and counts their symbols. */
static void parse_segment(encoder *e, const segment *s) {
    size_t at = 0, done = 0, debt = 0;
    e->segment = (counts){0};
    sum_prices(e, s);
    while (at < s->searched) {
        match found = find_match(e, s, at);
        if (found.gain <= 0) {
            debt += debt < DEBT_MAX;
            at += 1 + debt / DEBT_A_STEP;
            continue;
        }
        size_t remembered = at + 1;
        while (found.length < LAZY_LENGTH && remembered < s->searched) {
            const match later = find_match(e, s, remembered++);
            if (later.gain <= found.gain)
                break;
            found = later;
            at++;
        }
        const size_t paid = (size_t)found.gain / SEARCH_COST;
        debt = debt > paid ? debt - paid : 0;
        const size_t end = at + found.length;
        while (at > done && found.length < MATCH_MAX && s->first + at > found.distance &&
               s->in[at - 1] == *(s->in + at - 1 - found.distance))
            at--, found.length++;
        count_literals(e, s->in + done, at - done);
        add_match(e, at - done, &found);
        for (; remembered < end && remembered < s->searched; remembered++)
            record_position(e, s, remembered);
        at = done = end;
    }
    count_literals(e, s->in + done, s->bytes - done);
    e->sequences[e->sequence_count++] = (sequence){(uint32_t)(s->bytes - done), 0, 0};
}

/* ---- blocks ---- */

/* Bits that the best codes for these counts would take, in BITs; `more` may be NULL. */
static uint64_t entropy_of(const uint32_t *uses, const uint32_t *more, size_t symbols) {
    uint64_t total = 0, saved = 0;
    for (size_t i = 0; i < symbols; i++) {
        const uint32_t count = uses[i] + (more ? more[i] : 0);
        total += count;
        saved += (uint64_t)count * log2_of(count);
    }
    return total * log2_of((uint32_t)total) - saved;
}

static uint64_t entropy_bits(const counts *uses, const counts *more) {
    return entropy_of(uses->litlens, more ? more->litlens : NULL, LITLENS) +
           entropy_of(uses->distances, more ? more->distances : NULL, DISTANCES);
}

static bool needs_own_block(const encoder *e) {
    return entropy_bits(&e->block, &e->segment) >
           entropy_bits(&e->block, NULL) + entropy_bits(&e->segment, NULL) + SPLIT_GAIN;
}

/* Writes the first `count` sequences as a block and drops them. */
static void put_block(encoder *e, const uint8_t *in, size_t bytes, size_t count, bool is_last) {
    cogpu_deflate_put_block(&e->writer, in, bytes, e->sequences, count, &e->block, is_last);
    e->block = (counts){0};
    e->sequence_count -= count;
    memmove(e->sequences, e->sequences + count, e->sequence_count * sizeof *e->sequences);
}

static void add_counts(uint32_t *values, const uint32_t *more, size_t count) {
    for (size_t i = 0; i < count; i++)
        values[i] += more[i];
}

static segment segment_at(const uint8_t *in, size_t in_bytes, size_t first) {
    const size_t left = in_bytes - first, bytes = left < SEGMENT_BYTES ? left : SEGMENT_BYTES;
    const size_t readable = left >= 8 ? left - 7 : 0; /* 8 bytes from there on */
    const size_t matching = bytes >= MATCH_MIN ? bytes - MATCH_MIN + 1 : 0;
    return (segment){in + first, first, bytes, readable < matching ? readable : matching};
}

static void forget_places(encoder *e) {
    memset(e->last_8, 0, sizeof e->last_8);
    memset(e->last_5, 0, sizeof e->last_5);
    memset(e->last_4, 0, sizeof e->last_4);
}

/* The first segment is parsed twice: the first prices are a guess. */
static void learn_prices(encoder *e, const segment *s) {
    forget_places(e);
    e->sequence_count = 0;
    guess_prices(e, s->in, s->bytes);
    parse_segment(e, s);
    e->sequence_count = 0;
    for (unsigned i = 0; i < LITLENS; i++)
        e->recent.litlens[i] = i < LITERALS ? 0 : 1;
    update_prices(e);
    forget_places(e);
}

size_t cogpu_deflate_encode(void *memory, const uint8_t *in, size_t in_bytes, uint8_t *out) {
    encoder *e = memory;
    size_t block_first = 0, done = 0;
    segment s = segment_at(in, in_bytes, 0);
    e->writer = (bit_writer){out, 0, 0};
    e->block = (counts){0};
    learn_prices(e, &s);
    while (done < in_bytes) {
        s = segment_at(in, in_bytes, done);
        const size_t before = e->sequence_count;
        parse_segment(e, &s);
        update_prices(e);
        if (before > 0 && (needs_own_block(e) || done - block_first >= BLOCK_BYTES ||
                           before > BLOCK_SEQUENCES - 2 * SEGMENT_SEQUENCES)) {
            put_block(e, in + block_first, done - block_first, before, false);
            block_first = done;
        }
        add_counts(e->block.litlens, e->segment.litlens, LITLENS);
        add_counts(e->block.distances, e->segment.distances, DISTANCES);
        done += s.bytes;
    }
    put_block(e, in + block_first, done - block_first, e->sequence_count, true);
    cogpu_deflate_fill_byte(&e->writer);
    return (size_t)(e->writer.out - out);
}

/* Stored blocks are the worst case, one per segment; and the last store. */
uint64_t cogpu_deflate_bound(uint64_t in_bytes) {
    return in_bytes + STORED_HEADER_BITS / 8 * (in_bytes / SEGMENT_BYTES + 1) +
           2 * sizeof(uint64_t);
}
