/* See memory.h. An arena is a list of slabs. */
#include "base/memory.h"

#include "base/checked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGNMENT = 64, SLAB_BYTES = 4096, TAKE_ALIGNMENT = 16, LARGE_PAGE = 2 << 20 };

struct cogpu_arena_slab {
    struct cogpu_arena_slab *next;
    size_t used, bytes;
    _Alignas(TAKE_ALIGNMENT) uint8_t memory[];
};

void *cogpu_allocate(size_t bytes) {
    void *memory = NULL;
    if (bytes > SIZE_MAX - ALIGNMENT)
        return NULL;
    return posix_memalign(&memory, ALIGNMENT, bytes ? bytes : 1) == 0 ? memory : NULL;
}

void cogpu_release(void *memory) {
    free(memory);
}

/* The system maps memory page by page on first touch, which takes longer than filling it: so large
 * pages are requested for what is aligned to them. */
static void request_large_pages(uint8_t *memory, size_t bytes) {
#ifdef MADV_HUGEPAGE
    const uintptr_t at = (uintptr_t)memory, page = LARGE_PAGE;
    const uintptr_t first = (at + page - 1) / page, end = (at + bytes) / page;
    if (first < end)
        (void)madvise(memory + (first * page - at), (end - first) * page, MADV_HUGEPAGE);
#else
    (void)memory, (void)bytes;
#endif
}

void *cogpu_reserve(size_t bytes) {
    void *memory = cogpu_allocate(bytes);
    if (memory)
        request_large_pages(memory, bytes);
    return memory;
}

void *cogpu_map(size_t bytes) {
    void *memory =
        mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void cogpu_unmap(void *memory, size_t bytes) {
    if (memory)
        (void)munmap(memory, bytes ? bytes : 1);
}

void *cogpu_resize(void *memory, size_t bytes) {
    return realloc(memory, bytes ? bytes : 1);
}

/* Control groups, version 2 and 1, as a container sees them. */
static uint64_t read_container_limit(void) {
    static const char *const paths[] = {"/sys/fs/cgroup/memory.max",
                                        "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    uint64_t limit = UINT64_MAX;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        unsigned long long found;
        FILE *file = fopen(paths[i], "re");
        if (file && fscanf(file, "%llu", &found) == 1 && found < limit) /* or "max" */
            limit = found;
        if (file)
            fclose(file);
    }
    return limit;
}

uint64_t cogpu_memory_limit(void) {
    const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    const uint64_t machine =
        pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : UINT64_MAX;
    const uint64_t container = read_container_limit();
    return container < machine ? container : machine;
}

void cogpu_arena_open(cogpu_arena *arena, uint64_t limit) {
    *arena = (cogpu_arena){.limit = limit};
}

void cogpu_arena_close(cogpu_arena *arena) {
    struct cogpu_arena_slab *slab = arena->slabs;
    while (slab) {
        struct cogpu_arena_slab *next = slab->next;
        free(slab);
        slab = next;
    }
    arena->slabs = NULL;
    arena->used = 0;
}

static struct cogpu_arena_slab *slab_with(cogpu_arena *arena, size_t bytes) {
    struct cogpu_arena_slab *slab = arena->slabs;
    if (slab && slab->bytes - slab->used >= bytes)
        return slab;
    size_t capacity = bytes > SLAB_BYTES ? bytes : SLAB_BYTES;
    slab = capacity <= SIZE_MAX - sizeof *slab ? malloc(sizeof *slab + capacity) : NULL;
    if (!slab)
        return NULL;
    request_large_pages(slab->memory, capacity);
    *slab = (struct cogpu_arena_slab){.next = arena->slabs, .bytes = capacity};
    arena->slabs = slab;
    return slab;
}

cogpu_status cogpu_arena_allocate(cogpu_arena *arena, uint64_t count, size_t size, void *memory,
                                  cogpu_error *error) {
    uint64_t bytes, total;
    if (!checked_mul(count, size, &bytes) || !checked_add(bytes, TAKE_ALIGNMENT - 1, &bytes) ||
        !checked_add(arena->used, bytes, &total) || total > arena->limit)
        return cogpu_fail(error, COGPU_LIMIT_EXCEEDED,
                          "%llu elements of %zu bytes exceed the limit of %llu bytes a call; "
                          "raise working_memory_bytes",
                          (unsigned long long)count, size, (unsigned long long)arena->limit);
    bytes &= ~(uint64_t)(TAKE_ALIGNMENT - 1);
    struct cogpu_arena_slab *slab = slab_with(arena, (size_t)bytes);
    if (!slab)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory: %llu bytes",
                          (unsigned long long)bytes);
    void *taken = slab->memory + slab->used;
    memset(taken, 0, (size_t)bytes);
    slab->used += (size_t)bytes;
    arena->used = total;
    memcpy(memory, &taken, sizeof taken);
    return COGPU_OK;
}

cogpu_status cogpu_arena_text(cogpu_arena *arena, const char *text, size_t bytes, const char **copy,
                              cogpu_error *error) {
    char *text_copy = NULL;
    TRY(cogpu_arena_allocate(arena, (uint64_t)bytes + 1, 1, &text_copy, error));
    memcpy(text_copy, text, bytes);
    *copy = text_copy;
    return COGPU_OK;
}
