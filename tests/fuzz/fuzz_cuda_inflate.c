/* The deflate decoder of the device with any stream: see fuzz_cuda.h. */
#include "fuzz/fuzz_cuda.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    return fuzz_decoder(COMPRESSION_DEFLATE, data, bytes);
}
