/* Fuzz target of the GPU decoder of deflate. Seeds: small zlib streams of all kinds of deflate
 * blocks, after the option bytes of kernel_target.h. */
#include "fuzz/kernel_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    return fuzz_decoder(COMPRESSION_DEFLATE, data, bytes);
}
