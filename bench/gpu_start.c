/*
 * Where the time of the first GPU read of a process goes:
 *
 *     bench_gpu_start [--emu] FILE
 *
 *     cuInit           libcuda is loaded and initialised           bare CUDA: what any program pays
 *     context          the device's primary context                bare CUDA
 *     device           our object of the device
 *     raster           device memory for the raster
 *     first read       and of it: pinned memory, device memory, streams and events, copies, the
 *                      first launch of each kernel (which loads its module), further launches
 *     second read      the same once more: what remains of the first is its one-time cost
 *     cuFile           opened after all that, to show what a read that opens it would pay
 *
 * Run it several times: each is a fresh process. The first one of a machine also reads libcuda from
 * disk.
 */
#include "base/clock.h"
#include "context/context.h"
#include "gpu/driver/gds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cogpu_error error;

static void need(cogpu_status status) {
    if (status == COGPU_OK)
        return;
    fprintf(stderr, "bench_gpu_start: %s\n", error.message);
    exit(1);
}

static void print_step(const char *name, double seconds) {
    printf("%-28s %9.2f ms\n", name, 1e3 * seconds);
}

/* ---- calls of the driver, timed ------------------------------------------------------------ */

enum step { PINNED, DEVICE_MEMORY, FREE_MEMORY, STREAMS, COPIES, FIRST_LAUNCHES, LAUNCHES, STEPS };
static const char *const step_names[STEPS] = {"  pinned memory",     "  device memory",
                                              "  free memory asked", "  streams, events",
                                              "  copies queued",     "  first launches (modules)",
                                              "  further launches"};

static struct {
    double seconds;
    uint32_t calls;
    uint64_t bytes;
} steps[STEPS];

static const cogpu_gpu_driver *original;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of `steps` and `launched` */

static cogpu_status add_step(enum step step, double start, uint64_t bytes, cogpu_status status) {
    pthread_mutex_lock(&lock);
    steps[step].seconds += clock_now() - start;
    steps[step].calls++;
    steps[step].bytes += bytes;
    pthread_mutex_unlock(&lock);
    return status;
}

static cogpu_status timed_pinned(cogpu_gpu *gpu, uint64_t bytes, void **memory,
                                 cogpu_error *failure) {
    double start = clock_now();
    return add_step(PINNED, start, bytes, original->allocate_pinned(gpu, bytes, memory, failure));
}

static cogpu_status timed_allocate(cogpu_gpu *gpu, uint64_t bytes, void **memory,
                                   cogpu_error *failure) {
    double start = clock_now();
    return add_step(DEVICE_MEMORY, start, bytes, original->allocate(gpu, bytes, memory, failure));
}

static cogpu_status timed_memory(cogpu_gpu *gpu, uint64_t *free_bytes, uint64_t *total,
                                 cogpu_error *failure) {
    double start = clock_now();
    return add_step(FREE_MEMORY, start, 0, original->memory(gpu, free_bytes, total, failure));
}

static cogpu_status timed_stream(cogpu_gpu *gpu, bool is_urgent, cogpu_gpu_stream **stream,
                                 cogpu_error *failure) {
    double start = clock_now();
    return add_step(STREAMS, start, 0, original->stream_open(gpu, is_urgent, stream, failure));
}

static cogpu_status timed_event(cogpu_gpu *gpu, cogpu_gpu_event **event, cogpu_error *failure) {
    double start = clock_now();
    return add_step(STREAMS, start, 0, original->event_open(gpu, event, failure));
}

static cogpu_status timed_copy(cogpu_gpu *gpu, void *to, const void *from, uint64_t bytes,
                               cogpu_gpu_stream *stream, cogpu_error *failure) {
    double start = clock_now();
    return add_step(COPIES, start, bytes, original->copy_up(gpu, to, from, bytes, stream, failure));
}

/* Whether a kernel has not been launched before. */
static bool is_first_launch(const cogpu_kernel *kernel) {
    enum { KERNELS_MAX = 64 };
    static const cogpu_kernel *launched[KERNELS_MAX];
    uint32_t i = 0;
    pthread_mutex_lock(&lock);
    while (i < KERNELS_MAX && launched[i] && launched[i] != kernel)
        i++;
    bool is_first = i < KERNELS_MAX && !launched[i];
    if (is_first)
        launched[i] = kernel;
    pthread_mutex_unlock(&lock);
    return is_first;
}

static cogpu_status timed_launch(cogpu_gpu *gpu, const cogpu_kernel *kernel, uint32_t blocks,
                                 const void *args, cogpu_gpu_stream *stream, cogpu_error *failure) {
    enum step step = is_first_launch(kernel) ? FIRST_LAUNCHES : LAUNCHES;
    double start = clock_now();
    cogpu_status status = original->launch(gpu, kernel, blocks, args, stream, failure);
    if (step == FIRST_LAUNCHES)
        printf("    %-26s %7.2f ms\n", kernel->name, 1e3 * (clock_now() - start));
    return add_step(step, start, 0, status);
}

static void time_calls(cogpu_gpu *gpu) {
    static cogpu_gpu_driver timed;
    original = gpu->calls;
    timed = *original;
    timed.allocate_pinned = timed_pinned;
    timed.allocate = timed_allocate;
    timed.memory = timed_memory;
    timed.stream_open = timed_stream;
    timed.event_open = timed_event;
    timed.copy_up = timed_copy;
    timed.launch = timed_launch;
    gpu->calls = &timed;
}

static void print_steps(void) {
    for (uint32_t i = 0; i < STEPS; i++)
        if (steps[i].calls > 0)
            printf("%-28s %9.2f ms  %5u calls  %8.2f MiB\n", step_names[i], 1e3 * steps[i].seconds,
                   steps[i].calls, (double)steps[i].bytes / (1 << 20));
    memset(steps, 0, sizeof steps);
}

/* ---- the reads ----------------------------------------------------------------------------- */

/* A context whose device is this one. */
static cogpu_context *open_context(cogpu_gpu *gpu, bool is_emu) {
    cogpu_context *context = NULL;
    cogpu_opened_device *opened = cogpu_allocate(sizeof *opened);
    if (!opened)
        exit(1);
    need(cogpu_context_open(NULL, &context, &error));
    *opened = (cogpu_opened_device){.kind = is_emu ? COGPU_DEVICE_EMULATOR : COGPU_DEVICE_CUDA};
    need(cogpu_gpu_device_open(gpu, context->device_bytes, false, &opened->device, &error));
    context->devices = opened;
    return context;
}

static void measure_read(const char *name, cogpu_file *file, cogpu_context *context,
                         cogpu_raster *raster) {
    cogpu_request request = {.struct_size = sizeof(cogpu_request), .context = context};
    cogpu_result result = COGPU_RESULT_INIT;
    double start = clock_now();
    need(cogpu_read(file, &request, raster, &result, &error));
    print_step(name, clock_now() - start);
    print_steps();
    printf("  %llu blocks, %llu of them by the device\n", (unsigned long long)result.blocks,
           (unsigned long long)result.device_blocks);
}

static void measure_file(const char *path, bool is_emu, cogpu_gpu *gpu) {
    cogpu_file *file = NULL;
    cogpu_image image = COGPU_IMAGE_INIT;
    double start = clock_now();
    time_calls(gpu);
    cogpu_context *context = open_context(gpu, is_emu);
    print_step("device", clock_now() - start);
    start = clock_now();
    need(cogpu_open(path, NULL, &file, &error));
    need(cogpu_image_info(file, 0, &image, &error));
    print_step("open the file", clock_now() - start);
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .type = image.type,
                           .bands = image.bands,
                           .width = image.width,
                           .height = image.height,
                           .device = is_emu ? COGPU_DEVICE_EMULATOR : COGPU_DEVICE_CUDA};
    start = clock_now();
    need(cogpu_device_allocate(context, raster.device, 0,
                               cogpu_type_bytes(image.type) * image.bands * (uint64_t)image.width *
                                   image.height,
                               &raster.data, &error));
    print_step("raster", clock_now() - start);
    memset(steps, 0, sizeof steps);
    measure_read("first read", file, context, &raster);
    measure_read("second read", file, context, &raster);
    start = clock_now();
    const char *reason = cogpu_gds_unavailable_reason();
    print_step("cuFile", clock_now() - start);
    printf("  %s\n", reason ? reason : "direct");
    cogpu_device_free(context, raster.device, 0, raster.data);
    cogpu_close(file);
    cogpu_context_close(context);
}

int main(int count, char **words) {
    const bool is_emu = count > 1 && strcmp(words[1], "--emu") == 0;
    const char *why = NULL;
    cogpu_gpu *gpu = NULL;
    if (count != 2 + is_emu) {
        fprintf(stderr, "usage: bench_gpu_start [--emu] FILE\n");
        return 2;
    }
    setenv("COGPU_ALWAYS_DEVICE", "1", 1); /* else the CPU decodes small files */
    double start = clock_now();
    if (!is_emu)
        (void)cogpu_gpu_count(&why);
    print_step("cuInit", clock_now() - start);
    start = clock_now();
    need(is_emu ? cogpu_gpu_open_emulator(1, UINT64_C(8) << 30, &gpu, &error)
                : cogpu_gpu_open_cuda(0, &gpu, &error));
    print_step("context", clock_now() - start);
    measure_file(words[1 + is_emu], is_emu, gpu);
    return 0;
}
