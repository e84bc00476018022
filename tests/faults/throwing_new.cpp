/*
 * operator new that fails on demand, for the program and all of its libraries, in the place of
 * the one of libstdc++. library_faults.c decides which calls fail.
 */
#ifndef __clang__ /* as in library_faults.c */

#include <cstddef>
#include <new>

#pragma GCC visibility push(default)

extern "C" {
bool new_fails(const void *caller);
void *__real_malloc(std::size_t bytes);
void __real_free(void *memory);
}

static void *allocate(std::size_t bytes, const void *caller) {
    return new_fails(caller) ? nullptr : __real_malloc(bytes ? bytes : 1);
}

static void *allocate_or_throw(std::size_t bytes, const void *caller) {
    void *memory = allocate(bytes, caller);
    if (!memory)
        throw std::bad_alloc();
    return memory;
}

void *operator new(std::size_t bytes) {
    return allocate_or_throw(bytes, __builtin_return_address(0));
}

void *operator new[](std::size_t bytes) {
    return allocate_or_throw(bytes, __builtin_return_address(0));
}

void *operator new(std::size_t bytes, const std::nothrow_t &) noexcept {
    return allocate(bytes, __builtin_return_address(0));
}

void *operator new[](std::size_t bytes, const std::nothrow_t &) noexcept {
    return allocate(bytes, __builtin_return_address(0));
}

void operator delete(void *memory) noexcept {
    __real_free(memory);
}

void operator delete[](void *memory) noexcept {
    __real_free(memory);
}

void operator delete(void *memory, std::size_t) noexcept {
    __real_free(memory);
}

void operator delete[](void *memory, std::size_t) noexcept {
    __real_free(memory);
}

#endif
