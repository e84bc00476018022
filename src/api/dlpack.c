/* DLPack: exports a raster as a tensor over the same memory, shaped (band, row, column). */
#include "api/sized.h"
#include "base/memory.h"

#include <stdbool.h>

/* Types and numbers of the DLPack ABI. */
struct dl_tensor {
    void *data;
    struct {
        int32_t kind, index;
    } device;
    int32_t dimensions;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } type;
    int64_t *shape, *strides; /* in samples */
    uint64_t byte_offset;
};

struct DLManagedTensor {
    struct dl_tensor tensor;
    void *manager;
    void (*deleter)(struct DLManagedTensor *self);
};

struct DLManagedTensorVersioned {
    struct {
        uint32_t major, minor;
    } version;
    void *manager;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    struct dl_tensor tensor;
};

enum { DL_CPU = 1, DL_CUDA = 2 };
enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_COMPLEX = 5 };
enum { DL_MAJOR = 1, DL_MINOR = 2 };

/* A tensor of either version, with the memory that it points to. */
struct exported_tensor {
    union {
        struct DLManagedTensor plain;
        struct DLManagedTensorVersioned versioned;
    } as;
    int64_t shape[3], strides[3];
    void (*release)(void *user);
    void *user;
};

static void release_tensor(struct exported_tensor *exported) {
    if (exported->release)
        exported->release(exported->user);
    cogpu_release(exported);
}

static void delete_plain(struct DLManagedTensor *self) {
    release_tensor(self->manager);
}

static void delete_versioned(struct DLManagedTensorVersioned *self) {
    release_tensor(self->manager);
}

/* -1 for types that DLPack does not have. */
static int type_code_of(cogpu_type type) {
    switch (type) {
    case COGPU_TYPE_U8:
    case COGPU_TYPE_U16:
    case COGPU_TYPE_U32:
    case COGPU_TYPE_U64:
        return DL_UINT;
    case COGPU_TYPE_I8:
    case COGPU_TYPE_I16:
    case COGPU_TYPE_I32:
    case COGPU_TYPE_I64:
        return DL_INT;
    case COGPU_TYPE_F16:
    case COGPU_TYPE_F32:
    case COGPU_TYPE_F64:
        return DL_FLOAT;
    case COGPU_TYPE_CF32:
    case COGPU_TYPE_CF64:
        return DL_COMPLEX;
    default:
        return -1;
    }
}

static cogpu_status set_strides(const cogpu_raster *raster, struct exported_tensor *exported,
                                cogpu_error *error) {
    int64_t size = (int64_t)cogpu_type_bytes(raster->type);
    int64_t given[] = {raster->stride_band, raster->stride_y, raster->stride_x};
    bool is_packed = !given[0] && !given[1] && !given[2];
    exported->strides[2] = 1;
    exported->strides[1] = raster->width;
    if (is_packed && __builtin_mul_overflow((int64_t)raster->width, (int64_t)raster->height,
                                            &exported->strides[0]))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "a raster of %u x %u pixels exceeds the address space", raster->width,
                          raster->height);
    for (uint32_t i = 0; i < 3 && !is_packed; i++) {
        if (given[i] % size != 0)
            return cogpu_fail(
                error, COGPU_INVALID_ARGUMENT,
                "strides of a tensor must be multiples of the sample size, got %lld bytes",
                (long long)given[i]);
        exported->strides[i] = given[i] / size;
    }
    return COGPU_OK;
}

static cogpu_status fill_tensor(const cogpu_raster *raster, struct exported_tensor *exported,
                                struct dl_tensor *tensor, cogpu_error *error) {
    int code = type_code_of(raster->type);
    if (code < 0)
        return cogpu_fail(error, COGPU_UNSUPPORTED, "DLPack has no samples of type %s",
                          cogpu_type_name(raster->type));
    if (!raster->data)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the raster has no memory: `data` is NULL");
    TRY(set_strides(raster, exported, error));
    exported->shape[0] = raster->bands;
    exported->shape[1] = raster->height;
    exported->shape[2] = raster->width;
    *tensor = (struct dl_tensor){
        .data = raster->data,
        /* Memory of the emulator is host memory. */
        .device = {raster->device == COGPU_DEVICE_CUDA ? DL_CUDA : DL_CPU,
                   raster->device == COGPU_DEVICE_CUDA ? (int32_t)raster->device_index : 0},
        .dimensions = 3,
        .type = {(uint8_t)code, (uint8_t)(8 * cogpu_type_bytes(raster->type)), 1},
        .shape = exported->shape,
        .strides = exported->strides};
    return COGPU_OK;
}

static cogpu_status export_raster(const cogpu_raster *given, void (*release)(void *), void *user,
                                  bool is_versioned, const void *result,
                                  struct exported_tensor **out, cogpu_error *error) {
    cogpu_raster raster;
    cogpu_error_clear(error);
    if (!given || !result)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "a tensor needs a raster and a pointer for the result");
    TRY(TAKE_STRUCT(&raster, given, cogpu_raster, error));
    struct exported_tensor *exported = cogpu_allocate(sizeof *exported);
    if (!exported)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for a tensor");
    *exported = (struct exported_tensor){.release = release, .user = user};
    struct dl_tensor *tensor =
        is_versioned ? &exported->as.versioned.tensor : &exported->as.plain.tensor;
    cogpu_status status = fill_tensor(&raster, exported, tensor, error);
    if (status == COGPU_OK)
        *out = exported;
    else
        cogpu_release(exported);
    return status;
}

cogpu_status cogpu_dlpack(const cogpu_raster *raster, void (*release)(void *user), void *user,
                          struct DLManagedTensor **tensor, cogpu_error *error) {
    struct exported_tensor *exported = NULL;
    TRY(export_raster(raster, release, user, false, tensor, &exported, error));
    exported->as.plain.manager = exported;
    exported->as.plain.deleter = delete_plain;
    *tensor = &exported->as.plain;
    return COGPU_OK;
}

cogpu_status cogpu_dlpack_versioned(const cogpu_raster *raster, void (*release)(void *user),
                                    void *user, struct DLManagedTensorVersioned **tensor,
                                    cogpu_error *error) {
    struct exported_tensor *exported = NULL;
    TRY(export_raster(raster, release, user, true, tensor, &exported, error));
    exported->as.versioned.version.major = DL_MAJOR;
    exported->as.versioned.version.minor = DL_MINOR;
    exported->as.versioned.manager = exported;
    exported->as.versioned.deleter = delete_versioned;
    *tensor = &exported->as.versioned;
    return COGPU_OK;
}
