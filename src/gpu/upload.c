/* Rows of pixels from host memory into a raster on the device, through one slot. */
#include "base/bytes.h"
#include "base/math.h"
#include "gpu/read_run.h"

#include <string.h>

/* Packed samples as a file would have them, a block a band. */
static cogpu_status describe_packed(const struct cogpu_slot *slot, const cogpu_raster *raster,
                                    struct cogpu_gpu_pixels *pixels, cogpu_error *error) {
    uint32_t size = (uint32_t)cogpu_type_bytes(raster->type);
    cogpu_storage storage = {.type = raster->type,
                             .bits = 8 * size,
                             .predictor = 1,
                             .big_endian = COGPU_HOST_BIG_ENDIAN,
                             .bands = raster->bands,
                             .planes = raster->bands > 1 ? raster->bands : 1,
                             .block_width = raster->width,
                             .format = {.samples = 1, .row_bytes = (size_t)raster->width * size}};
    cogpu_read_plan plan = {.storage = &storage, .band_count = raster->bands};
    return cogpu_gpu_describe_pixels(&plan, raster, slot->buffer->device, NULL, NULL, pixels,
                                     error);
}

/* Bands are `band_stride` bytes apart in `from`. */
static cogpu_status upload_chunk(cogpu_gpu *gpu, const struct cogpu_slot *slot, const uint8_t *from,
                                 uint64_t band_stride, uint32_t rows, const cogpu_raster *raster,
                                 uint32_t target_y, cogpu_error *error) {
    const cogpu_gpu_driver *calls = gpu->calls;
    cogpu_gpu_stream *stream = slot->buffer->stream;
    uint64_t band_bytes = (uint64_t)rows * raster->width * cogpu_type_bytes(raster->type);
    uint64_t table_at =
        cogpu_gpu_align(raster->bands * cogpu_gpu_align(band_bytes) + COGPU_GPU_SLACK_BYTES);
    struct cogpu_unpack_block *table =
        (struct cogpu_unpack_block *)(void *)(slot->pinned + table_at);
    struct cogpu_gpu_pixels pixels;
    TRY(describe_packed(slot, raster, &pixels, error));
    for (uint32_t band = 0; band < raster->bands; band++) {
        memcpy(slot->pinned + band * cogpu_gpu_align(band_bytes), from + band * band_stride,
               (size_t)band_bytes);
        table[band] = (struct cogpu_unpack_block){.decoded = band * cogpu_gpu_align(band_bytes),
                                                  .target_y = target_y,
                                                  .width = raster->width,
                                                  .height = rows,
                                                  .plane = band};
    }
    TRY(calls->copy_up(gpu, slot->buffer->device, slot->pinned,
                       table_at + raster->bands * sizeof *table, stream, error));
    TRY(cogpu_gpu_unpack(
        gpu, &pixels, (const struct cogpu_unpack_block *)(void *)(slot->buffer->device + table_at),
        table, raster->bands, stream, error));
    return calls->finish_stream(gpu, stream, error);
}

/* Rows of a chunk: as many as fit, and at least one. */
static uint32_t chunk_rows(const cogpu_gpu_device *device, const cogpu_raster *raster,
                           uint32_t rows) {
    enum { CHUNK_BYTES = 8 << 20 };
    uint64_t most = device->budget / COGPU_READ_BUFFERS;
    uint64_t others = raster->bands * (COGPU_GPU_ALIGN + sizeof(struct cogpu_unpack_block)) +
                      4 * COGPU_GPU_SLACK_BYTES + COGPU_STAGING;
    uint64_t available = most > others ? most - others : 0;
    uint64_t fit = min_u64(available, CHUNK_BYTES) /
                   ((uint64_t)raster->width * raster->bands * cogpu_type_bytes(raster->type));
    return (uint32_t)min_u64(max_u64(fit, 1), rows);
}

static cogpu_status upload_rows(struct cogpu_read_run *run, const uint8_t *from, uint32_t rows,
                                uint32_t chunk, const cogpu_raster *raster, uint32_t target_y,
                                cogpu_error *error) {
    uint64_t row_bytes = (uint64_t)raster->width * cogpu_type_bytes(raster->type);
    struct cogpu_slot *slot = NULL;
    TRY(cogpu_run_take_slot(run, true, &slot, error));
    TRY(cogpu_run_record_caller(run, raster, error));
    TRY(cogpu_run_wait_for_raster(run, slot->buffer->stream, raster, error));
    for (uint32_t row = 0; row < rows; row += chunk)
        TRY(upload_chunk(run->device->gpu, slot, from + row * row_bytes, rows * row_bytes,
                         min_u32(rows - row, chunk), raster, target_y + row, error));
    slot->state = COGPU_SLOT_FREE; /* nothing is queued any more */
    return COGPU_OK;
}

cogpu_status cogpu_gpu_upload_rows(cogpu_gpu_device *device, const uint8_t *from, uint32_t rows,
                                   const cogpu_raster *raster, uint32_t target_y,
                                   cogpu_error *error) {
    struct cogpu_read_run run;
    uint64_t row_bytes = (uint64_t)raster->width * cogpu_type_bytes(raster->type);
    uint32_t chunk = chunk_rows(device, raster, rows);
    uint64_t most = device->budget / COGPU_READ_BUFFERS;
    uint64_t needed =
        raster->bands * (cogpu_gpu_align(chunk * row_bytes) + sizeof(struct cogpu_unpack_block)) +
        4 * COGPU_GPU_SLACK_BYTES + COGPU_STAGING;
    if (needed > most || needed > COGPU_PINNED_MAX)
        return cogpu_fail(error, COGPU_LIMIT_EXCEEDED,
                          "a row of %llu bytes does not fit the device memory that reads may take: "
                          "raise `device_bytes` of the context",
                          (unsigned long long)(row_bytes * raster->bands));
    cogpu_run_open(&run, device, NULL);
    run.sizes = (struct cogpu_slot_sizes){
        .pinned = cogpu_slot_pool_size(needed, COGPU_PINNED_LEAST_BYTES, most),
        .device = cogpu_slot_pool_size(needed, COGPU_BUFFER_LEAST_BYTES, most)};
    cogpu_status status = upload_rows(&run, from, rows, chunk, raster, target_y, error);
    cogpu_run_close(&run);
    return status;
}
