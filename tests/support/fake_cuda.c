/*
 * A CUDA driver without a GPU: device memory is a range of numbers, pinned memory is memory, and
 * all else succeeds and does nothing. It counts frees of memory that is not allocated. Its soname
 * is libcuda.so.1, so a program that loads it first gets no other.
 */
#include "support/fake_cuda.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { CU_OUT_OF_MEMORY = 2, CU_INVALID = 1, ALLOCATIONS_MAX = 4096, ALIGNMENT = 512 };
enum { POINTER_MEMORY_TYPE = 2, MEMORY_DEVICE = 2 };
enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76, SHARED_BYTES_OPTIN = 97 };

struct allocation {
    uint64_t start;
    size_t bytes;
};

static fake_cuda fake = {.total_bytes = FAKE_CUDA_BYTES, .capability = 90};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct allocation allocations[ALLOCATIONS_MAX];
static uint32_t count;
static uint64_t next = UINT64_C(1) << 30;

EXPORT fake_cuda *fake_cuda_control(void);
fake_cuda *fake_cuda_control(void) {
    return &fake;
}

/* The allocation with this byte, or NULL. With the lock held. */
static struct allocation *find_allocation(uint64_t pointer) {
    for (uint32_t i = 0; i < count; i++)
        if (pointer - allocations[i].start < allocations[i].bytes)
            return &allocations[i];
    return NULL;
}

#define CALL(name, ...)                                                                            \
    EXPORT int name(__VA_ARGS__);                                                                  \
    int name(__VA_ARGS__)
/* A call that succeeds. */
#define NOTHING(name)                                                                              \
    CALL(name, void) {                                                                             \
        return 0;                                                                                  \
    }

CALL(cuDeviceGetCount, int *devices) {
    *devices = 1;
    return 0;
}

CALL(cuDeviceGet, int *device, int ordinal) {
    *device = ordinal;
    return 0;
}

CALL(cuDeviceGetName, char *name, int bytes, int device) {
    (void)device;
    strncpy(name, "Fake GPU", (size_t)bytes);
    return 0;
}

CALL(cuDeviceGetAttribute, int *value, int attribute, int device) {
    (void)device;
    *value = attribute == CAPABILITY_MAJOR     ? fake.capability / 10
             : attribute == CAPABILITY_MINOR   ? fake.capability % 10
             : attribute == SHARED_BYTES_OPTIN ? 227 << 10
                                               : 8;
    return 0;
}

CALL(cuDeviceTotalMem_v2, size_t *bytes, int device) {
    (void)device;
    *bytes = fake.total_bytes;
    return 0;
}

CALL(cuDevicePrimaryCtxRetain, void **context, int device) {
    (void)device;
    *context = &fake;
    fake.contexts++;
    return 0;
}

CALL(cuMemGetInfo_v2, size_t *free_bytes, size_t *total) {
    pthread_mutex_lock(&lock);
    *total = fake.total_bytes;
    *free_bytes = fake.total_bytes - fake.allocated_bytes;
    pthread_mutex_unlock(&lock);
    return 0;
}

CALL(cuMemAlloc_v2, uint64_t *pointer, size_t bytes) {
    pthread_mutex_lock(&lock);
    int fits = count < ALLOCATIONS_MAX && bytes <= fake.total_bytes - fake.allocated_bytes;
    if (fits) {
        *pointer = next;
        allocations[count++] = (struct allocation){next, bytes};
        next += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        fake.allocated_bytes += bytes;
    }
    pthread_mutex_unlock(&lock);
    return fits ? 0 : CU_OUT_OF_MEMORY;
}

CALL(cuMemFree_v2, uint64_t pointer) {
    pthread_mutex_lock(&lock);
    struct allocation *found = find_allocation(pointer);
    int is_valid = found && found->start == pointer;
    fake.frees++;
    fake.wrong_frees += !is_valid;
    if (is_valid) {
        fake.allocated_bytes -= found->bytes;
        *found = allocations[--count];
    }
    pthread_mutex_unlock(&lock);
    return is_valid ? 0 : CU_INVALID;
}

CALL(cuMemGetAddressRange_v2, uint64_t *start, size_t *bytes, uint64_t pointer) {
    pthread_mutex_lock(&lock);
    const struct allocation *found = find_allocation(pointer);
    if (found) {
        *start = found->start;
        *bytes = found->bytes;
    }
    pthread_mutex_unlock(&lock);
    return found ? 0 : CU_INVALID;
}

CALL(cuPointerGetAttribute, void *value, int attribute, uint64_t pointer) {
    pthread_mutex_lock(&lock);
    int is_known = find_allocation(pointer) != NULL;
    pthread_mutex_unlock(&lock);
    if (is_known)
        *(unsigned *)value = attribute == POINTER_MEMORY_TYPE ? MEMORY_DEVICE : 0;
    return is_known ? 0 : CU_INVALID;
}

CALL(cuMemHostAlloc, void **memory, size_t bytes, unsigned flags) {
    (void)flags;
    *memory = calloc(1, bytes);
    fake.pinned_bytes += bytes;
    return *memory ? 0 : CU_OUT_OF_MEMORY;
}

CALL(cuMemFreeHost, void *memory) {
    free(memory);
    return 0;
}

CALL(cuModuleLoadData, const void **module, const void *image) {
    *module = image;
    fake.modules[fake.module_count++ % FAKE_CUDA_MODULES] = image;
    return fake.load_result;
}

CALL(cuModuleGetFunction, const void **function, const void *module, const char *name) {
    (void)module;
    *function = name;
    return 0;
}

NOTHING(cuInit)
NOTHING(cuCtxSynchronize)
NOTHING(cuDevicePrimaryCtxRelease_v2)
NOTHING(cuCtxPushCurrent_v2)
NOTHING(cuCtxPopCurrent_v2)
NOTHING(cuCtxGetDevice)
NOTHING(cuCtxGetStreamPriorityRange)
NOTHING(cuMemcpyHtoDAsync_v2)
NOTHING(cuMemcpyDtoHAsync_v2)
NOTHING(cuMemsetD8Async)
NOTHING(cuStreamCreateWithPriority)
NOTHING(cuStreamDestroy_v2)
NOTHING(cuStreamWaitEvent)
NOTHING(cuStreamSynchronize)
NOTHING(cuEventCreate)
NOTHING(cuEventDestroy_v2)
NOTHING(cuEventRecord)
NOTHING(cuEventSynchronize)
NOTHING(cuEventQuery)
NOTHING(cuEventElapsedTime)
NOTHING(cuModuleUnload)
NOTHING(cuFuncSetAttribute)
NOTHING(cuLaunchKernel)
NOTHING(cuGetErrorName)
NOTHING(cuGetErrorString)
