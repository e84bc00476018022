/*
 * The interleaved inflate on damaged and hostile streams: it decodes none that libdeflate refuses,
 * touches no byte beyond input and output, and leaves the other lanes alone. Some streams it leaves
 * to libdeflate on purpose: `left_to_libdeflate`. A stream that is longer than the block is refused
 * by both; codec_deflate.c decodes it by another decoder.
 */
#include "lane_streams.h"

#if HAVE_INFLATE_LANES

#include "support/streams.h"

enum { SAMPLES = 5, CONTENT_BYTES = 1500 };

/* ---- damage --------------------------------------------------------------------------------- */

/* Streams of all kinds of blocks, to be damaged. */
static lane_stream sample_stream(int number) {
    static uint8_t content[CONTENT_BYTES];
    struct token tokens[200];
    fill_content(content, CONTENT_BYTES, number == 0 ? PREDICTED : number == 1 ? TEXT : NOISE);
    if (number < 2)
        return content_stream(content, CONTENT_BYTES, number ? 9 : 6);
    struct deflate_writer writer = begin_deflate();
    for (uint32_t i = 0; i < 200; i++)
        tokens[i] = i < 99 || draw(2) ? (struct token){0, draw(256)}
                                      : (struct token){3 + draw(40), 1 + draw(99)};
    put_stored(&writer, false, content, 40);
    if (number == 4) {
        for (uint32_t i = 0; i < 40; i++) {
            put_stored(&writer, false, content, i % 20);
            put_deflate_block(&writer, false, i % 3 ? FIXED : DYNAMIC, tokens, i % 3, 15);
        }
    }
    put_deflate_block(&writer, false, number == 2 ? FIXED : DYNAMIC, tokens, 200, 15);
    put_stored(&writer, true, content, number == 3 ? 40 : 0);
    return written_stream(&writer, 0);
}

static size_t next_sample(size_t at, size_t count) {
    enum { NEAR = 40, STEP = 7 };
    return is_deep_run() || at < NEAR || at + STEP + NEAR > count ? at + 1 : at + STEP;
}

/* Cut off at each byte; the second time there are an Adler-32 and other bytes after the end. */
static void truncated(void) {
    for (int number = 0; number < SAMPLES; number++) {
        const lane_stream whole = sample_stream(number);
        for (size_t bytes = 0; bytes < whole.in_bytes; bytes = next_sample(bytes, whole.in_bytes)) {
            lane_stream cut = whole;
            cut.in_bytes = bytes;
            CHECK(quick_outcome_of(&cut) == REFUSED);
            if (bytes < 2)
                continue;
            cut.in = wrap_deflate(whole.in + 2, bytes - 2, whole.capacity, &cut.in_bytes);
            CHECK(quick_outcome_of(&cut) == (bytes + 4 < whole.in_bytes ? REFUSED : DECODED));
            free_stream(&cut);
        }
        lane_stream stream = whole;
        free_stream(&stream);
    }
}

/* Each bit, and then again with the Adler-32 of what comes out, if libdeflate decodes it. */
static void bits_flipped(void) {
    for (int number = 0; number < SAMPLES; number++) {
        lane_stream stream = sample_stream(number);
        uint8_t *in = (uint8_t *)(uintptr_t)stream.in;
        const size_t bits = 8 * stream.in_bytes;
        uint32_t decoded = 0, unnoticed = 0;
        for (size_t bit = 0; bit < bits; bit = next_sample(bit, bits)) {
            in[bit / 8] ^= (uint8_t)(1u << bit % 8);
            unnoticed += quick_outcome_of(&stream) != REFUSED;
            lane_stream wrapped = {.capacity = stream.capacity + 600};
            wrapped.in =
                wrap_deflate(in + 2, stream.in_bytes - 6, wrapped.capacity, &wrapped.in_bytes);
            decoded += quick_outcome_of(&wrapped) == DECODED;
            free_stream(&wrapped);
            in[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        CHECK(decoded > 10);
        CHECK(unnoticed < 30); /* of the bits before stored lengths */
        CHECK(quick_outcome_of(&stream) == DECODED);
        free_stream(&stream);
    }
}

static void bytes_appended(void) {
    for (int number = 0; number < SAMPLES; number++) {
        lane_stream stream = sample_stream(number);
        uint8_t *longer = calloc(1, stream.in_bytes + 100);
        memcpy(longer, stream.in, stream.in_bytes);
        for (size_t more = 0; more <= 100; more += 3) {
            lane_stream appended = stream;
            appended.in = longer;
            appended.in_bytes += more;
            CHECK(quick_outcome_of(&appended) == DECODED);
        }
        free(longer);
        free_stream(&stream);
    }
}

/* Blocks that are smaller and larger than the stream. */
static void capacities(void) {
    for (int number = 0; number < SAMPLES; number++) {
        const lane_stream whole = sample_stream(number);
        for (size_t less = 1; less <= whole.capacity; less += less < 100 ? 1 : 101) {
            lane_stream smaller = whole;
            smaller.capacity -= less;
            CHECK(quick_outcome_of(&smaller) == REFUSED);
        }
        for (size_t more = 0; more < 200; more += 7) {
            lane_stream larger = whole;
            larger.capacity += more;
            CHECK(quick_outcome_of(&larger) == DECODED);
        }
        lane_stream stream = whole;
        free_stream(&stream);
    }
}

/*
 * Steps that use the most input: literals with codes of 11 bits, then a match whose codes and extra
 * bits have 44. Or steps that make the most output: codes of few bits, a match of 16 bytes.
 */
static lane_stream stream_of_large_steps(bool is_large_input, uint32_t literals_of_step) {
    enum { STEPS = 400, LEAD_BYTES = 33000 };
    static const uint16_t symbols[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 'a', 20, 21, 22, 265, 256};
    static const uint8_t distance_symbols[16] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                 8, 9, 10, 11, 12, 13, 29, 28};
    static uint8_t lead[LEAD_BYTES];
    struct huffman literals = {0}, distances = {0};
    struct token tokens[3 * STEPS];
    uint32_t count = 0;
    struct deflate_writer writer = begin_deflate();
    fill_content(lead, LEAD_BYTES, NOISE);
    put_stored(&writer, false, lead, LEAD_BYTES);
    for (uint32_t i = 0; i < 16 && is_large_input; i++) {
        literals.lengths[symbols[i]] = (uint8_t)(i < 15 ? i + 1 : 15);
        distances.lengths[distance_symbols[i]] = (uint8_t)(i < 15 ? i + 1 : 15);
    }
    if (!is_large_input) {
        literals.lengths['a'] = 1;
        literals.lengths[256] = literals.lengths[267] = 2;
        distances.lengths[8] = distances.lengths[9] = 1;
    }
    while (count + literals_of_step < 3 * STEPS) {
        for (uint32_t k = 0; k < literals_of_step; k++)
            tokens[count++] = (struct token){0, 'a'};
        tokens[count++] = is_large_input ? (struct token){11 + draw(2), 24577 + draw(8192)}
                                         : (struct token){16, 17 + draw(16)};
    }
    put_block_of_codes(&writer, true, &literals, &distances, tokens, count);
    end_deflate(&writer);
    for (int i = 0; i < 20000 && !is_large_input; i++) /* the output ends first */
        put_bits(&writer, 0, 8);
    return written_stream(&writer, 0);
}

/* Cut off, or in a block that is too small, so that nothing ends the steps but their number. */
static void largest_steps(void) {
    for (uint32_t literals = 0; literals <= 2; literals++) {
        lane_stream stream = stream_of_large_steps(true, literals);
        const lane_stream whole = stream;
        CHECK(outcome_of(&stream) == DECODED);
        stream.capacity += 20000;
        for (; stream.in_bytes + 3000 > whole.in_bytes; stream.in_bytes -= 61)
            CHECK(quick_outcome_of(&stream) ==
                  (stream.in_bytes == whole.in_bytes ? DECODED : REFUSED));
        free_stream(&stream);

        stream = stream_of_large_steps(false, literals);
        CHECK(outcome_of(&stream) == DECODED);
        for (int i = 0; i < 60; i++) {
            stream.capacity -= 61;
            CHECK(quick_outcome_of(&stream) == REFUSED);
        }
        free_stream(&stream);
    }
}

static void wrong_checksums(void) {
    lane_stream stream = sample_stream(0);
    uint8_t *sum = (uint8_t *)(uintptr_t)stream.in + stream.in_bytes - 4;
    for (int bit = 0; bit < 32; bit++) {
        sum[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK(quick_outcome_of(&stream) == REFUSED);
        sum[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    memset(sum, 0, 4);
    CHECK(outcome_of(&stream) == REFUSED);
    free_stream(&stream);
}

/* All values of the two bytes of the zlib header (RFC 1950 2.2). */
static void zlib_headers(void) {
    uint8_t in[] = {0, 0, 3, 0, 0, 0, 0, 1}; /* no bytes, in a fixed block */
    uint32_t decoded = 0;
    for (uint32_t header = 0; header < 0x10000; header++) {
        lane_stream stream = {.in = in, .in_bytes = sizeof in, .capacity = 3};
        in[0] = (uint8_t)(header >> 8);
        in[1] = (uint8_t)header;
        const char *rule = lanes_break_rule(&stream, 1, header & 1, LANE_HEAP);
        CHECK(!rule);
        CHECK(stream.is_decoded == stream.library_decodes);
        decoded += stream.is_decoded;
    }
    CHECK(decoded == 8 * 4); /* eight window sizes, four levels */
}

/* ---- hostile headers ------------------------------------------------------------------------ */

/* The outcome of what is written. Blocks have a few bytes more than the streams that decode. */
static enum outcome written_outcome(struct deflate_writer *writer) {
    enum { CAPACITY = 700 };
    lane_stream stream = written_stream(writer, CAPACITY);
    stream.capacity += 50;
    const enum outcome outcome = outcome_of(&stream);
    free_stream(&stream);
    return outcome;
}

/* Enough bytes before a block that its header is read in steps, not at the end of the input. */
static struct deflate_writer begin_with_literals(bool is_long) {
    struct deflate_writer writer = begin_deflate();
    struct token tokens[300];
    for (uint32_t i = 0; i < 300; i++)
        tokens[i] = (struct token){0, draw(256)};
    if (is_long)
        put_deflate_block(&writer, false, FIXED, tokens, 300, 15);
    return writer;
}

/* A whole stream with a last block of such codes: the literals 'a', then the end. */
static enum outcome outcome_of_codes(const struct huffman *literals,
                                     const struct huffman *distances) {
    enum outcome outcomes[2];
    for (int is_long = 0; is_long < 2; is_long++) {
        const struct token tokens[] = {{0, 'a'}, {0, 'a'}, {0, 'a'}};
        struct huffman literal_code = *literals, distance_code = *distances;
        struct deflate_writer writer = begin_with_literals(is_long);
        put_block_of_codes(&writer, true, &literal_code, &distance_code, tokens, 3);
        for (int i = 0; i < 100; i++)
            put_bits(&writer, draw(256), 8);
        outcomes[is_long] = written_outcome(&writer);
    }
    CHECK(outcomes[0] == outcomes[1]);
    return outcomes[0];
}

static void sets_of_code_lengths(void) {
    struct huffman literals = {0}, distances = {0}, broken;
    literals.lengths['a'] = 1;
    literals.lengths[256] = literals.lengths[257] = 2;
    distances.lengths[0] = distances.lengths[1] = 1;
    CHECK(outcome_of_codes(&literals, &distances) == DECODED);

    broken = literals; /* too many codes */
    broken.lengths['b'] = 15;
    CHECK(outcome_of_codes(&broken, &distances) == REFUSED);
    broken.lengths['b'] = 1;
    CHECK(outcome_of_codes(&broken, &distances) == REFUSED);
    broken = literals; /* too few */
    broken.lengths[257] = 3;
    CHECK(outcome_of_codes(&broken, &distances) == REFUSED);
    broken = literals; /* no end of block */
    broken.lengths[256] = 0;
    broken.lengths['b'] = 2;
    CHECK(outcome_of_codes(&broken, &distances) == REFUSED);
    broken = (struct huffman){0}; /* no code at all; a single one, of a literal or of two bits */
    CHECK(outcome_of_codes(&broken, &distances) == REFUSED);
    broken.lengths['a'] = 1;
    CHECK(outcome_of_codes(&broken, &distances) == REFUSED);
    broken = (struct huffman){0};
    broken.lengths[256] = 2;
    CHECK(outcome_of_codes(&broken, &distances) == REFUSED);

    broken = distances;
    broken.lengths[2] = 15;
    CHECK(outcome_of_codes(&literals, &broken) == REFUSED);
    broken.lengths[2] = broken.lengths[1] = 0;
    broken.lengths[0] = 2;
    CHECK(outcome_of_codes(&literals, &broken) == REFUSED);
    broken.lengths[0] = 1;
    CHECK(outcome_of_codes(&literals, &broken) == DECODED);
    broken.lengths[0] = 0;
    CHECK(outcome_of_codes(&literals, &broken) == DECODED);
    for (uint32_t i = 0; i < 32; i++)
        broken.lengths[i] = 4;
    CHECK(outcome_of_codes(&literals, &broken) == REFUSED);
}

/* More symbols than deflate has, which no token uses: libdeflate decodes such streams, zlib refuses
 * the headers, and lanes leave them to libdeflate. */
static void symbols_beyond_the_last(void) {
    struct huffman literals = {0}, distances = {0};
    for (uint32_t symbol = 285; symbol < 288; symbol++) {
        memset(&literals, 0, sizeof literals);
        literals.lengths['a'] = 1;
        literals.lengths[256] = literals.lengths[symbol] = 2;
        distances.lengths[0] = distances.lengths[1] = 1;
        CHECK(outcome_of_codes(&literals, &distances) == (symbol < 286 ? DECODED : LEFT));
    }
    literals.lengths[287] = 0;
    literals.lengths[257] = 2;
    for (uint32_t symbol = 28; symbol < 32; symbol++) {
        memset(&distances, 0, sizeof distances);
        distances.lengths[0] = distances.lengths[symbol] = 1;
        CHECK(outcome_of_codes(&literals, &distances) == (symbol < 30 ? DECODED : LEFT));
    }
}

/* A dynamic header (RFC 1951 3.2.7), with lengths of the precode in the order of its symbols. */
static void put_precode(struct deflate_writer *writer, uint32_t hlit, uint32_t hdist,
                        const uint8_t *lengths, struct huffman *precode) {
    static const uint8_t order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                      11, 4,  12, 3, 13, 2, 14, 1, 15};
    memset(precode, 0, sizeof *precode);
    memcpy(precode->lengths, lengths, 19);
    assign_codes(precode);
    put_bits(writer, 5, 3);
    put_bits(writer, hlit - 257, 5);
    put_bits(writer, hdist - 1, 5);
    put_bits(writer, 15, 4);
    for (int i = 0; i < 19; i++)
        put_bits(writer, lengths[order[i]], 3);
}

static void put_length_symbol(struct deflate_writer *writer, const struct huffman *precode,
                              uint32_t symbol, uint32_t extra) {
    put_bits(writer, precode->codes[symbol], precode->lengths[symbol]);
    put_bits(writer, extra, symbol == 16 ? 2 : symbol == 17 ? 3 : symbol == 18 ? 7 : 0);
}

/* Code lengths: `first`, a symbol of the precode; then zeros, and literals 'a', 'b' of one bit, or
 * the end of block in place of 'b'; a run at the end that is `beyond` longer than it should be. */
static enum outcome outcome_of_lengths(uint32_t first, uint32_t last_run, uint32_t beyond,
                                       bool has_end) {
    static const uint8_t lengths[19] = {[0] = 2, [1] = 2, [16] = 3, [17] = 3, [18] = 2};
    enum outcome outcomes[2];
    for (int is_long = 0; is_long < 2; is_long++) {
        struct huffman precode;
        struct deflate_writer writer = begin_with_literals(is_long);
        const uint32_t hdist = last_run == 16 ? 4 : last_run == 17 ? 10 : 30;
        uint32_t at = 0;
        put_precode(&writer, 257, hdist, lengths, &precode);
        put_length_symbol(&writer, &precode, first, 0);
        at += first == 16 || first == 17 ? 3 : first == 18 ? 11 : 1;
        for (; at < 257; at++)
            put_length_symbol(&writer, &precode, at == 97 || at == (has_end ? 256 : 98) ? 1 : 0, 0);
        if (last_run != 17 && last_run != 18) /* a 0 that is repeated */
            put_length_symbol(&writer, &precode, 0, 0);
        put_length_symbol(&writer, &precode, last_run,
                          hdist -
                              (last_run == 18   ? 11
                               : last_run == 17 ? 3
                                                : 4) +
                              beyond);
        put_bits(&writer, 0, 2);
        put_bits(&writer, 1, 1);
        for (int i = 0; i < 50; i++)
            put_bits(&writer, 0, 8);
        outcomes[is_long] = written_outcome(&writer);
    }
    CHECK(outcomes[0] == outcomes[1]);
    return outcomes[0];
}

static void runs_of_code_lengths(void) {
    for (uint32_t run = 16; run <= 18; run++) {
        CHECK(outcome_of_lengths(0, run, 0, true) == DECODED);
        CHECK(outcome_of_lengths(0, run, 0, false) == REFUSED);
        CHECK(outcome_of_lengths(run, run, 0, true) == (run == 16 ? REFUSED : DECODED));
        /* zlib refuses runs over the end, libdeflate 1.14 ignores what is too much. */
        for (uint32_t beyond = 1; beyond < (run == 16 ? 3u : run == 17 ? 1u : 100u); beyond += 9)
            CHECK(outcome_of_lengths(0, run, beyond, true) != DECODED);
    }
}

/* All sets of lengths for three symbols of the precode, of which few are complete. */
static void precodes(void) {
    for (uint32_t i = 0; i < 8 * 8 * 8; i++) {
        uint8_t lengths[19] = {0};
        struct huffman precode;
        struct deflate_writer writer = begin_deflate();
        lengths[0] = i % 8;
        lengths[1] = i / 8 % 8;
        lengths[18] = (uint8_t)(i / 64);
        put_precode(&writer, 257, 1, lengths, &precode);
        put_length_symbol(&writer, &precode, 18, 127 - 11);
        put_length_symbol(&writer, &precode, 1, 0);
        put_length_symbol(&writer, &precode, 18, 128 - 11);
        put_length_symbol(&writer, &precode, 1, 0);
        put_length_symbol(&writer, &precode, 0, 0);
        put_bits(&writer, 8, 4);
        (void)written_outcome(&writer);
    }
}

/* ---- hostile blocks ------------------------------------------------------------------------- */

static void block_headers(void) {
    for (int is_long = 0; is_long < 2; is_long++)
        for (uint32_t is_last = 0; is_last < 2; is_last++) {
            struct deflate_writer writer = begin_with_literals(is_long);
            put_bits(&writer, is_last | 6, 3); /* type 3 */
            for (int i = 0; i < 100; i++)
                put_bits(&writer, draw(256), 8);
            CHECK(written_outcome(&writer) == REFUSED);

            for (uint32_t bit = 0; bit < 32; bit++) { /* a stored length and its complement */
                writer = begin_with_literals(is_long);
                put_stored(&writer, true, (const uint8_t *)"abcdefghijklmnop", 16);
                end_deflate(&writer);
                writer.out[writer.bytes - 20 + bit / 8] ^= (uint8_t)(1u << bit % 8);
                CHECK(written_outcome(&writer) == REFUSED);
            }
            writer = begin_with_literals(is_long); /* no last block */
            put_stored(&writer, false, (const uint8_t *)"abc", 3);
            CHECK(written_outcome(&writer) == REFUSED);
        }
}

/* A distance that is one too large, or as large as can be, at the start and where steps are taken:
 * each length, and distances by all three ways to decode them. */
static void distances_before_the_start(void) {
    static const uint32_t places[] = {0, 1, 2, 5, 15, 16, 17, 30, 63, 64, 100, 1000, 5000, 24576};
    for (uint32_t i = 0; i < 14 * 6; i++) {
        const uint32_t place = places[i / 6], distance = place + 1 + (i % 3 == 2 ? 5000 : 0);
        static uint8_t content[CONTENT_MAX];
        struct token tokens[300];
        struct deflate_writer writer = begin_deflate();
        fill_content(content, place, NOISE);
        if (place > 0)
            put_stored(&writer, false, content, place);
        tokens[0] = (struct token){3 + draw(20), i % 3 == 0 ? place : distance};
        for (uint32_t k = 1; k < 300; k++)
            tokens[k] = (struct token){0, draw(256)};
        if (i % 3 == 0 && place == 0)
            tokens[0] = (struct token){0, 0};
        put_deflate_block(&writer, true, i % 6 < 3 ? FIXED : DYNAMIC, tokens, 300, 15);
        lane_stream stream = written_stream(&writer, place + 400);
        CHECK(outcome_of(&stream) == (i % 3 == 0 ? DECODED : REFUSED));
        free_stream(&stream);
    }
}

/* ---- what lanes leave to libdeflate --------------------------------------------------------- */

/* A fixed block: literals, one length symbol and one distance symbol, whose extra bits are 0. */
static enum outcome outcome_of_symbols(uint32_t length_symbol, uint32_t distance_symbol) {
    static uint8_t content[40000];
    struct huffman literals = {0}, distances = {0};
    struct deflate_writer writer = begin_deflate();
    uint32_t extra;
    fill_content(content, sizeof content, NOISE);
    put_stored(&writer, false, content, sizeof content);
    for (uint32_t i = 0; i < 288; i++)
        literals.lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    memset(distances.lengths, 5, 32);
    assign_codes(&literals);
    assign_codes(&distances);
    put_bits(&writer, 3, 3);
    put_bits(&writer, literals.codes[length_symbol], literals.lengths[length_symbol]);
    (void)base_of_length(length_symbol < 286 ? length_symbol : 285, &extra);
    put_bits(&writer, 0, extra);
    put_bits(&writer, distances.codes[distance_symbol], distances.lengths[distance_symbol]);
    (void)base_of_distance(distance_symbol < 30 ? distance_symbol : 29, &extra);
    put_bits(&writer, 0, extra);
    put_bits(&writer, literals.codes[256], literals.lengths[256]);
    for (int i = 0; i < 60; i++)
        put_bits(&writer, 0, 8);
    lane_stream stream = written_stream(&writer, sizeof content + 400);
    const enum outcome outcome = outcome_of(&stream);
    free_stream(&stream);
    return outcome;
}

/* Streams that RFC 1951 does not allow. zlib refuses them as well. */
static void left_to_libdeflate(void) {
    CHECK(outcome_of_symbols(285, 29) == DECODED);
    CHECK(outcome_of_symbols(286, 0) == LEFT); /* as 285 */
    CHECK(outcome_of_symbols(287, 29) == LEFT);
    CHECK(outcome_of_symbols(257, 30) == LEFT); /* as 29 */
    CHECK(outcome_of_symbols(285, 31) == LEFT);

    struct huffman literals = {0}, none = {0}; /* a match, but no code for its distance: 1 */
    literals.lengths['a'] = 1;
    literals.lengths[256] = literals.lengths[257] = 2;
    struct deflate_writer writer = begin_deflate();
    assign_codes(&literals);
    put_bits(&writer, 5, 3);
    put_header(&writer, &literals, 258, &none, 1);
    put_bits(&writer, literals.codes['a'], 1);
    put_bits(&writer, literals.codes[257], 2);
    put_bits(&writer, 0, 1);
    put_bits(&writer, literals.codes[256], 2);
    CHECK(written_outcome(&writer) == LEFT);
}

TESTS(inflate_lanes_damaged) {
    if (lanes_can_run()) {
        RUN(truncated);
        RUN(bits_flipped);
        RUN(bytes_appended);
        RUN(capacities);
        RUN(largest_steps);
        RUN(wrong_checksums);
        RUN(zlib_headers);
        RUN(sets_of_code_lengths);
        RUN(symbols_beyond_the_last);
        RUN(runs_of_code_lengths);
        RUN(precodes);
        RUN(block_headers);
        RUN(distances_before_the_start);
        RUN(left_to_libdeflate);
        free_neighbours();
    }
    return FINISH();
}

#else
TESTS(inflate_lanes_damaged) {
    return FINISH();
}
#endif
