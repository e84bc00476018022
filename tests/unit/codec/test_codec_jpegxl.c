/* The JPEG XL codec, against streams that libjxl writes here. */
#include "support/codec_test.h"

#if COGPU_HAVE_JXL
#include "codec/jpegxl_frame.h"

#include <jxl/encode.h>

enum { WIDTH = 19, HEIGHT = 11, SAMPLES_MAX = 5, STREAM_MAX = 1 << 20 };

static cogpu_block_format format;
static uint8_t pixels[WIDTH * HEIGHT * SAMPLES_MAX * 4], stream[STREAM_MAX];
static size_t stream_bytes;

static cogpu_decode jpegxl;
static cogpu_status jpegxl(cogpu_codec_state *state, const cogpu_block_format *none,
                           const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                           size_t *got, cogpu_error *error) {
    (void)none;
    return cogpu_decode_jpegxl(state, &format, in, in_bytes, out, out_bytes, got, error);
}

static void expect_block(uint32_t width, uint32_t height, uint32_t samples, cogpu_type type) {
    format = (cogpu_block_format){.width = width,
                                  .height = height,
                                  .samples = samples,
                                  .bits = (uint32_t)(8 * cogpu_type_bytes(type)),
                                  .type = type,
                                  .row_bytes = width * samples * cogpu_type_bytes(type),
                                  .compression = COMPRESSION_JXL};
}

static size_t block_bytes(void) {
    return format.row_bytes * format.height;
}

static void fill_pixels(void) {
    uint16_t half;
    float single;
    fill_bytes(pixels, sizeof pixels, 256, 64);
    for (size_t i = 0; i < sizeof pixels / 4; i++) {
        half = (uint16_t)(0x3800 + i % 1000);
        single = (float)i / 300 - 1;
        if (format.type == COGPU_TYPE_F32)
            memcpy(pixels + 4 * i, &single, sizeof single);
        if (format.type == COGPU_TYPE_F16)
            memcpy(pixels + 2 * i, &half, sizeof half);
    }
}

/* How a stream is written. */
typedef struct writing {
    uint32_t colours; /* the other channels are extra ones */
    bool has_alpha;   /* the first extra channel is alpha, interleaved with the colours */
    bool is_lossy, is_container, is_animation;
    uint32_t frames;
} writing;

static JxlDataType data_type(void) {
    return format.type == COGPU_TYPE_U8    ? JXL_TYPE_UINT8
           : format.type == COGPU_TYPE_U16 ? JXL_TYPE_UINT16
           : format.type == COGPU_TYPE_F16 ? JXL_TYPE_FLOAT16
                                           : JXL_TYPE_FLOAT;
}

static void set_info(JxlEncoder *encoder, writing how) {
    JxlBasicInfo info;
    JxlColorEncoding colours;
    uint32_t extras = format.samples - how.colours;
    uint32_t exponent = format.type == COGPU_TYPE_F16 ? 5 : format.type == COGPU_TYPE_F32 ? 8 : 0;
    JxlEncoderInitBasicInfo(&info);
    info.xsize = WIDTH;
    info.ysize = HEIGHT;
    info.bits_per_sample = format.bits;
    info.exponent_bits_per_sample = exponent;
    info.num_color_channels = how.colours;
    info.num_extra_channels = extras;
    info.alpha_bits = how.has_alpha ? format.bits : 0;
    info.alpha_exponent_bits = how.has_alpha ? exponent : 0;
    info.uses_original_profile = !how.is_lossy;
    info.have_animation = how.is_animation;
    info.animation.tps_numerator = info.animation.tps_denominator = 1;
    CHECK(JxlEncoderUseContainer(encoder, how.is_container) == JXL_ENC_SUCCESS);
    CHECK(JxlEncoderSetCodestreamLevel(encoder, 10) == JXL_ENC_SUCCESS);
    CHECK(JxlEncoderSetBasicInfo(encoder, &info) == JXL_ENC_SUCCESS);
    JxlColorEncodingSetToSRGB(&colours, how.colours == 1);
    CHECK(JxlEncoderSetColorEncoding(encoder, &colours) == JXL_ENC_SUCCESS);
    for (uint32_t i = 0; i < extras; i++) {
        JxlExtraChannelInfo extra;
        JxlEncoderInitExtraChannelInfo(
            i == 0 && how.has_alpha ? JXL_CHANNEL_ALPHA : JXL_CHANNEL_OPTIONAL, &extra);
        extra.bits_per_sample = format.bits;
        extra.exponent_bits_per_sample = exponent;
        CHECK(JxlEncoderSetExtraChannelInfo(encoder, i, &extra) == JXL_ENC_SUCCESS);
    }
}

/* The channels `first` to `first + count` of all pixels, as the encoder expects them. */
static uint8_t *channels(uint32_t first, uint32_t count) {
    static uint8_t part[sizeof pixels];
    size_t size = cogpu_type_bytes(format.type);
    for (size_t i = 0; i < WIDTH * HEIGHT; i++)
        memcpy(part + i * count * size, pixels + (i * format.samples + first) * size, count * size);
    return part;
}

static void add_frame(JxlEncoder *encoder, writing how) {
    uint32_t together = how.colours + how.has_alpha;
    size_t plane = WIDTH * HEIGHT * cogpu_type_bytes(format.type);
    JxlPixelFormat of = {together, data_type(), JXL_NATIVE_ENDIAN, 0};
    JxlEncoderFrameSettings *settings = JxlEncoderFrameSettingsCreate(encoder, NULL);
    CHECK(JxlEncoderSetFrameLossless(settings, !how.is_lossy) == JXL_ENC_SUCCESS);
    CHECK(JxlEncoderAddImageFrame(settings, &of, channels(0, together), plane * together) ==
          JXL_ENC_SUCCESS);
    of.num_channels = 1;
    for (uint32_t i = together; i < format.samples; i++)
        CHECK(JxlEncoderSetExtraChannelBuffer(settings, &of, channels(i, 1), plane,
                                              i - how.colours) == JXL_ENC_SUCCESS);
}

/* `pixels` as one stream. */
static void write_stream(writing how) {
    JxlEncoder *encoder = JxlEncoderCreate(NULL);
    uint8_t *next = stream;
    size_t capacity = STREAM_MAX;
    set_info(encoder, how);
    for (uint32_t i = 0; i < 1 + how.frames; i++)
        add_frame(encoder, how);
    JxlEncoderCloseInput(encoder);
    CHECK(JxlEncoderProcessOutput(encoder, &next, &capacity) == JXL_ENC_SUCCESS);
    stream_bytes = STREAM_MAX - capacity;
    JxlEncoderDestroy(encoder);
}

static int gives_pixels(void) {
    return decodes_to(jpegxl, stream, stream_bytes, pixels, block_bytes(), block_bytes());
}

static cogpu_status status_now(void) {
    return decode_status(jpegxl, stream, stream_bytes, block_bytes());
}

static void expect_written(uint32_t samples, cogpu_type type, writing how) {
    expect_block(WIDTH, HEIGHT, samples, type);
    fill_pixels();
    write_stream(how);
}

static const cogpu_type types[] = {COGPU_TYPE_U8, COGPU_TYPE_U16, COGPU_TYPE_F16, COGPU_TYPE_F32};
enum { TYPES = sizeof types / sizeof *types };

static void lossless(void) {
    for (size_t i = 0; i < TYPES; i++) {
        for (int is_container = 0; is_container < 2; is_container++) {
            expect_written(1, types[i], (writing){.colours = 1, .is_container = is_container});
            CHECK(gives_pixels());
            expect_written(3, types[i], (writing){.colours = 3, .is_container = is_container});
            CHECK(gives_pixels());
            CHECK(
                decodes_to(jpegxl, stream, stream_bytes, pixels, block_bytes(), block_bytes() + 5));
            CHECK(decode_status(jpegxl, stream, stream_bytes, block_bytes() - 1) == COGPU_CORRUPT);
        }
    }
}

/* Alpha beside grey and RGB, alpha and more, and channels without a meaning. libjxl before 0.8
 * does not write planes for all of these. */
static void extra_channels(void) {
    for (size_t i = 0; i < 2; i++) {
        expect_written(2, types[i], (writing){.colours = 1, .has_alpha = true});
        CHECK(gives_pixels());
        expect_written(4, types[i], (writing){.colours = 3, .has_alpha = true});
        CHECK(gives_pixels());
        expect_written(5, types[i], (writing){.colours = 1});
        CHECK(gives_pixels());
        expect_written(5, types[i], (writing){.colours = 3, .has_alpha = true});
        CHECK(gives_pixels());
    }
}

static void lossy(void) {
    expect_block(WIDTH, HEIGHT, 3, COGPU_TYPE_U8);
    memset(pixels, 100, sizeof pixels);
    write_stream((writing){.colours = 3, .is_lossy = true});
    decoded result = decode(jpegxl, stream, stream_bytes, block_bytes());
    CHECK(result.status == COGPU_OK && result.got == block_bytes());
    for (size_t i = 0; i < result.got; i++)
        CHECK(abs(result.out[i] - 100) < 4);
    free(result.out);
}

static void other_shapes(void) {
    expect_written(3, COGPU_TYPE_U8, (writing){.colours = 3});
    const uint32_t shapes[][3] = {{WIDTH - 1, HEIGHT, 3}, {WIDTH + 1, HEIGHT, 3},
                                  {WIDTH, HEIGHT - 1, 3}, {WIDTH, HEIGHT + 1, 3},
                                  {HEIGHT, WIDTH, 3},     {WIDTH, HEIGHT, 1},
                                  {WIDTH, HEIGHT, 4},     {0, 0, 3}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        expect_block(shapes[i][0], shapes[i][1], shapes[i][2], COGPU_TYPE_U8);
        CHECK(status_now() == COGPU_CORRUPT);
    }
    expect_block(WIDTH, HEIGHT, 3, COGPU_TYPE_U16);
    CHECK(status_now() == COGPU_CORRUPT);
    expect_written(1, COGPU_TYPE_F16, (writing){.colours = 1});
    expect_block(WIDTH, HEIGHT, 1, COGPU_TYPE_U16);
    CHECK(status_now() == COGPU_CORRUPT);
    const cogpu_type others[] = {COGPU_TYPE_I8, COGPU_TYPE_I16, COGPU_TYPE_U32, COGPU_TYPE_F64,
                                 COGPU_TYPE_CI16};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        expect_block(WIDTH, HEIGHT, 1, others[i]);
        CHECK(status_now() == COGPU_UNSUPPORTED);
    }
    expect_block(WIDTH, HEIGHT, 1, COGPU_TYPE_U16);
    format.bits = 12;
    CHECK(status_now() == COGPU_UNSUPPORTED);
}

static void animation(void) {
    expect_written(1, COGPU_TYPE_U8, (writing){.colours = 1, .is_animation = true, .frames = 1});
    CHECK(status_now() == COGPU_CORRUPT);
}

/* Images of one frame are distinguished from those of several: a library without a limit of memory
 * must not see these. */
static void frame_headers(void) {
    static const uint8_t is_default[] = {1}, is_reference[] = {2 << 1}, is_dc[] = {1 << 1};
    const cogpu_jpegxl_image xyb = {WIDTH, HEIGHT, 0, true}, plain = {WIDTH, HEIGHT, 0, false};
    const cogpu_jpegxl_image many = {WIDTH, HEIGHT, UINT32_MAX, false};
    CHECK(cogpu_jpegxl_is_bounded(is_default, 1, &xyb));
    CHECK(!cogpu_jpegxl_is_bounded(is_reference, 1, &xyb));
    CHECK(!cogpu_jpegxl_is_bounded(is_dc, 1, &xyb));
    CHECK(!cogpu_jpegxl_is_bounded(is_default, 0, &xyb));
    /* Modular, no flags, no YCbCr, no upsampling, the smallest groups, one pass, no blending: bit
     * 13 is a size of its own, bit 16 the last frame. */
    for (int is_last = 0; is_last < 2; is_last++) {
        for (int has_size = 0; has_size < 2; has_size++) {
            const uint8_t header[] = {1 << 3, (uint8_t)(has_size << 5), (uint8_t)is_last};
            CHECK(cogpu_jpegxl_is_bounded(header, sizeof header, &plain) == (is_last && !has_size));
            CHECK(!cogpu_jpegxl_is_bounded(header, 2, &plain));
            CHECK(!cogpu_jpegxl_is_bounded(header, sizeof header, &many));
        }
    }
}

/* Frames that are not shown, each of one byte of data, before one of default values. A size of its
 * own has bit 11, its width bits 14 to 21, its height bits 24 to 31; then, after 3 bits, no name,
 * default filters (bit 37), no extensions, and (bit 40 on) a table of one part, of one byte. */
static size_t add_hidden(uint8_t *to, uint8_t width, uint8_t height) {
    uint64_t header = 2u << 1 | 1u << 3 | 1u << 11;
    header |= (uint64_t)width << 14 | (uint64_t)height << 24 | 1ull << 37;
    for (int i = 0; i < 6; i++)
        to[i] = (uint8_t)(header >> 8 * i);
    to[6] = 1 << 2; /* ten bits: one byte */
    to[7] = 0;
    to[8] = 0xFF; /* the data */
    return 9;
}

static void hidden_frames(void) {
    const cogpu_jpegxl_image image = {WIDTH, HEIGHT, 0, false};
    const struct {
        int count;
        uint8_t width, height;
        bool is_bounded;
    } cases[] = {{0, 1, 1, true},      {1, WIDTH, HEIGHT, true},      {7, 3, 3, true},
                 {8, 3, 3, false},     {1, WIDTH + 1, HEIGHT, false}, {1, WIDTH, HEIGHT + 1, false},
                 {1, 0, HEIGHT, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t frames[100];
        size_t bytes = 0;
        for (int k = 0; k < cases[i].count; k++)
            bytes += add_hidden(frames + bytes, cases[i].width, cases[i].height);
        frames[bytes] = 1;
        CHECK(cogpu_jpegxl_is_bounded(frames, bytes + 1, &image) == cases[i].is_bounded);
        CHECK(!cogpu_jpegxl_is_bounded(frames, bytes, &image));
    }
}

static void truncated(void) {
    expect_written(3, COGPU_TYPE_U8, (writing){.colours = 3});
    CHECK(prefixes_taken(jpegxl, stream, stream_bytes, pixels, block_bytes()) == 0);
    expect_written(2, COGPU_TYPE_U16,
                   (writing){.colours = 1, .has_alpha = true, .is_container = true});
    CHECK(prefixes_taken(jpegxl, stream, stream_bytes, pixels, block_bytes()) == 0);
}

static void bits_flipped(void) {
    expect_written(1, COGPU_TYPE_U8, (writing){.colours = 1});
    flips_unnoticed(jpegxl, stream, stream_bytes, pixels, block_bytes());
    expect_written(3, COGPU_TYPE_U8, (writing){.colours = 3, .is_lossy = true});
    flips_unnoticed(jpegxl, stream, stream_bytes, pixels, block_bytes());
}

static void no_jpegxl(void) {
    expect_block(WIDTH, HEIGHT, 3, COGPU_TYPE_U8);
    fill_bytes(stream, 500, 256, 0);
    stream_bytes = 500;
    CHECK(status_now() == COGPU_CORRUPT);
    stream_bytes = 0;
    CHECK(status_now() == COGPU_CORRUPT);
}

TESTS(codec_jpegxl) {
    RUN(lossless);
    RUN(extra_channels);
    RUN(lossy);
    RUN(other_shapes);
    RUN(animation);
    RUN(frame_headers);
    RUN(hidden_frames);
    RUN(truncated);
    RUN(bits_flipped);
    RUN(no_jpegxl);
    cogpu_codec_state_close(&codec_state);
    return FINISH();
}

#else
TESTS(codec_jpegxl) {
    return FINISH();
}
#endif
