/* The PackBits decoder. Traps T094, T209. */
#include "support/codec_test.h"

static uint8_t stream[70000], content[70000];

static int packbits_gives(const void *in, size_t in_bytes, const void *expected, size_t bytes,
                          size_t out_bytes) {
    return decodes_to(cogpu_decode_packbits, in, in_bytes, expected, bytes, out_bytes);
}

/* The example of Apple's note, which TIFF's specification points to. */
static void apples_example(void) {
    static const uint8_t packed[] = {0xFE, 0xAA, 0x02, 0x80, 0x00, 0x2A, 0xFD, 0xAA,
                                     0x03, 0x80, 0x00, 0x2A, 0x22, 0xF7, 0xAA};
    static const uint8_t plain[] = {0xAA, 0xAA, 0xAA, 0x80, 0x00, 0x2A, 0xAA, 0xAA,
                                    0xAA, 0xAA, 0x80, 0x00, 0x2A, 0x22, 0xAA, 0xAA,
                                    0xAA, 0xAA, 0xAA, 0xAA, 0xAA, 0xAA, 0xAA, 0xAA};
    for (size_t capacity = 0; capacity <= 30; capacity++)
        CHECK(
            packbits_gives(packed, sizeof packed, plain, capacity < 24 ? capacity : 24, capacity));
    CHECK(prefixes_taken(cogpu_decode_packbits, packed, sizeof packed, plain, 24) ==
          prefixes_tried(sizeof packed));
}

/* Literals and runs of all lengths, with no-ops between; returns the stream's bytes. */
static size_t pack_all_lengths(size_t *bytes) {
    size_t in = 0, out = 0;
    for (unsigned length = 1; length <= 128; length++) {
        stream[in++] = (uint8_t)(length - 1);
        for (unsigned i = 0; i < length; i++)
            stream[in++] = content[out++] = (uint8_t)(i * 5 + length);
        stream[in++] = 128;
        if (length > 1) {
            stream[in++] = (uint8_t)(257 - length);
            stream[in++] = (uint8_t)length;
            memset(content + out, (int)length, length);
            out += length;
        }
    }
    *bytes = out;
    return in;
}

static void all_lengths(void) {
    size_t bytes, packed = pack_all_lengths(&bytes);
    for (size_t capacity = 0; capacity <= bytes;
         capacity += capacity < 500 || bytes - capacity < 500 ? 1 : 100)
        CHECK(packbits_gives(stream, packed, content, capacity, capacity));
    CHECK(packbits_gives(stream, packed, content, bytes, bytes + 999));
    CHECK(prefixes_taken(cogpu_decode_packbits, stream, 2000, content, bytes) ==
          prefixes_tried(2000));
}

static void only_no_ops(void) {
    memset(stream, 128, sizeof stream);
    CHECK(packbits_gives(stream, sizeof stream, content, 0, 100));
}

static void literal_past_the_input(void) {
    CHECK(packbits_gives("\x05"
                         "abc",
                         4, "abc", 3, 10));
    CHECK(packbits_gives("\x05", 1, "", 0, 10));
}

static void run_past_the_block(void) {
    CHECK(packbits_gives("\x81z", 2, "zzzzz", 5, 5));
    CHECK(packbits_gives("\x81", 1, "", 0, 5));
}

/* 64 times as much as comes in, and no more than the block can hold. */
static void bomb(void) {
    for (size_t i = 0; i < 2000; i += 2) {
        stream[i] = 0x81;
        stream[i + 1] = 9;
    }
    memset(content, 9, sizeof content);
    CHECK(packbits_gives(stream, 2000, content, 1001, 1001));
    CHECK(packbits_gives(stream, 1000, content, 64000, 64000));
}

static void bits_flipped(void) {
    size_t bytes;
    pack_all_lengths(&bytes);
    flips_unnoticed(cogpu_decode_packbits, stream, 600, content, bytes);
}

TESTS(codec_packbits) {
    RUN(apples_example);
    RUN(all_lengths);
    RUN(only_no_ops);
    RUN(literal_past_the_input);
    RUN(run_past_the_block);
    RUN(bomb);
    RUN(bits_flipped);
    return FINISH();
}
