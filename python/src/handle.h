/*
 * An open file, counted: each read holds a reference, so that it can be closed during reads.
 */
#ifndef COGPU_PYTHON_HANDLE_H
#define COGPU_PYTHON_HANDLE_H

#include "errors.h"

#include <stdbool.h>

struct handle;

/* Opens a path, a URL, a buffer, or an object with read and seek; NULL with an exception. */
struct handle *handle_open(PyObject *source, const cogpu_open_options *options);
/* Opens a mosaic. files[i] is the open file of source i, which is shared, or NULL. `options` gets
 * `open`, and that the context. NULL with an exception. */
struct handle *handle_open_mosaic(const cogpu_mosaic_source *sources, struct handle *const *files,
                                  size_t count, cogpu_mosaic_options *options,
                                  cogpu_open_options *open);
struct handle *handle_share(struct handle *handle);
/* On any thread, with or without the GIL. NULL is allowed. */
void handle_drop(struct handle *handle);
const cogpu_file *handle_file(const struct handle *handle);
/* The path, the URL or what the object calls itself, for messages; NULL where there is none. */
const char *handle_name(const struct handle *handle);
/* The file is read by calls into Python: who waits for a read must not hold the GIL. */
bool handle_needs_python(const struct handle *handle);

/* Raises what the library tells of; where an object that was read from failed, its own exception,
 * in the context of that. NULL. */
PyObject *handle_raise(struct handle *handle, const cogpu_error *error);

#endif
