/* Inflate from any block on: see inflate_chunk.h. */
#include "codec/inflate_chunk.h"

#include "base/bytes.h"
#include "base/math.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include <string.h>

void cogpu_inflate_start(cogpu_inflater *inflater, uint64_t stop_bit) {
    inflater->state = INFLATE_AT_HEADER;
    inflater->is_last_block = false;
    inflater->stop_bit = stop_bit;
}

uint64_t cogpu_inflate_position(const cogpu_inflater *inflater) {
    const uint64_t left = (uint64_t)(inflater->in_end - inflater->in);
    return (inflater->in_end_offset - left) * 8 - inflater->bit_count;
}

/* ---- tokens ---- */

enum loop_result { LOOP_AT_MARGIN, LOOP_AT_END_OF_BLOCK, LOOP_AT_BAD };

/* Bytes that a turn of the loop may read: three refills. */
enum { INPUT_MARGIN = 32 };

#define LOW_BITS(n) ((1ull << (n)) - 1)
/* 56 bits or more. Those above `count` are those of the bytes at `in`. */
#define REFILL()                                                                                   \
    do {                                                                                           \
        bits |= load_u64(in, false) << (uint8_t)count;                                             \
        in += 7 - (count >> 3 & 7);                                                                \
        count |= 56;                                                                               \
    } while (0)
#define CONSUME(entry)                                                                             \
    do {                                                                                           \
        before = bits;                                                                             \
        bits >>= (entry)&63;                                                                       \
        count -= (entry);                                                                          \
    } while (0)
/* Base and extra bits, which follow the code's in `before`. Shifts and FIRST_BITS need no more than
 * the lowest bits of their counts, where nothing else is set in entries that have a value. */
#define VALUE(entry)                                                                               \
    (((entry) >> 16) + (size_t)(FIRST_BITS(before, (entry)) >> ((entry) >> 8 & 63)))
#define FIRST_BITS_PLAIN(bits, count) ((bits)&LOW_BITS((count)&63))
#define FIRST_BITS_BMI2(bits, count)  _bzhi_u64(bits, count)

/* Copies `length` bytes or symbols, `step` bytes at a time; may write two steps more. Bytes take
 * small steps, as a load that overlaps several recent stores waits for them. */
#define DEFINE_COPY_MATCH(name, type, step)                                                        \
    static inline type *name(type *out, size_t distance, size_t length) {                          \
        enum { COUNT = (step) / sizeof(type) };                                                    \
        type *const end = out + length;                                                            \
        const type *from = out - distance;                                                         \
        if (__builtin_expect(distance >= COUNT, 1)) {                                              \
            memcpy(out, from, step);                                                               \
            memcpy(out + COUNT, from + COUNT, step);                                               \
            for (out += 2 * COUNT, from += 2 * COUNT; out < end; out += COUNT, from += COUNT)      \
                memcpy(out, from, step);                                                           \
            return end;                                                                            \
        }                                                                                          \
        /* The match repeats itself: from a multiple of its distance on it can be copied so. */    \
        size_t period = distance;                                                                  \
        while (period < COUNT)                                                                     \
            period += distance;                                                                    \
        for (size_t i = 0; i < period && out < end; i++)                                           \
            *out++ = *from++;                                                                      \
        for (; out < end; out += COUNT)                                                            \
            memcpy(out, out - period, step);                                                       \
        return end;                                                                                \
    }
DEFINE_COPY_MATCH(copy_bytes, uint8_t, 8)
DEFINE_COPY_MATCH(copy_symbols, uint16_t, 16)

#define SYMBOL     uint8_t
#define COPY_MATCH copy_bytes
#define LOOP       loop_bytes
#define LOOP_TARGET
#define FIRST_BITS FIRST_BITS_PLAIN
#include "codec/inflate_loop.h"
#undef LOOP
#undef LOOP_TARGET
#undef FIRST_BITS
#if defined(__x86_64__)
#define LOOP        loop_bytes_bmi2
#define LOOP_TARGET __attribute__((target("bmi2")))
#define FIRST_BITS  FIRST_BITS_BMI2
#include "codec/inflate_loop.h"
#undef LOOP
#undef LOOP_TARGET
#undef FIRST_BITS
#endif
#undef COPY_MATCH
#undef SYMBOL

#define SYMBOL     uint16_t
#define COPY_MATCH copy_symbols
#define LOOP       loop_symbols
#define LOOP_TARGET
#define FIRST_BITS FIRST_BITS_PLAIN
#include "codec/inflate_loop.h"
#undef LOOP
#undef LOOP_TARGET
#undef FIRST_BITS
#if defined(__x86_64__)
#define LOOP        loop_symbols_bmi2
#define LOOP_TARGET __attribute__((target("bmi2")))
#define FIRST_BITS  FIRST_BITS_BMI2
#include "codec/inflate_loop.h"
#undef LOOP
#undef LOOP_TARGET
#undef FIRST_BITS
#endif
#undef COPY_MATCH
#undef SYMBOL

#if defined(__x86_64__)
#define FOR_THIS_CPU(loop) (__builtin_cpu_supports("bmi2") ? loop##_bmi2 : loop)
#else
#define FOR_THIS_CPU(loop) (loop)
#endif

/* ---- near the end of the input ---- */

/* A literal, or a match, whose distance is above 0. */
struct token {
    size_t value, distance;
};

/* Consumes the bits of an entry, and extra ones; false if the input has fewer. */
static bool take_entry(cogpu_inflater *inflater, uint32_t entry, size_t *value) {
    const unsigned used = entry & 63;
    if (used > inflater->bit_count)
        return false;
    *value = (entry >> 16) + (size_t)((inflater->bits & LOW_BITS(used)) >> (entry >> 8 & 15));
    (void)inflate_take_bits(inflater, used);
    return true;
}

/* The entry of the next code, in the subtable if it continues there. */
static bool find_entry(cogpu_inflater *inflater, const uint32_t *table, unsigned table_bits,
                       uint32_t *entry) {
    size_t start;
    (void)cogpu_inflate_need_bits(inflater, 2 * CODE_BITS_MAX);
    *entry = table[inflater->bits & LOW_BITS(table_bits)];
    if (!(*entry & ENTRY_SUBTABLE) || *entry & ENTRY_LITERAL)
        return true;
    const unsigned index_bits = *entry >> 8 & 15;
    if (!take_entry(inflater, (*entry & ~0xF00u) | table_bits << 8, &start))
        return false;
    *entry = table[start + (inflater->bits & LOW_BITS(index_bits))];
    return true;
}

/* LOOP_AT_MARGIN: there is one. */
static enum loop_result read_token(cogpu_inflater *inflater, struct token *token) {
    uint32_t entry;
    token->distance = 0;
    if (!find_entry(inflater, inflater->literal_table, LITERAL_TABLE_BITS, &entry))
        return LOOP_AT_BAD;
    const bool is_end = !(entry & ENTRY_LITERAL) && entry & ENTRY_END_OF_BLOCK;
    if (!is_end && !(entry & ENTRY_LITERAL) && entry & ENTRY_EXCEPTIONAL)
        return LOOP_AT_BAD;
    if (!take_entry(inflater, entry, &token->value))
        return LOOP_AT_BAD;
    if (is_end)
        return LOOP_AT_END_OF_BLOCK;
    if (entry & ENTRY_LITERAL) {
        token->value &= 0xFF;
        return LOOP_AT_MARGIN;
    }
    if (!find_entry(inflater, inflater->distance_table, DISTANCE_TABLE_BITS, &entry) ||
        entry & ENTRY_EXCEPTIONAL || !take_entry(inflater, entry, &token->distance))
        return LOOP_AT_BAD;
    return LOOP_AT_MARGIN;
}

/* ---- blocks ---- */

static void drop_bits_of_byte(cogpu_inflater *inflater) {
    (void)inflate_take_bits(inflater, inflater->bit_count % 8);
}

static void end_block(cogpu_inflater *inflater) {
    inflater->state = inflater->is_last_block ? INFLATE_ENDED : INFLATE_AT_HEADER;
    if (inflater->is_last_block)
        drop_bits_of_byte(inflater);
}

static bool start_stored(cogpu_inflater *inflater) {
    drop_bits_of_byte(inflater);
    if (!cogpu_inflate_need_bits(inflater, 32))
        return false;
    const uint32_t length = inflate_take_bits(inflater, 16);
    inflater->stored_left = length;
    inflater->state = INFLATE_IN_STORED;
    return (length ^ inflate_take_bits(inflater, 16)) == 0xFFFF;
}

static bool read_header(cogpu_inflater *inflater) {
    if (!cogpu_inflate_need_bits(inflater, 3))
        return false;
    inflater->is_last_block = inflate_take_bits(inflater, 1);
    switch (inflate_take_bits(inflater, 2)) {
    case 0:
        return start_stored(inflater);
    case 1:
        cogpu_inflate_make_fixed_tables(inflater);
        break;
    case 2:
        if (!cogpu_inflate_read_lengths(inflater) || !cogpu_inflate_has_complete_codes(inflater))
            return false;
        cogpu_inflate_make_tables(inflater);
        break;
    default:
        return false;
    }
    inflater->state = INFLATE_IN_CODES;
    return true;
}

#define SYMBOL      uint8_t
#define RUN         cogpu_inflate_bytes
#define TYPED(name) name##_8
#define FAST_LOOP   FOR_THIS_CPU(loop_bytes)
#include "codec/inflate_run.h"
#undef SYMBOL
#undef RUN
#undef TYPED
#undef FAST_LOOP

#define SYMBOL      uint16_t
#define RUN         cogpu_inflate_symbols
#define TYPED(name) name##_16
#define FAST_LOOP   FOR_THIS_CPU(loop_symbols)
#include "codec/inflate_run.h"

/* ---- markers ---- */

void cogpu_inflate_fill_markers(uint16_t *window) {
    for (unsigned i = 0; i < INFLATE_WINDOW; i++)
        window[i] = (uint16_t)(256 + i);
}

enum { GROUP = 32 };

static bool has_markers(const uint16_t *group) {
    uint16_t all = 0;
    for (size_t i = 0; i < GROUP; i++)
        all |= group[i];
    return all > 255;
}

/* Four symbols are one load. */
static void resolve_group(const uint16_t *group, const uint8_t *byte_of, uint8_t *to) {
    for (size_t i = 0; i < GROUP; i += 4) {
        uint64_t four;
        memcpy(&four, group + i, sizeof four);
        for (size_t k = 0; k < 4; k++)
            to[i + (COGPU_HOST_BIG_ENDIAN ? 3 - k : k)] = byte_of[four >> 16 * k & 0xFFFF];
    }
}

/* Groups without markers, of which some streams have many, are narrowed by vector code. */
void cogpu_inflate_resolve(const uint16_t *symbols, size_t count, const uint8_t *byte_of,
                           uint8_t *to) {
    size_t i = 0;
    for (; i + GROUP <= count; i += GROUP) {
        if (has_markers(symbols + i))
            resolve_group(symbols + i, byte_of, to + i);
        else
            for (size_t k = 0; k < GROUP; k++)
                to[i + k] = (uint8_t)symbols[i + k];
    }
    for (; i < count; i++)
        to[i] = byte_of[symbols[i]];
}
