/* Arrays of an arena that grow while a text is read. */
#ifndef COGPU_BASE_GROWING_H
#define COGPU_BASE_GROWING_H

#include "base/memory.h"

typedef struct cogpu_growing {
    void *entries;
    uint32_t count, capacity;
} cogpu_growing;

/* Adds a zeroed entry of `size` bytes; *entry, a pointer to it, is NULL beyond `most` entries. */
cogpu_status cogpu_growing_add(cogpu_growing *list, size_t size, uint32_t most, cogpu_arena *arena,
                               void *entry, cogpu_error *error);

#endif
