/*
 * Takes zlib streams, hands on decoded bytes and a verdict for each. A thread block decodes one
 * stream at a time with all its threads; nothing in the file needs to help. A deflate stream is a
 * row of sections (RFC 1951 calls them blocks), each stored or a list of tokens under Huffman
 * codes.
 *
 * Tokens are decoded by many lanes at once. Each lane has a segment of the bits that come next,
 * starts somewhat before it at any bit, and soon walks in step with the true tokens, since Huffman
 * codes synchronise themselves. It then walks its segment, notes the tokens in scratch, and where
 * it leaves it. Lane 0 starts at a true token; where each lane starts just where the one before it
 * left, all of them are right. The few that do not are walked again. That comparison is the proof:
 * no guess goes unchecked.
 *
 * The lanes' bytes are summed up, and each lane turns its notes into a slice of the output that
 * lies in shared memory, a slot of 16 bits a byte: a literal is its value, a match just the place
 * that its first byte is copied from. When the slice is full, the other bytes of matches get their
 * places from the slot before them, and every slot whose place lies in the slice takes what stands
 * there until only literals and places before the slice remain, which are in memory already. Chains
 * of copies shrink by half with each such step, however long they are. The slice's bytes then go
 * out in order, and into the Adler-32. A slice also goes out while the header of a section is read,
 * which is the work of one warp.
 *
 * Work is linear in the stored bytes and the room: a stride of lanes costs at worst what one lane
 * alone would take, a slice at worst the notes of the lanes in it, and sections are limited by what
 * they hold.
 */
#include "backend/cuda/cuda_inflate.h"
#include "backend/cuda/simt.h"

enum { LANES = COGPU_INFLATE_LANES, WARPS = LANES / WARP };

/* Thread blocks whose shared memory fits on a multiprocessor: of 228 KiB, or of 164, where each has
 * more registers then. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
enum { PER_MULTIPROCESSOR = 2 };
#else
enum { PER_MULTIPROCESSOR = 4 };
#endif

/* Bits of a lane's segment, and of the way on which it falls into step. */
enum { LANE_BITS_MIN = 72, LANE_BITS_MAX = 408 };
enum { LEAD_BITS_MIN = 256, LEAD_BITS = 384, LEAD_BITS_MAX = 768 };

/* A token is at most 48 bits, and a reader looks 96 ahead. */
enum {
    OVERRUN_BITS = 48 + 96 + 32,
    HEADER_BITS = 5120, /* 3 + 14 + 19 * 3, and what the lanes of a header may look at */
    STAGE_BITS = LANES * LANE_BITS_MAX + HEADER_BITS,
    STAGE_WORDS = STAGE_BITS / 32,
    UNIT_BITS = 128, /* loaded at once */
    NOT_STAGED = 0x80000000 - UNIT_BITS
};

/* A slot is the place of a byte in the slice, counted from its start, that this one equals: below
 * OPEN_END in the slice, from BEFORE on (negative) before it. Or it is a literal, or empty. */
enum {
    SLICE = 12288,
    VECTOR = 8, /* slots that a thread handles at once */
    OPEN_END = 0x4000,
    LITERAL_SLOT = 0x4000,
    EMPTY = 0x7FFF,
    BEFORE = 0x8000,
    SLOT_END = 0x10000
};

enum {
    ROOT_BITS = 10,
    ROOT = 1 << ROOT_BITS,
    CODE_BITS_MAX = 15,
    CODE_END = 1 << CODE_BITS_MAX,
    BRANCH_BITS_MAX = CODE_BITS_MAX - ROOT_BITS
};

/* The tables: literals and lengths at 0, distances at ROOT, then branches for literals and lengths
 * with codes over ROOT_BITS, each as large as the longest code needs. An entry: bits to go on by
 * (5), how many of them are the code (5), flags, the base that the extra bits are taken from (16).
 */
enum { DISTANCES = ROOT, BRANCHED = 2 * ROOT, BRANCH_ENTRIES = 1024 };

/* Two bits where one would do: the test of one alone becomes three instructions. */
enum {
    IS_LENGTH = DISTANCES | 1 << 11, /* of them, DISTANCES is where to look up what comes next */
    IS_LONG = 1 << 12,               /* no branch for it: look it up bit by bit */
    IS_END = 1 << 13,                /* with a base of 1: no code at all */
    IS_BRANCH = 3 << 14
};

/* What a walk over tokens notes for each entry is its value: the slot of a literal, LENGTH_TOP less
 * a length, or SLOT_END less a distance. What a branch has there reads as a length, and the true
 * one comes before the distance. */
enum { LENGTH_TOP = LITERAL_SLOT - 1, NOTES = COGPU_INFLATE_NOTES, NOTES_AT_ONCE = 16 };

enum { LITERALS_MAX = 288, DISTANCES_MAX = 32, PRECODES = 19 };

/* A canonical code. Codes are taken as 15 bits, the first to come on top. */
struct code {
    uint32_t limits[16]; /* of each length: where the codes of this and all shorter ones end */
    uint32_t first[16];  /* its first symbol in `sorted` */
    uint32_t counts[16];
    uint32_t longest;
};

enum { LITERAL_CODE, DISTANCE_CODE, PRECODE, CODES };

/* What is given of a stream: in shared memory, since it stays as it is and registers are few. */
struct given {
    const uint8_t *units; /* its stored bytes, from the last 16-byte boundary before them */
    uint8_t *out;
    uint32_t unit_count, room;
    uint32_t bit_end; /* where its Adler-32 begins at the latest */
};

/* What strides and sections so far say about the next ones. */
struct pace {
    uint32_t section_bits;
    uint32_t lane_bits_max; /* so that most lanes have room for their notes */
    uint32_t lead_bits;     /* so that most strides are settled at once */
};

struct inflate_shared {
    uint16_t slots[SLICE];
    uint32_t stage[STAGE_WORDS];
    uint32_t table[BRANCHED + BRANCH_ENTRIES];
    uint32_t branch_bits; /* of a look-up in a branch */
    uint32_t precode[128];
    struct code codes[CODES];
    uint16_t sorted[LITERALS_MAX + DISTANCES_MAX + WARP];
    uint32_t entries[LITERALS_MAX + DISTANCES_MAX]; /* of `sorted`, without their codes' bits */
    uint8_t lengths[LITERALS_MAX + DISTANCES_MAX];
    uint8_t precode_lengths[WARP];
    uint32_t exits[LANES];
    uint32_t first_stop[WARPS];
    uint32_t carry; /* what stands in the last slot before the slice */
    uint64_t rest;  /* bytes of the slice before, which begin this one */
    uint32_t sums[WARPS], weighted_sums[WARPS];
    uint32_t header_end;
    bool has_fixed_codes; /* in the tables */
    uint32_t ticket;
    struct given given;
    struct pace pace;
};

/* A stream and how far it is. All threads have the same, but for their notes and their share of the
 * sums. */
struct stream {
    uint32_t bit;    /* what comes next, counted from `units` */
    uint32_t staged; /* the first bit that is staged */
    uint32_t produced;
    uint32_t slice;         /* where the slice begins in `out` */
    uint32_t sum, weighted; /* of bytes, and of bytes times their place, modulo ADLER */
    uint16_t *notes;        /* of this thread, LANES apart */
};

enum { ADLER = 65521 };

DEVICE_FN uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* ---- stored bytes -------------------------------------------------------------------------- */

/* Begins to load the bits from stream->bit on into shared memory, zeros behind the end. For all
 * threads, when none reads what is there; await_stage ends it. */
DEVICE_FN void begin_stage(struct inflate_shared *s, struct stream *stream) {
    uint32_t first = stream->bit / UNIT_BITS;
    for (uint32_t i = thread_index(); i < STAGE_BITS / UNIT_BITS; i += LANES) {
        const words4 zeros = {0, 0, 0, 0};
        if (first + i < s->given.unit_count)
            copy_to_shared_16(&s->stage[4 * i], s->given.units + 16 * (size_t)(first + i));
        else
            store_words4(&s->stage[4 * i], zeros);
    }
    copies_commit();
    stream->staged = first * UNIT_BITS;
}

DEVICE_FN void await_stage(void) {
    copies_wait();
    sync_block();
}

/* Has so many bits from stream->bit on in shared memory. For all threads. */
DEVICE_FN void need_bits(struct inflate_shared *s, struct stream *stream, uint32_t bits) {
    if (stream->bit >= stream->staged && stream->bit + bits <= stream->staged + STAGE_BITS)
        return;
    sync_block();
    begin_stage(s, stream);
    await_stage();
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
    }
    reader->next = words[(bit >> 5) + 2]; /* always, since a load that may not be is waited for */
    reader->bit = bit;
}

/* ---- codes --------------------------------------------------------------------------------- */

/* Sorts the symbols of a code by length. For one warp. False where it is no code that libdeflate
 * takes: too many codes or too few, but for a single one of 1 bit, or none where that is allowed.
 */
DEVICE_FN bool make_code(struct code *code, uint16_t *sorted, const uint8_t *lengths,
                         uint32_t symbols, bool may_be_empty) {
    enum { ROUNDS = LITERALS_MAX / WARP, RANKS = 1 << 16 };
    /* Of the lane's symbols: length times RANKS, and rank among those of that length. */
    uint32_t lane = lane_index(), places[ROUNDS];
    if (lane < 16)
        code->counts[lane] = 0;
    sync_warp();
    UNROLL
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t i = round * WARP + lane, length = i < symbols ? lengths[i] : 0;
        places[round] = length * RANKS;
        if (round * WARP >= symbols)
            continue;
        uint32_t peers = warp_match(length), before = count_ones(peers & ((1u << lane) - 1));
        places[round] += code->counts[length] + before;
        sync_warp();
        if (before == 0)
            code->counts[length] += count_ones(peers);
        sync_warp();
    }
    uint32_t count = lane > 0 && lane < 16 ? code->counts[lane] : 0;
    uint32_t limit = warp_scan(count << (CODE_BITS_MAX - lane % 16));
    uint32_t first = warp_scan(count) - count;
    if (lane < 16) {
        code->limits[lane] = limit;
        code->first[lane] = first;
    }
    uint32_t lengths_used = warp_ballot(count > 0);
    if (lane == 0)
        code->longest = lengths_used ? 31 - leading_zeros(lengths_used) : 0;
    sync_warp();
    UNROLL
    for (uint32_t round = 0; round < ROUNDS; round++)
        if (places[round] >= RANKS)
            sorted[code->first[places[round] / RANKS] + places[round] % RANKS] =
                (uint16_t)(round * WARP + lane);
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
    return (bits + extra) | bits << 5 | flag | base << 16;
}

DEVICE_FN uint32_t bad_entry(void) {
    return entry_of(1, 0, IS_END, 1);
}

/* Without the bits of the symbol's code. */
DEVICE_FN uint32_t literal_entry(uint32_t symbol) {
    if (symbol < 256)
        return entry_of(0, 0, 0, LITERAL_SLOT + symbol);
    if (symbol == 256)
        return entry_of(0, 0, IS_END, 0);
    uint32_t length = symbol - 257, extra = length / 4 - 1;
    if (length < 8)
        return entry_of(0, 0, IS_LENGTH, LENGTH_TOP - 3 - length);
    if (length < 28)
        return entry_of(0, extra, IS_LENGTH, LENGTH_TOP - 3 - ((4 + length % 4) << extra));
    return length == 28 ? entry_of(0, 0, IS_LENGTH, LENGTH_TOP - 258) : bad_entry();
}

DEVICE_FN uint32_t distance_entry(uint32_t symbol) {
    uint32_t extra = symbol / 2 - 1;
    if (symbol < 4)
        return entry_of(0, 0, 0, SLOT_END - 1 - symbol);
    return symbol < 30 ? entry_of(0, extra, 0, SLOT_END - 1 - ((2 + symbol % 2) << extra))
                       : bad_entry();
}

/* The entry of the code that `bits` begin with, less the bits that were taken already. Without
 * branches, so that several can be had at once. */
DEVICE_FN uint32_t entry_by_code(const struct inflate_shared *s, uint32_t which, uint32_t bits,
                                 uint32_t taken) {
    const struct code *code = &s->codes[which];
    uint32_t found = code_length(code, bits), length = least(found, CODE_BITS_MAX);
    uint32_t rank = (bits - code->limits[length - 1]) >> (CODE_BITS_MAX - length);
    uint32_t at = found == length ? code->first[length] + rank : 0;
    uint32_t entry = s->entries[sorted_at(which) + at] + entry_of(length - taken, 0, 0, 0);
    return found == length ? entry : bad_entry();
}

DEVICE_FN_BIG uint32_t long_entry(const struct inflate_shared *s, uint32_t table, uint32_t bits) {
    return entry_by_code(s, table == 0 ? LITERAL_CODE : DISTANCE_CODE, reverse_bits32(bits) >> 17,
                         0);
}

/* Codes over ROOT_BITS are the last ones, so their roots follow one another: the n-th has the n-th
 * branch. */
DEVICE_FN uint32_t root_entry(const struct inflate_shared *s, uint32_t which, uint32_t index) {
    uint32_t bits = reverse_bits32(index) >> 17, limit = s->codes[which].limits[ROOT_BITS];
    uint32_t entry = entry_by_code(s, which, bits, 0);
    uint32_t branch = (bits - limit) >> BRANCH_BITS_MAX << s->branch_bits;
    uint32_t longer = which == LITERAL_CODE && branch < BRANCH_ENTRIES
                          ? entry_of(ROOT_BITS, 0, IS_BRANCH, BRANCHED + branch)
                          : entry_of(1, 0, IS_LONG, 0);
    return bits < limit ? entry : longer;
}

DEVICE_FN uint32_t branch_entry(const struct inflate_shared *s, uint32_t index) {
    uint32_t branch = index >> s->branch_bits, rest = index - (branch << s->branch_bits);
    uint32_t bits = s->codes[LITERAL_CODE].limits[ROOT_BITS] + (branch << BRANCH_BITS_MAX) +
                    (reverse_bits32(rest) >> (32 - BRANCH_BITS_MAX));
    return entry_by_code(s, LITERAL_CODE, bits, ROOT_BITS);
}

/* From s->lengths. For one warp; false where they make no codes. */
DEVICE_FN bool make_codes(struct inflate_shared *s, uint32_t literals, uint32_t distances) {
    struct code *code = &s->codes[LITERAL_CODE];
    if (!make_code(code, s->sorted, s->lengths, literals, false) || s->lengths[256] == 0)
        return false;
    if (lane_index() == 0)
        s->branch_bits = code->longest > ROOT_BITS ? code->longest - ROOT_BITS : 0;
    return make_code(&s->codes[DISTANCE_CODE], s->sorted + LITERALS_MAX, s->lengths + literals,
                     distances, true);
}

DEVICE_FN void fill_root(struct inflate_shared *s, uint32_t which, uint32_t table) {
    enum { OF_LANE = ROOT / LANES };
    uint32_t entries[OF_LANE];
    UNROLL
    for (uint32_t i = 0; i < OF_LANE; i++)
        entries[i] = root_entry(s, which, i * LANES + thread_index());
    UNROLL
    for (uint32_t i = 0; i < OF_LANE; i++)
        s->table[table + i * LANES + thread_index()] = entries[i];
}

/* For all threads, after a collective. */
DEVICE_FN void make_tables(struct inflate_shared *s) {
    for (uint32_t i = thread_index(); i < LITERALS_MAX + DISTANCES_MAX; i += LANES)
        s->entries[i] =
            i < LITERALS_MAX ? literal_entry(s->sorted[i]) : distance_entry(s->sorted[i]);
    sync_block();
    fill_root(s, LITERAL_CODE, 0);
    fill_root(s, DISTANCE_CODE, DISTANCES);
    uint32_t branches = (CODE_END - s->codes[LITERAL_CODE].limits[ROOT_BITS]) >> BRANCH_BITS_MAX;
    uint32_t branched = least(branches << s->branch_bits, BRANCH_ENTRIES);
    for (uint32_t i = thread_index(); i < branched; i += LANES)
        s->table[BRANCHED + i] = branch_entry(s, i);
    sync_block();
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
    struct reader reader = reader_at(s->stage, from);
    *count = 0;
    while (reader.bit < to) {
        uint32_t bits = reader_bits(&reader), entry = s->precode[bits & 127];
        *count += times_of(entry, bits);
        reader_skip(&reader, s->stage, entry & 31);
    }
    return reader.bit;
}

/* Writes the code lengths of a segment, `at` and on, none from `total` on: each only once, where
 * all are AS_BEFORE. False where there are none such; *end is set where the last one is among them.
 */
DEVICE_FN bool write_lengths(struct inflate_shared *s, uint32_t from, uint32_t to, uint32_t at,
                             uint32_t total, uint32_t *end) {
    struct reader reader = reader_at(s->stage, from);
    bool is_good = true;
    while (reader.bit < to && at < total) {
        uint32_t bits = reader_bits(&reader), entry = s->precode[bits & 127];
        uint32_t times = times_of(entry, bits), length = entry >> 8 & 0xFF;
        is_good = is_good && length != NO_LENGTH && times <= total - at;
        if (length != AS_BEFORE)
            s->lengths[at] = (uint8_t)length;
        at += times;
        reader_skip(&reader, s->stage, entry & 31);
        if (at >= total)
            *end = reader.bit;
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
    for (uint32_t i = lane; i < total; i += WARP)
        s->lengths[i] = AS_BEFORE;
    sync_warp();
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

/* The codes of a section: its own, from its header, or the fixed ones. For one warp; the bit behind
 * the header, or 0 where it is damaged. */
DEVICE_FN uint32_t read_codes(struct inflate_shared *s, uint32_t bit, bool is_fixed) {
    uint32_t counts = bits_at(s->stage, bit), end = 0;
    uint32_t literals = is_fixed ? LITERALS_MAX : 257 + (counts & 31);
    uint32_t distances = is_fixed ? DISTANCES_MAX : 1 + (counts >> 5 & 31);
    if (is_fixed) {
        for (uint32_t i = lane_index(); i < LITERALS_MAX + DISTANCES_MAX; i += WARP)
            s->lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : i < LITERALS_MAX ? 8 : 5;
        end = bit;
    } else if (literals <= 286 && distances <= 30) {
        end = read_precode(s, bit + 14, 4 + (counts >> 10 & 15));
        if (end > 0)
            end = read_lengths(s, end, literals + distances);
    }
    sync_warp();
    return end > 0 && make_codes(s, literals, distances) ? end : 0;
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

DEVICE_FN struct lookup next_lookup(uint32_t entry, uint32_t branch_mask) {
    struct lookup next = first_lookup();
    next.table = entry & DISTANCES;
    if (entry & IS_BRANCH) {
        next.table = entry >> 16;
        next.mask = branch_mask;
    }
    return next;
}

DEVICE_FN uint32_t entry_at(const struct inflate_shared *s, struct lookup lookup, uint32_t bits) {
    return s->table[lookup.table | (bits & lookup.mask)];
}

/* The base less the extra bits, which are what the entry goes on by behind its code. */
DEVICE_FN uint32_t value_of(uint32_t entry, uint32_t bits) {
    uint32_t taken = bits & ~funnel_left(0, 0xFFFFFFFFu, entry);
    return (entry >> 16) - funnel_right(taken, 0, entry >> 5);
}

/* To the first token at or after `to`, from any bit: what is not a token is passed over. */
DEVICE_FN uint32_t fall_into_step(const struct inflate_shared *s, uint32_t from, uint32_t to) {
    const uint32_t branch_mask = (1u << s->branch_bits) - 1;
    struct reader reader = reader_at(s->stage, from);
    struct lookup lookup = first_lookup();
    while (lookup.table != 0 || reader.bit < to) {
        uint32_t entry = entry_at(s, lookup, reader_bits(&reader));
        reader_skip(&reader, s->stage, entry & 31);
        lookup = next_lookup(entry, branch_mask);
    }
    return reader.bit;
}

/* A lane's share of a stride: tokens that begin in its segment. */
struct segment {
    uint32_t from, to; /* where its first token begins, and before which bit its last */
    uint32_t exit;     /* where its last token ends */
    uint32_t bytes;
    uint32_t notes;               /* how many */
    bool is_cut, has_end, is_bad; /* it stops before `to`, for lack of room or for one of these */
};

/* A lane's notes are LANES apart, so that those of a warp lie together. */
DEVICE_FN void walk_tokens(const struct inflate_shared *s, struct segment *segment,
                           uint16_t *notes) {
    enum { TOKEN_NOTES = 3, LAST_TOKEN = NOTES - TOKEN_NOTES };
    const uint32_t branch_mask = (1u << s->branch_bits) - 1;
    struct reader reader = reader_at(s->stage, segment->from);
    struct lookup lookup = first_lookup();
    uint32_t bits = reader_bits(&reader), entry = entry_at(s, lookup, bits), count = 0, bytes = 0;
    bool is_through = reader.bit >= segment->to;
    for (;;) {
        while (!is_through & !(entry & (IS_LONG | IS_END))) {
            uint32_t value = value_of(entry, bits);
            *notes = (uint16_t)value;
            notes += LANES;
            count++;
            /* A note is a byte, but for a match's two and those of branches. */
            if (entry & IS_LENGTH)
                bytes += LENGTH_TOP - 2 - value;
            if (entry & IS_BRANCH)
                bytes--;
            reader_skip(&reader, s->stage, entry & 31);
            lookup = next_lookup(entry, branch_mask);
            bits = reader_bits(&reader);
            entry = entry_at(s, lookup, bits);
            is_through = (lookup.table == 0) & ((reader.bit >= segment->to) | (count > LAST_TOKEN));
        }
        if (is_through || (entry & IS_END))
            break;
        entry = long_entry(s, lookup.table, bits);
    }
    segment->has_end = !is_through;
    segment->is_bad = segment->has_end && entry >> 16 != 0;
    segment->is_cut = segment->has_end || reader.bit < segment->to;
    segment->exit = reader.bit + (segment->has_end ? entry & 31 : 0);
    segment->bytes = bytes + count;
    for (; count % NOTES_AT_ONCE != 0; count++, notes += LANES)
        *notes = 0;
    segment->notes = count;
}

/* Writes what of a lane's tokens lies in the slice. `at` is where its first byte goes, from the
 * start of the slice: negative where that is before. False where a distance is too great. */
DEVICE_FN bool write_slots(struct inflate_shared *s, const uint16_t *notes, uint32_t count,
                           uint32_t slice, int32_t at) {
    int32_t length = 0, lowest = SLOT_END;
    for (uint32_t first = 0; first < count;
         first += NOTES_AT_ONCE, notes += NOTES_AT_ONCE * LANES) {
        int32_t values[NOTES_AT_ONCE];
        UNROLL
        for (uint32_t i = 0; i < NOTES_AT_ONCE; i++)
            values[i] = notes[i * LANES];
        UNROLL
        for (uint32_t i = 0; i < NOTES_AT_ONCE; i++) {
            const int32_t value = values[i], place = at + value; /* of a match, and SLOT_END */
            const bool is_match = value >= BEFORE, is_token = value >= LITERAL_SLOT;
            if (is_token && (uint32_t)at < SLICE)
                s->slots[at] = (uint16_t)(is_match ? place : value);
            if (is_match)
                lowest = place < lowest ? place : lowest;
            at += is_match ? length : is_token ? 1 : 0;
            length = LENGTH_TOP - value;
        }
    }
    return lowest >= SLOT_END - (int32_t)slice;
}

/* ---- slices -------------------------------------------------------------------------------- */

struct vector {
    uint32_t slots[VECTOR]; /* in the low 16 bits */
};

DEVICE_FN struct vector load_vector(const uint16_t *slots) {
    words4 words = load_words4(slots);
    struct vector v = {{words.x & 0xFFFF, words.x >> 16, words.y & 0xFFFF, words.y >> 16,
                        words.z & 0xFFFF, words.z >> 16, words.w & 0xFFFF, words.w >> 16}};
    return v;
}

DEVICE_FN void store_vector(uint16_t *slots, const struct vector *v) {
    enum { LOW_HALVES = 0x5410 };
    words4 words = {pick_bytes(v->slots[0], v->slots[1], LOW_HALVES),
                    pick_bytes(v->slots[2], v->slots[3], LOW_HALVES),
                    pick_bytes(v->slots[4], v->slots[5], LOW_HALVES),
                    pick_bytes(v->slots[6], v->slots[7], LOW_HALVES)};
    store_words4(slots, words);
}

#define UNKNOWN 0x80000000u

/* Each empty slot is the place behind that of the slot before it, or, at the start of the vector,
 * UNKNOWN and how many slots it is behind that. */
DEVICE_FN struct vector filled_inside(const struct inflate_shared *s, uint32_t at) {
    struct vector v = load_vector(&s->slots[at]);
    uint32_t last = UNKNOWN;
    UNROLL
    for (uint32_t i = 0; i < VECTOR; i++)
        last = v.slots[i] = v.slots[i] == EMPTY ? last + 1 : v.slots[i];
    return v;
}

/* What a warp handles at once. */
enum { ROW = WARP * VECTOR };

/* The warps that work on a slice: all, or all but the first, which does something else. */
struct crew {
    uint32_t warp, warps; /* this one, and how many */
};

DEVICE_FN struct crew crew_from(uint32_t first_warp) {
    struct crew crew = {warp_index() - first_warp, WARPS - first_warp};
    return crew;
}

DEVICE_FN void sync_crew(struct crew crew) {
    enum { BARRIER = 1 };
    sync_group(BARRIER, crew.warps * WARP);
}

/* What stands in the last slot before `at`, once it is filled. For a warp. */
DEVICE_FN uint32_t slot_before(const struct inflate_shared *s, uint32_t at) {
    for (uint32_t back = 0; back < at; back += ROW) {
        struct vector v = filled_inside(s, at - back - ROW + VECTOR * lane_index());
        uint32_t known = warp_ballot(v.slots[VECTOR - 1] < UNKNOWN);
        if (known) {
            uint32_t lane = 31 - leading_zeros(known);
            return warp_read(v.slots[VECTOR - 1], lane) + VECTOR * (WARP - 1 - lane) + back;
        }
    }
    return s->carry + at;
}

/* Gives every byte of a match its place. For a crew. */
DEVICE_FN void fill_matches(struct inflate_shared *s, struct crew crew, uint32_t bytes) {
    uint32_t rows = (bytes + ROW - 1) / ROW, part = (rows + crew.warps - 1) / crew.warps * ROW;
    uint32_t lane = lane_index(), first = crew.warp * part, end = least(first + part, bytes);
    uint32_t before = first < end ? slot_before(s, first) : 0;
    sync_crew(crew);
    for (uint32_t row = first; row < end; row += ROW) {
        uint16_t *slots = &s->slots[row + VECTOR * lane];
        struct vector v = filled_inside(s, row + VECTOR * lane);
        uint32_t known = warp_ballot(v.slots[VECTOR - 1] < UNKNOWN) & ((1u << lane) - 1);
        uint32_t from = known ? 31 - leading_zeros(known) : 0;
        uint32_t last = warp_read(v.slots[VECTOR - 1], from) + VECTOR * (lane - 1 - from);
        last = known ? last : before + VECTOR * lane;
        UNROLL
        for (uint32_t i = 0; i < VECTOR; i++)
            if (v.slots[i] >= UNKNOWN)
                v.slots[i] += last;
        store_vector(slots, &v);
        before = warp_read(v.slots[VECTOR - 1], WARP - 1);
    }
    if (end == SLICE && lane == 0)
        s->carry = before - SLICE;
}

DEVICE_FN bool has_open(const struct vector *v) {
    uint32_t lowest = OPEN_END;
    UNROLL
    for (uint32_t i = 0; i < VECTOR; i++)
        lowest = least(lowest, v->slots[i]);
    return lowest < OPEN_END;
}

/* Follows the places of a vector until none lies in the slice. Others may follow theirs meanwhile:
 * a slot that is read holds its old place or a later one on the same way, and both are right. Each
 * step leads back, so the way ends. For a warp. */
DEVICE_FN struct vector follow(struct inflate_shared *s, uint32_t at) {
    struct vector v = load_vector(&s->slots[at]);
    for (uint32_t step = 0; step < SLICE && warp_any(has_open(&v)); step++) {
        UNROLL
        for (uint32_t i = 0; i < VECTOR; i++)
            if (v.slots[i] < OPEN_END)
                v.slots[i] = s->slots[v.slots[i]];
        store_vector(&s->slots[at], &v);
    }
    return v;
}

/* The byte that a slot stands for, after `follow`: the lowest of what it gives. `zero` is the
 * address that places before the slice, as they are written, count from. */
DEVICE_FN uint32_t byte_of(uintptr_t zero, uint32_t slot) {
    if (slot >= BEFORE)
        slot = *(const uint8_t *)(zero + slot);
    return slot;
}

DEVICE_FN uint32_t four_bytes(uintptr_t zero, const uint32_t *slots) {
    enum { LOW_BYTES = 0x0040, LOW_HALVES = 0x5410 };
    uint32_t a = byte_of(zero, slots[0]), b = byte_of(zero, slots[1]);
    uint32_t c = byte_of(zero, slots[2]), d = byte_of(zero, slots[3]);
    return pick_bytes(pick_bytes(a, b, LOW_BYTES), pick_bytes(c, d, LOW_BYTES), LOW_HALVES);
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

/* Sends out the first `bytes` bytes of the slice and begins the next one behind them. Where they do
 * not end at a whole vector and more will follow (not is_last), the rest of them is kept, and goes
 * out with the next slice. For a crew, after a collective; the caller moves stream->slice. */
DEVICE_FN void finish_slice(struct inflate_shared *s, struct stream *stream, struct crew crew,
                            uint32_t bytes, bool is_last) {
    uint32_t sum = 0, weighted = 0;
    uint8_t *out = s->given.out + stream->slice;
    uintptr_t zero = (uintptr_t)out - SLOT_END;
    fill_matches(s, crew, bytes);
    sync_crew(crew);
    for (uint32_t row = ROW * crew.warp; row < bytes; row += ROW * crew.warps) {
        uint32_t at = row + VECTOR * lane_index();
        struct vector v = follow(s, at);
        if (at >= bytes)
            continue;
        uint32_t low = four_bytes(zero, v.slots), high = four_bytes(zero, v.slots + 4);
        uint64_t eight = low | (uint64_t)high << 32;
        if (at + VECTOR <= bytes) {
            *(uint64_t *)(void *)(out + at) = eight;
        } else if (is_last) {
            eight &= ~(~(uint64_t)0 << 8 * (bytes - at));
            for (uint32_t i = 0; at + i < bytes; i++)
                out[at + i] = (uint8_t)(eight >> 8 * i);
        } else {
            s->rest = eight;
            continue;
        }
        uint32_t of_eight, weighted_of_eight;
        sum_bytes((uint32_t)eight, (uint32_t)(eight >> 32), &of_eight, &weighted_of_eight);
        sum += of_eight;
        weighted += at * of_eight + weighted_of_eight;
    }
    stream->weighted =
        (stream->weighted + stream->slice % ADLER * sum % ADLER + weighted % ADLER) % ADLER;
    stream->sum = (stream->sum + sum) % ADLER;
    sync_crew(crew);
    words4 empty = {EMPTY << 16 | EMPTY, EMPTY << 16 | EMPTY, EMPTY << 16 | EMPTY,
                    EMPTY << 16 | EMPTY};
    uint32_t used = is_last ? SLICE : bytes;
    for (uint32_t row = ROW * crew.warp; row < used; row += ROW * crew.warps)
        store_words4(&s->slots[row + VECTOR * lane_index()], empty);
    sync_crew(crew);
    if (crew.warp == 0 && !is_last && lane_index() < bytes % VECTOR)
        s->slots[lane_index()] = (uint16_t)(LITERAL_SLOT | (s->rest >> 8 * lane_index() & 0xFF));
}

/* ---- sections ------------------------------------------------------------------------------ */

/* Makes the tables of a section. Its codes are the work of one warp; the others send out meanwhile
 * what the slice holds. For all threads; false where its header is damaged. */
DEVICE_FN bool use_codes(struct inflate_shared *s, struct stream *stream, bool is_fixed) {
    if (is_fixed && s->has_fixed_codes)
        return true;
    uint32_t bytes = stream->produced - stream->slice;
    sync_block();
    if (warp_index() > 0) {
        finish_slice(s, stream, crew_from(1), bytes, false);
    } else {
        uint32_t end = read_codes(s, stream->bit - stream->staged, is_fixed);
        if (lane_index() == 0) {
            s->header_end = end;
            s->has_fixed_codes = is_fixed;
        }
    }
    stream->slice += bytes / VECTOR * VECTOR;
    sync_block();
    stream->bit = stream->staged + s->header_end;
    if (s->header_end == 0)
        return false;
    make_tables(s);
    return true;
}

/* Finds where the true tokens begin in each lane's segment, and what they come to. For all threads;
 * gives how often it walked, 0 where it found none. *last is the last lane that counts: the first
 * that is cut, if any; *has_end where the section ends in it. */
DEVICE_FN uint32_t settle_segments(struct inflate_shared *s, const struct stream *stream,
                                   uint32_t lane_bits, struct segment *mine, uint32_t *last,
                                   bool *has_end) {
    uint32_t lane = thread_index(), start = stream->bit - stream->staged + lane * lane_bits;
    bool must_walk = true;
    mine->from = start;
    mine->to = start + lane_bits;
    if (lane > 0)
        mine->from = fall_into_step(s, start - least(lane * lane_bits, s->pace.lead_bits), start);
    for (uint32_t walks = 1; walks <= LANES + 1; walks++) {
        if (must_walk)
            walk_tokens(s, mine, stream->notes);
        uint32_t cut = warp_ballot(mine->is_cut), ends = warp_ballot(mine->has_end);
        if (lane_index() == 0) {
            uint32_t first = trailing_zeros(cut);
            s->first_stop[warp_index()] =
                cut ? 2 * (lane + first) + (ends >> first & 1) : 2 * LANES;
        }
        s->exits[lane] = mine->exit;
        sync_block();
        uint32_t stop = 2 * LANES;
        for (uint32_t i = 0; i < WARPS; i++)
            stop = least(stop, s->first_stop[i]);
        *has_end = stop & 1;
        *last = least(stop / 2, LANES - 1);
        must_walk = lane > 0 && lane <= *last && mine->from != s->exits[lane - 1];
        if (must_walk)
            mine->from = s->exits[lane - 1];
        if (!sync_block_or(must_walk))
            return walks;
    }
    return 0;
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

/* Writes what of stored bytes lies in the slice: those of the stream from byte `first` to the last.
 * For all threads. */
DEVICE_FN void copy_stored(struct inflate_shared *s, const struct stream *stream,
                           const uint8_t *stored, uint32_t first) {
    uint32_t from = first > stream->slice ? first : stream->slice;
    uint32_t to = least(stream->produced, stream->slice + SLICE);
    for (uint32_t i = from + thread_index(); i < to; i += LANES)
        s->slots[i - stream->slice] = (uint16_t)(LITERAL_SLOT | stored[i - first]);
}

/* Puts `total` bytes into slots, and sends out full slices: stored bytes, or, without any, the
 * tokens of all lanes, where `from` is where this one's begin. For all threads; false where a
 * distance is too great. */
DEVICE_FN bool put_bytes(struct inflate_shared *s, struct stream *stream, uint32_t total,
                         const uint8_t *stored, const struct segment *mine, uint32_t from) {
    uint32_t first = stream->produced, to = from + mine->bytes;
    stream->produced += total;
    for (;;) {
        uint32_t slice = stream->slice;
        bool is_good = true;
        if (stored)
            copy_stored(s, stream, stored, first);
        else if (from < slice + SLICE && to > slice)
            is_good = write_slots(s, stream->notes, mine->notes, slice, (int32_t)(from - slice));
        if (sync_block_or(!is_good))
            return false;
        if (stream->produced - slice < SLICE)
            return true;
        finish_slice(s, stream, crew_from(0), SLICE, false);
        stream->slice += SLICE;
    }
}

/* How many bits the next lanes take: as many strides as the section is expected to need, all alike.
 * An odd number of bytes: in bytes, so that lanes begin in step where all codes have 8 bits; odd,
 * so that the lanes of a warp load from different banks of the shared memory. */
DEVICE_FN uint32_t choose_lane_bits(uint32_t bits_left, uint32_t lane_bits_max) {
    uint32_t strides = bits_left / (LANES * lane_bits_max) + 1;
    uint32_t bits = ((bits_left / strides / LANES + 8) & ~15u) + 8;
    return bits < LANE_BITS_MIN ? LANE_BITS_MIN : least(bits, LANE_BITS_MAX);
}

/* After a stride that was walked so often, and whose last lane has taken so many bits: that one was
 * cut for lack of room, or not. */
DEVICE_FN struct pace next_pace(struct pace pace, uint32_t walks, uint32_t bits_of_last,
                                bool is_cut) {
    if (is_cut)
        pace.lane_bits_max = bits_of_last - bits_of_last / 8;
    else
        pace.lane_bits_max = least(pace.lane_bits_max + pace.lane_bits_max / 16, LANE_BITS_MAX);
    if (walks > 1) /* which costs about as much as the lead-in */
        pace.lead_bits = least(pace.lead_bits + 64, LEAD_BITS_MAX);
    else
        pace.lead_bits -= least(32, pace.lead_bits - LEAD_BITS_MIN);
    return pace;
}

/* Decodes the tokens of the next stride of a section that began at `begin`: this lane's go from
 * byte *from on, all together are *total. For all threads. */
DEVICE_FN uint32_t decode_stride(struct inflate_shared *s, struct stream *stream, uint32_t begin,
                                 struct segment *mine, uint32_t *from, uint32_t *total,
                                 bool *has_end) {
    uint32_t done = stream->bit - begin, expected = s->pace.section_bits / 16 * 17, last;
    uint32_t left = expected > done ? expected - done : done / 4;
    uint32_t lane_bits =
        choose_lane_bits(least(left, s->given.bit_end - stream->bit), s->pace.lane_bits_max);
    need_bits(s, stream, LANES * lane_bits + OVERRUN_BITS);
    uint32_t walks = settle_segments(s, stream, lane_bits, mine, &last, has_end);
    if (walks == 0)
        return COGPU_GPU_UNUSUAL;
    uint32_t last_begin = stream->bit + last * lane_bits;
    stream->bit = stream->staged + s->exits[last];
    if (thread_index() == 0) {
        s->pace =
            next_pace(s->pace, walks, stream->bit - last_begin, last < LANES - 1 && !*has_end);
        if (*has_end)
            s->pace.section_bits = stream->bit - begin;
    }
    begin_stage(s, stream);
    if (thread_index() > last) {
        mine->bytes = mine->notes = 0;
        mine->is_bad = false;
    }
    *from = stream->produced + sum_before(s, mine->bytes, total);
    return sync_block_or(mine->is_bad) ? COGPU_GPU_DAMAGED : COGPU_GPU_DECODED;
}

DEVICE_FN uint32_t find_stored(const struct inflate_shared *s, struct stream *stream,
                               const uint8_t **stored, uint32_t *total) {
    stream->bit = (stream->bit + 7) & ~7u;
    uint32_t lengths = bits_at(s->stage, stream->bit - stream->staged);
    *total = lengths & 0xFFFF;
    stream->bit += 32;
    if ((lengths ^ lengths >> 16 ^ 0xFFFF) & 0xFFFF)
        return COGPU_GPU_DAMAGED;
    if (stream->bit > s->given.bit_end || *total > (s->given.bit_end - stream->bit) / 8)
        return COGPU_GPU_CUT_OFF;
    *stored = s->given.units + stream->bit / 8;
    stream->bit += 8 * *total;
    return COGPU_GPU_DECODED;
}

/* Decodes a section to its end. For all threads. */
DEVICE_FN uint32_t put_section(struct inflate_shared *s, struct stream *stream, bool is_stored) {
    uint32_t begin = stream->bit;
    for (bool has_end = is_stored;;) {
        struct segment mine = {0, 0, 0, 0, 0, false, false, false};
        const uint8_t *stored = NULL;
        uint32_t from = 0, total = 0, verdict;
        if (is_stored)
            verdict = find_stored(s, stream, &stored, &total);
        else
            verdict = decode_stride(s, stream, begin, &mine, &from, &total, &has_end);
        if (verdict == COGPU_GPU_DECODED && total > s->given.room - stream->produced)
            verdict = COGPU_GPU_TOO_LONG;
        if (verdict == COGPU_GPU_DECODED && !put_bytes(s, stream, total, stored, &mine, from))
            verdict = COGPU_GPU_DAMAGED;
        await_stage();
        if (verdict != COGPU_GPU_DECODED)
            return verdict;
        if (stream->bit > s->given.bit_end)
            return COGPU_GPU_CUT_OFF;
        if (has_end)
            return COGPU_GPU_DECODED;
    }
}

/* ---- streams ------------------------------------------------------------------------------- */

/* What zlib's sections come to: the guess for the first. */
enum { SECTION_BITS = 16384 * 17 / 2, SECTIONS_MIN = 1024, BYTES_OF_SECTION = 32 };

DEVICE_FN uint32_t put_sections(struct inflate_shared *s, struct stream *stream) {
    for (uint32_t sections = 0;; sections++) {
        /* Endless rows of empty sections would cost far more than their bits. */
        uint32_t bytes = stream->produced + stream->bit / 8;
        if (sections > SECTIONS_MIN + bytes / BYTES_OF_SECTION)
            return COGPU_GPU_UNUSUAL;
        if (stream->bit >= s->given.bit_end)
            return COGPU_GPU_CUT_OFF;
        need_bits(s, stream, HEADER_BITS);
        uint32_t bits = bits_at(s->stage, stream->bit - stream->staged), type = bits >> 1 & 3;
        const bool is_final = bits & 1;
        stream->bit += 3;
        if (type == 3 || (type > 0 && !use_codes(s, stream, type == 1)))
            return COGPU_GPU_DAMAGED;
        uint32_t verdict = put_section(s, stream, type == 0);
        if (is_final || verdict != COGPU_GPU_DECODED)
            return verdict;
    }
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
                              const uint8_t *stored, uint8_t *decoded, uint16_t *notes) {
    const uint8_t *in = stored + block->in;
    uint32_t skew = (uint32_t)((uintptr_t)in & 15), in_bytes = block->in_bytes;
    if (in_bytes < 6 || in_bytes > COGPU_GPU_BLOCK_MAX || block->room > COGPU_GPU_BLOCK_MAX)
        return COGPU_GPU_CUT_OFF;
    if (!is_zlib_header(in[0], in[1]))
        return COGPU_GPU_DAMAGED;
    struct stream stream = {8 * (skew + 2), NOT_STAGED, 0, 0, 0, 0, notes};
    if (thread_index() == 0) {
        struct given given = {in - skew, decoded + block->out, (skew + in_bytes + 15) / 16,
                              block->room, 8 * (skew + in_bytes - 4)};
        struct pace pace = {SECTION_BITS, LANE_BITS_MAX, LEAD_BITS};
        s->given = given;
        s->pace = pace;
        s->carry = LITERAL_SLOT;
        s->has_fixed_codes = false;
    }
    sync_block();
    uint32_t verdict = put_sections(s, &stream);
    bool is_good = verdict == COGPU_GPU_DECODED;
    sync_block();
    finish_slice(s, &stream, crew_from(0), is_good ? stream.produced - stream.slice : 0,
                 true); /* leaves it empty */
    if (!is_good)
        return verdict;
    if (stream.produced < block->needed)
        return COGPU_GPU_TOO_SHORT;
    const uint8_t *sum = s->given.units + (stream.bit + 7) / 8;
    return adler_of(s, &stream) == load_big_endian(sum) ? COGPU_GPU_DECODED : COGPU_GPU_BAD_SUM;
}

KERNEL(cogpu_kernel_inflate, struct cogpu_inflate_args, struct inflate_shared, LANES,
       PER_MULTIPROCESSOR) {
    uint16_t *notes = args->notes + (size_t)block_index() * NOTES * LANES + thread_index();
    for (uint32_t i = thread_index(); i < SLICE; i += LANES)
        shared->slots[i] = EMPTY;
    for (;;) {
        sync_block();
        if (thread_index() == 0)
            shared->ticket = atomic_add(args->ticket, 1);
        sync_block();
        uint32_t ticket = shared->ticket;
        if (ticket >= args->count)
            return;
        uint32_t verdict =
            put_stream(shared, &args->blocks[ticket], args->stored, args->decoded, notes);
        if (thread_index() == 0)
            args->verdicts[ticket] = verdict;
    }
}
