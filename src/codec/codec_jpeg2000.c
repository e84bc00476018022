/*
 * JPEG 2000 decoder (compression 34712; 33003, 33004 and 33005 of Aperio scanners; ITU-T T.800) by
 * OpenJPEG: one codestream or JP2 file per block, up to 31 bits per sample.
 *
 * TIFF's tags say what the samples mean, so palettes and channel definitions of a JP2 file are
 * ignored. Subsampled components are repeated. jpeg2000_header.c checks headers before OpenJPEG
 * sees them. OpenJPEG uses no threads: blocks are decoded in parallel.
 */
#include "base/checked.h"
#include "codec/codec.h"
#include "codec/jpeg2000_header.h"
#include "codec/samples.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <openjpeg.h>

enum { BUFFER_BYTES = 64 << 10 };

/* The block's bytes as the library reads them, and the first thing that it complained of. */
typedef struct jpeg2000_decode {
    const uint8_t *in;
    size_t in_bytes, at;
    opj_codec_t *codec;
    opj_stream_t *stream;
    opj_image_t *image;
    bool is_damaged; /* it went on after a warning that pixels are missing */
    char reason[128];
} jpeg2000_decode;

static OPJ_SIZE_T on_read(void *to, OPJ_SIZE_T bytes, void *user) {
    jpeg2000_decode *d = user;
    size_t left = d->in_bytes - d->at;
    if (left == 0)
        return (OPJ_SIZE_T)-1;
    bytes = bytes < left ? bytes : left;
    memcpy(to, d->in + d->at, bytes);
    d->at += bytes;
    return bytes;
}

static OPJ_OFF_T on_skip(OPJ_OFF_T bytes, void *user) {
    jpeg2000_decode *d = user;
    if (bytes < 0 || (uint64_t)bytes > d->in_bytes - d->at)
        return -1;
    d->at += (size_t)bytes;
    return bytes;
}

static OPJ_BOOL on_seek(OPJ_OFF_T offset, void *user) {
    jpeg2000_decode *d = user;
    if (offset < 0 || (uint64_t)offset > d->in_bytes)
        return OPJ_FALSE;
    d->at = (size_t)offset;
    return OPJ_TRUE;
}

/* Keeps the first message, without the end of its line. */
static void keep_openjpeg_error(const char *text, void *user) {
    jpeg2000_decode *d = user;
    if (d->reason[0])
        return;
    snprintf(d->reason, sizeof d->reason, "%s", text);
    d->reason[strcspn(d->reason, "\r\n")] = '\0';
}

static void on_warning(const char *text, void *user) {
    ((jpeg2000_decode *)user)->is_damaged = true;
    keep_openjpeg_error(text, user);
}

static void ignore_openjpeg_message(const char *text, void *user) {
    (void)text;
    (void)user;
}

static bool open_openjpeg(jpeg2000_decode *d) {
    opj_dparameters_t parameters;
    d->codec = opj_create_decompress(OPJ_CODEC_J2K);
    d->stream = opj_stream_create(BUFFER_BYTES, OPJ_TRUE);
    if (!d->codec || !d->stream)
        return false;
    opj_set_info_handler(d->codec, ignore_openjpeg_message, NULL);
    opj_set_warning_handler(d->codec, on_warning, d);
    opj_set_error_handler(d->codec, keep_openjpeg_error, d);
    opj_stream_set_read_function(d->stream, on_read);
    opj_stream_set_skip_function(d->stream, on_skip);
    opj_stream_set_seek_function(d->stream, on_seek);
    opj_stream_set_user_data(d->stream, d, NULL);
    opj_stream_set_user_data_length(d->stream, d->in_bytes);
    opj_set_default_decoder_parameters(&parameters);
    return opj_setup_decoder(d->codec, &parameters);
}

/* OpenJPEG reports a lack of memory by a message in some functions, by errno alone in others. */
static cogpu_status fail_jpeg2000(const jpeg2000_decode *d, cogpu_error *error) {
    if (errno == ENOMEM || strstr(d->reason, "memory"))
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "JPEG 2000: out of memory for a block");
    return cogpu_fail(error, COGPU_CORRUPT, "JPEG 2000 stream: %s",
                      d->reason[0] ? d->reason : "damaged or cut off");
}

/* What the header said must be what came of it. */
static bool has_all_samples(const jpeg2000_decode *d, const cogpu_block_format *format) {
    const opj_image_t *image = d->image;
    if (image->numcomps != format->samples)
        return false;
    for (uint32_t i = 0; i < image->numcomps; i++) {
        const opj_image_comp_t *band = &image->comps[i];
        if (!band->data || band->dx == 0 || band->dy == 0 || band->w == 0 || band->h == 0 ||
            (band->dx == 1 && band->w < format->width) || band->prec > format->bits)
            return false;
    }
    return true;
}

/* The sample of each pixel along a side: the one at it or before it. */
static uint32_t sample_at(uint32_t origin, uint32_t pixel, uint32_t step, uint32_t count) {
    uint32_t first = (uint32_t)divide_up(origin, step), at = (origin + pixel) / step;
    at = at > first ? at - first : 0;
    return at < count ? at : count - 1;
}

static void place_row(const opj_image_t *image, const cogpu_block_format *format, uint32_t y,
                      uint8_t *row) {
    memset(row, 0, format->row_bytes);
    for (uint32_t i = 0; i < image->numcomps; i++) {
        const opj_image_comp_t *band = &image->comps[i];
        const OPJ_INT32 *from =
            band->data + (size_t)sample_at(image->y0, y, band->dy, band->h) * band->w;
        for (uint32_t x = 0; x < format->width; x++) {
            uint32_t at = band->dx == 1 ? x : sample_at(image->x0, x, band->dx, band->w);
            cogpu_put_sample(row, (size_t)x * image->numcomps + i, format->bits,
                             (uint32_t)from[at]);
        }
    }
}

static cogpu_status decode_image(jpeg2000_decode *d, const cogpu_block_format *format, uint8_t *out,
                                 cogpu_error *error) {
    errno = 0;
    if (!open_openjpeg(d) || !opj_read_header(d->stream, d->codec, &d->image))
        return fail_jpeg2000(d, error);
    d->is_damaged = false; /* warnings about headers do not matter, such as unknown markers */
    d->reason[0] = '\0';
    if (!opj_decode(d->codec, d->stream, d->image) || d->is_damaged)
        return fail_jpeg2000(d, error);
    if (!has_all_samples(d, format))
        return cogpu_fail(error, COGPU_CORRUPT,
                          "JPEG 2000 stream: some of its samples are missing");
    for (uint32_t y = 0; y < format->height; y++)
        place_row(d->image, format, y, out + y * format->row_bytes);
    return COGPU_OK;
}

cogpu_status cogpu_decode_jpeg2000(cogpu_codec_state *state, const cogpu_block_format *format,
                                   const uint8_t *in, size_t in_bytes, uint8_t *out,
                                   size_t out_bytes, size_t *got, cogpu_error *error) {
    (void)state;
    jpeg2000_decode d = {0};
    uint64_t bytes = 0;
    *got = 0;
    if (format->type == COGPU_TYPE_NONE || format->type >= COGPU_TYPE_U64)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "JPEG 2000 with samples of type %s: only integers to 32 bits are read",
                          cogpu_type_name(format->type));
    if (!checked_mul(format->row_bytes, format->height, &bytes) || bytes > out_bytes)
        return cogpu_fail(error, COGPU_CORRUPT, "JPEG 2000 stream: more pixels than the block has");
    TRY(cogpu_jpeg2000_find(in, in_bytes, &d.in, &d.in_bytes, error));
    TRY(cogpu_jpeg2000_check(format, d.in, d.in_bytes, error));
    cogpu_status status = decode_image(&d, format, out, error);
    opj_image_destroy(d.image);
    opj_destroy_codec(d.codec);
    opj_stream_destroy(d.stream);
    if (status == COGPU_OK)
        *got = (size_t)bytes;
    return status;
}
