/*
 * Which requests fetch the spans that will be read: neighbours in the source share one, since a
 * request over a network costs more than a few bytes that nobody wants. Arithmetic only.
 *
 * A file says where its spans are, so the caps hold whatever it says: far-apart tiny spans do not
 * become one giant request.
 */
#ifndef COGPU_IO_MERGE_H
#define COGPU_IO_MERGE_H

#include "base/memory.h"

/* A contiguous range of a source's bytes. */
typedef struct cogpu_span_of_source {
    uint64_t offset, bytes;
} cogpu_span_of_source;

/* What cogpu_merge_caps usually has. */
enum { COGPU_GAP_BYTES = 64 << 10, COGPU_REQUEST_BYTES = 8 << 20 };

typedef struct cogpu_merge_caps {
    uint64_t gap_bytes;     /* of a gap that is read along; and of all gaps of a request, unless
                             * they are at most half of it */
    uint64_t request_bytes; /* of a request, unless one span alone is longer */
} cogpu_merge_caps;

/* Requests begin in ascending order, no two at one offset. Each covers its spans from end to end,
 * and a span's request is the last that does not begin behind it. Requests overlap only where their
 * spans do and could not share a request because of the caps. */
typedef struct cogpu_requests {
    cogpu_span_of_source *list;
    uint32_t count;
    uint32_t *of_span; /* which request each span is in; COGPU_NO_REQUEST */
} cogpu_requests;

/* Of an empty span, and of one that does not lie inside the source: whoever reads it is told. */
#define COGPU_NO_REQUEST UINT32_MAX

/* Spans in any order, overlapping or equal, of a source of so many bytes. At most UINT32_MAX - 1.
 * The lists belong to the arena. */
cogpu_status cogpu_merge(const cogpu_span_of_source *spans, uint32_t count, uint64_t source_bytes,
                         const cogpu_merge_caps *caps, cogpu_arena *arena, cogpu_requests *requests,
                         cogpu_error *error);

#endif
