/*
 * Objects of S3 that several processes write.
 */
#ifndef COGPU_PYTHON_UPLOAD_H
#define COGPU_PYTHON_UPLOAD_H

#include <Python.h>

#include <stdbool.h>

/* upload_begin, upload_send, upload_complete, upload_abort; false with an exception. */
bool upload_add(PyObject *module);

#endif
