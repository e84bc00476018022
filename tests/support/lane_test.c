#include "support/lane_test.h"

bool lanes_can_run(void) {
    return cogpu_inflate_lanes_run_here();
}

#if HAVE_INFLATE_LANES

#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if HAVE_ZLIB
#include <zlib.h>
#endif

enum { STREAMS_MAX = 64, LEVELS = 13, ZLIB_HEADER_BYTES = 2, ADLER_BYTES = 4 };

/* ---- memory --------------------------------------------------------------------------------- */

/* Bytes of an exact size. */
struct placed {
    uint8_t *bytes, *memory;
    size_t memory_bytes; /* of the mapping; 0: memory of malloc */
};

static struct placed place_bytes(size_t bytes, enum lane_memory place) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page * page;
    struct placed placed = {0};
    if (place == LANE_HEAP) {
        placed.memory = malloc(bytes ? bytes : 1);
        /* No bytes are a pointer that must not be dereferenced: one past the end. */
        placed.bytes = bytes ? placed.memory : placed.memory + 1;
        return placed;
    }
    placed.memory_bytes = pages + page;
    placed.memory =
        mmap(NULL, placed.memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (placed.memory == MAP_FAILED ||
        mprotect(placed.memory + (place == LANE_BEFORE_GUARD ? pages : 0), page, PROT_NONE) != 0)
        abort();
    placed.bytes = placed.memory + (place == LANE_BEFORE_GUARD ? pages - bytes : page);
    return placed;
}

static void free_placed(struct placed *placed) {
    if (placed->memory_bytes)
        munmap(placed->memory, placed->memory_bytes);
    else
        free(placed->memory);
    *placed = (struct placed){0};
}

/* ---- references ----------------------------------------------------------------------------- */

/* Memory for the output of a reference, until the next call: it is kept. */
static uint8_t *reference_memory(size_t bytes) {
    static uint8_t *memory;
    static size_t capacity;
    if (bytes >= capacity) {
        free(memory);
        capacity = bytes + 1;
        memory = malloc(capacity);
    }
    if (!memory)
        abort();
    return memory;
}

/* Lanes compare the Adler-32 of a stream that comes to its end: then all of its data is known to be
 * valid, whether the sum is right or not. The linker puts __wrap_X in the place of X. */
uint32_t __real_libdeflate_adler32(uint32_t sum, const void *bytes, size_t count);
uint32_t __wrap_libdeflate_adler32(uint32_t sum, const void *bytes, size_t count);

static _Thread_local struct {
    const void *bytes; /* NULL: no stream */
    size_t count;
} ended_stream;

uint32_t __wrap_libdeflate_adler32(uint32_t sum, const void *bytes, size_t count) {
    ended_stream.bytes = bytes;
    ended_stream.count = count;
    return __real_libdeflate_adler32(sum, bytes, count);
}

/* libdeflate is not instrumented. */
static void mark_as_written(const void *bytes, size_t count) {
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
    void __msan_unpoison(const volatile void *, size_t);
    __msan_unpoison(bytes, count);
#endif
#endif
    (void)bytes, (void)count;
}

static struct libdeflate_decompressor *reference_decompressor(void) {
    static struct libdeflate_decompressor *decompressor;
    if (!decompressor)
        decompressor = libdeflate_alloc_decompressor();
    return decompressor;
}

static bool decode_by_libdeflate(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t capacity,
                                 size_t *got) {
    size_t used = 0;
    *got = 0;
    const enum libdeflate_result result = libdeflate_zlib_decompress_ex(
        reference_decompressor(), in, in_bytes, out, capacity, &used, got);
    mark_as_written(got, sizeof *got);
    if (result == LIBDEFLATE_SUCCESS)
        mark_as_written(out, *got);
    return result == LIBDEFLATE_SUCCESS;
}

#if HAVE_ZLIB
static bool zlib_decodes(const uint8_t *in, size_t in_bytes, size_t capacity) {
    z_stream stream = {0};
    if (inflateInit(&stream) != Z_OK)
        abort();
    stream.next_in = (Bytef *)(uintptr_t)in;
    stream.avail_in = (uInt)in_bytes;
    stream.next_out = reference_memory(capacity);
    stream.avail_out = (uInt)capacity;
    const int status = inflate(&stream, Z_FINISH);
    inflateEnd(&stream);
    return status == Z_STREAM_END;
}
#else
static bool zlib_decodes(const uint8_t *in, size_t in_bytes, size_t capacity) {
    (void)in, (void)in_bytes, (void)capacity;
    return false;
}
#endif

/* ---- queue ---------------------------------------------------------------------------------- */

struct lane_test {
    cogpu_lane_queue queue;
    lane_stream *streams;
    uint32_t count, next;
    enum lane_memory place;
    const char *broken; /* rule */
    struct placed in[STREAMS_MAX], out[STREAMS_MAX];
};

static void break_rule(struct lane_test *test, const char *rule) {
    if (!test->broken)
        test->broken = rule;
}

static bool next_stream(cogpu_lane_queue *queue, cogpu_lane_block *block) {
    struct lane_test *test = (struct lane_test *)queue;
    if (test->next == test->count)
        return false;
    const uint32_t number = test->next++;
    lane_stream *stream = &test->streams[number];
    test->in[number] = place_bytes(stream->in_bytes, test->place);
    test->out[number] = place_bytes(stream->capacity, test->place);
    if (stream->in_bytes)
        memcpy(test->in[number].bytes, stream->in, stream->in_bytes);
    *block = (cogpu_lane_block){test->in[number].bytes, stream->in_bytes, test->out[number].bytes,
                                stream->capacity, stream};
    return true;
}

static void compare(struct lane_test *test, lane_stream *stream, const uint8_t *out) {
    uint8_t *expected = reference_memory(stream->capacity);
    size_t length;
    stream->library_decodes =
        decode_by_libdeflate(stream->in, stream->in_bytes, expected, stream->capacity, &length);
    if (!stream->is_decoded) {
        if (stream->library_decodes && zlib_decodes(stream->in, stream->in_bytes, stream->capacity))
            break_rule(test, "lanes refuse what libdeflate and zlib decode");
    } else if (!stream->library_decodes) {
        break_rule(test, "lanes decode what libdeflate refuses");
    } else if (stream->got != length) {
        break_rule(test, "lanes decode another length than libdeflate");
    } else if (length && memcmp(out, expected, length) != 0) {
        break_rule(test, "lanes decode other bytes than libdeflate");
    }
}

/* The data between zlib's header and the Adler-32. */
static void compare_deflate(struct lane_test *test, const lane_stream *stream, const uint8_t *out) {
    uint8_t *expected = reference_memory(stream->capacity);
    size_t used, length;
    const enum libdeflate_result result =
        libdeflate_deflate_decompress_ex(reference_decompressor(), stream->in + ZLIB_HEADER_BYTES,
                                         stream->in_bytes - ZLIB_HEADER_BYTES - ADLER_BYTES,
                                         expected, stream->capacity, &used, &length);
    mark_as_written(&length, sizeof length);
    if (result != LIBDEFLATE_SUCCESS) {
        break_rule(test, "lanes come to the end of data that libdeflate refuses");
        return;
    }
    mark_as_written(expected, length);
    if (length != stream->got || (length && memcmp(out, expected, length) != 0))
        break_rule(test, "lanes decode data to other bytes than libdeflate");
}

static void finish_stream(cogpu_lane_queue *queue, const cogpu_lane_block *block, bool is_decoded,
                          size_t got) {
    struct lane_test *test = (struct lane_test *)queue;
    lane_stream *stream = block->user;
    const size_t number = (size_t)(stream - test->streams);
    if (number >= test->next || stream->is_done || block->out != test->out[number].bytes ||
        block->in != test->in[number].bytes) {
        break_rule(test, "a stream is done that is not in a lane");
        return;
    }
    stream->is_done = true;
    stream->is_decoded = is_decoded;
    stream->got = got;
    const bool is_at_end = ended_stream.bytes == block->out && ended_stream.count == got;
    if (is_at_end)
        compare_deflate(test, stream, block->out);
    else if (is_decoded)
        break_rule(test, "the Adler-32 of a stream is not compared");
    compare(test, stream, block->out);
    ended_stream.bytes = NULL;
    free_placed(&test->in[number]);
    free_placed(&test->out[number]);
}

const char *lanes_break_rule(lane_stream *streams, uint32_t count, bool is_mostly_literals,
                             enum lane_memory place) {
    static void *kept_lanes;
    struct lane_test test = {.queue = {.is_mostly_literals = is_mostly_literals,
                                       .next = next_stream,
                                       .done = finish_stream},
                             .streams = streams,
                             .count = count,
                             .place = place};
    cogpu_error error;
    if (count > STREAMS_MAX)
        return "too many streams for this test";
    for (uint32_t i = 0; i < count; i++)
        streams[i].is_done = streams[i].is_decoded = false;
    /* What is left of other streams must not matter, and nothing that was never written. */
    void *fresh_lanes = NULL;
    if (cogpu_inflate_lanes(count % 2 ? &kept_lanes : &fresh_lanes, &test.queue, &error) !=
        COGPU_OK)
        break_rule(&test, "no memory for lanes");
    for (uint32_t i = 0; i < count; i++)
        if (!streams[i].is_done)
            break_rule(&test, "a stream is not done");
    cogpu_release(fresh_lanes);
    return test.broken;
}

/* ---- streams -------------------------------------------------------------------------------- */

uint8_t *wrap_deflate(const uint8_t *deflate, size_t bytes, size_t capacity, size_t *wrapped) {
    uint8_t *out = reference_memory(capacity);
    uint8_t *stream = malloc(ZLIB_HEADER_BYTES + bytes + ADLER_BYTES);
    size_t used = 0, got = 0;
    uint32_t sum = 0;
    if (!stream)
        abort();
    if (libdeflate_deflate_decompress_ex(reference_decompressor(), deflate, bytes, out, capacity,
                                         &used, &got) == LIBDEFLATE_SUCCESS)
        sum = libdeflate_adler32(1, out, got);
    else
        used = bytes;
    mark_as_written(&used, sizeof used);
    uint8_t *to = stream;
    *to++ = 0x78;
    *to++ = 0x9C;
    memcpy(to, deflate, used);
    to += used;
    for (int shift = 24; shift >= 0; shift -= 8)
        *to++ = (uint8_t)(sum >> shift);
    memcpy(to, deflate + used, bytes - used);
    *wrapped = ZLIB_HEADER_BYTES + bytes + ADLER_BYTES;
    return stream;
}

size_t lane_stream_length(const uint8_t *in, size_t in_bytes, size_t capacity, size_t otherwise) {
    size_t got;
    return decode_by_libdeflate(in, in_bytes, reference_memory(capacity), capacity, &got)
               ? got
               : otherwise;
}

uint8_t *compress_by_libdeflate(const uint8_t *bytes, size_t count, int level, size_t *compressed) {
    static struct libdeflate_compressor *compressors[LEVELS];
    struct libdeflate_compressor *compressor = compressors[level];
    if (!compressor)
        compressor = compressors[level] = libdeflate_alloc_compressor(level);
    const size_t bound = libdeflate_zlib_compress_bound(compressor, count);
    uint8_t *stream = malloc(bound);
    if (!stream)
        abort();
    *compressed = libdeflate_zlib_compress(compressor, bytes, count, stream, bound);
    mark_as_written(stream, *compressed);
    return stream;
}

#endif
