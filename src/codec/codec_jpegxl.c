/*
 * JPEG XL decoder (compression 50002, GDAL's first number, and 52546, DNG's; ISO/IEC 18181) by
 * libjxl: one still image per block, of 8 or 16 bits, float16 or float32.
 *
 * Bands are the colours of the image, then its extra channels. libjxl interleaves alpha with the
 * colours if it can; this file interleaves each other extra channel. Size, channels and depth of
 * the image are compared with the block before a pixel is decoded. libjxl uses no threads: blocks
 * are decoded in parallel.
 */
#include "base/checked.h"
#include "codec/codec.h"
#include "codec/jpegxl_frame.h"

#include <string.h>

#include <jxl/decode.h>

/* libjxl 0.11 and later allocate all memory by the memory manager, which has a limit here. Earlier
 * ones end the process if memory runs out: a block is decoded only if there is as much as it may
 * need. */
#define TAKES_ALL_BY_MANAGER (JPEGXL_NUMERIC_VERSION >= JPEGXL_COMPUTE_NUMERIC_VERSION(0, 11, 0))

/* Memory of the library: planes of floats, and more where frames refer to each other. */
enum { HELD_BASE = 64 << 20, HELD_PER_SAMPLE = 48, NEEDED_BASE = 16 << 20, NEEDED_PER_SAMPLE = 16 };

/* A size before each allocation, which keeps its alignment. */
enum { HEAD_BYTES = 64 };

/* What the library may hold, and why it did not get more. */
typedef struct account {
    uint64_t held, limit;
    bool is_out, is_over; /* of memory; of the limit */
} account;

typedef struct jpegxl_decode {
    JxlDecoder *decoder;
    account memory;
    const cogpu_block_format *format;
    const uint8_t *in;
    size_t in_bytes;
    JxlBasicInfo info;
    JxlPixelFormat pixels; /* of what comes interleaved */
    uint8_t *out, *work;
    size_t sample_bytes, pixel_count;
} jpegxl_decode;

static void *on_allocate(void *user, size_t bytes) {
    account *memory = user;
    uint64_t held;
    if (!checked_add(memory->held, (uint64_t)bytes + HEAD_BYTES, &held) || held > memory->limit) {
        memory->is_over = true;
        return NULL;
    }
    uint8_t *head = cogpu_allocate(bytes + HEAD_BYTES);
    if (!head) {
        memory->is_out = true;
        return NULL;
    }
    memory->held = held;
    memcpy(head, &bytes, sizeof bytes);
    return head + HEAD_BYTES;
}

static void on_release(void *user, void *address) {
    account *memory = user;
    size_t bytes;
    if (!address)
        return;
    uint8_t *head = (uint8_t *)address - HEAD_BYTES;
    memcpy(&bytes, head, sizeof bytes);
    memory->held -= (uint64_t)bytes + HEAD_BYTES;
    cogpu_release(head);
}

static cogpu_status out_of_memory(cogpu_error *error) {
    return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "JPEG XL: out of memory for a block");
}

static cogpu_status fail_jpegxl(const jpegxl_decode *d, const char *reason, cogpu_error *error) {
    if (d->memory.is_out)
        return out_of_memory(error);
    return cogpu_fail(error, COGPU_CORRUPT, "JPEG XL stream: %s",
                      d->memory.is_over ? "it takes far more memory than its pixels" : reason);
}

/* Sets the type of the samples; false for a block that JPEG XL cannot hold. */
static bool choose_type(const cogpu_block_format *format, JxlPixelFormat *pixels) {
    *pixels = (JxlPixelFormat){.endianness = JXL_NATIVE_ENDIAN};
    switch (format->type) {
    case COGPU_TYPE_U8:
        pixels->data_type = JXL_TYPE_UINT8;
        return format->bits == 8;
    case COGPU_TYPE_U16:
        pixels->data_type = JXL_TYPE_UINT16;
        return format->bits == 16;
    case COGPU_TYPE_F16:
        pixels->data_type = JXL_TYPE_FLOAT16;
        return format->bits == 16;
    case COGPU_TYPE_F32:
        pixels->data_type = JXL_TYPE_FLOAT;
        return format->bits == 32;
    default:
        return false;
    }
}

/* Bits of the exponent, which only floats have. */
static uint32_t exponent_of(cogpu_type type) {
    return type == COGPU_TYPE_F16 ? 5 : type == COGPU_TYPE_F32 ? 8 : 0;
}

static cogpu_status check_depth(const cogpu_block_format *format, uint32_t bits, uint32_t exponent,
                                cogpu_error *error) {
    if (bits == format->bits && exponent == exponent_of(format->type))
        return COGPU_OK;
    return cogpu_fail(error, COGPU_CORRUPT,
                      "JPEG XL stream: %s of %u bits where the block has samples of type %s",
                      exponent ? "floats" : "integers", bits, cogpu_type_name(format->type));
}

/* Sets how many channels come interleaved: GDAL's rule. */
static cogpu_status check_info(jpegxl_decode *d, cogpu_error *error) {
    const cogpu_block_format *format = d->format;
    const JxlBasicInfo *info = &d->info;
    if (info->xsize != format->width || info->ysize != format->height)
        return cogpu_fail(error, COGPU_CORRUPT,
                          "JPEG XL stream: %u x %u pixels where the block has %u x %u", info->xsize,
                          info->ysize, format->width, format->height);
    if (info->have_animation)
        return cogpu_fail(error, COGPU_CORRUPT, "JPEG XL stream: an animation, not a picture");
    if ((uint64_t)info->num_color_channels + info->num_extra_channels != format->samples)
        return cogpu_fail(error, COGPU_CORRUPT,
                          "JPEG XL stream: %u colours and %u other channels where the block has %u "
                          "bands",
                          info->num_color_channels, info->num_extra_channels, format->samples);
    TRY(check_depth(format, info->bits_per_sample, info->exponent_bits_per_sample, error));
    JxlExtraChannelInfo first = {0};
    for (uint32_t i = 0; i < info->num_extra_channels; i++) {
        JxlExtraChannelInfo extra;
        if (JxlDecoderGetExtraChannelInfo(d->decoder, i, &extra) != JXL_DEC_SUCCESS)
            return fail_jpegxl(d, "its channels cannot be read", error);
        TRY(check_depth(format, extra.bits_per_sample, extra.exponent_bits_per_sample, error));
        if (i == 0)
            first = extra;
    }
    bool with_alpha = info->alpha_bits > 0 && info->num_extra_channels > 0 &&
                      first.type == JXL_CHANNEL_ALPHA &&
                      (info->num_extra_channels == 1 || info->num_color_channels == 3);
    d->pixels.num_channels = info->num_color_channels + with_alpha;
    return COGPU_OK;
}

/* At the first frame: libraries whose memory has no limit must not see frames larger than the
 * picture. */
static cogpu_status check_frames(const jpegxl_decode *d, size_t left, cogpu_error *error) {
    const cogpu_jpegxl_image image = {d->info.xsize, d->info.ysize, d->info.num_extra_channels,
                                      !d->info.uses_original_profile};
    if (TAKES_ALL_BY_MANAGER)
        return COGPU_OK;
    if (!d->info.have_preview && left <= d->in_bytes &&
        cogpu_jpegxl_is_bounded(d->in + d->in_bytes - left, left, &image))
        return COGPU_OK;
    return cogpu_fail(
        error, COGPU_UNSUPPORTED,
        "JPEG XL stream of several layers: needs libjxl 0.11 or later, this build has "
        "%d.%d",
        JPEGXL_MAJOR_VERSION, JPEGXL_MINOR_VERSION);
}

static cogpu_status check_memory(const jpegxl_decode *d, cogpu_error *error) {
    uint64_t bytes =
        NEEDED_BASE + (uint64_t)d->pixel_count * d->format->samples * NEEDED_PER_SAMPLE;
    if (TAKES_ALL_BY_MANAGER)
        return COGPU_OK;
    void *probe = cogpu_map((size_t)bytes);
    if (!probe)
        return out_of_memory(error);
    cogpu_unmap(probe, (size_t)bytes);
    return COGPU_OK;
}

/* Where pixels go: into the block, or one after the other into working memory. */
static cogpu_status set_outputs(jpegxl_decode *d, cogpu_error *error) {
    uint32_t together = d->pixels.num_channels, samples = d->format->samples;
    size_t plane = d->pixel_count * d->sample_bytes;
    uint8_t *to = together == samples ? d->out : d->work;
    JxlDecoderStatus status =
        JxlDecoderSetImageOutBuffer(d->decoder, &d->pixels, to, plane * together);
    JxlPixelFormat single = d->pixels;
    single.num_channels = 1;
    uint32_t first = together - d->info.num_color_channels;
    for (uint32_t i = together; i < samples && status == JXL_DEC_SUCCESS; i++)
        status = JxlDecoderSetExtraChannelBuffer(d->decoder, &single, to + plane * i, plane,
                                                 first + i - together);
    return status == JXL_DEC_SUCCESS ? COGPU_OK
                                     : fail_jpegxl(d, "its channels cannot be read", error);
}

/* Interleaves what came in planes: `from` holds `count` samples a pixel. */
static void scatter_plane(const jpegxl_decode *d, const uint8_t *from, uint32_t count,
                          uint32_t band) {
    size_t bytes = count * d->sample_bytes, step = d->format->samples * d->sample_bytes;
    uint8_t *to = d->out + band * d->sample_bytes;
    for (size_t i = 0; i < d->pixel_count; i++)
        memcpy(to + i * step, from + i * bytes, bytes);
}

static void interleave_channels(const jpegxl_decode *d) {
    uint32_t together = d->pixels.num_channels, samples = d->format->samples;
    if (together == samples)
        return;
    scatter_plane(d, d->work, together, 0);
    for (uint32_t i = together; i < samples; i++)
        scatter_plane(d, d->work + d->pixel_count * d->sample_bytes * i, 1, i);
}

static cogpu_status start_frame(jpegxl_decode *d, cogpu_error *error) {
    size_t left = JxlDecoderReleaseInput(d->decoder);
    TRY(check_frames(d, left, error));
    TRY(check_memory(d, error));
    if (left > d->in_bytes ||
        JxlDecoderSetInput(d->decoder, d->in + d->in_bytes - left, left) != JXL_DEC_SUCCESS)
        return fail_jpegxl(d, "it cannot be read on", error);
    JxlDecoderCloseInput(d->decoder);
    return COGPU_OK;
}

static cogpu_status decode_frame(jpegxl_decode *d, cogpu_error *error) {
    for (;;) {
        switch (JxlDecoderProcessInput(d->decoder)) {
        case JXL_DEC_BASIC_INFO:
            if (JxlDecoderGetBasicInfo(d->decoder, &d->info) != JXL_DEC_SUCCESS)
                return fail_jpegxl(d, "its header cannot be read", error);
            TRY(check_info(d, error));
            break;
        case JXL_DEC_COLOR_ENCODING:
            TRY(start_frame(d, error));
            break;
        case JXL_DEC_NEED_IMAGE_OUT_BUFFER:
            TRY(set_outputs(d, error));
            break;
        case JXL_DEC_FULL_IMAGE:
            interleave_channels(d);
            return COGPU_OK;
        case JXL_DEC_NEED_MORE_INPUT:
            return fail_jpegxl(d, "it is cut off", error);
        default:
            return fail_jpegxl(d, "damaged", error);
        }
    }
}

static cogpu_status open_jpegxl_decoder(jpegxl_decode *d, cogpu_error *error) {
    const JxlMemoryManager manager = {&d->memory, on_allocate, on_release};
    d->decoder = JxlDecoderCreate(&manager);
    if (!d->decoder)
        return out_of_memory(error);
    const int events = JXL_DEC_BASIC_INFO | JXL_DEC_COLOR_ENCODING | JXL_DEC_FULL_IMAGE;
    if (JxlDecoderSubscribeEvents(d->decoder, events) != JXL_DEC_SUCCESS ||
        JxlDecoderSetKeepOrientation(d->decoder, JXL_TRUE) != JXL_DEC_SUCCESS ||
        JxlDecoderSetRenderSpotcolors(d->decoder, JXL_FALSE) != JXL_DEC_SUCCESS ||
        JxlDecoderSetInput(d->decoder, d->in, d->in_bytes) != JXL_DEC_SUCCESS)
        return fail_jpegxl(d, "the decoder does not take it", error);
    return COGPU_OK;
}

cogpu_status cogpu_decode_jpegxl(cogpu_codec_state *state, const cogpu_block_format *format,
                                 const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                                 size_t *got, cogpu_error *error) {
    jpegxl_decode d = {.format = format, .in = in, .in_bytes = in_bytes, .out = out};
    uint64_t pixels = (uint64_t)format->width * format->height, bytes = 0;
    *got = 0;
    if (!choose_type(format, &d.pixels))
        return cogpu_fail(
            error, COGPU_UNSUPPORTED,
            "JPEG XL with samples of type %s and %u bits: only uint8, uint16, float16 "
            "and float32 are read",
            cogpu_type_name(format->type), format->bits);
    d.sample_bytes = cogpu_type_bytes(format->type);
    if (!checked_mul(pixels, (uint64_t)format->samples * d.sample_bytes, &bytes) ||
        bytes > out_bytes)
        return cogpu_fail(error, COGPU_CORRUPT, "JPEG XL stream: more pixels than the block has");
    d.pixel_count = (size_t)pixels;
    d.memory.limit = HELD_BASE + bytes / d.sample_bytes * HELD_PER_SAMPLE;
    if (format->samples > 1 && !(d.work = cogpu_codec_work(state, (size_t)bytes)))
        return out_of_memory(error);
    cogpu_status status = open_jpegxl_decoder(&d, error);
    if (status == COGPU_OK)
        status = decode_frame(&d, error);
    if (d.decoder)
        JxlDecoderDestroy(d.decoder);
    if (status == COGPU_OK)
        *got = (size_t)bytes;
    return status;
}
