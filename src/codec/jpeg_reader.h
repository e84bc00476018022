/*
 * libjpeg as codec_jpeg.c and codec_jpeg_old.c use it: it reads from a feed, and fails (see
 * jpeg_errors.h) if a stream is damaged, instead of inventing pixels.
 */
#ifndef COGPU_CODEC_JPEG_READER_H
#define COGPU_CODEC_JPEG_READER_H

#include "codec/jpeg_errors.h"

/* Zeroed at the start. */
typedef struct cogpu_jpeg_reader {
    struct jpeg_decompress_struct codec;
    cogpu_jpeg_errors errors; /* the caller sets its `escape` before each call below */
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    cogpu_feed *feed; /* where the block's bytes come from; NULL where the source has them all */
    bool ran_dry;     /* libjpeg needed bytes after the last */
    bool is_started;  /* rows can be read */
    uint16_t *wide;   /* a row of samples of more than 8 bits */
} cogpu_jpeg_reader;

void cogpu_jpeg_open(cogpu_jpeg_reader *reader);
/* The bytes that come next, before those of the feed. */
void cogpu_jpeg_source(cogpu_jpeg_reader *reader, const uint8_t *in, size_t in_bytes);

/* Fails if the header contradicts the block, before memory is allocated for its pixels. In some
 * files the last strip is as tall as the others though the image ends before; its rows below the
 * image are not read. With several scans libjpeg would keep them all, so then the stream must not
 * be taller. `stored` is the number of encoded bytes of the block. */
void cogpu_jpeg_check_header(cogpu_jpeg_reader *reader, const cogpu_block_format *format,
                             uint64_t stored);

#endif
