/* The table of codecs, the state that they share, and the codec that does nothing. */
#include "support/codec_test.h"

static void every_row_is_complete(void) {
    cogpu_codec info = COGPU_CODEC_INIT;
    uint32_t index = 0;
    for (; cogpu_codec_info(index, &info, NULL) == COGPU_OK; index++) {
        const cogpu_codec_row *row = cogpu_codec_find(info.compression);
        CHECK(row != NULL && row->compression == info.compression);
        CHECK(info.name[0] != '\0' && cogpu_codec_named(info.name) != NULL);
        CHECK(!info.can_decode || info.library[0] != '\0');
        CHECK(!info.can_encode || info.can_decode);
        CHECK(!info.can_encode || info.encode_types != 0);
        CHECK(info.min_level <= info.default_level && info.default_level <= info.max_level);
        CHECK((info.min_level == 0) == (info.max_level == 0));
        CHECK(info.predictors & 1 << 1);
    }
    CHECK(index == 29);
    CHECK(cogpu_codec_info(index, &info, NULL) == COGPU_NOT_FOUND);
    CHECK(cogpu_codec_info(UINT32_MAX, &info, NULL) == COGPU_NOT_FOUND);
    CHECK(cogpu_codec_info(0, NULL, NULL) == COGPU_INVALID_ARGUMENT);
}

static bool codec_called(const char *name, cogpu_codec *info) {
    for (uint32_t i = 0; cogpu_codec_info(i, info, NULL) == COGPU_OK; i++)
        if (strcmp(info->name, name) == 0)
            return true;
    return false;
}

/* What the command line and Python build their options of. */
static void facts_for_writers(void) {
    cogpu_codec info = COGPU_CODEC_INIT;
    CHECK(codec_called("deflate", &info));
    CHECK(info.min_level == 1 && info.max_level == 12 && info.default_level == 6);
    CHECK(info.predictors == (1 << 1 | 1 << 2 | 1 << 3) && !info.is_lossy && info.gpu_encode);
    CHECK(codec_called("jpeg", &info));
    CHECK(info.has_quality && info.is_lossy && !info.has_max_z_error && info.max_level == 0);
    CHECK(info.encode_types == 1 << COGPU_TYPE_U8 && info.predictors == 1 << 1);
    CHECK(codec_called("lerc_zstd", &info));
    CHECK(info.compression == COMPRESSION_LERC && info.has_max_z_error && info.max_level == 22);
    CHECK(!(info.encode_types >> COGPU_TYPE_CF32 & 1) && info.encode_types >> COGPU_TYPE_F32 & 1);
    CHECK(codec_called("jpeg2000", &info) && !info.can_encode);
    CHECK(!codec_called("zip", &info));
}

static void names_and_aliases(void) {
    uint32_t number = 0;
    CHECK(cogpu_codec_parse("deflate", &number, NULL) == COGPU_OK && number == COMPRESSION_DEFLATE);
    CHECK(cogpu_codec_parse("ZSTD", &number, NULL) == COGPU_OK && number == COMPRESSION_ZSTD);
    CHECK(cogpu_codec_parse("CCITTFAX4", &number, NULL) == COGPU_OK &&
          number == COMPRESSION_CCITT_G4);
    CHECK(cogpu_codec_parse("lerc_zstd", &number, NULL) == COGPU_OK && number == COMPRESSION_LERC);
    number = 77;
    CHECK(cogpu_codec_parse("zip", &number, NULL) == COGPU_INVALID_ARGUMENT && number == 77);
    CHECK(cogpu_codec_parse("", &number, NULL) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_codec_parse("deflat", &number, NULL) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_codec_parse("deflate ", &number, NULL) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_codec_parse(NULL, &number, NULL) == COGPU_INVALID_ARGUMENT);
}

static bool has_own_code(const cogpu_codec_row *row) {
    return row->encoder && strcmp(row->library, "own") == 0;
}

static void lists_of_names(void) {
    char text[64], small[8];
    cogpu_codec_list_names(has_own_code, text, sizeof text);
    CHECK_TEXT(text, "none, packbits, lzw");
    cogpu_codec_list_names(has_own_code, small, sizeof small);
    CHECK_TEXT(small, "none, p");
}

static void ours_are_always_there(void) {
    CHECK(cogpu_codec_find(COMPRESSION_NONE)->decode == cogpu_decode_none);
    CHECK(cogpu_codec_find(COMPRESSION_LZW)->decode == cogpu_decode_lzw);
    CHECK(cogpu_codec_find(COMPRESSION_PACKBITS)->decode == cogpu_decode_packbits);
    CHECK(cogpu_codec_find(COMPRESSION_CCITT_RLE)->decode == cogpu_decode_ccitt);
    CHECK(cogpu_codec_find(COMPRESSION_CCITT_G3)->decode == cogpu_decode_ccitt);
    CHECK(cogpu_codec_find(COMPRESSION_CCITT_G4)->decode == cogpu_decode_ccitt);
    CHECK(cogpu_codec_find(COMPRESSION_CCITT_RLEW)->decode == cogpu_decode_ccitt);
    CHECK_TEXT(cogpu_codec_find(COMPRESSION_LZW)->library, "own");
}

/* T082: both numbers of deflate mean the same. */
static void both_deflates(void) {
    const cogpu_codec_row *new = cogpu_codec_find(COMPRESSION_DEFLATE);
    const cogpu_codec_row *old = cogpu_codec_find(COMPRESSION_DEFLATE_OLD);
    CHECK(new->decode == old->decode);
    CHECK_TEXT(old->name, "deflate");
    CHECK(new->allows_predictor && old->allows_predictor);
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
    cogpu_codec info = COGPU_CODEC_INIT;
    for (uint32_t index = 0; cogpu_codec_info(index, &info, NULL) == COGPU_OK; index++) {
        const cogpu_codec_row *row = cogpu_codec_find(info.compression);
        const uint32_t number = row->compression;
        CHECK(row->allows_predictor ==
              (number == COMPRESSION_LZW || number == COMPRESSION_DEFLATE ||
               number == COMPRESSION_DEFLATE_OLD || number == COMPRESSION_ZSTD ||
               number == COMPRESSION_LZMA));
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

TESTS(codec) {
    RUN(every_row_is_complete);
    RUN(facts_for_writers);
    RUN(names_and_aliases);
    RUN(lists_of_names);
    RUN(ours_are_always_there);
    RUN(both_deflates);
    RUN(known_by_name_only);
    RUN(traits);
    RUN(none_copies);
    RUN(work_grows);
    return FINISH();
}
