/* The WebP codec, against streams that libwebp writes here; then its encoder. Traps T096, T100. */
#include "support/encoder_test.h"

#if COGPU_HAVE_WEBP
#include <webp/encode.h>

enum { WIDTH = 33, HEIGHT = 21, PIXELS_MAX = WIDTH * HEIGHT * 4 };

static cogpu_block_format format;
static uint8_t pixels[PIXELS_MAX], stream[PIXELS_MAX * 2];
static size_t stream_bytes;

static cogpu_decode webp;
static cogpu_status webp(cogpu_codec_state *state, const cogpu_block_format *none,
                         const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                         size_t *got, cogpu_error *error) {
    (void)none;
    return cogpu_decode_webp(state, &format, in, in_bytes, out, out_bytes, got, error);
}

static void expect_block(uint32_t width, uint32_t height, uint32_t samples) {
    format = (cogpu_block_format){.width = width,
                                  .height = height,
                                  .samples = samples,
                                  .bits = 8,
                                  .type = COGPU_TYPE_U8,
                                  .row_bytes = (size_t)width * samples,
                                  .compression = COMPRESSION_WEBP};
}

/* Lossless, so that the pixels come back; quality 0 to 100 otherwise. */
static void write_stream(int samples, int quality) {
    uint8_t *memory = NULL;
    int stride = WIDTH * samples;
    if (quality < 0)
        stream_bytes = samples == 3
                           ? WebPEncodeLosslessRGB(pixels, WIDTH, HEIGHT, stride, &memory)
                           : WebPEncodeLosslessRGBA(pixels, WIDTH, HEIGHT, stride, &memory);
    else
        stream_bytes = samples == 3
                           ? WebPEncodeRGB(pixels, WIDTH, HEIGHT, stride, (float)quality, &memory)
                           : WebPEncodeRGBA(pixels, WIDTH, HEIGHT, stride, (float)quality, &memory);
    memcpy(stream, memory, stream_bytes);
    WebPFree(memory);
}

/* libwebp does not keep the colours of pixels that cannot be seen, so alpha is never 0 here. */
static void fill_pixels(void) {
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(1 + i * i % 241);
}

static size_t block_bytes(void) {
    return format.row_bytes * format.height;
}

static cogpu_status status_now(void) {
    return decode_status(webp, stream, stream_bytes, block_bytes());
}

static void lossless(void) {
    for (int samples = 3; samples <= 4; samples++) {
        write_stream(samples, -1);
        expect_block(WIDTH, HEIGHT, (uint32_t)samples);
        CHECK(decodes_to(webp, stream, stream_bytes, pixels, block_bytes(), block_bytes()));
        CHECK(decodes_to(webp, stream, stream_bytes, pixels, block_bytes(), block_bytes() + 7));
        CHECK(decode_status(webp, stream, stream_bytes, block_bytes() - 1) == COGPU_CORRUPT);
    }
}

static void lossy(void) {
    memset(pixels, 100, sizeof pixels);
    for (int samples = 3; samples <= 4; samples++) {
        write_stream(samples, 90);
        expect_block(WIDTH, HEIGHT, (uint32_t)samples);
        decoded result = decode(webp, stream, stream_bytes, block_bytes());
        CHECK(result.status == COGPU_OK && result.got == block_bytes());
        for (size_t i = 0; i < result.got; i++)
            CHECK(abs(result.out[i] - 100) < 4);
        free(result.out);
    }
    fill_pixels();
}

/* T100. */
static void alpha_left_out(void) {
    write_stream(3, -1);
    expect_block(WIDTH, HEIGHT, 4);
    decoded result = decode(webp, stream, stream_bytes, block_bytes());
    CHECK(result.status == COGPU_OK && result.got == block_bytes());
    for (size_t i = 0; i < WIDTH * HEIGHT; i++) {
        CHECK(memcmp(result.out + 4 * i, pixels + 3 * i, 3) == 0);
        CHECK(result.out[4 * i + 3] == 255);
    }
    free(result.out);
}

/* T096. */
static void other_shapes(void) {
    write_stream(4, -1);
    expect_block(WIDTH, HEIGHT, 3);
    CHECK(status_now() == COGPU_CORRUPT);
    const uint32_t sizes[][2] = {{WIDTH - 1, HEIGHT}, {WIDTH + 1, HEIGHT}, {WIDTH, HEIGHT - 1},
                                 {WIDTH, HEIGHT + 1}, {HEIGHT, WIDTH},     {0, 0}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        expect_block(sizes[i][0], sizes[i][1], 4);
        CHECK(status_now() == COGPU_CORRUPT);
    }
    for (uint32_t samples = 0; samples < 6; samples++) {
        expect_block(WIDTH, HEIGHT, samples);
        CHECK((status_now() == COGPU_OK) == (samples == 4));
    }
    expect_block(WIDTH, HEIGHT, 4);
    format.bits = 16;
    CHECK(status_now() == COGPU_CORRUPT);
}

static void truncated(void) {
    for (int samples = 3; samples <= 4; samples++) {
        write_stream(samples, -1);
        expect_block(WIDTH, HEIGHT, (uint32_t)samples);
        CHECK(prefixes_taken(webp, stream, stream_bytes, pixels, block_bytes()) <= 1);
    }
}

static void bits_flipped(void) {
    for (int quality = -1; quality < 100; quality += 60) {
        write_stream(4, quality);
        expect_block(WIDTH, HEIGHT, 4);
        flips_unnoticed(webp, stream, stream_bytes, pixels, block_bytes());
    }
}

static void no_webp(void) {
    expect_block(WIDTH, HEIGHT, 3);
    fill_bytes(stream, 500, 256, 0);
    stream_bytes = 500;
    CHECK(status_now() == COGPU_CORRUPT);
    stream_bytes = 0;
    CHECK(status_now() == COGPU_CORRUPT);
}

/* ---- the encoder ---- */

static cogpu_encoding encoding_of(uint32_t width, uint32_t height, uint32_t samples) {
    expect_block(width, height, samples);
    return (cogpu_encoding){.format = format, .quality = 75};
}

/* The largest difference between `pixels` and what comes back; of alpha alone, or without it. */
static int largest_error(cogpu_encoding encoding, bool of_alpha) {
    encode_result written = encode_twice(&cogpu_encoder_webp, &encoding, pixels);
    CHECK(written.status == COGPU_OK);
    decoded result = decode(webp, written.out, written.got, block_bytes());
    CHECK(result.status == COGPU_OK && result.got == block_bytes());
    int largest = 0;
    for (size_t i = 0; i < result.got; i++)
        if ((i % format.samples == 3) == of_alpha && abs(result.out[i] - pixels[i]) > largest)
            largest = abs(result.out[i] - pixels[i]);
    free(written.out);
    free(result.out);
    return largest;
}

/* Every sample, under an alpha of 0 too; with an alpha that is left out; of the smallest block. */
static void encoded_without_loss(void) {
    const uint32_t sizes[][2] = {{WIDTH, HEIGHT}, {1, 1}, {HEIGHT, WIDTH}, {16, 16}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (uint32_t samples = 3; samples <= 4; samples++) {
            for (int kind = 0; kind < 4; kind++) {
                fill_bytes(pixels, sizeof pixels, kind == 0 ? 256 : 7, 0);
                for (size_t k = 3; k < sizeof pixels && kind > 1; k += 4)
                    pixels[k] = kind == 2 ? (uint8_t)(k % 3 ? 255 : 0) : 255;
                cogpu_encoding encoding = encoding_of(sizes[i][0], sizes[i][1], samples);
                encoding.lossless = true;
                CHECK(largest_error(encoding, false) == 0 && largest_error(encoding, true) == 0);
                encoding.quality = 100; /* has no say here */
                CHECK(largest_error(encoding, false) == 0);
            }
        }
    }
    fill_pixels();
}

/* Colours come back about the same, alpha exactly. */
static void encoded_with_loss(void) {
    for (uint32_t samples = 3; samples <= 4; samples++) {
        for (uint32_t i = 0; i < WIDTH * HEIGHT * samples; i++)
            pixels[i] = (uint8_t)(60 + i / samples % WIDTH + 2 * (i / samples / WIDTH));
        cogpu_encoding encoding = encoding_of(WIDTH, HEIGHT, samples);
        int usual = largest_error(encoding, false);
        CHECK(usual <= 12 && largest_error(encoding, true) == 0);
        encoding.quality = 100;
        CHECK(largest_error(encoding, false) <= 4);
        encoding.quality = 1;
        CHECK(largest_error(encoding, false) > usual && largest_error(encoding, true) == 0);
    }
    fill_pixels();
}

/* Noise of the two extremes: the largest that there is. */
static void encoded_noise(void) {
    fill_bytes(pixels, sizeof pixels, 2, 0);
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = pixels[i] ? 255 : 0;
    for (uint32_t samples = 3; samples <= 4; samples++) {
        for (uint32_t height = 1; height <= HEIGHT; height += 4) {
            cogpu_encoding encoding = encoding_of(WIDTH, height, samples);
            encoding.quality = 100;
            CHECK(encode_status(&cogpu_encoder_webp, &encoding, pixels) == COGPU_OK);
        }
    }
    fill_pixels();
}

static void not_encoded(void) {
    for (uint32_t samples = 1; samples < 6; samples++) {
        cogpu_encoding encoding = encoding_of(WIDTH, HEIGHT / 2, samples);
        cogpu_status status = encode_status(&cogpu_encoder_webp, &encoding, pixels);
        CHECK(status == (samples == 3 || samples == 4 ? COGPU_OK : COGPU_UNSUPPORTED));
    }
    static uint8_t wide[16384 * 3];
    cogpu_encoding encoding = encoding_of(16384, 1, 3);
    CHECK(encode_status(&cogpu_encoder_webp, &encoding, wide) == COGPU_UNSUPPORTED);
    encoding = encoding_of(WIDTH, HEIGHT, 3);
    encoding.format.bits = 16;
    CHECK(encode_status(&cogpu_encoder_webp, &encoding, pixels) == COGPU_UNSUPPORTED);
    encoding = encoding_of(WIDTH, HEIGHT, 3);
    encoding.quality = 101;
    CHECK(encode_status(&cogpu_encoder_webp, &encoding, pixels) == COGPU_UNSUPPORTED);
    encoding.quality = 75;
    size_t got;
    cogpu_error error;
    CHECK(cogpu_encoder_webp.encode(&codec_state, &encoding, pixels, block_bytes(), stream, 50,
                                    &got, &error) == COGPU_LIMIT_EXCEEDED);
    CHECK(got == 0);
}

TESTS(codec_webp) {
    fill_pixels();
    RUN(lossless);
    RUN(lossy);
    RUN(alpha_left_out);
    RUN(other_shapes);
    RUN(truncated);
    RUN(bits_flipped);
    RUN(no_webp);
    RUN(encoded_without_loss);
    RUN(encoded_with_loss);
    RUN(encoded_noise);
    RUN(not_encoded);
    cogpu_codec_state_close(&codec_state);
    return FINISH();
}

#else
TESTS(codec_webp) {
    return FINISH();
}
#endif
