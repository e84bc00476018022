/*
 * A JPEG XL stream for which memory ends: each allocation that libjxl makes by our memory manager,
 * and each of our own, fails in turn. That is told as such, and leaks nothing. Versions of libjxl
 * before 0.11 take most of their memory elsewhere: tests/python/test_image_codecs.py has the case
 * where that ends.
 */
#include "faults/allocation_faults.h"

#if COGPU_HAVE_JXL
#include <jxl/encode.h>

enum { SIDE = 24, BANDS = 3, BYTES = SIDE * SIDE * BANDS };

static uint8_t raw[BYTES], packed[4 * BYTES + 4096], out[BYTES];
static size_t packed_bytes;

static void pack(void) {
    JxlEncoder *encoder = JxlEncoderCreate(NULL);
    JxlBasicInfo info;
    JxlColorEncoding colours;
    JxlPixelFormat pixels = {BANDS, JXL_TYPE_UINT8, JXL_NATIVE_ENDIAN, 0};
    JxlEncoderInitBasicInfo(&info);
    info.xsize = info.ysize = SIDE;
    info.uses_original_profile = JXL_TRUE;
    CHECK(JxlEncoderSetBasicInfo(encoder, &info) == JXL_ENC_SUCCESS);
    JxlColorEncodingSetToSRGB(&colours, JXL_FALSE);
    CHECK(JxlEncoderSetColorEncoding(encoder, &colours) == JXL_ENC_SUCCESS);
    JxlEncoderFrameSettings *settings = JxlEncoderFrameSettingsCreate(encoder, NULL);
    CHECK(JxlEncoderSetFrameLossless(settings, JXL_TRUE) == JXL_ENC_SUCCESS);
    fill_bytes(raw, BYTES, 256, 64);
    CHECK(JxlEncoderAddImageFrame(settings, &pixels, raw, BYTES) == JXL_ENC_SUCCESS);
    JxlEncoderCloseInput(encoder);
    uint8_t *next = packed;
    size_t room = sizeof packed;
    CHECK(JxlEncoderProcessOutput(encoder, &next, &room) == JXL_ENC_SUCCESS);
    packed_bytes = sizeof packed - room;
    JxlEncoderDestroy(encoder);
}

static cogpu_status decode_block(size_t *got, cogpu_error *error) {
    cogpu_codec_state state = {0};
    const cogpu_block_format format = {.width = SIDE,
                                       .height = SIDE,
                                       .samples = BANDS,
                                       .bits = 8,
                                       .type = COGPU_TYPE_U8,
                                       .row_bytes = SIDE * BANDS};
    cogpu_status status =
        cogpu_decode_jpegxl(&state, &format, packed, packed_bytes, out, BYTES, got, error);
    cogpu_codec_state_close(&state);
    return status;
}

static void decoding(void) {
    try_each_allocation(decode_block, out, raw, BYTES);
}

TESTS(jpegxl_faults) {
    reset_faults();
    RUN(pack);
    RUN(decoding);
    return FINISH();
}

#else
TESTS(jpegxl_faults) {
    return FINISH();
}
#endif
