/*
 * What the parts of cogpu._cogpu add to the module.
 */
#ifndef COGPU_PYTHON_MODULE_H
#define COGPU_PYTHON_MODULE_H

#include <Python.h>

/* writer.c: Writer, and the functions of blocks.h and upload.h; 0, or -1 with an exception. */
int cogpu_python_add_writer(PyObject *module);

#endif
