/*
 * The table of codecs: takes TIFF's number of a compression, hands on who decodes and encodes it.
 * The only file that asks which libraries the build has; a row without its function is a codec that
 * we know by name only.
 */
#include "codec/codec.h"

#include <string.h>

#define TEXT_OF(token) #token
#define TEXT(macro)    TEXT_OF(macro)

#if COGPU_HAVE_LIBDEFLATE
#include <libdeflate.h>
#define DEFLATE_LIBRARY "libdeflate"
#define DEFLATE_VERSION "libdeflate " LIBDEFLATE_VERSION_STRING
#define DEFLATE_DECODE  cogpu_decode_deflate
#define DEFLATE_ENCODER &cogpu_encoder_deflate
#elif COGPU_HAVE_ZLIB
#include <zlib.h>
#define DEFLATE_LIBRARY "zlib"
#define DEFLATE_VERSION "zlib " ZLIB_VERSION
#define DEFLATE_DECODE  cogpu_decode_deflate
#define DEFLATE_ENCODER &cogpu_encoder_deflate
#else
#define DEFLATE_LIBRARY "libdeflate"
#define DEFLATE_VERSION DEFLATE_LIBRARY
#define DEFLATE_DECODE  NULL
#define DEFLATE_ENCODER NULL
#endif

#if COGPU_HAVE_ISAL
#define DEFLATE_STREAM &cogpu_stream_deflate
#else
#define DEFLATE_STREAM NULL
#endif

#if COGPU_HAVE_ZSTD
#include <zstd.h>
#define ZSTD_TEXT    "zstd " ZSTD_VERSION_STRING
#define ZSTD_DECODE  cogpu_decode_zstd
#define ZSTD_STREAM  &cogpu_stream_zstd
#define ZSTD_ENCODER &cogpu_encoder_zstd
#else
#define ZSTD_TEXT    "zstd"
#define ZSTD_DECODE  NULL
#define ZSTD_STREAM  NULL
#define ZSTD_ENCODER NULL
#endif

#if COGPU_HAVE_LZMA
#include <lzma.h>
#define LZMA_TEXT    "liblzma " LZMA_VERSION_STRING
#define LZMA_DECODE  cogpu_decode_lzma
#define LZMA_STREAM  &cogpu_stream_lzma
#define LZMA_ENCODER &cogpu_encoder_lzma
#else
#define LZMA_TEXT    "liblzma"
#define LZMA_DECODE  NULL
#define LZMA_STREAM  NULL
#define LZMA_ENCODER NULL
#endif

#if COGPU_HAVE_JPEG
#include <stdio.h>

#include <jpeglib.h>
#define JPEG_DECODE     cogpu_decode_jpeg
#define JPEG_OLD_DECODE cogpu_decode_jpeg_old
#define JPEG_ENCODER    &cogpu_encoder_jpeg
#define JPEG_STREAM     &cogpu_stream_jpeg
#else
#define JPEG_DECODE     NULL
#define JPEG_OLD_DECODE NULL
#define JPEG_ENCODER    NULL
#define JPEG_STREAM     NULL
#endif
#ifdef LIBJPEG_TURBO_VERSION
#define JPEG_TEXT "libjpeg-turbo " TEXT(LIBJPEG_TURBO_VERSION)
#else
#define JPEG_TEXT "libjpeg"
#endif

#if COGPU_HAVE_WEBP
#define WEBP_DECODE  cogpu_decode_webp
#define WEBP_ENCODER &cogpu_encoder_webp
#else
#define WEBP_DECODE  NULL
#define WEBP_ENCODER NULL
#endif

#if COGPU_HAVE_LERC
#include <Lerc_c_api.h>
#define LERC_DECODE  cogpu_decode_lerc
#define LERC_ENCODER &cogpu_encoder_lerc
#else
#define LERC_DECODE  NULL
#define LERC_ENCODER NULL
#endif
#ifdef LERC_VERSION_MAJOR
#define LERC_TEXT                                                                                  \
    "lerc " TEXT(LERC_VERSION_MAJOR) "." TEXT(LERC_VERSION_MINOR) "." TEXT(LERC_VERSION_PATCH)
#else
#define LERC_TEXT "lerc"
#endif

#if COGPU_HAVE_OPENJPEG
#include <openjpeg.h>
#define JPEG2000_TEXT                                                                              \
    "openjpeg " TEXT(OPJ_VERSION_MAJOR) "." TEXT(OPJ_VERSION_MINOR) "." TEXT(OPJ_VERSION_BUILD)
#define JPEG2000_DECODE cogpu_decode_jpeg2000
#else
#define JPEG2000_TEXT   "openjpeg"
#define JPEG2000_DECODE NULL
#endif

#if COGPU_HAVE_JXL
#include <jxl/version.h>
#define JXL_TEXT                                                                                   \
    "libjxl " TEXT(JPEGXL_MAJOR_VERSION) "." TEXT(JPEGXL_MINOR_VERSION) "." TEXT(                  \
        JPEGXL_PATCH_VERSION)
#define JXL_DECODE cogpu_decode_jpegxl
#else
#define JXL_TEXT   "libjxl"
#define JXL_DECODE NULL
#endif

typedef struct listed {
    cogpu_codec_row row;
    const char *library; /* with its version */
} listed;

/* clang-format off */
#define CCITT(number, name) \
    {{number, name, "own", cogpu_decode_ccitt, &cogpu_stream_ccitt, false, false, NULL, false}, "own"}
#define DEFLATE(number) \
    {{number, "deflate", DEFLATE_LIBRARY, DEFLATE_DECODE, DEFLATE_STREAM, true, false, DEFLATE_ENCODER, false}, \
     DEFLATE_VERSION}
#define JPEG2000(number, name) \
    {{number, name, "openjpeg", JPEG2000_DECODE, NULL, false, true, NULL, true}, JPEG2000_TEXT}
#define JXL(number) {{number, "jpegxl", "libjxl", JXL_DECODE, NULL, false, true, NULL, true}, JXL_TEXT}
#define NAME_ONLY(number, name) {{number, name, "", NULL, NULL, false, false, NULL, false}, ""}

static const listed codecs[] = {
    {{COMPRESSION_NONE, "none", "own", cogpu_decode_none, NULL, false, false, &cogpu_encoder_none, false}, "own"},
    CCITT(COMPRESSION_CCITT_RLE, "ccitt_rle"),
    CCITT(COMPRESSION_CCITT_G3, "ccitt_g3"),
    CCITT(COMPRESSION_CCITT_G4, "ccitt_g4"),
    {{COMPRESSION_LZW, "lzw", "own", cogpu_decode_lzw, &cogpu_stream_lzw, true, false, &cogpu_encoder_lzw, false},
     "own"},
    {{COMPRESSION_OLD_JPEG, "old_jpeg", "libjpeg", JPEG_OLD_DECODE, NULL, false, true, NULL, false}, JPEG_TEXT},
    {{COMPRESSION_JPEG, "jpeg", "libjpeg", JPEG_DECODE, JPEG_STREAM, false, true, JPEG_ENCODER, true}, JPEG_TEXT},
    DEFLATE(COMPRESSION_DEFLATE),
    NAME_ONLY(COMPRESSION_NEXT, "next"),
    CCITT(COMPRESSION_CCITT_RLEW, "ccitt_rlew"),
    {{COMPRESSION_PACKBITS, "packbits", "own", cogpu_decode_packbits, &cogpu_stream_packbits, false, false,
      &cogpu_encoder_packbits, false},
     "own"},
    NAME_ONLY(COMPRESSION_THUNDERSCAN, "thunderscan"),
    NAME_ONLY(COMPRESSION_PIXARLOG, "pixarlog"),
    DEFLATE(COMPRESSION_DEFLATE_OLD),
    JPEG2000(COMPRESSION_APERIO_YCBCR, "aperio_ycbcr"),
    JPEG2000(COMPRESSION_APERIO_LOSSY, "aperio_lossy"),
    JPEG2000(COMPRESSION_APERIO_RGB, "aperio_rgb"),
    NAME_ONLY(COMPRESSION_JBIG, "jbig"),
    NAME_ONLY(COMPRESSION_SGILOG, "sgilog"),
    NAME_ONLY(COMPRESSION_SGILOG24, "sgilog24"),
    JPEG2000(COMPRESSION_JPEG2000, "jpeg2000"),
    {{COMPRESSION_LERC, "lerc", "lerc", LERC_DECODE, NULL, false, false, LERC_ENCODER, false}, LERC_TEXT},
    {{COMPRESSION_LZMA, "lzma", "liblzma", LZMA_DECODE, LZMA_STREAM, true, false, LZMA_ENCODER, false}, LZMA_TEXT},
    {{COMPRESSION_ZSTD, "zstd", "zstd", ZSTD_DECODE, ZSTD_STREAM, true, false, ZSTD_ENCODER, false}, ZSTD_TEXT},
    {{COMPRESSION_WEBP, "webp", "libwebp", WEBP_DECODE, NULL, false, false, WEBP_ENCODER, false}, "libwebp"},
    JXL(COMPRESSION_JXL_OLD),
    JXL(COMPRESSION_JXL),
};
/* clang-format on */

enum { CODECS = sizeof codecs / sizeof *codecs };

const cogpu_codec_row *cogpu_codec_find(uint32_t compression) {
    for (size_t i = 0; i < CODECS; i++)
        if (codecs[i].row.compression == compression)
            return &codecs[i].row;
    return NULL;
}

const cogpu_codec_row *cogpu_codec_named(const char *name) {
    for (size_t i = 0; i < CODECS; i++)
        if (strcmp(codecs[i].row.name, name) == 0)
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

bool cogpu_feed_has(cogpu_feed *feed, size_t bytes) {
    while (feed->bytes < bytes && feed->left > 0)
        feed->more(feed);
    return feed->bytes >= bytes;
}

void cogpu_feed_take(cogpu_feed *feed, size_t bytes) {
    feed->at += bytes;
    feed->bytes -= bytes;
}

cogpu_status cogpu_stream_open(cogpu_stream *stream, size_t bytes, cogpu_error *error) {
    stream->decoder = cogpu_allocate(bytes);
    if (!stream->decoder)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory: %zu bytes for a decoder", bytes);
    memset(stream->decoder, 0, bytes);
    return COGPU_OK;
}

void cogpu_stream_close(cogpu_stream *stream) {
    cogpu_release(stream->decoder);
    stream->decoder = NULL;
}

cogpu_status cogpu_stream_whole(const cogpu_stream_codec *codec, const cogpu_block_format *format,
                                const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                                size_t *got, cogpu_error *error) {
    uint8_t extra;
    size_t more;
    cogpu_feed feed = {.at = in, .bytes = in_bytes};
    cogpu_stream stream = {.format = format, .feed = &feed, .block_bytes = out_bytes};
    cogpu_status status = codec->decode(&stream, out, out_bytes, got, error);
    if (status == COGPU_OK && *got == out_bytes)
        status = codec->decode(&stream, &extra, 1, &more, error);
    codec->close(&stream);
    return status;
}
