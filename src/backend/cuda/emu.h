/*
 * The emulator: the threads of a block are fibers that run one at a time, in an order that a
 * seed decides, and change only where they meet. What goes wrong is found there and ends the launch
 * with a text: threads of a warp at different collectives, threads that left while others wait,
 * writes round the shared memory, wide loads that are not aligned, kernels that do not end.
 */
#ifndef COGPU_BACKEND_CUDA_EMU_H
#define COGPU_BACKEND_CUDA_EMU_H

#include "backend/cuda/kernel.h"

#include <stdbool.h>

/* ---- for whoever launches ------------------------------------------------------------------ */

typedef struct cogpu_emu_finding {
    char text[240]; /* empty: all went well */
} cogpu_emu_finding;

/* Stacks of fibers, for launches one after the other: to map them takes longer than many kernels.
 * All zero: none. */
typedef struct cogpu_emu_stacks {
    uint8_t *memory;
    uint32_t threads;
} cogpu_emu_stacks;
void cogpu_emu_stacks_release(cogpu_emu_stacks *stacks);

/* Runs all blocks of the grid, one after the other. `stacks` are made larger where they have to be.
 */
cogpu_emu_finding cogpu_emu_run(const cogpu_kernel *kernel, uint32_t blocks, const void *args,
                                uint64_t seed, cogpu_emu_stacks *stacks);

/* ---- for simt_emu.h, the kernels' side ------------------------------------------------------ */

typedef struct cogpu_emu_place {
    uint32_t thread, threads, block, blocks;
} cogpu_emu_place;

extern _Thread_local cogpu_emu_place cogpu_emu_here;

enum cogpu_emu_meeting {
    EMU_SYNC_BLOCK,
    EMU_BLOCK_OR,
    EMU_BLOCK_COUNT,
    EMU_SYNC_GROUP,
    EMU_ARRIVE_GROUP,
    EMU_RELAX,
    EMU_SYNC_WARP, /* from here on: of a warp */
    EMU_BALLOT,
    EMU_MATCH,
    EMU_READ,
    EMU_READ_UP,
    EMU_READ_DOWN,
    EMU_READ_XOR,
    EMU_SUM,
    EMU_MAX,
    EMU_MIN
};

/* `at` tells the place in the source; `value` is what the thread brings, `other` a lane, a distance
 * or, for groups, id and threads. */
uint64_t cogpu_emu_meet(enum cogpu_emu_meeting meeting, const char *at, uint64_t value,
                        uint64_t other);
/* Does not return. */
_Noreturn void cogpu_emu_fail(const char *at, const char *what);
void cogpu_emu_copy_later(void *to, const void *from, size_t bytes, const char *at);
void cogpu_emu_copies_wait(void);

#endif
