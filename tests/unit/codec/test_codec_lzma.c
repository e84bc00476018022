/* The LZMA codec: .xz streams. Trap T209. */
#include "support/codec_test.h"

#if COGPU_HAVE_LZMA
#include <lzma.h>
#include <sys/resource.h>

/* Memory is not limited where the address sanitizer reserves terabytes for itself. */
#if defined(__SANITIZE_ADDRESS__)
#define LIMITS_MEMORY 0
#elif defined(__has_feature)
#define LIMITS_MEMORY (!__has_feature(address_sanitizer))
#else
#define LIMITS_MEMORY 1
#endif

static uint8_t raw[100000], packed[120000];

/* As libtiff writes: LZMA2 behind a delta filter of `delta` bytes, where that is not 0. `split`
 * begins a new block of the xz stream after so many bytes. */
static size_t compress_bytes(size_t bytes, uint32_t preset, uint32_t delta, lzma_check check,
                             size_t split) {
    lzma_options_lzma options;
    lzma_lzma_preset(&options, preset);
    options.dict_size = preset > 6 ? 1 << 20 : options.dict_size; /* spares the encoder's memory */
    lzma_options_delta delta_options = {.type = LZMA_DELTA_TYPE_BYTE, .dist = delta};
    const lzma_filter all[] = {{LZMA_FILTER_DELTA, &delta_options},
                               {LZMA_FILTER_LZMA2, &options},
                               {LZMA_VLI_UNKNOWN, NULL}};
    lzma_stream stream = LZMA_STREAM_INIT;
    stream.next_out = packed;
    stream.avail_out = sizeof packed;
    if (lzma_stream_encoder(&stream, delta ? all : all + 1, check) != LZMA_OK)
        return 0;
    for (size_t done = 0; done < bytes; done += split) {
        stream.next_in = raw + done;
        stream.avail_in = bytes - done < split ? bytes - done : split;
        while (lzma_code(&stream, LZMA_FULL_FLUSH) == LZMA_OK)
            ;
    }
    while (lzma_code(&stream, LZMA_FINISH) == LZMA_OK)
        ;
    lzma_end(&stream);
    return (size_t)(stream.next_out - packed);
}

static int lzma_gives(size_t in_bytes, size_t bytes) {
    return decodes_to(cogpu_decode_lzma, packed, in_bytes, raw, bytes, bytes);
}

static void round_trips(void) {
    const size_t sizes[] = {0, 1, 100, 5000, 100000};
    const unsigned spreads[] = {1, 60, 256};
    const lzma_check checks[] = {LZMA_CHECK_NONE, LZMA_CHECK_CRC32, LZMA_CHECK_CRC64,
                                 LZMA_CHECK_SHA256};
    for (size_t i = 0; i < 5 * 3 * 4; i++) {
        size_t bytes = sizes[i / 12];
        fill_bytes(raw, bytes, spreads[i / 4 % 3], i % 3 * 300);
        size_t stored = compress_bytes(bytes, (uint32_t)i % 7, (uint32_t)i % 5, checks[i % 4],
                                       bytes / (i % 2 + 1) + 1);
        CHECK(stored > 0);
        CHECK(lzma_gives(stored, bytes));
        CHECK(decodes_to(cogpu_decode_lzma, packed, stored, raw, bytes, bytes + 10));
        CHECK(longer_than_block(cogpu_decode_lzma, packed, stored, raw, bytes, 10));
    }
}

static void many_blocks(void) {
    fill_bytes(raw, 9000, 60, 300);
    size_t stored = compress_bytes(9000, 6, 2, LZMA_CHECK_CRC32, 1000);
    CHECK(lzma_gives(stored, 9000));
    CHECK(longer_than_block(cogpu_decode_lzma, packed, stored, raw, 9000, 18));
}

/* A truncated index after the blocks is accepted; any other truncation is an error. */
static void truncated(void) {
    fill_bytes(raw, 3000, 60, 300);
    size_t stored = compress_bytes(3000, 6, 0, LZMA_CHECK_CRC32, 3000);
    CHECK(prefixes_taken(cogpu_decode_lzma, packed, stored, raw, 3000) < 40);
    CHECK(decode_status(cogpu_decode_lzma, packed, 0, 3000) == COGPU_CORRUPT);
    CHECK(decode_status(cogpu_decode_lzma, packed, stored - 50, 3000) == COGPU_CORRUPT);
}

static void bits_flipped(void) {
    fill_bytes(raw, 3000, 60, 300);
    size_t stored = compress_bytes(3000, 6, 2, LZMA_CHECK_CRC64, 3000);
    CHECK(flips_unnoticed(cogpu_decode_lzma, packed, stored, raw, 3000) == 0);
    stored = compress_bytes(3000, 6, 2, LZMA_CHECK_NONE, 3000);
    flips_unnoticed(cogpu_decode_lzma, packed, stored, raw, 3000);
}

static void bytes_after_the_stream(void) {
    fill_bytes(raw, 3000, 60, 300);
    size_t stored = compress_bytes(3000, 6, 0, LZMA_CHECK_CRC32, 3000);
    memset(packed + stored, 0xEE, 50);
    CHECK(lzma_gives(stored + 50, 3000));
}

/* A stream that says its dictionary has 4 GiB: we give it what the block needs. */
static void giant_dictionary(void) {
    fill_bytes(raw, 3000, 60, 300);
    size_t stored = compress_bytes(3000, 0, 0, LZMA_CHECK_CRC32, 3000);
    uint8_t *header = packed + LZMA_STREAM_HEADER_SIZE;
    const size_t header_bytes = (header[0] + 1u) * 4;
    CHECK(header[2] == 0x21 && header[3] == 1); /* the filter is LZMA2, with one byte of options */
    header[4] = 40;
    const uint32_t crc = lzma_crc32(header, header_bytes - 4, 0);
    for (size_t i = 0; i < 4; i++)
        header[header_bytes - 4 + i] = (uint8_t)(crc >> 8 * i);
#if LIMITS_MEMORY
    struct rlimit old, small;
    getrlimit(RLIMIT_AS, &old);
    small = (struct rlimit){.rlim_cur = 512 << 20, .rlim_max = old.rlim_max};
    setrlimit(RLIMIT_AS, &small);
#endif
    CHECK(lzma_gives(stored, 3000));
#if LIMITS_MEMORY
    setrlimit(RLIMIT_AS, &old);
#endif
}

static void bomb(void) {
    memset(raw, 0, sizeof raw);
    size_t stored = compress_bytes(sizeof raw, 9, 0, LZMA_CHECK_CRC32, sizeof raw);
    CHECK(stored < 1000);
    CHECK(lzma_gives(stored, 1000));
}

static void damage_after_the_block(void) {
    enum { BYTES = 90000, BLOCK = 9000 };
    fill_bytes(raw, BYTES, 60, 0);
    size_t stored = compress_bytes(BYTES, 6, 0, LZMA_CHECK_CRC32, BYTES);
    for (size_t kept = BLOCK + 1000; kept < stored; kept += 7777)
        CHECK(rest_ignored(cogpu_decode_lzma, packed, stored, raw, BLOCK, kept));
    const uint8_t *footer = packed + stored - LZMA_STREAM_HEADER_SIZE;
    packed[stored - LZMA_STREAM_HEADER_SIZE - (footer[4] + 1u) * 4 - 1] ^= 1; /* of the checksum */
    CHECK(longer_than_block(cogpu_decode_lzma, packed, stored, raw, BYTES, 5));
    CHECK(decode_status(cogpu_decode_lzma, packed, stored, BYTES) == COGPU_CORRUPT);
}

TESTS(codec_lzma) {
    RUN(round_trips);
    RUN(many_blocks);
    RUN(truncated);
    RUN(bits_flipped);
    RUN(bytes_after_the_stream);
    RUN(giant_dictionary);
    RUN(bomb);
    RUN(damage_after_the_block);
    return FINISH();
}

#else
TESTS(codec_lzma) {
    return FINISH();
}
#endif
