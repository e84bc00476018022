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

#include <jpeglib.h>

#define EXPORT __attribute__((visibility("default")))

enum { BAD = 3, OUT_OF_MEMORY = 5, GPU_HYBRID = 2, STRICT = 4, OUTPUT_Y = 2, OUTPUT_RGBI = 5 };

struct image {
    unsigned char *channel[4];
    size_t pitch[4];
};

struct allocator {
    int (*take)(void *user, void **memory, size_t bytes, void *stream);
    int (*give)(void *user, void *memory, size_t bytes, void *stream);
    void *user;
};

struct handle {
    struct allocator device, pinned;
};

/* Memory for a batch: on the device, and pinned. */
struct state {
    struct handle *handle;
    int batch, format;
    void *device, *pinned;
    size_t device_bytes, pinned_bytes;
};

static fake_nvjpeg fake;

EXPORT fake_nvjpeg *fake_nvjpeg_control(void);
fake_nvjpeg *fake_nvjpeg_control(void) {
    return &fake;
}

static void expect(bool condition) {
    fake.wrong += !condition;
}

EXPORT int nvjpegCreateExV2(int backend, struct allocator *device, struct allocator *pinned,
                            unsigned flags, struct handle **handle);
int nvjpegCreateExV2(int backend, struct allocator *device, struct allocator *pinned,
                     unsigned flags, struct handle **handle) {
    expect(backend == GPU_HYBRID && flags & STRICT);
    if (fake.create_error)
        return fake.create_error;
    *handle = malloc(sizeof **handle);
    **handle = (struct handle){*device, *pinned};
    fake.handles++;
    return 0;
}

EXPORT int nvjpegDestroy(struct handle *handle);
int nvjpegDestroy(struct handle *handle) {
    expect(fake.states == 0);
    free(handle);
    fake.handles--;
    return 0;
}

EXPORT int nvjpegJpegStateCreate(struct handle *handle, struct state **state);
int nvjpegJpegStateCreate(struct handle *handle, struct state **state) {
    if (fake.state_error)
        return fake.state_error;
    *state = calloc(1, sizeof **state);
    (*state)->handle = handle;
    fake.states++;
    return 0;
}

static int grow(struct allocator *allocator, void **memory, size_t *held, size_t bytes) {
    if (bytes <= *held)
        return 0;
    if (*memory) {
        allocator->give(allocator->user, *memory, *held, NULL);
        fake.memories--;
    }
    *memory = NULL;
    *held = 0;
    if (allocator->take(allocator->user, memory, bytes, NULL) != 0 || !*memory)
        return OUT_OF_MEMORY;
    *held = bytes;
    fake.memories++;
    return 0;
}

EXPORT int nvjpegJpegStateDestroy(struct state *state);
int nvjpegJpegStateDestroy(struct state *state) {
    struct handle *handle = state->handle;
    if (state->device)
        handle->device.give(handle->device.user, state->device, state->device_bytes, NULL);
    if (state->pinned)
        handle->pinned.give(handle->pinned.user, state->pinned, state->pinned_bytes, NULL);
    fake.memories -= (state->device != NULL) + (state->pinned != NULL);
    free(state);
    fake.states--;
    return 0;
}

EXPORT int nvjpegDecodeBatchedInitialize(struct handle *handle, struct state *state, int batch,
                                         int threads, int format);
int nvjpegDecodeBatchedInitialize(struct handle *handle, struct state *state, int batch,
                                  int threads, int format) {
    expect(state->handle == handle && batch > 0 && threads > 0);
    expect(format == OUTPUT_Y || format == OUTPUT_RGBI);
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

static void decode_rows(struct jpeg_decompress_struct *codec, const unsigned char *stream,
                        size_t bytes, int format, const struct image *image) {
    jpeg_create_decompress(codec);
    jpeg_mem_src(codec, stream, (unsigned long)bytes);
    jpeg_read_header(codec, TRUE);
    expect(codec->num_components == (format == OUTPUT_Y ? 1 : 3));
    expect(image->pitch[0] == (size_t)codec->image_width * (unsigned)codec->num_components);
    jpeg_start_decompress(codec);
    while (codec->output_scanline < codec->output_height) {
        JSAMPROW row = image->channel[0] + codec->output_scanline * image->pitch[0];
        jpeg_read_scanlines(codec, &row, 1);
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

EXPORT int nvjpegDecodeBatched(struct handle *handle, struct state *state,
                               const unsigned char *const *streams, const size_t *lengths,
                               struct image *images, void *stream);
int nvjpegDecodeBatched(struct handle *handle, struct state *state,
                        const unsigned char *const *streams, const size_t *lengths,
                        struct image *images, void *stream) {
    size_t all = 0;
    int result = 0;
    (void)stream;
    expect(state->handle == handle && state->batch > 0);
    fake.decodes++;
    fake.last_batch = state->batch;
    fake.last_format = state->format;
    for (int i = 0; i < state->batch; i++)
        all += lengths[i];
    result = grow(&handle->device, &state->device, &state->device_bytes, all);
    if (result == 0)
        result = grow(&handle->pinned, &state->pinned, &state->pinned_bytes, all);
    if (fake.decode_error && (!fake.decode_fails_at || fake.decode_fails_at == fake.decodes))
        result = fake.decode_error;
    for (int i = 0; i < state->batch && result == 0; i++)
        result = decode(streams[i], lengths[i], state->format, &images[i]);
    return result;
}
