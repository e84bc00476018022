/*
 * Fibers of the emulator: their stacks, the switch between them, and what sanitizers have to know
 * about both.
 */
#include "gpu/driver/emulator_internal.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif

#ifdef COGPU_RACES
#include <sanitizer/tsan_interface.h>
#endif

#ifdef HAS_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
enum { STACK_BYTES = 512 << 10 }; /* sanitized frames are large */
/* Bytes of a stack that may stay poisoned when its fiber has ended: its first frame. */
enum { LEFT_BYTES = 4096 };
#else
enum { STACK_BYTES = 128 << 10 };
#endif

enum { GUARD_BYTES = 4096 };

_Thread_local struct emulated_launch *cogpu_emu_launch;

/* ---- switch -------------------------------------------------------------------------------- */

/* Pushes the callee-saved registers on the stack of one fiber and pops those of the other. */
void cogpu_emu_switch(void **save, void *restore);

#if defined(__x86_64__)
__asm__(".text\n"
        ".globl cogpu_emu_switch\n"
        ".hidden cogpu_emu_switch\n"
        ".type cogpu_emu_switch, @function\n"
        "cogpu_emu_switch:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq "
        "%r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    ret\n"
        ".size cogpu_emu_switch, .-cogpu_emu_switch\n");
enum { SAVED_WORDS = 6 };
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl cogpu_emu_switch\n"
        ".hidden cogpu_emu_switch\n"
        ".type cogpu_emu_switch, %function\n"
        "cogpu_emu_switch:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp, #0]\n    stp x21, x22, [sp, #16]\n    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n    stp x27, x28, [sp, #64]\n    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n    stp d10, d11, [sp, #112]\n    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n    str x9, [x0]\n    mov sp, x1\n"
        "    ldp x19, x20, [sp, #0]\n    ldp x21, x22, [sp, #16]\n    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n    ldp x27, x28, [sp, #64]\n    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n    ldp d10, d11, [sp, #112]\n    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n");
#else
/* Never called: COGPU_EMU_WORKS is false. */
void cogpu_emu_switch(void **save, void *restore) {
    (void)save, (void)restore;
}
#endif

/* ---- order --------------------------------------------------------------------------------- */

/* What was done before release(order) is before what is done after acquire(order), by the fiber
 * that the scheduler has become meanwhile. ThreadSanitizer sees the kernels, but not this file. It
 * never forgets a fiber, so all launches of the process share the same ones, and run one at a time.
 */
#ifdef COGPU_RACES
static pthread_mutex_t fibers_lock = PTHREAD_MUTEX_INITIALIZER;

void cogpu_emu_lock_fibers(void) {
    pthread_mutex_lock(&fibers_lock);
}

void cogpu_emu_unlock_fibers(void) {
    pthread_mutex_unlock(&fibers_lock);
}

static void switch_identity(void *identity) {
    __tsan_switch_to_fiber(identity, __tsan_switch_to_fiber_no_sync);
}
static void *identity_of(uint32_t thread) {
    static void *all[THREADS_MAX];
    if (!all[thread])
        all[thread] = __tsan_create_fiber(0);
    return all[thread];
}
#define release(order)     __tsan_release(order)
#define acquire(order)     __tsan_acquire(order)
#define current_identity() __tsan_get_current_fiber()
#else
void cogpu_emu_lock_fibers(void) {
}
void cogpu_emu_unlock_fibers(void) {
}
#define switch_identity(identity) ((void)(identity))
#define release(order)            ((void)(order))
#define acquire(order)            ((void)(order))
#define current_identity()        NULL
#define identity_of(thread)       NULL
#endif

void cogpu_emu_release_as(const struct emulated_launch *launch, uint32_t thread, void *order) {
    switch_identity(launch->fibers[thread].identity);
    release(order);
    switch_identity(launch->main_identity);
}

void cogpu_emu_acquire_as(const struct emulated_launch *launch, uint32_t thread, void *order) {
    switch_identity(launch->fibers[thread].identity);
    acquire(order);
    switch_identity(launch->main_identity);
}

void cogpu_emu_order_barrier(const struct emulated_launch *launch, uint32_t first, uint32_t count,
                             void *order) {
    for (uint32_t i = first; i < first + count; i++)
        cogpu_emu_release_as(launch, i, order);
    for (uint32_t i = first; i < first + count; i++)
        cogpu_emu_acquire_as(launch, i, order);
}

void cogpu_emu_order_block_start(struct emulated_launch *launch) {
    release(launch);
    for (uint32_t i = 0; i < launch->kernel->threads; i++)
        cogpu_emu_acquire_as(launch, i, launch);
}

void cogpu_emu_order_block_end(struct emulated_launch *launch) {
    for (uint32_t i = 0; i < launch->kernel->threads; i++)
        cogpu_emu_release_as(launch, i, launch);
    acquire(launch);
}

void cogpu_emu_name_fibers(struct emulated_launch *launch) {
    launch->main_identity = current_identity();
    for (uint32_t i = 0; i < launch->kernel->threads; i++)
        launch->fibers[i].identity = identity_of(i);
}

/* ---- stacks -------------------------------------------------------------------------------- */

static uint8_t *stack_of(const struct emulated_launch *launch, uint32_t thread) {
    return launch->stacks + (size_t)thread * (STACK_BYTES + GUARD_BYTES) + GUARD_BYTES;
}

void cogpu_emu_stacks_release(cogpu_emu_stacks *stacks) {
    if (stacks->memory)
        munmap(stacks->memory, (size_t)stacks->threads * (STACK_BYTES + GUARD_BYTES));
    *stacks = (cogpu_emu_stacks){0};
}

bool cogpu_emu_stacks_reserve(cogpu_emu_stacks *stacks, uint32_t threads) {
    if (threads <= stacks->threads)
        return true;
    cogpu_emu_stacks_release(stacks);
    uint8_t *memory =
        mmap(NULL, (size_t)threads * (STACK_BYTES + GUARD_BYTES), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    *stacks = (cogpu_emu_stacks){memory, threads};
    for (uint32_t i = 0; i < threads; i++)
        (void)mprotect(memory + (size_t)i * (STACK_BYTES + GUARD_BYTES), GUARD_BYTES, PROT_NONE);
    return true;
}

void cogpu_emu_fiber_suspend(struct emulated_launch *launch, bool is_last) {
    struct fiber *fiber = &launch->fibers[launch->current];
#ifdef HAS_ASAN
    __sanitizer_start_switch_fiber(is_last ? NULL : &fiber->fake_stack, launch->main_stack,
                                   launch->main_stack_bytes);
#else
    (void)is_last;
#endif
    switch_identity(launch->main_identity);
    cogpu_emu_switch(&fiber->stack_pointer, launch->main_stack_pointer);
#ifdef HAS_ASAN
    __sanitizer_finish_switch_fiber(fiber->fake_stack, &launch->main_stack,
                                    &launch->main_stack_bytes);
#endif
}

/* Where a fiber begins. */
static void fiber_main(void) {
    struct emulated_launch *launch = cogpu_emu_launch;
#ifdef HAS_ASAN
    __sanitizer_finish_switch_fiber(NULL, &launch->main_stack, &launch->main_stack_bytes);
#endif
    launch->kernel->body(launch->args, launch->shared);
    launch->fibers[launch->current].state = ENDED;
    cogpu_emu_fiber_suspend(launch, true);
}

void cogpu_emu_fiber_resume(struct emulated_launch *launch, uint32_t thread) {
    launch->current = thread;
    cogpu_emu_here.thread = thread;
#ifdef HAS_ASAN
    __sanitizer_start_switch_fiber(&launch->main_fake_stack, stack_of(launch, thread), STACK_BYTES);
#endif
    switch_identity(launch->fibers[thread].identity);
    cogpu_emu_switch(&launch->main_stack_pointer, launch->fibers[thread].stack_pointer);
#ifdef HAS_ASAN
    __sanitizer_finish_switch_fiber(launch->main_fake_stack, NULL, NULL);
#endif
}

/* A stack on which the first switch returns into fiber_main, aligned as after a call. */
void cogpu_emu_fiber_reset(struct emulated_launch *launch, uint32_t thread) {
    uint8_t *stack = stack_of(launch, thread);
#ifdef HAS_ASAN
    ASAN_UNPOISON_MEMORY_REGION(stack + STACK_BYTES - LEFT_BYTES, LEFT_BYTES);
#endif
    uint64_t *top = (uint64_t *)(void *)(stack + STACK_BYTES);
#if defined(__x86_64__)
    *--top = 0; /* fiber_main's return address */
    *--top = (uint64_t)(uintptr_t)fiber_main;
    top -= SAVED_WORDS;
    memset(top, 0, SAVED_WORDS * sizeof *top);
#else
    top -= 20;
    memset(top, 0, 20 * sizeof *top);
    top[11] = (uint64_t)(uintptr_t)fiber_main;
#endif
    struct fiber *fiber = &launch->fibers[thread];
    *fiber = (struct fiber){.stack_pointer = top, .state = CAN_RUN, .identity = fiber->identity};
}

void cogpu_emu_fibers_close(struct emulated_launch *launch) {
#ifdef HAS_ASAN
    /* Fibers that did not end may have poisoned any part of their stacks. */
    const size_t left_bytes = launch->finding->text[0] ? STACK_BYTES : LEFT_BYTES;
    for (uint32_t i = 0; launch->stacks && i < launch->kernel->threads; i++)
        ASAN_UNPOISON_MEMORY_REGION(stack_of(launch, i) + STACK_BYTES - left_bytes, left_bytes);
#else
    (void)launch;
#endif
}
