/* The kernels as nvcc compiled them, one module a file; none if the build had no nvcc. */
#ifndef COGPU_GPU_DRIVER_MODULES_H
#define COGPU_GPU_DRIVER_MODULES_H

#include <stddef.h>
#include <stdint.h>

typedef struct cogpu_module {
    const char *name;  /* of the file: "unpack" */
    const void *image; /* a fatbin */
} cogpu_module;

extern const cogpu_module cogpu_modules[];
extern const size_t cogpu_module_count;

/* Compute capabilities that the kernels are compiled for, 90 for 9.0, then 0. Devices of later ones
 * run the PTX of the last. */
extern const uint32_t cogpu_module_capabilities[];

#endif
