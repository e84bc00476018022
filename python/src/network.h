/*
 * Settings of the network as Python gives them: a dict with the fields of cogpu_network by name.
 */
#ifndef COGPU_PYTHON_NETWORK_H
#define COGPU_PYTHON_NETWORK_H

#include "record.h"

/* In the arena, as its texts. NULL with an exception, which has no value of a text. */
const cogpu_network *network_read(PyObject *dict, struct arena *arena);

#endif
