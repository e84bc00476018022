/*
 * The zstd decoder of the GPU, on the emulator or a device: decodes all kinds of frames of libzstd,
 * and accepts nothing that the CPU codec refuses.
 */
#include "codec/codec.h"
#include "support/gpu_test.h"
#include "support/test.h"

#if COGPU_HAVE_ZSTD
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

static cogpu_codec_state host;
static uint64_t random_state = 88172645463325252u;

static uint32_t random_below(uint32_t end) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % end;
}

/* ---- data ---- */

/* EVEN: 64 values that are equally frequent. Their Huffman codes have equal lengths. */
enum kind { CONSTANT, RAMP, NOISE, FEW, EVEN, DIFFERENCES, PLANES, TEXT, MIXED, KINDS };

/* A surface of float samples after the floating-point predictor or plain differences. */
static void fill_surface(uint8_t *to, size_t bytes, bool by_planes) {
    enum { ROW = 256 };
    uint32_t before = 0;
    for (size_t row = 0; row * 4 * ROW < bytes; row++) {
        uint8_t planes[4 * ROW];
        for (size_t x = 0; x < ROW; x++) {
            float height = 800 + 3 * (float)row + (float)(x * x % 977) / 20;
            uint32_t bits;
            height += (float)random_below(8) / 50;
            memcpy(&bits, &height, 4);
            uint32_t value = bits - (x ? before : 0);
            for (uint32_t byte = 0; byte < 4; byte++)
                planes[by_planes ? ROW * (3 - byte) + x : 4 * x + byte] =
                    (uint8_t)((by_planes ? bits : value) >> 8 * byte);
            before = bits;
        }
        for (size_t i = 4 * ROW - 1; by_planes && i > 0; i--)
            planes[i] = (uint8_t)(planes[i] - planes[i - 1]);
        size_t left = bytes - row * 4 * ROW;
        memcpy(to + row * 4 * ROW, planes, left < 4 * ROW ? left : 4 * ROW);
    }
}

static void fill(uint8_t *to, size_t bytes, enum kind kind) {
    static const char *const words[] = {"the ",    "block ",  "of a ", "raster ",  "has ",
                                        "bytes, ", "stored ", "and ",  "decoded. "};
    if (kind == DIFFERENCES || kind == PLANES) {
        fill_surface(to, bytes, kind == PLANES);
        return;
    }
    const char *word = "";
    for (size_t i = 0; i < bytes; i++) {
        enum kind now = kind == MIXED ? (enum kind)(i / 5000 * 7 % MIXED) : kind;
        switch (now) {
        case CONSTANT:
            to[i] = 7;
            break;
        case RAMP:
            to[i] = (uint8_t)(i / 3 + i / 700);
            break;
        case NOISE:
            to[i] = (uint8_t)random_below(256);
            break;
        case EVEN:
            to[i] = (uint8_t)(64 + random_below(64));
            break;
        case TEXT:
            if (!*word)
                word = words[random_below(9)];
            to[i] = (uint8_t)*word++;
            break;
        default:
            to[i] = (uint8_t)(random_below(3) * random_below(4) * 11);
            break;
        }
    }
}

static uint8_t *filled(size_t bytes, enum kind kind) {
    uint8_t *data = malloc(bytes + 1);
    fill(data, bytes, kind);
    return data;
}

/* ---- frames ---- */

struct options {
    int level;
    bool no_size, sum;
    bool flush;                       /* before the end, which leaves an empty last block */
    bool long_distance;               /* long-distance matching */
    int window_log, target, literals; /* 0: libzstd's default */
};

struct bytes {
    uint8_t *at;
    size_t count;
};

static struct bytes compress(const uint8_t *data, size_t bytes, struct options options) {
    ZSTD_CCtx *c = ZSTD_createCCtx();
    struct bytes frame = {malloc(ZSTD_compressBound(bytes) + 100000), 0};
    ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, options.level);
    ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, !options.no_size);
    ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, options.sum);
    if (options.window_log)
        ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, options.window_log);
    if (options.target)
        ZSTD_CCtx_setParameter(c, ZSTD_c_targetCBlockSize, options.target);
    if (options.long_distance)
        ZSTD_CCtx_setParameter(c, ZSTD_c_enableLongDistanceMatching, 1);
    if (options.literals)
        ZSTD_CCtx_setParameter(c, ZSTD_c_literalCompressionMode, options.literals);
    ZSTD_inBuffer in = {data, bytes, 0};
    ZSTD_outBuffer out = {frame.at, ZSTD_compressBound(bytes) + 100000, 0};
    if (options.flush)
        CHECK(ZSTD_compressStream2(c, &out, &in, ZSTD_e_flush) == 0);
    CHECK(ZSTD_compressStream2(c, &out, &in, ZSTD_e_end) == 0);
    frame.count = out.pos;
    ZSTD_freeCCtx(c);
    return frame;
}

/* Features that the blocks of a frame use, a bit each: the tests must see all of them. */
enum {
    USES_RAW = 1,
    USES_RLE = 2,
    USES_LITERALS = 4, /* and the three bits above: raw, RLE, coded, treeless */
    USES_ONE_STREAM = 64,
    USES_FOUR_STREAMS = 128,
    USES_MODES = 256 /* 12 bits: for each code predefined, RLE, described, repeated */
};

static uint32_t features_of(const uint8_t *frame, size_t bytes) {
    ZSTD_frameHeader header;
    uint32_t uses = 0;
    if (ZSTD_getFrameHeader(&header, frame, bytes) != 0)
        return 0;
    for (size_t at = header.headerSize; at + 3 <= bytes;) {
        uint32_t word = frame[at] | (uint32_t)frame[at + 1] << 8 | (uint32_t)frame[at + 2] << 16;
        uint32_t type = word >> 1 & 3, size = word >> 3;
        const uint8_t *body = frame + at + 3;
        if (type < 2) {
            uses |= type ? USES_RLE : USES_RAW;
        } else {
            uint32_t literals = body[0] & 3, format = body[0] >> 2 & 3, skip;
            uses |= (uint32_t)USES_LITERALS << literals;
            if (literals < 2) {
                skip = format == 3 ? 3 : format == 1 ? 2 : 1;
                uint32_t count =
                    format == 3 ? (body[0] | (uint32_t)body[1] << 8 | (uint32_t)body[2] << 16) >> 4
                    : format == 1 ? (body[0] | (uint32_t)body[1] << 8) >> 4
                                  : body[0] >> 3;
                skip += literals ? 1 : count;
            } else {
                uint64_t all = 0;
                for (int i = 0; i < 5; i++)
                    all |= (uint64_t)body[i] << 8 * i;
                uint32_t bits = format < 2 ? 10 : format == 2 ? 14 : 18;
                skip = (format < 2 ? 3 : format + 2) +
                       (uint32_t)(all >> (4 + bits) & ((1u << bits) - 1));
                uses |= format ? USES_FOUR_STREAMS : USES_ONE_STREAM;
            }
            uint32_t count = body[skip];
            uint32_t modes = body[skip + (count < 128 ? 1 : count < 255 ? 2 : 3)];
            for (uint32_t code = 0; count && code < 3; code++)
                uses |= (uint32_t)USES_MODES << (4 * code + (modes >> (6 - 2 * code) & 3));
        }
        at += 3 + (type == 1 ? 1 : size);
        if (word & 1)
            break;
    }
    return uses;
}

/* ---- comparison with the CPU codec ---- */

/* Whether the CPU codec decodes the stream to the same bytes, if the GPU accepts it. */
static bool is_right(const gpu_stream *s) {
    const cogpu_block_format format = {0};
    uint8_t *out = malloc(s->capacity);
    size_t got = 0;
    cogpu_error error;
    bool is_good = true;
    if (s->block_status == COGPU_GPU_DECODED) {
        cogpu_status status =
            cogpu_decode_zstd(&host, &format, s->in, s->in_bytes, out, s->capacity, &got, &error);
        is_good = status == COGPU_OK && got >= s->required && memcmp(out, s->out, got) == 0;
        if (!is_good)
            printf("a stream of %u bytes is wrongly accepted (%s)\n", s->in_bytes,
                   status == COGPU_OK ? "other bytes" : error.message);
    }
    free(out);
    return is_good;
}

/* The decoder's paths: with few TIFF blocks, and a full share of scratch memory, all zstd blocks
 * are executed at once, in windows of two for each multiprocessor. */
enum path { TIFF_BLOCKS_AT_ONCE, ZSTD_BLOCKS_AT_ONCE, PATHS };

static uint32_t decode_by(enum path path, gpu_stream *streams, uint32_t count, int scratch_share,
                          uint64_t seed) {
    cogpu_gpu *gpu = gpu_test_open(seed);
    const uint32_t multiprocessors = gpu->multiprocessors;
    uint32_t accepted = 0;
    if (path == ZSTD_BLOCKS_AT_ONCE)
        gpu->multiprocessors = 3 * count;
    else
        gpu->multiprocessors = 1;
    bool good = gpu_test_decode(gpu, &cogpu_gpu_zstd, streams, count, scratch_share, seed);
    CHECK(good);
    for (uint32_t i = 0; good && i < count; i++) {
        CHECK(is_right(&streams[i]));
        accepted += streams[i].block_status == COGPU_GPU_DECODED;
        free(streams[i].out);
    }
    gpu->multiprocessors = multiprocessors;
    gpu->calls->close(gpu);
    return accepted;
}

/* Decodes the streams by both paths. Those that the GPU accepts, the CPU codec must accept too,
 * with the same bytes. Returns how many the GPU accepts. */
static uint32_t count_accepted(gpu_stream *streams, uint32_t count, int scratch_share,
                               uint64_t seed) {
    uint32_t accepted = decode_by(TIFF_BLOCKS_AT_ONCE, streams, count, scratch_share, seed);
    if (scratch_share) {
        uint32_t *statuses = malloc(count * sizeof *statuses);
        for (uint32_t i = 0; i < count; i++)
            statuses[i] = streams[i].block_status;
        CHECK(decode_by(ZSTD_BLOCKS_AT_ONCE, streams, count, 1, seed) == accepted);
        for (uint32_t i = 0; i < count; i++)
            CHECK((statuses[i] == COGPU_GPU_DECODED) ==
                  (streams[i].block_status == COGPU_GPU_DECODED));
        free(statuses);
    }
    return accepted;
}

static gpu_stream stream_of(const uint8_t *in, size_t in_bytes, size_t capacity) {
    return (gpu_stream){.in = in,
                        .in_bytes = (uint32_t)in_bytes,
                        .capacity = (uint32_t)(capacity ? capacity : 1),
                        .required = (uint32_t)capacity};
}

static uint32_t features_seen;

/* Frames of the data with each of the options, in one batch. */
static void round_trip(const uint8_t *data, size_t bytes, const struct options *options,
                       uint32_t count, int scratch_share) {
    gpu_stream streams[32];
    struct bytes frames[32];
    for (uint32_t i = 0; i < count; i++) {
        frames[i] = compress(data, bytes, options[i]);
        streams[i] = stream_of(frames[i].at, frames[i].count, bytes);
        features_seen |= features_of(frames[i].at, frames[i].count);
    }
    uint32_t accepted = count_accepted(streams, count, scratch_share, bytes);
    if (accepted != count)
        for (uint32_t i = 0; i < count; i++)
            if (streams[i].block_status)
                printf("%zu bytes, level %d: block_status %u\n", bytes, options[i].level,
                       streams[i].block_status);
    CHECK(accepted == count);
    for (uint32_t i = 0; i < count; i++)
        free(frames[i].at);
}

/* ---- tests ---- */

static const struct options usual[] = {{.level = 1},
                                       {.level = 9},
                                       {.level = 19, .sum = true},
                                       {.level = -5, .no_size = true},
                                       {.level = 3, .window_log = 14, .sum = true, .no_size = true},
                                       {.level = 5, .target = 1500},
                                       {.level = 9, .literals = ZSTD_ps_disable},
                                       {.level = 1, .literals = ZSTD_ps_enable}};
enum { USUAL = sizeof usual / sizeof *usual };

static void small_sizes(void) {
    static const size_t sizes[] = {0, 1, 2, 15, 16, 100, 255, 1000, 4096, 10007};
    for (uint32_t i = 0; i < 10 * KINDS; i += is_deep_run() ? 1 : 3) {
        uint8_t *data = filled(sizes[i % 10], (enum kind)(i / 10));
        round_trip(data, sizes[i % 10], usual, USUAL, (int)(i % 2));
        free(data);
    }
}

/* Larger than a zstd block. Half of the options with each kind of content, unless this is a run of
 * all tests. */
static void large_sizes(void) {
    const uint32_t count = is_deep_run() ? USUAL : (USUAL + 1) / 2;
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        size_t bytes = 140000 + random_below(60000);
        uint8_t *data = filled(bytes, (enum kind)kind);
        round_trip(data, bytes, usual + kind % 2 * (USUAL - count), count, (int)(kind / 2 % 2));
        free(data);
    }
    static const struct options more[] = {{.level = 9}, {.level = 3}, {.level = 1, .target = 2000}};
    uint8_t *data = filled(400000, PLANES);
    round_trip(data, 400000, more, 3, 1);
    memset(data + 1000, 0, 300000);
    round_trip(data, 400000, more, 3, 0);
    free(data);
}

static void small_windows(void) {
    static const struct options options[] = {{.level = 9, .window_log = 10},
                                             {.level = 1, .window_log = 11, .no_size = true},
                                             {.level = 19, .window_log = 12, .sum = true}};
    uint8_t *data = filled(30000, DIFFERENCES);
    round_trip(data, 30000, options, 3, 0);
    free(data);
}

/* A sequence whose extra bits and state bits exceed 64 bits: 66000 literals and a match of 33000
 * bytes far back, with rare codes. The decoder's fast path does not handle it. */
static void long_sequences(void) {
    enum { BLOCK = 128 << 10, AT = BLOCK + 66000 };
    static const struct options options[] = {{.level = 9}};
    for (uint32_t i = 0; i < 3; i++) {
        uint8_t *data = filled(2 * BLOCK, NOISE);
        memcpy(data + AT, data + AT - 197000, 33000);
        for (size_t k = 0, at = AT + 33000; k < 9;
             k++) { /* more sequences, up to the next checkpoint */
            at += (size_t)3 << k;
            memcpy(data + at, data + BLOCK + 20000 * i + 3000 * k, (size_t)20 << k);
            at += (size_t)20 << k;
        }
        round_trip(data, 2 * BLOCK, options, 1, (int)i % 2);
        free(data);
    }
}

/* Matches that overlap themselves, with offsets of 1 to a few hundred bytes: short ones, ones
 * longer than a slice, and copies of them. */
static void repetitions(void) {
    enum { COUNT = 24, BYTES = 14000 };
    gpu_stream streams[COUNT];
    struct bytes frames[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t period = 1 + i * i % 67 * (1 + i % 5);
        uint8_t *data = filled(BYTES, NOISE);
        for (uint32_t at = 200 + period; at < BYTES; at++)
            if (at % 1999 > 3 * i || at > 6000) /* where it begins anew */
                data[at] = data[at - period];
        memcpy(data + 12000, data + 900, 1500);
        frames[i] = compress(data, BYTES, usual[i % USUAL]);
        streams[i] = stream_of(frames[i].at, frames[i].count, BYTES);
        free(data);
    }
    CHECK(count_accepted(streams, COUNT, 1, 5) == COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        free(frames[i].at);
}

/* The frames so far had all kinds of blocks, literals and codes. RLE literals, which libzstd does
 * not write, are among the hand-made frames. Checks nothing if this test was selected alone. */
static void all_features_seen(void) {
    if (features_seen == 0)
        return;
    features_seen |= USES_LITERALS << 1;
    if (features_seen != 0xFFFFF)
        printf("only features %05x are seen\n", features_seen);
    CHECK(features_seen == 0xFFFFF);
}

static void all_levels(void) {
    struct options options[28];
    uint32_t count = 0;
    for (int level = -5; level <= 22; level++)
        options[count++] = (struct options){.level = level};
    uint8_t *data = filled(30000, MIXED);
    round_trip(data, 30000, options, count, 1);
    free(data);
}

#define MAGIC "\x28\xB5\x2F\xFD"

/* Several frames, skippable ones before and between, noise after. */
static void frames_in_a_row(void) {
    uint8_t *data = filled(30000, DIFFERENCES), *all = malloc(200000);
    size_t bytes = 0;
    for (size_t i = 0; i < 6; i++) {
        struct bytes frame = compress(data + 5000 * i, 5000, usual[i]);
        memcpy(all + bytes, "\x53\x2A\x4D\x18\x05\0\0\0hello", 13);
        memcpy(all + bytes + 13, frame.at, frame.count);
        bytes += 13 + frame.count;
        free(frame.at);
    }
    memcpy(all + bytes, "\x28\xB5\x2F\x00noise and more", 18);
    gpu_stream streams[] = {stream_of(all, bytes, 30000), stream_of(all, bytes + 18, 30000),
                            stream_of(all, bytes, 30001), /* fewer than are needed */
                            stream_of(all, bytes, 29999), stream_of(all, bytes - 1, 30000),
                            stream_of(all, 13, 10)};
    streams[2].capacity = 40000;
    CHECK(count_accepted(streams, 6, 1, 5) == 2);
    CHECK(streams[0].block_status == 0 && streams[1].block_status == 0);
    CHECK(streams[2].block_status == COGPU_GPU_TOO_SHORT &&
          streams[5].block_status == COGPU_GPU_TOO_SHORT);
    CHECK(streams[4].block_status == COGPU_GPU_TRUNCATED);
    free(data);
    free(all);
}

struct made {
    const char *text;
    size_t bytes;
    size_t capacity;
    uint32_t block_status;
};

/* Compressed blocks of one sequence, by RLE codes, without the first byte of their headers: two
 * literals and 10 bytes from 2 back; no literals and 10 bytes from the last offset less 1 back. */
#define TWO_BACK                                                                                   \
    "\0\0\x10"                                                                                     \
    "ab\x01\x54\x02\x02\x07\x05"
#define LAST     "\x3D"
#define NOT_LAST "\x3C"
#define ONE_LESS "\0\0\0\x01\x54\0\x01\x07\x03"

/* Block headers: 0x19 means last, raw, 3 bytes; 0x1B last, 3 times one byte. */
static void hand_made_frames(void) {
    static const struct made made[] = {
        {MAGIC "\x20\x03\x19\0\0abc", 12, 3, COGPU_GPU_DECODED},
        {MAGIC "\x20\x03\x1B\0\0z", 10, 3, COGPU_GPU_DECODED},
        {MAGIC "\x00\xA8\x19\0\0abc", 12, 3, COGPU_GPU_DECODED},         /* a window of 2 GiB */
        {MAGIC "\x00\xB0\x19\0\0abc", 12, 3, COGPU_GPU_UNSUPPORTED},     /* and of 4 */
        {MAGIC "\x20\x03\x1F\0\0abc", 12, 3, COGPU_GPU_MALFORMED},       /* reserved block type */
        {MAGIC "\x28\x03\x19\0\0abc", 12, 3, COGPU_GPU_MALFORMED},       /* a reserved bit */
        {MAGIC "\x21\x07\x03\x19\0\0abc", 13, 3, COGPU_GPU_UNSUPPORTED}, /* a dictionary */
        {MAGIC "\x20\x05\x19\0\0abc", 12, 100,
         COGPU_GPU_MALFORMED}, /* less than its content size */
        {MAGIC "\x20\x03\x51\0\0abcdefghij", 19, 100, COGPU_GPU_UNSUPPORTED},
        {MAGIC "\x00\x38\x03\0\x10z", 10, 9, COGPU_GPU_TOO_LONG},
        {MAGIC "\x20\x03\x18\0\0abc", 12, 3, COGPU_GPU_TRUNCATED}, /* no last block */
        {"abcdefgh", 8, 3, COGPU_GPU_MALFORMED},
        {"a", 1, 3, COGPU_GPU_MALFORMED},
        /* Two raw blocks, the second empty. */
        {MAGIC "\x20\x03\x18\0\0abc\x01\0\0", 15, 3, COGPU_GPU_DECODED},
        {MAGIC "\x20\x04\x18\0\0abc\x01\0\0", 15, 100, COGPU_GPU_MALFORMED},
        /* Compressed: two raw literals, a match of 10 at offset 1 by RLE codes and no bits. The
         * codes: 2 literals, offset value 4 (code 2 and two bits 0), match 10 (code 7). */
        {MAGIC "\x20\x0C\x4D\0\0\x10"
               "ab"
               "\x01\x54\x02\x02\x07\x04",
         18, 12, COGPU_GPU_DECODED},
        {MAGIC "\x20\x0C\x4D\0\0\x10"
               "ab"
               "\x01\x54\x02\x02\x07\x08",
         18, 12, COGPU_GPU_MALFORMED},
        {MAGIC "\x20\x0C\x4D\0\0\x10"
               "ab"
               "\x01\x54\x02\x02\x07\0",
         18, 12, COGPU_GPU_MALFORMED},
        {MAGIC "\x20\x0C\x4D\0\0\x10"
               "ab"
               "\x01\x54\x02\x02\x35\x04",
         18, 12, COGPU_GPU_MALFORMED},
        {MAGIC "\x20\x0C\x4D\0\0\x10"
               "ab"
               "\x01\x54\x02\x02\x07\x07",
         18, 12, COGPU_GPU_MALFORMED},
        /* Two RLE literals. */
        {MAGIC "\x20\x0C\x45\0\0\x11"
               "a"
               "\x01\x54\x02\x02\x07\x04",
         17, 12, COGPU_GPU_DECODED},
        /* No literals: value 1 is then the second last offset, 4; value 3 the last less one, 0. */
        {MAGIC "\x20\x0C\x4C\0\0\x10"
               "ab"
               "\x01\x54\x02\x02\x07\x04",
         18, 12, COGPU_GPU_TRUNCATED},
        {MAGIC "\x20\x0C\x3D\0\0\0\x01\x54\0\0\x07\x01", 16, 10, COGPU_GPU_TOO_LONG},
        {MAGIC "\x20\x0A\x3D\0\0\0\x01\x54\0\0\x07\x01", 16, 10, COGPU_GPU_MALFORMED},
        {MAGIC "\x20\x0A\x3D\0\0\0\x01\x54\0\x01\x07\x03", 16, 10, COGPU_GPU_MALFORMED},
        /* A second block that repeats the tables of the first. */
        {MAGIC "\x20\x18\x4C\0\0\x10"
               "ab"
               "\x01\x54\x02\x02\x07\x04\x35\0\0\x10"
               "cd"
               "\x01\xFC\x04",
         28, 24, COGPU_GPU_DECODED},
        /* Repeat offsets of another block. The first has an offset of 2, so the last three are then
         * 2, 1, 4. The second has no literals and value 3: 2 less 1. */
        {MAGIC "\x20\x16\x4C" TWO_BACK LAST ONE_LESS, 28, 22, COGPU_GPU_DECODED},
        /* A raw block and an RLE block between them change nothing. */
        {MAGIC "\x20\x1C\x4C" TWO_BACK "\x18\0\0xyz\x1A\0\0z" LAST ONE_LESS, 38, 28,
         COGPU_GPU_DECODED},
        /* Then value 1 without literals: the second last, 2. */
        {MAGIC "\x20\x20\x4C" TWO_BACK NOT_LAST ONE_LESS "\x3D\0\0\0\x01\x54\0\0\x07\x01", 38, 32,
         COGPU_GPU_DECODED},
        /* Or value 3 again: 1 less 1. */
        {MAGIC "\x20\x20\x4C" TWO_BACK NOT_LAST ONE_LESS LAST ONE_LESS, 38, 32,
         COGPU_GPU_MALFORMED},
        /* A second frame begins with 1, 4, 8 again: 1 less 1. */
        {MAGIC "\x20\x0C\x4D" TWO_BACK MAGIC "\x20\x0D\x18\0\0xyz" LAST ONE_LESS, 40, 25,
         COGPU_GPU_MALFORMED},
        /* Repeat_Mode without earlier tables. */
        {MAGIC "\x20\x0C\x35\0\0\x10"
               "ab"
               "\x01\xFC\x04",
         15, 12, COGPU_GPU_MALFORMED},
        /* Treeless literals without an earlier tree. */
        {MAGIC "\x20\x0C\x3D\0\0\x83\x40\0\x11\x01\0\x01", 16, 12, COGPU_GPU_MALFORMED},
    };
    enum { COUNT = sizeof made / sizeof *made };
    gpu_stream streams[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        streams[i] = stream_of((const uint8_t *)made[i].text, made[i].bytes, made[i].capacity);
    for (int path = 0; path < PATHS; path++) {
        decode_by((enum path)path, streams, COUNT, 1, 3);
        for (uint32_t i = 0; i < COUNT; i++) {
            if (streams[i].block_status != made[i].block_status)
                printf("stream %u: block_status %u\n", i, streams[i].block_status);
            CHECK(streams[i].block_status == made[i].block_status);
        }
    }
}

static void bad_checksum(bool flush) {
    uint8_t *data = filled(20000, TEXT);
    const struct options options = {.level = 3, .sum = true, .flush = flush};
    struct bytes frame = compress(data, 20000, options);
    round_trip(data, 20000, &options, 1, 0);
    for (size_t i = 0; i < 4; i++) {
        frame.at[frame.count - 4 + i] ^= 0x10;
        gpu_stream stream = stream_of(frame.at, frame.count, 20000);
        CHECK(count_accepted(&stream, 1, 0, i) == 0);
        CHECK(stream.block_status == COGPU_GPU_CHECKSUM_MISMATCH);
        frame.at[frame.count - 4 + i] ^= 0x10;
    }
    free(frame.at);
    free(data);
}

static void checksums(void) {
    bad_checksum(false);
    bad_checksum(true);
}

enum { DAMAGED_AT_ONCE = 64 };

/* Decodes copies of the stream that are truncated or have some bits changed. */
static void check_damaged(const uint8_t *in, size_t in_bytes, size_t capacity, uint32_t count,
                          bool is_truncated) {
    for (uint32_t done = 0; done < count; done += DAMAGED_AT_ONCE) {
        gpu_stream streams[DAMAGED_AT_ONCE];
        uint8_t *copies[DAMAGED_AT_ONCE];
        uint32_t n = count - done < DAMAGED_AT_ONCE ? count - done : DAMAGED_AT_ONCE;
        for (uint32_t i = 0; i < n; i++) {
            size_t bytes = in_bytes;
            copies[i] = malloc(in_bytes);
            memcpy(copies[i], in, in_bytes);
            if (is_truncated)
                bytes = 1 + (done + i) * (in_bytes - 1) / count;
            else
                for (uint32_t flips = 1 + random_below(3); flips > 0; flips--)
                    copies[i]
                          [random_below(2) ? random_below((uint32_t)bytes)
                                           : random_below(bytes < 120 ? (uint32_t)bytes : 120)] ^=
                        (uint8_t)(random_below(3) ? 1u << random_below(8) : random_below(256));
            streams[i] = stream_of(copies[i], bytes, capacity);
            streams[i].required = (uint32_t)(capacity ? capacity - random_below(2) : 0);
            streams[i].capacity += random_below(3) * 100;
        }
        uint32_t accepted =
            count_accepted(streams, n, (int)(done / DAMAGED_AT_ONCE % 2), done + capacity);
        CHECK(!is_truncated || accepted == 0);
        for (uint32_t i = 0; i < n; i++)
            free(copies[i]);
    }
}

static void truncated(void) {
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        uint8_t *data = filled(3000, (enum kind)kind);
        struct bytes frame = compress(data, 3000, usual[kind % USUAL]);
        check_damaged(frame.at, frame.count, 3000, frame.count < 200 ? (uint32_t)frame.count : 200,
                      true);
        free(frame.at);
        free(data);
    }
}

static void flipped(void) {
    for (uint32_t i = 0; i < 2 * KINDS; i++) {
        size_t bytes = i % 2 ? 2000 : 9000;
        uint8_t *data = filled(bytes, (enum kind)(i / 2));
        struct options options = usual[i * 5 % USUAL];
        options.sum = false; /* a checksum would find errors that the decoder must find itself */
        struct bytes frame = compress(data, bytes, options);
        check_damaged(frame.at, frame.count, bytes, is_deep_run() ? 128 : 64, false);
        free(frame.at);
        free(data);
    }
}

/* Each bit of a frame of literals in four streams: those of the last codes among them, which may
 * end before the first bit of their stream. */
static void each_bit_flipped(void) {
    enum { BYTES = 300 };
    uint8_t data[BYTES];
    for (uint32_t i = 0; i < BYTES; i++)
        data[i] = (uint8_t)(random_below(8) * random_below(8));
    struct bytes frame = compress(data, BYTES, usual[7]);
    CHECK(features_of(frame.at, frame.count) & USES_FOUR_STREAMS);
    for (size_t first = 0; first < 8 * frame.count; first += DAMAGED_AT_ONCE) {
        gpu_stream streams[DAMAGED_AT_ONCE];
        uint32_t count = 0;
        for (size_t bit = first; bit < 8 * frame.count && count < DAMAGED_AT_ONCE; bit++) {
            uint8_t *copy = malloc(frame.count);
            memcpy(copy, frame.at, frame.count);
            copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
            streams[count++] = stream_of(copy, frame.count, BYTES);
        }
        count_accepted(streams, count, 1, first);
        for (uint32_t i = 0; i < count; i++)
            free((void *)(uintptr_t)streams[i].in);
    }
    free(frame.at);
}

/* The order of threads does not matter. */
static void any_order(void) {
    uint8_t *data = filled(6000, MIXED);
    struct bytes frame = compress(data, 6000, usual[1]);
    for (uint64_t seed = 0; seed < 30; seed++) {
        gpu_stream streams[3];
        for (uint32_t i = 0; i < 3; i++)
            streams[i] = stream_of(frame.at, frame.count, 6000);
        CHECK(count_accepted(streams, 3, (int)(seed % 2), seed) == 3);
    }
    free(frame.at);
    free(data);
}

/* More TIFF blocks than fit the scratch memory at once, of unequal sizes. */
static void many_rounds(void) {
    enum { COUNT = 40 };
    gpu_stream streams[COUNT];
    struct bytes frames[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        size_t bytes = 40000 - 1000 * i + 5;
        uint8_t *data = filled(bytes, (enum kind)(i % KINDS));
        frames[i] = compress(data, bytes, usual[i % USUAL]);
        streams[i] = stream_of(frames[i].at, frames[i].count, bytes);
        free(data);
    }
    CHECK(count_accepted(streams, COUNT, 0, 8) == COUNT);
    CHECK(count_accepted(streams, COUNT, 1, 9) == COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        free(frames[i].at);
}

/* Larger than a window of symbols, with matches from far back; the windows end within TIFF blocks,
 * and within zstd blocks that are not full. */
static void many_windows(void) {
    enum { BYTES = 1300000, COUNT = 3 };
    static const struct options options[] = {{.level = 1},
                                             {.level = 3, .long_distance = true},
                                             {.level = 9, .target = 9000},
                                             {.level = 5, .window_log = 17, .no_size = true}};
    uint8_t *data = filled(BYTES, PLANES);
    fill(data + 300000, 100000, TEXT);
    memcpy(data + 620000, data + 1000, 200000);
    memcpy(data + 1000000, data + 500000, 299000);
    for (uint32_t i = 0; i < sizeof options / sizeof *options; i++) {
        round_trip(data + i, BYTES - i * 1001, &options[i], 1, 1);
        gpu_stream streams[COUNT];
        struct bytes frames[COUNT];
        for (uint32_t k = 0; k < COUNT; k++) {
            size_t bytes = 900000 - 200000 * k - i;
            frames[k] = compress(data + 300000 + i, bytes, options[(i + k) % 4]);
            streams[k] = stream_of(frames[k].at, frames[k].count, bytes);
        }
        frames[1].at[frames[1].count - frames[1].count / 4] ^= 1; /* may or may not be refused */
        CHECK(count_accepted(streams, COUNT, 1, i) >= COUNT - 1);
        CHECK(streams[0].block_status == 0 && streams[2].block_status == 0);
        for (uint32_t k = 0; k < COUNT; k++)
            free(frames[k].at);
    }
    free(data);
}

/* Frames of more zstd blocks than a warp has lanes, one after the other in a TIFF block. Most are
 * raw, because tables of that many blocks would not fit the scratch memory. */
static void frames_of_many_blocks(void) {
    enum { BYTES = 60000, COUNT = 4 };
    static const struct options options[] = {
        {.level = 9, .window_log = 10, .sum = true},
        {.level = 1, .target = 1340},
        {.level = 19, .window_log = 11, .no_size = true, .sum = true},
        {.level = 3, .window_log = 10, .flush = true}};
    uint8_t *data = filled(COUNT * BYTES, DIFFERENCES), *all = malloc(COUNT * (size_t)BYTES * 2);
    for (size_t i = 0; i < COUNT; i++)
        fill(data + i * BYTES + 2000, 48000, NOISE);
    for (uint32_t turn = 0; turn < COUNT; turn++) {
        size_t bytes = 0;
        for (uint32_t i = 0; i < COUNT; i++) {
            struct bytes frame =
                compress(data + i * (size_t)BYTES, BYTES, options[(i + turn) % COUNT]);
            memcpy(all + bytes, frame.at, frame.count);
            bytes += frame.count;
            free(frame.at);
        }
        gpu_stream streams[] = {stream_of(all, bytes, COUNT * BYTES),
                                stream_of(all, bytes, COUNT * BYTES + 1),
                                stream_of(all, bytes, COUNT * BYTES - 1)};
        streams[1].required--;
        CHECK(count_accepted(streams, 3, 1, turn) == 2);
        CHECK(streams[2].block_status == COGPU_GPU_TOO_LONG);
    }
    free(data);
    free(all);
}

TESTS(kernel_zstd_decode) {
    RUN(hand_made_frames);
    RUN(small_sizes);
    RUN(large_sizes);
    RUN(small_windows);
    RUN(long_sequences);
    RUN(repetitions);
    RUN(all_levels);
    RUN(all_features_seen);
    RUN(frames_in_a_row);
    RUN(checksums);
    RUN(truncated);
    RUN(flipped);
    RUN(each_bit_flipped);
    RUN(any_order);
    RUN(many_rounds);
    RUN(many_windows);
    RUN(frames_of_many_blocks);
    cogpu_codec_state_close(&host);
    return FINISH();
}

#else
TESTS(kernel_zstd_decode) {
    return FINISH();
}
#endif
