/*
 * The deflate decoder of the GPU against the CPU codec. Streams come from libdeflate, from our
 * encoder, and from deflate_writer.h, which also writes what no encoder does: deflate blocks of any
 * size and kind in any order, codes of any lengths, every error. What the GPU accepts, the CPU
 * codec must accept too, with the same bytes.
 */
#include "codec/codec.h"
#include "codec/deflate_encode.h"
#include "support/deflate_writer.h"
#include "support/draw.h"
#include "support/gpu_test.h"
#include "support/test.h"

#ifdef COGPU_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif

/* ---- data ---- */

enum data { CONSTANT, RAMP, NOISE, FEW, FLOATS, WORDS, FAR_COPIES, DATA_KINDS };

/* Rows of 256 float32, bytes apart and differenced, as predictor 3 does. */
static void make_floats(uint8_t *data, uint32_t bytes) {
    uint8_t row[1024];
    double height = 800;
    for (uint32_t y = 0; y * 1024 < bytes; y++) {
        for (uint32_t x = 0; x < 256; x++) {
            height += ((int)draw(2001) - 1000) / 4000.0;
            float sample = (float)height;
            uint32_t word;
            memcpy(&word, &sample, 4);
            for (uint32_t i = 0; i < 4; i++)
                row[256 * i + x] = (uint8_t)(word >> (24 - 8 * i));
        }
        for (uint32_t i = 1023; i > 0; i--)
            row[i] = (uint8_t)(row[i] - row[i - 1]);
        uint32_t left = bytes - y * 1024;
        memcpy(data + (size_t)y * 1024, row, left < 1024 ? left : 1024);
    }
}

static void make_words(uint8_t *data, uint32_t bytes) {
    static const char *words[] = {"block ", "lane ",   "block_status, ",
                                  "of a ",  "raster ", "32768. "};
    for (uint32_t i = 0; i < bytes;)
        for (const char *at = words[draw(6)]; *at && i < bytes; at++)
            data[i++] = (uint8_t)*at;
}

static uint8_t *make_data(enum data kind, uint32_t bytes) {
    uint8_t *data = malloc(bytes + 1);
    if (kind == FLOATS)
        make_floats(data, bytes);
    else if (kind == WORDS)
        make_words(data, bytes);
    else
        for (uint32_t i = 0; i < bytes; i++)
            data[i] = kind == CONSTANT ? 42
                      : kind == RAMP   ? (uint8_t)(i / 5)
                      : kind == NOISE  ? (uint8_t)draw(256)
                      : kind == FEW    ? (uint8_t)(7 * draw(4))
                      : i < 32768      ? (uint8_t)draw(256)
                                       : data[i - 32768]; /* FAR_COPIES */
    return data;
}

/* ---- encoder ---- */

/* A greedy encoder with a hash table of three bytes. */
struct encoder_style {
    uint32_t distance_max; /* 0: no matches */
    uint32_t length_max;   /* of a match */
    uint32_t tokens_per_block;
    enum kind kind; /* of deflate blocks */
    uint32_t code_bits_max;
    uint32_t flush_interval; /* deflate blocks from one empty stored block to the next; 0: none */
};

static gpu_stream compress(const uint8_t *data, uint32_t bytes, const struct encoder_style *style) {
    static uint32_t seen[1 << 15];
    struct token *tokens = malloc((style->tokens_per_block + 1) * sizeof *tokens);
    struct deflate_writer w =
        begin_stream(2 * bytes + 400 * (bytes / style->tokens_per_block + 2) + 1000);
    memset(seen, 0xFF, sizeof seen);
    uint32_t at = 0, deflate_blocks = 0;
    do {
        uint32_t count = 0, first = at;
        while (at < bytes && count < style->tokens_per_block && at - first < 65000) {
            uint32_t length = 0, from = UINT32_MAX;
            if (style->distance_max > 0 && at + 3 <= bytes) {
                uint32_t hash =
                    (data[at] * 0x9E5u ^ data[at + 1] * 0x1F3u ^ data[at + 2] * 0x1Du) & 0x7FFF;
                from = style->distance_max == 1 ? at - 1 : seen[hash];
                seen[hash] = at;
            }
            if (from < at && at - from <= style->distance_max)
                while (length < style->length_max && at + length < bytes &&
                       data[from + length] == data[at + length])
                    length++;
            tokens[count].length = length < 3 ? 0 : length;
            tokens[count++].value = length < 3 ? data[at] : at - from;
            at += length < 3 ? 1 : length;
        }
        enum kind kind = style->kind == ANY ? (enum kind)draw(3) : style->kind;
        if (style->flush_interval && deflate_blocks++ % style->flush_interval == 0)
            put_stored(&w, false, data, 0);
        if (kind == STORED)
            put_stored(&w, at == bytes, data + first, at - first);
        else
            put_deflate_block(&w, at == bytes, kind, tokens, count, style->code_bits_max);
    } while (at < bytes);
    end_stream(&w, adler(data, bytes));
    free(tokens);
    return (gpu_stream){.in = w.out, .in_bytes = w.bytes, .capacity = bytes, .required = bytes};
}

/* ---- comparison with the CPU codec ---- */

/* A build without a library for deflate has nothing to compare with. */
static bool cpu_accepts(const gpu_stream *stream, uint8_t *out, size_t *got) {
    cogpu_decode *decode = cogpu_codec_find(COMPRESSION_DEFLATE)->decode;
    if (!decode)
        return true;
    cogpu_codec_state state = {0};
    cogpu_block_format format = {0};
    cogpu_error error;
    uint8_t *copy = malloc(stream->in_bytes);
    memcpy(copy, stream->in, stream->in_bytes);
    cogpu_status status =
        decode(&state, &format, copy, stream->in_bytes, out, stream->capacity, got, &error);
    cogpu_codec_state_close(&state);
    free(copy);
    return status == COGPU_OK && *got >= stream->required;
}

/* True if the CPU codec gives the same for each stream that the GPU accepts; *accepted counts
 * these. Some batches have scratch memory for a single thread block, which decodes all of their
 * streams. */
static bool matches_cpu_codec(gpu_stream *streams, uint32_t count, uint32_t *accepted) {
    cogpu_gpu *gpu = gpu_test_open(draw_state);
    bool good = gpu_test_decode(gpu, &cogpu_gpu_inflate, streams, count, (int)draw(2), draw_state);
    *accepted = 0;
    for (uint32_t i = 0; good && i < count; i++) {
        uint8_t *out = malloc(streams[i].capacity);
        size_t got = 0;
        if (streams[i].block_status == COGPU_GPU_DECODED) {
            good = cpu_accepts(&streams[i], out, &got) && memcmp(out, streams[i].out, got) == 0;
            *accepted += 1;
            if (!good)
                printf("stream %u, %u bytes to %u: differs from the CPU codec\n", i,
                       streams[i].in_bytes, streams[i].capacity);
        }
        free(out);
        free(streams[i].out);
    }
    gpu->calls->close(gpu);
    return good;
}

static uint32_t status_of(gpu_stream stream) {
    uint32_t accepted;
    return matches_cpu_codec(&stream, 1, &accepted) ? stream.block_status : COGPU_GPU_NOT_DECODED;
}

/* True if GPU and CPU accept all streams. Frees the encoded bytes. */
static bool all_accepted(gpu_stream *streams, uint32_t count) {
    uint32_t accepted;
    bool good = matches_cpu_codec(streams, count, &accepted) && accepted == count;
    for (uint32_t i = 0; i < count; i++) {
        if (streams[i].block_status != COGPU_GPU_DECODED)
            printf("stream %u, %u bytes to %u: block_status %u\n", i, streams[i].in_bytes,
                   streams[i].required, streams[i].block_status);
        free((void *)(uintptr_t)streams[i].in);
    }
    return good;
}

/* ---- valid streams ---- */

static const struct encoder_style plain = {32768, 258, 16384, DYNAMIC, 15, 0};

static void encoder_styles(void) {
    static const struct encoder_style kinds[] = {
        {32768, 258, 16384, DYNAMIC, 15, 0}, /* like zlib */
        {0, 0, 16384, DYNAMIC, 15, 0},       /* Huffman codes alone */
        {1, 258, 16384, DYNAMIC, 12, 0},     /* runs */
        {32768, 258, 16384, FIXED, 15, 0},
        {0, 0, 16384, STORED, 15, 0},
        {512, 40, 300, ANY, 9, 0}, /* many deflate blocks of all kinds */
        {32768, 258, 100, ANY, 15, 2},
        {32768, 258, 1 << 20, DYNAMIC, 15, 0}, /* one deflate block */
        {256, 3, 5000, DYNAMIC, 15, 3},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        gpu_stream streams[DATA_KINDS];
        for (uint32_t kind = 0; kind < DATA_KINDS; kind++) {
            uint32_t bytes = kind == FAR_COPIES
                                 ? 70000
                                 : 1 + draw(kinds[i].tokens_per_block < 1000 ? 7000 : 30000);
            uint8_t *data = make_data((enum data)kind, bytes);
            streams[kind] = compress(data, bytes, &kinds[i]);
            free(data);
        }
        CHECK(all_accepted(streams, DATA_KINDS));
    }
}

static void many_sizes(void) {
    enum { COUNT = 70 };
    gpu_stream streams[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t bytes =
            i < 40 ? 1 + i : 12288 * (1 + i % 3) + i / 3 - 25; /* around the size of a slice */
        struct encoder_style style = plain;
        style.kind = i % 5 == 0 ? FIXED : i % 7 == 0 ? STORED : DYNAMIC;
        uint8_t *data = make_data((enum data)(i % FAR_COPIES), bytes);
        streams[i] = compress(data, bytes, &style);
        streams[i].capacity += i % 4;
        free(data);
    }
    CHECK(all_accepted(streams, COUNT));
}

static void large(void) {
    gpu_stream streams[2];
    uint8_t *data = make_data(FLOATS, 300000);
    streams[0] = compress(data, 300000, &plain);
    free(data);
    data = make_data(CONSTANT, 400000);
    streams[1] = compress(data, 400000, &plain);
    free(data);
    CHECK(all_accepted(streams, 2));
}

static void libdeflate_levels(void) {
#ifdef COGPU_HAVE_LIBDEFLATE
    for (int level = 1; level <= 12; level++) {
        gpu_stream streams[DATA_KINDS];
        for (uint32_t kind = 0; kind < DATA_KINDS; kind++) {
            uint32_t bytes = kind == FAR_COPIES ? 66000 : 1 + draw(30000);
            uint8_t *data = make_data((enum data)kind, bytes), *out = malloc(2 * bytes + 1000);
            struct libdeflate_compressor *c = libdeflate_alloc_compressor(level);
            size_t got = libdeflate_zlib_compress(c, data, bytes, out, 2 * bytes + 1000);
            streams[kind] = (gpu_stream){
                .in = out, .in_bytes = (uint32_t)got, .capacity = bytes, .required = bytes};
            libdeflate_free_compressor(c);
            free(data);
        }
        CHECK(all_accepted(streams, DATA_KINDS));
    }
#endif
}

static void our_encoder(void) {
#ifdef COGPU_HAVE_LIBDEFLATE
    gpu_stream streams[DATA_KINDS];
    void *memory = malloc(cogpu_deflate_memory_bytes);
    for (uint32_t kind = 0; kind < DATA_KINDS; kind++) {
        const uint32_t bytes = 70000 + draw(20000);
        uint8_t *data = make_data((enum data)kind, bytes);
        struct deflate_writer w = begin_stream((uint32_t)cogpu_deflate_bound(bytes) + 6);
        w.bytes += (uint32_t)cogpu_deflate_encode(memory, data, bytes, w.out + w.bytes);
        end_stream(&w, adler(data, bytes));
        streams[kind] =
            (gpu_stream){.in = w.out, .in_bytes = w.bytes, .capacity = bytes, .required = bytes};
        free(data);
    }
    CHECK(all_accepted(streams, DATA_KINDS));
    free(memory);
#endif
}

/* A stream of random tokens under the given codes. */
static bool accepts_codes(struct huffman *literals, uint32_t literal_count) {
    struct huffman distances = {{0}, {0}};
    struct token tokens[4000];
    for (uint32_t i = 0; i < 16; i++)
        distances.lengths[i] = (uint8_t)(i < 15 ? i + 1 : 15);
    assign_codes(literals);
    assign_codes(&distances);
    struct deflate_writer w = begin_stream(100000);
    uint32_t bytes = 0, symbol, extra;
    for (uint32_t i = 0; i < 4000; i++) {
        if (i < 300 || draw(3)) {
            do
                symbol = draw(256);
            while (literals->lengths[symbol] == 0);
            tokens[i].length = 0;
            tokens[i].value = symbol;
        } else {
            do
                symbol = 257 + draw(29);
            while (literals->lengths[symbol] == 0);
            tokens[i].length = base_of_length(symbol, &extra);
            tokens[i].value = base_of_distance(draw(16), &extra);
        }
        bytes += tokens[i].length ? tokens[i].length : 1;
    }
    put_bits(&w, 5, 3);
    put_header(&w, literals, literal_count, &distances, 16);
    put_tokens(&w, tokens, 4000, literals, &distances);
    end_stream(&w, 0);
    gpu_stream stream = {.in = w.out, .in_bytes = w.bytes, .capacity = bytes, .required = bytes};
    /* Its Adler-32, by decoding it. */
    uint8_t *data = malloc(bytes);
    for (uint32_t i = 0, at = 0; i < 4000; i++) {
        if (tokens[i].length == 0)
            data[at++] = (uint8_t)tokens[i].value;
        for (uint32_t k = 0; k < tokens[i].length; k++, at++)
            data[at] = data[at - tokens[i].value];
    }
    w.bytes -= 4;
    end_stream(&w, adler(data, bytes));
    bool is_accepted = status_of(stream) == COGPU_GPU_DECODED;
    free(data);
    free(w.out);
    return is_accepted;
}

/* More long codes than root tables, and than subtables, hold. */
static void long_codes(void) {
    struct huffman few = {{0}, {0}}, many = {{0}, {0}};
    for (uint32_t i = 0; i < 9; i++)
        few.lengths[i] = (uint8_t)(i + 1);
    for (uint32_t i = 0; i < 64; i++) /* 64 / 2^15 remain */
        few.lengths[i < 34 ? 200 + i : 222 + i] = 15;
    CHECK(accepts_codes(&few, 286));
    for (uint32_t i = 0; i < 3; i++)
        many.lengths[i] = (uint8_t)(i + 1);
    for (uint32_t i = 0; i < 256; i++) /* 256 / 2^11 */
        many.lengths[i < 227 ? 3 + i : 29 + i] = 11;
    CHECK(accepts_codes(&many, 285));
}

/* Codes of 8 or 9 bits only, which do not synchronise themselves. */
static void hard_to_synchronise(void) {
    struct encoder_style style = plain;
    gpu_stream streams[4];
    for (uint32_t i = 0; i < 4; i++) {
        uint8_t *data = make_data(NOISE, 30000);
        style.distance_max = 0;
        style.kind = i % 2 ? FIXED : DYNAMIC;
        for (uint32_t k = 0; i >= 2 && k < 30000; k++)
            data[k] &= 0x7F;
        streams[i] = compress(data, 30000, &style);
        free(data);
    }
    CHECK(all_accepted(streams, 4));
}

/* Scratch memory for each large block; little in proportion to small ones. */
static void scratch(void) {
    cogpu_encoded_block blocks[64] = {{0}};
    uint64_t least, best, more;
    for (uint32_t i = 0; i < 64; i++)
        blocks[i].capacity = 3 << 16;
    blocks[0].capacity = 1 << 17; /* one that is larger gets many thread blocks */
    cogpu_gpu_inflate.scratch(blocks, 1, 0, &least, &best);
    CHECK(least == best);
    cogpu_gpu_inflate.scratch(blocks, 64, 0, &least, &more);
    CHECK(more - best >= 63 * (best - COGPU_GPU_ALIGN));
    for (uint32_t i = 0; i < 64; i++)
        blocks[i].capacity = 1000;
    cogpu_gpu_inflate.scratch(blocks, 64, 0, &least, &best);
    CHECK(best >= least && best - least < 64 * 1000);
}

/* ---- malformed streams ---- */

static gpu_stream small_stream(enum data kind, uint32_t bytes, const struct encoder_style *style) {
    uint8_t *data = make_data(kind, bytes);
    gpu_stream stream = compress(data, bytes, style);
    free(data);
    return stream;
}

static void sizes_and_checksums(void) {
    gpu_stream stream = small_stream(WORDS, 20000, &plain);
    uint8_t *bytes = (uint8_t *)(uintptr_t)stream.in;
    CHECK(status_of(stream) == COGPU_GPU_DECODED);
    for (uint32_t less = 1; less < 20000; less = 3 * less + 1) {
        gpu_stream changed = stream;
        changed.capacity = changed.required = 20000 - less;
        CHECK(status_of(changed) == COGPU_GPU_TOO_LONG);
        changed.capacity = changed.required = 20000 + less;
        CHECK(status_of(changed) == COGPU_GPU_TOO_SHORT);
        changed.required = 20000;
        CHECK(status_of(changed) == COGPU_GPU_DECODED);
    }
    for (uint32_t i = 1; i <= 4; i++) {
        bytes[stream.in_bytes - i] ^= 0x10;
        CHECK(status_of(stream) == COGPU_GPU_CHECKSUM_MISMATCH);
        bytes[stream.in_bytes - i] ^= 0x10;
    }
    static const uint8_t headers[][2] = {{0x78, 0x9D}, {0x79, 0x9C}, {0x88, 0x1C}, {0x78, 0xBB},
                                         {0x77, 0x85}, {0x78, 0x20}, {0, 0}};
    for (uint32_t i = 0; i < 7; i++) {
        memcpy(bytes, headers[i], 2);
        CHECK(status_of(stream) == COGPU_GPU_MALFORMED);
    }
    for (uint32_t window = 0; window < 8; window++) {
        bytes[0] = (uint8_t)(window << 4 | 8);
        bytes[1] = (uint8_t)(31 - bytes[0] * 256u % 31);
        CHECK(status_of(stream) == COGPU_GPU_DECODED);
    }
    free(bytes);
}

static void bytes_after_the_end(void) {
    gpu_stream stream = small_stream(FLOATS, 5000, &plain);
    uint8_t *longer = malloc(stream.in_bytes + 99);
    memset(longer, 0xAB, stream.in_bytes + 99);
    memcpy(longer, stream.in, stream.in_bytes);
    free((void *)(uintptr_t)stream.in);
    stream.in = longer;
    stream.in_bytes += 99;
    CHECK(status_of(stream) == COGPU_GPU_DECODED);
    free(longer);
}

/* Truncated at every byte near the end, and at many before. */
static void truncated(void) {
    static const struct encoder_style kinds[] = {{32768, 258, 400, ANY, 15, 2},
                                                 {32768, 258, 16384, DYNAMIC, 15, 0}};
    for (uint32_t kind = 0; kind < 2; kind++) {
        gpu_stream whole = small_stream(kind ? FLOATS : WORDS, 1500, &kinds[kind]);
        gpu_stream *streams = calloc(whole.in_bytes, sizeof *streams);
        uint32_t accepted, count = 0, step = is_deep_run() ? 5 : 40;
        for (uint32_t i = 1; i <= whole.in_bytes;
             i += i + 60 < whole.in_bytes ? 1 + draw(step) : 1) {
            streams[count] = whole;
            streams[count++].in_bytes = i;
        }
        CHECK(matches_cpu_codec(streams, count, &accepted));
        CHECK(accepted == 1 && streams[count - 1].block_status == COGPU_GPU_DECODED);
        for (uint32_t i = 2; i <= 5; i++) /* within the Adler-32 */
            CHECK(streams[count - i].block_status == COGPU_GPU_TRUNCATED);
        free(streams);
        free((void *)(uintptr_t)whole.in);
    }
}

/* Some changes leave the decoded bytes as they are: the CPU codec accepts those streams too. */
static void mutations(void) {
    enum { COUNT = 50 };
    for (uint32_t turn = 0; turn < 6; turn++) {
        struct encoder_style style = {32768, 258, turn % 2 ? 500 : 16384, turn % 2 ? ANY : DYNAMIC,
                                      15,    0};
        gpu_stream whole = small_stream((enum data)(turn % FAR_COPIES), 3000, &style),
                   streams[COUNT];
        uint32_t accepted;
        for (uint32_t i = 0; i < COUNT; i++) {
            uint8_t *copy = malloc(whole.in_bytes);
            memcpy(copy, whole.in, whole.in_bytes);
            for (uint32_t changes = draw(3); changes < 3; changes++)
                copy[draw(2) ? draw(whole.in_bytes) : draw(whole.in_bytes < 80 ? 9 : 80)] ^=
                    (uint8_t)(1 << draw(8));
            streams[i] = whole;
            streams[i].in = copy;
            streams[i].capacity += draw(2) * 500;
        }
        CHECK(matches_cpu_codec(streams, COUNT, &accepted));
        for (uint32_t i = 0; i < COUNT; i++)
            free((void *)(uintptr_t)streams[i].in);
        free((void *)(uintptr_t)whole.in);
    }
}

/* One deflate block of hand-made tokens or codes, with the Adler-32 of `bytes` zeros. */
static uint32_t status_of_block(const struct huffman *literals, uint32_t literal_count,
                                const struct huffman *distances, uint32_t distance_count,
                                const struct token *tokens, uint32_t count, uint32_t bytes) {
    struct deflate_writer w = begin_stream(10000);
    static const uint8_t zeros[1000];
    put_bits(&w, 5, 3);
    put_header(&w, literals, literal_count, distances, distance_count);
    put_tokens(&w, tokens, count, literals, distances);
    end_stream(&w, adler(zeros, bytes));
    uint32_t block_status = status_of(
        (gpu_stream){.in = w.out, .in_bytes = w.bytes, .capacity = 1000, .required = bytes});
    free(w.out);
    return block_status;
}

static void odd_codes(void) {
    struct huffman literals = {{0}, {0}}, one = {{1}, {0}}, none = {{0}, {0}}, two = {{1, 1}, {0}};
    const struct token run[] = {{0, 0}, {258, 1}, {0, 0}}, far[] = {{0, 0}, {258, 2}};
    literals.lengths[0] = 1;
    literals.lengths[256] = literals.lengths[285] = 2;
    assign_codes(&literals);
    assign_codes(&one);
    assign_codes(&two);
    CHECK(status_of_block(&literals, 286, &two, 2, run, 3, 260) == COGPU_GPU_DECODED);
    CHECK(status_of_block(&literals, 286, &one, 1, run, 3, 260) == COGPU_GPU_DECODED);
    CHECK(status_of_block(&literals, 286, &none, 1, run, 1, 1) == COGPU_GPU_DECODED);
    /* a distance without a code, one before the start, and one as the first token */
    CHECK(status_of_block(&literals, 286, &none, 1, run, 3, 260) != COGPU_GPU_DECODED);
    CHECK(status_of_block(&literals, 286, &two, 2, far, 2, 259) == COGPU_GPU_MALFORMED);
    CHECK(status_of_block(&literals, 286, &two, 2, run + 1, 2, 259) == COGPU_GPU_MALFORMED);
    /* too many distances, too many literals */
    CHECK(status_of_block(&literals, 286, &two, 31, run, 3, 260) != COGPU_GPU_DECODED);
    CHECK(status_of_block(&literals, 287, &two, 2, run, 3, 260) != COGPU_GPU_DECODED);
    /* too many codes, too few codes, no end */
    literals.lengths[1] = 2;
    CHECK(status_of_block(&literals, 286, &two, 2, run, 1, 1) == COGPU_GPU_MALFORMED);
    literals.lengths[1] = literals.lengths[285] = 0;
    CHECK(status_of_block(&literals, 286, &two, 2, run, 1, 1) == COGPU_GPU_MALFORMED);
    literals.lengths[256] = 0;
    literals.lengths[1] = 1;
    CHECK(status_of_block(&literals, 286, &two, 2, run, 1, 1) == COGPU_GPU_MALFORMED);
    /* end of block alone: no bytes */
    literals.lengths[1] = literals.lengths[0] = 0;
    literals.lengths[256] = 1;
    assign_codes(&literals);
    CHECK(status_of_block(&literals, 257, &none, 1, run, 0, 0) == COGPU_GPU_DECODED);
    CHECK(status_of_block(&literals, 257, &none, 1, run, 0, 1) == COGPU_GPU_TOO_SHORT);
}

/* The given bits after the zlib header. */
static uint32_t status_of_bits(const char *bits) {
    struct deflate_writer w = begin_stream(100);
    for (; *bits; bits++)
        if (*bits != ' ')
            put_bits(&w, (uint32_t)(*bits - '0'), 1);
    end_stream(&w, 1);
    uint32_t block_status =
        status_of((gpu_stream){.in = w.out, .in_bytes = w.bytes, .capacity = 100, .required = 0});
    free(w.out);
    return block_status;
}

static void odd_headers(void) {
    CHECK(status_of_bits("1 10 0000000") == COGPU_GPU_DECODED);
    CHECK(status_of_bits("1 11 0000000") == COGPU_GPU_MALFORMED);
    CHECK(status_of_bits("0 10 0000000") != COGPU_GPU_DECODED);
    CHECK(status_of_bits("0 10 0000000 0 10 000") == COGPU_GPU_TRUNCATED);
    CHECK(status_of_bits("1 00 00000 0000000000000000 1111111111111111") == COGPU_GPU_DECODED);
    CHECK(status_of_bits("1 00 00000 0000000000000000 1111111111111110") == COGPU_GPU_MALFORMED);
    CHECK(status_of_bits("1 00 00000 1000000000000000 0111111111111111") == COGPU_GPU_TRUNCATED);
    /* code lengths that begin with a repetition, and invalid precodes */
    CHECK(status_of_bits("1 01 00000 00000 0000 100 000 000 100 00 00 0000") ==
          COGPU_GPU_MALFORMED);
    CHECK(status_of_bits("1 01 00000 00000 0000 000 000 000 000 0000000000") ==
          COGPU_GPU_MALFORMED);
    CHECK(status_of_bits("1 01 00000 00000 0000 100 100 100 000 0000000000") ==
          COGPU_GPU_MALFORMED);
}

/* A repetition of code lengths that exceeds their number. */
static void too_long_a_run(void) {
    struct huffman literals = {{0}, {0}}, none = {{0}, {0}};
    struct deflate_writer w = begin_stream(1000);
    literals.lengths[0] = literals.lengths[256] = 1;
    assign_codes(&literals);
    put_bits(&w, 5, 3);
    put_header(&w, &literals, 257, &none, 20);
    put_tokens(&w, NULL, 0, &literals, &none);
    end_stream(&w, 1);
    gpu_stream stream = {.in = w.out, .in_bytes = w.bytes, .capacity = 10};
    CHECK(status_of(stream) == COGPU_GPU_DECODED);
    for (uint8_t distances = 1; distances < 20; distances++) {
        w.out[3] = (uint8_t)((w.out[3] & 0xE0) | (distances - 1));
        CHECK(status_of(stream) == COGPU_GPU_MALFORMED);
    }
    free(w.out);
}

/* More deflate blocks than any data needs. */
static void endless_deflate_blocks(void) {
    enum { COUNT = 3000 };
    struct deflate_writer w = begin_stream(10 * COUNT);
    for (uint32_t i = 0; i <= COUNT; i++) {
        put_bits(&w, i == COUNT ? 3 : 2, 3);
        put_bits(&w, 0, 7);
    }
    end_stream(&w, 1);
    CHECK(status_of((gpu_stream){.in = w.out, .in_bytes = w.bytes, .capacity = 100}) ==
          COGPU_GPU_UNSUPPORTED);
    free(w.out);
}

TESTS(kernel_inflate) {
    draw_state = 0x1234567;
    RUN(encoder_styles);
    RUN(many_sizes);
    RUN(large);
    RUN(libdeflate_levels);
    RUN(our_encoder);
    RUN(long_codes);
    RUN(hard_to_synchronise);
    RUN(scratch);
    RUN(sizes_and_checksums);
    RUN(bytes_after_the_end);
    RUN(truncated);
    RUN(mutations);
    RUN(odd_codes);
    RUN(odd_headers);
    RUN(too_long_a_run);
    RUN(endless_deflate_blocks);
    return FINISH();
}
