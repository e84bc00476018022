/* Public functions about devices, their memory and their streams. See context/context.h. */
#include "api/sized.h"
#include "context/context.h"
#include "gpu/driver/gds.h"

cogpu_status cogpu_device_info(uint32_t index, cogpu_device *info, cogpu_error *error) {
    cogpu_device found = COGPU_DEVICE_INIT;
    cogpu_error_clear(error);
    if (!info)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "cogpu_device_info needs a pointer for the device");
    TRY(CHECK_STRUCT(info, cogpu_device, error));
    if (cogpu_devices_describe(index, &found) != COGPU_OK)
        return cogpu_fail(error, COGPU_NOT_FOUND, "there is no device %u", index);
    GIVE_STRUCT(info, &found);
    return COGPU_OK;
}

const char *cogpu_cuda_unavailable_reason(void) {
    const char *reason;
    cogpu_gpu_count(&reason);
    return reason;
}

const char *cogpu_gds_unavailable_reason(void) {
    const char *reason = cogpu_gds_missing_reason();
    if (reason)
        return reason;
    return cogpu_gds_is_direct() ? NULL : "cuFile is there, but not its driver (nvidia-fs)";
}

cogpu_status cogpu_device_allocate(cogpu_context *context, cogpu_device_kind kind, uint32_t index,
                                   uint64_t bytes, void **memory, cogpu_error *error) {
    cogpu_gpu_device *device = NULL;
    cogpu_error_clear(error);
    if (!memory || bytes == 0)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "cogpu_device_allocate needs a number of bytes and a pointer for them");
    *memory = NULL;
    TRY(cogpu_context_device(context, kind, index, &device, error));
    return cogpu_gpu_device_allocate(device, bytes, memory, error);
}

void cogpu_device_free(cogpu_context *context, cogpu_device_kind kind, uint32_t index,
                       void *memory) {
    cogpu_gpu_device *device = NULL;
    if (memory && cogpu_context_device(context, kind, index, &device, NULL) == COGPU_OK)
        cogpu_gpu_device_release(device, memory);
}

static cogpu_status copy_memory(cogpu_context *context, cogpu_device_kind kind, uint32_t index,
                                const void *from, uint64_t bytes, void *to, bool is_download,
                                cogpu_error *error) {
    cogpu_gpu_device *device = NULL;
    cogpu_error_clear(error);
    if (!from || !to)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "a copy needs source and destination memory");
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
    cogpu_error_clear(error);
    if (!index)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "cogpu_device_current needs a pointer for a number");
    *index = 0;
    switch (device) {
    case COGPU_DEVICE_CPU:
        return COGPU_OK;
    case COGPU_DEVICE_CUDA:
        return cogpu_gpu_current(index, error);
    case COGPU_DEVICE_EMULATOR:
        return cogpu_devices_current_emulator(index, error);
    default:
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "device kind %d does not exist",
                          (int)device);
    }
}

cogpu_status cogpu_pointer_device(cogpu_context *context, const void *memory,
                                  cogpu_device_kind *device, uint32_t *index, cogpu_error *error) {
    cogpu_error_clear(error);
    if (!memory || !device || !index)
        return cogpu_fail(
            error, COGPU_INVALID_ARGUMENT,
            "cogpu_pointer_device needs memory, and pointers for its device and number");
    *index = 0;
    *device = context && cogpu_context_emulator_owns(context, memory, index) ? COGPU_DEVICE_EMULATOR
              : cogpu_gpu_owns_memory(memory, index)                         ? COGPU_DEVICE_CUDA
                                                                             : COGPU_DEVICE_CPU;
    return COGPU_OK;
}

cogpu_status cogpu_stream_wait(cogpu_context *context, cogpu_device_kind kind, uint32_t index,
                               void *stream, void *before, cogpu_error *error) {
    cogpu_gpu_device *device = NULL;
    cogpu_error_clear(error);
    TRY(cogpu_context_device(context, kind, index, &device, error));
    return cogpu_gpu_stream_wait(cogpu_gpu_device_gpu(device), stream, before, error);
}
