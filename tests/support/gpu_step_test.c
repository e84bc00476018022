#include "support/gpu_step_test.h"

cogpu_gpu *gpu;
cogpu_gpu_stream *stream;
static cogpu_error error;

void open_gpu(int argc, char **argv) {
    draw_from(argc, argv);
    gpu = gpu_test_open(draw_state);
    gpu_test_need(gpu->calls->stream_open(gpu, false, &stream, &error), &error);
}

void close_gpu(void) {
    gpu->calls->stream_close(gpu, stream);
    gpu->calls->close(gpu);
}

void *allocate_host(size_t bytes) {
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory)
        abort();
    return memory;
}

void *upload(const void *from, size_t bytes) {
    void *memory;
    gpu_test_need(gpu->calls->allocate(gpu, bytes + !bytes, &memory, &error), &error);
    gpu_test_need(gpu->calls->copy_up(gpu, memory, from, bytes, stream, &error), &error);
    return memory;
}
