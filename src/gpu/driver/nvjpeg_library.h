/*
 * The part of NVIDIA's nvJPEG that is used: types, constants and functions of its interface. It is
 * loaded at the first use and never linked. The environment variable COGPU_NVJPEG names another
 * file to load.
 *
 * All calls need the device's context to be current.
 */
#ifndef COGPU_GPU_DRIVER_NVJPEG_LIBRARY_H
#define COGPU_GPU_DRIVER_NVJPEG_LIBRARY_H

#include "gpu/driver/gpu.h"

struct nvjpeg_image {
    uint8_t *channel[4];
    size_t pitch[4];
};

enum {
    NVJPEG_SUCCESS = 0,
    NVJPEG_BAD = 3,
    NVJPEG_NO_MEMORY = 5,
    NVJPEG_NO_SUCH_DEVICE = 7
};                                             /* what calls return */
enum { NVJPEG_USUAL = 0, NVJPEG_ENGINES = 3 }; /* backends */
enum { NVJPEG_OUTPUT_PLANES = 1, NVJPEG_OUTPUT_GREY = 2 };
enum { NVJPEG_INPUT_RGB_PIXELS = 5 };
enum { NVJPEG_420 = 2, NVJPEG_GREY = 6 }; /* subsamplings */

/* X(field, name in the library, arguments) */
#define COGPU_NVJPEG_CALLS(X)                                                                      \
    X(create, "nvjpegCreateEx", (int, const void *, const void *, unsigned, void **))              \
    X(destroy, "nvjpegDestroy", (void *))                                                          \
    X(state_create, "nvjpegJpegStateCreate", (void *, void **))                                    \
    X(state_destroy, "nvjpegJpegStateDestroy", (void *))                                           \
    X(batch_size, "nvjpegDecodeBatchedInitialize", (void *, void *, int, int, int))                \
    X(batch_decode, "nvjpegDecodeBatched",                                                         \
      (void *, void *, const uint8_t *const *, const size_t *, struct nvjpeg_image *, void *))     \
    X(encoder_create, "nvjpegEncoderStateCreate", (void *, void **, void *))                       \
    X(encoder_destroy, "nvjpegEncoderStateDestroy", (void *))                                      \
    X(params_create, "nvjpegEncoderParamsCreate", (void *, void **, void *))                       \
    X(params_destroy, "nvjpegEncoderParamsDestroy", (void *))                                      \
    X(set_quality, "nvjpegEncoderParamsSetQuality", (void *, int, void *))                         \
    X(set_subsampling, "nvjpegEncoderParamsSetSamplingFactors", (void *, int, void *))             \
    X(encode_planes, "nvjpegEncodeYUV",                                                            \
      (void *, void *, void *, const struct nvjpeg_image *, int, int, int, void *))                \
    X(encode_pixels, "nvjpegEncodeImage",                                                          \
      (void *, void *, void *, const struct nvjpeg_image *, int, int, int, void *))                \
    X(retrieve_stream, "nvjpegEncodeRetrieveBitstreamDevice",                                      \
      (void *, void *, uint8_t *, size_t *, void *))

#define COGPU_NVJPEG_FIELD(field, name, arguments) int(*field) arguments;
typedef struct cogpu_nvjpeg_library {
    const char *why; /* it cannot be used; NULL if it can */
    COGPU_NVJPEG_CALLS(COGPU_NVJPEG_FIELD)
} cogpu_nvjpeg_library;

const cogpu_nvjpeg_library *cogpu_nvjpeg_load(void);

/* Whether nvJPEG works on this device: on an emulated one only if COGPU_NVJPEG names a fake. */
bool cogpu_nvjpeg_supports(const cogpu_gpu *gpu);

#endif
