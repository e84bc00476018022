/*
 * Zstandard (compression 50000): frames of RFC 8878 by libzstd.
 *
 * Decoding: a frame is decoded in one call, straight into the block. So a window, however large the
 * frame declares it, needs no memory, and no frame can write past the block. A frame with more
 * content than the block is decoded as a stream, up to the end of the block.
 *
 * Encoding: `level` is zstd's, or a faster strategy that compresses as well. Levels 8 and 9 try two
 * later positions before they accept a match. Measured and predicted rasters have few matches:
 * there one position is enough, and a table of half the size, which stays in the CPU caches. Blocks
 * without matches need no search. With many matches, as in land cover classes, the level is used
 * unchanged. A sample of each block, encoded by each candidate, decides.
 */
#include "base/bytes.h"
#include "codec/codec.h"

#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

void cogpu_zstd_close(cogpu_codec_state *state) {
    ZSTD_freeDCtx(state->zstd);
    ZSTD_freeCCtx(state->zstd_encoder);
}

/* Bytes after the last frame are padding; a further frame begins with one of these numbers. */
static bool is_frame(const uint8_t *in, size_t in_bytes) {
    if (in_bytes < sizeof(uint32_t))
        return false;
    const uint32_t magic = load_u32(in, false);
    return magic == ZSTD_MAGICNUMBER ||
           (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

static cogpu_status fail_zstd(size_t code, size_t out_bytes, cogpu_error *error) {
    switch (ZSTD_getErrorCode(code)) {
    case ZSTD_error_dstSize_tooSmall:
        return cogpu_fail(error, COGPU_CORRUPT,
                          "the zstd stream decodes to more than the %zu bytes of the block",
                          out_bytes);
    case ZSTD_error_dictionary_wrong:
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "the zstd stream wants a dictionary, which a TIFF file cannot hold");
    case ZSTD_error_memory_allocation:
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for the zstd decoder");
    default:
        return cogpu_fail(error, COGPU_CORRUPT, "the zstd stream is damaged: %s",
                          ZSTD_getErrorName(code));
    }
}

/* Frame header (RFC 8878 3.1.1.1): magic number, descriptor byte, then the fields it declares. */
enum { HEADER_MIN = 5, PLAIN_HEADER = 6, WINDOW_LOG_MIN = 10, WINDOW_LOG_MAX = 31 };

static size_t header_bytes(uint8_t flags) {
    static const uint8_t dictionary_bytes[] = {0, 1, 2, 4}, content_bytes[] = {0, 2, 4, 8};
    const bool is_one_segment = flags >> 5 & 1; /* its window is its content */
    const size_t content = flags >> 6 ? content_bytes[flags >> 6] : (size_t)is_one_segment;
    return HEADER_MIN + (size_t)!is_one_segment + dictionary_bytes[flags & 3] + content;
}

/* A header for the same frame without these fields, but with the window that the first `bytes`
 * bytes need and no more. */
static void write_plain_header(size_t bytes, uint8_t header[PLAIN_HEADER]) {
    int log = WINDOW_LOG_MIN;
    while (log < WINDOW_LOG_MAX && (size_t)1 << log < bytes + ZSTD_BLOCKSIZE_MAX)
        log++;
    store_little(ZSTD_MAGICNUMBER, header, 4);
    header[4] = 0;
    header[5] = (uint8_t)((log - WINDOW_LOG_MIN) << 3);
}

/* Fills `out`; also reports whether the frame has at least one more byte. Returns zstd's code. */
static size_t fill_from(ZSTD_DStream *zstd, const uint8_t *in, size_t in_bytes, uint8_t *out,
                        size_t out_bytes, bool *is_longer) {
    uint8_t header[PLAIN_HEADER], extra;
    const size_t skipped = header_bytes(in[4]);
    ZSTD_inBuffer parts[] = {{header, sizeof header, 0}, {in + skipped, in_bytes - skipped, 0}};
    ZSTD_outBuffer targets[] = {{out, out_bytes, 0}, {&extra, 1, 0}};
    write_plain_header(out_bytes, header);
    size_t result = ZSTD_DCtx_setParameter(zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
    for (size_t i = 0; i < 2 && !ZSTD_isError(result); i++)
        result = ZSTD_decompressStream(zstd, &targets[0], &parts[i]);
    if (!ZSTD_isError(result) && targets[0].pos == out_bytes && result != 0)
        result = ZSTD_decompressStream(zstd, &targets[1], &parts[1]);
    *is_longer = !ZSTD_isError(result) && targets[1].pos == 1;
    return result;
}

/* Upper bound of a frame's content, by the headers of its blocks (RFC 8878 3.1.1.2), as far as the
 * input goes. */
static uint64_t max_content_bytes(const uint8_t *in, size_t in_bytes) {
    enum { BLOCK_HEADER = 3, RAW = 0, RLE, COMPRESSED };
    uint64_t most = 0;
    size_t at = header_bytes(in[4]);
    for (bool is_last = false; !is_last && at <= in_bytes && in_bytes - at >= BLOCK_HEADER;) {
        const uint32_t header = in[at] | (uint32_t)in[at + 1] << 8 | (uint32_t)in[at + 2] << 16;
        const uint32_t type = header >> 1 & 3, bytes = header >> 3;
        if (type > COMPRESSED)
            return most;
        is_last = header & 1;
        most += type == COMPRESSED ? ZSTD_BLOCKSIZE_MAX : bytes;
        at += BLOCK_HEADER + (type == RLE ? 1 : bytes);
    }
    return most;
}

/* A frame that declares to fit the block is not longer, but damaged. So is one whose blocks hold
 * too little, which costs no memory to find out. One with a dictionary cannot be decoded at all. */
static bool may_be_longer(const uint8_t *in, size_t in_bytes, size_t out_bytes) {
    if (in_bytes < HEADER_MIN || load_u32(in, false) != ZSTD_MAGICNUMBER ||
        in_bytes < header_bytes(in[4]) || (in[4] & 3) != 0)
        return false;
    const unsigned long long content = ZSTD_getFrameContentSize(in, in_bytes);
    const bool is_open = content == ZSTD_CONTENTSIZE_UNKNOWN ||
                         (content != ZSTD_CONTENTSIZE_ERROR && content > out_bytes);
    return is_open && max_content_bytes(in, in_bytes) > out_bytes;
}

/* Called after a whole frame failed: if it holds more than the block, the block's bytes are enough,
 * and what follows them does not matter. */
static cogpu_status decode_start(size_t failure, const uint8_t *in, size_t in_bytes, uint8_t *out,
                                 size_t out_bytes, size_t *got, cogpu_error *error) {
    bool is_longer = false;
    if (!may_be_longer(in, in_bytes, out_bytes))
        return fail_zstd(failure, out_bytes, error);
    ZSTD_DStream *zstd = ZSTD_createDStream();
    if (!zstd)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for the zstd decoder");
    const size_t result = fill_from(zstd, in, in_bytes, out, out_bytes, &is_longer);
    ZSTD_freeDStream(zstd);
    if (ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation)
        return fail_zstd(result, out_bytes, error);
    if (!is_longer)
        return fail_zstd(failure, out_bytes, error);
    *got = out_bytes;
    return COGPU_OK;
}

cogpu_status cogpu_decode_zstd(cogpu_codec_state *state, const cogpu_block_format *format,
                               const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                               size_t *got, cogpu_error *error) {
    (void)format;
    if (!state->zstd)
        state->zstd = ZSTD_createDCtx();
    if (!state->zstd)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for the zstd decoder");
    *got = 0;
    do {
        const size_t frame = ZSTD_findFrameCompressedSize(in, in_bytes),
                     capacity = out_bytes - *got;
        size_t written = frame, filled = 0;
        if (!ZSTD_isError(frame))
            written = ZSTD_decompressDCtx(state->zstd, out + *got, capacity, in, frame);
        if (ZSTD_getErrorCode(written) == ZSTD_error_memory_allocation)
            return fail_zstd(written, out_bytes, error);
        if (ZSTD_isError(written)) {
            TRY(decode_start(written, in, in_bytes, out + *got, capacity, &filled, error));
            *got += filled;
            return COGPU_OK;
        }
        *got += written;
        in += frame;
        in_bytes -= frame;
    } while (*got < out_bytes && is_frame(in, in_bytes));
    return COGPU_OK;
}

enum { FRAME_START_BYTES = 5 }; /* magic number and descriptor */

struct zstd_stream {
    ZSTD_DStream *zstd;
    uint64_t done; /* bytes, before the present call */
    size_t wanted; /* bytes of input, by what zstd returned last: at most to the end of its block */
    bool is_done;  /* after the last frame, or the one that fills the block */
};

static cogpu_status open_zstd_stream(cogpu_stream_decoder *stream, cogpu_error *error) {
    TRY(cogpu_stream_decoder_open(stream, sizeof(struct zstd_stream), error));
    struct zstd_stream *d = stream->decoder;
    d->zstd = ZSTD_createDStream();
    if (!d->zstd)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for the zstd decoder");
    ZSTD_DCtx_setParameter(d->zstd, ZSTD_d_windowLogMax, __builtin_ctz(STREAM_WINDOW_MAX));
    d->wanted = FRAME_START_BYTES;
    return COGPU_OK;
}

/* If zstd finds damage, as a wrong checksum, it does not report how many bytes it has written in
 * the same call. So it delivers what it has decoded already before it gets new input, and never
 * gets a checksum together with the bytes before it. */
static size_t decode_zstd_part(struct zstd_stream *d, cogpu_feed *feed, ZSTD_outBuffer *to) {
    const size_t before = to->pos;
    ZSTD_inBuffer from = {feed->at, 0, 0};
    size_t result = ZSTD_decompressStream(d->zstd, to, &from);
    if (ZSTD_isError(result) || to->pos > before)
        return result;
    from.size = feed->bytes < d->wanted ? feed->bytes : d->wanted;
    result = ZSTD_decompressStream(d->zstd, to, &from);
    cogpu_feed_consume(feed, from.pos);
    d->wanted = result > 0 ? result : FRAME_START_BYTES;
    return result;
}

static cogpu_status decode_zstd_stream(cogpu_stream_decoder *stream, uint8_t *out, size_t out_bytes,
                                       size_t *got, cogpu_error *error) {
    if (!stream->decoder)
        TRY(open_zstd_stream(stream, error));
    struct zstd_stream *d = stream->decoder;
    cogpu_feed *feed = stream->feed;
    ZSTD_outBuffer to = {out, out_bytes, 0};
    *got = 0;
    while (*got < out_bytes && !d->is_done) {
        const bool has_input = cogpu_feed_fill(feed, 1);
        const size_t before = to.pos, result = decode_zstd_part(d, feed, &to);
        *got = to.pos;
        if (ZSTD_isError(result)) {
            stream->needs_whole =
                ZSTD_getErrorCode(result) == ZSTD_error_frameParameter_windowTooLarge;
            return fail_zstd(result, out_bytes, error);
        }
        if (result == 0)
            d->is_done = d->done + *got >= stream->block_bytes ||
                         !cogpu_feed_fill(feed, sizeof(uint32_t)) ||
                         !is_frame(feed->at, feed->bytes);
        else if (!has_input && to.pos == before)
            return cogpu_fail(error, COGPU_CORRUPT, "the zstd stream is cut off");
    }
    d->done += *got;
    return COGPU_OK;
}

static void close_zstd_stream(cogpu_stream_decoder *stream) {
    if (stream->decoder)
        ZSTD_freeDStream(((struct zstd_stream *)stream->decoder)->zstd);
    cogpu_stream_decoder_close(stream);
}

const cogpu_stream_codec cogpu_stream_zstd = {decode_zstd_stream, close_zstd_stream, true};

enum {
    SAMPLE_PARTS = 5, /* spread over the block: part of it may be nodata */
    PART_BYTES = 4 << 10,
    SAMPLE_BYTES = SAMPLE_PARTS * PART_BYTES,
    SAMPLED_BLOCK_MIN = 8 * SAMPLE_BYTES, /* below it, sampling costs more than it saves */
    SAMPLED_BLOCK_MAX = 2 << 20,          /* above it, distant repetitions matter */
    SEARCH_PAYS = 4,                      /* with this compression ratio every match counts */
    FIRST_SLOW_LEVEL = 8                  /* lower levels are as fast as the alternatives */
};

/* A match finder, in zstd's parameters; 0 means the level's own. */
struct match_finder {
    int level, strategy, attempts_log, match_min;
    bool half_table; /* one entry for every other position of the block */
    size_t loss;     /* in 1/10000: how much larger a sample may get */
};

static const struct match_finder quick = {.level = 1, .loss = 20},
                                 lazy = {ZSTD_LEVEL_DEFAULT, ZSTD_lazy, 4, 5, true, 0},
                                 deep = {ZSTD_LEVEL_DEFAULT, ZSTD_lazy, 5, 5, true, 0},
                                 deep_short = {ZSTD_LEVEL_DEFAULT, ZSTD_lazy, 5, 4, true, 0};

static int table_log(const struct match_finder *finder, size_t in_bytes) {
    return finder->half_table ? 63 - __builtin_clzll(in_bytes - 1) : 0;
}

/* As libtiff writes: one frame, which says its content's size, without a checksum. */
static cogpu_status encode_by_finder(cogpu_codec_state *state, const struct match_finder *finder,
                                     const uint8_t *in, size_t in_bytes, uint8_t *out,
                                     size_t out_bytes, size_t *got, cogpu_error *error) {
    const struct {
        ZSTD_cParameter parameter;
        int value;
    } settings[] = {{ZSTD_c_compressionLevel, finder->level},
                    {ZSTD_c_strategy, finder->strategy},
                    {ZSTD_c_searchLog, finder->attempts_log},
                    {ZSTD_c_minMatch, finder->match_min},
                    {ZSTD_c_hashLog, table_log(finder, in_bytes)},
                    {ZSTD_c_chainLog, table_log(finder, in_bytes)}};
    if (!state->zstd_encoder)
        state->zstd_encoder = ZSTD_createCCtx();
    if (!state->zstd_encoder)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for the zstd encoder");
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        ZSTD_CCtx_setParameter(state->zstd_encoder, settings[i].parameter, settings[i].value);
    const size_t written = ZSTD_compress2(state->zstd_encoder, out, out_bytes, in, in_bytes);
    if (ZSTD_isError(written)) /* with this capacity nothing else can fail */
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "the zstd encoder failed: %s",
                          ZSTD_getErrorName(written));
    *got = written;
    return COGPU_OK;
}

/* Whether the block has matches that a sample is too small to show: more than one position in 64
 * whose next `match_min` bytes occurred before. Looks at about 4000 positions, selected by a hash
 * of those bytes so that equal ones are selected together; never zeros, which every strategy finds.
 */
static bool has_repetitions(const uint8_t *in, size_t in_bytes, int match_min) {
    enum { PLACES_LOG = 12, SLOTS = 2 << PLACES_LOG };
    const uint64_t least_hash = UINT64_MAX << (PLACES_LOG + __builtin_clzll(in_bytes) + 1);
    uint32_t slots[SLOTS] = {0};
    size_t positions = 0, repeated = 0;
    for (size_t i = 0; i + sizeof(uint64_t) <= in_bytes; i++) {
        const uint64_t next = load_u64(in + i, false) << (64 - 8 * match_min);
        const uint64_t hash = next * 0x9FB21C651E98DF25;
        if (hash < least_hash)
            continue;
        uint32_t *slot = &slots[(hash >> 32) % SLOTS];
        repeated += *slot == (uint32_t)(hash >> 24);
        *slot = (uint32_t)(hash >> 24);
        positions++;
    }
    return repeated > positions / 64;
}

/* Evenly over the block, so that parts begin anywhere in a row. */
static void copy_zstd_sample(const uint8_t *in, size_t in_bytes, uint8_t *sample) {
    const size_t step = (in_bytes - PART_BYTES) / (SAMPLE_PARTS - 1);
    for (size_t i = 0; i < SAMPLE_PARTS; i++)
        memcpy(sample + i * PART_BYTES, in + i * step, PART_BYTES);
}

/* Encodes the sample; true if it is no larger than `bytes` plus the tolerated loss. */
static cogpu_status is_as_good(cogpu_codec_state *state, const struct match_finder *finder,
                               const uint8_t *sample, size_t bytes, uint8_t *out, size_t out_bytes,
                               bool *is_good, cogpu_error *error) {
    size_t got = 0;
    TRY(encode_by_finder(state, finder, sample, SAMPLE_BYTES, out, out_bytes, &got, error));
    *is_good = got <= bytes + bytes * finder->loss / 10000;
    return COGPU_OK;
}

/* The sample is not in the working memory of the state: LERC keeps its blob there. */
static cogpu_status choose_finder(cogpu_codec_state *state, const uint8_t *in, size_t in_bytes,
                                  uint8_t *out, size_t out_bytes, struct match_finder *finder,
                                  cogpu_error *error) {
    enum { SMALL_BLOCK_MAX = 256 << 10 }; /* up to here zstd searches longer, and for 4 bytes */
    const bool is_small = in_bytes <= SMALL_BLOCK_MAX;
    const struct match_finder *safe = is_small ? &deep : &lazy;
    uint8_t sample[SAMPLE_BYTES];
    size_t bytes = 0;
    bool is_good = false;
    copy_zstd_sample(in, in_bytes, sample);
    TRY(encode_by_finder(state, safe, sample, SAMPLE_BYTES, out, out_bytes, &bytes, error));
    if (bytes < SAMPLE_BYTES / SEARCH_PAYS)
        return COGPU_OK;
    *finder = *safe;
    TRY(is_as_good(state, &quick, sample, bytes, out, out_bytes, &is_good, error));
    if (is_good && !has_repetitions(in, in_bytes, is_small ? 4 : 5)) {
        *finder = quick;
    } else if (is_small) {
        TRY(is_as_good(state, &deep_short, sample, bytes, out, out_bytes, &is_good, error));
        *finder = is_good ? deep_short : deep;
    }
    return COGPU_OK;
}

static cogpu_status encode_zstd(cogpu_codec_state *state, const cogpu_encoding *encoding,
                                const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                                size_t *got, cogpu_error *error) {
    struct match_finder finder = {.level = encoding->level};
    if (finder.level >= FIRST_SLOW_LEVEL && finder.level <= ZSTD_LEVEL_DEFAULT &&
        in_bytes >= SAMPLED_BLOCK_MIN && in_bytes <= SAMPLED_BLOCK_MAX) {
        finder.half_table = true;
        TRY(choose_finder(state, in, in_bytes, out, out_bytes, &finder, error));
    }
    return encode_by_finder(state, &finder, in, in_bytes, out, out_bytes, got, error);
}

static uint64_t bound_zstd(const cogpu_encoding *encoding, uint64_t in_bytes) {
    (void)encoding;
    return ZSTD_COMPRESSBOUND(in_bytes);
}

const cogpu_encoder cogpu_encoder_zstd = {.encode = encode_zstd, .bound = bound_zstd};
