/*
 * JPEG, encoded by nvJPEG: takes a batch of blocks as they were cut, hands on a JPEG of each in its
 * slot, with tables of its own. Colours, subsampling and quality are those of the host's encoder.
 *
 * nvJPEG takes one image at a time, and tells the host how long its stream is, who has to wait for
 * that. So there are lanes, each with a state of nvJPEG's and a stream of the device: while the
 * host waits for the oldest image, those of the other lanes are under way. When the call returns,
 * all are through.
 */
#include "backend/cuda/cuda_write.h"
#include "backend/cuda/nvjpeg_library.h"
#include "codec/codec.h"

enum { LANES = 8, PHOTOMETRIC_YCBCR = 6 };

struct lane {
    void *state; /* nvJPEG's */
    cogpu_gpu_stream *stream;
};

struct encoder {
    cogpu_gpu *gpu;
    const cogpu_nvjpeg_library *library;
    void *handle, *params; /* nvJPEG's */
    bool is_grey;
    struct lane lanes[LANES];
};

static cogpu_status explain(int result, const char *what, cogpu_error *error) {
    if (result == NVJPEG_SUCCESS)
        return COGPU_OK;
    return cogpu_fail(error, result == NVJPEG_NO_MEMORY ? COGPU_MEMORY : COGPU_DEVICE,
                      "nvJPEG failed %s: its error %d", what, result);
}

static cogpu_status enter(cogpu_gpu *gpu, cogpu_error *error) {
    return gpu->calls->enter(gpu) ? COGPU_OK
                                  : cogpu_fail(error, COGPU_DEVICE, "nvJPEG cannot get at the GPU");
}

/* ---- open and close ------------------------------------------------------------------------ */

/* One band, or RGB that becomes YCbCr as the tags say: 4:2:0. */
static bool is_taken(const cogpu_block_format *format) {
    if (format->photometric != PHOTOMETRIC_YCBCR)
        return format->bits == 8 && format->samples == 1;
    return format->bits == 8 && format->samples == 3 && format->subsampling_x == 2 &&
           format->subsampling_y == 2;
}

/* Of what nvJPEG failed to make it leaves nothing to be destroyed. */
static cogpu_status made(int result, void **object, cogpu_error *error) {
    if (result != NVJPEG_SUCCESS)
        *object = NULL;
    return explain(result, "to start", error);
}

static cogpu_status set_params(struct encoder *encoder, int quality, cogpu_error *error) {
    const cogpu_nvjpeg_library *library = encoder->library;
    cogpu_gpu_stream *stream = encoder->lanes[0].stream;
    int subsampling = encoder->is_grey ? NVJPEG_GREY : NVJPEG_420;
    TRY(made(library->params_create(encoder->handle, &encoder->params, stream), &encoder->params,
             error));
    TRY(explain(library->set_quality(encoder->params, quality, stream), "to set the quality",
                error));
    TRY(explain(library->set_subsampling(encoder->params, subsampling, stream),
                "to set the subsampling", error));
    return encoder->gpu->calls->finish_stream(encoder->gpu, stream, error);
}

static cogpu_status start(struct encoder *encoder, int quality, cogpu_error *error) {
    const cogpu_nvjpeg_library *library = encoder->library;
    cogpu_gpu *gpu = encoder->gpu;
    TRY(made(library->create(NVJPEG_USUAL, NULL, NULL, 0, &encoder->handle), &encoder->handle,
             error));
    for (uint32_t i = 0; i < LANES; i++) {
        struct lane *lane = &encoder->lanes[i];
        TRY(gpu->calls->stream_open(gpu, false, &lane->stream, error));
        TRY(made(library->encoder_create(encoder->handle, &lane->state, lane->stream), &lane->state,
                 error));
    }
    return set_params(encoder, quality, error);
}

static void destroy(const struct encoder *encoder) {
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
    struct encoder *encoder = kept;
    cogpu_gpu *gpu = encoder->gpu;
    if (gpu->calls->enter(gpu)) {
        destroy(encoder);
        gpu->calls->leave(gpu);
    }
    for (uint32_t i = 0; i < LANES; i++)
        gpu->calls->stream_close(gpu, encoder->lanes[i].stream);
    cogpu_release(encoder);
}

static cogpu_status jpeg_open(cogpu_gpu *gpu, const cogpu_encoding *encoding, void **kept,
                              cogpu_error *error) {
    const cogpu_nvjpeg_library *library = cogpu_nvjpeg_load();
    *kept = NULL;
    if (library->why || !cogpu_nvjpeg_knows(gpu) || !is_taken(&encoding->format))
        return cogpu_fail(error, COGPU_UNSUPPORTED, "JPEG of this kind is not for the device");
    struct encoder *encoder = cogpu_allocate(sizeof *encoder);
    if (!encoder)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for nvJPEG");
    *encoder =
        (struct encoder){.gpu = gpu, .library = library, .is_grey = encoding->format.samples == 1};
    cogpu_status status = enter(gpu, error);
    if (status == COGPU_OK) {
        status = start(encoder, encoding->quality, error);
        gpu->calls->leave(gpu);
    }
    if (status == COGPU_OK)
        *kept = encoder;
    else
        jpeg_close(encoder);
    return status;
}

/* ---- a batch ------------------------------------------------------------------------------- */

static void jpeg_scratch(const cogpu_uncoded *blocks, uint32_t count, int level, uint64_t *least,
                         uint64_t *best) {
    (void)blocks, (void)count, (void)level;
    *least = *best = 0;
}

static cogpu_status submit(const struct encoder *encoder, const struct lane *lane,
                           const cogpu_uncoded *block, const uint8_t *decoded, cogpu_error *error) {
    const cogpu_nvjpeg_library *library = encoder->library;
    /* nvJPEG's interface has one struct for what it reads and what it writes. */
    const struct nvjpeg_image image = {{(uint8_t *)(uintptr_t)decoded + block->in},
                                       {block->row_bytes}};
    const int width = (int)(block->row_bytes / (encoder->is_grey ? 1 : 3));
    const int height = (int)(block->in_bytes / block->row_bytes);
    int result = encoder->is_grey
                     ? library->encode_planes(encoder->handle, lane->state, encoder->params, &image,
                                              NVJPEG_GREY, width, height, lane->stream)
                     : library->encode_pixels(encoder->handle, lane->state, encoder->params, &image,
                                              NVJPEG_INPUT_RGB_PIXELS, width, height, lane->stream);
    return explain(result, "to encode a block", error);
}

/* The stream of the lane's block into its slot. */
static cogpu_status take(const struct encoder *encoder, const struct lane *lane,
                         const cogpu_uncoded *block, uint8_t *slots, uint32_t *size,
                         cogpu_error *error) {
    size_t bytes = block->room;
    TRY(encoder->gpu->calls->finish_stream(encoder->gpu, lane->stream, error));
    TRY(explain(encoder->library->take_stream(encoder->handle, lane->state, slots + block->out,
                                              &bytes, lane->stream),
                "to hand over a block", error));
    *size = (uint32_t)bytes;
    return COGPU_OK;
}

/* Each block takes the lane of the one that is LANES before it, when that has left it. */
static cogpu_status encode_blocks(const struct encoder *encoder, const cogpu_gpu_encoding *encoding,
                                  cogpu_error *error) {
    const cogpu_uncoded *blocks = encoding->blocks;
    uint32_t *sizes = encoding->host_sizes;
    for (uint32_t i = 0; i < encoding->count + LANES; i++) {
        const struct lane *lane = &encoder->lanes[i % LANES];
        const uint32_t before = i - LANES;
        if (i >= LANES && sizes[before] != COGPU_GPU_SPARSE)
            TRY(take(encoder, lane, &blocks[before], encoding->slots, &sizes[before], error));
        if (i < encoding->count && sizes[i] != COGPU_GPU_SPARSE)
            TRY(submit(encoder, lane, &blocks[i], encoding->decoded, error));
    }
    return COGPU_OK;
}

/* Waits until nothing is under way in any lane, whatever became of the blocks. */
static cogpu_status finish_lanes(const struct encoder *encoder, cogpu_status status,
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

/* Which blocks are left out the host has to know, too: so it waits until they are cut. */
static cogpu_status jpeg_encode(const cogpu_gpu_encoding *encoding, cogpu_error *error) {
    const struct encoder *encoder = encoding->kept;
    cogpu_gpu *gpu = encoding->gpu;
    const uint64_t bytes = encoding->count * sizeof *encoding->sizes;
    TRY(gpu->calls->copy_down(gpu, encoding->host_sizes, encoding->sizes, bytes, encoding->stream,
                              error));
    TRY(gpu->calls->finish_stream(gpu, encoding->stream, error));
    TRY(enter(gpu, error));
    cogpu_status status = encode_blocks(encoder, encoding, error);
    gpu->calls->leave(gpu);
    TRY(finish_lanes(encoder, status, error));
    return gpu->calls->copy_up(gpu, encoding->sizes, encoding->host_sizes, bytes, encoding->stream,
                               error);
}

/* Without a bound of its own: tables and squares are those of the host's streams, and the host's
 * bound has room for all that may stand before them. Where it were too little nvJPEG says so. */
const cogpu_gpu_encoder cogpu_gpu_jpeg_encoder = {
    .scratch = jpeg_scratch, .encode = jpeg_encode, .open = jpeg_open, .close = jpeg_close};
