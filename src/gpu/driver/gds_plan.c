/*
 * Plans of cuFile requests (gds.h): byte ranges to read become requests of whole pages, and bytes
 * to write are split at page boundaries. Arithmetic only.
 */
#include "base/checked.h"
#include "base/coalesce.h"
#include "base/math.h"
#include "gpu/driver/gds.h"

#include <unistd.h>

/* Gaps of up to GAP_BYTES are read along; a request has at most READ_BYTES. */
enum { GAP_BYTES = 16 << 10, READ_BYTES = 4 << 20 };

static uint64_t page_down(uint64_t offset) {
    return offset / COGPU_GDS_PAGE * COGPU_GDS_PAGE;
}

static uint64_t page_up(uint64_t offset) {
    return divide_up(offset, COGPU_GDS_PAGE) * COGPU_GDS_PAGE;
}

/* The pages of a file that contain the span; false if there are none. */
static bool pages_of(cogpu_span span, uint64_t file_bytes, uint64_t *start, uint64_t *end) {
    uint64_t last, most = min_u64(file_bytes, INT64_MAX);
    if (span.bytes == 0 || !checked_add(span.offset, span.bytes, &last) || last > most)
        return false;
    *start = page_down(span.offset);
    *end = min_u64(page_up(last), most);
    return true;
}

/* Whether the request can be extended to bytes [start, end), or has them already. It ends at a
 * page, or with its file. */
static bool can_extend(const cogpu_gds_request *read, uint64_t start, uint64_t end) {
    static const cogpu_coalesce_limits limits = {.gap_bytes = GAP_BYTES,
                                                 .request_bytes = READ_BYTES};
    const cogpu_joined_range joined = {.offset = read->file_offset,
                                       .end = read->file_offset + read->bytes};
    return start >= read->file_offset && cogpu_coalesce_allows(&joined, start, end, &limits);
}

bool cogpu_gds_plan_add(cogpu_gds_plan *plan, const cogpu_gds_file *file, uint64_t file_bytes,
                        cogpu_span span, uint64_t allowed, cogpu_gds_location *location) {
    uint64_t start, end, bytes;
    cogpu_gds_request *last = plan->read_count ? &plan->reads[plan->read_count - 1] : NULL;
    *location = (cogpu_gds_location){.read = COGPU_GDS_NO_READ};
    if (!pages_of(span, file_bytes, &start, &end))
        return true;
    bool is_new = !last || last->file != file || !can_extend(last, start, end);
    cogpu_gds_request read = {.file = file, .file_offset = start, .device_offset = plan->bytes};
    if (!is_new)
        read = *last;
    read.bytes = max_u64(read.bytes, end - read.file_offset);
    if (!checked_add(read.device_offset, page_up(read.bytes), &bytes) || bytes > allowed)
        return false;
    plan->read_count += is_new;
    plan->bytes = bytes;
    plan->reads[plan->read_count - 1] = read;
    location->read = plan->read_count - 1;
    location->device_offset = read.device_offset + (span.offset - read.file_offset);
    return true;
}

/* Page size of the page cache: a multiple of cuFile's page, larger on some machines. */
static uint64_t cache_page(void) {
    long page = sysconf(_SC_PAGESIZE);
    return page > COGPU_GDS_PAGE ? (uint64_t)page : COGPU_GDS_PAGE;
}

cogpu_gds_write_split cogpu_gds_plan_writes(const cogpu_gds_file *file, cogpu_span span,
                                            uint64_t device_offset, cogpu_gds_request *writes) {
    uint64_t page = cache_page(), span_end;
    cogpu_gds_write_split split = {.head = span.bytes};
    if (!checked_add(span.offset, span.bytes, &span_end) || span_end > INT64_MAX)
        return split; /* the write through host memory reports the error */
    uint64_t start = divide_up(span.offset, page) * page, end = span_end / page * page;
    if (start >= end)
        return split;
    split.head = start - span.offset;
    split.tail = span_end - end;
    for (uint64_t at = start; at < end; at += COGPU_GDS_WRITE_BYTES)
        writes[split.count++] =
            (cogpu_gds_request){.file = file,
                                .file_offset = at,
                                .bytes = min_u64(end - at, COGPU_GDS_WRITE_BYTES),
                                .device_offset = device_offset + (at - span.offset)};
    return split;
}
