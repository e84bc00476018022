/* Interleaved inflate: see inflate_lanes.c, and docs/decisions for when it is used. */
#ifndef COGPU_CODEC_INFLATE_LANES_H
#define COGPU_CODEC_INFLATE_LANES_H

#include "codec/codec.h"

#if COGPU_HAVE_LIBDEFLATE && defined(__x86_64__)
#define HAVE_INFLATE_LANES 1
#else
#define HAVE_INFLATE_LANES 0
#endif

/* Whether the CPU has pext, and executes it without microcode. */
bool cogpu_inflate_lanes_run_here(void);

/* Decodes the streams of a queue, CODEC_LANES at a time. *memory is the decoder's own, kept from
 * call to call and freed by cogpu_release; NULL at the start. */
cogpu_status cogpu_inflate_lanes(void **memory, cogpu_lane_queue *queue, cogpu_error *error);

#endif
