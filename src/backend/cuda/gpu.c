/* What is done alike on a GPU and on the emulator, by their calls. */
#include "backend/cuda/gpu.h"

/* An event may be closed as soon as a stream was told to wait for it. */
cogpu_status cogpu_gpu_follow(cogpu_gpu *gpu, cogpu_gpu_stream *stream, cogpu_gpu_stream *before,
                              cogpu_error *error) {
    cogpu_gpu_event *event = NULL;
    TRY(gpu->calls->event_open(gpu, &event, error));
    cogpu_status status = gpu->calls->record(gpu, event, before, error);
    if (status == COGPU_OK)
        status = gpu->calls->wait_event(gpu, stream, event, error);
    gpu->calls->event_close(gpu, event);
    return status;
}
