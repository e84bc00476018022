/*
 * One block decoded by several threads, in chunks that are much smaller than usual: the pixels are
 * those that were written, with any number of threads, sizes of chunks, windows and sources; a
 * stream that is damaged anywhere is never decoded, nor is one without memory.
 */
#include "base/bytes.h"
#include "cogpu.h"
#include "read/chunks.h"
#include "support/test.h"
#include "support/tiff_builder.h"

#if COGPU_HAVE_LIBDEFLATE
#include <libdeflate.h>
#include <unistd.h>

enum { WIDTH = 500, HEIGHT = 900, ROW_BYTES = 2 * WIDTH, STRIP_BYTES = ROW_BYTES * HEIGHT };

static uint16_t pixels[WIDTH * HEIGHT], got[WIDTH * HEIGHT];
static uint8_t stream[2 * STRIP_BYTES];
static size_t stream_bytes;
static tiff_builder built;
static cogpu_file *file;
static cogpu_pool *pool;
static char path[] = "/tmp/cogpu-chunks-XXXXXX";

/* ---- files ---- */

static void fill_pixels(unsigned noise) {
    uint32_t state = 9;
    for (size_t i = 0; i < WIDTH * HEIGHT; i++) {
        state = state * 1664525 + 1013904223;
        pixels[i] = (uint16_t)(i % WIDTH + i / WIDTH * 3 + (state >> 16) % noise);
    }
}

/* The differences of predictor 2. */
static void compress_strip(int level, bool has_predictor) {
    static uint16_t rows[WIDTH * HEIGHT];
    for (size_t i = 0; i < WIDTH * HEIGHT; i++)
        rows[i] = (uint16_t)(pixels[i] - (has_predictor && i % WIDTH ? pixels[i - 1] : 0));
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(level);
    stream_bytes = libdeflate_zlib_compress(compressor, rows, STRIP_BYTES, stream, sizeof stream);
    libdeflate_free_compressor(compressor);
}

/* One strip of the stream. */
static void open_strip(bool has_predictor, bool in_memory) {
    build_open(&built, COGPU_HOST_BIG_ENDIAN, false);
    const uint32_t offset = (uint32_t)build_data(&built, stream, stream_bytes);
    build_long(&built, 256, WIDTH);
    build_long(&built, 257, HEIGHT);
    build_short(&built, 258, 16);
    build_short(&built, 259, 8);
    build_short(&built, 262, 1);
    build_long(&built, 273, offset);
    build_short(&built, 277, 1);
    build_long(&built, 278, HEIGHT);
    build_long(&built, 279, (uint32_t)stream_bytes);
    build_short(&built, 317, has_predictor ? 2 : 1);
    build_directory(&built, true);
    file = NULL;
    if (in_memory) {
        CHECK(cogpu_open_memory(built.bytes, built.size, NULL, &file, NULL) == COGPU_OK);
        return;
    }
    FILE *out = fopen(path, "wb");
    CHECK(out && fwrite(built.bytes, 1, built.size, out) == built.size && fclose(out) == 0);
    CHECK(cogpu_open(path, NULL, &file, NULL) == COGPU_OK);
}

static void close_strip(void) {
    cogpu_close(file);
    build_close(&built);
}

/* ---- reads ---- */

static const cogpu_chunk_sizes usual = {
    .chunk_bytes = 40000, .segment_bytes = 16384, .bytes = 20000, .symbols = 60000};

/* The block and the raster of rows y .. y+height-1, which go into `got`. */
struct rows {
    cogpu_read_plan plan;
    cogpu_block block;
    cogpu_span span;
    cogpu_raster raster;
};

static struct rows plan_rows(uint32_t y, uint32_t height) {
    const cogpu_pyramid *pyramid;
    struct rows rows = {.raster = {.struct_size = sizeof rows.raster,
                                   .data = got,
                                   .type = COGPU_TYPE_U16,
                                   .bands = 1,
                                   .width = WIDTH,
                                   .height = height,
                                   .stride_x = 2,
                                   .stride_y = ROW_BYTES,
                                   .stride_band = STRIP_BYTES}};
    CHECK(cogpu_file_pyramid(file, 0, &pyramid, NULL) == COGPU_OK);
    const cogpu_storage *storage = &pyramid->levels[0].storage;
    cogpu_plan_read(storage, 0, y, WIDTH, height, NULL, 0, &rows.plan);
    rows.block = cogpu_plan_block(&rows.plan, 0);
    CHECK(cogpu_storage_locate(storage, 0, 1, &rows.span, NULL) == COGPU_OK);
    memset(got, 0xA5, sizeof got);
    return rows;
}

static bool decode_rows(uint32_t threads, const cogpu_chunk_sizes *sizes, uint32_t y,
                        uint32_t height) {
    const struct rows rows = plan_rows(y, height);
    const cogpu_chunk_task task = {.plan = &rows.plan,
                                   .block = &rows.block,
                                   .raster = &rows.raster,
                                   .span = rows.span,
                                   .pool = pool,
                                   .threads = threads,
                                   .sizes = *sizes};
    uint64_t read = 0;
    return cogpu_chunks_decode(&task, &read);
}

/* By one thread, as a stream. */
static bool decode_as_stream(void) {
    const struct rows rows = plan_rows(0, HEIGHT);
    cogpu_worker worker = {0};
    bool needs_whole;
    uint64_t read = 0;
    const cogpu_status status = cogpu_cpu_stream(&worker, &rows.plan, &rows.block, rows.span,
                                                 &rows.raster, NULL, &needs_whole, &read, NULL);
    cogpu_worker_close(&worker);
    return status == COGPU_OK;
}

static bool rows_are_right(uint32_t threads, const cogpu_chunk_sizes *sizes, uint32_t y,
                           uint32_t height) {
    return decode_rows(threads, sizes, y, height) &&
           memcmp(got, pixels + y * WIDTH, height * ROW_BYTES) == 0;
}

static void threads_and_sizes(void) {
    static const uint32_t threads[] = {1, 2, 3, 5};
    for (int in_memory = 0; in_memory < 2; in_memory++)
        for (int has_predictor = 0; has_predictor < 2; has_predictor++) {
            fill_pixels(has_predictor ? 20 : 9);
            compress_strip(has_predictor ? 6 : 1, has_predictor);
            open_strip(has_predictor, in_memory);
            for (int i = 0; i < 4; i++)
                for (uint64_t chunk = 3000; chunk < 2 * stream_bytes; chunk = chunk * 5 / 2) {
                    cogpu_chunk_sizes sizes = usual;
                    sizes.chunk_bytes = chunk;
                    sizes.bytes = chunk / 2;
                    sizes.symbols = chunk;
                    CHECK(rows_are_right(threads[i], &sizes, 0, HEIGHT));
                }
            close_strip();
        }
}

static void windows(void) {
    fill_pixels(30);
    compress_strip(6, true);
    open_strip(true, false);
    for (uint32_t y = 0; y < HEIGHT; y += 1 + y)
        for (uint32_t height = 1; y + height <= HEIGHT; height *= 5)
            CHECK(rows_are_right(3, &usual, y, height));
    CHECK(rows_are_right(3, &usual, 100, HEIGHT - 100));
    close_strip();
}

/* Blocks of one kind, or of which the search knows none: stored, noise, much from little. */
static void odd_streams(void) {
    static const struct {
        int level;
        unsigned noise;
    } cases[] = {{0, 9}, {9, 65536}, {12, 1}, {1, 2}};
    for (int i = 0; i < 4; i++) {
        fill_pixels(cases[i].noise);
        compress_strip(cases[i].level, true);
        open_strip(true, false);
        for (uint32_t threads = 1; threads < 5; threads++)
            CHECK(rows_are_right(threads, &usual, 0, HEIGHT));
        close_strip();
    }
}

/* A valid block start at a wrong place: a stored block that holds a deflate stream. */
static void false_starts(void) {
    static uint8_t inner[2 * STRIP_BYTES];
    fill_pixels(20);
    compress_strip(6, false);
    const size_t inner_bytes = stream_bytes < STRIP_BYTES ? stream_bytes : STRIP_BYTES;
    memcpy(inner, stream, inner_bytes);
    memcpy(pixels, inner, inner_bytes);
    compress_strip(0, false);
    open_strip(false, false);
    for (uint32_t threads = 1; threads < 5; threads++)
        CHECK(rows_are_right(threads, &usual, 0, HEIGHT));
    close_strip();
}

/* ---- damage ---- */

/* What is decoded, one thread decodes to the same. */
static void flipped(void) {
    static uint16_t expected[WIDTH * HEIGHT];
    fill_pixels(20);
    compress_strip(6, false);
    const size_t step = is_deep_run() ? 1013 : 90001;
    size_t accepted = 0;
    for (size_t bit = 0; bit < stream_bytes * 8; bit += step) {
        stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
        open_strip(false, bit % 2);
        const bool is_valid = decode_as_stream();
        memcpy(expected, got, sizeof got);
        if (decode_rows(1 + bit % 4, &usual, 0, HEIGHT)) {
            CHECK(is_valid && memcmp(expected, got, sizeof got) == 0);
            accepted++;
        } else {
            CHECK(!is_valid);
        }
        close_strip();
        stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    CHECK(accepted > 0); /* a stream became longer than the block */
}

static void truncated(void) {
    fill_pixels(20);
    compress_strip(6, false);
    const size_t whole = stream_bytes;
    for (stream_bytes = 6; stream_bytes < whole; stream_bytes += is_deep_run() ? 997 : 60013) {
        open_strip(false, stream_bytes % 2);
        CHECK(!decode_rows(1 + stream_bytes % 4, &usual, 0, HEIGHT));
        close_strip();
    }
}

static void wrong_sums_and_headers(void) {
    fill_pixels(20);
    compress_strip(6, false);
    stream[stream_bytes - 1] ^= 1;
    open_strip(false, true);
    CHECK(!decode_rows(3, &usual, 0, HEIGHT));
    CHECK(rows_are_right(3, &usual, 0, HEIGHT - 1)); /* the end is not needed */
    close_strip();
    stream[stream_bytes - 1] ^= 1;
    stream[0] = 0x68; /* a smaller window: not decided here */
    open_strip(false, true);
    CHECK(!decode_rows(3, &usual, 0, HEIGHT));
    close_strip();
}

TESTS(chunks) {
    const int handle = mkstemp(path);
    CHECK(handle >= 0 && close(handle) == 0);
    CHECK(cogpu_pool_open(5, &pool, NULL) == COGPU_OK);
    RUN(threads_and_sizes);
    RUN(windows);
    RUN(odd_streams);
    RUN(false_starts);
    RUN(flipped);
    RUN(truncated);
    RUN(wrong_sums_and_headers);
    cogpu_pool_close(pool);
    CHECK(unlink(path) == 0);
    return FINISH();
}
#else
TESTS(chunks) {
    return FINISH();
}
#endif
