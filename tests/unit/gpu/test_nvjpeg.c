/*
 * JPEG by nvJPEG: streams that are rewritten or refused, and batches by way of a fake nvJPEG, which
 * must give what the host's codec gives, bit by bit. On a GPU (COGPU_TEST_DEVICE is "cuda") the
 * true one decodes the same batches. Each library is tried in a process of its own, since it is
 * loaded once.
 */
#include "support/test.h"

#include "codec/codec.h"

#if COGPU_HAVE_JPEG
#include "gpu/driver/nvjpeg_library.h"
#include "gpu/nvjpeg.h"

#include "support/fake_nvjpeg.h"
#include "support/gpu_test.h"
#include "support/stand_in.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jpeglib.h>

enum { WIDTH = 37, HEIGHT = 29, SIDE_MAX = 64, SIZES = 7, FEW = 2, BATCH = 48 };

static uint64_t random_state = 1;

static uint64_t random_below(uint64_t bound) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 20) % bound;
}

/* ---- streams ------------------------------------------------------------------------------- */

typedef struct writing {
    unsigned width, height;
    int samples;
    J_COLOR_SPACE from, to;
    int luma_x, luma_y;
    unsigned restarts; /* units between two; 0 = none */
    bool progressive, band_by_band, split_tables;
    uint32_t photometric;
} writing;

static const writing grey = {.width = WIDTH,
                             .height = HEIGHT,
                             .samples = 1,
                             .from = JCS_GRAYSCALE,
                             .to = JCS_GRAYSCALE,
                             .luma_x = 1,
                             .luma_y = 1,
                             .photometric = 1};
static const writing rgb = {.width = WIDTH,
                            .height = HEIGHT,
                            .samples = 3,
                            .from = JCS_RGB,
                            .to = JCS_RGB,
                            .luma_x = 1,
                            .luma_y = 1,
                            .photometric = 2};
static const writing ycbcr = {.width = WIDTH,
                              .height = HEIGHT,
                              .samples = 3,
                              .from = JCS_RGB,
                              .to = JCS_YCbCr,
                              .luma_x = 2,
                              .luma_y = 2,
                              .photometric = 6};

/* A block of a file. */
typedef struct block {
    cogpu_block_format format;
    uint8_t *stored, *tables;
    size_t stored_bytes;
} block;

static void free_block(block *b) {
    free(b->stored);
    free(b->tables);
    *b = (block){0};
}

/* Slopes with some noise. */
static void draw_row(uint8_t *row, unsigned y, unsigned bytes) {
    for (unsigned x = 0; x < bytes; x++)
        row[x] = (uint8_t)(128 + 90 * ((int)(x * (x % 3 + 1) + 2 * y) % 64 - 32) / 32 +
                           (int)random_below(16));
}

static void write_rows(struct jpeg_compress_struct *codec) {
    uint8_t pixels[SIDE_MAX * 4];
    JSAMPROW row = pixels;
    while (codec->next_scanline < codec->image_height) {
        draw_row(pixels, codec->next_scanline,
                 codec->image_width * (unsigned)codec->input_components);
        jpeg_write_scanlines(codec, &row, 1);
    }
}

static void set_up(struct jpeg_compress_struct *codec, const writing *how) {
    static const jpeg_scan_info scans[3] = {
        {1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
    codec->image_width = how->width;
    codec->image_height = how->height;
    codec->input_components = how->samples;
    codec->in_color_space = how->from;
    jpeg_set_defaults(codec);
    jpeg_set_colorspace(codec, how->to);
    jpeg_set_quality(codec, 90, TRUE);
    codec->comp_info[0].h_samp_factor = how->luma_x;
    codec->comp_info[0].v_samp_factor = how->luma_y;
    codec->restart_interval = how->restarts;
    if (how->progressive)
        jpeg_simple_progression(codec);
    if (how->band_by_band) {
        codec->scan_info = scans;
        codec->num_scans = how->samples;
    }
}

static block make(writing how) {
    struct jpeg_compress_struct codec = {0};
    struct jpeg_error_mgr errors;
    unsigned long bytes = 0, table_bytes = 0;
    block made = {.format = {.width = how.width,
                             .height = how.height,
                             .samples = (uint32_t)how.samples,
                             .bits = 8,
                             .type = COGPU_TYPE_U8,
                             .row_bytes = (size_t)how.width * (size_t)how.samples,
                             .compression = COMPRESSION_JPEG,
                             .photometric = how.photometric}};
    codec.err = jpeg_std_error(&errors);
    jpeg_create_compress(&codec);
    set_up(&codec, &how);
    if (how.split_tables) {
        jpeg_mem_dest(&codec, &made.tables, &table_bytes);
        jpeg_write_tables(&codec);
        made.format.jpeg_tables = made.tables;
        made.format.jpeg_table_bytes = table_bytes;
    }
    jpeg_mem_dest(&codec, &made.stored, &bytes);
    jpeg_start_compress(&codec, !how.split_tables);
    write_rows(&codec);
    jpeg_finish_compress(&codec);
    jpeg_destroy_compress(&codec);
    made.stored_bytes = bytes;
    return made;
}

static size_t decoded_bytes(const block *b) {
    return b->format.row_bytes * b->format.height;
}

/* What the host's codec gives; NULL where it refuses. */
static uint8_t *decode_on_host(const block *b) {
    uint8_t *out = malloc(decoded_bytes(b));
    size_t got = 0;
    cogpu_error error;
    cogpu_codec_state state = {0};
    cogpu_status status = cogpu_decode_jpeg(&state, &b->format, b->stored, b->stored_bytes, out,
                                            decoded_bytes(b), &got, &error);
    if (status == COGPU_OK && got == decoded_bytes(b))
        return out;
    free(out);
    return NULL;
}

/* In blocks of the heap of just their sizes. The stream is the caller's; NULL where it is refused.
 */
static uint8_t *rewrite(const block *b, cogpu_nvjpeg_block *given) {
    uint8_t *copy = malloc(b->stored_bytes), *tables = NULL;
    uint8_t *to = malloc(cogpu_nvjpeg_bound(&b->format, b->stored_bytes));
    cogpu_block_format format = b->format;
    memcpy(copy, b->stored, b->stored_bytes);
    if (b->tables) {
        format.jpeg_tables = tables = malloc(format.jpeg_table_bytes);
        memcpy(tables, b->tables, format.jpeg_table_bytes);
    }
    *given =
        (cogpu_nvjpeg_block){.capacity = decoded_bytes(b), .block_status = COGPU_GPU_NOT_DECODED};
    cogpu_nvjpeg_rewrite(&format, copy, b->stored_bytes, to, given);
    CHECK(given->stream_bytes <= cogpu_nvjpeg_bound(&b->format, b->stored_bytes));
    free(copy);
    free(tables);
    if (given->stream_bytes > 0)
        return to;
    free(to);
    return NULL;
}

static bool is_refused(const block *b) {
    cogpu_nvjpeg_block given;
    uint8_t *stream = rewrite(b, &given);
    free(stream);
    return !stream;
}

static bool refuses(writing how) {
    block b = make(how);
    bool refused = is_refused(&b);
    free_block(&b);
    return refused;
}

/* The bytes at the first marker of that kind. */
static uint8_t *find_marker(const block *b, uint8_t marker) {
    for (size_t i = 0; i + 1 < b->stored_bytes; i++)
        if (b->stored[i] == 0xFF && b->stored[i + 1] == marker)
            return b->stored + i;
    CHECK(!"the marker is there");
    return b->stored;
}

static void insert(block *b, size_t at, const void *bytes, size_t count) {
    b->stored = realloc(b->stored, b->stored_bytes + count);
    memmove(b->stored + at + count, b->stored + at, b->stored_bytes - at);
    memcpy(b->stored + at, bytes, count);
    b->stored_bytes += count;
}

/* ---- what is refused ----------------------------------------------------------------------- */

static void test_unusual_kinds(void) {
    writing how = grey;
    CHECK(!refuses(grey) && !refuses(rgb) && !refuses(ycbcr));
    how.progressive = true;
    CHECK(refuses(how));
    how = rgb;
    how.band_by_band = true;
    CHECK(refuses(how));
    how = grey;
    how.luma_x = how.luma_y = 2;
    CHECK(refuses(how));
    how = ycbcr;
    how.photometric = 2;
    CHECK(refuses(how));
    const int factors[][2] = {{1, 2}, {4, 1}, {4, 2}};
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        how = ycbcr;
        how.luma_x = factors[i][0];
        how.luma_y = factors[i][1];
        CHECK(refuses(how));
    }
    how = rgb;
    how.samples = 4;
    how.from = how.to = JCS_CMYK;
    CHECK(refuses(how));
    how.samples = 2;
    how.from = how.to = JCS_UNKNOWN;
    CHECK(refuses(how));
}

/* A byte of the frame, `at` behind its marker, is changed. */
static void refuse_frame(size_t at, uint8_t value) {
    block b = make(ycbcr);
    find_marker(&b, 0xC0)[at] = value;
    CHECK(is_refused(&b));
    free_block(&b);
}

static void test_unusual_frames(void) {
    static const uint8_t marks[] = {0xC1, 0xC2, 0xC3, 0xC5, 0xC9, 0xCA, 0xCB, 0xF7};
    for (size_t i = 0; i < sizeof marks; i++)
        refuse_frame(1, marks[i]); /* extended, progressive, lossless, arithmetic, ... */
    refuse_frame(4, 12);           /* bits */
    refuse_frame(5, 0xFF);         /* height */
    refuse_frame(6, HEIGHT + 1);
    refuse_frame(6, HEIGHT - 1);
    refuse_frame(6, 0);
    refuse_frame(7, 0xFF); /* width */
    refuse_frame(8, WIDTH + 1);
    refuse_frame(8, WIDTH - 1);
    refuse_frame(8, 0);
    refuse_frame(9, 1); /* bands */
    refuse_frame(9, 4);
    refuse_frame(10, 9);    /* a name that the scan does not know */
    refuse_frame(11, 0x00); /* factors */
    refuse_frame(11, 0xF1);
    refuse_frame(14, 0x22);
    refuse_frame(12, 3); /* tables that there are not */
    refuse_frame(12, 200);
}

static void test_other_blocks(void) {
    block b = make(ycbcr);
    const cogpu_block_format format = b.format;
    b.format.bits = 16;
    CHECK(is_refused(&b));
    b.format = format;
    b.format.height--;
    CHECK(is_refused(&b));
    b.format.height += 2;
    CHECK(is_refused(&b));
    b.format = format;
    b.format.width += 65536;
    CHECK(is_refused(&b));
    b.format = format;
    b.format.samples = 1;
    CHECK(is_refused(&b));
    b.format.samples = 0;
    CHECK(is_refused(&b));
    b.format.samples = UINT32_MAX;
    CHECK(is_refused(&b));
    b.format = format;
    b.format.width = b.format.height = 0;
    CHECK(is_refused(&b));
    free_block(&b);
}

/* Two frames, fill bytes, and unexpected segments. */
static void test_unusual_segments(void) {
    static const uint8_t number_of_lines[] = {0xFF, 0xDC, 0, 4, 0, HEIGHT};
    static const uint8_t conditioning[] = {0xFF, 0xCC, 0, 4, 0, 0};
    static const uint8_t wide_quantizers[] = {0xFF, 0xDB, 0, 4, 0x10, 1};
    static const uint8_t no_codes[3 + 18] = {0xFF, 0xC4, 0, 19};
    static const uint8_t crowded_codes[] = {0xFF, 0xC4, 0, 22, 0, 3, 0, 0, 0, 0, 0, 0,
                                            0,    0,    0, 0,  0, 0, 0, 0, 0, 1, 2, 3};
    block b = make(grey);
    uint8_t *frame = find_marker(&b, 0xC0), copy[13];
    memcpy(copy, frame, sizeof copy);
    const struct {
        const void *bytes;
        size_t count;
    } inserted[] = {{number_of_lines, sizeof number_of_lines},
                    {conditioning, sizeof conditioning},
                    {wide_quantizers, sizeof wide_quantizers},
                    {no_codes, sizeof no_codes},
                    {crowded_codes, sizeof crowded_codes},
                    {copy, sizeof copy},
                    {"\xFF", 1},
                    {"\0", 1}};
    for (size_t i = 0; i < sizeof inserted / sizeof *inserted; i++) {
        block changed = make(grey);
        insert(&changed, (size_t)(find_marker(&changed, 0xC0) - changed.stored), inserted[i].bytes,
               inserted[i].count);
        CHECK(is_refused(&changed));
        free_block(&changed);
    }
    /* Remarks are of no account, wherever they stand. */
    insert(&b, 2, "\xFF\xFE\0\6abcd", 8);
    insert(&b, 2, "\xFF\xE5\0\2", 4);
    CHECK(!is_refused(&b));
    free_block(&b);
}

static void test_scans(void) {
    writing how = grey;
    how.restarts = 2;
    block b = make(how);
    CHECK(!is_refused(&b));
    size_t restart = (size_t)(find_marker(&b, 0xD1) - b.stored);
    b.stored[restart + 1] = 0xD2; /* out of turn */
    CHECK(is_refused(&b));
    b.stored[restart + 1] = 0xD9; /* the end is too soon */
    CHECK(is_refused(&b));
    b.stored[restart + 1] = 0; /* missing */
    CHECK(is_refused(&b));
    b.stored[restart + 1] = 0xD1;
    find_marker(&b, 0xDD)[5] = 3; /* too many */
    CHECK(is_refused(&b));
    find_marker(&b, 0xDD)[5] = 2;
    insert(&b, b.stored_bytes, "anything", 8); /* after the end */
    CHECK(!is_refused(&b));
    free_block(&b);
    /* A scan that is too short for so many blocks, though it ends. */
    b = make(grey);
    size_t scan = (size_t)(find_marker(&b, 0xDA) - b.stored) + 10;
    memcpy(b.stored + scan, "\x12\xFF\xD9", 3);
    CHECK(is_refused(&b));
    memcpy(b.stored + scan, "\x12\x34\x56\x78\x9A\xFF\xD9", 7);
    CHECK(!is_refused(&b));
    free_block(&b);
}

static void test_tables(void) {
    writing how = ycbcr;
    how.split_tables = true;
    block b = make(how);
    CHECK(!is_refused(&b));
    cogpu_block_format format = b.format;
    uint8_t *tables = b.tables;
    b.format.jpeg_table_bytes -= 2; /* without their end marker */
    CHECK(!is_refused(&b));
    b.tables = NULL;
    b.format.jpeg_tables = NULL;
    CHECK(is_refused(&b));
    b.format = format;
    b.tables = tables;
    for (size_t cut = 0; cut < format.jpeg_table_bytes - 2; cut++) {
        b.format.jpeg_table_bytes = cut;
        CHECK(is_refused(&b));
    }
    /* An image is no table. */
    b.format = format;
    b.tables = b.stored;
    b.format.jpeg_table_bytes = b.stored_bytes;
    CHECK(is_refused(&b));
    b.tables = tables;
    free_block(&b);
}

static void test_cut_off(void) {
    writing how = ycbcr;
    how.restarts = 2;
    block b = make(how);
    for (size_t whole = b.stored_bytes--; b.stored_bytes + 1 > 0 && whole > 0; b.stored_bytes--) {
        CHECK(is_refused(&b));
        if (b.stored_bytes == 0)
            break;
    }
    free_block(&b);
}

/* ---- libraries, each in a process of its own ----------------------------------------------- */

static fake_nvjpeg *fake;
static cogpu_error error;

static void with_nvjpeg(const char *path, void (*test)(void)) {
    in_a_process("COGPU_NVJPEG", path, "fake_nvjpeg_control", (void **)&fake, test);
}

static void expect_absent(const char *why) {
    cogpu_nvjpeg *nvjpeg = (void *)&error;
    CHECK_TEXT(cogpu_nvjpeg_load()->why, why);
    CHECK(cogpu_nvjpeg_open(NULL, 1, 1, &nvjpeg, &error) == COGPU_UNSUPPORTED && !nvjpeg);
    CHECK(strstr(error.message, why));
    cogpu_nvjpeg_close(NULL);
}

static void in_no_library(void) {
    const char *why;
    unsetenv("COGPU_NVJPEG");
    if (cogpu_gpu_count(&why) == 0)
        expect_absent(why);
}

static void in_no_such_file(void) {
    expect_absent("the file that COGPU_NVJPEG names cannot be loaded");
}

static void in_another_library(void) {
    expect_absent("nvJPEG is too old: it lacks nvjpegCreateEx");
}

static void test_absent_libraries(void) {
    with_nvjpeg(NULL, in_no_library);
    with_nvjpeg("/nonexistent/libnvjpeg.so", in_no_such_file);
    with_nvjpeg("libm.so.6", in_another_library);
}

/* ---- batches ------------------------------------------------------------------------------- */

static cogpu_gpu *gpu;
static cogpu_gpu_stream *stream;

/* A batch of blocks, with device memory for their pixels. */
typedef struct batch {
    block blocks[BATCH];
    uint8_t *streams[BATCH];
    cogpu_nvjpeg_block given[BATCH];
    uint32_t count;
    uint8_t *memory;
    uint64_t memory_bytes;
} batch;

static cogpu_nvjpeg *open_nvjpeg(void) {
    cogpu_nvjpeg *nvjpeg = NULL;
    gpu_test_need(cogpu_nvjpeg_open(gpu, 2, BATCH, &nvjpeg, &error), &error);
    return nvjpeg;
}

static void add(batch *all, block made) {
    uint32_t i = all->count++;
    all->blocks[i] = made;
    all->streams[i] = rewrite(&made, &all->given[i]);
}

/* Memory with guards round the pixels of each block and round its planes. */
static void worker(batch *all) {
    uint64_t at = COGPU_GPU_ALIGN, offsets[2 * BATCH];
    for (uint32_t i = 0; i < 2 * all->count; i++) {
        offsets[i] = at;
        at += gpu_test_align(all->given[i / 2].capacity) + COGPU_GPU_ALIGN;
    }
    all->memory_bytes = at;
    uint8_t *guards = malloc(at);
    memset(guards, GPU_TEST_GUARD, at);
    gpu_test_need(gpu->calls->allocate(gpu, at, (void **)&all->memory, &error), &error);
    gpu_test_need(gpu->calls->copy_up(gpu, all->memory, guards, at, stream, &error), &error);
    gpu_test_need(gpu->calls->finish_stream(gpu, stream, &error), &error);
    free(guards);
    for (uint32_t i = 0; i < all->count; i++) {
        all->given[i].decoded = all->memory + offsets[2 * i];
        all->given[i].planes = all->memory + offsets[2 * i + 1];
    }
}

static void free_batch(batch *all) {
    for (uint32_t i = 0; i < all->count; i++) {
        free_block(&all->blocks[i]);
        free(all->streams[i]);
    }
    gpu->calls->release(gpu, all->memory);
    *all = (batch){0};
}

/* Decodes, and brings the device's memory: the caller frees it. */
static uint8_t *decode_batch(cogpu_nvjpeg *nvjpeg, uint32_t slot, batch *all) {
    uint8_t *memory = malloc(all->memory_bytes);
    gpu_test_need(cogpu_nvjpeg_decode(nvjpeg, slot, all->given, all->count, stream, &error),
                  &error);
    gpu_test_need(
        gpu->calls->copy_down(gpu, memory, all->memory, all->memory_bytes, stream, &error), &error);
    gpu_test_need(gpu->calls->finish_stream(gpu, stream, &error), &error);
    return memory;
}

static uint32_t count_decoded(const batch *all) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < all->count; i++)
        count += all->given[i].block_status == COGPU_GPU_DECODED;
    return count;
}

static bool are_guards(const uint8_t *from, const uint8_t *to) {
    while (from < to && *from == GPU_TEST_GUARD)
        from++;
    return from == to;
}

/* Whether decoded blocks are the host's, and all but their memory is as it was. */
static bool is_right(const batch *all, const uint8_t *memory) {
    const uint8_t *at = memory;
    for (uint32_t i = 0; i < all->count; i++) {
        const cogpu_nvjpeg_block *given = &all->given[i];
        size_t bytes = decoded_bytes(&all->blocks[i]);
        if (given->block_status != COGPU_GPU_DECODED)
            continue;
        const uint8_t *decoded = memory + (given->decoded - all->memory);
        const uint8_t *planes = memory + (given->planes - all->memory);
        uint8_t *expected = decode_on_host(&all->blocks[i]);
        bool is_same = expected && memcmp(expected, decoded, bytes) == 0;
        free(expected);
        if (!is_same || !are_guards(at, decoded) || !are_guards(decoded + bytes, planes)) {
            printf("block %u, %u x %u, %u bands: %s\n", i, given->width, given->height,
                   given->samples, is_same ? "more is written" : "other pixels");
            return false;
        }
        at = planes + (given->samples == 3 ? bytes : 0);
    }
    return are_guards(at, memory + all->memory_bytes);
}

/* All kinds that are taken, in some sizes, with and without tables of tag 347. */
static void add_kinds(batch *all, uint32_t sizes_used, bool with_grey, bool with_colours) {
    static const struct {
        const writing *kind;
        J_COLOR_SPACE to;
        int x, y;
    } kinds[] = {{&grey, JCS_GRAYSCALE, 1, 1}, {&rgb, JCS_RGB, 1, 1},
                 {&rgb, JCS_YCbCr, 1, 1},      {&ycbcr, JCS_YCbCr, 1, 1},
                 {&ycbcr, JCS_YCbCr, 2, 1},    {&ycbcr, JCS_YCbCr, 2, 2}};
    static const unsigned sizes[SIZES][2] = {{WIDTH, HEIGHT}, {1, 1}, {16, 17}, {64, 64},
                                             {63, 8},         {4, 3}, {3, 9}};
    for (uint32_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (uint32_t j = 0; j < sizes_used; j++) {
            writing how = *kinds[i].kind;
            how.to = kinds[i].to;
            how.luma_x = kinds[i].x;
            how.luma_y = kinds[i].y;
            how.width = sizes[j][0];
            how.height = sizes[j][1];
            how.split_tables = j % 2;
            how.restarts = (i + j) % 4;
            if (how.samples == 1 ? with_grey : with_colours)
                add(all, make(how));
        }
    /* As libtiff writes RGB: without a word on what the bands are. */
    writing how = rgb;
    how.from = how.to = JCS_UNKNOWN;
    if (with_colours)
        add(all, make(how));
}

static batch kinds;

static void make_kinds(uint32_t sizes_used, bool with_grey, bool with_colours) {
    add_kinds(&kinds, sizes_used, with_grey, with_colours);
    worker(&kinds);
}

static void test_all_kinds(void) {
    cogpu_nvjpeg *nvjpeg = open_nvjpeg();
    for (int round = 0; round < 3; round++) {
        make_kinds(SIZES, round != 1, round != 2);
        uint8_t *memory = decode_batch(nvjpeg, (uint32_t)round % 2, &kinds);
        CHECK(count_decoded(&kinds) == kinds.count && is_right(&kinds, memory));
        free(memory);
        free_batch(&kinds);
    }
    cogpu_nvjpeg_close(nvjpeg);
}

/* A batch that is made ready once serves all of its size. */
static void test_batches_of_a_size(void) {
    cogpu_nvjpeg *nvjpeg = open_nvjpeg();
    make_kinds(FEW, false, true);
    for (int round = 0; round < 3; round++)
        free(decode_batch(nvjpeg, 0, &kinds));
    CHECK(fake->sizes == 1 && fake->decodes == 3 && fake->last_format == 1);
    CHECK(fake->last_batch == (int)kinds.count);
    kinds.given[0].stream_bytes = 0; /* one that is the host's */
    uint8_t *memory = decode_batch(nvjpeg, 0, &kinds);
    CHECK(fake->sizes == 2 && fake->last_batch == (int)kinds.count - 1);
    CHECK(kinds.given[0].block_status != COGPU_GPU_DECODED &&
          count_decoded(&kinds) == kinds.count - 1);
    free(memory);
    free_batch(&kinds);
    cogpu_nvjpeg_close(nvjpeg);
}

static void test_nothing_to_decode(void) {
    cogpu_nvjpeg *nvjpeg = open_nvjpeg();
    batch none = {0};
    worker(&none);
    uint8_t *memory = decode_batch(nvjpeg, 0, &none);
    CHECK(fake->decodes == 0 && fake->states == 0 && is_right(&none, memory));
    free(memory);
    free_batch(&none);
    cogpu_nvjpeg_close(nvjpeg);
}

/* What does not fit is not decoded. */
static void test_no_room(void) {
    cogpu_nvjpeg *nvjpeg = open_nvjpeg();
    make_kinds(FEW, true, true);
    for (uint32_t i = 0; i < kinds.count; i += 2)
        kinds.given[i].capacity--;
    uint8_t *memory = decode_batch(nvjpeg, 0, &kinds);
    for (uint32_t i = 0; i < kinds.count; i++)
        CHECK((kinds.given[i].block_status == COGPU_GPU_DECODED) == i % 2);
    CHECK(is_right(&kinds, memory));
    free(memory);
    memory = decode_batch(nvjpeg, 2, &kinds); /* there is no such slot */
    CHECK(count_decoded(&kinds) == 0);
    free(memory);
    int before = fake->decodes;
    cogpu_nvjpeg_block *many = calloc(BATCH + 1, sizeof *many);
    CHECK(cogpu_nvjpeg_decode(nvjpeg, 0, many, BATCH + 1, stream, &error) == COGPU_OK);
    CHECK(many[BATCH].block_status == COGPU_GPU_UNSUPPORTED && fake->decodes == before);
    free(many);
    free_batch(&kinds);
    cogpu_nvjpeg_close(nvjpeg);
}

/* One damaged scan, which only a decoder notices, fails its call, and no other. */
static void test_one_that_is_damaged(void) {
    cogpu_nvjpeg *nvjpeg = open_nvjpeg();
    make_kinds(FEW, true, true);
    uint32_t last = kinds.count - 1;
    uint8_t *scan = kinds.streams[last] + kinds.given[last].stream_bytes / 2;
    memset(scan, 0x55, 40);
    uint8_t *memory = decode_batch(nvjpeg, 0, &kinds);
    for (uint32_t i = 0; i < kinds.count; i++)
        CHECK(kinds.given[i].block_status ==
              (kinds.given[i].samples == 1 ? COGPU_GPU_DECODED : COGPU_GPU_MALFORMED));
    free(memory);
    free_batch(&kinds);
    make_kinds(FEW, true, true);
    memory = decode_batch(nvjpeg, 0, &kinds);
    CHECK(count_decoded(&kinds) == kinds.count && is_right(&kinds, memory));
    free(memory);
    free_batch(&kinds);
    cogpu_nvjpeg_close(nvjpeg);
}

/* With the orders in `fake`: how many are decoded, now and when they are taken back. */
static void expect_failure(uint32_t decoded, cogpu_gpu_block_status block_status) {
    cogpu_nvjpeg *nvjpeg = open_nvjpeg();
    make_kinds(FEW, true, true);
    uint8_t *memory = decode_batch(nvjpeg, 1, &kinds);
    CHECK(count_decoded(&kinds) == decoded);
    CHECK(kinds.given[kinds.count - 1].block_status == block_status);
    free(memory);
    fake->state_error = fake->size_error = fake->decode_error = 0;
    memory = decode_batch(nvjpeg, 1, &kinds);
    CHECK(count_decoded(&kinds) == kinds.count && is_right(&kinds, memory));
    free(memory);
    free_batch(&kinds);
    cogpu_nvjpeg_close(nvjpeg);
}

static void test_failing_calls(void) {
    fake->state_error = 6;
    expect_failure(0, COGPU_GPU_UNSUPPORTED);
    fake->size_error = 8;
    expect_failure(0, COGPU_GPU_UNSUPPORTED);
    fake->decode_error = 4;
    expect_failure(0, COGPU_GPU_UNSUPPORTED);
    fake->decode_error = 3;
    fake->decode_fails_at = fake->decodes + 2; /* the second call is that of the colours */
    expect_failure(FEW, COGPU_GPU_MALFORMED);  /* the grey ones */
    fake->decode_fails_at = 0;
}

/* Without memory for its lists it does not start, and keeps nothing. */
static void test_no_memory(void) {
    cogpu_nvjpeg *nvjpeg = (void *)&error;
    uint64_t before = 0, after = 0, total;
    cogpu_gpu *small = NULL;
    gpu_test_need(cogpu_gpu_open_emulator(1, 3000, &small, &error), &error);
    gpu_test_need(small->calls->memory(small, &before, &total, &error), &error);
    CHECK(cogpu_nvjpeg_open(small, 3, BATCH, &nvjpeg, &error) == COGPU_OUT_OF_MEMORY && !nvjpeg);
    gpu_test_need(small->calls->memory(small, &after, &total, &error), &error);
    CHECK(before == after && fake->handles == 0);
    small->calls->close(small);
}

static void test_no_start(void) {
    cogpu_nvjpeg *nvjpeg = (void *)&error;
    fake->create_error = 8;
    CHECK(cogpu_nvjpeg_open(gpu, 2, BATCH, &nvjpeg, &error) == COGPU_DEVICE_ERROR && !nvjpeg);
    CHECK_TEXT(error.message, "nvJPEG cannot start: its error 8");
    fake->create_error = 7;
    CHECK(cogpu_nvjpeg_open(gpu, 2, BATCH, &nvjpeg, &error) == COGPU_UNSUPPORTED && !nvjpeg);
    CHECK_TEXT(error.message, "no JPEG on the GPU: it has no hardware decoder");
    fake->create_error = 0;
}

/* A stream with changed bytes is refused by us, by the library, or gives what the host gives. */
static void try_changed(cogpu_nvjpeg *nvjpeg, block *changed) {
    size_t bytes = decoded_bytes(changed);
    cogpu_nvjpeg_block given;
    uint8_t *rewritten = rewrite(changed, &given);
    if (!rewritten)
        return;
    given.decoded = malloc(bytes);
    given.planes = malloc(bytes);
    memset(given.planes, 0, bytes);
    CHECK(cogpu_nvjpeg_decode(nvjpeg, 0, &given, 1, stream, &error) == COGPU_OK);
    CHECK(gpu->calls->finish_stream(gpu, stream, &error) == COGPU_OK);
    if (given.block_status == COGPU_GPU_DECODED) {
        uint8_t *expected = decode_on_host(changed);
        CHECK(expected && memcmp(expected, given.decoded, bytes) == 0);
        free(expected);
    }
    free(rewritten);
    free(given.decoded);
    free(given.planes);
}

/* Of streams in colours some bytes only, for the kernel takes its time on the emulator. */
static void test_changed_bytes(void) {
    cogpu_nvjpeg *nvjpeg = open_nvjpeg();
    static const uint8_t values[] = {0x00, 0x01, 0x11, 0x7F, 0x80, 0xD9, 0xFF};
    writing how[] = {grey, ycbcr, rgb};
    for (uint32_t i = 0; i < 3; i++) {
        how[i].split_tables = i > 0;
        how[i].restarts = i;
        how[i].width = how[i].height = 11;
        block b = make(how[i]);
        size_t bytes = b.stored_bytes + b.format.jpeg_table_bytes;
        for (uint64_t j = 0; j<bytes *(sizeof values + 2); j += i> 0 ? 1 + random_below(40) : 1) {
            uint64_t at = j / (sizeof values + 2), way = j % (sizeof values + 2);
            uint8_t *byte = at < b.stored_bytes ? b.stored + at : b.tables + (at - b.stored_bytes);
            uint8_t was = *byte;
            *byte = (uint8_t)(way < sizeof values ? values[way] : was ^ (1u << random_below(8)));
            try_changed(nvjpeg, &b);
            *byte = was;
        }
        free_block(&b);
    }
    cogpu_nvjpeg_close(nvjpeg);
}

static void open_device(void) {
    gpu = gpu_test_open(1);
    gpu_test_need(gpu->calls->stream_open(gpu, true, &stream, &error), &error);
}

static void close_device(void) {
    gpu->calls->stream_close(gpu, stream);
    gpu->calls->close(gpu);
}

static void in_a_library_at_work(void) {
    setenv("COGPU_TEST_DEVICE", "emu", 1);
    open_device();
    test_nothing_to_decode();
    test_batches_of_a_size();
    test_all_kinds();
    test_no_room();
    test_one_that_is_damaged();
    test_failing_calls();
    test_no_memory();
    test_no_start();
    test_changed_bytes();
    CHECK(fake->handles == 0 && fake->states == 0 && fake->wrong == 0);
    close_device();
}

/* Blocks one by one, since one that the engines do not take fails its batch. */
static void on_a_gpu(void) {
    const char *why = cogpu_nvjpeg_load()->why;
    cogpu_nvjpeg *nvjpeg = NULL;
    uint32_t decoded = 0;
    open_device();
    if (why || cogpu_nvjpeg_open(gpu, 2, BATCH, &nvjpeg, &error) != COGPU_OK) {
        printf("not tried on the GPU: %s\n", why ? why : error.message);
        return;
    }
    make_kinds(SIZES, true, true);
    for (uint32_t i = 0; i < kinds.count; i++) {
        batch one = {.blocks = {kinds.blocks[i]}, .given = {kinds.given[i]}, .count = 1};
        worker(&one);
        uint8_t *memory = decode_batch(nvjpeg, i % 2, &one);
        CHECK(is_right(&one, memory));
        decoded += count_decoded(&one);
        free(memory);
        gpu->calls->release(gpu, one.memory);
    }
    printf("on the GPU: %u of %u blocks are decoded\n", decoded, kinds.count);
    CHECK(decoded > 0);
    free_batch(&kinds);
    cogpu_nvjpeg_close(nvjpeg);
    close_device();
}

static void test_batches(void) {
    with_nvjpeg(FAKE_NVJPEG, in_a_library_at_work);
    if (gpu_test_is_real())
        with_nvjpeg(NULL, on_a_gpu);
}

TESTS(nvjpeg) {
    RUN(test_unusual_kinds);
    RUN(test_unusual_frames);
    RUN(test_other_blocks);
    RUN(test_unusual_segments);
    RUN(test_scans);
    RUN(test_tables);
    RUN(test_cut_off);
    RUN(test_absent_libraries);
    RUN(test_batches);
    return FINISH();
}

#else
TESTS(nvjpeg) {
    return FINISH();
}
#endif
