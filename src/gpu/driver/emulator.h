/*
 * The emulator of a GPU's threads. The threads of a block are fibers that run one at a time, in an
 * order that a seed decides, and switch only at collective operations. A kernel's errors end the
 * launch with a text: threads of a warp at different collectives, threads that ended while others
 * wait for them, writes around the shared memory, misaligned wide loads, endless loops.
 */
#ifndef COGPU_GPU_DRIVER_EMULATOR_H
#define COGPU_GPU_DRIVER_EMULATOR_H

#include "gpu/driver/kernel.h"

#include <stdbool.h>

/* The switch between fibers is assembly, and kernels assume little-endian words. */
#if defined(__x86_64__) || (defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
#define COGPU_EMU_WORKS true
#else
#define COGPU_EMU_WORKS false
#endif

/* ---- launches ------------------------------------------------------------------------------ */

typedef struct cogpu_emu_finding {
    char text[240]; /* empty: success */
} cogpu_emu_finding;

/* Stacks of fibers, kept from launch to launch: mapping them takes longer than many kernels. All
 * zero: none. Launches that share them must run one after the other. */
typedef struct cogpu_emu_stacks {
    uint8_t *memory;
    uint32_t threads;
} cogpu_emu_stacks;
void cogpu_emu_stacks_release(cogpu_emu_stacks *stacks);

/* Runs all thread blocks of the grid, one after the other. Grows `stacks` if they are too few. */
cogpu_emu_finding cogpu_emu_run(const cogpu_kernel *kernel, uint32_t blocks, const void *args,
                                uint64_t seed, cogpu_emu_stacks *stacks);

/* ---- kernels: for simt_emulated.h ---------------------------------------------------------- */

typedef struct cogpu_emu_position {
    uint32_t thread, threads, block, blocks;
} cogpu_emu_position;

extern _Thread_local cogpu_emu_position cogpu_emu_here;

enum cogpu_emu_collective {
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

/* Waits until all threads of the collective have arrived, and returns its result. `at` is the line
 * in the source, `value` the thread's operand, `other` a lane, a distance or the threads of a
 * group. */
uint64_t cogpu_emu_join(enum cogpu_emu_collective collective, const char *at, uint64_t value,
                        uint64_t other);
/* Does not return. */
_Noreturn void cogpu_emu_fail(const char *at, const char *what);
void cogpu_emu_copy_later(void *to, const void *from, size_t bytes, const char *at);
void cogpu_emu_copies_wait(void);

#endif
