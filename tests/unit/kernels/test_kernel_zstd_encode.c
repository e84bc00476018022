/*
 * GPU Zstandard encoder. libzstd, the CPU codec and the GPU decoder must all decode its frames.
 * They have a content size, are within libzstd's bound and not much longer than libzstd's own; and
 * they are the same in any order of threads, in any batch and with any scratch.
 */
#include "codec/codec.h"
#include "kernels/zstd/zstd_encode_args.h"
#include "support/gpu_encode_test.h"
#include "support/streams.h"
#include "support/test.h"

#if COGPU_HAVE_ZSTD
#include <zstd.h>
#endif

enum { PART = COGPU_ZSTD_PART_BYTES, ROW = 1024 };

static cogpu_gpu *gpu;

/* ---- test data, in addition to streams.h ---- */

/* Heights with predictor 3 (differenced byte planes) or predictor 2. */
static void fill_floats(uint8_t *to, uint32_t bytes, bool in_planes) {
    uint8_t row[ROW];
    double height = 800;
    uint32_t before = 0;
    for (uint32_t at = 0; at < bytes; at += ROW) {
        for (uint32_t x = 0; x < ROW / 4; x++) {
            height += ((int)draw(2001) - 1000) / 4000.0;
            const float sample = (float)((int)(height * 100) / 100.0);
            uint32_t word;
            memcpy(&word, &sample, 4);
            for (uint32_t i = 0; i < 4; i++)
                row[in_planes ? ROW / 4 * i + x : 4 * x + i] =
                    (uint8_t)(in_planes ? word >> (24 - 8 * i) : (word - before) >> 8 * i);
            before = word;
        }
        for (uint32_t i = ROW - 1; in_planes && i > 0; i--)
            row[i] = (uint8_t)(row[i] - row[i - 1]);
        memcpy(to + at, row, bytes - at < ROW ? bytes - at : ROW);
    }
}

enum { PLANES = CONTENTS, SAMPLES, SHORTS, ROWS, RUNS, SKEWED, SPARSE, ECHO, KINDS };

static uint8_t byte_of(int kind, const uint8_t *data, uint32_t i) {
    switch (kind) {
    case SHORTS:
        return (uint8_t)(i % 2 ? (data[i - 1] > 127 ? 255 : 0) : draw(40) + draw(40) - 39);
    case ROWS:
        return i < ROW || draw(50) == 0 ? (uint8_t)draw(256) : data[i - ROW];
    case RUNS:
        return i == 0 || draw(40) == 0 ? (uint8_t)draw(256) : data[i - 1];
    case SPARSE: /* matches, with literals before each */
        return i % 1000 > 500 && i % 20 > 9 ? data[i - 500] : (uint8_t)draw(256);
    case ECHO: /* noise, and the same again after a while, across parts too */
        return i < 20000 ? (uint8_t)draw(256) : data[i - 20000];
    default: /* SKEWED: each value half as often as the one before it, so that codes get long */
        for (uint8_t value = 0;; value++)
            if (value == 40 || draw(2))
                return value;
    }
}

static gpu_block block_of(uint32_t bytes, int kind) {
    uint8_t *raw = malloc(bytes);
    if (kind < CONTENTS)
        fill_content(raw, bytes, (enum content)kind);
    else if (kind <= SAMPLES)
        fill_floats(raw, bytes, kind == PLANES);
    else
        for (uint32_t i = 0; i < bytes; i++)
            raw[i] = byte_of(kind, raw, i);
    const uint32_t step = kind == SHORTS ? 2 : kind == PREDICTED || kind == SAMPLES ? 4 : 1;
    return (gpu_block){.in = raw, .in_bytes = bytes, .row_bytes = ROW, .step = step};
}

static void release_all(gpu_block *blocks, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        free((void *)blocks[i].in);
        free(blocks[i].out);
    }
}

/* ---- reference decoder ---- */

#if COGPU_HAVE_ZSTD
static bool zstd_decodes(const gpu_block *block) {
    uint8_t *in = malloc(block->size), *out = malloc(block->in_bytes);
    memcpy(in, block->out, block->size);
    const size_t got = ZSTD_decompress(out, block->in_bytes, in, block->size);
    const bool is_same = got == block->in_bytes && memcmp(out, block->in, got) == 0 &&
                         ZSTD_getFrameContentSize(in, block->size) == block->in_bytes &&
                         ZSTD_findFrameCompressedSize(in, block->size) == block->size &&
                         block->size <= ZSTD_compressBound(block->in_bytes);
    if (!is_same)
        printf("a block of %u bytes: %s\n", block->in_bytes, ZSTD_getErrorName(got));
    free(in);
    free(out);
    return is_same;
}

/* Bytes of libzstd for the same block. */
static uint32_t zstd_size(const gpu_block *block, int level) {
    const size_t capacity = ZSTD_compressBound(block->in_bytes);
    uint8_t *out = malloc(capacity);
    const size_t size = ZSTD_compress(out, capacity, block->in, block->in_bytes, level);
    CHECK(!ZSTD_isError(size));
    free(out);
    return (uint32_t)size;
}
#endif

static void encode_all(gpu_block *blocks, uint32_t count, int level) {
    CHECK(gpu_test_encode(gpu, &cogpu_gpu_zstd_encoder, blocks, count, level, (int)draw(2)));
    CHECK(gpu_test_round_trip(gpu, COMPRESSION_ZSTD, blocks, count));
#if COGPU_HAVE_ZSTD
    for (uint32_t i = 0; i < count; i++)
        CHECK(zstd_decodes(&blocks[i]));
#endif
}

/* ---- tests ---- */

static const int levels[] = {1, 5, 9, 19};

static void every_content(void) {
    for (uint32_t l = 0; l < 4; l += 3) {
        gpu_block blocks[KINDS];
        for (int kind = 0; kind < KINDS; kind++)
            blocks[kind] = block_of(PART + 1 + draw(PART), kind);
        encode_all(blocks, KINDS, levels[l]);
        CHECK(blocks[CONSTANT].size <= 24);
        CHECK(blocks[PERIODIC].size < blocks[PERIODIC].in_bytes / 4);
        CHECK(blocks[ROWS].size < blocks[ROWS].in_bytes / 4);
        CHECK(blocks[RUNS].size < blocks[RUNS].in_bytes / 9);
        CHECK(blocks[NOISE].size == cogpu_gpu_zstd_encoder.bound(blocks[NOISE].in_bytes, 0) -
                                        (blocks[NOISE].in_bytes < 65792 ? 2 : 0));
        release_all(blocks, KINDS);
    }
}

/* Borders of parts and segments, and of the formats of sizes and counts. */
static void sizes(void) {
    static const uint32_t bytes[] = {
        1,   2,   3,    4,    5,    31,       63,   64,       127,         128,        129,
        255, 256, 1023, 1025, 4096, PART - 1, PART, PART + 1, 65535 + 256, 65536 + 256};
    static const int kinds[] = {PLANES, NOISE, CONSTANT, TEXT};
    enum { COUNT = sizeof bytes / sizeof *bytes };
    for (uint32_t turn = 0; turn < 4; turn++) {
        gpu_block blocks[COUNT];
        for (uint32_t i = 0; i < COUNT; i++)
            blocks[i] = block_of(bytes[i], kinds[turn]);
        encode_all(blocks, COUNT, levels[turn]);
        release_all(blocks, COUNT);
    }
}

static void small_sizes(void) {
    enum { COUNT = 60 };
    gpu_block blocks[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        blocks[i] = block_of(1 + 7 * i, (int)draw(KINDS));
    encode_all(blocks, COUNT, 9);
    release_all(blocks, COUNT);
}

/* Raw and RLE blocks between compressed ones. */
static void mixed_parts(void) {
    gpu_block blocks[3];
    for (uint32_t i = 0; i < 3; i++) {
        blocks[i] = block_of(3 * PART + draw(PART), PLANES);
        for (uint32_t at = 0; at < blocks[i].in_bytes; at++) {
            const uint32_t kind = (at / PART + i) % 4;
            if (kind < 2)
                ((uint8_t *)blocks[i].in)[at] = (uint8_t)(kind == 0 ? draw(256) : 9);
        }
    }
    encode_all(blocks, 3, 9);
    release_all(blocks, 3);
}

/* Arbitrary values of `step` and `row_bytes`. */
static void steps_and_rows(void) {
    static const uint32_t distances[] = {0,    1,     2,     3,     5,        7,       127,
                                         4096, 32767, 32768, 40000, 1u << 30, 1u << 31};
    enum { COUNT = 30 };
    gpu_block blocks[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        blocks[i] = block_of(i < 6 ? PART + 20000 : 3000 + draw(3000), i % 2 ? ROWS : TEXT);
        blocks[i].step = distances[draw(13)];
        blocks[i].row_bytes = distances[draw(13)];
        uint8_t *raw = (uint8_t *)blocks[i].in;
        const uint32_t distance = i % 3 ? blocks[i].step : blocks[i].row_bytes;
        for (uint32_t at = distance; distance > 0 && at < blocks[i].in_bytes; at++)
            raw[at] = draw(30) ? raw[at - distance] : (uint8_t)draw(9);
    }
    encode_all(blocks, COUNT, 1);
    release_all(blocks, COUNT);
}

/* Random matches: repeat offsets, matches directly after matches. */
static void random_matches(void) {
    enum { COUNT = 6 };
    gpu_block blocks[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        blocks[i] = block_of(10000 + draw(40000), NOISE);
        uint8_t *raw = (uint8_t *)blocks[i].in;
        const uint32_t distances[] = {1, blocks[i].step = 1 + draw(9), ROW, 3 + draw(3000),
                                      9 + draw(9000)};
        for (uint32_t at = 1 + draw(300); at < blocks[i].in_bytes;) {
            const uint32_t distance = distances[draw(5)];
            for (uint32_t left = 3 + draw(draw(9) ? 20 : 400); left > 0 && distance < at; left--)
                if (at < blocks[i].in_bytes) {
                    raw[at] = raw[at - distance];
                    at++;
                }
            at += draw(3) ? draw(6) : 0;
            at += draw(200) == 0 ? draw(300) : 0;
        }
    }
    for (uint32_t l = 0; l < 4; l++) {
        encode_all(blocks, COUNT, levels[l]);
        for (uint32_t i = 0; i < COUNT; i++)
            free(blocks[i].out);
    }
    for (uint32_t i = 0; i < COUNT; i++)
        free((void *)blocks[i].in);
}

static bool is_same(const gpu_block *a, const gpu_block *b) {
    return a->size == b->size && memcmp(a->out, b->out, a->size) == 0;
}

/* Blocks of all sizes, some sparse: in one round, in several, each alone, and on another device. */
static void same_bytes(void) {
    enum { COUNT = 10 };
    cogpu_gpu *other = gpu_test_open(101);
    for (uint32_t l = 0; l < 4; l += 3) {
        gpu_block blocks[COUNT], in_rounds[COUNT], elsewhere[COUNT], alone;
        for (uint32_t i = 0; i < COUNT; i++) {
            blocks[i] = block_of(1 + draw(i % 4 ? 3000 : 3 * PART), (int)draw(KINDS));
            blocks[i].is_sparse = i % 5 == 1;
            in_rounds[i] = elsewhere[i] = blocks[i];
        }
        CHECK(gpu_test_encode(gpu, &cogpu_gpu_zstd_encoder, in_rounds, COUNT, levels[l], 0));
        CHECK(gpu_test_encode(gpu, &cogpu_gpu_zstd_encoder, blocks, COUNT, levels[l], 1));
        CHECK(gpu_test_encode(other, &cogpu_gpu_zstd_encoder, elsewhere, COUNT, levels[l], 1));
        for (uint32_t i = 0; i < COUNT; i++) {
            alone = in_rounds[i];
            CHECK(is_same(&blocks[i], &in_rounds[i]) && is_same(&blocks[i], &elsewhere[i]));
            free(in_rounds[i].out);
            free(elsewhere[i].out);
            if (blocks[i].is_sparse)
                continue;
            encode_all(&alone, 1, levels[l]);
            CHECK(is_same(&blocks[i], &alone));
            free(alone.out);
        }
        release_all(blocks, COUNT);
    }
    other->calls->close(other);
}

/* A valid frame may still be too long. */
static void small_enough(void) {
#if COGPU_HAVE_ZSTD
    static const struct {
        int kind;
        uint32_t percent; /* of libzstd's level 9 */
    } goals[] = {{PLANES, 102}, {SAMPLES, 98}, {SHORTS, 103}, {SKEWED, 85}, {TEXT, 250}};
    for (uint32_t i = 0; i < 5; i++) {
        gpu_block block = block_of(3 * PART, goals[i].kind);
        encode_all(&block, 1, 9);
        const uint32_t theirs = zstd_size(&block, 9);
        if ((uint64_t)block.size * 100 > (uint64_t)theirs * goals[i].percent)
            printf("content %d: %u bytes, libzstd %u\n", goals[i].kind, block.size, theirs);
        CHECK((uint64_t)block.size * 100 <= (uint64_t)theirs * goals[i].percent);
        release_all(&block, 1);
    }
#endif
}

/* So may that of a small block, which uses the predefined FSE tables. */
static void small_blocks_small_enough(void) {
#if COGPU_HAVE_ZSTD
    enum { COUNT = 30 };
    gpu_block blocks[COUNT];
    uint32_t ours = 0, theirs = 0;
    for (uint32_t i = 0; i < COUNT; i++)
        blocks[i] = block_of(400 + 40 * i, RUNS);
    encode_all(blocks, COUNT, 9);
    for (uint32_t i = 0; i < COUNT; i++) {
        ours += blocks[i].size;
        theirs += zstd_size(&blocks[i], 9);
    }
    if (ours > theirs * 103 / 100)
        printf("little blocks: %u bytes, libzstd %u\n", ours, theirs);
    CHECK(ours <= theirs * 103 / 100);
    release_all(blocks, COUNT);
#endif
}

static void bound(void) {
    CHECK(cogpu_gpu_zstd_encoder.bound(1, 0) == 13);
    CHECK(cogpu_gpu_zstd_encoder.bound(1 << 20, 0) == (1 << 20) + 9 + 3 * 32);
}

TESTS(kernel_zstd_encode) {
    gpu = gpu_test_open(11);
    RUN(every_content);
    RUN(sizes);
    RUN(small_sizes);
    RUN(mixed_parts);
    RUN(steps_and_rows);
    RUN(random_matches);
    RUN(same_bytes);
    RUN(small_enough);
    RUN(small_blocks_small_enough);
    RUN(bound);
    gpu->calls->close(gpu);
    return FINISH();
}
