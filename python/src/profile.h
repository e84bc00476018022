/*
 * A profile as Python gives it, a dict with the fields of cogpu_profile by name:
 *
 *     type        NumPy's name, or "complex_int16", "complex_int32"
 *     enums       names of cogpu.h: "average", "auto", "minisblack"
 *     transform   six numbers; no has_transform
 *     palette     a sequence of (red, green, blue), 0 to 65,535
 *     gcps        (column, row, pixel_z, x, y, z), (column, row, x, y, z) or (column, row, x, y)
 * each geokeys     (id, name, value) each, as File.geokeys gives them metadata    dicts, as
 * File.metadata gives them tags        (id, type, count, values) each; values are bytes in native
 * order, or numbers device      "cpu", "cuda", "cuda:N", "emu", "emu:N"
 *
 * Lists have no counts beside them, and there is no context: the process has one.
 */
#ifndef COGPU_PYTHON_PROFILE_H
#define COGPU_PYTHON_PROFILE_H

#include "engine.h"
#include "record.h"

struct given_profile {
    cogpu_profile profile;
    struct engine *engine; /* of the profile's context */
    struct arena arena;
};

/* False with an exception, and then nothing is to be released. */
bool profile_read(PyObject *dict, struct given_profile *given);
void profile_release(struct given_profile *given);

#endif
