/*
 * An xz stream for which memory ends: each allocation of liblzma, which makes them all by our
 * allocator, fails in turn, and all from it on. That is told as such, and leaks nothing.
 */
#include "faults/allocation_faults.h"

#if COGPU_HAVE_LZMA
#include <lzma.h>

enum { BYTES = 20000, PART = 700 };

static uint8_t raw[BYTES], packed[2 * BYTES], out[BYTES];
static size_t packed_bytes;

/* Two filters, each with options of its own, in one block of the stream. */
static void pack(void) {
    lzma_options_lzma options;
    lzma_options_delta delta = {.type = LZMA_DELTA_TYPE_BYTE, .dist = 4};
    lzma_filter filters[] = {
        {LZMA_FILTER_DELTA, &delta}, {LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, NULL}};
    for (size_t i = 0; i < BYTES; i++)
        raw[i] = (uint8_t)(i * i >> 7);
    CHECK(!lzma_lzma_preset(&options, 6));
    CHECK(lzma_stream_buffer_encode(filters, LZMA_CHECK_CRC32, NULL, raw, BYTES, packed,
                                    &packed_bytes, sizeof packed) == LZMA_OK);
}

static cogpu_status decode_whole(size_t *got, cogpu_error *error) {
    cogpu_codec_state state = {0};
    const cogpu_block_format format = {0};
    cogpu_status status =
        cogpu_decode_lzma(&state, &format, packed, packed_bytes, out, BYTES, got, error);
    cogpu_codec_state_close(&state);
    return status;
}

static cogpu_status decode_parts(size_t *got, cogpu_error *error) {
    const cogpu_block_format format = {0};
    cogpu_feed feed = {.at = packed, .bytes = packed_bytes};
    cogpu_stream_decoder stream = {.format = &format, .feed = &feed, .block_bytes = BYTES};
    cogpu_status status = COGPU_OK;
    size_t last = 1;
    for (*got = 0; status == COGPU_OK && last > 0 && *got < BYTES; *got += last)
        status = cogpu_stream_lzma.decode(&stream, out + *got,
                                          BYTES - *got < PART ? BYTES - *got : PART, &last, error);
    cogpu_stream_lzma.close(&stream);
    return status;
}

/* What it makes is decoded, of which nothing fails. */
static cogpu_status encode(size_t *got, cogpu_error *error) {
    static uint8_t stream[2 * BYTES];
    const cogpu_encoding encoding = {.level = 6};
    cogpu_codec_state state = {0};
    size_t stream_bytes = 0;
    cogpu_status status = cogpu_encoder_lzma.encode(&state, &encoding, raw, BYTES, stream,
                                                    sizeof stream, &stream_bytes, error);
    faults_are_off = true;
    if (status == COGPU_OK)
        status = cogpu_decode_lzma(&state, &encoding.format, stream, stream_bytes, out, BYTES, got,
                                   error);
    faults_are_off = false;
    cogpu_codec_state_close(&state);
    return status;
}

static void try_faults(cogpu_status (*attempt)(size_t *got, cogpu_error *error), bool for_good) {
    fails_for_good = for_good;
    try_each_allocation(attempt, out, raw, BYTES);
}

static void decoding(void) {
    for (int for_good = 0; for_good < 2; for_good++) {
        try_faults(decode_whole, for_good);
        try_faults(decode_parts, for_good);
    }
}

static void encoding(void) {
    for (int for_good = 0; for_good < 2; for_good++)
        try_faults(encode, for_good);
}

TESTS(lzma_faults) {
    reset_faults();
    RUN(pack);
    RUN(decoding);
    RUN(encoding);
    return FINISH();
}

#else
TESTS(lzma_faults) {
    return FINISH();
}
#endif
