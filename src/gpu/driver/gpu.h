/*
 * The driver interface of a GPU: memory, copies, streams, events and launches. It has two
 * implementations: the CUDA driver API (cuda.c) and the emulator (emulated_gpu.c). The emulator
 * runs the work of a stream as late as it may, so that a missing wait shows up in tests.
 *
 * All calls may be made by any thread at any time. They fail with COGPU_OUT_OF_MEMORY if memory is
 * lacking, with COGPU_DEVICE_ERROR otherwise.
 */
#ifndef COGPU_GPU_DRIVER_GPU_H
#define COGPU_GPU_DRIVER_GPU_H

#include "base/memory.h"
#include "gpu/driver/kernel.h"

#include <stdbool.h>

typedef struct cogpu_gpu cogpu_gpu;

/* A CUstream or CUevent, or the emulator's. */
typedef struct cogpu_gpu_stream cogpu_gpu_stream;
typedef struct cogpu_gpu_event cogpu_gpu_event;

/* CUDA's handles of default streams: the legacy one, as NULL, and the per-thread one, which is
 * another stream on each thread. On an emulated device both are the same, and always idle. */
#define COGPU_GPU_LEGACY     ((cogpu_gpu_stream *)1)
#define COGPU_GPU_PER_THREAD ((cogpu_gpu_stream *)2)

typedef struct cogpu_gpu_driver {
    void (*close)(cogpu_gpu *gpu);
    /* Makes the device's context current on this thread, for libraries that need that, and restores
     * the former one. */
    bool (*make_current)(cogpu_gpu *gpu);
    void (*restore_current)(cogpu_gpu *gpu);
    cogpu_status (*memory)(cogpu_gpu *gpu, uint64_t *free, uint64_t *total, cogpu_error *error);
    /* Device memory, aligned to 256 bytes. Work that uses it may still be queued at its release. */
    cogpu_status (*allocate)(cogpu_gpu *gpu, uint64_t bytes, void **memory, cogpu_error *error);
    void (*release)(cogpu_gpu *gpu, void *memory);
    /* Pinned host memory, for asynchronous copies. */
    cogpu_status (*allocate_pinned)(cogpu_gpu *gpu, uint64_t bytes, void **memory,
                                    cogpu_error *error);
    void (*release_pinned)(cogpu_gpu *gpu, void *memory);
    /* Whether all these bytes of host memory are pinned, by any library. */
    bool (*is_pinned)(cogpu_gpu *gpu, const void *memory, uint64_t bytes);

    /* A non-blocking stream; with `is_urgent` of the highest priority. */
    cogpu_status (*stream_open)(cogpu_gpu *gpu, bool is_urgent, cogpu_gpu_stream **stream,
                                cogpu_error *error);
    void (*stream_close)(cogpu_gpu *gpu, cogpu_gpu_stream *stream);
    cogpu_status (*event_open)(cogpu_gpu *gpu, cogpu_gpu_event **event, cogpu_error *error);
    void (*event_close)(cogpu_gpu *gpu, cogpu_gpu_event *event);

    /* Asynchronous, in stream order. Only `record` and `wait_event` accept default streams. */
    cogpu_status (*copy_up)(cogpu_gpu *gpu, void *to, const void *from, uint64_t bytes,
                            cogpu_gpu_stream *stream, cogpu_error *error);
    cogpu_status (*copy_down)(cogpu_gpu *gpu, void *to, const void *from, uint64_t bytes,
                              cogpu_gpu_stream *stream, cogpu_error *error);
    cogpu_status (*clear)(cogpu_gpu *gpu, void *to, uint64_t bytes, cogpu_gpu_stream *stream,
                          cogpu_error *error);
    /* `args` is copied. */
    cogpu_status (*launch)(cogpu_gpu *gpu, const cogpu_kernel *kernel, uint32_t blocks,
                           const void *args, cogpu_gpu_stream *stream, cogpu_error *error);
    cogpu_status (*record)(cogpu_gpu *gpu, cogpu_gpu_event *event, cogpu_gpu_stream *stream,
                           cogpu_error *error);
    /* Later work of the stream waits for the event as it was last recorded. */
    cogpu_status (*wait_event)(cogpu_gpu *gpu, cogpu_gpu_stream *stream, cogpu_gpu_event *event,
                               cogpu_error *error);

    /* Synchronous; they also report earlier failures of the device. */
    cogpu_status (*finish_event)(cogpu_gpu *gpu, cogpu_gpu_event *event, cogpu_error *error);
    cogpu_status (*finish_stream)(cogpu_gpu *gpu, cogpu_gpu_stream *stream, cogpu_error *error);
    /* Whether the event, as it was last recorded, has completed. */
    bool (*is_over)(cogpu_gpu *gpu, cogpu_gpu_event *event);
    /* Between two recorded events; 0 unless both have completed. */
    float (*milliseconds)(cogpu_gpu *gpu, cogpu_gpu_event *from, cogpu_gpu_event *to);
} cogpu_gpu_driver;

/* First member of both implementations. */
struct cogpu_gpu {
    const cogpu_gpu_driver *calls;
    char name[128];
    uint32_t multiprocessors;
    uint32_t capability;   /* 90 for compute capability 9.0 */
    uint32_t shared_bytes; /* maximum shared memory of a thread block, by opt-in */
    uint64_t total_bytes;
    bool is_emulated;
};

/* The least compute capability, as cogpu_gpu.capability. The kernels need the warp functions
 * of 7.0; 7.5 is the least that nvcc compiles for since CUDA 13. */
enum { COGPU_GPU_CAPABILITY_MIN = 75 };
/* Fails with COGPU_DEVICE_ERROR and the reason if the library has no kernels for this device. */
cogpu_status cogpu_gpu_check(const cogpu_gpu *gpu, cogpu_error *error);
/* The compute capabilities that the build has kernels for: "7.5, 8.0, 9.0 and later". */
enum { COGPU_GPU_LIST_BYTES = 80 };
void cogpu_gpu_list_capabilities(char text[COGPU_GPU_LIST_BYTES]);

/* Number of GPUs, those that cannot be used included. `why` says why none can be used, or is NULL.
 */
uint32_t cogpu_gpu_count(const char **why);
/* Properties of a GPU, without its context. */
cogpu_status cogpu_gpu_describe_cuda(uint32_t ordinal, cogpu_gpu *properties, cogpu_error *error);
/* The GPU whose context is current on the calling thread; 0 if there is none. */
cogpu_status cogpu_gpu_current(uint32_t *ordinal, cogpu_error *error);
/* Whether this is device memory, allocated by any library and not released, and of which GPU. */
bool cogpu_gpu_owns_memory(const void *memory, uint32_t *ordinal);
cogpu_status cogpu_gpu_open_cuda(uint32_t ordinal, cogpu_gpu **gpu, cogpu_error *error);

/* The seed decides the order of all that may run in any order. `bytes` is the device memory. The
 * environment variable COGPU_EMU_CAPABILITY ("7.5"; default 9.0) is the compute capability: it
 * decides how much shared memory a thread block may have. */
cogpu_status cogpu_gpu_open_emulator(uint64_t seed, uint64_t bytes, cogpu_gpu **gpu,
                                     cogpu_error *error);
/* Whether memory was allocated on this emulated device. */
bool cogpu_gpu_emulator_owns_memory(cogpu_gpu *gpu, const void *memory);

/* Whether the device has the shared memory that a kernel needs. */
static inline bool cogpu_gpu_fits(const cogpu_gpu *gpu, const cogpu_kernel *kernel) {
    return kernel->shared_bytes <= gpu->shared_bytes;
}
/* The same for all kernels of a list, which ends with NULL. Without a list there are none. */
bool cogpu_gpu_can_run(const cogpu_gpu *gpu, const cogpu_kernel *const *kernels);

/* Later work of `stream` waits for all work that `before` has now. */
cogpu_status cogpu_gpu_stream_wait(cogpu_gpu *gpu, cogpu_gpu_stream *stream,
                                   cogpu_gpu_stream *before, cogpu_error *error);

#endif
