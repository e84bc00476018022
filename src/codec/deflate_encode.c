/*
 * Takes bytes, hands on a deflate stream (RFC 1951): smaller or larger than libdeflate's level 6 by
 * parts in a thousand where the bytes are a predicted raster of measured values, and made in about
 * half the time.
 *
 * Such bytes are noise for the most part. Where they are, a match is rare and saves a bit or two;
 * where they are not, as in the high bytes of floating-point numbers, literals cost 1 to 3 bits and
 * most matches cost more than what they replace. So a match is weighed: it is worth the price of
 * its literals less its own, by the codes that the last tens of kilobytes would have had.
 *
 * Finding them is cheap. Three places are asked, the last ones with the same 8, 5 and 4 bytes, by
 * one branch. A search has to pay by what its match is worth: while too many do not, positions are
 * passed over, more and more of them, and a match that is found grows backwards over what was
 * passed. A match gives way to one that is worth more and begins a byte later.
 *
 * The bytes are taken by segments. After each the prices are set anew. Segments share a block of
 * the stream, until one would save more than a header by having codes of its own.
 */
#include "codec/deflate_encode.h"

#include "base/bytes.h"
#include "codec/deflate_block.h"

enum {
    WINDOW = 32 << 10,
    MATCH_MIN = 4, /* deflate has 3 too: in noise they are worth nothing */
    HASH_BITS = 15,
    SEGMENT_BYTES = 16 << 10,
    SEGMENT_SEQUENCES = SEGMENT_BYTES / MATCH_MIN + 1, /* at most */
    BLOCK_BYTES = 512 << 10,                           /* at most, and a segment */
    BLOCK_SEQUENCES = 16 << 10,

    BIT = 1024,                  /* what prices are counted in */
    SEARCH_COST = BIT / 4,       /* what a search has to bring to pay for itself */
    DEBT_A_STEP = 128,           /* searches that did not, until positions are passed over */
    DEBT_MAX = 15 * DEBT_A_STEP, /* so that at most 15 are */
    LAZY_LENGTH = 16,            /* from which on a match is taken as it is */
    SPLIT_GAIN = 800 * BIT       /* a header, and what a segment seems to save for being short */
};

typedef struct encoder {
    /* Where bytes of a hash stood last: the low 16 bits of their position. One that is 64 KiB back
     * or more seems nearer than it is: no harm, for any place in the window is as good that has the
     * same bytes, and bytes are compared. */
    uint16_t last_8[1 << HASH_BITS], last_5[1 << HASH_BITS], last_4[1 << HASH_BITS];

    uint32_t literal_price[LITERALS], length_price[MATCH_MAX + 1], distance_price[DISTANCES];
    uint32_t price_before[SEGMENT_BYTES + 1]; /* of the segment's bytes as literals, summed up */

    counts segment, block, recent; /* recent: of this and earlier segments, these counting less */
    sequence sequences[BLOCK_SEQUENCES];
    size_t sequence_count;

    writer writer;
} encoder;

const size_t cogpu_deflate_memory_bytes = sizeof(encoder);

/* ---- prices ---- */

/* In BITs; 0 of 0. Between the powers of two it is a cubic that is right to a thousandth, and the
 * same on each machine. */
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

/* What a symbol takes that is `count` of a total; one that was not seen, a bit more than one that
 * was seen once. */
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

/* Before anything is known: the segment's bytes, and matches as they often are. */
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

static void fade(uint32_t *values, const uint32_t *more, size_t count) {
    for (size_t i = 0; i < count; i++)
        values[i] = values[i] - values[i] / 4 + more[i];
}

static void update_prices(encoder *e) {
    fade(e->recent.litlens, e->segment.litlens, LITLENS);
    fade(e->recent.distances, e->segment.distances, DISTANCES);
    set_prices(e);
}

/* ---- matches ---- */

/* A part of the input. `searched` = where positions end at which a match may begin. */
typedef struct segment {
    const uint8_t *in;
    size_t first, bytes, searched;
} segment;

typedef struct match {
    uint32_t length, distance;
    int32_t gain; /* 0 or less: none */
} match;

/* Puts a position where the hash of `bytes` says, and returns how far back the one was that stood
 * there. */
static inline uint16_t swap_last(uint16_t *last, uint64_t bytes, uint16_t here) {
    uint16_t *place = &last[bytes * UINT64_C(0x9E3779B185EBCA87) >> (64 - HASH_BITS)];
    const uint16_t distance = (uint16_t)(here - *place);
    *place = here;
    return distance;
}

typedef struct distances {
    uint16_t of_8, of_5, of_4;
} distances;

static inline distances remember(encoder *e, const segment *s, size_t at) {
    const uint64_t bytes = load_u64(s->in + at, false);
    const uint16_t here = (uint16_t)(s->first + at);
    return (distances){.of_8 = swap_last(e->last_8, bytes, here),
                       .of_5 = swap_last(e->last_5, bytes << 24, here),
                       .of_4 = swap_last(e->last_4, bytes << 32, here)};
}

static inline unsigned equal_bytes(const uint8_t *a, const uint8_t *b, unsigned most) {
    unsigned equal = MATCH_MIN; /* the caller has seen them */
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

/* The match at a position, which is remembered. A distance is at most the position: in the first
 * 64 KiB positions are what they seem, and none is higher; later no distance of 16 bits is too
 * long. So all places may be read before it is known whether they are within the window. */
static inline match search(encoder *e, const segment *s, size_t at) {
    const uint8_t *in = s->in + at;
    const distances back = remember(e, s, at);
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
static void parse(encoder *e, const segment *s) {
    size_t at = 0, done = 0, debt = 0;
    e->segment = (counts){0};
    sum_prices(e, s);
    while (at < s->searched) {
        match found = search(e, s, at);
        if (found.gain <= 0) {
            debt += debt < DEBT_MAX;
            at += 1 + debt / DEBT_A_STEP;
            continue;
        }
        size_t remembered = at + 1;
        while (found.length < LAZY_LENGTH && remembered < s->searched) {
            const match later = search(e, s, remembered++);
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
            remember(e, s, remembered);
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

static uint64_t entropy(const counts *uses, const counts *more) {
    return entropy_of(uses->litlens, more ? more->litlens : NULL, LITLENS) +
           entropy_of(uses->distances, more ? more->distances : NULL, DISTANCES);
}

static bool needs_own_block(const encoder *e) {
    return entropy(&e->block, &e->segment) >
           entropy(&e->block, NULL) + entropy(&e->segment, NULL) + SPLIT_GAIN;
}

/* The block has the first `count` sequences, which are forgotten. */
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

/* The first segment is divided twice: at first by prices that are a guess. */
static void learn_prices(encoder *e, const segment *s) {
    forget_places(e);
    e->sequence_count = 0;
    guess_prices(e, s->in, s->bytes);
    parse(e, s);
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
    e->writer = (writer){out, 0, 0};
    e->block = (counts){0};
    learn_prices(e, &s);
    while (done < in_bytes) {
        s = segment_at(in, in_bytes, done);
        const size_t before = e->sequence_count;
        parse(e, &s);
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

/* Nothing is larger than stored blocks, a segment each; and the last store. */
uint64_t cogpu_deflate_bound(uint64_t in_bytes) {
    return in_bytes + STORED_HEADER_BITS / 8 * (in_bytes / SEGMENT_BYTES + 1) +
           2 * sizeof(uint64_t);
}
