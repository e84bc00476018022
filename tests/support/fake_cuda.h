/* Control of the CUDA driver in fake_cuda.c. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stddef.h>
#include <stdint.h>

enum { FAKE_CUDA_BYTES = 512 << 20 };

typedef struct fake_cuda {
    size_t total_bytes, allocated_bytes;
    uint32_t frees, wrong_frees; /* calls of cuMemFree; those without such an allocation */
} fake_cuda;

#endif
