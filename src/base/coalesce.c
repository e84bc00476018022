/* See coalesce.h. */
#include "base/coalesce.h"

bool cogpu_coalesce_allows(const cogpu_joined_range *request, uint64_t offset, uint64_t end,
                           const cogpu_coalesce_limits *limits) {
    if (end <= request->end)
        return true;
    uint64_t gap = offset > request->end ? offset - request->end : 0;
    uint64_t length = end - request->offset, gap_bytes = request->gap_bytes + gap;
    return gap <= limits->gap_bytes && length <= limits->request_bytes &&
           (gap_bytes <= limits->gap_bytes || gap_bytes <= length / 2);
}

void cogpu_coalesce_join(cogpu_joined_range *request, uint64_t offset, uint64_t end) {
    if (offset > request->end)
        request->gap_bytes += offset - request->end;
    if (end > request->end)
        request->end = end;
}
