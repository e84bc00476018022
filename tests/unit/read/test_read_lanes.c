/*
 * Reads of deflate files whose blocks are decoded in lanes (src/read/lanes.c) return what reads by
 * libdeflate alone return: pixels, statuses, messages, counts. The choice is made once in a process
 * (COGPU_INFLATE), so this program runs itself: `test_read read_lanes print` reads all cases and
 * prints what it got, a line each.
 */
#include "cogpu.h"

#include "support/lane_test.h"
#include "support/test.h"

#include <stdatomic.h>

/* ---- the decoder, counted ------------------------------------------------------------------- */

/* The linker puts __wrap_X in the place of X, which is __real_X then, in all builds. */
cogpu_status __real_cogpu_inflate_lanes(void **memory, cogpu_lane_queue *queue, cogpu_error *error);
cogpu_status __wrap_cogpu_inflate_lanes(void **memory, cogpu_lane_queue *queue, cogpu_error *error);

static atomic_uint decoded_blocks, refused_blocks;
static bool has_no_memory; /* for lanes */
static _Thread_local void (*done)(cogpu_lane_queue *queue, const cogpu_lane_block *block,
                                  bool is_decoded, size_t got);

static void count_done(cogpu_lane_queue *queue, const cogpu_lane_block *block, bool is_decoded,
                       size_t got) {
    atomic_fetch_add(is_decoded ? &decoded_blocks : &refused_blocks, 1);
    done(queue, block, is_decoded, got);
}

cogpu_status __wrap_cogpu_inflate_lanes(void **memory, cogpu_lane_queue *queue,
                                        cogpu_error *error) {
    if (has_no_memory)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "no memory for lanes");
    done = queue->done;
    queue->done = count_done;
    const cogpu_status status = __real_cogpu_inflate_lanes(memory, queue, error);
    queue->done = done;
    return status;
}

#if HAVE_INFLATE_LANES

#include "support/streams.h"
#include "support/tiff_builder.h"

#include <libdeflate.h>
#include <unistd.h>

/* ---- files ---------------------------------------------------------------------------------- */

enum { WIDTH = 640, HEIGHT = 512, BLOCKS_MAX = 400 };

struct file_kind {
    uint32_t bits, predictor, tile, rows_per_strip;
    bool is_damaged; /* some blocks are bad */
    bool is_apart;   /* each block is fetched alone */
};

static const struct file_kind file_kinds[] = {
    {.bits = 8, .tile = 80},
    {.bits = 8, .tile = 80, .is_damaged = true},
    {.bits = 8, .tile = 80, .is_damaged = true, .is_apart = true},
    {.bits = 16, .predictor = 2, .rows_per_strip = 8, .is_damaged = true},
    {.bits = 16, .predictor = 2, .tile = 64, .is_apart = true},
    {.bits = 32, .predictor = 3, .tile = 64},
    {.bits = 32, .predictor = 3, .tile = 64, .is_damaged = true, .is_apart = true},
    {.bits = 8, .tile = 32}, /* too small for lanes */
};
enum { FILES = sizeof file_kinds / sizeof *file_kinds };

enum damage {
    CUT_OFF,
    WRONG_SUM,
    FLIPPED,
    WRONG_HEADER,
    TOO_SHORT, /* a valid stream of half a block */
    TOO_LONG,  /* of one and a half, which is not wrong */
    NO_STREAM,
    DAMAGES
};

/* The stored bytes of a block, valid or damaged, to be freed. */
static uint8_t *make_block(uint32_t bytes, bool is_compressible, int damage, size_t *stored) {
    const uint32_t content_bytes = damage == TOO_SHORT  ? bytes / 2
                                   : damage == TOO_LONG ? bytes + bytes / 2
                                                        : bytes;
    uint8_t *content = malloc(content_bytes);
    fill_content(content, content_bytes, is_compressible ? FEW_VALUES : PREDICTED);
    if (is_compressible)
        memset(content, 7, content_bytes / 2);
    uint8_t *stream = compress_by_libdeflate(content, content_bytes, 6, stored);
    free(content);
    if (damage == CUT_OFF)
        *stored /= 2;
    else if (damage == WRONG_SUM)
        stream[*stored - 2] ^= 1;
    else if (damage == FLIPPED)
        stream[*stored / 2] ^= 16;
    else if (damage == WRONG_HEADER)
        stream[0] = 0;
    else if (damage == NO_STREAM)
        *stored = 1;
    return stream;
}

static void build_blocks(tiff_builder *file, const struct file_kind *kind, uint32_t count,
                         uint32_t bytes, uint32_t *offsets, uint32_t *counts) {
    for (uint32_t i = 0; i < count; i++) {
        const bool is_sparse = i % 11 == 4;
        const int damage = kind->is_damaged && i % 7 == 5 ? (int)(i / 7 % DAMAGES) : DAMAGES;
        size_t stored;
        uint8_t *block = make_block(bytes, i % 5 == 3, damage, &stored);
        if (kind->is_apart && i % 3)
            build_data(file, NULL, 70000);
        offsets[i] = is_sparse ? 0 : (uint32_t)build_data(file, block, stored);
        counts[i] = is_sparse ? 0 : (uint32_t)stored;
        free(block);
    }
}

static void build_file(tiff_builder *file, const struct file_kind *kind) {
    uint32_t offsets[BLOCKS_MAX], counts[BLOCKS_MAX];
    const uint32_t tile = kind->tile, rows = kind->rows_per_strip;
    const uint32_t count = tile ? ((WIDTH + tile - 1) / tile) * ((HEIGHT + tile - 1) / tile)
                                : (HEIGHT + rows - 1) / rows;
    const uint32_t bytes = (tile ? tile * tile : WIDTH * rows) * kind->bits / 8;
    build_open(file, false, false);
    build_blocks(file, kind, count, bytes, offsets, counts);
    build_long(file, 256, WIDTH);
    build_long(file, 257, HEIGHT);
    build_short(file, 258, (uint16_t)kind->bits);
    build_short(file, 259, 8);
    build_short(file, 262, 1);
    build_short(file, 277, 1);
    build_short(file, 317, kind->predictor ? (uint16_t)kind->predictor : 1);
    build_short(file, 339, kind->predictor == 3 ? 3 : 1);
    if (tile) {
        build_long(file, 322, tile);
        build_long(file, 323, tile);
    } else {
        build_long(file, 278, rows);
    }
    build_tag(file, tile ? 324 : 273, BUILD_LONG, count, offsets);
    build_tag(file, tile ? 325 : 279, BUILD_LONG, count, counts);
    build_directory(file, true);
}

/* ---- sources -------------------------------------------------------------------------------- */

enum source_kind { IN_MEMORY, BY_READ, BY_READ_MANY, WITH_BAD_BYTES, SOURCES };

struct source {
    const tiff_builder *built;
    enum source_kind kind;
};

static cogpu_status read_range(void *user, uint64_t offset, size_t bytes, void *to, size_t *got) {
    const struct source *source = user;
    const uint64_t size = source->built->size, left = offset < size ? size - offset : 0;
    const uint64_t bad = size / 3;
    *got = bytes < left ? bytes : (size_t)left;
    if (source->kind == WITH_BAD_BYTES && offset <= bad && bad - offset < bytes)
        return COGPU_IO_ERROR;
    memcpy(to, source->built->bytes + offset, *got);
    return COGPU_OK;
}

static cogpu_status read_ranges(void *user, const uint64_t *offsets, const size_t *bytes,
                                void *const *to, size_t count) {
    cogpu_status status = COGPU_OK;
    for (size_t i = 0; i < count && status == COGPU_OK; i++) {
        size_t got;
        status = read_range(user, offsets[i], bytes[i], to[i], &got);
    }
    return status;
}

static cogpu_status size_of(void *user, uint64_t *bytes) {
    *bytes = ((const struct source *)user)->built->size;
    return COGPU_OK;
}

static cogpu_file *open_file(struct source *source, const cogpu_limits *limits) {
    const cogpu_open_options options = {.struct_size = sizeof options, .limits = limits};
    const bool has_many = source->kind == BY_READ_MANY;
    const cogpu_source functions = {.struct_size = sizeof functions,
                                    .user = source,
                                    .read = has_many ? NULL : read_range,
                                    .size = size_of,
                                    .read_many = has_many ? read_ranges : NULL};
    cogpu_file *file = NULL;
    cogpu_error error;
    const cogpu_status status =
        source->kind == IN_MEMORY
            ? cogpu_open_memory(source->built->bytes, source->built->size, &options, &file, &error)
            : cogpu_open_source(&functions, &options, &file, &error);
    if (status != COGPU_OK)
        printf("cannot open: %s\n", error.message);
    return file;
}

/* ---- reads ---------------------------------------------------------------------------------- */

static cogpu_raster open_raster(uint32_t bits, uint32_t width, uint32_t height) {
    cogpu_raster raster = {.struct_size = sizeof raster,
                           .type = bits == 8    ? COGPU_TYPE_U8
                                   : bits == 16 ? COGPU_TYPE_U16
                                                : COGPU_TYPE_F32,
                           .bands = 1,
                           .width = width,
                           .height = height};
    raster.data = calloc((size_t)width * height, bits / 8);
    return raster;
}

static uint32_t sum_of(const cogpu_raster *raster, uint32_t bits) {
    return libdeflate_crc32(0, raster->data, (size_t)raster->width * raster->height * bits / 8);
}

static void print_result(cogpu_status status, const cogpu_error *error, const cogpu_raster *raster,
                         uint32_t bits, const cogpu_result *result) {
    if (status != COGPU_OK)
        printf("%d %s\n", (int)status, error ? error->message : "");
    else
        printf("%08x blocks %llu sparse %llu bad %llu %s\n", sum_of(raster, bits),
               (unsigned long long)result->blocks, (unsigned long long)result->sparse_blocks,
               (unsigned long long)result->bad_blocks,
               result->bad_blocks ? result->first_bad.message : "");
}

/* `largest` is of the steps between two calls. */
struct progress {
    uint64_t cancel_at, last, largest, total;
    uint32_t calls_at_end;
    bool is_wrong;
};

static int watch(void *user, uint64_t blocks, uint64_t total) {
    struct progress *progress = user;
    progress->calls_at_end += blocks == total;
    progress->is_wrong |= blocks < progress->last || blocks > total || progress->calls_at_end > 4;
    const uint64_t step = blocks - progress->last;
    progress->largest = step > progress->largest ? step : progress->largest;
    progress->last = blocks;
    progress->total = total;
    return blocks >= progress->cancel_at;
}

static void print_read(const cogpu_file *file, uint32_t bits, cogpu_request request) {
    cogpu_result result = COGPU_RESULT_INIT;
    cogpu_error error;
    cogpu_raster raster = open_raster(bits, request.width ? request.width : WIDTH,
                                      request.height ? request.height : HEIGHT);
    const cogpu_status status = cogpu_read(file, &request, &raster, &result, &error);
    print_result(status, &error, &raster, bits, &result);
    free(raster.data);
}

/* A read with progress, and one that is cancelled. Lanes report each block. */
static void print_progress(const cogpu_file *file, uint32_t bits, cogpu_request request) {
    struct progress whole = {.cancel_at = UINT64_MAX}, cancelled = {.cancel_at = 12};
    const uint32_t decoded_before = atomic_load(&decoded_blocks);
    request.progress = watch;
    request.progress_user = &whole;
    print_read(file, bits, request);
    const uint32_t decoded = atomic_load(&decoded_blocks) - decoded_before;
    whole.is_wrong |= decoded > whole.total / 2 && whole.largest > whole.total / 2;
    request.progress_user = &cancelled;
    request.fill_bad_blocks = 1;
    print_read(file, bits, request);
    const uint32_t decoded_then = atomic_load(&decoded_blocks) - decoded_before - decoded;
    cancelled.is_wrong |= decoded_then > cancelled.cancel_at + CODEC_LANES * request.threads;
    printf("progress %s\n", whole.is_wrong || cancelled.is_wrong ? "is wrong" : "is right");
}

/* Windows, in one thread and several, to the end or cancelled: all, or a sample. */
static void print_reads(const cogpu_file *file, uint32_t bits, uint32_t step) {
    static const uint32_t windows[][4] = {{0, 0, 0, 0}, {90, 70, 400, 300}};
    for (uint32_t i = 0; i < 2 * 2 * 3; i += step) {
        const uint32_t *window = windows[i / 6];
        cogpu_request request = {.struct_size = sizeof request,
                                 .x = window[0],
                                 .y = window[1],
                                 .width = window[2],
                                 .height = window[3],
                                 .fill_bad_blocks = i / 3 % 2,
                                 .threads = 1 + i % 3};
        print_read(file, bits, request);
        if (window[2])
            continue;
        print_progress(file, bits, request);
    }
}

/* Windows that share blocks, and windows of another file. */
static void print_many(cogpu_file *const *files, const uint32_t *bits, uint32_t threads,
                       uint64_t cache_bytes) {
    enum { ITEMS = 8, TURNS = 2 };
    cogpu_context_options options = {
        .struct_size = sizeof options, .threads = threads, .cache_bytes = cache_bytes};
    cogpu_context *context;
    cogpu_error error;
    if (cogpu_context_open(&options, &context, &error) != COGPU_OK)
        return;
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        cogpu_request requests[ITEMS];
        cogpu_raster rasters[ITEMS];
        cogpu_result results[ITEMS];
        cogpu_read_item items[ITEMS];
        for (uint32_t i = 0; i < ITEMS; i++) {
            const uint32_t width = 200 + 20 * i, height = 300 - 20 * i;
            requests[i] = (cogpu_request){.struct_size = sizeof *requests,
                                          .x = 30 * i,
                                          .y = 25 * i,
                                          .width = width,
                                          .height = height,
                                          .fill_bad_blocks = i % 4 > 0};
            results[i] = (cogpu_result)COGPU_RESULT_INIT;
            rasters[i] = open_raster(bits[i % 2], width, height);
            items[i] = (cogpu_read_item){.struct_size = sizeof *items,
                                         .file = files[i % 2],
                                         .request = &requests[i],
                                         .raster = &rasters[i],
                                         .result = &results[i]};
        }
        const cogpu_status status = cogpu_read_many(items, ITEMS, context, &error);
        printf("many %d %s\n", (int)status, status == COGPU_OK ? "" : error.message);
        for (uint32_t i = 0; i < ITEMS; i++) {
            print_result(items[i].status, NULL, &rasters[i], bits[i % 2], &results[i]);
            free(rasters[i].data);
        }
    }
    cogpu_context_close(context);
}

/* Every file, with so much working memory (0: the default). */
static void print_files(enum source_kind kind, uint64_t memory_bytes) {
    const uint32_t step = kind == BY_READ && memory_bytes == 0 ? 1 : 5;
    tiff_builder built[FILES];
    struct source sources[FILES];
    cogpu_file *files[FILES];
    uint32_t bits[FILES];
    const cogpu_limits limits = {.struct_size = sizeof limits,
                                 .working_memory_bytes = memory_bytes};
    draw_state = 1;
    for (uint32_t i = 0; i < FILES; i++) {
        build_file(&built[i], &file_kinds[i]);
        sources[i] = (struct source){&built[i], kind};
        bits[i] = file_kinds[i].bits;
        files[i] = open_file(&sources[i], &limits);
        if (!files[i])
            return;
        printf("source %d, memory %llu, file %u\n", (int)kind, (unsigned long long)memory_bytes, i);
        if (step == 1 || file_kinds[i].is_damaged)
            print_reads(files[i], bits[i], step);
    }
    for (uint32_t threads = step == 1 ? 1 : 3; threads <= 3; threads++)
        for (uint32_t i = 0; i + 1 < FILES; i += 2)
            print_many(&files[i], &bits[i], threads, threads == 2 ? 1 << 20 : 0);
    for (uint32_t i = 0; i < FILES; i++) {
        cogpu_close(files[i]);
        build_close(&built[i]);
    }
}

/* What lanes decoded and refused is the last line. */
static void print_all(void) {
    for (int kind = 0; kind < SOURCES; kind++)
        print_files((enum source_kind)kind, 0);
    print_files(BY_READ, 60000);
    print_files(BY_READ, 400000);
    has_no_memory = true;
    print_files(BY_READ, 0);
    printf("lanes %u %u\n", atomic_load(&decoded_blocks), atomic_load(&refused_blocks));
}

/* ---- comparison ----------------------------------------------------------------------------- */

struct printed {
    char *text;
    size_t bytes;
    unsigned decoded, refused; /* blocks, by lanes */
};

/* What this program prints with a value of COGPU_INFLATE. */
static struct printed print_with(const char *value) {
    enum { BYTES_MAX = 1 << 22 };
    struct printed printed = {.text = calloc(1, BYTES_MAX)};
    char path[4096] = {0};
    CHECK(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
    setenv("COGPU_TEST_PROGRAM", path, 1);
    setenv("COGPU_INFLATE", value, 1);
    FILE *program = popen("exec \"$COGPU_TEST_PROGRAM\" read_lanes print", "r");
    CHECK(program);
    if (!program)
        return printed;
    printed.bytes = fread(printed.text, 1, BYTES_MAX - 1, program);
    CHECK(pclose(program) == 0);
    unsetenv("COGPU_INFLATE");
    char *counts = strstr(printed.text, "lanes ");
    CHECK(counts && sscanf(counts, "lanes %u %u", &printed.decoded, &printed.refused) == 2);
    if (counts)
        *counts = '\0';
    return printed;
}

/* The first lines that differ. */
static void compare(const char *value, const struct printed *printed,
                    const struct printed *expected) {
    const char *a = printed->text, *b = expected->text, *source = "";
    while (*a && *b) {
        const size_t a_bytes = strcspn(a, "\n"), b_bytes = strcspn(b, "\n");
        if (strncmp(a, "source", 6) == 0)
            source = a;
        if (a_bytes != b_bytes || memcmp(a, b, a_bytes) != 0) {
            printf("%.*s\n%s: %.*s\nlibrary: %.*s\n", (int)strcspn(source, "\n"), source, value,
                   (int)a_bytes, a, (int)b_bytes, b);
            break;
        }
        a += a_bytes + 1;
        b += b_bytes + 1;
    }
    CHECK(strcmp(printed->text, expected->text) == 0);
}

static void lanes_read_as_libdeflate_does(void) {
    static const char *const values[] = {"lanes", "default"};
    const struct printed expected = print_with("library");
    CHECK(expected.bytes > 10000);
    CHECK(expected.decoded == 0 && expected.refused == 0);
    for (int i = 0; i < 2; i++) {
        const struct printed printed = print_with(values[i]);
        compare(values[i], &printed, &expected);
        CHECK(printed.decoded > 1000 && printed.refused > 100);
        free(printed.text);
    }
    free(expected.text);
}

TESTS(read_lanes) {
    if (test_argc > 1 && strcmp(test_argv[1], "print") == 0)
        print_all();
    else if (lanes_can_run())
        RUN(lanes_read_as_libdeflate_does);
    return FINISH();
}

#else
TESTS(read_lanes) {
    return FINISH();
}
#endif
