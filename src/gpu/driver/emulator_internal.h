/*
 * Internals of the emulator: a launch and its fibers. emulator.c schedules the threads of a block,
 * emulator_fiber.c switches between them, emulator_collectives.c computes what they exchange.
 */
#ifndef COGPU_GPU_DRIVER_EMULATOR_INTERNAL_H
#define COGPU_GPU_DRIVER_EMULATOR_INTERNAL_H

#include "gpu/driver/emulator.h"

#include <stdint.h>

enum { WARP_LANES = 32, THREADS_MAX = 1024, WARPS_MAX = THREADS_MAX / WARP_LANES, GROUPS = 16 };

enum fiber_state { CAN_RUN, WAITS, ENDED };

struct shared_copy {
    void *to;
    const void *from;
    size_t bytes;
};

/* A thread of the block. */
struct fiber {
    void *stack_pointer;
    enum fiber_state state;
    enum cogpu_emu_collective collective;
    const char *at;
    uint64_t value, other, result;
    uint32_t copy_count;
    void *fake_stack; /* ASan's */
    void *identity;   /* TSan's */
};

/* Lanes that wait for the rest of their warp, all at the collective of the first of them. */
struct warp_arrivals {
    uint32_t waiting;
    const struct fiber *first;
};

struct thread_group {
    uint32_t arrived, needed;
};

struct emulated_launch {
    const cogpu_kernel *kernel;
    const void *args;
    uint8_t *shared_block, *shared; /* the latter is between two red zones of the former */
    uint8_t *stacks;
    struct fiber *fibers;
    struct shared_copy *copies; /* COPIES_MAX a thread */
    /* Threads that can run: a list to draw from, the index of each thread in it, and a bit a lane
     * of each warp to search in order. */
    uint16_t ready[THREADS_MAX], ready_index[THREADS_MAX];
    uint32_t ready_lanes[WARPS_MAX];
    uint32_t ready_count, ended;
    struct warp_arrivals warps[WARPS_MAX];
    uint32_t block_waiting;
    struct thread_group groups[GROUPS];
    uint32_t current; /* the thread that runs */
    void *main_stack_pointer, *main_fake_stack, *main_identity;
    const void *main_stack;
    size_t main_stack_bytes;
    uint64_t random;
    uint32_t switches, relaxes;
    enum { AT_RANDOM, IN_ORDER, BACKWARD, ONE_WARP_AHEAD } order;
    cogpu_emu_finding *finding;
};

/* ---- emulator.c ---------------------------------------------------------------------------- */

/* Ends the launch with a text, unless an error of it is known already. */
void cogpu_emu_report(struct emulated_launch *launch, const char *at, const char *what);

/* The thread can run. */
static inline void add_ready(struct emulated_launch *launch, uint32_t thread) {
    launch->ready_index[thread] = (uint16_t)launch->ready_count;
    launch->ready[launch->ready_count++] = (uint16_t)thread;
    launch->ready_lanes[thread / WARP_LANES] |= UINT32_C(1) << thread % WARP_LANES;
}

/* The thread runs. */
static inline void remove_ready(struct emulated_launch *launch, uint32_t thread) {
    uint16_t last = launch->ready[--launch->ready_count];
    launch->ready[launch->ready_index[thread]] = last;
    launch->ready_index[last] = launch->ready_index[thread];
    launch->ready_lanes[thread / WARP_LANES] &= ~(UINT32_C(1) << thread % WARP_LANES);
}

/* ---- emulator_collectives.c ---------------------------------------------------------------- */

/* Handles the collective of the fiber that has just stopped, or its end. */
void cogpu_emu_arrive(struct emulated_launch *launch);

/* ---- emulator_fiber.c ---------------------------------------------------------------------- */

/* The launch of this CPU thread. */
extern _Thread_local struct emulated_launch *cogpu_emu_launch;

/* Grows the stacks to so many fibers; false without memory. */
bool cogpu_emu_stacks_reserve(cogpu_emu_stacks *stacks, uint32_t threads);
/* Sets a fiber to the beginning of the kernel. */
void cogpu_emu_fiber_reset(struct emulated_launch *launch, uint32_t thread);
/* Runs a fiber until its next collective or its end. */
void cogpu_emu_fiber_resume(struct emulated_launch *launch, uint32_t thread);
/* From the current fiber to the scheduler. `is_last`: the fiber is not resumed. */
void cogpu_emu_fiber_suspend(struct emulated_launch *launch, bool is_last);
/* After a launch: the next one may use the stacks. */
void cogpu_emu_fibers_close(struct emulated_launch *launch);

/* ---- order of memory accesses, for ThreadSanitizer: nothing in other builds ---- */

/* Launches of the process take turns. */
void cogpu_emu_lock_fibers(void);
void cogpu_emu_unlock_fibers(void);
void cogpu_emu_name_fibers(struct emulated_launch *launch);
/* All threads are after what was before the block, or what follows is after all threads. */
void cogpu_emu_order_block_start(struct emulated_launch *launch);
void cogpu_emu_order_block_end(struct emulated_launch *launch);
/* What a thread did before its release is before what another does after its acquire of the same
 * object. */
void cogpu_emu_release_as(const struct emulated_launch *launch, uint32_t thread, void *order);
void cogpu_emu_acquire_as(const struct emulated_launch *launch, uint32_t thread, void *order);
/* All these threads are at a barrier. */
void cogpu_emu_order_barrier(const struct emulated_launch *launch, uint32_t first, uint32_t count,
                             void *order);

#endif
