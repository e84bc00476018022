/* Replaces modules.c in builds without nvcc: GPUs are listed, and fail at the first launch. */
#include "gpu/driver/modules.h"

const cogpu_module cogpu_modules[1];
const size_t cogpu_module_count = 0;
const uint32_t cogpu_module_capabilities[] = {0};
