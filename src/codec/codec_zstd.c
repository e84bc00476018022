/*
 * Takes a block as one or more zstd frames, hands on their content; and makes such a frame.
 *
 * Decoding: each frame goes in one go straight into the block: a window, however large the frame
 * says it is, then needs no memory, and no frame can write past the block whatever size it states.
 * A frame that holds more than the block is decoded in parts, as far as the block goes.
 *
 * Encoding: `level` is zstd's, or a faster way that does as well. Levels 8 and 9 look at two
 * further places before they take a match. In measured and predicted rasters matches are few: there
 * one place is enough, and a table of half the places, which stays in the caches. Blocks without
 * any match need no search at all. Where matches are many, as with classes, the level stays as it
 * is. So each block is asked: a sample of it is encoded in each way in question.
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

static cogpu_status explain(size_t code, size_t out_bytes, cogpu_error *error) {
    switch (ZSTD_getErrorCode(code)) {
    case ZSTD_error_dstSize_tooSmall:
        return cogpu_fail(error, COGPU_CORRUPT,
                          "the zstd stream decodes to more than the %zu bytes of the block",
                          out_bytes);
    case ZSTD_error_dictionary_wrong:
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "the zstd stream wants a dictionary, which a TIFF file cannot hold");
    case ZSTD_error_memory_allocation:
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for the zstd decoder");
    default:
        return cogpu_fail(error, COGPU_CORRUPT, "the zstd stream is damaged: %s",
                          ZSTD_getErrorName(code));
    }
}

/* A frame's header: its magic number, a byte of flags, then fields that these announce. */
enum { HEADER_MIN = 5, PLAIN_HEADER = 6, WINDOW_LOG_MIN = 10, WINDOW_LOG_MAX = 31 };

static size_t header_bytes(uint8_t flags) {
    static const uint8_t dictionary_bytes[] = {0, 1, 2, 4}, content_bytes[] = {0, 2, 4, 8};
    const bool is_one_segment = flags >> 5 & 1; /* its window is its content */
    const size_t content = flags >> 6 ? content_bytes[flags >> 6] : (size_t)is_one_segment;
    return HEADER_MIN + (size_t)!is_one_segment + dictionary_bytes[flags & 3] + content;
}

/* The header of the same frame without any of these fields, but with a window that the first
 * `bytes` bytes need and no more, whatever the frame says. */
static void write_plain_header(size_t bytes, uint8_t header[PLAIN_HEADER]) {
    int log = WINDOW_LOG_MIN;
    while (log < WINDOW_LOG_MAX && (size_t)1 << log < bytes + ZSTD_BLOCKSIZE_MAX)
        log++;
    store_little(ZSTD_MAGICNUMBER, header, 4);
    header[4] = 0;
    header[5] = (uint8_t)((log - WINDOW_LOG_MIN) << 3);
}

/* Fills `out`, and says whether the frame has at least one byte more. A failure is told by zstd's
 * code. */
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

/* At most so many bytes come of a frame, by the headers of its blocks (RFC 8878, 3.1.1.2), as far
 * as the input goes. */
static uint64_t most_content(const uint8_t *in, size_t in_bytes) {
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

/* A frame that says that it fits the block is not longer, but damaged. So is one whose blocks have
 * too little: it costs no memory to see that. One with a dictionary cannot be decoded at all. */
static bool may_be_longer(const uint8_t *in, size_t in_bytes, size_t out_bytes) {
    if (in_bytes < HEADER_MIN || load_u32(in, false) != ZSTD_MAGICNUMBER ||
        in_bytes < header_bytes(in[4]) || (in[4] & 3) != 0)
        return false;
    const unsigned long long content = ZSTD_getFrameContentSize(in, in_bytes);
    const bool is_open = content == ZSTD_CONTENTSIZE_UNKNOWN ||
                         (content != ZSTD_CONTENTSIZE_ERROR && content > out_bytes);
    return is_open && most_content(in, in_bytes) > out_bytes;
}

/* After a failure of a whole frame: where it holds more than the block, the block's bytes are all
 * that is needed of it, and what follows them does not matter. */
static cogpu_status decode_start(size_t failure, const uint8_t *in, size_t in_bytes, uint8_t *out,
                                 size_t out_bytes, size_t *got, cogpu_error *error) {
    bool is_longer = false;
    if (!may_be_longer(in, in_bytes, out_bytes))
        return explain(failure, out_bytes, error);
    ZSTD_DStream *zstd = ZSTD_createDStream();
    if (!zstd)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for the zstd decoder");
    const size_t result = fill_from(zstd, in, in_bytes, out, out_bytes, &is_longer);
    ZSTD_freeDStream(zstd);
    if (ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation)
        return explain(result, out_bytes, error);
    if (!is_longer)
        return explain(failure, out_bytes, error);
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
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for the zstd decoder");
    *got = 0;
    do {
        const size_t frame = ZSTD_findFrameCompressedSize(in, in_bytes), room = out_bytes - *got;
        size_t written = frame, filled = 0;
        if (!ZSTD_isError(frame))
            written = ZSTD_decompressDCtx(state->zstd, out + *got, room, in, frame);
        if (ZSTD_getErrorCode(written) == ZSTD_error_memory_allocation)
            return explain(written, out_bytes, error);
        if (ZSTD_isError(written)) {
            TRY(decode_start(written, in, in_bytes, out + *got, room, &filled, error));
            *got += filled;
            return COGPU_OK;
        }
        *got += written;
        in += frame;
        in_bytes -= frame;
    } while (*got < out_bytes && is_frame(in, in_bytes));
    return COGPU_OK;
}

struct zstd_stream {
    ZSTD_DStream *zstd;
    uint64_t done; /* bytes, before the present call */
    bool is_done;  /* after the last frame, or the one that fills the block */
};

static cogpu_status open_stream(cogpu_stream *stream, cogpu_error *error) {
    TRY(cogpu_stream_open(stream, sizeof(struct zstd_stream), error));
    struct zstd_stream *d = stream->decoder;
    d->zstd = ZSTD_createDStream();
    if (!d->zstd)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for the zstd decoder");
    ZSTD_DCtx_setParameter(d->zstd, ZSTD_d_windowLogMax, __builtin_ctz(STREAM_WINDOW_MAX));
    return COGPU_OK;
}

/* What zstd has decoded already comes first, and alone: where zstd finds damage in its input, as a
 * wrong checksum, it does not say how many bytes it has written in the same call. */
static size_t decode_some(ZSTD_DStream *zstd, cogpu_feed *feed, ZSTD_outBuffer *to) {
    const size_t before = to->pos;
    ZSTD_inBuffer from = {feed->at, 0, 0};
    size_t result = ZSTD_decompressStream(zstd, to, &from);
    if (ZSTD_isError(result) || to->pos > before)
        return result;
    from.size = feed->bytes;
    result = ZSTD_decompressStream(zstd, to, &from);
    cogpu_feed_take(feed, from.pos);
    return result;
}

static cogpu_status stream_decode(cogpu_stream *stream, uint8_t *out, size_t out_bytes, size_t *got,
                                  cogpu_error *error) {
    if (!stream->decoder)
        TRY(open_stream(stream, error));
    struct zstd_stream *d = stream->decoder;
    cogpu_feed *feed = stream->feed;
    ZSTD_outBuffer to = {out, out_bytes, 0};
    *got = 0;
    while (*got < out_bytes && !d->is_done) {
        const bool has_input = cogpu_feed_has(feed, 1);
        const size_t before = to.pos, result = decode_some(d->zstd, feed, &to);
        *got = to.pos;
        if (ZSTD_isError(result)) {
            stream->needs_whole =
                ZSTD_getErrorCode(result) == ZSTD_error_frameParameter_windowTooLarge;
            return explain(result, out_bytes, error);
        }
        if (result == 0)
            d->is_done = d->done + *got >= stream->block_bytes ||
                         !cogpu_feed_has(feed, sizeof(uint32_t)) ||
                         !is_frame(feed->at, feed->bytes);
        else if (!has_input && to.pos == before)
            return cogpu_fail(error, COGPU_CORRUPT, "the zstd stream is cut off");
    }
    d->done += *got;
    return COGPU_OK;
}

static void stream_close(cogpu_stream *stream) {
    if (stream->decoder)
        ZSTD_freeDStream(((struct zstd_stream *)stream->decoder)->zstd);
    cogpu_stream_close(stream);
}

const cogpu_stream_codec cogpu_stream_zstd = {stream_decode, stream_close, true};

enum {
    SAMPLE_PIECES = 5, /* from all over the block: a part of it may be nodata */
    PIECE_BYTES = 4 << 10,
    SAMPLE_BYTES = SAMPLE_PIECES * PIECE_BYTES,
    SAMPLED_BLOCK_MIN = 8 * SAMPLE_BYTES, /* below it, sampling takes longer than it saves */
    SAMPLED_BLOCK_MAX = 2 << 20,          /* above it, much may repeat far away */
    SEARCH_PAYS = 4,      /* shrunk by so much, the block is of a kind whose every match counts */
    FIRST_SLOW_LEVEL = 8, /* those below are as fast as what could stand in for them */
    USUAL_LEVEL = 9
};

/* A way to look for matches, in zstd's terms; 0 is what the level says. */
struct way {
    int level, strategy, attempts_log, match_min;
    bool half_table; /* room for every other place of the block */
    size_t loss;     /* parts in 10000 by which a sample may be larger than in a sounder way */
};

static const struct way quick = {.level = 1, .loss = 20},
                        lazy = {USUAL_LEVEL, ZSTD_lazy, 4, 5, true, 0},
                        deep = {USUAL_LEVEL, ZSTD_lazy, 5, 5, true, 0},
                        deep_short = {USUAL_LEVEL, ZSTD_lazy, 5, 4, true, 0};

static int table_log(const struct way *way, size_t in_bytes) {
    return way->half_table ? 63 - __builtin_clzll(in_bytes - 1) : 0;
}

/* As libtiff writes: one frame, which says its content's size, without a checksum. */
static cogpu_status encode_by(cogpu_codec_state *state, const struct way *way, const uint8_t *in,
                              size_t in_bytes, uint8_t *out, size_t out_bytes, size_t *got,
                              cogpu_error *error) {
    const struct {
        ZSTD_cParameter parameter;
        int value;
    } settings[] = {
        {ZSTD_c_compressionLevel, way->level},      {ZSTD_c_strategy, way->strategy},
        {ZSTD_c_searchLog, way->attempts_log},      {ZSTD_c_minMatch, way->match_min},
        {ZSTD_c_hashLog, table_log(way, in_bytes)}, {ZSTD_c_chainLog, table_log(way, in_bytes)}};
    if (!state->zstd_encoder)
        state->zstd_encoder = ZSTD_createCCtx();
    if (!state->zstd_encoder)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for the zstd encoder");
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        ZSTD_CCtx_setParameter(state->zstd_encoder, settings[i].parameter, settings[i].value);
    const size_t written = ZSTD_compress2(state->zstd_encoder, out, out_bytes, in, in_bytes);
    if (ZSTD_isError(written)) /* with this much room nothing else can fail */
        return cogpu_fail(error, COGPU_MEMORY, "the zstd encoder failed: %s",
                          ZSTD_getErrorName(written));
    *got = written;
    return COGPU_OK;
}

/* Has the block matches that a sample is too small to show: more than one place in 64 whose next
 * `match_min` bytes were there before? Some 4000 places are looked at, chosen by what those bytes
 * are, so that equal ones are chosen together; but never zeros, whose runs any way finds. */
static bool repeats(const uint8_t *in, size_t in_bytes, int match_min) {
    enum { PLACES_LOG = 12, SLOTS = 2 << PLACES_LOG };
    const uint64_t least_hash = UINT64_MAX << (PLACES_LOG + __builtin_clzll(in_bytes) + 1);
    uint32_t slots[SLOTS] = {0};
    size_t places = 0, repeated = 0;
    for (size_t i = 0; i + sizeof(uint64_t) <= in_bytes; i++) {
        const uint64_t next = load_u64(in + i, false) << (64 - 8 * match_min);
        const uint64_t hash = next * 0x9FB21C651E98DF25;
        if (hash < least_hash)
            continue;
        uint32_t *slot = &slots[(hash >> 32) % SLOTS];
        repeated += *slot == (uint32_t)(hash >> 24);
        *slot = (uint32_t)(hash >> 24);
        places++;
    }
    return repeated > places / 64;
}

/* From the first byte to the last, so that the pieces lie anywhere in a row. */
static void take_sample(const uint8_t *in, size_t in_bytes, uint8_t *sample) {
    const size_t step = (in_bytes - PIECE_BYTES) / (SAMPLE_PIECES - 1);
    for (size_t i = 0; i < SAMPLE_PIECES; i++)
        memcpy(sample + i * PIECE_BYTES, in + i * step, PIECE_BYTES);
}

/* Encodes the sample: is it no larger than `bytes`, but for what may be lost? */
static cogpu_status is_as_good(cogpu_codec_state *state, const struct way *way,
                               const uint8_t *sample, size_t bytes, uint8_t *out, size_t out_bytes,
                               bool *is_good, cogpu_error *error) {
    size_t got = 0;
    TRY(encode_by(state, way, sample, SAMPLE_BYTES, out, out_bytes, &got, error));
    *is_good = got <= bytes + bytes * way->loss / 10000;
    return COGPU_OK;
}

/* The sample is not in the state's working memory: LERC has what is to be packed there. */
static cogpu_status choose_way(cogpu_codec_state *state, const uint8_t *in, size_t in_bytes,
                               uint8_t *out, size_t out_bytes, struct way *way,
                               cogpu_error *error) {
    enum { SMALL_BLOCK_MAX = 256 << 10 }; /* up to here the levels look longer, and for 4 bytes */
    const bool is_small = in_bytes <= SMALL_BLOCK_MAX;
    const struct way *sound = is_small ? &deep : &lazy;
    uint8_t sample[SAMPLE_BYTES];
    size_t bytes = 0;
    bool is_good = false;
    take_sample(in, in_bytes, sample);
    TRY(encode_by(state, sound, sample, SAMPLE_BYTES, out, out_bytes, &bytes, error));
    if (bytes < SAMPLE_BYTES / SEARCH_PAYS)
        return COGPU_OK;
    *way = *sound;
    TRY(is_as_good(state, &quick, sample, bytes, out, out_bytes, &is_good, error));
    if (is_good && !repeats(in, in_bytes, is_small ? 4 : 5)) {
        *way = quick;
    } else if (is_small) {
        TRY(is_as_good(state, &deep_short, sample, bytes, out, out_bytes, &is_good, error));
        *way = is_good ? deep_short : deep;
    }
    return COGPU_OK;
}

static cogpu_status encode(cogpu_codec_state *state, const cogpu_encoding *encoding,
                           const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                           size_t *got, cogpu_error *error) {
    struct way way = {.level = encoding->level};
    if (way.level >= FIRST_SLOW_LEVEL && way.level <= USUAL_LEVEL &&
        in_bytes >= SAMPLED_BLOCK_MIN && in_bytes <= SAMPLED_BLOCK_MAX) {
        way.half_table = true;
        TRY(choose_way(state, in, in_bytes, out, out_bytes, &way, error));
    }
    return encode_by(state, &way, in, in_bytes, out, out_bytes, got, error);
}

static uint64_t bound(const cogpu_encoding *encoding, uint64_t in_bytes) {
    (void)encoding;
    return ZSTD_COMPRESSBOUND(in_bytes);
}

const cogpu_encoder cogpu_encoder_zstd = {.encode = encode,
                                          .bound = bound,
                                          .least_level = 1,
                                          .most_level = 22,
                                          .usual_level = USUAL_LEVEL};
