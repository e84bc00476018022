/*
 * Mutated streams of each codec that GPUs decode, against the CPU codec: no crash, no endless loop,
 * and the contract of gpu_contract.h holds.
 *
 *     test_kernel_mutations [--codec NAME] [--count N] [--seed N] [--device cuda]
 *
 * Valid streams come from zlib and libzstd with all their settings, and from streams.h. Each case
 * changes one of them here and there: bits, bytes, lengths, headers, or splices two. The Adler-32
 * is corrected, most of the time, so that other checks must find the error. A case depends on the
 * seed and its number alone.
 *
 * A stream that violates the contract is minimised and printed. Put it into tests/fuzz/kept, for
 * the fuzz target of its decoder.
 */
#define ZSTD_STATIC_LINKING_ONLY
#include "support/gpu_contract.h"
#include "support/gpu_test.h"
#include "support/streams.h"
#include "support/test.h"

#include <signal.h>
#include <unistd.h>

#if COGPU_HAVE_ZSTD
#include <zstd.h>
#endif
#if HAVE_ZLIB
#include <zlib.h>
#endif

enum { CONTENT_MAX = 5000, STREAM_MAX = 16384, CAPACITY_MAX = 65536 };
enum { SOURCES = 300, BATCH = 64, BATCH_ON_GPU = 1024, LEAST_COUNT = 320 };
enum { SECONDS_MAX = 300, VIOLATIONS_MAX = 5 };

struct bytes {
    uint32_t count;
    uint8_t at[STREAM_MAX];
};

/* Neighbouring numbers give unrelated sequences. */
static void seed_random(uint64_t number) {
    draw_state = number + 0x9E3779B97F4A7C15u;
    draw_state = (draw_state ^ draw_state >> 30) * 0xBF58476D1CE4E5B9u;
    draw_state = (draw_state ^ draw_state >> 27) * 0x94D049BB133111EBu;
    draw_state ^= draw_state >> 31;
}

/* ---- valid streams ---- */

/* Content of several kinds, one after the other. */
static uint32_t draw_content(uint8_t *to) {
    uint32_t bytes = 1 + draw(draw(4) == 0 ? 40 : draw(8) ? 700 : CONTENT_MAX);
    for (uint32_t at = 0, part; at < bytes; at += part) {
        part = draw(3) ? bytes - at : 1 + draw(bytes - at);
        fill_content(to + at, part, (enum content)draw(CONTENTS));
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
    const struct lzw_encoder_style style = {.clear_after = draw(2)   ? lzw_libtiff.clear_after
                                                           : draw(2) ? 20 + draw(700)
                                                                     : 1u << 30,
                                            .clear_at_bytes = draw(4) ? 0 : 20 + draw(1000),
                                            .greed = draw(2) ? 16 : draw(17),
                                            .no_first_clear = draw(4) == 0,
                                            .no_end = draw(4) == 0,
                                            .double_clear = draw(8) == 0};
    gpu_stream stream = lzw_encode(content, bytes, &style);
    to->count = stream.in_bytes;
    memcpy(to->at, stream.in, stream.in_bytes);
    free((void *)(uintptr_t)stream.in);
}

/* A valid stream, and the bytes that it decodes to. */
struct source {
    struct bytes stream;
    uint32_t capacity;
};

static struct source sources[SOURCES];

static void make_source(const gpu_codec *codec, struct source *source) {
    uint8_t content[CONTENT_MAX];
    uint32_t bytes = source->capacity = draw_content(content);
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

/* ---- mutations of any codec ---- */

static uint32_t smaller_of(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* Replaces `removed` bytes from `at` on by others. */
static void replace(struct bytes *b, uint32_t at, uint32_t removed, const uint8_t *with,
                    uint32_t count) {
    uint8_t copy[STREAM_MAX];
    at = smaller_of(at, b->count);
    removed = smaller_of(removed, b->count - at);
    count = smaller_of(count, STREAM_MAX - (b->count - removed));
    memcpy(copy, with, count);
    memmove(b->at + at + count, b->at + at + removed, b->count - at - removed);
    memcpy(b->at + at, copy, count);
    b->count += count - removed;
}

static void insert_noise(struct bytes *b) {
    uint8_t noise[8];
    for (uint32_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)draw(256);
    replace(b, draw(b->count + 1), 0, noise, 1 + draw(sizeof noise));
}

/* Replaces the end of the stream by the end of another one. */
static void splice(struct bytes *b) {
    const struct bytes *other = &sources[draw(SOURCES)].stream;
    uint32_t from = draw(other->count);
    replace(b, draw(b->count + 1), b->count, other->at + from, other->count - from);
}

/* Changes a number of 1 to 4 bytes, of either byte order, by a little or to an extreme. */
static void change_number(struct bytes *b) {
    uint32_t bytes = 1 + draw(4), at = draw(b->count), way = draw(4);
    uint32_t delta = draw(2) ? 1 + draw(4) : 0u - 1 - draw(4), carry = delta;
    bool is_big_endian = draw(2);
    for (uint32_t i = 0; i < bytes; i++, carry >>= 8) {
        uint32_t index = at + (is_big_endian ? bytes - 1 - i : i);
        if (index >= b->count)
            continue;
        carry += b->at[index];
        b->at[index] = (uint8_t)(way == 0 ? 0 : way == 1 ? 0xFF : carry);
    }
}

static void copy_bytes(struct bytes *b) {
    uint32_t from = draw(b->count), bytes = smaller_of(1 + draw(64), b->count - from);
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

/* Replaces a code. */
static void change_lzw(struct bytes *b) {
    static const uint32_t codes[] = {LZW_CLEAR, LZW_END, LZW_FIRST, LZW_FIRST + 1, 0, 511, 4095};
    uint32_t width = 9 + (draw(3) ? 0 : draw(4));
    uint32_t code = draw(2) ? codes[draw(7)] : draw(1u << width);
    put_bits_up(b, width * draw(8 * b->count / width + 1), code, width);
}

/* Replaces one of the first headers. */
static void change_packbits(struct bytes *b) {
    static const uint8_t headers[] = {0, 1, 127, 128, 129, 255};
    uint32_t at = 0;
    for (uint32_t skip = draw(20); skip > 0; skip--) {
        uint8_t head = b->at[at];
        uint32_t next = at + (head < 128 ? head + 2u : head > 128 ? 2 : 1);
        at = next < b->count ? next : at;
    }
    b->at[at] = (uint8_t)(draw(2) ? headers[draw(6)] : draw(256));
}

/* Offset of the first block of the first frame. */
static uint32_t zstd_blocks(const struct bytes *b) {
    static const uint32_t dictionary[] = {0, 1, 2, 4}, content[] = {0, 2, 4, 8};
    if (b->count < 6)
        return 0;
    uint8_t head = b->at[4];
    bool is_single = head >> 5 & 1;
    uint32_t size = head >> 6 ? content[head >> 6] : is_single;
    return (is_single ? 5 : 6) + dictionary[head & 3] + size;
}

/* Changes the header of the frame, of a block, or of its literals. */
static void change_zstd(struct bytes *b) {
    uint32_t at = zstd_blocks(b);
    if (at == 0 || draw(3) == 0) {
        b->at[smaller_of(4 + draw(at > 4 ? at - 4 : 1), b->count - 1)] = (uint8_t)draw(256);
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

/* Changes the zlib header with its check, or the length of a stored block with its complement. */
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

/* Corrects the Adler-32, if the stream ends at all. */
static void fix_adler32(struct bytes *b) {
#if HAVE_ZLIB
    static uint8_t out[CAPACITY_MAX];
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

static void change_codec_bytes(const gpu_codec *codec, struct bytes *b) {
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

static void mutate(const gpu_codec *codec, struct bytes *b) {
    switch (draw(10)) {
    case 0:
        b->at[draw(b->count)] = (uint8_t)draw(256);
        break;
    case 1:
        b->count = 1 + draw(b->count);
        break;
    case 2:
        if (b->count > 1)
            replace(b, draw(b->count), 1 + draw(smaller_of(40, b->count - 1)), b->at, 0);
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
        copy_bytes(b);
        break;
    case 7:
        flip_bits(b);
        break;
    default:
        change_codec_bytes(codec, b);
    }
    b->count = b->count ? b->count : 1;
}

/* Bytes that the CPU codec decodes it to; `otherwise` if it refuses it. */
static uint32_t decoded_size(const gpu_codec *codec, const struct bytes *b, uint32_t otherwise) {
    static uint8_t out[CAPACITY_MAX];
    const cogpu_block_format format = {.compression = codec->compression};
    cogpu_codec_state state = {0};
    cogpu_error error;
    size_t got = 0;
    cogpu_status status =
        cogpu_codec_find(codec->compression)
            ->decode(&state, &format, b->at, b->count, out, CAPACITY_MAX, &got, &error);
    cogpu_codec_state_close(&state);
    return status == COGPU_OK && got > 0 ? (uint32_t)got : otherwise;
}

static gpu_stream make_case(const gpu_codec *codec, uint64_t run_seed, uint32_t number) {
    seed_random(run_seed + ((uint64_t)number << 32));
    const struct source *source = &sources[draw(SOURCES)];
    struct bytes b = source->stream;
    uint32_t capacity = source->capacity;
    for (uint32_t changes = draw(20) ? 1 + draw(3) * draw(2) : 0; changes > 0; changes--)
        mutate(codec, &b);
    if (codec->compression == COMPRESSION_DEFLATE && draw(4))
        fix_adler32(&b);
    if (draw(2))
        capacity = decoded_size(codec, &b, capacity);
    if (draw(6) == 0)
        capacity =
            draw(2) ? 1 + draw(2 * capacity) : capacity + 4 - draw(smaller_of(capacity + 4, 9));
    capacity = smaller_of(capacity, CAPACITY_MAX);
    uint8_t *in = malloc(b.count);
    memcpy(in, b.at, b.count);
    return (gpu_stream){.in = in,
                        .in_bytes = b.count,
                        .capacity = capacity,
                        .required = draw(3) ? capacity : draw(capacity + 1)};
}

/* ---- violations of the contract ---- */

/* The violation if the stream is decoded alone, or NULL. */
static const char *violation_alone(const gpu_codec *codec, gpu_stream stream) {
    cogpu_gpu *gpu = gpu_test_open(1);
    const char *violation = "the device fails";
    stream.out = NULL;
    if (gpu_test_decode(gpu, gpu_codec_decoder(codec, gpu), &stream, 1, 1, 1))
        violation = gpu_contract_violation(codec, &stream, NULL);
    free(stream.out);
    gpu->calls->close(gpu);
    return violation;
}

/* Removes bytes as long as the rest violates the contract. */
static void minimise(const gpu_codec *codec, gpu_stream *stream) {
    uint8_t *bytes = malloc(stream->in_bytes);
    for (uint32_t step = stream->in_bytes / 2; step > 0; step /= 2)
        for (uint32_t at = 0; at + step <= stream->in_bytes && step < stream->in_bytes;) {
            gpu_stream less = *stream;
            less.in_bytes -= step;
            memcpy(bytes, stream->in, at);
            memcpy(bytes + at, stream->in + at + step, less.in_bytes - at);
            less.in = bytes;
            if (violation_alone(codec, less)) {
                memcpy((uint8_t *)(uintptr_t)stream->in, bytes, less.in_bytes);
                stream->in_bytes = less.in_bytes;
            } else {
                at += step;
            }
        }
    free(bytes);
}

static void print_violation(const gpu_codec *codec, gpu_stream *stream, const char *violation) {
    const char *alone = violation_alone(codec, *stream);
    if (alone)
        minimise(codec, stream);
    printf("%s: %s%s; capacity %u, needed %u, stream ", codec->name, violation,
           alone ? "" : ", but not if it is decoded alone", stream->capacity, stream->required);
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
    uint32_t both_accept, both_refuse, cpu_only, violation;
} run;

static void count_result(gpu_stream *stream) {
    bool cpu_accepts = false;
    const char *violation = gpu_contract_violation(run.codec, stream, &cpu_accepts);
    run.violation += violation != NULL;
    run.both_refuse += !violation && !cpu_accepts;
    run.both_accept += !violation && cpu_accepts && stream->block_status == COGPU_GPU_DECODED;
    run.cpu_only += !violation && cpu_accepts && stream->block_status != COGPU_GPU_DECODED;
    if (violation)
        print_violation(run.codec, stream, violation);
}

/* After a batch that the device failed to decode. */
static void find_failing_stream(gpu_stream *streams, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (violation_alone(run.codec, streams[i]))
            print_violation(run.codec, &streams[i], "the device fails");
    run.violation++;
}

static void run_batch(uint32_t count) {
    static cogpu_gpu *gpu; /* a real one stays open, because opening takes long */
    static gpu_stream streams[BATCH_ON_GPU];
    for (uint32_t i = 0; i < count; i++)
        streams[i] = make_case(run.codec, run.seed, run.done + i);
    gpu = gpu ? gpu : gpu_test_open(run.seed + run.done);
    /* decoders take other paths if the blocks are few for the device */
    if (!gpu_test_is_real() && draw(2))
        gpu->multiprocessors = 3 * count;
    /* with minimal scratch memory a batch takes many rounds, which is slow */
    bool good = gpu_test_decode(gpu, gpu_codec_decoder(run.codec, gpu), streams, count,
                                draw(16) > 0, draw_state);
    if (!good || !gpu_test_is_real()) {
        gpu->calls->close(gpu);
        gpu = NULL;
    }
    if (!good)
        find_failing_stream(streams, count);
    for (uint32_t i = 0; i < count; i++) {
        if (good)
            count_result(&streams[i]);
        free(streams[i].out);
        free((void *)(uintptr_t)streams[i].in);
    }
}

static void report_signal(int number) {
    char text[160];
    int bytes =
        snprintf(text, sizeof text, "signal %d: %s, seed %llu, in the batch from case %u on\n",
                 number, run.codec->name, (unsigned long long)run.seed, run.done);
    (void)!write(STDOUT_FILENO, text, (size_t)bytes);
    _exit(1);
}

static void mutations(void) {
    seed_random(run.seed);
    for (uint32_t i = 0; i < SOURCES; i++)
        make_source(run.codec, &sources[i]);
    run.done = run.both_accept = run.both_refuse = run.cpu_only = run.violation = 0;
    for (uint32_t part; run.done < run.count && run.violation < VIOLATIONS_MAX; run.done += part) {
        part = gpu_test_is_real() && draw(2) ? BATCH_ON_GPU : BATCH;
        part = smaller_of(run.count - run.done, part);
        alarm(SECONDS_MAX);
        run_batch(part);
    }
    printf("%-8s %u streams of seed %llu: %u accepted by both, %u by none, %u by the CPU alone; "
           "%u violations\n",
           run.codec->name, run.done, (unsigned long long)run.seed, run.both_accept,
           run.both_refuse, run.cpu_only, run.violation);
    fflush(stdout);
    CHECK(run.violation == 0);
    /* otherwise the mutations are too weak or too strong; with few streams that may be chance */
    CHECK(run.count < LEAST_COUNT ||
          (run.both_accept > run.count / 20 && run.both_refuse > run.count / 20));
}

static bool can_write(const gpu_codec *codec) {
#if !HAVE_ZLIB
    if (codec->compression == COMPRESSION_DEFLATE)
        return false;
#endif
    return gpu_find_codec(codec->compression) != NULL;
}

TESTS(kernel_mutations) {
    const char *name = NULL;
    run.count = LEAST_COUNT;
    run.seed = 1;
    for (int i = 1; i + 1 < test_argc; i += 2) {
        name = strcmp(test_argv[i], "--codec") == 0 ? test_argv[i + 1] : name;
        if (strcmp(test_argv[i], "--count") == 0)
            run.count = (uint32_t)strtoul(test_argv[i + 1], NULL, 10);
        if (strcmp(test_argv[i], "--seed") == 0)
            run.seed = strtoull(test_argv[i + 1], NULL, 10);
        if (strcmp(test_argv[i], "--device") == 0)
            setenv("COGPU_TEST_DEVICE", test_argv[i + 1], 1);
    }
    signal(SIGALRM, report_signal);
    signal(SIGSEGV, report_signal);
    for (int i = 0; i < GPU_CODECS; i++) {
        run.codec = &gpu_codecs[i];
        if ((name && strcmp(name, run.codec->name) != 0) || !can_write(run.codec))
            continue;
        RUN(mutations);
    }
    return FINISH();
}
