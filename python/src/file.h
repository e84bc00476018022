/*
 * cogpu._cogpu.File, and what its parts share.
 */
#ifndef COGPU_PYTHON_FILE_H
#define COGPU_PYTHON_FILE_H

#include "handle.h"

/* The open file behind a File, to be dropped; NULL with an exception where it is closed or no File.
 */
struct handle *file_take(PyObject *object);

bool file_add_type(PyObject *module);

/* read.c: File.read, and the module's read_many. */
PyObject *file_read(PyObject *file, PyObject *arguments, PyObject *words);
PyObject *file_read_many(PyObject *module, PyObject *requests);

/* describe.c: what is in a file. The arguments are those of the methods. */
PyObject *file_info(PyObject *file, PyObject *arguments, PyObject *words);
PyObject *file_level(PyObject *file, PyObject *arguments, PyObject *words);
PyObject *file_band(PyObject *file, PyObject *arguments, PyObject *words);
PyObject *file_metadata(PyObject *file, PyObject *arguments, PyObject *words);
PyObject *file_crs(PyObject *file, PyObject *arguments, PyObject *words);
PyObject *file_wkt(PyObject *file, PyObject *arguments, PyObject *words);
PyObject *file_geokeys(PyObject *file, PyObject *arguments, PyObject *words);
PyObject *file_image_count(PyObject *file, PyObject *unused);
PyObject *file_version_id(PyObject *file, PyObject *unused);
PyObject *file_sidecars(PyObject *file, PyObject *unused);
PyObject *file_directories(PyObject *file, PyObject *unused);
PyObject *file_tags(PyObject *file, PyObject *arguments, PyObject *words);
PyObject *file_tag(PyObject *file, PyObject *arguments, PyObject *words);

/* check.c: the module's check. */
PyObject *file_check(PyObject *module, PyObject *arguments, PyObject *words);

#endif
