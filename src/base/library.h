/*
 * Shared libraries that are loaded at run time (dlopen), because a machine may lack them: CUDA's
 * driver, nvJPEG, cuFile.
 *
 *   static double (*cosine)(double);
 *   static const cogpu_library_symbol symbols[] = {{"cos", &cosine, false}};
 *   static cogpu_library library = {.title = "libm", .names = {"libm.so.6"},
 *                                   .symbols = symbols, .symbol_count = 1,
 *                                   .lock = PTHREAD_MUTEX_INITIALIZER};
 *   const char *reason = cogpu_library_load(&library);     NULL: cosine may be called
 *
 * A library is never unloaded: CUDA's have threads of their own.
 */
#ifndef COGPU_BASE_LIBRARY_H
#define COGPU_BASE_LIBRARY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum { COGPU_LIBRARY_NAMES_MAX = 4, COGPU_LIBRARY_REASON_BYTES = 160 };

typedef struct cogpu_library_symbol {
    const char *name;
    void *function;   /* address of a function pointer, which is set */
    bool is_optional; /* if it is missing, the pointer becomes NULL */
} cogpu_library_symbol;

typedef struct cogpu_library {
    const char *title; /* for reasons: "nvJPEG" */
    const char
        *variable; /* environment variable with a file to load in place of `names`; or NULL */
    const char *names[COGPU_LIBRARY_NAMES_MAX]; /* tried in order; NULL after the last */
    const cogpu_library_symbol *symbols;
    size_t symbol_count;
    pthread_mutex_t lock; /* of the rest; PTHREAD_MUTEX_INITIALIZER */
    bool is_tried;
    char reason[COGPU_LIBRARY_REASON_BYTES]; /* "" if it is loaded */
} cogpu_library;

/* Loads it once, and resolves its symbols. Returns NULL, or why it cannot be used, for messages;
 * the text stays valid. Any thread. */
const char *cogpu_library_load(cogpu_library *library);

/* The file that the environment variable names; NULL without one. */
const char *cogpu_library_override(const cogpu_library *library);

#endif
