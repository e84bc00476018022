/*
 * Takes nvJPEG's calls, hands on samples by libjpeg and whatever mischief it is told: see
 * fake_nvjpeg.h. A stream that libjpeg complains about fails its batch.
 */
#include "fake_nvjpeg.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#define EXPORT __attribute__((visibility("default")))

enum { BAD = 3, ENGINES = 3, OUTPUT_PLANES = 1, OUTPUT_GREY = 2, BANDS_MAX = 3, WIDTH_MAX = 1024 };

struct image {
    unsigned char *channel[4];
    size_t pitch[4];
};

struct state {
    void *handle;
    int batch, format;
};

static fake_nvjpeg fake;

static int handle; /* only its address counts */

EXPORT fake_nvjpeg *fake_nvjpeg_control(void);
fake_nvjpeg *fake_nvjpeg_control(void) {
    return &fake;
}

static void expect(bool condition) {
    fake.wrong += !condition;
}

EXPORT int nvjpegCreateEx(int backend, const void *device, const void *pinned, unsigned flags,
                          void **created);
int nvjpegCreateEx(int backend, const void *device, const void *pinned, unsigned flags,
                   void **created) {
    expect(backend == ENGINES && !device && !pinned && flags == 0);
    *created = &handle;
    fake.handles += !fake.create_error;
    return fake.create_error;
}

EXPORT int nvjpegDestroy(void *destroyed);
int nvjpegDestroy(void *destroyed) {
    expect(fake.states == 0 && destroyed == &handle);
    fake.handles--;
    return 0;
}

EXPORT int nvjpegJpegStateCreate(void *of, struct state **state);
int nvjpegJpegStateCreate(void *of, struct state **state) {
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
