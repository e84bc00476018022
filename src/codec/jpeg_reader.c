/*
 * Sets libjpeg up to decode rows from a feed of JPEG bytes.
 *
 * libjpeg goes on with invented pixels where the data is damaged; we do not.
 */
#include "codec/jpeg_reader.h"

#include <string.h>

#include <jerror.h>

/* A scan costs a walk over the whole block, and a few bytes can ask for one. */
enum { SCANS_MAX = 100 };

/* What the library may hold of a picture in several scans, which it decodes as a whole. */
enum { HELD_BASE = 16 << 20, HELD_PER_BYTE = 1000 };

void cogpu_jpeg_leave(cogpu_jpeg_reader *d, cogpu_status status, const char *reason) {
    d->status = status;
    snprintf(d->reason, sizeof d->reason, "%s", reason);
    longjmp(d->escape, 1);
}

static cogpu_status status_of(int code) {
    switch (code) {
    case JERR_OUT_OF_MEMORY:
        return COGPU_MEMORY;
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
    case JERR_ARITH_NOTIMPL:
    case JERR_NOTIMPL:
        return COGPU_UNSUPPORTED;
    default:
        return COGPU_CORRUPT;
    }
}

static _Noreturn void on_error(j_common_ptr codec) {
    char text[JMSG_LENGTH_MAX];
    codec->err->format_message(codec, text);
    int code = codec->err->msg_code;
    if (code == JERR_BAD_PRECISION || code == JERR_SOF_UNSUPPORTED) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used,
                 "; 12-bit and lossless JPEG need libjpeg-turbo 3, this build has %s",
                 cogpu_codec_library(cogpu_codec_find(COMPRESSION_JPEG)));
    }
    cogpu_jpeg_leave(codec->client_data, status_of(codec->err->msg_code), text);
}

/* The library's warnings. After all but these it makes pixels up. */
static void on_message(j_common_ptr codec, int level) {
    int code = codec->err->msg_code;
    bool harmless = code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR ||
                    code == JWRN_ADOBE_XFORM || code == JWRN_NOT_SEQUENTIAL;
    if (level < 0 && !harmless)
        on_error(codec);
}

static void ignore_message(j_common_ptr codec) {
    (void)codec;
}

static void on_scan(j_common_ptr codec) {
    cogpu_jpeg_reader *d = codec->client_data;
    if (d->codec.input_scan_number > SCANS_MAX)
        cogpu_jpeg_leave(d, COGPU_CORRUPT, "more than 100 scans");
}

static void ignore_source(j_decompress_ptr codec) {
    (void)codec;
}

/* What the library has taken, and what it finds next. */
static void refill(cogpu_jpeg_reader *d) {
    cogpu_feed *feed = d->feed;
    cogpu_feed_take(feed, feed->bytes);
    if (cogpu_feed_has(feed, 1)) {
        d->source.next_input_byte = feed->at;
        d->source.bytes_in_buffer = feed->bytes;
    }
}

/* The tables of tag 347 come in one piece, the block's bytes as the feed has them. A stream may
 * lack its end marker, so the end of the bytes counts as one. Who asks again has taken the marker
 * for data. */
static boolean fill_source(j_decompress_ptr codec) {
    static const JOCTET end_of_image[2] = {0xFF, JPEG_EOI};
    cogpu_jpeg_reader *d = codec->client_data;
    d->source.bytes_in_buffer = 0;
    if (d->feed && !d->ran_dry)
        refill(d);
    if (d->source.bytes_in_buffer > 0)
        return TRUE;
    if (d->ran_dry)
        cogpu_jpeg_leave(d, COGPU_CORRUPT, "it is cut off");
    d->ran_dry = true;
    codec->src->next_input_byte = end_of_image;
    codec->src->bytes_in_buffer = sizeof end_of_image;
    return TRUE;
}

static void skip_source(j_decompress_ptr codec, long bytes) {
    struct jpeg_source_mgr *source = codec->src;
    cogpu_jpeg_reader *d = codec->client_data;
    while (bytes > 0 && (size_t)bytes > source->bytes_in_buffer && !d->ran_dry) {
        bytes -= (long)source->bytes_in_buffer;
        fill_source(codec);
    }
    if (bytes <= 0 || (size_t)bytes > source->bytes_in_buffer || d->ran_dry)
        return;
    source->next_input_byte += bytes;
    source->bytes_in_buffer -= (size_t)bytes;
}

void cogpu_jpeg_source(cogpu_jpeg_reader *d, const uint8_t *in, size_t in_bytes) {
    d->source.next_input_byte = in;
    d->source.bytes_in_buffer = in_bytes;
    d->ran_dry = false;
}

void cogpu_jpeg_open(cogpu_jpeg_reader *d) {
    d->codec.err = jpeg_std_error(&d->errors);
    d->errors.error_exit = on_error;
    d->errors.emit_message = on_message;
    d->errors.output_message = ignore_message;
    d->codec.client_data = d;
    jpeg_create_decompress(&d->codec);
    d->source.init_source = ignore_source;
    d->source.fill_input_buffer = fill_source;
    d->source.skip_input_data = skip_source;
    d->source.resync_to_restart = jpeg_resync_to_restart;
    d->source.term_source = ignore_source;
    d->codec.src = &d->source;
    d->progress.progress_monitor = on_scan;
    d->codec.progress = &d->progress;
}

void cogpu_jpeg_check_header(cogpu_jpeg_reader *d, const cogpu_block_format *format,
                             uint64_t stored) {
    char text[JMSG_LENGTH_MAX];
    const struct jpeg_decompress_struct *codec = &d->codec;
    if ((uint32_t)codec->data_precision != format->bits) {
        snprintf(text, sizeof text, "samples of %d bits where the block has %u",
                 codec->data_precision, format->bits);
        cogpu_jpeg_leave(d, COGPU_CORRUPT, text);
    }
    if ((uint32_t)codec->num_components != format->samples) {
        snprintf(text, sizeof text, "%d bands where the block has %u", codec->num_components,
                 format->samples);
        cogpu_jpeg_leave(d, COGPU_CORRUPT, text);
    }
    bool taller = codec->image_height > format->height;
    if (codec->image_width != format->width || codec->image_height < format->height ||
        (taller && jpeg_has_multiple_scans(&d->codec))) {
        snprintf(text, sizeof text, "%u x %u pixels where the block has %u x %u",
                 codec->image_width, codec->image_height, format->width, format->height);
        cogpu_jpeg_leave(d, COGPU_CORRUPT, text);
    }
    uint64_t held = (uint64_t)format->width * format->height * format->samples * sizeof(JCOEF);
    if (jpeg_has_multiple_scans(&d->codec) && held > HELD_BASE + stored * HELD_PER_BYTE)
        cogpu_jpeg_leave(d, COGPU_CORRUPT, "so few bytes cannot be scans of so many pixels");
}
