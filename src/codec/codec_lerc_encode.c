/*
 * LERC encoder (compression 34887) by the LERC library: one blob per block, possibly packed with
 * deflate or zstd (tag 50674).
 *
 * The blob has version 4, as libtiff writes it: n values per pixel. LERC has no NaN; such a pixel
 * is outside the mask. If the bands of a pixel differ in it, one mask is not enough, and the block
 * becomes n bands of one value with a mask each, as in libtiff.
 *
 * The library keeps to the maximum error and then rounds to the sample's type, which may exceed it
 * if the steps of floats are not small beside it. So the library gets a little less. If nodata
 * could change into a valid number, or a valid number into nodata, the block is written lossless.
 */
#include "codec/codec.h"
#include "codec/lerc.h"

#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <string.h>

enum { BLOB_VERSION = 4 };

/* A block as it is given to the library. */
typedef struct lerc_image {
    const uint8_t *samples;
    const uint8_t *masks; /* a byte a pixel, 0 = invalid */
    uint32_t depth, bands, mask_count;
    double max_error;
} lerc_image;

/* What a block is like; all but nodata is of floats alone. */
enum { OCTAVES = 2048, OCTAVE_OF_1 = 1023, OCTAVE_SPECIAL = OCTAVES - 1 };
typedef struct survey {
    bool risks_nodata; /* an error could change it, or make it */
    bool has_nan;
    bool bands_differ;    /* some pixel is NaN in some of its bands, not in all */
    bool octave[OCTAVES]; /* some value has this exponent, as doubles count it */
} survey;

static double float_at(const uint8_t *in, cogpu_type type, size_t index) {
    float single;
    double real;
    if (type == COGPU_TYPE_F32) {
        memcpy(&single, in + index * sizeof single, sizeof single);
        return single;
    }
    memcpy(&real, in + index * sizeof real, sizeof real);
    return real;
}

static uint32_t octave_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 52 & (OCTAVES - 1);
}

static void survey_floats(const cogpu_block_format *format, const uint8_t *in, size_t pixels,
                          survey *found) {
    for (size_t i = 0; i < pixels; i++) {
        uint32_t nans = 0;
        for (uint32_t s = 0; s < format->samples; s++) {
            double value = float_at(in, format->type, i * format->samples + s);
            nans += isnan(value) != 0;
            found->octave[octave_of(value)] = true;
        }
        found->has_nan |= nans > 0;
        found->bands_differ |= nans > 0 && nans < format->samples;
    }
}

/* NaN has the masks. */
static bool risks_nodata(const cogpu_encoding *encoding) {
    cogpu_type type = encoding->format.type;
    bool is_nan =
        encoding->nodata && cogpu_type_is_float(type) && isnan(float_at(encoding->nodata, type, 0));
    return encoding->nodata && encoding->max_error > 0 && !is_nan;
}

static void survey_block(const cogpu_encoding *encoding, const uint8_t *in, survey *found) {
    const cogpu_block_format *format = &encoding->format;
    found->risks_nodata = risks_nodata(encoding);
    if (cogpu_type_is_float(format->type))
        survey_floats(format, in, (size_t)format->width * format->height, found);
}

/* What the library may be allowed, given that a value of this octave is there. The value x comes
 * back as the number of its type next to some x' within the error: either that adds half a step of
 * these numbers, or x' is so close to x that x is next to it. Doubles with few decimals the library
 * takes for multiples of 0.1, 0.01 ..., and then they may be off by a whole step. */
static double octave_limit(const cogpu_encoding *encoding, int octave) {
    bool is_double = encoding->format.type == COGPU_TYPE_F64;
    double step = ldexp(1, octave - OCTAVE_OF_1 + 1 - (is_double ? DBL_MANT_DIG : FLT_MANT_DIG));
    double rounded = encoding->max_error - (is_double ? step : step / 2);
    double exact = is_double && step < 1 ? 0 : step / 4;
    return rounded > exact ? rounded : exact;
}

/* The last factor is for the rounding of x' itself. Infinities always come back. */
static double allowed_error(const cogpu_encoding *encoding, const survey *found) {
    double allowed = encoding->max_error;
    for (int i = 0; i < OCTAVE_SPECIAL; i++)
        if (found->octave[i] && octave_limit(encoding, i) < allowed)
            allowed = octave_limit(encoding, i);
    return allowed * (1 - 1e-6);
}

static void mask_nan(const cogpu_block_format *format, const uint8_t *in, uint32_t band,
                     uint8_t *mask, size_t pixels) {
    for (size_t i = 0; i < pixels; i++)
        mask[i] = (uint8_t)!isnan(float_at(in, format->type, i * format->samples + band));
}

static void part_bands(const cogpu_block_format *format, const uint8_t *in, size_t pixels,
                       uint8_t *samples) {
    size_t bytes = cogpu_type_bytes(format->type);
    for (uint32_t band = 0; band < format->samples; band++)
        for (size_t i = 0; i < pixels; i++, samples += bytes)
            memcpy(samples, in + (i * format->samples + band) * bytes, bytes);
}

/* Where an encode works: bands one after the other and a byte of mask a sample, where there are
 * NaN; the block decoded again, where nodata is at risk; a blob that is to be packed. */
typedef struct lerc_encode_buffers {
    uint8_t *samples, *decoded, *masks, *blob;
    size_t blob_bytes;
} lerc_encode_buffers;

static cogpu_status allocate_encode_buffers(cogpu_codec_state *state,
                                            const cogpu_block_format *format, size_t block_bytes,
                                            const survey *found, lerc_encode_buffers *work,
                                            cogpu_error *error) {
    size_t sample_bytes = found->bands_differ ? block_bytes : 0;
    size_t decoded_bytes = found->risks_nodata ? block_bytes : 0;
    size_t mask_bytes = found->has_nan ? block_bytes / cogpu_type_bytes(format->type) : 0;
    work->blob_bytes =
        format->lerc_packing != PACKED_NOT ? (size_t)cogpu_lerc_bound(format, block_bytes) : 0;
    uint8_t *memory =
        cogpu_codec_work(state, sample_bytes + decoded_bytes + mask_bytes + work->blob_bytes + 1);
    if (!memory)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "LERC: no memory for a block");
    work->samples = memory;
    work->decoded = memory + sample_bytes;
    work->masks = work->decoded + decoded_bytes;
    work->blob = work->masks + mask_bytes;
    return COGPU_OK;
}

static lerc_image arrange_image(const cogpu_encoding *encoding, const uint8_t *in,
                                const survey *found, const lerc_encode_buffers *work) {
    const cogpu_block_format *format = &encoding->format;
    size_t pixels = (size_t)format->width * format->height;
    lerc_image p = {in, NULL, format->samples, 1, 0, encoding->max_error};
    if (cogpu_type_is_float(format->type))
        p.max_error = allowed_error(encoding, found);
    if (!found->has_nan)
        return p;
    if (found->bands_differ) {
        part_bands(format, in, pixels, work->samples);
        p.samples = work->samples;
        p.depth = 1;
        p.bands = format->samples;
    }
    p.masks = work->masks;
    p.mask_count = p.bands;
    for (uint32_t band = 0; band < p.bands; band++)
        mask_nan(format, in, band, work->masks + band * pixels, pixels);
    return p;
}

static cogpu_lerc_shape shape_of(const cogpu_block_format *format, const lerc_image *p) {
    return (cogpu_lerc_shape){.type = cogpu_lerc_type(format->type),
                              .depth = p->depth,
                              .width = format->width,
                              .height = format->height,
                              .bands = p->bands,
                              .masks = p->mask_count};
}

/* The library does not write the last bytes of some blobs, so they are zeroed before. */
static cogpu_status write_blob(const cogpu_block_format *format, const lerc_image *p, uint8_t *out,
                               size_t out_bytes, size_t *got, cogpu_error *error) {
    const cogpu_lerc_shape shape = shape_of(format, p);
    uint32_t written = 0, capacity = out_bytes < UINT32_MAX ? (uint32_t)out_bytes : UINT32_MAX;
    memset(out, 0, capacity);
    TRY(cogpu_lerc_explain(cogpu_lerc_write(&shape, BLOB_VERSION, p->samples, p->masks,
                                            p->max_error, out, capacity, &written),
                           COGPU_UNSUPPORTED, "LERC refuses a block", error));
    *got = written;
    return COGPU_OK;
}

static cogpu_status check_nodata(const cogpu_encoding *encoding, const lerc_image *p,
                                 const lerc_encode_buffers *work, const uint8_t *blob,
                                 size_t blob_bytes, bool *is_kept, cogpu_error *error) {
    const cogpu_block_format *format = &encoding->format;
    const cogpu_lerc_shape shape = shape_of(format, p);
    size_t bytes = cogpu_type_bytes(format->type);
    uint32_t result = cogpu_lerc_read(&shape, blob, (uint32_t)blob_bytes,
                                      p->masks ? work->masks : NULL, work->decoded);
    *is_kept = result == 0;
    if (result != 0)
        return result == COGPU_LERC_MEMORY
                   ? cogpu_lerc_explain(result, COGPU_OUT_OF_MEMORY, "", error)
                   : COGPU_OK;
    for (size_t i = 0; *is_kept && i < format->height * format->row_bytes; i += bytes)
        if ((memcmp(p->samples + i, encoding->nodata, bytes) == 0) !=
            (memcmp(work->decoded + i, encoding->nodata, bytes) == 0))
            *is_kept = false;
    return COGPU_OK;
}

static cogpu_status write_checked(const cogpu_encoding *encoding, const survey *found,
                                  lerc_image *p, const lerc_encode_buffers *work, uint8_t *out,
                                  size_t out_bytes, size_t *got, cogpu_error *error) {
    bool is_kept = true;
    TRY(write_blob(&encoding->format, p, out, out_bytes, got, error));
    if (found->risks_nodata)
        TRY(check_nodata(encoding, p, work, out, *got, &is_kept, error));
    if (is_kept)
        return COGPU_OK;
    p->max_error = 0;
    return write_blob(&encoding->format, p, out, out_bytes, got, error);
}

/* The codec that compresses the blob. */
static const cogpu_codec_row *packer_of(const cogpu_block_format *format) {
    return cogpu_codec_find(format->lerc_packing == PACKED_ZSTD ? COMPRESSION_ZSTD
                                                                : COMPRESSION_DEFLATE);
}

/* The packers do not use the working memory of the state, which holds the blob. */
static cogpu_status pack_blob(cogpu_codec_state *state, const cogpu_encoding *encoding,
                              const uint8_t *blob, size_t blob_bytes, uint8_t *out,
                              size_t out_bytes, size_t *got, cogpu_error *error) {
    const cogpu_codec_row *packer = packer_of(&encoding->format);
    cogpu_encoding packing = *encoding;
    if (packing.level == 0)
        packing.level = packer->default_level;
    return packer->encoder->encode(state, &packing, blob, blob_bytes, out, out_bytes, got, error);
}

/* LERC 4.0 converts negative doubles to uint32_t if it encodes the differences between samples of a
 * pixel. That is undefined in C++: x86-64 wraps around, AArch64 saturates, and the library fails or
 * crashes. libtiff does not read n bands of one value without masks, so there is no way around. */
static bool breaks_library(const cogpu_block_format *format) {
#if defined(__x86_64__)
    (void)format;
    return false;
#else
    return format->type == COGPU_TYPE_U32 && format->samples > 1;
#endif
}

static cogpu_status check_lerc_block(const cogpu_encoding *encoding, size_t block_bytes,
                                     cogpu_error *error) {
    const cogpu_block_format *format = &encoding->format;
    if (cogpu_lerc_type(format->type) == LERC_NONE)
        return cogpu_fail(error, COGPU_UNSUPPORTED, "LERC has no samples of %s",
                          cogpu_type_name(format->type));
    if (breaks_library(format))
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "LERC cannot encode pixels of several uint32 samples on this CPU; "
                          "interleave by band, or take another codec");
    if (cogpu_lerc_bound(format, block_bytes) > INT_MAX)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "LERC: a block of %zu bytes; it ends at 2 GiB, take smaller ones",
                          block_bytes);
    if (format->lerc_packing != PACKED_NOT && !packer_of(format)->encoder)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "LERC packed with a codec that this build lacks");
    return COGPU_OK;
}

static cogpu_status encode_lerc(cogpu_codec_state *state, const cogpu_encoding *encoding,
                                const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                                size_t *got, cogpu_error *error) {
    const cogpu_block_format *format = &encoding->format;
    bool packed = format->lerc_packing != PACKED_NOT;
    survey found = {0};
    lerc_encode_buffers work = {0};
    size_t blob_bytes = 0;
    assert(in_bytes == format->height * format->row_bytes);
    *got = 0;
    TRY(check_lerc_block(encoding, in_bytes, error));
    survey_block(encoding, in, &found);
    TRY(allocate_encode_buffers(state, format, in_bytes, &found, &work, error));
    lerc_image p = arrange_image(encoding, in, &found, &work);
    if (!packed)
        return write_checked(encoding, &found, &p, &work, out, out_bytes, got, error);
    TRY(write_checked(encoding, &found, &p, &work, work.blob, work.blob_bytes, &blob_bytes, error));
    return pack_blob(state, encoding, work.blob, blob_bytes, out, out_bytes, got, error);
}

static uint64_t bound_lerc(const cogpu_encoding *encoding, uint64_t in_bytes) {
    uint64_t bytes = cogpu_lerc_bound(&encoding->format, in_bytes);
    const cogpu_encoder *packer =
        encoding->format.lerc_packing != PACKED_NOT ? packer_of(&encoding->format)->encoder : NULL;
    return packer ? packer->bound(encoding, bytes) : bytes;
}

/* LercParameters: version of the blob, and how it is packed. */
static cogpu_status make_parameters_tag(const cogpu_encoding *encoding, cogpu_codec_tag *tag,
                                        cogpu_error *error) {
    enum { TAG_LERC_PARAMETERS = 50674, TYPE_LONG = 4 };
    (void)error;
    const uint32_t parameters[] = {BLOB_VERSION, encoding->format.lerc_packing};
    tag->id = TAG_LERC_PARAMETERS;
    tag->type = TYPE_LONG;
    tag->count = 2;
    memcpy(tag->values, parameters, sizeof parameters);
    return COGPU_OK;
}

const cogpu_encoder cogpu_encoder_lerc = {
    .encode = encode_lerc, .bound = bound_lerc, .make_tag = make_parameters_tag};
