/* What decoding (codec_inflate_zlib.c) and encoding (codec_deflate_zlib.c) by zlib share. */
#ifndef COGPU_CODEC_ZLIB_MEMORY_H
#define COGPU_CODEC_ZLIB_MEMORY_H

#define ZLIB_CONST /* zlib.h: the input is const */
#include "base/memory.h"

#include <limits.h>
#include <zlib.h>

static inline void *zlib_allocate(void *user, unsigned count, unsigned size) {
    (void)user;
    return cogpu_allocate((size_t)count * size);
}

static inline void zlib_release(void *user, void *memory) {
    (void)user;
    cogpu_release(memory);
}

/* zlib counts in unsigned int: of more, a part at a time. */
static inline unsigned zlib_portion(size_t bytes) {
    return bytes < UINT_MAX ? (unsigned)bytes : UINT_MAX;
}

#endif
