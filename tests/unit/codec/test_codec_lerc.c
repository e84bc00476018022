/* The LERC codec, against blobs that the LERC library writes here; then its encoder. Traps T095,
 * T096, T210. */
#include "support/encoder_test.h"

#if COGPU_HAVE_LERC
#include <Lerc_c_api.h>
#include <math.h>
#if COGPU_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif
#if COGPU_HAVE_ZSTD
#include <zstd.h>
#endif

enum { WIDTH = 19, HEIGHT = 13, PIXELS = WIDTH * HEIGHT, BANDS_MAX = 4 };
enum { BYTES_MAX = PIXELS * BANDS_MAX * 8 };

static cogpu_block_format format;
static _Alignas(16) uint8_t pixels[BYTES_MAX];
static uint8_t valid[PIXELS * BANDS_MAX], blob[BYTES_MAX * 2], packed[BYTES_MAX * 2];
static unsigned int blob_bytes;

static cogpu_decode lerc;
static cogpu_status lerc(cogpu_codec_state *state, const cogpu_block_format *none,
                         const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                         size_t *got, cogpu_error *error) {
    (void)none;
    return cogpu_decode_lerc(state, &format, in, in_bytes, out, out_bytes, got, error);
}

/* In the order of LERC's numbers. */
static const cogpu_type types[] = {COGPU_TYPE_I8,  COGPU_TYPE_U8,  COGPU_TYPE_I16, COGPU_TYPE_U16,
                                   COGPU_TYPE_I32, COGPU_TYPE_U32, COGPU_TYPE_F32, COGPU_TYPE_F64};
enum { TYPE_U8 = 1, TYPE_I16 = 2, TYPE_F32 = 6, TYPE_F64 = 7, TYPES = 8 };

static void expect_block(uint32_t width, uint32_t height, uint32_t samples, int type) {
    size_t sample = cogpu_type_bytes(types[type]);
    format = (cogpu_block_format){.width = width,
                                  .height = height,
                                  .samples = samples,
                                  .bits = (uint32_t)sample * 8,
                                  .type = types[type],
                                  .row_bytes = sample * width * samples,
                                  .compression = COMPRESSION_LERC};
}

static size_t block_bytes(void) {
    return format.row_bytes * format.height;
}

static void write_value(uint8_t *to, int type, int value) {
    float single = (float)value + 0.25f;
    double real = value + 0.125;
    if (type == TYPE_F32)
        memcpy(to, &single, sizeof single);
    else if (type == TYPE_F64)
        memcpy(to, &real, sizeof real);
    else
        memcpy(to, &value, cogpu_type_bytes(types[type]));
}

static void fill_pixels(int type, int count) {
    size_t sample = cogpu_type_bytes(types[type]);
    for (int i = 0; i < count; i++)
        write_value(pixels + sample * (size_t)i, type, 3 + i * i % 113);
}

/* The library cannot encode this on other CPUs: codec_lerc_encode.c says why. */
static bool breaks_library(int type, int samples) {
#if defined(__x86_64__)
    (void)type, (void)samples;
    return false;
#else
    return types[type] == COGPU_TYPE_U32 && samples > 1;
#endif
}

static void write_blob(int type, int depth, int bands, int masks) {
    CHECK(lerc_encode(pixels, (unsigned int)type, depth, WIDTH, HEIGHT, bands, masks,
                      masks ? valid : NULL, 0, blob, sizeof blob, &blob_bytes) == 0);
}

static int gives(const uint8_t *expected) {
    return decodes_to(lerc, blob, blob_bytes, expected, block_bytes(), block_bytes());
}

static cogpu_status status_now(void) {
    return decode_status(lerc, blob, blob_bytes, block_bytes());
}

static void every_type(void) {
    for (int type = 0; type < TYPES; type++) {
        for (int samples = 1; samples <= BANDS_MAX; samples++) {
            if (breaks_library(type, samples))
                continue;
            fill_pixels(type, PIXELS * samples);
            write_blob(type, samples, 1, 0);
            expect_block(WIDTH, HEIGHT, (uint32_t)samples, type);
            CHECK(gives(pixels));
            CHECK(decode_status(lerc, blob, blob_bytes, block_bytes() - 1) == COGPU_CORRUPT);
            blob[blob_bytes] = 0;
            CHECK(decodes_to(lerc, blob, blob_bytes + 1, pixels, block_bytes(), block_bytes()));
        }
    }
}

static void other_types(void) {
    const cogpu_type foreign[] = {COGPU_TYPE_U64, COGPU_TYPE_I64, COGPU_TYPE_F16, COGPU_TYPE_CF32,
                                  COGPU_TYPE_NONE};
    fill_pixels(TYPE_U8, PIXELS);
    write_blob(TYPE_U8, 1, 1, 0);
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        expect_block(WIDTH, HEIGHT, 1, TYPE_U8);
        format.type = foreign[i];
        CHECK(status_now() == COGPU_UNSUPPORTED);
    }
    for (int type = 0; type < TYPES; type++) {
        expect_block(WIDTH, HEIGHT, 1, type);
        CHECK((status_now() == COGPU_OK) == (type == TYPE_U8));
    }
}

/* Bands one after the other in the blob, pixel by pixel in the block. */
static void interleave(uint8_t *to, int type, int samples) {
    size_t sample = cogpu_type_bytes(types[type]);
    for (int band = 0; band < samples; band++)
        for (int i = 0; i < PIXELS; i++)
            memcpy(to + sample * (size_t)(i * samples + band),
                   pixels + sample * (size_t)(band * PIXELS + i), sample);
}

static void bands_of_one_value(void) {
    static uint8_t expected[BYTES_MAX];
    for (int type = 0; type < TYPES; type++) {
        fill_pixels(type, PIXELS * 3);
        write_blob(type, 1, 3, 0);
        expect_block(WIDTH, HEIGHT, 3, type);
        interleave(expected, type, 3);
        CHECK(gives(expected));
        expect_block(WIDTH, HEIGHT, 2, type);
        CHECK(status_now() == COGPU_CORRUPT);
    }
}

static void make_invalid(int from, int step) {
    memset(valid, 1, sizeof valid);
    for (int i = from; i < PIXELS * BANDS_MAX; i += step)
        valid[i] = 0;
}

/* T095: NaN in floats whatever nodata is, nodata in integers. */
static void invalid_pixels(void) {
    static uint8_t expected[BYTES_MAX];
    const float nan_float = nanf("");
    const double nan_double = nan("");
    make_invalid(2, 5);
    for (int type = 0; type < TYPES; type++) {
        for (int samples = 1; samples <= 3; samples++) {
            if (breaks_library(type, samples))
                continue;
            size_t sample = cogpu_type_bytes(types[type]);
            fill_pixels(type, PIXELS * samples);
            write_blob(type, samples, 1, 1);
            expect_block(WIDTH, HEIGHT, (uint32_t)samples, type);
            write_value(format.fill, type, 77);
            memcpy(expected, pixels, sizeof expected);
            for (int i = 0; i < PIXELS * samples; i++) {
                uint8_t *to = expected + sample * (size_t)i;
                if (valid[i / samples])
                    continue;
                memcpy(to, format.fill, sample);
                if (type == TYPE_F32)
                    memcpy(to, &nan_float, sample);
                if (type == TYPE_F64)
                    memcpy(to, &nan_double, sample);
            }
            CHECK(gives(expected));
        }
    }
}

/* T095: libtiff's way to write NaN that differs between bands. */
static void a_mask_each_band(void) {
    static uint8_t expected[BYTES_MAX];
    const float nan_float = nanf("");
    make_invalid(4, 7);
    fill_pixels(TYPE_F32, PIXELS * 3);
    write_blob(TYPE_F32, 1, 3, 3);
    expect_block(WIDTH, HEIGHT, 3, TYPE_F32);
    interleave(expected, TYPE_F32, 3);
    for (int i = 0; i < PIXELS * 3; i++)
        if (!valid[i])
            memcpy(expected + 4 * (size_t)(i % PIXELS * 3 + i / PIXELS), &nan_float, 4);
    CHECK(gives(expected));
    memset(valid, 0, sizeof valid);
    write_blob(TYPE_F32, 1, 1, 1);
    expect_block(WIDTH, HEIGHT, 1, TYPE_F32);
    for (size_t i = 0; i < PIXELS; i++)
        memcpy(expected + 4 * i, &nan_float, 4);
    CHECK(gives(expected));
}

/* libtiff's way to write an alpha band of 0 and 255. */
static void mask_as_alpha(void) {
    static uint8_t expected[BYTES_MAX];
    for (int masked = 0; masked < 2; masked++) {
        for (int colours = 1; colours <= 3; colours += 2) {
            make_invalid(masked ? 3 : INT16_MAX, 4);
            fill_pixels(TYPE_U8, PIXELS * colours);
            write_blob(TYPE_U8, colours, 1, masked);
            expect_block(WIDTH, HEIGHT, (uint32_t)colours + 1, TYPE_U8);
            for (int i = 0; i < PIXELS; i++) {
                for (int band = 0; band < colours; band++)
                    expected[i * (colours + 1) + band] = valid[i] ? pixels[i * colours + band] : 0;
                expected[i * (colours + 1) + colours] = valid[i] ? 255 : 0;
            }
            CHECK(gives(expected));
        }
    }
    fill_pixels(TYPE_I16, PIXELS * 3);
    write_blob(TYPE_I16, 3, 1, 0);
    expect_block(WIDTH, HEIGHT, 4, TYPE_I16);
    CHECK(status_now() == COGPU_CORRUPT);
}

/* T096, T210: a small blob that claims other sizes. */
static void other_sizes(void) {
    fill_pixels(TYPE_U8, PIXELS);
    write_blob(TYPE_U8, 1, 1, 0);
    const uint32_t sizes[][2] = {{WIDTH - 1, HEIGHT}, {WIDTH + 1, HEIGHT}, {WIDTH, HEIGHT - 1},
                                 {WIDTH, HEIGHT + 1}, {HEIGHT, WIDTH},     {0, 0}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        expect_block(sizes[i][0], sizes[i][1], 1, TYPE_U8);
        decoded result = decode(lerc, blob, blob_bytes, block_bytes());
        CHECK(result.status == COGPU_CORRUPT);
        CHECK(strstr(result.error.message, "pixels where the block has") != NULL);
        free(result.out);
    }
    expect_block(WIDTH, HEIGHT, 1, TYPE_U8);
    format.lerc_packing = 3;
    CHECK(status_now() == COGPU_UNSUPPORTED);

    static uint8_t flat[4096 * 4096];
    unsigned int small;
    CHECK(lerc_encode(flat, TYPE_U8, 1, 4096, 4096, 1, 0, NULL, 0, blob, sizeof blob, &small) == 0);
    CHECK(small < 200);
    expect_block(WIDTH, HEIGHT, 1, TYPE_U8);
    CHECK(decode_status(lerc, blob, small, block_bytes()) == COGPU_CORRUPT);
    expect_block(4096, 4096, 1, TYPE_U8);
    CHECK(decodes_to(lerc, blob, small, flat, block_bytes(), block_bytes()));
}

#if COGPU_HAVE_LIBDEFLATE
static size_t deflate_blob(void) {
    struct libdeflate_compressor *codec = libdeflate_alloc_compressor(6);
    size_t bytes = libdeflate_zlib_compress(codec, blob, blob_bytes, packed, sizeof packed);
    libdeflate_free_compressor(codec);
    return bytes;
}

static void packed_with_deflate(void) {
    for (int type = 0; type < TYPES; type++) {
        if (breaks_library(type, 3))
            continue;
        fill_pixels(type, PIXELS * 3);
        write_blob(type, 3, 1, 0);
        expect_block(WIDTH, HEIGHT, 3, type);
        format.lerc_packing = 1;
        size_t bytes = deflate_blob();
        CHECK(decodes_to(lerc, packed, bytes, pixels, block_bytes(), block_bytes()));
        CHECK(decode_status(lerc, packed, bytes - 1, block_bytes()) == COGPU_CORRUPT);
        CHECK(status_now() == COGPU_CORRUPT);
    }
    /* More inside than any blob of this block can have. */
    memset(blob, 0, sizeof blob);
    blob_bytes = sizeof blob;
    expect_block(1, 1, 1, TYPE_U8);
    format.lerc_packing = 1;
    CHECK(decode_status(lerc, packed, deflate_blob(), 1) == COGPU_CORRUPT);
}
#endif

#if COGPU_HAVE_ZSTD
static void packed_with_zstd(void) {
    for (int type = 0; type < TYPES; type++) {
        if (breaks_library(type, 2))
            continue;
        if (type >= TYPE_F32)
            fill_pixels(type, PIXELS * 2);
        else
            fill_bytes(pixels, sizeof pixels, 256, 0); /* hard to make smaller */
        make_invalid(3, 4);
        for (int masks = 0; masks < 2; masks++) {
            write_blob(type, 2, 1, masks);
            expect_block(WIDTH, HEIGHT, 2, type);
            format.lerc_packing = 2;
            size_t bytes = ZSTD_compress(packed, sizeof packed, blob, blob_bytes, 3);
            CHECK(decode_status(lerc, packed, bytes, block_bytes()) == COGPU_OK);
            CHECK(masks || decodes_to(lerc, packed, bytes, pixels, block_bytes(), block_bytes()));
            CHECK(decode_status(lerc, packed, bytes - 1, block_bytes()) == COGPU_CORRUPT);
        }
    }
}
#endif

static void truncated(void) {
    for (int type = 0; type < TYPES; type++) {
        if (breaks_library(type, 2))
            continue;
        fill_pixels(type, PIXELS * 2);
        write_blob(type, 2, 1, 0);
        expect_block(WIDTH, HEIGHT, 2, type);
        CHECK(prefixes_taken(lerc, blob, blob_bytes, pixels, block_bytes()) == 0);
    }
}

/* A blob has a checksum, but for its version: some bits of that turn it into another that is read.
 */
static void bits_flipped(void) {
    make_invalid(3, 11);
    for (int type = 0; type < TYPES; type++) {
        for (int masks = 0; masks < 2; masks++) {
            fill_pixels(type, PIXELS);
            write_blob(type, 1, 1, masks);
            expect_block(WIDTH, HEIGHT, 1, type);
            size_t unnoticed = flips_unnoticed(lerc, blob, blob_bytes, pixels, block_bytes());
            CHECK(masks || unnoticed <= 2);
        }
    }
}

/* The first generation of LERC, which no TIFF has. */
static void no_lerc2(void) {
    expect_block(WIDTH, HEIGHT, 1, TYPE_F32);
    memset(blob, 0, 300);
    memcpy(blob, "CntZImage ", 10);
    CHECK(decode_status(lerc, blob, 300, block_bytes()) == COGPU_CORRUPT);
    CHECK(decode_status(lerc, (const uint8_t *)"Lerc2 ", 6, block_bytes()) == COGPU_CORRUPT);
    CHECK(decode_status(lerc, blob, 0, block_bytes()) == COGPU_CORRUPT);
}

/* ---- the encoder ---- */

static cogpu_encoding encoding_of(uint32_t samples, int type, double max_error) {
    expect_block(WIDTH, HEIGHT, samples, type);
    return (cogpu_encoding){.format = format, .max_error = max_error};
}

static double value_at(const uint8_t *from, int type, size_t index) {
    double real = 0;
    float single;
    const uint8_t *at = from + index * cogpu_type_bytes(types[type]);
    uint32_t word = 0;
    memcpy(&word, at, type < TYPE_F64 ? cogpu_type_bytes(types[type]) : 4);
    switch (types[type]) {
    case COGPU_TYPE_F64:
        memcpy(&real, at, sizeof real);
        return real;
    case COGPU_TYPE_F32:
        memcpy(&single, at, sizeof single);
        return single;
    case COGPU_TYPE_I8:
        return (int8_t)word;
    case COGPU_TYPE_I16:
        return (int16_t)word;
    case COGPU_TYPE_I32:
        return (int32_t)word;
    default:
        return word;
    }
}

/* The largest difference between `pixels` and what comes back; -1 where NaN is not NaN. */
static double largest_error(cogpu_encoding encoding, int type) {
    double largest = 0;
    encode_result written = encode_twice(&cogpu_encoder_lerc, &encoding, pixels);
    CHECK(written.status == COGPU_OK);
    decoded result = decode(lerc, written.out, written.got, block_bytes());
    CHECK(result.status == COGPU_OK && result.got == block_bytes());
    for (size_t i = 0; i < PIXELS * format.samples; i++) {
        double in = value_at(pixels, type, i), out = value_at(result.out, type, i);
        if (isnan(in) != isnan(out)) {
            largest = -1;
            break;
        }
        double error = in == out ? 0 : fabs(in - out);
        largest = error > largest ? error : largest;
    }
    free(written.out);
    free(result.out);
    return largest;
}

/* The version that readers older than LERC 4 know, and so says tag 50674. */
static void encoded_version(void) {
    for (int type = 0; type < TYPES; type++) {
        if (breaks_library(type, 2))
            continue;
        fill_pixels(type, PIXELS * 2);
        cogpu_encoding encoding = encoding_of(2, type, 0);
        encode_result written = encode_twice(&cogpu_encoder_lerc, &encoding, pixels);
        CHECK(written.got > 10 && memcmp(written.out, "Lerc2 \4\0\0\0", 10) == 0);
        free(written.out);
    }
}

static void refused_where_the_library_breaks(void) {
    for (int type = 0; type < TYPES; type++)
        for (int samples = 1; samples <= BANDS_MAX; samples++) {
            fill_pixels(type, PIXELS * samples);
            cogpu_encoding encoding = encoding_of((uint32_t)samples, type, 0);
            CHECK(encode_status(&cogpu_encoder_lerc, &encoding, pixels) ==
                  (breaks_library(type, samples) ? COGPU_UNSUPPORTED : COGPU_OK));
        }
}

static void encoded_types(void) {
    const double errors[] = {0, 0.001, 0.5, 1, 3.7, 100};
    for (int type = 0; type < TYPES; type++) {
        for (uint32_t samples = 1; samples <= BANDS_MAX; samples++) {
            if (breaks_library(type, (int)samples))
                continue;
            for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
                fill_pixels(type, PIXELS * BANDS_MAX);
                double error = largest_error(encoding_of(samples, type, errors[i]), type);
                CHECK(error >= 0 && error <= errors[i]);
                CHECK(errors[i] < 3 || error > 0);
                if (type >= TYPE_F32)
                    continue;
                fill_bytes(pixels, sizeof pixels, 256, 0); /* all values there are */
                error = largest_error(encoding_of(samples, type, errors[i]), type);
                CHECK(error >= 0 && error <= errors[i]);
            }
        }
    }
}

static void set_float(int type, size_t index, double value) {
    float single = (float)value;
    if (type == TYPE_F32)
        memcpy(pixels + 4 * index, &single, 4);
    else
        memcpy(pixels + 8 * index, &value, 8);
}

/* Between base and base + spread, of the same in every run; on a grid where there is one. */
static void fill_floats(int type, double base, double spread, double grid) {
    uint32_t random = 7;
    for (size_t i = 0; i < PIXELS * BANDS_MAX; i++) {
        random = random * 1664525u + 1013904223u;
        double value = base + spread * (random / 4294967296.0);
        set_float(type, i, grid > 0 ? floor(value / grid) * grid : value);
    }
}

static void check_near_the_step(int type, double step) {
    for (int k = 0; k < 40; k++) {
        double allowed = step * (k < 20 ? k * 0.07 : (k - 18) * 0.77);
        double error = largest_error(encoding_of(1, type, allowed), type);
        CHECK(error >= 0 && error <= allowed);
    }
}

/* The library alone would pass the error here: it rounds to floats last. */
static void error_near_the_step_of_floats(void) {
    const double bases[] = {1e6, -1e6, 0, 123456789.0, 1e-20, -3e30};
    const double spreads[] = {60, 1, 1000, 1e-22, 1e31};
    for (int type = TYPE_F32; type <= TYPE_F64; type++) {
        for (size_t i = 0; i < 30; i++) {
            double base = bases[i % 6], spread = spreads[i / 6];
            double step = (fabs(base) + spread) * (type == TYPE_F32 ? 1.2e-7 : 2.3e-16);
            fill_floats(type, base, spread, 0);
            check_near_the_step(type, step);
            fill_floats(type, base, spread, spread < 1 ? 0 : 0.01); /* which the library sees */
            check_near_the_step(type, step);
        }
    }
}

/* A far value between others must not cost the others their loss, nor lose more than they may. */
static void far_values(void) {
    const double far[] = {-9999, 999999, -999999, 1e8, -3.4028234e38, 3.4e38, 0};
    for (int type = TYPE_F32; type <= TYPE_F64; type++) {
        for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
            for (double allowed = 0.004; allowed < 1; allowed *= 1.3) {
                fill_floats(type, 100, 50, 0);
                set_float(type, 7, far[i]);
                set_float(type, PIXELS / 2, far[i]);
                double error = largest_error(encoding_of(1, type, allowed), type);
                CHECK(error > allowed / 4 && error <= allowed);
            }
        }
    }
}

static void infinities_stay(void) {
    for (int type = TYPE_F32; type <= TYPE_F64; type++) {
        for (uint32_t samples = 1; samples <= 3; samples++) {
            for (double allowed = 0; allowed < 1; allowed += 0.3) {
                fill_floats(type, 0, 10, 0);
                set_float(type, 5, INFINITY);
                double error = largest_error(encoding_of(samples, type, allowed), type);
                CHECK(error >= 0 && error <= allowed);
                set_float(type, 6, -INFINITY);
                set_float(type, 12, NAN);
                set_float(type, PIXELS - 1, INFINITY);
                error = largest_error(encoding_of(samples, type, allowed), type);
                CHECK(error >= 0 && error <= allowed);
            }
        }
    }
}

/* T095: whole pixels, some bands of a pixel, at random, all. */
static void nan_stays(void) {
    for (int type = TYPE_F32; type <= TYPE_F64; type++) {
        for (uint32_t samples = 1; samples <= BANDS_MAX; samples++) {
            for (int kind = 0; kind < 5; kind++) {
                fill_floats(type, 100, 50, 0);
                for (uint32_t i = 0; i < PIXELS * samples; i++) {
                    bool of_pixel = i / samples % 5 == 2;
                    bool of_band = i % samples == 1 && i / samples % 7 < 3;
                    bool random = (i * 2654435761u >> 20 & 1) != 0;
                    bool are[] = {of_pixel, of_band, of_pixel || of_band, random, true};
                    if (are[kind])
                        set_float(type, i, NAN);
                }
                for (double allowed = 0; allowed < 2; allowed += 0.4) {
                    double error = largest_error(encoding_of(samples, type, allowed), type);
                    CHECK(error >= 0 && error <= allowed);
                }
            }
        }
    }
}

/* Whether each sample that is nodata is so in what comes back. */
static bool nodata_stays(cogpu_encoding encoding, int type, const uint8_t *nodata) {
    size_t bytes = cogpu_type_bytes(types[type]);
    bool stays = true;
    encoding.nodata = nodata;
    encode_result written = encode_twice(&cogpu_encoder_lerc, &encoding, pixels);
    decoded result = decode(lerc, written.out, written.got, block_bytes());
    CHECK(result.status == COGPU_OK && result.got == block_bytes());
    for (size_t i = 0; i < result.got && nodata; i += bytes)
        stays &=
            memcmp(pixels + i, nodata, bytes) != 0 || memcmp(result.out + i, nodata, bytes) == 0;
    free(written.out);
    free(result.out);
    return stays;
}

static void nodata_is_kept(void) {
    uint8_t nodata[8];
    for (int type = 0; type < TYPES; type++) {
        for (uint32_t samples = 1; samples <= 3; samples++) {
            if (breaks_library(type, (int)samples))
                continue;
            for (int value = 0; value <= 120; value += 60) {
                fill_pixels(type, PIXELS * BANDS_MAX);
                write_value(nodata, type, value);
                for (size_t i = 0; i < PIXELS * samples; i += 7)
                    write_value(pixels + i * cogpu_type_bytes(types[type]), type, value);
                if (type >= TYPE_F32)
                    set_float(type, 5, NAN);
                for (double allowed = 0; allowed < 20; allowed += 3) {
                    CHECK(nodata_stays(encoding_of(samples, type, allowed), type, nodata));
                    double error = largest_error(encoding_of(samples, type, allowed), type);
                    CHECK(error >= 0 && error <= allowed);
                }
            }
        }
    }
    fill_floats(TYPE_F32, 0, 10, 0);
    set_float(TYPE_F32, 5, NAN);
    CHECK(nodata_stays(encoding_of(1, TYPE_F32, 1), TYPE_F32, pixels + 5 * sizeof(float)));
}

/* Around the blob, with the same pixels inside, at any level. */
static void encoded_and_packed(void) {
    for (uint32_t packing = 1; packing <= 2; packing++) {
        const cogpu_encoder *packer =
            cogpu_codec_find(packing == 1 ? COMPRESSION_DEFLATE : COMPRESSION_ZSTD)->encoder;
        for (int type = 0; type < TYPES; type++) {
            if (breaks_library(type, 2))
                continue;
            fill_bytes(pixels, sizeof pixels, 256, 0);
            if (type >= TYPE_F32)
                fill_floats(type, -10, 20, 0);
            if (type >= TYPE_F32)
                set_float(type, 4, NAN);
            for (int level = 0; level < 9; level += 4) {
                cogpu_encoding encoding = encoding_of(2, type, 0);
                format.lerc_packing = encoding.format.lerc_packing = packing;
                encoding.level = level;
                if (packer)
                    CHECK(largest_error(encoding, type) == 0);
                else
                    CHECK(encode_status(&cogpu_encoder_lerc, &encoding, pixels) ==
                          COGPU_UNSUPPORTED);
            }
        }
    }
}

static void not_encoded(void) {
    const cogpu_type foreign[] = {COGPU_TYPE_U64, COGPU_TYPE_I64, COGPU_TYPE_F16, COGPU_TYPE_CF32};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        cogpu_encoding encoding = encoding_of(1, TYPE_U8, 0);
        encoding.format.type = foreign[i];
        CHECK(encode_status(&cogpu_encoder_lerc, &encoding, pixels) == COGPU_UNSUPPORTED);
    }
    cogpu_encoding encoding = encoding_of(1, TYPE_F64, -1);
    CHECK(encode_status(&cogpu_encoder_lerc, &encoding, pixels) == COGPU_UNSUPPORTED);
    encoding = encoding_of(1, TYPE_U8, 0);
    fill_bytes(pixels, sizeof pixels, 256, 0);
    size_t got;
    cogpu_error error;
    CHECK(cogpu_encoder_lerc.encode(&codec_state, &encoding, pixels, block_bytes(), blob, 50, &got,
                                    &error) == COGPU_UNSUPPORTED);
}

TESTS(codec_lerc) {
    RUN(every_type);
    RUN(other_types);
    RUN(bands_of_one_value);
    RUN(invalid_pixels);
    RUN(a_mask_each_band);
    RUN(mask_as_alpha);
    RUN(other_sizes);
#if COGPU_HAVE_LIBDEFLATE
    RUN(packed_with_deflate);
#endif
#if COGPU_HAVE_ZSTD
    RUN(packed_with_zstd);
#endif
    RUN(truncated);
    RUN(bits_flipped);
    RUN(no_lerc2);
    RUN(encoded_version);
    RUN(refused_where_the_library_breaks);
    RUN(encoded_types);
    RUN(error_near_the_step_of_floats);
    RUN(far_values);
    RUN(infinities_stay);
    RUN(nan_stays);
    RUN(nodata_is_kept);
    RUN(encoded_and_packed);
    RUN(not_encoded);
    cogpu_codec_state_close(&codec_state);
    return FINISH();
}

#else
TESTS(codec_lerc) {
    return FINISH();
}
#endif
