/*
 * The codecs: stored bytes of one block in, decoded bytes out. One file a codec, one table of all.
 *
 * Contract of every decode function. The input is hostile. It writes at most `out_bytes` bytes,
 * reads at most `in_bytes`, ends in time proportional to both, and takes no memory beyond its own
 * tables that the block's format does not justify. It sets *got to the bytes written, always from
 * the start of `out`. Output beyond out_bytes and input after the end of the stream are ignored,
 * sound or not. The caller checks whether there are fewer bytes than it needs. It fails with
 * CORRUPT or UNSUPPORTED and a message that says what is wrong with the stream, or with MEMORY; the
 * caller adds block and offset.
 */
#ifndef COGPU_CODEC_CODEC_H
#define COGPU_CODEC_CODEC_H

#include "base/memory.h"

#include <stdbool.h>

/* What a codec may need to know of a block beside its bytes. */
typedef struct cogpu_block_format {
    uint32_t width, height; /* of the block in pixels; a short last strip has fewer rows */
    uint32_t samples;       /* a pixel has in this block: 1 in planar files */
    uint32_t bits;          /* of a sample */
    cogpu_type type;        /* what the samples become */
    size_t row_bytes;       /* of a decoded row */
    uint32_t compression, photometric, fill_order;
    uint32_t subsampling_x, subsampling_y; /* YCbCr; 1 otherwise */
    uint32_t t4_options;                   /* tag 292 */
    uint32_t lerc_packing;      /* tag 50674: 0 none, 1 deflate, 2 zstd around the blob */
    const uint8_t *jpeg_tables; /* tag 347, or NULL */
    size_t jpeg_table_bytes;
    uint8_t fill[16]; /* a sample of nodata (0 without), in the machine's byte order */
} cogpu_block_format;

enum { DEFLATE_LEVEL_MAX = 12 };

/* Objects that a codec keeps from block to block. One a thread; zeroed at the start. */
typedef struct cogpu_codec_state {
    void *deflate;                                 /* a libdeflate decompressor */
    void *deflate_encoders[DEFLATE_LEVEL_MAX + 1]; /* compressors, by level */
    void *deflate_own;                             /* the memory of our own encoder */
    void *zstd;                                    /* a ZSTD_DCtx */
    void *zstd_encoder;                            /* a ZSTD_CCtx */
    void *work; /* untyped memory for one block, kept by cogpu_codec_work */
    size_t work_bytes;
} cogpu_codec_state;

void cogpu_codec_state_close(cogpu_codec_state *state);

/* At least `bytes` bytes of working memory, uninitialised, valid until the next call; NULL without.
 */
void *cogpu_codec_work(cogpu_codec_state *state, size_t bytes);

typedef cogpu_status cogpu_decode(cogpu_codec_state *state, const cogpu_block_format *format,
                                  const uint8_t *in, size_t in_bytes, uint8_t *out,
                                  size_t out_bytes, size_t *got, cogpu_error *error);

/*
 * Streams: blocks that are too large to be held are decoded as their stored bytes come, a part at a
 * time.
 *
 * A feed hands them over: `at` and `bytes` are what is at hand, which the decoder moves on past
 * what it has taken.
 */
typedef struct cogpu_feed {
    const uint8_t *at;
    size_t bytes;
    uint64_t left; /* to come after those at hand */
    /* Adds to what is at hand, which may move; sets `left`. NULL where nothing is left. After a
     * failure `failure` says why, and the bytes seem to end here. */
    void (*more)(struct cogpu_feed *feed);
    cogpu_error failure;
} cogpu_feed;

/* Has at least `bytes` bytes at hand; false where the input ends before. At most FEED_MIN. */
enum { FEED_MIN = 64 << 10 };
bool cogpu_feed_has(cogpu_feed *feed, size_t bytes);
void cogpu_feed_take(cogpu_feed *feed, size_t bytes);

/* Zeroed at the start but for what the caller sets. */
typedef struct cogpu_stream {
    const cogpu_block_format *format;
    cogpu_feed *feed;
    uint64_t block_bytes; /* that the block has room for */
    void *decoder;        /* the codec's own, released by `close` */
    bool needs_whole;     /* it failed since it would take more memory than a stream may */
} cogpu_stream;

/* What a stream may hold of decoded bytes to refer back to. */
enum { STREAM_WINDOW_MAX = 16 << 20 };

typedef struct cogpu_stream_codec {
    /* The next `out_bytes` bytes of the block; fewer only where the stream ends. Fails as a
     * cogpu_decode does. */
    cogpu_status (*decode)(cogpu_stream *stream, uint8_t *out, size_t out_bytes, size_t *got,
                           cogpu_error *error);
    void (*close)(cogpu_stream *stream);
    bool ends_itself; /* it tells its end, where there may be a checksum to compare */
} cogpu_stream_codec;

/*
 * Encoders: decoded bytes of one block in (predicted already, in the file's byte order), stored
 * bytes out.
 *
 * What one is told: the block's format, whose height is that of this block, and the numbers of the
 * profile, which were checked against the codec's range.
 */
typedef struct cogpu_encoding {
    cogpu_block_format format;
    int level;             /* deflate (by zlib, 10 to 12 are 9), zstd, lzma */
    int quality;           /* JPEG, WebP */
    bool lossless;         /* WebP */
    double max_error;      /* LERC */
    const uint8_t *nodata; /* LERC: a sample that must stay as it is; NULL = none */
} cogpu_encoding;

typedef struct cogpu_encoder {
    /* `in_bytes` is the format's height times its row_bytes; `out_bytes` is at least what `bound`
     * says. Sets *got. The same input gives the same output, whatever the state has seen. */
    cogpu_status (*encode)(cogpu_codec_state *state, const cogpu_encoding *encoding,
                           const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                           size_t *got, cogpu_error *error);
    /* Bytes that a block may take when it is encoded, at most; by a device, too, so that what is
     * planned by them, as whether a file has to be a BigTIFF, is the same wherever it is written.
     */
    uint64_t (*bound)(const cogpu_encoding *encoding, uint64_t in_bytes);
    int least_level, most_level, usual_level; /* 0: it has none */
} cogpu_encoder;

/* What all JPEG streams of a file share, for tag 347: 1024 bytes are room enough. Of the encoding,
 * samples, photometric and quality count. */
cogpu_status cogpu_jpeg_tables(const cogpu_encoding *encoding, uint8_t *to, size_t room,
                               size_t *bytes, cogpu_error *error);

enum {
    COMPRESSION_NONE = 1,
    COMPRESSION_CCITT_RLE = 2,
    COMPRESSION_CCITT_G3 = 3,
    COMPRESSION_CCITT_G4 = 4,
    COMPRESSION_LZW = 5,
    COMPRESSION_OLD_JPEG = 6,
    COMPRESSION_JPEG = 7,
    COMPRESSION_DEFLATE = 8,
    COMPRESSION_NEXT = 32766,
    COMPRESSION_CCITT_RLEW = 32771,
    COMPRESSION_PACKBITS = 32773,
    COMPRESSION_THUNDERSCAN = 32809,
    COMPRESSION_PIXARLOG = 32909,
    COMPRESSION_DEFLATE_OLD = 32946,
    COMPRESSION_APERIO_YCBCR = 33003,
    COMPRESSION_APERIO_LOSSY = 33004,
    COMPRESSION_APERIO_RGB = 33005,
    COMPRESSION_JBIG = 34661,
    COMPRESSION_SGILOG = 34676,
    COMPRESSION_SGILOG24 = 34677,
    COMPRESSION_JPEG2000 = 34712,
    COMPRESSION_LERC = 34887,
    COMPRESSION_LZMA = 34925,
    COMPRESSION_ZSTD = 50000,
    COMPRESSION_WEBP = 50001,
    COMPRESSION_JXL_OLD = 50002,
    COMPRESSION_JXL = 52546
};

typedef struct cogpu_codec_row {
    uint32_t compression;
    const char *name;
    const char *library;              /* "own", or the library's name */
    cogpu_decode *decode;             /* NULL: known by name only, or built without the library */
    const cogpu_stream_codec *stream; /* NULL: decodes whole blocks only */
    bool takes_predictor;             /* predictors 2 and 3 may be combined with it */
    bool own_bit_order;               /* FillOrder 2 is not for us to undo */
    const cogpu_encoder *encoder;     /* NULL: reads only, or built without the library */
    /* Streams hold numbers, not bytes: decoded samples are in the machine's byte order, whatever
     * the file's is, and YCbCr comes as whole pixels (of JPEG as RGB). */
    bool holds_numbers;
} cogpu_codec_row;

/* The row of a codec; NULL for a number that nobody knows. */
const cogpu_codec_row *cogpu_codec_find(uint32_t compression);
/* By name: the first that has it. NULL for a name that nobody has. */
const cogpu_codec_row *cogpu_codec_named(const char *name);

/* "zstd 1.5.4" where the library tells its version. For `library` of a row that is available. */
const char *cogpu_codec_library(const cogpu_codec_row *row);

cogpu_decode cogpu_decode_none, cogpu_decode_packbits, cogpu_decode_lzw, cogpu_decode_ccitt,
    cogpu_decode_deflate, cogpu_decode_zstd, cogpu_decode_lzma, cogpu_decode_jpeg,
    cogpu_decode_webp, cogpu_decode_lerc, cogpu_decode_jpeg2000, cogpu_decode_jpegxl,
    cogpu_decode_jpeg_old;

/* Memory for stream->decoder, zeroed. */
cogpu_status cogpu_stream_open(cogpu_stream *stream, size_t bytes, cogpu_error *error);
/* Releases it; the `close` of a codec that holds nothing else. */
void cogpu_stream_close(cogpu_stream *stream);
/* A whole block by a codec that ends itself: a cogpu_decode. The block is full where the stream
 * ends, or where it goes on with at least one byte more. */
cogpu_status cogpu_stream_whole(const cogpu_stream_codec *codec, const cogpu_block_format *format,
                                const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                                size_t *got, cogpu_error *error);

extern const cogpu_stream_codec cogpu_stream_packbits, cogpu_stream_lzw, cogpu_stream_ccitt,
    cogpu_stream_deflate, cogpu_stream_zstd, cogpu_stream_lzma, cogpu_stream_jpeg;

extern const cogpu_encoder cogpu_encoder_none, cogpu_encoder_packbits, cogpu_encoder_lzw,
    cogpu_encoder_deflate, cogpu_encoder_zstd, cogpu_encoder_lzma, cogpu_encoder_jpeg,
    cogpu_encoder_webp, cogpu_encoder_lerc;

/* What cogpu_codec_state_close asks of the files that keep something in the state. */
void cogpu_deflate_close(cogpu_codec_state *state);
void cogpu_zstd_close(cogpu_codec_state *state);

#endif
