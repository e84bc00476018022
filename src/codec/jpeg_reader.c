/* Sets libjpeg up to decode rows from a feed of JPEG bytes (ITU-T T.81). */
#include "codec/jpeg_reader.h"

/* A scan costs a pass over the whole block, and a few bytes can start one. */
enum { SCANS_MAX = 100 };

/* Memory for an image in several scans, all of which libjpeg keeps. */
enum { HELD_BASE = 16 << 20, HELD_PER_BYTE = 1000 };

static void on_scan(j_common_ptr codec) {
    cogpu_jpeg_reader *d = codec->client_data;
    if (d->codec.input_scan_number > SCANS_MAX)
        cogpu_jpeg_fail(&d->errors, COGPU_CORRUPT, "more than 100 scans");
}

static void ignore_source(j_decompress_ptr codec) {
    (void)codec;
}

/* All of the buffer is consumed: gets the next bytes. */
static void refill_input(cogpu_jpeg_reader *d) {
    cogpu_feed *feed = d->feed;
    cogpu_feed_consume(feed, feed->bytes);
    if (cogpu_feed_fill(feed, 1)) {
        d->source.next_input_byte = feed->at;
        d->source.bytes_in_buffer = feed->bytes;
    }
}

/* Tag 347's tables are in memory, the block's bytes come from the feed. A stream may lack its EOI
 * marker, so the end of the bytes counts as one. A second call means that libjpeg took that marker
 * for data. */
static boolean fill_source(j_decompress_ptr codec) {
    static const JOCTET end_of_image[2] = {0xFF, JPEG_EOI};
    cogpu_jpeg_reader *d = codec->client_data;
    d->source.bytes_in_buffer = 0;
    if (d->feed && !d->ran_dry)
        refill_input(d);
    if (d->source.bytes_in_buffer > 0)
        return TRUE;
    if (d->ran_dry)
        cogpu_jpeg_fail(&d->errors, COGPU_CORRUPT, "it is cut off");
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
    d->errors.warnings_are_errors = true;
    d->errors.default_status = COGPU_CORRUPT;
    d->codec.err = cogpu_jpeg_error_manager(&d->errors);
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
        cogpu_jpeg_fail(&d->errors, COGPU_CORRUPT, text);
    }
    if ((uint32_t)codec->num_components != format->samples) {
        snprintf(text, sizeof text, "%d bands where the block has %u", codec->num_components,
                 format->samples);
        cogpu_jpeg_fail(&d->errors, COGPU_CORRUPT, text);
    }
    bool taller = codec->image_height > format->height;
    if (codec->image_width != format->width || codec->image_height < format->height ||
        (taller && jpeg_has_multiple_scans(&d->codec))) {
        snprintf(text, sizeof text, "%u x %u pixels where the block has %u x %u",
                 codec->image_width, codec->image_height, format->width, format->height);
        cogpu_jpeg_fail(&d->errors, COGPU_CORRUPT, text);
    }
    uint64_t held = (uint64_t)format->width * format->height * format->samples * sizeof(JCOEF);
    if (jpeg_has_multiple_scans(&d->codec) && held > HELD_BASE + stored * HELD_PER_BYTE)
        cogpu_jpeg_fail(&d->errors, COGPU_CORRUPT,
                        "so few bytes cannot be scans of so many pixels");
}
