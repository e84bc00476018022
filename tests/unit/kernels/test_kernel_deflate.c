/*
 * GPU Deflate encoder. zlib, the CPU codec and the GPU decoder must all decode its streams. A valid
 * stream may still be too long, so this test also parses the streams and compares each Huffman code
 * with the optimal one for the same symbols (package-merge). Guard bytes surround the slots.
 */
#include "codec/codec.h"
#include "kernels/encoder.h"
#include "support/gpu_test.h"
#include "support/test.h"

#ifdef HAVE_ZLIB
#include <zlib.h>
#endif

enum { PART = 32768 };

/* ---- random data ---- */

static uint64_t random_state = 0x7654321;

static uint32_t draw(uint32_t below) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

/* FLOATS: predictor 3, differenced byte planes. SHORTS: predictor 2. */
enum data { CONSTANT, RAMP, NOISE, FEW, FLOATS, SHORTS, WORDS, ROWS, RUNS, SKEWED, DATA_KINDS };

enum { ROW_BYTES = 1024 };

static void make_floats(uint8_t *data, uint32_t bytes) {
    uint8_t row[ROW_BYTES];
    double height = 800;
    for (uint32_t at = 0; at < bytes; at += ROW_BYTES) {
        for (uint32_t x = 0; x < ROW_BYTES / 4; x++) {
            height += ((int)draw(2001) - 1000) / 4000.0;
            const float sample = (float)height;
            uint32_t word;
            memcpy(&word, &sample, 4);
            for (uint32_t i = 0; i < 4; i++)
                row[ROW_BYTES / 4 * i + x] = (uint8_t)(word >> (24 - 8 * i));
        }
        for (uint32_t i = ROW_BYTES - 1; i > 0; i--)
            row[i] = (uint8_t)(row[i] - row[i - 1]);
        memcpy(data + at, row, bytes - at < ROW_BYTES ? bytes - at : ROW_BYTES);
    }
}

static uint8_t byte_of(enum data kind, const uint8_t *data, uint32_t i) {
    static const char words[] = "the rivers of the plain and the rivers of the mountains, 32768. ";
    const int16_t difference = (int16_t)((int)(draw(40) + draw(40)) - 39);
    switch (kind) {
    case CONSTANT:
        return 42;
    case RAMP:
        return (uint8_t)(i / 5);
    case NOISE:
        return (uint8_t)draw(256);
    case FEW:
        return (uint8_t)(7 * draw(4));
    case SHORTS:
        return (uint8_t)(i % 2 ? (data[i - 1] > 127 ? 255 : 0) : difference);
    case WORDS:
        return (uint8_t)words[(i + (draw(60) ? 0 : draw(9))) % (sizeof words - 1)];
    case ROWS:
        return i < ROW_BYTES || draw(50) == 0 ? (uint8_t)draw(256) : data[i - ROW_BYTES];
    case RUNS:
        return i == 0 || draw(40) == 0 ? (uint8_t)draw(256) : data[i - 1];
    default: /* SKEWED: each value half as often as the one before it, so that codes get long */
        for (uint8_t value = 0;; value++)
            if (value == 40 || draw(2))
                return value;
    }
}

static uint8_t *make_data(enum data kind, uint32_t bytes) {
    uint8_t *data = malloc(bytes);
    if (kind == FLOATS)
        make_floats(data, bytes);
    for (uint32_t i = 0; kind != FLOATS && i < bytes; i++)
        data[i] = byte_of(kind, data, i);
    return data;
}

/* ---- encoding ---- */

typedef struct subject {
    uint8_t *data;
    uint32_t bytes, step, row_bytes;
    bool is_sparse;
    uint32_t got;
    uint8_t *out;
} subject;

static subject make_subject(enum data kind, uint32_t bytes) {
    return (subject){
        make_data(kind, bytes), bytes, kind == SHORTS ? 2 : 1, ROW_BYTES, false, 0, NULL};
}

/* Device memory of a batch. */
struct memory {
    void *at[5];
    uint64_t bytes[5];
};

enum { DECODED, SLOTS, SIZES, BLOCKS, SCRATCH };

static bool guards_intact(const uint8_t *slots, uint64_t from, uint64_t until) {
    while (from < until && slots[from] == GPU_TEST_GUARD)
        from++;
    return from == until;
}

/* Encodes all in one batch. scratch_share 0: the least scratch; 4: the best. */
static void encode(subject *subjects, uint32_t count, int level, uint32_t scratch_share) {
    cogpu_gpu *gpu = gpu_test_open(random_state);
    const cogpu_gpu_driver *calls = gpu->calls;
    cogpu_raw_block *blocks = calloc(count, sizeof *blocks);
    uint64_t in = COGPU_GPU_ALIGN, out = COGPU_GPU_ALIGN, least, best;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t bound = (uint32_t)cogpu_gpu_deflate_encoder.bound(subjects[i].bytes, 0);
        blocks[i] = (cogpu_raw_block){
            in, out, subjects[i].bytes, bound, subjects[i].step, subjects[i].row_bytes};
        in += gpu_test_align(subjects[i].bytes) + COGPU_GPU_ALIGN;
        out += gpu_test_align(bound) + COGPU_GPU_ALIGN;
    }
    uint8_t *decoded = malloc(in), *slots = malloc(out);
    uint32_t *sizes = malloc(count * sizeof *sizes);
    for (uint64_t i = 0; i < in; i++)
        decoded[i] = (uint8_t)draw(256);
    memset(slots, GPU_TEST_GUARD, out);
    for (uint32_t i = 0; i < count; i++) {
        memcpy(decoded + blocks[i].in, subjects[i].data, subjects[i].bytes);
        sizes[i] = subjects[i].is_sparse ? COGPU_GPU_SPARSE : COGPU_GPU_TO_ENCODE;
    }
    cogpu_gpu_deflate_encoder.scratch(blocks, count, level, &least, &best);
    CHECK(least <= best);

    cogpu_error error;
    const uint64_t scratch = least + (best - least) / 4 * scratch_share;
    struct memory m = {.bytes = {in, out, count * sizeof *sizes, count * sizeof *blocks, scratch}};
    const void *from[] = {decoded, slots, sizes, blocks};
    cogpu_gpu_stream *stream;
    gpu_test_need(calls->stream_open(gpu, true, &stream, &error), &error);
    for (int i = 0; i < 5; i++)
        gpu_test_need(calls->allocate(gpu, m.bytes[i], &m.at[i], &error), &error);
    for (int i = 0; i < SCRATCH; i++)
        gpu_test_need(calls->copy_up(gpu, m.at[i], from[i], m.bytes[i], stream, &error), &error);
    const cogpu_gpu_encoding encoding = {.gpu = gpu,
                                         .stream = stream,
                                         .blocks = blocks,
                                         .count = count,
                                         .device_blocks = m.at[BLOCKS],
                                         .decoded = m.at[DECODED],
                                         .slots = m.at[SLOTS],
                                         .sizes = m.at[SIZES],
                                         .level = level,
                                         .scratch = m.at[SCRATCH],
                                         .scratch_bytes = m.bytes[SCRATCH]};
    gpu_test_need(cogpu_gpu_deflate_encoder.encode(&encoding, &error), &error);
    gpu_test_need(calls->copy_down(gpu, slots, m.at[SLOTS], out, stream, &error), &error);
    gpu_test_need(calls->copy_down(gpu, sizes, m.at[SIZES], m.bytes[SIZES], stream, &error),
                  &error);
    gpu_test_need(calls->finish_stream(gpu, stream, &error), &error);

    uint64_t guarded = 0;
    for (uint32_t i = 0; i < count; i++) {
        CHECK(guards_intact(slots, guarded, blocks[i].out));
        guarded = blocks[i].out + (subjects[i].is_sparse ? 0 : blocks[i].capacity);
        CHECK(sizes[i] <= blocks[i].capacity && (sizes[i] == 0) == subjects[i].is_sparse);
        subjects[i].got = sizes[i];
        subjects[i].out = malloc(sizes[i] + 1);
        memcpy(subjects[i].out, slots + blocks[i].out, sizes[i]);
    }
    CHECK(guards_intact(slots, guarded, out));
    for (int i = 0; i < 5; i++)
        calls->release(gpu, m.at[i]);
    calls->stream_close(gpu, stream);
    calls->close(gpu);
    free(decoded);
    free(slots);
    free(sizes);
    free(blocks);
}

/* ---- reference decoders ---- */

/* A build without a library for deflate leaves its comparison out. */

static bool zlib_reads(const subject *s) {
    bool is_same = true;
#ifndef HAVE_ZLIB
    (void)s;
#else
    uint8_t *out = malloc(s->bytes + 1);
    uLongf got = s->bytes + 1;
    is_same = uncompress(out, &got, s->out, s->got) == Z_OK && got == s->bytes &&
              memcmp(out, s->data, got) == 0;
    free(out);
#endif
    return is_same;
}

static bool host_reads(const subject *s) {
    cogpu_decode *decode = cogpu_codec_find(COMPRESSION_DEFLATE)->decode;
    if (!decode)
        return true;
    cogpu_codec_state state = {0};
    cogpu_block_format format = {0};
    cogpu_error error;
    size_t got = 0;
    uint8_t *in = malloc(s->got), *out = malloc(s->bytes);
    memcpy(in, s->out, s->got);
    bool is_same = decode(&state, &format, in, s->got, out, s->bytes, &got, &error) == COGPU_OK &&
                   got == s->bytes && memcmp(out, s->data, got) == 0;
    cogpu_codec_state_close(&state);
    free(in);
    free(out);
    return is_same;
}

static bool device_reads(const subject *subjects, uint32_t count) {
    gpu_stream *streams = calloc(count, sizeof *streams);
    uint32_t used = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!subjects[i].is_sparse)
            streams[used++] = (gpu_stream){.in = subjects[i].out,
                                           .in_bytes = subjects[i].got,
                                           .capacity = subjects[i].bytes,
                                           .required = subjects[i].bytes};
    cogpu_gpu *gpu = gpu_test_open(random_state);
    bool good = gpu_test_decode(gpu, &cogpu_gpu_inflate, streams, used, 1, random_state);
    for (uint32_t i = 0, k = 0; good && i < count; i++)
        if (!subjects[i].is_sparse) {
            good = streams[k].block_status == COGPU_GPU_DECODED &&
                   memcmp(streams[k].out, subjects[i].data, subjects[i].bytes) == 0;
            free(streams[k++].out);
        }
    gpu->calls->close(gpu);
    free(streams);
    return good;
}

/* ---- parsing a stream ---- */

struct reader {
    const uint8_t *in;
    uint64_t at; /* bit */
};

static uint32_t get(struct reader *r, uint32_t count) {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < count; i++, r->at++)
        bits |= (uint32_t)(r->in[r->at / 8] >> r->at % 8 & 1) << i;
    return bits;
}

struct code {
    uint8_t lengths[320];
    uint32_t size, counts[320];
};

/* The next symbol of a canonical code; counts it. */
static uint32_t get_symbol(struct reader *r, struct code *code) {
    uint32_t bits = 0, first = 0;
    for (uint32_t length = 1; length <= 15; length++) {
        uint32_t of_length = 0;
        bits = bits << 1 | get(r, 1);
        for (uint32_t i = 0; i < code->size; i++)
            if (code->lengths[i] == length && first + of_length++ == bits)
                return code->counts[i]++, i;
        first = (first + of_length) << 1;
    }
    CHECK(!"a symbol");
    return 0;
}

static void get_codes(struct reader *r, struct code *litlens, struct code *distances) {
    static const uint8_t order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                      11, 4,  12, 3, 13, 2, 14, 1, 15};
    struct code precode = {.size = 19};
    uint8_t lengths[320 + 138] = {0};
    litlens->size = 257 + get(r, 5);
    distances->size = 1 + get(r, 5);
    const uint32_t sent = 4 + get(r, 4), all = litlens->size + distances->size;
    for (uint32_t i = 0; i < sent; i++)
        precode.lengths[order[i]] = (uint8_t)get(r, 3);
    for (uint32_t i = 0, times; i < all; i += times) {
        const uint32_t symbol = get_symbol(r, &precode);
        times = symbol < 16    ? 1
                : symbol == 16 ? 3 + get(r, 2)
                : symbol == 17 ? 3 + get(r, 3)
                               : 11 + get(r, 7);
        memset(lengths + i, symbol < 16 ? (int)symbol : symbol == 16 ? lengths[i - 1] : 0, times);
    }
    memcpy(litlens->lengths, lengths, litlens->size);
    memcpy(distances->lengths, lengths + litlens->size, distances->size);
}

/* ---- optimal code lengths ---- */

enum { COINS = 2 * 320 };

/* A leaf, or a package of two coins of the previous row: how often each symbol is in it. */
struct coin {
    uint64_t weight;
    uint8_t uses[320];
};

static int compare_coins(const void *a, const void *b) {
    const uint64_t x = ((const struct coin *)a)->weight, y = ((const struct coin *)b)->weight;
    return (x > y) - (x < y);
}

/* Optimal lengths of at most `limit` bits, by package-merge: each row has the leaves and packages
 * of the previous row; a symbol's length is how often it is in the first 2n - 2 coins of the last.
 */
static void best_lengths(const uint32_t *counts, uint32_t size, uint32_t limit, uint8_t *lengths) {
    struct coin *row = calloc(COINS, sizeof *row);
    uint32_t leaves = 0, coins = 0;
    for (uint32_t i = 0; i < size; i++)
        leaves += counts[i] > 0;
    for (uint32_t bits = 0; bits < limit; bits++) {
        const uint32_t pairs = coins / 2;
        for (uint32_t i = 0; i < pairs; i++) {
            row[i].weight = row[2 * i].weight + row[2 * i + 1].weight;
            for (uint32_t k = 0; k < size; k++)
                row[i].uses[k] = (uint8_t)(row[2 * i].uses[k] + row[2 * i + 1].uses[k]);
        }
        coins = pairs;
        for (uint32_t i = 0; i < size; i++)
            if (counts[i] > 0) {
                memset(&row[coins], 0, sizeof *row);
                row[coins].weight = counts[i];
                row[coins++].uses[i] = 1;
            }
        qsort(row, coins, sizeof *row, compare_coins);
    }
    memset(lengths, 0, size);
    for (uint32_t i = 0; i < (leaves > 1 ? 2 * leaves - 2 : leaves); i++)
        for (uint32_t k = 0; k < size; k++)
            lengths[k] = (uint8_t)(lengths[k] + row[i].uses[k]);
    free(row);
}

static uint64_t bits_of(const uint32_t *counts, const uint8_t *lengths, uint32_t size) {
    uint64_t bits = 0;
    for (uint32_t i = 0; i < size; i++)
        bits += (uint64_t)counts[i] * lengths[i];
    return bits;
}

/* Bits of a block header with these lengths (RFC 1951, 3.2.7), with the optimal precode. */
static uint64_t header_bits(const uint8_t *lengths, uint32_t count) {
    uint32_t counts[19] = {0};
    uint8_t precode[19];
    uint64_t bits = 3 + 14 + 3 * 19;
    for (uint32_t i = 0, times; i < count; i += times) {
        const bool is_repeat = i > 0 && lengths[i] == lengths[i - 1] && lengths[i] > 0;
        for (times = 1; i + times < count && lengths[i + times] == lengths[i];)
            times++;
        if (lengths[i] > 0 && (!is_repeat || times < 3)) {
            counts[lengths[i]]++;
            times = 1;
        } else if (lengths[i] > 0) {
            times = times > 6 ? 6 : times;
            counts[16]++;
            bits += 2;
        } else if (times < 3) {
            counts[0] += times;
        } else {
            times = times > 138 ? 138 : times;
            counts[times < 11 ? 17 : 18]++;
            bits += times < 11 ? 3 : 7;
        }
    }
    best_lengths(counts, 19, 7, precode);
    return bits + bits_of(counts, precode, 19);
}

/* A block is within 1 % of one with the same symbols and optimal codes, and its codes are complete,
 * as some decoders require. */
static bool is_near_best(const struct code *litlens, const struct code *distances,
                         uint64_t extra_bits, uint64_t bits) {
    uint8_t lengths[320 + 138];
    uint64_t kraft[2] = {0, 0};
    best_lengths(litlens->counts, litlens->size, 15, lengths);
    best_lengths(distances->counts, distances->size, 15, lengths + litlens->size);
    const uint64_t best = header_bits(lengths, litlens->size + distances->size) +
                          bits_of(litlens->counts, lengths, litlens->size) +
                          bits_of(distances->counts, lengths + litlens->size, distances->size) +
                          extra_bits;
    for (uint32_t i = 0; i < litlens->size; i++)
        kraft[0] += litlens->lengths[i] ? 1u << (15 - litlens->lengths[i]) : 0;
    for (uint32_t i = 0; i < distances->size; i++)
        kraft[1] += distances->lengths[i] ? 1u << (15 - distances->lengths[i]) : 0;
    const bool is_near = bits <= best + best / 100 && kraft[0] == 1 << 15 && kraft[1] == 1 << 15;
    if (!is_near)
        printf("%llu bits, best %llu\n", (unsigned long long)bits, (unsigned long long)best);
    return is_near;
}

/* DEFLATE blocks of a stream: stored, and with dynamic codes. The encoder makes no others. */
struct stream_blocks {
    uint32_t stored, coded, longest; /* longest code, in bits */
};

static struct stream_blocks parse_stream(const subject *s) {
    struct reader r = {s->out, 16};
    struct stream_blocks blocks = {0, 0, 0};
    for (bool is_last = false; !is_last;) {
        is_last = get(&r, 1);
        if (get(&r, 2) == 0) {
            r.at = (r.at + 7) / 8 * 8;
            const uint32_t bytes = get(&r, 16);
            r.at += 16 + 8 * bytes;
            blocks.stored++;
            continue;
        }
        struct code litlens = {.size = 0}, distances = {.size = 0};
        const uint64_t begin = r.at - 3;
        uint64_t extra_bits = 0;
        get_codes(&r, &litlens, &distances);
        for (uint32_t symbol; (symbol = get_symbol(&r, &litlens)) != 256;)
            if (symbol > 256) {
                const uint32_t of_length = symbol < 265 || symbol == 285 ? 0 : (symbol - 261) / 4;
                get(&r, of_length);
                symbol = get_symbol(&r, &distances);
                const uint32_t of_distance = symbol < 4 ? 0 : symbol / 2 - 1;
                get(&r, of_distance);
                extra_bits += of_length + of_distance;
            }
        CHECK(is_near_best(&litlens, &distances, extra_bits, r.at - begin));
        for (uint32_t i = 0; i < litlens.size; i++)
            blocks.longest =
                litlens.lengths[i] > blocks.longest ? litlens.lengths[i] : blocks.longest;
        blocks.coded++;
    }
    CHECK((r.at + 7) / 8 + 4 == s->got);
    return blocks;
}

static void check_decoders(subject *subjects, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (!subjects[i].is_sparse && !(zlib_reads(&subjects[i]) && host_reads(&subjects[i]))) {
            printf("subject %u of %u bytes, step %u, row %u\n", i, subjects[i].bytes,
                   subjects[i].step, subjects[i].row_bytes);
            CHECK(!"decodes");
        }
    CHECK(device_reads(subjects, count));
}

static void free_subjects(subject *subjects, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        free(subjects[i].data);
        free(subjects[i].out);
    }
}

/* ---- tests ---- */

static const int levels[] = {6, 7, 9};

static void all_data(void) {
    for (uint32_t l = 0; l < 3; l++) {
        subject subjects[DATA_KINDS];
        for (uint32_t kind = 0; kind < DATA_KINDS; kind++)
            subjects[kind] = make_subject((enum data)kind, PART + 1 + draw(20000));
        encode(subjects, DATA_KINDS, levels[l], draw(5));
        check_decoders(subjects, DATA_KINDS);
        for (uint32_t kind = 0; kind < DATA_KINDS; kind++) {
            const struct stream_blocks blocks = parse_stream(&subjects[kind]);
            CHECK(blocks.stored + blocks.coded == 2);
            CHECK(blocks.stored == (kind == NOISE ? 2 : 0));
        }
        CHECK(subjects[CONSTANT].got < subjects[CONSTANT].bytes / 100);
        CHECK(subjects[ROWS].got < subjects[ROWS].bytes / 4);
        CHECK(subjects[RUNS].got < subjects[RUNS].bytes / 8);
        free_subjects(subjects, DATA_KINDS);
    }
}

static void sizes(void) {
    static const uint32_t bytes[] = {
        1,        2,           3,   4,   5,        6,    7,        127,
        128,      129,         255, 257, PART - 1, PART, PART + 1, 2 * PART - 1,
        2 * PART, 2 * PART + 3};
    enum { COUNT = sizeof bytes / sizeof *bytes };
    for (uint32_t turn = 0; turn < 4; turn++) {
        subject subjects[COUNT];
        static const enum data kinds[] = {FLOATS, NOISE, CONSTANT, WORDS};
        for (uint32_t i = 0; i < COUNT; i++)
            subjects[i] = make_subject(kinds[turn], bytes[i]);
        encode(subjects, COUNT, turn == 3 ? 9 : 6, turn);
        check_decoders(subjects, COUNT);
        free_subjects(subjects, COUNT);
    }
}

/* Stored blocks between others, beginning at any bit. */
static void mixed_parts(void) {
    subject subjects[3];
    for (uint32_t i = 0; i < 3; i++) {
        subjects[i] = make_subject(FLOATS, 6 * PART + draw(PART));
        for (uint32_t part = 0; part < 7; part++)
            for (uint32_t at = 0; (part + i) % 3 == 0 && at < PART; at++)
                if (part * PART + at < subjects[i].bytes)
                    subjects[i].data[part * PART + at] = (uint8_t)draw(256);
    }
    encode(subjects, 3, 6, 4);
    check_decoders(subjects, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const struct stream_blocks blocks = parse_stream(&subjects[i]);
        CHECK(blocks.stored >= 2 && blocks.coded >= 4);
    }
    free_subjects(subjects, 3);
}

/* Arbitrary values of `step` and `row_bytes`. */
static void steps_and_rows(void) {
    static const uint32_t distances[] = {0, 1, 2, 3, 5, 7, 127, 129, 4096, 32767, 32768, 1u << 30};
    enum { COUNT = 36 };
    subject subjects[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        subjects[i] = make_subject(i % 3 == 0   ? ROWS
                                   : i % 3 == 1 ? CONSTANT
                                                : WORDS,
                                   i < 3 ? PART : 3000 + draw(3000));
        subjects[i].step = distances[draw(12)];
        subjects[i].row_bytes = distances[draw(12)];
        for (uint32_t at = subjects[i].step; i >= 18 && subjects[i].step && at < subjects[i].bytes;
             at++)
            subjects[i].data[at] =
                draw(30) ? subjects[i].data[at - subjects[i].step] : (uint8_t)draw(9);
    }
    encode(subjects, COUNT, 6, 4);
    check_decoders(subjects, COUNT);
    free_subjects(subjects, COUNT);
}

static void swap(uint8_t *a, uint8_t *b) {
    const uint8_t kept = *a;
    *a = *b;
    *b = kept;
}

/* Fibonacci counts, beginning with end-of-block, need codes of 20 bits and more without a limit.
 * The bytes are shuffled, with few runs, since matches would add other symbols. */
static void long_codes(void) {
    subject s = make_subject(NOISE, PART);
    s.step = s.row_bytes = 0;
    for (uint32_t at = 0, value = 0, a = 1, b = 2; at < PART; value++, b += a, a = b - a)
        for (uint32_t i = 0; i < a && at < PART; i++)
            s.data[at++] = (uint8_t)(255 - value);
    for (uint32_t i = PART - 1; i > 0; i--)
        swap(&s.data[i], &s.data[draw(i + 1)]);
    for (uint32_t i = 2; i < PART; i++)
        for (uint32_t k = i; k < PART && s.data[i] == s.data[i - 2] && s.data[i] == s.data[i - 1];)
            swap(&s.data[i], &s.data[k++]);
    encode(&s, 1, 6, 4);
    check_decoders(&s, 1);
    CHECK(parse_stream(&s).longest == 15);
    free_subjects(&s, 1);
}

/* A segment of bytes that occur nowhere else: its bits almost fill the memory in which a thread
 * codes its segment. */
static void expensive_segment(void) {
    enum { SEGMENT = 128 };
    subject s = make_subject(SKEWED, PART);
    for (uint32_t i = 0; i < SEGMENT; i++)
        s.data[7 * SEGMENT + i] = (uint8_t)(128 + (i ^ 1));
    encode(&s, 1, 6, 4);
    check_decoders(&s, 1);
    CHECK(parse_stream(&s).longest >= 13);
    free_subjects(&s, 1);
}

static void sparse_blocks(void) {
    subject subjects[9];
    for (uint32_t i = 0; i < 9; i++) {
        subjects[i] = make_subject(FLOATS, 1000 + draw(40000));
        subjects[i].is_sparse = i % 3 != 1;
    }
    encode(subjects, 9, 6, 1);
    check_decoders(subjects, 9);
    free_subjects(subjects, 9);
}

/* The same bytes in any order of threads, with any scratch and in any batch. */
static void same_bytes(void) {
    for (uint32_t l = 0; l < 3; l += 2) {
        subject subjects[4], again[4];
        for (uint32_t i = 0; i < 4; i++)
            subjects[i] = make_subject(i == 0   ? FLOATS
                                       : i == 1 ? WORDS
                                       : i == 2 ? RUNS
                                                : SHORTS,
                                       PART + draw(PART));
        encode(subjects, 4, levels[l], 4);
        for (uint32_t turn = 0; turn < 3; turn++) {
            memcpy(again, subjects, sizeof again);
            draw(2); /* another seed */
            if (turn < 2)
                encode(again, 4, levels[l], turn);
            for (uint32_t i = 0; turn == 2 && i < 4; i++)
                encode(&again[i], 1, levels[l], 4);
            for (uint32_t i = 0; i < 4; i++) {
                CHECK(again[i].got == subjects[i].got &&
                      memcmp(again[i].out, subjects[i].out, again[i].got) == 0);
                free(again[i].out);
            }
        }
        free_subjects(subjects, 4);
    }
}

/* Noise that repeats at distance 32768, the largest of DEFLATE, in the previous part. One byte
 * further it is not found. */
static void largest_distance(void) {
    for (uint32_t further = 0; further < 2; further++) {
        subject s = make_subject(NOISE, 3 * PART + 77);
        for (uint32_t at = PART + further; at < s.bytes; at++)
            s.data[at] = s.data[at - PART - further];
        encode(&s, 1, 9, 4);
        check_decoders(&s, 1);
        CHECK(further ? s.got > s.bytes : s.got < PART + PART / 8);
        free_subjects(&s, 1);
    }
}

/* Floats come near zlib's default level; shorts do with a search, since pairs of bytes repeat. */
static void small_enough(void) {
#ifdef HAVE_ZLIB
    for (uint32_t kind = FLOATS; kind <= SHORTS; kind++) {
        subject s = make_subject((enum data)kind, 4 * PART);
        uLongf bound = compressBound(s.bytes);
        uint8_t *reference = malloc(bound);
        CHECK(compress2(reference, &bound, s.data, s.bytes, 6) == Z_OK);
        encode(&s, 1, 6, 4);
        const uint32_t usual = s.got;
        CHECK(s.got < bound + bound * (kind == FLOATS ? 2 : 10) / 100);
        free(s.out);
        encode(&s, 1, 9, 4);
        CHECK(s.got < usual && s.got < bound + bound * 5 / 100);
        free_subjects(&s, 1);
        free(reference);
    }
#endif
}

static void bound(void) {
    CHECK(cogpu_gpu_deflate_encoder.bound(1, 0) >= 12 &&
          cogpu_gpu_deflate_encoder.bound(1, 0) % 4 == 0);
    CHECK(cogpu_gpu_deflate_encoder.bound(1 << 20, 0) < (1 << 20) + 256);
}

TESTS(kernel_deflate) {
    RUN(all_data);
    RUN(sizes);
    RUN(mixed_parts);
    RUN(steps_and_rows);
    RUN(long_codes);
    RUN(expensive_segment);
    RUN(sparse_blocks);
    RUN(same_bytes);
    RUN(largest_distance);
    RUN(small_enough);
    RUN(bound);
    return FINISH();
}
