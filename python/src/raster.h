/*
 * Arrays of others as rasters: whatever has __dlpack__, __cuda_array_interface__,
 * __array_interface__ or is a buffer, of two dimensions (one band) or three (band, y, x).
 */
#ifndef COGPU_PYTHON_RASTER_H
#define COGPU_PYTHON_RASTER_H

#include "engine.h"

struct dl_versioned;
struct dl_legacy;

/* A raster over memory of somebody, and what keeps that memory alive. */
struct taken {
    cogpu_raster raster;
    bool is_read_only;
    struct dl_versioned *versioned; /* one of these four, or none */
    struct dl_legacy *legacy;
    Py_buffer view;
    PyObject *owner;
};

/* What the memory is to be used with. */
struct taking {
    const char *name; /* the parameter's, for messages */
    bool is_written;  /* read-only arrays are refused */
    /* COGPU_DEVICE_EMULATOR: host memory is to be this device's. COGPU_DEVICE_CPU: what it is. */
    cogpu_device_kind device;
    uint32_t device_index;
    void *stream; /* the array is used on: it follows what the array's owner has under way */
};

/* False with an exception: InvalidArgumentError or TypeError with the parameter's name. Needs the
 * GIL. What was taken must be dropped. */
bool raster_take(PyObject *array, const struct taking *taking, struct taken *taken);
/* On any thread, with or without the GIL, also after the interpreter's end. */
void raster_drop(struct taken *taken);

/* A CUDA stream as users give it: None or a number, 0 being the default stream. */
bool stream_parse(PyObject *value, void **stream);
/* Emulated GPUs have the default streams alone, 0, 1 and 2; other numbers are no streams of theirs.
 */
bool stream_check(cogpu_device_kind device, const void *stream);

/* "<f4", as the array interfaces have it; NULL for complex integers. */
const char *type_string(cogpu_type type);

#endif
