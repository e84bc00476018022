/*
 * Where a file goes, as Python names it: a path, None for memory, or an object with write.
 */
#ifndef COGPU_PYTHON_SINK_H
#define COGPU_PYTHON_SINK_H

#include "errors.h"

#include <stdbool.h>

/* `sink` points into it. */
struct target {
    cogpu_sink sink;
    cogpu_memory memory; /* of None: the file */
    PyObject *path;      /* bytes */
    PyObject *inputs;    /* list of bytes: paths that are read for the file */
    const char **input_paths;
    PyObject *object;
    PyObject *failure;    /* what the object has raised; nothing more is written to it then */
    uint64_t start;       /* of the file in the object, which may hold something before */
    unsigned long writer; /* the thread that is in its write now; 0 = none */
};

/* NULL with an exception. Objects that can seek are written to where they stand and in any order,
 * others from the first byte to the last. */
struct target *target_open(PyObject *given);
/* Paths that are read for the file: cogpu_sink.inputs. False with an exception. */
bool target_set_inputs(struct target *target, PyObject *paths);
void target_release(struct target *target); /* NULL is allowed */
int target_visit(struct target *target, visitproc visit, void *arg);

/* Raises what the object has raised, in the context of the engine's error, or that alone. NULL. */
PyObject *target_raise(struct target *target, const cogpu_error *error);
/* Whether the calling thread is in the object's write. */
bool target_is_here(const struct target *target);

/* Memory that the engine handed over, as a read-only memoryview, which frees it. */
PyObject *memory_view(cogpu_memory *memory);

bool sink_add_type(PyObject *module);

#endif
