/*
 * apply_mask against a plain loop: floats of all sizes, strides of any sign, masks of one band and
 * of as many bands as the raster. The whole memory of the raster is compared, so that a changed
 * byte between two samples is found.
 */
#include "kernels/mask/apply_mask_args.h"

#include "support/draw.h"
#include "support/gpu_test.h"
#include "support/test.h"

enum { BYTES = 1 << 16, MASK = 1 << 12 };

static cogpu_gpu *gpu;

/* A raster somewhere in BYTES bytes; *start is the offset of its first sample. */
static cogpu_raster any_raster(size_t *start) {
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .type = (cogpu_type)(COGPU_TYPE_F16 + draw(3)),
                           .bands = 1 + draw(4),
                           .height = 1 + draw(20),
                           .width = 1 + draw(40)};
    int64_t size = (int64_t)cogpu_type_bytes(raster.type), gap = draw(2) ? draw(5) : 0;
    bool interleaved = draw(2);
    raster.stride_x = (interleaved ? raster.bands * size : size) + gap;
    raster.stride_y = raster.stride_x * raster.width;
    raster.stride_band = interleaved ? size : raster.stride_y * raster.height;
    *start = draw(9);
    if (draw(3) == 0) {
        *start += (size_t)(raster.stride_y * (raster.height - 1));
        raster.stride_y = -raster.stride_y;
    }
    return raster;
}

static void apply_mask_on_host(const uint8_t *mask, uint32_t mask_bands, uint32_t rows,
                               uint32_t first_row, const cogpu_raster *raster, uint8_t *data) {
    static const uint8_t nans[3][8] = {
        {0, 0x7E}, {0, 0, 0xC0, 0x7F}, {0, 0, 0, 0, 0, 0, 0xF8, 0x7F}};
    for (uint32_t band = 0; band < raster->bands; band++)
        for (uint32_t i = 0; i < rows * raster->width; i++) {
            uint32_t y = first_row + i / raster->width, x = i % raster->width;
            if (!mask[(mask_bands > 1 ? band * rows * raster->width : 0) + i])
                memcpy(data + band * raster->stride_band + y * raster->stride_y +
                           x * raster->stride_x,
                       nans[raster->type - COGPU_TYPE_F16], cogpu_type_bytes(raster->type));
        }
}

static bool is_equal(uint8_t *device_bytes, uint8_t *device_mask, cogpu_gpu_stream *stream) {
    static uint8_t bytes[BYTES], expected[BYTES], mask[MASK];
    const cogpu_gpu_driver *calls = gpu->calls;
    size_t start;
    cogpu_error error;
    cogpu_raster raster = any_raster(&start);
    uint32_t first_row = draw(raster.height), rows = 1 + draw(raster.height - first_row);
    for (int i = 0; i < BYTES; i++)
        expected[i] = bytes[i] = (uint8_t)draw(256);
    for (int i = 0; i < MASK; i++)
        mask[i] = draw(3) ? (uint8_t)draw(256) : 0;
    cogpu_raster mask_rows = {.struct_size = sizeof(cogpu_raster),
                              .data = device_mask,
                              .type = COGPU_TYPE_U8,
                              .bands = draw(2) ? 1 : raster.bands,
                              .height = rows,
                              .width = raster.width};
    apply_mask_on_host(mask, mask_rows.bands, rows, first_row, &raster, expected + start);
    raster.data = device_bytes + start;
    gpu_test_need(calls->copy_up(gpu, device_bytes, bytes, BYTES, stream, &error), &error);
    gpu_test_need(calls->copy_up(gpu, device_mask, mask, MASK, stream, &error), &error);
    gpu_test_need(cogpu_gpu_apply_mask(gpu, &mask_rows, first_row, &raster, stream, &error),
                  &error);
    gpu_test_need(calls->copy_down(gpu, bytes, device_bytes, BYTES, stream, &error), &error);
    gpu_test_need(calls->finish_stream(gpu, stream, &error), &error);
    return memcmp(bytes, expected, BYTES) == 0;
}

static void test_any_raster(void) {
    void *bytes, *mask;
    cogpu_gpu_stream *stream;
    cogpu_error error;
    uint32_t different = 0;
    gpu_test_need(gpu->calls->allocate(gpu, BYTES, &bytes, &error), &error);
    gpu_test_need(gpu->calls->allocate(gpu, MASK, &mask, &error), &error);
    gpu_test_need(gpu->calls->stream_open(gpu, false, &stream, &error), &error);
    for (int i = 0; i < 100; i++)
        different += !is_equal(bytes, mask, stream);
    CHECK(different == 0);
    gpu->calls->stream_close(gpu, stream);
    gpu->calls->release(gpu, mask);
    gpu->calls->release(gpu, bytes);
}

TESTS(kernel_apply_mask) {
    draw_from(test_argc, test_argv);
    gpu = gpu_test_open(draw_state);
    RUN(test_any_raster);
    gpu->calls->close(gpu);
    return FINISH();
}
