/*
 * Takes blocks of bytes, hands on TIFF's LZW: Clear, codes, End. Blocks are cut into pieces, each
 * of which begins with a fresh table, so that pieces need nothing of each other but how many bits
 * came before.
 *
 * Parse, a warp for each piece: the strings that an encoder would take one after the other, many at
 * once. In a step each lane looks for the longest string in the table at its own place. The way
 * from the first lane, from the end of a string to the next, touches the lanes whose strings are
 * taken. Each adds its string and the byte after it to the table. So the table that lanes look into
 * is one step old: that matters only to a string that is taken with the very byte after it that a
 * string before it in this step has added; there the step is cut, and the next one begins. So the
 * codes are exactly those of an encoder that goes from string to string, whatever the order of the
 * lanes.
 *
 * Join, a block of threads for each piece: the place of each code in its segment (what lies between
 * two Clears) follows from its number alone. Each thread gathers the codes of a word of the stream,
 * which may be those of the next piece as well.
 */
#include "backend/cuda/cuda_lzw_encode.h"
#include "backend/cuda/simt.h"

enum { CLEAR = 256, END = 257, FIRST = 258, SEGMENT_CODES = COGPU_LZW_SEGMENT_CODES };

DEVICE_FN uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* ---- pieces ---- */

struct piece {
    uint32_t block, number; /* in the block */
    const cogpu_uncoded *about;
    uint32_t *counts; /* of the codes of each piece of the block */
    uint16_t *lists;  /* of its codes */
};

DEVICE_FN struct piece piece_of(const struct cogpu_lzw_encode_args *args) {
    struct piece piece;
    piece.block = block_index() / args->pieces;
    piece.number = block_index() % args->pieces;
    piece.about = &args->blocks[piece.block];
    void *part = args->scratch + piece.block * args->part_bytes;
    piece.counts = (uint32_t *)part;
    piece.lists = (uint16_t *)(piece.counts + args->pieces);
    return piece;
}

DEVICE_FN uint32_t piece_count(const cogpu_uncoded *block) {
    return (block->in_bytes + COGPU_LZW_PIECE - 1) / COGPU_LZW_PIECE;
}

/* ---- the table ---- */

/* An entry holds the code of a string without its last byte, that byte, and the code of the whole;
 * it is 0 where there is none. The buckets of a full table are filled to three quarters, and leave
 * room for eleven warps on a multiprocessor. */
enum { CODE_BITS = 12, CODE_MASK = (1 << CODE_BITS) - 1, BUCKETS = 1248, BUCKET = 4 };
enum { PLACES = BUCKETS * BUCKET };

struct parse_shared {
    uint32_t entries[PLACES]; /* by four: first those that are, then those that are not */
};

/* A string that begins at a lane's place. */
struct string {
    uint32_t code, length;
    uint32_t key;   /* code and the byte after it, which the table has not */
    uint32_t place; /* in the table, where they belong, if no other comes before */
};

#define NO_KEY 0x80000000u

DEVICE_FN void forget_all(struct parse_shared *shared) {
    const words4 none = {0, 0, 0, 0};
    sync_warp();
    for (uint32_t at = BUCKET * lane_index(); at < PLACES; at += BUCKET * WARP)
        store_words4(&shared->entries[at], none);
    sync_warp();
}

DEVICE_FN uint32_t bucket_of(uint32_t key) {
    return (uint32_t)((uint64_t)(key * 0x9E3779B1u) * BUCKETS >> 32);
}

/* The entry of a key; 0 where there is none, and the place for it. (A key of 0 is like no entry,
 * but what it finds is 0, or itself before that.) There is always a bucket that is not full. */
DEVICE_FN uint32_t look_up(const struct parse_shared *shared, uint32_t key, uint32_t *place) {
    for (uint32_t at = BUCKET * bucket_of(key);; at = at + BUCKET < PLACES ? at + BUCKET : 0) {
        const words4 bucket = load_words4(&shared->entries[at]);
        if (bucket.x >> CODE_BITS == key)
            return *place = at, bucket.x;
        if (bucket.y >> CODE_BITS == key)
            return *place = at + 1, bucket.y;
        if (bucket.z >> CODE_BITS == key)
            return *place = at + 2, bucket.z;
        if (bucket.w >> CODE_BITS == key)
            return *place = at + 3, bucket.w;
        if (bucket.w == 0)
            return *place = at + (bucket.x > 0) + (bucket.y > 0) + (bucket.z > 0), 0;
    }
}

/* Others that are added now may come first: where an entry ends up is open, whether it is found is
 * not. */
DEVICE_FN void add_entry(struct parse_shared *shared, const struct string *string, uint32_t code) {
    const uint32_t entry = string->key << CODE_BITS | code;
    uint32_t place = string->place;
    while (atomic_compare_exchange(&shared->entries[place], 0, entry) != 0)
        place = place + 1 < PLACES ? place + 1 : 0;
}

/* The longest string of the table at `in`, of at most `most` bytes. Reads one byte more. */
DEVICE_FN struct string find_longest(const struct parse_shared *shared, const uint8_t *in,
                                     uint32_t most) {
    struct string string = {in[0], 1, NO_KEY, 0};
    uint32_t byte = in[1];
    for (; string.length < most; string.length++) {
        const uint32_t key = string.code << 8 | byte;
        byte = in[string.length + 1];
        const uint32_t entry = look_up(shared, key, &string.place);
        if (entry == 0) {
            string.key = key;
            break;
        }
        string.code = entry & CODE_MASK;
    }
    return string;
}

/* ---- parse ---- */

/* Of a piece. All lanes hold the same. */
struct parse {
    const uint8_t *in;
    uint32_t bytes, at;
    uint16_t *list;
    uint32_t listed; /* codes */
    uint32_t number; /* of the next code in its segment */
};

/* The lanes that the way from the first touches, a bit each. `*next` is where the way goes from
 * this lane, and becomes where it ends: WARP or more. A lane behind the end of the piece has no
 * step. */
DEVICE_FN uint32_t follow_strings(uint32_t *next, bool has_step) {
    uint32_t touched = has_step ? 1u << lane_index() : 0;
    for (uint32_t steps = 1; steps < WARP; steps *= 2) {
        const uint32_t touched_there = warp_read(touched, *next % WARP);
        const uint32_t next_there = warp_read(*next, *next % WARP);
        if (*next < WARP) {
            touched |= touched_there;
            *next = next_there;
        }
    }
    *next = warp_read(*next, 0);
    return warp_read(touched, 0);
}

enum { AHEAD = 512 }; /* bytes that are fetched before they are looked at */

/* Lists the codes of strings that begin in the WARP bytes from here on: at least the first. */
DEVICE_FN void step(struct parse_shared *shared, struct parse *parse) {
    const uint32_t lane = lane_index(), left = parse->bytes - parse->at, below = (1u << lane) - 1;
    struct string string = {0, WARP, NO_KEY, 0};
    if (AHEAD + 4 * lane < left)
        fetch_ahead(parse->in + parse->at + AHEAD + 4 * lane);
    if (lane < left)
        string = find_longest(shared, parse->in + parse->at + lane, left - lane);
    uint32_t next = lane + string.length;
    const uint32_t taken = follow_strings(&next, lane < left);
    const bool is_taken = taken >> lane & 1;
    const uint32_t number = parse->number + count_ones(taken & below);

    const uint32_t same = warp_match(is_taken ? string.key : NO_KEY | (lane + 1));
    const bool is_late = is_taken && ((same & below) != 0 || number >= SEGMENT_CODES);
    const uint32_t cut = trailing_zeros(warp_ballot(is_late));
    const bool is_listed = is_taken && lane < cut;
    const uint32_t listed = count_ones(warp_ballot(is_listed));
    sync_warp(); /* all have looked into the table as it was */
    if (is_listed) {
        parse->list[parse->listed + number - parse->number] = (uint16_t)string.code;
        if (string.key != NO_KEY)
            add_entry(shared, &string, FIRST + number);
    }
    sync_warp();
    parse->listed += listed;
    parse->number += listed;
    parse->at += least(cut < WARP ? cut : next, left);
}

/* Lists the codes of a piece; returns how many. */
DEVICE_FN uint32_t parse_piece(struct parse_shared *shared, struct parse *parse,
                               uint32_t last_code) {
    forget_all(shared);
    while (parse->at < parse->bytes) {
        if (parse->number == SEGMENT_CODES) {
            if (lane_index() == 0)
                parse->list[parse->listed] = CLEAR;
            parse->listed++;
            parse->number = 0;
            forget_all(shared);
        }
        step(shared, parse);
    }
    if (lane_index() == 0)
        parse->list[parse->listed] = (uint16_t)last_code;
    return parse->listed + 1;
}

KERNEL(cogpu_kernel_lzw_parse, struct cogpu_lzw_encode_args, struct parse_shared, WARP, 11) {
    const struct piece piece = piece_of(args);
    const uint32_t pieces = piece_count(piece.about), begin = piece.number * COGPU_LZW_PIECE;
    if (piece.number >= pieces)
        return;
    uint32_t count = 0;
    if (args->sizes[piece.block] != COGPU_GPU_SPARSE) {
        struct parse parse = {args->decoded + piece.about->in + begin,
                              least(piece.about->in_bytes - begin, COGPU_LZW_PIECE),
                              0,
                              piece.lists + (uint64_t)piece.number * args->list_codes,
                              0,
                              0};
        count = parse_piece(shared, &parse, piece.number + 1 < pieces ? CLEAR : END);
    }
    if (lane_index() == 0)
        piece.counts[piece.number] = count;
}

/* ---- places of codes ---- */

/* From these numbers on, codes of a segment are a bit wider. */
enum { TEN_BITS = 254, ELEVEN_BITS = 766, TWELVE_BITS = 1790 };

/* The bits before them; and those of a segment with the Clear behind it. */
enum {
    BITS_TO_TEN = 9 * TEN_BITS,
    BITS_TO_ELEVEN = BITS_TO_TEN + 10 * (ELEVEN_BITS - TEN_BITS),
    BITS_TO_TWELVE = BITS_TO_ELEVEN + 11 * (TWELVE_BITS - ELEVEN_BITS),
    SEGMENT_BITS = BITS_TO_TWELVE + 12 * (SEGMENT_CODES + 1 - TWELVE_BITS)
};

DEVICE_FN uint32_t width_of(uint32_t number) {
    return 9u + (number >= TEN_BITS) + (number >= ELEVEN_BITS) + (number >= TWELVE_BITS);
}

/* Bits of a segment before the code of that number. */
DEVICE_FN uint32_t bits_before(uint32_t number) {
    return number < TEN_BITS      ? 9 * number
           : number < ELEVEN_BITS ? BITS_TO_TEN + 10 * (number - TEN_BITS)
           : number < TWELVE_BITS ? BITS_TO_ELEVEN + 11 * (number - ELEVEN_BITS)
                                  : BITS_TO_TWELVE + 12 * (number - TWELVE_BITS);
}

/* The number of the code of a segment that has this bit. */
DEVICE_FN uint32_t number_at(uint32_t bit) {
    return bit < BITS_TO_TEN      ? bit / 9
           : bit < BITS_TO_ELEVEN ? TEN_BITS + (bit - BITS_TO_TEN) / 10
           : bit < BITS_TO_TWELVE ? ELEVEN_BITS + (bit - BITS_TO_ELEVEN) / 11
                                  : TWELVE_BITS + (bit - BITS_TO_TWELVE) / 12;
}

DEVICE_FN uint32_t bits_of_list(uint32_t codes) {
    return codes / (SEGMENT_CODES + 1) * SEGMENT_BITS + bits_before(codes % (SEGMENT_CODES + 1));
}

/* ---- join ---- */

enum { JOIN_THREADS = 256, JOIN_WARPS = JOIN_THREADS / WARP, WORD_BITS = 32, OPENING_BITS = 9 };

struct join_shared {
    uint32_t sums[JOIN_WARPS];
};

/* The bits of all pieces before this one, and of the Clear before the first. */
DEVICE_FN uint32_t bits_before_piece(struct join_shared *shared, const struct piece *piece) {
    uint32_t bits = 0;
    for (uint32_t i = thread_index(); i < piece->number; i += JOIN_THREADS)
        bits += bits_of_list(piece->counts[i]);
    bits = warp_sum(bits);
    if (lane_index() == 0)
        shared->sums[warp_index()] = bits;
    sync_block();
    bits = OPENING_BITS;
    for (uint32_t i = 0; i < JOIN_WARPS; i++)
        bits += shared->sums[i];
    return bits;
}

/* Codes that are put one behind the other until there are enough for a word. */
struct gathering {
    uint64_t bits;
    int32_t count; /* of those that are wanted: negative where a code begins before them */
};

DEVICE_FN void put_bits(struct gathering *gathering, uint32_t bits, uint32_t width) {
    gathering->bits = gathering->bits << width | bits;
    gathering->count += (int32_t)width;
}

/* Adds codes from the one with this bit of the piece on, until there is a word, or no more code. */
DEVICE_FN void gather(struct gathering *gathering, const struct cogpu_lzw_encode_args *args,
                      const struct piece *piece, uint32_t bit) {
    const uint32_t pieces = piece_count(piece->about);
    uint32_t number = number_at(bit % SEGMENT_BITS), from = piece->number;
    uint32_t index = bit / SEGMENT_BITS * (SEGMENT_CODES + 1) + number;
    gathering->count -= (int32_t)(bit % SEGMENT_BITS - bits_before(number));
    while (gathering->count < WORD_BITS && from < pieces) {
        if (index == piece->counts[from]) {
            from++;
            index = number = 0;
            continue;
        }
        put_bits(gathering, piece->lists[(uint64_t)from * args->list_codes + index],
                 width_of(number));
        index++;
        number = number == SEGMENT_CODES ? 0 : number + 1;
    }
}

/* The word of the stream that begins at this bit of it, the piece beginning at `start`. */
DEVICE_FN uint32_t stream_word(const struct cogpu_lzw_encode_args *args, const struct piece *piece,
                               uint32_t start, uint32_t bit) {
    struct gathering gathering = {0, 0};
    if (bit < start)
        put_bits(&gathering, CLEAR, OPENING_BITS);
    gather(&gathering, args, piece, bit < start ? 0 : bit - start);
    if (gathering.count < WORD_BITS)
        put_bits(&gathering, 0, (uint32_t)(WORD_BITS - gathering.count));
    return (uint32_t)(gathering.bits >> (gathering.count - WORD_BITS));
}

KERNEL(cogpu_kernel_lzw_join, struct cogpu_lzw_encode_args, struct join_shared, JOIN_THREADS, 8) {
    const struct piece piece = piece_of(args);
    if (piece.number >= piece_count(piece.about) || piece.counts[piece.number] == 0)
        return;
    const uint32_t start = bits_before_piece(shared, &piece);
    const uint32_t end = start + bits_of_list(piece.counts[piece.number]);
    const uint32_t first = piece.number == 0 ? 0 : (start + WORD_BITS - 1) / WORD_BITS;
    const uint32_t last = least((end + WORD_BITS - 1) / WORD_BITS, piece.about->room / 4);
    void *slot = args->slots + piece.about->out;
    for (uint32_t word = first + thread_index(); word < last; word += JOIN_THREADS)
        ((number32 *)slot)[word] =
            pick_bytes(stream_word(args, &piece, start, WORD_BITS * word), 0, 0x0123);
    if (piece.number + 1 == piece_count(piece.about) && thread_index() == 0)
        args->sizes[piece.block] = (end + 7) / 8;
}
