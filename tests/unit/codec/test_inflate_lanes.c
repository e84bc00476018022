/*
 * The interleaved inflate on valid streams: it decodes each one, as libdeflate does, whatever its
 * codes, tokens and blocks are, and whatever the other lanes decode. test_inflate_lanes_damaged.c
 * has the others.
 */
#include "lane_streams.h"

#if HAVE_INFLATE_LANES

#include "support/streams.h"

#if HAVE_ZLIB
#include <zlib.h>
#endif

static uint8_t content[CONTENT_MAX];

static void check_content(size_t bytes, int level) {
    lane_stream stream = content_stream(content, bytes, level);
    CHECK(quick_outcome_of(&stream) == DECODED);
    free_stream(&stream);
}

static void libdeflate_levels(void) {
    static const uint32_t sizes[] = {0,  1,  2,   15,  16,   17,   63,   64,    65,    80,
                                     97, 98, 255, 256, 1000, 4097, 9000, 33000, 70000, CONTENT_MAX};
    const uint32_t count = sizeof sizes / sizeof *sizes;
    for (uint32_t i = 0; i < count; i++)
        for (int kind = 0; kind < CONTENTS; kind++) {
            const uint32_t level_step = is_deep_run() ? 1 : sizes[i] > 20000 ? 6 : 3;
            fill_content(content, sizes[i], (enum content)kind);
            for (uint32_t level = (i + (uint32_t)kind) % level_step; level <= 12;
                 level += level_step)
                check_content(sizes[i], (int)level);
        }
}

#if HAVE_ZLIB
static lane_stream zlib_stream(uint32_t bytes, int level, int memory_level, int strategy,
                               int flush) {
    enum { MARGIN = 100000 };
    z_stream z = {0};
    uint8_t *out = malloc(bytes + MARGIN);
    lane_stream stream = {.in = out, .capacity = bytes};
    CHECK(deflateInit2(&z, level, Z_DEFLATED, 15, memory_level, strategy) == Z_OK);
    z.next_in = content;
    z.next_out = out;
    z.avail_out = bytes + MARGIN;
    for (uint32_t left = bytes, part; left > 0; left -= part) {
        part = left < 999 ? left : 999;
        z.avail_in = part;
        CHECK(deflate(&z, flush) == Z_OK);
    }
    CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
    stream.in_bytes = z.total_out;
    deflateEnd(&z);
    return stream;
}

/* Fixed codes, literals without matches, runs alone; empty stored and fixed blocks by flushing. */
static void zlib_strategies(void) {
    static const int flushes[] = {Z_NO_FLUSH, Z_SYNC_FLUSH, Z_PARTIAL_FLUSH, Z_FULL_FLUSH, Z_BLOCK};
    enum { BYTES = 12000 };
    const int step = is_deep_run() ? 1 : 7;
    for (int i = 0; i < 10 * 5 * 5 * CONTENTS; i += step) {
        const int level = i % 10, strategy = i / 10 % 5, flush = i / 50 % 5, kind = i / 250;
        fill_content(content, BYTES, (enum content)kind);
        lane_stream stream = zlib_stream(BYTES, level, i % 2 ? 8 : 1, strategy, flushes[flush]);
        CHECK(quick_outcome_of(&stream) == DECODED);
        free_stream(&stream);
    }
}
#endif

/* ---- tokens --------------------------------------------------------------------------------- */

enum { LEAD_BYTES = 33000, TOKENS_MAX = 12000 };
static struct token tokens[TOKENS_MAX];
static uint32_t token_count;

static void add_literal(uint32_t literal) {
    tokens[token_count++] = (struct token){0, literal};
}

static void add_match(uint32_t length, uint32_t distance) {
    tokens[token_count++] = (struct token){length, distance};
}

/* Noise, so that a wrong distance gives other bytes, for all distances. */
static void put_lead(struct deflate_writer *writer) {
    fill_content(content, LEAD_BYTES, NOISE);
    put_stored(writer, false, content, LEAD_BYTES);
}

static void check_written(struct deflate_writer *writer) {
    lane_stream stream = written_stream(writer, 0);
    CHECK(outcome_of(&stream) == DECODED);
    free_stream(&stream);
}

/* The n-th of all distances up to 34, and of the first and last one of each symbol. */
static uint32_t nth_distance(uint32_t n) {
    uint32_t extra, base = base_of_distance(n / 2 % 30, &extra);
    if (n >= 60)
        return n - 60 + 1;
    return n % 2 ? base + (1u << extra) - 1 : base;
}
enum { DISTANCES = 60 + 34 };

/* In several orders, so that a step reads them at all places among literals. */
static void every_length_at_every_distance(void) {
    enum { PARTS = 9 };
    for (uint32_t i = 0; i < 2 * PARTS; i++) {
        struct deflate_writer writer = begin_deflate();
        put_lead(&writer);
        token_count = 0;
        for (uint32_t k = i / 2; k < 256 * DISTANCES; k += PARTS) {
            add_match(3 + k % 256, nth_distance((k / 256 + k) % DISTANCES));
            for (uint32_t literals = draw(4); literals > 0; literals--)
                add_literal(draw(256));
        }
        put_deflate_block(&writer, false, i % 2 ? FIXED : DYNAMIC, tokens, token_count,
                          9 + draw(7));
        put_deflate_block(&writer, true, i % 2 ? FIXED : DYNAMIC, tokens, 4, 15);
        lane_stream stream = written_stream(&writer, 0);
        CHECK(quick_outcome_of(&stream) == DECODED);
        free_stream(&stream);
    }
}

/* Each class of lengths with each class of distances, first and last in a stream, where tokens are
 * decoded one by one, and where steps end; capacities from the exact one up. */
static void matches_at_the_ends(void) {
    static const uint32_t lengths[] = {3, 4, 10, 11, 15, 16, 17, 18, 31, 32, 33, 115, 257, 258};
    static const uint32_t distances[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 24, 32, 64, 100};
    for (uint32_t i = 0; i < 14 * 13; i++) {
        struct deflate_writer writer = begin_deflate();
        token_count = 0;
        for (uint32_t k = 0; k < distances[i % 13]; k++)
            add_literal(draw(256));
        add_match(lengths[i / 13], distances[i % 13]);
        for (uint32_t k = draw(200); k > 0; k--)
            add_literal(draw(256));
        add_match(lengths[i / 13], distances[i % 13]);
        put_deflate_block(&writer, true, i % 3 ? DYNAMIC : FIXED, tokens, token_count, 15);
        lane_stream stream = written_stream(&writer, 0);
        for (size_t more = 0; more < 100; more += more < 20 ? 1 : 13) {
            lane_stream larger = stream;
            larger.capacity += more;
            CHECK(quick_outcome_of(&larger) == DECODED);
        }
        free_stream(&stream);
    }
}

/* Symbols of codes of 1 to 15 bits, each length for each symbol once. */
static void codes_of_all_lengths(void) {
    enum { SYMBOLS = 16, COUNT = 3000 };
    static const uint16_t literal_symbols[SYMBOLS] = {97,  0,   257, 264, 265, 266, 267, 268,
                                                      284, 285, 255, 144, 256, 269, 98,  99};
    static const uint8_t distance_symbols[SYMBOLS] = {0, 1,  2,  3,  4,  5,  6,  7,
                                                      8, 10, 13, 16, 20, 26, 28, 29};
    for (uint32_t turn = 0; turn < SYMBOLS; turn++) {
        struct huffman literals = {0}, distances = {0};
        uint32_t extra;
        for (uint32_t i = 0; i < SYMBOLS; i++) {
            const uint8_t bits = (uint8_t)(i == SYMBOLS - 1 ? 15 : i + 1);
            literals.lengths[literal_symbols[(i + turn) % SYMBOLS]] = bits;
            distances.lengths[distance_symbols[(i + 3 * turn) % SYMBOLS]] = bits;
        }
        token_count = 0;
        while (token_count < COUNT) {
            const uint32_t symbol = literal_symbols[draw(SYMBOLS)];
            if (symbol < 256) {
                add_literal(symbol);
            } else if (symbol > 256) {
                const uint32_t length = base_of_length(symbol, &extra) + draw(1u << extra);
                const uint32_t base = base_of_distance(distance_symbols[draw(SYMBOLS)], &extra);
                add_match(length == 258 && symbol != 285 ? 257 : length, base + draw(1u << extra));
            }
        }
        struct deflate_writer writer = begin_deflate();
        put_lead(&writer);
        put_block_of_codes(&writer, false, &literals, &distances, tokens, token_count);
        put_block_of_codes(&writer, true, &literals, &distances, tokens, 100);
        lane_stream stream = written_stream(&writer, 0);
        CHECK(quick_outcome_of(&stream) == DECODED);
        free_stream(&stream);
    }
}

/* Length 258 by symbol 284, whose extra bits are all ones then. */
static void two_codes_of_258(void) {
    struct deflate_writer writer = begin_deflate();
    put_bits(&writer, 3, 3);
    for (int bit = 7; bit >= 0; bit--) /* literal 'a', 0x30 + 0x61, from its highest bit */
        put_bits(&writer, 0x91u >> bit & 1, 1);
    for (int bit = 7; bit >= 0; bit--) /* symbol 284: 11000100 */
        put_bits(&writer, 0xC4u >> bit & 1, 1);
    put_bits(&writer, 31, 5);
    put_bits(&writer, 0, 5);
    put_bits(&writer, 0, 7);
    lane_stream stream = written_stream(&writer, 0);
    CHECK(stream.capacity == 259);
    CHECK(outcome_of(&stream) == DECODED);
    free_stream(&stream);
}

/* ---- codes of few symbols ------------------------------------------------------------------- */

/* A code with a single codeword, of one bit, and one without any. */
static void codes_of_one_symbol(void) {
    for (uint32_t distance = 0; distance < 30; distance++) {
        struct huffman literals = {0}, one = {0}, none = {0}, end_only = {0};
        uint32_t extra;
        for (uint32_t symbol = 0; symbol < 256; symbol++)
            literals.lengths[symbol] = 9;
        for (uint32_t symbol = 256; symbol < 276; symbol++) /* the other half of all codes */
            literals.lengths[symbol] = symbol < 260 ? 4 : 6;
        one.lengths[distance] = 1;
        end_only.lengths[256] = 1;
        const uint32_t base = base_of_distance(distance, &extra);
        struct deflate_writer writer = begin_deflate();
        put_lead(&writer);
        put_block_of_codes(&writer, false, &end_only, &none, NULL, 0);
        token_count = 0;
        for (uint32_t i = 0; i < 300; i++) {
            add_literal(draw(256));
            add_match(3 + draw(56), base + draw(1u << extra));
        }
        put_block_of_codes(&writer, false, &literals, &one, tokens, token_count);
        put_block_of_codes(&writer, false, &end_only, &one, NULL, 0);
        token_count = 0;
        for (uint32_t i = 0; i < 300; i++)
            add_literal(draw(256));
        put_block_of_codes(&writer, false, &literals, &none, tokens, token_count);
        put_block_of_codes(&writer, true, &end_only, &none, NULL, 0);
        check_written(&writer);
    }
}

/* ---- blocks --------------------------------------------------------------------------------- */

/* Blocks of few tokens or none, whose ends, headers and stored bytes are within the steps of the
 * other lanes, and which take more input than tokens do. */
static void many_small_blocks(void) {
    enum { BLOCKS = 400 };
    for (uint32_t turn = 0; turn < (is_deep_run() ? 300u : 30u); turn++) {
        struct deflate_writer writer = begin_deflate();
        fill_content(content, 1000, NOISE);
        for (uint32_t i = 0; i < BLOCKS; i++) {
            token_count = 0;
            for (uint32_t k = turn % 3 ? draw(1 + turn % 25) : 0; k > 0; k--)
                add_literal(draw(256));
            if (i > 10 && turn % 2 && draw(2))
                add_match(3 + draw(turn % 256), 1 + draw(8));
            const uint32_t kind = (turn / 2 + draw(2)) % 4;
            if (kind == 0 || i <= 10)
                put_stored(&writer, i == BLOCKS - 1, content, i <= 10 ? 20 : draw(1 + turn % 40));
            else
                put_deflate_block(&writer, i == BLOCKS - 1, kind == 1 ? FIXED : DYNAMIC, tokens,
                                  token_count, 15);
        }
        check_written(&writer);
    }
}

/* Between the end of one block and the first token of another one a lane makes as many bytes as a
 * step can, but reads far more: then the steps that fit must be counted anew. */
static void stored_bytes_between_steps(void) {
    for (uint32_t bytes = 0; bytes <= 18; bytes++)
        for (int tail = 0; tail < 40; tail += 3) {
            struct deflate_writer writer = begin_deflate();
            fill_content(content, 300, NOISE);
            token_count = 0;
            for (int i = 0; i < 200; i++)
                add_literal(draw(256));
            put_deflate_block(&writer, false, FIXED, tokens, token_count, 15);
            for (int i = 0; i < 30; i++) {
                put_stored(&writer, false, content, bytes);
                put_deflate_block(&writer, false, DYNAMIC, tokens, i % 2 ? 1 : 0, 15);
            }
            put_deflate_block(&writer, true, FIXED, tokens, (uint32_t)tail, 15);
            lane_stream stream = written_stream(&writer, 0);
            stream.capacity += 5000; /* so that the input is what ends first */
            CHECK(quick_outcome_of(&stream) == DECODED);
            free_stream(&stream);
        }
}

static void large_stored_blocks(void) {
    static const uint32_t sizes[] = {65535, 0, 1, 4000};
    struct deflate_writer writer = begin_deflate();
    fill_content(content, 65535, NOISE);
    for (int i = 0; i < 4; i++)
        put_stored(&writer, i == 3, content, sizes[i]);
    check_written(&writer);
}

/* ---- queues --------------------------------------------------------------------------------- */

/* What becomes of a stream of the queues below. */
enum fate {
    SHORT_STREAM,
    LONG_STREAM,
    EMPTY_STREAM,
    STALLING,     /* stored and empty blocks */
    ENDING_EARLY, /* cut off */
    FAILING_AT_ONCE,
    FAILING_LATER,
    FAILING_AT_THE_END, /* wrong Adler-32 */
    FATES
};

static lane_stream stream_of_fate(enum fate fate) {
    const uint32_t bytes = fate == SHORT_STREAM ? 300 : fate == EMPTY_STREAM ? 0 : 2500;
    lane_stream stream;
    if (fate == STALLING) {
        struct deflate_writer writer = begin_deflate();
        fill_content(content, 100, NOISE);
        for (uint32_t i = 0; i < 100; i++)
            put_stored(&writer, i == 99, content + i, i % 10);
        return written_stream(&writer, 0);
    }
    fill_content(content, bytes, fate % 2 ? PREDICTED : TEXT);
    stream = content_stream(content, bytes, 6);
    uint8_t *in = (uint8_t *)(uintptr_t)stream.in;
    if (fate == ENDING_EARLY)
        stream.in_bytes /= 2;
    else if (fate == FAILING_AT_ONCE)
        in[2] |= 6; /* block type 3 */
    else if (fate == FAILING_LATER)
        memset(in + stream.in_bytes / 3, 0xFF, stream.in_bytes / 3);
    else if (fate == FAILING_AT_THE_END)
        in[stream.in_bytes - 1] ^= 1;
    return stream;
}

static void check_fates(const lane_stream *of_fate, const uint32_t *fates, uint32_t count) {
    lane_stream streams[12];
    for (uint32_t i = 0; i < count; i++)
        streams[i] = of_fate[fates[i]];
    for (int variant = 0; variant < 2; variant++) {
        const char *rule = lanes_break_rule(streams, count, variant, LANE_HEAP);
        CHECK(!rule);
        if (rule)
            printf("%s\n", rule);
        for (uint32_t i = 0; i < count; i++)
            CHECK(streams[i].is_decoded == (fates[i] < ENDING_EARLY));
    }
}

/* All sequences of four fates, or of three and a sample of four; and long queues of some. */
static void all_orders_of_ends_and_failures(void) {
    enum { QUEUE_MAX = 12 };
    lane_stream of_fate[FATES];
    uint32_t fates[QUEUE_MAX] = {0};
    for (uint32_t fate = 0; fate < FATES; fate++)
        of_fate[fate] = stream_of_fate((enum fate)fate);
    for (uint32_t i = 0; i < FATES * FATES * FATES * FATES; i += is_deep_run() ? 1 : 5) {
        for (uint32_t k = 0, rest = i; k < 4; k++, rest /= FATES)
            fates[k] = rest % FATES;
        check_fates(of_fate, fates, 4);
        if (i < FATES * FATES * FATES)
            check_fates(of_fate, fates, 3);
        if (i < FATES * FATES)
            check_fates(of_fate, fates, 2);
    }
    for (int turn = 0; turn < 300; turn++) {
        const uint32_t count = 1 + draw(QUEUE_MAX);
        for (uint32_t k = 0; k < count; k++)
            fates[k] = draw(FATES);
        check_fates(of_fate, fates, count);
    }
    for (uint32_t fate = 0; fate < FATES; fate++)
        free_stream(&of_fate[fate]);
}

/* Queues of 0 to 12 streams of all sizes, in all kinds of memory. */
static void queues_of_all_lengths(void) {
    enum { QUEUE_MAX = 12 };
    for (int turn = 0; turn < (is_deep_run() ? 50 : 5); turn++)
        for (uint32_t count = 0; count <= QUEUE_MAX; count++) {
            lane_stream streams[QUEUE_MAX];
            for (uint32_t i = 0; i < count; i++) {
                const uint32_t bytes = draw(4) ? draw(3000) : draw(30000);
                fill_content(content, bytes, (enum content)draw(CONTENTS));
                streams[i] = content_stream(content, bytes, (int)draw(13));
                streams[i].capacity += draw(3) ? 0 : draw(200);
            }
            CHECK(lanes_agree(streams, count));
            for (uint32_t i = 0; i < count; i++) {
                CHECK(streams[i].is_decoded);
                free_stream(&streams[i]);
            }
        }
}

TESTS(inflate_lanes) {
    if (lanes_can_run()) {
        RUN(libdeflate_levels);
#if HAVE_ZLIB
        RUN(zlib_strategies);
#endif
        RUN(every_length_at_every_distance);
        RUN(matches_at_the_ends);
        RUN(codes_of_all_lengths);
        RUN(two_codes_of_258);
        RUN(codes_of_one_symbol);
        RUN(many_small_blocks);
        RUN(stored_bytes_between_steps);
        RUN(large_stored_blocks);
        RUN(all_orders_of_ends_and_failures);
        RUN(queues_of_all_lengths);
        free_neighbours();
    }
    return FINISH();
}

#else
TESTS(inflate_lanes) {
    return FINISH();
}
#endif
