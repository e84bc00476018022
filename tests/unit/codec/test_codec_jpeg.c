/* The JPEG codec, against streams that libjpeg writes here; then its encoder. Traps T053, T057,
 * T096, T097, T098, T099, T211. */
#include "support/encoder_test.h"

#if COGPU_HAVE_JPEG
#include <jpeglib.h>

enum { WIDTH = 37, HEIGHT = 29, SAMPLES_MAX = 4, PIXELS_MAX = 64 * 64 * SAMPLES_MAX };

static cogpu_block_format format;
static uint8_t pixels[PIXELS_MAX], plain[PIXELS_MAX], stream[200000], tables[5000];
static size_t stream_bytes, table_bytes;

static cogpu_decode jpeg;
static cogpu_status jpeg(cogpu_codec_state *state, const cogpu_block_format *none,
                         const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                         size_t *got, cogpu_error *error) {
    (void)none;
    cogpu_status status =
        cogpu_decode_jpeg(state, &format, in, in_bytes, out, out_bytes, got, error);
    CHECK(parts_give(&cogpu_stream_jpeg, &format, in, in_bytes, status, out, *got, out_bytes,
                     status == COGPU_OK));
    return status;
}

/* How a stream is written. */
typedef struct writing {
    unsigned width, height;
    int samples;
    J_COLOR_SPACE from, to;
    int luma_x, luma_y;
    bool progressive, band_by_band, split_tables;
} writing;

static const writing grey = {WIDTH, HEIGHT, 1,     JCS_GRAYSCALE, JCS_GRAYSCALE,
                             1,     1,      false, false,         false};
static const writing rgb = {WIDTH, HEIGHT, 3, JCS_RGB, JCS_RGB, 1, 1, false, false, false};
static const writing ycbcr = {WIDTH, HEIGHT, 3, JCS_RGB, JCS_YCbCr, 2, 2, false, false, false};

static void write_stream(writing how) {
    struct jpeg_compress_struct codec = {0};
    struct jpeg_error_mgr errors;
    unsigned char *memory = NULL;
    unsigned long bytes = 0;
    jpeg_scan_info scans[4] = {{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
    codec.err = jpeg_std_error(&errors);
    jpeg_create_compress(&codec);
    codec.image_width = how.width;
    codec.image_height = how.height;
    codec.input_components = how.samples;
    codec.in_color_space = how.from;
    jpeg_set_defaults(&codec);
    jpeg_set_colorspace(&codec, how.to);
    jpeg_set_quality(&codec, 90, TRUE);
    codec.comp_info[0].h_samp_factor = how.luma_x;
    codec.comp_info[0].v_samp_factor = how.luma_y;
    if (how.progressive)
        jpeg_simple_progression(&codec);
    if (how.band_by_band) {
        codec.scan_info = scans;
        codec.num_scans = how.samples;
    }
    table_bytes = 0;
    if (how.split_tables) {
        jpeg_mem_dest(&codec, &memory, &bytes);
        jpeg_write_tables(&codec);
        memcpy(tables, memory, bytes);
        table_bytes = bytes;
        free(memory);
        memory = NULL;
    }
    jpeg_mem_dest(&codec, &memory, &bytes);
    jpeg_start_compress(&codec, !how.split_tables);
    while (codec.next_scanline < codec.image_height) {
        JSAMPROW row = pixels + codec.next_scanline * how.width * (unsigned)how.samples;
        jpeg_write_scanlines(&codec, &row, 1);
    }
    jpeg_finish_compress(&codec);
    memcpy(stream, memory, bytes);
    stream_bytes = bytes;
    jpeg_destroy_compress(&codec);
    free(memory);
}

/* The stream as libjpeg reads it by itself, into `plain`. */
static void read_plainly(J_COLOR_SPACE to) {
    struct jpeg_decompress_struct codec = {0};
    struct jpeg_error_mgr errors;
    codec.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&codec);
    jpeg_mem_src(&codec, stream, (unsigned long)stream_bytes);
    jpeg_read_header(&codec, TRUE);
    codec.out_color_space = to;
    jpeg_start_decompress(&codec);
    while (codec.output_scanline < codec.output_height) {
        JSAMPROW row =
            plain + codec.output_scanline * codec.output_width * (unsigned)codec.output_components;
        jpeg_read_scanlines(&codec, &row, 1);
    }
    jpeg_finish_decompress(&codec);
    jpeg_destroy_decompress(&codec);
}

static void expect_block(uint32_t width, uint32_t height, uint32_t samples, uint32_t photometric) {
    format = (cogpu_block_format){.width = width,
                                  .height = height,
                                  .samples = samples,
                                  .bits = 8,
                                  .type = COGPU_TYPE_U8,
                                  .row_bytes = (size_t)width * samples,
                                  .compression = COMPRESSION_JPEG,
                                  .photometric = photometric};
}

static size_t block_bytes(void) {
    return format.row_bytes * format.height;
}

static int gives_plain(void) {
    return decodes_to(jpeg, stream, stream_bytes, plain, block_bytes(), block_bytes());
}

static cogpu_status status_now(void) {
    return decode_status(jpeg, stream, stream_bytes, block_bytes());
}

static void fill_pixels(void) {
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * 7 % 251 / 2 + i / 97);
}

static void each_kind(void) {
    for (int progressive = 0; progressive < 2; progressive++) {
        writing how = grey;
        how.progressive = progressive;
        write_stream(how);
        read_plainly(JCS_GRAYSCALE);
        expect_block(WIDTH, HEIGHT, 1, 1);
        CHECK(gives_plain());

        how = rgb;
        how.progressive = progressive;
        write_stream(how);
        read_plainly(JCS_RGB);
        expect_block(WIDTH, HEIGHT, 3, 2);
        CHECK(gives_plain());

        how = (writing){WIDTH, HEIGHT, 4, JCS_CMYK, JCS_CMYK, 1, 1, progressive, false, false};
        write_stream(how);
        read_plainly(JCS_CMYK);
        expect_block(WIDTH, HEIGHT, 4, 2);
        CHECK(gives_plain());

        how =
            (writing){WIDTH, HEIGHT, 2, JCS_UNKNOWN, JCS_UNKNOWN, 1, 1, progressive, false, false};
        write_stream(how);
        read_plainly(JCS_UNKNOWN);
        expect_block(WIDTH, HEIGHT, 2, 1);
        CHECK(gives_plain());
    }
}

/* T097, T099: the tag decides, and the conversion happens once. */
static void ycbcr_becomes_rgb(void) {
    const int factors[][2] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}, {4, 2}};
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        writing how = ycbcr;
        how.luma_x = factors[i][0];
        how.luma_y = factors[i][1];
        how.progressive = i % 2;
        write_stream(how);
        read_plainly(JCS_RGB);
        expect_block(WIDTH, HEIGHT, 3, 6);
        CHECK(gives_plain());
    }
    writing whole = ycbcr;
    whole.luma_x = whole.luma_y = 1;
    write_stream(whole);
    read_plainly(JCS_YCbCr);
    expect_block(WIDTH, HEIGHT, 3, 2);
    CHECK(gives_plain());
}

static void subsampled_without_ycbcr(void) {
    write_stream(ycbcr);
    expect_block(WIDTH, HEIGHT, 3, 2);
    CHECK(status_now() == COGPU_CORRUPT);
    /* One band alone is not subsampled, whatever its factors. */
    writing how = grey;
    how.luma_x = how.luma_y = 2;
    write_stream(how);
    read_plainly(JCS_GRAYSCALE);
    expect_block(WIDTH, HEIGHT, 1, 1);
    CHECK(gives_plain());
    expect_block(WIDTH, HEIGHT, 4, 6);
    write_stream((writing){WIDTH, HEIGHT, 4, JCS_CMYK, JCS_CMYK, 1, 1, false, false, false});
    CHECK(status_now() == COGPU_CORRUPT);
}

/* T097: tables of tag 347. */
static void shared_tables(void) {
    writing how = ycbcr;
    write_stream(how);
    read_plainly(JCS_RGB);
    how.split_tables = true;
    write_stream(how);
    expect_block(WIDTH, HEIGHT, 3, 6);
    CHECK(status_now() == COGPU_CORRUPT);
    uint8_t *copy = malloc(table_bytes);
    memcpy(copy, tables, table_bytes);
    format.jpeg_tables = copy;
    format.jpeg_table_bytes = table_bytes;
    CHECK(gives_plain());
    format.jpeg_table_bytes -= 2; /* without their end marker */
    CHECK(gives_plain());
    format.jpeg_table_bytes = 0;
    CHECK(status_now() == COGPU_CORRUPT);
    free(copy);
    for (size_t cut = 1; cut < table_bytes - 2; cut++) {
        copy = malloc(cut);
        memcpy(copy, tables, cut);
        format.jpeg_tables = copy;
        format.jpeg_table_bytes = cut;
        /* The library has the usual Huffman tables by itself, and these are the usual ones. */
        CHECK(status_now() == COGPU_CORRUPT || gives_plain());
        free(copy);
    }
    format.jpeg_tables = stream; /* an image is no table */
    format.jpeg_table_bytes = stream_bytes;
    CHECK(status_now() == COGPU_CORRUPT);
}

/* Refused for its size, which the message names, before a row was written. */
static int refused_for_size(void) {
    decoded result = decode(jpeg, stream, stream_bytes, block_bytes());
    int refused = result.status == COGPU_CORRUPT && result.got == 0 &&
                  strstr(result.error.message, "pixels where the block has") != NULL;
    free(result.out);
    return refused;
}

/* T057, T096. */
static void other_sizes(void) {
    write_stream(grey);
    read_plainly(JCS_GRAYSCALE);
    for (uint32_t rows = 1; rows < HEIGHT; rows++) {
        expect_block(WIDTH, rows, 1, 1);
        CHECK(gives_plain());
    }
    expect_block(WIDTH, HEIGHT + 1, 1, 1);
    CHECK(refused_for_size());
    expect_block(WIDTH + 1, HEIGHT, 1, 1);
    CHECK(refused_for_size());
    expect_block(WIDTH - 1, HEIGHT, 1, 1);
    CHECK(refused_for_size());
    expect_block(WIDTH, HEIGHT, 3, 2);
    CHECK(status_now() == COGPU_CORRUPT);
    expect_block(0, 0, 0, 1);
    CHECK(status_now() == COGPU_CORRUPT);
    /* With scans the library would hold all rows of the stream. */
    writing how = grey;
    how.progressive = true;
    write_stream(how);
    expect_block(WIDTH, HEIGHT - 1, 1, 1);
    CHECK(refused_for_size());
}

static void buffer_for_fewer_rows(void) {
    write_stream(grey);
    read_plainly(JCS_GRAYSCALE);
    expect_block(WIDTH, HEIGHT, 1, 1);
    CHECK(decodes_to(jpeg, stream, stream_bytes, plain, 3 * WIDTH, 4 * WIDTH - 1));
    CHECK(decodes_to(jpeg, stream, stream_bytes, plain, 0, 0));
}

static uint8_t *find_marker(uint8_t marker) {
    for (size_t i = 0; i + 1 < stream_bytes; i++)
        if (stream[i] == 0xFF && stream[i + 1] == marker)
            return stream + i;
    return NULL;
}

/* T211: the size of the stream is no reason to take memory. */
static void giant_size(void) {
    for (int progressive = 0; progressive < 2; progressive++) {
        writing how = grey;
        how.progressive = progressive;
        write_stream(how);
        uint8_t *frame = find_marker(progressive ? 0xC2 : 0xC0);
        CHECK(frame);
        if (!frame)
            continue;
        memcpy(frame + 5, "\xFF\xDC", 2);
        expect_block(WIDTH, HEIGHT, 1, 1);
        CHECK(!progressive || status_now() == COGPU_CORRUPT);
        memcpy(frame + 7, "\xFF\xDC", 2);
        CHECK(status_now() == COGPU_CORRUPT);
    }
}

static void twelve_bits(void) {
    write_stream(grey);
    expect_block(WIDTH, HEIGHT, 1, 1);
    find_marker(0xC0)[4] = 12;
#if defined(LIBJPEG_TURBO_VERSION_NUMBER) && LIBJPEG_TURBO_VERSION_NUMBER >= 3000000
    CHECK(status_now() == COGPU_CORRUPT); /* the block has 8; test_wide_jpeg.py has valid ones */
#else
    CHECK(status_now() == COGPU_UNSUPPORTED);
    format.bits = 12;
    CHECK(status_now() == COGPU_UNSUPPORTED);
#endif
}

/* A scan of a few bytes, again and again, each a walk over the block. */
static void many_scans(void) {
    writing how = rgb;
    how.band_by_band = true;
    write_stream(how);
    read_plainly(JCS_RGB);
    expect_block(WIDTH, HEIGHT, 3, 2);
    CHECK(gives_plain());
    uint8_t *first = find_marker(0xDA);
    size_t head = (size_t)(first - stream);
    size_t scan = 2;
    while (!(first[scan] == 0xFF && first[scan + 1] == 0xDA))
        scan++; /* up to the next scan */
    uint8_t *long_stream = malloc(head + 150 * scan + stream_bytes);
    memcpy(long_stream, stream, head);
    for (size_t i = 0; i < 150; i++)
        memcpy(long_stream + head + i * scan, first, scan);
    memcpy(long_stream + head + 150 * scan, first, stream_bytes - head);
    decoded many = decode(jpeg, long_stream, 150 * scan + stream_bytes, block_bytes());
    CHECK(many.status == COGPU_CORRUPT);
    CHECK(strstr(many.error.message, "100 scans") != NULL);
    free(many.out);
    free(long_stream);
}

/* Only the end marker may be missing; anything before is pixels. */
static void truncated(void) {
    write_stream(grey);
    read_plainly(JCS_GRAYSCALE);
    expect_block(WIDTH, HEIGHT, 1, 1);
    CHECK(prefixes_taken(jpeg, stream, stream_bytes, plain, block_bytes()) <= 3);
    CHECK(decodes_to(jpeg, stream, stream_bytes - 2, plain, block_bytes(), block_bytes()));
    write_stream(ycbcr);
    read_plainly(JCS_RGB);
    expect_block(WIDTH, HEIGHT, 3, 6);
    CHECK(prefixes_taken(jpeg, stream, stream_bytes, plain, block_bytes()) <= 3);
    writing how = ycbcr;
    how.progressive = true;
    write_stream(how);
    read_plainly(JCS_RGB);
    CHECK(prefixes_taken(jpeg, stream, stream_bytes, plain, block_bytes()) == 0);
}

static void bits_flipped(void) {
    for (int progressive = 0; progressive < 2; progressive++) {
        writing how = grey;
        how.progressive = progressive;
        write_stream(how);
        read_plainly(JCS_GRAYSCALE);
        expect_block(WIDTH, HEIGHT, 1, 1);
        flips_unnoticed(jpeg, stream, stream_bytes, plain, block_bytes());
    }
}

static void after_a_failure(void) {
    write_stream(grey);
    read_plainly(JCS_GRAYSCALE);
    expect_block(WIDTH, HEIGHT, 1, 1);
    CHECK(decode_status(jpeg, stream, stream_bytes / 2, block_bytes()) == COGPU_CORRUPT);
    CHECK(decode_status(jpeg, stream, 0, block_bytes()) == COGPU_CORRUPT);
    CHECK(gives_plain());
}

/* ---- the encoder ---- */

static uint8_t new_tables[1024];

static cogpu_encoding encoding_of(uint32_t width, uint32_t height, uint32_t samples,
                                  uint32_t photometric, int quality) {
    expect_block(width, height, samples, photometric);
    format.subsampling_x = format.subsampling_y = 1;
    return (cogpu_encoding){.format = format, .quality = quality};
}

/* Encodes `pixels` into `stream`, the tables into `new_tables`, to which `format` points. */
static void encode_stream(cogpu_encoding encoding) {
    cogpu_error error;
    encode_result result = encode_twice(&cogpu_encoder_jpeg, &encoding, pixels);
    CHECK(result.status == COGPU_OK && result.got <= sizeof stream);
    memcpy(stream, result.out, result.got);
    stream_bytes = result.got;
    free(result.out);
    CHECK(cogpu_jpeg_tables(&encoding, new_tables, sizeof new_tables, &table_bytes, &error) ==
          COGPU_OK);
    format.jpeg_tables = new_tables;
    format.jpeg_table_bytes = table_bytes;
}

/* The largest difference between `pixels` and what the stream decodes to. */
static int largest_error(void) {
    int largest = 0;
    decoded result = decode(jpeg, stream, stream_bytes, block_bytes());
    CHECK(result.status == COGPU_OK && result.got == block_bytes());
    for (size_t i = 0; i < result.got; i++)
        largest =
            abs(result.out[i] - pixels[i]) > largest ? abs(result.out[i] - pixels[i]) : largest;
    free(result.out);
    return largest;
}

/* Bands that rise in different directions. */
static void fill_slopes(uint32_t width, uint32_t samples) {
    for (uint32_t i = 0; i < PIXELS_MAX; i++) {
        uint32_t x = i / samples % width, y = i / samples / width, band = i % samples;
        pixels[i] = (uint8_t)(20 + 40 * band + (band % 2 ? x : y));
    }
}

static void encoded_bands(void) {
    const uint32_t sizes[][2] = {{WIDTH, HEIGHT}, {1, 1}, {8, 8}, {16, 3}, {64, 64}, {3, 61}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (uint32_t samples = 1; samples <= SAMPLES_MAX; samples++) {
            fill_slopes(sizes[i][0], samples);
            for (int quality = 50; quality <= 100; quality += 25) {
                encode_stream(
                    encoding_of(sizes[i][0], sizes[i][1], samples, samples < 3 ? 1 : 2, quality));
                CHECK(largest_error() <= (quality == 100 ? 2 : 12));
            }
        }
    }
    fill_pixels();
}

static void encoded_ycbcr(void) {
    const uint32_t factors[][2] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}};
    fill_slopes(WIDTH, 3);
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        cogpu_encoding encoding = encoding_of(WIDTH, HEIGHT, 3, 6, 95);
        encoding.format.subsampling_x = factors[i][0];
        encoding.format.subsampling_y = factors[i][1];
        encode_stream(encoding);
        CHECK(largest_error() <= 12);
        const uint8_t *frame = find_marker(0xC0);
        CHECK(frame && frame[11] == (factors[i][0] << 4 | factors[i][1]) && frame[14] == 0x11);
    }
    fill_pixels();
}

/* T098, T099: tables in tag 347 alone, no marker that speaks of colours; baseline at any quality.
 */
static void encoded_markers(void) {
    for (int quality = 1; quality <= 100; quality += 9) {
        for (uint32_t samples = 1; samples <= SAMPLES_MAX; samples++) {
            encode_stream(encoding_of(WIDTH, HEIGHT, samples, samples == 3 ? 6 : 1, quality));
            const uint8_t foreign[] = {0xDB, 0xC4, 0xE0, 0xEE, 0xC1, 0xC2, 0xDD};
            for (size_t i = 0; i < sizeof foreign; i++)
                CHECK(!find_marker(foreign[i]));
            CHECK(find_marker(0xC0));
            CHECK(table_bytes == (samples == 3 ? 574 : 289));
            CHECK(memcmp(new_tables, "\xFF\xD8", 2) == 0);
            CHECK(memcmp(new_tables + table_bytes - 2, "\xFF\xD9", 2) == 0);
        }
    }
}

/* Nothing is larger than noise of the two extremes; 1 x 1 pixels are mostly headers. */
static void encoded_noise(void) {
    const uint32_t sizes[][2] = {{64, 64}, {1, 1}, {9, 9}, {17, 17}};
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)((i * i * 2654435761u >> 13 & 1) * 255);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (uint32_t samples = 1; samples <= SAMPLES_MAX; samples++) {
            encode_stream(encoding_of(sizes[i][0], sizes[i][1], samples, 1, 100));
            CHECK(largest_error() <= 2);
        }
        cogpu_encoding encoding = encoding_of(sizes[i][0], sizes[i][1], 3, 6, 100);
        encoding.format.subsampling_x = encoding.format.subsampling_y = 2;
        encode_stream(encoding);
    }
    fill_pixels();
}

/* Bytes of a block of the same square of 8 x 8 samples throughout. */
static size_t bytes_of_squares(const cogpu_encoding *encoding, const uint8_t square[64]) {
    static uint8_t block[64 * 64];
    for (uint32_t i = 0; i < sizeof block; i++)
        block[i] = square[i / 64 % 8 * 8 + i % 8];
    encode_result result =
        encode_by(&codec_state, &cogpu_encoder_jpeg, encoding, block, sizeof block);
    CHECK(result.status == COGPU_OK);
    free(result.out);
    return result.got;
}

/* Squares that are made worse sample by sample, as long as that makes the stream longer: never
 * longer than the bound, which is not much more than that, for each quality. */
static void worst_squares(void) {
    static const int qualities[] = {1, 10, 40, 75, 90, 100};
    for (size_t q = 0; q < sizeof qualities / sizeof *qualities; q++) {
        cogpu_encoding encoding = encoding_of(64, 64, 1, 1, qualities[q]);
        uint8_t square[64], drawn[64 * 6];
        fill_bytes(drawn, sizeof drawn, 256, 0);
        for (uint32_t i = 0; i < 64; i++)
            square[i] = drawn[i] < 128 ? 255 : 0;
        size_t most = bytes_of_squares(&encoding, square);
        for (uint32_t i = 0; i < sizeof drawn; i++) {
            uint8_t *sample = &square[i % 64], before = *sample;
            *sample = i / 64 % 2 ? drawn[i] : (uint8_t)(255 - *sample);
            size_t bytes = bytes_of_squares(&encoding, square);
            if (bytes < most)
                *sample = before;
            else
                most = bytes;
        }
        size_t bound = (size_t)cogpu_encoder_jpeg.bound(&encoding, sizeof(uint8_t[64 * 64]));
        CHECK(most < bound && bound - 1024 < 3 * most);
    }
}

static void not_encoded(void) {
    cogpu_encoding encoding = encoding_of(WIDTH, HEIGHT, 5, 1, 75);
    CHECK(encode_status(&cogpu_encoder_jpeg, &encoding, pixels) == COGPU_UNSUPPORTED);
    encoding = encoding_of(WIDTH, HEIGHT, 4, 6, 75);
    CHECK(encode_status(&cogpu_encoder_jpeg, &encoding, pixels) == COGPU_UNSUPPORTED);
    encoding = encoding_of(WIDTH, HEIGHT, 1, 1, 75);
    encoding.format.bits = 16;
    CHECK(encode_status(&cogpu_encoder_jpeg, &encoding, pixels) == COGPU_UNSUPPORTED);
    encoding = encoding_of(WIDTH, HEIGHT, 3, 6, 75);
    encoding.format.subsampling_x = encoding.format.subsampling_y = 4;
    CHECK(encode_status(&cogpu_encoder_jpeg, &encoding, pixels) == COGPU_UNSUPPORTED);

    /* What libjpeg refuses by itself, and a buffer that is too small, end by longjmp. */
    static uint8_t wide[65536];
    encoding = encoding_of(65536, 1, 1, 1, 75);
    CHECK(encode_status(&cogpu_encoder_jpeg, &encoding, wide) == COGPU_UNSUPPORTED);
    encoding = encoding_of(WIDTH, HEIGHT, 1, 1, 75);
    cogpu_error error;
    size_t got, capacity = 200;
    CHECK(cogpu_encoder_jpeg.encode(&codec_state, &encoding, pixels, block_bytes(), stream,
                                    capacity, &got, &error) == COGPU_LIMIT_EXCEEDED);
    CHECK(cogpu_jpeg_tables(&encoding, new_tables, 100, &got, &error) == COGPU_LIMIT_EXCEEDED &&
          got == 0);
}

TESTS(codec_jpeg) {
    fill_pixels();
    RUN(each_kind);
    RUN(ycbcr_becomes_rgb);
    RUN(subsampled_without_ycbcr);
    RUN(shared_tables);
    RUN(other_sizes);
    RUN(buffer_for_fewer_rows);
    RUN(giant_size);
    RUN(twelve_bits);
    RUN(many_scans);
    RUN(truncated);
    RUN(bits_flipped);
    RUN(after_a_failure);
    RUN(encoded_bands);
    RUN(encoded_ycbcr);
    RUN(encoded_markers);
    RUN(encoded_noise);
    RUN(worst_squares);
    RUN(not_encoded);
    cogpu_codec_state_close(&codec_state);
    return FINISH();
}

#else
TESTS(codec_jpeg) {
    return FINISH();
}
#endif
