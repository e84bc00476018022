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

/* A File of an open file, which it takes over; NULL, with the exception that is raised, of NULL. */
PyObject *file_of_handle(struct handle *handle);

/* Keywords of `open`, each None for the default. */
struct open_words {
    PyObject *sidecars, *limits, *vrt_sources;
};

/* `options` points to `limits`. */
struct given_options {
    cogpu_limits limits;
    cogpu_open_options options;
};

bool open_options_read(const struct open_words *words, struct given_options *given);

/* read.c: File.read, and the module's read_many. */
PyObject *file_read(PyObject *file, PyObject *arguments, PyObject *words);
PyObject *file_read_many(PyObject *module, PyObject *requests);
/* The bands of a request, a tuple of ints from 1; NULL or None: `all`. The caller frees *list,
 * which the request points to, also after a failure. False with an exception. */
bool request_bands(PyObject *bands, uint32_t all, cogpu_request *request, uint32_t **list);

/* windows.c: the module's read_windows. */
PyObject *file_read_windows(PyObject *module, PyObject *arguments, PyObject *words);

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

/* mosaic.c: the module's open_mosaic, and methods of mosaics. */
PyObject *mosaic_open(PyObject *module, PyObject *arguments, PyObject *words);
PyObject *file_sources(PyObject *file, PyObject *unused);
PyObject *file_write_vrt(PyObject *file, PyObject *target);

/* check.c: the module's check. */
PyObject *file_check(PyObject *module, PyObject *arguments, PyObject *words);

#endif
