/*
 * Libraries that stand in for NVIDIA's: a test runs in a process of its own, since a library is
 * loaded once, and reaches what the library is told to do and what it has counted.
 */
#ifndef COGPU_TESTS_STAND_IN_H
#define COGPU_TESTS_STAND_IN_H

#include "support/test.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Sets `variable` to the file of a library, or unsets it where that is NULL, and runs the test.
 * What the library's function `control` returns is put into *handle first. */
void in_a_process(const char *variable, const char *file, const char *control, void **handle,
                  void (*test)(void));

#endif
