/* Tensors over rasters: what DLPack's own header would see in them. */
#include "cogpu.h"

#include "support/test.h"

/* As DLPack has it. */
struct tensor {
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};
struct managed {
    struct tensor tensor;
    void *manager;
    void (*deleter)(struct managed *self);
};
struct versioned {
    uint32_t major, minor;
    void *manager;
    void (*deleter)(struct versioned *self);
    uint64_t flags;
    struct tensor tensor;
};

static cogpu_error error;

static void count(void *user) {
    ++*(int *)user;
}

static void test_packed_raster(void) {
    float pixels[2 * 3 * 5];
    int released = 0;
    struct DLManagedTensor *tensor = NULL;
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .data = pixels,
                           .type = COGPU_TYPE_F32,
                           .bands = 2,
                           .height = 3,
                           .width = 5};
    CHECK(cogpu_dlpack(&raster, count, &released, &tensor, &error) == COGPU_OK);
    struct managed *managed = (void *)tensor;
    const struct tensor *made = &managed->tensor;
    CHECK(made->data == pixels && made->byte_offset == 0 && made->ndim == 3);
    CHECK(made->device_type == 1 && made->device_id == 0);
    CHECK(made->code == 2 && made->bits == 32 && made->lanes == 1);
    CHECK(made->shape[0] == 2 && made->shape[1] == 3 && made->shape[2] == 5);
    CHECK(made->strides[0] == 15 && made->strides[1] == 5 && made->strides[2] == 1);
    CHECK(released == 0);
    managed->deleter(managed);
    CHECK(released == 1);
}

static void test_chunky_raster_on_a_gpu(void) {
    uint16_t pixels[3 * 4 * 6];
    struct DLManagedTensorVersioned *tensor = NULL;
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .data = pixels,
                           .type = COGPU_TYPE_U16,
                           .bands = 3,
                           .height = 4,
                           .width = 6,
                           .stride_band = 2,
                           .stride_y = -36,
                           .stride_x = 6,
                           .device = COGPU_DEVICE_CUDA,
                           .device_index = 3};
    CHECK(cogpu_dlpack_versioned(&raster, NULL, NULL, &tensor, &error) == COGPU_OK);
    struct versioned *versioned = (void *)tensor;
    const struct tensor *made = &versioned->tensor;
    CHECK(versioned->major == 1 && versioned->flags == 0);
    CHECK(made->device_type == 2 && made->device_id == 3 && made->code == 1 && made->bits == 16);
    CHECK(made->strides[0] == 1 && made->strides[1] == -18 && made->strides[2] == 3);
    versioned->deleter(versioned);
}

static void test_types(void) {
    static const struct {
        cogpu_type type;
        uint8_t code, bits;
    } rows[] = {{COGPU_TYPE_U8, 1, 8},    {COGPU_TYPE_I8, 0, 8},     {COGPU_TYPE_U64, 1, 64},
                {COGPU_TYPE_I32, 0, 32},  {COGPU_TYPE_F16, 2, 16},   {COGPU_TYPE_F64, 2, 64},
                {COGPU_TYPE_CF32, 5, 64}, {COGPU_TYPE_CF64, 5, 128}, {COGPU_TYPE_I16, 0, 16},
                {COGPU_TYPE_U32, 1, 32}};
    double pixel[2];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct DLManagedTensor *tensor = NULL;
        cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                               .data = pixel,
                               .type = rows[i].type,
                               .bands = 1,
                               .height = 1,
                               .width = 1};
        CHECK(cogpu_dlpack(&raster, NULL, NULL, &tensor, &error) == COGPU_OK);
        struct managed *managed = (void *)tensor;
        CHECK(managed->tensor.code == rows[i].code && managed->tensor.bits == rows[i].bits);
        managed->deleter(managed);
    }
}

static void test_refused(void) {
    double pixel[2];
    int released = 0;
    struct DLManagedTensor *tensor = NULL;
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .data = pixel,
                           .type = COGPU_TYPE_CI16,
                           .bands = 1,
                           .height = 1,
                           .width = 1};
    CHECK(cogpu_dlpack(&raster, count, &released, &tensor, &error) == COGPU_UNSUPPORTED);
    CHECK_TEXT(error.message, "DLPack has no samples of type complex_int16");
    raster.type = COGPU_TYPE_F64;
    raster.stride_x = 12;
    CHECK(cogpu_dlpack(&raster, count, &released, &tensor, &error) == COGPU_INVALID_ARGUMENT);
    raster.stride_x = 0;
    raster.data = NULL;
    CHECK(cogpu_dlpack(&raster, count, &released, &tensor, &error) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_dlpack(NULL, count, &released, &tensor, &error) == COGPU_INVALID_ARGUMENT);
    raster.data = &released;
    CHECK(cogpu_dlpack(&raster, count, &released, NULL, &error) == COGPU_INVALID_ARGUMENT);
    CHECK(released == 0);
}

TESTS(dlpack) {
    RUN(test_packed_raster);
    RUN(test_chunky_raster_on_a_gpu);
    RUN(test_types);
    RUN(test_refused);
    return FINISH();
}
