/*
 * GDAL's ghost area: lines of text between header and first directory by which a writer promises
 * how the file is laid out. As GDAL does, the text is searched for the promises, so that unknown
 * lines and blanks do no harm; it is written byte by byte as GDAL does it, since others look for
 * its lines at fixed places.
 */
#include "tiff/room.h"

#include <stdio.h>
#include <string.h>

static const char opening[] = "GDAL_STRUCTURAL_METADATA_SIZE=";
enum { OPENING_BYTES = 43, DIGITS = 6, TEXT_BYTES_MAX = 4096 };

static const struct {
    const char *text;
    uint32_t promise;
} promises[] = {
    {"LAYOUT=IFDS_BEFORE_DATA", COGPU_GHOST_IFDS_BEFORE_DATA},
    {"BLOCK_ORDER=ROW_MAJOR", COGPU_GHOST_ROW_MAJOR},
    {"BLOCK_LEADER=SIZE_AS_UINT4", COGPU_GHOST_LEADER},
    {"BLOCK_TRAILER=LAST_4_BYTES_REPEATED", COGPU_GHOST_TRAILER},
    {"MASK_INTERLEAVED_WITH_IMAGERY=YES", COGPU_GHOST_MASK_INTERLEAVED},
    {"KNOWN_INCOMPATIBLE_EDITION=YES", COGPU_GHOST_BROKEN},
    {"INTERLEAVE=TILE", COGPU_GHOST_TILE_INTERLEAVED},
};

/* Those that GDAL writes before the line on editions. */
enum { FIRST_PROMISES = 4 };

/* The six digits after the opening; 0 where they are no number. */
static size_t stated_bytes(const char *digits) {
    size_t bytes = 0;
    for (int i = 0; i < DIGITS; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return 0;
        bytes = bytes * 10 + (size_t)(digits[i] - '0');
    }
    return bytes;
}

cogpu_status cogpu_ghost_read(cogpu_tiff *tiff, cogpu_error *error) {
    char text[TEXT_BYTES_MAX + 1];
    uint64_t start = tiff->bigtiff ? 16 : 8, file_bytes = cogpu_io_bytes(tiff->io);
    if (file_bytes < start + OPENING_BYTES)
        return COGPU_OK;
    TRY(cogpu_io_peek(tiff->io, start, OPENING_BYTES, text, error));
    if (memcmp(text, opening, sizeof opening - 1) != 0)
        return COGPU_OK;
    size_t bytes = stated_bytes(text + sizeof opening - 1);
    start += OPENING_BYTES;
    if (bytes == 0 || bytes > TEXT_BYTES_MAX || bytes > file_bytes - start)
        return COGPU_OK;
    TRY(cogpu_io_peek(tiff->io, start, bytes, text, error));
    text[bytes] = '\0';
    tiff->ghost = COGPU_GHOST_PRESENT;
    tiff->ghost_end = start + bytes;
    for (size_t i = 0; i < sizeof promises / sizeof *promises; i++)
        if (strstr(text, promises[i].text))
            tiff->ghost |= promises[i].promise;
    return COGPU_OK;
}

static char *add(char *to, const char *text) {
    size_t bytes = strlen(text);
    memcpy(to, text, bytes);
    return to + bytes;
}

size_t cogpu_ghost_write(uint32_t ghost, char *to) {
    char *text = to + OPENING_BYTES, *end = text;
    char digits[OPENING_BYTES];
    for (size_t i = 0; i < FIRST_PROMISES; i++)
        if (ghost & promises[i].promise)
            end = add(add(end, promises[i].text), "\n");
    if (ghost & COGPU_GHOST_TILE_INTERLEAVED)
        end = add(end, "INTERLEAVE=TILE\n");
    end = add(end, "KNOWN_INCOMPATIBLE_EDITION=NO\n "); /* the blank: room for YES */
    if (ghost & COGPU_GHOST_MASK_INTERLEAVED)
        end = add(end, "MASK_INTERLEAVED_WITH_IMAGERY=YES\n");
    snprintf(digits, sizeof digits, "%0*d bytes\n", DIGITS, (int)(end - text));
    add(add(to, opening), digits);
    return (size_t)(end - to);
}
