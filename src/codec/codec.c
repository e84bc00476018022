/*
 * The table of codecs: takes TIFF's number of a compression, hands on who decodes it. The only file
 * that asks which libraries the build has; a row without its function is a codec that we know by
 * name only.
 */
#include "codec/codec.h"

#define TEXT_OF(token) #token
#define TEXT(macro)    TEXT_OF(macro)

#if COGPU_HAVE_LIBDEFLATE
#include <libdeflate.h>
#define DEFLATE_LIBRARY "libdeflate"
#define DEFLATE_VERSION "libdeflate " LIBDEFLATE_VERSION_STRING
#define DEFLATE_DECODE  cogpu_decode_deflate
#elif COGPU_HAVE_ZLIB
#include <zlib.h>
#define DEFLATE_LIBRARY "zlib"
#define DEFLATE_VERSION "zlib " ZLIB_VERSION
#define DEFLATE_DECODE  cogpu_decode_deflate
#else
#define DEFLATE_LIBRARY "libdeflate"
#define DEFLATE_VERSION DEFLATE_LIBRARY
#define DEFLATE_DECODE  NULL
#endif

#if COGPU_HAVE_ZSTD
#include <zstd.h>
#define ZSTD_TEXT   "zstd " ZSTD_VERSION_STRING
#define ZSTD_DECODE cogpu_decode_zstd
#else
#define ZSTD_TEXT   "zstd"
#define ZSTD_DECODE NULL
#endif

#if COGPU_HAVE_LZMA
#include <lzma.h>
#define LZMA_TEXT   "liblzma " LZMA_VERSION_STRING
#define LZMA_DECODE cogpu_decode_lzma
#else
#define LZMA_TEXT   "liblzma"
#define LZMA_DECODE NULL
#endif

#if COGPU_HAVE_JPEG
#include <stdio.h>

#include <jpeglib.h>
#define JPEG_DECODE cogpu_decode_jpeg
#else
#define JPEG_DECODE NULL
#endif
#ifdef LIBJPEG_TURBO_VERSION
#define JPEG_TEXT "libjpeg-turbo " TEXT(LIBJPEG_TURBO_VERSION)
#else
#define JPEG_TEXT "libjpeg"
#endif

#if COGPU_HAVE_WEBP
#define WEBP_DECODE cogpu_decode_webp
#else
#define WEBP_DECODE NULL
#endif

#if COGPU_HAVE_LERC
#include <Lerc_c_api.h>
#define LERC_DECODE cogpu_decode_lerc
#else
#define LERC_DECODE NULL
#endif
#ifdef LERC_VERSION_MAJOR
#define LERC_TEXT                                                                                  \
    "lerc " TEXT(LERC_VERSION_MAJOR) "." TEXT(LERC_VERSION_MINOR) "." TEXT(LERC_VERSION_PATCH)
#else
#define LERC_TEXT "lerc"
#endif

typedef struct listed {
    cogpu_codec_row row;
    const char *library; /* with its version */
} listed;

/* clang-format off */
#define OWN(number, name, decode) {{number, name, "own", decode, false, false}, "own"}
#define NAME_ONLY(number, name)   {{number, name, "", NULL, false, false}, ""}

static const listed codecs[] = {
    OWN(COMPRESSION_NONE, "none", cogpu_decode_none),
    OWN(COMPRESSION_CCITT_RLE, "ccitt_rle", cogpu_decode_ccitt),
    OWN(COMPRESSION_CCITT_G3, "ccitt_g3", cogpu_decode_ccitt),
    OWN(COMPRESSION_CCITT_G4, "ccitt_g4", cogpu_decode_ccitt),
    {{COMPRESSION_LZW, "lzw", "own", cogpu_decode_lzw, true, false}, "own"},
    NAME_ONLY(COMPRESSION_OLD_JPEG, "old_jpeg"),
    {{COMPRESSION_JPEG, "jpeg", "libjpeg", JPEG_DECODE, false, true}, JPEG_TEXT},
    {{COMPRESSION_DEFLATE, "deflate", DEFLATE_LIBRARY, DEFLATE_DECODE, true, false},
     DEFLATE_VERSION},
    NAME_ONLY(COMPRESSION_NEXT, "next"),
    OWN(COMPRESSION_CCITT_RLEW, "ccitt_rlew", cogpu_decode_ccitt),
    OWN(COMPRESSION_PACKBITS, "packbits", cogpu_decode_packbits),
    NAME_ONLY(COMPRESSION_THUNDERSCAN, "thunderscan"),
    NAME_ONLY(COMPRESSION_PIXARLOG, "pixarlog"),
    {{COMPRESSION_DEFLATE_OLD, "deflate", DEFLATE_LIBRARY, DEFLATE_DECODE, true, false},
     DEFLATE_VERSION},
    NAME_ONLY(COMPRESSION_JBIG, "jbig"),
    NAME_ONLY(COMPRESSION_SGILOG, "sgilog"),
    NAME_ONLY(COMPRESSION_SGILOG24, "sgilog24"),
    NAME_ONLY(COMPRESSION_JPEG2000, "jpeg2000"),
    {{COMPRESSION_LERC, "lerc", "lerc", LERC_DECODE, false, false}, LERC_TEXT},
    {{COMPRESSION_LZMA, "lzma", "liblzma", LZMA_DECODE, true, false}, LZMA_TEXT},
    {{COMPRESSION_ZSTD, "zstd", "zstd", ZSTD_DECODE, true, false}, ZSTD_TEXT},
    {{COMPRESSION_WEBP, "webp", "libwebp", WEBP_DECODE, false, false}, "libwebp"},
    NAME_ONLY(COMPRESSION_JXL_OLD, "jpegxl"),
    NAME_ONLY(COMPRESSION_JXL, "jpegxl"),
};
/* clang-format on */

enum { CODECS = sizeof codecs / sizeof *codecs };

const cogpu_codec_row *cogpu_codec_find(uint32_t compression) {
    for (size_t i = 0; i < CODECS; i++)
        if (codecs[i].row.compression == compression)
            return &codecs[i].row;
    return NULL;
}

const char *cogpu_codec_library(const cogpu_codec_row *row) {
    for (size_t i = 0; i < CODECS; i++)
        if (&codecs[i].row == row)
            return codecs[i].library;
    return row->library;
}

cogpu_status cogpu_codec_info(uint32_t index, cogpu_codec *info) {
    if (!info)
        return COGPU_ARGUMENT;
    if (index >= CODECS)
        return COGPU_ABSENT;
    const cogpu_codec_row *row = &codecs[index].row;
    *info = (cogpu_codec){.compression = row->compression,
                          .name = row->name,
                          .library = cogpu_codec_library(row),
                          .available = row->decode != NULL};
    return COGPU_OK;
}

void cogpu_codec_state_close(cogpu_codec_state *state) {
#if COGPU_HAVE_LIBDEFLATE || COGPU_HAVE_ZLIB
    cogpu_deflate_close(state->deflate);
#endif
#if COGPU_HAVE_ZSTD
    cogpu_zstd_close(state->zstd);
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
