/*
 * JPEG always loses. WebP and LERC do so or not, as the header of a block says:
 *
 *   WebP   "RIFF" size "WEBP" and a chunk: "VP8 " is lossy, "VP8L" lossless, "VP8X" has more chunks
 *   LERC2  "Lerc2 " version, then up to six numbers of 4 bytes by version, the data type, and the
 *          maximum error as a double; integers are lossless with 0.5
 */
#include "lossy.h"

#include "name.h"
#include "tag_value.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { JPEG_OLD = 6, JPEG = 7, LERC = 34887, WEBP = 50001, HEAD = 256 };

/* Offset of the first block with data; 0 if there is none. */
static uint64_t first_block(const cogpu_selection *selection) {
    enum { STRIP_OFFSETS = 273, TILE_OFFSETS = 324, LOOKED_AT = 64 };
    uint32_t directory = selection->level.directory;
    cogpu_tag tag = COGPU_TAG_INIT;
    if (selection->level.external)
        return 0;
    for (uint32_t i = 0; cogpu_tag_info(selection->file, directory, i, &tag, NULL) == COGPU_OK;
         i++) {
        cogpu_tag_value value;
        if ((tag.id != STRIP_OFFSETS && tag.id != TILE_OFFSETS) ||
            cogpu_tag_value_read(selection->file, directory, &tag, LOOKED_AT, &value, NULL) !=
                COGPU_OK)
            continue;
        for (uint32_t k = 0; k < value.count; k++)
            if (cogpu_tag_value_unsigned(&value, k) > 0)
                return cogpu_tag_value_unsigned(&value, k);
    }
    return 0;
}

static bool read_head(const cogpu_selection *selection, const char *path, uint8_t head[HEAD]) {
    uint64_t offset = first_block(selection);
    int file = offset > 0 && offset < INT64_MAX && !cogpu_name_is_url(path)
                   ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
                   : -1;
    if (file < 0)
        return false;
    memset(head, 0, HEAD);
    bool is_read = pread(file, head, HEAD, (off_t)offset) > 0;
    close(file);
    return is_read;
}

static bool is_lossy_webp(const uint8_t head[HEAD]) {
    if (memcmp(head, "RIFF", 4) != 0 || memcmp(head + 8, "WEBP", 4) != 0)
        return false;
    if (memcmp(head + 12, "VP8X", 4) != 0)
        return memcmp(head + 12, "VP8 ", 4) == 0;
    /* The chunks behind it: alpha, then the image. */
    for (size_t i = 30; i + 4 <= HEAD; i++)
        if (memcmp(head + i, "VP8L", 4) == 0)
            return false;
    return true;
}

static bool is_lossy_lerc(const uint8_t head[HEAD]) {
    enum { MAGIC = 6, NUMBER = 4, FLOATS = 6 };
    int32_t version, type;
    double error;
    if (memcmp(head, "Lerc2 ", MAGIC) != 0)
        return false;
    memcpy(&version, head + MAGIC, sizeof version);
    if (version < 1 || version > 6)
        return false;
    /* Version; checksum from 3 on; rows, columns; depth from 4 on; valid pixels, size of micro
     * blocks, bytes, type; two more numbers from 6 on; then the error. */
    size_t numbers = (version >= 3 ? 2u : 1u) + (version >= 4 ? 3u : 2u) + 3u;
    size_t at = MAGIC + NUMBER * numbers;
    memcpy(&type, head + at, sizeof type);
    at += version >= 6 ? (size_t)3 * NUMBER : (size_t)NUMBER;
    memcpy(&error, head + at, sizeof error);
    return error > (type >= FLOATS ? 0 : 0.5);
}

const char *cogpu_lossy_codec(const cogpu_selection *selection, const char *path) {
    uint8_t head[HEAD];
    switch (selection->level.compression) {
    case JPEG_OLD:
    case JPEG:
        return "jpeg";
    case WEBP:
        return read_head(selection, path, head) && is_lossy_webp(head) ? "webp" : NULL;
    case LERC:
        return read_head(selection, path, head) && is_lossy_lerc(head) ? "lerc" : NULL;
    default:
        return NULL;
    }
}
