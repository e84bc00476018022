#include "support/gpu_contract.h"

#include "support/few_decoder.h"

const gpu_codec gpu_codecs[GPU_CODECS] = {
    {"deflate", COMPRESSION_DEFLATE, UINT32_MAX, NULL},
    {"deflate-few", COMPRESSION_DEFLATE, UINT32_MAX, &few_decoder},
    {"zstd", COMPRESSION_ZSTD, UINT32_MAX, NULL},
    {"lzw", COMPRESSION_LZW, 1u << COGPU_GPU_UNSUPPORTED, NULL},
    {"packbits", COMPRESSION_PACKBITS, 0, NULL}};

const cogpu_gpu_decoder *gpu_codec_decoder(const gpu_codec *codec, const cogpu_gpu *gpu) {
    return codec->decoder ? codec->decoder : cogpu_gpu_find_decoder(gpu, codec->compression);
}

const gpu_codec *gpu_find_codec(uint32_t compression) {
    for (int i = 0; i < GPU_CODECS; i++)
        if (gpu_codecs[i].compression == compression && cogpu_codec_find(compression)->decode)
            return &gpu_codecs[i];
    return NULL;
}

const char *gpu_contract_violation(const gpu_codec *codec, const gpu_stream *stream,
                                   bool *cpu_accepts) {
    const cogpu_block_format format = {.compression = codec->compression};
    cogpu_codec_state state = {0};
    cogpu_error error;
    size_t got = 0;
    uint8_t *in = malloc(stream->in_bytes), *out = malloc(stream->capacity);
    memcpy(in, stream->in, stream->in_bytes);
    bool is_accepted = cogpu_codec_find(codec->compression)
                               ->decode(&state, &format, in, stream->in_bytes, out,
                                        stream->capacity, &got, &error) == COGPU_OK &&
                       got >= stream->required;
    bool is_same = is_accepted && memcmp(out, stream->out, got) == 0;
    cogpu_codec_state_close(&state);
    free(in);
    free(out);
    if (cpu_accepts)
        *cpu_accepts = is_accepted;
    if (stream->block_status == COGPU_GPU_DECODED)
        return !is_accepted ? "accepted, but the CPU codec refuses it"
               : is_same    ? NULL
                            : "other bytes than the CPU codec";
    bool is_known = stream->block_status <= COGPU_GPU_UNSUPPORTED;
    return !is_known ? "unknown block status"
           : !is_accepted || codec->may_refuse >> stream->block_status & 1
               ? NULL
               : "refused, but the CPU codec accepts it";
}
