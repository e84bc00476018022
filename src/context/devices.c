/* Devices of this machine, and those that a context has opened. */
#include "base/text.h"
#include "context/context.h"
#include "gpu/driver/gds.h"
#include "gpu/driver/modules.h"

#include <stdio.h>
#include <stdlib.h>

#define EMULATOR_BYTES (UINT64_C(4) << 30)
enum { EMULATORS_MAX = 16 };

/* ---- devices of this machine --------------------------------------------------------------- */

static bool parse_number(const char *text, unsigned long *number) {
    char *end = NULL;
    *number = ascii_is_digit(text[0]) ? strtoul(text, &end, 10) : 0;
    return end && *end == 0;
}

static uint32_t emulator_count(void) {
    const char *text = getenv("COGPU_EMU_DEVICES");
    unsigned long count = 0;
    return text && parse_number(text, &count) && count >= 1 && count <= EMULATORS_MAX
               ? (uint32_t)count
               : 1;
}

static cogpu_status fail_no_emulator(unsigned long index, cogpu_error *error) {
    uint32_t count = emulator_count();
    return count == 1 ? cogpu_fail(error, COGPU_DEVICE_ERROR,
                                   "there is no emulated GPU %lu: there is one", index)
                      : cogpu_fail(error, COGPU_DEVICE_ERROR,
                                   "there is no emulated GPU %lu: there are %u", index, count);
}

static cogpu_status describe_cpu(cogpu_device *info) {
    *info = (cogpu_device){.kind = COGPU_DEVICE_CPU, .name = "cpu"};
    snprintf(info->description, sizeof info->description, "%u CPU cores, %s", cogpu_cpu_cores(),
             cogpu_cpu_vectors());
    return COGPU_OK;
}

static cogpu_status describe_gpu(uint32_t index, cogpu_device *info) {
    cogpu_gpu gpu;
    cogpu_error error;
    *info = (cogpu_device){.kind = COGPU_DEVICE_CUDA, .index = index};
    snprintf(info->name, sizeof info->name, "cuda:%u", index);
    if (cogpu_gpu_describe_cuda(index, &gpu, &error) == COGPU_OK &&
        cogpu_gpu_check(&gpu, &error) == COGPU_OK)
        snprintf(info->description, sizeof info->description,
                 "%.50s, %u multiprocessors, %llu MiB, compute capability %u.%u%s", gpu.name,
                 gpu.multiprocessors, (unsigned long long)(gpu.total_bytes >> 20),
                 gpu.capability / 10, gpu.capability % 10,
                 cogpu_module_count > 0 ? "" : "; no kernels: built without nvcc");
    else
        snprintf(info->description, sizeof info->description, "%.159s", error.message);
    return COGPU_OK;
}

static cogpu_status describe_emulator(uint32_t index, cogpu_device *info) {
    *info = (cogpu_device){.kind = COGPU_DEVICE_EMULATOR, .index = index, .name = "emu"};
    if (emulator_count() > 1)
        snprintf(info->name, sizeof info->name, "emu:%u", index);
    snprintf(info->description, sizeof info->description,
             "a GPU emulated by the CPU, slow and strict, for tests");
    return COGPU_OK;
}

cogpu_status cogpu_devices_describe(uint32_t index, cogpu_device *info) {
    uint32_t gpus = cogpu_gpu_count(NULL);
    if (index == 0)
        return describe_cpu(info);
    if (index <= gpus)
        return describe_gpu(index - 1, info);
    return index - gpus - 1 < emulator_count() ? describe_emulator(index - gpus - 1, info)
                                               : COGPU_NOT_FOUND;
}

cogpu_status cogpu_devices_current_emulator(uint32_t *index, cogpu_error *error) {
    const char *text = getenv("COGPU_EMU_DEVICE");
    unsigned long chosen = 0;
    *index = 0;
    if (text && !parse_number(text, &chosen))
        return cogpu_fail(error, COGPU_DEVICE_ERROR,
                          "COGPU_EMU_DEVICE must be a number, got \"%.40s\"", text);
    if (chosen >= emulator_count())
        return fail_no_emulator(chosen, error);
    *index = (uint32_t)chosen;
    return COGPU_OK;
}

/* ---- devices of a context ------------------------------------------------------------------ */

static cogpu_status open_gpu(cogpu_device_kind kind, uint32_t index, cogpu_gpu **gpu,
                             cogpu_error *error) {
    const char *seed = getenv("COGPU_EMU_SEED");
    switch (kind) {
    case COGPU_DEVICE_CUDA:
        return cogpu_gpu_open_cuda(index, gpu, error);
    case COGPU_DEVICE_EMULATOR:
        if (index >= emulator_count())
            return fail_no_emulator(index, error);
        return cogpu_gpu_open_emulator(seed ? strtoull(seed, NULL, 10) : 1, EMULATOR_BYTES, gpu,
                                       error);
    default:
        return cogpu_fail(
            error, COGPU_INVALID_ARGUMENT,
            "device kind %d has no device memory: use COGPU_DEVICE_CUDA or COGPU_DEVICE_EMULATOR",
            (int)kind);
    }
}

static cogpu_status open_device(cogpu_context *context, cogpu_device_kind kind, uint32_t index,
                                cogpu_gpu_device **device, cogpu_error *error) {
    cogpu_gpu *gpu = NULL;
    cogpu_opened_device *opened = cogpu_allocate(sizeof *opened);
    if (!opened)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for a device");
    cogpu_status status = open_gpu(kind, index, &gpu, error);
    if (status == COGPU_OK)
        status = cogpu_gpu_device_open(gpu, context->device_bytes, context->use_nvjpeg_hardware,
                                       device, error);
    if (status == COGPU_OK && context->device_cache_bytes > 0) {
        status = cogpu_gpu_device_open_cache(*device, context->device_cache_bytes, error);
        if (status != COGPU_OK)
            cogpu_gpu_device_close(*device);
    }
    if (status != COGPU_OK) {
        cogpu_release(opened);
        *device = NULL;
        return status;
    }
    *opened = (cogpu_opened_device){context->devices, kind, index, *device, {{0}}};
    context->devices = opened;
    return COGPU_OK;
}

cogpu_status cogpu_context_device(cogpu_context *context, cogpu_device_kind kind, uint32_t index,
                                  cogpu_gpu_device **device, cogpu_error *error) {
    cogpu_status status = COGPU_OK;
    if (!context)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "device memory needs a context, which keeps the device open");
    *device = NULL;
    pthread_mutex_lock(&context->lock);
    for (cogpu_opened_device *opened = context->devices; opened; opened = opened->next)
        if (opened->kind == kind && opened->index == index)
            *device = opened->device;
    if (!*device)
        status = open_device(context, kind, index, device, error);
    pthread_mutex_unlock(&context->lock);
    return status;
}

void cogpu_context_close_devices(cogpu_context *context) {
    while (context->devices) {
        cogpu_opened_device *opened = context->devices;
        context->devices = opened->next;
        for (uint32_t i = 0; i < COGPU_KEPT_MEMORIES; i++)
            cogpu_gpu_memory_release(cogpu_gpu_device_gpu(opened->device), &opened->kept[i]);
        cogpu_gpu_device_close(opened->device);
        cogpu_release(opened);
    }
}

/* ---- memory -------------------------------------------------------------------------------- */

static cogpu_opened_device *find_opened_device(cogpu_context *context,
                                               const cogpu_gpu_device *device) {
    cogpu_opened_device *opened = context->devices;
    while (opened->device != device)
        opened = opened->next;
    return opened;
}

/* Entries that may keep memory of this size: from *first to *end. */
static void find_entries(uint64_t device_bytes, uint64_t pinned_bytes, uint32_t *first,
                         uint32_t *end) {
    const bool is_small =
        device_bytes <= COGPU_KEPT_SMALL_BYTES && pinned_bytes <= COGPU_KEPT_SMALL_BYTES;
    *first = is_small ? 1 : 0;
    *end = is_small ? COGPU_KEPT_MEMORIES : 1;
}

static bool is_enough(const cogpu_gpu_memory *memory, uint64_t device_bytes,
                      uint64_t pinned_bytes) {
    return memory->device && memory->device_bytes >= device_bytes &&
           memory->pinned_bytes >= pinned_bytes;
}

static cogpu_gpu_memory take_entry(cogpu_gpu_memory *entry) {
    const cogpu_gpu_memory taken = *entry;
    *entry = (cogpu_gpu_memory){0};
    return taken;
}

cogpu_gpu_memory cogpu_context_take_memory(cogpu_context *context, const cogpu_gpu_device *device) {
    pthread_mutex_lock(&context->lock);
    cogpu_gpu_memory *kept = find_opened_device(context, device)->kept, *largest = kept;
    for (uint32_t i = 1; i < COGPU_KEPT_MEMORIES; i++)
        if (kept[i].device_bytes > largest->device_bytes)
            largest = &kept[i];
    const cogpu_gpu_memory taken = take_entry(largest);
    pthread_mutex_unlock(&context->lock);
    return taken;
}

/* In place of the smallest that is kept, unless that is larger. */
void cogpu_context_keep_memory(cogpu_context *context, cogpu_gpu_device *device,
                               cogpu_gpu_memory *memory) {
    uint32_t first, end;
    find_entries(memory->device_bytes, memory->pinned_bytes, &first, &end);
    pthread_mutex_lock(&context->lock);
    cogpu_gpu_memory *kept = find_opened_device(context, device)->kept, *smallest = &kept[first];
    for (uint32_t i = first + 1; i < end; i++)
        if (kept[i].device_bytes < smallest->device_bytes)
            smallest = &kept[i];
    if (memory->device_bytes > smallest->device_bytes) {
        const cogpu_gpu_memory former = *smallest;
        *smallest = *memory;
        *memory = former;
    }
    pthread_mutex_unlock(&context->lock);
    cogpu_gpu_memory_release(cogpu_gpu_device_gpu(device), memory);
}

/* Memory that is kept and large enough; of large memory what is kept in any case. */
static cogpu_gpu_memory take_similar(cogpu_context *context, const cogpu_gpu_device *device,
                                     uint64_t device_bytes, uint64_t pinned_bytes) {
    uint32_t first, end, i;
    find_entries(device_bytes, pinned_bytes, &first, &end);
    pthread_mutex_lock(&context->lock);
    cogpu_gpu_memory *kept = find_opened_device(context, device)->kept;
    for (i = first; i + 1 < end && !is_enough(&kept[i], device_bytes, pinned_bytes);)
        i++;
    const cogpu_gpu_memory taken = take_entry(&kept[i]);
    pthread_mutex_unlock(&context->lock);
    return taken;
}

cogpu_status cogpu_context_reserve_memory(cogpu_context *context, cogpu_gpu_device *device,
                                          uint64_t device_bytes, uint64_t pinned_bytes,
                                          cogpu_gpu_memory *memory, cogpu_error *error) {
    cogpu_gpu *gpu = cogpu_gpu_device_gpu(device);
    *memory = take_similar(context, device, device_bytes, pinned_bytes);
    if (is_enough(memory, device_bytes, pinned_bytes))
        return COGPU_OK;
    cogpu_gpu_memory_release(gpu, memory);
    TRY(gpu->calls->allocate(gpu, device_bytes, &memory->device, error));
    memory->device_bytes = device_bytes;
    TRY(gpu->calls->allocate_pinned(gpu, pinned_bytes, &memory->pinned, error));
    memory->pinned_bytes = pinned_bytes;
    return COGPU_OK;
}

bool cogpu_context_emulator_owns(cogpu_context *context, const void *memory, uint32_t *index) {
    bool is_found = false;
    pthread_mutex_lock(&context->lock);
    for (cogpu_opened_device *opened = context->devices; opened && !is_found; opened = opened->next)
        if (opened->kind == COGPU_DEVICE_EMULATOR &&
            cogpu_gpu_emulator_owns_memory(cogpu_gpu_device_gpu(opened->device), memory)) {
            *index = opened->index;
            is_found = true;
        }
    pthread_mutex_unlock(&context->lock);
    return is_found;
}
