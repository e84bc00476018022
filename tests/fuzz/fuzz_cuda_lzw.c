/* The LZW decoder of the device. Good seeds: LZW blocks of small TIFF files, after the bytes by
 * which fuzz_cuda.h chooses. */
#include "fuzz/fuzz_cuda.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    return fuzz_decoder(COMPRESSION_LZW, data, bytes);
}
