/*
 * Fuzz target of the interleaved inflate: streams side by side, each compared with libdeflate and
 * zlib as lane_test.h says.
 *
 * Input:
 *
 *     byte 0      bit 0: mostly literals; then the number of streams - 1, modulo 6
 *     then for each stream
 *     byte 0      bits 0-1: what its data is, see enum data_kind; bit 2: the capacity of the block
 *                 is as stated, else relative to the length of the stream; then the level modulo 13
 *     bytes 1-2   bytes of data, little-endian; the last stream has all that is left
 *     bytes 3-4   capacity, or 100 more than what it exceeds the length by
 *     byte 5      repeats of the data that is compressed, 1 to 16, and the number of flipped bits
 *     then        the data
 *
 * Seeds: zlib streams, and small content, as DATA_ZLIB and DATA_CONTENT.
 */
#include "support/lane_test.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#if HAVE_INFLATE_LANES

enum data_kind {
    DATA_ZLIB,    /* a zlib stream */
    DATA_DEFLATE, /* a deflate stream: it gets a right Adler-32 if libdeflate decodes it */
    DATA_CONTENT, /* content, that is compressed */
    DATA_FLIPPED  /* content, that is compressed; the deflate stream with some bits flipped */
};

enum { OPTION_BYTES = 6, FUZZ_STREAMS = 6, CAPACITY_MAX = 1 << 18 };

/* The bytes again and again, each time with other noise, so that there are matches at all
 * distances, and literals. To be freed. */
static uint8_t *repeat_bytes(const uint8_t *data, size_t bytes, unsigned repeats) {
    uint8_t *content = malloc(bytes * repeats + 1);
    uint32_t state = (uint32_t)bytes;
    if (!content)
        abort();
    for (size_t i = 0; i < bytes * repeats; i++) {
        state = state * 1664525u + 1013904223u;
        content[i] = (uint8_t)(data[i % bytes] ^ (state >> 24 < 8 * repeats ? state >> 16 : 0));
    }
    return content;
}

static uint8_t *make_stream(const uint8_t *options, const uint8_t *data, size_t bytes,
                            size_t *made) {
    const enum data_kind kind = options[0] & 3;
    if (kind == DATA_DEFLATE)
        return wrap_deflate(data, bytes, CAPACITY_MAX, made);
    if (kind == DATA_ZLIB) {
        uint8_t *copy = malloc(bytes + 1);
        if (bytes)
            memcpy(copy, data, bytes);
        *made = bytes;
        return copy;
    }
    const unsigned repeats = 1 + options[5] % 16;
    uint8_t *content = repeat_bytes(data, bytes, repeats);
    uint8_t *stream =
        compress_by_libdeflate(content, bytes * repeats, (options[0] >> 3) % 13, made);
    free(content);
    if (kind == DATA_CONTENT)
        return stream;
    uint32_t state = options[5] + 256u * options[1];
    for (unsigned i = 0; i <= options[5] / 16u; i++) {
        state = state * 1664525u + 1013904223u;
        stream[2 + (state >> 8) % (*made - 6)] ^= (uint8_t)(1u << (state >> 29));
    }
    uint8_t *wrapped = wrap_deflate(stream + 2, *made - 6, CAPACITY_MAX, made);
    free(stream);
    return wrapped;
}

static size_t choose_capacity(const uint8_t *options, const lane_stream *stream) {
    const size_t stated = options[3] + 256u * options[4];
    if (options[0] & 4)
        return stated;
    const size_t length = lane_stream_length(stream->in, stream->in_bytes, CAPACITY_MAX, stated);
    return length + stated < 100 ? 0 : length + stated - 100;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    lane_stream streams[FUZZ_STREAMS] = {0};
    uint8_t *memory[FUZZ_STREAMS] = {0};
    if (bytes < 1 || !lanes_can_run())
        return 0;
    const bool is_mostly_literals = data[0] & 1;
    const uint32_t wanted = 1 + data[0] / 2 % FUZZ_STREAMS;
    uint32_t count = 0;
    data++, bytes--;
    for (; count < wanted && bytes >= OPTION_BYTES; count++) {
        const uint8_t *options = data;
        size_t length = options[1] + 256u * options[2];
        data += OPTION_BYTES;
        bytes -= OPTION_BYTES;
        if (length > bytes || count + 1 == wanted)
            length = bytes;
        memory[count] = make_stream(options, data, length, &streams[count].in_bytes);
        streams[count].in = memory[count];
        streams[count].capacity = choose_capacity(options, &streams[count]);
        data += length;
        bytes -= length;
    }
    if (lanes_break_rule(streams, count, is_mostly_literals, LANE_HEAP))
        abort();
    for (uint32_t i = 0; i < count; i++)
        free(memory[i]);
    return 0;
}

#else
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    (void)data, (void)bytes;
    return 0;
}
#endif
