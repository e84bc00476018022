/*
 * How failures reach Python: those of the library by the classes of cogpu.errors. All of these need
 * the GIL and return NULL, so that a function can end with them.
 */
#ifndef COGPU_PYTHON_ERRORS_H
#define COGPU_PYTHON_ERRORS_H

#include <Python.h>

#include "cogpu.h"

/* Python.h must come first in a file, and this header brings it. */

/* An error of the library as an exception object. */
PyObject *error_object(const cogpu_error *error);

/* Raises an error of the library. The message of the second and third names the file, a path or
 * URL, if it does not do so yet; user info and query of a URL are left out. NULL: no name. The
 * third is FileNotFoundError too: a path, or its folder, is not there. */
PyObject *raise_error(const cogpu_error *error);
PyObject *raise_file_error(const cogpu_error *error, const char *name);
PyObject *raise_missing(const cogpu_error *error, const char *name);
/* Names the file in the exception that is raised now. */
PyObject *name_raised(const char *name);

/* The exception that is raised now, to be raised later, when the library has come back: then in the
 * context of what the library tells of. The second takes the reference. */
PyObject *keep_raised(void);
PyObject *raise_kept(PyObject *kept, const cogpu_error *error);

/* An error for a failed allocation, without Python: any thread. */
cogpu_error no_memory(const char *message);

/* Errors that are found out here. The words are PyUnicode_FromFormat's. */
PyObject *raise_argument(const char *format, ...);
PyObject *raise_status(cogpu_status status, const char *format, ...);

/* BufferError, as DLPack wants it. */
PyObject *raise_buffer_error(const char *format, ...);

#endif
