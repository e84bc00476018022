/* Copies into rasters that are larger than the caches: see samples.h. */
#include "cpu/samples.h"
#include "cpu/vector.h"

#include <string.h>

bool cogpu_cpu_is_beyond_caches(const cogpu_raster *raster, size_t size) {
    enum { CACHE_BYTES = 64 << 20 };
    return HAVE_STREAMED_STORES &&
           (uint64_t)raster->width * raster->height * raster->bands > CACHE_BYTES / size;
}

#if HAVE_STREAMED_STORES
/* Cache lines that the bytes are a part of do not bypass the caches: the rest of them is written
 * soon, with the next block. */
static void stream_bytes(uint8_t *to, const uint8_t *from, size_t bytes) {
    enum { LINE = 64 };
    size_t at = -(uintptr_t)to % LINE;
    if (at > bytes)
        at = bytes;
    memcpy(to, from, at);
    for (; at + LINE <= bytes; at += LINE)
        for (size_t k = 0; k < LINE; k += VECTOR)
            store_or_stream(to + at + k, load_vector(from + at + k), true);
    memcpy(to + at, from + at, bytes - at);
}
#else
static void stream_bytes(uint8_t *to, const uint8_t *from, size_t bytes) {
    memcpy(to, from, bytes);
}
#endif

void cogpu_cpu_copy_bytes(uint8_t *to, const uint8_t *from, size_t bytes, bool streams) {
    if (streams)
        stream_bytes(to, from, bytes);
    else
        memcpy(to, from, bytes);
}

void cogpu_cpu_finish_copies(bool streams) {
#if HAVE_STREAMED_STORES
    if (streams)
        fence_streamed_stores();
#else
    (void)streams;
#endif
}
