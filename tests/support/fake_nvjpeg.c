/*
 * Does the calls of nvJPEG by libjpeg, with the faults that fake_nvjpeg.h describes. A stream that
 * libjpeg complains about fails its batch. An image is encoded when its stream is asked for: pixels
 * that are not there by then are missed.
 */
#include "support/fake_nvjpeg.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#define EXPORT __attribute__((visibility("default")))

enum { INVALID = 2, BAD = 3, USUAL = 0, ENGINES = 3, BANDS_MAX = 3, WIDTH_MAX = 1024 };
enum { OUTPUT_PLANES = 1, OUTPUT_GREY = 2, INPUT_RGB_PIXELS = 5, HALVED = 2, GREY = 6 };

struct image {
    unsigned char *channel[4];
    size_t pitch[4];
};

struct state {
    void *handle;
    int batch, format;
};

static fake_nvjpeg fake;

static int handles[ENGINES + 1]; /* by backend; only their addresses count */

EXPORT fake_nvjpeg *fake_nvjpeg_control(void);
fake_nvjpeg *fake_nvjpeg_control(void) {
    return &fake;
}

static void expect(bool condition) {
    fake.wrong += !condition;
}

/* ---- handles ------------------------------------------------------------------------------- */

EXPORT int nvjpegCreateEx(int backend, const void *device, const void *pinned, unsigned flags,
                          void **created);
int nvjpegCreateEx(int backend, const void *device, const void *pinned, unsigned flags,
                   void **created) {
    expect((backend == ENGINES || backend == USUAL) && !device && !pinned && flags == 0);
    *created = &handles[backend];
    fake.handles += !fake.create_error;
    return fake.create_error;
}

EXPORT int nvjpegDestroy(void *destroyed);
int nvjpegDestroy(void *destroyed) {
    expect(destroyed == &handles[ENGINES] ? fake.states == 0
                                          : destroyed == &handles[USUAL] && fake.encoders == 0);
    fake.handles--;
    return 0;
}

EXPORT int nvjpegJpegStateCreate(void *of, struct state **state);
int nvjpegJpegStateCreate(void *of, struct state **state) {
    expect(of == &handles[ENGINES]);
    if (fake.state_error)
        return fake.state_error;
    *state = calloc(1, sizeof **state);
    (*state)->handle = of;
    fake.states++;
    return 0;
}

EXPORT int nvjpegJpegStateDestroy(struct state *state);
int nvjpegJpegStateDestroy(struct state *state) {
    free(state);
    fake.states--;
    return 0;
}

EXPORT int nvjpegDecodeBatchedInitialize(void *of, struct state *state, int batch, int threads,
                                         int format);
int nvjpegDecodeBatchedInitialize(void *of, struct state *state, int batch, int threads,
                                  int format) {
    expect(state->handle == of && batch > 0 && threads > 0);
    expect(format == OUTPUT_GREY || format == OUTPUT_PLANES);
    fake.sizes++;
    state->batch = fake.size_error ? 0 : batch;
    state->format = format;
    return fake.size_error;
}

/* ---- decode -------------------------------------------------------------------------------- */

static jmp_buf escape;

static _Noreturn void on_error(j_common_ptr codec) {
    (void)codec;
    longjmp(escape, 1);
}

static void on_message(j_common_ptr codec, int level) {
    if (level < 0)
        on_error(codec);
}

/* Rows of a unit, of all bands, into the planes. */
static void copy_rows(const struct jpeg_decompress_struct *codec, unsigned unit,
                      unsigned char rows[BANDS_MAX][16][WIDTH_MAX], const struct image *image) {
    for (int band = 0; band < codec->num_components; band++) {
        const jpeg_component_info *info = &codec->comp_info[band];
        unsigned first = unit * 8 * (unsigned)info->v_samp_factor;
        for (unsigned y = 0; y < 8u * (unsigned)info->v_samp_factor; y++)
            if (first + y < info->downsampled_height)
                memcpy(image->channel[band] + (first + y) * image->pitch[band], rows[band][y],
                       info->downsampled_width);
    }
}

static void decode_rows(struct jpeg_decompress_struct *codec, const unsigned char *stream,
                        size_t bytes, int format, const struct image *image) {
    static unsigned char rows[BANDS_MAX][16][WIDTH_MAX];
    JSAMPROW pointers[BANDS_MAX][16];
    JSAMPARRAY bands[BANDS_MAX] = {pointers[0], pointers[1], pointers[2]};
    jpeg_create_decompress(codec);
    jpeg_mem_src(codec, stream, (unsigned long)bytes);
    jpeg_read_header(codec, TRUE);
    expect(codec->num_components == (format == OUTPUT_GREY ? 1 : BANDS_MAX));
    expect(codec->image_width < WIDTH_MAX - 16);
    for (int i = 0; i < BANDS_MAX * 16; i++)
        pointers[i / 16][i % 16] = rows[i / 16][i % 16];
    for (int band = 0; band < codec->num_components; band++)
        expect(image->pitch[band] == codec->image_width);
    codec->raw_data_out = TRUE;
    codec->out_color_space = codec->jpeg_color_space;
    jpeg_start_decompress(codec);
    for (unsigned unit = 0; codec->output_scanline < codec->output_height; unit++) {
        jpeg_read_raw_data(codec, bands, 8 * (unsigned)codec->max_v_samp_factor);
        copy_rows(codec, unit, rows, image);
    }
    jpeg_finish_decompress(codec);
}

/* setjmp stands in a function of its own that changes none of its variables. */
static int guarded(struct jpeg_decompress_struct *codec, const unsigned char *stream, size_t bytes,
                   int format, const struct image *image) {
    if (setjmp(escape) != 0)
        return BAD;
    decode_rows(codec, stream, bytes, format, image);
    return 0;
}

static int decode(const unsigned char *stream, size_t bytes, int format,
                  const struct image *image) {
    struct jpeg_decompress_struct codec = {0};
    struct jpeg_error_mgr errors;
    codec.err = jpeg_std_error(&errors);
    errors.error_exit = on_error;
    errors.emit_message = on_message;
    int result = guarded(&codec, stream, bytes, format, image);
    jpeg_destroy_decompress(&codec);
    return result;
}

EXPORT int nvjpegDecodeBatched(void *of, struct state *state, const unsigned char *const *streams,
                               const size_t *lengths, struct image *images, void *stream);
int nvjpegDecodeBatched(void *of, struct state *state, const unsigned char *const *streams,
                        const size_t *lengths, struct image *images, void *stream) {
    int result = 0;
    expect(state->handle == of && state->batch > 0 && stream);
    fake.decodes++;
    fake.last_batch = state->batch;
    fake.last_format = state->format;
    if (fake.decode_error && (!fake.decode_fails_at || fake.decode_fails_at == fake.decodes))
        result = fake.decode_error;
    for (int i = 0; i < state->batch && result == 0; i++)
        result = decode(streams[i], lengths[i], state->format, &images[i]);
    return result;
}

/* ---- encode -------------------------------------------------------------------------------- */

struct params {
    int quality, subsampling;
};

struct encoder {
    const struct params *params; /* of the image that is under way; NULL: none is */
    struct image image;
    int width, height;
    void *stream;
};

static int under_way;

/* What the next call that has to do with encoding returns. */
static int next_result(void *stream) {
    expect(stream != NULL);
    fake.encode_calls++;
    return fake.encode_fails_at == fake.encode_calls ? fake.encode_error : 0;
}

static int create(void *of, size_t bytes, void **created, void *stream) {
    int result = next_result(stream);
    expect(of == &handles[USUAL]);
    *created = result ? (void *)&fake : calloc(1, bytes); /* what failed is not to be used */
    fake.encoders += !result;
    return result;
}

static int destroy(void *destroyed) {
    expect(destroyed != &fake);
    free(destroyed);
    fake.encoders--;
    return 0;
}

EXPORT int nvjpegEncoderStateCreate(void *of, void **encoder, void *stream);
int nvjpegEncoderStateCreate(void *of, void **encoder, void *stream) {
    return create(of, sizeof(struct encoder), encoder, stream);
}

EXPORT int nvjpegEncoderStateDestroy(struct encoder *encoder);
int nvjpegEncoderStateDestroy(struct encoder *encoder) {
    under_way -= encoder->params != NULL;
    return destroy(encoder);
}

EXPORT int nvjpegEncoderParamsCreate(void *of, void **params, void *stream);
int nvjpegEncoderParamsCreate(void *of, void **params, void *stream) {
    return create(of, sizeof(struct params), params, stream);
}

EXPORT int nvjpegEncoderParamsDestroy(struct params *params);
int nvjpegEncoderParamsDestroy(struct params *params) {
    return destroy(params);
}

EXPORT int nvjpegEncoderParamsSetQuality(struct params *params, int quality, void *stream);
int nvjpegEncoderParamsSetQuality(struct params *params, int quality, void *stream) {
    expect(quality >= 1 && quality <= 100);
    params->quality = quality;
    return next_result(stream);
}

EXPORT int nvjpegEncoderParamsSetSamplingFactors(struct params *params, int subsampling,
                                                 void *stream);
int nvjpegEncoderParamsSetSamplingFactors(struct params *params, int subsampling, void *stream) {
    expect(subsampling == HALVED || subsampling == GREY);
    params->subsampling = subsampling;
    return next_result(stream);
}

static int submit(void *of, struct encoder *encoder, const struct params *params,
                  const struct image *image, int width, int height, void *stream) {
    int result = next_result(stream);
    expect(of == &handles[USUAL] && !encoder->params && params->quality > 0);
    expect(width > 0 && height > 0);
    if (result)
        return result;
    *encoder = (struct encoder){params, *image, width, height, stream};
    fake.at_once = ++under_way > fake.at_once ? under_way : fake.at_once;
    return 0;
}

EXPORT int nvjpegEncodeYUV(void *of, struct encoder *encoder, const struct params *params,
                           const struct image *image, int subsampling, int width, int height,
                           void *stream);
int nvjpegEncodeYUV(void *of, struct encoder *encoder, const struct params *params,
                    const struct image *image, int subsampling, int width, int height,
                    void *stream) {
    expect(subsampling == GREY && params->subsampling == GREY);
    expect(image->pitch[0] == (size_t)width);
    return submit(of, encoder, params, image, width, height, stream);
}

EXPORT int nvjpegEncodeImage(void *of, struct encoder *encoder, const struct params *params,
                             const struct image *image, int format, int width, int height,
                             void *stream);
int nvjpegEncodeImage(void *of, struct encoder *encoder, const struct params *params,
                      const struct image *image, int format, int width, int height, void *stream) {
    expect(format == INPUT_RGB_PIXELS && params->subsampling == HALVED);
    expect(image->pitch[0] == 3 * (size_t)width);
    return submit(of, encoder, params, image, width, height, stream);
}

/* A whole JPEG; the caller frees it. */
static unsigned char *encode(const struct encoder *encoder, unsigned long *bytes) {
    struct jpeg_compress_struct codec = {0};
    struct jpeg_error_mgr errors;
    unsigned char *stream = NULL;
    bool is_grey = encoder->params->subsampling == GREY;
    codec.err = jpeg_std_error(&errors);
    jpeg_create_compress(&codec);
    jpeg_mem_dest(&codec, &stream, bytes);
    codec.image_width = (unsigned)encoder->width;
    codec.image_height = (unsigned)encoder->height;
    codec.input_components = is_grey ? 1 : 3;
    codec.in_color_space = is_grey ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&codec); /* YCbCr 4:2:0 of RGB */
    jpeg_set_quality(&codec, encoder->params->quality, TRUE);
    jpeg_start_compress(&codec, TRUE);
    while (codec.next_scanline < codec.image_height) {
        JSAMPROW row = encoder->image.channel[0] + codec.next_scanline * encoder->image.pitch[0];
        jpeg_write_scanlines(&codec, &row, 1);
    }
    jpeg_finish_compress(&codec);
    jpeg_destroy_compress(&codec);
    return stream;
}

EXPORT int nvjpegEncodeRetrieveBitstreamDevice(void *of, struct encoder *encoder, unsigned char *to,
                                               size_t *capacity, void *stream);
int nvjpegEncodeRetrieveBitstreamDevice(void *of, struct encoder *encoder, unsigned char *to,
                                        size_t *capacity, void *stream) {
    unsigned long bytes = 0;
    int result = next_result(stream);
    expect(of == &handles[USUAL] && encoder->params && encoder->stream == stream);
    if (result || !encoder->params)
        return result ? result : INVALID;
    unsigned char *made = encode(encoder, &bytes);
    if (bytes <= *capacity) {
        memcpy(to, made, bytes);
        *capacity = bytes;
        encoder->params = NULL;
        under_way--;
        fake.encoded++;
    }
    free(made);
    return encoder->params ? INVALID : 0;
}
