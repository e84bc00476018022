/*
 * Structs that cross the API. Each begins with struct_size, the size that the caller's header gives
 * it. Engines see structs of this version only:
 *
 *     caller's struct      this version's
 *     shorter (older)      copied; fields that it lacks are 0, their default
 *     longer (newer)       copied; fields that this version lacks must be 0
 *     results              computed in this version's struct, then copied up to the caller's size
 */
#ifndef COGPU_API_SIZED_H
#define COGPU_API_SIZED_H

#include "base/memory.h"

/* Copies a caller's struct. NULL: all defaults. After COGPU_UNSUPPORTED the known fields are copied
 * all the same: a source is closed then, a sink aborted. */
#define TAKE_STRUCT(to, from, type, error) cogpu_struct_take(to, sizeof(type), from, #type, error)
cogpu_status cogpu_struct_take(void *to, size_t bytes, const void *from, const char *type,
                               cogpu_error *error);

/* Replaces the pointer `array` by a copy in the arena, unless its elements have this version's
 * size. */
#define TAKE_STRUCTS(arena, array, count, type, error)                                             \
    cogpu_struct_take_array(arena, &(array), count, sizeof(type), #type, error)
cogpu_status cogpu_struct_take_array(cogpu_arena *arena, void *array, size_t count, size_t bytes,
                                     const char *type, cogpu_error *error);

/* Checks a struct that a function will fill. NULL is allowed. */
#define CHECK_STRUCT(to, type, error) cogpu_struct_check(to, #type, error)
cogpu_status cogpu_struct_check(const void *to, const char *type, cogpu_error *error);

/* ... one that needs both of its fields. */
cogpu_status cogpu_memory_check(const cogpu_memory *memory, cogpu_error *error);

/* Checks the sizes of an array's elements. */
#define CHECK_STRUCTS(array, count, type, error)                                                   \
    cogpu_struct_check_array(array, count, #type, error)
cogpu_status cogpu_struct_check_array(const void *array, size_t count, const char *type,
                                      cogpu_error *error);

/* Fills a checked struct, up to its size. NULL is allowed. */
#define GIVE_STRUCT(to, from) cogpu_struct_give(to, from, sizeof *(from))
void cogpu_struct_give(void *to, const void *from, size_t bytes);

/* Element `index` of a caller's array. */
void *cogpu_struct_element(void *array, size_t index);

#endif
