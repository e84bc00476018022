/* zlib's memory functions, for codec_inflate_zlib.c and codec_deflate_zlib.c. */
#ifndef COGPU_CODEC_ZLIB_MEMORY_H
#define COGPU_CODEC_ZLIB_MEMORY_H

#define ZLIB_CONST /* zlib.h: the input is const */
#include "base/memory.h"
#include "codec/deflate_errors.h"

#include <zlib.h>

static inline void *zlib_allocate(void *user, unsigned count, unsigned size) {
    (void)user;
    return cogpu_allocate((size_t)count * size);
}

static inline void zlib_release(void *user, void *memory) {
    (void)user;
    cogpu_release(memory);
}

#endif
