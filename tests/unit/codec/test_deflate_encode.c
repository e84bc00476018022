/*
 * Our own encoder of deflate. zlib and libdeflate decode what it writes. Input, output and memory
 * are heap blocks of the exact sizes, and the memory is full of rubbish.
 */
#include "support/test.h"

#if COGPU_HAVE_LIBDEFLATE

#include "codec/deflate_encode.h"

#include <libdeflate.h>
#include <stdbool.h>
#include <stdlib.h>
#if HAVE_ZLIB
#include <zlib.h>
#endif

enum { LARGEST = 1 << 20, SEGMENT = 16 << 10, WINDOW = 32 << 10 };

static uint8_t raw[LARGEST];

/* ---- what is encoded ---- */

static uint32_t random_state = 1;

static uint32_t random_bits(void) {
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

typedef void fill(uint8_t *to, size_t bytes);

static void constant(uint8_t *to, size_t bytes) {
    memset(to, 77, bytes);
}

static void noise(uint8_t *to, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)random_bits();
}

/* Rows of 400 bytes, each four planes, as predictor 3 writes them. */
static void planes(uint8_t *to, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        const uint32_t spread[] = {random_bits() % 60 == 0, random_bits() % 7 * (random_bits() % 2),
                                   random_bits() % 100, random_bits()};
        to[i] = (uint8_t)spread[i / 100 % 4];
    }
}

/* Words of four bytes in any order: as many matches as there can be. */
static void words(uint8_t *to, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        const uint32_t word = i % 4 ? 0 : random_bits() % 900;
        to[i] = (uint8_t)(i % 4 ? to[i - 1] * 37 + 11 * i % 4 : word);
        if (i % 4 == 1)
            to[i] = (uint8_t)(to[i] ^ to[i - 1] >> 3);
    }
}

/* Copies from anywhere, of any length, and a little noise. */
static void copies(uint8_t *to, size_t bytes) {
    for (size_t i = 0; i < bytes;) {
        const size_t back = i < 33000 ? i : 33000;
        const size_t distance = back > 0 && random_bits() % 4 ? random_bits() % back + 1 : 0;
        for (size_t left = random_bits() % (distance ? 600 : 9) + 1; left > 0 && i < bytes; left--)
            to[i] = distance ? to[i - distance] : (uint8_t)random_bits(), i++;
    }
}

/* Each value half as often as the one before: codes as long as they may be, and longer. */
static void uneven(uint8_t *to, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        const uint32_t bits = random_bits() | 1 << 22;
        to[i] = (uint8_t)((unsigned)__builtin_ctz(bits) * 5 + bits / (1 << 20) % 4);
    }
}

/* The values of one half do not come in the other. */
static void halves(uint8_t *to, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)(random_bits() % 61 + (i < bytes / 2 ? 0 : 192));
}

static fill *const kinds[] = {constant, noise, planes, words, copies, uneven, halves};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- encoding and comparing ---- */

static bool libdeflate_gives(const uint8_t *stream, size_t stream_bytes, const uint8_t *expected,
                             size_t bytes) {
    struct libdeflate_decompressor *reference = libdeflate_alloc_decompressor();
    uint8_t *out = malloc(bytes + 1);
    size_t taken = 0, got = 0;
    const bool gives = libdeflate_deflate_decompress_ex(reference, stream, stream_bytes, out, bytes,
                                                        &taken, &got) == LIBDEFLATE_SUCCESS &&
                       taken == stream_bytes && got == bytes && memcmp(out, expected, bytes) == 0;
    free(out);
    libdeflate_free_decompressor(reference);
    return gives;
}

static bool zlib_gives(const uint8_t *stream, size_t stream_bytes, const uint8_t *expected,
                       size_t bytes) {
#if HAVE_ZLIB
    uint8_t *out = malloc(bytes + 1), *in = malloc(stream_bytes);
    memcpy(in, stream, stream_bytes);
    z_stream reference = {.next_in = in,
                          .avail_in = (uInt)stream_bytes,
                          .next_out = out,
                          .avail_out = (uInt)bytes + 1};
    const bool gives = inflateInit2(&reference, -15) == Z_OK &&
                       inflate(&reference, Z_FINISH) == Z_STREAM_END && reference.avail_in == 0 &&
                       reference.total_out == bytes && memcmp(out, expected, bytes) == 0;
    inflateEnd(&reference);
    free(in);
    free(out);
    return gives;
#else
    (void)stream, (void)stream_bytes, (void)expected, (void)bytes;
    return true;
#endif
}

/* Returns the bytes of the stream, which the caller frees. */
static size_t encode(const uint8_t *in, size_t bytes, uint8_t rubbish, uint8_t **stream) {
    void *memory = malloc(cogpu_deflate_memory_bytes);
    uint8_t *copy = malloc(bytes ? bytes : 1);
    memset(memory, rubbish, cogpu_deflate_memory_bytes);
    memcpy(copy, in, bytes);
    *stream = malloc((size_t)cogpu_deflate_bound(bytes));
    const size_t got = cogpu_deflate_encode(memory, copy, bytes, *stream);
    free(copy);
    free(memory);
    return got;
}

static size_t check_bytes(const uint8_t *in, size_t bytes) {
    uint8_t *stream, *again;
    const size_t got = encode(in, bytes, 0, &stream);
    CHECK(got <= cogpu_deflate_bound(bytes));
    CHECK(libdeflate_gives(stream, got, in, bytes));
    CHECK(zlib_gives(stream, got, in, bytes));
    CHECK(encode(in, bytes, 0xA5, &again) == got && memcmp(stream, again, got) == 0);
    free(stream);
    free(again);
    return got;
}

static size_t check(fill *kind, size_t bytes) {
    kind(raw, bytes);
    return check_bytes(raw, bytes);
}

static void every_short_length(void) {
    for (size_t bytes = 0; bytes < 300; bytes++)
        for (size_t kind = 0; kind < KINDS; kind++)
            check(kinds[kind], bytes);
}

/* Round segments, the window, stored blocks, positions of 16 bits. */
static void lengths_that_are_edges(void) {
    const size_t edges[] = {SEGMENT, WINDOW, WINDOW + SEGMENT, 65535, 65536, 5 * SEGMENT};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        for (size_t bytes = edges[i] - 9; bytes < edges[i] + 9; bytes++)
            check(kinds[bytes % KINDS], bytes);
}

static void large(void) {
    for (size_t kind = 0; kind < KINDS; kind++)
        check(kinds[kind], LARGEST);
}

/* All kinds, in parts of any length. */
static void mixed(void) {
    for (size_t round = 0; round < 8; round++) {
        for (size_t done = 0, part; done < LARGEST / 2; done += part) {
            part = random_bits() % 40000;
            part = part < LARGEST / 2 - done ? part : LARGEST / 2 - done;
            kinds[random_bits() % KINDS](raw + done, part);
        }
        check_bytes(raw, LARGEST / 2 - round);
    }
}

/* A match reaches back as far as deflate allows, and no further. */
static void window(void) {
    for (size_t period = WINDOW - 1; period <= WINDOW + 1; period++) {
        noise(raw, period);
        for (size_t i = period; i < 4 * WINDOW; i++)
            raw[i] = raw[i - period];
        const size_t got = check_bytes(raw, 4 * WINDOW);
        CHECK(period > WINDOW ? got > 4 * WINDOW : got < WINDOW + WINDOW / 8);
    }
}

/* The longest codes in sequence: a store can hold four. */
static void rare_values_together(void) {
    uneven(raw, 200000);
    for (size_t i = 0; i < 100; i++)
        raw[150000 + i] = (uint8_t)(150 + i);
    check_bytes(raw, 200000);
}

/* As small as the bytes allow. */
static void sizes(void) {
    CHECK(check(constant, LARGEST) < LARGEST / 500);
    CHECK(check(noise, LARGEST) <= LARGEST + 5 * (LARGEST / 65535 + 3));
    CHECK(check(halves, 300000) < 228000); /* 6 bits a byte by a code each, 7 by one for both */
}

/* On what it is made for it keeps to libdeflate's usual level. */
static void as_small_as_libdeflate(void) {
    struct libdeflate_compressor *other = libdeflate_alloc_compressor(6);
    uint8_t *out = malloc(2 * LARGEST);
    const size_t own = check(planes, LARGEST);
    CHECK(own < 1.005 * (double)libdeflate_deflate_compress(other, raw, LARGEST, out, 2 * LARGEST));
    libdeflate_free_compressor(other);
    free(out);
}

TESTS(deflate_encode) {
    RUN(every_short_length);
    RUN(lengths_that_are_edges);
    RUN(large);
    RUN(mixed);
    RUN(window);
    RUN(rare_values_together);
    RUN(sizes);
    RUN(as_small_as_libdeflate);
    return FINISH();
}

#else

TESTS(deflate_encode) {
    return FINISH(); /* it is built beside libdeflate alone */
}

#endif
