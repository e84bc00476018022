/*
 * Reads pixels from any bytes: each level as a whole, a window of it, its mask, the same with two
 * threads and a cache, and as floats. Pixels that are read twice must be equal. Limits are low, and
 * levels with a large raster are skipped, as a careful caller would do.
 */
#include "cogpu.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { RASTER_BYTES_MAX = 2 << 20, LEVELS_MAX = 3, IMAGES_MAX = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void require(int holds) {
    if (!holds)
        abort();
}

struct input {
    const uint8_t *data;
    size_t bytes;
};

static cogpu_status input_read(void *user, uint64_t offset, size_t bytes, void *to, size_t *got) {
    const struct input *input = user;
    require(offset <= input->bytes && bytes <= input->bytes - offset);
    memcpy(to, input->data + offset, bytes);
    *got = bytes;
    return COGPU_OK;
}

static cogpu_status input_size(void *user, uint64_t *bytes) {
    *bytes = ((const struct input *)user)->bytes;
    return COGPU_OK;
}

/* A raster of its exact size for a request; its data is NULL where it would be too large. */
static cogpu_raster raster_for(const cogpu_image *image, const cogpu_request *request) {
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .type = request->content == COGPU_CONTENT_MASK ? COGPU_TYPE_U8
                                   : request->unscale                     ? COGPU_TYPE_F32
                                                                          : image->type,
                           .bands = request->bands ? request->band_count : image->bands,
                           .width = request->width,
                           .height = request->height};
    uint64_t row = (uint64_t)raster.width * raster.bands * cogpu_type_bytes(raster.type);
    if (row <= RASTER_BYTES_MAX && row * raster.height <= RASTER_BYTES_MAX)
        raster.data = calloc((size_t)(row * raster.height), 1);
    return raster;
}

static size_t bytes_of(const cogpu_raster *raster) {
    return (size_t)raster->width * raster->height * raster->bands * cogpu_type_bytes(raster->type);
}

static cogpu_status read_into(const cogpu_file *file, const cogpu_request *request,
                              cogpu_raster *raster) {
    cogpu_result result = COGPU_RESULT_INIT;
    cogpu_error error;
    cogpu_status status = cogpu_read(file, request, raster, &result, &error);
    require(status == error.status && (status == COGPU_OK) == (error.message[0] == '\0'));
    require(status != COGPU_INVALID_ARGUMENT && status != COGPU_NOT_FOUND);
    require(result.bad_blocks + result.sparse_blocks <= result.blocks ||
            request->content == COGPU_CONTENT_MASK);
    return status;
}

/* The window of `part` must have the pixels of the whole raster there. */
static void compare_window(const cogpu_raster *whole, const cogpu_raster *part, uint32_t x,
                           uint32_t y) {
    size_t size = cogpu_type_bytes(whole->type), row_bytes = part->width * size;
    for (uint32_t band = 0; band < part->bands; band++)
        for (uint32_t row = 0; row < part->height; row++) {
            size_t from = (((size_t)band * whole->height + y + row) * whole->width + x) * size;
            size_t to = ((size_t)band * part->height + row) * row_bytes;
            require(memcmp((uint8_t *)whole->data + from, (uint8_t *)part->data + to, row_bytes) ==
                    0);
        }
}

static void read_window(const cogpu_file *file, const cogpu_image *image, cogpu_request request,
                        const cogpu_raster *whole, uint8_t choice) {
    request.x = choice % request.width;
    request.y = choice / 3 % request.height;
    request.width = 1 + choice / 5 % (request.width - request.x);
    request.height = 1 + choice / 7 % (request.height - request.y);
    cogpu_raster part = raster_for(image, &request);
    if (part.data && read_into(file, &request, &part) == COGPU_OK)
        compare_window(whole, &part, request.x, request.y);
    free(part.data);
}

static void read_again(const cogpu_file *file, const cogpu_image *image, cogpu_request request,
                       const cogpu_raster *whole) {
    const cogpu_context_options options = {
        .struct_size = sizeof(cogpu_context_options), .threads = 2, .cache_bytes = 1 << 20};
    cogpu_context *context = NULL;
    if (cogpu_context_open(&options, &context, NULL) != COGPU_OK)
        return;
    request.context = context;
    cogpu_raster again = raster_for(image, &request);
    for (int i = 0; again.data && i < 2; i++) {
        require(read_into(file, &request, &again) == COGPU_OK);
        require(memcmp(again.data, whole->data, bytes_of(whole)) == 0);
    }
    free(again.data);
    cogpu_context_close(context);
}

static void read_floats(const cogpu_file *file, const cogpu_image *image, cogpu_request request,
                        uint8_t choice) {
    request.unscale = request.masked = 1;
    cogpu_raster whole = raster_for(image, &request);
    if (whole.data && read_into(file, &request, &whole) == COGPU_OK)
        read_window(file, image, request, &whole, choice);
    free(whole.data);
}

static void read_level(const cogpu_file *file, const cogpu_image *image, uint32_t image_index,
                       uint32_t level_index, uint8_t choice) {
    cogpu_level level = COGPU_LEVEL_INIT;
    require(cogpu_level_info(file, image_index, level_index, &level, NULL) == COGPU_OK);
    cogpu_request request = {.struct_size = sizeof(cogpu_request),
                             .image = image_index,
                             .level = level_index,
                             .width = level.width,
                             .height = level.height,
                             .threads = 1,
                             .fill_bad_blocks = choice & 1};
    cogpu_raster whole = raster_for(image, &request);
    if (whole.data && read_into(file, &request, &whole) == COGPU_OK) {
        read_window(file, image, request, &whole, choice);
        if (choice % 8 == 0)
            read_again(file, image, request, &whole);
    }
    free(whole.data);
    if (image->type < COGPU_TYPE_CI16 && choice % 4 < 2)
        read_floats(file, image, request, choice);
    request.content = COGPU_CONTENT_MASK;
    cogpu_raster mask = raster_for(image, &request);
    if (mask.data && read_into(file, &request, &mask) == COGPU_OK)
        for (size_t i = 0; i < bytes_of(&mask); i++)
            require(((uint8_t *)mask.data)[i] == 0 || ((uint8_t *)mask.data)[i] == 255);
    free(mask.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    const cogpu_limits limits = {.struct_size = sizeof(cogpu_limits),
                                 .directories = 16,
                                 .bands = 256,
                                 .blocks = 1 << 16,
                                 .block_bytes = 16 << 20,
                                 .working_memory_bytes = 64 << 20};
    const cogpu_open_options options = {.struct_size = sizeof(cogpu_open_options),
                                        .limits = &limits};
    struct input input = {data, bytes};
    const cogpu_source source = {.struct_size = sizeof(cogpu_source),
                                 .user = &input,
                                 .read = input_read,
                                 .size = input_size};
    cogpu_file *file = NULL;
    cogpu_image image = COGPU_IMAGE_INIT;
    /* Blocks are in the caller's memory, or read into scratch memory: both paths are run. */
    bool from_source = bytes > 0 && data[bytes - 1] & 2;
    if ((from_source ? cogpu_open_source(&source, &options, &file, NULL)
                     : cogpu_open_memory(data, bytes, &options, &file, NULL)) != COGPU_OK)
        return 0;
    for (uint32_t i = 0; i < IMAGES_MAX && cogpu_image_info(file, i, &image, NULL) == COGPU_OK; i++)
        for (uint32_t k = 0; k < image.levels && k < LEVELS_MAX; k++)
            read_level(file, &image, i, k, data[bytes - 1]);
    cogpu_close(file);
    return 0;
}
