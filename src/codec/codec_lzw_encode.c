/*
 * LZW encoder (compression 5, TIFF 6.0 section 13): Clear, codes, End of information, with the same
 * codes as libtiff.
 *
 * LZW waits for its table: the next string is known only after the last look-up. Most strings of a
 * predicted raster have one or two bytes, so pairs of bytes have a table of their own, whose index
 * does not depend on any code; only longer strings are found by hashing (code, byte). Codes are
 * stored without a branch, eight bytes at a time; the next store overwrites the rest.
 *
 * A Clear empties both tables: pairs by a new generation in the high bits of a code, the small hash
 * table by memset.
 */
#include "base/bytes.h"
#include "base/checked.h"
#include "codec/codec.h"

enum {
    CLEAR = 256,
    END = 257,
    FIRST = 258,
    TABLE_FULL = 4094, /* where libtiff clears, since old readers go wrong with 4095 */
    SEGMENT_CODES = TABLE_FULL - FIRST,
    DEVICE_PIECE = 32 << 10,
    WIDTH_MIN = 9,
    WIDTH_MAX = 12,
    CODE_MASK = 0xFFF,
    GENERATION = CODE_MASK + 1, /* one more in the high four bits of a pair */
    SLOT_BITS = 13,             /* twice the codes of a full table */
    SLOTS = 1 << SLOT_BITS
};

#define FREE UINT32_MAX /* no code of 12 bits is that high */

/* Emptied by a Clear. */
struct tables {
    uint16_t pairs[1 << 16]; /* generation and code of two bytes */
    uint32_t slots[SLOTS];   /* code << 20 | byte << 12 | the code of both */
};

typedef struct lzw_encoder {
    struct tables *tables;
    uint32_t generation;
    unsigned next, width; /* of the next code */
    uint8_t *out;
    uint64_t bits; /* that come next, from the highest on */
    unsigned bit_count;
} lzw_encoder;

static inline void store_code_bits(uint8_t *out, uint64_t bits) {
    if (!COGPU_HOST_BIG_ENDIAN)
        bits = __builtin_bswap64(bits);
    memcpy(out, &bits, sizeof bits);
}

static inline void put_code(lzw_encoder *e, unsigned code) {
    e->bits |= (uint64_t)code << (64 - e->width - e->bit_count);
    e->bit_count += e->width;
    store_code_bits(e->out, e->bits);
    e->out += e->bit_count >> 3;
    e->bits <<= e->bit_count & ~7u;
    e->bit_count &= 7;
}

static void start_generation(lzw_encoder *e) {
    e->generation = (e->generation + GENERATION) & UINT16_MAX;
    if (e->generation == 0) {
        memset(e->tables->pairs, 0, sizeof e->tables->pairs);
        e->generation = GENERATION;
    }
    memset(e->tables->slots, 0xFF, sizeof e->tables->slots);
    e->next = FIRST;
    e->width = WIDTH_MIN;
}

/* Writes a code after the caller has added an entry to the table. */
static inline void put_and_grow(lzw_encoder *e, unsigned code) {
    put_code(e, code);
    e->next++;
    e->width += e->next >> e->width; /* 1 where it no longer fits */
    if (__builtin_expect(e->next == TABLE_FULL, 0)) {
        put_code(e, CLEAR);
        start_generation(e);
    }
}

/* The slot of (code, byte), or the free slot for it. */
static inline uint32_t *find_slot(struct tables *tables, uint32_t key) {
    uint32_t slot = key * UINT32_C(0x9E3779B1) >> (32 - SLOT_BITS);
    while (tables->slots[slot] != FREE && tables->slots[slot] >> WIDTH_MAX != key)
        slot = (slot + 1) % SLOTS;
    return &tables->slots[slot];
}

/* Extends the string of `code` while the table has it; adds the first that it does not have. */
static inline unsigned extend_string(lzw_encoder *e, unsigned code, const uint8_t **in,
                                     const uint8_t *in_end) {
    for (; *in < in_end; ++*in) {
        const uint32_t key = code << 8 | **in;
        uint32_t *slot = find_slot(e->tables, key);
        if (*slot == FREE) {
            *slot = key << WIDTH_MAX | e->next;
            break;
        }
        code = *slot & CODE_MASK;
    }
    return code;
}

/* Works on a copy of the state, which the compiler keeps in registers. */
static void put_all(lzw_encoder *encoder, const uint8_t *in, const uint8_t *in_end) {
    lzw_encoder e = *encoder;
    while (in_end - in >= 2) {
        uint16_t *pair = &e.tables->pairs[load_u16(in, true)];
        unsigned code = *in++;
        if (*pair < e.generation) {
            *pair = (uint16_t)(e.generation | e.next);
        } else {
            in++;
            code = extend_string(&e, *pair & CODE_MASK, &in, in_end);
        }
        put_and_grow(&e, code);
    }
    if (in < in_end)
        put_and_grow(&e, *in);
    *encoder = e;
}

static cogpu_status encode_lzw(cogpu_codec_state *state, const cogpu_encoding *encoding,
                               const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                               size_t *got, cogpu_error *error) {
    (void)encoding, (void)out_bytes;
    lzw_encoder e = {.tables = cogpu_codec_work(state, sizeof(struct tables)), .out = out};
    if (!e.tables)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for the LZW table");
    e.generation = UINT16_MAX & ~CODE_MASK; /* the last: the next one begins anew */
    start_generation(&e);
    put_code(&e, CLEAR);
    put_all(&e, in, in + in_bytes);
    put_code(&e, END);
    *got = (size_t)(e.out - out) + (e.bit_count > 0);
    return COGPU_OK;
}

/* A code of the greatest width for each byte, a Clear after each full table (on a GPU after each of
 * its parts), and the last store. */
static uint64_t bound_lzw(const cogpu_encoding *encoding, uint64_t in_bytes) {
    (void)encoding;
    const uint64_t codes = in_bytes + in_bytes / SEGMENT_CODES + in_bytes / DEVICE_PIECE + 2;
    return divide_up(codes, 2) * 3 + sizeof(uint64_t);
}

const cogpu_encoder cogpu_encoder_lzw = {.encode = encode_lzw, .bound = bound_lzw};
