/*
 * cogpu.Array: pixels that speak DLPack and the array interfaces.
 */
#ifndef COGPU_PYTHON_ARRAY_H
#define COGPU_PYTHON_ARRAY_H

#include "store.h"

/* A new Array over a store, whose reference it takes, also on failure. */
PyObject *array_new(struct store *store, const cogpu_raster *raster);

/* The module's place(array, device): an Array over an array of the host's, or of a copy of it on a
 * GPU. */
PyObject *array_place(PyObject *module, PyObject *arguments);

bool array_add_type(PyObject *module);

#endif
