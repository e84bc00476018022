/* The deflate decoder for few streams with sizes so small that small streams take all of its steps:
 * many spans, several rounds and windows. */
#ifndef COGPU_TESTS_FEW_DECODER_H
#define COGPU_TESTS_FEW_DECODER_H

#include "kernels/decoder.h"

/* The first leaves what it does not decode at COGPU_GPU_NOT_DECODED; after the second inflate.cu
 * decodes that, as in cogpu_gpu_inflate. */
extern const cogpu_gpu_decoder few_decoder_alone, few_decoder;

#endif
