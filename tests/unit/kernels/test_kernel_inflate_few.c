/*
 * The deflate decoder for few streams: streams of zlib and libdeflate at many levels, of all kinds
 * of deflate blocks, damaged ones, and ones full of false headers. Content must be decoded as it
 * was encoded, by this decoder alone; what it leaves to inflate.cu is counted.
 */
#include "codec/codec.h"
#include "kernels/deflate/inflate_few_args.h"
#include "support/deflate_writer.h"
#include "support/few_decoder.h"
#include "support/gpu_contract.h"
#include "support/streams.h"
#include "support/test.h"

#ifdef COGPU_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif
#if HAVE_ZLIB
#include <zlib.h>
#endif

enum { STREAMS_MAX = 16 };

/* Streams with the content that they were made from. */
struct batch {
    gpu_stream streams[STREAMS_MAX];
    uint8_t *content[STREAMS_MAX];
    uint32_t count;
};

static void add_stream(struct batch *batch, uint8_t *content, uint32_t bytes, uint8_t *in,
                       uint32_t in_bytes) {
    batch->content[batch->count] = content;
    batch->streams[batch->count++] =
        (gpu_stream){.in = in, .in_bytes = in_bytes, .capacity = bytes, .required = bytes};
}

/* Streams that are decoded by `decoder`, with the right bytes; -1 if some bytes are wrong. Frees
 * the batch. */
static int count_decoded(struct batch *batch, const cogpu_gpu_decoder *decoder) {
    cogpu_gpu *gpu = gpu_test_open(draw_state);
    int decoded =
        gpu_test_decode(gpu, decoder, batch->streams, batch->count, 1, draw_state) ? 0 : -1;
    for (uint32_t i = 0; i < batch->count; i++) {
        gpu_stream *stream = &batch->streams[i];
        if (decoded >= 0 && stream->block_status == COGPU_GPU_DECODED) {
            decoded++;
            if (memcmp(stream->out, batch->content[i], stream->required) != 0) {
                printf("stream %u, %u bytes to %u: wrong bytes\n", i, stream->in_bytes,
                       stream->capacity);
                decoded = -1;
            }
        }
        free(stream->out);
        free((void *)(uintptr_t)stream->in);
        free(batch->content[i]);
    }
    gpu->calls->close(gpu);
    batch->count = 0;
    return decoded;
}

/* Whether this decoder alone decodes all streams. */
static bool all_decoded(struct batch *batch) {
    const int count = (int)batch->count, decoded = count_decoded(batch, &few_decoder_alone);
    if (decoded != count)
        printf("%d of %d streams are decoded\n", decoded, count);
    return decoded == count;
}

static uint8_t *make_content(uint32_t bytes, enum content kind) {
    uint8_t *content = malloc(bytes + 1);
    fill_content(content, bytes, kind);
    return content;
}

/* Rows of a raster after predictor 2, of which the last columns and rows are padding. */
static uint8_t *make_padded(uint32_t bytes) {
    enum { ROW = 2048, COLUMNS = 1100 };
    uint8_t *content = malloc(bytes + 1);
    memset(content, 0, bytes + 1);
    for (uint32_t i = 0; i < bytes; i++)
        if (i >= bytes / 3 && i >= ROW)
            content[i] = content[i - ROW];
        else if (i % ROW < COLUMNS)
            content[i] = (uint8_t)(i % 2 ? draw(3) : draw(60));
    return content;
}

#if HAVE_ZLIB
static void add_zlib(struct batch *batch, uint8_t *content, uint32_t bytes, int level, int strategy,
                     int memory) {
    z_stream z = {.next_in = content, .avail_in = bytes};
    CHECK(deflateInit2(&z, level, Z_DEFLATED, 15, memory, strategy) == Z_OK);
    uint8_t *in = malloc(2 * bytes + 10000);
    z.next_out = in;
    z.avail_out = 2 * bytes + 10000;
    CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
    add_stream(batch, content, bytes, in, (uint32_t)z.total_out);
    deflateEnd(&z);
}
#endif

static void zlib_levels(void) {
#if HAVE_ZLIB
    struct batch batch = {.count = 0};
    for (int level = 1; level <= 9; level += level == 1 ? 5 : 3)
        for (uint32_t i = 0; i < 4; i++) {
            static const enum content kinds[] = {PREDICTED, TEXT, FEW_VALUES, NOISE};
            uint32_t bytes = 60000 + draw(90000);
            add_zlib(&batch, make_content(bytes, kinds[i]), bytes, level, Z_DEFAULT_STRATEGY, 8);
        }
    CHECK(all_decoded(&batch));
#endif
}

/* Huffman codes only, fixed codes, runs; and deflate blocks of a few hundred bytes. */
static void zlib_strategies(void) {
#if HAVE_ZLIB
    static const int strategies[] = {Z_HUFFMAN_ONLY, Z_FIXED, Z_RLE, Z_FILTERED};
    struct batch batch = {.count = 0};
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t kind = 0; kind < 3; kind++) {
            static const enum content kinds[] = {PREDICTED, PERIODIC, RAMP};
            uint32_t bytes = 40000 + draw(30000);
            add_zlib(&batch, make_content(bytes, kinds[kind]), bytes, 6, strategies[i],
                     kind == 0 ? 9 : 3);
        }
    CHECK(all_decoded(&batch));
#endif
}

static void libdeflate_levels(void) {
#ifdef COGPU_HAVE_LIBDEFLATE
    static const int levels[] = {1, 6, 12};
    struct batch batch = {.count = 0};
    for (uint32_t i = 0; i < 9; i++) {
        uint32_t bytes = 50000 + draw(150000);
        uint8_t *content = i % 3 == 0   ? make_padded(bytes)
                           : i % 3 == 1 ? make_content(bytes, PREDICTED)
                                        : make_content(bytes, TEXT);
        struct libdeflate_compressor *c = libdeflate_alloc_compressor(levels[i / 3]);
        uint8_t *in = malloc(2 * bytes);
        add_stream(&batch, content, bytes, in,
                   (uint32_t)libdeflate_zlib_compress(c, content, bytes, in, 2 * bytes));
        libdeflate_free_compressor(c);
    }
    CHECK(all_decoded(&batch));
#endif
}

/* Runs of one token, which do not synchronise, and single deflate blocks of many bytes. */
static void padding(void) {
#if HAVE_ZLIB
    struct batch batch = {.count = 0};
    for (int level = 1; level <= 9; level += 4) {
        uint32_t bytes = 400000 + draw(100000);
        add_zlib(&batch, make_padded(bytes), bytes, level, Z_DEFAULT_STRATEGY, 8);
    }
    add_zlib(&batch, calloc(1, 3000000), 3000000, 6, Z_DEFAULT_STRATEGY, 8);
    add_zlib(&batch, make_content(1500000, CONSTANT), 1500000, 1, Z_DEFAULT_STRATEGY, 9);
    CHECK(all_decoded(&batch));
#endif
}

/* Sizes around those of slices, pages and windows, and streams of few bytes. */
static void sizes(void) {
#if HAVE_ZLIB
    static const uint32_t around[] = {1, 2, 100, 16384, 32768, 98304, 4096};
    for (uint32_t i = 0; i < 7; i++) {
        struct batch batch = {.count = 0};
        for (uint32_t k = 0; k < 5; k++) {
            uint32_t bytes = around[i] + k > 3 ? around[i] + k - 2 : 1;
            add_zlib(&batch, make_content(bytes, k % 2 ? PREDICTED : PERIODIC), bytes, 6,
                     Z_DEFAULT_STRATEGY, 8);
        }
        CHECK(all_decoded(&batch));
    }
#endif
}

/* Stored deflate blocks between others, and matches that reach 32 KiB back over all of them. */
static void all_kinds(void) {
    struct batch batch = {.count = 0};
    for (uint32_t turn = 0; turn < 4; turn++) {
        const uint32_t bytes = 150000;
        uint8_t *content = malloc(bytes);
        struct deflate_writer w = begin_stream(3 * bytes);
        for (uint32_t at = 0, part; at < bytes; at += part) {
            const enum kind kind = (enum kind)draw(3);
            struct token tokens[400];
            uint32_t count = 0;
            part = 0;
            if (kind == STORED) {
                part = draw(3) ? draw(6000) : 0;
                part = part < bytes - at ? part : bytes - at;
                for (uint32_t i = 0; i < part; i++)
                    content[at + i] = (uint8_t)draw(256);
                put_stored(&w, at + part == bytes, content + at, part);
                continue;
            }
            while (count < 400 && at + part < bytes) {
                const uint32_t here = at + part, far = here < 32768 ? here : 32768;
                struct token token = {0, draw(turn % 2 ? 256 : 5)};
                uint32_t left = bytes - here;
                if (far > 0 && left >= 3 && draw(2)) {
                    token.length = 3 + draw(draw(9) ? 20 : 256);
                    token.length = token.length < left ? token.length : left;
                    token.value = draw(3) ? 1 + draw(far) : far;
                }
                for (uint32_t i = 0; i < token.length; i++)
                    content[here + i] = content[here + i - token.value];
                if (token.length == 0)
                    content[here] = (uint8_t)token.value;
                part += token.length ? token.length : 1;
                tokens[count++] = token;
            }
            put_deflate_block(&w, at + part == bytes, kind, tokens, count, 15);
        }
        end_stream(&w, adler(content, bytes));
        add_stream(&batch, content, bytes, w.out, w.bytes);
    }
    CHECK(all_decoded(&batch));
}

/* ---- false headers and damage ---- */

#if HAVE_ZLIB
/* A zlib stream of `bytes` bytes of content, as content of another one. */
static uint8_t *make_nested(uint32_t bytes, uint32_t *nested_bytes) {
    struct batch inner = {.count = 0};
    add_zlib(&inner, make_content(bytes, TEXT), bytes, 6, Z_DEFAULT_STRATEGY, 4);
    free(inner.content[0]);
    *nested_bytes = inner.streams[0].in_bytes;
    return (uint8_t *)(uintptr_t)inner.streams[0].in;
}
#endif

/* Stored blocks that are full of deflate blocks: walks from there end nowhere, or at the end of the
 * stream. */
static void false_headers(void) {
#if HAVE_ZLIB
    struct batch batch = {.count = 0};
    for (uint32_t i = 0; i < 6; i++) {
        uint32_t bytes, at = 0, nested_bytes;
        uint8_t *nested = make_nested(60000 + 30000 * i, &nested_bytes);
        uint8_t *content = make_content(bytes = 3 * nested_bytes, FEW_VALUES);
        for (uint32_t k = 0; k < 3; k++, at += nested_bytes)
            if (k != i % 3)
                memcpy(content + at, nested, nested_bytes);
        free(nested);
        add_zlib(&batch, content, bytes, i % 2 ? 6 : 0, Z_DEFAULT_STRATEGY, 8);
    }
    CHECK(all_decoded(&batch));
#endif
}

/* More deflate blocks than there is memory for: they are left to inflate.cu. */
static struct batch many_blocks(void) {
    enum { BLOCKS = 3000, TOKENS = 9 };
    struct batch batch = {.count = 0};
    uint8_t *content = malloc(BLOCKS * TOKENS);
    struct deflate_writer w = begin_stream(BLOCKS * 100);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        struct token tokens[TOKENS] = {{0, 0}};
        for (uint32_t k = 0; k < TOKENS; k++) {
            tokens[k].value = draw(4);
            content[i * TOKENS + k] = (uint8_t)tokens[k].value;
        }
        put_deflate_block(&w, i == BLOCKS - 1, DYNAMIC, tokens, TOKENS, 15);
    }
    end_stream(&w, adler(content, BLOCKS * TOKENS));
    add_stream(&batch, content, BLOCKS * TOKENS, w.out, w.bytes);
    return batch;
}

static void too_many_blocks(void) {
    struct batch batch = many_blocks();
    CHECK(count_decoded(&batch, &few_decoder_alone) == 0);
    batch = many_blocks();
    CHECK(count_decoded(&batch, &few_decoder) == 1);
}

/* A damaged stream does not disturb the others. */
static void damage(void) {
#if HAVE_ZLIB
    for (uint32_t turn = 0; turn < 8; turn++) {
        struct batch batch = {.count = 0};
        for (uint32_t i = 0; i < 5; i++) {
            uint32_t bytes = 30000 + draw(60000);
            add_zlib(&batch, make_content(bytes, PREDICTED), bytes, 6, Z_DEFAULT_STRATEGY, 6);
        }
        gpu_stream *damaged = &batch.streams[draw(5)];
        uint8_t *in = (uint8_t *)(uintptr_t)damaged->in;
        if (turn == 0)
            damaged->in_bytes /= 2;
        else if (turn == 1)
            damaged->capacity -= 1;
        else if (turn == 2)
            in[damaged->in_bytes - 1] ^= 1;
        else
            in[draw(damaged->in_bytes)] ^= (uint8_t)(1 << draw(8));
        CHECK(count_decoded(&batch, turn % 2 ? &few_decoder : &few_decoder_alone) == 4);
    }
#endif
}

/* A distance that reaches before the first byte, in a stream whose Adler-32 takes bytes there as 0;
 * and a stream that is shorter than its TIFF block. */
static void refusals(void) {
    enum { BYTES = 50000, DISTANCE = 300 };
    for (uint32_t turn = 0; turn < 3; turn++) {
        struct batch batch = {.count = 0};
        uint8_t *content = calloc(1, BYTES + 1);
        struct token tokens[BYTES];
        struct deflate_writer w = begin_stream(2 * BYTES);
        uint32_t at = 0, count = 0;
        while (at < BYTES) {
            const bool is_match = at == (turn == 1 ? DISTANCE - 1 : DISTANCE) && turn < 2;
            tokens[count].length = is_match ? 100 : 0;
            tokens[count].value = is_match ? DISTANCE : draw(200);
            for (uint32_t i = 0; i < 100 && is_match; i++, at++)
                content[at] = at >= DISTANCE ? content[at - DISTANCE] : 0;
            if (!is_match)
                content[at++] = (uint8_t)tokens[count].value;
            count++;
        }
        put_deflate_block(&w, true, DYNAMIC, tokens, count, 15);
        end_stream(&w, adler(content, BYTES));
        add_stream(&batch, content, BYTES, w.out, w.bytes);
        batch.streams[0].capacity += turn == 2 ? 10 : 0;
        batch.streams[0].required += turn == 2 ? 1 : 0;
        CHECK(count_decoded(&batch, &few_decoder_alone) == (turn == 0));
    }
}

/* ---- parallelism ---- */

/* Reached anchors of the only stream of a batch. They are in scratch memory, after two structs of
 * streams: inflate_few_args.h. */
static uint32_t reached_anchors;

static cogpu_status decode_and_count(const cogpu_gpu_batch *batch, cogpu_error *error) {
    static struct {
        struct cogpu_inflate_few_stream streams[2];
        struct cogpu_inflate_anchor anchors[100];
    } scratch;
    TRY(few_decoder_alone.decode(batch, error));
    TRY(batch->gpu->calls->copy_down(batch->gpu, &scratch, batch->scratch, sizeof scratch,
                                     batch->stream, error));
    TRY(batch->gpu->calls->finish_stream(batch->gpu, batch->stream, error));
    reached_anchors = 0;
    for (uint32_t i = 0; i < 100 && i < scratch.streams[1].first_span; i++)
        reached_anchors += scratch.anchors[i].is_reached;
    return COGPU_OK;
}

/* Nearly all deflate blocks are found, if there is a span for each. Without anchors the bytes would
 * be the same. */
static void anchors(void) {
#if HAVE_ZLIB
    const cogpu_gpu_decoder decoder = {.scratch = few_decoder.scratch, .decode = decode_and_count};
    for (int memory = 5; memory <= 7; memory++) {
        const uint32_t bytes = 150000, tokens = 64u << memory; /* of a deflate block, in zlib */
        struct batch batch = {.count = 0};
        add_zlib(&batch, make_content(bytes, PREDICTED), bytes, 6, Z_HUFFMAN_ONLY, memory);
        CHECK(count_decoded(&batch, &decoder) == 1);
        CHECK(reached_anchors >= bytes / tokens * 9 / 10);
    }
#endif
}

/* ---- scratch memory ---- */

/* As much as a large read may have, whatever the streams are; less is enough for smaller windows.
 */
static void scratch(void) {
    static const uint32_t counts[] = {1, 16, 121}, sizes[] = {52 << 20, 4 << 20, 2 << 20};
    for (uint32_t i = 0; i < 3; i++) {
        cogpu_encoded_block blocks[121] = {{0}};
        uint64_t least, best;
        for (uint32_t k = 0; k < counts[i]; k++)
            blocks[k] = (cogpu_encoded_block){.in_bytes = sizes[i] / 2, .capacity = sizes[i]};
        cogpu_gpu_inflate.scratch(blocks, counts[i], 0, &least, &best);
        CHECK(best > least && best <= 150 << 20);
        CHECK(best >= 2 * (uint64_t)sizes[i]);
    }
}

TESTS(kernel_inflate_few) {
    draw_state = 0x7654321;
    RUN(zlib_levels);
    RUN(zlib_strategies);
    RUN(libdeflate_levels);
    RUN(padding);
    RUN(sizes);
    RUN(all_kinds);
    RUN(false_headers);
    RUN(too_many_blocks);
    RUN(damage);
    RUN(refusals);
    RUN(anchors);
    RUN(scratch);
    return FINISH();
}
