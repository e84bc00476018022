/*
 * Libraries that stand in for NVIDIA's: a test runs in a process of its own, since a library is
 * loaded once, and reaches what the library is told to do and what it has counted.
 */
#ifndef COGPU_TESTS_STAND_IN_H
#define COGPU_TESTS_STAND_IN_H

#include "test.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Sets `variable` to the file of a library, or unsets it where that is NULL, and runs the test.
 * What the library's function `control` returns is put into *handle first. */
static inline void in_a_process(const char *variable, const char *file, const char *control,
                                void **handle, void (*test)(void)) {
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (file)
            setenv(variable, file, 1);
        else
            unsetenv(variable);
        void *library = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
        void *symbol = library ? dlsym(library, control) : NULL;
        if (symbol) {
            void *(*call)(void);
            memcpy(&call, &symbol, sizeof call);
            *handle = call();
        }
        test_broken = 0;
        test();
        exit(test_broken);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#endif
