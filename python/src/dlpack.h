/*
 * DLPack's structs and numbers, which its interface fixes: of tensors that come from others.
 */
#ifndef COGPU_PYTHON_DLPACK_H
#define COGPU_PYTHON_DLPACK_H

#include <stdint.h>

struct dl_tensor {
    void *data;
    int32_t device_kind, device_index;
    int32_t dimensions;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape,
        *strides; /* in samples; strides may be NULL for packed ones before version 1.2 */
    uint64_t byte_offset;
};

struct dl_legacy {
    struct dl_tensor tensor;
    void *manager;
    void (*deleter)(struct dl_legacy *self);
};

struct dl_versioned {
    uint32_t major, minor;
    void *manager;
    void (*deleter)(struct dl_versioned *self);
    uint64_t flags;
    struct dl_tensor tensor;
};

enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_CUDA_MANAGED = 13 };
enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_COMPLEX = 5, DL_BOOL = 6 };
enum { DL_READ_ONLY = 1, DL_COPIED = 2 };

#define DL_LEGACY_NAME         "dltensor"
#define DL_VERSIONED_NAME      "dltensor_versioned"
#define DL_LEGACY_USED_NAME    "used_dltensor"
#define DL_VERSIONED_USED_NAME "used_dltensor_versioned"

#endif
