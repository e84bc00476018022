/* The kernels as nvcc has compiled them, one module a file; none where the build had no nvcc. */
#ifndef COGPU_BACKEND_CUDA_MODULES_H
#define COGPU_BACKEND_CUDA_MODULES_H

#include <stddef.h>

typedef struct cogpu_module {
    const char *name;  /* of the file: "cuda_place" */
    const void *image; /* a fatbin */
} cogpu_module;

extern const cogpu_module cogpu_modules[];
extern const size_t cogpu_module_count;

#endif
