/*
 * A block for which the memory of a library ends, while it is decoded or encoded: the n-th
 * allocation fails, for every n until none does, alone or with all that follow. That is told as a
 * lack of memory, and never as damage, which `fill_bad_blocks` would fill; or it does not matter.
 */
#include "cogpu.h"

#include "codec/codec.h"
#include "faults/library_faults.h"
#include "support/test.h"

#include <sys/wait.h>
#include <unistd.h>

enum { WIDTH = 41, HEIGHT = 35, BYTES_MAX = WIDTH * HEIGHT * 8, FAULTS_MAX = 20000 };

typedef struct block_kind {
    uint32_t compression, samples, lerc_packing, photometric;
    cogpu_type type;
    bool lossless, has_nan;
    double max_error;
    bool has_nodata;
} block_kind;

static const block_kind kinds[] = {
    {.compression = COMPRESSION_DEFLATE, .samples = 1, .type = COGPU_TYPE_F32},
    {.compression = COMPRESSION_ZSTD, .samples = 1, .type = COGPU_TYPE_F32},
    {.compression = COMPRESSION_LZMA, .samples = 1, .type = COGPU_TYPE_F32},
    {.compression = COMPRESSION_LZW, .samples = 1, .type = COGPU_TYPE_F32},
    {.compression = COMPRESSION_JPEG, .samples = 1, .type = COGPU_TYPE_U8, .photometric = 1},
    {.compression = COMPRESSION_JPEG, .samples = 3, .type = COGPU_TYPE_U8, .photometric = 6},
    {.compression = COMPRESSION_WEBP, .samples = 3, .type = COGPU_TYPE_U8},
    {.compression = COMPRESSION_WEBP, .samples = 4, .type = COGPU_TYPE_U8},
    {.compression = COMPRESSION_WEBP, .samples = 4, .type = COGPU_TYPE_U8, .lossless = true},
    {.compression = COMPRESSION_LERC, .samples = 1, .type = COGPU_TYPE_U8},
    {.compression = COMPRESSION_LERC, .samples = 3, .type = COGPU_TYPE_U16, .lerc_packing = 1},
    {.compression = COMPRESSION_LERC, .samples = 1, .type = COGPU_TYPE_F32, .has_nan = true},
    {.compression = COMPRESSION_LERC,
     .samples = 2,
     .type = COGPU_TYPE_F32,
     .has_nan = true,
     .max_error = 0.1},
    {.compression = COMPRESSION_LERC,
     .samples = 1,
     .type = COGPU_TYPE_F32,
     .max_error = 0.1,
     .has_nodata = true,
     .lerc_packing = 2},
    {.compression = COMPRESSION_LERC, .samples = 1, .type = COGPU_TYPE_F64, .max_error = 0.01},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- a block of the kind ---- */

static const float nodata = 3;
static uint8_t raw[BYTES_MAX];
static cogpu_encoding encoding;
static const cogpu_codec_row *row;

static double sample_at(const block_kind *kind, uint32_t i) {
    if (kind->has_nan && i / 13 % 3 == 0)
        return (double)__builtin_nanf("");
    return kind->has_nodata && i % 50 == 0 ? (double)nodata : 100 + (i * i >> 9) % 97;
}

static void set_up(const block_kind *kind) {
    size_t size = cogpu_type_bytes(kind->type);
    encoding = (cogpu_encoding){.format = {.width = WIDTH,
                                           .height = HEIGHT,
                                           .samples = kind->samples,
                                           .bits = (uint32_t)(8 * size),
                                           .type = kind->type,
                                           .row_bytes = WIDTH * kind->samples * size,
                                           .compression = kind->compression,
                                           .photometric = kind->photometric,
                                           .subsampling_x = 1,
                                           .subsampling_y = 1,
                                           .lerc_packing = kind->lerc_packing},
                                .quality = 80,
                                .lossless = kind->lossless,
                                .max_error = kind->max_error,
                                .nodata = kind->has_nodata ? (const uint8_t *)&nodata : NULL};
    for (uint32_t i = 0; i < WIDTH * HEIGHT * kind->samples; i++) {
        double value = sample_at(kind, i);
        const float single = (float)value;
        const uint16_t half = (uint16_t)(kind->has_nan ? 0 : value);
        memcpy(raw + i * size,
               kind->type == COGPU_TYPE_F64   ? (const void *)&value
               : kind->type == COGPU_TYPE_F32 ? (const void *)&single
                                              : (const void *)&half,
               size);
    }
    row = cogpu_codec_find(kind->compression);
    if (row->encoder)
        encoding.level = row->default_level;
}

/* ---- what is tried ---- */

static uint8_t stream[2 * BYTES_MAX], out[2 * BYTES_MAX], expected[2 * BYTES_MAX];
static size_t stream_bytes;
static cogpu_codec_tag tables;

static size_t block_bytes(void) {
    return encoding.format.height * encoding.format.row_bytes;
}

static cogpu_status encode(size_t *got, cogpu_error *error) {
    cogpu_codec_state state = {0};
    cogpu_status status =
        row->encoder->encode(&state, &encoding, raw, block_bytes(), out, sizeof out, got, error);
    cogpu_codec_state_close(&state);
    return status;
}

static cogpu_status decode_whole(size_t *got, cogpu_error *error) {
    cogpu_codec_state state = {0};
    cogpu_status status =
        row->decode(&state, &encoding.format, stream, stream_bytes, out, block_bytes(), got, error);
    cogpu_codec_state_close(&state);
    return status;
}

/* A smaller block, of a stream that is longer than it. */
static cogpu_status decode_start(size_t *got, cogpu_error *error) {
    cogpu_codec_state state = {0};
    cogpu_status status = row->decode(&state, &encoding.format, stream, stream_bytes, out,
                                      block_bytes() / 2, got, error);
    cogpu_codec_state_close(&state);
    return status;
}

static cogpu_status decode_parts(size_t *got, cogpu_error *error) {
    const size_t bytes = block_bytes(), part = 10 * encoding.format.row_bytes;
    cogpu_feed feed = {.at = stream, .bytes = stream_bytes};
    cogpu_stream_decoder parts = {.format = &encoding.format, .feed = &feed, .block_bytes = bytes};
    cogpu_status status = COGPU_OK;
    size_t last = 1;
    for (*got = 0; status == COGPU_OK && last > 0 && *got < bytes; *got += last)
        status = row->stream->decode(&parts, out + *got, bytes - *got < part ? bytes - *got : part,
                                     &last, error);
    row->stream->close(&parts);
    return status;
}

typedef cogpu_status try_block(size_t *got, cogpu_error *error);

/* Returns whether some allocation failed. */
static bool try_fault(try_block *attempt, long n, size_t bytes) {
    size_t got = 0;
    cogpu_error error = {0};
    atomic_store(&live_allocations, 0);
    arm_fault(ALLOCATION, n);
    cogpu_status status = attempt(&got, &error);
    bool has_failed = atomic_load(&faults_fired) > 0;
    arm_fault(NO_FAULT, 0);
    bool is_right = status == COGPU_OK && got == bytes && memcmp(out, expected, bytes) == 0;
    if (!is_right && status != COGPU_OUT_OF_MEMORY)
        printf("%s, allocation %ld: %s, %s\n", row->name, n, cogpu_status_name(status),
               error.message);
    CHECK(is_right || (has_failed && status == COGPU_OUT_OF_MEMORY && error.message[0]));
    CHECK(atomic_load(&live_allocations) == 0);
    return has_failed;
}

/* libwebp (1.2.4) crashes where the memory of its Huffman tables is refused: so there each attempt
 * has a process of its own. */
static bool try_in_child(try_block *attempt, long n, size_t bytes, long *crashes) {
    enum { FAILED = 1, BROKEN = 2 };
    fflush(stdout);
    pid_t child = fork();
    int result = 0;
    if (child == 0) {
        CHECK(freopen("/dev/null", "w", stderr) != NULL);
        test_broken = 0;
        bool has_failed = try_fault(attempt, n, bytes);
        fflush(stdout);
        _exit((has_failed ? FAILED : 0) + (test_broken ? BROKEN : 0));
    }
    CHECK(child > 0 && waitpid(child, &result, 0) == child);
    bool has_crashed = !WIFEXITED(result) || WEXITSTATUS(result) > FAILED + BROKEN;
    *crashes += has_crashed;
    CHECK(has_crashed || !(WEXITSTATUS(result) & BROKEN));
    return has_crashed || WEXITSTATUS(result) & FAILED;
}

static void try_faults(try_block *attempt) {
    size_t bytes = 0;
    cogpu_error error;
    CHECK(attempt(&bytes, &error) == COGPU_OK);
    memcpy(expected, out, bytes);
    for (int for_good = 0; for_good < 2; for_good++) {
        bool apart = row->compression == COMPRESSION_WEBP;
        long n = 1, crashes = 0;
        fails_for_good = for_good;
        while (n < FAULTS_MAX &&
               (apart ? try_in_child(attempt, n, bytes, &crashes) : try_fault(attempt, n, bytes)))
            n += apart && for_good && !is_deep_run() ? 3 : 1; /* a process takes long */
        CHECK(n < FAULTS_MAX && crashes <= 1 + n / 8);
    }
}

static void try_kind(const block_kind *kind) {
    cogpu_error error;
    set_up(kind);
    if (!row->encoder)
        return;
    if (kind->compression == COMPRESSION_JPEG) {
        CHECK(row->encoder->make_tag(&encoding, &tables, &error) == COGPU_OK);
        encoding.format.jpeg_tables = tables.values;
        encoding.format.jpeg_table_bytes = tables.count;
    }
    try_faults(encode);
    CHECK(encode(&stream_bytes, &error) == COGPU_OK);
    memcpy(stream, out, stream_bytes);
    try_faults(decode_whole);
    if (row->stream)
        try_faults(decode_parts);
    if (row->stream && row->stream->ends_itself)
        try_faults(decode_start);
}

/* ---- a file of such blocks ---- */

static cogpu_memory file_bytes = COGPU_MEMORY_INIT;
static uint8_t pixels[4 * BYTES_MAX];

/* Read with `fill_bad_blocks`: no block for which memory ends is filled. */
static cogpu_status read_filling(size_t *got, cogpu_error *error) {
    cogpu_file *file = NULL;
    cogpu_result result = COGPU_RESULT_INIT;
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .data = out,
                           .type = COGPU_TYPE_F32,
                           .bands = 1,
                           .width = WIDTH,
                           .height = HEIGHT};
    const cogpu_request request = {
        .struct_size = sizeof(cogpu_request), .fill_bad_blocks = 1, .threads = 1};
    cogpu_status status = cogpu_open_memory(file_bytes.data, file_bytes.bytes, NULL, &file, error);
    if (status == COGPU_OK)
        status = cogpu_read(file, &request, &raster, &result, error);
    CHECK(result.bad_blocks == 0);
    cogpu_close(file);
    *got = WIDTH * HEIGHT * sizeof(float);
    return status;
}

static void nothing_is_filled(void) {
    static const char *const codecs[] = {"deflate", "zstd", "lzma", "lerc", "lerc_zstd"};
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
        cogpu_error error;
        const cogpu_profile profile = {.struct_size = sizeof(cogpu_profile),
                                       .type = COGPU_TYPE_F32,
                                       .bands = 1,
                                       .width = WIDTH,
                                       .height = HEIGHT,
                                       .strips = 1,
                                       .block_height = 16,
                                       .codec = codecs[i]};
        for (uint32_t k = 0; k < WIDTH * HEIGHT; k++)
            ((float *)(void *)pixels)[k] = (float)(k % 97);
        const cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                                     .data = pixels,
                                     .type = COGPU_TYPE_F32,
                                     .bands = 1,
                                     .width = WIDTH,
                                     .height = HEIGHT};
        cogpu_status status =
            cogpu_write(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &file_bytes},
                        &profile, &raster, NULL, NULL, &error);
        CHECK(status == COGPU_OK || status == COGPU_UNSUPPORTED); /* by this build */
        row = cogpu_codec_named(codecs[i]) ? cogpu_codec_named(codecs[i]) : row;
        if (status == COGPU_OK)
            try_faults(read_filling);
        cogpu_memory_free(&file_bytes);
    }
}

/* LERC itself leaks the nodes of its Huffman trees where it throws. */
const char *__lsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void) {
    return "leak:LercNS::Huffman\n";
}

#define KIND_TEST(name, number)                                                                    \
    static void name(void) {                                                                       \
        for (int i = 0; i < KINDS; i++)                                                            \
            if (kinds[i].compression == (number))                                                  \
                try_kind(&kinds[i]);                                                               \
    }

KIND_TEST(deflate, COMPRESSION_DEFLATE)
KIND_TEST(zstd, COMPRESSION_ZSTD)
KIND_TEST(lzma, COMPRESSION_LZMA)
KIND_TEST(lzw, COMPRESSION_LZW)
KIND_TEST(jpeg, COMPRESSION_JPEG)
KIND_TEST(webp, COMPRESSION_WEBP)
KIND_TEST(lerc, COMPRESSION_LERC)

TESTS(library_faults) {
    reset_faults();
    turn_library_faults_on();
    RUN(deflate);
    RUN(zstd);
    RUN(lzma);
    RUN(lzw);
    RUN(jpeg);
    RUN(webp);
    RUN(lerc);
    RUN(nothing_is_filled);
    turn_library_faults_off();
    return FINISH();
}
