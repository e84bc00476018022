/* The codec of old-style JPEG, against streams that libjpeg writes here: as a whole, and as a scan
 * with its header apart. */
#include "support/codec_test.h"

#if COGPU_HAVE_JPEG
#include "codec/ycbcr.h"

#include <jpeglib.h>

enum { WIDTH = 37, HEIGHT = 29, BYTES_MAX = 64 * 64 * 3 };

static cogpu_block_format format;
static uint8_t pixels[BYTES_MAX], units[BYTES_MAX], stream[100000];
static size_t stream_bytes, header_bytes, unit_bytes;

static cogpu_decode old_jpeg;
static cogpu_status old_jpeg(cogpu_codec_state *state, const cogpu_block_format *none,
                             const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                             size_t *got, cogpu_error *error) {
    (void)none;
    return cogpu_decode_jpeg_old(state, &format, in, in_bytes, out, out_bytes, got, error);
}

/* Writes `pixels`; notes where the scan begins. */
static void write_stream(int samples, int luma_x, int luma_y) {
    struct jpeg_compress_struct codec = {0};
    struct jpeg_error_mgr errors;
    unsigned char *memory = NULL;
    unsigned long bytes = 0;
    codec.err = jpeg_std_error(&errors);
    jpeg_create_compress(&codec);
    codec.image_width = WIDTH;
    codec.image_height = HEIGHT;
    codec.input_components = samples;
    codec.in_color_space = samples == 1 ? JCS_GRAYSCALE : JCS_YCbCr;
    jpeg_set_defaults(&codec);
    codec.comp_info[0].h_samp_factor = luma_x;
    codec.comp_info[0].v_samp_factor = luma_y;
    jpeg_mem_dest(&codec, &memory, &bytes);
    jpeg_start_compress(&codec, TRUE);
    while (codec.next_scanline < codec.image_height) {
        JSAMPROW row = pixels + codec.next_scanline * WIDTH * (unsigned)samples;
        jpeg_write_scanlines(&codec, &row, 1);
    }
    jpeg_finish_compress(&codec);
    memcpy(stream, memory, bytes);
    stream_bytes = bytes;
    jpeg_destroy_compress(&codec);
    free(memory);
    header_bytes = 0;
    while (stream[header_bytes] != 0xFF || stream[header_bytes + 1] != 0xDA)
        header_bytes++;
    header_bytes += 2 + (size_t)stream[header_bytes + 3];
}

static void expect_block(uint32_t width, uint32_t height, uint32_t samples, uint32_t x,
                         uint32_t y) {
    format = (cogpu_block_format){.width = width,
                                  .height = height,
                                  .samples = samples,
                                  .bits = 8,
                                  .type = COGPU_TYPE_U8,
                                  .row_bytes = (size_t)width * samples,
                                  .compression = COMPRESSION_OLD_JPEG,
                                  .subsampling_x = x,
                                  .subsampling_y = y};
    unit_bytes = samples == 3 ? cogpu_ycbcr_bytes(&format) : (size_t)width * height;
}

/* The data units of the stream, as libjpeg has the components by itself. */
static void read_units(uint32_t across, uint32_t down) {
    struct jpeg_decompress_struct codec = {0};
    struct jpeg_error_mgr errors;
    static uint8_t planes[3][128][128];
    JSAMPROW rows[3][32];
    JSAMPARRAY bands[3] = {rows[0], rows[1], rows[2]};
    codec.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&codec);
    jpeg_mem_src(&codec, stream, (unsigned long)stream_bytes);
    jpeg_read_header(&codec, TRUE);
    codec.raw_data_out = TRUE;
    codec.out_color_space = codec.jpeg_color_space;
    jpeg_start_decompress(&codec);
    for (uint32_t at = 0; codec.output_scanline < codec.output_height; at++) {
        for (uint32_t y = 0; y < 8 * down; y++)
            rows[0][y] = planes[0][at * 8 * down + y];
        for (uint32_t y = 0; y < 8; y++)
            for (int i = 1; i < 3; i++)
                rows[i][y] = planes[i][at * 8 + y];
        jpeg_read_raw_data(&codec, bands, 8 * down);
    }
    jpeg_finish_decompress(&codec);
    jpeg_destroy_decompress(&codec);
    uint8_t *to = units;
    for (uint32_t v = 0; v < (HEIGHT + down - 1) / down; v++) {
        for (uint32_t u = 0; u < (WIDTH + across - 1) / across; u++) {
            for (uint32_t i = 0; i < across * down; i++)
                *to++ = planes[0][v * down + i / across][u * across + i % across];
            *to++ = planes[1][v][u];
            *to++ = planes[2][v][u];
        }
    }
    CHECK((size_t)(to - units) == unit_bytes);
}

/* The header apart, as image/old_jpeg.c hands it over, in memory of its exact size. */
static uint8_t *give_header(void) {
    uint8_t *header = malloc(header_bytes);
    memcpy(header, stream, header_bytes);
    format.jpeg_tables = header;
    format.jpeg_table_bytes = header_bytes;
    return header;
}

static void each_subsampling(void) {
    const int factors[][2] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}, {4, 2}};
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        uint32_t x = (uint32_t)factors[i][0], y = (uint32_t)factors[i][1];
        write_stream(3, factors[i][0], factors[i][1]);
        expect_block(WIDTH, HEIGHT, 3, x, y);
        read_units(x, y);
        CHECK(decodes_to(old_jpeg, stream, stream_bytes, units, unit_bytes, unit_bytes));
        uint8_t *header = give_header();
        CHECK(decodes_to(old_jpeg, stream + header_bytes, stream_bytes - header_bytes, units,
                         unit_bytes, unit_bytes));
        CHECK(decode_status(old_jpeg, stream, stream_bytes, unit_bytes - 1) == COGPU_CORRUPT);
        free(header);
    }
}

/* The last strip has fewer rows than the frame says. */
static void fewer_rows(void) {
    write_stream(3, 2, 2);
    expect_block(WIDTH, HEIGHT, 3, 2, 2);
    read_units(2, 2);
    uint8_t *header = give_header();
    for (uint32_t height = 2; height < HEIGHT; height += 2) {
        format.height = height;
        unit_bytes = cogpu_ycbcr_bytes(&format);
        CHECK(decodes_to(old_jpeg, stream + header_bytes, stream_bytes - header_bytes, units,
                         unit_bytes, unit_bytes));
    }
    free(header);
}

static void grey(void) {
    write_stream(1, 1, 1);
    expect_block(WIDTH, HEIGHT, 1, 1, 1);
    decoded result = decode(old_jpeg, stream, stream_bytes, unit_bytes);
    CHECK(result.status == COGPU_OK && result.got == unit_bytes);
    for (size_t i = 0; i < result.got; i++)
        CHECK(abs(result.out[i] - pixels[i]) < 40);
    free(result.out);
}

static void other_shapes(void) {
    write_stream(3, 2, 2);
    const uint32_t shapes[][5] = {{WIDTH - 1, HEIGHT, 3, 2, 2},
                                  {WIDTH + 1, HEIGHT, 3, 2, 2},
                                  {WIDTH, HEIGHT + 1, 3, 2, 2},
                                  {WIDTH, HEIGHT, 1, 1, 1},
                                  {WIDTH, HEIGHT, 3, 2, 1},
                                  {WIDTH, HEIGHT, 3, 4, 4},
                                  {0, 0, 3, 2, 2}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        expect_block(shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3], shapes[i][4]);
        CHECK(decode_status(old_jpeg, stream, stream_bytes, BYTES_MAX) == COGPU_CORRUPT);
    }
    expect_block(WIDTH, HEIGHT, 2, 1, 1);
    CHECK(decode_status(old_jpeg, stream, stream_bytes, BYTES_MAX) == COGPU_UNSUPPORTED);
    expect_block(WIDTH, HEIGHT, 3, 2, 2);
    CHECK(decode_status(old_jpeg, stream + header_bytes, stream_bytes - header_bytes, BYTES_MAX) ==
          COGPU_CORRUPT); /* no header */
    CHECK(decode_status(old_jpeg, stream, 0, BYTES_MAX) == COGPU_CORRUPT);
}

static void damaged(void) {
    write_stream(3, 2, 2);
    expect_block(WIDTH, HEIGHT, 3, 2, 2);
    read_units(2, 2);
    CHECK(prefixes_taken(old_jpeg, stream, stream_bytes, units, unit_bytes) <= 3);
    flips_unnoticed(old_jpeg, stream, stream_bytes, units, unit_bytes);
    uint8_t *header = give_header();
    for (size_t bit = 0; bit < 8 * header_bytes; bit++) {
        header[bit / 8] ^= (uint8_t)(1u << bit % 8);
        decode_status(old_jpeg, stream + header_bytes, stream_bytes - header_bytes, unit_bytes);
        header[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(header);
}

TESTS(codec_jpeg_old) {
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * 7 % 251 / 2 + i / 97);
    RUN(each_subsampling);
    RUN(fewer_rows);
    RUN(grey);
    RUN(other_shapes);
    RUN(damaged);
    cogpu_codec_state_close(&codec_state);
    return FINISH();
}

#else
TESTS(codec_jpeg_old) {
    return FINISH();
}
#endif
