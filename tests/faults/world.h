/*
 * The world as it is seen from the library, where memory and reads can fail on demand: the n-th
 * call of a kind, or all from there on.
 *
 * The linker puts the functions below in the place of the C library's, for the calls that the
 * objects of the program make. One file of a program includes this.
 */
#ifndef COGPU_TESTS_WORLD_H
#define COGPU_TESTS_WORLD_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

enum fault { NO_FAULT, ALLOCATION, READ_FAILS, READ_IS_SHORT };

static enum fault fault;
static atomic_long calls_made, failing_call; /* of the kind that fails; the latter 0 = none does */
static atomic_long fired, live;
static bool fails_for_good;        /* all calls from the failing one on */
static _Thread_local bool is_safe; /* nothing fails that this thread does now */

static bool fails(enum fault kind) {
    if (fault != kind || is_safe)
        return false;
    long call = atomic_fetch_add(&calls_made, 1) + 1, failing = atomic_load(&failing_call);
    bool now = failing && (fails_for_good ? call >= failing : call == failing);
    if (now)
        atomic_fetch_add(&fired, 1);
    return now;
}

static void *counted(void *memory) {
    if (memory)
        atomic_fetch_add(&live, 1);
    return memory;
}

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

void *__wrap_malloc(size_t bytes) {
    return fails(ALLOCATION) ? NULL : counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes) {
    return fails(ALLOCATION) ? NULL : counted(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *memory, size_t bytes) {
    void *grown = fails(ALLOCATION) ? NULL : __real_realloc(memory, bytes);
    return memory ? grown : counted(grown);
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes) {
    int result = fails(ALLOCATION) ? ENOMEM : __real_posix_memalign(memory, alignment, bytes);
    if (result == 0)
        atomic_fetch_add(&live, 1);
    return result;
}

void __wrap_free(void *memory) {
    if (memory)
        atomic_fetch_sub(&live, 1);
    __real_free(memory);
}

ssize_t __wrap_pread64(int file, void *to, size_t bytes, int64_t offset) {
    if (fails(READ_FAILS)) {
        errno = EIO;
        return -1;
    }
    return fails(READ_IS_SHORT) ? 0 : __real_pread64(file, to, bytes, offset);
}

ssize_t __wrap_pread(int file, void *to, size_t bytes, int64_t offset) {
    return __wrap_pread64(file, to, bytes, offset);
}

static void arm(enum fault kind, long call) {
    fault = kind;
    atomic_store(&calls_made, 0);
    atomic_store(&fired, 0);
    atomic_store(&failing_call, call);
}

#endif
