/* The device object: how it is opened and closed, and its memory for callers. See device.h. */
#include "gpu/device.h"

#include "gpu/driver/nvjpeg_library.h"
#include "gpu/read_run.h"
#include "kernels/mask/apply_mask_args.h"

#include <stdlib.h>

/* Without nvJPEG, or without its hardware, the CPU decodes JPEG. */
static void open_nvjpeg(cogpu_gpu_device *device) {
    cogpu_gpu *gpu = device->gpu;
    if (!cogpu_nvjpeg_supports(gpu) || !gpu->calls->make_current(gpu))
        return;
    (void)cogpu_nvjpeg_open(gpu, COGPU_POOL_ENTRIES, COGPU_SLOT_TASKS, &device->nvjpeg, NULL);
    gpu->calls->restore_current(gpu);
}

cogpu_nvjpeg *cogpu_gpu_device_nvjpeg(cogpu_gpu_device *device) {
    pthread_mutex_lock(&device->nvjpeg_lock);
    if (device->may_open_nvjpeg)
        open_nvjpeg(device);
    device->may_open_nvjpeg = false;
    cogpu_nvjpeg *nvjpeg = device->nvjpeg;
    pthread_mutex_unlock(&device->nvjpeg_lock);
    return nvjpeg;
}

static void close_nvjpeg(cogpu_gpu_device *device) {
    cogpu_gpu *gpu = device->gpu;
    if (device->nvjpeg && gpu->calls->make_current(gpu)) {
        cogpu_nvjpeg_close(device->nvjpeg);
        gpu->calls->restore_current(gpu);
    }
}

cogpu_status cogpu_gpu_device_open(cogpu_gpu *gpu, uint64_t budget_bytes, bool use_nvjpeg_hardware,
                                   cogpu_gpu_device **out, cogpu_error *error) {
    cogpu_gpu_device *device = cogpu_allocate(sizeof *device);
    if (!device) {
        gpu->calls->close(gpu);
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for a device");
    }
    *device = (cogpu_gpu_device){.gpu = gpu,
                                 .budget = budget_bytes,
                                 .always_decodes = getenv("COGPU_ALWAYS_DEVICE") != NULL,
                                 .may_open_nvjpeg = use_nvjpeg_hardware,
                                 .gds_context = cogpu_gds_context_of(gpu)};
    pthread_mutex_init(&device->nvjpeg_lock, NULL);
    cogpu_slot_pool_init(&device->pool, gpu, budget_bytes);
    *out = device;
    return COGPU_OK;
}

cogpu_status cogpu_gpu_device_open_cache(cogpu_gpu_device *device, uint64_t bytes,
                                         cogpu_error *error) {
    return cogpu_stored_cache_open(device->gpu, bytes, &device->cache, error);
}

bool cogpu_gpu_device_has_cached(const cogpu_gpu_device *device, cogpu_block_cache_key key) {
    return device->cache && cogpu_stored_cache_has(device->cache, key);
}

void cogpu_gpu_device_close(cogpu_gpu_device *device) {
    if (!device)
        return;
    cogpu_stored_cache_close(device->cache);
    cogpu_slot_pool_close(&device->pool);
    close_nvjpeg(device);
    device->gpu->calls->close(device->gpu);
    pthread_mutex_destroy(&device->nvjpeg_lock);
    cogpu_release(device);
}

cogpu_gpu *cogpu_gpu_device_gpu(const cogpu_gpu_device *device) {
    return device->gpu;
}

uint64_t cogpu_gpu_device_budget(const cogpu_gpu_device *device) {
    return device->budget;
}

cogpu_status cogpu_gpu_device_allocate(cogpu_gpu_device *device, uint64_t bytes, void **memory,
                                       cogpu_error *error) {
    return device->gpu->calls->allocate(device->gpu, bytes, memory, error);
}

void cogpu_gpu_device_release(cogpu_gpu_device *device, void *memory) {
    device->gpu->calls->release(device->gpu, memory);
}

cogpu_status cogpu_gpu_device_copy(cogpu_gpu_device *device, void *to, const void *from,
                                   uint64_t bytes, bool is_down, cogpu_error *error) {
    cogpu_gpu *gpu = device->gpu;
    const cogpu_gpu_driver *calls = gpu->calls;
    cogpu_gpu_stream *stream = NULL;
    TRY(calls->stream_open(gpu, false, &stream, error));
    cogpu_status status =
        (is_down ? calls->copy_down : calls->copy_up)(gpu, to, from, bytes, stream, error);
    if (status == COGPU_OK)
        status = calls->finish_stream(gpu, stream, error);
    calls->stream_close(gpu, stream);
    return status;
}

cogpu_status cogpu_gpu_device_apply_mask(cogpu_gpu_device *device, const cogpu_raster *mask,
                                         uint32_t first_row, const cogpu_raster *raster,
                                         cogpu_error *error) {
    cogpu_gpu *gpu = device->gpu;
    cogpu_gpu_stream *stream = NULL;
    TRY(gpu->calls->stream_open(gpu, false, &stream, error));
    cogpu_status status = cogpu_gpu_apply_mask(gpu, mask, first_row, raster, stream, error);
    if (status == COGPU_OK)
        status = gpu->calls->finish_stream(gpu, stream, error);
    gpu->calls->stream_close(gpu, stream);
    return status;
}
