/*
 * Memory of the library. Nothing else in src/ calls malloc or free.
 *
 * An arena holds the many small allocations of one owner (a file, a call) and frees them at once,
 * so that TRY may return anywhere without a leak. It has a limit of bytes.
 */
#ifndef COGPU_BASE_MEMORY_H
#define COGPU_BASE_MEMORY_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* Uninitialised, aligned to 64 bytes for SIMD code; NULL if memory runs out. */
void *cogpu_allocate(size_t bytes);
void cogpu_release(void *memory);

/* As cogpu_allocate, for large buffers that may stay partly unused: pages that are not touched take
 * no memory. */
void *cogpu_reserve(size_t bytes);
/* Whole pages, which return to the system when they are unmapped. Memory of malloc stays with the
 * process if many threads allocate and free large buffers. NULL if memory runs out. */
void *cogpu_map(size_t bytes);
void cogpu_unmap(void *memory, size_t bytes); /* NULL is allowed */
/* realloc: the same memory, or a copy, of so many bytes, with malloc's alignment. `memory` may be
 * NULL. NULL if memory runs out: `memory` stays valid. */
void *cogpu_resize(void *memory, size_t bytes);

/* Memory that this process may use: that of the machine, or of its container if that has less. */
uint64_t cogpu_memory_limit(void);

typedef struct cogpu_arena {
    struct cogpu_arena_slab *slabs;
    uint64_t used;
    uint64_t limit;
} cogpu_arena;

/* An arena of at most `limit` bytes. It allocates nothing until the first take. */
void cogpu_arena_open(cogpu_arena *arena, uint64_t limit);
void cogpu_arena_close(cogpu_arena *arena);

/* `count` zeroed elements of `size` bytes, aligned to 16. LIMIT if that exceeds the limit of the
 * arena.
 */
cogpu_status cogpu_arena_allocate(cogpu_arena *arena, uint64_t count, size_t size, void *memory,
                                  cogpu_error *error);

/* A copy of `bytes` bytes of text, with a NUL. */
cogpu_status cogpu_arena_text(cogpu_arena *arena, const char *text, size_t bytes, const char **copy,
                              cogpu_error *error);

#endif
