/*
 * Writers with several threads: the file does not depend on chunks, strides and threads, even if
 * the caller's memory changes as soon as a push returns. If a block or a write fails, the writer
 * reports the first failure in file order and writes nothing after it.
 */
#include "write/writer.h"

#include "support/test.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { WIDTH = 83, HEIGHT = 75, BANDS_MAX = 3, SAMPLE_MAX = 16, GAP = 2 };

static cogpu_error error;

/* ---- rasters ---- */

/* Memory that has a raster's samples in one of several orders, upside down or mirrored too. */
struct layout {
    int64_t band, y, x;
    bool is_flipped; /* both ways */
};

static struct layout layout_of(int kind, int64_t size, int64_t bands) {
    switch (kind) {
    case 0: /* bands first */
        return (struct layout){size * WIDTH * HEIGHT, size * WIDTH, size, false};
    case 1: /* bands last */
        return (struct layout){size, size * bands * WIDTH, size * bands, false};
    case 2: /* columns first, bands first */
        return (struct layout){size * WIDTH * HEIGHT, size, size * HEIGHT, false};
    default: /* bands last, with gaps, backwards */
        return (struct layout){size * GAP, size * GAP * bands * WIDTH, size * GAP * bands, true};
    }
}

static cogpu_raster raster_in(uint8_t *memory, cogpu_type type, uint32_t bands, int kind) {
    struct layout layout = layout_of(kind, (int64_t)cogpu_type_bytes(type), bands);
    int64_t sign = layout.is_flipped ? -1 : 1;
    uint8_t *first =
        layout.is_flipped ? memory + (HEIGHT - 1) * layout.y + (WIDTH - 1) * layout.x : memory;
    return (cogpu_raster){.struct_size = sizeof(cogpu_raster),
                          .data = first,
                          .type = type,
                          .bands = bands,
                          .width = WIDTH,
                          .height = HEIGHT,
                          .stride_band = layout.band,
                          .stride_y = sign * layout.y,
                          .stride_x = sign * layout.x};
}

static uint8_t *sample_of(const cogpu_raster *raster, uint32_t band, uint32_t y, uint32_t x) {
    return (uint8_t *)raster->data + band * raster->stride_band + y * raster->stride_y +
           x * raster->stride_x;
}

/* The same pixels at any strides: hills, and a hole for sparse blocks. */
static void fill(const cogpu_raster *raster) {
    size_t size = cogpu_type_bytes(raster->type);
    for (uint32_t b = 0; b < raster->bands; b++)
        for (uint32_t y = 0; y < HEIGHT; y++)
            for (uint32_t x = 0; x < WIDTH; x++) {
                bool is_hole = y >= 16 && y < 48 && x >= 16 && x < 64;
                uint32_t value = is_hole ? 0 : 40 * b + y * y / 9 + 3 * x + x * y % 5;
                uint8_t *to = sample_of(raster, b, y, x);
                memset(to, 0, size);
                if (raster->type == COGPU_TYPE_F32)
                    memcpy(to, &(float){(float)value / 8}, size);
                else if (raster->type == COGPU_TYPE_CF64)
                    memcpy(to, &(double){value}, sizeof(double));
                else
                    memcpy(to, &(uint16_t){(uint16_t)value}, size < 2 ? size : 2);
            }
}

static cogpu_raster chunk(const cogpu_raster *raster, uint32_t first, uint32_t count) {
    cogpu_raster rows = *raster;
    rows.data = sample_of(raster, 0, first, 0);
    rows.height = count;
    return rows;
}

static uint8_t pixels[2][GAP * WIDTH * HEIGHT * BANDS_MAX * SAMPLE_MAX];
static uint8_t masks[2][GAP * WIDTH * HEIGHT];

/* ---- the same file ---- */

/* In chunks of so many rows, each of which is pushed from memory that is then overwritten. */
static cogpu_memory written(const cogpu_profile *profile, int kind, uint32_t rows) {
    cogpu_memory file = COGPU_MEMORY_INIT;
    cogpu_sink sink = {.struct_size = sizeof(cogpu_sink), .memory = &file};
    cogpu_writer *writer = NULL;
    cogpu_raster lent = raster_in(pixels[1], profile->type, profile->bands, kind);
    cogpu_raster lent_mask = raster_in(masks[1], COGPU_TYPE_U8, 1, kind);
    CHECK(cogpu_writer_open(&sink, profile, &writer, &error) == COGPU_OK);
    for (uint32_t first = 0, count; writer && first < HEIGHT; first += count) {
        count = rows < HEIGHT - first ? rows : HEIGHT - first;
        memcpy(pixels[1], pixels[0], sizeof pixels[1]);
        memcpy(masks[1], masks[0], sizeof masks[1]);
        cogpu_raster part = chunk(&lent, first, count), part_mask = chunk(&lent_mask, first, count);
        CHECK(cogpu_writer_write_rows(writer, &part, profile->mask ? &part_mask : NULL, &error) ==
              COGPU_OK);
        memset(pixels[1], 0xA5, sizeof pixels[1]);
        memset(masks[1], 0xA5, sizeof masks[1]);
    }
    CHECK(writer && cogpu_writer_close(writer, NULL, &error) == COGPU_OK);
    return file;
}

static bool is_same(cogpu_memory *file, const cogpu_memory *expected) {
    bool same = file->bytes > 0 && file->bytes == expected->bytes &&
                memcmp(file->data, expected->data, file->bytes) == 0;
    cogpu_memory_free(file);
    return same;
}

/* Files that are not as the first one, whose rows were pushed one by one. */
static int unlike(cogpu_profile *profile) {
    static const uint32_t chunks[] = {1, 23, HEIGHT};
    cogpu_memory expected = COGPU_MEMORY_INIT;
    int found = 0;
    for (int kind = 0; kind < 4; kind++) {
        cogpu_raster raster = raster_in(pixels[0], profile->type, profile->bands, kind);
        cogpu_raster mask = raster_in(masks[0], COGPU_TYPE_U8, 1, kind);
        fill(&raster);
        fill(&mask);
        profile->threads = kind % 2 ? 4 : 1;
        for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
            cogpu_memory file = written(profile, kind, chunks[i]);
            if (!expected.data)
                expected = file;
            else
                found += !is_same(&file, &expected);
        }
    }
    cogpu_memory_free(&expected);
    return found;
}

static void every_layout_gives_the_same_file(void) {
    static const uint32_t factors[] = {2, 5};
    const cogpu_profile kinds[] = {
        {.struct_size = sizeof(cogpu_profile),
         .block_width = 32,
         .block_height = 16,
         .codec = "none"},
        {.struct_size = sizeof(cogpu_profile), .strips = 1, .block_height = 5},
        {.struct_size = sizeof(cogpu_profile), .cog = 1, .block_width = 16, .sparse = 1},
        {.struct_size = sizeof(cogpu_profile),
         .cog = 1,
         .block_width = 32,
         .mask = 1,
         .resampling = COGPU_RESAMPLE_CUBIC},
        {.struct_size = sizeof(cogpu_profile),
         .strips = 1,
         .block_height = 1,
         .overview_factors = factors,
         .overview_factor_count = 2,
         .mask = 1},
    };
    static const cogpu_type types[] = {COGPU_TYPE_U8, COGPU_TYPE_I16, COGPU_TYPE_F32,
                                       COGPU_TYPE_CF64};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            for (uint32_t bands = 1; bands <= BANDS_MAX; bands += 2)
                for (int planar = 0; planar <= (bands > 1); planar++) {
                    cogpu_profile profile = kinds[k];
                    profile.width = WIDTH, profile.height = HEIGHT;
                    profile.type = types[t], profile.bands = bands, profile.interleave = planar;
                    if (types[t] == COGPU_TYPE_CF64 && profile.resampling == COGPU_RESAMPLE_CUBIC)
                        profile.resampling = COGPU_RESAMPLE_NEAREST;
                    CHECK(unlike(&profile) == 0);
                }
}

/* Many threads and large blocks: no more than a row of blocks and 48 MiB are in flight, but one
 * block is, and the one it is encoded into. */
static void memory_is_bounded(void) {
    static const struct {
        uint32_t width, block, rows, threads;
    } cases[] = {{20000, 512, 0, 16},  {600, 512, 0, 16},     {20000, 4096, 0, 16},
                 {20000, 4096, 0, 3},  {20000, 0, 2000, 16},  {20000, 0, 100, 16},
                 {20000, 16, 0, 1000}, {20000, 0, 10000, 16}, {20000, 512, 0, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cogpu_context *context = NULL;
        cogpu_context_options options = {.struct_size = sizeof(cogpu_context_options),
                                         .threads = cases[i].threads};
        CHECK(cogpu_context_open(&options, &context, &error) == COGPU_OK);
        cogpu_memory file = COGPU_MEMORY_INIT;
        cogpu_sink sink = {.struct_size = sizeof(cogpu_sink), .memory = &file};
        cogpu_profile profile = {.struct_size = sizeof(cogpu_profile),
                                 .width = cases[i].width,
                                 .height = 20000,
                                 .bands = 1,
                                 .type = COGPU_TYPE_F32,
                                 .strips = cases[i].rows > 0,
                                 .block_width = cases[i].block,
                                 .block_height = cases[i].rows,
                                 .context = context};
        cogpu_writer *writer = NULL;
        CHECK(cogpu_writer_open(&sink, &profile, &writer, &error) == COGPU_OK);
        uint64_t slots = writer->queue.slot_count, bytes = writer->queue.slot_bytes;
        uint64_t threads = cases[i].threads < slots ? cases[i].threads : slots;
        uint64_t allowed = (48 << 20) + bytes * writer->plan.levels[0].across;
        CHECK((slots + threads) * bytes <= allowed || (slots == 1 && bytes > allowed / 2 - 8));
        CHECK(cases[i].block != 512 || slots >= cases[i].threads);
        cogpu_writer_abort(writer);
        cogpu_context_close(context);
    }
}

/* ---- failures ---- */

/* Accepts a number of writes, then fails; counts all calls. */
struct sink {
    uint32_t accepted, writes, commits, aborts;
};

static cogpu_status count_write(void *user, uint64_t offset, const void *from, size_t bytes) {
    struct sink *sink = user;
    (void)offset, (void)from, (void)bytes;
    return sink->writes++ == sink->accepted ? COGPU_DEVICE_ERROR : COGPU_OK;
}

static cogpu_status count_commit(void *user) {
    ((struct sink *)user)->commits++;
    return COGPU_OK;
}

static void count_abort(void *user) {
    ((struct sink *)user)->aborts++;
}

static cogpu_sink sink_of(struct sink *sink) {
    return (cogpu_sink){.struct_size = sizeof(cogpu_sink),
                        .user = sink,
                        .write = count_write,
                        .commit = count_commit,
                        .abort = count_abort};
}

/* Pushes chunks of 10 rows and closes. After a failure all calls return the same status. */
static cogpu_status write_all(cogpu_writer *writer, const cogpu_raster *raster,
                              cogpu_error *first_error) {
    cogpu_status status = COGPU_OK;
    for (uint32_t y = 0, height = raster->height; y < height; y += 10) {
        cogpu_raster rows = chunk(raster, y, height - y < 10 ? height - y : 10);
        cogpu_status found = cogpu_writer_write_rows(writer, &rows, NULL, &error);
        if (status == COGPU_OK)
            *first_error = error;
        else
            CHECK(found == status);
        status = found;
    }
    cogpu_status found = cogpu_writer_close(writer, NULL, &error);
    if (status == COGPU_OK)
        *first_error = error;
    else
        CHECK(found == status);
    return found;
}

/* Blocks are so large that each has a write of its own. */
static void any_write_may_fail(void) {
    enum { SIDE = 400, BLOCK = 144 };
    const size_t bytes = SIDE * SIDE * 16;
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .data = calloc(bytes, 1),
                           .type = COGPU_TYPE_CF64,
                           .bands = 1,
                           .width = SIDE,
                           .height = SIDE,
                           .stride_y = SIDE * 16,
                           .stride_x = 16,
                           .stride_band = 16};
    for (uint32_t threads = 1; threads <= 4; threads += 3)
        for (int cog = 0; cog < 2; cog++) {
            cogpu_profile profile = {.struct_size = sizeof(cogpu_profile),
                                     .width = SIDE,
                                     .height = SIDE,
                                     .bands = 1,
                                     .type = COGPU_TYPE_CF64,
                                     .cog = cog,
                                     .codec = "none",
                                     .threads = threads,
                                     .block_width = BLOCK};
            for (uint32_t accepted = 0, commits = 0; commits == 0; accepted++) {
                struct sink counted = {.accepted = accepted};
                cogpu_sink sink = sink_of(&counted);
                cogpu_writer *writer = NULL;
                cogpu_error first_error;
                CHECK(cogpu_writer_open(&sink, &profile, &writer, &error) == COGPU_OK);
                cogpu_status status = write_all(writer, &raster, &first_error);
                bool has_failed = counted.writes > accepted;
                CHECK(status == (has_failed ? COGPU_DEVICE_ERROR : COGPU_OK));
                CHECK(!has_failed || first_error.status == COGPU_DEVICE_ERROR);
                CHECK(counted.writes <= accepted + 1); /* none after the one that failed */
                CHECK(counted.commits == !has_failed && counted.aborts == has_failed);
                commits = counted.commits;
                CHECK(accepted < 100 && (commits == 0 || accepted > 4));
            }
        }
    free(raster.data);
}

/* An encoder that fails for blocks whose first sample is BAD or WORSE. The first of these waits for
 * the second, as long as another thread may be at it. */
enum { BAD = 251, WORSE = 252, PATIENCE = 100000 };
static atomic_int worse_ones;

static cogpu_status encode(cogpu_codec_state *state, const cogpu_encoding *encoding,
                           const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                           size_t *got, cogpu_error *why) {
    if (in[0] == WORSE) {
        atomic_fetch_add(&worse_ones, 1);
        return cogpu_fail(why, COGPU_LIMIT_EXCEEDED, "worse");
    }
    for (int i = 0; in[0] == BAD && i < PATIENCE && atomic_load(&worse_ones) == 0; i++)
        sched_yield();
    if (in[0] == BAD)
        return cogpu_fail(why, COGPU_CORRUPT, "bad");
    return cogpu_encoder_packbits.encode(state, encoding, in, in_bytes, out, out_bytes, got, why);
}

/* Blocks 7 and 9 of the file fail; 7 is reported, whichever fails first. */
static void the_first_bad_block_is_reported(void) {
    static const uint32_t columns = (WIDTH + 15) / 16;
    const cogpu_encoder encoder = {.encode = encode, .bound = cogpu_encoder_packbits.bound};
    for (uint32_t threads = 1; threads <= 4; threads += 3)
        for (int cog = 0; cog < 2; cog++) {
            cogpu_raster raster = raster_in(pixels[0], COGPU_TYPE_U8, 1, 0);
            struct sink counted = {.accepted = UINT32_MAX};
            cogpu_sink sink = sink_of(&counted);
            cogpu_profile profile = {.struct_size = sizeof(cogpu_profile),
                                     .width = WIDTH,
                                     .height = HEIGHT,
                                     .bands = 1,
                                     .type = COGPU_TYPE_U8,
                                     .cog = cog,
                                     .codec = "packbits",
                                     .threads = threads,
                                     .block_width = 16};
            cogpu_writer *writer = NULL;
            cogpu_error first_error;
            memset(pixels[0], 1, sizeof pixels[0]);
            *sample_of(&raster, 0, 7 / columns * 16, 7 % columns * 16) = BAD;
            *sample_of(&raster, 0, 9 / columns * 16, 9 % columns * 16) = WORSE;
            atomic_store(&worse_ones, 0);
            CHECK(cogpu_writer_open(&sink, &profile, &writer, &error) == COGPU_OK);
            cogpu_codec_row row = *writer->plan.codec;
            row.encoder = &encoder;
            writer->plan.codec = &row;
            CHECK(write_all(writer, &raster, &first_error) == COGPU_CORRUPT);
            CHECK(first_error.status == COGPU_CORRUPT && first_error.block == 7);
            CHECK_TEXT(first_error.message, "bad");
            CHECK(counted.commits == 0 && counted.aborts == 1);
        }
}

/* Whatever is on its way, and wherever a writer ends. */
static void a_writer_may_end_at_any_row(void) {
    cogpu_raster raster = raster_in(pixels[0], COGPU_TYPE_F32, 3, 1);
    fill(&raster);
    cogpu_context *context = NULL;
    CHECK(cogpu_context_open(
              &(cogpu_context_options){.struct_size = sizeof(cogpu_context_options), .threads = 3},
              &context, &error) == COGPU_OK);
    for (uint32_t rows = 0; rows <= HEIGHT; rows++) {
        cogpu_memory file = COGPU_MEMORY_INIT;
        cogpu_sink sink = {.struct_size = sizeof(cogpu_sink), .memory = &file};
        cogpu_profile profile = {.struct_size = sizeof(cogpu_profile),
                                 .width = WIDTH,
                                 .height = HEIGHT,
                                 .bands = 3,
                                 .type = COGPU_TYPE_F32,
                                 .cog = 1,
                                 .block_width = 16,
                                 .context = context};
        cogpu_writer *writer = NULL;
        cogpu_raster part = chunk(&raster, 0, rows);
        CHECK(cogpu_writer_open(&sink, &profile, &writer, &error) == COGPU_OK);
        CHECK(rows == 0 || cogpu_writer_write_rows(writer, &part, NULL, &error) == COGPU_OK);
        if (rows % 2)
            CHECK(cogpu_writer_close(writer, NULL, &error) ==
                  (rows < HEIGHT ? COGPU_INVALID_ARGUMENT : COGPU_OK));
        else
            cogpu_writer_abort(writer);
        CHECK((file.data != NULL) == (rows == HEIGHT && rows % 2));
        cogpu_memory_free(&file);
    }
    cogpu_context_close(context);
}

TESTS(writer) {
    RUN(every_layout_gives_the_same_file);
    RUN(memory_is_bounded);
    RUN(any_write_may_fail);
    RUN(the_first_bad_block_is_reported);
    RUN(a_writer_may_end_at_any_row);
    return FINISH();
}
