/* Functions on top of the driver interface, the same for both implementations. */
#include "gpu/driver/gpu.h"

#include "gpu/driver/modules.h"

#include <stdio.h>
#include <string.h>

void cogpu_gpu_list_capabilities(char text[COGPU_GPU_LIST_BYTES]) {
    const uint32_t *listed = cogpu_module_capabilities;
    text[0] = 0;
    for (size_t used = 0; *listed && used < COGPU_GPU_LIST_BYTES; used = strlen(text), listed++)
        snprintf(text + used, COGPU_GPU_LIST_BYTES - used, "%u.%u%s", *listed / 10, *listed % 10,
                 listed[1] ? ", " : " and later");
}

/* A device runs what was compiled for its major version and at most its minor version. Without any
 * modules it is the launch that fails, and names nvcc. */
static bool has_kernels(uint32_t capability) {
    const uint32_t *listed = cogpu_module_capabilities;
    bool has = *listed == 0;
    for (; *listed && !has; listed++)
        has = *listed <= capability && (*listed / 10 == capability / 10 || !listed[1]);
    return has;
}

cogpu_status cogpu_gpu_check(const cogpu_gpu *gpu, cogpu_error *error) {
    const uint32_t capability = gpu->capability;
    char list[COGPU_GPU_LIST_BYTES];
    if (capability < COGPU_GPU_CAPABILITY_MIN)
        return cogpu_fail(error, COGPU_DEVICE_ERROR,
                          "%.50s cannot be used: its compute capability is %u.%u, and %u.%u or "
                          "more is needed",
                          gpu->name, capability / 10, capability % 10,
                          COGPU_GPU_CAPABILITY_MIN / 10, COGPU_GPU_CAPABILITY_MIN % 10);
    if (gpu->is_emulated || has_kernels(capability))
        return COGPU_OK;
    cogpu_gpu_list_capabilities(list);
    return cogpu_fail(error, COGPU_DEVICE_ERROR,
                      "%.50s cannot be used: its compute capability is %u.%u, and this build has "
                      "kernels for %s; rebuild it with %u in COGPU_CUDA_ARCHITECTURES",
                      gpu->name, capability / 10, capability % 10, list, capability);
}

bool cogpu_gpu_can_run(const cogpu_gpu *gpu, const cogpu_kernel *const *kernels) {
    while (kernels && *kernels && cogpu_gpu_fits(gpu, *kernels))
        kernels++;
    return !kernels || !*kernels;
}

/* An event may be closed as soon as the wait for it is queued. */
cogpu_status cogpu_gpu_stream_wait(cogpu_gpu *gpu, cogpu_gpu_stream *stream,
                                   cogpu_gpu_stream *before, cogpu_error *error) {
    cogpu_gpu_event *event = NULL;
    TRY(gpu->calls->event_open(gpu, &event, error));
    cogpu_status status = gpu->calls->record(gpu, event, before, error);
    if (status == COGPU_OK)
        status = gpu->calls->wait_event(gpu, stream, event, error);
    gpu->calls->event_close(gpu, event);
    return status;
}
