/*
 * The device's zstd decoder with any stream, on the emulator: it stays inside its memory, and takes
 * nothing that the host's codec does not take, with the same bytes.
 *
 * Input: 3 bytes that choose the room of the block, what of it is needed and the order of threads,
 * then the stream. Good seeds are zstd frames of a few hundred to a few thousand bytes of all
 * levels, with 3 bytes before them.
 */
#include "codec/codec.h"
#include "gpu_test.h"

enum { CHOICE_BYTES = 3, ROOM_UNIT = 96 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#if COGPU_HAVE_ZSTD
/* Whether the host takes the stream and has the same bytes. */
static bool host_agrees(const gpu_stream *stream) {
    const cogpu_block_format format = {0};
    cogpu_codec_state state = {0};
    cogpu_error error;
    size_t got = 0;
    uint8_t *out = malloc(stream->room);
    bool agrees = cogpu_decode_zstd(&state, &format, stream->in, stream->in_bytes, out,
                                    stream->room, &got, &error) == COGPU_OK &&
                  got >= stream->needed && memcmp(out, stream->out, got) == 0;
    cogpu_codec_state_close(&state);
    free(out);
    return agrees;
}
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
#if COGPU_HAVE_ZSTD
    if (bytes <= CHOICE_BYTES || bytes > 1 << 16)
        return 0;
    uint32_t room = 1u + ROOM_UNIT * (uint32_t)data[0] + data[1];
    gpu_stream stream = {.in = data + CHOICE_BYTES,
                         .in_bytes = (uint32_t)(bytes - CHOICE_BYTES),
                         .room = room,
                         .needed = data[2] & 1 ? room : 0};
    cogpu_gpu *gpu = gpu_test_open(data[2]);
    if (!gpu_test_decode(gpu, &cogpu_gpu_zstd, &stream, 1, data[2] >> 1 & 1, data[2]))
        abort();
    if (stream.verdict == COGPU_GPU_DECODED && !host_agrees(&stream))
        abort();
    free(stream.out);
    gpu->calls->close(gpu);
#else
    (void)data;
    (void)bytes;
#endif
    return 0;
}
