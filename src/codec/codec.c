/*
 * The table of codecs: one row per name, with all that is known of the codec. The only file that
 * depends on which libraries the build has.
 */
#include "codec/codec.h"
#include "base/names.h"

#include "base/bytes.h"
#include "base/text.h"

#include <stdio.h>

#if COGPU_HAVE_LIBDEFLATE
#include <libdeflate.h>
#define DEFLATE_LIBRARY "libdeflate"
#define DEFLATE_VERSION "libdeflate " LIBDEFLATE_VERSION_STRING
#define HAVE_DEFLATE    1
#elif COGPU_HAVE_ZLIB
#include <zlib.h>
#define DEFLATE_LIBRARY "zlib"
#define DEFLATE_VERSION "zlib " ZLIB_VERSION
#define HAVE_DEFLATE    1
#else
#define DEFLATE_LIBRARY "libdeflate"
#endif
#if COGPU_HAVE_ZSTD
#include <zstd.h>
#endif
#if COGPU_HAVE_LZMA
#include <lzma.h>
#endif
#if COGPU_HAVE_JPEG
#include <jpeglib.h>
#endif
#if COGPU_HAVE_LERC
#include <Lerc_c_api.h>
#if HAVE_DEFLATE
#define HAVE_LERC_DEFLATE 1
#endif
#if COGPU_HAVE_ZSTD
#define HAVE_LERC_ZSTD 1
#endif
#endif
#if COGPU_HAVE_OPENJPEG
#include <openjpeg.h>
#endif
#if COGPU_HAVE_JXL
#include <jxl/version.h>
#endif

#if COGPU_HOST_BIG_ENDIAN
#define LERC_LIBRARY "lerc (which works on little-endian CPUs only)"
#else
#define LERC_LIBRARY "lerc"
#endif

/* WITH(COGPU_HAVE_X, item): the item if COGPU_HAVE_X is 1, else NULL. An undefined macro does not
 * form the name CHOICE_1, which alone adds the comma that makes the item the second argument. */
#define CHOICE_1                   ,
#define SECOND(first, second, ...) second
#define CHOOSE(comma, item)        SECOND(comma item, NULL, )
#define CHOOSE_BY(value, item)     CHOOSE(CHOICE_##value, item)
#define WITH(library, item)        CHOOSE_BY(library, item)

#define TEXT_OF(token)         #token
#define TEXT(macro)            TEXT_OF(macro)
#define VERSION(name, a, b, c) name " " TEXT(a) "." TEXT(b) "." TEXT(c)

#ifdef LIBJPEG_TURBO_VERSION
#define JPEG_VERSION "libjpeg-turbo " TEXT(LIBJPEG_TURBO_VERSION)
#else
#define JPEG_VERSION "libjpeg"
#endif
#ifdef LERC_VERSION_MAJOR
#define LERC_VERSION VERSION("lerc", LERC_VERSION_MAJOR, LERC_VERSION_MINOR, LERC_VERSION_PATCH)
#else
#define LERC_VERSION "lerc"
#endif
#define OPENJPEG_VERSION                                                                           \
    VERSION("openjpeg", OPJ_VERSION_MAJOR, OPJ_VERSION_MINOR, OPJ_VERSION_BUILD)
#define JXL_VERSION                                                                                \
    VERSION("libjxl", JPEGXL_MAJOR_VERSION, JPEGXL_MINOR_VERSION, JPEGXL_PATCH_VERSION)

#define TYPE(name) (UINT32_C(1) << COGPU_TYPE_##name)
enum {
    BYTES_ONLY = TYPE(U8),
    LERC_TYPES =
        TYPE(U8) | TYPE(I8) | TYPE(U16) | TYPE(I16) | TYPE(U32) | TYPE(I32) | TYPE(F32) | TYPE(F64),
    ALL_TYPES = LERC_TYPES | TYPE(U64) | TYPE(I64) | TYPE(F16) | TYPE(CI16) | TYPE(CI32) |
                TYPE(CF32) | TYPE(CF64)
};

/* ---- rows that several codecs share -------------------------------------------------------- */

#define NAME_ONLY(number, word)                                                                    \
    { .compression = number, .name = word, .library = "" }

#define CCITT(number, word, gdal_word)                                                             \
    {                                                                                              \
        .compression = number, .name = word, .alias = gdal_word, .library = "own",                 \
        .decode = cogpu_decode_ccitt, .stream = &cogpu_stream_ccitt,                               \
    }

#define DEFLATE(number)                                                                            \
    {                                                                                              \
        .compression = number, .name = "deflate", .alias = "adobe_deflate",                        \
        .library = DEFLATE_LIBRARY, .library_version = WITH(HAVE_DEFLATE, DEFLATE_VERSION),        \
        .decode = WITH(HAVE_DEFLATE, cogpu_decode_deflate),                                        \
        .stream = WITH(COGPU_HAVE_ISAL, &cogpu_stream_deflate),                                    \
        .lanes = WITH(COGPU_HAVE_LIBDEFLATE, &cogpu_lanes_deflate), .is_deflate = true,            \
        .encoder = WITH(HAVE_DEFLATE, &cogpu_encoder_deflate), .allows_predictor = true,           \
        .min_level = 1, .max_level = DEFLATE_LEVEL_MAX, .default_level = DEFLATE_LEVEL_DEFAULT,    \
        .allows_packed_samples = true, .encode_types = ALL_TYPES, .gpu_decode = true,              \
        .gpu_encode = true,                                                                        \
    }

#define LERC(word, have, needed, packing, lowest_level, highest_level, usual_level)                \
    {                                                                                              \
        .compression = COMPRESSION_LERC, .name = word, .library = needed,                          \
        .library_version = WITH(COGPU_HAVE_LERC, LERC_VERSION),                                    \
        .decode = WITH(have, cogpu_decode_lerc), .encoder = WITH(have, &cogpu_encoder_lerc),       \
        .has_max_error = true, .min_level = lowest_level, .max_level = highest_level,              \
        .default_level = usual_level, .encode_types = LERC_TYPES, .lerc_packing = packing,         \
    }

#define JPEG2000(number, word, gdal_word)                                                          \
    {                                                                                              \
        .compression = number, .name = word, .alias = gdal_word, .library = "openjpeg",            \
        .library_version = WITH(COGPU_HAVE_OPENJPEG, OPENJPEG_VERSION),                            \
        .decode = WITH(COGPU_HAVE_OPENJPEG, cogpu_decode_jpeg2000), .own_bit_order = true,         \
        .holds_numbers = true,                                                                     \
    }

#define JPEGXL(number)                                                                             \
    {                                                                                              \
        .compression = number, .name = "jpegxl", .alias = "jxl", .library = "libjxl",              \
        .library_version = WITH(COGPU_HAVE_JXL, JXL_VERSION),                                      \
        .decode = WITH(COGPU_HAVE_JXL, cogpu_decode_jpegxl), .own_bit_order = true,                \
        .holds_numbers = true,                                                                     \
    }

/* ---- the table ----------------------------------------------------------------------------- */

/* Those that can be written come first, in the order of help texts and messages. Of rows with the
 * same number or name, the first is found. */
static const cogpu_codec_row codecs[] = {
    {
        .compression = COMPRESSION_NONE,
        .name = "none",
        .library = "own",
        .decode = cogpu_decode_none,
        .encoder = &cogpu_encoder_none,
        .allows_packed_samples = true,
        .encode_types = ALL_TYPES,
        .gpu_decode = true,
        .gpu_encode = true,
    },
    {
        .compression = COMPRESSION_PACKBITS,
        .name = "packbits",
        .library = "own",
        .decode = cogpu_decode_packbits,
        .stream = &cogpu_stream_packbits,
        .encoder = &cogpu_encoder_packbits,
        .allows_packed_samples = true,
        .encode_types = ALL_TYPES,
        .gpu_decode = true,
        .gpu_encode = true,
    },
    {
        .compression = COMPRESSION_LZW,
        .name = "lzw",
        .library = "own",
        .decode = cogpu_decode_lzw,
        .stream = &cogpu_stream_lzw,
        .encoder = &cogpu_encoder_lzw,
        .allows_predictor = true,
        .allows_packed_samples = true,
        .encode_types = ALL_TYPES,
        .gpu_decode = true,
        .gpu_encode = true,
    },
    DEFLATE(COMPRESSION_DEFLATE),
    {
        .compression = COMPRESSION_ZSTD,
        .name = "zstd",
        .library = "zstd",
        .library_version = WITH(COGPU_HAVE_ZSTD, "zstd " ZSTD_VERSION_STRING),
        .decode = WITH(COGPU_HAVE_ZSTD, cogpu_decode_zstd),
        .stream = WITH(COGPU_HAVE_ZSTD, &cogpu_stream_zstd),
        .encoder = WITH(COGPU_HAVE_ZSTD, &cogpu_encoder_zstd),
        .allows_predictor = true,
        .min_level = 1,
        .max_level = ZSTD_LEVEL_MAX,
        .default_level = ZSTD_LEVEL_DEFAULT,
        .allows_packed_samples = true,
        .encode_types = ALL_TYPES,
        .gpu_decode = true,
        .gpu_encode = true,
    },
    {
        .compression = COMPRESSION_LZMA,
        .name = "lzma",
        .library = "liblzma",
        .library_version = WITH(COGPU_HAVE_LZMA, "liblzma " LZMA_VERSION_STRING),
        .decode = WITH(COGPU_HAVE_LZMA, cogpu_decode_lzma),
        .stream = WITH(COGPU_HAVE_LZMA, &cogpu_stream_lzma),
        .encoder = WITH(COGPU_HAVE_LZMA, &cogpu_encoder_lzma),
        .allows_predictor = true,
        .avoids_predictor = true,
        .min_level = 1,
        .max_level = 9,
        .default_level = 6,
        .allows_packed_samples = true,
        .encode_types = ALL_TYPES,
    },
    {
        .compression = COMPRESSION_JPEG,
        .name = "jpeg",
        .library = "libjpeg",
        .library_version = WITH(COGPU_HAVE_JPEG, JPEG_VERSION),
        .decode = WITH(COGPU_HAVE_JPEG, cogpu_decode_jpeg),
        .stream = WITH(COGPU_HAVE_JPEG, &cogpu_stream_jpeg),
        .encoder = WITH(COGPU_HAVE_JPEG, &cogpu_encoder_jpeg),
        .own_bit_order = true,
        .holds_numbers = true,
        .has_quality = true,
        .is_lossy = true,
        .converts_to_ycbcr = true,
        .encode_types = BYTES_ONLY,
        .encode_samples = 1 << 1 | 1 << 3 | 1 << 4,
        .max_side = 65500,
        .strip_rows_multiple = 16, /* two rows of 8 x 8 blocks, if chroma is subsampled */
        .gpu_decode = true,
        .gpu_encode = true,
    },
    {
        .compression = COMPRESSION_WEBP,
        .name = "webp",
        .library = "libwebp",
        .decode = WITH(COGPU_HAVE_WEBP, cogpu_decode_webp),
        .encoder = WITH(COGPU_HAVE_WEBP, &cogpu_encoder_webp),
        .has_quality = true,
        .is_lossy = true,
        .has_lossless = true,
        .encode_types = BYTES_ONLY,
        .encode_samples = 1 << 3 | 1 << 4,
        .max_side = 16383,
    },
    LERC("lerc", COGPU_HAVE_LERC, LERC_LIBRARY, 0, 0, 0, 0),
    LERC("lerc_deflate", HAVE_LERC_DEFLATE, LERC_LIBRARY " or " DEFLATE_LIBRARY, 1, 1,
         DEFLATE_LEVEL_MAX, DEFLATE_LEVEL_DEFAULT),
    LERC("lerc_zstd", HAVE_LERC_ZSTD, LERC_LIBRARY " or zstd", 2, 1, ZSTD_LEVEL_MAX,
         ZSTD_LEVEL_DEFAULT),
    CCITT(COMPRESSION_CCITT_RLE, "ccitt_rle", "ccittrle"),
    CCITT(COMPRESSION_CCITT_G3, "ccitt_g3", "ccittfax3"),
    CCITT(COMPRESSION_CCITT_G4, "ccitt_g4", "ccittfax4"),
    {
        .compression = COMPRESSION_OLD_JPEG,
        .name = "old_jpeg",
        .alias = "ojpeg",
        .library = "libjpeg",
        .library_version = WITH(COGPU_HAVE_JPEG, JPEG_VERSION),
        .decode = WITH(COGPU_HAVE_JPEG, cogpu_decode_jpeg_old),
        .own_bit_order = true,
    },
    NAME_ONLY(COMPRESSION_NEXT, "next"),
    CCITT(COMPRESSION_CCITT_RLEW, "ccitt_rlew", "ccittrlew"),
    NAME_ONLY(COMPRESSION_THUNDERSCAN, "thunderscan"),
    NAME_ONLY(COMPRESSION_PIXARLOG, "pixarlog"),
    DEFLATE(COMPRESSION_DEFLATE_OLD),
    JPEG2000(COMPRESSION_APERIO_YCBCR, "aperio_ycbcr", NULL),
    JPEG2000(COMPRESSION_APERIO_LOSSY, "aperio_lossy", NULL),
    JPEG2000(COMPRESSION_APERIO_RGB, "aperio_rgb", NULL),
    NAME_ONLY(COMPRESSION_JBIG, "jbig"),
    NAME_ONLY(COMPRESSION_SGILOG, "sgilog"),
    NAME_ONLY(COMPRESSION_SGILOG24, "sgilog24"),
    JPEG2000(COMPRESSION_JPEG2000, "jpeg2000", "jp2000"),
    JPEGXL(COMPRESSION_JXL_OLD),
    JPEGXL(COMPRESSION_JXL),
};

enum { CODECS = sizeof codecs / sizeof *codecs };

const cogpu_codec_row *cogpu_codec_find(uint32_t compression) {
    for (size_t i = 0; i < CODECS; i++)
        if (codecs[i].compression == compression)
            return &codecs[i];
    return NULL;
}

const cogpu_codec_row *cogpu_codec_named(const char *name) {
    for (size_t i = 0; i < CODECS; i++)
        if (is_same_name(name, codecs[i].name) || is_same_name(name, codecs[i].alias))
            return &codecs[i];
    return NULL;
}

void cogpu_codec_list_names(bool (*has)(const cogpu_codec_row *row), char *text, size_t bytes) {
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < CODECS && used < bytes; i++)
        if (has(&codecs[i]) && cogpu_codec_named(codecs[i].name) == &codecs[i])
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? ", " : "",
                                     codecs[i].name);
}

/* "" for the second number of a name. */
static const char *codec_name_at(unsigned index) {
    if (index >= CODECS)
        return NULL;
    return cogpu_codec_named(codecs[index].name) == &codecs[index] ? codecs[index].name : "";
}

cogpu_status cogpu_codec_parse(const char *name, uint32_t *compression, cogpu_error *error) {
    const cogpu_codec_row *row = name ? cogpu_codec_named(name) : NULL;
    cogpu_error_clear(error);
    if (!row)
        return cogpu_fail_unknown_name(error, "codec", name, codec_name_at);
    *compression = row->compression;
    return COGPU_OK;
}

bool cogpu_codec_describe(uint32_t index, cogpu_codec *info) {
    enum { WITHOUT = 1 << 1, HORIZONTAL = 1 << 2, FLOATING_POINT = 1 << 3 };
    if (index >= CODECS)
        return false;
    const cogpu_codec_row *row = &codecs[index];
    *info = (cogpu_codec){
        .struct_size = sizeof *info,
        .compression = row->compression,
        .name = row->name,
        .library = row->library_version ? row->library_version : row->library,
        .can_decode = row->decode != NULL,
        .can_encode = row->encoder != NULL,
        .min_level = row->min_level,
        .max_level = row->max_level,
        .default_level = row->default_level,
        .has_quality = row->has_quality,
        .has_max_z_error = row->has_max_error,
        .is_lossy = row->is_lossy,
        .predictors = row->allows_predictor ? WITHOUT | HORIZONTAL | FLOATING_POINT : WITHOUT,
        .encode_types = row->encode_types,
        .gpu_decode = row->gpu_decode,
        .gpu_encode = row->gpu_encode};
    return true;
}

void cogpu_codec_state_close(cogpu_codec_state *state) {
#if COGPU_HAVE_LIBDEFLATE || COGPU_HAVE_ZLIB
    cogpu_deflate_close(state);
#endif
#if COGPU_HAVE_ZSTD
    cogpu_zstd_close(state);
#endif
    cogpu_release(state->work);
    *state = (cogpu_codec_state){0};
}

void *cogpu_codec_work(cogpu_codec_state *state, size_t bytes) {
    if (state->work_bytes < bytes) {
        cogpu_release(state->work);
        state->work = cogpu_allocate(bytes);
        state->work_bytes = state->work ? bytes : 0;
    }
    return state->work;
}
