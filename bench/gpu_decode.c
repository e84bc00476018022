/*
 * The decoders of the CUDA backend alone, measured. Takes TIFF files; prints a line of JSON for
 * each file and contender: our decoder, and nvCOMP's for deflate and zstd where libnvcomp.so.5 is
 * found (or the library that COGPU_NVCOMP names).
 *
 * All blocks of a file make one batch. Their stored bytes lie on the device before the clock starts
 * and the decoded ones stay there, so what is timed, by events on the stream, is decoding and
 * nothing else. Before and after the timed runs every byte is compared with what the host's codec
 * gives, in memory that held other bytes before, the bytes between the blocks included. Where there
 * are two contenders, they take turns.
 */
#include "gpu_bench.h"

#include <fcntl.h>
#include <unistd.h>

enum { CHECKS = 3 };
enum { TAG_STRIP_OFFSETS = 273, TAG_STRIP_BYTES = 279, TAG_TILE_OFFSETS = 324, TAG_TILE_BYTES };

/* A file as a batch; memory on the host that is copied to and from the device is pinned. */
struct bench {
    const char *name;
    cogpu_image image;
    const cogpu_codec_row *codec;
    size_t row_bytes;
    cogpu_gpu_batch batch;
    cogpu_encoded_block *blocks;          /* largest stored size first */
    uint64_t stored_bytes, decoded_bytes; /* of all blocks together */
    uint64_t stored_room, decoded_room;   /* gaps included */
    uint8_t *stored, *decoded;            /* the latter as the device gave it */
    uint32_t *statuses;
    uint8_t *expected; /* as the host's codec gives it, laid out as on the device */
    uint8_t *accepted; /* by the host's codec, a flag for each block */
    cogpu_pool *pool;
    cogpu_codec_state states[WORKERS_MAX];
    uint32_t wrong[WORKERS_MAX]; /* blocks that differ, as each thread found */
    struct nvcomp *nvcomp;
};

static void finish(const cogpu_gpu_batch *batch) {
    need(batch->gpu->calls->finish_stream(batch->gpu, batch->stream, &error));
}

/* ---- the file ------------------------------------------------------------------------------ */

/* All numbers of a tag; the caller frees them. */
static uint64_t *tag_numbers(const cogpu_file *file, uint32_t directory, uint32_t id,
                             uint64_t count) {
    cogpu_tag tag = COGPU_TAG_INIT;
    uint32_t index = 0;
    do
        need(cogpu_tag_info(file, directory, index++, &tag, &error));
    while (tag.id != id);
    if (tag.count != count || tag.bytes < count * sizeof(uint16_t) ||
        tag.bytes > count * sizeof(uint64_t))
        need(cogpu_fail(&error, COGPU_CORRUPT, "tag %u is not an array of a number a block", id));
    uint64_t *numbers = need_memory(malloc(count * sizeof *numbers));
    const uint8_t *raw = (const uint8_t *)numbers;
    size_t width = (size_t)(tag.bytes / count);
    need(cogpu_tag_read(file, directory, id, 0, count, numbers, &error));
    for (uint64_t i = count; i-- > 0;) { /* from the end, since they grow in place */
        uint16_t u16;
        uint32_t u32;
        memcpy(&u16, raw + i * width, sizeof u16);
        if (width == sizeof u16) {
            numbers[i] = u16;
        } else if (width == sizeof u32) {
            memcpy(&u32, raw + i * width, sizeof u32);
            numbers[i] = u32;
        }
    }
    return numbers;
}

/* Bytes of a block: the last strip of a band is shorter. */
static uint32_t block_bytes(const struct bench *bench, uint64_t index) {
    const cogpu_image *image = &bench->image;
    uint64_t rows = image->block_height;
    if (image->layout == COGPU_LAYOUT_STRIPS) {
        uint64_t strips = (image->height + rows - 1) / rows, first = index % strips * rows;
        rows = image->height - first < rows ? image->height - first : rows;
    }
    if (rows * bench->row_bytes > COGPU_GPU_BLOCK_BYTES_MAX)
        need(cogpu_fail(&error, COGPU_LIMIT_EXCEEDED, "blocks are too large"));
    return (uint32_t)(rows * bench->row_bytes);
}

/* Puts the blocks one behind the other, as they are in most files. */
static void lay_out(struct bench *bench, const uint64_t *sizes) {
    uint64_t in = COGPU_GPU_SLACK_BYTES, out = COGPU_GPU_ALIGN;
    for (uint64_t i = 0; i < bench->image.blocks; i++) {
        if (sizes[i] == 0 || sizes[i] > COGPU_GPU_BLOCK_BYTES_MAX)
            need(cogpu_fail(&error, COGPU_LIMIT_EXCEEDED, "a block is empty or too large"));
        uint32_t room = block_bytes(bench, i);
        bench->blocks[i] = (cogpu_encoded_block){.in = in,
                                                 .out = out,
                                                 .in_bytes = (uint32_t)sizes[i],
                                                 .capacity = room,
                                                 .required = room};
        in += sizes[i];
        out += align(room, COGPU_GPU_ALIGN) + COGPU_GPU_ALIGN;
        bench->stored_bytes += sizes[i];
        bench->decoded_bytes += room;
    }
    bench->stored_room = in + COGPU_GPU_SLACK_BYTES;
    bench->decoded_room = out;
}

static void read_stored(const struct bench *bench, const char *path, const uint64_t *offsets) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    for (uint64_t i = 0; i < bench->image.blocks; i++) {
        const cogpu_encoded_block *block = &bench->blocks[i];
        ssize_t got = pread(file, bench->stored + block->in, block->in_bytes, (off_t)offsets[i]);
        if (got != (ssize_t)block->in_bytes)
            need(cogpu_fail(&error, COGPU_IO_ERROR, "%s cannot be read", path));
    }
    close(file);
}

static int larger_first(const void *left, const void *right) {
    const cogpu_encoded_block *a = left, *b = right;
    if (a->in_bytes != b->in_bytes)
        return a->in_bytes < b->in_bytes ? 1 : -1;
    return a->in < b->in ? -1 : 1;
}

static void load(struct bench *bench, const char *path) {
    cogpu_file *file;
    cogpu_image *image = &bench->image;
    *image = (cogpu_image)COGPU_IMAGE_INIT;
    need(cogpu_open(path, NULL, &file, &error));
    need(cogpu_image_info(file, 0, image, &error));
    bool is_tiled = image->layout == COGPU_LAYOUT_TILES;
    uint64_t samples = image->interleave == COGPU_INTERLEAVE_BAND ? 1 : image->bands;
    bench->name = name_of(path);
    bench->codec = cogpu_codec_find(image->compression);
    bench->row_bytes = (size_t)((image->block_width * samples * image->bits + 7) / 8);
    bench->blocks = need_memory(calloc(image->blocks, sizeof *bench->blocks));
    uint64_t *offsets = tag_numbers(file, image->directory,
                                    is_tiled ? TAG_TILE_OFFSETS : TAG_STRIP_OFFSETS, image->blocks);
    uint64_t *sizes = tag_numbers(file, image->directory,
                                  is_tiled ? TAG_TILE_BYTES : TAG_STRIP_BYTES, image->blocks);
    lay_out(bench, sizes);
    bench->stored = pinned(bench->batch.gpu, bench->stored_room);
    memset(bench->stored, GUARD, COGPU_GPU_SLACK_BYTES);
    memset(bench->stored + bench->stored_room - COGPU_GPU_SLACK_BYTES, GUARD,
           COGPU_GPU_SLACK_BYTES);
    read_stored(bench, path, offsets);
    qsort(bench->blocks, image->blocks, sizeof *bench->blocks, larger_first);
    free(offsets);
    free(sizes);
    cogpu_close(file);
}

/* ---- the host's bytes, and whether the device's are the same ------------------------------- */

static void decode_on_host(void *argument, uint32_t worker, uint64_t index) {
    struct bench *bench = argument;
    const cogpu_encoded_block *block = &bench->blocks[index];
    const cogpu_image *image = &bench->image;
    cogpu_block_format format = {.width = image->block_width,
                                 .height = (uint32_t)(block->capacity / bench->row_bytes),
                                 .samples =
                                     image->interleave == COGPU_INTERLEAVE_BAND ? 1 : image->bands,
                                 .bits = image->bits,
                                 .type = image->type,
                                 .row_bytes = bench->row_bytes,
                                 .compression = image->compression,
                                 .photometric = image->photometric,
                                 .fill_order = 1,
                                 .subsampling_x = 1,
                                 .subsampling_y = 1};
    size_t got = 0;
    cogpu_status status = bench->codec->decode(
        &bench->states[worker], &format, bench->stored + block->in, block->in_bytes,
        bench->expected + block->out, block->capacity, &got, NULL);
    bench->accepted[index] = status == COGPU_OK && got >= block->required;
}

/* A block that the decoder took for decoded has the host's bytes, and none has bytes after it. */
static void compare(void *argument, uint32_t worker, uint64_t index) {
    struct bench *bench = argument;
    const cogpu_encoded_block *block = &bench->blocks[index];
    const uint8_t *decoded = bench->decoded + block->out;
    uint64_t span = align(block->capacity, COGPU_GPU_ALIGN) + COGPU_GPU_ALIGN;
    bool is_right = bench->statuses[index] != COGPU_GPU_DECODED ||
                    (bench->accepted[index] &&
                     memcmp(decoded, bench->expected + block->out, block->capacity) == 0);
    for (uint64_t i = block->capacity; i < span; i++)
        is_right &= decoded[i] == GUARD;
    bench->wrong[worker] += !is_right;
}

static void poison(void *argument, uint32_t worker, uint64_t index) {
    struct bench *bench = argument;
    (void)worker;
    memset(bench->decoded + bench->blocks[index].out, GUARD,
           align(bench->blocks[index].capacity, COGPU_GPU_ALIGN) + COGPU_GPU_ALIGN);
}

static void for_each_block(struct bench *bench, cogpu_pool_function *work) {
    cogpu_pool_run(bench->pool, cogpu_pool_threads(bench->pool), bench->batch.count, work, bench);
}

/* ---- nvCOMP's decoders --------------------------------------------------------------------- */

struct nvcomp {
    int (*scratch)(size_t count, size_t room_max, struct nvcomp_options options, size_t *bytes,
                   size_t room_all);
    int (*decode)(const void *const *in, const size_t *in_bytes, const size_t *room, size_t *got,
                  size_t count, void *scratch, size_t scratch_bytes, void *const *out,
                  struct nvcomp_options options, int *statuses, void *stream);
    void *stored, *lists; /* on the device; `lists` are five of a word a block */
};

enum { NVCOMP_ALIGN = 16, NVCOMP_LISTS = 5 };

/* The stored bytes as nvCOMP wants them: aligned, and deflate without what zlib puts round it. */
static void nvcomp_load(struct bench *bench, struct nvcomp *nvcomp) {
    const cogpu_gpu_batch *batch = &bench->batch;
    const cogpu_gpu_driver *calls = batch->gpu->calls;
    bool is_zlib = bench->image.compression == COMPRESSION_DEFLATE;
    uint64_t head = is_zlib ? ZLIB_HEAD : 0, round = is_zlib ? ZLIB_HEAD + ZLIB_TAIL : 0;
    uint64_t count = batch->count, bytes = bench->stored_bytes + count * NVCOMP_ALIGN, at = 0;
    uint64_t list_bytes = NVCOMP_LISTS * count * sizeof(uint64_t);
    uint64_t *lists = pinned(batch->gpu, list_bytes);
    uint8_t *stored = pinned(batch->gpu, bytes);
    nvcomp->stored = on_device(batch->gpu, bytes);
    nvcomp->lists = on_device(batch->gpu, list_bytes);
    for (uint64_t i = 0; i < count; i++) {
        const cogpu_encoded_block *block = &bench->blocks[i];
        uint64_t in_bytes = block->in_bytes > round ? block->in_bytes - round : 0;
        memcpy(stored + at, bench->stored + block->in + head, in_bytes);
        lists[i] = (uintptr_t)nvcomp->stored + at;
        lists[count + i] = in_bytes;
        lists[2 * count + i] = block->capacity;
        lists[3 * count + i] = 0; /* what it decodes to goes here */
        lists[4 * count + i] = (uintptr_t)batch->decoded + block->out;
        at += align(in_bytes, NVCOMP_ALIGN);
    }
    need(calls->copy_up(batch->gpu, nvcomp->stored, stored, at, batch->stream, &error));
    need(calls->copy_up(batch->gpu, nvcomp->lists, lists, list_bytes, batch->stream, &error));
    finish(batch);
    calls->release_pinned(batch->gpu, stored);
    calls->release_pinned(batch->gpu, lists);
}

static uint64_t nvcomp_scratch(const struct bench *bench) {
    size_t bytes = 0, room_max = 0;
    for (uint32_t i = 0; i < bench->batch.count; i++)
        room_max = bench->blocks[i].capacity > room_max ? bench->blocks[i].capacity : room_max;
    int status = bench->nvcomp->scratch(bench->batch.count, room_max, (struct nvcomp_options){0},
                                        &bytes, bench->decoded_bytes);
    if (status != 0)
        need(cogpu_fail(&error, COGPU_DEVICE_ERROR, "nvCOMP tells no scratch: status %d", status));
    return bytes;
}

static cogpu_status nvcomp_decode(struct bench *bench) {
    const struct nvcomp *nvcomp = bench->nvcomp;
    const cogpu_gpu_batch *batch = &bench->batch;
    size_t count = batch->count, *numbers = nvcomp->lists;
    const void *const *in = nvcomp->lists;
    void *const *out = (void *const *)nvcomp->lists + 4 * count;
    int status = nvcomp->decode(in, numbers + count, numbers + 2 * count, numbers + 3 * count,
                                count, batch->scratch, batch->scratch_bytes, out,
                                (struct nvcomp_options){0}, (int *)batch->statuses, batch->stream);
    return status == 0
               ? COGPU_OK
               : cogpu_fail(&error, COGPU_DEVICE_ERROR, "nvCOMP fails with status %d", status);
}

/* ---- our decoder --------------------------------------------------------------------------- */

static uint64_t our_scratch(const struct bench *bench) {
    uint64_t least, best;
    cogpu_gpu_find_decoder(bench->batch.gpu, bench->image.compression)
        ->scratch(bench->blocks, bench->batch.count, 0, &least, &best);
    return options.least_scratch ? least : best;
}

static cogpu_status our_decode(struct bench *bench) {
    return cogpu_gpu_find_decoder(bench->batch.gpu, bench->image.compression)
        ->decode(&bench->batch, &error);
}

/* ---- contenders ---------------------------------------------------------------------------- */

struct contender {
    const char *name;
    uint64_t (*scratch)(const struct bench *bench);
    cogpu_status (*decode)(struct bench *bench);
};

static const struct contender ours = {"cogpu", our_scratch, our_decode},
                              theirs = {"nvcomp", nvcomp_scratch, nvcomp_decode};

/* A contender's scratch, and what was found of it. */
struct run {
    struct bench *bench;
    const struct contender *contender;
    void *scratch;
    uint64_t scratch_bytes;
    uint32_t wrong, refused; /* blocks, at most in one check */
};

static cogpu_status decode(void *subject) {
    const struct run *run = subject;
    struct bench *bench = run->bench;
    bench->batch.scratch = run->scratch;
    bench->batch.scratch_bytes = run->scratch_bytes;
    return run->contender->decode(bench);
}

/* ---- measuring ----------------------------------------------------------------------------- */

/* Decodes into poisoned memory, and notes what is wrong, and what is left to the host. */
static void check(struct bench *bench, struct run *run) {
    const cogpu_gpu_batch *batch = &bench->batch;
    const cogpu_gpu_driver *calls = batch->gpu->calls;
    uint64_t status_bytes = batch->count * sizeof *bench->statuses;
    uint32_t wrong = 0, refused = 0;
    for_each_block(bench, poison);
    memset(bench->statuses, COGPU_GPU_NOT_DECODED, status_bytes);
    need(calls->copy_up(batch->gpu, batch->decoded, bench->decoded, bench->decoded_room,
                        batch->stream, &error));
    need(calls->copy_up(batch->gpu, batch->statuses, bench->statuses, status_bytes, batch->stream,
                        &error));
    need(decode(run));
    need(calls->copy_down(batch->gpu, bench->decoded, batch->decoded, bench->decoded_room,
                          batch->stream, &error));
    need(calls->copy_down(batch->gpu, bench->statuses, batch->statuses, status_bytes, batch->stream,
                          &error));
    finish(batch);
    memset(bench->wrong, 0, sizeof bench->wrong);
    for_each_block(bench, compare);
    for (uint32_t i = 0; i < WORKERS_MAX; i++)
        wrong += bench->wrong[i];
    for (uint32_t i = 0; i < batch->count; i++)
        refused += bench->statuses[i] != COGPU_GPU_DECODED;
    run->wrong = wrong > run->wrong ? wrong : run->wrong;
    run->refused = refused > run->refused ? refused : run->refused;
}

static void print_run(struct bench *bench, const struct run *run, const struct turn *turn) {
    const cogpu_gpu_batch *batch = &bench->batch;
    printf("{\"file\": \"%s\", \"device\": \"%s\", \"who\": \"%s\", \"codec\": \"%s\", "
           "\"blocks\": %u, \"stored_bytes\": %llu, \"decoded_bytes\": %llu, "
           "\"scratch_bytes\": %llu, ",
           bench->name, batch->gpu->name, run->contender->name, bench->codec->name, batch->count,
           (unsigned long long)bench->stored_bytes, (unsigned long long)bench->decoded_bytes,
           (unsigned long long)run->scratch_bytes);
    print_times(turn, bench->decoded_bytes);
    printf(", \"refused\": %u, \"wrong\": %u", run->refused, run->wrong);
    if (options.kernels && run->contender == &ours)
        print_kernels(batch->gpu, batch->stream, turn);
    printf("}\n");
    fflush(stdout);
}

static void measure(struct bench *bench, struct run *runs, uint32_t count) {
    cogpu_gpu *gpu = bench->batch.gpu;
    struct turn turns[2];
    for (uint32_t i = 0; i < count; i++) {
        runs[i].bench = bench;
        runs[i].scratch_bytes = runs[i].contender->scratch(bench);
        runs[i].scratch = on_device(gpu, runs[i].scratch_bytes + 1);
        float *times = need_memory(calloc(options.repeats, sizeof *times));
        turns[i] = (struct turn){.work = decode, .subject = &runs[i], .times = times};
        check(bench, &runs[i]);
    }
    time_all(gpu, bench->batch.stream, turns, count);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 1; j < CHECKS; j++)
            check(bench, &runs[i]);
        print_run(bench, &runs[i], &turns[i]);
        gpu->calls->release(gpu, runs[i].scratch);
        free(turns[i].times);
    }
}

/* ---- a batch's life ------------------------------------------------------------------------ */

static void open_batch(struct bench *bench) {
    cogpu_gpu_batch *batch = &bench->batch;
    cogpu_gpu *gpu = batch->gpu;
    const cogpu_gpu_driver *calls = gpu->calls;
    batch->count = (uint32_t)bench->image.blocks;
    batch->blocks = bench->blocks;
    void *stored = on_device(gpu, bench->stored_room);
    void *blocks = on_device(gpu, batch->count * sizeof *bench->blocks);
    batch->stored = stored;
    batch->device_blocks = blocks;
    batch->decoded = on_device(gpu, bench->decoded_room);
    batch->statuses = on_device(gpu, batch->count * sizeof *batch->statuses);
    need(calls->stream_open(gpu, true, &batch->stream, &error));
    need(calls->copy_up(gpu, stored, bench->stored, bench->stored_room, batch->stream, &error));
    need(calls->copy_up(gpu, blocks, bench->blocks, batch->count * sizeof *bench->blocks,
                        batch->stream, &error));
    finish(batch);
    bench->decoded = pinned(gpu, bench->decoded_room);
    memset(bench->decoded, GUARD, COGPU_GPU_ALIGN); /* before the first block */
    bench->statuses = pinned(gpu, batch->count * sizeof *bench->statuses);
    bench->expected = need_memory(malloc(bench->decoded_room));
    bench->accepted = need_memory(calloc(batch->count, 1));
}

static void close_batch(struct bench *bench) {
    cogpu_gpu_batch *batch = &bench->batch;
    cogpu_gpu *gpu = batch->gpu;
    const cogpu_gpu_driver *calls = gpu->calls;
    calls->stream_close(gpu, batch->stream);
    calls->release(gpu, (void *)(uintptr_t)batch->stored);
    calls->release(gpu, (void *)(uintptr_t)batch->device_blocks);
    calls->release(gpu, batch->decoded);
    calls->release(gpu, batch->statuses);
    calls->release_pinned(gpu, bench->stored);
    calls->release_pinned(gpu, bench->decoded);
    calls->release_pinned(gpu, bench->statuses);
    for (uint32_t i = 0; i < WORKERS_MAX; i++)
        cogpu_codec_state_close(&bench->states[i]);
    free(bench->expected);
    free(bench->accepted);
    free(bench->blocks);
}

static bool measure_file(cogpu_gpu *gpu, cogpu_pool *pool, const char *path) {
    struct bench *bench = need_memory(calloc(1, sizeof *bench));
    struct nvcomp nvcomp;
    bench->batch.gpu = gpu;
    bench->pool = pool;
    load(bench, path);
    if (!cogpu_gpu_find_decoder(bench->batch.gpu, bench->image.compression) ||
        !bench->codec->decode)
        need(cogpu_fail(&error, COGPU_UNSUPPORTED, "%s: no decoder for it", path));
    open_batch(bench);
    for_each_block(bench, decode_on_host);
    struct run runs[] = {{.contender = &ours}, {.contender = &theirs}};
    uint32_t compression = bench->image.compression;
    bool has_nvcomp =
        !options.is_emu && !options.ours_alone &&
        nvcomp_find(compression, "DecompressGetTempSizeAsync", (void *)&nvcomp.scratch) &&
        nvcomp_find(compression, "DecompressAsync", (void *)&nvcomp.decode);
    if (has_nvcomp) {
        bench->nvcomp = &nvcomp;
        nvcomp_load(bench, &nvcomp);
    }
    measure(bench, runs, has_nvcomp ? 2 : 1);
    if (has_nvcomp) {
        gpu->calls->release(gpu, nvcomp.stored);
        gpu->calls->release(gpu, nvcomp.lists);
    }
    close_batch(bench);
    free(bench);
    return runs[0].wrong == 0;
}

int main(int count, char **words) {
    return measure_files(count, words, "gpu_decode " OPTIONS_HELP " FILE...", take_option,
                         measure_file);
}
