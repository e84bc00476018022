/*
 * libjpeg as the JPEG codecs use it: it leaves by longjmp where a stream is damaged, takes its
 * bytes from a feed, and never goes on with invented pixels. For codec_jpeg.c and codec_jpeg_old.c.
 */
#ifndef COGPU_CODEC_JPEG_READER_H
#define COGPU_CODEC_JPEG_READER_H

#include "codec/codec.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

/* Zeroed at the start. */
typedef struct cogpu_jpeg_reader {
    struct jpeg_decompress_struct codec;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf escape;   /* set by the caller before each call below */
    cogpu_feed *feed; /* where the block's bytes come from; NULL where the source has them all */
    bool ran_dry;     /* the library asked for bytes after the last */
    bool is_started;  /* rows can be read */
    uint16_t *wide;   /* a row of samples of more than 8 bits */
    cogpu_status status;
    char reason[JMSG_LENGTH_MAX];
} cogpu_jpeg_reader;

void cogpu_jpeg_open(cogpu_jpeg_reader *reader);
/* The bytes that come next, before those of the feed. */
void cogpu_jpeg_source(cogpu_jpeg_reader *reader, const uint8_t *in, size_t in_bytes);
_Noreturn void cogpu_jpeg_leave(cogpu_jpeg_reader *reader, cogpu_status status, const char *reason);

/* Leaves where the header contradicts the block, before memory is taken for its pixels. The last
 * strip of some files is as tall as the others though the image ends before; its rows below the
 * image are not read. With several scans the library would hold them all, so there a stream must
 * not be taller. `stored` is the number of bytes that the block has. */
void cogpu_jpeg_check_header(cogpu_jpeg_reader *reader, const cogpu_block_format *format,
                             uint64_t stored);

#endif
