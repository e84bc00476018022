/*
 * Blocks and overviews of a file, made elsewhere than where it is written.
 */
#ifndef COGPU_PYTHON_BLOCKS_H
#define COGPU_PYTHON_BLOCKS_H

#include "errors.h"

#include <stdbool.h>

struct block {
    uint32_t level;
    cogpu_part part;
    uint64_t index;
};

/* Both return false with an exception. */
bool block_parse(PyObject *level, PyObject *part, PyObject *index, struct block *block);

/* outline, encode, frame, overview_needs, overview_make */
bool blocks_add(PyObject *module);

#endif
