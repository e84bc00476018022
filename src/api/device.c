/*
 * Devices by kind and index: what there is, those that a context has opened, their memory, and
 * where memory and streams of others belong.
 */
#include "api/room.h"
#include "backend/cuda/modules.h"

#include <stdio.h>
#include <stdlib.h>

/* What an emulated device has, and how many there are at most. */
#define EMU_BYTES (UINT64_C(4) << 30)
enum { EMU_MAX = 16 };

/* ---- what there is ------------------------------------------------------------------------- */

static bool whole_of(const char *text, unsigned long *number) {
    char *end = NULL;
    *number = text[0] >= '0' && text[0] <= '9' ? strtoul(text, &end, 10) : 0;
    return end && *end == 0;
}

static uint32_t emu_count(void) {
    const char *text = getenv("COGPU_EMU_DEVICES");
    unsigned long count = 0;
    return text && whole_of(text, &count) && count >= 1 && count <= EMU_MAX ? (uint32_t)count : 1;
}

static cogpu_status no_emu(unsigned long index, cogpu_error *error) {
    uint32_t count = emu_count();
    return count == 1 ? cogpu_fail(error, COGPU_DEVICE,
                                   "there is no emulated GPU %lu: there is one", index)
                      : cogpu_fail(error, COGPU_DEVICE,
                                   "there is no emulated GPU %lu: there are %u", index, count);
}

static cogpu_status describe_cpu(cogpu_device *info) {
    *info = (cogpu_device){.kind = COGPU_CPU, .name = "cpu"};
    snprintf(info->description, sizeof info->description, "%u processors, %s", cogpu_processors(),
             cogpu_cpu_vectors());
    return COGPU_OK;
}

static cogpu_status describe_gpu(uint32_t index, cogpu_device *info) {
    cogpu_gpu *gpu = NULL;
    *info = (cogpu_device){.kind = COGPU_CUDA, .index = index};
    snprintf(info->name, sizeof info->name, "cuda:%u", index);
    TRY(cogpu_gpu_open_driver(index, &gpu, NULL));
    snprintf(info->description, sizeof info->description,
             "%.50s, %u multiprocessors, %llu MiB, compute capability %u.%u%s", gpu->name,
             gpu->multiprocessors, (unsigned long long)(gpu->total_bytes >> 20),
             gpu->capability / 10, gpu->capability % 10,
             cogpu_module_count > 0 ? "" : "; no kernels: built without nvcc");
    gpu->calls->close(gpu);
    return COGPU_OK;
}

static cogpu_status describe_emu(uint32_t index, cogpu_device *info) {
    *info = (cogpu_device){.kind = COGPU_EMU, .index = index, .name = "emu"};
    if (emu_count() > 1)
        snprintf(info->name, sizeof info->name, "emu:%u", index);
    snprintf(info->description, sizeof info->description,
             "a GPU emulated by the processor, slow and strict, for tests");
    return COGPU_OK;
}

cogpu_status cogpu_device_info(uint32_t index, cogpu_device *info) {
    uint32_t gpus = cogpu_gpu_count(NULL);
    if (!info)
        return COGPU_ARGUMENT;
    if (index == 0)
        return describe_cpu(info);
    if (index <= gpus)
        return describe_gpu(index - 1, info);
    return index - gpus - 1 < emu_count() ? describe_emu(index - gpus - 1, info) : COGPU_ABSENT;
}

const char *cogpu_no_cuda(void) {
    const char *why;
    cogpu_gpu_count(&why);
    return why;
}

const char *cogpu_no_direct_storage(void) {
    const char *why = cogpu_gds_absent();
    return why                     ? why
           : cogpu_gds_is_direct() ? NULL
                                   : "cuFile is there, but not its driver (nvidia-fs)";
}

/* ---- devices of a context ------------------------------------------------------------------ */

static cogpu_status open_gpu(cogpu_device_kind kind, uint32_t index, cogpu_gpu **gpu,
                             cogpu_error *error) {
    const char *seed = getenv("COGPU_EMU_SEED");
    switch (kind) {
    case COGPU_CUDA:
        return cogpu_gpu_open_driver(index, gpu, error);
    case COGPU_EMU:
        if (index >= emu_count())
            return no_emu(index, error);
        return cogpu_gpu_open_emu(seed ? strtoull(seed, NULL, 10) : 1, EMU_BYTES, gpu, error);
    default:
        return cogpu_fail(
            error, COGPU_ARGUMENT,
            "%d is no kind of device that has memory of its own: COGPU_CUDA and COGPU_EMU are",
            (int)kind);
    }
}

static cogpu_status open_device(cogpu_context *context, cogpu_device_kind kind, uint32_t index,
                                cogpu_gpu_reader **reader, cogpu_error *error) {
    cogpu_gpu *gpu = NULL;
    cogpu_opened_device *device = cogpu_allocate(sizeof *device);
    if (!device)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for a device");
    cogpu_status status = open_gpu(kind, index, &gpu, error);
    if (status == COGPU_OK)
        status =
            cogpu_gpu_reader_open(gpu, context->device_bytes, context->jpeg_engines, reader, error);
    if (status != COGPU_OK) {
        cogpu_release(device);
        return status;
    }
    *device = (cogpu_opened_device){context->devices, kind, index, *reader, {0}};
    context->devices = device;
    return COGPU_OK;
}

cogpu_status cogpu_context_device(cogpu_context *context, cogpu_device_kind kind, uint32_t index,
                                  cogpu_gpu_reader **reader, cogpu_error *error) {
    cogpu_status status = COGPU_OK;
    if (!context)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "memory of a device needs a context, which keeps the device open");
    *reader = NULL;
    pthread_mutex_lock(&context->lock);
    for (cogpu_opened_device *device = context->devices; device; device = device->next)
        if (device->kind == kind && device->index == index)
            *reader = device->reader;
    if (!*reader)
        status = open_device(context, kind, index, reader, error);
    pthread_mutex_unlock(&context->lock);
    return status;
}

void cogpu_context_close_devices(cogpu_context *context) {
    while (context->devices) {
        cogpu_opened_device *device = context->devices;
        context->devices = device->next;
        cogpu_gpu_memory_release(cogpu_gpu_reader_gpu(device->reader), &device->kept);
        cogpu_gpu_reader_close(device->reader);
        cogpu_release(device);
    }
}

/* ---- memory -------------------------------------------------------------------------------- */

static cogpu_opened_device *device_of(cogpu_context *context, const cogpu_gpu_reader *reader) {
    cogpu_opened_device *device = context->devices;
    while (device->reader != reader)
        device = device->next;
    return device;
}

cogpu_gpu_memory cogpu_context_kept(cogpu_context *context, const cogpu_gpu_reader *reader) {
    pthread_mutex_lock(&context->lock);
    cogpu_opened_device *device = device_of(context, reader);
    cogpu_gpu_memory kept = device->kept;
    device->kept = (cogpu_gpu_memory){0};
    pthread_mutex_unlock(&context->lock);
    return kept;
}

void cogpu_context_keep(cogpu_context *context, cogpu_gpu_reader *reader,
                        cogpu_gpu_memory *memory) {
    pthread_mutex_lock(&context->lock);
    cogpu_opened_device *device = device_of(context, reader);
    cogpu_gpu_memory spare = *memory;
    if (!device->kept.device) {
        spare = device->kept;
        device->kept = *memory;
    }
    pthread_mutex_unlock(&context->lock);
    cogpu_gpu_memory_release(cogpu_gpu_reader_gpu(reader), &spare);
    *memory = (cogpu_gpu_memory){0};
}

cogpu_status cogpu_device_allocate(cogpu_context *context, cogpu_device_kind device, uint32_t index,
                                   uint64_t bytes, void **memory, cogpu_error *error) {
    cogpu_gpu_reader *reader = NULL;
    if (!memory || bytes == 0)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "cogpu_device_allocate needs a number of bytes and a place for them");
    *memory = NULL;
    TRY(cogpu_context_device(context, device, index, &reader, error));
    return cogpu_gpu_reader_allocate(reader, bytes, memory, error);
}

void cogpu_device_release(cogpu_context *context, cogpu_device_kind device, uint32_t index,
                          void *memory) {
    cogpu_gpu_reader *reader = NULL;
    if (memory && cogpu_context_device(context, device, index, &reader, NULL) == COGPU_OK)
        cogpu_gpu_reader_release(reader, memory);
}

static cogpu_status copy(cogpu_context *context, cogpu_device_kind device, uint32_t index,
                         const void *from, uint64_t bytes, void *to, bool is_down,
                         cogpu_error *error) {
    cogpu_gpu_reader *reader = NULL;
    if (!from || !to)
        return cogpu_fail(error, COGPU_ARGUMENT, "a copy needs memory on both sides");
    TRY(cogpu_context_device(context, device, index, &reader, error));
    return cogpu_gpu_reader_copy(reader, to, from, bytes, is_down, error);
}

cogpu_status cogpu_device_download(cogpu_context *context, cogpu_device_kind device, uint32_t index,
                                   const void *from, uint64_t bytes, void *to, cogpu_error *error) {
    return copy(context, device, index, from, bytes, to, true, error);
}

cogpu_status cogpu_device_upload(cogpu_context *context, cogpu_device_kind device, uint32_t index,
                                 const void *from, uint64_t bytes, void *to, cogpu_error *error) {
    return copy(context, device, index, from, bytes, to, false, error);
}

/* ---- memory and streams of others ---------------------------------------------------------- */

static cogpu_status current_emu(uint32_t *index, cogpu_error *error) {
    const char *number = getenv("COGPU_EMU_DEVICE");
    unsigned long chosen = 0;
    *index = 0;
    if (number && !whole_of(number, &chosen))
        return cogpu_fail(error, COGPU_DEVICE, "COGPU_EMU_DEVICE is no number: \"%.40s\"", number);
    if (chosen >= emu_count())
        return no_emu(chosen, error);
    *index = (uint32_t)chosen;
    return COGPU_OK;
}

cogpu_status cogpu_device_current(cogpu_device_kind device, uint32_t *index, cogpu_error *error) {
    if (!index)
        return cogpu_fail(error, COGPU_ARGUMENT, "cogpu_device_current needs a place for a number");
    *index = 0;
    switch (device) {
    case COGPU_CPU:
        return COGPU_OK;
    case COGPU_CUDA:
        return cogpu_gpu_current(index, error);
    case COGPU_EMU:
        return current_emu(index, error);
    default:
        return cogpu_fail(error, COGPU_ARGUMENT, "%d is no kind of device", (int)device);
    }
}

static bool emu_of(cogpu_context *context, const void *memory, uint32_t *index) {
    bool is_found = false;
    pthread_mutex_lock(&context->lock);
    for (cogpu_opened_device *device = context->devices; device && !is_found; device = device->next)
        if (device->kind == COGPU_EMU &&
            cogpu_gpu_emu_holds(cogpu_gpu_reader_gpu(device->reader), memory)) {
            *index = device->index;
            is_found = true;
        }
    pthread_mutex_unlock(&context->lock);
    return is_found;
}

cogpu_status cogpu_device_of(cogpu_context *context, const void *memory, cogpu_device_kind *device,
                             uint32_t *index, cogpu_error *error) {
    if (!memory || !device || !index)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "cogpu_device_of needs memory and places for its device and number");
    *index = 0;
    *device = context && emu_of(context, memory, index) ? COGPU_EMU
              : cogpu_gpu_holds(memory, index)          ? COGPU_CUDA
                                                        : COGPU_CPU;
    return COGPU_OK;
}

cogpu_status cogpu_stream_follow(cogpu_context *context, cogpu_device_kind device, uint32_t index,
                                 void *stream, void *before, cogpu_error *error) {
    cogpu_gpu_reader *reader = NULL;
    TRY(cogpu_context_device(context, device, index, &reader, error));
    return cogpu_gpu_follow(cogpu_gpu_reader_gpu(reader), stream, before, error);
}
