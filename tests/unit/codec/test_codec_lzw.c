/* The LZW decoder, against streams of a plain encoder that is written here. Traps T092, T093, T209.
 */
#include "support/codec_test.h"

enum { CLEAR = 256, END = 257, FIRST = 258, CODES_MAX = 400000 };

typedef struct stream {
    uint8_t bytes[CODES_MAX * 2];
    size_t bit;
    unsigned since_clear; /* codes written after the last Clear */
    bool old_style;
} stream;

static stream s;
static uint8_t raw[300000];

/* The width by the format's rule, stated in codes since the Clear: the decoder states it otherwise.
 */
static unsigned width_of(unsigned since_clear, bool old_style) {
    unsigned k = since_clear - (old_style && since_clear > 0);
    return k < 254 ? 9 : k < 766 ? 10 : k < 1790 ? 11 : 12;
}

static void put_code(unsigned code) {
    unsigned width = width_of(s.since_clear, s.old_style);
    for (unsigned i = 0; i < width; i++, s.bit++) {
        unsigned value = s.old_style ? code >> i & 1 : code >> (width - 1 - i) & 1;
        unsigned shift = s.old_style ? s.bit % 8 : 7 - s.bit % 8;
        s.bytes[s.bit / 8] |= (uint8_t)(value << shift);
    }
    s.since_clear = code == CLEAR ? 0 : s.since_clear + 1;
}

static size_t stream_bytes(void) {
    return (s.bit + 7) / 8;
}

static void begin(bool old_style) {
    memset(&s, 0, sizeof s);
    s.old_style = old_style;
}

/* Clears the table after it has `table_limit` entries; where that is beyond 4096 it stays full. */
static void put_content(const uint8_t *content, size_t bytes, unsigned table_limit) {
    static uint16_t child[4096][256];
    memset(child, 0, sizeof child);
    unsigned next = FIRST, string = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (i == 0) {
            string = content[0];
        } else if (child[string][content[i]]) {
            string = child[string][content[i]];
        } else {
            put_code(string);
            if (next < 4096)
                child[string][content[i]] = (uint16_t)next;
            if (++next > table_limit) {
                put_code(CLEAR);
                memset(child, 0, sizeof child);
                next = FIRST;
            }
            string = content[i];
        }
    }
    if (bytes > 0)
        put_code(string);
}

static void encode(const uint8_t *content, size_t bytes, bool old_style, unsigned table_limit) {
    begin(old_style);
    put_code(CLEAR);
    put_content(content, bytes, table_limit);
    put_code(END);
}

static int lzw_gives(const uint8_t *expected, size_t bytes, size_t out_bytes) {
    return decodes_to(cogpu_decode_lzw, s.bytes, stream_bytes(), expected, bytes, out_bytes);
}

static void check_content(size_t bytes) {
    const unsigned limits[] = {300, 4093, 4094, 100000};
    for (int i = 0; i < 8; i++) {
        encode(raw, bytes, i % 2, limits[i / 2]);
        CHECK(lzw_gives(raw, bytes, bytes));
        CHECK(lzw_gives(raw, bytes, bytes + 1000));
        CHECK(lzw_gives(raw, bytes / 2, bytes / 2));
    }
}

static void round_trips(void) {
    memcpy(raw, "-----TOBEORNOTTOBE-----", 23);
    check_content(0);
    check_content(1);
    check_content(23);
    fill_bytes(raw, sizeof raw, 256, 0);
    check_content(100000);
    fill_bytes(raw, sizeof raw, 3, 0);
    check_content(sizeof raw);
    fill_bytes(raw, sizeof raw, 40, 64);
    check_content(sizeof raw);
    fill_bytes(raw, sizeof raw, 7, 5000);
    check_content(sizeof raw);
}

/* Each code is the one that it adds itself; the strings grow to hundreds of bytes. */
static void one_value(void) {
    memset(raw, 7, sizeof raw);
    check_content(sizeof raw);
    memset(raw, 7, 1000);
    memset(raw + 1000, 8, 1000);
    check_content(2000);
}

/* Strings of 6, 7, 8, 9 bytes and more: those around the longest that an entry holds itself. */
static void strings_of_all_lengths(void) {
    size_t bytes = 0;
    for (unsigned length = 1; length < 40; length++)
        for (unsigned repeat = 0; repeat < length + 2; repeat++)
            for (unsigned i = 0; i < length; i++)
                raw[bytes++] = (uint8_t)(length * 3 + i);
    check_content(bytes);
}

static void every_capacity(void) {
    fill_bytes(raw, 700, 9, 100);
    for (int old_style = 0; old_style < 2; old_style++) {
        encode(raw, 700, old_style, 4094);
        for (size_t capacity = 0; capacity <= 710;
             capacity += is_deep_run() || capacity < 20 || capacity > 680 ? 1 : 7)
            CHECK(lzw_gives(raw, capacity < 700 ? capacity : 700, capacity));
    }
}

static void no_leading_clear(void) {
    fill_bytes(raw, 5000, 9, 100);
    raw[0] = 77; /* a first code of 0 or 1 could be taken for the old style */
    begin(false);
    put_content(raw, 5000, 4094);
    put_code(END);
    CHECK(lzw_gives(raw, 5000, 5000));
}

static void no_end(void) {
    fill_bytes(raw, 5000, 9, 100);
    begin(false);
    put_code(CLEAR);
    put_content(raw, 5000, 4094);
    CHECK(lzw_gives(raw, 5000, 5000));
}

static void clears_anywhere(void) {
    fill_bytes(raw, 5000, 9, 100);
    begin(false);
    for (int i = 0; i < 5; i++) {
        put_code(CLEAR);
        put_code(CLEAR);
        put_content(raw + i * 1000, 1000, 4094);
    }
    put_code(CLEAR);
    CHECK(lzw_gives(raw, 5000, 5000));
    put_code(END);
    CHECK(lzw_gives(raw, 5000, 5000));
}

static void nothing_after_end(void) {
    begin(false);
    put_code(CLEAR);
    put_code('a');
    put_code(END);
    for (int i = 0; i < 100; i++)
        put_code('b');
    CHECK(lzw_gives((const uint8_t *)"a", 1, 100));
}

/* A code beyond the table after `before` good ones, so that both loops meet it. */
static void check_code_beyond(unsigned before, unsigned beyond, bool old_style) {
    begin(old_style);
    put_code(CLEAR);
    for (unsigned i = 0; i < before; i++)
        put_code(i % 256);
    put_code(FIRST + before - (before > 0) + beyond);
    for (unsigned i = 0; i < 100; i++)
        put_code('x');
    cogpu_status status = decode_status(cogpu_decode_lzw, s.bytes, stream_bytes(), 10000);
    CHECK(status == (before > 0 && beyond == 0 ? COGPU_OK : COGPU_CORRUPT));
}

static void codes_beyond_the_table(void) {
    for (int old_style = 0; old_style < 2; old_style++)
        for (unsigned before = 0; before < 250; before += is_deep_run() ? 1 : 3)
            for (unsigned beyond = 0; beyond < 3; beyond++)
                check_code_beyond(before, beyond, old_style);
}

static void truncated(void) {
    fill_bytes(raw, 6000, 30, 200);
    encode(raw, 6000, false, 4094);
    size_t bytes = stream_bytes();
    CHECK(prefixes_taken(cogpu_decode_lzw, s.bytes, bytes, raw, 6000) == prefixes_tried(bytes));
    encode(raw, 2000, true, 4094);
    bytes = stream_bytes();
    CHECK(prefixes_taken(cogpu_decode_lzw, s.bytes, bytes, raw, 2000) == prefixes_tried(bytes));
}

static void bits_flipped(void) {
    fill_bytes(raw, 1500, 30, 200);
    encode(raw, 1500, false, 4094);
    flips_unnoticed(cogpu_decode_lzw, s.bytes, stream_bytes(), raw, 1500);
    encode(raw, 500, true, 4094);
    flips_unnoticed(cogpu_decode_lzw, s.bytes, stream_bytes(), raw, 500);
}

/* The decoder ends where the block ends, however much the stream would still give. */
static void bomb(void) {
    memset(raw, 0, sizeof raw);
    encode(raw, sizeof raw, false, 4094);
    CHECK(lzw_gives(raw, 1, 1));
    CHECK(lzw_gives(raw, 0, 0));
}

static void nothing_in(void) {
    begin(false);
    CHECK(lzw_gives(raw, 0, 100));
}

TESTS(codec_lzw) {
    RUN(round_trips);
    RUN(one_value);
    RUN(strings_of_all_lengths);
    RUN(every_capacity);
    RUN(no_leading_clear);
    RUN(no_end);
    RUN(clears_anywhere);
    RUN(nothing_after_end);
    RUN(codes_beyond_the_table);
    RUN(truncated);
    RUN(bits_flipped);
    RUN(bomb);
    RUN(nothing_in);
    cogpu_codec_state_close(&codec_state);
    return FINISH();
}
