/* Errors and warnings of libjpeg become a status and a reason. */
#include "codec/jpeg_errors.h"

#include <string.h>

#include <jerror.h>

void cogpu_jpeg_fail(cogpu_jpeg_errors *errors, cogpu_status status, const char *reason) {
    errors->status = status;
    snprintf(errors->reason, sizeof errors->reason, "%s", reason);
    longjmp(errors->escape, 1);
}

static cogpu_status status_of_code(const cogpu_jpeg_errors *errors, int code) {
    switch (code) {
    case JERR_OUT_OF_MEMORY:
        return COGPU_OUT_OF_MEMORY;
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
    case JERR_ARITH_NOTIMPL:
    case JERR_NOTIMPL:
        return COGPU_UNSUPPORTED;
    default:
        return errors->default_status;
    }
}

static _Noreturn void raise_jpeg_error(j_common_ptr codec) {
    cogpu_jpeg_errors *errors = (cogpu_jpeg_errors *)(void *)codec->err;
    char text[JMSG_LENGTH_MAX];
    int code = codec->err->msg_code;
    codec->err->format_message(codec, text);
    if (code == JERR_BAD_PRECISION || code == JERR_SOF_UNSUPPORTED) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used,
                 "; 12-bit and lossless JPEG need libjpeg-turbo 3, this build has %s",
                 cogpu_codec_find(COMPRESSION_JPEG)->library_version);
    }
    cogpu_jpeg_fail(errors, status_of_code(errors, code), text);
}

/* Negative levels are warnings. After all but these libjpeg goes on with invented pixels. */
static void on_message(j_common_ptr codec, int level) {
    const cogpu_jpeg_errors *errors = (const cogpu_jpeg_errors *)(const void *)codec->err;
    int code = codec->err->msg_code;
    bool is_harmless = code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR ||
                       code == JWRN_ADOBE_XFORM || code == JWRN_NOT_SEQUENTIAL;
    if (level < 0 && !is_harmless && errors->warnings_are_errors)
        raise_jpeg_error(codec);
}

static void ignore_jpeg_message(j_common_ptr codec) {
    (void)codec;
}

struct jpeg_error_mgr *cogpu_jpeg_error_manager(cogpu_jpeg_errors *errors) {
    struct jpeg_error_mgr *manager = jpeg_std_error(&errors->manager);
    manager->error_exit = raise_jpeg_error;
    manager->emit_message = on_message;
    manager->output_message = ignore_jpeg_message;
    return manager;
}
