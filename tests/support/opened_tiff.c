#include "support/opened_tiff.h"

cogpu_status open_built(opened_tiff *opened) {
    cogpu_limits limits = cogpu_limits_complete(NULL);
    build_directory(&opened->file, true);
    cogpu_arena_open(&opened->arena, limits.working_memory_bytes);
    opened->warning = NULL;
    opened->io = NULL;
    TRY(cogpu_io_open_memory(opened->file.bytes, opened->file.size, &opened->io, &opened->error));
    return cogpu_tiff_open(&opened->tiff, opened->io, &limits, &opened->arena, &opened->error);
}

void close_built(opened_tiff *opened) {
    cogpu_io_close(opened->io);
    cogpu_arena_close(&opened->arena);
    build_close(&opened->file);
}
