/* Control of the CUDA driver in fake_cuda.c. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stddef.h>
#include <stdint.h>

enum { FAKE_CUDA_BYTES = 512 << 20 };

enum { FAKE_CUDA_MODULES = 64 };

typedef struct fake_cuda {
    size_t total_bytes, allocated_bytes;
    uint32_t frees, wrong_frees; /* calls of cuMemFree; those without such an allocation */
    int capability;              /* 90 for 9.0 */
    int load_result;             /* of cuModuleLoadData */
    uint32_t contexts;           /* calls of cuDevicePrimaryCtxRetain */
    size_t pinned_bytes;         /* ever allocated */
    uint32_t module_count;       /* calls of cuModuleLoadData, and their images */
    const void *modules[FAKE_CUDA_MODULES];
} fake_cuda;

#endif
