/*
 * As world.h, for the memory of the libraries that decode and encode too: their calls fail on
 * demand as the program's own do. One file of a program includes this, and defines _GNU_SOURCE
 * before all else.
 */
#ifndef COGPU_TESTS_LIBRARIES_H
#define COGPU_TESTS_LIBRARIES_H

#include "faults/world.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

/* With clang the sanitizer is a part of the program, and its functions cannot be replaced. */
#ifndef __clang__

/* The functions below take the place of the C library's. They fail for these libraries; cogpu's own
 * calls were wrapped before. */
static const char *const libraries[] = {"libdeflate", "libisal", "libzstd", "liblzma",
                                        "libjpeg",    "libwebp", "libLerc"};
enum { LIBRARIES = sizeof libraries / sizeof *libraries };

/* Where their code is, and the program's. */
static struct { uintptr_t begin, end; } code[LIBRARIES + 1];

static int find_code(struct dl_phdr_info *info, size_t bytes, void *user) {
    (void)bytes, (void)user;
    for (int i = 0; i <= LIBRARIES; i++) {
        bool is_it = i < LIBRARIES ? strstr(info->dlpi_name, libraries[i]) != NULL
                                   : info->dlpi_name[0] == '\0';
        for (int part = 0; is_it && part < info->dlpi_phnum; part++)
            if (info->dlpi_phdr[part].p_flags & PF_X) {
                code[i].begin = info->dlpi_addr + info->dlpi_phdr[part].p_vaddr;
                code[i].end = code[i].begin + info->dlpi_phdr[part].p_memsz;
            }
    }
    return 0;
}

static bool is_in(const void *caller, int parts) {
    for (int i = 0; i < parts; i++)
        if ((uintptr_t)caller >= code[i].begin && (uintptr_t)caller < code[i].end)
            return true;
    return false;
}

/* Some are called before the sanitizer is ready. */
#define PLAIN __attribute__((no_sanitize_address))
#define SEEN  PLAIN __attribute__((visibility("default")))

PLAIN static bool library_fails(const void *caller) {
    return fault == ALLOCATION && is_in(caller, LIBRARIES) && fails(ALLOCATION);
}

/* Of C++, whose allocations are never wrapped: throwing_new.cpp asks. */
bool new_fails(const void *caller);
bool new_fails(const void *caller) {
    return fault == ALLOCATION && is_in(caller, LIBRARIES + 1) && fails(ALLOCATION);
}

/* The function that is hidden by the one here. */
PLAIN static void find_next(const char *name, void *function) {
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(function, &found, sizeof found);
}

SEEN void *library_malloc(size_t bytes) __asm__("malloc");
SEEN void *library_malloc(size_t bytes) {
    static void *(*next)(size_t);
    if (!next)
        find_next("malloc", &next);
    return library_fails(__builtin_return_address(0)) ? NULL : next(bytes);
}

SEEN void *library_calloc(size_t count, size_t bytes) __asm__("calloc");
SEEN void *library_calloc(size_t count, size_t bytes) {
    static void *(*next)(size_t, size_t);
    if (!next)
        find_next("calloc", &next);
    return library_fails(__builtin_return_address(0)) ? NULL : next(count, bytes);
}

static void find_libraries(void) {
    dl_iterate_phdr(find_code, NULL);
}

#else

static void find_libraries(void) {
}

#endif

#endif
