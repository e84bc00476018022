/* See fetch.h. */
#include "plan/fetch.h"

cogpu_fetch cogpu_fetch_start(uint32_t first, cogpu_span span) {
    return (cogpu_fetch){.offset = span.offset, .bytes = span.bytes, .first = first, .count = 1};
}

void cogpu_fetch_extend(cogpu_fetch *fetch, cogpu_span span) {
    fetch->bytes = span.offset + span.bytes - fetch->offset;
    fetch->count++;
}
