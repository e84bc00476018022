/* The zstd codec. Traps T090, T091, T209. */
#include "support/codec_test.h"

#if COGPU_HAVE_ZSTD
#include <zstd.h>

static uint8_t raw[300000], packed[400000];

static size_t compress_bytes(const uint8_t *in, size_t in_bytes, uint8_t *out, int level,
                             int content_size, int checksum) {
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, content_size);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, checksum);
    size_t bytes = ZSTD_compress2(context, out, sizeof packed, in, in_bytes);
    ZSTD_freeCCtx(context);
    return ZSTD_isError(bytes) ? 0 : bytes;
}

static int zstd_gives(size_t in_bytes, const void *expected, size_t bytes) {
    return decodes_to(cogpu_decode_zstd, packed, in_bytes, expected, bytes, bytes);
}

static cogpu_status status_of(const char *stream, size_t in_bytes, size_t out_bytes) {
    return decode_status(cogpu_decode_zstd, (const uint8_t *)stream, in_bytes, out_bytes);
}

static int text_gives(const char *stream, size_t in_bytes, const char *expected) {
    size_t bytes = strlen(expected);
    return decodes_to(cogpu_decode_zstd, (const uint8_t *)stream, in_bytes,
                      (const uint8_t *)expected, bytes, bytes);
}

static void round_trips(void) {
    const size_t sizes[] = {0, 1, 100, 5000, 300000};
    const unsigned spreads[] = {1, 2, 60, 256};
    for (size_t i = 0; i < 5 * 4 * 4; i++) {
        size_t bytes = sizes[i / 16];
        fill_bytes(raw, bytes, spreads[i / 4 % 4], i % 3 * 300);
        size_t stored = compress_bytes(raw, bytes, packed, 1 + (int)(i % 9), i % 2, i / 2 % 2);
        CHECK(stored > 0);
        CHECK(zstd_gives(stored, raw, bytes));
        CHECK(decodes_to(cogpu_decode_zstd, packed, stored, raw, bytes, bytes + 10));
        CHECK(longer_than_block(cogpu_decode_zstd, packed, stored, raw, bytes, 10));
    }
}

static void frames_in_a_row(void) {
    fill_bytes(raw, 9000, 60, 300);
    size_t bytes = 0;
    for (size_t i = 0; i < 9; i++) {
        memcpy(packed + bytes, "\x53\x2A\x4D\x18\x05\0\0\0hello", 13);
        bytes += 13;
        bytes += compress_bytes(raw + 1000 * i, 1000, packed + bytes, 3, i % 2, i % 3 == 0);
    }
    CHECK(zstd_gives(bytes, raw, 9000));
    CHECK(longer_than_block(cogpu_decode_zstd, packed, bytes, raw, 9000, 18));
    CHECK(decode_status(cogpu_decode_zstd, packed, bytes - 1, 9000) == COGPU_CORRUPT);
}

static void bytes_after_the_frame(void) {
    fill_bytes(raw, 3000, 60, 300);
    size_t stored = compress_bytes(raw, 3000, packed, 3, 1, 0);
    memset(packed + stored, 0, 50);
    for (size_t more = 0; more < 50; more++)
        CHECK(zstd_gives(stored + more, raw, 3000));
}

static void truncated(void) {
    fill_bytes(raw, 3000, 60, 300);
    for (int sized = 0; sized < 2; sized++) {
        size_t stored = compress_bytes(raw, 3000, packed, 3, sized, 1);
        CHECK(prefixes_taken(cogpu_decode_zstd, packed, stored, raw, 3000) == 0);
    }
}

/* T091: with a checksum no damage goes unseen; without one it does no harm. */
static void bits_flipped(void) {
    fill_bytes(raw, 3000, 60, 300);
    size_t stored = compress_bytes(raw, 3000, packed, 3, 1, 1);
    CHECK(flips_unnoticed(cogpu_decode_zstd, packed, stored, raw, 3000) == 0);
    stored = compress_bytes(raw, 3000, packed, 9, 0, 0);
    flips_unnoticed(cogpu_decode_zstd, packed, stored, raw, 3000);
}

#define MAGIC "\x28\xB5\x2F\xFD"

/* Frames by hand. The block header 0x19 means: last, raw, 3 bytes; 0x1B: last, RLE, 3 times. */
static void made_by_hand(void) {
    CHECK(text_gives(MAGIC "\x20\x03\x19\0\0abc", 12, "abc"));
    CHECK(text_gives(MAGIC "\x20\x03\x1B\0\0z", 10, "zzz"));
    CHECK(status_of(MAGIC "\x20\x03\x1F\0\0abc", 12, 3) == COGPU_CORRUPT);
    CHECK(status_of("abcdefgh", 8, 3) == COGPU_CORRUPT);
    CHECK(status_of("", 0, 3) == COGPU_CORRUPT);
}

/* A window of 2 GiB costs nothing, since nothing is decoded into a window. */
static void giant_window(void) {
    CHECK(text_gives(MAGIC "\x00\xA8\x19\0\0abc", 12, "abc"));
}

static void dictionary(void) {
    CHECK(status_of(MAGIC "\x21\x07\x03\x19\0\0abc", 13, 3) == COGPU_UNSUPPORTED);
}

/* T209: a frame that holds more than it says, or more than the block. */
static void bombs(void) {
    CHECK(status_of(MAGIC "\x20\x03\x51\0\0abcdefghij", 19, 100) == COGPU_CORRUPT);
    CHECK(status_of(MAGIC "\x20\x05\x19\0\0abc", 12, 100) == COGPU_CORRUPT);
    CHECK(status_of(MAGIC "\x20\x03\x51\0\0abcdefghij", 19, 3) == COGPU_CORRUPT);
    CHECK(text_gives(MAGIC "\x00\x38\x03\0\x10z", 10, "zzzzzzzzz"));
}

/* A zstd block, of at most 128 KiB, is decoded as a whole: what comes after that of the last byte
 * does not matter. */
static void damage_after_the_block(void) {
    enum { BLOCK = 140000, KEPT = 2 * 132000 };
    fill_bytes(raw, 300000, 256, 0);
    for (int sized = 0; sized < 2; sized++) {
        size_t stored = compress_bytes(raw, 300000, packed, 3, sized, 1);
        for (size_t kept = KEPT; kept < stored; kept += 5555)
            CHECK(rest_ignored(cogpu_decode_zstd, packed, stored, raw, BLOCK, kept));
        packed[stored - 1] ^= 1; /* of the checksum */
        CHECK(longer_than_block(cogpu_decode_zstd, packed, stored, raw, 300000, 5));
        CHECK(decode_status(cogpu_decode_zstd, packed, stored, 300000) == COGPU_CORRUPT);
    }
}

/* The checksum after the last byte is wrong, and the block ends a byte before: by parts of all
 * sizes, of which each call uses others, as at once. */
static void longer_by_a_byte(void) {
    enum { SIZES_OF_PARTS = 12, LEAST = 500, PART = 13 };
    fill_bytes(raw, LEAST + PART, 256, 0);
    for (size_t bytes = LEAST; bytes < LEAST + PART; bytes++) { /* so that a part begins anywhere */
        size_t stored = compress_bytes(raw, bytes, packed, 3, 1, 1);
        packed[stored - 1] ^= 1;
        for (int i = 0; i < SIZES_OF_PARTS; i++)
            CHECK(decodes_to(cogpu_decode_zstd, packed, stored, raw, bytes - 1, bytes - 1));
    }
}

static void after_a_failure(void) {
    fill_bytes(raw, 3000, 60, 300);
    size_t stored = compress_bytes(raw, 3000, packed, 3, 1, 0);
    CHECK(decode_status(cogpu_decode_zstd, packed, stored / 2, 3000) == COGPU_CORRUPT);
    CHECK(zstd_gives(stored, raw, 3000));
}

TESTS(codec_zstd) {
    RUN(round_trips);
    RUN(frames_in_a_row);
    RUN(bytes_after_the_frame);
    RUN(truncated);
    RUN(bits_flipped);
    RUN(made_by_hand);
    RUN(giant_window);
    RUN(dictionary);
    RUN(bombs);
    RUN(damage_after_the_block);
    RUN(longer_by_a_byte);
    RUN(after_a_failure);
    cogpu_codec_state_close(&codec_state);
    return FINISH();
}

#else
TESTS(codec_zstd) {
    return FINISH();
}
#endif
