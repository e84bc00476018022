/*
 * Calls into Python from threads of the engine, which may come while the interpreter ends: there is
 * no GIL to be had then, and a thread that asks for it all the same is ended or never comes back.
 */
#ifndef COGPU_PYTHON_GIL_H
#define COGPU_PYTHON_GIL_H

#include <Python.h>

#include <stdbool.h>

/* On any thread, with or without the GIL. False where the interpreter is ending; else gil_give is
 * due. */
bool gil_take(PyGILState_STATE *state);
void gil_give(PyGILState_STATE state);

/* Sees to it that gil_take is refused from the interpreter's end on. False with an exception. */
bool gil_watch_end(void);

#endif
