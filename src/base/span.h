/* A range of bytes in a file. */
#ifndef COGPU_BASE_SPAN_H
#define COGPU_BASE_SPAN_H

#include <stdint.h>

/* Of a block; bytes is 0 for a sparse block. */
typedef struct cogpu_span {
    uint64_t offset, bytes;
} cogpu_span;

#endif
