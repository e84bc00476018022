/* Our own encoder of deflate, for rasters of measured values. It never fails. */
#ifndef COGPU_CODEC_DEFLATE_ENCODE_H
#define COGPU_CODEC_DEFLATE_ENCODE_H

#include <stddef.h>
#include <stdint.h>

/* What it keeps while it encodes: less than half a mebibyte, of the caller, with anything in it. */
extern const size_t cogpu_deflate_memory_bytes;

/* Bytes that a stream may take, at most. */
uint64_t cogpu_deflate_bound(uint64_t in_bytes);

/* Makes a deflate stream without a wrapper; returns its bytes. `out` has room for those that the
 * bound says. */
size_t cogpu_deflate_encode(void *memory, const uint8_t *in, size_t in_bytes, uint8_t *out);

#endif
