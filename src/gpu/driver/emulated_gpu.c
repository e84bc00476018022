/*
 * The emulated device. Device memory is host memory, each allocation on its own so that
 * AddressSanitizer sees its ends. A stream is a list of operations, which run when a thread waits
 * for them, or at random. Any thread may use it, as a GPU: one lock is held over each call, kernels
 * included.
 */
#include "gpu/driver/emulator.h"
#include "gpu/driver/gpu.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes)   ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

enum operation_kind { OP_COPY, OP_CLEAR, OP_LAUNCH, OP_RECORD, OP_WAIT };
enum { ARGS_MAX = 512 };

struct operation {
    struct operation *next;
    enum operation_kind kind;
    void *to;
    const void *from;
    uint64_t bytes;
    const cogpu_kernel *kernel;
    uint32_t blocks;
    struct recording *recording;
    _Alignas(16) uint8_t args[ARGS_MAX];
};

struct cogpu_gpu_stream {
    struct emu_gpu *gpu;
    struct operation *first, **last;
};

/* One recording of an event. The event may be recorded again, in another stream, while operations
 * still wait for this recording: references are counted. */
struct recording {
    uint32_t references;
    bool is_done;
    cogpu_gpu_stream *stream;
};

struct cogpu_gpu_event {
    struct recording *last; /* NULL: nothing to wait for */
};

/* An allocation. The bytes before and after `memory`, which is aligned, are poisoned. */
struct allocation {
    struct allocation *next;
    uint8_t *all, *memory;
    uint64_t bytes;
    bool is_pinned;
};

/* New memory is filled with a random byte, up to NOISE_MAX: pages that are not used stay untouched.
 */
enum { ALIGN = 256, NOISE_MAX = 1 << 20 };

struct emu_gpu {
    cogpu_gpu base;
    pthread_mutex_t lock; /* of all below, streams and events included */
    uint64_t random, used;
    struct allocation *allocations;
    char failure[240]; /* sticky, as that of a CUDA context */
    cogpu_emu_stacks stacks;
};

static struct emu_gpu *emu_of(cogpu_gpu *gpu) {
    return (struct emu_gpu *)gpu;
}

static struct emu_gpu *lock_device(cogpu_gpu *gpu) {
    struct emu_gpu *emu = emu_of(gpu);
    pthread_mutex_lock(&emu->lock);
    return emu;
}

static void unlock_device(struct emu_gpu *emu) {
    pthread_mutex_unlock(&emu->lock);
}

static cogpu_status unlock_with(struct emu_gpu *emu, cogpu_status status) {
    unlock_device(emu);
    return status;
}

static uint64_t draw_random(struct emu_gpu *emu) {
    emu->random ^= emu->random << 13;
    emu->random ^= emu->random >> 7;
    emu->random ^= emu->random << 17;
    return emu->random;
}

static cogpu_status check_failure(const struct emu_gpu *emu, cogpu_error *error) {
    return emu->failure[0] ? cogpu_fail(error, COGPU_DEVICE_ERROR, "emulator: %s", emu->failure)
                           : COGPU_OK;
}

/* ---- memory -------------------------------------------------------------------------------- */

static cogpu_status allocate_memory(struct emu_gpu *emu, uint64_t bytes, bool is_pinned,
                                    void **memory, cogpu_error *error) {
    struct allocation *allocation = cogpu_allocate(sizeof *allocation);
    bool fits = is_pinned || bytes <= emu->base.total_bytes - emu->used;
    uint8_t *all = allocation && fits ? cogpu_allocate((size_t)bytes + 2 * ALIGN) : NULL;
    *memory = NULL;
    if (!all) {
        cogpu_release(allocation);
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "the emulated device has no %llu bytes left",
                          (unsigned long long)bytes);
    }
    uint8_t *start = all + (ALIGN - (uintptr_t)all % ALIGN);
    memset(start, (int)(draw_random(emu) & 0xFF), (size_t)(bytes < NOISE_MAX ? bytes : NOISE_MAX));
    ASAN_POISON_MEMORY_REGION(all, (size_t)(start - all));
    ASAN_POISON_MEMORY_REGION(start + bytes, (size_t)(all + 2 * ALIGN - start));
    *allocation = (struct allocation){emu->allocations, all, start, bytes, is_pinned};
    emu->allocations = allocation;
    emu->used += is_pinned ? 0 : bytes;
    *memory = start;
    return COGPU_OK;
}

/* The allocation that contains an address, or NULL. */
static const struct allocation *find_allocation(const struct emu_gpu *emu, const void *memory) {
    const uint8_t *at = memory;
    const struct allocation *allocation = emu->allocations;
    while (allocation && !(at >= allocation->memory && at < allocation->memory + allocation->bytes))
        allocation = allocation->next;
    return allocation;
}

bool cogpu_gpu_emulator_owns_memory(cogpu_gpu *gpu, const void *memory) {
    struct emu_gpu *emu = lock_device(gpu);
    const struct allocation *allocation = find_allocation(emu, memory);
    bool is_device = allocation && !allocation->is_pinned;
    unlock_device(emu);
    return is_device;
}

static void emu_release(cogpu_gpu *gpu, void *memory) {
    struct emu_gpu *emu = lock_device(gpu);
    struct allocation **link = &emu->allocations, *allocation;
    while (*link && (*link)->memory != memory)
        link = &(*link)->next;
    allocation = *link;
    if (allocation) {
        *link = allocation->next;
        emu->used -= allocation->is_pinned ? 0 : allocation->bytes;
        ASAN_UNPOISON_MEMORY_REGION(allocation->all, (size_t)allocation->bytes + 2 * ALIGN);
        cogpu_release(allocation->all);
        cogpu_release(allocation);
    }
    unlock_device(emu);
}

static cogpu_status emu_allocate(cogpu_gpu *gpu, uint64_t bytes, void **memory,
                                 cogpu_error *error) {
    struct emu_gpu *emu = lock_device(gpu);
    return unlock_with(emu, allocate_memory(emu, bytes, false, memory, error));
}

static cogpu_status emu_allocate_pinned(cogpu_gpu *gpu, uint64_t bytes, void **memory,
                                        cogpu_error *error) {
    struct emu_gpu *emu = lock_device(gpu);
    return unlock_with(emu, allocate_memory(emu, bytes, true, memory, error));
}

static bool emu_is_pinned(cogpu_gpu *gpu, const void *memory, uint64_t bytes) {
    struct emu_gpu *emu = lock_device(gpu);
    const struct allocation *allocation = find_allocation(emu, memory);
    bool is_pinned =
        allocation && allocation->is_pinned &&
        bytes <= (uint64_t)(allocation->memory + allocation->bytes - (const uint8_t *)memory);
    unlock_device(emu);
    return is_pinned;
}

static cogpu_status emu_memory(cogpu_gpu *gpu, uint64_t *free_bytes, uint64_t *total,
                               cogpu_error *error) {
    (void)error;
    struct emu_gpu *emu = lock_device(gpu);
    *total = gpu->total_bytes;
    *free_bytes = gpu->total_bytes - emu->used;
    return unlock_with(emu, COGPU_OK);
}

/* ---- streams ------------------------------------------------------------------------------- */

static void drop_recording(struct recording *recording) {
    if (recording && --recording->references == 0)
        cogpu_release(recording);
}

static void run_stream(struct emu_gpu *emu, cogpu_gpu_stream *stream,
                       const struct recording *until);

static void complete_recording(struct emu_gpu *emu, const struct recording *recording) {
    if (recording && !recording->is_done)
        run_stream(emu, recording->stream, recording);
}

static void run_operation(struct emu_gpu *emu, struct operation *operation) {
    switch (operation->kind) {
    case OP_COPY:
        memcpy(operation->to, operation->from, (size_t)operation->bytes);
        break;
    case OP_CLEAR:
        memset(operation->to, 0, (size_t)operation->bytes);
        break;
    case OP_RECORD:
        operation->recording->is_done = true;
        break;
    case OP_WAIT:
        complete_recording(emu, operation->recording);
        break;
    case OP_LAUNCH: {
        cogpu_emu_finding finding = cogpu_emu_run(operation->kernel, operation->blocks,
                                                  operation->args, draw_random(emu), &emu->stacks);
        memcpy(emu->failure, finding.text, sizeof emu->failure);
    }
    }
}

/* Runs the operations of a stream, up to a recording if one is given. After a failure only events
 * are recorded. */
static void run_stream(struct emu_gpu *emu, cogpu_gpu_stream *stream,
                       const struct recording *until) {
    while (stream->first && !(until && until->is_done)) {
        struct operation *operation = stream->first;
        stream->first = operation->next;
        if (!stream->first)
            stream->last = &stream->first;
        if (!emu->failure[0] || operation->kind == OP_RECORD)
            run_operation(emu, operation);
        drop_recording(operation->recording);
        cogpu_release(operation);
    }
}

static cogpu_status append_operation(struct emu_gpu *emu, cogpu_gpu_stream *stream,
                                     const struct operation *kind, cogpu_error *error) {
    TRY(check_failure(emu, error));
    struct operation *operation = cogpu_allocate(sizeof *operation);
    if (!operation)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for the emulator");
    *operation = *kind;
    *stream->last = operation;
    stream->last = &operation->next;
    if (draw_random(emu) % 4 == 0)
        run_stream(emu, stream, NULL);
    return COGPU_OK;
}

static cogpu_status queue_operation(cogpu_gpu *gpu, cogpu_gpu_stream *stream,
                                    const struct operation *kind, cogpu_error *error) {
    struct emu_gpu *emu = lock_device(gpu);
    return unlock_with(emu, append_operation(emu, stream, kind, error));
}

static cogpu_status emu_stream_open(cogpu_gpu *gpu, bool is_urgent, cogpu_gpu_stream **stream,
                                    cogpu_error *error) {
    (void)is_urgent;
    *stream = cogpu_allocate(sizeof **stream);
    if (!*stream)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for a stream");
    **stream = (cogpu_gpu_stream){.gpu = emu_of(gpu)};
    (*stream)->last = &(*stream)->first;
    return COGPU_OK;
}

static void emu_stream_close(cogpu_gpu *gpu, cogpu_gpu_stream *stream) {
    struct emu_gpu *emu = lock_device(gpu);
    if (stream)
        run_stream(emu, stream, NULL);
    unlock_device(emu);
    cogpu_release(stream);
}

static cogpu_status emu_event_open(cogpu_gpu *gpu, cogpu_gpu_event **event, cogpu_error *error) {
    (void)gpu;
    *event = cogpu_allocate(sizeof **event);
    if (!*event)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for an event");
    **event = (cogpu_gpu_event){0};
    return COGPU_OK;
}

static void emu_event_close(cogpu_gpu *gpu, cogpu_gpu_event *event) {
    struct emu_gpu *emu = lock_device(gpu);
    if (event)
        drop_recording(event->last);
    unlock_device(emu);
    cogpu_release(event);
}

static cogpu_status emu_copy(cogpu_gpu *gpu, void *to, const void *from, uint64_t bytes,
                             cogpu_gpu_stream *stream, cogpu_error *error) {
    struct operation operation = {.kind = OP_COPY, .to = to, .from = from, .bytes = bytes};
    return queue_operation(gpu, stream, &operation, error);
}

static cogpu_status emu_clear(cogpu_gpu *gpu, void *to, uint64_t bytes, cogpu_gpu_stream *stream,
                              cogpu_error *error) {
    struct operation operation = {.kind = OP_CLEAR, .to = to, .bytes = bytes};
    return queue_operation(gpu, stream, &operation, error);
}

static cogpu_status emu_launch(cogpu_gpu *gpu, const cogpu_kernel *kernel, uint32_t blocks,
                               const void *args, cogpu_gpu_stream *stream, cogpu_error *error) {
    struct operation operation = {.kind = OP_LAUNCH, .kernel = kernel, .blocks = blocks};
    if (kernel->args_bytes > ARGS_MAX)
        return cogpu_fail(error, COGPU_DEVICE_ERROR,
                          "%s has more arguments than the emulator takes", kernel->name);
    if (!cogpu_gpu_fits(gpu, kernel))
        return cogpu_fail(error, COGPU_DEVICE_ERROR,
                          "%s needs %zu bytes of shared memory, and the emulated device has %u",
                          kernel->name, kernel->shared_bytes, gpu->shared_bytes);
    memcpy(operation.args, args, kernel->args_bytes);
    return queue_operation(gpu, stream, &operation, error);
}

static bool is_default(const cogpu_gpu_stream *stream) {
    return !stream || stream == COGPU_GPU_LEGACY || stream == COGPU_GPU_PER_THREAD;
}

/* The default stream has no operations: it is always idle. */
static cogpu_status record_event(struct emu_gpu *emu, cogpu_gpu_event *event,
                                 cogpu_gpu_stream *stream, cogpu_error *error) {
    struct recording *recording = is_default(stream) ? NULL : cogpu_allocate(sizeof *recording);
    if (!is_default(stream) && !recording)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for the emulator");
    if (recording) {
        *recording = (struct recording){.references = 2, .stream = stream};
        cogpu_status status = append_operation(
            emu, stream, &(struct operation){.kind = OP_RECORD, .recording = recording}, error);
        if (status != COGPU_OK) {
            cogpu_release(recording);
            return status;
        }
    }
    drop_recording(event->last);
    event->last = recording;
    return COGPU_OK;
}

static cogpu_status emu_record(cogpu_gpu *gpu, cogpu_gpu_event *event, cogpu_gpu_stream *stream,
                               cogpu_error *error) {
    struct emu_gpu *emu = lock_device(gpu);
    return unlock_with(emu, record_event(emu, event, stream, error));
}

static cogpu_status emu_finish_event(cogpu_gpu *gpu, cogpu_gpu_event *event, cogpu_error *error) {
    struct emu_gpu *emu = lock_device(gpu);
    complete_recording(emu, event->last);
    return unlock_with(emu, check_failure(emu, error));
}

static cogpu_status wait_event(struct emu_gpu *emu, cogpu_gpu_stream *stream,
                               cogpu_gpu_event *event, cogpu_error *error) {
    struct operation operation = {.kind = OP_WAIT, .recording = event->last};
    if (!event->last || event->last->is_done)
        return COGPU_OK;
    if (is_default(stream)) {
        complete_recording(emu, event->last);
        return check_failure(emu, error);
    }
    event->last->references++;
    cogpu_status status = append_operation(emu, stream, &operation, error);
    if (status != COGPU_OK)
        drop_recording(operation.recording);
    return status;
}

static cogpu_status emu_wait_event(cogpu_gpu *gpu, cogpu_gpu_stream *stream, cogpu_gpu_event *event,
                                   cogpu_error *error) {
    struct emu_gpu *emu = lock_device(gpu);
    return unlock_with(emu, wait_event(emu, stream, event, error));
}

static cogpu_status emu_finish_stream(cogpu_gpu *gpu, cogpu_gpu_stream *stream,
                                      cogpu_error *error) {
    struct emu_gpu *emu = lock_device(gpu);
    run_stream(emu, stream, NULL);
    return unlock_with(emu, check_failure(emu, error));
}

/* Operations that no thread waits for run at times. */
static bool emu_is_over(cogpu_gpu *gpu, cogpu_gpu_event *event) {
    struct emu_gpu *emu = lock_device(gpu);
    if (draw_random(emu) % 2 == 0)
        complete_recording(emu, event->last);
    bool is_over = !event->last || event->last->is_done;
    unlock_device(emu);
    return is_over;
}

static float emu_milliseconds(cogpu_gpu *gpu, cogpu_gpu_event *from, cogpu_gpu_event *to) {
    (void)gpu, (void)from, (void)to;
    return 0;
}

static void emu_close(cogpu_gpu *gpu) {
    struct emu_gpu *emu = emu_of(gpu);
    while (emu->allocations)
        emu_release(gpu, emu->allocations->memory);
    pthread_mutex_destroy(&emu->lock);
    cogpu_emu_stacks_release(&emu->stacks);
    cogpu_release(emu);
}

static bool emu_make_current(cogpu_gpu *gpu) {
    (void)gpu;
    return true;
}

static void emu_restore_current(cogpu_gpu *gpu) {
    (void)gpu;
}

static const cogpu_gpu_driver emu_calls = {
    .close = emu_close,
    .make_current = emu_make_current,
    .restore_current = emu_restore_current,
    .memory = emu_memory,
    .allocate = emu_allocate,
    .release = emu_release,
    .allocate_pinned = emu_allocate_pinned,
    .release_pinned = emu_release,
    .is_pinned = emu_is_pinned,
    .stream_open = emu_stream_open,
    .stream_close = emu_stream_close,
    .event_open = emu_event_open,
    .event_close = emu_event_close,
    .copy_up = emu_copy,
    .copy_down = emu_copy,
    .clear = emu_clear,
    .launch = emu_launch,
    .record = emu_record,
    .wait_event = emu_wait_event,
    .finish_event = emu_finish_event,
    .finish_stream = emu_finish_stream,
    .is_over = emu_is_over,
    .milliseconds = emu_milliseconds,
};

/* The compute capability by the environment, as cogpu_gpu.capability. */
static cogpu_status read_capability(uint32_t *capability, cogpu_error *error) {
    const char *text = getenv("COGPU_EMU_CAPABILITY");
    unsigned major, minor;
    char rest;
    *capability = 90;
    if (!text)
        return COGPU_OK;
    if (sscanf(text, "%2u.%1u%c", &major, &minor, &rest) != 2)
        return cogpu_fail(error, COGPU_DEVICE_ERROR,
                          "COGPU_EMU_CAPABILITY must be a compute capability as 7.5, got \"%.40s\"",
                          text);
    *capability = 10 * major + minor;
    return COGPU_OK;
}

/* Maximum shared memory of a thread block: CUDA's table of technical specifications. */
static uint32_t shared_bytes_of(uint32_t capability) {
    const uint32_t kilobytes = capability < 80                        ? 64
                               : capability == 80 || capability == 87 ? 163
                               : capability >= 90 && capability < 120 ? 227
                                                                      : 99;
    return kilobytes << 10;
}

cogpu_status cogpu_gpu_open_emulator(uint64_t seed, uint64_t bytes, cogpu_gpu **gpu,
                                     cogpu_error *error) {
    cogpu_gpu base = {.calls = &emu_calls,
                      .name = "the emulated device",
                      .multiprocessors = 2,
                      .total_bytes = bytes,
                      .is_emulated = true};
    if (!COGPU_EMU_WORKS)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "the emulator runs on x86-64 and on little-endian AArch64 only; use cpu");
    TRY(read_capability(&base.capability, error));
    TRY(cogpu_gpu_check(&base, error));
    base.shared_bytes = shared_bytes_of(base.capability);
    struct emu_gpu *emu = cogpu_allocate(sizeof *emu);
    if (!emu)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for the emulated device");
    *emu =
        (struct emu_gpu){.base = base, .random = seed * 0x9E3779B97F4A7C15u + 0xD1B54A32D192ED03u};
    pthread_mutex_init(&emu->lock, NULL);
    *gpu = &emu->base;
    return COGPU_OK;
}
