/* See growing.h. */
#include "base/growing.h"

#include <string.h>

enum { FIRST_CAPACITY = 16 };

static uint32_t next_capacity(uint32_t capacity, uint32_t most) {
    uint64_t doubled = capacity ? 2 * (uint64_t)capacity : FIRST_CAPACITY;
    return doubled < most ? (uint32_t)doubled : most;
}

cogpu_status cogpu_growing_add(cogpu_growing *list, size_t size, uint32_t most, cogpu_arena *arena,
                               void *entry, cogpu_error *error) {
    void *found = NULL;
    if (list->count == list->capacity && list->capacity < most) {
        uint32_t capacity = next_capacity(list->capacity, most);
        void *larger = NULL;
        TRY(cogpu_arena_allocate(arena, capacity, size, &larger, error));
        if (list->count)
            memcpy(larger, list->entries, list->count * size);
        list->entries = larger;
        list->capacity = capacity;
    }
    if (list->count < list->capacity)
        found = (char *)list->entries + list->count++ * size;
    memcpy(entry, &found, sizeof found);
    return COGPU_OK;
}
