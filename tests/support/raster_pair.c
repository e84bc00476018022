#include "support/raster_pair.h"

#include "image/image.h"

static cogpu_error error;

/* ---- rasters ---- */

struct raster_pair raster_pair_any(cogpu_type type, uint32_t bands, uint32_t height,
                                   uint32_t width) {
    static const int orders[4][3] = {{2, 1, 0}, {0, 2, 1}, {1, 2, 0}, {2, 1, 0}};
    const int64_t size = (int64_t)cogpu_type_bytes(type);
    struct raster_pair raster_pair = {.host = {.struct_size = sizeof(cogpu_raster),
                                               .type = type,
                                               .bands = bands,
                                               .height = height,
                                               .width = width}};
    cogpu_raster *raster = &raster_pair.host;
    const uint32_t order = draw(4), lengths[3] = {bands, height, width};
    int64_t *const strides[3] = {&raster->stride_band, &raster->stride_y, &raster->stride_x};
    int64_t stride = size + (draw(4) ? 0 : draw(5)), last = 0;
    size_t skip = draw(2) ? 0 : draw(20);
    for (int i = 0; i < 3; i++) {
        int axis = orders[order][i];
        *strides[axis] = stride;
        last += stride * (lengths[axis] - 1);
        stride = stride * lengths[axis] + (draw(3) ? 0 : draw(40));
    }
    raster_pair.bytes = skip + (size_t)(last + size);
    for (int axis = 0; axis < 3; axis++)
        if (draw(6) == 0) {
            skip += (size_t)(*strides[axis] * (lengths[axis] - 1));
            *strides[axis] = -*strides[axis];
        }
    raster_pair.memory = allocate_host(raster_pair.bytes);
    memset(raster_pair.memory, GPU_TEST_GUARD, raster_pair.bytes);
    gpu_test_need(gpu->calls->allocate(gpu, raster_pair.bytes, &raster_pair.device_memory, &error),
                  &error);
    raster_pair.device = raster_pair.host;
    raster_pair.host.data = raster_pair.memory + skip;
    raster_pair.device.data = (uint8_t *)raster_pair.device_memory + skip;
    return raster_pair;
}

void raster_pair_upload(const struct raster_pair *pair) {
    gpu_test_need(
        gpu->calls->copy_up(gpu, pair->device_memory, pair->memory, pair->bytes, stream, &error),
        &error);
}

bool raster_pair_is_same(const struct raster_pair *pair) {
    uint8_t *got = allocate_host(pair->bytes);
    gpu_test_need(gpu->calls->copy_down(gpu, got, pair->device_memory, pair->bytes, stream, &error),
                  &error);
    gpu_test_need(gpu->calls->finish_stream(gpu, stream, &error), &error);
    bool same = memcmp(got, pair->memory, pair->bytes) == 0;
    free(got);
    return same;
}

void raster_pair_drop(struct raster_pair *pair) {
    free(pair->memory);
    gpu->calls->release(gpu, pair->device_memory);
}

/* ---- pixels ---- */

const char *const raster_pair_numbers[RASTER_PAIR_NUMBERS] = {"0",
                                                              "-0",
                                                              "3",
                                                              "4",
                                                              "5",
                                                              "7",
                                                              "127",
                                                              "250",
                                                              "255",
                                                              "65535",
                                                              "-3",
                                                              "-12",
                                                              "-128",
                                                              "nan",
                                                              "inf",
                                                              "1.7e308",
                                                              "9007199254740992",
                                                              "9007199254740993"};

struct taste raster_pair_taste(cogpu_type type) {
    struct taste taste = {.noise = draw(3) ? 1 + draw(40) : 1,
                          .grain = draw(2) ? 0 : draw((uint32_t)cogpu_type_bytes(type))};
    for (uint32_t i = 0; i < RASTER_PAIR_NUMBERS && type < COGPU_TYPE_CI16; i++) {
        cogpu_nodata number = {0};
        cogpu_nodata_parse(raster_pair_numbers[i], type, &number);
        if (number.matches && draw(3))
            cogpu_nodata_sample(&number, type, taste.samples[taste.count++]);
    }
    if (taste.count == 0)
        taste.noise = 1;
    return taste;
}

void raster_pair_draw_sample(const struct taste *taste, size_t size, uint8_t *sample) {
    const bool is_noise = draw(taste->noise) == 0;
    if (!is_noise)
        memcpy(sample, taste->samples[draw(taste->count)], size);
    for (size_t i = 0; i < (is_noise ? size : taste->grain); i++)
        sample[i] = (uint8_t)draw(256);
}

uint8_t *raster_pair_sample(const cogpu_raster *raster, uint32_t b, uint32_t y, uint32_t x) {
    return (uint8_t *)raster->data + b * raster->stride_band + y * raster->stride_y +
           x * raster->stride_x;
}

void raster_pair_fill(const cogpu_raster *raster, const struct taste *taste) {
    for (uint32_t b = 0; b < raster->bands; b++)
        for (uint32_t y = 0; y < raster->height; y++)
            for (uint32_t x = 0; x < raster->width; x++)
                raster_pair_draw_sample(taste, cogpu_type_bytes(raster->type),
                                        raster_pair_sample(raster, b, y, x));
}

void raster_pair_fill_mask(const cogpu_raster *raster) {
    uint8_t valid = 0;
    const uint32_t often = 1 + draw(20);
    for (uint32_t y = 0; y < raster->height; y++)
        for (uint32_t x = 0; x < raster->width; x++) {
            if (draw(often) == 0)
                valid = (uint8_t)(draw(2) ? 0 : 1 + draw(255));
            *raster_pair_sample(raster, 0, y, x) = valid;
        }
}
