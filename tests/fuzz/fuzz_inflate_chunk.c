/*
 * Inflate from any block on, with any stream: what it accepts decodes to the same bytes as by
 * libdeflate, and from each of its blocks on with an unknown window.
 *
 * Input: 2 bytes that choose how input and output are divided, then a deflate stream without the
 * header of RFC 1950.
 */
#include "support/chunk_test.h"

#if COGPU_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif
#include <stdlib.h>
#include <string.h>

enum { CHOICE_BYTES = 2, OUTPUT_MAX = 1 << 18, STARTS_MAX = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Aborts unless libdeflate decodes to the same bytes. */
static void compare_with_libdeflate(const struct chunk_stream *stream,
                                    const struct chunk_output *output) {
#if COGPU_HAVE_LIBDEFLATE
    static uint8_t expected[OUTPUT_MAX];
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    size_t used = 0, got = 0;
    if (libdeflate_deflate_decompress_ex(decompressor, stream->in, stream->bytes, expected,
                                         sizeof expected, &used, &got) != LIBDEFLATE_SUCCESS ||
        got != output->count || used != output->end_bit / 8 ||
        memcmp(expected, output->bytes, got) != 0)
        abort();
    libdeflate_free_decompressor(decompressor);
#else
    (void)stream, (void)output;
#endif
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static uint8_t out[OUTPUT_MAX];
    static struct chunk_output output;
    if (bytes < CHOICE_BYTES)
        return 0;
    const struct chunk_stream stream = {.in = data + CHOICE_BYTES,
                                        .bytes = bytes - CHOICE_BYTES,
                                        .part = 1 + data[0] * (size_t)data[0],
                                        .room = 1 + data[1] * (size_t)data[1]};
    output.bytes = out;
    output.capacity = sizeof out;
    decode_from_start(&stream, &output);
    if (output.result == INFLATE_END)
        compare_with_libdeflate(&stream, &output);
    for (size_t i = 0; i < output.boundary_count && i < STARTS_MAX; i++)
        if (!symbols_give_rest(&stream, output.boundaries[i], output.offsets[i], &output))
            abort();
    const uint64_t found = cogpu_inflate_search(stream.in, stream.bytes, data[0], stream.bytes * 8);
    if (found != UINT64_MAX)
        (void)decode_from_anywhere(&stream, found, OUTPUT_MAX / 4);
    (void)decode_from_anywhere(&stream, data[1] % (stream.bytes * 8 + 1), OUTPUT_MAX / 4);
    return 0;
}
