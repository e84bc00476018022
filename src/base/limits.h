/* Limits on what a file may make the library allocate. */
#ifndef COGPU_BASE_LIMITS_H
#define COGPU_BASE_LIMITS_H

#include "cogpu.h"

/* The limits with defaults in place of zeros. */
cogpu_limits cogpu_limits_complete(const cogpu_limits *limits);

/* A block may decode to COGPU_EXPANSION_BASE bytes, plus so many times its stored bytes. zstd
 * expands most: it writes 4 bytes for 128 KiB of one value; LERC writes 58 bytes for a tile of one
 * value, whatever its size. So a file of 1 KiB cannot make the library allocate 64 MiB. */
enum { COGPU_EXPANSION_BASE = 16 << 20, COGPU_EXPANSION_FACTOR = 33000 };

/* Levels of one image, as in GDAL, and nested levels of SubIFDs. */
enum { COGPU_LEVELS_MAX = 31, COGPU_SUBIFD_DEPTH_MAX = 4 };

#endif
