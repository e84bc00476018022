/* Our own deflate encoder, for rasters of measured values. It never fails. */
#ifndef COGPU_CODEC_DEFLATE_ENCODE_H
#define COGPU_CODEC_DEFLATE_ENCODE_H

#include <stddef.h>
#include <stdint.h>

/* Size of its working memory, which the caller provides uninitialised: less than 512 KiB. */
extern const size_t cogpu_deflate_memory_bytes;

/* Upper bound of a stream's bytes. */
uint64_t cogpu_deflate_bound(uint64_t in_bytes);

/* Writes a deflate stream without zlib header; returns its bytes. `out` has the bound's capacity.
 */
size_t cogpu_deflate_encode(void *memory, const uint8_t *in, size_t in_bytes, uint8_t *out);

#endif
