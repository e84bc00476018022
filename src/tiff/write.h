/*
 * Syntax of TIFF, for writing: header, ghost area, directories and their arrays, always little
 * endian. image/describe.h and write/tags.c decide which tags a file has.
 */
#ifndef COGPU_TIFF_WRITE_H
#define COGPU_TIFF_WRITE_H

#include "tiff/tiff.h"

typedef struct cogpu_new_tag {
    uint16_t id, type;
    uint64_t count;
    const void *values; /* in host byte order; a RATIONAL is two uint32_t */
} cogpu_new_tag;

/* Tags of a new directory: added in any order, sorted by id. A copy of the struct shares its tags,
 * and only one of the two may grow. */
typedef struct cogpu_tag_list {
    cogpu_new_tag *tags;
    uint32_t count, capacity;
} cogpu_tag_list;

/* Adds a tag with a copy of its values. ARGUMENT if the tag exists, or TIFF has no such type. */
cogpu_status cogpu_tag_add(cogpu_tag_list *list, cogpu_arena *arena, uint16_t id, uint16_t type,
                           uint64_t count, const void *values, cogpu_error *error);
/* One SHORT, one LONG, or text with its NUL. */
cogpu_status cogpu_tag_add_short(cogpu_tag_list *list, cogpu_arena *arena, uint16_t id,
                                 uint16_t value, cogpu_error *error);
cogpu_status cogpu_tag_add_long(cogpu_tag_list *list, cogpu_arena *arena, uint16_t id,
                                uint32_t value, cogpu_error *error);
cogpu_status cogpu_tag_add_text(cogpu_tag_list *list, cogpu_arena *arena, uint16_t id,
                                const char *text, cogpu_error *error);
bool cogpu_tag_list_has(const cogpu_tag_list *list, uint16_t id);

/* A directory. Its tags do not include offsets and byte counts of blocks, which are added. */
typedef struct cogpu_new_directory {
    cogpu_tag_list tags;
    bool is_tiled;
    uint64_t blocks;
    const uint64_t *offsets, *bytes; /* of the blocks; needed only to write it */
    uint64_t at;                     /* its file offset, set by cogpu_directories_lay_out */
} cogpu_new_directory;

/* Layout of all directories in one range of bytes from `start` on. Sets their offsets and *end:
 *
 *     directory | its values | directory | its values | ... | all offsets and byte counts
 *
 * It does not depend on the values of offsets and byte counts. Directories and values begin at even
 * offsets. Byte counts are LONG, offsets are LONG, or LONG8 in BigTIFF. */
cogpu_status cogpu_directories_lay_out(cogpu_new_directory *directories, uint32_t count,
                                       bool bigtiff, uint64_t start, uint64_t *end,
                                       cogpu_error *error);
/* Stores that range into `to`, which has end - start bytes. The last directory has no next one. */
void cogpu_directories_write(const cogpu_new_directory *directories, uint32_t count, bool bigtiff,
                             uint64_t start, uint64_t end, uint8_t *to);

/* Stores the header and, if `ghost` has flags (COGPU_GHOST_...), the ghost area. Returns the number
 * of bytes, at most COGPU_NEW_HEADER_MAX: there the first directory of a COG begins. */
enum { COGPU_NEW_HEADER_MAX = 512 };
size_t cogpu_header_write(bool bigtiff, uint32_t ghost, uint64_t first_directory, uint8_t *to);

#endif
