/* The JPEG 2000 codec, against streams that OpenJPEG writes here. */
#include "support/codec_test.h"

#if COGPU_HAVE_OPENJPEG

#include <openjpeg.h>

enum { WIDTH = 21, HEIGHT = 13, SAMPLES_MAX = 5, STREAM_MAX = 1 << 20 };

static cogpu_block_format format;
static int32_t values[WIDTH * HEIGHT * SAMPLES_MAX]; /* as the block has them, interleaved */
static uint8_t expected[WIDTH * HEIGHT * SAMPLES_MAX * 4], stream[STREAM_MAX];
static size_t stream_bytes, stream_at;

static cogpu_decode jpeg2000;
static cogpu_status jpeg2000(cogpu_codec_state *state, const cogpu_block_format *none,
                             const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                             size_t *got, cogpu_error *error) {
    (void)none;
    return cogpu_decode_jpeg2000(state, &format, in, in_bytes, out, out_bytes, got, error);
}

/* How a stream is written. */
typedef struct writing {
    uint32_t samples, bits;
    bool is_signed, is_jp2;
    uint32_t chroma_step; /* subsampling of the second and third component */
    int tile;             /* its side; 0 = one tile */
    int precinct;         /* its side; 0 = whole */
    int origin;           /* of the image on the reference grid */
} writing;

static const writing grey = {.samples = 1, .bits = 8, .chroma_step = 1};
static const writing rgb = {.samples = 3, .bits = 8, .chroma_step = 1};

static OPJ_SIZE_T put(void *from, OPJ_SIZE_T bytes, void *user) {
    (void)user;
    CHECK(stream_at + bytes <= STREAM_MAX);
    memcpy(stream + stream_at, from, bytes);
    stream_at += bytes;
    stream_bytes = stream_at > stream_bytes ? stream_at : stream_bytes;
    return bytes;
}

static OPJ_BOOL seek(OPJ_OFF_T offset, void *user) {
    (void)user;
    stream_at = (size_t)offset;
    return OPJ_TRUE;
}

static OPJ_OFF_T skip(OPJ_OFF_T bytes, void *user) {
    return seek((OPJ_OFF_T)stream_at + bytes, user) ? bytes : -1;
}

/* Values of the top of the range, of its bottom, and between. */
static void fill_values(writing how) {
    uint32_t state = 7;
    int64_t low = how.is_signed ? -((int64_t)1 << (how.bits - 1)) : 0;
    int64_t count = (int64_t)1 << how.bits;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (int32_t)(low + (i % 5 ? (int64_t)(i * 3) : (int64_t)(state >> 1)) % count);
    }
}

static opj_image_t *make_image(writing how) {
    opj_image_cmptparm_t parts[SAMPLES_MAX] = {{0}};
    for (uint32_t i = 0; i < how.samples; i++) {
        uint32_t step = i == 1 || i == 2 ? how.chroma_step : 1;
        parts[i] = (opj_image_cmptparm_t){.dx = step,
                                          .dy = step,
                                          .w = (WIDTH + step - 1) / step,
                                          .h = (HEIGHT + step - 1) / step,
                                          .prec = how.bits,
                                          .sgnd = how.is_signed};
    }
    opj_image_t *image =
        opj_image_create(how.samples, parts, how.samples >= 3 ? OPJ_CLRSPC_SRGB : OPJ_CLRSPC_GRAY);
    image->x0 = image->y0 = (OPJ_UINT32)how.origin;
    image->x1 = WIDTH + (OPJ_UINT32)how.origin;
    image->y1 = HEIGHT + (OPJ_UINT32)how.origin;
    for (uint32_t i = 0; i < how.samples; i++)
        for (uint32_t y = 0; y < parts[i].h; y++)
            for (uint32_t x = 0; x < parts[i].w; x++)
                image->comps[i].data[y * parts[i].w + x] =
                    values[(y * parts[i].dy * WIDTH + x * parts[i].dx) * how.samples + i];
    return image;
}

static void write_stream(writing how) {
    opj_cparameters_t parameters;
    opj_image_t *image = make_image(how);
    opj_codec_t *codec = opj_create_compress(how.is_jp2 ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K);
    opj_stream_t *to = opj_stream_create(4096, OPJ_FALSE);
    opj_set_default_encoder_parameters(&parameters);
    parameters.tcp_numlayers = 1;
    parameters.cp_disto_alloc = 1;
    parameters.numresolution = 3;
    parameters.tcp_mct = how.samples >= 3 && how.chroma_step == 1;
    if (how.tile) {
        parameters.tile_size_on = OPJ_TRUE;
        parameters.cp_tdx = parameters.cp_tdy = how.tile;
    }
    if (how.precinct) {
        parameters.csty |= 1;
        parameters.res_spec = 1;
        parameters.prcw_init[0] = parameters.prch_init[0] = how.precinct;
    }
    parameters.image_offset_x0 = parameters.image_offset_y0 = how.origin;
    stream_bytes = stream_at = 0;
    opj_stream_set_write_function(to, put);
    opj_stream_set_seek_function(to, seek);
    opj_stream_set_skip_function(to, skip);
    CHECK(opj_setup_encoder(codec, &parameters, image));
    CHECK(opj_start_compress(codec, image, to) && opj_encode(codec, to) &&
          opj_end_compress(codec, to));
    opj_stream_destroy(to);
    opj_destroy_codec(codec);
    opj_image_destroy(image);
}

static void expect_block(uint32_t width, uint32_t height, uint32_t samples, uint32_t bits,
                         bool is_signed) {
    cogpu_type type = bits <= 8    ? is_signed ? COGPU_TYPE_I8 : COGPU_TYPE_U8
                      : bits <= 16 ? is_signed ? COGPU_TYPE_I16 : COGPU_TYPE_U16
                      : is_signed  ? COGPU_TYPE_I32
                                   : COGPU_TYPE_U32;
    format = (cogpu_block_format){.width = width,
                                  .height = height,
                                  .samples = samples,
                                  .bits = bits,
                                  .type = type,
                                  .row_bytes = ((size_t)width * samples * bits + 7) / 8,
                                  .compression = COMPRESSION_JPEG2000};
}

static size_t block_bytes(void) {
    return format.row_bytes * format.height;
}

/* The bits of `values`, most significant first where they are no whole bytes, else in the host's
 * order. */
static void expect_values(void) {
    memset(expected, 0, sizeof expected);
    for (size_t i = 0; i < (size_t)WIDTH * HEIGHT * format.samples; i++) {
        size_t row = i / (WIDTH * format.samples), at = i % (WIDTH * format.samples);
        uint8_t *to = expected + row * format.row_bytes;
        bool is_whole = format.bits == 8 || format.bits == 16;
        uint16_t whole = (uint16_t)values[i];
        if (format.bits == 8)
            to[at] = (uint8_t)whole;
        else if (is_whole)
            memcpy(to + 2 * at, &whole, sizeof whole);
        for (uint32_t bit = 0; bit < format.bits && !is_whole; bit++)
            if ((uint32_t)values[i] >> (format.bits - 1 - bit) & 1)
                to[(at * format.bits + bit) / 8] |= (uint8_t)(0x80 >> (at * format.bits + bit) % 8);
    }
}

static int gives_values(void) {
    return decodes_to(jpeg2000, stream, stream_bytes, expected, block_bytes(), block_bytes());
}

static cogpu_status status_now(void) {
    return decode_status(jpeg2000, stream, stream_bytes, block_bytes());
}

static void expect_written(writing how) {
    expect_block(WIDTH, HEIGHT, how.samples, how.bits, how.is_signed);
    fill_values(how);
    expect_values();
    write_stream(how);
}

static void each_depth(void) {
    static const uint32_t depths[] = {1, 2, 4, 7, 8, 10, 12, 15, 16, 20, 24};
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        for (uint32_t samples = 1; samples <= SAMPLES_MAX; samples++) {
            writing how = {.samples = samples,
                           .bits = depths[i],
                           .is_signed = i % 2 && depths[i] > 1,
                           .is_jp2 = samples % 2,
                           .chroma_step = 1};
            expect_written(how);
            CHECK(gives_values());
        }
    }
}

static void each_layout(void) {
    const int numbers[][3] = {{16, 0, 0}, {8, 0, 0}, {0, 16, 0}, {8, 8, 0}, {0, 0, 3}, {16, 0, 5}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        writing how = rgb;
        how.tile = numbers[i][0];
        how.precinct = numbers[i][1];
        how.origin = numbers[i][2];
        expect_written(how);
        CHECK(gives_values());
    }
}

/* A stream of fewer bits than the block can hold holds the same numbers. */
static void fewer_bits(void) {
    writing how = grey;
    how.bits = 12;
    expect_written(how);
    expect_block(WIDTH, HEIGHT, 1, 16, false);
    expect_values();
    CHECK(gives_values());
    expect_block(WIDTH, HEIGHT, 1, 8, false);
    CHECK(status_now() == COGPU_CORRUPT);
    expect_block(WIDTH, HEIGHT, 1, 16, true);
    CHECK(status_now() == COGPU_CORRUPT);
    format.type = COGPU_TYPE_F16;
    CHECK(status_now() == COGPU_UNSUPPORTED);
}

/* Each sample of a component that has fewer is repeated for the pixels to its right and below. */
static void subsampled(void) {
    writing how = rgb;
    how.chroma_step = 2;
    expect_written(how);
    for (uint32_t i = 0; i < WIDTH * HEIGHT * 3; i++) {
        uint32_t x = i / 3 % WIDTH, y = i / 3 / WIDTH, band = i % 3;
        if (band > 0)
            expected[i] = (uint8_t)values[((y & ~1u) * WIDTH + (x & ~1u)) * 3 + band];
    }
    CHECK(gives_values());
}

static void other_shapes(void) {
    expect_written(rgb);
    const uint32_t shapes[][3] = {{WIDTH - 1, HEIGHT, 3}, {WIDTH + 1, HEIGHT, 3},
                                  {WIDTH, HEIGHT - 1, 3}, {WIDTH, HEIGHT + 1, 3},
                                  {HEIGHT, WIDTH, 3},     {WIDTH, HEIGHT, 1},
                                  {WIDTH, HEIGHT, 4},     {0, 0, 3}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        expect_block(shapes[i][0], shapes[i][1], shapes[i][2], 8, false);
        CHECK(status_now() == COGPU_CORRUPT);
    }
    expect_block(WIDTH, HEIGHT, 3, 8, false);
    CHECK(decode_status(jpeg2000, stream, stream_bytes, block_bytes() - 1) == COGPU_CORRUPT);
    CHECK(decodes_to(jpeg2000, stream, stream_bytes, expected, block_bytes(), block_bytes() + 9));
}

/* Position of a marker of the codestream. */
static uint8_t *find_marker(uint8_t marker) {
    for (size_t i = 0; i + 1 < stream_bytes; i++)
        if (stream[i] == 0xFF && stream[i + 1] == marker)
            return stream + i;
    abort();
}

static int refused_with(const char *text) {
    decoded result = decode(jpeg2000, stream, stream_bytes, block_bytes());
    int refused = result.status == COGPU_CORRUPT && result.got == 0 &&
                  strstr(result.error.message, text) != NULL;
    free(result.out);
    return refused;
}

/* Sizes and parts that a few bytes claim: refused before the library allocates memory for them. */
static void bombs(void) {
    expect_written(rgb);
    uint8_t *size = find_marker(0x51);
    memcpy(size + 6, "\x7F\xFF\xFF\xFF\x7F\xFF\xFF\xFF", 8);
    CHECK(refused_with("pixels where the block has"));
    /* A pixel a tile, of a block that is as large. */
    memcpy(size + 6, "\0\0\x40\0\0\0\x40\0", 8);
    memcpy(size + 22, "\0\0\0\x40\0\0\0\x40", 8);
    format.width = format.height = 1 << 14;
    format.row_bytes = 3 << 14;
    CHECK(refused_with("so few bytes"));
    memcpy(size + 22, "\0\0\x40\0\0\0\x40\0", 8);
    uint8_t *style = find_marker(0x52);
    style[10] = style[11] = 0; /* code blocks of 4 x 4 */
    CHECK(refused_with("so few bytes"));
    writing how = grey;
    how.precinct = 32;
    expect_written(how);
    size = find_marker(0x51);
    memcpy(size + 6, "\0\0\x40\0\0\0\x40\0", 8);
    memcpy(size + 22, "\0\0\x40\0\0\0\x40\0", 8);
    format.width = format.height = 1 << 14;
    format.row_bytes = 1 << 14;
    style = find_marker(0x52);
    style[15] = style[16] = 0x11; /* precincts of 2 x 2 */
    CHECK(refused_with("so few bytes"));
    style[15] = style[16] = 0x77;
    style[6] = style[7] = 0xFF; /* layers */
    CHECK(refused_with("so few bytes"));
    style[9] = 33;
    CHECK(refused_with("too deep"));
}

/* A tile may have a coding style of its own. */
static void bomb_in_a_tile(void) {
    expect_written(grey);
    size_t at = (size_t)(find_marker(0x93) - stream);
    static const uint8_t style[] = {0xFF, 0x52, 0, 13, 1, 0, 0, 1, 0, 0, 4, 4, 0, 0, 0x11};
    memmove(stream + at + sizeof style, stream + at, stream_bytes - at);
    memcpy(stream + at, style, sizeof style);
    stream_bytes += sizeof style;
    uint8_t *size = find_marker(0x51);
    memcpy(size + 6, "\0\0\x40\0\0\0\x40\0", 8);
    memcpy(size + 22, "\0\0\x40\0\0\0\x40\0", 8);
    format.width = format.height = 1 << 14;
    format.row_bytes = 1 << 14;
    CHECK(refused_with("so few bytes"));
}

static void truncated(void) {
    for (int is_jp2 = 0; is_jp2 < 2; is_jp2++) {
        writing how = is_jp2 ? rgb : grey;
        how.is_jp2 = is_jp2;
        how.tile = is_jp2 ? 8 : 0;
        expect_written(how);
        CHECK(prefixes_taken(jpeg2000, stream, stream_bytes, expected, block_bytes()) <= 2);
    }
}

static void bits_flipped(void) {
    expect_written(grey);
    flips_unnoticed(jpeg2000, stream, stream_bytes, expected, block_bytes());
    writing how = rgb;
    how.is_jp2 = true;
    how.tile = 16;
    how.precinct = 16;
    expect_written(how);
    flips_unnoticed(jpeg2000, stream, stream_bytes, expected, block_bytes());
}

static void no_jpeg2000(void) {
    static const uint8_t signature[] = {0, 0, 0, 12, 'j', 'P', ' ', ' ', 13, 10, 0x87, 10};
    expect_block(WIDTH, HEIGHT, 1, 8, false);
    fill_bytes(stream, 500, 256, 0);
    stream_bytes = 500;
    CHECK(status_now() == COGPU_CORRUPT);
    memcpy(stream, signature, sizeof signature);
    CHECK(status_now() == COGPU_CORRUPT);
    memset(stream + sizeof signature, 0, 100); /* boxes of no bytes are the last */
    CHECK(status_now() == COGPU_CORRUPT);
    for (stream_bytes = 0; stream_bytes < 20; stream_bytes++)
        CHECK(status_now() == COGPU_CORRUPT);
}

TESTS(codec_jpeg2000) {
    RUN(each_depth);
    RUN(each_layout);
    RUN(fewer_bits);
    RUN(subsampled);
    RUN(other_shapes);
    RUN(bombs);
    RUN(bomb_in_a_tile);
    RUN(truncated);
    RUN(bits_flipped);
    RUN(no_jpeg2000);
    cogpu_codec_state_close(&codec_state);
    return FINISH();
}

#else
TESTS(codec_jpeg2000) {
    return FINISH();
}
#endif
