/*
 * Where a block of a deflate stream may begin.
 *
 * Three filters, each of which leaves few positions to the next:
 *
 *   type, HLIT, HDIST   64 positions at once, by shifted copies of the input: one in 9 is left
 *   precode             its Kraft sum by a table: one in about 500
 *   all code lengths    both codes have to be complete: of noise, next to none
 */
#include "codec/inflate_chunk.h"

#include "base/bytes.h"

#include <string.h>

/* 128 for a complete precode (RFC 1951, 3.2.7): the sum of 128 >> length. By three lengths. */
#define SHARE(length) ((length) ? 128 >> (length) : 0)
#define SHARES_1(sum)                                                                              \
    (sum) + SHARE(0), (sum) + SHARE(1), (sum) + SHARE(2), (sum) + SHARE(3), (sum) + SHARE(4),      \
        (sum) + SHARE(5), (sum) + SHARE(6), (sum) + SHARE(7)
#define SHARES_2(sum)                                                                              \
    SHARES_1((sum) + SHARE(0)), SHARES_1((sum) + SHARE(1)), SHARES_1((sum) + SHARE(2)),            \
        SHARES_1((sum) + SHARE(3)), SHARES_1((sum) + SHARE(4)), SHARES_1((sum) + SHARE(5)),        \
        SHARES_1((sum) + SHARE(6)), SHARES_1((sum) + SHARE(7))
static const uint8_t precode_shares[512] = {
    SHARES_2(SHARE(0)), SHARES_2(SHARE(1)), SHARES_2(SHARE(2)), SHARES_2(SHARE(3)),
    SHARES_2(SHARE(4)), SHARES_2(SHARE(5)), SHARES_2(SHARE(6)), SHARES_2(SHARE(7))};

enum {
    HEADER_BITS = 3 + 5 + 5 + 4,
    PRECODE_BITS_MAX = 19 * 3,
    /* Bytes that the filters read from the byte of a position on. */
    FILTER_BYTES = 24
};

/* A mask of the 51 or more lowest bits of `w` where a block may begin that is not the last, has
 * dynamic codes (type 10), and HLIT and HDIST that are not 30 or 31. */
static uint64_t filter_positions(uint64_t w) {
    const uint64_t two = w & w >> 1, four = two & two >> 2; /* four ones from here on */
    return ~w & ~(w >> 1) & w >> 2 & ~(four >> 4) & ~(four >> 9);
}

/* The 64 bits from a bit position on. */
static uint64_t bits_at(const uint8_t *in, uint64_t bit) {
    const uint8_t *from = in + bit / 8;
    const unsigned shift = bit % 8;
    return load_u64(from, false) >> shift | (uint64_t)from[8] << 1 << (63 - shift);
}

static bool has_complete_precode(const uint8_t *in, uint64_t bit) {
    const uint64_t next = bits_at(in, bit + HEADER_BITS - 4); /* HCLEN, and 60 bits of lengths */
    const unsigned count = (unsigned)(next & 15) + 4;
    const uint64_t lengths = next >> 4 & ((1ull << 3 * count) - 1);
    unsigned sum = 0;
    for (unsigned i = 0; i < PRECODE_BITS_MAX; i += 9)
        sum += precode_shares[lengths >> i & 511];
    return sum == 128;
}

static bool has_complete_codes(const uint8_t *in, size_t bytes, uint64_t bit,
                               cogpu_inflater *inflater) {
    inflater->in = in + bit / 8;
    inflater->in_end = in + bytes;
    inflater->bits = 0;
    inflater->bit_count = 0;
    if (!cogpu_inflate_need_bits(inflater, 16))
        return false;
    (void)inflate_take_bits(inflater, bit % 8 + 3);
    return cogpu_inflate_read_lengths(inflater) && cogpu_inflate_has_complete_codes(inflater);
}

uint64_t cogpu_inflate_search(const uint8_t *in, size_t bytes, uint64_t bit, uint64_t end_bit) {
    enum { POSITIONS = 48 }; /* of which a load has all bits that the first filter needs */
    cogpu_inflater inflater;
    inflater.more = NULL;
    if (bytes < FILTER_BYTES)
        return UINT64_MAX;
    const uint64_t last = (uint64_t)(bytes - FILTER_BYTES) * 8;
    if (end_bit > last)
        end_bit = last;
    for (; bit < end_bit; bit += POSITIONS) {
        uint64_t found = filter_positions(bits_at(in, bit)) & ((1ull << POSITIONS) - 1);
        for (; found; found &= found - 1) {
            const uint64_t here = bit + (unsigned)__builtin_ctzll(found);
            if (here < end_bit && has_complete_precode(in, here) &&
                has_complete_codes(in, bytes, here, &inflater))
                return here;
        }
    }
    return UINT64_MAX;
}
