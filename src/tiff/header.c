/* Opens a TIFF: header, ghost area, then all directories. */
#include "tiff/tiff.h"

#include "base/bytes.h"
#include "tiff/internal.h"

static cogpu_status not_a_tiff(cogpu_error *error, const char *why) {
    return cogpu_fail(error, COGPU_NOT_TIFF, "not a TIFF file: %s", why);
}

static cogpu_status read_tiff_header(cogpu_tiff *tiff, uint64_t *first_directory,
                                     cogpu_error *error) {
    uint8_t head[16];
    uint64_t file_bytes = cogpu_io_bytes(tiff->io);
    if (file_bytes < 8)
        return not_a_tiff(error, "it has fewer than 8 bytes");
    TRY(cogpu_io_peek(tiff->io, 0, 8, head, error));
    if (head[0] != head[1] || (head[0] != 'I' && head[0] != 'M'))
        return not_a_tiff(error, "it does not begin with II or MM");
    tiff->big_endian = head[0] == 'M';
    uint16_t magic = load_u16(head + 2, tiff->big_endian);
    if (magic != 42 && magic != 43)
        return not_a_tiff(error, "its version is neither 42 (TIFF) nor 43 (BigTIFF)");
    tiff->bigtiff = magic == 43;
    if (!tiff->bigtiff) {
        *first_directory = load_u32(head + 4, tiff->big_endian);
        return COGPU_OK;
    }
    if (file_bytes < 16)
        return not_a_tiff(error, "BigTIFF with fewer than 16 bytes");
    TRY(cogpu_io_peek(tiff->io, 0, 16, head, error));
    if (load_u16(head + 4, tiff->big_endian) != 8 || load_u16(head + 6, tiff->big_endian) != 0)
        return not_a_tiff(error, "BigTIFF with offsets that are not 8 bytes wide");
    *first_directory = load_u64(head + 8, tiff->big_endian);
    return COGPU_OK;
}

cogpu_status cogpu_tiff_open(cogpu_tiff *tiff, cogpu_io *io, const cogpu_limits *limits,
                             cogpu_arena *arena, cogpu_error *error) {
    uint64_t first_directory = 0;
    *tiff = (cogpu_tiff){.io = io, .limits = *limits};
    TRY(read_tiff_header(tiff, &first_directory, error));
    TRY(cogpu_ghost_read(tiff, error));
    return cogpu_directories_read(tiff, first_directory, arena, error);
}
