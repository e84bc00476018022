/* The table of codecs, the state that they share, and the codec that does nothing. */
#include "codec_test.h"

static void every_row_is_sound(void) {
    cogpu_codec info;
    uint32_t index = 0;
    for (; cogpu_codec_info(index, &info) == COGPU_OK; index++) {
        const cogpu_codec_row *row = cogpu_codec_find(info.compression);
        CHECK(row != NULL && row->compression == info.compression);
        CHECK_TEXT(info.name, row->name);
        CHECK(row->name[0] != '\0');
        CHECK(info.available == (row->decode != NULL));
        CHECK_TEXT(info.library, cogpu_codec_library(row));
        CHECK(!row->decode || row->library[0] != '\0');
    }
    CHECK(index == 27);
    CHECK(cogpu_codec_info(index, &info) == COGPU_ABSENT);
    CHECK(cogpu_codec_info(UINT32_MAX, &info) == COGPU_ABSENT);
    CHECK(cogpu_codec_info(0, NULL) == COGPU_ARGUMENT);
}

static void ours_are_always_there(void) {
    CHECK(cogpu_codec_find(COMPRESSION_NONE)->decode == cogpu_decode_none);
    CHECK(cogpu_codec_find(COMPRESSION_LZW)->decode == cogpu_decode_lzw);
    CHECK(cogpu_codec_find(COMPRESSION_PACKBITS)->decode == cogpu_decode_packbits);
    CHECK(cogpu_codec_find(COMPRESSION_CCITT_RLE)->decode == cogpu_decode_ccitt);
    CHECK(cogpu_codec_find(COMPRESSION_CCITT_G3)->decode == cogpu_decode_ccitt);
    CHECK(cogpu_codec_find(COMPRESSION_CCITT_G4)->decode == cogpu_decode_ccitt);
    CHECK(cogpu_codec_find(COMPRESSION_CCITT_RLEW)->decode == cogpu_decode_ccitt);
    CHECK_TEXT(cogpu_codec_library(cogpu_codec_find(COMPRESSION_LZW)), "own");
}

/* T082: both numbers of deflate mean the same. */
static void both_deflates(void) {
    const cogpu_codec_row *new = cogpu_codec_find(COMPRESSION_DEFLATE);
    const cogpu_codec_row *old = cogpu_codec_find(COMPRESSION_DEFLATE_OLD);
    CHECK(new->decode == old->decode);
    CHECK_TEXT(old->name, "deflate");
    CHECK(new->takes_predictor && old->takes_predictor);
}

static void known_by_name_only(void) {
    const uint32_t numbers[] = {COMPRESSION_NEXT, COMPRESSION_THUNDERSCAN, COMPRESSION_PIXARLOG,
                                COMPRESSION_JBIG, COMPRESSION_SGILOG,      COMPRESSION_SGILOG24};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        CHECK(cogpu_codec_find(numbers[i]) && !cogpu_codec_find(numbers[i])->decode);
    CHECK(cogpu_codec_find(0) == NULL);
    CHECK(cogpu_codec_find(65535) == NULL);
}

static void traits(void) {
    cogpu_codec info;
    for (uint32_t index = 0; cogpu_codec_info(index, &info) == COGPU_OK; index++) {
        const cogpu_codec_row *row = cogpu_codec_find(info.compression);
        const uint32_t number = row->compression;
        CHECK(row->takes_predictor == (number == COMPRESSION_LZW || number == COMPRESSION_DEFLATE ||
                                       number == COMPRESSION_DEFLATE_OLD ||
                                       number == COMPRESSION_ZSTD || number == COMPRESSION_LZMA));
        bool is_picture =
            number == COMPRESSION_JPEG || number == COMPRESSION_JPEG2000 ||
            (number >= COMPRESSION_APERIO_YCBCR && number <= COMPRESSION_APERIO_RGB) ||
            number == COMPRESSION_JXL_OLD || number == COMPRESSION_JXL;
        CHECK(row->holds_numbers == is_picture);
        CHECK(row->own_bit_order == (is_picture || number == COMPRESSION_OLD_JPEG));
    }
}

static void none_copies(void) {
    const uint8_t bytes[] = {1, 2, 3, 4, 5};
    CHECK(decodes_to(cogpu_decode_none, bytes, 5, bytes, 5, 5));
    CHECK(decodes_to(cogpu_decode_none, bytes, 5, bytes, 3, 3));
    CHECK(decodes_to(cogpu_decode_none, bytes, 5, bytes, 5, 9));
    CHECK(decodes_to(cogpu_decode_none, bytes, 0, bytes, 0, 9));
    CHECK(decodes_to(cogpu_decode_none, bytes, 5, bytes, 0, 0));
}

static void work_grows(void) {
    cogpu_codec_state state = {0};
    uint8_t *small = cogpu_codec_work(&state, 100);
    memset(small, 1, 100);
    CHECK(cogpu_codec_work(&state, 50) == small);
    uint8_t *large = cogpu_codec_work(&state, 100000);
    memset(large, 1, 100000);
    CHECK(state.work_bytes == 100000);
    CHECK(cogpu_codec_work(&state, SIZE_MAX) == NULL);
    CHECK(state.work_bytes == 0);
    CHECK(cogpu_codec_work(&state, 10) != NULL);
    cogpu_codec_state_close(&state);
    CHECK(state.work == NULL && state.work_bytes == 0);
    cogpu_codec_state_close(&state);
}

int main(void) {
    RUN(every_row_is_sound);
    RUN(ours_are_always_there);
    RUN(both_deflates);
    RUN(known_by_name_only);
    RUN(traits);
    RUN(none_copies);
    RUN(work_grows);
    return FINISH();
}
