/*
 * The PackBits decoder of the GPU against the CPU codec: valid streams, headers of every kind in
 * any order, truncated at any byte. Both give the same bytes; the GPU refuses a block only if they
 * are too few.
 */
#include "codec/codec.h"
#include "support/gpu_test.h"
#include "support/streams.h"
#include "support/test.h"

static cogpu_gpu *gpu;

static bool matches_cpu_codec(const gpu_stream *s) {
    uint8_t *out = malloc(s->capacity), *in = malloc(s->in_bytes);
    const cogpu_block_format format = {0};
    cogpu_error error;
    size_t got = 0;
    memcpy(in, s->in, s->in_bytes);
    cogpu_status status =
        cogpu_decode_packbits(NULL, &format, in, s->in_bytes, out, s->capacity, &got, &error);
    bool same = status == COGPU_OK && memcmp(out, s->out, got) == 0 &&
                s->block_status == (got < s->required ? COGPU_GPU_TOO_SHORT : COGPU_GPU_DECODED);
    free(out);
    free(in);
    return same;
}

static void decode_all(gpu_stream *streams, uint32_t count) {
    CHECK(gpu_test_decode(gpu, &cogpu_gpu_packbits, streams, count, (int)draw(2), draw_state));
    for (uint32_t i = 0; i < count; i++) {
        CHECK(matches_cpu_codec(&streams[i]));
        free(streams[i].out);
    }
}

static void round_trips(void) {
    enum { COUNT = 12, BYTES = 60000 };
    gpu_stream streams[COUNT];
    uint8_t *raw = malloc(BYTES), *encoded[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t bytes = i < 6 ? 1 + draw(300) : 1 + draw(BYTES);
        for (uint32_t at = 0; at < bytes; at++)
            raw[at] = (uint8_t)(i % 3 == 0   ? draw(256)
                                : i % 3 == 1 ? at / 1000
                                             : (at / 100 % 2 ? draw(2) : draw(9)));
        encoded[i] = malloc(2 * (size_t)bytes + 2);
        streams[i] = (gpu_stream){.in = encoded[i],
                                  .in_bytes = packbits_encode(raw, bytes, encoded[i]),
                                  .capacity = bytes,
                                  .required = bytes};
    }
    decode_all(streams, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK(streams[i].block_status == 0);
        free(encoded[i]);
    }
    free(raw);
}

/* ---- streams of any headers ---- */

enum style { ANY_HEADER, LONG_LITERALS, LONG_RUNS, NOPS, SHORT_RUNS, STYLES };

static uint8_t draw_header(enum style style) {
    switch (style) {
    case LONG_LITERALS:
        return (uint8_t)(100 + draw(28));
    case LONG_RUNS:
        return (uint8_t)(129 + draw(9));
    case NOPS:
        return (uint8_t)(draw(200) ? 128 : draw(256));
    case SHORT_RUNS:
        return (uint8_t)(draw(2) ? draw(3) : 253 + draw(3));
    default:
        return (uint8_t)draw(256);
    }
}

/* Bytes after headers are drawn like headers, so that they look like them. */
static void any_headers(void) {
    enum { COUNT = 40 };
    gpu_stream streams[COUNT];
    uint8_t *in[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t bytes = 1 + draw(i < 20 ? 200 : 30000), style = draw(STYLES);
        in[i] = malloc(bytes);
        for (uint32_t at = 0; at < bytes; at++)
            in[i][at] = draw_header((enum style)(draw(50) ? style : draw(STYLES)));
        streams[i] = (gpu_stream){.in = in[i], .in_bytes = bytes};
        streams[i].capacity = 1 + draw(style == LONG_RUNS ? 70 * bytes : 2 * bytes);
        streams[i].required = draw(1 + streams[i].capacity);
    }
    decode_all(streams, COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        free(in[i]);
}

static void every_truncation(void) {
    enum { BYTES = 150 };
    gpu_stream streams[BYTES];
    uint8_t in[BYTES];
    for (uint32_t i = 0; i < BYTES; i++)
        in[i] = draw_header(SHORT_RUNS);
    in[40] = 20;
    for (uint32_t i = 0; i < BYTES; i++)
        streams[i] =
            (gpu_stream){.in = in, .in_bytes = i + 1, .capacity = 400, .required = draw(300)};
    decode_all(streams, BYTES);
}

/* The last header of a window, at every distance from its end, followed by another window. */
static void window_ends(void) {
    enum { COUNT = 140, WINDOW = 8192 };
    gpu_stream streams[COUNT];
    uint8_t *in[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        in[i] = malloc(2 * WINDOW);
        memset(in[i], 128, 2 * WINDOW);
        in[i][WINDOW - 1 - i] = (uint8_t)(i % 3 ? 127 : 200);
        in[i][WINDOW + 140] = 5;
        streams[i] =
            (gpu_stream){.in = in[i], .in_bytes = WINDOW + 150, .capacity = 200, .required = 3};
    }
    decode_all(streams, COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        free(in[i]);
}

TESTS(kernel_packbits_decode) {
    gpu = gpu_test_open(7);
    RUN(round_trips);
    for (int i = 0; i < 5; i++)
        RUN(any_headers);
    RUN(every_truncation);
    RUN(window_ends);
    gpu->calls->close(gpu);
    return FINISH();
}
