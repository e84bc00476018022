/*
 * Replaces malloc and calloc of the whole process, and fails for calls whose return address is in a
 * codec library. cogpu's own calls do not come here: --wrap has redirected them.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "faults/library_faults.h"

#include "codec/codec.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

static bool are_on;
bool webp_decodes_without_faults;

void turn_library_faults_off(void) {
    are_on = false;
}

/* With clang the sanitizer is a part of the program, and its functions cannot be replaced. */
#ifndef __clang__

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
    return are_on && armed_fault == ALLOCATION && is_in(caller, LIBRARIES) &&
           call_fails(ALLOCATION);
}

/* For operator new (throwing_new.cpp), which --wrap does not reach: cogpu's own C++ counts too. */
bool new_fails(const void *caller);
bool new_fails(const void *caller) {
    return are_on && armed_fault == ALLOCATION && is_in(caller, LIBRARIES + 1) &&
           call_fails(ALLOCATION);
}

/* The function of the C library, or of the sanitizer, that the one here hides. */
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

void turn_library_faults_on(void) {
    dl_iterate_phdr(find_code, NULL);
    are_on = true;
}

#else

void turn_library_faults_on(void) {
    are_on = true;
}

#endif

#if COGPU_HAVE_WEBP
cogpu_decode __real_cogpu_decode_webp;
cogpu_decode __wrap_cogpu_decode_webp;

cogpu_status __wrap_cogpu_decode_webp(cogpu_codec_state *state, const cogpu_block_format *format,
                                      const uint8_t *in, size_t in_bytes, uint8_t *out,
                                      size_t out_bytes, size_t *got, cogpu_error *error) {
    bool were_off = faults_are_off;
    faults_are_off = were_off || webp_decodes_without_faults;
    cogpu_status status =
        __real_cogpu_decode_webp(state, format, in, in_bytes, out, out_bytes, got, error);
    faults_are_off = were_off;
    return status;
}
#endif
