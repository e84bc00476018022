/*
 * What a decoder of the device owes the codec of the host. Takes a stream that was decoded, tells
 * what is wrong with the verdict.
 *
 * What the device takes, the host takes too, and has the same bytes. What the host takes the device
 * may leave to it, for reasons that depend on the codec.
 */
#ifndef COGPU_TESTS_GPU_LAW_H
#define COGPU_TESTS_GPU_LAW_H

#include "codec/codec.h"
#include "gpu_test.h"

typedef struct gpu_codec {
    const char *name;
    uint32_t compression;
    uint32_t leaves; /* verdicts on what the host takes: a bit for each that is allowed */
} gpu_codec;

static const gpu_codec gpu_codecs[] = {{"deflate", COMPRESSION_DEFLATE, UINT32_MAX},
                                       {"zstd", COMPRESSION_ZSTD, UINT32_MAX},
                                       {"lzw", COMPRESSION_LZW, 1u << COGPU_GPU_UNUSUAL},
                                       {"packbits", COMPRESSION_PACKBITS, 0}};

enum { GPU_CODECS = sizeof gpu_codecs / sizeof *gpu_codecs };

/* NULL: no such codec, or the host has no library for it. */
static inline const gpu_codec *gpu_codec_of(uint32_t compression) {
    for (int i = 0; i < GPU_CODECS; i++)
        if (gpu_codecs[i].compression == compression && cogpu_codec_find(compression)->decode)
            return &gpu_codecs[i];
    return NULL;
}

/* NULL where the law is kept; otherwise what is wrong. `host_takes` may be NULL. */
static inline const char *gpu_law_broken(const gpu_codec *codec, const gpu_stream *stream,
                                         bool *host_takes) {
    const cogpu_block_format format = {.compression = codec->compression};
    cogpu_codec_state state = {0};
    cogpu_error error;
    size_t got = 0;
    uint8_t *in = malloc(stream->in_bytes), *out = malloc(stream->room);
    memcpy(in, stream->in, stream->in_bytes);
    bool is_taken = cogpu_codec_find(codec->compression)
                            ->decode(&state, &format, in, stream->in_bytes, out, stream->room, &got,
                                     &error) == COGPU_OK &&
                    got >= stream->needed;
    bool is_same = is_taken && memcmp(out, stream->out, got) == 0;
    cogpu_codec_state_close(&state);
    free(in);
    free(out);
    if (host_takes)
        *host_takes = is_taken;
    if (stream->verdict == COGPU_GPU_DECODED)
        return !is_taken ? "taken, and the host refuses it"
               : is_same ? NULL
                         : "other bytes than the host's";
    bool is_known = stream->verdict <= COGPU_GPU_UNUSUAL;
    return !is_known                                           ? "no verdict"
           : !is_taken || codec->leaves >> stream->verdict & 1 ? NULL
                                                               : "refused, and the host takes it";
}

#endif
