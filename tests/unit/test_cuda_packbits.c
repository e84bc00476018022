/*
 * The PackBits decoder of the device against the host's: what an encoder writes, heads of every
 * kind in any order, cut at any place. A verdict of 0 means that the host gets as many bytes as are
 * needed, and that all of them are the same; anything else, that it gets fewer.
 */
#include "codec/codec.h"
#include "gpu_test.h"
#include "streams.h"
#include "test.h"

static cogpu_gpu *gpu;
static bool same_as_host(const gpu_stream *s) {
    uint8_t *out = malloc(s->room), *in = malloc(s->in_bytes);
    const cogpu_block_format format = {0};
    cogpu_error error;
    size_t got = 0;
    memcpy(in, s->in, s->in_bytes);
    cogpu_status status =
        cogpu_decode_packbits(NULL, &format, in, s->in_bytes, out, s->room, &got, &error);
    bool same = status == COGPU_OK && memcmp(out, s->out, got) == 0 &&
                s->verdict == (got < s->needed ? COGPU_GPU_TOO_SHORT : COGPU_GPU_DECODED);
    free(out);
    free(in);
    return same;
}

static void decode_all(gpu_stream *streams, uint32_t count) {
    CHECK(gpu_test_decode(gpu, &cogpu_gpu_packbits, streams, count, (int)draw(2), seed));
    for (uint32_t i = 0; i < count; i++) {
        CHECK(same_as_host(&streams[i]));
        free(streams[i].out);
    }
}

static void round_trips(void) {
    enum { COUNT = 12, BYTES = 60000 };
    gpu_stream streams[COUNT];
    uint8_t *raw = malloc(BYTES), *coded[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t bytes = i < 6 ? 1 + draw(300) : 1 + draw(BYTES);
        for (uint32_t at = 0; at < bytes; at++)
            raw[at] = (uint8_t)(i % 3 == 0   ? draw(256)
                                : i % 3 == 1 ? at / 1000
                                             : (at / 100 % 2 ? draw(2) : draw(9)));
        coded[i] = malloc(2 * (size_t)bytes + 2);
        streams[i] = (gpu_stream){.in = coded[i],
                                  .in_bytes = packbits_encode(raw, bytes, coded[i]),
                                  .room = bytes,
                                  .needed = bytes};
    }
    decode_all(streams, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK(streams[i].verdict == 0);
        free(coded[i]);
    }
    free(raw);
}

/* ---- streams of any heads ---- */

enum taste { ANY_HEAD, LONG_LITERALS, LONG_RUNS, NOPS, SHORT_ONES, TASTES };

static uint8_t draw_head(enum taste taste) {
    switch (taste) {
    case LONG_LITERALS:
        return (uint8_t)(100 + draw(28));
    case LONG_RUNS:
        return (uint8_t)(129 + draw(9));
    case NOPS:
        return (uint8_t)(draw(200) ? 128 : draw(256));
    case SHORT_ONES:
        return (uint8_t)(draw(2) ? draw(3) : 253 + draw(3));
    default:
        return (uint8_t)draw(256);
    }
}

/* What follows heads is drawn as heads are, so that it looks like them. */
static void any_heads(void) {
    enum { COUNT = 40 };
    gpu_stream streams[COUNT];
    uint8_t *in[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t bytes = 1 + draw(i < 20 ? 200 : 30000), taste = draw(TASTES);
        in[i] = malloc(bytes);
        for (uint32_t at = 0; at < bytes; at++)
            in[i][at] = draw_head((enum taste)(draw(50) ? taste : draw(TASTES)));
        streams[i] = (gpu_stream){.in = in[i], .in_bytes = bytes};
        streams[i].room = 1 + draw(taste == LONG_RUNS ? 70 * bytes : 2 * bytes);
        streams[i].needed = draw(1 + streams[i].room);
    }
    decode_all(streams, COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        free(in[i]);
}

static void every_cut(void) {
    enum { BYTES = 150 };
    gpu_stream streams[BYTES];
    uint8_t in[BYTES];
    for (uint32_t i = 0; i < BYTES; i++)
        in[i] = draw_head(SHORT_ONES);
    in[40] = 20;
    for (uint32_t i = 0; i < BYTES; i++)
        streams[i] = (gpu_stream){.in = in, .in_bytes = i + 1, .room = 400, .needed = draw(300)};
    decode_all(streams, BYTES);
}

/* The last head of a window, at every distance from its end, followed by another window. */
static void window_ends(void) {
    enum { COUNT = 140, WINDOW = 8192 };
    gpu_stream streams[COUNT];
    uint8_t *in[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        in[i] = malloc(2 * WINDOW);
        memset(in[i], 128, 2 * WINDOW);
        in[i][WINDOW - 1 - i] = (uint8_t)(i % 3 ? 127 : 200);
        in[i][WINDOW + 140] = 5;
        streams[i] = (gpu_stream){.in = in[i], .in_bytes = WINDOW + 150, .room = 200, .needed = 3};
    }
    decode_all(streams, COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        free(in[i]);
}

int main(void) {
    gpu = gpu_test_open(7);
    RUN(round_trips);
    for (int i = 0; i < 5; i++)
        RUN(any_heads);
    RUN(every_cut);
    RUN(window_ends);
    gpu->calls->close(gpu);
    return FINISH();
}
