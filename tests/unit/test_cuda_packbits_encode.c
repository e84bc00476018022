/*
 * The PackBits encoder of the device. Its streams are decoded by the host's codec and by the
 * device's, never go from a row into the next, and are about as small as the host's.
 */
#include "backend/cuda/cuda_packbits_encode.h"
#include "codec/codec.h"
#include "gpu_encode_test.h"
#include "streams.h"
#include "test.h"

enum { PIECE = COGPU_PACKBITS_PIECE };

static cogpu_gpu *gpu;

static gpu_block block_of(uint32_t rows, uint32_t row_bytes, enum content content) {
    uint8_t *raw = malloc((size_t)rows * row_bytes);
    fill(raw, rows * row_bytes, content);
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
    const size_t room = (size_t)cogpu_encoder_packbits.bound(&encoding, block->in_bytes);
    uint8_t *out = malloc(room);
    cogpu_error error;
    size_t size = 0;
    CHECK(cogpu_encoder_packbits.encode(NULL, &encoding, block->in, block->in_bytes, out, room,
                                        &size, &error) == COGPU_OK);
    free(out);
    return size;
}

/* Whether each row ends with a run or literal, and no head says nothing. */
static bool keeps_rows(const gpu_block *block) {
    uint32_t decoded = 0;
    for (uint32_t at = 0; at < block->size;) {
        const uint32_t head = block->out[at], count = head < 128 ? head + 1 : 257 - head;
        if (head == 128 || decoded % block->row_bytes + count > block->row_bytes)
            return false;
        decoded += count;
        at += head < 128 ? count + 1 : 2;
    }
    return true;
}

static void encode_all(gpu_block *blocks, uint32_t count) {
    CHECK(gpu_test_encode(gpu, &cogpu_gpu_packbits_encoder, blocks, count, 0, (int)draw(2)));
    CHECK(gpu_test_round_trip(gpu, COMPRESSION_PACKBITS, blocks, count));
    for (uint32_t i = 0; i < count; i++) {
        const size_t pieces = blocks[i].in_bytes / PIECE, host = host_size(&blocks[i]);
        CHECK(keeps_rows(&blocks[i]));
        CHECK(blocks[i].size <= host + host / 25 + 2 * (pieces + 1));
    }
}

static void every_content(void) {
    static const uint32_t rows[] = {1, 1, 3, 40, 9, 2, 512, 1, 1, 30},
                          row_bytes[] = {1, 127, 128, 129, 130, 5000, 33, PIECE, PIECE + 1, 1024};
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

/* The most that can be: a head for each 128 bytes of a row, of which none is as the one before. */
static void longest_of_all(void) {
    static const struct {
        uint32_t rows, row_bytes, heads;
    } cases[] = {{20000, 1, 20000}, {1, 20000, 157}, {100, 129, 200}, {3, 8193, 195}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gpu_block block = block_of(cases[i].rows, cases[i].row_bytes, CONSTANT);
        for (uint32_t at = 0; at < block.in_bytes; at++)
            ((uint8_t *)block.in)[at] = (uint8_t)at;
        encode_all(&block, 1);
        CHECK(block.size >= block.in_bytes + cases[i].heads);
        CHECK(cogpu_gpu_packbits_encoder.bound(block.in_bytes, block.row_bytes) <=
              block.in_bytes + cases[i].heads + block.in_bytes / PIECE);
        release_all(&block, 1);
    }
}

static void left_out(void) {
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

int main(void) {
    gpu = gpu_test_open(13);
    RUN(every_content);
    RUN(small_sizes);
    RUN(runs_of_all_lengths);
    RUN(longest_of_all);
    RUN(left_out);
    RUN(any_order_of_threads);
    gpu->calls->close(gpu);
    return FINISH();
}
