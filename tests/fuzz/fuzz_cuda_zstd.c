/* The zstd decoder of the device. Good seeds: zstd frames of a few hundred to a few thousand bytes
 * of all levels, after the bytes by which fuzz_cuda.h chooses. */
#include "fuzz/fuzz_cuda.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    return fuzz_decoder(COMPRESSION_ZSTD, data, bytes);
}
