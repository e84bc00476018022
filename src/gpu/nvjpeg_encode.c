/*
 * JPEG encoder of the GPU write pipeline, by nvJPEG. Each packed block of a batch becomes a JPEG
 * stream with its own tables, at the block's output. Colours, subsampling and quality are those of
 * the CPU encoder.
 *
 * nvJPEG encodes one image a call, and its host function returns the size, so the host must wait.
 * To overlap, there are several lanes, each with an nvJPEG state and a CUDA stream: block i uses
 * lane i modulo LANES, and the host waits for the oldest block while the others encode.
 */
#include "codec/codec.h"
#include "gpu/driver/nvjpeg_library.h"
#include "kernels/encoder.h"

enum { LANES = 8, PHOTOMETRIC_YCBCR = 6 };

struct lane {
    void *state; /* nvJPEG's */
    cogpu_gpu_stream *stream;
};

struct nvjpeg_encoder {
    cogpu_gpu *gpu;
    const cogpu_nvjpeg_library *library;
    void *handle, *params; /* nvJPEG's */
    bool is_grey;
    struct lane lanes[LANES];
};

static cogpu_status check_result(int result, const char *what, cogpu_error *error) {
    if (result == NVJPEG_SUCCESS)
        return COGPU_OK;
    return cogpu_fail(error, result == NVJPEG_NO_MEMORY ? COGPU_OUT_OF_MEMORY : COGPU_DEVICE_ERROR,
                      "nvJPEG failed %s (error %d)", what, result);
}

static cogpu_status make_context_current(cogpu_gpu *gpu, cogpu_error *error) {
    return gpu->calls->make_current(gpu)
               ? COGPU_OK
               : cogpu_fail(error, COGPU_DEVICE_ERROR, "nvJPEG cannot use the context of the GPU");
}

/* ---- open and close ------------------------------------------------------------------------ */

/* One band, or RGB that is stored as YCbCr 4:2:0. */
static bool is_supported(const cogpu_block_format *format) {
    if (format->photometric != PHOTOMETRIC_YCBCR)
        return format->bits == 8 && format->samples == 1;
    return format->bits == 8 && format->samples == 3 && format->subsampling_x == 2 &&
           format->subsampling_y == 2;
}

/* An object that nvJPEG failed to create must not be destroyed. */
static cogpu_status check_created(int result, void **object, cogpu_error *error) {
    if (result != NVJPEG_SUCCESS)
        *object = NULL;
    return check_result(result, "to start", error);
}

static cogpu_status set_params(struct nvjpeg_encoder *encoder, int quality, cogpu_error *error) {
    const cogpu_nvjpeg_library *library = encoder->library;
    cogpu_gpu_stream *stream = encoder->lanes[0].stream;
    int subsampling = encoder->is_grey ? NVJPEG_GREY : NVJPEG_420;
    TRY(check_created(library->params_create(encoder->handle, &encoder->params, stream),
                      &encoder->params, error));
    TRY(check_result(library->set_quality(encoder->params, quality, stream), "to set the quality",
                     error));
    TRY(check_result(library->set_subsampling(encoder->params, subsampling, stream),
                     "to set the subsampling", error));
    return encoder->gpu->calls->finish_stream(encoder->gpu, stream, error);
}

static cogpu_status create_objects(struct nvjpeg_encoder *encoder, int quality,
                                   cogpu_error *error) {
    const cogpu_nvjpeg_library *library = encoder->library;
    cogpu_gpu *gpu = encoder->gpu;
    TRY(check_created(library->create(NVJPEG_USUAL, NULL, NULL, 0, &encoder->handle),
                      &encoder->handle, error));
    for (uint32_t i = 0; i < LANES; i++) {
        struct lane *lane = &encoder->lanes[i];
        TRY(gpu->calls->stream_open(gpu, false, &lane->stream, error));
        TRY(check_created(library->encoder_create(encoder->handle, &lane->state, lane->stream),
                          &lane->state, error));
    }
    return set_params(encoder, quality, error);
}

static void destroy_objects(const struct nvjpeg_encoder *encoder) {
    const cogpu_nvjpeg_library *library = encoder->library;
    for (uint32_t i = 0; i < LANES; i++)
        if (encoder->lanes[i].state)
            library->encoder_destroy(encoder->lanes[i].state);
    if (encoder->params)
        library->params_destroy(encoder->params);
    if (encoder->handle)
        library->destroy(encoder->handle);
}

static void jpeg_close(void *kept) {
    struct nvjpeg_encoder *encoder = kept;
    cogpu_gpu *gpu = encoder->gpu;
    if (gpu->calls->make_current(gpu)) {
        destroy_objects(encoder);
        gpu->calls->restore_current(gpu);
    }
    for (uint32_t i = 0; i < LANES; i++)
        gpu->calls->stream_close(gpu, encoder->lanes[i].stream);
    cogpu_release(encoder);
}

static cogpu_status jpeg_open(cogpu_gpu *gpu, const cogpu_encoding *encoding, void **kept,
                              cogpu_error *error) {
    const cogpu_nvjpeg_library *library = cogpu_nvjpeg_load();
    *kept = NULL;
    if (library->why || !cogpu_nvjpeg_supports(gpu) || !is_supported(&encoding->format))
        return cogpu_fail(error, COGPU_UNSUPPORTED, "nvJPEG cannot encode blocks of this format");
    struct nvjpeg_encoder *encoder = cogpu_allocate(sizeof *encoder);
    if (!encoder)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for nvJPEG");
    *encoder = (struct nvjpeg_encoder){
        .gpu = gpu, .library = library, .is_grey = encoding->format.samples == 1};
    cogpu_status status = make_context_current(gpu, error);
    if (status == COGPU_OK) {
        status = create_objects(encoder, encoding->quality, error);
        gpu->calls->restore_current(gpu);
    }
    if (status == COGPU_OK)
        *kept = encoder;
    else
        jpeg_close(encoder);
    return status;
}

/* ---- a batch ------------------------------------------------------------------------------- */

static void jpeg_scratch(const cogpu_raw_block *blocks, uint32_t count, int level, uint64_t *least,
                         uint64_t *best) {
    (void)blocks, (void)count, (void)level;
    *least = *best = 0;
}

static cogpu_status submit_block(const struct nvjpeg_encoder *encoder, const struct lane *lane,
                                 const cogpu_raw_block *block, const uint8_t *decoded,
                                 cogpu_error *error) {
    const cogpu_nvjpeg_library *library = encoder->library;
    /* The interface of nvJPEG uses one struct, without const, for input and output images. */
    const struct nvjpeg_image image = {{(uint8_t *)(uintptr_t)decoded + block->in},
                                       {block->row_bytes}};
    const int width = (int)(block->row_bytes / (encoder->is_grey ? 1 : 3));
    const int height = (int)(block->in_bytes / block->row_bytes);
    int result = encoder->is_grey
                     ? library->encode_planes(encoder->handle, lane->state, encoder->params, &image,
                                              NVJPEG_GREY, width, height, lane->stream)
                     : library->encode_pixels(encoder->handle, lane->state, encoder->params, &image,
                                              NVJPEG_INPUT_RGB_PIXELS, width, height, lane->stream);
    return check_result(result, "to encode a block", error);
}

/* Waits for the block of the lane, and copies its JPEG stream to its output. */
static cogpu_status retrieve_block(const struct nvjpeg_encoder *encoder, const struct lane *lane,
                                   const cogpu_raw_block *block, uint8_t *slots, uint32_t *size,
                                   cogpu_error *error) {
    size_t bytes = block->capacity;
    TRY(encoder->gpu->calls->finish_stream(encoder->gpu, lane->stream, error));
    TRY(check_result(encoder->library->retrieve_stream(encoder->handle, lane->state,
                                                       slots + block->out, &bytes, lane->stream),
                     "to return an encoded block", error));
    *size = (uint32_t)bytes;
    return COGPU_OK;
}

/* A block enters its lane once the block LANES before it was retrieved. */
static cogpu_status encode_blocks(const struct nvjpeg_encoder *encoder,
                                  const cogpu_gpu_encoding *encoding, cogpu_error *error) {
    const cogpu_raw_block *blocks = encoding->blocks;
    uint32_t *sizes = encoding->host_sizes;
    for (uint32_t i = 0; i < encoding->count + LANES; i++) {
        const struct lane *lane = &encoder->lanes[i % LANES];
        const uint32_t before = i - LANES;
        if (i >= LANES && sizes[before] != COGPU_GPU_SPARSE)
            TRY(retrieve_block(encoder, lane, &blocks[before], encoding->slots, &sizes[before],
                               error));
        if (i < encoding->count && sizes[i] != COGPU_GPU_SPARSE)
            TRY(submit_block(encoder, lane, &blocks[i], encoding->decoded, error));
    }
    return COGPU_OK;
}

/* Waits for all lanes, after a failure as well. */
static cogpu_status finish_lanes(const struct nvjpeg_encoder *encoder, cogpu_status status,
                                 cogpu_error *error) {
    cogpu_gpu *gpu = encoder->gpu;
    for (uint32_t i = 0; i < LANES; i++) {
        cogpu_gpu_stream *stream = encoder->lanes[i].stream;
        if (status == COGPU_OK)
            status = gpu->calls->finish_stream(gpu, stream, error);
        else
            (void)gpu->calls->finish_stream(gpu, stream, NULL);
    }
    return status;
}

/* The host must know which blocks are sparse: it waits until all are packed. */
static cogpu_status jpeg_encode(const cogpu_gpu_encoding *encoding, cogpu_error *error) {
    const struct nvjpeg_encoder *encoder = encoding->kept;
    cogpu_gpu *gpu = encoding->gpu;
    const uint64_t bytes = encoding->count * sizeof *encoding->sizes;
    TRY(gpu->calls->copy_down(gpu, encoding->host_sizes, encoding->sizes, bytes, encoding->stream,
                              error));
    TRY(gpu->calls->finish_stream(gpu, encoding->stream, error));
    TRY(make_context_current(gpu, error));
    cogpu_status status = encode_blocks(encoder, encoding, error);
    gpu->calls->restore_current(gpu);
    TRY(finish_lanes(encoder, status, error));
    return gpu->calls->copy_up(gpu, encoding->sizes, encoding->host_sizes, bytes, encoding->stream,
                               error);
}

/* No bound: streams have the tables and blocks of the CPU encoder, whose bound has space for any
 * header. nvJPEG reports an error if an output is too small. */
const cogpu_gpu_encoder cogpu_gpu_jpeg_encoder = {
    .scratch = jpeg_scratch, .encode = jpeg_encode, .open = jpeg_open, .close = jpeg_close};
