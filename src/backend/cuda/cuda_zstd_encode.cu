/*
 * Takes blocks, hands on a Zstandard frame of each (RFC 8878), in its slot: with the content's
 * size, in a single segment, without a sum.
 *
 * A block is cut into parts of 32 KiB, and each part is a block of the frame with codes of its own.
 * 256 threads make one: a segment of 128 bytes for each thread.
 *
 * 1. The bytes are loaded into shared memory. Where all are the same, nothing more is done.
 * 2. Bytes are counted, but for those inside runs: the first guess of what a literal costs.
 * 3. Each thread finds the cheapest way to write its segment, from its end to its beginning: at
 * each byte a literal, or a match at one of few distances: to the byte, the sample and the row
 * before; and, for a higher level, to what a hash table has found, up to 10 KiB before the part.
 * 4. Matches become a list of sequences; those that go on in the next segment are joined there.
 * 5. The last three distances are followed through the list: a distance that is among them is
 * written as its place.
 * 6. Counts become codes: a Huffman code for literals, three tables for sequences. Their states are
 * followed from the last sequence to the first by a warp each, while another makes the first.
 * 7. Sums of all bits before say where each thread writes.
 *
 * Streams are read from their end, so they are written downwards, in the order of reading.
 *
 * The parts of a block are staged. Then a warp gives each its place, and a block of threads for
 * each part moves it there. A part that is not made smaller is stored as it is.
 */
#include "backend/cuda/cuda_encode.h"
#include "backend/cuda/cuda_zstd_encode.h"

enum {
    THREADS = ENCODE_THREADS,
    WARPS = THREADS / WARP,
    PEEK_WORDS = 8, /* that are looked at behind the last */

    LITERALS = BYTE_VALUES,
    LITERAL_BITS_MAX = 11,
    LITERALS_CODED = 64, /* fewer are not worth a code */
    STREAMS = 4,
    MATCH_MIN = 3,
    RECENT = 3, /* distances that are written as a place */
};

/* What a block of the frame is: the format's numbers. */
enum { PART_STORED, PART_ONE_BYTE, PART_CODED };

/* So for literals, */
enum { LITERALS_STORED, LITERALS_ONE_BYTE, LITERALS_HUFFMAN };

/* and for the tables of sequences, in the order of the format. */
enum { LITERALS_BEFORE, OFFSET, LENGTH, KINDS, WEIGHT = KINDS, TABLES };
enum { MODE_USUAL, MODE_ONE, MODE_OWN };

/* Three distances that are known before, and one that has been found. Near is the sample before;
 * in planes of bytes, where that is the byte before, what follows it in the row before. */
enum { BYTE_BEFORE, NEAR_BEFORE, ROW_BEFORE, KNOWN, FOUND = KNOWN };

enum {
    TABLE_BITS = 13,
    HISTORY = 10 << 10, /* that is searched before a part */
    KEPT_COSTS = 16,
    TOO_SHORT = 0x8000,         /* what a match costs that is: more than all of a segment */
    FOUND_MAX = KEPT_COSTS - 1, /* length of a match where it is found; it may grow backwards */
    FOUND_SHIFT = 28,
    HISTORY_WORDS = HISTORY / 4,

    SYMBOLS = 64, /* of a table of states, at most */
    CELLS = 512,
    HEAD_WORDS = 48 /* 53 numbers of 10 bits, or a tree with the sizes of streams */
};

/* How one comes from the state behind a symbol to its own: the bits that are written, and where the
 * states of the symbol are. */
struct way {
    uint32_t bits_from, next_from;
};

/* A table of states, as it is made and told. */
struct states {
    uint16_t next[CELLS];     /* the state before, by symbols */
    uint8_t cells[CELLS];     /* symbols */
    uint32_t counts[SYMBOLS]; /* of symbols */
    int16_t points[SYMBOLS];  /* of 1 << log; -1 is a point at the end of the table */
    uint32_t starts[SYMBOLS]; /* in `next` */
    uint32_t filled[SYMBOLS];
    struct way ways[SYMBOLS];
    uint32_t head[HEAD_WORDS], head_bytes;
    uint32_t log, mode, last; /* `last`: the state that is read first */
};

/* What the code of literals is made with. */
struct tree {
    uint32_t keys[LITERALS], weights[LITERALS];
    uint16_t symbols[LITERALS], leaf_up[LITERALS], inner_up[LITERALS];
};

/* While a part is searched, tables have most of the memory. */
struct parsed {
    uint32_t choices[PADDED_WORDS]; /* see KIND_BIT; then the literals of each segment */
    union {
        uint32_t first_counts[COUNT_COPIES * LITERALS];
        uint32_t kinds[SEGMENT / WARP * THREADS]; /* a bit for each byte of the part */
        uint32_t recent[RECENT][THREADS];
        struct tree tree;
    } v;
    union {
        uint16_t costs[KEPT_COSTS * THREADS]; /* of the last few bytes, in a ring for each thread */
        struct states states[TABLES];
    } w;
};

struct zstd_encode_shared {
    /* What is before the part; its bytes, padded after the search; then, of sequences, their codes.
     */
    uint32_t block[HISTORY_WORDS + PADDED_WORDS + PEEK_WORDS];
    union {
        struct parsed parsed;
        uint32_t tables[2 << TABLE_BITS]; /* for short keys, then for long ones */
    } u;
    uint32_t literal_counts[LITERALS], codes[LITERALS]; /* a code: bits, and how many << 16 */
    uint32_t known_counts[KNOWN][3]; /* how often at place 1, at another, and written out */
    uint32_t tails[THREADS];         /* the distance of a match that ends with its segment */
    uint32_t warp_sums[WARPS], at_length[LITERAL_BITS_MAX + 1], used, stream_starts[STREAMS + 1];
    uint32_t head[HEAD_WORDS], tree_bytes; /* of literals */
    uint16_t weights_behind[LITERALS];     /* states */
    uint16_t length_costs[SEGMENT + 4], run_costs[SEGMENT + 4], offset_costs[32],
        known_costs[KNOWN];
    uint8_t literal_costs[LITERALS], lengths[LITERALS];
};

/* The bytes of the part. */
DEVICE_FN uint32_t *words_of(struct zstd_encode_shared *shared) {
    return shared->block + HISTORY_WORDS;
}

/* A part on its way. All threads hold the same. */
struct part {
    const uint8_t *in;
    uint32_t bytes, history;   /* bytes of the block before it */
    uint32_t distances[KNOWN]; /* 0: none */
    struct cogpu_zstd_work *work;
    bool has_planes, is_searched;
};

DEVICE_FN uint32_t segment_begin(void) {
    return SEGMENT * thread_index();
}

DEVICE_FN uint32_t segment_end(const struct part *part) {
    return least(segment_begin() + SEGMENT, part->bytes);
}

/* The sum of the values of all threads before, and of all. A collective. */
DEVICE_FN uint32_t block_scan(struct zstd_encode_shared *shared, uint32_t value, uint32_t *total) {
    const uint32_t until = warp_scan(value);
    uint32_t before = until - value;
    if (lane_index() == WARP - 1)
        shared->warp_sums[warp_index()] = until;
    sync_block();
    *total = 0;
    for (uint32_t i = 0; i < WARPS; i++) {
        before += i < warp_index() ? shared->warp_sums[i] : 0;
        *total += shared->warp_sums[i];
    }
    sync_block();
    return before;
}

/* ---- bits, downwards ------------------------------------------------------------------------ */

/* Writes below a bit of zeroed words. The first and the last word may have bits of others. */
struct down_writer {
    uint32_t *to;
    uint64_t bits;
    uint32_t count, room; /* bits that wait, and that are left of the word */
    bool is_first;
};

DEVICE_FN struct down_writer write_below(uint32_t *words, uint32_t top) {
    struct down_writer w = {words + (top - 1) / 32, 0, 0, (top - 1) % 32 + 1, true};
    return w;
}

/* Up to 32 bits. */
DEVICE_FN void put(struct down_writer *w, uint32_t bits, uint32_t count) {
    w->bits = w->bits << count | bits;
    w->count += count;
    if (w->count < w->room)
        return;
    w->count -= w->room;
    const uint32_t word = (uint32_t)(w->bits >> w->count);
    if (w->is_first)
        atomic_or(w->to, word);
    else
        *w->to = word;
    w->bits &= (1ull << w->count) - 1;
    w->is_first = false;
    w->room = 32;
    w->to--;
}

DEVICE_FN void finish(struct down_writer *w) {
    if (w->count > 0)
        atomic_or(w->to, (uint32_t)(w->bits << (w->room - w->count)));
}

/* ---- lengths and offsets as symbols --------------------------------------------------------- */

struct symbol {
    uint32_t number, extra_bits, extra;
};

/* Steps of 2, 4, 8 ... from a number on: first symbols, and bits behind them. */
DEVICE_FN struct symbol symbol_in(uint32_t value, uint32_t from, uint32_t first, uint32_t bits) {
    struct symbol symbol = {first + ((value - from) >> bits), bits, 0};
    symbol.extra = (value - from) & ((1u << bits) - 1);
    return symbol;
}

DEVICE_FN struct symbol run_symbol(uint32_t literals) {
    const uint32_t top = log2_floor(literals | 1);
    return literals < 16   ? symbol_in(literals, 0, 0, 0)
           : literals < 24 ? symbol_in(literals, 16, 16, 1)
           : literals < 32 ? symbol_in(literals, 24, 20, 2)
           : literals < 48 ? symbol_in(literals, 32, 22, 3)
           : literals < 64 ? symbol_in(literals, 48, 24, 4)
                           : symbol_in(literals, 1u << top, top + 19, top);
}

DEVICE_FN struct symbol length_symbol(uint32_t length) {
    const uint32_t value = length - MATCH_MIN, top = log2_floor(value | 1);
    return value < 32    ? symbol_in(value, 0, 0, 0)
           : value < 40  ? symbol_in(value, 32, 32, 1)
           : value < 48  ? symbol_in(value, 40, 36, 2)
           : value < 64  ? symbol_in(value, 48, 38, 3)
           : value < 96  ? symbol_in(value, 64, 40, 4)
           : value < 128 ? symbol_in(value, 96, 42, 5)
                         : symbol_in(value, 1u << top, top + 36, top);
}

/* Of what is written for an offset. */
DEVICE_FN struct symbol offset_symbol(uint32_t value) {
    const uint32_t top = log2_floor(value);
    return symbol_in(value, 1u << top, top, top);
}

DEVICE_FN struct symbol distance_symbol(uint32_t distance) {
    return offset_symbol(distance + RECENT);
}

/* ---- the bytes ------------------------------------------------------------------------------ */

/* Returns whether all bytes are the same. Behind them are zeros. */
DEVICE_FN bool load_part(struct zstd_encode_shared *shared, const struct part *part) {
    const uint32_t first = part->in[0] * 0x01010101u;
    uint32_t *words = words_of(shared);
    bool is_other = false;
    for (uint32_t i = COGPU_ZSTD_PART / 4 + thread_index(); i < PADDED_WORDS + PEEK_WORDS;
         i += THREADS)
        words[i] = 0;
    for (uint32_t at = 16 * thread_index(); at < COGPU_ZSTD_PART; at += 16 * THREADS) {
        words4 four = {0, 0, 0, 0};
        if (at < part->bytes)
            four = load_words4(part->in + at);
        uint32_t loaded[4] = {four.x, four.y, four.z, four.w};
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            loaded[i] = own_bytes(loaded[i], at + 4 * i, part->bytes);
            is_other |= loaded[i] != own_bytes(first, at + 4 * i, part->bytes);
        }
        const words4 owned = {loaded[0], loaded[1], loaded[2], loaded[3]};
        store_words4(words + at / 4, owned);
    }
    return !sync_block_or(is_other);
}

/* Moves segments apart, as the parse wants them; the search has them without gaps. */
DEVICE_FN void pad_part(struct zstd_encode_shared *shared) {
    uint32_t *words = words_of(shared), held[SEGMENT_WORDS];
    UNROLL
    for (uint32_t i = 0; i < SEGMENT_WORDS; i++)
        held[i] = words[i * THREADS + thread_index()];
    sync_block();
    UNROLL
    for (uint32_t i = 0; i < SEGMENT_WORDS; i++)
        words[padded(i * THREADS + thread_index())] = held[i];
    sync_block();
}

/* ---- costs ---------------------------------------------------------------------------------- */

DEVICE_FN void guess_literal_costs(struct zstd_encode_shared *shared, const struct part *part) {
    const uint32_t i = thread_index();
    uint32_t count = 0, total;
    for (uint32_t copy = 0; copy < COUNT_COPIES; copy++)
        shared->u.parsed.v.first_counts[copy * LITERALS + i] = 0;
    sync_block();
    count_but_runs(words_of(shared), part->bytes, shared->u.parsed.v.first_counts);
    sync_block();
    for (uint32_t copy = 0; copy < COUNT_COPIES; copy++)
        count += shared->u.parsed.v.first_counts[copy * LITERALS + i];
    block_scan(shared, count, &total);
    shared->literal_costs[i] = (uint8_t)least(cost_of(count, total) + 2, 9 * BIT);
}

/* Nothing is known of sequences: what is usual for rasters. Where other distances than the known
 * ones are asked, there are more of them, one behind the other, and the known ones are often not
 * among the last three any more. */
DEVICE_FN void guess_sequence_costs(struct zstd_encode_shared *shared, bool is_searched) {
    const uint32_t i = thread_index();
    if (i <= SEGMENT) {
        const uint32_t run = is_searched ? least(16 + 14 * i, 84) : least(36 + 6 * i, 90);
        shared->run_costs[i] = (uint16_t)(run + BIT * run_symbol(i).extra_bits);
    }
    if (i < MATCH_MIN)
        shared->length_costs[i] = TOO_SHORT;
    if (i >= MATCH_MIN && i <= SEGMENT) {
        const uint32_t more = i - MATCH_MIN;
        const uint32_t length = more == 0     ? 72
                                : is_searched ? least(8 + 12 * more, 100)
                                              : least(40 + 8 * more, 104);
        shared->length_costs[i] = (uint16_t)(length + BIT * length_symbol(i).extra_bits);
    }
    if (i < 32)
        shared->offset_costs[i] = (uint16_t)(44 + BIT * i);
    if (i < KNOWN)
        shared->known_costs[i] = (uint16_t)(!is_searched ? 28 : i == BYTE_BEFORE ? 70 : 170);
    sync_block();
}

/* As a first parse has counted them. */
DEVICE_FN void learn_costs(struct zstd_encode_shared *shared, const struct part *part,
                           uint32_t literals, uint32_t sequences) {
    const uint32_t i = thread_index();
    const struct states *states = shared->u.parsed.w.states;
    const uint32_t *offsets = states[OFFSET].counts;
    const uint32_t byte = least(cost_of(shared->literal_counts[i], literals), 11 * BIT);
    uint32_t run = 0, length = TOO_SHORT, offset = 0, known = 0;
    if (i <= SEGMENT) {
        const struct symbol symbol = run_symbol(i);
        run = cost_of(states[LITERALS_BEFORE].counts[symbol.number], sequences) +
              BIT * symbol.extra_bits;
    }
    if (i >= MATCH_MIN && i <= SEGMENT) {
        const struct symbol symbol = length_symbol(i);
        length = cost_of(states[LENGTH].counts[symbol.number], sequences) + BIT * symbol.extra_bits;
    }
    if (i < 32)
        offset = cost_of(offsets[i], sequences) + BIT * i;
    if (i < KNOWN) {
        const uint32_t *counts = shared->known_counts[i];
        const uint32_t all = counts[0] + counts[1] + counts[2];
        const uint32_t all_of_it = distance_symbol(part->distances[i]).number;
        known = shared->known_costs[i];
        if (all > 0)
            known = (counts[0] * cost_of(offsets[0], sequences) +
                     counts[1] * (cost_of(offsets[1], sequences) + BIT) +
                     counts[2] * (cost_of(offsets[all_of_it], sequences) + BIT * all_of_it)) /
                    all;
    }
    sync_block();
    shared->literal_costs[i] = (uint8_t)byte;
    if (i <= SEGMENT) {
        shared->run_costs[i] = (uint16_t)run;
        shared->length_costs[i] = (uint16_t)length;
    }
    if (i < 32)
        shared->offset_costs[i] = (uint16_t)offset;
    if (i < KNOWN)
        shared->known_costs[i] = (uint16_t)known;
    sync_block();
}

/* ---- the search ----------------------------------------------------------------------------- */

enum { KEY = 4, LONG_KEY = 6, SAMPLE = COGPU_ZSTD_PART / 4 };

struct eight {
    uint32_t low, high;
};

/* Bytes from a place on. Places count from the beginning of the history. */
DEVICE_FN struct eight eight_at(const struct zstd_encode_shared *shared, uint32_t place) {
    const uint32_t *words = shared->block + place / 4, shift = 8 * (place % 4);
    const struct eight eight = {funnel_right(words[0], words[1], shift),
                                funnel_right(words[1], words[2], shift)};
    return eight;
}

DEVICE_FN uint32_t four_at(const struct zstd_encode_shared *shared, uint32_t place) {
    return eight_at(shared, place).low;
}

DEVICE_FN uint32_t hash_of(uint32_t four) {
    return four * 0x9E3779B1u >> (32 - TABLE_BITS);
}

DEVICE_FN uint32_t long_hash_of(uint32_t four, uint32_t two_on) {
    return ((four * 0x9E3779B1u) ^ two_on) * 0x85EBCA77u >> (32 - TABLE_BITS);
}

DEVICE_FN void clear_tables(struct zstd_encode_shared *shared) {
    for (uint32_t i = thread_index(); i < 2 << TABLE_BITS; i += THREADS)
        shared->u.tables[i] = 0;
    sync_block();
}

/* Whether a search is worth it. Surely: known distances alone need not be tried. */
enum { WORTH_NOTHING, WORTH_A_TRY, WORTH_SURELY };

/* By how many places come again, in the first quarter of the part. Bytes inside runs do not count,
 * for they need no search. In planes of bytes most of what comes again has a neighbour that is as
 * good. */
DEVICE_FN uint32_t worth_of_search(struct zstd_encode_shared *shared, const struct part *part) {
    const uint32_t near = part->distances[NEAR_BEFORE], row = part->distances[ROW_BEFORE];
    uint32_t *table = shared->u.tables, asked = 0, known = 0, elsewhere = 0;
    clear_tables(shared);
    for (uint32_t at = thread_index(); at < SAMPLE; at += THREADS) {
        const uint32_t here = HISTORY + at, four = four_at(shared, here), hash = hash_of(four);
        const bool is_asked =
            at > 0 && at + KEY <= part->bytes && four_at(shared, here - 1) != four;
        const uint32_t place = is_asked ? table[hash] : 0;
        asked += sync_block_count(is_asked);
        if (is_asked)
            atomic_max(&table[hash], here);
        const bool is_known = place > 0 && four_at(shared, place) == four;
        known += sync_block_count(is_known);
        elsewhere += is_known && four_at(shared, here - least(near, at)) != four &&
                     four_at(shared, here - least(row, at)) != four;
    }
    block_scan(shared, elsewhere, &elsewhere);
    if (!part->has_planes && 4 * elsewhere >= asked && elsewhere > 0)
        return WORTH_SURELY;
    return (part->has_planes ? 4 : 32) * known >= asked && known > 0 ? WORTH_A_TRY : WORTH_NOTHING;
}

/* The bytes before the part that are searched as well. */
DEVICE_FN void load_history(struct zstd_encode_shared *shared, const struct part *part) {
    for (uint32_t at = 16 * thread_index(); at < HISTORY; at += 16 * THREADS)
        store_words4(shared->block + at / 4, load_words4(part->in - HISTORY + at));
}

DEVICE_FN uint32_t alike(struct eight a, struct eight b) {
    const uint32_t low = a.low ^ b.low, high = a.high ^ b.high;
    return (trailing_zeros(low != 0 ? low : high) + (low != 0 ? 0 : 32)) / 8;
}

/* What is asked for at a place, unless that is inside a run, or too close to an end. */
struct question {
    struct eight bytes;
    uint32_t hash, long_hash;
    uint32_t known, long_known; /* what the tables say */
    bool is_asked;
};

DEVICE_FN struct question question_at(const struct zstd_encode_shared *shared, uint32_t place,
                                      uint32_t begin, uint32_t end) {
    const uint32_t before = place > 0 ? place - 1 : 0, shift = 8 * (before % 4);
    const uint32_t *words = shared->block + before / 4, last = words[2];
    const uint32_t low = funnel_right(words[0], words[1], shift),
                   middle = funnel_right(words[1], last, shift), high = last >> shift;
    struct question q;
    q.bytes.low = funnel_right(low, middle, 8);
    q.bytes.high = funnel_right(middle, high, 8);
    q.hash = hash_of(q.bytes.low);
    q.long_hash = long_hash_of(q.bytes.low, funnel_right(q.bytes.low, q.bytes.high, 16));
    q.is_asked = place > begin && place + LONG_KEY <= end && low != q.bytes.low;
    return q;
}

enum { CANDIDATES = 4, COMPARED = sizeof(struct eight), AT_ONCE = 2 /* questions of a thread */ };

/* The best of what both tables know: a word has the last place of a key, and the one before, both
 * counted from 1. All are loaded before one is looked at; then the best is followed a little
 * further. */
DEVICE_FN uint32_t answer(const struct zstd_encode_shared *shared, const struct question *q,
                          uint32_t place, uint32_t end) {
    const uint32_t places[CANDIDATES] = {q->long_known >> 16, q->known >> 16, q->known & 0xFFFF,
                                         q->long_known & 0xFFFF};
    const uint32_t most = least(COMPARED, end - place);
    struct eight candidates[CANDIDATES];
    uint32_t found_distance = 0, found_length = KEY - 1;
    UNROLL
    for (uint32_t i = 0; i < CANDIDATES; i++)
        candidates[i] = eight_at(shared, places[i] > 0 ? places[i] - 1 : 0);
    UNROLL
    for (uint32_t i = 0; i < CANDIDATES; i++) {
        const uint32_t distance = place + 1 - places[i];
        const uint32_t length = least(alike(candidates[i], q->bytes), most);
        const bool is_far = found_distance > 0 && distance > 8 * found_distance; /* and pays */
        if (places[i] > 0 && length > found_length + is_far) {
            found_distance = distance;
            found_length = length;
        }
    }
    if (found_length == COMPARED)
        found_length += least(alike(eight_at(shared, place + COMPARED),
                                    eight_at(shared, place + COMPARED - found_distance)),
                              least(FOUND_MAX, end - place) - COMPARED);
    return found_distance > 0 ? found_distance | found_length << FOUND_SHIFT : 0;
}

/* Looks for each byte of the part, after what is before it has been learned. All threads read, then
 * all write the largest of what they know, so that the order of threads does not matter. */
DEVICE_FN void search(struct zstd_encode_shared *shared, const struct part *part, bool has_long) {
    const uint32_t begin = part->history > 0 ? 0 : HISTORY, end = HISTORY + part->bytes;
    uint32_t *table = shared->u.tables, *long_table = table + (1 << TABLE_BITS);
    if (part->history > 0)
        load_history(shared, part);
    clear_tables(shared);
    for (uint32_t base = begin; base < end; base += AT_ONCE * THREADS) {
        struct question asked[AT_ONCE];
        UNROLL
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            struct question *q = &asked[i];
            *q = question_at(shared, least(base + i * THREADS + thread_index(), end), begin, end);
            q->known = q->is_asked ? table[q->hash] : 0;
            q->long_known = q->is_asked && has_long ? long_table[q->long_hash] : 0;
        }
        sync_block();
        UNROLL
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            const struct question *q = &asked[i];
            const uint32_t place = base + i * THREADS + thread_index();
            if (q->is_asked) {
                atomic_max(&table[q->hash], (place + 1) << 16 | q->known >> 16);
                if (has_long)
                    atomic_max(&long_table[q->long_hash], (place + 1) << 16 | q->long_known >> 16);
            }
            if (place >= HISTORY && place < end)
                part->work->u.found[place - HISTORY] = answer(shared, q, place, end);
        }
        sync_block();
    }
}

/* ---- the parse ------------------------------------------------------------------------------ */

/*
 * What is chosen at a byte: 0 for a literal; of a match its length less 2, and which of the four
 * distances it is by a bit beside that and a bit of `kinds`.
 */
enum { KIND_BIT = 0x80, CHOICE_LESS = 2 };

DEVICE_FN uint32_t *kinds_at(struct zstd_encode_shared *shared, uint32_t at) {
    return &shared->u.parsed.v.kinds[at % SEGMENT / WARP * THREADS + at / SEGMENT];
}

/* A word of the part, or of the block before it; there is none before the block. */
DEVICE_FN uint32_t word_at(const uint32_t *words, const struct part *part, int32_t index) {
    if (index >= 0)
        return word_in(words, (uint32_t)index);
    return -4 * index <= (int32_t)part->history ? load_u32_aligned(part->in + 4 * index) : 0;
}

/* Not zero where the bytes of a word are not those `distance` before; so where none are. */
DEVICE_FN uint32_t unlike(const uint32_t *words, const struct part *part, uint32_t index,
                          uint32_t distance) {
    const int32_t from = (int32_t)(4 * index) - (int32_t)distance;
    const int32_t missing = -(int32_t)part->history - from;
    if (distance == 0 || missing >= 4)
        return ~0u;
    const int32_t low = from >> 2;
    const uint32_t before =
        funnel_right(word_at(words, part, low), word_at(words, part, low + 1), 8 * (from & 3));
    return (word_in(words, index) ^ before) | (missing > 0 ? (1u << 8 * missing) - 1 : 0);
}

DEVICE_FN void consider(const struct zstd_encode_shared *shared, struct choice *choice,
                        const struct run *run, uint32_t kind) {
    const uint32_t cost = run->cost_behind + shared->length_costs[run->length] +
                          run->distance_cost + shared->run_costs[0];
    if (cost < choice->cost) {
        choice->cost = cost;
        choice->length = run->length;
        choice->kind = kind;
    }
}

/* A match that was found at this byte is that of the next byte grown by one, where it is at the
 * same distance; or a new one, that ends within the costs that are kept. */
DEVICE_FN void follow_found(const struct zstd_encode_shared *shared, struct run *run,
                            uint32_t *distance, uint32_t found, uint32_t at, uint32_t end) {
    const uint32_t here = found & ((1u << FOUND_SHIFT) - 1);
    if (here == 0) {
        run->length = 0;
    } else if (here == *distance) {
        run->length++;
    } else {
        run->length = least(found >> FOUND_SHIFT, end - at);
        run->cost_behind =
            shared->u.parsed.w.costs[(at + run->length) % KEPT_COSTS * THREADS + thread_index()];
        run->distance_cost = shared->offset_costs[distance_symbol(here).number];
    }
    *distance = here;
}

/* From the end of a segment to its beginning, the cheapest way on from each byte. The literals
 * before a match cost by how many they are: more with each that comes before them. */
DEVICE_FN uint32_t parse(struct zstd_encode_shared *shared, const struct part *part) {
    const uint32_t begin = segment_begin(), end = segment_end(part);
    struct run runs[KNOWN], found = {0, 0, 0};
    uint32_t cost = shared->run_costs[0], kinds = 0, found_distance = 0, literals = 0;
    UNROLL
    for (uint32_t k = 0; k < KNOWN; k++) {
        runs[k].length = runs[k].cost_behind = 0;
        runs[k].distance_cost = shared->known_costs[k];
    }
    if (part->is_searched && begin < end)
        shared->u.parsed.w.costs[end % KEPT_COSTS * THREADS + thread_index()] = (uint16_t)cost;
    for (uint32_t back = 0; back < SEGMENT_WORDS; back++) {
        const uint32_t index = begin / 4 + SEGMENT_WORDS - 1 - back;
        if (4 * index >= end)
            continue;
        const uint32_t word = word_in(words_of(shared), index);
        /* Bytes behind the end are literals that all ways have in common. */
        const uint32_t behind = end - 4 * index < 4 ? ~0u << 8 * (end - 4 * index) : 0;
        uint32_t unlikes[KNOWN], chosen = 0;
        words4 found_here = {0, 0, 0, 0};
        if (part->is_searched)
            found_here = load_words4(part->work->u.found + 4 * index);
        const uint32_t founds[4] = {found_here.x, found_here.y, found_here.z, found_here.w};
        UNROLL
        for (uint32_t k = 0; k < KNOWN; k++)
            unlikes[k] = unlike(words_of(shared), part, index, part->distances[k]) | behind;
        UNROLL
        for (uint32_t j = 4; j-- > 0;) {
            const uint32_t at = 4 * index + j;
            struct choice choice = {cost, 0, 0};
            choice.cost += shared->literal_costs[word >> 8 * j & 0xFF];
            choice.cost += shared->run_costs[literals + 1];
            choice.cost -= shared->run_costs[literals];
            UNROLL
            for (uint32_t k = 0; k < KNOWN; k++) {
                if (runs[k].length == 0)
                    runs[k].cost_behind = cost;
                runs[k].length = (unlikes[k] >> 8 * j & 0xFF) == 0 ? runs[k].length + 1 : 0;
                consider(shared, &choice, &runs[k], k);
            }
            if (part->is_searched) {
                follow_found(shared, &found, &found_distance, founds[j], at, end);
                consider(shared, &choice, &found, FOUND);
                shared->u.parsed.w.costs[at % KEPT_COSTS * THREADS + thread_index()] =
                    (uint16_t)choice.cost;
            }
            cost = choice.cost;
            literals = choice.length > 0 ? 0 : literals + 1;
            if (choice.length > 0)
                chosen |= (choice.length - CHOICE_LESS + (choice.kind & 1) * KIND_BIT) << 8 * j;
            kinds |= (choice.kind >> 1) << at % WARP;
        }
        shared->u.parsed.choices[padded(index)] = chosen;
        if (4 * index % WARP == 0) {
            *kinds_at(shared, 4 * index) = kinds;
            kinds = 0;
        }
    }
    uint32_t total;
    block_scan(shared, cost, &total);
    return total;
}

/* Parses with known distances alone; where others were searched, with these as well; and once more
 * without them, unless they make it enough cheaper to pay for what is not in the costs: known
 * distances that are not among the last three any more. */
DEVICE_FN void parse_first(struct zstd_encode_shared *shared, struct part *part, uint32_t worth) {
    uint32_t known_cost = 0;
    guess_literal_costs(shared, part);
    for (uint32_t turn = worth == WORTH_SURELY; turn < 3; turn++) {
        part->is_searched = turn == 1;
        guess_sequence_costs(shared, part->is_searched);
        const uint32_t cost = parse(shared, part);
        if (worth != WORTH_A_TRY || (turn == 1 && cost + cost / 32 < known_cost))
            return;
        known_cost = cost;
    }
}

/* ---- the list of sequences ------------------------------------------------------------------ */

/* A step of the way: a literal has no distance. */
struct step {
    uint32_t length, distance;
};

DEVICE_FN struct step step_at(struct zstd_encode_shared *shared, const struct part *part,
                              uint32_t at) {
    const uint32_t choice = *byte_in(shared->u.parsed.choices, at);
    struct step step = {1, 0};
    if (choice == 0)
        return step;
    const uint32_t kind = choice / KIND_BIT + 2 * (*kinds_at(shared, at) >> at % WARP & 1);
    step.length = choice % KIND_BIT + CHOICE_LESS;
    step.distance = kind == FOUND         ? part->work->u.found[at] & ((1u << FOUND_SHIFT) - 1)
                    : kind == BYTE_BEFORE ? part->distances[BYTE_BEFORE]
                    : kind == NEAR_BEFORE ? part->distances[NEAR_BEFORE]
                                          : part->distances[ROW_BEFORE];
    return step;
}

/* What of the part is literals, and how many sequences there are. */
struct list {
    uint32_t literals, sequences;
    uint32_t own_first, own_literals; /* of this thread's segment: its first, and how many */
};

/* A sequence, by one load. */
DEVICE_FN struct cogpu_zstd_sequence sequence_at(const struct cogpu_zstd_sequence *sequences,
                                                 uint32_t i) {
    const uint64_t all = load_u64_aligned(&sequences[i]);
    const struct cogpu_zstd_sequence sequence = {(uint16_t)all, (uint16_t)(all >> 16),
                                                 (uint32_t)(all >> 32)};
    return sequence;
}

enum { MOVED_AT_ONCE = 4 };

/* Moves the sequences of a segment, whose literals are counted from its beginning, to their place
 * in the list. */
DEVICE_FN void move_sequences(const struct cogpu_zstd_sequence *from, uint32_t count,
                              uint32_t literals_before, struct cogpu_zstd_sequence *to) {
    for (uint32_t i = 0; i < count; i += MOVED_AT_ONCE) {
        struct cogpu_zstd_sequence moved[MOVED_AT_ONCE];
        UNROLL
        for (uint32_t j = 0; j < MOVED_AT_ONCE; j++) {
            moved[j] = sequence_at(from, least(i + j, count - 1));
            moved[j].literals = (uint16_t)(moved[j].literals + literals_before);
        }
        UNROLL
        for (uint32_t j = 0; j < MOVED_AT_ONCE; j++)
            if (i + j < count)
                to[i + j] = moved[j];
    }
}

/* Follows the ways, lists matches, and leaves the literals of each segment where its choices have
 * been. A match at the distance of one that ends where it begins is the same match. */
DEVICE_FN struct list list_sequences(struct zstd_encode_shared *shared, const struct part *part) {
    const uint32_t begin = segment_begin(), end = segment_end(part);
    struct cogpu_zstd_sequence *own =
        part->work->of_segments + thread_index() * COGPU_ZSTD_SEGMENT_SEQUENCES;
    uint32_t touching = 0, head = 0, literals = 0, matches = 0, total;
    shared->literal_counts[thread_index()] = 0;
    sync_block();
    for (uint32_t at = begin; at < end;) {
        const struct step step = step_at(shared, part, at);
        if (step.distance == 0) {
            const uint8_t byte = *byte_in(words_of(shared), at);
            atomic_add(&shared->literal_counts[byte], 1);
            *byte_in(shared->u.parsed.choices, begin + literals++) = byte;
        } else if (step.distance != touching) {
            const struct cogpu_zstd_sequence sequence = {(uint16_t)at, (uint16_t)literals,
                                                         step.distance};
            own[matches++] = sequence;
        }
        head = at == begin ? step.distance : head;
        touching = step.distance;
        at += step.length;
    }
    shared->tails[thread_index()] = touching;
    sync_block();
    touching = thread_index() > 0 ? shared->tails[thread_index() - 1] : 0;
    const uint32_t joined = head != 0 && head == touching;
    const uint32_t before = block_scan(shared, (matches - joined) << 16 | literals, &total);
    const struct list list = {total & 0xFFFF, total >> 16, before & 0xFFFF, literals};
    move_sequences(own + joined, matches - joined, list.own_first,
                   part->work->sequences + (before >> 16));
    if (thread_index() == 0) {
        const struct cogpu_zstd_sequence behind = {(uint16_t)part->bytes, (uint16_t)list.literals,
                                                   0};
        part->work->sequences[list.sequences] = behind;
    }
    sync_block();
    return list;
}

/* ---- offsets -------------------------------------------------------------------------------- */

/* The last distances, none of them twice; 0: not known. */
struct recent {
    uint32_t last[RECENT];
};

DEVICE_FN void remember(struct recent *recent, uint32_t distance) {
    uint32_t *last = recent->last;
    if (distance == last[0] || distance == 0)
        return;
    if (distance != last[1])
        last[2] = last[1];
    last[1] = last[0];
    last[0] = distance;
}

/* The sequences of this thread, for what is done in the list. */
struct share {
    uint32_t begin, end;
};

DEVICE_FN struct share share_of(uint32_t sequences) {
    const uint32_t each = (sequences + THREADS - 1) / THREADS;
    const struct share share = {least(thread_index() * each, sequences),
                                least((thread_index() + 1) * each, sequences)};
    return share;
}

DEVICE_FN struct recent load_recent(const struct zstd_encode_shared *shared, uint32_t thread) {
    struct recent recent;
    UNROLL
    for (uint32_t i = 0; i < RECENT; i++)
        recent.last[i] = shared->u.parsed.v.recent[i][thread];
    return recent;
}

/* The last distances before the share of this thread. Those of the part before are not known. */
DEVICE_FN struct recent recent_before(struct zstd_encode_shared *shared, const struct part *part,
                                      struct share share) {
    const uint32_t thread = thread_index();
    struct recent recent = {{0, 0, 0}};
    for (uint32_t i = share.begin; i < share.end; i++)
        remember(&recent, part->work->sequences[i].offset);
    for (uint32_t by = 1;; by *= 2) {
        UNROLL
        for (uint32_t i = 0; i < RECENT; i++)
            shared->u.parsed.v.recent[i][thread] = recent.last[i];
        sync_block();
        if (by == THREADS)
            break;
        if (thread >= by) {
            struct recent older = load_recent(shared, thread - by);
            UNROLL
            for (uint32_t i = RECENT; i-- > 0;)
                remember(&older, recent.last[i]);
            recent = older;
        }
        sync_block();
    }
    const struct recent none = {{0, 0, 0}};
    return thread > 0 ? load_recent(shared, thread - 1) : none;
}

/* What is written for a distance: its place among the last ones, the first of which is not counted
 * where no literal is before the match; or all of it. */
DEVICE_FN uint32_t offset_value(const struct recent *recent, uint32_t distance, bool has_literals) {
    uint32_t place = 0;
    UNROLL
    for (uint32_t i = RECENT; i-- > 0;)
        place = recent->last[i] == distance ? i + has_literals : place;
    return place > 0 ? place : distance + RECENT;
}

struct numbers {
    struct symbol symbols[KINDS];
};

/* A sequence as it is written. */
DEVICE_FN struct numbers numbers_of(const struct cogpu_zstd_sequence *sequences, uint32_t i) {
    const struct cogpu_zstd_sequence own = sequence_at(sequences, i),
                                     next = sequence_at(sequences, i + 1);
    const uint32_t before = i > 0 ? sequences[i - 1].literals : 0;
    const uint32_t bytes = next.at - own.at, length = bytes - (next.literals - own.literals);
    struct numbers numbers;
    numbers.symbols[LITERALS_BEFORE] = run_symbol(own.literals - before);
    numbers.symbols[OFFSET] = offset_symbol(own.offset);
    numbers.symbols[LENGTH] = length_symbol(length);
    return numbers;
}

/* Where the codes of sequences are, when the bytes of the part are not needed any more. */
DEVICE_FN uint8_t *codes_of(struct zstd_encode_shared *shared, uint32_t kind) {
    return (uint8_t *)words_of(shared) + kind * COGPU_ZSTD_SEQUENCES;
}

/* Writes offsets as they are told, and counts the codes of all sequences. */
DEVICE_FN void code_sequences(struct zstd_encode_shared *shared, const struct part *part,
                              uint32_t count) {
    struct cogpu_zstd_sequence *sequences = part->work->sequences;
    const struct share share = share_of(count);
    for (uint32_t i = thread_index(); i < KINDS * SYMBOLS; i += THREADS)
        shared->u.parsed.w.states[i / SYMBOLS].counts[i % SYMBOLS] = 0;
    if (thread_index() < KNOWN)
        for (uint32_t i = 0; i < 3; i++)
            shared->known_counts[thread_index()][i] = 0;
    struct recent recent = recent_before(shared, part, share);
    uint32_t before = share.begin > 0 ? sequences[share.begin - 1].literals : 0;
    for (uint32_t i = share.begin; i < share.end; i++) {
        const struct cogpu_zstd_sequence own = sequence_at(sequences, i);
        const uint32_t value = offset_value(&recent, own.offset, own.literals > before);
        before = own.literals;
        remember(&recent, own.offset);
        sequences[i].offset = value;
        for (uint32_t k = 0; k < KNOWN; k++)
            if (own.offset == part->distances[k])
                atomic_add(&shared->known_counts[k][value == 1 ? 0 : value <= RECENT ? 1 : 2], 1);
    }
    sync_block();
    for (uint32_t i = thread_index(); i < count; i += THREADS) {
        const struct numbers numbers = numbers_of(sequences, i);
        UNROLL
        for (uint32_t kind = 0; kind < KINDS; kind++)
            atomic_add(&shared->u.parsed.w.states[kind].counts[numbers.symbols[kind].number], 1);
    }
    sync_block();
}

/* ---- tables of states ----------------------------------------------------------------------- */

/* What everybody knows: 64 points, but 32 for offsets. */
DEVICE_TABLE int8_t usual_runs[] = {4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1,  1,  2,  2,
                                    2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1};
DEVICE_TABLE int8_t usual_offsets[] = {1, 1, 1, 1, 1, 1, 2, 2, 2, 1,  1,  1,  1,  1, 1,
                                       1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1};
DEVICE_TABLE int8_t usual_lengths[] = {1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1};

DEVICE_FN int32_t usual_points(uint32_t kind, uint32_t symbol) {
    if (kind == LITERALS_BEFORE)
        return symbol < sizeof usual_runs ? usual_runs[symbol] : 0;
    if (kind == OFFSET)
        return symbol < sizeof usual_offsets ? usual_offsets[symbol] : 0;
    return symbol < sizeof usual_lengths ? usual_lengths[symbol] : 0;
}

DEVICE_FN uint32_t usual_log(uint32_t kind) {
    return kind == OFFSET ? 5 : 6;
}

DEVICE_FN uint32_t log_max(uint32_t kind) {
    return kind == WEIGHT ? 6 : kind == OFFSET ? 8 : 9;
}

/* All below by a warp, whose lanes have two symbols each. */

/* The points of symbols, by their share; then one is given where it helps most, or taken where it
 * hurts least, until the sum is right. */
DEVICE_FN void share_points(struct states *states, uint32_t total) {
    const uint32_t size = 1u << states->log, lane = lane_index();
    uint32_t counts[2], points[2];
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t count = states->counts[lane + WARP * i];
        const uint32_t share = ((count << states->log) + total / 2) / total;
        counts[i] = count;
        points[i] = count > 0 && share == 0 ? 1 : share;
    }
    uint32_t sum = warp_sum(points[0] + points[1]);
    while (sum != size) {
        const bool is_given = sum < size;
        uint32_t best = is_given ? 0 : UINT32_MAX;
        for (uint32_t i = 0; i < 2; i++) {
            /* What the next point is worth, or the last. */
            const uint32_t between = is_given ? 2 * points[i] + 1 : 2 * points[i] - 1;
            const uint32_t worth = (counts[i] << 8) / between * SYMBOLS + lane + WARP * i;
            if (is_given ? counts[i] > 0 && worth > best : points[i] > 1 && worth < best)
                best = worth;
        }
        best = is_given ? warp_max(best) : warp_min(best);
        for (uint32_t i = 0; i < 2; i++)
            if (best % SYMBOLS == lane + WARP * i)
                points[i] = is_given ? points[i] + 1 : points[i] - 1;
        sum = is_given ? sum + 1 : sum - 1;
    }
    for (uint32_t i = 0; i < 2; i++)
        states->points[lane + WARP * i] = (int16_t)points[i];
    sync_warp();
}

/* What symbols cost with these points, in BITs. */
DEVICE_FN uint32_t states_cost(const struct states *states) {
    uint32_t cost = 0;
    for (uint32_t i = lane_index(); i < SYMBOLS; i += WARP) {
        const int32_t points = states->points[i];
        if (states->counts[i] > 0)
            cost += states->counts[i] *
                    (states->log * BIT - log2_of(points < 0 ? 1 : (uint32_t)points));
    }
    sync_warp(); /* all have read what others may write next */
    return warp_sum(cost);
}

/* Bits into words, upwards. By one thread. */
struct up_writer {
    uint32_t *words, at;
};

DEVICE_FN void put_up(struct up_writer *w, uint32_t bits, uint32_t count) {
    const uint64_t shifted = (uint64_t)bits << w->at % 32;
    w->words[w->at / 32] |= (uint32_t)shifted;
    w->words[w->at / 32 + 1] |= (uint32_t)(shifted >> 32);
    w->at += count;
}

/* Tells the points: each with as few bits as those that are left allow. By one thread. */
DEVICE_FN void tell_points(struct states *states) {
    struct up_writer w = {states->head, 0};
    for (uint32_t i = 0; i < HEAD_WORDS; i++)
        states->head[i] = 0;
    put_up(&w, states->log - 5, 4);
    uint32_t left = 1u << states->log;
    for (uint32_t i = 0; left > 0;) {
        const uint32_t value = (uint32_t)(states->points[i++] + 1);
        const uint32_t bits = log2_floor(left + 1) + 1, half = 1u << (bits - 1);
        const uint32_t few = 2 * half - 2 - left; /* values that do with a bit less */
        if (value < few)
            put_up(&w, value, bits - 1);
        else
            put_up(&w, value < half ? value : value + few, bits);
        left -= value - 1;
        if (value != 1)
            continue;
        uint32_t zeros = 0; /* that follow one */
        while (states->points[i + zeros] == 0)
            zeros++;
        i += zeros;
        for (; zeros >= 3; zeros -= 3)
            put_up(&w, 3, 2);
        put_up(&w, zeros, 2);
    }
    states->head_bytes = (w.at + 7) / 8;
}

/* Spreads symbols over the cells, and lists the states of each in order. */
DEVICE_FN void spread(struct states *states) {
    const uint32_t size = 1u << states->log, lane = lane_index(), below = (1u << lane) - 1;
    uint32_t start = 0, lows = 0;
    for (uint32_t i = lane; i < SYMBOLS; i += WARP) {
        const int32_t points = states->points[i];
        const uint32_t own = points < 0 ? 1 : (uint32_t)points, until = start + warp_scan(own);
        const uint32_t low = warp_ballot(points < 0);
        if (points < 0) /* from the end of the table */
            states->cells[size - 1 - lows - count_ones(low & below)] = (uint8_t)i;
        lows += count_ones(low);
        states->starts[i] = states->filled[i] = until - own;
        const uint32_t bits = own > 1 ? states->log - log2_floor(own - 1) : states->log;
        states->ways[i].bits_from = (bits << 16) - (own << bits);
        states->ways[i].next_from = until - 2 * own;
        start = warp_read(until, WARP - 1);
    }
    sync_warp();
    for (uint32_t base = 0, first = 0; base < size; base += WARP) {
        const uint32_t cell = (base + lane) * (size / 2 + size / 8 + 3) % size;
        const uint32_t is_free = warp_ballot(cell < size - lows);
        const uint32_t place = first + count_ones(is_free & below);
        uint32_t symbol = 0;
        for (uint32_t step = SYMBOLS / 2; step > 0; step /= 2)
            symbol += states->starts[symbol + step] <= place ? step : 0;
        if (cell < size - lows)
            states->cells[cell] = (uint8_t)symbol;
        first += count_ones(is_free);
    }
    sync_warp();
    for (uint32_t cell = lane; cell < size; cell += WARP) {
        const uint32_t symbol = states->cells[cell], like = warp_match(symbol);
        const uint32_t place = states->filled[symbol] + count_ones(like & below);
        states->next[place] = (uint16_t)(size + cell);
        sync_warp();
        if ((like & below) == 0)
            states->filled[symbol] += count_ones(like);
        sync_warp();
    }
}

/* Of a table with one symbol: a state, and no bits. */
DEVICE_FN void make_one(struct states *states, uint32_t symbol) {
    if (lane_index() == 0) {
        states->log = 0;
        states->ways[symbol].bits_from = states->ways[symbol].next_from = UINT32_MAX;
        states->next[0] = 1;
        states->head[0] = symbol;
        states->head_bytes = 1;
        states->mode = MODE_ONE;
    }
    sync_warp();
}

DEVICE_FN void take_usual(struct states *states, uint32_t kind) {
    for (uint32_t i = lane_index(); i < SYMBOLS; i += WARP)
        states->points[i] = (int16_t)usual_points(kind, i);
    if (lane_index() == 0) {
        states->log = usual_log(kind);
        states->head_bytes = 0;
        states->mode = MODE_USUAL;
    }
    sync_warp();
}

DEVICE_FN void take_own(struct states *states, uint32_t kind, uint32_t total, uint32_t used) {
    uint32_t log = log2_floor(total) > 7 ? log2_floor(total) - 2 : 5;
    while (1u << log < used)
        log++;
    if (lane_index() == 0) {
        states->log = least(log, log_max(kind));
        states->mode = MODE_OWN;
    }
    sync_warp();
    share_points(states, total);
    if (lane_index() == 0)
        tell_points(states);
    sync_warp();
}

/* Makes a table from its counts: the usual one, where it does not cost more. */
DEVICE_FN void make_states(struct states *states, uint32_t kind) {
    const uint32_t a = states->counts[lane_index()], b = states->counts[lane_index() + WARP];
    const uint32_t total = warp_sum(a + b), of_low = warp_ballot(a > 0),
                   of_high = warp_ballot(b > 0);
    const uint32_t used = count_ones(of_low) + count_ones(of_high);
    if (used == 1) {
        make_one(states, of_low ? trailing_zeros(of_low) : WARP + trailing_zeros(of_high));
        return;
    }
    uint32_t usual_cost = UINT32_MAX;
    if (kind != WEIGHT) {
        take_usual(states, kind);
        usual_cost = states_cost(states);
    }
    take_own(states, kind, total, used);
    const uint32_t head_cost = 8 * BIT * states->head_bytes;
    if (head_cost + states_cost(states) >= usual_cost)
        take_usual(states, kind);
    spread(states);
    sync_warp();
}

/* The state of the last symbol, of those that need the most bits. */
DEVICE_FN uint32_t last_state(const struct states *states, uint32_t symbol) {
    const struct way way = states->ways[symbol];
    const uint32_t count = (way.bits_from + (1u << 15)) >> 16;
    return states->next[(((count << 16) - way.bits_from) >> count) + way.next_from];
}

/* How many bits lead from a symbol to the state behind it: the lowest of that. */
DEVICE_FN uint32_t bits_to(const struct states *states, uint32_t symbol, uint32_t behind) {
    return (behind + states->ways[symbol].bits_from) >> 16;
}

DEVICE_FN void put_state(struct down_writer *w, const struct states *states, uint32_t symbol,
                         uint32_t behind) {
    const uint32_t count = bits_to(states, symbol, behind);
    put(w, behind & ((1u << count) - 1), count);
}

DEVICE_FN uint32_t state_before(const struct states *states, struct way way, uint32_t behind) {
    const uint32_t count = (behind + way.bits_from) >> 16;
    return states->next[(behind >> count) + way.next_from];
}

/* Follows the states from `end` down to `begin`, and leaves the one behind each symbol. Ways are
 * loaded a symbol ahead. */
DEVICE_FN uint32_t follow_states(const struct states *states, const uint8_t *symbols,
                                 uint16_t *behind, uint32_t state, uint32_t begin, uint32_t end,
                                 uint32_t stride) {
    struct way way = states->ways[symbols[end >= stride ? end - stride : 0]];
    for (uint32_t i = end; i >= begin + stride; i -= stride) {
        const struct way own = way;
        way = states->ways[symbols[i >= 2 * stride ? i - 2 * stride : 0]];
        behind[i - stride] = (uint16_t)state;
        state = state_before(states, own, state);
    }
    return state;
}

/* Once more from another state, until that makes no difference: then `reached` is right. */
DEVICE_FN uint32_t follow_again(const struct states *states, const uint8_t *symbols,
                                uint16_t *behind, uint32_t state, uint32_t begin, uint32_t end,
                                uint32_t reached) {
    for (uint32_t i = end; i > begin; i--) {
        if (behind[i - 1] == state)
            return reached;
        behind[i - 1] = (uint16_t)state;
        state = state_before(states, states->ways[symbols[i - 1]], state);
    }
    return state;
}

/* ---- the code of literals ------------------------------------------------------------------- */

DEVICE_FN struct code_making literals_making(struct zstd_encode_shared *shared) {
    struct tree *tree = &shared->u.parsed.v.tree;
    const struct code_making making = {shared->literal_counts,
                                       shared->lengths,
                                       shared->at_length,
                                       &shared->used,
                                       tree->keys,
                                       tree->weights,
                                       tree->symbols,
                                       tree->leaf_up,
                                       tree->inner_up,
                                       LITERALS,
                                       LITERAL_BITS_MAX,
                                       thread_index(),
                                       THREADS};
    return making;
}

/* By a warp. */
DEVICE_FN uint32_t longest_code(const struct zstd_encode_shared *shared) {
    return warp_max(
        lane_index() <= LITERAL_BITS_MAX && shared->at_length[lane_index()] > 0 ? lane_index() : 0);
}

/* The tree is told by weights, more for shorter codes; that of the last symbol is clear from the
 * others. They are coded with states, two by turns, or four bits each. By a warp. */
DEVICE_FN void tell_tree(struct zstd_encode_shared *shared) {
    struct states *states = &shared->u.parsed.w.states[WEIGHT];
    const uint32_t longest = longest_code(shared), lane = lane_index();
    uint8_t *weights = (uint8_t *)shared->u.parsed.v.tree.symbols, *head = (uint8_t *)shared->head;
    uint32_t count = 0, coded = UINT32_MAX;
    for (uint32_t i = lane; i < SYMBOLS; i += WARP)
        states->counts[i] = 0;
    for (uint32_t i = lane; i < HEAD_WORDS; i += WARP)
        shared->head[i] = 0;
    for (uint32_t i = lane; i < LITERALS; i += WARP) {
        weights[i] = (uint8_t)(shared->lengths[i] > 0 ? longest + 1 - shared->lengths[i] : 0);
        count = weights[i] > 0 ? i : count;
    }
    count = warp_max(count);
    sync_warp();
    for (uint32_t i = lane; i < count; i += WARP)
        atomic_add(&states->counts[weights[i]], 1);
    sync_warp();
    make_states(states, WEIGHT);
    if (count > 2 && states->mode == MODE_OWN) {
        uint32_t last = 0, bits = 0;
        if (lane < 2) {
            const uint32_t at = count - 1 - (count - 1 - lane) % 2;
            last = follow_states(states, weights, shared->weights_behind,
                                 last_state(states, weights[at]), lane, at, 2) -
                   (1u << states->log);
        }
        sync_warp();
        const uint32_t last_even = warp_read(last, 0), last_odd = warp_read(last, 1);
        const uint32_t each = (count - 2 + WARP - 1) / WARP;
        const uint32_t begin = least(lane * each, count - 2), end = least(begin + each, count - 2);
        for (uint32_t i = begin; i < end; i++)
            bits += bits_to(states, weights[i], shared->weights_behind[i]);
        const uint32_t until = warp_scan(bits);
        const uint32_t all = warp_read(until, WARP - 1) + 2 * states->log + 1;
        const uint32_t start = 1 + states->head_bytes, top = 8 * start + all;
        coded = states->head_bytes + (all + 7) / 8;
        if (coded < 128) {
            if (lane == 0) {
                head[0] = (uint8_t)coded;
                for (uint32_t i = 0; i < states->head_bytes; i++)
                    head[1 + i] = ((const uint8_t *)states->head)[i];
            }
            sync_warp();
            if (lane == 0) {
                struct down_writer w = write_below(shared->head, top);
                put(&w, 1, 1);
                put(&w, last_even, states->log);
                put(&w, last_odd, states->log);
                finish(&w);
            }
            if (begin < end) {
                struct down_writer w =
                    write_below(shared->head, top - 1 - 2 * states->log - (until - bits));
                for (uint32_t i = begin; i < end; i++)
                    put_state(&w, states, weights[i], shared->weights_behind[i]);
                finish(&w);
            }
        }
    }
    if (coded >= 128 && count <= 128) {
        coded = (count + 1) / 2;
        for (uint32_t i = lane; i < coded; i += WARP)
            head[1 + i] =
                (uint8_t)(weights[2 * i] << 4 | (2 * i + 1 < count ? weights[2 * i + 1] : 0));
        if (lane == 0)
            head[0] = (uint8_t)(127 + count);
    }
    if (lane == 0)
        shared->tree_bytes = coded <= 128 ? 1 + coded : UINT32_MAX;
    sync_warp();
}

/* Codes by length, the longest first, then by symbol. By a warp: the first code of each length is
 * in its lane, and goes on by as many symbols as have it. */
DEVICE_FN void make_literal_codes(struct zstd_encode_shared *shared) {
    const uint32_t lane = lane_index(), below = (1u << lane) - 1;
    uint32_t next = 0;
    for (uint32_t longer = LITERAL_BITS_MAX; longer > lane; longer--)
        next = (next + shared->at_length[longer]) >> 1;
    for (uint32_t i = lane; i < LITERALS; i += WARP) {
        const uint32_t length = shared->lengths[i], like = warp_match(length);
        const uint32_t code = warp_read(next, length) + count_ones(like & below);
        shared->codes[i] = length > 0 ? code | length << 16 : 0;
        uint32_t taken = 0;
        for (uint32_t k = 1; k <= LITERAL_BITS_MAX; k++) {
            const uint32_t count = count_ones(warp_ballot(length == k));
            taken = lane == k ? count : taken;
        }
        next += taken;
    }
}

/* ---- literals ------------------------------------------------------------------------------- */

/* How the literals of a part are written: the bytes of all, of what is before the streams, and
 * where streams begin in bytes. */
struct literals {
    uint32_t mode, bytes, head_bytes;
    uint32_t starts[STREAMS], bits[STREAMS], own_before;
};

DEVICE_FN uint32_t stream_literals(uint32_t literals) {
    return (literals + STREAMS - 1) / STREAMS;
}

/* Sums up the bits of literals; the stream that a literal begins is noted by whoever has it. */
DEVICE_FN void measure_streams(struct zstd_encode_shared *shared, const struct list *list,
                               struct literals *literals) {
    const uint8_t *own = byte_in(shared->u.parsed.choices, segment_begin());
    const uint32_t each = stream_literals(list->literals);
    uint32_t bits = 0, total;
    for (uint32_t i = 0; i < list->own_literals; i++)
        bits += shared->codes[own[i]] >> 16;
    literals->own_before = block_scan(shared, bits, &total);
    bits = literals->own_before;
    uint32_t stream = (list->own_first + each - 1) / each; /* the next that begins */
    for (uint32_t i = 0; i < list->own_literals; i++) {
        if (list->own_first + i == stream * each)
            shared->stream_starts[stream++] = bits;
        bits += shared->codes[own[i]] >> 16;
    }
    if (thread_index() == 0)
        shared->stream_starts[STREAMS] = total;
    sync_block();
    for (uint32_t i = 0; i < STREAMS; i++)
        literals->bits[i] = shared->stream_starts[i + 1] - shared->stream_starts[i];
}

/* The format's sizes before literals: 5, 12 or 20 bits, or two of 10, 14 or 18. */
DEVICE_FN uint32_t stored_head_bytes(uint32_t literals) {
    return literals < 1 << 5 ? 1 : literals < 1 << 12 ? 2 : 3;
}

DEVICE_FN uint32_t coded_head_bytes(uint32_t literals) {
    return literals < 1 << 10 ? 3 : literals < 1 << 14 ? 4 : 5;
}

DEVICE_FN struct literals plan_literals(struct zstd_encode_shared *shared,
                                        const struct list *list) {
    const uint32_t count = list->literals;
    struct literals literals = {LITERALS_STORED, 0, stored_head_bytes(count), {0}, {0}, 0};
    literals.bytes = literals.head_bytes + count;
    if (count > 0 && shared->used == 1) {
        literals.mode = LITERALS_ONE_BYTE;
        literals.bytes = literals.head_bytes + 1;
    }
    if (count < LITERALS_CODED || shared->used < 2 || shared->tree_bytes == UINT32_MAX)
        return literals;
    measure_streams(shared, list, &literals);
    const uint32_t head = coded_head_bytes(count) + shared->tree_bytes + 2 * (STREAMS - 1);
    uint32_t bytes = head;
    for (uint32_t i = 0; i < STREAMS; i++) {
        literals.starts[i] = bytes;
        bytes += literals.bits[i] / 8 + 1;
    }
    if (bytes < literals.bytes) {
        literals.mode = LITERALS_HUFFMAN;
        literals.head_bytes = head;
        literals.bytes = bytes;
    }
    return literals;
}

/* What is before the streams, by the threads of the part, to memory that nobody else writes. */
DEVICE_FN void write_literals_head(const struct zstd_encode_shared *shared, const struct list *list,
                                   const struct literals *literals, uint8_t *out) {
    const uint32_t count = list->literals;
    uint32_t head_bytes = literals->head_bytes;
    uint64_t head = literals->mode | (uint64_t)count << (head_bytes == 1 ? 3 : 4) |
                    (uint64_t)(head_bytes == 1   ? 0
                               : head_bytes == 2 ? 1
                                                 : 3)
                        << 2;
    if (literals->mode == LITERALS_HUFFMAN) {
        head_bytes = coded_head_bytes(count);
        const uint32_t stored = literals->bytes - head_bytes, format = head_bytes - 2;
        head = literals->mode | format << 2 | (uint64_t)count << 4 |
               (uint64_t)stored << (head_bytes == 3   ? 14
                                    : head_bytes == 4 ? 18
                                                      : 22);
    }
    if (thread_index() < head_bytes)
        out[thread_index()] = (uint8_t)(head >> 8 * thread_index());
    if (literals->mode == LITERALS_ONE_BYTE && shared->literal_counts[thread_index()] > 0)
        out[head_bytes] = (uint8_t)thread_index();
    if (literals->mode != LITERALS_HUFFMAN)
        return;
    for (uint32_t i = thread_index(); i < shared->tree_bytes; i += THREADS)
        out[head_bytes + i] = ((const uint8_t *)shared->head)[i];
    if (thread_index() < 2 * (STREAMS - 1))
        out[head_bytes + shared->tree_bytes + thread_index()] =
            (uint8_t)((literals->bits[thread_index() / 2] / 8 + 1) >> 8 * (thread_index() % 2));
}

DEVICE_FN void emit_literals(struct zstd_encode_shared *shared, const struct list *list,
                             const struct literals *literals, uint8_t *out) {
    const uint8_t *own = byte_in(shared->u.parsed.choices, segment_begin());
    const uint32_t each = stream_literals(list->literals);
    struct down_writer w = {NULL, 0, 0, 0, false};
    uint32_t bits = literals->own_before;
    if (literals->mode == LITERALS_STORED)
        for (uint32_t i = 0; i < list->own_literals; i++)
            out[literals->head_bytes + list->own_first + i] = own[i];
    if (literals->mode != LITERALS_HUFFMAN)
        return;
    uint32_t stream = list->own_first / each;
    for (uint32_t i = 0; i < list->own_literals; i++) {
        const uint32_t literal = list->own_first + i, code = shared->codes[own[i]];
        stream += literal == (stream + 1) * each;
        const bool is_begin = literal == stream * each;
        if (i == 0 || is_begin) {
            const uint32_t below = shared->stream_starts[stream + 1] - bits;
            finish(&w);
            w = write_below((uint32_t *)out, 8 * literals->starts[stream] + below + is_begin);
            if (is_begin)
                put(&w, 1, 1);
        }
        put(&w, code & 0xFFFF, code >> 16);
        bits += code >> 16;
    }
    finish(&w);
}

/* ---- sequences ------------------------------------------------------------------------------ */

/* The bytes before the stream of sequences. */
DEVICE_FN uint32_t sequences_head_bytes(const struct states *states, uint32_t count) {
    uint32_t bytes = count == 0 ? 1 : count < 128 ? 2 : 3;
    for (uint32_t kind = 0; count > 0 && kind < KINDS; kind++)
        bytes += states[kind].head_bytes;
    return bytes;
}

DEVICE_FN void write_sequences_head(const struct states *states, uint32_t count, uint8_t *out) {
    const uint32_t count_bytes = count < 128 ? 1 : 2;
    uint32_t at = count_bytes + 1;
    if (thread_index() == 0) {
        out[0] = (uint8_t)(count < 128 ? count : 128 + (count >> 8));
        if (count >= 128)
            out[1] = (uint8_t)count;
        if (count > 0)
            out[count_bytes] = (uint8_t)(states[LITERALS_BEFORE].mode << 6 |
                                         states[OFFSET].mode << 4 | states[LENGTH].mode << 2);
    }
    for (uint32_t kind = 0; count > 0 && kind < KINDS; kind++) {
        for (uint32_t i = thread_index(); i < states[kind].head_bytes; i += THREADS)
            out[at + i] = ((const uint8_t *)states[kind].head)[i];
        at += states[kind].head_bytes;
    }
}

DEVICE_FN void list_codes(struct zstd_encode_shared *shared, const struct part *part,
                          uint32_t count) {
    for (uint32_t i = thread_index(); i < count; i += THREADS) {
        const struct numbers numbers = numbers_of(part->work->sequences, i);
        UNROLL
        for (uint32_t kind = 0; kind < KINDS; kind++)
            codes_of(shared, kind)[i] = (uint8_t)numbers.symbols[kind].number;
    }
}

enum { LEAD_IN = 32 };

/* The states of all sequences, from the last to the first, by a warp, a run of them for each lane.
 * A lane begins some sequences behind its own, at any state: what it began with is soon forgotten.
 * Where it is not, the lane begins again with what the next one has found. */
DEVICE_FN void follow_all(struct states *states, const uint8_t *symbols, uint16_t *behind,
                          uint32_t count) {
    const uint32_t each = (count + WARP - 1) / WARP, last = count - 1;
    const uint32_t begin = least(lane_index() * each, last), end = least(begin + each, last);
    const uint32_t from = least(end + LEAD_IN, last);
    uint32_t entry = last_state(states, symbols[from]);
    for (uint32_t i = from; i > end; i--)
        entry = state_before(states, states->ways[symbols[i - 1]], entry);
    uint32_t reached = follow_states(states, symbols, behind, entry, begin, end, 1);
    for (;;) {
        const uint32_t next = warp_read_down(reached, 1);
        const bool is_wrong = end < last && next != entry;
        if (!warp_any(is_wrong))
            break;
        if (is_wrong) {
            entry = next;
            reached = follow_again(states, symbols, behind, entry, begin, end, reached);
        }
    }
    if (lane_index() == 0)
        states->last = reached - (1u << states->log);
}

/* The bits of a sequence that follow its codes, and those of the states behind it. */
DEVICE_FN uint32_t sequence_bits(const struct states *states, const struct cogpu_zstd_work *work,
                                 uint32_t i, bool is_last) {
    const struct numbers numbers = numbers_of(work->sequences, i);
    uint32_t bits = 0;
    UNROLL
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        const struct symbol symbol = numbers.symbols[kind];
        bits += symbol.extra_bits;
        bits += is_last ? 0 : bits_to(&states[kind], symbol.number, work->u.behind[kind][i]);
    }
    return bits;
}

DEVICE_FN void put_sequence(struct down_writer *w, const struct states *states,
                            const struct cogpu_zstd_work *work, uint32_t i, bool is_last) {
    const struct numbers numbers = numbers_of(work->sequences, i);
    const struct symbol run = numbers.symbols[LITERALS_BEFORE], offset = numbers.symbols[OFFSET],
                        length = numbers.symbols[LENGTH];
    put(w, offset.extra, offset.extra_bits);
    put(w, length.extra, length.extra_bits);
    put(w, run.extra, run.extra_bits);
    if (is_last)
        return;
    put_state(w, &states[LITERALS_BEFORE], run.number, work->u.behind[LITERALS_BEFORE][i]);
    put_state(w, &states[LENGTH], length.number, work->u.behind[LENGTH][i]);
    put_state(w, &states[OFFSET], offset.number, work->u.behind[OFFSET][i]);
}

/* Writes the stream of sequences from byte `start` on, unless that comes to `limit` bytes. Returns
 * the byte behind it. It is put together where literals have been, so that threads can take one
 * sequence after the other by turns. */
DEVICE_FN uint32_t write_sequences(struct zstd_encode_shared *shared, const struct part *part,
                                   uint32_t count, uint32_t start, uint32_t limit, uint32_t *out) {
    const struct states *states = shared->u.parsed.w.states;
    const uint32_t logs = states[LITERALS_BEFORE].log + states[OFFSET].log + states[LENGTH].log;
    uint32_t *staged = shared->u.parsed.choices, bits = 0, total;
    for (uint32_t i = thread_index(); i < count; i += THREADS)
        bits += sequence_bits(states, part->work, i, i + 1 == count);
    block_scan(shared, bits, &total);
    const uint32_t end = start + (total + logs) / 8 + 1;
    if (end >= limit)
        return limit;
    for (uint32_t i = start / 4 + thread_index(); 4 * i < end; i += THREADS)
        staged[i] = 0;
    sync_block();
    uint32_t top = 8 * start + total + logs;
    if (thread_index() == 0) {
        struct down_writer w = write_below(staged, top + 1);
        put(&w, 1, 1);
        for (uint32_t kind = 0; kind < KINDS; kind++)
            put(&w, states[kind].last, states[kind].log);
        finish(&w);
    }
    top -= logs;
    for (uint32_t base = 0; base < count; base += THREADS) {
        const uint32_t i = base + thread_index();
        bits = i < count ? sequence_bits(states, part->work, i, i + 1 == count) : 0;
        const uint32_t before = block_scan(shared, bits, &total);
        if (bits > 0) {
            struct down_writer w = write_below(staged, top - before);
            put_sequence(&w, states, part->work, i, i + 1 == count);
            finish(&w);
        }
        top -= total;
    }
    sync_block();
    /* The first word has bytes of what is before. */
    for (uint32_t i = start / 4 + thread_index(); 4 * i < end; i += THREADS)
        out[i] = i == start / 4 ? out[i] | staged[i] : staged[i];
    return end;
}

/* ---- a part --------------------------------------------------------------------------------- */

/* Codes for what is listed: the tables of sequences by a warp each, which follows their states as
 * well; that of literals by another. */
DEVICE_FN void make_codes(struct zstd_encode_shared *shared, const struct part *part,
                          const struct list *list) {
    const struct code_making literals = literals_making(shared);
    struct states *states = shared->u.parsed.w.states;
    shared->lengths[thread_index()] = 0;
    if (thread_index() <= LITERAL_BITS_MAX)
        shared->at_length[thread_index()] = 0;
    if (thread_index() == 0) {
        shared->used = 0;
        shared->tree_bytes = UINT32_MAX;
    }
    list_codes(shared, part, list->sequences);
    code_keys(&literals);
    sync_block();
    code_ranks(&literals);
    sync_block();
    if (warp_index() < KINDS) {
        if (list->sequences > 0) {
            make_states(&states[warp_index()], warp_index());
            follow_all(&states[warp_index()], codes_of(shared, warp_index()),
                       part->work->u.behind[warp_index()], list->sequences);
        }
    } else if (warp_index() == KINDS && shared->used > 1) {
        code_lengths(&literals);
        make_literal_codes(shared);
        tell_tree(shared);
    }
    sync_block();
}

/* Writes what is listed to `out`. Returns its bytes, or those of the part where it is no gain. */
DEVICE_FN uint32_t write_part(struct zstd_encode_shared *shared, const struct part *part,
                              const struct list *list, uint8_t *out) {
    const struct states *states = shared->u.parsed.w.states;
    const uint32_t count = list->sequences;
    const words4 zeros = {0, 0, 0, 0};
    for (uint32_t i = 16 * thread_index(); i < COGPU_ZSTD_STAGED; i += 16 * THREADS)
        store_words4(out + i, zeros);
    make_codes(shared, part, list);
    const struct literals literals = plan_literals(shared, list);
    const uint32_t start = literals.bytes + sequences_head_bytes(states, count);
    if (start >= part->bytes)
        return part->bytes;
    write_literals_head(shared, list, &literals, out);
    write_sequences_head(states, count, out + literals.bytes);
    sync_block(); /* bytes of heads share words with streams */
    emit_literals(shared, list, &literals, out);
    sync_block();
    if (count == 0)
        return start;
    return write_sequences(shared, part, count, start, part->bytes, (uint32_t *)out);
}

DEVICE_FN uint32_t parts_of(uint32_t bytes) {
    return (bytes + COGPU_ZSTD_PART - 1) / COGPU_ZSTD_PART;
}

DEVICE_FN struct part part_of(const struct cogpu_zstd_encode_args *args, const cogpu_uncoded *block,
                              uint32_t number) {
    struct part part;
    part.history = number * COGPU_ZSTD_PART;
    part.in = args->decoded + block->in + part.history;
    part.bytes = least(block->in_bytes - part.history, COGPU_ZSTD_PART);
    part.has_planes = block->step == 1;
    part.distances[BYTE_BEFORE] = 1;
    part.distances[NEAR_BEFORE] = block->step == 1 ? block->row_bytes - 1 : block->step;
    part.distances[ROW_BEFORE] = block->row_bytes == block->step ? 0 : block->row_bytes;
    for (uint32_t k = 1; k < KNOWN; k++)
        if (part.distances[k] == 1 || part.distances[k] >= part.history + part.bytes)
            part.distances[k] = 0;
    return part;
}

/* Returns the bytes that are staged, or those of the part where it is no gain. */
DEVICE_FN uint32_t encode_part(const struct cogpu_zstd_encode_args *args,
                               struct zstd_encode_shared *shared, struct part *part, uint8_t *out) {
    const uint32_t worth = args->keys > 0 ? worth_of_search(shared, part) : WORTH_NOTHING;
    if (worth != WORTH_NOTHING)
        search(shared, part, args->keys > 1);
    pad_part(shared);
    parse_first(shared, part, worth);
    for (uint32_t turn = 1;; turn++) {
        const struct list list = list_sequences(shared, part);
        code_sequences(shared, part, list.sequences);
        if (turn == args->turns)
            return write_part(shared, part, &list, out);
        learn_costs(shared, part, list.literals, list.sequences);
        parse(shared, part);
    }
}

/* Part after part: this thread block one of as many as there are. */
DEVICE_FN void encode_parts(const struct cogpu_zstd_encode_args *args,
                            struct zstd_encode_shared *shared) {
    const uint32_t all = args->count * args->parts_most;
    for (uint32_t i = block_index(); i < all; i += block_count()) {
        const uint32_t index = i / args->parts_most, number = i % args->parts_most;
        const cogpu_uncoded *block = &args->blocks[index];
        if (args->sizes[index] == COGPU_GPU_SPARSE || number >= parts_of(block->in_bytes))
            continue;
        struct part part = part_of(args, block, number);
        struct cogpu_zstd_part made = {PART_ONE_BYTE, 1, 0, 0};
        part.work = args->work + block_index();
        if (!load_part(shared, &part)) {
            made.body_bytes =
                encode_part(args, shared, &part, args->staged + (uint64_t)i * COGPU_ZSTD_STAGED);
            made.kind = made.body_bytes < part.bytes ? PART_CODED : PART_STORED;
        }
        if (thread_index() == 0)
            args->parts[i] = made;
        sync_block();
    }
}

KERNEL(cogpu_kernel_zstd_encode, struct cogpu_zstd_encode_args, struct zstd_encode_shared, THREADS,
       2) {
    encode_parts(args, shared);
}

/* ---- parts to frames ------------------------------------------------------------------------ */

enum { MAGIC_BYTES = 4, FRAME_HEAD_MOST = 9 };

/* The bytes of the content's size. */
DEVICE_FN uint32_t size_bytes(uint32_t in_bytes) {
    return in_bytes < 256 ? 1 : in_bytes < 65536 + 256 ? 2 : 4;
}

DEVICE_FN uint32_t frame_head_byte(uint32_t in_bytes, uint32_t i) {
    const uint32_t bytes = size_bytes(in_bytes), flag = bytes / 2;
    if (i < MAGIC_BYTES)
        return 0xFD2FB528u >> 8 * i & 0xFF;
    if (i == MAGIC_BYTES)
        return flag << 6 | 1 << 5; /* a single segment */
    return (bytes == 2 ? in_bytes - 256 : in_bytes) >> 8 * (i - MAGIC_BYTES - 1) & 0xFF;
}

/* A warp for each block: its parts one after the other. */
KERNEL(cogpu_kernel_zstd_place, struct cogpu_zstd_encode_args, struct nothing_shared, WARP, 16) {
    const uint32_t in_bytes = args->blocks[block_index()].in_bytes, count = parts_of(in_bytes);
    struct cogpu_zstd_part *parts = args->parts + (uint64_t)block_index() * args->parts_most;
    uint32_t at = MAGIC_BYTES + 1 + size_bytes(in_bytes);
    if (args->sizes[block_index()] == COGPU_GPU_SPARSE)
        return;
    sync_warp(); /* all have read what one will write */
    for (uint32_t base = 0; base < count; base += WARP) {
        const uint32_t i = base + lane_index();
        const uint32_t bytes = i < count ? COGPU_ZSTD_PART_HEAD + parts[i].body_bytes : 0;
        const uint32_t until = warp_scan(bytes);
        if (i < count)
            parts[i].start = at + until - bytes;
        at += warp_read(until, WARP - 1);
    }
    if (lane_index() == 0)
        args->sizes[block_index()] = at;
}

/* Copies bytes to any place: whole words, and bytes where a word has others of other parts. */
DEVICE_FN void copy_bytes(uint8_t *to, const uint8_t *from, uint32_t bytes) {
    const uint32_t ahead = least((uint32_t)(-(uintptr_t)to % 4), bytes);
    const uint32_t words = (bytes - ahead) / 4, tail = ahead + 4 * words;
    if (thread_index() < ahead)
        to[thread_index()] = from[thread_index()];
    if (thread_index() < bytes - tail)
        to[tail + thread_index()] = from[tail + thread_index()];
    for (uint32_t i = thread_index(); i < words; i += THREADS) {
        const uint32_t at = ahead + 4 * i; /* `from` is aligned */
        const uint8_t *word = from + (at & ~3u);
        *(number32 *)(to + at) =
            funnel_right(load_u32_aligned(word), load_u32_aligned(word + 4), 8 * (at & 3));
    }
}

/* A block of threads for each part. */
KERNEL(cogpu_kernel_zstd_join, struct cogpu_zstd_encode_args, struct nothing_shared, THREADS, 8) {
    const uint32_t index = block_index() / args->parts_most;
    const uint32_t number = block_index() % args->parts_most;
    const cogpu_uncoded *block = &args->blocks[index];
    const uint32_t count = parts_of(block->in_bytes);
    if (args->sizes[index] == COGPU_GPU_SPARSE || number >= count)
        return;
    const struct part part = part_of(args, block, number);
    const struct cogpu_zstd_part made = args->parts[block_index()];
    uint8_t *frame = args->slots + block->out, *out = frame + made.start;
    if (number == 0 && thread_index() < made.start)
        frame[thread_index()] = (uint8_t)frame_head_byte(block->in_bytes, thread_index());
    const uint32_t told = made.kind == PART_CODED ? made.body_bytes : part.bytes;
    const uint32_t head = (number + 1 == count) | made.kind << 1 | told << 3;
    if (thread_index() < COGPU_ZSTD_PART_HEAD)
        out[thread_index()] = (uint8_t)(head >> 8 * thread_index());
    copy_bytes(out + COGPU_ZSTD_PART_HEAD,
               made.kind == PART_CODED ? args->staged + (uint64_t)block_index() * COGPU_ZSTD_STAGED
                                       : part.in,
               made.body_bytes);
}
