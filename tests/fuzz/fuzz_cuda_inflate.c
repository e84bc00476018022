/*
 * The deflate decoder of the device, on the emulator, with any stream.
 *
 * Input: a byte that chooses the order of threads, two that say how much room there is
 * (little-endian, 1 and more), one that says how much of it is needed, then a zlib stream. Good
 * seeds are small zlib streams of all kinds of sections with room for what they decode to.
 */
#include "codec/codec.h"
#include "gpu_test.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(bool condition, const char *what) {
    if (condition)
        return;
    printf("%s\n", what);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    enum { CHOICE_BYTES = 4, IN_MAX = 1 << 16 };
    if (bytes <= CHOICE_BYTES || bytes > IN_MAX)
        return 0;
    uint32_t room = 1u + data[1] + 256u * data[2];
    gpu_stream stream = {.in = data + CHOICE_BYTES,
                         .in_bytes = (uint32_t)(bytes - CHOICE_BYTES),
                         .room = room,
                         .needed = room * data[3] / 255};
    cogpu_gpu *gpu = gpu_test_open(data[0]);
    check(gpu_test_decode(gpu, &cogpu_gpu_inflate, &stream, 1, 1, data[0]), "no decoding");
    if (stream.verdict == COGPU_GPU_DECODED) {
        cogpu_codec_state state = {0};
        cogpu_block_format format = {0};
        cogpu_error error;
        uint8_t *out = malloc(room);
        size_t got = 0;
        cogpu_status status = cogpu_decode_deflate(&state, &format, stream.in, stream.in_bytes, out,
                                                   room, &got, &error);
        check(status == COGPU_OK, "taken, and the host refuses it");
        check(got >= stream.needed, "taken, and too short");
        check(memcmp(out, stream.out, got) == 0, "other bytes than the host's");
        free(out);
        cogpu_codec_state_close(&state);
    }
    free(stream.out);
    gpu->calls->close(gpu);
    return 0;
}
