/*
 * GPU LZW encoder. The CPU codec and the GPU decoder must decode its streams. Those of a single
 * part equal the CPU encoder's bit for bit. They are the same in any order of threads, in any batch
 * and with any scratch.
 */
#include "codec/codec.h"
#include "kernels/lzw/lzw_encode_args.h"
#include "support/gpu_encode_test.h"
#include "support/streams.h"
#include "support/test.h"

enum { PART = COGPU_LZW_PART_BYTES, TABLE_CODES = COGPU_LZW_TABLE_CODES };

static cogpu_gpu *gpu;

static gpu_block block_of(uint32_t bytes, enum content content) {
    uint8_t *raw = malloc(bytes);
    fill_content(raw, bytes, content);
    return (gpu_block){.in = raw, .in_bytes = bytes, .row_bytes = 100, .step = 4};
}

static void release_all(gpu_block *blocks, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        free((void *)blocks[i].in);
        free(blocks[i].out);
    }
}

static void encode_all(gpu_block *blocks, uint32_t count) {
    CHECK(gpu_test_encode(gpu, &cogpu_gpu_lzw_encoder, blocks, count, 0, (int)draw(2)));
    CHECK(gpu_test_round_trip(gpu, COMPRESSION_LZW, blocks, count));
}

/* The CPU encoder's stream; the caller frees it. */
static uint8_t *host_stream(const gpu_block *block, size_t *size) {
    const cogpu_encoding encoding = {0};
    const size_t capacity = (size_t)cogpu_encoder_lzw.bound(&encoding, block->in_bytes);
    uint8_t *out = malloc(capacity);
    cogpu_codec_state state = {0};
    cogpu_error error;
    CHECK(cogpu_encoder_lzw.encode(&state, &encoding, block->in, block->in_bytes, out, capacity,
                                   size, &error) == COGPU_OK);
    cogpu_codec_state_close(&state);
    return out;
}

static bool equals_host(const gpu_block *block) {
    size_t size;
    uint8_t *host = host_stream(block, &size);
    bool same = size == block->size && memcmp(host, block->out, size) == 0;
    free(host);
    return same;
}

static void every_content(void) {
    static const uint32_t sizes[] = {1, 31, 32, 33, 100, 5000, PART};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        gpu_block blocks[CONTENTS];
        for (uint32_t k = 0; k < CONTENTS; k++)
            blocks[k] = block_of(sizes[i], (enum content)k);
        encode_all(blocks, CONTENTS);
        for (uint32_t k = 0; k < CONTENTS; k++)
            CHECK(equals_host(&blocks[k]));
        release_all(blocks, CONTENTS);
    }
}

static void small_sizes(void) {
    enum { COUNT = 80 };
    gpu_block blocks[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        blocks[i] = block_of(1 + i, (enum content)draw(CONTENTS));
    encode_all(blocks, COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        CHECK(equals_host(&blocks[i]));
    release_all(blocks, COUNT);
}

/* No pair of bytes occurs twice, so each byte is a code. */
static void fill_with_pairs(uint8_t *to, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)(i % 2 ? i / 2 : i / 512);
}

/* Tables that get full at the end of the block, just before and just after it; first and last codes
 * of each width. */
static void full_tables(void) {
    static const uint32_t codes[] = {254, 766, 1790, TABLE_CODES, 2 * TABLE_CODES};
    enum { AROUND = 5, COUNT = 5 * AROUND };
    gpu_block blocks[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t bytes = codes[i / AROUND] + i % AROUND - AROUND / 2;
        blocks[i] = block_of(bytes, CONSTANT);
        fill_with_pairs((uint8_t *)blocks[i].in, bytes);
    }
    encode_all(blocks, COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        /* the CPU encoder clears a full table even at the end */
        CHECK(blocks[i].in_bytes % TABLE_CODES == 0 || equals_host(&blocks[i]));
    release_all(blocks, COUNT);
}

/* The cost of parts, relative to the CPU encoder. */
static void several_parts(void) {
    gpu_block blocks[] = {block_of(2 * PART + 5000, PREDICTED), block_of(2 * PART, NOISE),
                          block_of(3 * PART, FEW_VALUES)};
    encode_all(blocks, 3);
    for (uint32_t i = 0; i < 3; i++) {
        size_t size;
        free(host_stream(&blocks[i], &size));
        CHECK(blocks[i].size <= size * 21 / 20);
    }
    release_all(blocks, 3);
}

/* A last part inside the word in which the previous one ends. */
static void last_part_is_short(void) {
    enum { COUNT = 4 };
    gpu_block blocks[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        blocks[i] = block_of(PART + 1 + i / 2, i % 2 ? CONSTANT : PERIODIC);
    encode_all(blocks, COUNT);
    release_all(blocks, COUNT);
}

static void long_runs(void) {
    gpu_block blocks[2] = {block_of(300000, CONSTANT), block_of(100000, CONSTANT)};
    uint8_t *runs = (uint8_t *)blocks[1].in;
    for (uint32_t at = 0; at < blocks[1].in_bytes;) {
        const uint32_t end = at + 1 + draw(draw(20) ? 40 : 6000);
        for (const uint8_t value = (uint8_t)draw(9); at < end && at < blocks[1].in_bytes; at++)
            runs[at] = value;
    }
    encode_all(blocks, 2);
    CHECK(blocks[0].size < 300000 / 100);
    release_all(blocks, 2);
}

/* Strings longer than the ring of input bytes. */
static void strings_longer_than_ring(void) {
    enum { COUNT = 8 };
    gpu_block blocks[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        blocks[i] = block_of(PART, CONSTANT);
        uint8_t *bytes = (uint8_t *)blocks[i].in;
        memset(bytes, 'a', PART);
        for (uint32_t at = 16000 + draw(5000); at < PART; at += 1 + draw(400))
            bytes[at] = 'b';
    }
    encode_all(blocks, COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        CHECK(equals_host(&blocks[i]));
    release_all(blocks, COUNT);
}

static bool is_same(const gpu_block *a, const gpu_block *b) {
    return a->size == b->size && memcmp(a->out, b->out, a->size) == 0;
}

/* Blocks of all sizes, some sparse: in one round, in several, and each alone. */
static void mixed_batches(void) {
    enum { COUNT = 12 };
    gpu_block blocks[COUNT], in_rounds[COUNT], alone;
    for (uint32_t i = 0; i < COUNT; i++) {
        blocks[i] = block_of(1 + draw(i % 4 ? 300 : 2 * PART), (enum content)draw(CONTENTS));
        blocks[i].is_sparse = i % 5 == 1;
        in_rounds[i] = blocks[i];
    }
    CHECK(gpu_test_encode(gpu, &cogpu_gpu_lzw_encoder, in_rounds, COUNT, 0, 0));
    CHECK(gpu_test_encode(gpu, &cogpu_gpu_lzw_encoder, blocks, COUNT, 0, 1));
    for (uint32_t i = 0; i < COUNT; i++) {
        alone = in_rounds[i];
        CHECK(is_same(&blocks[i], &in_rounds[i]));
        free(in_rounds[i].out);
        if (blocks[i].is_sparse)
            continue;
        encode_all(&alone, 1);
        CHECK(is_same(&blocks[i], &alone));
        free(alone.out);
    }
    release_all(blocks, COUNT);
}

static void any_order_of_threads(void) {
    enum { COUNT = 3 };
    gpu_block first[COUNT] = {block_of(PART + 3000, PREDICTED), block_of(5000, TEXT),
                              block_of(9000, FEW_VALUES)};
    gpu_block again[COUNT];
    memcpy(again, first, sizeof first);
    CHECK(gpu_test_encode(gpu, &cogpu_gpu_lzw_encoder, first, COUNT, 0, 1));
    for (uint64_t order = 100; order < 103; order++) {
        cogpu_gpu *other = gpu_test_open(order);
        CHECK(gpu_test_encode(other, &cogpu_gpu_lzw_encoder, again, COUNT, 0, 1));
        for (uint32_t i = 0; i < COUNT; i++) {
            CHECK(is_same(&again[i], &first[i]));
            free(again[i].out);
        }
        other->calls->close(other);
    }
    release_all(first, COUNT);
}

TESTS(kernel_lzw_encode) {
    gpu = gpu_test_open(11);
    RUN(every_content);
    RUN(small_sizes);
    RUN(full_tables);
    RUN(several_parts);
    RUN(last_part_is_short);
    RUN(long_runs);
    RUN(strings_longer_than_ring);
    RUN(mixed_batches);
    RUN(any_order_of_threads);
    gpu->calls->close(gpu);
    return FINISH();
}
