/*
 * Errors of libjpeg, for decoding and encoding alike. libjpeg reports an error by a function that
 * must not return: ours keeps status and reason, and jumps to `escape`, which the caller has set.
 */
#ifndef COGPU_CODEC_JPEG_ERRORS_H
#define COGPU_CODEC_JPEG_ERRORS_H

#include "codec/codec.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

typedef struct cogpu_jpeg_errors {
    struct jpeg_error_mgr manager; /* first: libjpeg hands back a pointer to it */
    jmp_buf escape;
    bool warnings_are_errors;    /* libjpeg invents pixels after most warnings */
    cogpu_status default_status; /* of errors that are neither memory nor a missing feature */
    cogpu_status status;
    char reason[JMSG_LENGTH_MAX];
} cogpu_jpeg_errors;

/* What to give to a codec as `err` before it is created. The caller sets the two choices above. */
struct jpeg_error_mgr *cogpu_jpeg_error_manager(cogpu_jpeg_errors *errors);

_Noreturn void cogpu_jpeg_fail(cogpu_jpeg_errors *errors, cogpu_status status, const char *reason);

#endif
