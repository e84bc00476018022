/* Fixture of tests of one kernel: a device with a stream, and memory on host and device. */
#ifndef COGPU_TESTS_GPU_STEP_TEST_H
#define COGPU_TESTS_GPU_STEP_TEST_H

#include "support/draw.h"
#include "support/gpu_test.h"

/* Open between open_gpu and close_gpu. */
extern cogpu_gpu *gpu;
extern cogpu_gpu_stream *stream;

void open_gpu(int argc, char **argv);

void close_gpu(void);

/* Exits where memory is out. */
void *allocate_host(size_t bytes);

/* A copy in device memory, which the caller releases. */
void *upload(const void *from, size_t bytes);

#endif
