#include "faults/faulty_gpu.h"

#include "faults/fault_injection.h"
#include "gpu/driver/emulator.h"
#include "support/test.h"

static faulty_gpu *faulty_of(cogpu_gpu *gpu) {
    return (faulty_gpu *)gpu;
}

/* ---- failing ---- */

static void faulty_kernel(const void *args, void *shared) {
    (void)args, (void)shared;
    cogpu_emu_fail("here", "the device is lost");
}

static const cogpu_kernel faulty_breaks = {.name = "breaks", .body = faulty_kernel, .threads = 32};

/* A kernel fails; the failure is sticky. */
static void faulty_lose(faulty_gpu *self) {
    cogpu_gpu *gpu = self->behind;
    cogpu_gpu_stream *stream = NULL;
    self->is_lost = true;
    if (!gpu->is_emulated)
        return;
    CHECK(gpu->calls->stream_open(gpu, false, &stream, NULL) == COGPU_OK);
    CHECK(gpu->calls->launch(gpu, &faulty_breaks, 1, self, stream, NULL) == COGPU_OK);
    CHECK(gpu->calls->finish_stream(gpu, stream, NULL) == COGPU_DEVICE_ERROR);
    gpu->calls->stream_close(gpu, stream);
}

/* Counts the call; fails if its turn has come. */
static cogpu_status faulty_turn(faulty_gpu *self, gpu_call call, cogpu_error *error) {
    bool is_chosen = self->kind == ANY_CALL || self->kind == call;
    self->made[ANY_CALL]++;
    long number = ++self->made[call];
    if (is_chosen && self->made[self->kind] == self->failing) {
        self->fired++;
        if (self->how == KERNEL_BREAKS)
            return COGPU_OK;
        if (self->how == CALL_FAILS)
            return cogpu_fail(error,
                              call == CALL_ALLOCATE || call == CALL_ALLOCATE_PINNED
                                  ? COGPU_OUT_OF_MEMORY
                                  : COGPU_DEVICE_ERROR,
                              "call %ld of kind %d is made to fail", number, (int)call);
        faulty_lose(self);
    }
    return self->is_lost ? cogpu_fail(error, COGPU_DEVICE_ERROR, "the device is lost") : COGPU_OK;
}

void faulty_arm(faulty_gpu *self, gpu_fault how, gpu_call kind, long n) {
    self->how = how;
    self->kind = kind;
    self->failing = n;
    self->fired = 0;
    memset(self->made, 0, sizeof self->made);
}

void faulty_disarm(faulty_gpu *self) {
    faulty_arm(self, CALL_FAILS, ANY_CALL, 0);
}

/* ---- counting ---- */

static void faulty_opened(faulty_gpu *self, gpu_resource kind, const void *at, uint64_t bytes) {
    CHECK(self->resource_count < FAULTY_RESOURCES_MAX);
    self->resources[self->resource_count].at = at;
    self->resources[self->resource_count].bytes = bytes;
    self->resources[self->resource_count++].kind = kind;
    self->bytes += kind == GPU_MEMORY ? bytes : 0;
    self->most_bytes = self->bytes > self->most_bytes ? self->bytes : self->most_bytes;
}

/* Checks that it is open and of this kind. */
static void faulty_closed(faulty_gpu *self, gpu_resource kind, const void *at) {
    uint32_t i = 0;
    while (i < self->resource_count &&
           (self->resources[i].at != at || self->resources[i].kind != kind))
        i++;
    CHECK(i < self->resource_count);
    if (i == self->resource_count)
        return;
    self->bytes -= kind == GPU_MEMORY ? self->resources[i].bytes : 0;
    self->resources[i] = self->resources[--self->resource_count];
}

/* ---- the calls ---- */

static cogpu_gpu *faulty_behind(cogpu_gpu *gpu) {
    faults_are_off = true;
    return faulty_of(gpu)->behind;
}

static cogpu_status faulty_back(cogpu_status status) {
    faults_are_off = false;
    return status;
}

#define BEHIND(name, ...)                                                                          \
    faulty_back(faulty_of(gpu)->behind->calls->name(faulty_behind(gpu), __VA_ARGS__))

/* The bodies of most calls. */
#define FAULTY_DO(call, name, ...)                                                                 \
    do {                                                                                           \
        TRY(faulty_turn(faulty_of(gpu), call, error));                                             \
        return BEHIND(name, __VA_ARGS__, error);                                                   \
    } while (0)

#define FAULTY_WAIT(call, name, what)                                                              \
    do {                                                                                           \
        cogpu_status own = faulty_turn(faulty_of(gpu), call, error);                               \
        cogpu_status status = BEHIND(name, what, own == COGPU_OK ? error : NULL);                  \
        return own == COGPU_OK ? status : own;                                                     \
    } while (0)

#define FAULTY_OPEN(call, name, resource, bytes, at, ...)                                          \
    do {                                                                                           \
        TRY(faulty_turn(faulty_of(gpu), call, error));                                             \
        TRY(BEHIND(name, __VA_ARGS__, at, error));                                                 \
        faulty_opened(faulty_of(gpu), resource, *(at), bytes);                                     \
        return COGPU_OK;                                                                           \
    } while (0)

#define FAULTY_CLOSE(name, resource, at)                                                           \
    do {                                                                                           \
        if (!(at))                                                                                 \
            return;                                                                                \
        faulty_closed(faulty_of(gpu), resource, at);                                               \
        faulty_of(gpu)->behind->calls->name(faulty_behind(gpu), at);                               \
        faults_are_off = false;                                                                    \
    } while (0)

static void faulty_close(cogpu_gpu *gpu) {
    CHECK(faulty_of(gpu)->resource_count == 0);
    faulty_of(gpu)->is_closed = true;
    faulty_of(gpu)->behind->calls->close(faulty_of(gpu)->behind);
}

static bool faulty_enter(cogpu_gpu *gpu) {
    cogpu_gpu *behind = faulty_of(gpu)->behind;
    return !faulty_of(gpu)->is_lost && behind->calls->make_current(behind);
}

static void faulty_leave(cogpu_gpu *gpu) {
    cogpu_gpu *behind = faulty_of(gpu)->behind;
    behind->calls->restore_current(behind);
}

static cogpu_status faulty_memory(cogpu_gpu *gpu, uint64_t *free_bytes, uint64_t *total,
                                  cogpu_error *error) {
    FAULTY_DO(CALL_MEMORY, memory, free_bytes, total);
}

static cogpu_status faulty_allocate(cogpu_gpu *gpu, uint64_t bytes, void **memory,
                                    cogpu_error *error) {
    FAULTY_OPEN(CALL_ALLOCATE, allocate, GPU_MEMORY, bytes, memory, bytes);
}

static void faulty_release(cogpu_gpu *gpu, void *memory) {
    FAULTY_CLOSE(release, GPU_MEMORY, memory);
}

static cogpu_status faulty_allocate_pinned(cogpu_gpu *gpu, uint64_t bytes, void **memory,
                                           cogpu_error *error) {
    FAULTY_OPEN(CALL_ALLOCATE_PINNED, allocate_pinned, GPU_PINNED, bytes, memory, bytes);
}

static void faulty_release_pinned(cogpu_gpu *gpu, void *memory) {
    FAULTY_CLOSE(release_pinned, GPU_PINNED, memory);
}

static bool faulty_is_pinned(cogpu_gpu *gpu, const void *memory, uint64_t bytes) {
    cogpu_gpu *behind = faulty_of(gpu)->behind;
    return behind->calls->is_pinned(behind, memory, bytes);
}

static cogpu_status faulty_stream_open(cogpu_gpu *gpu, bool is_urgent, cogpu_gpu_stream **stream,
                                       cogpu_error *error) {
    FAULTY_OPEN(CALL_STREAM_OPEN, stream_open, GPU_STREAM, 0, stream, is_urgent);
}

static void faulty_stream_close(cogpu_gpu *gpu, cogpu_gpu_stream *stream) {
    FAULTY_CLOSE(stream_close, GPU_STREAM, stream);
}

static cogpu_status faulty_event_open(cogpu_gpu *gpu, cogpu_gpu_event **event, cogpu_error *error) {
    TRY(faulty_turn(faulty_of(gpu), CALL_EVENT_OPEN, error));
    TRY(BEHIND(event_open, event, error));
    faulty_opened(faulty_of(gpu), GPU_EVENT, *event, 0);
    return COGPU_OK;
}

static void faulty_event_close(cogpu_gpu *gpu, cogpu_gpu_event *event) {
    FAULTY_CLOSE(event_close, GPU_EVENT, event);
}

static cogpu_status faulty_copy_up(cogpu_gpu *gpu, void *to, const void *from, uint64_t bytes,
                                   cogpu_gpu_stream *stream, cogpu_error *error) {
    FAULTY_DO(CALL_COPY_UP, copy_up, to, from, bytes, stream);
}

static cogpu_status faulty_copy_down(cogpu_gpu *gpu, void *to, const void *from, uint64_t bytes,
                                     cogpu_gpu_stream *stream, cogpu_error *error) {
    FAULTY_DO(CALL_COPY_DOWN, copy_down, to, from, bytes, stream);
}

static cogpu_status faulty_clear(cogpu_gpu *gpu, void *to, uint64_t bytes, cogpu_gpu_stream *stream,
                                 cogpu_error *error) {
    FAULTY_DO(CALL_CLEAR, clear, to, bytes, stream);
}

static cogpu_status faulty_launch(cogpu_gpu *gpu, const cogpu_kernel *kernel, uint32_t blocks,
                                  const void *args, cogpu_gpu_stream *stream, cogpu_error *error) {
    faulty_gpu *self = faulty_of(gpu);
    long fired_before = self->fired;
    TRY(faulty_turn(self, CALL_LAUNCH, error));
    return BEHIND(launch, self->fired > fired_before ? &faulty_breaks : kernel, blocks, args,
                  stream, error);
}

static cogpu_status faulty_record(cogpu_gpu *gpu, cogpu_gpu_event *event, cogpu_gpu_stream *stream,
                                  cogpu_error *error) {
    FAULTY_DO(CALL_RECORD, record, event, stream);
}

static cogpu_status faulty_wait_event(cogpu_gpu *gpu, cogpu_gpu_stream *stream,
                                      cogpu_gpu_event *event, cogpu_error *error) {
    FAULTY_DO(CALL_WAIT_EVENT, wait_event, stream, event);
}

static cogpu_status faulty_finish_event(cogpu_gpu *gpu, cogpu_gpu_event *event,
                                        cogpu_error *error) {
    FAULTY_WAIT(CALL_FINISH_EVENT, finish_event, event);
}

static cogpu_status faulty_finish_stream(cogpu_gpu *gpu, cogpu_gpu_stream *stream,
                                         cogpu_error *error) {
    FAULTY_WAIT(CALL_FINISH_STREAM, finish_stream, stream);
}

static bool faulty_is_over(cogpu_gpu *gpu, cogpu_gpu_event *event) {
    cogpu_gpu *behind = faulty_of(gpu)->behind;
    return behind->calls->is_over(behind, event);
}

static float faulty_milliseconds(cogpu_gpu *gpu, cogpu_gpu_event *from, cogpu_gpu_event *to) {
    cogpu_gpu *behind = faulty_of(gpu)->behind;
    return behind->calls->milliseconds(behind, from, to);
}

static const cogpu_gpu_driver faulty_calls = {
    .close = faulty_close,
    .make_current = faulty_enter,
    .restore_current = faulty_leave,
    .memory = faulty_memory,
    .allocate = faulty_allocate,
    .release = faulty_release,
    .allocate_pinned = faulty_allocate_pinned,
    .is_pinned = faulty_is_pinned,
    .release_pinned = faulty_release_pinned,
    .stream_open = faulty_stream_open,
    .stream_close = faulty_stream_close,
    .event_open = faulty_event_open,
    .event_close = faulty_event_close,
    .copy_up = faulty_copy_up,
    .copy_down = faulty_copy_down,
    .clear = faulty_clear,
    .launch = faulty_launch,
    .record = faulty_record,
    .wait_event = faulty_wait_event,
    .finish_event = faulty_finish_event,
    .is_over = faulty_is_over,
    .finish_stream = faulty_finish_stream,
    .milliseconds = faulty_milliseconds,
};

void faulty_open(faulty_gpu *self, cogpu_gpu *behind) {
    *self = (faulty_gpu){.base = *behind, .behind = behind};
    self->base.calls = &faulty_calls;
}
