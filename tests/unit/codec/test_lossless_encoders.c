/*
 * The lossless encoders. Their streams are decoded by reference libraries where the build has them,
 * by plain decoders that are written here for our own formats, and by our decoders.
 */
#include "support/codec_test.h"

#if HAVE_ZLIB
#include <zlib.h>
#endif
#if COGPU_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif
#if COGPU_HAVE_ZSTD
#include <zstd.h>
#endif
#if COGPU_HAVE_LZMA
#include <lzma.h>
#endif

enum { LARGEST = 1 << 20 };

/* ---- what is encoded ---- */

static uint32_t random_state;

static uint32_t random_bits(void) {
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

static void zeros(uint8_t *to, size_t bytes) {
    memset(to, 0, bytes);
}

static void noise(uint8_t *to, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)random_bits();
}

static void few_values(uint8_t *to, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)(random_bits() % 3);
}

static void ramp(uint8_t *to, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)(i + i / 256);
}

/* Runs of 1 to 300, with noise between some of them. */
static void runs(uint8_t *to, size_t bytes) {
    for (size_t i = 0; i < bytes;) {
        const uint8_t value = (uint8_t)random_bits();
        const uint32_t longest = random_bits() % 4 ? 4 : 300;
        for (size_t left = random_bits() % longest + 1; left > 0 && i < bytes; left--)
            to[i++] = value;
    }
}

/* Differences up to `most`, stored as 32-bit integers. */
static void differences(uint8_t *to, size_t bytes, uint32_t most) {
    uint32_t last = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (i % 4 == 0)
            last = random_bits() % most + random_bits() % most - most;
        to[i] = (uint8_t)(last >> 8 * (i % 4));
    }
}

static void heights(uint8_t *to, size_t bytes) {
    differences(to, bytes, 40);
}

static void fine_heights(uint8_t *to, size_t bytes) {
    differences(to, bytes, 400);
}

/* Numbers of 32 bits, of which there are 30000. */
static void known_numbers(uint8_t *to, size_t bytes) {
    uint32_t number = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (i % 4 == 0)
            number = (random_bits() >> 8) % 30000 * 2654435761u;
        to[i] = (uint8_t)(number >> 8 * (i % 4));
    }
}

/* Rows of 256 bytes, each four planes: the last two noise, as predictor 3 writes them. */
static void planes(uint8_t *to, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        const size_t plane = i / 64 % 4;
        to[i] = (uint8_t)(plane == 0   ? 0
                          : plane == 1 ? random_bits() % 3 - 1
                                       : random_bits() >> plane);
    }
}

/* Classes: what is left of long runs in two directions. */
static void patches(uint8_t *to, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        to[i] = i >= 512 && random_bits() % 16 ? to[i - 512]
                : i > 0 && random_bits() % 8   ? to[i - 1]
                                               : (uint8_t)(random_bits() % 12);
}

/* Values of 12 bits in 16, of which next to nothing comes twice: as the lower random bits would. */
static void radiances(uint8_t *to, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        to[i] = i >= 2000 && i % 1000 < 7 ? to[i - 2000]
                                          : (uint8_t)(random_bits() >> 12 & (i % 2 ? 15 : 255));
}

/* Nothing comes twice in reach of a sample, and all of it does in the block. */
static void far_copies(uint8_t *to, size_t bytes) {
    radiances(to, bytes);
    memcpy(to + bytes / 2, to, bytes / 2);
}

/* No two bytes stand after each other twice, so that each is a code of LZW: all pairs of bytes in
 * the order of their lesser one. */
static void no_pair_twice(uint8_t *to, size_t bytes) {
    size_t done = 0;
    for (unsigned low = 0; low < 256; low++)
        for (unsigned high = low; high < 256; high++) {
            if (done < bytes)
                to[done++] = (uint8_t)low;
            if (high > low && done < bytes)
                to[done++] = (uint8_t)high;
        }
    memset(to + done, 0, bytes - done);
}

typedef void fill(uint8_t *to, size_t bytes);
static fill *const kinds[] = {zeros,      noise,        few_values,    ramp,   runs,
                              heights,    fine_heights, known_numbers, planes, radiances,
                              far_copies, patches,      no_pair_twice};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- reference decoders: whether the stream holds these bytes ---- */

typedef bool reference_decoder(const uint8_t *stream, size_t stream_bytes, const uint8_t *expected,
                               size_t bytes, size_t row_bytes);

static bool same(const uint8_t *stream, size_t stream_bytes, const uint8_t *expected, size_t bytes,
                 size_t row_bytes) {
    (void)row_bytes;
    return stream_bytes == bytes && memcmp(stream, expected, bytes) == 0;
}

/* Nothing but whole literals and runs, none of which reaches into the next row. */
static bool packbits_holds(const uint8_t *stream, size_t stream_bytes, const uint8_t *expected,
                           size_t bytes, size_t row_bytes) {
    size_t at = 0, done = 0;
    while (at < stream_bytes) {
        const uint8_t head = stream[at++];
        const bool is_run = head > 128;
        const size_t count = is_run ? 257u - head : head + 1u;
        if (head == 128 || done % row_bytes + count > row_bytes || done + count > bytes ||
            at + (is_run ? 1 : count) > stream_bytes)
            return false;
        for (size_t i = 0; i < count; i++)
            if (stream[is_run ? at : at + i] != expected[done + i])
                return false;
        at += is_run ? 1 : count;
        done += count;
    }
    return done == bytes;
}

/* By the format's rule: after a Clear the k-th code has 9 bits where k < 254 and so on; code 258 +
 * j stands for what code j of the segment gave, and the byte after it. It must be a Clear that
 * comes first and after each full table, and an End with no byte after it that comes last. */
static bool lzw_holds(const uint8_t *stream, size_t stream_bytes, const uint8_t *expected,
                      size_t bytes, size_t row_bytes) {
    static size_t starts[4096];
    size_t bit = 0, done = 0, k = 0;
    bool has_begun = false;
    (void)row_bytes;
    for (;;) {
        const unsigned width = k < 254 ? 9 : k < 766 ? 10 : k < 1790 ? 11 : 12;
        unsigned code = 0;
        if (bit + width > 8 * stream_bytes)
            return false;
        for (unsigned i = 0; i < width; i++, bit++)
            code = code << 1 | (stream[bit / 8] >> (7 - bit % 8) & 1);
        if (code == 257)
            return has_begun && done == bytes && (bit + 7) / 8 == stream_bytes;
        if (code != 256 && (!has_begun || k >= 3836))
            return false;
        has_begun = true;
        if (code == 256) {
            k = 0;
            continue;
        }
        starts[k++] = done;
        if (code > 256 + k)
            return false;
        const size_t from = code < 256 ? done : starts[code - 258];
        const size_t end = code < 256 ? done + 1 : starts[code - 257] + 1;
        if (code < 256 && done < bytes && expected[done] != code)
            return false;
        for (size_t i = from; i < end; i++)
            if (done == bytes || expected[done++] != expected[i])
                return false;
    }
}

#if HAVE_ZLIB
static bool zlib_holds(const uint8_t *stream, size_t stream_bytes, const uint8_t *expected,
                       size_t bytes, size_t row_bytes) {
    static uint8_t out[LARGEST + 1];
    uLongf got = sizeof out;
    uLong taken = stream_bytes;
    (void)row_bytes;
    return uncompress2(out, &got, stream, &taken) == Z_OK && taken == stream_bytes &&
           got == bytes && memcmp(out, expected, bytes) == 0;
}
#else
#define zlib_holds NULL
#endif

#if COGPU_HAVE_ZSTD
static bool zstd_holds(const uint8_t *stream, size_t stream_bytes, const uint8_t *expected,
                       size_t bytes, size_t row_bytes) {
    static uint8_t out[LARGEST + 1];
    (void)row_bytes;
    return ZSTD_getFrameContentSize(stream, stream_bytes) == bytes &&
           ZSTD_findFrameCompressedSize(stream, stream_bytes) == stream_bytes &&
           ZSTD_decompress(out, sizeof out, stream, stream_bytes) == bytes &&
           memcmp(out, expected, bytes) == 0;
}
#else
#define zstd_holds NULL
#endif

#if COGPU_HAVE_LZMA
static bool lzma_holds(const uint8_t *stream, size_t stream_bytes, const uint8_t *expected,
                       size_t bytes, size_t row_bytes) {
    static uint8_t out[LARGEST + 1];
    uint64_t memory = 64 << 20;
    size_t taken = 0, got = 0;
    (void)row_bytes;
    return lzma_stream_buffer_decode(&memory, 0, NULL, stream, &taken, stream_bytes, out, &got,
                                     sizeof out) == LZMA_OK &&
           taken == stream_bytes && got == bytes && memcmp(out, expected, bytes) == 0;
}
#else
#define lzma_holds NULL
#endif

typedef struct subject {
    uint32_t compression;
    reference_decoder *holds; /* NULL: the build has none */
} subject;

static const subject subjects[] = {
    {COMPRESSION_NONE, same},       {COMPRESSION_PACKBITS, packbits_holds},
    {COMPRESSION_LZW, lzw_holds},   {COMPRESSION_DEFLATE, zlib_holds},
    {COMPRESSION_ZSTD, zstd_holds}, {COMPRESSION_LZMA, lzma_holds},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

static const cogpu_codec_row *row_of(const subject *s) {
    return cogpu_codec_find(s->compression);
}

static const cogpu_encoder *encoder_of(const subject *s) {
    return cogpu_codec_find(s->compression)->encoder;
}

static const subject *subject_of(uint32_t compression) {
    const subject *s = subjects;
    while (s->compression != compression)
        s++;
    return s;
}

/* ---- encoding ---- */

typedef struct encoded {
    cogpu_status status;
    uint8_t *out; /* of the caller, to free; of as many bytes as the bound says */
    size_t got, bound;
} encoded;

static encoded encode_with(cogpu_codec_state *state, const cogpu_encoder *encoder,
                           const cogpu_encoding *encoding, const uint8_t *in, size_t in_bytes) {
    const size_t bound = (size_t)encoder->bound(encoding, in_bytes);
    encoded result = {.out = malloc(bound ? bound : 1), .bound = bound};
    uint8_t *copy = malloc(in_bytes ? in_bytes : 1);
    cogpu_error error;
    memcpy(copy, in, in_bytes);
    result.status =
        encoder->encode(state, encoding, copy, in_bytes, result.out, bound, &result.got, &error);
    free(copy);
    return result;
}

/* A state that was used for all that came before gives what a fresh one does. */
static bool fresh_state_agrees(const encoded *used, const cogpu_encoder *encoder,
                               const cogpu_encoding *encoding, const uint8_t *in, size_t in_bytes) {
    cogpu_codec_state state = {0};
    encoded fresh = encode_with(&state, encoder, encoding, in, in_bytes);
    bool agrees = fresh.status == COGPU_OK && fresh.got == used->got &&
                  memcmp(fresh.out, used->out, used->got) == 0;
    free(fresh.out);
    cogpu_codec_state_close(&state);
    return agrees;
}

static bool decoder_gives(cogpu_decode *codec, const uint8_t *stream, size_t stream_bytes,
                          const uint8_t *expected, size_t bytes) {
    const cogpu_block_format format = {0};
    if (bytes < 10000) /* by parts too */
        return decodes_to(codec, stream, stream_bytes, expected, bytes, bytes);
    uint8_t *out = malloc(bytes);
    size_t got;
    cogpu_error error;
    bool gives =
        codec(&codec_state, &format, stream, stream_bytes, out, bytes, &got, &error) == COGPU_OK &&
        got == bytes && memcmp(out, expected, bytes) == 0;
    free(out);
    return gives;
}

/* Returns the bytes of the stream. */
static size_t check_block(const subject *s, int level, const uint8_t *in, size_t bytes,
                          size_t row_bytes) {
    const cogpu_encoder *encoder = encoder_of(s);
    const cogpu_encoding encoding = {
        .format = {.row_bytes = row_bytes, .height = (uint32_t)(bytes / row_bytes)},
        .level = level};
    encoded result = encode_with(&codec_state, encoder, &encoding, in, bytes);
    CHECK(result.status == COGPU_OK);
    CHECK(result.got <= result.bound);
    CHECK(!s->holds || s->holds(result.out, result.got, in, bytes, row_bytes));
    CHECK(
        decoder_gives(cogpu_codec_find(s->compression)->decode, result.out, result.got, in, bytes));
    CHECK(fresh_state_agrees(&result, encoder, &encoding, in, bytes));
    free(result.out);
    return result.got;
}

static uint8_t raw[LARGEST];

/* By each codec, at its usual level. */
static void check_all(fill *kind, size_t bytes, size_t row_bytes) {
    kind(raw, bytes);
    for (const subject *s = subjects; s < subjects + SUBJECTS; s++)
        if (encoder_of(s))
            check_block(s, row_of(s)->default_level, raw, bytes, row_bytes);
}

static void every_kind_and_size(void) {
    const size_t sizes[] = {1, 2, 3, 4, 5, 8, 100, 127, 128, 129, 255, 256, 257, 4093, 70000};
    for (size_t i = 0; i < KINDS * sizeof sizes / sizeof *sizes; i++)
        check_all(kinds[i % KINDS], sizes[i / KINDS], sizes[i / KINDS]);
}

static void large_blocks(void) {
    for (size_t kind = 0; kind < KINDS; kind++) {
        kinds[kind](raw, LARGEST);
        for (const subject *s = subjects; s < subjects + SUBJECTS; s++)
            if (encoder_of(s) && s->compression != COMPRESSION_LZMA) /* which takes long */
                check_block(s, row_of(s)->default_level, raw, LARGEST, 2048);
    }
}

/* The level changes with each block. */
static void every_level(void) {
    for (const subject *s = subjects; s < subjects + SUBJECTS; s++) {
        const int levels = encoder_of(s) ? row_of(s)->max_level : 0;
        for (int i = 0; i < 2 * levels; i++) {
            kinds[i % KINDS](raw, 30000);
            check_block(s, i < levels ? i + 1 : 2 * levels - i, raw, 30000, 300);
        }
    }
}

static void ranges_of_levels(void) {
    const int ranges[SUBJECTS][3] = {{0, 0, 0},  {0, 0, 0},  {0, 0, 0},
                                     {1, 12, 6}, {1, 22, 9}, {1, 9, 6}};
    for (size_t i = 0; i < SUBJECTS; i++) {
        const cogpu_codec_row *row = row_of(&subjects[i]);
        CHECK(row->min_level == ranges[i][0] && row->max_level == ranges[i][1] &&
              row->default_level == ranges[i][2]);
        CHECK((row->encoder != NULL) == (row->decode != NULL));
    }
}

/* What can be made smaller becomes so; PackBits knows runs alone. */
static void sizes(void) {
    for (const subject *s = subjects + 1; s < subjects + SUBJECTS; s++) {
        if (!encoder_of(s))
            continue;
        zeros(raw, 200000);
        CHECK(check_block(s, row_of(s)->default_level, raw, 200000, 1000) < 4000);
        heights(raw, 200000);
        CHECK(check_block(s, row_of(s)->default_level, raw, 200000, 1000) < 100000 ||
              s->compression == COMPRESSION_PACKBITS);
    }
}

/* Our own encoder replaces the requested level only if it compresses nearly as well. */
static void deflate_keeps_its_level(void) {
#if COGPU_HAVE_LIBDEFLATE
    for (size_t i = 0; i < KINDS; i++) {
        struct libdeflate_compressor *other = libdeflate_alloc_compressor(6);
        const size_t capacity = libdeflate_zlib_compress_bound(other, LARGEST);
        uint8_t *out = malloc(capacity);
        kinds[i](raw, LARGEST);
        const size_t bytes = libdeflate_zlib_compress(other, raw, LARGEST, out, capacity);
        CHECK(check_block(subject_of(COMPRESSION_DEFLATE), 6, raw, LARGEST, 1024) <=
              bytes + bytes / 80);
        libdeflate_free_compressor(other);
        free(out);
    }
#endif
}

#if COGPU_HAVE_ZSTD
static uint8_t theirs[LARGEST + LARGEST / 8];

static size_t by_zstd(int level, size_t bytes) {
    return ZSTD_compress(theirs, sizeof theirs, raw, bytes, level);
}

/* So it is with zstd, */
static void zstd_keeps_its_level(void) {
    const subject *zstd = subject_of(COMPRESSION_ZSTD);
    for (size_t i = 0; i < 2 * KINDS; i++) {
        const size_t block = i < KINDS ? 200000 : LARGEST;
        kinds[i % KINDS](raw, block);
        const size_t bytes = by_zstd(9, block);
        CHECK(check_block(zstd, 9, raw, block, 1000) <= bytes + bytes / 32);
    }
}

static bool becomes_that_of(int level, int asked, size_t block) {
    const cogpu_encoding encoding = {.level = asked};
    encoded ours = encode_with(&codec_state, &cogpu_encoder_zstd, &encoding, raw, block);
    const bool is_same = ours.got == by_zstd(level, block) && !memcmp(theirs, ours.out, ours.got);
    free(ours.out);
    return is_same;
}

/* which searches for matches if there are some, as the level says; not in small blocks, nor at
 * other levels, */
static void zstd_looks_for_matches(void) {
    radiances(raw, LARGEST);
    CHECK(becomes_that_of(1, 9, LARGEST) && !becomes_that_of(9, 9, LARGEST));
    CHECK(becomes_that_of(1, 8, LARGEST));
    CHECK(becomes_that_of(7, 7, LARGEST) && becomes_that_of(10, 10, LARGEST));
    CHECK(becomes_that_of(9, 9, 100000) && !becomes_that_of(1, 9, 100000));
    memset(raw + 1000, 0, LARGEST / 4);
    CHECK(becomes_that_of(1, 9, LARGEST));
    far_copies(raw, LARGEST);
    CHECK(!becomes_that_of(1, 9, LARGEST));
    heights(raw, LARGEST);
    CHECK(!becomes_that_of(1, 9, LARGEST) && !becomes_that_of(9, 9, LARGEST));
}

/* and takes half of the memory that it would by itself. */
static void zstd_memory(void) {
    const cogpu_encoding encoding = {.level = 9};
    for (size_t i = 0; i < KINDS; i++) {
        cogpu_codec_state state = {0};
        kinds[i](raw, LARGEST);
        free(encode_with(&state, &cogpu_encoder_zstd, &encoding, raw, LARGEST).out);
        CHECK(ZSTD_sizeof_CCtx(state.zstd_encoder) < 6 << 20);
        cogpu_codec_state_close(&state);
    }
}
#endif

static void nothing(void) {
    for (const subject *s = subjects; s < subjects + SUBJECTS; s++)
        if (encoder_of(s))
            check_block(s, row_of(s)->default_level, raw, 0, 1);
}

static void packbits_rows(void) {
    runs(raw, 30000);
    for (size_t row_bytes = 1; row_bytes < 300; row_bytes++)
        check_block(subject_of(COMPRESSION_PACKBITS), 0, raw, 30000 / row_bytes * row_bytes,
                    row_bytes);
}

/* Pairs in noise, a run of three just before a literal is full, a run one longer than the longest:
 * where the bound would be passed first. */
static void packbits_bound(void) {
    for (size_t period = 1; period <= 260; period++) {
        ramp(raw, 2600);
        for (size_t i = period; i + 3 < 2600; i += period)
            memset(raw + i, 7, period % 2 ? 2 : 3);
        check_block(subject_of(COMPRESSION_PACKBITS), 0, raw, 2600, 1300);
        memset(raw + 100, 9, period);
        check_block(subject_of(COMPRESSION_PACKBITS), 0, raw, 2600, 2600);
    }
}

/* The stream ends at each code of a table, and just before and after each Clear. */
static void lzw_ends_anywhere(void) {
    no_pair_twice(raw, LARGEST);
    for (size_t bytes = 1; bytes < 8000; bytes += bytes % 256 < 8 || bytes > 7600 ? 1 : 13)
        check_block(subject_of(COMPRESSION_LZW), 0, raw, bytes, bytes);
    for (size_t bytes = 3820; bytes < 3850; bytes++)
        check_block(subject_of(COMPRESSION_LZW), 0, raw, bytes, bytes);
}

/* More Clears than a pair of bytes can tell apart: what one generation knew, the sixteenth after it
 * must not. */
static void lzw_generations(void) {
    for (size_t i = 0; i < LARGEST; i++)
        raw[i] = (uint8_t)(i / 3836 % 16 == 0 ? i * 7 : i * 7 + i / 256 * 11);
    check_block(subject_of(COMPRESSION_LZW), 0, raw, LARGEST, 1024);
}

TESTS(lossless_encoders) {
    RUN(every_kind_and_size);
    RUN(large_blocks);
    RUN(every_level);
    RUN(ranges_of_levels);
    RUN(sizes);
    RUN(deflate_keeps_its_level);
#if COGPU_HAVE_ZSTD
    RUN(zstd_keeps_its_level);
    RUN(zstd_looks_for_matches);
    RUN(zstd_memory);
#endif
    RUN(nothing);
    RUN(packbits_rows);
    RUN(packbits_bound);
    RUN(lzw_ends_anywhere);
    RUN(lzw_generations);
    cogpu_codec_state_close(&codec_state);
    return FINISH();
}
