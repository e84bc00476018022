/*
 * GPU PackBits encoder. The CPU codec and the GPU decoder must decode its streams. No packet
 * crosses the end of a row. Sizes are about those of the CPU encoder.
 */
#include "codec/codec.h"
#include "kernels/packbits/packbits_encode_args.h"
#include "support/gpu_encode_test.h"
#include "support/streams.h"
#include "support/test.h"

enum { PART = COGPU_PACKBITS_PART_BYTES };

static cogpu_gpu *gpu;

static gpu_block block_of(uint32_t rows, uint32_t row_bytes, enum content content) {
    uint8_t *raw = malloc((size_t)rows * row_bytes);
    fill_content(raw, rows * row_bytes, content);
    return (gpu_block){.in = raw, .in_bytes = rows * row_bytes, .row_bytes = row_bytes, .step = 1};
}

/* Runs of up to `longest`, and literals. */
static void fill_with_runs(uint8_t *to, uint32_t bytes, uint32_t longest) {
    for (uint32_t at = 0; at < bytes;) {
        const uint32_t end = at + 1 + draw(longest), kind = draw(4);
        for (const uint8_t value = (uint8_t)draw(256); at < end && at < bytes; at++)
            to[at] = (uint8_t)(kind == 0 ? draw(256) : value);
    }
}

static void release_all(gpu_block *blocks, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        free((void *)blocks[i].in);
        free(blocks[i].out);
    }
}

static size_t host_size(const gpu_block *block) {
    const uint32_t rows = block->in_bytes / block->row_bytes;
    const cogpu_encoding encoding = {.format = {.row_bytes = block->row_bytes, .height = rows}};
    const size_t capacity = (size_t)cogpu_encoder_packbits.bound(&encoding, block->in_bytes);
    uint8_t *out = malloc(capacity);
    cogpu_error error;
    size_t size = 0;
    CHECK(cogpu_encoder_packbits.encode(NULL, &encoding, block->in, block->in_bytes, out, capacity,
                                        &size, &error) == COGPU_OK);
    free(out);
    return size;
}

/* Whether each row ends with a packet, and no header is 128 (no operation). */
static bool keeps_rows(const gpu_block *block) {
    uint32_t decoded = 0;
    for (uint32_t at = 0; at < block->size;) {
        const uint32_t header = block->out[at], count = header < 128 ? header + 1 : 257 - header;
        if (header == 128 || decoded % block->row_bytes + count > block->row_bytes)
            return false;
        decoded += count;
        at += header < 128 ? count + 1 : 2;
    }
    return true;
}

static void encode_all(gpu_block *blocks, uint32_t count) {
    CHECK(gpu_test_encode(gpu, &cogpu_gpu_packbits_encoder, blocks, count, 0, (int)draw(2)));
    CHECK(gpu_test_round_trip(gpu, COMPRESSION_PACKBITS, blocks, count));
    for (uint32_t i = 0; i < count; i++) {
        const size_t parts = blocks[i].in_bytes / PART, host = host_size(&blocks[i]);
        CHECK(keeps_rows(&blocks[i]));
        CHECK(blocks[i].size <= host + host / 25 + 2 * (parts + 1));
    }
}

static void every_content(void) {
    static const uint32_t rows[] = {1, 1, 3, 40, 9, 2, 512, 1, 1, 30},
                          row_bytes[] = {1, 127, 128, 129, 130, 5000, 33, PART, PART + 1, 1024};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        gpu_block blocks[CONTENTS];
        for (uint32_t k = 0; k < CONTENTS; k++)
            blocks[k] = block_of(rows[i], row_bytes[i], (enum content)k);
        encode_all(blocks, CONTENTS);
        release_all(blocks, CONTENTS);
    }
}

static void small_sizes(void) {
    enum { COUNT = 100 };
    gpu_block blocks[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t bytes = i < 40 ? 1 + i : 3 * i;
        blocks[i] = block_of(1, bytes, CONSTANT);
        fill_with_runs((uint8_t *)blocks[i].in, bytes, i % 2 ? 4 : 150);
    }
    encode_all(blocks, COUNT);
    release_all(blocks, COUNT);
}

static void runs_of_all_lengths(void) {
    static const uint32_t longest[] = {2, 3, 5, 40, 130, 300, 20000};
    for (size_t i = 0; i < sizeof longest / sizeof *longest; i++) {
        gpu_block blocks[] = {block_of(1, 30000, CONSTANT), block_of(100, 301, CONSTANT)};
        for (int k = 0; k < 2; k++)
            fill_with_runs((uint8_t *)blocks[k].in, blocks[k].in_bytes, longest[i]);
        encode_all(blocks, 2);
        release_all(blocks, 2);
    }
}

/* The worst case: no two neighbours are equal, so each 128 bytes of a row take a header. */
static void worst_case(void) {
    static const struct {
        uint32_t rows, row_bytes, headers;
    } cases[] = {{20000, 1, 20000}, {1, 20000, 157}, {100, 129, 200}, {3, 8193, 195}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gpu_block block = block_of(cases[i].rows, cases[i].row_bytes, CONSTANT);
        for (uint32_t at = 0; at < block.in_bytes; at++)
            ((uint8_t *)block.in)[at] = (uint8_t)at;
        encode_all(&block, 1);
        CHECK(block.size >= block.in_bytes + cases[i].headers);
        CHECK(cogpu_gpu_packbits_encoder.bound(block.in_bytes, block.row_bytes) <=
              block.in_bytes + cases[i].headers + block.in_bytes / PART);
        release_all(&block, 1);
    }
}

static void sparse_blocks(void) {
    gpu_block blocks[] = {block_of(9, 2000, RAMP), block_of(20, 2000, CONSTANT),
                          block_of(1, 10, NOISE)};
    blocks[1].is_sparse = true;
    CHECK(gpu_test_encode(gpu, &cogpu_gpu_packbits_encoder, blocks, 3, 0, 1));
    CHECK(gpu_test_round_trip(gpu, COMPRESSION_PACKBITS, &blocks[0], 1));
    CHECK(gpu_test_round_trip(gpu, COMPRESSION_PACKBITS, &blocks[2], 1));
    release_all(blocks, 3);
}

static void any_order_of_threads(void) {
    gpu_block first = block_of(3, 9000, CONSTANT), again = first;
    fill_with_runs((uint8_t *)first.in, first.in_bytes, 9);
    CHECK(gpu_test_encode(gpu, &cogpu_gpu_packbits_encoder, &first, 1, 0, 1));
    for (uint64_t order = 100; order < 105; order++) {
        cogpu_gpu *other = gpu_test_open(order);
        CHECK(gpu_test_encode(other, &cogpu_gpu_packbits_encoder, &again, 1, 0, 1));
        CHECK(again.size == first.size && memcmp(again.out, first.out, first.size) == 0);
        free(again.out);
        other->calls->close(other);
    }
    release_all(&first, 1);
}

TESTS(kernel_packbits_encode) {
    gpu = gpu_test_open(13);
    RUN(every_content);
    RUN(small_sizes);
    RUN(runs_of_all_lengths);
    RUN(worst_case);
    RUN(sparse_blocks);
    RUN(any_order_of_threads);
    gpu->calls->close(gpu);
    return FINISH();
}
