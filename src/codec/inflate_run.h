/*
 * Decoding for one type of output: blocks, and tokens near the end of the input. Included by
 * inflate_chunk.c, which defines:
 *
 *     SYMBOL       type of the output
 *     RUN, TYPED   name of the function; makes names of the others
 *     FAST_LOOP    the loop over tokens for this CPU
 */

/* A token, wherever the input ends. */
static enum loop_result TYPED(decode_token)(cogpu_inflater *inflater, const SYMBOL *history,
                                            SYMBOL **out_at) {
    struct token token;
    const enum loop_result result = read_token(inflater, &token);
    SYMBOL *out = *out_at;
    if (result != LOOP_AT_MARGIN)
        return result;
    if (token.distance > (size_t)(out - history))
        return LOOP_AT_BAD;
    if (token.distance == 0)
        *out++ = (SYMBOL)token.value;
    for (size_t i = 0; token.distance > 0 && i < token.value; i++, out++)
        *out = *(out - token.distance);
    *out_at = out;
    return LOOP_AT_MARGIN;
}

static enum loop_result TYPED(decode_codes)(cogpu_inflater *inflater, const SYMBOL *history,
                                            SYMBOL **out, const SYMBOL *end) {
    enum loop_result result = LOOP_AT_MARGIN;
    while (result == LOOP_AT_MARGIN && *out < end)
        result = inflater->in_end - inflater->in >= INPUT_MARGIN
                     ? FAST_LOOP(inflater, history, out, end)
                     : TYPED(decode_token)(inflater, history, out);
    return result;
}

/* Bytes of a stored block (3.2.4): those in the bit buffer, then those of the input. */
static bool TYPED(copy_stored)(cogpu_inflater *inflater, SYMBOL **out_at, const SYMBOL *end) {
    SYMBOL *out = *out_at;
    for (; inflater->stored_left > 0 && inflater->bit_count > 0 && out < end;
         inflater->stored_left--)
        *out++ = (SYMBOL)inflate_take_bits(inflater, 8);
    while (inflater->stored_left > 0 && out < end) {
        if (inflater->in == inflater->in_end && !(inflater->more && inflater->more(inflater)))
            return false;
        size_t part = (size_t)(inflater->in_end - inflater->in);
        part = min_size(min_size(part, inflater->stored_left), (size_t)(end - out));
        for (size_t i = 0; i < part; i++)
            out[i] = inflater->in[i];
        out += part;
        inflater->in += part;
        inflater->stored_left -= (uint32_t)part;
    }
    *out_at = out;
    return true;
}

cogpu_inflate_result RUN(cogpu_inflater *inflater, const SYMBOL *history, SYMBOL **out,
                         const SYMBOL *end) {
    for (;;) {
        switch (inflater->state) {
        case INFLATE_AT_HEADER:
            if (cogpu_inflate_position(inflater) >= inflater->stop_bit)
                return INFLATE_BOUNDARY;
            if (!read_header(inflater))
                return INFLATE_BAD;
            break;
        case INFLATE_IN_STORED:
            if (!TYPED(copy_stored)(inflater, out, end))
                return INFLATE_BAD;
            if (inflater->stored_left > 0)
                return INFLATE_FULL;
            end_block(inflater);
            break;
        case INFLATE_IN_CODES:
            switch (TYPED(decode_codes)(inflater, history, out, end)) {
            case LOOP_AT_MARGIN:
                return INFLATE_FULL;
            case LOOP_AT_BAD:
                return INFLATE_BAD;
            case LOOP_AT_END_OF_BLOCK:
                end_block(inflater);
            }
            break;
        case INFLATE_ENDED:
            return INFLATE_END;
        }
    }
}
