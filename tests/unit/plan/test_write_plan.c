/* Write plans accept of each codec what its row says, and refuse the rest by name. */
#include "plan/write_plan.h"

#include "support/test.h"

static cogpu_error error;

static cogpu_profile profile_of(const char *codec, cogpu_type type) {
    return (cogpu_profile){.struct_size = sizeof(cogpu_profile),
                           .width = 1000,
                           .height = 700,
                           .bands = 3,
                           .type = type,
                           .codec = codec};
}

static bool is_planned(const cogpu_profile *profile) {
    cogpu_write_plan plan;
    cogpu_status status = cogpu_plan_write(profile, &plan, &error);
    CHECK(status == COGPU_OK || status == COGPU_INVALID_ARGUMENT);
    return status == COGPU_OK;
}

/* A type that the codec can encode. */
static cogpu_type type_of(const cogpu_codec *codec) {
    return codec->encode_types >> COGPU_TYPE_U8 & 1 ? COGPU_TYPE_U8 : COGPU_TYPE_NONE;
}

static void check_types(const cogpu_codec *codec) {
    for (int type = COGPU_TYPE_NONE + 1; type < COGPU_TYPE_COUNT; type++) {
        cogpu_profile profile = profile_of(codec->name, (cogpu_type)type);
        CHECK(is_planned(&profile) == (codec->encode_types >> type & 1));
    }
}

static void check_levels(const cogpu_codec *codec) {
    for (int level = -1; level <= 30; level++) {
        cogpu_profile profile = profile_of(codec->name, type_of(codec));
        profile.compression_level = level;
        bool is_level = codec->min_level <= level && level <= codec->max_level;
        CHECK(is_planned(&profile) == (level == 0 || is_level));
    }
}

static void check_options(const cogpu_codec *codec) {
    cogpu_profile profile = profile_of(codec->name, type_of(codec));
    profile.quality = 50;
    CHECK(is_planned(&profile) == (codec->has_quality != 0));
    profile = profile_of(codec->name, type_of(codec));
    profile.max_z_error = 1;
    CHECK(is_planned(&profile) == (codec->has_max_z_error != 0));
    profile = profile_of(codec->name, type_of(codec));
    for (int predictor = 1; predictor <= 2; predictor++) {
        profile.predictor = predictor;
        CHECK(is_planned(&profile) == (codec->predictors >> predictor & 1));
    }
    profile = profile_of(codec->name, type_of(codec));
    profile.bits = 4;
    CHECK(is_planned(&profile) == (!codec->is_lossy && !codec->has_max_z_error));
}

static void rows_and_plans_agree(void) {
    cogpu_codec codec = COGPU_CODEC_INIT;
    int written = 0;
    for (uint32_t i = 0; cogpu_codec_info(i, &codec, NULL) == COGPU_OK; i++) {
        if (!codec.can_encode)
            continue;
        check_types(&codec);
        check_levels(&codec);
        check_options(&codec);
        written++;
    }
    CHECK(written >= 3); /* none, packbits and lzw need no library */
}

static void defaults(void) {
    cogpu_write_plan plan;
    cogpu_profile profile = profile_of("LZW", COGPU_TYPE_F32);
    CHECK(cogpu_plan_write(&profile, &plan, &error) == COGPU_OK);
    CHECK(plan.predictor == 3 && plan.resampling == COGPU_RESAMPLE_AVERAGE &&
          plan.encoding.level == 0);
    profile.type = COGPU_TYPE_CF32;
    CHECK(cogpu_plan_write(&profile, &plan, &error) == COGPU_OK);
    CHECK(plan.predictor == 1 && plan.resampling == COGPU_RESAMPLE_NEAREST);
    profile = profile_of("lzma", COGPU_TYPE_U16); /* GDAL misreads its predictors in threads */
    if (cogpu_plan_write(&profile, &plan, &error) == COGPU_OK)
        CHECK(plan.predictor == 1 && plan.encoding.level == 6);
}

static void messages(void) {
    cogpu_write_plan plan;
    cogpu_profile profile = profile_of("zip", COGPU_TYPE_U8);
    CHECK(cogpu_plan_write(&profile, &plan, &error) == COGPU_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "there is no codec `zip`: choose one of none, packbits, lzw"));
    profile.codec = "ccitt_g4";
    CHECK(cogpu_plan_write(&profile, &plan, &error) == COGPU_UNSUPPORTED);
    CHECK(strstr(error.message, "ccitt_g4 cannot be written"));
    profile = profile_of("jpeg", COGPU_TYPE_U8);
    profile.bands = 13;
    if (cogpu_codec_find(COMPRESSION_JPEG)->encoder) {
        CHECK(cogpu_plan_write(&profile, &plan, &error) == COGPU_INVALID_ARGUMENT);
        CHECK_TEXT(error.message,
                   "jpeg stores 1, 3 or 4 interleaved bands, not 13: set `interleave` to "
                   "band, or choose another codec");
    }
}

TESTS(write_plan) {
    RUN(rows_and_plans_agree);
    RUN(defaults);
    RUN(messages);
    return FINISH();
}
