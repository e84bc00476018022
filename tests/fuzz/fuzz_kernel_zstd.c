/* Fuzz target of the GPU decoder of Zstandard. Seeds: frames of a few hundred to a few thousand
 * bytes of all levels, after the option bytes of kernel_target.h. */
#include "fuzz/kernel_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    return fuzz_decoder(COMPRESSION_ZSTD, data, bytes);
}
