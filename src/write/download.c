/*
 * Rows in device memory on a GPU that is not the writer's backend: they are downloaded, some at a
 * time, and added as rows in host memory.
 */
#include "write/writer.h"

enum { DOWNLOAD_BYTES = 16 << 20 };

static cogpu_raster host_raster(const cogpu_raster *raster, uint32_t rows, uint8_t *memory) {
    const int64_t size = (int64_t)cogpu_type_bytes(raster->type);
    return (cogpu_raster){.data = memory,
                          .type = raster->type,
                          .bands = raster->bands,
                          .height = rows,
                          .width = raster->width,
                          .stride_band = size * raster->width * rows,
                          .stride_y = size * raster->width,
                          .stride_x = size};
}

/* Rows in host memory as they are, rows of a device in `memory`. A missing mask stays so. */
static cogpu_status rows_on_host(cogpu_writer *writer, const cogpu_raster *raster, uint32_t first,
                                 uint32_t count, uint8_t *memory, cogpu_raster *rows,
                                 cogpu_error *error) {
    cogpu_gpu_device *opened = NULL;
    *rows = *raster;
    if (!raster->data)
        return COGPU_OK;
    if (raster->device == COGPU_DEVICE_CPU) {
        rows->data = (uint8_t *)raster->data + (int64_t)first * raster->stride_y;
        rows->height = count;
        return COGPU_OK;
    }
    TRY(cogpu_context_device(writer->context, raster->device, raster->device_index, &opened,
                             error));
    *rows = host_raster(raster, count, memory);
    return cogpu_gpu_download_rows(cogpu_gpu_device_gpu(opened), raster, first, count, memory,
                                   error);
}

cogpu_status cogpu_writer_download_rows(cogpu_writer *writer, const cogpu_raster *rows,
                                        const cogpu_raster *mask, cogpu_error *error) {
    const uint64_t pixel_bytes = (uint64_t)rows->width * rows->bands * cogpu_type_bytes(rows->type);
    const uint64_t row_bytes = pixel_bytes + rows->width; /* with the mask */
    const uint32_t most =
        (uint32_t)(DOWNLOAD_BYTES / row_bytes > 0 ? DOWNLOAD_BYTES / row_bytes : 1);
    const uint32_t capacity = most < rows->height ? most : rows->height;
    uint8_t *memory = cogpu_allocate((size_t)(capacity * row_bytes));
    cogpu_status status =
        memory ? COGPU_OK
               : cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for %u rows", capacity);
    for (uint32_t y = 0, count; status == COGPU_OK && y < rows->height; y += count) {
        uint8_t *mask_memory = memory + capacity * pixel_bytes;
        cogpu_raster host_rows, host_mask;
        count = capacity < rows->height - y ? capacity : rows->height - y;
        status = rows_on_host(writer, rows, y, count, memory, &host_rows, error);
        if (status == COGPU_OK)
            status = rows_on_host(writer, mask, y, count, mask_memory, &host_mask, error);
        if (status == COGPU_OK)
            status = writer->backend.calls->add_rows(writer, &host_rows, &host_mask, error);
    }
    cogpu_release(memory);
    return status;
}
