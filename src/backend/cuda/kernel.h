/* A kernel as its launcher sees it: gpu.h runs it on a GPU by its name, on the emulator by its
 * body. KERNEL of simt.h defines one for each. */
#ifndef COGPU_BACKEND_CUDA_KERNEL_H
#define COGPU_BACKEND_CUDA_KERNEL_H

#include <stddef.h>
#include <stdint.h>

typedef struct cogpu_kernel {
    const char *name;
    const char *file; /* where it stands: the module that has it is called as the file is */
    void (*body)(const void *args, void *shared);
    size_t args_bytes, shared_bytes;
    uint32_t threads; /* of a block */
    uint32_t
        per_multiprocessor; /* blocks that fit on one: what a grid that takes tickets is made of */
} cogpu_kernel;

#endif
