/*
 * Takes blocks in TIFF's LZW, hands on their bytes.
 *
 * A code of 258 or more means "what the code number (code - 258) of this segment stands for, and
 * the byte that follows it in the output". A segment is what lies between two Clear codes; the
 * width of each of its codes, and so the place, follows from its number alone. So all codes of a
 * segment are read at once, no table is built, and segments need nothing of each other but how many
 * bytes came before.
 *
 * Scan, a block of threads for each block: where segments begin. Encoders clear after REGULAR_CODES
 * codes unless something moves them to clear earlier. Clears at these places are tested all at
 * once; else the codes of a segment are looked through until one is found.
 *
 * Decode, a block of threads for each segment, taken in order:
 * 1. Each code is a link {its parent, 1}; a literal ends the chain. Following links of links gives
 *    all lengths and first bytes after a few steps.
 * 2. Sums of the lengths: where the string of each code starts. Sums of the segments before, each
 *    of which says how long it is as soon as it knows.
 * 3. A record for each code: its parent, and the last byte of its string, which is the first byte
 *    of the code after the parent.
 * 4. The strings, into a window of shared memory: a thread for each code goes from parent to parent
 *    and writes a last byte at each, from the end to the start. None waits for another.
 * 5. In segments of more than 64 KiB strings are so long that few would have all to do. So there a
 *    thread for each byte, in rows. A bitmap of the ends of strings tells which code a byte belongs
 *    to: it is the last of its string and known, or a copy of an earlier byte. Where that is in the
 *    same row and a copy itself, the thread goes on to what that copies.
 * 6. Codes after a full table refer to the strings of the first CODES codes, and nothing refers to
 *    them.
 *
 * The host's codec stops where the block has no more room: what comes after is not looked at. So a
 * code that is wrong counts only if its string would start before that.
 */
#include "backend/cuda/cuda_lzw.h"
#include "backend/cuda/simt.h"

#define NONE 0xFFFFFFFFu

/* Before a loop whose unrolling would cost registers that the others need. */
#ifdef __CUDACC__
#define ROLLED _Pragma("unroll 1")
#else
#define ROLLED
#endif

enum { CLEAR = 256, END = 257, FIRST = 258, REGULAR_CODES = 3836 };

/* All that a table has room for, and the one that adds the last. */
enum { CODES = 3840 };

/* ---- codes ---- */

/* From these numbers on, codes are a bit wider. */
enum { TEN_BITS = 254, ELEVEN_BITS = 766, TWELVE_BITS = 1790 };

DEVICE_FN uint32_t past(uint32_t number, uint32_t limit) {
    return number > limit ? number - limit : 0;
}

DEVICE_FN uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

DEVICE_FN uint32_t width_of(uint32_t number) {
    return 9u + (number >= TEN_BITS) + (number >= ELEVEN_BITS) + (number >= TWELVE_BITS);
}

/* Bits of a segment before the code of that number. */
DEVICE_FN uint32_t bits_before(uint32_t number) {
    return 9 * number + past(number, TEN_BITS) + past(number, ELEVEN_BITS) +
           past(number, TWELVE_BITS);
}

/* Stored bytes of a block: aligned memory, and where the block begins and ends in it in bits. */
struct bits {
    const uint32_t *memory;
    uint32_t begin, end;
};

DEVICE_FN struct bits bits_of(const struct cogpu_lzw_args *args, const cogpu_coded *block) {
    const uint8_t *in = args->stored + block->in;
    uint32_t skip = (uint32_t)((uintptr_t)in % 4);
    const void *aligned = in - skip;
    struct bits bits = {(const uint32_t *)aligned, 8 * skip, 8 * skip + 8 * block->in_bytes};
    return bits;
}

DEVICE_FN uint32_t swap_bytes(uint32_t word) {
    return pick_bytes(word, 0, 0x0123);
}

/* The `width` bits at `bit` of aligned memory; up to 7 bytes after them are read as well. */
DEVICE_FN uint32_t code_at(const uint32_t *memory, uint32_t bit, uint32_t width) {
    uint32_t high = swap_bytes(load_u32_aligned(memory + bit / 32));
    uint32_t low = swap_bytes(load_u32_aligned(memory + bit / 32 + 1));
    return funnel_left(low, high, bit) >> (32 - width);
}

/* ---- scan ---- */

enum { SCAN_THREADS = 512, SCAN_WARPS = SCAN_THREADS / WARP, LOOKS = 8 };

struct scan_shared {
    uint32_t least[SCAN_WARPS];
    uint32_t place;
};

/* What is known of a block while it is looked through. All threads hold the same. */
struct search {
    struct bits bits;
    struct cogpu_lzw_draft *drafts;
    uint32_t room;  /* for drafts */
    uint32_t found; /* drafts made */
    uint32_t empty; /* Clears with nothing before them */
    uint32_t bit;   /* where the segment begins that is looked at */
};

DEVICE_FN uint32_t least_of_block(struct scan_shared *shared, uint32_t value) {
    value = warp_min(value);
    if (lane_index() == 0)
        shared->least[warp_index()] = value;
    sync_block();
    value = warp_min(shared->least[lane_index() % SCAN_WARPS]);
    sync_block();
    return value;
}

/* `count` places of a list that all thread blocks share; the first of them. */
DEVICE_FN uint32_t take_places(struct scan_shared *shared, uint32_t *taken, uint32_t count) {
    if (thread_index() == 0)
        shared->place = atomic_add(taken, count);
    sync_block();
    uint32_t place = shared->place;
    sync_block();
    return place;
}

/* How many segments in a row have a Clear after `codes` codes. What they have before it is not
 * looked at: a Clear there leaves those at the regular places to chance. */
DEVICE_FN uint32_t count_regular(struct scan_shared *shared, const struct search *search,
                                 uint32_t codes) {
    const uint32_t clear_bit = bits_before(codes), clear_width = 12;
    uint32_t possible = (search->bits.end - search->bit) / (clear_bit + clear_width);
    uint32_t first_other = possible;
    for (uint32_t i = thread_index(); i < first_other; i += SCAN_THREADS) {
        uint32_t bit = search->bit + i * (clear_bit + clear_width) + clear_bit;
        if (code_at(search->bits.memory, bit, clear_width) != CLEAR)
            first_other = i;
    }
    return least_of_block(shared, first_other);
}

/* Takes regular segments as they are, but for the last: an early Clear shifts what follows, so that
 * two regular Clears after it are no chance. */
DEVICE_FN void take_regular(struct scan_shared *shared, struct search *search, uint32_t codes) {
    const uint32_t segment_bits = bits_before(codes) + 12;
    uint32_t count = count_regular(shared, search, codes);
    count = count > 0 ? count - 1 : 0;
    if (count > search->room - search->found - search->empty)
        count = 0;
    for (uint32_t i = thread_index(); i < count; i += SCAN_THREADS) {
        search->drafts[search->found + i].bit = search->bit + i * segment_bits;
        search->drafts[search->found + i].codes = codes;
    }
    search->found += count;
    search->bit += count * segment_bits;
}

/* The codes that the segment at `search->bit` has before a Clear, the end code or the end of the
 * input. */
DEVICE_FN uint32_t count_codes(struct scan_shared *shared, const struct search *search) {
    for (uint32_t from = 0;; from += SCAN_THREADS * LOOKS) {
        uint32_t first = NONE;
        for (uint32_t look = LOOKS; look-- > 0;) {
            uint32_t number = from + look * SCAN_THREADS + thread_index();
            uint32_t width = width_of(number), bit = search->bit + bits_before(number);
            uint32_t code = END;
            if (bit + width <= search->bits.end)
                code = code_at(search->bits.memory, bit, width);
            if (code == CLEAR || code == END)
                first = number;
        }
        first = least_of_block(shared, first);
        if (first != NONE)
            return first;
    }
}

/* Looks through one segment. True where another begins after it. */
DEVICE_FN bool take_segment(struct scan_shared *shared, struct search *search, uint32_t *codes) {
    *codes = count_codes(shared, search);
    if (*codes > 0) {
        if (thread_index() == 0) {
            search->drafts[search->found].bit = search->bit;
            search->drafts[search->found].codes = *codes;
        }
        search->found++;
    } else {
        search->empty++;
    }
    uint32_t bit = search->bit + bits_before(*codes), width = width_of(*codes);
    search->bit = bit + width;
    return bit + width <= search->bits.end && code_at(search->bits.memory, bit, width) == CLEAR;
}

/* Finds all segments; false where they are more than there is room for. Encoders clear when their
 * table is full, some a code sooner than others: the next segments are likely to be as long as this
 * one, if it is long. Of codes after a full table nobody but the scan looks for Clears. */
DEVICE_FN bool find_segments(struct scan_shared *shared, struct search *search) {
    uint32_t codes = 1;
    bool more = true;
    if (search->bits.end - search->bit >= 9 &&
        code_at(search->bits.memory, search->bit, 9) == CLEAR) {
        search->bit += 9;
        search->empty++;
        codes = 0;
    }
    while (more && search->found + search->empty < search->room) {
        if (codes == 0 || (codes >= TWELVE_BITS && codes <= CODES))
            take_regular(shared, search, codes == 0 ? REGULAR_CODES : codes);
        if (search->found + search->empty < search->room)
            more = take_segment(shared, search, &codes);
    }
    return !more;
}

/* Hands over what was found. */
DEVICE_FN void list_segments(const struct cogpu_lzw_args *args, struct scan_shared *shared,
                             const struct search *search) {
    uint32_t place = take_places(shared, &args->progress->segments, search->found);
    for (uint32_t i = thread_index(); i < search->found; i += SCAN_THREADS) {
        struct cogpu_lzw_segment *segment = &args->segments[place + i];
        segment->block = block_index();
        segment->bit = search->drafts[i].bit;
        segment->codes = search->drafts[i].codes;
        segment->index = 2 * i + (i + 1 == search->found);
        args->totals[place + i] = 0;
    }
}

/* A Clear of the files before TIFF 5, which have another bit order. */
DEVICE_FN bool is_old_style(const struct cogpu_lzw_args *args, const cogpu_coded *block) {
    const uint8_t *in = args->stored + block->in;
    return block->in_bytes >= 2 && in[0] == 0 && (in[1] & 1);
}

KERNEL(cogpu_kernel_lzw_scan, struct cogpu_lzw_args, struct scan_shared, SCAN_THREADS, 4) {
    const cogpu_coded *block = &args->blocks[block_index()];
    uint32_t verdict = COGPU_GPU_UNUSUAL;
    if (!is_old_style(args, block)) {
        struct search search = {bits_of(args, block), NULL, 0, 0, 0, 0};
        search.bit = search.bits.begin;
        search.room = COGPU_LZW_SEGMENTS(block->room);
        search.drafts = args->drafts + take_places(shared, &args->progress->drafts, search.room);
        if (find_segments(shared, &search)) {
            list_segments(args, shared, &search);
            verdict =
                search.found == 0 && block->needed > 0 ? COGPU_GPU_TOO_SHORT : COGPU_GPU_DECODED;
        }
    }
    if (thread_index() == 0)
        args->verdicts[block_index()] = verdict;
}

/* ---- decode ---- */

enum {
    THREADS = 384,
    WARPS = THREADS / WARP,
    ROWS = CODES / THREADS,
    WINDOW = 40 * THREADS, /* decoded bytes at a time */
    WINDOW_WORDS = WINDOW / 32
};

/* A link: how much longer a string is than that of another code, and the place of the link of that,
 * in bytes; or its first byte, where there is no other. */
enum { LENGTH_MASK = 0xFFFF, PLACE_SHIFT = 16, CODE_SHIFT = PLACE_SHIFT + 2 };
#define LITERAL 0x80000000u

/* A record: the last byte of a string, and the place of the parent's record, or, in long segments,
 * how far back the parent's string starts. Long are those that 16 bits do not suffice for. */
enum { DISTANCE_SHIFT = 8, SHORT_MAX = 0xFFFF };

/* The total of a segment: nothing yet, its own bytes, or also those of all before it in the block.
 * No more than TOTAL_MAX are counted, and no block has more room. */
enum { TOTAL_OWN = 1 << 30, TOTAL_MAX = COGPU_GPU_BLOCK_MAX };
#define TOTAL_ALL  0x80000000u
#define TOTAL_MASK 0x3FFFFFFFu

/* Of 32 decoded bytes: which are the last of a string, and the code that the first belongs to. */
struct owners {
    uint32_t ends, first;
};

struct decode_shared {
    union {
        volatile uint32_t links[CODES]; /* followed while others follow them */
        uint8_t window[WINDOW + 16];    /* what is loaded with its last bytes as well */
    } u;
    uint32_t records[CODES]; /* the codes themselves at first */
    struct owners owners[WINDOW_WORDS];
    union {
        uint32_t stored[12 * CODES / 32]; /* the codes, and what lies before them in 16 bytes */
        uint16_t starts[CODES + 1];
    };
    uint32_t starts_before[THREADS + 1]; /* of ROWS codes each; 0 where 16 bits suffice */
    uint16_t sources[THREADS];           /* in the row, of bytes that wait */
    uint32_t waiting[WARPS];             /* bit maps of them */
    uint32_t sums[WARPS];
    uint32_t wrong;  /* the first code that is none, times 2; odd: it is CLEAR or END */
    uint32_t total;  /* bytes of the segment */
    uint32_t before; /* bytes of the block before it */
    uint32_t ticket;
    struct cogpu_lzw_segment segment;
    cogpu_coded block;
};

/* Copies the codes to shared memory, all at once. Returns the bit where the first begins there. */
DEVICE_FN uint32_t fetch_codes(const struct cogpu_lzw_args *args, struct decode_shared *shared,
                               uint32_t count) {
    const uint32_t bit = shared->segment.bit;
    const uint8_t *in = (const uint8_t *)bits_of(args, &shared->block).memory + bit / 8;
    const uint32_t skip = (uint32_t)((uintptr_t)in % 16), first = 8 * skip + bit % 8;
    const uint32_t words = (first + bits_before(count)) / 32 + 2; /* that code_at looks at */
    ROLLED
    for (uint32_t word = 4 * thread_index(); word < words; word += 4 * THREADS)
        copy_to_shared_16(shared->stored + word, in - skip + 4 * word);
    copies_commit();
    copies_wait();
    return first;
}

/* From this row on, all codes have 12 bits. */
enum { TWELVE_ROW = (TWELVE_BITS + THREADS - 1) / THREADS };

/* Numbers of codes that the threads hold in a row, against a limit: where it lies outside of the
 * row, the compiler knows the answer. */
DEVICE_FN uint32_t row_past(uint32_t row, uint32_t limit) {
    uint32_t number = row * THREADS + thread_index();
    if ((row + 1) * THREADS <= limit)
        return 0;
    return row * THREADS >= limit ? number - limit : past(number, limit);
}

DEVICE_FN uint32_t row_reaches(uint32_t row, uint32_t limit) {
    if ((row + 1) * THREADS <= limit)
        return 0;
    return row * THREADS >= limit ? 1 : row * THREADS + thread_index() >= limit;
}

/* Rows of 12 bits are whole words apart, so one place serves for all. */
DEVICE_FN uint32_t row_code(const uint32_t *memory, uint32_t first, uint32_t row) {
    const uint32_t base = least(row, TWELVE_ROW);
    uint32_t width = 9 + row_reaches(base, TEN_BITS) + row_reaches(base, ELEVEN_BITS) +
                     row_reaches(base, TWELVE_BITS);
    uint32_t bit = first + 9 * (base * THREADS + thread_index()) + row_past(base, TEN_BITS) +
                   row_past(base, ELEVEN_BITS) + row_past(base, TWELVE_BITS);
    return code_at(memory + (row - base) * (THREADS / 32 * 12), bit, width);
}

/* Finds the thread's first code that is none. */
DEVICE_FN void note_wrong(struct decode_shared *shared, uint32_t count) {
    ROLLED
    for (uint32_t number = thread_index(); number < count; number += THREADS) {
        uint32_t code = shared->records[number];
        if (code >= CLEAR && code - FIRST >= number) {
            atomic_min(&shared->wrong, 2 * number + (code < FIRST));
            return;
        }
    }
}

/* Makes links of the codes. One that is none counts as a literal. */
DEVICE_FN void read_codes(struct decode_shared *shared, uint32_t first, uint32_t count) {
    const uint32_t to_parent = 1 - ((uint32_t)FIRST << CODE_SHIFT), to_none = LITERAL + 1;
    uint32_t literals = 0; /* bits that they have */
    UNROLL
    for (uint32_t row = 0; row < ROWS; row++) {
        uint32_t number = row * THREADS + thread_index();
        uint32_t code = row_code(shared->stored, first, row);
        bool has_parent = code - FIRST < number; /* wraps round for literals */
        literals |= has_parent ? 0 : code;
        shared->records[number] = code;
        shared->u.links[number] = (code << CODE_SHIFT) + (has_parent ? to_parent : to_none);
    }
    /* What lies after the last code was taken for codes: their strings have no bytes. */
    ROLLED
    for (uint32_t row = ROWS; row > 0 && (row - 1) * THREADS + thread_index() >= count; row--)
        shared->u.links[(row - 1) * THREADS + thread_index()] = LITERAL;
    if (literals >= CLEAR)
        note_wrong(shared, count);
}

/* The word at a place of an array. */
DEVICE_FN uint32_t word_at(const volatile uint32_t *words, uint32_t place) {
    return *(const volatile uint32_t *)((const volatile uint8_t *)words + place);
}

/* Follows the thread's links, one after the other, until they come to a literal. Others change
 * theirs meanwhile: a link is right before and after. Parents come before their children, so most
 * are through when a child is looked at. */
DEVICE_FN void follow_links(struct decode_shared *shared) {
    UNROLL
    for (uint32_t row = 0; row < ROWS; row++) {
        uint32_t number = row * THREADS + thread_index(), link = shared->u.links[number];
        ROLLED
        while (!(link & LITERAL)) {
            link = word_at(shared->u.links, link >> PLACE_SHIFT) + (link & LENGTH_MASK);
            shared->u.links[number] = link;
        }
    }
}

/* The sum of the values of all threads before this one, and of all. */
DEVICE_FN uint32_t sum_before(struct decode_shared *shared, uint32_t value, uint32_t *total) {
    uint32_t upto = warp_scan(value), before = upto - value;
    if (lane_index() == WARP - 1)
        shared->sums[warp_index()] = upto;
    sync_block();
    *total = 0;
    for (uint32_t i = 0; i < WARPS; i++) {
        uint32_t sum = shared->sums[i];
        *total += sum;
        before += i < warp_index() ? sum : 0;
    }
    return before;
}

/* Where each string starts in the segment. Returns the bytes of all. */
DEVICE_FN uint32_t find_starts(struct decode_shared *shared) {
    uint32_t lengths[ROWS], sum = 0, total, number = thread_index() * ROWS;
    UNROLL
    for (uint32_t i = 0; i < ROWS; i++) {
        lengths[i] = shared->u.links[number + i] & LENGTH_MASK;
        sum += lengths[i];
    }
    uint32_t before = sum_before(shared, sum, &total);
    uint32_t rest = total <= SHORT_MAX ? before : 0;
    shared->starts_before[thread_index()] = before - rest;
    UNROLL
    for (uint32_t i = 0; i < ROWS; i++) {
        shared->starts[number + i] = (uint16_t)rest;
        rest += lengths[i];
    }
    if (thread_index() == THREADS - 1) {
        shared->starts[CODES] = (uint16_t)rest;
        shared->starts_before[THREADS] = before + sum - rest;
        shared->total = total;
    }
    return total;
}

DEVICE_FN uint32_t start_of(const struct decode_shared *shared, uint32_t number) {
    return shared->starts[number] + shared->starts_before[number / ROWS];
}

/* Makes records of codes. The last byte of a string is the first of the code after the parent. */
DEVICE_FN void make_records(struct decode_shared *shared) {
    UNROLL
    for (uint32_t row = 0; row < ROWS; row++) {
        uint32_t number = row * THREADS + thread_index();
        uint32_t parent = shared->records[number] - FIRST;
        uint32_t link = shared->u.links[parent < number ? parent + 1 : number];
        shared->records[number] = parent << CODE_SHIFT | (link >> CODE_SHIFT & 0xFF);
    }
}

/* ---- where the segment goes ---- */

/* The sum over a warp of values up to TOTAL_MAX, or TOTAL_MAX. */
DEVICE_FN uint32_t capped_sum(uint32_t value) {
    uint64_t sum = (uint64_t)warp_sum(value >> 16) << 16;
    sum += warp_sum(value & 0xFFFF);
    return sum < TOTAL_MAX ? (uint32_t)sum : TOTAL_MAX;
}

/* Totals are told and heard without a fence: each is one word, and no other memory goes with it. */
DEVICE_FN void tell_total(const struct cogpu_lzw_args *args, const struct decode_shared *shared,
                          uint32_t total) {
    *(volatile uint32_t *)(args->totals + shared->ticket) = total;
}

DEVICE_FN uint32_t hear_total(const struct cogpu_lzw_args *args, const struct decode_shared *shared,
                              uint32_t back) {
    return *(const volatile uint32_t *)(args->totals + shared->ticket - back);
}

/* What the segments before it in the block have. By one warp. Those have been taken by thread
 * blocks that run, and that tell before they wait. */
DEVICE_FN uint32_t bytes_before(const struct cogpu_lzw_args *args,
                                const struct decode_shared *shared) {
    uint32_t index = shared->segment.index / 2, before = 0;
    for (uint32_t done = 0; done < index; done += WARP) {
        uint32_t back = done + lane_index() + 1, known = TOTAL_ALL;
        do {
            if (back <= index)
                known = hear_total(args, shared, back);
        } while (!warp_all(known != 0));
        uint32_t all = warp_ballot((known & TOTAL_ALL) != 0);
        uint32_t last = all ? trailing_zeros(all) : WARP - 1;
        uint32_t sum = capped_sum(lane_index() <= last ? known & TOTAL_MASK : 0);
        before = least(before + sum, TOTAL_MAX);
        if (all)
            break;
    }
    return before;
}

/* What is wrong with the block as far as this segment knows. */
DEVICE_FN void judge(const struct cogpu_lzw_args *args, const struct decode_shared *shared) {
    uint32_t *verdict = &args->verdicts[shared->segment.block];
    if (shared->wrong != NONE &&
        shared->before + start_of(shared, shared->wrong / 2) < shared->block.room)
        atomic_max(verdict, shared->wrong % 2 ? COGPU_GPU_UNUSUAL : COGPU_GPU_DAMAGED);
    if (shared->segment.index % 2 && shared->before + shared->total < shared->block.needed)
        atomic_max(verdict, COGPU_GPU_TOO_SHORT);
}

/* Finds the place of the segment in the block; known after the next barrier. */
DEVICE_FN void find_place(const struct cogpu_lzw_args *args, struct decode_shared *shared) {
    if (warp_index() != WARPS - 1)
        return;
    uint32_t before = bytes_before(args, shared);
    if (lane_index() == 0) {
        tell_total(args, shared, TOTAL_ALL | least(before + shared->total, TOTAL_MAX));
        shared->before = before;
        judge(args, shared);
    }
}

/* Where the segment goes in the output. */
DEVICE_FN uint8_t *output_of(const struct cogpu_lzw_args *args,
                             const struct decode_shared *shared) {
    return args->decoded + shared->block.out + shared->before;
}

/* What is left of the block's room from there on. */
DEVICE_FN uint32_t room_of(const struct decode_shared *shared) {
    return past(shared->block.room, shared->before);
}

/* 16 bytes of the window, at any byte. */
DEVICE_FN words4 window_words(const struct decode_shared *shared, uint32_t at) {
    const uint8_t *aligned = shared->u.window + at / 4 * 4;
    uint32_t words[5], shift = at % 4 * 8;
    UNROLL
    for (uint32_t i = 0; i < 5; i++)
        words[i] = load_u32_aligned(aligned + 4 * i);
    words4 shifted = {
        funnel_right(words[0], words[1], shift), funnel_right(words[1], words[2], shift),
        funnel_right(words[2], words[3], shift), funnel_right(words[3], words[4], shift)};
    return shifted;
}

/* Writes the window to the output: 16 bytes at a time, and single ones before and after. */
DEVICE_FN void write_window(const struct decode_shared *shared, uint8_t *out, uint32_t bytes) {
    const uint32_t head = least((uint32_t)(-(uintptr_t)out % 16), bytes);
    const uint32_t tail = head + (bytes - head) / 16 * 16;
    ROLLED
    for (uint32_t at = head + 16 * thread_index(); at < tail; at += 16 * THREADS)
        store_words4(out + at, window_words(shared, at));
    if (thread_index() < head)
        out[thread_index()] = shared->u.window[thread_index()];
    if (tail + thread_index() < bytes)
        out[tail + thread_index()] = shared->u.window[tail + thread_index()];
}

/* ---- strings of a short segment ---- */

/* Writes a string that ends with `record` between two places of the window, its last byte first. */
DEVICE_FN void write_string(const struct decode_shared *shared, uint32_t record, uint8_t *from,
                            uint8_t *to) {
    *--to = (uint8_t)record;
    ROLLED
    while (to != from) {
        record = word_at(shared->records, record >> PLACE_SHIFT);
        *--to = (uint8_t)record;
    }
}

/* Where all strings lie in one window. */
DEVICE_FN void fill_only_window(struct decode_shared *shared) {
    UNROLL
    for (uint32_t row = 0; row < ROWS; row++) {
        uint32_t number = row * THREADS + thread_index();
        uint32_t start = shared->starts[number], end = shared->starts[number + 1];
        if (start < end)
            write_string(shared, shared->records[number], shared->u.window + start,
                         shared->u.window + end);
    }
}

/* What lies in this window. */
DEVICE_FN void fill_short_window(struct decode_shared *shared, uint32_t window) {
    ROLLED
    for (uint32_t number = thread_index(); number < CODES; number += THREADS) {
        uint32_t start = past(shared->starts[number], window);
        uint32_t end = past(shared->starts[number + 1], window);
        uint32_t record = shared->records[number];
        if (start >= end || start >= WINDOW)
            continue;
        ROLLED
        for (; end > WINDOW; end--)
            record = word_at(shared->records, record >> PLACE_SHIFT);
        write_string(shared, record, shared->u.window + start, shared->u.window + end);
    }
}

DEVICE_FN void write_short(const struct cogpu_lzw_args *args, struct decode_shared *shared,
                           uint32_t bytes) {
    for (uint32_t window = 0; window < bytes; window += WINDOW) {
        if (bytes <= WINDOW)
            fill_only_window(shared);
        else
            fill_short_window(shared, window);
        if (window == 0)
            find_place(args, shared);
        sync_block();
        uint32_t here = past(least(bytes, room_of(shared)), window);
        write_window(shared, output_of(args, shared) + window, least(here, WINDOW));
        if (bytes > WINDOW)
            sync_block();
    }
}

/* ---- strings of a long segment ---- */

DEVICE_FN void measure_distances(struct decode_shared *shared) {
    ROLLED
    for (uint32_t number = thread_index(); number < CODES; number += THREADS) {
        uint32_t record = shared->records[number], parent = record >> CODE_SHIFT;
        if (parent >= number)
            continue;
        uint32_t distance = start_of(shared, number) - start_of(shared, parent);
        shared->records[number] = distance << DISTANCE_SHIFT | (record & 0xFF);
    }
}

/* Notes where the string of a code ends and which words of the window begin in it. */
DEVICE_FN void mark_owner(struct decode_shared *shared, uint32_t number, uint32_t window) {
    uint32_t start = start_of(shared, number), end = start_of(shared, number + 1);
    if (end <= window || start >= window + WINDOW)
        return;
    uint32_t last = end - 1 - window;
    if (last < WINDOW)
        atomic_or(&shared->owners[last / 32].ends, 1u << last % 32);
    else
        last = WINDOW - 1;
    ROLLED
    for (uint32_t word = (past(start, window) + 31) / 32; word <= last / 32; word++)
        shared->owners[word].first = number;
}

DEVICE_FN void mark_window(struct decode_shared *shared, uint32_t window, uint32_t count) {
    for (uint32_t word = thread_index(); word < WINDOW_WORDS; word += THREADS)
        shared->owners[word].ends = 0;
    sync_block();
    ROLLED
    for (uint32_t number = thread_index(); number < count; number += THREADS)
        mark_owner(shared, number, window);
    sync_block();
}

/* Fills `bytes` bytes of the window. The output before it ends at `earlier`. */
DEVICE_FN void fill_window(struct decode_shared *shared, const uint8_t *earlier, uint32_t bytes) {
    const uint32_t below = (1u << lane_index()) - 1;
    uint8_t *to = shared->u.window;
    for (uint32_t row = 0; row < bytes; row += THREADS) {
        uint32_t at = row + thread_index();
        bool waits = false;
        if (at < bytes) {
            uint64_t owners = load_u64_aligned(&shared->owners[at / 32]);
            uint32_t ends = (uint32_t)owners, first = (uint32_t)(owners >> 32);
            uint32_t record = shared->records[first + count_ones(ends & below)];
            uint32_t byte = record;
            int32_t source = (int32_t)at - (int32_t)(record >> DISTANCE_SHIFT);
            if (!(ends >> lane_index() & 1)) {
                waits = source >= (int32_t)row;
                if (!waits)
                    byte = source < 0 ? earlier[source] : to[source];
            }
            if (waits)
                shared->sources[thread_index()] = (uint16_t)(source - (int32_t)row);
            else
                to[at] = (uint8_t)byte;
        }
        uint32_t waiting = warp_ballot(waits);
        if (lane_index() == 0)
            shared->waiting[warp_index()] = waiting;
        if (!sync_block_or(waits))
            continue;
        if (waits) {
            uint32_t source = shared->sources[thread_index()];
            while (shared->waiting[source / WARP] >> source % WARP & 1)
                source = shared->sources[source];
            to[at] = to[row + source];
        }
        sync_block();
    }
}

DEVICE_FN void write_long(const struct cogpu_lzw_args *args, struct decode_shared *shared,
                          uint32_t bytes, uint32_t count) {
    measure_distances(shared);
    find_place(args, shared);
    sync_block();
    uint8_t *out = output_of(args, shared);
    bytes = least(bytes, room_of(shared));
    for (uint32_t window = 0; window < bytes; window += WINDOW) {
        uint32_t size = least(bytes - window, WINDOW);
        mark_window(shared, window, count);
        fill_window(shared, out + window, size);
        write_window(shared, out + window, size);
    }
}

/* ---- codes after a full table: rare, so they hold nothing while others run ---- */

DEVICE_FN uint32_t code_after_full(const struct cogpu_lzw_args *args,
                                   const struct decode_shared *shared, uint32_t number) {
    const uint32_t *memory = bits_of(args, &shared->block).memory;
    return code_at(memory, shared->segment.bit + bits_before(number), 12);
}

/* Of what a code stands for: the length, and where it starts in the segment unless it is a byte. */
DEVICE_FN uint32_t look_up(const struct decode_shared *shared, uint32_t code, uint32_t *start) {
    if (code < FIRST)
        return 1;
    *start = start_of(shared, code - FIRST);
    return start_of(shared, code - FIRST + 1) - *start + 1;
}

/* Adds their bytes to the segment's total, which stays at TOTAL_MAX when it comes there. */
DEVICE_FN void count_after_full(const struct cogpu_lzw_args *args, struct decode_shared *shared) {
    uint32_t sum = 0, start;
    for (uint32_t number = CODES + thread_index(); number < shared->segment.codes;
         number += THREADS) {
        sum += look_up(shared, code_after_full(args, shared, number), &start);
        sum = least(sum, TOTAL_MAX);
    }
    sum = capped_sum(sum);
    if (lane_index() == 0)
        shared->sums[warp_index()] = sum;
    sync_block();
    if (thread_index() == 0)
        for (uint32_t i = 0; i < WARPS; i++)
            shared->total = least(shared->total + shared->sums[i], TOTAL_MAX);
    sync_block();
}

/* Copies their strings, which all lie in the output already. */
DEVICE_FN void write_after_full(const struct cogpu_lzw_args *args, struct decode_shared *shared) {
    uint32_t at = start_of(shared, CODES);
    for (uint32_t row = CODES; row < shared->segment.codes && at < room_of(shared);
         row += THREADS) {
        uint32_t code = 0, from = 0, length = 0, total;
        if (row + thread_index() < shared->segment.codes) {
            code = code_after_full(args, shared, row + thread_index());
            length = look_up(shared, code, &from);
        }
        uint32_t to = at + sum_before(shared, length, &total);
        length = least(length, past(room_of(shared), to));
        uint8_t *out = output_of(args, shared);
        ROLLED
        for (uint32_t i = 0; i < length; i++)
            out[to + i] = code < FIRST ? (uint8_t)code : out[from + i];
        at += total;
        sync_block();
    }
}

/* ---- a segment ---- */

/* The next one; false where none is left. */
DEVICE_FN bool take_ticket(const struct cogpu_lzw_args *args, struct decode_shared *shared) {
    if (thread_index() == 0) {
        shared->ticket = atomic_add(&args->progress->ticket, 1);
        shared->wrong = NONE;
        shared->segment.codes = 0;
        if (shared->ticket < args->progress->segments) {
            shared->segment = args->segments[shared->ticket];
            shared->block = args->blocks[shared->segment.block];
        }
    }
    sync_block();
    return shared->segment.codes > 0;
}

/* From codes to records. Returns the bytes of the strings. */
DEVICE_FN uint32_t understand(const struct cogpu_lzw_args *args, struct decode_shared *shared,
                              uint32_t count) {
    const uint32_t first = fetch_codes(args, shared, count);
    sync_block();
    read_codes(shared, first, count);
    sync_block();
    follow_links(shared);
    sync_block();
    const uint32_t bytes = find_starts(shared);
    sync_block();
    if (shared->segment.codes > CODES)
        count_after_full(args, shared);
    if (thread_index() == 0)
        tell_total(args, shared,
                   (shared->segment.index / 2 > 0 ? TOTAL_OWN : TOTAL_ALL) | shared->total);
    make_records(shared);
    sync_block();
    return bytes;
}

DEVICE_FN void decode_segment(const struct cogpu_lzw_args *args, struct decode_shared *shared) {
    const uint32_t codes = shared->segment.codes, count = least(codes, CODES);
    const uint32_t bytes = understand(args, shared, count);
    if (bytes <= SHORT_MAX)
        write_short(args, shared, bytes);
    else
        write_long(args, shared, bytes, count);
    if (codes > CODES) {
        sync_block();
        write_after_full(args, shared);
    }
}

KERNEL(cogpu_kernel_lzw_decode, struct cogpu_lzw_args, struct decode_shared, THREADS, 5) {
    while (take_ticket(args, shared)) {
        decode_segment(args, shared);
        sync_block();
    }
}
