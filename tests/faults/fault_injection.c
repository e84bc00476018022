#include "faults/fault_injection.h"

#include <errno.h>
#include <sys/types.h>

enum fault armed_fault;
atomic_long failing_call, faults_fired, live_allocations;
bool fails_for_good;
_Thread_local bool faults_are_off;
static atomic_long calls_made; /* of the armed kind */

bool call_fails(enum fault kind) {
    if (armed_fault != kind || faults_are_off)
        return false;
    long call = atomic_fetch_add(&calls_made, 1) + 1, failing = atomic_load(&failing_call);
    bool now = failing && (fails_for_good ? call >= failing : call == failing);
    if (now)
        atomic_fetch_add(&faults_fired, 1);
    return now;
}

void arm_fault(enum fault kind, long call) {
    armed_fault = kind;
    atomic_store(&calls_made, 0);
    atomic_store(&faults_fired, 0);
    atomic_store(&failing_call, call);
}

void reset_faults(void) {
    arm_fault(NO_FAULT, 0);
    fails_for_good = faults_are_off = false;
    atomic_store(&live_allocations, 0);
}

/* ---- what the linker puts in the place of the C library's functions ---- */

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
int __real_posix_memalign(void **memory, size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes);
void __real_free(void *memory);
void __wrap_free(void *memory);
ssize_t __real_pread64(int file, void *to, size_t bytes, int64_t offset);
ssize_t __wrap_pread64(int file, void *to, size_t bytes, int64_t offset);
ssize_t __wrap_pread(int file, void *to, size_t bytes, int64_t offset);

static void *counted(void *memory) {
    if (memory)
        atomic_fetch_add(&live_allocations, 1);
    return memory;
}

void *__wrap_malloc(size_t bytes) {
    return call_fails(ALLOCATION) ? NULL : counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes) {
    return call_fails(ALLOCATION) ? NULL : counted(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *memory, size_t bytes) {
    void *grown = call_fails(ALLOCATION) ? NULL : __real_realloc(memory, bytes);
    return memory ? grown : counted(grown);
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes) {
    int result = call_fails(ALLOCATION) ? ENOMEM : __real_posix_memalign(memory, alignment, bytes);
    if (result == 0)
        atomic_fetch_add(&live_allocations, 1);
    return result;
}

void __wrap_free(void *memory) {
    if (memory)
        atomic_fetch_sub(&live_allocations, 1);
    __real_free(memory);
}

ssize_t __wrap_pread64(int file, void *to, size_t bytes, int64_t offset) {
    if (call_fails(READ_FAILS)) {
        errno = EIO;
        return -1;
    }
    return call_fails(READ_IS_SHORT) ? 0 : __real_pread64(file, to, bytes, offset);
}

ssize_t __wrap_pread(int file, void *to, size_t bytes, int64_t offset) {
    return __wrap_pread64(file, to, bytes, offset);
}
