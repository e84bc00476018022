#include "lane_streams.h"

#if HAVE_INFLATE_LANES

#include "support/streams.h"

/* ---- streams -------------------------------------------------------------------------------- */

lane_stream content_stream(const uint8_t *content, size_t bytes, int level) {
    lane_stream stream = {.capacity = bytes};
    stream.in = compress_by_libdeflate(content, bytes, level, &stream.in_bytes);
    return stream;
}

struct deflate_writer begin_deflate(void) {
    return (struct deflate_writer){.out = malloc(DEFLATE_MAX)};
}

void end_deflate(struct deflate_writer *writer) {
    put_bits(writer, 0, (8 - writer->bit_count % 8) % 8);
}

lane_stream written_stream(struct deflate_writer *writer, size_t capacity) {
    lane_stream stream = {0};
    end_deflate(writer);
    stream.in = wrap_deflate(writer->out, writer->bytes, 4 * CONTENT_MAX, &stream.in_bytes);
    stream.capacity = lane_stream_length(stream.in, stream.in_bytes, 4 * CONTENT_MAX, capacity);
    free(writer->out);
    return stream;
}

void free_stream(lane_stream *stream) {
    free((void *)(uintptr_t)stream->in);
    *stream = (lane_stream){0};
}

static lane_stream neighbours[2];

lane_stream neighbour_stream(int number) {
    enum { BYTES = 5000 };
    static uint8_t content[BYTES];
    if (!neighbours[number].in) {
        fill_content(content, BYTES, number ? TEXT : PREDICTED);
        neighbours[number] = content_stream(content, BYTES, 6);
    }
    return neighbours[number];
}

void free_neighbours(void) {
    free_stream(&neighbours[0]);
    free_stream(&neighbours[1]);
}

void put_block_of_codes(struct deflate_writer *writer, bool is_last, struct huffman *literals,
                        struct huffman *distances, const struct token *tokens, uint32_t count) {
    uint32_t literal_count = 288, distance_count = 32;
    while (literal_count > 257 && literals->lengths[literal_count - 1] == 0)
        literal_count--;
    while (distance_count > 1 && distances->lengths[distance_count - 1] == 0)
        distance_count--;
    assign_codes(literals);
    assign_codes(distances);
    put_bits(writer, (uint32_t)is_last | 4, 3);
    put_header(writer, literals, literal_count, distances, distance_count);
    put_tokens(writer, tokens, count, literals, distances);
}

/* ---- checks --------------------------------------------------------------------------------- */

static bool lanes_agree_in(lane_stream *streams, uint32_t count, enum lane_memory place) {
    for (int variant = 0; variant < 2; variant++) {
        const char *rule = lanes_break_rule(streams, count, variant == 1, place);
        if (!rule)
            continue;
        printf("%u streams, variant %d, memory %d: %s\n", count, variant, (int)place, rule);
        return false;
    }
    return true;
}

bool lanes_agree(lane_stream *streams, uint32_t count) {
    bool agree = true;
    for (int place = 0; place < LANE_MEMORIES; place++)
        agree = lanes_agree_in(streams, count, (enum lane_memory)place) && agree;
    return agree;
}

static enum outcome outcome_in_results(const lane_stream *stream) {
    return stream->is_decoded ? DECODED : stream->library_decodes ? LEFT : REFUSED;
}

enum outcome outcome_of(const lane_stream *stream) {
    enum { ORDERS = 4, STREAMS = 4, SELF = -1, NONE = -2 };
    static const int orders[ORDERS][STREAMS] = {
        {SELF, NONE}, {SELF, 0, 1, NONE}, {0, SELF, 1, 0}, {1, 0, SELF, 1}};
    enum outcome first = REFUSED;
    for (int i = 0; i < ORDERS; i++) {
        lane_stream streams[STREAMS] = {0};
        uint32_t count = 0, self = 0;
        for (; count < STREAMS && orders[i][count] != NONE; count++)
            if (orders[i][count] == SELF)
                streams[self = count] = *stream;
            else
                streams[count] = neighbour_stream(orders[i][count]);
        CHECK(lanes_agree(streams, count));
        for (uint32_t k = 0; k < count; k++)
            CHECK(k == self || streams[k].is_decoded);
        const enum outcome outcome = outcome_in_results(&streams[self]);
        first = i == 0 ? outcome : first;
        CHECK(outcome == first);
    }
    return first;
}

enum outcome quick_outcome_of(const lane_stream *stream) {
    lane_stream streams[] = {neighbour_stream(0), *stream, neighbour_stream(1)};
    lane_stream same[] = {*stream, *stream, *stream};
    CHECK(lanes_agree_in(streams, 3, LANE_HEAP));
    CHECK(streams[0].is_decoded && streams[2].is_decoded);
    const enum outcome outcome = outcome_in_results(&streams[1]);
    CHECK(lanes_agree_in(&streams[1], 1, LANE_BEFORE_GUARD));
    CHECK(lanes_agree_in(same, 3, LANE_BEFORE_GUARD));
    CHECK(outcome_in_results(&streams[1]) == outcome && outcome_in_results(&same[0]) == outcome);
    return outcome;
}

#endif
