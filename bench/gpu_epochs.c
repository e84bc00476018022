/*
 * Random windows of many files, as a training run reads them: epochs of calls of cogpu_read_many,
 * with and without a cache of stored blocks in device memory.
 *
 *     bench_gpu_epochs DEVICE CACHE_MIB SIDE CALL EPOCHS FILE...
 *
 *     DEVICE   cuda or emu
 *     SIDE     of a window, in pixels
 *     CALL     windows of a call; each file gives as many windows to an epoch as fit into it
 *
 * Prints for each epoch its time, that of a window, decoded bytes in a second, and how many blocks
 * the cache had. All files need the same bands and type.
 */
#include "base/clock.h"
#include "base/type.h"
#include "cogpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cogpu_error error;

static void need(cogpu_status status) {
    if (status == COGPU_OK)
        return;
    fprintf(stderr, "bench_gpu_epochs: %s\n", error.message);
    exit(1);
}

struct run {
    cogpu_context *context;
    cogpu_device_kind device;
    uint32_t side, call;
    uint32_t windows; /* of an epoch */
    size_t window_bytes;
    cogpu_file **files;
    cogpu_image *images;
    uint32_t *order; /* of an epoch's windows: their files */
    cogpu_request *requests;
    cogpu_raster *rasters;
    cogpu_result *results;
    cogpu_read_item *items;
};

static uint32_t draw(uint32_t below) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % below);
}

static void *allocate(size_t count, size_t bytes) {
    void *memory = calloc(count, bytes);
    if (!memory)
        exit(1);
    return memory;
}

static void open_files(struct run *run, uint32_t count, char **paths) {
    run->files = allocate(count, sizeof(cogpu_file *));
    run->images = allocate(count, sizeof *run->images);
    for (uint32_t i = 0; i < count; i++) {
        run->images[i] = (cogpu_image)COGPU_IMAGE_INIT;
        need(cogpu_open(paths[i], NULL, &run->files[i], &error));
        need(cogpu_image_info(run->files[i], 0, &run->images[i], &error));
        run->windows += run->images[i].width / run->side * (run->images[i].height / run->side);
    }
    run->order = allocate(run->windows, sizeof *run->order);
    for (uint32_t i = 0, at = 0; i < count; i++)
        for (uint32_t j = run->images[i].width / run->side * (run->images[i].height / run->side);
             j > 0; j--)
            run->order[at++] = i;
}

static void open_rasters(struct run *run) {
    const cogpu_image *image = &run->images[0];
    void *memory = NULL;
    run->window_bytes =
        (size_t)run->side * run->side * image->bands * cogpu_type_bytes(image->type);
    run->requests = allocate(run->call, sizeof *run->requests);
    run->rasters = allocate(run->call, sizeof *run->rasters);
    run->results = allocate(run->call, sizeof *run->results);
    run->items = allocate(run->call, sizeof *run->items);
    need(cogpu_device_allocate(run->context, run->device, 0, run->call * run->window_bytes, &memory,
                               &error));
    for (uint32_t i = 0; i < run->call; i++)
        run->rasters[i] = (cogpu_raster){.struct_size = sizeof(cogpu_raster),
                                         .data = (uint8_t *)memory + i * run->window_bytes,
                                         .type = image->type,
                                         .bands = image->bands,
                                         .width = run->side,
                                         .height = run->side,
                                         .device = run->device};
}

static void choose_window(struct run *run, uint32_t i, uint32_t file) {
    const cogpu_image *image = &run->images[file];
    run->requests[i] = (cogpu_request){.struct_size = sizeof(cogpu_request),
                                       .x = draw(image->width - run->side + 1),
                                       .y = draw(image->height - run->side + 1),
                                       .width = run->side,
                                       .height = run->side};
    run->results[i] = (cogpu_result)COGPU_RESULT_INIT;
    run->items[i] = (cogpu_read_item){.struct_size = sizeof(cogpu_read_item),
                                      .file = run->files[file],
                                      .request = &run->requests[i],
                                      .raster = &run->rasters[i],
                                      .result = &run->results[i]};
}

static void read_epoch(struct run *run, uint32_t number) {
    uint64_t blocks = 0, cached = 0, bytes_read = 0;
    double seconds = 0, fetch_ms = 0;
    for (uint32_t i = run->windows; i > 1; i--) {
        uint32_t other = draw(i), file = run->order[i - 1];
        run->order[i - 1] = run->order[other];
        run->order[other] = file;
    }
    for (uint32_t first = 0; first < run->windows; first += run->call) {
        uint32_t left = run->windows - first, count = left < run->call ? left : run->call;
        for (uint32_t i = 0; i < count; i++)
            choose_window(run, i, run->order[first + i]);
        double start = clock_now();
        need(cogpu_read_many(run->items, count, run->context, &error));
        seconds += clock_now() - start;
        for (uint32_t i = 0; i < count; i++) {
            blocks += run->results[i].blocks;
            cached += run->results[i].device_cached_blocks;
            bytes_read += run->results[i].bytes_read;
            fetch_ms += run->results[i].fetch_ms;
        }
    }
    printf("epoch %u: %u windows in %8.2f ms, %7.2f us a window (fetch %6.2f us), %7.2f GB/s of "
           "pixels; %5.1f %% of %llu blocks cached, %.1f MB read\n",
           number, run->windows, 1e3 * seconds, 1e6 * seconds / run->windows,
           1e3 * fetch_ms / run->windows, 1e-9 * run->windows * (double)run->window_bytes / seconds,
           100.0 * (double)cached / (double)blocks, (unsigned long long)blocks,
           1e-6 * (double)bytes_read);
}

int main(int argc, char **argv) {
    if (argc < 7) {
        fprintf(stderr, "bench_gpu_epochs DEVICE CACHE_MIB SIDE CALL EPOCHS FILE...\n");
        return 2;
    }
    cogpu_context_options options = COGPU_CONTEXT_OPTIONS_INIT;
    struct run run = {.device =
                          strcmp(argv[1], "emu") == 0 ? COGPU_DEVICE_EMULATOR : COGPU_DEVICE_CUDA,
                      .side = (uint32_t)atoi(argv[3]),
                      .call = (uint32_t)atoi(argv[4])};
    options.device_cache_bytes = strtoull(argv[2], NULL, 10) << 20;
    need(cogpu_context_open(&options, &run.context, &error));
    open_files(&run, (uint32_t)argc - 6, argv + 6);
    open_rasters(&run);
    for (int i = 1; i <= atoi(argv[5]); i++)
        read_epoch(&run, (uint32_t)i);
    return 0;
}
