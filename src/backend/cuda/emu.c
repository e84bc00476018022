/*
 * The emulator: takes a kernel and a grid, runs its blocks one after the other and the threads of a
 * block as fibers.
 *
 * A fiber runs until it meets others or ends. Which one runs next is drawn among all that can; some
 * blocks instead run their threads in order, against it, or one warp as far as it gets, since races
 * between warps show best there. A meeting is over when all are there whom it needs: then each gets
 * its result and can run again. When none can run and not all have ended, somebody is missing.
 *
 * In a build with ThreadSanitizer each fiber is a thread to it, and those alone are in order that a
 * GPU puts in order: what is before a barrier, of the block, a group or a warp, and what is after
 * it. So it finds the races between threads of a block, those included that this order did not
 * show. (Ballots and the like, which move values and no memory, put nothing in order.)
 */
#include "backend/cuda/emu.h"

#include "base/memory.h"

#include <stdio.h>
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
/* What of a stack may stay poisoned when its fiber has ended: the frame that it began with. */
enum { LEFT_BYTES = 4096 };
#else
enum { STACK_BYTES = 128 << 10 };
#endif

enum { WARP_LANES = 32, THREADS_MAX = 1024, WARPS_MAX = THREADS_MAX / WARP_LANES, GROUPS = 16 };
enum { COPIES_MAX = 64, GUARD_BYTES = 4096 };
enum { RED_ZONE = 256, RED = 0xE7 };
/* Meetings of a block that are nothing but waiting, one after the other; and all of a block. */
enum { RELAXES_MAX = 200000, SWITCHES_MAX = 1000000000 };

/* Of these, so many in an order that is not by lot. */
enum { ORDERED_MAX = 50000 };

enum state { CAN_RUN, WAITS, ENDED };

struct copy {
    void *to;
    const void *from;
    size_t bytes;
};

/* A thread of the block. */
struct fiber {
    void *stack_pointer;
    enum state state;
    enum cogpu_emu_meeting meeting;
    const char *at;
    uint64_t value, other, result;
    uint32_t copy_count;
    void *fake_stack; /* ASan's */
    void *known_as;   /* by TSan */
};

/* Lanes that wait to meet the rest of their warp, all where the first of them does. */
struct warp {
    uint32_t waiting;
    const struct fiber *first;
};

struct group {
    uint32_t arrived, needed;
};

struct run {
    const cogpu_kernel *kernel;
    const void *args;
    uint8_t *shared_block, *shared; /* the latter lies in the former between two red zones */
    uint8_t *stacks;
    struct fiber *fibers;
    struct copy *copies; /* COPIES_MAX a thread */
    /* The threads that can run: a list to draw from, where in it each one stands, and the lanes of
     * each warp as bits to search in order. */
    uint16_t ready[THREADS_MAX], place[THREADS_MAX];
    uint32_t ready_lanes[WARPS_MAX];
    uint32_t ready_count, ended;
    struct warp warps[WARPS_MAX];
    uint32_t block_waiting;
    struct group groups[GROUPS];
    uint32_t current; /* the thread that runs */
    void *main_stack_pointer, *main_fake_stack, *main_known_as;
    const void *main_stack;
    size_t main_stack_bytes;
    uint64_t random;
    uint32_t switches, relaxes;
    enum { BY_LOT, IN_ORDER, BACKWARD, ONE_WARP_AHEAD } order;
    cogpu_emu_finding *finding;
};

_Thread_local cogpu_emu_place cogpu_emu_here;
static _Thread_local struct run *running;

/* ---- fibers -------------------------------------------------------------------------------- */

/* Saves the registers that a call preserves on the stack of one fiber, and takes those of the
 * other.
 */
void cogpu_emu_switch(void **save, void *take);

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
#error "the emulator knows how to change fibers on x86-64 and AArch64 only"
#endif

/* ---- races --------------------------------------------------------------------------------- */

/* What was done before release(order) is before what is done after acquire(order), by whom the
 * scheduler has become meanwhile. ThreadSanitizer sees the kernels, but not this file. Those whom
 * it knows it remembers for good, so they serve all launches of a thread. */
#ifdef COGPU_RACES
static void become(void *known_as) {
    __tsan_switch_to_fiber(known_as, __tsan_switch_to_fiber_no_sync);
}
static void *known(uint32_t thread) {
    static _Thread_local void *all[THREADS_MAX];
    if (!all[thread])
        all[thread] = __tsan_create_fiber(0);
    return all[thread];
}
#define release(order) __tsan_release(order)
#define acquire(order) __tsan_acquire(order)
#define myself()       __tsan_get_current_fiber()
#else
#define become(known_as) ((void)(known_as))
#define release(order)   ((void)(order))
#define acquire(order)   ((void)(order))
#define myself()         NULL
#define known(thread)    NULL
#endif

static void release_as(const struct run *run, uint32_t thread, void *order) {
    become(run->fibers[thread].known_as);
    release(order);
    become(run->main_known_as);
}

static void acquire_as(const struct run *run, uint32_t thread, void *order) {
    become(run->fibers[thread].known_as);
    acquire(order);
    become(run->main_known_as);
}

/* All of these threads are at a barrier. */
static void meet_in_order(const struct run *run, uint32_t first, uint32_t count, void *order) {
    for (uint32_t i = first; i < first + count; i++)
        release_as(run, i, order);
    for (uint32_t i = first; i < first + count; i++)
        acquire_as(run, i, order);
}

/* The block begins, or ends. */
static void begin_in_order(struct run *run) {
    release(run);
    for (uint32_t i = 0; i < run->kernel->threads; i++)
        acquire_as(run, i, run);
}

static void end_in_order(struct run *run) {
    for (uint32_t i = 0; i < run->kernel->threads; i++)
        release_as(run, i, run);
    acquire(run);
}

static void introduce_all(struct run *run) {
    run->main_known_as = myself();
    for (uint32_t i = 0; i < run->kernel->threads; i++)
        run->fibers[i].known_as = known(i);
}

/* ---- stacks -------------------------------------------------------------------------------- */

static uint8_t *stack_of(const struct run *run, uint32_t thread) {
    return run->stacks + (size_t)thread * (STACK_BYTES + GUARD_BYTES) + GUARD_BYTES;
}

void cogpu_emu_stacks_release(cogpu_emu_stacks *stacks) {
    if (stacks->memory)
        munmap(stacks->memory, (size_t)stacks->threads * (STACK_BYTES + GUARD_BYTES));
    *stacks = (cogpu_emu_stacks){0};
}

static bool has_stacks(cogpu_emu_stacks *stacks, uint32_t threads) {
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

/* From a fiber to the scheduler. `is_last`: this fiber never comes back. */
static void leave_fiber(struct run *run, bool is_last) {
    struct fiber *fiber = &run->fibers[run->current];
#ifdef HAS_ASAN
    __sanitizer_start_switch_fiber(is_last ? NULL : &fiber->fake_stack, run->main_stack,
                                   run->main_stack_bytes);
#else
    (void)is_last;
#endif
    become(run->main_known_as);
    cogpu_emu_switch(&fiber->stack_pointer, run->main_stack_pointer);
#ifdef HAS_ASAN
    __sanitizer_finish_switch_fiber(fiber->fake_stack, &run->main_stack, &run->main_stack_bytes);
#endif
}

/* Where a fiber begins. */
static void fiber_main(void) {
    struct run *run = running;
#ifdef HAS_ASAN
    __sanitizer_finish_switch_fiber(NULL, &run->main_stack, &run->main_stack_bytes);
#endif
    run->kernel->body(run->args, run->shared);
    run->fibers[run->current].state = ENDED;
    leave_fiber(run, true);
}

static void enter_fiber(struct run *run, uint32_t thread) {
    run->current = thread;
    cogpu_emu_here.thread = thread;
#ifdef HAS_ASAN
    __sanitizer_start_switch_fiber(&run->main_fake_stack, stack_of(run, thread), STACK_BYTES);
#endif
    become(run->fibers[thread].known_as);
    cogpu_emu_switch(&run->main_stack_pointer, run->fibers[thread].stack_pointer);
#ifdef HAS_ASAN
    __sanitizer_finish_switch_fiber(run->main_fake_stack, NULL, NULL);
#endif
}

/* A stack on which the first switch returns into fiber_main, aligned as after a call. */
static void prepare_fiber(struct run *run, uint32_t thread) {
    uint8_t *stack = stack_of(run, thread);
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
    struct fiber *fiber = &run->fibers[thread];
    *fiber = (struct fiber){.stack_pointer = top, .state = CAN_RUN, .known_as = fiber->known_as};
}

/* ---- findings ------------------------------------------------------------------------------ */

static void find(struct run *run, const char *at, const char *what) {
    if (!run->finding->text[0])
        snprintf(run->finding->text, sizeof run->finding->text, "%s, block %u, thread %u, %s: %s",
                 run->kernel->name, cogpu_emu_here.block, run->current, at, what);
}

void cogpu_emu_fail(const char *at, const char *what) {
    struct run *run = running;
    find(run, at, what);
    leave_fiber(run, true);
    __builtin_unreachable();
}

/* Who waits where, when nobody can go on. */
static void find_missing(struct run *run) {
    for (uint32_t i = 0; i < run->kernel->threads; i++) {
        const struct fiber *fiber = &run->fibers[i];
        if (fiber->state != WAITS)
            continue;
        run->current = i;
        find(run, fiber->at,
             run->ended ? "waits for threads that have left"
                        : "waits for threads that meet elsewhere");
        return;
    }
}

static void check_red_zones(struct run *run) {
    const uint8_t *before = run->shared - RED_ZONE,
                  *after = run->shared + run->kernel->shared_bytes;
    for (uint32_t i = 0; i < RED_ZONE; i++)
        if (before[i] != RED || after[i] != RED)
            find(run, "at its end",
                 before[i] != RED ? "wrote before the shared memory"
                                  : "wrote past the shared memory");
}

/* ---- meetings ------------------------------------------------------------------------------ */

static void put_ready(struct run *run, uint32_t thread) {
    run->place[thread] = (uint16_t)run->ready_count;
    run->ready[run->ready_count++] = (uint16_t)thread;
    run->ready_lanes[thread / WARP_LANES] |= UINT32_C(1) << thread % WARP_LANES;
}

static void take_ready(struct run *run, uint32_t thread) {
    uint16_t last = run->ready[--run->ready_count];
    run->ready[run->place[thread]] = last;
    run->place[last] = run->place[thread];
    run->ready_lanes[thread / WARP_LANES] &= ~(UINT32_C(1) << thread % WARP_LANES);
}

static void let_run(struct run *run, uint32_t thread, uint64_t result) {
    struct fiber *fiber = &run->fibers[thread];
    fiber->result = result;
    fiber->state = CAN_RUN;
    put_ready(run, thread);
}

static uint64_t reduce(const struct fiber *lanes, enum cogpu_emu_meeting meeting) {
    uint64_t all = meeting == EMU_MIN ? UINT64_MAX : 0;
    for (uint32_t i = 0; i < WARP_LANES; i++) {
        uint64_t value = lanes[i].value;
        all = meeting == EMU_BALLOT ? all | value << i
              : meeting == EMU_SUM  ? all + value
              : meeting == EMU_MAX  ? (all > value ? all : value)
                                    : (all < value ? all : value);
    }
    return all;
}

static uint64_t match(const struct fiber *lanes, uint64_t value) {
    uint64_t same = 0;
    for (uint32_t i = 0; i < WARP_LANES; i++)
        same |= (uint64_t)(lanes[i].value == value) << i;
    return same;
}

static uint64_t read_lane(const struct fiber *lanes, uint32_t lane) {
    const struct fiber *fiber = &lanes[lane];
    uint64_t other = fiber->other, from = lane;
    switch (fiber->meeting) {
    case EMU_READ:
        from = other % WARP_LANES;
        break;
    case EMU_READ_UP:
        from = other <= lane ? lane - other : lane;
        break;
    case EMU_READ_DOWN:
        from = lane + other < WARP_LANES ? lane + other : lane;
        break;
    default:
        from = (lane ^ other) < WARP_LANES ? lane ^ other : lane;
    }
    return lanes[from].value;
}

static void meet_warp(struct run *run, uint32_t warp) {
    struct fiber *lanes = &run->fibers[warp * WARP_LANES];
    enum cogpu_emu_meeting meeting = lanes[0].meeting;
    bool reduces =
        meeting == EMU_BALLOT || meeting == EMU_SUM || meeting == EMU_MAX || meeting == EMU_MIN;
    uint64_t all = reduces ? reduce(lanes, meeting) : 0;
    run->warps[warp].waiting = 0;
    if (meeting == EMU_SYNC_WARP)
        meet_in_order(run, warp * WARP_LANES, WARP_LANES, &run->warps[warp]);
    for (uint32_t i = 0; i < WARP_LANES; i++)
        let_run(run, warp * WARP_LANES + i,
                reduces                    ? all
                : meeting == EMU_MATCH     ? match(lanes, lanes[i].value)
                : meeting == EMU_SYNC_WARP ? 0
                                           : read_lane(lanes, i));
}

/* All lanes of a warp must meet at one place. */
static void arrive_warp(struct run *run, struct fiber *fiber) {
    struct warp *warp = &run->warps[run->current / WARP_LANES];
    if (warp->waiting == 0)
        warp->first = fiber;
    if (fiber->at != warp->first->at || fiber->meeting != warp->first->meeting)
        find(run, fiber->at, "threads of the warp meet elsewhere");
    else if (++warp->waiting == WARP_LANES)
        meet_warp(run, run->current / WARP_LANES);
}

static void arrive_block(struct run *run, struct fiber *fiber) {
    uint32_t threads = run->kernel->threads;
    uint64_t sum = 0;
    if (++run->block_waiting < threads)
        return;
    for (uint32_t i = 0; i < threads; i++) {
        if (run->fibers[i].at != fiber->at)
            find(run, fiber->at, "threads of the block meet elsewhere");
        sum += run->fibers[i].value;
    }
    run->block_waiting = 0;
    meet_in_order(run, 0, threads, &run->block_waiting);
    for (uint32_t i = 0; i < threads; i++)
        let_run(run, i, sum);
}

static void arrive_at_group(struct run *run, struct fiber *fiber) {
    uint32_t id = (uint32_t)fiber->value, needed = (uint32_t)fiber->other;
    if (id == 0 || id >= GROUPS || needed == 0 || needed % WARP_LANES != 0 ||
        needed > run->kernel->threads) {
        find(run, fiber->at, "no such group of threads: ids are 1 to 15, threads whole warps");
        return;
    }
    struct group *group = &run->groups[id];
    if (group->arrived > 0 && group->needed != needed)
        find(run, fiber->at, "the group waits for another number of threads");
    group->needed = needed;
    release_as(run, run->current, group);
    bool is_full = ++group->arrived == needed;
    if (fiber->meeting == EMU_ARRIVE_GROUP)
        let_run(run, run->current, 0);
    if (!is_full)
        return;
    group->arrived = 0;
    for (uint32_t i = 0; i < run->kernel->threads; i++) {
        const struct fiber *other = &run->fibers[i];
        if (other->state == WAITS && other->meeting == EMU_SYNC_GROUP && other->value == id) {
            acquire_as(run, i, group);
            let_run(run, i, 0);
        }
    }
}

/* What the fiber that has just stopped wants. */
static void arrive(struct run *run) {
    struct fiber *fiber = &run->fibers[run->current];
    if (fiber->state == ENDED) {
        run->ended++;
        return;
    }
    fiber->state = WAITS;
    switch (fiber->meeting) {
    case EMU_RELAX:
        let_run(run, run->current, 0);
        break;
    case EMU_SYNC_BLOCK:
    case EMU_BLOCK_OR:
    case EMU_BLOCK_COUNT:
        arrive_block(run, fiber);
        break;
    case EMU_SYNC_GROUP:
    case EMU_ARRIVE_GROUP:
        arrive_at_group(run, fiber);
        break;
    default:
        arrive_warp(run, fiber);
    }
}

uint64_t cogpu_emu_meet(enum cogpu_emu_meeting meeting, const char *at, uint64_t value,
                        uint64_t other) {
    struct run *run = running;
    struct fiber *fiber = &run->fibers[run->current];
    fiber->meeting = meeting;
    fiber->at = at;
    fiber->value = value;
    fiber->other = other;
    leave_fiber(run, false);
    return fiber->result;
}

static struct copy *copies_of(const struct run *run) {
    return run->copies + (size_t)run->current * COPIES_MAX;
}

void cogpu_emu_copy_later(void *to, const void *from, size_t bytes, const char *at) {
    struct fiber *fiber = &running->fibers[running->current];
    if (fiber->copy_count == COPIES_MAX)
        cogpu_emu_fail(at, "more copies to shared memory than the emulator keeps for a thread");
    copies_of(running)[fiber->copy_count++] = (struct copy){to, from, bytes};
}

void cogpu_emu_copies_wait(void) {
    struct fiber *fiber = &running->fibers[running->current];
    const struct copy *copies = copies_of(running);
    for (uint32_t i = 0; i < fiber->copy_count; i++)
        memcpy(copies[i].to, copies[i].from, copies[i].bytes);
    fiber->copy_count = 0;
}

/* ---- blocks -------------------------------------------------------------------------------- */

static uint64_t draw(struct run *run) {
    run->random ^= run->random << 13;
    run->random ^= run->random >> 7;
    run->random ^= run->random << 17;
    return run->random;
}

static uint32_t first_ready(const struct run *run) {
    uint32_t warp = 0;
    while (run->ready_lanes[warp] == 0)
        warp++;
    return warp * WARP_LANES + (uint32_t)__builtin_ctz(run->ready_lanes[warp]);
}

static uint32_t last_ready(const struct run *run) {
    uint32_t warp = run->kernel->threads / WARP_LANES - 1;
    while (run->ready_lanes[warp] == 0)
        warp--;
    return warp * WARP_LANES + 31 - (uint32_t)__builtin_clz(run->ready_lanes[warp]);
}

static uint32_t choose_next(struct run *run) {
    /* Scaled down, since to divide takes longer than all the rest here. */
    uint32_t drawn = run->ready[(draw(run) >> 32) * run->ready_count >> 32];
    uint32_t warp = run->current / WARP_LANES, lanes = run->ready_lanes[warp];
    /* Who waits for others, in whatever way, must not keep them from running for long. */
    switch (run->switches < ORDERED_MAX ? run->order : BY_LOT) {
    case IN_ORDER:
        return first_ready(run);
    case BACKWARD:
        return last_ready(run);
    case ONE_WARP_AHEAD:
        return lanes ? warp * WARP_LANES + (uint32_t)__builtin_ctz(lanes) : drawn;
    default:
        return drawn;
    }
}

static uint32_t take_next(struct run *run) {
    uint32_t thread = choose_next(run);
    take_ready(run, thread);
    return thread;
}

static void run_block(struct run *run, uint32_t block) {
    uint32_t threads = run->kernel->threads;
    cogpu_emu_here.block = block;
    memset(run->shared - RED_ZONE, RED, RED_ZONE);
    memset(run->shared, (int)(draw(run) & 0xFF), run->kernel->shared_bytes);
    memset(run->shared + run->kernel->shared_bytes, RED, RED_ZONE);
    memset(run->warps, 0, sizeof run->warps);
    memset(run->ready_lanes, 0, sizeof run->ready_lanes);
    memset(run->groups, 0, sizeof run->groups);
    run->block_waiting = run->ended = run->ready_count = run->switches = run->relaxes = 0;
    uint64_t lot = draw(run) % 16;
    run->order = lot == 0 ? IN_ORDER : lot == 1 ? BACKWARD : lot == 2 ? ONE_WARP_AHEAD : BY_LOT;
    for (uint32_t i = 0; i < threads; i++) {
        prepare_fiber(run, i);
        put_ready(run, i);
    }
    begin_in_order(run);
    while (run->ready_count > 0 && !run->finding->text[0]) {
        enter_fiber(run, take_next(run));
        bool relaxes = run->fibers[run->current].state != ENDED &&
                       run->fibers[run->current].meeting == EMU_RELAX;
        run->relaxes = relaxes ? run->relaxes + 1 : 0;
        if (++run->switches > SWITCHES_MAX || run->relaxes > RELAXES_MAX)
            find(run, "somewhere", "does not end");
        if (!run->finding->text[0])
            arrive(run);
    }
    end_in_order(run);
    if (run->ended < threads)
        find_missing(run);
    check_red_zones(run);
}

static bool open_run(struct run *run, cogpu_emu_stacks *stacks) {
    uint32_t threads = run->kernel->threads;
    run->fibers = cogpu_allocate(threads * sizeof *run->fibers);
    run->copies = cogpu_allocate((size_t)threads * COPIES_MAX * sizeof *run->copies);
    run->shared_block = cogpu_allocate(run->kernel->shared_bytes + 2 * RED_ZONE);
    if (!run->fibers || !run->copies || !run->shared_block || !has_stacks(stacks, threads))
        return false;
    run->stacks = stacks->memory;
    run->shared = run->shared_block + RED_ZONE;
    introduce_all(run);
    return true;
}

static void close_run(struct run *run) {
#ifdef HAS_ASAN
    /* Fibers that have not come to their end leave all kinds of frames. */
    const size_t left_bytes = run->finding->text[0] ? STACK_BYTES : LEFT_BYTES;
    for (uint32_t i = 0; run->stacks && i < run->kernel->threads; i++)
        ASAN_UNPOISON_MEMORY_REGION(stack_of(run, i) + STACK_BYTES - left_bytes, left_bytes);
#endif
    cogpu_release(run->shared_block);
    cogpu_release(run->copies);
    cogpu_release(run->fibers);
}

cogpu_emu_finding cogpu_emu_run(const cogpu_kernel *kernel, uint32_t blocks, const void *args,
                                uint64_t seed, cogpu_emu_stacks *stacks) {
    cogpu_emu_finding finding = {{0}};
    struct run run = {.kernel = kernel, .args = args, .finding = &finding};
    run.random = seed * 0x9E3779B97F4A7C15u + 0xD1B54A32D192ED03u;
    running = &run;
    cogpu_emu_here = (cogpu_emu_place){.threads = kernel->threads, .blocks = blocks};
    if (kernel->threads % WARP_LANES || kernel->threads > THREADS_MAX || !open_run(&run, stacks))
        snprintf(finding.text, sizeof finding.text, "%s: no memory for %u threads", kernel->name,
                 kernel->threads);
    for (uint32_t block = 0; block < blocks && !finding.text[0]; block++)
        run_block(&run, block);
    close_run(&run);
    return finding;
}
