/* The header of a NumPy file; the samples follow it, little endian. */
#ifndef COGPU_CLI_NPY_H
#define COGPU_CLI_NPY_H

#include "cogpu.h"

enum { NPY_HEADER = 192 }; /* a multiple of 64, as NumPy aligns the samples */

void cogpu_npy_header(cogpu_type type, uint32_t bands, uint32_t height, uint32_t width,
                      char header[NPY_HEADER]);

#endif
