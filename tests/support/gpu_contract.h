/*
 * Checks the contract of kernels/decoder.h: what a GPU decoder accepts, the CPU codec accepts too,
 * with the same bytes. What the CPU codec accepts, the GPU decoder may refuse, with statuses that
 * depend on the codec.
 */
#ifndef COGPU_TESTS_GPU_CONTRACT_H
#define COGPU_TESTS_GPU_CONTRACT_H

#include "codec/codec.h"
#include "support/gpu_test.h"

typedef struct gpu_codec {
    const char *name;
    uint32_t compression;
    uint32_t may_refuse; /* bits of the statuses allowed for streams that the CPU codec accepts */
    const cogpu_gpu_decoder *decoder; /* NULL: that of the compression */
} gpu_codec;

enum { GPU_CODECS = 5 };
extern const gpu_codec gpu_codecs[GPU_CODECS];

const cogpu_gpu_decoder *gpu_codec_decoder(const gpu_codec *codec, const cogpu_gpu *gpu);

/* NULL: no such codec, or it is built without the CPU codec's library. */
const gpu_codec *gpu_find_codec(uint32_t compression);

/* NULL if the contract holds, otherwise the violation. `cpu_accepts` may be NULL. */
const char *gpu_contract_violation(const gpu_codec *codec, const gpu_stream *stream,
                                   bool *cpu_accepts);

#endif
