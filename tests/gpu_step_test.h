/* What tests of one step on the device share: a device with a stream, and memory on both sides. */
#ifndef COGPU_TESTS_GPU_STEP_TEST_H
#define COGPU_TESTS_GPU_STEP_TEST_H

#include "draw.h"
#include "gpu_test.h"

static cogpu_gpu *gpu;
static cogpu_gpu_stream *stream;
static cogpu_error error;

static inline void open_gpu(int argc, char **argv) {
    draw_from(argc, argv);
    gpu = gpu_test_open(draw_state);
    gpu_test_need(gpu->calls->stream_open(gpu, false, &stream, &error), &error);
}

static inline void close_gpu(void) {
    gpu->calls->stream_close(gpu, stream);
    gpu->calls->close(gpu);
}

static inline void *room(size_t bytes) {
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory)
        abort();
    return memory;
}

static inline void *upload(const void *from, size_t bytes) {
    void *memory;
    gpu_test_need(gpu->calls->allocate(gpu, bytes + !bytes, &memory, &error), &error);
    gpu_test_need(gpu->calls->copy_up(gpu, memory, from, bytes, stream, &error), &error);
    return memory;
}

#endif
