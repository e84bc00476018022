/* The deflate decoder of the device. Good seeds: small zlib streams of all kinds of sections, after
 * the bytes by which fuzz_cuda.h chooses. */
#include "fuzz/fuzz_cuda.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    return fuzz_decoder(COMPRESSION_DEFLATE, data, bytes);
}
