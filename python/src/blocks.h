/*
 * Blocks and overviews of a file, made elsewhere than where it is written.
 */
#ifndef COGPU_PYTHON_BLOCKS_H
#define COGPU_PYTHON_BLOCKS_H

#include "errors.h"

#include <stdbool.h>

struct block {
    uint32_t level;
    cogpu_content content;
    uint64_t index;
};

/* Both return false with an exception. */
bool block_parse(PyObject *level, PyObject *content, PyObject *index, struct block *block);

/* level_layouts, encode_block, add_leaders_trailers, overview_source_window, overview_compute */
bool blocks_add(PyObject *module);

#endif
