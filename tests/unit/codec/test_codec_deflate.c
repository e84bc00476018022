/* The deflate codec, by whichever library the build has. Traps T082-T088, T209. */
#include "support/codec_test.h"

#if COGPU_HAVE_LIBDEFLATE || COGPU_HAVE_ZLIB

#if COGPU_HAVE_LIBDEFLATE
#include <libdeflate.h>

static size_t compress_bytes(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t capacity,
                             int level) {
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(level);
    size_t bytes = libdeflate_zlib_compress(compressor, in, in_bytes, out, capacity);
    libdeflate_free_compressor(compressor);
    return bytes;
}
#else
#include <zlib.h>

static size_t compress_bytes(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t capacity,
                             int level) {
    uLongf bytes = capacity;
    return compress2(out, &bytes, in, in_bytes, level) == Z_OK ? bytes : 0;
}
#endif

static uint8_t raw[100000], packed[120000];

/* A stream written by hand: bits from the lowest on, then the Adler-32. */
static size_t packed_bits;

static void put_bits(unsigned value, unsigned count) {
    for (unsigned i = 0; i < count; i++, packed_bits++) {
        if (packed_bits % 8 == 0)
            packed[packed_bits / 8] = 0;
        packed[packed_bits / 8] |= (uint8_t)((value >> i & 1) << packed_bits % 8);
    }
}

/* A Huffman code, which goes in from its highest bit. */
static void put_code(unsigned code, unsigned count) {
    while (count-- > 0)
        put_bits(code >> count & 1, 1);
}

static void put_fixed_literal(uint8_t byte) {
    if (byte < 144)
        put_code(0x30u + byte, 8);
    else
        put_code(0x190u + byte - 144u, 9);
}

static void begin(void) {
    packed_bits = 0;
    put_bits(0x78, 8);
    put_bits(0x9C, 8);
}

static size_t finish(const uint8_t *content, size_t bytes) {
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < bytes; i++) {
        a = (a + content[i]) % 65521;
        b = (b + a) % 65521;
    }
    put_bits(0, (unsigned)(8 - packed_bits % 8) % 8);
    put_bits(b >> 8, 8);
    put_bits(b & 0xFF, 8);
    put_bits(a >> 8, 8);
    put_bits(a & 0xFF, 8);
    return packed_bits / 8;
}

static void put_stored(const uint8_t *content, unsigned bytes, int last) {
    put_bits((unsigned)last, 3);
    put_bits(0, (unsigned)(8 - packed_bits % 8) % 8);
    put_bits(bytes, 16);
    put_bits(~bytes & 0xFFFF, 16);
    for (unsigned i = 0; i < bytes; i++)
        put_bits(content[i], 8);
}

static int deflate_gives(size_t in_bytes, const uint8_t *expected, size_t bytes) {
    return decodes_to(cogpu_decode_deflate, packed, in_bytes, expected, bytes, bytes);
}

static cogpu_status deflate_status(size_t in_bytes, size_t out_bytes) {
    return decode_status(cogpu_decode_deflate, packed, in_bytes, out_bytes);
}

static void round_trips(void) {
    const size_t sizes[] = {0, 1, 100, 5000, 100000};
    const unsigned spreads[] = {1, 2, 60, 256};
    for (size_t i = 0; i < 5 * 4; i++) {
        size_t bytes = sizes[i / 4];
        fill_bytes(raw, bytes, spreads[i % 4], i % 3 * 300);
        size_t stored = compress_bytes(raw, bytes, packed, sizeof packed, 1 + (int)(i % 9));
        CHECK(stored > 0);
        CHECK(deflate_gives(stored, raw, bytes));
        CHECK(decodes_to(cogpu_decode_deflate, packed, stored, raw, bytes, bytes + 10));
        CHECK(longer_than_block(cogpu_decode_deflate, packed, stored, raw, bytes, 10));
    }
}

/* T083: values so uneven that many codes are longer than a decoder's first table. */
static void long_codes(void) {
    size_t bytes = 0;
    for (unsigned value = 0; value < 200; value++)
        for (unsigned i = 0; i < (value < 100 ? 1u : 1u << (value - 100) / 8); i++)
            if (bytes < sizeof raw)
                raw[bytes++] = (uint8_t)(value * 7);
    for (size_t i = bytes - 1, state = 1; i > 0; i--) {
        state = state * 1103515245u + 12345u;
        size_t j = state / 65536 % (i + 1);
        uint8_t value = raw[i];
        raw[i] = raw[j];
        raw[j] = value;
    }
    CHECK(deflate_gives(compress_bytes(raw, bytes, packed, sizeof packed, 9), raw, bytes));
}

/* T084: each truncation is detected. */
static void truncated(void) {
    fill_bytes(raw, 3000, 60, 300);
    size_t stored = compress_bytes(raw, 3000, packed, sizeof packed, 6);
    CHECK(prefixes_taken(cogpu_decode_deflate, packed, stored, raw, 3000) == 0);
}

/* T088: each damage is seen, by the Adler-32 if by nothing else. */
static void bits_flipped(void) {
    fill_bytes(raw, 3000, 60, 300);
    size_t stored = compress_bytes(raw, 3000, packed, sizeof packed, 6);
    CHECK(flips_unnoticed_in(cogpu_decode_deflate, packed, stored, raw, 3000, 9000) == 0);
    flips_unnoticed(cogpu_decode_deflate, packed, stored, raw, 3000);
}

/* T087 */
static void bytes_after_the_stream(void) {
    fill_bytes(raw, 3000, 60, 300);
    size_t stored = compress_bytes(raw, 3000, packed, sizeof packed, 6);
    memset(packed + stored, 0xEE, 50);
    for (size_t more = 0; more < 50; more++)
        CHECK(deflate_gives(stored + more, raw, 3000));
}

/* T087: stored blocks, empty ones too, and a fixed code, many of them. */
static void tiny_blocks(void) {
    fill_bytes(raw, 2000, 256, 0);
    begin();
    for (unsigned i = 0; i < 2000; i++) {
        if (i % 3 == 0) {
            put_stored(NULL, 0, 0);
            put_stored(raw + i, 1, 0);
        } else {
            put_bits(2, 3);
            put_fixed_literal(raw[i]);
            put_code(0, 7);
        }
    }
    put_stored(NULL, 0, 1);
    CHECK(deflate_gives(finish(raw, 2000), raw, 2000));
}

/* A copy of 3 bytes with distance 1: of one byte before it, or of none. */
static size_t put_copy(int with_byte) {
    begin();
    put_bits(3, 3);
    if (with_byte)
        put_fixed_literal('a');
    put_code(1, 7);
    put_code(0, 5);
    put_code(0, 7);
    return finish((const uint8_t *)"aaaa", with_byte ? 4 : 3);
}

/* T085 */
static void copy_from_before_the_start(void) {
    CHECK(deflate_gives(put_copy(1), (const uint8_t *)"aaaa", 4));
    CHECK(deflate_status(put_copy(0), 3) == COGPU_CORRUPT);
}

/* T086 */
static void broken_blocks(void) {
    begin();
    put_stored((const uint8_t *)"ab", 2, 1);
    size_t stored = finish((const uint8_t *)"ab", 2);
    CHECK(deflate_gives(stored, (const uint8_t *)"ab", 2));
    packed[5] ^= 1; /* the complement of the length */
    CHECK(deflate_status(stored, 2) == COGPU_CORRUPT);

    begin();
    put_bits(7, 3); /* block type 3 */
    CHECK(deflate_status(finish(raw, 0), 2) == COGPU_CORRUPT);

    begin();
    put_bits(3, 3);
    put_code(0xC6, 8); /* length code 286 */
    put_code(0, 5);
    put_code(0, 7);
    CHECK(deflate_status(finish(raw, 0), 1000) == COGPU_CORRUPT);

    begin();
    put_bits(3, 3);
    put_fixed_literal('a');
    put_code(1, 7);
    put_code(30, 5); /* distance code 30 */
    put_code(0, 7);
    CHECK(deflate_status(finish(raw, 0), 1000) == COGPU_CORRUPT);

    begin();
    put_bits(5, 3); /* a dynamic block of 19 code lengths, all of one bit: too many codes */
    put_bits(0, 5);
    put_bits(0, 5);
    put_bits(15, 4);
    for (int i = 0; i < 19; i++)
        put_bits(1, 3);
    CHECK(deflate_status(finish(raw, 0), 1000) == COGPU_CORRUPT);
}

static void broken_headers(void) {
    fill_bytes(raw, 100, 60, 0);
    size_t stored = compress_bytes(raw, 100, packed, sizeof packed, 6);
    CHECK(deflate_status(0, 100) == COGPU_CORRUPT);
    uint8_t first = packed[0], second = packed[1];
    packed[0] = 0x79; /* method 9, with a right check */
    packed[1] = (uint8_t)(31 - 0x7900 % 31);
    CHECK(deflate_status(stored, 100) == COGPU_CORRUPT);
    packed[0] = first;
    packed[1] = (uint8_t)(second | 0x20); /* wants a dictionary */
    packed[1] = (uint8_t)((packed[1] & 0xE0) + 31 - (packed[0] * 256 + (packed[1] & 0xE0)) % 31);
    CHECK(deflate_status(stored, 100) == COGPU_CORRUPT);
    CHECK(decode_status(cogpu_decode_deflate, packed + 2, stored - 2, 100) == COGPU_CORRUPT);
}

/* T209: what goes beyond the block is not decoded. */
static void bomb(void) {
    memset(raw, 0, sizeof raw);
    size_t stored = compress_bytes(raw, sizeof raw, packed, sizeof packed, 9);
    CHECK(stored < 1000);
    CHECK(deflate_gives(stored, raw, 1000));
}

/* Noise, so that the content's bytes are at about the same positions in the stream. */
static void damage_after_the_block(void) {
    enum { BYTES = 90000, BLOCK = 9000 };
    fill_bytes(raw, BYTES, 256, 0);
    for (int level = 0; level < 2; level++) {
        size_t stored = compress_bytes(raw, BYTES, packed, sizeof packed, level);
        for (size_t kept = BLOCK + 3000; kept < stored; kept += 7777)
            CHECK(rest_ignored(cogpu_decode_deflate, packed, stored, raw, BLOCK, kept));
        packed[stored - 1] ^= 1;
        CHECK(longer_than_block(cogpu_decode_deflate, packed, stored, raw, BYTES, 5));
        CHECK(deflate_status(stored, BYTES) == COGPU_CORRUPT);
    }
}

/* The block ends in the middle of a token, of which all bytes are known or none. */
static void ends_within_a_token(void) {
    begin();
    put_bits(2, 3);
    put_fixed_literal('a');
    put_code(0xC5, 8); /* length 258 */
    put_code(0, 5);
    put_code(0xC5, 8);
    put_code(29, 5); /* from before the start */
    put_bits(0x1FFF, 13);
    put_code(0, 7);
    size_t stored = finish(raw, 0);
    memset(raw, 'a', 259);
    for (size_t bytes = 0; bytes < 259; bytes++)
        CHECK(deflate_gives(stored, raw, bytes));
    for (size_t bytes = 259; bytes < 700; bytes++)
        CHECK(deflate_status(stored, bytes) == COGPU_CORRUPT);
    fill_bytes(raw, 500, 256, 0);
    begin();
    put_stored(raw, 500, 0); /* cut off */
    for (size_t bytes = 0; bytes < 400; bytes++)
        CHECK(deflate_gives(packed_bits / 8 - 99, raw, bytes));
    CHECK(deflate_status(packed_bits / 8 - 99, 402) == COGPU_CORRUPT);
}

/* A decoder that failed must not spoil the next block. */
static void after_a_failure(void) {
    fill_bytes(raw, 3000, 60, 300);
    size_t stored = compress_bytes(raw, 3000, packed, sizeof packed, 6);
    CHECK(deflate_status(stored / 2, 3000) == COGPU_CORRUPT);
    CHECK(deflate_gives(stored, raw, 3000));
}

TESTS(codec_deflate) {
    RUN(round_trips);
    RUN(long_codes);
    RUN(truncated);
    RUN(bits_flipped);
    RUN(bytes_after_the_stream);
    RUN(tiny_blocks);
    RUN(copy_from_before_the_start);
    RUN(broken_blocks);
    RUN(broken_headers);
    RUN(bomb);
    RUN(damage_after_the_block);
    RUN(ends_within_a_token);
    RUN(after_a_failure);
    cogpu_codec_state_close(&codec_state);
    return FINISH();
}

#else
TESTS(codec_deflate) {
    return FINISH();
}
#endif
