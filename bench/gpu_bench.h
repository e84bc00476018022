/*
 * What the benchmarks of the CUDA backend's steps share: memory, a clock, where the time goes
 * kernel by kernel, and nvCOMP, which is looked for at run time.
 */
#ifndef COGPU_BENCH_GPU_BENCH_H
#define COGPU_BENCH_GPU_BENCH_H

#include "base/pool.h"
#include "codec/codec.h"
#include "kernels/decoder.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 0xC3, WORKERS_MAX = 256 };

static cogpu_error error;

/* What all of them can be told. */
static struct options {
    bool is_emu, ours_alone, least_scratch, kernels;
    uint32_t repeats;
} options = {.repeats = 9};

/* Takes one of these options; false for what is none. */
static inline bool take_option(const char *word) {
    if (strcmp(word, "--emu") == 0)
        options.is_emu = true;
    else if (strcmp(word, "--ours") == 0)
        options.ours_alone = true;
    else if (strcmp(word, "--least") == 0)
        options.least_scratch = true;
    else if (strcmp(word, "--kernels") == 0)
        options.kernels = true;
    else if (strncmp(word, "--repeats=", 10) == 0)
        options.repeats = (uint32_t)strtoul(word + 10, NULL, 10);
    else
        return false;
    return options.repeats > 0;
}

#define OPTIONS_HELP "[--emu] [--ours: no nvCOMP] [--least: scratch] [--kernels] [--repeats=9]"

static inline void need(cogpu_status status) {
    if (status == COGPU_OK)
        return;
    fprintf(stderr, "bench: %s\n", error.message);
    exit(1);
}

static inline void *need_memory(void *memory) {
    if (!memory)
        need(cogpu_fail(&error, COGPU_OUT_OF_MEMORY, "out of memory"));
    return memory;
}

static inline uint64_t align(uint64_t bytes, uint64_t to) {
    return (bytes + to - 1) / to * to;
}

static inline void *pinned(cogpu_gpu *gpu, uint64_t bytes) {
    void *memory;
    need(gpu->calls->allocate_pinned(gpu, bytes, &memory, &error));
    return memory;
}

static inline void *on_device(cogpu_gpu *gpu, uint64_t bytes) {
    void *memory;
    need(gpu->calls->allocate(gpu, bytes, &memory, &error));
    return memory;
}

static inline const char *name_of(const char *path) {
    return strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
}

/* The GPU or the emulator, and a thread for each CPU core. */
static inline void open_device(cogpu_gpu **gpu, cogpu_pool **pool) {
    uint32_t threads = cogpu_cpu_cores() < WORKERS_MAX ? cogpu_cpu_cores() : WORKERS_MAX;
    need(options.is_emu ? cogpu_gpu_open_emulator(1, 8ULL << 30, gpu, &error)
                        : cogpu_gpu_open_cuda(0, gpu, &error));
    need(cogpu_pool_open(threads, pool, &error));
}

/* A program's main: takes its options, then measures each file; 0 where all was right. */
static inline int measure_files(int count, char **words, const char *usage,
                                bool (*take)(const char *word),
                                bool (*measure)(cogpu_gpu *gpu, cogpu_pool *pool,
                                                const char *path)) {
    cogpu_gpu *gpu;
    cogpu_pool *pool;
    bool is_right = true;
    int first = 1;
    while (first < count && take(words[first]))
        first++;
    if (first == count || words[first][0] == '-') {
        fprintf(stderr, "%s\n", usage);
        return 2;
    }
    open_device(&gpu, &pool);
    for (; first < count; first++)
        is_right &= measure(gpu, pool, words[first]);
    cogpu_pool_close(pool);
    gpu->calls->close(gpu);
    return is_right ? 0 : 1;
}

/* ---- the clock ----------------------------------------------------------------------------- */

/* Something on a stream whose time is taken. */
struct turn {
    cogpu_status (*work)(void *subject);
    void *subject;
    float *times;   /* milliseconds, room for options.repeats of them; at last smallest first */
    uint32_t taken; /* of these */
};

static inline float time_once(cogpu_gpu *gpu, cogpu_gpu_stream *stream, const struct turn *turn,
                              cogpu_gpu_event *from, cogpu_gpu_event *to) {
    need(gpu->calls->record(gpu, from, stream, &error));
    need(turn->work(turn->subject));
    need(gpu->calls->record(gpu, to, stream, &error));
    need(gpu->calls->finish_event(gpu, to, &error));
    return gpu->calls->milliseconds(gpu, from, to);
}

static inline float sum_of(const struct turn *turn) {
    float sum = 0;
    for (uint32_t i = 0; i < turn->taken; i++)
        sum += turn->times[i];
    return sum;
}

static inline int by_size(const void *left, const void *right) {
    float a = *(const float *)left, b = *(const float *)right;
    return (a > b) - (a < b);
}

/* They take turns, after at least so many runs, and so long, that an idle GPU has its full clock
 * again. One that has taken long has had its turns. */
static inline void time_all(cogpu_gpu *gpu, cogpu_gpu_stream *stream, struct turn *turns,
                            uint32_t count) {
    enum { WARM_UPS = 2, WARM_UP_MS = 50, LONG_MS = 1000 };
    cogpu_gpu_event *from, *to;
    need(gpu->calls->event_open(gpu, &from, &error));
    need(gpu->calls->event_open(gpu, &to, &error));
    float spent = 0; /* stays 0 on the emulator, which has no clock */
    for (uint32_t i = 0; i < WARM_UPS || (spent > 0 && spent < WARM_UP_MS); i++)
        spent += time_once(gpu, stream, &turns[i % count], from, to);
    for (uint32_t j = 0; j < count; j++)
        turns[j].taken = 0;
    for (uint32_t i = 0; i < options.repeats; i++)
        for (uint32_t j = 0; j < count; j++)
            if (turns[j].taken == 0 || sum_of(&turns[j]) < LONG_MS)
                turns[j].times[turns[j].taken++] = time_once(gpu, stream, &turns[j], from, to);
    for (uint32_t j = 0; j < count; j++)
        qsort(turns[j].times, turns[j].taken, sizeof *turns[j].times, by_size);
    gpu->calls->event_close(gpu, from);
    gpu->calls->event_close(gpu, to);
}

/* `bytes` by the median of times that are in order, in GB/s; part of a line of JSON. */
static inline void print_times(const struct turn *turn, uint64_t bytes) {
    double median = (double)turn->times[turn->taken / 2];
    printf("\"ms\": %.4f, \"ms_min\": %.4f, \"ms_max\": %.4f, \"times\": %u, \"gb_s\": %.2f",
           median, (double)turn->times[0], (double)turn->times[turn->taken - 1], turn->taken,
           median > 0 ? (double)bytes / median / 1e6 : 0);
}

/* ---- where the time goes, kernel by kernel ------------------------------------------------- */

enum { KERNELS_MAX = 32, KERNEL_RUNS = 3 };

static struct watch {
    const cogpu_gpu_driver *calls; /* the device's own */
    cogpu_gpu_event *from, *to;
    uint32_t count;
    struct {
        const char *name;
        float milliseconds;
        uint32_t launches;
    } kernels[KERNELS_MAX];
} watch;

/* Nothing runs beside the kernel, since every launch before it was waited for. */
static inline cogpu_status watched_launch(cogpu_gpu *gpu, const cogpu_kernel *kernel,
                                          uint32_t blocks, const void *args,
                                          cogpu_gpu_stream *stream, cogpu_error *why) {
    uint32_t i = 0;
    TRY(watch.calls->finish_stream(gpu, stream, why));
    TRY(watch.calls->record(gpu, watch.from, stream, why));
    TRY(watch.calls->launch(gpu, kernel, blocks, args, stream, why));
    TRY(watch.calls->record(gpu, watch.to, stream, why));
    TRY(watch.calls->finish_event(gpu, watch.to, why));
    while (i < watch.count && strcmp(watch.kernels[i].name, kernel->name) != 0)
        i++;
    if (i == KERNELS_MAX)
        return COGPU_OK;
    watch.count += i == watch.count;
    watch.kernels[i].name = kernel->name;
    watch.kernels[i].launches++;
    watch.kernels[i].milliseconds += watch.calls->milliseconds(gpu, watch.from, watch.to);
    return COGPU_OK;
}

/* Part of a line of JSON, with the comma before it. */
static inline void print_kernels(cogpu_gpu *gpu, cogpu_gpu_stream *stream,
                                 const struct turn *turn) {
    cogpu_gpu_driver watched = *gpu->calls;
    watch = (struct watch){.calls = gpu->calls};
    watched.launch = watched_launch;
    need(gpu->calls->event_open(gpu, &watch.from, &error));
    need(gpu->calls->event_open(gpu, &watch.to, &error));
    gpu->calls = &watched;
    for (uint32_t i = 0; i < KERNEL_RUNS; i++) {
        need(turn->work(turn->subject));
        need(watch.calls->finish_stream(gpu, stream, &error));
    }
    gpu->calls = watch.calls;
    gpu->calls->event_close(gpu, watch.from);
    gpu->calls->event_close(gpu, watch.to);
    printf(", \"kernels\": {");
    for (uint32_t i = 0; i < watch.count; i++)
        printf("%s\"%s\": {\"launches\": %u, \"ms\": %.4f}", i ? ", " : "", watch.kernels[i].name,
               watch.kernels[i].launches / KERNEL_RUNS,
               (double)watch.kernels[i].milliseconds / KERNEL_RUNS);
    printf("}");
}

/* ---- nvCOMP, by its interface of 5.x ------------------------------------------------------- */

enum { ZLIB_HEAD = 2, ZLIB_TAIL = 4 }; /* what zlib puts round deflate, and nvCOMP does not */

struct nvcomp_options {
    int first; /* decoders: the backend, 0 for the default; deflate's encoder: the algorithm */
    char rest[60];
};

/* dlsym hands back an object pointer, which C does not let us call: the bytes are the same. */
static inline bool find_function(void *library, const char *name, void *function) {
    void *symbol = library ? dlsym(library, name) : NULL;
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* "DecompressAsync" of a compression, say; false where it has none, or there is no nvCOMP. */
static inline bool nvcomp_find(uint32_t compression, const char *what, void *function) {
    static void *library;
    const char *path = getenv("COGPU_NVCOMP");
    char name[96];
    if (compression != COMPRESSION_DEFLATE && compression != COMPRESSION_ZSTD)
        return false;
    if (!library)
        library = dlopen(path ? path : "libnvcomp.so.5", RTLD_NOW | RTLD_LOCAL);
    snprintf(name, sizeof name, "nvcompBatched%s%s",
             compression == COMPRESSION_ZSTD ? "Zstd" : "Deflate", what);
    return find_function(library, name, function);
}

#endif
