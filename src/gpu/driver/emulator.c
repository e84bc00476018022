/*
 * Runs a kernel on the CPU: thread blocks one after the other, the threads of a block as fibers.
 *
 * A fiber runs until it reaches a collective operation (barrier, shuffle, ballot) or ends. The next
 * one is drawn at random among all that can run. Some blocks run their threads in order, in
 * reverse, or one warp as far as it gets, since races between warps show best there. A collective
 * completes when all its threads have arrived. If no fiber can run and not all have ended, a thread
 * is missing at a collective.
 *
 * With ThreadSanitizer each fiber is a thread, and only barriers (of the block, a group or a warp)
 * order memory accesses, as on a GPU. So it finds races between threads of a block even if this
 * order did not show them. Shuffles and ballots exchange values and order nothing.
 */
#include "gpu/driver/emulator_internal.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

enum { COPIES_MAX = 64 };
enum { RED_ZONE = 256, RED = 0xE7 };
/* Most collectives of a block: those in a row that only wait, and all. */
enum { RELAXES_MAX = 200000, SWITCHES_MAX = 1000000000 };

/* The first of these may run in an order that is not random. */
enum { ORDERED_MAX = 50000 };

_Thread_local cogpu_emu_position cogpu_emu_here;

/* ---- findings ------------------------------------------------------------------------------ */

void cogpu_emu_report(struct emulated_launch *launch, const char *at, const char *what) {
    if (!launch->finding->text[0])
        snprintf(launch->finding->text, sizeof launch->finding->text,
                 "%s, block %u, thread %u, %s: %s", launch->kernel->name, cogpu_emu_here.block,
                 launch->current, at, what);
}

void cogpu_emu_fail(const char *at, const char *what) {
    struct emulated_launch *launch = cogpu_emu_launch;
    cogpu_emu_report(launch, at, what);
    cogpu_emu_fiber_suspend(launch, true);
    __builtin_unreachable();
}

/* Reports the first thread that waits when none can launch. */
static void report_missing(struct emulated_launch *launch) {
    for (uint32_t i = 0; i < launch->kernel->threads; i++) {
        const struct fiber *fiber = &launch->fibers[i];
        if (fiber->state != WAITS)
            continue;
        launch->current = i;
        cogpu_emu_report(launch, fiber->at,
                         launch->ended ? "waits for threads that have ended"
                                       : "waits for threads at another collective");
        return;
    }
}

static void check_red_zones(struct emulated_launch *launch) {
    const uint8_t *before = launch->shared - RED_ZONE,
                  *after = launch->shared + launch->kernel->shared_bytes;
    for (uint32_t i = 0; i < RED_ZONE; i++)
        if (before[i] != RED || after[i] != RED)
            cogpu_emu_report(launch, "at its end",
                             before[i] != RED ? "wrote before the shared memory"
                                              : "wrote past the shared memory");
}

/* ---- operations of kernels ----------------------------------------------------------------- */

uint64_t cogpu_emu_join(enum cogpu_emu_collective collective, const char *at, uint64_t value,
                        uint64_t other) {
    struct emulated_launch *launch = cogpu_emu_launch;
    struct fiber *fiber = &launch->fibers[launch->current];
    fiber->collective = collective;
    fiber->at = at;
    fiber->value = value;
    fiber->other = other;
    cogpu_emu_fiber_suspend(launch, false);
    return fiber->result;
}

static struct shared_copy *copies_of(const struct emulated_launch *launch) {
    return launch->copies + (size_t)launch->current * COPIES_MAX;
}

void cogpu_emu_copy_later(void *to, const void *from, size_t bytes, const char *at) {
    struct fiber *fiber = &cogpu_emu_launch->fibers[cogpu_emu_launch->current];
    if (fiber->copy_count == COPIES_MAX)
        cogpu_emu_fail(at, "more copies to shared memory than the emulator keeps for a thread");
    copies_of(cogpu_emu_launch)[fiber->copy_count++] = (struct shared_copy){to, from, bytes};
}

void cogpu_emu_copies_wait(void) {
    struct fiber *fiber = &cogpu_emu_launch->fibers[cogpu_emu_launch->current];
    const struct shared_copy *copies = copies_of(cogpu_emu_launch);
    for (uint32_t i = 0; i < fiber->copy_count; i++)
        memcpy(copies[i].to, copies[i].from, copies[i].bytes);
    fiber->copy_count = 0;
}

/* ---- blocks -------------------------------------------------------------------------------- */

static uint64_t draw(struct emulated_launch *launch) {
    launch->random ^= launch->random << 13;
    launch->random ^= launch->random >> 7;
    launch->random ^= launch->random << 17;
    return launch->random;
}

static uint32_t first_ready(const struct emulated_launch *launch) {
    uint32_t warp = 0;
    while (launch->ready_lanes[warp] == 0)
        warp++;
    return warp * WARP_LANES + (uint32_t)__builtin_ctz(launch->ready_lanes[warp]);
}

static uint32_t last_ready(const struct emulated_launch *launch) {
    uint32_t warp = launch->kernel->threads / WARP_LANES - 1;
    while (launch->ready_lanes[warp] == 0)
        warp--;
    return warp * WARP_LANES + 31 - (uint32_t)__builtin_clz(launch->ready_lanes[warp]);
}

static uint32_t choose_next(struct emulated_launch *launch) {
    /* A multiplication in place of a division, which would take longer than all the rest here. */
    uint32_t drawn = launch->ready[(draw(launch) >> 32) * launch->ready_count >> 32];
    uint32_t warp = launch->current / WARP_LANES, lanes = launch->ready_lanes[warp];
    /* A thread that polls must not keep others from cogpu_emu_launch for long. */
    switch (launch->switches < ORDERED_MAX ? launch->order : AT_RANDOM) {
    case IN_ORDER:
        return first_ready(launch);
    case BACKWARD:
        return last_ready(launch);
    case ONE_WARP_AHEAD:
        return lanes ? warp * WARP_LANES + (uint32_t)__builtin_ctz(lanes) : drawn;
    default:
        return drawn;
    }
}

static uint32_t pick_next(struct emulated_launch *launch) {
    uint32_t thread = choose_next(launch);
    remove_ready(launch, thread);
    return thread;
}

static void run_block(struct emulated_launch *launch, uint32_t block) {
    uint32_t threads = launch->kernel->threads;
    cogpu_emu_here.block = block;
    memset(launch->shared - RED_ZONE, RED, RED_ZONE);
    memset(launch->shared, (int)(draw(launch) & 0xFF), launch->kernel->shared_bytes);
    memset(launch->shared + launch->kernel->shared_bytes, RED, RED_ZONE);
    memset(launch->warps, 0, sizeof launch->warps);
    memset(launch->ready_lanes, 0, sizeof launch->ready_lanes);
    memset(launch->groups, 0, sizeof launch->groups);
    launch->block_waiting = launch->ended = launch->ready_count = launch->switches =
        launch->relaxes = 0;
    uint64_t drawn = draw(launch) % 16;
    launch->order = drawn == 0   ? IN_ORDER
                    : drawn == 1 ? BACKWARD
                    : drawn == 2 ? ONE_WARP_AHEAD
                                 : AT_RANDOM;
    for (uint32_t i = 0; i < threads; i++) {
        cogpu_emu_fiber_reset(launch, i);
        add_ready(launch, i);
    }
    cogpu_emu_order_block_start(launch);
    while (launch->ready_count > 0 && !launch->finding->text[0]) {
        cogpu_emu_fiber_resume(launch, pick_next(launch));
        bool relaxes = launch->fibers[launch->current].state != ENDED &&
                       launch->fibers[launch->current].collective == EMU_RELAX;
        launch->relaxes = relaxes ? launch->relaxes + 1 : 0;
        if (++launch->switches > SWITCHES_MAX || launch->relaxes > RELAXES_MAX)
            cogpu_emu_report(launch, "somewhere", "does not end");
        if (!launch->finding->text[0])
            cogpu_emu_arrive(launch);
    }
    cogpu_emu_order_block_end(launch);
    if (launch->ended < threads)
        report_missing(launch);
    check_red_zones(launch);
}

static bool open_launch(struct emulated_launch *launch, cogpu_emu_stacks *stacks) {
    uint32_t threads = launch->kernel->threads;
    launch->fibers = cogpu_allocate(threads * sizeof *launch->fibers);
    launch->copies = cogpu_allocate((size_t)threads * COPIES_MAX * sizeof *launch->copies);
    launch->shared_block = cogpu_allocate(launch->kernel->shared_bytes + 2 * RED_ZONE);
    if (!launch->fibers || !launch->copies || !launch->shared_block ||
        !cogpu_emu_stacks_reserve(stacks, threads))
        return false;
    launch->stacks = stacks->memory;
    launch->shared = launch->shared_block + RED_ZONE;
    cogpu_emu_name_fibers(launch);
    return true;
}

static void close_launch(struct emulated_launch *launch) {
    cogpu_emu_fibers_close(launch);
    cogpu_release(launch->shared_block);
    cogpu_release(launch->copies);
    cogpu_release(launch->fibers);
}

cogpu_emu_finding cogpu_emu_run(const cogpu_kernel *kernel, uint32_t blocks, const void *args,
                                uint64_t seed, cogpu_emu_stacks *stacks) {
    cogpu_emu_finding finding = {{0}};
    struct emulated_launch launch = {.kernel = kernel, .args = args, .finding = &finding};
    launch.random = seed * 0x9E3779B97F4A7C15u + 0xD1B54A32D192ED03u;
    cogpu_emu_lock_fibers();
    cogpu_emu_launch = &launch;
    cogpu_emu_here = (cogpu_emu_position){.threads = kernel->threads, .blocks = blocks};
    if (kernel->threads % WARP_LANES || kernel->threads > THREADS_MAX ||
        !open_launch(&launch, stacks))
        snprintf(finding.text, sizeof finding.text, "%s: no memory for %u threads", kernel->name,
                 kernel->threads);
    for (uint32_t block = 0; block < blocks && !finding.text[0]; block++)
        run_block(&launch, block);
    close_launch(&launch);
    cogpu_emu_unlock_fibers();
    return finding;
}
