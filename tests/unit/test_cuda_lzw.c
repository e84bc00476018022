/*
 * The LZW decoder of the device against the host's: streams of encoders of all kinds that are
 * written here, whole, cut and damaged.
 *
 * The law: a verdict of 0 means that the host takes the stream, that it gets as many bytes as are
 * needed, and that all bytes it writes are the same. What encoders write must get a 0.
 */
#include "codec/codec.h"
#include "gpu_test.h"
#include "test.h"

enum { CLEAR = 256, END = 257, FIRST = 258, TABLE_FULL = 4096 };

static cogpu_gpu *gpu;
static cogpu_codec_state state;
static uint64_t seed = 1;

static uint32_t draw(uint32_t below) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

/* ---- an encoder ---- */

struct habits {
    uint32_t clear_after;    /* codes; 3836 is libtiff's; many: the table stays full */
    uint32_t clear_at_bytes; /* 0, or as well after so many bytes */
    uint32_t greed;          /* of 16 strings so many are as long as they can be */
    bool no_first_clear, no_end, double_clear;
};

static const struct habits libtiff = {.clear_after = 3836, .greed = 16};

struct stream {
    uint8_t *bytes;
    size_t bit;
    uint32_t codes; /* since the last Clear */
};

static void put_code(struct stream *s, uint32_t code) {
    const uint32_t k = s->codes, width = k < 254 ? 9 : k < 766 ? 10 : k < 1790 ? 11 : 12;
    for (uint32_t i = 0; i < width; i++, s->bit++)
        s->bytes[s->bit / 8] |= (uint8_t)((code >> (width - 1 - i) & 1) << (7 - s->bit % 8));
    s->codes = code == CLEAR ? 0 : s->codes + 1;
}

static uint16_t child[TABLE_FULL][256];

static void put_clear(struct stream *s, const struct habits *habits) {
    const uint32_t used = FIRST + s->codes;
    memset(child, 0, (used < TABLE_FULL ? used : TABLE_FULL) * sizeof *child);
    put_code(s, CLEAR);
    if (habits->double_clear)
        put_code(s, CLEAR);
}

/* One that need not be greedy must add what the decoder adds: the last string and the byte after
 * it, which may be in the table already. */
static gpu_stream encode(const uint8_t *content, uint32_t bytes, const struct habits *habits) {
    struct stream s = {.bytes = calloc(1, 3 * (size_t)bytes + 64)};
    memset(child, 0, sizeof child);
    if (!habits->no_first_clear)
        put_clear(&s, habits);
    for (uint32_t at = 0, since = 0, last = 0; at < bytes;) {
        if (s.codes >= habits->clear_after ||
            (habits->clear_at_bytes && since >= habits->clear_at_bytes)) {
            put_clear(&s, habits);
            since = 0;
        }
        uint32_t string = content[at++];
        since++;
        /* the entry that this code adds has the number FIRST + codes - 1 */
        if (s.codes > 0 && FIRST + s.codes - 1 < TABLE_FULL && !child[last][string])
            child[last][string] = (uint16_t)(FIRST + s.codes - 1);
        while (at < bytes && child[string][content[at]] && draw(16) < habits->greed) {
            string = child[string][content[at++]];
            since++;
        }
        put_code(&s, string);
        last = string;
    }
    if (!habits->no_end)
        put_code(&s, END);
    return (gpu_stream){.in = s.bytes, .in_bytes = (uint32_t)((s.bit + 7) / 8)};
}

/* ---- contents ---- */

enum content { CONSTANT, RAMP, NOISE, FEW_VALUES, PREDICTED, TEXT, PERIODIC, CONTENTS };

static void fill(uint8_t *to, uint32_t bytes, enum content content) {
    static const char text[] = "the rivers of the plain and the rivers of the mountains ";
    for (uint32_t i = 0; i < bytes; i++)
        switch (content) {
        case CONSTANT:
            to[i] = 7;
            break;
        case RAMP:
            to[i] = (uint8_t)(i / 3);
            break;
        case NOISE:
            to[i] = (uint8_t)draw(256);
            break;
        case FEW_VALUES:
            to[i] = (uint8_t)(draw(10) ? 3 : draw(4));
            break;
        case PREDICTED: /* differences of floats: noise below, few values above */
            to[i] = (uint8_t)(i % 4 == 0 ? draw(256) : i % 4 == 1 ? draw(20) - 10 : 0u - draw(2));
            break;
        case TEXT:
            to[i] = (uint8_t)text[(i + (draw(50) == 0 ? draw(9) : 0)) % (sizeof text - 1)];
            break;
        default:
            to[i] = (uint8_t)(i % 3);
        }
}

/* ---- the law ---- */

/* Whether the device kept it, for a stream that it has decoded. */
static bool keeps_the_law(const gpu_stream *s) {
    uint8_t *out = malloc(s->room);
    uint8_t *in = malloc(s->in_bytes);
    const cogpu_block_format format = {0};
    cogpu_error error;
    size_t got = 0;
    memcpy(in, s->in, s->in_bytes);
    cogpu_status status =
        cogpu_decode_lzw(&state, &format, in, s->in_bytes, out, s->room, &got, &error);
    bool good = s->verdict != 0 ||
                (status == COGPU_OK && got >= s->needed && memcmp(out, s->out, got) == 0);
    /* and it should not leave to the host what it could have done */
    if (status == COGPU_OK && got >= s->needed && s->verdict != 0 &&
        s->verdict != COGPU_GPU_UNUSUAL)
        good = false;
    free(in);
    free(out);
    return good;
}

static void decode_all(gpu_stream *streams, uint32_t count) {
    CHECK(gpu_test_decode(gpu, &cogpu_gpu_lzw, streams, count, (int)draw(2), seed));
    for (uint32_t i = 0; i < count; i++)
        CHECK(keeps_the_law(&streams[i]));
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
static void round_trip(uint32_t bytes, const struct habits *habits) {
    gpu_stream streams[CONTENTS];
    uint8_t *raw = malloc(bytes);
    for (uint32_t i = 0; i < CONTENTS; i++) {
        fill(raw, bytes, (enum content)i);
        raw[0] |= 4; /* no old style by accident where the first Clear lacks */
        streams[i] = encode(raw, bytes, habits);
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
        round_trip(bytes, &libtiff);
}

static void as_libtiff(void) {
    round_trip(15000, &libtiff);
    round_trip(15361, &libtiff);
    round_trip(70000, &libtiff);
}

static void long_runs(void) {
    uint8_t *raw = malloc(9 << 20);
    gpu_stream streams[3];
    fill(raw, 9 << 20, CONSTANT);
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t bytes = i == 0 ? 66000 : i == 1 ? 400000 : 8 << 20;
        streams[i] = encode(raw + i, bytes, &libtiff);
        streams[i].room = streams[i].needed = bytes;
    }
    decode_all(streams, 3);
    for (uint32_t i = 0; i < 3; i++)
        CHECK(streams[i].verdict == 0);
    release_all(streams, 3, true);
    free(raw);
}

static void other_habits(void) {
    const struct habits habits[] = {
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
    round_trip(30000, &(struct habits){.clear_after = 1u << 30, .greed = 16});
    round_trip(20000, &(struct habits){.clear_after = 6000, .greed = 12, .no_end = true});
}

/* Clears that come early here and there: what lies before and after is regular. */
static void early_clears(void) {
    gpu_stream streams[6];
    uint8_t *raw = malloc(60000);
    fill(raw, 60000, NOISE);
    for (uint32_t i = 0; i < 6; i++) {
        const struct habits habits = {
            .clear_after = 3836, .greed = 16, .clear_at_bytes = 3836 * (i / 2) + 600 + draw(3000)};
        streams[i] = encode(raw, i % 2 ? 60000 : 30000, &habits);
        streams[i].room = streams[i].needed = i % 2 ? 60000 : 30000;
    }
    decode_all(streams, 6);
    for (uint32_t i = 0; i < 6; i++)
        CHECK(streams[i].verdict == 0);
    release_all(streams, 6, true);
    free(raw);
}

/* A Clear where no encoder would put it: all later ones are still at their regular places, but mean
 * something else. The scan is deceived, the decoder finds out. */
static void hidden_clear(void) {
    enum { BYTES = 30000 };
    uint8_t *raw = malloc(BYTES);
    fill(raw, BYTES, NOISE);
    gpu_stream stream = encode(raw, BYTES, &libtiff);
    struct stream s = {.bytes = (uint8_t *)stream.in, .bit = 9 + 9 * 200, .codes = 200};
    s.bytes[s.bit / 8] &= (uint8_t)(0xFF00 >> s.bit % 8);
    s.bytes[s.bit / 8 + 1] &= (uint8_t)(0x7F >> s.bit % 8);
    put_code(&s, CLEAR);
    stream.room = stream.needed = BYTES;
    decode_all(&stream, 1);
    CHECK(stream.verdict == COGPU_GPU_UNUSUAL);
    release_all(&stream, 1, true);
    free(raw);
}

/* ---- rooms, needs, ends ---- */

static void rooms_and_needs(void) {
    enum { COUNT = 24, BYTES = 12000 };
    gpu_stream streams[COUNT];
    uint8_t *raw = malloc(BYTES);
    fill(raw, BYTES, PREDICTED);
    gpu_stream whole = encode(raw, BYTES, &libtiff);
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

/* Nothing is looked at after the block is full: not even what is wrong. */
static void wrong_after_the_room(void) {
    gpu_stream streams[40];
    uint32_t count = 0;
    for (uint32_t wrong = 1; wrong <= 5000; wrong += wrong == 3494 ? 998 : 499)
        for (uint32_t more = 0; more < 2; more++) {
            struct stream s = {.bytes = calloc(1, 20000)};
            put_code(&s, CLEAR);
            for (uint32_t i = 0; i < 6000; i++)
                if (i == wrong)
                    put_code(&s, 4095 >> (12 - (s.codes < 254    ? 9
                                                : s.codes < 766  ? 10
                                                : s.codes < 1790 ? 11
                                                                 : 12)));
                else
                    put_code(&s, i % 4000 == 3999 ? CLEAR : i % 256);
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
    struct stream s = {.bytes = calloc(1, 4000)};
    for (uint32_t i = 0; i < 2000; i++)
        put_code(&s, CLEAR);
    put_code(&s, 'a');
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
    gpu_stream whole = encode(raw, BYTES, &libtiff);
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
            const struct habits habits = {.clear_after = draw(3) ? 3836 : 1 + draw(5000),
                                          .greed = draw(2) ? 16 : draw(17)};
            fill(raw, bytes, (enum content)draw(CONTENTS));
            streams[i] = encode(raw, bytes, &habits);
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
    RUN(other_habits);
    RUN(never_clears);
    RUN(early_clears);
    RUN(hidden_clear);
    RUN(rooms_and_needs);
    RUN(wrong_after_the_room);
    RUN(nothing_but_control_codes);
    RUN(too_many_clears);
    RUN(cut_off);
    RUN(mutations);
    RUN(noise_as_stream);
    gpu->calls->close(gpu);
    cogpu_codec_state_close(&state);
    return FINISH();
}
