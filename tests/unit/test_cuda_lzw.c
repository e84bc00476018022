/*
 * The LZW decoder of the device against the host's: streams of encoders of all kinds that are
 * written here, whole, cut and damaged.
 *
 * The device keeps the law of gpu_law.h, and what encoders write must get a 0.
 */
#include "gpu_law.h"
#include "gpu_test.h"
#include "streams.h"
#include "test.h"

static cogpu_gpu *gpu;

static void decode_all(gpu_stream *streams, uint32_t count) {
    CHECK(gpu_test_decode(gpu, &cogpu_gpu_lzw, streams, count, (int)draw(2), seed));
    for (uint32_t i = 0; i < count; i++)
        CHECK(!gpu_law_broken(gpu_codec_of(COMPRESSION_LZW), &streams[i], NULL));
}

static void release_all(gpu_stream *streams, uint32_t count, bool inputs) {
    for (uint32_t i = 0; i < count; i++) {
        free(streams[i].out);
        streams[i].out = NULL;
        if (inputs)
            free((void *)streams[i].in);
    }
}

/* Encodes all contents in one way, decodes them in one batch. */
static void round_trip(uint32_t bytes, const struct lzw_habits *habits) {
    gpu_stream streams[CONTENTS];
    uint8_t *raw = malloc(bytes);
    for (uint32_t i = 0; i < CONTENTS; i++) {
        fill(raw, bytes, (enum content)i);
        raw[0] |= 4; /* no old style by accident where the first Clear lacks */
        streams[i] = lzw_encode(raw, bytes, habits);
        streams[i].room = streams[i].needed = bytes;
    }
    decode_all(streams, CONTENTS);
    for (uint32_t i = 0; i < CONTENTS; i++)
        CHECK(streams[i].verdict == 0);
    release_all(streams, CONTENTS, true);
    free(raw);
}

/* ---- what encoders write ---- */

static void small_sizes(void) {
    for (uint32_t bytes = 1; bytes < 3000; bytes += 1 + bytes)
        round_trip(bytes, &lzw_libtiff);
}

static void as_libtiff(void) {
    round_trip(15000, &lzw_libtiff);
    round_trip(15361, &lzw_libtiff);
    round_trip(70000, &lzw_libtiff);
}

static void long_runs(void) {
    uint8_t *raw = malloc(9 << 20);
    gpu_stream streams[3];
    fill(raw, 9 << 20, CONSTANT);
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t bytes = i == 0 ? 66000 : i == 1 ? 400000 : 8 << 20;
        streams[i] = lzw_encode(raw + i, bytes, &lzw_libtiff);
        streams[i].room = streams[i].needed = bytes;
    }
    decode_all(streams, 3);
    for (uint32_t i = 0; i < 3; i++)
        CHECK(streams[i].verdict == 0);
    release_all(streams, 3, true);
    free(raw);
}

/* Strings that cross from one window of the decoder to the next, and blocks that end there; with
 * segments of up to 65535 bytes, and of more, which are decoded in another way. */
static void windows(void) {
    enum { WINDOW = 15360, COUNT = 21 };
    static const uint32_t sizes[] = {WINDOW - 1, WINDOW,    WINDOW + 1,    2 * WINDOW - 70,
                                     65535,      65535 + 1, 5 * WINDOW + 9};
    gpu_stream streams[COUNT];
    uint8_t *raw = malloc(sizes[6]);
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t bytes = sizes[i / 3];
        fill(raw, bytes, i % 3 == 0 ? CONSTANT : i % 3 == 1 ? PERIODIC : TEXT);
        streams[i] = lzw_encode(raw, bytes, &lzw_libtiff);
        const uint32_t cut = bytes / WINDOW * WINDOW + draw(3);
        streams[i].room = streams[i].needed = cut > 2 && cut < bytes && draw(2) ? cut : bytes;
    }
    decode_all(streams, COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        CHECK(streams[i].verdict == 0);
    release_all(streams, COUNT, true);
    free(raw);
}

static void other_habits(void) {
    const struct lzw_habits habits[] = {
        {.clear_after = 3837, .greed = 16},
        {.clear_after = 3838, .greed = 16},
        {.clear_after = 3839, .greed = 16},
        {.clear_after = 3840, .greed = 16},
        {.clear_after = 3841, .greed = 16},
        {.clear_after = 700, .greed = 16},
        {.clear_after = 3836, .greed = 16, .clear_at_bytes = 8192},
        {.clear_after = 3836, .greed = 16, .no_first_clear = true},
        {.clear_after = 3836, .greed = 16, .no_end = true},
        {.clear_after = 3836, .greed = 16, .double_clear = true},
        {.clear_after = 3836, .greed = 15},
        {.clear_after = 3836, .greed = 8, .no_first_clear = true, .no_end = true},
        {.clear_after = 3836, .greed = 0},
    };
    for (size_t i = 0; i < sizeof habits / sizeof *habits; i++)
        round_trip(20000 + draw(3000), &habits[i]);
}

/* The table stays full, and the codes go on. */
static void never_clears(void) {
    round_trip(30000, &(struct lzw_habits){.clear_after = 1u << 30, .greed = 16});
    round_trip(20000, &(struct lzw_habits){.clear_after = 6000, .greed = 12, .no_end = true});
}

/* Clears that come early here and there: what lies before and after is regular. */
static void early_clears(void) {
    gpu_stream streams[6];
    uint8_t *raw = malloc(60000);
    fill(raw, 60000, NOISE);
    for (uint32_t i = 0; i < 6; i++) {
        const struct lzw_habits habits = {
            .clear_after = 3836, .greed = 16, .clear_at_bytes = 3836 * (i / 2) + 600 + draw(3000)};
        streams[i] = lzw_encode(raw, i % 2 ? 60000 : 30000, &habits);
        streams[i].room = streams[i].needed = i % 2 ? 60000 : 30000;
    }
    decode_all(streams, 6);
    for (uint32_t i = 0; i < 6; i++)
        CHECK(streams[i].verdict == 0);
    release_all(streams, 6, true);
    free(raw);
}

/* Bits of so many codes of a segment. */
static uint32_t bits_of(uint32_t codes) {
    const uint32_t wider[] = {254, 766, 1790};
    uint32_t bits = 9 * codes;
    for (int i = 0; i < 3; i++)
        bits += codes > wider[i] ? codes - wider[i] : 0;
    return bits;
}

/* A stream with a Clear in place of a code of the second segment. */
static gpu_stream with_clear_at(uint32_t clear_after, uint32_t number) {
    enum { BYTES = 30000 };
    uint8_t *raw = malloc(BYTES);
    fill(raw, BYTES, NOISE);
    gpu_stream stream =
        lzw_encode(raw, BYTES, &(struct lzw_habits){.clear_after = clear_after, .greed = 0});
    struct lzw_stream s = {.bytes = (uint8_t *)stream.in,
                           .bit = 9 + bits_of(clear_after) + 12 + bits_of(number),
                           .codes = number};
    for (uint32_t bit = (uint32_t)s.bit; bit < 9 + bits_of(clear_after) + 12 + bits_of(number + 1);
         bit++)
        s.bytes[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
    lzw_put(&s, LZW_CLEAR);
    stream.room = stream.needed = BYTES;
    free(raw);
    return stream;
}

/* A Clear where no encoder would put it: all later ones are still at their regular places, but mean
 * something else. The scan is deceived, the decoder finds out; but for codes after a full table,
 * which it does not look at so: there the scan is not deceived. */
static void hidden_clear(void) {
    gpu_stream streams[] = {with_clear_at(3836, 200),  with_clear_at(3836, 3835),
                            with_clear_at(3840, 3839), with_clear_at(3841, 3840),
                            with_clear_at(5000, 3840), with_clear_at(5000, 4900)};
    decode_all(streams, 6);
    for (uint32_t i = 0; i < 3; i++)
        CHECK(streams[i].verdict == COGPU_GPU_UNUSUAL);
    for (uint32_t i = 3; i < 6; i++)
        CHECK(streams[i].verdict != COGPU_GPU_DECODED);
    release_all(streams, 6, true);
}

/* ---- rooms, needs, ends ---- */

static void rooms_and_needs(void) {
    enum { COUNT = 24, BYTES = 12000 };
    gpu_stream streams[COUNT];
    uint8_t *raw = malloc(BYTES);
    fill(raw, BYTES, PREDICTED);
    gpu_stream whole = lzw_encode(raw, BYTES, &lzw_libtiff);
    for (uint32_t i = 0; i < COUNT; i++) {
        streams[i] = whole;
        streams[i].room = i < 8 ? 1 + draw(BYTES) : BYTES - 12 + i;
        streams[i].needed = i % 2 ? streams[i].room : 1 + draw(streams[i].room);
    }
    decode_all(streams, COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        CHECK((streams[i].verdict == 0) == (streams[i].needed <= BYTES) &&
              (streams[i].verdict == 0 || streams[i].verdict == COGPU_GPU_TOO_SHORT));
    release_all(streams, COUNT, false);
    free((void *)whole.in);
    free(raw);
}

/* Blocks that are full before their long segment begins, and one that is not. */
static void full_before_a_long_segment(void) {
    enum { COUNT = 4, BYTES = 90000, SHORT = 3836 };
    gpu_stream streams[COUNT];
    uint8_t *raw = malloc(BYTES);
    fill(raw, BYTES, CONSTANT);
    fill(raw, SHORT, NOISE); /* about a code a byte */
    gpu_stream whole = lzw_encode(raw, BYTES, &lzw_libtiff);
    for (uint32_t i = 0; i < COUNT; i++) {
        streams[i] = whole;
        streams[i].room = streams[i].needed = i == 2 ? BYTES : SHORT - i;
    }
    decode_all(streams, COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        CHECK(streams[i].verdict == 0);
    release_all(streams, COUNT, false);
    free((void *)whole.in);
    free(raw);
}

/* Nothing is looked at after the block is full: not even what is wrong. */
static void wrong_after_the_room(void) {
    gpu_stream streams[40];
    uint32_t count = 0;
    for (uint32_t wrong = 1; wrong <= 5000; wrong += wrong == 3494 ? 998 : 499)
        for (uint32_t more = 0; more < 2; more++) {
            struct lzw_stream s = {.bytes = calloc(1, 20000)};
            lzw_put(&s, LZW_CLEAR);
            for (uint32_t i = 0; i < 6000; i++)
                if (i == wrong)
                    lzw_put(&s, 4095 >> (12 - (s.codes < 254    ? 9
                                               : s.codes < 766  ? 10
                                               : s.codes < 1790 ? 11
                                                                : 12)));
                else
                    lzw_put(&s, i % 4000 == 3999 ? LZW_CLEAR : i % 256);
            const uint32_t room = wrong - (wrong > 3999) + more;
            streams[count++] = (gpu_stream){.in = s.bytes,
                                            .in_bytes = (uint32_t)((s.bit + 7) / 8),
                                            .room = room,
                                            .needed = room};
        }
    decode_all(streams, count);
    for (uint32_t i = 0; i < count; i++)
        CHECK(streams[i].verdict == (i % 2 ? COGPU_GPU_DAMAGED : 0));
    release_all(streams, count, true);
}

static void nothing_but_control_codes(void) {
    static const uint8_t end[] = {0x80, 0x80}, clears[] = {0x80, 0x40, 0x20, 0x10, 0x08, 0x04};
    static const uint8_t old_style[] = {0, 1, 5, 6, 7}, one[] = {0x80};
    gpu_stream streams[] = {{.in = end, .in_bytes = 2, .room = 5, .needed = 5},
                            {.in = end, .in_bytes = 2, .room = 5, .needed = 0},
                            {.in = clears, .in_bytes = 6, .room = 5, .needed = 1},
                            {.in = one, .in_bytes = 1, .room = 5, .needed = 1},
                            {.in = old_style, .in_bytes = 5, .room = 5, .needed = 1}};
    decode_all(streams, 5);
    CHECK(streams[0].verdict == COGPU_GPU_TOO_SHORT && streams[1].verdict == 0);
    CHECK(streams[2].verdict == COGPU_GPU_TOO_SHORT && streams[3].verdict == COGPU_GPU_TOO_SHORT);
    CHECK(streams[4].verdict == COGPU_GPU_UNUSUAL);
    release_all(streams, 5, false);
}

/* Clears without end are left to the host, after a while. */
static void too_many_clears(void) {
    struct lzw_stream s = {.bytes = calloc(1, 4000)};
    for (uint32_t i = 0; i < 2000; i++)
        lzw_put(&s, LZW_CLEAR);
    lzw_put(&s, 'a');
    gpu_stream stream = {.in = s.bytes, .in_bytes = 2252, .room = 1, .needed = 1};
    decode_all(&stream, 1);
    CHECK(stream.verdict == COGPU_GPU_UNUSUAL);
    release_all(&stream, 1, true);
}

/* ---- damage ---- */

static void cut_off(void) {
    enum { COUNT = 40, BYTES = 11000 };
    gpu_stream streams[COUNT];
    uint8_t *raw = malloc(BYTES);
    fill(raw, BYTES, PREDICTED);
    gpu_stream whole = lzw_encode(raw, BYTES, &lzw_libtiff);
    for (uint32_t i = 0; i < COUNT; i++) {
        streams[i] = whole;
        streams[i].in_bytes = i < 20 ? 1 + i : 1 + draw(whole.in_bytes);
        streams[i].room = BYTES;
        streams[i].needed = 1 + draw(BYTES);
    }
    decode_all(streams, COUNT);
    release_all(streams, COUNT, false);
    free((void *)whole.in);
    free(raw);
}

static void mutations(void) {
    enum { COUNT = 24 };
    for (uint32_t round = 0; round < 6; round++) {
        gpu_stream streams[COUNT];
        const uint32_t bytes = 1 + draw(round < 3 ? 9000 : 600);
        uint8_t *raw = malloc(bytes);
        for (uint32_t i = 0; i < COUNT; i++) {
            const struct lzw_habits habits = {.clear_after = draw(3) ? 3836 : 1 + draw(5000),
                                              .greed = draw(2) ? 16 : draw(17)};
            fill(raw, bytes, (enum content)draw(CONTENTS));
            streams[i] = lzw_encode(raw, bytes, &habits);
            uint8_t *in = (uint8_t *)streams[i].in;
            for (uint32_t changes = 1 + draw(3); changes > 0; changes--)
                in[draw(streams[i].in_bytes)] ^= (uint8_t)(1u << draw(8));
            streams[i].room = 1 + draw(2 * bytes);
            streams[i].needed = 1 + draw(streams[i].room);
        }
        decode_all(streams, COUNT);
        release_all(streams, COUNT, true);
        free(raw);
    }
}

static void noise_as_stream(void) {
    enum { COUNT = 30 };
    gpu_stream streams[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t bytes = 1 + draw(i < 20 ? 40 : 9000);
        uint8_t *in = malloc(bytes);
        fill(in, bytes, i % 3 ? NOISE : FEW_VALUES);
        streams[i] = (gpu_stream){.in = in, .in_bytes = bytes, .room = 1 + draw(20000)};
        streams[i].needed = 1 + draw(1 + streams[i].room / 4);
    }
    decode_all(streams, COUNT);
    release_all(streams, COUNT, true);
}

int main(void) {
    gpu = gpu_test_open(5);
    RUN(small_sizes);
    RUN(as_libtiff);
    RUN(long_runs);
    RUN(windows);
    RUN(other_habits);
    RUN(never_clears);
    RUN(early_clears);
    RUN(hidden_clear);
    RUN(rooms_and_needs);
    RUN(full_before_a_long_segment);
    RUN(wrong_after_the_room);
    RUN(nothing_but_control_codes);
    RUN(too_many_clears);
    RUN(cut_off);
    RUN(mutations);
    RUN(noise_as_stream);
    gpu->calls->close(gpu);
    return FINISH();
}
