/* Inflate that begins at any block: streams of zlib and libdeflate, from their start and from each
 * of their blocks on, false starts, damage. */
#include "support/chunk_test.h"
#include "support/test.h"

#if COGPU_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif
#if HAVE_ZLIB
#include <zlib.h>
#endif

enum { CONTENT_BYTES = 300000, STREAM_BYTES = 2 * CONTENT_BYTES };

static uint8_t content[CONTENT_BYTES], stream_bytes[STREAM_BYTES], decoded[CONTENT_BYTES + 1000];
static struct chunk_output output = {.bytes = decoded, .capacity = sizeof decoded};

static uint32_t random_bits(uint32_t *state) {
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* ---- contents ---- */

/* Differences of neighbouring samples, as predictor 2 leaves them: short matches and literals. */
static void fill_samples(void) {
    uint32_t state = 7;
    for (size_t i = 0; i < CONTENT_BYTES; i++)
        content[i] = (uint8_t)(i % 4 == 3   ? 0
                               : i % 4 == 2 ? random_bits(&state) % 3 * 255
                                            : random_bits(&state) % 40 * (random_bits(&state) % 2));
}

static void fill_noise(void) {
    uint32_t state = 3;
    for (size_t i = 0; i < CONTENT_BYTES; i++)
        content[i] = (uint8_t)random_bits(&state);
}

/* Long runs, so that one block decodes to much. */
static void fill_classes(void) {
    uint32_t state = 5;
    for (size_t i = 0; i < CONTENT_BYTES;) {
        const uint8_t value = (uint8_t)(random_bits(&state) % 6);
        for (size_t run = 1 + random_bits(&state) % 900; run > 0 && i < CONTENT_BYTES; run--)
            content[i++] = value;
    }
}

/* Noise that repeats at the largest distance. */
static void fill_far_matches(void) {
    fill_noise();
    for (size_t i = INFLATE_WINDOW; i < CONTENT_BYTES; i++)
        if (i / 1000 % 7 != 0)
            content[i] = content[i - INFLATE_WINDOW];
}

static void (*const fill_content[])(void) = {fill_samples, fill_noise, fill_classes,
                                             fill_far_matches};
enum { CONTENTS = sizeof fill_content / sizeof fill_content[0] };

/* ---- checks ---- */

static bool decodes_to_content(const struct chunk_stream *stream) {
    decode_from_start(stream, &output);
    return output.result == INFLATE_END && output.count == CONTENT_BYTES &&
           memcmp(decoded, content, CONTENT_BYTES) == 0;
}

static bool is_dynamic_and_not_last(const uint8_t *in, uint64_t bit) {
    const unsigned bits = (unsigned)(in[bit / 8] | in[bit / 8 + 1] << 8) >> bit % 8;
    return (bits & 7) == 4;
}

/* From every block, or some of them. The search finds those that it looks for. */
static void check_starts(const struct chunk_stream *stream) {
    const size_t step = is_deep_run() ? 1 : output.boundary_count / 12 + 1;
    for (size_t i = 0; i < output.boundary_count; i += step) {
        const uint64_t bit = output.boundaries[i];
        CHECK(symbols_give_rest(stream, bit, output.offsets[i], &output));
        if (is_dynamic_and_not_last(stream->in, bit) && bit / 8 + 400 < stream->bytes)
            CHECK(cogpu_inflate_search(stream->in, stream->bytes, bit, bit + 1) == bit);
    }
}

static void check_stream(size_t bytes) {
    static const size_t parts[] = {STREAM_BYTES, 1000, 33}, rooms[] = {CONTENT_BYTES, 5000, 300};
    struct chunk_stream stream = {.in = stream_bytes, .bytes = bytes};
    for (int i = 0; i < 3; i++) {
        stream.part = parts[i];
        stream.room = rooms[i];
        CHECK(decodes_to_content(&stream));
        CHECK(output.end_bit == bytes * 8);
        if (output.result == INFLATE_END && i < 2)
            check_starts(&stream);
    }
}

/* ---- streams ---- */

#if COGPU_HAVE_LIBDEFLATE
static size_t compress_libdeflate(int level) {
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(level);
    const size_t bytes =
        libdeflate_deflate_compress(compressor, content, CONTENT_BYTES, stream_bytes, STREAM_BYTES);
    libdeflate_free_compressor(compressor);
    return bytes;
}

static void libdeflate_streams(void) {
    for (int i = 0; i < CONTENTS; i++) {
        fill_content[i]();
        for (int level = 0; level <= 12; level += is_deep_run() || level < 1 ? 1 : 5)
            check_stream(compress_libdeflate(level));
    }
}
#endif

#if HAVE_ZLIB
/* With a flush after every `flushed` bytes; 0: none. */
static size_t compress_zlib(int level, int strategy, int memory, int flush, size_t flushed) {
    z_stream zlib = {.next_out = stream_bytes, .avail_out = STREAM_BYTES};
    if (deflateInit2(&zlib, level, Z_DEFLATED, -15, memory, strategy) != Z_OK)
        return 0;
    for (size_t at = 0; flushed > 0 && at + flushed < CONTENT_BYTES; at += flushed) {
        zlib.next_in = content + at;
        zlib.avail_in = (uInt)flushed;
        (void)deflate(&zlib, flush);
    }
    const size_t done = zlib.total_in;
    zlib.next_in = content + done;
    zlib.avail_in = (uInt)(CONTENT_BYTES - done);
    const int result = deflate(&zlib, Z_FINISH);
    const size_t bytes = zlib.total_out;
    deflateEnd(&zlib);
    return result == Z_STREAM_END ? bytes : 0;
}

static void zlib_strategies(void) {
    static const int strategies[] = {Z_DEFAULT_STRATEGY, Z_FIXED, Z_RLE, Z_HUFFMAN_ONLY,
                                     Z_FILTERED};
    for (int i = 0; i < CONTENTS; i++) {
        fill_content[i]();
        for (int k = 0; k < 5; k++)
            check_stream(compress_zlib(6, strategies[k], 8, Z_NO_FLUSH, 0));
    }
}

static void zlib_levels(void) {
    fill_samples();
    for (int level = 0; level <= 9; level += is_deep_run() ? 1 : 3)
        check_stream(compress_zlib(level, Z_DEFAULT_STRATEGY, 1 + level % 9, Z_NO_FLUSH, 0));
}

static void zlib_flushes(void) {
    static const int flushes[] = {Z_FULL_FLUSH, Z_SYNC_FLUSH, Z_PARTIAL_FLUSH, Z_BLOCK};
    fill_samples();
    for (int i = 0; i < 4; i++)
        for (size_t flushed = 997; flushed < CONTENT_BYTES; flushed *= 9)
            check_stream(compress_zlib(6, Z_DEFAULT_STRATEGY, 9, flushes[i], flushed));
}
#endif

/* ---- damage ---- */

#if COGPU_HAVE_LIBDEFLATE
/* A stream that is cut off ends as damaged, after bytes that are right. */
static void truncated(void) {
    fill_samples();
    const size_t bytes = compress_libdeflate(6), step = is_deep_run() ? 17 : 4001;
    for (size_t cut = 0; cut < bytes; cut += cut < 300 || bytes - cut < 300 ? 7 : step) {
        const struct chunk_stream stream = {stream_bytes, cut, 100000, 40000};
        decode_from_start(&stream, &output);
        CHECK(output.result == INFLATE_BAD && output.count < CONTENT_BYTES);
        CHECK(memcmp(decoded, content, output.count) == 0);
    }
}

/* What is accepted, libdeflate decodes to the same; the rest of a block's start does too. */
static void flipped(void) {
    static uint8_t expected[sizeof decoded];
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    fill_samples();
    const size_t bytes = compress_libdeflate(6);
    const size_t step = is_deep_run() ? 97 : 40009;
    size_t accepted = 0;
    for (size_t bit = 0; bit < bytes * 8; bit += bit < 1000 ? 3 : step) {
        const struct chunk_stream stream = {stream_bytes, bytes, 100000, 40000};
        size_t used = 0, got = 0;
        stream_bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        decode_from_start(&stream, &output);
        const bool is_valid =
            libdeflate_deflate_decompress_ex(decompressor, stream_bytes, bytes, expected,
                                             sizeof expected, &used, &got) == LIBDEFLATE_SUCCESS;
        if (output.result == INFLATE_END)
            CHECK(is_valid && got == output.count && used == output.end_bit / 8 &&
                  memcmp(expected, decoded, got) == 0);
        accepted += output.result == INFLATE_END;
        (void)decode_from_anywhere(&stream, bit, 100000);
        stream_bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    CHECK(accepted > 0); /* a literal became another */
    libdeflate_free_decompressor(decompressor);
}

/* Positions that the search returns in noise are few, and decoding from them ends. */
static void false_starts(void) {
    uint64_t bit = 0;
    size_t found = 0;
    fill_noise();
    const struct chunk_stream stream = {content, CONTENT_BYTES, 1000, 1000};
    for (; (bit = cogpu_inflate_search(content, CONTENT_BYTES, bit, UINT64_MAX)) != UINT64_MAX;
         bit++) {
        CHECK(bit < CONTENT_BYTES * 8);
        (void)decode_from_anywhere(&stream, bit, 100000);
        found++;
    }
    CHECK(found < 4);
}

static void sums(void) {
    fill_noise();
    memset(content, 255, 20000);
    for (size_t bytes = 0; bytes < CONTENT_BYTES; bytes += 1 + bytes / 7)
        CHECK(cogpu_inflate_adler32(content + bytes % 5, bytes - bytes % 5) ==
              libdeflate_adler32(0, content + bytes % 5, bytes - bytes % 5));
}
#endif

static void markers(void) {
    static uint16_t symbols[INFLATE_SYMBOLS];
    static uint8_t byte_of[INFLATE_SYMBOLS], bytes[INFLATE_SYMBOLS];
    uint32_t state = 1;
    for (unsigned i = 0; i < INFLATE_SYMBOLS; i++)
        byte_of[i] = (uint8_t)(i < 256 ? i : random_bits(&state));
    cogpu_inflate_fill_markers(symbols);
    cogpu_inflate_resolve(symbols, INFLATE_WINDOW, byte_of, bytes);
    CHECK(memcmp(bytes, byte_of + 256, INFLATE_WINDOW) == 0);
    for (unsigned i = 0; i < INFLATE_SYMBOLS; i++)
        symbols[i] = (uint16_t)(random_bits(&state) % (i / 1000 % 2 ? 256 : INFLATE_SYMBOLS));
    cogpu_inflate_resolve(symbols, INFLATE_SYMBOLS, byte_of, bytes);
    bool is_same = true;
    for (unsigned i = 0; i < INFLATE_SYMBOLS; i++)
        is_same = is_same && bytes[i] == byte_of[symbols[i]];
    CHECK(is_same);
}

TESTS(inflate_chunk) {
#if COGPU_HAVE_LIBDEFLATE
    RUN(libdeflate_streams);
    RUN(truncated);
    RUN(flipped);
    RUN(false_starts);
    RUN(sums);
#endif
#if HAVE_ZLIB
    RUN(zlib_strategies);
    RUN(zlib_levels);
    RUN(zlib_flushes);
#endif
    RUN(markers);
    return FINISH();
}
