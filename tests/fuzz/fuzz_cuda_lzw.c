/*
 * The LZW decoder of the device, on the emulator, with any stream.
 *
 * Input: 4 bytes that choose the seed of the emulator, the room and what is needed of it, then the
 * stream. Good seeds: LZW blocks of small TIFF files with 4 bytes before them.
 *
 * What the device accepts, the host must decode to the same bytes.
 */
#include "codec/codec.h"
#include "gpu_test.h"

enum { CHOICE_BYTES = 4, ROOM_UNIT = 61 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    if (bytes <= CHOICE_BYTES || bytes > 1 << 16)
        return 0;
    gpu_stream stream = {.in = data + CHOICE_BYTES,
                         .in_bytes = (uint32_t)(bytes - CHOICE_BYTES),
                         .room = 1 + ROOM_UNIT * (data[1] + 256u * (data[2] % 8))};
    stream.needed = (uint32_t)((uint64_t)stream.room * data[3] / 255);
    cogpu_gpu *gpu = gpu_test_open(data[0]);
    if (!gpu_test_decode(gpu, &cogpu_gpu_lzw, &stream, 1, data[0] & 1, data[0]))
        abort();
    gpu->calls->close(gpu);

    cogpu_codec_state state = {0};
    const cogpu_block_format format = {0};
    uint8_t *out = malloc(stream.room);
    size_t got = 0;
    cogpu_error error;
    const cogpu_status status = cogpu_decode_lzw(&state, &format, stream.in, stream.in_bytes, out,
                                                 stream.room, &got, &error);
    const bool host_takes = status == COGPU_OK && got >= stream.needed;
    if (stream.verdict == 0 && !(host_takes && memcmp(out, stream.out, got) == 0))
        abort();
    if (host_takes && stream.verdict != 0 && stream.verdict != COGPU_GPU_UNUSUAL)
        abort();
    cogpu_codec_state_close(&state);
    free(out);
    free(stream.out);
    return 0;
}
