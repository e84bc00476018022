/*
 * All memory of the library. Nothing else in src/ calls malloc or free.
 *
 * An arena gathers the many small things of one owner (a file, a call) and frees them at once, so
 * that TRY may leave anywhere without a leak. It counts what it gives and refuses to pass its
 * limit.
 */
#ifndef COGPU_BASE_MEMORY_H
#define COGPU_BASE_MEMORY_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* Uninitialised, aligned to 64 bytes so that vector code may use it; NULL when there is none. */
void *cogpu_allocate(size_t bytes);
void cogpu_release(void *memory);

/* As cogpu_allocate, for much of which little may be used: what is not touched takes no memory. */
void *cogpu_reserve(size_t bytes);
/* Whole pages, which are the system's again once they are given back. What malloc gives stays with
 * the process where threads take much and release it in turn. NULL when there is none. */
void *cogpu_map(size_t bytes);
void cogpu_unmap(void *memory, size_t bytes); /* NULL is allowed */
/* The same memory, or a copy, of so many bytes, aligned for anything of C's; NULL when there is
 * none, and `memory`, which may be NULL, stays as it is. */
void *cogpu_resize(void *memory, size_t bytes);

typedef struct cogpu_arena {
    struct cogpu_arena_slab *slabs;
    uint64_t used;
    uint64_t limit;
} cogpu_arena;

/* An arena that gives at most `limit` bytes. It holds nothing until the first take. */
void cogpu_arena_open(cogpu_arena *arena, uint64_t limit);
void cogpu_arena_close(cogpu_arena *arena);

/* `count` zeroed elements of `size` bytes, for anything that C can align to 16. */
cogpu_status cogpu_arena_take(cogpu_arena *arena, uint64_t count, size_t size, void *memory,
                              cogpu_error *error);

/* A copy of `bytes` bytes of text with a NUL after them. */
cogpu_status cogpu_arena_text(cogpu_arena *arena, const char *text, size_t bytes, const char **copy,
                              cogpu_error *error);

#endif
