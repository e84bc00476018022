/*
 * The loop over tokens of a deflate block, for one type of output and one instruction set.
 * Included several times by inflate_chunk.c, which defines:
 *
 *     SYMBOL        type of the output: uint8_t, or uint16_t for symbols
 *     LOOP          name of the function
 *     LOOP_TARGET   its attribute: the instruction set
 *     FIRST_BITS    the lowest bits of a number, as many as the lowest byte of another says
 *
 * As in libdeflate, the bit buffer is refilled without a branch by loading 8 bytes that may
 * partly be there already; up to four literals are decoded between two refills, and the entry of
 * the next token is loaded before a match is copied.
 *
 * Needs INPUT_MARGIN bytes of input and space for a token at the start of each turn. Returns at the
 * end of the block, at an invalid token, or where a margin is reached.
 */

LOOP_TARGET static enum loop_result LOOP(cogpu_inflater *inflater, const SYMBOL *history,
                                         SYMBOL **out_at, const SYMBOL *end) {
    const uint32_t *const literals = inflater->literal_table;
    const uint32_t *const distances = inflater->distance_table;
    const uint8_t *in = inflater->in;
    const uint8_t *const in_limit = inflater->in_end - INPUT_MARGIN;
    SYMBOL *out = *out_at;
    uint64_t bits = inflater->bits, before;
    uint32_t count = inflater->bit_count; /* in its lowest byte */
    enum loop_result result = LOOP_AT_MARGIN;
    uint32_t entry;

    REFILL();
    entry = literals[bits & LOW_BITS(LITERAL_TABLE_BITS)];
    while (in <= in_limit && out < end) {
        CONSUME(entry);
        if (entry & ENTRY_LITERAL) {
            *out++ = (uint8_t)(entry >> 16);
            entry = literals[bits & LOW_BITS(LITERAL_TABLE_BITS)];
            CONSUME(entry);
            if (entry & ENTRY_LITERAL) {
                *out++ = (uint8_t)(entry >> 16);
                entry = literals[bits & LOW_BITS(LITERAL_TABLE_BITS)];
                CONSUME(entry);
                if (entry & ENTRY_LITERAL) {
                    *out++ = (uint8_t)(entry >> 16);
                    entry = literals[bits & LOW_BITS(LITERAL_TABLE_BITS)];
                    CONSUME(entry);
                    if (entry & ENTRY_LITERAL) {
                        *out++ = (uint8_t)(entry >> 16);
                        REFILL();
                        entry = literals[bits & LOW_BITS(LITERAL_TABLE_BITS)];
                        continue;
                    }
                }
            }
        }
        if (__builtin_expect((entry & ENTRY_EXCEPTIONAL) != 0, 0)) {
            if (entry & ENTRY_SUBTABLE) {
                entry = literals[(entry >> 16) + (bits & LOW_BITS(entry >> 8 & 15))];
                CONSUME(entry);
                if (entry & ENTRY_LITERAL) {
                    *out++ = (uint8_t)(entry >> 16);
                    REFILL();
                    entry = literals[bits & LOW_BITS(LITERAL_TABLE_BITS)];
                    continue;
                }
            }
            if (entry & ENTRY_EXCEPTIONAL) {
                result = entry & ENTRY_END_OF_BLOCK ? LOOP_AT_END_OF_BLOCK : LOOP_AT_BAD;
                break;
            }
        }
        const size_t length = VALUE(entry);
        entry = distances[bits & LOW_BITS(DISTANCE_TABLE_BITS)];
        if (__builtin_expect((uint8_t)count < 2 * CODE_BITS_MAX, 0))
            REFILL();
        if (__builtin_expect((entry & ENTRY_EXCEPTIONAL) != 0, 0)) {
            if (entry & ENTRY_SUBTABLE) {
                CONSUME(entry);
                entry = distances[(entry >> 16) + (bits & LOW_BITS(entry >> 8 & 15))];
            }
            if (entry & ENTRY_EXCEPTIONAL) {
                result = LOOP_AT_BAD;
                break;
            }
        }
        CONSUME(entry);
        const size_t distance = VALUE(entry);
        REFILL();
        entry = literals[bits & LOW_BITS(LITERAL_TABLE_BITS)];
        if (__builtin_expect(distance > (size_t)(out - history), 0)) {
            result = LOOP_AT_BAD;
            break;
        }
        out = COPY_MATCH(out, distance, length);
    }
    inflater->in = in;
    inflater->bit_count = (uint8_t)count;
    inflater->bits = bits & LOW_BITS((uint8_t)count);
    *out_at = out;
    return result;
}
