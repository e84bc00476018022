/*
 * Takes zlib streams, hands on decoded bytes and a verdict for each. A thread block decodes one
 * stream at a time with all its threads; nothing in the file needs to help. A deflate stream is a
 * row of sections (RFC 1951 calls them blocks), each stored or a list of tokens under Huffman
 * codes.
 *
 * Tokens are decoded by many lanes at once. Each lane has a segment of the bits that come next,
 * starts somewhat before it at any bit, and soon walks in step with the true tokens, since Huffman
 * codes synchronise themselves. It then walks its segment and notes where it leaves it. Lane 0
 * starts at a true token; where each lane starts just where the one before it left, all of them are
 * right. The few that do not are walked again. That comparison is the proof: no guess goes
 * unchecked.
 *
 * The lanes' bytes are summed up, and each lane walks once more and writes its tokens into a slice
 * of the output that lies in shared memory, a slot of 16 bits a byte: a literal is its value, a
 * match just the place that its first byte is copied from. When the slice is full, the other bytes
 * of matches get their places from the slot before them, and every slot whose place lies in the
 * slice takes what stands there until only literals and places before the slice remain, which are
 * in memory already. Chains of copies shrink by half with each such step, however long they are.
 * The slice's bytes then go out in order, and into the Adler-32.
 *
 * Work is linear in the stored bytes and the room: a stride of lanes costs at worst what one lane
 * alone would take, a slice at worst one walk of the lanes in it, and sections are limited by what
 * they hold.
 */
#include "backend/cuda/cuda_inflate.h"
#include "backend/cuda/simt.h"

enum {
    THREADS = 256,
    PER_MULTIPROCESSOR = 4,
    WARPS = THREADS / WARP,
    LANES = 256, /* threads that decode tokens */
    LANE_WARPS = LANES / WARP
};

/* Bits of a lane's segment, and of the way on which it falls into step. */
enum { LANE_BITS_MIN = 64, LANE_BITS_MAX = 320, LEAD_BITS = 384 };

/* A token is at most 48 bits, and a reader looks 96 ahead. */
enum {
    OVERRUN_BITS = 48 + 96 + 32,
    HEADER_BITS = 5120, /* 3 + 14 + 19 * 3, and what the lanes of a header may look at */
    STAGE_BITS = LANES * LANE_BITS_MAX + 4864,
    STAGE_WORDS = STAGE_BITS / 32,
    UNIT_BITS = 128, /* loaded at once */
    NOT_STAGED = 0x80000000 - UNIT_BITS
};

/* A slot is the place of a byte in the slice, counted from its start, that this one equals: below
 * OPEN_END in the slice, from BEFORE on (negative) before it. Or it is a literal, or empty. */
enum {
    SLICE = 14336,
    VECTOR = 8, /* slots that a thread handles at once */
    OPEN_END = 0x4000,
    LITERAL_SLOT = 0x4000,
    EMPTY = 0x7FFF,
    BEFORE = 0x8000
};

enum {
    ROOT_BITS = 10,
    ROOT = 1 << ROOT_BITS,
    BRANCH_BITS = 15 - ROOT_BITS,
    BRANCH = 1 << BRANCH_BITS,
    BRANCHES = 32,
    CODE_BITS_MAX = 15,
    CODE_END = 1 << CODE_BITS_MAX
};

/* The tables: literals and lengths at 0, distances at ROOT, then branches for literals and lengths
 * with codes over ROOT_BITS. An entry: bits to go on by (5), how many of them are extra bits (4),
 * flags, the base that the extra bits are added to (16). */
enum { DISTANCES = ROOT, BRANCHED = 2 * ROOT, ENTRIES = 2 * ROOT + BRANCHES * BRANCH };
enum {
    IS_LITERAL = 1 << 9,
    IS_LENGTH = 1 << 10,
    IS_DISTANCE = 1 << 11,
    IS_END = 1 << 12,
    IS_LONG = 1 << 13, /* no branch for it: look it up bit by bit */
    IS_BAD = 1 << 14,
    IS_BRANCH = 1 << 15
};

enum { LITERALS_MAX = 288, DISTANCES_MAX = 32, PRECODES = 19 };

/* A canonical code. Codes are taken as 15 bits, the first to come on top. */
struct code {
    uint32_t limits[16]; /* of each length: where the codes of this and all shorter ones end */
    uint32_t first[16];  /* its first symbol in `sorted` */
    uint32_t next[16];
};

enum { LITERAL_CODE, DISTANCE_CODE, PRECODE, CODES };

struct header {
    uint32_t bit; /* behind it, in the stage; 0 where it is damaged */
    uint32_t literals, distances;
};

struct inflate_shared {
    uint16_t slots[SLICE];
    uint32_t stage[STAGE_WORDS];
    uint32_t table[ENTRIES];
    uint32_t precode[128];
    struct code codes[CODES];
    uint16_t sorted[LITERALS_MAX + DISTANCES_MAX + WARP];
    uint8_t lengths[LITERALS_MAX + DISTANCES_MAX];
    uint8_t precode_lengths[WARP];
    uint32_t exits[LANES];
    uint32_t first_end[LANE_WARPS];
    uint32_t sums[WARPS], weighted_sums[WARPS];
    struct header header;
    uint32_t ticket;
};

/* A stream and how far it is. All threads have the same, but for their share of the sums. */
struct stream {
    const uint8_t *units; /* its stored bytes, from the last 16-byte boundary before them */
    uint32_t unit_count;
    uint32_t bit;     /* what comes next, counted from `units` */
    uint32_t bit_end; /* where its Adler-32 begins at the latest */
    uint32_t staged;  /* the first bit that is staged */
    uint8_t *out;
    uint32_t room, produced;
    uint32_t slice;         /* where the slice begins in `out` */
    uint32_t sum, weighted; /* of bytes, and of bytes times their place, modulo ADLER */
    bool is_fixed;          /* the tables hold the fixed codes */
};

enum { ADLER = 65521 };

DEVICE_FN uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* ---- stored bytes -------------------------------------------------------------------------- */

/* Has the bits from stream->bit on in shared memory, zeros behind the end. For all threads. */
DEVICE_FN void need_bits(struct inflate_shared *s, struct stream *stream, uint32_t bits) {
    if (stream->bit >= stream->staged && stream->bit + bits <= stream->staged + STAGE_BITS)
        return;
    uint32_t first = stream->bit / UNIT_BITS;
    sync_block();
    for (uint32_t i = thread_index(); i < STAGE_BITS / UNIT_BITS; i += THREADS) {
        words4 unit = {0, 0, 0, 0};
        if (first + i < stream->unit_count)
            unit = load_words4(stream->units + 16 * (size_t)(first + i));
        store_words4(&s->stage[4 * i], unit);
    }
    stream->staged = first * UNIT_BITS;
    sync_block();
}

DEVICE_FN uint32_t bits_at(const uint32_t *words, uint32_t bit) {
    return funnel_right(words[bit >> 5], words[(bit >> 5) + 1], bit);
}

/* Three words, so that the next one is there before it is needed. */
struct reader {
    uint32_t low, high, next, bit;
};

DEVICE_FN struct reader reader_at(const uint32_t *words, uint32_t bit) {
    const uint32_t *at = words + (bit >> 5);
    struct reader reader = {at[0], at[1], at[2], bit};
    return reader;
}

DEVICE_FN uint32_t reader_bits(const struct reader *reader) {
    return funnel_right(reader->low, reader->high, reader->bit);
}

DEVICE_FN void reader_skip(struct reader *reader, const uint32_t *words, uint32_t bits) {
    uint32_t bit = reader->bit + bits;
    if ((bit ^ reader->bit) & 32) {
        reader->low = reader->high;
        reader->high = reader->next;
        reader->next = words[(bit >> 5) + 2];
    }
    reader->bit = bit;
}

/* ---- codes --------------------------------------------------------------------------------- */

/* Sorts the symbols of a code by length. For one warp. False where it is no code that libdeflate
 * takes: too many codes or too few, but for a single one of 1 bit, or none where that is allowed.
 */
DEVICE_FN bool make_code(struct code *code, uint16_t *sorted, const uint8_t *lengths,
                         uint32_t symbols, bool may_be_empty) {
    uint32_t lane = lane_index();
    if (lane < 16)
        code->next[lane] = 0;
    sync_warp();
    for (uint32_t i = lane; i < symbols; i += WARP)
        atomic_add(&code->next[lengths[i]], 1);
    sync_warp();
    uint32_t length = lane & 15;
    uint32_t count = lane > 0 && lane < 16 ? code->next[length] : 0;
    uint32_t limit = warp_scan(count << (CODE_BITS_MAX - length)), first = warp_scan(count) - count;
    sync_warp();
    if (lane < 16) {
        code->limits[lane] = limit;
        code->first[lane] = code->next[lane] = first;
    }
    sync_warp();
    for (uint32_t i = lane; i < symbols + lane; i += WARP) {
        length = i < symbols ? lengths[i] : 0;
        uint32_t peers = warp_match(length), before = peers & ((1u << lane) - 1);
        if (length > 0)
            sorted[code->next[length] + count_ones(before)] = (uint16_t)i;
        sync_warp();
        if (before == 0)
            code->next[length] += count_ones(peers);
        sync_warp();
    }
    uint32_t end = warp_read(limit, 15), used = warp_sum(count), ones = warp_read(count, 1);
    return end == CODE_END || (used == 1 && ones == 1) || (used == 0 && may_be_empty);
}

/* The length of the code that these 15 bits begin with; 16 where there is none. */
DEVICE_FN uint32_t code_length(const struct code *code, uint32_t bits) {
    uint32_t length = bits >= code->limits[8] ? 9 : 1;
    length += bits >= code->limits[length + 3] ? 4 : 0;
    length += bits >= code->limits[length + 1] ? 2 : 0;
    length += bits >= code->limits[length] ? 1 : 0;
    return length;
}

DEVICE_FN uint32_t code_symbol(const struct code *code, const uint16_t *sorted, uint32_t bits,
                               uint32_t length) {
    return sorted[code->first[length] +
                  ((bits - code->limits[length - 1]) >> (CODE_BITS_MAX - length))];
}

DEVICE_FN uint32_t sorted_at(uint32_t which) {
    return which == LITERAL_CODE    ? 0
           : which == DISTANCE_CODE ? LITERALS_MAX
                                    : LITERALS_MAX + DISTANCES_MAX;
}

DEVICE_FN uint32_t entry_of(uint32_t bits, uint32_t extra, uint32_t flag, uint32_t base) {
    return (bits + extra) | extra << 5 | flag | base << 16;
}

DEVICE_FN uint32_t bad_entry(void) {
    return entry_of(1, 0, IS_BAD, 0);
}

/* `bits`: of the code that are left to go on by. */
DEVICE_FN uint32_t literal_entry(uint32_t symbol, uint32_t bits) {
    if (symbol < 256)
        return entry_of(bits, 0, IS_LITERAL, LITERAL_SLOT | symbol);
    if (symbol == 256)
        return entry_of(bits, 0, IS_END, 0);
    uint32_t length = symbol - 257, extra = length / 4 - 1;
    if (length < 8)
        return entry_of(bits, 0, IS_LENGTH, 3 + length);
    if (length < 28)
        return entry_of(bits, extra, IS_LENGTH, 3 + ((4 + length % 4) << extra));
    return length == 28 ? entry_of(bits, 0, IS_LENGTH, 258) : bad_entry();
}

DEVICE_FN uint32_t distance_entry(uint32_t symbol, uint32_t bits) {
    uint32_t extra = symbol / 2 - 1;
    if (symbol < 4)
        return entry_of(bits, 0, IS_DISTANCE, 1 + symbol);
    return symbol < 30 ? entry_of(bits, extra, IS_DISTANCE, 1 + ((2 + symbol % 2) << extra))
                       : bad_entry();
}

/* The entry of the code that `bits` begin with, less the bits that were taken already. */
DEVICE_FN uint32_t entry_by_code(const struct inflate_shared *s, uint32_t which, uint32_t bits,
                                 uint32_t taken) {
    const struct code *code = &s->codes[which];
    uint32_t length = code_length(code, bits);
    if (length > CODE_BITS_MAX)
        return bad_entry();
    uint32_t symbol = code_symbol(code, s->sorted + sorted_at(which), bits, length);
    return which == LITERAL_CODE ? literal_entry(symbol, length - taken)
                                 : distance_entry(symbol, length - taken);
}

DEVICE_FN_BIG uint32_t long_entry(const struct inflate_shared *s, uint32_t table, uint32_t bits) {
    return entry_by_code(s, table == 0 ? LITERAL_CODE : DISTANCE_CODE, reverse_bits32(bits) >> 17,
                         0);
}

/* Codes over ROOT_BITS are the last ones, so their roots follow one another: the n-th has the n-th
 * branch. */
DEVICE_FN uint32_t root_entry(const struct inflate_shared *s, uint32_t which, uint32_t index) {
    uint32_t bits = reverse_bits32(index) >> 17;
    if (bits < s->codes[which].limits[ROOT_BITS])
        return entry_by_code(s, which, bits, 0);
    uint32_t branch = (bits - s->codes[which].limits[ROOT_BITS]) >> BRANCH_BITS;
    if (which == LITERAL_CODE && branch < BRANCHES)
        return entry_of(ROOT_BITS, 0, IS_BRANCH, BRANCHED + branch * BRANCH);
    return IS_LONG;
}

DEVICE_FN uint32_t branch_entry(const struct inflate_shared *s, uint32_t index) {
    uint32_t bits = s->codes[LITERAL_CODE].limits[ROOT_BITS] + index / BRANCH * BRANCH +
                    (reverse_bits32(index % BRANCH) >> (32 - BRANCH_BITS));
    return bits < CODE_END ? entry_by_code(s, LITERAL_CODE, bits, ROOT_BITS) : bad_entry();
}

/* From the code lengths of header. For all threads. */
DEVICE_FN bool make_tables(struct inflate_shared *s, uint32_t literals, uint32_t distances) {
    bool is_good = true;
    if (warp_index() == 0)
        is_good = make_code(&s->codes[LITERAL_CODE], s->sorted, s->lengths, literals, false) &&
                  s->lengths[256] > 0;
    if (warp_index() == 1)
        is_good = make_code(&s->codes[DISTANCE_CODE], s->sorted + LITERALS_MAX,
                            s->lengths + literals, distances, true);
    if (sync_block_or(!is_good))
        return false;
    for (uint32_t i = thread_index(); i < ENTRIES; i += THREADS)
        s->table[i] = i < DISTANCES  ? root_entry(s, LITERAL_CODE, i)
                      : i < BRANCHED ? root_entry(s, DISTANCE_CODE, i - DISTANCES)
                                     : branch_entry(s, i - BRANCHED);
    sync_block();
    return true;
}

/* ---- the header of a section --------------------------------------------------------------- */

/* Code lengths are coded themselves, by the precode. An entry: bits to go on by (5), how many of
 * them are extra (3), the code length or one of these (8), how often it comes (16). */
enum { AS_BEFORE = 0xFF, NO_LENGTH = 0xFE, HEADER_SEGMENT = 48, HEADER_LEAD = 64 };

DEVICE_TABLE uint8_t precode_order[PRECODES] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                11, 4,  12, 3, 13, 2, 14, 1, 15};

DEVICE_FN uint32_t precode_entry(uint32_t symbol, uint32_t bits) {
    uint32_t extra = symbol < 16 ? 0 : symbol == 16 ? 2 : symbol == 17 ? 3 : 7;
    uint32_t length = symbol < 16 ? symbol : symbol == 16 ? AS_BEFORE : 0;
    return (bits + extra) | extra << 5 | length << 8 |
           (symbol < 16    ? 1u
            : symbol == 18 ? 11u
                           : 3u)
               << 16;
}

/* For one warp. The bit behind the precode's lengths, or 0. */
DEVICE_FN uint32_t read_precode(struct inflate_shared *s, uint32_t bit, uint32_t count) {
    uint32_t lane = lane_index();
    struct code *code = &s->codes[PRECODE];
    uint16_t *sorted = s->sorted + sorted_at(PRECODE);
    s->precode_lengths[lane] = 0;
    sync_warp();
    if (lane < count)
        s->precode_lengths[precode_order[lane]] = bits_at(s->stage, bit + 3 * lane) & 7;
    sync_warp();
    if (!make_code(code, sorted, s->precode_lengths, PRECODES, false))
        return 0;
    sync_warp();
    for (uint32_t i = lane; i < 128; i += WARP) {
        uint32_t bits = reverse_bits32(i) >> 17, length = code_length(code, bits);
        s->precode[i] = length <= 7 ? precode_entry(code_symbol(code, sorted, bits, length), length)
                                    : 1 | NO_LENGTH << 8 | 1 << 16;
    }
    sync_warp();
    return bit + 3 * count;
}

/* How often the code length of an entry comes. */
DEVICE_FN uint32_t times_of(uint32_t entry, uint32_t bits) {
    uint32_t extra = entry >> 5 & 7;
    return (entry >> 16) + (bits >> ((entry & 31) - extra) & ((1u << extra) - 1));
}

/* Walks code lengths from one bit to another; where it ends, and how many there were. */
DEVICE_FN uint32_t walk_lengths(const struct inflate_shared *s, uint32_t from, uint32_t to,
                                uint32_t *count) {
    *count = 0;
    while (from < to) {
        uint32_t bits = bits_at(s->stage, from), entry = s->precode[bits & 127];
        *count += times_of(entry, bits);
        from += entry & 31;
    }
    return from;
}

/* Writes the code lengths of a segment, `at` and on, none from `total` on. False where there are
 * none such; *end is set where the last one is among them. */
DEVICE_FN bool write_lengths(struct inflate_shared *s, uint32_t from, uint32_t to, uint32_t at,
                             uint32_t total, uint32_t *end) {
    bool is_good = true;
    while (from < to && at < total) {
        uint32_t bits = bits_at(s->stage, from), entry = s->precode[bits & 127];
        uint32_t times = times_of(entry, bits), length = entry >> 8 & 0xFF;
        is_good = is_good && length != NO_LENGTH && times <= total - at;
        for (uint32_t i = 0; i < times && at < total; i++)
            s->lengths[at++] = (uint8_t)length;
        from += entry & 31;
        if (at == total)
            *end = from;
    }
    return is_good;
}

/* Puts the length before it in the place of each AS_BEFORE. For one warp; false without one. */
DEVICE_FN bool repeat_lengths(struct inflate_shared *s, uint32_t total) {
    uint32_t lane = lane_index(), before = AS_BEFORE;
    bool is_good = true;
    for (uint32_t first = 0; first < total; first += WARP) {
        uint32_t i = first + lane, length = i < total ? s->lengths[i] : 0;
        uint32_t known = warp_ballot(length != AS_BEFORE) & (0xFFFFFFFFu >> (31 - lane));
        uint32_t found = warp_read(length, known ? 31 - leading_zeros(known) : 0);
        length = known ? found : before;
        is_good = is_good && length != AS_BEFORE;
        if (i < total)
            s->lengths[i] = (uint8_t)length;
        before = warp_read(length, WARP - 1);
    }
    return warp_all(is_good);
}

/* The code lengths, by the lanes of one warp in the way that tokens are decoded: see
 * settle_segments. The bit behind them, or 0. */
DEVICE_FN uint32_t read_lengths(struct inflate_shared *s, uint32_t bit, uint32_t total) {
    uint32_t lane = lane_index();
    for (uint32_t done = 0; done < total;) {
        uint32_t start = bit + lane * HEADER_SEGMENT, to = start + HEADER_SEGMENT, count, exit = 0;
        uint32_t lead = least(lane * HEADER_SEGMENT, HEADER_LEAD);
        uint32_t from = walk_lengths(s, start - lead, start, &count);
        bool must_walk = true;
        for (uint32_t round = 0; round <= WARP && warp_any(must_walk); round++) {
            if (must_walk)
                exit = walk_lengths(s, from, to, &count);
            uint32_t true_start = warp_read_up(exit, 1);
            must_walk = lane > 0 && true_start != from;
            from = must_walk ? true_start : from;
        }
        uint32_t counts = warp_scan(count), end = 0;
        if (!warp_all(write_lengths(s, from, to, done + counts - count, total, &end)))
            return 0;
        uint32_t last = warp_max(end);
        if (last > 0) {
            sync_warp();
            return repeat_lengths(s, total) ? last : 0;
        }
        done += warp_read(counts, WARP - 1);
        bit = warp_read(exit, WARP - 1);
    }
    return 0;
}

/* The header of a section with its own codes. For one warp; fills s->header and s->lengths. */
DEVICE_FN void read_codes(struct inflate_shared *s, uint32_t bit) {
    uint32_t counts = bits_at(s->stage, bit);
    uint32_t literals = 257 + (counts & 31), distances = 1 + (counts >> 5 & 31), end = 0;
    if (literals <= 286 && distances <= 30)
        end = read_precode(s, bit + 14, 4 + (counts >> 10 & 15));
    if (end > 0)
        end = read_lengths(s, end, literals + distances);
    if (lane_index() > 0)
        return;
    s->header.bit = end;
    s->header.literals = literals;
    s->header.distances = distances;
}

DEVICE_FN bool use_own_codes(struct inflate_shared *s, struct stream *stream) {
    stream->is_fixed = false;
    sync_block();
    if (warp_index() == 0)
        read_codes(s, stream->bit - stream->staged);
    sync_block();
    stream->bit = stream->staged + s->header.bit;
    return s->header.bit > 0 && make_tables(s, s->header.literals, s->header.distances);
}

DEVICE_FN bool use_fixed_codes(struct inflate_shared *s, struct stream *stream) {
    if (stream->is_fixed)
        return true;
    stream->is_fixed = true;
    sync_block();
    for (uint32_t i = thread_index(); i < LITERALS_MAX + DISTANCES_MAX; i += THREADS)
        s->lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : i < LITERALS_MAX ? 8 : 5;
    sync_block();
    return make_tables(s, LITERALS_MAX, DISTANCES_MAX);
}

/* ---- walks over tokens --------------------------------------------------------------------- */

/* Where the next entry is to be looked up, after this one. */
struct lookup {
    uint32_t table, mask;
};

DEVICE_FN struct lookup first_lookup(void) {
    struct lookup lookup = {0, ROOT - 1};
    return lookup;
}

DEVICE_FN struct lookup next_lookup(uint32_t entry) {
    const bool is_branch = (entry & IS_BRANCH) != 0;
    struct lookup next = first_lookup();
    next.table = entry & IS_LENGTH ? (uint32_t)DISTANCES : is_branch ? entry >> 16 : 0;
    if (is_branch)
        next.mask = BRANCH - 1;
    return next;
}

DEVICE_FN uint32_t value_of(uint32_t entry, uint32_t bits) {
    uint32_t extra = entry >> 5 & 15;
    return (entry >> 16) + (bits >> ((entry & 31) - extra) & ((1u << extra) - 1));
}

/* To the first token at or after `to`, from any bit: what is not a token is passed over. */
DEVICE_FN uint32_t fall_into_step(const struct inflate_shared *s, uint32_t from, uint32_t to) {
    struct reader reader = reader_at(s->stage, from);
    struct lookup lookup = first_lookup();
    while (lookup.table != 0 || reader.bit < to) {
        uint32_t bits = reader_bits(&reader);
        uint32_t entry = s->table[lookup.table + (bits & lookup.mask)];
        if (entry & IS_LONG)
            entry = long_entry(s, lookup.table, bits);
        reader_skip(&reader, s->stage, entry & 31);
        lookup = next_lookup(entry);
    }
    return reader.bit;
}

/* A lane's share of a stride: tokens that begin in its segment. */
struct segment {
    uint32_t from, to; /* where its first token begins, and before which bit its last */
    uint32_t exit;     /* where its last token ends */
    uint32_t bytes;
    bool has_end, is_bad;
};

DEVICE_FN void count_bytes(const struct inflate_shared *s, struct segment *segment) {
    struct reader reader = reader_at(s->stage, segment->from);
    struct lookup lookup = first_lookup();
    uint32_t bytes = 0, flags = 0;
    while (lookup.table != 0 || reader.bit < segment->to) {
        uint32_t bits = reader_bits(&reader);
        uint32_t entry = s->table[lookup.table + (bits & lookup.mask)];
        if (entry & (IS_LONG | IS_END | IS_BAD)) {
            if (entry & IS_LONG)
                entry = long_entry(s, lookup.table, bits);
            flags |= entry & (IS_END | IS_BAD);
        }
        bytes += entry & IS_LITERAL ? 1 : entry & IS_LENGTH ? value_of(entry, bits) : 0;
        reader_skip(&reader, s->stage, entry & 31);
        lookup = next_lookup(entry);
        if (entry & IS_END)
            break;
    }
    segment->exit = reader.bit;
    segment->bytes = bytes;
    segment->has_end = (flags & IS_END) != 0;
    segment->is_bad = (flags & IS_BAD) != 0;
}

/* Writes what of the segment's tokens lies in the slice. `at` is where its first byte goes, from
 * the start of the slice: negative where that is before. False where a distance is too great. */
DEVICE_FN bool write_slots(struct inflate_shared *s, const struct segment *segment, uint32_t slice,
                           int32_t at) {
    struct reader reader = reader_at(s->stage, segment->from);
    struct lookup lookup = first_lookup();
    uint32_t length = 0;
    bool is_good = true;
    while (lookup.table != 0 || reader.bit < segment->to) {
        uint32_t bits = reader_bits(&reader);
        uint32_t entry = s->table[lookup.table + (bits & lookup.mask)];
        if (entry & (IS_LONG | IS_END)) {
            if (entry & IS_LONG)
                entry = long_entry(s, lookup.table, bits);
            if (entry & IS_END)
                break;
        }
        uint32_t value = value_of(entry, bits);
        if (entry & IS_LITERAL) {
            if ((uint32_t)at < SLICE)
                s->slots[at] = (uint16_t)value;
            at++;
        }
        if (entry & IS_DISTANCE) {
            int32_t start = at > 0 ? at : 0;
            at += (int32_t)length;
            is_good = is_good && value <= slice + (uint32_t)at - length;
            if (is_good && start < SLICE && start < at)
                s->slots[start] = (uint16_t)((uint32_t)start - value);
        }
        length = value;
        reader_skip(&reader, s->stage, entry & 31);
        lookup = next_lookup(entry);
    }
    return is_good;
}

/* ---- slices -------------------------------------------------------------------------------- */

struct vector {
    uint32_t slots[VECTOR];
};

DEVICE_FN struct vector vector_of(words4 words) {
    struct vector v = {{words.x & 0xFFFF, words.x >> 16, words.y & 0xFFFF, words.y >> 16,
                        words.z & 0xFFFF, words.z >> 16, words.w & 0xFFFF, words.w >> 16}};
    return v;
}

DEVICE_FN words4 words_of(const struct vector *v) {
    words4 words = {v->slots[0] | v->slots[1] << 16, v->slots[2] | v->slots[3] << 16,
                    v->slots[4] | v->slots[5] << 16, v->slots[6] | v->slots[7] << 16};
    return words;
}

/* Each empty slot after another one of the vector is the place behind the other's. */
DEVICE_FN struct vector filled_inside(const struct inflate_shared *s, uint32_t at) {
    struct vector v = vector_of(load_words4(&s->slots[at]));
    for (uint32_t i = 1; i < VECTOR; i++)
        if (v.slots[i] == EMPTY && v.slots[i - 1] != EMPTY)
            v.slots[i] = (v.slots[i - 1] + 1) & 0xFFFF;
    return v;
}

/* What a warp handles at once, and what it handles in all. */
enum { ROW = WARP * VECTOR, PART = SLICE / WARPS };

/* What stands in the last slot before `at`, once it is filled. For a warp. */
DEVICE_FN uint32_t slot_before(const struct inflate_shared *s, uint32_t at) {
    for (uint32_t back = 0; back < at; back += ROW) {
        struct vector v = filled_inside(s, at - back - ROW + VECTOR * lane_index());
        uint32_t known = warp_ballot(v.slots[VECTOR - 1] != EMPTY);
        if (known) {
            uint32_t lane = 31 - leading_zeros(known);
            return warp_read(v.slots[VECTOR - 1], lane) + VECTOR * (WARP - 1 - lane) + back;
        }
    }
    return 0;
}

/* Gives every byte of a match its place. For all threads. */
DEVICE_FN void fill_matches(struct inflate_shared *s, uint32_t bytes) {
    uint32_t lane = lane_index(), first = warp_index() * PART, end = least(first + PART, bytes);
    uint32_t before = first < end ? slot_before(s, first) : 0;
    sync_block();
    for (uint32_t row = first; row < end; row += ROW) {
        struct vector v = filled_inside(s, row + VECTOR * lane);
        uint32_t known = warp_ballot(v.slots[VECTOR - 1] != EMPTY) & ((1u << lane) - 1);
        uint32_t from = known ? 31 - leading_zeros(known) : 0;
        uint32_t last = warp_read(v.slots[VECTOR - 1], from);
        last += known ? VECTOR * (lane - 1 - from) : 0;
        last = known ? last : before + VECTOR * lane;
        for (uint32_t i = 0; i < VECTOR; i++)
            if (v.slots[i] == EMPTY)
                v.slots[i] = (last + 1 + i) & 0xFFFF;
        store_words4(&s->slots[row + VECTOR * lane], words_of(&v));
        before = warp_read(v.slots[VECTOR - 1], WARP - 1);
    }
}

DEVICE_FN bool has_open(uint32_t pair) {
    return (~(pair | pair << 1) & 0x80008000u) != 0;
}

DEVICE_FN uint32_t follow_pair(const struct inflate_shared *s, uint32_t pair) {
    uint32_t low = pair & 0xFFFF, high = pair >> 16;
    if (low < OPEN_END)
        low = s->slots[low];
    if (high < OPEN_END)
        high = s->slots[high];
    return low | high << 16;
}

/* Follows the places of a vector until none lies in the slice. Others may follow theirs meanwhile:
 * a slot that is read holds its old place or a later one on the same way, and both are right. Each
 * step leads back, so the way ends. For a warp. */
DEVICE_FN words4 follow(struct inflate_shared *s, uint32_t at) {
    words4 w = load_words4(&s->slots[at]);
    for (uint32_t step = 0; step < SLICE; step++) {
        bool is_open = has_open(w.x) || has_open(w.y) || has_open(w.z) || has_open(w.w);
        if (!warp_any(is_open))
            break;
        if (!is_open)
            continue;
        w.x = follow_pair(s, w.x);
        w.y = follow_pair(s, w.y);
        w.z = follow_pair(s, w.z);
        w.w = follow_pair(s, w.w);
        store_words4(&s->slots[at], w);
    }
    return w;
}

/* The byte that a slot stands for, after `follow`. */
DEVICE_FN uint32_t byte_of(const struct stream *stream, uint32_t slot) {
    if (slot < BEFORE)
        return slot & 0xFF;
    return stream->out[stream->slice - (0x10000 - slot)];
}

DEVICE_FN uint32_t bytes_of(const struct stream *stream, uint32_t pair, uint32_t next) {
    return byte_of(stream, pair & 0xFFFF) | byte_of(stream, pair >> 16) << 8 |
           byte_of(stream, next & 0xFFFF) << 16 | byte_of(stream, next >> 16) << 24;
}

/* Sums of eight bytes, and of these times 0 to 7. */
DEVICE_FN void sum_bytes(uint32_t low, uint32_t high, uint32_t *sum, uint32_t *weighted) {
    const uint32_t even = 0x00FF00FF;
    uint32_t odd_low = low >> 8 & even, even_high = high & even, odd_high = high >> 8 & even;
    uint32_t pairs = (low & even) + odd_low + even_high + odd_high;
    uint32_t times = odd_low + 4 * even_high + 5 * odd_high;
    *sum = (pairs & 0xFFFF) + (pairs >> 16);
    *weighted = (times & 0xFFFF) + (times >> 16) + 2 * (pairs >> 16);
}

/* Sends out the first `bytes` bytes of the slice and begins the next. For all threads, after a
 * collective. */
DEVICE_FN void finish_slice(struct inflate_shared *s, struct stream *stream, uint32_t bytes) {
    uint32_t sum = 0, weighted = 0;
    uint8_t *out = stream->out + stream->slice;
    fill_matches(s, bytes);
    sync_block();
    for (uint32_t row = VECTOR * WARP * warp_index(); row < bytes; row += VECTOR * THREADS) {
        uint32_t at = row + VECTOR * lane_index();
        words4 w = follow(s, at);
        if (at >= bytes)
            continue;
        uint64_t eight = bytes_of(stream, w.x, w.y) | (uint64_t)bytes_of(stream, w.z, w.w) << 32;
        if (at + VECTOR <= bytes) {
            *(uint64_t *)(void *)(out + at) = eight;
        } else {
            eight &= ~(~(uint64_t)0 << 8 * (bytes - at));
            for (uint32_t i = 0; at + i < bytes; i++)
                out[at + i] = (uint8_t)(eight >> 8 * i);
        }
        uint32_t of_eight, weighted_of_eight;
        sum_bytes((uint32_t)eight, (uint32_t)(eight >> 32), &of_eight, &weighted_of_eight);
        sum += of_eight;
        weighted += at * of_eight + weighted_of_eight;
    }
    stream->weighted =
        (stream->weighted + stream->slice % ADLER * sum % ADLER + weighted % ADLER) % ADLER;
    stream->sum = (stream->sum + sum) % ADLER;
    stream->slice += bytes;
    sync_block();
    words4 empty = {EMPTY << 16 | EMPTY, EMPTY << 16 | EMPTY, EMPTY << 16 | EMPTY,
                    EMPTY << 16 | EMPTY};
    for (uint32_t i = VECTOR * thread_index(); i < SLICE; i += VECTOR * THREADS)
        store_words4(&s->slots[i], empty);
    sync_block();
}

/* ---- sections ------------------------------------------------------------------------------ */

/* Finds where the true tokens begin in each lane's segment, and what they come to. For all threads;
 * false where it cannot. *last is the last lane that counts: the first in which the section ends,
 * if any (*has_end). */
DEVICE_FN bool settle_segments(struct inflate_shared *s, uint32_t bit, uint32_t lane_bits,
                               struct segment *mine, uint32_t *last, bool *has_end) {
    uint32_t thread = thread_index(), start = bit + thread * lane_bits;
    bool is_lane = thread < LANES, must_walk = is_lane;
    mine->from = start;
    mine->to = start + lane_bits;
    if (is_lane && thread > 0)
        mine->from = fall_into_step(s, start - least(thread * lane_bits, LEAD_BITS), start);
    for (uint32_t round = 0; round <= LANES; round++) {
        if (must_walk)
            count_bytes(s, mine);
        if (is_lane) {
            uint32_t ends = warp_ballot(mine->has_end);
            if (lane_index() == 0)
                s->first_end[warp_index()] = ends ? thread + trailing_zeros(ends) : LANES;
            s->exits[thread] = mine->exit;
        }
        sync_block();
        *last = LANES;
        for (uint32_t i = 0; i < LANE_WARPS; i++)
            *last = least(*last, s->first_end[i]);
        *has_end = *last < LANES;
        *last = least(*last, LANES - 1);
        must_walk = thread > 0 && thread <= *last && mine->from != s->exits[thread - 1];
        if (must_walk)
            mine->from = s->exits[thread - 1];
        if (!sync_block_or(must_walk))
            return true;
    }
    return false;
}

/* The sum of the values of all threads before this one; *total is that of all. For all threads. */
DEVICE_FN uint32_t sum_before(struct inflate_shared *s, uint32_t value, uint32_t *total) {
    uint32_t sum = warp_scan(value);
    if (lane_index() == WARP - 1)
        s->sums[warp_index()] = sum;
    sync_block();
    sum -= value;
    *total = 0;
    for (uint32_t i = 0; i < WARPS; i++) {
        if (i == warp_index())
            sum += *total;
        *total += s->sums[i];
    }
    sync_block();
    return sum;
}

/* Writes the tokens of all lanes, slice after slice. For all threads. */
DEVICE_FN uint32_t put_tokens(struct inflate_shared *s, struct stream *stream,
                              const struct segment *mine, bool is_live) {
    uint32_t total, before = sum_before(s, is_live ? mine->bytes : 0, &total);
    if (sync_block_or(is_live && mine->is_bad))
        return COGPU_GPU_DAMAGED;
    if (total > stream->room - stream->produced)
        return COGPU_GPU_TOO_LONG;
    uint32_t from = stream->produced + before, to = from + mine->bytes;
    stream->produced += total;
    for (;;) {
        uint32_t slice = stream->slice;
        bool is_good = true;
        if (is_live && from < slice + SLICE && to > slice)
            is_good = write_slots(s, mine, slice, (int32_t)(from - slice));
        if (sync_block_or(!is_good))
            return COGPU_GPU_DAMAGED;
        if (stream->produced - slice < SLICE)
            return COGPU_GPU_DECODED;
        finish_slice(s, stream, SLICE);
    }
}

/* How many bits the next lanes take: as many strides as the section is expected to need, all alike.
 * A multiple of 8, so that lanes begin in step where all codes have 8 bits. */
DEVICE_FN uint32_t choose_lane_bits(uint32_t bits_left) {
    const uint32_t most = LANES * LANE_BITS_MAX;
    uint32_t strides = bits_left / most + 1;
    uint32_t bits = (bits_left / strides / LANES + 8) & ~7u;
    return bits < LANE_BITS_MIN ? LANE_BITS_MIN : least(bits, LANE_BITS_MAX);
}

/* Decodes tokens to the end of the section. `expected` is how many bits it may have. For all
 * threads. */
DEVICE_FN uint32_t put_section(struct inflate_shared *s, struct stream *stream, uint32_t expected) {
    uint32_t begin = stream->bit;
    expected += expected / 16;
    for (bool has_end = false; !has_end;) {
        uint32_t done = stream->bit - begin;
        uint32_t left = expected > done ? expected - done : done / 4;
        uint32_t lane_bits = choose_lane_bits(least(left, stream->bit_end - stream->bit)), last;
        need_bits(s, stream, LANES * lane_bits + OVERRUN_BITS);
        struct segment mine = {0, 0, 0, 0, false, false};
        if (!settle_segments(s, stream->bit - stream->staged, lane_bits, &mine, &last, &has_end))
            return COGPU_GPU_UNUSUAL;
        stream->bit = stream->staged + s->exits[last];
        uint32_t verdict = put_tokens(s, stream, &mine, thread_index() <= last);
        if (verdict != COGPU_GPU_DECODED)
            return verdict;
        if (stream->bit > stream->bit_end)
            return COGPU_GPU_CUT_OFF;
    }
    return COGPU_GPU_DECODED;
}

/* For all threads. */
DEVICE_FN uint32_t put_stored(struct inflate_shared *s, struct stream *stream) {
    stream->bit = (stream->bit + 7) & ~7u;
    uint32_t lengths = bits_at(s->stage, stream->bit - stream->staged), left = lengths & 0xFFFF;
    stream->bit += 32;
    if ((lengths ^ lengths >> 16 ^ 0xFFFF) & 0xFFFF)
        return COGPU_GPU_DAMAGED;
    if (stream->bit > stream->bit_end || left > (stream->bit_end - stream->bit) / 8)
        return COGPU_GPU_CUT_OFF;
    if (left > stream->room - stream->produced)
        return COGPU_GPU_TOO_LONG;
    const uint8_t *from = stream->units + stream->bit / 8;
    stream->bit += 8 * left;
    while (left > 0) {
        uint32_t at = stream->produced - stream->slice, bytes = least(left, SLICE - at);
        for (uint32_t i = thread_index(); i < bytes; i += THREADS)
            s->slots[at + i] = (uint16_t)(LITERAL_SLOT | from[i]);
        from += bytes;
        left -= bytes;
        stream->produced += bytes;
        sync_block();
        if (at + bytes == SLICE)
            finish_slice(s, stream, SLICE);
    }
    return COGPU_GPU_DECODED;
}

/* ---- streams ------------------------------------------------------------------------------- */

/* What zlib's sections come to: the guess for the first. */
enum { SECTION_BITS = 16384 * 17 / 2, SECTIONS_MIN = 1024, BYTES_OF_SECTION = 32 };

DEVICE_FN uint32_t put_sections(struct inflate_shared *s, struct stream *stream) {
    uint32_t expected = SECTION_BITS, verdict = COGPU_GPU_DECODED, first = stream->bit;
    bool is_final = false;
    for (uint32_t sections = 0; !is_final && verdict == COGPU_GPU_DECODED; sections++) {
        /* Endless rows of empty sections would cost far more than their bits. */
        uint32_t bytes = stream->produced + (stream->bit - first) / 8;
        if (sections > SECTIONS_MIN + bytes / BYTES_OF_SECTION)
            return COGPU_GPU_UNUSUAL;
        if (stream->bit >= stream->bit_end)
            return COGPU_GPU_CUT_OFF;
        need_bits(s, stream, HEADER_BITS);
        uint32_t bits = bits_at(s->stage, stream->bit - stream->staged), type = bits >> 1 & 3;
        is_final = bits & 1;
        stream->bit += 3;
        if (type == 0) {
            verdict = put_stored(s, stream);
            continue;
        }
        if (type == 3 || !(type == 1 ? use_fixed_codes(s, stream) : use_own_codes(s, stream)))
            return COGPU_GPU_DAMAGED;
        uint32_t begin = stream->bit;
        verdict = put_section(s, stream, expected);
        expected = stream->bit - begin;
    }
    return verdict;
}

/* The Adler-32 of all that was sent out. For all threads. */
DEVICE_FN uint32_t adler_of(struct inflate_shared *s, const struct stream *stream) {
    uint32_t sum = warp_sum(stream->sum), weighted = warp_sum(stream->weighted);
    if (lane_index() == 0) {
        s->sums[warp_index()] = sum;
        s->weighted_sums[warp_index()] = weighted;
    }
    sync_block();
    sum = weighted = 0;
    for (uint32_t i = 0; i < WARPS; i++) {
        sum += s->sums[i];
        weighted += s->weighted_sums[i];
    }
    sync_block();
    /* The second half adds the first after each byte: so a byte counts once for each place from its
     * own to the end, and the 1 that the first begins with counts everywhere. */
    uint32_t count = stream->produced % ADLER, a = sum % ADLER;
    uint32_t b = (count * (1 + a) % ADLER + ADLER - weighted % ADLER) % ADLER;
    return b << 16 | (1 + a) % ADLER;
}

DEVICE_FN uint32_t load_big_endian(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

DEVICE_FN bool is_zlib_header(uint32_t method, uint32_t flags) {
    return (method << 8 | flags) % 31 == 0 && (method & 15) == 8 && method >> 4 <= 7 &&
           (flags & 0x20) == 0;
}

/* For all threads. */
DEVICE_FN uint32_t put_stream(struct inflate_shared *s, const cogpu_coded *block,
                              const uint8_t *stored, uint8_t *decoded) {
    const uint8_t *in = stored + block->in;
    uint32_t skew = (uint32_t)((uintptr_t)in & 15), in_bytes = block->in_bytes;
    if (in_bytes < 6 || in_bytes > COGPU_GPU_BLOCK_MAX || block->room > COGPU_GPU_BLOCK_MAX)
        return COGPU_GPU_CUT_OFF;
    if (!is_zlib_header(in[0], in[1]))
        return COGPU_GPU_DAMAGED;
    struct stream stream = {in - skew,
                            (skew + in_bytes + 15) / 16,
                            8 * (skew + 2),
                            8 * (skew + in_bytes - 4),
                            NOT_STAGED,
                            decoded + block->out,
                            block->room,
                            0,
                            0,
                            0,
                            0,
                            false};
    uint32_t verdict = put_sections(s, &stream);
    bool is_good = verdict == COGPU_GPU_DECODED;
    sync_block();
    finish_slice(s, &stream, is_good ? stream.produced - stream.slice : 0); /* leaves it empty */
    if (!is_good)
        return verdict;
    if (stream.produced < block->needed)
        return COGPU_GPU_TOO_SHORT;
    const uint8_t *sum = stream.units + (stream.bit + 7) / 8;
    return adler_of(s, &stream) == load_big_endian(sum) ? COGPU_GPU_DECODED : COGPU_GPU_BAD_SUM;
}

KERNEL(cogpu_kernel_inflate, struct cogpu_inflate_args, struct inflate_shared, THREADS,
       PER_MULTIPROCESSOR) {
    for (uint32_t i = thread_index(); i < SLICE; i += THREADS)
        shared->slots[i] = EMPTY;
    for (;;) {
        sync_block();
        if (thread_index() == 0)
            shared->ticket = atomic_add(args->ticket, 1);
        sync_block();
        uint32_t ticket = shared->ticket;
        if (ticket >= args->count)
            return;
        uint32_t verdict = put_stream(shared, &args->blocks[ticket], args->stored, args->decoded);
        if (thread_index() == 0)
            args->verdicts[ticket] = verdict;
    }
}
