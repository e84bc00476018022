/*
 * Interleaved inflate: one thread decodes three zlib streams (RFC 1950, RFC 1951) at once.
 *
 * A decoder of one stream waits most of the time. Each token begins where the one before ends, so
 * look-ups wait for each other; and in rasters it is unpredictable whether a literal or a match
 * comes next, so a decoder with branches throws away its work at every fourth token. Here each lane
 * takes a step in turn, and the step has no branches: while one lane waits for its look-up, the
 * CPU works on the others.
 *
 *     lane 0   | load  literal?  token  distance  copy | load  literal?  token ...
 *     lane 1       | load  literal?  token  distance  copy | load ...
 *     lane 2           | load  literal?  token  distance  copy | ...      time ->
 *
 * A step, of one lane:
 *
 *     load       64 bits from the bit position on, at least 57 of them valid
 *     literal?   an optional literal, once or twice: what is none has 0 bits and makes 0 bytes
 *     token      a literal or a length; extra bits of lengths are part of the index
 *     distance   the next 8 bits, or the kind of entry if there is no match, select an entry;
 *                pext takes the extra bits out
 *     copy       COPY_BYTES bytes, always; the position moves by the length, or by 1 after a
 * literal
 *
 * All else is an exception: end of block, a match longer than COPY_BYTES, a distance shorter, a
 * code that the table does not hold, a distance before the start. Then the distance is larger than
 * any position, which is the only branch of a step. decode_token reads such a token with all
 * checks.
 *
 * Steps need no checks of their own: count_steps tells how many fit into the input and output that
 * is left, whatever the bits say. The last bytes of a stream are decoded token by token.
 *
 * What a lane refuses, the caller decodes with libdeflate, which decides. So streams are accepted
 * and refused as libdeflate does; the Adler-32 is compared here.
 */
#include "codec/inflate_lanes.h"
#include "codec/deflate_errors.h"
#include "codec/inflate_lane.h"

#if HAVE_INFLATE_LANES

#include <immintrin.h>
#include <libdeflate.h>
#include <string.h>

#define FAST        __attribute__((target("bmi,bmi2")))
#define STEP        static inline __attribute__((always_inline, target("bmi,bmi2")))
#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

enum {
    /* Bits of an exception that counts as a step: two codes of 15, 1 extra bit of a length up to
     * COPY_BYTES, 13 of a distance. */
    EXCEPTION_BITS = 44,
    STEP_IN = 9,    /* input bytes of a step at most: two literals of LITLEN_BITS before that */
    IN_MARGIN = 24, /* of loads ahead of the position */
    OUT_MARGIN = 80,
    LITERAL_DISTANCE = 64, /* from where a literal copies */
    ZLIB_HEADER = 2
};

/* ---- a token with all checks ---------------------------------------------------------------- */

/* The symbol of a code of at least `from` bits (RFC 1951 3.2.2); NO_SYMBOL if there is none. */
static uint32_t find_symbol(const lane_code *code, const uint16_t *symbols, uint32_t from,
                            uint64_t bits, uint32_t *code_bits) {
    const uint32_t value = reverse_15_bits((uint32_t)bits & 0x7FFF);
    for (uint32_t n = from; n <= CODE_BITS_MAX; n++)
        if (value < code->end[n]) {
            *code_bits = n;
            return symbols[code->offset[n] + (int32_t)(value >> (CODE_BITS_MAX - n))];
        }
    return NO_SYMBOL;
}

/* Takes the bits of a distance; 0 if there is no such code. */
STEP uint32_t take_distance(const inflate_lane *lane, uint64_t bits, uint32_t *used) {
    const distance_entry *entry = &lane->distances[KINDS + (bits & ((1 << DISTANCE_BITS) - 1))];
    uint32_t code_bits = 0;
    if (entry->base != DISTANCE_UNKNOWN) {
        *used += entry->bits;
        return _pext_u32((uint32_t)bits, entry->mask) + ((uint32_t)(int)entry->base & 0x7FFF);
    }
    const uint32_t symbol =
        find_symbol(&lane->distance_code, lane->distance_symbols, 1, bits, &code_bits);
    if (symbol >= DISTANCE_SYMBOLS_VALID)
        return 0;
    const uint32_t of_symbol = cogpu_inflate_distances[symbol];
    const uint32_t extra = extra_bits(of_symbol);
    *used += code_bits + extra;
    return (of_symbol >> 16) + (uint32_t)(bits >> code_bits & ((1u << extra) - 1));
}

/* Copies a match that lies within the output. */
static void copy_match(uint8_t *to, size_t distance, size_t length, const uint8_t *end) {
    const uint8_t *from = to - distance;
    const uint8_t *stop = to + length;
    if (distance == 1) {
        memset(to, *from, length);
    } else if (distance >= COPY_BYTES && (size_t)(end - stop) >= COPY_BYTES) {
        for (; to < stop; to += COPY_BYTES, from += COPY_BYTES)
            memcpy(to, from, COPY_BYTES);
    } else if (distance >= sizeof(uint64_t) && (size_t)(end - stop) >= sizeof(uint64_t)) {
        for (; to < stop; to += sizeof(uint64_t), from += sizeof(uint64_t))
            memcpy(to, from, sizeof(uint64_t));
    } else {
        while (to < stop)
            *to++ = *from++;
    }
}

static bool put_literal(inflate_lane *lane, uint32_t literal, uint32_t used) {
    if (lane->out == lane->out_end)
        return false;
    *lane->out++ = (uint8_t)literal;
    lane->bit += used;
    return true;
}

/* The distance behind `used` bits, then the copy. */
STEP bool put_match(inflate_lane *lane, uint64_t bits, uint32_t length, uint32_t used) {
    const uint32_t distance = take_distance(lane, bits >> used, &used);
    if (distance == 0 || distance > (size_t)(lane->out - lane->out_begin) ||
        length > (size_t)(lane->out_end - lane->out))
        return false;
    copy_match(lane->out, distance, length, lane->out_end);
    lane->out += length;
    lane->bit += used;
    return true;
}

/* A token of a known symbol, whose code is the first `used` of the bits. After the end of a block,
 * the next block begins. */
STEP bool put_symbol(inflate_lane *lane, uint32_t symbol, uint64_t bits, uint32_t used) {
    if (symbol < END_OF_BLOCK)
        return put_literal(lane, symbol, used);
    if (symbol == END_OF_BLOCK) {
        lane->bit += used;
        cogpu_inflate_lane_next_block(lane);
        return true;
    }
    if (symbol > END_OF_BLOCK + LENGTH_SYMBOLS_VALID)
        return false;
    const uint32_t extra = extra_bits(length_of(symbol));
    const uint32_t length =
        (length_of(symbol) >> 16) + (uint32_t)(bits >> used & ((1u << extra) - 1));
    return put_match(lane, bits, length, used + extra);
}

/* Decodes one token with all checks. */
FAST static void decode_token(inflate_lane *lane) {
    const uint64_t bits = lane_bits(lane, lane->bit);
    const uint32_t entry = lane->litlen[bits & ((1 << LITLEN_BITS) - 1)];
    const int kind = (int8_t)(entry >> 24);
    uint32_t symbol = entry >> 8 & 0x1FF, used = entry >> 17 & 0xF;
    bool is_good = lane->bit <= (uint64_t)(lane->in_end - lane->in) * 8;
    if (kind == KIND_EXCEPTION && symbol == NO_SYMBOL)
        symbol =
            find_symbol(&lane->litlen_code, lane->litlen_symbols, LITLEN_BITS + 1, bits, &used);
    if (kind == KIND_LITERAL)
        is_good = is_good && put_literal(lane, entry >> 8 & 0xFF, entry & 0xFF);
    else if (kind == KIND_EXCEPTION)
        is_good = is_good && put_symbol(lane, symbol, bits, used);
    else
        is_good = is_good && put_match(lane, bits, (uint32_t)kind, entry >> 16 & 0xFF);
    if (!is_good)
        lane->state = LANE_FAILED;
}

/* ---- steps ---------------------------------------------------------------------------------- */

/* The place of a lane during steps, in registers. The bit position is an address, times eight plus
 * the bit, so that a load needs no base register: there are few, with three lanes. */
typedef struct cursor {
    uint64_t bit;
    uint8_t *out;
} cursor;

static inline uint64_t first_bit(const inflate_lane *lane) {
    return (uint64_t)(uintptr_t)lane->in * 8;
}

static inline uint64_t load_at(uint64_t bit) {
    uint64_t bits;
    memcpy(&bits, (const uint8_t *)(uintptr_t)(bit >> 3), sizeof bits);
    return bits >> (bit & 7);
}

/* Steps that fit into what is left of input and output; less than 1 if none does. */
static inline ptrdiff_t count_steps(const inflate_lane *lane, int literals) {
    const ptrdiff_t in_left = lane->in_end - lane->in - (ptrdiff_t)(lane->bit >> 3);
    const ptrdiff_t in_steps = (in_left - IN_MARGIN) / STEP_IN;
    const ptrdiff_t out_steps =
        (lane->out_end - lane->out - OUT_MARGIN) / (COPY_BYTES + 1 + literals);
    return in_steps < out_steps ? in_steps : out_steps;
}

/* A literal whose code is longer than LITLEN_BITS, which is the most frequent exception, without
 * branches: bits of the code | literal << 8. 0 if it is no literal. */
STEP uint32_t find_long_literal(const inflate_lane *lane, uint64_t bits) {
    const uint32_t value = reverse_15_bits((uint32_t)bits & 0x7FFF);
    uint32_t n = LITLEN_BITS + 1;
    for (int k = LITLEN_BITS + 1; k < CODE_BITS_MAX; k++)
        n += value >= lane->litlen_code.end[k];
    const uint32_t symbol =
        lane->litlen_symbols[lane->litlen_code.offset[n] + (int32_t)(value >> (CODE_BITS_MAX - n))];
    return symbol < END_OF_BLOCK ? n | symbol << 8 : 0;
}

/* An exception: decodes the token with all checks. False if steps must be counted anew: the
 * token made or used more than a step does, or the stream has ended. At the end of a block, headers
 * and stored blocks are used as well. */
FAST static __attribute__((noinline)) bool handle_exception(inflate_lane *lane, uint64_t bit,
                                                            uint8_t *out) {
    lane->bit = bit - first_bit(lane);
    lane->out = out;
    decode_token(lane);
    return lane->state == LANE_IN_BLOCK && lane->out - out <= COPY_BYTES &&
           lane->bit - (bit - first_bit(lane)) <= EXCEPTION_BITS;
}

/* Selects without a branch: compilers make a jump of the C expression, which cannot be predicted
 * here. MemorySanitizer has to see the expression. */
STEP int64_t select_index(int64_t kind, uint64_t bits) {
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define SELECT_IN_C 1
#endif
#endif
#ifdef SELECT_IN_C
    return kind < 0 ? kind : (int64_t)(bits & ((1 << DISTANCE_BITS) - 1));
#else
    int64_t index = kind;
    __asm__("test %1, %1\n\tcmovns %2, %0"
            : "=r"(index)
            : "r"(kind), "r"(bits & ((1 << DISTANCE_BITS) - 1)), "0"(kind)
            : "cc");
    return index;
#endif
}

/* One byte of an entry: cheaper than shifts of a loaded entry. */
STEP uint8_t entry_byte(const inflate_lane *lane, uint64_t index, int byte) {
    return ((const uint8_t *)lane->litlen)[index * 4 + (unsigned)byte];
}

STEP void take_optional_literal(const inflate_lane *lane, cursor *at, uint64_t *bits) {
    const uint64_t index = *bits & ((1 << LITLEN_BITS) - 1);
    const uint8_t count = entry_byte(lane, index, 0);
    *at->out = entry_byte(lane, index, 1);
    *bits >>= count & 63;
    at->bit += count;
    at->out += count != 0;
}

/* Lowers *steps after an exception that used more than a step does. */
STEP void take_step(inflate_lane *lane, cursor *at, int literals, ptrdiff_t *steps) {
    uint64_t bits = load_at(at->bit);
    for (int i = 0; i < literals; i++)
        take_optional_literal(lane, at, &bits);

    const uint64_t index = bits & ((1 << LITLEN_BITS) - 1);
    const uint64_t before = at->bit;
    const uint8_t count = entry_byte(lane, index, 2);
    const int64_t kind = (int8_t)entry_byte(lane, index, 3);
    *at->out = entry_byte(lane, index, 1);
    const uint64_t rest = bits >> (count & 63);

    const distance_entry *entry = &lane->distances[KINDS + select_index(kind, rest)];
    const uint32_t distance = _pext_u32((uint32_t)rest, entry->mask) + (uint32_t)(int)entry->base;
    at->bit += count;
    at->bit += entry->bits;
    if (LIKELY((size_t)(at->out - lane->out_begin) >= distance)) {
        uint8_t *to = at->out + entry->literal;
        memcpy(to, to - distance, COPY_BYTES);
        at->out += kind & 63;
        return;
    }
    at->bit = before;
    if (lane->litlen[index] == ((uint32_t)(uint8_t)KIND_EXCEPTION << 24 | NO_SYMBOL << 8)) {
        const uint32_t literal = find_long_literal(lane, bits);
        if (LIKELY(literal)) {
            *at->out++ = (uint8_t)(literal >> 8);
            at->bit += literal & 0xFF;
            return;
        }
    }
    if (UNLIKELY(!handle_exception(lane, before, at->out)))
        *steps = 0;
    at->bit = first_bit(lane) + lane->bit;
    at->out = lane->out;
}

/* Steps of all lanes in turn until one cannot take a step, or is at its end. */
STEP void take_steps(inflate_lane *lanes, int count, int literals) {
    cursor at[CODEC_LANES];
    for (;;) {
        ptrdiff_t steps = PTRDIFF_MAX;
        for (int k = 0; k < count; k++) {
            const ptrdiff_t fit =
                lanes[k].state == LANE_IN_BLOCK ? count_steps(&lanes[k], literals) : 0;
            steps = fit < steps ? fit : steps;
            at[k] = (cursor){first_bit(&lanes[k]) + lanes[k].bit, lanes[k].out};
        }
        if (steps < 1)
            return;
        for (; steps > 0; steps--) {
            take_step(&lanes[0], &at[0], literals, &steps);
            if (count > 1)
                take_step(&lanes[1], &at[1], literals, &steps);
            if (count > 2)
                take_step(&lanes[2], &at[2], literals, &steps);
        }
        for (int k = 0; k < count; k++) {
            lanes[k].bit = at[k].bit - first_bit(&lanes[k]);
            lanes[k].out = at[k].out;
        }
    }
}

/* Predictor 3 separates the bytes of samples: most tokens are literals. */
FAST static __attribute__((noinline)) void take_steps_of_literals(inflate_lane *lanes) {
    take_steps(lanes, 3, 2);
}

FAST static __attribute__((noinline)) void take_steps_of_3(inflate_lane *lanes) {
    take_steps(lanes, 3, 1);
}

FAST static __attribute__((noinline)) void take_steps_of_2(inflate_lane *lanes) {
    take_steps(lanes, 2, 1);
}

FAST static __attribute__((noinline)) void take_steps_of_1(inflate_lane *lanes) {
    take_steps(lanes, 1, 1);
}

/* ---- streams -------------------------------------------------------------------------------- */

/* Takes the next stream of the queue into the lane, past its header (RFC 1950 2.2). */
static bool start_stream(inflate_lane *lane, cogpu_lane_queue *queue) {
    if (!queue->next(queue, &lane->block))
        return false;
    const cogpu_lane_block *block = &lane->block;
    lane->in = block->in;
    lane->in_end = block->in;
    lane->out = lane->out_begin = block->out;
    lane->out_end = block->out + block->out_bytes;
    lane->bit = 0;
    lane->is_last_block = false;
    lane->state = LANE_FAILED;
    if (block->in_bytes < ZLIB_HEADER + ADLER_BYTES)
        return true;
    const uint32_t header = (uint32_t)block->in[0] << 8 | block->in[1];
    const bool is_deflate = (block->in[0] & 0x0F) == 8 && block->in[0] >> 4 <= 7;
    const bool has_dictionary = block->in[1] & 0x20;
    if (!is_deflate || has_dictionary || header % 31 != 0)
        return true;
    lane->in += ZLIB_HEADER;
    lane->in_end += block->in_bytes - ADLER_BYTES;
    cogpu_inflate_lane_next_block(lane);
    return true;
}

static bool is_adler_right(const inflate_lane *lane) {
    uint32_t stored;
    memcpy(&stored, lane->in + ((lane->bit + 7) >> 3), sizeof stored);
    return libdeflate_adler32(1, lane->out_begin, (size_t)(lane->out - lane->out_begin)) ==
           __builtin_bswap32(stored);
}

/* Ends a stream that cannot take steps, or is at its end, and starts another one. False if
 * there is none. */
static bool finish_stream(inflate_lane *lane, cogpu_lane_queue *queue) {
    while (lane->state == LANE_IN_BLOCK)
        decode_token(lane);
    const bool is_good = lane->state == LANE_FINISHED && is_adler_right(lane);
    queue->done(queue, &lane->block, is_good, (size_t)(lane->out - lane->out_begin));
    return start_stream(lane, queue);
}

static void decode_streams(inflate_lane *lanes, int literals, cogpu_lane_queue *queue) {
    int count = 0;
    while (count < CODEC_LANES && start_stream(&lanes[count], queue))
        count++;
    while (count > 0) {
        if (count == 3 && literals == 2)
            take_steps_of_literals(lanes);
        else if (count == 3)
            take_steps_of_3(lanes);
        else if (count == 2)
            take_steps_of_2(lanes);
        else
            take_steps_of_1(lanes);
        for (int k = count - 1; k >= 0; k--) {
            if (lanes[k].state == LANE_IN_BLOCK && count_steps(&lanes[k], literals) >= 1)
                continue;
            if (!finish_stream(&lanes[k], queue) && k != --count)
                memcpy(&lanes[k], &lanes[count], sizeof *lanes);
        }
    }
}

static inflate_lane *open_lanes(void) {
    inflate_lane *lanes = cogpu_allocate(CODEC_LANES * sizeof *lanes);
    for (int k = 0; lanes && k < CODEC_LANES; k++) {
        lanes[k].distances[KINDS + KIND_LITERAL] =
            (distance_entry){.base = LITERAL_DISTANCE, .literal = 1};
        lanes[k].distances[KINDS + KIND_EXCEPTION] = (distance_entry){.base = -1};
    }
    return lanes;
}

cogpu_status cogpu_inflate_lanes(void **memory, cogpu_lane_queue *queue, cogpu_error *error) {
    if (!*memory)
        *memory = open_lanes();
    if (!*memory)
        return deflate_out_of_memory("decoder", error);
    decode_streams(*memory, queue->is_mostly_literals ? 2 : 1, queue);
    return COGPU_OK;
}

/* Zen 1, Zen 2 and Excavator execute pext one bit at a time. */
bool cogpu_inflate_lanes_run_here(void) {
    __builtin_cpu_init();
    const bool is_slow =
        __builtin_cpu_is("znver1") || __builtin_cpu_is("znver2") || __builtin_cpu_is("bdver4");
    return __builtin_cpu_supports("bmi2") && !is_slow &&
           (__builtin_cpu_is("intel") || __builtin_cpu_is("amd"));
}

#else

bool cogpu_inflate_lanes_run_here(void) {
    return false;
}

cogpu_status cogpu_inflate_lanes(void **memory, cogpu_lane_queue *queue, cogpu_error *error) {
    (void)memory, (void)queue;
    return cogpu_fail(error, COGPU_UNSUPPORTED, "this build has no interleaved inflate");
}

#endif
