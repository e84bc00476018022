/* Fuzz target of the GPU decoder of LZW. Seeds: LZW blocks of small TIFF files, after the option
 * bytes of kernel_target.h. */
#include "fuzz/kernel_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    return fuzz_decoder(COMPRESSION_LZW, data, bytes);
}
