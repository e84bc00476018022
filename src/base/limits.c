/* Defaults of the limits. */
#include "base/limits.h"

cogpu_limits cogpu_limits_complete(const cogpu_limits *limits) {
    cogpu_limits complete = limits ? *limits : (cogpu_limits){0};
    if (!complete.directories)
        complete.directories = 65536;
    if (!complete.tags)
        complete.tags = 4096;
    if (!complete.tag_bytes)
        complete.tag_bytes = 64ULL << 20;
    if (!complete.blocks)
        complete.blocks = (1ULL << 31) - 1;
    if (!complete.block_bytes)
        complete.block_bytes = 1ULL << 30;
    if (!complete.bands)
        complete.bands = 65535;
    if (!complete.working_memory_bytes)
        complete.working_memory_bytes = 4ULL << 30;
    if (!complete.sources)
        complete.sources = 1000000;
    if (!complete.vrt_bytes)
        complete.vrt_bytes = 256ULL << 20;
    return complete;
}
