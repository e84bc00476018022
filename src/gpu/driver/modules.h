/* The kernels as nvcc compiled them, one module a file; none if the build had no nvcc. */
#ifndef COGPU_GPU_DRIVER_MODULES_H
#define COGPU_GPU_DRIVER_MODULES_H

#include <stddef.h>

typedef struct cogpu_module {
    const char *name;  /* of the file: "unpack" */
    const void *image; /* a fatbin */
} cogpu_module;

extern const cogpu_module cogpu_modules[];
extern const size_t cogpu_module_count;

#endif
