/*
 * LZW encoder (TIFF 6.0, section 13). A TIFF block is split into parts of 32 KiB. Each part begins
 * with an empty string table, so a part depends on the others only by the number of bits before it.
 *
 *     | Clear | codes of part 0 | Clear | codes of part 1 | Clear | ... | codes | End |
 *       9 bits                    a part ends with the Clear of the next one, or with End
 *
 * 1. cogpu_kernel_lzw_parse, a warp for each part, lists its codes in scratch, 16 bits each. LZW is
 *    one long chain: each string adds an entry to the table in which the next one is looked up. The
 *    warp still parses many strings per step:
 *
 *    - Each lane looks up the longest string at its own byte, of the next 32.
 *    - The path from lane 0, from the end of one string to the beginning of the next, comes from
 *      pointer jumping. Strings on the path become codes.
 *
 *          bytes      a b a b a b c ...      table: ab, aba
 *          lane       0 1 2 3 4 5 6
 *          longest    3 1 3 1 2 1 1          path: lane 0 -> 3 -> 4 -> 6
 *
 *    - Each string on the path, plus the next byte, becomes a new entry of the table.
 *
 *    Lanes look into a table that lacks the entries of this step. That matters only if two strings
 *    of the path add the same entry: the second should have been longer. Both then compete for the
 *    same slot of the table. The step ends before the second, and the next step begins with it. So
 *    the codes are exactly those of a sequential encoder, in any order of lanes.
 *
 * 2. cogpu_kernel_lzw_join, a thread block for each part, packs codes into bits, MSB first. The
 *    width of a code depends only on its index since the last Clear, so the bit at which it begins
 *    has a closed form. Each thread makes one 32-bit word of the stream at a time.
 *
 * Shared memory: the string table (20 KiB) and a ring of input bytes for parse; sums for join.
 * Synchronisation: warp barriers in parse, one block barrier in join. Parts share nothing.
 * Loop bounds: a step consumes at least one byte, so a part has at most 32768 steps. Probing visits
 * a bucket at most once and stops at the first that is not full; the table never fills up. Every
 * word written is checked against the slot.
 * Output bound: at worst a code of 12 bits for each byte, and the Clears; see lzw_bound.
 */
#include "kernels/encode/common.h"
#include "kernels/lzw/lzw_encode_args.h"

enum { CLEAR = 256, END = 257, FIRST = 258, TABLE_CODES = COGPU_LZW_TABLE_CODES };

/* ---- parts ---------------------------------------------------------------------------------- */

struct lzw_encode_part {
    uint32_t block, number; /* of the TIFF block in the batch; of the part in the block */
    const cogpu_raw_block *raw;
    uint32_t *counts; /* number of codes of each part of the block */
    uint16_t *lists;  /* codes of each part of the block */
};

DEVICE_FN struct lzw_encode_part get_lzw_part(const struct cogpu_lzw_encode_args *args) {
    struct lzw_encode_part part;
    part.block = block_index() / args->max_parts;
    part.number = block_index() % args->max_parts;
    part.raw = &args->blocks[part.block];
    void *scratch = args->scratch + part.block * args->block_scratch;
    part.counts = (uint32_t *)scratch;
    part.lists = (uint16_t *)(part.counts + args->max_parts);
    return part;
}

DEVICE_FN uint32_t lzw_part_count(const cogpu_raw_block *block) {
    return (block->in_bytes + COGPU_LZW_PART_BYTES - 1) / COGPU_LZW_PART_BYTES;
}

/* ---- string table --------------------------------------------------------------------------- */

/*
 * A hash table of 1223 buckets with four entries each, loaded 16 bytes at a time:
 *
 *     entry    prefix code (12 bits) | byte (8 bits) | code (12 bits)        prefix + byte: the key
 *
 * Buckets fill from their first entry on. A full table takes almost four fifths of the entries;
 * 20 KiB let eleven warps run on a multiprocessor.
 */
enum { CODE_BITS = 12, CODE_MAX = (1 << CODE_BITS) - 1 };
enum { BUCKETS = 1223, BUCKET = 4, ENTRIES = BUCKETS * BUCKET };

#define EMPTY UINT32_MAX /* neither an entry nor a key: code 4095 is never used */

/* Input bytes around the current step, in chunks. */
enum { CHUNK = 128, RING = 4 * CHUNK };

struct lzw_parse_shared {
    uint32_t entries[ENTRIES];
    uint8_t ring[RING];
};

/* The longest string of the table at a lane's byte. */
struct lzw_string {
    uint32_t code, end; /* end: the byte after it */
    uint32_t key;       /* of the string and that byte: the new entry; EMPTY at the end of input */
    uint32_t slot;      /* entry of the table where the look-up of `key` failed */
};

DEVICE_FN void clear_table(struct lzw_parse_shared *shared) {
    const words4 empty = {EMPTY, EMPTY, EMPTY, EMPTY};
    sync_warp();
    for (uint32_t at = BUCKET * lane_index(); at < ENTRIES; at += BUCKET * WARP)
        store_words4(&shared->entries[at], empty);
    sync_warp();
}

DEVICE_FN uint32_t make_key(uint32_t code, uint32_t byte) {
    return code << 8 | byte;
}

DEVICE_FN uint32_t hash_bucket(uint32_t key) {
    return (uint32_t)((uint64_t)(key * 0x9E3779B1u) * BUCKETS >> 32);
}

/* Double hashing: after a full bucket, on by a stride that depends on the key. The number of
 * buckets is a prime, so every stride visits all of them. */
DEVICE_FN uint32_t next_bucket(uint32_t bucket, uint32_t key) {
    const uint32_t next = bucket + 1 + key % 256;
    return min_u32(next, next - BUCKETS); /* the difference wraps to a huge number if negative */
}

/* The code of a key, or more than CODE_MAX. An entry XORed with the shifted key is its code if
 * the keys are equal, and more than CODE_MAX otherwise. */
DEVICE_FN uint32_t find_in_bucket(const words4 *bucket, uint32_t key) {
    const uint32_t entry = key << CODE_BITS;
    return min_u32(min_u32(bucket->x ^ entry, bucket->y ^ entry),
                   min_u32(bucket->z ^ entry, bucket->w ^ entry));
}

/* Extends a string by bytes[at & mask] while the table has it, up to `limit`. One bucket per turn
 * of the loop, for this key or the next. The loop body has no branches, so lanes stay together; the
 * byte of the next key is loaded ahead. */
DEVICE_FN void extend_string(const struct lzw_parse_shared *shared, struct lzw_string *string,
                             const uint8_t *bytes, uint32_t mask, uint32_t limit) {
    if (string->end >= limit)
        return;
    uint32_t key = make_key(string->code, bytes[string->end & mask]), bucket = hash_bucket(key), at;
    uint32_t ahead = string->end + 1;
    words4 entries;
    bool is_found;
    do {
        at = bucket;
        entries = load_words4(&shared->entries[BUCKET * at]);
        const uint32_t byte = bytes[ahead & mask], code = find_in_bucket(&entries, key);
        const uint32_t longer = make_key(code, byte), longer_bucket = hash_bucket(longer);
        const uint32_t after = next_bucket(at, key);
        is_found = code <= CODE_MAX;
        string->code = is_found ? code : string->code;
        ahead += is_found;
        key = is_found ? longer : key;
        bucket = is_found ? longer_bucket : after;
    } while ((ahead <= limit) & (is_found | (entries.w != EMPTY)));
    string->end = ahead - 1;
    string->key = is_found ? EMPTY : key;
    string->slot =
        BUCKET * at + (entries.x != EMPTY) + (entries.y != EMPTY) + (entries.z != EMPTY);
}

/* Adds the entry of a string; returns its slot, or ENTRIES where another lane has added the same
 * key. Lanes compete for slots: the order decides where an entry is, not whether it is found. */
DEVICE_FN uint32_t add_entry(struct lzw_parse_shared *shared, const struct lzw_string *string,
                             uint32_t code) {
    const uint32_t entry = string->key << CODE_BITS | code;
    uint32_t slot = string->slot;
    for (;;) {
        const uint32_t present = atomic_compare_exchange(&shared->entries[slot], EMPTY, entry);
        if (present == EMPTY)
            return slot;
        if ((present ^ entry) <= CODE_MAX)
            return ENTRIES;
        slot++;
        if (slot % BUCKET == 0)
            slot = BUCKET * next_bucket(slot / BUCKET - 1, string->key);
    }
}

/* ---- parse ---------------------------------------------------------------------------------- */

/* State of the parse of a part. All lanes hold the same. */
struct lzw_parse {
    const uint8_t *in;
    uint32_t bytes, at;
    uint32_t loaded, requested; /* ends of the bytes in the ring: arrived, and under way */
    uint16_t *list;
    uint32_t listed; /* codes in the list */
    uint32_t index;  /* of the next code since the last Clear */
};

/* Keeps the ring ahead of the parse: when a chunk has been passed, an asynchronous copy of a new
 * one starts into its memory, and the previous copy is awaited. */
DEVICE_FN void fill_ring(struct lzw_parse_shared *shared, struct lzw_parse *parse) {
    const uint32_t chunk = parse->at / CHUNK * CHUNK, from = chunk + 16 * lane_index();
    if (parse->requested == chunk + RING)
        return;
    copies_wait();
    parse->loaded = parse->requested;
    if (parse->requested <= from && from < parse->bytes)
        copy_to_shared_16(&shared->ring[from % RING], parse->in + from);
    copies_commit();
    parse->requested = chunk + RING;
    if (parse->loaded < chunk + 2 * CHUNK) { /* at the beginning, or after a long string */
        copies_wait();
        parse->loaded = parse->requested;
    }
    sync_warp();
}

/* The longest string of the table at byte `at`: from the ring, then, if it is very long, from
 * global memory. */
DEVICE_FN struct lzw_string find_longest(const struct lzw_parse_shared *shared,
                                         const struct lzw_parse *parse, uint32_t at) {
    struct lzw_string string = {shared->ring[at % RING], at + 1, EMPTY, 0};
    extend_string(shared, &string, shared->ring, RING - 1,
                  min_u32(parse->bytes, parse->loaded - 2));
    if (string.key == EMPTY && string.end < parse->bytes)
        extend_string(shared, &string, parse->in, UINT32_MAX, parse->bytes);
    return string;
}

/* The lanes on the path from lane 0, as a mask. Each lane points to the lane `next` where its
 * string ends, or to itself if that is past the warp. Pointer jumping: after k rounds a lane knows
 * 2^k lanes of its path. A lane past the end of the part has no string. */
DEVICE_FN uint32_t find_path(uint32_t next, bool has_string) {
    uint32_t path = has_string ? 1u << lane_index() : 0;
    uint32_t target = next < WARP ? next : lane_index();
    for (uint32_t known = 1; known < WARP; known *= 2) {
        path |= warp_read(path, target);
        target = warp_read(target, target);
    }
    return warp_read(path, 0);
}

/* Adds the entries of lanes that have one. Returns the first lane whose key a lower lane has too:
 * from it on, no entry is added. WARP if there is none. */
DEVICE_FN uint32_t add_entries(struct lzw_parse_shared *shared, const struct lzw_string *string,
                               uint32_t code, bool has_entry) {
    const uint32_t lane = lane_index();
    const uint32_t slot = has_entry ? add_entry(shared, string, code) : 0;
    if (!warp_any(slot == ENTRIES))
        return WARP;
    sync_warp();
    if (has_entry && slot < ENTRIES)
        shared->entries[slot] = EMPTY; /* undone: another order may be needed */
    const uint32_t same = warp_match(has_entry ? string->key : EMPTY);
    const bool is_second = has_entry && (same & lanes_below()) != 0;
    const uint32_t step_end = trailing_zeros(warp_ballot(is_second));
    sync_warp();
    if (has_entry && lane < step_end)
        add_entry(shared, string, code);
    return step_end;
}

/* Lists the codes of strings that begin in the next WARP bytes: at least the first. */
DEVICE_FN void parse_step(struct lzw_parse_shared *shared, struct lzw_parse *parse) {
    const uint32_t lane = lane_index();
    const bool has_string = lane < parse->bytes - parse->at;
    struct lzw_string string = {0, parse->at + 2 * WARP, EMPTY, 0};
    fill_ring(shared, parse);
    if (has_string)
        string = find_longest(shared, parse, parse->at + lane);
    const uint32_t path = find_path(string.end - parse->at, has_string);
    const uint32_t before = count_ones(path & lanes_below());
    const uint32_t index = parse->index + before;
    const bool is_taken = (path >> lane & 1) != 0 && index < TABLE_CODES;
    sync_warp(); /* all look-ups are done before the table changes */
    const uint32_t step_end =
        add_entries(shared, &string, FIRST + index, is_taken && string.key != EMPTY);
    const bool is_listed = is_taken && lane < step_end;
    if (is_listed)
        parse->list[parse->listed + before] = (uint16_t)string.code;
    const uint32_t listed = warp_ballot(is_listed);
    parse->listed += count_ones(listed);
    parse->index += count_ones(listed);
    parse->at = warp_read(string.end, WARP - 1 - leading_zeros(listed));
    sync_warp();
}

/* Lists the codes of a part; returns their number. */
DEVICE_FN uint32_t parse_part(struct lzw_parse_shared *shared, struct lzw_parse *parse,
                              uint32_t last_code) {
    clear_table(shared);
    while (parse->at < parse->bytes) {
        if (parse->index == TABLE_CODES) {
            if (lane_index() == 0)
                parse->list[parse->listed] = CLEAR;
            parse->listed++;
            parse->index = 0;
            clear_table(shared);
        }
        parse_step(shared, parse);
    }
    if (lane_index() == 0)
        parse->list[parse->listed] = (uint16_t)last_code;
    return parse->listed + 1;
}

KERNEL(cogpu_kernel_lzw_parse, struct cogpu_lzw_encode_args, struct lzw_parse_shared, WARP, 11) {
    const struct lzw_encode_part part = get_lzw_part(args);
    const uint32_t parts = lzw_part_count(part.raw), begin = part.number * COGPU_LZW_PART_BYTES;
    if (part.number >= parts)
        return;
    uint32_t count = 0;
    if (args->sizes[part.block] != COGPU_GPU_SPARSE) {
        struct lzw_parse parse = {args->decoded + part.raw->in + begin,
                                  min_u32(part.raw->in_bytes - begin, COGPU_LZW_PART_BYTES),
                                  0,
                                  0,
                                  0,
                                  part.lists + (uint64_t)part.number * args->list_codes,
                                  0,
                                  0};
        count = parse_part(shared, &parse, part.number + 1 < parts ? CLEAR : END);
    }
    if (lane_index() == 0)
        part.counts[part.number] = count;
}

/* ---- widths and positions of codes ---------------------------------------------------------- */

/*
 * The width of a code follows from its index since the last Clear. Code i adds entry 258 + i, and
 * TIFF widens codes one entry early, once entry 511, 1023 or 2047 exists:
 *
 *     index    0 ... 253    254 ... 765    766 ... 1789    1790 ... 3835    3836: Clear
 *     bits     9            10             11              12               12
 */
enum { TEN_BITS = 254, ELEVEN_BITS = 766, TWELVE_BITS = 1790 };

/* Bits before these indexes, and of all codes of a table with the Clear after them. */
enum {
    BITS_TO_TEN = 9 * TEN_BITS,
    BITS_TO_ELEVEN = BITS_TO_TEN + 10 * (ELEVEN_BITS - TEN_BITS),
    BITS_TO_TWELVE = BITS_TO_ELEVEN + 11 * (TWELVE_BITS - ELEVEN_BITS),
    TABLE_BITS = BITS_TO_TWELVE + 12 * (TABLE_CODES + 1 - TWELVE_BITS)
};

DEVICE_FN uint32_t code_width(uint32_t index) {
    return 9u + (index >= TEN_BITS) + (index >= ELEVEN_BITS) + (index >= TWELVE_BITS);
}

/* Bits since the last Clear before the code of this index. */
DEVICE_FN uint32_t bits_before(uint32_t index) {
    return index < TEN_BITS      ? 9 * index
           : index < ELEVEN_BITS ? BITS_TO_TEN + 10 * (index - TEN_BITS)
           : index < TWELVE_BITS ? BITS_TO_ELEVEN + 11 * (index - ELEVEN_BITS)
                                 : BITS_TO_TWELVE + 12 * (index - TWELVE_BITS);
}

/* The inverse: the index of the code that contains this bit. */
DEVICE_FN uint32_t index_at_bit(uint32_t bit) {
    return bit < BITS_TO_TEN      ? bit / 9
           : bit < BITS_TO_ELEVEN ? TEN_BITS + (bit - BITS_TO_TEN) / 10
           : bit < BITS_TO_TWELVE ? ELEVEN_BITS + (bit - BITS_TO_ELEVEN) / 11
                                  : TWELVE_BITS + (bit - BITS_TO_TWELVE) / 12;
}

DEVICE_FN uint32_t count_list_bits(uint32_t codes) {
    return codes / (TABLE_CODES + 1) * TABLE_BITS + bits_before(codes % (TABLE_CODES + 1));
}

/* ---- join ----------------------------------------------------------------------------------- */

enum { JOIN_THREADS = 256, JOIN_WARPS = JOIN_THREADS / WARP, WORD_BITS = 32, FIRST_CLEAR_BITS = 9 };

struct lzw_join_shared {
    uint32_t sums[JOIN_WARPS];
};

/* The bit of the stream at which a part begins. */
DEVICE_FN uint32_t count_bits_before_part(struct lzw_join_shared *shared,
                                          const struct lzw_encode_part *part) {
    uint32_t bits = 0;
    for (uint32_t i = thread_index(); i < part->number; i += JOIN_THREADS)
        bits += count_list_bits(part->counts[i]);
    bits = warp_sum(bits);
    if (lane_index() == 0)
        shared->sums[warp_index()] = bits;
    sync_block();
    bits = FIRST_CLEAR_BITS;
    for (uint32_t i = 0; i < JOIN_WARPS; i++)
        bits += shared->sums[i];
    return bits;
}

/* Codes appended, MSB first, until they fill a word. */
struct word_builder {
    uint64_t bits;
    int32_t count; /* wanted bits so far: negative if the first code begins before the word */
};

DEVICE_FN void append_bits(struct word_builder *builder, uint32_t bits, uint32_t width) {
    builder->bits = builder->bits << width | bits;
    builder->count += (int32_t)width;
}

/* Appends codes from the one that contains bit `bit` of the part, until the word is full. Goes on
 * with the codes of later parts. */
DEVICE_FN void append_codes(struct word_builder *builder, const struct cogpu_lzw_encode_args *args,
                            const struct lzw_encode_part *part, uint32_t bit) {
    const uint32_t parts = lzw_part_count(part->raw);
    uint32_t index = index_at_bit(bit % TABLE_BITS), from = part->number;
    uint32_t listed = bit / TABLE_BITS * (TABLE_CODES + 1) + index;
    builder->count -= (int32_t)(bit % TABLE_BITS - bits_before(index));
    while (builder->count < WORD_BITS && from < parts) {
        if (listed == part->counts[from]) {
            from++;
            listed = index = 0;
            continue;
        }
        append_bits(builder, part->lists[(uint64_t)from * args->list_codes + listed],
                    code_width(index));
        listed++;
        index = index == TABLE_CODES ? 0 : index + 1;
    }
}

/* The word of the stream that begins at bit `bit`; the part begins at bit `start`. */
DEVICE_FN uint32_t make_stream_word(const struct cogpu_lzw_encode_args *args,
                                    const struct lzw_encode_part *part, uint32_t start,
                                    uint32_t bit) {
    struct word_builder builder = {0, 0};
    if (bit < start)
        append_bits(&builder, CLEAR, FIRST_CLEAR_BITS);
    append_codes(&builder, args, part, bit < start ? 0 : bit - start);
    if (builder.count < WORD_BITS)
        append_bits(&builder, 0, (uint32_t)(WORD_BITS - builder.count));
    return (uint32_t)(builder.bits >> (builder.count - WORD_BITS));
}

/* Writes the words of the stream that begin in the part, so each word has one writer. */
KERNEL(cogpu_kernel_lzw_join, struct cogpu_lzw_encode_args, struct lzw_join_shared, JOIN_THREADS,
       8) {
    const struct lzw_encode_part part = get_lzw_part(args);
    if (part.number >= lzw_part_count(part.raw) || part.counts[part.number] == 0)
        return;
    const uint32_t start = count_bits_before_part(shared, &part);
    const uint32_t end = start + count_list_bits(part.counts[part.number]);
    const uint32_t first = part.number == 0 ? 0 : (start + WORD_BITS - 1) / WORD_BITS;
    const uint32_t last = min_u32((end + WORD_BITS - 1) / WORD_BITS, part.raw->capacity / 4);
    void *slot = args->slots + part.raw->out;
    for (uint32_t word = first + thread_index(); word < last; word += JOIN_THREADS)
        ((number32 *)slot)[word] =
            pick_bytes(make_stream_word(args, &part, start, WORD_BITS * word), 0, 0x0123);
    if (part.number + 1 == lzw_part_count(part.raw) && thread_index() == 0)
        args->sizes[part.block] = (end + 7) / 8;
}
