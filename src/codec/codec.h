/*
 * Codecs: encoded bytes of one block to decoded bytes, and back. One file per codec, one table
 * (codec.c) with all that the planner, the command line and Python need to know of them.
 *
 * Contract of every decode function. The input is untrusted. The function writes at most
 * `out_bytes` bytes, reads at most `in_bytes`, and ends in time proportional to both. It allocates
 * no more than its own tables and what the block's format justifies. It sets *got to the bytes
 * written, always from the start of `out`. It ignores output beyond `out_bytes` and input after the
 * end of the stream, valid or not. The caller checks whether there are fewer bytes than it needs.
 * A failure is COGPU_CORRUPT or COGPU_UNSUPPORTED with a message that says what is wrong with the
 * stream, or COGPU_OUT_OF_MEMORY; the caller adds block and offset.
 */
#ifndef COGPU_CODEC_CODEC_H
#define COGPU_CODEC_CODEC_H

#include "base/memory.h"
#include "base/type.h"

#include <stdbool.h>

/* What a codec may need to know of a block besides its bytes. */
typedef struct cogpu_block_format {
    uint32_t width, height; /* of the block in pixels; the last strip may have fewer rows */
    uint32_t samples;       /* per pixel in this block: 1 in planar files */
    uint32_t bits;          /* of a sample */
    cogpu_type type;        /* of decoded samples */
    size_t row_bytes;       /* of a decoded row */
    uint32_t compression, photometric, fill_order;
    uint32_t subsampling_x, subsampling_y; /* YCbCr; 1 otherwise */
    uint32_t t4_options;                   /* tag 292 */
    uint32_t lerc_packing;      /* tag 50674: 0 none, 1 deflate, 2 zstd around the blob */
    const uint8_t *jpeg_tables; /* tag 347, or NULL */
    size_t jpeg_table_bytes;
    uint8_t fill[16]; /* a sample of nodata (0 without), in the machine's byte order */
} cogpu_block_format;

/* Compression levels that code depends on; the others are in the table alone. */
enum {
    DEFLATE_LEVEL_MAX = 12,
    DEFLATE_LEVEL_DEFAULT = 6,
    ZSTD_LEVEL_MAX = 22,
    ZSTD_LEVEL_DEFAULT = 9
};

/* Objects that a codec keeps from block to block. One per thread; zeroed at the start. */
typedef struct cogpu_codec_state {
    void *deflate;                                 /* a libdeflate decompressor */
    void *deflate_encoders[DEFLATE_LEVEL_MAX + 1]; /* compressors, by level */
    void *deflate_own;                             /* working memory of our own encoder */
    void *deflate_lanes;                           /* of the interleaved decoder */
    void *zstd;                                    /* a ZSTD_DCtx */
    void *zstd_encoder;                            /* a ZSTD_CCtx */
    void *work; /* untyped memory for one block, kept by cogpu_codec_work */
    size_t work_bytes;
} cogpu_codec_state;

void cogpu_codec_state_close(cogpu_codec_state *state);

/* At least `bytes` bytes of working memory, uninitialised, valid until the next call; NULL if there
 * is no memory. */
void *cogpu_codec_work(cogpu_codec_state *state, size_t bytes);

typedef cogpu_status cogpu_decode(cogpu_codec_state *state, const cogpu_block_format *format,
                                  const uint8_t *in, size_t in_bytes, uint8_t *out,
                                  size_t out_bytes, size_t *got, cogpu_error *error);

/*
 * Decoding of several blocks by one thread at once, in as many lanes, which can be faster than one
 * block after the other. Blocks that the lanes refuse are decoded by cogpu_decode, which decides
 * whether they are damaged.
 */
typedef struct cogpu_lane_block {
    const uint8_t *in;
    size_t in_bytes;
    uint8_t *out;
    size_t out_bytes;
    void *user; /* of the queue */
} cogpu_lane_block;

typedef struct cogpu_lane_queue {
    bool is_mostly_literals; /* blocks hardly repeat, as after predictor 3 */
    /* The next block, which a lane decodes from now on; false if there is none. */
    bool (*next)(struct cogpu_lane_queue *queue, cogpu_lane_block *block);
    /* A block is decoded to `got` bytes, or refused. Its memory is the queue's again. */
    void (*done)(struct cogpu_lane_queue *queue, const cogpu_lane_block *block, bool is_decoded,
                 size_t got);
} cogpu_lane_queue;

enum { CODEC_LANES = 3 };

typedef struct cogpu_lane_codec {
    /* Whether this CPU, and this build, can use it. */
    bool (*is_available)(void);
    /* Whether lanes decode such a block faster. */
    bool (*suits)(size_t in_bytes, size_t out_bytes);
    /* Decodes all blocks of the queue. Fails only for lack of memory, before it takes any. */
    cogpu_status (*decode)(cogpu_codec_state *state, cogpu_lane_queue *queue, cogpu_error *error);
} cogpu_lane_codec;

/*
 * Streamed decoding: blocks too large for memory are decoded while their encoded bytes arrive.
 *
 * A feed is the input buffer: `at` and `bytes` are available now; the decoder advances past what it
 * has consumed.
 */
typedef struct cogpu_feed {
    const uint8_t *at;
    size_t bytes;
    uint64_t left; /* bytes after those in the buffer */
    /* Appends to the buffer, which may move; sets `left`. NULL if nothing is left. After a failure
     * `failure` has the reason, and the input ends here. */
    void (*more)(struct cogpu_feed *feed);
    cogpu_error failure;
} cogpu_feed;

/* Fills the buffer to at least `bytes` bytes, at most FEED_MIN; false if the input ends before. */
enum { FEED_MIN = 64 << 10 };
bool cogpu_feed_fill(cogpu_feed *feed, size_t bytes);
void cogpu_feed_consume(cogpu_feed *feed, size_t bytes);

/* Zeroed at the start but for what the caller sets. */
typedef struct cogpu_stream_decoder {
    const cogpu_block_format *format;
    cogpu_feed *feed;
    uint64_t block_bytes; /* of the whole decoded block */
    void *decoder;        /* the codec's own, released by `close` */
    bool needs_whole;     /* it failed because a stream may not use that much memory */
} cogpu_stream_decoder;

/* Decoded bytes that a stream may keep as its window. */
enum { STREAM_WINDOW_MAX = 16 << 20 };

typedef struct cogpu_stream_codec {
    /* The next `out_bytes` bytes of the block; fewer only where the stream ends. Fails as a
     * cogpu_decode does. */
    cogpu_status (*decode)(cogpu_stream_decoder *stream, uint8_t *out, size_t out_bytes,
                           size_t *got, cogpu_error *error);
    void (*close)(cogpu_stream_decoder *stream);
    bool ends_itself; /* the stream marks its end, where a checksum may follow */
} cogpu_stream_codec;

/*
 * Encoders: decoded bytes of one block (with the predictor applied, in the file's byte order) to
 * encoded bytes.
 *
 * Parameters of an encoder: the block's format, with the height of this block, and the profile's
 * values, already checked against the codec's row.
 */
typedef struct cogpu_encoding {
    cogpu_block_format format;
    int level;             /* of codecs with levels; zlib treats 10 to 12 as 9 */
    int quality;           /* of codecs with a quality */
    bool lossless;         /* of codecs with a lossless mode */
    double max_error;      /* of codecs with a maximum error */
    const uint8_t *nodata; /* LERC: a sample that must not change; NULL = none */
} cogpu_encoding;

/* A tag that readers need to decode the blocks; values in the machine's byte order. */
enum { CODEC_TAG_BYTES_MAX = 1024 };
typedef struct cogpu_codec_tag {
    uint16_t id, type; /* TIFF's */
    uint64_t count;
    uint8_t values[CODEC_TAG_BYTES_MAX]; /* aligned as a uint64_t by what precedes them */
} cogpu_codec_tag;

typedef struct cogpu_encoder {
    /* `in_bytes` is the format's height times its row_bytes; `out_bytes` is at least `bound`. Sets
     * *got. Equal input gives equal output, whatever was encoded with the state before. */
    cogpu_status (*encode)(cogpu_codec_state *state, const cogpu_encoding *encoding,
                           const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                           size_t *got, cogpu_error *error);
    /* Upper bound of the bytes of an encoded block. GPU encoders keep to it too, so that the plan
     * (as whether a file must be a BigTIFF) does not depend on the device that writes. */
    uint64_t (*bound)(const cogpu_encoding *encoding, uint64_t in_bytes);
    /* The tag of a file with such blocks; NULL: none. */
    cogpu_status (*make_tag)(const cogpu_encoding *encoding, cogpu_codec_tag *tag,
                             cogpu_error *error);
} cogpu_encoder;

/* Values of tag 259. */
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

/* All facts about a codec. Zero means "no" or "no limit". */
typedef struct cogpu_codec_row {
    uint32_t compression; /* tag 259 */
    const char *name;
    const char *alias;           /* GDAL's name where it differs; NULL: none */
    const char *library;         /* "own", or the library's name; "": known by name only */
    const char *library_version; /* "zstd 1.5.4"; NULL: not known */

    /* Decoding */
    cogpu_decode *decode;             /* NULL: known by name only, or built without the library */
    const cogpu_stream_codec *stream; /* NULL: decodes whole blocks only */
    const cogpu_lane_codec *lanes;    /* NULL: decodes one block at a time */
    bool is_deflate;       /* several threads can decode a block together: inflate_chunk.h */
    bool allows_predictor; /* predictors 2 and 3 may be combined with it */
    bool own_bit_order;    /* the codec handles FillOrder 2 itself */
    /* Streams hold numbers, not bytes: decoded samples are in the machine's byte order, whatever
     * the file's is, and YCbCr comes as whole pixels (of JPEG as RGB). */
    bool holds_numbers;

    /* Encoding */
    const cogpu_encoder *encoder;            /* NULL: read only, or built without the library */
    int min_level, max_level, default_level; /* 0: no levels */
    bool has_quality, has_max_error;         /* 1 to 100; from 0 on */
    bool is_lossy, has_lossless;             /* by default; if the profile sets `lossless` */
    bool avoids_predictor;                   /* default 1: GDAL misreads others in threads */
    bool allows_packed_samples;              /* fewer bits than the sample type has */
    bool converts_to_ycbcr;                  /* RGB to YCbCr 4:2:0, if the photometric says so */
    uint32_t encode_types;                   /* bits 1 << cogpu_type */
    uint32_t encode_samples;                 /* per pixel: bits 1 << count; 0: any number */
    uint32_t max_side;                       /* of a block, in pixels */
    uint32_t strip_rows_multiple;            /* of all strips but the last */
    uint32_t lerc_packing;                   /* see cogpu_block_format */

    bool gpu_decode, gpu_encode; /* as kernels/ has it: tests/unit/kernels/test_codec_gpu_flags.c */
} cogpu_codec_row;

/* The row of a compression number, the first if several have it; NULL for an unknown number. */
const cogpu_codec_row *cogpu_codec_find(uint32_t compression);
/* By name or alias, in any case of letters. NULL for an unknown name. */
const cogpu_codec_row *cogpu_codec_named(const char *name);
/* What cogpu_codec_info returns of the index-th row; false past the last. */
bool cogpu_codec_describe(uint32_t index, cogpu_codec *info);

/* Names of the rows for which `has` is true, "a, b, c", for messages; cut off at `bytes`. */
void cogpu_codec_list_names(bool (*has)(const cogpu_codec_row *row), char *text, size_t bytes);

/* The tables that all JPEG streams of a file share, as tag 347 has them: at most 1024 bytes.
 * Depends on samples, photometric and quality of the encoding. */
cogpu_status cogpu_jpeg_tables(const cogpu_encoding *encoding, uint8_t *to, size_t capacity,
                               size_t *bytes, cogpu_error *error);

cogpu_decode cogpu_decode_none, cogpu_decode_packbits, cogpu_decode_lzw, cogpu_decode_ccitt,
    cogpu_decode_deflate, cogpu_decode_zstd, cogpu_decode_lzma, cogpu_decode_jpeg,
    cogpu_decode_webp, cogpu_decode_lerc, cogpu_decode_jpeg2000, cogpu_decode_jpegxl,
    cogpu_decode_jpeg_old;

/* Memory for stream->decoder, zeroed. */
cogpu_status cogpu_stream_decoder_open(cogpu_stream_decoder *stream, size_t bytes,
                                       cogpu_error *error);
/* Releases it: the `close` of a codec that allocates nothing else. */
void cogpu_stream_decoder_close(cogpu_stream_decoder *stream);
/* Decodes a whole block with a streaming codec that ends itself: a cogpu_decode. Also accepts a
 * stream that goes on beyond the block. */
cogpu_status cogpu_stream_decode_whole(const cogpu_stream_codec *codec,
                                       const cogpu_block_format *format, const uint8_t *in,
                                       size_t in_bytes, uint8_t *out, size_t out_bytes, size_t *got,
                                       cogpu_error *error);

extern const cogpu_stream_codec cogpu_stream_packbits, cogpu_stream_lzw, cogpu_stream_ccitt,
    cogpu_stream_deflate, cogpu_stream_zstd, cogpu_stream_lzma, cogpu_stream_jpeg;

extern const cogpu_lane_codec cogpu_lanes_deflate;

extern const cogpu_encoder cogpu_encoder_none, cogpu_encoder_packbits, cogpu_encoder_lzw,
    cogpu_encoder_deflate, cogpu_encoder_zstd, cogpu_encoder_lzma, cogpu_encoder_jpeg,
    cogpu_encoder_webp, cogpu_encoder_lerc;

/* Called by cogpu_codec_state_close: each file frees what it keeps in the state. */
void cogpu_deflate_close(cogpu_codec_state *state);
void cogpu_zstd_close(cogpu_codec_state *state);

#endif
