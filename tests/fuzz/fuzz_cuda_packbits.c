/*
 * The PackBits decoder of the device, on the emulator, with any stream.
 *
 * Input: 4 bytes that choose the seed of the emulator, the room and what is needed of it, then the
 * stream. Good seeds: PackBits blocks of small TIFF files with 4 bytes before them.
 *
 * The device gives what the host gives, or fewer than are needed where the host does.
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
    if (!gpu_test_decode(gpu, &cogpu_gpu_packbits, &stream, 1, data[0] & 1, data[0]))
        abort();
    gpu->calls->close(gpu);

    const cogpu_block_format format = {0};
    uint8_t *out = malloc(stream.room);
    size_t got = 0;
    cogpu_error error;
    const cogpu_status status = cogpu_decode_packbits(NULL, &format, stream.in, stream.in_bytes,
                                                      out, stream.room, &got, &error);
    const uint32_t verdict = got < stream.needed ? COGPU_GPU_TOO_SHORT : COGPU_GPU_DECODED;
    if (status != COGPU_OK || stream.verdict != verdict || memcmp(out, stream.out, got) != 0)
        abort();
    free(out);
    free(stream.out);
    return 0;
}
