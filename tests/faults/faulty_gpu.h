/*
 * A driver that forwards all calls to another device, except those that are to fail: the n-th call
 * of a kind, or all from there on if the device is to be lost. It counts what is open.
 *
 * Failing calls are not forwarded, except those that wait: they wait and then report an error, as
 * the CUDA driver does. The emulator behind a lost device is lost, too: queued work never runs.
 *
 * Host memory that the device behind allocates is not the library's: its allocations do not fail.
 */
#ifndef COGPU_TESTS_FAULTY_GPU_H
#define COGPU_TESTS_FAULTY_GPU_H

#include "faults/fault_injection.h"
#include "gpu/driver/gpu.h"
#include "support/test.h"

typedef enum gpu_call {
    ANY_CALL,
    CALL_MEMORY,
    CALL_ALLOCATE,
    CALL_ALLOCATE_PINNED,
    CALL_STREAM_OPEN,
    CALL_EVENT_OPEN,
    CALL_COPY_UP,
    CALL_COPY_DOWN,
    CALL_CLEAR,
    CALL_LAUNCH,
    CALL_RECORD,
    CALL_WAIT_EVENT,
    CALL_FINISH_EVENT,
    CALL_FINISH_STREAM,
    CALLS
} gpu_call;

/* Kinds of faults: one call fails; all calls from there on fail, as on a lost device; or, for
 * CALL_LAUNCH, a kernel breaks the device when it runs. */
typedef enum gpu_fault { CALL_FAILS, DEVICE_IS_LOST, KERNEL_BREAKS } gpu_fault;

/* Resources that are opened and closed. */
typedef enum gpu_resource {
    GPU_MEMORY,
    GPU_PINNED,
    GPU_STREAM,
    GPU_EVENT,
    GPU_RESOURCES
} gpu_resource;

enum { FAULTY_RESOURCES_MAX = 256 };

typedef struct faulty_gpu {
    cogpu_gpu base;
    cogpu_gpu *behind;
    bool is_lost, is_closed;
    gpu_fault how;
    gpu_call kind;       /* of the failing call */
    long failing, fired; /* its number, 0 for none; how many calls failed */
    long made[CALLS];    /* calls of each kind since it was armed */
    struct {
        const void *at;
        uint64_t bytes;
        gpu_resource kind;
    } resources[FAULTY_RESOURCES_MAX];
    uint32_t resource_count;
    uint64_t bytes, most_bytes; /* of device memory, now and at most */
} faulty_gpu;

/* The n-th call of the kind from here on fails. */
void faulty_arm(faulty_gpu *self, gpu_fault how, gpu_call kind, long n);

void faulty_disarm(faulty_gpu *self);

/* Owns the device behind. */
void faulty_open(faulty_gpu *self, cogpu_gpu *behind);

#endif
