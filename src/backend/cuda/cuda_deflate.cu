/*
 * Takes blocks, hands on a zlib stream of each (RFC 1950, 1951), in its slot.
 *
 * A block is cut into parts of 32 KiB, and each part is a section of the stream with codes of its
 * own. A block of 256 threads makes one: a segment of 128 bytes for each thread.
 *
 * 1. The bytes are loaded into shared memory and summed up for Adler-32.
 * 2. Bytes are counted, but for those inside runs: the first guess of what a literal costs.
 * 3. Each thread finds the cheapest way to write its segment, from its end to its beginning: at
 * each byte a literal, or a match at one of few distances: to the byte, the sample and the row
 * before; and, for a higher level, to the best of the places that links lead to, which a kernel has
 * made before. A match ends with its segment.
 * 4. Each thread walks the way it has found and counts the symbols on it.
 * 5. Of the counts Huffman codes are made, of at most 15 bits, and the header that tells them.
 * 6. Each thread writes the bits of its segment, in place of its choices and bytes, and moves them
 * to where the sums of all before it say.
 *
 * The parts of a block are staged. Then a warp gives each its place, the stream's bits being known,
 * and a block of threads for each part moves it there. A part that its codes would not make smaller
 * is stored as it is.
 */
#include "backend/cuda/cuda_deflate.h"
#include "backend/cuda/cuda_encode.h"

enum {
    THREADS = ENCODE_THREADS,
    WARPS = THREADS / WARP,
    LEARNED_WORDS = SEGMENT_WORDS / 4, /* of a segment, that costs are learned from */
    PART_WORDS = COGPU_DEFLATE_PART / 4,
    PEEK_WORDS = 8, /* that are looked at behind the last */

    LITERALS = BYTE_VALUES,
    END = 256,
    FIRST_LENGTH = 257,
    MATCH_MIN = 3,
    CODE_BITS_MAX = 15,
    PRECODE_BITS_MAX = 7,

    NEVER = UINT16_MAX, /* more than any way through a segment */
    ADLER = 65521
};

/* The three codes of a section, and where their symbols are in arrays for all of them. */
enum { LITLEN_CODE, DISTANCE_CODE, PRECODE, CODES };
enum { FIRST_DISTANCE = 288, FIRST_PRECODE = 320, SYMBOLS = 352 };

/* Three distances that are known before, and one that has been found. The near one is the sample
 * before; where that is a byte, what comes next in the row before. */
enum { BYTE_BEFORE, NEAR_BEFORE, ROW_BEFORE, KNOWN, FOUND = KNOWN };

/* What the codes are made with. */
struct tree {
    uint32_t keys[SYMBOLS];    /* counts with their symbols; then the weights of inner nodes */
    uint32_t weights[SYMBOLS]; /* of leaves, the lightest first */
    uint16_t symbols[SYMBOLS]; /* of these */
    uint16_t leaf_up[SYMBOLS], inner_up[SYMBOLS]; /* nodes above them */
};

enum {
    HEADER_WORDS = 96, /* 316 code lengths of 7 bits, and less than 80 bits before them */
    KEPT_COSTS = 16,
    FOUND_MAX = KEPT_COSTS - 1 /* length of a match where it is found; it may grow backwards */
};

struct deflate_shared {
    /* The part before, while matches are searched, then choices; behind that the part itself. At
     * last the bits of segments are in both. */
    uint32_t bytes[2 * PADDED_WORDS + PEEK_WORDS];
    union {
        uint32_t first_counts[COUNT_COPIES * LITERALS];
        uint32_t kinds[SEGMENT / WARP * THREADS]; /* a bit for each byte of the part */
        struct tree tree;
    } v;
    uint32_t codes[SYMBOLS]; /* counts at first; then the code, first bit lowest, and bits << 16 */
    uint32_t header[HEADER_WORDS];
    uint32_t at_length[CODES][CODE_BITS_MAX + 1], used[CODES];
    uint32_t warp_sums[WARPS], header_bits, byte_sum, place_sum;
    uint16_t length_costs[SEGMENT + 4], distance_costs[32];
    uint8_t literal_costs[LITERALS], lengths[SYMBOLS];
};

/* A part on its way. All threads hold the same. */
struct part {
    const uint8_t *in;
    uint32_t bytes;
    bool is_first, is_last;    /* of its block */
    uint32_t distances[KNOWN]; /* 0: none */
    const uint16_t *links;     /* NULL, or for each byte how far before it its key was last */
    uint32_t *found;           /* for each byte a distance, and a length << 16; 0: none */
};

/* A byte for each of the part: see KIND_BIT. */
DEVICE_FN uint32_t *choices_in(const struct deflate_shared *shared) {
    return (uint32_t *)(uintptr_t)shared->bytes;
}

DEVICE_FN uint32_t *words_in(const struct deflate_shared *shared) {
    return choices_in(shared) + PADDED_WORDS;
}

DEVICE_FN uint32_t segment_begin(void) {
    return SEGMENT * thread_index();
}

DEVICE_FN uint32_t segment_end(const struct part *part) {
    return least(segment_begin() + SEGMENT, part->bytes);
}

/* ---- lengths and distances as symbols ------------------------------------------------------- */

/* The highest bits of a number are in its symbol, the others follow it. */
struct symbol {
    uint32_t number, extra_bits, extra;
};

DEVICE_FN struct symbol symbol_of(uint32_t value, uint32_t bits_inside) {
    const uint32_t top = log2_floor(value | 1);
    struct symbol symbol;
    symbol.extra_bits = top > bits_inside ? top - bits_inside : 0;
    symbol.number = (symbol.extra_bits << bits_inside) + (value >> symbol.extra_bits);
    symbol.extra = value & ((1u << symbol.extra_bits) - 1);
    return symbol;
}

/* Of lengths below 258: no segment has more. */
DEVICE_FN struct symbol length_symbol(uint32_t length) {
    struct symbol symbol = symbol_of(length - MATCH_MIN, 2);
    symbol.number += FIRST_LENGTH;
    return symbol;
}

DEVICE_FN struct symbol distance_symbol(uint32_t distance) {
    struct symbol symbol = symbol_of(distance - 1, 1);
    symbol.number += FIRST_DISTANCE;
    return symbol;
}

/* ---- the bytes ------------------------------------------------------------------------------ */

/* Leaves the sum of all bytes, and of each times its place modulo ADLER, to sum_of. */
DEVICE_FN void load_part(struct deflate_shared *shared, const struct part *part) {
    uint32_t *words = words_in(shared), sum = 0, place_sum = 0;
    for (uint32_t i = thread_index(); i < COUNT_COPIES * LITERALS; i += THREADS)
        shared->v.first_counts[i] = 0;
    for (uint32_t i = thread_index(); i < PEEK_WORDS; i += THREADS)
        words[PADDED_WORDS + i] = 0;
    if (thread_index() == 0)
        shared->byte_sum = shared->place_sum = 0;
    sync_block();
    UNROLL
    for (uint32_t i = 0; i < PART_WORDS / THREADS; i++) {
        const uint32_t index = i * THREADS + thread_index(), place = 4 * index;
        uint32_t word = 0;
        if (place < part->bytes)
            word = own_bytes(load_u32_aligned(part->in + place), place, part->bytes);
        words[padded(index)] = word;
        UNROLL
        for (uint32_t j = 0; j < 4; j++) {
            const uint32_t byte = word >> 8 * j & 0xFF;
            sum += byte;
            place_sum += byte * (place + j);
        }
    }
    sum = warp_sum(sum);
    place_sum = warp_sum(place_sum % ADLER);
    if (lane_index() == 0) {
        atomic_add(&shared->byte_sum, sum);
        atomic_add(&shared->place_sum, place_sum);
    }
    sync_block();
}

/* Adler-32 from 0: the sum of the bytes, and of each times what of the part begins with it. */
DEVICE_FN uint32_t sum_of(const struct deflate_shared *shared, uint32_t bytes) {
    const uint64_t all = (uint64_t)bytes * shared->byte_sum;
    const uint32_t weighted = (uint32_t)(all % ADLER) + ADLER - shared->place_sum % ADLER;
    return weighted % ADLER << 16 | shared->byte_sum % ADLER;
}

/* ---- costs ---------------------------------------------------------------------------------- */

/* The sum of a value of each thread. A collective. */
DEVICE_FN uint32_t block_sum(struct deflate_shared *shared, uint32_t value) {
    const uint32_t sum = warp_sum(value);
    uint32_t total = 0;
    if (lane_index() == 0)
        shared->warp_sums[warp_index()] = sum;
    sync_block();
    for (uint32_t i = 0; i < WARPS; i++)
        total += shared->warp_sums[i];
    sync_block();
    return total;
}

/* Nothing is known of lengths and distances: what is usual for rasters. Literals are a bit dearer
 * than they seem, for matches have symbols too. */
DEVICE_FN void guess_costs(struct deflate_shared *shared, const struct part *part) {
    const uint32_t i = thread_index();
    count_but_runs(words_in(shared), part->bytes, shared->v.first_counts);
    sync_block();
    uint32_t count = 0;
    for (uint32_t copy = 0; copy < COUNT_COPIES; copy++)
        count += shared->v.first_counts[copy * LITERALS + i];
    const uint32_t total = block_sum(shared, count);
    shared->literal_costs[i] = (uint8_t)least(cost_of(count, total) + 2, COST_MAX);
    if (i < MATCH_MIN)
        shared->length_costs[i] = NEVER;
    else if (i <= SEGMENT) {
        const struct symbol length = length_symbol(i);
        const uint32_t code = length.number < FIRST_LENGTH + 8 ? 88 : 112;
        shared->length_costs[i] = (uint16_t)(code + BIT * length.extra_bits);
    }
    if (i < 30) {
        const uint32_t code = i == 0 ? 48 : i < 4 ? 56 : 72;
        shared->distance_costs[i] = (uint16_t)(code + BIT * (i < 4 ? 0 : i / 2 - 1));
    }
    sync_block();
}

/* As a first parse has counted them. */
DEVICE_FN void learn_costs(struct deflate_shared *shared) {
    const uint32_t i = thread_index(), *counts = shared->codes;
    const bool is_distance = i < 30;
    const uint32_t litlens =
        block_sum(shared, counts[i] + (i + 256 < FIRST_DISTANCE ? counts[256 + i] : 0));
    const uint32_t distances = block_sum(shared, is_distance ? counts[FIRST_DISTANCE + i] : 0);
    shared->literal_costs[i] = (uint8_t)cost_of(counts[i], litlens);
    if (i >= MATCH_MIN && i <= SEGMENT) {
        const struct symbol length = length_symbol(i);
        const uint32_t code = cost_of(counts[length.number], litlens);
        shared->length_costs[i] = (uint16_t)(code + BIT * length.extra_bits);
    }
    if (is_distance) {
        const uint32_t code = cost_of(counts[FIRST_DISTANCE + i], distances);
        shared->distance_costs[i] = (uint16_t)(code + BIT * (i < 4 ? 0 : i / 2 - 1));
    }
    sync_block();
}

/* ---- links ---------------------------------------------------------------------------------- */

enum {
    KEY = 4,         /* bytes that must be the same for a match to be found */
    HEADS = 31 << 9, /* so that seven warps fit on a multiprocessor */
    GROUPS = 4,      /* of a byte for each lane, whose hashes are made at once */
    AHEAD = 1 << 10, /* bytes that are fetched before they are looked at */
    STRETCH = COGPU_DEFLATE_STRETCH
};

/* The last place of each hash, modulo 2^16. At first all are 0, which is not so, but no link is
 * trusted. */
struct link_shared {
    uint32_t heads[HEADS / 2];
};

/* Of the key at this place, below HEADS; where there is none, or it is the key of the byte before,
 * a number that no other lane has. Without branches, for the loads of many are to be under way. */
DEVICE_FN uint32_t hash_at(const uint8_t *in, uint32_t at, uint32_t bytes) {
    const uint32_t from = at > 0 ? least(at, bytes) - 1 : 0;
    const uint64_t low = load_u32_aligned(in + from / 4 * 4);
    const uint64_t high = load_u32_aligned(in + from / 4 * 4 + 4);
    const uint64_t both = (high << 32 | low) >> 8 * (from % 4);
    const uint32_t key = (uint32_t)(at > 0 ? both >> 8 : both);
    const bool is_asked = at + KEY <= bytes && (at == 0 || key != (uint32_t)both);
    const uint32_t hash = (uint32_t)((uint64_t)(key * 0x9E3779B1u) * HEADS >> 32);
    return is_asked ? hash : HEADS + lane_index();
}

/* How far before each byte of a stretch its key was last: a number of 16 bits, 0 for none. A warp
 * takes a byte for each lane, and goes on; before the stretch it learns what is there. */
DEVICE_FN void link_stretch(struct link_shared *shared, const uint8_t *in, uint32_t bytes,
                            uint32_t begin, uint16_t *links) {
    const uint32_t lane = lane_index(), end = least(begin + STRETCH, bytes);
    number16 *heads = (number16 *)shared->heads;
    for (uint32_t i = lane; i < HEADS / 2; i += WARP)
        shared->heads[i] = 0;
    sync_warp();
    for (uint32_t base = begin > 0 ? begin - COGPU_DEFLATE_PART : 0; base < end;
         base += GROUPS * WARP) {
        uint32_t hashes[GROUPS], same[GROUPS], last[GROUPS];
        if (base + AHEAD + 4 * lane < bytes)
            fetch_ahead(in + base + AHEAD + 4 * lane);
        UNROLL
        for (uint32_t g = 0; g < GROUPS; g++)
            hashes[g] = hash_at(in, base + g * WARP + lane, bytes);
        UNROLL
        for (uint32_t g = 0; g < GROUPS; g++)
            same[g] = warp_match(hashes[g]);
        UNROLL
        for (uint32_t g = 0; g < GROUPS; g++) {
            last[g] = heads[least(hashes[g], HEADS - 1)];
            sync_warp();
            if (hashes[g] < HEADS && same[g] >> lane == 1)
                heads[hashes[g]] = (uint16_t)(base + g * WARP + lane);
            sync_warp();
        }
        UNROLL
        for (uint32_t g = 0; g < GROUPS; g++) {
            const uint32_t at = base + g * WARP + lane, below = same[g] & ((1u << lane) - 1);
            const uint32_t link = below != 0 ? lane - log2_floor(below) : at - last[g];
            if (at >= begin && at < end)
                links[at] = (uint16_t)(hashes[g] < HEADS ? link : 0);
        }
    }
}

KERNEL(cogpu_kernel_deflate_link, struct cogpu_deflate_args, struct link_shared, WARP, 7) {
    const uint32_t stretches = (args->parts_most * COGPU_DEFLATE_PART + STRETCH - 1) / STRETCH;
    const uint32_t index = block_index() / stretches, begin = block_index() % stretches * STRETCH;
    const cogpu_uncoded *block = &args->blocks[index];
    const uint64_t first = (uint64_t)index * args->parts_most * COGPU_DEFLATE_PART;
    if (args->sizes[index] != COGPU_GPU_SPARSE && begin < block->in_bytes)
        link_stretch(shared, args->decoded + block->in, block->in_bytes, begin,
                     args->links + first);
}

/* ---- the search ----------------------------------------------------------------------------- */

/* Four bytes in a row, and what follows them: what matches are compared with. */
struct asked {
    uint32_t words[5];
};

/* The word that begins so many bytes on from the first; i is less than 4. */
DEVICE_FN uint32_t asked_word(const struct asked *asked, uint32_t byte, uint32_t i) {
    return funnel_right(asked->words[i], asked->words[i + 1], 8 * byte);
}

/* How many bytes are the same at another place, of 16. The key is. */
DEVICE_FN uint32_t like_bytes(const struct asked *asked, uint32_t byte, const uint32_t *words,
                              uint32_t at) {
    uint32_t low = word_in(words, at / 4 + 1), unlike[3];
    UNROLL
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t high = word_in(words, at / 4 + i + 2);
        unlike[i] = asked_word(asked, byte, i + 1) ^ funnel_right(low, high, 8 * (at % 4));
        low = high;
    }
    return unlike[0] != 0   ? KEY + trailing_zeros(unlike[0]) / 8
           : unlike[1] != 0 ? KEY + 4 + trailing_zeros(unlike[1]) / 8
           : unlike[2] != 0 ? KEY + 8 + trailing_zeros(unlike[2]) / 8
                            : KEY + 12;
}

/* The part before this one: what matches may reach back to. */
DEVICE_FN void load_before(struct deflate_shared *shared, const struct part *part) {
    const uint8_t *from = part->in - COGPU_DEFLATE_PART;
    UNROLL
    for (uint32_t i = 0; i < PART_WORDS / THREADS; i++) {
        const uint32_t index = i * THREADS + thread_index();
        shared->bytes[padded(index)] = load_u32_aligned(from + 4 * index);
    }
    sync_block();
}

/* A byte whose matches are searched. Places count from the beginning of the part before. */
struct quest {
    uint32_t at, most;        /* its place; how long a match may be */
    uint32_t place, furthest; /* where links have led; the furthest that they may go on */
    uint32_t longest, found;
};

DEVICE_FN struct quest quest_at(const struct part *part, uint32_t i) {
    struct quest q;
    q.at = q.place = COGPU_DEFLATE_PART + i;
    q.most = i < part->bytes ? least(FOUND_MAX, part->bytes - i) : 0;
    q.furthest = part->is_first ? i : COGPU_DEFLATE_PART;
    q.longest = KEY - 1;
    q.found = 0;
    return q;
}

/* 0 where a link leads too far, or none is needed. */
DEVICE_FN uint32_t trusted(const struct quest *q, uint32_t link) {
    return q->longest < q->most && link <= q->furthest ? link : 0;
}

/* Goes to where links lead, and looks for a longer match there. All keys come before all else, for
 * memory is waited for. */
DEVICE_FN void follow(const struct deflate_shared *shared, const struct asked *asked,
                      struct quest *quests, const uint32_t *links) {
    uint32_t keys[4];
    UNROLL
    for (uint32_t j = 0; j < 4; j++) {
        quests[j].place -= links[j];
        quests[j].furthest -= links[j];
        keys[j] = four_in(shared->bytes, quests[j].place);
    }
    UNROLL
    for (uint32_t j = 0; j < 4; j++) {
        struct quest *q = &quests[j];
        if (links[j] == 0 || keys[j] != asked_word(asked, j, 0))
            continue;
        const uint32_t length = least(like_bytes(asked, j, shared->bytes, q->place), q->most);
        if (length > q->longest) {
            q->longest = length;
            q->found = (q->at - q->place) | length << 16;
        }
    }
}

/* The matches of four bytes, whose first links are known. */
DEVICE_FN words4 search_four(const struct deflate_shared *shared, const struct part *part,
                             uint32_t index, uint64_t first_links, uint32_t depth) {
    struct asked asked;
    struct quest quests[4];
    uint32_t links[4];
    UNROLL
    for (uint32_t i = 0; i < 5; i++)
        asked.words[i] = word_in(words_in(shared), index + i);
    UNROLL
    for (uint32_t j = 0; j < 4; j++) {
        quests[j] = quest_at(part, 4 * index + j);
        links[j] = trusted(&quests[j], (uint32_t)(first_links >> 16 * j) & 0xFFFF);
    }
    for (uint32_t hop = 1; (links[0] | links[1] | links[2] | links[3]) != 0; hop++) {
        follow(shared, &asked, quests, links);
        if (hop == depth)
            break;
        UNROLL
        for (uint32_t j = 0; j < 4; j++) {
            const uint32_t link = part->links[(int32_t)quests[j].place - COGPU_DEFLATE_PART];
            links[j] = trusted(&quests[j], link);
        }
    }
    const words4 found = {quests[0].found, quests[1].found, quests[2].found, quests[3].found};
    return found;
}

/* At each byte the longest match with one of the last `depth` places that have its key; of those
 * that are as long the nearest. */
DEVICE_FN void search(struct deflate_shared *shared, const struct part *part, uint32_t depth) {
    const uint32_t words = (part->bytes + 3) / 4;
    if (!part->is_first)
        load_before(shared, part);
    uint64_t next_links = load_u64_aligned(part->links + 4 * least(thread_index(), words - 1));
    for (uint32_t index = thread_index(); index < words; index += THREADS) {
        const uint64_t links = next_links;
        next_links = load_u64_aligned(part->links + 4 * least(index + THREADS, words - 1));
        store_words4(part->found + 4 * index, search_four(shared, part, index, links, depth));
    }
    sync_block();
}

/* ---- the parse ------------------------------------------------------------------------------ */

/*
 * What is chosen at a byte: 0 for a literal; of a match its length less 2, and which of the four
 * distances it is by a bit beside that and a bit of `kinds`. When the way is walked, the distance
 * goes into the two bytes behind the first, which the way does not come to.
 */
enum { KIND_BIT = 0x80, CHOICE_LESS = 2 };

DEVICE_FN uint32_t *kinds_at(struct deflate_shared *shared, uint32_t at) {
    return &shared->v.kinds[at % SEGMENT / WARP * THREADS + at / SEGMENT];
}

/* Not zero where the bytes of a word are not those `distance` before; so where none are. */
DEVICE_FN uint32_t unlike(const uint32_t *words, uint32_t index, uint32_t distance) {
    const uint32_t from = 4 * index + 4 - distance; /* a word further on */
    if (distance == 0 || 4 * index + 3 < distance)
        return ~0u;
    const uint32_t low = from >= 4 ? word_in(words, from / 4 - 1) : 0;
    const uint32_t before = funnel_right(low, word_in(words, from / 4), 8 * (from % 4));
    const uint32_t none = from >= 4 ? 0 : (1u << 8 * (4 - from)) - 1;
    return (word_in(words, index) ^ before) | none;
}

DEVICE_FN void consider(const struct deflate_shared *shared, struct choice *choice,
                        const struct run *run, uint32_t kind) {
    const uint32_t cost = run->cost_behind + shared->length_costs[run->length] + run->distance_cost;
    if (cost < choice->cost) {
        choice->cost = cost;
        choice->length = run->length;
        choice->kind = kind;
    }
}

/* A match that was found at this byte is that of the next byte grown by one, where it is at the
 * same distance; or a new one, that ends within the costs that are kept. */
DEVICE_FN void follow_found(const struct deflate_shared *shared, const uint16_t *costs,
                            struct run *run, uint32_t *distance, uint32_t found, uint32_t at,
                            uint32_t end) {
    const uint32_t here = found & 0xFFFF;
    if (here == 0) {
        run->length = 0;
    } else if (here == *distance) {
        run->length++;
    } else {
        run->length = least(found >> 16, end - at);
        run->cost_behind = costs[(at + run->length) % KEPT_COSTS];
        run->distance_cost = shared->distance_costs[distance_symbol(here).number - FIRST_DISTANCE];
    }
    *distance = here;
}

/* From the end of a segment back through so many words, the cheapest way on from each byte. */
DEVICE_FN void parse(struct deflate_shared *shared, const struct part *part, uint32_t words) {
    const uint32_t begin = segment_begin(), end = segment_end(part);
    struct run runs[KNOWN], found = {0, 0, 0};
    uint32_t cost = 0, kinds = 0, found_distance = 0;
    UNROLL
    for (uint32_t k = 0; k < KNOWN; k++) {
        const uint32_t distance = part->distances[k];
        runs[k].length = runs[k].cost_behind = runs[k].distance_cost = 0;
        if (distance > 0)
            runs[k].distance_cost =
                shared->distance_costs[distance_symbol(distance).number - FIRST_DISTANCE];
    }
    words4 next_found = {0, 0, 0, 0};
    uint16_t costs[KEPT_COSTS]; /* of the last few bytes, in a ring */
    if (part->links && begin < end) {
        costs[end % KEPT_COSTS] = 0;
        next_found = load_words4(part->found + (end - 1) / 4 * 4);
    }
    for (uint32_t back = 0; back < words; back++) {
        const uint32_t index = begin / 4 + SEGMENT_WORDS - 1 - back;
        if (4 * index >= end)
            continue;
        const uint32_t word = word_in(words_in(shared), index);
        /* Bytes behind the end are literals that all ways have in common. */
        const uint32_t behind = end - 4 * index < 4 ? ~0u << 8 * (end - 4 * index) : 0;
        uint32_t unlikes[KNOWN], chosen = 0;
        const uint32_t founds[4] = {next_found.x, next_found.y, next_found.z, next_found.w};
        if (part->links) /* the word before, for it is far; the first is loaded twice */
            next_found = load_words4(part->found + 4 * (index - (4 * index > begin)));
        UNROLL
        for (uint32_t k = 0; k < KNOWN; k++)
            unlikes[k] = unlike(words_in(shared), index, part->distances[k]) | behind;
        UNROLL
        for (uint32_t j = 4; j-- > 0;) {
            const uint32_t at = 4 * index + j;
            struct choice choice = {cost + shared->literal_costs[word >> 8 * j & 0xFF], 0, 0};
            UNROLL
            for (uint32_t k = 0; k < KNOWN; k++) {
                if (runs[k].length == 0)
                    runs[k].cost_behind = cost;
                runs[k].length = (unlikes[k] >> 8 * j & 0xFF) == 0 ? runs[k].length + 1 : 0;
                consider(shared, &choice, &runs[k], k);
            }
            if (part->links) {
                follow_found(shared, costs, &found, &found_distance, founds[j], at, end);
                consider(shared, &choice, &found, FOUND);
                costs[at % KEPT_COSTS] = (uint16_t)choice.cost;
            }
            cost = choice.cost;
            if (choice.length > 0)
                chosen |= (choice.length - CHOICE_LESS + (choice.kind & 1) * KIND_BIT) << 8 * j;
            kinds |= (choice.kind >> 1) << at % WARP;
        }
        choices_in(shared)[padded(index)] = chosen;
        if (4 * index % WARP == 0) {
            *kinds_at(shared, 4 * index) = kinds;
            kinds = 0;
        }
    }
}

DEVICE_FN uint32_t chosen_length(uint32_t choice) {
    return choice % KIND_BIT + CHOICE_LESS;
}

/* What a way has in a word: literals, and a match or none behind them. */
struct leg {
    uint32_t literals, bytes; /* how many; they themselves, the first lowest */
    uint32_t match_at, choice, end;
};

/* From a place on, whose word has these choices and bytes. */
DEVICE_FN struct leg leg_at(uint32_t at, uint32_t choices, uint32_t bytes) {
    const uint32_t left = choices >> 8 * (at % 4);
    struct leg leg;
    leg.literals = left == 0 ? 4 - at % 4 : trailing_zeros(left) / 8;
    leg.bytes = bytes >> 8 * (at % 4);
    leg.match_at = at + leg.literals;
    leg.choice = left >> 8 * (leg.literals % 4) & 0xFF;
    leg.end = leg.match_at + (left == 0 ? 0 : chosen_length(leg.choice));
    return leg;
}

DEVICE_FN uint32_t known_distance(const struct part *part, uint32_t kind) {
    return kind == BYTE_BEFORE   ? part->distances[BYTE_BEFORE]
           : kind == NEAR_BEFORE ? part->distances[NEAR_BEFORE]
                                 : part->distances[ROW_BEFORE];
}

/* Counts the symbols on the way through the last words of a segment, and notes distances. */
DEVICE_FN void walk(struct deflate_shared *shared, const struct part *part, uint32_t words) {
    const uint32_t end = segment_end(part);
    for (uint32_t at = segment_begin() + SEGMENT - 4 * words; at < end;) {
        const struct leg leg =
            leg_at(at, word_in(choices_in(shared), at / 4), word_in(words_in(shared), at / 4));
        UNROLL
        for (uint32_t j = 0; j < 4; j++)
            if (j < leg.literals && at + j < end)
                atomic_add(&shared->codes[leg.bytes >> 8 * j & 0xFF], 1);
        at = leg.end;
        if (leg.choice == 0)
            continue;
        const uint32_t kind_bit = *kinds_at(shared, leg.match_at) >> leg.match_at % WARP & 1;
        const uint32_t kind = leg.choice / KIND_BIT + 2 * kind_bit;
        const uint32_t distance =
            kind == FOUND ? part->found[leg.match_at] & 0xFFFF : known_distance(part, kind);
        *byte_in(choices_in(shared), leg.match_at + 1) = (uint8_t)distance;
        *byte_in(choices_in(shared), leg.match_at + 2) = (uint8_t)(distance >> 8);
        atomic_add(&shared->codes[length_symbol(chosen_length(leg.choice)).number], 1);
        atomic_add(&shared->codes[distance_symbol(distance).number], 1);
    }
}

/* ---- codes ---------------------------------------------------------------------------------- */

/* One of the three codes, made by this thread of so many. */
DEVICE_FN struct code_making making_of(struct deflate_shared *shared, uint32_t code, uint32_t index,
                                       uint32_t threads) {
    struct tree *tree = &shared->v.tree;
    const uint32_t first = code == LITLEN_CODE     ? 0
                           : code == DISTANCE_CODE ? FIRST_DISTANCE
                                                   : FIRST_PRECODE;
    const struct code_making making = {
        shared->codes + first,
        shared->lengths + first,
        shared->at_length[code],
        &shared->used[code],
        tree->keys + first,
        tree->weights + first,
        tree->symbols + first,
        tree->leaf_up + first,
        tree->inner_up + first,
        code == LITLEN_CODE     ? 286u
        : code == DISTANCE_CODE ? 30u
                                : 19u,
        (uint32_t)(code == PRECODE ? PRECODE_BITS_MAX : CODE_BITS_MAX),
        index,
        threads};
    return making;
}

/* The first code of a length, and one more for each symbol before that has the same length. By a
 * warp. */
DEVICE_FN void make_codes(const struct code_making *m) {
    uint32_t *next = m->at_length, first = 0;
    for (uint32_t k = 1; k < lane_index() && k < CODE_BITS_MAX; k++)
        first = (first + next[k]) << 1;
    sync_warp();
    if (lane_index() <= CODE_BITS_MAX)
        next[lane_index()] = first;
    sync_warp();
    for (uint32_t base = 0; base < m->size; base += WARP) {
        const uint32_t i = base + lane_index();
        const uint32_t length = i < m->size ? m->lengths[i] : 0;
        const uint32_t same = warp_match(length), below = same & ((1u << lane_index()) - 1);
        const uint32_t code = next[length] + count_ones(below);
        sync_warp();
        if (below == 0)
            next[length] += count_ones(same);
        if (i < m->size)
            m->counts[i] = length > 0 ? reverse_bits32(code) >> (32 - length) | length << 16 : 0;
        sync_warp();
    }
}

/* Each section ends; and there are two distances, for some decoders want a whole code. */
DEVICE_FN void count_always(uint32_t *counts) {
    uint32_t used = 0;
    counts[END] = 1;
    for (uint32_t i = 0; i < 30; i++)
        used += counts[FIRST_DISTANCE + i] > 0;
    for (uint32_t i = 0; used < 2; i++)
        if (counts[FIRST_DISTANCE + i] == 0) {
            counts[FIRST_DISTANCE + i] = 1;
            used++;
        }
}

/* Makes the codes of literals, lengths and distances from their counts. Distances are ranked by the
 * second warp, for the first has more than 256 litlens to do. */
DEVICE_FN void make_section_codes(struct deflate_shared *shared) {
    const struct code_making litlens = making_of(shared, LITLEN_CODE, thread_index(), THREADS);
    const struct code_making distances =
        making_of(shared, DISTANCE_CODE, (thread_index() - WARP) % THREADS, THREADS);
    if (thread_index() == 0)
        count_always(shared->codes);
    if (thread_index() < CODES)
        shared->used[thread_index()] = 0;
    for (uint32_t code = 0; thread_index() <= CODE_BITS_MAX && code < CODES; code++)
        shared->at_length[code][thread_index()] = 0;
    for (uint32_t i = thread_index(); i < SYMBOLS; i += THREADS)
        shared->lengths[i] = 0;
    sync_block();
    code_keys(&litlens);
    code_keys(&distances);
    sync_block();
    code_ranks(&litlens);
    code_ranks(&distances);
    sync_block();
    if (warp_index() <= DISTANCE_CODE) {
        const struct code_making made = making_of(shared, warp_index(), lane_index(), WARP);
        code_lengths(&made);
        make_codes(&made);
    }
    sync_block();
}

/* ---- the header of a section ---------------------------------------------------------------- */

DEVICE_TABLE uint8_t precode_order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                          11, 4,  12, 3, 13, 2, 14, 1, 15};

enum { AS_BEFORE = 16, FEW_ZEROS = 17, MANY_ZEROS = 18 };

/* Up to 32 bits into words that are zero there. */
DEVICE_FN void put_header(uint32_t *header, uint32_t at, uint32_t bits) {
    const uint64_t shifted = (uint64_t)bits << at % 32;
    atomic_or(&header[at / 32], (uint32_t)shifted);
    if (shifted >> 32)
        atomic_or(&header[at / 32 + 1], (uint32_t)(shifted >> 32));
}

/* One more than the last symbol of a code. By a warp. */
DEVICE_FN uint32_t symbols_told(const struct deflate_shared *shared, uint32_t first,
                                uint32_t size) {
    uint32_t told = 0;
    for (uint32_t i = lane_index(); i < size; i += WARP)
        told = shared->lengths[first + i] > 0 ? i + 1 : told;
    return warp_max(told);
}

/* The code lengths in the order in which the header tells them. */
struct told {
    const uint8_t *lengths;
    uint32_t litlens, all;
};

DEVICE_FN uint32_t told_length(const struct told *told, uint32_t i) {
    return told->lengths[i < told->litlens ? i : FIRST_DISTANCE + i - told->litlens];
}

/* The next symbol for `left` times this length, and its extra number << 8; *taken is what it stands
 * for. */
DEVICE_FN uint32_t item_of(uint32_t length, uint32_t left, bool is_first, uint32_t *taken) {
    uint32_t item = length;
    *taken = 1;
    if (length == 0 && left >= 11) {
        *taken = least(left, 138);
        item = MANY_ZEROS | (*taken - 11) << 8;
    } else if (length == 0 && left >= 3) {
        *taken = left;
        item = FEW_ZEROS | (*taken - 3) << 8;
    } else if (length > 0 && !is_first && left >= 3) {
        *taken = least(left, 6);
        item = AS_BEFORE | (*taken - 3) << 8;
    }
    return item;
}

/* Lists where runs of equal lengths begin. By a warp. Returns how many there are. */
DEVICE_FN uint32_t list_runs(const struct told *told, uint16_t *runs) {
    uint32_t listed = 0;
    for (uint32_t base = 0; base < told->all; base += WARP) {
        const uint32_t i = base + lane_index();
        const bool begins =
            i < told->all && (i == 0 || told_length(told, i) != told_length(told, i - 1));
        const uint32_t all = warp_ballot(begins), below = all & ((1u << lane_index()) - 1);
        if (begins)
            runs[listed + count_ones(below)] = (uint16_t)i;
        listed += count_ones(all);
    }
    sync_warp();
    return listed;
}

/* Lists what tells the lengths, and counts it for the precode. By a warp: a lane takes a run.
 * Returns how many there are. */
DEVICE_FN uint32_t list_items(struct deflate_shared *shared, const struct told *told,
                              uint16_t *items) {
    uint16_t *runs = shared->v.tree.inner_up;
    const uint32_t all_runs = list_runs(told, runs);
    uint32_t listed = 0, taken;
    for (uint32_t base = 0; base < all_runs; base += WARP) {
        const uint32_t i = base + lane_index();
        uint32_t length = 0, run = 0, count = 0;
        if (i < all_runs) {
            length = told_length(told, runs[i]);
            run = (i + 1 < all_runs ? runs[i + 1] : told->all) - runs[i];
        }
        for (uint32_t left = run; left > 0; left -= taken, count++)
            item_of(length, left, left == run, &taken);
        const uint32_t until = warp_scan(count);
        uint32_t place = listed + until - count;
        for (uint32_t left = run; left > 0; left -= taken) {
            const uint32_t item = item_of(length, left, left == run, &taken);
            items[place++] = (uint16_t)item;
            atomic_add(&shared->codes[FIRST_PRECODE + (item & 0xFF)], 1);
        }
        listed += warp_read(until, WARP - 1);
    }
    sync_warp();
    return listed;
}

DEVICE_FN void make_precode(struct deflate_shared *shared) {
    const struct code_making precode = making_of(shared, PRECODE, lane_index(), WARP);
    code_keys(&precode);
    sync_warp();
    code_ranks(&precode);
    sync_warp();
    code_lengths(&precode);
    make_codes(&precode);
    sync_warp();
}

/* By a warp. Room of the tree that litlens have left holds the items and runs. */
DEVICE_FN void make_header(struct deflate_shared *shared, bool is_last) {
    const uint32_t litlens = symbols_told(shared, 0, 286);
    const uint32_t distances = symbols_told(shared, FIRST_DISTANCE, 30);
    const struct told told = {shared->lengths, litlens, litlens + distances};
    uint16_t *items = shared->v.tree.leaf_up;
    const uint32_t count = list_items(shared, &told, items);
    make_precode(shared);
    const uint32_t ordered =
        lane_index() < 19 ? shared->lengths[FIRST_PRECODE + precode_order[lane_index()]] : 0;
    const uint32_t sent =
        32 -
        leading_zeros(warp_ballot(ordered > 0)); /* 10 at least: a distance has 5 bits or less */
    if (lane_index() == 0)
        put_header(shared->header, 0,
                   is_last | 2 << 1 | (litlens - 257) << 3 | (distances - 1) << 8 |
                       (sent - 4) << 13);
    if (lane_index() < sent)
        put_header(shared->header, 17 + 3 * lane_index(), ordered);
    uint32_t at = 17 + 3 * sent;
    for (uint32_t base = 0; base < count; base += WARP) {
        const uint32_t i = base + lane_index();
        uint32_t bits = 0, value = 0;
        if (i < count) {
            const uint32_t symbol = items[i] & 0xFF, code = shared->codes[FIRST_PRECODE + symbol];
            bits = code >> 16;
            value = (code & 0xFFFF) | (uint32_t)(items[i] >> 8) << bits;
            bits += symbol < AS_BEFORE ? 0 : symbol == AS_BEFORE ? 2 : symbol == FEW_ZEROS ? 3 : 7;
        }
        const uint32_t until = warp_scan(bits);
        if (bits > 0)
            put_header(shared->header, at + until - bits, value);
        at += warp_read(until, WARP - 1);
    }
    if (lane_index() == 0)
        shared->header_bits = at;
}

/* ---- the bits of a section ------------------------------------------------------------------ */

/* A symbol with what follows it. */
struct coded {
    uint32_t bits, count;
};

DEVICE_FN struct coded coded_symbol(const uint32_t *codes, struct symbol symbol) {
    const uint32_t code = codes[symbol.number], length = code >> 16;
    const struct coded coded = {(code & 0xFFFF) | symbol.extra << length,
                                length + symbol.extra_bits};
    return coded;
}

/* Two of the literals of a leg. */
DEVICE_FN struct coded coded_literals(const uint32_t *codes, const struct leg *leg, uint32_t first,
                                      uint32_t literals) {
    const uint32_t one = first < literals ? codes[leg->bytes >> 8 * first & 0xFF] : 0;
    const uint32_t two = first + 1 < literals ? codes[leg->bytes >> 8 * (first + 1) & 0xFF] : 0;
    const struct coded coded = {(one & 0xFFFF) | (two & 0xFFFF) << (one >> 16),
                                (one >> 16) + (two >> 16)};
    return coded;
}

/*
 * The bits of a segment, which are written where its choices and bytes are: word by word to the one
 * row and the other. No symbol has more than 16 bits for each of the bytes it stands for, so that
 * only what has been read is written over, but for the rest of the word that is being read.
 */
struct bit_writer {
    uint32_t *rows; /* the segment's choices; its bytes are PADDED_WORDS behind them */
    uint64_t bits;
    uint32_t count, words;
};

DEVICE_FN uint32_t *own_row(const struct deflate_shared *shared) {
    return choices_in(shared) + thread_index() * (SEGMENT_WORDS + 1);
}

DEVICE_FN uint32_t *own_word(uint32_t *rows, uint32_t index) {
    return rows + index / 2 + index % 2 * PADDED_WORDS;
}

DEVICE_FN void put(struct bit_writer *w, struct coded coded) {
    w->bits |= (uint64_t)coded.bits << w->count;
    w->count += coded.count;
    if (w->count < 32)
        return;
    *own_word(w->rows, w->words++) = (uint32_t)w->bits;
    w->bits >>= 32;
    w->count -= 32;
}

/* Writes the bits of a segment and returns how many they are. The last thread has the end of the
 * section. */
DEVICE_FN uint32_t code_segment(struct deflate_shared *shared, const struct part *part) {
    const uint32_t begin = segment_begin(), end = segment_end(part), *codes = shared->codes;
    uint32_t *rows = own_row(shared), choices = rows[0], bytes = rows[PADDED_WORDS];
    struct bit_writer w = {rows, 0, 0, 0};
    for (uint32_t at = begin; at < end;) {
        const struct leg leg = leg_at(at, choices, bytes);
        const uint32_t word = (at - begin) / 4, literals = least(leg.literals, end - at);
        /* The distance is behind the choice, maybe in the next word. */
        const uint32_t distance =
            funnel_right(choices, rows[word + 1], 8 * (leg.match_at % 4)) >> 8 & 0xFFFF;
        at = leg.end;
        choices = rows[(at - begin) / 4];
        bytes = rows[(at - begin) / 4 + PADDED_WORDS];
        put(&w, coded_literals(codes, &leg, 0, literals));
        put(&w, coded_literals(codes, &leg, 2, literals));
        if (leg.choice == 0)
            continue;
        put(&w, coded_symbol(codes, length_symbol(chosen_length(leg.choice))));
        put(&w, coded_symbol(codes, distance_symbol(distance)));
    }
    if (thread_index() == THREADS - 1) {
        const struct symbol last = {END, 0, 0};
        put(&w, coded_symbol(codes, last));
    }
    *own_word(rows, w.words) = (uint32_t)w.bits;
    return 32 * w.words + w.count;
}

/* Moves them to their place. The first and the last word may have bits of others. */
DEVICE_FN void move_segment(const struct deflate_shared *shared, uint32_t start, uint32_t bits,
                            uint32_t *out) {
    uint32_t *rows = own_row(shared), before = 0;
    for (uint32_t i = 0; 32 * i < start % 32 + bits; i++) {
        const uint32_t own = 32 * i <= bits ? *own_word(rows, i) : 0;
        const uint32_t word = funnel_left(before, own, start % 32);
        uint32_t *to = &out[start / 32 + i];
        if (i == 0 || 32 * (i + 1) > start % 32 + bits)
            atomic_or(to, word);
        else
            *to = word;
        before = own;
    }
}

/* Writes the section to `out`, unless it is no gain. Returns its bits, or 0. */
DEVICE_FN uint32_t write_section(struct deflate_shared *shared, const struct part *part,
                                 uint32_t *out) {
    if (warp_index() == 0)
        make_header(shared, part->is_last);
    const uint32_t bits = code_segment(shared, part), until = warp_scan(bits);
    if (lane_index() == WARP - 1)
        shared->warp_sums[warp_index()] = until;
    sync_block();
    uint32_t start = shared->header_bits + until - bits, total = shared->header_bits;
    for (uint32_t i = 0; i < WARPS; i++) {
        start += i < warp_index() ? shared->warp_sums[i] : 0;
        total += shared->warp_sums[i];
    }
    if (total >= 8 * part->bytes + 32)
        return 0;
    for (uint32_t i = thread_index(); i <= shared->header_bits / 32; i += THREADS)
        out[i] = shared->header[i];
    if ((start + bits) / 32 > start / 32) /* the first to come into a word clears it */
        out[(start + bits) / 32] = 0;
    sync_block();
    move_segment(shared, start, bits, out);
    return total;
}

/* ---- a part --------------------------------------------------------------------------------- */

DEVICE_FN void clear_counts(struct deflate_shared *shared) {
    for (uint32_t i = thread_index(); i < SYMBOLS; i += THREADS)
        shared->codes[i] = 0;
    for (uint32_t i = thread_index(); i < HEADER_WORDS; i += THREADS)
        shared->header[i] = 0;
}

DEVICE_FN uint32_t parts_of(uint32_t bytes) {
    return (bytes + COGPU_DEFLATE_PART - 1) / COGPU_DEFLATE_PART;
}

DEVICE_FN struct part part_of(const struct cogpu_deflate_args *args, const cogpu_uncoded *block,
                              uint32_t number) {
    struct part part;
    const uint32_t begin = number * COGPU_DEFLATE_PART;
    part.in = args->decoded + block->in + begin;
    part.bytes = least(block->in_bytes - begin, COGPU_DEFLATE_PART);
    part.is_first = number == 0;
    part.is_last = number + 1 == parts_of(block->in_bytes);
    part.distances[BYTE_BEFORE] = 1;
    part.distances[NEAR_BEFORE] = block->step == 1 ? block->row_bytes - 1 : block->step;
    part.distances[ROW_BEFORE] = block->row_bytes == block->step ? 0 : block->row_bytes;
    for (uint32_t k = 1; k < KNOWN; k++)
        if (part.distances[k] == 1 || part.distances[k] >= part.bytes)
            part.distances[k] = 0;
    return part;
}

/* Parses the last words of all segments, and counts what is on the ways. */
DEVICE_FN void parse_all(struct deflate_shared *shared, const struct part *part, uint32_t words) {
    parse(shared, part, words);
    clear_counts(shared);
    sync_block();
    walk(shared, part, words);
    sync_block();
}

/* Encodes part after part: this thread block one of as many as there are. */
DEVICE_FN void encode_parts(const struct cogpu_deflate_args *args, struct deflate_shared *shared,
                            bool searches) {
    const uint32_t all = args->count * args->parts_most;
    for (uint32_t i = block_index(); i < all; i += block_count()) {
        const uint32_t index = i / args->parts_most, number = i % args->parts_most;
        const cogpu_uncoded *block = &args->blocks[index];
        if (args->sizes[index] == COGPU_GPU_SPARSE || number >= parts_of(block->in_bytes))
            continue;
        struct part part = part_of(args, block, number);
        part.links = NULL;
        load_part(shared, &part);
        if (searches) {
            part.links = args->links + (uint64_t)i * COGPU_DEFLATE_PART;
            part.found = args->found + (uint64_t)block_index() * COGPU_DEFLATE_PART;
            search(shared, &part, args->depth);
        }
        guess_costs(shared, &part);
        for (uint32_t turn = 1; turn < args->turns; turn++) {
            parse_all(shared, &part, LEARNED_WORDS);
            learn_costs(shared);
        }
        parse_all(shared, &part, SEGMENT_WORDS);
        make_section_codes(shared);
        uint32_t *out = (uint32_t *)(args->staged + (uint64_t)i * COGPU_DEFLATE_STAGED);
        const uint32_t bits = write_section(shared, &part, out);
        if (thread_index() == 0) {
            args->parts[i].coded_bits = bits;
            args->parts[i].sum = sum_of(shared, part.bytes);
        }
        sync_block();
    }
}

KERNEL(cogpu_kernel_deflate, struct cogpu_deflate_args, struct deflate_shared, THREADS, 3) {
    encode_parts(args, shared, false);
}

KERNEL(cogpu_kernel_deflate_search, struct cogpu_deflate_args, struct deflate_shared, THREADS, 3) {
    encode_parts(args, shared, true);
}

/* ---- parts to streams ----------------------------------------------------------------------- */

enum { ZLIB_HEADER = 0x9C78, ZLIB_HEADER_BITS = 16, SECTION_BITS = 3 };

DEVICE_FN uint32_t to_byte(uint32_t bits) {
    return (bits + 7) / 8 * 8;
}

/* A warp for each block: its parts one after the other. */
KERNEL(cogpu_kernel_deflate_place, struct cogpu_deflate_args, struct nothing_shared, WARP, 16) {
    const uint32_t in_bytes = args->blocks[block_index()].in_bytes, count = parts_of(in_bytes);
    struct cogpu_deflate_part *parts = args->parts + (uint64_t)block_index() * args->parts_most;
    uint32_t at = ZLIB_HEADER_BITS, low = 1, high = 0;
    if (args->sizes[block_index()] == COGPU_GPU_SPARSE)
        return;
    sync_warp(); /* all have read what one will write */
    for (uint32_t base = 0; base < count; base += WARP) {
        struct cogpu_deflate_part own = {0, 0, 0, 0};
        if (base + lane_index() < count)
            own = parts[base + lane_index()];
        for (uint32_t lane = 0; lane < WARP && base + lane < count; lane++) {
            const uint32_t bits = warp_read(own.coded_bits, lane), sum = warp_read(own.sum, lane);
            const uint32_t bytes =
                least(in_bytes - (base + lane) * COGPU_DEFLATE_PART, COGPU_DEFLATE_PART);
            const uint32_t start = at;
            at = bits > 0 ? at + bits : to_byte(at + SECTION_BITS) + 32 + 8 * bytes;
            high = (low * bytes % ADLER + high + (sum >> 16)) % ADLER;
            low = (low + (sum & 0xFFFF)) % ADLER;
            if (lane_index() == lane) {
                struct cogpu_deflate_part *part = &parts[base + lane];
                part->start = start;
                part->end = at;
                part->sum = high << 16 | low;
            }
        }
    }
    if (lane_index() == 0)
        args->sizes[block_index()] = to_byte(at) / 8 + 4;
}

/* A part as a section of the stream, to be read from any of its bits on. */
struct section {
    const uint8_t *from; /* staged, or as they came */
    uint32_t bits;       /* of these */
    uint32_t head_bits;  /* before them: of a part that is stored */
    uint64_t head;
    uint32_t start, end; /* in the stream */
};

DEVICE_FN struct section section_of(const struct cogpu_deflate_args *args, uint32_t index,
                                    uint32_t number) {
    const cogpu_uncoded *block = &args->blocks[index];
    const uint64_t i = (uint64_t)index * args->parts_most + number;
    const struct cogpu_deflate_part placed = args->parts[i];
    const struct part part = part_of(args, block, number);
    struct section section = {
        args->staged + i * COGPU_DEFLATE_STAGED, placed.coded_bits, 0, 0, placed.start, placed.end};
    if (placed.coded_bits == 0) {
        const uint32_t fill = to_byte(placed.start + SECTION_BITS) - placed.start;
        const uint32_t sizes = part.bytes | ~part.bytes << 16;
        section.from = part.in;
        section.bits = 8 * part.bytes;
        section.head = (uint64_t)sizes << fill | part.is_last;
        section.head_bits = fill + 32;
    }
    return section;
}

/* 32 bits, zero behind the last. Up to 8 bytes behind it are read. */
DEVICE_FN uint32_t bits_from(const struct section *section, uint32_t at) {
    if (at >= section->bits)
        return 0;
    const uint8_t *word = section->from + at / 32 * 4;
    const uint32_t left = section->bits - at;
    const uint32_t bits = funnel_right(load_u32_aligned(word), load_u32_aligned(word + 4), at % 32);
    return left >= 32 ? bits : bits & ((1u << left) - 1);
}

DEVICE_FN uint32_t section_bits(const struct section *section, uint32_t at) {
    if (at >= section->head_bits)
        return bits_from(section, at - section->head_bits);
    const uint32_t left = section->head_bits - at;
    const uint32_t bits = (uint32_t)(section->head >> at);
    return left >= 32 ? bits : bits | bits_from(section, 0) << left;
}

/* A block of threads for each part: the words of the stream that begin in it. A section has more
 * than 32 bits, so that a word has bits of two at most. */
KERNEL(cogpu_kernel_deflate_join, struct cogpu_deflate_args, struct nothing_shared, THREADS, 8) {
    const uint32_t index = block_index() / args->parts_most;
    const uint32_t number = block_index() % args->parts_most;
    const cogpu_uncoded *block = &args->blocks[index];
    const uint32_t count = parts_of(block->in_bytes);
    if (args->sizes[index] == COGPU_GPU_SPARSE || number >= count)
        return;
    const bool is_last = number + 1 == count;
    const struct section own = section_of(args, index, number);
    struct section next = own;
    uint32_t next_start = own.end, end = own.end, sum = 0;
    if (is_last) {
        const uint32_t adler = args->parts[(uint64_t)index * args->parts_most + number].sum;
        sum = pick_bytes(adler, 0, 0x0123);
        next_start = to_byte(own.end);
        end = next_start + 32;
    } else {
        next = section_of(args, index, number + 1);
    }
    number32 *out = (number32 *)(args->slots + block->out);
    const uint32_t first = number == 0 ? 0 : (own.start + 31) / 32, until = (end + 31) / 32;
    for (uint32_t i = first + thread_index(); i < until; i += THREADS) {
        const uint32_t at = 32 * i;
        uint32_t word = at >= own.start ? section_bits(&own, at - own.start)
                                        : ZLIB_HEADER | section_bits(&own, 0) << ZLIB_HEADER_BITS;
        if (next_start < at)
            word |= sum >> (at - next_start);
        else if (next_start < at + 32)
            word |= (is_last ? sum : section_bits(&next, 0)) << (next_start - at);
        out[i] = word;
    }
}
