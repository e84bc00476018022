/*
 * The writing steps of the CUDA backend alone, measured: pack, encode, compact. Takes raster files,
 * enlarges each (or crops it) to --side pixels, and prints a line of JSON for each step and
 * contender: our encoders, and nvCOMP's of deflate and zstd where libnvcomp.so.5 is found (or the
 * library that COGPU_NVCOMP names).
 *
 * The raster is packed into tiles of 512, which make one batch and stay on the device, so what is
 * timed, by events on the stream, is the step and nothing else; contenders take turns. Before and
 * after the timed runs the host's codec decodes every stream, from memory that held other bytes
 * before, and the device's pack and compact are compared with what the host makes. Sizes stand
 * beside those of zlib 6, zstd 9 and, for the others, of the host's own encoder, for the same
 * bytes.
 */
#include "gpu_bench.h"

#include "base/bytes.h"
#include "cpu/pack.h"
#include "kernels/compact/compact_args.h"
#include "kernels/pack/pack_args.h"

enum { TILE = 512, CHECKS = 3, RUNS_MAX = 4 };

static uint32_t side = 8192;
/* All where it is NULL, or -1. */
static const char *only_codec;
static int only_level = -1, only_predictor = -1;

/* What is encoded how; level 0 where the codec has none. Of nvCOMP's deflate, algorithm 4
 * takes too long to be compared. */
static const struct job {
    uint32_t compression;
    int level;
    const char *beside; /* whose sizes ours stand beside */
    uint32_t variants;  /* of nvCOMP's encoder: so many algorithms from this one on */
    int algorithm;
} jobs[] = {
    {COMPRESSION_DEFLATE, 6, "zlib 6", 3, 0},
    {COMPRESSION_DEFLATE, 7, "zlib 6", 1, 2},
    {COMPRESSION_DEFLATE, 8, "zlib 6", 1, 2},
    {COMPRESSION_DEFLATE, 9, "zlib 6", 1, 2},
    {COMPRESSION_ZSTD, 9, "zstd 9", 1, 0},
    {COMPRESSION_LZW, 0, "host lzw", 0, 0},
    {COMPRESSION_PACKBITS, 0, "host packbits", 0, 0},
};

/* A raster packed with a predictor. All tiles have the same size, decoded bytes lie `in_stride`
 * apart. Memory on the host that is copied to and from the device is pinned. */
struct bench {
    const char *name;
    cogpu_gpu *gpu;
    cogpu_gpu_stream *stream;
    cogpu_pool *pool;
    cogpu_raster raster, device_raster;
    cogpu_write_plan plan;
    uint32_t count, wrong; /* tiles; `wrong` in all steps together */
    uint64_t tile_bytes, in_stride;
    cogpu_new_block *tiles;
    struct cogpu_gpu_packing packing;
    struct cogpu_pack_block *packs, *device_packs;
    uint8_t *expected, *device_decoded; /* the latter by the device's pack */
    uint32_t *sizes, *device_sizes;
    int *device_statuses; /* nvCOMP's */
    cogpu_codec_state states[WORKERS_MAX];
};

static void finish(const struct bench *bench) {
    need(bench->gpu->calls->finish_stream(bench->gpu, bench->stream, &error));
}

static void copy_up(const struct bench *bench, void *to, const void *from, uint64_t bytes) {
    need(bench->gpu->calls->copy_up(bench->gpu, to, from, bytes, bench->stream, &error));
}

static void copy_down(const struct bench *bench, void *to, const void *from, uint64_t bytes) {
    need(bench->gpu->calls->copy_down(bench->gpu, to, from, bytes, bench->stream, &error));
}

static uint64_t in_of(const struct bench *bench, uint64_t index) {
    return COGPU_GPU_ALIGN + index * bench->in_stride;
}

static void for_each_tile(struct bench *bench, cogpu_pool_function *work, void *argument) {
    cogpu_pool_run(bench->pool, cogpu_pool_threads(bench->pool), bench->count, work, argument);
}

static void print_head(const struct bench *bench, const char *who, const char *step) {
    printf("{\"file\": \"%s\", \"device\": \"%s\", \"who\": \"%s\", \"step\": \"%s\", "
           "\"predictor\": %u, \"blocks\": %u, \"decoded_bytes\": %llu, ",
           bench->name, bench->gpu->name, who, step, bench->plan.predictor, bench->count,
           (unsigned long long)(bench->count * bench->tile_bytes));
}

/* ---- the raster ---------------------------------------------------------------------------- */

struct enlarging {
    const uint8_t *from;
    uint32_t width, height;
    uint8_t *to;
    size_t pixel;
};

/* A row of the large raster, as rasters.py makes it: no tile holds a row of the file twice. */
static void enlarge_row(void *argument, uint32_t worker, uint64_t row) {
    const struct enlarging *e = argument;
    (void)worker;
    for (uint32_t column = 0; column < side; column++) {
        uint32_t j = column / e->width, x = column % e->width;
        uint64_t down = row + (uint64_t)j * (e->height / 9), i = down / e->height;
        uint64_t from = down % e->height * e->width + ((i + j) % 2 ? e->width - 1 - x : x);
        memcpy(e->to + (row * side + column) * e->pixel, e->from + from * e->pixel, e->pixel);
    }
}

static void load(struct bench *bench, const char *path) {
    cogpu_file *file;
    cogpu_image image = COGPU_IMAGE_INIT;
    need(cogpu_open(path, NULL, &file, &error));
    need(cogpu_image_info(file, 0, &image, &error));
    struct enlarging e = {.width = image.width,
                          .height = image.height,
                          .pixel = image.bands * cogpu_type_bytes(image.type)};
    uint64_t bytes = (uint64_t)side * side * e.pixel;
    uint8_t *from = need_memory(malloc((size_t)image.width * image.height * e.pixel));
    cogpu_raster small = {.struct_size = sizeof(cogpu_raster),
                          .data = from,
                          .type = image.type,
                          .bands = image.bands,
                          .width = image.width,
                          .height = image.height,
                          .stride_band = (int64_t)cogpu_type_bytes(image.type),
                          .stride_x = (int64_t)e.pixel,
                          .stride_y = (int64_t)e.pixel * image.width};
    need(cogpu_read(file, NULL, &small, NULL, &error));
    cogpu_close(file);
    e.from = from;
    e.to = pinned(bench->gpu, bytes);
    cogpu_pool_run(bench->pool, cogpu_pool_threads(bench->pool), side, enlarge_row, &e);
    free(from);
    bench->name = name_of(path);
    bench->raster = small;
    bench->raster.data = e.to;
    bench->raster.width = bench->raster.height = side;
    bench->raster.stride_y = (int64_t)e.pixel * side;
    bench->device_raster = bench->raster;
    bench->device_raster.data = on_device(bench->gpu, bytes);
    copy_up(bench, bench->device_raster.data, e.to, bytes);
    finish(bench);
}

/* ---- pack ----------------------------------------------------------------------------------- */

static void cut_on_host(void *argument, uint32_t worker, uint64_t index) {
    struct bench *bench = argument;
    const cogpu_write_plan *plan = &bench->plan;
    const struct cogpu_pack_block *pack = &bench->packs[index];
    cogpu_raster from = bench->raster;
    uint8_t *to = bench->expected + pack->to;
    size_t row_bytes = bench->tile_bytes / TILE;
    uint8_t *spare = need_memory(malloc(row_bytes));
    (void)worker;
    from.data = (uint8_t *)from.data + pack->y * from.stride_y + pack->x * from.stride_x;
    from.width = pack->width;
    from.height = pack->height;
    cogpu_cpu_pack_block(plan, &plan->levels[0], &bench->tiles[index], &from, to);
    cogpu_cpu_predict(plan, to, TILE, row_bytes, spare);
    memset(to + bench->tile_bytes, GUARD, bench->in_stride - bench->tile_bytes);
    free(spare);
}

static cogpu_status pack(void *subject) {
    struct bench *bench = subject;
    return cogpu_gpu_pack(bench->gpu, &bench->packing, bench->device_packs, bench->packs,
                          bench->count, bench->device_decoded, bench->device_sizes, bench->stream,
                          &error);
}

static void lay_out_tiles(struct bench *bench) {
    const cogpu_block_grid *grid = &bench->plan.levels[0];
    size_t bytes = 0;
    bench->count = grid->across * grid->down;
    bench->tiles = need_memory(calloc(bench->count, sizeof *bench->tiles));
    bench->packs = pinned(bench->gpu, bench->count * sizeof *bench->packs);
    for (uint32_t i = 0; i < bench->count; i++) {
        bench->tiles[i] =
            cogpu_plan_new_block(&bench->plan, grid, i / grid->across, i % grid->across, 0);
        cogpu_plan_encoding(&bench->plan, grid, &bench->tiles[i], &bytes);
        bench->tile_bytes = bytes;
        bench->in_stride = align(bytes, COGPU_GPU_ALIGN) + COGPU_GPU_ALIGN;
        bench->packs[i] = cogpu_gpu_pack_block_of(&bench->plan, grid, &bench->tiles[i], 0,
                                                  in_of(bench, i), COGPU_GPU_TO_ENCODE);
    }
}

/* Cuts on the device into memory full of guards, and compares it with what the host packs, which is
 * put into `expected`. Hands back how many tiles are wrong. */
static uint32_t check_cut(struct bench *bench) {
    uint64_t bytes = in_of(bench, bench->count);
    uint8_t *got = pinned(bench->gpu, bytes);
    uint32_t wrong = 0;
    memset(got, GUARD, bytes);
    memset(bench->expected, GUARD, COGPU_GPU_ALIGN);
    for_each_tile(bench, cut_on_host, bench);
    copy_up(bench, bench->device_decoded, got, bytes);
    need(pack(bench));
    copy_down(bench, got, bench->device_decoded, bytes);
    finish(bench);
    for (uint32_t i = 0; i < bench->count; i++)
        wrong +=
            memcmp(got + in_of(bench, i), bench->expected + in_of(bench, i), bench->in_stride) != 0;
    bench->gpu->calls->release_pinned(bench->gpu, got);
    return wrong;
}

static void open_cut(struct bench *bench, uint32_t predictor) {
    cogpu_gpu *gpu = bench->gpu;
    cogpu_profile profile = {.struct_size = sizeof(cogpu_profile),
                             .width = side,
                             .height = side,
                             .bands = bench->raster.bands,
                             .type = bench->raster.type,
                             .block_width = TILE,
                             .block_height = TILE,
                             .codec = predictor > 1 ? "lzw" : "packbits",
                             .predictor = (int)predictor};
    need(cogpu_plan_write(&profile, &bench->plan, &error));
    lay_out_tiles(bench);
    bench->expected = need_memory(malloc(in_of(bench, bench->count)));
    bench->device_decoded = on_device(gpu, in_of(bench, bench->count));
    bench->device_packs = on_device(gpu, bench->count * sizeof *bench->packs);
    bench->sizes = pinned(gpu, bench->count * sizeof *bench->sizes);
    bench->device_sizes = on_device(gpu, bench->count * sizeof *bench->sizes);
    bench->device_statuses = on_device(gpu, bench->count * sizeof *bench->device_statuses);
    copy_up(bench, bench->device_packs, bench->packs, bench->count * sizeof *bench->packs);
    need(cogpu_gpu_describe_packing(&bench->plan, &bench->plan.levels[0], &bench->device_raster,
                                    NULL, &bench->packing, &error));
}

static void close_cut(struct bench *bench) {
    const cogpu_gpu_driver *calls = bench->gpu->calls;
    calls->release(bench->gpu, bench->device_decoded);
    calls->release(bench->gpu, bench->device_packs);
    calls->release(bench->gpu, bench->device_sizes);
    calls->release(bench->gpu, bench->device_statuses);
    calls->release_pinned(bench->gpu, bench->sizes);
    calls->release_pinned(bench->gpu, bench->packs);
    free(bench->expected);
    free(bench->tiles);
}

static void measure_cut(struct bench *bench) {
    float *times = need_memory(calloc(options.repeats, sizeof *times));
    struct turn turn = {.work = pack, .subject = bench, .times = times};
    uint32_t wrong = check_cut(bench);
    bench->wrong += wrong;
    time_all(bench->gpu, bench->stream, &turn, 1);
    print_head(bench, "cogpu", "pack");
    print_times(&turn, bench->count * bench->tile_bytes);
    printf(", \"wrong\": %u}\n", wrong);
    free(times);
}

/* ---- contenders ---------------------------------------------------------------------------- */

struct nvcomp {
    int (*scratch)(size_t count, size_t in_most, struct nvcomp_options options, size_t *bytes,
                   size_t in_all);
    int (*room)(size_t in_most, struct nvcomp_options options, size_t *bytes);
    int (*encode)(const void *const *in, const size_t *in_bytes, size_t in_most, size_t count,
                  void *scratch, size_t scratch_bytes, void *const *out, size_t *out_bytes,
                  struct nvcomp_options options, int *statuses, void *stream);
    struct nvcomp_options options;
    uint64_t *lists; /* on the device: four of a word a tile, for `encode` in its order */
};

/* An encoder at work: its memory, and what was found of it. */
struct run {
    struct bench *bench;
    const struct job *job;
    const char *who;
    struct nvcomp *nvcomp; /* NULL: ours */
    uint64_t room, stride; /* of slots */
    uint8_t *slots, *device_slots;
    cogpu_raw_block *blocks, *device_blocks;
    void *scratch;
    uint64_t scratch_bytes, stored_bytes;
    uint64_t *prints; /* of streams: the same in each check */
    bool is_first;
    uint32_t wrong[WORKERS_MAX], unsteady[WORKERS_MAX]; /* tiles, as each thread found */
};

static uint64_t out_of(const struct run *run, uint64_t index) {
    return COGPU_GPU_ALIGN + index * run->stride;
}

static cogpu_gpu_encoding encoding_of(const struct run *run) {
    const struct bench *bench = run->bench;
    return (cogpu_gpu_encoding){.gpu = bench->gpu,
                                .stream = bench->stream,
                                .blocks = run->blocks,
                                .count = bench->count,
                                .device_blocks = run->device_blocks,
                                .decoded = bench->device_decoded,
                                .slots = run->device_slots,
                                .sizes = bench->device_sizes,
                                .level = run->job->level,
                                .scratch = run->scratch,
                                .scratch_bytes = run->scratch_bytes};
}

static cogpu_status encode(void *subject) {
    const struct run *run = subject;
    const cogpu_gpu_encoding encoding = encoding_of(run);
    return cogpu_gpu_encoder_of(run->bench->gpu, run->job->compression)->encode(&encoding, &error);
}

static cogpu_status nvcomp_encode(void *subject) {
    const struct run *run = subject;
    const struct bench *bench = run->bench;
    const struct nvcomp *nvcomp = run->nvcomp;
    size_t count = bench->count;
    int status = nvcomp->encode(
        (const void *const *)nvcomp->lists, nvcomp->lists + count, bench->tile_bytes, count,
        run->scratch, run->scratch_bytes, (void *const *)(nvcomp->lists + 2 * count),
        nvcomp->lists + 3 * count, nvcomp->options, bench->device_statuses, bench->stream);
    return status == 0
               ? COGPU_OK
               : cogpu_fail(&error, COGPU_DEVICE_ERROR, "nvCOMP fails with status %d", status);
}

static void open_slots(struct run *run, uint64_t room) {
    struct bench *bench = run->bench;
    run->room = room;
    run->stride = align(room, COGPU_GPU_ALIGN) + COGPU_GPU_ALIGN;
    run->slots = pinned(bench->gpu, out_of(run, bench->count));
    run->device_slots = on_device(bench->gpu, out_of(run, bench->count));
    run->prints = need_memory(calloc(bench->count, sizeof *run->prints));
}

static void open_ours(struct run *run) {
    struct bench *bench = run->bench;
    const cogpu_gpu_encoder *encoder = cogpu_gpu_encoder_of(run->bench->gpu, run->job->compression);
    uint64_t least, best, list_bytes = bench->count * sizeof *run->blocks;
    uint64_t row_bytes = bench->tile_bytes / TILE;
    /* Predictor 3 leaves planes of bytes. */
    uint32_t step = (uint32_t)(bench->plan.predictor == 3 ? 1 : bench->plan.pixel_bytes);
    open_slots(run, encoder->bound(bench->tile_bytes, row_bytes));
    run->blocks = pinned(bench->gpu, list_bytes);
    for (uint32_t i = 0; i < bench->count; i++)
        run->blocks[i] = (cogpu_raw_block){.in = in_of(bench, i),
                                           .out = out_of(run, i),
                                           .in_bytes = (uint32_t)bench->tile_bytes,
                                           .capacity = (uint32_t)run->room,
                                           .step = step,
                                           .row_bytes = (uint32_t)row_bytes};
    encoder->scratch(run->blocks, bench->count, run->job->level, &least, &best);
    run->scratch_bytes = options.least_scratch ? least : best;
    run->scratch = on_device(bench->gpu, run->scratch_bytes + 1);
    run->device_blocks = on_device(bench->gpu, list_bytes);
    copy_up(bench, run->device_blocks, run->blocks, list_bytes);
}

static void close_run(struct run *run) {
    cogpu_gpu *gpu = run->bench->gpu;
    gpu->calls->release(gpu, run->scratch);
    gpu->calls->release(gpu, run->device_slots);
    gpu->calls->release_pinned(gpu, run->slots);
    if (run->nvcomp) {
        gpu->calls->release(gpu, run->nvcomp->lists);
    } else {
        gpu->calls->release(gpu, run->device_blocks);
        gpu->calls->release_pinned(gpu, run->blocks);
    }
    free(run->prints);
}

/* False where this nvCOMP has no such encoder, or it does not take this work on. */
static bool open_nvcomp(struct run *run) {
    struct bench *bench = run->bench;
    struct nvcomp *nvcomp = run->nvcomp;
    uint32_t compression = run->job->compression, count = bench->count;
    size_t room, bytes = 4 * count * sizeof(uint64_t);
    if (!nvcomp_find(compression, "CompressGetTempSizeAsync", (void *)&nvcomp->scratch) ||
        !nvcomp_find(compression, "CompressGetMaxOutputChunkSize", (void *)&nvcomp->room) ||
        !nvcomp_find(compression, "CompressAsync", (void *)&nvcomp->encode) ||
        nvcomp->room(bench->tile_bytes, nvcomp->options, &room) != 0 ||
        nvcomp->scratch(count, bench->tile_bytes, nvcomp->options, &run->scratch_bytes,
                        count * bench->tile_bytes) != 0)
        return false;
    open_slots(run, room);
    run->scratch = on_device(bench->gpu, run->scratch_bytes + 1);
    uint64_t *lists = pinned(bench->gpu, bytes);
    for (uint32_t i = 0; i < count; i++) {
        lists[i] = (uintptr_t)bench->device_decoded + in_of(bench, i);
        lists[count + i] = bench->tile_bytes;
        lists[2 * count + i] = (uintptr_t)run->device_slots + out_of(run, i);
        lists[3 * count + i] = 0; /* what it encodes to goes here */
    }
    nvcomp->lists = on_device(bench->gpu, bytes);
    copy_up(bench, nvcomp->lists, lists, bytes);
    finish(bench);
    bench->gpu->calls->release_pinned(bench->gpu, lists);
    bool is_able = nvcomp_encode(run) == COGPU_OK;
    if (!is_able) {
        fprintf(stderr, "bench: algorithm %d: %s\n", nvcomp->options.first, error.message);
        close_run(run);
    }
    return is_able;
}

/* ---- whether streams are right ------------------------------------------------------------- */

static uint32_t adler32(const uint8_t *bytes, uint64_t count) {
    uint32_t low = 1, high = 0;
    for (uint64_t i = 0; i < count; i++) {
        low = (low + bytes[i]) % 65521;
        high = (high + low) % 65521;
    }
    return high << 16 | low;
}

/* Puts round deflate what zlib has there. */
static uint8_t *as_zlib(const uint8_t *stream, uint32_t bytes, const uint8_t *decoded,
                        uint64_t decoded_bytes) {
    uint8_t *whole = need_memory(malloc(ZLIB_HEAD + (size_t)bytes + ZLIB_TAIL));
    uint32_t sum = adler32(decoded, decoded_bytes);
    whole[0] = 0x78;
    whole[1] = 0x9C;
    memcpy(whole + ZLIB_HEAD, stream, bytes);
    for (uint32_t i = 0; i < ZLIB_TAIL; i++)
        whole[ZLIB_HEAD + bytes + i] = (uint8_t)(sum >> (24 - 8 * i));
    return whole;
}

/* Whether the host's codec makes of a stream the decoded bytes of its tile. */
static bool decodes(struct run *run, uint32_t worker, const uint8_t *stream, uint32_t bytes,
                    const uint8_t *decoded) {
    struct bench *bench = run->bench;
    const cogpu_block_grid *grid = &bench->plan.levels[0];
    cogpu_encoding encoding = cogpu_plan_encoding(&bench->plan, grid, bench->tiles, &(size_t){0});
    uint8_t *got = need_memory(malloc(bench->tile_bytes));
    size_t got_bytes = 0;
    encoding.format.compression = run->job->compression;
    bool is_right = cogpu_codec_find(run->job->compression)
                            ->decode(&bench->states[worker], &encoding.format, stream, bytes, got,
                                     bench->tile_bytes, &got_bytes, NULL) == COGPU_OK &&
                    got_bytes == bench->tile_bytes && memcmp(got, decoded, bench->tile_bytes) == 0;
    free(got);
    return is_right;
}

static uint64_t print_of(const uint8_t *bytes, uint64_t count) {
    uint64_t print = 0xCBF29CE484222325;
    for (uint64_t i = 0; i < count; i++)
        print = (print ^ bytes[i]) * 0x100000001B3;
    return print;
}

/* The stream fits, decodes to the tile, has nothing written behind its slot, and is the one of the
 * first time. */
static void check_stream(void *argument, uint32_t worker, uint64_t index) {
    struct run *run = argument;
    struct bench *bench = run->bench;
    const uint8_t *slot = run->slots + out_of(run, index);
    const uint8_t *decoded = bench->expected + in_of(bench, index);
    uint32_t bytes = bench->sizes[index];
    bool is_right = bytes > 0 && bytes <= run->room;
    if (is_right && run->nvcomp && run->job->compression == COMPRESSION_DEFLATE) {
        uint8_t *whole = as_zlib(slot, bytes, decoded, bench->tile_bytes);
        is_right = decodes(run, worker, whole, ZLIB_HEAD + bytes + ZLIB_TAIL, decoded);
        free(whole);
    } else if (is_right) {
        is_right = decodes(run, worker, slot, bytes, decoded);
    }
    for (uint64_t i = run->room; i < run->stride; i++)
        is_right &= slot[i] == GUARD;
    uint64_t print = print_of(slot, is_right ? bytes : 0);
    run->unsteady[worker] += !run->is_first && print != run->prints[index];
    run->prints[index] = print;
    run->wrong[worker] += !is_right;
}

/* nvCOMP's sizes are wider, and without what zlib puts round. */
static void fetch_sizes(struct run *run) {
    struct bench *bench = run->bench;
    uint32_t round = 0;
    if (run->nvcomp) {
        uint64_t *wide = pinned(bench->gpu, bench->count * sizeof *wide);
        copy_down(bench, wide, run->nvcomp->lists + 3 * (size_t)bench->count,
                  bench->count * sizeof *wide);
        finish(bench);
        for (uint32_t i = 0; i < bench->count; i++)
            bench->sizes[i] = (uint32_t)wide[i];
        bench->gpu->calls->release_pinned(bench->gpu, wide);
        round = run->job->compression == COMPRESSION_DEFLATE ? ZLIB_HEAD + ZLIB_TAIL : 0;
    } else {
        copy_down(bench, bench->sizes, bench->device_sizes, bench->count * sizeof *bench->sizes);
        finish(bench);
    }
    run->stored_bytes = (uint64_t)round * bench->count;
    for (uint32_t i = 0; i < bench->count; i++)
        run->stored_bytes += bench->sizes[i];
}

static void check(struct run *run, const struct turn *turn) {
    struct bench *bench = run->bench;
    memset(run->slots, GUARD, out_of(run, bench->count));
    for (uint32_t i = 0; i < bench->count; i++)
        bench->sizes[i] = COGPU_GPU_TO_ENCODE;
    copy_up(bench, run->device_slots, run->slots, out_of(run, bench->count));
    copy_up(bench, bench->device_sizes, bench->sizes, bench->count * sizeof *bench->sizes);
    need(turn->work(run));
    copy_down(bench, run->slots, run->device_slots, out_of(run, bench->count));
    fetch_sizes(run);
    for_each_tile(bench, check_stream, run);
    run->is_first = false;
}

/* ---- sizes of the host's encoders ---------------------------------------------------------- */

struct host_sizes {
    struct bench *bench;
    const struct job *job;
    int (*zlib)(uint8_t *to, unsigned long *room, const uint8_t *from, unsigned long bytes,
                int level);
    size_t (*zstd)(void *to, size_t room, const void *from, size_t bytes, int level);
    uint64_t bytes[WORKERS_MAX];
};

static void encode_on_host(void *argument, uint32_t worker, uint64_t index) {
    struct host_sizes *host = argument;
    struct bench *bench = host->bench;
    const uint8_t *decoded = bench->expected + in_of(bench, index);
    const cogpu_encoder *own = cogpu_codec_find(host->job->compression)->encoder;
    size_t dummy, got = 0, room = 2 * bench->tile_bytes + 1024;
    cogpu_encoding encoding =
        cogpu_plan_encoding(&bench->plan, &bench->plan.levels[0], bench->tiles, &dummy);
    uint8_t *to = need_memory(malloc(room));
    if (host->zlib) {
        unsigned long bytes = room;
        got = host->zlib(to, &bytes, decoded, bench->tile_bytes, 6) == 0 ? bytes : 0;
    } else if (host->zstd) {
        got = host->zstd(to, room, decoded, bench->tile_bytes, 9);
    } else {
        need(own->encode(&bench->states[worker], &encoding, decoded, bench->tile_bytes, to, room,
                         &got, &error));
    }
    host->bytes[worker] += got;
    free(to);
}

/* By zlib and libzstd, if the machine has them; 0 where it has not. */
static uint64_t host_bytes(struct bench *bench, const struct job *job) {
    struct host_sizes host = {.bench = bench, .job = job};
    uint64_t bytes = 0;
    if (job->compression == COMPRESSION_DEFLATE &&
        !find_function(dlopen("libz.so.1", RTLD_NOW), "compress2", (void *)&host.zlib))
        return 0;
    if (job->compression == COMPRESSION_ZSTD &&
        !find_function(dlopen("libzstd.so.1", RTLD_NOW), "ZSTD_compress", (void *)&host.zstd))
        return 0;
    for_each_tile(bench, encode_on_host, &host);
    for (uint32_t i = 0; i < WORKERS_MAX; i++)
        bytes += host.bytes[i];
    return bytes;
}

/* ---- compact ----------------------------------------------------------------------------------
 */

struct packing {
    cogpu_gpu_encoding encoding;
    uint32_t *device_order; /* one tile after the other */
    struct cogpu_compacted_block *device_places;
    uint8_t *device_packed;
};

static cogpu_status compact(void *subject) {
    const struct packing *packing = subject;
    return cogpu_gpu_compact(&packing->encoding, packing->device_order, true,
                             packing->device_places, packing->device_packed, &error);
}

/* Whether a block is where it should be, with what a COG has around it. */
static bool is_packed(const struct run *run, uint32_t index,
                      const struct cogpu_compacted_block *place, uint64_t at,
                      const uint8_t *packed) {
    uint32_t bytes = run->bench->sizes[index];
    const uint8_t *slot = run->slots + out_of(run, index);
    return place->at == at + COGPU_LEADER_BYTES && place->bytes == bytes &&
           load_u32(packed + at, false) == bytes && memcmp(packed + place->at, slot, bytes) == 0 &&
           memcmp(packed + place->at + bytes, slot + bytes - COGPU_TRAILER_BYTES,
                  COGPU_TRAILER_BYTES) == 0;
}

/* Takes our run as its last check left it. */
static void measure_pack(struct run *run) {
    struct bench *bench = run->bench;
    cogpu_gpu *gpu = bench->gpu;
    uint64_t room = cogpu_gpu_compact_bound(run->blocks, bench->count, true), at = 0;
    uint64_t place_bytes = (bench->count + 1) * sizeof(struct cogpu_compacted_block);
    uint64_t order_bytes = bench->count * sizeof(uint32_t);
    struct packing packing = {.encoding = encoding_of(run),
                              .device_order = on_device(gpu, order_bytes),
                              .device_places = on_device(gpu, place_bytes),
                              .device_packed = on_device(gpu, room)};
    uint8_t *packed = pinned(gpu, room);
    struct cogpu_compacted_block *places = pinned(gpu, place_bytes);
    uint32_t *order = pinned(gpu, order_bytes);
    float *times = need_memory(calloc(options.repeats, sizeof *times));
    struct turn turn = {.work = compact, .subject = &packing, .times = times};
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < bench->count; i++)
        order[i] = i;
    copy_up(bench, packing.device_order, order, order_bytes);
    time_all(gpu, bench->stream, &turn, 1);
    copy_down(bench, packed, packing.device_packed, room);
    copy_down(bench, places, packing.device_places, place_bytes);
    finish(bench);
    for (uint32_t i = 0; i < bench->count; at += bench->sizes[i++] + COGPU_BLOCK_OVERHEAD_BYTES)
        wrong += !is_packed(run, i, &places[i], at, packed);
    wrong += places[bench->count].at != at;
    bench->wrong += wrong;
    print_head(bench, "cogpu", "compact");
    printf("\"codec\": \"%s\", \"level\": %d, \"stored_bytes\": %llu, ",
           cogpu_codec_find(run->job->compression)->name, run->job->level, (unsigned long long)at);
    print_times(&turn, bench->count * bench->tile_bytes);
    printf(", \"wrong\": %u}\n", wrong);
    gpu->calls->release(gpu, packing.device_order);
    gpu->calls->release(gpu, packing.device_places);
    gpu->calls->release(gpu, packing.device_packed);
    gpu->calls->release_pinned(gpu, packed);
    gpu->calls->release_pinned(gpu, places);
    gpu->calls->release_pinned(gpu, order);
    free(times);
}

/* ---- measuring ----------------------------------------------------------------------------- */

static void print_run(const struct run *run, const struct turn *turn, uint64_t beside_bytes) {
    struct bench *bench = run->bench;
    uint32_t wrong = 0, unsteady = 0;
    for (uint32_t i = 0; i < WORKERS_MAX; i++) {
        wrong += run->wrong[i];
        unsteady += run->unsteady[i];
    }
    bench->wrong += run->nvcomp ? 0 : wrong + unsteady;
    print_head(bench, run->who, "encode");
    printf("\"codec\": \"%s\", \"level\": %d, \"stored_bytes\": %llu, \"beside\": \"%s\", "
           "\"beside_bytes\": %llu, \"ratio\": %.4f, \"scratch_bytes\": %llu, ",
           cogpu_codec_find(run->job->compression)->name,
           run->nvcomp ? run->nvcomp->options.first : run->job->level,
           (unsigned long long)run->stored_bytes, run->job->beside,
           (unsigned long long)beside_bytes,
           beside_bytes ? (double)run->stored_bytes / (double)beside_bytes : 0,
           (unsigned long long)run->scratch_bytes);
    print_times(turn, bench->count * bench->tile_bytes);
    printf(", \"wrong\": %u, \"unsteady\": %u", wrong, unsteady);
    if (options.kernels && !run->nvcomp)
        print_kernels(bench->gpu, bench->stream, turn);
    printf("}\n");
    fflush(stdout);
}

/* Our run, and those of nvCOMP. */
static uint32_t open_runs(struct bench *bench, const struct job *job, struct run *runs,
                          struct nvcomp *nvcomps) {
    uint32_t count = 1, variants = options.is_emu || options.ours_alone ? 0 : job->variants;
    runs[0] = (struct run){.bench = bench, .job = job, .who = "cogpu", .is_first = true};
    open_ours(&runs[0]);
    for (uint32_t i = 0; i < variants; i++) {
        nvcomps[i] = (struct nvcomp){.options = {.first = job->algorithm + (int)i}};
        runs[count] = (struct run){
            .bench = bench, .job = job, .who = "nvcomp", .nvcomp = &nvcomps[i], .is_first = true};
        count += open_nvcomp(&runs[count]);
    }
    return count;
}

static void measure_job(struct bench *bench, const struct job *job, uint64_t beside_bytes) {
    struct run *runs = need_memory(calloc(RUNS_MAX, sizeof *runs));
    struct nvcomp nvcomps[RUNS_MAX];
    struct turn turns[RUNS_MAX];
    uint32_t count = open_runs(bench, job, runs, nvcomps);
    for (uint32_t i = 0; i < count; i++) {
        float *times = need_memory(calloc(options.repeats, sizeof *times));
        turns[i] = (struct turn){
            .work = runs[i].nvcomp ? nvcomp_encode : encode, .subject = &runs[i], .times = times};
        check(&runs[i], &turns[i]);
    }
    time_all(bench->gpu, bench->stream, turns, count);
    for (uint32_t i = count; i-- > 0;) { /* ours last: its streams are packed */
        for (uint32_t j = 1; j < CHECKS && !runs[i].nvcomp; j++)
            check(&runs[i], &turns[i]);
        print_run(&runs[i], &turns[i], beside_bytes);
    }
    measure_pack(&runs[0]);
    for (uint32_t i = 0; i < count; i++) {
        free(turns[i].times);
        close_run(&runs[i]);
    }
    free(runs);
}

/* Whether a codec is asked for, there is an encoder, and it goes with the predictor. */
static bool is_wanted(const cogpu_gpu *gpu, const struct job *job, uint32_t predictor) {
    const cogpu_codec_row *codec = cogpu_codec_find(job->compression);
    return cogpu_gpu_encoder_of(gpu, job->compression) &&
           codec->allows_predictor == (predictor > 1) &&
           (!only_codec || strcmp(only_codec, codec->name) == 0) &&
           (only_level < 0 || only_level == job->level) &&
           (only_predictor < 0 || only_predictor == (int)predictor);
}

static void measure_predictor(struct bench *bench, uint32_t predictor) {
    const struct job *end = jobs + sizeof jobs / sizeof *jobs, *first = jobs;
    while (first < end && !is_wanted(bench->gpu, first, predictor))
        first++;
    if (first == end)
        return;
    open_cut(bench, predictor);
    measure_cut(bench);
    uint64_t beside_bytes = 0;
    const char *beside = "";
    for (const struct job *job = first; job < end; job++) {
        if (!is_wanted(bench->gpu, job, predictor))
            continue;
        if (strcmp(beside, job->beside) != 0)
            beside_bytes = host_bytes(bench, job);
        beside = job->beside;
        measure_job(bench, job, beside_bytes);
    }
    close_cut(bench);
}

static bool measure_raster(cogpu_gpu *gpu, cogpu_pool *pool, const char *path) {
    struct bench *bench = need_memory(calloc(1, sizeof *bench));
    bench->gpu = gpu;
    bench->pool = pool;
    need(gpu->calls->stream_open(gpu, true, &bench->stream, &error));
    load(bench, path);
    bool is_float = cogpu_type_is_float(bench->raster.type);
    for (uint32_t predictor = is_float ? 3 : 2; predictor > 0; predictor--)
        measure_predictor(bench, predictor);
    gpu->calls->release(gpu, bench->device_raster.data);
    gpu->calls->release_pinned(gpu, bench->raster.data);
    gpu->calls->stream_close(gpu, bench->stream);
    for (uint32_t i = 0; i < WORKERS_MAX; i++)
        cogpu_codec_state_close(&bench->states[i]);
    bool is_right = bench->wrong == 0;
    free(bench);
    return is_right;
}

/* Takes an option; false for what is none. */
static bool take_own_option(const char *word) {
    if (strncmp(word, "--side=", 7) == 0)
        side = (uint32_t)strtoul(word + 7, NULL, 10);
    else if (strncmp(word, "--codec=", 8) == 0)
        only_codec = word + 8;
    else if (strncmp(word, "--level=", 8) == 0)
        only_level = atoi(word + 8);
    else if (strncmp(word, "--predictor=", 12) == 0)
        only_predictor = atoi(word + 12);
    else
        return take_option(word);
    return side > 0;
}

int main(int count, char **words) {
    return measure_files(count, words,
                         "gpu_encode " OPTIONS_HELP
                         " [--side=8192] [--codec=NAME] [--level=N] [--predictor=N] FILE...",
                         take_own_option, measure_raster);
}
