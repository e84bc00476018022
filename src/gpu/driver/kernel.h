/* A kernel as its launcher sees it: CUDA finds it by name, the emulator calls its body. KERNEL of
 * simt.h defines one for each. */
#ifndef COGPU_GPU_DRIVER_KERNEL_H
#define COGPU_GPU_DRIVER_KERNEL_H

#include <stddef.h>
#include <stdint.h>

typedef struct cogpu_kernel {
    const char *name;
    const char *file; /* its source: the CUDA module has the same name */
    void (*body)(const void *args, void *shared);
    size_t args_bytes, shared_bytes;
    uint32_t threads;            /* of a thread block */
    uint32_t per_multiprocessor; /* resident thread blocks: the grid size of persistent kernels */
} cogpu_kernel;

#endif
