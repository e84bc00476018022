/*
 * Rows of the GPU write pipeline: order between the caller's stream and ours, uploads from host
 * memory through pinned staging buffers, and downloads of rasters for a writer on the CPU.
 */
#include "base/math.h"
#include "gpu/write_slot.h"
#include "kernels/copy_rows/copy_rows_args.h"

enum { STAGING_BYTES = 4 << 20 };

/* ---- stream order -------------------------------------------------------------------------- */

cogpu_status cogpu_write_open_rows(cogpu_gpu_writer *writer, cogpu_error *error) {
    const cogpu_gpu_driver *calls = writer->gpu->calls;
    TRY(calls->stream_open(writer->gpu, true, &writer->stream, error));
    return calls->event_open(writer->gpu, &writer->stream_order, error);
}

void cogpu_write_close_rows(cogpu_gpu_writer *writer) {
    cogpu_gpu *gpu = writer->gpu;
    if (writer->stream)
        gpu->calls->stream_close(gpu, writer->stream);
    gpu->calls->event_close(gpu, writer->stream_order);
    for (uint32_t i = 0; i < COGPU_STAGING_BUFFERS; i++) {
        gpu->calls->release_pinned(gpu, writer->staging[i].pinned);
        gpu->calls->event_close(gpu, writer->staging[i].uploaded);
    }
}

cogpu_status cogpu_gpu_writer_begin_rows(cogpu_gpu_writer *writer, const cogpu_raster *raster,
                                         cogpu_error *error) {
    const cogpu_gpu_driver *calls = writer->gpu->calls;
    TRY(calls->record(writer->gpu, writer->stream_order, raster->stream, error));
    return calls->wait_event(writer->gpu, writer->stream, writer->stream_order, error);
}

cogpu_status cogpu_gpu_writer_end_rows(cogpu_gpu_writer *writer, const cogpu_raster *raster,
                                       cogpu_error *error) {
    const cogpu_gpu_driver *calls = writer->gpu->calls;
    TRY(calls->record(writer->gpu, writer->stream_order, writer->stream, error));
    return calls->wait_event(writer->gpu, raster->stream, writer->stream_order, error);
}

void cogpu_gpu_writer_wait_rows(cogpu_gpu_writer *writer) {
    if (writer && writer->stream)
        (void)writer->gpu->calls->finish_stream(writer->gpu, writer->stream, NULL);
}

cogpu_gpu_stream *cogpu_gpu_writer_stream(const cogpu_gpu_writer *writer) {
    return writer->stream;
}

/* ---- uploads ------------------------------------------------------------------------------- */

/* At least one row, and no more than the image has. */
static uint64_t staging_bytes(const cogpu_gpu_writer *writer) {
    const cogpu_write_plan *plan = writer->options.plan;
    const uint64_t row_bytes = plan->levels[0].width * (uint64_t)plan->pixel_bytes * plan->planes;
    const uint64_t rows = STAGING_BYTES / row_bytes;
    return row_bytes * min_u64(max_u64(rows, 1), plan->levels[0].height);
}

static cogpu_status open_staging(cogpu_gpu_writer *writer, struct cogpu_staging_buffer *staging,
                                 cogpu_error *error) {
    const cogpu_gpu_driver *calls = writer->gpu->calls;
    const uint64_t bytes = staging_bytes(writer);
    TRY(calls->allocate_pinned(writer->gpu, bytes, (void **)&staging->pinned, error));
    TRY(cogpu_gpu_writer_allocate(writer, bytes, &staging->device, error));
    TRY(calls->event_open(writer->gpu, &staging->uploaded, error));
    return calls->record(writer->gpu, staging->uploaded, writer->stream, error);
}

cogpu_status cogpu_gpu_writer_staging_buffer(cogpu_gpu_writer *writer, uint8_t **pinned,
                                             uint64_t *bytes, cogpu_error *error) {
    struct cogpu_staging_buffer *staging = &writer->staging[writer->next_staging];
    if (!staging->uploaded)
        TRY(open_staging(writer, staging, error));
    *pinned = staging->pinned;
    *bytes = staging_bytes(writer);
    return writer->gpu->calls->finish_event(writer->gpu, staging->uploaded, error);
}

cogpu_status cogpu_gpu_writer_upload_staged(cogpu_gpu_writer *writer, uint64_t bytes, void **device,
                                            cogpu_error *error) {
    const cogpu_gpu_driver *calls = writer->gpu->calls;
    struct cogpu_staging_buffer *staging = &writer->staging[writer->next_staging];
    writer->next_staging = (writer->next_staging + 1) % COGPU_STAGING_BUFFERS;
    *device = staging->device;
    TRY(calls->copy_up(writer->gpu, staging->device, staging->pinned, bytes, writer->stream,
                       error));
    return calls->record(writer->gpu, staging->uploaded, writer->stream, error);
}

/* ---- downloads ----------------------------------------------------------------------------- */

static cogpu_status copy_packed_rows(cogpu_gpu *gpu, const cogpu_raster *from,
                                     const cogpu_raster *packed, uint32_t rows, uint64_t bytes,
                                     uint8_t *to, cogpu_gpu_stream *stream, cogpu_error *error) {
    TRY(cogpu_gpu_stream_wait(gpu, stream, from->stream, error));
    TRY(cogpu_gpu_copy_rows(gpu, from, packed, rows, stream, error));
    TRY(gpu->calls->copy_down(gpu, to, packed->data, bytes, stream, error));
    return gpu->calls->finish_stream(gpu, stream, error);
}

cogpu_status cogpu_gpu_download_rows(cogpu_gpu *gpu, const cogpu_raster *raster, uint32_t first,
                                     uint32_t rows, uint8_t *to, cogpu_error *error) {
    const cogpu_gpu_driver *calls = gpu->calls;
    const uint64_t size = cogpu_type_bytes(raster->type), row_bytes = raster->width * size;
    cogpu_raster from = *raster, packed = *raster;
    cogpu_gpu_stream *stream = NULL;
    from.data = (uint8_t *)from.data + (int64_t)first * from.stride_y;
    packed.stride_x = (int64_t)size;
    packed.stride_y = (int64_t)row_bytes;
    packed.stride_band = (int64_t)(rows * row_bytes);
    const uint64_t bytes = rows * row_bytes * raster->bands;
    cogpu_status status = calls->allocate(gpu, bytes, &packed.data, error);
    if (status != COGPU_OK)
        packed.data = NULL;
    if (status == COGPU_OK)
        status = calls->stream_open(gpu, false, &stream, error);
    if (status == COGPU_OK)
        status = copy_packed_rows(gpu, &from, &packed, rows, bytes, to, stream, error);
    if (stream && status != COGPU_OK) /* a copy may still read the caller's rows */
        (void)calls->finish_stream(gpu, stream, NULL);
    if (stream)
        calls->stream_close(gpu, stream);
    calls->release(gpu, packed.data);
    return status;
}
