/* Failures that the deflate codecs share, whichever library they use. */
#ifndef COGPU_CODEC_DEFLATE_ERRORS_H
#define COGPU_CODEC_DEFLATE_ERRORS_H

#include "base/status.h"

#include <limits.h>
#include <stddef.h>

/* `part` is "decoder" or "encoder". */
static inline cogpu_status deflate_out_of_memory(const char *part, cogpu_error *error) {
    return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for the deflate %s", part);
}

static inline cogpu_status deflate_is_corrupt(cogpu_error *error) {
    return cogpu_fail(error, COGPU_CORRUPT,
                      "the zlib stream is damaged, cut off, or fails its Adler-32");
}

/* zlib and ISA-L count in unsigned int: longer buffers are passed in portions. */
static inline unsigned deflate_portion(size_t bytes) {
    return bytes < UINT_MAX ? (unsigned)bytes : UINT_MAX;
}

#endif
