/*
 * Fuzz target of the GPU decoders of a compression, on the emulator: for any stream it stays inside
 * its memory and keeps the contract of kernels/decoder.h, which gpu_contract.h checks.
 *
 * Input:
 *
 *     byte 0      order of threads; bit 0: full or minimal scratch memory
 *     bytes 1-2   capacity of the block - 1, little-endian
 *     byte 3      part of the capacity that is needed, in 255ths
 *     then        the stream
 */
#ifndef COGPU_TESTS_KERNEL_TARGET_H
#define COGPU_TESTS_KERNEL_TARGET_H

#include "support/gpu_contract.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Aborts if a decoder of this compression breaks its contract for this input. */
int fuzz_decoder(uint32_t compression, const uint8_t *data, size_t bytes);

#endif
