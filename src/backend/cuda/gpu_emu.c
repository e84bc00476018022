/*
 * The emulated device: memory of the host, each allocation a block of its own so that the address
 * sanitizer sees its ends. A stream is a list of things to do; they are done when somebody waits,
 * or when a lot says so. Threads may share it, as they may a GPU: one of them is served at a time.
 */
#include "backend/cuda/emu.h"
#include "backend/cuda/gpu.h"

#include <pthread.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes)   ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

enum what { COPY, CLEAR, LAUNCH, RECORD, WAIT };
enum { ARGS_MAX = 512 };

struct thing {
    struct thing *next;
    enum what what;
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
    struct thing *first, **last;
};

/* Of an event, which may be recorded again, in another stream, while others still wait for this:
 * it stays as long as anybody holds it. */
struct recording {
    uint32_t holders;
    bool is_done;
    cogpu_gpu_stream *stream;
};

struct cogpu_gpu_event {
    struct recording *last; /* NULL: there is nothing to wait for */
};

/* An allocation. What is before and after `memory`, which is aligned, is poison. */
struct block {
    struct block *next;
    uint8_t *all, *memory;
    uint64_t bytes;
    bool is_pinned;
};

/* New memory holds noise, as far as that does not cost memory which nobody uses. */
enum { ALIGN = 256, NOISE_MAX = 1 << 20 };

struct emu_gpu {
    cogpu_gpu base;
    pthread_mutex_t lock; /* of all below, and of all streams and events */
    uint64_t random, used;
    struct block *blocks;
    char failure[240]; /* sticks, as a GPU's does */
    cogpu_emu_stacks stacks;
};

static struct emu_gpu *emu_of(cogpu_gpu *gpu) {
    return (struct emu_gpu *)gpu;
}

static struct emu_gpu *enter(cogpu_gpu *gpu) {
    struct emu_gpu *emu = emu_of(gpu);
    pthread_mutex_lock(&emu->lock);
    return emu;
}

static void leave(struct emu_gpu *emu) {
    pthread_mutex_unlock(&emu->lock);
}

static cogpu_status leave_with(struct emu_gpu *emu, cogpu_status status) {
    leave(emu);
    return status;
}

static uint64_t draw(struct emu_gpu *emu) {
    emu->random ^= emu->random << 13;
    emu->random ^= emu->random >> 7;
    emu->random ^= emu->random << 17;
    return emu->random;
}

static cogpu_status told(const struct emu_gpu *emu, cogpu_error *error) {
    return emu->failure[0] ? cogpu_fail(error, COGPU_DEVICE, "emulator: %s", emu->failure)
                           : COGPU_OK;
}

/* ---- memory -------------------------------------------------------------------------------- */

static cogpu_status take(struct emu_gpu *emu, uint64_t bytes, bool is_pinned, void **memory,
                         cogpu_error *error) {
    struct block *block = cogpu_allocate(sizeof *block);
    bool fits = is_pinned || bytes <= emu->base.total_bytes - emu->used;
    uint8_t *all = block && fits ? cogpu_allocate((size_t)bytes + 2 * ALIGN) : NULL;
    *memory = NULL;
    if (!all) {
        cogpu_release(block);
        return cogpu_fail(error, COGPU_MEMORY, "the device has no %llu bytes left",
                          (unsigned long long)bytes);
    }
    uint8_t *start = all + (ALIGN - (uintptr_t)all % ALIGN);
    memset(start, (int)(draw(emu) & 0xFF), (size_t)(bytes < NOISE_MAX ? bytes : NOISE_MAX));
    ASAN_POISON_MEMORY_REGION(all, (size_t)(start - all));
    ASAN_POISON_MEMORY_REGION(start + bytes, (size_t)(all + 2 * ALIGN - start));
    *block = (struct block){emu->blocks, all, start, bytes, is_pinned};
    emu->blocks = block;
    emu->used += is_pinned ? 0 : bytes;
    *memory = start;
    return COGPU_OK;
}

/* The allocation in which a place lies; NULL where it lies in none. */
static const struct block *block_of(const struct emu_gpu *emu, const void *memory) {
    const uint8_t *at = memory;
    const struct block *block = emu->blocks;
    while (block && !(at >= block->memory && at < block->memory + block->bytes))
        block = block->next;
    return block;
}

bool cogpu_gpu_emu_holds(cogpu_gpu *gpu, const void *memory) {
    struct emu_gpu *emu = enter(gpu);
    const struct block *block = block_of(emu, memory);
    bool holds = block && !block->is_pinned;
    leave(emu);
    return holds;
}

static void emu_release(cogpu_gpu *gpu, void *memory) {
    struct emu_gpu *emu = enter(gpu);
    struct block **link = &emu->blocks, *block;
    while (*link && (*link)->memory != memory)
        link = &(*link)->next;
    block = *link;
    if (block) {
        *link = block->next;
        emu->used -= block->is_pinned ? 0 : block->bytes;
        ASAN_UNPOISON_MEMORY_REGION(block->all, (size_t)block->bytes + 2 * ALIGN);
        cogpu_release(block->all);
        cogpu_release(block);
    }
    leave(emu);
}

static cogpu_status emu_allocate(cogpu_gpu *gpu, uint64_t bytes, void **memory,
                                 cogpu_error *error) {
    struct emu_gpu *emu = enter(gpu);
    return leave_with(emu, take(emu, bytes, false, memory, error));
}

static cogpu_status emu_allocate_pinned(cogpu_gpu *gpu, uint64_t bytes, void **memory,
                                        cogpu_error *error) {
    struct emu_gpu *emu = enter(gpu);
    return leave_with(emu, take(emu, bytes, true, memory, error));
}

static bool emu_is_pinned(cogpu_gpu *gpu, const void *memory, uint64_t bytes) {
    struct emu_gpu *emu = enter(gpu);
    const struct block *block = block_of(emu, memory);
    bool is_pinned = block && block->is_pinned &&
                     bytes <= (uint64_t)(block->memory + block->bytes - (const uint8_t *)memory);
    leave(emu);
    return is_pinned;
}

static cogpu_status emu_memory(cogpu_gpu *gpu, uint64_t *free_bytes, uint64_t *total,
                               cogpu_error *error) {
    (void)error;
    struct emu_gpu *emu = enter(gpu);
    *total = gpu->total_bytes;
    *free_bytes = gpu->total_bytes - emu->used;
    return leave_with(emu, COGPU_OK);
}

/* ---- streams ------------------------------------------------------------------------------- */

static void let_go(struct recording *recording) {
    if (recording && --recording->holders == 0)
        cogpu_release(recording);
}

static void work_off(struct emu_gpu *emu, cogpu_gpu_stream *stream, const struct recording *until);

static void finish(struct emu_gpu *emu, const struct recording *recording) {
    if (recording && !recording->is_done)
        work_off(emu, recording->stream, recording);
}

static void do_thing(struct emu_gpu *emu, struct thing *thing) {
    switch (thing->what) {
    case COPY:
        memcpy(thing->to, thing->from, (size_t)thing->bytes);
        break;
    case CLEAR:
        memset(thing->to, 0, (size_t)thing->bytes);
        break;
    case RECORD:
        thing->recording->is_done = true;
        break;
    case WAIT:
        finish(emu, thing->recording);
        break;
    case LAUNCH: {
        cogpu_emu_finding finding =
            cogpu_emu_run(thing->kernel, thing->blocks, thing->args, draw(emu), &emu->stacks);
        memcpy(emu->failure, finding.text, sizeof emu->failure);
    }
    }
}

/* Does what stands in the stream, up to a recording if one is named. After a failure only events
 * come to pass. */
static void work_off(struct emu_gpu *emu, cogpu_gpu_stream *stream, const struct recording *until) {
    while (stream->first && !(until && until->is_done)) {
        struct thing *thing = stream->first;
        stream->first = thing->next;
        if (!stream->first)
            stream->last = &stream->first;
        if (!emu->failure[0] || thing->what == RECORD)
            do_thing(emu, thing);
        let_go(thing->recording);
        cogpu_release(thing);
    }
}

static cogpu_status append(struct emu_gpu *emu, cogpu_gpu_stream *stream, const struct thing *what,
                           cogpu_error *error) {
    TRY(told(emu, error));
    struct thing *thing = cogpu_allocate(sizeof *thing);
    if (!thing)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for the emulator");
    *thing = *what;
    *stream->last = thing;
    stream->last = &thing->next;
    if (draw(emu) % 4 == 0)
        work_off(emu, stream, NULL);
    return COGPU_OK;
}

static cogpu_status add(cogpu_gpu *gpu, cogpu_gpu_stream *stream, const struct thing *what,
                        cogpu_error *error) {
    struct emu_gpu *emu = enter(gpu);
    return leave_with(emu, append(emu, stream, what, error));
}

static cogpu_status emu_stream_open(cogpu_gpu *gpu, bool is_urgent, cogpu_gpu_stream **stream,
                                    cogpu_error *error) {
    (void)is_urgent;
    *stream = cogpu_allocate(sizeof **stream);
    if (!*stream)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for a stream");
    **stream = (cogpu_gpu_stream){.gpu = emu_of(gpu)};
    (*stream)->last = &(*stream)->first;
    return COGPU_OK;
}

static void emu_stream_close(cogpu_gpu *gpu, cogpu_gpu_stream *stream) {
    struct emu_gpu *emu = enter(gpu);
    if (stream)
        work_off(emu, stream, NULL);
    leave(emu);
    cogpu_release(stream);
}

static cogpu_status emu_event_open(cogpu_gpu *gpu, cogpu_gpu_event **event, cogpu_error *error) {
    (void)gpu;
    *event = cogpu_allocate(sizeof **event);
    if (!*event)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for an event");
    **event = (cogpu_gpu_event){0};
    return COGPU_OK;
}

static void emu_event_close(cogpu_gpu *gpu, cogpu_gpu_event *event) {
    struct emu_gpu *emu = enter(gpu);
    if (event)
        let_go(event->last);
    leave(emu);
    cogpu_release(event);
}

static cogpu_status emu_copy(cogpu_gpu *gpu, void *to, const void *from, uint64_t bytes,
                             cogpu_gpu_stream *stream, cogpu_error *error) {
    struct thing thing = {.what = COPY, .to = to, .from = from, .bytes = bytes};
    return add(gpu, stream, &thing, error);
}

static cogpu_status emu_clear(cogpu_gpu *gpu, void *to, uint64_t bytes, cogpu_gpu_stream *stream,
                              cogpu_error *error) {
    struct thing thing = {.what = CLEAR, .to = to, .bytes = bytes};
    return add(gpu, stream, &thing, error);
}

static cogpu_status emu_launch(cogpu_gpu *gpu, const cogpu_kernel *kernel, uint32_t blocks,
                               const void *args, cogpu_gpu_stream *stream, cogpu_error *error) {
    struct thing thing = {.what = LAUNCH, .kernel = kernel, .blocks = blocks};
    if (kernel->args_bytes > ARGS_MAX)
        return cogpu_fail(error, COGPU_DEVICE, "%s has more arguments than the emulator takes",
                          kernel->name);
    memcpy(thing.args, args, kernel->args_bytes);
    return add(gpu, stream, &thing, error);
}

static bool is_default(const cogpu_gpu_stream *stream) {
    return !stream || stream == COGPU_GPU_LEGACY || stream == COGPU_GPU_PER_THREAD;
}

/* Only what stands in a stream comes to pass; the default one is always through. */
static cogpu_status record(struct emu_gpu *emu, cogpu_gpu_event *event, cogpu_gpu_stream *stream,
                           cogpu_error *error) {
    struct recording *recording = is_default(stream) ? NULL : cogpu_allocate(sizeof *recording);
    if (!is_default(stream) && !recording)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for the emulator");
    if (recording) {
        *recording = (struct recording){.holders = 2, .stream = stream};
        cogpu_status status =
            append(emu, stream, &(struct thing){.what = RECORD, .recording = recording}, error);
        if (status != COGPU_OK) {
            cogpu_release(recording);
            return status;
        }
    }
    let_go(event->last);
    event->last = recording;
    return COGPU_OK;
}

static cogpu_status emu_record(cogpu_gpu *gpu, cogpu_gpu_event *event, cogpu_gpu_stream *stream,
                               cogpu_error *error) {
    struct emu_gpu *emu = enter(gpu);
    return leave_with(emu, record(emu, event, stream, error));
}

static cogpu_status emu_finish_event(cogpu_gpu *gpu, cogpu_gpu_event *event, cogpu_error *error) {
    struct emu_gpu *emu = enter(gpu);
    finish(emu, event->last);
    return leave_with(emu, told(emu, error));
}

static cogpu_status wait_event(struct emu_gpu *emu, cogpu_gpu_stream *stream,
                               cogpu_gpu_event *event, cogpu_error *error) {
    struct thing thing = {.what = WAIT, .recording = event->last};
    if (!event->last || event->last->is_done)
        return COGPU_OK;
    if (is_default(stream)) {
        finish(emu, event->last);
        return told(emu, error);
    }
    event->last->holders++;
    cogpu_status status = append(emu, stream, &thing, error);
    if (status != COGPU_OK)
        let_go(thing.recording);
    return status;
}

static cogpu_status emu_wait_event(cogpu_gpu *gpu, cogpu_gpu_stream *stream, cogpu_gpu_event *event,
                                   cogpu_error *error) {
    struct emu_gpu *emu = enter(gpu);
    return leave_with(emu, wait_event(emu, stream, event, error));
}

static cogpu_status emu_finish_stream(cogpu_gpu *gpu, cogpu_gpu_stream *stream,
                                      cogpu_error *error) {
    struct emu_gpu *emu = enter(gpu);
    work_off(emu, stream, NULL);
    return leave_with(emu, told(emu, error));
}

/* What nobody waits for comes to pass at times. */
static bool emu_is_over(cogpu_gpu *gpu, cogpu_gpu_event *event) {
    struct emu_gpu *emu = enter(gpu);
    if (draw(emu) % 2 == 0)
        finish(emu, event->last);
    bool is_over = !event->last || event->last->is_done;
    leave(emu);
    return is_over;
}

static float emu_milliseconds(cogpu_gpu *gpu, cogpu_gpu_event *from, cogpu_gpu_event *to) {
    (void)gpu, (void)from, (void)to;
    return 0;
}

static void emu_close(cogpu_gpu *gpu) {
    struct emu_gpu *emu = emu_of(gpu);
    while (emu->blocks)
        emu_release(gpu, emu->blocks->memory);
    pthread_mutex_destroy(&emu->lock);
    cogpu_emu_stacks_release(&emu->stacks);
    cogpu_release(emu);
}

static bool emu_enter(cogpu_gpu *gpu) {
    (void)gpu;
    return true;
}

static void emu_leave(cogpu_gpu *gpu) {
    (void)gpu;
}

static const cogpu_gpu_calls emu_calls = {
    .close = emu_close,
    .enter = emu_enter,
    .leave = emu_leave,
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

cogpu_status cogpu_gpu_open_emu(uint64_t seed, uint64_t bytes, cogpu_gpu **gpu,
                                cogpu_error *error) {
    struct emu_gpu *emu = cogpu_allocate(sizeof *emu);
    if (!emu)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for the emulated device");
    *emu = (struct emu_gpu){.base = {.calls = &emu_calls,
                                     .name = "emulator",
                                     .multiprocessors = 2,
                                     .capability = 90,
                                     .total_bytes = bytes,
                                     .is_emulated = true},
                            .random = seed * 0x9E3779B97F4A7C15u + 0xD1B54A32D192ED03u};
    pthread_mutex_init(&emu->lock, NULL);
    *gpu = &emu->base;
    return COGPU_OK;
}
