/* Public functions about devices, their memory and their streams. See context/context.h. */
#include "context/context.h"
#include "gpu/driver/gds.h"

cogpu_status cogpu_device_info(uint32_t index, cogpu_device *info) {
    return info ? cogpu_devices_describe(index, info) : COGPU_ARGUMENT;
}

const char *cogpu_no_cuda(void) {
    const char *reason;
    cogpu_gpu_count(&reason);
    return reason;
}

const char *cogpu_no_direct_storage(void) {
    const char *reason = cogpu_gds_unavailable_reason();
    if (reason)
        return reason;
    return cogpu_gds_is_direct() ? NULL : "cuFile is there, but not its driver (nvidia-fs)";
}

cogpu_status cogpu_device_allocate(cogpu_context *context, cogpu_device_kind kind, uint32_t index,
                                   uint64_t bytes, void **memory, cogpu_error *error) {
    cogpu_gpu_device *device = NULL;
    if (!memory || bytes == 0)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "cogpu_device_allocate needs a number of bytes and a pointer for them");
    *memory = NULL;
    TRY(cogpu_context_device(context, kind, index, &device, error));
    return cogpu_gpu_device_allocate(device, bytes, memory, error);
}

void cogpu_device_release(cogpu_context *context, cogpu_device_kind kind, uint32_t index,
                          void *memory) {
    cogpu_gpu_device *device = NULL;
    if (memory && cogpu_context_device(context, kind, index, &device, NULL) == COGPU_OK)
        cogpu_gpu_device_release(device, memory);
}

static cogpu_status copy_memory(cogpu_context *context, cogpu_device_kind kind, uint32_t index,
                                const void *from, uint64_t bytes, void *to, bool is_download,
                                cogpu_error *error) {
    cogpu_gpu_device *device = NULL;
    if (!from || !to)
        return cogpu_fail(error, COGPU_ARGUMENT, "a copy needs source and destination memory");
    TRY(cogpu_context_device(context, kind, index, &device, error));
    return cogpu_gpu_device_copy(device, to, from, bytes, is_download, error);
}

cogpu_status cogpu_device_download(cogpu_context *context, cogpu_device_kind device, uint32_t index,
                                   const void *from, uint64_t bytes, void *to, cogpu_error *error) {
    return copy_memory(context, device, index, from, bytes, to, true, error);
}

cogpu_status cogpu_device_upload(cogpu_context *context, cogpu_device_kind device, uint32_t index,
                                 const void *from, uint64_t bytes, void *to, cogpu_error *error) {
    return copy_memory(context, device, index, from, bytes, to, false, error);
}

cogpu_status cogpu_device_current(cogpu_device_kind device, uint32_t *index, cogpu_error *error) {
    if (!index)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "cogpu_device_current needs a pointer for a number");
    *index = 0;
    switch (device) {
    case COGPU_CPU:
        return COGPU_OK;
    case COGPU_CUDA:
        return cogpu_gpu_current(index, error);
    case COGPU_EMU:
        return cogpu_devices_current_emulator(index, error);
    default:
        return cogpu_fail(error, COGPU_ARGUMENT, "device kind %d does not exist", (int)device);
    }
}

cogpu_status cogpu_device_of(cogpu_context *context, const void *memory, cogpu_device_kind *device,
                             uint32_t *index, cogpu_error *error) {
    if (!memory || !device || !index)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "cogpu_device_of needs memory, and pointers for its device and number");
    *index = 0;
    *device = context && cogpu_context_emulator_owns(context, memory, index) ? COGPU_EMU
              : cogpu_gpu_owns_memory(memory, index)                         ? COGPU_CUDA
                                                                             : COGPU_CPU;
    return COGPU_OK;
}

cogpu_status cogpu_stream_follow(cogpu_context *context, cogpu_device_kind kind, uint32_t index,
                                 void *stream, void *before, cogpu_error *error) {
    cogpu_gpu_device *device = NULL;
    TRY(cogpu_context_device(context, kind, index, &device, error));
    return cogpu_gpu_stream_wait(cogpu_gpu_device_gpu(device), stream, before, error);
}
