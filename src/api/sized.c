/* Structs that carry their size. See sized.h. */
#include "api/sized.h"

#include "base/math.h"

#include <stdbool.h>
#include <string.h>

/* No struct of any version is larger: more is memory that was not initialised. */
enum { STRUCT_BYTES_MAX = 1 << 16 };

static size_t size_of(const void *from) {
    size_t size = 0;
    memcpy(&size, from, sizeof size);
    return size;
}

/* cogpu_sink is initialised with COGPU_SINK_INIT. */
static cogpu_status fail_size(size_t size, const char *type, cogpu_error *error) {
    char macro[64];
    size_t length = min_size(strlen(type), sizeof macro - 1);
    for (size_t i = 0; i < length; i++)
        macro[i] = type[i] >= 'a' && type[i] <= 'z' ? (char)(type[i] - 'a' + 'A') : type[i];
    macro[length] = '\0';
    return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                      "%s.struct_size is %zu; initialise the struct with %s_INIT", type, size,
                      macro);
}

cogpu_status cogpu_struct_check(const void *to, const char *type, cogpu_error *error) {
    if (!to || (size_of(to) >= sizeof(size_t) && size_of(to) <= STRUCT_BYTES_MAX))
        return COGPU_OK;
    return fail_size(size_of(to), type, error);
}

cogpu_status cogpu_memory_check(const cogpu_memory *memory, cogpu_error *error) {
    TRY(CHECK_STRUCT(memory, cogpu_memory, error));
    if (memory && size_of(memory) < offsetof(cogpu_memory, bytes) + sizeof memory->bytes)
        return fail_size(size_of(memory), "cogpu_memory", error);
    return COGPU_OK;
}

static bool is_zero(const uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (bytes[i])
            return false;
    return true;
}

cogpu_status cogpu_struct_take(void *to, size_t bytes, const void *from, const char *type,
                               cogpu_error *error) {
    memset(to, 0, bytes);
    memcpy(to, &bytes, sizeof bytes);
    if (!from)
        return COGPU_OK;
    TRY(cogpu_struct_check(from, type, error));
    const size_t size = size_of(from), skipped = sizeof size;
    memcpy((uint8_t *)to + skipped, (const uint8_t *)from + skipped,
           min_size(size, bytes) - skipped);
    if (size > bytes && !is_zero((const uint8_t *)from + bytes, size - bytes))
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "%s has fields that this library lacks (%zu bytes, the library's has "
                          "%zu); use a newer library",
                          type, size, bytes);
    return COGPU_OK;
}

void cogpu_struct_give(void *to, const void *from, size_t bytes) {
    const size_t skipped = sizeof(size_t);
    if (to)
        memcpy((uint8_t *)to + skipped, (const uint8_t *)from + skipped,
               min_size(size_of(to), bytes) - skipped);
}

void *cogpu_struct_element(void *array, size_t index) {
    return (uint8_t *)array + index * size_of(array);
}

cogpu_status cogpu_struct_check_array(const void *array, size_t count, const char *type,
                                      cogpu_error *error) {
    TRY(cogpu_struct_check(array, type, error));
    const size_t size = size_of(array);
    for (size_t i = 0; i < count; i++)
        if (size_of((const uint8_t *)array + i * size) != size)
            return cogpu_fail(
                error, COGPU_INVALID_ARGUMENT,
                "element %zu of an array of %s has another struct_size than the first", i, type);
    return COGPU_OK;
}

cogpu_status cogpu_struct_take_array(cogpu_arena *arena, void *array, size_t count, size_t bytes,
                                     const char *type, cogpu_error *error) {
    const void *from = NULL;
    uint8_t *copy = NULL;
    memcpy(&from, array, sizeof from);
    if (!from || count == 0)
        return COGPU_OK;
    TRY(cogpu_struct_check_array(from, count, type, error));
    const size_t size = size_of(from);
    if (size == bytes)
        return COGPU_OK;
    TRY(cogpu_arena_allocate(arena, count, bytes, &copy, error));
    for (size_t i = 0; i < count; i++)
        TRY(cogpu_struct_take(copy + i * bytes, bytes, (const uint8_t *)from + i * size, type,
                              error));
    memcpy(array, &copy, sizeof copy);
    return COGPU_OK;
}
