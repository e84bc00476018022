/* Functions on top of the driver interface, the same for both implementations. */
#include "gpu/driver/gpu.h"

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
