/*
 * How blocks are encoded: compares the profile with the row of its codec. What a codec can do is
 * written in codec/codec.c alone.
 */
#include "plan/write_steps.h"

#include <stdio.h>

enum { QUALITY_DEFAULT = 75, NAMES_BYTES = 128 };

static bool can_encode(const cogpu_codec_row *codec) {
    return codec->encoder != NULL;
}

static bool has_quality(const cogpu_codec_row *codec) {
    return codec->has_quality;
}

static bool has_max_error(const cogpu_codec_row *codec) {
    return codec->has_max_error;
}

static cogpu_status find_codec(const cogpu_profile *profile, cogpu_write_plan *plan,
                               cogpu_error *error) {
    const char *name = profile->codec ? profile->codec : "deflate";
    const cogpu_codec_row *codec = cogpu_codec_named(name);
    char names[NAMES_BYTES];
    bool lacks_library = codec && !codec->decode && codec->library[0];
    if (lacks_library)
        return cogpu_fail(error, COGPU_UNSUPPORTED, "%s cannot be written: this build lacks %s",
                          name, codec->library);
    cogpu_codec_list_names(can_encode, names, sizeof names);
    if (!codec)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "there is no codec `%.40s`: choose one of %s", name, names);
    if (!codec->encoder)
        return cogpu_fail(error, COGPU_UNSUPPORTED, "%s cannot be written: choose one of %s",
                          codec->name, names);
    plan->codec = codec;
    plan->encoding.format.compression = codec->compression;
    plan->encoding.format.lerc_packing = codec->lerc_packing;
    return COGPU_OK;
}

/* A value that the codec does not use is a mistake of the caller. */
static cogpu_status check_losses(const cogpu_profile *profile, const cogpu_codec_row *codec,
                                 cogpu_error *error) {
    char names[NAMES_BYTES];
    if (profile->quality && !codec->has_quality) {
        cogpu_codec_list_names(has_quality, names, sizeof names);
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "%s has no quality: leave `quality` out, or choose one of %s",
                          codec->name, names);
    }
    if (profile->max_z_error > 0 && !codec->has_max_error) {
        cogpu_codec_list_names(has_max_error, names, sizeof names);
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "%s has no maximum error: leave `max_z_error` out, or choose one of %s",
                          codec->name, names);
    }
    if (profile->lossless && codec->is_lossy && !codec->has_lossless)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "%s is always lossy: leave `lossless` out, or choose another codec",
                          codec->name);
    return COGPU_OK;
}

static cogpu_status check_level(const cogpu_profile *profile, const cogpu_codec_row *codec,
                                cogpu_error *error) {
    if (profile->compression_level && codec->max_level == 0)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "%s has no levels: leave `compression_level` out", codec->name);
    if (profile->compression_level && (profile->compression_level < codec->min_level ||
                                       profile->compression_level > codec->max_level))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "%s: `compression_level` must be between %d and %d, got %d", codec->name,
                          codec->min_level, codec->max_level, profile->compression_level);
    return COGPU_OK;
}

static cogpu_status plan_parameters(const cogpu_profile *profile, cogpu_write_plan *plan,
                                    cogpu_error *error) {
    const cogpu_codec_row *codec = plan->codec;
    cogpu_encoding *encoding = &plan->encoding;
    TRY(check_level(profile, codec, error));
    if (profile->quality < 0 || profile->quality > 100)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "`quality` must be between 1 and 100, got %d", profile->quality);
    if (!(profile->max_z_error >= 0 && profile->max_z_error <= 1e300))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "`max_z_error` must be a number of at least 0");
    TRY(check_losses(profile, codec, error));
    encoding->level =
        profile->compression_level ? profile->compression_level : codec->default_level;
    encoding->quality = profile->quality ? profile->quality : QUALITY_DEFAULT;
    encoding->lossless = profile->lossless;
    encoding->max_error = profile->max_z_error;
    return COGPU_OK;
}

/* "1, 3 or 4" of a mask with bits 1 << count. */
static void list_counts(uint32_t mask, char *text, size_t bytes) {
    size_t used = 0;
    text[0] = 0;
    for (uint32_t count = 0; count < 32 && used < bytes; count++) {
        if (!(mask >> count & 1))
            continue;
        bool is_last = mask >> count == 1;
        used += (size_t)snprintf(text + used, bytes - used, "%s%u",
                                 !used     ? ""
                                 : is_last ? " or "
                                           : ", ",
                                 count);
    }
}

static cogpu_status check_samples(const cogpu_profile *profile, const cogpu_codec_row *codec,
                                  cogpu_error *error) {
    uint32_t samples = profile->interleave == COGPU_INTERLEAVE_BAND ? 1 : profile->bands,
             counts = codec->encode_samples;
    char text[32];
    if (!(codec->encode_types >> profile->type & 1))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "%s stores no samples of %s: choose another codec", codec->name,
                          cogpu_type_name(profile->type));
    if (!counts || (samples < 32 && counts >> samples & 1))
        return COGPU_OK;
    list_counts(counts, text, sizeof text);
    return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                      "%s stores %s interleaved bands, not %u: %schoose another codec", codec->name,
                      text, samples, counts & 1 << 1 ? "set `interleave` to band, or " : "");
}

/* Fewer bits than the type has; 0: all. */
static cogpu_status check_bits(const cogpu_profile *profile, const cogpu_codec_row *codec,
                               cogpu_error *error) {
    uint32_t bits = profile->bits, all = (uint32_t)cogpu_type_bytes(profile->type) * 8;
    bool is_byte = profile->type == COGPU_TYPE_U8, is_short = profile->type == COGPU_TYPE_U16;
    if (bits == 0 || bits == all)
        return COGPU_OK;
    if (!(is_byte && bits < 8) && !(is_short && bits > 8 && bits < 16))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "%s cannot be stored in %u bits: uint8 can in 1 to 7, uint16 in 9 to 15",
                          cogpu_type_name(profile->type), bits);
    if (!codec->allows_packed_samples)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "%s stores no samples of %u bits: leave `bits` out, or choose another "
                          "codec",
                          codec->name, bits);
    if (profile->predictor > 1)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "predictor %d is not for samples of %u bits: leave it out, or `bits`",
                          profile->predictor, bits);
    return COGPU_OK;
}

static cogpu_status plan_predictor(const cogpu_profile *profile, cogpu_write_plan *plan,
                                   cogpu_error *error) {
    const cogpu_codec_row *codec = plan->codec;
    bool allows_2 = codec->allows_predictor && !cogpu_type_is_complex(profile->type) &&
                    !cogpu_plan_is_packed(plan);
    bool allows_3 = allows_2 && cogpu_type_is_float(profile->type);
    if (profile->predictor < 0 || profile->predictor > 3)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "there is no predictor %d: 1 is none, 2 horizontal, 3 floating point",
                          profile->predictor);
    if (profile->predictor > 1 && !codec->allows_predictor)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "%s has no predictor: leave `predictor` out", codec->name);
    if ((profile->predictor == 2 && !allows_2) || (profile->predictor == 3 && !allows_3))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "predictor %d is not for %s: leave `predictor` out for the one that fits",
                          profile->predictor, cogpu_type_name(profile->type));
    uint32_t fitting = codec->avoids_predictor         ? 1
                       : allows_3                      ? 3
                       : allows_2 && !profile->palette ? 2
                                                       : 1;
    plan->predictor = profile->predictor ? (uint32_t)profile->predictor : fitting;
    return COGPU_OK;
}

cogpu_status cogpu_plan_codec(const cogpu_profile *profile, cogpu_write_plan *plan,
                              cogpu_error *error) {
    TRY(find_codec(profile, plan, error));
    TRY(plan_parameters(profile, plan, error));
    TRY(check_samples(profile, plan->codec, error));
    TRY(check_bits(profile, plan->codec, error));
    cogpu_block_format *format = &plan->encoding.format;
    format->samples = profile->interleave == COGPU_INTERLEAVE_BAND ? 1 : profile->bands;
    format->bits = profile->bits ? profile->bits : (uint32_t)cogpu_type_bytes(profile->type) * 8;
    format->type = profile->type;
    format->fill_order = format->subsampling_x = format->subsampling_y = 1;
    return plan_predictor(profile, plan, error);
}
