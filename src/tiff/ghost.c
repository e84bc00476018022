/*
 * GDAL's ghost area: lines of text between the header and the first directory that declare the
 * layout of a COG. As in GDAL, parsing searches for known lines, so that unknown lines and blanks
 * do no harm. Writing reproduces GDAL's bytes, because readers expect lines at fixed offsets.
 */
#include "tiff/internal.h"

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

/* Lines before KNOWN_INCOMPATIBLE_EDITION. */
enum { FIRST_PROMISES = 4 };

/* The six digits after the prefix; 0 if they are not a number. */
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

static char *append_ghost_text(char *to, const char *text) {
    size_t bytes = strlen(text);
    memcpy(to, text, bytes);
    return to + bytes;
}

size_t cogpu_ghost_write(uint32_t ghost, char *to) {
    char *text = to + OPENING_BYTES, *end = text;
    char digits[OPENING_BYTES];
    for (size_t i = 0; i < FIRST_PROMISES; i++)
        if (ghost & promises[i].promise)
            end = append_ghost_text(append_ghost_text(end, promises[i].text), "\n");
    if (ghost & COGPU_GHOST_TILE_INTERLEAVED)
        end = append_ghost_text(end, "INTERLEAVE=TILE\n");
    end = append_ghost_text(
        end, "KNOWN_INCOMPATIBLE_EDITION=NO\n "); /* the blank leaves space for YES */
    if (ghost & COGPU_GHOST_MASK_INTERLEAVED)
        end = append_ghost_text(end, "MASK_INTERLEAVED_WITH_IMAGERY=YES\n");
    snprintf(digits, sizeof digits, "%0*d bytes\n", DIGITS, (int)(end - text));
    append_ghost_text(append_ghost_text(to, opening), digits);
    return (size_t)(end - to);
}
