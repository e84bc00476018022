/*
 * A device as the CUDA backend sees it: memory, copies, streams, events and launches. There are two
 * kinds: a GPU, through NVIDIA's driver, which is looked for when it is first asked for
 * (gpu_driver.c), and the emulator (gpu_emu.c), where a stream is a list of things to do that is
 * worked off as late as it may be, so that whoever forgets to wait is found out.
 *
 * A failure of a call is COGPU_MEMORY where memory is lacking, COGPU_DEVICE for all else.
 */
#ifndef COGPU_BACKEND_CUDA_GPU_H
#define COGPU_BACKEND_CUDA_GPU_H

#include "backend/cuda/kernel.h"
#include "base/memory.h"

#include <stdbool.h>

typedef struct cogpu_gpu cogpu_gpu;

/* A CUstream or CUevent, or the emulator's. */
typedef struct cogpu_gpu_stream cogpu_gpu_stream;
typedef struct cogpu_gpu_event cogpu_gpu_event;

/* CUDA's handles of default streams: that which all threads share, as NULL does, and the one that
 * each thread has of its own, so that it matters who records or waits. An emulated device has one,
 * which is always through. */
#define COGPU_GPU_LEGACY     ((cogpu_gpu_stream *)1)
#define COGPU_GPU_PER_THREAD ((cogpu_gpu_stream *)2)

typedef struct cogpu_gpu_calls {
    void (*close)(cogpu_gpu *gpu);
    /* For libraries that work on the device of their thread: makes it this one, and undoes it. */
    bool (*enter)(cogpu_gpu *gpu);
    void (*leave)(cogpu_gpu *gpu);
    cogpu_status (*memory)(cogpu_gpu *gpu, uint64_t *free, uint64_t *total, cogpu_error *error);
    /* On the device, aligned to 256 bytes. */
    cogpu_status (*allocate)(cogpu_gpu *gpu, uint64_t bytes, void **memory, cogpu_error *error);
    void (*release)(cogpu_gpu *gpu, void *memory);
    /* On the host, where copies to and from the device are fast and need not be waited for. */
    cogpu_status (*allocate_pinned)(cogpu_gpu *gpu, uint64_t bytes, void **memory,
                                    cogpu_error *error);
    void (*release_pinned)(cogpu_gpu *gpu, void *memory);
    /* Whether these bytes of the host, of whomever, lie in such memory. */
    bool (*is_pinned)(cogpu_gpu *gpu, const void *memory, uint64_t bytes);

    /* With `is_urgent` its kernels go before those of others. */
    cogpu_status (*stream_open)(cogpu_gpu *gpu, bool is_urgent, cogpu_gpu_stream **stream,
                                cogpu_error *error);
    void (*stream_close)(cogpu_gpu *gpu, cogpu_gpu_stream *stream);
    cogpu_status (*event_open)(cogpu_gpu *gpu, cogpu_gpu_event **event, cogpu_error *error);
    void (*event_close)(cogpu_gpu *gpu, cogpu_gpu_event *event);

    /* All of these come to pass in the order of the stream; none waits. `record` and `wait_event`
     * alone take default streams. */
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
    /* The stream goes on only after the event as it was last recorded. */
    cogpu_status (*wait_event)(cogpu_gpu *gpu, cogpu_gpu_stream *stream, cogpu_gpu_event *event,
                               cogpu_error *error);

    /* These wait, and tell what went wrong until then. */
    cogpu_status (*finish_event)(cogpu_gpu *gpu, cogpu_gpu_event *event, cogpu_error *error);
    cogpu_status (*finish_stream)(cogpu_gpu *gpu, cogpu_gpu_stream *stream, cogpu_error *error);
    /* Whether the event, as it was last recorded, has come to pass. */
    bool (*is_over)(cogpu_gpu *gpu, cogpu_gpu_event *event);
    /* Between two events that were recorded; 0 where they are not over. */
    float (*milliseconds)(cogpu_gpu *gpu, cogpu_gpu_event *from, cogpu_gpu_event *to);
} cogpu_gpu_calls;

/* What both kinds begin with. */
struct cogpu_gpu {
    const cogpu_gpu_calls *calls;
    char name[128];
    uint32_t multiprocessors;
    uint32_t capability; /* 90 for compute capability 9.0 */
    uint64_t total_bytes;
    bool is_emulated;
};

/* How many GPUs there are; 0 without a driver, and `why` says why. */
uint32_t cogpu_gpu_count(const char **why);
/* The GPU whose context is the calling thread's; 0 where it has none. */
cogpu_status cogpu_gpu_current(uint32_t *ordinal, cogpu_error *error);
/* Whether memory, of whomever, lies on a GPU, and on which. */
bool cogpu_gpu_holds(const void *memory, uint32_t *ordinal);
cogpu_status cogpu_gpu_open_driver(uint32_t ordinal, cogpu_gpu **gpu, cogpu_error *error);

/* The seed decides the order of everything that has none. `bytes` is the memory that the device
 * has.
 */
cogpu_status cogpu_gpu_open_emu(uint64_t seed, uint64_t bytes, cogpu_gpu **gpu, cogpu_error *error);
/* Whether memory was allocated on this emulated device. */
bool cogpu_gpu_emu_holds(cogpu_gpu *gpu, const void *memory);

/* What `stream` gets from now on comes after all that `before` holds now. */
cogpu_status cogpu_gpu_follow(cogpu_gpu *gpu, cogpu_gpu_stream *stream, cogpu_gpu_stream *before,
                              cogpu_error *error);

#endif
