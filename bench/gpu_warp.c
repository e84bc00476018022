/*
 * Warps on the device alone, measured: a synthetic source of SIDE x SIDE pixels into a target that
 * is rotated a little, scaled and curved against it, as UTM against Web Mercator. What is timed, by
 * events on the stream, is one launch; source, target and coordinates are on the device. "copy" is
 * a kernel that copies the same bytes.
 *
 *     bench_gpu_warp [--emu] [--repeats=9] [--side=10000] [--interleaved] [WORD...]
 *
 * Prints a line of JSON for each case, and a table at the end. WORDs select cases: "cubic float32".
 * With --interleaved, bands of a pixel are side by side. Windows of each result are compared with
 * the CPU's, bit by bit.
 */
#include "gpu_bench.h"

#include "cpu/warp.h"
#include "kernels/copy_rows/copy_rows_args.h"
#include "kernels/warp/warp_args.h"

#include <math.h>

enum { BANDS_MAX = 3, CASES_MAX = 128, CHECKS = 24, CHECK_WIDTH = 100, CHECK_HEIGHT = 40 };

static struct {
    uint32_t side;
    bool is_interleaved;
    const char *words[16];
    uint32_t word_count;
} settings = {.side = 10000};

/* A source on both sides, and memory for targets. */
struct bench {
    cogpu_gpu *gpu;
    cogpu_gpu_stream *stream;
    cogpu_pool *pool;
    cogpu_raster source, device_source;
    uint8_t *result; /* pinned: a target */
    void *target, *valid;
};

/* One case. */
struct warp_case {
    struct bench *bench;
    cogpu_warp warp;
    cogpu_warp_band rules[BANDS_MAX];
    uint8_t fill[BANDS_MAX][16];
    cogpu_coordinates coordinates;
    cogpu_raster target;
    struct cogpu_warp_launch launch;
    char name[96];
};

static struct {
    char name[96];
    double ms, gpx;
    uint32_t wrong;
} table[CASES_MAX];
static uint32_t table_rows;

static uint64_t raster_bytes(const cogpu_raster *raster) {
    return (uint64_t)raster->bands * raster->height * raster->width *
           cogpu_type_bytes(raster->type);
}

static cogpu_raster packed_raster(cogpu_type type, uint32_t bands, uint32_t side, void *data) {
    const int64_t size = (int64_t)cogpu_type_bytes(type), count = side;
    cogpu_raster raster = {.struct_size = sizeof raster,
                           .data = data,
                           .type = type,
                           .bands = bands,
                           .height = side,
                           .width = side,
                           .stride_x = size,
                           .stride_y = size * count,
                           .stride_band = size * count * count};
    if (settings.is_interleaved) {
        raster.stride_band = size;
        raster.stride_x = size * bands;
        raster.stride_y = size * bands * count;
    }
    return raster;
}

/* ---- the source ---- */

/* Noise on a slope; one of 20 areas of 64 x 64 pixels is nodata. */
static double sample_at(uint32_t x, uint32_t y, uint32_t band, double nodata) {
    uint32_t noise = (x * 2654435761u) ^ (y * 2246822519u) ^ (band * 3266489917u);
    noise = (noise ^ noise >> 15) * 2654435769u;
    if ((x / 64 * 7 + y / 64 * 13) % 20 == 0)
        return nodata;
    return 1 + (x / 97 + y / 61) % 150 + (noise >> 28);
}

static void fill_row(void *argument, uint32_t worker, uint64_t index) {
    const cogpu_raster *source = argument;
    const uint32_t band = (uint32_t)(index / source->height),
                   y = (uint32_t)(index % source->height);
    uint8_t *at = (uint8_t *)source->data + band * source->stride_band + y * source->stride_y;
    (void)worker;
    for (uint32_t x = 0; x < source->width; x++, at += source->stride_x) {
        double value = sample_at(x, y, band, source->type == COGPU_TYPE_F32 ? -9999 : 0);
        float f = (float)value + 0.25F * (value > 0);
        uint16_t u = (uint16_t)(value * 100);
        uint8_t b = (uint8_t)value;
        memcpy(at,
               source->type == COGPU_TYPE_F32   ? (void *)&f
               : source->type == COGPU_TYPE_U16 ? (void *)&u
                                                : (void *)&b,
               cogpu_type_bytes(source->type));
    }
}

static void open_source(struct bench *bench, cogpu_type type, uint32_t bands) {
    const cogpu_gpu_driver *calls = bench->gpu->calls;
    bench->source = packed_raster(type, bands, settings.side, NULL);
    const uint64_t bytes = raster_bytes(&bench->source);
    bench->source.data = pinned(bench->gpu, bytes);
    bench->result = pinned(bench->gpu, bytes);
    cogpu_pool_run(bench->pool, cogpu_pool_threads(bench->pool), (uint64_t)bands * settings.side,
                   fill_row, &bench->source);
    bench->device_source = bench->source;
    bench->device_source.data = on_device(bench->gpu, bytes);
    bench->target = on_device(bench->gpu, bytes);
    bench->valid = on_device(bench->gpu, (uint64_t)bands * settings.side * settings.side);
    need(calls->copy_up(bench->gpu, bench->device_source.data, bench->source.data, bytes,
                        bench->stream, &error));
    need(calls->finish_stream(bench->gpu, bench->stream, &error));
}

static void close_source(struct bench *bench) {
    const cogpu_gpu_driver *calls = bench->gpu->calls;
    calls->release_pinned(bench->gpu, bench->source.data);
    calls->release_pinned(bench->gpu, bench->result);
    calls->release(bench->gpu, bench->device_source.data);
    calls->release(bench->gpu, bench->target);
    calls->release(bench->gpu, bench->valid);
}

/* ---- cases ---- */

/* `step`: source pixels to one of the target. */
static void open_coordinates(struct warp_case *at, uint32_t side, bool of_corners, double step) {
    const double angle = 0.021, c = step * cos(angle), s = step * sin(angle);
    const uint32_t cells = (side + 15) / 16;
    double *nodes = need_memory(malloc((size_t)(cells + 1) * (cells + 1) * 2 * sizeof *nodes));
    uint32_t *cell_tables = need_memory(malloc((size_t)cells * cells * sizeof *cell_tables));
    for (uint32_t i = 0; i < (cells + 1) * (cells + 1); i++) {
        double x = 16.0 * (i % (cells + 1)) + 0.37, y = 16.0 * (i / (cells + 1)) + 0.61;
        double bend = 2e-7 * (x - side / 2.0) * (y - side / 2.0);
        nodes[2 * i] = c * x - s * y + 0.01 * settings.side + bend;
        nodes[2 * i + 1] = s * x + c * y - 0.01 * settings.side - bend;
    }
    for (uint32_t i = 0; i < cells * cells; i++)
        cell_tables[i] = COGPU_CELL_INTERPOLATED;
    at->coordinates = (cogpu_coordinates){.width = side,
                                          .height = side,
                                          .of_corners = of_corners,
                                          .across = cells,
                                          .down = cells,
                                          .nodes = nodes,
                                          .cells = cell_tables};
}

static cogpu_warp_job job_of(const struct warp_case *at, const cogpu_raster *source,
                             const cogpu_raster *target) {
    return (cogpu_warp_job){.warp = &at->warp,
                            .coordinates = &at->coordinates,
                            .source = source,
                            .target = target,
                            .fill = at->fill};
}

enum { CHECK_CELLS = CHECK_WIDTH / 16 + 2 };

/* The cells of `whole` that a window touches. */
static cogpu_coordinates coordinates_of_window(const cogpu_coordinates *whole, uint32_t x,
                                               uint32_t y, uint32_t width, uint32_t height) {
    static double nodes[2 * (CHECK_CELLS + 1) * (CHECK_CELLS + 1)];
    static uint32_t cells[CHECK_CELLS * CHECK_CELLS];
    cogpu_coordinates part = *whole;
    part.x = x;
    part.y = y;
    part.width = width;
    part.height = height;
    part.first_cell_x = x / 16;
    part.first_cell_y = y / 16;
    part.across = (x + width - 1) / 16 - part.first_cell_x + 1;
    part.down = (y + height - 1) / 16 - part.first_cell_y + 1;
    for (uint32_t j = 0; j <= part.down; j++)
        memcpy(nodes + (size_t)2 * j * (part.across + 1),
               whole->nodes +
                   2 * ((size_t)(part.first_cell_y + j) * (whole->across + 1) + part.first_cell_x),
               (part.across + 1) * 2 * sizeof *nodes);
    memset(cells, 0xff, sizeof cells);
    part.nodes = nodes;
    part.cells = cells;
    return part;
}

/* Samples of windows that differ from the CPU's. */
static uint32_t count_wrong(struct warp_case *at, const cogpu_raster *result) {
    static uint8_t memory[BANDS_MAX * CHECK_WIDTH * CHECK_HEIGHT * 8];
    const cogpu_coordinates whole = at->coordinates;
    const size_t size = cogpu_type_bytes(result->type);
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < CHECKS; i++) {
        cogpu_raster window = packed_raster(result->type, result->bands, CHECK_WIDTH, memory);
        window.height = CHECK_HEIGHT;
        window.width = result->width < CHECK_WIDTH ? result->width : CHECK_WIDTH;
        window.height = result->height < CHECK_HEIGHT ? result->height : CHECK_HEIGHT;
        at->coordinates = coordinates_of_window(
            &whole, (uint32_t)((uint64_t)i * 7919 * 131 % (whole.width - window.width + 1)),
            (uint32_t)((uint64_t)i * 104729 * 17 % (whole.height - window.height + 1)),
            window.width, window.height);
        const cogpu_warp_job job = job_of(at, &at->bench->source, &window);
        need(cogpu_cpu_warp(&job, at->bench->pool, cogpu_pool_threads(at->bench->pool), &error));
        for (uint32_t j = 0; j < result->bands * window.height * window.width; j++) {
            uint32_t b = j / (window.height * window.width), x = j % window.width;
            uint32_t y = j / window.width % window.height;
            const uint8_t *got = (uint8_t *)result->data + b * result->stride_band +
                                 (at->coordinates.y + y) * result->stride_y +
                                 (at->coordinates.x + x) * result->stride_x;
            wrong +=
                memcmp(memory + b * window.stride_band + y * window.stride_y + x * window.stride_x,
                       got, size) != 0;
        }
        at->coordinates = whole;
    }
    return wrong;
}

static cogpu_status launch_case(void *subject) {
    const struct warp_case *at = subject;
    return at->bench->gpu->calls->launch(at->bench->gpu, at->launch.kernel, at->launch.blocks,
                                         &at->launch.args, at->bench->stream, &error);
}

static cogpu_status copy_case(void *subject) {
    const struct warp_case *at = subject;
    return cogpu_gpu_copy_rows(at->bench->gpu, &at->bench->device_source, &at->target,
                               at->target.height, at->bench->stream, &error);
}

static void report(const char *name, const char *kernel, const struct turn *turn, double pixels,
                   uint32_t wrong) {
    double ms = (double)turn->times[turn->taken / 2], gpx = ms > 0 ? pixels / ms / 1e6 : 0;
    printf(
        "{\"case\": \"%s\", \"kernel\": \"%s\", \"ms\": %.4f, \"ms_min\": %.4f, \"gpx_s\": %.2f, "
        "\"wrong\": %u}\n",
        name, kernel, ms, (double)turn->times[0], gpx, wrong);
    fflush(stdout);
    snprintf(table[table_rows].name, sizeof table->name, "%s", name);
    table[table_rows].ms = ms;
    table[table_rows].gpx = gpx;
    table[table_rows].wrong = wrong;
    table_rows += table_rows + 1 < CASES_MAX;
}

static bool is_selected(const char *name) {
    for (uint32_t i = 0; i < settings.word_count; i++)
        if (!strstr(name, settings.words[i]))
            return false;
    return true;
}

static void measure_launch(struct warp_case *at, const char *name,
                           cogpu_status (*work)(void *subject), bool is_checked) {
    struct bench *bench = at->bench;
    const cogpu_gpu_driver *calls = bench->gpu->calls;
    struct turn turn = {
        .work = work, .subject = at, .times = need_memory(calloc(options.repeats, sizeof(float)))};
    cogpu_raster result = at->target;
    uint32_t wrong = 0;
    need(calls->clear(bench->gpu, bench->target, raster_bytes(&at->target), bench->stream, &error));
    time_all(bench->gpu, bench->stream, &turn, 1);
    if (is_checked) {
        result.data = bench->result;
        need(calls->copy_down(bench->gpu, bench->result, bench->target, raster_bytes(&result),
                              bench->stream, &error));
        need(calls->finish_stream(bench->gpu, bench->stream, &error));
        wrong = count_wrong(at, &result);
    }
    report(name, is_checked ? at->launch.kernel->name : "cogpu_kernel_copy_rows", &turn,
           (double)at->target.width * at->target.height, wrong);
    free(turn.times);
}

/* ---- all cases ---- */

struct method {
    const char *name;
    cogpu_resampling method;
    double step;
};

static void measure_case(struct bench *bench, const struct method *method, bool has_nodata) {
    struct warp_case at = {.bench = bench};
    const uint32_t side = (uint32_t)(settings.side / floor(method->step + 0.5));
    const cogpu_type type = bench->source.type;
    const bool is_area = method->method == COGPU_RESAMPLE_AVERAGE ||
                         method->method == COGPU_RESAMPLE_MODE ||
                         method->method == COGPU_RESAMPLE_MEDIAN;
    snprintf(at.name, sizeof at.name, "%s %s x %u%s", method->name, cogpu_type_name(type),
             bench->source.bands, has_nodata ? " nodata" : "");
    if (!is_selected(at.name))
        return;
    at.warp = (cogpu_warp){.method = method->method,
                           .bands = bench->source.bands,
                           .from_type = type,
                           .to_type = type,
                           .level_width = settings.side,
                           .level_height = settings.side,
                           .scale_x = method->step < 1 ? 1 : 1 / method->step,
                           .scale_y = method->step < 1 ? 1 : 1 / method->step,
                           .rules = at.rules,
                           .has_nodata = has_nodata};
    for (uint32_t i = 0; i < at.warp.bands && has_nodata; i++)
        at.rules[i] = (cogpu_warp_band){.has_nodata = true,
                                        .nodata = type == COGPU_TYPE_F32 ? -9999 : 0,
                                        .avoids = true,
                                        .avoided = type == COGPU_TYPE_F32 ? -9999 : 0};
    at.target = packed_raster(type, at.warp.bands, side, bench->target);
    open_coordinates(&at, side, is_area, method->step);
    const cogpu_warp_job job = job_of(&at, &bench->device_source, &at.target);
    const uint64_t bytes = cogpu_gpu_warp_table_bytes(&job);
    void *host_table = pinned(bench->gpu, bytes), *device_table = on_device(bench->gpu, bytes);
    cogpu_gpu_warp_fill_table(&job, host_table);
    need(bench->gpu->calls->copy_up(bench->gpu, device_table, host_table, bytes, bench->stream,
                                    &error));
    need(cogpu_gpu_warp_prepare(&job, device_table, &at.launch, &error));
    measure_launch(&at, at.name, launch_case, true);
    bench->gpu->calls->release_pinned(bench->gpu, host_table);
    bench->gpu->calls->release(bench->gpu, device_table);
    free((void *)(uintptr_t)at.coordinates.nodes);
    free((void *)(uintptr_t)at.coordinates.cells);
}

static void measure_type(struct bench *bench, cogpu_type type, uint32_t bands) {
    static const struct method methods[] = {{"nearest", COGPU_RESAMPLE_NEAREST, 0.995},
                                            {"bilinear", COGPU_RESAMPLE_BILINEAR, 0.995},
                                            {"cubic", COGPU_RESAMPLE_CUBIC, 0.995},
                                            {"cubicspline", COGPU_RESAMPLE_CUBICSPLINE, 0.995},
                                            {"lanczos", COGPU_RESAMPLE_LANCZOS, 0.995},
                                            {"average-2", COGPU_RESAMPLE_AVERAGE, 1.99},
                                            {"average-4", COGPU_RESAMPLE_AVERAGE, 3.99},
                                            {"bilinear-2", COGPU_RESAMPLE_BILINEAR, 1.99},
                                            {"mode-2", COGPU_RESAMPLE_MODE, 1.99},
                                            {"median-2", COGPU_RESAMPLE_MEDIAN, 1.99}};
    struct warp_case copy = {.bench = bench};
    open_source(bench, type, bands);
    copy.target = packed_raster(type, bands, settings.side, bench->target);
    snprintf(copy.name, sizeof copy.name, "copy %s x %u", cogpu_type_name(type), bands);
    if (is_selected(copy.name))
        measure_launch(&copy, copy.name, copy_case, false);
    for (uint32_t i = 0; i < 2 * sizeof methods / sizeof *methods; i++)
        measure_case(bench, &methods[i / 2], i % 2);
    close_source(bench);
}

static bool take_word(const char *word) {
    if (strncmp(word, "--side=", 7) == 0)
        settings.side = (uint32_t)strtoul(word + 7, NULL, 10);
    else if (strcmp(word, "--interleaved") == 0)
        settings.is_interleaved = true;
    else if (word[0] != '-' && settings.word_count < 16)
        settings.words[settings.word_count++] = word;
    else
        return take_option(word);
    return settings.side >= 16 && settings.side <= 40000;
}

int main(int count, char **words) {
    struct bench bench = {0};
    uint32_t wrong = 0;
    for (int i = 1; i < count; i++)
        if (!take_word(words[i])) {
            fprintf(stderr, "bench_gpu_warp [--emu] [--repeats=9] [--side=10000] [--interleaved] "
                            "[--variants] [WORD...]\n");
            return 2;
        }
    open_device(&bench.gpu, &bench.pool);
    need(bench.gpu->calls->stream_open(bench.gpu, true, &bench.stream, &error));
    measure_type(&bench, COGPU_TYPE_F32, 1);
    measure_type(&bench, COGPU_TYPE_U16, 1);
    measure_type(&bench, COGPU_TYPE_U8, BANDS_MAX);
    printf("\n%-48s %10s %10s\n", bench.gpu->name, "ms", "Gpx/s");
    for (uint32_t i = 0; i < table_rows; i++) {
        printf("%-48s %10.3f %10.1f%s\n", table[i].name, table[i].ms, table[i].gpx,
               table[i].wrong ? "  WRONG" : "");
        wrong += table[i].wrong;
    }
    bench.gpu->calls->stream_close(bench.gpu, bench.stream);
    cogpu_pool_close(bench.pool);
    bench.gpu->calls->close(bench.gpu);
    return wrong ? 1 : 0;
}
