/*
 * Mutated streams of each codec that the device decodes, against the codec of the host: nothing
 * crashes, nothing goes on for ever, and the law of gpu_law.h is kept.
 *
 *     test_cuda_mutations [--codec NAME] [--count N] [--seed N] [--device cuda]
 *
 * Sound streams come from zlib and libzstd with all their settings, and from writers of our own
 * with the habits of many encoders. Each case takes one or two of them and changes it here and
 * there: bits, bytes, lengths, headers, places. Sums are made right again, most of the time, so
 * that it is not they that find out. A case is a matter of the seed and its number alone.
 *
 * What breaks the law is made as small as can be and printed. It belongs into tests/fuzz/kept, for
 * the fuzz target of its decoder.
 */
#define ZSTD_STATIC_LINKING_ONLY
#include "gpu_law.h"
#include "gpu_test.h"
#include "streams.h"
#include "test.h"

#include <signal.h>
#include <unistd.h>

#if COGPU_HAVE_ZSTD
#include <zstd.h>
#endif
#if HAVE_ZLIB
#include <zlib.h>
#endif

enum { CONTENT_MAX = 5000, STREAM_MAX = 16384, ROOM_MAX = 65536 };
enum { SOURCES = 300, BATCH = 64, BATCH_ON_GPU = 1024, LEAST_COUNT = 320 };
enum { SECONDS_MAX = 300, BREAKS_MAX = 5 };

struct bytes {
    uint32_t count;
    uint8_t at[STREAM_MAX];
};

/* Neighbouring numbers shall have nothing in common. */
static void sow(uint64_t number) {
    seed = number + 0x9E3779B97F4A7C15u;
    seed = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9u;
    seed = (seed ^ seed >> 27) * 0x94D049BB133111EBu;
    seed ^= seed >> 31;
}

/* ---- sound streams ---- */

/* Contents of several kinds, one after the other. */
static uint32_t draw_content(uint8_t *to) {
    uint32_t bytes = 1 + draw(draw(4) == 0 ? 40 : draw(8) ? 700 : CONTENT_MAX);
    for (uint32_t at = 0, part; at < bytes; at += part) {
        part = draw(3) ? bytes - at : 1 + draw(bytes - at);
        fill(to + at, part, (enum content)draw(CONTENTS));
    }
    return bytes;
}

#if HAVE_ZLIB
static void write_deflate(const uint8_t *content, uint32_t bytes, struct bytes *to) {
    static const int flushes[] = {Z_NO_FLUSH, Z_PARTIAL_FLUSH, Z_SYNC_FLUSH, Z_FULL_FLUSH, Z_BLOCK};
    z_stream z = {.next_out = to->at, .avail_out = STREAM_MAX};
    CHECK(deflateInit2(&z, (int)draw(10), Z_DEFLATED, 9 + (int)draw(7), 1 + (int)draw(9),
                       (int)draw(5)) == Z_OK);
    z.next_in = (uint8_t *)(uintptr_t)content;
    while (draw(3) == 0) {
        z.avail_in = 1 + draw(bytes - (uint32_t)z.total_in);
        if (z.total_in + z.avail_in < bytes)
            CHECK(deflate(&z, flushes[draw(5)]) == Z_OK);
    }
    z.avail_in = bytes - (uint32_t)z.total_in;
    CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
    to->count = (uint32_t)z.total_out;
    deflateEnd(&z);
}
#endif

#if COGPU_HAVE_ZSTD
static void write_zstd(const uint8_t *content, uint32_t bytes, struct bytes *to) {
    ZSTD_CCtx *c = ZSTD_createCCtx();
    to->count = 0;
    for (uint32_t at = 0, part; at < bytes; at += part) {
        part = draw(8) ? bytes - at : 1 + draw(bytes - at);
        ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, 1 + (int)draw(19));
        ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, (int)draw(2));
        ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, draw(4) == 0);
        ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, draw(2) ? 10 : 0);
        ZSTD_CCtx_setParameter(c, ZSTD_c_targetCBlockSize, draw(3) ? 0 : 1340);
        ZSTD_CCtx_setParameter(c, ZSTD_c_literalCompressionMode, (int)draw(3));
        size_t got =
            ZSTD_compress2(c, to->at + to->count, STREAM_MAX - to->count, content + at, part);
        CHECK(!ZSTD_isError(got));
        to->count += (uint32_t)got;
    }
    ZSTD_freeCCtx(c);
}
#endif

static void write_lzw(const uint8_t *content, uint32_t bytes, struct bytes *to) {
    const struct lzw_habits habits = {.clear_after = draw(2)   ? lzw_libtiff.clear_after
                                                     : draw(2) ? 20 + draw(700)
                                                               : 1u << 30,
                                      .clear_at_bytes = draw(4) ? 0 : 20 + draw(1000),
                                      .greed = draw(2) ? 16 : draw(17),
                                      .no_first_clear = draw(4) == 0,
                                      .no_end = draw(4) == 0,
                                      .double_clear = draw(8) == 0};
    gpu_stream stream = lzw_encode(content, bytes, &habits);
    to->count = stream.in_bytes;
    memcpy(to->at, stream.in, stream.in_bytes);
    free((void *)(uintptr_t)stream.in);
}

/* A sound stream, and what it decodes to. */
struct source {
    struct bytes stream;
    uint32_t room;
};

static struct source sources[SOURCES];

static void make_source(const gpu_codec *codec, struct source *source) {
    uint8_t content[CONTENT_MAX];
    uint32_t bytes = source->room = draw_content(content);
    switch (codec->compression) {
#if HAVE_ZLIB
    case COMPRESSION_DEFLATE:
        write_deflate(content, bytes, &source->stream);
        break;
#endif
#if COGPU_HAVE_ZSTD
    case COMPRESSION_ZSTD:
        write_zstd(content, bytes, &source->stream);
        break;
#endif
    case COMPRESSION_LZW:
        write_lzw(content, bytes, &source->stream);
        break;
    default:
        source->stream.count = packbits_encode(content, bytes, source->stream.at);
    }
}

/* ---- mutations for all ---- */

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* The bytes from `at` on, `gone` of them gone, others in their place. */
static void replace(struct bytes *b, uint32_t at, uint32_t gone, const uint8_t *with,
                    uint32_t count) {
    uint8_t copy[STREAM_MAX];
    at = least(at, b->count);
    gone = least(gone, b->count - at);
    count = least(count, STREAM_MAX - (b->count - gone));
    memcpy(copy, with, count);
    memmove(b->at + at + count, b->at + at + gone, b->count - at - gone);
    memcpy(b->at + at, copy, count);
    b->count += count - gone;
}

static void insert_noise(struct bytes *b) {
    uint8_t noise[8];
    for (uint32_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)draw(256);
    replace(b, draw(b->count + 1), 0, noise, 1 + draw(sizeof noise));
}

/* The bytes from a place of another stream on take the place of those from here on. */
static void splice(struct bytes *b) {
    const struct bytes *other = &sources[draw(SOURCES)].stream;
    uint32_t from = draw(other->count);
    replace(b, draw(b->count + 1), b->count, other->at + from, other->count - from);
}

/* A number of some bytes, of either order: a little more or less, or as large as can be. */
static void change_number(struct bytes *b) {
    uint32_t bytes = 1 + draw(4), at = draw(b->count), way = draw(4);
    uint32_t delta = draw(2) ? 1 + draw(4) : 0u - 1 - draw(4), carry = delta;
    bool is_big_endian = draw(2);
    for (uint32_t i = 0; i < bytes; i++, carry >>= 8) {
        uint32_t place = at + (is_big_endian ? bytes - 1 - i : i);
        if (place >= b->count)
            continue;
        carry += b->at[place];
        b->at[place] = (uint8_t)(way == 0 ? 0 : way == 1 ? 0xFF : carry);
    }
}

static void copy_piece(struct bytes *b) {
    uint32_t from = draw(b->count), bytes = least(1 + draw(64), b->count - from);
    replace(b, draw(b->count + 1), draw(2) ? bytes : 0, b->at + from, bytes);
}

static void flip_bits(struct bytes *b) {
    for (uint32_t flips = 1 + draw(4); flips > 0; flips--)
        b->at[draw(b->count)] ^= (uint8_t)(1u << draw(8));
}

/* ---- mutations of one codec ---- */

static void put_bits_up(struct bytes *b, uint32_t bit, uint32_t value, uint32_t width) {
    for (uint32_t i = 0; i < width && (bit + i) / 8 < b->count; i++) {
        uint8_t *byte = &b->at[(bit + i) / 8], mask = (uint8_t)(0x80 >> (bit + i) % 8);
        *byte = (uint8_t)(value >> (width - 1 - i) & 1 ? *byte | mask : *byte & ~mask);
    }
}

/* Any code in the place of another. */
static void change_lzw(struct bytes *b) {
    static const uint32_t codes[] = {LZW_CLEAR, LZW_END, LZW_FIRST, LZW_FIRST + 1, 0, 511, 4095};
    uint32_t width = 9 + (draw(3) ? 0 : draw(4));
    uint32_t code = draw(2) ? codes[draw(7)] : draw(1u << width);
    put_bits_up(b, width * draw(8 * b->count / width + 1), code, width);
}

/* Another head in the place of one of the first. */
static void change_packbits(struct bytes *b) {
    static const uint8_t heads[] = {0, 1, 127, 128, 129, 255};
    uint32_t at = 0;
    for (uint32_t skip = draw(20); skip > 0; skip--) {
        uint8_t head = b->at[at];
        uint32_t next = at + (head < 128 ? head + 2u : head > 128 ? 2 : 1);
        at = next < b->count ? next : at;
    }
    b->at[at] = (uint8_t)(draw(2) ? heads[draw(6)] : draw(256));
}

/* Where the blocks of a first frame begin. */
static uint32_t zstd_blocks(const struct bytes *b) {
    static const uint32_t dictionary[] = {0, 1, 2, 4}, content[] = {0, 2, 4, 8};
    if (b->count < 6)
        return 0;
    uint8_t head = b->at[4];
    bool is_single = head >> 5 & 1;
    uint32_t size = head >> 6 ? content[head >> 6] : is_single;
    return (is_single ? 5 : 6) + dictionary[head & 3] + size;
}

/* The header of the frame, of a block, or of what is in the block. */
static void change_zstd(struct bytes *b) {
    uint32_t at = zstd_blocks(b);
    if (at == 0 || draw(3) == 0) {
        b->at[least(4 + draw(at > 4 ? at - 4 : 1), b->count - 1)] = (uint8_t)draw(256);
        return;
    }
    for (uint32_t skip = draw(4); skip > 0; skip--) {
        uint32_t head = at + 2 < b->count ? b->at[at] + 256u * b->at[at + 1] : 0;
        uint32_t next = at + 3 + ((head >> 1 & 3) == 1 ? 1 : head >> 3);
        at = next + 3 < b->count ? next : at;
    }
    at += draw(2) ? 0 : 3 + draw(5);
    if (at < b->count)
        b->at[at] = (uint8_t)(draw(2) ? b->at[at] ^ 1u << draw(8) : draw(256));
}

/* The head of the stream, its check with it; or the length of a stored section with its twin. */
static void change_deflate(struct bytes *b) {
    if (b->count < 2)
        return;
    if (draw(2)) {
        b->at[0] = draw(2) ? (uint8_t)(8 + 16 * draw(16)) : (uint8_t)draw(256);
        b->at[1] = (uint8_t)(draw(8) << 5);
        b->at[1] = (uint8_t)(b->at[1] + 31 - (256u * b->at[0] + b->at[1]) % 31);
        return;
    }
    for (uint32_t at = draw(b->count); at + 4 <= b->count; at++)
        if ((b->at[at] ^ b->at[at + 2]) == 0xFF && (b->at[at + 1] ^ b->at[at + 3]) == 0xFF) {
            uint32_t length =
                draw(2) ? draw(65536) : b->at[at] + 256u * b->at[at + 1] + draw(9) - 4;
            for (uint32_t i = 0; i < 2; i++) {
                b->at[at + i] = (uint8_t)(length >> 8 * i);
                b->at[at + 2 + i] = (uint8_t)~b->at[at + i];
            }
            return;
        }
}

/* Where the stream comes to an end at all, its sum is made right. */
static void mend_deflate(struct bytes *b) {
#if HAVE_ZLIB
    static uint8_t out[ROOM_MAX];
    z_stream z = {.next_in = b->at + 2, .next_out = out, .avail_out = sizeof out};
    if (b->count < 3)
        return;
    z.avail_in = b->count - 2;
    CHECK(inflateInit2(&z, -15) == Z_OK);
    if (inflate(&z, Z_FINISH) == Z_STREAM_END && 2 + z.total_in + 4 <= STREAM_MAX) {
        uint32_t end = 2 + (uint32_t)z.total_in;
        uint32_t sum = (uint32_t)adler32(adler32(0, NULL, 0), out, (uInt)z.total_out);
        uint8_t bytes[4] = {(uint8_t)(sum >> 24), (uint8_t)(sum >> 16), (uint8_t)(sum >> 8),
                            (uint8_t)sum};
        replace(b, end, 4, bytes, 4);
    }
    inflateEnd(&z);
#else
    (void)b;
#endif
}

/* ---- cases ---- */

static void change_own(const gpu_codec *codec, struct bytes *b) {
    switch (codec->compression) {
    case COMPRESSION_DEFLATE:
        change_deflate(b);
        break;
    case COMPRESSION_ZSTD:
        change_zstd(b);
        break;
    case COMPRESSION_LZW:
        change_lzw(b);
        break;
    default:
        change_packbits(b);
    }
}

static void change(const gpu_codec *codec, struct bytes *b) {
    switch (draw(10)) {
    case 0:
        b->at[draw(b->count)] = (uint8_t)draw(256);
        break;
    case 1:
        b->count = 1 + draw(b->count);
        break;
    case 2:
        if (b->count > 1)
            replace(b, draw(b->count), 1 + draw(least(40, b->count - 1)), b->at, 0);
        break;
    case 3:
        insert_noise(b);
        break;
    case 4:
        splice(b);
        break;
    case 5:
        change_number(b);
        break;
    case 6:
        copy_piece(b);
        break;
    case 7:
        flip_bits(b);
        break;
    default:
        change_own(codec, b);
    }
    b->count = b->count ? b->count : 1;
}

/* What the host decodes it to; `otherwise`, where it does not. */
static uint32_t room_for(const gpu_codec *codec, const struct bytes *b, uint32_t otherwise) {
    static uint8_t out[ROOM_MAX];
    const cogpu_block_format format = {.compression = codec->compression};
    cogpu_codec_state state = {0};
    cogpu_error error;
    size_t got = 0;
    cogpu_status status =
        cogpu_codec_find(codec->compression)
            ->decode(&state, &format, b->at, b->count, out, ROOM_MAX, &got, &error);
    cogpu_codec_state_close(&state);
    return status == COGPU_OK && got > 0 ? (uint32_t)got : otherwise;
}

static gpu_stream make_case(const gpu_codec *codec, uint64_t run_seed, uint32_t number) {
    sow(run_seed + ((uint64_t)number << 32));
    const struct source *source = &sources[draw(SOURCES)];
    struct bytes b = source->stream;
    uint32_t room = source->room;
    for (uint32_t changes = draw(20) ? 1 + draw(3) * draw(2) : 0; changes > 0; changes--)
        change(codec, &b);
    if (codec->compression == COMPRESSION_DEFLATE && draw(4))
        mend_deflate(&b);
    if (draw(2))
        room = room_for(codec, &b, room);
    if (draw(6) == 0)
        room = draw(2) ? 1 + draw(2 * room) : room + 4 - draw(least(room + 4, 9));
    room = least(room, ROOM_MAX);
    uint8_t *in = malloc(b.count);
    memcpy(in, b.at, b.count);
    return (gpu_stream){
        .in = in, .in_bytes = b.count, .room = room, .needed = draw(3) ? room : draw(room + 1)};
}

/* ---- what breaks the law ---- */

/* What is wrong when the stream is decoded alone, or NULL. */
static const char *broken_alone(const gpu_codec *codec, gpu_stream stream) {
    cogpu_gpu *gpu = gpu_test_open(1);
    const char *broken = "the device fails";
    stream.out = NULL;
    if (gpu_test_decode(gpu, cogpu_gpu_decoder_of(codec->compression), &stream, 1, 1, 1))
        broken = gpu_law_broken(codec, &stream, NULL);
    free(stream.out);
    gpu->calls->close(gpu);
    return broken;
}

/* Leaves out bytes as long as what is left breaks the law. */
static void minimise(const gpu_codec *codec, gpu_stream *stream) {
    uint8_t *bytes = malloc(stream->in_bytes);
    for (uint32_t step = stream->in_bytes / 2; step > 0; step /= 2)
        for (uint32_t at = 0; at + step <= stream->in_bytes && step < stream->in_bytes;) {
            gpu_stream less = *stream;
            less.in_bytes -= step;
            memcpy(bytes, stream->in, at);
            memcpy(bytes + at, stream->in + at + step, less.in_bytes - at);
            less.in = bytes;
            if (broken_alone(codec, less)) {
                memcpy((uint8_t *)(uintptr_t)stream->in, bytes, less.in_bytes);
                stream->in_bytes = less.in_bytes;
            } else {
                at += step;
            }
        }
    free(bytes);
}

static void show(const gpu_codec *codec, gpu_stream *stream, const char *broken) {
    const char *alone = broken_alone(codec, *stream);
    if (alone)
        minimise(codec, stream);
    printf("%s: %s%s; room %u, needed %u, stream ", codec->name, broken,
           alone ? "" : ", but not where it is alone", stream->room, stream->needed);
    for (uint32_t i = 0; i < stream->in_bytes; i++)
        printf("%02x", stream->in[i]);
    printf("\n");
    fflush(stdout);
}

/* ---- a run ---- */

static struct {
    const gpu_codec *codec;
    uint64_t seed;
    uint32_t count, done;
    uint32_t both_take, both_refuse, left, broken;
} run;

static void judge(gpu_stream *stream) {
    bool host_takes = false;
    const char *broken = gpu_law_broken(run.codec, stream, &host_takes);
    run.broken += broken != NULL;
    run.both_refuse += !broken && !host_takes;
    run.both_take += !broken && host_takes && stream->verdict == COGPU_GPU_DECODED;
    run.left += !broken && host_takes && stream->verdict != COGPU_GPU_DECODED;
    if (broken)
        show(run.codec, stream, broken);
}

/* The device has failed with a batch: which of its streams was it? */
static void find_culprit(gpu_stream *streams, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (broken_alone(run.codec, streams[i]))
            show(run.codec, &streams[i], "the device fails");
    run.broken++;
}

static void run_batch(uint32_t count) {
    static cogpu_gpu *gpu; /* a real one is kept, since it takes long to open */
    static gpu_stream streams[BATCH_ON_GPU];
    for (uint32_t i = 0; i < count; i++)
        streams[i] = make_case(run.codec, run.seed, run.done + i);
    gpu = gpu ? gpu : gpu_test_open(run.seed + run.done);
    /* with the least scratch a batch goes in many rounds, which takes long */
    bool good = gpu_test_decode(gpu, cogpu_gpu_decoder_of(run.codec->compression), streams, count,
                                draw(16) > 0, seed);
    if (!good || !gpu_test_is_real()) {
        gpu->calls->close(gpu);
        gpu = NULL;
    }
    if (!good)
        find_culprit(streams, count);
    for (uint32_t i = 0; i < count; i++) {
        if (good)
            judge(&streams[i]);
        free(streams[i].out);
        free((void *)(uintptr_t)streams[i].in);
    }
}

static void tell_where(int number) {
    char text[160];
    int bytes =
        snprintf(text, sizeof text, "signal %d: %s, seed %llu, in the batch from case %u on\n",
                 number, run.codec->name, (unsigned long long)run.seed, run.done);
    (void)!write(STDOUT_FILENO, text, (size_t)bytes);
    _exit(1);
}

static void mutations(void) {
    uint32_t batch = gpu_test_is_real() ? BATCH_ON_GPU : BATCH;
    sow(run.seed);
    for (uint32_t i = 0; i < SOURCES; i++)
        make_source(run.codec, &sources[i]);
    run.done = run.both_take = run.both_refuse = run.left = run.broken = 0;
    for (uint32_t part; run.done < run.count && run.broken < BREAKS_MAX; run.done += part) {
        part = least(run.count - run.done, batch);
        alarm(SECONDS_MAX);
        run_batch(part);
    }
    printf("%-8s %u streams of seed %llu: %u taken by both, %u by none, %u by the host alone; %u "
           "break the law\n",
           run.codec->name, run.done, (unsigned long long)run.seed, run.both_take, run.both_refuse,
           run.left, run.broken);
    fflush(stdout);
    CHECK(run.broken == 0);
    /* or the streams are no good for this; few of them say nothing of it */
    CHECK(run.count < LEAST_COUNT ||
          (run.both_take > run.count / 20 && run.both_refuse > run.count / 20));
}

static bool can_write(const gpu_codec *codec) {
#if !HAVE_ZLIB
    if (codec->compression == COMPRESSION_DEFLATE)
        return false;
#endif
    return gpu_codec_of(codec->compression) != NULL;
}

int main(int count, char **words) {
    const char *name = NULL;
    run.count = LEAST_COUNT;
    run.seed = 1;
    for (int i = 1; i + 1 < count; i += 2) {
        name = strcmp(words[i], "--codec") == 0 ? words[i + 1] : name;
        if (strcmp(words[i], "--count") == 0)
            run.count = (uint32_t)strtoul(words[i + 1], NULL, 10);
        if (strcmp(words[i], "--seed") == 0)
            run.seed = strtoull(words[i + 1], NULL, 10);
        if (strcmp(words[i], "--device") == 0)
            setenv("COGPU_TEST_DEVICE", words[i + 1], 1);
    }
    signal(SIGALRM, tell_where);
    signal(SIGSEGV, tell_where);
    for (int i = 0; i < GPU_CODECS; i++) {
        run.codec = &gpu_codecs[i];
        if ((name && strcmp(name, run.codec->name) != 0) || !can_write(run.codec))
            continue;
        RUN(mutations);
    }
    return FINISH();
}
