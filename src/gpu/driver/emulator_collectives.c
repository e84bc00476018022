/*
 * Collective operations of the emulator: barriers, shuffles, ballots and reductions. One completes
 * when all its threads have arrived; they get their results and can run again.
 */
#include "gpu/driver/emulator_internal.h"

static void resume_thread(struct emulated_launch *launch, uint32_t thread, uint64_t result) {
    struct fiber *fiber = &launch->fibers[thread];
    fiber->result = result;
    fiber->state = CAN_RUN;
    add_ready(launch, thread);
}

static uint64_t reduce(const struct fiber *lanes, enum cogpu_emu_collective collective) {
    uint64_t all = collective == EMU_MIN ? UINT64_MAX : 0;
    for (uint32_t i = 0; i < WARP_LANES; i++) {
        uint64_t value = lanes[i].value;
        all = collective == EMU_BALLOT ? all | value << i
              : collective == EMU_SUM  ? all + value
              : collective == EMU_MAX  ? (all > value ? all : value)
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
    switch (fiber->collective) {
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

static void complete_warp(struct emulated_launch *launch, uint32_t warp) {
    struct fiber *lanes = &launch->fibers[warp * WARP_LANES];
    enum cogpu_emu_collective collective = lanes[0].collective;
    bool reduces = collective == EMU_BALLOT || collective == EMU_SUM || collective == EMU_MAX ||
                   collective == EMU_MIN;
    uint64_t all = reduces ? reduce(lanes, collective) : 0;
    launch->warps[warp].waiting = 0;
    if (collective == EMU_SYNC_WARP)
        cogpu_emu_order_barrier(launch, warp * WARP_LANES, WARP_LANES, &launch->warps[warp]);
    for (uint32_t i = 0; i < WARP_LANES; i++)
        resume_thread(launch, warp * WARP_LANES + i,
                      reduces                       ? all
                      : collective == EMU_MATCH     ? match(lanes, lanes[i].value)
                      : collective == EMU_SYNC_WARP ? 0
                                                    : read_lane(lanes, i));
}

/* All lanes of a warp must be at the same line. */
static void arrive_warp(struct emulated_launch *launch, struct fiber *fiber) {
    struct warp_arrivals *warp = &launch->warps[launch->current / WARP_LANES];
    if (warp->waiting == 0)
        warp->first = fiber;
    if (fiber->at != warp->first->at || fiber->collective != warp->first->collective)
        cogpu_emu_report(launch, fiber->at, "threads of the warp are at another collective");
    else if (++warp->waiting == WARP_LANES)
        complete_warp(launch, launch->current / WARP_LANES);
}

static void arrive_block(struct emulated_launch *launch, struct fiber *fiber) {
    uint32_t threads = launch->kernel->threads;
    uint64_t sum = 0;
    if (++launch->block_waiting < threads)
        return;
    for (uint32_t i = 0; i < threads; i++) {
        if (launch->fibers[i].at != fiber->at)
            cogpu_emu_report(launch, fiber->at, "threads of the block are at another collective");
        sum += launch->fibers[i].value;
    }
    launch->block_waiting = 0;
    cogpu_emu_order_barrier(launch, 0, threads, &launch->block_waiting);
    for (uint32_t i = 0; i < threads; i++)
        resume_thread(launch, i, sum);
}

static void arrive_at_group(struct emulated_launch *launch, struct fiber *fiber) {
    uint32_t id = (uint32_t)fiber->value, needed = (uint32_t)fiber->other;
    if (id == 0 || id >= GROUPS || needed == 0 || needed % WARP_LANES != 0 ||
        needed > launch->kernel->threads) {
        cogpu_emu_report(launch, fiber->at,
                         "no such group of threads: ids are 1 to 15, threads whole warps");
        return;
    }
    struct thread_group *group = &launch->groups[id];
    if (group->arrived > 0 && group->needed != needed)
        cogpu_emu_report(launch, fiber->at, "the group waits for another number of threads");
    group->needed = needed;
    cogpu_emu_release_as(launch, launch->current, group);
    bool is_full = ++group->arrived == needed;
    if (fiber->collective == EMU_ARRIVE_GROUP)
        resume_thread(launch, launch->current, 0);
    if (!is_full)
        return;
    group->arrived = 0;
    for (uint32_t i = 0; i < launch->kernel->threads; i++) {
        const struct fiber *other = &launch->fibers[i];
        if (other->state == WAITS && other->collective == EMU_SYNC_GROUP && other->value == id) {
            cogpu_emu_acquire_as(launch, i, group);
            resume_thread(launch, i, 0);
        }
    }
}

void cogpu_emu_arrive(struct emulated_launch *launch) {
    struct fiber *fiber = &launch->fibers[launch->current];
    if (fiber->state == ENDED) {
        launch->ended++;
        return;
    }
    fiber->state = WAITS;
    switch (fiber->collective) {
    case EMU_RELAX:
        resume_thread(launch, launch->current, 0);
        break;
    case EMU_SYNC_BLOCK:
    case EMU_BLOCK_OR:
    case EMU_BLOCK_COUNT:
        arrive_block(launch, fiber);
        break;
    case EMU_SYNC_GROUP:
    case EMU_ARRIVE_GROUP:
        arrive_at_group(launch, fiber);
        break;
    default:
        arrive_warp(launch, fiber);
    }
}
