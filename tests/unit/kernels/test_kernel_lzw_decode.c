/*
 * The LZW decoder of the GPU against the CPU codec: streams in the style of many encoders,
 * complete, truncated and damaged. The contract of gpu_contract.h holds, and valid streams are
 * decoded.
 */
#include "support/gpu_contract.h"
#include "support/gpu_test.h"
#include "support/streams.h"
#include "support/test.h"

static cogpu_gpu *gpu;

static void decode_all(gpu_stream *streams, uint32_t count) {
    CHECK(gpu_test_decode(gpu, &cogpu_gpu_lzw, streams, count, (int)draw(2), draw_state));
    for (uint32_t i = 0; i < count; i++)
        CHECK(!gpu_contract_violation(gpu_find_codec(COMPRESSION_LZW), &streams[i], NULL));
}

static void release_all(gpu_stream *streams, uint32_t count, bool inputs) {
    for (uint32_t i = 0; i < count; i++) {
        free(streams[i].out);
        streams[i].out = NULL;
        if (inputs)
            free((void *)streams[i].in);
    }
}

/* Encodes all kinds of content in one style, decodes them in one batch. */
static void round_trip(uint32_t bytes, const struct lzw_encoder_style *style) {
    gpu_stream streams[CONTENTS];
    uint8_t *raw = malloc(bytes);
    for (uint32_t i = 0; i < CONTENTS; i++) {
        fill_content(raw, bytes, (enum content)i);
        raw[0] |= 4; /* must not look like the old bit order if there is no first Clear */
        streams[i] = lzw_encode(raw, bytes, style);
        streams[i].capacity = streams[i].required = bytes;
    }
    decode_all(streams, CONTENTS);
    for (uint32_t i = 0; i < CONTENTS; i++)
        CHECK(streams[i].block_status == 0);
    release_all(streams, CONTENTS, true);
    free(raw);
}

/* ---- valid streams ---- */

static void small_sizes(void) {
    for (uint32_t bytes = 1; bytes < 3000; bytes += 1 + bytes)
        round_trip(bytes, &lzw_libtiff);
}

static void libtiff_sizes(void) {
    round_trip(15000, &lzw_libtiff);
    round_trip(15361, &lzw_libtiff);
    round_trip(70000, &lzw_libtiff);
}

static void long_runs(void) {
    uint8_t *raw = malloc(9 << 20);
    gpu_stream streams[3];
    fill_content(raw, 9 << 20, CONSTANT);
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t bytes = i == 0 ? 66000 : i == 1 ? 400000 : 8 << 20;
        streams[i] = lzw_encode(raw + i, bytes, &lzw_libtiff);
        streams[i].capacity = streams[i].required = bytes;
    }
    decode_all(streams, 3);
    for (uint32_t i = 0; i < 3; i++)
        CHECK(streams[i].block_status == 0);
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
        fill_content(raw, bytes, i % 3 == 0 ? CONSTANT : i % 3 == 1 ? PERIODIC : TEXT);
        streams[i] = lzw_encode(raw, bytes, &lzw_libtiff);
        const uint32_t end = bytes / WINDOW * WINDOW + draw(3);
        streams[i].capacity = streams[i].required = end > 2 && end < bytes && draw(2) ? end : bytes;
    }
    decode_all(streams, COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        CHECK(streams[i].block_status == 0);
    release_all(streams, COUNT, true);
    free(raw);
}

static void other_encoder_styles(void) {
    const struct lzw_encoder_style style[] = {
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
    for (size_t i = 0; i < sizeof style / sizeof *style; i++)
        round_trip(20000 + draw(3000), &style[i]);
}

/* Codes after a full table. */
static void never_clears(void) {
    round_trip(30000, &(struct lzw_encoder_style){.clear_after = 1u << 30, .greed = 16});
    round_trip(20000,
               &(struct lzw_encoder_style){.clear_after = 6000, .greed = 12, .no_end = true});
}

/* Early Clears here and there, regular ones before and after. */
static void early_clears(void) {
    gpu_stream streams[6];
    uint8_t *raw = malloc(60000);
    fill_content(raw, 60000, NOISE);
    for (uint32_t i = 0; i < 6; i++) {
        const struct lzw_encoder_style style = {
            .clear_after = 3836, .greed = 16, .clear_at_bytes = 3836 * (i / 2) + 600 + draw(3000)};
        streams[i] = lzw_encode(raw, i % 2 ? 60000 : 30000, &style);
        streams[i].capacity = streams[i].required = i % 2 ? 60000 : 30000;
    }
    decode_all(streams, 6);
    for (uint32_t i = 0; i < 6; i++)
        CHECK(streams[i].block_status == 0);
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
    fill_content(raw, BYTES, NOISE);
    gpu_stream stream =
        lzw_encode(raw, BYTES, &(struct lzw_encoder_style){.clear_after = clear_after, .greed = 0});
    struct lzw_stream s = {.bytes = (uint8_t *)stream.in,
                           .bit = 9 + bits_of(clear_after) + 12 + bits_of(number),
                           .codes = number};
    for (uint32_t bit = (uint32_t)s.bit; bit < 9 + bits_of(clear_after) + 12 + bits_of(number + 1);
         bit++)
        s.bytes[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
    lzw_put(&s, LZW_CLEAR);
    stream.capacity = stream.required = BYTES;
    free(raw);
    return stream;
}

/* A Clear that no encoder writes: all later ones are still at their regular positions, but mean
 * something else. The scan kernel does not see it, the decode kernel does. It does not look for
 * Clears after a full table, so there the scan kernel must see it. */
static void hidden_clear(void) {
    gpu_stream streams[] = {with_clear_at(3836, 200),  with_clear_at(3836, 3835),
                            with_clear_at(3840, 3839), with_clear_at(3841, 3840),
                            with_clear_at(5000, 3840), with_clear_at(5000, 4900)};
    decode_all(streams, 6);
    for (uint32_t i = 0; i < 3; i++)
        CHECK(streams[i].block_status == COGPU_GPU_UNSUPPORTED);
    for (uint32_t i = 3; i < 6; i++)
        CHECK(streams[i].block_status != COGPU_GPU_DECODED);
    release_all(streams, 6, true);
}

/* ---- capacity and required bytes ---- */

static void capacity_and_needed(void) {
    enum { COUNT = 24, BYTES = 12000 };
    gpu_stream streams[COUNT];
    uint8_t *raw = malloc(BYTES);
    fill_content(raw, BYTES, PREDICTED);
    gpu_stream whole = lzw_encode(raw, BYTES, &lzw_libtiff);
    for (uint32_t i = 0; i < COUNT; i++) {
        streams[i] = whole;
        streams[i].capacity = i < 8 ? 1 + draw(BYTES) : BYTES - 12 + i;
        streams[i].required = i % 2 ? streams[i].capacity : 1 + draw(streams[i].capacity);
    }
    decode_all(streams, COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        CHECK((streams[i].block_status == 0) == (streams[i].required <= BYTES) &&
              (streams[i].block_status == 0 || streams[i].block_status == COGPU_GPU_TOO_SHORT));
    release_all(streams, COUNT, false);
    free((void *)whole.in);
    free(raw);
}

/* Blocks that are full before their long segment begins, and one that is not. */
static void full_before_a_long_segment(void) {
    enum { COUNT = 4, BYTES = 90000, SHORT = 3836 };
    gpu_stream streams[COUNT];
    uint8_t *raw = malloc(BYTES);
    fill_content(raw, BYTES, CONSTANT);
    fill_content(raw, SHORT, NOISE); /* about one code per byte */
    gpu_stream whole = lzw_encode(raw, BYTES, &lzw_libtiff);
    for (uint32_t i = 0; i < COUNT; i++) {
        streams[i] = whole;
        streams[i].capacity = streams[i].required = i == 2 ? BYTES : SHORT - i;
    }
    decode_all(streams, COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        CHECK(streams[i].block_status == 0);
    release_all(streams, COUNT, false);
    free((void *)whole.in);
    free(raw);
}

/* What follows when the block is full is ignored, even if it is invalid. */
static void invalid_after_the_capacity(void) {
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
            const uint32_t capacity = wrong - (wrong > 3999) + more;
            streams[count++] = (gpu_stream){.in = s.bytes,
                                            .in_bytes = (uint32_t)((s.bit + 7) / 8),
                                            .capacity = capacity,
                                            .required = capacity};
        }
    decode_all(streams, count);
    for (uint32_t i = 0; i < count; i++)
        CHECK(streams[i].block_status == (i % 2 ? COGPU_GPU_MALFORMED : 0));
    release_all(streams, count, true);
}

static void nothing_but_control_codes(void) {
    static const uint8_t end[] = {0x80, 0x80}, clears[] = {0x80, 0x40, 0x20, 0x10, 0x08, 0x04};
    static const uint8_t old_style[] = {0, 1, 5, 6, 7}, one[] = {0x80};
    gpu_stream streams[] = {{.in = end, .in_bytes = 2, .capacity = 5, .required = 5},
                            {.in = end, .in_bytes = 2, .capacity = 5, .required = 0},
                            {.in = clears, .in_bytes = 6, .capacity = 5, .required = 1},
                            {.in = one, .in_bytes = 1, .capacity = 5, .required = 1},
                            {.in = old_style, .in_bytes = 5, .capacity = 5, .required = 1}};
    decode_all(streams, 5);
    CHECK(streams[0].block_status == COGPU_GPU_TOO_SHORT && streams[1].block_status == 0);
    CHECK(streams[2].block_status == COGPU_GPU_TOO_SHORT &&
          streams[3].block_status == COGPU_GPU_TOO_SHORT);
    CHECK(streams[4].block_status == COGPU_GPU_UNSUPPORTED);
    release_all(streams, 5, false);
}

/* Too many Clears are refused. */
static void too_many_clears(void) {
    struct lzw_stream s = {.bytes = calloc(1, 4000)};
    for (uint32_t i = 0; i < 2000; i++)
        lzw_put(&s, LZW_CLEAR);
    lzw_put(&s, 'a');
    gpu_stream stream = {.in = s.bytes, .in_bytes = 2252, .capacity = 1, .required = 1};
    decode_all(&stream, 1);
    CHECK(stream.block_status == COGPU_GPU_UNSUPPORTED);
    release_all(&stream, 1, true);
}

/* ---- damage ---- */

static void truncated(void) {
    enum { COUNT = 40, BYTES = 11000 };
    gpu_stream streams[COUNT];
    uint8_t *raw = malloc(BYTES);
    fill_content(raw, BYTES, PREDICTED);
    gpu_stream whole = lzw_encode(raw, BYTES, &lzw_libtiff);
    for (uint32_t i = 0; i < COUNT; i++) {
        streams[i] = whole;
        streams[i].in_bytes = i < 20 ? 1 + i : 1 + draw(whole.in_bytes);
        streams[i].capacity = BYTES;
        streams[i].required = 1 + draw(BYTES);
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
            const struct lzw_encoder_style style = {.clear_after = draw(3) ? 3836 : 1 + draw(5000),
                                                    .greed = draw(2) ? 16 : draw(17)};
            fill_content(raw, bytes, (enum content)draw(CONTENTS));
            streams[i] = lzw_encode(raw, bytes, &style);
            uint8_t *in = (uint8_t *)streams[i].in;
            for (uint32_t changes = 1 + draw(3); changes > 0; changes--)
                in[draw(streams[i].in_bytes)] ^= (uint8_t)(1u << draw(8));
            streams[i].capacity = 1 + draw(2 * bytes);
            streams[i].required = 1 + draw(streams[i].capacity);
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
        fill_content(in, bytes, i % 3 ? NOISE : FEW_VALUES);
        streams[i] = (gpu_stream){.in = in, .in_bytes = bytes, .capacity = 1 + draw(20000)};
        streams[i].required = 1 + draw(1 + streams[i].capacity / 4);
    }
    decode_all(streams, COUNT);
    release_all(streams, COUNT, true);
}

TESTS(kernel_lzw_decode) {
    gpu = gpu_test_open(5);
    RUN(small_sizes);
    RUN(libtiff_sizes);
    RUN(long_runs);
    RUN(windows);
    RUN(other_encoder_styles);
    RUN(never_clears);
    RUN(early_clears);
    RUN(hidden_clear);
    RUN(capacity_and_needed);
    RUN(full_before_a_long_segment);
    RUN(invalid_after_the_capacity);
    RUN(nothing_but_control_codes);
    RUN(too_many_clears);
    RUN(truncated);
    RUN(mutations);
    RUN(noise_as_stream);
    gpu->calls->close(gpu);
    return FINISH();
}
