/* What a file may ask of us at most, where the caller does not say otherwise. */
#ifndef COGPU_BASE_LIMITS_H
#define COGPU_BASE_LIMITS_H

#include "cogpu.h"

/* The limits with each zero replaced by its default. */
cogpu_limits cogpu_limits_complete(const cogpu_limits *limits);

/* A block may decode to so many times its stored bytes, and to this much in any case. zstd expands
 * most: it writes 4 bytes for 128 KiB of one value, and LERC 58 bytes for a tile of one value,
 * whatever its size. So a file of 1 KiB cannot make us take 64 MiB. */
enum { COGPU_EXPANSION_BASE = 16 << 20, COGPU_EXPANSION_FACTOR = 33000 };

/* Levels of one image, as GDAL has it, and levels of SubIFDs below one another. */
enum { COGPU_LEVELS_MAX = 31, COGPU_SUBIFD_DEPTH_MAX = 4 };

#endif
