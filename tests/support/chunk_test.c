#include "support/chunk_test.h"

#include <stdlib.h>
#include <string.h>

struct parts {
    const struct chunk_stream *stream;
    size_t at; /* of the next part */
    uint8_t *copy;
};

static bool next_part(cogpu_inflater *inflater) {
    struct parts *parts = inflater->user;
    const size_t left = parts->stream->bytes - parts->at;
    const size_t count = left < parts->stream->part ? left : parts->stream->part;
    free(parts->copy);
    parts->copy = NULL;
    if (count == 0)
        return false;
    parts->copy = malloc(count);
    memcpy(parts->copy, parts->stream->in + parts->at, count);
    parts->at += count;
    inflater->in = parts->copy;
    inflater->in_end = parts->copy + count;
    inflater->in_end_offset = parts->at;
    return true;
}

static bool open_at(struct parts *parts, const struct chunk_stream *stream, uint64_t bit,
                    cogpu_inflater *inflater) {
    *parts = (struct parts){.stream = stream, .at = (size_t)(bit / 8)};
    memset(inflater, 0, sizeof *inflater);
    inflater->more = next_part;
    inflater->user = parts;
    inflater->in_end_offset = bit / 8;
    cogpu_inflate_start(inflater, UINT64_MAX);
    if (bit % 8 == 0)
        return true;
    if (!cogpu_inflate_need_bits(inflater, 8))
        return false;
    (void)inflate_take_bits(inflater, bit % 8);
    return true;
}

static void note_boundary(struct chunk_output *output, uint64_t bit) {
    if (output->boundary_count == BOUNDARIES_MAX)
        return;
    output->boundaries[output->boundary_count] = bit;
    output->offsets[output->boundary_count++] = output->count;
}

/* Each call has a buffer of the exact size. */
void decode_from_start(const struct chunk_stream *stream, struct chunk_output *output) {
    struct parts parts;
    cogpu_inflater *inflater = malloc(sizeof *inflater);
    uint8_t *buffer = malloc(INFLATE_WINDOW + stream->room + INFLATE_SLACK);
    uint8_t *const first = buffer + INFLATE_WINDOW;
    output->count = output->boundary_count = 0;
    (void)open_at(&parts, stream, 0, inflater);
    do {
        uint8_t *out = first;
        const size_t history = output->count < INFLATE_WINDOW ? output->count : INFLATE_WINDOW;
        inflater->stop_bit = cogpu_inflate_position(inflater) + 1;
        output->result = cogpu_inflate_bytes(inflater, first - history, &out, first + stream->room);
        const size_t count = (size_t)(out - first);
        if (count > output->capacity - output->count) {
            output->result = INFLATE_FULL;
            break;
        }
        memcpy(output->bytes + output->count, first, count);
        output->count += count;
        if (count > 0)
            memmove(buffer, out - INFLATE_WINDOW, INFLATE_WINDOW);
        if (output->result == INFLATE_BOUNDARY)
            note_boundary(output, cogpu_inflate_position(inflater));
    } while (output->result == INFLATE_FULL || output->result == INFLATE_BOUNDARY);
    output->end_bit = cogpu_inflate_position(inflater);
    free(parts.copy);
    free(buffer);
    free(inflater);
}

/* Returns the number of symbols. */
static size_t decode_symbols(const struct chunk_stream *stream, uint64_t bit, uint16_t *symbols,
                             size_t limit, cogpu_inflate_result *result, uint64_t *end_bit) {
    struct parts parts;
    cogpu_inflater *inflater = malloc(sizeof *inflater);
    uint16_t *const first = symbols + INFLATE_WINDOW, *out = first;
    cogpu_inflate_fill_markers(symbols);
    *result = INFLATE_BAD;
    if (open_at(&parts, stream, bit, inflater))
        do {
            const size_t left = limit - (size_t)(out - first);
            const size_t step = stream->room < left ? stream->room : left;
            *result = cogpu_inflate_symbols(inflater, symbols, &out, out + step);
        } while (*result == INFLATE_FULL && (size_t)(out - first) < limit);
    *end_bit = cogpu_inflate_position(inflater);
    free(parts.copy);
    free(inflater);
    return (size_t)(out - first);
}

static uint16_t *allocate_symbols(size_t limit) {
    return malloc((INFLATE_WINDOW + limit + INFLATE_SLACK) * sizeof(uint16_t));
}

bool symbols_give_rest(const struct chunk_stream *stream, uint64_t bit, size_t offset,
                       const struct chunk_output *output) {
    const size_t rest = output->count - offset;
    const size_t history = offset < INFLATE_WINDOW ? offset : INFLATE_WINDOW;
    uint16_t *symbols = allocate_symbols(rest + 1);
    uint8_t byte_of[INFLATE_SYMBOLS] = {0}, *resolved = malloc(rest + INFLATE_SLACK + 1);
    cogpu_inflate_result result;
    uint64_t end_bit;
    for (unsigned i = 0; i < 256; i++)
        byte_of[i] = (uint8_t)i;
    memcpy(byte_of + INFLATE_SYMBOLS - history, output->bytes + offset - history, history);
    const size_t count = decode_symbols(stream, bit, symbols, rest + 1, &result, &end_bit);
    bool is_same = count >= rest;
    if (is_same) {
        cogpu_inflate_resolve(symbols + INFLATE_WINDOW, rest, byte_of, resolved);
        is_same = memcmp(resolved, output->bytes + offset, rest) == 0;
    }
    if (output->result == INFLATE_END)
        is_same = is_same && result == INFLATE_END && count == rest && end_bit == output->end_bit;
    free(symbols);
    free(resolved);
    return is_same;
}

size_t decode_from_anywhere(const struct chunk_stream *stream, uint64_t bit, size_t limit) {
    uint16_t *symbols = allocate_symbols(limit);
    cogpu_inflate_result result;
    uint64_t end_bit;
    const size_t count = decode_symbols(stream, bit, symbols, limit, &result, &end_bit);
    free(symbols);
    return count;
}
