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
 * string before it in this step has added. Both meet where they are added; the step is then cut
 * before the second, and the next one begins with it. So the codes are exactly those of an encoder
 * that goes from string to string, whatever the order of the lanes.
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

/* An entry is the key of a string, which is the code of the string without its last byte and that
 * byte, and the code of the whole. The buckets of a full table are filled to almost four fifths,
 * and leave room for eleven warps on a multiprocessor. */
enum { CODE_BITS = 12, CODE_MAX = (1 << CODE_BITS) - 1 };
enum { BUCKETS = 1223, BUCKET = 4, PLACES = BUCKETS * BUCKET };

#define NONE UINT32_MAX /* neither an entry nor a key: there is no such code */

/* Bytes around the step, by chunks: where it is, and those that come. */
enum { CHUNK = 128, RING = 4 * CHUNK };

struct parse_shared {
    uint32_t entries[PLACES]; /* by four: first those that are, then those that are not */
    uint8_t ring[RING];
};

/* A string that begins at a lane's place. */
struct string {
    uint32_t code, end; /* where the next begins */
    uint32_t key;       /* of it and the byte after it, which the table has not; NONE at the end */
    uint32_t place;     /* in the table, where it belongs, if no other comes before */
};

DEVICE_FN void forget_all(struct parse_shared *shared) {
    const words4 none = {NONE, NONE, NONE, NONE};
    sync_warp();
    for (uint32_t at = BUCKET * lane_index(); at < PLACES; at += BUCKET * WARP)
        store_words4(&shared->entries[at], none);
    sync_warp();
}

DEVICE_FN uint32_t key_of(uint32_t code, uint32_t byte) {
    return code << 8 | byte;
}

DEVICE_FN uint32_t bucket_of(uint32_t key) {
    return (uint32_t)((uint64_t)(key * 0x9E3779B1u) * BUCKETS >> 32);
}

/* Where to look for a key when a bucket is full: from key to key by other ways, each of which meets
 * all buckets, for their number is a prime. There is always one that is not full. */
DEVICE_FN uint32_t bucket_after(uint32_t bucket, uint32_t key) {
    const uint32_t after = bucket + 1 + key % 256;
    return least(after, after - BUCKETS); /* which is huge before the end */
}

/* The code that a bucket has for a key; more than CODE_MAX where it has none. */
DEVICE_FN uint32_t code_in(const words4 *bucket, uint32_t key) {
    const uint32_t entry = key << CODE_BITS;
    return least(least(bucket->x ^ entry, bucket->y ^ entry),
                 least(bucket->z ^ entry, bucket->w ^ entry));
}

/* Goes on with a string, by bytes[place & mask], until the table has no longer one, or it ends at
 * `limit`. A turn of the loop is a bucket. What it finds decides by selection alone, never by a
 * branch, so that lanes stay together; and the byte of the next key is loaded ahead. */
DEVICE_FN void lengthen(const struct parse_shared *shared, struct string *string,
                        const uint8_t *bytes, uint32_t mask, uint32_t limit) {
    if (string->end >= limit)
        return;
    uint32_t key = key_of(string->code, bytes[string->end & mask]), bucket = bucket_of(key), at;
    uint32_t ahead = string->end + 1;
    words4 entries;
    bool is_found;
    do {
        at = bucket;
        entries = load_words4(&shared->entries[BUCKET * at]);
        const uint32_t byte = bytes[ahead & mask], code = code_in(&entries, key);
        const uint32_t longer = key_of(code, byte), its_bucket = bucket_of(longer);
        const uint32_t after = bucket_after(at, key);
        is_found = code <= CODE_MAX;
        string->code = is_found ? code : string->code;
        ahead += is_found;
        key = is_found ? longer : key;
        bucket = is_found ? its_bucket : after;
    } while ((ahead <= limit) & (is_found | (entries.w != NONE)));
    string->end = ahead - 1;
    string->key = is_found ? NONE : key;
    string->place = BUCKET * at + (entries.x != NONE) + (entries.y != NONE) + (entries.z != NONE);
}

/* Adds the string with the byte after it; returns where. Others that are added now may come first:
 * where an entry ends up is open, whether it is found is not. PLACES where it has met its own key.
 */
DEVICE_FN uint32_t add_entry(struct parse_shared *shared, const struct string *string,
                             uint32_t code) {
    const uint32_t entry = string->key << CODE_BITS | code;
    uint32_t place = string->place;
    for (;;) {
        const uint32_t there = atomic_compare_exchange(&shared->entries[place], NONE, entry);
        if (there == NONE)
            return place;
        if ((there ^ entry) <= CODE_MAX)
            return PLACES;
        place++;
        if (place % BUCKET == 0)
            place = BUCKET * bucket_after(place / BUCKET - 1, string->key);
    }
}

/* ---- parse ---- */

/* Of a piece. All lanes hold the same. */
struct parse {
    const uint8_t *in;
    uint32_t bytes, at;
    uint32_t near, fetched; /* of the ring: end of the bytes that are there, and of all */
    uint16_t *list;
    uint32_t listed; /* codes */
    uint32_t number; /* of the next code in its segment */
};

/* When a chunk is behind, fetches another in its place, which is there when the next one is. */
DEVICE_FN void fill_ring(struct parse_shared *shared, struct parse *parse) {
    const uint32_t chunk = parse->at / CHUNK * CHUNK, place = chunk + 16 * lane_index();
    if (parse->fetched == chunk + RING)
        return;
    copies_wait();
    parse->near = parse->fetched;
    if (parse->fetched <= place && place < parse->bytes)
        copy_to_shared_16(&shared->ring[place % RING], parse->in + place);
    copies_commit();
    parse->fetched = chunk + RING;
    if (parse->near < chunk + 2 * CHUNK) { /* at the beginning, or behind a long string */
        copies_wait();
        parse->near = parse->fetched;
    }
    sync_warp();
}

/* The longest string of the table at a place of the piece. */
DEVICE_FN struct string find_longest(const struct parse_shared *shared, const struct parse *parse,
                                     uint32_t place) {
    struct string string = {shared->ring[place % RING], place + 1, NONE, 0};
    lengthen(shared, &string, shared->ring, RING - 1, least(parse->bytes, parse->near - 2));
    if (string.key == NONE && string.end < parse->bytes)
        lengthen(shared, &string, parse->in, UINT32_MAX, parse->bytes);
    return string;
}

/* The lanes that the way from the first touches, a bit each. It goes from this lane to `next`, and
 * ends where that is no lane: there it stays. A lane behind the end of the piece has no string. */
DEVICE_FN uint32_t follow_strings(uint32_t next, bool has_string) {
    uint32_t touched = has_string ? 1u << lane_index() : 0;
    uint32_t there = next < WARP ? next : lane_index();
    for (uint32_t steps = 1; steps < WARP; steps *= 2) {
        touched |= warp_read(touched, there);
        there = warp_read(there, there);
    }
    return warp_read(touched, 0);
}

/* Adds the strings of lanes that have one. Returns the first lane whose key is that of a lane
 * before it: it and those behind it are not added then. WARP where there is none. */
DEVICE_FN uint32_t add_strings(struct parse_shared *shared, const struct string *string,
                               uint32_t code, bool has_one) {
    const uint32_t lane = lane_index();
    const uint32_t place = has_one ? add_entry(shared, string, code) : 0;
    if (!warp_any(place == PLACES))
        return WARP;
    sync_warp();
    if (has_one && place < PLACES)
        shared->entries[place] = NONE; /* taken back */
    const uint32_t same = warp_match(has_one ? string->key : NONE);
    const bool is_second = has_one && (same & ((1u << lane) - 1)) != 0;
    const uint32_t cut = trailing_zeros(warp_ballot(is_second));
    sync_warp();
    if (has_one && lane < cut)
        add_entry(shared, string, code);
    return cut;
}

/* Lists the codes of strings that begin in the WARP bytes from here on: at least the first. */
DEVICE_FN void step(struct parse_shared *shared, struct parse *parse) {
    const uint32_t lane = lane_index();
    const bool has_string = lane < parse->bytes - parse->at;
    struct string string = {0, parse->at + 2 * WARP, NONE, 0};
    fill_ring(shared, parse);
    if (has_string)
        string = find_longest(shared, parse, parse->at + lane);
    const uint32_t taken = follow_strings(string.end - parse->at, has_string);
    const uint32_t before = count_ones(taken & ((1u << lane) - 1));
    const uint32_t number = parse->number + before;
    const bool is_taken = (taken >> lane & 1) != 0 && number < SEGMENT_CODES;
    sync_warp(); /* all have looked into the table as it was */
    const uint32_t cut =
        add_strings(shared, &string, FIRST + number, is_taken && string.key != NONE);
    const bool is_listed = is_taken && lane < cut;
    if (is_listed)
        parse->list[parse->listed + before] = (uint16_t)string.code;
    const uint32_t listed = warp_ballot(is_listed);
    parse->listed += count_ones(listed);
    parse->number += count_ones(listed);
    parse->at = warp_read(string.end, WARP - 1 - leading_zeros(listed));
    sync_warp();
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
                              0,
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
